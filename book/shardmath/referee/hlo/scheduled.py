"""The schedule of a compiled program: the operations that a device runs, in order."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

from .flops import flops_of
from .overlap import ends, inside, multiplies, started
from .reading import CompiledCollective, read
from .text import Computation, Instruction, Module, bits, parse, taken_apart
from .transfers import moves
from .trip_counts import (
    Arguments,
    body_arguments,
    condition_and_body,
    turns_of,
    unknown,
)

_SILENT = {  # instructions that take no time
    *("after-all", "bitcast", "constant", "get-tuple-element", "iota", "parameter"),
    *("partition-id", "replica-id", "tuple"),
}
_NO_WORK = ("AllocateBuffer", "ConcatBitcast")  # targets of custom calls
_FETCHES = ("copy-start", "slice-start", "dynamic-slice-start")
_PLACED = re.compile(r"\b([a-z]+\d*\w*)\[([\d,]*)\](?:\{([^{}]*)\})?")
_SPACE = re.compile(r"S\((\d+)\)")
_CYCLES = r'"estimated_cycles":"(\d+)"'


@dataclass(frozen=True)
class ScheduledOp:
    """One operation of a schedule.

    Args:
        name: HLO's name of the instruction, the same in every iteration of a loop.
        line: its line without layouts and attributes. S(1) marks arrays in VMEM.
        matmul: whether it multiplies matrices.
        flops: the FLOPs that it executes.
        hbm: bytes that it reads from HBM and writes to it, which are its operands and
            results except those that the compiler placed in another memory. An operand
            counts as a whole even if only a part of it is read.
        vmem: bytes of its operands and results in VMEM, S(1).
        cycles: the compiler's estimate, or None if the text has none.
        op: the collective that it starts or runs, a key of `collectives.NAMES`, or "".
        sent: bytes that a device sends for it.
        shift: for a permute along a ring, by how many places it shifts.
        begins: whether it only starts something that another operation ends.
        ends: the name of the earlier operation that it ends and waits for, or "".
    """

    name: str
    line: str = ""
    matmul: bool = False
    flops: float = 0.0
    hbm: float = 0.0
    vmem: float = 0.0
    cycles: int | None = None
    op: str = ""
    sent: float = 0.0
    shift: int | None = None
    begins: bool = False
    ends: str = ""

    @property
    def fetch(self) -> bool:
        """Whether it starts a copy from one memory of the chip to another."""
        return self.begins and not self.op

    def bound(self, flops_per_s: float, bytes_per_s: float) -> float:
        """Lower bound on its seconds: the longer of its math and its HBM traffic.

        >>> ScheduledOp("dot", "dot", flops=8.0, hbm=3.0).bound(4.0, 1.0)
        3.0
        """
        return max(self.flops / flops_per_s, self.hbm / bytes_per_s)


def schedule(
    text: str, mesh: Mapping[str, int], trips: Mapping[str, int] | None = None
) -> list[ScheduledOp]:
    """The operations that a device runs, in the order of the compiled text.

    The operations of a loop are listed for every iteration, and a fusion is one
    operation. Instructions that take no time (tuples, constants, bitcasts, scalars) are
    left out. The operation that starts a collective has the collective's `op` and
    `sent`.

    Args:
        text: what ``compiled.as_text()`` returns.
        mesh, trips: see `read`.

    Returns:
        A list of ScheduledOp.

    Raises:
        ValueError: the text is not optimised HLO, is not scheduled, can't be read by
            `read` or `flops`, or has a conditional, whose order is not known.

    Assumes:
        The text is a schedule, with ``is_scheduled=true`` in its first line, as XLA
        writes it for TPUs, GPUs and CPUs.

    >>> text = '''HloModule jit_f, is_scheduled=true
    ... ENTRY %main (a: bf16[8,16], b: bf16[16,4]) -> bf16[8,4] {
    ...   %a = bf16[8,16]{1,0} parameter(0)
    ...   %b = bf16[16,4]{1,0} parameter(1)
    ...   ROOT %c = bf16[8,4]{1,0:S(1)} dot(%a, %b), lhs_contracting_dims={1}
    ... }'''
    >>> (dot,) = schedule(text, {"X": 1})
    >>> dot.line, dot.flops, dot.hbm, dot.vmem
    ('%c = bf16[8,4]S(1) dot(%a, %b)', 1024.0, 384.0, 64.0)
    """
    module = parse(text)
    head, _, _ = text.lstrip().partition("\n")
    if "is_scheduled=true" not in head:
        raise ValueError(f"HLO text: {head[:60]!r} does not say is_scheduled=true")
    launches: dict[str, list[CompiledCollective]] = {}
    for one in read(text, mesh, trips):
        launches.setdefault(one.instruction, []).append(one)
    return list(_ops(module, module.entry, unknown, dict(trips or {}), launches))


def _ops(
    module: Module,
    where: Computation,
    arguments: Arguments,
    trips: Mapping[str, int],
    launches: Mapping[str, list[CompiledCollective]],
) -> Iterator[ScheduledOp]:
    """The operations of one run of `where`."""
    lines = list(where.instructions.values())
    for at, line in enumerate(lines):
        with taken_apart(line):
            if line.opcode == "conditional":
                raise ValueError("the order of a conditional is not known")
            if line.opcode == "while":
                body = condition_and_body(module, line)[1]
                known = body_arguments(module, where, line, arguments)
                once = list(_ops(module, body, known, trips, launches))
                if once:
                    turns = turns_of(module, where, line, arguments, trips, "work")
                    for _ in range(turns):
                        yield from once
            elif not _silent(line):
                yield _op(module, where, line, lines[:at], trips, launches)


def _silent(line: Instruction) -> bool:
    target = line.attribute(r'custom_call_target="([^"]*)"')
    if line.opcode in _SILENT or (line.opcode == "custom-call" and target in _NO_WORK):
        return True
    return all(not sizes for _, sizes in line.shapes)


def _op(
    module: Module,
    where: Computation,
    line: Instruction,
    above: list[Instruction],
    trips: Mapping[str, int],
    launches: Mapping[str, list[CompiledCollective]],
) -> ScheduledOp:
    begun = [
        one.name for one in above if ends(module, one, line) and started(module, one)
    ]
    fetched = line.opcode.endswith("-done") and not begun
    cycles = line.attribute(_CYCLES)
    found = ScheduledOp(
        line.name,
        _short(line),
        matmul=multiplies(module, line),
        flops=flops_of(module, where, line, trips),
        cycles=None if cycles is None else int(cycles),
        ends=begun[-1] if begun else line.operands[0] if fetched else "",
    )
    if found.ends:
        return found
    if line.opcode in _FETCHES:
        dtype, sizes, _ = _arrays(line)[line.opcode != "copy-start"]
        return replace(found, hbm=_bytes(dtype, sizes), begins=True)
    moving = [line] if moves(line) else [o for o in inside(module, line) if moves(o)]
    sends = [one for moved in moving for one in launches.get(moved.name, ())]
    if sends:
        found = replace(
            found,
            op=sends[0].collective.op,
            sent=sum(one.collective.sent for one in sends),
            shift=sends[0].shift,
            begins=bool(started(module, line)),
        )
    hbm, vmem = _traffic(module, where, line)
    return found if found.begins else replace(found, hbm=hbm, vmem=vmem)


def _traffic(
    module: Module, where: Computation, line: Instruction
) -> tuple[float, float]:
    """Bytes of operands and results in HBM and in VMEM.

    The buffers that a fusion only passes on, to continue a collective, don't count.
    """
    operands = where.operands(line)
    results = _arrays(line)
    if line.opcode == "fusion" and len(line.callees) == 1:
        body = module.computations[line.callees[0]]
        passed, kept = _handed_on(body)
        operands = [one for n, one in enumerate(operands) if n not in passed]
        if body.root.opcode == "tuple":
            results = [one for n, one in enumerate(results) if n in kept]
    arrays = results + [array for one in operands for array in _arrays(one)]
    hbm = sum(_bytes(dtype, sizes) for dtype, sizes, space in arrays if not space)
    vmem = sum(_bytes(dtype, sizes) for dtype, sizes, space in arrays if space == 1)
    return float(hbm), float(vmem)


def _handed_on(body: Computation) -> tuple[set[int], set[int]]:
    """Numbers of the parameters that a fusion only passes on, and of its results."""
    moving = {
        name
        for one in body.instructions.values()
        if moves(one)
        for name in (one.name, *one.operands)
    }
    ours = body.operands(body.root) if body.root.opcode == "tuple" else []
    given = {one.name for one in ours if one.opcode == "parameter"} | moving
    parameters = [o for o in body.instructions.values() if o.opcode == "parameter"]
    passed = {int(one.inside) for one in parameters if one.name in given}
    kept = {n for n, one in enumerate(ours) if one.name not in given}
    return passed, kept


def _arrays(line: Instruction) -> list[tuple[str, tuple[int, ...], int]]:
    """(dtype, sizes, memory space) of each array in the shape. 0 is HBM, 1 is VMEM."""
    found = []
    for dtype, dims, layout in _PLACED.findall(line.shape):
        space = _SPACE.search(layout or "")
        sizes = tuple(int(size) for size in dims.split(",") if size)
        if bits(dtype):
            found.append((dtype, sizes, int(space[1]) if space else 0))
    return found


def _bytes(dtype: str, sizes: tuple[int, ...]) -> float:
    return prod(sizes) * bits(dtype) / 8


def _short(line: Instruction) -> str:
    """The line without layouts and attributes, except S(1) for arrays in VMEM."""

    shown = [
        f"{dtype}[{','.join(map(str, sizes))}]" + "S(1)" * (space == 1)
        for dtype, sizes, space in _arrays(line)
        if sizes
    ]
    shape = shown[0] if len(shown) == 1 else f"({', '.join(shown)})"
    names = ", ".join(f"%{name}" for name in line.operands)
    return f"%{line.name} = {shape} {line.opcode}({names})"
