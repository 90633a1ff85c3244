"""The live figure "split": divides chips between FSDP and tensor parallelism."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from ...base.estimate import BOUNDS
from ...base.units import show
from ...hardware import chips
from ...hardware.mesh import Mesh
from ...hardware.networks import Cluster, Network, NVLinkDomain, Torus
from ...sharding.prices import Prices
from ...training import Step, combine, fsdp, step, tensor
from ...transformer import LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B
from .. import svg
from .controls import Choice, Drawing, Figure, Slider

SEQ = 4096  # tokens of a sequence


def _v5p() -> Network:
    return Torus(chips.TPU_V5P, (8, 8, 8))


def _v5e() -> Network:
    return Torus(chips.TPU_V5E, (16, 16))


def _h100() -> Network:
    return Cluster(NVLinkDomain(chips.H100), 64)


def _gb200() -> Network:
    return Cluster(NVLinkDomain(chips.GB200, 64), 8)


MACHINES: dict[str, Callable[[], Network]] = {
    "TPU v5p 8x8x8": _v5p,
    "TPU v5e 16x16": _v5e,
    "64 nodes of 8 H100": _h100,
    "8 racks of GB200, 64 of each": _gb200,
}
MODELS = {model.name: model for model in (LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B)}
TOKENS = Slider("tokens", "tokens per chip", "tokens", 64, 16_384, 512)
SPLIT = Slider("Y", "|Y|, chips of a tensor-parallel group", "", 1, 32, 8)


@dataclass(frozen=True)
class SplitTimes:
    """Seconds of one training step by cause, with two bounds for the network."""

    math: float
    weights: float
    activations: float
    network: float
    in_turn: float

    @property
    def lower(self) -> float:
        return max(self.math, self.network)

    @property
    def bound(self) -> str:
        return BOUNDS["math" if self.math >= self.network else "network"]


@cache
def _prepared(machine: str, model: str, y: int) -> tuple[Step, Prices]:
    """The step with one sequence in every group of |Y| chips, and its prices.

    If |Y| exceeds the number of KV heads, each chip has a copy of one. The sums over
    the gradients of copies, less than a thousandth of the bytes, are left out.
    """
    network, shape = MACHINES[machine](), MODELS[model]
    shape = replace(shape, kv_heads=max(shape.kv_heads, y))
    mesh = Mesh(network, {"X": network.chips // y, "Y": y})
    both = combine(fsdp("X"), tensor("Y"))
    one = step(both, shape, mesh, network.chips // y, SEQ, attention="causal")
    return one, Prices(mesh)


@cache
def times(machine: str, model: str, y: int, tokens: int) -> SplitTimes:
    """The times of a step with groups of `y` chips, and `tokens` tokens per chip.

    The traffic of weights does not depend on the tokens. Math and the traffic of
    activations grow with the tokens.
    """
    one, prices = _prepared(machine, model, y)
    scale = tokens * y / SEQ
    stays = [move.collective for move in one.moves if not move.scales]
    grows = [
        replace(move.collective, nbytes=move.collective.nbytes * scale)
        for move in one.moves
        if move.scales
    ]
    return SplitTimes(
        one.estimate.seconds["math"] * scale,
        prices.lower(stays),
        prices.lower(grows),
        prices.lower([*stays, *grows]),
        prices.in_turn([*stays, *grows]),
    )


def draw(machine: str, model: str, tokens: int, Y: int) -> Drawing:
    """Times against |Y|: traffic of weights, traffic of activations, and math."""
    found = {y: times(machine, model, y, tokens) for y in SPLIT.stops}
    here = found[Y]
    best = min(found, key=lambda y: (found[y].lower, found[y].in_turn))
    least = min(found, key=lambda y: found[y].in_turn)
    count = MACHINES[machine]().chips
    summary = (
        f"|X| = {count // Y}, |Y| = {Y}: at best {show(here.lower, 's')} a step, "
        f"{here.bound}. The quickest split has |Y| = {best}."
    )
    if tokens * Y < SEQ:
        summary += (
            f" But {Y} chips have {tokens * Y:,} tokens, less than one sequence of "
            f"{SEQ:,}."
        )
    data = {
        "seconds": {"math": here.math, "network": here.network},
        "weights": here.weights,
        "activations": here.activations,
        "lower": here.lower,
        "upper": here.math + here.in_turn,
        "bound": here.bound,
        "best": best,
        "least": least,
    }
    readout = (
        ("of a step", f"|X| = {count // Y}, |Y| = {Y}"),
        ("tokens", f"{tokens * count:,}"),
        ("sequences in a group of |Y| chips", f"{tokens * Y / SEQ:g}"),
        ("moving weights, over X", show(here.weights, "s")),
        ("moving activations, over Y", show(here.activations, "s")),
        ("network, at best", show(here.network, "s")),
        ("math", show(here.math, "s")),
        ("lower bound (all overlaps)", show(here.lower, "s")),
        ("upper bound (nothing overlaps)", show(here.math + here.in_turn, "s")),
        ("what binds", here.bound),
        ("quickest at best", f"|Y| = {best}"),
        ("least network in turn", f"|Y| = {least}"),
    )
    return Drawing(_picture(machine, summary, found, Y), summary, readout, data)


def _picture(machine: str, summary: str, found: dict[int, SplitTimes], Y: int) -> str:
    curves = {
        "math": [(y, t.math) for y, t in found.items()],
        "weights": [(y, t.weights) for y, t in found.items() if t.weights],
        "activations": [(y, t.activations) for y, t in found.items() if t.activations],
        "network": [(y, t.network) for y, t in found.items()],
    }
    colours = {"math": "math", "weights": "hue1", "activations": "hue2"}
    every = [seconds for points in curves.values() for _, seconds in points]
    x = svg.Axis("|Y|, chips of a tensor-parallel group", 0.9, 35, stops=SPLIT.stops)
    y = svg.Axis("time", min(every) / 2, max(every) * 2, unit="s")
    marks = [
        svg.PlotLine(points, colours.get(name, name), name == "network", key=name)
        for name, points in curves.items()
    ]
    foot, point = (Y, y.low), (Y, found[Y].lower)
    marks += [
        svg.PlotLine((foot, point), dashed=True, width=1, key="split"),
        svg.Dot(*point, key="point"),
        svg.Handle(*point, SPLIT.name, SPLIT.stops),
    ]
    named = {"math": (1, "n"), "weights": (1, "ne"), "activations": (-2, "se")}
    for name, (at, side) in (named | {"network": (-1, "nw")}).items():
        spot, ink = curves[name][at], colours.get(name, name)
        marks.append(svg.Label(*spot, name, ink, side, f"{name}'s"))
    return svg.plot(f"FSDP × TP on {machine}", summary, x, y, marks, machine)


FIGURE = Figure(
    "split",
    "FSDP and tensor parallelism on the same chips",
    (
        Choice("machine", "Slice or cluster", tuple(MACHINES), next(iter(MACHINES))),
        Choice("model", "Model", tuple(MODELS), LLAMA_3_70B.name),
        TOKENS,
        SPLIT,
    ),
    draw,
    first="Y",
    presets={
        "256 tokens a chip": {"tokens": 256, "Y": 8},
        "4,096 tokens a chip": {"tokens": 4096, "Y": 1},
        "nodes of 8 H100": {"machine": "64 nodes of 8 H100", "tokens": 2048, "Y": 8},
        "across nodes": {"machine": "64 nodes of 8 H100", "tokens": 2048, "Y": 16},
    },
)
