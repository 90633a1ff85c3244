"""The chips of one group: their coordinates, and the shortest paths between them.

Chips are numbered row-major over `wires`, the dimensions of the group, slowest-varying
first. An array of n blocks is sharded over the chips. A block is cut into one part for
each dimension of the torus, so that all dimensions can work at once: part p begins with
dimension p and continues with the next dimension. On rings of even size a part is also
cut into two halves, because both ways to the opposite chip are equally long.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import NamedTuple

from ...hardware.networks.wiring import Switch
from ..closed_forms import levels
from ..link_load import Wires


class Chunk(NamedTuple):
    """A piece of the array: one half of one part of the block `name`.

    `name` is the number of the block's chip; in an AllToAll, source · n + destination.
    """

    name: int
    part: int
    half: int


@dataclass(frozen=True)
class Group:
    """The chips of one group, and how the schedules cut its blocks."""

    wires: Wires
    one_way: bool = False
    pieces: int = 1  # of each block, if a schedule pipelines them

    @cached_property
    def size(self) -> int:
        return prod(w.size for w in self.wires)

    @cached_property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """The coordinates of every chip."""
        return tuple(product(*(range(w.size) for w in self.wires)))

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """For each dimension, the difference between the numbers of two neighbours."""
        sizes = [w.size for w in self.wires]
        return tuple(prod(sizes[dim + 1 :]) for dim in range(len(sizes)))

    @cached_property
    def parts(self) -> int:
        return max((len(level) for level in levels(self.wires)), default=1)

    @cached_property
    def halves(self) -> int:
        return 2 if any(self._opposite(w) for w in self.wires) else self.pieces

    def blocks(self, names: Iterable[int]) -> tuple[Chunk, ...]:
        """All parts and halves of the blocks `names`."""
        cut = product(names, range(self.parts), range(self.halves))
        return tuple(Chunk(*c) for c in cut)

    def number(self, place: tuple[int, ...]) -> int:
        """The chip with the coordinates `place`."""
        return sum(at * step for at, step in zip(place, self.strides, strict=True))

    def moved(self, chip: int, dim: int, to: int) -> int:
        """The chip at `to` along `dim`, with the other coordinates of `chip`."""
        return chip + (to - self.places[chip][dim]) * self.strides[dim]

    def alike(self, chip: int, free: Iterable[int]) -> tuple[int, ...]:
        """The chips that differ from `chip` at most along the dimensions `free`."""
        found = [chip]
        for dim in free:
            places = range(self.wires[dim].size)
            found = [self.moved(c, dim, to) for c in found for to in places]
        return tuple(sorted(found))

    def order(self, part: int) -> list[int]:
        """The order of dimensions for `part`: slow levels first.

        The dimensions of each level are rotated by `part`.
        """
        found, first = [], 0
        for level in levels(self.wires):
            turn = part % len(level)
            dims = [*range(first, first + len(level))]
            found += dims[turn:] + dims[:turn]
            first += len(level)
        return found

    def way(self, dim: int, here: int, goal: int, half: int) -> tuple[int, int]:
        """The next place on the shortest way along `dim`, and the hops that remain."""
        w = self.wires[dim]
        if isinstance(w, Switch) or here == goal:
            return goal, int(here != goal)
        ahead = (goal - here) % w.size
        behind = w.size - ahead
        if not w.wrap:
            up = goal > here
        else:
            up = self.one_way or ahead < behind or (ahead == behind and half == 0)
        left = abs(goal - here) if not w.wrap else ahead if up else behind
        return (here + (1 if up else -1)) % w.size, left

    def _opposite(self, w) -> bool:
        ring = not isinstance(w, Switch) and w.wrap
        return ring and w.size % 2 == 0 and not self.one_way
