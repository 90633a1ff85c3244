"""GPU networks: NVLink domains, and clusters of them on fat trees."""

import math

from ...base.units import flags, positive, positive_int, short_repr
from ..chips import Chip, require_chip
from .records import LATENCY, must_have_nvlink, nvswitch
from .switches import NVSwitch
from .wiring import Network, Switch


class NVLinkDomain(Network):
    """GPUs joined by NVLink through NVSwitches: 8 in a node, 72 in an NVL72 rack.

    Args:
        chip: an NVIDIA GPU of `chips`.
        gpus: how many GPUs; by default, as many as the chip's domain holds.
        bandwidth: one-way bytes/s of one GPU; by default `chip.scale_up_bandwidth`.
        latency: seconds from GPU to GPU; by default 3.33 µs, see `LATENCY`.
        reduces: whether the switches add what passes (NVLink SHARP, since Hopper).

    Raises:
        ValueError: a chip that is not an NVIDIA GPU, more GPUs than the domain holds,
            or switches that cannot reduce.

    Source:
        `chips`, and the records of NVSwitches (`nvswitch`).

    >>> from shardmath.hardware.chips import GB200
    >>> NVLinkDomain(GB200).bisection
    32400000000000.0
    """

    def __init__(
        self,
        chip: Chip,
        gpus: int | None = None,
        bandwidth: float | None = None,
        latency: float = LATENCY["NVLink"].value,
        reduces: bool = False,
    ):
        if not isinstance(chip, Chip):
            raise ValueError(
                f"chip = {short_repr(chip)}: must be a Chip, such as chips.H100"
            )
        must_have_nvlink(chip)
        (reduces,) = flags(reduces=reduces)
        most = require_chip(chip).fact("domain").value
        gpus = most if gpus is None else positive_int(gpus=gpus)[0]
        if gpus > most:
            raise ValueError(f"gpus = {gpus}: NVLink joins at most {most} {chip.name}")
        if reduces and not nvswitch(chip).adds:
            name = nvswitch(chip).name
            raise ValueError(
                f"{chip.name}: its {name} does not add; reduces=True needs a switch "
                "that does, of Hopper or later"
            )
        rate = chip.scale_up_bandwidth if bandwidth is None else bandwidth
        switch = Switch(gpus, rate, latency, reduces, "NVLink")
        super().__init__((switch,), f"{gpus} {chip.name} on NVLink", chip)

    @property
    def nvswitch(self) -> NVSwitch:
        """The generation of NVSwitch that joins the GPUs."""
        return nvswitch(self.chip)

    @property
    def ports(self) -> int:
        """Ports of all NVSwitches: switches · ports per switch.

        All switches of a full domain are counted, even if this one has fewer GPUs.

        Raises:
            ValueError: no source states how many switches join these GPUs.

        >>> from shardmath.hardware.chips import H100
        >>> NVLinkDomain(H100).ports, NVLinkDomain(H100).ports_taken
        (256, 144)
        """
        return self.chip.switches * self.nvswitch.ports

    @property
    def ports_taken(self) -> int:
        """Ports that the GPUs use: GPUs · links per GPU.

        The other ports are free, or lead to more switches.

        Raises:
            ValueError: no source states how many links the GPU has.
        """
        return self.chips * self.chip.links


class DirectDomain(Network):
    """GPUs of one node without switches: AMD's Infinity Fabric, bridges, PCIe.

    Args:
        chip: a GPU of `chips` whose links are published: an MI300X, with a link to
            every other GPU; an H200 NVL, whose bridge joins up to four cards; an L40S,
            whose cards are joined by PCIe.
        gpus: how many GPUs; by default, as many as the chip's domain holds.
        latency: seconds from GPU to GPU; by default that of NVLink, see `LATENCY`.

    Assumes:
        The links act like one switch with the rate of all links of a GPU together. This
        is exact if all GPUs of the node take part, because then every link is busy. In
        a group of n, a GPU can use only n − 1 links, so the bound is too low by a
        factor of (domain − 1) / (n − 1). PCIe counts as a link from each card to a host
        that sets no limit.

    Raises:
        ValueError: no source states the domain or the rate of the links, or more GPUs
            than the domain holds.

    >>> from shardmath.hardware.chips import find
    >>> DirectDomain(find("MI300X")).bisection
    1792000000000.0
    """

    def __init__(
        self,
        chip: Chip,
        gpus: int | None = None,
        latency: float = LATENCY["NVLink"].value,
    ):
        most = require_chip(chip).fact("domain").value
        gpus = most if gpus is None else positive_int(gpus=gpus)[0]
        if gpus > most:
            raise ValueError(f"gpus = {gpus}: a node has at most {most} {chip.name}")
        switch = Switch(gpus, chip.scale_up_bandwidth, latency, level="links")
        super().__init__((switch,), f"{gpus} {chip.name} in a node", chip)


class Cluster(Network):
    """Nodes on a rail-optimised fat tree; each GPU has its own network card.

        egress of a node = GPUs · rate of one card

    The card of a GPU is its only link out of the node. Traffic through the spine passes
    the leaf first. GPUs with the same place in their nodes share a rail, so only
    collectives that split their bytes over all GPUs of a node reach the egress of a
    node.

    Args:
        node: one node, either an NVLink domain or a node without switches.
        nodes: how many nodes on one level of switches; or a tuple (…, spine, leaf),
            such as (4, 32) for 4 scalable units of 32 nodes.
        egress: one-way bytes/s of a node; by default GPUs · `chip.scale_out_bandwidth`.
        taper: for each level of `nodes`, the factor by which the level is thinner than
            in a full fat tree: (7, 1) for a spine oversubscribed 7 to 1. The factor of
            a spine may be below 1, that of a leaf may not. By default all are 1.
        latency: for each level, seconds of one crossing, including the switches below;
            by default from `LATENCY`.
        reduces: the levels whose switches add and send the sum to all, such as
            ("spine", "leaf") for InfiniBand with SHARP; by default none.

    Raises:
        ValueError: a `node` of another type, levels that do not match, a leaf above the
            rate of its cards, or three levels without a latency.

    Source:
        Levels of a DGX H100 SuperPOD (32 nodes to a unit, 4 units): How to Scale Your
        Model, chapter 12, after NVIDIA's reference architecture.

    >>> from shardmath.hardware.chips import H100
    >>> Cluster(NVLinkDomain(H100), (4, 32)).egress("spine")
    12800000000000.0
    """

    def __init__(
        self,
        node: "NVLinkDomain | DirectDomain",
        nodes: int | tuple[int, ...],
        egress: float | None = None,
        taper: tuple[float, ...] | None = None,
        latency: tuple[float, ...] | None = None,
        reduces: tuple[str, ...] = (),
    ):
        if not isinstance(node, NVLinkDomain | DirectDomain):
            wanted = "must be an NVLinkDomain or a DirectDomain"
            raise ValueError(f"node = {short_repr(node)}: {wanted}")
        sizes = tuple(nodes) if isinstance(nodes, tuple | list) else (nodes,)
        if not 1 <= len(sizes) <= 3:
            raise ValueError(
                f"nodes = {short_repr(nodes)}: must be 1 to 3 levels of switches"
            )
        sizes = tuple(positive_int(nodes=n)[0] for n in sizes)
        names = ("core", "spine", "leaf")[-len(sizes) :]
        adding = (reduces,) if isinstance(reduces, str) else reduces
        if not isinstance(adding, tuple | list) or any(a not in names for a in adding):
            raise ValueError(
                f"reduces = {short_repr(reduces)}: must be among {', '.join(names)}"
            )
        if latency is None:
            if "core" in names:
                raise ValueError("no source states the latency of a core: give latency")
            latency = tuple(LATENCY[name].value for name in names)
        thinner = (1,) * len(sizes) if taper is None else taper
        for name, given in {"taper": thinner, "latency": latency}.items():
            if not isinstance(given, tuple | list) or len(given) != len(sizes):
                raise ValueError(
                    f"{name} = {short_repr(given)}: must match the levels {sizes}"
                )
        chip = node.chip
        if egress is None:
            rate = chip.scale_out_bandwidth
        else:
            rate = positive(egress=egress)[0] / node.chips
        if positive(taper=thinner[-1])[0] < 1:
            raise ValueError(
                f"taper = {short_repr(taper)}: must be 1 or more for the leaf, because "
                "a card carries no more than its rate"
            )
        levels = tuple(
            Switch(
                n,
                rate / positive(taper=t)[0],
                seconds,
                name in adding,
                name,
                uplinks=name != "leaf",
            )
            for n, t, seconds, name in zip(sizes, thinner, latency, names, strict=True)
        )
        title = f"{math.prod(sizes)} nodes of {node.chips} {chip.name}"
        super().__init__((*levels, *node.dims), title, chip)
