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
        from seven sizes of a model to the number of days that its training takes.
        Answers are in base units: params, FLOPs, bytes, seconds, tokens.

        07.15 to 07.18 are programs. They are graded on their result and on what XLA
        compiles them to, and two of them run on eight virtual devices.
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
    "$L = 48$ layers, $D = 6144$, $F = 16{,}384$, $N = 48$ query heads and $K = 8$ KV "
    "heads of $H = 128$, a vocabulary of 64,000, a gated MLP, and a head that is "
    "separate from the embedding"
)

PARAMS = Number(
    id="07.1",
    title="Parameters from seven sizes",
    task=f"""
        **Given** a dense model with {SIZES}.

        **Wanted** the number of its parameters. You may leave out the norms.
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
            "Did you count only the keys? The values have a matrix as well.",
        ),
        Slip(
            "one table",
            lambda right: replace(DENSE, tied=True).params,
            "The embedding and the head are two separate tables here.",
        ),
        Slip(
            "no vocabulary",
            lambda right: right - DENSE.embedding_params,
            "Did you leave out the embedding and the head?",
        ),
        scaled(
            "one layer",
            1 / 48,
            "You counted only one of the L layers.",
        ),
    ),
    hint="q and o have D·N·H values each, and k and v have D·K·H each. How many does "
    "the MLP have? How many layers are there, and how many tables?",
    solution="""
        A layer has four matrices in attention and three in the MLP.

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
        **Given** the model of 07.1: {SIZES}. It is trained on sequences of $S = 4096$
        tokens with causal attention, in which a query sees $(S + 1)/2$ keys on average.

        **Wanted** the FLOPs that one token takes in training. Count only the matmuls.
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
            "You counted full attention. A query doesn't see the keys that come after "
            "it.",
        ),
        Slip(
            "no attention",
            lambda right: right - 3 * flops(DENSE, 4096, "causal").attention,
            "Q · K and P · V have no weights, but they do take FLOPs.",
        ),
        Slip(
            "one product of attention",
            lambda right: right - 3 / 2 * flops(DENSE, 4096, "causal").attention,
            "Attention has two products, Q · K and P · V. Did you count only one?",
        ),
        Slip(
            "the embedding multiplied",
            lambda right: right + 6 * DENSE.vocab * DENSE.D,
            "The embedding is only looked up. Of the two tables, only the head is "
            "used in a matmul.",
        ),
        Slip(
            "6 · params and full attention",
            lambda right: conventions(DENSE, 4096)["6 · params, full attention"],
            "That counts the keys that the mask hides, and the embedding, which is "
            "only looked up.",
        ),
        Slip(
            "no head",
            lambda right: right - 3 * flops(DENSE, 4096, "causal").head,
            "The scores of the vocabulary take a matmul, too.",
        ),
        Slip(
            "6 · params",
            lambda right: conventions(DENSE, 4096)["6 · params"],
            "That leaves out attention and counts the embedding, which is only looked "
            "up.",
        ),
    ),
    hint="In training, each weight in a matmul takes six FLOPs. With each key that a "
    "query sees, attention takes twelve for each of the L·N·H values of its heads. How "
    "many keys does a query see?",
    solution="""
        The embedding isn't multiplied, and a query sees half of the keys on average.

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
        **Given** layers with $D = 2048$, $N = 16$, $K = 4$, $H = 128$ and a gated MLP
        of $F = 5632$. Attention is causal, so count $S/2$ keys for a query.

        **Wanted** the sequence length $S$ at which a layer's attention takes as many
        FLOPs as the matmuls with all the layer's weights.
    """,
    stub="tokens = ...",
    unit="tokens",
    expected=_balance,
    slips=(
        scaled(
            "full attention",
            1 / 2,
            "That is the number of keys that a query must see. But it sees only half "
            "of the sequence.",
        ),
        Slip(
            "the rule of 8D",
            lambda right: 8 * 2048,
            "The rule of 8D holds for full attention, F = 4D, and as many KV heads as "
            "query heads.",
        ),
        Slip(
            "twice the rule of 8D",
            lambda right: 16 * 2048,
            "The rule of 8D holds for F = 4D and as many KV heads as query heads. "
            "Both are different here.",
        ),
        Slip(
            "the MLP alone",
            lambda right: 2 * 3 * 2048 * 5632 / (2 * 16 * 128),
            "Did you count only the MLP? The matrices q, k, v and o are weights, too.",
        ),
        Slip(
            "K as large as N",
            lambda right: 2 * (4 * 2048**2 + 3 * 2048 * 5632) / (2 * 16 * 128),
            "Keys and values have only four heads here.",
        ),
    ),
    hint="For one token, a weight takes two FLOPs, and a key takes 4·N·H. With how "
    "many keys does attention take as many FLOPs as the weights?",
    solution="""
        A weight takes 2 FLOPs, and each of the $S/2$ keys takes $4NH$.

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
        itself and the tokens before it, but at most `window` keys in all. `window` is
        at most `S`.

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
            "After the first queries, every window is full.",
        ),
        Slip(
            "the whole window",
            lambda S, window: window,
            "The first queries have fewer tokens before them.",
        ),
        Slip(
            "the first window alone",
            lambda S, window: (window + 1) / 2,
            "That is the mean over the first `window` queries. All later queries see "
            "a full window.",
        ),
        Slip(
            "no window",
            lambda S, window: (S + 1) / 2,
            "No query sees more than `window` keys.",
        ),
        Slip(
            "without itself",
            lambda S, window: window - window * (window + 1) / (2 * S),
            "A query sees its own token, too.",
        ),
        Slip(
            "half a key less",
            lambda S, window: window - window**2 / (2 * S),
            "Many texts use this formula, which is close. But what does it give for a "
            "window of 1?",
        ),
    ),
    hint="From query number `window` on, each query sees `window` keys. How many keys "
    "do all the queries before that one lack together?",
    solution="""
        If every query saw `window` keys, the mean would be `window`. But the first
        `window` queries lack `window - 1`, …, 1, 0 keys, which is
        `window * (window - 1) / 2` in all.

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

        **Wanted** the FLOPs of its attention, divided by the FLOPs that the attention
        would take if all the layers were global. An error of half a key doesn't matter.
    """,
    stub="share = ...",
    unit="",
    expected=_windowed,
    slips=(
        Slip(
            "half of each window",
            lambda right: (1 + 5 * 8192 / 32_768) / 6,
            "Most queries fill their window. A query sees half of it on average only "
            "if the window holds the whole sequence.",
        ),
        Slip(
            "every window full",
            lambda right: (16_384 + 5 * 8192) / (6 * 16_384),
            "The first queries of a sequence see fewer keys than the window holds.",
        ),
        Slip(
            "local layers free",
            lambda right: 1 / 6,
            "The local layers see fewer keys, but they do see some.",
        ),
        Slip(
            "one layer of five",
            lambda right: (16_384 + 4 * 7168) / (5 * 16_384),
            "Every sixth layer is global, so there are five local layers for each "
            "global one.",
        ),
    ),
    hint="How many keys does a query see on average in each kind of layer? Take one "
    "global layer together with five local ones.",
    solution="""
        As in 07.4, the first queries of a local layer see fewer keys.

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
        **Given** a model of 40 layers with $D = 4096$, $N = 32$, $K = 8$ and $H = 128$.
        Each layer has a router, 64 routed experts and one shared expert. Each expert is
        a gated MLP of $F = 1536$. A token goes to 4 of the routed experts. The
        vocabulary is 100,000, and the head is separate from the embedding.

        **Wanted** the number of its active parameters without the input embedding. You
        may leave out the norms.
    """,
    stub="params = ...",
    unit="params",
    rtol=0.0008,
    expected=lambda: SPARSE.active("without input embedding"),
    slips=(
        Slip(
            "all experts",
            lambda right: SPARSE.params - 4096 * 100_000,
            "A token goes to only four of the 64 routed experts.",
        ),
        Slip(
            "no shared expert",
            lambda right: right - 40 * _EXPERT,
            "Every token goes to the shared expert as well.",
        ),
        Slip(
            "both tables",
            lambda right: SPARSE.active("all"),
            "Did you count the input embedding? It should be left out.",
        ),
        Slip(
            "no table",
            lambda right: SPARSE.active("without embeddings"),
            "The head counts, because every token is multiplied by it.",
        ),
        Slip(
            "one routed expert",
            lambda right: right - 40 * 3 * _EXPERT,
            "A token goes to four of the routed experts.",
        ),
        Slip(
            "no router",
            lambda right: right - 40 * 64 * 4096,
            "Every token is multiplied by the router, which has a column for each of "
            "the 64 experts.",
        ),
    ),
    hint="A token is multiplied by the weights of attention, the router, some of the "
    "experts, and the head. How many weights does each of these have?",
    solution="""
        Each token goes through five experts in each layer.

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
        **Given** a model of $53 \\times 10^9$ parameters that is trained with Adam.
        Training holds the weights and two moments in fp32, and a copy of the weights
        and the gradients in bf16. An H100 holds 80 GiB.

        **Wanted** the smallest number of H100s that can hold all of this, if each byte
        is held once and nothing else is held.
    """,
    stub="gpus = ...",
    unit="GPUs",
    rtol=0,
    expected=lambda: _chips(53e9, TRAINING["mixed"].total),
    slips=(
        Slip(
            "not rounded",
            lambda right: 53e9 * 16 / (80 * 2**30),
            "You can't use part of a GPU, so round up.",
        ),
        Slip("GB for GiB", lambda right: _chips(53e9, 16, 80e9), "80 GiB is 85.9 GB."),
        Slip(
            "the state alone",
            lambda right: _chips(53e9, 12),
            "The copy in bf16 and the gradients need room, too.",
        ),
        Slip(
            "gradients in fp32",
            lambda right: _chips(53e9, 18),
            "A gradient takes two bytes here.",
        ),
        Slip(
            "parameters for bytes",
            lambda right: _chips(53e9, 1),
            "How many bytes does training hold for each parameter?",
        ),
        Slip(
            "weights alone",
            lambda right: _chips(53e9, 2),
            "That is enough to serve the model. Training holds eight times as much.",
        ),
        Slip(
            "rounded down",
            lambda right: right - 1,
            "That many GPUs aren't enough for all the bytes.",
        ),
    ),
    hint="How many bytes does a parameter take in all, and how many can one GPU hold?",
    solution="""
        Each parameter takes $4 + 4 + 4 + 2 + 2$ bytes.

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
        The remat policy `dots` keeps the input of the layer and the results of its
        matmuls with weights, except for the result of the last matmul, which is only
        added to the stream.

        **Wanted** a function that returns the number of bytes that are kept for this
        layer.
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
            "The result of down is only added to the stream, so no gradient needs it.",
        ),
        Slip(
            "the input forgotten",
            lambda B, S, D, F, N, K, H: _kept(B, S, D, F, N, K, H) - 2 * B * S * D,
            "One array of B·S·D values is missing. What does the recomputation start "
            "from, and what is the result of o?",
        ),
        Slip(
            "K as large as N",
            lambda B, S, D, F, N, K, H: _kept(B, S, D, F, N, N, H),
            "Keys and values have only K heads.",
        ),
        Slip(
            "one byte per value",
            lambda B, S, D, F, N, K, H: _kept(B, S, D, F, N, K, H) / 2,
            "A value in bf16 takes two bytes.",
        ),
        Slip(
            "the gate forgotten",
            lambda B, S, D, F, N, K, H: _kept(B, S, D, F, N, K, H) - 2 * B * S * F,
            "A gated MLP has two matmuls that give F values per token.",
        ),
        Slip(
            "the input of down, too",
            lambda B, S, D, F, N, K, H: _kept(B, S, D, F, N, K, H) + 2 * B * S * F,
            "The input of down is the result of the activation function, not of a "
            "matmul, so it is computed again.",
        ),
        Slip(
            "the result of attention, too",
            lambda B, S, D, F, N, K, H: _kept(B, S, D, F, N, K, H) + 2 * B * S * N * H,
            "The result of attention comes from a product without weights, so it is "
            "computed again.",
        ),
        Slip(
            "keys alone",
            lambda B, S, D, F, N, K, H: _kept(B, S, D, F, N, K, H) - 2 * B * S * K * H,
            "Keys and values are the results of two matmuls. Did you count both?",
        ),
    ),
    hint="Seven arrays are kept: the input, Q, K, V, and the results of o, gate and "
    "up. How large is each of them?",
    solution="""
        The input and the result of o have $D$ values per token, and gate and up have
        $F$.

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
        **Given** the model of 07.1: {SIZES}. Count full attention over 4,096 tokens.
        Under full remat, the backward pass computes each layer again, except for its
        last matmul.

        **Wanted** the FLOPs of training with full remat, divided by those of training
        without remat.
    """,
    stub="factor = ...",
    unit="",
    rtol=0.0005,
    expected=_again,
    slips=(
        Slip(
            "one more forward pass",
            lambda right: 4 / 3,
            "The head and the last matmul of each layer aren't computed again.",
        ),
        Slip(
            "the last matmul, too",
            lambda right: (
                1 + flops(DENSE, 4096, "full").recomputed("full") / _token("full")
            ),
            "The result of down is only added to the stream. Does anything need it "
            "again?",
        ),
        Slip(
            "the head, too",
            lambda right: right + _ONCE.head / _ONCE.training,
            "Only the layers are computed again. The head's result is still there when "
            "the backward pass starts.",
        ),
        Slip(
            "what is added",
            lambda right: right - 1,
            "That is only what remat adds. The task asks for all the FLOPs with "
            "remat, divided by those without.",
        ),
        Slip(
            "the round number",
            lambda right: 5 / 4,
            "The chapter's factor of 5/4 is rounded. What factor do the sizes of this "
            "model give, to four significant digits?",
        ),
        Slip(
            "causal attention",
            lambda right: _again("causal"),
            "Full attention is counted here, so a query sees all 4,096 keys.",
        ),
        Slip(
            "over the forward pass",
            lambda right: 1 + 3 * (right - 1),
            "Did you divide by one forward pass? Training takes as many FLOPs as "
            "three of them.",
        ),
        Slip(
            "no attention",
            lambda right: (
                1
                + (DENSE.L * (DENSE.layer_params - DENSE.met(DENSE.layer[-1])))
                / (3 * DENSE.active_matmul_params)
            ),
            "Attention takes FLOPs, and it is computed again, too.",
        ),
    ),
    hint="Without remat, training takes three times the forward FLOPs of the whole "
    "model. Which of the forward FLOPs does remat repeat?",
    solution="""
        Remat adds a forward pass through the layers, except for `down`, their last
        matmul. Without remat, training takes as many FLOPs as three forward passes of
        the whole model.

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
        **Given** a model with $L = 60$, $N = 64$, $K = 8$ and $H = 128$, and its KV
        cache in fp8 for a text of 65,536 tokens.

        **Wanted** the number of bytes in the cache.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: kv_cache(
        Model("served", 60, 8192, 28_672, 64, 8, 128, 1), 65_536, "fp8"
    ),
    slips=(
        scaled(
            "keys alone, or half",
            1 / 2,
            "Did you count only the keys, or half a byte per value? The cache keeps "
            "both keys and values.",
        ),
        scaled("bf16", 2, "A value in fp8 takes one byte."),
        scaled("query heads", 8, "Keys and values have only K heads."),
        scaled("one layer", 1 / 60, "Every layer has its own keys and values."),
        scaled(
            "one token",
            1 / 65_536,
            "That is the cache of one token. How many tokens does the text have?",
        ),
    ),
    hint="A token adds 2·L·K·H values to the cache. How many bytes does each value "
    "take?",
    solution="""
        In each layer, a token has $KH$ values in its keys and as many in its values.

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
        values, and a rotary key of 64 values that all the heads share.

        **Wanted** the number of KV heads with $H = 128$ with which grouped-query
        attention needs the same cache per token and layer. The result need not be a
        whole number.
    """,
    stub="heads = ...",
    unit="heads",
    expected=lambda: kv_cache(MLA, 1) / MLA.L / 2 / (2 * 128),
    slips=(
        scaled("keys alone", 2, "A KV head has both a key and a value."),
        Slip(
            "no rotary key",
            lambda right: 512 / 256,
            "The rotary key is cached, too. If you counted it, don't round the result.",
        ),
        Slip(
            "a rotary key for each head",
            lambda right: (512 + 128 * 64) / 256,
            "All the heads share one rotary key.",
        ),
        Slip(
            "heads themselves",
            lambda right: 128,
            "The cache holds the latent, not the keys and values that the heads "
            "compute from it.",
        ),
    ),
    hint="Divide the number of values in the latent and the rotary key by the number "
    "of values in one KV head.",
    solution="""
        The latent and the rotary key replace a key and a value of $H$ values per head.

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
        **Given** the model of 07.1: {SIZES}. On 128 TPU v5p chips, a step of 512
        sequences of $S = 4096$ tokens takes 9.0 s. A query sees $(S + 1)/2$ keys on
        average.

        **Wanted** the MFU, counting the FLOPs that causal attention needs.
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
            "You counted full attention, which includes the pairs that the mask hides.",
        ),
        Slip(
            "6 · params",
            lambda right: _share(conventions(DENSE, 4096)["6 · params"]),
            "That leaves out attention and counts the embedding.",
        ),
        Slip(
            "no head",
            lambda right: _share(_token() - 3 * flops(DENSE, 4096, "causal").head),
            "The scores of the vocabulary take a matmul, too.",
        ),
        Slip(
            "6 · params and attention",
            lambda right: _share(_token() + 6 * DENSE.vocab * DENSE.D),
            "Did you count the embedding? It is only looked up and takes no FLOPs.",
        ),
        slips.forward_only(),
        scaled(
            "all chips against one",
            128,
            "Did you divide the rate of all the chips by the peak of one?",
        ),
        scaled(
            "sequences for tokens",
            1 / 4096,
            "Did you count sequences? Each sequence has 4,096 tokens.",
        ),
    ),
    hint="How many tokens does one chip process per second? Multiply that by the "
    "FLOPs of a token, and divide by the peak.",
    solution="""
        MFU is the FLOPs that a chip's tokens need per second, divided by its peak.

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
    title="An HFU, restated as MFU",
    points=2,
    task=f"""
        **Given** a report of 52 % of the peak for training the model of 07.1 with a
        larger vocabulary ({SIZES.replace("64,000", "256,000")}), on sequences of
        $S = 16{{,}}384$ tokens. The report counts full attention. It counts the forward
        pass of the layers twice, because of full remat, but that of the head only once.

        **Wanted** the MFU with causal attention, in which a query sees $(S + 1)/2$
        keys.
    """,
    stub="mfu = ...",
    unit="",
    rtol=0.005,
    expected=lambda: 0.52 * _causal_over_hardware(),
    slips=(
        Slip(
            "still full attention, or three quarters",
            lambda right: right * _wide("full") / _wide("causal"),
            "You took away the recomputation, but you still count the pairs that the "
            "mask hides.",
        ),
        Slip(
            "still recomputed",
            lambda right: 0.52 * _wide("causal") / _wide("full"),
            "MFU doesn't count what is computed a second time.",
        ),
        Slip(
            "the head twice",
            lambda right: 0.52 * _causal_over_hardware(heads=2),
            "The report counts the layers twice, but it counts the head only once.",
        ),
        Slip(
            "the wrong way",
            lambda right: 0.52 / _causal_over_hardware(),
            "The run needs fewer FLOPs than the report counts. Should the MFU be "
            "higher or lower than the reported share?",
        ),
    ),
    hint="The time of the run stays the same. How many FLOPs per token does the run "
    "need, and how many did the report count?",
    solution="""
        Remat adds 2 FLOPs to the 6 of a weight in a layer, but none for the head.

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
        **Given** the model with experts of 07.6: $L = 40$, $D = 4096$, $N = 32$,
        $K = 8$, $H = 128$, 64 routed experts and one shared expert of $F = 1536$, four
        routed experts per token, a vocabulary of 100,000, and a head that is separate
        from the embedding. It is trained on $2 \\times 10^{12}$ tokens in sequences of
        8,192 with causal attention, on 2,048 Trillium chips, at an MFU of 45 %.

        **Wanted** the number of days that the training takes.
    """,
    given=stated(chips.TPU_V6E, "flops.bf16"),
    stub="days = ...",
    unit="days",
    expected=lambda: _days(flops(SPARSE, 8192, "causal").training),
    slips=(
        Slip(
            "all experts",
            lambda right: _days(6 * SPARSE.params),
            "A token is multiplied only by the experts that it goes to.",
        ),
        Slip(
            "no attention",
            lambda right: _days(6 * SPARSE.active_matmul_params),
            "At this sequence length, attention takes too many FLOPs to be left out.",
        ),
        Slip(
            "full attention",
            lambda right: _days(flops(SPARSE, 8192, "full").training),
            "Did you count full attention? Here attention is causal.",
        ),
        scaled(
            "forward only",
            1 / 3,
            "Did you count only the forward pass? Training takes as many FLOPs as "
            "three forward passes.",
        ),
        scaled("the whole peak", 0.45, "The chips reach only 45 % of their peak."),
        scaled("hours", 24, "Those are hours; a day has 24."),
        scaled("seconds", 86_400, "Those are seconds; a day has 86,400."),
        scaled(
            "one chip",
            2048,
            "That is the time of a single chip. Here 2,048 chips share the work.",
        ),
    ),
    hint="How many FLOPs does a token take, with its active weights and its keys? How "
    "many tokens per second does the MFU then allow?",
    solution="""
        Each token goes through five experts.

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
            "In your function every query sees all the keys, even the later ones.",
        ),
        Slip(
            "no scale",
            of_heads(lambda *head: _attention(*head, scaled=False)),
            "The scores must be divided by the square root of H before the softmax.",
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
        **Given** the queries, keys and values of one head, $Q[S, H]$, $K[S, H]$ and
        $V[S, H]$, where $S$ is a multiple of 64.

        **Wanted** a function that returns $\text{softmax}(Q K^T / \sqrt H)\,V$, where
        no query sees a later key. It may take at most 5/8 of the FLOPs of the two full
        products, and another $10\,S^2$ FLOPs for the rest.
    """,
    stub="def attend(Q, K, V): ...",
    shapes=_head_shapes,
    spec=_one_head,
    at_most=_four_blocks,
    values=_attention_slips(lambda attention: attention),
    hint="Cut the queries into four blocks. What is the last key that a block needs?",
    solution="""
        Cut the queries into four blocks and count them from 0. Block $i$ needs only the
        first $i + 1$ quarters of the keys, so all the blocks together compute
        $(1 + 2 + 3 + 4)/16$ of all the pairs.

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
        **Given** the cached latents of a text, $c[S, R]$, the weights $W[R, H]$ that
        turn them into keys, and one query $q[H]$.

        **Wanted** a function that returns the query's scores against all the keys,
        $(c \\, W)\\, q$, in at most $2 S R + 2 R H$ FLOPs.
    """,
    stub="def scores(c, W, q): ...",
    shapes=_latent_shapes,
    spec=lambda c, W, q: c @ W @ q,
    at_most=lambda c, W, q: {"flops": 2 * c[0] * c[1] + 2 * c[1] * q[0]},
    hint="Computing all the keys takes 2·S·R·H FLOPs. Do you have to multiply c by W "
    "first?",
    solution="""
        If you multiply the weights by the query first, no key has to be computed, and
        the latents are used as they are. This is how a model with MLA generates text.

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

        **Wanted** the function that every device runs. It computes causal attention,
        $\text{softmax}(Q K^T / \sqrt H)\,V$, head by head, and then the product with
        $o$. It returns the device's part of $y[S_X, D]$ and compiles to exactly one
        ReduceScatter of $4 S D$ bytes.
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
            "heads gathered",
            lambda Q, K, V, o: [
                Collective("all_gather", ("X",), 4 * math.prod(Q), 8),
                Collective("all_gather", ("X",), 4 * math.prod(o), 8),
            ],
            "Your program gathers the heads. But o is split in the same way as they "
            "are. Which case is that?",
        ),
        Slip(
            "queries, keys and values gathered",
            lambda Q, K, V, o: [
                Collective("all_gather", ("X",), 4 * math.prod(Q), 8, times=3),
                Collective("all_gather", ("X",), 4 * math.prod(o), 8),
            ],
            "Your program gathers the heads. But no head needs another one, and only "
            "the last product sums over them.",
        ),
    ),
    values=_attention_slips(_of_all_heads),
    hint="Attention needs nothing from other devices. The product with o contracts N "
    "and H, and N is split in both operands. Which case is that?",
    solution="""
        Each device has whole heads, so only the product with o leaves a partial sum.

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
        **Given** on each device all of $x[B, D]$, its part of the head $w[D, V_X]$,
        where $V$ is the vocabulary, and its part of `right` $[B, V_X]$. Each row of
        `right` holds the weights of the right tokens, in practice a single 1 among
        zeros.

        **Wanted** the function that every device runs. For each row, it returns the
        logarithm of the sum of all exp(logits), minus the sum of the logits times
        `right`. Every device returns all of the result, $[B]$, and its AllReduces have
        at most $12 B$ bytes in all. The logits are small enough for `exp`, so you don't
        have to find the largest.
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
            "A row has a logit for every token of the vocabulary, and no device needs "
            "all of them.",
        ),
        Slip(
            "the head gathered",
            lambda x, w, right: [
                Collective("all_gather", ("X",), 4 * math.prod(w), 8),
                Collective("all_gather", ("X",), 4 * math.prod(right), 8),
            ],
            "Your program gathers the head. Multiply only by the part that a device "
            "has. Which sums are then left to finish?",
        ),
    ),
    values=(
        Slip(
            "the logarithm of its own sum",
            _log_of_own_sum,
            "Each device has taken the logarithm of its own sum of exponentials. It "
            "should take the logarithm of the sum over the whole vocabulary.",
        ),
        Slip(
            "the right tokens left out",
            lambda x, w, right: _loss(x, w, 0 * right),
            "Did you subtract the logits of the right tokens?",
        ),
    ),
    hint="Both sums run over the vocabulary. Which part of each can a device add up on "
    "its own, and what must happen before the logarithm?",
    solution="""
        A device adds up its part of the vocabulary, and `psum` adds up the devices'
        sums.

        ```python
        def loss(x, w, right):
            scores = x @ w
            total = jax.lax.psum(jnp.exp(scores).sum(axis=1), "X")
            own = jax.lax.psum((scores * right).sum(axis=1), "X")
            return jnp.log(total) - own
        ```
    """,
)
