"""Number formats: the values that a few bits can hold, and rounding to them.

A format has a sign bit, E bits of exponent and m bits of mantissa. Its positive values
are

    2^e · (1 + M / 2^m)        for e from 1 − bias upward, 0 ≤ M < 2^m (normal values)
    2^(1 − bias) · M / 2^m     below them (subnormal values)

A binade is the values from one power of two to the next. Inside it, neighbours are
equally far apart, and this distance doubles from each binade to the next. A format
without exponent bits has only the subnormal values, so it is an integer format.
"""

import contextlib
import math
from dataclasses import dataclass
from functools import cached_property

from ..base.units import flags, non_negative_int, number, short_repr, shortened, text

MOST_BITS = 8  # of an exponent, so that every value fits into a Python float
MOST_MANTISSA = 23
OVERFLOWS = {  # by the codes of the largest exponent that are no finite values
    "infinity": "becomes infinity",  # all of them, as in IEEE 754
    "NaN": "becomes NaN",  # only the last one, as in e4m3 by OCP
    "saturation": "is set to the largest value",  # none, as in 6 and 4 bits
}


@dataclass(frozen=True)
class NumberFormat:
    """A binary format with a sign, and what becomes of numbers that are too large.

    Args:
        name: the name of the format.
        exponent: bits of the exponent, 0 for integers.
        mantissa: bits of the mantissa, without the implied one.
        overflow: "infinity", "NaN" or "saturation".

    The bias is 2^(E − 1) − 1. For integers it is 1 − m, so that all values are whole.

    Source: IEEE 754 for fp32 and fp16; OCP Microscaling Formats 1.0 for those of 8, 6
    and 4 bits.

    >>> E4M3.largest, E4M3.smallest, len(E4M3.values)
    (448.0, 0.001953125, 127)

    Raises:
        ValueError: numbers of bits that do not make a format, or an unknown overflow.
    """

    name: str
    exponent: int
    mantissa: int
    overflow: str = "infinity"

    def __post_init__(self) -> None:
        text("name", self.name)
        for word, most in (("exponent", MOST_BITS), ("mantissa", MOST_MANTISSA)):
            bits = _whole(getattr(self, word), most)
            if bits is None:
                raise ValueError(
                    f"{word} = {short_repr(getattr(self, word))}: must be a whole "
                    f"number of bits from 0 to {most}"
                )
            object.__setattr__(self, word, bits)
        if not isinstance(self.overflow, str) or self.overflow not in OVERFLOWS:
            raise ValueError(
                f"overflow = {short_repr(self.overflow)}: must be one of "
                f"{', '.join(OVERFLOWS)}"
            )
        if not self.exponent + self.mantissa or self._last < 1:
            raise ValueError(
                f"exponent = {self.exponent}, mantissa = {self.mantissa}: must leave a "
                "value above 0"
            )

    @property
    def _shown(self) -> str:
        return shortened(self.name)

    @property
    def bits(self) -> int:
        """Bits of a value: 1 + E + m."""
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        """The number that is subtracted from the stored exponent."""
        if not self.exponent:
            return 1 - self.mantissa
        return 2 ** (self.exponent - 1) - 1

    @property
    def _last(self) -> int:
        """The code of the largest finite value; that of 0 is 0."""
        codes = 2 ** (self.exponent + self.mantissa)
        if not self.exponent or self.overflow == "saturation":
            return codes - 1
        if self.overflow == "NaN":
            return codes - 2
        return codes - 2**self.mantissa - 1

    def value(self, code: int) -> float:
        """The value of a code, without a sign.

        Args:
            code: from 0 to the code of the largest finite value.

        Raises:
            ValueError: another code.

        >>> [E2M1.value(code) for code in range(8)]
        [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
        """
        found = _whole(code, self._last)
        if found is None:
            raise ValueError(
                f"code = {short_repr(code)}: must be from 0 to {self._last} for the "
                f"finite values of {self._shown}"
            )
        stored, M = divmod(found, 2**self.mantissa)
        implied = 2**self.mantissa if stored else 0
        return math.ldexp(implied + M, max(stored, 1) - self.bias - self.mantissa)

    @cached_property
    def values(self) -> tuple[float, ...]:
        """All finite values from 0 upward.

        Raises:
            ValueError: the format has more than 16 bits, too many to list its values.
        """
        if self.bits > 16:
            raise ValueError(
                f"{self._shown}: must have at most 16 bits to be listed, has "
                f"{self.bits}"
            )
        return tuple(map(self.value, range(self._last + 1)))

    @property
    def largest(self) -> float:
        """The largest finite value."""
        return self.value(self._last)

    @property
    def smallest(self) -> float:
        """The smallest value above 0."""
        return self.value(1)

    @property
    def smallest_normal(self) -> float:
        """The smallest normal value; for integers, which have none, the largest."""
        return self.value(2**self.mantissa) if self.exponent else self.largest

    def spacing(self, x: float) -> float:
        """The distance between neighbouring values at `x`: 2^(e − m).

        >>> E4M3.spacing(300.0), E4M3.spacing(0.001)
        (32.0, 0.001953125)

        Raises:
            ValueError: `x` is not a finite number.
        """
        found = _as_float(x)
        if not math.isfinite(found):
            raise ValueError(f"x = {short_repr(x)}: must be a finite number")
        e = math.frexp(abs(found))[1] - 1
        lowest = 1 - self.bias
        return math.ldexp(1.0, max(e, lowest) - self.mantissa)

    def round(self, x: float, saturate: bool = False) -> float:
        """The nearest value; of two that are equally near, the one with the even code.

        Args:
            x: any number; an infinite one is beyond the largest value.
            saturate: set numbers beyond the largest value to that value.

        Raises:
            ValueError: `x` is NaN, or it is beyond the largest value; the message says
                what `x` would become.

        >>> E4M3.round(300.0), E4M3.round(500.0, saturate=True)
        (288.0, 448.0)
        >>> E4M3.round(-math.inf, saturate=True)
        -448.0
        """
        (saturate,) = flags(saturate=saturate)
        given = _as_float(x)
        if math.isnan(given):
            raise ValueError(f"x = {short_repr(x)}: must be a number, which NaN is not")
        if math.isfinite(given):
            step = self.spacing(given)
            found = math.copysign(round(abs(given) / step) * step, given)
            if abs(found) <= self.largest:
                return found
        if saturate:
            return math.copysign(self.largest, given)
        raise ValueError(
            f"x = {short_repr(x)}: is beyond {self.largest:g}, the largest value of "
            f"{self._shown}, and {OVERFLOWS[self.overflow]}; scale it or saturate"
        )

    @property
    def rms_error(self) -> float:
        """Root mean square of the relative error of normal values.

        2^−(m + 1) / √3 · √(3 / (8 ln 2))

        The first factor is the error at the lower end of a binade: half a spacing,
        divided by √3. The second factor, 0.7355, is an average over values whose
        logarithms are uniformly distributed. For other distributions this factor is
        between 0.5 and 1.

        >>> f"{E4M3.rms_error:.4f} {BF16.rms_error:.5f}"
        '0.0265 0.00166'
        """
        at_the_bottom = 2.0 ** -(self.mantissa + 1) / math.sqrt(3)
        return at_the_bottom * math.sqrt(3 / (8 * math.log(2)))

    @property
    def stalls_at(self) -> float:
        """The value at which a sum of ones stops growing: 2^(m + 1).

        The spacing there is 2, so adding 1 is a tie, which rounds to the even code.

        >>> BF16.stalls_at, E5M2.stalls_at
        (256.0, 8.0)
        """
        return 2.0 ** (self.mantissa + 1)


def integers(bits: int) -> NumberFormat:
    """Whole numbers from −(2^(bits − 1) − 1) to 2^(bits − 1) − 1.

    Two's complement has one more negative value, which symmetric scaling does not use.

    >>> integers(8).largest
    127.0

    Raises:
        ValueError: `bits` is not a whole number from 2 to 24.
    """
    found = _whole(bits, 1 + MOST_MANTISSA)
    if found is None or found < 2:
        raise ValueError(
            f"bits = {short_repr(bits)}: must be a whole number from 2 to "
            f"{1 + MOST_MANTISSA}"
        )
    return NumberFormat(f"int{found}", 0, found - 1, "saturation")


def _whole(value: object, most: int) -> int | None:
    """`value` as Python's int if it is a whole number from 0 to `most`."""
    with contextlib.suppress(ValueError):
        (found,) = non_negative_int(value=value)
        if found <= most:
            return found
    return None


def _as_float(x: object) -> float:
    """`x` as a float; one that no float can hold becomes infinite."""
    found = number("x", x)
    try:
        return float(found)
    except OverflowError:
        return math.inf if found > 0 else -math.inf


FP32 = NumberFormat("fp32", 8, 23)
BF16 = NumberFormat("bf16", 8, 7)
FP16 = NumberFormat("fp16", 5, 10)
E5M2 = NumberFormat("e5m2", 5, 2)
E4M3 = NumberFormat("e4m3", 4, 3, "NaN")
E3M2 = NumberFormat("e3m2", 3, 2, "saturation")
E2M3 = NumberFormat("e2m3", 2, 3, "saturation")
E2M1 = NumberFormat("e2m1", 2, 1, "saturation")
INT8 = integers(8)
INT4 = integers(4)
FORMATS = (FP32, BF16, FP16, E5M2, E4M3, E3M2, E2M3, E2M1, INT8, INT4)


def find(name: str) -> NumberFormat:
    """The format called `name`.

    >>> find("e5m2").largest
    57344.0

    Raises:
        ValueError: no format has this name; the message lists those that exist.
    """
    known = {one.name: one for one in FORMATS}
    if not isinstance(name, str) or name not in known:
        raise ValueError(
            f"format {short_repr(name)}: must be one of {', '.join(known)}"
        )
    return known[name]
