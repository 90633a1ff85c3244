"""The live figure "memory": what a chip holds in a step, and whether this fits."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from ...base.units import show
from ...hardware import chips
from ...training import StepMemory, Strategy, combine, data, fsdp, step, tensor, zero
from ...transformer import LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B
from ...transformer.remat import REMAT
from .. import svg
from ..labels import text_width
from ..picture import WIDEST
from ..shapes import box, framed, written
from .controls import Choice, Drawing, Figure, Slider

SEQ = 2048  # tokens of a sequence
MODELS = {one.name: one for one in (LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B)}
CHIPS = {one.name: one for one in chips.ALL if "hbm_bytes" in one.facts}
STAGES: dict[str, Callable[[str], Strategy]] = {
    "data parallel": data,
    "ZeRO-1": lambda axis: zero(1, axis),
    "ZeRO-2": lambda axis: zero(2, axis),
    "ZeRO-3, FSDP": fsdp,
}
PARTS = {  # part → its name in the picture, and its colour
    "state": ("optimizer state", "hue1"),
    "weights": ("weights", "hue5"),
    "gradients": ("gradients", "hue2"),
    "saved": ("saved activations", "hue3"),
    "computed again": ("a layer, again", "hue6"),
    "gathered": ("a layer, gathered", "hue4"),
    "in transit": ("in transit", "hue8"),
    "logits": ("logits", "hue7"),
}
EDGE, ROW, THICK, HIGH = 8, 25, 16, 30


class Setting(NamedTuple):
    """A model with one strategy: groups of Y chips. A group has its own sequences."""

    model: str
    stage: str
    remat: str
    Y: int
    seqs: int


@cache  # a page asks for the same again
def held(setting: Setting, groups: int) -> StepMemory:
    """The memory of a chip if the model is sharded over some number of groups."""
    name, stage, remat, Y, seqs = setting
    split = STAGES[stage]("X")
    both = combine(split, tensor("Y")) if Y > 1 else split
    axes = {"X": groups, "Y": Y}
    batch = seqs * groups
    return step(
        both, MODELS[name], axes, batch, SEQ, attention="causal", remat=remat
    ).memory


def fewest(setting: Setting, capacity: float) -> int | None:
    """The least number of groups, a power of two, with which the model fits, or None.

    For two groups or more, a chip holds a + b / groups, which two points determine.
    """
    if held(setting, 1).total <= capacity:
        return 1
    two, four = (held(setting, groups).total for groups in (2, 4))
    b = 4 * (two - four)
    room = capacity - (two - b / 2)
    if room <= 0:
        return None
    groups = 2 ** max(1, math.ceil(math.log2(max(b / room, 1))))
    return groups if groups <= MODELS[setting.model].D else None


def draw(
    model: str, chip: str, chips: int, stage: str, remat: str, Y: int, seqs: int
) -> Drawing:
    """The memory of one chip in parts, as bars to compare with its HBM."""
    setting = Setting(model, stage, remat, Y, seqs)
    capacity = CHIPS[chip].memory_bytes
    title = f"{model} on {chips:,} {chip}"
    if chips < Y:
        said = f"A group has {Y} chips: {chips} are too few."
        return Drawing(svg.message(title, said), said, (), {"total": None})
    memory = replace(held(setting, chips // Y), capacity=capacity)
    groups = fewest(setting, capacity)
    enough = None if groups is None else groups * Y
    said = "No number of chips is" if enough is None else f"{enough:,} of them are"
    summary = (
        f"{title}: {show(memory.total, 'capacity')} a chip. {_verdict(memory)} "
        f"{said} enough."
    )
    found = {
        "parts": dict(memory.parts),
        "total": memory.total,
        "capacity": capacity,
        "missing": memory.missing,
        "fits": memory.fits,
        "enough": enough,
    }
    picture = _picture(title, summary, memory)
    return Drawing(picture, summary, _readout(memory, enough), found)


def _verdict(memory: StepMemory) -> str:
    size = show(memory.capacity, "capacity")
    if memory.fits:
        return f"It fits into {size}."
    return f"It does not fit: {show(memory.missing, 'capacity')} more than {size}."


def _readout(memory: StepMemory, enough: int | None) -> tuple[tuple[str, ...], ...]:
    rows = [("", "a chip holds")]
    for part, nbytes in memory.parts.items():
        rows.append((PARTS[part][0], show(nbytes, "capacity")))
    rows += [
        ("all", show(memory.total, "capacity")),
        ("HBM", show(memory.capacity, "capacity")),
        ("missing", show(memory.missing, "capacity")),
        ("fewest chips, a power of two", "none" if enough is None else f"{enough:,}"),
    ]
    return tuple(rows)


def _picture(title: str, summary: str, memory: StepMemory) -> str:
    """All parts end to end next to the HBM, then each separately, on one scale."""
    longest = max(memory.total, memory.capacity)
    scale = (WIDEST - 2 * EDGE) / longest
    return framed(
        title, summary, _drawn(title, memory, scale), WIDEST, 92 + ROW * len(PARTS)
    )


def _drawn(title: str, memory: StepMemory, scale: float) -> Iterator[str]:
    yield written(EDGE, 18, title, bold=True)
    top, x = 28, EDGE
    for part, nbytes in memory.parts.items():
        end = x + scale * nbytes
        colour = PARTS[part][1]
        yield box(x, top, end, top + HIGH, colour, fill=0.8, edge=0, round=0, key=part)
        x = end
    limit = EDGE + scale * memory.capacity
    yield box(EDGE, top - 3, limit, top + HIGH + 3, "HBM", fill=0, edge=1, round=0,
              key="HBM")  # fmt: skip
    y = top + HIGH + 19
    words = f"HBM {show(memory.capacity, 'capacity')}"
    yield written(EDGE, y, words, "HBM", key="HBM's")
    words = f"held {show(memory.total, 'capacity')}"
    yield written(WIDEST - EDGE, y, words, anchor="end", key="held")
    yield from _rows(memory.parts, top + HIGH + 28, scale)


def _rows(parts: Mapping[str, float], top: float, scale: float) -> Iterator[str]:
    """A row for each part: its bar, its name and its bytes."""
    left = EDGE + max(text_width(name) for name, _ in PARTS.values()) + 8
    numbers = text_width("1,024 GiB") + 6
    longest = max(parts.values())
    room = min(scale, (WIDEST - EDGE - numbers - left) / longest)
    for n, (part, nbytes) in enumerate(parts.items()):
        y, (name, colour) = top + ROW * n, PARTS[part]
        right = left + room * nbytes
        yield written(left - 8, y + 13, name, colour, "end")
        yield box(left, y, right, y + THICK, colour, fill=0.8, edge=0, round=0,
                  key=f"{part} alone")  # fmt: skip
        yield written(right + 6, y + 13, show(nbytes, "capacity"), key=f"{part}'s")


FIGURE = Figure(
    "memory",
    "What one chip holds in a training step",
    (
        Choice("model", "Model", tuple(MODELS), LLAMA_3_70B.name),
        Choice("chip", "Chip", tuple(CHIPS), "H100", lambda name: chips.find(name).name,
               machine=True),
        Slider("chips", "Chips", "chips", 1, 4096, 16),
        Choice("stage", "Split over them", tuple(STAGES), "ZeRO-3, FSDP"),
        Choice("remat", "Remat", REMAT, "full"),
        Slider("Y", "Tensor parallel over", "chips", 1, 8, 1),
        Slider("seqs", f"Batch of a group, {SEQ:,} tokens each", "sequences", 1, 64, 1),
    ),
    draw,
    first="chips",
    presets={
        "data parallel": {"stage": "data parallel", "chips": 16},
        "ZeRO-1": {"stage": "ZeRO-1", "chips": 16},
        "FSDP over 16": {"stage": "ZeRO-3, FSDP", "chips": 16},
        "405B on H100": {"model": LLAMA_3_405B.name, "chip": "H100", "chips": 128},
    },
)  # fmt: skip
