"""Questions of chapter 07, "Transformers in numbers"."""

import math
from collections.abc import Callable
from dataclasses import replace

from shardmath.collectives import Collective
from shardmath.exercises.kinds import (
    Chapter,
    Compiled,
    Function,
    Number,
    Sharded,
    Slip,
    scaled,
    slips,
    stated,
)
from shardmath.hardware import chips
from shardmath.transformer import (
    TRAINING,
    Experts,
    Latent,
    Model,
    conventions,
    flops,
    kv_cache,
    mfu,
    tokens_per_second,
)

CHAPTER = Chapter(
    title="Transformers in numbers",
    topics=(
        "Transformers in numbers: parameters, FLOPs of a token, windows, experts, "
        "training memory, remat, KV caches, MFU and HFU, and four programs graded on "
        "what they compile to"
    ),
    intro="""
        from seven sizes of a model to the days that its training takes. Answers are in
        base units: params, FLOPs, bytes, seconds, tokens.

        07.15 to 07.18 are programs, graded on their result and on what XLA compiles
        them to; two of them run on eight virtual devices.
    """,
    setup="""
        import jax
        import jax.numpy as jnp

        from shardmath.exercises import check, report
        from shardmath.hardware import chips

        jax.config.update("jax_num_cpu_devices", 8)  # eight virtual chips
    """,
)

DENSE = Model("ours", 48, 6144, 16_384, 48, 8, 128, 64_000)
SIZES = (
    "$L = 48$, $D = 6144$, $F = 16{,}384$, $N = 48$, $K = 8$, $H = 128$, a vocabulary "
    "of 64,000, a gated MLP, and separate embedding and head"
)

PARAMS = Number(
    id="07.1",
    title="From seven sizes",
    task=f"""
        **Given** a dense model with {SIZES}.

        **Wanted** its parameters. Norms may be left out.
    """,
    stub="params = ...",
    unit="params",
    rtol=0.001,  # with or without norms
    expected=lambda: DENSE.params,
    slips=(
        Slip(
            "no gate",
            lambda right: replace(DENSE, gated=False).params,
            "A gated MLP has three matrices.",
        ),
        Slip(
            "as many KV heads as query heads",
            lambda right: replace(DENSE, kv_heads=48).params,
            "Keys and values have K heads, not N.",
        ),
        Slip(
            "keys alone",
            lambda right: right - DENSE.L * DENSE.D * DENSE.K * DENSE.H,
            "Keys and values have a matrix each.",
        ),
        Slip(
            "one table",
            lambda right: replace(DENSE, tied=True).params,
            "Embedding and head are two tables here.",
        ),
        Slip(
            "no vocabulary",
            lambda right: right - DENSE.embedding_params,
            "The layers are not all: tokens have to come in and go out.",
        ),
        scaled("one layer", 1 / 48, "The layer is there L times."),
    ),
    hint="q and o have D·N·H values, k and v D·K·H, each of three matrices D·F. Then "
    "the layers, and two tables.",
    solution="""
        ```python
        L, D, F, N, K, H, vocab = 48, 6144, 16_384, 48, 8, 128, 64_000
        params = L * (2 * D * N * H + 2 * D * K * H + 3 * D * F) + 2 * D * vocab
        ```
    """,
)


def _token(attention: str = "causal", seq: int = 4096) -> float:
    return flops(DENSE, seq, attention).training


TOKEN = Number(
    id="07.2",
    title="What a token costs in training",
    task=f"""
        **Given** the same model: {SIZES}. Sequences of 4,096 tokens, causal attention,
        of which a query sees $(S + 1)/2$ keys in the mean.

        **Wanted** the FLOPs of one token in training, matmuls alone.
    """,
    stub="flops = ...",
    unit="FLOPs",
    rtol=0.005,
    expected=_token,
    slips=(
        slips.forward_only(),
        slips.multiply_add(),
        Slip(
            "full attention",
            lambda right: _token("full"),
            "A query does not see what comes after it.",
        ),
        Slip(
            "no attention",
            lambda right: right - 3 * flops(DENSE, 4096, "causal").attention,
            "Q · K and P · V have no weights, but FLOPs.",
        ),
        Slip(
            "the embedding multiplied",
            lambda right: right + 6 * DENSE.vocab * DENSE.D,
            "The embedding is looked up. Only the head is a matmul.",
        ),
        Slip(
            "no head",
            lambda right: right - 3 * flops(DENSE, 4096, "causal").head,
            "The scores of the vocabulary are a matmul, too.",
        ),
        Slip(
            "6 · params",
            lambda right: conventions(DENSE, 4096)["6 · params"],
            "That leaves out attention, and counts the embedding, which is only looked "
            "up.",
        ),
    ),
    hint="Six FLOPs for each weight that multiplies; twelve for each layer, head, head "
    "value and key.",
    solution="""
        ```python
        L, D, F, N, K, H, vocab = 48, 6144, 16_384, 48, 8, 128, 64_000
        weights = L * (2 * D * N * H + 2 * D * K * H + 3 * D * F) + D * vocab
        flops = 6 * weights + 12 * L * N * H * (4096 + 1) / 2
        ```
    """,
)

NARROW = Model("narrow", 24, 2048, 5632, 16, 4, 128, 32_000)


def _balance() -> float:
    one = flops(NARROW, 1, "full")
    return 2 * one.weights / one.attention


BALANCE = Number(
    id="07.3",
    title="When attention takes over",
    task="""
        **Given** layers with $D = 2048$, $F = 5632$ and a gate, $N = 16$, $K = 4$,
        $H = 128$. Count $S/2$ keys for causal attention.

        **Wanted** the length $S$ at which the attention of a layer takes as many FLOPs
        as its weights.
    """,
    stub="tokens = ...",
    unit="tokens",
    expected=_balance,
    slips=(
        scaled(
            "full attention",
            1 / 2,
            "So many keys it takes. A query sees half of the sequence.",
        ),
        Slip(
            "the rule of 8D",
            lambda right: 8 * 2048,
            "8D is for full attention, F = 4D and as many KV heads as query heads.",
        ),
        Slip(
            "twice the rule of 8D",
            lambda right: 16 * 2048,
            "The rule is for F = 4D and as many KV heads as query heads.",
        ),
        Slip(
            "the MLP alone",
            lambda right: 2 * 3 * 2048 * 5632 / (2 * 16 * 128),
            "q, k, v and o are weights, too.",
        ),
        Slip(
            "K as large as N",
            lambda right: 2 * (4 * 2048**2 + 3 * 2048 * 5632) / (2 * 16 * 128),
            "Keys and values have four heads here.",
        ),
    ),
    hint="Two FLOPs for each weight on one side, 4·N·H for each key on the other.",
    solution="""
        ```python
        D, F, N, K, H = 2048, 5632, 16, 4, 128
        weights = 2 * D * N * H + 2 * D * K * H + 3 * D * F
        tokens = 2 * (2 * weights) / (4 * N * H)
        ```
    """,
)


def _keys(S: int, window: int) -> float:
    seen = [min(query + 1, window) for query in range(S)]
    return sum(seen) / S


KEYS = Function(
    id="07.4",
    title="Keys in a window",
    task="""
        **Given** a sequence of `S` tokens and causal attention in which a query sees
        itself and the tokens before it, at most `window` keys. `window` is at most `S`.

        **Wanted** a function that returns the mean number of keys that a query sees.
    """,
    stub="def keys(S, window): ...",
    spec=_keys,
    gives=(("keys", ""),),
    cases=lambda rng: (lambda S: (S, rng.randint(1, S)))(rng.randint(1, 400)),
    examples=((8, 8), (8, 4), (1, 1)),
    slips=(
        Slip(
            "half of the window",
            lambda S, window: window / 2,
            "Behind the first queries every window is full.",
        ),
        Slip(
            "the whole window",
            lambda S, window: window,
            "The first queries see fewer: there is nothing before them yet.",
        ),
        Slip(
            "without itself",
            lambda S, window: window - window * (window + 1) / (2 * S),
            "A query sees its own token, too.",
        ),
        Slip(
            "half a key less",
            lambda S, window: window - window**2 / (2 * S),
            "Near, and what many use. Add up the keys of a window of 1.",
        ),
    ),
    hint="The queries from `window` on see `window` keys. How many do the first lack, "
    "together?",
    solution="""
        The first `window` queries lack `window - 1`, …, 1, 0 keys.

        ```python
        def keys(S, window):
            return window - window * (window - 1) / (2 * S)
        ```
    """,
)

LOCAL = Model("local", 60, 5120, 20_480, 40, 8, 128, 1, window=8192, global_every=6)


def _windowed() -> float:
    counted = [
        flops(m, 32_768, "half").attention
        for m in (LOCAL, replace(LOCAL, window=0, global_every=0))
    ]
    return counted[0] / counted[1]


WINDOWS = Number(
    id="07.5",
    title="Five of six layers see less",
    task="""
        **Given** a model of 60 layers, of which every sixth is global and the others
        have a window of 8,192 keys. It is trained on sequences of 32,768 tokens with
        causal attention.

        **Wanted** the FLOPs of its attention, over those that it would have if all
        layers were global. Half a key more or less does not count.
    """,
    stub="share = ...",
    unit="",
    expected=_windowed,
    slips=(
        Slip(
            "half of each window",
            lambda right: (1 + 5 * 8192 / 32_768) / 6,
            "Most queries fill their window. Only a window that holds the whole "
            "sequence is halved.",
        ),
        Slip(
            "every window full",
            lambda right: (16_384 + 5 * 8192) / (6 * 16_384),
            "The first queries of a sequence see fewer keys than the window holds.",
        ),
        Slip(
            "local layers free",
            lambda right: 1 / 6,
            "They see fewer keys, but not none.",
        ),
        Slip(
            "one layer of five",
            lambda right: (16_384 + 4 * 7168) / (5 * 16_384),
            "Every sixth layer is global: five local ones stand beside it.",
        ),
    ),
    hint="Keys of a query in the mean, in each kind of layer; then one of the first "
    "and five of the second.",
    solution="""
        ```python
        S, window = 32_768, 8192
        local = window - window**2 / (2 * S)
        share = (1 * S / 2 + 5 * local) / (6 * S / 2)
        ```
    """,
)

SPARSE = Model("sparse", 40, 4096, 1536, 32, 8, 128, 100_000, experts=Experts(64, 4, 1))
_EXPERT = 3 * 4096 * 1536

ACTIVE = Number(
    id="07.6",
    title="Active parameters",
    task="""
        **Given** a model of 40 layers with experts: $D = 4096$, $N = 32$, $K = 8$, $H =
        128$; in each layer 64 routed experts and one shared, each a gated MLP of $F =
        1536$; a token goes to 4 of the routed ones. The vocabulary is 100,000, and
        embedding and head are separate.

        **Wanted** its active parameters without the input embedding. Norms may be left
        out.
    """,
    stub="params = ...",
    unit="params",
    rtol=0.0008,
    expected=lambda: SPARSE.active("without input embedding"),
    slips=(
        Slip(
            "all experts",
            lambda right: SPARSE.params - 4096 * 100_000,
            "A token meets four of the 64.",
        ),
        Slip(
            "no shared expert",
            lambda right: right - 40 * _EXPERT,
            "The shared expert is met by every token.",
        ),
        Slip(
            "both tables",
            lambda right: SPARSE.active("all"),
            "The input embedding is to be left out.",
        ),
        Slip(
            "no table",
            lambda right: SPARSE.active("without embeddings"),
            "The head stays: every token is multiplied with it.",
        ),
        Slip(
            "one routed expert",
            lambda right: right - 40 * 3 * _EXPERT,
            "A token goes to four of them.",
        ),
        Slip(
            "no router",
            lambda right: right - 40 * 64 * 4096,
            "Every token is multiplied with the router, which has a column for each of "
            "the 64 experts.",
        ),
    ),
    hint="A token meets attention, the router, five experts, and the head.",
    solution="""
        ```python
        L, D, F, N, K, H = 40, 4096, 1536, 32, 8, 128
        attention = 2 * D * N * H + 2 * D * K * H
        experts = (4 + 1) * 3 * D * F
        params = L * (attention + experts + D * 64) + D * 100_000
        ```
    """,
)


def _chips(params: float, nbytes: float, each: float = 80 * 2**30) -> int:
    return math.ceil(params * nbytes / each)


STATE = Number(
    id="07.7",
    title="Where the state fits",
    task="""
        **Given** a model of $53 \\times 10^9$ parameters, trained with Adam: weights
        and two moments in fp32, a copy of the weights and gradients in bf16. An H100
        holds 80 GiB.

        **Wanted** the fewest H100s that hold this, each byte once, and nothing else.
    """,
    stub="gpus = ...",
    unit="GPUs",
    rtol=0,
    expected=lambda: _chips(53e9, TRAINING["mixed"].total),
    slips=(
        Slip(
            "not rounded",
            lambda right: 53e9 * 16 / (80 * 2**30),
            "There is no part of a GPU: round up.",
        ),
        Slip("GB for GiB", lambda right: _chips(53e9, 16, 80e9), "80 GiB are 85.9 GB."),
        Slip(
            "the state alone",
            lambda right: _chips(53e9, 12),
            "The copy in bf16 and the gradients need a place, too.",
        ),
        Slip(
            "gradients in fp32",
            lambda right: _chips(53e9, 18),
            "Gradients have two bytes here.",
        ),
        Slip(
            "parameters for bytes",
            lambda right: _chips(53e9, 1),
            "How many bytes does training hold for each parameter?",
        ),
        Slip(
            "weights alone",
            lambda right: _chips(53e9, 2),
            "That serves the model. Training holds eight times as much.",
        ),
        Slip(
            "rounded down",
            lambda right: right - 1,
            "So many are not enough: there is no part of a GPU.",
        ),
    ),
    hint="Each parameter takes 4 + 4 + 4 + 2 + 2 bytes.",
    solution="""
        ```python
        import math

        gpus = math.ceil(16 * 53e9 / (80 * 2**30))
        ```
    """,
)


def _kept(B: int, S: int, D: int, F: int, N: int, K: int, H: int) -> float:
    stream, Q, y = B * S * D, B * S * N * H, B * S * D
    keys, values = B * S * K * H, B * S * K * H
    gate, up = B * S * F, B * S * F
    return 2 * (stream + Q + keys + values + y + gate + up)


KEPT = Function(
    id="07.8",
    title="What `dots` keeps",
    task="""
        **Given** a layer with a gated MLP, for `B` sequences of `S` tokens, in bf16.
        Remat `dots` keeps its input and the results of its matmuls with weights, but
        for the last, which is only added to the stream.

        **Wanted** a function that returns the bytes that are kept of the layer.
    """,
    stub="def kept(B, S, D, F, N, K, H): ...",
    spec=_kept,
    gives=(("kept", "bytes"),),
    cases=lambda rng: (
        lambda K: (
            rng.randint(1, 8),
            128 * rng.randint(1, 16),
            128 * rng.randint(1, 16),
            128 * rng.randint(1, 32),
            K * rng.choice([1, 2, 4]),
            K,
            rng.choice([64, 128]),
        )
    )(rng.choice([2, 4, 8])),
    examples=((1, 2048, 2048, 8192, 16, 16, 128), (1, 8192, 4096, 14_336, 32, 8, 128)),
    slips=(
        Slip(
            "the last one, too",
            lambda B, S, D, F, N, K, H: _kept(B, S, D, F, N, K, H) + 2 * B * S * D,
            "The result of down is only added to the stream: no gradient needs it.",
        ),
        Slip(
            "the input forgotten",
            lambda B, S, D, F, N, K, H: _kept(B, S, D, F, N, K, H) - 2 * B * S * D,
            "One array of B·S·D is missing: what does the recomputation start from, "
            "and what does o give?",
        ),
        Slip(
            "K as large as N",
            lambda B, S, D, F, N, K, H: _kept(B, S, D, F, N, N, H),
            "Keys and values have K heads.",
        ),
        Slip(
            "one byte a value",
            lambda B, S, D, F, N, K, H: _kept(B, S, D, F, N, K, H) / 2,
            "A value in bf16 has two bytes.",
        ),
        Slip(
            "the gate forgotten",
            lambda B, S, D, F, N, K, H: _kept(B, S, D, F, N, K, H) - 2 * B * S * F,
            "A gated MLP has two matmuls that give F values.",
        ),
    ),
    hint="Seven arrays: the input, Q, K, V, what o gives, gate and up.",
    solution="""
        ```python
        def kept(B, S, D, F, N, K, H):
            return 2 * B * S * (2 * D + N * H + 2 * K * H + 2 * F)
        ```
    """,
)


_ONCE = flops(DENSE, 4096, "full")


def _again(attention: str = "full") -> float:
    once, down = flops(DENSE, 4096, attention), DENSE.met(DENSE.layer[-1])
    return 1 + (once.recomputed("full") - 2 * DENSE.L * down) / once.training


AGAIN = Number(
    id="07.9",
    title="The price of full remat",
    task=f"""
        **Given** the model of 07.1: {SIZES}; full attention over 4,096 tokens. Under
        full remat the backward pass does each layer again, but for its last matmul.

        **Wanted** the FLOPs of training with full remat, over those without.
    """,
    stub="factor = ...",
    unit="",
    rtol=0.0005,
    expected=_again,
    slips=(
        Slip(
            "one more forward pass",
            lambda right: 4 / 3,
            "Head and last matmul are not done again.",
        ),
        Slip(
            "the last matmul, too",
            lambda right: (
                1 + flops(DENSE, 4096, "full").recomputed("full") / _token("full")
            ),
            "down gives what is only added to the stream. Who needs it again?",
        ),
        Slip(
            "the head, too",
            lambda right: right + _ONCE.head / _ONCE.training,
            "The layers are done again. The head stands behind them all, and its "
            "result is there when the backward pass starts.",
        ),
        Slip(
            "what is added",
            lambda right: right - 1,
            "That comes on top. Wanted is all of it, over what it was.",
        ),
        Slip(
            "the round number",
            lambda right: 5 / 4,
            "A factor of 5/4 is the chapter's round number. What do this model's sizes "
            "give, to four digits?",
        ),
        Slip(
            "causal attention",
            lambda right: _again("causal"),
            "Full attention is counted here, and a query meets all 4,096 keys.",
        ),
        Slip(
            "over the forward pass",
            lambda right: 1 + 3 * (right - 1),
            "The whole of training is three forward passes.",
        ),
        Slip(
            "no attention",
            lambda right: (
                1
                + (DENSE.L * (DENSE.layer_params - DENSE.met(DENSE.layer[-1])))
                / (3 * DENSE.active_matmul_params)
            ),
            "Attention is done again, too, and has FLOPs.",
        ),
    ),
    hint="Forward FLOPs of the layers, less those of down, over three times all "
    "forward FLOPs.",
    solution="""
        ```python
        L, D, F, N, K, H, vocab = 48, 6144, 16_384, 48, 8, 128, 64_000
        layer = 2 * (2 * D * N * H + 2 * D * K * H + 3 * D * F) + 4 * N * H * 4096
        forward = L * layer + 2 * D * vocab
        factor = 1 + L * (layer - 2 * D * F) / (3 * forward)
        ```
    """,
)

CACHE = Number(
    id="07.10",
    title="The cache of a long text",
    task="""
        **Given** a model with $L = 60$, $N = 64$, $K = 8$, $H = 128$ and its KV cache
        in fp8, for a text of 65,536 tokens.

        **Wanted** the bytes of the cache.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: kv_cache(
        Model("served", 60, 8192, 28_672, 64, 8, 128, 1), 65_536, "fp8"
    ),
    slips=(
        scaled("keys alone, or half", 1 / 2, "Keys are kept, and values as well."),
        scaled("bf16", 2, "A value in fp8 has one byte."),
        scaled("query heads", 8, "Keys and values have K heads."),
        scaled("one layer", 1 / 60, "Every layer has its own."),
        scaled("one token", 1 / 65_536, "That is the cache of one token."),
    ),
    hint="A token has 2·L·K·H values.",
    solution="""
        ```python
        nbytes = 2 * 60 * 8 * 128 * 65_536
        ```
    """,
)

MLA = Model(
    "latent", 60, 5120, 1536, 128, 128, 192, 1, latent=Latent(1536, 512, 128, 64, 128)
)

LATENT = Number(
    id="07.11",
    title="A latent, counted in heads",
    task="""
        **Given** latent attention with 128 heads, a latent of 512 values for keys and
        values, and a rotary key of 64 values that all heads share.

        **Wanted** how many KV heads of $H = 128$ a model with grouped-query attention
        could have for the same cache a token and layer.
    """,
    stub="heads = ...",
    unit="heads",
    expected=lambda: kv_cache(MLA, 1) / MLA.L / 2 / (2 * 128),
    slips=(
        scaled("keys alone", 2, "A KV head has a key and a value."),
        Slip(
            "no rotary key", lambda right: 512 / 256, "The rotary key is cached, too."
        ),
        Slip(
            "a rotary key for each head",
            lambda right: (512 + 128 * 64) / 256,
            "All heads share one.",
        ),
        Slip(
            "heads themselves",
            lambda right: 128,
            "The latent is cached, not what the heads make of it.",
        ),
    ),
    hint="Divide the values of the latent and the rotary key by those of one KV head.",
    solution="""
        ```python
        heads = (512 + 64) / (2 * 128)
        ```
    """,
)

# Several steps.


def _rate() -> float:
    return 512 * 4096 / (9.0 * 128)


def _share(token: float) -> float:
    return mfu(_rate(), token, chips.TPU_V5P.flops["bf16"])


UTILISED = Number(
    id="07.12",
    title="MFU of a step",
    points=2,
    task=f"""
        **Given** the model of 07.1: {SIZES}. 128 TPU v5p take 9.0 s for a step of 512
        sequences of 4,096 tokens. A query sees $(S + 1)/2$ keys in the mean.

        **Wanted** the MFU, with the FLOPs that causal attention needs.
    """,
    given=stated(chips.TPU_V5P, "flops.bf16"),
    stub="mfu = ...",
    unit="",
    rtol=0.005,
    expected=lambda: _share(_token()),
    slips=(
        Slip(
            "full attention",
            lambda right: _share(_token("full")),
            "That credits the run with work on pairs that the mask throws away.",
        ),
        Slip(
            "6 · params",
            lambda right: _share(conventions(DENSE, 4096)["6 · params"]),
            "That leaves out attention, and counts the embedding.",
        ),
        Slip(
            "no head",
            lambda right: _share(_token() - 3 * flops(DENSE, 4096, "causal").head),
            "The scores of the vocabulary are a matmul as well.",
        ),
        Slip(
            "6 · params and attention",
            lambda right: _share(_token() + 6 * DENSE.vocab * DENSE.D),
            "The embedding is looked up and has no FLOPs. Only the head is a matmul.",
        ),
        slips.forward_only(),
        scaled("all chips against one", 128, "The peak is that of one chip."),
        scaled("sequences for tokens", 1 / 4096, "A sequence has 4,096 tokens."),
    ),
    hint="Tokens a second of one chip, times FLOPs of a token, over the peak.",
    solution="""
        ```python
        from shardmath.hardware import chips

        L, D, F, N, K, H, vocab = 48, 6144, 16_384, 48, 8, 128, 64_000
        weights = L * (2 * D * N * H + 2 * D * K * H + 3 * D * F) + D * vocab
        token = 6 * weights + 12 * L * N * H * (4096 + 1) / 2
        rate = 512 * 4096 / 9.0 / 128
        mfu = rate * token / chips.TPU_V5P.flops["bf16"]
        ```
    """,
)

LONG = 16_384
WIDE = replace(DENSE, vocab=256_000)  # so that its head can be told from the rest


def _wide(attention: str) -> float:
    return flops(WIDE, LONG, attention).training


def _causal_over_hardware(heads: int = 1) -> float:
    full = flops(WIDE, LONG, "full")
    again = full.recomputed("full") + (heads - 1) * full.head
    return _wide("causal") / (full.training + again)


RESTATED = Number(
    id="07.13",
    title="An HFU, restated",
    points=2,
    task=f"""
        **Given** a report: 52 % of the peak, for the model of 07.1 with a larger
        vocabulary ({SIZES.replace("64,000", "256,000")}) on sequences of 16,384
        tokens. It counts full attention, and all of the layers forward twice, as full
        remat does them; the head once.

        **Wanted** the MFU with causal attention, $(S + 1)/2$ keys a query.
    """,
    stub="mfu = ...",
    unit="",
    rtol=0.005,
    expected=lambda: 0.52 * _causal_over_hardware(),
    slips=(
        Slip(
            "still full attention, or three quarters",
            lambda right: right * _wide("full") / _wide("causal"),
            "That takes away the recomputation. What the mask hides is still in it.",
        ),
        Slip(
            "still recomputed",
            lambda right: 0.52 * _wide("causal") / _wide("full"),
            "MFU does not count what is done a second time.",
        ),
        Slip(
            "the head twice",
            lambda right: 0.52 * _causal_over_hardware(heads=2),
            "The report counts the layers twice, and the head once.",
        ),
        Slip(
            "the wrong way",
            lambda right: 0.52 / _causal_over_hardware(),
            "The run needs fewer FLOPs than it was credited with.",
        ),
    ),
    hint="The time is the same: multiply by FLOPs that are needed, over FLOPs that "
    "were counted.",
    solution="""
        ```python
        L, D, F, N, K, H, vocab = 48, 6144, 16_384, 48, 8, 128, 256_000
        S = 16_384
        weights = L * (2 * D * N * H + 2 * D * K * H + 3 * D * F)
        head = D * vocab
        counted = 8 * weights + 6 * head + 16 * L * N * H * S
        needed = 6 * (weights + head) + 12 * L * N * H * (S + 1) / 2
        mfu = 0.52 * needed / counted
        ```
    """,
)


def _days(token: float) -> float:
    rate = 2048 * tokens_per_second(0.45, token, chips.TPU_V6E.flops["bf16"])
    return 2e12 / rate / 86_400


DAYS = Number(
    id="07.14",
    title="How many days?",
    points=2,
    task="""
        **Given** the model with experts of 07.6: $L = 40$, $D = 4096$, $N = 32$, $K =
        8$, $H = 128$, 64 routed experts and one shared of $F = 1536$, four routed ones
        per token, a vocabulary of 100,000, separate head and embedding. It is trained
        on $2 \\times 10^{12}$ tokens, in sequences of 8,192 with causal attention, on
        2,048 Trillium, at an MFU of 45 %.

        **Wanted** the days that it takes.
    """,
    given=stated(chips.TPU_V6E, "flops.bf16"),
    stub="days = ...",
    unit="days",
    expected=lambda: _days(flops(SPARSE, 8192, "causal").training),
    slips=(
        Slip(
            "all experts",
            lambda right: _days(6 * SPARSE.params),
            "A token is multiplied with the experts that it goes to.",
        ),
        Slip(
            "no attention",
            lambda right: _days(6 * SPARSE.active_matmul_params),
            "At this length attention is not small.",
        ),
        Slip(
            "full attention",
            lambda right: _days(flops(SPARSE, 8192, "full").training),
            "Attention is causal.",
        ),
        scaled("forward only", 1 / 3, "Training takes three forward passes."),
        scaled("the whole peak", 0.45, "Of the peak, 45 % is reached."),
        scaled("hours", 24, "Those are hours; a day has 24."),
        scaled("seconds", 86_400, "Those are seconds; a day has 86,400."),
        scaled("one chip", 2048, "2,048 chips share the work."),
    ),
    hint="FLOPs of a token by its active weights and its keys; tokens a second from "
    "the MFU; then the tokens.",
    solution="""
        ```python
        from shardmath.hardware import chips

        L, D, F, N, K, H, S = 40, 4096, 1536, 32, 8, 128, 8192
        layer = 2 * D * N * H + 2 * D * K * H + D * 64 + (4 + 1) * 3 * D * F
        weights = L * layer + D * 100_000
        token = 6 * weights + 12 * L * N * H * (S + 1) / 2
        rate = 0.45 * chips.TPU_V6E.flops["bf16"] / token
        days = 2e12 / (2048 * rate) / 86_400
        ```
    """,
)


# Programs. Values are float32: four bytes each.


def _one_head(Q, K, V):
    A = 0 * V
    for at, q in enumerate(Q):  # a query sees itself and what stands before it
        P = math.e ** (K[: at + 1] @ q / len(q) ** 0.5)
        A[at] = P @ V[: at + 1] / P.sum()
    return A


def _attention(Q, K, V, masked: bool = True, scaled: bool = True):
    """Attention of one head, as those write it who forget the mask or the scale."""
    import numpy as np  # not at the top: a page judges numbers without it

    scores = Q @ K.T / (Q.shape[1] ** 0.5 if scaled else 1)
    scores = np.where(np.tri(len(Q), dtype=bool) | (not masked), scores, -np.inf)
    P = np.exp(scores - scores.max(1, keepdims=True))
    return P / P.sum(1, keepdims=True) @ V


def _attention_slips(of_heads: Callable) -> tuple[Slip, ...]:
    """Wrong attention, put together from its heads by `of_heads`."""
    return (
        Slip(
            "no mask",
            of_heads(lambda *head: _attention(*head, masked=False)),
            "Every query sees all keys here, the later ones too.",
        ),
        Slip(
            "no scale",
            of_heads(lambda *head: _attention(*head, scaled=False)),
            "Scores are divided by the root of H before the softmax.",
        ),
    )


def _head_shapes(rng):
    S, H = 64 * rng.randint(1, 3), 16 * rng.randint(2, 4)
    return (S, H), (S, H), (S, H)


def _four_blocks(Q, K, V):
    S, H = Q
    matmuls = 4 * S * S * H * (1 + 2 + 3 + 4) / 16
    return {"flops": matmuls + 10 * S * S}  # room for softmax and scaling


SKIPPED = Compiled(
    id="07.15",
    title="Attention that skips what the mask hides",
    points=2,
    task=r"""
        **Given** queries, keys and values of one head, $Q[S, H]$, $K[S, H]$,
        $V[S, H]$; 64 divides $S$.

        **Wanted** a function that returns $\text{softmax}(Q K^T / \sqrt H)\,V$, where
        no query sees a later key, in at most 5/8 of the FLOPs of both full products,
        and $10\,S^2$ for the rest.
    """,
    stub="def attend(Q, K, V): ...",
    shapes=_head_shapes,
    spec=_one_head,
    at_most=_four_blocks,
    values=_attention_slips(lambda attention: attention),
    hint="Cut the queries into four blocks. What is the last key that a block needs?",
    solution="""
        Block $i$ of four needs the first $i + 1$ quarters of the keys: together
        $(1 + 2 + 3 + 4)/16$ of all pairs.

        ```python
        def attend(Q, K, V):
            S, H = Q.shape
            rows = S // 4
            parts = []
            for start in range(0, S, rows):
                end = start + rows
                scores = Q[start:end] @ K[:end].T / H**0.5
                past = jnp.arange(start, end)[:, None] >= jnp.arange(end)
                P = jax.nn.softmax(jnp.where(past, scores, -jnp.inf))
                parts.append(P @ V[:end])
            return jnp.concatenate(parts)
        ```
    """,
)


def _latent_shapes(rng):
    S, R, H = (8 * rng.randint(4, 12) for _ in range(3))
    return (S, R), (R, H), (H,)


ABSORBED = Compiled(
    id="07.16",
    title="A latent that is never unpacked",
    task="""
        **Given** the cached latents of a text, $c[S, R]$, the weights that make keys
        of them, $W[R, H]$, and one query $q[H]$.

        **Wanted** a function that returns the query's scores against all keys,
        $(c \\, W)\\, q$, in at most $2 S R + 2 R H$ FLOPs.
    """,
    stub="def scores(c, W, q): ...",
    shapes=_latent_shapes,
    spec=lambda c, W, q: c @ W @ q,
    at_most=lambda c, W, q: {"flops": 2 * c[0] * c[1] + 2 * c[1] * q[0]},
    hint="To make all keys takes 2·S·R·H FLOPs. A product of three need not begin on "
    "the left.",
    solution="""
        The weights are absorbed into the query, once, and the latents are read as they
        are. This is how a model with MLA writes text.

        ```python
        def scores(c, W, q):
            return c @ (W @ q)
        ```
    """,
)

RING = {"X": 8}


def _all_heads(Q, K, V, o):
    return sum(_one_head(Q[:, n], K[:, n], V[:, n]) @ o[n] for n in range(len(o)))


def _of_all_heads(attention: Callable) -> Callable:
    def whole(Q, K, V, o):
        heads = range(len(o))
        return sum(attention(Q[:, n], K[:, n], V[:, n]) @ o[n] for n in heads)

    return whole


def _heads_shapes(rng):
    S, N, H, D = 8 * rng.randint(2, 4), 8 * rng.randint(1, 2), 8, 8 * rng.randint(2, 4)
    return (S, N, H), (S, N, H), (S, N, H), (N, H, D)


HEADS = Sharded(
    id="07.17",
    title="Heads on eight devices",
    points=2,
    task=r"""
        **Given** each device's part of $Q[S, N_X, H]$, $K[S, N_X, H]$,
        $V[S, N_X, H]$ and $o[N_X, H, D]$.

        **Wanted** the function that every device runs: causal attention,
        $\text{softmax}(Q K^T / \sqrt H)\,V$ head by head, then the product with $o$.
        It returns its part of $y[S_X, D]$, with exactly one ReduceScatter of $4 S D$
        bytes.
    """,
    stub="def block(Q, K, V, o): ...",
    mesh=RING,
    shapes=_heads_shapes,
    in_specs=((None, "X", None),) * 3 + (("X", None, None),),
    out_spec=("X", None),
    spec=_all_heads,
    collectives=lambda Q, K, V, o: [
        Collective("reduce_scatter", ("X",), 4 * Q[0] * o[2], 8)
    ],
    slips=(
        Slip(
            "sum, then slice",
            lambda Q, K, V, o: [Collective("all_reduce", ("X",), 4 * Q[0] * o[2], 8)],
            "Every device gets the whole sum and throws most of it away.",
        ),
        Slip(
            "what attention gives, gathered",
            lambda Q, K, V, o: [
                Collective("all_gather", ("X",), 4 * math.prod(Q), 8),
                Collective("all_gather", ("X",), 4 * math.prod(o), 8),
            ],
            "Heads are independent, and o is split as they are: which case is it?",
        ),
        Slip(
            "queries, keys and values gathered",
            lambda Q, K, V, o: [
                Collective("all_gather", ("X",), 4 * math.prod(Q), 8, times=3),
                Collective("all_gather", ("X",), 4 * math.prod(o), 8),
            ],
            "No head needs another one. Only the last product sums over heads.",
        ),
    ),
    values=_attention_slips(_of_all_heads),
    hint="Attention needs nothing from elsewhere. The contraction with o is over N and "
    "H, and N is split in both.",
    solution="""
        ```python
        def block(Q, K, V, o):
            S, N, H = Q.shape
            scores = jnp.einsum("snh,tnh->nst", Q, K) / H**0.5
            past = jnp.tril(jnp.ones((S, S), bool))
            P = jax.nn.softmax(jnp.where(past, scores, -jnp.inf))
            A = jnp.einsum("nst,tnh->snh", P, V)
            y = jnp.einsum("snh,nhd->sd", A, o)
            return jax.lax.psum_scatter(y, "X", scatter_dimension=0, tiled=True)
        ```
    """,
)


def _loss(x, w, right):
    scores = x @ w
    found = -(scores * right).sum(1)
    for row, total in enumerate((math.e**scores).sum(1)):
        found[row] += math.log(total)
    return found


def _log_of_own_sum(x, w, right):
    import numpy as np  # not at the top: a page judges numbers without it

    own = ((x @ w) * right).sum(1)
    return [np.log(np.exp(x @ part).sum(1)) - own for part in slips.parts(w, 8, 1)]


def _loss_shapes(rng):
    B, D, vocab = (8 * rng.randint(2, 5) for _ in range(3))
    return (B, D), (D, vocab), (B, vocab)


LOSS = Sharded(
    id="07.18",
    title="A loss without gathering the logits",
    points=2,
    task=r"""
        **Given** on each device all of $x[B, D]$, its part of the head,
        $w[D, V_X]$, $V$ being the vocabulary, and of `right` $[B, V_X]$, weights of
        the tokens that are right (in practice a single 1 a row).

        **Wanted** the function that every device runs, returning for each row the
        logarithm of the sum of all exp(logits), less the sum of logits times `right`.
        All devices return all of it, $[B]$, and each AllReduces at most $12 B$ bytes.
        The logits are small enough for `exp`, so you needn't find the largest.
    """,
    stub="def loss(x, w, right): ...",
    mesh=RING,
    shapes=_loss_shapes,
    in_specs=((), (None, "X"), (None, "X")),
    out_spec=(None,),
    spec=_loss,
    collectives=lambda x, w, right: [
        Collective("all_reduce", ("X",), 4 * x[0], 8, times=3)
    ],
    at_most=True,
    by_axes=True,
    slips=(
        Slip(
            "logits gathered",
            lambda x, w, right: [
                Collective("all_gather", ("X",), 4 * x[0] * w[1], 8),
                Collective("all_gather", ("X",), 4 * x[0] * w[1], 8),
            ],
            "The vocabulary is far longer than the batch: no device needs all logits.",
        ),
        Slip(
            "the head gathered",
            lambda x, w, right: [
                Collective("all_gather", ("X",), 4 * math.prod(w), 8),
                Collective("all_gather", ("X",), 4 * math.prod(right), 8),
            ],
            "Multiply with the part that is there. Which sums are left to finish?",
        ),
    ),
    values=(
        Slip(
            "the logarithm of its own sum",
            _log_of_own_sum,
            "Each device has taken the logarithm of its own sum of exponentials. The "
            "logarithm is wanted of the sum over the whole vocabulary.",
        ),
        Slip(
            "the right tokens left out",
            lambda x, w, right: _loss(x, w, 0 * right),
            "The logits of the right tokens are to be taken off.",
        ),
    ),
    hint="Both sums run over the vocabulary: add up your own part, then "
    "`jax.lax.psum`. The logarithm comes last.",
    solution="""
        ```python
        def loss(x, w, right):
            scores = x @ w
            total = jax.lax.psum(jnp.exp(scores).sum(axis=1), "X")
            own = jax.lax.psum((scores * right).sum(axis=1), "X")
            return jnp.log(total) - own
        ```
    """,
)
