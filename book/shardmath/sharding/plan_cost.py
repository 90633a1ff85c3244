"""The cost of a plan, as straight lines over the size of one dimension.

Bytes and FLOPs are proportional to a size or do not depend on it; a latency never
depends on it. So the time of each resource is const + slope · size, and the values at
the present size are the plan's cost. `best`, `ranking`, `crossings` and `balances` all
use it.
"""

from dataclasses import dataclass
from itertools import combinations

from .machine import chip_of
from .plan import ShardingPlan
from .prices import Prices

Line = tuple[float, float]  # value at size 0, increase per unit of size


@dataclass(frozen=True)
class PlanCost:
    """Lines over the size of a dimension: seconds, or bytes and FLOPs without a mesh.

    Args:
        legs: resources that can work at the same time: math, HBM, and the links of
            each dimension of the network that the plan uses, with expected latency.
        in_turn: the time of all resources, one after the other.
    """

    legs: tuple[tuple[str, Line], ...]
    in_turn: Line

    def at(self, size: float) -> tuple[int, int]:
        """The cost if all legs overlap and the cost in turn, each times 1e15, rounded.

        Rounding makes equal plans equal in whatever order their terms are added.
        """
        overlapped = max(_at(line, size) for _, line in self.legs)
        return round(overlapped * 1e15), round(_at(self.in_turn, size) * 1e15)

    @property
    def bends(self) -> set[float]:
        """Sizes above 0 that include all those at which `at` changes its slope."""
        lines = {line for _, line in self.legs}
        return {
            size
            for (const, slope), (other, steeper) in combinations(lines, 2)
            if slope != steeper and (size := (const - other) / (steeper - slope)) > 0
        }

    def equal(self, one: str, other: str) -> tuple[float, ...]:
        """The sizes above 0 at which two resources take equally long."""
        ones, others = (
            [line for name, line in self.legs if name == wanted]
            for wanted in (one, other)
        )
        found = set()
        for const, slope in ones:
            for constant, steeper in others:
                if slope == steeper:
                    continue
                size = (const - constant) / (steeper - slope)
                highest = (_highest(ones, size), _highest(others, size))
                if size > 0 and highest == ((const, slope), (constant, steeper)):
                    found.add(size)
        return tuple(sorted(found))


def plan_cost(
    plan: ShardingPlan, dim: str, prices: Prices | None, precision: str
) -> PlanCost:
    """The cost of `plan` over the size of `dim`.

    Args:
        plan: the plan, at its present sizes.
        dim: the dimension to vary; all others stay fixed.
        prices: those of the mesh; if None, the only leg is the bytes that one device
            sends, and `in_turn` is its FLOPs.
        precision: the format of the multiplication.
    """
    operands = zip(plan.a.dims + plan.b.dims, plan.a.sizes + plan.b.sizes, strict=True)
    size = dict(operands)[dim]

    def line(amount: float, grows: bool) -> Line:
        return (0.0, amount / size) if grows else (amount, 0.0)

    growing, fixed = (
        [step.collective for step in plan.moved if (dim in step.before.dims) is grows]
        for grows in (True, False)
    )
    if prices is None:
        sent = [sum(c.total_sent for c in some) for some in (growing, fixed)]
        network = _sum([line(sent[0], True), line(sent[1], False)])
        return PlanCost((("network", network),), line(plan.flops, True))
    chip = chip_of(prices.mesh)
    math = line(plan.flops / chip.flops[precision], True)
    arrays = (plan.a, plan.b, plan.c)
    hbm = [line(x.local_nbytes / chip.hbm_bandwidth, dim in x.dims) for x in arrays]
    links: dict[int, list[Line]] = {}
    for some, grows in ((growing, True), (fixed, False)):
        for link, (seconds, latency) in prices.busy(some).items():
            links.setdefault(link, []).extend([line(seconds, grows), (latency, 0.0)])
    turns = [math, *hbm]
    for some, grows in ((growing, True), (fixed, False)):
        for seconds, latency in map(prices.terms, some):
            turns += [line(seconds, grows), (latency, 0.0)]
    legs = [("math", math), ("HBM", _sum(hbm))]
    legs += dict.fromkeys(("network", _sum(lines)) for lines in links.values())
    return PlanCost(tuple(legs), _sum(turns))


def _sum(lines: list[Line]) -> Line:
    return sum(const for const, _ in lines), sum(slope for _, slope in lines)


def _at(line: Line, size: float) -> float:
    return line[0] + line[1] * size


def _highest(lines: list[Line], size: float) -> Line:
    return max(lines, key=lambda line: _at(line, size))
