"""Timed operations over their bounds, by the size of the bound: ``ops.csv``.

5.7 million matmuls, decode attentions and AllReduces on six GPUs, in bins. Whatever the
operation, a short one takes a few microseconds and a long one a multiple of its bound.

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
    """Operations of one kind whose bounds are about as long.

    Args:
        op: "matmul", "decode attention", "AllReduce of engines" or "AllReduce of NCCL".
        chip: by its name.
        format: of the inputs; of AllReduce, how many chips take part.
        bound: seconds in the middle of the bin; it is a third of a decade wide.
        points: how many there are.
        p10, median, p90: of measured over bound.
        beaten: points that are quicker than their bound: matmuls whose inputs are still
            in the L2 from the repetition before.
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
    """All bins, by operation, chip and format, the shortest first."""
    found = []
    for op, chip, form, *numbers in rows("ops.csv"):
        bound, points, p10, median, p90, beaten = numbers
        values = float(bound), int(points), float(p10), float(median), float(p90)
        found.append(OpBin(op, chip, form, *values, int(beaten)))
    return tuple(found)


def bins(op: str, chip: str, form: str) -> tuple[OpBin, ...]:
    """The bins of one operation on one chip in one format, the shortest first.

    Raises:
        ValueError: there are none; lists what there is of that operation.
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
