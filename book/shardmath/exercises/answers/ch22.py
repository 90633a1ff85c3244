"""Questions of chapter 22, "Kernels"."""

import math

from shardmath.base.units import MiB
from shardmath.exercises.kinds import Chapter, Function, Number, Slip
from shardmath.hardware import blocks
from shardmath.hardware.blocks import BlockedArray, BlockedKernel

CHAPTER = Chapter(
    title="Kernels",
    topics=(
        "the traffic and the VMEM of a kernel, flash attention, grouped matmuls, and "
        "tables of speed-ups"
    ),
    intro="""
        from the traffic of one kernel to the gain of a whole run. Answers are in base
        units, and a share is a number between 0 and 1. In 22.8, 22.10, 22.13 and 22.16
        you write functions.
    """,
    setup="""
        from shardmath.exercises import check, report
    """,
)

B, D, F = 8192, 4096, 2048
STRIPS = blocks.matmul(B, D, F, (1024, 512), 512)
WHOLE = blocks.matmul(B, D, F, (1024, 512), D)

TRAFFIC = Number(
    id="22.1",
    title="The traffic of a kernel",
    task=r"""
        **Given** $X[8192, 4096]\cdot Y[4096, 2048]$ in bf16, computed by a kernel with
        tiles of 1,024 rows and 512 columns and a depth of 512. The axes of the grid are
        the rows of tiles, the columns of tiles and the pieces along the contracted
        dimension. The last axis runs fastest.

        **Wanted** the bytes that the kernel moves to and from HBM.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: sum(STRIPS.traffic.values()),
    slips=(
        Slip(
            "each array once",
            lambda right: 2.0 * (B * D + D * F + B * F),
            "Did you count each array once? How often is a strip of X read?",
        ),
        Slip(
            "the sides of the tile exchanged",
            lambda right: 2.0 * (B * D * 8 + D * F * 4 + B * F),
            "X is read once for each column of tiles. How many columns are there?",
        ),
        Slip(
            "the result left out",
            lambda right: right - 2 * B * F,
            "The result is written too.",
        ),
        Slip(
            "values for bytes",
            lambda right: right / 2,
            "Those are values. Each of them takes two bytes.",
        ),
    ),
    hint="Use formula (22.1). How many tiles are in a row of tiles, and how many in a "
    "column?",
    solution="""
        X is read for each of 2,048/512 = 4 columns of tiles, and Y for each of
        8,192/1,024 = 8 rows.

        ```python
        X, Y, Z = 8_192 * 4_096, 4_096 * 2_048, 8_192 * 2_048
        nbytes = 2 * (4 * X + 8 * Y + Z)
        ```
    """,
)

STAYS = Number(
    id="22.2",
    title="A strip that stays",
    task=r"""
        **Given** the matmul of 22.1 with the same tiles, but with a depth of 4,096, so
        one step covers the whole contracted dimension.

        **Wanted** the bytes that the kernel moves to and from HBM.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: sum(WHOLE.traffic.values()),
    slips=(
        Slip(
            "as before",
            lambda right: float(sum(STRIPS.traffic.values())),
            "Formula (22.1) gives this number. Which block stays the same from one "
            "step to the next?",
        ),
        Slip(
            "the other strip",
            lambda right: 2.0 * (4 * B * D + D * F + B * F),
            "Did you assume that Y's block stays in VMEM? Columns vary faster than "
            "rows, so it changes.",
        ),
        Slip(
            "each array once",
            lambda right: 2.0 * (B * D + D * F + B * F),
            "X is read once, but Y isn't.",
        ),
    ),
    hint="Go through the steps in order. When does the index of X's block change?",
    solution="""
        The block of X depends only on the row of tiles, so it stays in VMEM for all
        four columns. The block of Y changes in every step.

        ```python
        X, Y, Z = 8_192 * 4_096, 4_096 * 2_048, 8_192 * 2_048
        nbytes = 2 * (X + 8 * Y + Z)
        ```
    """,
)

HOLDS = blocks.matmul(4096, 4096, 4096, (1024, 2048), 256)

VMEM = Number(
    id="22.3",
    title="What VMEM holds",
    task=r"""
        **Given** a matmul kernel in bf16 with tiles of 1,024 × 2,048, a depth
        of 256, and sums in fp32. Its blocks are double-buffered.

        **Wanted** the bytes of VMEM that the blocks and the sums take.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: HOLDS.vmem,
    slips=(
        Slip(
            "one buffer for a block",
            lambda right: 13.5 * MiB,
            "Each block has two buffers, so that the next one can arrive.",
        ),
        Slip(
            "sums twice",
            lambda right: 27.0 * MiB,
            "The sums stay on the chip, so they need only one buffer.",
        ),
        Slip(
            "sums in bf16",
            lambda right: 15.0 * MiB,
            "The sums are in fp32, which takes four bytes per value.",
        ),
        Slip(
            "sums left out",
            lambda right: 11.0 * MiB,
            "Those are only the blocks. Where are the sums of the tile?",
        ),
    ),
    hint="Use formula (22.2).",
    solution="""
        The three blocks have two buffers each, and the sums have one.

        ```python
        x, y, z = 1_024 * 256, 256 * 2_048, 1_024 * 2_048
        nbytes = 2 * 2 * (x + y + z) + 4 * z
        ```
    """,
)

DEEP = Number(
    id="22.4",
    title="How deep may a step be?",
    task=r"""
        **Given** a matmul kernel in bf16 with tiles of 1,024 × 1,024 that may use
        32 MiB of VMEM. You want to leave room for a compiler that needs 25 % more than
        formula (22.2).

        **Wanted** the largest depth that is a multiple of 256.
    """,
    stub="depth = ...",
    unit="",
    expected=lambda: 256 * ((32 * MiB / 1.25 - 8 * MiB) // (8192 * 256)),
    slips=(
        Slip(
            "no room for the compiler",
            lambda right: 3072.0,
            "Did you use all of the 32 MiB? The compiler needs 25 % more.",
        ),
        Slip(
            "one buffer for a block",
            lambda right: 4864.0,
            "Each block has two buffers.",
        ),
        Slip(
            "sums left out",
            lambda right: 2560.0,
            "Where are the sums of the tile? They take four bytes per value.",
        ),
    ),
    hint="How much is left for the blocks of X and Y, and how much of it does one "
    "unit of depth take?",
    solution="""
        The two buffers for the tile and the one for its sums take 8 MiB. Each unit of
        depth takes 2 · 2 · (1,024 + 1,024) = 8,192 bytes.

        ```python
        left = 32 * 2**20 / 1.25 - 8 * 2**20
        depth = left // (8_192 * 256) * 256
        ```
    """,
)

SIDE = Number(
    id="22.5",
    title="A tile for a Trillium",
    task=r"""
        **Given** a chip with 918 TFLOPs/s in bf16 and 1.64 TB/s of HBM, and a matmul of
        very large matrices in bf16 with square tiles. Leave out the traffic of the
        result.

        **Wanted** the smallest side of a tile that is a multiple of 128 and for which
        the HBM keeps up with the math.
    """,
    stub="side = ...",
    unit="",
    expected=lambda: 128 * math.ceil(2 * 918e12 / 1.64e12 / 128),
    slips=(
        Slip(
            "one strip alone",
            lambda right: 640.0,
            "Did you count only one strip? A step reads values of X and of Y.",
        ),
        Slip(
            "rounded down",
            lambda right: 1024.0,
            "With this side, the HBM is still too slow. Round up.",
        ),
        Slip(
            "four bytes",
            lambda right: 2304.0,
            "Did you count four bytes per value? In bf16, a value takes two.",
        ),
    ),
    hint="For each unit of the contracted dimension, a tile of side b reads 2b values "
    "and does 2b² FLOPs.",
    solution="""
        For each unit of the contracted dimension, a tile of side b does 2b² FLOPs for
        4b bytes. So b/2 must be at least 560 FLOPs per byte.

        ```python
        need = 918e12 / 1.64e12
        side = -(-2 * need // 128) * 128
        ```
    """,
)

TIME = Number(
    id="22.6",
    title="A kernel, step by step",
    task=r"""
        **Given** a kernel with 1,024 steps. The math of a step takes 4 µs, and its
        blocks arrive in 3 µs, during the step before it. A tile is finished after every
        eighth step, and its copy to HBM takes 4 µs, during the next step. Copies run
        one after another, but at the same time as the math.

        **Wanted** the time of the kernel in seconds.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: (3 + 897 * 4 + 127 * 7 + 4) * 1e-6,
    slips=(
        Slip(
            "all hidden",
            lambda right: 4103e-6,
            "In the step after a finished tile, two copies run one after another.",
        ),
        Slip(
            "nothing hidden",
            lambda right: (1024 * 7 + 128 * 4) * 1e-6,
            "Did you add copies and math? They run at the same time.",
        ),
        Slip(
            "a wait in every step",
            lambda right: (3 + 1024 * 7 + 4) * 1e-6,
            "Only one step in eight has a tile that leaves.",
        ),
    ),
    hint="How many steps have a tile that leaves while they run? The last tile has no "
    "step after it.",
    solution="""
        The first blocks take 3 µs. There are 128 tiles, and 127 of them leave during a
        step, which then takes 3 + 4 = 7 µs. The last one leaves at the end.

        ```python
        first, last = 3, 4
        steps = 127 * 7 + (1_024 - 127) * 4
        seconds = (first + steps + last) * 1e-6
        ```
    """,
)

SCORES = Number(
    id="22.7",
    title="The bytes of the scores",
    task=r"""
        **Given** attention with 32 heads on one sequence of 16,384 tokens,
        without a mask and without a flash kernel. The scores are stored in
        bf16.

        **Wanted** the bytes of the scores.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: 2.0 * 32 * 16_384**2,
    slips=(
        Slip(
            "one head",
            lambda right: right / 32,
            "Those are the scores of only one of the 32 heads.",
        ),
        Slip(
            "values for bytes",
            lambda right: right / 2,
            "Did you count values, or only the lower half? There is no mask, and a "
            "value takes two bytes.",
        ),
        Slip(
            "half of them",
            lambda right: right / 4,
            "Did you count only the values of the lower half? There is no mask here.",
        ),
        Slip(
            "one score per token",
            lambda right: right / 16_384,
            "Each token has a score with every token.",
        ),
    ),
    hint="How many scores does a head have?",
    solution="""
        Every head has a score for each pair of tokens.

        ```python
        nbytes = 2 * 32 * 16_384**2
        ```
    """,
)


def _joined(one: list, other: list) -> list:
    (m1, l1, a1), (m2, l2, a2) = one, other
    m = max(m1, m2)
    f1, f2 = math.exp(m1 - m), math.exp(m2 - m)
    return [m, l1 * f1 + l2 * f2, a1 * f1 + a2 * f2]


def _uncorrected(one: list, other: list) -> list:
    return [max(one[0], other[0]), one[1] + other[1], one[2] + other[2]]


def _first_corrected(one: list, other: list) -> list:
    m = max(one[0], other[0])
    factor = math.exp(one[0] - m)
    return [m, one[1] * factor + other[1], one[2] * factor + other[2]]


def _largest_added(one: list, other: list) -> list:
    _, total, sums = _joined(one, other)
    return [one[0] + other[0], total, sums]


def _two_parts(rng) -> tuple:
    return tuple(
        [round(rng.uniform(-3, 3), 2), round(rng.uniform(1, 9), 2), rng.randint(-5, 5)]
        for _ in range(2)
    )


JOIN = Function(
    id="22.8",
    title="Join two parts of a row",
    task=r"""
        **Given** one query, whose keys are divided into two parts. For each part, a
        list holds the largest score $m$, the sum $\ell$ of $e^{s_j-m}$, and the sum $a$
        of $e^{s_j-m}\,v_j$. Here $s_j$ is the score of key $j$, and its value $v_j$ is
        a plain number.

        **Wanted** a function that returns the list $[m, \ell, a]$ of both parts
        together.
    """,
    stub="def join(one, other): ...",
    spec=_joined,
    cases=_two_parts,
    examples=(([1.0, 2.0, 3.0], [0.0, 1.0, 1.0]), ([0.0, 1.0, 1.0], [1.0, 2.0, 3.0])),
    slips=(
        Slip(
            "no correction",
            _uncorrected,
            "Each part is scaled with its own largest score.",
        ),
        Slip(
            "the first part alone is corrected",
            _first_corrected,
            "Did you correct only the first part? If the first part has the larger "
            "score, the second part needs a factor.",
        ),
        Slip(
            "largest scores added",
            _largest_added,
            "The largest of all scores isn't the sum of two scores.",
        ),
    ),
    hint="Formula (22.4) adds a block to a part. Which factor brings each part to the "
    "common largest score?",
    solution="""
        Part 1 was scaled with $m_1$, so $e^{m_1-m}$ brings it to the common $m$.

        ```python
        from math import exp


        def join(one, other):
            m = max(one[0], other[0])
            f, g = exp(one[0] - m), exp(other[0] - m)
            return [m, one[1] * f + other[1] * g, one[2] * f + other[2] * g]
        ```
    """,
)

QUERIES = Number(
    id="22.9",
    title="Flash attention in fp8",
    task=r"""
        **Given** a flash attention kernel whose keys, values and products are
        in fp8, on a chip with 4,614 TFLOPs/s in fp8 and 7.38 TB/s of HBM. The
        sequences are very long, and the exponentials take no time.

        **Wanted** the smallest number of queries per block for which the HBM keeps up.
        Don't round.
    """,
    stub="queries = ...",
    unit="",
    expected=lambda: 4614e12 / 7.38e12 / 2,
    slips=(
        Slip(
            "two bytes",
            lambda right: 2 * right,
            "That is right for two bytes per value. In fp8, a value takes only one.",
        ),
        Slip(
            "bytes on the wrong side",
            lambda right: 4 * right,
            "With fewer bytes per value, each query gives more FLOPs per byte.",
        ),
        Slip(
            "the bf16 peak",
            lambda right: right / 2,
            "Did you take half of the peak? The products are in fp8.",
        ),
    ),
    hint="Use formula (22.5) with one byte per value.",
    solution="""
        With one byte per value, 2p has to reach the chip's FLOPs per byte.

        ```python
        need = 4_614e12 / 7.38e12
        queries = need / 2
        ```
    """,
)


def _copies(indices: list) -> int:
    return sum(n == 0 or indices[n - 1] != block for n, block in enumerate(indices))


def _every_step(indices: list) -> int:
    return len(indices)


def _different(indices: list) -> int:
    return len(set(indices))


def _changes(indices: list) -> int:
    return _copies(indices) - 1


def _walk(rng) -> tuple:
    return ([rng.choice((0, 0, 1, 2)) for _ in range(rng.randint(2, 12))],)


COUNT = Function(
    id="22.10",
    title="Count the copies",
    task=r"""
        **Given** `indices`, a list with an entry for each step of a kernel, in order.
        An entry is the number of the block of one array that this step needs.

        **Wanted** a function that returns how many blocks are copied.
    """,
    stub="def copies(indices): ...",
    spec=_copies,
    cases=_walk,
    examples=(([0, 0, 1, 1, 0],), ([0, 1, 0, 1],)),
    slips=(
        Slip(
            "one per step",
            _every_step,
            "A block that is already there isn't copied again.",
        ),
        Slip(
            "different blocks",
            _different,
            "A block that was replaced has to be copied again.",
        ),
        Slip(
            "the first left out",
            _changes,
            "Before the first step, nothing is in VMEM.",
        ),
    ),
    hint="Compare each index with the one before it.",
    solution="""
        ```python
        def copies(indices):
            pairs = zip(indices, indices[1:])
            return 1 + sum(old != new for old, new in pairs)
        ```
    """,
)


def _causal(clamped: bool) -> BlockedKernel:
    """16 blocks of queries and keys of 512; the keys a query can't see are skipped."""

    def index(i: int, j: int) -> tuple[int, ...]:
        return (min(i, j) if clamped else j), 0

    keys = BlockedArray("K", (8192, 128), (512, 128), index)
    return BlockedKernel((16, 16), (keys,), 1.0)


CAUSAL = Number(
    id="22.11",
    title="A skipped block should not be read",
    task=r"""
        **Given** flash attention with a causal mask, for one head of 8,192 tokens in
        blocks of 512 queries and 512 keys. The grid has $16\times16$ steps, and step
        $(i, j)$ does nothing if $j > i$. The index map of the keys gives block
        $\min(i, j)$, so a skipped step needs the block that is already there.

        **Wanted** how many blocks of keys are copied.
    """,
    stub="blocks = ...",
    unit="",
    expected=lambda: len(_causal(clamped=True).changes["K"]),
    rtol=0,
    slips=(
        Slip(
            "all steps",
            lambda right: float(len(_causal(clamped=False).changes["K"])),
            "A skipped step needs a block that is already there.",
        ),
        Slip(
            "rows apart",
            lambda right: 136.0,
            "Very close. Which block is in VMEM when the second row begins?",
        ),
        Slip(
            "without the diagonal",
            lambda right: 120.0,
            "The blocks on the diagonal are needed too.",
        ),
        Slip(
            "half of all steps",
            lambda right: 128.0,
            "Row i needs i + 1 blocks. What is their sum?",
        ),
    ),
    hint="Row i needs the blocks 0 to i. Is the first block of a row already there?",
    solution="""
        Row i needs i + 1 blocks, so all rows together need 136. But the first row ends
        with block 0 and the second row begins with it, so the kernel doesn't copy it
        again.

        ```python
        blocks = sum(i + 1 for i in range(16)) - 1
        ```
    """,
)

PADDING = Number(
    id="22.12",
    title="Padding",
    task=r"""
        **Given** four experts with 300, 20, 128 and 129 rows. The rows of each
        expert are padded to whole blocks of 128.

        **Wanted** the share of the rows in these blocks that are not padding.
    """,
    stub="share = ...",
    unit="",
    expected=lambda: 577 / (128 * len(blocks.row_groups([300, 20, 128, 129], 128))),
    slips=(
        Slip(
            "experts share blocks",
            lambda right: 577 / 640,
            "Did you pad the sum of all rows? A block belongs to one expert.",
        ),
        Slip(
            "the padding",
            lambda right: 1 - right,
            "That is the share of the padding.",
        ),
        Slip(
            "as many blocks as the largest",
            lambda right: 577 / (4 * 384),
            "Did you give each expert as many blocks as the largest one has?",
        ),
    ),
    hint="How many blocks does each of the experts fill?",
    solution="""
        The experts fill 3, 1, 1 and 2 blocks.

        ```python
        share = (300 + 20 + 128 + 129) / (7 * 128)
        ```
    """,
)


def _listed(counts: list, rows: int) -> list:
    return list(blocks.row_groups(counts, rows))


def _rounded_down(counts: list, rows: int) -> list:
    return [e for e, count in enumerate(counts) for _ in range(count // rows)]


def _one_more(counts: list, rows: int) -> list:
    return [e for e, count in enumerate(counts) for _ in range(count // rows + 1)]


def _equal(counts: list, rows: int) -> list:
    most = -(-max(counts) // rows)
    return [e for e in range(len(counts)) for _ in range(most)]


def _some_counts(rng) -> tuple:
    rows = rng.choice((64, 128, 256))
    counts = [
        rng.choice((0, rows, rng.randint(1, 4 * rows)))
        for _ in range(rng.randint(2, 6))
    ]
    return [*counts, rng.randint(1, rows - 1), 2 * rows + 1], rows


GROUPS = Function(
    id="22.13",
    title="The expert of each block",
    task=r"""
        **Given** `counts`, the number of rows of each expert, and `rows`, the number of
        rows in a block. The rows of each expert are padded to whole blocks, and the
        blocks are in the order of the experts.

        **Wanted** a function that returns a list with the expert of each block, as
        scalar prefetch needs it.
    """,
    stub="def groups(counts, rows): ...",
    spec=_listed,
    cases=_some_counts,
    examples=(([130, 0, 5], 128), ([128, 64], 64)),
    slips=(
        Slip(
            "rounded down",
            _rounded_down,
            "The last rows of an expert need a block too.",
        ),
        Slip(
            "one more",
            _one_more,
            "An expert whose rows fill whole blocks needs no further block.",
        ),
        Slip(
            "as many for each",
            _equal,
            "Did you give each expert as many blocks as the largest one has?",
        ),
    ),
    hint="How many blocks does an expert with `count` rows fill?",
    solution="""
        ```python
        def groups(counts, rows):
            found = []
            for expert, count in enumerate(counts):
                found += [expert] * -(-count // rows)
            return found
        ```
    """,
)

WEIGHTED = Number(
    id="22.14",
    title="Two kinds of calls",
    task=r"""
        **Given** a program that makes 200 short calls and 40 long calls. With new
        kernels, a short call takes 10 µs and is 1.5 times as fast as before, and a long
        call takes 1 ms and is 0.9 times as fast as before.

        **Wanted** the old time of all calls divided by the new time.
    """,
    stub="gain = ...",
    unit="",
    expected=lambda: (200 * 10e-6 * 1.5 + 40 * 1e-3 * 0.9) / (200 * 10e-6 + 40 * 1e-3),
    slips=(
        Slip(
            "the mean of the ratios",
            lambda right: 1.2,
            "That counts each kind of call once. Which kind takes most of the time?",
        ),
        Slip(
            "weighted by calls",
            lambda right: 1.4,
            "Did you weight by the number of calls? Weight by their time.",
        ),
        Slip(
            "one call of each",
            lambda right: (10e-6 * 1.5 + 1e-3 * 0.9) / 1.01e-3,
            "Did you count each kind of call once?",
        ),
        Slip(
            "upside down", lambda right: 1 / right, "That is the new time over the old."
        ),
    ),
    hint="How long did each call take before?",
    solution="""
        A call that became s times as fast took s times as long before.

        ```python
        short, long = 200 * 10e-6, 40 * 1e-3
        gain = (short * 1.5 + long * 0.9) / (short + long)
        ```
    """,
)

SAVED = Number(
    id="22.15",
    title="Chip-hours",
    task=r"""
        **Given** a run of 1 million chip-hours. Matmuls take 70 % of a step, and a new
        library makes them 1.2 times as fast. Nothing else changes.

        **Wanted** the chip-hours that are saved.
    """,
    stub="hours = ...",
    unit="",
    expected=lambda: 1e6 * 0.7 * (1 - 1 / 1.2),
    slips=(
        Slip(
            "the whole step",
            lambda right: right / 0.7,
            "Did you make the whole step faster? Matmuls are 70 % of it.",
        ),
        Slip(
            "20 % of the time",
            lambda right: 1e6 * 0.7 * 0.2,
            "Matmuls that are 1.2 times as fast don't take 20 % less time.",
        ),
        Slip(
            "what remains",
            lambda right: 1e6 - right,
            "Those are the hours that remain.",
        ),
    ),
    hint="Use formula (22.7).",
    solution="""
        The matmuls now take 0.7/1.2 of the old step.

        ```python
        new = 1 - 0.7 + 0.7 / 1.2
        hours = 1e6 * (1 - new)
        ```
    """,
)


def _gain(calls: list) -> float:
    new = sum(count * t for count, t, _ in calls)
    return sum(count * t * s for count, t, s in calls) / new


def _mean_ratio(calls: list) -> float:
    return sum(s for _, _, s in calls) / len(calls)


def _by_calls(calls: list) -> float:
    return sum(count * s for count, _, s in calls) / sum(count for count, _, _ in calls)


def _harmonic(calls: list) -> float:
    old = sum(count * t for count, t, _ in calls)
    return old / sum(count * t / s for count, t, s in calls)


def _some_calls(rng) -> tuple:
    return (
        [
            [rng.randint(1, 500), 10 ** rng.uniform(-6, -2), rng.randint(70, 180) / 100]
            for _ in range(rng.randint(2, 6))
        ],
    )


GAIN = Function(
    id="22.16",
    title="What your program gains",
    task=r"""
        **Given** `calls`, a list with an entry for each shape: how often your program
        calls the kernel with this shape, the seconds that one call takes with the new
        kernel, and the speed-up over the old kernel.

        **Wanted** a function that returns the old time of all calls divided by the new
        time.
    """,
    stub="def gain(calls): ...",
    spec=_gain,
    gives=(("the gain", ""),),
    cases=_some_calls,
    examples=(([[1000, 5e-6, 1.4], [50, 2e-3, 0.98]],),),
    rtol=1e-6,
    slips=(
        Slip(
            "the mean of the ratios",
            _mean_ratio,
            "A plain mean counts every shape once, however long its calls take.",
        ),
        Slip(
            "weighted by calls",
            _by_calls,
            "Did you weight by the number of calls? Weight by their time.",
        ),
        Slip(
            "old times for new ones",
            _harmonic,
            "The given seconds are those of the new kernel. To get the old time of a "
            "call, multiply them by the speed-up.",
        ),
    ),
    hint="Use formula (22.6), and multiply the time of each shape by its number of "
    "calls.",
    solution="""
        ```python
        def gain(calls):
            old = sum(count * t * s for count, t, s in calls)
            new = sum(count * t for count, t, s in calls)
            return old / new
        ```
    """,
)

QUESTIONS = (
    TRAFFIC,
    STAYS,
    VMEM,
    DEEP,
    SIDE,
    TIME,
    SCORES,
    JOIN,
    QUERIES,
    COUNT,
    CAUSAL,
    PADDING,
    GROUPS,
    WEIGHTED,
    SAVED,
    GAIN,
)
