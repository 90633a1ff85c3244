"""The two ends of an estimate as time lines: all at once, and one after the other."""

from collections.abc import Iterator

from ..drawing import shapes
from ..drawing.picture import Picture, picture
from ..estimate import Estimate, Leg
from ..units import show

WIDTH = 416
LEFT, RIGHT = 128, 404  # where time begins, and where the sum of the legs ends
ROW, THICK = 24, 16
IN_TURN = ("HBM", "on-chip", "math", "network")  # operands come, results leave


def overlap(estimate: Estimate) -> Picture:
    """max(T) ≤ T ≤ ΣT, drawn: the legs at once, then one after the other.

    Raises:
        ValueError: a leg has slack, so that the upper bound is not the sum of times.

    >>> from shardmath import chips, roofline
    >>> op = roofline.matmul(24, 8192, 8192, chips.TPU_V5E)
    >>> print(overlap(op).desc[:52])
    All at once: 165 µs, the longest of HBM 165 µs, math
    """
    if any(leg.slack for leg in estimate.legs):
        raise ValueError(f"{estimate.title}: a leg has slack, and no one place in time")
    legs = sorted(estimate.legs, key=lambda leg: IN_TURN.index(leg.resource))
    scale = (RIGHT - LEFT) / estimate.upper
    heads = (
        f"all at once: {show(estimate.lower, 's')}",
        f"one after the other: {show(estimate.upper, 's')}",
    )
    begin, turns = 0.0, []
    for leg in legs:
        turns.append(begin)
        begin += leg.seconds
    block = 32 + ROW * len(legs)
    parts = [
        *_block(0, heads[0], legs, [0.0] * len(legs), estimate.lower, scale),
        *_block(block + 8, heads[1], legs, turns, estimate.upper, scale),
    ]
    said = ", ".join(map(_words, legs))
    desc = (
        f"{heads[0].capitalize()}, the longest of {said}. {heads[1].capitalize()}, "
        f"their sum. The lengths of the bars are to the scale of time, from the left."
    )
    title = "Lower and upper bound of the time"
    height = 2 * block + 14
    return picture(title, desc, shapes.framed(title, desc, parts, WIDTH, height))


def _block(
    top: float,
    head: str,
    legs: list[Leg],
    begins: list[float],
    end: float,
    scale: float,
) -> Iterator[str]:
    """The legs as bars under a heading, and a line where the last one ends."""
    yield shapes.written(6, top + 18, head, bold=True)
    bottom = top + 32 + ROW * len(legs)
    yield shapes.line((LEFT, top + 28), (LEFT, bottom), width=1, opacity=0.6)
    for n, (leg, begin) in enumerate(zip(legs, begins, strict=True)):
        at = top + 32 + ROW * n
        colour = "ink" if leg.resource == "on-chip" else leg.resource
        yield shapes.written(LEFT - 8, at + 13, _words(leg), colour, "end")
        left = LEFT + begin * scale
        right = left + leg.seconds * scale
        bar = {"fill": 1, "edge": 0, "round": 0}
        yield shapes.box(left, at, right, at + THICK, colour, **bar)
    x = LEFT + end * scale
    yield shapes.line((x, top + 28), (x, bottom), width=1.5, dashed=True)


def _words(leg: Leg) -> str:
    return f"{leg.resource} {show(leg.seconds, 's')}"
