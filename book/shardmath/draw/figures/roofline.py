"""The live figure "roofline": one matmul on one chip, or on two."""

import math
from dataclasses import dataclass

from ...base.estimate import Estimate, Roof
from ...base.units import PRECISION_BYTES, show
from ...hardware import chips, roofline
from .. import svg
from .controls import Choice, Drawing, Figure, Slider

NONE = "none"
TOKENS = Slider("B", "B", "tokens", 1, 65_536, 128)


@dataclass(frozen=True)
class Case:
    """The matmul on one of the chips."""

    chip: str
    roof: Roof
    estimate: Estimate

    def __str__(self) -> str:
        low, high = show(self.estimate.lower, "s"), show(self.estimate.upper, "s")
        return f"{self.chip}: {low} to {high}, {self.estimate.bound}."


def draw(chip: str, versus: str, precision: str, B: int, D: int, F: int) -> Drawing:
    """X[B, D] · W[D, F] on `chip`, and on `versus`, over a log-log roofline.

    A chip without a published peak for `precision` is named in the summary instead.
    """
    title = f"Roofline of a matmul in {precision}"
    cases, lacking = [], []
    for name in dict.fromkeys(name for name in (chip, versus) if name != NONE):
        c = chips.find(name)
        if precision in c.flops:
            estimate = roofline.matmul(B, D, F, c, precision)
            cases.append(Case(c.name, roofline.roof(c, precision), estimate))
        else:
            published = ", ".join(c.flops)
            lacking.append(
                f"{c.name} has no published {precision} peak; published: {published}."
            )
    summary = " ".join([*map(str, cases), *lacking])
    if not cases:
        return Drawing(svg.message(title, summary), summary, (), {"chips": []})
    first = chips.find(cases[0].chip)
    stops = [roofline.matmul(b, D, F, first, precision) for b in TOKENS.stops]
    picture = _picture(title, summary, cases, [e.intensity for e in stops])
    return Drawing(
        picture, summary, _readout(cases), {"chips": list(map(_data, cases))}
    )


def _data(case: Case) -> dict[str, object]:
    estimate = case.estimate
    return {
        "chip": case.chip,
        "intensity": estimate.intensity,
        "critical_intensity": case.roof.ridge,
        "rate": case.roof.at(estimate.intensity),
        "flops": estimate.flops,
        "nbytes": estimate.nbytes,
        "math_seconds": estimate.seconds["math"],
        "hbm_seconds": estimate.seconds["HBM"],
        "lower": estimate.lower,
        "upper": estimate.upper,
        "bound": estimate.bound,
    }


def _readout(cases: list[Case]) -> tuple[tuple[str, ...], ...]:
    rows = (
        ("", "chip", None),
        ("intensity of the matmul", "intensity", "FLOPs/byte"),
        ("critical intensity of the chip", "critical_intensity", "FLOPs/byte"),
        ("time for math", "math_seconds", "s"),
        ("time for HBM", "hbm_seconds", "s"),
        ("lower bound (all overlaps)", "lower", "s"),
        ("upper bound (nothing overlaps)", "upper", "s"),
        ("what binds", "bound", None),
    )
    columns = [_data(case) for case in cases]
    return tuple(
        (label, *(show(c[key], unit) if unit else c[key] for c in columns))
        for label, key, unit in rows
    )


def _picture(title: str, summary: str, cases: list[Case], stops: list[float]) -> str:
    roofs = [case.roof for case in cases]
    x = svg.Axis("arithmetic intensity, FLOPs per byte", 0.3, 200_000)
    y = svg.Axis(
        "attainable TFLOPs/s",
        min(_decade(roof.at(x.low)) for roof in roofs),
        max(_decade(roof.peak * 3) * 10 for roof in roofs),
        unit="FLOPs/s",
    )
    intensity = cases[0].estimate.intensity  # of the matmul: the same on every chip
    highest = max(roof.peak for roof in roofs)
    widest = max(roof.bandwidth for roof in roofs)
    foot = (intensity, y.low)
    head = (intensity, max(roof.at(intensity) for roof in roofs))
    lines = [svg.PlotLine((foot, head), dashed=True, width=1, key="intensity")]
    labels: list = []
    for second, case in enumerate(cases):
        roof = case.roof
        bend = (roof.ridge, roof.peak)
        slope = ((x.low, roof.at(x.low)), bend)
        third = roof.ridge ** (1 / 3)  # on the slope, out of the way of the bend
        flat = (bend, (x.high, roof.peak))
        rate = roof.at(intensity)
        peak = f"{case.chip}: {show(roof.peak, 'FLOPs/s')}"
        memory = show(roof.bandwidth, "bytes/s")
        lines += [
            svg.PlotLine(slope, "HBM", dashed=bool(second), key=f"slope {second}"),
            svg.PlotLine(flat, "math", dashed=bool(second), key=f"peak {second}"),
            svg.Dot(intensity, rate, hollow=bool(second), key=f"point {second}"),
        ]
        above = "nw" if roof.peak == highest else "sw"
        left = "nw" if len(roofs) > 1 and roof.bandwidth == widest else "se"
        labels += [
            svg.Label(x.high, roof.peak, peak, "math", above, f"peak's {second}"),
            svg.Label(
                third,
                roof.at(third),
                memory,
                "HBM",
                left,
                f"slope's {second}",
            ),
        ]
    said = show(intensity, "FLOPs/byte")
    labels += [
        svg.Label(*foot, said, toward="ne", key="intensity's"),
        svg.Handle(intensity, cases[0].roof.at(intensity), TOKENS.name, stops),
    ]
    return svg.plot(title, summary, x, y, lines + labels)


def _decade(value: float) -> float:
    """The power of ten at or below `value`."""
    return float(f"1e{math.floor(math.log10(value))}")


def _name(text: str) -> str:
    return chips.find(text).name


_NAMES = tuple(c.name for c in chips.ALL if c.flops and "hbm_bandwidth" in c.facts)
_PRECISIONS = tuple(p for p in PRECISION_BYTES if any(p in c.flops for c in chips.ALL))

FIGURE = Figure(
    "roofline",
    "A matmul on the roofline",
    (
        Choice("chip", "Chip", _NAMES, "TPU v5e", _name, machine=True),
        Choice("versus", "Compare with", (NONE, *_NAMES), NONE, _name),
        Choice("precision", "Precision", _PRECISIONS, "bf16"),
        TOKENS,
        Slider("D", "D, contracted", "", 128, 65_536, 4096),
        Slider("F", "F, output", "", 128, 65_536, 16_384),
    ),
    draw,
    first="B",
    presets={
        "decode, 32 tokens": {"B": 32},
        "training, 8,192 tokens": {"B": 8192},
        "beside a TPU v5p": {"versus": "TPU v5p"},
        "an H100 in fp8": {"chip": "H100", "precision": "fp8"},
    },
)
