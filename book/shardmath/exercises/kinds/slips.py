"""Slips: known ways to go wrong, and common ones that recur throughout the book.

Each common slip takes the factor by which it changes the answer: counting a
multiply-add as one operation halves a FLOP count and doubles a time per FLOP. The
explanation fits both directions.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from ...base.facts import Fact


@dataclass(frozen=True)
class Slip:
    """A known way to go wrong.

    Args:
        name: two or three words, such as "sparse peak".
        wrong: returns the answer of somebody who makes this slip. It is called with the
            right value in number questions, and with the case's arguments in others.
        says: one or two sentences that explain the slip without revealing the answer.
    """

    name: str
    wrong: Callable
    says: str


def scaled(name: str, factor: float, says: str) -> Slip:
    """The slip that multiplies the right value by `factor`.

    >>> half = scaled("half", 0.5, "Both directions of the link carry bytes.")
    >>> half.wrong(8.0)
    4.0
    """
    return Slip(name, lambda right: factor * right, says)


def parts(array, n: int, dimension: int = 0) -> list:
    """The equal parts of a NumPy array that `n` devices hold along one dimension.

    Slips in the values of a program start from these parts.
    """
    import numpy as np  # not at the top: a page judges numbers without it

    return np.split(array, n, dimension)


def multiply_add(factor: float = 1 / 2) -> Slip:
    """Counting a multiply-add as one operation, or each of its halves as two."""
    return scaled(
        "multiply-add",
        factor,
        "A multiply and the add that follows it are two FLOPs. Did you leave out this "
        "factor of two, or count it twice?",
    )


def bits_for_bytes(factor: float = 8) -> Slip:
    return scaled(
        "bits for bytes",
        factor,
        "Network rates are quoted in bits and memory sizes in bytes, and a byte has "
        "8 bits.",
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
        "Data sheets often print the rate for matrices that are half zeros. "
        "Ordinary matrices are multiplied at the dense rate.",
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
        "GB counts in thousands and GiB in 1024s. Which of them does the source print?",
    )


def forward_only(factor: float = 1 / 3) -> Slip:
    return scaled(
        "forward only",
        factor,
        "That counts only the forward pass. The backward pass multiplies twice for "
        "every forward matmul.",
    )


def precision_bytes(factor: float = 2) -> Slip:
    return scaled(
        "bytes per value",
        factor,
        "How many bytes does one value take in this precision?",
    )


def percent(factor: float = 100) -> Slip:
    says = "The question asks for a fraction, where 0.4 means 40%."
    return scaled("percent", factor, says)


def inverse(check: str = "Look at the unit.") -> Slip:
    """The reciprocal of the right value.

    Args:
        check: what shows a reader that the answer is upside down; "" for a share.
    """
    says = f"Did you swap the numerator and the denominator? {check}".strip()
    return Slip("upside down", lambda right: 1 / right, says)


def other_link(link: Fact, power: int) -> Slip:
    """The rate that "How to Scale Your Model" prints for the same link.

    Args:
        link: the one-way bandwidth in a chip's record, with that book's value.
        power: 1 if the answer is proportional to the bandwidth, −1 if it is inversely
            proportional.
    """
    return scaled(
        "the link of another text",
        (link.said("book") / link.value) ** power,
        "Another text prints a lower rate for this link. Which one does the task give?",
    )


def half_of_other_link(link: Fact, power: int) -> Slip:
    """Half of the rate in `other_link`, as if that counted both directions."""
    return scaled(
        "half the link of another text",
        (link.said("book") / link.value / 2) ** power,
        "Another text prints a lower rate for this link than the task does, and that "
        "rate is already for one direction.",
    )


_PREFIX = "The digits are right, but the prefix is not. Answers are in base units."
_POWERS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
_EIGHT, _BINARY_POWER = "a factor of 8", "a power of 1024"
_BITS = "Network rates are quoted in bits, and a byte has 8 of them."
_EIGHTS = "Something comes in eights here. Did you leave it out, or count it twice?"
GENERIC = (
    *(scaled("a power of 1000", 1000.0**k, _PREFIX) for k in _POWERS),
    *(scaled(_BINARY_POWER, 1024.0**k, _PREFIX) for k in _POWERS),
    *(scaled(_EIGHT, f, _BITS) for f in (8, 1 / 8)),
    *(
        scaled(
            "a factor of 2",
            f,
            "You are off by a factor of two. What comes in twos here?",
        )
        for f in (2, 1 / 2)
    ),
)
_IN_BYTES = ("bytes", "bytes/s", "s", "FLOPs/byte")  # units that count bytes
_BALANCES = ("tokens", "columns")  # at which FLOPs take as long as bytes
_BY_1024 = (*_IN_BYTES, *_BALANCES, "FLOPs", "FLOPs/s", "params", "pairs")
_IN_FLOPS = ("FLOPs", "FLOPs/s", "FLOPs/byte", "s", "days", *_BALANCES)


_THREE_DIGITS = 5e-3  # 16/15, a slip of another kind, is 0.7% from GiB for GB


def generic(
    value: float, right: float, unit: str, eights: bool = False
) -> tuple[Slip, ...]:
    """Slips that are possible in any numerical answer and could explain this value.

    Of the slips by a power or a factor, only the nearest to the answer is included,
    because 1000 and 1024, for example, are 2.4% apart. Confusing bits with bytes is
    included only if the unit depends on bytes, and a binary prefix only for the prefix
    of the answer: MiB for MB if it is in megabytes.

    Args:
        value: the answer.
        right: the right value.
        unit: its unit.
        eights: whether the task mentions eight of something, so a factor of 8 need not
            come from bits.

    >>> [slip.name for slip in generic(148e6, 155189248, "bytes")][1:-1]
    ['a binary prefix']
    >>> generic(8.0, 1.0, "s", eights=True)[-1].says.count("?")
    1
    """
    if value == 0 or (value > 0) != (right > 0):
        return ()

    def away(slip: Slip) -> float:
        return abs(math.log(abs(value)) - math.log(abs(slip.wrong(right))))

    shares = () if unit else (percent(100), percent(1 / 100))
    upside_down = inverse() if unit else inverse("")
    prefixes = _binary(right) if unit == "bytes" else ()
    binary = (slip for slip in prefixes if away(slip) < _THREE_DIGITS)
    kinds = [slip for slip in GENERIC if unit in _BY_1024 or slip.name != _BINARY_POWER]
    nearest = min(kinds, key=away)
    if nearest.name == _EIGHT:
        bits = unit in _IN_BYTES
        if not (bits or eights):
            return (upside_down, *shares, *binary)
        says = " ".join([_BITS] * bits + [_EIGHTS] * eights)
        nearest = replace(nearest, says=says)
    if nearest.name == "a factor of 2" and (twos := _twos(unit)):
        nearest = replace(nearest, says=f"{nearest.says} For example, {twos}.")
    return (upside_down, *shares, *binary, nearest)


def _binary(right: float) -> list[Slip]:
    """The slips of mixing up binary and decimal prefixes, in a number of this size.

    >>> [round(slip.wrong(1e9)) for slip in _binary(1e9)]
    [1073741824, 931322575]
    """
    thousands = int(math.log10(abs(right)) / 3) if abs(right) >= 1000 else 0
    says = "kB, MB and GB count in thousands; KiB, MiB and GiB count in 1024s."
    factors = [1.024**thousands, 1.024**-thousands] if thousands > 1 else []
    return [scaled("a binary prefix", factor, says) for factor in factors]


def _twos(unit: str) -> str:
    """Examples of what comes in twos in an answer of that unit, or "" if none do.

    >>> _twos("FLOPs"), _twos("chips")
    ('the multiply and the add', '')
    """
    found = ["the multiply and the add"] if unit in _IN_FLOPS else []
    if unit in (*_IN_BYTES, *_BALANCES):
        found += ["the two directions of a link", "the bytes of a 16-bit value"]
    return " or ".join(found)
