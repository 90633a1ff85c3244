"""The numbered changes between the shardings of an array, except permutes.

A search needs the same neighbours of a sharding many times: for every set of sums that
are still open, for every number of collectives, and in both directions. So shardings
are numbered, and the changes from one to another are listed once.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, pairwise, permutations, product

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
        several: whether a gather or scatter may be over several dimensions at once.
    """

    def __init__(self, axes: Names, mesh: Names, dims: int, several: bool):
        self.axes, self.mesh, self.several = axes, mesh, several
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
        # The other dimensions that one can give axes to, and both in either direction.
        self._exchanges = {
            (d,): [(e, ((d, e), (e, d))) for e in range(dims) if e != d]
            for d in range(dims)
        }
        self._less: dict[int, list] = {}
        self._more: dict[int, list] = {}

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

    def changes(self, code: int, backwards: bool) -> Iterator[Move]:
        """Every change from a state, or to it in a backward search."""
        n, sums, width = code >> self.width, code & self.low, self.width
        free = self.movable & ~(self.used[n] | sums)
        for less, kind, mask, dims, others in self._shorter(n):
            there = less << width | sums
            if backwards:
                yield kind + SCATTER, there | mask, dims
                if mask.bit_count() == 1:
                    yield kind + SLICE, there, dims
            else:
                yield kind + GATHER, there, dims
            for other, ways in others:
                yield kind + EXCHANGE, other << width | sums, ways[backwards]
        if not backwards:
            yield from self.slices(code, backwards)
        else:
            for more, kind, mask, dims in self._longer(n):
                if not mask & ~free:
                    yield kind + GATHER, more << width | sums, dims
            for kind, mask in self._some(free):
                yield kind + ADD, code | mask, ()
            return
        for kind, mask in self._some(sums):
            yield kind + ADD, code & ~mask, ()
        for more, kind, mask, dims in self._longer(n) if sums else ():
            if not mask & ~sums:
                yield kind + SCATTER, more << width | sums & ~mask, dims

    def slices(self, code: int, backwards: bool) -> Iterator[Move]:
        """The slices from a state, or to it in a backward search."""
        n, sums = code >> self.width, code & self.low
        if backwards:
            for less, kind, mask, dims, _ in self._shorter(n):
                if mask.bit_count() == 1 and len(dims) == 1:
                    yield kind + SLICE, less << self.width | sums, dims
            return
        free = self.movable & ~(self.used[n] | sums)
        for more, kind, mask, dims in self._longer(n):
            if mask.bit_count() > 1:  # single axes come first
                return
            if mask & free:
                yield kind + SLICE, more << self.width | sums, dims

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
        """Placements without the minor axes of one or several dimensions; for one, also
        the placements in which those axes follow those of another dimension."""
        if n in self._less:
            return self._less[n]
        placed, found, exchanges = self.placed[n], [], self._exchanges

        def add(less: Placed, axes: Names, dims: tuple[int, ...]) -> None:
            others = tuple(
                (self.number[_put(less, other, less[other] + axes)], ways)
                for other, ways in exchanges.get(dims, ())
            )
            found.append((self.number[less], *self._kind(axes), dims, others))

        for d, axes in enumerate(placed):
            for count in range(1, len(axes) + 1):
                add(_put(placed, d, axes[:-count]), axes[-count:], (d,))
        if self.several:
            for counts in product(*(range(len(axes) + 1) for axes in placed)):
                dims = tuple(d for d, count in enumerate(counts) if count)
                if len(dims) > 1:
                    cut = [len(a) - c for a, c in zip(placed, counts, strict=True)]
                    runs = list(zip(placed, cut, strict=True))
                    gone = tuple(a for axes, at in runs for a in axes[at:])
                    add(tuple(axes[:at] for axes, at in runs), gone, dims)
        self._less[n] = found
        return found

    def _longer(self, n: int) -> list[tuple]:
        """Placements with more minor axes in one or several dimensions; those with one
        axis more come first."""
        if n in self._more:
            return self._more[n]
        placed, found = self.placed[n], []
        several = len(placed) if self.several else 1
        pool = tuple(a for a in self.axes if not self.bit[a] & self.used[n])
        for axes in _some(pool):
            for ordered in permutations(axes):
                kind, mask = self._kind(ordered)
                for dims in _choices(len(placed), min(several, len(ordered))):
                    for parts in _cuts(ordered, len(dims)):
                        more = placed
                        for d, part in zip(dims, parts, strict=True):
                            more = _put(more, d, more[d] + part)
                        found.append((self.number[more], kind, mask, dims))
        self._more[n] = found
        return found


@lru_cache(maxsize=8)
def graph(axes: Names, mesh: Names, dims: int, several: bool) -> Graph:
    """The `Graph` of arrays with `dims` dimensions, shared by their searches."""
    return Graph(axes, mesh, dims, several)


def _choices(n: int, most: int) -> Iterator[tuple[int, ...]]:
    """One to `most` of n dimensions, in order."""
    for count in range(1, most + 1):
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
