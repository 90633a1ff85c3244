"""What the changes of one array cost, for the searches over its states.

A cost has the time first, in whole femtoseconds, and then the bytes that a device
sends, in whole quarters of a byte: a value in fp6 has three. A sum of whole numbers
does not depend on their order, so ways that cost the same are found to be equal.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise, repeat
from math import prod
from operator import mul, or_
from typing import NamedTuple

from .layout import Names, ShardedArray
from .prices import Prices, Rate
from .reshard_graph import OPS, Graph, Move, graph
from .reshard_step import Swaps

Cost = tuple[int, int, int]  # time, or 0 without prices; bytes; collectives
Grid = tuple[int, ...]  # blocks along each dimension
FREE = 0.0, 0.0
SECOND = 10**15


class ChangeCosts:
    """The costs of the changes between the states of `array`.

    Args:
        array: the array; its placement does not matter.
        axes: the mesh axes that may be moved.
        prices: give the time of each change; with None, only bytes count.
    """

    def __init__(
        self, array: ShardedArray, axes: Collection[str], prices: Prices | None
    ):
        self.prices = prices
        self.sizes = dict(array.mesh)
        movable = tuple(name for name in self.sizes if name in set(axes))
        self.lone = any(self.sizes[name] == 1 for name in movable)
        mesh, dims = tuple(self.sizes), len(array.dims)
        self.graph = graph(movable, mesh, dims)
        self.shapes = _shapes(self.graph, tuple(self.sizes.items()))
        self.block = [array.nbytes / ways for ways in self.shapes.ways]  # bytes of one
        equal = {
            grid: not any(n % ways for n, ways in zip(array.sizes, grid, strict=True))
            for grid in self.shapes.groups
        }
        # Whether all blocks are of one size, by placement.
        self.divides = [equal[grid] for grid in self.shapes.grids]
        self._alike = Memo(lambda nbytes: _cost(nbytes, nbytes, FREE))
        self._terms: dict[int, tuple[float, int, Rate | None]] = {}

    def all_from(self, code: int, backwards: bool) -> Iterator[Move]:
        """The changes from a state or, backwards, to it, except permutes."""
        return self.graph.changes(code, backwards, self.prices is not None)

    def collectives_from(self, code: int, backwards: bool) -> Iterator[Move]:
        """Those of `all_from` that are collectives."""
        return self.graph.collectives(code, backwards, self.prices is not None)

    def of(self, kind: int, block: float) -> Cost | None:
        """The cost of a change, except a permute, of blocks of `block` bytes; None if
        it has no price."""
        if kind not in self._terms:
            group, op = divmod(kind, len(OPS))
            self._terms[kind] = self._change(OPS[op], self.graph.groups[group])
        rounds, parts, rate = self._terms[kind]
        if not rounds:
            return 0, 0, 0
        return _cost(block * rounds, block * parts, rate)

    def _change(self, op: str, axes: Names) -> tuple[float, int, Rate | None]:
        """Blocks that a device sends, blocks that V has, and the rate of the change."""
        n = prod(map(self.sizes.get, axes))
        if op == "slice" or n == 1:
            return 0, 0, None
        rounds = {"all_gather": n - 1, "all_reduce": 2 * (n - 1) / n}
        parts = n if op in ("all_gather", "all_to_all") else 1
        ordered = tuple(name for name in self.sizes if name in axes)  # asked for once
        rate = self.prices.rate(op, ordered) if self.prices else FREE
        return rounds.get(op, (n - 1) / n), parts, rate

    @cached_property
    def rates(self) -> "PermuteRates":
        """The rates of permutes, which all arrays on the mesh share."""
        known = self.shapes.rates if self.prices is None else self.prices.permutes
        if self.shapes not in known:
            known[self.shapes] = PermuteRates(self.shapes, self.sizes, self.prices)
        return known[self.shapes]

    def permutes(
        self, end: int, others: Sequence[int], backwards: bool
    ) -> Iterator[Cost | None]:
        """The costs of the permutes from a placement to others with equally many blocks
        or, backwards, from those to it; None for one that has no price."""
        nbytes = self.block[end]
        if not others or (self.prices is None and not self.lone):
            return repeat(self._alike[nbytes], len(others))
        columns = zip(*map(self.shapes.parts.__getitem__, others), strict=True)
        costs = Memo(lambda rate: self.permute_at(rate, nbytes))
        return map(costs.__getitem__, self.rates.row(end, [*columns], backwards))

    def permute_at(self, rate: int, nbytes: float) -> Cost | None:
        """The cost of a permute of blocks of `nbytes`, by the number of its rate."""
        if not rate:
            return 0, 0, 0
        return _cost(nbytes, nbytes, self.rates.known[rate])

    def least_permute(self, nbytes: float) -> Cost:
        """A lower bound on the cost of any permute of blocks of `nbytes`.

        At least every second block has to leave its device.
        """
        if self.lone:
            return 0, 0, 0
        time = 0
        if self.prices is not None:
            time = int(nbytes / 2 / self.prices.permute_egress * SECOND)
        return time, whole_bytes(nbytes), 1


class Alike(NamedTuple):
    """Placements that cut an array into equally many blocks along every dimension.

    Args:
        members: their numbers.
        columns: by dimension, each member's axes, as numbers.
    """

    members: tuple[int, ...]
    columns: tuple[tuple[int, ...], ...]


class Shapes:
    """Into how many blocks the placements of a graph cut an array."""

    def __init__(self, graph: Graph, sizes: dict[str, int]):
        self.used = graph.used
        self.grids: list[Grid] = []
        self.ways: list[int] = []  # the blocks of a whole array
        self.groups: dict[Grid, list[int]] = {}  # placements by their grid
        known: dict[Names, int] = {}
        self.parts: list[tuple[int, ...]] = []  # by dimension, an index in `names`
        for n, placed in enumerate(graph.placed):
            grid = tuple(prod(map(sizes.get, axes)) for axes in placed)
            self.grids.append(grid)
            self.ways.append(prod(grid))
            self.groups.setdefault(grid, []).append(n)
            part = tuple(known.setdefault(axes, len(known)) for axes in placed)
            self.parts.append(part)
        self.names = list(known)
        self.rates: dict[Shapes, PermuteRates] = {}  # without prices
        self._alike: dict[tuple[Grid, int], Alike] = {}

    def alike(self, n: int, sums: int) -> Alike:
        """The placements that can be permuted to or from `n` if `sums` are open."""
        key = self.grids[n], sums
        if key not in self._alike:
            some = tuple(m for m in self.groups[key[0]] if not sums & self.used[m])
            columns = tuple(zip(*(self.parts[m] for m in some), strict=True))
            self._alike[key] = Alike(some, columns)
        return self._alike[key]


@lru_cache(maxsize=8)
def _shapes(graph: Graph, sizes: tuple[tuple[str, int], ...]) -> Shapes:
    return Shapes(graph, dict(sizes))


class PermuteRates:
    """The rates of permutes between placements on one mesh.

    A rate depends only on the runs of axes that replace each other, and each such pair
    of runs has a bit. Many permutes share a rate, so each distinct rate has a number,
    its index in `known`. The number is 0 if no block changes its device.
    """

    def __init__(self, shapes: Shapes, sizes: dict[str, int], prices: Prices | None):
        self.parts, self.sizes, self.prices = shapes.parts, sizes, prices
        self.known: list[Rate | None] = [FREE]
        self._numbers: dict[Rate | None, int] = {}
        self._named: list[Names] = []  # runs of axes, by number
        self._run = Memo(self._new_run)
        self._cut: dict[tuple, list[int]] = {}
        self._pairs: list[tuple[Names, Names]] = []  # an old and a new run, by bit
        self._at: dict[tuple[int, int], int] = {}  # the bit of their numbers
        self._bits = Memo(lambda run: Memo(lambda other: self._bit(*run, other)))
        self._swaps = Memo(lambda end: self._swapped(*end))
        self._by_swaps = Memo(self._number)
        # The axes of more than one device of each part, in groups that split alike.
        self.axes = [tuple(a for a in axes if sizes[a] > 1) for axes in shapes.names]
        self._groups: dict[int, dict[tuple[int, ...], list[int]]] = {}
        for part, axes in enumerate(self.axes):
            ways = tuple(accumulate(map(sizes.get, axes), mul))
            same = self._groups.setdefault(prod(map(sizes.get, axes)), {})
            same.setdefault(ways, []).append(part)

    def row(
        self, end: int, columns: Sequence[Sequence[int]], backwards: bool
    ) -> Iterator[int]:
        """The numbers of the rates from a placement to others or, backwards, from those
        to it.

        Args:
            end: the number of the placement.
            columns: by dimension, the axes of each of the others, see `Shapes.parts`.
            backwards: whether the permutes lead to `end`.
        """
        first, *rest = (
            map(self._swaps[part, backwards].__getitem__, column)
            for part, column in zip(self.parts[end], columns, strict=True)
        )
        for more in rest:
            first = map(or_, first, more)
        return map(self._by_swaps.__getitem__, first)

    def _swapped(self, part: int, backwards: bool) -> dict[int, int]:
        """The bits of what is swapped between `part` and each part that splits a
        dimension into as many blocks."""
        mine, found = self.axes[part], {}
        ways = list(accumulate(map(self.sizes.get, mine), mul))
        for others, same in self._groups[ways[-1] if ways else 1].items():
            # Runs end where both have split the dimension equally often.
            ends = [0, *(n + 1 for n, k in enumerate(ways) if k in others)]
            stops = [0, *(n + 1 for n, k in enumerate(others) if k in ways)]
            bits = repeat(0, len(same))
            for (i, j), (k, m) in zip(pairwise(ends), pairwise(stops), strict=True):
                own = self._bits[self._run[mine[i:j]], backwards]
                bits = map(or_, bits, map(own.__getitem__, self._runs(others, k, m)))
            found |= zip(same, bits, strict=True)
        return found

    def _runs(self, ways: tuple[int, ...], start: int, end: int) -> list[int]:
        """The axes from `start` to `end` of all parts that split in `ways`."""
        key = ways, start, end
        if key not in self._cut:
            same = self._groups[ways[-1] if ways else 1][ways]
            self._cut[key] = [self._run[self.axes[part][start:end]] for part in same]
        return self._cut[key]

    def _new_run(self, axes: Names) -> int:
        """A number for `axes`."""
        self._named.append(axes)
        return len(self._named) - 1

    def _bit(self, run: int, backwards: bool, other: int) -> int:
        """The bit of two runs of axes, the old and the new; 0 if they are equal."""
        if run == other:
            return 0
        both = (other, run) if backwards else (run, other)
        if both not in self._at:
            self._at[both] = len(self._pairs)
            self._pairs.append(tuple(self._named[run] for run in both))
        return 1 << self._at[both]

    def _number(self, swaps: int) -> int:
        """The number of the rate if the pairs of these bits are swapped."""
        if not swaps:
            return 0
        rate = FREE
        if self.prices is not None:
            rate = self.prices.permute_rate(self._swapped_runs(swaps), self.sizes)
        if rate not in self._numbers:
            self._numbers[rate] = len(self.known)
            self.known.append(rate)
        return self._numbers[rate]

    def _swapped_runs(self, swaps: int) -> Swaps:
        """The pairs of runs whose bits are in `swaps`."""
        found = set()
        while swaps:
            last = swaps & -swaps
            found.add(self._pairs[last.bit_length() - 1])
            swaps ^= last
        return frozenset(found)


class Memo(dict):
    """A dictionary that computes what is missing."""

    def __init__(self, make: Callable):
        super().__init__()
        self._make = make

    def __missing__(self, key):
        found = self[key] = self._make(key)
        return found


def _cost(sent: float, nbytes: float, rate: Rate | None) -> Cost | None:
    """The cost of one collective; None if it has no price."""
    if rate is None:
        return None
    return round((nbytes * rate[0] + rate[1]) * SECOND), whole_bytes(sent), 1


def whole_bytes(nbytes: float) -> int:
    """Bytes in quarters of a byte."""
    return round(4 * nbytes)
