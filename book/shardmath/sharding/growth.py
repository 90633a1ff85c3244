"""How the time of a plan grows with the size of one dimension: by straight lines.

Bytes and FLOPs are proportional to a size or do not depend on it, so that every leg is
const + slope · size, latency being in the constant.
"""

from collections import defaultdict
from dataclasses import dataclass

from .machine import chip_of
from .plan import Plan
from .prices import Prices

Line = tuple[float, float]  # value at size 0, increase per unit of size


@dataclass(frozen=True)
class Growth:
    """Lines over the size of a dimension: seconds, or bytes and FLOPs without a mesh.

    Args:
        legs: those that can work at the same time, by resource; each set of links that
            the plan uses is one of the network's.
        total: all of them in turn.
    """

    legs: tuple[tuple[str, Line], ...]
    total: Line

    def cost(self, size: float) -> tuple[int, int]:
        """Lower and upper bound in femtoseconds, to which equal plans are equal."""
        lower = max(_at(line, size) for _, line in self.legs)
        return round(lower * 1e15), round(_at(self.total, size) * 1e15)

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


def growth(plan: Plan, dim: str, prices: Prices | None, precision: str) -> Growth:
    """How `plan` grows with the size of `dim`.

    Without a machine the first leg is the bytes sent and the total the FLOPs.
    """
    sizes = dict(
        zip(plan.a.dims + plan.b.dims, plan.a.sizes + plan.b.sizes, strict=True)
    )
    size = sizes[dim]

    def line(amount: float, grows: bool, const: float = 0.0) -> Line:
        return (const, amount / size) if grows else (const + amount, 0.0)

    if prices is None:
        sent = [line(s.collective.total_sent, dim in s.before.dims) for s in plan.moved]
        return Growth((("network", _sum(sent)),), line(plan.flops, True))
    chip = chip_of(prices.mesh)
    math = line(plan.flops / chip.flops[precision], True)
    arrays = (plan.a, plan.b, plan.c)
    hbm = [line(x.local_nbytes / chip.hbm_bandwidth, dim in x.dims) for x in arrays]
    links, steps = defaultdict(list), []
    for step in plan.moved:
        bandwidth, latency = prices.terms(step.collective)
        steps.append(line(bandwidth, dim in step.before.dims, latency))
        for link in prices.links(step.collective.axes):
            links[link].append(steps[-1])
    legs = [("math", math), ("HBM", _sum(hbm))]
    legs += dict.fromkeys(("network", _sum(lines)) for lines in links.values())
    return Growth(tuple(legs), _sum([math, *hbm, *steps]))


def _sum(lines: list[Line]) -> Line:
    return sum(const for const, _ in lines), sum(slope for _, slope in lines)


def _at(line: Line, size: float) -> float:
    return line[0] + line[1] * size


def _highest(lines: list[Line], size: float) -> Line:
    return max(lines, key=lambda line: _at(line, size))
