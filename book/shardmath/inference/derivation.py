"""What one chip of a server does in an engine step, derived from the model's lines.

A line such as ``h[B, S, F] · down[F, D] -> m[B, S, D]`` says everything: its weights,
its FLOPs, the dimension that tensor parallelism splits (heads, hidden layer, experts),
and, since F is summed over, that the chips have to add up their results.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ..base.units import PRECISION_BYTES
from ..collectives import price_of
from ..hardware.chips import Chip
from ..hardware.mesh import Mesh
from ..hardware.networks import Network, NVLinkDomain, network
from ..hardware.networks.wiring import Switch
from ..training.experts import copies
from ..transformer import Matmul, Model, cached_values, recurrent_state
from .setting import WIDE, Formats, Layout

HIDDEN = ("F", "Fdense", "Fshared")  # what tensor parallelism splits beside heads
HEADS = ("N", "Nkey", "Nvalue", "Nindex")
KV_HEADS = "K"
DISPATCHED, COMBINED = 1.0, 2.0  # bytes of a value on its way to experts, and back


class Kernel(NamedTuple):
    """The lines of a layer that one kernel does: they read the same array.

    Args:
        kind: "attention", "mlp", "experts", "router" or "head".
        params: weights of them on one chip.
        nbytes: the bytes of these weights.
        flops: for one token of the chip; for experts, for one token of the server.
        precision: that they are multiplied in.
        layers: how many layers of the model have them.
    """

    kind: str
    params: float
    nbytes: float
    flops: float
    precision: str
    layers: int


@dataclass(frozen=True)
class Amounts:
    """What one chip holds and does, before anything is said of time.

    Args:
        products: matmuls with weights, of all layers.
        cache: bytes of the cache that a token of a sequence takes on its chip, in
            layers that keep all tokens, and in those that keep a window.
        state: bytes that a sequence takes on its chip, however long it is.
        read: bytes that a query reads of the cache for every token, and for each of the
            tokens up to `limit`.
        limit: tokens of a window, or those that an indexer chooses; 0 for all.
        scores: FLOPs of attention on one chip for a query and a key, of all keys and of
            those up to `limit`, if they are read from the cache as they lie there.
        expanded: the same, if keys and values are made from the latent first; without
            a latent it is equal to `scores`.
        expanding: FLOPs of making keys and values of one cached token again.
        recurrence: FLOPs of the states for one token.
        sums: AllReduces of a step, each of the stream of all tokens of a chip.
        exchanges: pairs of AllToAlls with experts.
        kernels: of a step in decode, without collectives.
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
    """The derivation: from lines to what one chip does.

    Args:
        model: any.
        chip: whose units decide what matmuls run in.
        layout: over how many chips.
        formats: of weights, activations and cache.

    Raises:
        ValueError: experts that are dealt out where there are none, or to more groups
            than there are experts.
    """
    if layout.expert > 1 and not model.experts:
        raise ValueError(
            f"expert = {layout.expert}: {model.name} has no experts to deal out"
        )
    if model.experts and layout.expert > model.experts.count:
        raise ValueError(
            f"expert = {layout.expert}: {model.name} has {model.experts.count} experts "
            "in a layer"
        )
    found, kernels, sums, exchanges = [], 0.0, 0, 0
    for count, lines in model.stack:
        made = tuple(_products(model, lines, count, chip, layout, formats))
        found += made
        kernels += count * kernels_of_layer(model, made)
        if any(line.weight.name == "decay" for line in lines):
            kernels += count * OF_STATE
        routed = any(one.kind == "experts" for one in made)
        if layout.tensor > 1:  # of attention and MLP; in parallel they are one sum
            sums += count * (1 if model.parallel else 2)
        if routed and layout.data > 1:
            exchanges += count
            sums -= count if layout.tensor > 1 else 0  # what experts give comes back
    head = model.head_line
    params = head.weight.count(model.dims)
    split = params / layout.tensor
    found.append(
        Kernel("head", split, 2.0 * split, 2.0 * split, _wide(chip), 1),
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
    """The matmuls of a layer; lines that read the same array are one."""
    groups: dict[tuple[str, str, bool], list[Matmul]] = {}
    for line in lines:
        kind = kind_of(line)
        alone = line.weight.name in ("kup", "vup")  # both read the latent, in two ways
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
            width, precision = 2.0, _wide(chip)
        else:
            precision = formats.compute(chip, stored)
        yield Kernel(kind, params, width * params, 2.0 * met, precision, count)


def kind_of(line: Matmul) -> str:
    """What a line with a weight belongs to."""
    if "E" in line.weight.dims:
        return "router" if line.weight.name == "router" else "experts"
    return "mlp" if {*line.weight.dims} & {*HIDDEN} else "attention"


def ways(line: Matmul, layout: Layout, model: Model) -> int:
    """Over how many chips the weights of a line are split; the others hold copies.

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


def _wide(chip: Chip) -> str:
    return WIDE if WIDE in chip.flops else "fp16"


# ------------------------------------------------------------ the cache, attention


def _attention(model: Model, layout: Layout, formats: Formats) -> dict[str, object]:
    """What a chip keeps, reads and computes of attention, all layers together.

    KV heads are split up to their number. A latent has no heads: every chip of a tensor
    group holds all of it, and so it does with the keys of an indexer.
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
    if (
        index := model.indexer
    ):  # all keys of its own are read, and those that it chooses
        scored = 2.0 * index.heads / layout.tensor * index.head * many
        found["read"] = width * index.head * many, width * (values - index.head) * many
        found["limit"] = index.chosen
        found["scores"] = scored, absorbed * many
        found["expanded"] = scored, expanded * many
    return found


# ------------------------------------------------------------------------- kernels

# Of a step besides its layers: embedding, last norm, head, and what picks a token.
KERNELS_OF_STEP = 6
# Of a layer besides its matmuls. Attention: norm with the sum before it, rotary
# positions with the write to the cache, attention. MLP: norm with the sum, activation.
# A latent is normed twice, and decode joins what it split over keys. A token is given
# its experts, tokens are sorted by expert, and what comes back is weighed and added up.
OF_ATTENTION, OF_MLP, OF_LATENT, OF_ROUTING = 3, 2, 2, 3
# Where attention's projections run in 8 bits or fewer, what they read is turned into
# that format by a kernel each: the normed stream, and what attention gives. The MLP's
# own is part of the activation, and of the sorting by expert.
OF_NARROW = 2
# A recurrent layer joins neighbouring tokens and norms what the state gives. An indexer
# turns its keys, scores them, and picks the best.
OF_STATE, OF_INDEXER = 2, 3


def kernels_of_layer(model: Model, products: tuple[Kernel, ...]) -> float:
    """Kernels of one layer in decode, without collectives.

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
        count += OF_ROUTING + ("mlp" in kinds)  # experts and shared ones: added up
        count += "mlp" in kinds  # each has an activation
    return float(count)


# ------------------------------------------------------------------------- network


class Wires(NamedTuple):
    """Seconds on the network, and how many collectives there are.

    Args:
        summed: of the AllReduces of a step, for one token of a chip's group.
        dealt: of the exchanges with experts, for one token of a chip's group.
        sent: from stage to stage, for one token.
        latency: what we expect the hops of all of them to add, seconds of a step.
        calls: collectives of a step.
    """

    summed: float
    dealt: float
    sent: float
    latency: float
    calls: int


def wires(model: Model, network: Network, layout: Layout, one: Amounts) -> Wires:
    """What the network does for one token; bytes at the full rate of the links.

    An AllReduce may be done by the switches where they add. A token that goes to
    experts on other chips goes to each chip once, however many of its experts are
    there, and to each node once over its card.
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
    """The network with NVSwitches that add up what passes, where they can."""
    if isinstance(network, NVLinkDomain) and network.nvswitch.adds:
        rate = network.dims[-1].bandwidth
        return NVLinkDomain(network.chip, network.chips, rate, reduces=True)
    return network


def _dealt(
    model: Model, mesh: Mesh, over: tuple[str, ...], layout: Layout, values: float
) -> float:
    """Seconds of the exchange of one token of every group with the experts."""
    experts = model.experts
    spread = copies(experts.count, experts.per_token, layout.expert)
    total = values * layout.data * spread  # one token of each group of `tensor` chips
    return price_of("all_to_all", total, mesh, over).lower


def _hop(mesh: Mesh, axes: str | tuple[str, ...]) -> float:
    """Seconds that one crossing of the slowest level takes, as we expect."""
    hops = (piece.wires.latency * piece.wires.diameter for piece in mesh.span(axes))
    return max(hops, default=0.0)


def network_of(chip: Chip, layout: Layout) -> Network:
    """The network of a server of such GPUs: one node where it is large enough, else as
    many full nodes as it takes.

    Raises:
        ValueError: a TPU, whose slice has to be given, or nodes that are not full.

    >>> from shardmath.hardware.chips import H200
    >>> network_of(H200, Layout(tensor=8, pipeline=2)).name
    '2 nodes of 8 H200'
    """
    if chip.vendor == "Google":
        raise ValueError(f"chip = {chip.name}: give its slice, such as 'v5e:4x4'")
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
