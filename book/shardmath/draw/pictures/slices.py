"""TPU slices on the data-centre network, with the rates within and between slices."""

from collections.abc import Iterator
from math import prod

from ...base.units import show
from ...hardware.networks import Slices
from ..picture import WIDEST, Picture, picture
from ..shapes import box, circle, framed, label, line, written

EDGE, GAP, HEAD = 8, 14, 50
SHOWN = 4  # slices that are drawn: the first three and the last
DOTS, BAR = 6, 28  # chips along a side that stand for all, and height of the network


def slices(network: Slices) -> Picture:
    """Some slices, with dots for some of their chips, and the network below them.

    Raises:
        ValueError: `network` is not a `networks.Slices`.

    >>> from shardmath.hardware.chips import TPU_V4
    >>> from shardmath.hardware.networks import Torus
    >>> slices(Slices(Torus(TPU_V4, (8, 8, 16)), 8, latency=10e-6)).desc[:50]
    '8 slices of 1,024 TPU v4, 8x8x16 chips each. Insid'
    """
    if not isinstance(network, Slices):
        raise ValueError(f"network = {network!r}: must be `networks.Slices`")
    switch, *sides = network.dims
    each, chip = prod(side.size for side in sides), network.chip
    shown = list(dict.fromkeys([*range(min(switch.size, SHOWN - 1)), switch.size - 1]))
    inside = show(sum(side.egress for side in sides), "bytes/s")
    out, all_out = (
        show(switch.bandwidth, "bytes/s"),
        show(network.egress("DCN"), "bytes/s"),
    )
    shape = "x".join(str(side.size) for side in sides)
    wide = (WIDEST - 2 * EDGE - GAP * (SHOWN - 1)) / SHOWN
    low = HEAD + wide
    bar = low + 40
    head = f"{switch.size} slices of {each:,} {chip.name}"
    parts = [written(EDGE, 18, head, bold=True)]
    for n, number in enumerate(shown):
        parts += _slice(EDGE + n * (wide + GAP), wide, low, bar, number)
    if switch.size > SHOWN:
        x = EDGE + (SHOWN - 1) * (wide + GAP) - GAP / 2
        parts.append(written(x, HEAD - 8, "…", anchor="middle"))
    spot = (EDGE, bar, WIDEST - EDGE, bar + BAR)
    parts += [box(*spot, "network", fill=0.2), label(*spot, "data-centre network, DCN")]
    for n, words in enumerate(
        (
            f"inside a slice: {inside} a chip, {shape} torus",
            f"out of it: {out} a chip, {all_out} a slice",
        )
    ):
        parts.append(written(EDGE, bar + BAR + 22 + 20 * n, words, "network"))
    desc = (
        f"{head}, {shape} chips each. Inside a slice each chip sends {inside} one-way "
        f"over the links of the torus; out of it {out} over the data-centre network, "
        f"{all_out} for all chips of a slice. Drawn are slices "
        f"{', '.join(map(str, shown))}; a dot stands for many chips."
    )
    svg = framed(head, desc, parts, WIDEST, bar + BAR + 52)
    return picture(head, desc, svg)


def _slice(
    left: float, wide: float, low: float, bar: float, number: int
) -> Iterator[str]:
    """A slice: its name, a grid of chips, and its wire into the network."""
    yield written(left + wide / 2, HEAD - 8, f"slice {number}", anchor="middle")
    yield box(left, HEAD, left + wide, low, "ink", fill=0.06, key=f"slice {number}")
    pitch = wide / DOTS
    places = [pitch * (n + 0.5) for n in range(DOTS)]
    for at in places:
        ends = places[0], places[-1]
        across = [(left + x, HEAD + at) for x in ends]
        down = [(left + at, HEAD + y) for y in ends]
        yield line(*across, colour="network", width=1.5, opacity=0.6)
        yield line(*down, colour="network", width=1.5, opacity=0.6)
    for x in places:
        for y in places:
            yield circle(left + x, HEAD + y, 3)
    middle = left + wide / 2
    yield line((middle, low), (middle, bar), colour="network", width=3)
