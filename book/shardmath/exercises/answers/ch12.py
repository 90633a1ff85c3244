"""Questions of chapter 12, "Pipeline parallelism"."""

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
from shardmath.training import combine, fsdp, pipeline, step, tensor
from shardmath.training.pipeline_schedules import Times, idle, schedule
from shardmath.transformer import LLAMA_3_70B, LLAMA_3_405B

CHAPTER = Chapter(
    title="Pipeline parallelism",
    topics=(
        "pipeline parallelism: the bubble and what stages hold under six schedules, "
        "uneven stages, what a boundary and a loop send, a published step, and three "
        "programs graded on what they compile to"
    ),
    intro="""
        from the bubble of one schedule to a published step. Answers are in base units:
        bytes, seconds, microbatches. A bubble is idle over busy time.

        12.9 to 12.11 are programs for eight virtual devices. They are graded on their
        result and on what XLA compiles them to, array by array.
    """,
    setup="""
        import jax
        import jax.numpy as jnp

        from shardmath.exercises import check, report
        from shardmath.hardware import chips

        jax.config.update("jax_num_cpu_devices", 8)  # eight virtual chips
    """,
)

EIGHT = {"P": 8}

BUBBLE = Number(
    id="12.1",
    title="A bubble",
    task="""
        **Given** 12 equal stages, 40 microbatches, and 1F1B.

        **Wanted** the bubble: idle over busy time.
    """,
    stub="bubble = ...",
    unit="",
    expected=lambda: schedule("1f1b", 12, 40).bubble,
    slips=(
        scaled("all stages", 12 / 11, "A stage does not wait for itself."),
        scaled(
            "share of the step",
            40 / 51,
            "That is idle time over the whole step. Idle over busy is wanted.",
        ),
        scaled(
            "forward pass alone",
            2,
            "Both passes wait, and both work.",
        ),
        scaled(
            "upside down",
            (40 / 11) ** 2,
            "That is busy over idle time.",
        ),
        scaled(
            "the busy share",
            (40 / 51) / (11 / 40),
            "That is the share of the step in which a stage works.",
        ),
    ),
    hint="How long does the last stage wait for its first microbatch, and the first "
    "one for its last gradient?",
    solution="""
        $(p-1)(F+B)$ of waiting beside $M(F+B)$ of work.

        ```python
        bubble = (12 - 1) / 40
        ```
    """,
)

MICROBATCHES = Number(
    id="12.2",
    title="Microbatches enough",
    task="""
        **Given** 24 equal stages with three chunks of layers each, interleaved, so the
        number of microbatches must be a multiple of the stages.

        **Wanted** the fewest microbatches for a bubble of at most 4 %, idle over busy.
    """,
    stub="microbatches = ...",
    unit="microbatches",
    rtol=0,
    expected=lambda: next(
        M
        for M in range(24, 10_000, 24)
        if idle("interleaved", 24, M, 3) / (3 * M) <= 0.04
    ),
    slips=(
        Slip(
            "without chunks",
            lambda right: 576,
            "Each of three chunks fills in a third of the time.",
        ),
        Slip(
            "without chunks and rounds",
            lambda right: 575,
            "Each of three chunks fills in a third of the time, and microbatches come "
            "in multiples of the stages.",
        ),
        Slip(
            "one round of stages fewer",
            lambda right: 168,
            "That is 4.6 %.",
        ),
        Slip(
            "chunks counted as stages",
            lambda right: 1776,
            "Three chunks make the bubble smaller, not larger.",
        ),
        Slip(
            "all stages wait",
            lambda right: 200,
            "A stage does not wait for itself, and microbatches come in multiples of "
            "the stages.",
        ),
        Slip(
            "one round of stages more",
            lambda right: 216,
            "One round fewer keeps the bubble within 4 % as well.",
        ),
    ),
    hint="(p − 1)/(vM), and then the next multiple of 24.",
    solution="""
        $23/(3M) \\le 0.04$ from $M = 192$ on, the eighth multiple of 24.

        ```python
        microbatches = next(
            M for M in range(24, 10_000, 24) if 23 / (3 * M) <= 0.04
        )
        ```
    """,
)


def _held(stage: int) -> float:
    """Bytes of the inputs of layers that a chip of a stage holds."""
    one = step(
        combine(pipeline("P"), tensor("Y")),
        LLAMA_3_405B,
        {"P": 9, "Y": 8},
        36,
        8192,
        attention="causal",
        microbatches=36,
        vocabulary=False,
    )
    layers = sum(count for count, _ in one.stages.stack(stage))
    return one.stages.in_flight(stage) * layers * 8192 * LLAMA_3_405B.D * 2 / 8


HELD = Number(
    id="12.3",
    title="What a stage holds",
    task=r"""
        **Given** Llama 3.1 405B, $D = 16{,}384$, its 126 layers on 9 stages of 14,
        counted from 0, each of 8 chips with tensor and sequence parallelism. 36
        microbatches of one sequence of 8,192 tokens, 1F1B, bf16, full remat: the input
        of each layer is kept.

        **Wanted** the most bytes of these inputs that a chip of stage 3 holds.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _held(3),
    slips=(
        scaled(
            "all microbatches",
            36 / 6,
            "That is GPipe. 1F1B goes back as soon as it can.",
        ),
        scaled(
            "as the first stage",
            9 / 6,
            "Stage 0 holds nine. Stage 3 is nearer the end.",
        ),
        scaled("one fewer", 5 / 6, "The one that it works on is held, too."),
        scaled("one more", 7 / 6, "Stages are counted from 0: p − s, without + 1."),
        scaled(
            "the stream whole",
            8,
            "Sequence parallelism splits the stream over 8 chips.",
        ),
        scaled("one layer", 1 / 14, "Each of the stage's 14 layers keeps its input."),
        scaled("all layers", 9, "A stage has 14 of the 126 layers."),
    ),
    hint="1F1B holds p − s microbatches on stage s.",
    solution="""
        Stage 3 of 9 holds $9-3=6$ microbatches, 14 layers each, an eighth of the
        stream.

        ```python
        nbytes = (9 - 3) * 14 * 8192 * 16_384 * 2 / 8
        ```
    """,
)


def _forward(times: list, M: int) -> float:
    return sum(times) + (M - 1) * max(times)


UNEVEN = Function(
    id="12.4",
    title="Uneven stages",
    task="""
        **Given** a list with the time that each stage takes for the forward pass of one
        microbatch, and $M$ microbatches that follow one another. Sends take no time.

        **Wanted** a function that returns the time from the first start to the last
        end, forward.
    """,
    stub="def seconds(times, M): ...",
    spec=_forward,
    gives=(("time of the forward passes", "s"),),
    cases=lambda rng: (
        [rng.randint(1, 9) for _ in range(rng.randint(2, 8))],
        rng.randint(1, 40),
    ),
    examples=(([1, 1, 1, 1], 8), ([1, 2, 1], 10), ([3, 1], 1), ([1, 1, 1, 2], 64)),
    slips=(
        Slip(
            "as if all were the slowest",
            lambda times, M: (len(times) + M - 1) * max(times),
            "The first microbatch waits nowhere, and takes each stage's own time.",
        ),
        Slip(
            "as if all were even",
            lambda times, M: (len(times) + M - 1) * sum(times) / len(times),
            "Everyone follows the slowest stage, not the mean.",
        ),
        Slip(
            "one microbatch at a time",
            lambda times, M: M * sum(times),
            "The next microbatch need not wait until the one before has left the last "
            "stage: it enters as soon as the first stage is free.",
        ),
        Slip(
            "one microbatch too many",
            lambda times, M: sum(times) + M * max(times),
            "The first microbatch is in the sum already.",
        ),
    ),
    hint="When is the first microbatch done? And then one comes after the other: how "
    "far apart?",
    solution="""
        ```python
        def seconds(times, M):
            return sum(times) + (M - 1) * max(times)
        ```
    """,
)


def _boundary() -> float:
    one = step(
        pipeline("P"),
        LLAMA_3_70B,
        {"P": 8},
        32,
        4096,
        attention="causal",
        microbatches=32,
        vocabulary=False,
    )
    return one.at(3).sent


BOUNDARY = Number(
    id="12.5",
    title="What a stage sends",
    task=r"""
        **Given** Llama 3.1 70B, $D = 8192$, 80 layers on 8 chips, one stage each; 32
        microbatches of one sequence of 4,096 tokens in bf16, 1F1B, where each chip runs
        a separate program.

        **Wanted** the bytes that a chip in the middle sends in a step.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=_boundary,
    slips=(
        scaled(
            "one direction", 1 / 2, "The gradient goes back over the same boundary."
        ),
        scaled("one microbatch", 1 / 32, "All 32 pass."),
        scaled(
            "in every layer", 10, "Between the ten layers of a stage nothing is sent."
        ),
        scaled(
            "as a loop",
            39 / 32,
            "A loop over ticks sends in its bubbles. Here each runs its own program.",
        ),
        scaled("an eighth of the stream", 1 / 8, "The stream is whole on a stage."),
        scaled("all stages", 8, "One chip in the middle is asked for, not all eight."),
    ),
    hint="The stream of one microbatch forward, and its gradient backward.",
    solution="""
        ```python
        nbytes = 2 * 32 * 4096 * 8192 * 2
        ```
    """,
)

LOOP = Number(
    id="12.6",
    title="The same as a loop",
    task=r"""
        **Given** the same stages, microbatches and tokens as in 12.5, but written as
        one loop over ticks with a `ppermute` in each, and its gradient by JAX.

        **Wanted** the bytes that a chip sends in a step.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _boundary() * 39 / 32,
    slips=(
        scaled("without bubbles", 32 / 39, "A loop does the same in every tick."),
        scaled("one tick too many", 40 / 39, "The first tick counts as M's."),
        scaled("one direction", 1 / 2, "The loop of the backward pass permutes, too."),
        scaled(
            "each microbatch past every stage",
            32 * 8 / 39,
            "In a tick all stages send at once, each once.",
        ),
    ),
    hint="How many ticks has the loop?",
    solution="""
        $M+n-1 = 39$ ticks, forward and backward.

        ```python
        nbytes = 2 * (32 + 8 - 1) * 4096 * 8192 * 2
        ```
    """,
)

_ZB = Times(F=0.040, I=0.052, W=0.038)

ZERO_BUBBLE = Number(
    id="12.7",
    title="A bubble filled with weights",
    task="""
        **Given** 8 stages and 64 microbatches under ZB-H1. For one microbatch a stage
        takes 40 ms for the forward pass, 52 ms for the gradient of the input, and 38 ms
        for the gradients of the weights.

        **Wanted** the seconds that a stage waits in a step.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: max(schedule("zb-h1", 8, 64, times=_ZB).idle),
    slips=(
        Slip(
            "1F1B",
            lambda right: 7 * 0.130,
            "That is without splitting the backward pass.",
        ),
        Slip(
            "B of one paper in the formula of another",
            lambda right: 7 * (0.040 + 0.090 - 0.038),
            "In (p − 1)(F + B − W) the letter B means the gradient of the input alone.",
        ),
        Slip(
            "weights subtracted twice",
            lambda right: 7 * (0.040 + 0.052 - 2 * 0.038),
            "With − 2W, B has to be the whole backward pass.",
        ),
        scaled("all stages", 8 / 7, "A stage does not wait for itself."),
        scaled(
            "one stage",
            1 / 7,
            "The last stage is seven stages away from the first, and each of them adds "
            "to the wait.",
        ),
        Slip(
            "the whole step",
            lambda right: right + 64 * 0.130,
            "That is the time of the step. Only the wait is asked for.",
        ),
    ),
    hint="(p − 1)(F + I − W).",
    solution="""
        ```python
        seconds = 7 * (0.040 + 0.052 - 0.038)
        ```
    """,
)

_DUAL = Times(F=0.050, I=0.050, W=0.040, both=0.130)

DUALPIPE = Number(
    id="12.8",
    title="From both ends",
    task="""
        **Given** 16 stages and 120 microbatches under DualPipe. For one microbatch a
        stage takes 50 ms for the forward pass, 50 ms for the gradient of the input, 40
        ms for the gradients of the weights, and 130 ms for a forward and a backward
        pass that run together.

        **Wanted** the seconds that the stage waits that waits longest.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: max(schedule("dualpipe", 16, 120, times=_DUAL).idle),
    slips=(
        Slip(
            "pairs apart",
            lambda right: 7 * (0.140 + 0.090 - 0.120),
            "Together they take 130 ms, not 140.",
        ),
        Slip(
            "all stages in a row",
            lambda right: 15 * (0.130 + 0.090 - 0.120),
            "From both ends it is half as far to the middle.",
        ),
        Slip(
            "1F1B",
            lambda right: 15 * 0.140,
            "That is one direction, and an undivided backward pass.",
        ),
        Slip(
            "input's gradient for the whole backward pass",
            lambda right: 7 * (0.130 + 0.050 - 0.120),
            "Here B is the whole backward pass: both gradients.",
        ),
        Slip(
            "p/2 for p/2 − 1",
            lambda right: 8 * (0.130 + 0.090 - 0.120),
            "From an end to the middle there is one step less than half of the stages.",
        ),
        Slip(
            "the formula of ZB-H1",
            lambda right: 15 * (0.050 + 0.050 - 0.040),
            "That is one direction only. DualPipe feeds microbatches from both ends.",
        ),
        Slip(
            "one W for three",
            lambda right: 7 * (0.130 + 0.090 - 0.040),
            "Three gradients of weights fill the wait, not one.",
        ),
        Slip(
            "two W for three",
            lambda right: 7 * (0.130 + 0.090 - 2 * 0.040),
            "Three gradients of weights fill the wait, not two.",
        ),
    ),
    hint="(p/2 − 1)(F&B + B − 3W), with B the whole backward pass.",
    solution="""
        ```python
        seconds = (16 / 2 - 1) * (0.130 + 0.090 - 3 * 0.040)
        ```
    """,
)


# Programs. Values are float32: four bytes each.


def _stream_shapes(rng):
    B, D = 8 * rng.randint(2, 6), 8 * rng.randint(2, 6)
    return ((B, D),)


def _shifted(x):
    part = len(x) // 8
    moved = 0 * x
    moved[part:] = x[:-part]
    return moved


def _to_the_stage_before(x):
    part = len(x) // 8
    moved = 0 * x
    moved[:-part] = x[part:]
    return moved


def _around(x, way: int = 1):
    import numpy as np  # not at the top: a page judges numbers without it

    return np.roll(x, way * (len(x) // 8), axis=0)


SHIFT = Sharded(
    id="12.9",
    title="To the next stage",
    task=r"""
        **Given** each device's part of $x[B_P, D]$: what its stage has made.

        **Wanted** the function that every device runs, returning what it gets from the
        stage before; the first one gets zeros. It must be exactly one permute.
    """,
    stub="def hand_on(x): ...",
    mesh=EIGHT,
    shapes=_stream_shapes,
    in_specs=(("P", None),),
    out_spec=("P", None),
    spec=_shifted,
    collectives=lambda x: [Collective("permute", ("P",), 4 * x[0] * x[1] / 8, 8)],
    slips=(
        Slip(
            "all gathered",
            lambda x: [Collective("all_gather", ("P",), 4 * x[0] * x[1], 8)],
            "Each stage needs what one other stage has made, not what all have.",
        ),
    ),
    values=(
        Slip(
            "the wrong way",
            _to_the_stage_before,
            "Each stage gets what the stage behind it has made. It goes the other way.",
        ),
        Slip(
            "round the ring",
            _around,
            "The last stage hands on to the first, which gets zeros in a pipeline.",
        ),
        Slip(
            "the wrong way round the ring",
            lambda x: _around(x, -1),
            "Each stage gets what the stage behind it has made, and the last one what "
            "the first has.",
        ),
        Slip("nothing handed on", lambda x: x, "Each stage keeps what it has made."),
    ),
    hint=(
        "`jax.lax.ppermute` takes pairs (from, to). A device that is no target "
        "gets zeros."
    ),
    solution="""
        ```python
        def hand_on(x):
            return jax.lax.ppermute(x, "P", [(i, i + 1) for i in range(7)])
        ```
    """,
)


def _pipe_shapes(rng):
    M, B, D = rng.randint(2, 6), 4 * rng.randint(1, 4), 8 * rng.randint(1, 4)
    return (M, B, D), (8, D, D)


def _late(x, w):
    """What the last stage has made a tick before: nothing, then all but the last."""
    whole = _through(x, w)
    whole[1:] = whole[:-1].copy()
    whole[0] = 0
    return whole


def _linear(x, w):
    for one in w:
        x = x @ one
    return x


def _through(x, w):
    for one in w:
        x = (x @ one).clip(0)
    return x


PIPE = Sharded(
    id="12.10",
    title="A pipeline",
    task=r"""
        **Given** all microbatches $x[M, B, D]$, and each device's layer of
        $w[L_P, D, D]$, eight in all.

        **Wanted** the function that every device runs, returning all microbatches after
        all eight layers, $x \to \max(x\,w_l, 0)$, whole on every device. It may send
        $M+7$ permutes of $4BD$ bytes and one AllReduce of $4MBD$ bytes, and no more.
    """,
    stub="def pipeline(x, w): ...",
    mesh=EIGHT,
    shapes=_pipe_shapes,
    in_specs=((), ("P", None, None)),
    out_spec=(None, None, None),
    spec=_through,
    at_most=True,
    collectives=lambda x, w: [
        Collective("permute", ("P",), 4 * x[1] * x[2], 8, times=x[0] + 7),
        Collective("all_reduce", ("P",), 4 * x[0] * x[1] * x[2], 8),
    ],
    slips=(
        Slip(
            "weights gathered",
            lambda x, w: [Collective("all_gather", ("P",), 4 * w[0] * w[1] * w[2], 8)],
            "Weights shall stay where they are: that is FSDP.",
        ),
        Slip(
            "one microbatch at a time",
            lambda x, w: [
                Collective("permute", ("P",), 4 * x[1] * x[2], 8, times=8 * x[0]),
                Collective("all_reduce", ("P",), 4 * x[0] * x[1] * x[2], 8),
            ],
            "The next microbatch can enter as soon as the first stage is free.",
        ),
        Slip(
            "one microbatch at a time, seven hops",
            lambda x, w: [
                Collective("permute", ("P",), 4 * x[1] * x[2], 8, times=7 * x[0]),
                Collective("all_reduce", ("P",), 4 * x[0] * x[1] * x[2], 8),
            ],
            "Each microbatch passes alone. The next can follow a tick behind it.",
        ),
        Slip(
            "no microbatches",
            lambda x, w: [
                Collective("permute", ("P",), 4 * x[0] * x[1] * x[2], 8, times=7),
                Collective("all_reduce", ("P",), 4 * x[0] * x[1] * x[2], 8),
            ],
            "All of the batch at once keeps one stage busy at a time.",
        ),
    ),
    values=(
        Slip(
            "one tick early",
            _late,
            "The first microbatch comes out as zeros, and the last is missing: in "
            "which tick does the last stage finish the first one?",
        ),
        Slip(
            "no activation",
            _linear,
            "Behind each layer negative values become zero.",
        ),
    ),
    hint="A loop over M + 7 ticks: the first stage takes microbatch i, the others what "
    "arrived. What the last stage has made from tick 7 on is the result; the others "
    "give zeros to the sum.",
    solution="""
        ```python
        def pipeline(x, w):
            s, M = jax.lax.axis_index("P"), len(x)

            def tick(arrived, i):
                here = jnp.where(s == 0, x[jnp.minimum(i, M - 1)], arrived)
                out = jax.nn.relu(here @ w[0])
                ahead = [(i, i + 1) for i in range(7)]
                return jax.lax.ppermute(out, "P", ahead), out

            nothing = jax.lax.pcast(jnp.zeros_like(x[0]), "P", to="varying")
            _, out = jax.lax.scan(tick, nothing, jnp.arange(M + 7))
            return jax.lax.psum(jnp.where(s == 7, out[7:], 0), "P")
        ```
    """,
)


def _sum_shapes(rng):
    M, B, D, F = rng.randint(3, 6), 16, 8 * rng.randint(1, 4), 8 * rng.randint(1, 4)
    return (M, B, D), (M, B, F)


def _weight_gradient(x, dy):
    return sum(one.T @ two for one, two in zip(x, dy, strict=True))


ONCE = Sharded(
    id="12.11",
    title="Once, not in every tick",
    task=r"""
        **Given** each device's part of $M$ microbatches $x[M, B_R, D]$, and of the
        gradients $dy[M, B_R, F]$ of what was made from them.

        **Wanted** the function that every device runs, returning all of
        $dw = \sum_m x_m^\top dy_m$, summed in a loop over the microbatches, as a
        pipeline has to: exactly one AllReduce, of $4DF$ bytes, and no matmul over more
        than one microbatch, $2 (B/8) D F$ FLOPs on a device.
    """,
    stub="def gradient(x, dy): ...",
    mesh={"R": 8},
    shapes=_sum_shapes,
    in_specs=((None, "R", None), (None, "R", None)),
    out_spec=(None, None),
    spec=_weight_gradient,
    collectives=lambda x, dy: [Collective("all_reduce", ("R",), 4 * x[2] * dy[2], 8)],
    largest_product=lambda x, dy: 2 * x[1] / 8 * x[2] * dy[2],
    slips=(
        Slip(
            "in every tick",
            lambda x, dy: [
                Collective("all_reduce", ("R",), 4 * x[2] * dy[2], 8, times=x[0])
            ],
            "Add up on the device first, over the microbatches, and then over R.",
        ),
        Slip(
            "activations gathered",
            lambda x, dy: [
                Collective("all_gather", ("R",), 4 * x[0] * x[1] * x[2], 8),
                Collective("all_gather", ("R",), 4 * dy[0] * dy[1] * dy[2], 8),
            ],
            "Each device can make its own term of the sum.",
        ),
    ),
    hint="The loop carries a term of the sum, one for each device.",
    solution="""
        ```python
        def gradient(x, dy):
            def tick(total, one):
                x, dy = one
                return total + x.T @ dy, None

            nothing = jnp.zeros((x.shape[2], dy.shape[2]), x.dtype)
            nothing = jax.lax.pcast(nothing, "R", to="varying")
            total, _ = jax.lax.scan(tick, nothing, (x, dy))
            return jax.lax.psum(total, "R")
        ```
    """,
)


# Several steps.

_PARAMS = 405_853_388_800
_WORK = 6 * _PARAMS * 512 * 8192 / (1024 * chips.H100.flops["bf16"])

STEP = Number(
    id="12.12",
    title="A step with its bubble",
    points=2,
    task=r"""
        **Given** Llama 3.1 405B, 405,853,388,800 params, on 1,024 H100: 16 equal
        stages, tensor parallelism over 8, and data parallelism over the rest. 512
        sequences of 8,192 tokens, one to a microbatch, interleaved with two chunks,
        nothing computed again.

        **Wanted** the seconds of a step, if all but the bubble is math at the peak of
        bf16. Attention scores are left out.
    """,
    given=stated(chips.H100, "flops.bf16"),
    stub="seconds = ...",
    unit="s",
    rtol=0.002,
    expected=lambda: _WORK * (1 + idle("interleaved", 16, 64, 2) / (3 * 64)),
    slips=(
        Slip("without the bubble", lambda right: _WORK, "The stages wait, too."),
        Slip(
            "all stages wait",
            lambda right: _WORK * (1 + 16 / (2 * 64)),
            "A stage does not wait for itself.",
        ),
        Slip(
            "a share of the step",
            lambda right: _WORK / (1 - 15 / (2 * 64)),
            "(p − 1)/(vM) is idle over busy time, not over the whole step.",
        ),
        Slip(
            "without chunks",
            lambda right: _WORK * (1 + 15 / 64),
            "Two chunks halve the bubble.",
        ),
        Slip(
            "forward pass alone",
            lambda right: right / 3,
            "A step has 6 FLOPs a param and token.",
        ),
        Slip(
            "computed again",
            lambda right: right * 4 / 3,
            "Nothing is computed again: 6 FLOPs a param and token, not 8.",
        ),
        Slip(
            "sparse peak",
            lambda right: right / 2,
            "Ordinary matrices run at the dense rate.",
        ),
        Slip(
            "all sequences in one pipeline",
            lambda right: _WORK * (1 + 15 / (2 * 512)),
            "The 512 sequences are shared out over several pipelines. How many "
            "microbatches has each?",
        ),
        Slip(
            "the bubble alone",
            lambda right: _WORK * 15 / (2 * 64),
            "That is the wait. The step has the math as well.",
        ),
        Slip(
            "chunks that lengthen the bubble",
            lambda right: _WORK * (1 + 2 * 15 / 64),
            "Two chunks make the bubble shorter, not longer.",
        ),
    ),
    hint="How many pipelines are there, and how many microbatches has each?",
    solution="""
        $1024/(16\\cdot8) = 8$ pipelines with 64 microbatches each.

        ```python
        from shardmath.hardware import chips

        work = 6 * 405_853_388_800 * 512 * 8192 / (1024 * chips.H100.flops["bf16"])
        seconds = work * (1 + 15 / (2 * 64))
        ```
    """,
)


def _published() -> float:
    F_and_B, I, W = 14.00 / 97, 1.99 / 23, 0.48 / 23
    return 7 * (F_and_B + I + W - 3 * W)


PUBLISHED = Number(
    id="12.13",
    title="A step taken apart",
    points=2,
    task=r"""
        **Given** what DeepSeek published of a step on its other network: 1.13 s of
        forward passes, 1.99 s of gradients of inputs, 0.48 s of gradients of weights,
        14.00 s of pairs. The first of its 16 stages does 97 pairs. Outside of them it
        does 23 forward passes, 8 whole backward passes, 15 gradients of inputs and 15
        of weights. A whole backward pass counts once under the gradients of inputs, and
        once under those of weights.

        **Wanted** the bubble by the closed form of DualPipe, in seconds. They measured
        2.03 s.
    """,
    stub="seconds = ...",
    unit="s",
    rtol=0.004,
    expected=_published,
    slips=(
        Slip(
            "gradients of inputs for a backward pass",
            lambda right: 7 * (14.00 / 97 + 1.99 / 23 - 3 * 0.48 / 23),
            "The B of the closed form is a whole backward pass, of inputs and weights.",
        ),
        Slip(
            "weights apart alone",
            lambda right: 7 * (14.00 / 97 + 1.99 / 23 - 2 * 0.48 / 15),
            "The 8 whole backward passes have gradients of weights, too.",
        ),
        Slip(
            "both gradients apart alone",
            lambda right: 7 * (14.00 / 97 + 1.99 / 15 - 2 * 0.48 / 15),
            "The 8 whole backward passes have both gradients, too.",
        ),
        Slip(
            "weights in the 1.99 s",
            lambda right: 7 * (14.00 / 97 + (1.99 - 8 * 0.032) / 23 - 2 * 0.032),
            "The weights of whole backward passes stand under the 0.48 s here.",
        ),
        Slip(
            "15 stages to pass",
            lambda right: right * 15 / 7,
            "From both ends it is half as far to the middle.",
        ),
        Slip(
            "pairs as their parts",
            lambda right: 7 * ((1.13 + 2 * 1.99 + 2 * 0.48) / 23 - 3 * 0.48 / 23),
            "A pair takes 14.00 s / 97, less than its parts.",
        ),
        Slip(
            "what was measured",
            lambda right: 2.03,
            "That was measured. What does the formula say?",
        ),
        scaled(
            "p/2 for p/2 − 1",
            8 / 7,
            "From an end to the middle there is one step less than half of the stages.",
        ),
    ),
    hint="Each op's seconds by its count. Both gradients were made 8 + 15 times.",
    solution="""
        ```python
        pair, I, W = 14.00 / 97, 1.99 / (8 + 15), 0.48 / (8 + 15)
        seconds = (16 / 2 - 1) * (pair + (I + W) - 3 * W)
        ```

        This is two thirds of the measured time. Sends and uneven stages may take the
        rest.
    """,
)


def _quarrel() -> float:
    one = step(
        combine(pipeline("P"), fsdp("X")),
        LLAMA_3_70B,
        {"P": 4, "X": 8},
        256,
        4096,
        attention="causal",
        microbatches=32,
        vocabulary=False,
    ).at(1)
    return sum(c.total_sent for c in one.collectives if c.axes == ("X",))


QUARREL = Number(
    id="12.14",
    title="Why it quarrels with ZeRO-3",
    points=2,
    task=r"""
        **Given** Llama 3.1 70B, 80 layers of 855,638,016 weights, on 4 stages of 8
        chips, FSDP within a stage, full remat, bf16, 32 microbatches. In each, weights
        are gathered once forward and once more for the backward pass, and their
        gradients scattered.

        **Wanted** the bytes that a chip of a middle stage sends within its stage in a
        step.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=_quarrel,
    slips=(
        scaled(
            "once a step", 1 / 32, "A stage turns to the next microbatch in between."
        ),
        scaled("gathers alone", 2 / 3, "The gradients are scattered, too."),
        scaled("all stages", 4, "A stage has a quarter of the layers."),
        scaled(
            "own part sent too",
            8 / 7,
            "A chip need not send anything to itself: one part of n stays.",
        ),
        scaled(
            "gathered for the recompute, too",
            4 / 3,
            "The recomputation of a layer and its backward pass share one gather.",
        ),
        scaled("one layer", 1 / 20, "A stage has 20 layers."),
    ),
    hint="Three times the stage's weights for each microbatch.",
    solution="""
        ```python
        weights = 20 * 855_638_016 * 2
        nbytes = 32 * 3 * weights * 7 / 8
        ```

        2.9 TB. With ZeRO-1 it would be gathered and scattered once: 60 GB.
    """,
)
