"""Kernels that work on blocks: their HBM traffic, the VMEM they need, and their time.

A kernel runs once for every step of a grid. In each step it works on one block of every
array, and a block is read from HBM only if it differs from that of the previous step.
Copies are double-buffered: while a step computes, the blocks of the next step are read,
and those that the previous step finished are written.

    traffic = Σ changes of block · bytes of a block
    VMEM    = 2 · Σ bytes of a block + scratch
    T       = first copy + Σ max(T_math, T_copies) + last copy
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..base.records import kept
from ..base.units import (
    MiB,
    bytes_per_value,
    flags,
    non_negative_int,
    number,
    positive,
    positive_int,
    short_repr,
    shortened,
    show,
    text,
)
from .chips import Chip, require_chip

MOST_STEPS = 2**18  # of a grid; counting them takes about a second
LANES = 128  # a column of values takes as much VMEM as 128 columns

# Bytes of VMEM that a kernel may use by default, by chip: the limits that XLA:TPU
# (libtpu 0.0.42.1) prints when it rejects a kernel. The VMEM itself is larger.
SCOPED_VMEM = {
    "tpu_v5e": 16 * MiB,
    "tpu_v5p": 16 * MiB,
    "tpu_v6e": 32 * MiB,
    "tpu_7x": 32 * MiB,
}


@dataclass(frozen=True)
class BlockedArray:
    """An array of a kernel, and the block of it that each step works on.

    Args:
        name: the name of the array, such as "X".
        shape: the sizes of the array.
        block: the sizes of a block; each divides the array's size.
        index: a block's place, counted in blocks, as a function of the grid's indices.
        itemsize: bytes of one value.
        written: whether blocks are written to HBM, as for a result, instead of read.

    Raises:
        ValueError: a name that is not a string, a size that is not a whole number from
            1, a block that does not divide the array, or an index that is not a
            function.

    >>> BlockedArray("X", (4096, 4096), (512, 500), lambda i, k: (i, k))
    Traceback (most recent call last):
    ValueError: X: a block of 512 × 500 does not divide an array of 4096 × 4096
    """

    name: str
    shape: tuple[int, ...]
    block: tuple[int, ...]
    index: Callable[..., tuple[int, ...]]
    itemsize: float = 2.0
    written: bool = False

    def __post_init__(self) -> None:
        text("name", self.name)
        kept(self, flags, "written")
        if not callable(self.index):
            wanted = "must be a function of the grid's indices"
            raise ValueError(f"index = {short_repr(self.index)}: {wanted}")
        for what in ("shape", "block"):
            sizes = getattr(self, what)
            if not isinstance(sizes, tuple) or not sizes:
                wanted = "must be a tuple of sizes, such as (512, 512)"
                raise ValueError(f"{what} = {short_repr(sizes)}: {wanted}")
            named = {f"{what}[{n}]": size for n, size in enumerate(sizes)}
            object.__setattr__(self, what, tuple(positive_int(**named)))
        kept(self, positive, "itemsize")
        fits = len(self.shape) == len(self.block) and not any(
            size % part for size, part in zip(self.shape, self.block, strict=True)
        )
        if not fits:
            raise ValueError(
                f"{shortened(self.name)}: a block of {_sides(self.block)} does not "
                f"divide an array of {_sides(self.shape)}"
            )

    @property
    def block_bytes(self) -> float:
        """Bytes of one block."""
        return math.prod(self.block) * self.itemsize


@dataclass(frozen=True)
class Pipelined:
    """The time of a kernel whose copies run while it computes, at full rates.

    Args:
        first: seconds until the blocks of the first step have arrived.
        steps: seconds of all steps; each takes as long as its math or its copies,
            whichever is longer.
        last: seconds until the last blocks are written.
        math: seconds of the math without any copies.
    """

    first: float
    steps: float
    last: float
    math: float

    @property
    def seconds(self) -> float:
        return self.first + self.steps + self.last

    @property
    def utilization(self) -> float:
        """Share of the peak: the time of the math divided by the whole time."""
        return self.math / self.seconds


@dataclass(frozen=True)
class BlockedKernel:
    """A grid of steps, the arrays that they work on in blocks, and their FLOPs.

    Args:
        grid: steps along each axis; the last axis varies fastest.
        arrays: a `BlockedArray` for each array.
        step_flops: FLOPs of one step.
        scratch: bytes of VMEM that are kept from step to step, such as running sums.

    Raises:
        ValueError: no arrays, a grid that has more than `MOST_STEPS` steps or is not
            made of whole numbers, FLOPs that are not positive, or a scratch below 0.
    """

    grid: tuple[int, ...]
    arrays: tuple[BlockedArray, ...]
    step_flops: float
    scratch: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.grid, tuple) or not self.grid:
            wanted = "must be a tuple of steps, such as (8, 8, 8)"
            raise ValueError(f"grid = {short_repr(self.grid)}: {wanted}")
        sides = {f"grid[{n}]": side for n, side in enumerate(self.grid)}
        object.__setattr__(self, "grid", tuple(positive_int(**sides)))
        if self.steps > MOST_STEPS:
            raise ValueError(
                f"a grid of {_sides(self.grid)} has {self.steps:,} steps: must be at "
                f"most {MOST_STEPS:,}, which are counted one by one; use larger blocks"
            )
        arrays = self.arrays if isinstance(self.arrays, tuple) else ()
        if not arrays or not all(isinstance(one, BlockedArray) for one in arrays):
            wanted = "must be a tuple of BlockedArray"
            raise ValueError(f"arrays = {short_repr(self.arrays)}: {wanted}")
        kept(self, positive, "step_flops")
        if number("scratch", self.scratch) != 0:
            kept(self, positive, "scratch")

    @property
    def steps(self) -> int:
        """The number of steps of the grid."""
        return math.prod(self.grid)

    @property
    def flops(self) -> float:
        """FLOPs of all steps."""
        return self.steps * self.step_flops

    @cached_property
    def changes(self) -> dict[str, tuple[int, ...]]:
        """For each array, the steps whose block is not that of the previous step."""
        last: dict[str, object] = {}
        found: dict[str, list[int]] = {array.name: [] for array in self.arrays}
        for step, place in enumerate(itertools.product(*map(range, self.grid))):
            for array in self.arrays:
                block = array.index(*place)
                if last.get(array.name) != block:
                    last[array.name] = block
                    found[array.name].append(step)
        return {name: tuple(steps) for name, steps in found.items()}

    def crossings(self, array: BlockedArray) -> tuple[int, ...]:
        """Steps that need a new block of `array`, or complete one to be written."""
        starts = self.changes[array.name]
        if array.written:
            return (*(start - 1 for start in starts[1:]), self.steps - 1)
        return starts

    @property
    def traffic(self) -> dict[str, float]:
        """Bytes that are read from or written to HBM, by array."""
        return {
            array.name: len(self.changes[array.name]) * array.block_bytes
            for array in self.arrays
        }

    @property
    def intensity(self) -> float:
        """FLOPs per byte of HBM traffic."""
        return self.flops / sum(self.traffic.values())

    @property
    def vmem(self) -> float:
        """Bytes of VMEM for blocks and scratch; what a compiler adds is left out.

        A block has two buffers, so that the next one can arrive; a block that never
        changes has one.
        """
        return self.scratch + sum(
            array.block_bytes * (2 if len(self.changes[array.name]) > 1 else 1)
            for array in self.arrays
        )

    def require_vmem(self, limit: float) -> None:
        """Raise unless blocks and scratch fit into `limit` bytes.

        >>> matmul(4096, 4096, 4096, (2048, 2048), 512).require_vmem(16 * MiB)
        Traceback (most recent call last):
        ValueError: blocks and scratch take 40 MiB of VMEM, 24 MiB more than the 16 \
MiB there are: X 2048 × 512, Y 512 × 2048, Z 2048 × 2048
        """
        (limit,) = positive(limit=limit)
        if self.vmem <= limit:
            return
        blocks = ", ".join(f"{one.name} {_sides(one.block)}" for one in self.arrays)
        need, over, has = (
            show(size, "capacity") for size in (self.vmem, self.vmem - limit, limit)
        )
        raise ValueError(
            f"blocks and scratch take {need} of VMEM, {over} more than the {has} there "
            f"are: {blocks}"
        )

    def pipelined(self, chip: Chip, precision: str = "bf16") -> Pipelined:
        """The time on `chip`, if math and copies run at the chip's full rates.

        Assumes:
            The blocks of a step are read during the previous step, and those that it
            finishes are written during the next one. Starting a step takes no time.
        """
        peak = require_chip(chip).flops[precision]
        reads, writes = self.copied()
        compute, rate = self.step_flops / peak, chip.hbm_bandwidth
        arriving, leaving = [*reads[1:], 0.0], [0.0, *writes[:-1]]
        copies = zip(arriving, leaving, strict=True)
        steps = math.fsum(max(compute, (new + old) / rate) for new, old in copies)
        last = writes[-1] / rate
        return Pipelined(reads[0] / rate, steps, last, self.flops / peak)

    def copied(self) -> tuple[list[float], list[float]]:
        """For each step, bytes that it has to read, and bytes that it finishes."""
        reads, writes = [0.0] * self.steps, [0.0] * self.steps
        for array in self.arrays:
            for step in self.crossings(array):
                (writes if array.written else reads)[step] += array.block_bytes
        return reads, writes


def matmul(
    B: int,
    D: int,
    F: int,
    tile: tuple[int, int],
    depth: int,
    precision: str = "bf16",
) -> BlockedKernel:
    """X[B, D] · Y[D, F] -> Z[B, F] in blocks [b, d] · [d, f], with fp32 sums in VMEM.

    The grid has an axis for rows of tiles, one for columns of tiles, and one for steps
    along D, which varies fastest. The traffic is that of `roofline.tile_traffic`, or
    less: if all of D is one block, X is read only once.

    Args:
        B, D, F: tokens, contracted size, output size.
        tile: b and f, the sides of a tile of Z.
        depth: d, the values of D in one step.
        precision: the format of all three arrays in HBM.

    >>> {name: nbytes / MiB for name, nbytes in
    ...  matmul(4096, 4096, 4096, (512, 512), 512).traffic.items()}
    {'X': 256.0, 'Y': 256.0, 'Z': 32.0}
    """
    B, D, F, depth = positive_int(B=B, D=D, F=F, depth=depth)
    if not isinstance(tile, tuple) or len(tile) != 2:
        raise ValueError(f"tile = {short_repr(tile)}: must be a pair, (rows, columns)")
    b, f = positive_int(**{"tile[0]": tile[0], "tile[1]": tile[1]})
    w = bytes_per_value(precision)
    arrays = (
        BlockedArray("X", (B, D), (b, depth), lambda i, j, k: (i, k), w),
        BlockedArray("Y", (D, F), (depth, f), lambda i, j, k: (k, j), w),
        BlockedArray("Z", (B, F), (b, f), lambda i, j, k: (i, j), w, written=True),
    )
    grid = (B // b, F // f, D // depth)
    return BlockedKernel(grid, arrays, 2.0 * b * f * depth, scratch=4.0 * b * f)


def attention(
    N: int,
    S: int,
    T: int,
    H: int,
    queries: int,
    keys: int,
    precision: str = "bf16",
) -> BlockedKernel:
    """Flash attention of N heads: all keys stream past each block of queries.

    The grid has axes for heads, blocks of queries and blocks of keys. For each query of
    the block, VMEM keeps, in fp32, the sum of values, the largest score and the sum of
    exponentials. A block of scores is also on the chip, but `vmem` leaves it out.

    Args:
        N: heads, each with separate keys and values.
        S, T: queries and keys of a head, without a mask.
        H: size of a head.
        queries, keys: rows of a block of queries, and of a block of keys and values.
        precision: the format of all arrays in HBM.

    >>> attention(8, 8192, 8192, 128, 512, 512).intensity > 240
    True
    """
    N, S, T, H = positive_int(N=N, S=S, T=T, H=H)
    queries, keys = positive_int(queries=queries, keys=keys)
    w = bytes_per_value(precision)

    def of_queries(n: int, i: int, j: int) -> tuple[int, ...]:
        return n, i, 0

    def of_keys(n: int, i: int, j: int) -> tuple[int, ...]:
        return n, j, 0

    block, past = (1, queries, H), (1, keys, H)
    arrays = (
        BlockedArray("Q", (N, S, H), block, of_queries, w),
        BlockedArray("K", (N, T, H), past, of_keys, w),
        BlockedArray("V", (N, T, H), past, of_keys, w),
        BlockedArray("A", (N, S, H), block, of_queries, w, written=True),
    )
    kept = 4.0 * queries * (H + 2 * LANES)
    grid = (N, S // queries, T // keys)
    return BlockedKernel(grid, arrays, 4.0 * queries * keys * H, scratch=kept)


def row_groups(counts: Sequence[int], rows: int) -> tuple[int, ...]:
    """The expert of each block of rows, if every expert's rows are padded to blocks.

    Args:
        counts: rows of each expert, 0 or more.
        rows: rows of a block.

    >>> row_groups([130, 0, 5], 128)
    (0, 0, 2)
    """
    (rows,) = positive_int(rows=rows)
    if not isinstance(counts, Sequence) or isinstance(counts, str | bytes):
        raise ValueError(f"counts = {short_repr(counts)}: must be a list of numbers")
    named = {f"counts[{expert}]": count for expert, count in enumerate(counts)}
    filled = [-(-count // rows) for count in non_negative_int(**named)]
    if sum(filled) > MOST_STEPS:
        raise ValueError(
            f"counts = {short_repr(counts)}: must fill at most {MOST_STEPS:,} blocks"
        )
    return tuple(expert for expert, many in enumerate(filled) for _ in range(many))


def grouped_matmul(
    counts: Sequence[int],
    D: int,
    F: int,
    rows: int,
    columns: int,
    depth: int,
    precision: str = "bf16",
) -> BlockedKernel:
    """X[rows of all experts, D] · W[experts, D, F]: each row times its expert's matrix.

    The rows are sorted by expert, and those of each expert are padded to whole blocks.
    `row_groups` lists which expert's matrix each block of rows needs.

    Args:
        counts: rows of each expert.
        D, F: contracted size and output size of an expert's matrix.
        rows, columns, depth: a block of X is rows × depth, and a block of W is depth ×
            columns.
        precision: the format of all arrays in HBM.

    >>> grouped_matmul([130, 0, 5], 256, 256, 128, 128, 128).grid
    (3, 2, 2)
    """
    groups = row_groups(counts, rows)
    if not groups:
        raise ValueError(f"counts = {short_repr(counts)}: must have at least one row")
    D, F, columns, depth = positive_int(D=D, F=F, columns=columns, depth=depth)
    w, padded = bytes_per_value(precision), len(groups) * rows

    def of_weights(i: int, j: int, k: int) -> tuple[int, ...]:
        return groups[i], k, j

    arrays = (
        BlockedArray("X", (padded, D), (rows, depth), lambda i, j, k: (i, k), w),
        BlockedArray("W", (len(counts), D, F), (1, depth, columns), of_weights, w),
        BlockedArray("Z", (padded, F), (rows, columns), lambda i, j, k: (i, j), w,
                     written=True),
    )  # fmt: skip
    grid = (len(groups), F // columns, D // depth)
    flops, kept = 2.0 * rows * columns * depth, 4.0 * rows * columns
    return BlockedKernel(grid, arrays, flops, scratch=kept)


def _sides(sizes: Sequence[int]) -> str:
    return " × ".join(map(str, sizes))
