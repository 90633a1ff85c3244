"""Questions of chapter 20, "Sharding in JAX"."""

import math

from shardmath.collectives import Collective
from shardmath.exercises.kinds import Chapter, Function, Number, Sharded, Slip

CHAPTER = Chapter(
    title="Sharding in JAX",
    topics=(
        "types of sharded arrays, which save counts after a crash, what a hang costs, "
        "data read by any number of processes, and the test of a restart"
    ),
    intro="""
        from the type of an array to the test of a resumed run. Answers are in bytes or
        seconds, unless a task says otherwise.

        20.11 to 20.13 are programs for eight virtual devices. They are graded on their
        result and on what XLA compiles them to.
    """,
    setup="""
        import jax
        import jax.numpy as jnp

        from shardmath.exercises import check, report

        jax.config.update("jax_num_cpu_devices", 8)  # eight virtual chips
    """,
)

ON_A_CHIP = Number(
    id="20.1",
    title="A type and its bytes",
    task=r"""
        **Given** the type `bfloat16[8192@data,28672@model]` on a mesh in which "data"
        has 16 chips and "model" has 8.

        **Wanted** the bytes that one chip holds of this array.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: 2 * 8192 * 28672 / (16 * 8),
    slips=(
        Slip(
            "the whole array",
            lambda right: 128 * right,
            "That is the whole array. The @ shows which axes split it.",
        ),
        Slip(
            "one axis alone",
            lambda right: 8 * right,
            "Did you divide only by the data axis? The second dimension is split too.",
        ),
        Slip(
            "the other axis alone",
            lambda right: 16 * right,
            "Did you divide only by the model axis? The first dimension is split too.",
        ),
        Slip(
            "values for bytes",
            lambda right: right / 2,
            "A value in bf16 takes two bytes.",
        ),
    ),
    hint="Into how many parts is each of the two dimensions split?",
    solution="""
        The data axis splits the first dimension into 16 parts, and the model axis
        splits the second into 8.

        ```python
        nbytes = 2 * (8_192 / 16) * (28_672 / 8)
        ```
    """,
)


def _local(shape: list, parts: list) -> list:
    if any(size % n for size, n in zip(shape, parts, strict=True)):
        return []
    return [size // n for size, n in zip(shape, parts, strict=True)]


def _rounded_up(shape: list, parts: list) -> list:
    return [math.ceil(size / n) for size, n in zip(shape, parts, strict=True)]


def _rounded_down(shape: list, parts: list) -> list:
    return [size // n for size, n in zip(shape, parts, strict=True)]


def _by_the_whole(shape: list, parts: list) -> list:
    if math.prod(shape) % math.prod(parts):
        return []
    return _rounded_down(shape, parts)


def _a_shape(rng) -> tuple:
    count = rng.randint(1, 3)
    parts = [rng.choice([1, 2, 4, 8]) for _ in range(count)]
    shape = [n * rng.randint(1, 12) for n in parts]
    if rng.random() < 0.4:
        shape[rng.randrange(count)] += 1
    return shape, parts


LOCAL = Function(
    id="20.2",
    title="The part of one chip",
    task=r"""
        **Given** the `shape` of an array as a list, and `parts`, a list that says into
        how many parts each dimension is split.

        **Wanted** a function that returns the shape of one chip's part as a list. If a
        dimension can't be split into equal parts, the list is empty.
    """,
    stub="def local(shape, parts): ...",
    spec=_local,
    cases=_a_shape,
    examples=(([8, 16], [2, 4]), ([7, 16], [2, 4]), ([3, 8], [2, 4])),
    slips=(
        Slip(
            "padded",
            _rounded_up,
            "Did you round up? An auto axis pads like this, but here the list must be "
            "empty.",
        ),
        Slip(
            "rounded down",
            _rounded_down,
            "Did you round down? Then some values have no chip.",
        ),
        Slip(
            "the product divides",
            _by_the_whole,
            "Did you compare the number of all values with the number of all chips? "
            "Each dimension has to be divisible.",
        ),
    ),
    hint="Check the remainder of each dimension before you divide.",
    solution="""
        ```python
        def local(shape, parts):
            pairs = list(zip(shape, parts))
            if any(size % n for size, n in pairs):
                return []
            return [size // n for size, n in pairs]
        ```
    """,
)


def _product(x: list, w: list) -> list:
    (b, d), (e, f) = x, w
    if d and e:
        return ["ambiguous"] if d == e else ["inconsistent"]
    if b and b == f:
        return ["illegal"]
    return [b, f]


def _never_refused(x: list, w: list) -> list:
    return [x[0], w[1]]


def _one_side_refused(x: list, w: list) -> list:
    if x[1] or w[0]:
        return ["ambiguous"] if x[1] == w[0] else ["inconsistent"]
    return _product(x, w)


def _axis_twice(x: list, w: list) -> list:
    found = _product(x, w)
    return [x[0], w[1]] if found == ["illegal"] else found


def _two_types(rng) -> tuple:
    pairs = [["", ""], ["X", ""], ["", "X"], ["Y", ""], ["", "Y"], ["X", "Y"],
             ["Y", "X"]]  # fmt: skip
    return rng.choice(pairs), rng.choice(pairs)


PRODUCT = Function(
    id="20.3",
    title="The type of a product",
    task=r"""
        **Given** two lists, `x` and `w`, which name the mesh axes in the explicit types
        of two matrices, $x[B, D]$ and $w[D, F]$. Each list has one string per
        dimension: "X", "Y", or an empty string if the dimension is not split. The
        product is $y[B, F]$, without an `out_sharding`.

        **Wanted** a function that returns JAX's answer, as a list. If $D$ is split in
        both operands, the answer is `["ambiguous"]` if both use the same axis, and
        `["inconsistent"]` if they use different axes. If both dimensions of $y$ would
        be split over the same axis, it is `["illegal"]`. Otherwise it is the list of
        the two axes of $y$, because JAX gathers an operand if $D$ is split in that
        operand only.
    """,
    stub="def product(x, w): ...",
    spec=_product,
    cases=_two_types,
    examples=(
        (["X", ""], ["", "Y"]),
        (["X", ""], ["", "X"]),
        (["", "X"], ["X", ""]),
        (["", "X"], ["Y", ""]),
        (["X", "Y"], ["", ""]),
    ),
    draws=40,
    slips=(
        Slip(
            "never refused",
            _never_refused,
            "Did you leave out the three cases that JAX refuses?",
        ),
        Slip(
            "refused if one side is split",
            _one_side_refused,
            "If D is split in only one operand, JAX gathers that one.",
        ),
        Slip(
            "one axis twice",
            _axis_twice,
            "Can both dimensions of y be split over the same axis?",
        ),
    ),
    hint="Look at the two entries of D first. Only then look at the two that remain.",
    solution="""
        A chip has only one position along each axis, so one axis can't split both
        dimensions of the result.

        ```python
        def product(x, w):
            (rows, left), (right, columns) = x, w
            if left and right:
                return ["ambiguous"] if left == right else ["inconsistent"]
            if rows and rows == columns:
                return ["illegal"]
            return [rows, columns]
        ```
    """,
)

MORE_SENT = Number(
    id="20.4",
    title="An AllReduce where a ReduceScatter was enough",
    task=r"""
        **Given** a gradient of 234,881,024 bytes, which each of 16 chips has computed
        from its own rows. Each chip needs a sixteenth of the sum of all 16. The program
        runs an AllReduce and keeps a sixteenth of its result.

        **Wanted** how many *more* bytes each chip sends than with a ReduceScatter, if
        both send as few bytes as possible.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: 234_881_024 * 15 / 16,
    slips=(
        Slip(
            "all that an AllReduce sends",
            lambda right: 2 * right,
            "That is what the AllReduce sends. How much of it would a ReduceScatter "
            "send?",
        ),
        Slip(
            "the part of one chip",
            lambda right: right / 15,
            "Each chip sends a sixteenth in every one of 15 steps.",
        ),
        Slip(
            "the whole array",
            lambda right: right * 16 / 15,
            "Does a chip have to send its own part of the sum too?",
        ),
    ),
    hint="An AllReduce is a ReduceScatter that is followed by an AllGather.",
    solution="""
        The program could do without the AllGather at the end of the AllReduce.

        ```python
        nbytes = 234_881_024 * 15 / 16
        ```
    """,
)

ORDER = Number(
    id="20.5",
    title="Four terms in any order",
    task=r"""
        **Given** four chips whose terms in fp32 are 16,777,216, 1, 1 and 1. The first
        is $2^{24}$. From there to $2^{25}$, fp32 has only the even whole numbers. An
        odd one is halfway between two of them, and is rounded to the one that is a
        multiple of four. An AllReduce may add the terms in any order and in any
        grouping.

        **Wanted** the largest of the possible results minus the smallest one.
    """,
    stub="spread = ...",
    unit="",
    rtol=0,
    expected=lambda: 4.0,
    slips=(
        Slip(
            "without rounding",
            lambda right: 3.0,
            "Did you subtract the first term from the exact sum? The exact sum is "
            "odd, so fp32 doesn't have it.",
        ),
        Slip(
            "pairs alone",
            lambda right: 2.0,
            "Did you add two pairs? What happens if the three ones are added first?",
        ),
        Slip(
            "one rounding",
            lambda right: 1.0,
            "fp32 has only even numbers here, so the difference is even.",
        ),
    ),
    hint="What is 16,777,216 + 1 in fp32? And 16,777,216 + 3?",
    solution="""
        From left to right each 1 is rounded away, because 16,777,217 is rounded to the
        multiple of four, 16,777,216. If the ones are added first, 16,777,219 is rounded
        to 16,777,220. Two pairs give 16,777,218.

        ```python
        spread = 16_777_220 - 16_777_216
        ```
    """,
)

LOST = Number(
    id="20.6",
    title="Which save counts?",
    task=r"""
        **Given** a run whose steps take 2.5 seconds. After every 40th step it begins to
        save while the steps go on, and each save is complete 30 seconds later. A
        process dies 1,021 seconds after the first step began.

        **Wanted** the seconds of work that are lost.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: 1021 - 900,
    slips=(
        Slip(
            "an incomplete save counted",
            lambda right: 21.0,
            "The save that began last is not complete. Which save is?",
        ),
        Slip(
            "since it was complete",
            lambda right: 1021.0 - 930,
            "That is the time since the last save was complete. When did this save "
            "begin?",
        ),
        Slip(
            "half an interval",
            lambda right: 50.0,
            "That would be the average if saves took no time. Here you know when the "
            "process died.",
        ),
        Slip(
            "everything",
            lambda right: 1021.0,
            "Some saves were complete by then.",
        ),
    ),
    hint="Which save was the last to be complete before the crash? When did it begin?",
    solution="""
        A save begins every 100 seconds. The one that began at 1,000 seconds would have
        been complete at 1,030, so the one that began at 900 seconds counts.

        ```python
        seconds = 1_021 - 900
        ```
    """,
)


def _kept(crash: float, step: float, every: int, write: float) -> int:
    saves = int((crash - write) // (every * step)) if crash > write else 0
    return saves * every


def _begun(crash: float, step: float, every: int, write: float) -> int:
    return int(crash // (every * step)) * every


def _steps_done(crash: float, step: float, every: int, write: float) -> int:
    return int(max(0.0, crash - write) // step)


def _one_less(crash: float, step: float, every: int, write: float) -> int:
    return max(0, _begun(crash, step, every, write) - every)


def _a_crash(rng) -> tuple:
    step = rng.choice([0.5, 1.0, 2.5, 4.0])
    every = rng.choice([5, 10, 40])
    write = round(rng.uniform(0.05, 0.9) * every * step, 2)
    return round(rng.uniform(0.1, 12) * every * step, 2) + 0.003, step, every, write


KEPT = Function(
    id="20.7",
    title="Where a run resumes",
    task=r"""
        **Given** the seconds from the beginning of the first step to a `crash`, the
        seconds that a `step` takes, and `every`, the number of steps from one save to
        the next.
        A save is complete `write` seconds after it began, which is less than the time
        between two saves. The steps go on while it is written.

        **Wanted** a function that returns how many steps the last complete save holds,
        or 0 if no save is complete.
    """,
    stub="def kept(crash, step, every, write): ...",
    spec=_kept,
    units={"crash": "s", "step": "s", "write": "s"},
    cases=_a_crash,
    examples=((1021.0, 2.5, 40, 30.0), (12.5, 1.0, 5, 1.0), (3.0, 1.0, 5, 1.0)),
    slips=(
        Slip(
            "an incomplete save counted",
            _begun,
            "A save counts when it is complete, not when it begins.",
        ),
        Slip(
            "always the one before",
            _one_less,
            "Did you always take the last save but one? Often the last one is "
            "complete.",
        ),
        Slip(
            "every step saved",
            _steps_done,
            "Only the steps after which a save began are kept.",
        ),
    ),
    hint="A save that is complete at the crash began at least `write` seconds before.",
    solution="""
        ```python
        def kept(crash, step, every, write):
            latest = max(0, crash - write)  # when it must have begun
            return int(latest // (every * step)) * every
        ```
    """,
)

HANG = Number(
    id="20.8",
    title="What a hang costs",
    task=r"""
        **Given** a run on 4,096 chips. A save begins every 10 minutes, and is complete
        1 minute later while the run goes on. The heartbeat timeout is 100 seconds, and
        a restart takes 8 minutes. At a random moment a process stops responding. The
        survivors can't finish the step, and all steps since the state of the last
        complete save have to be done again.

        **Wanted** the average number of chip-hours that this failure costs.
    """,
    stub="chip_hours = ...",
    unit="",
    expected=lambda: 4096 * (100 + 480 + 60 + 300) / 3600,
    slips=(
        Slip(
            "no heartbeat",
            lambda right: 4096 * 840 / 3600,
            "The survivors wait until the timeout has passed.",
        ),
        Slip(
            "the time of a save left out",
            lambda right: 4096 * 880 / 3600,
            "When a save is complete, the state that it holds is already a minute old.",
        ),
        Slip(
            "a whole interval lost",
            lambda right: 4096 * 1240 / 3600,
            "On average, the failure comes in the middle of an interval.",
        ),
        Slip(
            "one chip",
            lambda right: right / 4096,
            "All chips wait and repeat the steps.",
        ),
        Slip(
            "in seconds",
            lambda right: 3600 * right,
            "That is a number of chip-seconds.",
        ),
    ),
    hint="How old is the state in the last complete save, at least, at most and on "
    "average?",
    solution="""
        The state in the last complete save is between 1 and 11 minutes old, and 6
        minutes on average. The run repeats these steps after the timeout and the
        restart.

        ```python
        seconds = 100 + 8 * 60 + 6 * 60
        chip_hours = 4_096 * seconds / 3_600
        ```
    """,
)

WRITTEN = Number(
    id="20.9",
    title="Each process writes its part",
    task=r"""
        **Given** a model of 70.6 billion parameters. A checkpoint holds the weights in
        bf16, and in fp32 a copy of the weights and the two moments of Adam. All of it
        is sharded evenly over 128 processes, each of which writes 2 GB/s.

        **Wanted** the seconds until the checkpoint is written.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: 14 * 70.6e9 / 128 / 2e9,
    slips=(
        Slip(
            "one process writes all",
            lambda right: 128 * right,
            "Did one process write everything? Each one writes only what it holds.",
        ),
        Slip(
            "without the copy in fp32",
            lambda right: right * 10 / 14,
            "Besides the moments, there is a copy of the weights in fp32.",
        ),
        Slip(
            "gradients too",
            lambda right: right * 16 / 14,
            "Gradients are computed anew in each step, so a checkpoint doesn't need "
            "them.",
        ),
        Slip(
            "the weights alone",
            lambda right: right * 2 / 14,
            "Without the optimizer's state the run would not be the same.",
        ),
    ),
    hint="How many bytes per parameter are in the checkpoint? What share of them does "
    "one process write?",
    solution="""
        Each parameter takes two bytes in bf16 and three times four in fp32.

        ```python
        nbytes = (2 + 4 + 4 + 4) * 70.6e9
        seconds = nbytes / 128 / 2e9
        ```
    """,
)


def _next_rows(done: int, batch: int, readers: int, i: int) -> list:
    start = done * batch
    return [start + row for row in range(i, batch, readers)]


def _contiguous(done: int, batch: int, readers: int, i: int) -> list:
    part = batch // readers
    start = done * batch + i * part
    return list(range(start, start + part))


def _from_the_start(done: int, batch: int, readers: int, i: int) -> list:
    return _next_rows(0, batch, readers, i)


def _local_batches(done: int, batch: int, readers: int, i: int) -> list:
    part = batch // readers
    start = done * part
    return [start + row for row in range(i, batch, readers)]


def _a_reader(rng) -> tuple:
    readers = rng.choice([2, 4, 8])
    return (
        rng.randint(1, 50),
        readers * rng.choice([2, 3, 4]),
        readers,
        rng.randrange(readers),
    )


ROWS = Function(
    id="20.10",
    title="Which rows does this process read?",
    task=r"""
        **Given** a data set in a fixed order. Process number `i` of `readers` reads
        `source[i::readers]`, that is, row `i` and then every `readers`-th row. Together
        the processes read `batch` rows per step, the same number each. The checkpoint
        says that `done` batches have been read, perhaps by a different number of
        processes.

        **Wanted** a function that returns a list: the numbers of the rows that process
        `i` reads for the next batch. Rows are numbered from 0 in the fixed order.
    """,
    stub="def rows(done, batch, readers, i): ...",
    spec=_next_rows,
    cases=_a_reader,
    examples=((10, 8, 2, 1), (10, 8, 4, 1)),
    slips=(
        Slip(
            "neighbouring rows",
            _contiguous,
            "Did you give each process neighbouring rows? The slice takes every "
            "`readers`-th row.",
        ),
        Slip(
            "from the beginning",
            _from_the_start,
            "Did you forget the batches that have already been read?",
        ),
        Slip(
            "its own rows counted",
            _local_batches,
            "Other processes have read rows too. How many rows have they read "
            "together?",
        ),
    ),
    hint="Which row does the next batch begin with, and which of its rows does "
    "process `i` read?",
    solution="""
        ```python
        def rows(done, batch, readers, i):
            first = done * batch
            return [first + row for row in range(i, batch, readers)]
        ```
    """,
)

GRID = {"X": 2, "Y": 4}


def _two_weights(rng) -> tuple:
    b, d, f = (8 * rng.randint(1, 4) for _ in range(3))
    return (b, d), (d, f), (f, d)


def _fsdp_and_tensor(x, up, down) -> list:
    return [
        Collective("all_gather", ("X",), math.prod(up), 2),
        Collective("all_gather", ("X",), math.prod(down), 2),
        Collective("all_reduce", ("Y",), 4 * math.prod(x) / 2, 4),
    ]


LAYER = Sharded(
    id="20.11",
    title="Two weights, two axes, three collectives",
    task=r"""
        **Given** the whole arrays $x[B_X, D]$, $\text{up}[D_X, F_Y]$ and
        $\text{down}[F_Y, D_X]$ on explicit axes with $|X| = 2$ and $|Y| = 4$.

        **Wanted** a function of these arrays that returns
        $\max(x\,\text{up}, 0)\,\text{down}$ as $y[B_X, D]$. It must compile to exactly
        three collectives: each weight is gathered over $X$, and the result is reduced
        over $Y$.
    """,
    stub="def layer(x, up, down): ...",
    mesh=GRID,
    shapes=_two_weights,
    in_specs=(("X", None), ("X", "Y"), ("Y", "X")),
    out_spec=("X", None),
    spec=lambda x, up, down: (x @ up).clip(0) @ down,
    collectives=_fsdp_and_tensor,
    view="explicit",
    slips=(
        Slip(
            "weights gathered over both axes",
            lambda x, up, down: [
                Collective("all_gather", ("Y",), 4 * math.prod(up) / 2, 4),
                Collective("all_gather", ("X",), 4 * math.prod(up), 2),
                Collective("all_gather", ("X",), 4 * math.prod(down) / 4, 2),
                Collective("all_gather", ("Y",), 4 * math.prod(down), 4),
            ],
            "Did you gather the weights over both axes? Along Y they may stay split.",
        ),
    ),
    values=(
        Slip(
            "no activation",
            lambda x, up, down: x @ up @ down,
            "Did you leave out the maximum with zero?",
        ),
    ),
    hint="`jax.reshard` gathers a weight. The second product needs an `out_sharding`. "
    "Which of its dimensions is contracted, and how is it split?",
    solution="""
        The type of the hidden layer is $[B_X, F_Y]$. So the second product needs a sum
        over $Y$, and you have to tell JAX how its result is sharded.

        ```python
        def layer(x, up, down):
            up = jax.reshard(up, jax.P(None, "Y"))
            down = jax.reshard(down, jax.P("Y", None))
            hidden = jax.nn.relu(x @ up)
            at = jax.P("X", None)
            return jnp.einsum("bf,fd->bd", hidden, down, out_sharding=at)
        ```
    """,
)

RING = {"X": 8}


def _one_row(rng) -> tuple:
    return ((8 * rng.randint(2, 6), 8 * rng.randint(1, 3)),)


RUNNING = Sharded(
    id="20.12",
    title="A running sum over chips",
    task=r"""
        **Given** each device's part of $x[B_X, D]$ on $|X| = 8$ devices.

        **Wanted** the function that every device runs. It returns the device's part of
        the running sum over $B$: row $b$ of the result is the sum of the rows 0 to $b$
        of the whole array. JAX refuses `jnp.cumsum` along a dimension that is split, so
        you have to build the sum from parts. The program may send no more than one
        AllGather of one row per device, $32 D$ bytes in all.
    """,
    stub="def running(x): ...",
    mesh=RING,
    shapes=_one_row,
    in_specs=(("X", None),),
    out_spec=("X", None),
    spec=lambda x: x.cumsum(0),
    collectives=lambda x: [Collective("all_gather", ("X",), 4 * 8 * x[1], 8)],
    at_most=True,
    slips=(
        Slip(
            "everything gathered",
            lambda x: [Collective("all_gather", ("X",), 4 * math.prod(x), 8)],
            "Did you gather all rows? The other devices need only the sum of each "
            "part.",
        ),
    ),
    values=(
        Slip(
            "each part by itself",
            lambda x: [part.cumsum(0) for part in x.reshape(8, -1, x.shape[1])],
            "Each part begins again at zero. What do the devices before it hold?",
        ),
        Slip(
            "its own total added too",
            lambda x: [
                part.cumsum(0) + x.reshape(8, -1, x.shape[1])[: i + 1].sum((0, 1))
                for i, part in enumerate(x.reshape(8, -1, x.shape[1]))
            ],
            "Did you add the total of the device itself as well? Only the devices "
            "before it count.",
        ),
    ),
    hint="Compute the running sum of your own part. What do the devices before yours "
    "have to add?",
    solution="""
        Each device sends the others the total of its part, which is one row. A device
        then adds the totals of the devices before it.

        ```python
        def running(x):
            totals = jax.lax.all_gather(x.sum(0), "X")  # one row per device
            before = jnp.arange(8) < jax.lax.axis_index("X")
            missing = jnp.where(before[:, None], totals, 0).sum(0)
            return jnp.cumsum(x, 0) + missing
        ```
    """,
)

MEAN = Sharded(
    id="20.13",
    title="One AllReduce for a mean",
    task=r"""
        **Given** each device's part of two arrays, $x[B_X, D]$ and $c[B_X, D]$, on
        $|X| = 8$ devices.

        **Wanted** the function that every device runs. It returns the mean of
        $(x - c)^2$ over the whole arrays, the same on every device. It must compile to
        exactly one AllReduce of a single number.
    """,
    stub="def distance(x, c): ...",
    mesh=RING,
    shapes=lambda rng: _one_row(rng) * 2,
    in_specs=(("X", None), ("X", None)),
    out_spec=(),
    spec=lambda x, c: ((x - c) ** 2).mean(),
    collectives=lambda x, c: [Collective("all_reduce", ("X",), 4, 8)],
    slips=(
        Slip(
            "rows gathered",
            lambda x, c: [Collective("all_gather", ("X",), 4 * math.prod(x), 8)] * 2,
            "Did you gather the rows? A device needs only one number from each of the "
            "others.",
        ),
    ),
    values=(
        Slip(
            "a sum of means",
            lambda x, c: 8 * ((x - c) ** 2).mean(),
            "The means of the devices must be averaged, not added.",
        ),
        Slip(
            "a sum",
            lambda x, c: ((x - c) ** 2).sum(),
            "That is the sum of the squares. The question asks for their mean.",
        ),
    ),
    hint="All parts have the same number of rows. What is the mean of their means?",
    solution="""
        ```python
        def distance(x, c):
            return jax.lax.pmean(jnp.mean((x - c) ** 2), "X")
        ```
    """,
)


def _first_other(whole: list, resumed: list, done: int) -> int:
    for i, value in enumerate(resumed):
        if value != whole[done + i]:
            return done + i + 1
    return 0


def _with_a_tolerance(whole: list, resumed: list, done: int) -> int:
    for i, value in enumerate(resumed):
        if abs(value - whole[done + i]) > 1e-6 * abs(whole[done + i]):
            return done + i + 1
    return 0


def _not_shifted(whole: list, resumed: list, done: int) -> int:
    for i, value in enumerate(resumed):
        if value != whole[i]:
            return i + 1
    return 0


def _first_alone(whole: list, resumed: list, done: int) -> int:
    return 0 if resumed[0] == whole[done] else done + 1


def _the_place(whole: list, resumed: list, done: int) -> int:
    found = _first_other(whole, resumed, done)
    return found and found - done


def _a_restart(rng) -> tuple:
    whole = [round(10 / (1 + n) + rng.uniform(0, 1), 6) for n in range(12)]
    done = rng.randint(2, 6)
    resumed = whole[done:]
    if rng.random() < 0.75:
        at = rng.randrange(len(resumed))
        by = rng.choice([1e-9, 1e-3])
        for i in range(at, len(resumed)):
            resumed[i] *= 1 + by
    return whole, resumed, done


RESTART = Function(
    id="20.14",
    title="The test of a restart",
    task=r"""
        **Given** two lists of losses. The list `whole` is from an uninterrupted run and
        begins with step 1. The list `resumed` is from a run that went on from a
        checkpoint after `done` steps, so it begins with step `done + 1`.

        **Wanted** a function that returns the number of the first step whose two losses
        are not exactly equal. If all losses are equal, it returns 0.
    """,
    stub="def first_other(whole, resumed, done): ...",
    spec=_first_other,
    cases=_a_restart,
    examples=(
        ([3.0, 2.0, 1.5, 1.25], [1.5, 1.25], 2),
        ([3.0, 2.0, 1.5, 1.25], [1.5, 1.2500000001], 2),
        ([3.0, 2.0, 1.5, 1.25], [2.0, 1.6, 1.25], 1),
    ),
    slips=(
        Slip(
            "with a tolerance",
            _with_a_tolerance,
            "Losses that are merely close come from a different run. Compare exactly.",
        ),
        Slip(
            "compared with the beginning",
            _not_shifted,
            "The first resumed loss is that of step done + 1, not of step 1.",
        ),
        Slip(
            "the first loss alone",
            _first_alone,
            "A forgotten momentum shows only in the second loss. Compare them all.",
        ),
        Slip(
            "the place in the list",
            _the_place,
            "That is the position among the resumed losses. Which step is it?",
        ),
    ),
    hint="Which entry of the whole run belongs to the first resumed loss?",
    solution="""
        ```python
        def first_other(whole, resumed, done):
            for step, loss in enumerate(resumed, done + 1):
                if loss != whole[step - 1]:
                    return step
            return 0
        ```
    """,
)
