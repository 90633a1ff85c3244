"""Questions of chapter 09, "FSDP"."""

import math

from shardmath.collectives import Collective
from shardmath.exercises.kinds import (
    Chapter,
    Function,
    Number,
    Sharded,
    Slip,
    scaled,
    slips,
    stated,
)
from shardmath.hardware import chips
from shardmath.training import fsdp, hybrid, step, zero
from shardmath.transformer import LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B

CHAPTER = Chapter(
    title="FSDP",
    topics=(
        "FSDP: bytes of each stage of ZeRO, gathers and scatters, prefetching, tokens "
        "per chip that hide the traffic, hybrid sharding, and five programs graded on "
        "what they compile to"
    ),
    intro="""
        from the stages of ZeRO to the batch that fits. Answers are in base units:
        bytes, seconds, tokens. Each parameter takes 2 bytes for its weight and 2 for
        its gradient, both in bf16, and 12 for its optimizer state, which is a copy of
        the weight and two moments in f32.

        In 09.10 to 09.14 you write programs for eight virtual devices. They are graded
        on their results and on each collective that XLA compiles them to. All arrays
        are in float32.
    """,
    setup="""
        import jax
        import jax.numpy as jnp

        from shardmath.exercises import check, report
        from shardmath.hardware import chips

        jax.config.update("jax_num_cpu_devices", 8)  # eight virtual chips
    """,
)

EIGHT = {"X": 8}


def _derived(strategy, model, mesh, **more):
    """A step of the model, each chip with one sequence of 4,096 tokens."""
    seqs = math.prod(mesh.values()) * more.get("microbatches", 1)
    return step(strategy, model, mesh, seqs, 4096, attention="causal", **more)


def _at_stage_one() -> float:
    parts = _derived(zero(1, "X"), LLAMA_3_8B, {"X": 64}).memory.parts
    return sum(parts[part] for part in ("state", "gradients", "weights"))


HELD = Number(
    id="09.1",
    title="What a chip holds at stage 1",
    task="""
        **Given** Llama 3.1 8B with 8,030,261,248 parameters, trained with ZeRO-1 over
        64 chips. Each parameter takes 12 bytes for its optimizer state, 2 for its
        gradient and 2 for its weight.

        **Wanted** how many bytes of optimizer state, gradients and weights each chip
        holds in all.
    """,
    stub="nbytes = ...",
    unit="bytes",
    rtol=0.005,
    expected=_at_stage_one,
    slips=(
        scaled(
            "stage 2",
            (2 + 14 / 64) / (4 + 12 / 64),
            "At stage 1, the gradients are still whole on every chip.",
        ),
        scaled(
            "stage 3",
            16 / 64 / (4 + 12 / 64),
            "At stage 1, the weights and the gradients are still whole on every chip.",
        ),
        scaled(
            "nothing split",
            16 / (4 + 12 / 64),
            "That is what a chip holds under plain data parallelism. Which part does "
            "stage 1 split?",
        ),
        scaled(
            "the state alone",
            12 / 64 / (4 + 12 / 64),
            "Weights and gradients are on the chip, too.",
        ),
        scaled(
            "the split state forgotten",
            4 / (4 + 12 / 64),
            "The optimizer state is split, but it isn't gone. Each chip holds its "
            "part.",
        ),
        scaled(
            "the copy left out",
            (4 + 8 / 64) / (4 + 12 / 64),
            "Besides two moments, the optimizer keeps a copy of the weights in f32.",
        ),
        scaled(
            "the other parts split",
            (12 + 4 / 64) / (4 + 12 / 64),
            "Which part is the largest? Stage 1 splits that part.",
        ),
        scaled(
            "16 bytes of state",
            (4 + 16 / 64) / (4 + 12 / 64),
            "Only 12 of a parameter's 16 bytes are optimizer state. You counted the "
            "gradient and the weight twice, once whole and once split.",
        ),
    ),
    hint="Stage 1 splits only the optimizer state. What does each chip still hold in "
    "full?",
    solution="""
        Stage 1 splits only the optimizer state over the 64 chips.

        ```python
        nbytes = (12 / 64 + 2 + 2) * 8_030_261_248
        ```
    """,
)


def _by_stage(stage: int, params: int, n: int) -> float:
    parts = 12, 2, 2  # state, gradients, weights
    return sum(b * params / (n if k < stage else 1) for k, b in enumerate(parts))


def _weights_first(stage: int, params: int, n: int) -> float:
    parts = 2, 2, 12
    return sum(b * params / (n if k < stage else 1) for k, b in enumerate(parts))


def _gradients_first(stage: int, params: int, n: int) -> float:
    """Bytes of a chip where stage 1 splits the gradients, and stage 2 the state."""
    if stage != 1:
        return _by_stage(stage, params, n)
    return 14 * params + 2 * params / n


STAGES = Function(
    id="09.2",
    title="All stages",
    task="""
        **Given** the `stage` of ZeRO, from 0 for data parallelism to 3 for FSDP, the
        number of parameters and the number of chips `n`. Each parameter takes 12 bytes
        for its optimizer state, 2 for its gradient and 2 for its weight.

        **Wanted** a function that returns the bytes that each chip holds.
    """,
    stub="def held(stage, params, n): ...",
    spec=_by_stage,
    gives=(("what each chip holds", "bytes"),),
    cases=lambda rng: (
        rng.randint(0, 3),
        rng.randint(1, 400) * 10**9,
        2 ** rng.randint(1, 12),
    ),
    examples=((0, 10**9, 64), (1, 10**9, 64), (2, 10**9, 64), (3, 10**9, 64)),
    slips=(
        Slip(
            "one stage too many",
            lambda stage, params, n: _by_stage(stage + 1, params, n),
            "Stage 0 splits nothing, and stage 1 splits the optimizer state.",
        ),
        Slip(
            "weights first",
            _weights_first,
            "Which part is the largest? That part is split first.",
        ),
        Slip(
            "gradients before the state",
            _gradients_first,
            "Did you swap stages 1 and 2? Stage 1 splits the optimizer state, and "
            "stage 2 splits the gradients as well.",
        ),
        Slip(
            "all or nothing",
            lambda stage, params, n: 16 * params / (n if stage else 1),
            "Each stage splits one more part than the stage before it.",
        ),
        Slip(
            "the copy left out",
            lambda stage, params, n: (
                _by_stage(stage, params, n) - 4 * params / (n if stage else 1)
            ),
            "Besides two moments, the optimizer keeps a copy of the weights in f32.",
        ),
        Slip(
            "gradients in f32",
            lambda stage, params, n: (
                _by_stage(stage, params, n) + 2 * params / (n if stage > 1 else 1)
            ),
            "The gradients take two bytes per parameter here.",
        ),
    ),
    hint="ZeRO splits the optimizer state first, then the gradients, and then the "
    "weights. Which of these does stage 2 split?",
    solution="""
        Stage $k$ splits the first $k$ of the three parts. Every chip holds the others
        whole.

        ```python
        def held(stage, params, n):
            parts = 12, 2, 2
            return sum(
                nbytes * params / (n if k < stage else 1)
                for k, nbytes in enumerate(parts)
            )
        ```
    """,
)


def _fewest(nbytes: float, hbm: float) -> int:
    return math.ceil(nbytes * LLAMA_3_70B.params / hbm)


FEWEST = Number(
    id="09.3",
    title="The fewest H100s",
    task="""
        **Given** Llama 3.1 70B with 70,553,706,496 parameters of 16 bytes each, and the
        HBM of an H100. Ignore activations and gathered weights.

        **Wanted** the smallest number of H100s over which FSDP can split the training
        state. It doesn't have to be a power of two.
    """,
    given=stated(chips.H100, "hbm_bytes"),
    stub="n = ...",
    unit="chips",
    rtol=0,
    expected=lambda: _fewest(16, chips.H100.hbm_bytes),
    slips=(
        Slip(
            "GB for GiB",
            lambda right: _fewest(16, 80e9),
            "Capacities are in GiB here: 1 GiB is 2³⁰ bytes.",
        ),
        Slip(
            "rounded down",
            lambda right: right - 1,
            "That many H100s aren't enough. In which direction do you have to round?",
        ),
        Slip(
            "gradients or weights left out",
            lambda right: _fewest(14, chips.H100.hbm_bytes),
            "Weights in bf16 and gradients are both in memory, besides the optimizer "
            "state.",
        ),
        Slip(
            "optimizer state alone, or without its copy",
            lambda right: _fewest(12, chips.H100.hbm_bytes),
            "Only 12 of the 16 bytes are optimizer state: a copy in f32 and two "
            "moments. Weights and gradients take two more bytes each.",
        ),
        Slip(
            "weights alone",
            lambda right: _fewest(2, chips.H100.hbm_bytes),
            "That would be enough for inference. What else does training hold?",
        ),
        Slip(
            "a power of two",
            lambda right: 16,
            "16 is the next power of two and fills two nodes, so it is a good choice. "
            "But the task asks for the smallest number, and FSDP can split the state "
            "over any number of chips.",
        ),
    ),
    hint="How many bytes does the whole state take, and how many does the HBM of one "
    "H100 hold, in the same unit? Round the result up.",
    solution="""
        ```python
        import math

        from shardmath.hardware import chips

        n = math.ceil(16 * 70_553_706_496 / chips.H100.hbm_bytes)
        ```

        If 80 GB meant $80 \\cdot 10^9$ bytes, it would take one more H100.
    """,
)


def _collectives() -> int:
    found = _derived(
        fsdp("X"),
        LLAMA_3_405B,
        {"X": 512},
        remat="full",
        vocabulary=False,
        microbatches=4,
    )
    return sum(c.times for c in found.collectives)


COUNT = Number(
    id="09.4",
    title="Gathers and scatters",
    task="""
        **Given** the 126 layers of Llama 3.1 405B, with 7 weight matrices each, under
        FSDP with full remat. A batch has 4 microbatches. Gathered weights and whole
        gradients are forgotten before the next layer begins.

        **Wanted** the number of collectives that a step needs for these matrices, if no
        collective combines two matrices.
    """,
    stub="times = ...",
    unit="collectives",
    rtol=0,
    expected=_collectives,
    slips=(
        scaled(
            "gathered for the recompute, too",
            4 / 3,
            "The recomputation of a layer is directly followed by its backward pass, "
            "so the two share a gather.",
        ),
        scaled(
            "two of three",
            2 / 3,
            "The weight is forgotten after the forward pass. What does the backward "
            "pass need then, and what happens to the gradient?",
        ),
        scaled("one microbatch", 1 / 4, "Each microbatch runs through all the layers."),
        scaled(
            "gradients scattered once",
            3 / 4,
            "If the gradients were scattered only at the end, whole gradients would "
            "have to be kept until then.",
        ),
        scaled("one matrix", 1 / 7, "A layer has seven matrices."),
        scaled("one layer", 1 / 126, "There are 126 layers."),
    ),
    hint="How often is a weight gathered in one microbatch, and how often is its "
    "gradient scattered?",
    solution="""
        A weight is gathered for the forward pass and again for the backward pass, and
        its gradient is scattered. The recomputation shares the gather of the backward
        pass, so each matrix has two gathers and a scatter in each microbatch.

        ```python
        times = 126 * 7 * 3 * 4
        ```
    """,
)

NAIVE = Number(
    id="09.5",
    title="ZeRO-1 that sends too much",
    task="""
        **Given** Llama 3.1 8B with 8,030,261,248 parameters and ZeRO-1 over 64 chips,
        all in bf16. The program adds up the gradients with an AllReduce. Then each chip
        updates its shard of the weights, and an AllGather makes the weights whole.

        **Wanted** the bytes that each chip sends in a step.
    """,
    stub="nbytes = ...",
    unit="bytes",
    rtol=0.005,
    expected=lambda: 1.5 * _derived(zero(1, "X"), LLAMA_3_8B, {"X": 64}).sent,
    slips=(
        scaled(
            "written well",
            2 / 3,
            "That would be right with a ReduceScatter, but this program has an "
            "AllReduce.",
        ),
        scaled("one of three rounds", 1 / 3, "That is what the AllGather alone sends."),
        scaled(
            "own part sent too",
            64 / 63,
            "A chip doesn't send anything to itself, so one of its n parts stays where "
            "it is.",
        ),
        scaled(
            "weights in f32",
            4 / 3,
            "The copy in f32 stays where it is. In which format are the weights used?",
        ),
        scaled(
            "a chip's share", 1 / 64, "Every chip has gradients for all the parameters."
        ),
    ),
    hint="An AllReduce sends as much as a ReduceScatter and an AllGather together. How "
    "many rounds of this size does the program have?",
    solution="""
        The AllReduce has two rounds of $2\\,\\text{params}$ bytes, and the AllGather is
        a third round. That is as much as FSDP sends, but ZeRO-1 saves only three
        quarters of the memory that FSDP saves. A ReduceScatter instead of the AllReduce
        would be enough, because a chip updates only its own shard.

        ```python
        V = 2 * 8_030_261_248
        nbytes = 3 * V * 63 / 64
        ```
    """,
)

_LAYER = sum(line.weight.count(LLAMA_3_70B.dims) for line in LLAMA_3_70B.layer)
_LAST = LLAMA_3_70B.layer[-1].weight.count(LLAMA_3_70B.dims) / _LAYER  # of its math
_LINKS = 6 * chips.TPU_V5P.link_bandwidth  # of a chip in a torus of three axes


def _gather(n: int = 512) -> float:
    return 2 * _LAYER * (n - 1) / n / _LINKS


GATHER = Number(
    id="09.6",
    title="Fetching one layer",
    task=r"""
        **Given** one layer of Llama 3.1 70B with 855,638,016 weights in bf16, split
        over a closed torus of $8 \times 8 \times 8$ TPU v5p chips. Each of a chip's six
        links has a one-way bandwidth of `chips.TPU_V5P.link_bandwidth`, and all of them
        are used. Leave out the latency.

        **Wanted** the seconds until the layer is whole on every chip.
    """,
    given=stated(chips.TPU_V5P, "link_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=_gather,
    slips=(
        scaled(
            "one axis alone, or all that a step moves",
            3,
            "All three axes of the torus work at once, and the task asks for only one "
            "gather.",
        ),
        slips.one_direction(2),
        scaled("one link", 6, "A chip has six links, and all of them are used."),
        scaled(
            "the HBM's time",
            _LINKS / chips.TPU_V5P.hbm_bandwidth,
            "You divided by the HBM's bandwidth. Which links carry the weights?",
        ),
        scaled(
            "a chip's share",
            1 / 512,
            "The layer has to be whole in the end. How many of its bytes must arrive "
            "at each chip?",
        ),
    ),
    hint="V(n − 1)/n bytes arrive at each chip over its six links. How large is V, the "
    "whole layer?",
    solution="""
        Each chip has 1/512 of the layer, and the rest arrives over six links.

        ```python
        from shardmath.hardware import chips

        V = 2 * 855_638_016
        seconds = V * 511 / 512 / (6 * chips.TPU_V5P.link_bandwidth)
        ```
    """,
)

_V6E = chips.TPU_V6E


def _threshold() -> float:
    n, W = 256, 4 * _V6E.link_bandwidth
    return 3 / 4 * _V6E.flops["bf16"] / W * (n - 1) / n


THRESHOLD = Number(
    id="09.7",
    title="Tokens that hide FSDP",
    task=r"""
        **Given** a slice of $16 \times 16$ Trillium chips (`chips.TPU_V6E`), a closed
        torus, with FSDP over all 256 chips, in bf16 and with full remat, which computes
        the forward pass twice. Each of a chip's four links has a one-way bandwidth of
        `chips.TPU_V6E.link_bandwidth`. The math runs at the peak, and all traffic can
        overlap with all of the math. Ignore attention scores and latency.

        **Wanted** the smallest number of tokens per chip at which the traffic of FSDP
        takes no longer than the math of the step.
    """,
    given=stated(_V6E, "flops.bf16", "link_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    rtol=0.0015,
    expected=_threshold,
    slips=(
        scaled(
            "nothing computed again, or three gathers",
            4 / 3,
            "Full remat adds FLOPs but no gather, because the recomputation and the "
            "backward pass of a layer share one.",
        ),
        scaled(
            "two rounds of three",
            2 / 3,
            "A weight is gathered for each pass, and its gradient is scattered.",
        ),
        scaled(
            "as data parallelism without remat",
            8 / 9,
            "That compares an AllReduce with 6 FLOPs per parameter and token, as for "
            "data parallelism.",
        ),
        scaled(
            "half of the links",
            2,
            "Two rings run through each chip of a torus, and each ring has two "
            "directions.",
        ),
        scaled(
            "own part sent too",
            256 / 255,
            "A chip doesn't send anything to itself, so one of its n parts stays where "
            "it is.",
        ),
        scaled(
            "all chips",
            256,
            "That is the batch of all the chips. How many tokens does one chip need?",
        ),
    ),
    hint="At C FLOPs/s, the math of t tokens takes 8 · params · t / C seconds. How "
    "long do two gathers and a scatter take?",
    solution="""
        With full remat, the math takes 8 FLOPs per parameter and token, and FSDP sends
        two gathers and a scatter. With a peak of $C$ and $W_X$ bytes/s over four links,
        the times are equal if $8\\,P\\,t / C = 3 \\cdot 2P\\,\\frac{n-1}{n} / W_X$.

        ```python
        from shardmath.hardware import chips

        W = 4 * chips.TPU_V6E.link_bandwidth
        tokens = 3 / 4 * chips.TPU_V6E.flops["bf16"] / W * 255 / 256
        ```
    """,
)


def _across() -> float:
    mesh = {"Z": 32, "X": 8}
    found = _derived(hybrid("Z", "X"), LLAMA_3_8B, mesh, remat="full")
    return sum(c.times * c.sent for c in found.collectives if c.axes == ("Z",))


ACROSS = Number(
    id="09.8",
    title="What leaves a node",
    task="""
        **Given** Llama 3.1 8B with 8,030,261,248 parameters on 32 nodes of 8 GPUs, with
        hybrid sharding: weights, gradients and optimizer state are split over the 8
        GPUs of a node, and each node holds a copy. All traffic is in bf16.

        **Wanted** the bytes that each GPU sends to other nodes in a step.
    """,
    stub="nbytes = ...",
    unit="bytes",
    rtol=0.005,
    expected=_across,
    slips=(
        scaled(
            "all gradients",
            8,
            "When the nodes exchange gradients, each GPU holds only an eighth of the "
            "sum.",
        ),
        scaled(
            "one of two rounds",
            1 / 2,
            "Every node needs the whole sum, so the sum is scattered and then "
            "gathered.",
        ),
        scaled(
            "weights fetched from other nodes",
            3 / 2,
            "The gathers stay inside a node. What is left for the nodes to exchange?",
        ),
        scaled(
            "own part sent too",
            32 / 31,
            "Each of the 32 nodes keeps one part of the sum and doesn't have to send "
            "it.",
        ),
        scaled(
            "split over all GPUs",
            1 / 32,
            "Each node holds a copy, so everything is split over only 8 GPUs.",
        ),
        scaled(
            "what stays in the node",
            3 * 7 / 8 / (2 / 8 * 31 / 32),
            "Those are the bytes of the gathers and the scatter inside a node. Which "
            "bytes leave it?",
        ),
    ),
    hint="After the scatter inside its node, a GPU has an eighth of the gradients. "
    "Which collective adds these up over the nodes?",
    solution="""
        After the scatter, each GPU has an eighth of the gradients, and an AllReduce
        adds these up over 32 nodes.

        ```python
        V = 2 * 8_030_261_248 / 8
        nbytes = 2 * V * 31 / 32
        ```

        Under FSDP over all 256 GPUs, both gathers and the scatter would leave the
        nodes.
    """,
)


def _rounds(stage: int, parts: int) -> int:
    """Gathers and scatters of the whole array in a step of `parts` microbatches."""
    return {1: 2, 2: parts + 1, 3: 3 * parts}[stage]


def _sent(stage: int, params: int, n: int, parts: int) -> float:
    return _rounds(stage, parts) * 2 * params * (n - 1) / n


def _late_at_stage_two(stage: int, params: int, n: int, parts: int) -> float:
    return _sent(stage, params, n, 1 if stage == 2 else parts)


ACCUMULATED = Function(
    id="09.9",
    title="Stages and microbatches",
    task="""
        **Given** the `stage` of ZeRO from 1 to 3, `params` parameters in bf16, `n`
        chips, and a batch that is cut into `parts` microbatches. A part that a stage
        splits is never kept whole. At stage 1, gradients are added up on the chip and
        scattered once. At stages 2 and 3, they are scattered after each microbatch. At
        stages 1 and 2, weights are gathered once, after the update. At stage 3, weights
        are gathered for both passes of each microbatch, and forgotten after each.

        **Wanted** a function that returns the bytes that each chip sends in a step.
    """,
    stub="def sent(stage, params, n, parts): ...",
    spec=_sent,
    gives=(("what each chip sends", "bytes"),),
    cases=lambda rng: (
        rng.randint(1, 3),
        rng.randint(1, 400) * 10**9,
        2 ** rng.randint(1, 9),
        rng.randint(2, 16),
    ),
    examples=((1, 10**9, 8, 4), (2, 10**9, 8, 4), (3, 10**9, 8, 4), (3, 10**9, 8, 1)),
    slips=(
        Slip(
            "microbatches forgotten",
            lambda stage, params, n, parts: _sent(stage, params, n, 1),
            "Is the gradient of a microbatch a smaller array than the gradient of a "
            "batch? And are the weights still there for the next microbatch?",
        ),
        Slip(
            "gathered for each microbatch at every stage",
            lambda stage, params, n, parts: (
                _sent(stage, params, n, parts)
                + (2 * (parts - 1) * params * (n - 1) / n if stage < 3 else 0)
            ),
            "The weights change only in the update.",
        ),
        Slip(
            "gathered once per microbatch",
            lambda stage, params, n, parts: (
                _sent(stage, params, n, parts) * (2 / 3 if stage == 3 else 1)
            ),
            "At stage 3, a microbatch needs the weights for two passes.",
        ),
        Slip(
            "gradients scattered once",
            lambda stage, params, n, parts: (
                2 * params * (n - 1) / n * (2 * parts + 1 if stage == 3 else 2)
            ),
            "If the gradients were scattered only at the end, whole gradients would "
            "have to be kept until then.",
        ),
        Slip(
            "an AllReduce at stage 1",
            lambda stage, params, n, parts: (
                _sent(stage, params, n, parts)
                + (2 * params * (n - 1) / n if stage == 1 else 0)
            ),
            "At stage 1, the gradients are scattered. An AllReduce would also send "
            "the sums to chips that don't need them.",
        ),
        Slip(
            "stage 2 like stage 1",
            _late_at_stage_two,
            "Stage 2 never keeps whole gradients, so it scatters them after each "
            "microbatch. Only stage 1 can wait until the end.",
        ),
        Slip(
            "own part sent too",
            lambda stage, params, n, parts: _rounds(stage, parts) * 2 * params,
            "A chip doesn't send anything to itself, so one of its n parts stays where "
            "it is.",
        ),
    ),
    hint="How many scatters and gathers of the whole array does each stage have? At "
    "stage 2 there are `parts` scatters and one gather.",
    solution="""
        Each scatter or gather sends $2\\,\\text{params}\\,(n-1)/n$ bytes, so we count
        them.

        ```python
        def sent(stage, params, n, parts):
            scatters = 1 if stage == 1 else parts
            gathers = 2 * parts if stage == 3 else 1
            return (scatters + gathers) * 2 * params * (n - 1) / n
        ```
    """,
)


# Programs. Values are float32: four bytes each.


def _matmul(rng):
    """Tokens x[B, D] and a weight w[D, F]."""
    B, D, F = (8 * rng.randint(2, 6) for _ in range(3))
    return (B, D), (D, F)


def _tanh_gradient(x, w):
    import numpy as np  # not at the top: a page judges numbers without it

    return x.T @ (1 - np.tanh(x @ w) ** 2)


def _gathered(w, axes=("X",), n: int = 8, times: int = 1) -> Collective:
    return Collective("all_gather", axes, 4 * math.prod(w), n, times)


def _scattered(w, axes=("X",), n: int = 8, times: int = 1) -> Collective:
    return Collective("reduce_scatter", axes, 4 * math.prod(w), n, times)


def _summed(w, axes=("X",), n: int = 8) -> Collective:
    return Collective("all_reduce", axes, 4 * math.prod(w), n)


USED = Sharded(
    id="09.10",
    title="Gather, use, scatter",
    task=r"""
        **Given** each device's part of the tokens $x[B_X, D]$ and of the weight
        $w[D_X, F]$. The loss is the sum of $\tanh(x w)$ over the whole batch.

        **Wanted** the function that every device runs. It returns the device's part of
        the gradient $dw[D_X, F]$ and compiles to exactly one AllGather and one
        ReduceScatter, of $4 D F$ bytes each.
    """,
    stub="def gradient(x, w): ...",
    mesh=EIGHT,
    shapes=_matmul,
    in_specs=(("X", None), ("X", None)),
    out_spec=("X", None),
    spec=_tanh_gradient,
    collectives=lambda x, w: [_gathered(w), _scattered(w)],
    slips=(
        Slip(
            "sum, then slice",
            lambda x, w: [_gathered(w), _summed(w)],
            "Every device gets the whole sum and throws most of it away.",
        ),
        Slip(
            "the batch gathered",
            lambda x, w: [_gathered(w), _gathered(x)],
            "Your program makes tokens and weights whole, so every device computes "
            "everything.",
        ),
    ),
    hint="Differentiate a function that takes the shard and gathers it. What is the "
    "transpose of an AllGather?",
    solution="""
        When JAX differentiates an AllGather, it inserts a ReduceScatter.

        ```python
        def gradient(x, w):
            def loss(shard):
                whole = jax.lax.all_gather(shard, "X", axis=0, tiled=True)
                return jnp.sum(jnp.tanh(x @ whole))

            return jax.grad(loss)(w)
        ```
    """,
)

LAYERS = 3


def _stack(rng):
    B, D = 8 * rng.randint(2, 6), 8 * rng.randint(8, 16)
    return (B, D), (LAYERS, D, D)


def _stack_gradient(x, w):
    import numpy as np  # not at the top: a page judges numbers without it

    stream = [x]
    for one in w:
        stream.append(np.tanh(stream[-1] @ one))
    found, slope = [], np.ones_like(x)
    for one, before, after in zip(w[::-1], stream[-2::-1], stream[:0:-1], strict=True):
        slope = slope * (1 - after**2)
        found.append(before.T @ slope)
        slope = slope @ one.T
    return np.stack(found[::-1])


FORGOTTEN = Sharded(
    id="09.11",
    title="Gather, use, forget",
    points=2,
    task=r"""
        **Given** each device's part of the tokens $x[B_X, D]$ and of three layers'
        weights $w[L, D_X, D]$, with $L = 3$. A layer is $x \to \tanh(x w_l)$. The loss
        is the sum of the last layer's results over the whole batch.

        **Wanted** the function that every device runs. It returns the device's part of
        the gradient $dw[L, D_X, D]$. It keeps no layer's whole weight for the backward
        pass, and it compiles to at most six AllGathers and three ReduceScatters, of
        $4 D^2$ bytes each. Besides the arguments and the result, a device may hold at
        most $2.5 \cdot 4 D^2 + 4 \cdot 4 B D / 8$ bytes at once, which is 2.5 times a
        layer's whole weight and four times the device's tokens.
    """,
    stub="def gradient(x, w): ...",
    mesh=EIGHT,
    shapes=_stack,
    in_specs=(("X", None), (None, "X", None)),
    out_spec=(None, "X", None),
    spec=_stack_gradient,
    collectives=lambda x, w: [
        _gathered(w[1:], times=2 * LAYERS),
        _scattered(w[1:], times=LAYERS),
    ],
    at_most=True,
    holds=lambda x, w: 4 * (2.5 * w[1] * w[2] + 4 * math.prod(x) / 8),
    slips=(
        Slip(
            "the gathered weights kept",
            lambda x, w: [
                _gathered(w[1:], times=LAYERS),
                _scattered(w[1:], times=LAYERS),
            ],
            "Your program gathers each weight once, so every device holds all of them "
            "when the backward pass begins. If a layer gathers inside "
            "`jax.checkpoint`, its weight is forgotten and gathered again.",
        ),
        Slip(
            "all layers at once",
            lambda x, w: [_gathered(w), _scattered(w)],
            "Your program gathers the whole stack before the first layer runs. Gather "
            "inside the layer.",
        ),
    ),
    hint="Use `jax.lax.scan` over the layers. Gather the weight inside the layer, and "
    "put `jax.checkpoint` around the layer.",
    solution="""
        Under `jax.checkpoint`, the backward pass gathers the weights again.

        ```python
        def gradient(x, w):
            @jax.checkpoint
            def layer(x, shard):
                whole = jax.lax.all_gather(shard, "X", axis=0, tiled=True)
                return jnp.tanh(x @ whole), None

            return jax.grad(lambda w: jnp.sum(jax.lax.scan(layer, x, w)[0]))(w)
        ```

        With a Python loop over the layers instead of the scan, there are only five
        AllGathers. The gradient doesn't need the value of the loss, so the compiler
        leaves out the last layer's forward pass and its gather.
    """,
)


def _update_by_own_tokens(x, m, w):
    """Each device's rows, updated by the gradient of its own tokens alone."""
    import numpy as np  # not at the top: a page judges numbers without it

    rows = len(w) // 8
    own = [_tanh_gradient(part, w) for part in np.split(x, 8)]
    g = [one[k * rows : (k + 1) * rows] for k, one in enumerate(own)]
    return w - 0.1 * (0.9 * m + np.concatenate(g))


def _update_of_first_rows(x, m, w):
    import numpy as np  # not at the top: a page judges numbers without it

    first = np.tile(w[: len(w) // 8], (8, 1))
    return first - 0.1 * (0.9 * m + _tanh_gradient(x, w))


UPDATE = Sharded(
    id="09.12",
    title="An update of ZeRO-1",
    points=2,
    task=r"""
        **Given** each device's part of the tokens $x[B_X, D]$ and of the momentum
        $m[D_X, F]$, and all of the weight $w[D, F]$. The loss is the sum of
        $\tanh(x w)$ over the whole batch, and $g$ is its gradient.

        **Wanted** the function that every device runs. It returns the new weight
        $w - 0.1\,(0.9\,m + g)$, whole on every device, and compiles to exactly one
        ReduceScatter and one AllGather, of $4 D F$ bytes each.
    """,
    stub="def update(x, m, w): ...",
    mesh=EIGHT,
    shapes=lambda rng: (lambda x, w: (x, w, w))(*_matmul(rng)),
    in_specs=(("X", None), ("X", None), (None, None)),
    out_spec=(None, None),
    spec=lambda x, m, w: w - 0.1 * (0.9 * m + _tanh_gradient(x, w)),
    collectives=lambda x, m, w: [_scattered(w), _gathered(w)],
    slips=(
        Slip(
            "an AllReduce",
            lambda x, m, w: [_summed(w), _gathered(w)],
            "That is the naive ZeRO-1, which sends half as much again. Which rows of "
            "the gradient does a device need?",
        ),
        Slip(
            "gathered twice",
            lambda x, m, w: [_scattered(w), _gathered(w, times=2)],
            "Update a device's own rows first. After that, only the new weight has to "
            "travel.",
        ),
    ),
    values=(
        Slip(
            "the momentum left out",
            lambda x, m, w: w - 0.1 * _tanh_gradient(x, w),
            "The new momentum is the gradient plus 0.9 times the old momentum.",
        ),
        Slip(
            "the momentum not decayed",
            lambda x, m, w: w - 0.1 * (m + _tanh_gradient(x, w)),
            "The old momentum has to be multiplied by 0.9.",
        ),
        Slip(
            "its own tokens alone",
            _update_by_own_tokens,
            "Each device has updated its rows by the gradient of its own tokens. The "
            "gradients still have to be added up over the devices.",
        ),
        Slip(
            "the first rows on every device",
            _update_of_first_rows,
            "Every device has updated the same rows of the weight. Which rows are its "
            "own?",
        ),
    ),
    hint="Which rows of w does a device update? `jax.lax.axis_index` tells you. "
    "`jax.lax.pcast(w, 'X', to='varying')` keeps JAX from adding up the gradients.",
    solution="""
        A device needs the gradient only for the rows that it updates, so a
        ReduceScatter is enough.

        ```python
        def update(x, m, w):
            own = jax.lax.pcast(w, "X", to="varying")
            g = jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(own)
            g = jax.lax.psum_scatter(g, "X", scatter_dimension=0, tiled=True)
            first = jax.lax.axis_index("X") * m.shape[0]
            rows = jax.lax.dynamic_slice_in_dim(own, first, m.shape[0])
            rows -= 0.1 * (0.9 * m + g)
            return jax.lax.all_gather(rows, "X", axis=0, tiled=True)
        ```
    """,
)

NODES = {"Z": 2, "X": 4}

HYBRID = Sharded(
    id="09.13",
    title="Hybrid sharding",
    points=2,
    task=r"""
        **Given** two nodes, $|Z| = 2$, of four devices each, $|X| = 4$. Each device has
        its part of the tokens $x[B_{ZX}, D]$ and of the weight $w[D_X, F]$, of which
        each node holds a copy. The loss is the sum of $\tanh(x w)$ over the whole
        batch.

        **Wanted** the function that every device runs. It returns the device's part of
        the gradient $dw[D_X, F]$ and compiles to one AllGather and one ReduceScatter
        over $X$ of $4 D F$ bytes each, and to exactly one AllReduce over $Z$ of $D F$
        bytes.
    """,
    stub="def gradient(x, w): ...",
    mesh=NODES,
    shapes=_matmul,
    in_specs=((("Z", "X"), None), ("X", None)),
    out_spec=("X", None),
    spec=_tanh_gradient,
    collectives=lambda x, w: [
        _gathered(w, n=4),
        _scattered(w, n=4),
        Collective("all_reduce", ("Z",), math.prod(w), 2),
    ],
    slips=(
        Slip(
            "whole gradients between the nodes",
            lambda x, w: [_gathered(w, n=4), _scattered(w, n=4), _summed(w, ("Z",), 2)],
            "JAX adds up over Z where the weight meets tokens that differ along Z, "
            "which is after the gather. Use `jax.lax.pcast` on the shard before you "
            "gather it.",
        ),
        Slip(
            "one AllReduce over both axes",
            lambda x, w: [_gathered(w, n=4), _summed(w, ("Z", "X"), 8)],
            "Every device gets the whole sum and throws most of it away.",
        ),
    ),
    hint="The fewest bytes cross between the nodes if you add up over Z after the "
    "scatter. `jax.lax.pcast(w, 'Z', to='varying')` keeps JAX from doing it earlier.",
    solution="""
        After the ReduceScatter over $X$, only a quarter of the gradient is left to add
        up over $Z$.

        ```python
        def gradient(x, w):
            def loss(shard):
                whole = jax.lax.all_gather(shard, "X", axis=0, tiled=True)
                return jnp.sum(jnp.tanh(x @ whole))

            own = jax.lax.pcast(w, "Z", to="varying")
            return jax.lax.psum(jax.grad(loss)(own), "Z")
        ```
    """,
)


def _mlp(rng):
    """Few tokens, so that the compiler alone would rather move them."""
    D = 8 * rng.randint(2, 5)
    F = D + 8 * rng.randint(2, 5)
    return (16, D), (D, F), (F, D)


PINNED = Sharded(
    id="09.14",
    title="FSDP by annotation",
    task=r"""
        **Given** the whole arrays $x[B_X, D]$, $\text{up}[D, F_X]$ and
        $\text{down}[F_X, D]$, sharded as their subscripts say. The compiler chooses the
        collectives. If there are few tokens and you add no constraints, it chooses
        tensor parallelism here.

        **Wanted** a function of the whole arrays that returns
        $\max(x\,\text{up}, 0)\,\text{down}$ with its tokens split over $X$, and
        compiles to exactly two AllGathers of $4 D F$ bytes each.
    """,
    stub="def mlp(x, up, down): ...",
    mesh=EIGHT,
    shapes=_mlp,
    in_specs=(("X", None), (None, "X"), ("X", None)),
    out_spec=("X", None),
    spec=lambda x, up, down: (x @ up).clip(0) @ down,
    collectives=lambda x, up, down: [_gathered(up), _gathered(down)],
    view="automatic",
    slips=(
        Slip(
            "left to the compiler",
            lambda x, up, down: [_gathered(x), _summed(x)],
            "The compiler gathers the tokens and adds up the results, and the weights "
            "stay where they are. Tell it how the weights should be sharded where they "
            "are used.",
        ),
    ),
    hint="`jax.lax.with_sharding_constraint` says how an array is sharded. Which "
    "arrays must be whole, and how is the result split?",
    solution="""
        Both weights must be whole for the matmuls, so the compiler gathers them.

        ```python
        def mlp(x, up, down):
            up, down = jax.lax.with_sharding_constraint((up, down), jax.P())
            y = jax.nn.relu(x @ up) @ down
            return jax.lax.with_sharding_constraint(y, jax.P("X", None))
        ```
    """,
)


# Several steps.


def _ahead(L: int, g: float, f: float, v: int, ahead: int) -> list[float]:
    if ahead == 0:
        return [L * (g + f), v]
    return [g + (L - 1) * max(g, f) + f, 2 * v]


PREFETCH = Function(
    id="09.15",
    title="One layer ahead",
    points=2,
    task="""
        **Given** the forward pass of `L` identical layers, where `L` is at least 2.
        Gathering a layer takes `g` seconds, and using it takes `f` seconds. A layer
        takes up `v` bytes from the start of its gather to the end of its use. With
        `ahead = 0`, the gather of a layer starts when the use of the layer before it
        has ended. With `ahead = 1`, it starts when that use starts.

        **Wanted** a function that returns a pair: the seconds that the forward pass
        takes, and the largest number of bytes that these layers take up at one time.
    """,
    stub="def forward(L, g, f, v, ahead): ...",
    spec=_ahead,
    gives=(("the pass", "s"), ("room", "bytes")),
    units={"g": "s", "f": "s", "v": "bytes"},
    cases=lambda rng: (
        rng.randint(2, 100),
        rng.randint(1, 50) / 1000,
        rng.randint(1, 50) / 1000,
        rng.randint(1, 200) * 10**7,
        rng.randint(0, 1),
    ),
    examples=(
        (4, 0.01, 0.02, 10**9, 0),
        (4, 0.01, 0.02, 10**9, 1),
        (4, 0.02, 0.01, 10**9, 1),
    ),
    slips=(
        Slip(
            "perfect overlap",
            lambda L, g, f, v, ahead: [
                L * max(g, f) if ahead else L * (g + f),
                (1 + ahead) * v,
            ],
            "What does the math do until the first layer has arrived?",
        ),
        Slip(
            "the last use forgotten",
            lambda L, g, f, v, ahead: [
                g + (L - 1) * max(g, f) if ahead else L * (g + f),
                (1 + ahead) * v,
            ],
            "When the last gather is done, one layer still has to be used.",
        ),
        Slip(
            "room for one",
            lambda L, g, f, v, ahead: [_ahead(L, g, f, v, ahead)[0], v],
            "While one layer is used, the next one arrives.",
        ),
        Slip(
            "never ahead",
            lambda L, g, f, v, ahead: [L * (g + f), (1 + ahead) * v],
            "With `ahead = 1`, the gather of one layer runs while the layer before it "
            "is used.",
        ),
        Slip(
            "room for all",
            lambda L, g, f, v, ahead: [_ahead(L, g, f, v, ahead)[0], L * v],
            "A layer is forgotten when its use has ended.",
        ),
    ),
    hint="Draw two lanes for three layers, one for the network and one for the math. "
    "When do both of them work at once?",
    solution="""
        The first gather and the last use overlap with nothing. Between them, the slower
        of network and math sets the pace.

        ```python
        def forward(L, g, f, v, ahead):
            if ahead == 0:
                return L * (g + f), v
            return g + (L - 1) * max(g, f) + f, 2 * v
        ```
    """,
)


def _never_too_large(params: int, hbm: int, stage: int, least: int | None = 1) -> int:
    """Chips by the formula of those for which something always fits."""
    whole = (16, 4, 2, 0)[stage] * params
    found = -(-(16 * params - whole) // (hbm - whole))
    return found if least is None else max(least, found)


def _smallest(params: int, hbm: int, stage: int) -> int:
    whole = (16, 4, 2, 0)[stage] * params  # what the stage does not split
    if whole >= hbm:
        return 0
    split = 16 * params - whole
    return max(1, -(-split // (hbm - whole)))


SMALLEST = Function(
    id="09.16",
    title="The smallest machine for each stage",
    points=2,
    task="""
        **Given** `params` parameters, the `hbm` of a chip in bytes, and the `stage` of
        ZeRO, from 0 for data parallelism to 3 for FSDP. Each parameter takes 12 bytes
        for its optimizer state, 2 for its gradient and 2 for its weight. Ignore
        everything else.

        **Wanted** a function that returns the smallest number of chips at which each
        chip has room for its part, or 0 if no number is enough.
    """,
    stub="def chips_needed(params, hbm, stage): ...",
    spec=_smallest,
    gives=(("chips", ""),),
    units={"hbm": "bytes"},
    cases=lambda rng: (
        rng.randint(1, 60) * 10**9,
        rng.choice([80, 95, 141, 192]) * 2**30,
        rng.randint(0, 3),
    ),
    examples=(
        (4 * 10**9, 80 * 2**30, 0),
        (8 * 10**9, 80 * 2**30, 0),
        (20 * 10**9, 80 * 2**30, 1),
        (22 * 10**9, 80 * 2**30, 1),
        (22 * 10**9, 80 * 2**30, 2),
        (70 * 10**9, 80 * 2**30, 3),
    ),
    slips=(
        Slip(
            "everything split",
            lambda params, hbm, stage: (
                _smallest(params, hbm, 3) if stage else _smallest(params, hbm, 0)
            ),
            "Every chip holds the parts that a stage leaves whole, no matter how many "
            "chips there are.",
        ),
        Slip(
            "the whole parts forgotten",
            lambda params, hbm, stage: max(
                1, -(-(16 - (16, 4, 2, 0)[stage]) * params // hbm)
            ),
            "The parts that a stage leaves whole take up room, too.",
        ),
        Slip(
            "rounded down",
            lambda params, hbm, stage: (
                max(1, (16 - whole) * params // (hbm - whole * params))
                if (whole := (16, 4, 2, 0)[stage]) * params < hbm
                else 0
            ),
            "If the division leaves a remainder, you need one more chip.",
        ),
        Slip(
            "no 0 where nothing fits",
            _never_too_large,
            "If the parts that stay whole already fill the HBM, no number of chips is "
            "enough. Return 0 in this case.",
        ),
        Slip(
            "a negative number of chips",
            lambda *case: _never_too_large(*case, least=None),
            "If the parts that stay whole already fill the HBM, the room that is left "
            "comes out negative. No number of chips is enough then, so return 0.",
        ),
        Slip(
            "one stage too many",
            lambda params, hbm, stage: _smallest(params, hbm, min(stage + 1, 3)),
            "Stage 0 splits nothing, and stage 1 splits the optimizer state.",
        ),
    ),
    hint="Subtract the parts that the stage leaves whole from the HBM. Over how many "
    "chips must the other parts be split to fit into the room that is left?",
    solution="""
        Every chip holds the parts that aren't split, and the split parts must fit into
        the rest of the HBM.

        ```python
        def chips_needed(params, hbm, stage):
            whole = (16, 4, 2, 0)[stage] * params
            if whole >= hbm:
                return 0
            split = 16 * params - whole
            return max(1, -(-split // (hbm - whole)))  # rounded up
        ```
    """,
)


def _room(hbm: float = chips.H100.hbm_bytes, gathered: int = 2) -> float:
    """Tokens that a chip has room for beside so many gathered layers."""
    state = 16 * LLAMA_3_70B.params / 32
    return (hbm - state - gathered * 2 * _LAYER) / (80 * 2 * LLAMA_3_70B.D)


ROOM = Number(
    id="09.17",
    title="Tokens that a chip has room for",
    points=2,
    task="""
        **Given** Llama 3.1 70B with $L = 80$, $D = 8192$, 70,553,706,496 parameters of
        16 bytes each, and 855,638,016 weights in a layer, split by FSDP over 32 H100s.
        Besides its share of these bytes, a GPU holds two gathered layers in bf16, one
        in use and one fetched ahead. Full remat keeps only the input of each layer, in
        bf16. Ignore everything else.

        **Wanted** the largest number of tokens that a GPU can hold.
    """,
    given=stated(chips.H100, "hbm_bytes"),
    stub="tokens = ...",
    unit="tokens",
    rtol=0.005,
    expected=_room,
    slips=(
        Slip(
            "one gathered layer, or one byte per weight",
            lambda right: _room(gathered=1),
            "While one layer is used, the next one arrives. And how many bytes does a "
            "weight take in bf16?",
        ),
        Slip(
            "no gathered layer",
            lambda right: _room(gathered=0),
            "While a layer is used, its gathered weights take up room, too.",
        ),
        Slip(
            "GB for GiB",
            lambda right: _room(hbm=80e9),
            "Capacities are in GiB here: 1 GiB is 2³⁰ bytes.",
        ),
        scaled("one layer's input", 80, "Every layer keeps its input."),
        scaled(
            "all GPUs",
            32,
            "That is the batch of all the GPUs. How many tokens can one GPU hold?",
        ),
        scaled("inputs in f32", 1 / 2, "A value in bf16 takes two bytes."),
    ),
    hint="How much HBM is left after 1/32 of the state and the weights of two layers? "
    "For each token, every layer keeps D values.",
    solution="""
        Each token takes 2 bytes for each of $D$ values in 80 layers.

        ```python
        from shardmath.hardware import chips

        state = 16 * 70_553_706_496 / 32
        gathered = 2 * 2 * 855_638_016
        token = 80 * 2 * 8192
        tokens = (chips.H100.hbm_bytes - state - gathered) / token
        ```
    """,
)


def _times(tokens: int = 640) -> dict[str, float]:
    """Seconds of a layer's one gather and one forward pass, at the peak."""
    return {
        "network": _gather(),
        "math": 2 * _LAYER * tokens / chips.TPU_V5P.flops["bf16"],
    }


def _passes() -> float:
    network, math_ = _times().values()
    return 80 * (max(network, math_) + max(2 * network, 3 * math_))


def _of_passes(combine):
    """What `combine` of a gather's and a forward's seconds gives for 80 layers."""
    return lambda right: 80 * combine(*_times().values())


PASSES = Number(
    id="09.18",
    title="One pass hides its traffic, the other doesn't",
    points=2,
    task=r"""
        **Given** the 80 layers of Llama 3.1 70B with 855,638,016 weights each, in bf16
        under FSDP with full remat, on a closed torus of $8 \times 8 \times 8$ TPU v5p
        chips. The backward pass computes each layer again, with every matmul. Each of a
        chip's six links has a one-way bandwidth of `chips.TPU_V5P.link_bandwidth`, and
        all of them are used. A chip has 640 tokens per step. The math runs at the peak,
        and within a pass, math and network overlap fully. Ignore attention scores and
        latency.

        **Wanted** the seconds that the forward pass and the backward pass take
        together, where each pass takes as long as the slower of its math and its
        network.
    """,
    given=stated(chips.TPU_V5P, "flops.bf16", "link_bandwidth"),
    stub="seconds = ...",
    unit="s",
    rtol=0.005,
    expected=_passes,
    slips=(
        Slip(
            "both passes as one",
            _of_passes(lambda net, math_: max(3 * net, 4 * math_)),
            "The gathers of the forward pass can't wait for the math of the backward "
            "pass.",
        ),
        Slip(
            "no overlap",
            _of_passes(lambda net, math_: 3 * net + 4 * math_),
            "Within a pass, math and network overlap.",
        ),
        Slip(
            "nothing computed again",
            _of_passes(lambda net, math_: max(net, math_) + max(2 * net, 2 * math_)),
            "Full remat computes the forward pass again before the backward pass.",
        ),
        Slip(
            "the last matmul not again",
            _of_passes(lambda net, math_: net + (3 - _LAST) * math_),
            "JAX leaves out a layer's last matmul when it computes the layer again. "
            "Here the forward pass is computed twice, with every matmul.",
        ),
        Slip(
            "the math alone, one pass less",
            _of_passes(lambda net, math_: 3 * math_),
            "The forward pass takes time, too. Is it limited by its math or by its "
            "network?",
        ),
        Slip(
            "the forward pass alone",
            _of_passes(lambda net, math_: net),
            "That is the time of the forward pass alone. The backward pass comes after "
            "it.",
        ),
        Slip(
            "half of the links",
            _of_passes(lambda net, math_: 2 * net + max(4 * net, 3 * math_)),
            "In a torus of three axes, each chip has six links, and all of them are "
            "used.",
        ),
        scaled(
            "one layer",
            1 / 80,
            "That is the time of one layer. How many layers are there?",
        ),
    ),
    hint=(
        "The forward pass has one gather and 2 FLOPs per weight and token. The "
        "backward pass has a gather, a scatter and 6 FLOPs. Which is slower in each "
        "pass, the network or the math?"
    ),
    solution="""
        ```python
        from shardmath.hardware import chips

        chip, weights = chips.TPU_V5P, 855_638_016
        network = 2 * weights * 511 / 512 / (6 * chip.link_bandwidth)
        math = 2 * weights * 640 / chip.flops["bf16"]
        seconds = 80 * (max(network, math) + max(2 * network, 3 * math))
        ```

        In the forward pass the network sets the pace, and in the backward pass the math
        does.
    """,
)
