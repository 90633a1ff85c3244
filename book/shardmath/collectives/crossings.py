"""Who crosses which link: bytes from chip to chip, counted on the links of a group.

For traffic that is no even collective (a permute, a ragged AllToAll) there is no closed
form, so the links are counted. Every byte takes a shortest way; where both ways round a
ring are equally long, half goes each way. Two counts come back, in seconds for a byte:

    lower   in each dimension, what crosses between two neighbouring places (or leaves
            one unit of a switch), shared by all links that run side by side there.
            No order of dimensions does better.
    steps   dimension by dimension, the last first, one hop a step: the latency and the
            busiest link of each, as `simulator` plays it.
"""

import math
from collections import defaultdict
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from ..networks.wiring import Ring, Switch

Wires = tuple[Ring | Switch, ...]
Pairs = tuple[tuple[int, int], ...]


class Crossings(NamedTuple):
    """Level and seconds of each cut, the longest way, and every step of the schedule.

    `levels` holds (name, seconds for a byte), `steps` (latency, seconds for a byte).
    """

    levels: tuple[tuple[str, float], ...]
    latency: float
    steps: tuple[tuple[float, float], ...]


def stacked(wires: Wires) -> list[bool]:
    """Whether bytes pass each dimension: it has several chips, or a switch on it."""
    return [
        w.size > 1 or any(v.size > 1 for v in _above(wires, dim))
        for dim, w in enumerate(wires)
    ]


@lru_cache(maxsize=256)
def crossings(
    wires: Wires, traffic: tuple[tuple[int, int, float], ...], one_way: bool = False
) -> Crossings:
    """Counts `traffic`, triples (from, to, bytes), over `wires`.

    >>> shift = tuple((chip, (chip + 1) % 4, 1.0) for chip in range(4))
    >>> crossings((Ring(4, 50e9, 1e-6),), shift)
    Crossings(levels=(('ICI', 2e-11),), latency=1e-06, steps=((1e-06, 2e-11),))
    """
    places = list(product(*(range(w.size) for w in wires)))
    total = len(places)
    cuts: dict = defaultdict(float)  # bytes by dimension and what they cross
    loads: dict = defaultdict(lambda: defaultdict(float))  # by dimension and step
    latency = 0.0
    for source, target, nbytes in traffic:
        at, goal, way = list(places[source]), places[target], 0.0
        for dim in reversed(range(len(wires))):
            w = wires[dim]
            if isinstance(w, Switch):
                stack = dim - len(_above(wires, dim))
                if at[dim] != goal[dim] or tuple(at[stack:dim]) != goal[stack:dim]:
                    cuts[dim, 1, tuple(places[source][stack : dim + 1])] += nbytes
                    cuts[dim, -1, tuple(goal[stack : dim + 1])] += nbytes
                if at[dim] != goal[dim]:
                    before = tuple(at)
                    at[dim] = goal[dim]
                    for end, sign in ((before, 1), (tuple(at), -1)):
                        for level, link in way_up(wires, dim, end):
                            loads[dim, 0][level, sign, link] += nbytes
                    way += w.latency
                continue
            turns = _turns(w, at[dim], goal[dim], one_way)
            row = (*at[:dim], -1, *at[dim + 1 :])
            for sign, hops, part in turns:
                for hop in range(hops):
                    place = (at[dim] + sign * hop) % w.size
                    cuts[dim, sign, place] += part * nbytes
                    loads[dim, hop][dim, sign, (place, row)] += part * nbytes
            way += w.latency * max((hops for _, hops, _ in turns), default=0)
            at[dim] = goal[dim]
        latency = max(latency, _direct(wires, places[source], goal, way))
    seconds: dict = defaultdict(float)
    for (dim, _, _), crossed in cuts.items():
        stack = dim - len(_above(wires, dim))
        beside = total // math.prod(w.size for w in wires[stack : dim + 1])
        cut = crossed / (beside * wires[dim].bandwidth)
        seconds[dim] = max(seconds[dim], cut)
    steps = tuple(
        (
            wires[dim].latency,
            max(n / link_bandwidth(wires, level) for (level, *_), n in step.items()),
        )
        for (dim, _), step in loads.items()
    )
    found = tuple((wires[dim].level, s) for dim, s in sorted(seconds.items()))
    return Crossings(found or (("", 0.0),), latency, steps)


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
    """The switches that stand on the switch of `dim`, outermost first."""
    first = dim
    while first and isinstance(wires[first - 1], Switch) and wires[first - 1].uplinks:
        first -= 1
    return wires[first:dim]


def way_up(
    wires: Wires, dim: int, place: tuple[int, ...]
) -> list[tuple[int, tuple[int, ...]]]:
    """(dimension, place) of the links from a chip up to the switch of `dim`.

    The uplink of a switch is called by the place of the first chip that shares it.
    """
    found = [(dim, place)]
    while wires[dim].uplinks:
        dim += 1
        found = [(d, (*p[:dim], 0, *p[dim + 1 :])) for d, p in found] + [(dim, place)]
    return found


def link_bandwidth(wires: Wires, dim: int) -> float:
    """Of one link of `dim`: an uplink holds the shares of all chips under it.

    >>> spine, leaf = Switch(2, 25e9, 4e-6, uplinks=True), Switch(8, 50e9, 3e-6)
    >>> link_bandwidth((spine, leaf), 0), link_bandwidth((spine, leaf), 1)
    (200000000000.0, 50000000000.0)
    """
    w, shared = wires[dim], 1
    while isinstance(wires[dim], Switch) and wires[dim].uplinks:
        dim += 1
        shared *= wires[dim].size
    return w.bandwidth * shared


def _direct(wires: Wires, source: tuple, goal: tuple, way: float) -> float:
    """`way` less the switches of a stack that a direct crossing does not stop at."""
    for dim, w in enumerate(wires):
        differs = source[dim] != goal[dim]
        above = _above(wires, dim)
        before = range(dim - len(above), dim)
        if differs and any(source[d] != goal[d] for d in before):
            way -= w.latency
    return way
