"""What a step asks of a chip, as sums over sizes of mesh axes that are still open.

How many bytes of an array a chip holds is the array over the product of the axes that
it lies over. Which arrays move, and over which axes, hardly depends on how large the
axes are, as long as each is larger than 1. So one derivation by `parallelism.step`
tells all meshes with the same axes: its arrays are kept here without the sizes.

Hardly: a gradient that all chips of an axis Y would have whole may be added up over X
in parts of 1/|Y|, and these gathered over Y. For |X| = 2 that saves no byte, for more
it does. So it is with the projections into a latent (MLA), which tensor parallelism
leaves whole: of 119 meshes of DeepSeek-V3, drawn by lot, one had a network 2.8 % longer
than `Step` says, all others were within 0.4 % (see `tests/test_planner.py`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from ..parallelism import Step
from ..parallelism.memory import Held
from ..parallelism.moves import Hop, Work
from ..parallelism.stages import Stack
from ..parallelism.training import EMBEDDING
from ..sharding import Plan, ShardedArray
from ..transformer import Array, Matmul

Names = tuple[str, ...]
Sizes = Mapping[str, int]
Of = tuple[Names, str]  # axes that divide an amount; "B" or "slots" if the batch does
Amounts = Mapping[Of, float]
Wire = tuple[str, Names, str]  # operation, mesh axes, and the way of a hop or a swap
QUERIES = Array("A", ("B", "S", "N"))


@dataclass(frozen=True)
class Traffic:
    """What moves by one operation over the same axes, with nothing said of sizes.

    Args:
        nbytes: of all runs, by what divides them and how often they are made.
        runs: how many there are, likewise.
    """

    nbytes: dict[tuple[Of, str], float] = field(default_factory=lambda: _zeros())
    runs: dict[str, float] = field(default_factory=lambda: _zeros())


@dataclass(frozen=True)
class Block:
    """One layer of a kind, or one end of a model, or one hop between stages.

    Args:
        forward, inputs, weights: FLOPs of F, I and W (see `pipeline_schedules`).
        held: bytes by part of the memory; lists of which the largest counts.
        saved, once: of the part "saved", what each layer adds, and what all share.
        read: bytes of the matrices that one pass reads.
        traffic: what moves, by operation and axes.
        copied: what a stage and another one that has the same layers send one another
            of their gradients, each.
        limits: what must divide what: a dimension, its size, and axes.
    """

    forward: Amounts
    inputs: Amounts
    weights: Amounts
    held: Mapping[str, tuple[Amounts, ...]]
    saved: Amounts
    once: Amounts
    read: Amounts
    traffic: Mapping[Wire, Traffic]
    copied: Traffic
    limits: frozenset[tuple[str, int, Names]]


def block(whole: Step, stack: Stack, ends: tuple[Matmul, ...] = ()) -> Block:
    """What one layer or the ends of a model ask of a chip, without sizes of its mesh.

    Args:
        whole: a step of one microbatch.
        stack, ends: as for `Step.only`, which they are taken out by.
    """
    step = whole.only(stack, ends)
    every = [p for work in step.works for some in work.plans.values() for p in some]
    arrays = [x for plan in every for x in (plan.a, plan.b, plan.c)]
    arrays += [x for m in step.moves for x in (m.change.before, m.change.after)]
    arrays += [h.array for some in step.held.values() for each in some for h in each]
    held = {part: tuple(map(_held, some)) for part, some in step.held.items()}
    each, once = held["saved"][0], {}
    if step.remat == "none":  # what two layers have once, such as a mask, all share
        twice = whole.only(tuple((2 * n, lines) for n, lines in stack))
        two = _held(twice.held["saved"][0])
        once = {key: 2 * one - two[key] for key, one in each.items()}
        each = {key: two[key] - one for key, one in each.items()}
    return Block(
        *_passes(step, step.works[: -1 if EMBEDDING in ends else None]),
        held,
        each,
        once,
        _held(step.read),
        _traffic(step),
        _copied(step),
        frozenset(_limits(arrays)),
    )


def _zeros() -> dict:
    return defaultdict(float)


def of(array: ShardedArray, more: Names = ()) -> Of:
    """What divides an amount that lies as `array` does."""
    batch = next((dim for dim in ("slots", "B") if dim in array.dims), "")
    return tuple(sorted((*array.axes, *more))), batch


def _held(some: Iterable[Held]) -> Amounts:
    found = _zeros()
    for one in some:
        found[of(one.array, one.turns)] += one.width * prod(one.array.sizes)
    return dict(found)


def _passes(step: Step, works: Iterable[Work]) -> tuple[Amounts, Amounts, Amounts]:
    """FLOPs of F, I and W; what is not in matmuls with weights is attention.

    A token that is looked up is multiplied with nothing, so `works` lacks that matmul.
    """
    found = {when: _zeros() for when in step.flops}
    for work in works:
        for when, plans in work.plans.items():
            for plan in plans:
                found[when][_of_plan(plan)] += work.times * _flops(plan)
    W = {key: amount / 2 for key, amount in found["backward"].items()}
    queries = step.lines.array(QUERIES, step.strategy.inner)
    for when, whole in step.flops.items():
        lines = sum(work.flops.get(when, 0.0) for work in works)
        if step.stack:
            found[when][of(queries)] += (whole - lines) * queries.ways(queries.axes)
    inputs = summed(((1, found["recompute"]), (1, found["backward"]), (-1, W)))
    return dict(found["forward"]), inputs, W


def _of_plan(plan: Plan) -> Of:
    """What divides the FLOPs of a matmul: the axes of all its dimensions."""
    axes = {axis for x in (plan.a, plan.b) for axis in x.axes}
    dims = {*plan.a.dims, *plan.b.dims}
    batch = next((dim for dim in ("slots", "B") if dim in dims), "")
    return tuple(sorted(axes)), batch


def _flops(plan: Plan) -> float:
    """Of all chips: two for every product."""
    sizes = dict(zip(plan.a.dims, plan.a.sizes, strict=True))
    sizes |= dict(zip(plan.b.dims, plan.b.sizes, strict=True))
    return 2 * prod(sizes.values())


def _traffic(step: Step) -> dict[Wire, Traffic]:
    """The moves of a step by operation and axes.

    How often: "M" for every microbatch, "n" for every hop round a ring, or both.
    """
    found: dict[Wire, Traffic] = defaultdict(Traffic)
    for move in step.moves:
        change = move.change
        hop = isinstance(change, Hop)
        wire = change.op, change.axes, way(change.closed, change.back) if hop else ""
        often = "M" * step.repeats(move)
        times = move.times
        if hop and change.axes == step.strategy.ring:
            often += "n"
            times /= change.before.ways(change.axes) - 1
        total = change.before.nbytes
        axes, batch = of(change.before)
        if change.op in ("all_gather", "all_to_all"):  # V is what the group holds
            axes = _less(axes, change.axes)
        found[wire].nbytes[(axes, batch), often] += times * total
        found[wire].runs[often] += times
    return dict(found)


def _copied(step: Step) -> Traffic:
    """The gradients of all matrices, where the state is."""
    found = Traffic()
    for count, weight in step.weights:
        gradient = step.lines.swap(weight).before
        found.nbytes[of(gradient), ""] += count * gradient.nbytes
        found.runs[""] += count
    return found


def way(closed: bool, back: bool) -> str:
    """How a hop goes: round a ring or along a line, and in which direction."""
    return ("ring" if closed else "line") + " back" * back


def _less(axes: Names, gathered: Names) -> Names:
    """`axes` without those gathered over, which must be among them."""
    left = list(axes)
    for axis in gathered:
        left.remove(axis)
    return tuple(left)


def _limits(arrays: Iterable[ShardedArray]) -> Iterable[tuple[str, int, Names]]:
    for x in {(x.dims, x.sizes, x.placed) for x in arrays}:
        for dim, size, axes in zip(*x, strict=True):
            if axes:
                yield dim, size, tuple(sorted(axes))


def summed(parts: Iterable[tuple[float, Amounts]]) -> dict[Of, float]:
    """The sum of amounts, each so many times."""
    found = _zeros()
    for times, amounts in parts:
        for key, amount in amounts.items():
            found[key] += times * amount
    return dict(found)


def worth(amounts: Amounts, ways: Callable[[Names], int], batch: Mapping) -> float:
    """An amount on a mesh: of one chip, and of one microbatch where the batch divides.

    Args:
        amounts: what to add up.
        ways: into how many parts mesh axes split something.
        batch: the share of one microbatch, by "", "B" and "slots".
    """
    total = 0.0
    for (axes, kind), amount in amounts.items():
        total += amount / ways(axes) * batch[kind]
    return total
