"""Questions of chapter 21, "Reading the compiler"."""

import itertools
import math
import random

from shardmath.collectives import Collective
from shardmath.exercises.kinds import Chapter, Function, Number, Sharded, Slip

CHAPTER = Chapter(
    title="Reading the compiler",
    topics=(
        "lines of HLO, fusions, schedules and their overlap, rooflines of single "
        "operations, and what a profile counts"
    ),
    intro="""
        from one line of HLO to a whole schedule. Answers are in base units: bytes,
        seconds, FLOPs. In 21.8 to 21.11 you write functions, and in 21.14 a program for
        eight virtual devices, which is graded on its result and on what XLA compiles
        it to.
    """,
    setup="""
        import jax
        import jax.numpy as jnp

        from shardmath.exercises import check, report

        jax.config.update("jax_num_cpu_devices", 8)  # eight virtual chips
    """,
)

GATHER_LINE = Number(
    id="21.1",
    title="A line that gathers",
    task=r"""
        **Given** two lines of a compiled program, `%p = bf16[512,14336] parameter(0)`
        and `%g = bf16[4096,14336] all-gather(%p), dimensions={0}`.

        **Wanted** the bytes that each device sends for this AllGather, if it sends as
        few as possible.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: 2 * 4096 * 14336 * 7 / 8,
    slips=(
        Slip(
            "the whole result",
            lambda right: right * 8 / 7,
            "That is the whole result. A device doesn't have to send all of it.",
        ),
        Slip(
            "its own shard once",
            lambda right: right / 7,
            "That is one shard. How many shards does a device send in a ring?",
        ),
        Slip(
            "values for bytes",
            lambda right: right / 2,
            "Those are values. A value in bf16 has two bytes.",
        ),
        Slip(
            "an AllReduce",
            lambda right: right * 2,
            "That is what an AllReduce of the same array sends, which is twice as "
            "much.",
        ),
    ),
    hint="Compare the two shapes. How many devices take part?",
    solution="""
        The result has 4,096 rows and the shard 512, so eight devices take part. Each
        sends seven shards, or 7/8 of the result.

        ```python
        nbytes = 2 * 4_096 * 14_336 * 7 / 8
        ```
    """,
)

FUSED = Number(
    id="21.2",
    title="Three operations in one fusion",
    task=r"""
        **Given** `jnp.tanh(a * b + c)` for three arrays of $8{,}192\times8{,}192$
        values in bf16. Without fusion, each of the three operations reads its operands
        from HBM and writes its result to HBM.

        **Wanted** the bytes of HBM traffic that a single fusion saves.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: 4 * 2 * 8192**2,
    slips=(
        Slip(
            "the operands alone",
            lambda right: 3 * 2 * 8192.0**2,
            "Those are the operands. Count the traffic without fusion, then subtract "
            "what the fusion still reads and writes.",
        ),
        Slip(
            "all the traffic without fusion",
            lambda right: 2 * right,
            "That is the traffic without fusion. The fusion still reads three arrays "
            "and writes one.",
        ),
        Slip(
            "each intermediate once",
            lambda right: right / 2,
            "An intermediate value is written and then read again.",
        ),
        Slip(
            "the last result counted too",
            lambda right: 6 * 2 * 8192.0**2,
            "The fusion has to write the result of tanh too. Which arrays does it "
            "never move?",
        ),
    ),
    hint="Which arrays are only needed between the operations, and how often is each "
    "of them moved to or from HBM?",
    solution="""
        Two arrays are only needed between the operations: the product and the sum.
        Without fusion, each of them is written once and read once.

        ```python
        nbytes = 2 * 2 * 2 * 8_192**2
        ```
    """,
)

EXPOSED = Number(
    id="21.3",
    title="How long is the network exposed?",
    task=r"""
        **Given** a trace of one device. The network works from 0 to 4, from 5 to 9 and
        from 12 to 14 ms, and the math from 2 to 7 and from 8 to 13.5 ms.

        **Wanted** the time for which the network is exposed, in seconds.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: 3.5e-3,
    slips=(
        Slip(
            "the overlap",
            lambda right: 6.5e-3,
            "That is the overlap. Which part of the network's time is left?",
        ),
        Slip(
            "the math alone",
            lambda right: 4e-3,
            "That is how long the math runs while the network is idle.",
        ),
        Slip(
            "intervals compared in order",
            lambda right: 7e-3,
            "Did you compare only the first intervals of both lanes with each other, "
            "and then only the second ones? One interval may overlap several others.",
        ),
    ),
    hint="Use equation (21.1). Intersect every interval of one lane with every "
    "interval of the other.",
    solution="""
        The network works for 4 + 4 + 2 = 10 ms. It overlaps with the math from 2 to 4,
        from 5 to 7, from 8 to 9 and from 12 to 13.5 ms. The rest is exposed.

        ```python
        seconds = (10 - (2 + 2 + 1 + 1.5)) * 1e-3
        ```
    """,
)

PLAYED = Number(
    id="21.4",
    title="Play a schedule",
    task=r"""
        **Given** a schedule with five lines, in this order: the start of an AllGather,
        a matmul of 300 µs, the done line of the AllGather, a second matmul of 300 µs
        that needs the gathered weight, and a blocking AllReduce. The network needs
        450 µs for the AllGather and 200 µs for the AllReduce.

        **Wanted** how long the schedule takes, in seconds.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: 950e-6,
    slips=(
        Slip(
            "nothing hidden",
            lambda right: 1250e-6,
            "The first matmul is between start and done, so it hides part of the "
            "gather.",
        ),
        Slip(
            "the gather fully hidden",
            lambda right: 800e-6,
            "The gather takes longer than the matmul that hides it.",
        ),
        Slip(
            "everything hidden",
            lambda right: 650e-6,
            "Those are only the times of the network. Can the second matmul run while "
            "the network works?",
        ),
        Slip(
            "the AllReduce hidden",
            lambda right: 750e-6,
            "A blocking AllReduce can't be hidden.",
        ),
    ),
    hint="When does the second matmul begin?",
    solution="""
        The second matmul begins when the gather is done, after 450 µs. After that, the
        matmul and the AllReduce run one after the other.

        ```python
        seconds = (max(300, 450) + 300 + 200) * 1e-6
        ```
    """,
)

RATIO = Number(
    id="21.5",
    title="An estimate and a bound",
    task=r"""
        **Given** a fusion for which the compiler estimates 540,000 cycles, on a chip
        with a clock of 1.5 GHz, 197 TFLOPs/s and 819 GB/s of HBM. The fusion executes
        68.7 GFLOPs and moves 42 MB to and from HBM.

        **Wanted** the ratio of this estimate to the lower bound (21.2).
    """,
    stub="ratio = ...",
    unit="",
    expected=lambda: 540e3 / 1.5e9 / max(68.7e9 / 197e12, 42e6 / 819e9),
    slips=(
        Slip(
            "the HBM's bound",
            lambda right: 540e3 / 1.5e9 / (42e6 / 819e9),
            "The bound is the longer of the two times.",
        ),
        Slip(
            "the sum of both times",
            lambda right: 540e3 / 1.5e9 / (68.7e9 / 197e12 + 42e6 / 819e9),
            "A lower bound assumes that math and traffic run at the same time.",
        ),
        Slip(
            "upside down",
            lambda right: 1 / right,
            "That is the bound over the estimate.",
        ),
    ),
    hint="How long are 540,000 cycles? Which of the two terms of (21.2) is larger?",
    solution="""
        ```python
        estimate = 540_000 / 1.5e9
        bound = max(68.7e9 / 197e12, 42e6 / 819e9)
        ratio = estimate / bound
        ```

        The ratio is 1.03, so the operation is compute-bound and the compiler expects it
        to run almost at the peak.
    """,
)

SUMS = Number(
    id="21.6",
    title="Sum of bounds, bound of sums",
    task=r"""
        **Given** four operations that run one after another. Their math takes 3, 0.5, 4
        and 0.2 ms at the peak rate, and their HBM traffic 1, 2, 1.5 and 1.8 ms at the
        full bandwidth.

        **Wanted** the sum of the bounds, divided by the bound of the totals.
    """,
    stub="ratio = ...",
    unit="",
    expected=lambda: 10.8 / 7.7,
    slips=(
        Slip(
            "the HBM's total",
            lambda right: 10.8 / 6.3,
            "The bound of the totals is the larger of the two totals.",
        ),
        Slip(
            "math and traffic added",
            lambda right: 14 / 7.7,
            "The bound of an operation is the longer of its two times, not their sum.",
        ),
        Slip(
            "upside down",
            lambda right: 7.7 / 10.8,
            "That is the bound of the totals over the sum of the bounds.",
        ),
    ),
    hint="Work out both sides of inequality (21.3).",
    solution="""
        The bounds of the operations are 3, 2, 4 and 1.8 ms, and the totals are 7.7 and
        6.3 ms.

        ```python
        math = [3, 0.5, 4, 0.2]
        traffic = [1, 2, 1.5, 1.8]
        bounds = sum(max(pair) for pair in zip(math, traffic))
        ratio = bounds / max(sum(math), sum(traffic))
        ```
    """,
)

IN_VMEM = Number(
    id="21.7",
    title="Bytes to and from HBM",
    task=r"""
        **Given** the line `%f = bf16[4096,8192] fusion(%a, %b, %c)` of a program for
        a TPU, in which `%a` is `bf16[4096,2048]S(1)`, `%b` is `bf16[2048,8192]` and
        `%c` is `f32[4096,512]S(1)`.

        **Wanted** the bytes that this fusion moves to and from HBM.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: 2 * (2048 * 8192 + 4096 * 8192),
    slips=(
        Slip(
            "the memory spaces ignored",
            lambda right: right + 2 * 4096 * 2048 + 4 * 4096 * 512,
            "Arrays that are marked S(1) are in VMEM already.",
        ),
        Slip(
            "the result left out",
            lambda right: 2.0 * 2048 * 8192,
            "The result has no S(1), so it is written to HBM.",
        ),
        Slip(
            "what is in VMEM",
            lambda right: 2.0 * 4096 * 2048 + 4 * 4096 * 512,
            "Those are the bytes in VMEM.",
        ),
        Slip(
            "values for bytes",
            lambda right: right / 2,
            "Those are values. A value in bf16 has two bytes.",
        ),
    ),
    hint="Which of the four arrays are in HBM?",
    solution="""
        Only `%b` and the result are in HBM, so only these two are moved.

        ```python
        nbytes = 2 * 2_048 * 8_192 + 2 * 4_096 * 8_192
        ```
    """,
)

WIDTHS = {"pred": 1, "s8": 1, "bf16": 2, "f32": 4}


def _nbytes(shape: str) -> int:
    if "S(1)" in shape:
        return 0
    return _all_bytes(shape)


def _all_bytes(shape: str) -> int:
    dtype, _, rest = shape.removesuffix("S(1)").partition("[")
    sizes = [int(size) for size in rest.rstrip("]").split(",") if size]
    return WIDTHS[dtype] * math.prod(sizes)


def _two_bytes(shape: str) -> int:
    return _nbytes(shape) // WIDTHS[shape.partition("[")[0]] * 2


def _no_scalars(shape: str) -> int:
    return 0 if "[]" in shape else _nbytes(shape)


def _some_shape(rng: random.Random) -> tuple:
    sizes = [rng.choice((8, 128, 1024)) for _ in range(rng.randint(0, 3))]
    space = rng.choice(("", "", "S(1)")) if sizes else ""
    dtype = rng.choice(tuple(WIDTHS))
    return (f"{dtype}[{','.join(map(str, sizes))}]{space}",)


SHAPE = Function(
    id="21.8",
    title="Read a shape",
    task=r"""
        **Given** a shape as HLO prints it, such as `"bf16[2,2048]"`, `"f32[8,128]S(1)"`
        or `"pred[]"`, which is a single value. The types are `pred` and `s8` with one
        byte, `bf16` with two and `f32` with four.

        **Wanted** a function that returns the bytes of this array in HBM, as a whole
        number. An array that is marked `S(1)` has none.
    """,
    stub="def nbytes(shape): ...",
    spec=_nbytes,
    cases=_some_shape,
    examples=(("bf16[2,2048]",), ("f32[8,128]S(1)",), ("pred[]",), ("f32[]",)),
    slips=(
        Slip(
            "the memory space ignored",
            _all_bytes,
            "An array that is marked S(1) is in VMEM, not in HBM.",
        ),
        Slip(
            "two bytes for every type",
            _two_bytes,
            "Did you count two bytes for every type?",
        ),
        Slip(
            "a single value has none",
            _no_scalars,
            "Empty brackets stand for a single value, which takes the bytes of its "
            "type.",
        ),
    ),
    hint='`"bf16[2,2048]".partition("[")` separates the type from the sizes. The '
    "product of no sizes is 1.",
    solution="""
        ```python
        def nbytes(shape):
            if shape.endswith("S(1)"):
                return 0
            dtype, _, sizes = shape.rstrip("]").partition("[")
            found = {"pred": 1, "s8": 1, "bf16": 2, "f32": 4}[dtype]
            for size in sizes.split(","):
                found *= int(size) if size else 1
            return found
        ```
    """,
)


def _merged(intervals: list) -> list:
    found: list[list] = []
    for begin, end in sorted(intervals):
        if found and begin <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([begin, end])
    return found


def _unsorted(intervals: list) -> list:
    found: list[list] = []
    for begin, end in intervals:
        if found and found[-1][0] <= begin <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([begin, end])
    return found


def _last_end(intervals: list) -> list:
    found: list[list] = []
    for begin, end in sorted(intervals):
        if found and begin <= found[-1][1]:
            found[-1][1] = end
        else:
            found.append([begin, end])
    return found


def _touching_apart(intervals: list) -> list:
    found: list[list] = []
    for begin, end in sorted(intervals):
        if found and begin < found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([begin, end])
    return found


def _some_intervals(rng: random.Random) -> tuple:
    found = []
    for _ in range(rng.randint(1, 6)):
        begin = rng.randint(0, 20)
        found.append([begin, begin + rng.randint(1, 8)])
    return (found,)


MERGE = Function(
    id="21.9",
    title="Merge intervals",
    task=r"""
        **Given** `intervals`, a list of pairs `[begin, end]` of whole numbers, in any
        order. They are the events of one lane of a profile, and may overlap or touch.

        **Wanted** a function that returns a list of as few pairs as possible that cover
        the same moments, in order.
    """,
    stub="def merged(intervals): ...",
    spec=_merged,
    cases=_some_intervals,
    examples=(
        ([[4, 5], [0, 2], [1, 3]],),
        ([[0, 9], [2, 3]],),
        ([[0, 2], [2, 4]],),
    ),
    slips=(
        Slip("not sorted", _unsorted, "Events come in any order. Sort them first."),
        Slip(
            "the last end wins",
            _last_end,
            "An interval inside the one before it must not shorten it.",
        ),
        Slip(
            "touching intervals kept apart",
            _touching_apart,
            "Two intervals that touch are one.",
        ),
    ),
    hint="Go through the sorted intervals. Does the next one begin before the last one "
    "has ended?",
    solution="""
        ```python
        def merged(intervals):
            found = []
            for begin, end in sorted(intervals):
                if found and begin <= found[-1][1]:
                    found[-1][1] = max(found[-1][1], end)
                else:
                    found.append([begin, end])
            return found
        ```
    """,
)


def _common(network: list, math_: list) -> int:
    pairs = itertools.product(network, math_)
    return sum(max(0, min(b, d) - max(a, c)) for (a, b), (c, d) in pairs)


def _exposed(network: list, compute: list) -> int:
    total = sum(end - begin for begin, end in _merged(network))
    return total - _common(_merged(network), _merged(compute))


def _counted_twice(network: list, compute: list) -> int:
    total = sum(end - begin for begin, end in _merged(network))
    return total - _common(network, compute)


def _hidden(network: list, compute: list) -> int:
    return _common(_merged(network), _merged(compute))


def _events_added(network: list, compute: list) -> int:
    total = sum(end - begin for begin, end in network)
    return total - _common(_merged(network), _merged(compute))


def _two_lanes(rng: random.Random) -> tuple:
    return (*_some_intervals(rng), *_some_intervals(rng))


LANES = Function(
    id="21.10",
    title="The exposed time of a profile",
    task=r"""
        **Given** `network` and `compute`, two lists of pairs `[begin, end]` of whole
        numbers: when one device was in a collective, and when it computed. Events of
        the same list may overlap, because several threads work for the device.

        **Wanted** a function that returns how long the network was exposed.
    """,
    stub="def exposed(network, compute): ...",
    spec=_exposed,
    cases=_two_lanes,
    examples=(
        ([[0, 3], [4, 6]], [[2, 5]]),
        ([[0, 4], [2, 6]], [[1, 3], [2, 5]]),
    ),
    slips=(
        Slip(
            "overlapping events counted twice",
            _counted_twice,
            "Did you intersect events that overlap in their own list? Merge each list "
            "first.",
        ),
        Slip(
            "the overlap",
            _hidden,
            "That is the overlap. Which part of the network's time is left?",
        ),
        Slip(
            "events of the network added",
            _events_added,
            "Two collectives may be under way at once. Merge the network's list "
            "before you add up its times.",
        ),
    ),
    hint="Merge both lists as in 21.9, then use equation (21.1).",
    solution="""
        After merging, no moment counts twice, neither in the total nor in the overlap.

        ```python
        def merged(intervals):
            found = []
            for begin, end in sorted(intervals):
                if found and begin <= found[-1][1]:
                    found[-1][1] = max(found[-1][1], end)
                else:
                    found.append([begin, end])
            return found


        def exposed(network, compute):
            network, compute = merged(network), merged(compute)
            hidden = sum(
                max(0, min(b, d) - max(a, c))
                for a, b in network
                for c, d in compute
            )
            return sum(b - a for a, b in network) - hidden
        ```
    """,
)


def _run(ops: list, *, queue: bool = True, wait: bool = True) -> int:
    now = free = 0
    ends: dict[str, int] = {}
    for kind, name, time in ops:
        if kind == "math":
            now += time
        elif kind == "done":
            now = max(now, ends[name]) if wait else now
        else:
            free = ends[name] = (max(now, free) if queue else now) + time
            now = free if kind == "block" else now
    return max([now, *ends.values()])


def _schedule(ops: list) -> int:
    return _run(ops)


def _at_once(ops: list) -> int:
    return _run(ops, queue=False)


def _never_waits(ops: list) -> int:
    return _run(ops, wait=False)


def _all_added(ops: list) -> int:
    return sum(time for _, _, time in ops)


def _some_schedule(rng: random.Random) -> tuple:
    ops, open_ = [], []
    for n in range(rng.randint(3, 9)):
        kind = rng.choice(("math", "math", "start", "done", "block"))
        if kind == "start":
            open_.append(f"g{n}")
        if kind == "done" and not open_:
            kind = "math"
        name = open_.pop(0) if kind == "done" else f"g{n}"
        ops.append([kind, name, 0 if kind == "done" else rng.randint(1, 9)])
    return (ops + [["done", name, 0] for name in open_],)


PLAY = Function(
    id="21.11",
    title="A player for schedules",
    task=r"""
        **Given** `ops`, a schedule as a list of `[kind, name, time]`, in order. The
        kind is `"math"`; `"start"`, which starts a collective; `"done"` (with a time of
        0), which waits for the collective of that name; or `"block"`, a collective that
        blocks. The network runs one collective at a time, in the order in which they
        are started. A start takes no time on the math lane.

        **Wanted** a function that returns when everything is finished.
    """,
    stub="def played(ops): ...",
    spec=_schedule,
    cases=_some_schedule,
    examples=(
        ([["start", "g", 5], ["math", "m", 3], ["done", "g", 0], ["math", "n", 2]],),
        ([["start", "g", 5], ["start", "h", 4], ["done", "g", 0], ["done", "h", 0]],),
        ([["math", "m", 2], ["block", "r", 3], ["math", "n", 1]],),
        ([["start", "g", 5], ["block", "r", 3], ["math", "n", 1], ["done", "g", 0]],),
    ),
    slips=(
        Slip(
            "collectives at once",
            _at_once,
            "The network runs one collective at a time, so the second one waits.",
        ),
        Slip(
            "no waiting",
            _never_waits,
            "A done entry waits until its collective has finished.",
        ),
        Slip(
            "one after another",
            _all_added,
            "Math runs while a started collective is under way.",
        ),
    ),
    hint="Keep two times: when the math lane is free, and when the network is free.",
    solution="""
        A collective starts as soon as the math lane has reached the collective's entry
        and the network is free.

        ```python
        def played(ops):
            now = free = 0
            ends = {}
            for kind, name, time in ops:
                if kind == "math":
                    now += time
                elif kind == "done":
                    now = max(now, ends[name])
                else:
                    free = max(now, free) + time
                    ends[name] = free
                    if kind == "block":
                        now = free
            return max(now, free)
        ```
    """,
)

LOOPED = Number(
    id="21.12",
    title="FLOPs in a loop",
    task=r"""
        **Given** a model of 80 layers in a `lax.scan`, with a head outside of the loop.
        For the whole program, `cost_analysis()` reports 76 TFLOPs, and 60 TFLOPs of
        these belong to the head.

        **Wanted** the FLOPs that the program really executes.
    """,
    stub="flops = ...",
    unit="FLOPs",
    expected=lambda: 80 * 16e12 + 60e12,
    slips=(
        Slip(
            "as reported",
            lambda right: 76e12,
            "cost_analysis counts the body of a loop once.",
        ),
        Slip(
            "the head in every turn",
            lambda right: 80 * 76e12,
            "The head is outside of the loop and runs once.",
        ),
        Slip(
            "the head left out",
            lambda right: 80 * 16e12,
            "The head runs too.",
        ),
    ),
    hint="How many of the reported FLOPs belong to one layer?",
    solution="""
        The report counts the body of the loop only once. So one layer takes 76 − 60 =
        16 TFLOPs, and the loop runs it 80 times.

        ```python
        flops = 80 * (76e12 - 60e12) + 60e12
        ```
    """,
)

EVENTS = Number(
    id="21.13",
    title="Is the trace complete?",
    task=r"""
        **Given** a profile of five steps on 16 devices. The compiled program has a loop
        of 32 iterations with two collectives in its body, and one more collective after
        the loop.

        **Wanted** how many events of collectives a complete profile contains.
    """,
    stub="events = ...",
    unit="",
    expected=lambda: 5 * 16 * (32 * 2 + 1),
    slips=(
        Slip(
            "lines of the text",
            lambda right: 5.0 * 16 * 3,
            "The collectives in the loop run in each of its iterations.",
        ),
        Slip(
            "one device",
            lambda right: right / 16,
            "Every device records its own events.",
        ),
        Slip(
            "one step",
            lambda right: right / 5,
            "The profile has five steps.",
        ),
        Slip(
            "all of them in the loop",
            lambda right: 5.0 * 16 * 32 * 3,
            "One of the collectives is after the loop and runs once per step.",
        ),
    ),
    hint="How many collectives does one device run in one step?",
    solution="""
        In one step, a device runs 32 · 2 + 1 = 65 collectives.

        ```python
        events = 5 * 16 * (32 * 2 + 1)
        ```
    """,
)


def _rows(rng: random.Random) -> tuple:
    return ((8 * rng.randint(3, 6), 8 * rng.randint(1, 3)),)


def _standard(x):
    return (x - x.mean(0)) / x.std(0)


SCALED = Sharded(
    id="21.14",
    title="The array that is too large",
    task=r"""
        **Given** each device's part of $x[B_X, D]$ on $|X| = 8$ devices. A colleague's
        program subtracts the mean of each column and divides by the column's standard
        deviation. The compiled program holds the whole array $x$ on every device.

        **Wanted** the function that every device runs. It returns the device's part of
        the result: $(x-\mu)/\sigma$, where $\mu$ and $\sigma$ are the mean and the
        standard deviation of a column over all $B$ rows. Your program may send no more
        than an AllReduce of two rows, $8D$ bytes.
    """,
    stub="def scaled(x): ...",
    mesh={"X": 8},
    shapes=_rows,
    in_specs=(("X", None),),
    out_spec=("X", None),
    spec=_standard,
    collectives=lambda x: [Collective("all_reduce", ("X",), 4 * 2 * x[1], 8)],
    at_most=True,
    slips=(
        Slip(
            "everything gathered",
            lambda x: [Collective("all_gather", ("X",), 4 * math.prod(x), 8)],
            "Did you gather all rows? A device needs only sums over the other rows.",
        ),
        Slip(
            "four rows reduced",
            lambda x: [Collective("all_reduce", ("X",), 4 * 4 * x[1], 8)],
            "Two sums per column are enough: that of the values and that of their "
            "squares.",
        ),
    ),
    values=(
        Slip(
            "each part by itself",
            lambda x: [
                (part - part.mean(0)) / part.std(0)
                for part in x.reshape(8, -1, x.shape[1])
            ],
            "Did each device use its own mean and deviation? Both have to be those of "
            "all rows.",
        ),
        Slip(
            "the variance for the deviation",
            lambda x: (x - x.mean(0)) / x.var(0),
            "Did you divide by the variance? The standard deviation is its square "
            "root.",
        ),
    ),
    hint="The variance is the mean of the squares minus the square of the mean. Both "
    "means can be reduced together.",
    solution="""
        For each column, a device needs two numbers from the others: the sum of the
        values and the sum of their squares. `lax.pmean` reduces both in one call.

        ```python
        def scaled(x):
            local = jnp.stack([x.mean(0), (x * x).mean(0)])
            mean, square = jax.lax.pmean(local, "X")
            return (x - mean) / jnp.sqrt(square - mean**2)
        ```
    """,
)
