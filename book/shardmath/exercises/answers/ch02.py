"""Questions of chapter 02, "TPUs"."""

import math

from shardmath.exercises.kinds import (
    Chapter,
    Function,
    Number,
    Slip,
    Traffic,
    slips,
    stated,
)
from shardmath.hardware import chips, systolic
from shardmath.hardware.networks import Torus

CHAPTER = Chapter(
    title="TPUs",
    topics=(
        "TPUs: systolic arrays, padding, clocks worked out from peaks, VMEM, slices "
        "and devices, like-for-like comparisons, decode on a slice, weights from the "
        "host, and a program whose traffic is counted"
    ),
    intro="""
        from the cycles of one tile to a program that loads every weight once. The last
        three questions take several steps. Answers are in base units: cycles, tokens,
        Hz. Shares are fractions. `chips` holds every data sheet:
        `chips.TPU_V6E.flops["bf16"]`, `chips.TPU_V5P.mxus`.
    """,
    setup="""
        from shardmath.exercises import check, report
        from shardmath.hardware import chips
    """,
)

V4, V5E, V5P = chips.TPU_V4, chips.TPU_V5E, chips.TPU_V5P
TRILLIUM, IRONWOOD = chips.TPU_V6E, chips.TPU_7X


def side(chip):
    return chip.mxu_size


def clock(chip, mxus):
    """The clock at which `mxus` arrays reach the bf16 peak."""
    return chip.flops["bf16"] / (2 * side(chip) ** 2 * mxus)


TILE_CYCLES = Number(
    id="02.1",
    title="The cycles of one tile",
    task="""
        **Given** the chapter's toy array, but as large as a v5p's MXU, and empty at
        first. One tile of weights falls into place, one row per cycle, and 512 tokens
        enter, one per cycle. All values then move on by one cell per cycle.

        **Wanted** the number of cycles until the last sum has left the array.
    """,
    given=stated(chips.TPU_V5P, "mxu_size"),
    stub="cycles = ...",
    unit="cycles",
    rtol=0,
    expected=lambda: systolic.cycles(512, 1, side(V5P)),
    slips=(
        Slip(
            "loading left out",
            lambda right: right - side(V5P),
            "Before the first token enters, every weight has to fall into its cell.",
        ),
        Slip(
            "one way across",
            lambda right: right - (side(V5P) - 1),
            "You counted only one way across the array. The last token moves to the "
            "right, and its sums move down.",
        ),
        Slip(
            "steps for cells",
            lambda right: right + 2,
            "From the first cell of a row to the last, it takes one step fewer than "
            "the row has cells.",
        ),
        Slip(
            "crossing left out",
            lambda right: right - 2 * (side(V5P) - 1),
            "By then, the last token has entered, but it has not yet reached the far "
            "corner.",
        ),
        Slip(
            "tokens alone",
            lambda right: 512,
            "That is how long the tokens take to enter. What comes before that, and "
            "what comes after?",
        ),
    ),
    hint="There are three parts: the weights fall into place, the tokens enter, and "
    "the last token crosses the grid. How many cycles does each part take?",
    solution="""
        The weights take 128 cycles to fall into place, and the tokens take 512 cycles
        to enter. Then the last token still has to cross the grid, 127 steps to the
        right and 127 steps down:

        ```python
        side = chips.TPU_V5P.mxu_size
        cycles = side + 512 + 2 * (side - 1)
        ```
    """,
)

BUSY = Number(
    id="02.2",
    title="A hundred tokens on a Trillium",
    task="""
        **Given** the chapter's toy array, but as large as a Trillium's MXU. It
        multiplies 100 tokens by a matrix with very many tiles. The weights of each tile
        load at one row per cycle, while the tile before it multiplies.

        **Wanted** the share of the cycles in which a cell of the MXU multiplies, as a
        fraction.
    """,
    given=stated(chips.TPU_V6E, "mxu_size"),
    stub="used = ...",
    unit="",
    expected=lambda: 100 / side(TRILLIUM),
    slips=(
        Slip(
            "the idle share",
            lambda right: 1 - right,
            "That is the share of the time in which a cell waits for weights.",
        ),
        slips.scaled(
            "the old side",
            2,
            "A Trillium's array is larger than those of the TPUs before it.",
        ),
        Slip(
            "one weight per cell",
            lambda right: 100 / (100 + side(TRILLIUM)),
            "That would be right if each tile were loaded only after the one before it "
            "had finished. But each cell has room for a second weight.",
        ),
        slips.percent(),
        slips.inverse("A share can't be above one."),
    ),
    hint="Loading and multiplying overlap, so a tile takes max(B, s) cycles for B "
    "tokens, where s is the side of the array. In how many of these cycles does a cell "
    "multiply?",
    solution="""
        Loading the next tile takes as many cycles as the array has rows, and each cell
        multiplies in only $B = 100$ of these cycles:

        ```python
        used = 100 / chips.TPU_V6E.mxu_size
        ```
    """,
)

USEFUL = Number(
    id="02.3",
    title="Odd shapes",
    task=r"""
        **Given** a weight matrix of $80 \times 640$ on a Trillium, padded with zeros to
        whole tiles.

        **Wanted** the share of the multiplications that use a real weight and not a
        zero of the padding, as a fraction.
    """,
    given=stated(chips.TPU_V6E, "mxu_size"),
    stub="share = ...",
    unit="",
    expected=lambda: systolic.useful(80, 640, side(TRILLIUM)),
    slips=(
        Slip(
            "the other side padded",
            lambda right: 640 / systolic.padded(640, side(TRILLIUM)),
            "The contracted size is padded as well.",
        ),
        Slip(
            "the contracted side alone",
            lambda right: 80 / systolic.padded(80, side(TRILLIUM)),
            "The output size is padded as well.",
        ),
        Slip(
            "the old side",
            lambda right: systolic.useful(80, 640, side(V5P)),
            "A Trillium's array is larger than those of the TPUs before it.",
        ),
        slips.percent(),
        Slip(
            "the padded share",
            lambda right: 1 - right,
            "That is the share of the multiplications that use padding. The question "
            "asks for the others.",
        ),
    ),
    hint="Round both sizes up to multiples of the array's side. How many weights are "
    "there before and after?",
    solution="""
        Both sizes are padded to multiples of 256: 80 becomes 256, and 640 becomes 768.
        So only about a quarter of the multiplications are useful:

        ```python
        share = 80 * 640 / (256 * 768)
        ```
    """,
)

CLOCK = Number(
    id="02.4",
    title="A clock from a peak",
    task="""
        **Given** the v5p's bf16 peak, the number of its MXUs (`chips.TPU_V5P.mxus`) and
        their side (`.mxu_size`).

        **Wanted** the v5p's clock.
    """,
    given=stated(chips.TPU_V5P, "flops.bf16", "mxus", "mxu_size"),
    stub="clock = ...",
    unit="Hz",
    expected=lambda: clock(V5P, V5P.mxus),
    slips=(
        slips.scaled(
            "a clock doubled",
            2,
            "The peak is in bf16 and counts a multiply and its add as two FLOPs, and "
            "the number of MXUs is that of the whole chip, not of one core. Which of "
            "these three did you miss?",
        ),
        slips.scaled(
            "cores counted twice",
            1 / 2,
            "The number of MXUs is that of the whole chip, with both cores together.",
        ),
        slips.scaled(
            "one array",
            8,
            "That is the clock that a single MXU would need. How many MXUs does the "
            "chip have?",
        ),
        slips.scaled(
            "one row",
            128,
            "You counted a single row of cells. An array of side 128 has 128 rows of "
            "128 cells each.",
        ),
    ),
    hint="How many FLOPs does the whole chip do per cycle?",
    solution="""
        In every cycle, each cell of each MXU does a multiply and an add, which are two
        FLOPs:

        ```python
        v5p = chips.TPU_V5P
        cells = v5p.mxus * v5p.mxu_size**2
        clock = v5p.flops["bf16"] / (2 * cells)
        ```

        This is 1.75 GHz, a number that Google's page does not print.
    """,
)

COUNT = Number(
    id="02.5",
    title="The missing arrays",
    task="""
        **Given** Trillium's bf16 peak, the side of its MXUs, and the v5p's clock of
        1.75 GHz.

        **Wanted** the number of MXUs that it takes to reach this peak at this clock.
    """,
    given=stated(chips.TPU_V6E, "flops.bf16", "mxu_size"),
    stub="count = ...",
    unit="MXUs",
    expected=lambda: (
        TRILLIUM.mxus * clock(TRILLIUM, TRILLIUM.mxus) / clock(V5P, V5P.mxus)
    ),
    slips=(
        slips.scaled(
            "as listed",
            1 / 2,
            "That is the number of MXUs that Trillium's page lists. Is it enough to "
            "reach the peak?",
        ),
        slips.scaled(
            "twice as many",
            2,
            "A multiply and its add are two FLOPs, and the peak is the one in bf16. "
            "Which of these two facts did you miss?",
        ),
        slips.scaled(
            "the old side",
            4,
            "A Trillium's array is larger than those of the TPUs before it.",
        ),
    ),
    hint="The peak is 2 s² · MXUs · clock, where s is the side of an MXU. How many "
    "MXUs follow from that?",
    solution="""
        The v5p's clock follows from the v5p's own peak. First compute how many FLOPs
        per second one of Trillium's MXUs does at this clock. Trillium's peak divided by
        this rate is the number of MXUs:

        ```python
        v5p, trillium = chips.TPU_V5P, chips.TPU_V6E
        old = 2 * v5p.mxus * v5p.mxu_size**2
        clock = v5p.flops["bf16"] / old
        per_mxu = 2 * trillium.mxu_size**2 * clock
        count = trillium.flops["bf16"] / per_mxu
        ```

        The answer is four, as an earlier revision of Trillium's page said.
    """,
)

VMEM = Number(
    id="02.6",
    title="Weights from VMEM",
    task="""
        **Given** a v5e that multiplies in int8. The weights are in int8 and already in
        VMEM, and $D$ and $F$ are large. Leave out the traffic of activations.

        **Wanted** the critical batch, with VMEM's bandwidth instead of the HBM's.
    """,
    given=stated(chips.TPU_V5E, "flops.int8", "onchip_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    expected=lambda: V5E.flops["int8"] / V5E.onchip_bandwidth / 2,
    slips=(
        Slip(
            "HBM for VMEM",
            lambda right: V5E.flops["int8"] / V5E.hbm_bandwidth / 2,
            "That is the critical batch for weights in the HBM. Where are they here?",
        ),
        slips.scaled(
            "bytes per weight",
            2,
            "An int8 weight takes one byte, and each token takes two FLOPs with every "
            "weight. Which of these two facts did you miss?",
        ),
        slips.scaled(
            "the bf16 peak",
            1 / 2,
            "The chip multiplies in int8. Which peak belongs to that?",
        ),
        Slip(
            "rounded up",
            lambda right: math.ceil(right),
            "Do not round the quotient. A critical batch need not be a whole number.",
        ),
        slips.inverse(),
    ),
    hint="Each token takes two operations with every weight, and a weight takes one "
    "byte. With how many tokens does the math take as long as reading the weights?",
    solution="""
        With $B$ tokens, the chip does $2B$ operations for each byte of weights. At the
        critical batch, math and reading take equally long, so $2B$ equals the ratio of
        the chip's two rates:

        ```python
        v5e = chips.TPU_V5E
        tokens = v5e.flops["int8"] / v5e.onchip_bandwidth / 2
        ```
    """,
)

VECTOR = Number(
    id="02.7",
    title="What a softmax may cost",
    task="""
        **Given** attention on a v4 with heads of size 256, in bf16. Each lane of a
        core's vector units does one operation per cycle. `chips.TPU_V4.lanes` is the
        number of lanes of a core, and `.cores` is the number of cores.

        **Wanted** the number of vector operations per score that take as long as the
        FLOPs of the two matmuls for this score. MXUs and vector units both work at
        their peak.
    """,
    given=stated(chips.TPU_V4, "flops.bf16", "cores", "lanes", "clock"),
    stub="operations = ...",
    unit="operations",
    expected=lambda: 4 * 256 * V4.cores * V4.lanes * V4.clock / V4.flops["bf16"],
    slips=(
        slips.scaled(
            "half of it",
            1 / 2,
            "A score is computed in one matmul and used in another, and the chip has "
            "the lanes of two cores. Which of these two facts did you miss?",
        ),
        slips.scaled(
            "two operations per cycle",
            2,
            "Here, a lane does one operation per cycle, either a multiply or an add.",
        ),
        Slip(
            "for one operation",
            lambda right: 4 * 256 / right,
            "That is the number of FLOPs that take as long as one vector operation. "
            "How many FLOPs does a score take?",
        ),
        Slip(
            "FLOPs for operations",
            lambda right: 4 * 256,
            "Those are the FLOPs that the MXUs do for a score. How many FLOPs take as "
            "long as one vector operation?",
        ),
        slips.inverse(),
    ),
    hint="Computing a score takes 2 H FLOPs and using it takes another 2 H, where H is "
    "the size of a head. How much faster are the MXUs than the vector units?",
    solution="""
        A score takes 4 · 256 FLOPs in the two matmuls. In the same time, the vector
        units do fewer operations, in proportion to their lower rate:

        ```python
        v4 = chips.TPU_V4
        vector_rate = v4.cores * v4.lanes * v4.clock
        operations = 4 * 256 * vector_rate / v4.flops["bf16"]
        ```

        There is time for 16 operations, twice as many as with heads of size 128.
    """,
)

HOSTS = Number(
    id="02.8",
    title="Hosts of a slice",
    task=r"""
        **Given** a v5p slice of $8 \times 8 \times 12$ chips.

        **Wanted** the number of hosts that this slice has.
    """,
    stub="hosts = ...",
    unit="hosts",
    rtol=0,
    expected=lambda: Torus(V5P, (8, 8, 12)).hosts,
    slips=(
        slips.scaled(
            "two trays per host", 1 / 2, "That would be right for a v5e or a Trillium."
        ),
        slips.scaled(
            "chips", 4, "That is the number of chips. Four of them share a host."
        ),
        Slip(
            "cubes",
            lambda right: Torus(V5P, (8, 8, 12)).cubes,
            "That is the number of cubes of 4 × 4 × 4 chips.",
        ),
    ),
    hint="A tray has four chips. How many trays belong to one v5p host?",
    solution="""
        A v5p host has one tray, which carries four chips:

        ```python
        hosts = 8 * 8 * 12 / 4
        ```
    """,
)

DEVICES = Number(
    id="02.9",
    title="What JAX counts",
    task=r"""
        **Given** an Ironwood slice of $4 \times 8 \times 8$ chips.

        **Wanted** the number of devices that JAX shows.
    """,
    stub="devices = ...",
    unit="devices",
    rtol=0,
    expected=lambda: Torus(IRONWOOD, (4, 8, 8)).chips * IRONWOOD.devices_per_chip,
    slips=(
        slips.scaled(
            "chips",
            1 / 2,
            "That is the number of chips. Which chips show up as more than one device?",
        ),
        Slip(
            "hosts",
            lambda right: Torus(IRONWOOD, (4, 8, 8)).hosts,
            "That is the number of hosts.",
        ),
        Slip(
            "cubes",
            lambda right: Torus(IRONWOOD, (4, 8, 8)).cubes,
            "That is the number of cubes of 4 × 4 × 4 chips.",
        ),
    ),
    hint="An Ironwood chip is made of two chiplets. How many devices does JAX show for "
    "it?",
    solution="""
        JAX shows each of an Ironwood's two chiplets as a device of its own:

        ```python
        devices = 4 * 8 * 8 * chips.TPU_7X.devices_per_chip
        ```

        A mesh over this slice has 512 devices, and each "device" has half of a chip's
        rates.
    """,
)

FACTOR = Number(
    id="02.10",
    title="Like for like",
    task="""
        **Given** the claim, made at a launch, that an Ironwood has "more than 16 times"
        the performance of a TPU v4.

        **Wanted** the factor by which a compute-bound bf16 program is faster on one
        Ironwood chip than on one v4 chip.
    """,
    given=stated(chips.TPU_7X, "flops.bf16") | stated(chips.TPU_V4, "flops.bf16"),
    stub="factor = ...",
    unit="",
    expected=lambda: IRONWOOD.flops["bf16"] / V4.flops["bf16"],
    slips=(
        Slip(
            "two precisions",
            lambda right: IRONWOOD.flops["fp8"] / V4.flops["bf16"],
            "That divides the Ironwood's fp8 peak by the v4's bf16 peak. In which "
            "precision does the program run?",
        ),
        Slip(
            "bandwidth",
            lambda right: IRONWOOD.hbm_bandwidth / V4.hbm_bandwidth,
            "That would be the factor for a memory-bound program.",
        ),
        slips.device_not_chip(1 / 2),
        slips.inverse("The Ironwood is the faster chip."),
    ),
    hint="Compare two peaks that are both per chip and both in bf16. Which two are "
    "they?",
    solution="""
        A compute-bound program is limited by the peak in its own precision, so compare
        the two bf16 peaks:

        ```python
        factor = chips.TPU_7X.flops["bf16"] / chips.TPU_V4.flops["bf16"]
        ```

        The claim, as reported from Hot Chips 2025, compares 4,614 TFLOPs/s with 275
        TFLOPs/s. The first is an fp8 peak and the second a bf16 peak, which doubles the
        factor.
    """,
)


def _tiles(D, F, size):
    return math.ceil(D / size) * math.ceil(F / size)


def _cycles(B, D, F, size):
    """Weights fall for `size` cycles, while the tile before multiplies."""
    cycles = size  # the first tile has nothing before it
    tiles = math.ceil(D / size) * math.ceil(F / size)
    for tile in range(1, tiles + 1):
        cycles += max(B, size) if tile < tiles else B
    return cycles + 2 * size - 2  # the last sums leave the array


CYCLES = Function(
    id="02.11",
    title="The cycles of a product",
    task="""
        **Given** $B$ tokens, a weight matrix $[D, F]$ of any size, and one array of
        side `size` that works as in the chapter's model. The weights of a tile take
        `size` cycles to fall into place. Those of the first tile begin to fall at once,
        and those of any other tile begin when the tokens of the tile before it begin to
        enter. The tokens of a tile enter one per cycle, as soon as the weights of this
        tile are in place and the last token of the tile before it has entered. When the
        very last token has entered, it still has to cross the grid.

        **Wanted** a function that returns the number of cycles that the whole product
        takes.
    """,
    stub="def cycles(B, D, F, size): ...",
    spec=_cycles,
    units={"B": "tokens"},
    gives=(("the time", "cycles"),),
    cases=lambda rng: (
        rng.randint(1, 600),
        rng.randint(1, 2000),
        rng.randint(1, 2000),
        rng.choice((8, 128, 256)),
    ),
    examples=((1, 1, 1, 128), (128, 256, 128, 128), (64, 129, 128, 128)),
    slips=(
        Slip(
            "one weight per cell",
            lambda B, D, F, size: systolic.cycles(
                B, _tiles(D, F, size), size, prefetch=False
            ),
            "The weights of the next tile fall into place while this tile multiplies.",
        ),
        Slip(
            "tiles that never wait",
            lambda B, D, F, size: size + _tiles(D, F, size) * B + 2 * size - 2,
            "With few tokens, a tile is done before the weights of the next tile have "
            "arrived.",
        ),
        Slip(
            "whole tiles only",
            lambda B, D, F, size: systolic.cycles(B, max(1, D * F // size**2), size),
            "D and F are each rounded up to whole tiles.",
        ),
        Slip(
            "rounded up once",
            lambda B, D, F, size: systolic.cycles(B, math.ceil(D * F / size**2), size),
            "Round D and F up one by one, not their product.",
        ),
        Slip(
            "the last tile waits",
            lambda B, D, F, size: (
                size + _tiles(D, F, size) * max(B, size) + 2 * size - 2
            ),
            "No further weights load during the last tile, so it takes only as long as "
            "its tokens need to enter.",
        ),
        Slip(
            "the first weights left out",
            lambda B, D, F, size: _cycles(B, D, F, size) - size,
            "Before the first token enters, every weight has to fall into its cell.",
        ),
        Slip(
            "crossing left out",
            lambda B, D, F, size: _cycles(B, D, F, size) - (2 * size - 2),
            "By then, the last token has entered, but it has not yet reached the far "
            "corner.",
        ),
        Slip(
            "steps for cells",
            lambda B, D, F, size: _cycles(B, D, F, size) + 2,
            "From the first cell of a row to the last, it takes one step fewer than "
            "the row has cells.",
        ),
    ),
    hint="Round D and F up to whole tiles. Every tile but the last takes max(B, size) "
    "cycles. How many does the last one take?",
    solution="""
        Every tile but the last takes as long as its tokens need to enter or the next
        weights need to fall into place, whichever is longer. In addition, the weights
        of the first tile have to fall into place at the start, and the last token has
        to cross the grid at the end:

        ```python
        def cycles(B, D, F, size):
            tiles = -(-D // size) * -(-F // size)
            return size + (tiles - 1) * max(B, size) + B + 2 * size - 2
        ```
    """,
)


def _fewest(peak, side, fastest):
    """Add arrays until their peak is reached."""
    arrays = 0
    while arrays * 2 * side**2 * fastest < peak:
        arrays += 1
    return arrays


AUDIT = Function(
    id="02.12",
    title="The fewest MXUs",
    task="""
        **Given** a bf16 peak in FLOPs/s, the side of an MXU, and the fastest clock that
        you find credible, in Hz.

        **Wanted** a function that returns the smallest number of MXUs that can reach
        this peak.
    """,
    stub="def fewest_mxus(peak, side, fastest): ...",
    spec=_fewest,
    units={"peak": "FLOPs/s", "fastest": "Hz"},
    gives=(("the arrays", ""),),
    cases=lambda rng: (
        rng.randint(40, 5000) * 1e12,
        rng.choice((64, 128, 256)),
        rng.randint(700, 2200) * 1e6,
    ),
    examples=((1e12, 256, 2e9), (918e12, 256, 2e9), (2**19 * 1e9, 256, 1e9)),
    slips=(
        Slip(
            "always one more",
            lambda peak, side, fastest: int(peak / (2 * side**2 * fastest)) + 1,
            "If a whole number of MXUs reaches the peak exactly, no further one is "
            "needed.",
        ),
        Slip(
            "rounded down",
            lambda peak, side, fastest: int(peak / (2 * side**2 * fastest)),
            "With that many arrays, the peak is not reached yet.",
        ),
        Slip(
            "multiply-add",
            lambda peak, side, fastest: math.ceil(peak / (side**2 * fastest)),
            "A cell does two FLOPs per cycle.",
        ),
        Slip(
            "not rounded",
            lambda peak, side, fastest: peak / (2 * side**2 * fastest),
            "A chip has a whole number of arrays.",
        ),
    ),
    hint="The peak is 2 s² · MXUs · clock, where s is the side of an MXU. How many "
    "MXUs does that take at the fastest clock?",
    solution="""
        The faster the clock, the fewer MXUs are needed, so use the fastest clock. A
        chip has a whole number of MXUs, so round up:

        ```python
        import math


        def fewest_mxus(peak, side, fastest):
            return math.ceil(peak / (2 * side**2 * fastest))
        ```

        For a Trillium at 2 GHz, the function returns four.
    """,
)

BLOCK = 8  # rows and columns of a block, given in the task


def _once(b, n):
    """Bytes: every weight and every result once, activations once a block column."""
    return 4 * (n * n + b * n * (n // BLOCK) + b * n)


STATIONARY = Traffic(
    id="02.13",
    title="Every weight once",
    task=r"""
        **Given** a machine whose memory holds `X` of $b \times n$, `W` of $n \times n$
        and `Y` of $b \times n$ values, each of four bytes. Both $b$ and $n$ are
        multiples of 8. The machine's scratchpad has room for two blocks of $8 \times 8$
        values and for $b \times 8$ more values. You can use
        `machine.load(name, rows=(i, j), cols=(k, l))`, `machine.zeros(rows, cols)`,
        `machine.multiply_add(c, a, b)` for $c \mathrel{+}= ab$,
        `machine.store(block, name, row=i, col=j)` and `machine.free(block)`.

        **Wanted** a program that leaves $XW$ in `Y`. It may move every weight once,
        every result once, and `X` once for each block column of 8 columns in `W`, which
        makes $4 (n^2 + bn + bn \cdot n/8)$ bytes in all. The machine counts the bytes.
    """,
    stub="def stationary(machine, b, n): ...",
    cases=lambda rng: (BLOCK * rng.randint(2, 4), BLOCK * rng.randint(2, 4)),
    capacity=lambda b, n: 4 * (2 * BLOCK**2 + b * BLOCK),
    arrays=lambda b, n: {"X": (b, n), "W": (n, n), "Y": (b, n)},
    result=lambda X, W, Y: {
        "Y": [
            [
                sum(x * w for x, w in zip(row, col, strict=True))
                for col in zip(*W, strict=True)
            ]
            for row in X
        ]
    },
    at_most=_once,
    slips=(
        Slip(
            "weights again for each block of tokens",
            lambda b, n: 4 * (n * n * (b // BLOCK) + b * n * (n // BLOCK) + b * n),
            "Your program loads the weights again for every block of tokens. Let each "
            "tile of weights stay in place while the tokens stream past it.",
        ),
        Slip(
            "columns narrower than 8",
            lambda b, n: 4 * (n * n + 2 * b * n * (n // BLOCK) + b * n),
            "Your program loads X more often than once for each 8 columns of W. How "
            "wide are your blocks of W?",
        ),
        Slip(
            "results back and forth",
            lambda b, n: _once(b, n) + 8 * b * n * (n // BLOCK - 1),
            "Your program stores its partial sums and loads them again. There is room "
            "to keep them until their column of tiles is done.",
        ),
    ),
    hint="Take 8 columns of W at a time. Can you keep the sums of all tokens for these "
    "columns, and let each tile of W stay while the blocks of X pass?",
    solution="""
        The sums of all tokens for 8 columns fit into the scratchpad, next to one tile
        of weights and one block of activations. So no sum has to leave before it is
        finished. An MXU's accumulators hold its sums in the same way:

        ```python
        def stationary(machine, b, n):
            for f in range(0, n, 8):
                sums = [machine.zeros(8, 8) for _ in range(0, b, 8)]
                for d in range(0, n, 8):
                    tile = machine.load("W", rows=(d, d + 8), cols=(f, f + 8))
                    for i, c in enumerate(sums):
                        x = machine.load("X", rows=(8 * i, 8 * i + 8), cols=(d, d + 8))
                        machine.multiply_add(c, x, tile)
                        machine.free(x)
                    machine.free(tile)
                for i, c in enumerate(sums):
                    machine.store(c, "Y", row=8 * i, col=f)
                    machine.free(c)
        ```
    """,
    points=2,
)


CHIPS, USERS, EACH, REACHED = 32, 64, 0.5e9, 0.8


def _written(nbytes, users=USERS, reached=REACHED):
    """Tokens per second where each chip reads `nbytes` in a step."""
    return users * reached * V5E.hbm_bandwidth / nbytes


DECODE = Number(
    id="02.14",
    title="The tokens that a slice generates",
    task=r"""
        **Given** a v5e slice of $4 \times 8$ chips that holds a model of 340 billion
        parameters in int8. Every step generates one token for each of 64 users. In a
        step, each chip reads its share of the weights once, and also its share of the
        0.5 GB that the model keeps for each user's text. Reads reach 80 % of the HBM's
        peak bandwidth, and nothing else takes time.

        **Wanted** the number of tokens that the slice generates per second, for all
        users together.
    """,
    given=stated(V5E, "hbm_bandwidth"),
    stub="rate = ...",
    unit="tokens/s",
    expected=lambda: _written((340e9 + USERS * EACH) / CHIPS),
    slips=(
        Slip(
            "one user's tokens",
            lambda right: right / USERS,
            "That is the number of tokens per second for one user. How many users get "
            "a token in every step?",
        ),
        Slip(
            "one chip reads all",
            lambda right: right / CHIPS,
            "You let one chip read everything. The chips read at the same time, and "
            "each of them reads only its own share.",
        ),
        Slip(
            "the users' bytes left out",
            lambda right: _written(340e9 / CHIPS),
            "A step also reads the 0.5 GB of each of the 64 users.",
        ),
        Slip(
            "the users' bytes on every chip",
            lambda right: _written(340e9 / CHIPS + USERS * EACH),
            "The 0.5 GB of each user are divided among the chips as well.",
        ),
        Slip(
            "two bytes per weight",
            lambda right: _written((2 * 340e9 + USERS * EACH) / CHIPS),
            "How many bytes does a weight take in int8?",
        ),
        Slip(
            "the time of a step",
            lambda right: USERS / right,
            "That is how long one step takes. How many tokens does a step generate?",
        ),
        slips.scaled(
            "the whole peak", 1 / REACHED, "The reads reach only a part of the peak."
        ),
    ),
    hint="How many bytes does one chip read in a step, and how long does that take?",
    solution="""
        In each step, the slice reads 340 GB of weights and 32 GB for its users, which
        is 11.6 GB on each chip. At 80 % of the peak, that takes 17.7 ms, and each step
        generates 64 tokens:

        ```python
        nbytes = (340e9 * 1 + 64 * 0.5e9) / 32
        seconds = nbytes / (0.8 * chips.TPU_V5E.hbm_bandwidth)
        rate = 64 / seconds
        ```

        This is a best case, because the exchange between the chips and all overheads
        are left out.
    """,
    points=2,
)

WIDTH = 2880


def _streamed(size=TRILLIUM.mxu_size, rate=TRILLIUM.host_bandwidth):
    """Tokens for which padded math takes as long as the int8 weights at `rate`."""
    padded = systolic.padded(WIDTH, size)
    return WIDTH**2 / rate * TRILLIUM.flops["bf16"] / (2 * padded**2)


STREAMED = Number(
    id="02.15",
    title="Weights from the host",
    task=r"""
        **Given** a Trillium that multiplies in bf16, and a layer of $2880 \times 2880$
        int8 weights. For every batch, the weights come over PCIe from the host again
        while the chip multiplies. The MXUs multiply the padding too, but PCIe carries
        none of it. The activations stay on the chip, and their traffic is hidden.

        **Wanted** the number of tokens in a batch whose multiplication takes as long as
        the transfer of the weights.
    """,
    given=stated(TRILLIUM, "flops.bf16", "mxu_size", "host_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    expected=_streamed,
    slips=(
        Slip(
            "padding on both sides, or on none",
            lambda right: _streamed(size=1),
            "Padding makes the multiplication longer, but not the transfer.",
        ),
        Slip(
            "one side padded",
            lambda right: (_streamed(size=1) * right) ** 0.5,
            "Both sides of the matrix are rounded up to whole tiles.",
        ),
        Slip(
            "the old side",
            lambda right: _streamed(size=V5P.mxu_size),
            "A Trillium's array is larger than those of the TPUs before it.",
        ),
        Slip(
            "padding upside down",
            lambda right: _streamed(size=1) ** 2 / right,
            "The zeros of the padding keep the MXUs busy longer. Do you then need more "
            "tokens or fewer?",
        ),
        Slip(
            "the HBM's rate",
            lambda right: _streamed(rate=TRILLIUM.hbm_bandwidth),
            "The weights do not come from the HBM. Over which link do they come?",
        ),
        slips.scaled(
            "twice as many",
            2,
            "An int8 weight takes one byte, each token takes two FLOPs with every "
            "weight, and the multiplication runs at the bf16 peak. Which of these "
            "three did you miss?",
        ),
        slips.both_directions(1 / 2),
    ),
    hint="Write down the two times for B tokens. Which of them depends on the padding?",
    solution="""
        Padding makes 2,880 into 3,072 on both sides, so 12 % of the multiplications are
        wasted, and fewer tokens are enough to fill the time of the transfer:

        ```python
        trillium = chips.TPU_V6E
        transfer = 2880 * 2880 / trillium.host_bandwidth
        one_token = 2 * 3072 * 3072 / trillium.flops["bf16"]
        tokens = transfer / one_token
        ```

        The answer is about 12,600 tokens. A decode step hardly ever has that many, but
        a few long prompts do.
    """,
    points=2,
)


def _legs(B, D, F, w, size, mxus, clock, bandwidth):
    """Seconds of the arrays, and of the HBM."""
    cycles = _tiles(D, F, size) * max(B, size) / mxus
    return cycles / clock, (w * D * F + 2 * B * D + 2 * B * F) / bandwidth


def _least(B, D, F, w, size, mxus, clock, bandwidth):
    return max(_legs(B, D, F, w, size, mxus, clock, bandwidth))


PACE = Function(
    id="02.16",
    title="What sets the pace",
    task=r"""
        **Given** a matmul of $B$ tokens with a weight matrix $[D, F]$, on a chip with
        `mxus` arrays of side `size` at `clock` Hz and an HBM of `bandwidth` bytes/s.
        $D$ and $F$ are rounded up to whole tiles, which the arrays share evenly (do not
        round the share). Each tile takes $B$ cycles, but never fewer than `size`. The
        time to fill and to empty the arrays is left out. A weight takes `w` bytes, and
        an activation or a result takes two. Weights, activations and results move
        between the HBM and the chip once, without padding. Arithmetic and traffic
        overlap perfectly.

        **Wanted** a function that returns the least time in seconds.
    """,
    stub="def least_seconds(B, D, F, w, size, mxus, clock, bandwidth): ...",
    spec=_least,
    units={"B": "tokens", "w": "bytes", "clock": "Hz", "bandwidth": "bytes/s"},
    gives=(("the time", "s"),),
    cases=lambda rng: (
        rng.randint(1, 1500),
        rng.randint(100, 9000),
        rng.randint(100, 9000),
        rng.choice((0.5, 1, 2)),
        rng.choice((128, 256)),
        rng.choice((2, 4, 8)),
        rng.randint(700, 2200) * 1e6,
        rng.randint(700, 8000) * 1e9,
    ),
    examples=(
        (1, 128, 128, 2, 128, 4, 1.5e9, 800e9),
        (2000, 2880, 2880, 1, 256, 4, 1.75e9, 1600e9),
        (64, 8192, 8192, 1, 128, 4, 1e9, 8000e9),
        (300, 4000, 4000, 0.5, 256, 8, 2e9, 700e9),
    ),
    slips=(
        Slip(
            "times added up",
            lambda *case: sum(_legs(*case)),
            "Arithmetic and traffic overlap, so only the longer of the two times "
            "counts.",
        ),
        Slip(
            "padding left out",
            lambda B, D, F, w, size, mxus, clock, bandwidth: max(
                D * F / size**2 * max(B, size) / (mxus * clock),
                _legs(B, D, F, w, size, mxus, clock, bandwidth)[1],
            ),
            "D and F are each rounded up to whole tiles.",
        ),
        Slip(
            "tiles that never wait",
            lambda B, D, F, w, size, mxus, clock, bandwidth: max(
                _tiles(D, F, size) * B / (mxus * clock),
                _legs(B, D, F, w, size, mxus, clock, bandwidth)[1],
            ),
            "With few tokens, a tile is done before the weights of the next tile have "
            "arrived.",
        ),
        Slip(
            "one array",
            lambda B, D, F, w, size, mxus, clock, bandwidth: _least(
                B, D, F, w, size, 1, clock, bandwidth
            ),
            "That is the time if a single array works. All the arrays of the chip "
            "share the tiles.",
        ),
        Slip(
            "padding moved too",
            lambda B, D, F, w, size, mxus, clock, bandwidth: max(
                _legs(B, D, F, w, size, mxus, clock, bandwidth)[0],
                (w * _tiles(D, F, size) * size**2 + 2 * B * (D + F)) / bandwidth,
            ),
            "The weights come from the HBM without padding.",
        ),
        Slip(
            "activations as narrow as weights",
            lambda B, D, F, w, size, mxus, clock, bandwidth: max(
                _legs(B, D, F, w, size, mxus, clock, bandwidth)[0],
                w * (D * F + B * D + B * F) / bandwidth,
            ),
            "Activations and results take two bytes per value, however many bytes a "
            "weight takes.",
        ),
        Slip(
            "weights alone",
            lambda B, D, F, w, size, mxus, clock, bandwidth: max(
                _legs(B, D, F, w, size, mxus, clock, bandwidth)[0],
                w * D * F / bandwidth,
            ),
            "You counted only the traffic of the weights. Activations and results move "
            "between the HBM and the chip as well.",
        ),
        Slip(
            "two bytes per weight",
            lambda B, D, F, w, size, mxus, clock, bandwidth: _least(
                B, D, F, 2, size, mxus, clock, bandwidth
            ),
            "A weight takes w bytes, which need not be two.",
        ),
    ),
    hint=(
        "There are two times, and the longer one counts. How many tiles does each "
        "array have, and how many cycles does one tile take?"
    ),
    solution="""
        A tile never takes fewer than `size` cycles, because loading the weights of the
        next tile takes that long. Arithmetic and traffic overlap, so the longer of
        their two times counts:

        ```python
        def least_seconds(B, D, F, w, size, mxus, clock, bandwidth):
            tiles = -(-D // size) * -(-F // size)
            math = tiles * max(B, size) / (mxus * clock)
            hbm = (w * D * F + 2 * B * D + 2 * B * F) / bandwidth
            return max(math, hbm)
        ```
    """,
    points=2,
)
