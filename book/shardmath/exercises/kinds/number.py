"""Questions whose answer is a quantity in a base unit."""

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from ...base.units import show
from .quantity import quantity
from .question import TODO, Finding, Question, prose, unusable
from .slips import Slip, generic
from .unit_words import is_count, powers

_CLOSE = 0.02  # relative error of a wrong answer whose method is probably right
_THREE_DIGITS = 5e-3  # the most that a value changes when it is rounded to three digits
_FEW_DIGITS = 1e-2  # tolerance for a slip's value typed with two or three digits
_OF_A_SLIP = 1e-3  # tolerance for a slip's value if the answer must be exact
_OF_A_DAY = (24, 24 * 60, 86_400)  # hours, minutes, seconds
_ROUNDED, _INEXACT = "rounded too early", "close, not exact"
NEAR_MISSES = (_ROUNDED, _INEXACT)  # slips in the digits, for which a hint is no help
_NO_LATENCY = re.compile(
    r"(?:without|leave\s+out)(?:\s+the)?\s+latency|latency\s+is\s+left", re.IGNORECASE
)
_EIGHT = re.compile(r"(?<![.,])\b(?:8|eight)\b(?![.,]\d|\{)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Number(Question):
    """A quantity in a base unit.

    Args:
        expected: computes the right value from the package.
        unit: the base unit, or "" for a ratio.
        rtol: how far off an answer may be, relative to the right value.
        also: computes another right value, if the task can be read in two ways.
        slips: the known ways to go wrong. Those of `slips.generic` need not be listed.
    """

    expected: Callable[[], float]
    unit: str
    rtol: float = 0.01
    also: Callable[[], float] | None = None

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
        """Return None, because a number is not tested on cases."""

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
        given += " (8 bits are 1 byte)" if read.bits else ""
        if self._near(value, right) or (self.also and value == self.also()):
            return Finding("correct", given)
        if read.turned and any(self._near(n * value, right) for n in _OF_A_DAY):
            already = f"so your answer is already converted to {self.unit}"
            return Finding("invalid", f"{given}. You typed a unit, {already}.")
        if read.bits and any(self._near(n * value, right) for n in (8, 1 / 8)):
            already = "which are already converted to bytes, so leave out the 8"
            return Finding("invalid", f"{given}. You typed bits, {already}.")
        eights = bool(_EIGHT.search(prose(self.task)))
        for slip in (*self.slips, *generic(value, right, self.unit, eights)):
            if self._is(slip, value, right):
                return _slipped(given, slip)
        return self._unnamed(given, value, right)

    def _unnamed(self, given: str, value: float, right: float) -> Finding:
        """The finding on a wrong value that matches no slip."""
        if self._is_a_part(value, right):
            count = f"Only whole {self.unit} count, so round it up or down."
            return Finding("wrong", f"{given}. {count}", "not a whole number")
        close = max(_CLOSE, 2 * self.rtol)
        if not math.isclose(value, right, rel_tol=close):
            for slip in self.slips:  # its value may have been typed with few digits
                wrong = slip.wrong(right)
                near = math.isclose(value, wrong, rel_tol=_FEW_DIGITS)
                if near and _is_rounded(value, wrong):
                    return _slipped(given, slip)
            return Finding("wrong", f"{given}. That is {_far_off(value, right)}.")
        digits_lost = _is_rounded(value, right)
        for slip in self.slips:  # the digits may have been lost in a slip's value
            if not digits_lost and _is_rounded(value, slip.wrong(right)):
                return _slipped(given, slip)
        near = f"{given}. That is within {close:.0%} of the right value"
        if not self.rtol:
            said = f"{near}, and the answer must be exact."
            return Finding("wrong", said, _INEXACT)
        if self._leaves_out_latency and value > right and not digits_lost:
            said = (
                f"{near}, and above it. Latency must be left out. Have you counted it?"
            )
            return Finding("wrong", said, "latency too")
        if digits_lost or math.isclose(value, right, rel_tol=_THREE_DIGITS):
            said = f"{near}. Have you rounded something too early?"
            return Finding("wrong", said, _ROUNDED)
        said = "Is a small part missing or counted twice, or a value cut to two digits?"
        return Finding("wrong", f"{near}, but not near enough. {said}")

    @property
    def _leaves_out_latency(self) -> bool:
        return self.unit == "s" and bool(_NO_LATENCY.search(prose(self.task)))

    def _is(self, slip: Slip, value: float, right: float) -> bool:
        """Whether the value is the one that the slip gives."""
        wrong = slip.wrong(right)
        rtol = self.rtol or (0 if float(wrong).is_integer() else _OF_A_SLIP)
        return math.isclose(value, wrong, rel_tol=rtol)

    def _is_a_part(self, value: float, right: float) -> bool:
        """Whether a count is right except for a fraction below 1."""
        counted = self.unit and all(is_count(name) for name in powers(self.unit))
        parted = float(right).is_integer() and not value.is_integer()
        return bool(counted and parted and abs(value - right) < 1)

    def _near(self, value: float, right: float) -> bool:
        return math.isclose(value, right, rel_tol=self.rtol)


def _is_rounded(value: float, exact: float) -> bool:
    """Whether `value` has two to four digits and is `exact` rounded to as many.

    >>> _is_rounded(0.016, 0.01633), _is_rounded(1.93e10, 1.9208e10)
    (True, False)
    """
    digits = len(f"{value:.12e}".partition("e")[0].replace(".", "").rstrip("0"))
    rounded = float(f"{exact:.{digits - 1}e}")
    return 2 <= digits <= 4 and math.isclose(rounded, value, rel_tol=1e-12)


def _slipped(given: str, slip: Slip) -> Finding:
    said = f"{given}. The slip “{slip.name}” gives this number. {slip.says}"
    return Finding("wrong", said, slip.name)


def _far_off(value: float, right: float) -> str:
    if value == 0:
        return "too small, because the right value is not zero"
    if (value > 0) != (right > 0):
        return "of the wrong sign"
    far = math.exp(min(abs(math.log(abs(value)) - math.log(abs(right))), 99))
    side = "large" if abs(value) > abs(right) else "small"
    for bound in (2, 5, 10, 100, 1000):
        if far < bound:
            return f"too {side}, by less than a factor of {bound}"
    return f"too {side} by more than a factor of 1000"
