"""The shape of a Transformer: its sizes, its matmuls and its parameter counts."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property

from ..base.facts import Fact, Source
from ..base.records import kept
from ..base.units import flags, non_negative_int, positive_int, short_repr, text
from .lines import Array, Matmul, matmul

SIZES = (
    "layers", "d_model", "d_ff", "heads", "kv_heads", "head", "vocab", "norms",
)  # fmt: skip
COUNTS = ("positions", "window", "global_every", "predictors")
FLAGS = (
    "gated", "tied", "parallel", "biases", "qkv_biases", "norm_scales", "norm_biases",
    "norm_after", "embedding_norm", "relative", "sinks", "output_gate",
)  # fmt: skip
MOST_LAYERS = 100_000  # some sums go over all layers
QK_NORMS = ("", "head", "width")
RECURRENT_LINES = (
    "x[B, S, D] · q[D, Nkey, Hkey] -> Q[B, S, Nkey, Hkey]",
    "x[B, S, D] · k[D, Nkey, Hkey] -> K[B, S, Nkey, Hkey]",
    "x[B, S, D] · v[D, Nvalue, Hvalue] -> V[B, S, Nvalue, Hvalue]",
    "x[B, S, D] · outgate[D, Nvalue, Hvalue] -> Z[B, S, Nvalue, Hvalue]",
    "x[B, S, D] · correct[D, Nvalue] -> b[B, S, Nvalue]",
    "x[B, S, D] · decay[D, Nvalue] -> a[B, S, Nvalue]",
    "A[B, S, Nvalue, Hvalue] · o[Nvalue, Hvalue, D] -> y[B, S, D]",
)
INDEX_LINES = (
    "cq[B, S, qrank] · iq[qrank, Nindex, Hindex] -> IQ[B, S, Nindex, Hindex]",
    "x[B, S, D] · ik[D, Hindex] -> IK[B, S, Hindex]",
    "x[B, S, D] · iw[D, Nindex] -> IW[B, S, Nindex]",
)
ACTIVE = ("all", "without input embedding", "without embeddings")


@dataclass(frozen=True)
class Experts:
    """The experts of an MoE model; the width of each is the model's `d_ff`.

    Args:
        count: routed experts of a layer, E.
        per_token: the number of routed experts that a token is sent to, k.
        shared: experts that every token is sent to, each as wide as a routed one.
        dense_layers: layers without experts at the start of the model.
        dense_d_ff: width of the MLP in layers without experts.
        router_bias: whether the router adds a value to each expert's score.
        every: after the dense layers, every `every`-th layer has experts.
        ungated: whether experts have no gate although the model's other MLPs do.
        shared_gate: whether the result of the shared experts is scaled by a score for
            each token, which takes D weights to compute.

    Raises:
        ValueError: a number of the wrong kind, or numbers that contradict each other.
    """

    count: int
    per_token: int
    shared: int = 0
    dense_layers: int = 0
    dense_d_ff: int = 0
    router_bias: bool = False
    every: int = 1
    ungated: bool = False
    shared_gate: bool = False

    def __post_init__(self) -> None:
        kept(self, positive_int, "count", "per_token", "every")
        kept(self, non_negative_int, "shared", "dense_layers", "dense_d_ff")
        kept(self, flags, "router_bias", "ungated", "shared_gate")
        if self.shared_gate and not self.shared:
            raise ValueError("shared_gate = True: must come with shared experts")
        if self.per_token > self.count:
            raise ValueError(
                f"per_token = {self.per_token}: must be at most {self.count}"
            )
        some_dense = self.dense_layers > 0 or self.every > 1
        if some_dense != (self.dense_d_ff > 0):
            raise ValueError(
                f"dense_layers = {self.dense_layers}, every = {self.every}, dense_d_ff "
                f"= {self.dense_d_ff}: the last must be above 0 if some layers have no "
                "experts, and 0 if all have some"
            )


@dataclass(frozen=True)
class Latent:
    """The sizes of multi-head latent attention (MLA).

    Args:
        q_rank: width of the latent from which queries are computed.
        kv_rank: width of the latent from which keys and values are computed.
        nope, rope: sizes of the parts of a query or key head without and with rotary
            positions; all key heads share the part with rotary positions.
        value: size of a value head.

    Source:
        DeepSeek-V2 (arXiv:2405.04434), section 2.1.
    """

    q_rank: int
    kv_rank: int
    nope: int
    rope: int
    value: int

    def __post_init__(self) -> None:
        kept(self, positive_int, *vars(self))


@dataclass(frozen=True)
class Recurrent:
    """The sizes of layers that keep a state instead of keys and values.

    This is Gated DeltaNet: each value head has a matrix of `key` x `value` numbers.
    Each token decays the matrix, corrects the value that the matrix returns for the
    token's key, and reads the matrix with the token's query. So the state has the same
    size whatever the length of the sequence.

    Args:
        every: every `every`-th layer has attention; the others have a state.
        key_heads, value_heads: heads of queries and keys, and of values.
        key, value: sizes of a query or key head, and of a value head.
        taps: how many tokens are combined by a short causal convolution before the
            state.

    Raises:
        ValueError: a size is not a whole number from 1, or the number of key heads does
            not divide that of value heads.

    Source:
        Gated Delta Networks (arXiv:2412.06464); the shapes are those of Qwen3-Next in
        transformers (Hugging Face).

    >>> Recurrent(4, 16, 64, 128, 128, 4).values  # of one layer and sequence
    1085440
    """

    every: int
    key_heads: int
    value_heads: int
    key: int
    value: int
    taps: int

    def __post_init__(self) -> None:
        kept(self, positive_int, *vars(self))
        if self.value_heads % self.key_heads:
            raise ValueError(
                f"key_heads = {self.key_heads}: must divide the {self.value_heads} "
                "value heads"
            )

    @property
    def channels(self) -> int:
        """Values per token that the convolution reads: queries, keys and values."""
        return 2 * self.key_heads * self.key + self.value_heads * self.value

    @property
    def state(self) -> int:
        """Numbers in the matrices of all heads: value heads · key · value."""
        return self.value_heads * self.key * self.value

    @property
    def values(self) -> int:
        """How many numbers a sequence keeps in one layer: the matrices, and the
        channels of the earlier tokens that the convolution needs."""
        return self.state + (self.taps - 1) * self.channels


@dataclass(frozen=True)
class Indexer:
    """The sizes of a sparse attention that chooses its keys (DeepSeek's DSA).

    A small attention scores all keys, and the large attention reads only those with the
    best scores.

    Args:
        heads, head: number and size of the query heads of the small attention, which
            has only one key head.
        chosen: the maximum number of keys that the large attention reads.

    Source:
        DeepSeek-V3.2 (arXiv:2512.02556), section 2.
    """

    heads: int
    head: int
    chosen: int

    def __post_init__(self) -> None:
        kept(self, positive_int, *vars(self))


@dataclass(frozen=True, repr=False)
class Model:
    """A decoder-only Transformer.

    Args:
        name: the name of the model.
        layers, d_model, d_ff: L, D and F. If there are experts, F is the width of one.
        heads, kv_heads, head: N, K and H. With `latent`, K = N and H = nope + rope.
        vocab: the number of tokens in its vocabulary.
        gated: whether the MLP has a gate and an up-projection (SwiGLU, GeGLU).
        tied: whether the head is the transposed embedding.
        parallel: whether attention and MLP read the same normed input.
        biases: whether every projection of a layer adds a bias.
        qkv_biases: whether only the projections to queries, keys and values add a bias.
        norm_scales: whether the norms have a scale.
        norm_biases: whether the norms have a shift and a scale (LayerNorm).
        norms: norms of width D in a layer: 2 if they are before attention and MLP, 4 if
            there are also two after them.
        norm_after: whether 2 norms come after attention and MLP instead of before.
        qk_norm: "head" for norms of each query and key head, "width" for norms over all
            heads at once, "" for none.
        embedding_norm: whether a norm follows the embedding.
        relative: whether each layer has a matrix [D, N, H] that is multiplied by
            relative positions (Transformer-XL). The product is the same for all
            sequences of a batch, so its FLOPs are not counted per token. The FLOPs of
            multiplying it with the queries are not counted either.
        sinks: whether each head has a learned score that takes part in its softmax.
        output_gate: whether a gate, as wide as the queries, scales the result of
            attention.
        positions: the number of learned positions; 0 if positions are computed.
        window: keys that a query can see in a local layer; 0 if all layers are global.
        global_every: every `global_every`-th layer is global; the others are local.
        predictors: modules that each predict one further token (multi-token
            prediction); only `predictor_params` counts them.
        experts, latent: sizes of MoE and of MLA.
        recurrent: sizes of layers that keep a state instead of keys and values.
        indexer: sizes of a sparse attention that chooses its keys; only with `latent`.
        source: where the shape was read.
        published: counts that others have published, by name; see ``models.toml``.

    Raises:
        ValueError: sizes are not whole numbers, or they contradict each other.

    >>> tiny = Model("tiny", 2, 64, 256, 4, 2, 16, 1000)
    >>> tiny
    tiny: 251 thousand params; L 2, D 64, F 256, N 4, K 2, H 16, vocab 1,000.
    >>> tiny.layer[0]
    x[B, S, D] · q[D, N, H] -> Q[B, S, N, H]
    """

    name: str
    layers: int
    d_model: int
    d_ff: int
    heads: int
    kv_heads: int
    head: int
    vocab: int
    _: KW_ONLY
    gated: bool = True
    tied: bool = False
    parallel: bool = False
    biases: bool = False
    qkv_biases: bool = False
    norm_scales: bool = True
    norm_biases: bool = False
    norms: int = 2
    norm_after: bool = False
    qk_norm: str = ""
    embedding_norm: bool = False
    relative: bool = False
    sinks: bool = False
    output_gate: bool = False
    positions: int = 0
    window: int = 0
    global_every: int = 0
    predictors: int = 0
    experts: Experts | None = None
    latent: Latent | None = None
    recurrent: Recurrent | None = None
    indexer: Indexer | None = None
    source: Source | None = field(default=None, compare=False)
    published: Mapping[str, Fact] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        text("name", self.name)
        kept(self, positive_int, *SIZES)
        if self.layers > MOST_LAYERS:
            raise ValueError(
                f"layers = {short_repr(self.layers)}: must be at most {MOST_LAYERS:,}"
            )
        kept(self, non_negative_int, *COUNTS)
        kept(self, flags, *FLAGS)
        for name, kind in PARTS.items():
            if not isinstance(part := getattr(self, name), kind | None):
                raise ValueError(
                    f"{name} = {short_repr(part)}: must be {kind.__name__}(…) or None"
                )
        if self.heads % self.kv_heads:
            raise ValueError(
                f"kv_heads = {self.kv_heads}: must divide the {self.heads} query heads"
            )
        if self.recurrent and self.recurrent.every > self.layers:
            raise ValueError(
                f"every = {self.recurrent.every}: must be at most the {self.layers} "
                "layers, so that one has attention"
            )
        if self.recurrent and self.window:
            raise ValueError(
                f"window = {self.window}: must be 0 if layers are recurrent"
            )
        if self.indexer and not self.latent:
            raise ValueError("indexer = Indexer(…): must come with latent=Latent(…)")
        if not isinstance(self.qk_norm, str) or self.qk_norm not in QK_NORMS:
            raise ValueError(
                f"qk_norm = {short_repr(self.qk_norm)}: must be one of {QK_NORMS}"
            )
        if self.global_every and not self.window:
            raise ValueError(
                f"global_every = {self.global_every}: must come with a window"
            )
        if self.experts and self.experts.dense_layers >= self.layers:
            raise ValueError(
                f"dense_layers = {self.experts.dense_layers}: must be less than the "
                f"{self.layers} layers"
            )
        if self.norm_biases and not self.norm_scales:
            raise ValueError(
                "norm_biases = True, norm_scales = False: a norm with a shift must "
                "have a scale"
            )
        latent = self.latent
        if latent and (self.kv_heads, self.head) != (
            self.heads,
            latent.nope + latent.rope,
        ):
            raise ValueError(
                f"kv_heads = {self.kv_heads}, head = {self.head}: with a latent they "
                f"must be {self.heads} (heads) and {latent.nope + latent.rope} "
                "(nope + rope)"
            )

    @property
    def L(self) -> int:
        """Layers."""
        return self.layers

    @property
    def D(self) -> int:
        """Width of the model."""
        return self.d_model

    @property
    def F(self) -> int:
        """Width of an MLP, or of one expert if there are experts."""
        return self.d_ff

    @property
    def N(self) -> int:
        """Query heads."""
        return self.heads

    @property
    def K(self) -> int:
        """Key and value heads."""
        return self.kv_heads

    @property
    def H(self) -> int:
        """Size of a query and key head."""
        return self.head

    @property
    def dims(self) -> dict[str, int]:
        """The sizes that do not depend on the batch, by their names in the lines.

        >>> Model("tiny", 2, 64, 256, 4, 2, 16, 1000).dims["F"]
        256
        """
        sizes = {
            "D": self.d_model,
            "F": self.d_ff,
            "N": self.heads,
            "K": self.kv_heads,
            "G": self.heads // self.kv_heads,
            "H": self.head,
            "V": self.vocab,
        }
        if self.experts:
            sizes["E"] = self.experts.count
            sizes["Fshared"] = self.experts.shared * self.d_ff
            sizes["Fdense"] = self.experts.dense_d_ff
        if self.latent:
            sizes |= {
                "qrank": self.latent.q_rank,
                "kvrank": self.latent.kv_rank,
                "nope": self.latent.nope,
                "rope": self.latent.rope,
                "value": self.latent.value,
            }
        if self.recurrent:
            sizes |= {
                "Nkey": self.recurrent.key_heads,
                "Hkey": self.recurrent.key,
                "Nvalue": self.recurrent.value_heads,
                "Hvalue": self.recurrent.value,
            }
        if self.indexer:
            sizes |= {"Nindex": self.indexer.heads, "Hindex": self.indexer.head}
        return {dim: size for dim, size in sizes.items() if size}

    def sizes(self, seqs: int, seq: int) -> dict[str, int]:
        """The size of every dimension in the lines, for `seqs` · `seq` tokens.

        Args:
            seqs: sequences, B.
            seq: tokens of each, S, which is also the number of keys, T.

        Returns:
            Sizes by name, as `sharding.contract` takes them. If there are experts,
            "slots" is the number of tokens of each when all have equally many, rounded
            up.

        Raises:
            ValueError: an argument is not a whole number from 1.

        >>> sizes = Model("tiny", 2, 64, 256, 4, 2, 16, 1000).sizes(8, 512)
        >>> sizes["B"], sizes["S"], sizes["D"], sizes["V"]
        (8, 512, 64, 1000)
        """
        B, S = positive_int(seqs=seqs, seq=seq)
        sizes = {"B": B, "S": S, "T": S, **self.dims}
        if self.experts:
            picks = B * S * self.experts.per_token
            sizes["slots"] = -(-picks // self.experts.count)  # rounded up
        return sizes

    @property
    def layer(self) -> tuple[Matmul, ...]:
        """The matmuls of a layer that have weights, in order.

        x and z are the normed residual streams that attention and the MLP read, A is
        the result of attention, and h is the activated hidden layer. t are the tokens
        sent to experts; the results of the experts return the same way.
        """
        return (*self._projections, *self._inner)

    @cached_property
    def stack(self) -> tuple[tuple[int, tuple[Matmul, ...]], ...]:
        """The number of layers of each kind, and the matmuls of one such layer.

        Layers without experts come first, wherever they are in the model. Of the layers
        with experts, and of those without, the ones with attention come first.

        >>> sparse = Experts(4, 1, dense_layers=1, dense_d_ff=16)
        >>> tiny = Model("tiny", 7, 8, 16, 2, 1, 4, 100, experts=sparse)
        >>> [count for count, _ in tiny.stack]
        [1, 6]
        """
        found: dict[tuple[Matmul, ...], int] = {}
        for routed in (False, True):
            inner = self._inner if routed else self._dense_inner
            with_experts = [n for n in self._numbers if self._routed(n) == routed]
            kept = sum(not self._recurs(n) for n in with_experts)
            for lines, count in (
                ((*self._projections, *inner), kept),
                ((*self._recurrence, *inner), len(with_experts) - kept),
            ):
                if count:
                    found[lines] = found.get(lines, 0) + count
        return tuple((count, lines) for lines, count in found.items())

    @property
    def _numbers(self) -> range:
        return range(1, self.layers + 1)

    def _routed(self, number: int) -> bool:
        """Whether the layer of that number, from 1, has experts."""
        behind = number - self.experts.dense_layers if self.experts else 0
        return behind > 0 and behind % self.experts.every == 0

    def _recurs(self, number: int) -> bool:
        """Whether the layer of that number, from 1, keeps a state."""
        return bool(self.recurrent) and number % self.recurrent.every != 0

    @property
    def norms_behind(self) -> bool:
        """Whether norms follow attention and MLP, and so read the results of these."""
        return self.norms == 4 or self.norm_after

    @property
    def global_layers(self) -> int:
        """Layers whose queries can see all earlier keys."""
        if not self.window:
            return self.attention_layers
        return self.layers // self.global_every if self.global_every else 0

    @property
    def trains(self) -> bool:
        """Whether a training step can be derived for the layers of this model."""
        return self.recurrent is None and self.indexer is None

    @property
    def local_layers(self) -> int:
        """Layers whose queries can see only the keys of a window."""
        return self.attention_layers - self.global_layers

    @property
    def attention_layers(self) -> int:
        """Layers with attention: all, or every `recurrent.every`-th."""
        return self.layers // (self.recurrent.every if self.recurrent else 1)

    @property
    def recurrent_layers(self) -> int:
        """Layers that keep a state instead of keys and values."""
        return self.layers - self.attention_layers

    @property
    def attention(self) -> tuple[Matmul, Matmul]:
        """The two products without weights: scores, and weighted sums of values.

        G query heads share a KV head. All keys are counted for every query.
        """
        values = "value" if self.latent else "H"
        return (
            matmul("Q[B, S, K, G, H] · K[B, T, K, H] -> P[B, K, G, S, T]"),
            matmul(
                f"P[B, K, G, S, T] · V[B, T, K, {values}] -> A[B, S, K, G, {values}]"
            ),
        )

    @property
    def head_line(self) -> Matmul:
        """The last matmul, from the normed stream to a score for every token of the
        vocabulary; if `tied`, its weight is the embedding."""
        table = "embed[V, D]" if self.tied else "unembed[D, V]"
        return matmul(f"x[B, S, D] · {table} -> logits[B, S, V]")

    @property
    def _projections(self) -> tuple[Matmul, ...]:
        lines = (
            "x[B, S, D] · q[D, N, H] -> Q[B, S, N, H]",
            "x[B, S, D] · k[D, K, H] -> K[B, S, K, H]",
            "x[B, S, D] · v[D, K, H] -> V[B, S, K, H]",
            *(("x[B, S, D] · outgate[D, N, H] -> Z[B, S, N, H]",) * self.output_gate),
            "A[B, S, N, H] · o[N, H, D] -> y[B, S, D]",
        )
        if self.latent:
            lines = (
                "x[B, S, D] · qdown[D, qrank] -> cq[B, S, qrank]",
                "cq[B, S, qrank] · qup[qrank, N, H] -> Q[B, S, N, H]",
                "x[B, S, D] · kvdown[D, kvrank] -> ckv[B, S, kvrank]",
                "x[B, S, D] · krope[D, rope] -> R[B, S, rope]",
                "ckv[B, S, kvrank] · kup[kvrank, N, nope] -> K[B, S, N, nope]",
                "ckv[B, S, kvrank] · vup[kvrank, N, value] -> V[B, S, N, value]",
                *(INDEX_LINES if self.indexer else ()),
                "A[B, S, N, value] · o[N, value, D] -> y[B, S, D]",
            )
        return tuple(map(matmul, lines))

    @property
    def _recurrence(self) -> tuple[Matmul, ...]:
        """The matmuls of a layer that keeps a state, before its MLP or experts."""
        return tuple(map(matmul, RECURRENT_LINES)) if self.recurrent else ()

    @property
    def _inner(self) -> tuple[Matmul, ...]:
        """The MLP of every layer, or of a layer with experts if there are some."""
        if not self.experts:
            return self._mlp()
        return (
            matmul(f"{self._z}[B, S, D] · router[D, E] -> r[B, S, E]"),
            *self._experts,
            *(self._mlp("shared") if self.experts.shared else ()),
        )

    @property
    def _dense_inner(self) -> tuple[Matmul, ...]:
        """The same for a layer without experts, if there are some."""
        sometimes = self.experts and self.experts.dense_d_ff
        return self._mlp("dense") if sometimes else self._inner

    @property
    def _z(self) -> str:
        """The input of the MLP: the stream after attention, or that of attention."""
        return "x" if self.parallel else "z"

    def _mlp(self, kind: str = "") -> tuple[Matmul, ...]:
        """An MLP for every token; `kind` is "", "shared" or "dense"."""
        z, F, weight, s = self._z, f"F{kind}", "", ""
        if kind == "shared":
            weight, s = kind, kind[0]
        lines = [
            f"{z}[B, S, D] · {weight}gate[D, {F}] -> g{s}[B, S, {F}]",
            f"{z}[B, S, D] · {weight}up[D, {F}] -> u{s}[B, S, {F}]",
            f"h{s}[B, S, {F}] · {weight}down[{F}, D] -> m{s}[B, S, D]",
        ]
        return tuple(map(matmul, lines if self.gated else lines[1:]))

    @property
    def _experts(self) -> tuple[Matmul, ...]:
        lines = [
            "t[E, slots, D] · gate[E, D, F] -> g[E, slots, F]",
            "t[E, slots, D] · up[E, D, F] -> u[E, slots, F]",
            "h[E, slots, F] · down[E, F, D] -> m[E, slots, D]",
        ]
        gated = self.gated and not self.experts.ungated
        return tuple(map(matmul, lines if gated else lines[1:]))

    @cached_property
    def params(self) -> int:
        """All parameters: 2 · vocab · D (half if tied), the layers, the last norm."""
        layers = sum(count * self._layer_params(lines) for count, lines in self.stack)
        norms = 2 if self.embedding_norm else 1
        return self.embedding_params + norms * self._norm(self.d_model) + layers

    @property
    def predictor_params(self) -> int:
        """Parameters of one module that predicts a further token, without embedding and
        head, which it shares with the model.

            a layer + 2D · D of a projection + 3 norms

        The projection combines the stream with the embedding of the next token. A norm
        precedes each of these two inputs, and another norm precedes the head.

        Source:
            DeepSeek-V3 (arXiv:2412.19437), section 2.2, as quoted.

        >>> tiny = Model("tiny", 2, 64, 256, 4, 2, 16, 1000)
        >>> tiny.predictor_params - tiny.layer_params  # 2 · 64 · 64 + 3 · 64
        8384
        """
        D = self.d_model
        return self.layer_params + 2 * D * D + 3 * self._norm(D)

    @property
    def embedding_params(self) -> int:
        """Parameters of embedding, learned positions, and head (unless it is tied)."""
        tables = 1 if self.tied else 2
        return (tables * self.vocab + self.positions) * self.d_model

    def active(self, convention: str) -> int:
        """Parameters that a token uses, by one of the usual conventions.

        All conventions leave out the experts to which a token is not sent.

        Args:
            convention: "all" counts everything else; "without input embedding" leaves
                out learned positions, and the embedding unless it is also the head;
                "without embeddings" also leaves out the head.

        Raises:
            ValueError: another convention.

        >>> sparse = Model("sparse", 2, 8, 16, 2, 1, 4, 100, experts=Experts(4, 1))
        >>> sparse.params, [sparse.active(convention) for convention in ACTIVE]
        (5160, [2856, 2056, 1256])
        """
        if not isinstance(convention, str) or convention not in ACTIVE:
            raise ValueError(
                f"convention {short_repr(convention)}: must be one of {ACTIVE}"
            )
        idle = sum(
            count * (self._with_bias(line) - self._met(line, self._with_bias(line)))
            for count, lines in self.stack
            for line in lines
        )
        looked_up = self.positions + (0 if self.tied else self.vocab)
        left_out = {
            "all": 0,
            "without input embedding": looked_up * self.d_model,
            "without embeddings": self.embedding_params,
        }
        return self.params - idle - left_out[convention]

    @property
    def layer_params(self) -> int:
        """Parameters of a layer; if only some layers have experts, of one that has."""
        return self._layer_params(self.layer)

    @cached_property
    def matmul_params(self) -> int:
        """Parameters of all weights that a matmul reads, including the head."""
        return sum(
            count * line.weight.count(self.dims) for count, line in self._weighted
        )

    @property
    def active_matmul_params(self) -> int:
        """How many weights one token is multiplied by, counting k experts per layer."""
        return sum(count * self.met(line) for count, line in self._weighted)

    def met(self, line: Matmul) -> int:
        """How many weights of a line a token is multiplied by: of experts, only k/E."""
        return self._met(line, line.weight.count(self.dims))

    @property
    def _weighted(self) -> tuple[tuple[int, Matmul], ...]:
        """How often the model has each matmul with a weight, and the matmul."""
        inner = ((count, line) for count, lines in self.stack for line in lines)
        return (*inner, (1, self.head_line))

    def _met(self, line: Matmul, params: int) -> int:
        """The parameters of a line that one token uses: of experts, k of E."""
        if "slots" not in line.reads.dims:
            return params
        return params * self.experts.per_token // self.experts.count

    def _layer_params(self, lines: tuple[Matmul, ...]) -> int:
        names = {line.weight.name for line in lines}
        found = sum(map(self._with_bias, lines)) + self.norms * self._norm(self.d_model)
        if "router" in names and self.experts.shared_gate:
            found += self.d_model
        if "decay" not in names:
            return found + self._of_attention
        sizes = self.recurrent
        of_heads = 2 * sizes.value_heads + self._norm(sizes.value)
        return found + sizes.taps * sizes.channels + of_heads

    def _with_bias(self, line: Matmul) -> int:
        """Parameters of a line: the weight and the bias."""
        added = Array("", line.bias).count(self.dims) if self._has_bias(line) else 0
        return line.weight.count(self.dims) + added

    def _has_bias(self, line: Matmul) -> bool:
        name = line.weight.name
        if name == "router":
            return self.experts.router_bias
        return self.biases or (self.qkv_biases and name in ("q", "k", "v"))

    @property
    def _of_attention(self) -> int:
        """Parameters of the norms of attention, of sinks and of relative positions."""
        count = self.heads * self.sinks
        if self.latent:
            count += self._norm(self.latent.q_rank) + self._norm(self.latent.kv_rank)
        if self.indexer:
            count += 2 * self.indexer.head  # of the keys: a scale and a shift
        if self.qk_norm == "head":
            count += 2 * self._norm(self.head)
        if self.qk_norm == "width":
            count += self._norm((self.heads + self.kv_heads) * self.head)
        return count + self.d_model * self.heads * self.head * self.relative

    def _norm(self, width: int) -> int:
        return (self.norm_scales + self.norm_biases) * width

    def __repr__(self) -> str:
        sizes = (
            f"L {self.L}, D {self.D}, F {self.F}, N {self.N}, K {self.K}, H {self.H}"
        )
        if self.experts:
            sizes += f", E {self.experts.count}, k {self.experts.per_token}"
        return (
            f"{self.name}: {_said(self.params)} params; {sizes}, vocab {self.vocab:,}."
        )


def _said(params: int) -> str:
    """A count in words, to three digits, since "8B" could be read as 8 · B tokens."""
    words = "", " thousand", " million", " billion", " trillion"
    digits, _, power = f"{params:.2e}".partition("e")
    step = min(int(power) // 3, len(words) - 1)
    return f"{float(digits) * 10 ** (int(power) - 3 * step):.3g}{words[step]}"


def checked(model: object) -> Model:
    """`model`, if it is a Model; raises a ValueError otherwise."""
    if not isinstance(model, Model):
        raise ValueError(
            f"model = {short_repr(model)}: must be a Model, such as model('llama 3 8b')"
        )
    return model


PARTS = {  # of some models
    "experts": Experts,
    "latent": Latent,
    "recurrent": Recurrent,
    "indexer": Indexer,
}
