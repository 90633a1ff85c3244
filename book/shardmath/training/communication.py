"""What moves in a training step, derived from the lines of the model.

Every matmul is one line forward and two backward. Each is a case of `sharding` with its
operands where the strategy leaves them, and what the plan of the case needs is what
moves. Two rules join the lines of one pass:

1. an array is gathered once, however many lines read it;
2. partial sums of one array are added up on the chip first, so that one reduction is
   left (the gradient of the block's input, from the queries, keys and values).

So within a pass a change of an array happens once.

Embedding and head are a pass each. Where they are one table (tied), its gradient is one
array, and rule 2 joins the two. In a pipeline they may be on two stages, each with a
copy of the table: these send one another their gradients, once a step, and add them up.
So do stages that hold the same layers for microbatches from both ends (DualPipe).

Queries, keys and values may attend elsewhere than they rest, and tokens go to the chips
of their experts: these are changes of one array, by `sharding.reshard`, or hops.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType

from ..base.units import show
from ..collectives import Collective
from ..collectives.link_load import Pairs
from ..sharding import Change, ShardedArray, ShardingPlan, array, default_plan
from ..sharding.bind_axes import named_axes
from ..sharding.layout import Placed
from ..sharding.reshard_search import way
from ..transformer import Array, Matmul, Model, recompute
from .strategy import Layout, Names, Strategy

LIKE = {  # dimensions that lie as another one does, where an array lacks that one
    "Fshared": "F",
    "Fdense": "F",
    "qrank": "D",
    "kvrank": "D",
}
Sizes = Mapping[str, int]
Moved = dict[tuple, tuple[str, Change]]  # when and what, by operation, axes and array
Changes = list[Change]
KEYS = ("K", "V", "R")  # what a layer makes for its keys; R turns with the position
HEADS = ("Q", *KEYS)


@dataclass(frozen=True, repr=False)
class Hop(Change):
    """An array that goes on to the next chip as it is.

    Args:
        before, after, op, axes: as of a Change.
        closed: whether the last chip sends to the first; else it sends nothing.
        back: whether it goes the other way.
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
    """Partial sums that two chips of a row send one another, so that both have the sum:
    an AllReduce of two, which sends as much.

    Args:
        before, after, op, axes: as of a Change.
        every: whether each chip has its partner, the first the last, the second the one
            before the last; else the first and the last alone.
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
    """One array that changes its place: what, when and how often.

    Args:
        array: its name in the lines of the model; gradients begin with "d".
        change: from where to where, in the notation.
        when: "forward", "recompute", "backward" or "update".
        times: how often in a step.
        dealt: whether it takes tokens to their experts or back, which can be done with
            fewer copies than there are experts; see `experts.copies`.
    """

    array: str
    change: Change
    when: str
    times: int = 1
    dealt: bool = False

    @property
    def scales(self) -> bool:
        """Whether its bytes grow with the batch."""
        return bool({"B", "slots"} & {*self.change.before.dims})

    @property
    def kind(self) -> str:
        """What tells its price from that of others with the same operation and axes."""
        if isinstance(self.change, Swap):
            return "mirror" if self.change.every else "swap"
        if isinstance(self.change, Hop):
            return ("ring" if self.change.closed else "line") + (
                " back" if self.change.back else ""
            )
        return "dealt" if self.dealt else ""

    @property
    def collective(self) -> Collective:
        """Its record, to be priced and compared."""
        return replace(self.change.collective, times=self.times, when=self.when)

    def __str__(self) -> str:
        often = f", {self.times} times" if self.times > 1 else ""
        return f"{self.when}: {self.change}{often}"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


@dataclass(frozen=True)
class Work:
    """What some lines move and multiply on one chip, for one microbatch.

    Args:
        moves: what moves.
        plans: what is multiplied, by "forward", "recompute" and "backward".
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
        self.formats = formats  # by role, where it is not `dtype`; see `job.ROLES`
        self._plans: dict[tuple[ShardedArray, ...], ShardingPlan] = {}
        self._changes: dict[tuple[ShardedArray, ...], Changes] = {}
        self._arrays: dict[tuple, ShardedArray] = {}

    def activation(self, one: Array) -> ShardedArray:
        """An activation where it rests: with D in the stream, else inside a block."""
        return self.array(one, self.rests(one))

    def rests(self, array: Array) -> Layout:
        """The layout of an activation between its uses. What a router says of a token
        stays with the token, where tokens go to experts."""
        at = self.strategy
        scores = array.dims[-1] == "E" and "E" in at.stream
        return at.stream if array.dims[-1] == "D" or scores else at.inner

    def weight(self, one: Array) -> ShardedArray:
        return self.array(one, self.strategy.weights, role="weights")

    def gradient(self, one: Array) -> ShardedArray:
        """The gradient of a weight; partial sums until the update, where the state is
        split over the chips that share a batch and the gradients are not (ZeRO-1)."""
        at = self.strategy
        tokens = (*at.stream.get("B", ()), *at.inner.get("S", ()))
        late = [
            axis for axis in tokens if axis in _axes(at.state) - _axes(at.gradients)
        ]
        return self.array(one, at.gradients, late, role="gradients")

    def forward(self, line: Matmul) -> ShardingPlan:
        """x · w -> y"""
        x, w, y = self._read(line), self.weight(line.weight), line.result
        return self._plan(x, w, self.activation(y))

    def backward(self, line: Matmul) -> tuple[ShardingPlan, ShardingPlan]:
        """dy · w -> dx and x · dy -> dw"""
        into_x, into_w = line.backward
        dy, dx, dw = into_x.reads, into_x.result, into_w.result
        w, at = self.weight(line.weight), self.activation
        terms = self.array(dy, self.rests(dy), self._copies(line))
        return (
            self._plan(terms, w, at(dx)),
            self._plan(self._read(line), terms, self.gradient(dw)),
        )

    def _read(self, line: Matmul) -> ShardedArray:
        """What a line reads, where it rests; where KV heads are copied, as the line of
        the queries has gathered it."""
        if self._copies(line):
            return self.array(line.reads, self.strategy.inner)
        return self.activation(line.reads)

    def _copies(self, line: Matmul) -> list[str]:
        """Mesh axes along which KV heads are copied, for a line that makes them. Each
        copy serves other query heads, so that attention gives back partial sums."""
        inner = self.strategy.inner
        if "K" not in line.result.dims:
            return []
        return [axis for axis in inner.get("N", ()) if axis not in inner.get("K", ())]

    def attention(self, matmuls: Iterable[Matmul]) -> tuple[Changes, Changes]:
        """Around attention, forward and backward: heads to where they attend and back.

        Keys whose axes are the queries' too go round in a ring: the hops of `ring`.
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
        """Where queries, keys, values or their weighted sum lie while they attend."""
        at = self.strategy.attention
        return at | {"S": at.get("T", ())} if one.name in KEYS else at

    def _terms(self, one: Array) -> list[str]:
        """Mesh axes along which copies of keys are read by other queries, so that their
        gradients are terms of a sum."""
        at = self.strategy
        if one.name not in KEYS:
            return []
        split = {*at.attention.get("S", ()), *at.attention.get("N", ())}
        own = {axis for dim in one.dims for axis in self._attends(one).get(dim, ())}
        return [a for a in split - own if a not in at.inner.get("N", ())]

    def ring(self, one: Array) -> Changes:
        """The hops of keys round a ring: after n − 1 every chip has seen all."""
        if not self.strategy.ring:
            return []
        found = self.array(one, self.strategy.inner)
        hop = Hop(found, found, axes=self.strategy.ring)
        return [hop] * (found.ways(hop.axes) - 1)

    def experts(self, matmuls: Iterable[Matmul]) -> tuple[Changes, Changes]:
        """Tokens from where they rest to their experts, and what these make of them
        back: forward and backward."""
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
        """One AllToAll: slots of all experts on a chip, all slots of few experts."""
        at, experts = self.strategy.stream, self.strategy.stream["E"]
        others = tuple(axis for axis in _slots(at, ()) if axis not in experts)
        here, there = (
            self.array(one, layout, role="combine" if home else "dispatch")
            for layout in ({"slots": others + experts}, at)
        )
        return self.change(*((there, here) if home else (here, there)))

    def change(self, before: ShardedArray, after: ShardedArray) -> Changes:
        """What brings an array from one place to another and moves something."""
        ends = before, after
        if ends not in self._changes:
            steps = way(before, after.state, named_axes(ends))
            self._changes[ends] = [step for step in steps if step.collective]
        return self._changes[ends]

    def update(self, weight: Array, swaps: Iterable[Swap] = ()) -> Changes:
        """The gradient to where the state is, and the new weight to where it rests.

        Args:
            weight: what is updated.
            swaps: of two stages of a pipeline that both have it, and each a part of its
                gradient.
        """
        gradient = self.state(d_of(weight), "gradients")
        summed = self.change(self.gradient(d_of(weight)), gradient)
        back = self.change(self.state(weight, "weights"), self.weight(weight))
        return [*summed, *swaps, *back]

    def swap(self, weight: Array, every: bool = False) -> Swap:
        """What two stages send one another of a gradient: once it is added up, what the
        state of a chip needs of it, which is the least."""
        found = self.state(d_of(weight), "gradients")
        return Swap(found, found, axes=self.strategy.layers, every=every)

    def state(self, one: Array, role: str) -> ShardedArray:
        """A weight or its gradient, where the optimizer's state is."""
        return self.array(one, self.strategy.state, role=role)

    def rest(self, one: Array) -> ShardedArray:
        """An activation between its uses."""
        return self.array(one._replace(name=""), self.rests(one))

    def values(self, one: Array, layout: Layout) -> float:
        """How many values of an array one chip holds, where it lies by `layout`."""
        return prod(self.array(Array("", one.dims), layout).local_sizes)

    def array(
        self,
        one: Array,
        layout: Layout,
        sums: Iterable[str] = (),
        role: str = "activations",
    ) -> ShardedArray:
        """An array that is sharded by `layout`, as partial sums over some axes.

        Args:
            one, layout, sums: which array, mesh axes by dimension, axes of the sums.
            role: what it is, a key of `job.ROLES`, which decides its format.

        Raises:
            ValueError: sizes that do not divide, or an axis that is in use.
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
                array(found.notation, self.mesh, dtype, **known)  # says why
            self._arrays[key] = found
        return self._arrays[key]

    def _plan(self, *lie: ShardedArray) -> ShardingPlan:
        if lie not in self._plans:
            self._plans[lie] = default_plan(*lie)
        return self._plans[lie]


def layer_work(
    lines: Lines,
    model: Model,
    matmuls: tuple[Matmul, ...],
    remat: str,
    kernel: str = "fused",
) -> Work:
    """Forward, recompute and backward of one layer.

    Args:
        lines: its lines under a strategy.
        model, matmuls, remat, kernel: what is computed again; see
            `transformer.recompute`.

    Assumes:
        What "none", "elementwise" and "selective" keep of an exchange with experts is
        not sent again.
        What a matmul reads that was gathered over the sequence is kept as it was
        gathered under "none" alone: the others keep each chip's part and gather it
        again, as Megatron does.
    """
    ahead = {line: lines.forward(line) for line in matmuls}
    found = recompute(model, matmuls, remat, kernel)
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
    """Whether the tokens are kept as experts got them, so that nobody sends them again.

    >>> [keeps_dealt(remat) for remat in ("none", "dots", "Q K V t")]
    [True, False, True]
    """
    return remat in ("none", "elementwise", "selective") or "t" in remat.split()


def ends(
    lines: Lines, matmuls: Iterable[Matmul], table_kept: bool = False
) -> Iterator[Work]:
    """Head and embedding, as far as a stage has them: each forward and backward in one
    pass. The gradient of a table that both have is reduced in the first of them.

    Args:
        lines, matmuls: under which strategy, head or embedding or both.
        table_kept: whether the one table of both is gathered once for the two.
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
    """The stream that goes on to the next stage, or its gradient that goes back."""
    name = "x" if when == "forward" else "dx"
    here = lines.array(Array(name, ("B", "S", "D")), lines.strategy.stream)
    over = lines.strategy.layers
    return Move(name, Hop(here, here, axes=over, closed=closed, back=back), when)


def d_of(one: Array) -> Array:
    """The gradient of an array."""
    return Array(f"d{one.name}", one.dims)


def placed(one: Array, layout: Layout, tokens: Names = ()) -> Placed:
    """The axes that each dimension of an array is over, by `layout`.

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
        if dim == "G":  # query heads of a KV head: over what N is over and K is not
            axes = [a for a in layout.get("N", ()) if a not in layout.get("K", ())]
        elif dim == "slots":
            axes = layout.get("slots", _slots(layout, tokens))
        axes = experts if dim == "E" else [a for a in axes if a not in experts]
        found.append(tuple(axes))
    return tuple(found)


def _slots(layout: Layout, tokens: Names) -> Names:
    """Over what the tokens lie that are dealt to experts: what splits sequences and
    their tokens, where experts are split those of the stream, else of the blocks."""
    return (*layout.get("B", ()), *(layout.get("S", ()) if "E" in layout else tokens))


def _axes(layout: Layout) -> set[str]:
    return {axis for axes in layout.values() for axis in axes}


def _once(passes: Iterable[tuple[str, Iterable[ShardingPlan]]]) -> Moved:
    """The changes of one pass that move anything, each array's once."""
    found: Moved = {}
    for when, plans in passes:
        for change in (change for plan in plans for change in plan.moved):
            key = (change.op, change.axes, change.before.notation)
            found.setdefault(key, (when, change))
    return found
