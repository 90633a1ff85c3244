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
        "TPUs: systolic arrays, padding, clocks from peaks, VMEM, slices and "
        "devices, like-for-like factors, decode on a slice, weights from the host, and "
        "a program whose traffic is counted"
    ),
    intro="""
        from the cycles of one tile to a program that loads every weight once, and three
        at the end that take several steps. Answers are in base units: cycles, tokens,
        Hz; shares are fractions. `chips` holds every data sheet:
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
        **Given** the chapter's toy array with the side of a v5p's MXU, empty before.
        One tile of weights falls in, one row a cycle, and 512 tokens enter, one a
        cycle. Values cross one cell a cycle.

        **Wanted** the cycles until the last sum has left.
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
            "Before the first token, every weight has to fall into its cell.",
        ),
        Slip(
            "one way across",
            lambda right: right - (side(V5P) - 1),
            "The last token runs to the right, and its sums run down.",
        ),
        Slip(
            "steps for cells",
            lambda right: right + 2,
            "From the first of so many cells to the last it takes one step fewer.",
        ),
        Slip(
            "crossing left out",
            lambda right: right - 2 * (side(V5P) - 1),
            "The last token has entered, but its wave has not reached the far corner.",
        ),
        Slip(
            "tokens alone",
            lambda right: 512,
            "That is how long the tokens take to enter. What comes before, and after?",
        ),
    ),
    hint="Three parts: weights fall in, tokens enter, the last one crosses the grid.",
    solution="""
        The weights take 128 cycles, the tokens 512, and the last one 127 steps right
        and 127 down.

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
        **Given** the chapter's toy array with the side of a Trillium's MXU, 100 tokens
        and a matrix of very many tiles. Each tile's weights load, one row a cycle,
        while the tile before it multiplies.

        **Wanted** the share of an MXU's cell-cycles that multiply, as a fraction.
    """,
    given=stated(chips.TPU_V6E, "mxu_size"),
    stub="used = ...",
    unit="",
    expected=lambda: 100 / side(TRILLIUM),
    slips=(
        slips.scaled(
            "the old side", 2, "Trillium's array is larger than those before it."
        ),
        Slip(
            "one weight a cell",
            lambda right: 100 / (100 + side(TRILLIUM)),
            "That loads each tile after the last one has finished. Each cell has room "
            "for a second weight.",
        ),
        slips.percent(),
        slips.inverse(),
    ),
    hint="With a second weight in each cell, a tile takes max(B, s) cycles. In how "
    "many of them does a cell work?",
    solution="""
        Loading the next tile takes as many cycles as the array has rows; in B of them
        a cell multiplies.

        ```python
        used = 100 / chips.TPU_V6E.mxu_size
        ```
    """,
)

USEFUL = Number(
    id="02.3",
    title="Odd shapes",
    task=r"""
        **Given** a weight matrix of $80 \times 640$ on a Trillium.

        **Wanted** the share of the multiplications that meet a real weight, as a
        fraction.
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
            "Trillium's array is larger than those before it.",
        ),
        slips.percent(),
        Slip(
            "the padded share",
            lambda right: 1 - right,
            "That is the share that meets padding. The other one is wanted.",
        ),
    ),
    hint="Round both sizes up to multiples of the array's side.",
    solution="""
        80 becomes 256, and 640 becomes 768: about a quarter is useful.

        ```python
        share = 80 * 640 / (256 * 768)
        ```
    """,
)

CLOCK = Number(
    id="02.4",
    title="A clock from a peak",
    task="""
        **Given** the v5p's bf16 peak, the number of its MXUs and their side:
        `chips.TPU_V5P.mxus`, `.mxu_size`.

        **Wanted** its clock.
    """,
    given=stated(chips.TPU_V5P, "flops.bf16", "mxus", "mxu_size"),
    stub="clock = ...",
    unit="Hz",
    expected=lambda: clock(V5P, V5P.mxus),
    slips=(
        slips.scaled(
            "a clock doubled",
            2,
            "The peak counts a multiply and its add as two FLOPs, in bf16, and the "
            "number of MXUs is the whole chip's, not one core's. Which of the three?",
        ),
        slips.scaled(
            "cores counted twice",
            1 / 2,
            "The number of MXUs is the whole chip's, both cores together.",
        ),
        slips.scaled(
            "one array",
            8,
            "That is the clock that a single MXU would need. How many has the chip?",
        ),
        slips.scaled(
            "one row",
            128,
            "An array of side 128 has 128 rows of as many cells.",
        ),
    ),
    hint="First compute the FLOPs per cycle of the whole chip.",
    solution="""
        ```python
        v5p = chips.TPU_V5P
        cells = v5p.mxus * v5p.mxu_size**2
        clock = v5p.flops["bf16"] / (2 * cells)
        ```

        1.75 GHz. Google's page does not print it.
    """,
)

COUNT = Number(
    id="02.5",
    title="The missing arrays",
    task="""
        **Given** Trillium's bf16 peak, the side of its MXU, and the v5p's clock of
        1.75 GHz.

        **Wanted** the number of MXUs that reach this peak at that clock.
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
            "That is what the page lists. Is that enough to reach the peak?",
        ),
        slips.scaled(
            "twice as many",
            2,
            "A multiply and its add are two FLOPs, and the peak is the one in bf16.",
        ),
        slips.scaled(
            "the old side", 4, "Trillium's array is larger than those before it."
        ),
    ),
    hint="Solve peak = 2 s² · arrays · clock for the arrays.",
    solution="""
        ```python
        v5p, trillium = chips.TPU_V5P, chips.TPU_V6E
        old = 2 * v5p.mxus * v5p.mxu_size**2
        clock = v5p.flops["bf16"] / old
        per_mxu = 2 * trillium.mxu_size**2 * clock
        count = trillium.flops["bf16"] / per_mxu
        ```

        Four, as an earlier revision of Trillium's page said.
    """,
)

VMEM = Number(
    id="02.6",
    title="Weights from VMEM",
    task="""
        **Given** a v5e that multiplies in int8, weights in int8 that wait in VMEM, $D$
        and $F$ large. Leave out the traffic of activations.

        **Wanted** the critical batch with VMEM's bandwidth instead of the HBM's.
    """,
    given=stated(chips.TPU_V5E, "flops.int8", "onchip_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    expected=lambda: V5E.flops["int8"] / V5E.onchip_bandwidth / 2,
    slips=(
        Slip(
            "HBM for VMEM",
            lambda right: V5E.flops["int8"] / V5E.hbm_bandwidth / 2,
            "That is the critical batch for weights in the HBM.",
        ),
        slips.scaled(
            "bytes per weight",
            2,
            "An int8 weight is one byte, and a token does two FLOPs with it.",
        ),
        slips.scaled(
            "the bf16 peak", 1 / 2, "The chip multiplies in int8: which peak is that?"
        ),
        Slip(
            "rounded up",
            lambda right: math.ceil(right),
            "Leave the quotient as it is: it need not be a whole number.",
        ),
        slips.inverse(),
    ),
    hint="Each token does two OPs with every weight; a weight is one byte.",
    solution="""
        $2B$ operations per byte, against the ratio of the two rates:

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
        core's vector units does one operation a cycle: `chips.TPU_V4.lanes` counts
        them, `.cores` the cores.

        **Wanted** the vector operations per score that take as long as the two matmuls'
        work for this score.
    """,
    given=stated(chips.TPU_V4, "flops.bf16", "cores", "lanes", "clock"),
    stub="operations = ...",
    unit="operations",
    expected=lambda: 4 * 256 * V4.cores * V4.lanes * V4.clock / V4.flops["bf16"],
    slips=(
        slips.scaled(
            "half of it",
            1 / 2,
            "A score is made in one matmul and used in another, and the chip has the "
            "lanes of two cores.",
        ),
        slips.scaled(
            "two operations a cycle",
            2,
            "Here a lane does one operation a cycle, a multiply or an add.",
        ),
        Slip(
            "for one operation",
            lambda right: 4 * 256 / right,
            "So many FLOPs take as long as one vector operation. How many does a score "
            "cost?",
        ),
        Slip(
            "FLOPs for operations",
            lambda right: 4 * 256,
            "Those are FLOPs of the MXUs. How many of them take as long as one vector "
            "operation?",
        ),
        slips.inverse(),
    ),
    hint="A score costs 2 H FLOPs to make and 2 H to use. How much faster than the "
    "vector units are the MXUs?",
    solution="""
        ```python
        v4 = chips.TPU_V4
        vector_rate = v4.cores * v4.lanes * v4.clock
        operations = 4 * 256 * vector_rate / v4.flops["bf16"]
        ```

        With heads twice as large there is room for twice as many operations, 16 instead
        of 8.
    """,
)

HOSTS = Number(
    id="02.8",
    title="Hosts of a slice",
    task=r"""
        **Given** a v5p slice of $8 \times 8 \times 12$ chips.

        **Wanted** the number of its hosts.
    """,
    stub="hosts = ...",
    unit="hosts",
    rtol=0,
    expected=lambda: Torus(V5P, (8, 8, 12)).hosts,
    slips=(
        slips.scaled("two trays a host", 1 / 2, "That holds for v5e and Trillium."),
        slips.scaled("chips", 4, "Those are the chips. Four of them share a host."),
        Slip(
            "cubes",
            lambda right: Torus(V5P, (8, 8, 12)).cubes,
            "Those are the cubes of 4 × 4 × 4.",
        ),
    ),
    hint="A tray has four chips.",
    solution="""
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
            "Those are the chips. Which chips show up as more than one device?",
        ),
        Slip(
            "hosts",
            lambda right: Torus(IRONWOOD, (4, 8, 8)).hosts,
            "Those are the hosts.",
        ),
        Slip(
            "cubes",
            lambda right: Torus(IRONWOOD, (4, 8, 8)).cubes,
            "Those are the cubes of 4 × 4 × 4.",
        ),
    ),
    hint="Ironwood is made of two chiplets.",
    solution="""
        ```python
        devices = 4 * 8 * 8 * chips.TPU_7X.devices_per_chip
        ```

        A mesh over this slice has 512 devices, and a "device" half of the chip's rates.
    """,
)

FACTOR = Number(
    id="02.10",
    title="Like for like",
    task="""
        **Given** a launch that calls Ironwood "more than 16 times" a TPU v4.

        **Wanted** the factor by which a compute-bound bf16 program gets faster, chip
        against chip.
    """,
    given=stated(chips.TPU_7X, "flops.bf16") | stated(chips.TPU_V4, "flops.bf16"),
    stub="factor = ...",
    unit="",
    expected=lambda: IRONWOOD.flops["bf16"] / V4.flops["bf16"],
    slips=(
        Slip(
            "two precisions",
            lambda right: IRONWOOD.flops["fp8"] / V4.flops["bf16"],
            "Above the line is fp8. Which precision does the program use?",
        ),
        Slip(
            "bandwidth",
            lambda right: IRONWOOD.hbm_bandwidth / V4.hbm_bandwidth,
            "That is the factor for a memory-bound program.",
        ),
        slips.device_not_chip(1 / 2),
        slips.inverse(),
    ),
    hint="Both rates are per chip and in bf16.",
    solution="""
        ```python
        factor = chips.TPU_7X.flops["bf16"] / chips.TPU_V4.flops["bf16"]
        ```

        The claim, as reported from Hot Chips 2025, compares 4,614 with 275 TFLOPs/s:
        fp8 with bf16, twice as much.
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
        side `size`, as the chapter's model has it. The weights of a tile take `size`
        cycles to fall in: those of the first tile begin at once, those of any other
        when the tokens of the tile before begin to enter. The tokens of a tile enter
        one a cycle, once its weights are in place and the tile before has taken in its
        last token. When the last of all has entered, it still has to cross the grid.

        **Wanted** a function that returns the cycles of the whole product.
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
            "one weight a cell",
            lambda B, D, F, size: systolic.cycles(
                B, _tiles(D, F, size), size, prefetch=False
            ),
            "The weights of the next tile fall while this one multiplies.",
        ),
        Slip(
            "tiles that never wait",
            lambda B, D, F, size: size + _tiles(D, F, size) * B + 2 * size - 2,
            "With few tokens a tile ends before the weights of the next have arrived.",
        ),
        Slip(
            "whole tiles only",
            lambda B, D, F, size: systolic.cycles(B, max(1, D * F // size**2), size),
            "D and F are each rounded up to whole tiles.",
        ),
        Slip(
            "rounded up once",
            lambda B, D, F, size: systolic.cycles(B, math.ceil(D * F / size**2), size),
            "Round D and F up one by one, and not their product.",
        ),
        Slip(
            "the last tile waits",
            lambda B, D, F, size: (
                size + _tiles(D, F, size) * max(B, size) + 2 * size - 2
            ),
            "No weights load behind the last tile: it takes no longer than its tokens.",
        ),
        Slip(
            "the first weights left out",
            lambda B, D, F, size: _cycles(B, D, F, size) - size,
            "Before the first token, every weight has to fall into its cell.",
        ),
        Slip(
            "crossing left out",
            lambda B, D, F, size: _cycles(B, D, F, size) - (2 * size - 2),
            "The last token has entered, but its wave has not reached the far corner.",
        ),
        Slip(
            "steps for cells",
            lambda B, D, F, size: _cycles(B, D, F, size) + 2,
            "From the first of so many cells to the last it takes one step fewer.",
        ),
    ),
    hint="Round D and F up to tiles. Every tile but the last takes max(B, size) "
    "cycles.",
    solution="""
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
    title="The fewest arrays",
    task="""
        **Given** a bf16 peak in FLOPs/s, the side of an array, and the fastest clock
        that you find credible, in Hz.

        **Wanted** a function that returns the fewest arrays with which that peak can be
        reached.
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
            "Where a whole number of arrays reaches the peak exactly, it is enough.",
        ),
        Slip(
            "rounded down",
            lambda peak, side, fastest: int(peak / (2 * side**2 * fastest)),
            "With that many the peak is not reached yet.",
        ),
        Slip(
            "multiply-add",
            lambda peak, side, fastest: math.ceil(peak / (side**2 * fastest)),
            "A cell does two FLOPs in a cycle.",
        ),
        Slip(
            "not rounded",
            lambda peak, side, fastest: peak / (2 * side**2 * fastest),
            "A chip has a whole number of them.",
        ),
    ),
    hint="Solve peak = 2 s² · arrays · clock for the arrays, at the fastest clock.",
    solution="""
        ```python
        import math


        def fewest_mxus(peak, side, fastest):
            return math.ceil(peak / (2 * side**2 * fastest))
        ```

        For Trillium at 2 GHz it returns four.
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
        and `Y` of $b \times n$ values of four bytes, $b$ and $n$ multiples of 8. Its
        scratchpad has room for two blocks of $8 \times 8$ and for $b \times 8$ values
        more. You have `machine.load(name, rows=(i, j), cols=(k, l))`,
        `machine.zeros(rows, cols)`, `machine.multiply_add(c, a, b)` for
        $c \mathrel{+}= ab$, `machine.store(block, name, row=i, col=j)` and
        `machine.free(block)`.

        **Wanted** a program that leaves $XW$ in `Y`. It may move every weight once,
        every result once, and `X` once for each block column of 8, that is
        $4 (n^2 + bn + bn \cdot n/8)$ bytes. The machine counts.
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
            "Every block of tokens loads the weights anew. Let the tile of weights "
            "stand and the tokens stream.",
        ),
        Slip(
            "columns narrower than 8",
            lambda b, n: 4 * (n * n + 2 * b * n * (n // BLOCK) + b * n),
            "X passes once for each block column of W. Are your columns 8 wide?",
        ),
        Slip(
            "results back and forth",
            lambda b, n: _once(b, n) + 8 * b * n * (n // BLOCK - 1),
            "The sums leave the scratchpad and come back. There is room to keep them "
            "until their column of tiles is done.",
        ),
    ),
    hint="Take one block column of W at a time. Keep the sums of all tokens for it, "
    "and let each of its tiles stay while the blocks of X pass.",
    solution="""
        The sums of all tokens for one block column fit next to one tile of weights and
        one block of activations: these are the accumulators of an MXU.

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
    title="What a slice writes",
    task=r"""
        **Given** a v5e slice of $4 \times 8$ chips that holds a model of 340 billion
        parameters in int8. Every step writes one token for each of 64 users. In a step
        each chip reads its share of the weights once, and its share of the 0.5 GB that
        the model keeps of each user's text. Reads reach 80 % of the HBM's peak, and
        nothing else takes time.

        **Wanted** the tokens that the slice writes in a second, for all users together.
    """,
    given=stated(V5E, "hbm_bandwidth"),
    stub="rate = ...",
    unit="tokens/s",
    expected=lambda: _written((340e9 + USERS * EACH) / CHIPS),
    slips=(
        Slip(
            "one user's tokens",
            lambda right: right / USERS,
            "That is what one user sees. All of them get a token from every step.",
        ),
        Slip(
            "one chip reads all",
            lambda right: right / CHIPS,
            "The chips read at the same time, each its own share.",
        ),
        Slip(
            "the users' bytes left out",
            lambda right: _written(340e9 / CHIPS),
            "A step also reads what is kept of the text of each of the 64 users.",
        ),
        Slip(
            "the users' bytes on every chip",
            lambda right: _written(340e9 / CHIPS + USERS * EACH),
            "What is kept of the users' text is shared out over the chips as well.",
        ),
        Slip(
            "two bytes a weight",
            lambda right: _written((2 * 340e9 + USERS * EACH) / CHIPS),
            "How many bytes does a weight take in int8?",
        ),
        Slip(
            "the time of a step",
            lambda right: USERS / right,
            "So long takes one step. How many tokens does it write?",
        ),
        slips.scaled(
            "the whole peak", 1 / REACHED, "The reads do not reach all of the peak."
        ),
    ),
    hint="How many bytes does one chip read in a step, and how long does that take?",
    solution="""
        The slice reads 340 GB of weights and 32 GB for its users, 11.6 GB on each chip.
        At 80 % of the peak that takes 17.7 ms, and each step writes 64 tokens.

        ```python
        nbytes = (340e9 * 1 + 64 * 0.5e9) / 32
        seconds = nbytes / (0.8 * chips.TPU_V5E.hbm_bandwidth)
        rate = 64 / seconds
        ```

        A best case: the chips' exchange and every overhead are left out.
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
        int8 weights that come from the host again for every batch, while the chip
        multiplies. The MXUs multiply the padding too; PCIe carries none. The
        activations stay on the chip, and their traffic is hidden.

        **Wanted** the tokens of a batch whose multiplication takes as long as the
        transfer.
    """,
    given=stated(TRILLIUM, "flops.bf16", "mxu_size", "host_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    expected=_streamed,
    slips=(
        Slip(
            "padding on both sides, or on none",
            lambda right: _streamed(size=1),
            "Padding lengthens the multiplication, and not the transfer.",
        ),
        Slip(
            "one side padded",
            lambda right: (_streamed(size=1) * right) ** 0.5,
            "Both sides of the matrix are rounded up to whole tiles.",
        ),
        Slip(
            "the old side",
            lambda right: _streamed(size=V5P.mxu_size),
            "Trillium's array is larger than those before it.",
        ),
        Slip(
            "padding upside down",
            lambda right: _streamed(size=1) ** 2 / right,
            "Zeros keep the MXUs busy longer: does that ask for more tokens or fewer?",
        ),
        Slip(
            "the HBM's rate",
            lambda right: _streamed(rate=TRILLIUM.hbm_bandwidth),
            "The weights are not in the HBM: which wire do they come over?",
        ),
        slips.scaled(
            "twice as many",
            2,
            "An int8 weight is one byte, a token does two FLOPs with it, and the "
            "multiplication runs at the bf16 peak.",
        ),
        slips.both_directions(1 / 2),
    ),
    hint="Write down the two times for B tokens. Which of them sees the padding?",
    solution="""
        2,880 becomes 3,072 on both sides, so 12 % of the multiplications are wasted,
        and fewer tokens fill the time of the transfer.

        ```python
        trillium = chips.TPU_V6E
        transfer = 2880 * 2880 / trillium.host_bandwidth
        one_token = 2 * 3072 * 3072 / trillium.flops["bf16"]
        tokens = transfer / one_token
        ```

        It takes thousands of tokens. A decode step never has so many, and a long prompt
        does.
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
        **Given** $B$ tokens times a weight matrix $[D, F]$, on a chip with `mxus`
        arrays of side `size` at `clock` Hz, and an HBM of `bandwidth` bytes/s. $D$ and
        $F$ are rounded up to whole tiles, which the arrays share evenly (do not round
        the share). Each tile takes $B$ cycles, but never fewer than `size`; filling and
        emptying are left out. A weight takes `w` bytes, an activation or a result two.
        Weights, activations and results cross the HBM once, without padding. Arithmetic
        and traffic overlap perfectly.

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
            "legs added up",
            lambda *case: sum(_legs(*case)),
            "Arithmetic and traffic overlap: the longer of them counts.",
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
            "With few tokens a tile ends before the weights of the next have arrived.",
        ),
        Slip(
            "one array",
            lambda B, D, F, w, size, mxus, clock, bandwidth: _least(
                B, D, F, w, size, 1, clock, bandwidth
            ),
            "All arrays of the chip work.",
        ),
        Slip(
            "padding on the wire",
            lambda B, D, F, w, size, mxus, clock, bandwidth: max(
                _legs(B, D, F, w, size, mxus, clock, bandwidth)[0],
                (w * _tiles(D, F, size) * size**2 + 2 * B * (D + F)) / bandwidth,
            ),
            "The weights cross the HBM without padding.",
        ),
        Slip(
            "activations as narrow as weights",
            lambda B, D, F, w, size, mxus, clock, bandwidth: max(
                _legs(B, D, F, w, size, mxus, clock, bandwidth)[0],
                w * (D * F + B * D + B * F) / bandwidth,
            ),
            "Activations and results take two bytes each, whatever a weight takes.",
        ),
        Slip(
            "weights alone",
            lambda B, D, F, w, size, mxus, clock, bandwidth: max(
                _legs(B, D, F, w, size, mxus, clock, bandwidth)[0],
                w * D * F / bandwidth,
            ),
            "Activations and results cross the HBM as well.",
        ),
        Slip(
            "two bytes a weight",
            lambda B, D, F, w, size, mxus, clock, bandwidth: _least(
                B, D, F, 2, size, mxus, clock, bandwidth
            ),
            "A weight takes w bytes, which need not be two.",
        ),
    ),
    hint=(
        "There are two times, and the longer one counts. How many tiles has each "
        "array, and how many cycles does one of them take?"
    ),
    solution="""
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
