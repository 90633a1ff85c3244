"""Parses the text of a compiled HLO module into computations and instructions.

An instruction keeps its operands and attributes as text and parses them when they are
needed. JAX prints this text with ``jax.jit(f).lower(…).compile().as_text()``.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import prod

_OPCODE = re.compile(r" ([a-z][\w-]*)\(")
_ARRAY = re.compile(r"\b([a-z]+\d*\w*)\[([\d,]*)\]")
_NAME = re.compile(r"%([^\s,(){}=]+)")
_CALLEES = re.compile(
    r"\b(?:calls|to_apply|body|condition|true_computation|false_computation"
    r"|branch_computations|called_computations)=(\{[^}]*\}|%[^\s,]+)"
)
_LEFT = re.compile(r"\s*(ROOT )?%([^\s,(){}=]+)")
_LINE = re.compile(r"\s+(?:ROOT )?%\S+ = ")
_CLOSES = re.compile(r"\s*|\}|\}, execution_thread=.*")  # blank, or a computation's end
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NEEDED = {  # attributes without which an instruction can't be read
    "while": r"\bcondition=%.*\bbody=%|\bbody=%.*\bcondition=%",
    "fusion": r"\bcalls=%",
    "call": r"\bto_apply=%",
    "get-tuple-element": r"\bindex=\d+",
    "compare": r"\bdirection=(LT|LE|GT|GE|EQ|NE)\b",
}


class UnreadableLineError(ValueError):
    """A line of HLO text can't be read. The message quotes it."""

    def __init__(self, line: object, why: object):
        words = " ".join(str(line).split())
        short = words if len(words) <= 200 else f"{words[:200]}…"
        super().__init__(f"{why}; in the line {short!r} of the HLO text")


class UnknownTurnsError(ValueError):
    """Neither the text nor the caller says how many iterations a loop has."""


# Errors that parsing may raise for a line that is not HLO.
BROKEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


@contextmanager
def taken_apart(line: object) -> Iterator[None]:
    """While `line` is read, turn the errors in BROKEN into ones that quote the line.

    Raises:
        UnreadableLineError: raised instead of such an error, but not instead of an
            UnknownTurnsError.
    """
    try:
        yield
    except (UnknownTurnsError, UnreadableLineError):
        raise
    except BROKEN as error:
        raise UnreadableLineError(line, error) from error


@dataclass(frozen=True)
class Instruction:
    """One line, `name = shape opcode(rest`, whose parts are parsed when needed."""

    name: str
    shape: str
    opcode: str
    rest: str

    @cached_property
    def _end(self) -> int:
        """Where the operands end: the position of the closing parenthesis."""
        depth = 1
        for match in re.finditer(r"[()]", self.rest):
            depth += 1 if match[0] == "(" else -1
            if not depth:
                return match.start()
        raise UnreadableLineError(self, f"no closing parenthesis for %{self.name}")

    def __str__(self) -> str:
        return f"%{self.name} = {self.shape} {self.opcode}({self.rest}"

    @property
    def inside(self) -> str:
        """The text between the parentheses, for example a constant's value."""
        return self.rest[: self._end]

    @cached_property
    def operands(self) -> list[str]:
        return [] if self.opcode == "constant" else _NAME.findall(self.inside)

    @property
    def attributes(self) -> str:
        return self.rest[self._end + 1 :]

    @cached_property
    def callees(self) -> list[str]:
        """Computations named in the attributes, in order."""
        before, _, _ = self.rest.partition(" backend_config=")  # the longest part
        return _NAME.findall(" ".join(_CALLEES.findall(before)))

    def attribute(self, pattern: str) -> str | None:
        """Group 1 of the regular expression `pattern` in the attributes, or None."""
        match = re.search(pattern, self.attributes)
        return match[1] if match else None

    @property
    def arrays(self) -> list[tuple[str, float]]:
        """(dtype, bytes) of each array in the shape, without tokens.

        >>> Instruction("x", "(f32[8,2]{1,0}, token[], s4[10])", "tuple", ")").arrays
        [('f32', 64.0), ('s4', 5.0)]
        """
        return [(dtype, prod(sizes) * bits(dtype) / 8) for dtype, sizes in self.shapes]

    @property
    def shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """(dtype, sizes) of each array in the shape, without tokens."""
        return [
            (dtype, tuple(int(size) for size in dims.split(",") if size))
            for dtype, dims in _ARRAY.findall(self.shape)
            if bits(dtype)
        ]


@dataclass(frozen=True)
class Computation:
    """Instructions by name, in order. The computation returns the result of `root`."""

    name: str
    instructions: dict[str, Instruction]
    root: Instruction

    def operands(self, instruction: Instruction) -> list[Instruction]:
        """The instructions of this computation whose results `instruction` uses."""
        return [self.instructions[name] for name in instruction.operands]


@dataclass(frozen=True)
class Module:
    """A compiled module.

    Args:
        computations: its computations by name.
        entry: the computation with which it starts.
        partitions: the number of devices that it was compiled for. If slices are joined
            by a data-centre network, this is the number of devices of one slice.
    """

    computations: dict[str, Computation]
    entry: Computation
    partitions: int

    @property
    def instructions(self) -> Iterator[Instruction]:
        """Every line of every computation."""
        for computation in self.computations.values():
            yield from computation.instructions.values()


def parse(text: str) -> Module:
    """Parse the text of an optimised HLO module.

    Args:
        text: what ``compiled.as_text()`` returns.

    Raises:
        ValueError: the text is not HLO, is cut off, or has a line that can't be read.

    >>> parse("module @jit_f { }")
    Traceback (most recent call last):
    ValueError: not HLO text: 'module @jit_f { }'. This looks like StableHLO, what \
goes into the compiler; pass jax.jit(f).lower(…).compile().as_text()
    """
    if not isinstance(text, str) or not text.lstrip().startswith("HloModule"):
        raise ValueError(_not_hlo(text))
    head, _, _ = text.lstrip().partition("\n")
    computations: dict[str, Computation] = {}
    entry = name = root = None
    body: dict[str, Instruction] = {}
    for line in _whole_lines(text):
        if name is None:
            if line.endswith("{") and line.startswith(("%", "ENTRY %")):
                name = _computation(line, computations)
                entry = name if line.startswith("ENTRY") else entry
                body, root = {}, None
            elif _LINE.match(line) or line.startswith("}"):
                raise UnreadableLineError(line, "it is outside of any computation")
        elif line.startswith("}"):
            if root is None:
                raise ValueError(f"HLO text: computation %{name} has no ROOT line")
            computations[name] = Computation(name, body, root)
            name = None
        elif line.strip():
            instruction = _instruction(line, name)
            _check(line, instruction, body, computations)
            body[instruction.name] = instruction
            root = instruction if line.lstrip().startswith("ROOT ") else root
    if name is not None or entry is None:
        where = f"inside %{name}" if name else "without an ENTRY computation"
        raise ValueError(f"HLO text is cut off: it ends {where}")
    return Module(computations, computations[entry], _partitions(head))


def _whole_lines(text: str) -> Iterator[str]:
    """Lines, with those of one instruction joined: kernel metadata may span several."""
    held = ""
    for line in text.splitlines():
        if held and (_LINE.match(line) or _CLOSES.fullmatch(line)):
            raise UnreadableLineError(held, "a brace is not closed")
        held = f"{held} {line}" if held else line
        if not (_LINE.match(held) and _opens_a_brace(held)):
            yield held
            held = ""
    if held:
        raise UnreadableLineError(held, "cut off: a brace is not closed")


def _opens_a_brace(line: str) -> bool:
    if line.count("{") == line.count("}"):
        return False
    bare = _QUOTED.sub("", line)
    return bare.count("{") > bare.count("}")


def _computation(line: str, others: dict[str, Computation]) -> str:
    """The name of the computation that `line` begins."""
    found = _NAME.search(line)
    if found is None or found[1] in others:
        raise UnreadableLineError(line, "a computation without a unique name")
    return found[1]


def _instruction(line: str, where: str) -> Instruction:
    left, _, right = line.partition(" = ")
    opcode, named = _OPCODE.search(right), _LEFT.fullmatch(left)
    if opcode is None or named is None:
        raise UnreadableLineError(line.strip(), f"cannot read a line of %{where}")
    shape, rest = right[: opcode.start()], right[opcode.end() :]
    return Instruction(named[2], shape, opcode[1], rest)


def _check(
    line: str,
    instruction: Instruction,
    above: dict[str, Instruction],
    computations: dict[str, Computation],
) -> None:
    """Raise unless everything that `instruction` uses is defined above it."""
    if instruction.name in above:
        raise UnreadableLineError(line, f"%{instruction.name} is defined twice")
    for operand in instruction.operands:
        if operand not in above:
            raise UnreadableLineError(line, f"%{operand} is not defined above")
    for callee in instruction.callees:
        if callee not in computations:
            raise UnreadableLineError(line, f"no computation %{callee} above it")
    needed = _NEEDED.get(instruction.opcode)
    if needed and not re.search(needed, instruction.attributes):
        raise UnreadableLineError(line, f"{instruction.opcode} lacks an attribute")


def _partitions(head: str) -> int:
    """The number of devices that the module was compiled for, from its first line."""
    counts = re.findall(r"\b(?:num_partitions|replica_count)=(\d+)", head)
    if len(counts) > 1:
        raise ValueError(
            f"HLO text has both replicas and partitions ({head[:60]}…); compile with "
            "jax.jit, which uses only partitions"
        )
    if counts and not int(counts[0]):
        raise UnreadableLineError(head, "compiled for no device")
    return int(counts[0]) if counts else 1


def bits(dtype: str) -> int:
    """Bits of a value, or 0 for tokens and other types that aren't arrays."""
    if dtype == "pred":
        return 8
    found = re.search(r"\d+", dtype)
    return int(found[0]) if found else 0


def _not_hlo(text: object) -> str:
    want = "pass jax.jit(f).lower(…).compile().as_text()"
    if not isinstance(text, str):
        return f"not HLO text but a {type(text).__name__}: {want}"
    start = text.strip()[:60]
    if "stablehlo" in text or "@" in start:
        stage = "This looks like StableHLO, what goes into the compiler; "
    elif start.startswith("{ lambda"):
        stage = "This looks like a jaxpr; "
    else:
        stage = ""
    return f"not HLO text: {start!r}. {stage}{want}"
