"""Collectives that somebody timed at one size, on TPUs, on GPUs, or on many nodes."""

from ..base.facts import Source
from ..collectives import price_of
from ..hardware import chips
from ..hardware.mesh import Mesh
from ..hardware.networks import Cluster, NVLinkDomain, Torus
from .allreduce import SOURCE, Measured
from .rows import rows

BOOK = Source(
    "book_sharding",
    "How to Scale Your Model, chapter 3: Sharded matrices, question on AllGather time",
    "https://jax-ml.github.io/scaling-book/sharding/",
    "secondary",
    "2026-11-21",
)
PLAYBOOK = Source(
    "ultrascale",
    "The Ultra-Scale Playbook (Hugging Face): data of its plot of bandwidth by nodes",
    "https://github.com/vinjn/nanotron-ultrascale-playbook/blob/e3bcfc5c0b/assets/data/"
    "benchmarks/pp_comm_bandwidth.html",
    "measured",
    "2026-11-21",
)
_SOURCES = {"book": BOOK, "ml_engineering": SOURCE}
_PLACES = {  # what, mesh, axis
    "line": (
        "4 TPU v5e in a line",
        Mesh(Torus(chips.TPU_V5E, (8, 4)), {"X": 8, "Y": 4}),
        "Y",
    ),
    "h200": ("8 H200", Mesh(NVLinkDomain(chips.H200, 8), {"X": 8}), "X"),
}


def _measured(op: str, where: str, nbytes: str, us: str, bus: str, key: str):
    what, mesh, axis = _PLACES[where]
    priced = price_of(op, int(nbytes), mesh, axis)
    rate = float(bus) * 1e9 if bus else priced.collective.sent / (float(us) * 1e-6)
    return Measured(what, rate, priced, _SOURCES[key])


SINGLE = tuple(_measured(*row) for row in rows("single.csv"))


def _over_nodes(nodes: int, bus: float) -> Measured:
    """An AllReduce of 256 MiB over `nodes` nodes of 8 H100s, whose switches add."""
    node = NVLinkDomain(chips.H100, 8, reduces=True)
    mesh = Mesh(Cluster(node, nodes) if nodes > 1 else node, {"X": 8 * nodes})
    priced = price_of("all_reduce", 2**28, mesh, "X")
    return Measured(f"{nodes} nodes of 8 H100", bus, priced, PLAYBOOK)


NODES = {int(k): _over_nodes(int(k), float(b) * 1e9) for k, b in rows("nodes.csv")}
