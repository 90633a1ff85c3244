"""Draws the lanes of steps on one clock: math above, network below, and a playhead."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...base.units import show
from ..labels import text_width
from ..picture import WIDEST
from ..shapes import box, framed, keyed, line, number, written
from ..theme import paint
from .lanes import ON_CHIP, LaneSpan, StepLanes

EDGE, LEFT, RIGHT = 6, 76, WIDEST - 6
HEAD, GAP, BREAK = 24, 4, 14
BLOCKS = 4  # into which the layers are gathered where the whole step is drawn
LEGEND = (
    ("math", "math", 0.85),
    ("memory", "HBM", 0.85),
    ("network: hidden", "network", 0.35),
    ("exposed", "network", 1.0),
)


@dataclass(frozen=True)
class Window:
    """The parts of a step that are shown, one after another.

    Args:
        panes: (start, end) of each part, in seconds.
    """

    panes: tuple[tuple[float, float], ...]

    @property
    def seconds(self) -> float:
        return sum(end - start for start, end in self.panes)

    def at(self, elapsed: float) -> tuple[int, float]:
        """The pane at this second of the window, and the matching time in the step."""
        last = len(self.panes) - 1
        for n, (start, end) in enumerate(self.panes):
            if elapsed <= end - start or n == last:
                break
            elapsed -= end - start
        return n, min(start + elapsed, end)

    def before(self, pane: int) -> float:
        """The total seconds of all panes before this one."""
        return sum(end - start for start, end in self.panes[:pane])


@dataclass(frozen=True)
class Scale:
    """Converts seconds to places in the drawing.

    Args:
        window: the seconds that are shown.
        wide: units per second.
    """

    window: Window
    wide: float

    def left(self, pane: int) -> float:
        return LEFT + self.wide * self.window.before(pane) + BREAK * pane

    def x(self, pane: int, seconds: float) -> float:
        return self.left(pane) + self.wide * (seconds - self.window.panes[pane][0])

    def seen(self, span: LaneSpan) -> Iterator[tuple[int, float, float]]:
        """Each pane that shows a part of a span, and the ends of this part in units."""
        for pane, (start, end) in enumerate(self.window.panes):
            low, high = max(start, span.start), min(end, span.end)
            if high > low:
                yield pane, self.x(pane, low), self.x(pane, high)


def two_lanes(
    title: str,
    summary: str,
    some: Mapping[str, StepLanes],
    windows: Mapping[str, Window],
    now: float,
) -> str:
    """The picture of one or more steps; the longest of them takes the full width.

    Args:
        title: written above the picture.
        summary: the start of the description for screen readers.
        some: name → lanes of a step.
        windows: name → the seconds that are shown.
        now: how many of these seconds have passed.
    """
    breaks = max(len(one.panes) for one in windows.values()) - 1
    longest = max(one.seconds for one in windows.values())
    wide = (RIGHT - LEFT - BREAK * breaks) / longest
    single = len(some) == 1
    parts = [written(EDGE, 16, title, bold=True)]
    top, notes = 26.0, []
    for name, one in some.items():
        scale = Scale(windows[name], wide)
        drawn, top = _panel(name, one, scale, top, now, single)
        parts += drawn
        notes.append(f"{name}: {_described(one)}")
    if single:
        parts += _caption(one, scale.window.at(now)[1], top + 16)
        top += 44
    else:
        parts.append(written(LEFT, top + 14, f"at {show(now, 's')}", key="time"))
        top += 24
    parts += _legend(top)
    desc = (
        f"{summary} {' '.join(notes)} Math is above and the network below, on one "
        "clock. Only layers are drawn, without embedding and head. The exchanges of a "
        "block of layers are drawn together: those of its weights before it, those of "
        "its activations after attention and after the MLP. Gradients that are reduced "
        "once in a step leave layer by layer. So they may be exposed for as long as "
        "one layer takes, even where the prediction hides all of them."
    )
    return framed(title, desc, parts, WIDEST, top + 24)


def _described(one: StepLanes) -> str:
    return (
        f"the step takes {show(one.seconds, 's')}, of which {show(one.exposed, 's')} "
        f"of the network is exposed."
    )


def _panel(
    name: str, one: StepLanes, scale: Scale, top: float, now: float, single: bool
) -> tuple[list[str], float]:
    """A heading, the two lanes, a veil over the future, and the playhead."""
    head = f"{name}: {one.exposed / one.seconds:.1%} exposed"
    parts = [written(EDGE, top + 15, head, bold=not single, key=f"{name}'s")]
    top += HEAD
    if single:
        parts += _passes(one, scale, top)
        top += 20
    high = 38 if single else 22
    rows = {"math": (top, top + high)}
    under = top + high + GAP
    rows |= {"network": (under, under + high)}
    for resource, (upper, lower) in rows.items():
        y = (upper + lower) / 2 + 5
        parts.append(written(LEFT - 8, y, resource, resource, "end",
                             key=f"{name} {resource}"))  # fmt: skip
    parts += _cells(name, one, scale, _split(one, rows))
    parts += _veil(name, scale, top, under + high, now)
    return parts, under + high + 12


def _split(
    one: StepLanes, rows: dict[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """Rows by the kind of span. If weights and activations use the network at the same
    time, each has half of the lane."""
    upper, lower = rows["network"]
    middle = (upper + lower) / 2
    both = one.reduced and one.forward.activations
    activations = (upper, middle - 1) if both else (upper, lower)
    weights = (middle + 1, lower) if both else (upper, lower)
    names = {"activations": activations}
    names |= dict.fromkeys(("gather", "scatter", "gradients"), weights)
    return names | dict.fromkeys(
        ("attention", "MLP", "memory", "optimizer"), rows["math"]
    )


def _cells(
    name: str, one: StepLanes, scale: Scale, rows: dict[str, tuple[float, float]]
) -> Iterator[str]:
    """All spans, with one shape for those of the same kind and block."""
    blocks = min(BLOCKS, one.layers)
    found: dict[tuple, list[list[float]]] = defaultdict(list)
    for span in one.spans:
        block = span.layers[0] * blocks // one.layers
        if len(scale.window.panes) > 1:
            block = span.layers[0]
        for pane, left, right in scale.seen(span):
            key = (pane, span.what, span.when, block, span.resource, span.exposed)
            cells = found[key]
            if cells and left - cells[-1][1] < 0.05:
                cells[-1][1] = right
            else:
                cells.append([left, right])
    for (pane, what, when, block, resource, exposed), cells in found.items():
        upper, lower = rows[what]
        cells[-1][1] -= min(0.8, (cells[-1][1] - cells[-1][0]) / 3)  # a seam
        fill = (1.0 if exposed else 0.35) if resource == "network" else 0.85
        path = "".join(
            f"M{number(left)} {number(upper)}h{number(right - left)}"
            f"v{number(lower - upper)}h-{number(right - left)}z"
            for left, right in cells
        )
        key = f"{name} {what} {when} {block} {pane} {'exposed' if exposed else ''}"
        yield (
            f'<path d="{path}"{keyed(key.strip())} fill="{paint(resource)}" '
            f'fill-opacity="{fill:g}"/>'
        )


def _veil(
    name: str, scale: Scale, top: float, bottom: float, now: float
) -> Iterator[str]:
    """A veil over the future, and the playhead at its edge."""
    window = scale.window
    pane, at = window.at(now)
    x = scale.x(pane, at)
    end = scale.x(len(window.panes) - 1, window.panes[-1][1])
    yield box(x, top - 2, max(end, x), bottom + 2, "paper", fill=0.6, edge=0, round=0,
              key=f"{name} to come")  # fmt: skip
    yield line((x, top - 4), (x, bottom + 4), width=2, key=f"{name} playhead")
    for n in range(1, len(window.panes)):  # where layers are left out
        middle = scale.left(n) - BREAK / 2
        yield line((middle, top - 2), (middle, bottom + 2), width=1.2, dashed=True,
                   opacity=0.6)  # fmt: skip


def _passes(one: StepLanes, scale: Scale, top: float) -> Iterator[str]:
    """What the chip does, over the lanes."""
    if len(scale.window.panes) > 1:
        first = one.layers // 2 + 1
        for pane, when in enumerate(("forward", "backward")):
            order = (first, first + 1) if pane == 0 else (first + 1, first)
            words = f"{when}: layers {order[0]}, {order[1]}"
            wide = scale.wide * (
                scale.window.panes[pane][1] - scale.window.panes[pane][0]
            )
            if text_width(words) > wide:
                words = when
            yield written(scale.left(pane), top + 12, words, key=f"pass {when}")
        return
    turn = one.layers * one.forward.seconds
    end = one.passes_end + one.tail
    for when, start, stop in (
        ("forward", 0.0, turn), ("backward", turn, one.passes_end),
        ("optimizer", end, one.seconds),
    ):  # fmt: skip
        left, right = scale.x(0, start), scale.x(0, stop)
        if text_width(when) < right - left:
            yield written(left, top + 12, when, key=f"pass {when}")


def _caption(one: StepLanes, at: float, y: float) -> Iterator[str]:
    """Two lines of text on what happens at the playhead."""
    doing, more = _now(one, at)
    yield written(EDGE, y, f"at {show(at, 's')}: {doing}", key="time")
    yield written(EDGE, y + 20, more, "network", key="moving")


def _now(one: StepLanes, at: float) -> tuple[str, str]:
    waits = any(s.exposed and s.start <= at < s.end for s in one.spans)
    moving = [s for s in one.spans if s.resource == "network" and s.start <= at < s.end]
    turn = one.layers * one.forward.seconds
    if at == 0:
        return "the step begins", "the network is idle"
    if at >= one.passes_end + one.tail:
        return "the optimizer", "the network is idle"
    if at >= one.passes_end:
        layer = next(s.layers[0] for s in moving) + 1 if moving else 1
        return "all layers are done, the chip waits", f"gradients of layer {layer}"
    if at < turn:
        layer, when, next_ = int(at / one.forward.seconds), "forward", 1
    else:
        back = int((at - turn) / one.backward.seconds)
        layer, when, next_ = one.layers - 1 - back, "backward", -1
    layer = min(max(layer, 0), one.layers - 1)
    doing = f"{when}, layer {layer + 1} of {one.layers}{' waits' * waits}"
    if all(s.layers[1] - s.layers[0] == 1 for s in one.spans if s.what == "MLP"):
        doing += "".join(f", {s.what}" for s in one.spans
                         if s.what in ON_CHIP and s.start <= at < s.end)  # fmt: skip
    return doing, _moving(one, moving, layer, next_)


def _moving(one: StepLanes, moving: list[LaneSpan], layer: int, next_: int) -> str:
    """A text on what the network does for, or during, a layer."""
    if one.forward.gather:
        after, before = layer + next_ + 1, layer - next_ + 1
        words = [f"gathered: layer {layer + 1}"]
        if 1 <= after <= one.layers:
            words.append(f"next: {after}")
        if 1 <= before <= one.layers:
            words.append(f"forgotten: {before}")
        return ", ".join(words)
    found = []
    for span in moving:
        if span.what == "activations":
            found.append("activations of this layer")
        elif span.what == "gradients":
            found.append(f"gradients of layer {span.layers[0] + 1}")
    return " and ".join(dict.fromkeys(found)) or "the network is idle"


def _legend(top: float) -> Iterator[str]:
    x, y = EDGE, top + 14
    for words, colour, fill in LEGEND:
        yield box(x, y - 11, x + 14, y + 2, colour, fill=fill, edge=0, round=0)
        yield written(x + 20, y, words)
        x += 20 + text_width(words) + 16
