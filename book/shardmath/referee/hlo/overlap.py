"""Finds matmuls between the start and the end of asynchronous collectives."""

from dataclasses import dataclass

from .text import Computation, Instruction, Module, parse
from .transfers import moves

_PRODUCTS = ("dot", "convolution")
_MATMUL_CALLS = ("gemm", "matmul", "conv")  # parts of the targets of custom calls


@dataclass(frozen=True)
class HloOverlap:
    """An asynchronous collective, with the matmuls between its start and its end.

    Args:
        start, done: names of the two instructions.
        op: HLO's name of the collective, such as "all-gather".
        matmuls: the number of instructions between them that multiply matrices.
    """

    start: str
    done: str
    op: str
    matmuls: int


def overlaps(text: str) -> list[HloOverlap]:
    """Every start/done pair of a compiled program, in program order.

    The text gives the order of instructions but no times. A matmul between start and
    end can hide the transfer, but may be too short to hide all of it. A pair in a loop
    is listed once. A pair whose end is in another computation is left out, for example
    if the compiler pipelines over the iterations of a loop.

    Args:
        text: what ``compiled.as_text()`` returns.

    Raises:
        ValueError: the text is not optimised HLO.

    >>> text = '''HloModule jit_f, is_scheduled=true
    ... ENTRY %main (x: f32[4], a: f32[8,8]) -> f32[16] {
    ...   %x = f32[4]{0} parameter(0)
    ...   %a = f32[8,8]{1,0} parameter(1)
    ...   %start = (f32[4]{0}, f32[16]{0}) all-gather-start(%x), replica_groups={}
    ...   %b = f32[8,8]{1,0} dot(%a, %a), lhs_contracting_dims={1}
    ...   ROOT %done = f32[16]{0} all-gather-done(%start)
    ... }'''
    >>> overlaps(text)
    [HloOverlap(start='start', done='done', op='all-gather', matmuls=1)]
    """
    module = parse(text)
    return [
        found
        for where in module.computations.values()
        for found in _pairs(module, where)
    ]


def _pairs(module: Module, where: Computation) -> list[HloOverlap]:
    lines = list(where.instructions.values())
    found = []
    for at, line in enumerate(lines):
        op = started(module, line)
        if not op:
            continue
        for end, other in enumerate(lines[at + 1 :], at + 1):
            if ends(module, line, other):
                between = lines[at + 1 : end]
                matmuls = sum(multiplies(module, one) for one in between)
                found.append(HloOverlap(line.name, other.name, op, matmuls))
                break
    return found


def started(module: Module, line: Instruction) -> str:
    """The collective that `line` starts, or ""."""
    if line.opcode == "send" or line.opcode.endswith("-start"):
        if moves(line):
            return line.opcode.removesuffix("-start")
        inner = [one for one in inside(module, line) if moves(one)]
        return inner[0].opcode if inner else ""
    if line.opcode == "fusion" and _has_target(module, line, "AsyncCollectiveStart"):
        (inner,) = [one for one in inside(module, line) if moves(one)][:1] or [None]
        return inner.opcode if inner else ""
    return ""


def ends(module: Module, start: Instruction, line: Instruction) -> bool:
    """Whether `line` is the end of the collective that `start` begins."""
    if start.opcode == "fusion":
        chains = [_link(one) for one in inside(module, start) if moves(one)]
        return _has_target(module, line, "AsyncCollectiveDone") and any(
            _link(one) in chains for one in inside(module, line) if moves(one)
        )
    return line.opcode.endswith("-done") and start.name in line.operands


def _link(line: Instruction) -> tuple[str | None, str | None]:
    """The attributes that the fusions of one TPU chain share."""
    return line.attribute(r"(channel_id=\d+)"), line.attribute(r'chain_id="(\w+)"')


def multiplies(module: Module, line: Instruction) -> bool:
    if line.opcode == "custom-call":
        target = line.attribute(r'custom_call_target="([^"]*)"') or ""
        return any(word in target for word in _MATMUL_CALLS)
    return line.opcode in _PRODUCTS or any(
        one.opcode in _PRODUCTS for one in inside(module, line)
    )


def _has_target(module: Module, line: Instruction, target: str) -> bool:
    return line.opcode == "fusion" and any(
        f'custom_call_target="{target}"' in one.rest for one in inside(module, line)
    )


def inside(module: Module, line: Instruction) -> list[Instruction]:
    """Instructions of all computations that `line` calls, directly or indirectly."""
    found = []
    for name in line.callees:
        for one in module.computations[name].instructions.values():
            found += [one, *inside(module, one)]
    return found
