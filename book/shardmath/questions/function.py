"""Questions whose answer is a function, graded against a naive one."""

import copy
import json
import math
import random
import reprlib
from collections.abc import Callable
from dataclasses import dataclass

from .calling import outcome
from .question import Finding, Question, code_or, unusable
from .slips import Slip


@dataclass(frozen=True, kw_only=True)
class Function(Question):
    """A function that must agree with a naive one on drawn arguments.

    Args:
        spec: the naive truth, with the arguments of the reader's function.
        cases: one drawn case, a tuple of arguments, from a `random.Random`.
        examples: cases that are tried first, every time.
        slips: wrong functions that readers are known to write.
        rtol: relative tolerance of every float in the result.
        draws: how many cases are drawn.

    Arguments and results are JSON values: numbers, strings, lists of those; a tuple
    counts as a list, an array as the list of its rows.
    """

    spec: Callable
    cases: Callable[[random.Random], tuple]
    examples: tuple[tuple, ...] = ()
    rtol: float = 1e-9
    draws: int = 20
    form = "Answer with a function."

    def draw(self, seed: str) -> list:
        rng = random.Random(f"{self.id} {seed}")
        cases = [*self.examples, *(self.cases(rng) for _ in range(self.draws))]
        return json.loads(json.dumps(cases))

    def collect(self, answer: object, cases: list) -> dict:
        if evidence := code_or(answer, "a function, without calling it"):
            return evidence
        outputs = []
        for arguments in cases:
            outputs.append(outcome(answer, copy.deepcopy(arguments)))
            if "error" in outputs[-1]:
                break
        return {"outputs": outputs}

    def judge(self, evidence: dict, cases: list) -> Finding:
        if finding := unusable(evidence, self.form):
            return finding
        outputs = evidence["outputs"]
        for arguments, got in zip(cases, outputs, strict=False):
            case = f"({', '.join(map(_short, arguments))})"
            if "error" in got:
                return Finding(
                    "wrong", f"for {case} your function raises {got['error']}"
                )
            wanted = self.spec(*arguments)
            if not same(wanted, got["value"], self.rtol):
                slip = self._slip(outputs, cases)
                name, says = (slip.name, f" {slip.says}") if slip else ("", "")
                said = (
                    f"for {case} wanted {_short(wanted)}, got {_short(got['value'])}."
                )
                return Finding("wrong", said + says, name)
        if len(outputs) < len(cases):
            return Finding("invalid", "the function was not tried on every case")
        return Finding("correct", f"right on {len(cases)} cases")

    def _slip(self, outputs: list, cases: list) -> Slip | None:
        values = [output.get("value") for output in outputs]
        for slip in self.slips:
            wrong = [slip.wrong(*arguments) for arguments in cases]
            if same(wrong, values, self.rtol):
                return slip
        return None


def same(wanted: object, got: object, rtol: float) -> bool:
    """Equal, floats within `rtol`, tuples as lists, NaN equal to itself.

    >>> same((1, 0.5), [1, 0.5000001], 1e-6), same([1], 1, 1e-6)
    (True, False)
    """
    if isinstance(wanted, list | tuple):
        return (
            isinstance(got, list | tuple)
            and len(wanted) == len(got)
            and all(same(w, g, rtol) for w, g in zip(wanted, got, strict=True))
        )
    if isinstance(wanted, int | float) and isinstance(got, int | float):
        both_nan = wanted != wanted and got != got
        return both_nan or math.isclose(wanted, got, rel_tol=rtol)
    return wanted == got


def _short(value: object) -> str:
    short = reprlib.Repr()
    short.maxlist = short.maxtuple = short.maxother = 8
    return "None (a missing return?)" if value is None else short.repr(value)
