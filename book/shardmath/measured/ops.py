"""Times of operations ÷ their bounds, by the size of the bound, from ``ops.csv``.

The bins hold 5.7 million matmuls, decode attentions and AllReduces on six GPUs.
Whatever the operation, a short one takes a few microseconds, and a long one takes a
multiple of its bound.

>>> one = bins("matmul", "H100", "bf16")
>>> [f"{b.bound:.0e} s: {b.median:.2f}" for b in one if b.bound in (1e-6, 1e-4, 1e-2)]
['1e-06 s: 4.56', '1e-04 s: 1.29', '1e-02 s: 1.39']
"""

from functools import cache
from typing import NamedTuple

from ..base.facts import Source
from ..base.units import short_repr
from .rows import rows

SOURCE = Source(
    "aiconfigurator_ops",
    "aiconfigurator (NVIDIA), tables of timed operations at 095f58a51c",
    "https://github.com/ai-dynamo/aiconfigurator/tree/095f58a51c/aic-core/src/"
    "aiconfigurator_core/systems/data",
    "measured",
    "2026-11-28",
)


class OpBin(NamedTuple):
    """Operations of one kind whose bounds are about equally long.

    Args:
        op: "matmul", "decode attention", "AllReduce of engines" or "AllReduce of NCCL".
        chip: the name of the chip.
        format: the format of the inputs; for an AllReduce, the number of chips.
        bound: seconds in the middle of the bin, which is a third of a decade wide.
        points: the number of points.
        p10, median, p90: quantiles of measured ÷ bound.
        beaten: how many points beat their bound. These are matmuls whose inputs
            are still in the L2 cache from the previous repetition.
    """

    op: str
    chip: str
    format: str
    bound: float
    points: int
    p10: float
    median: float
    p90: float
    beaten: int


@cache
def all_bins() -> tuple[OpBin, ...]:
    """All bins by operation, chip and format, with the shortest bound first."""
    found = []
    for op, chip, form, *numbers in rows("ops.csv"):
        bound, points, p10, median, p90, beaten = numbers
        values = float(bound), int(points), float(p10), float(median), float(p90)
        found.append(OpBin(op, chip, form, *values, int(beaten)))
    return tuple(found)


def bins(op: str, chip: str, form: str) -> tuple[OpBin, ...]:
    """The bins of one operation on one chip in one format, the shortest bound first.

    Raises:
        ValueError: there are none. The message lists those of that operation.
    """
    found = tuple(one for one in all_bins() if one[:3] == (op, chip, form))
    if not found:
        some = {one[1:3] for one in all_bins() if one.op == op}
        known = sorted(f"{c} in {f}" for c, f in some) or sorted(
            {one.op for one in all_bins()}
        )
        raise ValueError(
            f"no bins of {short_repr(op)} on {short_repr(chip)} in {short_repr(form)}; "
            f"there are {', '.join(known)}"
        )
    return found
