"""Finds places for labels inside the frame where, if possible, they cover nothing."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise, product

FONT = 14  # font size, in the units of the picture
_BOLD = 1.12

XY = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom; y points down

SIDES = {
    "n": (0, -1),
    "s": (0, 1),
    "e": (1, 0),
    "w": (-1, 0),
    "ne": (1, -1),
    "nw": (-1, -1),
    "se": (1, 1),
    "sw": (-1, 1),
}


def text_width(text: str, *, bold: bool = False) -> float:
    """An upper estimate of the width of `text` in a common sans-serif font.

    Bold letters of DejaVu Sans, the widest of these fonts, are up to an eighth wider
    than its regular ones.
    """
    narrow = sum(c in "iljtfrI.,:;·'|()[] " for c in text)
    wide = sum(c in "MWmw%@→≥≤½" or (c.isupper() and c != "I") for c in text)
    em = 0.36 * narrow + 0.76 * wide + 0.6 * (len(text) - narrow - wide)
    return FONT * em * (_BOLD if bold else 1)


def along(points: Sequence[XY]) -> Iterable[XY]:
    """Points along a polyline, so close that no label fits between two of them."""
    for (ax, ay), (bx, by) in pairwise(points):
        steps = max(1, round(math.hypot(bx - ax, by - ay) / 4))
        for n in range(steps + 1):
            yield ax + (bx - ax) * n / steps, ay + (by - ay) * n / steps


def place(
    text: str,
    anchor: XY,
    toward: str,
    frame: Box,
    taken: Sequence[Box],
    ink: Sequence[XY],
) -> Box:
    """The box for `text` near `anchor` and inside `frame` that covers the least.

    Args:
        text: one line.
        anchor: the point that is labelled.
        toward: the preferred side, one of `SIDES`.
        frame: where labels may be.
        taken: boxes to avoid above all.
        ink: points of lines to avoid if possible.

    >>> place("roof", (50, 50), "n", (0, 0, 200, 100), [], [])[3] < 50
    True
    """
    width, height = text_width(text), FONT + 4
    sides = [toward, *(side for side in SIDES if side != toward)]
    best = None
    for gap, side in product((8, 18, 30, 44, 60), sides):  # near places first
        right, down = SIDES[side]
        # The box hangs on the anchor by the edge or corner that faces it.
        left = anchor[0] + right * gap - width * (1 - right) / 2
        top = anchor[1] + down * gap - height * (1 - down) / 2
        left = min(max(left, frame[0]), frame[2] - width)
        top = min(max(top, frame[1]), frame[3] - height)
        box = (left, top, left + width, top + height)
        hidden = sum(overlap(box, other) for other in taken)
        crossed = sum(box[0] < u < box[2] and box[1] < v < box[3] for u, v in ink)
        # Crossing a thin line is better than being far away, next to something else.
        cost = (hidden, crossed + gap)
        if best is None or cost < best[0]:
            best = (cost, box)
        if not hidden and not crossed:
            break
    return best[1]


def overlap(a: Box, b: Box) -> float:
    """Area that two boxes share.

    >>> overlap((0, 0, 4, 4), (2, 2, 9, 9))
    4
    """
    wide = min(a[2], b[2]) - max(a[0], b[0])
    high = min(a[3], b[3]) - max(a[1], b[1])
    return max(wide, 0) * max(high, 0)
