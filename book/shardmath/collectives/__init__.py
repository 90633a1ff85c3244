"""Collectives on sharded arrays: how many bytes the chips send, and how long it takes.

>>> from shardmath.hardware.chips import TPU_V5P
>>> from shardmath.hardware.mesh import Mesh
>>> from shardmath.hardware.networks import Torus
>>> mesh = Mesh(Torus(TPU_V5P, (8, 8, 8)), {"X": 8, "Y": 64})
>>> print(all_gather(64e6, mesh, "X"))
AllGather over X (8 devices), 64 MB: at least 280 µs at the rate of ICI, \
284 µs expected with 4 µs of latency
"""

from .algorithms import ALGORITHMS, PROTOCOLS, nccl_all_reduce
from .collective import NAMES, AxisNames, Collective
from .hierarchy import Hierarchy
from .price import (
    Priced,
    all_gather,
    all_reduce,
    all_to_all,
    permute,
    price,
    price_of,
    ragged_all_to_all,
    reduce_scatter,
)

__all__ = [
    "ALGORITHMS",
    "NAMES",
    "PROTOCOLS",
    "AxisNames",
    "Collective",
    "Hierarchy",
    "Priced",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "nccl_all_reduce",
    "permute",
    "price",
    "price_of",
    "ragged_all_to_all",
    "reduce_scatter",
]
