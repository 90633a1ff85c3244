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
        "meshes of several axes: their memory and traffic, the best mesh by hand, the "
        "links that set the limit, and three programs graded on what they compile to"
    ),
    intro="""
        from the budget of a mesh to the best mesh by hand. Answers are in base units:
        bytes, seconds, tokens.

        In 14.8 to 14.10 you write programs for eight virtual devices with two mesh
        axes. They are graded on their results and on each collective that XLA compiles
        them to.
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
        **Given** Llama 3.1 70B with 70,553,706,496 parameters. Weights and gradients
        are in bf16, and Adam keeps its state in f32, with a copy of the weights. The
        model is trained on 256 chips with ZeRO-1 over $|X| = 8$, a pipeline of
        $|P| = 4$ equal stages, and tensor parallelism over $|Y| = 8$.

        **Wanted** the bytes of weights, gradients and optimizer state on one chip.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _held(_P70, 8, 4, 8),
    slips=(
        Slip(
            "all of it over all chips",
            lambda right: 16 * _P70 / 256,
            "ZeRO-1 divides only the optimizer state over the data axis. Which other "
            "chips hold the same weights?",
        ),
        Slip(
            "nothing over the data axis",
            lambda right: 16 * _P70 / 32,
            "Did you leave out ZeRO-1? It divides 12 of the 16 bytes over the data "
            "axis.",
        ),
        Slip(
            "gradients split too",
            lambda right: 2 * _P70 / 32 + 14 * _P70 / 256,
            "That is ZeRO-2, which splits the gradients as well.",
        ),
        Slip(
            "two moments for the state",
            lambda right: 4 * _P70 / 32 + 8 * _P70 / 256,
            "Besides its two moments, Adam keeps the weights in f32.",
        ),
        Slip(
            "state alone",
            lambda right: 12 * _P70 / 256,
            "That is only the optimizer state. A chip also holds weights and gradients "
            "in bf16.",
        ),
        Slip(
            "gradients in fp32",
            lambda right: 6 * _P70 / 32 + 12 * _P70 / 256,
            "Some systems add up gradients in f32, and then weights and gradients take "
            "six bytes per parameter. Here gradients are in bf16.",
        ),
        scaled(
            "the pipeline left out",
            4,
            "Did you leave out the pipeline? Each chip has the layers of only one "
            "stage.",
        ),
        scaled(
            "tensor parallelism left out",
            8,
            "Did you leave out tensor parallelism? Eight chips share the weights of "
            "each layer.",
        ),
    ),
    hint="Tensor and pipeline parallelism divide all 16 bytes of a parameter. Which "
    "12 of them does the data axis divide as well?",
    solution="""
        Tensor and pipeline parallelism divide everything. ZeRO-1 divides only the 12
        bytes of optimizer state over the data axis, so all chips along that axis hold
        the same 4 bytes of weight and gradient.

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
        **Given** a model of $P$ parameters, with weights and gradients in bf16 and
        Adam's state in f32. Its mesh has $x$ chips along the data axis, $p$ equal
        pipeline stages, and $y$ chips along the axis of tensor parallelism. The
        argument `shards` is `"zero-1"` or `"fsdp"`.

        **Wanted** a function that returns the bytes of weights, gradients and optimizer
        state that one chip holds when the backward pass ends.
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
            "Did you swap ZeRO-1 and FSDP? FSDP divides everything over the data axis, "
            "and ZeRO-1 divides only the optimizer state.",
        ),
        Slip(
            "ZeRO-1 as if nothing were split",
            lambda P, x, p, y, shards: (
                16 * P / (p * y * (x if shards == "fsdp" else 1))
            ),
            "Did you split anything for ZeRO-1? Over the data axis, it splits the "
            "optimizer state, which is 12 of the 16 bytes.",
        ),
        Slip(
            "pipeline forgotten",
            lambda P, x, p, y, shards: (
                p * (16 * P / (x * p * y) if shards == "fsdp" else _held(P, x, p, y))
            ),
            "Did you leave out the pipeline? A stage has only its own layers.",
        ),
        Slip(
            "tensor parallelism forgotten",
            lambda P, x, p, y, shards: (
                y * (16 * P / (x * p * y) if shards == "fsdp" else _held(P, x, p, y))
            ),
            "Did you leave out tensor parallelism? Each chip has only its part of "
            "every weight matrix.",
        ),
        Slip(
            "two moments for the state",
            lambda P, x, p, y, shards: (
                12 * P / (x * p * y)
                if shards == "fsdp"
                else 4 * P / (y * p) + 8 * P / (x * y * p)
            ),
            "Besides its two moments, Adam keeps the weights in f32.",
        ),
        Slip(
            "gradients split too",
            lambda P, x, p, y, shards: (
                16 * P / (x * p * y)
                if shards == "fsdp"
                else 2 * P / (y * p) + 14 * P / (x * y * p)
            ),
            "Did you split the gradients under ZeRO-1? That is ZeRO-2.",
        ),
        Slip(
            "gradients forgotten",
            lambda P, x, p, y, shards: (
                14 * P / (x * p * y)
                if shards == "fsdp"
                else 2 * P / (y * p) + 12 * P / (x * y * p)
            ),
            "Did you forget the gradients? In bf16 they take two more bytes per "
            "parameter.",
        ),
        Slip(
            "gradients in fp32",
            lambda P, x, p, y, shards: (
                18 * P / (x * p * y)
                if shards == "fsdp"
                else 6 * P / (y * p) + 12 * P / (x * y * p)
            ),
            "If gradients are added up in f32, weights and gradients take six bytes "
            "per parameter. Here gradients are in bf16.",
        ),
    ),
    hint="Each parameter takes 16 bytes. Which of them does each axis divide?",
    solution="""
        FSDP divides all 16 bytes of a parameter over all three axes. ZeRO-1 doesn't
        divide the 4 bytes of weight and gradient over the data axis.

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
        **Given** Llama 3.1 405B with $L = 126$ and $D = 16{,}384$, in bf16. Nothing is
        computed again. There are 1,024 tokens per chip, and tensor parallelism with
        sequence parallelism runs over $|Y| = 8$. The eight GPUs of a group are in eight
        different nodes, so everything that they send crosses their network cards. Each
        card sends `chips.H100.scale_out_bandwidth` bytes/s.

        **Wanted** the seconds that the collectives of tensor parallelism take in a
        step.
    """,
    given=stated(chips.H100, "scale_out_bandwidth", "scale_up_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: _SUMS / chips.H100.scale_out_bandwidth,
    slips=(
        Slip(
            "over NVLink",
            lambda right: _SUMS / chips.H100.scale_up_bandwidth,
            "That would be the time inside a node. Which link connects two nodes?",
        ),
        scaled(
            "tokens of one chip",
            1 / 8,
            "Did you count the tokens of one chip? A group passes the tokens of all "
            "its eight chips through every layer.",
        ),
        scaled(
            "one pass",
            1 / 2,
            "Did you count only one pass? The backward pass moves as much as the "
            "forward pass.",
        ),
        scaled(
            "one block",
            1 / 2 / 2,
            "Did you count only one block in one pass? Each layer has two blocks, and "
            "there are two passes.",
        ),
        scaled(
            "own part sent too",
            8 / 7,
            "A chip doesn't send anything to itself, so one of its n parts stays "
            "where it is.",
        ),
        scaled(
            "under full remat",
            11 / 8,
            "That would be right under full remat. Here nothing is computed again.",
        ),
        scaled(
            "gathered again",
            10 / 8,
            "Did you gather again in the backward pass? Here the gathered arrays are "
            "kept.",
        ),
    ),
    hint="Each layer has 8 gathers and scatters, and each of them moves an array of "
    "the group's tokens times D. What share of the array does a chip send?",
    solution="""
        Every chip of a group works on the tokens of all eight chips. Each of the 126
        layers has 8 gathers and scatters, and in each of them a chip sends seven
        eighths of the array.

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
    title="What context parallelism does to the bubble",
    task=r"""
        **Given** 16,384 chips with tensor parallelism over 8, a pipeline of 16 stages,
        context parallelism over 16, and data parallelism over the rest. A batch has
        2,048 sequences, one per microbatch. The schedule is 1F1B, and the stages are
        equal.

        **Wanted** the bubble, which is idle time over busy time.
    """,
    stub="bubble = ...",
    unit="",
    expected=lambda: _BUBBLE,
    slips=(
        scaled(
            "context left out",
            16,
            "Did you leave out context parallelism? Chips that share a sequence belong "
            "to the same pipeline. How many sequences does a pipeline get?",
        ),
        Slip(
            "share of the step",
            lambda right: right / (1 + right),
            "That is idle time over the time of the whole step. The question asks for "
            "idle time over busy time.",
        ),
        scaled(
            "all stages wait",
            16 / 15,
            "Did you count every stage? A stage doesn't wait for itself.",
        ),
        Slip(
            "all sequences in one pipeline",
            lambda right: 15 / 2048,
            "The 2,048 sequences are divided among several pipelines. How many "
            "microbatches does each of them have?",
        ),
        scaled(
            "tensor parallelism left out",
            8,
            "Did you leave out tensor parallelism? Eight chips work on the same "
            "sequence, so there are fewer pipelines.",
        ),
    ),
    hint="Among how many pipelines are the 2,048 sequences divided?",
    solution="""
        Chips that share a sequence belong to the same pipeline, so a pipeline has
        $8\\cdot16\\cdot16$ chips. The sequences are divided among all pipelines.

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
        **Given** $n$ chips, a batch of `seqs` sequences, and nodes of `node` chips,
        where all three numbers are powers of two. Tensor parallelism makes groups of
        $|Y|$ chips, FSDP runs over these groups, and each group needs a whole sequence.

        **Wanted** a function that returns the smallest $|Y| = 1, 2, 4 \dots$ within a
        node for which every group has a whole sequence. If there is none, it returns 0.
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
            "Did you always take the whole node? The question asks for the smallest "
            "|Y|, because tensor parallelism has a cost.",
        ),
        Slip(
            "beyond the node",
            lambda n, seqs, node: max(1, n // seqs),
            "Did you check the size of the node? Tensor parallelism must not leave it.",
        ),
        Slip(
            "never none",
            lambda n, seqs, node: min(node, max(1, n // seqs)),
            "If the node is too small, there is no such mesh. What should your "
            "function return then?",
        ),
    ),
    hint="There are n / |Y| groups. At most how many groups can the sequences fill?",
    solution="""
        There must not be more groups than sequences, so $|Y|$ has to be at least $n$
        divided by the number of sequences. It must also fit in a node.

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
    title="FSDP alone, with total and active parameters",
    task=f"""
        **Given** Kimi K2 with {KIMI_K2.params:,} parameters, of which a token uses
        {KIMI_K2.active("all"):,}. It trains in bf16 on TPU v5p under FSDP alone, and
        nothing is computed again. Each chip of the torus receives
        `chips.TPU_V5P.scale_up_bandwidth` bytes/s. The weights are gathered for both
        passes, and their gradients are scattered once. Leave out the attention scores
        and the factor (n − 1)/n.

        **Wanted** the tokens per chip at which the network and the math take equally
        long.
    """,
    given=stated(chips.TPU_V5P, "flops.bf16", "scale_up_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    expected=lambda: _KIMI,
    slips=(
        scaled(
            "as if it were dense",
            KIMI_K2.active("all") / KIMI_K2.params,
            "That would be right for a dense model. FSDP gathers all parameters, but "
            "a token uses only the active ones.",
        ),
        scaled(
            "one gather",
            1 / 3,
            "Did you count only one gather? Weights are gathered for both passes, and "
            "their gradients are scattered.",
        ),
        scaled(
            "8 FLOPs",
            6 / 8,
            "Did you count eight FLOPs per parameter and token? Nothing is computed "
            "again here.",
        ),
        scaled(
            "one axis of the torus",
            3,
            "Did you use only one axis of the torus? FSDP alone uses all three axes.",
        ),
        scaled(
            "one byte per value",
            1 / 2,
            "Did you take one byte per value? A value in bf16 takes two.",
        ),
        scaled(
            "two of three rounds",
            2 / 3,
            "Did you count only two of the three collectives? Weights are gathered "
            "twice, and their gradients are scattered once.",
        ),
    ),
    hint=(
        "FSDP moves 3 · 2 bytes for every parameter, and every active parameter takes "
        "6 FLOPs per token. When do the network and the math take equally long?"
    ),
    solution=f"""
        FSDP moves all parameters, however many tokens there are. The math grows with
        the tokens and uses only the active parameters, so we divide the time of the
        network by the time of the math for one token.

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
    title="The gain from a larger NVLink domain",
    points=2,
    task="""
        **Given** GB200s in NVLink domains of 8 GPUs and of 64 GPUs. Each GPU has a
        network card with `chips.GB200.scale_out_bandwidth` bytes/s and receives
        `chips.GB200.scale_up_bandwidth` bytes/s over NVLink. FSDP alone gathers the
        weights over many domains. The cards of a domain share the traffic that comes
        in, and at the same time the GPUs pass it on over NVLink. Leave out the factors
        (n − 1)/n.

        **Wanted** the factor by which the larger domains raise the number of GPUs that
        a fixed batch can feed, that is, on which the network takes no longer than the
        math.
    """,
    given=stated(chips.GB200, "scale_out_bandwidth", "scale_up_bandwidth"),
    stub="times = ...",
    unit="",
    expected=lambda: _DOMAIN / _NODE,
    slips=(
        Slip(
            "cards alone",
            lambda right: 8.0,
            "Did you compare only the cards? Each GPU has to receive all of the "
            "weights. Over which links?",
        ),
        Slip(
            "NVLink over one card",
            lambda right: (
                chips.GB200.scale_up_bandwidth / chips.GB200.scale_out_bandwidth
            ),
            "Did you count only one card? In the small domain, eight cards work "
            "together.",
        ),
        Slip(
            "nothing",
            lambda right: 1.0,
            "Did you take NVLink as the limit in both domains? In the small domain, "
            "the eight cards bring in less than NVLink can carry.",
        ),
    ),
    hint="The rate into each GPU is the smaller of two rates. Which two are they?",
    solution="""
        Every GPU has to receive all of the weights, so the slower of two rates limits
        it. At twice this rate, the same batch can feed twice as many GPUs. Eight cards
        bring 400 GB/s into a domain, and so into each GPU. Sixty-four cards would bring
        3,200 GB/s, but NVLink carries only 900 GB/s into each GPU.

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
        $\text{up}[D_X, F_Y]$, with FSDP over $X$ and tensor parallelism over $Y$.

        **Wanted** the function that every device runs. It returns the device's part of
        $u[B_X, F_Y] = z\,\text{up}$. It uses exactly one AllGather over $X$, of $4DF/2$
        bytes.
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
            "Did you gather over both axes? A device needs only its own half of the "
            "columns.",
        ),
        Slip(
            "tokens gathered too",
            lambda z, up: [
                Collective("all_gather", ("X",), 4 * math.prod(up) / 2, 4),
                Collective("all_gather", ("X",), 4 * math.prod(z), 4),
            ],
            "Did you gather the tokens as well? A device computes only for its own "
            "tokens.",
        ),
    ),
    hint="A device has its columns of `up`, but only some of their rows. Over which "
    "axis does it gather the other rows?",
    solution="""
        FSDP splits the rows over $X$, so a device gathers them over $X$. The columns
        stay split over $Y$, because the device computes only these columns of $u$.

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

        **Wanted** the function that every device runs. It returns the device's part of
        $m[B_X, D] = \max(z\,\text{up}, 0)\,\text{down}$. It uses two AllGathers over
        $X$, of $4DF/2$ bytes each, and one AllReduce over $Y$, of $4BD/4$ bytes.
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
            "Did you gather the weights over both axes? They should stay split over Y.",
        ),
        Slip(
            "hidden layer gathered",
            lambda z, up, down: [
                Collective("all_gather", ("X",), 4 * math.prod(up) / 2, 4),
                Collective("all_gather", ("X", "Y"), 4 * math.prod(down), 8),
                Collective("all_gather", ("Y",), 4 * z[0] * up[1] / 4, 2),
            ],
            "Did you gather the hidden layer? A device's rows of the second matrix "
            "match its own columns of the hidden layer.",
        ),
    ),
    values=(
        Slip(
            "no activation",
            lambda z, up, down: z @ up @ down,
            "That is the product of all three matrices. Between the two matmuls, "
            "negative values become zero.",
        ),
    ),
    hint="Gather both weights over X. Each device's result is then one term of a sum "
    "over Y. Which collective adds up the terms?",
    solution="""
        Each device computes its own columns of the hidden layer and multiplies them by
        the matching rows of $\\text{down}$. That gives one term of a sum, and an
        AllReduce over $Y$ adds up the terms.

        ```python
        def mlp(z, up, down):
            up = jax.lax.all_gather(up, "X", axis=0, tiled=True)
            down = jax.lax.all_gather(down, "X", axis=1, tiled=True)
            return jax.lax.psum(jax.nn.relu(z @ up) @ down, "Y")
        ```
    """,
)


def _head_shapes(rng):
    N, S = 2 * rng.randint(1, 3), 4 * rng.randint(2, 5)
    H = rng.choice([8, 24, 40])  # its root is no number of devices
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
        **Given** each device's part of $Q$, $K$ and $V[N_Y, S_X, H]$, with heads split
        over $Y$ and tokens over $X$.

        **Wanted** the function that every device runs. It returns the device's part of
        $A[N_Y, S_X, H] = (QK^\top)V$ for each head, without a softmax. Gather keys and
        values over $X$ with two AllGathers of $4NSH/2$ bytes each, or with a single one
        of as many bytes in all.
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
            "Did you gather the queries as well? A device computes the results of "
            "only its own queries.",
        ),
        Slip(
            "a sum of products of keys and values",
            lambda Q, K, V: [
                Collective("all_reduce", ("X",), 4 * K[0] / 2 * K[2] ** 2, 4)
            ],
            "Without a softmax this gives the right result. But normally there is a "
            "softmax between the scores and V, so gather keys and values here.",
        ),
        Slip(
            "all heads gathered",
            lambda Q, K, V: [
                Collective("all_gather", ("X", "Y"), 4 * math.prod(K), 8, times=2)
            ],
            "Did you gather all heads? A head needs only its own keys and values.",
        ),
    ),
    values=(
        Slip(
            "a softmax",
            _with_a_softmax,
            "Did you use a softmax? The task leaves it out, so the scores themselves "
            "are the weights.",
        ),
        Slip(
            "scaled scores",
            lambda Q, K, V: (Q @ K.transpose(0, 2, 1)) @ V / Q.shape[2] ** 0.5,
            "Did you divide the scores by the square root of H? The task leaves this "
            "out, together with the softmax.",
        ),
    ),
    hint="The queries stay where they are. What do they need from the devices that "
    "hold the other tokens?",
    solution="""
        A query needs the keys and values of all tokens in its own head. So both keys
        and values are gathered over $X$, and nothing is sent over $Y$.

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
        **Given** Llama 3.1 405B with 405,853,388,800 parameters on 1,024 H100s in nodes
        of 8. A step has 128 sequences of 8,192 tokens, with full remat, everything in
        bf16 and Adam in f32. A GPU has 80 GiB, but saved activations, gathered weights
        and buffers take 9 GiB. A step needs 3.3 s of math. FSDP gathers weights over
        the network cards, at 50 GB/s each.

        **Wanted** the number of stages |P|, a power of two, that the chapter's first
        three questions lead to. It is 1 if the traffic of FSDP with tensor parallelism
        takes no longer than the math. Otherwise it is the smallest number that fits
        with ZeRO-1 and tensor parallelism over a node.
    """,
    given=stated(chips.H100, "flops.bf16", "hbm_bytes", "scale_out_bandwidth"),
    stub="stages = ...",
    unit="stages",
    expected=_by_hand,
    slips=(
        Slip(
            "FSDP and tensor parallelism",
            lambda right: 1,
            "With 128 sequences, |Y| has to be 8. FSDP then sends three times an "
            "eighth of the weights over each card. How long does that take, compared "
            "with 3.3 s of math?",
        ),
        Slip(
            "gradients forgotten",
            lambda right: 2,
            "Did you forget the gradients? A stage's weights and gradients both stay "
            "on its chips, besides the optimizer state.",
        ),
        Slip(
            "more than it takes",
            lambda right: 8,
            "Fewer stages also fit, and they have a smaller bubble.",
        ),
        Slip(
            "as published",
            lambda right: 16,
            "That number was published for 16,384 GPUs without recomputation. Here "
            "fewer stages fit.",
        ),
    ),
    hint="First, how many groups can the sequences fill? Second, does FSDP's traffic "
    "over a card take longer than the math? Third, how much memory do the weights and "
    "gradients of a stage take?",
    solution="""
        With 128 sequences for 1,024 chips, |Y| must be 8. FSDP then sends 3 times 2
        bytes for an eighth of the parameters over each card, which takes 6.1 s,
        compared with 3.3 s of math. So we need a pipeline. With 2 stages, the weights
        and gradients take 94 GiB, which is too much. With 4 stages they take 47 GiB,
        and the optimizer state takes 4 GiB more.

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
        **Given** DeepSeek-V3 with {DEEPSEEK_V3.params:,} parameters, of which a token
        uses {DEEPSEEK_V3.active("all"):,}, in bf16. Its batch has 15,360 sequences of
        4,096 tokens, and nothing is computed again. The nodes have eight H800s each. A
        GPU has a network card with `chips.H800.scale_out_bandwidth` bytes/s, and at the
        same time it receives `chips.H800.scale_up_bandwidth` bytes/s over NVLink. Leave
        out the factors (n − 1)/n and attention.

        **Wanted** the number of GPUs that FSDP alone can use before the network takes
        longer than the math.
    """,
    given=stated(chips.H800, "flops.bf16", "scale_out_bandwidth", "scale_up_bandwidth"),
    stub="gpus = ...",
    unit="GPUs",
    expected=lambda: _FED,
    slips=(
        scaled(
            "by the cards",
            8 * chips.H800.scale_out_bandwidth / chips.H800.scale_up_bandwidth,
            "Eight cards bring 400 GB/s into a node. Which link carries these bytes "
            "into each GPU?",
        ),
        scaled(
            "by one card",
            chips.H800.scale_out_bandwidth / chips.H800.scale_up_bandwidth,
            "Did you count only one card? The eight cards of a node share the incoming "
            "traffic.",
        ),
        scaled(
            "as if it were dense",
            DEEPSEEK_V3.params / DEEPSEEK_V3.active("all"),
            "That would be right for a dense model. FSDP gathers all parameters, but "
            "a token uses only the active ones.",
        ),
        scaled(
            "one gather",
            3,
            "Did you count only one gather? Weights are gathered twice, and their "
            "gradients are scattered.",
        ),
        scaled(
            "8 FLOPs",
            8 / 6,
            "Did you count eight FLOPs per parameter and token? Nothing is computed "
            "again here.",
        ),
        scaled(
            "in fp8",
            1 / 2,
            "Did you use the fp8 peak? The question asks for bf16.",
        ),
        scaled(
            "two of three rounds",
            3 / 2,
            "Did you count only two of the three collectives? Weights are gathered "
            "twice, and their gradients are scattered once.",
        ),
        Slip(
            "tokens of a GPU",
            lambda right: _BATCH / right,
            "That is the number of tokens that each GPU needs. How many GPUs does the "
            "batch feed?",
        ),
    ),
    hint="The time of the network doesn't depend on the number of GPUs, but the math "
    "of the batch is divided among them. At which number do both take equally long?",
    solution=f"""
        FSDP moves all the weights into every GPU, however many GPUs there are. The math
        of the batch is divided among them, so the number of GPUs is the time of the
        math on a single GPU divided by the time of the network.

        ```python
        from shardmath.hardware import chips

        chip = chips.H800
        into = min(8 * chip.scale_out_bandwidth, chip.scale_up_bandwidth)
        network = 3 * 2 * {DEEPSEEK_V3.params} / into
        math = 6 * {DEEPSEEK_V3.active("all")} * 15_360 * 4096 / chip.flops["bf16"]
        gpus = math / network
        ```

        DeepSeek-V3 was trained on 2,048 GPUs.
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
        **Given** Llama 3.1 70B with 70,553,706,496 parameters, $L = 80$ and $D = 8192$,
        in bf16 on 256 H100s in nodes of 8. The mesh combines ZeRO-1 over $|X| = 4$,
        eight equal stages, and tensor parallelism with sequence parallelism over the 8
        GPUs of a node. A step has 256 sequences of 4,096 tokens, one per microbatch,
        under 1F1B, and nothing is computed again. The math takes 6 FLOPs per parameter
        and token at the peak, `chips.H100.flops["bf16"]`. Gradients and weights cross
        the network cards once per step, and each GPU uses its own card. Leave out the
        sends between stages.

        **Wanted** the time of a step in seconds if no communication is hidden. Add up
        the math, the bubble, the tensor-parallel collectives over NVLink, and the
        collectives of the data axis.
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
            "Did you leave out the bubble? The last stage can't start until the first "
            "microbatch has passed the other seven.",
        ),
        Slip(
            "the bubble as a share of the step",
            lambda right: _budget(bubble=7 / (64 - 7)),
            "(p − 1)/M is idle time over busy time, not over the time of the whole "
            "step. If your bubble is right, look at the data axis: a chip sends three "
            "quarters of its weights, in bf16.",
        ),
        Slip(
            "gathered again",
            lambda right: _budget(tensor_share=10 / 8),
            "Did you gather again in the backward pass? Nothing is computed again, "
            "and the gathered arrays are kept.",
        ),
        Slip(
            "no data axis",
            lambda right: _budget(data_share=0),
            "Did you leave out the data axis? Gradients are scattered and weights are "
            "gathered over the cards.",
        ),
        Slip(
            "one pass of the data axis",
            lambda right: _budget(data_share=1 / 2),
            "Did you count only half of the data axis? The gradients are scattered, "
            "and then the new weights are gathered.",
        ),
        Slip(
            "no sums",
            lambda right: _budget(tensor_share=0),
            "Did you leave out tensor parallelism? It gathers and scatters in every "
            "layer.",
        ),
        Slip(
            "all of it hidden",
            lambda right: _budget(tensor_share=0, data_share=0),
            "That is only the math with its bubble. Here nothing is hidden, so the "
            "communication comes on top.",
        ),
        Slip(
            "sums of one chip's tokens",
            lambda right: _budget(tensor_share=1 / 8),
            "Did you count the tokens of one chip? A group of 8 chips passes all of "
            "its tokens through every layer.",
        ),
        Slip(
            "all layers on every stage",
            lambda right: _budget(tensor_share=8),
            "Did you count all 80 layers for all the tokens of a pipeline? A stage "
            "has only 10 layers, and eight times the tokens pass through them.",
        ),
        Slip(
            "all sequences in one pipeline",
            lambda right: _budget(bubble=7 / 256),
            "The 256 sequences are divided among four pipelines. How many "
            "microbatches does each of them have?",
        ),
    ),
    hint="A step has t = 4,096 tokens per chip. What do (14.1) and (12.1) say about "
    "its traffic and its bubble?",
    solution="""
        Nothing is hidden, so the parts of the step add up: the math with its bubble,
        the tensor-parallel collectives over NVLink, and the collectives of the data
        axis over the cards.

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
