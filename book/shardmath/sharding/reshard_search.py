"""The best ways from one sharding to others: Dijkstra's algorithm over shardings.

A state is where the axes of the mesh stand: for every dimension the axes that split it,
and the axes of partial sums. One search from a state (or, backwards, to it) finds the
best way for every other state, so that a matmul needs three, whatever its plans are.
"""

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations, pairwise, permutations, product
from math import prod
from typing import NamedTuple

from .layout import Names, Placed, ShardedArray
from .prices import Prices, Rate
from .reshard_step import Change, Swaps, placements, swapped_runs

State = tuple[Placed, Names]


Cost = tuple[int, int, int]  # time, 0 where there are no prices; bytes; collectives


class Permutes(NamedTuple):
    """In the queue: the permutes from a state that was reached at `cost`."""

    cost: "Cost"


class Edge(NamedTuple):
    """A change between two states; a permute's axes and dimensions are not in it."""

    op: str
    axes: Names
    before: State
    after: State
    dims: tuple[int, ...] = ()


class Use(NamedTuple):
    """The states that a plan can use with some number of collectives left.

    Args:
        states: all of them.
        into: the changes that lead to them, by the state that each starts from.
    """

    states: set[State]
    into: Mapping[State, list[Edge]]


MANY = 12_000  # states of use; to look up the changes to more of them saves nothing


@dataclass
class Routes:
    """The best ways between one state and the others, as far as they were searched.

    `found` has the ways to a state from the cheapest on. Where the number of
    collectives is limited, a dearer way follows if it has fewer collectives.
    """

    array: ShardedArray
    backwards: bool
    found: dict[State, list[tuple[Cost, Edge | None]]] = field(default_factory=dict)
    ways: dict[tuple[State, int], tuple[Change, ...]] = field(default_factory=dict)

    def __contains__(self, state: State) -> bool:
        return state in self.found

    def costs(self, state: State) -> list[Cost]:
        """Of the ways to `state`, the cheapest first: time, bytes, collectives."""
        return [cost for cost, _ in self.found[state]]

    def changes(self, state: State, most: int | None = None) -> tuple[Change, ...]:
        """The best way from the state of the search to `state`, or backwards from it.

        Args:
            state: where to.
            most: collectives that the way may have; any number if not given.
        """
        cost, edge = next(
            way for way in self.found[state] if most is None or way[0][2] <= most
        )
        if edge is None:
            return ()
        if (state, cost[2]) not in self.ways:
            change = self._change(edge)
            left = None if most is None else cost[2] - (change.collective is not None)
            rest = self.changes(edge.after if self.backwards else edge.before, left)
            way = (change, *rest) if self.backwards else (*rest, change)
            self.ways[state, cost[2]] = way
        return self.ways[state, cost[2]]

    def _change(self, edge: Edge) -> Change:
        """Axes of several dimensions, and those of a permute, as the mesh has them."""
        ends, axes = [self.array.moved(*end) for end in edge[2:4]], edge.axes
        if edge.op == "permute":
            axes = Change(*ends).swapping
        elif edge.op != "all_to_all" and len(edge.dims) > 1:
            axes = tuple(name for name, _ in self.array.mesh if name in axes)
        return Change(*ends, edge.op, axes)


def routes(
    array: ShardedArray,
    axes: Collection[str],
    prices: Prices | None = None,
    targets: Collection[State] | Sequence[Collection[State]] | None = None,
    backwards: bool = False,
    most: int | None = None,
) -> Routes:
    """The best ways from `array` as it is placed, or backwards, to it.

    Args:
        array: whose placement they start from.
        axes: the mesh axes that may change their place; all others stay.
        prices: times to minimise, one change after the other; None minimises the bytes
            that a device sends.
        targets: where to stop the search; None finds every state.
        backwards: search the ways that lead to `array`.
        most: find the best ways of at most so many collectives, and the best of fewer.
            Any number if not given. Then `targets` does not stop the search: its n-th
            entry has the states that ways are wanted to that leave n collectives, for
            n from 0; those that leave more may lead to any state.

    Among equals those of fewer bytes, then of fewer collectives, then those that gather
    the last dimension first, as XLA does. Bytes cannot tell one AllGather over two
    dimensions from two in turn; so it is a choice where there are times.
    """
    search = _Search(array, frozenset(axes), prices, backwards, most, targets)
    open_ = None if targets is None or most is not None else set(targets)
    for state in search.settle():
        if open_ is not None:
            open_.discard(state)
            if not open_:
                break
    return search.routes


def way(
    array: ShardedArray, target: State, axes: Collection[str], backwards: bool = False
) -> tuple[Change, ...]:
    """The best way from `array` to `target`, or backwards, by the bytes of a device.

    That of `routes` over `axes`. Axes that both states begin a dimension with, and sums
    that both leave open, stay where they are: no way that moves them sends less. So the
    search is over the others, of an array as large as what those leave.
    """
    placed, unreduced = target
    if array.state == target:
        return ()
    both = list(zip(array.placed, placed, strict=True))
    fixed = [_common(*pair) for pair in both]
    kept = set(array.unreduced).intersection(unreduced)
    here, there = (
        tuple(axes[len(stay) :] for axes, stay in zip(state, fixed, strict=True))
        for state in zip(*both, strict=True)
    )
    sums, left = (
        tuple(axis for axis in axes if axis not in kept)
        for axes in (array.unreduced, unreduced)
    )
    sizes = zip(array.sizes, fixed, strict=True)
    part = replace(
        array,
        sizes=tuple(size // array.ways(stay) for size, stay in sizes),
        placed=here,
        unreduced=sums,
    )
    still = kept.union(*fixed)
    moving = [axis for axis in axes if axis not in still]
    ends = (there, left), (here, sums)
    start, end = ends if backwards else ends[::-1]
    steps = _plain(part, start, end, moving)
    if steps is None:
        used = {axis for axes in (*here, *there) for axis in axes}.union(sums, left)
        bare = replace(
            part,
            mesh=tuple((axis, n) for axis, n in part.mesh if axis in used | {*moving}),
            name="",
        )
        steps = _found(bare, start, end, tuple(moving), backwards)

    def whole(state: ShardedArray) -> ShardedArray:
        axes = zip(fixed, state.placed, strict=True)
        return array.moved(
            tuple(stay + more for stay, more in axes),
            tuple(a for a, _ in array.mesh if a in kept or a in state.unreduced),
        )

    return tuple(
        replace(step, before=whole(step.before), after=whole(step.after))
        for step in steps
    )


@lru_cache(maxsize=4096)
def _found(
    array: ShardedArray, start: State, end: State, axes: Names, back: bool
) -> tuple[Change, ...]:
    """The best way of an array without a name, on a mesh without idle axes: so arrays
    that move alike on several meshes share a search."""
    steps = _alike(array, start, end, axes, back)
    if steps is None:
        goal = start if back else end
        found = routes(array, axes, targets=[goal], backwards=back)
        steps = found.changes(goal)
    return steps


def _alike(
    array: ShardedArray, start: State, end: State, axes: Collection[str], back: bool
) -> tuple[Change, ...] | None:
    """The best way of axes that go alike, as if they were one; None where it permutes
    blocks, since the axes alone may then change places with others for less."""
    runs = _together(start, end)
    less = {axis for run in runs.values() for axis in run[1:]}
    placed, unreduced = start if back else end
    goal = _short(placed, less), _short((unreduced,), less)[0]
    usable = [axis for axis in axes if axis not in less]
    one = _fused(array, runs, less)
    found = routes(one, usable, targets=[goal], backwards=back).changes(goal)
    if runs and any(step.op == "permute" for step in found):
        return None
    return tuple(_spelt(step, array, runs) for step in found)


def _together(start: State, end: State) -> dict[str, Names]:
    """Axes that go the same way, by the first of them: of open sums those that are to
    split one dimension, and those that are to split none."""
    (_, open_), (after, left) = start, end
    found = [axes for axes in after if len(axes) > 1 and set(axes) <= set(open_)]
    used = {axis for axes in after for axis in axes}.union(left)
    rest = tuple(axis for axis in open_ if axis not in used)
    return {axes[0]: axes for axes in (*found, rest) if len(axes) > 1}


def _short(placed: Placed, less: Collection[str]) -> Placed:
    return tuple(tuple(axis for axis in axes if axis not in less) for axes in placed)


def _fused(
    array: ShardedArray, runs: Mapping[str, Names], less: Collection[str]
) -> ShardedArray:
    """`array` on a mesh on which each of `runs` is one axis."""
    mesh = (
        (name, array.ways(runs[name]) if name in runs else size)
        for name, size in array.mesh
        if name not in less
    )
    return replace(
        array,
        placed=_short(array.placed, less),
        unreduced=_short((array.unreduced,), less)[0],
        mesh=tuple(mesh),
    )


def _spelt(step: Change, array: ShardedArray, runs: Mapping[str, Names]) -> Change:
    """A step on such a mesh, on that of `array`."""

    def axes(some: Names) -> Names:
        return tuple(a for axis in some for a in runs.get(axis, (axis,)))

    def state(one: ShardedArray) -> ShardedArray:
        sums = axes(one.unreduced)
        in_order = tuple(name for name, _ in array.mesh if name in sums)
        return array.moved(tuple(map(axes, one.placed)), in_order)

    over = axes(step.axes)
    if step.op == "all_reduce":
        over = tuple(name for name, _ in array.mesh if name in over)
    return Change(state(step.before), state(step.after), step.op, over)


def _plain(
    array: ShardedArray, start: State, end: State, axes: Collection[str]
) -> tuple[Change, ...] | None:
    """The best way where it needs no search; None where it does.

    Gathering one dimension sends what is missing and no more. Where every axis is that
    of a sum, so that no copies lie idle, each sum is scattered to the dimension that
    its axes are to split, and what is left of it is added up.
    """
    (before, open_), (after, left) = start, end
    split = [d for d, there in enumerate(before) if there]
    wanted = [d for d, there in enumerate(after) if there]
    if left or len(split) + len(wanted) > 1:
        return None
    if not open_:
        if wanted or not split:
            return None
        here, there = array.moved(before), array.moved(after)
        return (Change(here, there, "all_gather", before[split[0]]),)
    first = after[wanted[0]] if wanted else ()
    if split or not set(axes) <= set(open_) or not set(first) <= set(open_):
        return None
    rest = tuple(axis for axis in open_ if axis not in first)
    places = array.moved(before, open_), array.moved(after, rest), array.moved(after)
    scatter = Change(places[0], places[1], "reduce_scatter", first)
    add = Change(places[1], places[2], "all_reduce", rest)
    return (scatter,) * bool(first) + (add,) * bool(rest)


def _common(one: Names, other: Names) -> Names:
    """The axes that both begin with."""
    n = 0
    while n < min(len(one), len(other)) and one[n] == other[n]:
        n += 1
    return one[:n]


class _Search:
    """One run of Dijkstra's algorithm.

    Blocks of one shape may be permuted, so that a state of k axes has up to k! others
    as neighbours. They are looked at only when a permute from it is the cheapest thing
    left to do, and then only those that are not reached yet. After a permute there is
    none: one that goes all the way would have come first.
    """

    def __init__(
        self,
        array: ShardedArray,
        axes: Collection[str],
        prices: Prices | None,
        backwards: bool,
        most: int | None,
        targets: Sequence[Collection[State]] | None,
    ):
        self.array, self.prices, self.backwards = array, prices, backwards
        self.most = most
        self.sizes = dict(array.mesh)
        self.axes = tuple(name for name in self.sizes if name in set(axes))
        self.graph = _Graph(self.axes, tuple(self.sizes), prices is not None)
        self.lone = any(self.sizes[name] == 1 for name in self.axes)
        self.routes = Routes(array, backwards)
        self.blocks: dict[Placed, tuple[tuple[int, ...], float, bool]] = {}
        self.terms: dict[tuple[str, Names], tuple[float, int, Rate | None]] = {}
        self.number: dict[Placed, int] = {}
        self.alike: dict[tuple, list[Placed]] = {}
        for n, placed in enumerate(placements(self.axes, len(array.dims))):
            self.number[placed] = n
            self.alike.setdefault(self._blocks(placed)[0], []).append(placed)
        self.alike_left: dict[tuple, list[Placed]] = {}  # not reached yet
        self.runs: dict[tuple[Names, Names], list[tuple[Names, Names]]] = {}
        self.least: dict[State | tuple[State, int], Cost] = {}  # of what is queued
        self.queue: list = []
        self.pushed = 0
        self.uses = [] if most is None else self._uses(targets)

    def settle(self) -> Iterator[State]:
        """States in the order of their distance, each when its best way is known."""
        found = self.routes.found
        self._push((0, 0, 0), (), self.array.state, None)
        while self.queue:
            cost, order, _, here, edge = heapq.heappop(self.queue)
            if isinstance(edge, Permutes):
                for permute, more in self._permutes(here, edge.cost[2]):
                    there = permute.before if self.backwards else permute.after
                    rank = 3, self.number[there[0]]
                    self._extend(edge.cost, order, permute, more, rank)
                continue
            if self._settled(here, cost[2]):
                continue
            found.setdefault(here, []).append((cost, edge))
            yield here
            self._change_from(here, cost, order)
            if (edge is None or edge.op != "permute") and cost[2] != self.most:
                least = self._least_permute(here)
                self._push(_add(cost, least), order, here, Permutes(cost))

    def _change_from(self, here: State, cost: Cost, order: tuple) -> None:
        """Queue what every change but a permute leads to from `here`."""
        found, count = self.routes.found, cost[2]
        for edge in self._edges(here, count):
            there = edge.before if self.backwards else edge.after
            # As `_settled`: the calls alone would take a tenth of the time.
            ways = found.get(there)
            if ways and (self.most is None or ways[-1][0][2] <= count):
                continue
            if self._blocks(there[0])[2]:
                more = self._cost(edge)
                self._extend(cost, order, edge, more, self.graph.rank(edge))

    def _edges(self, here: State, count: int) -> Iterable[Edge]:
        """The changes from `here` that a way of `most` collectives can go on with.

        After `most` of them only slices are left, and gathers over axes of one device,
        which move nothing. Where few states are of use after the next collective, we
        look up which changes lead to those.
        """
        if self.most is None or self.lone:
            return self.graph.changes(here, self.backwards)
        slices = self.graph.slices(here, self.backwards)
        if count == self.most:
            return slices
        use = self.uses[self.most - count - 1]
        if use is None:
            return self.graph.changes(here, self.backwards)
        return (*slices, *use.into.get(here, ()))

    def _useful(self, state: State, count: int) -> bool:
        """Whether a plan can use a way to `state` that has `count` collectives."""
        if self.most is None:
            return True
        use = self.uses[self.most - count]
        return use is None or state in use.states

    def _uses(self, targets: Sequence[Collection[State]] | None) -> list[Use | None]:
        """The states that are of use with none, one, two … collectives left.

        Such a state is a target for which so many must be left, or slices lead from it
        to one, or one collective and slices lead to a state that is of use with one
        collective fewer. None where all may be.
        """
        found: list[Use | None] = [None] * (self.most + 1)
        if targets is None or self.lone:
            return found
        behind: set[State] = set()  # before a collective that leads to a useful state
        for left in range(min(len(targets), self.most + 1)):
            use = self._use({*targets[left], *behind})
            if use is None:
                break
            found[left] = use
            behind = {*use.into, *self._permuted(use.states)}
        return found

    def _use(self, ends: Collection[State]) -> Use | None:
        """`ends`, what slices lead from to them, and the changes that lead there."""
        # No way comes back to where it began.
        states = self._before_slices({*ends} - {self.array.state})
        if states is None:
            return None
        into = defaultdict(list)
        for state in states:
            for edge in self.graph.changes(state, not self.backwards):
                if edge.op != "slice":
                    into[edge.after if self.backwards else edge.before].append(edge)
        return Use(states, into)

    def _before_slices(self, ends: set[State]) -> set[State] | None:
        """`ends` and the states from which slices lead to them; None where too many."""
        found, new = set(ends), list(ends)
        while new and len(found) <= MANY:
            for edge in self.graph.slices(new.pop(), not self.backwards):
                state = edge.after if self.backwards else edge.before
                if state not in found:
                    found.add(state)
                    new.append(state)
        return None if len(found) > MANY else found

    def _permuted(self, states: set[State]) -> Iterator[State]:
        """The states that permutes lead from to one of `states`."""
        kinds = {(self._blocks(placed)[0], sums) for placed, sums in states}
        for grid, sums in kinds:
            for placed in self.alike[grid]:
                if not any(axis in sums for axes in placed for axis in axes):
                    yield placed, sums

    def _settled(self, state: State, count: int) -> bool:
        """Whether a way to `state` is known that is as good with `count` collectives.

        Ways are settled in the order of their cost, so only fewer collectives can make
        another one worth keeping, and only where their number is limited.
        """
        ways = self.routes.found.get(state)
        return bool(ways) and (self.most is None or ways[-1][0][2] <= count)

    def _push(self, cost: Cost, order: tuple, state: State, edge) -> None:
        entry = (cost, order, self.pushed, state, edge)
        self.pushed += 1
        heapq.heappush(self.queue, entry)

    def _extend(
        self, cost: Cost, order: tuple, edge: Edge, more: Cost | None, rank: tuple
    ) -> None:
        """Queue the state that `edge` leads to, or comes from in a backward search."""
        if more is None:
            return
        there = edge.before if self.backwards else edge.after
        total = _add(cost, more)
        if self.most is not None and total[2] > self.most:
            return
        if not self._useful(there, total[2]):
            return
        known = there if self.most is None else (there, total[2])
        if total <= self.least.get(known, total):
            self.least[known] = total
            order = (rank, *order) if self.backwards else (*order, rank)
            self._push(total, order, there, edge)

    def _blocks(self, placed: Placed) -> tuple[tuple[int, ...], float, bool]:
        """Blocks a dimension, bytes of a block, whether all blocks are of one size."""
        if placed not in self.blocks:
            grid = tuple(prod(map(self.sizes.get, axes)) for axes in placed)
            divides = not any(
                size % n for size, n in zip(self.array.sizes, grid, strict=True)
            )
            self.blocks[placed] = grid, self.array.nbytes / prod(grid), divides
        return self.blocks[placed]

    def _cost(self, edge: Edge) -> Cost | None:
        """Of a change but a permute; None where it has no price."""
        key = edge.op, edge.axes
        if key not in self.terms:
            self.terms[key] = self._terms(*key)
        rounds, parts, rate = self.terms[key]
        if not rounds:
            return 0, 0, 0
        nbytes = self._blocks(edge.before[0])[1]
        return _cost(nbytes * rounds, nbytes * parts, rate)

    def _terms(self, op: str, axes: Names) -> tuple[float, int, Rate | None]:
        """Blocks that a device sends, blocks that V has, and what a byte of V takes."""
        n = prod(map(self.sizes.get, axes))
        if op == "slice" or n == 1:
            return 0, 0, None
        rounds = {"all_gather": n - 1, "all_reduce": 2 * (n - 1) / n}
        parts = n if op in ("all_gather", "all_to_all") else 1
        rate = self.prices.rate(op, axes) if self.prices else FREE
        return rounds.get(op, (n - 1) / n), parts, rate

    def _least_permute(self, here: State) -> tuple[int, int, int]:
        """No permute from `here` costs less.

        Every second block at least has to leave its device, at best by all links.
        """
        nbytes = self._blocks(here[0])[1]
        if self.prices is None:
            return 0, _whole_bytes(nbytes), 1
        return int(nbytes / 2 / self.prices.egress * _SECOND), 0, 0

    def _permutes(self, here: State, count: int) -> Iterator[tuple[Edge, Cost | None]]:
        """Permutes to the states with blocks of the same shape that are not reached."""
        placed, unreduced = here
        grid, nbytes, _ = self._blocks(placed)
        taken = set(unreduced)
        limit = None if self.most is None else self.uses[self.most - count - 1]
        key = grid, unreduced, None if limit is None else count
        if key not in self.alike_left:
            self.alike_left[key] = [
                other
                for other in self.alike[grid]
                if not any(taken.intersection(axes) for axes in other)
                and (limit is None or (other, unreduced) in limit.states)
            ]
        left = [  # a permute is one collective: what one reaches is reached for good
            other
            for other in self.alike_left[key]
            if not self._settled((other, unreduced), 1)
        ]
        self.alike_left[key] = left
        for other in left:
            if self._settled((other, unreduced), count + 1):
                continue
            ends = ((other, unreduced), here)
            before, after = ends if self.backwards else ends[::-1]
            swapped = self._swaps(before[0], after[0])
            edge = Edge("permute", (), before, after)
            if not swapped:
                yield edge, (0, 0, 0)
            elif self.prices is None:
                yield edge, _cost(nbytes, nbytes, FREE)
            else:
                rate = self.prices.permute_rate(swapped, self.sizes)
                yield edge, _cost(nbytes, nbytes, rate)

    def _swaps(self, before: Placed, after: Placed) -> Swaps:
        found = []
        for both in zip(before, after, strict=True):
            if both not in self.runs:
                self.runs[both] = swapped_runs(*both, self.sizes)
            found += self.runs[both]
        return frozenset(found)


class _Graph:
    """The changes between the states of arrays on one mesh, but for permutes.

    Args:
        axes: the mesh axes that may change their place.
        mesh: all axes of the mesh, which open sums are listed in the order of.
        several: whether a gather or scatter may be of several dimensions at once.
    """

    def __init__(self, axes: Names, mesh: Names, several: bool):
        self.axes, self.mesh, self.several = axes, mesh, several
        self.order = {name: n for n, name in enumerate(axes)}

    def _free(self, here: State) -> Names:
        placed, unreduced = here
        used = {axis for axes in placed for axis in axes} | set(unreduced)
        return tuple(axis for axis in self.axes if axis not in used)

    def changes(self, here: State, backwards: bool) -> Iterator[Edge]:
        """Every change from `here`, or to it in a backward search."""
        placed, unreduced = here
        free = self._free(here)
        for less, axes, dims in self._shorter(placed):
            if backwards:
                sums = tuple(a for a in self.mesh if a in axes or a in unreduced)
                yield Edge("reduce_scatter", axes, (less, sums), here, dims)
                if len(axes) == 1:
                    yield Edge("slice", axes, (less, unreduced), here, dims)
            else:
                yield Edge("all_gather", axes, here, (less, unreduced), dims)
            if len(dims) == 1:
                for other in range(len(placed)):
                    if other != dims[0]:
                        more = _put(less, other, less[other] + axes)
                        there = (more, unreduced)
                        ends = (there, here) if backwards else (here, there)
                        both = (other, *dims) if backwards else (*dims, other)
                        yield Edge("all_to_all", axes, *ends, both)
        for more, axes, dims in self._longer(placed, free):
            if backwards:
                yield Edge("all_gather", axes, (more, unreduced), here, dims)
            elif len(axes) == 1:
                yield Edge("slice", axes, here, (more, unreduced), dims)
        if backwards:
            for axes in _subsets(free):
                sums = tuple(a for a in self.mesh if a in axes or a in unreduced)
                yield Edge("all_reduce", axes, (placed, sums), here)
            return
        for axes in _subsets(unreduced):
            left = tuple(axis for axis in unreduced if axis not in axes)
            yield Edge("all_reduce", axes, here, (placed, left))
        for more, axes, dims in self._longer(placed, unreduced):
            left = tuple(axis for axis in unreduced if axis not in axes)
            yield Edge("reduce_scatter", axes, here, (more, left), dims)

    def slices(self, here: State, backwards: bool) -> Iterator[Edge]:
        """The slices from `here`, or to it in a backward search."""
        placed, unreduced = here
        free = self._free(here)
        for d, axes in enumerate(placed):
            if backwards and axes:
                less = _put(placed, d, axes[:-1])
                yield Edge("slice", axes[-1:], (less, unreduced), here, (d,))
            for axis in () if backwards else free:
                more = _put(placed, d, (*axes, axis))
                yield Edge("slice", (axis,), here, (more, unreduced), (d,))

    def rank(self, edge: Edge) -> tuple[int, ...]:
        """Which of equals is first: gathers of the last dimension, then the rest.

        A permute comes between those: its rank is 3.
        """
        op, axes, *_, dims = edge
        if op == "all_to_all" or (op == "all_gather" and len(dims) == 1):
            return 0, -dims[0], len(axes), *dims[1:]
        at = tuple(self.order[axis] for axis in axes)
        if op == "slice":
            return 1, *at, *dims
        return 4 if len(dims) > 1 else 2, len(at), *at, *dims

    def _shorter(self, placed: Placed) -> Iterator[tuple[Placed, Names, tuple]]:
        """`placed` less the minor axes of a dimension, or of several."""
        for d in range(len(placed)):
            for n in range(1, len(placed[d]) + 1):
                yield _put(placed, d, placed[d][:-n]), placed[d][-n:], (d,)
        if not self.several:
            return
        for counts in product(*(range(len(axes) + 1) for axes in placed)):
            dims = tuple(d for d, n in enumerate(counts) if n)
            if len(dims) > 1:
                kept = [len(axes) - n for axes, n in zip(placed, counts, strict=True)]
                less = tuple(axes[:n] for axes, n in zip(placed, kept, strict=True))
                gone = [axes[n:] for axes, n in zip(placed, kept, strict=True)]
                yield less, tuple(a for axes in gone for a in axes), dims

    def _longer(
        self, placed: Placed, pool: Names
    ) -> Iterator[tuple[Placed, Names, tuple]]:
        """`placed` and axes of `pool` behind those of a dimension, or of several."""
        several = len(placed) if self.several else 1
        for axes in _subsets(pool):
            for ordered in permutations(axes):
                for dims in _choices(len(placed), min(several, len(ordered))):
                    for parts in _cuts(ordered, len(dims)):
                        more = placed
                        for d, part in zip(dims, parts, strict=True):
                            more = _put(more, d, more[d] + part)
                        yield more, ordered, dims


def _choices(n: int, most: int) -> Iterator[tuple[int, ...]]:
    """One to `most` of n dimensions, in order."""
    for count in range(1, most + 1):
        yield from combinations(range(n), count)


def _cuts(axes: Names, parts: int) -> Iterator[tuple[Names, ...]]:
    """`axes` cut into so many runs, none of them empty."""
    for cuts in combinations(range(1, len(axes)), parts - 1):
        ends = (0, *cuts, len(axes))
        yield tuple(axes[a:b] for a, b in pairwise(ends))


def _subsets(axes: Names) -> Iterator[Names]:
    for n in range(1, len(axes) + 1):
        yield from combinations(axes, n)


def _put(placed: Placed, dim: int, axes: Names) -> Placed:
    return (*placed[:dim], axes, *placed[dim + 1 :])


def _add(one: Cost, other: Cost) -> Cost:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


# Costs are whole numbers, so that equal ways cost the same in whatever order.
_SECOND = 10**15


FREE = 0.0, 0.0


def _cost(sent: float, nbytes: float, rate: Rate | None) -> Cost | None:
    """Of one collective; None where it has no price."""
    if rate is None:
        return None
    return _femtoseconds(nbytes * rate[0] + rate[1]), _whole_bytes(sent), 1


def _femtoseconds(seconds: float) -> int:
    return round(seconds * _SECOND)


def _whole_bytes(nbytes: float) -> int:
    return round(4 * nbytes)  # a quarter is the least: three of them are an fp6
