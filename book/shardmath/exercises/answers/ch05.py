"""Questions of chapter 05, "Collectives"."""

import math

from shardmath import collectives
from shardmath.collectives import Collective, Priced
from shardmath.exercises.kinds import (
    Chapter,
    Function,
    Number,
    Sharded,
    Slip,
    slips,
    stated,
)
from shardmath.hardware import chips
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import Network, NVLinkDomain, Torus

CHAPTER = Chapter(
    title="Collectives",
    topics=(
        "collectives: bytes, times and latencies of AllGather, ReduceScatter, "
        "AllReduce and AllToAll, five programs graded on what they compile to, and "
        "three questions that take several steps"
    ),
    intro="""
        from one fraction to a gradient whose compiled program must contain one
        AllGather and one ReduceScatter. The last three questions take several steps.
        Answers are in base units: bytes, seconds, bytes/s. `chips` holds every data
        sheet: `chips.TPU_V5P.link_bandwidth` is the one-way bandwidth of one ICI link,
        and `chips.H100.scale_up_bandwidth` is the one-way egress of a GPU into NVLink.

        In five questions, you write the code for one chip, the function inside a
        `jax.shard_map`. The check runs it on eight virtual devices, looks at what each
        of them ends with, and reads from the compiled program what it sends.
    """,
    setup="""
        import jax
        import jax.numpy as jnp

        from shardmath.exercises import check, report
        from shardmath.hardware import chips
        from shardmath.hardware.networks import LATENCY

        jax.config.update("jax_num_cpu_devices", 8)  # eight virtual chips
    """,
)

MATRIX = 2 * 8192 * 8192  # bytes of the first two questions: bf16[8192, 8192]
EXPERTS = 256 * 2**20  # bytes, given in the tasks
LINE = 32 * 2**20
GRADIENTS = 1e9
SHARPNESS = 100  # so that exponentials overflow without the largest taken off
MEASURED = 3.7e-3  # seconds, given in the task
HOP = 1e-6  # seconds of latency, given in the tasks
GRADIENT_BYTES = 2e9  # 10⁹ parameters in bf16
TOKENS, TOP, WIDTH = 2000, 2, 7168  # on one GPU, experts of a token, values of a token


def _priced(op: str, nbytes: float, network: Network, axes=("X",)) -> Priced:
    names = dict(zip("XYZ", network.shape, strict=False))
    return getattr(collectives, op)(nbytes, Mesh(network, names), axes)


NO_LATENCY = "That counts the latency of the hops as well, which is left out here."


def _with_hops(hops: int):
    return lambda right: right + hops * HOP


V5E_RING = Torus(chips.TPU_V5E, (16, 16))
V5E_LINE = Torus(chips.TPU_V5E, (4, 4))
V5P_RING = Torus(chips.TPU_V5P, (16, 4, 4))
V5P_CUBE = Torus(chips.TPU_V5P, (8, 8, 8))
NODE = NVLinkDomain(chips.H100)

SENT = Number(
    id="05.1",
    title="Bytes a chip sends in an AllGather",
    task="""
        **Given** $A[I_X, J]$ in bf16 with $I = J = 8192$ and $|X| = 16$.

        **Wanted** the number of bytes that one chip sends in an AllGather over $X$.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: Collective("all_gather", "X", MATRIX, 16).sent,
    slips=(
        Slip(
            "own part too",
            lambda right: MATRIX,
            "Each chip already has one of the sixteen parts. How many parts does it "
            "lack?",
        ),
        Slip(
            "one step",
            lambda right: MATRIX / 16,
            "That is what a chip sends in one step on a ring. How many steps are "
            "there?",
        ),
        Slip(
            "whole arrays",
            lambda right: MATRIX * 15,
            "Each step moves one part, not the whole array.",
        ),
    ),
    hint="How large is a part, and how many parts does a chip send on?",
    solution="""
        There are sixteen parts. Every chip sends its own part, and then sends on every
        part that it receives except the last one, which makes fifteen parts. You can
        also count what arrives. Every chip must receive the fifteen parts that it
        lacks, so on average every chip sends fifteen parts:

        ```python
        V = 2 * 8192 * 8192
        nbytes = V * 15 / 16
        ```
    """,
)

GATHER = Number(
    id="05.2",
    title="An AllGather on a ring",
    task="""
        **Given** the AllGather of question 05.1 on a ring of 16 TPU v5p chips, with
        both directions in use.

        **Wanted** its time, counting only the bandwidth, without the latency of the
        hops.
    """,
    given=stated(chips.TPU_V5P, "link_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: _priced("all_gather", MATRIX, V5P_RING).bandwidth_seconds,
    rtol=0.001,
    slips=(
        slips.one_direction(2),
        slips.scaled(
            "own part too",
            16 / 15,
            "You sent the whole array. With sixteen chips, one of the sixteen parts "
            "need not move.",
        ),
        slips.scaled(
            "a part for the array",
            1 / 16,
            "You divided the array by the number of chips. In (5.2), V is the size of "
            "the whole array, the result of the AllGather.",
        ),
        Slip("latency too", _with_hops(8), NO_LATENCY),
        slips.scaled(
            "all six links",
            1 / 3,
            "The ring is one axis of the torus. Only two of a chip's six links lie on "
            "it.",
        ),
        slips.other_link(chips.TPU_V5P.fact("link_bandwidth"), -1),
        slips.half_of_other_link(chips.TPU_V5P.fact("link_bandwidth"), -1),
    ),
    hint="The bytes of question 05.1 leave each chip through two links at once. How "
    "long does that take?",
    solution="""
        The bytes leave each chip through two links at once, so use (5.2) without its
        second term, the latency:

        ```python
        from shardmath.hardware import chips

        V = 2 * 8192 * 8192
        seconds = V * 15 / 16 / (2 * chips.TPU_V5P.link_bandwidth)
        ```
    """,
)

REDUCE = Number(
    id="05.3",
    title="Gradients on eight H100s",
    task="""
        **Given** eight H100s on NVLink. The GPUs do the adding, not the switch. Each
        GPU holds 1 GB (10⁹ bytes) of gradients.

        **Wanted** the time of the AllReduce, counting only the bandwidth, without the
        latency.
    """,
    given=stated(chips.H100, "scale_up_bandwidth"),
    stub="seconds = ...",
    unit="s",
    rtol=0.001,
    expected=lambda: _priced("all_reduce", GRADIENTS, NODE).bandwidth_seconds,
    slips=(
        slips.scaled(
            "half of it",
            1 / 2,
            "Did you count only one half of the AllReduce, or use NVLink's bandwidth "
            "for both directions together? Of a GPU's 900 GB/s, 450 go out and 450 "
            "come in.",
        ),
        slips.scaled(
            "an adding switch",
            4 / 7,
            "If the switch did the adding, each GPU would send its array only once. "
            "Here the GPUs do it.",
        ),
        slips.scaled(
            "own part too",
            8 / 7,
            "In each half, one of the eight parts stays where it is.",
        ),
        slips.scaled(
            "all eight at once",
            1 / 8,
            "You divided by the rate of all eight GPUs together. Each of them has to "
            "send its own bytes through its own links.",
        ),
        slips.scaled(
            "all eight arrays together",
            8,
            "You counted the arrays of all eight GPUs. In (5.4), V is the size of the "
            "array that each GPU holds.",
        ),
        slips.scaled(
            "whole arrays",
            4,
            "You let each GPU send its whole array to the seven others. How much less "
            "does it send if each GPU first finishes one part of the sum?",
        ),
    ),
    hint="An AllReduce is a ReduceScatter and an AllGather. How much does a GPU send "
    "in each of them?",
    solution="""
        An AllReduce has two halves, a ReduceScatter and an AllGather. In each half, a
        GPU sends $V \\cdot 7/8$ at its one-way egress bandwidth:

        ```python
        from shardmath.hardware import chips

        seconds = 2 * 1e9 * 7 / 8 / chips.H100.scale_up_bandwidth
        ```
    """,
)

TO_ALL = Number(
    id="05.4",
    title="An AllToAll on a ring",
    task=r"""
        **Given** an array of $V$ = 256 MiB (256 · 2²⁰ bytes) in all, sharded over a
        ring of 16 TPU v5e chips, which is one axis of a $16 \times 16$ slice.

        **Wanted** the time of an AllToAll over these 16 chips, counting only the
        bandwidth, without the latency of the hops.
    """,
    given=stated(chips.TPU_V5E, "link_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: _priced("all_to_all", EXPERTS, V5E_RING).bandwidth_seconds,
    rtol=0.001,
    slips=(
        slips.scaled(
            "an AllGather's time",
            3.75,
            "That is the time of an AllGather. In an AllToAll, every chip sends a "
            "different part to each other chip.",
        ),
        slips.scaled(
            "a quarter",
            15 / 16,
            "An AllToAll takes a quarter of the AllGather's time only in the limit of "
            "many chips. Count the hops for sixteen.",
        ),
        Slip("latency too", _with_hops(8), NO_LATENCY),
        slips.scaled("MB for MiB", 1e6 / 2**20, "A MiB has 2²⁰ bytes, not 10⁶."),
        Slip(
            "no detours",
            lambda right: EXPERTS * 15 / 256 / 2 / chips.TPU_V5E.link_bandwidth,
            "You counted only the bytes that start at a chip. On a ring, a chip must "
            "also send on the parts of others.",
        ),
        slips.one_direction(2),
    ),
    hint="Every chip has a sixteenth of the array and cuts it into 16 parts. How many "
    "hops do the parts of one chip make together, and how many links are there per "
    "chip?",
    solution="""
        Each chip cuts its sixteenth of the array into 16 parts of $V/16^2$ bytes. The
        parts of one chip make $\\lfloor n^2/4 \\rfloor = 64$ hops together. All chips
        share this work equally, so each chip sends 64 such parts through its two links,
        which takes $V/8W_\\text{link}$:

        ```python
        from shardmath.hardware import chips

        V = 256 * 2**20
        seconds = V / 256 * 64 / (2 * chips.TPU_V5E.link_bandwidth)
        ```
    """,
)

BEND = Number(
    id="05.5",
    title="Where latency no longer dominates",
    task="""
        **Given** the same ring of 16 TPU v5e chips as in question 05.4. Assume a
        latency of 1 µs per hop (`LATENCY["ICI"]`).

        **Wanted** the size $V$ of the gathered array, in bytes, below which you expect
        an AllGather to be latency-bound. At this $V$, the hops take as long as the
        bytes.
    """,
    given=stated(chips.TPU_V5E, "link_bandwidth"),
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: 8 * HOP / _priced("all_gather", 1, V5E_RING).bandwidth_seconds,
    slips=(
        slips.scaled(
            "one hop",
            15 / 256,
            "That is the number of bytes that a link carries during one hop. How many "
            "hops does the AllGather take, and over how many links does a chip "
            "receive?",
        ),
        slips.scaled(
            "many chips",
            15 / 16,
            "The rule n W α of (5.7) holds for many chips. With sixteen chips, each of "
            "them lacks only fifteen parts. (Your number would be right if only one "
            "direction were in use, but here both are.)",
        ),
        slips.scaled(
            "one hop, two links",
            15 / 128,
            "That is the number of bytes that a chip's two links carry during one hop. "
            "How many hops away is the farthest chip?",
        ),
        Slip(
            "fifteen for sixteen",
            lambda right: right * (15 / 16) ** 2,
            "Each chip receives only fifteen of the sixteen parts, so the array is "
            "larger than the bytes that a chip receives, not smaller.",
        ),
        slips.scaled(
            "fifteen hops",
            15 / 8,
            "Both directions are in use. How far away is the farthest chip?",
        ),
    ),
    hint="How many hops are there? Set V/(2W) · 15/16 equal to the latency of all of "
    "them.",
    solution="""
        The gather takes eight hops of 1 µs, during which a chip's two links carry 800
        kB. Each chip must receive 15/16 of the array, so the array is a little larger
        than that:

        ```python
        from shardmath.hardware import chips

        hops = 16 // 2
        latency = hops * 1e-6
        nbytes = 2 * chips.TPU_V5E.link_bandwidth * latency * 16 / 15
        ```
    """,
)

SLICE = Number(
    id="05.6",
    title="A slice without wraparound",
    task=r"""
        **Given** a $4 \times 4$ slice of TPU v5e chips and an array of 32 MiB in all,
        sharded over $X$ with $|X| = 4$.

        **Wanted** the time of an AllGather over $X$, counting only the bandwidth,
        without the latency of the hops.
    """,
    given=stated(chips.TPU_V5E, "link_bandwidth"),
    stub="seconds = ...",
    unit="s",
    rtol=0.001,
    expected=lambda: _priced("all_gather", LINE, V5E_LINE).bandwidth_seconds,
    slips=(
        slips.scaled(
            "a ring",
            1 / 2,
            "A side of four on a v5e does not close to a ring. Through how many links "
            "does the chip at the end receive?",
        ),
        slips.scaled(
            "own part too",
            4 / 3,
            "Each chip already has one of the four parts. How many does it lack?",
        ),
        slips.scaled(
            "sixteen chips",
            5 / 4,
            "You gathered over all sixteen chips. The AllGather runs over X alone, so "
            "there are four chips in a group.",
        ),
        slips.scaled("MB for MiB", 1e6 / 2**20, "A MiB has 2²⁰ bytes, not 10⁶."),
        Slip("latency too", _with_hops(3), NO_LATENCY),
    ),
    hint="Look at the chip at the end of the line. How many bytes must it receive, and "
    "through how many links?",
    solution="""
        A side of four does not close to a ring, so the chip at the end receives three
        of the four parts through its only link along X:

        ```python
        from shardmath.hardware import chips

        seconds = 32 * 2**20 * 3 / 4 / chips.TPU_V5E.link_bandwidth
        ```
    """,
)

AXES = Number(
    id="05.7",
    title="Two axes at once",
    task=r"""
        **Given** a slice of $8 \times 8 \times 8$ TPU v5p chips and an array of 1 GB
        (10⁹ bytes), sharded over $X$ and $Y$ together and replicated over $Z$.

        **Wanted** the time of the AllGather over $X$ and $Y$, counting only the
        bandwidth, without the latency of the hops. Only the links of these two axes may
        be used.
    """,
    given=stated(chips.TPU_V5P, "link_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: (
        _priced("all_gather", GRADIENTS, V5P_CUBE, ("X", "Y")).bandwidth_seconds
    ),
    rtol=0.001,
    slips=(
        slips.scaled(
            "one axis after the other",
            2,
            "If you gather first over Y and then over X, one axis is idle all the "
            "time. Or did you count only one direction of each link?",
        ),
        Slip(
            "three axes",
            lambda right: (
                _priced(
                    "all_gather", GRADIENTS, V5P_CUBE, tuple("XYZ")
                ).bandwidth_seconds
            ),
            "Z could help: each chip drops all but its part over Z, which costs "
            "nothing, and gathers over three axes. Here, only the links of X and Y may "
            "be used.",
        ),
        slips.scaled(
            "eight chips",
            (7 / 8) / (63 / 64),
            "You counted eight chips. The group consists of all the chips along both "
            "axes.",
        ),
        slips.scaled(
            "own part too",
            64 / 63,
            "One of the sixty-four parts need not move.",
        ),
        slips.scaled(
            "one axis alone",
            2 * (7 / 8) / (63 / 64),
            "That gathers over one axis, with its two links. The array is sharded over "
            "both axes, so both can share the work.",
        ),
        Slip("latency too", _with_hops(8), NO_LATENCY),
    ),
    hint="How many links does a chip have along X and Y together, and how many parts "
    "of the array does it lack?",
    solution="""
        A chip lacks 63 of the 64 parts, and it has four links along X and Y:

        ```python
        from shardmath.hardware import chips

        seconds = 1e9 * 63 / 64 / (4 * chips.TPU_V5P.link_bandwidth)
        ```

        The idle links along Z could make the AllGather faster still. Each chip would
        drop all but an eighth of its part and then gather over X, Y and Z, with six
        links.
    """,
)

BUS = Number(
    id="05.8",
    title="A bus bandwidth",
    task="""
        **Given** a log that reports 3.7 ms for an AllReduce of 1 GB (10⁹ bytes) over
        eight H100s.

        **Wanted** the bus bandwidth that NCCL's tests would print for this AllReduce.
    """,
    given=stated(chips.H100, "scale_up_bandwidth"),
    stub="rate = ...",
    unit="bytes/s",
    expected=lambda: Collective("all_reduce", "X", GRADIENTS, 8).sent / MEASURED,
    slips=(
        slips.scaled(
            "bytes over time",
            4 / 7,
            "That is the algorithm bandwidth, which depends on the number of GPUs. How "
            "much must a GPU send?",
        ),
        slips.scaled(
            "half of it",
            1 / 2,
            "An AllReduce sends as much as a ReduceScatter and an AllGather together.",
        ),
        slips.scaled(
            "own part too",
            8 / 7,
            "In each half, one of the eight parts stays where it is.",
        ),
        Slip(
            "the wire",
            lambda right: chips.H100.scale_up_bandwidth,
            "That is the one-way rate of a GPU's links. NCCL's tests compute the bus "
            "bandwidth from the time that they measured.",
        ),
    ),
    hint="How many bytes must a GPU send if no switch helps it? The bus bandwidth is "
    "this number divided by the time.",
    solution="""
        Without help from the switch, each GPU would have to send 7/8 of the array
        twice. The bus bandwidth always counts these bytes:

        ```python
        rate = 2 * 1e9 * 7 / 8 / 3.7e-3
        ```

        That is 473 GB/s through links of 450 GB/s, which shows that the switch has done
        some of the adding. Without such a switch, a measurement above 450 GB/s would
        have to be an error.
    """,
)


def _gather_seconds(V, n, W, alpha):
    """A block comes from every other chip, the farthest last, over two links."""
    lacking, steps = 0.0, 0
    for other in range(1, n):
        lacking += V / n
        steps = max(steps, min(other, n - other))  # hops the shorter way
    seconds = lacking / 2 / W
    for _ in range(steps):
        seconds += alpha
    return seconds


SECONDS = Function(
    id="05.9",
    title="The time of an AllGather",
    task=r"""
        **Given** the bytes $V$ of the whole array, $n \ge 3$ chips on a ring, the
        one-way bandwidth $W$ of a link, and the latency $\alpha$ of a hop.

        **Wanted** a function that returns the expected time, including the latency, of
        an AllGather that uses both directions.
    """,
    stub="def seconds(V, n, W, alpha): ...",
    spec=_gather_seconds,
    units={"V": "bytes", "W": "bytes/s", "alpha": "s"},
    gives=(("the time", "s"),),
    cases=lambda rng: (
        10 ** rng.uniform(2, 10),
        rng.randint(3, 64),
        10 ** rng.uniform(10, 12),
        rng.uniform(1e-7, 1e-5),
    ),
    examples=((8e6, 8, 50e9, 1e-6), (8e6, 5, 50e9, 1e-6)),
    slips=(
        Slip(
            "one way round",
            lambda V, n, W, alpha: V / W * (n - 1) / n + (n - 1) * alpha,
            "You used one direction of the ring. Half of the parts can go the other "
            "way.",
        ),
        Slip(
            "too many hops",
            lambda V, n, W, alpha: V / (2 * W) * (n - 1) / n + (n - 1) * alpha,
            "With both directions in use, how far away is the farthest chip?",
        ),
        Slip(
            "half a hop",
            lambda V, n, W, alpha: V / (2 * W) * (n - 1) / n + n / 2 * alpha,
            "The number of hops is a whole number, even where n is odd.",
        ),
        Slip(
            "own part too",
            lambda V, n, W, alpha: V / (2 * W) + n // 2 * alpha,
            "You counted all n parts. A chip need not receive the part that it already "
            "has.",
        ),
        Slip(
            "rounded up",
            lambda V, n, W, alpha: V / (2 * W) * (n - 1) / n + (n + 1) // 2 * alpha,
            "On a ring of five the farthest chip is two hops away, not three.",
        ),
        Slip(
            "one hop",
            lambda V, n, W, alpha: V / (2 * W) * (n - 1) / n + alpha,
            "The blocks move on step by step, and each step adds the latency of a hop.",
        ),
        Slip(
            "no latency",
            lambda V, n, W, alpha: V / (2 * W) * (n - 1) / n,
            "The hops take time as well.",
        ),
    ),
    hint="Use formula (5.2). How many hops away is the farthest chip on a ring of n = "
    "5?",
    solution="""
        The bytes arrive through two links at once. The farthest chip is
        $\\lfloor n/2 \\rfloor$ hops away, because both directions are in use:

        ```python
        def seconds(V, n, W, alpha):
            return V / (2 * W) * (n - 1) / n + n // 2 * alpha
        ```
    """,
)


def _hops(n):
    """Walk from chip 0 to every other, to whichever side is nearer."""
    hops = 0
    for target in range(1, n):
        hops += min(target, n - target)
    return hops


HOPS = Function(
    id="05.10",
    title="The hops of an AllToAll",
    task="""
        **Given** a ring of $n$ chips. In an AllToAll, every chip sends one part to
        every other chip, and each part goes the shorter way.

        **Wanted** a function that returns how many hops the parts of one chip make
        together.
    """,
    stub="def hops(n): ...",
    spec=_hops,
    gives=(("the hops", ""),),
    cases=lambda rng: (rng.randint(2, 99),),
    examples=((8,), (7,)),
    rtol=0,
    slips=(
        Slip(
            "one way round",
            lambda n: n * (n - 1) // 2,
            "You sent every part in the same direction. No part has to go the long way "
            "round the ring.",
        ),
        Slip(
            "not whole",
            lambda n: n * n / 4,
            "Check an odd n by hand. With three chips, each chip sends two parts, and "
            "each part makes one hop.",
        ),
        Slip(
            "the opposite twice",
            lambda n: 2 * sum(range(1, n // 2 + 1)),
            "Where n is even, only one chip is n/2 hops away.",
        ),
        Slip(
            "of all chips",
            lambda n: n * (n * n // 4),
            "That is the number of hops that the parts of all the chips make. The "
            "question asks for the parts of one chip.",
        ),
    ),
    hint="A chip that is k places further along the ring is k hops away in one "
    "direction and n − k in the other. Which way does its part go?",
    solution="""
        The part for the chip $k$ places further along goes whichever way is shorter,
        $k$ hops or $n - k$:

        ```python
        def hops(n):
            return sum(min(k, n - k) for k in range(n))
        ```

        This sum is $\\lfloor n^2/4 \\rfloor$.
    """,
)


def _rows(most: int = 6):
    return lambda rng: ((8 * rng.randint(2, most), 8 * rng.randint(1, 4)),)


def _bytes(shape) -> int:
    return 4 * math.prod(shape)


BY_HAND = Sharded(
    id="05.11",
    title="AllGather from permutes",
    task="""
        **Given** a mesh axis `"X"` of eight chips. Each chip holds its rows `x` of an
        array $A[I_X, J]$, in float32.

        **Wanted** the function that each chip runs and that returns all of $A[I, J]$ on
        each of them. It uses no other collective than `jax.lax.ppermute`, and it may
        send no more bytes than an AllGather must.
    """,
    stub="def gather(x): ...",
    mesh={"X": 8},
    shapes=_rows(),
    in_specs=(("X", None),),
    out_spec=(),
    spec=lambda a: a,
    collectives=lambda a: [Collective("permute", "X", _bytes(a) / 8, 8, times=7)],
    at_most=True,
    slips=(
        Slip(
            "whole array each time",
            lambda a: [Collective("permute", "X", _bytes(a), 8, times=7)],
            "Your program sends everything that a chip has so far. Send on only the "
            "part that came in last.",
        ),
        Slip(
            "ready made",
            lambda a: [Collective("all_gather", "X", _bytes(a), 8)],
            "That is the compiler's own AllGather. Here, you have to build it from "
            "permutes.",
        ),
    ),
    hint="In every step, send on the part that came in during the step before. After "
    "`step` steps, a chip receives the part of the chip that is `step` places to its "
    "left. Where in the whole array does that part belong?",
    solution="""
        Each part travels once around the ring. In every step, a chip sends on the part
        that came in last, so each of the seven steps moves only one part:

        ```python
        def gather(x):
            me = jax.lax.axis_index("X")
            to_the_right = [(chip, (chip + 1) % 8) for chip in range(8)]
            whole = jnp.zeros((8, *x.shape)).at[me].set(x)
            for step in range(1, 8):
                x = jax.lax.ppermute(x, "X", to_the_right)
                whole = whole.at[(me - step) % 8].set(x)
            return whole.reshape(-1, x.shape[1])
        ```
    """,
)

SCATTER = Sharded(
    id="05.12",
    title="ReduceScatter from permutes",
    task=r"""
        **Given** eight chips along `"X"`. Each holds one row `x`, of shape `[1, J]`, of
        partial sums $A[J]\{U_X\}$.

        **Wanted** the function that leaves $A[J_X]$, an eighth of the sums, on each
        chip. It uses no other collective than `jax.lax.ppermute`, and it may send no
        more bytes than a ReduceScatter must. (Return an array of shape `[J // 8]`.)
    """,
    stub="def reduce_scatter(x): ...",
    mesh={"X": 8},
    shapes=lambda rng: ((8, 8 * rng.randint(2, 20)),),
    in_specs=(("X", None),),
    out_spec=("X",),
    spec=lambda a: a.sum(0),
    collectives=lambda a: [Collective("permute", "X", _bytes(a) / 64, 8, times=7)],
    at_most=True,
    slips=(
        Slip(
            "ready made",
            lambda a: [Collective("reduce_scatter", "X", _bytes(a) / 8, 8)],
            "That is the compiler's own ReduceScatter. Here, you have to build it from "
            "permutes.",
        ),
        Slip(
            "whole rows",
            lambda a: [Collective("permute", "X", _bytes(a) / 8, 8, times=7)],
            "Each chip needs only its own eighth of the sums, so only an eighth of a "
            "row has to travel in each step.",
        ),
        Slip(
            "everything to everybody",
            lambda a: [Collective("all_reduce", "X", _bytes(a) / 8, 8)],
            "Your program leaves the whole sum on every chip, which takes twice as "
            "many bytes.",
        ),
    ),
    hint="The sum for chip d starts on chip d + 1. Suppose that a sum arrives here "
    "after k hops. For which chip is it? Add this chip's part of the sum for that "
    "chip.",
    solution="""
        The sum for each chip starts on the chip to its right and travels around the
        ring to the right. Every chip that it visits adds its own part, and the chip
        that it is for adds the last part:

        ```python
        def reduce_scatter(x):
            me = jax.lax.axis_index("X")
            to_the_right = [(chip, (chip + 1) % 8) for chip in range(8)]
            parts = x.reshape(8, -1)
            total = parts[(me - 1) % 8]
            for step in range(2, 9):
                total = jax.lax.ppermute(total, "X", to_the_right)
                total += parts[(me - step) % 8]
            return total
        ```
    """,
)

TURN = Sharded(
    id="05.13",
    title="From rows to columns",
    task="""
        **Given** eight chips along `"X"`. Each chip holds its rows `x` of $A[I_X, J]$
        and needs its columns of $A[I, J_X]$.

        **Wanted** the function that each chip runs. It must compile to one AllToAll of
        the array's bytes and nothing else.
    """,
    stub="def columns(x): ...",
    mesh={"X": 8},
    shapes=_rows(),
    in_specs=(("X", None),),
    out_spec=(None, "X"),
    spec=lambda a: a,
    collectives=lambda a: [Collective("all_to_all", "X", _bytes(a), 8)],
    slips=(
        Slip(
            "gather and cut",
            lambda a: [Collective("all_gather", "X", _bytes(a), 8)],
            "Your program brings the whole array to every chip and then throws seven "
            "eighths of it away.",
        ),
    ),
    hint="`jax.lax.all_to_all` needs the axis that is cut and the axis along which the "
    "parts are joined. Which axes are they here? Look at what `tiled=True` does.",
    solution="""
        Every chip needs its columns of all the rows. So each chip cuts its rows into
        eight blocks of columns and sends one block to each chip, which joins the blocks
        along the rows:

        ```python
        def columns(x):
            return jax.lax.all_to_all(x, "X", split_axis=1, concat_axis=0, tiled=True)
        ```
    """,
)


def _softmax(a):
    powers = math.e ** (SHARPNESS * (a - a.max(1, keepdims=True)))
    return powers / powers.sum(1, keepdims=True)


def _softmax_of_own_largest(a):
    import numpy as np  # not at the top: a page judges numbers without it

    own = [one - one.max(1, keepdims=True) for one in slips.parts(a, 8, 1)]
    powers = np.exp(SHARPNESS * np.concatenate(own, 1))
    return powers / powers.sum(1, keepdims=True)


SOFTMAX = Sharded(
    id="05.14",
    title="A softmax over a sharded axis",
    task="""
        **Given** eight chips along `"X"`. Each chip holds its columns `x` of scores
        $A[I, J_X]$, in float32.

        **Wanted** the function that returns this chip's columns of the softmax of
        $100 A$ over $J$. To avoid an overflow, the largest score of a row is subtracted
        first. The function may use two AllReduces, each of one number per row.
    """,
    stub="def softmax(x): ...",
    mesh={"X": 8},
    shapes=_rows(),
    in_specs=((None, "X"),),
    out_spec=(None, "X"),
    spec=_softmax,
    collectives=lambda a: [Collective("all_reduce", "X", 4 * a[0], 8, times=2)],
    slips=(
        Slip(
            "gather and cut",
            lambda a: [Collective("all_gather", "X", _bytes(a), 8)],
            "For the softmax of a row, a chip needs two numbers from the other chips, "
            "not all their values.",
        ),
    ),
    values=(
        Slip(
            "each chip's own maximum",
            _softmax_of_own_largest,
            "Each chip has subtracted its own largest value, so the exponentials of "
            "two chips have different scales and cannot be added. Subtract the largest "
            "value of the whole row.",
        ),
        Slip(
            "the scores as they are",
            lambda a: _softmax(a / SHARPNESS),
            "That is the softmax of A. The question asks for the softmax of 100 A.",
        ),
    ),
    hint="Which two numbers must a chip know about a whole row? `jax.lax.pmax` is an "
    "AllReduce that takes the largest value.",
    solution="""
        A chip needs only two numbers per row from the others: first the largest value,
        and then the sum of the exponentials:

        ```python
        def softmax(x):
            largest = jax.lax.pmax(x.max(1, keepdims=True), "X")
            powers = jnp.exp(100 * (x - largest))
            return powers / jax.lax.psum(powers.sum(1, keepdims=True), "X")
        ```
    """,
)

GRADIENT = Sharded(
    id="05.15",
    title="Gather forward, scatter back",
    task=r"""
        **Given** eight chips along `"X"`. Each chip holds a shard `w` of the weights
        $w[D_X]$ and one row `x` of inputs, of shape `[1, D]`. The loss of chip $c$ is
        $(x_c \cdot w)^2$, computed with all of $w$.

        **Wanted** the function that returns this chip's shard of the gradient of the
        sum of all eight losses. It must compile to one AllGather and one ReduceScatter
        of the bytes of $w$.
    """,
    stub="def gradient(w, x): ...",
    mesh={"X": 8},
    shapes=lambda rng: ((8 * (size := rng.randint(2, 9)),), (8, 8 * size)),
    in_specs=(("X",), ("X", None)),
    out_spec=("X",),
    spec=lambda w, x: 2 * x.T @ (x @ w),
    collectives=lambda w, x: [
        Collective("all_gather", "X", _bytes(w), 8),
        Collective("reduce_scatter", "X", _bytes(w), 8),
    ],
    slips=(
        Slip(
            "everything to everybody",
            lambda w, x: [
                Collective("all_gather", "X", _bytes(w), 8),
                Collective("all_reduce", "X", _bytes(w), 8),
            ],
            "Each chip needs only the gradient of its own shard. Which half of the "
            "AllReduce can you leave out?",
        ),
    ),
    hint="Write this chip's loss as a function of its shard of w, with the gather "
    "inside. What does `jax.grad` then do for you?",
    solution="""
        When JAX differentiates the AllGather, it puts in a ReduceScatter by itself.
        This adds up the gradients of all the chips' losses and leaves each chip its own
        shard of the sum:

        ```python
        def gradient(w, x):
            def loss(w):
                whole = jax.lax.all_gather(w, "X", tiled=True)
                return (x[0] @ whole) ** 2

            return jax.grad(loss)(w)
        ```

        FSDP works in this way.
    """,
)

BUCKETS = Number(
    id="05.16",
    title="Gradients in buckets",
    points=2,
    task=r"""
        **Given** a model of 10⁹ parameters with gradients in bf16, on a ring of 16 TPU
        v5e chips, which is one axis of a $16 \times 16$ slice. Assume a latency of 1 µs
        per hop. The backward pass hands the gradients over in equal **buckets**. A
        separate AllReduce adds up each bucket over the chips, one bucket after the
        other.

        **Wanted** the number of bytes in the smallest bucket for which latency adds no
        more than 10 % to the time that the bytes take.
    """,
    given=stated(chips.TPU_V5E, "link_bandwidth"),
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: (
        10 * (2 * 8) * HOP / _priced("all_reduce", 1, V5E_RING).bandwidth_seconds
    ),
    slips=(
        slips.scaled(
            "equal terms",
            1 / 10,
            "With that bucket, latency takes as long as the bytes, so the time "
            "doubles.",
        ),
        slips.scaled(
            "a tenth of the whole",
            9 / 10,
            "With that bucket, latency is a tenth of the whole time. It should be a "
            "tenth of the time that the bytes take.",
        ),
        slips.scaled(
            "one half's hops",
            1 / 2,
            "An AllReduce has two halves, and a chip has two links. You counted only "
            "the hops of one half, or only the bytes of one link.",
        ),
        slips.scaled(
            "fifteen hops",
            15 / 8,
            "Both directions are in use. How far away is the farthest chip?",
        ),
        slips.scaled(
            "many chips",
            15 / 16,
            "Only fifteen of the sixteen parts have to move. (Your number would be "
            "right if only one direction were in use, but here both are.)",
        ),
        Slip(
            "the number of buckets",
            lambda right: GRADIENT_BYTES / right,
            "That is the number of buckets. The question asks for the bytes of one "
            "bucket.",
        ),
    ),
    hint="Write down the two terms of one bucket's AllReduce. How many hops does it "
    "take? How large is a bucket whose bytes take ten times as long as these hops?",
    solution="""
        The AllReduce of one bucket takes 2 · 8 hops. Its bytes must take ten times as
        long as these hops, and each chip's two links carry 15/16 of the bucket twice:

        ```python
        from shardmath.hardware import chips

        latency = 2 * (16 // 2) * 1e-6
        nbytes = 10 * latency * chips.TPU_V5E.link_bandwidth * 16 / 15
        ```

        The bucket holds about 8.5 MB, ten times the $V^*$ of (5.7), so the 2 GB of
        gradients make at most 234 buckets. The size of the smallest bucket does not
        depend on the model.
    """,
)


def _two_levels(V, k, g, up, out):
    """A ReduceScatter in the node, an AllReduce between, an AllGather in the node."""
    seconds = 0.0
    for _ in range(g - 1):  # parts of V/g go round in the node and add up
        seconds += V / g / up
    for _ in range(2 * (k - 1)):  # each part's k pieces go round the nodes, twice
        seconds += V / g / k / out
    for _ in range(g - 1):  # finished parts go round in the node
        seconds += V / g / up
    return seconds


TWO_LEVELS = Function(
    id="05.17",
    title="An AllReduce over nodes, step by step",
    points=2,
    task="""
        **Given** $k$ nodes of $g$ GPUs each. Each GPU holds an array of $V$ bytes. It
        can send `up` bytes/s inside its node and, through its own card, `out` bytes/s
        to other nodes, both one-way. The GPUs do the adding, not the switches. Their
        AllReduce has three steps, one after the other: a ReduceScatter in each node, an
        AllReduce of each part among the GPUs that hold this part, and an AllGather in
        each node.

        **Wanted** a function that returns the time of this AllReduce, without latency.
    """,
    stub="def seconds(V, k, g, up, out): ...",
    spec=_two_levels,
    units={"V": "bytes", "up": "bytes/s", "out": "bytes/s"},
    gives=(("the time", "s"),),
    cases=lambda rng: (
        10 ** rng.uniform(6, 10),
        rng.randint(2, 32),
        rng.choice((2, 4, 8, 72)),
        10 ** rng.uniform(11, 12),
        10 ** rng.uniform(10, 11),
    ),
    examples=((1e9, 4, 8, 450e9, 50e9), (1e9, 2, 4, 900e9, 100e9)),
    slips=(
        Slip(
            "the whole array",
            lambda V, k, g, up, out: (
                2 * V * (g - 1) / g / up + 2 * V * (k - 1) / k / out
            ),
            "After the first step, a GPU has only one of g parts left to add up, and "
            "every GPU has a card of its own.",
        ),
        Slip(
            "one ring over all",
            lambda V, k, g, up, out: 2 * V * (k * g - 1) / (k * g) / out,
            "That is one ring through all the GPUs, which uses one card per node. "
            "Count the bytes that a GPU sends in each of the three steps, and over "
            "which link.",
        ),
        Slip(
            "both at once",
            lambda V, k, g, up, out: max(
                2 * V * (g - 1) / g / up, 2 * V / g * (k - 1) / k / out
            ),
            "That is the lower bound, in which NVLink and cards work at the same time. "
            "Here, each step waits for the one before it.",
        ),
        Slip(
            "once between nodes",
            lambda V, k, g, up, out: (
                2 * V * (g - 1) / g / up + V / g * (k - 1) / k / out
            ),
            "The step between the nodes is an AllReduce, which has two halves.",
        ),
        Slip(
            "no way back",
            lambda V, k, g, up, out: (
                V * (g - 1) / g / up + 2 * V / g * (k - 1) / k / out
            ),
            "After the second step, a GPU has one part of the sum. In the end, it must "
            "have all of it.",
        ),
        Slip(
            "shared by all",
            lambda V, k, g, up, out: 2 * V * (k * g - 1) / (k * g) / g / out,
            "That is a ring through all the GPUs that uses every card of a node. Here, "
            "each node adds up its own arrays first and sends fewer bytes to the "
            "others.",
        ),
        Slip(
            "own part too",
            lambda V, k, g, up, out: 2 * V / up + 2 * V / g / out,
            "In each step, one part stays where it is.",
        ),
    ),
    hint="How many bytes does a GPU send in each step? That depends on the size of the "
    "array in this step and on the number of GPUs over which the step runs.",
    solution="""
        The arrays of the three steps have V, V/g and V bytes, and in each step one part
        stays where it is:

        ```python
        def seconds(V, k, g, up, out):
            inside = V * (g - 1) / g / up
            between = 2 * (V / g) * (k - 1) / k / out
            return inside + between + inside
        ```

        For 1 GB on 4 nodes of eight H100s, that is 3.9 ms inside the nodes and 3.75 ms
        between them. The card has only a ninth of NVLink's bandwidth, but it also
        carries only an eighth of the array.
    """,
)


def _to_popular(token_bytes: float) -> list[list[float]]:
    """Bytes from GPU to GPU: of each one's copies 30 % go to GPU 0, 10 % to others."""
    copies = TOKENS * TOP * token_bytes
    return [[0.3 * copies] + [0.1 * copies] * 7 for _ in range(8)]


def _there_and_back() -> float:
    mesh = Mesh(NODE, {"X": 8})
    there, back = _to_popular(WIDTH), zip(*_to_popular(2 * WIDTH), strict=True)
    return sum(
        collectives.ragged_all_to_all(list(sent), mesh, "X").bandwidth_seconds
        for sent in (there, back)
    )


POPULAR = Number(
    id="05.18",
    title="A popular expert",
    points=2,
    task="""
        **Given** a mixture of eight experts, one on each of the eight H100s in a node.
        Every GPU holds 2,000 tokens of 7,168 values, and a copy of each token goes to
        each of two experts. From every GPU, 30 % of these copies go to the expert on
        the first GPU, and 10 % go to each of the other seven (a GPU's own expert counts
        like any other). The tokens go out in fp8. After the last token has arrived, the
        results come back in bf16.

        **Wanted** the time of both exchanges together, counting only the bandwidth,
        without the latency.
    """,
    given=stated(chips.H100, "scale_up_bandwidth"),
    stub="seconds = ...",
    unit="s",
    rtol=0.002,
    expected=_there_and_back,
    slips=(
        slips.scaled(
            "as if even",
            (1 / 8) / 0.3,
            "That would be the time if every expert got the same number of tokens. "
            "Here, one GPU receives more than the others, and all of them have to wait "
            "for it.",
        ),
        slips.scaled(
            "the wrong port",
            (0.3 + 6 * 0.1) / (7 * 0.3),
            "That is how long one of the other seven GPUs takes to send. Which GPU's "
            "port has to carry the most bytes?",
        ),
        slips.scaled(
            "own copies too",
            8 / 7,
            "Copies for a GPU's own expert stay where they are.",
        ),
        slips.scaled(
            "no way back, or what the first GPU sends out",
            1 / 3,
            "The results come back as well, in bf16. And what takes the first GPU "
            "longer on the way out, to send its own copies or to receive those of the "
            "seven others?",
        ),
        slips.scaled(
            "bf16 both ways",
            4 / 3,
            "How many bytes does a value take on its way out?",
        ),
        slips.scaled(
            "fp8 both ways",
            2 / 3,
            "How many bytes does a value take on its way back?",
        ),
        slips.scaled(
            "half of it",
            1 / 2,
            "Each token goes to two experts, and of NVLink's 900 GB/s, 450 go out and "
            "450 come in. Which of these two facts did you miss?",
        ),
    ),
    hint="Which GPU's port is busiest on the way out, and which on the way back? From "
    "how many GPUs do its bytes come?",
    solution="""
        The port of the first GPU is the busiest. It takes in 30 % of the copies of the
        seven other GPUs, and sends back as many results with twice the bytes:

        ```python
        from shardmath.hardware import chips

        copies = 7 * 0.30 * 2000 * 2
        seconds = copies * 7168 * (1 + 2) / chips.H100.scale_up_bandwidth
        ```

        With evenly used experts, the two exchanges would be 2.4 times as fast. So an
        auxiliary loss that evens out their use also saves time in the network.
    """,
)
