"""Finds how many iterations a while loop of compiled HLO has.

On CPUs and GPUs the compiler writes the count (`known_trip_count`), so it is read. On
TPUs it is found by computing the loop's counter in each iteration. The integers on
which the condition depends start at known values, and the body changes them by simple
arithmetic.
"""

import re
from collections.abc import Callable, Mapping

from .text import Computation, Instruction, Module, UnknownTurnsError

# A computation's known arguments: (number, index in the tuple …) → integer or None.
Arguments = Callable[[int, tuple[int, ...]], int | None]

LONGEST = 100_000  # iterations of a loop that are computed at most

_ARITHMETIC = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "minimum": min,
    "maximum": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    "negate": lambda a: -a,
}
_COMPARE = {
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
}
_SAME = {"copy", "bitcast", "reshape", "copy-start", "copy-done"}


def unknown(number: int, index: tuple[int, ...]) -> None:
    """The `Arguments` of a computation if none are known."""


def turns_of(
    module: Module,
    caller: Computation,
    loop: Instruction,
    arguments: Arguments,
    trips: Mapping[str, int],
    holds: str,
) -> int:
    """How many iterations `loop` has, according to `trips` or to the text.

    Raises:
        UnknownTurnsError: neither gives the number. The message says what the loop
            `holds`.
    """
    if loop.name in trips:
        return trips[loop.name]
    turns = trip_count(module, caller, loop, arguments)
    if turns is None:
        raise UnknownTurnsError(
            f"the loop %{loop.name} holds {holds}, and its number of iterations can't "
            f'be derived from the text: give it as trips={{"{loop.name}": …}}'
        )
    return turns


def trip_count(
    module: Module, caller: Computation, loop: Instruction, arguments: Arguments
) -> int | None:
    """How many iterations `loop` has in each run, or None if that depends on data.

    Args:
        module: all computations.
        caller: the computation that `loop` is in.
        loop: a `while` instruction.
        arguments: the caller's known arguments.
    """
    if known := loop.attribute(r'"known_trip_count":\{"n":"(\d+)"\}'):
        return int(known)
    condition, body = condition_and_body(module, loop)
    (start,) = caller.operands(loop)
    state: dict[tuple[int, ...], int | None] = {}

    def now(number: int, index: tuple[int, ...]) -> int | None:
        if index not in state:  # first use, so its value before the first iteration
            state[index] = integer(module, caller, start, index, arguments)
        return state[index]

    for turn in range(LONGEST):
        going = integer(module, condition, condition.root, (), now)
        if going is None:
            return None
        if not going:
            return turn
        after = {}
        while missing := state.keys() - after.keys():  # computing one may need others
            for index in missing:
                after[index] = integer(module, body, body.root, index, now)
        if all(state[index] == value for index, value in after.items()):
            return None  # nothing changes, so the loop never ends
        state.update(after)
    return None


def condition_and_body(
    module: Module, loop: Instruction
) -> tuple[Computation, Computation]:
    """The two computations of a `while`."""
    names = (loop.attribute(rf"\b{role}=%([^\s,]+)") for role in ("condition", "body"))
    condition, body = (module.computations[name] for name in names)
    return condition, body


def body_arguments(
    module: Module, caller: Computation, loop: Instruction, arguments: Arguments
) -> Arguments:
    """Arguments known in every iteration: those that the body passes on unchanged."""
    _, body = condition_and_body(module, loop)
    (start,) = caller.operands(loop)

    def known(number: int, index: tuple[int, ...]) -> int | None:
        if _handed_on(body, index):
            return integer(module, caller, start, index, arguments)
        return None

    return known


def callee_arguments(
    module: Module, caller: Computation, call: Instruction, arguments: Arguments
) -> Arguments:
    """The known arguments that a fusion or call passes to its computation."""

    def known(number: int, index: tuple[int, ...]) -> int | None:
        operand = caller.operands(call)[number]
        return integer(module, caller, operand, index, arguments)

    return known


def integer(
    module: Module,
    where: Computation,
    result: Instruction,
    index: tuple[int, ...],
    arguments: Arguments,
) -> int | None:
    """The value of a scalar `result`, or of its part `index`; None if it is unknown."""

    def part(operand: Instruction, index: tuple[int, ...] = ()) -> int | None:
        return integer(module, where, operand, index, arguments)

    opcode = result.opcode
    if opcode == "parameter":
        return arguments(int(result.inside), index)
    if opcode == "constant":
        return _constant(result.inside)
    if opcode == "get-tuple-element":
        at = int(result.attribute(r"\bindex=(\d+)"))
        return part(*where.operands(result), (at, *index))
    if opcode == "tuple":
        return part(where.operands(result)[index[0]], index[1:])
    if opcode == "opt-barrier":
        return part(*where.operands(result), index)
    if opcode in ("fusion", "call"):
        inner = module.computations[result.callees[0]]
        given = callee_arguments(module, where, result, arguments)
        return integer(module, inner, inner.root, index, given)
    if opcode == "while":
        _, body = condition_and_body(module, result)
        return part(*where.operands(result), index) if _handed_on(body, index) else None
    if opcode == "convert":
        value = part(*where.operands(result))
        return None if value is None else _as_stored(value, result.shape)
    if opcode in _SAME:
        return part(where.operands(result)[0])
    if opcode in _ARITHMETIC or opcode in ("compare", "select"):
        values = [part(operand) for operand in where.operands(result)]
        return None if None in values else _compute(result, values)
    return None


def _compute(result: Instruction, values: list[int]) -> int | None:
    if result.opcode == "compare":
        return int(_COMPARE[result.attribute(r"direction=(\w+)")](*values))
    if result.opcode == "select":
        chosen, yes, no = values
        return yes if chosen else no
    return _as_stored(_ARITHMETIC[result.opcode](*values), result.shape)


def _constant(text: str) -> int | None:
    if text in ("true", "false"):
        return int(text == "true")
    return int(text) if text.lstrip("-").isdigit() else None


def _as_stored(value: int, shape: str) -> int | None:
    """`value` wrapped around to the bits of an HLO scalar."""
    if shape.startswith("pred[]"):
        return value & 1
    kind = re.match(r"([su])(\d+)\[\]", shape)
    if kind is None:
        return None
    bits = int(kind[2])
    value %= 1 << bits
    return value - (1 << bits) if kind[1] == "s" and value >> (bits - 1) else value


def _handed_on(body: Computation, index: tuple[int, ...]) -> bool:
    """Whether the body returns part `index` of its state unchanged."""
    if body.root.opcode != "tuple" or not index:
        return False
    part = body.operands(body.root)[index[0]]
    while part.opcode in _SAME:
        part = body.operands(part)[0]
    return (
        part.opcode == "get-tuple-element"
        and part.attribute(r"\bindex=(\d+)") == str(index[0])
        and body.operands(part)[0].opcode == "parameter"
    )
