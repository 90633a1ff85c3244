"""Parallelism: how arrays are sharded, and the training step that follows from it.

>>> print(combine(fsdp("X"), tensor("Y")).weights["D"])
('X',)
"""

from .communication import Move
from .memory import PARTS, StepMemory
from .prediction import Prediction, Software
from .prefetching import Layer, PrefetchSchedule, layer_of, prefetched
from .step import WHEN, Step, step
from .strategy import (
    Strategy,
    combine,
    context,
    data,
    expert,
    fold_experts,
    fsdp,
    hybrid,
    pipeline,
    tensor,
    zero,
)

__all__ = [
    "PARTS",
    "WHEN",
    "Layer",
    "Move",
    "Prediction",
    "PrefetchSchedule",
    "Software",
    "Step",
    "StepMemory",
    "Strategy",
    "combine",
    "context",
    "data",
    "expert",
    "fold_experts",
    "fsdp",
    "hybrid",
    "layer_of",
    "pipeline",
    "prefetched",
    "step",
    "tensor",
    "zero",
]
