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
        "three questions of several steps"
    ),
    intro="""
        from one fraction to a gradient whose compiled program must hold one AllGather
        and one ReduceScatter. The last three take several steps. Answers are in base
        units: bytes, seconds, bytes/s. `chips` holds every data sheet:
        `chips.TPU_V5P.link_bandwidth` is one link of ICI, one-way,
        `chips.H100.scale_up_bandwidth` the one-way egress of a GPU into NVLink.

        Five are code for one chip, the function inside a `jax.shard_map`. The check
        runs it on eight virtual devices, looks at what every one of them ends
        with, and reads from the compiled program what it sends.
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

        **Wanted** the bytes that one chip sends in an AllGather over $X$.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: Collective("all_gather", "X", MATRIX, 16).sent,
    slips=(
        Slip(
            "own part too",
            lambda right: MATRIX,
            "One of the sixteen parts is where it has to be from the start.",
        ),
        Slip(
            "one step",
            lambda right: MATRIX / 16,
            "That is one step on a ring. How many are there?",
        ),
        Slip(
            "whole arrays",
            lambda right: MATRIX * 15,
            "Each step moves one part, not the whole array.",
        ),
    ),
    hint="How large is a part, and how many parts does a chip pass on?",
    solution="""
        Sixteen parts; every chip passes on all but the last that it receives, so
        fifteen. You can also count like this: every chip must receive the fifteen parts
        that it lacks, and every received part is sent by somebody.

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
        **Given** the same AllGather on a ring of 16 TPU v5p chips, both directions in
        use.

        **Wanted** its time from the bandwidth only, without the latency of the hops.
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
            "Bytes over bandwidth is the limit of many chips. On sixteen one part of "
            "the sixteen need not move.",
        ),
        slips.scaled(
            "a part for the array",
            1 / 16,
            "V is the whole array, the result of the gather.",
        ),
        Slip("latency too", _with_hops(8), NO_LATENCY),
        slips.scaled(
            "all six links",
            1 / 3,
            "The ring is one axis of the torus. Two of a chip's six links lie on it.",
        ),
        slips.other_link(chips.TPU_V5P.fact("link_bandwidth"), -1),
        slips.half_of_other_link(chips.TPU_V5P.fact("link_bandwidth"), -1),
    ),
    hint="The bytes of the last question leave through two links at once.",
    solution="""
        Use (5.2) without its second term:

        ```python
        from shardmath.hardware import chips

        V = 2 * 8192 * 8192
        seconds = V * 15 / 16 / (2 * chips.TPU_V5P.link_bandwidth)
        ```
    """,
)

REDUCE = Number(
    id="05.3",
    title="Gradients on eight H100",
    task="""
        **Given** 8 H100 on NVLink with a switch that does not add. Each holds 1 GB (10⁹
        bytes) of gradients.

        **Wanted** the time of the AllReduce from the bandwidth only, without the
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
            "That is one of the two halves of an AllReduce, or it counts NVLink in "
            "both directions: a GPU's 900 GB/s are 450 out and 450 in.",
        ),
        slips.scaled(
            "an adding switch",
            4 / 7,
            "If the switch adds, each GPU sends its array once. This one does not.",
        ),
        slips.scaled(
            "own part too",
            8 / 7,
            "In each half one of the eight parts stays where it is.",
        ),
        slips.scaled(
            "all eight at once",
            1 / 8,
            "That divides by what all eight GPUs can send together. Each has to send "
            "its own bytes through its own links.",
        ),
        slips.scaled(
            "all eight arrays together",
            8,
            "The eight arrays are the terms of one sum. V is the array that each GPU "
            "holds.",
        ),
        slips.scaled(
            "whole arrays",
            4,
            "Seven times the whole array is the straight way. What do you gain if each "
            "GPU first finishes one part?",
        ),
    ),
    hint="An AllReduce is a ReduceScatter and an AllGather. How much does each send?",
    solution="""
        Each half sends $V \\cdot 7/8$ at the GPU's one-way egress:

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
        **Given** an array of 256 MiB (256 · 2²⁰ bytes) in all, sharded over a ring of
        16 TPU v5e chips: one axis of a $16 \times 16$ slice.

        **Wanted** the time of an AllToAll over these 16 chips from the bandwidth only,
        without the latency of the hops.
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
            "That is the time of an AllGather, which is also that of an AllToAll sent "
            "around in one direction only.",
        ),
        slips.scaled(
            "a quarter",
            15 / 16,
            "A quarter of the AllGather is the limit for many chips. Count hops for "
            "sixteen.",
        ),
        Slip("latency too", _with_hops(8), NO_LATENCY),
        slips.scaled("MB for MiB", 1e6 / 2**20, "A MiB has 2²⁰ bytes, not 10⁶."),
        Slip(
            "no detours",
            lambda right: EXPERTS * 15 / 256 / 2 / chips.TPU_V5E.link_bandwidth,
            "That is what a chip sends of its own. On a ring it must also pass on what "
            "others send.",
        ),
        slips.one_direction(2),
    ),
    hint="Each part has V/256 bytes. How many hops do the parts of one chip make "
    "together, and how many links are there per chip?",
    solution="""
        $\\lfloor n^2/4 \\rfloor = 64$ hops of $V/256$ for each chip, over its two
        links: $V/8W_\\text{link}$.

        ```python
        from shardmath.hardware import chips

        V = 256 * 2**20
        seconds = V / 256 * 64 / (2 * chips.TPU_V5E.link_bandwidth)
        ```
    """,
)

BEND = Number(
    id="05.5",
    title="Where latency ends",
    task="""
        **Given** the same ring of 16 TPU v5e chips. Assume a latency of 1 µs per hop
        (`LATENCY["ICI"]`).

        **Wanted** the bytes $V$ below which you expect an AllGather to be
        latency-bound: those at which both terms are equal.
    """,
    given=stated(chips.TPU_V5E, "link_bandwidth"),
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: 8 * HOP / _priced("all_gather", 1, V5E_RING).bandwidth_seconds,
    slips=(
        slips.scaled(
            "one hop",
            15 / 256,
            "That is what a link carries during one hop. The gather makes eight, and "
            "cuts the array in sixteen parts.",
        ),
        slips.scaled(
            "many chips",
            15 / 16,
            "n W α is the rule for many chips. On sixteen a chip lacks fifteen "
            "parts only. (One way round gives the same; here both are in use.)",
        ),
        slips.scaled(
            "one hop, two links",
            15 / 128,
            "That is what a chip's two links carry during one hop. How many hops away "
            "is the farthest chip?",
        ),
        Slip(
            "fifteen for sixteen",
            lambda right: right * (15 / 16) ** 2,
            "A chip lacks fifteen parts of the sixteen, so the array is larger than "
            "what it takes in, not smaller.",
        ),
        slips.scaled(
            "fifteen hops",
            15 / 8,
            "Both directions are in use. How far away is the farthest chip?",
        ),
    ),
    hint="Set V/(2W) · 15/16 equal to the latency of all hops.",
    solution="""
        Eight hops of 1 µs, during which two links carry 800 kB; each chip must receive
        15/16 of the array, so the array is a little larger.

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
        **Given** a $4 \times 4$ slice of TPU v5e and an array of 32 MiB, sharded over
        $X$ with $|X| = 4$.

        **Wanted** the time of an AllGather over $X$ from the bandwidth only, without
        the latency of the hops.
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
            "A side of four on a v5e does not close. Through how many links does the "
            "chip at the end receive?",
        ),
        slips.scaled(
            "own part too",
            4 / 3,
            "A chip lacks three parts of the four.",
        ),
        slips.scaled(
            "sixteen chips",
            5 / 4,
            "The gather runs over X alone: four chips in a group.",
        ),
        slips.scaled("MB for MiB", 1e6 / 2**20, "A MiB has 2²⁰ bytes, not 10⁶."),
        Slip("latency too", _with_hops(3), NO_LATENCY),
    ),
    hint="Look at the chip at the end of the line: what must come in, and through how "
    "many links?",
    solution="""
        The chip at the end receives three parts of four through its only link.

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
        **Given** a slice of $8 \times 8 \times 8$ TPU v5p and an array of 1 GB (10⁹
        bytes), sharded over $X$ and $Y$ together and replicated over $Z$.

        **Wanted** the time of the AllGather over $X$ and $Y$ by the bandwidth of these
        two axes' links alone: leave out the latency of the hops.
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
            "First Y, then X leaves one axis idle all the time; or you counted one "
            "direction of each link.",
        ),
        Slip(
            "three axes",
            lambda right: (
                _priced(
                    "all_gather", GRADIENTS, V5P_CUBE, tuple("XYZ")
                ).bandwidth_seconds
            ),
            "Z can help: each chip drops all but its part over Z, which costs nothing, "
            "and gathers over three axes. Here only the links of X and Y may be used.",
        ),
        slips.scaled(
            "eight chips",
            (7 / 8) / (63 / 64),
            "The group has all chips of both axes.",
        ),
        slips.scaled(
            "own part too",
            64 / 63,
            "One part of the sixty-four need not move.",
        ),
        slips.scaled(
            "one axis alone",
            2 * (7 / 8) / (63 / 64),
            "That gathers over one axis, with its two links. The array is sharded over "
            "both, and so is the work.",
        ),
        Slip("latency too", _with_hops(8), NO_LATENCY),
    ),
    hint="How many links does a chip have along X and Y together, and how many parts "
    "does it lack?",
    solution="""
        A chip lacks 63 parts of 64 and has four links.

        ```python
        from shardmath.hardware import chips

        seconds = 1e9 * 63 / 64 / (4 * chips.TPU_V5P.link_bandwidth)
        ```

        The idle links of Z would make it faster still: drop all but an eighth over Z,
        then gather over X, Y and Z with six links.
    """,
)

BUS = Number(
    id="05.8",
    title="A bus bandwidth",
    task="""
        **Given** a test log: an AllReduce of 1 GB (10⁹ bytes) over 8 H100 took 3.7 ms.

        **Wanted** the bus bandwidth that NCCL's tests would print for it.
    """,
    given=stated(chips.H100, "scale_up_bandwidth"),
    stub="rate = ...",
    unit="bytes/s",
    expected=lambda: Collective("all_reduce", "X", GRADIENTS, 8).sent / MEASURED,
    slips=(
        slips.scaled(
            "bytes over time",
            4 / 7,
            "That is the algorithm bandwidth, which depends on the number of GPUs. "
            "What must a GPU send?",
        ),
        slips.scaled(
            "half of it",
            1 / 2,
            "An AllReduce sends what a ReduceScatter and an AllGather send.",
        ),
        slips.scaled(
            "own part too",
            8 / 7,
            "In each half one of the eight parts stays where it is.",
        ),
        Slip(
            "the wire",
            lambda right: chips.H100.scale_up_bandwidth,
            "That is what a GPU's links carry one way. The test divides by the time "
            "that it measured, and a switch that adds spares the GPUs some of the "
            "sending.",
        ),
    ),
    hint="Bus bandwidth is what a GPU must send without help, over the time.",
    solution="""
        ```python
        rate = 2 * 1e9 * 7 / 8 / 3.7e-3
        ```

        473 GB/s through links of 450: the switch has added on the way. Without that a
        measurement above 450 would be a wrong clock.
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
        one-way bandwidth $W$ of a link and the latency $\alpha$ expected of a hop.

        **Wanted** a function that returns the time, latency included, that is expected
        of an AllGather that uses both directions.
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
            "A ring has two directions, and the array has two halves.",
        ),
        Slip(
            "too many hops",
            lambda V, n, W, alpha: V / (2 * W) * (n - 1) / n + (n - 1) * alpha,
            "With both directions in use, how far away is the farthest chip?",
        ),
        Slip(
            "half a hop",
            lambda V, n, W, alpha: V / (2 * W) * (n - 1) / n + n / 2 * alpha,
            "Hops are whole, also where n is odd.",
        ),
        Slip(
            "own part too",
            lambda V, n, W, alpha: V / (2 * W) + n // 2 * alpha,
            "A chip need not receive what it has.",
        ),
        Slip(
            "rounded up",
            lambda V, n, W, alpha: V / (2 * W) * (n - 1) / n + (n + 1) // 2 * alpha,
            "On a ring of five the farthest chip is two hops away, not three.",
        ),
        Slip(
            "one hop",
            lambda V, n, W, alpha: V / (2 * W) * (n - 1) / n + alpha,
            "The blocks move on step by step, and each step waits for a hop.",
        ),
        Slip(
            "no latency",
            lambda V, n, W, alpha: V / (2 * W) * (n - 1) / n,
            "The hops take time as well.",
        ),
    ),
    hint="Formula (5.2). Try n = 5.",
    solution="""
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
    title="The ways of an AllToAll",
    task="""
        **Given** a ring of $n$ chips. In an AllToAll every chip sends one part to every
        other, each the shorter way.

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
            "Nobody goes the long way round a ring.",
        ),
        Slip(
            "not whole",
            lambda n: n * n / 4,
            "Check an odd n by hand: with three chips each sends two parts by one hop.",
        ),
        Slip(
            "the opposite twice",
            lambda n: 2 * sum(range(1, n // 2 + 1)),
            "Where n is even, only one chip is n/2 hops away.",
        ),
        Slip(
            "of all chips",
            lambda n: n * (n * n // 4),
            "That is what the parts of all chips make. Asked are those of one.",
        ),
    ),
    hint="The chip k places on is k hops away, or n − k the other way.",
    solution="""
        ```python
        def hops(n):
            return sum(min(k, n - k) for k in range(n))
        ```

        Which is $\\lfloor n^2/4 \\rfloor$.
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
        **Given** a mesh axis `"X"` of eight chips. Each holds the rows `x` of an array
        $A[I_X, J]$, in float32.

        **Wanted** the function that each of them runs to end with all of $A[I, J]$,
        built from `jax.lax.ppermute` alone. It may send no more than an AllGather must.
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
            "Send on only what came in last, not all that you have.",
        ),
        Slip(
            "ready made",
            lambda a: [Collective("all_gather", "X", _bytes(a), 8)],
            "That is the compiler's own. Here it has to be built from permutes.",
        ),
    ),
    hint="In every step send on what came in the step before. After `step` steps a "
    "chip holds the part that set out `step` places to its left.",
    solution="""
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

        **Wanted** the function that leaves $A[J_X]$, an eighth of the sums, on each of
        them, built from `jax.lax.ppermute` alone. It may send no more than a
        ReduceScatter must. (Return an array of shape `[J // 8]`.)
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
            "That is the compiler's own. Here it has to be built from permutes.",
        ),
        Slip(
            "whole rows",
            lambda a: [Collective("permute", "X", _bytes(a) / 8, 8, times=7)],
            "Each sum is wanted on one chip only: one eighth of a row has to travel "
            "for each.",
        ),
        Slip(
            "everything to everybody",
            lambda a: [Collective("all_reduce", "X", _bytes(a) / 8, 8)],
            "That leaves the whole sum on every chip, and sends twice the bytes.",
        ),
    ),
    hint="The sum for chip d sets out from chip d + 1. Which of its eight parts does a "
    "chip add when a sum that set out `step` chips ago comes by?",
    solution="""
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
        **Given** eight chips along `"X"`. Each holds some rows `x` of $A[I_X, J]$ and
        needs some columns of $A[I, J_X]$.

        **Wanted** the function that each of them runs. It must compile to one AllToAll
        of the array's bytes and nothing else.
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
            "That brings everything to everybody, and then throws seven eighths away.",
        ),
    ),
    hint="`jax.lax.all_to_all` wants the axis that is cut and the axis along which the "
    "parts are joined. Look at what `tiled=True` does.",
    solution="""
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
        **Given** eight chips along `"X"`. Each holds some columns `x` of scores
        $A[I, J_X]$, in float32.

        **Wanted** the function that returns this chip's columns of the softmax of $100
        A$ over $J$, with the largest taken off first, so nothing overflows. It may send
        two AllReduces of one number per row.
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
            "The softmax of a row needs two numbers from the other chips, not their "
            "values.",
        ),
    ),
    values=(
        Slip(
            "a maximum of its own",
            _softmax_of_own_largest,
            "Each chip has taken off its own largest value, so the exponentials of two "
            "chips have different scales and cannot be added. Take off the largest of "
            "the whole row.",
        ),
        Slip(
            "the scores as they are",
            lambda a: _softmax(a / SHARPNESS),
            "That is the softmax of A. The softmax of 100 A is wanted.",
        ),
    ),
    hint="What does a chip have to know of the rest of a row? `jax.lax.pmax` is an "
    "AllReduce that takes the largest.",
    solution="""
        Two numbers a row: the largest value, then the sum of the exponentials.

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
        **Given** eight chips along `"X"`. Each holds a shard `w` of the weights
        $w[D_X]$ and one row `x`, of shape `[1, D]`, of inputs. Chip $c$ has the loss
        $(x_c \cdot w)^2$, with all of $w$.

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
            "Each chip needs the gradient of its own shard only. Which half of the "
            "AllReduce can you leave out?",
        ),
    ),
    hint="Write this chip's loss as a function of its shard of w, with the gather "
    "inside, and let `jax.grad` do the rest.",
    solution="""
        The transpose of the gather is the ReduceScatter that adds the gradients of all
        chips' losses; JAX puts it in by itself.

        ```python
        def gradient(w, x):
            def loss(w):
                whole = jax.lax.all_gather(w, "X", tiled=True)
                return (x[0] @ whole) ** 2

            return jax.grad(loss)(w)
        ```

        A chip never holds more than its shard of the gradient: the idea of FSDP.
    """,
)

BUCKETS = Number(
    id="05.16",
    title="Gradients in buckets",
    points=2,
    task=r"""
        **Given** a model of 10⁹ parameters, its gradients in bf16, on a ring of 16 TPU
        v5e chips: one axis of a $16 \times 16$ slice. Assume a latency of 1 µs per hop.
        The backward pass hands the gradients over in equal **buckets**, and each is
        added up by a separate AllReduce, one after the other.

        **Wanted** the bytes of the smallest bucket with which latency adds no more than
        10 % to the time that the bytes take.
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
            "With that bucket latency takes as long as the bytes: the time doubles.",
        ),
        slips.scaled(
            "a tenth of the whole",
            9 / 10,
            "There latency is a tenth of the whole time. Asked is a tenth of the time "
            "of the bytes.",
        ),
        slips.scaled(
            "one half's hops",
            1 / 2,
            "An AllReduce is two halves, and a chip has two links. You counted the "
            "hops of one half, or the bytes of one link.",
        ),
        slips.scaled(
            "fifteen hops",
            15 / 8,
            "Both directions are in use. How far away is the farthest chip?",
        ),
        slips.scaled(
            "many chips",
            15 / 16,
            "A chip's own part need not move: fifteen parts of the sixteen do. (One "
            "way round gives the same; here both directions are in use.)",
        ),
        Slip(
            "how many",
            lambda right: GRADIENT_BYTES / right,
            "That is the number of buckets. Asked are the bytes of one.",
        ),
    ),
    hint="Both terms of one bucket's AllReduce: how many hops, and how long must the "
    "bytes take to be ten times as long?",
    solution="""
        One bucket's AllReduce has 2 · 8 hops. Its bytes must take ten times as long,
        and each chip's two links carry 15/16 of it twice:

        ```python
        from shardmath.hardware import chips

        latency = 2 * (16 // 2) * 1e-6
        nbytes = 10 * latency * chips.TPU_V5E.link_bandwidth * 16 / 15
        ```

        About 8.5 MB, ten times $V^*$, so at most 234 buckets for the 2 GB. How many
        parameters the model has does not matter for the bytes of one.
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
        **Given** $k$ nodes of $g$ GPUs. Each GPU holds $V$ bytes, sends `up` bytes/s to
        its node and, through its own card, `out` bytes/s to other nodes, both one-way.
        No switch adds. They AllReduce in three steps, one after the other: a
        ReduceScatter in each node; an AllReduce of each part among the GPUs that hold
        it; an AllGather in each node.

        **Wanted** a function that returns the time, without latency.
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
            "After the first step a GPU has one part of g left to add up, and every "
            "GPU has a card of its own.",
        ),
        Slip(
            "one ring over all",
            lambda V, k, g, up, out: 2 * V * (k * g - 1) / (k * g) / out,
            "That is one ring through all GPUs with one card a node at work. Count "
            "step by step what a GPU sends, and over which wire.",
        ),
        Slip(
            "both at once",
            lambda V, k, g, up, out: max(
                2 * V * (g - 1) / g / up, 2 * V / g * (k - 1) / k / out
            ),
            "That is the lower bound, with node and cards at work at the same time. "
            "Here one step waits for the other.",
        ),
        Slip(
            "once between nodes",
            lambda V, k, g, up, out: (
                2 * V * (g - 1) / g / up + V / g * (k - 1) / k / out
            ),
            "Between the nodes it is an AllReduce, which has two halves.",
        ),
        Slip(
            "no way back",
            lambda V, k, g, up, out: (
                V * (g - 1) / g / up + 2 * V / g * (k - 1) / k / out
            ),
            "After the second step a GPU has one part of the sum. It must have all.",
        ),
        Slip(
            "shared by all",
            lambda V, k, g, up, out: 2 * V * (k * g - 1) / (k * g) / g / out,
            "That is a ring through all GPUs that uses every card of a node. Here the "
            "node adds up first, so that less has to cross.",
        ),
        Slip(
            "own part too",
            lambda V, k, g, up, out: 2 * V / up + 2 * V / g / out,
            "In each step one part stays where it is.",
        ),
    ),
    hint="What a GPU sends in each step: how large is the array of that step, and over "
    "how many does it run?",
    solution="""
        The three steps have arrays of V, V/g and V:

        ```python
        def seconds(V, k, g, up, out):
            inside = V * (g - 1) / g / up
            between = 2 * (V / g) * (k - 1) / k / out
            return inside + between + inside
        ```

        For 1 GB on 4 nodes of 8 H100 that is 3.9 ms inside and 3.75 ms between: the
        card is nine times slower and carries an eighth.
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
        **Given** a mixture of eight experts, one on each of 8 H100 in a node. Every GPU
        holds 2,000 tokens of 7,168 values, and each token goes to two experts. From
        every GPU 30 % of these copies go to the expert on the first GPU and 10 % to
        each of the other seven (a GPU's own expert counts as any other). The tokens go
        out in fp8, and after the last has arrived the results come back in bf16.

        **Wanted** the time of both exchanges together from the bandwidth only, without
        the latency.
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
            "That is an even AllToAll of as many bytes. Here one GPU takes in more "
            "than the others, and everyone waits for it.",
        ),
        slips.scaled(
            "the wrong port",
            (0.3 + 6 * 0.1) / (7 * 0.3),
            "That is what one of the seven sends. Which port has the most to carry?",
        ),
        slips.scaled(
            "own copies too",
            8 / 7,
            "Copies for a GPU's own expert stay where they are.",
        ),
        slips.scaled(
            "no way back, or what the first GPU sends out",
            1 / 3,
            "The results come back as well, in bf16. And which port has more to carry "
            "on the way out: the first GPU's own copies leave, and those of seven "
            "others arrive?",
        ),
        slips.scaled(
            "bf16 both ways",
            4 / 3,
            "How many bytes has a value on its way out?",
        ),
        slips.scaled(
            "fp8 both ways",
            2 / 3,
            "How many bytes has a value on its way back?",
        ),
        slips.scaled(
            "half of it",
            1 / 2,
            "Each token goes to two experts; and NVLink's 900 GB/s are 450 out and "
            "450 in.",
        ),
    ),
    hint="Which GPU's port is busiest on the way out, and which on the way back? From "
    "how many GPUs do its bytes come?",
    solution="""
        The first GPU takes in 30 % of the copies of seven others, and sends back as
        many results of twice the bytes:

        ```python
        from shardmath.hardware import chips

        copies = 7 * 0.30 * 2000 * 2
        seconds = copies * 7168 * (1 + 2) / chips.H100.scale_up_bandwidth
        ```

        With even experts it would be 2.4 times faster, so an auxiliary loss that evens
        them out also buys time on the wire.
    """,
)
