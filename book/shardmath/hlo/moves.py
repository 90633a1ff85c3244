"""One collective instruction of compiled HLO: what it moves, and between whom."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from .groups import FORMS, Groups, axes_of, groups, pairs, shift_of
from .text import Computation, Instruction, Module

OPS = {
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "all-reduce": "all_reduce",
    "all-to-all": "all_to_all",
    "collective-permute": "permute",
}
# Between slices, over the data-centre network, by way of the hosts.
_SLICE_OPS = {
    "ALL_GATHER": "all_gather",
    "REDUCE_SCATTER": "reduce_scatter",
    "ALL_REDUCE": "all_reduce",
    "ALL_TO_ALL": "all_to_all",
    "ONE_TO_ONE": "permute",
}
# Their sizes or partners are not written in a form that we read.
_UNREAD = ("ragged-all-to-all", "collective-broadcast", "send")
_SLICE = 100_000  # device 3 of the second slice is 200003


@dataclass(frozen=True)
class Move:
    """What one instruction moves; `arrays` as (dtype, bytes as in `Collective`)."""

    op: str
    axes: tuple[str, ...]
    group: int
    arrays: tuple[tuple[str, float], ...]
    shift: int | None = None


def moves(line: Instruction) -> bool:
    """Whether `line` sends data from device to device; the end of a pair does not."""
    opcode = line.opcode.removesuffix("-start")
    if opcode == "send":  # without a slice at the other end, that is the host
        return over_dcn(line) or "is_host_transfer=true" not in line.rest
    return opcode in OPS or opcode in _UNREAD


def over_dcn(line: Instruction) -> bool:
    """Whether `line` sends to other slices, over the data-centre network."""
    return line.opcode == "send" and "_xla_megascale_transfer_type=" in line.rest


def move(
    module: Module,
    where: Computation,
    line: Instruction,
    mesh: Mapping[str, int],
    fused: bool,
) -> Move | None:
    """What `line` moves, or None where nothing leaves a device.

    Args:
        module: the program; its `partitions` are one slice of `mesh`, or all of it.
        where: the computation that `line` stands in.
        line: an instruction that `moves`.
        mesh: size by axis name, row-major, slices outermost.
        fused: whether `where` is the inside of a fusion.

    Raises:
        ValueError: an operation, groups or a target in a form that is not read.
    """
    opcode = line.opcode.removesuffix("-start")
    arrays = [a for operand in where.operands(line) for a in operand.arrays]
    if over_dcn(line):
        op, found = _to_slices(line, module.partitions)
    elif opcode in _UNREAD or "slice_sizes=" in line.attributes:
        raise ValueError(f"%{line.name}: this form of {line.opcode} is not read")
    else:
        op, found = OPS[opcode], _partners(line, module.partitions)
    if op == "permute":
        axes, shift = shift_of(found, mesh)
        n = math.prod(mesh[axis] for axis in axes)
    else:
        axes, shift, n = axes_of(found, mesh), None, len(found[0])
    if n == 1:
        return None
    if op == "all_to_all" and "dimensions=" not in line.attributes:
        # One array, cut into an operand for each device.
        arrays = [(arrays[0][0], sum(nbytes for _, nbytes in arrays))]
    if op == "all_reduce" and fused and _keeps_a_part(where, line, n):
        op = "reduce_scatter"
    whole = n if op in ("all_gather", "all_to_all") else 1
    sizes = tuple((dtype, nbytes * whole) for dtype, nbytes in arrays if nbytes)
    return Move(op, axes, n, sizes, shift) if sizes else None


def chain(where: Computation, line: Instruction) -> str:
    """Place of `line` in a chain of TPU fusions that share one asynchronous collective.

    The text repeats the collective in each of them. Only the first, "begun", counts;
    the rest is "continued"; "" where there is no chain.
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


def _partners(line: Instruction, devices: int) -> Groups:
    """Groups, or pairs, of the devices of one slice; all slices do the same."""
    if text := line.attribute(r"source_target_pairs=(\{.*?\}\}|\{\})"):
        return pairs(text)
    if text := line.attribute(FORMS):
        return groups(text, devices)
    raise ValueError(f"%{line.name}: {line.opcode} without groups that can be read")


def _to_slices(line: Instruction, size: int) -> tuple[str, Groups]:
    """A send to the same device of other slices; slices are counted from 1."""
    kind = line.attribute(r'_xla_megascale_transfer_type="(\w+)"')
    target = line.attribute(r"_xla_megascale_target=(.*?),_xla") or ""
    if all_of := re.fullmatch(r'"\{([\d,]+)\}x\{0:(\d+)\}"', target):
        slices = [int(number) for number in all_of[1].split(",")]
        places = range(int(all_of[2]) + 1)
        ends = [[(number, place) for number in slices] for place in places]
    else:
        listed = re.findall(r"\{((?:\d+(?:,|->)?)+)\}", target)
        devices = [[int(d) for d in re.findall(r"\d+", group)] for group in listed]
        ends = [[divmod(device, _SLICE) for device in group] for group in devices]
    # Devices in a slice are numbered by place, not as the mesh does: the same number is
    # the same device, but of two different ones we cannot tell the axes.
    straight = all(len({place for _, place in group}) == 1 for group in ends)
    if kind not in _SLICE_OPS or not ends or not straight:
        raise ValueError(
            f"%{line.name}: a transfer {kind} to {target} between slices is not read"
        )
    return _SLICE_OPS[kind], tuple(
        tuple((number - 1) * size + place for number, place in group) for group in ends
    )


def _keeps_a_part(where: Computation, line: Instruction, n: int) -> bool:
    """A fused AllReduce of which each device keeps 1/n: TPU's way to ReduceScatter."""
    kept = [
        other
        for other in where.instructions.values()
        if other.opcode == "dynamic-slice" and other.operands[0] == line.name
    ]
    total = sum(nbytes for _, nbytes in line.arrays)
    return len(kept) == 1 and kept[0].arrays[0][1] * n == total
