"""One change of one array's sharding, and the collective that makes it.

    AllGather_X       A[I_X, J] -> A[I, J]      of the minor axes of a dimension
    AllToAll_X        A[I_X, J] -> A[I, J_X]    of the minor axes of a dimension
    ReduceScatter_X   A[I, J]{U_X} -> A[I_X, J]
    AllReduce_X       A[I, J]{U_X} -> A[I, J]
    Permute           A[I_X, J] -> A[I_Y, J]    devices exchange blocks of one shape
    slice             A[I, J] -> A[I_X, J]      nothing moves

An AllGather or ReduceScatter may be over axes of several dimensions at once: the
program gathers the blocks side by side and then rearranges them on each chip.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from operator import eq

from ..base.units import show
from ..collectives import NAMES, Collective
from ..collectives.link_load import Pairs
from .layout import Names, Placed, ShardedArray
from .notation import subscript


@dataclass(frozen=True, repr=False)
class Change:
    """One change of one array; `collective` is None if nothing moves.

    Args:
        before, after: the array before and after the change.
        op: a key of `collectives.NAMES`, or "slice".
        axes: the mesh axes over which the change runs.
    """

    before: ShardedArray
    after: ShardedArray
    op: str = "slice"
    axes: Names = ()

    @cached_property
    def collective(self) -> Collective | None:
        """The record of the collective; None for a slice or a group of one device."""
        n = self.before.ways(self.axes)
        if self.op == "slice" or n == 1:
            return None
        nbytes = self.before.local_nbytes
        if self.op in ("all_gather", "all_to_all"):
            nbytes *= n
        if self.op != "permute":
            return Collective(self.op, self.axes, nbytes, n)
        return Collective(self.op, self.axes, nbytes, n, pairs=self.pairs)

    @property
    def pairs(self) -> Pairs:
        """(from, to) for each device of a permute: row-major positions in the group."""
        sizes = dict(self.before.mesh)
        return pairs(swaps(self.before.placed, self.after.placed, sizes), sizes)

    @property
    def swapping(self) -> Names:
        """The axes over which a permute runs."""
        sizes = dict(self.before.mesh)
        return axes_of_swaps(swaps(self.before.placed, self.after.placed, sizes), sizes)

    @property
    def title(self) -> str:
        """The operation and its axes, such as "AllGather_X"."""
        names = [name for name, _ in self.before.mesh]
        return f"{NAMES.get(self.op, 'slice')}_{subscript(self.axes, names)}"

    def __str__(self) -> str:
        change = f"{self.title}: {self.before.notation} -> {self.after.notation}"
        moved = self.collective
        return f"{change}, {show(moved.sent, 'bytes') if moved else 'nothing'} sent"

    def __repr__(self) -> str:
        return f"<{self}>"


Swaps = frozenset[tuple[Names, Names]]


def swaps(before: Placed, after: Placed, sizes: Mapping[str, int]) -> Swaps:
    """The shortest runs of axes that are replaced by others, each with its replacement.

    >>> sorted(swaps((("X", "Z"),), (("Y", "Z"),), {"X": 2, "Y": 2, "Z": 4}))
    [(('X',), ('Y',))]
    """
    both = zip(before, after, strict=True)
    return frozenset(run for pair in both for run in swapped_runs(*pair, sizes))


def swapped_runs(
    old: Names, new: Names, sizes: Mapping[str, int]
) -> list[tuple[Names, Names]]:
    """The runs of one dimension, which `old` and `new` split into equally many parts.

    An axis of one device splits nothing, so it is left out.
    """
    left, right = ([axis for axis in axes if sizes[axis] > 1] for axes in (old, new))
    found = []
    while left or right:
        # Take axes from both sides until they split into equally many parts.
        run, other = left[:1], right[:1]
        del left[:1], right[:1]
        while (ways := _ways(run, sizes)) != (others := _ways(other, sizes)):
            shorter, rest = (run, left) if ways < others else (other, right)
            shorter.append(rest.pop(0))
        if run != other:
            found.append((tuple(run), tuple(other)))
    return found


def axes_of_swaps(found: Swaps, sizes: Mapping[str, int]) -> Names:
    """The axes that take part in the swaps, in the order of the mesh."""
    used = {axis for both in found for axes in both for axis in axes}
    return tuple(name for name in sizes if name in used)


def pairs(found: Swaps, sizes: Mapping[str, int]) -> Pairs:
    """(from, to) for every device of a group; copies stay where they are if possible.

    >>> pairs(frozenset({(("X",), ("Y",)), (("Y",), ("X",))}), {"X": 2, "Y": 2})
    ((0, 0), (1, 2), (2, 1), (3, 3))
    """
    return _pairs(found, tuple(sizes.items()))


@lru_cache(maxsize=256)
def _pairs(found: Swaps, mesh: tuple[tuple[str, int], ...]) -> Pairs:
    sizes = dict(mesh)
    axes = axes_of_swaps(found, sizes)
    held, wanted = (
        _blocks(axes, [run[side] for run in sorted(found)], sizes) for side in (0, 1)
    )
    taker = dict(zip(wanted, range(len(wanted)), strict=True))
    if len(taker) == len(wanted):  # no copies: one device takes each block
        return tuple(enumerate(map(taker.get, held)))
    holders, copy = defaultdict(list), []  # devices of each block; number of each copy
    able = defaultdict(dict)  # by block, its copies on devices that want another block
    for device, block in enumerate(held):
        copy.append(len(holders[block]))
        holders[block].append(device)
        if wanted[device] != block:
            able[block][copy[device]] = None
    used = {axis for run in found for axis in run[0]}
    alike = _alike(tuple(sizes[axis] for axis in axes if axis not in used))
    takers = list(range(len(held)))  # for each device, the one that gets its block
    for device, block in enumerate(wanted):
        if held[device] == block:
            continue
        near, left = copy[device], able[block]  # prefer a copy with similar coordinates
        if near not in left:
            near = max(left, key=alike[near].__getitem__)
        del left[near]
        takers[holders[block][near]] = device
    return tuple(enumerate(takers))


def _blocks(axes: Names, runs: list[Names], sizes: Mapping[str, int]) -> list[int]:
    """The block of every device if each of `runs` splits a dimension."""
    weights, weight = {}, 1
    for run in runs:
        for axis in reversed(run):
            weights[axis] = weight
            weight *= sizes[axis]
    found = [0]
    for axis in axes:
        steps = [n * weights.get(axis, 0) for n in range(sizes[axis])]
        found = [block + step for block in found for step in steps]
    return found


@lru_cache(maxsize=64)
def _alike(sizes: tuple[int, ...]) -> list[list[int]]:
    """The number of equal coordinates of every two places of a grid."""
    places = list(product(*map(range, sizes)))
    return [[sum(map(eq, one, other)) for other in places] for one in places]


def placements(
    axes: Names, slots: int, among: Mapping[str, Collection[int | None]] | None = None
) -> Iterator[Placed]:
    """Every way to put each of `axes`, in any order, into a dimension or nowhere.

    Args:
        axes: the axes to place.
        slots: the number of dimensions.
        among: for each axis, the dimensions into which it may be put, counted from 0,
            with None for no dimension; by default, all of these.

    >>> len(list(placements(("X",), 2))), len(list(placements(("X", "Y"), 2)))
    (3, 11)
    >>> list(placements(("X", "Y"), 2, {"X": (1,), "Y": (0, None)}))
    [((), ('X',)), (('Y',), ('X',))]
    """
    if not axes:
        yield ((),) * slots
        return
    first, rest = axes[0], axes[1:]
    allowed = (None, *range(slots)) if among is None else among[first]
    for placed in placements(rest, slots, among):
        if None in allowed:
            yield placed
        for dim, there in enumerate(placed):
            if dim not in allowed:
                continue
            for at in range(len(there) + 1):
                grown = (*there[:at], first, *there[at:])
                yield (*placed[:dim], grown, *placed[dim + 1 :])


def _ways(axes, sizes: Mapping[str, int]) -> int:
    return prod(sizes[axis] for axis in axes)
