"""The live figure "lanes": what hides the network in a step, for three strategies."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...base.units import pluralize, show
from ...hardware import chips
from ...hardware.mesh import Mesh
from ...hardware.networks import network
from ...planner.machines import usual
from ...training import Step, combine, data, fsdp, step, tensor
from ...training.efficiencies import efficiencies
from ...training.job import usual_formats
from ...transformer import LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B
from .. import svg
from ..labels import text_width
from ..objects.lanes import ON_CHIP, LaneSpan, StepLanes, lanes
from ..picture import WIDEST
from ..shapes import box, framed, keyed, line, number, written
from ..theme import paint
from .controls import Choice, Drawing, Figure, Slider

SEQ = 4096  # tokens of a sequence, at most; the causal half of them is attended to
SHOWN = 20  # moments from the first start to the last end
BLOCKS = 4  # into which the layers are gathered where the whole step is drawn
MOST_TENSOR = 8  # chips that share a layer
DATA, FSDP, TENSOR, ALL = "data parallelism", "FSDP", "tensor parallelism", "all three"
SPELT = {"data": DATA, "fsdp": FSDP, "tensor": TENSOR, "all": ALL}
WHOLE, ZOOM = "the whole step", "two layers"
MODELS = {one.name: one for one in (LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B)}
CHIPS = tuple(
    chips.CHIPS[key].name
    for key in ("tpu_v5p", "tpu_v6e", "tpu_7x", "h100", "h200", "b200", "gb200")
)
EDGE, LEFT, RIGHT = 6, 76, WIDEST - 6
HEAD, GAP, BREAK = 24, 4, 14
LEGEND = (
    ("math", "math", 0.85),
    ("memory", "HBM", 0.85),
    ("network: hidden", "network", 0.35),
    ("exposed", "network", 1.0),
)


def draw(
    moment: int,
    strategy: str,
    tokens: int,
    count: int,
    chip: str,
    model: str,
    view: str,
) -> Drawing:
    """The lanes of a step up to a moment, under one strategy or under all three."""
    names = (DATA, FSDP, TENSOR) if strategy == ALL else (strategy,)
    title = f"{model} on {count:,} {chip}, {tokens:,} tokens per chip"
    some = {name: made(name, model, chip, count, tokens, view) for name in names}
    if isinstance(refused := next(iter(some.values())), str):
        return Drawing(svg.message(title, refused), refused, (), {"lanes": None}, SHOWN)
    clocks = {name: _clock(one, view) for name, one in some.items()}
    longest = max(one.seconds for one in clocks.values())
    now = longest * moment / SHOWN
    summary = _said(some, tokens)
    found = {name: _data(one) for name, one in some.items()}
    picture = _picture(title, summary, some, clocks, longest, now)
    return Drawing(picture, summary, _readout(some), {"lanes": found}, SHOWN)


@lru_cache(24)  # the next moment of the same is asked for next
def made(
    name: str, model: str, chip: str, count: int, tokens: int, view: str
) -> StepLanes | str:
    """The lanes of a strategy, or why there are none."""
    found = "no mesh"
    for sizes in _meshes(name, count):
        try:
            one = step_of(name, model, chip, count, tokens, sizes)
            blocks = BLOCKS if view == WHOLE else one.model.layers
            return lanes(one, blocks)
        except ValueError as error:
            found = str(error)
    return f"{name} over {count:,} {chip}: {found}."


def _meshes(name: str, count: int) -> Iterator[tuple[int, int]]:
    """Copies, and chips that share them: of tensor parallelism the most that go."""
    if name != TENSOR:
        yield count, 1
        return
    size = min(count, MOST_TENSOR)
    while size > 1:
        yield count // size, size
        size //= 2


def step_of(
    name: str, model: str, chip: str, count: int, tokens: int, sizes: tuple[int, int]
) -> Step:
    """The step of the layers alone, on `sizes`: copies, and chips that share them."""
    found = chips.find(chip)
    copies, shared = sizes
    if name == TENSOR:
        chosen, axes = tensor("tensor"), {"tensor": shared}
        if copies > 1:
            chosen = combine(data("data"), chosen)
            axes = {"data": copies, **axes}
    else:
        chosen, axes = (data if name == DATA else fsdp)("data"), {"data": copies}
    seq = min(tokens, SEQ)
    return step(
        chosen,
        MODELS[model],
        Mesh(network(usual(found, count)), axes),
        count * tokens // seq,
        seq,
        attention="causal",
        remat="none",
        formats=usual_formats(found, "bf16"),
        vocabulary=False,
    )


@dataclass(frozen=True)
class Clock:
    """The parts of a step that are shown, one after another.

    Args:
        panes: from when to when.
    """

    panes: tuple[tuple[float, float], ...]

    @property
    def seconds(self) -> float:
        return sum(end - start for start, end in self.panes)

    def at(self, elapsed: float) -> tuple[int, float]:
        """Which pane is on after so many seconds, and the time in the step."""
        for n, (start, end) in enumerate(self.panes):
            if elapsed <= end - start or n == len(self.panes) - 1:
                return n, min(start + elapsed, end)
            elapsed -= end - start
        raise AssertionError("a clock has a pane")

    def before(self, pane: int) -> float:
        """Seconds of the panes before one."""
        return sum(end - start for start, end in self.panes[:pane])


def _clock(one: StepLanes, view: str) -> Clock:
    if view == WHOLE:
        return Clock(((0.0, one.seconds),))
    first = one.layers // 2
    forward, backward = one.forward.seconds, one.backward.seconds
    ahead = one.starts(first, "forward")
    back = one.starts(first + 1, "backward")
    return Clock(((ahead, ahead + 2 * forward), (back, back + 2 * backward)))


# Words -------------------------------------------------------------------------------


def _data(one: StepLanes) -> dict[str, object]:
    likely = one.step.prediction
    parts = ("tensor", "weights", "update")
    return {
        "seconds": one.seconds,
        "exposed": one.exposed,
        "share": one.exposed / one.seconds,
        "tail": one.tail,
        "network": one.busy,
        "tolerance": one.tolerance,
        "bound": likely.bound,
        "predicted": likely.seconds,
        "band": [likely.low, likely.high],
        "predicted_exposed": sum(likely.parts[part] for part in parts),
        "held": one.step.memory.total,
        "capacity": one.step.memory.capacity,
    }


def _said(some: dict[str, StepLanes | str], tokens: int) -> str:
    """What happens, in a sentence for each strategy, and how likely it is."""
    if len(some) == 1:
        ((name, one),) = some.items()
        likely = one.step.prediction
        band = f"8 of 10 runs: {show(likely.low, 's')} to {show(likely.high, 's')}"
        layers = pluralize(f"{one.layers}", "layers")
        return (
            f"With {tokens:,} tokens per chip, {_happens(name, one)} The prediction "
            f"for the {layers} is {show(likely.seconds, 's')} ({band}), and no run can "
            f"take less than {show(likely.bound, 's')}.{_room(one)}"
        )
    found = {name: one for name, one in some.items() if isinstance(one, StepLanes)}
    times = [
        f"{show(one.step.prediction.seconds, 's')} under {name} "
        f"({one.exposed / one.seconds:.0%} of it exposed network)"
        for name, one in found.items()
    ]
    *most, last = times
    words = f"{', '.join(most)} and {last}" if most else last
    rooms = [f" Under {name}, a{_room(one)[3:]}" for name, one in found.items()
             if _room(one)]  # fmt: skip
    missing = [f" {one}" for one in some.values() if isinstance(one, str)]
    return (
        f"With {tokens:,} tokens per chip, the {next(iter(found.values())).layers} "
        f"layers are predicted to take {words}.{''.join((*rooms, *missing))}"
    )


def _happens(name: str, one: StepLanes) -> str:
    share = f"{one.exposed / one.seconds:.1%} of the step"
    if name == DATA:
        tail = show(one.tail, "s")
        last = " That is the last layer's alone." if _only_last(one) else ""
        return (
            f"the AllReduce of the gradients ends {tail} after the backward pass: "
            f"{share} is exposed.{last}"
        )
    exposed, busy = show(one.exposed, "s"), show(one.busy, "s")
    if name == FSDP:
        return (
            f"weights and gradients keep the network busy for {busy}, and {exposed} "
            f"of that, {share}, is exposed. In published runs, even where there is "
            f"enough math, other work does not hide {efficiencies().exposed:.0%} of "
            "a gather."
        )
    sizes = one.step.mesh.axes
    whose = "nothing hides the activations that they exchange"
    if one.step.mesh.network.chip.vendor == "Google":
        whose = "products hide the activations that they exchange, as TPUs overlap both"
    return (
        f"{sizes['tensor']} chips share every layer, and {whose}: the chip waits "
        f"{exposed} for the network, {share}."
    )


def _only_last(one: StepLanes) -> bool:
    return one.tail <= 1.001 * one.reduced


def _room(one: StepLanes) -> str:
    memory = one.step.memory
    if memory.total <= memory.capacity:
        return ""
    held, room = show(memory.total, "capacity"), show(memory.capacity, "capacity")
    return f" A chip would need {held} of {room}, so the layers do not fit."


def _readout(some: dict[str, StepLanes | str]) -> tuple[tuple[str, ...], ...]:
    found = {name: one for name, one in some.items() if isinstance(one, StepLanes)}
    likely = {name: one.step.prediction for name, one in found.items()}
    rows = [("", *found)]

    def row(label: str, values: Sequence[str]) -> None:
        rows.append((label, *values))

    each = list(found.values())
    row("mesh", [_mesh(one) for one in each])
    row("step, layer by layer", [show(one.seconds, "s") for one in each])
    row("exposed of that", [show(one.exposed, "s") for one in each])
    row("network busy", [show(one.busy, "s") for one in each])
    row("prediction", [show(one.seconds, "s") for one in likely.values()])
    row(
        "8 of 10 runs",
        [f"{show(one.low, 's')} to {show(one.high, 's')}" for one in likely.values()],
    )
    row(
        "exposed, in the prediction",
        [show(_data(one)["predicted_exposed"], "s") for one in each],
    )
    row("bound", [show(one.bound, "s") for one in likely.values()])
    row("a chip holds", [show(one.step.memory.total, "capacity") for one in each])
    row("of", [show(one.step.memory.capacity, "capacity") for one in each])
    return tuple(rows)


def _mesh(one: StepLanes) -> str:
    return " × ".join(f"{axis} {size:,}" for axis, size in one.step.mesh.axes.items())


# The picture -------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """Where seconds are on the page.

    Args:
        clock: which of them are shown.
        wide: units a second.
    """

    clock: Clock
    wide: float

    def left(self, pane: int) -> float:
        return LEFT + self.wide * self.clock.before(pane) + BREAK * pane

    def x(self, pane: int, seconds: float) -> float:
        return self.left(pane) + self.wide * (seconds - self.clock.panes[pane][0])

    def seen(self, span: LaneSpan) -> Iterator[tuple[int, float, float]]:
        """The panes in which a span is, and its ends on the page."""
        for pane, (start, end) in enumerate(self.clock.panes):
            low, high = max(start, span.start), min(end, span.end)
            if high > low:
                yield pane, self.x(pane, low), self.x(pane, high)


def _picture(
    title: str,
    summary: str,
    some: dict[str, StepLanes | str],
    clocks: dict[str, Clock],
    longest: float,
    now: float,
) -> str:
    breaks = max(len(one.panes) for one in clocks.values()) - 1
    wide = (RIGHT - LEFT - BREAK * breaks) / longest
    alone = len(some) == 1
    parts = [written(EDGE, 16, title, bold=True)]
    top, notes = 26.0, []
    for name, one in some.items():
        scale = Scale(clocks[name], wide)
        drawn, top = _panel(name, one, scale, top, now, alone)
        parts += drawn
        notes.append(f"{name}: {_described(one)}")
    if alone:
        parts += _caption(name, one, scale.clock.at(now)[1], top + 16)
        top += 44
    else:
        parts.append(written(LEFT, top + 14, f"at {show(now, 's')}", key="time"))
        top += 24
    parts += _legend(top)
    desc = (
        f"{summary} {' '.join(notes)} Math is above and the network below, on one "
        "clock. The picture has the layers alone, without embedding and head, and it "
        "draws the exchanges of a block of layers together: those of its weights "
        "before it, those of its activations after attention and after the MLP."
    )
    return framed(title, desc, parts, WIDEST, top + 24)


def _described(one: StepLanes) -> str:
    return (
        f"the step takes {show(one.seconds, 's')}, of which {show(one.exposed, 's')} "
        f"of the network is exposed."
    )


def _panel(
    name: str, one: StepLanes, scale: Scale, top: float, now: float, alone: bool
) -> tuple[list[str], float]:
    """A heading, the two lanes, a veil over what is still to come, the playhead."""
    head = f"{name}: {one.exposed / one.seconds:.1%} exposed"
    parts = [written(EDGE, top + 15, head, bold=not alone, key=f"{name}'s")]
    top += HEAD
    if alone:
        parts += _passes(one, scale, top)
        top += 20
    high = 38 if alone else 22
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
    """Rows by what is in them. Where weights and activations use the network at once,
    each has half of the lane."""
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
    """All spans; those of one kind and block are one shape."""
    blocks = min(BLOCKS, one.layers)
    found: dict[tuple, list[list[float]]] = defaultdict(list)
    for span in one.spans:
        block = span.layers[0] * blocks // one.layers
        if len(scale.clock.panes) > 1:
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
    """Paper over what is still to come, and the playhead at its edge."""
    clock = scale.clock
    pane, at = clock.at(now)
    x = scale.x(pane, at)
    end = scale.x(len(clock.panes) - 1, clock.panes[-1][1])
    yield box(x, top - 2, max(end, x), bottom + 2, "paper", fill=0.6, edge=0, round=0,
              key=f"{name} to come")  # fmt: skip
    yield line((x, top - 4), (x, bottom + 4), width=2, key=f"{name} playhead")
    for n in range(1, len(clock.panes)):  # where layers are left out
        middle = scale.left(n) - BREAK / 2
        yield line((middle, top - 2), (middle, bottom + 2), width=1.2, dashed=True,
                   opacity=0.6)  # fmt: skip


def _passes(one: StepLanes, scale: Scale, top: float) -> Iterator[str]:
    """What the chip does, over the lanes."""
    if len(scale.clock.panes) > 1:
        first = one.layers // 2 + 1
        for pane, when in enumerate(("forward", "backward")):
            order = (first, first + 1) if pane == 0 else (first + 1, first)
            words = f"{when}: layers {order[0]}, {order[1]}"
            wide = scale.wide * (scale.clock.panes[pane][1] - scale.clock.panes[pane][0])
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


def _caption(name: str, one: StepLanes, at: float, y: float) -> Iterator[str]:
    """What happens at the playhead, in two lines."""
    doing, more = _now(name, one, at)
    yield written(EDGE, y, f"at {show(at, 's')}: {doing}", key="time")
    yield written(EDGE, y + 20, more, "network", key="moving")


def _now(name: str, one: StepLanes, at: float) -> tuple[str, str]:
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
    return doing, _moving(name, one, moving, layer, next_)


def _moving(
    name: str, one: StepLanes, moving: list[LaneSpan], layer: int, next_: int
) -> str:
    """What the network does for, or under, a layer."""
    if name == FSDP:
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


FIGURE = Figure(
    "lanes",
    "The two lanes of a step",
    (
        Slider("moment", "Moment", "", 0, SHOWN, 0, step=1, play=True,
               printed=lambda stop: f"{stop} of {SHOWN}"),
        Choice("strategy", "Strategy", tuple(SPELT.values()), DATA,
               lambda name: SPELT.get(name, name)),
        Slider("tokens", "Tokens per chip", "", 256, 65_536, 512),
        Slider("count", "Chips", "chips", 8, 4096, 64),
        Choice("chip", "Chip", CHIPS, "TPU v5p", lambda n: chips.find(n).name,
               machine=True),
        Choice("model", "Model", tuple(MODELS), LLAMA_3_8B.name),
        Choice("view", "Show", (WHOLE, ZOOM), WHOLE),
    ),
    draw,
    first="moment",
    presets={
        "gradients too late": {"strategy": DATA, "tokens": 512, "chip": "TPU v5p",
                               "moment": SHOWN, "view": WHOLE},
        "gradients hidden": {"strategy": DATA, "tokens": 4096, "chip": "TPU v5p",
                             "moment": SHOWN, "view": WHOLE},
        "gather, use, forget": {"strategy": FSDP, "view": ZOOM, "moment": 0},
        "all three on H100": {"strategy": ALL, "chip": "H100", "moment": SHOWN,
                              "view": WHOLE},
    },
)  # fmt: skip
