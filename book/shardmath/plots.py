"""Static figures in the book's one style. Needs matplotlib; draws, never calculates."""

import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from .collectives import NAMES
from .estimate import Roof
from .ledger import Ledger
from .units import show

# The same three colours in the whole book; live figures take them from the style sheet.
MATH, HBM, NETWORK = "#1257d6", "#b84a00", "#86247e"
# For things that are none of the three, such as chips side by side.
OTHERS = (
    "#2c7a3f",
    "#8a6d00",
    "#5b6770",
    "#a3225e",
    "#00707a",
    "#6a4fb3",
    "#7a4a21",
    "#1f2328",
)
LABEL_HEIGHT = 0.075  # of the height of the axes
INK, GRID, PAPER = "#1f2328", "#d0d7de", "#ffffff"

STYLE = {
    "axes.edgecolor": INK,
    "axes.facecolor": PAPER,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": PAPER,
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same on every system
    "font.size": 11,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "lines.linewidth": 2.2,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


@dataclass(frozen=True)
class Picture:
    """A figure that shows itself as PNG, and as text that changes with its data.

    The text carries a digest of every number and word drawn (six digits), so a
    comparison of stored text notices a stale picture.
    """

    figure: Figure

    def digest(self) -> str:
        parts: list[str] = []
        for ax in self.figure.axes:
            parts += [
                ax.get_xlabel(),
                ax.get_ylabel(),
                *(t.get_text() for t in ax.texts),
            ]
            for line in ax.lines:
                values = np.concatenate([np.ravel(v) for v in line.get_data()])
                parts += [f"{float(v):.6g}" for v in values]
        return hashlib.sha256("|".join(parts).encode()).hexdigest()[:8]

    def _repr_mimebundle_(self, include=None, exclude=None):
        buffer = io.BytesIO()
        self.figure.savefig(
            buffer,
            format="png",
            dpi=200,
            bbox_inches="tight",
            metadata={"Software": ""},
        )
        lines = sum(len(ax.lines) for ax in self.figure.axes)
        text = f"<figure: {lines} lines, digest {self.digest()}>"
        return {"image/png": buffer.getvalue(), "text/plain": text}


def axes(xlabel: str, ylabel: str, size: tuple[float, float] = (4.8, 3.4)):
    """A figure of the book with one empty pair of axes: (figure, axes)."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size)
        ax = figure.add_subplot()
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return figure, ax


def _prefixed(axis, unit: str) -> None:
    axis.set_major_formatter(FuncFormatter(lambda value, _: show(value, unit)))
    axis.set_minor_formatter(NullFormatter())


def curves(
    x: Sequence[float],
    ys: dict[str, Sequence[float]],
    xlabel: str,
    ylabel: str,
    unit: str = "",
    mark: float | None = None,
    colours: Sequence[str] = (MATH, HBM, NETWORK, *OTHERS),
    xunit: str = "",
) -> Picture:
    """Log-log curves over one x, each labelled at its right end; `mark` is a dashed x.

    Args:
        x: positive values.
        ys: one curve a name, as long as x.
        xlabel, ylabel: what the axes mean.
        unit: base unit of y, printed with prefixes.
        mark: an x value to mark, such as a crossing.
        colours: one a curve, in order.
        xunit: base unit of x, printed with prefixes; plain numbers if not given.
    """
    figure, ax = axes(xlabel, ylabel)
    for y, colour in zip(ys.values(), colours, strict=False):
        ax.loglog(x, y, color=colour)
    bottom, top = ax.get_ylim()
    places = _apart([y[-1] for y in ys.values()], (top / bottom) ** LABEL_HEIGHT)
    for name, place, colour in zip(ys, places, colours, strict=False):
        ax.annotate(
            f" {name}", (x[-1], place), color=colour, va="center", annotation_clip=False
        )
    if mark is not None:
        ax.axvline(mark, color=INK, linestyle="--", linewidth=1)
        ax.annotate(
            f" {mark:,.0f}",
            (mark, ax.get_ylim()[0]),
            va="bottom",
            color=INK,
        )
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,g}"))
    if xunit:
        _prefixed(ax.xaxis, xunit)
    _prefixed(ax.yaxis, unit)
    return Picture(figure)


def roofline(
    roofs: Sequence[Roof],
    points: Iterable[tuple[str, float, float]] = (),
    span: tuple[float, float] = (0.25, 4096),
) -> Picture:
    """FLOPs/s against FLOPs/byte, log-log: roofs and points.

    Args:
        roofs: what to draw, each labelled at its right end. One alone shows its slope
            in the colour of HBM and its flat part in the colour of math.
        points: (name, intensity, FLOPs/s) of operations on a roof or below it.
        span: lowest and highest intensity shown.
    """
    figure, ax = axes("arithmetic intensity, FLOPs per byte", "FLOPs/s")
    ax.set_xlim(span)
    for roof, colour in zip(roofs, OTHERS, strict=False):
        slope, flat = (HBM, MATH) if len(roofs) == 1 else (colour, colour)
        bend = min(max(roof.ridge, span[0]), span[1])
        ax.loglog([span[0], bend], [roof.at(span[0]), roof.at(bend)], color=slope)
        ax.loglog([bend, span[1]], [roof.at(bend), roof.at(span[1])], color=flat)
        ax.plot([bend], [roof.at(bend)], "o", color=flat, markersize=4)
    _label_ends(ax, [(roof.name, roof.at(span[1])) for roof in roofs], span[1])
    for name, intensity, rate in points:
        ax.plot([intensity], [rate], "D", color=INK, markersize=6)
        ax.annotate(
            name,
            (intensity, rate),
            (8, -5),
            textcoords="offset points",
            va="top",
            color=INK,
        )
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    _prefixed(ax.yaxis, "FLOPs/s")
    return Picture(figure)


def _label_ends(ax, ends: Sequence[tuple[str, float]], x: float) -> None:
    """Write each name beside its end at (x, height), moved apart, with a line."""
    bottom, top = ax.get_ylim()
    heights = [height for _, height in ends]
    places = _apart(heights, (top / bottom) ** LABEL_HEIGHT)
    colours = [MATH] if len(ends) == 1 else OTHERS
    for (name, height), place, colour in zip(ends, places, colours, strict=False):
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.8}
        ax.annotate(
            name,
            (x, height),
            (24, _points(ax, height, place)),
            textcoords="offset points",
            arrowprops=leader | {"relpos": (0, 0.5)},
            color=colour,
            va="center",
            annotation_clip=False,
        )


def _apart(heights: Sequence[float], factor: float) -> list[float]:
    """Heights of labels, in the order given, each at least `factor` above the next."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    places = list(heights)
    for below, above in pairwise(order):
        places[above] = max(places[above], places[below] * factor)
    return places


def _points(ax, start: float, end: float) -> float:
    """Vertical distance from y = `start` to `end` in printer's points."""
    pixels = ax.transData.transform([(1, end), (1, start)])[:, 1]
    return (pixels[0] - pixels[1]) * 72 / ax.figure.dpi


def ratios(rows: Iterable[tuple[str, float]], xlabel: str) -> Picture:
    """One dot a row on a scale from 0 to 1, the value printed beside it."""
    rows = list(rows)[::-1]
    figure, ax = axes(xlabel, "", size=(4.8, 0.36 * len(rows) + 0.9))
    for height, (_, value) in enumerate(rows):
        ax.plot([0, value], [height, height], color=GRID, linewidth=2, zorder=1)
        ax.plot([value], [height], "o", color=MATH, markersize=8)
        ax.annotate(f"  {value:.0%}", (value, height), va="center", color=INK)
    ax.set_yticks(range(len(rows)), [name for name, _ in rows])
    ax.set_xlim(0, 1.08)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0%}"))
    ax.grid(visible=False, axis="y")
    return Picture(figure)


def ledger(book: Ledger) -> Picture:
    """Bytes that a device sends: predicted and compiled, a pair of bars a row.

    The ratio stands beside each pair; bars start at zero, so lengths may be compared.
    """
    figure, ax = axes("sent by one device", "", size=(4.8, 0.62 * len(book.rows) + 1.1))
    for height, row in enumerate(reversed(book.rows)):
        ends = row.predicted_sent, row.compiled_sent
        for shift, end, colour in zip(
            (0.17, -0.17), ends, (GRID, NETWORK), strict=True
        ):
            ax.plot([0, end], [height + shift] * 2, color=colour, linewidth=9,
                    solid_capstyle="butt")  # fmt: skip
        ax.annotate(f"  {row.ratio:.3f}", (max(ends), height), va="center", color=INK)
    names = [f"{NAMES[row.op]} {' '.join(row.axes)}" for row in reversed(book.rows)]
    ax.set_yticks(range(len(names)), names)
    longest = max(max(r.predicted_sent, r.compiled_sent) for r in book.rows)
    ax.set_xlim(0, 1.18 * longest)
    ax.set_title("grey: predicted, plum: compiled, and their ratio", fontsize=10)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: show(v, "bytes")))
    ax.grid(visible=False, axis="y")
    return Picture(figure)
