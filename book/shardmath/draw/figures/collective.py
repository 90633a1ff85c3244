"""The live figure "collective": time against bytes, on links of your choice."""

import math

from ... import collectives
from ...base.units import show
from ...collectives import NAMES, Priced
from ...hardware.chips import GB200, TPU_V5P
from ...hardware.mesh import Mesh
from ...hardware.networks import LATENCY, Network, NVLinkDomain, Ring
from .. import svg
from .controls import Choice, Drawing, Figure, Slider

RING, LINE, TORUS = "ring, TPU v5p", "line, TPU v5p", "2D torus, TPU v5p"
NVLINK, REDUCING = "NVLink, GB200", "NVLink that reduces, GB200"
BYTES = tuple(10.0 ** (n / 8) for n in range(24, 89))  # 1 kB to 100 GB
SIZE = Slider(
    "kilobytes",
    "Array",
    "kB",
    1,
    2**24,
    1024,
    printed=lambda kilobytes: show(1000 * kilobytes, "bytes"),
)
_OPS = {name: op for op, name in NAMES.items()}


def draw(op: str, wires: str, chips: int, kilobytes: int) -> Drawing:
    """The time of `op` on arrays of 1 kB to 100 GB, log-log, with one size marked.

    If the links can't join so many chips, the summary says so.
    """
    title = f"{op} over {chips} chips: {wires}"
    try:
        mesh = Mesh(network(wires, chips), {"X": chips})
    except ValueError as error:
        said = f"Not on these wires: {error}."
        return Drawing(svg.message(title, said), said, (), {"collective": None})

    def price(size: float) -> Priced:
        one = collectives.Collective(_OPS[op], "X", size, chips)
        return collectives.price(one, mesh)

    here = price(1000 * kilobytes)
    bound = "latency" if here.latency_seconds > here.bandwidth_seconds else "bandwidth"
    summary = f"{here}. We expect it to be {bound}-bound."
    picture = _picture(title, summary, here, list(map(price, BYTES)))
    data = {
        "op": _OPS[op],
        "seconds": here.expected,
        "bandwidth_seconds": here.bandwidth_seconds,
        "latency_seconds": here.latency_seconds,
        "latency_bound_below": here.latency_bound_below,
        "sent": here.collective.sent,
        "bus_bandwidth": here.collective.total_sent / here.expected,
        "bound": bound,
        "exact": here.exact,
    }
    return Drawing(picture, summary, _readout(data), {"collective": data})


def network(wires: str, chips: int) -> Network:
    """The network of this name. A side of two chips, or a line, is not closed.

    Raises:
        ValueError: there are more GPUs than in an NVLink domain.
    """
    if wires in (NVLINK, REDUCING):
        return NVLinkDomain(GB200, chips, reduces=wires == REDUCING)
    rate, hop = TPU_V5P.link_bandwidth, LATENCY["ICI"].value
    across = 1 << (chips.bit_length() // 2) if wires == TORUS else chips
    sides = [side for side in (chips // across, across) if side > 1]
    return Network(
        tuple(Ring(s, rate, hop, wrap=s > 2 and wires != LINE) for s in sides)
    )


def _readout(data: dict) -> tuple[tuple[str, ...], ...]:
    met = "yes" if data["exact"] else "no, it takes longer"
    return (
        ("", "value"),
        ("at least, at the rate of the wires", show(data["bandwidth_seconds"], "s")),
        ("expected latency of the hops", show(data["latency_seconds"], "s")),
        ("expected time", show(data["seconds"], "s")),
        ("what binds, as expected", data["bound"]),
        ("latency-bound below", show(data["latency_bound_below"], "bytes")),
        ("each chip sends", show(data["sent"], "bytes")),
        ("bus bandwidth, expected", show(data["bus_bandwidth"], "bytes/s")),
        ("a simulated schedule takes the expected time", met),
    )


def _picture(title: str, summary: str, here: Priced, sweep: list[Priced]) -> str:
    def curve(part: str) -> tuple[tuple[float, float], ...]:
        return tuple((p.collective.nbytes, getattr(p, part)) for p in sweep)

    total = curve("expected")
    floor = 10.0 ** math.floor(math.log10(total[0][1]) - 0.3)
    x = svg.Axis("bytes of the whole array", BYTES[0], BYTES[-1], unit="bytes")
    y = svg.Axis("time", floor, total[-1][1] * 3, unit="s")
    wires = [p for p in curve("bandwidth_seconds") if p[1] >= floor]
    latency, even = here.latency_seconds, here.latency_bound_below
    at = (here.collective.nbytes, here.expected)
    flat = ((x.low, latency), (x.high, latency))
    marks = [
        svg.PlotLine(flat, dashed=True, width=1.5, key="latency"),
        svg.PlotLine(wires, "network", dashed=True, width=1.5, key="wires"),
        svg.PlotLine(total, "network", key="time"),
        svg.PlotLine(
            ((even, y.low), (even, latency)), dashed=True, width=1, key="even"
        ),
        svg.Dot(*at, "network", key="point"),
        svg.Label(*at, show(here.expected, "s"), "network", "nw", "point's"),
        svg.Label(
            x.high, latency, f"latency {show(latency, 's')}", "ink", "se", "flat's"
        ),
        svg.Label(even, y.low, show(even, "bytes"), "ink", "ne", "even's"),
        svg.Handle(*at, SIZE.name, [1000 * stop for stop in SIZE.stops]),
    ]
    return svg.plot(title, summary, x, y, marks)


FIGURE = Figure(
    "collective",
    "The time of a collective",
    (
        Choice("op", "Collective", tuple(_OPS), "AllGather"),
        Choice("wires", "Wires", (RING, LINE, TORUS, NVLINK, REDUCING), RING),
        Slider("chips", "Chips", "", 4, 256, 8),
        SIZE,
    ),
    draw,
    first=SIZE.name,
    presets={
        "16 kB: latency binds": {"kilobytes": 16},
        "1 GB: the wires bind": {"kilobytes": 2**20},
        "a line of 64": {"wires": LINE, "chips": 64},
        "64 GPUs on NVLink": {"wires": NVLINK, "chips": 64},
    },
)
