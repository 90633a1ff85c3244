"""A two-level AllReduce in three stages, with what the chips hold after each."""

from collections.abc import Iterator, Sequence

from ...base.units import show
from ...collectives import NAMES, Collective, Hierarchy
from ..picture import Picture
from ..shapes import box, framed, line, written
from ..theme import HUES, hue

WIDTH, EDGE = 204, 12
BLOCK, TALL = 6, 7  # a cell of a chip: its height, and the space between two chips
CHIPS = len(HUES)  # of a group that are all drawn, each with a block of its own


def hierarchy(whole: Hierarchy) -> Picture:
    """A panel for each stage: what chips of the first and last group hold after it."""
    stages = whole.stages
    groups, chips = whole.mesh.size(whole.across), whole.mesh.size(whole.inside)
    said = [
        f"{NAMES[s.collective.op]} over {' '.join(s.collective.axes)}: "
        f"{show(s.collective.sent, 'bytes')} sent at the rate of {s.level}, "
        f"{show(s.lower, 's')}"
        for s in stages
    ]
    title = f"AllReduce of {show(whole.nbytes, 'bytes')} in three stages"
    desc = (
        f"{groups} groups of {chips} chips. {'; '.join(said)}; together "
        f"{show(whole.seconds, 's')}."
    )
    return Picture(
        title, desc, tuple(_panel(whole, n, said[n]) for n in range(len(stages)))
    )


def _panel(whole: Hierarchy, number: int, said: str) -> str:
    stage = whole.stages[number]
    record = stage.collective
    title = f"{number + 1}. {NAMES[record.op]}, {' '.join(record.axes)}"
    parts = [written(EDGE, 18, title, bold=True)]
    groups = whole.mesh.size(whole.across)
    names = ["0", str(groups - 1)]
    high = BLOCK * _drawn(whole)
    tops = (44.0, 44.0 + high + 44)
    for group, top in enumerate(tops):
        parts.append(written(EDGE, top + high / 2 + 5, names[group]))
        parts += _group(whole, group, top, number)
    if number == 1:
        for x in _middles(whole):
            ways = (x, tops[0] + high + 3), (x, tops[1] - 3)
            parts.append(line(*ways, colour="network", width=1.5, heads="both"))
    else:
        for top in tops:
            y = top - 7
            left, right = _middles(whole)[0], _middles(whole)[-1]
            ways = (left, y), (right, y)
            parts.append(line(*ways, colour="network", width=4, heads="both"))
    if groups > 2 and number != 1:
        parts.append(written(EDGE, tops[0] + high + 22, "…"))
    y = tops[1] + high + 24
    rate = record.sent / stage.bandwidth_seconds
    for words, colour in (
        (f"{show(record.sent, 'bytes')} sent a chip", "ink"),
        (f"{stage.level}, {show(rate, 'bytes/s')}", "network"),
        (f"at best {show(stage.lower, 's')}", "ink"),
    ):
        parts.append(written(EDGE, y, words, colour))
        y += 20
    return framed(title, f"{said}.", parts, WIDTH, y - 8)


def _drawn(whole: Hierarchy) -> int:
    """Chips of a group that are drawn."""
    return min(CHIPS, whole.mesh.size(whole.inside))


def _lefts(whole: Hierarchy) -> tuple[list[float], float]:
    """Left edges of the chips, and their width."""
    room = WIDTH - 2 * EDGE - 20
    pitch = room / _drawn(whole)
    return [EDGE + 20 + n * pitch for n in range(_drawn(whole))], pitch - TALL


def _middles(whole: Hierarchy) -> list[float]:
    lefts, wide = _lefts(whole)
    return [left + wide / 2 for left in lefts]


def _group(whole: Hierarchy, group: int, top: float, stage: int) -> Iterator[str]:
    """Chips as columns of blocks. Pale is a sum over the group, dark is over all."""
    lefts, wide = _lefts(whole)
    done = [priced.collective for priced in whole.stages[: stage + 1]]
    chips = whole.mesh.size((whole.across, whole.inside))
    for chip, left in enumerate(lefts):
        for block in range(_drawn(whole)):
            y = top + block * BLOCK
            spot = (left, y, left + wide, y + BLOCK)
            shade = shades(done, chips)[block == chip]
            key = f"{group} {chip} {block}"
            yield box(*spot, hue(block), fill=shade, edge=0.4, round=0, key=key)


def shades(done: Sequence[Collective], chips: int) -> tuple[float, float]:
    """The darkness of a chip's other blocks, and of its own, after collectives `done`.

    It is 0 for a block that is not there, and greatest for a sum over all `chips`.

    >>> shades([Collective("reduce_scatter", "gpu", 1e9, 8)], 32)
    (0, 0.35)
    """
    terms, complete = 1, True
    for record in done:
        if record.op != "all_gather":
            terms *= record.group
        if record.op != "all_reduce":
            complete = record.op == "all_gather"
    dark = 0.9 if terms == chips else 0.35
    return (dark if complete else 0), dark
