"""AllReduces of small arrays with special kernels, in one node of H100s."""

from ..base.facts import Source
from ..collectives import all_reduce
from ..hardware import chips
from ..hardware.mesh import Mesh
from ..hardware.networks import NVLinkDomain
from .allreduce import Measured
from .rows import rows

SOURCE = Source(
    "sglang_allreduce",
    "sglang, pull request 2904: optimize custom allreduce kernel",
    "https://github.com/sgl-project/sglang/pull/2904",
    "measured",
    "2026-11-23",
)


def _measured(library: str, gpus: str, nbytes: str, microseconds: str) -> Measured:
    mesh = Mesh(NVLinkDomain(chips.H100, int(gpus)), {"X": int(gpus)})
    priced = all_reduce(int(nbytes), mesh, "X")
    rate = priced.collective.sent / (float(microseconds) * 1e-6)
    return Measured(f"{gpus} H100, {library}", rate, priced, SOURCE)


# By library, ordered by size and then by the number of GPUs.
KERNELS = {
    library: tuple(
        _measured(library, *row[:2], row[column]) for row in rows("kernels.csv")
    )
    for column, library in enumerate(("sglang", "vLLM"), 2)
}
