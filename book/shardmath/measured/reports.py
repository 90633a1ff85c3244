"""Training reports: their figures, how they count FLOPs, and what follows from them.

`REPORTS` holds the printed figures, each with its source, read from ``reports.toml``.
`conventions` has the ways to count FLOPs, and `run_figures` has the calculator.

>>> palm = REPORTS["palm_540b"]
>>> print(palm.solve("6N", "total_tokens_per_second"))
38.79 tokens/s per TPU v4, 126 TFLOPs/s, an MFU of 45.7% by 6N; 17.6 s a step; \
5.586 million chip-hours; 37.9 days on 6,144 chips
>>> palm.fact("mfu").value, palm.fact("mfu").source.kind
(0.457, 'secondary')
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import ClassVar

from ..base.facts import Fact, Source, Term, recorded
from ..base.records import HasFacts
from ..hardware import chips
from ..hardware.chips import Chip
from ..transformer import Model, model
from .conventions import (
    CONVENTIONS,
    HARDWARE,
    NAMES,
    Match,
    flops_per_token,
    mfu,
    which_convention,
)
from .reading import SOURCES as OF_RUNS
from .run import Run
from .run_figures import RunFigures, solve
from .training import RUNS

__all__ = [
    "CONVENTIONS",
    "HARDWARE",
    "INTERRUPTIONS",
    "NAMES",
    "REPORTS",
    "TOTALS",
    "VOCABULARY",
    "Interruption",
    "Interruptions",
    "Match",
    "Report",
    "RunFigures",
    "Total",
    "flops_per_token",
    "mfu",
    "solve",
    "which_convention",
]

VOCABULARY = {
    "params": Term("Parameters", "", "all, as printed"),
    "tokens": Term("Tokens of the run", "tokens", "of pre-training"),
    "batch": Term("Tokens of a step", "tokens", "on all chips, after any ramp"),
    "tokens_per_second": Term("Rate of one chip", "tokens/s", "while it trains"),
    "total_tokens_per_second": Term("Rate of all chips", "tokens/s", "while it trains"),
    "flops_per_second": Term("FLOPs/s of one chip", "FLOPs/s", "model FLOPs"),
    "hardware_flops_per_second": Term(
        "Hardware FLOPs/s of one chip", "FLOPs/s", "recomputation counted"
    ),
    "mfu": Term("MFU", "", "a share, as printed"),
    "mfu_causal": Term("MFU, causal attention", "", "a share, as printed"),
    "mfu_attention": Term("MFU, full attention", "", "a share, as printed"),
    "hfu": Term("HFU", "", "a share, as printed"),
    "step_seconds": Term("Time of a step", "s", "after any ramp of the batch"),
    "logged_step_seconds": Term("Time of one step", "s", "of a line of the log"),
    "chip_hours": Term("Chip-hours", "chip-hours", "of the run"),
    "days": Term("Days", "days", "of the run"),
    "estimated_days": Term("Days, estimated before", "days", "of the run"),
    "hours_per_trillion": Term("Chip-hours of 10^12 tokens", "chip-hours", ""),
    "days_per_trillion": Term("Days of 10^12 tokens", "days", ""),
    "context_hours": Term("Chip-hours, longer context", "chip-hours", ""),
    "post_hours": Term("Chip-hours, post-training", "chip-hours", ""),
    "later_hours": Term("Chip-hours after pre-training", "chip-hours", ""),
    "total_hours": Term("Chip-hours, all stages", "chip-hours", ""),
    "flops": Term("FLOPs of the run", "FLOPs", "as printed"),
    "flops_per_sequence": Term("FLOPs of a sequence", "FLOPs", "as printed"),
    "pf_days": Term("PF-days", "PF-days", "10^15 FLOPs/s for a day, 8.64e19 FLOPs"),
    "times_llama_2_70b": Term("Times the compute of Llama 2 70B", "", "as printed"),
    "power": Term("Power of one chip", "W", "as printed for the estimate of CO2"),
    "co2": Term("CO2 equivalent", "t", "as printed"),
    "price": Term("Price of a chip-hour", "$", "as printed"),
    "cost": Term("Cost", "$", "as printed"),
}


@dataclass(frozen=True, repr=False, eq=False)
class Report(HasFacts):
    """The figures that one report prints about a training run.

    Args:
        key: its key in `REPORTS`.
        name: the name of its model.
        chip: the chip of the run.
        precision: the format whose peak the MFU refers to.
        seq: tokens of a sequence.
        model: the model; None if only its number of parameters is recorded.
        chips: the number of chips; None if no source states it.
        facts: the printed figures, by the names of `VOCABULARY`.
        rows: the key in ``training.toml`` of the source whose rows belong to this
            report; "" if there is none.
    """

    key: str
    name: str
    chip: Chip
    seq: int
    facts: Mapping[str, Fact]
    model: Model | None = None
    chips: int | None = None
    precision: str = "bf16"
    rows: str = ""
    vocabulary: ClassVar[Mapping[str, Term]] = VOCABULARY

    def value(self, name: str) -> float:
        """A printed value.

        Raises:
            Unpublished: a ValueError; no source states the value.

        >>> REPORTS["llama_2_70b"].value("chip_hours")
        1720320
        """
        return self.fact(name).value

    @property
    def counted(self) -> Model | float:
        """The model, or its number of parameters if its shape is not recorded."""
        return self.model or self.value("params")

    @property
    def peak(self) -> float:
        """Dense FLOPs/s of one chip."""
        return self.chip.flops[self.precision]

    @property
    def runs(self) -> tuple[Run, ...]:
        """The rows of the table of training runs that belong to this report."""
        return tuple(
            run for run in RUNS
            if self.rows and run.source.key == self.rows and run.model == self.model
        )  # fmt: skip

    @property
    def second_hand(self) -> tuple[str, ...]:
        """The names of the figures not read in a document by the model's makers."""
        return tuple(
            name for name, fact in self.facts.items() if fact.source.kind == "secondary"
        )

    def solve(self, convention: str, *names: str, **settings: object) -> RunFigures:
        """The figures of the run that follow from printed ones, by `run_figures.solve`.

        Args:
            convention: as for `flops_per_token`.
            names: printed figures to start from, such as "chip_hours". They may not
                contradict one another.
            settings: arguments of `run_figures.solve` that replace printed figures.

        Raises:
            Unpublished: a ValueError; no source states one of the named figures.
            ValueError: as `run_figures.solve`; a name that gives no rate.

        >>> bloom = REPORTS["bloom_176b"]
        >>> f"{bloom.solve('6N', 'chip_hours').mfu:.1%} of the whole run"
        '31.8% of the whole run'
        """
        given = {name: self.value(name) for name in names}
        if "total_tokens_per_second" in given:
            total = given.pop("total_tokens_per_second")
            given["tokens_per_second"] = total / self.chips
        sizes = {
            name: self.value(name) for name in ("batch", "tokens") if name in self.facts
        }
        known = {"chips": self.chips, "precision": self.precision, **sizes, **given}
        return solve(self.counted, self.seq, convention, self.chip, **known | settings)

    def __repr__(self) -> str:
        count = f"{self.chips:,} " if self.chips else ""
        return f"{self.name} on {count}{self.chip.name}: {', '.join(self.facts)}"


@dataclass(frozen=True)
class Total:
    """The totals that are printed for several reports together.

    Args:
        reports: the reports that are added up.
        facts: the totals, by the names of `VOCABULARY`.
    """

    reports: tuple[Report, ...]
    facts: Mapping[str, Fact]

    def missing(self, name: str, *without: str) -> float:
        """The printed total minus the sum of the figures printed for its parts.

        Args:
            name: the name of a fact.
            without: keys of parts to leave out, as if they had not been printed.

        >>> TOTALS["llama_2"].missing("chip_hours", "llama_2_34b")
        1038336
        """
        some = (one for one in self.reports if one.key not in without)
        return self.facts[name].value - sum(one.value(name) for one in some)


@dataclass(frozen=True)
class Interruption:
    """One cause of interruptions: how often it occurred, and its printed share."""

    cause: str
    category: str
    count: int
    printed: float


@dataclass(frozen=True)
class Interruptions:
    """A published table of the interruptions of a run.

    Args:
        source: the source of the table.
        chips, days: how many chips were observed, and for how many days.
        planned, unexpected: the number of interruptions of each kind, from the text.
        by_hand: interruptions that needed manual work.
        effective: a lower bound of the share of the time that was spent training.
        printed_gpu, printed_hardware: shares that the text prints for GPUs and for
            hardware as a whole.
        rows: the causes of the unexpected interruptions.
    """

    source: Source
    chips: int
    days: float
    planned: int
    unexpected: int
    by_hand: int
    effective: float
    printed_gpu: float
    printed_hardware: float
    rows: tuple[Interruption, ...] = field(repr=False)

    def count(self, category: str = "") -> int:
        """The number of interruptions of a category, or of all categories.

        >>> INTERRUPTIONS.count(), INTERRUPTIONS.count("GPU")
        (419, 268)
        """
        return sum(row.count for row in self._of(category))

    def printed(self, category: str = "") -> float:
        """The sum of the printed shares of a category, or of all categories.

        >>> round(INTERRUPTIONS.printed(), 3), round(INTERRUPTIONS.printed("GPU"), 3)
        (0.949, 0.587)
        """
        return sum(row.printed for row in self._of(category))

    def _of(self, category: str) -> list[Interruption]:
        return [row for row in self.rows if category in ("", row.category)]


def _read() -> tuple[dict[str, Report], dict[str, Total], Interruptions]:
    """All reports, all totals, and the table of interruptions."""
    text = files(__package__).joinpath("reports.toml").read_text("utf-8")
    tables = tomllib.loads(text)
    sources = OF_RUNS | {
        key: Source(key, **row) for key, row in tables["sources"].items()
    }
    shapes = {
        key: Model(**row | {"source": sources[row["source"]]})
        for key, row in tables["models"].items()
    }

    def facts(row: dict) -> dict[str, Fact]:
        found = {}
        for name in [name for name in row if name in VOCABULARY]:
            found[name] = recorded(sources, **row.pop(name))
        return found

    reports = {}
    for key, row in tables["reports"].items():
        printed = facts(row)
        row["chip"] = chips.find(row["chip"])
        if "model" in row:
            row["model"] = shapes.get(row["model"]) or model(row["model"])
        reports[key] = Report(key, facts=printed, **row)
    totals = {
        key: Total(tuple(reports[one] for one in row.pop("reports")), facts(row))
        for key, row in tables["totals"].items()
    }
    rows = tables["interruptions"]
    rows["source"] = sources[rows["source"]]
    rows["rows"] = tuple(Interruption(*row) for row in rows["rows"])
    return reports, totals, Interruptions(**rows)


REPORTS, TOTALS, INTERRUPTIONS = _read()
