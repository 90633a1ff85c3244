"""Amounts that mesh axes divide, and what they come to on a mesh.

What one chip holds of an array is the array over the product of the sizes of the axes
that it is sharded over. So an amount is kept as a sum of terms, each with the names of
the axes that divide it, and is evaluated once the sizes are known:

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
Divisors = tuple[Names, str]  # axes that divide; "B" or "slots" where the batch does
Amounts = Mapping[Divisors, float]
Wire = tuple[str, Names, str]  # operation, mesh axes, and the kind of a hop or exchange


def zeros() -> dict:
    """Amounts to add to."""
    return defaultdict(float)


@dataclass(frozen=True)
class MovedBytes:
    """What moves by one operation over the same axes.

    Args:
        nbytes: V of all runs, by what divides it, and by how often it is repeated:
            "M" for every microbatch, "n" for every hop round a ring.
    """

    nbytes: dict[tuple[Divisors, str], float] = field(default_factory=zeros)


class Ways:
    """Into how many parts mesh axes split something, on one mesh.

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
    """What divides an amount that is sharded as `array` is.

    Args:
        array: where it is.
        more: axes that divide it besides.
    """
    batch = next((dim for dim in ("slots", "B") if dim in array.dims), "")
    return tuple(sorted((*array.axes, *more))), batch


def bytes_held(some: Iterable[HeldBytes]) -> dict[Divisors, float]:
    """Bytes of arrays, of all chips together, by what divides them."""
    found = zeros()
    for one in some:
        found[divisors_of(one.array, one.turns)] += one.width * prod(one.array.sizes)
    return dict(found)


def flops_of(plan: ShardingPlan) -> tuple[Divisors, float]:
    """What divides the FLOPs of a matmul, and the FLOPs of all chips: two a product."""
    sizes = dict(zip(plan.a.dims, plan.a.sizes, strict=True))
    sizes |= dict(zip(plan.b.dims, plan.b.sizes, strict=True))
    axes = {axis for array in (plan.a, plan.b) for axis in array.axes}
    batch = next((dim for dim in ("slots", "B") if dim in sizes), "")
    return (tuple(sorted(axes)), batch), 2.0 * prod(sizes.values())


def total(parts: Iterable[tuple[float, Amounts]]) -> dict[Divisors, float]:
    """The sum of amounts, each taken so many times."""
    found = zeros()
    for times, amounts in parts:
        for key, amount in amounts.items():
            found[key] += times * amount
    return dict(found)


def evaluate(
    amounts: Amounts, ways: Callable[[Names], int], batch: Mapping[str, float]
) -> float:
    """An amount on a mesh: that of one chip.

    Args:
        amounts: what to add up.
        ways: into how many parts mesh axes split something.
        batch: the share of the batch in a pass, by "", "B" and "slots".

    >>> amounts = {(("X",), "B"): 64.0, ((), ""): 3.0}
    >>> evaluate(amounts, Ways({"X": 4}), {"": 1, "B": 0.5})
    11.0
    """
    found = 0.0
    for (axes, kind), amount in amounts.items():
        found += amount / ways(axes) * batch[kind]
    return found
