"""The parts that add up to a stage of a step, each derived only once.

A part is one layer of a kind, the head, the lookup of the embedding, one send from
stage to stage, or one exchange of gradients between stages. The FLOPs, memory and
traffic of a part are `amounts`, which mesh axes divide. A stage has a certain number of
each part.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..base.units import PRECISION_BYTES
from ..sharding import ShardedArray
from ..transformer import (
    Array,
    Matmul,
    Model,
    Recompute,
    flops,
    matmul,
    recompute,
    saved,
    saved_once,
)
from .amounts import (
    Amounts,
    MovedBytes,
    Names,
    Wire,
    bytes_held,
    divisors_of,
    flops_of,
    total,
    zeros,
)
from .communication import Lines, Move, Work, ends, hop, layer_work
from .job import LOSSES, Job
from .memory import HeldBytes
from .operations import (
    BACKWARD_KERNELS,
    BACKWARD_PASSES,
    Operations,
    dealt_to_experts,
    done_again,
    exchanges,
    kernels_of_layer,
    passes_of_head,
    passes_of_layer,
    products,
    scaled,
    together,
    turned_by_hop,
)

EMBEDDING = matmul("onehot[B, S, V] · embed[V, D] -> x[B, S, D]")
SCORES = Array("P", ("B", "N", "S", "T"))
QUERIES = Array("A", ("B", "S", "N"))
STREAM = Array("", ("B", "S", "D"))
MATMUL_INPUTS = ("x", "z")  # the inputs of attention's and the MLP's first matmuls
PASSES = ("forward", "recompute", "backward")


@dataclass(frozen=True, eq=False)
class Part:
    """The FLOPs, memory and traffic of one part of a stage, for mesh axes of any size.

    Args:
        moves: its moves, each for one microbatch or once per step (see `repeats`).
        flops: FLOPs by "forward", "recompute" and "backward", for one microbatch.
        weight_flops: those FLOPs of "backward" that compute gradients of weights.
        held: bytes by kind of memory.
        once: bytes of "saved" that all layers share.
        read: bytes of the matrices that one pass reads.
        operations: its operations one by one, as a prediction needs them.
        limits: triples of a dimension, its size, and the mesh axes that must divide it.
        matrices: the weights whose gradients this part reduces.
        works: the plans of its matmuls, by pass.
    """

    moves: tuple[Move, ...] = ()
    flops: Mapping[str, Amounts] = field(default_factory=dict)
    weight_flops: Amounts = field(default_factory=dict)
    held: Mapping[str, Amounts] = field(default_factory=dict)
    once: Amounts = field(default_factory=dict)
    read: Amounts = field(default_factory=dict)
    operations: Operations = field(default_factory=Operations)
    limits: frozenset[tuple[str, int, Names]] = frozenset()
    matrices: tuple[Array, ...] = ()
    works: tuple[Work, ...] = ()

    @cached_property
    def traffic(self) -> Mapping[Wire, MovedBytes]:
        """The bytes that the moves send, by operation and axes."""
        return together(self.operations.exchanges)


def repeats(move: Move, matrices: Iterable[Array]) -> bool:
    """Whether a move is repeated for every microbatch.

    Gradients are added up on the chip and reduced once per step. But if a chip keeps
    only a shard of them, they are reduced for every microbatch.

    Args:
        move: a move of a part.
        matrices: the weights of that part.
    """
    if move.when == "update":
        return False
    gradient = not move.scales and move.array not in {one.name for one in matrices}
    kept = {axis for axes in move.change.after.placed for axis in axes}
    return not gradient or bool(kept & {*move.change.axes})


def layer(lines: Lines, job: Job, matmuls: tuple[Matmul, ...]) -> Part:
    """One layer of a given kind, for one microbatch."""
    again = recompute(job.model, matmuls, job.remat, job.kernel)
    work = layer_work(lines, matmuls, job.remat, again)
    matrices = tuple(line.weight for line in matmuls)
    held = _parameters(lines, job, matrices, share=1 / job.model.layers)
    away = job.offloads.split()
    held["saved"] = [
        one
        for one in _saved(lines, job, matmuls, job.remat)
        if one.array.name not in away
    ]
    if job.remat != "none":
        held["computed again"] = _computed_again(lines, job, matmuls)
    held["gathered"] = _gathered(lines, matmuls)
    held["in transit"] = _in_transit(lines, job, matmuls)
    if lines.strategy.inner.get("S"):
        held["keys"] = _keys(lines, matmuls)
    if job.kernel == "unfused":  # a ring holds the scores of one hop at a time
        keys = lines.strategy.attention
        queries = {dim: axes for dim, axes in keys.items() if dim != "T"}
        scores = lines.array(SCORES, queries)
        held["scores"] = [HeldBytes(4, scores, lines.strategy.ring)]
    once = [
        HeldBytes(one.width, lines.rest(one.array))
        for one in saved_once(job.model, job.remat, job.kernel)
    ]
    found = _part(lines, [work], [work], matrices, held, once)
    read = bytes_held(HeldBytes(job.width("weights"), lines.forward(line).b)
                      for line in matmuls)  # fmt: skip
    attention = _attention_flops(lines, job, again)
    return replace(
        found,
        flops={
            when: total([(1, found.flops[when]), (1, amounts)])
            for when, amounts in attention.items()
        },
        read=read,
        operations=_of_layer(found, lines, job, matmuls, again, attention),
    )


def end(lines: Lines, job: Job, matmuls: tuple[Matmul, ...]) -> Part:
    """The head, the embedding or both, for one microbatch.

    A shared table is held once, and its gradient is reduced once. A lookup is a product
    with a one-hot vector, whose FLOPs are not counted.
    """
    tables = tuple(line.weight for line in matmuls)
    matrices = tables[: 1 if job.model.tied else 2]
    held = _parameters(lines, job, matrices, share=0)
    if job.model.head_line in matmuls:
        logits = lines.array(job.model.head_line.result, lines.strategy.inner)
        held["logits"] = [HeldBytes(LOSSES[job.loss], logits)]
    works = list(ends(lines, matmuls, job.table_kept and job.model.tied))
    counted = [
        work for work, line in zip(works, matmuls, strict=True) if line != EMBEDDING
    ]
    found = _part(lines, works, counted, matrices, held)
    passes = {}
    if job.model.head_line in matmuls:
        passes = {"forward": passes_of_head(lines, job)}
    operations = replace(
        found.operations, products=products(counted, job), passes=passes
    )
    return replace(found, operations=operations)


def _of_layer(
    part: Part,
    lines: Lines,
    job: Job,
    matmuls: tuple[Matmul, ...],
    again: Recompute,
    attention: Mapping[str, Amounts],
) -> Operations:
    """The operations of a layer, whose attention takes the FLOPs in `attention`."""
    passes = passes_of_layer(lines, job, matmuls)
    dealt = dealt_to_experts(lines, job, matmuls)
    times = {
        "forward": 1.0,
        "recompute": done_again(lines, job, matmuls, again.values),
        "backward": BACKWARD_PASSES,
    }
    kernels = kernels_of_layer(job, matmuls)
    ahead, back = turned_by_hop(lines, matmuls)
    return replace(
        part.operations,
        products=products(part.works, job),
        attention=attention,
        passes={when: scaled(passes, n) for when, n in times.items()},
        kernels={
            "forward": kernels,
            "recompute": kernels * times["recompute"],
            "backward": kernels * BACKWARD_KERNELS,
        },
        turned={
            "forward": ahead,
            "recompute": ahead if again.attention else {},
            "backward": back,
        },
        dealt={when: scaled(dealt, n) for when, n in times.items()},
    )


def send(lines: Lines, when: str, closed: bool, back: bool) -> Part:
    """A send of the stream to the next stage, or of its gradient to the previous."""
    return _moving(lines, (hop(lines, when, closed, back),))


def exchange(lines: Lines, weights: Iterable[Array], mirrored: bool) -> Part:
    """The gradients that two stages send each other if they hold the same weights.

    Args:
        lines: the lines under a strategy.
        weights: the weights that both stages hold.
        mirrored: whether every stage has a mirror image, as in DualPipe
            (github.com/deepseek-ai/DualPipe, 7cb1e5e, examples/example_dualpipe.py).
            If False, only the first and the last stage share weights: the embedding
            table.
    """
    swaps = [lines.swap(weight, every=mirrored) for weight in weights]
    return _moving(
        lines, tuple(Move(swap.before.name, swap, "update") for swap in swaps)
    )


def _moving(lines: Lines, moves: tuple[Move, ...]) -> Part:
    """A part that only moves arrays."""
    return Part(moves=moves, operations=Operations(_exchanges(lines, moves, ())))


def _part(
    lines: Lines,
    works: Iterable[Work],
    counted: Iterable[Work],
    matrices: tuple[Array, ...],
    held: Mapping[str, Iterable[HeldBytes]],
    once: Iterable[HeldBytes] = (),
) -> Part:
    """A part made of some matmuls; FLOPs count only the matmuls in `counted`."""
    moves = [move for work in works for move in work.moves]
    for weight in matrices:
        moves += [
            Move(change.before.name, change, "update")
            for change in lines.update(weight)
        ]
    found, of_weights = _flops(counted)
    plans = [p for work in works for some in work.plans.values() for p in some]
    arrays = [x for plan in plans for x in (plan.a, plan.b, plan.c)]
    arrays += [x for move in moves for x in (move.change.before, move.change.after)]
    arrays += [one.array for some in held.values() for one in some]
    return Part(
        moves=tuple(moves),
        flops=found,
        weight_flops=of_weights,
        held={part: bytes_held(some) for part, some in held.items()},
        once=bytes_held(once),
        operations=Operations(_exchanges(lines, moves, matrices)),
        limits=frozenset(_limits(arrays)),
        matrices=matrices,
        works=tuple(works),
    )


def _flops(works: Iterable[Work]) -> tuple[dict[str, Amounts], Amounts]:
    """FLOPs of matmuls with weights by pass, and of the weights' gradients alone. These
    are half of the backward pass, in which each matmul has two of its size."""
    found = {when: zeros() for when in PASSES}
    for work in works:
        for when, plans in work.plans.items():
            for plan in plans:
                divisors, amount = flops_of(plan)
                found[when][divisors] += amount
    weights = {divisors: amount / 2 for divisors, amount in found["backward"].items()}
    return found, weights


def _attention_flops(lines: Lines, job: Job, again: Recompute) -> dict[str, Amounts]:
    """FLOPs of scores and of the weighted sums of values, by pass. If the layers have
    different windows, it is the mean of all layers."""
    a_token = flops(job.model, job.seq, job.attention).attention / job.model.layers
    queries = lines.array(QUERIES, lines.strategy.inner)
    forward = {divisors_of(queries): a_token * lines.sizes["B"] * lines.sizes["S"]}
    part = len(again.attention) / len(job.model.attention)  # scores, values, or both
    return {
        "forward": forward,
        "recompute": scaled(forward, part),
        "backward": scaled(forward, 2.0),
    }


def _parameters(
    lines: Lines, job: Job, matrices: Iterable[Array], share: float
) -> dict[str, list[HeldBytes]]:
    """Bytes that a part holds of its parameters, as state, weights and gradients.

    Args:
        lines: the lines under a strategy.
        job: the job, which sets the formats.
        matrices: the weights of its matmuls.
        share: the part's share of all parameters outside the matrices, such as norms
            and biases. They are held as vectors over D.
    """
    at, matrices = lines.strategy, tuple(matrices)
    widths = {
        "state": (at.state, job.state_width),
        "weights": (at.weights, job.width("weights") * job.copy),
        "gradients": (at.gradients, job.width("gradients")),
    }
    vectors = share * outside_matrices(job.model) / job.model.d_model
    found = {}
    for part, (layout, width) in widths.items():
        vector = lines.array(Array("norm", ("D",)), layout)
        found[part] = [HeldBytes(width, lines.array(one, layout)) for one in matrices]
        found[part] += [HeldBytes(width * vectors, vector)]
    return found


def outside_matrices(model: Model) -> int:
    """Parameters outside the matrices: norms, biases, learned positions."""
    tables = 0 if model.tied else model.vocab * model.d_model
    return model.params - model.matmul_params - tables


def _saved(
    lines: Lines, job: Job, matmuls: tuple[Matmul, ...], remat: str
) -> list[HeldBytes]:
    """The activations of one layer that are kept for the backward pass.

    Sequence parallelism gathers the inputs of the first matmuls over the sequence. If
    nothing is computed again (remat "none"), they are not gathered a second time, so
    every chip keeps the whole gathered array.
    """
    found = []
    narrow = job.formats.get("inputs")
    # Attention's backward pass also reads its result A, so A keeps its format.
    inputs = {line.reads.name for line in matmuls} - {"A"}
    for one in saved(job.model, remat, matmuls, job.kernel):
        gathered = remat == "none" and one.array.name in MATMUL_INPUTS
        layout = lines.strategy.inner if gathered else lines.rests(one.array)
        kept = narrow and one.array.name in inputs
        width = PRECISION_BYTES[narrow] if kept else one.width
        found.append(HeldBytes(width, lines.array(one.array, layout)))
    return found


def _computed_again(
    lines: Lines, job: Job, matmuls: tuple[Matmul, ...]
) -> list[HeldBytes]:
    """What the backward pass of one layer reads but has to compute again first: all
    that "none" would keep of the layer, except what the job's `remat` keeps."""
    kept = {one.array.name for one in _saved(lines, job, matmuls, job.remat)}
    every = _saved(lines, job, matmuls, "none")
    return [one for one in every if one.array.name not in kept]


def _gathered(lines: Lines, matmuls: Iterable[Matmul]) -> list[HeldBytes]:
    """The gathered weights of one layer, if they are sharded between their uses."""
    found = []
    for plan in (lines.forward(line) for line in matmuls):
        if any(change.before.name == plan.b.name for change in plan.moved):
            found.append(HeldBytes(PRECISION_BYTES[plan.b.precision], plan.b))
    return found


def _in_transit(lines: Lines, job: Job, matmuls: tuple[Matmul, ...]) -> list[HeldBytes]:
    """What the backward pass of one block holds for a short time: the gradients of the
    hidden layer h and of its inputs. With sequence parallelism, it also holds the
    gathered gradient that a block reads and the partial sums that it returns. Both are
    whole on every chip until they are scattered over the sequence again."""
    at, width = lines.strategy, job.width("activations")
    hidden = next(line.reads for line in matmuls if line.reads.name[0] == "h")
    inputs = {f"{name}{hidden.name[1:]}" for name in "gu"}
    gradients = 1 + sum(line.result.name in inputs for line in matmuls)
    found = [HeldBytes(width * gradients, lines.rest(hidden))]
    if at.stream.get("S", ()) != at.inner.get("S", ()):
        found.append(HeldBytes(2 * width, lines.array(STREAM, at.inner)))
    return found


def _keys(lines: Lines, matmuls: Iterable[Matmul]) -> list[HeldBytes]:
    """Keys and values that one layer gathers if the tokens are sharded."""
    return [
        HeldBytes(PRECISION_BYTES[change.after.precision], change.after)
        for change in lines.attention(matmuls)[0]
        if change.op == "all_gather"
    ]


def _exchanges(lines: Lines, moves: Iterable[Move], matrices: Iterable[Array]) -> dict:
    """The bytes that moves send, by purpose and pass; see `operations.exchanges`."""
    matrices = tuple(matrices)
    weights = {one.name for one in matrices} | {EMBEDDING.weight.name}
    return exchanges(lines, moves, weights, lambda move: repeats(move, matrices))


def _limits(arrays: Iterable[ShardedArray]) -> Iterable[tuple[str, int, Names]]:
    for dims, sizes, placed in {(x.dims, x.sizes, x.placed) for x in arrays}:
        for dim, size, axes in zip(dims, sizes, placed, strict=True):
            if axes:
                yield dim, size, tuple(sorted(axes))
