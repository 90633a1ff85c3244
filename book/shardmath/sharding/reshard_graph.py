"""The numbered changes between the shardings of an array, except permutes.

A search needs the same neighbours of a sharding many times: for every set of sums that
are still open, for every number of collectives, and in both directions. So shardings
are numbered, and the changes from one to another are listed once.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, combinations, pairwise, permutations, product

from .layout import Names, Placed
from .reshard_step import placements

State = tuple[Placed, Names]  # the axes of every dimension, and those of open sums
Move = tuple[int, int, tuple[int, ...]]  # kind, the state at its other end, dimensions

GATHER, SCATTER, EXCHANGE, ADD, SLICE = range(5)
PERMUTE = 3  # the rank of a permute, see `Graph.rank`
OPS = ("all_gather", "reduce_scatter", "all_to_all", "all_reduce", "slice")


class Graph:
    """The changes between the states of arrays on one mesh, except permutes.

    The number of a state is the number of its placement times 2^(axes of the mesh),
    plus a bit for every axis of an open sum. The number of a kind of change is the
    number of its group of axes times 5, plus the index of its operation in `OPS`.

    Args:
        axes: the mesh axes that may be moved.
        mesh: all axes of the mesh; open sums are listed in this order.
        dims: the number of dimensions of the array.
    """

    def __init__(self, axes: Names, mesh: Names, dims: int):
        self.axes, self.mesh = axes, mesh
        self.order = {name: n for n, name in enumerate(axes)}
        self.bit = {name: 1 << n for n, name in enumerate(mesh)}
        self.width = len(mesh)
        self.low = (1 << self.width) - 1
        self.movable = self._mask(axes)
        self.placed = tuple(placements(axes, dims))
        self.number = {placed: n for n, placed in enumerate(self.placed)}
        self.used = [self._mask(a for run in p for a in run) for p in self.placed]
        self.groups: list[Names] = []  # the axes of changes, by number
        self._group: dict[Names, tuple[int, int]] = {}
        self._ranks: dict[tuple[int, tuple], tuple[int, ...]] = {}
        self._sums: dict[int, Names] = {}
        self._subsets: dict[int, list[tuple[int, int]]] = {}
        # By placement, what `_shorter` and the like have found.
        self._less: dict[int, list] = {}
        self._more: dict[int, list] = {}
        self._other: dict[int, list] = {}
        self._much_less: dict[int, list] = {}
        self._much_more: dict[int, list] = {}

    def _mask(self, axes) -> int:
        return sum(map(self.bit.__getitem__, axes))

    def code(self, state: State) -> int:
        """The number of a state."""
        placed, sums = state
        return self.number[placed] << self.width | self._mask(sums)

    def state(self, code: int) -> State:
        """The state with this number."""
        mask = code & self.low
        if mask not in self._sums:
            bits = self.bit.items()
            self._sums[mask] = tuple(name for name, bit in bits if mask & bit)
        return self.placed[code >> self.width], self._sums[mask]

    def rank(self, kind: int, dims: tuple[int, ...]) -> tuple[int, ...]:
        """The order of changes of equal cost: gathers of the last dimension come first.

        The rank of a permute starts with `PERMUTE`, so changes over several dimensions
        come after it.
        """
        if (kind, dims) not in self._ranks:
            group, op = divmod(kind, len(OPS))
            axes = self.groups[group]
            at = tuple(self.order[axis] for axis in axes)
            if op == EXCHANGE or (op == GATHER and len(dims) == 1):
                found = 0, -dims[0], len(axes), *dims[1:]
            elif op == SLICE:
                found = 1, *at, *dims
            else:
                found = 4 if len(dims) > 1 else 2, len(at), *at, *dims
            self._ranks[kind, dims] = found
        return self._ranks[kind, dims]

    def changes(self, code: int, backwards: bool, several: bool) -> Iterator[Move]:
        """Every change from a state, or to it in a backward search."""
        yield from self.collectives(code, backwards, several)
        yield from self.slices(code, backwards)

    def collectives(self, code: int, backwards: bool, several: bool) -> Iterator[Move]:
        """The changes that are collectives.

        Args:
            code: the number of the state.
            backwards: whether they lead to the state.
            several: whether a gather or scatter may be over several dimensions at once.
        """
        n, sums, width = code >> self.width, code & self.low, self.width
        less = self._shorter(n), self._much_shorter(n) if several else ()
        for other, kind, mask, dims in chain.from_iterable(less):
            there = other << width | sums
            if backwards:
                yield kind + SCATTER, there | mask, dims
            else:
                yield kind + GATHER, there, dims
        for other, kind, ways in self._exchanged(n):
            yield kind + EXCHANGE, other << width | sums, ways[backwards]
        pool = self._idle(n, sums) if backwards else sums
        if not pool:
            return
        more = self._longer(n), self._much_longer(n) if several else ()
        for other, kind, mask, dims in chain.from_iterable(more):
            if mask & ~pool:
                continue
            if backwards:
                yield kind + GATHER, other << width | sums, dims
            else:
                yield kind + SCATTER, other << width | sums & ~mask, dims
        for kind, mask in self._some(pool):
            yield kind + ADD, code ^ mask, ()

    def slices(self, code: int, backwards: bool) -> Iterator[Move]:
        """The slices from a state, or to it in a backward search."""
        n, sums = code >> self.width, code & self.low
        if backwards:
            for less, kind, mask, dims in self._shorter(n):
                if mask.bit_count() == 1:
                    yield kind + SLICE, less << self.width | sums, dims
            return
        idle = self._idle(n, sums)
        for more, kind, mask, dims in self._longer(n):
            if mask.bit_count() > 1:  # single axes come first
                return
            if mask & idle:
                yield kind + SLICE, more << self.width | sums, dims

    def _idle(self, n: int, sums: int) -> int:
        """The axes that may be moved and over which the array is copied."""
        return self.movable & ~(self.used[n] | sums)

    def _kind(self, axes: Names) -> tuple[int, int]:
        """The kind of the first operation over `axes`, and their bits."""
        if axes not in self._group:
            kind = len(OPS) * len(self.groups)
            self._group[axes] = kind, self._mask(axes)
            self.groups.append(axes)
        return self._group[axes]

    def _some(self, pool: int) -> list[tuple[int, int]]:
        """Every subset of the axes in `pool`, which are of open sums or idle."""
        if pool not in self._subsets:
            axes = tuple(name for name, bit in self.bit.items() if pool & bit)
            self._subsets[pool] = [self._kind(some) for some in _some(axes)]
        return self._subsets[pool]

    def _shorter(self, n: int) -> list[tuple]:
        """Placements without the minor axes of one dimension."""
        if n not in self._less:
            placed = self.placed[n]
            self._less[n] = [
                (self.number[_put(placed, d, axes[:at])], *self._kind(axes[at:]), (d,))
                for d, axes in enumerate(placed)
                for at in range(len(axes))
            ]
        return self._less[n]

    def _exchanged(self, n: int) -> list[tuple]:
        """Placements in which the minor axes of one dimension follow those of another,
        and both dimensions in either direction."""
        if n not in self._other:
            placed = self.placed[n]
            self._other[n] = [
                (
                    self.number[_put(_put(placed, d, axes[:at]), e, more + axes[at:])],
                    self._kind(axes[at:])[0],
                    ((d, e), (e, d)),
                )
                for (d, axes), (e, more) in permutations(enumerate(placed), 2)
                for at in range(len(axes))
            ]
        return self._other[n]

    def _much_shorter(self, n: int) -> list[tuple]:
        """Placements without the minor axes of several dimensions."""
        if n not in self._much_less:
            placed, found = self.placed[n], []
            for counts in product(*(range(len(axes) + 1) for axes in placed)):
                dims = tuple(d for d, count in enumerate(counts) if count)
                if len(dims) > 1:
                    cut = [len(a) - c for a, c in zip(placed, counts, strict=True)]
                    runs = list(zip(placed, cut, strict=True))
                    less = self.number[tuple(axes[:at] for axes, at in runs)]
                    gone = tuple(a for axes, at in runs for a in axes[at:])
                    found.append((less, *self._kind(gone), dims))
            self._much_less[n] = found
        return self._much_less[n]

    def _longer(self, n: int) -> list[tuple]:
        """Placements with more minor axes in one dimension; those with one axis more
        come first."""
        if n not in self._more:
            placed, found = self.placed[n], []
            for ordered in self._unused(n):
                kind = self._kind(ordered)
                for d, axes in enumerate(placed):
                    more = self.number[_put(placed, d, axes + ordered)]
                    found.append((more, *kind, (d,)))
            self._more[n] = found
        return self._more[n]

    def _much_longer(self, n: int) -> list[tuple]:
        """Placements with more minor axes in several dimensions."""
        if n not in self._much_more:
            placed, found = self.placed[n], []
            for ordered in self._unused(n):
                kind = self._kind(ordered)
                for dims in _choices(len(placed), len(ordered)):
                    for parts in _cuts(ordered, len(dims)):
                        more = placed
                        for d, part in zip(dims, parts, strict=True):
                            more = _put(more, d, more[d] + part)
                        found.append((self.number[more], *kind, dims))
            self._much_more[n] = found
        return self._much_more[n]

    def _unused(self, n: int) -> Iterator[Names]:
        """The axes that a placement leaves out, in every number and order."""
        pool = tuple(a for a in self.axes if not self.bit[a] & self.used[n])
        for axes in _some(pool):
            yield from permutations(axes)


@lru_cache(maxsize=8)
def graph(axes: Names, mesh: Names, dims: int) -> Graph:
    """The `Graph` of arrays with `dims` dimensions, shared by their searches."""
    return Graph(axes, mesh, dims)


def _choices(n: int, most: int) -> Iterator[tuple[int, ...]]:
    """Two to `most` of n dimensions, in order."""
    for count in range(2, min(n, most) + 1):
        yield from combinations(range(n), count)


def _cuts(axes: Names, parts: int) -> Iterator[tuple[Names, ...]]:
    """Every way to cut `axes` into `parts` runs, none of them empty."""
    for cuts in combinations(range(1, len(axes)), parts - 1):
        ends = (0, *cuts, len(axes))
        yield tuple(axes[a:b] for a, b in pairwise(ends))


def _some(axes: Names) -> Iterator[Names]:
    for n in range(1, len(axes) + 1):
        yield from combinations(axes, n)


def _put(placed: Placed, dim: int, axes: Names) -> Placed:
    return (*placed[:dim], axes, *placed[dim + 1 :])
