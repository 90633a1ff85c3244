"""Every row of a measured server in the book's table, with its prediction.

>>> some = [one for one in served() if one.row.metric == "tpot" and not one.named]
>>> len(some) > 1000, all(one.answer.bound <= one.answer.predicted for one in some)
(True, True)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median

from ..base.units import short_repr, text
from .serving import serving
from .serving_answers import ServingAnswer, serving_answer
from .serving_gates import checked
from .serving_rows import ServingRow

RANGES = (4, 16, 64, 256)  # upper ends of the ranges of requests in flight


@dataclass(frozen=True)
class ServedRow:
    """A measured number with its prediction.

    Args:
        row: the row as published.
        answer: the book's answer.
        named: reasons why gates name the row; see `serving_gates`.
    """

    row: ServingRow
    answer: ServingAnswer
    named: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Predicted ÷ measured seconds; for a rate, measured ÷ predicted."""
        found = self.answer.predicted / self.answer.measured
        return 1 / found if self.row.metric == "tokens" else found

    @property
    def over_bound(self) -> float:
        """Measured seconds ÷ the bound; for a rate, the bound ÷ the measured rate."""
        found = self.answer.measured / self.answer.bound
        return 1 / found if self.row.metric == "tokens" else found

    @property
    def sound(self) -> bool:
        """Whether the prediction does not beat the bound."""
        if self.row.metric == "tokens":
            return self.answer.predicted <= self.answer.bound
        return self.answer.predicted >= self.answer.bound

    @property
    def inside(self) -> bool:
        """Whether the measured value is in the band."""
        return self.answer.low <= self.answer.measured <= self.answer.high

    @property
    def kind(self) -> str:
        """The metric and the mode, by which errors are grouped."""
        metric = {"tokens": "tokens/s", "e2e": "latency"}.get(
            self.row.metric, self.row.metric.upper()
        )
        return f"{metric}, {self.row.mode}"

    @property
    def flight(self) -> str:
        """The range in `RANGES` of its number of requests in flight, in words."""
        clients = self.row.concurrency
        if clients is None:
            return "not stated"
        least = 1
        for most in RANGES:
            if clients <= most:
                return f"{least} to {most}"
            least = most + 1
        return f"{least} and more"


@cache
def served() -> tuple[ServedRow, ...]:
    """All rows of the table that have a prediction, in the order of the table."""
    rows = serving()
    named = checked(rows)
    found = []
    for at, row in enumerate(rows):
        answer = serving_answer(at + 1, row)
        if not answer.why and answer.measured is not None:
            found.append(ServedRow(row, answer, named.get(at, ())))
    return tuple(found)


def unanswered() -> dict[str, int]:
    """The number of rows without a prediction, for each reason in words."""
    found: dict[str, int] = {}
    for at, row in enumerate(serving()):
        why = serving_answer(at + 1, row).why
        if why:
            found[why] = found.get(why, 0) + 1
    return found


@dataclass(frozen=True)
class ErrorsOfRows:
    """The errors of the predictions for a set of rows.

    Args:
        rows: the number of rows.
        mean, median: mean and median of abs(predicted / measured - 1).
        ratio: the median of predicted ÷ measured.
        inside: the share of the rows that are in their bands.
        over_bound: the median of measured ÷ bound.
    """

    rows: int
    mean: float
    median: float
    ratio: float
    inside: float
    over_bound: float


def errors_of(some: Iterable[ServedRow]) -> ErrorsOfRows:
    """The errors of some rows, predicted with the fitted numbers.

    Raises:
        ValueError: there are no rows.
    """
    rows: Sequence[ServedRow] = tuple(some)
    if not rows:
        raise ValueError("some: must hold at least one row")
    ratios = [one.ratio for one in rows]
    off = [abs(ratio - 1) for ratio in ratios]
    return ErrorsOfRows(
        len(rows), fmean(off), median(off), median(ratios),
        fmean(one.inside for one in rows), median(one.over_bound for one in rows),
    )  # fmt: skip


KINDS = {  # words in a gate's reason, and the name of the gate
    "does not divide": "tensor ways divide the heads",
    "count = ": "copies of the layout are all chips",
    "of weights on each": "the weights fit",
    "caches of": "the caches of all sequences that decode fit",
    "bound": "nothing is quicker than its bound",
    "Little's law gives": "rate and latencies obey Little's law",
    "sequences decode at a time in": "more sequences do not decode in half the time",
    "rows of this configuration": "repeats agree within a factor of 1.5",
}


def gate(why: str) -> str:
    """The name of the gate that gives this reason.

    Raises:
        ValueError: no gate gives this reason.
    """
    text("why", why)
    for part, name in KINDS.items():
        if part in why:
            return name
    raise ValueError(f"{short_repr(why)}: is not a reason that a gate gives")


def by_gate() -> dict[str, list[tuple[ServingRow, str]]]:
    """The rows of the table that each gate names, with their reasons."""
    rows = serving()
    found: dict[str, list[tuple[ServingRow, str]]] = {
        name: [] for name in KINDS.values()
    }
    for at, reasons in checked(rows).items():
        for why in reasons:
            found[gate(why)].append((rows[at], why))
    return found
