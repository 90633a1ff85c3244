"""The live figure "sharded_matmul": the collectives and the speed of a matmul."""

from collections.abc import Callable

from ...base.units import show
from ...hardware import chips
from ...hardware.mesh import Mesh
from ...hardware.networks import Cluster, NVLinkDomain, Torus
from ...sharding import Contraction, contract
from .. import svg
from .controls import Choice, Drawing, Figure, Slider

LINES = (
    "A[B_X, D] · W[D, F] -> C[B_X, F]",
    "A[B, D] · W[D, F_X] -> C[B, F_X]",
    "A[B_X, D] · W[D_X, F] -> C[B_X, F]",
    "A[B, D_X] · W[D, F_X] -> C[B, F_X]",
    "A[B_X, D] · W[D, F_X] -> C[B, F_X]",
    "A[B, D_X] · W[D_X, F] -> C[B, F]",
    "A[B, D_X] · W[D_X, F] -> C[B, F_X]",
    "A[B, D_X] · W[D_X, F] -> C[B, F]{U_X}",
    "A[B_X, D] · W[D, F_X] -> C[B_X, F]",
    "A[B_X, D] · W[D, F] -> C[B, F_X]",
    "A[B_X, D_Y] · W[D_X, F_Y] -> C[B_X, F_Y]",
    "A[B_X, D_Y] · W[D_Y, F_X] -> C[B_X, F]",
)


def _ring() -> Mesh:
    return Mesh(Torus(chips.TPU_V5P, (4, 4, 8)), {"Y": 16, "X": 8})


def _plane() -> Mesh:
    return Mesh(Torus(chips.TPU_V5E, (16, 16)), {"Y": 16, "X": 16})


def _nodes() -> Mesh:
    node = NVLinkDomain(chips.H100)
    return Mesh(Cluster(node, 16), {"Y": 16, "X": node.chips})


def _across() -> Mesh:
    node = NVLinkDomain(chips.H100)
    return Mesh(Cluster(node, 16), {"X": 16, "Y": node.chips})


MACHINES: dict[str, Callable[[], Mesh]] = {
    "TPU v5p 4x4x8, X on a ring of 8": _ring,
    "TPU v5e 16x16, X on a ring of 16": _plane,
    "16 nodes of 8 H100, X inside a node": _nodes,
    "16 nodes of 8 H100, X across the nodes": _across,
}
LOW, HIGH = 8 * 16, 2**20  # tokens: every sharding above divides the lowest
TOKENS = Slider("B", "B", "tokens", LOW, HIGH, 1024)


def draw(line: str, machine: str, plan: str, B: int, D: int, F: int) -> Drawing:
    """The three times of `line` on `machine` against the tokens, marked at B."""
    mesh = MACHINES[machine]()
    # Along axes that are not in the line, other groups have other tokens.
    op = contract(line, mesh, busy=True, B=B, D=D, F=F)
    chosen = op.plan if plan == PLANS[0] else op.best
    here = chosen.estimate(mesh, op.precision)
    moved = [step.collective for step in chosen.moved]
    sent = sum(c.total_sent for c in moved)
    summary = (
        f"Case {op.case}. Moved: {chosen.moves}"
        + (f", {show(sent, 'bytes')} sent by each chip" if moved else "")
        + f". {show(here.lower, 's')} to {show(here.upper, 's')}, {here.bound}."
    )
    data = {
        "case": op.case,
        "collectives": [[c.op, list(c.axes), c.nbytes] for c in moved],
        "sent": sent,
        "seconds": here.seconds,
        "lower": here.lower,
        "upper": here.upper,
        "bound": here.bound,
    }
    tokens = TOKENS.stops
    estimates = [chosen.resized("B", b).estimate(mesh, op.precision) for b in tokens]
    curves = {
        name: [(b, e.seconds[name]) for b, e in zip(tokens, estimates, strict=True)]
        for name in here.seconds
    }
    picture = _picture(line, summary, curves, (B, here.lower))
    return Drawing(picture, summary, _readout(op, chosen, here), data)


def _readout(op: Contraction, chosen, here) -> tuple[tuple[str, ...], ...]:
    line = f"{op.a.notation} · {op.b.notation} -> {op.c.notation}"
    most = len(op.plan.moved) + 1
    rows = [("", line), ("case", str(op.case))]
    for step in chosen.moved:
        rows.append((str(step).split(":")[0], str(step).split(": ", 1)[1]))
    rows += [
        ("multiplied on each chip", chosen.product),
        ("FLOPs of each chip", show(chosen.flops, "FLOPs")),
        *((f"time for {n}", show(s, "s")) for n, s in here.seconds.items()),
        ("lower bound (all overlaps)", show(here.lower, "s")),
        ("expected, latency included", show(op.expected(chosen), "s")),
        ("expected if nothing overlaps", show(here.upper, "s")),
        ("what binds", here.bound),
        (f"quickest by what we expect, {most} collectives at most", op.best.moves),
    ]
    return tuple(rows)


def _picture(line: str, summary: str, curves: dict, point: tuple) -> str:
    times = [seconds for points in curves.values() for _, seconds in points]
    x = svg.Axis("tokens in the batch, B", LOW, HIGH, stops=(1000, 10_000, 100_000))
    y = svg.Axis("time", min(times) / 2, max(times) * 2, unit="s")
    marks = [svg.PlotLine(points, name, key=name) for name, points in curves.items()]
    foot = (point[0], y.low)
    marks += [
        svg.PlotLine((foot, point), dashed=True, width=1, key="tokens"),
        svg.Dot(*point, key="point"),
        svg.Handle(*point, TOKENS.name, TOKENS.stops),
    ]
    # Names are at different places, because lines may be close to each other.
    for n, (name, points) in enumerate(curves.items()):
        at = points[(2 * n + 3) % len(points)]
        side = "nw" if name == "network" else "se"
        marks.append(svg.Label(*at, name, name, side, f"{name}'s"))
    said = TOKENS.text(point[0])
    marks.append(svg.Label(*foot, said, toward="ne", key="tokens'"))
    head = line.replace("->", "→")
    return svg.plot(line, summary, x, y, marks, head)


PLANS = ("as the case names it", "the quickest")

FIGURE = Figure(
    "sharded_matmul",
    "A sharded matmul, what it moves, and what binds it",
    (
        Choice("line", "Matmul", LINES, LINES[2]),
        Choice("machine", "Slice or cluster", tuple(MACHINES), next(iter(MACHINES))),
        Choice("plan", "Plan", PLANS, PLANS[0]),
        TOKENS,
        Slider("D", "D, contracted", "", 128, 65_536, 8192),
        Slider("F", "F, output", "", 128, 65_536, 32_768),
    ),
    draw,
    first="B",
    presets={
        "gather the weights, 1 M tokens": {"line": LINES[2], "B": HIGH},
        "gather the weights, 1,024 tokens": {"line": LINES[2], "B": 1024},
        "gather the activations": {"line": LINES[3], "B": 1024},
        "across nodes of H100": {"machine": "16 nodes of 8 H100, X across the nodes"},
    },
)
