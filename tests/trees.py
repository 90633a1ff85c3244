"""Random trees of switches, and how much their graph lets through."""

import math
from collections import defaultdict, deque

from hypothesis import assume
from hypothesis import strategies as st

from shardmath.hardware.networks import Network, Ring, Switch

RATES = st.sampled_from([1.0, 2.0, 3.0, 10.0])


@st.composite
def trees(draw, most=32, latency=0.0, adds=None):
    """One to three levels of switches on switches, over nodes, rings or chips alone."""
    adds = st.just(False) if adds is None else adds
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    later = [latency * (len(sizes) - n) for n in range(len(sizes))]
    dims = [
        Switch(
            size,
            draw(RATES),
            later[n],
            draw(adds),
            f"level {n}",
            uplinks=n < len(sizes) - 1,
        )
        for n, size in enumerate(sizes)
    ]
    inside = draw(st.sampled_from(["chips", "node", "ring"]))
    size, rate = draw(st.integers(1, 4)), draw(RATES)
    if inside == "node":
        dims.append(Switch(size, rate, latency, draw(adds), "node"))
    if inside == "ring":
        dims.append(Ring(size, rate, latency, wrap=size > 2))
    assume(math.prod(dim.size for dim in dims) <= most)
    return Network(tuple(dims))


def let_through(network, inside):
    """Bytes/s from the chips `inside` to all others: the maximum flow of the graph."""
    left = defaultdict(lambda: defaultdict(float))
    for a, b, rate, _ in network.links():
        left[a][b] += rate
    for chip in range(network.chips):
        if chip in inside:
            left["from"][chip] = math.inf
        else:
            left[chip]["to"] = math.inf
    flow = 0.0
    while True:
        came, queue = {"from": None}, deque(["from"])
        while queue and "to" not in came:
            at = queue.popleft()
            for there, rate in left[at].items():
                if rate > 1e-9 and there not in came:
                    came[there] = at
                    queue.append(there)
        if "to" not in came:
            return flow
        way, at = [], "to"
        while came[at] is not None:
            way.append((came[at], at))
            at = came[at]
        rate = min(left[a][b] for a, b in way)
        flow += rate
        for a, b in way:
            left[a][b] -= rate
            left[b][a] += rate
