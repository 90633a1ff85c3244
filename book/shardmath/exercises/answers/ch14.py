"""Questions of chapter 14, "Combining them"."""

import math

from shardmath.collectives import Collective
from shardmath.exercises.kinds import (
    Chapter,
    Function,
    Number,
    Sharded,
    Slip,
    scaled,
    stated,
)
from shardmath.hardware import chips
from shardmath.hardware import networks as net
from shardmath.hardware.mesh import Mesh
from shardmath.training import combine, fsdp, pipeline, step, tensor, zero
from shardmath.transformer import DEEPSEEK_V3, KIMI_K2, LLAMA_3_70B, LLAMA_3_405B

CHAPTER = Chapter(
    title="Combining them",
    topics=(
        "meshes of several axes: memory and traffic of each, the best mesh by hand, "
        "the wires that decide, and three programs graded on what they compile to"
    ),
    intro="""
        from the budget of a mesh to the best one by hand. Answers are in base units:
        bytes, seconds, tokens.

        14.8 to 14.10 are programs for eight virtual devices with two mesh axes. They
        are graded on their result and on what XLA compiles them to, array by array.
    """,
    setup="""
        import jax
        import jax.numpy as jnp

        from shardmath.exercises import check, report
        from shardmath.hardware import chips

        jax.config.update("jax_num_cpu_devices", 8)  # eight virtual chips
    """,
)


def _held(P: float, x: int, p: int, y: int) -> float:
    return 4 * P / (y * p) + 12 * P / (x * y * p)


def _held_under(P: float, x: int, p: int, y: int, shards: str) -> float:
    whole = 16 * P
    if shards == "fsdp":
        return whole / (x * p * y)
    return 4 / 16 * whole / (y * p) + 12 / 16 * whole / (x * y * p)


_P70 = LLAMA_3_70B.params

HELD = Number(
    id="14.1",
    title="What stays on a chip",
    task=r"""
        **Given** Llama 3.1 70B, 70,553,706,496 params, in bf16 with Adam in f32, on 256
        chips: ZeRO-1 over $|X| = 8$, a pipeline of $|P| = 4$ even stages, tensor
        parallelism over $|Y| = 8$.

        **Wanted** the bytes of weights, gradients and optimizer state on one chip.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _held(_P70, 8, 4, 8),
    slips=(
        Slip(
            "all of it over all chips",
            lambda right: 16 * _P70 / 256,
            "ZeRO-1 shares the optimizer state alone. Who else has these weights?",
        ),
        Slip(
            "nothing over the data axis",
            lambda right: 16 * _P70 / 32,
            "ZeRO-1 divides 12 of the 16 bytes by the data axis, too.",
        ),
        Slip(
            "gradients split too",
            lambda right: 2 * _P70 / 32 + 14 * _P70 / 256,
            "That is ZeRO-2.",
        ),
        Slip(
            "two moments for the state",
            lambda right: 4 * _P70 / 32 + 8 * _P70 / 256,
            "Beside its two moments, Adam keeps the weights in f32.",
        ),
        Slip(
            "state alone",
            lambda right: 12 * _P70 / 256,
            "Weights and gradients in bf16 are there as well.",
        ),
        Slip(
            "gradients in fp32",
            lambda right: 6 * _P70 / 32 + 12 * _P70 / 256,
            "Six bytes a parameter are right where gradients are added up in fp32, as "
            "some systems do. Here they are in bf16.",
        ),
        scaled(
            "the pipeline left out", 4, "Each chip has the layers of one stage only."
        ),
        scaled(
            "tensor parallelism left out",
            8,
            "Eight chips share the weights of a layer between them.",
        ),
    ),
    hint="4 bytes a parameter are divided by tensor and pipeline, 12 by all axes.",
    solution="""
        ```python
        params = 70_553_706_496
        nbytes = 4 * params / (8 * 4) + 12 * params / (8 * 8 * 4)
        ```
    """,
)


MEMORY = Function(
    id="14.2",
    title="The memory of any mesh",
    task=r"""
        **Given** a model of $P$ params in bf16 with Adam in f32, on a mesh of $x$
        chips of data, $p$ even stages and $y$ of tensor parallelism; `shards` is
        `"zero-1"` or `"fsdp"`.

        **Wanted** a function that returns the bytes of weights, gradients and optimizer
        state that one chip holds between two steps.
    """,
    stub="def held(P, x, p, y, shards): ...",
    spec=_held_under,
    gives=(("what a chip holds", "bytes"),),
    cases=lambda rng: (
        1e9 * rng.randint(1, 500),
        2 ** rng.randint(1, 7),
        2 ** rng.randint(0, 4),
        2 ** rng.randint(0, 3),
        rng.choice(["zero-1", "fsdp"]),
    ),
    examples=((8e9, 8, 2, 4, "zero-1"), (8e9, 8, 2, 4, "fsdp")),
    slips=(
        Slip(
            "one for the other",
            lambda P, x, p, y, shards: (
                _held(P, x, p, y) if shards == "fsdp" else 16 * P / (x * p * y)
            ),
            "FSDP divides all of it, ZeRO-1 the state alone.",
        ),
        Slip(
            "ZeRO-1 as if nothing were split",
            lambda P, x, p, y, shards: (
                16 * P / (p * y * (x if shards == "fsdp" else 1))
            ),
            "ZeRO-1 splits the optimizer state over the data axis: 12 of the 16 bytes.",
        ),
        Slip(
            "pipeline forgotten",
            lambda P, x, p, y, shards: (
                p * (16 * P / (x * p * y) if shards == "fsdp" else _held(P, x, p, y))
            ),
            "A stage has its own layers alone.",
        ),
        Slip(
            "gradients split too",
            lambda P, x, p, y, shards: (
                16 * P / (x * p * y)
                if shards == "fsdp"
                else 2 * P / (y * p) + 14 * P / (x * y * p)
            ),
            "That is ZeRO-2.",
        ),
        Slip(
            "gradients forgotten",
            lambda P, x, p, y, shards: (
                14 * P / (x * p * y)
                if shards == "fsdp"
                else 2 * P / (y * p) + 12 * P / (x * y * p)
            ),
            "Gradients in bf16 take two bytes more.",
        ),
    ),
    hint="Each parameter takes 16 bytes. Which of them does each axis divide?",
    solution="""
        ```python
        def held(P, x, p, y, shards):
            if shards == "fsdp":
                return 16 * P / (x * p * y)
            return 4 * P / (p * y) + 12 * P / (x * p * y)
        ```
    """,
)

_SUMS = 8 * 2 * 16_384 * 126 * 1024 * 8 * 7 / 8

TURNED = Number(
    id="14.3",
    title="Outside the node",
    task=r"""
        **Given** Llama 3.1 405B, $L = 126$ and $D = 16{,}384$, in bf16, nothing
        computed again, with 1,024 tokens per chip and tensor parallelism with sequence
        parallelism over $|Y| = 8$. The eight GPUs of a group are in eight different
        nodes, so everything that they send crosses their network cards,
        `chips.H100.scale_out_bandwidth` each.

        **Wanted** the seconds of these collectives in a step.
    """,
    given=stated(chips.H100, "scale_out_bandwidth", "scale_up_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: _SUMS / chips.H100.scale_out_bandwidth,
    slips=(
        Slip(
            "over NVLink",
            lambda right: _SUMS / chips.H100.scale_up_bandwidth,
            "That would be inside a node.",
        ),
        scaled(
            "tokens of one chip",
            1 / 8,
            "A group passes the tokens of all its eight chips through every layer.",
        ),
        scaled("one pass", 1 / 2, "Forward and backward move as much."),
        scaled("one block", 1 / 2 / 2, "Two blocks a layer, and two passes."),
        scaled("own part sent too", 8 / 7, "A chip need not send anything to itself."),
        scaled("under full remat", 11 / 8, "Nothing is computed again here."),
        scaled("gathered again", 10 / 8, "What was gathered is kept here."),
    ),
    hint="Each layer has 8 gathers and scatters, each of the group's tokens times D.",
    solution="""
        ```python
        from shardmath.hardware import chips

        V = 2 * 8 * 1024 * 16_384
        nbytes = 126 * 8 * V * 7 / 8
        seconds = nbytes / chips.H100.scale_out_bandwidth
        ```
    """,
)

_BUBBLE = 15 / (2048 / (16_384 / (8 * 16 * 16)))

MICROBATCHES = Number(
    id="14.4",
    title="What context does for a bubble",
    task=r"""
        **Given** 16,384 chips: tensor parallelism over 8, a pipeline of 16 stages,
        context parallelism over 16, data over the rest; a batch of 2,048 sequences,
        one to a microbatch, under 1F1B with even stages.

        **Wanted** the bubble, idle over busy time.
    """,
    stub="bubble = ...",
    unit="",
    expected=lambda: _BUBBLE,
    slips=(
        scaled(
            "context left out",
            16,
            "Chips that share a sequence are no groups of their own: how many "
            "sequences does a pipeline get?",
        ),
        Slip(
            "share of the step",
            lambda right: right / (1 + right),
            "Idle over busy time is wanted, not over the whole step.",
        ),
        scaled("all stages wait", 16 / 15, "The pipeline fills in one stage less."),
        Slip(
            "all sequences in one pipeline",
            lambda right: 15 / 2048,
            "The 2,048 sequences are shared out over several pipelines. How many "
            "microbatches has each?",
        ),
        scaled(
            "tensor parallelism left out",
            8,
            "Eight chips work on the same sequence, so there are fewer pipelines.",
        ),
    ),
    hint="Into how many pipelines go the 2,048 sequences?",
    solution="""
        ```python
        pipelines = 16_384 // (8 * 16 * 16)
        bubble = (16 - 1) / (2048 // pipelines)
        ```
    """,
)


def _smallest(n: int, seqs: int, node: int) -> int:
    y = 1
    while n // y > seqs and y < node:
        y *= 2
    return y if n // y <= seqs else 0


WHOLE = Function(
    id="14.5",
    title="Whole sequences",
    task=r"""
        **Given** $n$ chips, a batch of `seqs` sequences, and nodes of `node` chips, all
        powers of two. FSDP goes over the groups of $|Y|$ chips that tensor parallelism
        makes, and each group needs a whole sequence.

        **Wanted** a function that returns the smallest $|Y| = 1, 2, 4 \dots$ within a
        node with which every group has one; 0 if none has.
    """,
    stub="def groups_of(n, seqs, node): ...",
    spec=_smallest,
    gives=(("|Y|", ""),),
    cases=lambda rng: (
        2 ** rng.randint(3, 14),
        2 ** rng.randint(2, 12),
        rng.choice([4, 8, 64]),
    ),
    examples=((1024, 512, 8), (16_384, 2048, 8), (16_384, 512, 8), (64, 128, 8)),
    slips=(
        Slip(
            "always the whole node",
            lambda n, seqs, node: node if n // node <= seqs else 0,
            "The smallest is wanted: tensor parallelism has its price.",
        ),
        Slip(
            "beyond the node",
            lambda n, seqs, node: max(1, n // seqs),
            "Tensor parallelism shall not leave the node.",
        ),
        Slip(
            "never none",
            lambda n, seqs, node: min(node, max(1, n // seqs)),
            "Where the node is too small, there is no such mesh.",
        ),
    ),
    hint="There are n / |Y| groups, at most as many as sequences.",
    solution="""
        ```python
        def groups_of(n, seqs, node):
            y = max(1, n // seqs)
            return y if y <= node else 0
        ```
    """,
)


def _needed(model, m: float, rate: float, peak: float) -> float:
    return 3 * 2 / m * model.params / model.active("all") * peak / rate


_KIMI = _needed(
    KIMI_K2, 6, chips.TPU_V5P.scale_up_bandwidth, chips.TPU_V5P.flops["bf16"]
)

TOKENS = Number(
    id="14.6",
    title="FSDP alone, total and active",
    task=f"""
        **Given** Kimi K2, {KIMI_K2.params:,} params, of which a token meets
        {KIMI_K2.active("all"):,}, in bf16 on TPU v5p under FSDP alone, nothing computed
        again. Into every chip of the torus come `chips.TPU_V5P.scale_up_bandwidth`.
        Weights are gathered for both passes, gradients scattered once; attention
        scores and the factor (n − 1)/n are left out.

        **Wanted** the tokens per chip at which network and math take equally long.
    """,
    given=stated(chips.TPU_V5P, "flops.bf16", "scale_up_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    expected=lambda: _KIMI,
    slips=(
        scaled(
            "as if it were dense",
            KIMI_K2.active("all") / KIMI_K2.params,
            "FSDP gathers all of the parameters, and computes with the active ones.",
        ),
        scaled(
            "one gather",
            1 / 3,
            "Weights are gathered for both passes, and their gradients scattered.",
        ),
        scaled("8 FLOPs", 6 / 8, "Nothing is computed again here."),
        scaled("one axis of the torus", 3, "FSDP alone uses all three axes."),
        scaled("one byte a value", 1 / 2, "A value in bf16 has two bytes."),
        scaled(
            "two of three rounds",
            2 / 3,
            "Weights are gathered twice, and their gradients are scattered as well.",
        ),
    ),
    hint=(
        "Every parameter costs 3 · 2 bytes, and every active parameter 6 FLOPs "
        "per token."
    ),
    solution=f"""
        ```python
        from shardmath.hardware import chips

        chip = chips.TPU_V5P
        network = 3 * 2 * {KIMI_K2.params} / chip.scale_up_bandwidth
        math = 6 * {KIMI_K2.active("all")} / chip.flops["bf16"]
        tokens = network / math
        ```
    """,
)

_DOMAIN = min(64 * chips.GB200.scale_out_bandwidth, chips.GB200.scale_up_bandwidth)
_NODE = min(8 * chips.GB200.scale_out_bandwidth, chips.GB200.scale_up_bandwidth)

DOMAIN = Number(
    id="14.7",
    title="What a large domain brings",
    points=2,
    task="""
        **Given** GB200 in NVLink domains of 8 and of 64 GPUs. Each GPU has a card of
        `chips.GB200.scale_out_bandwidth` and takes in
        `chips.GB200.scale_up_bandwidth` over NVLink. FSDP alone gathers weights over
        many domains; the GPUs of a domain share out what comes in by their cards, and
        hand it on by NVLink at the same time. Factors (n − 1)/n are left out.

        **Wanted** by what factor a fixed batch can feed more GPUs in the larger domains
        than in the smaller ones.
    """,
    given=stated(chips.GB200, "scale_out_bandwidth", "scale_up_bandwidth"),
    stub="times = ...",
    unit="",
    expected=lambda: _DOMAIN / _NODE,
    slips=(
        Slip(
            "cards alone",
            lambda right: 8.0,
            "Each GPU has to take in all of the weights. By which wires?",
        ),
        Slip(
            "NVLink over one card",
            lambda right: (
                chips.GB200.scale_up_bandwidth / chips.GB200.scale_out_bandwidth
            ),
            "In the small domain, too, eight cards work together.",
        ),
        Slip(
            "nothing",
            lambda right: 1.0,
            "In the small domain the eight cards bring less than NVLink carries.",
        ),
    ),
    hint="The rate into each GPU is the smaller of two rates.",
    solution="""
        Eight cards bring 400 GB/s into a domain, and so into each GPU. Sixty-four would
        bring 3,200, but NVLink carries 900 into each.

        ```python
        from shardmath.hardware import chips

        out, up = chips.GB200.scale_out_bandwidth, chips.GB200.scale_up_bandwidth
        times = min(64 * out, up) / min(8 * out, up)
        ```
    """,
)


# Programs. Values are float32: four bytes each.
GRID = {"X": 4, "Y": 2}


def _mlp_shapes(rng):
    B, D, F = 4 * rng.randint(2, 4), 8 * rng.choice([3, 5]), 16 * rng.randint(2, 5)
    return (B, D), (D, F), (F, D)


COLUMNS = Sharded(
    id="14.8",
    title="A weight over two axes",
    task=r"""
        **Given** each device's part of the tokens $z[B_X, D]$ and of
        $\text{up}[D_X, F_Y]$: FSDP over $X$, tensor parallelism over $Y$.

        **Wanted** the function that every device runs, returning its part of
        $u[B_X, F_Y] = z\,\text{up}$: exactly one AllGather over $X$, of $4DF/2$ bytes.
    """,
    stub="def columns(z, up): ...",
    mesh=GRID,
    shapes=lambda rng: _mlp_shapes(rng)[:2],
    in_specs=(("X", None), ("X", "Y")),
    out_spec=("X", "Y"),
    spec=lambda z, up: z @ up,
    collectives=lambda z, up: [
        Collective("all_gather", ("X",), 4 * math.prod(up) / 2, 4)
    ],
    slips=(
        Slip(
            "over both axes",
            lambda z, up: [Collective("all_gather", ("X", "Y"), 4 * math.prod(up), 8)],
            "The columns of the other half are not needed here.",
        ),
        Slip(
            "tokens gathered too",
            lambda z, up: [
                Collective("all_gather", ("X",), 4 * math.prod(up) / 2, 4),
                Collective("all_gather", ("X",), 4 * math.prod(z), 4),
            ],
            "A device computes for its own tokens alone.",
        ),
    ),
    hint="Gather the rows of your columns.",
    solution="""
        ```python
        def columns(z, up):
            return z @ jax.lax.all_gather(up, "X", axis=0, tiled=True)
        ```
    """,
)

BOTH = Sharded(
    id="14.9",
    title="An MLP under FSDP and tensor parallelism",
    task=r"""
        **Given** each device's part of $z[B_X, D]$, $\text{up}[D_X, F_Y]$ and
        $\text{down}[F_Y, D_X]$.

        **Wanted** the function that every device runs, returning
        $m[B_X, D] = \max(z\,\text{up}, 0)\,\text{down}$: two AllGathers over $X$, of
        $4DF/2$ bytes each, and one AllReduce over $Y$, of $4BD/4$ bytes.
    """,
    stub="def mlp(z, up, down): ...",
    mesh=GRID,
    shapes=_mlp_shapes,
    in_specs=(("X", None), ("X", "Y"), ("Y", "X")),
    out_spec=("X", None),
    spec=lambda z, up, down: (z @ up).clip(0) @ down,
    collectives=lambda z, up, down: [
        Collective("all_gather", ("X",), 4 * math.prod(up) / 2, 4, times=2),
        Collective("all_reduce", ("Y",), 4 * z[0] * down[1] / 4, 2),
    ],
    slips=(
        Slip(
            "no tensor parallelism",
            lambda z, up, down: [
                Collective("all_gather", ("X", "Y"), 4 * math.prod(up), 8, times=2)
            ],
            "Weights shall stay split over Y.",
        ),
        Slip(
            "hidden layer gathered",
            lambda z, up, down: [
                Collective("all_gather", ("X",), 4 * math.prod(up) / 2, 4),
                Collective("all_gather", ("X", "Y"), 4 * math.prod(down), 8),
                Collective("all_gather", ("Y",), 4 * z[0] * up[1] / 4, 2),
            ],
            "Rows of the second matrix take columns of the hidden layer as they are.",
        ),
    ),
    values=(
        Slip(
            "no activation",
            lambda z, up, down: z @ up @ down,
            "That is the product of all three. Between the matmuls negative values "
            "become zero.",
        ),
    ),
    hint="Gather both weights over X. The result is a term of a sum over Y.",
    solution="""
        ```python
        def mlp(z, up, down):
            up = jax.lax.all_gather(up, "X", axis=0, tiled=True)
            down = jax.lax.all_gather(down, "X", axis=1, tiled=True)
            return jax.lax.psum(jax.nn.relu(z @ up) @ down, "Y")
        ```
    """,
)


def _head_shapes(rng):
    N, S, H = 2 * rng.randint(1, 3), 4 * rng.randint(2, 5), 8 * rng.randint(1, 3)
    return ((N, S, H),) * 3


def _with_a_softmax(Q, K, V):
    import numpy as np  # not at the top: a page judges numbers without it

    scores = Q @ K.transpose(0, 2, 1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ V


HEADS = Sharded(
    id="14.10",
    title="Heads over one axis, tokens over the other",
    task=r"""
        **Given** each device's part of $Q$, $K$ and $V[N_Y, S_X, H]$: heads over $Y$,
        tokens over $X$.

        **Wanted** the function that every device runs, returning its part of
        $A[N_Y, S_X, H] = (QK^\top)V$ for each head, without a softmax: keys and values
        gathered over $X$, two AllGathers of $4NSH/2$ bytes, or as many bytes at once.
    """,
    stub="def attend(Q, K, V): ...",
    mesh=GRID,
    shapes=_head_shapes,
    in_specs=(("Y", "X", None),) * 3,
    out_spec=("Y", "X", None),
    spec=lambda Q, K, V: (Q @ K.transpose(0, 2, 1)) @ V,
    collectives=lambda Q, K, V: [
        Collective("all_gather", ("X",), 4 * math.prod(K) / 2, 4, times=2)
    ],
    at_most=True,
    slips=(
        Slip(
            "queries gathered too",
            lambda Q, K, V: [
                Collective("all_gather", ("X",), 4 * math.prod(K) / 2, 4, times=3)
            ],
            "A device answers for its own queries alone.",
        ),
        Slip(
            "a sum of products of keys and values",
            lambda Q, K, V: [
                Collective("all_reduce", ("X",), 4 * K[0] / 2 * K[2] ** 2, 4)
            ],
            "Right without a softmax, which stands between Q K and V elsewhere: gather "
            "keys and values.",
        ),
        Slip(
            "all heads gathered",
            lambda Q, K, V: [
                Collective("all_gather", ("X", "Y"), 4 * math.prod(K), 8, times=2)
            ],
            "A head needs its own keys alone.",
        ),
    ),
    values=(
        Slip(
            "a softmax",
            _with_a_softmax,
            "Scores are the weights themselves here: the task leaves out the softmax.",
        ),
    ),
    hint="Queries stay; the keys of all tokens are needed.",
    solution="""
        ```python
        def attend(Q, K, V):
            K = jax.lax.all_gather(K, "X", axis=1, tiled=True)
            V = jax.lax.all_gather(V, "X", axis=1, tiled=True)
            return (Q @ K.transpose(0, 2, 1)) @ V
        ```
    """,
)


# Several steps.


_LADDER = ((1, 8), (2, 8), (4, 8), (8, 8))  # stages, and tensor parallelism


def _by_hand() -> int:
    """Stages of the first mesh that fits and whose math is no shorter than its network:
    FSDP and tensor parallelism, and then pipelines with ZeRO-1."""
    nodes = net.Cluster(net.NVLinkDomain(chips.H100), 128)
    for p, y in _LADDER:
        x = 1024 // (p * y)
        ways = (fsdp("X"),) if p == 1 else (zero(1, "X"), pipeline("P"))
        axes = {"X": x, "P": p, "Y": y} if p > 1 else {"X": x, "Y": y}
        one = step(
            combine(*ways, tensor("Y")),
            LLAMA_3_405B,
            Mesh(nodes, axes),
            128,
            8192,
            attention="causal",
            microbatches=128 // x if p > 1 else 1,
        )
        spent = one.estimate.seconds
        if one.memory.fits and spent["math"] >= spent["network"]:
            return p
    raise ValueError("no mesh of the rule fits")


BY_HAND = Number(
    id="14.11",
    title="The best mesh by hand",
    points=2,
    task="""
        **Given** Llama 3.1 405B, 405,853,388,800 params, on 1,024 H100 in nodes of 8,
        with 128 sequences of 8,192 tokens per step, full remat, everything in bf16 and
        Adam in f32. A GPU has 80 GiB, of which what is saved, gathered and computed
        with takes 9. A step needs 3.3 s of math. FSDP gathers weights over the cards,
        50 GB/s each.

        **Wanted** the stages |P| that the rule of the chapter comes to, as a power of
        two: 1 for FSDP and tensor parallelism alone, else the fewest that fit with
        ZeRO-1 and tensor parallelism over a node.
    """,
    given=stated(chips.H100, "flops.bf16", "hbm_bytes", "scale_out_bandwidth"),
    stub="stages = ...",
    unit="stages",
    expected=_by_hand,
    slips=(
        Slip(
            "FSDP and tensor parallelism",
            lambda right: 1,
            "128 sequences make |Y| = 8. How long do three times an eighth of the "
            "weights take over a card, beside 3.3 s?",
        ),
        Slip(
            "gradients forgotten",
            lambda right: 2,
            "Weights and gradients of a stage stay on its chips, besides the state.",
        ),
        Slip("more than it takes", lambda right: 8, "Fewer stages fit, and wait less."),
        Slip(
            "as published",
            lambda right: 16,
            "That was for 16,384 GPUs and no recomputation; here fewer fit.",
        ),
    ),
    hint="First the sequences, then seconds over a card against math, then weights and "
    "gradients of a stage.",
    solution="""
        With 128 sequences for 1,024 chips, |Y| must be 8. FSDP then sends 3 times 2
        bytes of an eighth of the params over each card, which takes 6.1 s next to 3.3 s
        of math. So a pipeline: with 2 stages weights and gradients take 94 GiB, with 4
        it is 47, and the state 4 more.

        ```python
        params = 405_853_388_800
        stages = 1
        if 3 * 2 * params / 8 / 50e9 > 3.3:
            stages = 2
            while 4 * params / (8 * stages) + 12 * params / 1024 > (80 - 9) * 2**30:
                stages *= 2
        ```
    """,
)

_BATCH = 15_360 * 4096
_CUT = min(8 * chips.H800.scale_out_bandwidth, chips.H800.scale_up_bandwidth)
_FED = (
    6 / (3 * 2) * DEEPSEEK_V3.active("all") / DEEPSEEK_V3.params * _BATCH * _CUT
) / chips.H800.flops["bf16"]

FED = Number(
    id="14.12",
    title="What FSDP alone can feed",
    points=2,
    task=f"""
        **Given** DeepSeek-V3, {DEEPSEEK_V3.params:,} params, of which a token meets
        {DEEPSEEK_V3.active("all"):,}, in bf16, nothing computed again, at its batch of
        15,360 sequences of 4,096 tokens, on nodes of eight H800. A GPU has a card of
        `chips.H800.scale_out_bandwidth` and takes in `chips.H800.scale_up_bandwidth`
        over NVLink, at the same time. Factors (n − 1)/n and attention are left out.

        **Wanted** the GPUs that FSDP alone can use before the network takes longer than
        the math.
    """,
    given=stated(chips.H800, "flops.bf16", "scale_out_bandwidth", "scale_up_bandwidth"),
    stub="gpus = ...",
    unit="GPUs",
    expected=lambda: _FED,
    slips=(
        scaled(
            "by the cards",
            8 * chips.H800.scale_out_bandwidth / chips.H800.scale_up_bandwidth,
            "Eight cards bring 400 GB/s into a node. What carries it into each GPU?",
        ),
        scaled(
            "by one card",
            chips.H800.scale_out_bandwidth / chips.H800.scale_up_bandwidth,
            "The eight cards of a node share out what comes in.",
        ),
        scaled(
            "as if it were dense",
            DEEPSEEK_V3.params / DEEPSEEK_V3.active("all"),
            "FSDP gathers all of the parameters, and computes with the active ones.",
        ),
        scaled("one gather", 3, "Weights are gathered twice, gradients scattered."),
        scaled("8 FLOPs", 8 / 6, "Nothing is computed again here."),
        scaled(
            "in fp8",
            1 / 2,
            "The peak in bf16 is asked for.",
        ),
        scaled(
            "two of three rounds",
            3 / 2,
            "Weights are gathered twice, and their gradients are scattered as well.",
        ),
        Slip(
            "tokens of a GPU",
            lambda right: _BATCH / right,
            "So many tokens each GPU needs. How many GPUs does the batch feed?",
        ),
    ),
    hint="Network seconds do not depend on the GPUs; math seconds of a step are the "
    "batch's over all of them.",
    solution=f"""
        ```python
        from shardmath.hardware import chips

        chip = chips.H800
        into = min(8 * chip.scale_out_bandwidth, chip.scale_up_bandwidth)
        network = 3 * 2 * {DEEPSEEK_V3.params} / into
        math = 6 * {DEEPSEEK_V3.active("all")} * 15_360 * 4096 / chip.flops["bf16"]
        gpus = math / network
        ```

        It was trained on 2,048.
    """,
)


def _budget(bubble: float = 7 / 64, tensor_share: float = 1, data_share: float = 1):
    tokens, chips_, t = 256 * 4096, 256, 4096
    math_ = 6 * _P70 * tokens / chips_ / chips.H100.flops["bf16"]
    sums = 8 * 2 * 8192 * 80 * t * 8 * 7 / 8 / chips.H100.scale_up_bandwidth
    once = 2 * 2 * _P70 / 64 * 3 / 4 / chips.H100.scale_out_bandwidth
    return math_ * (1 + bubble) + tensor_share * sums + data_share * once


BUDGET = Number(
    id="14.13",
    title="A step with nothing hidden",
    points=2,
    task=r"""
        **Given** Llama 3.1 70B, 70,553,706,496 params, $L = 80$, $D = 8192$, in bf16 on
        256 H100 in nodes of 8: ZeRO-1 over $|X| = 4$, eight even stages, tensor
        parallelism with sequence parallelism over the 8 GPUs of a node. A step has 256
        sequences of 4,096 tokens, one to a microbatch, under 1F1B; nothing is computed
        again. The math takes 6 FLOPs per parameter and token at the peak,
        `chips.H100.flops["bf16"]`; gradients and weights cross the cards once a step,
        each GPU's by its own; sends between stages are left out.

        **Wanted** the seconds of a step if nothing is hidden: math, bubble, sums over
        NVLink, and the data axis.
    """,
    given=stated(chips.H100, "flops.bf16", "scale_up_bandwidth", "scale_out_bandwidth"),
    stub="seconds = ...",
    unit="s",
    rtol=0.004,
    expected=_budget,
    slips=(
        Slip(
            "no bubble",
            lambda right: _budget(bubble=0),
            "Seven microbatches pass before the last stage starts.",
        ),
        Slip(
            "the bubble as a share of the step",
            lambda right: _budget(bubble=7 / (64 - 7)),
            "(p − 1)/M is idle over busy time, not over the whole step.",
        ),
        Slip(
            "gathered again",
            lambda right: _budget(tensor_share=10 / 8),
            "Nothing is computed again, and what was gathered is kept.",
        ),
        Slip(
            "no data axis",
            lambda right: _budget(data_share=0),
            "Gradients are scattered and weights gathered, over the cards.",
        ),
        Slip(
            "one pass of the data axis",
            lambda right: _budget(data_share=1 / 2),
            "Gradients are scattered, and then the new weights gathered.",
        ),
        Slip(
            "no sums",
            lambda right: _budget(tensor_share=0),
            "Tensor parallelism gathers and scatters in every layer.",
        ),
        Slip(
            "all of it hidden",
            lambda right: _budget(tensor_share=0, data_share=0),
            "That is the longest part alone. Here nothing is hidden: parts add up.",
        ),
        Slip(
            "sums of one chip's tokens",
            lambda right: _budget(tensor_share=1 / 8),
            "A group of 8 passes all of its tokens through every layer.",
        ),
        Slip(
            "all layers on every stage",
            lambda right: _budget(tensor_share=8),
            "A stage has 10 layers, and eight times the tokens pass.",
        ),
        Slip(
            "all sequences in one pipeline",
            lambda right: _budget(bubble=7 / 256),
            "The 256 sequences are shared out over four pipelines. How many "
            "microbatches has each?",
        ),
    ),
    hint="A chip has t = 4,096 tokens of a step. Use (14.1), and (12.1).",
    solution="""
        ```python
        from shardmath.hardware import chips

        chip, params, t = chips.H100, 70_553_706_496, 4096
        math = 6 * params * t / chip.flops["bf16"]
        bubble = 7 / (256 // 4)
        sums = 8 * 2 * 8192 * 80 * t * 8 * 7 / 8 / chip.scale_up_bandwidth
        data = 2 * 2 * params / (8 * 8) * 3 / 4 / chip.scale_out_bandwidth
        seconds = math * (1 + bubble) + sums + data
        ```
    """,
)
