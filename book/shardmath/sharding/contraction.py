"""A sharded matmul: which case it is, what it needs, and which plan is cheapest."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import le

from ..collectives import Collective
from ..estimate import Estimate
from ..tables import Table, table
from ..units import positive, show
from .layout import ShardedArray
from .plan import Plan, case_of

CASES = {
    1: "every device has what it multiplies: nothing moves before the product",
    2: "one operand is split along the contraction, so it is gathered",
    3: "both operands are split along the contraction: partial sums to add up",
    4: "both operands are split over one axis outside the contraction, so one of them "
    "is gathered",
}


@dataclass(frozen=True)
class Crossing:
    """The size of `dim` at which one plan stops being the best and another starts."""

    dim: str
    size: float
    below: Plan
    above: Plan

    def __str__(self) -> str:
        return (
            f"{self.dim} = {self.size:,.4g}: below, {self.below.moves}; "
            f"above, {self.above.moves}"
        )

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


@dataclass(frozen=True)
class Contraction:
    """A sharded matmul and the plans for it; `sharding.contract` makes one.

    Args:
        a, b, c: operands as they are, result as it is asked for.
        candidates: all plans, first the one that the case names.
        mesh: the `Mesh` to price it on; None counts bytes alone.
        precision: of the multiplication.
    """

    a: ShardedArray
    b: ShardedArray
    c: ShardedArray
    candidates: tuple[Plan, ...]
    mesh: object = None
    precision: str = "bf16"

    @property
    def cases(self) -> dict[str, int]:
        """The case of every mesh axis in use."""
        arrays = (self.a, self.b, self.c)
        used = {axis for x in arrays for axis in x.axes + x.unreduced}
        return {axis: case_of(axis, *arrays) for axis, _ in self.a.mesh if axis in used}

    @property
    def case(self) -> int:
        """The case of the matmul: the largest among its axes, 1 without any."""
        return max(self.cases.values(), default=1)

    @property
    def plan(self) -> Plan:
        """The plan that the case names: gather what it must, add up what it must."""
        return self.candidates[0]

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """What `plan` needs, in order."""
        return self.plan.collectives

    @property
    def sent(self) -> float:
        """Bytes that one device sends in `plan`."""
        return self.plan.sent

    @property
    def flops(self) -> float:
        """FLOPs of one device in `plan`."""
        return self.plan.flops

    @property
    def nbytes(self) -> float:
        """Bytes that one device holds for the local product of `plan`."""
        return self.plan.nbytes

    @property
    def estimate(self) -> Estimate:
        """`plan` on the mesh: math, HBM and network time."""
        return self._estimate(self.plan)

    @property
    def best(self) -> Plan:
        """The quickest plan on the mesh; without one, that which sends least."""
        return min(self.candidates, key=self._cost)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """`plan`, then all that none beats in network, math and simplicity at once."""
        kept = [self.plan]
        for plan in sorted(self.candidates[1:], key=self._merits):
            mine, rivals = self._merits(plan), map(self._merits, kept)
            if not any(all(map(le, theirs, mine)) for theirs in rivals):
                kept.append(plan)
        return tuple(kept)

    @property
    def table(self) -> Table:
        """The plans side by side; all numbers are of one device."""
        header = ["moved", "sent", "FLOPs", "held"]
        rows = [
            [plan.moves, *map(show, (plan.sent, plan.flops, plan.nbytes), _UNITS)]
            for plan in self.plans
        ]
        if self.mesh is not None:
            header += ["if overlapped", "in turn", "bound"]
            for row, plan in zip(rows, self.plans, strict=True):
                e = self._estimate(plan)
                row += [show(e.lower, "s"), show(e.upper, "s"), e.bound]
        return table(header, rows)

    def crossings(
        self,
        dim: str,
        plans: Sequence[Plan] = (),
        low: float = 1,
        high: float = 1e9,
    ) -> tuple[Crossing, ...]:
        """Where, as the size of `dim` grows, another plan becomes the best.

        Args:
            dim: the dimension to vary; all others stay.
            plans: which plans to compare; all `candidates` if none are given.
            low, high: sizes between which to look. Sizes that do not divide count too.

        Returns:
            Crossings in order of size. They compare times on the mesh (lower bounds,
            then upper ones) or, without a mesh, bytes sent and then FLOPs.

        Raises:
            ValueError: no such dimension.
        """
        positive(low=low, high=high)
        plans = tuple(plans) or self.candidates
        known = tuple(dict.fromkeys(self.a.dims + self.b.dims))
        if dim not in known:
            raise ValueError(f"dimension {dim!r}: must be one of {', '.join(known)}")

        def winner(size: float) -> int:
            costs = [self._cost(p.resized(dim, size)) for p in plans]
            return costs.index(min(costs))

        def between(lo: float, hi: float, at_lo: int, at_hi: int) -> Iterator[Crossing]:
            if at_lo == at_hi:
                return
            middle = math.sqrt(lo * hi)
            if hi / lo < 1 + 1e-6:
                yield Crossing(dim, middle, plans[at_lo], plans[at_hi])
                return
            at_middle = winner(middle)
            yield from between(lo, middle, at_lo, at_middle)
            yield from between(middle, hi, at_middle, at_hi)

        found, lo, at_lo = [], low, winner(low)
        while lo < high:
            hi = min(2 * lo, high)
            at_hi = winner(hi)
            found += between(lo, hi, at_lo, at_hi)
            lo, at_lo = hi, at_hi
        return tuple(found)

    def __str__(self) -> str:
        lines = [f"{self.a.notation} · {self.b.notation} -> {self.c.notation}"]
        for case in sorted(set(self.cases.values()) or {1}):
            axes = "".join(axis for axis, found in self.cases.items() if found == case)
            over = f" over {axes}" if axes else ""
            lines.append(f"case {case}{over}: {CASES[case]}")
        plan = self.plan
        steps = [*plan.before, f"each multiplies {plan.product}", *plan.after]
        lines += [f"  {n}. {step}" for n, step in enumerate(steps, 1)]
        return "\n".join(lines)

    def _repr_pretty_(self, printer, cycle):
        printer.text(f"{self}\n\n{self.table}")

    def _estimate(self, plan: Plan) -> Estimate:
        if self.mesh is None:
            raise ValueError("mesh = None: must be a `Mesh` of known chips for a time")
        return plan.estimate(self.mesh, self.precision)

    def _cost(self, plan: Plan) -> tuple[float, float]:
        if self.mesh is None:
            return plan.sent, plan.flops
        estimate = self._estimate(plan)
        return estimate.lower, estimate.upper

    def _merits(self, plan: Plan) -> tuple[float, float, int]:
        """What plans trade against each other: network, math, number of collectives."""
        if self.mesh is None:
            return plan.sent, plan.flops, len(plan.moved)
        seconds = self._estimate(plan).seconds
        return seconds.get("network", 0.0), seconds["math"], len(plan.moved)


_UNITS = ("bytes", "FLOPs", "bytes")
