"""A sharded matmul: which case it is, what it needs, and which plan is cheapest."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import le

from ..base.estimate import Estimate
from ..base.garbage import uncollected
from ..base.tables import Table, table
from ..base.units import positive, short_repr, show
from ..collectives import Collective
from ..hardware.chips import Chip
from ..hardware.mesh import Mesh
from .bind_axes import axis_words, bound, format_of, names, usable_axes
from .layout import ShardedArray
from .machine import Machine, priced
from .notation import MatmulLine, parse, subscript
from .plan import (
    Operands,
    ShardingPlan,
    case_of,
    named_plan,
    splits_by_case,
)
from .plan_cost import PlanCost, plan_cost
from .plan_search import candidates
from .prices import Prices

CLOSE = 0.1  # real rates differ by as much, so a smaller difference decides nothing
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
    below: ShardingPlan
    above: ShardingPlan

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
        a, b, c: the operands with their present sharding, and the wanted result.
        candidates: all plans; the plan of the case comes first.
        mesh: the `Mesh` or `Chip` that gives times; with None, only bytes count.
        precision: the format of the multiplication.
    """

    a: ShardedArray
    b: ShardedArray
    c: ShardedArray
    candidates: tuple[ShardingPlan, ...]
    mesh: Mesh | Chip | None = None
    precision: str = "bf16"

    @property
    def cases(self) -> dict[str, int]:
        """The case of every mesh axis in use."""
        arrays = (self.a, self.b, self.c)
        used = {axis for x in arrays for axis in x.axes + x.unreduced}
        return {axis: case_of(axis, *arrays) for axis, _ in self.a.mesh if axis in used}

    @property
    def case(self) -> int:
        """The case of the matmul: the highest case of its axes, or 1 without axes."""
        return max(self.cases.values(), default=1)

    @property
    def plan(self) -> ShardingPlan:
        """The plan of the case: it gathers and adds up only what is necessary."""
        return self.candidates[0]

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives of `plan`, in order."""
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
        """`plan` on the machine: math, HBM and network time."""
        return self._estimate(self.plan)

    def expected(self, plan: ShardingPlan | None = None) -> float:
        """Seconds that a plan should take if math, HBM and network overlap.

            max(T_math, T_HBM, busiest links with the latency that we expect)

        `best` minimises this time. The bound is a different number, `estimate.lower`.

        Args:
            plan: one of `candidates`; by default `self.plan`.

        Raises:
            ValueError: `plan` is not a plan, or there is no machine to give times.
        """
        plan = self.plan if plan is None else plan
        _check_plan(plan)
        if self.mesh is None:
            raise ValueError("mesh = None: must be a `Mesh` of known chips for a time")
        return self._cost(plan)[0] / 1e15

    @property
    def best(self) -> ShardingPlan:
        """The plan expected to be fastest on the mesh or, without a mesh, the one that
        sends the fewest bytes.

        Plans are compared by their expected time if everything overlaps and, if that is
        equal, by their time if nothing does. Each array is resharded in the way that is
        fastest for that array, and a plan has at most one collective more than `plan`.
        """
        return self.ranking[0]

    @cached_property
    def ranking(self) -> tuple[ShardingPlan, ...]:
        """Plans, best first; only the best of several with the same collectives."""
        found = {}
        for plan in sorted(self.candidates, key=self._cost):
            moved = (
                (step.op, frozenset(step.axes), step.before.name, step.before.dims)
                for step in plan.moved
            )
            found.setdefault(tuple(moved), plan)
        return tuple(found.values())

    @property
    def margin(self) -> float:
        """How much longer the second-best plan takes than the best: 0.1 for 10 %.

        We compare expected times if everything overlaps or, without a mesh, bytes sent.
        The margin is `inf` if there is no second plan, or if the best takes no time.
        """
        if len(self.ranking) < 2:
            return math.inf
        first, second = (self._cost(plan)[0] for plan in self.ranking[:2])
        return second / first - 1 if first else math.inf

    @property
    def verdict(self) -> str:
        """The best plan, the next best, and whether they differ by enough to matter.

        >>> line, sizes = "A[I, J_X] · B[J_X, K] -> C[I, K]", {"I": 64, "J": 64}
        >>> print(contract(line, {"X": 4}, K=60, **sizes).verdict.replace(": ", ":\\n"))
        AllReduce_X C; next, AllGather_X A, AllGather_X B:
        3% more bytes, too close to call
        """
        best, *others = self.ranking
        if not others:
            return f"{best.moves}: the only plan"
        what = "more bytes" if self.mesh is None else "longer"
        if self.margin < CLOSE:
            far = f"{self.margin:.0%} {what}, too close to call"
        elif self.margin < 10:
            far = f"{self.margin:.0%} {what}"
        else:
            far = f"far {what}"
        return f"{best.moves}; next, {others[0].moves}: {far}"

    @property
    def plans(self) -> tuple[ShardingPlan, ...]:
        """`plan`, then all that no other plan beats in network, math and simplicity."""
        kept = [(self.plan, self._merits(self.plan))]
        rated = [(plan, self._merits(plan)) for plan in self.candidates[1:]]
        for plan, mine in sorted(rated, key=lambda both: both[1]):
            if not any(all(map(le, theirs, mine)) for _, theirs in kept):
                kept.append((plan, mine))
        return tuple(plan for plan, _ in kept)

    @property
    def table(self) -> Table:
        """The plans side by side; all numbers are per device."""
        header = ["moved", "sent", "FLOPs", "held"]
        rows = [
            [plan.moves, *map(show, (plan.sent, plan.flops, plan.nbytes), _UNITS)]
            for plan in self.plans
        ]
        if self.mesh is not None:
            header += ["at least", "expected", "in turn", "bound"]
            for row, plan in zip(rows, self.plans, strict=True):
                e = self._estimate(plan)
                times = e.lower, self.expected(plan), e.upper
                row += [*(show(seconds, "s") for seconds in times), e.bound]
        return table(header, rows)

    def crossings(
        self,
        dim: str,
        plans: Sequence[ShardingPlan] = (),
        low: float = 1,
        high: float = 1e9,
    ) -> tuple[Crossing, ...]:
        """The sizes at which another plan becomes the best as `dim` grows.

        Args:
            dim: the dimension to vary; all others stay fixed.
            plans: which plans to compare; by default all `candidates`. Their
                reshardings are those that are best at the present sizes.
            low, high: the range of sizes to search, including those that the mesh axes
                do not divide; at most `LARGEST`.

        Returns:
            Crossings in order of size. Plans are compared as in `best`: by expected
            times on the mesh or, without a mesh, by bytes sent and then by FLOPs. At a
            crossing, a plan with more collectives than `best` allows can be better than
            both plans.

        Raises:
            ValueError: there is no such dimension, one of `plans` is not a plan, or
                `low` is not below `high`.
        """
        low, high = positive(low=low, high=high)
        self._check(dim)
        if high > LARGEST:
            raise ValueError(f"high = {high}: must be at most {LARGEST:g}")
        if low >= high:
            raise ValueError(f"low = {low}: must be below high = {high}")
        if not isinstance(plans, Iterable):
            raise ValueError(
                f"plans = {short_repr(plans)}: must be some of `candidates`"
            )
        lines = {}
        for plan in tuple(plans) or self.candidates:
            _check_plan(plan)
            lines.setdefault(self._lines(plan, dim), plan)
        grown, plans = list(lines), list(lines.values())

        def winner(size: float) -> int:
            costs = [line.at(size) for line in grown]
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

        # Between two bends all costs are straight lines, so a plan that is best at both
        # ends is best everywhere in between.
        bends = set().union(*(line.bends for line in grown))
        sizes = [low, *sorted(size for size in bends if low < size < high), high]
        found = []
        for (lo, at_lo), (hi, at_hi) in pairwise((s, winner(s)) for s in sizes):
            found += between(lo, hi, at_lo, at_hi)
        return tuple(found)

    def balances(
        self,
        dim: str,
        one: str = "network",
        other: str = "math",
        plan: ShardingPlan | None = None,
    ) -> tuple[float, ...]:
        """The sizes of `dim` at which two resources take equally long in a plan.

        At such a size, the slower of the two becomes the faster, even if a third
        resource takes longer than both and `estimate.bound` does not change. The
        network time includes the latency that we expect.

        Args:
            dim: the dimension to vary; all others stay fixed.
            one, other: "math", "HBM" or "network".
            plan: one of `candidates`; by default `self.plan`.

        Returns:
            Sizes in order, usually one; none if one resource takes longer at every
            size.

        Raises:
            ValueError: there is no such dimension or resource, `plan` is not a plan, or
                there is no machine to give times.

        >>> from shardmath.hardware.chips import TPU_V5E
        >>> from shardmath.hardware.networks import Torus
        >>> ring = Mesh(Torus(TPU_V5E, (1, 16)), {"X": 16})
        >>> line = "A[B_X, D] · W[D_X, F] -> C[B_X, F]"
        >>> op = contract(line, ring, B=4096, D=8192, F=8192)
        >>> [round(size) for size in op.balances("B")]
        [29738]
        """
        self._check(dim)
        for name in (one, other):
            if not isinstance(name, str) or name not in _RESOURCES:
                known = ", ".join(_RESOURCES)
                raise ValueError(f"resource {short_repr(name)}: must be one of {known}")
        if self.mesh is None:
            raise ValueError("mesh = None: must be a `Mesh` of known chips for a time")
        plan = self.plan if plan is None else plan
        _check_plan(plan)
        return self._lines(plan, dim).equal(one, other)

    def __str__(self) -> str:
        lines = [f"{self.a.notation} · {self.b.notation} -> {self.c.notation}"]
        for case in sorted(set(self.cases.values()) or {1}):
            axes = [axis for axis, found in self.cases.items() if found == case]
            over = f" over {subscript(axes, dict(self.a.mesh))}" if axes else ""
            lines.append(f"case {case}{over}: {CASES[case]}")
        plan = self.plan
        steps = [*plan.before, f"each multiplies {plan.product}", *plan.after]
        lines += [f"  {n}. {step}" for n, step in enumerate(steps, 1)]
        return "\n".join(lines)

    def _repr_pretty_(self, printer, cycle):
        printer.text(f"{self}\n\n{self.table}")

    @cached_property
    def _prices(self) -> Prices:
        if self.mesh is None:
            raise ValueError("mesh = None: must be a `Mesh` of known chips for a time")
        return Prices(self.mesh)

    def _estimate(self, plan: ShardingPlan) -> Estimate:
        return plan.estimate(self._prices, self.precision)

    def _lines(self, plan: ShardingPlan, dim: str) -> PlanCost:
        prices = None if self.mesh is None else self._prices
        return plan_cost(plan, dim, prices, self.precision)

    def _check(self, dim: str) -> None:
        known = tuple(dict.fromkeys(self.a.dims + self.b.dims))
        if not isinstance(dim, str) or dim not in known:
            raise ValueError(
                f"dimension {short_repr(dim)}: must be one of {', '.join(known)}"
            )

    def _cost(self, plan: ShardingPlan) -> tuple[int, int]:
        """Expected time and time in turn at the present size, as in `crossings`."""
        return self._lines(plan, self.a.dims[0]).at(self.a.sizes[0])

    def _merits(self, plan: ShardingPlan) -> tuple[float, float, int]:
        """The trade-offs between plans: network, math, number of collectives."""
        priced = self.mesh is not None
        network = self._prices.expected(plan.collectives) if priced else plan.sent
        return network, plan.flops, len(plan.moved)


def _check_plan(plan: object) -> None:
    if not isinstance(plan, ShardingPlan):
        raise ValueError(f"plan = {short_repr(plan)}: must be one of `candidates`")


LARGEST = 1e100  # size in `crossings`; with larger ones, costs may overflow
_UNITS = ("bytes", "FLOPs", "bytes")
_RESOURCES = ("math", "HBM", "network")


def contract(
    text: str,
    mesh: Machine = None,
    dtype: str = "bf16",
    busy: Iterable[str] | bool = (),
    **sizes: int,
) -> Contraction:
    """A sharded matmul such as ``"A[I, J_X] · B[J_X, K] -> C[I, K_X]"``.

    Dimensions that both operands have are summed over if the result lacks them, and are
    batch dimensions otherwise. FLOPs, bytes and times are per device.

    Args:
        text: two operands and the result, with the sharding of each. An operand may be
            partial sums over axes along which the other operand is whole, because each
            term can then be multiplied separately.
        mesh: a `Mesh` (its chips give times), a single `Chip`, or sizes by axis name in
            device order.
        dtype: format of the multiplication, and of each array for which the text names
            none. Partial sums are sent in the format of the result.
        busy: mesh axes that the line does not name and that have other work, such as
            other tokens; True for all that it does not name. The remaining axes are
            idle: all devices along them would compute the same, so plans may split the
            work over them.
        sizes: the size of every dimension.

    With more than five axes, only some plans are kept: the 4,000 that take the least
    time if math, HBM and network work in turn and, for each number of FLOPs and of
    collectives, the one that takes the least. In 16 random lines over six axes, the
    best of 25,000 plans was among the first 800 fifteen times, and once the 2,195th.
    Without a mesh of chips, we keep the plans that send the fewest bytes, so the best
    is always among them.

    With more than six axes, neighbouring axes that are placed alike in all arrays are
    searched as one, if possible until five are left. A line over five axes takes up to
    4 s and a line over six about 10 s.

    Returns:
        A Contraction, with its `case`, `collectives`, `flops`, `estimate`, all `plans`,
        the `best` of them, and `crossings("B")`, the sizes at which another plan
        becomes the best.

    Raises:
        ValueError: as for `array`; a dimension that is neither in the other operand nor
            in the result, operands with nothing to contract, partial sums that must be
            added up first, axes that do not divide the dimension that the case assigns
            them to, a busy axis that the line names, more than six axes that cannot be
            joined.

    >>> op = contract("A[I, J_X] · B[J, K] -> C[I, K]", {"X": 4}, I=64, J=32, K=16)
    >>> op.case, [c.op for c in op.collectives]
    (2, ['all_gather'])
    """
    line, (a, b, c) = _read(text, mesh, dtype, sizes)
    machine = priced(mesh)
    prices = Prices(machine) if isinstance(machine, Mesh) else None
    usable, precision = usable_axes((a, b, c), busy), format_of(dtype)
    with uncollected():
        found = candidates(a, b, c, usable, prices, precision)
    if not found:
        raise _impossible(line, (a, b, c))
    return Contraction(a, b, c, found, machine, precision)


def default_plan(a: ShardedArray, b: ShardedArray, c: ShardedArray) -> ShardingPlan:
    """The plan of the case of a · b -> c: `contract(…).plan`, found without the others.

    Args:
        a, b, c: operands and result, on one mesh.

    Raises:
        ValueError: an argument that is not an array; partial sums that no plan can use
            or produce, or axes that do not divide the dimension that the case assigns
            them to.

    >>> op = contract("A[I, J_X] · B[J, K] -> C[I, K]", {"X": 4}, I=64, J=32, K=16)
    >>> default_plan(op.a, op.b, op.c).moves
    'AllGather_X A'
    """
    for name, one in (("a", a), ("b", b), ("c", c)):
        if not isinstance(one, ShardedArray):
            raise ValueError(
                f"{name} = {short_repr(one)}: must be an array of `sharding`"
            )
    text = f"{a.notation} · {b.notation} -> {c.notation}"
    for one, other in ((a, b), (b, a)):
        taken = {*one.unreduced} & {*other.unreduced, *other.axes}
        if taken:
            raise ValueError(f"{text}: {one.notation} must be added up first")
    found = named_plan(a, b, c)
    if found is None:
        raise ValueError(f"{text}: {_undivided(a, b, c)}")
    return found


def _read(
    text: str, mesh: Machine, dtype: str, sizes: dict
) -> tuple[MatmulLine, Operands]:
    """The parsed line, its two operands, and its result."""
    line = parse(text)
    if len(line.left) < 2:
        at = line.right.head if line.right else line.end
        raise at.error("'·', '*' or '@' and a second operand are expected before this")
    if line.right is None:
        raise line.end.error("'->' and the result with its sharding are expected")
    _check_dims(line)
    a, b, c = bound(line, mesh, dtype, sizes)
    _check_sums(line, a, b)
    return line, (a, b, c)


def _impossible(line: MatmulLine, arrays: Operands) -> ValueError:
    """The error if the case has no plan, which points at the result."""
    word = (*line.right.unreduced, line.right.head)[0]
    return word.error(_undivided(*arrays))


def _undivided(a: ShardedArray, b: ShardedArray, c: ShardedArray) -> str:
    """Why the case has no plan with blocks of equal size."""
    mesh = dict(c.mesh)
    if c.unreduced:
        sums = subscript(c.unreduced, mesh)
        return f"{sums} does not divide a dimension that is summed over"
    return next(
        f"the case splits {dim} over {subscript(axes, mesh)}, into {a.ways(axes)} "
        f"parts: {a.ways(axes)} does not divide {dim} = {size}"
        for split in splits_by_case(a, b, c)
        for array, (placed, _) in ((a, split.a), (b, split.b), (c, split.c))
        for dim, size, axes in zip(array.dims, array.sizes, placed, strict=True)
        if size % a.ways(axes)
    )


def _check_dims(line: MatmulLine) -> None:
    """Raise unless the line is a matmul."""
    (a, b), c = line.left, line.right
    for operand, other in ((a, b), (b, a)):
        for dim in operand.dims:
            if dim.name.text not in names(other) + names(c):
                raise dim.name.error(
                    f"{dim.name.text} is neither in the other operand nor in the result"
                )
    for dim in c.dims:
        if dim.name.text not in names(a) + names(b):
            raise dim.name.error(f"{dim.name.text} is in neither operand")
    summed = [n for n in names(a) if n in names(b) and n not in names(c)]
    if not summed:
        raise b.head.error("the operands share no dimension that the result lacks")
    if line.over and line.over.text not in (*summed, "".join(summed)):
        raise line.over.error(
            f"{line.over.text} is not summed over; the line sums over "
            f"{', '.join(summed)}"
        )


def _check_sums(line: MatmulLine, a: ShardedArray, b: ShardedArray) -> None:
    """Raise unless the product of the operands' terms is a term of the result."""
    for term, one, other in ((line.left[0], a, b), (line.left[1], b, a)):
        for axis in axis_words(term.unreduced, dict(one.mesh)):
            over, name = axis.text, other.notation
            if over in other.unreduced:
                raise axis.error(
                    f"both operands are partial sums over {over}: the sum of the "
                    "products of terms is not the product of the sums; add one up first"
                )
            if over in other.axes:
                raise axis.error(
                    f"{name} is split over {over}: a device has one term of this "
                    "operand and one block of the other, but each term must be "
                    "multiplied by every block; add this operand up first"
                )
