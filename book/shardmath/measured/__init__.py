"""Measurements that others published, compared with the bounds of closed forms.

>>> one = SWEEPS["b200"].at(16 * 2**30)
>>> print(one)
AllReduce of 17.2 GB on 8 B200: 35.6 ms, 1.86 times the 19.1 ms of the bound \
and 1.86 times what is expected
>>> RUNS[0]
MaxText: maxtext 22b on 64 TPU v4, FSDP: 13.8 s a step of 1,050,000 tokens.
"""

from .allreduce import NVLS, SWEEPS, Measured, NvlsRun, Sweep
from .dispatch import DISPATCH, Exchange
from .expert_matmuls import EXPERT_MATMULS, ExpertMatmuls, expert_matmuls
from .kernels import KERNELS
from .run import Run, counted
from .scaling import SCALING, ScalingPoint
from .single import NODES, SINGLE
from .training import RUNS, ratios, unseen_runs

__all__ = [
    "DISPATCH",
    "EXPERT_MATMULS",
    "KERNELS",
    "NODES",
    "NVLS",
    "RUNS",
    "SCALING",
    "SINGLE",
    "SWEEPS",
    "Exchange",
    "ExpertMatmuls",
    "Measured",
    "NvlsRun",
    "Run",
    "ScalingPoint",
    "Sweep",
    "counted",
    "expert_matmuls",
    "ratios",
    "unseen_runs",
]
