"""Arithmetic as people type it, computed with units, within bounds, without `eval`.

    sum      = product (("+" | "-") product)*
    product  = signed (("*" | "/" | "//") signed | "/" unit)*
    signed   = ("+" | "-")* amount
    amount   = atom ["**" exponent] [unit]
    exponent = ("+" | "-")* atom ["**" exponent]
    atom     = number | [function] "(" sum ("," sum)* ")"
    function = "ceil" | "floor" | "int" | "log2" | "max" | "min" | "round" | "sqrt"
    unit     = word+ (("/" | "per") word+)*

8 H100, 8xH100, 8 GPUs and 8 H100 GPUs are the same. Bits are converted to bytes. A
comma between two arguments is followed by a space: 1,024 is one number, but 1, 024 are
two.

As in Python, whole numbers stay whole, and all other numbers are floats.
"""

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ...base.units import short_repr
from .unit_words import CHIP, MODEL, Powers, is_count, meaning, same, written

_LONGEST = 300  # characters
_DEEPEST = 40  # nested parentheses and powers
_HIGHEST = 9  # power of a unit
_SIGNS = str.maketrans({**dict.fromkeys("×·∙⋅✕", "*"), **dict.fromkeys("÷∕⁄", "/"),
                        **dict.fromkeys("−–", "-"), "μ": "µ"})  # fmt: skip
_RAISED = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_SUPERSCRIPT = re.compile("[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_FLOPS = re.compile(r"FLOPS\b(?! ?(?:/|per ) ?s)")  # in capitals, a rate
_OF_MATH = re.compile(r"\bmath\.(?=[a-z]+[0-9]? ?\()")
_TIMES_CHIP = re.compile(rf"(?<=[0-9)]) ?[*xX] ?(?={CHIP})")
_TOKEN = re.compile(
    r" ?(?:(?P<number>(?=\.?[0-9])(?:[0-9]{1,3}(?:,[0-9]{3})+(?!,?[0-9])|[0-9_]+)?"
    r"(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<sign>\*\*|//|[-+*/^(),]|[xX](?= ?[0-9.(]))"
    rf"|(?P<word>{MODEL}|log2(?= ?\()|[A-Za-zµ]+|%))"
)
_COMMA = "has a comma that does not separate thousands (write 2.5 with a point)"


@dataclass(frozen=True)
class Amount:
    """A number and its unit.

    Args:
        value: the number, in base units.
        unit: base unit → its power.
        bare: whether any number in its computation has no unit.
        united: whether any number in its computation has a unit.
        bits: whether any number in its computation was given in bits.
    """

    value: int | float
    unit: Powers = field(default_factory=dict)
    bare: bool = True
    united: bool = False
    bits: bool = False

    def fits(self, unit: Powers) -> bool:
        """Whether the amount can be read as one in `unit`.

        The unit of a count may be omitted: 80 GB / 16 GB can be 5 chips. A number
        without a unit may be meant in a unit that cancels one in the denominator, as
        2e12 in 2e12 / 459 TFLOPs/s, but not in seconds.
        """
        for name in {*self.unit, *unit}:
            has, wanted = self.unit.get(name, 0), unit.get(name, 0)
            counts = has == 0 < wanted and is_count(name)
            cancels = self.bare and has < wanted <= 0 and name != "s"
            if not (has == wanted or counts or cancels):
                return False
        return True

    def __mul__(self, other: "Amount") -> "Amount":
        value = _finite(operator.mul, self.value, other.value)
        return self._and(other, value, _times(self.unit, other.unit, 1))

    def __truediv__(self, other: "Amount") -> "Amount":
        value = _finite(operator.truediv, self.value, other.value)
        return self._and(other, value, _times(self.unit, other.unit, -1))

    def __floordiv__(self, other: "Amount") -> "Amount":
        if self.unit or other.unit:
            raise ValueError("has a unit next to //")
        value = _finite(operator.floordiv, self.value, other.value)
        return self._and(other, value, {})

    def __pow__(self, other: "Amount") -> "Amount":
        if other.unit:
            raise ValueError(f"has an exponent in {written(other.unit)}")
        unit = {name: n * other.value for name, n in self.unit.items()}
        if any(n != int(n) or abs(n) > _HIGHEST for n in unit.values()):
            raise ValueError(f"has a power of {written(self.unit)} that has no meaning")
        unit = {name: int(n) for name, n in unit.items() if n}
        return replace(self, value=_power(self.value, other.value), unit=unit)

    def __neg__(self) -> "Amount":
        return replace(self, value=-self.value)

    def __add__(self, other: "Amount") -> "Amount":
        return self.alike(other, operator.add, "adds")

    def alike(self, other: "Amount", compute: Callable, verb: str) -> "Amount":
        """Apply `compute` to two amounts in the same unit."""
        for one, two in ((self, other), (other, self)):
            if one.fits(two.unit):
                value = _finite(compute, self.value, other.value)
                return self._and(other, value, two.unit)
        units = (written(a.unit) if a.unit else "plain numbers" for a in (self, other))
        raise ValueError(f"{verb} {' and '.join(units)}")

    def _and(self, other: "Amount", value: int | float, unit: Powers) -> "Amount":
        bare, united = self.bare or other.bare, self.united or other.united
        return Amount(value, unit, bare, united, self.bits or other.bits)


_ROUNDING = {"ceil": math.ceil, "floor": math.floor, "int": int, "round": round}
_CHOOSING = {"max": max, "min": min}
_FUNCTIONS = (*_ROUNDING, *_CHOOSING, "sqrt", "log2")


def _applied(name: str, given: list[Amount]) -> Amount:
    """Apply a function of `_FUNCTIONS` to its arguments, which may have units."""
    if name in _CHOOSING:
        if len(given) < 2:
            raise ValueError(
                f"has one number in {name}(): put a space after the comma between two"
            )
        found = given[0]
        for other in given[1:]:
            found = found.alike(other, _CHOOSING[name], "compares")
        return found
    if len(given) > 1:
        raise ValueError(f"has {len(given)} numbers in {name}(), which takes one")
    (one,) = given
    if name == "sqrt":
        return one ** Amount(0.5)
    if not one.fits({}) and not all(is_count(unit) for unit in one.unit):
        raise ValueError(f"has {written(one.unit)} in {name}(), which takes a number")
    if name == "log2":
        if one.value <= 0:
            raise ValueError("takes the logarithm of a number that is not above zero")
        return replace(one, value=math.log2(one.value))
    return replace(one, value=_ROUNDING[name](one.value))


def amount(text: str, own: Powers, billions: bool = False) -> Amount:
    """The value of a line of arithmetic, in base units.

    Args:
        text: numbers, units and operators, with single spaces as its only white space.
        own: the units that the question asks for, which the text may use.
        billions: whether a B after a number means a billion instead of bytes.

    Raises:
        ValueError: the text can't be computed. The message is a phrase to be put after
            the quoted text.

    >>> amount("2*512*4096*16384", {}).value
    68719476736
    >>> amount("4 GB / 800 GB/s", {})
    Amount(value=0.005, unit={'s': 1}, bare=False, united=True, bits=False)
    >>> amount("2³⁰ B", {}).value, amount("-(1 − 3)^2 × 1.5k", {}).value
    (1073741824, -6000.0)
    >>> amount("max(3, ceil(7 / 2)) * sqrt(16)", {}).value
    16.0
    """
    return _ArithmeticReader(tokens(text), own, billions).all()


def tokens(text: str) -> list[tuple[str, str]]:
    """The numbers, words and signs of a text, each as (kind, text).

    Raises:
        ValueError: the text is too long, or a character belongs to none of these. The
            message is a phrase to be put after the quoted text.

    >>> tokens("2 ÷ 3 GB")
    [('number', '2'), ('sign', '/'), ('number', '3'), ('word', 'GB')]
    """
    if len(text) > _LONGEST:
        raise ValueError(f"has more than {_LONGEST} characters")
    text = _SUPERSCRIPT.sub(lambda n: f"**({n[0].translate(_RAISED)})", text)
    text = _FLOPS.sub("FLOPs/s", text.translate(_SIGNS))
    text = _OF_MATH.sub("", _TIMES_CHIP.sub(" ", text))
    found, at = [], 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"has {text[at:].strip()[0]!r} in it")
        sign = {"^": "**", "x": "*", "X": "*"}.get(token["sign"], token["sign"])
        found.append((token.lastgroup, sign or token[token.lastgroup]))
        at = token.end()
    return found


class _ArithmeticReader:
    """Reads the grammar above, with one method for each of its rules."""

    def __init__(
        self, found: list[tuple[str, str]], own: Powers, billions: bool
    ) -> None:
        self.tokens = [*found, ("end", "")]
        self.at = 0
        self.own = own
        self.billions = billions
        self.depth = 0

    def all(self) -> Amount:
        total = self.sum()
        kind, text = self.tokens[self.at]
        if kind == "number" or text == "(" or self._is_function():
            raise ValueError(f"has no operator before {short_repr(text)}")
        if text == ",":
            raise ValueError(_COMMA)
        if kind != "end":
            raise ValueError(f"has {short_repr(text)} where an operator was expected")
        return total

    def sum(self) -> Amount:
        total = self.product()
        while sign := self._taken("+", "-"):
            right = self.product()
            total = total + (right if sign == "+" else -right)
        return total

    def product(self) -> Amount:
        total = self.signed(self.amount)
        while sign := self._taken("*", "/", "//"):
            if sign == "/" and self._is_word():  # "3 / s"
                total = total / self.unit(Amount(1))
            elif sign == "//":
                total = total // self.signed(self.amount)
            elif sign == "/":
                total = total / self.signed(self.amount)
            else:
                total = total * self.signed(self.amount)
        return total

    def signed(self, read: Callable[[], Amount]) -> Amount:
        minus = False
        while sign := self._taken("+", "-"):
            minus ^= sign == "-"
        return -read() if minus else read()

    def amount(self) -> Amount:
        found = self._raised()
        if self._is_word():
            found = self.unit(found)
            if self._taken("**"):
                raise ValueError("raises a unit to a power without parentheses")
        return found

    def exponent(self) -> Amount:
        return self.signed(self._raised)

    def unit(self, before: Amount) -> Amount:
        """The amount multiplied by the unit that follows it."""
        value, unit, below, bits = before.value, before.unit, False, before.bits
        while True:
            said = self._next()[1]
            word = meaning(said, self.own, self.billions)
            bits |= word.bits
            while self._is_word() and same(said, self.tokens[self.at][1]):
                self.at += 1
            times, by = (word.by, word.times) if below else (word.times, word.by)
            value = _finite(operator.mul, value, times)
            value = _finite(operator.truediv, value, by) if by > 1 else value
            unit = _times(unit, word.unit, -1 if below else 1)
            if self.tokens[self.at][1] in ("/", "per") and self._is_word(1):
                self.at += 1
                below = True
            elif not (self._is_word() and not word.unit):  # "8 billion params"
                break
        united = before.united or bool(unit)
        return Amount(value, unit, before.bare and not unit, united, bits)

    def _raised(self) -> Amount:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ValueError(f"is nested more than {_DEEPEST} levels deep")
        is_function = self._is_function()
        kind, text = self._next()
        if kind == "number":
            base = Amount(_number(text))
        elif is_function:
            self.at += 1  # the parenthesis
            base = _applied(text.lower(), self.arguments())
        elif text == "(":
            base, *more = self.arguments()
            if more:
                raise ValueError(_COMMA)
        elif kind == "end":
            raise ValueError("is incomplete")
        else:
            raise ValueError(f"has {short_repr(text)} where a number was expected")
        if self._taken("**"):
            base = base ** self.exponent()
        self.depth -= 1
        return base

    def arguments(self) -> list[Amount]:
        """The arguments up to the closing parenthesis, after the opening one."""
        found = [self.sum()]
        while self._taken(","):
            found.append(self.sum())
        if self._next()[1] != ")":
            raise ValueError("has a ( that is not closed")
        return found

    def _next(self) -> tuple[str, str]:
        token = self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def _taken(self, *signs: str) -> str:
        kind, text = self.tokens[self.at]
        if kind != "sign" or text not in signs:
            return ""
        self.at += 1
        return text

    def _is_word(self, ahead: int = 0) -> bool:
        at = min(self.at + ahead, len(self.tokens) - 1)
        return self.tokens[at][0] == "word" and not self._is_function(ahead)

    def _is_function(self, ahead: int = 0) -> bool:
        """Whether the token is a function: "min(" is one, and "min" alone is a unit."""
        last = len(self.tokens) - 1
        at = min(self.at + ahead, last)
        name, after = self.tokens[at][1], self.tokens[min(at + 1, last)][1]
        return name.lower() in _FUNCTIONS and after == "("


def _number(text: str) -> int | float:
    plain = text.replace(",", "")
    try:
        value = float(plain) if re.search("[.eE]", plain) else int(plain)
    except ValueError:  # 1__0
        raise ValueError(f"has {short_repr(text)} in it") from None
    return _finite(operator.pos, value)


def _power(base: int | float, exponent: int | float) -> int | float:
    if base == 0 and exponent < 0:
        raise ValueError("divides by zero")
    if base < 0 and exponent != int(exponent):
        raise ValueError("takes a root of a negative number")
    _finite(math.pow, base, exponent)  # first, because whole numbers have no size limit
    return _finite(operator.pow, base, exponent)


def _finite(compute: Callable, *values: int | float) -> int | float:
    """The result of `compute`, if it fits in a float."""
    try:
        found = compute(*values)
        if math.isfinite(found):  # raises OverflowError for an int beyond all floats
            return found
    except ZeroDivisionError:
        raise ValueError("divides by zero") from None
    except OverflowError:
        pass
    raise ValueError("is too large for a float")


def _times(one: Powers, other: Powers, sign: int) -> Powers:
    both = {
        name: one.get(name, 0) + sign * other.get(name, 0) for name in {**one, **other}
    }
    return {name: n for name, n in both.items() if n}
