"""The axes that a mesh may have, and the strategy that follows from them."""

from collections.abc import Mapping

from ..training import (
    Strategy,
    combine,
    context,
    data,
    expert,
    fold_experts,
    fsdp,
    pipeline,
    tensor,
    zero,
)
from ..training.amounts import Names
from ..training.derivation import Derivation
from ..training.experts import slots
from ..training.job import Job

# Outermost first, so the axes that send least, or least often, use the slowest links.
ORDER = ("data", "pipeline", "zero", "fsdp", "expert", "context", "tensor")
# If tensor parallelism has more ways than there are KV heads, its innermost chips have
# copies of KV heads. They are a separate mesh axis.
LAID = (*ORDER, "copies")
COPIES = ("data", "zero", "fsdp")  # axes of data parallelism
FOLDS = ("context", "tensor", "copies")  # axes that may also split the experts
SHARDS = {  # how weights are kept, sharded or as copies: the axes that a mesh may have
    "fsdp": ("data", "fsdp", "expert", "context", "tensor"),
    "zero": ("data", "zero", "expert", "context", "tensor"),
}


def strategy(
    shards: str, axes: Names, keys: str = "ring", folded: Names = ()
) -> Strategy:
    """The strategy for mesh axes, each named after its kind of parallelism.

    Args:
        shards: "fsdp" if chips with different tokens shard the weights, or "zero" if
            each of them has a copy and they shard only the optimizer state (ZeRO-1).
        axes: some of `LAID`.
        keys: what context parallelism does with keys; see `training.context`.
        folded: axes of `FOLDS` that also split the experts; see `fold_experts`.
    """
    weights = "shards" if shards == "fsdp" else "state"
    makers = {
        "data": data,
        "pipeline": pipeline,
        "zero": lambda axis: zero(1, axis),
        "fsdp": fsdp,
        "expert": lambda axis: expert(axis, weights),
        "context": lambda axis: context(axis, keys, weights),
    }
    some = [makers[axis](axis) for axis in ORDER if axis in axes and axis in makers]
    if split := tuple(axis for axis in ("tensor", "copies") if axis in axes):
        some.append(tensor(split, kv=[axis for axis in split if axis == "tensor"]))
    found = combine(*some) if some else data("data")
    spread = tuple(axis for axis in folded if axis in axes)
    return fold_experts(found, spread) if spread else found


def merged(sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes of the axes in `ORDER`; "tensor" includes the copies of KV heads.

    >>> merged({"fsdp": 4, "tensor": 8, "copies": 2})
    {'fsdp': 4, 'tensor': 16}
    """
    found = {axis: n for axis, n in sizes.items() if axis != "copies"}
    copies = sizes.get("copies", 1)
    if copies > 1 or "tensor" in found:
        found["tensor"] = found.get("tensor", 1) * copies
    return found


def with_copies(sizes: Mapping[str, int], kv_heads: int) -> dict[str, int]:
    """The sizes of the axes in `LAID`; "copies" is how many chips share a KV head.

    >>> with_copies({"tensor": 16}, 8), with_copies({"tensor": 4}, 8)
    ({'tensor': 8, 'copies': 2}, {'tensor': 4, 'copies': 1})
    """
    ways = sizes["tensor"]
    more = ways // kv_heads if ways % kv_heads == 0 else 1
    return {**sizes, "tensor": ways // more, "copies": more}


def pattern(
    job: Job,
    shards: str,
    axes: Names,
    sizes: Mapping[str, int],
    keys: str,
    folded: Names = (),
) -> Derivation:
    """The derivation that all meshes with the same kinds of axes have in common.

    The whole batch is derived as one pass.

    Args:
        job: the model, its batch and its numerics.
        shards, keys, folded: as for `strategy`.
        axes: the axes that are larger than 1, without the pipeline's.
        sizes: the sizes of these axes on some mesh that the model admits.

    Raises:
        ValueError: a size of the model that this mesh does not divide.
    """
    mesh = {axis: sizes[axis] for axis in LAID if axis in axes} | {"pipeline": 2}
    if not axes:
        mesh["data"] = 1
    found = strategy(shards, (*axes, "pipeline"), keys, folded)
    derivation = Derivation(job, found, mesh, job.seqs)
    _ = derivation.limits  # raises now if something does not divide
    return derivation


def batch_shares(
    derivation: Derivation, microbatches: int, ways: int
) -> dict[str, float]:
    """The share of one microbatch in an amount, by what the amount grows with.

    The keys are "B" for the batch, "slots" for the experts' slots, and "" for neither.

    Args:
        derivation: the derivation of the whole batch.
        microbatches: the number of parts of the batch.
        ways: the number of parts in which a microbatch's tokens are sent to experts.
    """
    share = {"": 1.0, "B": 1 / microbatches}
    if derivation.slots:
        job = derivation.job
        tokens = max(1, job.seqs // microbatches) * job.seq
        each = slots(job.model, tokens, ways, job.capacity)
        share["slots"] = each / derivation.slots
    return share
