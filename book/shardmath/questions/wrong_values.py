"""Wrong values of a program: what they are instead of the right ones.

The judge has the whole arguments, the truth, and what every device holds. From these
alone it finds what most wrong programs did: a sum that is missing or made twice, a mean
of means, a shard that belongs to another device, rows in another order. A question adds
alternative truths of its own, its ``values``.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..units import counted
from .program_result import ProgramResult, devices, own_results, subsets, totals
from .slips import Slip

_CLOSE = 0.02  # wrong, and so near that the way was right


@dataclass(frozen=True)
class Diagnosis:
    """What wrong values are: the name of the slip, and a sentence or two about it."""

    name: str
    says: str


def diagnose(run: ProgramResult, values: Iterable[Slip] = ()) -> Diagnosis | None:
    """What the wrong values of a run are; None where nothing known explains them.

    Args:
        run: at least one device of it is wrong.
        values: the question's alternative truths, functions of the whole arguments.
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
    """What a wrong shape of the whole result says about its parts.

    >>> diagnose_shape([4, 64], [8, 32], {"X": 2}).name
    'cut along another dimension'
    >>> diagnose_shape([4, 64], [32, 64], {"X": 8}).name
    'a part of the result'
    """
    if len(got) != len(wanted):
        return Diagnosis(
            "another number of dimensions",
            f"It has {counted(str(len(got)), 'dimensions')}, and {len(wanted)} are "
            "wanted.",
        )
    apart = [k for k, (a, b) in enumerate(zip(got, wanted, strict=True)) if a != b]
    if len(apart) == 2 and math.prod(got) == math.prod(wanted):
        return Diagnosis(
            "cut along another dimension",
            f"Dimensions {apart[0]} and {apart[1]}: is it cut along the right one?",
        )
    if len(apart) != 1:
        return None
    (k,) = apart
    for axes, n in _sizes(mesh):
        there = f"what is wanted, and {n} devices lie along {axes}"
        if got[k] * n == wanted[k]:
            return Diagnosis(
                "a part of the result",
                f"Dimension {k} is 1/{n} of {there}: is a part returned where more is "
                "wanted?",
            )
        if got[k] == n * wanted[k]:
            return Diagnosis(
                "more than its part",
                f"Dimension {k} is {n} times {there}: is the whole returned where a "
                "part is wanted?",
            )
    return None


def _overflow(run: ProgramResult) -> Diagnosis | None:
    """NaN or infinity where the truth is finite."""
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
        f"Some of them are {' or '.join(kinds)}. Does an exponential overflow, is "
        "something divided by zero, or is everything in a row masked?",
    )


def _scaled(run: ProgramResult) -> Diagnosis | None:
    """The same multiple of the right values everywhere."""
    got, wanted = _flat(run.got), _flat(run.parts)
    if got.shape != wanted.shape or not abs(wanted).max():
        return None
    if not abs(got).max():
        return Diagnosis("all zeros", "All of them are zero.")
    ratio = float(got @ wanted / (wanted @ wanted))
    if not ratio or not run.same(got, ratio * wanted, abs(ratio)):
        return None
    if abs(got).max() < 100 * run.near:  # too small to tell a ratio from a rounding
        return None
    return _named_ratio(ratio, run.mesh)


def _named_ratio(ratio: float, mesh: Mapping[str, int]) -> Diagnosis:
    """A constant ratio to the truth, explained by the size of a mesh axis."""
    said = f"All of them are {times(ratio)} the right values."
    kinds = (
        (
            "n times too large",
            lambda n: n,
            "is something added up over them where a mean is wanted, or added up "
            "twice? JAX itself sums the gradient of an array that the devices share, "
            "unless `jax.lax.pcast` makes it their own.",
        ),
        (
            "n times too small",
            lambda n: 1 / n,
            "is there a mean over them where a sum is wanted, or a division too many?",
        ),
        (
            "n² times too large",
            lambda n: n**2,
            "the square of that is one sum too many, and a mean that is missing.",
        ),
    )
    for name, of, asks in kinds:
        for axes, n in _sizes(mesh):
            if math.isclose(ratio, of(n), rel_tol=1e-3):
                there = f"{n} devices lie along {axes}"
                return Diagnosis(name, f"{said} {there}: {asks}")
    if math.isclose(ratio, -1, rel_tol=1e-3):
        return Diagnosis("the wrong sign", "All of them have the wrong sign.")
    return Diagnosis(
        "a constant factor", f"{said} Which factor is too much or missing?"
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
    """The same number above or below the right values everywhere."""
    got, wanted = _flat(run.got), _flat(run.parts)
    if got.shape != wanted.shape or wanted.size < 2:
        return None
    apart = float((got - wanted).mean())
    if not run.same(got, wanted + apart):
        return None
    said = (
        f"All of them are too {'large' if apart > 0 else 'small'} by {abs(apart):.4g}"
    )
    for axes, n in _sizes(run.mesh):
        if math.isclose(abs(apart), math.log(n), rel_tol=1e-2):
            what = "a mean where a sum" if apart < 0 else "a sum where a mean"
            return Diagnosis(
                "a factor inside the logarithm",
                f"{said}, the logarithm of {n}, and {n} devices lie along {axes}: is "
                f"there {what} is wanted, inside a logarithm?",
            )
    return Diagnosis("a constant apart", f"{said}. Which term is too much or missing?")


def _local(run: ProgramResult) -> Diagnosis | None:
    """What the devices compute from their own parts alone, or a sum or mean of that."""
    for axes in reversed(subsets(run.mesh)):  # the fewest axes that explain it
        own = own_results(run, axes)
        if own is None:
            continue
        over = " and ".join(axes)
        parts = run.cut(own)
        if parts and run.holds(parts):
            return Diagnosis(
                "its own part alone",
                f"Each device holds what its own part along {over} gives. A collective "
                f"over {over} is missing.",
            )
        if any(one.shape != run.wanted.shape for one in own):
            continue
        n = math.prod(run.mesh[axis] for axis in axes)
        total = totals(run, axes, own)
        for name, says, results in (
            (
                "a mean of means",
                f"They are the mean over {over} of what each device's own part gives. "
                "Add up over the devices first; what is no sum, such as a division or "
                "a logarithm, comes last.",
                [one / n for one in total],
            ),
            (
                "a sum of finished results",
                f"They are the sum over {over} of what each device's own part gives. "
                "Add up over the devices first; what is no sum, such as a division or "
                "a logarithm, comes last.",
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
            "everyone's part the same",
            f"Every device holds the part of device {holders[0]}. "
            "`jax.lax.axis_index` tells a device which part is its own.",
        )
    away = {(holder - k) % len(parts) for k, holder in enumerate(holders)}
    if len(away) == 1:
        (step,) = away
        step = step if step <= len(parts) // 2 else step - len(parts)
        said = f"Each device holds the part of the one {abs(step)} "
        said += f"{'place' if abs(step) == 1 else 'places'} "
        said += "further on" if step > 0 else "before it"
        return Diagnosis(
            "shifted along the mesh",
            f"{said}. Does something go the wrong way round, or once too often?",
        )
    said = ", ".join(f"{k} that of {h}" for k, h in enumerate(holders) if k != h)
    return Diagnosis(
        "parts exchanged",
        f"The parts are right and lie on the wrong devices: device {said}.",
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
    """The order in which each first array of a pair has the values of the second."""
    import numpy as np

    if all(g.ndim == 2 and g.shape == g.T.shape and run.same(g, p.T) for g, p in pairs):
        return Diagnosis("transposed", "Rows and columns have changed places.")
    for dimension in range(run.wanted.ndim):
        if all(_same_slices(run, got, part, dimension) for got, part in pairs):
            return Diagnosis(
                "in another order",
                f"The right values are there, in another order along dimension "
                f"{dimension}.",
            )
    if all(run.same(np.sort(g, None), np.sort(p, None)) for g, p in pairs):
        return Diagnosis(
            "in another order",
            "The right values are there, in another order. Which dimension is split, "
            "and along which are the parts joined?",
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
        name = (
            "right on one device alone" if len(right) == 1 else "right on some devices"
        )
        said = f"Right on {devices(right, n)} alone: what is different there?"
        return Diagnosis(name, said)
    off = (
        max(
            float(abs(got - part).max())
            for got, part in zip(run.got, run.parts, strict=True)
            if got.shape == part.shape and got.size
        )
        / abs(run.wanted).max()
    )
    if off < _CLOSE:
        return Diagnosis(
            "close, not exact",
            f"All of them are near, within {off:.1g} of the largest. Is something "
            "computed in less than float32?",
        )
    close = [
        np.isclose(got, part, rtol=0, atol=run.near)
        for got, part in zip(run.got, run.parts, strict=True)
        if got.shape == part.shape
    ]
    share = float(np.mean([one.mean() for one in close])) if close else 0.0
    if share >= 1 / 16:
        return Diagnosis("right in places", f"{share:.0%} of them are right.")
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
