"""The states that a search has found level by level, and the ways to them.

Level k holds the states that k collectives reach for less than fewer do, with the cost.
A search keeps only costs. Which way costs so little is found here afterwards, from its
far end: its last change starts at a state whose cost is less by the cost of the change.
"""

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import NamedTuple

from .change_costs import ChangeCosts, Cost, Memo
from .layout import ShardedArray
from .prices import Prices
from .reshard_graph import PERMUTE, State
from .reshard_search import Edge, edge

Packed = int  # a cost as one number: the time, then the bits of the bytes
FAR: Packed = 1 << 4096  # more than any cost


class LastChange(NamedTuple):
    """The last change of a way: `kind` is None for a permute, `level` and `start` are
    where it starts, and `rank` decides between ways of equal cost."""

    rank: tuple
    kind: int | None
    dims: tuple[int, ...]
    level: int
    start: int


class Levels:
    """The levels of one search; states are the numbers that `Graph` gives them.

    Args:
        array, axes, prices, most, backwards: as for `short_routes`.
    """

    def __init__(
        self,
        array: ShardedArray,
        axes: Collection[str],
        prices: Prices | None,
        most: int,
        backwards: bool,
    ):
        self.backwards = backwards
        self.changes = ChangeCosts(array, axes, prices)
        self.graph = self.changes.graph
        self.width, self.low = self.graph.width, self.graph.low
        # A collective sends at most twice the array; bytes are counted in quarters.
        self.bits = ((int(array.nbytes) + 1) * 8 * (most + 1)).bit_length()
        # The costs of other changes, by the placement where they start and their kind.
        paid = Memo(
            lambda block: Memo(lambda kind: self._packed(self.changes.of(kind, block)))
        )
        self.paid = [paid[block] for block in self.changes.block]
        # The costs of permutes, by the bytes of a block and the number of the rate.
        self.permutes = Memo(
            lambda block: Memo(
                lambda rate: self._packed(self.changes.permute_at(rate, block))
            )
        )
        self.levels: list[dict[int, Packed]] = []
        # By level: the states from which permutes lead there, by shape.
        self.sources: list[dict[tuple, list[int]]] = []
        # By state and level, what `_way` and `_ends` have found.
        self.orders: dict[tuple[int, int], tuple[tuple, LastChange | None]] = {}
        self.ends: dict[tuple[int, int], tuple] = {}
        self.start = self.graph.code(array.state)

    def ways(self) -> dict[int, list[Cost]]:
        """Time, bytes and collectives of the ways to each state, cheapest first."""
        found: dict[int, list[Cost]] = {}
        low = (1 << self.bits) - 1
        for count in reversed(range(len(self.levels))):
            for state, cost in self.levels[count].items():
                way = cost >> self.bits, cost & low, count
                found.setdefault(state, []).append(way)
        return found

    def last(self, state: State, count: int) -> Edge | None:
        """The last change of the way to `state` with `count` collectives."""
        _, found = self._way(self.graph.code(state), count)
        if found is None:
            return None
        start = self.graph.state(found.start)
        return edge(self.graph, found.kind, found.dims, start, state, self.backwards)

    def _way(self, there: int, count: int) -> tuple[tuple, LastChange | None]:
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

    def _ends(self, there: int, count: int) -> tuple[tuple | None, list[LastChange]]:
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

    def _first(self, lasts: list[LastChange]) -> tuple[tuple, LastChange]:
        """The order of the best of several ways, and its last change."""
        if self.backwards:  # ranks are compared along the way
            rank = min(last.rank for last in lasts)
            lasts = [last for last in lasts if last.rank == rank]
        ways = [(self._order(x, self._way(x.start, x.level)[0]), x) for x in lasts]
        least = min(order for order, _ in ways)
        tied = (last for order, last in ways if order == least)
        return least, min(tied, key=self._axes)

    def _axes(self, last: LastChange) -> list[list[int]]:
        """A key by the axes that split each dimension at the start of `last`."""
        placed, at = self.graph.placed[last.start >> self.width], self.graph.order
        return [[at[axis] for axis in axes] for axes in placed]

    def _order(self, last: LastChange, rest: tuple) -> tuple:
        return (last.rank, *rest) if self.backwards else (*rest, last.rank)

    def _lasts(self, there: int, count: int) -> Iterator[LastChange]:
        """The last changes of all ways to `there` that cost as little as the best."""
        level, cost = self.levels[count], self.levels[count][there]
        before = self.levels[count - 1] if count else {}
        by_kind = self.paid[there >> self.width]
        for kind, here, dims in self.changes.all_from(there, not self.backwards):
            if not self.backwards:
                by_kind = self.paid[here >> self.width]
            more = by_kind[kind]
            known = (before if more else level).get(here)
            if known is not None and known + more == cost:
                rank = self.graph.rank(kind, dims)
                yield LastChange(rank, kind, dims, count - bool(more), here)
        starts = self.sources[count].get(self._shape(there), ())
        if self.changes.lone:
            starts = self._alike(there)
        for here, more in zip(starts, self._permutes(there, starts), strict=True):
            known = (before if more else level).get(here)
            if here == there or known is None or known + more != cost:
                continue
            if not more or not self._ends_with_permute(here, count - 1):
                rank = PERMUTE, there >> self.width
                yield LastChange(rank, None, (), count - bool(more), here)

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

    def _shape(self, state: int) -> tuple:
        return self.changes.shapes.grids[state >> self.width], state & self.low

    def _alike(self, here: int) -> list[int]:
        """All states of the same shape."""
        n, sums = here >> self.width, here & self.low
        alike = self.changes.shapes.alike(n, sums).members
        return [m << self.width | sums for m in alike]

    def _in_order(self, here: int, there: int) -> tuple[int, int]:
        return (there, here) if self.backwards else (here, there)

    def _paid(self, kind: int, here: int, there: int) -> Packed:
        before, _ = self._in_order(here, there)
        return self.paid[before >> self.width][kind]

    def _packed(self, cost: Cost | None) -> Packed:
        return FAR if cost is None else (cost[0] << self.bits) + cost[1]
