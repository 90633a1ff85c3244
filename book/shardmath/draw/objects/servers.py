"""Servers that the live figures play: a model, a machine, a layout and formats."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from ...hardware import chips
from ...hardware.networks import network
from ...inference import Formats, Layout, Server
from ...serving import Deployment, Stretch
from ...transformer import (
    DEEPSEEK_V3,
    GPT_OSS_120B,
    LLAMA_2_70B,
    LLAMA_3_8B,
    LLAMA_3_70B,
    LLAMA_3_405B,
    QWEN_3_235B_A22B,
)
from ..shapes import keyed, number
from ..theme import paint

MODELS = {  # that a reader can choose
    one.name: one
    for one in (
        LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B, LLAMA_2_70B, GPT_OSS_120B,
        QWEN_3_235B_A22B, DEEPSEEK_V3,
    )
}  # fmt: skip
CHIPS = {
    chips.CHIPS[key].name: chips.CHIPS[key]
    for key in ("tpu_v5e", "tpu_v5p", "tpu_v6e", "tpu_7x", "h100", "h200", "b200")
}
JOBS = {
    "8B on an H100": (LLAMA_3_8B, "h100:1", Layout(), Formats()),
    "70B on 2 H100, fp8": (LLAMA_3_70B, "h100:2", Layout(2), Formats("fp8")),
    "70B on 8 H100, fp8": (LLAMA_3_70B, "h100:8", Layout(8), Formats("fp8")),
    "70B on 8 v5e, int8": (LLAMA_3_70B, "v5e:2x4", Layout(8), Formats("int8")),
    "DeepSeek-V3 on 8 H200": (
        DEEPSEEK_V3, "h200:8", Layout(data=8, expert=8), Formats("fp8"),
    ),
}  # fmt: skip


@cache
def deployment(job: str) -> Deployment:
    """The server of a job, a key of `JOBS`."""
    model, machine, layout, formats = JOBS[job]
    on = network(machine)
    return Deployment(on, Server(model, on, layout, formats), 1)


def averaged(
    stretches: Iterable[Stretch], field: str, end: float, columns: int
) -> list[float]:
    """The mean of a field of stretches in each of the columns from 0 to `end`."""
    found, wide = [0.0] * columns, end / columns
    for one in stretches:
        value = getattr(one, field)
        if not value or one.start >= end:
            continue
        first, until = one.start, min(one.end, end)
        for column in range(int(first / wide), min(int(until / wide), columns - 1) + 1):
            low, high = column * wide, (column + 1) * wide
            found[column] += value * (min(until, high) - max(first, low)) / wide
    return found


def steps_between(
    stretches: Iterable[Stretch], start: float, end: float
) -> Iterator[tuple[float, float, Stretch]]:
    """(start, end, stretch) of each step that overlaps a span of time."""
    for one in stretches:
        if one.end <= start or one.start >= end:
            continue
        wide = (one.end - one.start) / one.steps
        first = max(0, int((start - one.start) / wide))
        for step in range(first, one.steps):
            low = one.start + step * wide
            if low >= end:
                break
            if low + wide > start:
                yield max(low, start), min(low + wide, end), one


def area(
    values: Sequence[float],
    most: float,
    place: tuple[float, float, float, float],
    colour: str,
    key: str,
) -> str:
    """Values as a filled area. `place` is its left, top, right and bottom."""
    left, top, right, bottom = place
    wide = (right - left) / len(values)
    path = [f"M{number(left)} {number(bottom)}"]
    for column, value in enumerate(values):
        y = bottom - (bottom - top) * min(value / most, 1.0)
        path.append(f"V{number(y)}H{number(left + (column + 1) * wide)}")
    path.append(f"V{number(bottom)}Z")
    return (
        f'<path d="{"".join(path)}" fill="{paint(colour)}" fill-opacity="0.75"'
        f"{keyed(key)}/>"
    )
