"""Closed forms: seconds of a collective on rings, lines, tori, switches and levels.

The model is alpha-beta: a step takes the latency of one hop plus the bytes of its
busiest link over that link's one-way bandwidth, and a step begins when the one before
has ended. V is the size of the array without the sharding over the n chips, W the
one-way bandwidth of a link, α the latency that we expect of it. No lower bound contains
α, because a kernel may be quicker than what we expect. Over one dimension of n chips:

    dimension  AllGather, ReduceScatter   AllToAll                      hops (α each)
    ring       V/(2W) · (n−1)/n           V/(2W) · ⌊n²/4⌋/n²            ⌊n/2⌋
    one-way    V/W · (n−1)/n              V/W · (n−1)/(2n)              n−1
    line       V/W · (n−1)/n              V/W · ⌊n²/4⌋/n²  (bound)      n−1
    switch     V/W · (n−1)/n              V/(nW) · (n−1)/n              1

An AllReduce makes every chip take in V bytes and all chips together send 2V(n−1). On a
ring and on a switch a ReduceScatter and then an AllGather send no more than that, so
the AllReduce takes twice their time and hops. On a line it takes V/W, see below, and a
switch that adds does it in V/W and one hop. A permute loads the links that its pairs
cross, see `crossings`.

Several dimensions. Rings and lines that meet in a chip form one level and work at
once: AllGather adds their rates up, AllToAll waits for the slowest. Each switch is a
level. What crosses a level is what leaves the unit below it: of V, a unit of g of the n
chips takes in V·(1 − g/n) in an AllGather, over the links of its g chips. Where
switches stand on switches (`Switch.uplinks`), the bytes of the spine come through the
leaf, so a unit of the leaf is one of all n/g.

    lower   the bytes alone: all levels work at once, on different parts, and the
            slowest sets the time, which is that of a cut around its units. A byte
            enters each unit once: see `Priced` for what else could be quicker.
    upper   one dimension after the other, with the latency of each: the sum. On
            switches `simulator` plays just that; over unequal sides of a torus its
            schedule lies between the bounds.

Where `exact` is true, a schedule is known that takes `lower` and its latency:

    AllGather, ReduceScatter   every ring, line, switch, whatever n; several rings or
                               lines if they are equal
    AllReduce                  every ring and switch; several equal rings
    AllToAll                   every ring and switch; several equal rings
    Permute                    shifts by one on a ring; every switch

An AllReduce on an open line of n > 2 chips comes as close to V/W as one likes: the sums
run to one end in small pieces, and finished pieces return on the other direction of the
links while later ones are still on their way (`simulator.simulate`, `pieces`). A
ReduceScatter and an AllGather would take 2V/W·(n−1)/n, which is `upper`.

An AllReduce of few bytes has a schedule of half the hops and more bytes: in a one-shot
AllReduce each chip sends its whole array to all others, and each adds. That is an
AllGather of n·V bytes, which we expect to be as fast as the form above at

    ring    V = W·α · 2n·⌊n/2⌋ / ((n−1)(n−2))
    switch  V = W·α · n / ((n−1)(n−2))              one that does not add

Two chips send equally many bytes either way, and are better off with it at any V.
"""

import math
from collections.abc import Iterator
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

from ..hardware.networks.wiring import Ring, Switch
from .link_load import Pairs, Wires, cuts, stacked, steps


class CollectiveTimes(NamedTuple):
    """The lower bound, the latency expected with it, its level, the upper bound.

    `exact` says whether bytes and latency of both bounds are equal.
    """

    bandwidth_seconds: float
    latency_seconds: float
    level: str
    upper: float
    exact: bool


def times(
    op: str, nbytes: float, wires: Wires, one_way: bool = False, pairs: Pairs = ()
) -> CollectiveTimes:
    """The bounds of `op` on `nbytes` over `wires`, as the head of this module has them.

    Args:
        op: "all_gather", "reduce_scatter", "all_reduce", "all_to_all" or "permute".
        nbytes: V, as in `Collective`.
        wires: the dimensions of the group, slowest-varying first.
        one_way: use one direction of every ring only.
        pairs: (from, to) of a permute; a shift to the next chip if not given.

    >>> times("all_gather", 8e6, (Ring(8, 50e9, 1e-6),))[:2]
    (7e-05, 4e-06)
    """
    wires = tuple(w for w, on in zip(wires, stacked(wires), strict=True) if on)
    if not wires:
        return CollectiveTimes(0.0, 0.0, "", 0.0, True)
    if op == "permute":
        n = math.prod(w.size for w in wires)
        pairs = pairs or tuple((chip, (chip + 1) % n) for chip in range(n))
        return routed(wires, tuple((*pair, 1.0) for pair in pairs), one_way, nbytes)
    found = list(_by_level(op, nbytes, wires, one_way))
    slowest = max(found, key=lambda level: level.lower)
    latency = sum(level.latency for level in found)
    one_by_one = sum(level.alone for level in found), sum(level.hops for level in found)
    return _bounds(slowest.lower, latency, slowest.name, *one_by_one)


def loads(op: str, nbytes: float, wires: Wires) -> list[tuple[tuple[int, ...], float]]:
    """How long each level is at work: its places in `wires`, and seconds of its cut.

    The longest is the bandwidth term of `times`; a level that no byte crosses is left
    out. Collectives that share one level may still work beside each other elsewhere.

    Args:
        op, nbytes, wires: as for `times`, but for permutes.

    >>> node, card = Switch(8, 450e9, 0), Switch(4, 50e9, 0)
    >>> loads("all_gather", 9e9, (card, node))
    [((0,), 0.016875), ((1,), 0.0175)]
    """
    places = [dim for dim, on in enumerate(stacked(wires)) if on]
    found = _by_level(op, nbytes, tuple(wires[dim] for dim in places), False)
    counts = [len(level) for level in levels(tuple(wires[dim] for dim in places))]
    ends = list(accumulate(counts, initial=0))
    return [
        (tuple(places[start:end]), level.lower)
        for (start, end), level in zip(pairwise(ends), found, strict=True)
    ]


def routed(
    wires: Wires,
    traffic: tuple[tuple[int, int, float], ...],
    one_way: bool = False,
    nbytes: float = 1.0,
) -> CollectiveTimes:
    """The bounds of (from, to, parts of `nbytes`) that all set off at the same time."""
    pairs, parts = [flow[:2] for flow in traffic], [flow[2] for flow in traffic]
    found, played = cuts(wires, pairs, parts, one_way), steps(wires, traffic, one_way)
    level, seconds = max(found.levels, key=lambda level: level[1])
    one_by_one = (
        nbytes * sum(busiest for _, busiest in played),
        sum(latency for latency, _ in played),
    )
    return _bounds(nbytes * seconds, found.latency, level, *one_by_one)


def least(wires: Wires, pairs: Pairs) -> tuple[float, float]:
    """Bound and latency of a permute of one byte: what `times` says, no upper bound.

    >>> least((Ring(4, 50e9, 1e-6),), ((0, 1), (1, 0)))
    (2e-11, 1e-06)
    """
    wires = tuple(w for w, on in zip(wires, stacked(wires), strict=True) if on)
    found = cuts(wires, pairs)
    return max(seconds for _, seconds in found.levels), found.latency


def _bounds(
    bandwidth: float, latency: float, level: str, alone: float, hops: float
) -> CollectiveTimes:
    """`alone` and `hops` are both terms where one level follows the other."""
    exact = math.isclose(bandwidth, alone) and math.isclose(latency, hops)
    return CollectiveTimes(bandwidth, latency, level, alone + hops, exact)


def levels(wires: Wires) -> list[Wires]:
    """`wires` cut into levels: neighbouring rings and lines together, switches alone.

    >>> ici, dcn = Ring(4, 1, 0), Switch(2, 1, 0)
    >>> [len(level) for level in levels((dcn, dcn, ici, ici))]
    [1, 1, 2]
    """
    ring = {i: -1 if isinstance(w, Ring) else i for i, w in enumerate(wires)}
    groups = groupby(range(len(wires)), key=ring.get)
    return [tuple(wires[i] for i in group) for _, group in groups]


class _Level(NamedTuple):
    """Both terms of one level: with all others at once, and in a turn of its own."""

    name: str
    lower: float
    latency: float
    alone: float
    hops: float


def _by_level(op: str, nbytes: float, wires: Wires, one_way: bool) -> Iterator[_Level]:
    """The bounds of each level, outermost first."""
    n = below = math.prod(w.size for w in wires)
    above, late, adds, dim = 1, 0.0, False, 0
    passes = 2 if op == "all_reduce" else 1
    for level in levels(wires):
        first, size = level[0], math.prod(w.size for w in level)
        below //= size
        above *= size  # units of the stack, which share out what crosses here
        adds = adds or (_adds(first) and size > 1)
        cut = _cut(op, nbytes, n, below, above, level, one_way, adds)
        once = sum(w.latency * hops(w, one_way) for w in level)
        # Of a stack one crossing counts, the longest: it passes all switches below.
        latency = once * (1 if adds else passes)
        alone = passes * _phase(op, nbytes, n, below, wires[dim:], one_way)
        turns = passes * once
        if op == "all_reduce" and dim == 0 and _adds(first):
            alone, turns = nbytes / below / _path(wires), once
        yield _Level(first.level, cut, max(latency - late, 0.0), alone, turns)
        dim, late = dim + len(level), max(late, latency)
        if not (isinstance(first, Switch) and first.uplinks):
            above, late, adds = 1, 0.0, False


def hops(w: Ring | Switch, one_way: bool = False) -> int:
    """Steps that a block takes along one dimension to the chip farthest away."""
    return w.size - 1 if one_way and isinstance(w, Ring) else w.diameter


def _cut(op, nbytes, n, below, units, level, one_way, adds) -> float:
    """Seconds that the links around the units of one level work."""
    if isinstance(level[0], Switch):
        share = (units - 1) / units / level[0].bandwidth
        if op == "all_to_all":
            return nbytes / n * share
        if op == "all_reduce":
            return nbytes / below * (1 / level[0].bandwidth if adds else 2 * share)
        return nbytes / below * share
    if op == "all_to_all":
        return max(
            nbytes / n * _mean_hops(w, one_way) / _rate(w, one_way) for w in level
        )
    size = math.prod(w.size for w in level)
    ends = sum(_rate(w, one_way) for w in level)  # of the chip with the fewest links
    once = nbytes / below * (size - 1) / size
    if op != "all_reduce":
        return once / ends
    return max(2 * once / sum(_mean(w, one_way) for w in level), nbytes / below / ends)


def _phase(op, nbytes, n, below, wires, one_way) -> float:
    """Seconds of the bytes of one pass over the first level of `wires`, alone."""
    level = levels(wires)[0]
    if isinstance(level[0], Switch):
        parts = n if op == "all_to_all" else below
        return nbytes / parts * (level[0].size - 1) / level[0].size / _path(wires)
    equal, total = len(set(level)) == 1, 0.0
    inside = below * math.prod(w.size for w in level)
    for w in level:
        inside //= w.size
        rate = _rate(w, one_way) * (len(level) if equal else 1)  # all busy at once
        if op == "all_to_all":
            total += nbytes / n * _played_hops(w, one_way) / rate
        else:
            total += nbytes / inside * (w.size - 1) / w.size / rate
    return total


def _path(wires: Wires) -> float:
    """The thinnest link that bytes of the first level pass, share of one chip."""
    rate = math.inf
    for w in wires:
        rate = min(rate, w.bandwidth)
        if not (isinstance(w, Switch) and w.uplinks):
            break
    return rate


def _rate(w: Ring | Switch, one_way: bool) -> float:
    return w.bandwidth if one_way else w.egress


def _mean(w: Ring, one_way: bool) -> float:
    """Bytes/s that a chip sends on the mean: those inside a line have two links."""
    if w.wrap or w.size == 1:
        return _rate(w, one_way)
    return 2 * w.bandwidth * (w.size - 1) / w.size


def _mean_hops(w: Ring, one_way: bool) -> float:
    """Hops that a byte of an AllToAll travels on the mean, itself included.

    On a line the busiest link counts, the middle one: ⌊n²/4⌋ of n² parts cross it.
    """
    n = w.size
    return (n - 1) / 2 if one_way and w.wrap else (n * n // 4) / n


def _played_hops(w: Ring, one_way: bool) -> float:
    """The same where every block sets off at once: on a line the ends set the pace."""
    return _mean_hops(w, one_way) if w.wrap else (w.size - 1) / 2


def _adds(w: Ring | Switch) -> bool:
    return isinstance(w, Switch) and w.reduces
