"""Rules that fill in the settings which the source of a run omits.

A prediction needs every setting. If a source omits a setting, these rules fill it in,
in this order, and the row says so:

0. If no source states the network of GPUs, each GPU has a network card of 200 Gb/s. If
   no source states the sides of a TPU slice, they are as nearly equal as possible. If
   no source states how FLOPs are counted, we assume that attention counts as causal.
1. Formats are those that frameworks use; see `usual_formats`. Megatron holds a copy of
   the weights in 16 bits in addition to the optimizer's weights, while JAX and FSDP
   cast the optimizer's weights when they are used. If matmuls use 8 bits or fewer,
   Megatron's matmuls keep their inputs in that format (Transformer Engine).
2. A pipeline is interleaved if the number of microbatches is a multiple of the number
   of stages. It has the largest number of chunks up to 8 that divides the layers of a
   stage.
3. A pipeline has microbatches of one sequence. A TPU rank without a pipeline has one
   microbatch. Other ranks have the largest microbatch that fits.
4. Recomputation is the first of these that fits: none, norms and activations, all.
5. If ZeRO-1 without a pipeline does not fit, we take FSDP. FSDP in a pipeline gathers
   its weights once per step and not for every microbatch, as in torchtitan.

If nothing fits, we take the settings that these rules try first.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..base.divisors import divisors
from ..base.tables import Absent
from ..base.units import PRECISION_BYTES, pluralize
from ..hardware.mesh import Mesh
from ..hardware.networks import (
    Cluster,
    Network,
    NVLinkDomain,
    Slices,
    Torus,
    network,
)
from ..hardware.networks.usual import usual
from ..training import Step
from ..training.job import usual_formats
from .run import SPLIT_SEQUENCES, Run

MEGATRON = "Megatron"  # the beginning of the names of some systems
MOST_CHUNKS = 8
CARD = 25e9  # bytes/s one-way of a card of 200 Gb/s
CARDS = "a network card of 200 Gb/s for each GPU"
ROUND = "a slice as round as can be"
AGAIN = {  # policies of recomputation in words, least first
    "none": "nothing is computed again",
    "elementwise": "norms and activations are computed again",
    "full": "whole layers are computed again",
}


@dataclass(frozen=True)
class Filled:
    """A run with every setting, and its step.

    Args:
        run: the run, with the settings that were filled in.
        step: its step on its mesh.
        assumed: the settings that were filled in, in words.
        fits: whether the step fits in memory.
    """

    run: Run
    step: Step
    assumed: tuple[str, ...]
    fits: bool


def filled(run: Run) -> Filled:
    """A run, with the settings that its source omits filled in.

    Raises:
        Absent: a ValueError; the run's mesh, batch or network is not published.
        ValueError: settings that contradict one another; the message is that of
            `training.step`.

    >>> from shardmath.measured import RUNS
    >>> print(*filled(RUNS[0]).assumed)
    one microbatch
    """
    if run.seqs is None or not run.covered:
        raise Absent(f"{run}: its mesh or its batch is not published")
    first: Filled | None = None
    error: ValueError | None = None
    for one, assumed in _ways(run):
        try:
            found = one.step(
                Mesh(one.network, one.ordered_mesh),
                microbatches=one.microbatches,
                schedule=one.schedule or "1f1b",
                chunks=one.chunks,
                table_kept=False,
                copy=keeps_copy(one),
            )
        except ValueError as wrong:
            error = error or wrong
            continue
        now = Filled(one, found, assumed, found.memory.fits)
        if now.fits:
            return now
        first = first or now
    if first is None:
        raise error or Absent(f"{run}: its mesh is not published")
    return first


def keeps_copy(run: Run) -> bool:
    """Whether weights in 16 bits are held in addition to those of the optimizer.

    MaxText and PyTorch's FSDP hold one copy of the weights and cast it each time they
    gather it. Megatron's distributed optimizer (ZeRO-1) holds both copies.
    """
    return run.chip.vendor != "Google" and "fsdp" not in run.mesh


def _ways(run: Run) -> Iterator[tuple[Run, tuple[str, ...]]]:
    """The ways to fill in a run, in the order of preference."""
    said: tuple[str, ...] = ()
    if run.network is None:
        found, assumed = _network(run)
        run, said = replace(run, network=found), (assumed,)
    if not run.timed and run.flops_per_second:
        run = replace(run, counts="matmuls, half attention")
        said = (*said, "attention counted as causal")
    usual = usual_formats(run.chip, run.precision)
    if run.system.startswith(MEGATRON) and PRECISION_BYTES[run.precision] < 2:
        usual = {**usual, "inputs": run.precision}
    more = {role: name for role, name in usual.items() if role not in run.formats}
    if more:
        run = replace(run, formats={**more, **run.formats})
        said = (*said, ", ".join(f"{role} in {name}" for role, name in more.items()))
    for mesh, moved in _meshes(run):
        for remat, again in _remats(run):
            for one, parts in _microbatches(replace(run, mesh=mesh, remat=remat)):
                yield one, (*said, *parts, *again, *moved)


def _network(run: Run) -> tuple[Network, str]:
    """A network for a run that names none, and what was assumed for it.

    Raises:
        Absent: a ValueError; no nodes or slices have this number of chips.
    """
    missing = Absent(f"{run}: its network is not published")
    if run.chip.vendor == "Google":
        slices = run.mesh.get("dcn", 1)
        try:
            one = network(usual(run.chip, run.chips // slices))
        except ValueError:
            raise missing from None
        if slices > 1 and isinstance(one, Torus):
            one = Slices(one, slices, latency=0)
        return one, ROUND
    node = min(run.chips, int(run.chip.domain))
    if run.chips % node:
        raise missing
    domain = NVLinkDomain(run.chip, node)
    return Cluster(domain, run.chips // node, node * CARD), CARDS


def _meshes(run: Run) -> Iterator[tuple[dict[str, int], tuple[str, ...]]]:
    """The mesh as published, then without a pipeline also with FSDP in place of ZeRO-1.
    FSDP in a pipeline comes first as ZeRO-1, because there it gathers once per step."""
    pipelined = "pipeline" in run.mesh
    if "fsdp" in run.mesh and pipelined:
        mesh = {"zero1" if axis == "fsdp" else axis: n for axis, n in run.mesh.items()}
        yield mesh, ("weights that FSDP gathers once a step, as in ZeRO-1",)
    yield dict(run.mesh), ()
    if "zero1" in run.mesh and "fsdp" not in run.mesh and not pipelined:
        mesh = {"fsdp" if axis == "zero1" else axis: n for axis, n in run.mesh.items()}
        yield mesh, ("FSDP in place of ZeRO-1, which does not fit",)


def _remats(run: Run) -> Iterator[tuple[str, tuple[str, ...]]]:
    if run.remat:
        yield run.remat, ()
        return
    for remat, words in AGAIN.items():
        yield remat, (words,)


def _microbatches(run: Run) -> Iterator[tuple[Run, tuple[str, ...]]]:
    """Numbers of microbatches with their schedules, the largest microbatch first."""
    groups = math.prod(n for axis, n in run.mesh.items() if axis in SPLIT_SEQUENCES)
    rank, stages = max(1, run.seqs // groups), run.mesh.get("pipeline", 1)
    if run.microbatches:
        some, words = [run.microbatches], ()
    elif stages > 1:
        some, words = [rank], ("microbatches of one sequence",)
    elif run.chip.vendor == "Google" or run.seqs % groups:
        some, words = [1], ("one microbatch",)
    else:
        some = divisors(rank)
        words = ("the largest microbatch that fits",)
    for many in some:
        one = replace(run, microbatches=many)
        if stages == 1:
            yield one, words
            continue
        name, chunks, scheduled = _schedule(run, stages, many)
        yield replace(one, schedule=name, chunks=chunks), (*words, *scheduled)


def _schedule(
    run: Run, stages: int, microbatches: int
) -> tuple[str, int | None, tuple[str, ...]]:
    """Schedule and chunks of a pipeline, and what was assumed about them."""
    if run.schedule not in ("", "interleaved"):
        return run.schedule, run.chunks, ()
    if run.chunks is not None and run.schedule:
        return run.schedule, run.chunks, ()
    layers = math.ceil(run.model.layers / stages)
    chunks = run.chunks or max(n for n in range(1, MOST_CHUNKS + 1) if layers % n == 0)
    if microbatches % stages or chunks == 1:
        return "1f1b", None, ("schedule 1F1B, not interleaved",)
    words = f"interleaved, {pluralize(str(chunks), 'chunks')} a stage"
    return "interleaved", chunks, (words,)
