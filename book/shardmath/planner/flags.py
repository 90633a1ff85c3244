"""A plan as flags for the frameworks that would run it.

These are Megatron-LM for GPUs and MaxText for TPUs. Flags that do not describe the mesh
or the schedule, such as those of the model and the data, are left out.
"""

from collections.abc import Iterator, Mapping
from math import ceil, prod

from ..training.job import Job
from ..training.stages import layers_by_place
from ..transformer import Model
from .candidates import LATENT, SHARING, Candidate
from .patterns import COPIES

KEYS = {"ring": "p2p", "gather": "allgather", "ulysses": "a2a"}
MAXTEXT_KEYS = {"ring": "ring", "gather": "all_gather"}
ENDS = (
    "--account-for-embedding-in-pipeline-split",
    "--account-for-loss-in-pipeline-split",
)
# For each policy, the one of MaxText that keeps about as much.
MAXTEXT_REMAT = {
    "none": "minimal_with_context",
    "elementwise": "minimal_with_context",
    "dots": "minimal",
    "selective": "minimal_with_context",
    "full": "full",
}


def megatron(job: Job, one: Candidate) -> str:
    """Flags of Megatron-LM, separated by spaces.

    Args:
        job: the model, its batch and its numerics.
        one: the way to run the job.

    Source:
        megatron/training/arguments.py of NVIDIA/Megatron-LM, read 2026-11-24.
    """
    return " ".join(_megatron(job, one))


def _megatron(job: Job, one: Candidate) -> Iterator[str]:
    sizes = one.ways
    if (tensor := sizes["tensor"]) > 1:
        yield f"--tensor-model-parallel-size {tensor} --sequence-parallel"
    if (stages := sizes["pipeline"]) > 1:
        yield f"--pipeline-model-parallel-size {stages}"
    pieces = stages * one.chunks
    is_even = job.model.layers % pieces == 0
    has_short_ends = (job.model.layers + len(ENDS)) % pieces == 0
    if is_even or has_short_ends:
        if one.chunks > 1:
            yield f"--num-virtual-stages-per-pipeline-rank {one.chunks}"
        if not is_even:
            yield from ENDS  # the first and the last piece have one layer less each
    else:
        yield f'--pipeline-model-parallel-layout "{_layout(job.model, pieces)}"'
    if (context := sizes["context"]) > 1:
        yield f"--context-parallel-size {context} --cp-comm-type {KEYS[one.keys]}"
    if one.experts_over > 1:
        yield f"--expert-model-parallel-size {one.experts_over}"
    if {"tensor", "copies"} & {*one.folded}:
        yield "--expert-tensor-parallel-size 1"
    if all(sizes[axis] == 1 for axis in SHARING):
        yield "--overlap-grad-reduce"
    elif one.shards == "zero":
        yield "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"
    else:
        yield "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params"
        yield "--ckpt-format fsdp_dtensor"
    if (copies := sizes["data"]) > 1 and any(sizes[axis] > 1 for axis in SHARING):
        yield f"--num-distributed-optimizer-instances {copies}"
    yield from _recomputed(job, one)
    yield f"--micro-batch-size {sequences(job, one)} --global-batch-size {job.seqs}"
    yield f"--seq-length {job.seq}"


def _layout(model: Model, pieces: int) -> str:
    """The embedding, the layers, the heads and the loss, cut into pieces in order.

    >>> from ..transformer import LLAMA_3_70B
    >>> _layout(LLAMA_3_70B, 3)
    'Et*27|t*27|t*26,L'
    """
    layers = "|".join(f"t*{n}" for n in layers_by_place(model.layers, pieces))
    return f"E{layers}{',m' * model.predictors},L"


def _recomputed(job: Job, one: Candidate) -> Iterator[str]:
    # Megatron counts the layers of a chunk, and only whole ones.
    layers = ceil(job.model.layers / (one.sizes["pipeline"] * one.chunks))
    again = one.recompute
    if again.remat == "full" and again.share == 1:
        yield "--recompute-granularity full --recompute-method uniform"
        yield "--recompute-num-layers 1"
    elif again.remat == "full":
        yield "--recompute-granularity full --recompute-method block"
        yield f"--recompute-num-layers {ceil(round(layers * again.share, 9))}"
    elif again.remat == "elementwise":
        # Megatron has no such module for the activation of a dense MLP.
        inner = " moe_act" if job.model.experts else ""
        yield f"--recompute-granularity selective --recompute-modules layernorm{inner}"
    elif again.words.startswith(LATENT):
        inner = " moe_act" if job.model.experts else ""
        modules = f"layernorm{inner} mla_up_proj"
        yield f"--recompute-granularity selective --recompute-modules {modules}"
    elif again.remat == "selective":
        yield "--recompute-granularity selective --recompute-modules core_attn"


def maxtext(job: Job, one: Candidate, slices: int = 1, devices: int = 1) -> str:
    """Settings of MaxText, separated by spaces.

    If JAX counts a chip as several devices, they share the chip's weights if the mesh
    has tensor parallelism, or if the chip's sequences cannot be divided among them.
    Otherwise they share its sequences.

    Args:
        job: the model, its batch and its numerics.
        one: the way to run the job.
        slices: the number of slices of the machine. The part of each axis that goes
            between slices becomes a dcn axis of MaxText.
        devices: the devices as which JAX counts a chip.

    Source:
        src/maxtext/configs/types.py of AI-Hypercomputer/maxtext, read 2026-11-23.
    """
    sizes = {axis: n for axis, n in one.ways.items() if n > 1}
    outer, inner = _between(_maxtext_axes(sizes), slices)
    if devices > 1:
        by_weights = "tensor" in sizes or sequences(job, one) % devices
        axis = "tensor" if by_weights else "fsdp" if "fsdp" in sizes else "data"
        inner[axis] = inner.get(axis, 1) * devices
    said = [f"dcn_{axis}_parallelism={n}" for axis, n in outer.items() if n > 1]
    said += [f"ici_{axis}_parallelism={n}" for axis, n in inner.items()]
    count = devices * prod(sizes.values())
    said.append(f"per_device_batch_size={job.seqs / one.microbatches / count:g}")
    if one.microbatches > 1:
        said.append(f"gradient_accumulation_steps={one.microbatches}")
    if "context" in sizes and one.keys in MAXTEXT_KEYS:
        said.append(f"context_parallel_strategy={MAXTEXT_KEYS[one.keys]}")
    if one.shards == "zero":
        said.append("shard_optimizer_over_data=True")
    policy = MAXTEXT_REMAT.get(one.recompute.remat, "custom")
    said.append(f"remat_policy={policy}")
    said.append(f"max_target_length={job.seq}")
    return " ".join(said)


def _maxtext_axes(sizes: Mapping[str, int]) -> dict[str, int]:
    """The axes by their MaxText names, outermost first. FSDP is named even if its size
    is 1, because otherwise MaxText gives it all remaining chips."""
    found = {"data": sizes.get("data", 1) * sizes.get("zero", 1)}
    found |= {axis: sizes[axis] for axis in ("pipeline", "fsdp") if axis in sizes}
    found.setdefault("fsdp", 1)
    found |= {axis: sizes[axis] for axis in ("expert", "context", "tensor")
              if axis in sizes}  # fmt: skip
    return found


def _between(
    sizes: Mapping[str, int], slices: int
) -> tuple[dict[str, int], dict[str, int]]:
    """The part of each axis that goes between slices, and the part inside them."""
    outer, inner, left = {}, {}, slices
    for axis, n in sizes.items():
        most = max(d for d in range(1, n + 1) if n % d == 0 and left % d == 0)
        outer[axis], inner[axis] = most, n // most
        left //= most
    return outer, inner


def sequences(job: Job, one: Candidate) -> int:
    """Sequences of a microbatch on one data-parallel rank."""
    ranks = one.microbatches
    for axis in (*COPIES, "expert"):
        ranks *= one.ways[axis]
    return job.seqs // ranks
