"""Sharded arrays, matmuls and reshardings, from a line in the book's notation.

>>> print(array("bf16[B_X, D]", mesh={"X": 4}, B=1024, D=4096))
bf16[B_X, D]: [1024, 4096] in bf16, 8.39 MB; each of 4 devices holds [256, 4096], 2.1 MB
>>> print(contract("A[I, J_X] · B[J_X, K] -> C[I, K]", {"X": 4}, I=64, J=32, K=16))
A[I, J_X] · B[J_X, K] -> C[I, K]
case 3 over X: both operands are split along the contraction: partial sums to add up
  1. each multiplies A[I, J_X] · B[J_X, K] -> C[I, K]{U_X}
  2. AllReduce_X: C[I, K]{U_X} -> C[I, K], 3.07 kB sent
"""

from .arrays import array
from .contraction import Contraction, Crossing, contract, default_plan
from .layout import ShardedArray
from .matmul_timeline import CollectiveMatmul
from .plan import ShardingPlan
from .reshard_step import Change
from .resharding import Resharding, reshard

__all__ = [
    "Change",
    "CollectiveMatmul",
    "Contraction",
    "Crossing",
    "Resharding",
    "ShardedArray",
    "ShardingPlan",
    "array",
    "contract",
    "default_plan",
    "reshard",
]
