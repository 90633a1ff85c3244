"""What the diagrams of chips share: boxes with words, arrows with rates."""

from collections.abc import Iterable, Iterator

from ...base.units import show
from ...hardware.chips import Chip
from .. import shapes

WIDTH = 416
ROW = 26  # height of a box with one line of words
LINE = 18  # from one line of words to the next
AXIS = 300  # where the arrows between two memories stand; their rates are to the left
NOT_TO_SCALE = "Boxes and arrows are not to scale."


def named(
    left: float, top: float, right: float, words: Iterable[str], colour: str = "ink"
) -> Iterator[str]:
    """A box with a line of words or more in its middle."""
    lines = list(words)
    yield shapes.box(left, top, right, bottom(top, len(lines)), colour)
    for n, text in enumerate(lines):
        at = top + 4 + LINE * n
        yield shapes.label(left, at, right, at + LINE, text)


def bottom(top: float, lines: int = 1) -> float:
    """Where a box of so many lines ends."""
    return top + ROW + LINE * (lines - 1)


def feed(top: float, end: float, text: str, colour: str = "ink", x=AXIS) -> list[str]:
    """An arrow both ways from one memory to the next, its rate beside it."""
    return [
        shapes.line((x, top), (x, end), colour=colour, heads="both"),
        shapes.written(x - 10, top + 20, text, colour, "end"),
    ]


def rate(chip: Chip, name: str, parts: int = 1) -> str:
    """A bandwidth of `chip`, or of one of its equal parts."""
    if name not in chip.facts:
        return "no source states a rate"
    fact = chip.fact(name)
    how = " (measured)" if "measured" in fact.note else ""
    return show(fact.value / parts, "bytes/s") + how


def capacity(chip: Chip, name: str, what: str, parts: int = 1) -> str:
    """`what`, and how much it holds where a source states it."""
    if name not in chip.facts:
        return what
    return f"{what}, {show(chip.fact(name).value / parts, 'capacity')}"


def peak(chip: Chip, parts: int = 1) -> str:
    """The dense peak in 16 bits, of `chip` or of one of its equal parts.

    Raises:
        Unpublished: a ValueError; no source states one.
    """
    precision = "fp16" if "flops.bf16" not in chip.facts else "bf16"  # V100: fp16
    return f"{show(chip.flops[precision] / parts, 'FLOPs/s')} in {precision}"


def outside(chip: Chip, links: str, others: str, end: float) -> Iterator[str]:
    """The host and the neighbours over a chip whose frame begins at `end`.

    Args:
        links: what the chip calls a link to a neighbour.
        others: who is at the other end.
    """
    yield from named(6, 6, 166, ["host"])
    yield from named(186, 6, WIDTH - 6, [others])
    for x, words in zip((26, 206), _wires(chip, links), strict=True):
        yield shapes.line((x, ROW + 6), (x, end), colour="network", heads="both")
        for n, text in enumerate(words):
            yield shapes.written(x + 12, 50 + LINE * n, text, "network")


def wires(chip: Chip, links: str) -> str:
    """The words beside the arrows of `outside`, as a sentence."""
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
