"""What stands between the start and the end of an asynchronous collective."""

from dataclasses import dataclass

from .text import Computation, Instruction, Module, parse
from .transfers import moves

_PRODUCTS = ("dot", "convolution")
_MATMUL_CALLS = ("gemm", "matmul", "conv")  # in the target's name of a custom call


@dataclass(frozen=True)
class HloOverlap:
    """An asynchronous collective, and how many matmuls stand between start and end.

    Args:
        start, done: names of the two instructions.
        op: HLO's name of the collective, "all-gather" for one.
        matmuls: instructions between them that multiply matrices, in program order.
    """

    start: str
    done: str
    op: str
    matmuls: int


def overlaps(text: str) -> list[HloOverlap]:
    """Every start/done pair of a compiled program, in program order.

    The order of the text is the schedule, not the time: with a matmul between start and
    done there is something to hide the transfer behind, and whether it is long enough
    the text does not say. A loop's pair is listed once; a pair whose end stands in
    another computation, as pipelining over the turns of a loop makes them, is not.

    Args:
        text: what ``compiled.as_text()`` returns.

    Raises:
        ValueError: text that is not optimised HLO.

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
    """Is `line` the end of the collective that `start` begins?"""
    if start.opcode == "fusion":
        chains = [_link(one) for one in inside(module, start) if moves(one)]
        return _has_target(module, line, "AsyncCollectiveDone") and any(
            _link(one) in chains for one in inside(module, line) if moves(one)
        )
    return line.opcode.endswith("-done") and start.name in line.operands


def _link(line: Instruction) -> tuple[str | None, str | None]:
    """What the links of one chain of TPU fusions share."""
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
    """Instructions of the computations that `line` calls, theirs included."""
    found = []
    for name in line.callees:
        for one in module.computations[name].instructions.values():
            found += [one, *inside(module, one)]
    return found
