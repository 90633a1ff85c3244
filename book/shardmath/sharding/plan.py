"""Plans for a sharded matmul: the collectives before and after the local product.

Every mesh axis splits the product in one of four ways: along a dimension of the result
(nothing to add up), along the contraction (every device gets one term of a sum), along
the terms of an operand that is a partial sum (then the result is one too), or not at
all (all devices compute the same). A plan chooses one of these for each axis.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product

from ..base.estimate import Estimate, Leg
from ..base.units import positive, short_repr
from ..collectives import Collective
from ..hardware.chips import Chip
from ..hardware.mesh import Mesh
from .bind_axes import named_axes
from .layout import Names, Placed, ShardedArray
from .machine import chip_of
from .prices import Prices
from .reshard_graph import State
from .reshard_search import way
from .reshard_step import Change, placements

UNREDUCED = "{U}"  # the place of an axis along which devices hold terms of a sum


@dataclass(frozen=True, repr=False)
class ShardingPlan:
    """One way to do a sharded matmul.

    Args:
        before: changes of the operands to the shardings that the product needs.
        a, b, c: operands and result with the shardings of the local product.
        after: changes of the result to the wanted sharding.
    """

    before: tuple[Change, ...]
    a: ShardedArray
    b: ShardedArray
    c: ShardedArray
    after: tuple[Change, ...]

    @cached_property
    def moved(self) -> tuple[Change, ...]:
        """The changes that send anything, in order."""
        return tuple(step for step in self.before + self.after if step.collective)

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives of `moved`, in order."""
        return tuple(step.collective for step in self.moved)

    @cached_property
    def sent(self) -> float:
        """Bytes that one device sends."""
        return sum(c.total_sent for c in self.collectives)

    @cached_property
    def flops(self) -> float:
        """FLOPs of one device: two for every multiply-add."""
        local = dict(zip(self.a.dims, self.a.local_sizes, strict=True))
        local |= dict(zip(self.b.dims, self.b.local_sizes, strict=True))
        return 2 * math.prod(local.values())

    @cached_property
    def nbytes(self) -> float:
        """Bytes of one device's operands and result; each crosses HBM once."""
        return sum(x.local_nbytes for x in (self.a, self.b, self.c))

    @property
    def product(self) -> str:
        """The local product of every device, in the notation."""
        return f"{self.a.notation} · {self.b.notation} -> {self.c.notation}"

    @cached_property
    def moves(self) -> str:
        """The collectives, in a few words such as "AllGather_X B"."""
        said = (f"{s.title} {s.before.name or s.before.notation}" for s in self.moved)
        return ", ".join(said) or "nothing"

    def __repr__(self) -> str:
        return f"<{self.product}, moved: {self.moves}>"

    def estimate(self, mesh: Mesh | Chip | Prices, precision: str) -> Estimate:
        """Math, HBM and network time on a `Mesh` of known chips.

        The network leg is the time of the busiest links; the leg's `slack` is the time
        added if all collectives run in turn. The estimate leaves out the HBM traffic of
        the collectives and any delays between them and the product.

        Raises:
            ValueError: the mesh has no chip, or its chip has no peak for `precision`.
        """
        legs = self.legs(mesh, precision)
        return Estimate(f"{self.product} (moved: {self.moves})", legs)

    def legs(self, mesh: Mesh | Chip | Prices, precision: str) -> tuple[Leg, ...]:
        """The legs of `estimate`, without its title."""
        prices = mesh if isinstance(mesh, Prices) else Prices(mesh)
        chip = chip_of(prices.mesh)
        legs = (
            Leg("math", self.flops, chip.flops[precision]),
            Leg("HBM", self.nbytes, chip.hbm_bandwidth),
        )
        return (*legs, prices.leg(self.collectives)) if self.collectives else legs

    def resized(self, dim: str, size: float) -> "ShardingPlan":
        """The same plan with another size of `dim`.

        Raises:
            ValueError: there is no such dimension, or the size is not above 0.
        """
        known = tuple(dict.fromkeys(self.a.dims + self.b.dims))
        if not isinstance(dim, str) or dim not in known:
            raise ValueError(
                f"dimension {short_repr(dim)}: must be one of {', '.join(known)}"
            )
        (size,) = positive(**{dim: size})

        def changes(old: tuple[Change, ...]) -> tuple[Change, ...]:
            return tuple(
                replace(
                    step,
                    before=step.before.resized(dim, size),
                    after=step.after.resized(dim, size),
                )
                for step in old
            )

        a, b, c = (x.resized(dim, size) for x in (self.a, self.b, self.c))
        return ShardingPlan(changes(self.before), a, b, c, changes(self.after))


Operands = tuple[ShardedArray, ShardedArray, ShardedArray]  # a and b, and the result


def contracted(a: ShardedArray, b: ShardedArray, c: ShardedArray) -> tuple[str, ...]:
    """The dimensions that are summed over."""
    return tuple(d for d in a.dims if d in b.dims and d not in c.dims)


def place_of(axis: str, array: ShardedArray) -> str | None:
    """The dimension that `axis` splits; `UNREDUCED` for partial sums; or None."""
    if axis in array.unreduced:
        return UNREDUCED
    pairs = zip(array.dims, array.placed, strict=True)
    return next((dim for dim, axes in pairs if axis in axes), None)


def case_of(axis: str, a: ShardedArray, b: ShardedArray, c: ShardedArray) -> int:
    """The case of the matmul along one mesh axis, from 1 to 4."""
    in_a, in_b, summed = place_of(axis, a), place_of(axis, b), contracted(a, b, c)
    if in_a in summed and in_a == in_b:
        return 3
    if in_a in summed or in_b in summed:
        return 2
    return 4 if in_a and in_b and in_a != in_b else 1


def named_by_case(
    axis: str, a: ShardedArray, b: ShardedArray, c: ShardedArray
) -> set[str | None]:
    """The dimensions along which the case may split the product over `axis`; None
    stands for no split.

    Operands keep their sharding unless the case says that one must be gathered. If both
    could be, the wanted result decides or, failing that, the number of bytes.
    """
    in_a, in_b, in_c = (place_of(axis, x) for x in (a, b, c))
    summed = contracted(a, b, c)
    if UNREDUCED in (in_a, in_b):
        return {UNREDUCED}
    if in_a == in_b and in_a:
        return {in_a}
    stay = {dim for dim in (in_a, in_b) if dim and dim not in summed}
    if stay:
        return {in_c} if in_c in stay else stay
    if in_c == UNREDUCED:
        return set(summed)
    if in_a and in_b:  # two contracted dimensions over one axis
        return {in_a, in_b}
    return {in_c}


@dataclass(frozen=True, slots=True)
class Split:
    """How the product is split: the states of a, b and c in the local product."""

    a: State
    b: State
    c: State
    by_case: bool


def named_plan(
    a: ShardedArray, b: ShardedArray, c: ShardedArray
) -> ShardingPlan | None:
    """The plan of the case, or None if blocks would be of unequal size."""
    axes = named_axes((a, b, c))
    found = (
        plan
        for split in splits_by_case(a, b, c)
        for plan in direct(a, b, c, split, axes)
    )
    return min(found, key=bytes_first, default=None)


def splits_by_case(
    a: ShardedArray, b: ShardedArray, c: ShardedArray
) -> Iterator[Split]:
    """The `splits` that follow the case; it allows few places for each axis."""
    dims = tuple(dict.fromkeys(a.dims + b.dims))
    summed = contracted(a, b, c)
    rule = {axis: named_by_case(axis, a, b, c) for axis in named_axes((a, b, c))}
    sums = {axis for axis, places in rule.items() if places == {UNREDUCED}}
    among = {
        axis: [dims.index(place) if place else None for place in places]
        for axis, places in rule.items()
        if axis not in sums
    }
    agreed = {dim: _agreed(dim, a, b, c) for dim in dims}
    for placed in placements(tuple(among), len(dims), among):
        at = dict(zip(dims, placed, strict=True))
        if any(
            set(axes) == set(agreed[dim]) and axes != agreed[dim]
            for dim, axes in at.items()
        ):
            continue
        terms = {axis for dim in summed for axis in at[dim]} | sums
        if set(c.unreduced) <= terms:
            yield Split(
                (_placed(a, at), _in_order(a, sums.intersection(a.unreduced))),
                (_placed(b, at), _in_order(b, sums.intersection(b.unreduced))),
                (_placed(c, at), _in_order(c, terms)),
                True,
            )


def _agreed(dim: str, *arrays: ShardedArray) -> Names:
    """The axes of `dim` if all arrays that have it split it alike; in another order,
    every one of them would have to be permuted."""
    found = {x.placed[x.dims.index(dim)] for x in arrays if dim in x.dims}
    return found.pop() if len(found) == 1 else ()


def direct(
    a: ShardedArray, b: ShardedArray, c: ShardedArray, split: Split, axes: Names
) -> Iterator[ShardingPlan]:
    """The plan for one split, or none if blocks are of unequal size."""
    if all(_divides(x, s) for x, s in ((a, split.a), (b, split.b), (c, split.c))):
        yield ShardingPlan(
            way(a, split.a, axes) + way(b, split.b, axes),
            a.moved(*split.a),
            b.moved(*split.b),
            c.moved(*split.c),
            way(c, split.c, axes, backwards=True),
        )


def splits(
    a: ShardedArray, b: ShardedArray, c: ShardedArray, usable: Names
) -> Iterator[Split]:
    """Every way to split the product over some or all of `usable`."""
    dims = tuple(dict.fromkeys(a.dims + b.dims))
    summed = contracted(a, b, c)
    named = named_axes((a, b, c))
    rule = {axis: named_by_case(axis, a, b, c) for axis in named}
    for sums in _kept_sums(a, b):
        rest = tuple(axis for axis in usable if axis not in sums)
        in_a, in_b = (_in_order(x, sums.intersection(x.unreduced)) for x in (a, b))
        kept = dict.fromkeys(sums, UNREDUCED)
        known: dict[State, State] = {}  # so that equal states are one object
        for placed in placements(rest, len(dims)):
            at = dict(zip(dims, placed, strict=True))
            terms = sums.union(*(at[dim] for dim in summed))
            if not terms.issuperset(c.unreduced):
                continue
            found = {axis: dim for dim, axes in at.items() for axis in axes} | kept
            states = (
                (_placed(a, at), in_a),
                (_placed(b, at), in_b),
                (_placed(c, at), _in_order(c, terms)),
            )
            yield Split(
                *(known.setdefault(state, state) for state in states),
                all(found.get(axis) in rule[axis] for axis in named)
                and rule.keys() >= found.keys(),
            )


def _kept_sums(a: ShardedArray, b: ShardedArray) -> Iterator[set[str]]:
    """Every subset of the operands' open sums, as those left open in the product."""
    axes = a.unreduced + b.unreduced
    for kept in product((True, False), repeat=len(axes)):
        yield {axis for axis, stays in zip(axes, kept, strict=True) if stays}


def _placed(array: ShardedArray, at: dict[str, Names]) -> Placed:
    return tuple(at[dim] for dim in array.dims)


def _in_order(array: ShardedArray, axes: set[str]) -> Names:
    return tuple(name for name, _ in array.mesh if name in axes)


def _divides(array: ShardedArray, state: State) -> bool:
    return array.moved(*state).divides


def bytes_first(plan: ShardingPlan) -> tuple[float, float, int]:
    """The key of an order by bytes, FLOPs, and pairs of axes not in mesh order."""
    order = {name: n for n, (name, _) in enumerate(plan.a.mesh)}
    arrays = (plan.a, plan.b, plan.c)
    turned = sum(
        order[one] > order[other]
        for array in arrays
        for axes in array.placed
        for one, other in combinations(axes, 2)
    )
    return plan.sent, plan.flops, turned
