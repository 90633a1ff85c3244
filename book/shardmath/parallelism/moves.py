"""What moves in a training step, derived from the lines of the model.

Every matmul is one line forward and two backward. Each is a case of `sharding` with its
operands where the strategy leaves them, and what the plan of the case needs is what
moves. Two rules join the lines of one pass:

1. an array is gathered once, however many lines read it;
2. partial sums of one array are added up on the chip first, so that one reduction is
   left (the gradient of the block's input, from the queries, keys and values).

So within a pass a change of an array happens once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod

from ..collectives import Collective
from ..sharding import Change, Plan, array, case_plan, reshard
from ..transformer import Array, Matmul
from .strategy import Layout, Strategy

LIKE = {  # dimensions that lie as another one does, where an array lacks that one
    "Fshared": "F",
    "Fdense": "F",
    "slots": "B",
    "qrank": "D",
    "kvrank": "D",
}
Sizes = Mapping[str, int]
Moved = dict[tuple, tuple[str, Change]]  # when and what, by operation, axes and array


@dataclass(frozen=True)
class Move:
    """One array that changes its place: what, when and how often.

    Args:
        array: its name in the lines of the model; gradients begin with "d".
        change: from where to where, in the notation.
        when: "forward", "recompute", "backward" or "update".
        times: how often in a step.
    """

    array: str
    change: Change
    when: str
    times: int = 1

    @property
    def scales(self) -> bool:
        """Whether its bytes grow with the batch."""
        return "B" in self.change.before.dims

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
    """The moves and FLOPs of some lines on one chip."""

    moves: tuple[Move, ...]
    flops: Mapping[str, float]


class Lines:
    """The lines of a model under one strategy, each planned by `case_plan`."""

    def __init__(self, strategy: Strategy, mesh: Sizes, sizes: Sizes, dtype: str):
        self.strategy, self.mesh, self.sizes, self.dtype = strategy, mesh, sizes, dtype
        self._plans: dict[str, Plan] = {}

    def activation(self, array: Array) -> str:
        """An activation where it rests: with D in the stream, else inside a block."""
        at = self.strategy
        return placed(array, at.stream if array.dims[-1] == "D" else at.inner)

    def weight(self, array: Array) -> str:
        return placed(array, self.strategy.weights)

    def gradient(self, array: Array) -> str:
        """The gradient of a weight; partial sums until the update, where the state is
        split over the chips that share a batch and the gradients are not (ZeRO-1)."""
        at = self.strategy
        batch = at.stream.get("B", ())
        late = [axis for axis in batch if axis in _axes(at.state) - _axes(at.gradients)]
        return placed(array, at.gradients) + _sums(late)

    def forward(self, line: Matmul) -> Plan:
        """x · w -> y"""
        x, w, y = self._read(line), line.weight, line.result
        return self._plan(line, f"{x} · {self.weight(w)} -> {self.activation(y)}")

    def backward(self, line: Matmul) -> tuple[Plan, Plan]:
        """dy · w -> dx and x · dy -> dw"""
        into_x, into_w = line.backward
        dy, dx, dw = into_x.reads, into_x.result, into_w.result
        w, at = self.weight(line.weight), self.activation
        terms = at(dy) + _sums(self._copies(line))
        return (
            self._plan(into_x, f"{terms} · {w} -> {at(dx)}"),
            self._plan(into_w, f"{self._read(line)} · {terms} -> {self.gradient(dw)}"),
        )

    def _read(self, line: Matmul) -> str:
        """What a line reads, where it rests; where KV heads are copied, as the line of
        the queries has gathered it."""
        if self._copies(line):
            return placed(line.reads, self.strategy.inner)
        return self.activation(line.reads)

    def _copies(self, line: Matmul) -> list[str]:
        """Mesh axes along which KV heads are copied, for a line that makes them. Each
        copy serves other query heads, so that attention gives back partial sums."""
        inner = self.strategy.inner
        if "K" not in line.result.dims:
            return []
        return [axis for axis in inner.get("N", ()) if axis not in inner.get("K", ())]

    def update(self, weight: Array) -> list[Change]:
        """The gradient to where the state is, and the new weight to where it rests."""
        state = self.strategy.state
        d = Array(f"d{weight.name}", weight.dims)
        known = {dim: self.sizes[dim] for dim in weight.dims}
        return [
            step
            for before, after in (
                (self.gradient(d), placed(d, state)),
                (placed(weight, state), self.weight(weight)),
            )
            for step in reshard(
                f"{before} -> {after}", self.mesh, self.dtype, True, **known
            ).steps
            if step.collective
        ]

    def rest(self, one: Array) -> float:
        """Values of an activation that one chip holds between its uses."""
        at = self.strategy
        return self.values(one, at.stream if one.dims[-1] == "D" else at.inner)

    def values(self, one: Array, layout: Layout) -> float:
        """How many values of an array one chip holds, where it lies by `layout`."""
        known = {dim: self.sizes[dim] for dim in one.dims}
        found = array(
            placed(Array("", one.dims), layout), self.mesh, self.dtype, **known
        )
        return prod(found.local_sizes)

    def _plan(self, line: Matmul, text: str) -> Plan:
        if text not in self._plans:
            dims = {*line.reads.dims, *line.weight.dims, *line.result.dims}
            known = {dim: self.sizes[dim] for dim in dims}
            self._plans[text] = case_plan(text, self.mesh, self.dtype, **known)
        return self._plans[text]


def layers(lines: Lines, matmuls: Iterable[Matmul], remat: str, times: int) -> Work:
    """Forward, recompute and backward of `times` layers of the same matmuls."""
    matmuls = tuple(matmuls)
    ahead = [lines.forward(line) for line in matmuls]
    # The last result of a layer is in the stream: nothing behind it is needed again.
    last = matmuls[-1].result
    again = [
        plan
        for line, plan in zip(matmuls, ahead, strict=True)
        if remat == "full" and line.result != last
    ]
    back = [plan for line in reversed(matmuls) for plan in lines.backward(line)]
    weights = {line.weight.name for line in matmuls}
    first = _once([("forward", ahead)])
    second = _once([("recompute", again), ("backward", back)])
    if remat == "none":  # what was gathered is kept, but for weights
        kept = {
            key
            for key, (_, change) in first.items()
            if change.before.name not in weights
        }
        second = {key: found for key, found in second.items() if key not in kept}
    moves = tuple(
        Move(change.before.name, change, when, times)
        for when, change in (*first.values(), *second.values())
    )
    return Work(moves, _flops(times, forward=ahead, recompute=again, backward=back))


def ends(lines: Lines, matmuls: Iterable[Matmul]) -> Work:
    """Matmuls whose backward follows their forward at once: all is one pass."""
    matmuls = tuple(matmuls)
    ahead = [lines.forward(line) for line in matmuls]
    back = [plan for line in reversed(matmuls) for plan in lines.backward(line)]
    found = _once([("forward", ahead), ("backward", back)]).values()
    moves = tuple(Move(change.before.name, change, when) for when, change in found)
    return Work(moves, _flops(1, forward=ahead, recompute=[], backward=back))


def placed(array: Array, layout: Layout) -> str:
    """`array` with its dimensions over the axes of `layout`.

    >>> placed(Array("x", ("B", "S", "D")), {"B": ("X",), "S": ("data", "Z")})
    'x[B_{X}, S_{data,Z}, D]'
    """
    found = []
    for dim in array.dims:
        like = LIKE.get(dim, dim)
        axes = layout.get(dim if like in array.dims else like, ())
        if dim == "G":  # query heads of a KV head: over what N is over and K is not
            axes = [
                one for one in layout.get("N", ()) if one not in layout.get("K", ())
            ]
        found.append(f"{dim}_{{{','.join(axes)}}}" if axes else dim)
    return f"{array.name}[{', '.join(found)}]"


def _sums(axes: list[str]) -> str:
    """Partial sums over `axes`, in the notation."""
    return f"{{U_{{{','.join(axes)}}}}}" if axes else ""


def _axes(layout: Layout) -> set[str]:
    return {axis for axes in layout.values() for axis in axes}


def _once(passes: Iterable[tuple[str, Iterable[Plan]]]) -> Moved:
    """The changes of one pass that move anything, each array's once."""
    found: Moved = {}
    for when, plans in passes:
        for change in (change for plan in plans for change in plan.moved):
            key = (change.op, change.axes, change.before.notation)
            found.setdefault(key, (when, change))
    return found


def _flops(times: int, **plans: Iterable[Plan]) -> dict[str, float]:
    return {when: times * sum(p.flops for p in some) for when, some in plans.items()}
