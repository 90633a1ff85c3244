"""Networks of real machines: TPU slices and pods, NVLink domains, fat trees, DCN.

Each is a `Network`, a grid of rings and switches (`wiring`), built from a record of
`chips`. If no source states a rate, asking for it raises an error.

>>> from shardmath.hardware.chips import H100, TPU_V5E
>>> print(Torus(TPU_V5E, (8, 16)))
TPU v5e 8x16: 128 chips, line of 8 x ring of 16, bisection 800 GB/s, diameter 15 hops
>>> Cluster(NVLinkDomain(H100), 4).egress("leaf")
400000000000.0
"""

from .gpus import Cluster, DirectDomain, NVLinkDomain
from .parse_name import network
from .records import LATENCY, NCCL, NVSWITCHES, nvswitch
from .slices import Slices
from .switches import NVSwitch
from .torus import Torus
from .wiring import Link, Network, Ring, Switch

__all__ = [
    "LATENCY",
    "NCCL",
    "NVSWITCHES",
    "Cluster",
    "DirectDomain",
    "Link",
    "NVLinkDomain",
    "NVSwitch",
    "Network",
    "Ring",
    "Slices",
    "Switch",
    "Torus",
    "network",
    "nvswitch",
]
