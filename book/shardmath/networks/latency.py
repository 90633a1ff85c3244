"""Seconds of one hop by level of the network, each with its source.

No vendor prints one. That of ICI is an assumption of a book; the others were measured
by DeepSeek, end to end for 64 bytes. A level that is not here has to be given.
"""

from dataclasses import replace

from ..chips import SOURCES
from ..facts import Fact

_BOOK = SOURCES["book"]
_DEEPSEEK = replace(
    SOURCES["deepseek"],
    title=SOURCES["deepseek"].title + ", Table 5, as quoted",
    kind="secondary",
)

LATENCY: dict[str, Fact] = {
    "ICI": Fact(1e-6, _BOOK, "assumed in its question 5, for v5e"),
    "NVLink": Fact(3.33e-6, _DEEPSEEK, "H800 node"),
    "leaf": Fact(2.8e-6, _DEEPSEEK, "InfiniBand, through one leaf switch"),
    "spine": Fact(3.7e-6, _DEEPSEEK, "InfiniBand, from leaf to leaf"),
}
