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
        "cost is measured, the choice between two chips for a layer, the users that "
        "one chip can serve, and weights kept on the host"
    ),
    intro="""
        from a single product to a program on a machine that counts the bytes it moves.
        The last three questions take several steps. Answers are in base units: FLOPs,
        bytes, seconds. `chips` holds every data sheet: `chips.H100.hbm_bandwidth`,
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

        **Wanted** the number of FLOPs of this matmul.
    """,
    stub="flops = ...",
    unit="FLOPs",
    expected=lambda: roofline.matmul(B, D, F, chips.H100).flops,
    slips=(
        slips.multiply_add(1 / 2),
        Slip(
            "values for FLOPs",
            lambda right: B * D + D * F + B * F,
            "That is the number of values in the three arrays. How many times is each "
            "value used?",
        ),
        Slip(
            "the output alone",
            lambda right: 2 * B * F,
            "That counts one multiply and one add for each value of the result. But "
            "each of these values is a dot product. How long is it?",
        ),
    ),
    hint="Every value of the result is a dot product. How many FLOPs does one dot "
    "product take, and how many dot products are there?",
    solution="""
        The result has $BF$ values. Each of them is a dot product of length $D$, which
        takes $D$ multiplications and about as many additions:

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
        $D = 4096$, $F = 16384$. Every array moves between the HBM and the chip once.

        **Wanted** the number of bytes that move in all.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: roofline.matmul(B, D, F, chips.H100).nbytes,
    slips=(
        Slip(
            "result left out",
            lambda right: 2 * (B * D + D * F),
            "You left out the result, which has to be written to the HBM.",
        ),
        Slip(
            "input left out",
            lambda right: 2 * (D * F + B * F),
            "You left out the input, which has to be read from the HBM.",
        ),
        Slip(
            "weights alone",
            lambda right: 2 * D * F,
            "You counted only the weights. With 512 tokens, the input and the result "
            "matter as well.",
        ),
        slips.precision_bytes(1 / 2),
    ),
    hint="Each of the three arrays moves once. How many values does each of them have?",
    solution="""
        Each of the three arrays moves once, and a bf16 value takes two bytes:

        ```python
        B, D, F = 512, 4096, 16384
        nbytes = 2 * (B * D + D * F + B * F)
        ```

        The weights account for 134 MB of these 155 MB.
    """,
)

LOWER = Number(
    id="01.3",
    title="The least time on an H100",
    task=r"""
        **Given** the same matmul on one H100, in bf16: $X[B, D] \cdot Y[D, F]$ with
        $B = 512$, $D = 4096$, $F = 16384$. Every array moves between the HBM and the
        chip once.

        **Wanted** the lower bound of the time that this matmul takes.
    """,
    given=stated(chips.H100, "flops.bf16", "hbm_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: roofline.matmul(B, D, F, chips.H100).lower,
    slips=(
        slips.scaled(
            "half of the math",
            1 / 2,
            "Did you use the peak for matrices that are half zeros, or count a "
            "multiply and its add as only one FLOP?",
        ),
        Slip(
            "the HBM's time",
            lambda right: roofline.matmul(B, D, F, chips.H100).seconds["HBM"],
            "That is the time of the memory traffic. The math takes longer, at the "
            "dense peak and with two FLOPs for a multiply and its add, and the matmul "
            "has to wait for both.",
        ),
        Slip(
            "sum for maximum",
            lambda right: roofline.matmul(B, D, F, chips.H100).upper,
            "Adding the two times assumes that nothing overlaps. The lower bound "
            "assumes the opposite.",
        ),
    ),
    hint="You have the FLOPs and the bytes, and each of them gives you a time. Which "
    "of the two times can hide behind the other?",
    solution="""
        In the best case, the shorter of the two times hides behind the longer one:

        ```python
        B, D, F = 512, 4096, 16384
        math = 2 * B * D * F / chips.H100.flops["bf16"]
        memory = 2 * (B * D + D * F + B * F) / chips.H100.hbm_bandwidth
        seconds = max(math, memory)
        ```

        With 512 tokens, the matmul is compute-bound, because its critical batch is only
        about 325 tokens, or 295 by the rule of thumb.
    """,
)

WEIGHT_ONLY = Number(
    id="01.4",
    title="int8 weights on a Trillium",
    task="""
        **Given** a matmul on a Trillium (`chips.TPU_V6E`). The weights are stored in
        int8, the activations are in bf16, and the multiplication runs in bf16. $D$ and
        $F$ are large.

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
            "That is the critical batch with bf16 weights, or with int8 for both the "
            "weights and the multiplication. Which of the two is in int8 here?",
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
            "That would be right for half a byte per weight. How many bytes does an "
            "int8 weight take?",
        ),
    ),
    hint="Write down the two times for large D and F, with w = 1 byte per weight. At "
    "which batch are they equal?",
    solution="""
        For large $D$ and $F$, nearly all the bytes are those of the weights. The two
        times are equal where $2BDF / C = w D F / W_\\text{hbm}$. That gives
        $B^* = I^* w / 2$, with the *bf16* peak in $I^*$, because the chip multiplies in
        bf16:

        ```python
        tokens = chips.TPU_V6E.intensity("bf16") * 1 / 2
        ```
    """,
)

EXACT = Number(
    id="01.5",
    title="A small matrix on a v5p",
    task="""
        **Given** a matmul on a v5p with everything in bf16, and a weight matrix with
        $D = 1024$ and $F = 4096$. The weights, the input and the result move between
        the HBM and the chip once each.

        **Wanted** the exact critical batch. Count the bytes of all three arrays.
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
            "The rule of thumb leaves out the traffic of the input and the result. Can "
            "you leave it out when D is only 1024?",
        ),
        Slip(
            "result left out",
            lambda right: roofline.critical_batch(chips.TPU_V5P, math.inf, 4096),
            "You left out the result. It has BF values, which have to be written to "
            "the HBM.",
        ),
        Slip(
            "input left out",
            lambda right: roofline.critical_batch(chips.TPU_V5P, 1024, math.inf),
            "You left out the input. It has BD values, which have to be read from the "
            "HBM.",
        ),
        Slip(
            "multiply-add",
            lambda right: 1 / (2 / chips.TPU_V5P.intensity() - 1 / 1024 - 1 / 4096),
            "A multiply and the add that follows are two FLOPs, and a bf16 value takes "
            "two bytes. Did you leave out one of these factors of two?",
        ),
        Slip(
            "minus for plus",
            lambda right: 1 / (1 / chips.TPU_V5P.intensity() + 1 / 1024 + 1 / 4096),
            "The traffic of the activations makes the critical batch larger, not "
            "smaller. On which side of the equation does this traffic end up?",
        ),
    ),
    hint="Set the two times equal, and count the bytes of all three arrays. B appears "
    "on both sides. What do you get if you solve for B?",
    solution="""
        The critical batch is where the two times are equal:
        $2BDF / C = 2(BD + DF + BF) / W_\\text{hbm}$. With $I^* = C / W_\\text{hbm}$,
        you can solve this for $B$:

        ```python
        D, F = 1024, 4096
        I = chips.TPU_V5P.intensity("bf16")
        tokens = I * D * F / (D * F - I * (D + F))
        ```
    """,
)

DECODE = Number(
    id="01.6",
    title="Tokens per second for one user",
    task=r"""
        **Given** a model with $8.03 \cdot 10^9$ parameters in bf16, which generates
        text for a single user on one H100. Each step generates one token and reads
        every parameter from the HBM once. Leave out all other reads.

        **Wanted** the largest possible number of tokens per second.
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
            "That is the rate that the matrix units allow if the weights are already "
            "on the chip. How long does it take to read the weights?",
        ),
        slips.inverse(),
        slips.scaled(
            "fp32 weights",
            1 / 2,
            "That counts four bytes for each weight.",
        ),
    ),
    hint="With one token, each matmul multiplies a matrix by a vector. Is such a "
    "matmul limited by the math or by the memory traffic?",
    solution="""
        With one token per step, the intensity is 1 FLOP per byte, far below the
        critical intensity of 295. So the step is memory-bound, and it takes as long as
        reading the weights:

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
        **Given** an MI300X in bf16, and a tile of results with $b = 1024$ rows. The
        contracted dimension is long, so leave out the traffic of the results.

        **Wanted** the number of columns $f$ at which the tile's intensity reaches the
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
            "That would be the side of a square tile. This tile already has 1,024 "
            "rows.",
        ),
        Slip(
            "columns alone",
            lambda right: chips.MI300X.intensity("bf16"),
            "With so few columns, the tile cannot reach the critical intensity, "
            "however many rows it has.",
        ),
        Slip(
            "multiply-add",
            lambda right: 1 / (1 / (2 * chips.MI300X.intensity("bf16")) - 1 / 1024),
            "A multiply and the add that follows are two FLOPs, and a bf16 value takes "
            "two bytes.",
        ),
    ),
    hint="In each step along D, a tile of b rows and f columns receives b + f values "
    "and does 2·b·f FLOPs. For which f does the tile's intensity equal the chip's "
    "critical intensity?",
    solution="""
        In bf16, the tile's intensity is $2bf / 2(b + f)$. Setting it equal to $I^*$
        gives $1/f = 1/I^* - 1/b$:

        ```python
        I = chips.MI300X.intensity("bf16")
        f = 1 / (1 / I - 1 / 1024)
        ```

        However many rows it has, a tile needs more than $I^*$ columns, and $I^*$ is 247
        here.
    """,
)

SPLIT = Number(
    id="01.8",
    title="One and a half times the speed",
    task=r"""
        **Given** a matmul of $B$ tokens with a matrix $[D, F]$ in bf16. $D$ is split in
        half over two v5p chips, which are joined by one ICI link. In the end, both
        chips have the whole result, and they exchange their sums in bf16. The matmul is
        compute-bound both on one chip and on each of the two. It is cut into so many
        pieces that math and exchange overlap perfectly.

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
            "At that D, the exchange takes no longer than the math on each chip, so "
            "two chips are twice as fast as one. Here they need only be 1.5 times as "
            "fast.",
        ),
        slips.scaled(
            "no slower than one",
            1 / 1.5,
            "At that D, two chips are only as fast as one, because the exchange takes "
            "as long as all the math on one chip.",
        ),
        slips.both_directions(1 / 2),
        slips.scaled(
            "all of the sums, there and back",
            2,
            "Did you let each chip send all of its partial sums and all of the result? "
            "It has to send only half of each.",
        ),
        slips.scaled(
            "nothing hidden",
            4,
            "You added the two times. Here, the exchange overlaps with the math.",
        ),
        slips.scaled(
            "all six links",
            1 / 6,
            "A v5p has six links, but only one of them leads to the other chip.",
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
    hint="Write down three times: the math on one chip, the math on each of the two "
    "chips, and the exchange. Which of the last two is longer if two chips are only "
    "1.5 times as fast as one?",
    solution="""
        One chip needs $2BDF / C$. Each of two chips needs half of that for its math,
        and the exchange takes $2BF / W_\\text{link}$ with the one-way bandwidth of one
        link. As long as two chips are less than twice as fast as one, the exchange
        takes longer than the math on each chip. So the condition is
        $2BDF / C = 1.5 \\cdot 2BF / W_\\text{link}$:

        ```python
        v5p = chips.TPU_V5P
        D = 1.5 * v5p.flops["bf16"] / v5p.link_bandwidth
        ```

        If the exchange began only after the matmul had ended, two chips would need four
        times this $D$ to be 1.5 times as fast.
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
        **Given** the sizes $B$, $D$ and $F$ of a bf16 matmul, a peak in FLOPs/s and a
        bandwidth in bytes/s. The weights, the input and the result move between the HBM
        and the chip once each.

        **Wanted** a function that returns the lower and the upper bound of the matmul's
        time in seconds, as a pair.
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
            "You took the shorter of the two times. The lower bound has to wait for "
            "the slower resource.",
        ),
        Slip(
            "the two times",
            lambda B, D, F, peak, bandwidth: (
                2 * B * D * F / peak,
                2 * (B * D + D * F + B * F) / bandwidth,
            ),
            "Those are the times of the two resources. How do you get the two bounds "
            "from them?",
        ),
        Slip(
            "result left out",
            lambda B, D, F, peak, bandwidth: (
                max(2 * B * D * F / peak, 2 * (B * D + D * F) / bandwidth),
                2 * B * D * F / peak + 2 * (B * D + D * F) / bandwidth,
            ),
            "You left out the result, which has to be written to the HBM.",
        ),
        Slip(
            "the weights alone",
            lambda B, D, F, peak, bandwidth: (
                max(2 * B * D * F / peak, 2 * D * F / bandwidth),
                2 * B * D * F / peak + 2 * D * F / bandwidth,
            ),
            "You counted only the weights. The rule of thumb leaves out the input and "
            "the result, but the two bounds count their bytes as well.",
        ),
        Slip(
            "four bytes per value",
            lambda B, D, F, peak, bandwidth: _bounds(B, D, F, peak, bandwidth / 2),
            "That counts four bytes for each value, as in fp32.",
        ),
    ),
    hint="Use formulas (1.1) and (1.2) of the chapter, with two bytes per value. How "
    "does each bound combine the two times?",
    solution="""
        In the best case, the shorter time hides behind the longer one. In the worst
        case, nothing overlaps and the two times add up:

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
    title="The critical batch, even where there is none",
    task="""
        **Given** a chip's critical intensity and the sizes $D$ and $F$ of a weight
        matrix. Everything is in bf16, and the weights, the input and the result move
        between the HBM and the chip once each.

        **Wanted** a function that returns the exact critical batch, or infinity if no
        batch makes the matmul compute-bound.
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
            "That is the rule of thumb, which holds in the limit of large D and F.",
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
            "compute-bound. Where no batch does, the function has to return infinity.",
        ),
        Slip(
            "None for none",
            lambda *case: batch if (batch := _crossing(*case)) < math.inf else None,
            "Where no batch makes the matmul compute-bound, the function has to return "
            "infinity.",
        ),
        Slip(
            "rounded up",
            lambda intensity, D, F: (
                math.ceil(batch)
                if math.isfinite(batch := _crossing(intensity, D, F))
                else batch
            ),
            "The question asks for the exact critical batch, which need not be a whole "
            "number.",
        ),
    ),
    hint="Use formula (1.5) with two bytes for every value. What does it mean if the "
    "denominator is zero or less?",
    solution="""
        Where the denominator of (1.5) is zero or less, the traffic of the activations
        alone takes at least as long as the math, however large the batch is:

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
        **Given** the matmul $X[B, D] \cdot Y[D, F]$, where a tile of $b \times f$
        results stays on the chip while its rows of $X$ and its columns of $Y$ stream
        past it. If $b$ or $f$ does not divide the result evenly, the tiles at the edge
        are smaller.

        **Wanted** a function that returns the number of values that move between the
        HBM and the chip, including the results.
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
            "A tile at the edge still needs all of D from both operands, however small "
            "the tile is. So round the numbers of tiles up.",
        ),
        Slip(
            "rows and columns",
            lambda B, D, F, b, f: (
                B * D * math.ceil(B / b) + D * F * math.ceil(F / f) + B * F
            ),
            "X is read once for every column of tiles. How many columns of tiles are "
            "there?",
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
            "The question asks for the number of values, however many bytes each of "
            "them takes.",
        ),
        Slip(
            "edge left out",
            lambda B, D, F, b, f: B * D * (F // f) + D * F * (B // b) + B * F,
            "The rows and columns that are left over at the edge need tiles as well.",
        ),
        Slip(
            "result left out",
            lambda B, D, F, b, f: B * D * math.ceil(F / f) + D * F * math.ceil(B / b),
            "You left out the result, which has to be written to the HBM.",
        ),
    ),
    hint="How many times is X read, and how many times is Y read? Try a result of 65 "
    "rows with tiles of 16 rows.",
    solution="""
        Each tile reads its rows of X and its columns of Y. So X is read once for each
        column of tiles, and Y is read once for each row of tiles:

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
        **Given** a machine whose memory holds the arrays `A`, `B` and `C` of
        $n \times n$ values, where $n$ is a multiple of 48. Its scratchpad has 3,072
        bytes, enough for 768 values of four bytes. You can use
        `machine.load(name, rows=(i, j), cols=(k, l))`, `machine.zeros(rows, cols)`,
        `machine.multiply_add(c, a, b)` for $c \mathrel{+}= ab$,
        `machine.store(block, name, row=i, col=j)` and `machine.free(block)`.

        **Wanted** a program that leaves $AB$ in `C` and moves at most
        $4 (2n^3/24 + n^2)$ bytes. Without the $n^2$ values of the result, that is an
        intensity of 6 FLOPs per byte. The machine counts the bytes.
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
            "With three blocks of 16 × 16 values, the results get only a third of the "
            "scratchpad. How much of A and B has to be there at once?",
        ),
        Slip(
            "small tiles",
            lambda n: _tiled_bytes(n, 8),
            "Three blocks of 8 × 8 values leave most of the scratchpad empty.",
        ),
        Slip(
            "tiles of 12",
            lambda n: _tiled_bytes(n, 12),
            "The number of bytes that move depends on the side of the tile of results. "
            "Can you make this side longer?",
        ),
        Slip(
            "sums go back and forth",
            lambda n: 4 * (4 * n**3 / 16),
            "Your program loads and stores its partial sums in every step. Can they "
            "stay in the scratchpad?",
        ),
    ),
    points=2,
    hint="By (1.6), the number of values that move depends only on the sides of the "
    "tile of C. How thin can you make the slices of A and B that stream past this "
    "tile?",
    solution="""
        A block of C stays in the scratchpad while slices of A and B stream past it, as
        in the chapter. Thin slices move no more values in all than thick ones, so C can
        get nearly all of the room: 24 × 24 values and two slices that are four wide
        take 768 values. Each step of one value along the contracted dimension loads
        24 + 24 values, or 192 bytes, and does 2 · 24 · 24 = 1,152 FLOPs, which is an
        intensity of 6:

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

        Slices that are one value wide would leave room for 26 × 26 results. That saves
        nothing here, because 48 rows still take two tiles.
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
        the product allows. They are counted in the program that XLA compiles.
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
    hint="You can multiply the three factors starting from the left or from the right. "
    "How many FLOPs does each of the two orders take?",
    solution="""
        $(AB)v$ starts by multiplying two matrices. $A(Bv)$ only multiplies a matrix by
        a vector, twice, which takes far fewer FLOPs:

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
        **Given** a layer with one weight matrix, $D = 8192$, $F = 28672$, which can run
        on a v5p or on a Trillium. The weights are stored in int8, the input and the
        result are in bf16, and the multiplication runs in bf16. Each array moves
        between the HBM and the chip once, and on both chips math and memory traffic
        overlap perfectly.

        **Wanted** the batch above which the Trillium is the faster chip.
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
            "You left out the input and the result. Both move between the HBM and the "
            "chip too, in bf16.",
        ),
        Slip(
            "bf16 weights",
            lambda right: _overtakes(weights="bf16"),
            "How many bytes does a weight take, and how many does an activation take?",
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
            "The weights are in int8. In which format are the input and the result?",
        ),
        Slip(
            "times added",
            lambda right: _overtakes(end="upper"),
            "Math and traffic overlap, so on each chip only the longer of the two "
            "times counts.",
        ),
        Slip(
            "the v5p's rule of thumb",
            lambda right: roofline.critical_batch(V5P, weights="int8"),
            "That is where the v5p becomes compute-bound if you leave out the traffic "
            "of the input and the result. How long does the Trillium take there?",
        ),
        Slip(
            "the Trillium's rule of thumb",
            lambda right: roofline.critical_batch(TRILLIUM, weights="int8"),
            "That is where the Trillium becomes compute-bound if you leave out the "
            "traffic of the input and the result. Was it already the faster chip "
            "before that?",
        ),
        Slip(
            "the v5p's critical intensity",
            lambda right: V5P.intensity(),
            "That is the critical intensity of the v5p, which is its critical batch "
            "only if the weights are in bf16. Here they are in int8, and the question "
            "compares two chips.",
        ),
        Slip(
            "the Trillium's critical intensity",
            lambda right: TRILLIUM.intensity(),
            "That is the critical intensity of the Trillium, which is its critical "
            "batch only if the weights are in bf16. Here they are in int8, and the "
            "question compares two chips.",
        ),
        Slip(
            "the v5p's critical batch",
            lambda right: roofline.critical_batch(V5P, *LAYER, weights="int8"),
            "That is where the v5p becomes compute-bound. How long does the Trillium "
            "take with that many tokens?",
        ),
        Slip(
            "the Trillium's critical batch, or the int8 peak",
            lambda right: roofline.critical_batch(TRILLIUM, *LAYER, weights="int8"),
            "That is where the Trillium becomes compute-bound. Was it already the "
            "faster chip before that? (The v5p's int8 peak gives the same number, but "
            "the multiplication runs in bf16 here.)",
        ),
    ),
    hint="Draw the time of each chip against the batch. Each curve is nearly flat "
    "while the chip is memory-bound, and then it rises steeply. Which part of one "
    "curve meets which part of the other?",
    solution="""
        With few tokens, both chips are memory-bound and the v5p is faster. With many
        tokens, both are compute-bound and the Trillium is faster. The v5p becomes
        compute-bound first, near 85 tokens, and the Trillium near 307. In between, the
        matmul takes $2BDF / C$ on the v5p and $(DF + 2BD + 2BF) / W_\\text{hbm}$ on the
        Trillium. The answer is the batch at which these two times are equal:

        ```python
        D, F = 8192, 28672
        I = chips.TPU_V5P.flops["bf16"] / chips.TPU_V6E.hbm_bandwidth
        tokens = I * D * F / (2 * D * F - 2 * I * (D + F))
        ```

        This is formula (1.5) with the peak of one chip and the bandwidth of the other.
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
        **Given** one H200 that holds a model of 32 billion weights in fp8, and in
        addition 1.2 GB for the text of each user. In each step, every user gets one
        token. A step reads the weights from the HBM once for all users together, and it
        reads the 1.2 GB of every user once. Each user's token takes two FLOPs with
        every weight, in fp8. Reads reach 85 % of the HBM's peak bandwidth, the math
        reaches its peak, and the two overlap. Nothing else takes time. A step may take
        30 ms. The weights and the texts must fit into the HBM.

        **Wanted** the largest number of users that the chip can serve.
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
            "That many users fit into the HBM. How long would a step take with all of "
            "them?",
        ),
        Slip(
            "room alone, GB for GiB",
            lambda right: math.floor((H200.hbm_bytes / 2**30 * 1e9 - PARAMS) / KEPT),
            "That many users would fit into 141 GB. But the HBM's size is given in "
            "GiB, and how long would a step take with so many users?",
        ),
        Slip(
            "math alone",
            lambda right: math.floor(0.03 * H200.flops["fp8"] / (2 * PARAMS)),
            "The matrix units could serve that many users. How many bytes would a step "
            "have to read for them?",
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
            "two bytes per weight",
            lambda right: _users(weights=2 * PARAMS),
            "How many bytes does a weight take in fp8?",
        ),
        Slip(
            "the whole peak",
            lambda right: _users(reached=1),
            "The reads reach only a part of the HBM's peak.",
        ),
        Slip(
            "times added",
            lambda right: _users(math_time=2 * PARAMS / H200.flops["fp8"]),
            "Math and reads overlap, so each of them can take the whole step.",
        ),
        Slip(
            "rounded up",
            lambda right: right + 1,
            "With one more user, the step takes longer than it may.",
        ),
    ),
    hint="Three things limit the number of users: the bytes of a step, its FLOPs, and "
    "the room in the HBM. How many users does each of them allow?",
    solution="""
        In 30 ms, the chip can read 122 GB. The weights take 32 GB of that and each user
        takes 1.2 GB, so the time for reading allows 75 users. The room in the HBM would
        allow 99 users, and the math would allow 927:

        ```python
        h200, weights, each = chips.H200, 32e9, 1.2e9
        by_time = (0.03 * 0.85 * h200.hbm_bandwidth - weights) / each
        by_room = (h200.hbm_bytes - weights) / each
        by_math = 0.03 * h200.flops["fp8"] / (2 * 32e9)
        users = int(min(by_time, by_room, by_math))
        ```

        This is a best case, in which the reads never pause between two layers.
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
        step, this rest comes over PCIe at `host` bytes/s and is written to the HBM, and
        the chip reads each weight from the HBM once. Reads and writes share the HBM's
        `hbm` bytes/s. The step multiplies $B$ tokens with every weight, which takes two
        FLOPs for each token and weight, at `peak` FLOPs/s. Math, HBM and host overlap
        perfectly, and activations are left out.

        **Wanted** a function that returns the least time of a step and which of the
        three takes that long: `"math"`, `"HBM"` or `"host"`.
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
            "The weights that fit into the HBM stay there from step to step.",
            _all_away,
        ),
        Slip(
            "times added",
            _added,
            "Math, HBM and host overlap, so only the longest of the three times "
            "counts.",
        ),
        Slip(
            "not written to the HBM",
            _read_only,
            "The weights that come from the host have to be written to the HBM before "
            "the chip reads them there.",
        ),
        _offload_slip(
            "two bytes per weight",
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
            "The weights travel in one direction of the link. The other direction "
            "carries none of them.",
            _both_ways,
        ),
        Slip(
            "a negative rest",
            lambda B, params, w, room, peak, hbm, host: max(
                (2 * B * params / peak, "math"),
                ((2 * w * params - room) / hbm, "HBM"),
                ((w * params - room) / host, "host"),
            ),
            "If all the weights fit into the HBM, nothing comes from the host. The "
            "number of bytes from the host cannot be negative.",
        ),
    ),
    hint="How many bytes have no room in the HBM? This number appears in two of the "
    "three times, and it can be zero.",
    solution="""
        The bytes that have no room in the HBM come from the host, so they are written
        to the HBM before they are read there. All three resources overlap, so the
        longest time counts:

        ```python
        def step(B, params, w, room, peak, hbm, host):
            away = max(0, w * params - room)
            math = 2 * B * params / peak
            read_and_written = (w * params + away) / hbm
            return max(
                (math, "math"), (read_and_written, "HBM"), (away / host, "host")
            )
        ```

        Take 100 billion weights in bf16 on an H100 with room for 80 GB of them. With
        few tokens, a step takes 1.875 s, because the host is the slowest of the three.
        It stays the slowest up to about 9,300 tokens, so offloading suits large
        batches.
    """,
    points=2,
)
