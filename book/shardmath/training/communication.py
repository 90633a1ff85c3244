"""The traffic of a training step, derived from the lines of the model.

Every matmul is one line in the forward pass and two in the backward pass. `sharding`
plans each line for the layouts that the strategy gives its operands, and the
collectives of that plan are the traffic. Two rules join the lines of one pass:

1. An array is gathered only once, however many lines read it.
2. If several lines give partial sums of one array, each chip first adds up its own, so
   only one reduction is left. For example, queries, keys and values share the gradient
   of the block's input.

So within a pass, each change of an array happens once.

The embedding and the head count as one pass each. If they share one table (tied), its
gradient is a single array, and rule 2 joins the two. In a pipeline they may be on two
stages, each with a copy of the table. These stages then send each other their gradients
once per step and add them up, and so do stages that hold the same layers for
microbatches from both ends (DualPipe).

Attention may need queries, keys and values in a layout other than the one in which they
are kept, and tokens go to the chips of their experts. Each of these is either a change
of one array, found by `sharding.reshard`, or a series of hops.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from types import MappingProxyType

from ..base.units import show
from ..collectives import Collective
from ..collectives.link_load import Pairs
from ..sharding import Change, ShardedArray, ShardingPlan, array, default_plan
from ..sharding.bind_axes import named_axes
from ..sharding.layout import Placed
from ..sharding.reshard_search import way
from ..transformer import Array, Matmul, Recompute
from .strategy import Layout, Names, Strategy

LIKE = {  # dimensions sharded like another one, unless an array has that one too
    "Fshared": "F",
    "Fdense": "F",
    "qrank": "D",
    "kvrank": "D",
}
Sizes = Mapping[str, int]
Moved = dict[tuple, tuple[str, Change]]  # pass and change, by operation, axes and array
Changes = list[Change]
KEYS = ("K", "V", "R")  # keys, values, and MLA's keys R with rotary positions
HEADS = ("Q", *KEYS)


@dataclass(frozen=True, repr=False)
class Hop(Change):
    """An array that every chip sends unchanged to the next chip.

    Args:
        before, after, op, axes: as in a `Change`.
        closed: whether the last chip sends to the first; if not, it sends nothing.
        back: whether every chip sends to the previous chip instead of the next.
    """

    op: str = "permute"
    closed: bool = True
    back: bool = False

    @property
    def pairs(self) -> Pairs:
        n = self.before.ways(self.axes)
        chain = [(i, i + 1) for i in range(n - 1)] + [(n - 1, 0)] * self.closed
        return tuple(sorted(pair[::-1] if self.back else pair for pair in chain))

    def __str__(self) -> str:
        sent = show(self.collective.sent, "bytes") if self.collective else "nothing"
        return f"{self.title}: {self.before.notation} to the next chip, {sent} sent"


@dataclass(frozen=True, repr=False)
class Swap(Change):
    """Partial sums that two chips of a row send each other, so both have the sum.

    Each of the two sends as many bytes as in an AllReduce over two chips.

    Args:
        before, after, op, axes: as in a `Change`.
        every: whether each chip swaps with its mirror image in the row. If False, only
            the first and the last chip swap.
    """

    op: str = "permute"
    every: bool = False

    @property
    def pairs(self) -> Pairs:
        n = self.before.ways(self.axes)
        return tuple((i, n - 1 - i) for i in (range(n) if self.every else (0, n - 1)))

    def __str__(self) -> str:
        sent = show(self.collective.sent, "bytes") if self.collective else "nothing"
        ends = "with the mirrored" if self.every else "between the first and the last"
        return f"{self.title}: {self.before.notation} {ends} chip, {sent} sent"


@dataclass(frozen=True)
class Move:
    """One array whose layout changes: which one, when and how often.

    Args:
        array: its name in the lines of the model; gradients begin with "d".
        change: the layouts before and after, in the notation.
        when: "forward", "recompute", "backward" or "update".
        times: how often it happens in a step.
        dealt: whether it takes tokens to their experts or back. If so, fewer copies of
            a token may be needed than it has experts; see `experts.copies`.
    """

    array: str
    change: Change
    when: str
    times: int = 1
    dealt: bool = False

    @property
    def scales(self) -> bool:
        """Whether the bytes moved grow with the batch."""
        return bool({"B", "slots"} & {*self.change.before.dims})

    @property
    def kind(self) -> str:
        """A name for moves that cost the same if operation and axes agree too."""
        if isinstance(self.change, Swap):
            return "mirror" if self.change.every else "swap"
        if isinstance(self.change, Hop):
            return ("ring" if self.change.closed else "line") + (
                " back" if self.change.back else ""
            )
        return "dealt" if self.dealt else ""

    @property
    def collective(self) -> Collective:
        """The record of its collective, which can be priced and compared."""
        return replace(self.change.collective, times=self.times, when=self.when)

    def __str__(self) -> str:
        often = f", {self.times} times" if self.times > 1 else ""
        return f"{self.when}: {self.change}{often}"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


@dataclass(frozen=True)
class Work:
    """The moves and matmuls of some lines on one chip, for one microbatch.

    Args:
        moves: the moves.
        plans: the plans of the matmuls, by "forward", "recompute" and "backward".
    """

    moves: tuple[Move, ...]
    plans: Mapping[str, tuple[ShardingPlan, ...]]


class Lines:
    """The lines of a model under one strategy, each planned by `default_plan`."""

    def __init__(
        self,
        strategy: Strategy,
        mesh: Sizes,
        sizes: Sizes,
        dtype: str,
        formats: Mapping[str, str] = MappingProxyType({}),
    ):
        self.strategy, self.mesh, self.sizes, self.dtype = strategy, mesh, sizes, dtype
        self.formats = formats  # by role, if it is not `dtype`; see `job.ROLES`
        self._ahead: dict[Matmul, ShardingPlan] = {}
        self._back: dict[Matmul, tuple[ShardingPlan, ShardingPlan]] = {}
        self._updates: dict[Array, Changes] = {}
        self._changes: dict[tuple[ShardedArray, ...], Changes] = {}
        self._arrays: dict[tuple, ShardedArray] = {}

    def activation(self, one: Array) -> ShardedArray:
        """An activation in the layout that it has between its uses."""
        return self.array(one, self.rests(one))

    def rests(self, array: Array) -> Layout:
        """The layout of an activation between its uses: that of the stream if the last
        dimension is D, otherwise that inside the blocks. If tokens go to other chips
        for their experts, the router's scores stay where the tokens come from."""
        at = self.strategy
        scores = array.dims[-1] == "E" and "E" in at.stream
        return at.stream if array.dims[-1] == "D" or scores else at.inner

    def weight(self, one: Array) -> ShardedArray:
        return self.array(one, self.strategy.weights, role="weights")

    def gradient(self, one: Array) -> ShardedArray:
        """The gradient of a weight. It remains partial sums until the update if the
        chips that share a batch split the optimizer state but not the gradients
        (ZeRO-1)."""
        at = self.strategy
        tokens = (*at.stream.get("B", ()), *at.inner.get("S", ()))
        late = [
            axis for axis in tokens if axis in _axes(at.state) - _axes(at.gradients)
        ]
        return self.array(one, at.gradients, late, role="gradients")

    def forward(self, line: Matmul) -> ShardingPlan:
        """x · w -> y"""
        if line not in self._ahead:
            x, w, y = self._read(line), self.weight(line.weight), line.result
            self._ahead[line] = _planned(x, w, self.activation(y))
        return self._ahead[line]

    def backward(self, line: Matmul) -> tuple[ShardingPlan, ShardingPlan]:
        """dy · w -> dx and x · dy -> dw"""
        if line not in self._back:
            into_x, into_w = line.backward
            dy, dx, dw = into_x.reads, into_x.result, into_w.result
            w, at = self.weight(line.weight), self.activation
            terms = self.array(dy, self.rests(dy), self._copies(line))
            self._back[line] = (
                _planned(terms, w, at(dx)),
                _planned(self._read(line), terms, self.gradient(dw)),
            )
        return self._back[line]

    def _read(self, line: Matmul) -> ShardedArray:
        """What a line reads, in its layout between uses; if KV heads are copied, the
        array that the line of the queries has already gathered."""
        if self._copies(line):
            return self.array(line.reads, self.strategy.inner)
        return self.activation(line.reads)

    def _copies(self, line: Matmul) -> list[str]:
        """Mesh axes along which KV heads are copied, for a line that makes them. Each
        copy serves other query heads, so its gradient is a partial sum."""
        inner = self.strategy.inner
        if "K" not in line.result.dims:
            return []
        return [axis for axis in inner.get("N", ()) if axis not in inner.get("K", ())]

    def attention(self, matmuls: Iterable[Matmul]) -> tuple[Changes, Changes]:
        """Changes to the layout of attention and back, for both passes.

        If an axis splits both keys and queries, the keys go round that axis in the hops
        of `ring`.
        """
        at, ahead, back = self.strategy, [], []
        if at.attention == at.inner and not at.inner.get("S"):
            return ahead, back
        lines = tuple(matmuls)
        made = [line.result for line in lines if line.result.name in HEADS]
        for one in made + [line.reads for line in lines if line.reads.name == "A"]:
            there, d = self._attends(one), d_of(one)
            rests, attends = self.array(one, at.inner), self.array(one, there)
            back_to = self.array(d, at.inner)
            whole = self.array(d, there, self._terms(one))
            if one.name == "A":
                ahead += self.change(attends, rests)
                back += self.change(back_to, whole)
            elif one.name in KEYS and at.ring:
                ahead += self.ring(one)
                back += self.ring(d)
            else:
                ahead += self.change(rests, attends)
                back += self.change(whole, back_to)
        return ahead, back

    def _attends(self, one: Array) -> Layout:
        """The layout of queries, keys, values or attention's result in attention."""
        at = self.strategy.attention
        return at | {"S": at.get("T", ())} if one.name in KEYS else at

    def _terms(self, one: Array) -> list[str]:
        """Mesh axes along which other queries read copies of the same keys, so the
        gradients of these copies have to be added up."""
        at = self.strategy
        if one.name not in KEYS:
            return []
        split = {*at.attention.get("S", ()), *at.attention.get("N", ())}
        own = {axis for dim in one.dims for axis in self._attends(one).get(dim, ())}
        return [a for a in split - own if a not in at.inner.get("N", ())]

    def ring(self, one: Array) -> Changes:
        """The n − 1 hops of an array round a ring, after which every chip has seen all
        of it."""
        if not self.strategy.ring:
            return []
        found = self.array(one, self.strategy.inner)
        hop = Hop(found, found, axes=self.strategy.ring)
        return [hop] * (found.ways(hop.axes) - 1)

    def experts(self, matmuls: Iterable[Matmul]) -> tuple[Changes, Changes]:
        """Changes, for both passes, that take tokens to the chips of their experts and
        take the experts' results back."""
        ahead, back, dealt = [], [], {}
        for line in matmuls if "E" in self.strategy.stream else ():
            for one, home in ((line.reads, False), (line.result, True)):
                if one.dims == ("E", "slots", "D"):
                    dealt |= {one: home}
        for one, home in dealt.items():
            ahead += self._dealt(one, home)
            back += self._dealt(d_of(one), not home)
        return ahead, back

    def _dealt(self, one: Array, home: bool) -> Changes:
        """The AllToAll from slots of all experts on each chip to all slots of a few, or
        the one back."""
        at, experts = self.strategy.stream, self.strategy.stream["E"]
        others = tuple(axis for axis in _slots(at, ()) if axis not in experts)
        here, there = (
            self.array(one, layout, role="combine" if home else "dispatch")
            for layout in ({"slots": others + experts}, at)
        )
        return self.change(*((there, here) if home else (here, there)))

    def change(self, before: ShardedArray, after: ShardedArray) -> Changes:
        """The steps from one layout to another that send something."""
        ends = before, after
        if ends not in self._changes:
            steps = way(before, after.state, named_axes(ends))
            self._changes[ends] = [step for step in steps if step.collective]
        return self._changes[ends]

    def update(self, weight: Array) -> Changes:
        """Changes of the gradient to the layout of the state, and of the new weight to
        the layout in which weights are kept."""
        if weight not in self._updates:
            gradient = self.state(d_of(weight), "gradients")
            summed = self.change(self.gradient(d_of(weight)), gradient)
            back = self.change(self.state(weight, "weights"), self.weight(weight))
            self._updates[weight] = [*summed, *back]
        return self._updates[weight]

    def swap(self, weight: Array, every: bool = False) -> Swap:
        """The part of a gradient that two stages send each other. After a stage has
        added up its own gradient, each chip sends only the part that its optimizer
        state needs."""
        found = self.state(d_of(weight), "gradients")
        return Swap(found, found, axes=self.strategy.layers, every=every)

    def state(self, one: Array, role: str) -> ShardedArray:
        """A weight or its gradient in the layout of the optimizer's state."""
        return self.array(one, self.strategy.state, role=role)

    def rest(self, one: Array) -> ShardedArray:
        """A nameless activation in the layout that it has between its uses."""
        return self.array(one._replace(name=""), self.rests(one))

    def values(self, one: Array, layout: Layout) -> float:
        """How many values of an array one chip holds under `layout`."""
        return prod(self.array(Array("", one.dims), layout).local_sizes)

    def array(
        self,
        one: Array,
        layout: Layout,
        sums: Iterable[str] = (),
        role: str = "activations",
    ) -> ShardedArray:
        """An array that is sharded by `layout` and may be partial sums.

        Args:
            one: the array.
            layout: mesh axes by dimension.
            sums: mesh axes over which the array is partial sums.
            role: a key of `job.ROLES`, which decides its format.

        Raises:
            ValueError: the axes do not divide a size, or an axis is used twice.
        """
        tokens = self.strategy.inner.get("S", ())
        dtype = self.formats.get(role, self.dtype)
        key = one, placed(one, layout, tokens), frozenset(sums), dtype
        if key not in self._arrays:
            found = ShardedArray(
                dims=one.dims,
                sizes=tuple(self.sizes[dim] for dim in one.dims),
                placed=key[1],
                mesh=tuple(self.mesh.items()),
                precision=dtype,
                unreduced=tuple(axis for axis in self.mesh if axis in key[2]),
                name=one.name,
            )
            if not found.possible:
                known = dict(zip(one.dims, found.sizes, strict=True))
                array(found.notation, self.mesh, dtype, **known)  # raises the reason
            self._arrays[key] = found
        return self._arrays[key]


@lru_cache(maxsize=2048)
def _planned(a: ShardedArray, b: ShardedArray, c: ShardedArray) -> ShardingPlan:
    """`default_plan` with a cache, because strategies that differ in one thing, such as
    what they do with keys, share most of their plans."""
    return default_plan(a, b, c)


def layer_work(
    lines: Lines, matmuls: tuple[Matmul, ...], remat: str, found: Recompute
) -> Work:
    """The work of one layer in the forward pass, the recompute and the backward pass.

    Args:
        lines: the lines of the layer under a strategy.
        matmuls: the matmuls of the layer.
        remat: the policy that decides what is computed again.
        found: what is computed again; see `transformer.recompute`.

    Assumes:
        Under "none", "elementwise" and "selective", tokens are kept as the experts got
        them, so they are not sent again.
        Only "none" keeps the matmul inputs that were gathered over the sequence. With
        the other policies, each chip keeps its part and the parts are gathered again,
        as in Megatron.
    """
    ahead = {line: lines.forward(line) for line in matmuls}
    again = [ahead[line] for line in found.lines]
    ahead = list(ahead.values())
    back = [plan for line in reversed(matmuls) for plan in lines.backward(line)]
    weights = {line.weight.name for line in matmuls}
    first = _once([("forward", ahead)])
    second = _once([("recompute", again), ("backward", back)])
    if remat == "none":  # what was gathered is kept, except weights
        kept = {
            key
            for key, (_, change) in first.items()
            if change.before.name not in weights
        }
        second = {key: moved for key, moved in second.items() if key not in kept}
    moves = [(when, change, False) for when, change in first.values()]
    moves += [(when, change, False) for when, change in second.values()]
    for dealt, (there, home) in (
        (False, lines.attention(matmuls)),
        (True, lines.experts(matmuls)),
    ):
        moves += [("forward", change, dealt) for change in there]
        kept = keeps_dealt(remat) if dealt else not found.attention
        moves += [("recompute", change, dealt) for change in there if not kept]
        moves += [("backward", change, dealt) for change in home]
    return Work(
        tuple(
            Move(change.before.name, change, when, often, dealt)
            for (when, change, dealt), often in Counter(moves).items()
        ),
        {"forward": tuple(ahead), "recompute": tuple(again), "backward": tuple(back)},
    )


def keeps_dealt(remat: str) -> bool:
    """Whether tokens are kept as the experts got them, so they need not be sent again.

    >>> [keeps_dealt(remat) for remat in ("none", "dots", "Q K V t")]
    [True, False, True]
    """
    return remat in ("none", "elementwise", "selective") or "t" in remat.split()


def ends(
    lines: Lines, matmuls: Iterable[Matmul], table_kept: bool = False
) -> Iterator[Work]:
    """The work of the head and the embedding, each in one pass forward and backward.

    If the two share a table, the first of them reduces the table's gradient.

    Args:
        lines: the lines under a strategy.
        matmuls: those of the head, the embedding or both, whichever a stage has.
        table_kept: whether a shared table is gathered only once for both.
    """
    made: set[Move] = set()
    for line in matmuls:
        ahead, back = (lines.forward(line),), lines.backward(line)
        found = _once([("forward", ahead), ("backward", back)]).values()
        moves = [Move(change.before.name, change, when) for when, change in found]
        mine = tuple(move for move in moves if move not in made)
        once = {d_of(line.weight).name, line.weight.name if table_kept else ""}
        made |= {move for move in moves if move.array in once}
        yield Work(mine, {"forward": ahead, "backward": back})


def hop(lines: Lines, when: str, closed: bool, back: bool) -> Move:
    """The send of the stream to the next stage, or of its gradient to the previous."""
    name = "x" if when == "forward" else "dx"
    here = lines.array(Array(name, ("B", "S", "D")), lines.strategy.stream)
    over = lines.strategy.layers
    return Move(name, Hop(here, here, axes=over, closed=closed, back=back), when)


def d_of(one: Array) -> Array:
    """The gradient of an array."""
    return Array(f"d{one.name}", one.dims)


def placed(one: Array, layout: Layout, tokens: Names = ()) -> Placed:
    """The mesh axes that shard each dimension of an array under `layout`.

    Args:
        one: the array.
        layout: mesh axes by dimension.
        tokens: axes that split the tokens of a sequence inside the blocks.

    >>> placed(Array("x", ("B", "S", "D")), {"B": ("X",), "S": ("data", "Z")})
    (('X',), ('data', 'Z'), ())
    """
    experts = layout.get("E", ()) if one.dims[0] == "E" else ()
    found = []
    for dim in one.dims:
        like = LIKE.get(dim, dim)
        axes = layout.get(dim if like in one.dims else like, ())
        if dim == "G":  # query heads of a KV head: over the axes of N that K lacks
            axes = [a for a in layout.get("N", ()) if a not in layout.get("K", ())]
        elif dim == "slots":
            axes = layout.get("slots", _slots(layout, tokens))
        axes = experts if dim == "E" else [a for a in axes if a not in experts]
        found.append(tuple(axes))
    return tuple(found)


def _slots(layout: Layout, tokens: Names) -> Names:
    """The axes that shard the tokens which go to experts: those of the sequences and of
    their tokens, in the stream if experts are split and in the blocks otherwise."""
    return (*layout.get("B", ()), *(layout.get("S", ()) if "E" in layout else tokens))


def _axes(layout: Layout) -> set[str]:
    return {axis for axes in layout.values() for axis in axes}


def _once(passes: Iterable[tuple[str, Iterable[ShardingPlan]]]) -> Moved:
    """The changes of one pass that send something, without repetitions."""
    found: Moved = {}
    for when, plans in passes:
        for change in (change for plan in plans for change in plan.moved):
            key = (change.op, change.axes, change.before.notation)
            found.setdefault(key, (when, change))
    return found
