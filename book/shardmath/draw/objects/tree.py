"""GPU clusters as pictures: the levels of a tree, and NVLink domains on one scale."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import ceil, prod

from ...base.units import short_repr, show
from ...hardware.networks.wiring import Network, Switch
from ..labels import text_width
from ..picture import WIDEST, Picture, picture
from ..shapes import box, framed, label, line, written

EDGE, HEAD = 12, 30
FEW = 4  # nodes that are all drawn; of more, the first and the last of each unit
GPUS = 8  # of a node that are all drawn
NODE, GAP, APART = 60, 18, 24  # width of a node, and between nodes and units
WORDS = 330  # where the rates are written
BAR, WIRES = 24, 46  # height of a switch, and of the wires under it
SQUARE, ROW = 10, 36  # side of a GPU in a domain to scale, and GPUs in a row
LONGEST = 180  # bar of such a domain

Path = tuple[int, ...]  # of a unit: its place at every level, outermost first


def tree(network: Network) -> Picture:
    """A cluster level by level, with the one-way rate of each unit into its level.

    A bar is a level of switches. If there are many units, only the first and the last
    are drawn.

    Raises:
        ValueError: not all levels of `network` are switches.
    """
    if not all(isinstance(dim, Switch) for dim in network.dims):
        raise ValueError(f"{network}: must be a tree of switches")
    *outer, inner = network.dims
    outer = [dim for dim in outer if dim.size > 1]
    spans = _spans([dim.size for dim in outer])
    title, said = network.name, []
    parts, y = [written(EDGE, 18, title, bold=True)], float(HEAD)
    for depth, dim in enumerate(outer):
        low = y + BAR + WIRES
        for path, (left, right) in spans.items():
            if len(path) == depth:
                spot = (left, y, right, y + BAR)
                key = f"{dim.level} {' '.join(map(str, path))}".strip()
                parts.append(box(*spot, "network", fill=0.12, key=key))
                parts.append(label(*spot, dim.level))
            elif len(path) == depth + 1:
                ends = [(left + right) / 2]
                if depth == len(outer) - 1:  # every GPU has its own network card
                    ends = [(a + b) / 2 for a, b in _squares(left, inner.size)]
                width = 1.2 if len(ends) > 1 else 3
                for x in ends:
                    wire = (x, y + BAR), (x, low)
                    parts.append(line(*wire, colour="network", width=width))
        parts += _dots(spans, depth + 1, y + BAR + WIRES / 2 + 5)
        nodes = prod(d.size for d in outer[depth + 1 :])
        rate = show(network.egress(dim.level), "bytes/s")
        unit = "a node" if nodes == 1 else f"{nodes} nodes"
        parts.append(written(WORDS, y + BAR + 12, rate, "network"))
        parts.append(written(WORDS, y + BAR + 30, unit))
        said.append(f"{rate} from {unit} to the {dim.level}")
        if (thin := outer[-1].bandwidth / dim.bandwidth) > 1:
            parts.append(written(WORDS, y + BAR + 48, f"{thin:.3g} : 1"))
            said[-1] += f" ({thin:.3g} to 1 oversubscribed)"
        y = low
    for path, (left, _) in spans.items():
        if len(path) == len(outer):
            parts += _node(path, left, y, inner.size)
    bar = y + SQUARE + 8
    rate = show(inner.bandwidth, "bytes/s")
    parts.append(written(WORDS, bar + 6, rate, "network"))
    parts.append(written(WORDS, bar + 24, "a GPU"))
    said.append(f"{rate} from a GPU to its {inner.level} switch")
    parts.append(
        written(EDGE, bar + 50, f"a square is a GPU, a box under it {inner.level}")
    )
    desc = f"{network.chips} GPUs as a tree of switches, one-way: {'; '.join(said)}."
    return picture(title, desc, framed(title, desc, parts, WIDEST, bar + 60))


def domains(*networks: Network) -> Picture:
    """NVLink domains on one scale: their GPUs, and a GPU's rates inside and outside.

    Raises:
        ValueError: there are no arguments, or one is not an NVLinkDomain.

    >>> from shardmath.hardware.networks import network
    >>> print(domains(network("h100:8"), network("gb200:72")).title)
    8 H100 on NVLink and 72 GB200 on NVLink
    """
    for network in networks:
        if not isinstance(network, Network):
            raise ValueError(f"domains: {short_repr(network)}: must be an NVLinkDomain")
    if not networks or any(len(network.dims) != 1 for network in networks):
        raise ValueError(f"domains{networks!r}: must be given NVLink domains")
    most = max(network.dims[0].bandwidth for network in networks)
    parts, said, y = [], [], 0.0
    for network in networks:
        (switch,) = network.dims
        parts.append(written(EDGE, y + 18, network.name, bold=True))
        y += HEAD - 4
        for gpu in range(switch.size):
            down, across = divmod(gpu, ROW)
            left, top = EDGE + across * (SQUARE + 0.9), y + down * (SQUARE + 0.9)
            parts.append(_gpu(left, top, SQUARE, f"{network.name} {gpu}"))
        y += ceil(switch.size / ROW) * (SQUARE + 1) + 8
        card = network.chip.scale_out_bandwidth
        for what, rate in ((switch.level, switch.bandwidth), ("network card", card)):
            right = EDGE + LONGEST * rate / most
            key = f"{network.name} {what}"
            spot = (EDGE, y, right, y + 18)
            parts.append(box(*spot, "network", fill=0.5, edge=0, round=0, key=key))
            words = f"{show(rate, 'bytes/s')} a GPU, {what}"
            parts.append(written(right + 8, y + 14, words))
            y += 24
        y += 10
        said.append(
            f"{network.name}: {show(switch.bandwidth, 'bytes/s')} a GPU inside, "
            f"{show(card, 'bytes/s')} out of it, one-way, "
            f"{show(switch.size * card, 'bytes/s')} for all its GPUs"
        )
    title = " and ".join(network.name for network in networks)
    desc = f"NVLink domains drawn to one scale. {'; '.join(said)}."
    return picture(title, desc, framed(title, desc, parts, WIDEST, y))


def _shown(sizes: Sequence[int]) -> list[list[int]]:
    """The units drawn at every level."""
    if prod(sizes) <= FEW:
        return [list(range(size)) for size in sizes]
    return [
        sorted({0, size - 1}) if level < 2 else [0] for level, size in enumerate(sizes)
    ]


def _spans(sizes: Sequence[int]) -> dict[Path, tuple[float, float]]:
    """Path → left and right edge of every drawn unit, from the whole to the nodes."""
    shown = _shown(sizes)
    lefts, x, last = {}, float(EDGE), None
    for path in product(*shown):
        if last is not None:
            x += NODE + (GAP if path[:-1] == last[:-1] else APART)
        lefts[path], last = x, path
    found = {}
    for depth in range(len(sizes) + 1):
        for path in product(*shown[:depth]):
            inside = [left for full, left in lefts.items() if full[:depth] == path]
            found[path] = (min(inside), max(inside) + NODE)
    return found


def _dots(spans, depth: int, y: float) -> Iterator[str]:
    """Dots between two units that are adjacent only in the drawing."""
    units = [path for path in spans if len(path) == depth]
    for one, other in pairwise(units):
        if one[:-1] == other[:-1] and other[-1] - one[-1] > 1:
            x = (spans[one][1] + spans[other][0]) / 2
            yield written(x, y, "…", anchor="middle")


def _squares(left: float, gpus: int) -> list[tuple[float, float]]:
    """Left and right edge of the GPUs of a node that are drawn."""
    many = min(gpus, GPUS)
    step = NODE / many
    side = min(SQUARE, step - 1.5)
    middles = (left + (n + 0.5) * step for n in range(many))
    return [(x - side / 2, x + side / 2) for x in middles]


def _node(path: Path, left: float, top: float, gpus: int) -> Iterator[str]:
    """The GPUs of a node over their switch."""
    bar = top + SQUARE + 8
    key = " ".join(map(str, path))
    for n, (a, b) in enumerate(_squares(left, gpus)):
        yield line(((a + b) / 2, top), ((a + b) / 2, bar), colour="network", width=2.5)
        yield _gpu(a, top, b - a, f"gpu {key} {n}")
    spot = (left, bar, left + NODE, bar + BAR)
    yield box(*spot, "network", fill=0.3, key=f"node {key}")
    words = f"{gpus} GPUs"
    if text_width(words) < NODE:
        yield label(*spot, words)


def _gpu(left: float, top: float, side: float, key: str) -> str:
    spot = (left, top, left + side, top + side)
    return box(*spot, "ink", fill=1, edge=0, round=1, key=key)
