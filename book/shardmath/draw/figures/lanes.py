"""The live figure "lanes": how three strategies hide the network in a step."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from ...base.units import pluralize, show
from ...hardware import chips
from ...hardware.mesh import Mesh
from ...hardware.networks import network
from ...hardware.networks.usual import usual
from ...training import Step, combine, data, fsdp, step, tensor
from ...training.efficiencies import efficiencies
from ...training.job import usual_formats
from ...transformer import LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B
from .. import svg
from ..objects.lanes import StepLanes, lanes
from ..objects.two_lanes import BLOCKS, Window, two_lanes
from .controls import Choice, Drawing, Figure, Slider

SEQ = 4096  # tokens of a sequence, at most; attention is causal
SHOWN = 20  # moments from the first start to the last end
MOST_TENSOR = 8  # chips that share a layer
DATA, FSDP, TENSOR, ALL = "data parallelism", "FSDP", "tensor parallelism", "all three"
SPELT = {"data": DATA, "fsdp": FSDP, "tensor": TENSOR, "all": ALL}
WHOLE, ZOOM = "the whole step", "two layers"
MODELS = {one.name: one for one in (LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B)}
CHIPS = tuple(
    chips.CHIPS[key].name
    for key in ("tpu_v5p", "tpu_v6e", "tpu_7x", "h100", "h200", "b200", "gb200")
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
    """The lanes of a step up to a moment, for one strategy or for all three."""
    names = (DATA, FSDP, TENSOR) if strategy == ALL else (strategy,)
    title = f"{model} on {count:,} {chip}, {tokens:,} tokens per chip"
    found = {name: made(name, model, chip, count, tokens, view) for name in names}
    some = {name: one for name, one in found.items() if isinstance(one, StepLanes)}
    missing = " ".join(one for one in found.values() if isinstance(one, str))
    if not some:
        return Drawing(svg.message(title, missing), missing, (), {"lanes": {}}, SHOWN)
    windows = {name: _window(one, view) for name, one in some.items()}
    now = moment / SHOWN * max(one.seconds for one in windows.values())
    summary = f"{_said(some, tokens)} {missing}".strip()
    picture = two_lanes(title, summary, some, windows, now)
    data = {name: _data(one) for name, one in some.items()}
    return Drawing(picture, summary, _readout(some), {"lanes": data}, SHOWN)


@lru_cache(24)  # the next moment of the same is asked for next
def made(
    name: str, model: str, chip: str, count: int, tokens: int, view: str
) -> StepLanes | str:
    """The lanes of a strategy, or the reason why there are none."""
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
    """(copies, chips that share one), with the most tensor parallelism first."""
    if name != TENSOR:
        yield count, 1
        return
    size = min(count, MOST_TENSOR)
    while size > 1:
        yield count // size, size
        size //= 2


@lru_cache(24)  # both views show the same step
def step_of(
    name: str, model: str, chip: str, count: int, tokens: int, sizes: tuple[int, int]
) -> Step:
    """The step of only the layers. `sizes` are the copies, and the chips per copy."""
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


def _window(one: StepLanes, view: str) -> Window:
    if view == WHOLE:
        return Window(((0.0, one.seconds),))
    first = one.layers // 2
    forward, backward = one.forward.seconds, one.backward.seconds
    ahead = one.starts(first, "forward")
    back = one.starts(first + 1, "backward")
    return Window(((ahead, ahead + 2 * forward), (back, back + 2 * backward)))


# Words -------------------------------------------------------------------------------


def _data(one: StepLanes) -> dict[str, object]:
    likely = one.step.prediction
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
        "predicted_exposed": _predicted_exposed(one),
        "held": one.step.memory.total,
        "capacity": one.step.memory.capacity,
    }


def _said(some: Mapping[str, StepLanes], tokens: int) -> str:
    """A text on what happens and how long it takes by prediction, longer if there is
    only one strategy."""
    layers = pluralize(f"{next(iter(some.values())).layers}", "layers")
    if len(some) == 1:
        ((name, one),) = some.items()
        likely = one.step.prediction
        band = f"8 of 10 runs: {show(likely.low, 's')} to {show(likely.high, 's')}"
        return (
            f"With {tokens:,} tokens per chip, {_happens(name, one)} The prediction "
            f"for the {layers} is {show(likely.seconds, 's')} ({band}), and no run can "
            f"take less than {show(likely.bound, 's')}.{_room(one)}"
        )
    times = [
        f"{show(one.step.prediction.seconds, 's')} under {name} "
        f"({one.exposed / one.seconds:.1%} of it exposed network)"
        for name, one in some.items()
    ]
    *most, last = times
    rooms = "".join(
        f" Under {name}, a{_room(one)[2:]}" for name, one in some.items() if _room(one)
    )
    return (
        f"With {tokens:,} tokens per chip, the {layers} are predicted to take "
        f"{', '.join(most)} and {last}.{rooms}"
    )


def _happens(name: str, one: StepLanes) -> str:
    share = f"{one.exposed / one.seconds:.1%} of the step"
    if name == DATA:
        tail = show(one.tail, "s")
        last = " It is the AllReduce of the last layer." if _only_last(one) else ""
        return (
            f"the AllReduce of the gradients ends {tail} after the backward pass: "
            f"{share} is exposed.{last}"
        )
    exposed, busy = show(one.exposed, "s"), show(one.busy, "s")
    if name == FSDP:
        return (
            f"weights and gradients keep the network busy for {busy}, and {exposed} "
            f"of that, {share}, is exposed. The fit to published runs says that "
            f"{efficiencies().exposed:.0%} of a gather stays exposed even where there "
            "is enough math to hide it."
        )
    how = (
        "Unless the software of a GPU overlaps them, nothing runs while they exchange "
        "activations"
    )
    if one.step.mesh.network.chip.vendor == "Google":
        how = "On a TPU, products hide only a part of the exchanges of activations"
    end = f", {show(one.tail, 's')} of it for gradients at the end" if one.tail else ""
    return (
        f"{one.step.mesh.axes['tensor']} chips share every layer. {how}, so a chip "
        f"waits {exposed} for the network{end}: {share}."
    )


def _only_last(one: StepLanes) -> bool:
    return one.tail <= 1.001 * one.reduced


def _room(one: StepLanes) -> str:
    memory = one.step.memory
    if memory.total <= memory.capacity:
        return ""
    held, room = show(memory.total, "capacity"), show(memory.capacity, "capacity")
    return f" A chip would need {held} of {room}, so the layers do not fit."


def _readout(some: Mapping[str, StepLanes]) -> tuple[tuple[str, ...], ...]:
    rows = {
        "drawn": lambda one: f"{one.layers} layers, no embedding, no head",
        "mesh": _mesh,
        "step, layer by layer": lambda one: show(one.seconds, "s"),
        "exposed of that": lambda one: show(one.exposed, "s"),
        "network busy": lambda one: show(one.busy, "s"),
        "prediction": lambda one: show(one.step.prediction.seconds, "s"),
        "8 of 10 runs": _band,
        "exposed, in the prediction": lambda one: show(_predicted_exposed(one), "s"),
        "bound": lambda one: show(one.step.prediction.bound, "s"),
        "a chip holds": lambda one: show(one.step.memory.total, "capacity"),
        "of": lambda one: show(one.step.memory.capacity, "capacity"),
    }
    body = ((label, *map(said, some.values())) for label, said in rows.items())
    return (("", *some), *body)


def _band(one: StepLanes) -> str:
    likely = one.step.prediction
    return f"{show(likely.low, 's')} to {show(likely.high, 's')}"


def _predicted_exposed(one: StepLanes) -> float:
    parts = one.step.prediction.parts
    return sum(parts[name] for name in ("tensor", "weights", "update"))


def _mesh(one: StepLanes) -> str:
    return " × ".join(f"{axis} {size:,}" for axis, size in one.step.mesh.axes.items())


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
