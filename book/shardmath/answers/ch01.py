"""Questions of chapter 01, "Rooflines"."""

import math

from shardmath import chips, roofline
from shardmath.questions import (
    Chapter,
    Compiled,
    Function,
    Number,
    Slip,
    Traffic,
    slips,
    stated,
)

CHAPTER = Chapter(
    title="Rooflines",
    topics=(
        "rooflines: FLOPs, bytes, bounds, critical batches, tiles, and two "
        "programs whose cost is measured"
    ),
    intro="""
        from one division to a program on a machine that counts its bytes. Answers are
        in base units: FLOPs, bytes, seconds. `chips` holds every data sheet:
        `chips.H100.hbm_bandwidth`, `chips.TPU_V6E.intensity("bf16")`.
    """,
    setup="""
        import jax.numpy as jnp

        from shardmath import chips
        from shardmath.grading import check, report
    """,
)

B, D, F = 512, 4096, 16384  # the matmul of the first three questions
LLAMA_8B_PARAMS = 8.03e9  # given in the task

FLOPS = Number(
    id="01.1",
    title="FLOPs of a matmul",
    task=r"""
        **Given** $X[B, D] \cdot W[D, F]$ with $B = 512$, $D = 4096$, $F = 16384$.

        **Wanted** the number of FLOPs.
    """,
    stub="flops = ...",
    unit="FLOPs",
    expected=lambda: roofline.matmul(B, D, F, chips.H100).flops,
    slips=(
        slips.multiply_add(1 / 2),
        Slip(
            "values for FLOPs",
            lambda right: B * D + D * F + B * F,
            "That counts the values of the three arrays. How often is each one used?",
        ),
        Slip(
            "the output alone",
            lambda right: 2 * B * F,
            "Each of these results is a dot product. How long is it?",
        ),
    ),
    hint="Every value of the result is a dot product. What does one cost, and how many "
    "are there?",
    solution="""
        The result has $BF$ values, each a dot product of length $D$: so many
        multiplications and as many additions.

        ```python
        B, D, F = 512, 4096, 16384
        flops = 2 * B * D * F
        ```
    """,
)

NBYTES = Number(
    id="01.2",
    title="Bytes of a matmul",
    task="""
        **Given** the same matmul in bf16, every array crossing the HBM once.

        **Wanted** the bytes that move.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: roofline.matmul(B, D, F, chips.H100).nbytes,
    slips=(
        Slip(
            "result left out",
            lambda right: 2 * (B * D + D * F),
            "The result has to get out of the chip, too.",
        ),
        Slip(
            "weights alone",
            lambda right: 2 * D * F,
            "At 512 tokens the activations are no longer small change.",
        ),
        slips.precision_bytes(1 / 2),
    ),
    hint="Three arrays, each across the HBM once. How many values has each?",
    solution="""
        ```python
        B, D, F = 512, 4096, 16384
        nbytes = 2 * (B * D + D * F + B * F)
        ```

        The weights have 134 MB of these 155 MB.
    """,
)

LOWER = Number(
    id="01.3",
    title="The least time on an H100",
    task="""
        **Given** the same matmul on one H100, in bf16.

        **Wanted** the lower bound of its time.
    """,
    given=stated(chips.H100, "flops.bf16", "hbm_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: roofline.matmul(B, D, F, chips.H100).lower,
    slips=(
        slips.sparse_peak(1 / 2),
        Slip(
            "the other resource",
            lambda right: roofline.matmul(B, D, F, chips.H100).seconds["HBM"],
            "That is the time of one resource. The lower bound waits for both.",
        ),
        Slip(
            "sum for maximum",
            lambda right: roofline.matmul(B, D, F, chips.H100).upper,
            "Adding the times assumes that nothing overlaps. The lower bound assumes "
            "the opposite.",
        ),
    ),
    hint="You have the FLOPs and the bytes. Each makes a time; which of the two can "
    "hide behind the other?",
    solution="""
        ```python
        B, D, F = 512, 4096, 16384
        math = 2 * B * D * F / chips.H100.flops["bf16"]
        memory = 2 * (B * D + D * F + B * F) / chips.H100.hbm_bandwidth
        seconds = max(math, memory)
        ```

        With 512 tokens the matmul is compute-bound: the critical batch is about 295.
    """,
)

WEIGHT_ONLY = Number(
    id="01.4",
    title="int8 weights on a Trillium",
    task="""
        **Given** a Trillium (`chips.TPU_V6E`), weights stored in int8, activations in
        bf16, multiplication in bf16, $D$ and $F$ large.

        **Wanted** the critical batch.
    """,
    given=stated(chips.TPU_V6E, "flops.bf16", "flops.int8", "hbm_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    expected=lambda: roofline.critical_batch(chips.TPU_V6E, weights="int8"),
    slips=(
        slips.scaled(
            "bytes of a weight",
            2,
            "That is the critical batch with bf16 weights, or with int8 on both sides. "
            "Which side has changed here?",
        ),
        slips.scaled(
            "int8 peak",
            4,
            "The weights are stored in int8, but in which precision does the chip "
            "multiply?",
        ),
        slips.scaled(
            "halved twice",
            1 / 2,
            "The weights shrink once. Do the FLOPs change, or the activations matter?",
        ),
    ),
    hint="Write down the two times for large D and F, with w = 1 byte per weight.",
    solution="""
        $2BDF / C = w D F / W_\\text{hbm}$ gives $B^* = I^* w / 2$ with the *bf16* peak
        in $I^*$.

        ```python
        tokens = chips.TPU_V6E.intensity("bf16") * 1 / 2
        ```
    """,
)

EXACT = Number(
    id="01.5",
    title="A small matrix on a v5p",
    task="""
        **Given** a v5p, everything in bf16, $D = 1024$ and $F = 4096$.

        **Wanted** the exact critical batch, with all three arrays counted.
    """,
    given=stated(chips.TPU_V5P, "flops.bf16", "hbm_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    rtol=0.005,
    expected=lambda: roofline.critical_batch(chips.TPU_V5P, 1024, 4096),
    slips=(
        Slip(
            "rule of thumb",
            lambda right: roofline.critical_batch(chips.TPU_V5P),
            "The rule leaves out the traffic of input and output. D = 1024 is small.",
        ),
        Slip(
            "result left out",
            lambda right: roofline.critical_batch(chips.TPU_V5P, math.inf, 4096),
            "The result has BF values, and they have to get out.",
        ),
        Slip(
            "input left out",
            lambda right: roofline.critical_batch(chips.TPU_V5P, 1024, math.inf),
            "The input has BD values, and they have to come in.",
        ),
    ),
    hint="Set the two times equal, all three arrays in the bytes, and solve for B. It "
    "stands on both sides.",
    solution="""
        From $2BDF / C = 2(BD + DF + BF) / W_\\text{hbm}$ and $I^* = C / W_\\text{hbm}$:

        ```python
        D, F = 1024, 4096
        I = chips.TPU_V5P.intensity("bf16")
        tokens = I * D * F / (D * F - I * (D + F))
        ```
    """,
)

DECODE = Number(
    id="01.6",
    title="Tokens per second for one reader",
    task=r"""
        **Given** a model of $8.03 \cdot 10^9$ parameters in bf16 on one H100 that
        writes text for a single reader: one token per step, each step reads every
        parameter once. Leave out the KV cache.

        **Wanted** the most tokens per second.
    """,
    given=stated(chips.H100, "hbm_bandwidth"),
    stub="rate = ...",
    unit="tokens/s",
    expected=lambda: chips.H100.hbm_bandwidth / (2 * LLAMA_8B_PARAMS),
    slips=(
        slips.precision_bytes(2),
        Slip(
            "the wrong roof",
            lambda right: chips.H100.flops["bf16"] / (2 * LLAMA_8B_PARAMS),
            "So fast the matrix units could go, if the weights were there already. How "
            "long does reading them take?",
        ),
        slips.scaled(
            "fp32 weights",
            1 / 2,
            "That is four bytes for each weight.",
        ),
    ),
    hint="With one token, a matmul is a matrix times a vector. Which resource binds?",
    solution="""
        At one token per step all weights are read for every token, and nothing else
        matters: intensity 1 against a critical intensity of 295.

        ```python
        params = 8.03e9
        rate = chips.H100.hbm_bandwidth / (2 * params)
        ```
    """,
)

TILE = Number(
    id="01.7",
    title="A tile that is not square",
    task="""
        **Given** an MI300X in bf16, and a tile of results with $b = 1024$ rows.

        **Wanted** the number of columns $f$ from which the tile's intensity reaches the
        chip's critical intensity.
    """,
    given=stated(chips.MI300X, "flops.bf16", "hbm_bandwidth"),
    stub="f = ...",
    unit="columns",
    expected=lambda: 1 / (1 / chips.MI300X.intensity("bf16") - 1 / 1024),
    slips=(
        Slip(
            "a square tile",
            lambda right: 2 * chips.MI300X.intensity("bf16"),
            "That is the side of a square tile. This one already has 1,024 rows.",
        ),
        Slip(
            "columns alone",
            lambda right: chips.MI300X.intensity("bf16"),
            "With so many columns the tile would need infinitely many rows.",
        ),
        Slip(
            "multiply-add",
            lambda right: 1 / (1 / (2 * chips.MI300X.intensity("bf16")) - 1 / 1024),
            "A multiply and the add that follows are two FLOPs, two bytes make one "
            "value.",
        ),
    ),
    hint="Per step along D the tile of b rows and f columns receives b + f values and "
    "does 2·b·f FLOPs. Set its intensity equal to the chip's.",
    solution="""
        In bf16 the tile's intensity is $2bf / 2(b + f)$. Setting it to $I^*$ gives
        $1/f = 1/I^* - 1/b$.

        ```python
        I = chips.MI300X.intensity("bf16")
        f = 1 / (1 / I - 1 / 1024)
        ```

        A wide tile can be narrow, but never narrower than $I^*$.
    """,
)

SPLIT = Number(
    id="01.8",
    title="When a second v5p doubles the speed",
    task=r"""
        **Given** $X[B, D_X] \cdot W[D_X, F]$ in bf16 over two v5p chips, joined by one
        ICI link; compute-bound on each.

        **Wanted** the smallest $D$ at which two chips are twice as fast as one.
    """,
    given=stated(chips.TPU_V5P, "flops.bf16", "link_bandwidth"),
    stub="D = ...",
    unit="values",
    expected=lambda: 2 * chips.TPU_V5P.flops["bf16"] / chips.TPU_V5P.link_bandwidth,
    slips=(
        slips.scaled(
            "no slower than one",
            1 / 2,
            "With both directions of the link counted, or at the point where two chips "
            "stop being slower than one, that comes out. Each chip sends one way, and "
            "has to hide all of it behind half of the math.",
        ),
        slips.scaled(
            "all six links",
            1 / 6,
            "A v5p has six links, but only one leads to this neighbour.",
        ),
        Slip(
            "HBM for link",
            lambda right: 2 * chips.TPU_V5P.flops["bf16"] / chips.TPU_V5P.hbm_bandwidth,
            "The partial sums travel over the link, not over the memory bus.",
        ),
    ),
    hint="Each chip does B·D·F FLOPs and sends B·F values of two bytes. When is the "
    "first time longer than the second?",
    solution="""
        $BDF / C > 2BF / W_\\text{link}$ is $D > 2C / W_\\text{link}$, with the one-way
        bandwidth of one link.

        ```python
        v5p = chips.TPU_V5P
        D = 2 * v5p.flops["bf16"] / v5p.link_bandwidth
        ```
    """,
)


def _bounds(B, D, F, peak, bandwidth):
    math_time = 2 * B * D * F / peak
    memory_time = 2 * (B * D + D * F + B * F) / bandwidth
    return max(math_time, memory_time), math_time + memory_time


def _sizes(rng):
    return tuple(2 ** rng.randint(4, 14) for _ in range(3))


BOUNDS = Function(
    id="01.9",
    title="The two bounds, as a function",
    task="""
        **Given** sizes $B$, $D$, $F$ of a bf16 matmul, a peak in FLOPs/s and a
        bandwidth in bytes/s.

        **Wanted** a function that returns the lower and the upper bound of its time in
        seconds, as a pair.
    """,
    stub="def bounds(B, D, F, peak, bandwidth): ...",
    spec=_bounds,
    units={"peak": "FLOPs/s", "bandwidth": "bytes/s"},
    gives=(("the lower bound", "s"), ("the upper bound", "s")),
    cases=lambda rng: (*_sizes(rng), rng.uniform(1e13, 1e15), rng.uniform(1e11, 1e13)),
    slips=(
        Slip(
            "bounds swapped",
            lambda *case: _bounds(*case)[::-1],
            "The lower bound comes first.",
        ),
        Slip(
            "multiply-add",
            lambda B, D, F, peak, bandwidth: _bounds(B, D, F, 2 * peak, bandwidth),
            "A multiply and the add that follows are two FLOPs.",
        ),
        Slip(
            "bytes per value",
            lambda B, D, F, peak, bandwidth: _bounds(B, D, F, peak, 2 * bandwidth),
            "A value in bf16 takes two bytes.",
        ),
        Slip(
            "minimum for maximum",
            lambda *case: (_bounds(*case)[1] - _bounds(*case)[0], _bounds(*case)[1]),
            "The lower bound waits for the slower of the two.",
        ),
        Slip(
            "the two times",
            lambda B, D, F, peak, bandwidth: (
                2 * B * D * F / peak,
                2 * (B * D + D * F + B * F) / bandwidth,
            ),
            "Those are the times of the two resources. Make the two bounds of them.",
        ),
        Slip(
            "result left out",
            lambda B, D, F, peak, bandwidth: (
                max(2 * B * D * F / peak, 2 * (B * D + D * F) / bandwidth),
                2 * B * D * F / peak + 2 * (B * D + D * F) / bandwidth,
            ),
            "The result crosses the memory bus, too.",
        ),
    ),
    hint="Formulas (1.1) and (1.2) of the chapter, with two bytes per value.",
    solution="""
        ```python
        def bounds(B, D, F, peak, bandwidth):
            math = 2 * B * D * F / peak
            memory = 2 * (B * D + D * F + B * F) / bandwidth
            return max(math, memory), math + memory
        ```
    """,
)


def _crossing(intensity, D, F):
    room = D * F - intensity * (D + F)
    return intensity * D * F / room if room > 0 else math.inf


CROSSING = Function(
    id="01.10",
    title="The critical batch, also where there is none",
    task="""
        **Given** a chip's critical intensity and the sizes $D$ and $F$, everything in
        bf16.

        **Wanted** a function that returns the exact critical batch, and infinity where
        no batch makes the matmul compute-bound.
    """,
    stub="def critical_batch(intensity, D, F): ...",
    spec=_crossing,
    units={"intensity": "FLOPs/byte"},
    gives=(("the critical batch", "tokens"),),
    cases=lambda rng: (
        rng.uniform(100, 600),
        2 ** rng.randint(8, 14),
        2 ** rng.randint(8, 14),
    ),
    examples=((240.0, 4096, 4096), (240.0, 480, 480), (560.0, 512, 512)),
    slips=(
        Slip(
            "rule of thumb",
            lambda intensity, D, F: intensity,
            "That is the limit for large D and F.",
        ),
        Slip(
            "negative batch",
            lambda intensity, D, F: (
                intensity * D * F / room
                if (room := D * F - intensity * (D + F))
                else math.inf
            ),
            "A negative batch means that no batch makes this matmul compute-bound.",
        ),
    ),
    hint="Formula (1.5) with two bytes everywhere. What does a denominator of zero or "
    "less mean?",
    solution="""
        ```python
        import math


        def critical_batch(intensity, D, F):
            room = D * F - intensity * (D + F)
            return intensity * D * F / room if room > 0 else math.inf
        ```
    """,
)


def _tile_values(B, D, F, b, f):
    """Walk every tile and count what it loads and stores."""
    moved = 0
    for i in range(0, B, b):
        for j in range(0, F, f):
            rows, columns = min(b, B - i), min(f, F - j)
            moved += rows * D + D * columns + rows * columns
    return moved


TILES = Function(
    id="01.11",
    title="Values moved by a tiled matmul",
    task=r"""
        **Given** sizes $B$, $D$, $F$ and a tile of $b \times f$ results that stays on
        the chip while $D$ streams past. The tile need not divide the result.

        **Wanted** a function that returns the number of values moved between HBM and
        chip.
    """,
    stub="def values_moved(B, D, F, b, f): ...",
    spec=_tile_values,
    gives=(("the values moved", ""),),
    cases=lambda rng: (
        rng.randint(1, 90),
        rng.randint(1, 90),
        rng.randint(1, 90),
        rng.randint(1, 40),
        rng.randint(1, 40),
    ),
    examples=((64, 32, 64, 16, 16), (65, 32, 64, 16, 16)),
    slips=(
        Slip(
            "partial tiles",
            lambda B, D, F, b, f: B * D * (F / f) + D * F * (B / b) + B * F,
            "A tile that sticks out at the edge still needs its operands: count whole "
            "tiles.",
        ),
        Slip(
            "rows and columns",
            lambda B, D, F, b, f: (
                B * D * math.ceil(B / b) + D * F * math.ceil(F / f) + B * F
            ),
            "X is read once for every column of tiles. How many columns are there?",
        ),
    ),
    hint="How often is X read, how often the weights? Try 65 rows in tiles of 16.",
    solution="""
        X is read once per column of tiles, the weights once per row of tiles:

        ```python
        import math


        def values_moved(B, D, F, b, f):
            columns, rows = math.ceil(F / f), math.ceil(B / b)
            return B * D * columns + D * F * rows + B * F
        ```
    """,
)


def _product(A, B, C):
    """C = A @ B, one value at a time."""
    columns = list(zip(*B, strict=True))
    dot = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in columns] for a in A]
    return {"C": dot}


def _tiled_bytes(n, side):
    return 4 * roofline.tile_traffic(n, n, n, (side, side))


TILED = Traffic(
    id="01.12",
    title="A tiling with intensity 4",
    task=r"""
        **Given** a machine with a scratchpad of 3,072 bytes, which holds 768 values of
        four bytes, and the arrays `A`, `B` and `C` of $n \times n$ values in its
        memory, $n$ a multiple of 16. You have
        `machine.load(name, rows=(i, j), cols=(k, l))`, `machine.zeros(rows, cols)`,
        `machine.multiply_add(c, a, b)` for $c \mathrel{+}= ab$,
        `machine.store(block, name, row=i, col=j)` and `machine.free(block)`.

        **Wanted** a program that leaves $AB$ in `C` and moves no more bytes than square
        tiles of the best size: intensity 4 or more before the result is written. The
        machine counts.
    """,
    stub="def tiled(machine, n): ...",
    cases=lambda rng: (16 * rng.randint(2, 4),),
    capacity=lambda n: 4 * 3 * 16 * 16,
    arrays=lambda n: {"A": (n, n), "B": (n, n), "C": (n, n)},
    result=_product,
    at_most=lambda n: _tiled_bytes(n, 16),
    slips=(
        Slip(
            "small tiles",
            lambda n: _tiled_bytes(n, 8),
            "Three blocks of 8 × 8 leave most of the scratchpad empty.",
        ),
        Slip(
            "sums go back and forth",
            lambda n: 4 * (4 * n**3 / 16),
            "The partial sums cross the bus at every step along D. Can they stay?",
        ),
    ),
    points=2,
    hint="The scratchpad holds three blocks of 16 × 16. Which of the three should stay "
    "while the other two change?",
    solution="""
        A block of C stays; blocks of A and B stream past it. Each value loaded takes
        part in 16 multiply-adds, which two values share: 16 FLOPs for four bytes,
        intensity 4.

        ```python
        def tiled(machine, n):
            t = 16
            for i in range(0, n, t):
                for j in range(0, n, t):
                    c = machine.zeros(t, t)
                    for k in range(0, n, t):
                        a = machine.load("A", rows=(i, i + t), cols=(k, k + t))
                        b = machine.load("B", rows=(k, k + t), cols=(j, j + t))
                        machine.multiply_add(c, a, b)
                        machine.free(a)
                        machine.free(b)
                    machine.store(c, "C", row=i, col=j)
                    machine.free(c)
        ```
    """,
)


def _chain(a, b, v):
    return a @ (b @ v)


CHAIN = Compiled(
    id="01.13",
    title="The same product for fewer FLOPs",
    task="""
        **Given** float32 arrays $A[n, m]$, $B[m, n]$ and a vector $v[n]$.

        **Wanted** a JAX function that returns $A B v$ and compiles to as few FLOPs as
        the product allows. The compiler counts.
    """,
    stub="def chain(A, B, v): ...",
    shapes=lambda rng: (
        (n := 32 * rng.randint(2, 4), m := 16 * rng.randint(2, 4)),
        (m, n),
        (n,),
    ),
    spec=_chain,
    at_most=lambda a, b, v: {"flops": 2 * b[0] * b[1] + 2 * a[0] * a[1]},
    points=2,
    hint="A product of three factors can start on the left or the right. Count both.",
    solution="""
        $(AB)v$ multiplies two matrices; $A(Bv)$ multiplies a matrix by a vector, twice.

        ```python
        def chain(A, B, v):
            return A @ (B @ v)
        ```
    """,
)
