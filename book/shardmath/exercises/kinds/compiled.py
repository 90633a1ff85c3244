"""Questions whose answer is a JAX function for one chip, graded as compiled by XLA."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...referee.hlo import UnknownTurnsError
from . import jax_export
from .question import Finding, Question, code_or
from .slips import Slip


@dataclass(frozen=True, kw_only=True)
class Compiled(Question):
    """A JAX function, graded on its result and on the FLOPs of its compiled program.

    The evidence is the exported program (StableHLO). The judge compiles it for a CPU
    and runs it on new arrays.

    Args:
        shapes: draws the shapes of the float32 arguments of one case.
        spec: a naive function of NumPy arrays that gives the right result.
        at_most: called with the shapes, returns the accepted maximum, {"flops": …}. A
            loop's body counts as often as it runs.
        rtol: how far off a value may be, relative to the largest value of the result.
        values: wrong results that readers are known to compute, as functions of the
            arguments of `spec`.
    """

    shapes: Callable[[random.Random], tuple[tuple[int, ...], ...]]
    spec: Callable
    at_most: Callable[..., Mapping[str, float]]
    rtol: float = 1e-4
    values: tuple[Slip, ...] = ()
    form = "Answer with a JAX function. It is graded on what it compiles to."

    @property
    def known_slips(self) -> tuple[Slip, ...]:
        return (*self.slips, *self.values)

    def draw(self, seed: str) -> list:
        rng = random.Random(f"{self.id} {seed}")
        return [list(shape) for shape in self.shapes(rng)]

    def collect(self, answer: object, task: list) -> dict:
        if evidence := code_or(answer, "a JAX function, without calling it"):
            return evidence
        import jax  # not at the top: a page judges numbers without it

        arguments = [jax.ShapeDtypeStruct(tuple(shape), "float32") for shape in task]
        return jax_export.evidence_of(answer, answer, arguments)

    def judge(self, evidence: dict, task: list) -> Finding:
        shapes = [tuple(shape) for shape in task]
        found = jax_export.opened(evidence, self.form, shapes)
        if isinstance(found, Finding):
            return found
        import jax

        place = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
        arguments = [
            jax.ShapeDtypeStruct(shape, "float32", sharding=place) for shape in shapes
        ]
        at = ", ".join(str(list(shape)) for shape in shapes)
        program = jax_export.run(found, arguments, self, at)
        if isinstance(program, Finding):
            return program
        most = self.at_most(*shapes)["flops"]
        try:
            flops = program.flops
        except UnknownTurnsError:
            return jax_export.uncounted("runs", "flops")
        except ValueError as error:
            said = f"the result is right, but its flops cannot be counted: {error}"
            return Finding("wrong", said)
        if flops > most:
            return Finding(
                "wrong",
                f"the result is right, but for {at} it does {flops:,.0f} flops; "
                f"{most:,.0f} are enough.",
            )
        return Finding(
            "correct", f"the result is right, with at most {most:,.0f} flops"
        )
