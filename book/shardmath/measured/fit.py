"""The fit of the efficiencies to published runs, and its errors on runs left out.

The work of each run is derived once, and only the efficiencies change. The fit
minimises the sum of the squares of log(predicted / measured). Each row has the weight
n^(-1/2) if its source has n rows. Errors above `HUBER` count linearly instead of as
squares, so a few runs that went wrong do not set the numbers for all others.

The times of models with experts scatter twice as much as those of dense models, and
with the same settings they differ by up to 36 % from release to release. So runs
with experts decide only the number that concerns them alone; dense runs decide all
others.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from ..training.efficiencies import FITTED, Efficiencies, efficiencies
from .fit_rows import Row

HUBER = 0.25  # the largest |log(predicted / measured)| that counts as a square
STEP = 1e-3  # the change of a number's logarithm, for derivatives
OF_EXPERTS = "trips"  # the only number that runs with experts decide
CLOSE = 2e-4  # a fit ends when no logarithm of a number changes by more
MOST_ROUNDS = 100


def weights(some: Sequence[Row]) -> list[float]:
    """The weight of each row: n^(-1/2), if its source has n rows."""
    count: dict[str, int] = {}
    for row in some:
        count[row.source] = count.get(row.source, 0) + 1
    return [count[row.source] ** -0.5 for row in some]


def fit(
    some: Sequence[Row],
    start: Efficiencies | None = None,
    free: Sequence[str] = FITTED,
    close: float = CLOSE,
) -> Efficiencies:
    """The efficiencies that fit some rows best.

    Args:
        some: the rows to fit.
        start: the numbers to start from; those of the file if not given.
        free: the numbers that are fitted; the others stay fixed.
        close: the fit ends when no logarithm of a number changes by more than this.

    Source:
        Gauss and Newton's method on logarithms, with Huber's weights (Huber, Robust
        Estimation of a Location Parameter, 1964).
    """
    at, weight = start or efficiencies(), weights(some)
    for _ in range(MOST_ROUNDS):
        base = [math.log(row.predicted(at) / row.measured) for row in some]
        columns = []
        for name in free:
            moved = replace(at, **{name: getattr(at, name) * math.exp(STEP)})
            columns.append([
                (math.log(row.predicted(moved) / row.measured) - e) / STEP
                if row.experts is (name == OF_EXPERTS) else 0.0
                for row, e in zip(some, base, strict=True)
            ])  # fmt: skip
        rob = [
            w * min(1.0, HUBER / abs(e)) if e else w
            for w, e in zip(weight, base, strict=True)
        ]
        matrix = [[dot(rob, a, b) + 1e-6 * (a is b) for b in columns] for a in columns]
        change = solved(matrix, [-dot(rob, a, base) for a in columns])
        change = [max(-0.3, min(0.3, one)) for one in change]
        at = replace(at, **{
            name: getattr(at, name) * math.exp(one)
            for name, one in zip(free, change, strict=True)
        })  # fmt: skip
        if max(map(abs, change)) < close:
            break
    return at


def dot(*vectors: Iterable[float]) -> float:
    return sum(math.prod(values) for values in zip(*vectors, strict=True))


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """The solution x of A·x = b by elimination, for a positive definite A."""
    rows_ = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for n, pivot in enumerate(rows_):
        rows_[n] = pivot = [value / pivot[n] for value in pivot]
        for m, other in enumerate(rows_):
            if m != n:
                rows_[m] = [v - other[n] * p for v, p in zip(other, pivot, strict=True)]
    return [row[-1] for row in rows_]


@dataclass(frozen=True)
class Errors:
    """How far predictions are off: |predicted / measured − 1|, by source.

    Args:
        ratios: predicted ÷ measured seconds, by source.
    """

    ratios: Mapping[str, Sequence[float]]

    @property
    def all(self) -> list[float]:
        return [abs(r - 1) for some in self.ratios.values() for r in some]

    @property
    def mean(self) -> float:
        """The mean error of all rows."""
        return fmean(self.all)

    @property
    def median(self) -> float:
        return median(self.all)

    @property
    def by_source(self) -> float:
        """The mean of the sources' mean errors, so each source counts equally."""
        return fmean(fmean(abs(r - 1) for r in some) for some in self.ratios.values())

    @property
    def band(self) -> tuple[float, float]:
        """The range of measured ÷ predicted that holds 8 of 10 rows."""
        return quantiles([1 / r for some in self.ratios.values() for r in some])

    @property
    def rows(self) -> int:
        return sum(map(len, self.ratios.values()))

    def __str__(self) -> str:
        return (
            f"{self.rows} rows of {len(self.ratios)} sources: mean {self.mean:.1%}, "
            f"median {self.median:.1%}, sources alike {self.by_source:.1%}"
        )


def errors(some: Iterable[Row], at: Callable[[Row], Efficiencies]) -> Errors:
    """Errors of rows; each row is predicted with the efficiencies that `at` returns."""
    found: dict[str, list[float]] = {}
    for row in some:
        ratio = row.predicted(at(row)) / row.measured
        found.setdefault(row.source, []).append(ratio)
    return Errors({source: tuple(ratios) for source, ratios in found.items()})


def left_out(
    some: Sequence[Row],
    by: str,
    free: Sequence[str] = FITTED,
    start: Efficiencies | None = None,
    close: float = CLOSE,
) -> dict[str, Efficiencies]:
    """For each group of rows, the efficiencies fitted without this group.

    Args:
        some: all rows.
        by: what the rows of a group have in common, "source" or "generation".
        free, start, close: as for `fit`.
    """
    whole = fit(some, start, free, close)
    groups = dict.fromkeys(getattr(row, by) for row in some)
    return {
        group: fit(
            [row for row in some if getattr(row, by) != group], whole, free, close
        )
        for group in groups
    }


def quantiles(some: Sequence[float], share: float = 0.8) -> tuple[float, float]:
    """The limits of the middle `share` of some numbers."""
    ordered, tail = sorted(some), (1 - share) / 2
    last = len(ordered) - 1
    low, high = tail * last, (1 - tail) * last

    def at(place: float) -> float:
        n = min(int(place), last - 1) if last else 0
        return ordered[n] + (place - n) * (ordered[min(n + 1, last)] - ordered[n])

    return at(low), at(high)
