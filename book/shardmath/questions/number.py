"""Questions whose answer is a quantity in a base unit."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

from ..units import show
from .quantity import quantity
from .question import TODO, Finding, Question, unusable
from .slips import Slip, generic

_CLOSE = 0.02  # wrong, and so near that the way was right
_OF_A_DAY = (24, 24 * 60, 86_400)  # hours, minutes, seconds
_ROUNDED, _INEXACT = "rounded too early", "close, not exact"
NEAR_MISSES = (_ROUNDED, _INEXACT)  # slips in the digits, which no hint helps


@dataclass(frozen=True, kw_only=True)
class Number(Question):
    """A quantity in a base unit.

    Args:
        expected: computes the right value from the package.
        unit: base unit; "" for a ratio.
        rtol: how far off an answer may be, relative to the right value.
        slips: the known ways to go wrong. Those of `slips.generic` need not be listed.
    """

    expected: Callable[[], float]
    unit: str
    rtol: float = 0.01

    def faults(self):
        yield from super().faults()
        right = self.expected()
        if not (math.isfinite(right) and right):
            yield f"the right value is {right}"
        if show(right, self.unit) in self.hint:
            yield "the hint gives the right value away"
        named = {"right": right} | {s.name: s.wrong(right) for s in self.slips}
        for (one, a), (other, b) in itertools.combinations(named.items(), 2):
            if math.isclose(a, b, rel_tol=2 * self.rtol):
                yield f"{one!r} and {other!r} cannot be told apart: {a:g} and {b:g}"

    @property
    def form(self) -> str:
        how = f"in {self.unit}" if self.unit else "as a plain number"
        near = f"within {100 * self.rtol:g}%" if self.rtol else "exactly"
        return f"Answer {how}, {near}."

    def draw(self, seed: str) -> None:
        """Nothing: a number is tried on nothing."""

    def collect(self, answer: object, case: None = None) -> dict:
        if answer is None or answer is ... or (isinstance(answer, str) and not answer):
            return TODO
        try:
            read = quantity(answer, self.unit)
        except ValueError as error:
            return {"invalid": str(error)}
        return {"value": read.text or read.value}

    def judge(self, evidence: dict, case: None = None) -> Finding:
        if finding := unusable(evidence, self.form):
            return finding
        read = quantity(evidence["value"], self.unit)
        value, right = read.value, self.expected()
        given = read.said(self.unit, digits=4 if self.rtol else None)
        if self._near(value, right):
            return Finding("correct", given)
        if read.turned and any(self._near(n * value, right) for n in _OF_A_DAY):
            already = f"so the answer is turned into {self.unit} already"
            return Finding("invalid", f"{given}. A unit was typed, {already}.")
        for slip in (*self.slips, *generic(value, right, self.unit)):
            if self._near(value, slip.wrong(right)):
                return _slipped(given, slip)
        close = max(_CLOSE, 2 * self.rtol)
        if math.isclose(value, right, rel_tol=close):
            for slip in self.slips:  # the digits may be lost on another way
                if abs(value - slip.wrong(right)) < abs(value - right):
                    return _slipped(given, slip)
            near = f"{given}: within {close:.0%} of it"
            if self.rtol:
                return Finding("wrong", f"{near}. Rounded too early?", _ROUNDED)
            return Finding("wrong", f"{near}, and it must be exact.", _INEXACT)
        return Finding("wrong", f"{given}: {_far_off(value, right)}.")

    def _near(self, value: float, right: float) -> bool:
        return math.isclose(value, right, rel_tol=self.rtol)


def _slipped(given: str, slip: Slip) -> Finding:
    name = slip.name[0].upper() + slip.name[1:]
    return Finding("wrong", f"{given}. {name}? {slip.says}", slip.name)


def _far_off(value: float, right: float) -> str:
    if value == 0 or (value > 0) != (right > 0):
        return "not it, not even in sign"
    far = math.exp(min(abs(math.log(abs(value)) - math.log(abs(right))), 99))
    side = "large" if abs(value) > abs(right) else "small"
    for bound in (2, 5, 10, 100, 1000):
        if far < bound:
            return f"too {side}, by less than a factor of {bound}"
    return f"too {side} by more than a factor of 1000"
