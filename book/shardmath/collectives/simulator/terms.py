"""The blocks on each chip, and the chips whose terms they contain, without the data.

A block is named as in `payload`. For each half of it, we keep the set of the chips
whose numbers it contains: one chip for a gathered block, all chips for a finished sum.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from .trace import Trace

SUMS = ("reduce_scatter", "all_reduce")
Halves = tuple[frozenset[int], ...]  # the chips whose terms are in each half
HeldTerms = dict[int, Halves]  # by block name


@dataclass(frozen=True)
class Parcel:
    """The part of one block that crosses one link in one step."""

    source: int
    target: int
    name: int
    halves: Halves


def held(trace: Trace, step: int) -> tuple[HeldTerms, ...]:
    """The blocks on each chip after `step` steps; 0 is the start.

    >>> from shardmath.hardware.mesh import Mesh
    >>> from shardmath.hardware.networks import Network, Ring
    >>> from shardmath.collectives.simulator import simulate
    >>> mesh = Mesh(Network((Ring(3, 50e9, 1e-6),)), {"X": 3})
    >>> one = held(simulate("all_gather", 3e6, mesh, "X"), 0)[1]
    >>> {name: [sorted(chips) for chips in halves] for name, halves in one.items()}
    {1: [[1]]}
    """
    return tuple(_joined(trace, chip) for chip in _marked(trace).state(step))


def parcels(trace: Trace, step: int) -> tuple[Parcel, ...]:
    """The parts of blocks that move in `step`; steps are counted from 1."""
    before = _marked(trace).state(step - 1)
    sent = {}
    for move in trace.steps[step - 1].moves:
        (source,), (target,) = move.sources, move.targets
        for block in move.blocks:
            way = source, target, block.name
            sent.setdefault(way, {})[block] = before[source][block]
    return tuple(
        Parcel(*way, _joined(trace, blocks)[way[2]]) for way, blocks in sent.items()
    )


def complete(trace: Trace, halves: Halves) -> bool:
    """Whether every half contains all its terms."""
    terms = trace.group.size if trace.priced.collective.op in SUMS else 1
    return all(len(half) == terms for half in halves)


def finished(trace: Trace, step: int) -> int:
    """Complete blocks on the chip that has the fewest, after `step`.

    In an AllToAll, only its final blocks count.
    """
    n, everywhere = trace.group.size, trace.priced.collective.op != "all_to_all"
    return min(
        sum(
            complete(trace, halves)
            for name, halves in blocks.items()
            if everywhere or name % n == chip
        )
        for chip, blocks in enumerate(held(trace, step))
    )


def fullest(trace: Trace, step: int) -> int:
    """The largest number of terms in any sum after `step`."""
    return max(
        len(half)
        for blocks in held(trace, step)
        for halves in blocks.values()
        for half in halves
    )


def carried(trace: Trace, step: int) -> Fraction:
    """The number of blocks on the busiest link in `step`."""
    links = {}
    for parcel in parcels(trace, step):
        link = parcel.source, parcel.target
        halves = sum(map(bool, parcel.halves))
        links[link] = links.get(link, 0) + Fraction(halves, trace.group.halves)
    return max(links.values())


def _marked(trace: Trace) -> Trace:
    """The trace with sets instead of data: the term of chip c is bit c of a number.

    No term is ever added twice, so a sum of bits is their union.
    """
    start = [
        dict.fromkeys(blocks, 1 << chip) for chip, blocks in enumerate(trace.start)
    ]
    return replace(trace, start=start)


def _joined(trace: Trace, blocks: dict) -> HeldTerms:
    """Blocks by name, each half with the chips that its bits stand for."""
    found = {}
    for block, bits in blocks.items():
        halves = found.setdefault(block.name, [frozenset()] * trace.group.halves)
        halves[block.half] = frozenset(
            chip for chip in range(trace.group.size) if bits >> chip & 1
        )
    return {name: tuple(found[name]) for name in sorted(found)}
