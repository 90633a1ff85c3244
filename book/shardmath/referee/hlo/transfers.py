"""Reads what one collective instruction of compiled HLO sends, and to which devices."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...base.units import short_repr
from .groups import FORMS, Groups, axes_of, groups, pairs, shift_of
from .text import Computation, Instruction, Module

OPS = {
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "all-reduce": "all_reduce",
    "all-to-all": "all_to_all",
    "collective-permute": "permute",
}
# Transfers between slices, which go through the hosts and the data-centre network.
_SLICE_OPS = {
    "ALL_GATHER": "all_gather",
    "REDUCE_SCATTER": "reduce_scatter",
    "ALL_REDUCE": "all_reduce",
    "ALL_TO_ALL": "all_to_all",
    "ONE_TO_ONE": "permute",
}
# The text of these does not give sizes or partners in a form that we read.
_UNREAD = ("ragged-all-to-all", "collective-broadcast", "send")
_SLICE = 100_000  # device 3 of the second slice is 200003
_PAIRS = r'source_target_pairs="?(\{ *\}|\{ *\{.*?\} *\})'  # a send has quotes
# A Pallas kernel that names mesh axes sends to other devices.
_KERNEL_AXES = re.compile(r'"mesh_axes":"\[(?!\])((?:[^"\\]|\\.)*)\]"')


@dataclass(frozen=True)
class Transfer:
    """What one instruction sends.

    Args:
        op, axes, group: as in `Collective`.
        arrays: (dtype, bytes as in `Collective`) of each array.
        returns: the result's dtype if it differs from that of the arrays, else "".
        shift: for a permute along a ring, by how many places it shifts.
        pairs: for a permute, (source, target) of each device that sends.
        devices: the number of devices that run the permute, whether or not they send.
    """

    op: str
    axes: tuple[str, ...]
    group: int
    arrays: tuple[tuple[str, float], ...]
    returns: str = ""
    shift: int | None = None
    pairs: tuple[tuple[int, int], ...] = ()
    devices: int = 0

    @property
    def senders(self) -> int | None:
        """How many devices send, for a permute in which not all do; otherwise None."""
        return len(self.pairs) if len(self.pairs) < self.devices else None


def moves(line: Instruction) -> bool:
    """Whether `line` sends data to other devices. The end of a pair sends nothing."""
    opcode = line.opcode.removesuffix("-start")
    if opcode == "send":  # other sends go to the host
        return over_dcn(line) or "is_host_transfer=true" not in line.rest
    return opcode in OPS or opcode in _UNREAD or bool(kernel_axes(line))


def over_dcn(line: Instruction) -> bool:
    """Whether `line` sends to other slices, over the data-centre network."""
    return line.opcode == "send" and "_xla_megascale_transfer_type=" in line.rest


def kernel_axes(line: Instruction) -> str:
    """The mesh axes along which a custom kernel sends, or ""."""
    if line.opcode != "custom-call":
        return ""
    found = _KERNEL_AXES.search(line.rest)
    return found[1].replace('\\"', "").replace('"', "") if found else ""


def transfer(
    module: Module,
    where: Computation,
    line: Instruction,
    mesh: Mapping[str, int],
    fused: bool,
) -> Transfer | None:
    """What `line` sends, or None if nothing leaves a device.

    Args:
        module: the program. Its `partitions` are one slice of `mesh`, or all of it.
        where: the computation that `line` is in.
        line: an instruction for which `moves` is true.
        mesh: size by axis name, row-major, slices outermost.
        fused: whether `where` is the body of a fusion.

    Raises:
        ValueError: the operation, its groups or its target has an unknown form, the
            text does not say what is sent, or `mesh` lacks one of the devices.
    """
    opcode = line.opcode.removesuffix("-start")
    arrays = tuple(a for operand in where.operands(line) for a in operand.arrays)
    if over_dcn(line):
        op, found = _to_slices(line, module.partitions)
    elif opcode == "send" and (text := line.attribute(_PAIRS)):
        op, found = "permute", pairs(text, module.partitions)
    elif opcode == "ragged-all-to-all" or kernel_axes(line):
        raise ValueError(_unsaid(line, arrays))
    elif opcode in _UNREAD or "slice_sizes=" in line.attributes:
        raise ValueError(f"%{line.name}: this form of {line.opcode} can't be read")
    else:
        op, found = OPS[opcode], _partners(line, module.partitions)
    if max(map(max, found), default=0) >= math.prod(mesh.values()):
        raise ValueError(
            f"%{line.name} names a device that the mesh {short_repr(mesh)} lacks"
        )
    if op == "permute":
        everybody = math.prod(mesh.values()) if over_dcn(line) else module.partitions
        return permute(found, arrays, mesh, everybody)
    axes, n = axes_of(found, mesh), len(found[0])
    if n == 1:
        return None
    if op == "all_to_all" and "dimensions=" not in line.attributes:
        # This is one array, cut into an operand for each device.
        arrays = ((arrays[0][0], sum(nbytes for _, nbytes in arrays)),)
    if op == "all_reduce" and fused and _keeps_a_part(where, line, n):
        op = "reduce_scatter"
    whole = n if op in ("all_gather", "all_to_all") else 1
    sizes = tuple((dtype, nbytes * whole) for dtype, nbytes in arrays if nbytes)
    return Transfer(op, axes, n, sizes, _returned(line, arrays)) if sizes else None


def permute(
    found: tuple[tuple[int, int], ...],
    arrays: tuple[tuple[str, float], ...],
    mesh: Mapping[str, int],
    devices: int,
) -> Transfer | None:
    """A permute between the `found` pairs, or None if nothing leaves a device."""
    axes, shift = shift_of(found, mesh)
    sizes = tuple((dtype, nbytes) for dtype, nbytes in arrays if nbytes)
    if not found or not sizes:
        return None
    n = math.prod(mesh[axis] for axis in axes)
    return Transfer("permute", axes, n, sizes, "", shift, found, devices)


def rings_closed(
    found: dict[str, Transfer], mesh: Mapping[str, int]
) -> dict[str, Transfer]:
    """`found`, by instruction name, with both halves of a ring merged into one permute.

    To pipeline sends, XLA:GPU splits a ring into its wrap-around edge and the rest.
    Because each device still sends only once, two records would double the bytes.
    """
    whole = dict(found)
    for name, one in found.items():
        for other, rest in found.items():
            if name < other and {name, other} <= whole.keys() and _halves(one, rest):
                both = tuple(sorted(one.pairs + rest.pairs))
                whole[name] = permute(both, one.arrays, mesh, one.devices) or one
                del whole[other]
    return whole


def can_be_half(line: Instruction) -> bool:
    """Whether `line` may be one of the two parts that XLA:GPU cuts a ring into."""
    if line.opcode == "send":
        return not over_dcn(line)
    cut = re.search(r"-(?:fwd|bwd)\b", line.name)
    return line.opcode.startswith("collective-permute") and bool(cut)


def chain(where: Computation, line: Instruction) -> str:
    """Place of `line` in a chain of TPU fusions that share one asynchronous collective.

    The text repeats the collective in each fusion. Only the first fusion counts: its
    place is "begun". That of the others is "continued", and "" means that there is no
    chain.
    """
    if 'chain_id="' not in line.attributes:
        return ""
    begun = any(
        'custom_call_target="AsyncCollectiveStart"' in other.rest
        and line.name in other.operands
        for other in where.instructions.values()
        if other.opcode == "custom-call"
    )
    return "begun" if begun else "continued"


def _halves(one: Transfer, other: Transfer) -> bool:
    """Whether two permutes together form rings in which each device sends once."""
    both = one.pairs + other.pairs
    return (
        one.arrays == other.arrays
        and _closed(both)
        and len(dict(both)) == len(both)  # no device sends twice
        and not _closed(one.pairs)
    )


def _closed(moved: tuple[tuple[int, int], ...]) -> bool:
    """Whether the devices that send are exactly those that receive."""
    return {source for source, _ in moved} == {target for _, target in moved}


def _unsaid(line: Instruction, arrays: tuple[tuple[str, float], ...]) -> str:
    """The message on an instruction whose text does not say what it sends."""
    held = (
        f"its first operand has {arrays[0][1]:,.0f} bytes" if arrays else "no operand"
    )
    if axes := kernel_axes(line):
        what = f"a kernel that sends over {axes}"
    else:
        what = "a ragged-all-to-all, whose sizes depend on data"
    return (
        f"%{line.name} is {what} ({held}): say what one run sends, with "
        f'stated={{"{line.name}": Collective(…)}}'
    )


def _returned(line: Instruction, arrays: tuple[tuple[str, float], ...]) -> str:
    """The result's dtype if it differs from that of the operands, else ""."""
    if not line.opcode.startswith("all-reduce"):
        return ""
    out, into = {dtype for dtype, _ in line.arrays}, {dtype for dtype, _ in arrays}
    return "" if out == into else " ".join(sorted(out))


def _partners(line: Instruction, devices: int) -> Groups:
    """Groups or pairs of the devices of one slice. All slices do the same."""
    if text := line.attribute(_PAIRS):
        return pairs(text, devices)
    text = line.attribute(FORMS)
    if text is None:
        raise ValueError(f"%{line.name}: {line.opcode} without groups that can be read")
    if text == "{{0}}" and "channel_id=" not in line.attributes:
        return ((0,),)  # the one replica; groups of partitions have a channel
    return groups(text, devices)


def _to_slices(line: Instruction, size: int) -> tuple[str, Groups]:
    """A send to the same device of other slices. Slices are numbered from 1."""
    kind = line.attribute(r'_xla_megascale_transfer_type="(\w+)"')
    target = line.attribute(r"_xla_megascale_target=(.*?),_xla") or ""
    all_of = re.fullmatch(r'"\{([\d,]+)\}x\{0:(\d+)\}"', target)
    if all_of and int(all_of[2]) == size - 1:
        slices = [int(number) for number in all_of[1].split(",")]
        ends = [[(number, place) for number in slices] for place in range(size)]
    else:
        listed = re.findall(r"\{((?:\d+(?:,|->)?)+)\}", target)
        devices = [[int(d) for d in re.findall(r"\d+", group)] for group in listed]
        ends = [[divmod(device, _SLICE) for device in group] for group in devices]
    # Devices in a slice are numbered by physical place and not as in the mesh. Equal
    # numbers are the same device, but from different ones we can't derive the axes.
    straight = all(len({place for _, place in group}) == 1 for group in ends)
    inside = all(n > 0 and place < size for group in ends for n, place in group)
    even = len({len(group) for group in ends}) == 1
    if kind not in _SLICE_OPS or not (even and straight and inside):
        raise ValueError(
            f"%{line.name}: a transfer {kind} to {target} between slices can't be read"
        )
    op = _SLICE_OPS[kind]
    if op == "permute" and any(len(group) != 2 for group in ends):
        raise ValueError(f"%{line.name}: {target}: must be pairs of source and target")
    return op, tuple(
        tuple((number - 1) * size + place for number, place in group) for group in ends
    )


def _keeps_a_part(where: Computation, line: Instruction, n: int) -> bool:
    """Whether each device keeps 1/n of an AllReduce, as in a TPU's ReduceScatter."""
    kept = [
        other
        for other in where.instructions.values()
        if other.opcode == "dynamic-slice" and other.operands[0] == line.name
    ]
    total = sum(nbytes for _, nbytes in line.arrays)
    return len(kept) == 1 and kept[0].arrays[0][1] * n == total
