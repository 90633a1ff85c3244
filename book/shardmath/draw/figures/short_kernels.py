"""The live figure "short_kernels": timed operations, and the law t = t0 + bound / e."""

from dataclasses import replace
from statistics import fmean, median

from ...base.units import show
from ...measured.ops import OpBin, all_bins
from ...measured.server_points import step_bins
from ..svg import Axis, Dot, Label, PlotLine, plot
from .controls import Choice, Drawing, Figure, Slider

MATMUL, FP8, ATTENTION, ALLREDUCE, SERVERS = (
    "matmuls in bf16",
    "matmuls in fp8",
    "attention of decode",
    "AllReduces over 8 GPUs",
    "steps of whole servers",
)
OPERATIONS = {  # option → the operation's name in the bins
    MATMUL: ("matmul", "bf16"),
    FP8: ("matmul", "fp8"),
    ATTENTION: ("decode attention", "bf16"),
    ALLREDUCE: ("AllReduce of engines", "8 chips"),
    SERVERS: ("steps of servers", "any"),
}
EVERY = "every GPU"
CHIPS = tuple(dict.fromkeys(one.chip for one in all_bins()))
COLOURS = dict(
    zip(CHIPS, ("hue1", "hue2", "hue3", "hue4", "hue5", "hue6"), strict=True)
)
BOUND = Axis("bound of the operation", 1e-8, 1e-1, unit="s")
STEP = replace(BOUND, label="bound of a step, for each of its kernels")
TIMES = Axis("measured / bound", 0.5, 500.0)


def shown(operation: str, chip: str) -> tuple[OpBin, ...]:
    """The bins of an operation, on one GPU or on all.

    Args:
        operation, chip: options of the controls.
    """
    op, form = OPERATIONS[operation]
    return tuple(
        one
        for one in (*all_bins(), *step_bins())
        if (one.op, one.format) == (op, form) and chip in (EVERY, one.chip)
    )


def law(bound: float, start: float, share: float) -> float:
    """Time over bound according to the law: (t0 + bound / e) / bound.

    Args:
        bound: the lower bound in seconds.
        start: t0, the seconds that an operation takes in addition to its work.
        share: e, the share of the peak or bandwidth that a long operation reaches.

    >>> f"{law(1e-6, 3e-6, 0.75):.2f} {law(1e-2, 3e-6, 0.75):.2f}"
    '4.33 1.33'
    """
    return start / bound + 1 / share


def draw(start: int, share: int, operation: str, chip: str) -> Drawing:
    """A dot for each bin of timed operations, the curve of the law, and its error."""
    bins = shown(operation, chip)
    t0, e = start / 1e7, share / 100
    errors = [abs(law(one.bound, t0, e) / one.median - 1) for one in bins]
    points = sum(one.points for one in bins)
    where = f"on {chip}" if chip != EVERY else f"on {len({b.chip for b in bins})} kinds"
    title = f"{operation[0].upper()}{operation[1:]} {where}"
    mean = fmean(errors) if bins else None
    middle = median(errors) if bins else None
    things = "measured servers" if operation == SERVERS else "timed operations"
    summary = (
        f"There are no {things} of this kind {where}: {operation}. Choose another GPU, "
        "or all of them."
    )
    if bins:
        summary = (
            f"{title}: {points:,} {things} in {len(bins)} bins. With t0 = "
            f"{show(t0, 's')} and e = {e:.0%}, the law is off by {mean:.0%} in the "
            f"mean and by {middle:.0%} in the median."
        )
    lowest, highest = BOUND.low, BOUND.high
    steps = [lowest * (highest / lowest) ** (n / 70) for n in range(71)]
    curve = [(x, law(x, t0, e)) for x in steps]
    curve = [(x, y) for x, y in curve if y <= TIMES.high]
    dots = [
        Dot(one.bound, one.median, COLOURS[one.chip], key=f"{one.chip} {one.bound}")
        for one in bins
        if one.median <= TIMES.high
    ]
    even = [(lowest, 1.0), (highest, 1.0)]
    marks = [
        PlotLine(even, dashed=True, width=1, key="bound"),
        PlotLine(curve, "math", key="law"),
        *dots,
        Label(3e-2, 1.0, "the bound", toward="s"),
        Label(*curve[len(curve) // 5], "t0 + bound / e", "math", "ne", key="law's"),
    ]
    rows = (
        ("", title),
        (things, f"{points:,}"),
        ("t0", show(t0, "s")),
        ("e", f"{e:.0%}"),
        ("mean error over the bins", f"{mean:.1%}" if bins else "none"),
        ("median error", f"{middle:.1%}" if bins else "none"),
    )
    data = {
        "points": points,
        "bins": len(bins),
        "mean": mean,
        "median": middle,
    }
    across = STEP if operation == SERVERS else BOUND
    svg = plot(title, summary, across, TIMES, marks, head=title)
    return Drawing(svg, summary, rows, data)


FIGURE = Figure(
    "short_kernels",
    "Timed operations over their bounds",
    (
        Slider(
            "start", "t0, before any work", "", 0, 300, 30, step=5,
            printed=lambda stop: f"{stop / 10:g} µs",
        ),
        Slider(
            "share", "e, of the full rate", "", 20, 100, 75, step=5,
            printed=lambda stop: f"{stop} %",
        ),
        Choice("operation", "Operation", tuple(OPERATIONS), MATMUL),
        Choice("chip", "GPU", (EVERY, *CHIPS), EVERY),
    ),
    draw,
    first="start",
    presets={
        "matmuls in bf16": {"operation": MATMUL, "start": 30, "share": 75},
        "no start": {"operation": MATMUL, "start": 0, "share": 75},
        "attention": {"operation": ATTENTION, "start": 100, "share": 85},
        "whole servers": {"operation": SERVERS, "start": 50, "share": 70},
    },
    row=("start", "share", "operation"),
)  # fmt: skip
