"""The two bounds of an estimate as time lines: all at once, or one after the other."""

from collections.abc import Iterator

from ...base.estimate import Estimate
from ...base.units import show
from .. import shapes
from ..picture import Picture, picture

WIDTH = 416
LEFT, RIGHT = 128, 404  # where time begins, and where the sum of the legs ends
ROW, THICK = 24, 16
IN_TURN = ("HBM", "on-chip", "math", "network")  # operands come, results leave


def overlap(estimate: Estimate) -> Picture:
    """max(T) ≤ T ≤ ΣT as a picture: the legs all at once, and one after the other.

    In the second case, each leg includes its slack, such as the latency of a network.

    >>> from shardmath.hardware import chips, roofline
    >>> op = roofline.matmul(24, 8192, 8192, chips.TPU_V5E)
    >>> print(overlap(op).desc[:52])
    All at once: 165 µs, the longest of HBM 165 µs, math
    """
    legs = sorted(estimate.legs, key=lambda leg: IN_TURN.index(leg.resource))
    scale = (RIGHT - LEFT) / estimate.upper
    heads = (
        f"all at once: {show(estimate.lower, 's')}",
        f"one after the other: {show(estimate.upper, 's')}",
    )
    at_once = [(leg.resource, 0.0, leg.seconds) for leg in legs]
    begin, turns = 0.0, []
    for leg in legs:
        turns.append((leg.resource, begin, leg.seconds + leg.slack))
        begin += leg.seconds + leg.slack
    block = 32 + ROW * len(legs)
    parts = [
        *_block(0, heads[0], at_once, estimate.lower, scale),
        *_block(block + 8, heads[1], turns, estimate.upper, scale),
    ]
    said, summed = (", ".join(_words(n, s) for n, _, s in b) for b in (at_once, turns))
    sum_of = "their sum" if said == summed else f"the sum of {summed}"
    desc = (
        f"{heads[0].capitalize()}, the longest of {said}. {heads[1].capitalize()}, "
        f"{sum_of}. The lengths of the bars are to the scale of time, from the left."
    )
    title = "Lower and upper bound of the time"
    height = 2 * block + 14
    return picture(title, desc, shapes.framed(title, desc, parts, WIDTH, height))


def _block(
    top: float,
    head: str,
    bars: list[tuple[str, float, float]],
    end: float,
    scale: float,
) -> Iterator[str]:
    """Bars of (resource, begin, seconds) under a heading, and a line at the end."""
    yield shapes.written(6, top + 18, head, bold=True)
    bottom = top + 32 + ROW * len(bars)
    yield shapes.line((LEFT, top + 28), (LEFT, bottom), width=1, opacity=0.6)
    for n, (resource, begin, seconds) in enumerate(bars):
        at = top + 32 + ROW * n
        colour = "ink" if resource == "on-chip" else resource
        yield shapes.written(
            LEFT - 8, at + 13, _words(resource, seconds), colour, "end"
        )
        left = LEFT + begin * scale
        right = left + seconds * scale
        bar = {"fill": 1, "edge": 0, "round": 0}
        yield shapes.box(left, at, right, at + THICK, colour, **bar)
    x = LEFT + end * scale
    yield shapes.line((x, top + 28), (x, bottom), width=1.5, dashed=True)


def _words(resource: str, seconds: float) -> str:
    return f"{resource} {show(seconds, 's')}"
