"""Measured rates of dispatch and combine, the AllToAlls of experts."""

from typing import NamedTuple

from ..base.facts import Source
from .rows import rows

SOURCE = Source(
    "deepep",
    "DeepEP (DeepSeek), performance of V1, normal kernels with NVLink and RDMA",
    "https://github.com/deepseek-ai/DeepEP/blob/0297fc8017/docs/legacy.md",
    "measured",
    "2026-11-22",
)


class Exchange(NamedTuple):
    """Bytes/s of one GPU, and the network that limits them, both as printed."""

    gpus: int
    level: str
    dispatch: float
    combine: float


# H800 in nodes of 8; fewest GPUs first.
DISPATCH = tuple(
    Exchange(int(gpus), level, 1e9 * float(there), 1e9 * float(back))
    for gpus, level, there, back in rows("dispatch.csv")
)
