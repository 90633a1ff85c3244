"""Plots in the book's style. They need matplotlib and compute nothing."""

import hashlib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil, floor, log10
from xml.etree import ElementTree

from ..base.extras import missing

try:
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
except ImportError as error:
    raise missing("shardmath.draw.plots", error) from error

from ..base.estimate import Roof
from ..base.units import show
from ..collectives import NAMES
from ..referee.ledger import Ledger
from . import svg
from .labels import FONT, text_width
from .picture import WIDEST, Picture, picture
from .shapes import framed, number
from .theme import COLOURS, HUES, INK, PAPER, hue, paint

MATH, HBM, NETWORK = COLOURS.values()
OTHERS = (*HUES, INK)
LABEL_HEIGHT = 0.085  # of the height of the axes
BESIDE = 110  # units; a longer name is above its line instead of next to it
POINTS = 72  # an inch, and matplotlib's unit of an SVG
ID = re.compile(r'(?<=[#"])[mp][0-9a-f]{10}(?=[")])')  # of a marker or a clip path

STYLE = {
    "axes.edgecolor": INK,
    "axes.facecolor": PAPER,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 4 / POINTS,
    "figure.constrained_layout.w_pad": 4 / POINTS,
    "figure.facecolor": PAPER,
    "font.family": "DejaVu Sans",  # ships with matplotlib, so widths never differ
    "font.size": FONT,
    "grid.alpha": 0.14,
    "grid.color": INK,
    "grid.linewidth": 0.8,
    "lines.linewidth": 2.2,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "shardmath",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
# matplotlib writes #rrggbb; the page wants the book's names for them.
NAMED = {INK: "currentColor", PAPER: paint("paper")}
NAMED |= {value: paint(name) for name, value in COLOURS.items()}
NAMED |= {value: paint(hue(n)) for n, value in enumerate(HUES)}


@mpl.rc_context(STYLE)
def axes(xlabel: str, ylabel: str, height: float = 300):
    """(figure, axes): an empty plot in the book's style."""
    figure = Figure(figsize=(WIDEST / POINTS, height / POINTS))
    ax = figure.add_subplot()
    ax.set_xlabel(xlabel)
    # Horizontal and above the axis, where it takes no width.
    ax.set_title(ylabel, loc="left", fontsize=FONT, pad=8)
    ax.tick_params(length=0)
    return figure, ax


@mpl.rc_context(STYLE)
def shown(figure: Figure, title: str, desc: str) -> Picture:
    """A matplotlib figure as a picture whose colours follow the page."""
    buffer = io.StringIO()
    figure.savefig(
        buffer,
        format="svg",
        metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")),
    )
    return picture(title, desc, themed(buffer.getvalue(), title, desc))


def themed(drawn: str, title: str, desc: str) -> str:
    """An SVG from matplotlib as a panel of a `Picture`.

    The prolog, style rules, fonts and background are removed. Coordinates are rounded
    to a tenth, colours become the book's variables, and ids become unique to the panel.
    """
    plain = re.sub(r' xmlns(:\w+)?="[^"]*"', "", drawn[drawn.index("<svg") :])
    root = ElementTree.fromstring(plain.replace("xlink:href", "href"))
    _, _, width, height = map(float, root.get("viewBox").split())
    ground = root.find(".//*[@id='patch_1']")
    for parent in list(root.iter()):
        for child in list(parent):
            if child is ground or child.tag in ("metadata", "style"):
                parent.remove(child)
    ids = set(ID.findall(plain))
    for node in root.iter():
        node.text, node.tail = (node.text or "").strip(), None
        if (name := node.attrib.pop("id", None)) in ids:
            node.set("id", name)
        for key, value in node.attrib.items():
            node.set(key, _themed(key, value))
    body = "".join(ElementTree.tostring(part, "unicode") for part in root)
    return framed(title, desc, [_renamed(body)], width, height)


def _renamed(body: str) -> str:
    """Replace ids by ones that depend only on what is drawn, to a tenth.

    matplotlib's ids are hashes of floats whose last digit differs between processors.
    """
    order = {name: n for n, name in enumerate(dict.fromkeys(ID.findall(body)))}
    counted = ID.sub(lambda m: str(order[m[0]]), body)
    salt = hashlib.sha256(counted.encode()).hexdigest()[:8]
    return ID.sub(lambda m: f"p{salt}-{order[m[0]]}", body)


def _themed(key: str, value: str) -> str:
    """One attribute: a place rounded, a colour named."""
    if key in ("d", "x", "y", "points", "transform", "width", "height"):
        rounded = re.sub(
            r"-?\d+\.\d+(e-?\d+)?", lambda m: number(float(m.group())), value
        )
        return " ".join(rounded.split())
    if "font-family" in value:  # use the page's font; an outline keeps lines away
        value = re.sub(r"font-(size: 14px|family: [^;]*)(; |$)", "", value)
        value += f"; stroke: {PAPER}; stroke-width: 3; paint-order: stroke"
    for colour, name in NAMED.items():
        value = value.replace(colour, name)
    return value


def _logarithmic(axis, unit: str, fine: bool = False) -> None:
    """Put ticks only at decades, as numbers with a prefix.

    If only one decade has a tick, `fine` adds ticks at 2 and 5.
    """
    axis.set_minor_locator(NullLocator())
    low, high = map(log10, axis.get_view_interval())
    if fine and floor(high) - ceil(low) < 1:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: show(value, unit) if unit else f"{value:,.12g}")
    )


@mpl.rc_context(STYLE)
def curves(
    x: Sequence[float],
    ys: dict[str, Sequence[float]],
    xlabel: str,
    ylabel: str,
    unit: str = "",
    mark: float | None = None,
    colours: Sequence[str] = (MATH, HBM, NETWORK, *OTHERS),
    xunit: str = "",
    fine: bool = False,
) -> Picture:
    """Log-log curves over a common x, each labelled at its right end.

    Args:
        x: positive values.
        ys: name → the y values of a curve, as many as x.
        xlabel, ylabel: the labels of the axes.
        unit: base unit of y, printed with prefixes.
        mark: an x value, such as a crossing, to mark with a dashed line.
        colours: the colours of the curves, in order.
        xunit: base unit of x, printed with prefixes. Without it, x is a plain number.
        fine: whether to add ticks at 2 and 5 on an axis with only one decade.
    """
    figure, ax = axes(xlabel, ylabel)
    for y, colour in zip(ys.values(), colours, strict=False):
        ax.loglog(x, y, color=colour)
    ax.set_xlim(min(x), max(x))
    _label_ends(ax, [(name, y[-1]) for name, y in ys.items()], x[-1], colours)
    if mark is not None:
        ax.axvline(mark, color=INK, linestyle="--", linewidth=1)
        ax.annotate(
            f"{mark:,.0f}",
            (mark, ax.get_ylim()[0]),
            (5, 5),
            textcoords="offset points",
        )
    _logarithmic(ax.xaxis, xunit, fine)
    _logarithmic(ax.yaxis, unit, fine)
    ranges = (
        f"{name} from {show(y[0], unit)} to {show(y[-1], unit)}"
        for name, y in ys.items()
    )
    across = f"{show(x[0], xunit)} to {show(x[-1], xunit)}"
    return shown(
        figure,
        f"{ylabel} against {xlabel}",
        f"Log-log curves over {across}: {'; '.join(ranges)}.",
    )


@mpl.rc_context(STYLE)
def measured(
    points: Sequence[tuple[float, float]],
    models: Mapping[str, Sequence[tuple[float, float]]],
    xlabel: str,
    ylabel: str,
    unit: str = "",
    xunit: str = "",
    fine: bool = False,
) -> Picture:
    """Log-log dots of measurements, and lines of models to compare with them.

    Args:
        points: (x, y) of each measurement, sorted by x.
        models: name → (x, y) along the line. The name is written below the line's
            middle.
        xlabel, ylabel: the labels of the axes.
        unit, xunit: base units of y and x, printed with prefixes.
        fine: as for `curves`.
    """
    figure, ax = axes(xlabel, ylabel)
    for (name, line), colour in zip(models.items(), HUES[1:], strict=False):
        ax.loglog(*zip(*line, strict=True), color=colour)
        _under(ax, name, line[len(line) // 2], colour)
    ax.loglog(*zip(*points, strict=True), "o", color=INK, markersize=5)
    _under(ax, "measured", points[1], INK)
    _logarithmic(ax.xaxis, xunit, fine)
    _logarithmic(ax.yaxis, unit, fine)
    said = (
        f"{name} from {show(line[0][1], unit)} at {show(line[0][0], xunit)} to "
        f"{show(line[-1][1], unit)} at {show(line[-1][0], xunit)}"
        for name, line in {"measured": points, **models}.items()
    )
    return shown(figure, f"{ylabel} against {xlabel}", f"{'; '.join(said)}.")


@mpl.rc_context(STYLE)
def scatter(
    groups: Mapping[str, Sequence[tuple[float, float]]],
    xlabel: str,
    ylabel: str,
    unit: str = "",
    band: tuple[float, float] | None = None,
) -> Picture:
    """Log-log dots of two quantities that should be equal, and the line of equality.

    Args:
        groups: name → (x, y) of each dot. Each group has a colour.
        xlabel, ylabel: the labels of the axes.
        unit: the base unit of both quantities.
        band: the ratios y/x between which most dots are expected, shown as a shaded
            band.
    """
    figure, ax = axes(xlabel, ylabel, 380)
    every = [value for some in groups.values() for dot in some for value in dot]
    ends = min(every) / 1.3, max(every) * 1.3
    if band:
        ax.fill_between(ends, *([side * x for x in ends] for side in band),
                        color=OTHERS[0], alpha=0.15, linewidth=0)  # fmt: skip
    ax.plot(ends, ends, color=INK, linewidth=0.8)
    colours = (MATH, HBM, NETWORK, *OTHERS)
    for (name, some), colour in zip(groups.items(), colours, strict=False):
        xs, ys = zip(*some, strict=True)
        ax.scatter(xs, ys, s=9, color=colour, alpha=0.7, linewidths=0, label=name)
    for axis, scale in ((ax.xaxis, ax.set_xscale), (ax.yaxis, ax.set_yscale)):
        scale("log")
        _logarithmic(axis, unit)
    ax.set_xlim(ends)
    ax.set_ylim(ends)
    ax.legend(frameon=False, loc="upper left", handletextpad=0.2)
    said = ", ".join(f"{len(some)} of {name}" for name, some in groups.items())
    middle = sorted(y / x for some in groups.values() for x, y in some)
    half = middle[len(middle) // 2]
    desc = (
        f"{ylabel} against {xlabel}, a dot for each of {len(middle)}: {said}. The line "
        f"is where both are equal. The middle dot has {half:.2f} times as much, and "
        f"they lie between {middle[0]:.2f} and {middle[-1]:.2f} times."
    )
    return shown(figure, f"{ylabel} against {xlabel}", desc)


def roofline(
    roofs: Sequence[Roof],
    points: Iterable[tuple[str, float, float]] = (),
    span: tuple[float, float] = (0.25, 4096),
) -> Picture:
    """FLOPs/s against FLOPs/byte, log-log: roofs and points.

    Args:
        roofs: rooflines, each labelled at its right end. A single one has its slope in
            the colour of HBM and its flat part in the colour of math.
        points: (name, intensity, FLOPs/s) of operations on a roof or below it. Without
            a name, only a dot is drawn.
        span: the lowest and highest intensity shown, in FLOPs/byte.
    """
    points = tuple(points)
    rates = [rate for _, _, rate in points]
    low = min([roof.at(span[0]) for roof in roofs] + rates)
    x = svg.Axis("arithmetic intensity, FLOPs per byte", *span)
    y = svg.Axis(
        "attainable TFLOPs/s",
        low / 2,
        4 * max([roof.at(span[1]) for roof in roofs] + rates),
        unit="FLOPs/s",
    )
    marks: list = []
    for n, roof in enumerate(roofs):
        slope, flat = ("HBM", "math") if len(roofs) == 1 else (hue(n), hue(n))
        bend = min(max(roof.ridge, span[0]), span[1])
        start, corner, end = ((at, roof.at(at)) for at in (span[0], bend, span[1]))
        marks += [
            svg.PlotLine((start, corner), slope),
            svg.PlotLine((corner, end), flat),
        ]
        marks.append(svg.Label(*end, roof.name, flat, "nw"))
    for name, *place in points:
        marks.append(svg.Dot(*place))
        if name:
            marks.append(svg.Label(*place, name, toward="se"))
    said = [f"{r.name}: bends at {r.ridge:,.4g} FLOPs per byte, flat at "
            f"{show(r.peak, 'FLOPs/s')}" for r in roofs]  # fmt: skip
    said += [
        f"{name} at {show(intensity, 'FLOPs/byte')}, {show(rate, 'FLOPs/s')}"
        for name, intensity, rate in points
        if name
    ]
    desc = f"{'; '.join(said)}."
    return picture("Roofline", desc, svg.plot("Roofline", desc, x, y, marks))


def _label_ends(
    ax, ends: Sequence[tuple[str, float]], x: float, colours: Sequence[str]
) -> None:
    """Write each name at its end (x, height): next to it if short, else above the line.

    Names keep a distance from each other. A name next to its end that had to move for
    this has a thin line to it.
    """
    bottom, top = ax.get_ylim()
    places = _apart([height for _, height in ends], (top / bottom) ** LABEL_HEIGHT)
    beside = max(text_width(name) for name, _ in ends) < BESIDE
    for (name, height), place, colour in zip(ends, places, colours, strict=False):
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.8}
        moved = _points(ax, height, place)
        ax.annotate(
            name,
            (x, height),
            (8, moved) if beside else (-2, 4 + moved),
            textcoords="offset points",
            arrowprops=leader | {"relpos": (0, 0.5)} if beside else None,
            color=colour,
            va="center" if beside else "bottom",
            ha="left" if beside else "right",
            annotation_clip=False,
        )


def _beside(ax, text: str, x: float, y: float) -> None:
    """Text to the right of a place."""
    ax.annotate(text, (x, y), (9, 0), textcoords="offset points", va="center")


def _under(ax, text: str, place: tuple[float, float], colour: str) -> None:
    """Text to the right of a place and below it, away from a rising line."""
    ax.annotate(text, place, (8, -16), textcoords="offset points", color=colour)


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


@mpl.rc_context(STYLE)
def ratios(rows: Iterable[tuple[str, float]], xlabel: str) -> Picture:
    """A dot per row on a scale from 0 to 1, with the value printed next to it."""
    rows = list(rows)[::-1]
    figure, ax = axes(xlabel, "", height=30 * len(rows) + 60)
    for height, (_, value) in enumerate(rows):
        ax.plot([0, value], [height, height], color=HUES[6], linewidth=2, alpha=0.4)
        ax.plot([value], [height], "o", color=MATH, markersize=8)
        _beside(ax, f"{value:.0%}", value, height)
    ax.set_yticks(range(len(rows)), [name for name, _ in rows])
    ax.set_xlim(0, 1.12)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0%}"))
    ax.grid(visible=False, axis="y")
    said = ", ".join(f"{name} {value:.0%}" for name, value in reversed(rows))
    return shown(figure, xlabel, f"{said}.")


@mpl.rc_context(STYLE)
def ledger(book: Ledger) -> Picture:
    """The bytes that a device sends, predicted and compiled, as a pair of bars per row.

    The ratio is printed next to each pair. Bars start at zero, so their lengths can be
    compared.
    """
    figure, ax = axes("sent by one device", "", height=46 * len(book.rows) + 80)
    for height, row in enumerate(reversed(book.rows)):
        ends = row.predicted_sent, row.compiled_sent
        for shift, end, colour in zip(
            (0.17, -0.17), ends, (HUES[6], NETWORK), strict=True
        ):
            ax.plot([0, end], [height + shift] * 2, color=colour, linewidth=10,
                    solid_capstyle="butt")  # fmt: skip
        _beside(ax, f"{row.ratio:.3f}", max(ends), height)
    names = [f"{NAMES[row.op]} {' '.join(row.axes)}" for row in reversed(book.rows)]
    ax.set_yticks(range(len(names)), names)
    longest = max(max(r.predicted_sent, r.compiled_sent) for r in book.rows)
    ax.set_xlim(0, 1.25 * longest)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_title("grey: predicted, plum: compiled", fontsize=FONT)
    ax.xaxis.set_major_locator(MaxNLocator(3))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: show(v, "bytes")))
    ax.grid(visible=False, axis="y")
    said = "; ".join(
        f"{name}: predicted {show(row.predicted_sent, 'bytes')}, compiled "
        f"{show(row.compiled_sent, 'bytes')}"
        for name, row in zip(reversed(names), book.rows, strict=True)
    )
    return shown(figure, "Bytes that one device sends", f"{said}.")
