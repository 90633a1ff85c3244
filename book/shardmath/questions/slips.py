"""Slips: known ways to go wrong, and those that come back all through the book.

Each of the ready ones takes the factor that the slip puts on the answer at hand: to
count a multiply-add as one operation halves a FLOP count and doubles a time per FLOP.
The words fit both directions.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Slip:
    """A known way to go wrong.

    Args:
        name: two or three words, "sparse peak".
        wrong: what this slip answers. In a number question it is called with the
            right value, in the others with the arguments of the case.
        says: one or two sentences that explain it without giving the answer away.
    """

    name: str
    wrong: Callable
    says: str


def scaled(name: str, factor: float, says: str) -> Slip:
    """The slip that multiplies the right value by `factor`."""
    return Slip(name, lambda right: factor * right, says)


def parts(array, n: int, dimension: int = 0) -> list:
    """The equal parts of a NumPy array that `n` devices hold along one dimension.

    For slips in the values of a program, which start from what each device has.
    """
    import numpy as np  # not at the top: a page judges numbers without it

    return np.split(array, n, dimension)


def multiply_add(factor: float = 1 / 2) -> Slip:
    """One operation for a multiply-add, or two for each of its halves."""
    return scaled(
        "multiply-add",
        factor,
        "A multiply and the add that follows are two FLOPs, once.",
    )


def bits_for_bytes(factor: float = 8) -> Slip:
    return scaled(
        "bits for bytes",
        factor,
        "Networks are sold in bits and memories in bytes; a byte has 8 bits.",
    )


def one_direction(factor: float = 1 / 2) -> Slip:
    return scaled(
        "one direction",
        factor,
        "You counted one direction of the link. Which does the question use?",
    )


def both_directions(factor: float = 2) -> Slip:
    return scaled(
        "both directions",
        factor,
        "You counted both directions of the link. Which does the question use?",
    )


def sparse_peak(factor: float = 2) -> Slip:
    return scaled(
        "sparse peak",
        factor,
        "Data sheets like to print the rate for matrices that are half zeros. "
        "Ordinary matrices run at the dense rate.",
    )


def device_not_chip(factor: float = 1 / 2) -> Slip:
    return scaled(
        "device for chip",
        factor,
        "On some machines a device is half a chip. Is the rate you took per device "
        "or per chip?",
    )


def binary_prefix(factor: float = 2**30 / 1e9) -> Slip:
    return scaled(
        "GiB for GB",
        factor,
        "GB counts in thousands, GiB in 1024s. Which one does the source print?",
    )


def forward_only(factor: float = 1 / 3) -> Slip:
    return scaled(
        "forward only",
        factor,
        "That is the forward pass. The backward pass multiplies twice for every "
        "forward matmul.",
    )


def precision_bytes(factor: float = 2) -> Slip:
    return scaled(
        "bytes per value",
        factor,
        "How many bytes does one value take in this precision?",
    )


def percent(factor: float = 100) -> Slip:
    return scaled("percent", factor, "A fraction is wanted: 0.4 and 40% are the same.")


def inverse() -> Slip:
    return Slip(
        "upside down",
        lambda right: 1 / right,
        "Numerator and denominator have changed places: look at the unit.",
    )


_PREFIX = "The digits fit, the prefix does not: answers are in base units."
_POWERS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
GENERIC = (
    *(scaled("a power of 1000", 1000.0**k, _PREFIX) for k in _POWERS),
    *(scaled("a power of 1024", 1024.0**k, _PREFIX) for k in _POWERS),
    *(scaled("a factor of 8", f, "A byte has 8 bits.") for f in (8, 1 / 8)),
    *(scaled("a factor of 2", f, "Look for what comes in twos.") for f in (2, 1 / 2)),
)
_IN_BYTES = ("bytes", "bytes/s", "s", "FLOPs/byte")  # units that count bytes
_BALANCES = ("tokens", "columns")  # at which FLOPs take as long as bytes
_IN_FLOPS = ("FLOPs", "FLOPs/s", "FLOPs/byte", "s", "days", *_BALANCES)


_BINARY = tuple(
    scaled(
        "a binary prefix",
        1.024**k,
        "kB, MB and GB count in thousands; KiB, MiB and GiB count in 1024s.",
    )
    for k in (-4, -3, -2, 2, 3, 4)
)
_THREE_DIGITS = 5e-3  # 16/15, a slip of another kind, is 0.7% from GiB for GB


def generic(value: float, right: float, unit: str) -> tuple[Slip, ...]:
    """The slips that any number can have and that could explain this one.

    Of powers and factors only the nearest: 1000 and 1024 are 2.4% apart. Bits are taken
    for bytes only where an answer counts bytes.

    >>> [slip.name for slip in generic(148e6, 155189248, "bytes")][1:-1]
    ['a binary prefix']
    """
    if value == 0 or (value > 0) != (right > 0):
        return ()

    def away(slip: Slip) -> float:
        return abs(math.log(abs(value)) - math.log(abs(slip.wrong(right))))

    shares = () if unit else (percent(100), percent(1 / 100))
    prefixes = _BINARY if unit in ("bytes", "bytes/s") else ()
    binary = (slip for slip in prefixes if away(slip) < _THREE_DIGITS)
    nearest = min(GENERIC, key=away)
    if nearest.name == "a factor of 8" and unit not in _IN_BYTES:
        return (inverse(), *shares, *binary)
    if nearest.name == "a factor of 2" and (twos := _twos(unit)):
        nearest = replace(nearest, says=f"{nearest.says[:-1]}: {twos}.")
    return (inverse(), *shares, *binary, nearest)


def _twos(unit: str) -> str:
    """What comes in twos in an answer of that unit; "" where it is a count of things.

    >>> _twos("FLOPs"), _twos("chips")
    ('the multiply and the add', '')
    """
    found = ["the multiply and the add"] if unit in _IN_FLOPS else []
    if unit in (*_IN_BYTES, *_BALANCES):
        found += ["the two directions of a link", "the bytes of a 16-bit value"]
    return ", ".join(found)
