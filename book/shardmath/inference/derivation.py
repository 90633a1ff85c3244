"""The work of one chip of a server in an engine step, derived from the model's lines.

A line such as ``h[B, S, F] · down[F, D] -> m[B, S, D]`` tells us its weights, its FLOPs
and the dimension that tensor parallelism splits (heads, hidden layer or experts). Here
that dimension, F, is contracted, so the chips have to add up their results.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ..base.records import must_be
from ..base.units import PRECISION_BYTES
from ..collectives import price_of
from ..hardware.chips import Chip, require_chip
from ..hardware.mesh import Mesh
from ..hardware.networks import Network, NVLinkDomain, network
from ..hardware.networks.wiring import Switch
from ..training.experts import copies
from ..transformer import Matmul, Model, cached_values, recurrent_state
from ..transformer.architecture import checked
from .setting import Formats, Layout

HIDDEN = ("F", "Fdense", "Fshared")  # split by tensor parallelism, as heads are
HEADS = ("N", "Nkey", "Nvalue", "Nindex")
KV_HEADS = "K"
DISPATCHED, COMBINED = 1.0, 2.0  # bytes of a value on its way to experts, and back


class Kernel(NamedTuple):
    """The lines of a layer that one kernel computes, because they read the same array.

    Args:
        kind: "attention", "mlp", "experts", "router" or "head".
        params: the number of their weights on one chip.
        nbytes: the bytes of these weights.
        flops: FLOPs for one token of the chip; for experts, one token of the server.
        precision: the format in which they are multiplied.
        layers: how many layers of the model have these lines.
    """

    kind: str
    params: float
    nbytes: float
    flops: float
    precision: str
    layers: int


@dataclass(frozen=True)
class Amounts:
    """The memory and work of one chip in amounts that do not depend on rates.

    Args:
        products: matmuls with weights, of all layers.
        cache: bytes of cache per token on its chip, in layers that keep all tokens and
            in layers that keep a window.
        state: bytes per sequence on its chip that do not depend on its length.
        read: bytes of cache that a query reads per token, in layers that read all
            tokens and in layers that read at most `limit` tokens.
        limit: tokens of a window, or those that an indexer chooses; 0 for no limit.
        scores: FLOPs of attention on one chip per query and key, for all keys and for
            at most `limit` keys, if a latent is used as it is in the cache.
        expanded: the same FLOPs if keys and values are first computed from the latent;
            equal to `scores` without a latent.
        expanding: FLOPs to compute keys and values of one cached token again.
        recurrence: FLOPs of the recurrent states for one token.
        sums: AllReduces of a step, each of the stream of all tokens of a chip.
        exchanges: pairs of AllToAlls with experts.
        kernels: kernels of a decode step, without collectives.
    """

    products: tuple[Kernel, ...]
    cache: tuple[float, float]
    state: float
    read: tuple[float, float]
    limit: int
    scores: tuple[float, float]
    expanded: tuple[float, float]
    expanding: float
    recurrence: float
    sums: int
    exchanges: int
    kernels: float

    @property
    def weights(self) -> float:
        """Bytes of the weights on one chip, without the embedding."""
        return sum(one.nbytes * one.layers for one in self.products)


def amounts(model: Model, chip: Chip, layout: Layout, formats: Formats) -> Amounts:
    """Derive the amounts of one chip from the model's lines.

    Args:
        model: the model.
        chip: the chip, whose units decide in which format matmuls run.
        layout: how the model is split over chips.
        formats: the formats of weights, activations and cache.

    Raises:
        ValueError: an argument of the wrong type; expert parallelism for a model
            without experts, or over more groups than it has experts.

    >>> from shardmath.hardware.chips import H100
    >>> from shardmath.transformer import LLAMA_3_8B
    >>> one = amounts(LLAMA_3_8B, H100, Layout(tensor=2), Formats())
    >>> one.cache[0]  # bytes per token in the layers without a window
    65536.0
    """
    checked(model)
    require_chip(chip)
    must_be(Layout, layout=layout)
    must_be(Formats, formats=formats)
    if layout.expert > 1 and not model.experts:
        raise ValueError(
            f"expert = {layout.expert}: must be 1, because {model.name} has no experts"
        )
    if model.experts and layout.expert > model.experts.count:
        raise ValueError(
            f"expert = {layout.expert}: must be at most {model.experts.count}, the "
            f"experts in a layer of {model.name}"
        )
    found, kernels, sums, exchanges = [], 0.0, 0, 0
    for count, lines in model.stack:
        made = tuple(_products(model, lines, count, chip, layout, formats))
        found += made
        kernels += count * kernels_of_layer(model, made)
        if any(line.weight.name == "decay" for line in lines):
            kernels += count * OF_STATE
        routed = any(one.kind == "experts" for one in made)
        if layout.tensor > 1:  # attention and MLP share one sum if they are parallel
            sums += count * (1 if model.parallel else 2)
        if routed and layout.data > 1:
            exchanges += count
            sums -= count if layout.tensor > 1 else 0  # the exchange replaces this sum
    head = model.head_line
    params = head.weight.count(model.dims)
    split = params / layout.tensor
    found.append(
        Kernel("head", split, 2.0 * split, 2.0 * split, chip.half, 1),
    )
    return Amounts(
        tuple(found),
        **_attention(model, layout, formats),
        sums=sums,
        exchanges=exchanges,
        kernels=kernels + KERNELS_OF_STEP,
    )


# --------------------------------------------------------------------- the matmuls


def _products(
    model: Model,
    lines: tuple[Matmul, ...],
    count: int,
    chip: Chip,
    layout: Layout,
    formats: Formats,
) -> Iterable[Kernel]:
    """The matmuls of a layer; lines that read the same array form one kernel."""
    groups: dict[tuple[str, str, bool], list[Matmul]] = {}
    for line in lines:
        kind = kind_of(line)
        alone = line.weight.name in ("kup", "vup")  # both read the latent separately
        key = line.reads.name, kind, alone and line.weight.name
        groups.setdefault(key, []).append(line)
    for (_, kind, _), some in groups.items():
        params = sum(line.weight.count(model.dims) / ways(line, layout, model)
                     for line in some)  # fmt: skip
        met = params
        if kind == "experts":
            met = sum(map(model.met, some)) / layout.stage
        width = formats.weight_bytes
        stored = formats.weights
        if kind == "attention":
            width, stored = formats.attention_bytes, formats.attention or stored
        if kind == "router":
            width, precision = 2.0, chip.half
        else:
            precision = formats.compute(chip, stored)
        yield Kernel(kind, params, width * params, 2.0 * met, precision, count)


def kind_of(line: Matmul) -> str:
    """The kind of kernel to which a line with a weight belongs."""
    if "E" in line.weight.dims:
        return "router" if line.weight.name == "router" else "experts"
    return "mlp" if {*line.weight.dims} & {*HIDDEN} else "attention"


def ways(line: Matmul, layout: Layout, model: Model) -> int:
    """How many chips split the weights of a line; the others hold copies.

    >>> from shardmath.transformer import model
    >>> q, k, *_ = model("llama 3 70b").layer  # 64 heads, 8 of keys and values
    >>> [ways(line, Layout(tensor=16), model("llama 3 70b")) for line in (q, k)]
    [16, 8]
    """
    dims = line.weight.dims
    if kind_of(line) == "experts":
        return layout.stage
    if KV_HEADS in dims:
        return min(layout.tensor, model.kv_heads)
    if {*dims} & {*HEADS, *HIDDEN}:
        return layout.tensor
    return 1


# ------------------------------------------------------------ the cache, attention


def _attention(model: Model, layout: Layout, formats: Formats) -> dict[str, object]:
    """The cache, reads and FLOPs of attention on one chip, all layers together.

    KV heads are split over at most as many chips as there are KV heads. A latent has no
    heads, so every chip of a tensor group holds all of it, and all keys of an indexer.
    """
    many, few = model.global_layers, model.local_layers
    width = formats.cache_bytes
    values = float(cached_values(model))
    if not model.latent:
        values /= min(layout.tensor, model.kv_heads)
    heads = model.heads / layout.tensor
    absorbed = expanded = 4.0 * heads * model.head
    expanding = 0.0
    if latent := model.latent:
        made = latent.nope + latent.value
        absorbed = 2.0 * heads * (2 * latent.kv_rank + latent.rope)
        expanded = 2.0 * heads * (made + latent.rope)
        expanding = 2.0 * heads * latent.kv_rank * made * many
    found = {
        "cache": (width * values * many, width * values * few),
        "state": recurrent_state(model) / layout.tensor,
        "read": (width * values * many, width * values * few),
        "limit": model.window,
        "scores": (absorbed * many, absorbed * few),
        "expanded": (expanded * many, expanded * few),
        "expanding": expanding,
        "recurrence": 0.0,
    }
    if model.recurrent:
        states = 6.0 * model.recurrent.state * model.recurrent_layers
        found["recurrence"] = states / layout.tensor
    # An indexer reads all of its own keys, and attention reads those that it chooses.
    if index := model.indexer:
        scored = 2.0 * index.heads / layout.tensor * index.head * many
        found["read"] = width * index.head * many, width * (values - index.head) * many
        found["limit"] = index.chosen
        found["scores"] = scored, absorbed * many
        found["expanded"] = scored, expanded * many
    return found


# ------------------------------------------------------------------------- kernels

# Kernels of a step outside its layers: embedding, last norm, head, and sampling.
KERNELS_OF_STEP = 6
# Kernels of a layer in addition to its matmuls. Attention has a norm fused with the sum
# before it, rotary positions fused with the write to the cache, and attention itself.
# The MLP has a norm fused with the sum, and the activation. Latents are normed too, and
# decode joins the results of attention that it split over keys. With experts, a kernel
# chooses the experts, one sorts the tokens, and one adds up the weighted results.
OF_ATTENTION, OF_MLP, OF_LATENT, OF_ROUTING = 3, 2, 2, 3
# If attention's projections run in 8 bits or fewer, a kernel casts each of their two
# inputs, the normed stream and the result of attention. For the MLP and the experts,
# the activation and the sorting include the cast.
OF_NARROW = 2
# A recurrent layer convolves neighbouring tokens and norms the output of its state. An
# indexer rotates its keys, scores them, and picks the best.
OF_STATE, OF_INDEXER = 2, 3


def kernels_of_layer(model: Model, products: tuple[Kernel, ...]) -> float:
    """The number of kernels of one layer in decode, without collectives.

    >>> from shardmath.hardware.chips import H100
    >>> from shardmath.transformer import model
    >>> one = model("llama 3 8b")
    >>> made = amounts(one, H100, Layout(), Formats())
    >>> made.kernels  # 9 for each of 32 layers, and 6 more
    294.0
    """
    kinds = [one.kind for one in products]
    count = len(kinds) + OF_ATTENTION + OF_MLP
    count += OF_LATENT if model.latent else 0
    count += 1 if model.qk_norm else 0
    count += OF_INDEXER if model.indexer else 0
    projected = next(one.precision for one in products if one.kind == "attention")
    count += OF_NARROW if PRECISION_BYTES[projected] < 2 else 0
    if "experts" in kinds:
        count += OF_ROUTING + ("mlp" in kinds)  # shared experts add one more sum
        count += "mlp" in kinds  # and one more activation
    return float(count)


# ------------------------------------------------------------------------- network


class Wires(NamedTuple):
    """Seconds on the network, and the number of collectives.

    Args:
        summed: seconds of a step's AllReduces, for one token of a chip's group.
        dealt: seconds of the exchanges with experts, for one token of a chip's group.
        sent: seconds of the sends from stage to stage, for one token.
        latency: expected seconds per step for the hops of all collectives.
        calls: the number of collectives of a step.
    """

    summed: float
    dealt: float
    sent: float
    latency: float
    calls: int


def wires(model: Model, network: Network, layout: Layout, one: Amounts) -> Wires:
    """The time of the network for one token, with bytes at the full rate of the links.

    Switches that can add do the AllReduces. A token that goes to experts on other chips
    is sent once to each chip, however many of its experts are there, and only once to
    each node through the network card.
    """
    if network.chips == 1:
        return Wires(0.0, 0.0, 0.0, 0.0, 0)
    axes = {"pipeline": layout.pipeline, "data": layout.data, "tensor": layout.tensor}
    mesh = Mesh(adding(network), {name: n for name, n in axes.items() if n > 1})
    summed = dealt = sent = latency = 0.0
    calls = 0
    stream = 2.0 * model.d_model
    if one.sums:
        each = price_of("all_reduce", stream, mesh, "tensor")
        summed = one.sums * each.lower
        latency += one.sums * _hop(mesh, "tensor")
        calls += one.sums
    if one.exchanges:
        over = tuple(name for name in ("data", "tensor") if axes[name] > 1)
        values = model.d_model * (DISPATCHED + COMBINED)
        dealt = one.exchanges * _dealt(model, mesh, over, layout, values)
        latency += 2 * one.exchanges * _hop(mesh, over)
        calls += 2 * one.exchanges
    if layout.pipeline > 1:
        hop = price_of("permute", stream / layout.tensor, mesh, "pipeline")
        sent = (layout.pipeline - 1) * hop.lower
        latency += (layout.pipeline - 1) * _hop(mesh, "pipeline")
        calls += layout.pipeline - 1
    return Wires(summed, dealt, sent, latency, calls)


def adding(network: Network) -> Network:
    """The network, with NVSwitches that do AllReduces if they are able to add."""
    if isinstance(network, NVLinkDomain) and network.nvswitch.adds:
        rate = network.dims[-1].bandwidth
        return NVLinkDomain(network.chip, network.chips, rate, reduces=True)
    return network


def _dealt(
    model: Model, mesh: Mesh, over: tuple[str, ...], layout: Layout, values: float
) -> float:
    """Seconds of the exchange with experts for one token of every group."""
    experts = model.experts
    spread = copies(experts.count, experts.per_token, layout.expert)
    total = values * layout.data * spread  # one token of each group of `tensor` chips
    return price_of("all_to_all", total, mesh, over).lower


def _hop(mesh: Mesh, axes: str | tuple[str, ...]) -> float:
    """Expected seconds of one crossing of the slowest level."""
    hops = (piece.wires.latency * piece.wires.diameter for piece in mesh.span(axes))
    return max(hops, default=0.0)


def network_of(chip: Chip, layout: Layout) -> Network:
    """The network of a server of these GPUs: one node if it is large enough, otherwise
    several full nodes.

    Raises:
        ValueError: a TPU, whose slice has to be given, or nodes that are not full.

    >>> from shardmath.hardware.chips import H200
    >>> network_of(H200, Layout(tensor=8, pipeline=2)).name
    '2 nodes of 8 H200'
    """
    if chip.vendor == "Google":
        raise ValueError(
            f"chip = {chip.name}: must be given as a slice, such as 'v5e:4x4'"
        )
    if layout.chips == 1:
        return alone(chip)
    return network(f"{chip.id}:{layout.chips}")


def alone(chip: Chip) -> Network:
    """The network of a server of one chip, which needs no links.

    >>> from shardmath.hardware.chips import H200
    >>> alone(H200).chips
    1
    """
    return Network((Switch(1, 1.0, 0.0),), f"1 {chip.name}", chip)
