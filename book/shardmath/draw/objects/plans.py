"""Plans that the planner's page need not search for.

A search takes seconds in a browser. ``plans.json`` holds what it finds for three models
on five kinds of chips, from 8 chips to 16,384, and a test holds the file to the search.
Any other job is searched for when a reader asks for it.
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
MOST = 24  # meshes that are kept whole; of the others, time and memory
SLOWEST = 4.0  # times the fastest: dots of slower meshes would squeeze the others


@dataclass(frozen=True, eq=False)
class Found:
    """What a search finds, as far as the page shows it.

    Args:
        plan: its ranking has the best meshes, and the fastest if it is none of them.
        fitting: how many meshes fit.
        others: seconds and bytes of the others.
    """

    plan: Plan
    fitting: int
    others: tuple[tuple[float, float], ...]


def searched(
    model: Model, chip: Chip, count: int, tokens: int, seq: int, remat: str | None
) -> Found:
    """What a search finds now.

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
    """What the file has of a job, if it has it and a mesh fits."""
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
    """What the file has of a plan. Of the others it has only those that the picture
    shows, in hundredths of the fastest time and whole GiB."""
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
    """The file, a line for each job."""
    said = (f"{json.dumps(name)}: {_compact(row)}" for name, row in rows.items())
    return "{\n" + ",\n".join(said) + "\n}\n"


def _compact(row: dict[str, object]) -> str:
    return json.dumps(row, separators=(",", ":"))


@cache
def table() -> dict[str, dict]:
    """The file: a row for every job for which a mesh fits."""
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
