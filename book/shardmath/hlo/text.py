"""The text of a compiled HLO module, taken apart: computations and instructions.

Only as deep as needed: an instruction keeps its operands and attributes as text until
somebody asks. JAX prints this text with ``jax.jit(f).lower(…).compile().as_text()``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

_OPCODE = re.compile(r" ([a-z][\w-]*)\(")
_ARRAY = re.compile(r"\b([a-z]+\d*\w*)\[([\d,]*)\]")
_NAME = re.compile(r"%([^\s,(){}=]+)")
_CALLEES = re.compile(
    r"\b(?:calls|to_apply|body|condition|true_computation|false_computation"
    r"|branch_computations|called_computations)=(\{[^}]*\}|%[^\s,]+)"
)


@dataclass(frozen=True)
class Instruction:
    """One line, `name = shape opcode(rest`, taken apart when asked."""

    name: str
    shape: str
    opcode: str
    rest: str

    @cached_property
    def _end(self) -> int:
        """Where the operands end: the parenthesis that closes the opcode's."""
        depth = 1
        for match in re.finditer(r"[()]", self.rest):
            depth += 1 if match[0] == "(" else -1
            if not depth:
                return match.start()
        raise ValueError(
            f"HLO text: no closing parenthesis in the line of %{self.name}"
        )

    @property
    def inside(self) -> str:
        """The text between the parentheses, a constant's value for one."""
        return self.rest[: self._end]

    @property
    def operands(self) -> list[str]:
        return _NAME.findall(self.inside)

    @property
    def attributes(self) -> str:
        return self.rest[self._end + 1 :]

    @property
    def callees(self) -> list[str]:
        """Computations named in the attributes, in the order written."""
        before, _, _ = self.rest.partition(" backend_config=")  # the longest part
        return _NAME.findall(" ".join(_CALLEES.findall(before)))

    def attribute(self, pattern: str) -> str | None:
        """Group 1 of the regular expression `pattern` in the attributes."""
        match = re.search(pattern, self.attributes)
        return match[1] if match else None

    @property
    def arrays(self) -> list[tuple[str, float]]:
        """(dtype, bytes) of each array in the shape, tokens left out.

        >>> Instruction("x", "(f32[8,2]{1,0}, token[], s4[10])", "tuple", ")").arrays
        [('f32', 64.0), ('s4', 5.0)]
        """
        return list(_arrays(self.shape))


@dataclass(frozen=True)
class Computation:
    """Instructions by name, in the order written; `root` is what it returns."""

    name: str
    instructions: dict[str, Instruction]
    root: Instruction

    def operands(self, instruction: Instruction) -> list[Instruction]:
        """The instructions of this computation whose results `instruction` uses."""
        return [self.instructions[name] for name in instruction.operands]


@dataclass(frozen=True)
class Module:
    """A compiled module: computations by name, and where it starts.

    Args:
        partitions: devices that it was compiled for (of one slice, where slices are
            joined by a data-centre network).
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
    """Take the text of an optimised HLO module apart.

    Args:
        text: what ``compiled.as_text()`` returns.

    Raises:
        ValueError: the text is not HLO, is cut off, or has a line that cannot be read.

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
    for line in text.splitlines():
        if name is None:
            if line.endswith("{") and line.startswith(("%", "ENTRY %")):
                name = _NAME.search(line)[1]
                entry = name if line.startswith("ENTRY") else entry
                body, root = {}, None
        elif line.startswith("}"):
            if root is None:
                raise ValueError(f"HLO text: computation %{name} has no ROOT line")
            computations[name] = Computation(name, body, root)
            name = None
        elif line.strip():
            instruction = _instruction(line, name)
            body[instruction.name] = instruction
            root = instruction if line.lstrip().startswith("ROOT ") else root
    if name is not None or entry is None:
        where = f"inside %{name}" if name else "without an ENTRY computation"
        raise ValueError(f"HLO text: cut off, it ends {where}")
    counts = re.findall(r"\b(?:num_partitions|replica_count)=(\d+)", head)
    partitions = int(counts[0]) if counts else 1
    if len(counts) > 1:
        raise ValueError(
            f"HLO text: replicas and partitions at once ({head[:60]}…); compile with "
            "jax.jit, which uses partitions alone"
        )
    return Module(computations, computations[entry], partitions)


def _instruction(line: str, where: str) -> Instruction:
    left, _, right = line.partition(" = ")
    opcode = _OPCODE.search(right)
    name = left.split("%")[-1]
    if opcode is None or "%" not in left:
        raise ValueError(f"HLO text: cannot read {line.strip()[:80]!r} in %{where}")
    return Instruction(name, right[: opcode.start()], opcode[1], right[opcode.end() :])


def _arrays(shape: str) -> Iterator[tuple[str, float]]:
    for dtype, dims in _ARRAY.findall(shape):
        bits = re.search(r"\d+", dtype)
        if bits is None and dtype != "pred":
            continue  # token, opaque
        count = 1
        for size in filter(None, dims.split(",")):
            count *= int(size)
        yield dtype, count * (int(bits[0]) if bits else 8) / 8


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
