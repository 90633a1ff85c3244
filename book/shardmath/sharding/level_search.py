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

We keep only costs. `level_ways` finds the ways with these costs, for the states that a
plan uses.
"""

from collections.abc import Collection, Iterator
from itertools import compress

from .change_costs import Cost, Memo
from .layout import ShardedArray
from .level_ways import FAR, Levels, Packed
from .prices import Prices
from .reshard_graph import State
from .reshard_search import Edge, Routes


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
    search = _LevelSearch(array, axes, prices, most, backwards)
    return ShortRoutes(array, backwards, search.find(most, wanted))


class ShortRoutes(Routes):
    """For each state, the cheapest way and more expensive ways with fewer collectives.

    Args:
        search: the search, which is complete.
    """

    def __init__(self, array: ShardedArray, backwards: bool, search: Levels):
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


class _LevelSearch(Levels):
    """The search for all levels, one after the other.

    As in `routes`, no permute follows another, because one permute that does both costs
    no more.
    """

    def find(self, most: int, wanted: Collection[State] | None) -> "Levels":
        """Find all levels up to `most`, and of the last one what leads to `wanted`."""
        # In the last level: the states that only a permute reaches for so little, and
        # those that other changes reach for as little as a permute does.
        self.permuted: set[int] = set()
        self.tied: set[int] = set()
        self.best: dict[int, Packed] = {self.start: 0}  # up to the last level
        self._add_level({self.start: 0}, {})
        while len(self.levels) < most and self.levels[-1]:
            self._next()
        if len(self.levels) == most:
            self._next(self._before_slices(wanted))
        return self

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
        backwards, paid, width = self.backwards, self.paid, self.width
        for here, cost in self.levels[-1].items():
            by_kind = paid[here >> width]
            for kind, there, _ in self.changes.collectives_from(here, backwards):
                if backwards:
                    by_kind = paid[there >> width]
                if more := by_kind[kind]:
                    yield there, cost + more

    def _into(self, wanted: set[int]) -> Iterator[tuple[int, Packed]]:
        """As `_changed`, but only the states in `wanted`."""
        last = self.levels[-1]
        for there in wanted:
            for kind, here, _ in self.changes.collectives_from(
                there, not self.backwards
            ):
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
        for kind, there, _ in self.changes.all_from(here, self.backwards):
            if not self._paid(kind, here, there):
                yield there, False
        alike = self._alike(here)
        for there, cost in zip(alike, self._permutes(here, alike), strict=True):
            if not cost:
                yield there, True
