"""Questions whose answer is a function, graded against a naive function."""

import copy
import inspect
import json
import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...base.units import pluralize, show, takes_prefix
from .calling import outcome
from .question import Finding, Question, code_or, unusable
from .wrong_results import diagnose

_SINGLE = 1e-5  # relative error that a few float32 operations may cause
_SHOWN = 8  # values of a list that a message shows
_LARGE = 10**6  # round whole numbers of at least this size are shown with a prefix


@dataclass(frozen=True, kw_only=True)
class Function(Question):
    """A function that must agree with a naive one on drawn arguments.

    Args:
        spec: the naive function, with the same arguments as the reader's.
        cases: draws one case, a tuple of arguments, from a `random.Random`.
        examples: cases that always come first.
        units: argument → unit, for arguments that have one; as in `units.show`.
        gives: (name, unit) of each returned value; empty if the task says everything.
            These are listed under the task and used in verdicts.
        slips: wrong functions that readers are known to write.
        rtol: relative tolerance of every float in the result. The tolerance is at least
            1e-5 if results were computed in float32, as in JAX, unless `rtol` is 0.
        draws: how many cases are drawn.

    Arguments and results are JSON values: numbers, strings, or lists of those. Tuples
    and arrays are treated as lists.
    """

    spec: Callable
    cases: Callable[[random.Random], tuple]
    examples: tuple[tuple, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    gives: tuple[tuple[str, str], ...] = ()
    rtol: float = 1e-9
    draws: int = 20
    form = "Answer with a function."

    def faults(self):
        yield from super().faults()
        names = list(inspect.signature(self.spec).parameters)
        if unknown := self.units.keys() - set(names):
            yield f"units of {', '.join(unknown)}: the spec has {', '.join(names)}"
        if re.search(rf"def {self.answer}\(", self.stub):
            told = self.stub.partition("(")[2].partition(")")[0]
            if [name.strip() for name in told.split(",")] != names:
                yield f"the stub takes {told}, the spec {', '.join(names)}"

    @property
    def asked(self) -> str:
        """The task, the units of arguments and results, and two cases with results."""
        rows = []
        if self.units:
            said = [f"`{name}` in {unit}" for name, unit in self.units.items()]
            rows.append(f"- takes {', '.join(said)}")
        if self.gives:
            said = [f"{name} in {unit}" if unit else name for name, unit in self.gives]
            rows.append(f"- returns {' and '.join(said)}")
        for case in self.draw("task")[:2]:
            right = self._result(self.spec(*case), 4)
            rows.append(f"- {self._case(case)} → {right}")
        return f"{super().asked}\n\n" + "\n".join(rows)

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
        outputs = evidence.get("outputs")
        if not _are_outputs(outputs):
            return Finding("invalid", "the evidence is not a list of function results")
        rtol = self.rtol
        if rtol and any(output.get("single") for output in outputs):
            rtol = max(rtol, _SINGLE)
        for arguments, got in zip(cases, outputs, strict=False):
            at = self._case(arguments)
            if "error" in got:
                return self._raised(at, got["error"])
            wanted = self.spec(*arguments)
            if not same(wanted, got["value"], rtol):
                name, says = self._diagnosis(outputs, cases, rtol)
                pair = self._apart(wanted, got["value"])
                said = f"for {at}: wanted {pair[0]}, got {pair[1]}."
                return Finding("wrong", " ".join(filter(None, (said, says))), name)
        if len(outputs) < len(cases):
            return Finding("invalid", "the function was not tried on every case")
        return Finding("correct", f"right on {len(cases)} cases")

    def _raised(self, at: str, error: str) -> Finding:
        """The finding on a function that raises."""
        said = f"for {at} your function raises {error}"
        for kind, name, says in _ERRORS:
            if error.startswith(kind):
                return Finding("wrong", f"{said}. {says}", name)
        return Finding("wrong", said)

    def _diagnosis(self, outputs: list, cases: list, rtol: float) -> tuple[str, str]:
        """The name and explanation of a known slip, or of a pattern in all results.

        If there is neither, the explanation says in how many cases the function is
        right.
        """
        pairs = [
            (case, output["value"])
            for case, output in zip(cases, outputs, strict=False)
            if "value" in output
        ]
        wanted = [self.spec(*case) for case, _ in pairs]
        got = [value for _, value in pairs]
        known = [
            (slip, [slip.wrong(*case) for case, _ in pairs]) for slip in self.slips
        ]
        for slip, wrong in known:
            if same(wrong, got, rtol):
                return slip.name, slip.says
        if found := self._by_value(known, wanted, got, rtol):
            return found
        if found := diagnose(wanted, got, [name for name, _ in self.gives]):
            return found.name, found.says
        right = sum(same(a, b, rtol) for a, b in zip(wanted, got, strict=True))
        return "", f"It is right in {right} of {len(cases)} cases." if right else ""

    def _by_value(
        self, known: list, wanted: list, got: list, rtol: float
    ) -> tuple | None:
        """Known slips that together explain a list's values, one slip per position."""
        size = len(self.gives)
        if size < 2 or not all(_has(row, size) for row in (*wanted, *got)):
            return None
        found: dict[str, str] = {}
        for place in range(size):
            right, given = ([row[place] for row in rows] for rows in (wanted, got))
            if same(right, given, rtol):
                continue
            explains = (
                slip
                for slip, wrong in known
                if all(_has(row, size) for row in wrong)
                and same([row[place] for row in wrong], given, rtol)
            )
            slip = next(explains, None)
            if slip is None:
                return None
            found[slip.name] = slip.says
        return next(iter(found)), " ".join(found.values())

    def _case(self, arguments: list) -> str:
        names = inspect.signature(self.spec).parameters
        return ", ".join(
            f"{name} = {_said(value, self.units.get(name, ''), 4)}"
            for name, value in zip(names, arguments, strict=True)
        )

    def _result(self, value: object, digits: int) -> str:
        if value is None:
            return "None (a missing return?)"
        if len(self.gives) == 1:
            return _said(value, self.gives[0][1], digits)
        if isinstance(value, list | tuple) and len(value) == len(self.gives):
            return " and ".join(
                f"{name} {_said(one, unit, digits)}"
                for (name, unit), one in zip(self.gives, value, strict=True)
            )
        return _said(value, "", digits)

    def _apart(self, wanted: object, got: object) -> tuple[str, str]:
        """Both values as text, with enough digits to tell them apart."""
        for digits in (4, 6, 17):
            pair = self._result(wanted, digits), self._result(got, digits)
            if pair[0] != pair[1]:
                break
        return pair


_ERRORS = (
    (
        "OverflowError",
        "NaN or infinity",
        "An intermediate result is too large for a float. What can you factor out "
        "first?",
    ),
    (
        "ZeroDivisionError",
        "divided by zero",
        "Something is zero in this case. What should the function return then?",
    ),
)


def _has(row: object, size: int) -> bool:
    """Whether a result is a list of `size` values."""
    return isinstance(row, list | tuple) and len(row) == size


def _are_outputs(outputs: object) -> bool:
    """Whether it is a list of `{"value": …}` or `{"error": …}`, as from `outcome`."""
    return isinstance(outputs, list) and all(
        isinstance(one, dict) and ("value" in one or isinstance(one.get("error"), str))
        for one in outputs
    )


def same(wanted: object, got: object, rtol: float) -> bool:
    """Whether results are equal: numbers within `rtol`, tuples as lists, NaN as NaN.

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


def _said(value: object, unit: str, digits: int) -> str:
    """A value as short text: whole numbers in full, floats rounded to `digits`.

    Large round numbers are shortened if that loses nothing.

    >>> _said([0.123456, 12, "I"], "", 4), _said(4.36e-5, "s", 4), _said(65, "", 4)
    ("[0.1235, 12, 'I']", '43.6 µs', '65')
    >>> _said(8 * 10**10, "bytes", 4), _said(1, "bytes", 4), _said(3072, "bytes", 4)
    ('80 GB', '1 byte', '3,072 bytes')
    >>> _said(10**11, "", 4), _said(10**11 + 1, "", 4)
    ('1e+11', '100,000,000,001')
    """
    if isinstance(value, list | tuple):
        few = [_said(one, unit, digits) for one in value[:_SHOWN]]
        more = f", … {len(value)} values" if len(value) > _SHOWN else ""
        return f"[{', '.join(few)}{more}]"
    if isinstance(value, bool | str) or not isinstance(value, int | float):
        return repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}…"
    if isinstance(value, float) or len(str(abs(value))) > 15:
        return show(value, unit, digits) if unit else f"{float(value):.{digits}g}"
    if abs(value) >= _LARGE and float(f"{value:.{digits - 1}e}") == value:
        return (
            show(value, unit, digits)
            if takes_prefix(unit) and unit
            else (pluralize(f"{value:.{digits}g}", unit))
        )
    return pluralize(f"{value:,}", unit)
