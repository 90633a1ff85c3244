"""Collectives of gradients hidden behind the backward pass, as two lanes."""

from collections.abc import Iterator, Mapping

from ...base.units import show
from ...training import PrefetchSchedule
from ..labels import text_width
from ..picture import WIDEST, Picture, picture
from ..shapes import box, framed, line, written

EDGE, LANE, THICK = 8, 24, 18
FILL = {"forward": 0.35, "backward": 1.0}


def behind(schedules: Mapping[str, PrefetchSchedule]) -> Picture:
    """Math in one lane, the network in the other, and the time that stays exposed.

    Args:
        schedules: name → a schedule from `training.prefetched`.

    Raises:
        ValueError: there are no schedules.

    >>> from shardmath.training import Layer, prefetched
    >>> behind({"even": prefetched(Layer(0, 0, 1, 2, 2), 4)}).desc[:45]
    'even: 14 s, 2 s of it after the last product.'
    """
    if not schedules:
        raise ValueError("schedules = {}: must hold one or more")
    longest = max(one.seconds for one in schedules.values())
    parts, said, top = [], [], 0.0
    for name, one in schedules.items():
        done = max(span.end for span in one.spans if span.resource == "math")
        after = show(one.seconds - done, "s")
        took = f"{name}: {show(one.seconds, 's')}"
        said.append(f"{took}, {after} of it after the last product.")
        parts.append(written(EDGE, top + 18, f"{took}, {after} exposed", bold=True))
        parts += _lanes(name, one, top + 32, longest, done)
        top += 32 + 2 * LANE + 14
    parts += _legend(top)
    title = "Gradients on their way behind the backward pass"
    desc = (
        f"{' '.join(said)} The upper lane is math: forward pale, backward full, a box "
        "for each layer. The lower one is the network: the gradients of a layer leave "
        "when its backward is done, one after another. One scale of time."
    )
    return picture(title, desc, framed(title, desc, parts, WIDEST, top + 28))


def _lanes(
    name: str, one: PrefetchSchedule, top: float, longest: float, done: float
) -> Iterator[str]:
    left = EDGE + text_width("network") + 8
    scale = (WIDEST - EDGE - left) / longest
    for n, resource in enumerate(("math", "network")):
        yield written(left - 8, top + n * LANE + 14, resource, resource, "end")
    for n, span in enumerate(one.spans):
        if span.end > span.start:  # weights that are not gathered take no time
            y = top + LANE * (span.resource == "network")
            spot = left + scale * span.start, y, left + scale * span.end, y + THICK
            fill = FILL.get(span.what, 0.6)
            look = {"fill": fill, "edge": 0, "round": 0, "key": f"{name} {n}"}
            yield box(*spot, span.resource, **look)
            if spot[2] - spot[0] > 4:  # a seam between neighbours
                yield line((spot[2], y), (spot[2], y + THICK), colour="paper", width=1)
    x, end = left + scale * done, left + scale * one.seconds
    yield line((x, top - 4), (x, top + 2 * LANE), width=1.2, dashed=True)
    yield line((end, top - 4), (end, top + 2 * LANE), width=1.2)


def _legend(top: float) -> Iterator[str]:
    x = EDGE
    for words, colour, fill in (
        ("forward", "math", FILL["forward"]),
        ("backward", "math", FILL["backward"]),
        ("gradients", "network", 0.6),
    ):
        yield box(x, top + 4, x + 18, top + 18, colour, fill=fill, edge=0, round=0)
        yield written(x + 24, top + 16, words)
        x += 24 + text_width(words) + 18
