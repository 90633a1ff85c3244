"""What a stage's chips do, one thing after another: products, passes, exchanges.

A bound needs only totals. A prediction needs the list of operations, because a small
product is slower than its FLOPs suggest, and because some exchanges can hide behind
other work. Every amount is a sum of terms, as in `amounts`, and the sum is evaluated
once the sizes of the mesh axes are known.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..base.units import PRECISION_BYTES
from ..sharding import ShardedArray, ShardingPlan
from ..transformer import Array, Matmul
from ..transformer.remat import WIDTHS, layer_values
from .amounts import (
    Amounts,
    Divisors,
    MovedBytes,
    Names,
    Wire,
    bytes_held,
    divisors_of,
    evaluate,
    flops_of,
)
from .communication import HEADS, Hop, Lines, Move, Swap, Work
from .experts import DEALT
from .job import Job
from .memory import HeldBytes

STREAM = Array("x", ("B", "S", "D"))
WIDE = "bf16"  # the format of products that never use 8 bits or fewer
PURPOSES = {  # why bytes move, and after the colon, which work can hide them
    "tensor": "activations over the tensor axes: at most a product of the same block",
    "context": "gathered keys, and heads that change their chip: nothing",
    "ring": "keys on their way round a ring: the attention of the previous hop",
    "experts": "tokens to their experts and back: nothing, unless a source says so",
    "weights": "weights that are gathered: the previous layer",
    "gradients": "gradients that are reduced: the backward pass of the next layer",
    "stages": "the stream from stage to stage: the next microbatch",
}
OF_WEIGHTS = ("weights", "gradients")
# Kernels of a layer's forward pass in addition to its matmuls: norms, rotary positions,
# attention, activation, residual sums. A layer with experts also routes, sorts and
# permutes tokens.
KERNELS_PER_LAYER, KERNELS_OF_ROUTING = 8, 14
BACKWARD_KERNELS = 1.5  # kernels of the backward pass per kernel of the forward pass
BACKWARD_PASSES = 2.0  # bytes of the backward pass's memory passes, per forward byte
# Bytes per logit that pass through HBM: it is written in bf16, read and written in fp32
# by the loss, and its gradient is written and read.
LOGIT_BYTES = 20
# Bytes per parameter that Adam moves: it reads and writes a weight and two moments in
# fp32, reads the gradient in fp32, and writes the weight in bf16: 24 + 4 + 2 bytes.
OPTIMIZER_BYTES = 30
# Bytes per value to which a hop round a ring adds: read and written in fp32, with an
# addend in bf16. These values are the result of attention in the forward pass, and the
# gradients of queries, keys and values in the backward pass. A hop also adds two
# kernels, attention itself and the sum.
HOP_BYTES, HOP_KERNELS = 10, 2
SCORE_BYTES = 10  # per unfused score, forward: written and read, with its mask


class Product(NamedTuple):
    """A matmul of one pass, m·k by k·n; if grouped, for all experts of a chip.

    Args:
        flops: 2·m·k·n, added up over the experts.
        nbytes: bytes of the two operands and the result.
        precision: the format of the operands.
        rows: m of one expert; None for a matmul that is not grouped.
    """

    flops: tuple[Divisors, float]
    nbytes: tuple[tuple[Divisors, float], ...]
    precision: str
    rows: tuple[Divisors, float] | None = None


Exchanges = Mapping[tuple[str, str], Mapping[Wire, MovedBytes]]


@dataclass(frozen=True, eq=False)
class Operations:
    """The operations of one part of a stage for one microbatch, by pass.

    Args:
        exchanges: the traffic by purpose and pass; the pass "update" is once per step.
        products: matmuls with weights.
        attention: FLOPs of scores and of the weighted sums of values.
        passes: bytes of activations that pass through HBM outside of products.
        kernels: the number of kernels in addition to the products.
        turned: bytes that pass through HBM for every hop round a ring of keys.
        dealt: bytes of the tokens that experts get.
    """

    exchanges: Exchanges = field(default_factory=dict)
    products: Mapping[str, tuple[Product, ...]] = field(default_factory=dict)
    attention: Mapping[str, Amounts] = field(default_factory=dict)
    passes: Mapping[str, Amounts] = field(default_factory=dict)
    kernels: Mapping[str, float] = field(default_factory=dict)
    turned: Mapping[str, Amounts] = field(default_factory=dict)
    dealt: Mapping[str, Amounts] = field(default_factory=dict)


class Done(NamedTuple):
    """`Operations` on one mesh: what one chip does in one pass of a microbatch.

    Args:
        products: FLOPs, bytes, precision and rows of an expert (0 if not grouped).
        attention: FLOPs of attention.
        passes: bytes through HBM outside of products.
        kernels: the number of kernels in addition to the products.
        turned: bytes through HBM for every hop round a ring of keys.
        dealt: bytes of the tokens that experts get.
        busy: seconds for which the links are busy at their full rate, by purpose.
            Weights and gradients are not included; see `moved_weights`.
    """

    products: tuple[tuple[float, float, str, float], ...]
    attention: float
    passes: float
    kernels: float
    turned: float
    dealt: float
    busy: Mapping[str, float]


class MovedWeights(NamedTuple):
    """Seconds for which weights and gradients keep the links busy, at their full rate.

    Args:
        forward, backward: seconds in these passes, for every microbatch.
        reduced: seconds for the gradients that are reduced once per step.
        returned: seconds for the weights gathered from the optimizer once per step.
    """

    forward: float
    backward: float
    reduced: float
    returned: float


def purpose(move: Move, lines: Lines, weights: Collection[str]) -> str:
    """The purpose of a move, a key of `PURPOSES`.

    Args:
        move: a move of a part.
        lines: the lines of the part.
        weights: the names of the part's weights.
    """
    change, at = move.change, lines.strategy
    if move.dealt:
        return "experts"
    if isinstance(change, Swap):
        return "gradients"
    if isinstance(change, Hop):
        return "ring" if change.axes == at.ring else "stages"
    if not move.scales:
        return "weights" if move.array in weights else "gradients"
    return "context" if {*change.axes} & {*at.inner.get("S", ())} else "tensor"


def exchanges(
    lines: Lines,
    moves: Iterable[Move],
    weights: Collection[str],
    repeated: Callable[[Move], bool],
) -> dict[tuple[str, str], dict[Wire, MovedBytes]]:
    """The bytes sent by `moves`, by purpose and pass, then by operation and axes.

    Args:
        lines: the lines of the part.
        moves: the moves of the part.
        weights: the names of the part's weights.
        repeated: whether a move is repeated for every microbatch.
    """
    found: dict = defaultdict(lambda: defaultdict(MovedBytes))
    for move in moves:
        change, times = move.change, float(move.times)
        every = repeated(move)
        often = "M" * every
        if isinstance(change, Hop) and change.axes == lines.strategy.ring:
            often += "n"
            times /= change.before.ways(change.axes) - 1
        axes, batch = divisors_of(change.before)
        if change.op in ("all_gather", "all_to_all"):  # V is what the group holds
            axes = _without(axes, change.axes)
        wire = change.op, change.axes, move.kind
        some = found[purpose(move, lines, weights), move.when if every else "update"]
        some[wire].nbytes[(axes, batch), often] += times * change.before.nbytes
    return {key: dict(some) for key, some in found.items()}


def together(some: Exchanges) -> dict[Wire, MovedBytes]:
    """The exchanges of all purposes together, by operation and axes."""
    found: dict[Wire, MovedBytes] = defaultdict(MovedBytes)
    for by_wire in some.values():
        for wire, moved in by_wire.items():
            for key, nbytes in moved.nbytes.items():
                found[wire].nbytes[key] += nbytes
    return dict(found)


def products(works: Iterable[Work], job: Job) -> dict[str, tuple[Product, ...]]:
    """The matmuls of the given lines, by pass."""
    found: dict[str, list[Product]] = defaultdict(list)
    for work in works:
        for when, plans in work.plans.items():
            found[when] += [_product(plan, job) for plan in plans]
    return {when: tuple(some) for when, some in found.items()}


def _product(plan: ShardingPlan, job: Job) -> Product:
    """One matmul. Head and router use 16 bits even if the layers use fewer."""
    arrays = plan.a, plan.b, plan.c
    dims = {dim for one in arrays for dim in one.dims}
    grouped = "slots" in dims
    routed = "E" in dims and not grouped
    narrow = PRECISION_BYTES[job.precision] < PRECISION_BYTES[WIDE]
    precision = WIDE if narrow and (routed or "V" in dims) else job.precision
    return Product(
        flops_of(plan),
        tuple((divisors_of(one), one.nbytes) for one in arrays),
        precision,
        _rows(arrays) if grouped else None,
    )


def _rows(arrays: Iterable[ShardedArray]) -> tuple[Divisors, float]:
    """Slots of one expert on one chip."""
    one = next(array for array in arrays if "slots" in array.dims)
    at = one.dims.index("slots")
    return (tuple(sorted(one.placed[at])), "slots"), float(one.sizes[at])


def passes_of_layer(lines: Lines, job: Job, matmuls: tuple[Matmul, ...]) -> Amounts:
    """Bytes that norms, positions, activation and residual sums move through HBM.

    In one forward pass of a layer, two sums and two norms move a token's stream vector
    8 times: a sum that is fused with a norm reads two vectors and writes two. Rotary
    positions and attention move its queries, keys, values and attention result twice.
    The activation moves its hidden layer 3 times, or twice if there is no gate. With
    experts, a token's vector is read once and their sum is written. What is moved for
    each expert is counted by `dealt_to_experts`.
    """
    width = max(PRECISION_BYTES[WIDE], job.width("activations"))
    at = lines.strategy
    some = [HeldBytes(8 * width, lines.array(STREAM, at.stream))]
    heads = [line.result for line in matmuls if line.result.name in HEADS]
    heads += [line.reads for line in matmuls if line.reads.name == "A"]
    some += [HeldBytes(2 * width, lines.array(one, at.inner)) for one in heads]
    for line in matmuls:
        hidden = line.reads
        if hidden.name[0] == "h":
            gated = any(one.result.name == f"g{hidden.name[1:]}" for one in matmuls)
            turns = 3 if gated else 2
            some.append(HeldBytes(turns * width, lines.activation(hidden)))
        if hidden.dims == ("E", "slots", "F"):
            some.append(HeldBytes(2 * width, lines.array(STREAM, at.stream)))
    if job.kernel == "unfused":
        scores = Array("P", ("B", "N", "S", "T"))
        queries = {dim: axes for dim, axes in at.attention.items() if dim != "T"}
        some.append(HeldBytes(SCORE_BYTES, lines.array(scores, queries), at.ring))
    return bytes_held(some)


def turned_by_hop(lines: Lines, matmuls: tuple[Matmul, ...]) -> tuple[Amounts, Amounts]:
    """Bytes that a hop round a ring of keys moves through HBM, forward and backward. In
    the forward pass, a hop adds to the result of attention; in the backward pass, it
    adds to the gradients of queries, keys and values."""
    at = lines.strategy
    if not at.ring:
        return {}, {}
    made = [line.result for line in matmuls if line.result.name in HEADS]
    result = [line.reads for line in matmuls if line.reads.name == "A"]
    return tuple(
        bytes_held(HeldBytes(HOP_BYTES, lines.array(one, at.inner)) for one in some)
        for some in (result, made)
    )


def dealt_to_experts(lines: Lines, job: Job, matmuls: tuple[Matmul, ...]) -> Amounts:
    """Bytes of the tokens that a layer's experts get; none if it has no experts.

    A token that goes to k experts counts k times. Sorting the tokens by expert, padding
    and casting them, and adding up the results take them through HBM several times;
    `Efficiencies.trips` says how often. Of an expert that is split over chips, each of
    them counts only its share of the tokens, although all of them multiply all tokens.
    """
    width = max(PRECISION_BYTES[WIDE], job.width("activations"))
    dealt = {line.reads for line in matmuls if line.reads.dims == ("E", *DEALT.dims)}
    return bytes_held(HeldBytes(width, lines.activation(one)) for one in dealt)


def done_again(
    lines: Lines, job: Job, matmuls: tuple[Matmul, ...], again: Iterable[str]
) -> float:
    """The share of a layer's memory passes that the backward pass repeats: the bytes of
    the recomputed values `again`, divided by those of all values."""
    values = layer_values(job.model, matmuls, job.kernel)
    sizes = {"G": job.model.heads // job.model.kv_heads, **lines.sizes}
    sizes.setdefault("T", job.seq)

    def nbytes(names: Iterable[str]) -> float:
        some = (values[name] for name in names)
        if job.kernel == "fused":  # scores are never written to memory
            some = (one for one in some if "T" not in one.array.dims)
        return sum(WIDTHS[one.format] * one.array.count(sizes) for one in some)

    return nbytes(again) / nbytes(name for name in values if name != "stream")


def passes_of_head(lines: Lines, job: Job) -> Amounts:
    """Bytes of the logits that pass through HBM, for both passes together."""
    logits = job.model.head_line.result
    return bytes_held(
        [HeldBytes(LOGIT_BYTES, lines.array(logits, lines.strategy.inner))]
    )


def kernels_of_layer(job: Job, matmuls: tuple[Matmul, ...]) -> float:
    """Kernels of a layer's forward pass except matmuls, including casts to 8 bits."""
    routed = any(line.weight.name == "router" for line in matmuls)
    narrow = PRECISION_BYTES[job.precision] < PRECISION_BYTES[WIDE]
    return KERNELS_PER_LAYER + KERNELS_OF_ROUTING * routed + narrow * len(matmuls)


def scaled(amounts: Amounts, times: float) -> dict[Divisors, float]:
    """Amounts multiplied by `times`; none if it is 0."""
    return {key: times * amount for key, amount in amounts.items()} if times else {}


def done(
    some: Operations,
    when: str,
    ways: Callable[[Names], int],
    batch: Mapping[str, float],
    seconds: Callable[[Mapping[Wire, MovedBytes]], float],
) -> Done:
    """What one chip does in one pass of a microbatch.

    Args:
        some: the operations of a part.
        when: "forward", "recompute" or "backward".
        ways, batch: as in `amounts.evaluate`.
        seconds: a function that says how long given traffic keeps the links busy.
    """

    def amount(one: tuple[Divisors, float]) -> float:
        (axes, kind), size = one
        return size / ways(axes) * batch[kind]

    return Done(
        tuple(
            (
                amount(one.flops),
                sum(map(amount, one.nbytes)),
                one.precision,
                amount(one.rows) if one.rows else 0.0,
            )
            for one in some.products.get(when, ())
        ),
        evaluate(some.attention.get(when, {}), ways, batch),
        evaluate(some.passes.get(when, {}), ways, batch),
        some.kernels.get(when, 0.0),
        evaluate(some.turned.get(when, {}), ways, batch),
        evaluate(some.dealt.get(when, {}), ways, batch),
        {
            why: seconds(wires)
            for (why, at), wires in some.exchanges.items()
            if at == when and why not in OF_WEIGHTS
        },
    )


def moved_weights(
    some: Operations, seconds: Callable[[Mapping[Wire, MovedBytes]], float]
) -> MovedWeights:
    """How long the weights and gradients of a part keep the links busy.

    Args:
        some: the operations of a part.
        seconds: a function that says how long given traffic keeps the links busy.
    """
    found = dict.fromkeys(MovedWeights._fields, 0.0)
    for (why, when), wires in some.exchanges.items():
        if why in OF_WEIGHTS:
            if when == "update":
                at = "reduced" if why == "gradients" else "returned"
            else:
                at = "forward" if when == "forward" else "backward"
            found[at] += seconds(wires)
    return MovedWeights(**found)


def _without(axes: Names, gathered: Names) -> Names:
    """`axes` without those in `gathered`, all of which must be among them."""
    left = list(axes)
    for axis in gathered:
        left.remove(axis)
    return tuple(left)
