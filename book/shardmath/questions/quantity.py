"""Reads the quantity that somebody computed or typed: a number, perhaps with a unit."""

import math
import re
from numbers import Real

from ..units import show, takes_prefix

_DECIMAL = dict(zip("kMGTPEZY", (10.0 ** (3 * i) for i in range(1, 9)), strict=True))
_BINARY = {f"{letter}i": 2.0 ** (10 * (i + 1)) for i, letter in enumerate("KMGTPE")}
_BELOW_ONE = dict(zip("mµnpf", (1e-3, 1e-6, 1e-9, 1e-12, 1e-15), strict=True))
_LETTERS = {"K": "k", "μ": "µ", "u": "µ"}  # other ways to write a prefix
_WORDS = {  # a number or a prefix spelled out; "million" before "milli"
    "thousand ": "k", "million ": "M", "billion ": "G", "trillion ": "T",
    "kilo": "k", "mega": "M", "giga": "G", "tera": "T", "peta": "P", "exa": "E",
    "zetta": "Z", "yotta": "Y", "kibi": "Ki", "mebi": "Mi", "gibi": "Gi",
    "tebi": "Ti", "pebi": "Pi", "exbi": "Ei", "milli": "m", "micro": "µ",
    "nano": "n", "pico": "p", "femto": "f",
}  # fmt: skip
_NUMBER = re.compile(
    r"(?P<digits>[+-]?(?:\d{1,3}(?:,\d{3})+|[\d_]+)?(?:\.\d*)?(?:[eE][+-]?\d+)?)"
    r"(?:\s*[x×·*]\s*10\s*(?:\^|\*\*)\s*(?P<power>[+-]?\d+))?"
    r"\s*(?P<unit>.*)"
)
_LONGEST = 40  # characters of an answer that a message repeats


def quantity(answer: object, unit: str) -> float:
    """`answer` as a float in `unit`.

    Args:
        answer: a real number, an array or scalar of no dimension (NumPy, JAX), or a
            string: "4.59e14", "459 TFLOPs/s", "1,024", "3 × 10^8", "16 GiB", "40%",
            "70 microseconds", "8 billion", and whatever `units.show` prints.
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
        return _typed(" ".join(answer.split()), unit)
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
    number = 1e-3 if unit == "s" else 1e9 if takes_prefix(unit) else 240
    return f"give a number in {unit}, such as {number:g} or {show(number, unit)!r}"


def _typed(text: str, unit: str) -> float:
    said = repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
    found = _NUMBER.fullmatch(text.replace("−", "-"))
    power = found["power"] or "0"
    try:
        value = float(found["digits"].replace(",", "") + f"e{power}" * (power != "0"))
    except ValueError:
        raise ValueError(f"{said} is not a number: {_valid(unit)}") from None
    factor = _factor(found["unit"], unit)
    if factor is None:
        wanted = f"in {unit}" if unit else "a plain number"
        raise ValueError(f"{said} is not {wanted}: {_valid(unit)}")
    value *= factor
    if not math.isfinite(value):
        raise ValueError(f"{said} is not finite: {_valid(unit)}")
    return value


def _factor(given: str, unit: str) -> float | None:
    """What turns a number in the unit as typed into the base unit; None: no way."""
    if given in ("%", "percent"):
        return None if unit else 0.01
    if not given or _plain(given) == _plain(unit):
        return 1.0
    for word, letter in _WORDS.items():
        if f"{given} ".lower().startswith(word):
            given = letter + given[len(word) :].strip()
            break
    if not given or _plain(given) == _plain(unit):
        return 1.0
    given = _LETTERS.get(given[0], given[0]) + given[1:] if given[1:2] != "i" else given
    prefixes = _DECIMAL | _BINARY | (_BELOW_ONE if unit == "s" else {})
    for prefix in sorted(prefixes, key=len, reverse=True):  # "Ti" before "T"
        rest = given.removeprefix(prefix)
        if rest != given and (_plain(rest) == _plain(unit) or not (rest or unit)):
            return prefixes[prefix]
    return None


def _plain(unit: str) -> str:
    """One spelling for the usual ones of a unit; a small b stays: it means bits."""
    unit = re.sub(r"FLOPS$", "FLOPs/s", unit.replace(" per ", "/").strip())
    unit = re.sub(r"(?i)\bflops?\b", "FLOPs", unit)
    unit = re.sub(r"\b(?:B|[Bb]ytes?)\b", "bytes", unit)
    unit = re.sub(r"\b(?:s|secs?|seconds?)$", "s", unit)
    unit = re.sub(r"\btoks?\b", "tokens", unit)
    unit = re.sub(r"(?i)\bhertz\b", "Hz", unit)
    unit = re.sub(r"\s", "", unit)
    return re.sub(r"(ch)es\b|(\w\w)s\b", r"\1\2", unit)  # plural or not
