"""Reads the quantity that somebody computed or typed: a number, perhaps with a unit."""

import math
import re
from numbers import Real

from ..units import show

_DECIMAL = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {f"{letter}i": 2.0 ** (10 * (i + 1)) for i, letter in enumerate("KMGTPE")}
_BELOW_ONE = {"m": 1e-3, "µ": 1e-6, "μ": 1e-6, "u": 1e-6, "n": 1e-9, "p": 1e-12}
_NUMBER = re.compile(
    r"(?P<digits>[+-]?(?:\d{1,3}(?:,\d{3})+|[\d_]+)?(?:\.\d*)?(?:[eE][+-]?\d+)?)"
    r"(?:\s*[x×·*]\s*10\s*(?:\^|\*\*)\s*(?P<power>[+-]?\d+))?"
    r"\s*(?P<unit>.*)"
)


def quantity(answer: object, unit: str) -> float:
    """`answer` as a float in `unit`.

    Args:
        answer: a real number, an array or scalar of no dimension (NumPy, JAX), or a
            string: "4.59e14", "459 TFLOPs/s", "1,024", "3 × 10^8", "16 GiB", "40%".
        unit: base unit of the result, as in `units.show`; "" for a plain number.

    Raises:
        ValueError: says what was given and what would be valid. Booleans, complex
            numbers, NaN, infinities, other units and bits are refused.

    >>> quantity("459 TFLOPs/s", "FLOPs/s"), quantity("16 GiB", "bytes")
    (459000000000000.0, 17179869184.0)
    >>> quantity("2 Gb", "bytes")
    Traceback (most recent call last):
    ValueError: '2 Gb' is not in bytes: give a number in bytes, such as 1e+09 or '1 GB'
    """
    if isinstance(answer, str):
        return _typed(answer.strip(), unit)
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
    return value


def _valid(unit: str) -> str:
    if not unit:
        return "give a plain number, such as 0.5 or '50%'"
    number = 1e-3 if unit == "s" else 1e9
    return f"give a number in {unit}, such as {number:g} or {show(number, unit)!r}"


def _typed(text: str, unit: str) -> float:
    found = _NUMBER.fullmatch(text.replace("−", "-"))
    power = found["power"] or "0"
    try:
        value = float(found["digits"].replace(",", "") + f"e{power}" * (power != "0"))
    except ValueError:
        raise ValueError(f"{text!r} is not a number: {_valid(unit)}") from None
    factor = _factor(found["unit"], unit)
    if factor is None:
        wanted = f"in {unit}" if unit else "a plain number"
        raise ValueError(f"{text!r} is not {wanted}: {_valid(unit)}")
    value *= factor
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not finite: {_valid(unit)}")
    return value


def _factor(given: str, unit: str) -> float | None:
    """What turns a number in the unit as typed into the base unit; None: no way."""
    if not given or _plain(given) == _plain(unit):
        return 1.0
    if given == "%":
        return None if unit else 0.01
    prefixes = _DECIMAL | _BINARY | (_BELOW_ONE if unit == "s" else {})
    for prefix in sorted(prefixes, key=len, reverse=True):  # "Ti" before "T"
        rest = given.removeprefix(prefix)
        if rest != given and (_plain(rest) == _plain(unit) or not (rest or unit)):
            return prefixes[prefix]
    return None


def _plain(unit: str) -> str:
    """One spelling for the usual ones of a unit; a small b stays: it means bits."""
    unit = re.sub(r"FLOPS$", "FLOPs/s", unit.strip())
    unit = re.sub(r"(?i)\bflops?\b", "FLOPs", unit)
    unit = re.sub(r"\b(?:B|bytes?)\b", "bytes", unit)
    unit = re.sub(r"\b(?:s|secs?|seconds?)$", "s", unit)
    return re.sub(r"(\w\w)s$", r"\1", re.sub(r"\s", "", unit))  # plural or not
