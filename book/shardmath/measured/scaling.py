"""How the rate of one GPU falls as more GPUs share a step."""

from typing import NamedTuple

from ..base.facts import Source
from .rows import rows

SOURCE = Source(
    "ultrascale_scaling",
    "The Ultra-Scale Playbook (Hugging Face): data of its plots of throughput by ways "
    "of data and of tensor parallelism",
    "https://github.com/vinjn/nanotron-ultrascale-playbook/tree/924e4d0b88/assets/data/"
    "benchmarks",
    "measured",
    "2026-11-22",
)


class ScalingPoint(NamedTuple):
    """Tokens per second of one GPU, and the largest batch that fits, if known."""

    ways: int
    tokens_per_second: float
    batch: int | None = None


def _points() -> dict[str, tuple[ScalingPoint, ...]]:
    found: dict[str, tuple[ScalingPoint, ...]] = {}
    for kind, ways, tokens, batch in rows("scaling.csv"):
        point = ScalingPoint(int(ways), float(tokens), int(batch) if batch else None)
        found[kind] = (*found.get(kind, ()), point)
    return found


# By kind: "data", "tensor", "tensor and sequence"; fewest ways first.
SCALING = _points()
