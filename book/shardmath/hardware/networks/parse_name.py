"""Networks by name: "v5p:8x8x8", "v5e:16x16*4", "h100:64x8", "gb200:72"."""

import re

from ...base.units import positive_int, short_repr
from ..chips import Chip, find
from .gpus import Cluster, DirectDomain, NVLinkDomain
from .slices import Slices
from .torus import Torus
from .wiring import Network

NAME = re.compile(r"(?P<kind>[\w-]+)(:(?P<shape>\d+(x\d+)*)(\*(?P<slices>\d+))?)?")
LIBTPU = {"tpu7x": "tpu_7x"}  # a chip that libtpu and `chips` call differently


def network(name: "str | Network", egress: float | None = None) -> Network:
    """The network that `name` means.

    Args:
        name: ``"v5p:8x8x8"``, a TPU (any name that `chips.find` accepts) and the sides
            of its slice; ``"v5e:16x16*4"``, four such slices on the data-centre
            network; ``"gb200:72"``, GPUs of one NVLink domain; ``"h100:64x8"``, nodes ×
            GPUs per node, on one level of a full fat tree; ``"h100:512"``, all GPUs, in
            full nodes. A `Network` is returned unchanged.
        egress: one-way bytes/s of a node to others, for several nodes of GPUs; by
            default, all cards of a node at their full rate.

    Raises:
        ValueError: the name has another form, its chip, slice or node does not exist,
            or `egress` is given for anything but several nodes of GPUs.

    Assumes:
        There is no latency between slices, since no source states one.

    >>> network("v5e:4x4*2").name
    '2 slices of TPU v5e 4x4'
    >>> network("h100:64x8").chips, network("gb200:72").chips
    (512, 72)
    >>> network("h100:512").name == network("h100:64x8").name
    True
    """
    if isinstance(name, Network):
        if egress is not None:
            raise ValueError(f"egress = {short_repr(egress)}: {name.name} has its own")
        return name
    found = NAME.fullmatch(name) if isinstance(name, str) else None
    if found is None or found["shape"] is None:
        raise ValueError(
            f"network {short_repr(name)}: must be written like 'v5p:8x8x8', "
            "'v5e:16x16*4', 'h100:64x8' or 'gb200:72'"
        )
    chip = find(LIBTPU.get(found["kind"], found["kind"]))
    shape = tuple(map(int, found["shape"].split("x")))
    slices = int(found["slices"] or 1)
    given = short_repr(name)
    positive_int(**{f"a side of {given}": min(shape), f"slices of {given}": slices})
    try:
        return _built(chip, shape, slices, egress)
    except ValueError as error:
        raise ValueError(f"network {given}: {error}") from None


def _in_nodes(count: int, most: int) -> str:
    """The nearest number of full nodes to `count` GPUs. Racks of more than 8 GPUs may
    also be partly full, if the GPUs are then spread evenly over them."""
    even = max(d for d in range(1, most + 1) if count % d == 0)
    if most > 8 and 2 * even >= most:
        return f"{count // even}x{even}"
    return f"{max(1, round(count / most))}x{most}"


def _built(
    chip: Chip, shape: tuple[int, ...], slices: int, egress: float | None
) -> Network:
    if chip.vendor == "Google":
        _no_egress(egress)
        torus = Torus(chip, shape)
        return Slices(torus, slices, latency=0) if slices > 1 else torus
    if slices > 1:
        raise ValueError("only TPUs come in slices")
    if len(shape) > 2:
        raise ValueError("must be nodes x GPUs of a node")
    if "domain" not in chip.facts or "scale_up_bandwidth" not in chip.facts:
        raise ValueError(f"no source states how {chip.name} are joined in a node")
    most = int(chip.domain)
    nodes, each = (1, *shape)[-2:]
    if len(shape) == 1 and each > most and each % most == 0:
        nodes, each = each // most, most
    if each > most:
        raise ValueError(
            f"a node joins at most {most} {chip.name}; write the number of nodes in "
            f"front, as in {_in_nodes(nodes * each, most)}"
        )
    if nodes > 1 and egress is None and "scale_out_bandwidth" not in chip.facts:
        raise ValueError(
            f"no source states the bandwidth of {chip.name} between nodes: give it, as "
            f"network('{chip.id}:{nodes}x{each}', egress=...), in one-way bytes/s of a "
            "node, or with --egress, in GB/s"
        )
    node = (NVLinkDomain if "nvlink" in chip.facts else DirectDomain)(chip, each)
    if nodes > 1:
        return Cluster(node, nodes, egress=egress)
    _no_egress(egress)
    return node


def _no_egress(egress: float | None) -> None:
    if egress is not None:
        given = short_repr(egress)
        raise ValueError(f"egress = {given}: only several nodes of GPUs have one")
