"""Parallelism: where arrays lie, and the training step that follows from it.

>>> print(combine(fsdp("X"), tensor("Y")).weights["D"])
('X',)
"""

from .memory import PARTS, Memory
from .moves import Move
from .prefetching import Layer, Schedule, layer_of, prefetched
from .strategy import (
    Strategy,
    combine,
    context,
    data,
    expert,
    fsdp,
    hybrid,
    pipeline,
    tensor,
    zero,
)
from .training import WHEN, Step, step

__all__ = [
    "PARTS",
    "WHEN",
    "Layer",
    "Memory",
    "Move",
    "Schedule",
    "Step",
    "Strategy",
    "combine",
    "context",
    "data",
    "expert",
    "fsdp",
    "hybrid",
    "layer_of",
    "pipeline",
    "prefetched",
    "step",
    "tensor",
    "zero",
]
