"""The best ways from one sharding to others: Dijkstra's algorithm over shardings.

A state is the placement of the mesh axes: the axes that split each dimension, and the
axes of partial sums. One search finds the best ways from a state to all others or,
backwards, from all others to that state, however many collectives they take. For plans
with a limited number of collectives, see `level_search`.
"""

import heapq
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from .change_costs import ChangeCosts, Cost
from .fused_axes import fused, short, spelt
from .layout import Names, ShardedArray
from .prices import Prices
from .reshard_graph import OPS, PERMUTE, Graph, State
from .reshard_step import Change


class Permutes(NamedTuple):
    """An entry of the queue: the permutes from a state that was reached at `cost`."""

    cost: Cost


class Edge(NamedTuple):
    """A change between two states; for a permute, axes and dimensions are empty."""

    op: str
    axes: Names
    before: State
    after: State
    dims: tuple[int, ...] = ()


@dataclass
class Routes:
    """The best ways between one state and others, as far as the search has found them.

    `found` has the cost of each state's best way and the change at its far end.
    """

    array: ShardedArray
    backwards: bool
    found: dict[State, tuple[Cost, Edge | None]] = field(default_factory=dict)
    ways: dict[tuple[State, int], tuple[Change, ...]] = field(default_factory=dict)
    moved: dict[State, ShardedArray] = field(default_factory=dict)

    def at(self, state: State) -> ShardedArray:
        """The array in `state`."""
        if state not in self.moved:
            self.moved[state] = self.array.moved(*state)
        return self.moved[state]

    def __contains__(self, state: State) -> bool:
        return state in self.found

    def costs(self, state: State) -> list[Cost]:
        """Time, bytes and collectives of each way to `state`, cheapest first."""
        return [self.found[state][0]]

    def last(self, state: State, count: int) -> Edge | None:
        """The change at the far end of the way with `count` collectives."""
        return self.found[state][1]

    def changes(self, state: State, count: int | None = None) -> tuple[Change, ...]:
        """The best way from the search's state to `state` or, backwards, the reverse.

        Args:
            state: the other end of the way.
            count: its number of collectives, one of those in `costs`; by default, that
                of the cheapest way.
        """
        count = self.costs(state)[0][2] if count is None else count
        if (state, count) not in self.ways:
            self.ways[state, count] = self._changes(state, count)
        return self.ways[state, count]

    def _changes(self, state: State, count: int) -> tuple[Change, ...]:
        edge = self.last(state, count)
        if edge is None:
            return ()
        change = self._change(edge)
        left = count - (change.collective is not None)
        rest = self.changes(edge.after if self.backwards else edge.before, left)
        return (change, *rest) if self.backwards else (*rest, change)

    def _change(self, edge: Edge) -> Change:
        """An edge as a Change; axes of a permute or of several dimensions are in the
        order of the mesh."""
        ends, axes = [self.at(end) for end in edge[2:4]], edge.axes
        if edge.op == "permute":
            axes = Change(*ends).swapping
        elif edge.op != "all_to_all" and len(edge.dims) > 1:
            axes = tuple(name for name, _ in self.array.mesh if name in axes)
        return Change(*ends, edge.op, axes)


def routes(
    array: ShardedArray,
    axes: Collection[str],
    prices: Prices | None = None,
    targets: Collection[State] | None = None,
    backwards: bool = False,
) -> Routes:
    """The best ways from the present placement of `array` or, backwards, to it.

    Args:
        array: the array whose placement is one end of all ways.
        axes: the mesh axes that may be moved; all others stay in place.
        prices: give the time of each change; the sum of times is minimised. With None,
            the bytes that a device sends are minimised.
        targets: the search stops once it has reached all these states; with None, it
            finds every state.
        backwards: search the ways that lead to `array`.

    Ways of equal cost are ordered by bytes, then by collectives; if these are equal
    too, ways that gather the last dimension first, as XLA does, are preferred. A single
    AllGather over two dimensions sends as many bytes as two AllGathers in turn, so it
    is considered only if there are prices.
    """
    search = _Search(array, frozenset(axes), prices, backwards)
    return search.found(None if targets is None else set(targets))


def way(
    array: ShardedArray, target: State, axes: Collection[str], backwards: bool = False
) -> tuple[Change, ...]:
    """The way from `array` to `target`, or backwards, that sends the fewest bytes.

    This is the way that `routes` finds over `axes`. The leading axes of a dimension
    stay in place if both states share them, and so do sums that both states leave open,
    because no way that moves them sends less. So we search over the other axes, for the
    part of the array that the fixed axes leave to a device.
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
    """The best way of an array without a name, on a mesh without idle axes, so that
    arrays with the same way on several meshes share a search."""
    steps = _alike(array, start, end, axes, back)
    if steps is None:
        goal = start if back else end
        steps = _by_bytes(array, axes, back).found([goal]).changes(goal)
    return steps


@lru_cache(maxsize=8)
def _by_bytes(array: ShardedArray, axes: Names, back: bool) -> "_Search":
    """The search for the ways of fewest bytes, which later calls continue."""
    return _Search(array, axes, None, back)


def _alike(
    array: ShardedArray, start: State, end: State, axes: Collection[str], back: bool
) -> tuple[Change, ...] | None:
    """The best way if axes that move together count as one; None if it permutes blocks,
    since the separate axes may then change places with others for less."""
    runs = _together(start, end)
    less = {axis for run in runs.values() for axis in run[1:]}
    placed, unreduced = start if back else end
    goal = short(placed, less), short((unreduced,), less)[0]
    usable = tuple(axis for axis in axes if axis not in less)
    one = fused(array, runs, less)
    found = _by_bytes(one, usable, back).found([goal]).changes(goal)
    if runs and any(step.op == "permute" for step in found):
        return None
    return tuple(spelt(step, array, runs) for step in found)


def _together(start: State, end: State) -> dict[str, Names]:
    """Axes that move together, by the first of them: those of open sums that will split
    the same dimension, and those that will split none."""
    (_, open_), (after, left) = start, end
    found = [axes for axes in after if len(axes) > 1 and set(axes) <= set(open_)]
    used = {axis for axes in after for axis in axes}.union(left)
    rest = tuple(axis for axis in open_ if axis not in used)
    return {axes[0]: axes for axes in (*found, rest) if len(axes) > 1}


def _plain(
    array: ShardedArray, start: State, end: State, axes: Collection[str]
) -> tuple[Change, ...] | None:
    """The best way if it needs no search; otherwise None.

    Gathering one dimension sends only the missing bytes. If every axis is one of an
    open sum, so that there are no idle copies, each sum is scattered to the dimension
    that its axes will split, and the rest of it is added up.
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
    """The leading axes that both share."""
    n = 0
    while n < min(len(one), len(other)) and one[n] == other[n]:
        n += 1
    return one[:n]


class _Search:
    """One run of Dijkstra's algorithm.

    Blocks of one shape may be permuted, so a state of k axes has up to k! neighbours.
    They are examined only when a permute is the cheapest entry of the queue, and then
    only those that are not reached yet. A permute never follows another one, because
    one permute that does both would have been found first.

    Internally, states are the numbers that `Graph` gives them.
    """

    def __init__(
        self,
        array: ShardedArray,
        axes: Collection[str],
        prices: Prices | None,
        backwards: bool,
    ):
        self.backwards = backwards
        self.costs = ChangeCosts(array, axes, prices)
        self.graph = self.costs.graph
        self.width, self.low = self.graph.width, self.graph.low
        self.routes = Routes(array, backwards)
        self.left: dict[tuple, list[int]] = {}  # alike, and not reached yet
        self.more: dict[tuple[int, float], Cost | None] = {}
        self.settled: set[int] = set()
        self.least: dict[int, tuple[Cost, tuple]] = {}  # of queued ways
        self.queue: list = []
        self.pushed = 0
        self._push((0, 0, 0), (), self.graph.code(array.state), None)

    def found(self, wanted: Collection[State] | None = None) -> Routes:
        """The routes when all of `wanted`, or all states, are settled; a later call
        continues the search."""
        open_ = None if wanted is None else set(wanted) - self.routes.found.keys()
        if open_ != set():
            for state in self.settle():
                if open_ is not None:
                    open_.discard(state)
                    if not open_:
                        break
        return self.routes

    def settle(self) -> Iterator[State]:
        """States in the order of their cost, each when its best way is known."""
        while self.queue:
            cost, order, _, here, move = heapq.heappop(self.queue)
            if isinstance(move, Permutes):
                self._permute_from(here, move.cost, order)
                continue
            if here in self.settled:
                continue
            state = self.graph.state(here)
            edge = None if move is None else self._edge(move, state)
            self.settled.add(here)
            self.routes.found[state] = cost, edge
            self._change_from(here, cost, order)
            if edge is None or edge.op != "permute":
                block = self.costs.block[here >> self.width]
                least = self.costs.least_permute(block)
                self._push(_add(cost, least), order, here, Permutes(cost))
            yield state

    def _edge(self, move: tuple, here: State) -> Edge:
        """The change that led to `here`, from the entry of the queue."""
        kind, dims, from_ = move
        start = self.graph.state(from_)
        return edge(self.graph, kind, dims, start, here, self.backwards)

    def _change_from(self, here: int, cost: Cost, order: tuple) -> None:
        """Queue the states that any change except a permute reaches from `here`."""
        divides, block, width = self.costs.divides, self.costs.block, self.width
        more, least, settled = self.more, self.least, self.settled
        time, nbytes, count = cost
        bytes_here = block[here >> width]
        for kind, there, dims in self.costs.all_from(here, self.backwards):
            if there in settled:
                continue
            n = there >> width
            if not divides[n]:
                continue
            before = block[n] if self.backwards else bytes_here
            if (kind, before) not in more:
                more[kind, before] = self.costs.of(kind, before)
            paid = more[kind, before]
            if paid is None:
                continue
            total = time + paid[0], nbytes + paid[1], count + paid[2]
            known = least.get(there)
            if known is None or total <= known[0]:
                rank = self.graph.rank(kind, dims)
                self._extend(total, order, (kind, dims, here), there, rank)

    def _push(self, cost: Cost, order: tuple, state: int, move) -> None:
        heapq.heappush(self.queue, (cost, order, self.pushed, state, move))
        self.pushed += 1

    def _extend(
        self, total: Cost, order: tuple, move: tuple, there: int, rank: tuple
    ) -> None:
        """Queue a way to `there`, unless a queued way is as good."""
        order = (rank, *order) if self.backwards else (*order, rank)
        if there not in self.least or (total, order) < self.least[there]:
            self.least[there] = total, order
            self._push(total, order, there, move)

    def _permute_from(self, here: int, cost: Cost, order: tuple) -> None:
        """Queue the states with blocks of the same shape that are not reached."""
        n, sums, move = here >> self.width, here & self.low, (None, (), here)
        others, least = self._not_reached(n, sums), self.least
        costs = self.costs.permutes(n, others, self.backwards)
        for other, more in zip(others, costs, strict=True):
            if more is None:
                continue
            total, there = _add(cost, more), other << self.width | sums
            known = least.get(there)
            if known is None or total <= known[0]:
                self._extend(total, order, move, there, (PERMUTE, other))

    def _not_reached(self, n: int, sums: int) -> list[int]:
        shapes = self.costs.shapes
        key = shapes.grids[n], sums
        known = self.left[key] if key in self.left else shapes.alike(n, sums).members
        left = [m for m in known if m << self.width | sums not in self.settled]
        self.left[key] = left
        return left


def edge(
    graph: Graph,
    kind: int | None,
    dims: tuple[int, ...],
    from_: State,
    to: State,
    backwards: bool,
) -> Edge:
    """The change between two states; `kind` is None for a permute, and a backward
    search has gone from its end to its start."""
    group, op = (None, None) if kind is None else divmod(kind, len(OPS))
    axes = () if kind is None else graph.groups[group]
    ends = (to, from_) if backwards else (from_, to)
    return Edge("permute" if kind is None else OPS[op], axes, *ends, dims)


def _add(one: Cost, other: Cost) -> Cost:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]
