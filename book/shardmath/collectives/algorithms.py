"""AllReduce on GPUs as NCCL runs it: ring, tree and NVLS, with their steps.

`price` counts the hops of a ReduceScatter and an AllGather that take the shortest ways.
A library's algorithm takes more of them, and more as the group grows. For k nodes of g
GPUs, n = g·k, hops α_g in a node and α_k between nodes:

    algorithm  sent in the node    over each card         hops
    ring       2V·(n−1)/n          2V·(n−1)/n / g         2(n−k)·α_g + 2(k−1)·α_k
    tree       2V  (V for g = 2)   2V/g  (V/g for k = 2)  2(g−1)·α_g + 2⌈log₂ k⌉·α_k
    nvls       V·(g+1)/g           as the tree            α_g + 2⌈log₂ k⌉·α_k

Ring: the blocks pass all GPUs twice, and leave the node by one card for each of its g
rings. Tree: a chain in the node, two trees of half the bytes over the nodes. NVLS: the
switch of the node adds and multicasts; a GPU sends V and, once its part is summed,
V/g of it again, where the wire alone would allow V.

Sources:
    Hops: src/graph/tuning.cc of github.com/NVIDIA/nccl at commit 5067397c, which holds
    2(n−1) steps of a ring of which 2(k−1) cross, 2(g−1) and 2·log₂ k for a tree, 1 and
    2·log₂ k for NVLS with a tree. n + 1 in place of 2n for NVLS: Stas Bekman, Machine
    Learning Engineering, network/README.md at commit 744d01e18b, "SHARP".
"""

import math

from ..mesh import Mesh
from ..networks.wiring import Switch
from .collective import AxisNames, Collective
from .price import Priced, a_mesh

ALGORITHMS = ("ring", "tree", "nvls")


def nccl_all_reduce(
    nbytes: float, mesh: Mesh, axes: AxisNames, algorithm: str
) -> Priced:
    """A[I]{U_X} -> A[I] by the steps of one of NCCL's algorithms.

    Args:
        nbytes: V, as in `all_reduce`.
        mesh, axes: a group on switches: GPUs of a node, nodes, or both.
        algorithm: one of `ALGORITHMS`.

    Returns:
        The time of the algorithm at the rate of the wires: `lower` if node and cards
        work at once, `upper` if one waits for the other.

    Assumes:
        The latencies of the network, one crossing each, all cards busy, and nodes in
        the order of the switches: a ring leaves the nodes under a leaf once. NCCL's own
        steps depend on its protocol: its tables hold 0.6 µs (LL), 1.9 (LL128) and 3.4
        (Simple) for a step of a ring over NVLink, 2.7, 4 and 14 over the network, and
        add 6.6, 14 or 8.4 µs to a call.

    Raises:
        ValueError: another algorithm, a torus, or NVLS without a switch that adds.

    Source:
        See the head of this module.

    >>> from shardmath.chips import H100
    >>> from shardmath.networks import Cluster, NVLinkDomain
    >>> mesh = Mesh(Cluster(NVLinkDomain(H100), 4), {"X": 32})
    >>> ring, tree = (nccl_all_reduce(1e6, mesh, "X", a) for a in ("ring", "tree"))
    >>> ring.latency_seconds / tree.latency_seconds > 3
    True
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(
            f"algorithm {algorithm!r}: must be one of {', '.join(ALGORITHMS)}"
        )
    collective = Collective("all_reduce", axes, nbytes, a_mesh(mesh).size(axes))
    V, n = collective.nbytes, collective.group
    pieces = mesh.span(axes)
    if not all(isinstance(piece.wires, Switch) for piece in pieces):
        raise ValueError(
            f"axes {collective.axes}: must lie on switches, not on a torus"
        )
    last = len(mesh.network.dims) - 1
    node = [piece.wires for piece in pieces if piece.dim == last]
    cards = [piece.wires for piece in pieces if piece.dim != last]
    g = math.prod(w.size for w in node)
    k = n // g
    if algorithm == "nvls" and not any(w.reduces for w in node):
        raise ValueError("algorithm 'nvls': must have a switch that adds in the node")
    sent, hops = {
        "ring": (2 * V * (n - 1) / n, (2 * (n - k), 2 * (k - 1))),
        "tree": ((2 if g > 2 else 1) * V, (2 * (g - 1), 2 * (k - 1).bit_length())),
        "nvls": (V * (g + 1) / g, (1, 2 * (k - 1).bit_length())),
    }[algorithm]
    crossing = sent if algorithm == "ring" else (2 if k > 2 else 1) * V
    found = []  # seconds, level, latency
    if g > 1:
        found.append(
            (sent / node[0].bandwidth, node[0].level, node[0].latency * hops[0])
        )
    if k > 1:
        below, crossed = g, []  # GPUs of a unit, which share out what leaves it
        for w in reversed(cards):
            if w.size > 1:
                crossed.append((crossing / below / w.bandwidth, w.level))
            below *= w.size
        late = max(w.latency for w in cards if w.size > 1)
        found.append((*max(crossed), late * hops[1]))
    seconds, level, _ = max(found, default=(0.0, "", 0.0))
    latency = sum(late for *_, late in found)
    one_by_one = sum(seconds for seconds, *_ in found) + latency
    return Priced(collective, seconds, latency, level, one_by_one, len(found) < 2)
