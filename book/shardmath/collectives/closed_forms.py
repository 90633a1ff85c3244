"""Closed forms: seconds of a collective on rings, lines, tori, switches and levels.

The model is alpha-beta: a step takes the latency of one hop plus the bytes of its
busiest link over that link's one-way bandwidth, and a step begins when the one before
has ended. V is the size of the array without the sharding over the n chips, W the
one-way bandwidth of a link, α its latency. Over one dimension of n chips:

    dimension  AllGather, ReduceScatter   AllToAll                      hops (α each)
    ring       V/(2W) · (n−1)/n           V/(2W) · ⌊n²/4⌋/n²            ⌊n/2⌋
    one-way    V/W · (n−1)/n              V/W · (n−1)/(2n)              n−1
    line       V/W · (n−1)/n              V/W · ⌊n²/4⌋/n²  (bound)      n−1
    switch     V/W · (n−1)/n              V/(nW) · (n−1)/n              1

AllReduce is ReduceScatter, then AllGather: twice the bandwidth term and twice the hops;
a switch that reduces does it in V/W and one hop. A permute moves V to the next chip:
V/W and 1 hop, or n−1 hops for the way back along a line.

Several dimensions. Rings and lines that meet in a chip form one level and work at
once; a switch is a level of its own. AllGather on a level adds the rates of its
dimensions up; AllToAll waits for the slowest dimension. Of several levels the slowest
sets the bandwidth term, on V over the chips below it: all levels work at once, on
different parts. Hops always add up.

Which are exact, that is, met by the schedules of `schedules` step by step:

    AllGather, ReduceScatter, AllReduce   every ring, line, switch, whatever n;
                                          several rings or lines if they are equal
    AllToAll                              every ring and switch; several equal rings
    Permute                               every ring and switch
    all else                              a lower bound: AllToAll on a line (played in
                                          n−1 steps up to 2 times that), unequal axes of
                                          a torus, several levels, permutes on a line
"""

import math
from itertools import groupby
from typing import NamedTuple

from ..networks.wiring import Ring, Switch

Wires = tuple[Ring | Switch, ...]


class Times(NamedTuple):
    """Seconds of both terms, the level that sets the first, and whether it is met."""

    bandwidth_seconds: float
    latency_seconds: float
    level: str
    exact: bool


def times(op: str, nbytes: float, wires: Wires, one_way: bool = False) -> Times:
    """Both terms of `op` on `nbytes` over `wires`, as the head of this module has them.

    Args:
        op: "all_gather", "reduce_scatter", "all_reduce", "all_to_all" or "permute".
        nbytes: V, as in `Collective`.
        wires: the dimensions of the group, slowest-varying first.
        one_way: use one direction of every ring only.

    >>> times("all_gather", 8e6, (Ring(8, 50e9, 1e-6),))[:2]
    (7e-05, 4e-06)
    """
    wires = tuple(w for w in wires if w.size > 1)
    if not wires:
        return Times(0.0, 0.0, "", True)
    below = math.prod(w.size for w in wires)
    share, slowest = nbytes / below, (0.0, "")
    for level in levels(wires):
        below //= math.prod(w.size for w in level)
        seconds = _level_seconds(op, nbytes, share, below, level, one_way)
        slowest = max(slowest, (seconds, level[0].level), key=lambda found: found[0])
    latency = sum(w.latency * hops(op, w, one_way) for w in wires)
    return Times(slowest[0], latency, slowest[1], _exact(op, wires))


def levels(wires: Wires) -> list[Wires]:
    """`wires` cut into levels: neighbouring rings and lines together, switches alone.

    >>> ici, dcn = Ring(4, 1, 0), Switch(2, 1, 0)
    >>> [len(level) for level in levels((dcn, dcn, ici, ici))]
    [1, 1, 2]
    """
    ring = {i: -1 if isinstance(w, Ring) else i for i, w in enumerate(wires)}
    groups = groupby(range(len(wires)), key=ring.get)
    return [tuple(wires[i] for i in group) for _, group in groups]


def hops(op: str, w: Ring | Switch, one_way: bool = False) -> int:
    """Steps that `op` takes along one dimension."""
    if op == "permute":
        return 1 if isinstance(w, Switch) or w.wrap else w.diameter
    once = w.size - 1 if one_way and isinstance(w, Ring) else w.diameter
    return 2 * once if op == "all_reduce" and not _reduces(w) else once


def _level_seconds(op, nbytes, share, below, level, one_way):
    """Seconds that the busiest link of one level works; `share` is V/n."""
    if op == "permute":
        return max(nbytes / w.bandwidth for w in level)
    if op == "all_to_all":
        return max(share * _distance(w, one_way) / _rate(w, one_way) for w in level)
    moved = nbytes / below
    if op == "all_reduce" and _reduces(level[0]):
        return moved / level[0].bandwidth
    size = math.prod(w.size for w in level)
    once = moved * (size - 1) / size / sum(_rate(w, one_way) for w in level)
    return 2 * once if op == "all_reduce" else once


def _rate(w: Ring | Switch, one_way: bool) -> float:
    return w.bandwidth if one_way else w.egress


def _distance(w: Ring | Switch, one_way: bool) -> float:
    """Hops that a byte of an AllToAll travels on the mean, itself included.

    On a line the busiest link counts, the middle one: ⌊n²/4⌋ of n² parts cross it.
    """
    n = w.size
    if isinstance(w, Switch):
        return (n - 1) / n
    return (n - 1) / 2 if one_way and w.wrap else (n * n // 4) / n


def _reduces(w: Ring | Switch) -> bool:
    return isinstance(w, Switch) and w.reduces


def _exact(op: str, wires: Wires) -> bool:
    """Whether the schedules meet the closed form (the table at the head)."""
    first = wires[0]
    straight = isinstance(first, Ring) and not first.wrap and first.size > 2
    if op in ("all_to_all", "permute") and straight:
        return False
    several = isinstance(first, Ring) and op != "permute" and len(set(wires)) == 1
    return len(wires) == 1 or several
