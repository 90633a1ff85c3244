"""The load of each link: bytes from chip to chip, counted on the links of a group.

Uneven traffic (a permute, a ragged AllToAll) has no closed form, so we count the bytes
on each link. Every byte takes a shortest path; if both ways round a ring are equally
long, half of the bytes go each way. There are two counts, in seconds per byte:

    lower   for each dimension, the bytes that cross between two neighbouring places
            (or leave one unit of a switch), shared by all parallel links there. No
            order of the dimensions can be faster.
    steps   the latency and the busiest link of each step, if bytes move dimension by
            dimension, the last one first, and one hop per step, as in `simulator`.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from operator import add
from typing import NamedTuple

from ..hardware.networks.wiring import Ring, Switch

Wires = tuple[Ring | Switch, ...]
Pairs = tuple[tuple[int, int], ...]
Flows = tuple[tuple[int, int, float], ...]  # (from, to, bytes)
Way = tuple[int, int]  # from one unit of a dimension to another


class Cuts(NamedTuple):
    """(level, seconds per byte) of each dimension's busiest cut, and the latency of the
    longest path."""

    levels: tuple[tuple[str, float], ...]
    latency: float


def stacked(wires: Wires) -> list[bool]:
    """Whether any bytes pass each dimension, also on the way to a higher switch."""
    return [
        w.size > 1 or any(v.size > 1 for v in _above(wires, dim))
        for dim, w in enumerate(wires)
    ]


def cuts(
    wires: Wires,
    pairs: Pairs,
    nbytes: Sequence[float] | None = None,
    one_way: bool = False,
) -> Cuts:
    """The `lower` count of `pairs` over `wires`.

    Args:
        wires: the dimensions of the group, slowest-varying first.
        pairs: (from, to), places of chips in the group.
        nbytes: bytes of each pair; by default 1.
        one_way: use only one direction of every ring.

    >>> shift = tuple((chip, (chip + 1) % 4) for chip in range(4))
    >>> cuts((Ring(4, 50e9, 1e-6),), shift)
    Cuts(levels=(('ICI', 2e-11),), latency=1e-06)
    """
    late, found = [0.0] * len(pairs), {}
    for dim, w in enumerate(wires):
        units, at = _units(wires, dim)
        ways = [(at[source], at[target]) for source, target in pairs]
        between = _summed(ways, nbytes)
        if isinstance(w, Switch):
            crossed, hops = _units_left(w, between)
        else:
            crossed, hops = _planes_crossed(w, between, one_way)
        delay = {way: n * w.latency for way, n in hops.items()}
        late = list(map(add, late, map(delay.get, ways)))
        if crossed:
            found[dim] = crossed / (len(at) // units * w.bandwidth)
    busiest = tuple((wires[dim].level, seconds) for dim, seconds in found.items())
    return Cuts(busiest or (("", 0.0),), max(late, default=0.0))


@lru_cache(maxsize=64)
def _units(wires: Wires, dim: int) -> tuple[int, list[int]]:
    """How many units dimension `dim` joins, and in which of them each chip is.

    A unit of a ring is all chips at one place along it; units of a switch are counted
    over its whole stack.
    """
    stack = dim - len(_above(wires, dim))
    inside, units, chips = (
        math.prod(w.size for w in some)
        for some in (wires[dim + 1 :], wires[stack : dim + 1], wires)
    )
    return units, [chip // inside % units for chip in range(chips)]


def _summed(ways: list[Way], nbytes: Sequence[float] | None) -> Mapping[Way, float]:
    """The bytes from each unit to each other."""
    if nbytes is None:
        return Counter(ways)
    found: dict = defaultdict(float)
    for way, n in zip(ways, nbytes, strict=True):
        found[way] += n
    return found


def _planes_crossed(w: Ring, between: Mapping[Way, float], one_way: bool):
    """For a ring or line: bytes over its busiest plane, and the hops of each way."""
    planes: dict = defaultdict(float)
    far = {}
    for way, nbytes in between.items():
        turns = _turns(w, *way, one_way)
        far[way] = turns[0][1] if turns else 0  # if there are two, both are equal
        for sign, hops, part in turns:
            for hop in range(hops):
                planes[sign, (way[0] + sign * hop) % w.size] += part * nbytes
    return max(planes.values(), default=0.0), far


def _units_left(w: Switch, between: Mapping[Way, float]):
    """For a switch: bytes in or out of its busiest unit, and whether each way stops.

    Bytes that cross a higher switch of the same stack do not stop at this one.
    """
    moved: dict = defaultdict(float)
    stops = {}
    for (here, there), nbytes in between.items():
        stops[here, there] = int(here != there and here // w.size == there // w.size)
        if here != there:
            moved[1, here] += nbytes
            moved[-1, there] += nbytes
    return max(moved.values(), default=0.0), stops


@lru_cache(maxsize=64)
def _places(wires: Wires) -> list[tuple[int, ...]]:
    return list(product(*(range(w.size) for w in wires)))


def steps(
    wires: Wires, traffic: Flows, one_way: bool = False
) -> list[tuple[float, float]]:
    """The `steps` count: (latency, seconds per byte) of every step of the schedule.

    >>> steps((Ring(4, 50e9, 1e-6),), ((0, 2, 1.0),))
    [(1e-06, 1e-11), (1e-06, 1e-11)]
    """
    places = _places(wires)
    loads: dict = defaultdict(lambda: defaultdict(float))  # by dimension and step
    for source, target, nbytes in traffic:
        at, goal = list(places[source]), places[target]
        for dim in reversed(range(len(wires))):
            w, before = wires[dim], tuple(at)
            at[dim] = goal[dim]
            if before[dim] == goal[dim]:
                continue
            if isinstance(w, Switch):
                for end, sign in ((before, 1), (tuple(at), -1)):
                    for level, link in way_up(wires, dim, end):
                        loads[dim, 0][level, sign, link] += nbytes
                continue
            row = (*at[:dim], -1, *at[dim + 1 :])
            for sign, hops, part in _turns(w, before[dim], goal[dim], one_way):
                for hop in range(hops):
                    place = (before[dim] + sign * hop) % w.size
                    loads[dim, hop][dim, sign, (place, row)] += part * nbytes
    return [
        (
            wires[dim].latency,
            max(n / link_bandwidth(wires, level) for (level, *_), n in step.items()),
        )
        for (dim, _), step in loads.items()
    ]


def _turns(w: Ring, here: int, goal: int, one_way: bool) -> list[tuple]:
    """(direction, hops, part of the bytes) of each shortest way along `w`."""
    if here == goal:
        return []
    if not w.wrap:
        return [(1 if goal > here else -1, abs(goal - here), 1.0)]
    ahead = (goal - here) % w.size
    if one_way or ahead < w.size - ahead:
        return [(1, ahead, 1.0)]
    if ahead == w.size - ahead:
        return [(1, ahead, 0.5), (-1, ahead, 0.5)]
    return [(-1, w.size - ahead, 1.0)]


def _above(wires: Wires, dim: int) -> Wires:
    """The switches above the switch of `dim`, outermost first."""
    first = dim
    while first and isinstance(wires[first - 1], Switch) and wires[first - 1].uplinks:
        first -= 1
    return wires[first:dim]


def way_up(
    wires: Wires, dim: int, place: tuple[int, ...]
) -> list[tuple[int, tuple[int, ...]]]:
    """(dimension, place) of the links from a chip up to the switch of `dim`.

    The place of an uplink is that of the first chip that shares it.
    """
    found = [(dim, place)]
    while wires[dim].uplinks:
        dim += 1
        found = [(d, (*p[:dim], 0, *p[dim + 1 :])) for d, p in found] + [(dim, place)]
    return found


def link_bandwidth(wires: Wires, dim: int) -> float:
    """Bytes/s of one link of `dim`; an uplink adds up the shares of all chips below it.

    >>> spine, leaf = Switch(2, 25e9, 4e-6, uplinks=True), Switch(8, 50e9, 3e-6)
    >>> link_bandwidth((spine, leaf), 0), link_bandwidth((spine, leaf), 1)
    (200000000000.0, 50000000000.0)
    """
    w, shared = wires[dim], 1
    while isinstance(wires[dim], Switch) and wires[dim].uplinks:
        dim += 1
        shared *= wires[dim].size
    return w.bandwidth * shared
