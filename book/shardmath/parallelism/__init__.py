"""Parallelism: where arrays lie, and the training step that follows from it.

>>> print(combine(fsdp("X"), tensor("Y")).weights["D"])
('X',)
"""

from .memory import PARTS, Memory
from .moves import Move
from .prefetching import Layer, Schedule, layer_of, prefetched
from .strategy import Strategy, combine, data, fsdp, hybrid, tensor, zero
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
    "data",
    "fsdp",
    "hybrid",
    "layer_of",
    "prefetched",
    "step",
    "tensor",
    "zero",
]
