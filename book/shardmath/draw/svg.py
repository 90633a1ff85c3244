"""A small plotter that turns axes, lines, dots and labels into SVG text.

Colours are CSS custom properties and `currentColor`, so the picture follows the page's
theme. Labels are put in free places and are never clipped.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..base.units import show
from .labels import along, place, text_width
from .shapes import framed, keyed, number, written
from .theme import paint

WIDTH, HEIGHT = 416, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 30, 48
SPACE = 5  # between two labels of an axis
FRAME = (LEFT + 3, TOP + 1, WIDTH - RIGHT - 2, HEIGHT - BOTTOM - 2)  # for labels


@dataclass(frozen=True)
class Axis:
    """One axis from `low` to `high`, logarithmic unless `log` is False.

    Ticks are at round values, or at `stops` if there are any. They are printed with
    `unit` and its prefixes, so the label need not name it. Only ticks in FLOPs/s are
    shortened to TFLOPs/s, which the label must say.

    Raises:
        ValueError: the label of an axis in FLOPs/s does not say TFLOPs/s, or the ends
            are not finite, not in order, or not above 0 on a logarithmic axis.
    """

    label: str
    low: float
    high: float
    log: bool = True
    unit: str = ""
    stops: Sequence[float] = ()

    def __post_init__(self) -> None:
        if self.unit == "FLOPs/s" and "TFLOPs/s" not in self.label:
            raise ValueError(f"axis {self.label!r}: must say TFLOPs/s, as in its ticks")
        finite = math.isfinite(self.low) and math.isfinite(self.high)
        if not (finite and self.low < self.high and (self.low > 0 or not self.log)):
            kind = "0 < low < high" if self.log else "low < high"
            raise ValueError(
                f"axis {self.label!r} from {self.low} to {self.high}: must have "
                f"finite ends with {kind}"
            )

    def share(self, value: float) -> float:
        """The place of `value`: 0 at `low`, 1 at `high`, clamped to these two."""
        value = min(max(value, self.low), self.high)
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def text(self, tick: float) -> str:
        """The text of a tick.

        >>> Axis("time", 1, 9, unit="s").text(0.01), Axis("x", 1, 9).text(1e5)
        ('10 ms', '100,000')
        """
        if self.unit == "FLOPs/s":
            return f"{tick / 1e12:,.15g}"
        return show(tick, self.unit) if self.unit else f"{tick:,.15g}"

    def ticks(self) -> tuple[float, ...]:
        """Round values: at most 7 decades, or 4 to 9 linear steps of 1, 2 or 5 · 10ⁿ.

        >>> Axis("x", 0, 10, log=False).ticks()
        (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)
        >>> Axis("x", 0.5, 2000).ticks()
        (1.0, 10.0, 100.0, 1000.0)
        >>> Axis("chips", 1, 8, stops=(1, 2, 4, 8)).ticks()
        (1, 2, 4, 8)
        """
        if self.stops:
            return tuple(self.stops)
        if self.log:
            first = math.ceil(math.log10(self.low) - 1e-9)
            last = math.floor(math.log10(self.high) + 1e-9)
            every = math.ceil((last - first + 1) / 7) or 1
            return tuple(float(f"1e{n}") for n in range(first, last + 1, every))
        span = self.high - self.low
        size = 10.0 ** math.floor(math.log10(span / 4))
        step = next(m * size for m in (5, 2, 1) if span / (m * size) >= 4)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return tuple(float(f"{n * step:.12g}") for n in range(first, last + 1))


@dataclass(frozen=True)
class PlotLine:
    """A polyline through `points`, in the units of the axes.

    Here and below, a mark appears to move if it has the same `key` in two pictures.
    """

    points: Sequence[tuple[float, float]]
    colour: str = "ink"
    dashed: bool = False
    width: float = 2.5
    key: str = ""


@dataclass(frozen=True)
class Dot:
    """A point. If `hollow`, the inside has the colour of paper; `small` suits many."""

    x: float
    y: float
    colour: str = "ink"
    hollow: bool = False
    key: str = ""
    small: bool = False


@dataclass(frozen=True)
class Handle:
    """A handle at (x, y) for dragging the slider `name`.

    `stops` are the places of the slider's stops on the x axis.
    """

    x: float
    y: float
    name: str
    stops: Sequence[float]


@dataclass(frozen=True)
class Bar:
    """A filled box from its lower left to its upper right corner, in axis units."""

    start: tuple[float, float]
    end: tuple[float, float]
    colour: str = "math"


@dataclass(frozen=True)
class Label:
    """Text near (x, y), on the side `toward` (n, ne, e, …) if there is room."""

    x: float
    y: float
    text: str
    colour: str = "ink"
    toward: str = "n"
    key: str = ""


def plot(
    title: str,
    desc: str,
    x: Axis,
    y: Axis,
    marks: Iterable[PlotLine | Dot | Bar | Label | Handle],
    head: str = "",
) -> str:
    """The plot as one `<svg role="img">` with a title and a description.

    `head` is written above it, typeset in the notation of sharded arrays.

    >>> text = plot("t", "d", Axis("x", 1, 10), Axis("y", 1, 10), [Dot(2, 3)])
    >>> text.startswith("<svg ") and text.endswith("</svg>") and "<circle" in text
    True
    """
    marks = tuple(marks)
    left = max(LEFT, 10 + max(text_width(y.text(tick)) for tick in y.ticks()))
    frame = (left + 3, *FRAME[1:])

    def at(px: float, py: float) -> tuple[float, float]:
        across, up = WIDTH - left - RIGHT, HEIGHT - TOP - BOTTOM
        return left + across * x.share(px), HEIGHT - BOTTOM - up * y.share(py)

    lines = [(m, [at(*p) for p in m.points]) for m in marks if isinstance(m, PlotLine)]
    dots = [(m, at(m.x, m.y)) for m in marks if isinstance(m, Dot)]
    parts = [*_axes(x, y, at, left)]
    if head:
        parts.append(written(WIDTH - RIGHT, 16, head, anchor="end"))
    parts += [_box(m, at(*m.start), at(*m.end)) for m in marks if isinstance(m, Bar)]
    parts += [_polyline(line, points) for line, points in lines]
    parts += [_circle(dot, *centre) for dot, centre in dots]
    taken = [
        (px - 7, py - 7, px + 7, py + 7) for dot, (px, py) in dots if not dot.small
    ]
    # Labels avoid curves. On a guide, which is thin, their outline is enough.
    ink = [p for line, points in lines if line.width > 1 for p in along(points)]
    for label in (m for m in marks if isinstance(m, Label)):
        box = place(label.text, at(label.x, label.y), label.toward, frame, taken, ink)
        taken.append(box)
        text = written(box[0], box[3] - 4, label.text, label.colour, key=label.key)
        parts.append(text)
    # Handles come last, so nothing covers them.
    parts += [_handle(m, at) for m in marks if isinstance(m, Handle)]
    return framed(title, desc, parts, WIDTH, HEIGHT)


def message(title: str, text: str) -> str:
    """A picture with a text that says why there is nothing to draw."""
    rows, row = [], ""
    for word in text.split():
        if row and text_width(f"{row} {word}") > WIDTH - 40:
            rows.append(row)
            row = word
        else:
            row = f"{row} {word}".strip()
    rows.append(row)
    top = HEIGHT / 2 - 10 * (len(rows) - 1)
    parts = [
        written(WIDTH / 2, top + 20 * n, row, anchor="middle")
        for n, row in enumerate(rows)
    ]
    return framed(title, text, parts, WIDTH, HEIGHT)


def _axes(x: Axis, y: Axis, at, left: float) -> Iterable[str]:
    bottom, top = HEIGHT - BOTTOM, TOP
    paths, spots = [], []
    for value in x.ticks():
        px, _ = at(value, y.low)
        paths.append(f"M{number(px)} {bottom}V{top}")
        half = text_width(x.text(value)) / 2
        spots.append((min(px, WIDTH - half), half, x.text(value)))
    for px, _, text in spots[:: _every(spots)]:
        yield written(px, bottom + 20, text, anchor="middle")
    for value in y.ticks():
        _, py = at(x.low, value)
        paths.append(f"M{number(left)} {number(py)}H{WIDTH - RIGHT}")
        yield written(left - 6, py + 5, y.text(value), anchor="end")
    grid = "".join(paths)
    yield f'<path d="{grid}" stroke="currentColor" stroke-opacity=".14"/>'
    yield (
        f'<path d="M{number(left)} {top}V{bottom}H{WIDTH - RIGHT}" fill="none" '
        'stroke="currentColor" stroke-opacity=".6"/>'
    )
    yield written(WIDTH - RIGHT, HEIGHT - 8, x.label, anchor="end")
    yield written(4, 16, y.label)


def _every(spots: Sequence[tuple[float, float, str]]) -> int:
    """The smallest n such that labels at every n-th tick do not touch.

    >>> _every([(0, 10, "a"), (15, 10, "b"), (30, 10, "c")])
    2
    """
    for step in range(1, len(spots)):
        kept = spots[::step]
        if all(b - right - (a + left) >= SPACE
               for (a, left, _), (b, right, _) in pairwise(kept)):  # fmt: skip
            return step
    return max(len(spots), 1)


def _polyline(line: PlotLine, points: list[tuple[float, float]]) -> str:
    path = " ".join(f"{number(px)},{number(py)}" for px, py in points)
    dash = ' stroke-dasharray="6 4"' if line.dashed else ""
    return (
        f'<polyline{keyed(line.key)} points="{path}" fill="none" '
        f'stroke="{paint(line.colour)}" stroke-width="{line.width:g}" '
        f'stroke-linejoin="round"{dash}/>'
    )


def _box(bar: Bar, start: tuple[float, float], end: tuple[float, float]) -> str:
    (left, bottom), (right, top) = start, end
    return (
        f'<rect x="{number(left)}" y="{number(top)}" width="{number(right - left)}" '
        f'height="{number(bottom - top)}" fill="{paint(bar.colour)}"/>'
    )


def _circle(dot: Dot, px: float, py: float) -> str:
    colour = paint(dot.colour)
    fill = paint("paper") if dot.hollow else colour
    return (
        f'<circle{keyed(dot.key)} cx="{number(px)}" cy="{number(py)}" '
        f'r="{3 if dot.small else 6}" fill="{fill}" stroke="{colour}" '
        f'stroke-width="{1.5 if dot.small else 2.5}"/>'
    )


def _handle(handle: Handle, at) -> str:
    px, py = at(handle.x, handle.y)
    places = " ".join(number(at(stop, handle.y)[0]) for stop in handle.stops)
    return (
        f'<circle data-drag="{handle.name}" data-drag-at="{places}" '
        f'cx="{number(px)}" cy="{number(py)}" r="22" fill="transparent"/>'
    )
