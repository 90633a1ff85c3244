"""The live figure "predictions": all published runs, with your own efficiencies."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import log10
from statistics import fmean, median

from ...base.units import show
from ...measured.fit_rows import Row, rows
from ...training.efficiencies import FITTED, Efficiencies, efficiencies, without
from ..picture import WIDEST
from ..shapes import box, framed, keyed, number, written
from ..svg import message
from ..theme import hue, paint
from .controls import Choice, Drawing, Figure, Slider

EVERY = "every source"
SOURCES = tuple(dict.fromkeys(row.source for row in rows()))
LOW, HIGH = 0.3, 400.0  # seconds at the ends of both axes
LEFT, TOP, SIDE = 60, 34, 340
DECADES = (1.0, 10.0, 100.0)
LABELS = {
    "matmul": "Matmuls reach",
    "attention": "Attention reaches",
    "memory": "Passes over memory reach",
    "trips": "Trips of an expert's tokens",
    "exposed": "Exposed share",
}


def draw(source: str, **stops: int) -> Drawing:
    """Predicted against measured times of all runs, and errors by source.

    Args:
        source: a source whose runs are marked, or `EVERY`.
        stops: the numbers of `FITTED`: shares in per cent, and `trips` as it is.
    """
    numbers = {name: stop / _scale(name) for name, stop in stops.items()}
    at = replace(efficiencies(), **numbers)
    every = [(row, row.predicted(at)) for row in rows()]
    errors = _errors(every)
    if not every:
        return Drawing(message("predictions", "no runs"), "no runs", (), {})
    chosen = errors if source == EVERY else _errors(_of(every, source))
    summary = (
        f"With these numbers, the predictions of {len(every)} published runs are off "
        f"by {fmean(errors):.1%} in the mean and {median(errors):.1%} in the median."
    )
    if source != EVERY:
        left = without(source)
        alone = [
            abs(row.predicted(left) / row.measured - 1) for row, _ in _of(every, source)
        ]
        summary += (
            f" Those of {source} are off by {fmean(chosen):.1%}; numbers that were "
            f"fitted without this source would give {fmean(alone):.1%}."
        )
    data = {
        "mean": fmean(errors),
        "median": median(errors),
        "source": fmean(chosen),
        "numbers": numbers,
    }
    picture = framed(
        "Predicted against measured time of a step",
        summary,
        _picture(every, source),
        WIDEST,
        TOP + SIDE + 46,
    )
    return Drawing(picture, summary, _readout(every), data)


def _of(some: Iterable[tuple[Row, float]], source: str) -> list[tuple[Row, float]]:
    return [(row, seconds) for row, seconds in some if row.source == source]


def _errors(some: Sequence[tuple[Row, float]]) -> list[float]:
    return [abs(seconds / row.measured - 1) for row, seconds in some]


def _readout(every: Sequence[tuple[Row, float]]) -> tuple[tuple[str, ...], ...]:
    head = ("source", "runs", "mean error", "predicted over measured")
    found = [head]
    for source in SOURCES:
        some = _of(every, source)
        middle = median(seconds / row.measured for row, seconds in some)
        error = fmean(_errors(some))
        found.append((source, f"{len(some)}", f"{error:.1%}", f"{middle:.2f}"))
    return tuple(found)


def _place(seconds: float) -> float:
    """Units along an axis."""
    share = log10(min(max(seconds, LOW), HIGH) / LOW) / log10(HIGH / LOW)
    return SIDE * share


def _dots(some: Iterable[tuple[Row, float]], colour: str, key: str) -> str:
    """All dots of a kind in one path of strokes without length."""
    path = "".join(
        f"M{number(LEFT + _place(row.measured))} "
        f"{number(TOP + SIDE - _place(seconds))}h0"
        for row, seconds in some
    )
    return (
        f'<path d="{path}"{keyed(key)} fill="none" stroke="{paint(colour)}" '
        f'stroke-width="5" stroke-linecap="round" stroke-opacity="0.65"/>'
    )


def _picture(every: Sequence[tuple[Row, float]], source: str) -> Iterator[str]:
    yield written(LEFT, 18, "predicted seconds of a step", bold=True)
    yield box(LEFT, TOP, LEFT + SIDE, TOP + SIDE, fill=0, edge=0.5, round=0)
    for seconds in DECADES:
        x, y = LEFT + _place(seconds), TOP + SIDE - _place(seconds)
        words = show(seconds, "s")
        yield box(x, TOP, x, TOP + SIDE, fill=0, edge=0.15, round=0)
        yield box(LEFT, y, LEFT + SIDE, y, fill=0, edge=0.15, round=0)
        yield written(x, TOP + SIDE + 18, words, anchor="middle")
        yield written(LEFT - 8, y + 5, words, anchor="end")
    yield written(LEFT + SIDE, TOP + SIDE + 38, "measured", anchor="end", bold=True)
    ends = f"M{LEFT} {TOP + SIDE}L{LEFT + SIDE} {TOP}"
    yield f'<path d="{ends}" fill="none" stroke="{paint("ink")}"/>'
    kinds = {
        "GPUs": ("math", lambda row: "TPU" not in row.chip.name and not row.experts),
        "TPUs": ("HBM", lambda row: "TPU" in row.chip.name and not row.experts),
        "experts": ("network", lambda row: row.experts),
    }
    x = LEFT + 12  # above the diagonal, where few runs are
    for place, (name, (colour, belongs)) in enumerate(kinds.items()):
        some = [one for one in every if belongs(one[0])]
        yield _dots(some, colour, name)
        words = f"{name}, {len(some)}"
        yield written(x, TOP + 24 + 22 * place, words, colour, key=f"{name}'s")
    if source != EVERY:
        yield _dots(_of(every, source), hue(1), "chosen")
        yield written(x, TOP + 24 + 66, source, hue(1), key="chosen's")
    errors = _errors(every)
    y = TOP + 112
    yield written(x, y, f"mean error {fmean(errors):.1%}", bold=True, key="mean")
    yield written(x, y + 22, f"median {median(errors):.1%}", key="median")


def _scale(name: str) -> int:
    """What a slider's stop is divided by: 100 for a share in per cent."""
    return 1 if name == "trips" else 100


def _slider(name: str) -> Slider:
    stop = _stops(efficiencies())[name]
    if name == "trips":
        return Slider(name, LABELS[name], "", 1, 30, stop, step=1)
    return Slider(name, LABELS[name], "%", 20, 100, stop, step=1,
                  printed=lambda stop: f"{stop} %")  # fmt: skip


def _stops(at: Efficiencies) -> dict[str, int]:
    """The sliders' nearest stops to some numbers."""
    return {name: round(_scale(name) * getattr(at, name)) for name in FITTED}


FIGURE = Figure(
    "predictions",
    "Five numbers, and every published run",
    (
        Choice("source", "Look at", (EVERY, *SOURCES), EVERY),
        *map(_slider, FITTED),
    ),
    draw,
    first="source",
    presets={
        "as fitted": _stops(efficiencies()),
        "everything at its peak": dict.fromkeys(FITTED[:3], 100)
        | {"trips": 1, "exposed": 20},
        "one number for all": dict.fromkeys(FITTED, 60) | {"trips": 1},
    },
)
