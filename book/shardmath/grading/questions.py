"""Question records: what is asked, what is right, what goes wrong, and how to judge.

Every kind of question has the same three steps, so that a notebook, a folder of
submissions and a page share one grader:

* ``draw(seed)``: the task, what the answer is tried on;
* ``collect(answer, task)``: the evidence. The only step that touches the reader's
  objects or runs the reader's code;
* ``judge(evidence, task)``: the finding. Believes nothing but what it computes.

Task and evidence are JSON values: the second step may run in another process.
"""

import copy
import json
import math
import random
import reprlib
from collections.abc import Callable
from dataclasses import dataclass

from ..units import show
from .calling import is_blank, outcome
from .reading import quantity
from .slips import Slip, generic

TODO = {"todo": True}


@dataclass(frozen=True)
class Finding:
    """What the judge found: "correct", "wrong", "todo" or "invalid", and why."""

    verdict: str
    message: str
    slip: str = ""


def unusable(evidence: dict, wanted: str) -> Finding | None:
    """The finding where there is nothing to judge: no answer, or none of its kind."""
    if evidence.get("todo"):
        return Finding("todo", wanted)
    if "invalid" in evidence:
        return Finding("invalid", str(evidence["invalid"]))
    return None


def code_or(answer: object, wanted: str) -> dict | None:
    """The evidence where `answer` is no code to try; None where it is."""
    if answer is None or answer is ... or is_blank(answer):
        return TODO
    if not callable(answer):
        kind = type(answer).__name__
        return {"invalid": f"{kind} is not a function: give {wanted}"}
    return None


@dataclass(frozen=True, kw_only=True)
class Number:
    """A quantity in a base unit.

    Args:
        expected: computes the right value from the package.
        unit: base unit; "" for a ratio.
        rtol: how far off an answer may be, relative to the right value.
        slips: the known ways to go wrong. Those of `slips.GENERIC` need not be listed.
    """

    id: str
    title: str
    expected: Callable[[], float]
    unit: str
    slips: tuple[Slip, ...]
    hint: str
    solution: str
    rtol: float = 0.01
    points: int = 1

    @property
    def form(self) -> str:
        how = f"in {self.unit}" if self.unit else "as a plain number"
        near = f"within {100 * self.rtol:g}%" if self.rtol else "exactly"
        return f"Answer {how}, {near}."

    def draw(self, seed: str) -> None:
        """Nothing: a number is tried on nothing."""

    def collect(self, answer: object, task: None = None) -> dict:
        if answer is None or answer is ... or (isinstance(answer, str) and not answer):
            return TODO
        try:
            return {"value": quantity(answer, self.unit)}
        except ValueError as error:
            return {"invalid": str(error)}

    def judge(self, evidence: dict, task: None = None) -> Finding:
        if finding := unusable(evidence, self.form):
            return finding
        value = quantity(evidence["value"], self.unit)
        right = self.expected()
        given = show(value, self.unit, digits=4)
        if self._near(value, right):
            return Finding("correct", given)
        for slip in (*self.slips, *generic(value, right)):
            if self._near(value, slip.wrong(right)):
                name = slip.name[0].upper() + slip.name[1:]
                return Finding("wrong", f"{given}. {name}? {slip.says}", slip.name)
        return Finding("wrong", f"{given} is {_far_off(value, right)}.")

    def _near(self, value: float, right: float) -> bool:
        return math.isclose(value, right, rel_tol=self.rtol)


def _far_off(value: float, right: float) -> str:
    if value * right <= 0:
        return "not it, not even in sign"
    ratio = value / right
    if 0.1 <= ratio <= 10:
        return "not it, though within a factor of 10"
    return f"too {'large' if ratio > 1 else 'small'} by more than a factor of 10"


@dataclass(frozen=True, kw_only=True)
class Function:
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

    id: str
    title: str
    spec: Callable
    cases: Callable[[random.Random], tuple]
    hint: str
    solution: str
    examples: tuple[tuple, ...] = ()
    slips: tuple[Slip, ...] = ()
    rtol: float = 1e-9
    draws: int = 20
    points: int = 1
    form = "Answer with a function."

    def draw(self, seed: str) -> list:
        rng = random.Random(f"{self.id} {seed}")
        cases = [*self.examples, *(self.cases(rng) for _ in range(self.draws))]
        return json.loads(json.dumps(cases))

    def collect(self, answer: object, task: list) -> dict:
        if evidence := code_or(answer, "a function, without calling it"):
            return evidence
        outputs = []
        for arguments in task:
            outputs.append(outcome(answer, copy.deepcopy(arguments)))
            if "error" in outputs[-1]:
                break
        return {"outputs": outputs}

    def judge(self, evidence: dict, task: list) -> Finding:
        if finding := unusable(evidence, self.form):
            return finding
        outputs = evidence["outputs"]
        for arguments, got in zip(task, outputs, strict=False):
            case = f"({', '.join(map(_short, arguments))})"
            if "error" in got:
                return Finding(
                    "wrong", f"for {case} your function raises {got['error']}"
                )
            wanted = self.spec(*arguments)
            if not same(wanted, got["value"], self.rtol):
                slip = self._slip(outputs, task)
                name, says = (slip.name, f" {slip.says}") if slip else ("", "")
                said = (
                    f"for {case} wanted {_short(wanted)}, got {_short(got['value'])}."
                )
                return Finding("wrong", said + says, name)
        if len(outputs) < len(task):
            return Finding("invalid", "the function was not tried on every case")
        return Finding("correct", f"right on {len(task)} cases")

    def _slip(self, outputs: list, task: list) -> Slip | None:
        values = [output.get("value") for output in outputs]
        for slip in self.slips:
            wrong = [slip.wrong(*arguments) for arguments in task]
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
