"""The search for plans: all candidates for a sharded matmul.

Every way to split the product over the mesh axes makes a plan, together with the best
way to reshard each array for it. Six axes allow tens of thousands of splits, so with
that many axes only the quickest become plans.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from operator import itemgetter

from .bind_axes import named_axes
from .change_costs import SECOND, Cost
from .fused_axes import (
    fewer_axes,
    runs_to_search,
    spelt,
    spelt_array,
    with_fewer_axes,
)
from .layout import Names, ShardedArray
from .level_search import short_routes
from .machine import chip_of
from .plan import Operands, ShardingPlan, Split, bytes_first, named_plan, splits
from .prices import Prices
from .reshard_graph import State
from .reshard_search import Routes
from .reshard_step import Change

ALL_PLANS = 5  # with more axes, only the quickest plans are kept
MOST_PLANS = 4_000  # so many; `contract` says how often the best is among them


def candidates(
    a: ShardedArray,
    b: ShardedArray,
    c: ShardedArray,
    usable: Names,
    prices: Prices | None,
    precision: str,
) -> tuple[ShardingPlan, ...]:
    """Plans for a · b -> c; the plan of the case comes first.

    Like the plans of compilers, the plan of the case moves the fewest bytes over the
    axes that the line names. Other plans may reshard in the best way (`short_routes`)
    over all of `usable`. Plans with blocks of unequal size are left out, and so are
    those with at least two more collectives than the plan of the case.

    With more than `ALL_PLANS` axes, only some of the plans are kept, see
    `PlanSearch.quickest`. With many axes, neighbouring ones that are placed alike in
    all arrays are searched as one, see `runs_to_search`.

    Raises:
        ValueError: as for `runs_to_search`.
    """
    arrays = a, b, c
    if runs := runs_to_search(arrays, usable, prices and prices.mesh):
        return _with_fewer_axes(arrays, usable, prices, precision, runs)
    named = named_axes(arrays)
    first = named_plan(*arrays)
    if first is None:
        return ()
    most = len(first.moved) + 1
    if len(usable) > ALL_PLANS:
        found = list(splits(*arrays, usable))
        search = PlanSearch.of(arrays, found, usable, prices, most)
        few = search.quickest(found, _in_turn(arrays, prices, precision))
    else:
        found = list(splits(*arrays, named))
        search = PlanSearch.of(arrays, found, named, None, most)
        few = search.plans(found)
        by_case = search.plans(split for split in found if split.by_case)
        first = min(by_case, key=bytes_first)
        if prices is not None or usable != named:
            found = found if usable == named else list(splits(*arrays, usable))
            search = PlanSearch.of(arrays, found, usable, prices, most)
            few += search.plans(found)
    kept = {_key(first): first}
    for plan in sorted(few, key=bytes_first):
        kept.setdefault(_key(plan), plan)
    return tuple(kept.values())


def _with_fewer_axes(
    arrays: Operands,
    usable: Names,
    prices: Prices | None,
    precision: str,
    runs: dict[str, Names],
) -> tuple[ShardingPlan, ...]:
    """The candidates on a mesh where each of `runs` is one axis, with all axes."""
    few, left = with_fewer_axes(arrays, usable, runs)
    priced = None if prices is None else Prices(fewer_axes(prices.mesh, runs))
    own = {(array.name, array.dims): array for array in arrays}

    @cache
    def whole(array: ShardedArray) -> ShardedArray:
        return spelt_array(array, own[array.name, array.dims], runs)

    @cache
    def change(step: Change) -> Change:
        return spelt(step, own[step.before.name, step.before.dims], runs)

    return tuple(
        ShardingPlan(
            tuple(map(change, plan.before)),
            *map(whole, (plan.a, plan.b, plan.c)),
            tuple(map(change, plan.after)),
        )
        for plan in candidates(*few, left, priced, precision)
    )


@dataclass(frozen=True)
class PlanSearch:
    """The best ways to reshard the operands for the product, and the result after it.

    The three ways of a plan have at most `most` collectives in total.
    """

    a: Routes
    b: Routes
    c: Routes
    most: int

    @classmethod
    def of(
        cls,
        arrays: Operands,
        found: Iterable[Split],
        axes: Names,
        prices: Prices | None,
        most: int,
    ) -> "PlanSearch":
        """The searches for the operands and, backwards, for the result.

        One array can use all `most` collectives only if slices are enough for the other
        two, so only the states of such splits in `found` are wanted then.
        """
        a, b, c = arrays
        wanted = set(), set(), set()
        for split in found:
            sliced = (
                _sliced(a.state, split.a),
                _sliced(b.state, split.b),
                _sliced(split.c, c.state),
            )
            for states, state, own in zip(
                wanted, (split.a, split.b, split.c), sliced, strict=True
            ):
                if sum(sliced) - own == 2:
                    states.add(state)
        return cls(
            short_routes(a, axes, prices, most, wanted[0]),
            short_routes(b, axes, prices, most, wanted[1]),
            short_routes(c, axes, prices, most, wanted[2], backwards=True),
            most,
        )

    def plans(self, found: Iterable[Split]) -> list[ShardingPlan]:
        """The fastest plan for each split that at most `most` collectives can reach."""
        return [self._plan(*ways) for ways in self._ways(found)]

    def quickest(
        self, found: Iterable[Split], in_turn: Callable[[Split, Cost], tuple]
    ) -> list[ShardingPlan]:
        """The `MOST_PLANS` of `plans` that come first in the order of `in_turn`.

        A plan's expected time, if all its resources overlap, is known only once we have
        its collectives. Its time in turn is known from the costs of its three ways.

        So that bytes can still be traded for FLOPs and for simplicity, we also keep the
        first plan for each number of FLOPs and of collectives.

        Args:
            found: how the product may be split.
            in_turn: gives the place of a plan, by its split and the cost of its ways;
                FLOPs come last.
        """
        rated = [(in_turn(*ways[:2]), ways) for ways in self._ways(found)]
        rated.sort(key=itemgetter(0))
        kept, kinds = [], set()
        for n, ((*_, flops), ways) in enumerate(rated):
            kind = flops, ways[1][2]
            if n < MOST_PLANS or kind not in kinds:
                kept.append(self._plan(*ways))
            kinds.add(kind)
        return kept

    def _ways(self, found: Iterable[Split]) -> Iterator[tuple[Split, Cost, tuple]]:
        """Each split that can be reached, the least cost of its three ways in turn, and
        how many collectives each of them has.

        No search reaches a split into blocks of unequal size.
        """
        for split in found:
            if split.a not in self.a or split.b not in self.b or split.c not in self.c:
                continue
            ways = (
                self.a.costs(split.a),
                self.b.costs(split.b),
                self.c.costs(split.c),
            )
            best = [costs[0] for costs in ways]
            total = _sum(best)
            if total[2] > self.most:
                every = ((_sum(three), three) for three in product(*ways))
                short = [both for both in every if both[0][2] <= self.most]
                if not short:
                    continue
                total, best = min(short)
            yield split, total, tuple(cost[2] for cost in best)

    def _plan(self, split: Split, total: Cost, counts: tuple) -> ShardingPlan:
        """The plan for one split."""
        to_a, to_b, to_c = counts
        return ShardingPlan(
            self.a.changes(split.a, to_a) + self.b.changes(split.b, to_b),
            self.a.at(split.a),
            self.b.at(split.b),
            self.c.at(split.c),
            self.c.changes(split.c, to_c),
        )


def _sliced(before: State, after: State) -> bool:
    """Whether slices alone lead from one state to the other."""
    return before[1] == after[1] and all(
        there[: len(here)] == here
        for here, there in zip(before[0], after[0], strict=True)
    )


def _sum(costs: Iterable[Cost]) -> Cost:
    time, sent, count = map(sum, zip(*costs, strict=True))
    return time, sent, count


def _in_turn(
    arrays: Operands, prices: Prices | None, precision: str
) -> Callable[[Split, Cost], tuple]:
    """A function of a split and the cost of its ways: the time in turn of math, HBM and
    network or, without prices, the bytes that are sent; then the FLOPs."""
    a, b, c = arrays
    sizes = {d: n for x in arrays for d, n in zip(x.dims, x.sizes, strict=True)}
    flops = 2 * prod(sizes.values())
    own = [n for n, dim in enumerate(b.dims) if dim not in a.dims]
    chip = None if prices is None else chip_of(prices.mesh)
    peak = None if chip is None else chip.flops[precision]
    ways = cache(a.ways)
    blocks = cache(lambda placed: prod(map(ways, placed)))

    def place(split: Split, cost: Cost) -> tuple:
        (in_a, _), (in_b, _), (in_c, _) = split.a, split.b, split.c
        work = flops / blocks(in_a) / prod(ways(in_b[n]) for n in own)
        if chip is None:
            return cost[1], work
        nbytes = (
            a.nbytes / blocks(in_a) + b.nbytes / blocks(in_b) + c.nbytes / blocks(in_c)
        )
        seconds = work / peak + nbytes / chip.hbm_bandwidth
        return cost[0] + seconds * SECOND, work

    return place


def _key(plan: ShardingPlan) -> tuple:
    """A key in which different plans for the same arrays differ."""
    steps = tuple((s.op, s.axes, s.after.state) for s in plan.before + plan.after)
    return plan.a.state, plan.b.state, plan.c.state, steps
