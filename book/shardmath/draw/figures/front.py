"""The live figure of the front page: one training step on 1 to 16,384 chips."""

from collections.abc import Iterator, Sequence

from ...base.units import pluralize, show
from ...hardware import chips
from ..labels import XY
from ..objects.scaling import COUNTS, MODEL, SEQ, SEQS, Scaled, scaled
from ..shapes import box, circle, framed, keyed, line, number, written
from ..svg import Axis
from ..theme import paint
from .controls import Choice, Drawing, Figure, Slider

NAMES = tuple(
    chips.CHIPS[key].name for key in ("h100", "b200", "gb200", "tpu_v5p", "tpu_7x")
)
COUNT = Slider("count", "Chips", "chips", COUNTS[0], COUNTS[-1], 4096, play=True)
TIME = Axis("seconds of a step", 1e-3, 1e3, unit="s")
CHIPS = Axis("chips", COUNTS[0], COUNTS[-1], stops=(1, 16, 256, 4096))
MOST = 0.8  # of the peak, the upper end of the plot
WIDE, HIGH = 416, 372
LEFT, RIGHT = 6, 410  # of the bars
PLOT = (44, 236, 404, 332)  # left, top, right, bottom
BAR = 14


def draw(count: int, chip: str) -> Drawing:
    """The step on `count` of these chips, and its efficiency for every count.

    The times of math and network are lower bounds. The time of the step is a prediction
    with a band.
    """
    every = [scaled(chip, n) for n in COUNTS]
    here = every[COUNTS.index(count)]
    summary = _said(here, every)
    tokens = f"{SEQS:,} sequences of {SEQ:,} tokens"
    desc = (
        f"One step of {MODEL.name} with {tokens}. {summary} {_curve_said(every)} "
        "Times are drawn on a logarithmic scale."
    )
    title = f"A step of {MODEL.name} on {_chips(here)}"
    svg = framed(title, desc, _drawn(title, here, every), WIDE, HIGH)
    return Drawing(svg, summary, (), _data(here), COUNTS[-1])


def _chips(one: Scaled) -> str:
    return f"{one.count:,} {one.step.mesh.network.chip.name}"


def _data(one: Scaled) -> dict[str, object]:
    likely, held = one.step.prediction, one.step.memory
    found = {
        "chips": one.count,
        "math": one.math,
        "network": one.network,
        "fits": one.fits,
        "held": held.total,
        "capacity": held.capacity,
    }
    if one.fits:
        found |= {
            "bound": likely.bound,
            "seconds": likely.seconds,
            "band": [likely.low, likely.high],
            "efficiency": one.efficiency[0],
        }
    return found


# Words -------------------------------------------------------------------------------


def _said(here: Scaled, every: Sequence[Scaled]) -> str:
    """The predicted time of the step, its share of the peak, and the gain from the last
    doubling of the chips."""
    if not here.fits:
        held = here.step.memory
        return (
            f"On {_chips(here)}, the step does not fit in memory: each would need "
            f"{show(held.total, 'capacity')} and has {show(held.capacity, 'capacity')}."
        )
    likely = here.step.prediction
    said = [
        f"On {_chips(here)}, the step is predicted to take {show(likely.seconds, 's')} "
        f"(8 of 10 runs: {show(likely.low, 's')} to {show(likely.high, 's')}). "
        f"That uses {here.efficiency[0]:.0%} of the chips' peak."
    ]
    before = [one for one in every if one.fits and 2 * one.count == here.count]
    for half in before:
        faster = round(half.step.prediction.seconds / likely.seconds, 2)
        gain = f"makes it {faster:.2f} times as fast" if faster > 1 else "gains nothing"
        if faster < 1:
            gain = "makes it slower"
        said.append(f"Doubling the chips from {half.count:,} {gain}.")
    return " ".join([*said, *(f"{one.capitalize()}." for one in likely.warnings)])


def _curve_said(every: Sequence[Scaled]) -> str:
    """The plot in words."""
    some = [one for one in every if one.fits]
    first, last = some[0], some[-1]
    return (
        f"The math at peak rate takes {show(every[0].math, 's')} on one chip and "
        f"{show(last.math, 's')} on {last.count:,}; the network at full rate takes "
        f"{show(every[1].network, 's')} on two and {show(last.network, 's')} on "
        f"{last.count:,}. The predicted share of the peak is "
        f"{first.efficiency[0]:.0%} on {pluralize(f'{first.count:,}', 'chips')}, the "
        f"fewest that fit, and {last.efficiency[0]:.0%} on {last.count:,}."
    )


# The picture -------------------------------------------------------------------------


def _drawn(title: str, here: Scaled, every: Sequence[Scaled]) -> Iterator[str]:
    yield written(LEFT, 16, title, bold=True)
    yield from _grid()
    yield from _bar(34, "math at peak rate, a bound", here.math, "math")
    yield from _bar(80, "network at full rate, a bound", here.network, "network")
    yield from _whole(126, here)
    yield from _efficiency(here, every)


def _x(seconds: float) -> float:
    return LEFT + (RIGHT - LEFT) * TIME.share(seconds)


def _grid() -> Iterator[str]:
    for tick in TIME.ticks()[1:-1]:
        x = _x(tick)
        yield line((x, 28), (x, 172), width=1, opacity=0.18)
        yield written(x, 188, TIME.text(tick), anchor="middle")


def _bar(top: float, name: str, seconds: float, colour: str) -> Iterator[str]:
    """A name, and a bar for its seconds, on a scale that starts at 1 ms."""
    said = show(seconds, "s") if seconds else "nothing to send"
    yield written(LEFT, top + 12, f"{name}: {said}", colour, key=f"{colour}'s")
    yield box(LEFT, top + 18, _x(seconds or TIME.low), top + 18 + BAR, colour,
              fill=0.85, edge=0, round=0, key=colour)  # fmt: skip


def _whole(top: float, here: Scaled) -> Iterator[str]:
    """The predicted step with its band, or a note that it does not fit."""
    if not here.fits:
        held = here.step.memory
        need, room = (show(n, "capacity") for n in (held.total, held.capacity))
        yield written(LEFT, top + 12, f"does not fit: {need} of {room} per chip",
                      "hue8", bold=True)  # fmt: skip
        yield box(LEFT, top + 18, RIGHT, top + 18 + BAR, "hue8", fill=0.12, edge=0.7,
                  dashed=True, round=0)  # fmt: skip
        return
    likely = here.step.prediction
    ends = f"{show(likely.low, 's')} to {show(likely.high, 's')}"
    name = f"the step, predicted: {show(likely.seconds, 's')}"
    yield written(LEFT, top + 12, name, bold=True, key="step's")
    yield written(RIGHT, top + 12, f"({ends})", anchor="end", key="band's")
    yield box(LEFT, top + 18, _x(likely.seconds), top + 18 + BAR, fill=0.55, edge=0,
              round=0, key="step")  # fmt: skip
    middle = top + 18 + BAR / 2
    yield line((_x(likely.low), middle), (_x(likely.high), middle), width=4, key="band")


def _place(count: int, share: float) -> XY:
    left, top, right, bottom = PLOT
    x = left + (right - left) * CHIPS.share(count)
    return x, bottom - (bottom - top) * min(share, MOST) / MOST


def _efficiency(here: Scaled, every: Sequence[Scaled]) -> Iterator[str]:
    """Predicted MFU against the number of chips, with its band."""
    left, top, right, bottom = PLOT
    yield written(LEFT, top - 14, "predicted share of the chips' peak (MFU)", bold=True)
    for percent in (0, 20, 40, 60, 80):
        _, y = _place(1, percent / 100)
        yield line((left, y), (right, y), width=1, opacity=0.18)
        yield written(left - 6, y + 5, f"{percent}%", anchor="end")
    for tick in CHIPS.ticks():
        yield written(_place(tick, 0)[0], bottom + 18, f"{tick:,}", anchor="middle")
    yield written(RIGHT, bottom + 36, "chips", anchor="end")
    some = [one for one in every if one.fits]
    edge = _place(some[0].count, 0)[0]
    if len(some) < len(every):
        yield box(left, top, edge - 4, bottom, "hue8", fill=0.1, edge=0, round=0)
        yield written(left, bottom + 36, "does not fit in the shaded part", "hue8")
    upper = [_place(one.count, one.efficiency[2]) for one in some]
    lower = [_place(one.count, one.efficiency[1]) for one in reversed(some)]
    path = "L".join(f"{number(x)} {number(y)}" for x, y in (*upper, *lower))
    yield f'<path d="M{path}Z" fill="{paint("math")}" fill-opacity="0.16"/>'
    curve = [_place(one.count, one.efficiency[0]) for one in some]
    yield line(*curve, colour="math", width=2.5)
    yield from _point(here)


def _point(here: Scaled) -> Iterator[str]:
    """The current point of the curve, and a handle to drag it."""
    share = here.efficiency[0] if here.fits else 0.0
    x, y = _place(here.count, share)
    colour = "math" if here.fits else "hue8"
    yield circle(x, y, 6, colour, key="point")
    if here.fits:
        last = here.count == COUNTS[-1]
        at = (RIGHT, y - 20) if last else (x + 6, y - 10)
        yield written(*at, f"{share:.0%}", "math", "end" if last else "start",
                      bold=True, key="point's")  # fmt: skip
    stops = " ".join(number(_place(n, 0)[0]) for n in COUNTS)
    yield (
        f'<circle cx="{number(x)}" cy="{number(y)}" r="18"{keyed("handle")} '
        f'data-drag="{COUNT.name}" data-drag-at="{stops}" fill="transparent"/>'
    )


FIGURE = Figure(
    "front",
    "One step on more and more chips",
    (
        COUNT,
        Choice("chip", "Chip", NAMES, NAMES[0], lambda name: chips.find(name).name),
    ),
    draw,
    first="count",
    carries=("chip",),
)
