"""Questions of chapter 01, "Rooflines"."""

import math

from shardmath.exercises.kinds import (
    Chapter,
    Compiled,
    Function,
    Number,
    Slip,
    Traffic,
    slips,
    stated,
)
from shardmath.hardware import chips, roofline

CHAPTER = Chapter(
    title="Rooflines",
    topics=(
        "rooflines: FLOPs, bytes, bounds, critical batches, tiles, two programs whose "
        "cost is measured, two chips for one layer, users of one chip, and weights on "
        "the host"
    ),
    intro="""
        from one division to a program on a machine that counts its bytes, and three at
        the end that take several steps. Answers are in base units: FLOPs, bytes,
        seconds. `chips` holds every data sheet: `chips.H100.hbm_bandwidth`,
        `chips.TPU_V6E.intensity("bf16")`.
    """,
    setup="""
        import jax.numpy as jnp

        from shardmath.exercises import check, report
        from shardmath.hardware import chips
    """,
)

B, D, F = 512, 4096, 16384  # the matmul of the first three questions
LLAMA_8B_PARAMS = 8.03e9  # given in the task

FLOPS = Number(
    id="01.1",
    title="FLOPs of a matmul",
    task=r"""
        **Given** $X[B, D] \cdot Y[D, F]$ with $B = 512$, $D = 4096$, $F = 16384$.

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
    task=r"""
        **Given** the same matmul in bf16, $X[B, D] \cdot Y[D, F]$ with $B = 512$,
        $D = 4096$, $F = 16384$, every array crossing the HBM once.

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
            "input left out",
            lambda right: 2 * (D * F + B * F),
            "The input has to get into the chip, too.",
        ),
        Slip(
            "weights alone",
            lambda right: 2 * D * F,
            "At 512 tokens the input and the result count as well.",
        ),
        slips.precision_bytes(1 / 2),
    ),
    hint="All three arrays cross the HBM once. How many values has each?",
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
    task=r"""
        **Given** the same matmul on one H100, in bf16: $X[B, D] \cdot Y[D, F]$ with
        $B = 512$, $D = 4096$, $F = 16384$.

        **Wanted** the lower bound of its time.
    """,
    given=stated(chips.H100, "flops.bf16", "hbm_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: roofline.matmul(B, D, F, chips.H100).lower,
    slips=(
        slips.scaled(
            "half of the math",
            1 / 2,
            "That is the math at the rate for matrices that are half zeros, or with "
            "one FLOP for a multiply and an add.",
        ),
        Slip(
            "the HBM's time",
            lambda right: roofline.matmul(B, D, F, chips.H100).seconds["HBM"],
            "At the dense peak, with two FLOPs for a multiply and an add, the math "
            "takes longer. The lower bound waits for both.",
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

        With 512 tokens the matmul is compute-bound: its critical batch is about 325, or
        295 by the rule of thumb.
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
            "half a byte",
            1 / 2,
            "That is right for half a byte a weight. How many bytes has int8?",
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
        **Given** a v5p, everything in bf16, a matrix of weights with $D = 1024$ and
        $F = 4096$. Weights, input and result cross the HBM once each.

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
        Slip(
            "multiply-add",
            lambda right: 1 / (2 / chips.TPU_V5P.intensity() - 1 / 1024 - 1 / 4096),
            "A multiply and the add that follows are two FLOPs; a value has two bytes. "
            "Was one of the twos left out?",
        ),
        Slip(
            "minus for plus",
            lambda right: 1 / (1 / chips.TPU_V5P.intensity() + 1 / 1024 + 1 / 4096),
            "The activations ask for more tokens, not fewer. On which side of the "
            "equation do they end up?",
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
        parameter once. Leave out all else that is read.

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
            "That is the rate of the matrix units if the weights were there already. "
            "How long does it take to read them?",
        ),
        slips.inverse(),
        slips.scaled(
            "fp32 weights",
            1 / 2,
            "That is four bytes for each weight.",
        ),
    ),
    hint="With one token, a matmul is a matrix times a vector. Which resource binds?",
    solution="""
        With one token a step the intensity is 1, far below the critical intensity of
        295. The step is memory-bound, and it takes as long as reading the weights.

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
            "With so few columns no number of rows is enough.",
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

        However many rows it has, a tile needs more than $I^*$ columns, here 247.
    """,
)

SPLIT = Number(
    id="01.8",
    title="One and a half times the speed",
    task=r"""
        **Given** a matmul of $B$ tokens and a matrix $[D, F]$ in bf16, $D$ cut in
        halves over two v5p chips, which one ICI link joins. It is compute-bound on one
        chip as on each of the two, and it is cut into so many pieces that the exchange
        hides behind the math wherever it can.

        **Wanted** the $D$ at which two chips are, at best, 1.5 times as fast as one.
    """,
    given=stated(chips.TPU_V5P, "flops.bf16", "link_bandwidth"),
    stub="D = ...",
    unit="values",
    expected=lambda: 1.5 * roofline.split_threshold(chips.TPU_V5P),
    slips=(
        slips.scaled(
            "twice as fast",
            2 / 1.5,
            "At that D the exchange takes no longer than the math of each chip, and "
            "two chips are twice as fast. Less is asked for.",
        ),
        slips.scaled(
            "no slower than one",
            1 / 1.5,
            "There two chips are as fast as one: the exchange takes as long as all of "
            "the math on one chip.",
        ),
        slips.both_directions(1 / 2),
        slips.scaled(
            "all of the sums, there and back",
            2,
            "Each chip sends half of its partial sums and then half of the result: 2BF "
            "bytes in bf16.",
        ),
        slips.scaled(
            "nothing hidden",
            4,
            "That adds the two times. Here the exchange hides behind the math.",
        ),
        slips.scaled(
            "all six links",
            1 / 6,
            "A v5p has six links, but only one leads to this neighbour.",
        ),
        Slip(
            "HBM for link",
            lambda right: (
                right * chips.TPU_V5P.link_bandwidth / chips.TPU_V5P.hbm_bandwidth
            ),
            "The partial sums travel over the link, not over the memory bus.",
        ),
        slips.other_link(chips.TPU_V5P.fact("link_bandwidth"), -1),
        slips.half_of_other_link(chips.TPU_V5P.fact("link_bandwidth"), -1),
    ),
    hint="Write down three times: the math on one chip, the math on each of two, and "
    "the exchange. Which of the last two is the longer one here?",
    solution="""
        One chip needs $2BDF / C$. Each of two needs half of that, and the exchange
        $2BF / W_\\text{link}$ with the one-way bandwidth of one link. While two chips
        are less than twice as fast, the exchange is the longer one, so
        $2BDF / C = 1.5 \\cdot 2BF / W_\\text{link}$.

        ```python
        v5p = chips.TPU_V5P
        D = 1.5 * v5p.flops["bf16"] / v5p.link_bandwidth
        ```

        A matmul that ends before the exchange begins would need four times this $D$.
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
    rtol=1e-6,  # an answer may come from JAX, in fp32
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
        Slip(
            "the weights alone",
            lambda B, D, F, peak, bandwidth: (
                max(2 * B * D * F / peak, 2 * D * F / bandwidth),
                2 * B * D * F / peak + 2 * D * F / bandwidth,
            ),
            "That is the time of the weights. Activations and results cross the memory "
            "bus as well: the rule of thumb leaves them out, the two bounds do not.",
        ),
        Slip(
            "four bytes a value",
            lambda B, D, F, peak, bandwidth: _bounds(B, D, F, peak, bandwidth / 2),
            "That is four bytes for each value, as in fp32.",
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
    examples=((240.0, 4096, 4096), (560.0, 512, 512), (240.0, 450, 450)),
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
        Slip(
            "zero for none",
            lambda *case: batch if (batch := _crossing(*case)) < math.inf else 0,
            "A critical batch of zero would mean that every batch makes this matmul "
            "compute-bound. Where none does, infinity is wanted.",
        ),
        Slip(
            "None for none",
            lambda *case: batch if (batch := _crossing(*case)) < math.inf else None,
            "Where no batch makes the matmul compute-bound, infinity is wanted.",
        ),
        Slip(
            "rounded up",
            lambda intensity, D, F: (
                math.ceil(batch)
                if math.isfinite(batch := _crossing(intensity, D, F))
                else batch
            ),
            "The exact crossing is wanted, which need not be a whole number.",
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
        Slip(
            "padded tiles",
            lambda B, D, F, b, f: (
                math.ceil(B / b) * math.ceil(F / f) * (b * D + D * f + b * f)
            ),
            "A tile at the edge loads and stores only the rows and columns that exist.",
        ),
        Slip(
            "bytes for values",
            lambda *case: 2 * _tile_values(*case),
            "Values are wanted, however many bytes each of them has.",
        ),
        Slip(
            "edge left out",
            lambda B, D, F, b, f: B * D * (F // f) + D * F * (B // b) + B * F,
            "What remains at the edge is a tile as well.",
        ),
        Slip(
            "result left out",
            lambda B, D, F, b, f: B * D * math.ceil(F / f) + D * F * math.ceil(B / b),
            "The result has to get out of the chip, too.",
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
    title="A tiling with intensity 6",
    task=r"""
        **Given** a machine with a scratchpad of 3,072 bytes, which holds 768 values of
        four bytes, and the arrays `A`, `B` and `C` of $n \times n$ values in its
        memory, $n$ a multiple of 48. You have
        `machine.load(name, rows=(i, j), cols=(k, l))`, `machine.zeros(rows, cols)`,
        `machine.multiply_add(c, a, b)` for $c \mathrel{+}= ab$,
        `machine.store(block, name, row=i, col=j)` and `machine.free(block)`.

        **Wanted** a program that leaves $AB$ in `C` and moves at most
        $4 (2n^3/24 + n^2)$ bytes: intensity 6 or more before the result is written. The
        machine counts.
    """,
    stub="def tiled(machine, n): ...",
    cases=lambda rng: (48 * rng.randint(1, 2),),
    capacity=lambda n: 4 * 768,
    arrays=lambda n: {"A": (n, n), "B": (n, n), "C": (n, n)},
    result=_product,
    at_most=lambda n: _tiled_bytes(n, 24),
    slips=(
        Slip(
            "three equal blocks",
            lambda n: _tiled_bytes(n, 16),
            "Three blocks of 16 × 16 fill the scratchpad, and the results have only a "
            "third of it. Of A and B, how much must be there at once?",
        ),
        Slip(
            "small tiles",
            lambda n: _tiled_bytes(n, 8),
            "Three blocks of 8 × 8 leave most of the scratchpad empty.",
        ),
        Slip(
            "tiles of 12",
            lambda n: _tiled_bytes(n, 12),
            "The side of the tile of results decides what moves. It can be longer.",
        ),
        Slip(
            "sums go back and forth",
            lambda n: 4 * (4 * n**3 / 16),
            "The partial sums cross the bus at every step along D. Can they stay?",
        ),
    ),
    points=2,
    hint="What moves depends on the sides of the tile of C alone, by (1.6). How thin "
    "may the slices of A and B be that stream past it?",
    solution="""
        A block of C stays; slices of A and B stream past it, as D does in the chapter.
        Thin slices move no more than thick ones, so C gets nearly all of the room: 24 ×
        24 values and two slices four wide are 768. A step along D of one value loads
        24 + 24 values, 192 bytes, and does 2 · 24 · 24 = 1,152 FLOPs: intensity 6.

        ```python
        def tiled(machine, n):
            t, thin = 24, 4
            for i in range(0, n, t):
                for j in range(0, n, t):
                    c = machine.zeros(t, t)
                    for k in range(0, n, thin):
                        a = machine.load("A", rows=(i, i + t), cols=(k, k + thin))
                        b = machine.load("B", rows=(k, k + thin), cols=(j, j + t))
                        machine.multiply_add(c, a, b)
                        machine.free(a)
                        machine.free(b)
                    machine.store(c, "C", row=i, col=j)
                    machine.free(c)
        ```

        Slices one wide leave room for 26 × 26 results, which saves nothing here: 48
        rows still take two tiles.
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

LAYER = 8192, 28672  # D and F of a layer, given in the task
V5P, TRILLIUM, H200 = chips.TPU_V5P, chips.TPU_V6E, chips.H200


def _least(chip, B, weights="int8", end="lower"):
    return getattr(roofline.matmul(B, *LAYER, chip, weights=weights), end)


def _overtakes(weights="int8", end="lower"):
    """The batch at which a Trillium is as fast as a v5p, by bisection."""
    low, high = 1.0, 1e4
    for _ in range(60):
        B = (low * high) ** 0.5
        faster = _least(TRILLIUM, B, weights, end) < _least(V5P, B, weights, end)
        low, high = (low, B) if faster else (B, high)
    return high


OVERTAKES = Number(
    id="01.14",
    title="Which chip for this layer",
    task=r"""
        **Given** a layer with one weight matrix, $D = 8192$, $F = 28672$, and the
        choice of a v5p or a Trillium for it. Weights are stored in int8, input and
        result in bf16, and the multiplication runs in bf16. Each array crosses the HBM
        once, and on both chips math and traffic overlap perfectly.

        **Wanted** the batch above which the Trillium is the faster one.
    """,
    given=stated(V5P, "flops.bf16", "flops.int8", "hbm_bandwidth")
    | stated(TRILLIUM, "flops.bf16", "flops.int8", "hbm_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    expected=_overtakes,
    slips=(
        Slip(
            "activations left out",
            lambda right: V5P.flops["bf16"] / TRILLIUM.hbm_bandwidth / 2,
            "Input and result cross the HBM too, in bf16.",
        ),
        Slip(
            "bf16 weights",
            lambda right: _overtakes(weights="bf16"),
            "How many bytes does a weight take, and how many an activation?",
        ),
        Slip(
            "int8 activations",
            lambda right: roofline.critical_batch(
                V5P,
                *LAYER,
                weights="int8",
                activations="int8",
                bandwidth=TRILLIUM.hbm_bandwidth,
            ),
            "The weights are in int8. In which format are input and result?",
        ),
        Slip(
            "times added",
            lambda right: _overtakes(end="upper"),
            "Math and traffic overlap: on each chip the longer of the two counts.",
        ),
        Slip(
            "the v5p's rule of thumb",
            lambda right: roofline.critical_batch(V5P, weights="int8"),
            "That is where the v5p turns compute-bound, without the traffic of input "
            "and result. How long does the Trillium take there?",
        ),
        Slip(
            "the Trillium's rule of thumb",
            lambda right: roofline.critical_batch(TRILLIUM, weights="int8"),
            "That is where the Trillium turns compute-bound, without the traffic of "
            "input and result. Was it the faster one before?",
        ),
        Slip(
            "the v5p's critical batch",
            lambda right: roofline.critical_batch(V5P, *LAYER, weights="int8"),
            "There the v5p turns compute-bound. How long does the Trillium take with "
            "as many tokens?",
        ),
        Slip(
            "the Trillium's critical batch, or the int8 peak",
            lambda right: roofline.critical_batch(TRILLIUM, *LAYER, weights="int8"),
            "There the Trillium turns compute-bound. Was it the faster one before? "
            "The v5p's int8 peak gives the same number; here bf16 is multiplied.",
        ),
    ),
    hint="Draw the time of each chip against the batch: it hardly rises at first, and "
    "then it does. Which piece of the one meets which piece of the other?",
    solution="""
        With few tokens both are memory-bound and the v5p is faster; with many both are
        compute-bound and the Trillium is. The v5p turns compute-bound first, near 85
        tokens, the Trillium near 307. In between a step takes $2BDF / C$ on the v5p and
        $(DF + 2BD + 2BF) / W_\\text{hbm}$ on the Trillium. Set them equal:

        ```python
        D, F = 8192, 28672
        I = chips.TPU_V5P.flops["bf16"] / chips.TPU_V6E.hbm_bandwidth
        tokens = I * D * F / (2 * D * F - 2 * I * (D + F))
        ```

        It is (1.5) with the peak of one chip and the bandwidth of the other.
    """,
    points=2,
)

PARAMS, KEPT = 32e9, 1.2e9  # weights, and bytes of each user's text: given in the task


def _users(weights=PARAMS, kept=KEPT, reached=0.85, math_time=0.0):
    """Users whose step takes 30 ms, with `math_time` for each that does not overlap."""
    rate = reached * H200.hbm_bandwidth
    return math.floor((0.03 - weights / rate) / (kept / rate + math_time))


def _fit():
    """Users whose text fits beside the weights."""
    return math.floor((H200.hbm_bytes - PARAMS) / KEPT)


USERS = Number(
    id="01.15",
    title="How many users a chip can serve",
    task="""
        **Given** one H200 that holds a model of 32 billion weights in fp8, and with it
        1.2 GB of each user's text. In a step every user gets one token: the weights are
        read from the HBM once for all, each user's text once for that user, and each
        user's token takes two FLOPs with every weight, in fp8. Reads reach 85 % of the
        HBM's peak, the math reaches its peak, and the two overlap. Nothing else takes
        time. A step may take 30 ms. Weights and texts must fit into the HBM.

        **Wanted** the most users.
    """,
    given=stated(H200, "flops.fp8", "hbm_bandwidth", "hbm_bytes"),
    stub="users = ...",
    unit="users",
    rtol=0.005,
    expected=lambda: min(
        _users(),
        _fit(),
        math.floor(0.03 * H200.flops["fp8"] / (2 * PARAMS)),
    ),
    slips=(
        Slip(
            "room alone",
            lambda right: _fit(),
            "So many fit into the HBM. How long would a step take?",
        ),
        Slip(
            "room alone, GB for GiB",
            lambda right: math.floor((H200.hbm_bytes / 2**30 * 1e9 - PARAMS) / KEPT),
            "So many fit into 141 GB. The HBM has GiB, and how long is a step?",
        ),
        Slip(
            "math alone",
            lambda right: math.floor(0.03 * H200.flops["fp8"] / (2 * PARAMS)),
            "The matrix units could serve so many. What has to be read for them?",
        ),
        Slip(
            "weights left out",
            lambda right: _users(weights=0),
            "The weights are read in every step as well.",
        ),
        Slip(
            "weights for every user",
            lambda right: _users(weights=0, kept=PARAMS + KEPT),
            "All users of a step share one read of the weights.",
        ),
        Slip(
            "two bytes a weight",
            lambda right: _users(weights=2 * PARAMS),
            "How many bytes does a weight take in fp8?",
        ),
        Slip(
            "the whole peak",
            lambda right: _users(reached=1),
            "The reads do not reach all of the HBM's peak.",
        ),
        Slip(
            "times added",
            lambda right: _users(math_time=2 * PARAMS / H200.flops["fp8"]),
            "Math and reading overlap: each has the whole step to itself.",
        ),
        Slip(
            "rounded up",
            lambda right: right + 1,
            "With one user more the step takes longer than it may.",
        ),
    ),
    hint="Three things limit the users: the bytes of a step, its FLOPs, and the room. "
    "Work out each on its own.",
    solution="""
        In 30 ms, 122 GB can be read. The weights take 32 of them, each user 1.2, so the
        time allows 75 users. The room would allow 99 and the math 927.

        ```python
        h200, weights, each = chips.H200, 32e9, 1.2e9
        by_time = (0.03 * 0.85 * h200.hbm_bandwidth - weights) / each
        by_room = (h200.hbm_bytes - weights) / each
        by_math = 0.03 * h200.flops["fp8"] / (2 * 32e9)
        users = int(min(by_time, by_room, by_math))
        ```

        A best case: the reads never pause between two layers.
    """,
    points=2,
)


def _offloaded(B, params, w, room, peak, hbm, host):
    """Seconds of each resource; the longest counts."""
    nbytes = w * params
    away = max(0, nbytes - room)  # what the HBM has no room for
    times = {
        "math": 2 * B * params / peak,
        "HBM": (nbytes + away) / hbm,  # each read once, those from the host written too
        "host": away / host,
    }
    longest = max(times, key=times.get)
    return times[longest], longest


def _offload_slip(name, says, change):
    """A slip that answers for other arguments: `change` maps them."""
    return Slip(name, lambda *case: _offloaded(*change(*case)), says)


def _all_away(B, params, w, room, *rates):
    return B, params, w, 0, *rates


def _two_bytes(B, params, w, *rest):
    return B, params, 2, *rest


def _half_math(B, params, w, room, peak, *rates):
    return B, params, w, room, 2 * peak, *rates


def _both_ways(*case):
    return *case[:-1], 2 * case[-1]


def _added(B, params, w, room, peak, hbm, host):
    away = max(0, w * params - room)
    total = 2 * B * params / peak + (w * params + away) / hbm + away / host
    return total, _offloaded(B, params, w, room, peak, hbm, host)[1]


def _read_only(B, params, w, room, peak, hbm, host):
    away = max(0, w * params - room)
    math_time, hbm_time = 2 * B * params / peak, w * params / hbm
    return max((math_time, "math"), (hbm_time, "HBM"), (away / host, "host"))


OFFLOADED = Function(
    id="01.16",
    title="A model larger than the memory",
    task=r"""
        **Given** a model of `params` weights of `w` bytes each, on a chip whose HBM has
        room for `room` bytes of them. The rest is kept in the host's memory. In every
        step it comes over PCIe at `host` bytes/s in that direction and is written to
        the HBM. In every step the chip reads each weight from the HBM once; reads and
        writes share its `hbm` bytes/s. The step multiplies $B$ tokens with every
        weight, two FLOPs each, at `peak` FLOPs/s. Math, HBM and host overlap perfectly;
        activations are left out.

        **Wanted** a function that returns the least time of a step and what takes it:
        `"math"`, `"HBM"` or `"host"`.
    """,
    stub="def step(B, params, w, room, peak, hbm, host): ...",
    spec=_offloaded,
    units={
        "B": "tokens",
        "w": "bytes",
        "room": "bytes",
        "peak": "FLOPs/s",
        "hbm": "bytes/s",
        "host": "bytes/s",
    },
    gives=(("the least time", "s"), ("what takes it", "")),
    rtol=1e-6,
    cases=lambda rng: (
        2 ** rng.randint(0, 15),
        rng.randint(2, 150) * 10**9,
        rng.choice((0.5, 1, 2)),
        rng.choice((16, 32, 80, 141)) * 10**9,
        rng.randint(200, 2500) * 1e12,
        rng.randint(800, 8000) * 1e9,
        rng.choice((16, 32, 64)) * 1e9,
    ),
    examples=(
        (64, 100 * 10**9, 2, 80 * 10**9, 989e12, 3.35e12, 64e9),
        (64, 30 * 10**9, 1, 80 * 10**9, 989e12, 3.35e12, 64e9),
        (2**14, 30 * 10**9, 2, 80 * 10**9, 989e12, 3.35e12, 64e9),
        (1, 41 * 10**9, 2, 81.9 * 10**9, 989e12, 0.8e12, 64e9),
    ),
    slips=(
        _offload_slip(
            "all from the host",
            "What fits into the HBM stays there from step to step.",
            _all_away,
        ),
        Slip(
            "times added",
            _added,
            "Math, HBM and host overlap: the longest of the three counts.",
        ),
        Slip(
            "not written to the HBM",
            _read_only,
            "What comes from the host is written to the HBM before it is read there.",
        ),
        _offload_slip(
            "two bytes a weight",
            "A weight takes w bytes, which need not be two.",
            _two_bytes,
        ),
        _offload_slip(
            "multiply-add",
            "A multiply and the add that follows are two FLOPs.",
            _half_math,
        ),
        _offload_slip(
            "both directions",
            "The weights come in one direction; the other carries none of them.",
            _both_ways,
        ),
        Slip(
            "a negative rest",
            lambda B, params, w, room, peak, hbm, host: max(
                (2 * B * params / peak, "math"),
                ((2 * w * params - room) / hbm, "HBM"),
                ((w * params - room) / host, "host"),
            ),
            "Where all weights have room, nothing comes from the host, and not less "
            "than nothing.",
        ),
    ),
    hint="How many bytes have no room? They appear in two of the three times, and they "
    "can be none.",
    solution="""
        ```python
        def step(B, params, w, room, peak, hbm, host):
            away = max(0, w * params - room)
            math = 2 * B * params / peak
            read_and_written = (w * params + away) / hbm
            return max(
                (math, "math"), (read_and_written, "HBM"), (away / host, "host")
            )
        ```

        200 GB of weights on an H100 with 80 GB of room take 1.875 s a step with few
        tokens: the host binds up to about 9,300 of them. Offload suits large batches.
    """,
    points=2,
)
