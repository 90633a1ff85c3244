"""Runs a function that the reader wrote, and reports what came out of it."""

import dis
import inspect
import traceback

_DOES_NOTHING = {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE"}


def is_blank(function: object) -> bool:
    """Whether a function's body is still `...`, `pass` or only its docstring.

    >>> def tokens(B, D): ...
    >>> is_blank(tokens), is_blank(lambda B: B), is_blank(3)
    (True, False, False)
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return False
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    return all(
        step.opname in _DOES_NOTHING
        and ("CONST" not in step.opname or step.argval in (None, ...))
        for step in steps
    )


def outcome(function, arguments: list) -> dict:
    """What a call gives: `{"value": …}`, or `{"error": …}` with the line it comes from.

    >>> outcome(lambda a, b: a / b, [1, 4]), outcome(max, [])["error"]
    ({'value': 0.25}, 'TypeError: max expected at least 1 argument, got 0')
    """
    try:
        return {"value": plain(function(*arguments))}
    except (Exception, SystemExit) as error:  # the reader's own: anything may come
        return {"error": describe(error, function)}


def describe(error: BaseException, function) -> str:
    """An error in one line: its type, its words, the reader's line it comes from."""
    words = " ".join(str(error).split())
    said = type(error).__name__ + (f": {words[:300]}" if words else "")
    code = getattr(inspect.unwrap(function), "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [f for f in frames if code and f.filename == code.co_filename]
    if theirs and theirs[-1].line:
        said += f" (line {theirs[-1].lineno}: {theirs[-1].line[:80]})"
    return said


def plain(value: object) -> object:
    """`value` as JSON knows it: arrays and tuples become lists.

    Raises:
        TypeError: names the type that has no such form.
    """
    if hasattr(value, "tolist"):  # NumPy and JAX arrays and scalars
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    kind = type(value).__name__
    raise TypeError(f"the result is a {kind}: give numbers, strings or lists of them")
