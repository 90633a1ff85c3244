"""The live figure "ring": a collective on a circle of chips, step by step."""

from dataclasses import replace

from ...base.units import show
from ...collectives import NAMES
from ...collectives.simulator import Trace, simulate
from ...hardware.chips import TPU_V5P
from ...hardware.mesh import Mesh
from ...hardware.networks import LATENCY, Network, Ring
from ..objects.circle import panel, said, titled
from .collective import SIZE
from .controls import Choice, Drawing, Figure, Slider

ONE, BOTH = "one way", "both ways"
_OPS = {name: op for op, name in NAMES.items() if op != "permute"}
_CHIPS = Slider("chips", "Chips", "", 3, 8, 8, 1)


def draw(op: str, ways: str, chips: int, kilobytes: int, step: int) -> Drawing:
    """`op` after `step` steps on a ring of TPU v5p, played block by block."""
    trace = played(_OPS[op], 1000.0 * kilobytes, chips, ways == ONE)
    last = len(trace.steps)
    step = min(step, last)
    data = {
        "op": _OPS[op],
        "chips": chips,
        "one_way": ways == ONE,
        "step": step,
        "steps": last,
        "elapsed": trace.elapsed(step),
        "simulated": trace.seconds,
        "closed_form": trace.priced.seconds,
        "latency_seconds": trace.priced.latency_seconds,
        "exact": trace.priced.exact,
        "sent": sent(trace, step),
        "sent_in_all": sent(trace, last),
    }
    summary = f"{titled(trace)}. {said(trace, step)}"
    return Drawing(panel(trace, step, FIGURE.first), summary, _rows(data), data, last)


def played(op: str, nbytes: float, chips: int, one_way: bool) -> Trace:
    """The collective, played on a closed ring of v5p chips."""
    wires = Ring(chips, TPU_V5P.link_bandwidth, LATENCY["ICI"].value)
    mesh = Mesh(Network((wires,)), {"X": chips})
    return simulate(op, nbytes, mesh, "X", one_way=one_way)


def sent(trace: Trace, step: int) -> float:
    """Bytes that the busiest chip has sent, on all its links, after `step` steps."""
    return max(
        sum(
            nbytes
            for done in trace.steps[:step]
            for (_, source, _), nbytes in done.loads.items()
            if source == chip
        )
        for chip in range(trace.group.size)
    )


def _rows(data: dict) -> tuple[tuple[str, ...], ...]:
    met = "the same" if data["exact"] else "a bound"
    late = f"of it latency, {show(LATENCY['ICI'].value, 's')} a hop assumed"
    return (
        ("", "so far", "in all"),
        ("steps", str(data["step"]), str(data["steps"])),
        ("time", *(show(data[k], "s") for k in ("elapsed", "simulated"))),
        (f"closed form, {met}", "", show(data["closed_form"], "s")),
        (late, "", show(data["latency_seconds"], "s")),
        ("each chip sends", *(show(data[k], "bytes") for k in ("sent", "sent_in_all"))),
    )


FIGURE = Figure(
    "ring",
    "A collective on a ring",
    (
        Slider("step", "Step", "", 0, 2 * (_CHIPS.high - 1), 3, step=1, play=True),
        Choice("op", "Collective", tuple(_OPS), "AllGather"),
        Choice("ways", "Directions", (ONE, BOTH), ONE),
        _CHIPS,
        replace(SIZE, default=8192),
    ),
    draw,
    first="step",
    presets={
        "AllGather, one way": {"op": "AllGather", "ways": ONE, "chips": 8, "step": 0},
        "both ways, half the time": {
            "op": "AllGather",
            "ways": BOTH,
            "chips": 8,
            "step": 0,
        },
        "AllReduce: add, then share": {
            "op": "AllReduce",
            "ways": ONE,
            "chips": 4,
            "step": 0,
        },
        "AllToAll": {"op": "AllToAll", "ways": ONE, "chips": 8, "step": 0},
    },
)
