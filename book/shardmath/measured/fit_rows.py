"""Published runs, reduced to what a prediction needs.

Deriving the work of all runs takes some ten seconds, so this work is kept in
``workloads.json``, which `make refit` writes. A test derives a part of the rows again
and compares them with the file.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ..hardware.chips import Chip
from ..training import Software
from ..training.efficiencies import Efficiencies, efficiencies
from ..training.operations import Done, MovedWeights
from ..training.prediction import Clock, PartWork, Workload, seconds_by_part, workload
from .filling import filled
from .reading import family
from .run import Run
from .training import RUNS

DIGITS = 6  # digits of the numbers that are kept
MIXED = "Megatron Bridge"  # a source with many dense rows and many with experts
GENERATIONS = {  # chips whose runs are left out together
    "H100": ("h100", "h800", "h200"),
    "A100": ("a100_80gb", "a100_40gb"),
    "B200 family": ("b200", "gb200", "b300", "gb300"),
}


@dataclass(frozen=True)
class Row:
    """One run, ready for a prediction.

    Args:
        run: the run.
        work: the work of a step.
        measured: measured seconds of a step.
        bound: seconds that no run can beat.
        assumed: the settings that were filled in, in words.
        fits: whether the step fits in memory.
    """

    run: Run
    work: Workload
    measured: float
    bound: float
    assumed: tuple[str, ...] = ()
    fits: bool = True

    @property
    def chip(self) -> Chip:
        return self.run.chip

    @property
    def software(self) -> Software:
        return self.run.software

    @property
    def experts(self) -> bool:
        """Whether its model has experts."""
        return bool(self.run.model.experts)

    @property
    def source(self) -> str:
        """The name of the group of runs with which this run is left out of a fit. If a
        source has models of both kinds, those with experts have another name."""
        name = family(self.run.source.key)
        return f"{name}, experts" if self.experts and name == MIXED else name

    @property
    def generation(self) -> str:
        """The name of the group of chips with which its chip is left out of a fit."""
        for name, some in GENERATIONS.items():
            if self.chip.id in some:
                return name
        return self.chip.name

    def parts(self, at: Efficiencies) -> dict[str, float]:
        """Predicted seconds by part."""
        clock = Clock(self.chip, self.run.precision, self.software, at)
        return seconds_by_part(self.work, clock)

    def predicted(self, at: Efficiencies | None = None) -> float:
        """Predicted seconds, never below the bound; with the fitted efficiencies if
        none are given."""
        return max(self.bound, sum(self.parts(at or efficiencies()).values()))


def row_of(run: Run) -> Row:
    """A run as a row.

    Raises:
        ValueError: too little is published, or its settings contradict one another.
            If mesh axes share a ring, the run cannot be predicted either.
    """
    found = filled(run)
    step = found.step
    return Row(
        run,
        workload(step.cost, step.rates, step.strategy.ring),
        found.run.seconds,
        step.estimate.lower if run.network is None else run.bound.lower,
        found.assumed,
        found.fits,
    )


def derived(runs: tuple[Run, ...] = RUNS) -> dict[int, Row]:
    """All published runs that can be predicted, by their index in the table."""
    found = {}
    for at, run in enumerate(runs):
        try:
            found[at] = row_of(run)
        except ValueError:  # `unpredicted` gives the reason
            continue
    return found


def unpredicted() -> dict[str, str]:
    """Published runs that cannot be predicted, and why."""
    found = {}
    for at, run in enumerate(RUNS):
        if at in _kept():
            continue
        try:
            filled(run)
        except ValueError as error:
            found[str(run)] = str(error).partition("\n")[0]
    return found


# --------------------------------------------------------------------- the kept file


@cache
def rows() -> tuple[Row, ...]:
    """All published runs that can be predicted, from the file."""
    return tuple(
        Row(RUNS[at], _work(one["work"]), *one["times"], tuple(one["assumed"]),
            one["fits"])
        for at, one in _kept().items()
    )  # fmt: skip


@cache
def _kept() -> dict[int, dict]:
    text = files(__package__).joinpath("workloads.json").read_text("utf-8")
    return {one["row"]: one for one in json.loads(text)}


def to_json(some: Mapping[int, Row]) -> str:
    """Rows in the format of the file, one per line."""
    lines = (
        {
            "row": at,
            "times": [row.measured, row.bound],
            "assumed": row.assumed,
            "fits": row.fits,
            "work": _plain(row.work),
        }
        for at, row in some.items()
    )
    text = ",\n".join(json.dumps(_rounded(one), separators=(",", ":")) for one in lines)
    return f"[\n{text}\n]\n"


def _plain(work: Workload) -> list:
    """A workload as lists."""
    stages = [
        [count, [[n, *(list(one) for one in part[:3]), list(part.moved)]
                 for n, part in parts]]
        for count, parts in work.stages
    ]  # fmt: skip
    return [stages, work.rounds, work.pipeline, work.state, work.hops]


def _work(plain: list) -> Workload:
    """The workload that `_plain` wrote."""
    stages, rounds, pipeline, state, hops = plain
    return Workload(
        tuple(
            (count, tuple((n, _part(*one)) for n, *one in parts))
            for count, parts in stages
        ),
        rounds,
        tuple(pipeline),
        tuple(state),
        hops,
    )


def _part(*plain: list) -> PartWork:
    *passes, moved = plain
    done = (Done(tuple(map(tuple, products)), *others) for products, *others in passes)
    return PartWork(*done, MovedWeights(*moved))


def _rounded(value: object) -> object:
    """The value with all numbers in it rounded to `DIGITS` digits."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return (
        [_rounded(one) for one in value] if isinstance(value, list | tuple) else value
    )
