"""The live figure of the front page: how long a matmul takes, in one sentence."""

import math

from ...base.estimate import Estimate, Roof
from ...base.units import pluralize, show
from ...hardware import chips, roofline
from .. import svg
from .controls import Choice, Drawing, Figure, Slider

D = F = 8192  # the weight matrix of chapter 01
CHIPS = ("v5e", "v5p", "Ironwood", "H100", "B200", "MI300X")
TOKENS = Slider("B", "Tokens: drag the point", "", 1, 4096, 64, parts=4)
X = svg.Axis("arithmetic intensity, FLOPs per byte", 0.5, 10_000)
Y = svg.Axis("attainable TFLOPs/s", 3e11, 1e16, unit="FLOPs/s")


def draw(chip: str, B: int) -> Drawing:
    """X[B, D] · W[D, F] in bf16 on `chip`: its bounds, and the point on the roofline.

    The sentence says what a reader gains by moving on: the tokens from which the math
    binds, and what so many cost.
    """
    c = chips.find(chip)
    estimate = roofline.matmul(B, D, F, c)
    summary = f"{_tokens(B)} on {_a(c.name)} {c.name}: {_advice(c, estimate, B)}"
    data = {
        "chip": c.name,
        "lower": estimate.lower,
        "upper": estimate.upper,
        "bound": estimate.bound,
        "intensity": estimate.intensity,
    }
    return Drawing(_picture(c, estimate, B, summary), summary, (), data)


def _advice(chip: chips.Chip, estimate: Estimate, B: int) -> str:
    low, high = show(estimate.lower, "s"), show(estimate.upper, "s")
    times = f"{low} to {high}, {estimate.bound}."
    critical = roofline.critical_batch(chip, D, F)
    if critical <= B:
        few = math.ceil(critical)
        return f"{times} Below {few} tokens the memory would set the time."
    enough = next(b for b in TOKENS.stops if b >= critical)
    longer = roofline.matmul(enough, D, F, chip).lower / estimate.lower
    return (
        f"{times} Move to {enough}: {enough / B:.3g} times the tokens take "
        f"{longer:.3g} times as long, at best."
    )


def _tokens(B: int) -> str:
    return pluralize(f"{B:,}", "tokens")


def _a(name: str) -> str:
    return "an" if name[0] in "HM" else "a"


def _picture(chip: chips.Chip, estimate: Estimate, B: int, summary: str) -> str:
    roof: Roof = roofline.roof(chip)
    bend, end = (roof.ridge, roof.peak), (X.high, roof.peak)
    start = (X.low, roof.at(X.low))
    point = (estimate.intensity, roof.at(estimate.intensity))
    aside = (point[0] / 1.3, point[1] * 1.3)  # where no finger covers the label
    stops = [roofline.matmul(b, D, F, chip).intensity for b in TOKENS.stops]
    middle = math.sqrt(X.low * roof.ridge)  # of the slope
    peak, rate = show(roof.peak, "FLOPs/s"), show(roof.bandwidth, "bytes/s")
    marks = [
        svg.PlotLine(((roof.ridge, Y.low), bend), dashed=True, width=1, key="ridge"),
        svg.PlotLine((start, bend), "HBM", key="slope"),
        svg.PlotLine((bend, end), "math", key="peak"),
        svg.Dot(*point, key="point"),
        svg.Label(*aside, _tokens(B), toward="nw", key="point's"),
        svg.Label(roof.ridge, Y.low, "memory-bound", "HBM", "nw", "left's"),
        svg.Label(roof.ridge, Y.low, "compute-bound", "math", "ne", "right's"),
        svg.Label(X.high, roof.peak / 1.3, peak, "math", "sw", "peak's"),
        svg.Label(middle, roof.at(middle), rate, "HBM", "se", "slope's"),
        svg.Handle(*point, TOKENS.name, stops),
    ]
    return svg.plot(f"Roofline of a matmul on {chip.name}", summary, X, Y, marks)


_NAMES = tuple(chips.find(name).name for name in CHIPS)

FIGURE = Figure(
    "front",
    "How long a matmul takes",
    (
        TOKENS,
        Choice("chip", "Chip", _NAMES, _NAMES[0]),
    ),
    draw,
    first="B",
    carries=("chip",),
)
