"""Questions of chapter 03, "GPUs"."""

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
from shardmath.hardware import chips, waves

CHAPTER = Chapter(
    title="GPUs",
    topics=(
        "GPUs: peaks, clocks, registers, bytes in flight, tiles and waves, two "
        "programs whose cost is counted, and three questions that take several steps"
    ),
    intro="""
        from a single product to programs whose cost is counted. The last three
        questions take several steps. Answers are in base units: FLOPs, bytes, seconds,
        Hz. `chips` holds every data sheet: `chips.H100.fact("cores").value`,
        `chips.B200.hbm_bandwidth`.
    """,
    setup="""
        import jax.numpy as jnp

        from shardmath.exercises import check, report
        from shardmath.hardware import chips
    """,
)


def _fact(chip, name):
    return chip.fact(name).value


HIGHEST_CLOCK = chips.H100.fact("clock").said("book_gpu")  # of which others count

PER_CLOCK = Number(
    id="03.1",
    title="One clock of an H100",
    task="""
        **Given** the record `chips.H100`.

        **Wanted** the number of dense bf16 FLOPs that the Tensor Cores of the whole
        chip do in one clock cycle.
    """,
    given=stated(chips.H100, "cores", "flops_per_clock"),
    stub="flops = ...",
    unit="FLOPs",
    expected=lambda: _fact(chips.H100, "cores") * _fact(chips.H100, "flops_per_clock"),
    slips=(
        slips.multiply_add(1 / 2),
        slips.sparse_peak(2),
        Slip(
            "the highest clock",
            lambda right: chips.H100.flops["bf16"] / HIGHEST_CLOCK,
            "The H100 may run at 1.98 GHz, but its peak is stated for a lower clock.",
        ),
        slips.scaled(
            "one Tensor Core per SM",
            1 / 4,
            "That counts one Tensor Core per SM. How many Tensor Cores does an SM "
            "have?",
        ),
        slips.scaled(
            "of a Tensor Core",
            4,
            "The FLOPs per clock in the record are already those of a whole SM.",
        ),
        Slip(
            "the lanes",
            lambda right: 2 * _fact(chips.H100, "cores") * _fact(chips.H100, "lanes"),
            "Those are the FLOPs of the lanes. The Tensor Cores do far more.",
        ),
        Slip(
            "one SM",
            lambda right: _fact(chips.H100, "flops_per_clock"),
            "Those are the FLOPs of one SM. The chip has more than a hundred SMs.",
        ),
    ),
    hint="Formula (3.2) multiplies by the clock to get a rate. What is left for a "
    "single clock cycle?",
    solution="""
        All SMs work in every clock cycle, and each of them does the number of FLOPs
        that the record states:

        ```python
        h100 = chips.H100
        flops = h100.fact("cores").value * h100.fact("flops_per_clock").value
        ```

        That is about half a million FLOPs in each of the 1.83 billion clock cycles of a
        second.
    """,
)

CLOCK = Number(
    id="03.2",
    title="The clock behind a peak",
    task="""
        **Given** the fp32 peak of a B200, which counts one multiply-add per lane and
        clock cycle.

        **Wanted** the clock for which this peak is stated.
    """,
    given=stated(chips.B200, "flops.fp32", "cores", "lanes"),
    stub="hertz = ...",
    unit="Hz",
    rtol=0.003,
    expected=lambda: (
        chips.B200.flops["fp32"]
        / (2 * _fact(chips.B200, "cores") * _fact(chips.B200, "lanes"))
    ),
    slips=(
        slips.scaled(
            "half of the FLOPs or of the SMs",
            2,
            "A multiply and the add that follows are two FLOPs, and the SMs of both "
            "dies work. Did you leave out the factor of two for the FLOPs, or the "
            "second die?",
        ),
        Slip(
            "another source's peak",
            lambda right: (
                chips.B200.fact("flops.fp32").said("stas")
                / (2 * _fact(chips.B200, "cores") * _fact(chips.B200, "lanes"))
            ),
            "That uses the peak that another source prints. The task uses NVIDIA's.",
        ),
        Slip(
            "the clock reported",
            lambda right: _fact(chips.B200, "clock"),
            "That is the highest clock that the device reports. Which clock follows "
            "from the peak?",
        ),
        Slip(
            "one SM",
            lambda right: right * _fact(chips.B200, "cores"),
            "That is the clock that the chip would need if it had only one SM.",
        ),
        Slip(
            "clock of the bf16 peak",
            lambda right: (
                chips.B200.flops["bf16"]
                / _fact(chips.B200, "cores")
                / _fact(chips.B200, "flops_per_clock")
            ),
            "That is the clock for which the Tensor Cores' peak is stated. The lanes' "
            "peak is stated for another one.",
        ),
        Slip(
            "Tensor Core peak",
            lambda right: right * chips.B200.flops["bf16"] / chips.B200.flops["fp32"],
            "That uses the peak of the Tensor Cores. The lanes have a peak of their "
            "own.",
        ),
    ),
    hint="Every lane does one multiply-add per clock cycle. How many lanes does the "
    "whole chip have?",
    solution="""
        Every lane does two FLOPs per clock cycle, a multiply and an add. Dividing the
        peak by the FLOPs that all the lanes do in one cycle gives the clock:

        ```python
        b200 = chips.B200
        lanes = b200.fact("cores").value * b200.fact("lanes").value
        hertz = b200.flops["fp32"] / (2 * lanes)
        ```

        This is 1.98 GHz, within 1 % of the highest clock that the device reports. (With
        the 80 TFLOPs/s that another source prints, it would be 2.11 GHz, a clock at
        which the device never runs.)
    """,
)

RESIDENT = Number(
    id="03.3",
    title="Warps that fit",
    task="""
        **Given** a kernel on an H100 that takes 96 registers of four bytes per thread.
        Only these registers and the largest number of warps limit it. The registers of
        an SM are divided into four equal subpartitions, and all the registers of a warp
        are in the same one.

        **Wanted** the number of warps that are resident on one SM.
    """,
    given=stated(chips.H100, "cores", "registers_bytes", "warp_threads", "warps"),
    stub="warps = ...",
    unit="warps",
    rtol=0.001,
    expected=lambda: float(4 * (2**16 // (4 * 96 * 32))),
    slips=(
        Slip(
            "the file as one",
            lambda right: float(2**18 // (4 * 96 * 32)),
            "The registers of a warp cannot be spread over two subpartitions. How many "
            "warps fit into one of them?",
        ),
        Slip(
            "not rounded",
            lambda right: 2**18 / (4 * 96 * 32),
            "A warp is either resident as a whole or not at all.",
        ),
        Slip(
            "rounded up",
            lambda right: right + 4,
            "With that many warps, the registers of a subpartition are not enough for "
            "the last of them.",
        ),
        Slip(
            "one subpartition",
            lambda right: right / 4,
            "That is the number of warps in one subpartition. An SM has four "
            "subpartitions.",
        ),
        Slip(
            "the most possible",
            lambda right: float(_fact(chips.H100, "warps")),
            "That many warps can be resident only if their registers fit. Do they?",
        ),
        Slip(
            "bytes for registers",
            lambda right: float(4 * (2**16 // (96 * 32))),
            "The record gives the size of the register file in bytes, and a register "
            "takes four of them.",
        ),
        slips.scaled(
            "threads for warps",
            32,
            "That is the number of threads. A warp has 32 of them.",
        ),
        Slip(
            "the occupancy",
            lambda right: right / _fact(chips.H100, "warps"),
            "That is the share of the largest possible number of warps. The question "
            "asks for the number of warps.",
        ),
    ),
    hint="A register takes four bytes, and a warp has 32 threads. How many whole warps "
    "fit into one subpartition?",
    solution="""
        A warp needs registers for 32 threads, all in the same subpartition. Only whole
        warps fit, so the quotient is rounded down for each subpartition:

        ```python
        h100 = chips.H100
        file = h100.fact("registers_bytes").value // h100.fact("cores").value
        warps = 4 * (file // 4 // (4 * 96 * 32))
        ```

        Five warps fit into each subpartition, which makes 20 of 64 warps, or an
        occupancy of 31 %. A register file in one piece would hold 21 warps.
    """,
)

IN_FLIGHT = Number(
    id="03.4",
    title="Bytes on their way to a B200",
    task="""
        **Given** the latency of a B200's HBM and the highest clock that the B200
        reports, both in its record.

        **Wanted** the smallest number of bytes that have to be in flight on the whole
        chip to use all of the bandwidth. Assume that reads take no longer than they do
        when the memory is idle.
    """,
    given=stated(chips.B200, "hbm_bandwidth", "hbm_latency", "clock"),
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: (
        chips.B200.hbm_bandwidth
        * _fact(chips.B200, "hbm_latency")
        / _fact(chips.B200, "clock")
    ),
    slips=(
        Slip(
            "one SM",
            lambda right: right / _fact(chips.B200, "cores"),
            "That is the share of one SM. The question asks for the bytes of the whole "
            "chip.",
        ),
        Slip(
            "clocks for seconds",
            lambda right: right * _fact(chips.B200, "clock"),
            "The latency is given in clock cycles, but the bandwidth is in bytes per "
            "second.",
        ),
        Slip(
            "latency of the L2",
            lambda right: (
                right
                * _fact(chips.B200, "l2_latency")
                / _fact(chips.B200, "hbm_latency")
            ),
            "That uses the latency of the L2. These bytes come from the HBM.",
        ),
    ),
    hint="Use Little's law, formula (3.3). The record states the latency in clock "
    "cycles. How many seconds is that?",
    solution="""
        By Little's law, the bytes in flight are the bandwidth times the latency, which
        has to be in seconds:

        ```python
        b200 = chips.B200
        seconds = b200.fact("hbm_latency").value / b200.fact("clock").value
        nbytes = b200.hbm_bandwidth * seconds
        ```

        A B200 needs at least 3.5 MB in flight, while an H100 needs 1.2 or 1.3 MB,
        depending on which of its two clocks you use. Under load, reads take longer. In
        the chapter's table, even 9.7 MB in flight, 64 KiB on each SM, reached only 81 %
        of the bandwidth.
    """,
)

ASKED = Number(
    id="03.5",
    title="Too little in flight",
    task="""
        **Given** a kernel on an H100 with eight resident warps on every SM. Each thread
        always has one load of 16 bytes in flight, and requests the next load when this
        one arrives.

        **Wanted** the highest rate at which the chip can read, by Little's law.
    """,
    given=stated(chips.H100, "cores", "warp_threads", "hbm_latency", "clock"),
    stub="rate = ...",
    unit="bytes/s",
    rtol=0.005,
    expected=lambda: (
        _fact(chips.H100, "cores")
        * 8
        * 32
        * 16
        * _fact(chips.H100, "clock")
        / _fact(chips.H100, "hbm_latency")
    ),
    slips=(
        Slip(
            "the full bandwidth",
            lambda right: chips.H100.hbm_bandwidth,
            "That is the full bandwidth. Are there enough bytes in flight for it?",
        ),
        slips.scaled(
            "one thread per warp",
            1 / 32,
            "You counted one load per warp. But every thread of a warp has a load in "
            "flight.",
        ),
        slips.scaled(
            "all 64 warps",
            8,
            "Only eight of the 64 possible warps are resident here.",
        ),
        slips.scaled(
            "one warp per SM",
            1 / 8,
            "You counted one warp per SM. Every SM has eight warps here.",
        ),
        slips.scaled("loads of four bytes", 1 / 4, "Each load asks for 16 bytes."),
        Slip(
            "the highest clock",
            lambda right: right * HIGHEST_CLOCK / _fact(chips.H100, "clock"),
            "The H100 has two clocks. Use the one that the task gives.",
        ),
        Slip(
            "one SM",
            lambda right: right / _fact(chips.H100, "cores"),
            "That is the rate at which one SM receives bytes. All the SMs read at the "
            "same time.",
        ),
        Slip(
            "latency of the L2",
            lambda right: (
                right
                * _fact(chips.H100, "hbm_latency")
                / _fact(chips.H100, "l2_latency")
            ),
            "That uses the latency of the L2. These bytes come from the HBM.",
        ),
    ),
    hint="How many bytes are in flight on the whole chip? Solve formula (3.3) for the "
    "bandwidth.",
    solution="""
        Every thread has one load in flight. All these loads arrive within one latency,
        and by then each thread has requested the next one. So the rate is the bytes in
        flight divided by the latency:

        ```python
        h100 = chips.H100
        threads = h100.fact("cores").value * 8 * h100.fact("warp_threads").value
        seconds = h100.fact("hbm_latency").value / h100.fact("clock").value
        rate = threads * 16 / seconds
        ```

        This is 1.41 TB/s, 42 % of the memory's bandwidth.
    """,
)

USED = Number(
    id="03.6",
    title="The last wave of an A100",
    task=r"""
        **Given** a matmul $X[1024, D] \cdot W[D, 8192]$, cut into tiles of 128 × 256
        (rows × columns), on an A100.

        **Wanted** the share of the SMs' time that they spend on tiles, until the last
        wave ends.
    """,
    given=stated(chips.A100_80GB, "cores"),
    stub="share = ...",
    unit="",
    expected=lambda: waves.Waves(256, _fact(chips.A100_80GB, "cores")).used,
    slips=(
        Slip(
            "waves rounded down",
            lambda right: 256 / (2 * _fact(chips.A100_80GB, "cores")),
            "A share above 1 would mean that more SMs are busy than there are. Did you "
            "leave out the last wave, which takes as long as a full one?",
        ),
        Slip(
            "the last wave alone",
            lambda right: (
                waves.Waves(256, _fact(chips.A100_80GB, "cores")).last
                / _fact(chips.A100_80GB, "cores")
            ),
            "That is the share of the SMs that are busy in the last wave. The waves "
            "before it are full.",
        ),
        Slip(
            "the idle share",
            lambda right: 1 - right,
            "That is the share of the time in which SMs wait. The question asks for "
            "the other share.",
        ),
        Slip(
            "square tiles",
            lambda right: waves.Waves(512, _fact(chips.A100_80GB, "cores")).used,
            "That is the share with tiles of 128 × 128.",
        ),
    ),
    hint="How many tiles are there, and how many waves do they take? The second factor "
    "of (3.5) compares the two.",
    solution="""
        The 8 · 32 = 256 tiles take three waves on 108 SMs, and in the last wave many
        SMs have no tile:

        ```python
        tiles = (1024 // 128) * (8192 // 256)
        sms = chips.A100_80GB.fact("cores").value
        share = tiles / (-(-tiles // sms) * sms)
        ```
    """,
)

_EDGE = waves.TiledMatmul(1000, 8192, 9000, chips.H100, (128, 256))

EDGE = Number(
    id="03.7",
    title="Edges and idle SMs",
    task=r"""
        **Given** the matmul $X[1000, 8192] \cdot W[8192, 9000]$ in bf16, cut into tiles
        of 128 × 256, on an H100. Only the math counts.

        **Wanted** the time that the matmul takes, with whole tiles and whole waves.
    """,
    given=stated(chips.H100, "cores", "flops.bf16"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: _EDGE.seconds,
    slips=(
        slips.scaled(
            "sparse peak, or one FLOP",
            1 / 2,
            "The dense peak counts, and a multiply and the add that follows are two "
            "FLOPs. Which of these two facts did you miss?",
        ),
        Slip(
            "the highest clock",
            lambda right: right * _fact(chips.H100, "clock") / HIGHEST_CLOCK,
            "The H100 may run at 1.98 GHz, but its peak is stated for a lower clock.",
        ),
        Slip(
            "ideal time",
            lambda right: _EDGE.ideal,
            "That is the ideal time, in which tiles and waves could be divided. Here "
            "they cannot.",
        ),
        Slip(
            "idle SMs at work",
            lambda right: right * _EDGE.waves.used,
            "In the last wave, some SMs have no tile, and they cannot take over a part "
            "of a tile from another SM.",
        ),
        slips.scaled(
            "waves rounded down", 2 / 3, "The last wave takes as long as any other."
        ),
        slips.scaled(
            "one wave",
            1 / 3,
            "That is the time of one wave. How many tiles are there, and how many SMs?",
        ),
        Slip(
            "square tiles",
            lambda right: (
                waves.TiledMatmul(1000, 8192, 9000, chips.H100, (128, 128)).seconds
            ),
            "That is the time with tiles of 128 × 128.",
        ),
        Slip(
            "the whole chip on each tile",
            lambda right: right / _fact(chips.H100, "cores"),
            "Only one SM works on each tile, and it has only its share of the chip's "
            "peak.",
        ),
        Slip(
            "edges cut off",
            lambda right: right * _EDGE.covered,
            "A tile that hangs over the edge costs as much as a whole one.",
        ),
    ),
    hint="How many tiles are there, and how many waves do they take? One wave lasts as "
    "long as one tile on one SM.",
    solution="""
        The 8 · 36 = 288 tiles take three waves, and each wave takes as long as one tile
        on one SM:

        ```python
        h100 = chips.H100
        of_one_sm = h100.flops["bf16"] / h100.fact("cores").value
        seconds = 3 * 2 * 128 * 256 * 8192 / of_one_sm
        ```

        This is 215 µs, where 149 µs would be ideal. The edges cost 5 %, and the SMs
        without a tile cost 27 %.
    """,
)

DENSE = Number(
    id="03.8",
    title="A B300 in fp4",
    task="""
        **Given** a B300 that multiplies ordinary (dense) matrices in fp4.

        **Wanted** its critical intensity.
    """,
    given=stated(chips.B300, "flops.fp4", "sparse.fp4", "hbm_bandwidth"),
    stub="intensity = ...",
    unit="FLOPs/byte",
    expected=lambda: chips.B300.intensity("fp4"),
    slips=(
        Slip(
            "sparse peak",
            lambda right: _fact(chips.B300, "sparse.fp4") / chips.B300.hbm_bandwidth,
            "That uses the sparse rate. Ordinary matrices are multiplied at the dense "
            "rate.",
        ),
        Slip(
            "sparse, halved",
            lambda right: (
                _fact(chips.B300, "sparse.fp4") / 2 / chips.B300.hbm_bandwidth
            ),
            "On a B300, the dense fp4 rate is not half of the sparse one. The record "
            "states both.",
        ),
        Slip(
            "another format",
            lambda right: chips.B300.intensity("fp8"),
            "That uses the fp8 peak.",
        ),
        Slip(
            "the 16-bit peak",
            lambda right: chips.B300.intensity("bf16"),
            "That uses the bf16 peak.",
        ),
        slips.scaled(
            "critical batch",
            1 / 4,
            "That is a critical batch, in tokens. The question asks for FLOPs per "
            "byte.",
        ),
    ),
    hint="The record has two rates for fp4. Which one can ordinary matrices use?",
    solution="""
        Critical intensity is peak divided by bandwidth. The matrices are not sparse, so
        the dense peak counts:

        ```python
        intensity = chips.B300.flops["fp4"] / chips.B300.hbm_bandwidth
        ```

        That is 1,688 FLOPs for every byte. With fp4 weights of half a byte each, the
        critical batch is 422 tokens.
    """,
)

FEED = Number(
    id="03.9",
    title="What the SMs need from the L2",
    task="""
        **Given** a B200 at its bf16 peak. Every SM works on its own tile of 256 × 256,
        and the SMs share no operands.

        **Wanted** the rate at which operands in bf16 must reach all the SMs together.
    """,
    given=stated(chips.B200, "flops.bf16"),
    stub="rate = ...",
    unit="bytes/s",
    expected=lambda: chips.B200.flops["bf16"] * 2 / 256,
    slips=(
        slips.scaled(
            "sparse peak, or bytes for values",
            2,
            "The dense peak counts, and the intensity of such a tile, 128, already "
            "includes two bytes per value. Which of these two facts did you miss?",
        ),
        Slip(
            "one operand",
            lambda right: chips.B200.flops["bf16"] / 256,
            "You counted one operand. A tile reads rows of one array and columns of "
            "the other.",
        ),
        Slip(
            "of one SM",
            lambda right: right / _fact(chips.B200, "cores"),
            "That is the rate for one SM. All of them need operands at the same time.",
        ),
        Slip(
            "the HBM's bandwidth",
            lambda right: chips.B200.hbm_bandwidth,
            "That is the rate of the HBM. How many bytes per second do the tiles need?",
        ),
        Slip(
            "the highest clock",
            lambda right: (
                right
                * _fact(chips.B200, "cores")
                * _fact(chips.B200, "flops_per_clock")
                * _fact(chips.B200, "clock")
                / chips.B200.flops["bf16"]
            ),
            "The bf16 peak is stated for a lower clock than the highest one that a "
            "B200 reports.",
        ),
    ),
    hint="In bf16, the intensity of a square tile of side b is b/2. How many bytes per "
    "second does the peak need at this intensity?",
    solution="""
        By formula (3.6) with $b = f = 256$, each tile has an intensity of $I = 128$.
        The peak divided by this intensity is the rate:

        ```python
        rate = chips.B200.flops["bf16"] / (256 * 256 / (256 + 256))
        ```

        This is 17.6 TB/s, 2.2 times what the HBM delivers, so neighbouring SMs must
        share what they read.
    """,
)


def _finish(seconds, sms):
    """Every tile in turn goes to the SM that is free first."""
    free = [0.0] * sms
    for tile in seconds:
        free.sort()
        free[0] += tile
    return max(free)


FINISH = Function(
    id="03.10",
    title="Hand out tiles",
    task="""
        **Given** a list with the time that each tile takes, and a number of SMs. All
        SMs are free at time 0. The tiles are handed out in order, each to the SM that
        becomes free first.

        **Wanted** a function that returns the time at which the last tile is done.
    """,
    stub="def finish(seconds, sms): ...",
    spec=_finish,
    gives=(("the end", "s"),),
    cases=lambda rng: (
        [rng.uniform(0.5, 2) for _ in range(rng.randint(1, 40))],
        rng.randint(1, 12),
    ),
    examples=(([1.0] * 5, 4), ([1.0], 8), ([3.0, 1.0, 1.0, 1.0], 2)),
    slips=(
        Slip(
            "ideal time",
            lambda seconds, sms: sum(seconds) / sms,
            "A tile cannot be split over several SMs.",
        ),
        Slip(
            "waves in step",
            lambda seconds, sms: sum(
                max(seconds[n : n + sms]) for n in range(0, len(seconds), sms)
            ),
            "An SM takes its next tile as soon as it is free, and does not wait for "
            "the others.",
        ),
        Slip(
            "SMs in turn",
            lambda seconds, sms: max(sum(seconds[n::sms]) for n in range(sms)),
            "Did you hand out the tiles to the SMs in turn? The next tile goes to the "
            "SM that becomes free first.",
        ),
    ),
    hint="Keep a list of the times at which the SMs become free. Which of these times "
    "does the next tile change?",
    solution="""
        Each tile starts as soon as the first SM is free, and keeps that SM busy for its
        own duration:

        ```python
        def finish(seconds, sms):
            free = [0.0] * sms
            for duration in seconds:
                first = free.index(min(free))
                free[first] += duration
            return max(free)
        ```
    """,
)


def _efficiency(B, F, b, f, sms):
    tiles = math.ceil(B / b) * math.ceil(F / f)
    return B * F / (b * f * math.ceil(tiles / sms) * sms)


EFFICIENCY = Function(
    id="03.11",
    title="Both quantisations",
    task=r"""
        **Given** a result of $B \times F$ values, tiles of $b \times f$ and a number of
        SMs.

        **Wanted** a function that returns the share of the peak that tiles and waves
        leave, by [(3.5)](../chapters/03_gpus.ipynb#eq-3.5).
    """,
    stub="def efficiency(B, F, b, f, sms): ...",
    spec=_efficiency,
    gives=(("the share", ""),),
    cases=lambda rng: (
        rng.randint(1, 5000),
        rng.randint(1, 5000),
        2 ** rng.randint(5, 8),
        2 ** rng.randint(5, 8),
        rng.randint(1, 160),
    ),
    examples=(
        (896, 2432, 128, 128, 132),
        (1, 1, 128, 128, 132),
        (1408, 1536, 128, 128, 132),
    ),
    slips=(
        Slip(
            "a wave too many",
            lambda B, F, b, f, sms: (
                B * F / (b * f * (math.ceil(B / b) * math.ceil(F / f) // sms + 1) * sms)
            ),
            "If the tiles fill the last wave exactly, no further wave follows it.",
        ),
        Slip(
            "edges left out",
            lambda B, F, b, f, sms: (
                (tiles := math.ceil(B / b) * math.ceil(F / f))
                / (math.ceil(tiles / sms) * sms)
            ),
            "A tile that hangs over the edge also computes values that are not part of "
            "the result.",
        ),
        Slip(
            "waves left out",
            lambda B, F, b, f, sms: (
                B * F / (b * f * math.ceil(B / b) * math.ceil(F / f))
            ),
            "In the last wave, SMs without a tile have to wait.",
        ),
        Slip(
            "rounded once",
            lambda B, F, b, f, sms: (
                B * F / (b * f * math.ceil(B * F / (b * f) / sms) * sms)
            ),
            "Round the rows and the columns of tiles up first, and only then the "
            "waves.",
        ),
        Slip(
            "percent",
            lambda *case: 100 * _efficiency(*case),
            "The answer has to be a fraction, such as 0.4 for 40 %.",
        ),
        Slip(
            "the share lost",
            lambda *case: 1 - _efficiency(*case),
            "That is the share that tiles and waves cost. How much of the peak do they "
            "leave?",
        ),
    ),
    hint="Use formula (3.5). Which three numbers have to be rounded up?",
    solution="""
        The rows of tiles, the columns of tiles and the waves are all whole numbers, so
        each of the three is rounded up:

        ```python
        import math


        def efficiency(B, F, b, f, sms):
            tiles = math.ceil(B / b) * math.ceil(F / f)
            waves = math.ceil(tiles / sms)
            return B * F / (waves * sms * b * f)
        ```
    """,
)


def _blocks(registers, smem, threads, file, shared, most):
    warps = math.ceil(threads / 32)
    fits = [4 * (file // 4 // (4 * registers * 32)) // warps, most // warps]
    return min([*fits, shared // smem] if smem else fits)


BLOCKS = Function(
    id="03.12",
    title="Blocks on one SM",
    task="""
        **Given** a kernel's registers per thread, bytes of SMEM per block (perhaps
        none) and threads per block, and also an SM's register file in bytes, its SMEM
        in bytes and the largest number of warps that may be resident. A warp has 32
        threads, and a register takes four bytes. Three things limit the blocks: the
        registers, the SMEM and the resident warps. (Two details are left out: an SM
        holds at most 32 blocks, and it takes 1 KiB of SMEM for each of them.) Registers
        are given out to whole warps. The register file has four equal subpartitions,
        and all the registers of a warp are in the same one. The warps of a block may be
        in different subpartitions.

        **Wanted** a function that returns the number of blocks that are resident on the
        SM at once.
    """,
    stub="def blocks(registers, smem, threads, file, shared, most): ...",
    spec=_blocks,
    units={"smem": "bytes", "file": "bytes", "shared": "bytes", "most": "warps"},
    gives=(("the blocks", ""),),
    cases=lambda rng: (
        8 * rng.randint(2, 24),
        1024 * rng.randint(1, 100),
        rng.randint(1, 512),
        2**18,
        1024 * rng.choice([96, 164, 228]),
        64,
    ),
    examples=(
        (32, 0, 256, 2**18, 2**17, 64),
        (32, 1024, 33, 2**18, 2**17, 64),
        (96, 1024, 96, 2**18, 2**17, 64),
        (32, 2**14, 64, 2**18, 2**17, 64),
    ),
    slips=(
        Slip(
            "a KiB for each block",
            lambda registers, smem, threads, file, shared, most: min(
                _blocks(registers, 0, threads, file, shared, most),
                *([shared // (smem + 1024)] if smem else []),
                math.inf,
            ),
            "The 1 KiB that an SM takes for each block is left out here.",
        ),
        Slip(
            "shared memory left out",
            lambda registers, smem, threads, file, shared, most: _blocks(
                registers, 0, threads, file, shared, most
            ),
            "The resident blocks have to share the SM's SMEM.",
        ),
        Slip(
            "threads for warps",
            lambda registers, smem, threads, file, shared, most: min(
                file // (4 * registers * threads),
                32 * most // threads,
                *([shared // smem] if smem else []),
            ),
            "A block of 33 threads takes two warps, and the registers of two warps.",
        ),
        Slip(
            "bytes for registers",
            lambda registers, smem, threads, file, shared, most: _blocks(
                registers, smem, threads, 4 * file, shared, most
            ),
            "The register file is given in bytes, and a register takes four of them.",
        ),
        Slip(
            "resident warps left out",
            lambda registers, smem, threads, file, shared, most: _blocks(
                registers, smem, threads, file, shared, math.inf
            ),
            "However small the blocks are, an SM holds only so many warps.",
        ),
        Slip(
            "the file as one",
            lambda registers, smem, threads, file, shared, most: min(
                file // (4 * registers * 32 * math.ceil(threads / 32)),
                most // math.ceil(threads / 32),
                *([shared // smem] if smem else []),
            ),
            "The registers of a warp cannot be spread over two subpartitions. How many "
            "warps fit into each of them?",
        ),
    ),
    hint="How many blocks does each of the three limits allow, rounded down? A warp "
    "that is not full counts as a whole warp, and the register file holds four times "
    "as many warps as one subpartition.",
    solution="""
        Each of the three limits allows a whole number of blocks, and the lowest of
        these numbers counts:

        ```python
        import math


        def blocks(registers, smem, threads, file, shared, most):
            warps = math.ceil(threads / 32)
            fit = 4 * (file // 4 // (4 * registers * 32))
            limits = [fit // warps, most // warps]
            if smem:
                limits.append(shared // smem)
            return min(limits)
        ```
    """,
)


def _scaled_sum(A, B, C):
    rows = zip(A, B, C, strict=True)
    return {"C": [[x * y + z for x, y, z in zip(*r, strict=True)] for r in rows]}


FUSED = Traffic(
    id="03.13",
    title="Two kernels, or one",
    task=r"""
        **Given** a small GPU. It has one SM with 768 bytes of SMEM, enough for three
        blocks of 8 × 8 values, and its HBM holds the arrays `A`, `B` and `C` of
        $n \times n$ values, where $n$ is a multiple of 8. With one kernel that
        multiplies and another one that adds, the product would go to the HBM and come
        back. A single kernel for both is called **fused**. You can use
        `machine.load(name, rows=(i, j), cols=(k, l))` from HBM to SMEM,
        `machine.multiply(a, b)` for $a \mathrel{*}= b$, `machine.add(a, b)` for
        $a \mathrel{+}= b$, `machine.store(block, name, row=i, col=j)` and
        `machine.free(block)`. Multiplication and addition work value by value.

        **Wanted** the fused kernel, which leaves $A \odot B + C$ in `C` and moves no
        value more often than it must. The machine counts the bytes.
    """,
    stub="def multiply_and_add(machine, n): ...",
    cases=lambda rng: (8 * rng.randint(2, 5),),
    capacity=lambda n: 4 * 3 * 8 * 8,
    arrays=lambda n: {"A": (n, n), "B": (n, n), "C": (n, n)},
    result=_scaled_sum,
    at_most=lambda n: 4 * 4 * n * n,
    slips=(
        Slip(
            "two kernels",
            lambda n: 4 * 6 * n * n,
            "The product goes out to the HBM and comes back before the addition. Can "
            "it stay in the SMEM?",
        ),
        Slip(
            "an array read twice",
            lambda n: 4 * 5 * n * n,
            "One of the arrays is read twice.",
        ),
    ),
    points=2,
    hint="What if you load a block of each array, and do both operations before you "
    "store anything?",
    solution="""
        Each value of the result takes three reads and one write, because the product
        never leaves the SMEM:

        ```python
        def multiply_and_add(machine, n):
            t = 8
            for i in range(0, n, t):
                for j in range(0, n, t):
                    where = {"rows": (i, i + t), "cols": (j, j + t)}
                    a, b, c = (machine.load(name, **where) for name in "ABC")
                    machine.multiply(a, b)
                    machine.add(a, c)
                    machine.store(a, "C", row=i, col=j)
                    for block in (a, b, c):
                        machine.free(block)
        ```

        With two kernels, six arrays would cross the bus instead of four, which takes
        1.5 times as long.
    """,
)

LAST = Compiled(
    id="03.14",
    title="The one row that is needed",
    task=r"""
        **Given** the activations of a prompt, $x[B, D]$, and weights, $W[D, F]$, in
        float32. After the prompt, a GPU needs only the result for the last token, which
        is the last row of $x[B, D] \cdot W[D, F]$. A single row of tiles is enough for
        it, instead of many.

        **Wanted** a JAX function that returns that row and compiles to no more FLOPs
        than the row needs. The FLOPs are counted in the program that XLA compiles for
        this machine.
    """,
    stub="def last_row(x, W): ...",
    shapes=lambda rng: (
        (8 * rng.randint(2, 8), n := 16 * rng.randint(2, 4)),
        (n, 32 * rng.randint(2, 4)),
    ),
    spec=lambda x, w: x[-1] @ w,
    at_most=lambda x, w: {"flops": 2 * w[0] * w[1]},
    points=2,
    values=(
        Slip(
            "the first row",
            lambda x, w: x[0] @ w,
            "That is the row of the first token. The question asks for the row of the "
            "last one.",
        ),
    ),
    hint="Which rows of x does the last row of the product depend on?",
    solution="""
        The last row of the product depends only on the last row of $x$:

        ```python
        def last_row(x, W):
            return x[-1] @ W
        ```

        If you write `(x @ W)[-1]`, the compiled program multiplies all the rows and
        keeps only the last one.
    """,
)


H200, B200 = chips.H200, chips.B200
RENT = 4.0  # dollars an hour, given in the task


def _worth(tile=(128, 256), waves_of=None, both=max):
    """Dollars an hour of a B200 that does as many of these matmuls for a dollar."""
    times = []
    for chip in (H200, B200):
        op = waves.TiledMatmul(640, 8192, 7168, chip, tile)
        nbytes = 2 * (640 * 8192 + 8192 * 7168 + 640 * 7168)
        count = waves_of or op.waves.waves
        times.append(both((count * op.tile_seconds, nbytes / chip.hbm_bandwidth)))
    return RENT * times[0] / times[1]


WORTH = Number(
    id="03.15",
    title="What a B200 is worth",
    task=r"""
        **Given** a service that does nothing but the matmul
        $X[640, 8192] \cdot W[8192, 7168]$ in bf16, cut into tiles of 128 × 256 (rows ×
        columns). Each SM works on one tile at a time. The HBM moves $X$, $W$ and the
        result once while the SMs multiply. Each SM runs at its share of the chip's
        peak. The service runs on an H200 that is rented for 4 dollars an hour.

        **Wanted** the number of dollars per hour that a B200 may cost if it is to do as
        many of these matmuls per dollar as the H200.
    """,
    given=stated(H200, "cores", "flops.bf16", "hbm_bandwidth")
    | stated(B200, "cores", "flops.bf16", "hbm_bandwidth"),
    stub="dollars = ...",
    unit="dollars/hour",
    expected=_worth,
    slips=(
        Slip(
            "peaks alone",
            lambda right: RENT * B200.flops["bf16"] / H200.flops["bf16"],
            "That is the ratio of the peaks. How many waves does each GPU need?",
        ),
        Slip(
            "bandwidths alone",
            lambda right: RENT * B200.hbm_bandwidth / H200.hbm_bandwidth,
            "That is the ratio of the bandwidths. Is the HBM the limit here?",
        ),
        Slip(
            "as many waves on both",
            lambda right: _worth(waves_of=1),
            "The two GPUs have different numbers of SMs. Cut the result into tiles of "
            "128 rows and 256 columns, and count the waves on each GPU.",
        ),
        Slip(
            "times added up",
            lambda right: _worth(both=sum),
            "The HBM works while the SMs multiply, so only the longer of the two times "
            "counts.",
        ),
        Slip(
            "square tiles",
            lambda right: _worth(tile=(128, 128)),
            "That is the answer for tiles of 128 × 128.",
        ),
        Slip(
            "the factor alone",
            lambda right: right / RENT,
            "That is the speed-up from the H200 to the B200. How many dollars may the "
            "B200 cost per hour?",
        ),
        Slip(
            "upside down",
            lambda right: RENT**2 / right,
            "The faster GPU may cost more, not less.",
        ),
    ),
    hint="Each GPU has a time for the math and one for the HBM, and the longer one "
    "counts. Is the number of tiles above or below the number of SMs?",
    solution="""
        The 5 · 28 = 140 tiles take two waves on the 132 SMs of the H200, and one wave
        on the 148 SMs of the B200. The HBM needs 28.6 µs on the H200 and 17.1 µs on the
        B200, which is less than the math takes on either GPU:

        ```python
        def seconds(chip, tiles=(640 // 128) * (7168 // 256)):
            sms = chip.fact("cores").value
            math = -(-tiles // sms) * 2 * 128 * 256 * 8192 / (chip.flops["bf16"] / sms)
            nbytes = 2 * (640 * 8192 + 8192 * 7168 + 640 * 7168)
            return max(math, nbytes / chip.hbm_bandwidth)


        dollars = 4 * seconds(chips.H200) / seconds(chips.B200)
        ```

        So the B200 may cost four times the rent of the H200, although its peak is only
        2.3 times as high. With eight fewer tiles, both GPUs would need only one wave,
        and the B200 would be worth only half as much.
    """,
    points=2,
)

LOADS, STRIDE = 2, 2  # of four bytes each; both given in the task


def _gathered(clock=None, full=False):
    """Seconds in which the kernel reads 1 GB that it wants."""
    h100 = chips.H100
    file, smem = h100.registers_bytes // h100.cores, h100.onchip_bytes // h100.cores
    blocks = _blocks(96, 48 * 1024, 256, file, smem, h100.warps)
    moved = h100.cores * blocks * 256 * LOADS * 4 * STRIDE
    rate = moved / (h100.hbm_latency / (clock or h100.clock))
    rate = h100.hbm_bandwidth if full else min(h100.hbm_bandwidth, rate)
    return 1e9 / (rate / STRIDE)


GATHERED = Number(
    id="03.16",
    title="A slow gather",
    task="""
        **Given** a kernel on an H100 that takes 96 registers of four bytes per thread,
        256 threads per block and 48 KiB of SMEM per block. Blocks fill every SM as far
        as its limits allow. A thread always has two loads of four bytes in flight, and
        requests the next one when one arrives. In each load, the threads of a warp read
        every second fp32 value of an aligned row. The HBM moves whole pieces of 32
        bytes, so the values in between are moved too, but they are never needed.

        **Wanted** the least time in which the kernel reads 1 GB (10⁹ bytes) of values
        that it needs, by Little's law.
    """,
    given=stated(chips.H100, "cores", "registers_bytes", "onchip_bytes", "warps")
    | stated(chips.H100, "hbm_bandwidth", "hbm_latency", "clock"),
    stub="seconds = ...",
    unit="s",
    expected=_gathered,
    slips=(
        Slip(
            "the whole bandwidth",
            lambda right: _gathered(full=True),
            "Are enough bytes in flight to use the whole bandwidth? Only whole blocks "
            "are resident, and the tightest of their limits counts.",
        ),
        Slip(
            "the data sheet alone",
            lambda right: 1e9 / chips.H100.hbm_bandwidth,
            "That assumes that the kernel uses the whole bandwidth and needs every "
            "byte. Neither is true here.",
        ),
        slips.scaled(
            "every byte needed",
            1 / STRIDE,
            "Half of every piece of 32 bytes is moved but never needed.",
        ),
        slips.scaled(
            "half of the bytes",
            2,
            "More than one block is resident, a thread has two loads in flight, and "
            "all the bytes of a load are needed, but not the bytes between them. Which "
            "of these did you miss?",
        ),
        Slip(
            "the highest clock",
            lambda right: _gathered(clock=HIGHEST_CLOCK),
            "The H100 has two clocks. Use the one that the task gives.",
        ),
        Slip(
            "one SM",
            lambda right: right * _fact(chips.H100, "cores"),
            "That is the time with a single SM. All the SMs read at the same time.",
        ),
    ),
    hint="How many blocks fit on an SM? Question 03.12 shows how to count them. Then "
    "work out the bytes in flight, the rate at which they arrive, and the share of "
    "them that is needed.",
    solution="""
        The registers allow 20 warps, which is two blocks of eight warps. The SMEM would
        allow four blocks and the limit on warps eight, so two blocks are resident:

        ```python
        h100 = chips.H100
        file = h100.fact("registers_bytes").value // h100.fact("cores").value
        smem = h100.fact("onchip_bytes").value // h100.fact("cores").value
        fit = 4 * (file // 4 // (4 * 96 * 32))
        blocks = min(fit // 8, smem // (48 * 1024), 64 // 8)
        moved = h100.fact("cores").value * blocks * 256 * 2 * 4 * 2
        latency = h100.fact("hbm_latency").value / h100.fact("clock").value
        rate = min(h100.hbm_bandwidth, moved / latency)
        seconds = 1e9 / (rate / 2)
        ```

        Only 1.08 MB are in flight, but the whole bandwidth would take at least 1.28 MB.
        So the HBM moves 2.83 TB/s, and only half of these bytes are needed.
    """,
    points=2,
)

_TILES = ((64, 64), (64, 128), (128, 64), (128, 128), (128, 256), (256, 128))


def _tile_legs(B, D, F, tile, sms, peak, l2):
    """Seconds of whole waves, and of the operands of all tiles."""
    b, f = tile
    tiles = math.ceil(B / b) * math.ceil(F / f)
    wave = 2 * b * f * D / (peak / sms)
    return math.ceil(tiles / sms) * wave, tiles * 2 * D * (b + f) / l2


def _least(B, D, F, tiles, sms, peak, l2):
    return min(max(_tile_legs(B, D, F, tile, sms, peak, l2)) for tile in tiles)


def _without_waves(B, D, F, tile, sms, peak, l2):
    tiles = math.ceil(B / tile[0]) * math.ceil(F / tile[1])
    wave, feed = _tile_legs(B, D, F, tile, tiles, peak, l2)
    return max(wave, feed)


BEST_TILE = Function(
    id="03.17",
    title="The best of some tiles",
    task=r"""
        **Given** the matmul $X[B, D] \cdot W[D, F]$ in bf16 on a GPU with `sms` SMs and
        a dense peak of `peak` FLOPs/s, and a list `tiles` of tile sizes $(b, f)$ for
        which a library has kernels. With each of these kernels, an SM works on one tile
        at a time, at its share of the peak, and tiles that hang over the edge cost as
        much as whole ones. Each tile reads $b$ rows of $X$ and $f$ columns of $W$, with
        $D$ values each, even over the edge. The L2 delivers these values to all SMs
        together at `l2` bytes/s. Arithmetic and delivery overlap perfectly, and the
        bytes of the result are left out.

        **Wanted** a function that returns the least time, in seconds, that any of these
        tile sizes allows.
    """,
    stub="def least_seconds(B, D, F, tiles, sms, peak, l2): ...",
    spec=_least,
    units={"B": "tokens", "peak": "FLOPs/s", "l2": "bytes/s"},
    gives=(("the time", "s"),),
    cases=lambda rng: (
        rng.randint(1, 3000),
        64 * rng.randint(1, 128),
        rng.randint(1, 6000),
        rng.sample(_TILES, rng.randint(1, 4)),
        rng.randint(20, 160),
        rng.randint(100, 2500) * 1e12,
        rng.randint(2, 40) * 1e12,
    ),
    examples=(
        (896, 4096, 2432, [(128, 128), (128, 256)], 132, 1e15, 30e12),
        (16, 8192, 8192, [(64, 128), (128, 128)], 132, 1e15, 2e12),
        (1000, 4096, 3000, [(128, 128), (128, 256)], 100, 1e15, 8e12),
        (1408, 4096, 1536, [(128, 128)], 132, 1e15, 30e12),
    ),
    slips=(
        Slip(
            "a wave too many",
            lambda B, D, F, tiles, sms, peak, l2: min(
                max(wave + 2 * b * f * D / (peak / sms) * (count % sms == 0), feed)
                for b, f in tiles
                for count in [math.ceil(B / b) * math.ceil(F / f)]
                for wave, feed in [_tile_legs(B, D, F, (b, f), sms, peak, l2)]
            ),
            "If the tiles fill the last wave exactly, no further wave follows it.",
        ),
        Slip(
            "waves left out",
            lambda B, D, F, tiles, sms, peak, l2: min(
                _without_waves(B, D, F, tile, sms, peak, l2) for tile in tiles
            ),
            "In the last wave, SMs without a tile have to wait.",
        ),
        Slip(
            "edges left out",
            lambda B, D, F, tiles, sms, peak, l2: min(
                max(
                    math.ceil(B * F / (b * f) / sms) * 2 * b * f * D * sms / peak,
                    B * F / (b * f) * 2 * D * (b + f) / l2,
                )
                for b, f in tiles
            ),
            "The rows of tiles and the columns of tiles are each rounded up.",
        ),
        Slip(
            "delivery left out",
            lambda B, D, F, tiles, sms, peak, l2: min(
                _tile_legs(B, D, F, tile, sms, peak, l2)[0] for tile in tiles
            ),
            "That is the time of the arithmetic alone. The L2 also has to deliver the "
            "operands of every tile, which can take longer.",
        ),
        Slip(
            "one operand",
            lambda B, D, F, tiles, sms, peak, l2: min(
                max(wave, feed * tile[0] / sum(tile))
                for tile in tiles
                for wave, feed in [_tile_legs(B, D, F, tile, sms, peak, l2)]
            ),
            "You counted one operand. A tile reads rows of one array and columns of "
            "the other.",
        ),
        Slip(
            "times added up",
            lambda B, D, F, tiles, sms, peak, l2: min(
                sum(_tile_legs(B, D, F, tile, sms, peak, l2)) for tile in tiles
            ),
            "Arithmetic and delivery overlap, so only the longer of the two times "
            "counts.",
        ),
        Slip(
            "the largest tile",
            lambda B, D, F, tiles, sms, peak, l2: max(
                _tile_legs(B, D, F, max(tiles, key=math.prod), sms, peak, l2)
            ),
            "The largest tiles need the fewest bytes, but they may waste the most SM "
            "time.",
        ),
        Slip(
            "multiply-add",
            lambda B, D, F, tiles, sms, peak, l2: _least(
                B, D, F, tiles, sms, 2 * peak, l2
            ),
            "A multiply and the add that follows are two FLOPs.",
        ),
        Slip(
            "one byte per value",
            lambda B, D, F, tiles, sms, peak, l2: _least(
                B, D, F, tiles, sms, peak, 2 * l2
            ),
            "A bf16 value takes two bytes.",
        ),
    ),
    hint="Each tile size has a time for the arithmetic and one for the delivery, and "
    "the longer one counts. Which tile size makes this longer time as short as "
    "possible?",
    solution="""
        Large tiles need fewer bytes from the L2, but they can waste more of the SMs'
        time. Which effect is stronger depends on the sizes, so the function tries every
        tile size:

        ```python
        def least_seconds(B, D, F, tiles, sms, peak, l2):
            def seconds(b, f):
                count = -(-B // b) * -(-F // f)
                math = -(-count // sms) * 2 * b * f * D / (peak / sms)
                return max(math, count * 2 * D * (b + f) / l2)

            return min(seconds(b, f) for b, f in tiles)
        ```
    """,
    points=2,
)
