"""The planner's recommendation for every published job that uses model parallelism.

We compare the recommendations with the meshes that were published. A published mesh is
seldom the best one, because many pages only show what a framework can do, and large
runs use what is known to work. Still, the share of jobs for which the two agree is a
test of the planner.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from ..planner import Plan, Trial, plan
from ..training.job import usual_formats
from .fit_rows import Row, rows
from .run import FOLDED, Run

MODEL_AXES = ("pipeline", "context", "tensor", "expert")
SEARCHED = 1000  # meshes of a plan that are compared
BEFORE_ZERO = {"zero": 1, "fsdp": 1, "context": 1}  # older software did not have these


class ModelSplit(NamedTuple):
    """The size of each kind of model parallelism.

    >>> print(ModelSplit(16, 1, 8, 1))
    pipeline 16 x tensor 8
    """

    pipeline: int = 1
    context: int = 1
    tensor: int = 1
    expert: int = 1

    def __str__(self) -> str:
        some = zip(MODEL_AXES, self, strict=True)
        return " x ".join(f"{axis} {n}" for axis, n in some if n > 1) or "none"


@dataclass(frozen=True)
class PublicJob:
    """A model and a batch on some chips, and the meshes on which they were run.

    Args:
        runs: the published runs of this job.
    """

    runs: tuple[Run, ...]

    @property
    def published(self) -> tuple[ModelSplit, ...]:
        return tuple(dict.fromkeys(map(split, self.runs)))

    @property
    def plan(self) -> Plan:
        """The planner's answer, with the software that existed when the job was run."""
        one = self.runs[0]
        old = one.attention_kernel == "unfused"
        return plan(
            one.model,
            one.network,
            one.tokens,
            one.seq,
            precision=one.precision,
            formats={**usual_formats(one.chip, one.precision), **one.formats},
            kernel="unfused" if old else "fused",
            loss=one.loss or "once",
            remat=one.remat or "full" if old else None,
            fixed=BEFORE_ZERO if old else None,
            schedule="dualpipe" if one.schedule == "dualpipe" else "1f1b",
            node_limit=one.node_limit,
            overlap=one.overlap,
            top=SEARCHED,
        )

    def __str__(self) -> str:
        one = self.runs[0]
        return (
            f"{one.model.name}, {one.seqs:,} x {one.seq:,} tokens, {one.precision}, "
            f"{one.chips:,} {one.chip.name}"
        )


class Outcome(NamedTuple):
    """The planner's answer for one job.

    Args:
        job: the job in words.
        published: the published meshes in words.
        recommended: the recommended mesh in words.
        rank: the rank of the best published mesh, from 1; None if it is not in the
            ranking.
        over: predicted time of the fastest published mesh ÷ that of the fastest mesh;
            None as for `rank`.
    """

    job: str
    published: tuple[str, ...]
    recommended: str
    rank: int | None
    over: float | None


def split(run: Run) -> ModelSplit:
    """The model parallelism of a published mesh. Folded axes also count for experts."""
    ways = dict.fromkeys(MODEL_AXES, 1)
    for axis, n in run.mesh.items():
        kind = axis.partition("_")[0]
        if kind in ways:
            ways[kind] *= n
        if axis in FOLDED:
            ways["expert"] *= n
    return ModelSplit(**ways)


def split_of_plan(trial: Trial) -> ModelSplit:
    """The model parallelism of a mesh that the planner found."""
    ways = {axis: trial.sizes[axis] for axis in MODEL_AXES}
    return ModelSplit(**{**ways, "expert": trial.candidate.experts_over})


def public_jobs(
    some: Iterable[Row] | None = None, divided: bool = True
) -> tuple[PublicJob, ...]:
    """The published jobs on several chips and a known network.

    Args:
        some: rows of published runs; all of them if not given.
        divided: whether to return the jobs of which a run used model parallelism, with
            these runs, or the jobs of which no run did.
    """
    found: dict[tuple, list[Run]] = {}
    for row in rows() if some is None else some:
        run = row.run
        if run.chips > 1 and run.network is not None:
            key = run.model.name, run.chip, run.chips, run.seqs, run.seq, run.precision
            found.setdefault(key, []).append(run)
    jobs = []
    for runs in found.values():
        using = [run for run in runs if max(split(run)) > 1]
        if bool(using) == divided:
            jobs.append(PublicJob(tuple(using or runs)))
    return tuple(jobs)


def outcome(job: PublicJob) -> Outcome:
    """The planner's answer for one job, next to the published meshes."""
    found = job.plan
    order: dict[ModelSplit, float] = {}
    for trial in found.ranking:
        key = split_of_plan(trial)
        order[key] = min(trial.candidate.seconds, order.get(key, float("inf")))
    places = [n for n, key in enumerate(order, 1) if key in job.published]
    times = [order[key] for key in job.published if key in order]
    return Outcome(
        str(job),
        tuple(map(str, job.published)),
        str(next(iter(order))),
        places[0] if places else None,
        round(min(times) / min(order.values()), 3) if times else None,
    )


@cache
def outcomes(divided: bool = True) -> tuple[Outcome, ...]:
    """The outcomes of `public_jobs` from ``planned.json``. Planning all jobs takes some
    minutes, so only `make refit ARGS=--plans` writes this file.

    Args:
        divided: as for `public_jobs`.
    """
    text = files(__package__).joinpath("planned.json").read_text("utf-8")
    alone = [str(ModelSplit())]
    return tuple(
        Outcome(job, tuple(published), *others)
        for job, published, *others in json.loads(text)
        if (published != alone) == divided
    )


def shares(some: Iterable[Outcome]) -> dict[str, float]:
    """How often a published mesh is among the first ranks, or near the fastest mesh.

    >>> found = shares(outcomes())
    >>> found["first"] <= found["among 3"] <= found["among 10"]
    True
    """
    every = tuple(some)
    found = {}
    for name, most in (("first", 1), ("among 3", 3), ("among 10", 10)):
        found[name] = sum(1 for o in every if o.rank and o.rank <= most) / len(every)
    near = sum(1 for o in every if o.over and o.over <= 1.1)
    return {**found, "within 10 %": near / len(every)}
