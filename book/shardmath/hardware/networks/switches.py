"""The switch that joins GPUs by NVLink: its ports, its rate, and whether it adds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...base.facts import Fact, Term
from ...base.records import HasFacts
from ...base.units import show

TERMS = {
    "ports": Term("Ports", "", "one NVLink each"),
    "bandwidth": Term("All ports, one-way", "bytes/s", "into the switch at once"),
    "adds": Term("Adds what passes", "", "in-network reduction: NVIDIA's SHARP"),
}


@dataclass(frozen=True, repr=False, eq=False)
class NVSwitch(HasFacts):
    """One generation of NVSwitch, a single chip of it.

        port_bandwidth = bandwidth / ports

    Args:
        id: its key in ``networks.toml``.
        name: what it is called.
        nvlink: generation of the NVLinks that it speaks, `chips.H100.nvlink`.
        facts: its values by name, each with its source; `TERMS` says what they mean.
        aliases: what else it is called.

    >>> from shardmath.hardware.networks import nvswitch
    >>> nvswitch("NVSwitch 3")
    NVSwitch 3: 64 ports of 25 GB/s one-way, 1.6 TB/s together; adds what passes.
    """

    vocabulary: ClassVar[Mapping[str, Term]] = TERMS
    id: str
    name: str
    nvlink: int
    facts: Mapping[str, Fact]
    aliases: tuple[str, ...] = ()

    @property
    def ports(self) -> int:
        """How many NVLinks end at it."""
        return self.fact("ports").value

    @property
    def bandwidth(self) -> float:
        """One-way bytes/s of all ports together; vendors print both ways, twice that.

        >>> from shardmath.hardware.networks import nvswitch
        >>> 2 * nvswitch("NVSwitch 4").bandwidth
        7200000000000.0
        """
        return self.fact("bandwidth").value

    @property
    def port_bandwidth(self) -> float:
        """One-way bytes/s of one port, which is one NVLink of a GPU."""
        return self.bandwidth / self.ports

    @property
    def adds(self) -> bool:
        """Whether it adds up what passes and hands the sum to all."""
        return self.fact("adds").value

    def __repr__(self) -> str:
        rate = f"{show(self.bandwidth, 'bytes/s')} together"
        if "ports" in self.facts:
            each = show(self.port_bandwidth, "bytes/s")
            rate = f"{self.ports} ports of {each} one-way, {rate}"
        adds = "adds what passes" if self.adds else "does not add"
        return f"{self.name}: {rate}; {adds}."
