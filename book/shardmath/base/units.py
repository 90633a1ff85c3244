"""Quantities in base units, which get prefixes only when they are printed.

Every quantity in this package is a plain ``float`` in a base unit: FLOPs,
FLOPs/s, bytes, bytes/s, seconds. `show` adds a prefix such as k or M.
"""

import contextlib
import math
import operator
import re

KiB, MiB, GiB = 2**10, 2**20, 2**30

PRECISION_BYTES = {
    "fp64": 8.0,
    "fp32": 4.0,
    "tf32": 4.0,  # stored as 32 bits, multiplied with 19
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "fp6": 0.75,
    "fp4": 0.5,
    "int4": 0.5,
}

_PREFIXED = ("", "FLOPs", "FLOPs/s", "bytes", "bytes/s", "OPs/s", "Hz", "W", "s")
_LARGE = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_SMALL = ("", "m", "µ", "n", "p", "f")
_BINARY = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def show(value: float, unit: str = "", digits: int = 3) -> str:
    """`value` rounded to `digits` significant digits, with a decimal prefix.

    Args:
        value: the quantity, in base units.
        unit: its base unit. FLOPs, bytes, their rates, OPs/s, Hz, W, s and "" take a
            prefix, after which "bytes" is written "B". Other units ("tokens",
            "FLOPs/byte") take none. "capacity" means bytes with binary prefixes.
        digits: significant digits, at least 1.

    Returns:
        A string such as "459 TFLOPs/s", "3.35 TB/s", "43.6 µs", "131,000 tokens",
        "1 byte". Values below one get a prefix, such as µ, only in seconds.

    Raises:
        ValueError: a value that is not a number, digits below 1, or a unit that is not
            a string.

    >>> show(4.59e14, "FLOPs/s"), show(3.35e12, "bytes/s"), show(4.36e-5, "s")
    ('459 TFLOPs/s', '3.35 TB/s', '43.6 µs')
    >>> show(512, "bytes"), show(131072, "tokens"), show(999.7, "bytes")
    ('512 bytes', '131,000 tokens', '1 kB')
    >>> show(1, "tokens"), show(1, "FLOPs/byte"), show(0.5, "bytes")
    ('1 token', '1 FLOP/byte', '0.5 bytes')
    >>> show(2**37, "capacity"), show(2**37, "bytes"), show(128 * MiB, "capacity")
    ('128 GiB', '137 GB', '128 MiB')
    """
    value, (digits,) = _real("value", value), positive_int(digits=digits)
    text("unit", unit)
    if unit == "capacity":
        return _binary(value, digits)
    if not math.isfinite(value):
        return f"{value} {unit}".strip()
    # Round first: 999.7 bytes must print as "1 kB", never as "1000 bytes".
    rounded = float(f"{value:.{digits - 1}e}")
    if math.isinf(rounded):  # the largest floats cannot be rounded up
        rounded = value
    prefixes, step = _LARGE, 0
    if unit in _PREFIXED and rounded:
        thousands = math.floor(math.log10(abs(rounded)) / 3)
        if thousands > 0:
            step = min(thousands, len(_LARGE) - 1)
        elif unit == "s":
            prefixes, step = _SMALL, min(-thousands, len(_SMALL) - 1)
    scaled = rounded / 1000.0**step if prefixes is _LARGE else rounded * 1000.0**step
    number = f"{scaled:.{digits}g}"
    if "e" in number and 1 <= abs(scaled) < 1e15:  # :g has exponents from 10**digits
        number = f"{scaled:,.0f}"
    prefix = prefixes[step]
    if prefix and unit.startswith("bytes"):
        unit = "B" + unit.removeprefix("bytes")
    return f"{number} {prefix}{unit}".strip() if prefix else pluralize(number, unit)


def pluralize(number: str, unit: str) -> str:
    """A number in digits and its unit, which becomes singular after 1 and -1.

    >>> pluralize("1", "bytes/s"), pluralize("1,024", "tokens"), pluralize("1", "s")
    ('1 byte/s', '1,024 tokens', '1 s')
    >>> pluralize("1", "microbatches"), pluralize("1", "queries")
    ('1 microbatch', '1 query')
    >>> pluralize("1", "axes")
    '1 axis'
    """
    if text("number", number) in ("1", "-1") and text("unit", unit):
        for plural, singular in _SINGULAR.items():
            unit, found = re.subn(plural, singular, unit)
            if found:
                break
    return f"{number} {unit}".strip()


_SINGULAR = {  # the first pattern that fits is used
    r"^(series|species)\b": r"\1",
    r"^axes\b": "axis",
    r"^caches\b": "cache",
    r"^(\w\w+)ies\b": r"\1y",  # but not "dies"
    r"^(\w+(?:ss|x|ch|sh))es\b": r"\1",
    r"^(\w+ss)\b": r"\1",
    r"^(\w\w+)s\b": r"\1",  # but not "ms"
}


def takes_prefix(unit: str) -> bool:
    """Whether `show` may put a prefix before `unit`; "tokens" never has one.

    >>> takes_prefix("bytes/s"), takes_prefix("capacity"), takes_prefix("tokens")
    (True, True, False)
    """
    return unit == "capacity" or unit in _PREFIXED


def _binary(nbytes: float, digits: int) -> str:
    """`nbytes` with the largest binary prefix that leaves at least 1 before it."""
    if not math.isfinite(nbytes):
        return f"{nbytes} bytes"
    step, scaled = 0, nbytes
    # Round first: 1023.96 MiB to four digits must print as "1 GiB".
    while abs(float(f"{scaled:.{max(digits, 4) - 1}e}")) >= 1024:
        if step == len(_BINARY) - 1:
            break
        step, scaled = step + 1, scaled / 1024
    scaled = float(f"{scaled:.{digits - 1}e}")
    large = abs(scaled) >= 10**digits  # where :g switches to an exponent
    number = f"{scaled:,.0f}" if large else f"{scaled:.{digits}g}"
    return pluralize(number, _BINARY[step])


def short_repr(value: object) -> str:
    """`value` as text for a message: shortened, or described if it cannot be printed.

    >>> short_repr("8"), short_repr(10**5000)
    ("'8'", 'an int of 16610 bits')
    """
    try:
        printed = repr(value)
    except Exception:  # ints of too many digits, objects that fail to print
        if isinstance(value, int):
            return f"an int of {value.bit_length()} bits"
        return f"a {type(value).__name__}"
    return shortened(printed)


def shortened(words: str, most: int = 80) -> str:
    """`words` if it has at most `most` characters, otherwise its beginning and "…".

    >>> shortened("a chip"), shortened("a chip of a long name", most=7)
    ('a chip', 'a chip…')
    """
    words, (most,) = text("words", words), positive_int(most=most)
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _named(name: str, value: object) -> str:
    """The start of a message; a name may be long too, such as that of a mesh axis."""
    named = shortened(name) if isinstance(name, str) else short_repr(name)
    return f"{named} = {short_repr(value)}"


def text(name: str, value: object) -> str:
    """`value`, if it is a string.

    Raises:
        ValueError: it is not a string; the message names the argument and quotes it.

    >>> text("unit", 3)
    Traceback (most recent call last):
    ValueError: unit = 3: must be a string
    """
    if not isinstance(value, str):
        raise ValueError(f"{_named(name, value)}: must be a string")
    return value


def number(name: str, value: object) -> int | float:
    """`value` as Python's own int or float; every number of a caller is converted here.

    Without this, integers of NumPy and JAX could overflow silently, because their width
    is fixed.

    Raises:
        ValueError: it is not a number; the message names the argument and quotes it.

    >>> import decimal
    >>> number("B", 8), number("B", decimal.Decimal("0.5"))
    (8, 0.5)
    """
    if type(value) in (int, float):  # bool is a type of its own
        return value
    if not isinstance(value, bool | str | bytes):
        for convert in (operator.index, float):
            with contextlib.suppress(TypeError, ValueError, OverflowError):
                return convert(value)
    raise ValueError(f"{_named(name, value)}: must be a number")


def positive(**sizes: object) -> list[int | float]:
    """The sizes as Python's numbers; each must be finite and above zero.

    Raises:
        ValueError: a size is invalid; the message quotes it and says what is valid.

    >>> positive(B=8, D=0.5)
    [8, 0.5]
    >>> positive(B=8, D=-1)
    Traceback (most recent call last):
    ValueError: D = -1: must be a finite number above 0
    """
    found = []
    for name, size in sizes.items():
        with contextlib.suppress(ValueError, OverflowError):  # too large for a float
            found.append(number(name, size))
            if found[-1] > 0 and math.isfinite(found[-1]):
                continue
        raise ValueError(f"{_named(name, size)}: must be a finite number above 0")
    return found


def _real(name: str, value: object) -> int | float:
    """`value` as a number that a float can hold; it may be infinite or NaN."""
    found = number(name, value)
    with contextlib.suppress(OverflowError):
        float(found)
        return found
    raise ValueError(
        f"{name}: an int of {found.bit_length()} bits is too large for a float"
    )


def positive_int(**counts: object) -> list[int]:
    """The counts as Python's ints; each must be a whole number from 1.

    Raises:
        ValueError: a count is invalid; the message quotes it and says what is valid.

    >>> positive_int(gpus=8)
    [8]
    >>> positive_int(gpus=2.5)
    Traceback (most recent call last):
    ValueError: gpus = 2.5: must be a whole number from 1
    """
    found = []
    for name, count in counts.items():
        with contextlib.suppress(ValueError, OverflowError):
            found.append(number(name, count))
            if isinstance(found[-1], int) and found[-1] > 0:
                float(found[-1])  # rates are divided by counts
                continue
        raise ValueError(
            f"{_named(name, count)}: must be a whole number from 1"
            + " that a float can hold" * (type(count) is int and count > 0)
        )
    return found


def non_negative_int(**given: object) -> list[int]:
    """The counts as Python's ints; each must be a whole number from 0.

    Raises:
        ValueError: a count is invalid; the message quotes it and says what is valid.

    >>> non_negative_int(shared=0)
    [0]
    """
    found = []
    for name, count in given.items():
        with contextlib.suppress(ValueError, OverflowError):
            found.append(number(name, count))
            if isinstance(found[-1], int) and found[-1] >= 0:
                float(found[-1])
                continue
        raise ValueError(
            f"{_named(name, count)}: must be a whole number from 0"
            + " that a float can hold" * (type(count) is int and count > 0)
        )
    return found


def flags(**given: object) -> list[bool]:
    """The flags as Python's bools; NumPy's True and False are accepted too.

    Raises:
        ValueError: a flag is neither True nor False; the message quotes it.

    >>> flags(gated=True)
    [True]
    """
    found = []
    for name, flag in given.items():
        found.append(flag.item() if getattr(flag, "shape", None) == () else flag)
        if not isinstance(found[-1], bool):
            raise ValueError(f"{_named(name, flag)}: must be True or False")
    return found


def bytes_per_value(precision: str) -> float:
    """Bytes that one value of `precision` takes in memory, without scales (fp4: 0.5).

    >>> bytes_per_value("bf16")
    2.0
    """
    if not isinstance(precision, str) or precision not in PRECISION_BYTES:
        known = ", ".join(PRECISION_BYTES)
        raise ValueError(f"precision {short_repr(precision)}: must be one of {known}")
    return PRECISION_BYTES[precision]
