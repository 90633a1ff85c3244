"""Collectives that somebody timed at one size, on TPUs and GPUs."""

from .. import chips
from ..collectives import price_of
from ..facts import Source
from ..mesh import Mesh
from ..networks import NVLinkDomain, Torus
from .allreduce import SOURCE, Measured
from .rows import rows

BOOK = Source(
    "book_sharding",
    "How to Scale Your Model, chapter 3: Sharded matrices, question on AllGather time",
    "https://jax-ml.github.io/scaling-book/sharding/",
    "secondary",
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
