"""Finds the runners of a race, the best mesh of each kind, by the planner's search.

This takes minutes, so ``tools/race.py`` stores the result in `race.toml`.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from ...base.units import show
from ...hardware.networks import Network, network
from ...planner import Trial, plan
from ...planner.candidates import Candidate
from ...planner.patterns import ORDER, with_copies
from ...planner.plan import HEADROOM
from ...planner.search import RECOMPUTES, Search
from ...training.job import Job, usual_formats
from .race import BATCHES, LARGE, MACHINES, MODELS, UNEVEN, RaceEntry

AXES = {  # that a lane may have
    "data": ("data",),
    "FSDP": ("fsdp",),
    "tensor": ("data", "tensor"),
    "pipeline": ("data", "pipeline"),
    "mixture": ORDER,
}


@cache
def job_of(model: str, machine: str) -> Job:
    """The training job, in the formats that are usual on the machine."""
    seqs, seq = BATCHES[model]
    formats = usual_formats(machine_of(machine).chip, "bf16")
    return Job(MODELS[model], seqs, seq, formats=formats)


@cache
def machine_of(machine: str) -> Network:
    """The network of a machine."""
    return network(MACHINES[machine])


def usable(machine: str) -> float:
    """Bytes of memory per chip, minus the headroom that the planner leaves free."""
    return (1 - HEADROOM) * machine_of(machine).chip.memory_bytes


def entry(family: str, model: str, machine: str) -> RaceEntry:
    """The best mesh of a family, by search."""
    if family != "mixture":
        fixed = {axis: 1 for axis in ORDER if axis not in AXES[family]}
        return entry_of(fixed, model, machine)
    job = job_of(model, machine)
    found = plan(job.model, MACHINES[machine], job.tokens, job.seq)
    one = found.ranking[0].candidate if found.ranking else _least(found.search)
    return filled(one, found.search.job.seqs, model, machine)


def entry_of(fixed: Mapping[str, int], model: str, machine: str) -> RaceEntry:
    """The best mesh with these `fixed` sizes of axes, by search."""
    job, net, room = job_of(model, machine), machine_of(machine), usable(machine)
    search = Search(job, net, fixed, room)
    best, _ = search.best(1)
    if not best and not search.least[1]:
        # With sequences for every chip there may be a mesh, but does it fit?
        raised = net.chips * -(-job.seqs // net.chips)
        search = Search(replace(job, seqs=raised), net, fixed, room)
        best, _ = search.best(1)
    one = best[0] if best else _least(search)
    return filled(one, search.job.seqs, model, machine)


def _least(search: Search) -> Candidate | None:
    """The mesh that comes closest to fitting, with full recomputation, or None if no
    mesh is admissible."""
    nbytes, sizes, many = search.least
    if not sizes:
        return None
    shards = "zero" if sizes["zero"] > 1 else "fsdp"
    again = RECOMPUTES[-1]
    laid = with_copies(sizes, search.job.model.kv_heads)
    return Candidate(shards, laid, "ring", (), (), many, 1, again, nbytes, 0.0, 0.0)


def trial(one: Candidate, seqs: int, model: str, machine: str) -> Trial:
    """A mesh with its derivation."""
    job = replace(job_of(model, machine), seqs=seqs)
    return Trial(one, Search(job, machine_of(machine), {}, usable(machine)))


def filled(one: Candidate | None, seqs: int, model: str, machine: str) -> RaceEntry:
    """An entry of the table, with its bytes and seconds.

    Args:
        one: the mesh, or None if no mesh is admissible.
        seqs: the sequences for which the mesh was found; the step may have fewer.
        model, machine: keys of `BATCHES` and `MACHINES`.
    """
    room, own = usable(machine), job_of(model, machine).seqs
    chips = machine_of(machine).chips
    uneven = f"{UNEVEN}: {own:,} sequences on {chips:,} chips"
    if one is None:
        return RaceEntry(uneven, {}, "", 0.0, room, {}, 0.0)
    found = trial(one, seqs, model, machine)
    held, axes = found.memory.total, found.axes
    if held > room:
        why = f"{LARGE}: {show(held, 'capacity')} of {show(room, 'capacity')}"
        return RaceEntry(why, axes, found.settings, held, room, {}, 0.0)
    if seqs > own:
        return RaceEntry(uneven, axes, found.settings, held, room, {}, 0.0)
    likely = found.prediction
    parts = {name: seconds for name, seconds in likely.parts.items() if seconds}
    warnings = list(likely.warnings)
    return RaceEntry(
        "", axes, found.settings, held, room, parts, likely.bound, warnings
    )
