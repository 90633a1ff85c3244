"""Diagnoses the wrong results of a function by what they have in common in all cases.

A function is tested on many cases. If none of the question's slips explains its
results, they may still have something in common. For example, each may be twice the
right value, or rounded, or the two values of a pair may be swapped.
"""

import math
from collections.abc import Callable, Sequence

from .wrong_values import Diagnosis, times

_NEAR = 1e-6  # relative tolerance when values or ratios are compared
_ROUNDED: tuple[tuple[str, Callable], ...] = (
    ("down", math.floor),
    ("up", math.ceil),
    ("to the nearest whole number", round),
)


def diagnose(
    wanted: Sequence, got: Sequence, names: Sequence[str] = ()
) -> Diagnosis | None:
    """What wrong results have in common, or None if nothing is found.

    Args:
        wanted: the right result of each case, a number or a list of fixed length.
        got: the reader's results.
        names: the names of a result's values, if there are several.

    >>> diagnose([3, 5.0, 9], [6, 10, 18]).says
    'In every case it is 2 times the right value.'
    >>> diagnose([(1, 3), (2, 5)], [(1, 4), (2, 6)], ["rows", "columns"]).says
    'In every case columns is 1 more than the right value.'
    """
    if any(value is None for value in got):
        return _nothing(wanted, got)
    if any(_is_undefined(value) for value in _flat(got)):
        return _undefined(wanted, got)
    if any(_is_undefined(value) for value in _flat(wanted)):
        return _finite(wanted, got)
    columns = _columns(wanted, got)
    if columns is None:
        return None
    if len(columns) == 2:
        (right, given), (other, other_given) = columns
        if _equal(right, other_given) and _equal(other, given):
            return Diagnosis("swapped", "The two values are swapped.")
    found = [
        (number, _column(right, given))
        for number, (right, given) in enumerate(columns)
        if not _equal(right, given)
    ]
    if not found or any(one is None for _, one in found):
        return None
    number, (name, says) = found[0]
    several = len(columns) > 1
    it = names[number] if several and number < len(names) else "it"
    return Diagnosis(name, f"In every case {it} is {says}.")


def _column(wanted: Sequence[float], got: Sequence[float]) -> tuple[str, str] | None:
    """How one number of the result is wrong in all cases: a slip's name and words."""
    for way, whole in _ROUNDED:
        if _equal([whole(value) for value in wanted], got):
            return "rounded", f"the right value rounded {way}"
        if any(value != int(value) for value in got) and _equal(
            wanted, [whole(value) for value in got]
        ):
            return "not rounded", f"the right value before it is rounded {way}"
    apart = [b - a for a, b in zip(wanted, got, strict=True)]
    if len(set(wanted)) > 1 and _equal(apart, [apart[0]] * len(apart)):
        more = "more" if apart[0] > 0 else "less"
        said = f"{abs(apart[0]):.4g} {more} than the right value"
        return ("off by one" if abs(apart[0]) == 1 else "a constant apart"), said
    pairs = [(a, b) for a, b in zip(wanted, got, strict=True) if a or b]
    if any(not a or not b for a, b in pairs):
        return None
    ratios = [b / a for a, b in pairs]
    if _equal(ratios, [ratios[0]] * len(ratios)):
        if math.isclose(ratios[0], -1, rel_tol=_NEAR):
            return "the wrong sign", "the right value with the wrong sign"
        said = f"{times(ratios[0])} the right value"
        return "a constant factor", said
    inverse = [a * b for a, b in pairs]
    if _equal(inverse, [1.0] * len(inverse)):
        return "upside down", "one over the right value"
    return None


def _nothing(wanted: Sequence, got: Sequence) -> Diagnosis | None:
    """The diagnosis if the result is None in all cases or in some."""
    if all(value is None for value in got):
        return Diagnosis("no return", "It is None in every case. Is a return missing?")
    others = [(a, b) for a, b in zip(wanted, got, strict=True) if b is not None]
    if not all(_equal(_flat([a]), _flat([b])) for a, b in others):
        return None
    return Diagnosis(
        "no return",
        "It is right unless it is None. Does every branch return something?",
    )


def _undefined(wanted: Sequence, got: Sequence) -> Diagnosis | None:
    """The diagnosis if results are NaN or infinite but no right result is."""
    if any(_is_undefined(value) for value in _flat(wanted)):
        return None
    return Diagnosis(
        "NaN or infinity",
        "It is NaN or infinite in some cases. Does something overflow, or do you "
        "divide by zero?",
    )


def _finite(wanted: Sequence, got: Sequence) -> Diagnosis | None:
    """The diagnosis if all results are finite but some right results are not."""
    others = [
        (a, b)
        for a, b in zip(wanted, got, strict=True)
        if not any(_is_undefined(value) for value in _flat([a]))
    ]
    if not all(_equal(_flat([a]), _flat([b])) for a, b in others):
        return None
    return Diagnosis(
        "not infinite",
        "It is right wherever the right result is finite. What should the function "
        "return in the other cases?",
    )


def _columns(wanted: Sequence, got: Sequence) -> list[tuple[list, list]] | None:
    """(right values, given values) at each place of a result; None if sizes differ."""
    rows = [(_row(a), _row(b)) for a, b in zip(wanted, got, strict=True)]
    sizes = {len(row) for pair in rows for row in pair}
    if len(sizes) != 1 or not all(_is_number(v) for p in rows for r in p for v in r):
        return None
    (size,) = sizes
    return [([a[k] for a, _ in rows], [b[k] for _, b in rows]) for k in range(size)]


def _row(value: object) -> list:
    return list(value) if isinstance(value, list | tuple) else [value]


def _flat(values: Sequence) -> list:
    """The values in nested lists, as one list."""
    found = []
    for value in values:
        found += _flat(value) if isinstance(value, list | tuple) else [value]
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_undefined(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _equal(wanted: Sequence, got: Sequence) -> bool:
    return len(wanted) == len(got) and all(
        math.isclose(a, b, rel_tol=_NEAR) if _is_number(a) and _is_number(b) else a == b
        for a, b in zip(wanted, got, strict=True)
    )
