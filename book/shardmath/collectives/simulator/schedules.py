"""Schedules: which block goes over which link in which step of a collective.

A schedule is a list of steps, and a step consists of the moves that happen at the same
time. Schedules contain no bytes and no seconds; `playing` adds those.

>>> from shardmath.hardware.networks import Ring
>>> [len(step) for step in all_gather(Group((Ring(3, 50e9, 1e-6),)))]
[6]
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product, zip_longest

from ...hardware.networks.wiring import Switch
from .groups import Chunk, Group


@dataclass(frozen=True)
class Delivery:
    """`blocks` go from the chip `sources` to the chip `targets` along dimension `dim`.

    A switch that reduces takes the blocks from all `sources`, adds them, and sends the
    sum to all `targets`. If `keep` is true, the source still has the blocks afterwards.
    """

    sources: tuple[int, ...]
    targets: tuple[int, ...]
    blocks: tuple[Chunk, ...]
    dim: int
    keep: bool = False


Round = tuple[Delivery, ...]  # what moves at the same time


def all_gather(group: Group) -> list[Round]:
    """AllGather: chip c begins with block c, and every chip ends with all blocks."""
    steps = []
    for phase in range(len(group.wires)):
        by_part = []
        for part in range(group.parts):
            order = group.order(part)
            by_part.append(_spread(group, part, order[phase], order[:phase]))
        steps += _together(by_part)
    return steps


def reduce_scatter(group: Group) -> list[Round]:
    """ReduceScatter: the AllGather run backwards, with sums instead of copies."""
    return [
        tuple(replace(m, sources=m.targets, targets=m.sources, keep=False) for m in s)
        for s in reversed(all_gather(group))
    ]


def all_reduce(group: Group) -> list[Round]:
    """AllReduce: ReduceScatter and AllGather, or one step in a switch that reduces."""
    there, back = reduce_scatter(group), all_gather(group)
    first = group.wires[0] if group.wires else None
    if not (isinstance(first, Switch) and first.reduces):
        return there + back
    rows = {group.alike(chip, (0,)) for chip in range(group.size)}
    switch = [Delivery(row, row, group.blocks(row), 0) for row in sorted(rows)]
    return [*there[:-1], tuple(switch), *back[1:]]


def piped_all_reduce(group: Group) -> list[Round]:
    """AllReduce on a line: sums travel to the last chip, and finished pieces return.

    In step p + c, piece p leaves chip c towards the end of the line. At that end, chip
    n − 1, it is complete after step p + n − 2. In the next step it starts back, in the
    other direction of the links. So K pieces take K + 2(n − 1) − 1 steps.
    """
    n = group.size
    steps = defaultdict(list)
    for p, block in enumerate(group.blocks(range(n))):
        for hop in range(n - 1):
            there, back = (hop, hop + 1), (n - 1 - hop, n - 2 - hop)
            for step, (source, target), keep in (
                (p + hop, there, False),
                (p + n - 1 + hop, back, True),
            ):
                move = Delivery((source,), (target,), (block,), 0, keep)
                steps[step].append(move)
    return [tuple(steps[step]) for step in sorted(steps)]


def all_to_all(group: Group, at_most: int | None = None) -> list[Round]:
    """AllToAll: chip s begins with the blocks (s, d), and chip d ends with them.

    In one step, a link carries at most `at_most` blocks; those with the most hops to go
    are sent first.
    """
    n = group.size
    at = {block: block.name // n for block in group.blocks(range(n * n))}
    steps = []
    for phase in range(len(group.wires)):
        by_part = []
        for part in range(group.parts):
            own = {b: chip for b, chip in at.items() if b.part == part}
            dim = group.order(part)[phase]
            goal = {b: group.places[b.name % n][dim] for b in own}
            by_part.append(_forward(group, dim, own, goal, at_most))
            at.update(own)
        steps += _together(by_part)
    return steps


def permute(group: Group, pairs: tuple[tuple[int, int], ...] = ()) -> list[Round]:
    """Permute: chip a sends its block to b for each of `pairs`, by default to a + 1."""
    n = group.size
    target = dict(pairs or ((c, (c + 1) % n) for c in range(n)))
    at = {block: block.name for block in group.blocks(target)}
    steps = []
    for dim in reversed(range(len(group.wires))):
        goal = {b: group.places[target[b.name]][dim] for b in at}
        steps += _forward(group, dim, at, goal, None)
    return steps


def _spread(group: Group, part: int, dim: int, done: list[int]) -> list[Round]:
    """AllGather of one part along `dim`, on chips that have gathered along `done`."""
    w = group.wires[dim]
    steps = defaultdict(list)
    for chip, half in product(range(group.size), range(group.halves)):
        here = group.places[chip][dim]
        blocks = tuple(Chunk(c, part, half) for c in group.alike(chip, done))
        if isinstance(w, Switch):
            moves = [(0, here, to) for to in range(w.size) if to != here]
        else:
            moves = _outward(group, dim, here, half)
        for step, source, target in moves:
            ends = (group.moved(chip, dim, i) for i in (source, target))
            steps[step].append(
                Delivery(*((end,) for end in ends), blocks, dim, keep=True)
            )
    return [tuple(steps[n]) for n in range(len(steps))]


def _outward(group: Group, dim: int, home: int, half: int) -> Iterable[tuple[int, ...]]:
    """(step, from, to): how the block of `home` reaches all others on a ring or line.

    Every place receives it from its neighbour on the shortest path to `home`, in the
    step whose number is one less than its distance from `home`.
    """
    size = group.wires[dim].size
    for goal in range(size):
        if goal != home:
            first, hops = group.way(dim, home, goal, half)
            yield hops - 1, (goal - (first - home)) % size, goal


def _forward(group: Group, dim: int, at: dict, goal: dict, at_most) -> list[Round]:
    """Steps that take every block along `dim` to its `goal`; updates `at`."""
    steps = []
    waiting = [b for b in at if group.places[at[b]][dim] != goal[b]]
    while waiting:
        queues = defaultdict(list)
        for block in waiting:
            chip = at[block]
            here = group.places[chip][dim]
            to, left = group.way(dim, here, goal[block], block.half)
            queues[chip, group.moved(chip, dim, to)].append((-left, block))
        moves = []
        for (chip, target), queue in queues.items():
            blocks = tuple(block for _, block in sorted(queue)[:at_most])
            moves.append(Delivery((chip,), (target,), blocks, dim))
            at.update(dict.fromkeys(blocks, target))
        steps.append(tuple(moves))
        waiting = [b for b in waiting if group.places[at[b]][dim] != goal[b]]
    return steps


def _together(by_part: list[list[Round]]) -> list[Round]:
    """Steps in which all parts move at once, each along another dimension.

    A part with fewer steps than the longest spreads the blocks of a step over several.
    """
    longest = max(map(len, by_part))
    stretched = (_stretched(steps, longest // (len(steps) or 1)) for steps in by_part)
    return [sum(steps, ()) for steps in zip_longest(*stretched, fillvalue=())]


def _stretched(steps: list[Round], times: int) -> list[Round]:
    return [
        tuple(replace(m, blocks=m.blocks[k::times]) for m in step if m.blocks[k::times])
        for step in steps
        for k in range(times)
    ]


BY_OP = {
    "all_gather": all_gather,
    "reduce_scatter": reduce_scatter,
    "all_reduce": all_reduce,
    "all_to_all": all_to_all,
    "permute": permute,
}
