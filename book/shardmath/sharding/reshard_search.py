"""The best ways from one sharding to others: Dijkstra's algorithm over shardings.

A state is the placement of the mesh axes: the axes that split each dimension, and the
axes of partial sums. One search finds the best ways from a state to all others or,
backwards, from all others to that state. So a matmul needs three searches for all its
plans.
"""

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from typing import NamedTuple

from .fused_axes import fused, short, spelt
from .layout import Names, ShardedArray
from .prices import Prices, Rate
from .reshard_graph import OPS, SLICE, Move, State, graph
from .reshard_step import Change, Swaps, swapped_runs

Cost = tuple[int, int, int]  # time, or 0 without prices; bytes; collectives


class Permutes(NamedTuple):
    """An entry of the queue: the permutes from a state that was reached at `cost`."""

    cost: "Cost"


class Edge(NamedTuple):
    """A change between two states; for a permute, axes and dimensions are empty."""

    op: str
    axes: Names
    before: State
    after: State
    dims: tuple[int, ...] = ()


class Use(NamedTuple):
    """The states that a plan can use if a given number of collectives is left.

    Args:
        states: the numbers of all these states.
        into: the changes that lead to these states, by the state in which each starts.
    """

    states: set[int]
    into: Mapping[int, list[Move]]


MANY = 12_000  # useful states; with more, looking up the changes to them saves nothing


@dataclass
class Routes:
    """The best ways between one state and others, as far as the search has found them.

    `found` lists the ways to each state, cheapest first. If the number of collectives
    is limited, it also lists more expensive ways with fewer collectives.
    """

    array: ShardedArray
    backwards: bool
    found: dict[State, list[tuple[Cost, Edge | None]]] = field(default_factory=dict)
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
        return [cost for cost, _ in self.found[state]]

    def changes(self, state: State, most: int | None = None) -> tuple[Change, ...]:
        """The best way from the search's state to `state` or, backwards, the reverse.

        Args:
            state: the other end of the way.
            most: the maximum number of collectives on the way; by default, any number.
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
    targets: Collection[State] | Sequence[Collection[State]] | None = None,
    backwards: bool = False,
    most: int | None = None,
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
        most: find the best ways with at most this number of collectives, and the best
            ways with fewer; by default, any number. If `most` is given, `targets` does
            not stop the search. Its n-th entry, counted from 0, has the states that are
            wanted if n of the `most` collectives are left; if more are left than the
            entries cover, a way may lead to any state.

    Ways of equal cost are ordered by bytes, then by collectives; if these are equal
    too, ways that gather the last dimension first, as XLA does, are preferred. A single
    AllGather over two dimensions sends as many bytes as two AllGathers in turn, so it
    is considered only if there are prices.
    """
    search = _Search(array, frozenset(axes), prices, backwards, most, targets)
    wanted = None if targets is None or most is not None else set(targets)
    return search.found(wanted)


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
    return _Search(array, axes, None, back, None, None)


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
        most: int | None,
        targets: Sequence[Collection[State]] | None,
    ):
        self.array, self.prices, self.backwards = array, prices, backwards
        self.most = most
        self.sizes = dict(array.mesh)
        self.axes = tuple(name for name in self.sizes if name in set(axes))
        mesh, dims = tuple(self.sizes), len(array.dims)
        self.graph = graph(self.axes, mesh, dims, prices is not None)
        self.width, self.low = self.graph.width, self.graph.low
        self.lone = any(self.sizes[name] == 1 for name in self.axes)
        self.routes = Routes(array, backwards)
        self.grids: list[tuple[int, ...]] = []  # blocks a dimension, of each placement
        self.alike: dict[tuple, list[int]] = {}
        self.block: list[float] = []  # bytes of one
        self.divides: list[bool] = []  # whether all blocks are of one size
        for n, placed in enumerate(self.graph.placed):
            grid = tuple(prod(map(self.sizes.get, axes)) for axes in placed)
            self.grids.append(grid)
            self.alike.setdefault(grid, []).append(n)
            self.block.append(array.nbytes / prod(grid))
            parts = zip(array.sizes, grid, strict=True)
            self.divides.append(not any(size % ways for size, ways in parts))
        self.alike_left: dict[tuple, list[int]] = {}  # not reached yet
        self.runs = {} if prices is None else prices.runs
        self.permutes: dict[tuple, Cost | None] = {}  # by runs and bytes
        self.terms: dict[int, tuple[float, int, Rate | None]] = {}
        self.costs: dict[tuple[int, float], Cost | None] = {}
        self.settled: dict[int, list[tuple[Cost, Edge | None]]] = {}
        self.least: dict[tuple[int, int], tuple[Cost, tuple]] = {}  # of queued ways
        self.queue: list = []
        self.pushed = 0
        self.start = self.graph.code(array.state)
        self.uses = [] if most is None else self._uses(targets)
        self._push((0, 0, 0), (), self.start, None)

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
        settled, found = self.settled, self.routes.found
        while self.queue:
            cost, order, _, here, move = heapq.heappop(self.queue)
            if isinstance(move, Permutes):
                self._permute_from(here, move.cost, order)
                continue
            if self._settled(here, cost[2]):
                continue
            state = self.graph.state(here)
            edge = None if move is None else self._edge(move, state)
            if here not in settled:
                found[state] = settled[here] = []
            settled[here].append((cost, edge))
            self._change_from(here, cost, order)
            if (edge is None or edge.op != "permute") and cost[2] != self.most:
                least = self._least_permute(here)
                self._push(_add(cost, least), order, here, Permutes(cost))
            yield state

    def _edge(self, move: tuple, here: State) -> Edge:
        """The change that led to `here`, from the entry of the queue."""
        kind, dims, from_ = move
        group, op = (None, None) if kind is None else divmod(kind, len(OPS))
        axes = () if kind is None else self.graph.groups[group]
        ends = (self.graph.state(from_), here)[:: -1 if self.backwards else 1]
        return Edge("permute" if kind is None else OPS[op], axes, *ends, dims)

    def _change_from(self, here: int, cost: Cost, order: tuple) -> None:
        """Queue the states that any change except a permute reaches from `here`."""
        settled, divides, block, width = (
            self.settled,
            self.divides,
            self.block,
            self.width,
        )
        costs, least, most = self.costs, self.least, self.most
        time, nbytes, count = cost
        bytes_here = block[here >> width]
        for kind, there, dims in self._moves(here, count):
            # This is `_settled`, whose calls would take a tenth of the time.
            ways = settled.get(there)
            if ways and (most is None or ways[-1][0][2] <= count):
                continue
            n = there >> width
            if not divides[n]:
                continue
            before = block[n] if self.backwards else bytes_here
            if (kind, before) not in costs:
                costs[kind, before] = self._cost(kind, before)
            more = costs[kind, before]
            if more is None:
                continue
            total = time + more[0], nbytes + more[1], count + more[2]
            known = least.get((there, 0 if most is None else total[2]))
            if known is None or total <= known[0]:
                rank = self.graph.rank(kind, dims)
                self._extend(total, order, (kind, dims, here), there, rank)

    def _moves(self, here: int, count: int) -> Iterable[Move]:
        """The changes from `here` that can continue a way with `most` collectives.

        After `most` of them, only slices are possible, and gathers over axes of one
        device, which move nothing. If few states are useful after the next collective,
        we look up the changes that lead to those.
        """
        if self.most is None or self.lone:
            return self.graph.changes(here, self.backwards)
        if count == self.most:
            return self.graph.slices(here, self.backwards)
        use = self.uses[self.most - count - 1]
        if use is None:
            return self.graph.changes(here, self.backwards)
        return (*self.graph.slices(here, self.backwards), *use.into.get(here, ()))

    def _useful(self, state: int, count: int) -> bool:
        """Whether a plan can use a way to `state` that has `count` collectives."""
        if self.most is None:
            return True
        use = self.uses[self.most - count]
        return use is None or state in use.states

    def _uses(self, targets: Sequence[Collection[State]] | None) -> list[Use | None]:
        """The states that are useful with none, one, two … collectives left.

        Such a state is a target for which that number must be left, or slices lead from
        it to a target, or one collective and slices lead to a state that is useful with
        one collective fewer. None means that all states may be useful.
        """
        found: list[Use | None] = [None] * (self.most + 1)
        if targets is None or self.lone:
            return found
        behind: set[int] = set()  # before a collective that leads to a useful state
        for left in range(min(len(targets), self.most + 1)):
            ends = map(self.graph.code, targets[left])
            use = self._use({*ends, *behind})
            if use is None:
                break
            found[left] = use
            behind = {*use.into, *self._permuted(use.states)}
        return found

    def _use(self, ends: Collection[int]) -> Use | None:
        """`ends`, the states from which slices lead there, and the changes to all."""
        # No way returns to its start.
        states = self._before_slices({*ends} - {self.start})
        if states is None:
            return None
        into = defaultdict(list)
        for state in states:
            for kind, there, dims in self.graph.changes(state, not self.backwards):
                if kind % len(OPS) != SLICE:
                    into[there].append((kind, state, dims))
        return Use(states, into)

    def _before_slices(self, ends: set[int]) -> set[int] | None:
        """`ends` and the states from which slices lead to them; None if too many."""
        found, new = set(ends), list(ends)
        while new and len(found) <= MANY:
            for _, state, _ in self.graph.slices(new.pop(), not self.backwards):
                if state not in found:
                    found.add(state)
                    new.append(state)
        return None if len(found) > MANY else found

    def _permuted(self, states: set[int]) -> Iterator[int]:
        """The states from which a permute leads to one of `states`."""
        kinds = {(self.grids[code >> self.width], code & self.low) for code in states}
        for grid, sums in kinds:
            for n in self.alike[grid]:
                if not self.graph.used[n] & sums:
                    yield n << self.width | sums

    def _settled(self, state: int, count: int) -> bool:
        """Whether a known way to `state` is as good as one with `count` collectives.

        Ways are settled in the order of their cost, so another way is worth keeping
        only if it has fewer collectives and their number is limited.
        """
        ways = self.settled.get(state)
        return bool(ways) and (self.most is None or ways[-1][0][2] <= count)

    def _push(self, cost: Cost, order: tuple, state: int, move) -> None:
        heapq.heappush(self.queue, (cost, order, self.pushed, state, move))
        self.pushed += 1

    def _extend(
        self, total: Cost, order: tuple, move: tuple, there: int, rank: tuple
    ) -> None:
        """Queue a way to `there`, unless a queued way is as good."""
        if self.most is not None and total[2] > self.most:
            return
        if not self._useful(there, total[2]):
            return
        order = (rank, *order) if self.backwards else (*order, rank)
        key = there, 0 if self.most is None else total[2]
        if key not in self.least or (total, order) < self.least[key]:
            self.least[key] = total, order
            self._push(total, order, there, move)

    def _cost(self, kind: int, block: float) -> Cost | None:
        """The cost of a change, except a permute, of blocks of `block` bytes; None if
        it has no price."""
        if kind not in self.terms:
            group, op = divmod(kind, len(OPS))
            self.terms[kind] = self._terms(OPS[op], self.graph.groups[group])
        rounds, parts, rate = self.terms[kind]
        if not rounds:
            return 0, 0, 0
        return _cost(block * rounds, block * parts, rate)

    def _terms(self, op: str, axes: Names) -> tuple[float, int, Rate | None]:
        """Blocks that a device sends, blocks that V has, and the rate of the change."""
        n = prod(map(self.sizes.get, axes))
        if op == "slice" or n == 1:
            return 0, 0, None
        rounds = {"all_gather": n - 1, "all_reduce": 2 * (n - 1) / n}
        parts = n if op in ("all_gather", "all_to_all") else 1
        rate = self.prices.rate(op, axes) if self.prices else FREE
        return rounds.get(op, (n - 1) / n), parts, rate

    def _least_permute(self, here: int) -> tuple[int, int, int]:
        """A lower bound on the cost of a permute from `here`.

        At least every second block has to leave its device, at best over all links.
        """
        nbytes = self.block[here >> self.width]
        if self.prices is None:
            return 0, _whole_bytes(nbytes), 1
        return int(nbytes / 2 / self.prices.egress * _SECOND), 0, 0

    def _permute_from(self, here: int, cost: Cost, order: tuple) -> None:
        """Queue the states with blocks of the same shape that are not reached."""
        n, sums, count = here >> self.width, here & self.low, cost[2]
        move, settled = (None, (), here), self.settled
        for other in self._not_reached(n, sums, count):
            there = other << self.width | sums
            # This is `_settled`, whose calls would double the time: most states are.
            ways = settled.get(there)
            if ways and (self.most is None or ways[-1][0][2] <= count + 1):
                continue
            more = self._permute_cost(n, other)
            if more is not None:
                self._extend(_add(cost, more), order, move, there, (3, other))

    def _not_reached(self, n: int, sums: int, count: int) -> list[int]:
        grid = self.grids[n]
        limit = None if self.most is None else self.uses[self.most - count - 1]
        key = grid, sums, None if limit is None else count
        if key not in self.alike_left:
            self.alike_left[key] = [
                other
                for other in self.alike[grid]
                if not sums & self.graph.used[other]
                and (limit is None or other << self.width | sums in limit.states)
            ]
        left = [  # a permute is a collective, so ways with one cannot be improved
            other
            for other in self.alike_left[key]
            if not self._settled(other << self.width | sums, 1)
        ]
        self.alike_left[key] = left
        return left

    def _permute_cost(self, here: int, there: int) -> Cost | None:
        """The cost of a permute; None if it has no price."""
        nbytes = self.block[here]
        if self.prices is None and not self.lone:
            return _cost(nbytes, nbytes, FREE)
        ends = here, there
        before, after = (
            self.graph.placed[n] for n in (ends[::-1] if self.backwards else ends)
        )
        runs = []
        for both in zip(before, after, strict=True):
            if both not in self.runs:
                self.runs[both] = tuple(swapped_runs(*both, self.sizes))
            if self.runs[both]:
                runs += self.runs[both]
        key = tuple(runs), nbytes
        if key not in self.permutes:
            self.permutes[key] = self._swap_cost(frozenset(runs), nbytes)
        return self.permutes[key]

    def _swap_cost(self, swapped: Swaps, nbytes: float) -> Cost | None:
        if not swapped:
            return 0, 0, 0
        if self.prices is None:
            return _cost(nbytes, nbytes, FREE)
        rate = self.prices.permute_rate(swapped, self.sizes)
        return _cost(nbytes, nbytes, rate)


def _add(one: Cost, other: Cost) -> Cost:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


# Costs are whole numbers, so that the order of a sum does not matter.
_SECOND = 10**15


FREE = 0.0, 0.0


def _cost(sent: float, nbytes: float, rate: Rate | None) -> Cost | None:
    """The cost of one collective; None if it has no price."""
    if rate is None:
        return None
    return _femtoseconds(nbytes * rate[0] + rate[1]), _whole_bytes(sent), 1


def _femtoseconds(seconds: float) -> int:
    return round(seconds * _SECOND)


def _whole_bytes(nbytes: float) -> int:
    return round(4 * nbytes)  # in quarters of a byte: a value in fp6 has three
