"""Stored plans, for which the planner's page needs no search.

A search takes seconds in a browser. ``plans.json`` has its results for three models on
five kinds of chips, from 8 chips to 16,384, and a test compares the file with the
search. Other jobs are searched when a reader asks for them.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ...base.units import GiB
from ...hardware import chips
from ...hardware.chips import Chip
from ...hardware.networks.usual import usual
from ...planner import Plan, plan
from ...planner.candidates import Candidate, RematShare
from ...planner.patterns import LAID
from ...transformer import LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B, Model

MODELS = {one.name: one for one in (LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B)}
CHIPS = tuple(
    chips.CHIPS[key] for key in ("h100", "b200", "tpu_v5p", "tpu_v6e", "tpu_7x")
)
COUNTS = tuple(2**n for n in range(3, 15))
TOKENS, SEQ = 2**24, 8192
MOST = 24  # meshes that are stored whole; of the others, only time and memory
SLOWEST = 4.0  # times the fastest; slower dots would leave little room for the others


@dataclass(frozen=True, eq=False)
class Found:
    """The part of a search's result that the page shows.

    Args:
        plan: the plan, whose ranking has the best meshes and also the fastest one.
        fitting: how many meshes fit.
        others: (seconds, bytes) of each other mesh.
    """

    plan: Plan
    fitting: int
    others: tuple[tuple[float, float], ...]


def searched(
    model: Model, chip: Chip, count: int, tokens: int, seq: int, remat: str | None
) -> Found:
    """The result of a new search.

    >>> small = searched(LLAMA_3_8B, chips.H100, 8, 2**20, 8192, None)
    >>> small.fitting, len(small.plan.ranking), len(small.others)
    (39, 24, 15)
    """
    asked = (model, usual(chip, count), tokens, seq)
    every = plan(*asked, remat=remat, top=10**6, every=True)
    some, rest = list(every.ranking[:MOST]), every.ranking[MOST:]
    if rest and all(one.candidate is not every.fastest.candidate for one in some):
        some[-1] = every.fastest
    others = tuple((one.seconds, one.candidate.nbytes) for one in rest)
    best = Plan(every.job, every.network, tuple(some), every.fastest, every.search,
                every.nearest)  # fmt: skip
    return Found(best, len(every.ranking), others)


def stored(
    model: Model, chip: Chip, count: int, tokens: int, seq: int, remat: str | None
) -> Found | None:
    """The stored result of a job, or None if there is none or no mesh fits."""
    if (tokens, seq, remat) != (TOKENS, SEQ, None) or MODELS.get(model.name) != model:
        return None
    row = table().get(key(model, chip, count))
    if row is None:
        return None
    known = [_candidate(*values) for values in row["best"]]
    found = plan(model, usual(chip, count), tokens, seq, known=known)
    fastest = found.fastest.seconds
    others = tuple((fastest * times / 100, held * GiB) for times, held in row["others"])
    return Found(found, row["fitting"], others)


def row(found: Found) -> dict[str, object]:
    """The row of a plan in the file. It has only those other meshes that the picture
    shows. Times are in hundredths of the fastest, and memory is in whole GiB."""
    best = [
        [one.shards, [one.sizes[axis] for axis in LAID], one.keys, list(one.folded),
         list(one.block), one.microbatches, one.chunks,
         [one.recompute.remat, one.recompute.share], one.nbytes,
         float(f"{one.seconds:.9g}"), float(f"{one.exposed:.9g}")]
        for one in (trial.candidate for trial in found.plan.ranking)
    ]  # fmt: skip
    fastest = found.plan.fastest.seconds if best else 0.0
    dots = {
        (round(100 * seconds / fastest), round(nbytes / GiB))
        for seconds, nbytes in found.others
        if seconds <= SLOWEST * fastest
    }
    return {"fitting": found.fitting, "best": best, "others": sorted(map(list, dots))}


def key(model: Model, chip: Chip, count: int) -> str:
    """The name of a job in the file."""
    return f"{model.name}, {count} {chip.name}"


def text(rows: Mapping[str, dict[str, object]]) -> str:
    """The text of the file, with a line for each job."""
    said = (f"{json.dumps(name)}: {_compact(row)}" for name, row in rows.items())
    return "{\n" + ",\n".join(said) + "\n}\n"


def _compact(row: dict[str, object]) -> str:
    return json.dumps(row, separators=(",", ":"))


@cache
def table() -> dict[str, dict]:
    """The file: key → row, for every job that fits on some mesh."""
    return json.loads(files(__package__).joinpath("plans.json").read_text("utf-8"))


def _candidate(
    shards: str,
    sizes: Iterable[int],
    keys: str,
    folded: Iterable[str],
    block: Iterable[int],
    microbatches: int,
    chunks: int,
    again: tuple[str, float],
    nbytes: float,
    seconds: float,
    exposed: float,
) -> Candidate:
    laid = dict(zip(LAID, sizes, strict=True))
    return Candidate(shards, laid, keys, tuple(folded), tuple(block), microbatches,
                     chunks, RematShare(*again), nbytes, seconds, exposed)  # fmt: skip
