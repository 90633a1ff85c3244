"""Questions for a JAX function on one chip, graded on what it compiles to."""

import base64
import random
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .calling import describe
from .question import Finding, Question, code_or, unusable

_MOST_BYTES = 2**30  # that a compiled answer may take to run


@dataclass(frozen=True, kw_only=True)
class Compiled(Question):
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

    shapes: Callable[[random.Random], tuple[tuple[int, ...], ...]]
    spec: Callable
    at_most: Callable[..., Mapping[str, float]]
    rtol: float = 1e-4
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
