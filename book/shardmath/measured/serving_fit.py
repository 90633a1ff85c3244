"""The fit of the three numbers of servers to public rows, and its errors on families,
models and generations of chips that were left out.

A prediction is nearly linear in the three numbers. So we predict every row once, and
once more with each number changed. The differences give slopes, which we use for all
fits, with and without each group of rows. Each row has the weight n^(-1/2) if its
family has n rows. Errors above `HUBER` count linearly instead of as squares, so rows
with a wrong label do not set the numbers for all others.

Some choices were made after we had looked at the remaining errors. Leaving out families
does not guard against overfitting through these choices:

- one more kernel for each of two inputs of narrow projections, and one for norms of
  queries and keys;
- a second launch for every kernel of a step with prompts;
- a wait for the first token that grows with the number of kernels, not of steps;
- corrections of labels that count chips twice;
- two releases with multi-token prediction;
- the number of servers, if a row does not state it.

A comment in the code marks each of them.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import mul

from ..inference.efficiencies import FITTED, Calibration, calibration
from .fit import Errors, dot, solved
from .fit_rows import GENERATIONS
from .serving_answers import MEANS, FilledRow, bound, predicted, regime, setting
from .serving_rows import ServingRow

FIT_TO = ("InferenceX", "NVIDIA-internal")  # sources of closed loops with both metrics
METRICS = ("tpot", "ttft")
HUBER = 0.1  # the largest |predicted / measured − 1| that counts as a square
MOVED = 1.02  # the factor by which a number is changed, for slopes
ROUNDS = 30
CLOSE = 5e-4  # the change of a logarithm below which a fit ends


@dataclass(frozen=True)
class Predicted:
    """A row with its prediction, as a function of the three numbers.

    Args:
        row: the row with its labels corrected.
        measured, bound: seconds, or tokens per second.
        base: the prediction with the numbers `at`.
        slopes: derivatives of the prediction with respect to each number.
        at: the numbers of `base`.
    """

    row: ServingRow
    measured: float
    bound: float
    base: float
    slopes: tuple[float, ...]
    at: Calibration

    def value(self, numbers: Calibration) -> float:
        """The prediction with other numbers."""
        moves = [getattr(numbers, n) - getattr(self.at, n) for n in FITTED]
        found = self.base + sum(map(mul, self.slopes, moves))
        found = max(found, 0.1 * self.base)
        if self.row.metric == "tokens":
            return min(found, self.bound)
        return max(found, self.bound)

    def ratio(self, numbers: Calibration) -> float:
        """Predicted ÷ measured seconds; for rates, measured ÷ predicted."""
        found = self.value(numbers) / self.measured
        return 1 / found if self.row.metric == "tokens" else found

    @property
    def generation(self) -> str:
        """The name of the group of chips with which its chip is left out of a fit."""
        for name, some in GENERATIONS.items():
            if self.row.chip.id in some:
                return name
        return self.row.chip.name

    @property
    def regime(self) -> str:
        return regime(self.row)


def with_slopes(found: FilledRow, at: Calibration) -> Predicted:
    """A row with its slopes at these numbers.

    Raises:
        ValueError: there is no prediction for the row.
    """
    base, _ = predicted(found.at(at))
    slopes = []
    for name in FITTED:
        step = (MOVED - 1) * getattr(at, name)
        moved, _ = predicted(found.at(replace(at, **{name: getattr(at, name) + step})))
        slopes.append((moved - base) / step)
    value = found.row.value
    return Predicted(found.row, value, bound(found), base, tuple(slopes), at)


def derived(rows: Iterable[ServingRow], at: Calibration) -> tuple[Predicted, ...]:
    """All rows that state a mean and can be predicted."""
    found = []
    for row in rows:
        if row.value is None or row.statistic not in MEANS:
            continue
        try:
            found.append(with_slopes(setting(row), at))
        except ValueError:  # `serving_answer` gives the reason
            continue
    return tuple(found)


def fitted_to(one: Predicted) -> bool:
    """Whether a row is in the fit: closed loops on servers for prefill and decode."""
    row = one.row
    return row.mode == "agg" and row.metric in METRICS and row.source.endswith(FIT_TO)


def fit(some: Sequence[Predicted], start: Calibration | None = None) -> Calibration:
    """The numbers that fit some rows best.

    First `launch` and `sequence` are fitted to TPOT, and then `first` to TTFT.

    Source:
        Gauss and Newton's method on relative errors with Huber's weights, as in
        `measured.fit`.
    """
    at = start or calibration()
    for metric, free in (("tpot", FITTED[:2]), ("ttft", FITTED[2:])):
        at = _fit([one for one in some if one.row.metric == metric], at, free)
    return at


def _fit(
    some: Sequence[Predicted], at: Calibration, free: Sequence[str]
) -> Calibration:
    count: dict[str, int] = {}
    for one in some:
        count[one.row.family] = count.get(one.row.family, 0) + 1
    weights = [count[one.row.family] ** -0.5 for one in some]
    places = [FITTED.index(name) for name in free]
    for _ in range(ROUNDS):
        errors = [one.value(at) / one.measured - 1 for one in some]
        robust = [
            w * min(1.0, HUBER / abs(e)) if e else w
            for w, e in zip(weights, errors, strict=True)
        ]
        columns = [
            [one.slopes[n] * getattr(at, FITTED[n]) / one.measured for one in some]
            for n in places
        ]
        matrix = [
            [dot(robust, a, b) + 1e-9 * (a is b) for b in columns] for a in columns
        ]
        right = [-dot(robust, a, errors) for a in columns]
        change = [max(-0.3, min(0.3, one)) for one in solved(matrix, right)]
        at = replace(at, **{
            name: getattr(at, name) * math.exp(one)
            for name, one in zip(free, change, strict=True)
        })  # fmt: skip
        if max(map(abs, change)) < CLOSE:
            break
    return at


def left_out(
    some: Sequence[Predicted], group: Callable[[Predicted], str]
) -> dict[str, Calibration]:
    """For each group of rows, the numbers fitted without this group."""
    inside = [one for one in some if fitted_to(one)]
    whole = fit(inside)
    found = {}
    for name in dict.fromkeys(map(group, some)):
        others = [one for one in inside if group(one) != name]
        found[name] = fit(others, whole) if len(others) < len(inside) else whole
    return found


GROUPS: Mapping[str, Callable[[Predicted], str]] = {
    "family": lambda one: one.row.family,
    "model": lambda one: one.row.model.name,
    "generation": lambda one: one.generation,
}


def errors(
    some: Sequence[Predicted],
    by: Callable[[Predicted], str],
    group: str = "family",
) -> dict[str, Errors]:
    """Errors of rows, each predicted without its own family, model or generation.

    Args:
        some: all rows.
        by: a function of a row that names its group of errors.
        group: which rows are left out together, as a key of `GROUPS`.
    """
    numbers = left_out(some, GROUPS[group])
    found: dict[str, dict[str, list[float]]] = {}
    for one in some:
        ratio = one.ratio(numbers[GROUPS[group](one)])
        alike = found.setdefault(by(one), {})
        alike.setdefault(one.row.family, []).append(ratio)
    return {name: Errors(found[name]) for name in sorted(found)}
