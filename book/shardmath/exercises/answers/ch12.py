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
        bytes, seconds, microbatches. A bubble is idle time over busy time.

        In 12.9 to 12.11 you write programs for eight virtual devices. They are graded
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

EIGHT = {"P": 8}

BUBBLE = Number(
    id="12.1",
    title="A bubble",
    task="""
        **Given** 12 equal stages and 40 microbatches under 1F1B.

        **Wanted** the bubble, which is idle time divided by busy time.
    """,
    stub="bubble = ...",
    unit="",
    expected=lambda: schedule("1f1b", 12, 40).bubble,
    slips=(
        scaled(
            "all stages",
            12 / 11,
            "Did you count every stage? A stage waits for the others, but not for "
            "itself.",
        ),
        scaled(
            "share of the step",
            40 / 51,
            "That is idle time over the time of the whole step. The question asks for "
            "idle time over busy time.",
        ),
        scaled(
            "forward pass alone",
            2,
            "Did you count only the work of the forward pass? A stage works in both "
            "passes, just as it waits in both.",
        ),
        scaled(
            "upside down",
            (40 / 11) ** 2,
            "That is busy time over idle time. Did you divide the wrong way round?",
        ),
        scaled(
            "the busy share",
            (40 / 51) / (11 / 40),
            "That is the share of the step in which a stage works.",
        ),
    ),
    hint="How long does the last stage wait for its first microbatch, and how long "
    "does the first stage wait for its last gradient?",
    solution="""
        Each of $p$ stages waits for $(p-1)(F+B)$ in all and works for $M(F+B)$ on $M$
        microbatches, so the times $F$ and $B$ of the two passes cancel.

        ```python
        bubble = (12 - 1) / 40
        ```
    """,
)

MICROBATCHES = Number(
    id="12.2",
    title="Enough microbatches",
    task="""
        **Given** 24 equal stages with three chunks of layers each, in an interleaved
        schedule. For this schedule, the number of microbatches must be a multiple of
        the number of stages.

        **Wanted** the smallest number of microbatches for which the bubble, idle time
        over busy time, is at most 4 %.
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
            "Did you leave out the chunks? With three of them, the pipeline fills in "
            "a third of the time.",
        ),
        Slip(
            "without chunks, and no multiple of 24",
            lambda right: 575,
            "With three chunks, the pipeline fills in a third of the time. Besides, "
            "the number of microbatches must be a multiple of the number of stages.",
        ),
        Slip(
            "24 microbatches too few",
            lambda right: 168,
            "With so few microbatches, the bubble is still 4.6 %.",
        ),
        Slip(
            "chunks counted as stages",
            lambda right: 1776,
            "Did you count each chunk as a stage? Three chunks make the bubble "
            "smaller, not larger.",
        ),
        Slip(
            "all stages wait",
            lambda right: 200,
            "A stage doesn't wait for itself, and the number of microbatches must be "
            "a multiple of the number of stages.",
        ),
        Slip(
            "24 microbatches too many",
            lambda right: 216,
            "With 24 fewer microbatches, the bubble is still at most 4 %.",
        ),
    ),
    hint="With v chunks, the bubble is (p − 1)/(vM). For which M is it small enough, "
    "and what is the next multiple of 24?",
    solution="""
        Three chunks divide the waiting by three, so the bubble is $23/(3M)$. It is at
        most 0.04 if $M$ is at least 192, and 192 is the eighth multiple of 24.

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
        **Given** Llama 3.1 405B with $D = 16{,}384$. Its 126 layers are on 9 stages of
        14 layers each, and the stages are counted from 0. Each stage has 8 chips with
        tensor and sequence parallelism. A step has 36 microbatches of one sequence of
        8,192 tokens, in bf16, under 1F1B and with full remat, so the input of each
        layer is kept.

        **Wanted** the largest number of bytes that these inputs take up on a chip of
        stage 3 at one time.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _held(3),
    slips=(
        scaled(
            "all microbatches",
            36 / 6,
            "That is what a stage holds under GPipe, which keeps all microbatches. "
            "Under 1F1B, a stage starts a backward pass as soon as it can.",
        ),
        scaled(
            "as the first stage",
            9 / 6,
            "Stage 0 holds nine microbatches. Stage 3 is nearer to the end, so it "
            "holds fewer.",
        ),
        scaled(
            "one fewer",
            5 / 6,
            "Did you leave one microbatch out? The one that the stage is working on "
            "is held, too.",
        ),
        scaled(
            "one more",
            7 / 6,
            "Did you count the stages from 1? They are counted from 0, so a stage "
            "holds p − s microbatches, without adding 1.",
        ),
        scaled(
            "the stream whole",
            8,
            "Did you count the whole residual stream? Sequence parallelism splits it "
            "over 8 chips.",
        ),
        scaled("one layer", 1 / 14, "Each of the stage's 14 layers keeps its input."),
        scaled(
            "all layers",
            9,
            "Did you count all 126 layers? A stage has only 14 of them.",
        ),
    ),
    hint="Under 1F1B, stage s holds p − s microbatches. What does one chip hold of "
    "each of them?",
    solution="""
        Under 1F1B, a stage holds a microbatch until its gradient comes back, so stage 3
        of 9 holds $9-3=6$. For each of them it keeps the inputs of 14 layers, and
        sequence parallelism leaves an eighth of these on each chip.

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

        **Wanted** a function that returns the time from the start of the first forward
        pass to the end of the last one.
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
            "The first microbatch never waits, so in each stage it takes only that "
            "stage's own time.",
        ),
        Slip(
            "as if all were even",
            lambda times, M: (len(times) + M - 1) * sum(times) / len(times),
            "Did you use the mean time of the stages? The microbatches follow one "
            "another at the pace of the slowest stage.",
        ),
        Slip(
            "one microbatch at a time",
            lambda times, M: M * sum(times),
            "The next microbatch doesn't have to wait until the one before has left "
            "the last stage. It can enter as soon as the first stage is free.",
        ),
        Slip(
            "one microbatch too many",
            lambda times, M: sum(times) + M * max(times),
            "Did you count the first microbatch twice? It is already in the sum of "
            "the times.",
        ),
    ),
    hint="When is the first microbatch done, and at what interval do the others follow "
    "it?",
    solution="""
        The first microbatch passes through all the stages without waiting. The others
        follow it at the pace of the slowest stage.

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
        **Given** Llama 3.1 70B with $D = 8192$ and 80 layers on 8 chips, one stage on
        each. A step has 32 microbatches of one sequence of 4,096 tokens in bf16. The
        schedule is 1F1B, and each chip runs a separate program.

        **Wanted** the bytes that a chip in the middle of the pipeline sends in a step.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=_boundary,
    slips=(
        scaled(
            "one direction",
            1 / 2,
            "Did you count both passes? A gradient goes back for each microbatch that "
            "goes forward.",
        ),
        scaled(
            "one microbatch",
            1 / 32,
            "Did you count a single microbatch? All 32 of them pass through the stage.",
        ),
        scaled(
            "in every layer",
            10,
            "Did you count a send after every layer? Nothing is sent between the ten "
            "layers of a stage.",
        ),
        scaled(
            "as a loop",
            39 / 32,
            "A loop over ticks also sends in its bubbles. Here each chip runs its own "
            "program.",
        ),
        scaled(
            "an eighth of the stream",
            1 / 8,
            "Did you divide the residual stream by the number of chips? Each stage "
            "works on the whole stream.",
        ),
        scaled(
            "all stages",
            8,
            "Did you add up all the stages? The question asks for the bytes of one "
            "chip in the middle, not of all eight.",
        ),
    ),
    hint="What crosses a boundary between two stages? It is the residual stream of "
    "one microbatch in the forward pass, and its gradient in the backward pass.",
    solution="""
        Only the residual stream moves between stages. For each microbatch, the chip
        sends it forward once and the gradient back once.

        ```python
        nbytes = 2 * 32 * 4096 * 8192 * 2
        ```
    """,
)

LOOP = Number(
    id="12.6",
    title="The same pipeline as a loop",
    task=r"""
        **Given** the pipeline of 12.5, with 8 stages, 32 microbatches of 4,096 tokens
        and $D = 8192$ in bf16. But now the pipeline is written as one loop over ticks,
        with a `ppermute` in each tick, and JAX derives the backward pass.

        **Wanted** the bytes that a chip sends in a step.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _boundary() * 39 / 32,
    slips=(
        scaled(
            "without bubbles",
            32 / 39,
            "Did you leave out the bubbles? A loop does the same in every tick, so it "
            "sends even in a bubble.",
        ),
        scaled(
            "one tick too many",
            40 / 39,
            "Did you count one tick too many? The first tick is already one of the M "
            "ticks.",
        ),
        scaled(
            "one direction",
            1 / 2,
            "Did you count both passes? The loop of the backward pass permutes in "
            "every tick, too.",
        ),
        scaled(
            "each microbatch past every stage",
            32 * 8 / 39,
            "Did you multiply by the number of stages? In each tick all stages send "
            "at the same time, and each of them sends once.",
        ),
    ),
    hint="How many ticks does the loop have, and what does a chip send in each of "
    "them?",
    solution="""
        A loop sends in every tick, even in the bubbles. It has $M+n-1 = 39$ ticks in
        the forward pass and as many in the backward pass.

        ```python
        nbytes = 2 * (32 + 8 - 1) * 4096 * 8192 * 2
        ```
    """,
)

_ZB = Times(F=0.040, I=0.052, W=0.038)

ZERO_BUBBLE = Number(
    id="12.7",
    title="A bubble filled with weight gradients",
    task="""
        **Given** 8 stages and 64 microbatches under ZB-H1. For one microbatch, a stage
        takes 40 ms for the forward pass, 52 ms for the gradient of the input, and 38 ms
        for the gradients of the weights.

        **Wanted** the total seconds that a stage waits in a step.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: max(schedule("zb-h1", 8, 64, times=_ZB).idle),
    slips=(
        Slip(
            "1F1B",
            lambda right: 7 * 0.130,
            "That is the wait under 1F1B, which doesn't split the backward pass.",
        ),
        Slip(
            "nothing subtracted, or another paper's B",
            lambda right: 7 * (0.040 + 0.090 - 0.038),
            "Did you subtract W from F + I? Some papers write F + B − W, where B means "
            "only the gradient of the input.",
        ),
        Slip(
            "weights subtracted twice",
            lambda right: 7 * (0.040 + 0.052 - 2 * 0.038),
            "If you subtract 2W, then B has to be the whole backward pass.",
        ),
        scaled(
            "all stages",
            8 / 7,
            "Did you count every stage? A stage doesn't wait for itself.",
        ),
        scaled(
            "one stage",
            1 / 7,
            "That is the wait for one stage. The last stage is seven stages away from "
            "the first, and each of these adds to the wait.",
        ),
        Slip(
            "the whole step",
            lambda right: right + 64 * 0.130,
            "That is the time of the whole step. The question asks only for the wait.",
        ),
    ),
    hint="According to (12.7), a stage waits for (p − 1)(F + I − W). Which letter "
    "stands for which of the given times?",
    solution="""
        The stage before needs only the gradient of the input, $I$. The gradients of the
        weights, $W$, can be computed later, so they fill a part of the wait, and
        $(p-1)(F+I-W)$ is left.

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
        **Given** 16 stages and 120 microbatches under DualPipe. For one microbatch, a
        stage takes 50 ms for the forward pass, 50 ms for the gradient of the input, 40
        ms for the gradients of the weights, and 130 ms for a forward and a backward
        pass that run together.

        **Wanted** the longest time, in seconds, that any stage waits.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: max(schedule("dualpipe", 16, 120, times=_DUAL).idle),
    slips=(
        Slip(
            "pairs apart",
            lambda right: 7 * (0.140 + 0.090 - 0.120),
            "Did you add up the times of the two passes? Together they take 130 ms, "
            "not 140.",
        ),
        Slip(
            "all stages in a row",
            lambda right: 15 * (0.130 + 0.090 - 0.120),
            "Did you count the steps from the first stage to the last? DualPipe starts "
            "at both ends, so the wait depends only on the distance to the middle.",
        ),
        Slip(
            "1F1B",
            lambda right: 15 * 0.140,
            "That is the wait under 1F1B, with one direction and an undivided "
            "backward pass.",
        ),
        Slip(
            "input's gradient for the whole backward pass",
            lambda right: 7 * (0.130 + 0.050 - 0.120),
            "Did you take only the gradient of the input for B? Here B is the whole "
            "backward pass, with both gradients.",
        ),
        Slip(
            "p/2 for p/2 − 1",
            lambda right: 8 * (0.130 + 0.090 - 0.120),
            "From an end to the middle, there is one step fewer than half the number "
            "of stages.",
        ),
        Slip(
            "the formula of ZB-H1",
            lambda right: 15 * (0.050 + 0.050 - 0.040),
            "That is the formula of ZB-H1, which has only one direction. DualPipe "
            "feeds microbatches from both ends.",
        ),
        Slip(
            "one W for three",
            lambda right: 7 * (0.130 + 0.090 - 0.040),
            "The formula subtracts the time for the gradients of the weights three "
            "times, not once.",
        ),
        Slip(
            "two W for three",
            lambda right: 7 * (0.130 + 0.090 - 2 * 0.040),
            "The formula subtracts the time for the gradients of the weights three "
            "times, not twice.",
        ),
    ),
    hint="According to (12.8), the wait is (p/2 − 1)(F&B + B − 3W), where B is the "
    "whole backward pass. Which of the given times is F&B, and which two make up B?",
    solution="""
        Microbatches enter from both ends, so it takes only $p/2-1$ steps to reach the
        middle. In (12.8), $B$ is the whole backward pass, so it is the sum of both
        gradients.

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
        **Given** each device's part of $x[B_P, D]$, which is the output of its stage.

        **Wanted** the function that every device runs. It returns the output of the
        stage before, and on the first stage it returns zeros. It uses exactly one
        permute.
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
            "Did you gather everything? Each stage needs the output of only one other "
            "stage.",
        ),
    ),
    values=(
        Slip(
            "the wrong way",
            _to_the_stage_before,
            "In your result, each stage gets the output of the stage after it. Data "
            "should move the other way.",
        ),
        Slip(
            "round the ring",
            _around,
            "In your result, the last stage sends to the first one. In a pipeline, "
            "the first stage gets zeros.",
        ),
        Slip(
            "the wrong way round the ring",
            lambda x: _around(x, -1),
            "In your result, each stage gets the output of the stage after it, and the "
            "last stage gets that of the first one.",
        ),
        Slip(
            "nothing handed on",
            lambda x: x,
            "In your result, each stage keeps its own output.",
        ),
    ),
    hint=(
        "`jax.lax.ppermute` takes pairs (from, to). Which pairs does a pipeline need? "
        "A device that is not the target of any pair gets zeros."
    ),
    solution="""
        Every stage but the last sends to the next one. The first stage isn't the target
        of any pair, so it gets zeros.

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
        **Given** all microbatches $x[M, B, D]$, and each device's layer of the weights
        $w[L_P, D, D]$, with $L = 8$ layers in all.

        **Wanted** the function that every device runs. It passes all microbatches
        through all eight layers, $x \to \max(x\,w_l, 0)$, and returns the results of
        all microbatches, complete on every device. It may send no more than $M+7$
        permutes of $4BD$ bytes each and one AllReduce of $4MBD$ bytes.
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
            "You gathered the weights, as FSDP does. Here they should stay where they "
            "are.",
        ),
        Slip(
            "one microbatch at a time",
            lambda x, w: [
                Collective("permute", ("P",), 4 * x[1] * x[2], 8, times=8 * x[0]),
                Collective("all_reduce", ("P",), 4 * x[0] * x[1] * x[2], 8),
            ],
            "In your pipeline, only one microbatch is on its way at a time. The next "
            "one can enter as soon as the first stage is free.",
        ),
        Slip(
            "one microbatch at a time, seven hops",
            lambda x, w: [
                Collective("permute", ("P",), 4 * x[1] * x[2], 8, times=7 * x[0]),
                Collective("all_reduce", ("P",), 4 * x[0] * x[1] * x[2], 8),
            ],
            "In your pipeline, each microbatch passes alone. The next one can follow "
            "one tick later.",
        ),
        Slip(
            "no microbatches",
            lambda x, w: [
                Collective("permute", ("P",), 4 * x[0] * x[1] * x[2], 8, times=7),
                Collective("all_reduce", ("P",), 4 * x[0] * x[1] * x[2], 8),
            ],
            "You sent the whole batch at once, so only one stage is busy at a time.",
        ),
    ),
    values=(
        Slip(
            "one tick early",
            _late,
            "Your first microbatch comes out as zeros, and the last one is missing. "
            "In which tick does the last stage finish the first microbatch?",
        ),
        Slip(
            "no activation",
            _linear,
            "Did you forget the activation? After each layer, negative values become "
            "zero.",
        ),
    ),
    hint="Write a loop over M + 7 ticks. In tick i, the first stage takes microbatch "
    "i, and the others take what has arrived. Which outputs of the last stage are the "
    "result? The other stages add zeros to the sum.",
    solution="""
        The first microbatch is finished in tick 7, counted from 0, so the last stage's
        outputs from that tick onward are the result. All other stages add zeros to
        them, and the AllReduce brings the sum to every device.

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
        gradients $dy[M, B_R, F]$ of the outputs that were computed from them.

        **Wanted** the function that every device runs. It returns the whole of
        $dw = \sum_m x_m^\top dy_m$ and computes the sum in a loop over the
        microbatches, as a pipeline has to do. It uses exactly one AllReduce, of $4DF$
        bytes, and no matmul covers more than one microbatch, so none takes more than
        $2 (B/8) D F$ FLOPs on a device.
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
            "Did you reduce in every tick? First add up the microbatches on each "
            "device, and reduce only that sum over R.",
        ),
        Slip(
            "activations gathered",
            lambda x, dy: [
                Collective("all_gather", ("R",), 4 * x[0] * x[1] * x[2], 8),
                Collective("all_gather", ("R",), 4 * dy[0] * dy[1] * dy[2], 8),
            ],
            "Did you gather the activations? Each device can compute its own term of "
            "the sum.",
        ),
    ),
    hint="The loop carries a sum, and each device has its own. When do the sums of "
    "the devices have to be added up?",
    solution="""
        Each device first adds up its own terms in the loop. Only the finished sums have
        to be added up over $R$, so one AllReduce after the loop is enough.

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
        **Given** Llama 3.1 405B with 405,853,388,800 parameters on 1,024 H100s, with 16
        equal stages, tensor parallelism over 8, and data parallelism over the rest. A
        step has 512 sequences of 8,192 tokens, one per microbatch. The schedule is
        interleaved with two chunks per stage, and nothing is computed again.

        **Wanted** the time of a step in seconds, to four significant digits. Outside
        the bubble, the chips do nothing but math at the bf16 peak rate. Leave out the
        attention scores.
    """,
    given=stated(chips.H100, "flops.bf16"),
    stub="seconds = ...",
    unit="s",
    rtol=0.002,
    expected=lambda: _WORK * (1 + idle("interleaved", 16, 64, 2) / (3 * 64)),
    slips=(
        Slip(
            "without the bubble",
            lambda right: _WORK,
            "Did you leave out the bubble? The stages also spend time waiting.",
        ),
        Slip(
            "all stages wait",
            lambda right: _WORK * (1 + 16 / (2 * 64)),
            "Did you count every stage? A stage doesn't wait for itself.",
        ),
        Slip(
            "a share of the step",
            lambda right: _WORK / (1 - 15 / (2 * 64)),
            "(p − 1)/(vM) is idle time over busy time, not over the time of the whole "
            "step.",
        ),
        Slip(
            "without chunks",
            lambda right: _WORK * (1 + 15 / 64),
            "Did you leave out the chunks? Two chunks halve the bubble.",
        ),
        Slip(
            "forward pass alone",
            lambda right: right / 3,
            "Did you count only the forward pass? Both passes together take 6 FLOPs "
            "per parameter and token.",
        ),
        Slip(
            "computed again",
            lambda right: right * 4 / 3,
            "Nothing is computed again, so a step takes 6 FLOPs per parameter and "
            "token, not 8.",
        ),
        Slip(
            "sparse peak",
            lambda right: right / 2,
            "Did you use the sparse peak? Ordinary matrices are multiplied at the "
            "dense rate.",
        ),
        Slip(
            "all sequences in one pipeline",
            lambda right: _WORK * (1 + 15 / (2 * 512)),
            "The 512 sequences are divided among several pipelines. How many "
            "microbatches does each of them have?",
        ),
        Slip(
            "the bubble alone",
            lambda right: _WORK * 15 / (2 * 64),
            "That is only the wait. The step also includes the time for the math.",
        ),
        Slip(
            "chunks that lengthen the bubble",
            lambda right: _WORK * (1 + 2 * 15 / 64),
            "Two chunks make the bubble shorter, not longer.",
        ),
    ),
    hint="How many pipelines are there, and how many microbatches does each of them "
    "have?",
    solution="""
        The batch is divided among $1024/(16\\cdot8) = 8$ pipelines, so each of them has
        64 microbatches. The bubble comes on top of the math and is $15/(2\\cdot64)$ of
        it.

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
        **Given** times that DeepSeek published for a step on a different network from
        the chapter's: 1.13 s for forward passes, 1.99 s for gradients of inputs, 0.48 s
        for gradients of weights, and 14.00 s for pairs of a forward and a backward pass
        that run together. The first of 16 stages computes 97 such pairs. Besides these,
        it computes 23 forward passes, 8 whole backward passes, 15 gradients of inputs
        and 15 of weights. A whole backward pass counts once under the gradients of
        inputs and once under those of weights.

        **Wanted** the bubble in seconds, according to DualPipe's formula (12.8). The
        measured bubble was 2.03 s.
    """,
    stub="seconds = ...",
    unit="s",
    rtol=0.004,
    expected=_published,
    slips=(
        Slip(
            "gradients of inputs for a backward pass",
            lambda right: 7 * (14.00 / 97 + 1.99 / 23 - 3 * 0.48 / 23),
            "In (12.8), B is a whole backward pass, with the gradients of both inputs "
            "and weights.",
        ),
        Slip(
            "weight gradients of whole passes left out",
            lambda right: 7 * (14.00 / 97 + 1.99 / 23 - 2 * 0.48 / 15),
            "The 8 whole backward passes contain gradients of weights, too.",
        ),
        Slip(
            "both gradients of whole passes left out",
            lambda right: 7 * (14.00 / 97 + 1.99 / 15 - 2 * 0.48 / 15),
            "The 8 whole backward passes contain both gradients, too.",
        ),
        Slip(
            "weights in the 1.99 s",
            lambda right: 7 * (14.00 / 97 + (1.99 - 8 * 0.032) / 23 - 2 * 0.032),
            "Did you subtract gradients of weights from the 1.99 s? Here those of the "
            "whole backward passes are part of the 0.48 s.",
        ),
        Slip(
            "15 stages to pass",
            lambda right: right * 15 / 7,
            "Did you count the steps from the first stage to the last? DualPipe starts "
            "at both ends, so the wait depends only on the distance to the middle.",
        ),
        Slip(
            "pairs as their parts",
            lambda right: 7 * ((1.13 + 2 * 1.99 + 2 * 0.48) / 23 - 3 * 0.48 / 23),
            "Did you add up the parts of a pair? A pair takes 14.00 s / 97, which is "
            "less than its parts.",
        ),
        Slip(
            "what was measured",
            lambda right: 2.03,
            "That is the measured bubble. What does the formula say?",
        ),
        scaled(
            "p/2 for p/2 − 1",
            8 / 7,
            "From an end to the middle, there is one step fewer than half the number "
            "of stages.",
        ),
    ),
    hint="Divide the seconds of each operation by its count. Both kinds of gradients "
    "were computed 8 + 15 times. What is B then?",
    solution="""
        Formula (12.8) needs the time of one operation, which is the published time
        divided by the count. The 8 whole backward passes count for both gradients.

        ```python
        pair, I, W = 14.00 / 97, 1.99 / (8 + 15), 0.48 / (8 + 15)
        seconds = (16 / 2 - 1) * (pair + (I + W) - 3 * W)
        ```

        This is two thirds of the measured time. Sends and uneven stages may account for
        the rest.
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
    title="Why a pipeline conflicts with ZeRO-3",
    points=2,
    task=r"""
        **Given** Llama 3.1 70B, with 80 layers of 855,638,016 weights each, on 4 stages
        of 8 chips. Each stage runs FSDP over its chips in bf16, with full remat and 32
        microbatches. For each microbatch, the weights are gathered once in the forward
        pass and once more for the backward pass, and their gradients are scattered.

        **Wanted** the bytes that a chip of a middle stage sends within its stage in a
        step.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=_quarrel,
    slips=(
        scaled(
            "once per step",
            1 / 32,
            "Did you gather only once per step? A stage computes each microbatch "
            "separately, so it has to gather its weights again each time.",
        ),
        scaled(
            "gathers alone",
            2 / 3,
            "Did you count only the gathers? The gradients are scattered, too.",
        ),
        scaled(
            "all stages",
            4,
            "Did you count all 80 layers? A stage has only a quarter of them.",
        ),
        scaled(
            "own part sent too",
            8 / 7,
            "A chip doesn't send anything to itself, so one of its n parts stays "
            "where it is.",
        ),
        scaled(
            "gathered for the recompute, too",
            4 / 3,
            "Did you add a gather for full remat? The recomputation of a layer and "
            "its backward pass share one gather.",
        ),
        scaled(
            "one layer",
            1 / 20,
            "Those are the bytes of one layer. A stage has 20 layers.",
        ),
    ),
    hint="For each microbatch, there are three collectives of an array as large as the "
    "stage's weights. What share of it does one chip send?",
    solution="""
        A stage gathers the weights of its 20 layers twice and scatters their gradients
        once, and it does so again for each of the 32 microbatches.

        ```python
        weights = 20 * 855_638_016 * 2
        nbytes = 32 * 3 * weights * 7 / 8
        ```

        This comes to 2.9 TB. With ZeRO-1, the gradients would be scattered and the
        weights gathered only once per step, which takes only 60 GB.
    """,
)
