"""The best ways from one sharding to all others with few collectives.

The plans of a matmul compare ways of different lengths, because a plan has a limited
number of collectives for its three arrays. So we need, for every state and every number
of collectives, the cheapest way that has exactly that many. We find them level by
level: level k holds the states that k collectives reach for less than fewer do.

    level 0      the state of the array, and those that slices reach from it
    level k + 1  the states that one collective reaches from level k, and those that
                 slices reach from there

A level needs no queue, since each of its ways ends with a collective from the level
before, which is complete. Nearly all changes are permutes: six axes that split a matrix
can be arranged in 720 orders, and one permute leads from each order to every other. We
take the states of one shape together, and go through those that the level has, from the
cheapest on. Each gives a row of costs, one for every state of the shape, and the least
of each column is the cost on the next level. We stop where not even the cheapest
permute could improve a column.

A search keeps only costs. Which way costs so little is found afterwards, from its far
end, and only for the ways that a plan uses.
"""

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import compress
from typing import NamedTuple

from .change_costs import ChangeCosts, Cost, Memo
from .layout import ShardedArray
from .prices import Prices
from .reshard_graph import PERMUTE, State
from .reshard_search import Edge, Routes, edge

Packed = int  # a cost as one number: the time, then the bits of the bytes
FAR: Packed = 1 << 4096  # more than any cost


def short_routes(
    array: ShardedArray,
    axes: Collection[str],
    prices: Prices | None,
    most: int,
    wanted: Collection[State] | None = None,
    backwards: bool = False,
) -> "ShortRoutes":
    """The best ways with at most `most` collectives, and the best ways with fewer.

    Args:
        array: the array whose placement is one end of all ways.
        axes: the mesh axes that may be moved; all others stay in place.
        prices: as for `routes`, which also says how ways of equal cost are ordered.
        most: the maximum number of collectives.
        wanted: the states for which ways with exactly `most` collectives are wanted; by
            default, all states.
        backwards: search the ways that lead to `array`.
    """
    search = _Levels(array, axes, prices, most, wanted, backwards)
    return ShortRoutes(array, backwards, search)


class ShortRoutes(Routes):
    """For each state, the cheapest way and more expensive ways with fewer collectives.

    Args:
        search: the search, which is complete.
    """

    def __init__(self, array: ShardedArray, backwards: bool, search: "_Levels"):
        super().__init__(array, backwards)
        self._search = search
        state = search.graph.state
        self._costs = {state(code): ways for code, ways in search.ways().items()}

    def __contains__(self, state: State) -> bool:
        return state in self._costs

    def costs(self, state: State) -> list[Cost]:
        return self._costs[state]

    def last(self, state: State, count: int) -> Edge | None:
        return self._search.last(state, count)


class _Last(NamedTuple):
    """The last change of a way: `kind` is None for a permute, `level` and `start` are
    where it starts, and `rank` decides between ways of equal cost."""

    rank: tuple
    kind: int | None
    dims: tuple[int, ...]
    level: int
    start: int


class _Levels:
    """The search; states are the numbers that `Graph` gives them.

    As in `routes`, no permute follows another, because one permute that does both costs
    no more.
    """

    def __init__(
        self,
        array: ShardedArray,
        axes: Collection[str],
        prices: Prices | None,
        most: int,
        wanted: Collection[State] | None,
        backwards: bool,
    ):
        self.backwards = backwards
        self.changes = ChangeCosts(array, axes, prices)
        self.graph = self.changes.graph
        self.width, self.low = self.graph.width, self.graph.low
        # A collective sends at most twice the array; bytes are counted in quarters.
        self.bits = ((int(array.nbytes) + 1) * 8 * (most + 1)).bit_length()
        self.paid = Memo(lambda key: self._packed(self.changes.of(*key)))
        # The costs of permutes, by the bytes of a block and the number of the rate.
        self.permutes = Memo(
            lambda block: Memo(
                lambda rate: self._packed(self.changes.permute_at(rate, block))
            )
        )
        self.levels: list[dict[int, Packed]] = []
        # In the last level: the states that only a permute reaches for so little, and
        # those that other changes reach for as little as a permute does.
        self.permuted: set[int] = set()
        self.tied: set[int] = set()
        # By level: the states from which permutes lead there, by shape.
        self.sources: list[dict[tuple, list[int]]] = []
        # By state and level, what `_way` and `_ends` have found.
        self.orders: dict[tuple[int, int], tuple[tuple, _Last | None]] = {}
        self.ends: dict[tuple[int, int], tuple] = {}
        self.start = self.graph.code(array.state)
        self.best: dict[int, Packed] = {self.start: 0}  # up to the last level
        self._add_level({self.start: 0}, {})
        while len(self.levels) < most and self.levels[-1]:
            self._next()
        if len(self.levels) == most:
            self._next(self._before_slices(wanted))

    def ways(self) -> dict[int, list[Cost]]:
        """Time, bytes and collectives of the ways to each state, cheapest first."""
        found: dict[int, list[Cost]] = {}
        low = (1 << self.bits) - 1
        for count in reversed(range(len(self.levels))):
            for state, cost in self.levels[count].items():
                way = cost >> self.bits, cost & low, count
                found.setdefault(state, []).append(way)
        return found

    def _packed(self, cost: Cost | None) -> Packed:
        return FAR if cost is None else (cost[0] << self.bits) + cost[1]

    # --- the costs of each level ------------------------------------------------------

    def _before_slices(self, wanted: Collection[State] | None) -> set[int] | None:
        """The `wanted` states and those from which slices lead there; None if those are
        many, or if other changes too cost nothing."""
        if wanted is None or self.changes.lone:
            return None
        found = set(map(self.graph.code, wanted))
        new = list(found)
        while new and len(found) < len(self.levels[-1]):
            for _, state, _ in self.graph.slices(new.pop(), not self.backwards):
                if state not in found:
                    found.add(state)
                    new.append(state)
        return None if new else found

    def _next(self, wanted: set[int] | None = None) -> None:
        """Find the states, or those in `wanted`, that one more collective reaches for
        less."""
        best, divides, width = self.best, self.changes.divides, self.width
        level: dict[int, Packed] = {}
        for there, cost in self._changed() if wanted is None else self._into(wanted):
            if cost < best.get(there, FAR) and divides[there >> width]:
                best[there] = level[there] = cost
        sources, tied = self._by_shape(wanted), self.tied
        self.permuted, self.tied = set(), set()
        for states in sources.values():
            self._permute(states, tied, level, wanted)
        self._add_level(level, sources)

    def _changed(self) -> Iterator[tuple[int, Packed]]:
        """The states that a collective, except a permute, reaches from the last level,
        each with the cost."""
        paid, block, width = self.paid, self.changes.block, self.width
        for here, cost in self.levels[-1].items():
            before = block[here >> width]
            for kind, there, _ in self.graph.changes(here, self.backwards):
                if self.backwards:
                    before = block[there >> width]
                if more := paid[kind, before]:
                    yield there, cost + more

    def _into(self, wanted: set[int]) -> Iterator[tuple[int, Packed]]:
        """As `_changed`, but only the states in `wanted`."""
        last = self.levels[-1]
        for there in wanted:
            for kind, here, _ in self.graph.changes(there, not self.backwards):
                if here in last and (more := self._paid(kind, here, there)):
                    yield there, last[here] + more

    def _by_shape(self, wanted: set[int] | None) -> dict[tuple, list[int]]:
        """The states of the last level from which a permute may lead to the next one,
        cheapest first, by their grid and open sums."""
        shapes = None if wanted is None else set(map(self._shape, wanted))
        found: dict[tuple, list[int]] = {}
        level = self.levels[-1]
        starts = level.keys() - self.permuted
        for here in sorted(starts, key=lambda here: (level[here], here)):
            shape = self._shape(here)
            if shapes is None or shape in shapes:
                found.setdefault(shape, []).append(here)
        return found

    def _shape(self, state: int) -> tuple:
        return self.changes.shapes.grids[state >> self.width], state & self.low

    def _permute(
        self,
        states: list[int],
        tied: set[int],
        reached: dict[int, Packed],
        wanted: set[int] | None,
    ) -> None:
        """Add what permutes reach from `states` of one shape to the next level, and
        leave only those states from which a permute can be the best.

        Of the states in `tied`, we need to know whether their way ends with a permute.
        """
        n, sums = states[0] >> self.width, states[0] & self.low
        alike = self.changes.shapes.alike(n, sums)
        columns = alike.columns
        ends = [m << self.width | sums for m in alike.members]
        if wanted is not None:
            few = [end in wanted for end in ends]
            ends = list(compress(ends, few))
            columns = [list(compress(column, few)) for column in columns]
        least = [self.best.get(end, FAR) + 1 for end in ends]  # so that ties are found
        permute = self.permutes[self.changes.block[n]]
        shortest = self._packed(self.changes.least_permute(self.changes.block[n]))
        found: dict[int, Packed] = {}
        level = len(self.levels) - 1
        cost, total = -1, {}
        for count, here in enumerate(states):
            if self.levels[-1][here] != cost:
                cost = self.levels[-1][here]
                total = Memo(lambda rate, cost=cost: cost + permute[rate])
                limit = cost + shortest  # a smaller cost can't be improved any more
                left = [known >= limit for known in least]
                if left.count(True) < 0.8 * len(left):
                    found |= zip(ends, least, strict=True)
                    ends, least = (list(compress(x, left)) for x in (ends, least))
                    columns = [list(compress(column, left)) for column in columns]
            if not ends:
                del states[count:]
                break
            row = self.changes.rates.row(here >> self.width, columns, self.backwards)
            costs = map(total.__getitem__, row)
            less = [a if a < b else b for a, b in zip(least, costs, strict=True)]
            if here in tied and less != least and self._ends_with_permute(here, level):
                continue
            least = less
        found |= zip(ends, least, strict=True)
        for end, cost in found.items():
            known = self.best.get(end, FAR)
            if cost < known:
                self.best[end] = reached[end] = cost
                self.permuted.add(end)
            elif cost == known and end in reached and self.changes.prices:
                self.tied.add(end)

    def _alike(self, here: int) -> list[int]:
        """All states of the same shape."""
        n, sums = here >> self.width, here & self.low
        alike = self.changes.shapes.alike(n, sums).members
        return [m << self.width | sums for m in alike]

    def _add_level(
        self, level: dict[int, Packed], sources: dict[tuple, list[int]]
    ) -> None:
        """Add a level, and to it what changes without a collective reach."""
        done = set()
        for first in sorted(level, key=level.get):
            cost, reached = level[first], [first]
            for here in reached:
                if here in done:
                    continue
                done.add(here)
                for there, permuted in self._free(here):
                    known = self.best.get(there, FAR)
                    if cost < known and self.changes.divides[there >> self.width]:
                        self.best[there] = level[there] = cost
                        (self.permuted.add if permuted else self.permuted.discard)(
                            there
                        )
                        self.tied.discard(there)
                        reached.append(there)
                    elif cost == known and there in self.permuted and not permuted:
                        self.permuted.discard(there)
                        self.tied.add(there)
        self.levels.append(level)
        self.sources.append(sources)

    def _free(self, here: int) -> Iterator[tuple[int, bool]]:
        """The states that a change without a collective reaches, and whether it is a
        permute: only slices, unless an axis has one device."""
        if not self.changes.lone:
            for _, there, _ in self.graph.slices(here, self.backwards):
                yield there, False
            return
        for kind, there, _ in self.graph.changes(here, self.backwards):
            if not self._paid(kind, here, there):
                yield there, False
        alike = self._alike(here)
        for there, cost in zip(alike, self._permutes(here, alike), strict=True):
            if not cost:
                yield there, True

    def _in_order(self, here: int, there: int) -> tuple[int, int]:
        return (there, here) if self.backwards else (here, there)

    def _paid(self, kind: int, here: int, there: int) -> Packed:
        before, _ = self._in_order(here, there)
        return self.paid[kind, self.changes.block[before >> self.width]]

    # --- the ways with these costs ----------------------------------------------------

    def last(self, state: State, count: int) -> Edge | None:
        """The last change of the way to `state` with `count` collectives."""
        _, found = self._way(self.graph.code(state), count)
        if found is None:
            return None
        start = self.graph.state(found.start)
        return edge(self.graph, found.kind, found.dims, start, state, self.backwards)

    def _way(self, there: int, count: int) -> tuple[tuple, _Last | None]:
        """The ranks of the changes on the best way, and the last of these changes."""
        if (there, count) not in self.orders:
            self._settle(there, count)
        return self.orders[there, count]

    def _settle(self, there: int, count: int) -> None:
        """Find the best way to `there` and to all states that lead there for nothing.

        All these ways cost the same, so their order decides. As in `routes`, the state
        whose way comes first is settled first, and then leads to others.
        """
        states, onward, queue = [there], defaultdict(list), []
        for state in states:
            paid, free = self._ends(state, count)
            if paid is not None:
                order, last = paid
                queue.append((order, len(queue), state, last))
            for last in free:
                if last.start not in onward:
                    states.append(last.start)
                onward[last.start].append((state, last))
        heapq.heapify(queue)
        pushed, settled = len(queue), set()
        while queue:
            order, _, state, last = heapq.heappop(queue)
            if state in settled:
                continue
            settled.add(state)
            self.orders[state, count] = order, last
            for end, change in onward[state]:
                both = last is not None and last.kind is change.kind is None
                if end not in settled and not both:
                    way = self._order(change, order), pushed, end, change
                    heapq.heappush(queue, way)
                    pushed += 1

    def _ends(self, there: int, count: int) -> tuple[tuple | None, list[_Last]]:
        """The best of the ways to `there` that end with a collective, and the last
        changes of those that do not."""
        if (there, count) not in self.ends:
            lasts = list(self._lasts(there, count))
            paid = [last for last in lasts if last.level < count]
            first = self._first(paid) if paid else None
            if there == self.start and not count:
                first = (), None
            free = [last for last in lasts if last.level == count]
            self.ends[there, count] = first, free
        return self.ends[there, count]

    def _first(self, lasts: list[_Last]) -> tuple[tuple, _Last]:
        """The order of the best of several ways, and its last change."""
        if self.backwards:  # ranks are compared along the way
            rank = min(last.rank for last in lasts)
            lasts = [last for last in lasts if last.rank == rank]
        ways = [(self._order(x, self._way(x.start, x.level)[0]), x) for x in lasts]
        least = min(order for order, _ in ways)
        tied = (last for order, last in ways if order == least)
        return least, min(tied, key=self._axes)

    def _axes(self, last: _Last) -> list[list[int]]:
        """A key by the axes that split each dimension at the start of `last`."""
        placed, at = self.graph.placed[last.start >> self.width], self.graph.order
        return [[at[axis] for axis in axes] for axes in placed]

    def _order(self, last: _Last, rest: tuple) -> tuple:
        return (last.rank, *rest) if self.backwards else (*rest, last.rank)

    def _lasts(self, there: int, count: int) -> Iterator[_Last]:
        """The last changes of all ways to `there` that cost as little as the best."""
        level, cost = self.levels[count], self.levels[count][there]
        before = self.levels[count - 1] if count else {}
        paid, block, width = self.paid, self.changes.block, self.width
        nbytes = block[there >> width]
        for kind, here, dims in self.graph.changes(there, not self.backwards):
            more = paid[kind, nbytes if self.backwards else block[here >> width]]
            known = (before if more else level).get(here)
            if known is not None and known + more == cost:
                rank = self.graph.rank(kind, dims)
                yield _Last(rank, kind, dims, count - bool(more), here)
        starts = self.sources[count].get(self._shape(there), ())
        if self.changes.lone:
            starts = self._alike(there)
        for here, more in zip(starts, self._permutes(there, starts), strict=True):
            known = (before if more else level).get(here)
            if here == there or known is None or known + more != cost:
                continue
            if not more or not self._ends_with_permute(here, count - 1):
                rank = PERMUTE, there >> width
                yield _Last(rank, None, (), count - bool(more), here)

    def _ends_with_permute(self, state: int, count: int) -> bool:
        _, last = self._way(state, count)
        return last is not None and last.kind is None

    def _permutes(self, there: int, starts: list[int]) -> Iterator[Packed]:
        """The costs of the permutes that lead to `there` from each of `starts`."""
        if not starts:
            return iter(())
        n, parts = there >> self.width, self.changes.shapes.parts
        columns = list(
            zip(*(parts[here >> self.width] for here in starts), strict=True)
        )
        row = self.changes.rates.row(n, columns, not self.backwards)
        return map(self.permutes[self.changes.block[n]].__getitem__, row)
