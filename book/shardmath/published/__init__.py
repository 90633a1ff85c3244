"""Measurements that others published, beside what the closed forms allow.

>>> one = SWEEPS["b200"].at(16 * 2**30)
>>> print(one)
AllReduce of 17.2 GB on 8 B200: 35.6 ms, 1.86 times the 19.1 ms of the bound
"""

from .allreduce import NVLS, SWEEPS, Measured, NvlsRun, Sweep
from .single import NODES, SINGLE

__all__ = ["NODES", "NVLS", "SINGLE", "SWEEPS", "Measured", "NvlsRun", "Sweep"]
