"""Diagnoses the wrong values of a program.

The judge has the whole arguments, the right result, and what every device holds. This
is enough to recognise most mistakes, such as a sum that is missing or computed twice, a
mean of means, a shard that belongs to another device, or rows in the wrong order. A
question can add known wrong results in its field ``values``.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...base.units import pluralize
from .program_result import ProgramResult, devices, own_results, subsets, totals
from .slips import Slip

_CLOSE = 0.02  # relative error of wrong values whose method is probably right


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong with values: the name of the slip, and one or two sentences."""

    name: str
    says: str


def diagnose(run: ProgramResult, values: Iterable[Slip] = ()) -> Diagnosis | None:
    """What is wrong with a run's values, or None if no known mistake explains them.

    Args:
        run: a result that is wrong on at least one device.
        values: the question's known wrong results, as functions of the whole arguments.
    """
    import numpy as np  # not at the top: a page judges numbers without it

    with np.errstate(all="ignore"):
        for slip in values:
            if (parts := run.cut(slip.wrong(*run.arrays))) and run.holds(parts):
                return Diagnosis(slip.name, slip.says)
        for look in (_overflow, _scaled, _shifted, _local, _exchanged, _reordered):
            if found := look(run):
                return found
    return _partly(run)


def diagnose_shape(
    got: Sequence[int], wanted: Sequence[int], mesh: Mapping[str, int]
) -> Diagnosis | None:
    """What is wrong with the shape of the whole result, or None if that is not clear.

    >>> diagnose_shape([4, 64], [8, 32], {"X": 2}).name
    'cut along another dimension'
    >>> diagnose_shape([4, 64], [32, 64], {"X": 8}).name
    'a part of the result'
    """
    if len(got) != len(wanted):
        return Diagnosis(
            "another number of dimensions",
            f"It has {pluralize(str(len(got)), 'dimensions')} instead of "
            f"{len(wanted)}.",
        )
    apart = [k for k, (a, b) in enumerate(zip(got, wanted, strict=True)) if a != b]
    if len(apart) == 2 and math.prod(got) == math.prod(wanted):
        return Diagnosis(
            "cut along another dimension",
            f"Dimensions {apart[0]} and {apart[1]} differ. Did you split the result "
            "along the right one?",
        )
    if len(apart) != 1:
        return None
    (k,) = apart
    for axes, n in _sizes(mesh):
        there = f"what it should be, and there are {n} devices along {axes}"
        if got[k] * n == wanted[k]:
            return Diagnosis(
                "a part of the result",
                f"Dimension {k} is 1/{n} of {there}. Do you return a part where more "
                "is wanted?",
            )
        if got[k] == n * wanted[k]:
            return Diagnosis(
                "more than its part",
                f"Dimension {k} is {n} times {there}. Do you return the whole where a "
                "part is wanted?",
            )
    return None


def _overflow(run: ProgramResult) -> Diagnosis | None:
    """NaN or infinity although the right values are finite."""
    import numpy as np

    if not np.isfinite(run.wanted).all() or all(np.isfinite(g).all() for g in run.got):
        return None
    kinds = [
        name
        for name, is_kind in (("infinite", np.isinf), ("NaN", np.isnan))
        if any(is_kind(one).any() for one in run.got)
    ]
    return Diagnosis(
        "NaN or infinity",
        f"Some of the values are {' or '.join(kinds)}. Does an exponential overflow, "
        "do you divide by zero, or does the mask hide a whole row?",
    )


def _scaled(run: ProgramResult) -> Diagnosis | None:
    """The same multiple of the right values everywhere."""
    got, wanted = _flat(run.got), _flat(run.parts)
    if got.shape != wanted.shape or not abs(wanted).max():
        return None
    if not abs(got).max():
        return Diagnosis("all zeros", "Every value is zero.")
    ratio = float(got @ wanted / (wanted @ wanted))
    if not ratio or not run.same(got, ratio * wanted, abs(ratio)):
        return None
    if abs(got).max() < 100 * run.near:  # too small to tell a ratio from a rounding
        return None
    return _named_ratio(ratio, run.mesh)


def _named_ratio(ratio: float, mesh: Mapping[str, int]) -> Diagnosis:
    """A constant ratio to the right values, explained by the size of a mesh axis."""
    said = f"Every value is {times(ratio)} the right one."
    kinds = (
        (
            "n times too large",
            lambda n: n,
            "did you sum over them where a mean is wanted, or sum twice? JAX "
            "automatically sums the gradient of an array that all devices share, "
            "unless `jax.lax.pcast` makes the array varying first.",
        ),
        (
            "n times too small",
            lambda n: 1 / n,
            "did you take a mean over them where a sum is wanted, or divide once too "
            "often?",
        ),
        (
            "n² times too large",
            lambda n: n**2,
            "the factor is the square of that. Did you sum twice where a mean is "
            "wanted?",
        ),
    )
    for name, of, asks in kinds:
        for axes, n in _sizes(mesh):
            if math.isclose(ratio, of(n), rel_tol=1e-3):
                there = f"There are {n} devices along {axes}"
                return Diagnosis(name, f"{said} {there}: {asks}")
    if math.isclose(ratio, -1, rel_tol=1e-3):
        return Diagnosis("the wrong sign", "Every value has the wrong sign.")
    return Diagnosis(
        "a constant factor",
        f"{said} Look for a factor that is missing or that should not be there.",
    )


def times(ratio: float) -> str:
    """A ratio in words.

    >>> times(8.0001), times(0.125), times(-2.0), times(0.3183), times(1e30)
    ('8 times', '1/8 of', '-2 times', '0.3183 times', '1e+30 times')
    """
    if abs(ratio) < 1e6 and math.isclose(ratio, round(ratio), rel_tol=1e-3):
        return f"{round(ratio)} times"
    if 1e-6 < ratio < 1 and math.isclose(1 / ratio, round(1 / ratio), rel_tol=1e-3):
        return f"1/{round(1 / ratio)} of"
    return f"{ratio:.4g} times"


def _shifted(run: ProgramResult) -> Diagnosis | None:
    """The same number added to the right values everywhere."""
    got, wanted = _flat(run.got), _flat(run.parts)
    if got.shape != wanted.shape or wanted.size < 2:
        return None
    apart = float((got - wanted).mean())
    if not run.same(got, wanted + apart):
        return None
    side = "large" if apart > 0 else "small"
    said = f"Every value is too {side} by {abs(apart):.4g}"
    for axes, n in _sizes(run.mesh):
        if math.isclose(abs(apart), math.log(n), rel_tol=1e-2):
            what = "a mean where a sum" if apart < 0 else "a sum where a mean"
            return Diagnosis(
                "a factor inside the logarithm",
                f"{said}, which is the logarithm of {n}. There are {n} devices along "
                f"{axes}: did you take {what} is wanted, inside a logarithm?",
            )
    return Diagnosis("a constant apart", f"{said}. Look for a missing term.")


def _local(run: ProgramResult) -> Diagnosis | None:
    """Results that each device computes from its own part, or their sum or mean."""
    for axes in reversed(subsets(run.mesh)):  # the fewest axes that explain it
        own = own_results(run, axes)
        if own is None:
            continue
        over = " and ".join(axes)
        parts = run.cut(own)
        if parts and run.holds(parts):
            return Diagnosis(
                "only its own part",
                f"Each device has a result of only its own part along {over}. A "
                f"collective over {over} is missing.",
            )
        if any(one.shape != run.wanted.shape for one in own):
            continue
        advice = (
            "Sum over the devices first. A step that does not commute with a sum, such "
            "as a division or a logarithm, comes last."
        )
        n = math.prod(run.mesh[axis] for axis in axes)
        total = totals(run, axes, own)
        for name, says, results in (
            (
                "a mean of means",
                f"This is the mean over {over} of what each device computes from its "
                f"own part. {advice}",
                [one / n for one in total],
            ),
            (
                "a sum of finished results",
                f"This is the sum over {over} of what each device computes from its "
                f"own part. {advice}",
                total,
            ),
        ):
            parts = run.cut(results)
            if parts and run.holds(parts):
                return Diagnosis(name, says)
    return None


def _exchanged(run: ProgramResult) -> Diagnosis | None:
    """Right parts of the result on the wrong devices."""
    parts = run.parts
    if len(parts) < 2 or all(run.same(one, parts[0]) for one in parts):
        return None
    holders = [
        next((k for k, part in enumerate(parts) if run.same(got, part)), None)
        for got in run.got
    ]
    if None in holders:
        return None
    if len(set(holders)) == 1:
        return Diagnosis(
            "the same part everywhere",
            f"Every device has the part that belongs to device {holders[0]}. "
            "Use `jax.lax.axis_index` to find which part a device should have.",
        )
    away = {(holder - k) % len(parts) for k, holder in enumerate(holders)}
    if len(away) == 1:
        (step,) = away
        step = step if step <= len(parts) // 2 else step - len(parts)
        places = pluralize(str(abs(step)), "places")
        side = "after" if step > 0 else "before"
        return Diagnosis(
            "shifted along the mesh",
            f"Each device has the part that belongs to the device {places} {side} it. "
            "Do you send in the wrong direction, or one time too many?",
        )
    said = [f"device {k} has that of {h}" for k, h in enumerate(holders) if k != h]
    return Diagnosis(
        "parts exchanged",
        f"The parts are right but on the wrong devices: {', '.join(said)}.",
    )


def _reordered(run: ProgramResult) -> Diagnosis | None:
    """The right values in another order: transposed, whole rows, or single ones."""
    pairs = list(zip(run.got, run.parts, strict=True))
    if any(got.shape != part.shape or got.size < 2 for got, part in pairs):
        return None
    if found := _order_of(run, pairs):
        return found
    apart = sum(part.size for part in run.parts) == run.wanted.size
    return _order_of(run, [(run.whole, run.wanted)]) if apart else None


def _order_of(run: ProgramResult, pairs: list) -> Diagnosis | None:
    """How the first array of each pair reorders the values of the second."""
    import numpy as np

    if all(g.ndim == 2 and g.shape == g.T.shape and run.same(g, p.T) for g, p in pairs):
        return Diagnosis("transposed", "Rows and columns are swapped.")
    for dimension in range(run.wanted.ndim):
        if all(_same_slices(run, got, part, dimension) for got, part in pairs):
            return Diagnosis(
                "in another order",
                f"The values are right but in another order along axis {dimension}.",
            )
    if all(run.same(np.sort(g, None), np.sort(p, None)) for g, p in pairs):
        return Diagnosis(
            "in another order",
            "The values are right but in another order. Which dimension is split, and "
            "along which dimension do you join the parts?",
        )
    return None


def _same_slices(run: ProgramResult, got, wanted, dimension: int) -> bool:
    """Whether one is the other with its rows along `dimension` in another order."""
    import numpy as np

    rows = [
        np.moveaxis(one, dimension, 0).reshape(one.shape[dimension], -1)
        for one in (got, wanted)
    ]
    left = list(rows[1])
    for row in rows[0]:
        at = next((k for k, other in enumerate(left) if run.same(row, other)), None)
        if at is None:
            return False
        del left[at]
    return True


def _partly(run: ProgramResult) -> Diagnosis | None:
    """Right on some devices, or in some places."""
    import numpy as np

    wrong, n = run.wrong, len(run.got)
    right = [k for k in range(n) if k not in wrong]
    if right:
        name = "right on one device" if len(right) == 1 else "right on some devices"
        verb = "is" if len(right) == 1 else "are"
        said = f"Only {devices(right, n)} {verb} right. What is different there?"
        return Diagnosis(name, said)
    got, parts = _flat(run.got), _flat(run.parts)
    off = abs(got - parts).max() / abs(run.wanted).max()
    if off < _CLOSE:
        return Diagnosis(
            "close, not exact",
            f"Every value is off by at most {off:.1%} of the largest. Did you compute "
            "something in a precision below float32?",
        )
    share = float(np.isclose(got, parts, rtol=0, atol=run.near).mean())
    if share >= 1 / 16:
        return Diagnosis("right in places", f"{share:.0%} of the values are right.")
    return None


def _sizes(mesh: Mapping[str, int]) -> list[tuple[str, int]]:
    """Axes in words, and the devices along them."""
    return [
        (" and ".join(axes), math.prod(mesh[axis] for axis in axes))
        for axes in subsets(mesh)
    ]


def _flat(arrays: Sequence):
    """All values in one row."""
    import numpy as np

    return np.concatenate([np.ravel(one) for one in arrays]).astype("float64")
