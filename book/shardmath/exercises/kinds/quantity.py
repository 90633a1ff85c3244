"""Reads a quantity that a reader computed or typed, as a number or as arithmetic."""

import math
import re
from dataclasses import dataclass, replace
from numbers import Real

from ...base.units import pluralize, show, takes_prefix
from .arithmetic import Amount, amount
from .unit_words import Powers, in_billions, powers, seconds, written

_QUOTED, _ECHOED = 40, 120  # characters shown of an answer that is invalid, or valid
_NUMBER = re.compile(r"[-+−]?[\d_,]*\.?\d*([eE][-+−]?\d+)?")
_SHARE = re.compile(_NUMBER.pattern + " ?(%|percent)")
_TIMES = re.compile(r"(?<=[\d.)]) ?(?:[xX×]|times)$")  # after a ratio
_PRICE = (
    r"(?P<{0}>[\d.,_]+(?:e[+-]?\d+)?)"
    r"(?: ?(?P<{0}_in>[kmbt]|[mbt]n|thousand|(?:m|b|tr)illion)(?![a-z]))?"
)
_DOLLARS = re.compile(
    rf"\$ ?{_PRICE.format('after')}|(?<![\d.,_]){_PRICE.format('before')} ?\$",
    re.IGNORECASE,
)
_LETTERS = {"k": "thousand", "m": "million", "b": "billion", "t": "trillion"}
_AN_HOUR = re.compile(r" (?:an?|per) (?=[A-Za-z])")


@dataclass(frozen=True)
class Quantity:
    """A number in a base unit, and the text that it was read from, if any.

    Args:
        value: the number.
        text: what was typed, or "".
        turned: whether the value has been converted, because the question asks for
            hours or days and the text has another unit.
        bits: whether the text contains bits, which have been converted to bytes.
    """

    value: float
    text: str = ""
    turned: bool = False
    bits: bool = False

    def said(self, unit: str, digits: int | None = 4) -> str:
        """The number with its prefix, after the text if the text writes it differently.

        If `digits` is None, all digits are shown, without a prefix.

        >>> Quantity(8e9, "8*1e9").said("bytes"), Quantity(8e9, "8 GB").said("bytes")
        ('8*1e9 = 8 GB', '8 GB')
        >>> Quantity(10584, "10.584k").said("chips", digits=None)
        '10.584k = 10,584 chips'
        """
        if digits is None:
            shown = pluralize(f"{self.value:,.15g}", unit)
        else:
            shown = show(self.value, unit, digits)
        typed, plain = (re.sub(r"\s", "", text).lower() for text in (self.text, shown))
        if _NUMBER.fullmatch(self.text) or plain.startswith(typed):
            return shown
        return f"{_short(self.text, _ECHOED)} = {shown}"


def quantity(answer: object, unit: str) -> Quantity:
    """`answer` as a number in `unit`.

    Args:
        answer: a real number, a zero-dimensional array (NumPy, JAX), or a string:
            "4.59e14", "459 TFLOPs/s", "1,024", "3 × 10^8", "16 GiB", "40%",
            "70 microseconds", "8 billion", "28 h", "1.6x", "$16", "$4/h", "8 GPUs" for
            chips, whatever `units.show` prints, and arithmetic: "2*512*4096",
            "4 GB / 819 GB/s", "1.5 ms + 20 µs", "1e12 / 459T". A number without a
            unit is in base units.
        unit: base unit of the result, as in `units.show`; "" for a plain number.

    Raises:
        ValueError: the answer is not a real number, is NaN or infinite, can't be read,
            or has another unit than `unit`.

    >>> quantity("459 TFLOPs/s", "FLOPs/s").value, quantity("16 GiB", "bytes").value
    (459000000000000.0, 17179869184.0)
    >>> quantity("400 Gb/s", "bytes/s").value, quantity("19.51B", "params").value
    (50000000000.0, 19510000000.0)
    >>> quantity("4 GB / 2", "s")
    Traceback (most recent call last):
    ValueError: '4 GB / 2' comes out in bytes, not in s: give a number in s, \
such as 0.001 or '1 ms'
    """
    if isinstance(answer, str):
        text = " ".join(answer.split())
        try:
            return _typed(text, unit)
        except ValueError as error:
            quoted = repr(_short(text, _QUOTED))
            raise ValueError(f"{quoted} {error}: {_valid(unit)}") from None
    value = answer.item() if getattr(answer, "shape", None) == () else answer
    if isinstance(value, bool) or not isinstance(value, Real):
        kind = type(value).__name__
        raise ValueError(f"{kind} is not a number: {_valid(unit)}")
    try:
        value = float(value)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"{value} is not finite: {_valid(unit)}")
    return Quantity(value)


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def _valid(unit: str) -> str:
    if not unit:
        return "give a plain number, such as 0.5 or '50%'"
    number = 1e-3 if unit == "s" else 1e9 if takes_prefix(unit) else 240
    return f"give a number in {unit}, such as {number:g} or {show(number, unit)!r}"


def _typed(typed: str, unit: str) -> Quantity:
    text = typed
    if not re.search(r"\d", text):
        raise ValueError("is not a number")
    above, _, below = unit.partition("/")
    days, hour = seconds(above), seconds(below)  # None unless hours or days are asked
    wanted = powers(unit)
    if unit in ("", "times"):
        text = _TIMES.sub("", text)
    if above == "dollars":
        text = " ".join(_DOLLARS.sub(_dollars, text).split())
    if hour:
        text = _AN_HOUR.sub(" / ", text)
    found = _amount(text, wanted)
    if hour and found.unit == {"s": -1}:  # "5/h"
        found = replace(found, unit=wanted)
    elif hour and found.unit == powers(above):  # "$5"
        found = replace(found, unit=wanted, value=found.value / hour)
    not_wanted = f"not in {unit}" if unit else "not as a plain number"
    if found.united and not found.fits(wanted):
        there = f"in {written(found.unit)}" if found.unit else "as a plain number"
        raise ValueError(f"comes out {there}, {not_wanted}")
    if unit and _SHARE.fullmatch(text):
        raise ValueError(f"is a percentage, {not_wanted}")
    if not found.united:
        return Quantity(float(found.value), typed)
    named = any(seconds(word) == days for word in re.findall("[A-Za-z]+", text))
    value = (found * Amount(hour or 1) / Amount(days or 1)).value
    return Quantity(float(value), typed, bool(days) and not named, found.bits)


def _amount(text: str, wanted: Powers) -> Amount:
    """The value of the text. A B means a billion if bytes make no sense."""
    try:
        found = amount(text, wanted)
        if not in_billions(wanted) or found.fits(wanted):
            return found
    except ValueError:
        if not in_billions(wanted):
            raise
    return amount(text, wanted, billions=True)


def _dollars(found: re.Match) -> str:
    """A price with the word "dollars" after it, so that `amount` can read it.

    >>> _DOLLARS.sub(_dollars, "$1.5m"), _DOLLARS.sub(_dollars, "16K$")
    (' 1.5 million dollars ', ' 16 thousand dollars ')
    """
    number = found["after"] or found["before"]
    scale = (found["after_in"] or found["before_in"] or "").lower()
    return f" {number} {_LETTERS.get(scale, scale)} dollars "
