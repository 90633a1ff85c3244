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
    """One chip of one generation of NVSwitch.

        port_bandwidth = bandwidth / ports

    Args:
        id: the key in ``networks.toml``.
        name: the name of the switch.
        nvlink: the generation of its NVLinks, as in `chips.H100.nvlink`.
        facts: values by name, each with its source; `TERMS` defines them.
        aliases: other names.

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
        """The number of NVLinks that end at the switch."""
        return self.fact("ports").value

    @property
    def bandwidth(self) -> float:
        """One-way bytes/s of all ports; vendors add both ways and print twice that.

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
        """Whether it adds the data of several GPUs and sends the sum to all of them."""
        return self.fact("adds").value

    def __repr__(self) -> str:
        rate = f"{show(self.bandwidth, 'bytes/s')} together"
        if "ports" in self.facts:
            each = show(self.port_bandwidth, "bytes/s")
            rate = f"{self.ports} ports of {each} one-way, {rate}"
        adds = "adds what passes" if self.adds else "does not add"
        return f"{self.name}: {rate}; {adds}."
