"""Questions for code whose cost is measured: what it moves, what it compiles to."""

import base64
import random
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .calling import describe, outcome
from .machine import Machine, Matrix
from .questions import Finding, Slip, code_or, unusable

_MOST_OPERATIONS = 200_000
_MOST_BYTES = 2**30  # that a compiled answer may take to run


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """A program for the counting machine, graded on what it writes and what it moves.

    The reader writes ``def program(machine, *sizes)``. Only its trace is judged: it is
    replayed on values that the program has never seen.

    Args:
        cases: sizes of one drawn case.
        capacity: bytes of scratchpad at these sizes.
        arrays: name → (rows, columns) at these sizes; filled with drawn whole numbers.
        result: called with the arrays at the start, by name; name → what it must hold
            at the end.
        at_most: most bytes that may move at these sizes.
        slips: bytes that a known clumsy program moves at these sizes.
    """

    id: str
    title: str
    cases: Callable[[random.Random], tuple]
    capacity: Callable[..., int]
    arrays: Callable[..., Mapping[str, tuple[int, int]]]
    result: Callable[..., Mapping[str, Matrix]]
    at_most: Callable[..., float]
    hint: str
    solution: str
    slips: tuple[Slip, ...] = ()
    draws: int = 3
    points: int = 1
    form = "Answer with a program for the machine; its bytes moved count."

    def draw(self, seed: str) -> list:
        rng = random.Random(f"{self.id} {seed}")
        return [list(self.cases(rng)) for _ in range(self.draws)]

    def machine(self, *sizes: int, rng: random.Random | None = None) -> Machine:
        """A fresh machine at these sizes, with drawn whole numbers in its memory."""
        rng = rng or random.Random(0)
        shapes = self.arrays(*sizes).items()
        filled = {
            name: [
                [float(rng.randint(-9, 9)) for _ in range(cols)] for _ in range(rows)
            ]
            for name, (rows, cols) in shapes
        }
        return Machine(self.capacity(*sizes), filled)

    def collect(self, answer: object, task: list) -> dict:
        if evidence := code_or(answer, "the program, without calling it"):
            return evidence
        runs = []
        for sizes in task:
            machine = self.machine(*sizes)
            ran = outcome(answer, [machine, *sizes])
            if len(machine.trace) > _MOST_OPERATIONS:
                ran = {"error": f"more than {_MOST_OPERATIONS:,} operations"}
            trace = {"trace": machine.trace}
            runs.append({"error": ran["error"]} if "error" in ran else trace)
        return {"runs": runs}

    def judge(self, evidence: dict, task: list) -> Finding:
        if finding := unusable(evidence, self.form):
            return finding
        moved = most = 0.0
        for sizes, run in zip(task, evidence["runs"], strict=True):
            if "error" in run:
                return Finding("wrong", f"at {_sizes(sizes)}: {run['error']}")
            machine = self.machine(*sizes, rng=random.Random(f"values {sizes}"))
            wanted = self.result(
                **{n: [r[:] for r in a] for n, a in machine.arrays.items()}
            )
            try:
                machine.replay(run["trace"])
            except (ValueError, MemoryError, IndexError, TypeError) as error:
                return Finding("invalid", f"the trace does not run: {error}")
            if difference := _difference(wanted, machine.arrays):
                return Finding("wrong", f"at {_sizes(sizes)}: {difference}")
            moved, most = machine.moved, self.at_most(*sizes)
            if moved > most:
                said = (
                    f"the result is right, but at {_sizes(sizes)} {moved:,} bytes "
                    f"move; at most {most:,.0f} are needed."
                )
                for slip in self.slips:
                    if moved == slip.wrong(*sizes):
                        return Finding("wrong", f"{said} {slip.says}", slip.name)
                return Finding("wrong", said)
        return Finding(
            "correct",
            f"the result is right, and {moved:,} bytes move at {_sizes(sizes)} "
            f"(at most {most:,.0f})",
        )


def _sizes(sizes: list) -> str:
    return f"size {sizes[0]}" if len(sizes) == 1 else f"sizes {tuple(sizes)}"


def _difference(wanted: Mapping[str, Matrix], arrays: Mapping[str, Matrix]) -> str:
    for name, rows in wanted.items():
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                got = arrays[name][i][j]
                if got != value:
                    return f"{name}[{i}, {j}] must be {value:g}, and is {got:g}."
    return ""


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A JAX function, graded on its result and on what XLA makes of it on a CPU.

    The evidence is the exported program (StableHLO), not what somebody says about it:
    the judge compiles it and runs it on arrays of its own.

    Args:
        shapes: the shapes of the float32 arguments of one drawn case.
        spec: the naive truth, on NumPy arrays.
        at_most: called with the shapes; key of XLA's cost analysis ("flops",
            "bytes accessed") → the most that is accepted.
        rtol: how far off a value may be, relative to the largest of the result.
    """

    id: str
    title: str
    shapes: Callable[[random.Random], tuple[tuple[int, ...], ...]]
    spec: Callable
    at_most: Callable[..., Mapping[str, float]]
    hint: str
    solution: str
    rtol: float = 1e-4
    points: int = 1
    form = "Answer with a JAX function; what it compiles to counts."

    def draw(self, seed: str) -> list:
        rng = random.Random(f"{self.id} {seed}")
        return [list(shape) for shape in self.shapes(rng)]

    def collect(self, answer: object, task: list) -> dict:
        if evidence := code_or(answer, "a JAX function, without calling it"):
            return evidence
        import jax  # not at the top: a page judges numbers without it
        from jax import export

        arguments = [jax.ShapeDtypeStruct(tuple(shape), "float32") for shape in task]
        try:
            program = export.export(jax.jit(answer), platforms=["cpu"])(*arguments)
        except Exception as error:  # the reader's own: anything may come
            return {"error": describe(error, answer)}
        return {"program": base64.b64encode(program.serialize()).decode()}

    def judge(self, evidence: dict, task: list) -> Finding:
        if finding := unusable(evidence, self.form):
            return finding
        if "error" in evidence:
            return Finding("wrong", f"your function raises {evidence['error']}")
        import jax
        import numpy as np
        from jax import export

        stored = base64.b64decode(evidence["program"])
        program = export.deserialize(bytearray(stored))
        shapes = [tuple(shape) for shape in task]
        if [a.shape for a in program.in_avals] != shapes or len(program.out_avals) != 1:
            return Finding("invalid", "the function must return one array")
        # Values that depend on the program: it cannot hold the results as constants.
        rng = np.random.default_rng(zlib.crc32(stored))
        arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
        with jax.default_device(jax.devices("cpu")[0]):
            compiled = jax.jit(program.call).lower(*arrays).compile()
            if compiled.memory_analysis().temp_size_in_bytes > _MOST_BYTES:
                return Finding("wrong", "the function needs more than 1 GiB to run")
            got = np.asarray(compiled(*arrays))
        wanted = np.asarray(self.spec(*arrays))
        at = ", ".join(str(list(shape)) for shape in shapes)
        if got.shape != wanted.shape:
            said = f"for {at} the shape is {list(got.shape)}, not {list(wanted.shape)}."
            return Finding("wrong", said)
        if not np.allclose(got, wanted, rtol=0, atol=self.rtol * abs(wanted).max()):
            return Finding("wrong", f"for {at} the values are not right.")
        costs = compiled.cost_analysis()
        said = []
        for key, most in self.at_most(*shapes).items():
            if costs[key] > most:
                return Finding(
                    "wrong",
                    f"the result is right, but for {at} XLA counts {costs[key]:,.0f} "
                    f"{key}; {most:,.0f} are enough.",
                )
            said.append(f"{most:,.0f} {key}")
        return Finding(
            "correct", f"the result is right, with at most {', '.join(said)}"
        )
