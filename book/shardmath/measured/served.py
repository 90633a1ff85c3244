"""Every shipped row of a measured server, with what the book says of it.

>>> some = [one for one in served() if one.row.metric == "tpot" and not one.named]
>>> len(some) > 1000, all(one.answer.bound <= one.answer.predicted for one in some)
(True, True)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median

from .serving import serving
from .serving_answers import ServingAnswer, serving_answer
from .serving_gates import checked
from .serving_rows import ServingRow

RANGES = (4, 16, 64, 256)  # the most requests in flight of each range but the last


@dataclass(frozen=True)
class ServedRow:
    """A measured number beside its prediction.

    Args:
        row: as it was published.
        answer: of the book.
        named: why a gate names the row; see `serving_gates`.
    """

    row: ServingRow
    answer: ServingAnswer
    named: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Predicted over measured seconds; of a rate, measured over predicted."""
        found = self.answer.predicted / self.answer.measured
        return 1 / found if self.row.metric == "tokens" else found

    @property
    def over_bound(self) -> float:
        """Measured seconds over the bound; of a rate, the bound over it."""
        found = self.answer.measured / self.answer.bound
        return 1 / found if self.row.metric == "tokens" else found

    @property
    def sound(self) -> bool:
        """Whether the prediction keeps to the bound."""
        if self.row.metric == "tokens":
            return self.answer.predicted <= self.answer.bound
        return self.answer.predicted >= self.answer.bound

    @property
    def inside(self) -> bool:
        """Whether the measured value lies in the band."""
        return self.answer.low <= self.answer.measured <= self.answer.high

    @property
    def kind(self) -> str:
        """What is alike in the sense of the errors: the metric and the mode."""
        metric = {"tokens": "tokens/s", "e2e": "latency"}.get(
            self.row.metric, self.row.metric.upper()
        )
        return f"{metric}, {self.row.mode}"

    @property
    def flight(self) -> str:
        """The range of its requests in flight."""
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
    """All rows of the table for which there is a prediction, in its order."""
    rows = serving()
    named = checked(rows)
    found = []
    for at, row in enumerate(rows):
        answer = serving_answer(at + 1, row)
        if not answer.why and answer.measured is not None:
            found.append(ServedRow(row, answer, named.get(at, ())))
    return tuple(found)


def unanswered() -> dict[str, int]:
    """Why rows of the table have no prediction, in words → how many."""
    found: dict[str, int] = {}
    for at, row in enumerate(serving()):
        why = serving_answer(at + 1, row).why
        if why:
            found[why] = found.get(why, 0) + 1
    return found


@dataclass(frozen=True)
class ErrorsOfRows:
    """How far off the predictions of some rows are.

    Args:
        rows: how many.
        mean, median: of abs(predicted / measured - 1).
        ratio: the median of predicted over measured.
        inside: share of the rows that lie in their bands.
        over_bound: the median of measured over bound.
    """

    rows: int
    mean: float
    median: float
    ratio: float
    inside: float
    over_bound: float


def errors_of(some: Iterable[ServedRow]) -> ErrorsOfRows:
    """The errors of some rows, with the fitted numbers.

    Raises:
        ValueError: there are none.
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


KINDS = {  # what a reason has in it → the gate in words
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
    """The gate that gives a reason, in words.

    Raises:
        ValueError: it is none of a gate.
    """
    for part, name in KINDS.items():
        if part in why:
            return name
    raise ValueError(f"{why!r}: is no reason of a gate")


def by_gate() -> dict[str, list[tuple[ServingRow, str]]]:
    """The rows of the table that each gate names, with the reason."""
    rows = serving()
    found: dict[str, list[tuple[ServingRow, str]]] = {
        name: [] for name in KINDS.values()
    }
    for at, reasons in checked(rows).items():
        for why in reasons:
            found[gate(why)].append((rows[at], why))
    return found
