"""Runs a function that the reader wrote, and reports its result or its error."""

import decimal
import dis
import inspect
import linecache
import numbers
import types

_DOES_NOTHING = {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE"}
_MOST_BITS = 10_000  # of a whole number; Python prints at most 4,300 digits


def is_blank(function: object) -> bool:
    """Whether a function's body is still `...`, `pass` or only its docstring.

    >>> def tokens(B, D): ...
    >>> is_blank(tokens), is_blank(lambda B: B), is_blank(3)
    (True, False, False)
    """
    code = _code(function)
    if code is None:
        return False
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    return all(
        step.opname in _DOES_NOTHING
        and ("CONST" not in step.opname or step.argval in (None, ...))
        for step in steps
    )


def outcome(function, arguments: list) -> dict:
    """The outcome of a call: `{"value": …}`, or `{"error": …}` with the line at fault.

    If the value was computed in float32, as in JAX, there is `"single": True` too.

    >>> outcome(lambda a, b: a / b, [1, 4]), outcome(max, [])["error"]
    ({'value': 0.25}, 'TypeError: max expected at least 1 argument, got 0')
    """
    try:
        value = function(*arguments)
        single = {"single": True} if is_single(value) else {}
        return {"value": plain(value), **single}
    except KeyboardInterrupt:  # the reader stops the cell
        raise
    except BaseException as error:  # the reader's code may raise anything
        return {"error": describe(error, function)}


def describe(error: BaseException, function: object) -> str:
    """An error in one line: its type, its message, and the line of the reader's code.

    Args:
        error: the exception.
        function: the reader's function, or the code object of all that the reader
            wrote; with None, no line is quoted.

    >>> describe(ValueError("no\\nsuch thing"), None)
    'ValueError: no such thing'
    """
    words = " ".join(_words(error).split())[:300]
    said = type(error).__name__ + (f": {words}" if words else "")
    if code := _code(function):
        said += _last_line(error, code.co_filename)
    return said.encode("utf-8", "backslashreplace").decode()  # may hold a surrogate


def _last_line(error: BaseException, file: str) -> str:
    """The last line of `file` in an error's traceback, or ""."""
    number, step = 0, error.__traceback__
    while step:
        if step.tb_frame.f_code.co_filename == file:
            number = step.tb_lineno
        step = step.tb_next
    text = linecache.getline(file, number).strip()
    return f" (line {number}: {text[:80]})" if text else ""


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # the reader's exception may raise in its __str__
        return ""


def _code(function: object) -> types.CodeType | None:
    try:
        if isinstance(function, types.CodeType):
            return function
        code = getattr(inspect.unwrap(function), "__code__", None)
        return code if isinstance(code, types.CodeType) else None
    except Exception:  # an object whose attributes raise
        return None


def is_single(value: object) -> bool:
    """Whether any part of a result is an array or scalar of dtype float32."""
    if isinstance(value, list | tuple):
        return any(map(is_single, value))
    return str(getattr(value, "dtype", "")) == "float32"


def plain(value: object) -> object:
    """`value` in JSON types: arrays and tuples become lists, fractions become floats.

    >>> from fractions import Fraction
    >>> plain((Fraction(3, 2), Fraction(4))), plain(decimal.Decimal("0.5"))
    ([1.5, 4], 0.5)

    Raises:
        TypeError: the value has a type without such a form. The message names the type.
        ValueError: a whole number is too large to be printed.
    """
    if hasattr(value, "tolist"):  # NumPy and JAX arrays and scalars
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ValueError("the result is a whole number of more than 3,000 digits")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, numbers.Rational) and value.denominator == 1:
        return plain(int(value))
    if isinstance(value, numbers.Rational | decimal.Decimal):
        return float(value)
    kind = type(value).__name__
    raise TypeError(f"the result is a {kind}; return numbers, strings or lists of them")
