"""Counts the floating-point operations that a compiled program executes."""

import re
from collections.abc import Mapping
from math import prod

from .reading import CALLS, check_names
from .text import Computation, Instruction, Module, parse, taken_apart
from .trip_counts import (
    Arguments,
    body_arguments,
    callee_arguments,
    condition_and_body,
    turns_of,
    unknown,
)

_EACH = {  # one operation for each value of the result
    "abs",
    "add",
    "atan2",
    "cbrt",
    "ceil",
    "cosine",
    "divide",
    "erf",
    "exponential",
    "exponential-minus-one",
    "floor",
    "log",
    "log-plus-one",
    "logistic",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "power",
    "remainder",
    "rsqrt",
    "sine",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
}
_LABELS = r"dim_labels=(\w+->\w+)"
_WINDOW = r"\bwindow=\{([^}]*)\}"
_NOT_COUNTED = {"cholesky", "fft", "select-and-scatter", "triangular-solve"}
_HARMLESS = {  # custom calls that compute nothing
    "AllocateBuffer",
    "AsyncCollectiveDone",
    "AsyncCollectiveStart",
    "ConcatBitcast",
    "PrepareAsyncCallDone",
    "PrepareAsyncCallStart",
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
}


def flops(text: str, trips: Mapping[str, int] | None = None) -> float:
    """FLOPs that one device executes in one run of a compiled program.

    A matmul counts as 2 · values of the result · contracted sizes. Other floating-point
    arithmetic, including exp and sqrt, counts as one operation per value, and a sum
    over n values as n − 1. A loop's body counts in every iteration, unlike in XLA's
    `cost_analysis`, which counts it once. In a conditional, only the branch with the
    most FLOPs counts. Comparisons, conversions, integers outside matmuls and the
    additions of collectives are not counted.

    Args:
        text: what ``compiled.as_text()`` returns.
        trips: name of a `while` instruction → its number of iterations, for loops whose
            end depends on data.

    Raises:
        ValueError: the text is not optimised HLO; a loop with arithmetic has a number
            of iterations that is neither known nor in `trips`; `trips` names an unknown
            instruction; or an operation can't be counted, such as a custom kernel.

    >>> text = '''HloModule jit_f
    ... ENTRY %main (a: f32[8,16], b: f32[16,4]) -> f32[8,4] {
    ...   %a = f32[8,16]{1,0} parameter(0)
    ...   %b = f32[16,4]{1,0} parameter(1)
    ...   ROOT %c = f32[8,4]{1,0} dot(%a, %b), lhs_contracting_dims={1}
    ... }'''
    >>> flops(text)
    1024.0
    """
    module = parse(text)
    check_names(module, trips or {})
    return float(_run(module, module.entry, unknown, dict(trips or {})))


def flops_of(
    module: Module, where: Computation, line: Instruction, trips: Mapping[str, int]
) -> float:
    """FLOPs of one run of one instruction, including everything that it calls."""
    return float(_of(module, where, line, unknown, trips))


def _run(
    module: Module, where: Computation, arguments: Arguments, trips: Mapping[str, int]
) -> float:
    """FLOPs of one run of `where`."""
    total = 0.0
    for line in where.instructions.values():
        with taken_apart(line):
            total += _of(module, where, line, arguments, trips)
    return total


def _of(
    module: Module,
    where: Computation,
    line: Instruction,
    arguments: Arguments,
    trips: Mapping[str, int],
) -> float:
    """FLOPs of one instruction, including everything that it calls."""

    def inside(name: str, known: Arguments = unknown) -> float:
        return _run(module, module.computations[name], known, trips)

    opcode = line.opcode
    if opcode in _NOT_COUNTED:
        raise ValueError(f"the FLOPs of {opcode} are not counted")
    if opcode in _EACH:
        return _values(line) if _has_a_point(line) else 0.0
    if opcode == "dot":
        return 2 * _values(line) * _contracted(where, line)
    if opcode == "convolution":
        return 2 * _terms(where, line)
    if opcode == "while":
        condition, body = condition_and_body(module, line)
        known = body_arguments(module, where, line, arguments)
        once, tested = inside(body.name, known), inside(condition.name, known)
        if not once and not tested:
            return 0.0
        turns = turns_of(module, where, line, arguments, trips, "arithmetic")
        return turns * once + (turns + 1) * tested
    if opcode == "conditional":
        return max(map(inside, line.callees))
    if opcode in ("reduce", "reduce-window", "map", "scatter"):
        return sum(map(inside, line.callees)) * _applied(where, line)
    if opcode == "custom-call" and not line.callees and _has_a_point(line):
        target = line.attribute(r'custom_call_target="([^"]*)"')
        if target not in _HARMLESS:
            raise ValueError(f"the FLOPs of the custom call {target} are not counted")
    if opcode in CALLS:
        known = callee_arguments(module, where, line, arguments)
        return sum(inside(name, known) for name in line.callees)
    return 0.0


def _values(line: Instruction) -> int:
    return sum(prod(sizes) for _, sizes in line.shapes)


def _has_a_point(line: Instruction) -> bool:
    return any(dtype[0] in "fbc" for dtype, _ in line.shapes)


def _contracted(where: Computation, line: Instruction) -> int:
    """Terms of each sum of a `dot`."""
    sizes = where.operands(line)[0].shapes[0][1]
    dims = line.attribute(r"lhs_contracting_dims=\{([\d,]*)\}") or ""
    return prod(sizes[int(dim)] for dim in dims.split(",") if dim)


def _terms(where: Computation, line: Instruction) -> int:
    """Products that a `convolution` adds up, except those with padding or holes.

    XLA:TPU writes a matmul with batch dimensions as a convolution. Its window slides
    over holes (`lhs_dilate`) or padding, so only one of its places meets a value.
    """
    data, kernel = (operand.shapes[0][1] for operand in where.operands(line))
    out = line.shapes[0][1]
    of_data, of_kernel, of_out = re.split("_|->", line.attribute(_LABELS))
    window = dict(re.findall(r"(\w+)=([\dx_-]+)", line.attribute(_WINDOW) or ""))
    every = kernel[of_kernel.index("i")] * out[of_out.index("b")]
    every *= out[of_out.index("f")]
    for dim in filter(str.isdigit, of_out):
        sizes = data[of_data.index(dim)], out[of_out.index(dim)]
        fields = {k: v.split("x")[int(dim)] for k, v in window.items()}
        every *= _touched(*sizes, fields)
    return every


def _touched(data: int, out: int, window: Mapping[str, str]) -> int:
    """Along one dimension, how often a place of the window meets a value of `data`.

    Output p and place k of the window meet at position p·stride + k·rhs_dilate −
    padding. There is a value at every lhs_dilate-th position.
    """
    size, stride, holes, apart = (
        int(window.get(name, 1))
        for name in ("size", "stride", "lhs_dilate", "rhs_dilate")
    )
    before = int(window.get("pad", "0_0").split("_")[0])
    return sum(
        at % holes == 0 and 0 <= at // holes < data
        for p in range(out)
        for at in range(p * stride - before, p * stride - before + size * apart, apart)
    )


def _applied(where: Computation, line: Instruction) -> float:
    """How often a reduction runs the computation that it applies."""
    operands = where.operands(line)
    out = line.shapes[0][1]
    if line.opcode == "reduce":
        return max(prod(operands[0].shapes[0][1]) - prod(out), 0)
    if line.opcode == "reduce-window":
        window = line.attribute(r"\bsize=([\dx]+)")
        return prod(out) * (prod(int(n) for n in window.split("x")) - 1)
    if line.opcode == "scatter":
        return prod(operands[-1].shapes[0][1])
    return prod(out)
