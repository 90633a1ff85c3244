"""Parts of the diagrams of chips: boxes with words, and arrows with rates."""

from collections.abc import Iterable, Iterator

from ...base.units import show
from ...hardware.chips import Chip
from .. import shapes

WIDTH = 416
ROW = 26  # height of a box with one line of words
LINE = 18  # from one line of words to the next
AXIS = 300  # the x of arrows between two memories, whose rates are to their left
NOT_TO_SCALE = "Boxes and arrows are not to scale."


def named(
    left: float, top: float, right: float, words: Iterable[str], colour: str = "ink"
) -> Iterator[str]:
    """A box with one or more lines of words in its middle."""
    lines = list(words)
    yield shapes.box(left, top, right, bottom(top, len(lines)), colour)
    for n, text in enumerate(lines):
        at = top + 4 + LINE * n
        yield shapes.label(left, at, right, at + LINE, text)


def bottom(top: float, lines: int = 1) -> float:
    """The bottom of a box with this number of lines."""
    return top + ROW + LINE * (lines - 1)


def feed(top: float, end: float, text: str, colour: str = "ink", x=AXIS) -> list[str]:
    """A two-way arrow from one memory to the next, with its rate next to it."""
    return [
        shapes.line((x, top), (x, end), colour=colour, heads="both"),
        shapes.written(x - 10, top + 20, text, colour, "end"),
    ]


def rate(chip: Chip, name: str, parts: int = 1) -> str:
    """A bandwidth of `chip`, or of one of `parts` equal parts of it."""
    if name not in chip.facts:
        return "no source states a rate"
    fact = chip.fact(name)
    how = " (measured)" if "measured" in fact.note else ""
    return show(fact.value / parts, "bytes/s") + how


def capacity(chip: Chip, name: str, what: str, parts: int = 1) -> str:
    """`what`, followed by its capacity if a source states it."""
    if name not in chip.facts:
        return what
    return f"{what}, {show(chip.fact(name).value / parts, 'capacity')}"


def peak(chip: Chip, parts: int = 1) -> str:
    """The dense 16-bit peak of `chip`, or of one of `parts` equal parts of it.

    Raises:
        Unpublished: no source states the peak. It is a ValueError.
    """
    return f"{show(chip.flops[chip.half] / parts, 'FLOPs/s')} in {chip.half}"


def outside(chip: Chip, links: str, others: str, end: float) -> Iterator[str]:
    """The host and the neighbours above a chip whose frame begins at `end`.

    Args:
        chip: the chip.
        links: the name of its links to neighbours.
        others: what is at their other end.
        end: the top of the chip's frame.
    """
    yield from named(6, 6, 166, ["host"])
    yield from named(186, 6, WIDTH - 6, [others])
    for x, words in zip((26, 206), _wires(chip, links), strict=True):
        yield shapes.line((x, ROW + 6), (x, end), colour="network", heads="both")
        for n, text in enumerate(words):
            yield shapes.written(x + 12, 50 + LINE * n, text, "network")


def wires(chip: Chip, links: str) -> str:
    """The words next to the arrows of `outside`, as a sentence."""
    host, others = _wires(chip, links)
    return f"Outside: {', '.join(others)}; {', '.join(host)}."


def _wires(chip: Chip, links: str) -> tuple[list[str], list[str]]:
    """Lines of words for the wire to the host and for those to the neighbours."""
    count = f"{chip.links} {links}" if "links" in chip.facts else links
    return (
        ["PCIe to the host", *_one_way(chip, "host_bandwidth", "")],
        [count, *_one_way(chip, "link_bandwidth", " each")],
    )


def _one_way(chip: Chip, name: str, each: str) -> list[str]:
    if name not in chip.facts:
        return ["no source", "states a rate"]
    return [rate(chip, name) + each, "one-way"]
