"""Amounts that mesh axes divide, and their values on a given mesh.

The bytes that one chip holds of an array are the bytes of the array, divided by the
product of the sizes of the axes that shard it. So we keep an amount as a sum of terms,
each with the names of the axes that divide the term, and evaluate the sum once we know
the sizes:

    A = Σ amount / Π |axis| · share of the batch
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from ..sharding import ShardedArray, ShardingPlan
from .memory import HeldBytes

Names = tuple[str, ...]
Sizes = Mapping[str, int]
Divisors = tuple[Names, str]  # mesh axes; "B" or "slots" if it scales with the batch
Amounts = Mapping[Divisors, float]
Wire = tuple[str, Names, str]  # operation, mesh axes, and the kind of a hop or exchange


def zeros() -> dict:
    """An empty mapping of amounts, to which others can be added."""
    return defaultdict(float)


@dataclass(frozen=True)
class MovedBytes:
    """The bytes that one kind of operation moves over the same axes.

    Args:
        nbytes: bytes V of the arrays, added up over all runs, by the axes that divide
            the arrays and by how often the move repeats: "M" for every microbatch, "n"
            for every hop round a ring.
    """

    nbytes: dict[tuple[Divisors, str], float] = field(default_factory=zeros)


class Ways:
    """Into how many parts some axes of one mesh split an array.

    >>> Ways({"X": 4, "Y": 2})(("X", "Y"))
    8
    """

    def __init__(self, sizes: Sizes):
        self.sizes = sizes
        self._known: dict[Names, int] = {}

    def __call__(self, axes: Names) -> int:
        if axes not in self._known:
            self._known[axes] = prod(self.sizes[axis] for axis in axes)
        return self._known[axes]


def divisors_of(array: ShardedArray, more: Names = ()) -> Divisors:
    """The divisors of an amount that is sharded in the same way as `array`.

    Args:
        array: the sharded array.
        more: further axes that divide the amount.
    """
    batch = next((dim for dim in ("slots", "B") if dim in array.dims), "")
    return tuple(sorted((*array.axes, *more))), batch


def bytes_held(some: Iterable[HeldBytes]) -> dict[Divisors, float]:
    """Bytes of arrays on all chips together, grouped by the arrays' divisors."""
    found = zeros()
    for one in some:
        found[divisors_of(one.array, one.turns)] += one.width * prod(one.array.sizes)
    return dict(found)


def flops_of(plan: ShardingPlan) -> tuple[Divisors, float]:
    """The axes that divide a matmul's FLOPs, and its FLOPs on all chips, 2·m·k·n."""
    sizes = dict(zip(plan.a.dims, plan.a.sizes, strict=True))
    sizes |= dict(zip(plan.b.dims, plan.b.sizes, strict=True))
    axes = {axis for array in (plan.a, plan.b) for axis in array.axes}
    batch = next((dim for dim in ("slots", "B") if dim in sizes), "")
    return (tuple(sorted(axes)), batch), 2.0 * prod(sizes.values())


def total(parts: Iterable[tuple[float, Amounts]]) -> dict[Divisors, float]:
    """The sum of amounts, each multiplied by the number paired with it."""
    found = zeros()
    for times, amounts in parts:
        for key, amount in amounts.items():
            found[key] += times * amount
    return dict(found)


def evaluate(
    amounts: Amounts, ways: Callable[[Names], int], batch: Mapping[str, float]
) -> float:
    """One chip's part of some amounts on a mesh.

    Args:
        amounts: the terms to add up.
        ways: into how many parts given mesh axes split an array; see `Ways`.
        batch: the share of the batch in one pass, by "", "B" and "slots".

    >>> amounts = {(("X",), "B"): 64.0, ((), ""): 3.0}
    >>> evaluate(amounts, Ways({"X": 4}), {"": 1, "B": 0.5})
    11.0
    """
    found = 0.0
    for (axes, kind), amount in amounts.items():
        found += amount / ways(axes) * batch[kind]
    return found
