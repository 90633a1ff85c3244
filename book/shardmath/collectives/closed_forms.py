"""Closed forms: seconds of a collective on rings, lines, tori, switches and levels.

In this alpha-beta model, a step takes the latency of one hop plus the bytes of its
busiest link divided by that link's one-way bandwidth, and begins when the previous step
has ended. V is the size of the array without the sharding over the n chips, W the
one-way bandwidth of a link, and α its expected latency. No lower bound contains α,
because a kernel may be quicker than expected. Over one dimension of n chips:

    dimension  AllGather, ReduceScatter   AllToAll                      hops (α each)
    ring       V/(2W) · (n−1)/n           V/(2W) · ⌊n²/4⌋/n²            ⌊n/2⌋
    one-way    V/W · (n−1)/n              V/W · (n−1)/(2n)              n−1
    line       V/W · (n−1)/n              V/W · ⌊n²/4⌋/n²  (bound)      n−1
    switch     V/W · (n−1)/n              V/(nW) · (n−1)/n              1

In an AllReduce every chip must receive V bytes, and all chips together send 2V(n−1).
On a ring and on a switch, a ReduceScatter and then an AllGather send no more than that,
so the AllReduce takes as long as the two together, with the hops of both. On a line an
AllReduce takes V/W, see below. A switch that adds takes V/W and one hop. A permute
loads the links that its pairs cross, see `link_load`.

With several dimensions, rings and lines that meet in a chip form one level and work at
the same time: in an AllGather their rates add up, and an AllToAll waits for the
slowest. Each switch is a separate level. The bytes that cross a level enter and leave
the units below it: in an AllGather, a unit of g of the n chips receives V·(1 − g/n),
over the links of its g chips. Where a switch joins other switches (`Switch.uplinks`),
the bytes of the spine also pass the leaves, so a leaf counts all n/g units of the whole
stack.

    lower   the time of the bytes: all levels work at once, on different parts, and
            the slowest sets the time, which is that of a cut around its units. A byte
            enters each unit only once; `Priced` describes what could be quicker.
    upper   the time of one dimension after the other, each with its latency. On
            switches `simulator` plays exactly this; on a torus with unequal sides its
            schedule takes a time between the bounds.

If `exact` is true, a schedule is known that takes `lower` plus the latency:

    AllGather, ReduceScatter   every ring, line and switch; several rings or lines if
                               they are equal
    AllReduce                  every ring and switch; several equal rings
    AllToAll                   every ring and switch; several equal rings
    Permute                    shifts by one on a ring; every switch

An AllReduce on an open line of n > 2 chips can come arbitrarily close to V/W: partial
sums travel to one end in small pieces, and finished pieces return in the other
direction of the links while later ones are still on their way (`simulator.simulate`,
`pieces`). A ReduceScatter and an AllGather would take 2V/W·(n−1)/n, which is `upper`.

An AllReduce of few bytes has a schedule with half the hops and more bytes: in a
one-shot AllReduce each chip sends its whole array to all others, and adds all that it
receives. It sends as much as an AllGather of n·V bytes, and we expect it to be as fast
as the form above if

    ring    V = W·α · 2n·⌊n/2⌋ / ((n−1)(n−2))
    switch  V = W·α · n / ((n−1)(n−2))              one that does not add

Two chips send equally many bytes in both schedules, so one-shot is faster for any V.
"""

import math
from collections.abc import Iterator
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

from ..hardware.networks.wiring import Ring, Switch
from .link_load import Pairs, Wires, cuts, stacked, steps


class CollectiveTimes(NamedTuple):
    """The lower bound, the latency to add, the slowest level, and the upper bound.

    `exact` is true if `upper` has the same bandwidth term and the same latency.
    """

    bandwidth_seconds: float
    latency_seconds: float
    level: str
    upper: float
    exact: bool


def times(
    op: str, nbytes: float, wires: Wires, one_way: bool = False, pairs: Pairs = ()
) -> CollectiveTimes:
    """The bounds of `op` on `nbytes` over `wires`, derived at the top of this module.

    Args:
        op: "all_gather", "reduce_scatter", "all_reduce", "all_to_all" or "permute".
        nbytes: V, as in `Collective`.
        wires: the dimensions of the group, slowest-varying first.
        one_way: use only one direction of every ring.
        pairs: (from, to) of a permute; by default a shift to the next chip.

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
    """How long each level is busy: (its places in `wires`, seconds of its cut).

    The longest time is the bandwidth term of `times`; a level that no byte crosses is
    left out. Collectives that share one level may still overlap on other levels.

    Args:
        op, nbytes, wires: as for `times`, except that `op` is not "permute".

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
    """The bounds of sends (from, to, parts of `nbytes`) that all start at once."""
    pairs, parts = [flow[:2] for flow in traffic], [flow[2] for flow in traffic]
    found, played = cuts(wires, pairs, parts, one_way), steps(wires, traffic, one_way)
    level, seconds = max(found.levels, key=lambda level: level[1])
    one_by_one = (
        nbytes * sum(busiest for _, busiest in played),
        sum(latency for latency, _ in played),
    )
    return _bounds(nbytes * seconds, found.latency, level, *one_by_one)


def least(wires: Wires, pairs: Pairs) -> tuple[float, float]:
    """Lower bound and latency of a permute of one byte, as in `times`.

    >>> least((Ring(4, 50e9, 1e-6),), ((0, 1), (1, 0)))
    (2e-11, 1e-06)
    """
    wires = tuple(w for w, on in zip(wires, stacked(wires), strict=True) if on)
    found = cuts(wires, pairs)
    return max(seconds for _, seconds in found.levels), found.latency


def _bounds(
    bandwidth: float, latency: float, level: str, alone: float, hops: float
) -> CollectiveTimes:
    """The bounds; `alone` and `hops` are both terms if levels work in turn."""
    exact = math.isclose(bandwidth, alone) and math.isclose(latency, hops)
    return CollectiveTimes(bandwidth, latency, level, alone + hops, exact)


def levels(wires: Wires) -> list[Wires]:
    """The levels of `wires`: each run of rings and lines is one, and so is each switch.

    >>> ici, dcn = Ring(4, 1, 0), Switch(2, 1, 0)
    >>> [len(level) for level in levels((dcn, dcn, ici, ici))]
    [1, 1, 2]
    """
    ring = {i: -1 if isinstance(w, Ring) else i for i, w in enumerate(wires)}
    groups = groupby(range(len(wires)), key=ring.get)
    return [tuple(wires[i] for i in group) for _, group in groups]


class _Level(NamedTuple):
    """Both terms of one level: at the same time as all others, and in turn."""

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
        above *= size  # units of the stack, which share the bytes that cross here
        adds = adds or (_adds(first) and size > 1)
        cut = _cut(op, nbytes, n, below, above, level, one_way, adds)
        once = sum(w.latency * hops(w, one_way) for w in level)
        # In a stack only the longest crossing counts: it passes all switches below.
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
    """Seconds for which the links around the units of one level are busy."""
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
    """Seconds of the bytes in one pass over only the first level of `wires`."""
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
    """The rate of the slowest link that bytes of the first level pass, per chip."""
    rate = math.inf
    for w in wires:
        rate = min(rate, w.bandwidth)
        if not (isinstance(w, Switch) and w.uplinks):
            break
    return rate


def _rate(w: Ring | Switch, one_way: bool) -> float:
    return w.bandwidth if one_way else w.egress


def _mean(w: Ring, one_way: bool) -> float:
    """Mean bytes/s that a chip sends; chips inside a line have two links."""
    if w.wrap or w.size == 1:
        return _rate(w, one_way)
    return 2 * w.bandwidth * (w.size - 1) / w.size


def _mean_hops(w: Ring, one_way: bool) -> float:
    """Mean hops of a byte of an AllToAll, including bytes that stay on their chip.

    On a line the middle link is the busiest: ⌊n²/4⌋ of n² parts cross it.
    """
    n = w.size
    return (n - 1) / 2 if one_way and w.wrap else (n * n // 4) / n


def _played_hops(w: Ring, one_way: bool) -> float:
    """The same if all blocks start at once: on a line, the ends limit the rate."""
    return _mean_hops(w, one_way) if w.wrap else (w.size - 1) / 2


def _adds(w: Ring | Switch) -> bool:
    return isinstance(w, Switch) and w.reduces
