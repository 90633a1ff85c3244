"""Ways to do a sharded matmul: what moves before and after the local product.

Every mesh axis splits the product in one of three ways: along a dimension of the
result (nothing to add up), along the contraction (every device gets one term of a
sum), or not at all (every device computes the same). A plan fixes this for all axes.
"""

import math
from dataclasses import dataclass, replace

from ..collectives import NAMES, Collective
from ..estimate import Estimate, Leg
from .layout import Axes, ShardedArray
from .resharding import Placed, Step, network_leg, placements, route

UNREDUCED = "{U}"  # where an axis is that every device holds one term along


@dataclass(frozen=True, repr=False)
class Plan:
    """One way to do a sharded matmul.

    Args:
        before: steps that bring the operands to where the product needs them.
        a, b, c: operands and result as the local product sees them.
        after: steps from there to the result that is asked for.
    """

    before: tuple[Step, ...]
    a: ShardedArray
    b: ShardedArray
    c: ShardedArray
    after: tuple[Step, ...]

    @property
    def moved(self) -> tuple[Step, ...]:
        """The steps that send anything, in order."""
        return tuple(step for step in self.before + self.after if step.collective)

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """What they are, in order."""
        return tuple(step.collective for step in self.moved)

    @property
    def sent(self) -> float:
        """Bytes that one device sends."""
        return sum(c.total_sent for c in self.collectives)

    @property
    def flops(self) -> float:
        """FLOPs of one device, two for every product that it adds up."""
        local = dict(zip(self.a.dims, self.a.local_sizes, strict=True))
        local |= dict(zip(self.b.dims, self.b.local_sizes, strict=True))
        return 2 * math.prod(local.values())

    @property
    def nbytes(self) -> float:
        """Bytes of one device's operands and result: held, and once through HBM."""
        return sum(x.local_nbytes for x in (self.a, self.b, self.c))

    @property
    def product(self) -> str:
        """What every device multiplies, in the notation."""
        return f"{self.a.notation} · {self.b.notation} -> {self.c.notation}"

    @property
    def moves(self) -> str:
        """What travels, in a few words such as "AllGather_X B"."""
        return (
            ", ".join(
                f"{NAMES[s.op]}_{''.join(s.axes)} {s.before.name or s.before.notation}"
                for s in self.moved
            )
            or "nothing"
        )

    def __repr__(self) -> str:
        return f"<{self.product}, moved: {self.moves}>"

    def estimate(self, mesh, precision: str) -> Estimate:
        """Math, HBM and network time on a `Mesh` of known chips.

        The collectives run one after the other; their own HBM traffic, and any slip
        between them and the product, is not in it.

        Raises:
            ValueError: the mesh has no chip, or the chip no peak for `precision`.
        """
        chip = mesh.network.chip
        if chip is None:
            raise ValueError(f"{mesh.network.name}: must be made of one kind of chip")
        legs = [
            Leg("math", self.flops, chip.flops[precision]),
            Leg("HBM", self.nbytes, chip.hbm_bandwidth),
        ]
        if self.collectives:
            legs.append(network_leg(self.collectives, mesh))
        return Estimate(f"{self.product} (moved: {self.moves})", tuple(legs))

    def resized(self, dim: str, size: float) -> "Plan":
        """The same plan with another size of `dim`."""

        def steps(old: tuple[Step, ...]) -> tuple[Step, ...]:
            return tuple(
                replace(
                    step,
                    before=step.before.resized(dim, size),
                    after=step.after.resized(dim, size),
                )
                for step in old
            )

        a, b, c = (x.resized(dim, size) for x in (self.a, self.b, self.c))
        return Plan(steps(self.before), a, b, c, steps(self.after))


def contracted(a: ShardedArray, b: ShardedArray, c: ShardedArray) -> tuple[str, ...]:
    """The dimensions that are summed over."""
    return tuple(d for d in a.dims if d in b.dims and d not in c.dims)


def place_of(axis: str, array: ShardedArray) -> str | None:
    """The dimension that `axis` splits; `UNREDUCED` for partial sums; None for none."""
    if axis in array.unreduced:
        return UNREDUCED
    pairs = zip(array.dims, array.placed, strict=True)
    return next((dim for dim, axes in pairs if axis in axes), None)


def case_of(axis: str, a: ShardedArray, b: ShardedArray, c: ShardedArray) -> int:
    """Which of the four cases the matmul is along one mesh axis."""
    in_a, in_b, summed = place_of(axis, a), place_of(axis, b), contracted(a, b, c)
    if in_a in summed and in_a == in_b:
        return 3
    if in_a in summed or in_b in summed:
        return 2
    return 4 if in_a and in_b and in_a != in_b else 1


def named_by_case(
    axis: str, a: ShardedArray, b: ShardedArray, c: ShardedArray
) -> set[str | None]:
    """How the case splits the product along `axis`: dimensions, or None for not at all.

    Operands stay where they are unless the case says that one must be gathered; where
    either may be, the wanted result decides, and bytes where it does not.
    """
    in_a, in_b, in_c = (place_of(axis, x) for x in (a, b, c))
    summed = contracted(a, b, c)
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


def candidates(a: ShardedArray, b: ShardedArray, c: ShardedArray) -> tuple[Plan, ...]:
    """Plans for a · b -> c, first the one that the case names.

    Left out are plans whose blocks would not be of equal size, and those that need more
    than one collective beyond the named plan's.
    """
    used = {*a.axes, *b.axes, *c.axes, *c.unreduced}
    axes = tuple(name for name, _ in a.mesh if name in used)
    dims = tuple(dict.fromkeys(a.dims + b.dims))
    named, others = [], []
    rule = {axis: named_by_case(axis, a, b, c) for axis in axes}
    for placed in placements(axes, len(dims)):
        plan = _plan(a, b, c, dict(zip(dims, placed, strict=True)))
        if plan is None:
            continue
        split = {axis: dim for dim, on in zip(dims, placed, strict=True) for axis in on}
        by_rule = all(split.get(axis) in rule[axis] for axis in axes)
        (named if by_rule else others).append(plan)
    ranked = sorted(named, key=_bytes_first) + sorted(others, key=_bytes_first)
    return tuple(p for p in ranked if len(p.moved) <= len(ranked[0].moved) + 1)


def _bytes_first(plan: Plan) -> tuple[float, float]:
    return plan.sent, plan.flops


def _plan(
    a: ShardedArray, b: ShardedArray, c: ShardedArray, split: dict[str, Axes]
) -> Plan | None:
    """The plan that splits the product as `split` says, dimension by dimension."""

    def placed(array: ShardedArray) -> Placed:
        return tuple(split[dim] for dim in array.dims)

    summed = {axis for dim in contracted(a, b, c) for axis in split[dim]}
    partial = tuple(name for name, _ in a.mesh if name in summed)
    local_a, local_b = a.moved(placed(a)), b.moved(placed(b))
    local_c = c.moved(placed(c), partial)
    if not all(array.divides for array in (local_a, local_b, local_c)):
        return None
    if not set(c.unreduced) <= summed:
        return None
    routes = route(a, local_a), route(b, local_b), route(local_c, c)
    if None in routes:
        return None
    return Plan(routes[0] + routes[1], local_a, local_b, local_c, routes[2])
