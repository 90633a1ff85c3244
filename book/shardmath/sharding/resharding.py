"""From one sharding to another: the collectives that send the fewest bytes.

A route is a chain of steps. One step changes how one array is placed: it gathers the
minor axes of a dimension, moves them to another one (AllToAll), exchanges whole blocks
(permute), adds partial sums up (AllReduce, ReduceScatter), or keeps a slice of what is
there already, which is free. Only axes that change place take part.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations

from ..collectives import NAMES, Collective, price
from ..estimate import Leg
from ..units import show
from .layout import Axes, ShardedArray

Placed = tuple[Axes, ...]


@dataclass(frozen=True, repr=False)
class Step:
    """One change of one array; `collective` is None where nothing moves."""

    before: ShardedArray
    after: ShardedArray
    op: str = "slice"
    axes: Axes = ()

    @property
    def collective(self) -> Collective | None:
        """The record of what moves; a group of one device moves nothing."""
        n = self.before.ways(self.axes)
        if self.op == "slice" or n == 1:
            return None
        nbytes = self.before.local_nbytes
        if self.op in ("all_gather", "all_to_all"):
            nbytes *= n
        return Collective(self.op, self.axes, nbytes, n)

    def __str__(self) -> str:
        names = f"{NAMES.get(self.op, 'slice')}_{''.join(self.axes)}"
        change = f"{names}: {self.before.notation} -> {self.after.notation}"
        moved = self.collective
        return f"{change}, {show(moved.sent, 'bytes') if moved else 'nothing'} sent"

    def __repr__(self) -> str:
        return f"<{self}>"


@dataclass(frozen=True)
class Resharding:
    """How an array gets from `source` to `target`; prints itself step by step."""

    source: ShardedArray
    target: ShardedArray
    steps: tuple[Step, ...]
    mesh: object = None

    @property
    def collectives(self) -> tuple[Collective, ...]:
        return tuple(step.collective for step in self.steps if step.collective)

    @property
    def sent(self) -> float:
        """Bytes that one device sends."""
        return sum(c.total_sent for c in self.collectives)

    @property
    def seconds(self) -> float:
        """Time on the network, one collective after the other.

        Raises:
            ValueError: it was made without a `Mesh`.
        """
        if self.mesh is None:
            raise ValueError("mesh = None: must be a `Mesh` for a time")
        return sum(price(c, self.mesh).seconds for c in self.collectives)

    def __str__(self) -> str:
        text = f"{self.source.notation} -> {self.target.notation}: "
        if not self.collectives:
            return f"{text}nothing moves"
        time = "" if self.mesh is None else f" in {show(self.seconds, 's')}"
        steps = "".join(f"\n  {step}" for step in self.steps)
        return f"{text}{show(self.sent, 'bytes')} sent per device{time}{steps}"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def network_leg(collectives: tuple[Collective, ...], mesh) -> Leg:
    """The time of one or more collectives, one after the other, on a `Mesh`."""
    sent = sum(c.total_sent for c in collectives)
    return Leg("network", sent, sent / sum(price(c, mesh).seconds for c in collectives))


@lru_cache(maxsize=4096)
def route(source: ShardedArray, target: ShardedArray) -> tuple[Step, ...] | None:
    """The steps from `source` to `target` that send the fewest bytes per device.

    Among equals the fewest collectives, then the last dimension first, as XLA does.
    None where no chain of steps leads there with blocks of equal size.

    Found by Dijkstra's algorithm over all placements of the axes that change.
    """
    changing = _changing(source, target)
    states = _by_block(source, changing)
    queue, done = [(0, 0, (), 0, source, ())], set()
    pushed = 0
    while queue:
        sent, count, order, _, here, steps = heapq.heappop(queue)
        if here.state == target.state:
            return steps
        if here.state in done:
            continue
        done.add(here.state)
        for n, step in enumerate(_steps(here, changing, states)):
            if step.after.state in done or not step.after.divides:
                continue
            moved, pushed = step.collective, pushed + 1
            # Half bytes are whole numbers (fp4 has them): equal costs stay equal.
            cost = round(2 * moved.sent) if moved else 0
            key = (sent + cost, count + (moved is not None), (*order, n), pushed)
            heapq.heappush(queue, (*key, step.after, (*steps, step)))
    return None


def placements(axes: Axes, slots: int) -> Iterator[Placed]:
    """Every way to put `axes`, in any order, into `slots` dimensions or nowhere.

    >>> len(list(placements(("X",), 2))), len(list(placements(("X", "Y"), 2)))
    (3, 11)
    """
    if not axes:
        yield ((),) * slots
        return
    first, rest = axes[0], axes[1:]
    for placed in placements(rest, slots):
        yield placed
        for dim, there in enumerate(placed):
            for at in range(len(there) + 1):
                grown = (*there[:at], first, *there[at:])
                yield (*placed[:dim], grown, *placed[dim + 1 :])


def _changing(source: ShardedArray, target: ShardedArray) -> frozenset[str]:
    """Axes whose place changes: in each dimension all behind the first difference."""
    moved = set(source.unreduced) ^ set(target.unreduced)
    for old, new in zip(source.placed, target.placed, strict=True):
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        moved |= set(old[same:]) | set(new[same:])
    return frozenset(moved)


def _by_block(array: ShardedArray, changing: frozenset[str]) -> dict:
    """All placements of the axes that change, by the shape of the blocks they give."""
    fixed = tuple(tuple(a for a in axes if a not in changing) for axes in array.placed)
    found = defaultdict(list)
    for extra in placements(tuple(sorted(changing)), len(array.dims)):
        placed = tuple(f + e for f, e in zip(fixed, extra, strict=True))
        found[tuple(map(array.ways, placed))].append(placed)
    return found


def _steps(
    here: ShardedArray, changing: frozenset[str], states: dict
) -> Iterator[Step]:
    """Every single step from `here`."""
    dims = range(len(here.dims))
    for d in reversed(dims):
        for minor in _suffixes(here.placed[d], changing):
            less = _put(here.placed, d, here.placed[d][: -len(minor)])
            yield Step(here, here.moved(less, here.unreduced), "all_gather", minor)
            for other in dims:
                if other != d:
                    more = _put(less, other, less[other] + minor)
                    after = here.moved(more, here.unreduced)
                    yield Step(here, after, "all_to_all", minor)
    used = set(here.axes + here.unreduced)
    for axis in sorted(changing - used):
        for d in dims:
            more = _put(here.placed, d, (*here.placed[d], axis))
            yield Step(here, here.moved(more, here.unreduced), "slice", (axis,))
    for axes in _subsets(tuple(a for a in here.unreduced if a in changing)):
        left = tuple(a for a in here.unreduced if a not in axes)
        yield Step(here, here.moved(here.placed, left), "all_reduce", axes)
        for d in dims:
            for ordered in permutations(axes):
                more = _put(here.placed, d, here.placed[d] + ordered)
                yield Step(here, here.moved(more, left), "reduce_scatter", ordered)
    for placed in states[here.grid]:
        taken = {a for axes in placed for a in axes} & set(here.unreduced)
        if placed != here.placed and not taken:
            pairs = list(zip(here.placed, placed, strict=True))
            differ = {a for old, new in pairs for a in old + new if old != new}
            axes = tuple(name for name, _ in here.mesh if name in differ)
            yield Step(here, here.moved(placed, here.unreduced), "permute", axes)


def _suffixes(axes: Axes, changing: frozenset[str]) -> Iterator[Axes]:
    """The minor axes of a dimension, one, two, …, as long as they change."""
    for n in range(1, len(axes) + 1):
        if axes[-n] not in changing:
            return
        yield axes[-n:]


def _subsets(axes: Axes) -> Iterator[Axes]:
    for n in range(1, len(axes) + 1):
        yield from combinations(axes, n)


def _put(placed: Placed, dim: int, axes: Axes) -> Placed:
    return (*placed[:dim], axes, *placed[dim + 1 :])
