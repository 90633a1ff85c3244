"""AllReduce on GPUs as NCCL runs it: ring, tree and NVLS, with their steps.

`price` counts the hops of a ReduceScatter and an AllGather along shortest paths. A
library's algorithm takes more hops, and the difference grows with the group. Let V be
the bytes of the array and n = g·k the number of GPUs, g in each of k nodes. A step
takes α_g inside a node and α_k between nodes, and every call takes α_0 in addition:

    algorithm  sent in the node    over each card     expected latency
    ring       2V·(n−1)/n          2V·(n−1)/n / g     α_0 + 2(n−k)·α_g + 2(k−1)·α_k
    tree       2V  (V for g = 2)   2V/g (V/g, k = 2)  α_0 + 2(g−1)·α_g + 2⌈log₂ k⌉·α_k
    nvls       V·(g+1)/g           as the tree        α_0 + α_g + 2⌈log₂ k⌉·α_k

In a ring, the blocks pass all GPUs twice, and each of the g rings leaves the node
through one card. A tree is a chain inside the node, and over the nodes there are two
trees, each with half of the bytes. In NVLS, the switch of the node adds and multicasts.
A GPU sends V and then, once its part is summed, another V/g; on the wire, V would be
enough.

A protocol defines how a GPU learns that data has arrived. It sets the three latencies
and the payload, which is the share of data in the bytes on the wire: in LL half of the
bytes are flags, in LL128 one in sixteen, and in Simple none. `networks.NCCL` has the
numbers.

Sources:
    Steps and their latencies: src/graph/tuning.cc of github.com/NVIDIA/nccl at commit
    5067397c: 2(n−1) steps for a ring, 2(k−1) of them between nodes; 2(g−1) inside and
    2·log₂ k between nodes for a tree; 1 and 2·log₂ k for NVLS with a tree. n + 1
    instead of 2n for NVLS: Stas Bekman, Machine Learning Engineering,
    network/README.md at commit 744d01e18b, "SHARP".
"""

import math

from ..base.units import short_repr
from ..hardware.mesh import Mesh
from ..hardware.networks.records import NCCL
from ..hardware.networks.wiring import Switch
from .collective import AxisNames, Collective
from .price import Priced, a_mesh

ALGORITHMS = ("ring", "tree", "nvls")
PROTOCOLS = tuple(NCCL)


def nccl_all_reduce(
    nbytes: float,
    mesh: Mesh,
    axes: AxisNames,
    algorithm: str,
    protocol: str | None = None,
) -> Priced:
    """A[I]{U_X} -> A[I] by the steps of one of NCCL's algorithms.

    Args:
        nbytes: V, as in `all_reduce`.
        mesh, axes: a group joined by switches: GPUs of a node, nodes, or both.
        algorithm: one of `ALGORITHMS`.
        protocol: one of `PROTOCOLS`; NVLS has only "Simple". The default is the one
            with the shortest expected time.

    Returns:
        The time of the algorithm. `lower` is the time of the bytes on the wires, flags
        included, if the links inside the node and the cards work at the same time.
        `latency_seconds` is the latency that NCCL's tuner expects for the steps.
        `upper` assumes that links and cards wait for each other.

    Assumes:
        All cards are busy. Nodes are ordered by switch, so a ring leaves the nodes
        under a leaf only once. The time that hosts add between nodes is left out.

    How far off:
        On eight H200, a ring with LL took 38 to 46 µs for 32 KiB to 1 MiB; we expect 15
        to 23. The source timed each call separately.

    Raises:
        ValueError: an unknown algorithm or protocol, a torus, NVLS without a switch
            that adds, an axis that the mesh lacks, or bytes not above 0.

    Source:
        See the head of this module.

    >>> from shardmath.hardware.chips import H100
    >>> from shardmath.hardware.networks import Cluster, NVLinkDomain
    >>> mesh = Mesh(Cluster(NVLinkDomain(H100), 4), {"X": 32})
    >>> ring, tree = (nccl_all_reduce(1e3, mesh, "X", a, "LL") for a in ALGORITHMS[:2])
    >>> f"{ring.latency_seconds:.3g} s, {tree.latency_seconds:.3g} s"
    '5.64e-05 s, 3.52e-05 s'
    """
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise ValueError(
            f"algorithm {short_repr(algorithm)}: must be one of {', '.join(ALGORITHMS)}"
        )
    known = [name for name in PROTOCOLS if algorithm in NCCL[name]]
    if protocol is None:
        found = (nccl_all_reduce(nbytes, mesh, axes, algorithm, p) for p in known)
        return min(found, key=lambda priced: priced.expected)
    if not isinstance(protocol, str) or protocol not in known:
        raise ValueError(
            f"protocol {short_repr(protocol)}: must be one of {', '.join(known)} for "
            f"{algorithm}"
        )
    collective = Collective("all_reduce", axes, nbytes, a_mesh(mesh).size(axes))
    pieces = mesh.span(axes)
    if not all(isinstance(piece.wires, Switch) for piece in pieces):
        raise ValueError(
            f"axes {short_repr(collective.axes)}: must be on switches, not on a torus"
        )
    last = len(mesh.network.dims) - 1
    node = [piece.wires for piece in pieces if piece.dim == last]
    cards = [piece.wires for piece in pieces if piece.dim != last]
    n = collective.group
    g = math.prod(w.size for w in node)
    k = n // g
    if algorithm == "nvls" and not any(w.reduces for w in node):
        raise ValueError("algorithm 'nvls': the switch of the node must be able to add")
    V = collective.nbytes / NCCL[protocol]["payload"].value  # on the wire, with flags
    sent, hops = {
        "ring": (2 * V * (n - 1) / n, (2 * (n - k), 2 * (k - 1))),
        "tree": ((2 if g > 2 else 1) * V, (2 * (g - 1), 2 * (k - 1).bit_length())),
        "nvls": (V * (g + 1) / g, (1, 2 * (k - 1).bit_length())),
    }[algorithm]
    crossing = sent if algorithm == "ring" else (2 if k > 2 else 1) * V
    in_node, between, call = NCCL[protocol][algorithm].value
    found, latency = [], call if n > 1 else 0.0  # seconds and level of each network
    if g > 1:
        found.append((sent / node[0].bandwidth, node[0].level))
        latency += hops[0] * in_node
    if k > 1:
        below, crossed = g, []  # GPUs of a unit, which share the bytes that leave it
        for w in reversed(cards):
            if w.size > 1:
                crossed.append((crossing / below / w.bandwidth, w.level))
            below *= w.size
        found.append(max(crossed))
        latency += hops[1] * between
    seconds, level = max(found, default=(0.0, ""))
    one_by_one = sum(seconds for seconds, _ in found) + latency
    return Priced(collective, seconds, latency, level, one_by_one, len(found) < 2)
