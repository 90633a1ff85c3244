"""Kernels in blocks: what is copied, what VMEM holds, and how long it takes."""

import itertools
import math
import random

import jax
import jax.numpy as jnp
import pytest
from jax._src.pallas.mosaic.interpret import interpret_pallas_call as interpreter
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from shardmath.base.units import MiB
from shardmath.hardware import blocks, chips, roofline
from shardmath.hardware.blocks import BlockedArray, BlockedKernel
from shardmath.referee.compilers import golden_results, targets

V5E = chips.TPU_V5E
SIZES = [
    (4096, 4096, 4096, (256, 512), 512),
    (2048, 4096, 1024, (1024, 256), 256),
    (512, 1024, 2048, (512, 2048), 128),
]


@pytest.mark.parametrize(("B", "D", "F", "tile", "depth"), SIZES)
def test_counted_traffic_is_the_formula(B, D, F, tile, depth):
    """Where D takes several steps; the formula knows nothing of index maps."""
    kernel = blocks.matmul(B, D, F, tile, depth)
    values = roofline.tile_traffic(B, D, F, tile)
    assert sum(kernel.traffic.values()) == 2 * values
    assert kernel.flops == 2 * B * D * F


def test_a_strip_that_stays_is_read_once():
    kernel = blocks.matmul(1024, 512, 2048, (256, 256), 512)
    assert kernel.traffic["X"] == 2 * 1024 * 512
    assert kernel.traffic["Y"] == 4 * 2 * 512 * 2048


def multiply(x, y, z, sums):
    @pl.when(pl.program_id(2) == 0)
    def _():
        sums[...] = jnp.zeros_like(sums)

    sums[...] += jnp.dot(x[...], y[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        z[...] = sums[...]


@pytest.mark.parametrize(
    ("tile", "depth"), [((128, 128), 128), ((256, 128), 256), ((128, 256), 512)]
)
def test_the_interpreter_copies_what_is_counted(tile, depth, monkeypatch):
    """JAX's interpreter plays the copies of a TPU by itself; its HBM reads are summed.

    It reads the result once more, to hand it back.
    """
    read, get, numbers = [], interpreter.get, interpreter.TPU_MEMORY_SPACE_IDXS
    hbm = {numbers[pl.ANY], numbers[pltpu.HBM]}

    def counted(token, device, core, space, *args, **kwargs):
        found = get(token, device, core, space, *args, **kwargs)
        if int(space) in hbm:
            read.append(found[1].nbytes)
        return found

    monkeypatch.setattr(interpreter, "get", counted)
    kernel = blocks.matmul(512, 512, 512, tile, depth, precision="fp32")
    *operands, result = kernel.arrays
    call = pl.pallas_call(
        multiply,
        grid=kernel.grid,
        in_specs=[pl.BlockSpec(one.block, one.index) for one in operands],
        out_specs=pl.BlockSpec(result.block, result.index),
        out_shape=jax.ShapeDtypeStruct(result.shape, jnp.float32),
        scratch_shapes=[pltpu.VMEM(result.block, jnp.float32)],
        interpret=pltpu.InterpretParams(),
    )
    x = jnp.ones((512, 512))
    assert bool((call(x, x) == 512).all())
    assert sum(read) == sum(kernel.traffic.values())


def test_blocks_are_counted_as_a_cache_of_one_block_would():
    """Any index map, against a plain loop over the grid."""
    draw = random.Random(5)
    for _ in range(40):
        grid = tuple(draw.randint(1, 4) for _ in range(3))
        uses = [draw.random() < 0.5 for _ in grid]

        def index(*at, uses=uses):
            return tuple(n * use for n, use in zip(at, uses, strict=True))

        array = BlockedArray("X", (64, 64, 64), (8, 8, 8), index)
        kernel = BlockedKernel(grid, (array,), 1.0)
        held, copied = None, 0
        for at in itertools.product(*map(range, grid)):
            if index(*at) != held:
                held, copied = index(*at), copied + 1
        assert kernel.traffic["X"] == copied * 8**3 * 2


def test_vmem_holds_two_of_every_block_that_changes():
    kernel = blocks.matmul(4096, 4096, 4096, (1024, 1024), 512)
    assert kernel.vmem == 2 * (1 + 1 + 2) * MiB + 4 * MiB
    whole = blocks.matmul(512, 512, 512, (512, 512), 512)
    assert whole.vmem == 3 * 512 * 512 * 2 + 4 * 512 * 512


def test_what_is_too_large_is_told_by_how_much():
    kernel = blocks.matmul(4096, 4096, 4096, (2048, 1024), 512)
    kernel.require_vmem(22 * MiB)
    with pytest.raises(ValueError, match=r"take 22 MiB .* 6 MiB more than the 16 MiB"):
        kernel.require_vmem(16 * MiB)


def test_limits_are_those_that_the_compilers_print():
    """Every kept refusal of a kernel that asked for no more than the default."""
    found = {}
    for file in golden_results.FOLDER.glob("*-1.tiles.*.json"):
        row = golden_results.json.loads(file.read_text())
        if lost := row["out_of_memory"]:
            assert lost["memory"] == "VMEM"
            kind = targets.TPUS[row["target"].partition(":")[0]]
            found.setdefault(kind, set()).add(lost["available"])
    assert found == {chip: {limit} for chip, limit in blocks.SCOPED_VMEM.items()}


def played(kernel, chip):
    """The time by a clock for each unit, and no formula."""
    reads, writes = kernel.copied()
    at = reads[0] / chip.hbm_bandwidth
    for step in range(kernel.steps):
        copied = at
        if step + 1 < kernel.steps:
            copied += reads[step + 1] / chip.hbm_bandwidth
        if step:
            copied += writes[step - 1] / chip.hbm_bandwidth
        at = max(at + kernel.step_flops / chip.flops["bf16"], copied)
    return at + writes[-1] / chip.hbm_bandwidth


@pytest.mark.parametrize(("B", "D", "F", "tile", "depth"), SIZES)
def test_a_kernel_takes_its_math_or_its_copies(B, D, F, tile, depth):
    kernel = blocks.matmul(B, D, F, tile, depth)
    found = kernel.pipelined(V5E)
    assert found.seconds == pytest.approx(played(kernel, V5E))
    reads, writes = kernel.copied()
    assert sum(reads) + sum(writes) == sum(kernel.traffic.values())
    bound = roofline.tiled_matmul(B, D, F, V5E, tile)
    assert bound.lower <= found.seconds * (1 + 1e-9)
    one_by_one = found.math + sum(kernel.traffic.values()) / V5E.hbm_bandwidth
    assert found.seconds <= one_by_one * (1 + 1e-9)


def test_flash_attention_reads_keys_once_per_block_of_queries():
    kernel = blocks.attention(4, 4096, 2048, 128, 512, 256)
    once = {"Q": 4 * 4096, "K": 4 * 2048 * 8, "V": 4 * 2048 * 8, "A": 4 * 4096}
    assert kernel.traffic == {name: 2 * 128 * rows for name, rows in once.items()}
    assert kernel.flops == 4 * 4 * 4096 * 2048 * 128


def test_every_block_of_rows_reads_its_experts_matrix():
    counts = [130, 0, 5, 256]
    kernel = blocks.grouped_matmul(counts, 512, 1024, 128, 256, 256)
    assert blocks.row_groups(counts, 128) == (0, 0, 2, 3, 3)
    assert kernel.traffic["W"] == 5 * 512 * 1024 * 2
    weights = kernel.arrays[1]
    assert {weights.index(i, 0, 0)[0] for i in range(5)} == {0, 2, 3}


def test_useful_rows_of_many_experts_are_those_of_a_binomial():
    """The chapter's two thirds: 4,096 tokens, each at 8 of 256 experts."""
    draw, counts = random.Random(0), [0] * 256
    for _ in range(4096):
        for expert in draw.sample(range(256), 8):
            counts[expert] += 1
    held = 128 * len(blocks.row_groups(counts, 128))
    log = math.lgamma
    blocks_of = sum(
        -(-n // 128)
        * math.exp(
            log(4097) - log(n + 1) - log(4097 - n)
            + n * math.log(1 / 32) + (4096 - n) * math.log(31 / 32)
        )
        for n in range(4097)
    )  # fmt: skip
    assert sum(counts) / held == pytest.approx(1 / blocks_of, rel=0.02)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: blocks.matmul(4096, 4096, 4096, (500, 512), 512),
            "500 × 512 does not",
        ),
        (lambda: blocks.matmul(4096, 4096, 4096, 512, 512), "must be a pair"),
        (lambda: blocks.matmul(2**14, 2**14, 2**14, (8, 8), 8), "at most 262,144"),
        (
            lambda: blocks.grouped_matmul([0, 0], 256, 256, 128, 128, 128),
            "must have at least one row",
        ),
        (lambda: blocks.row_groups([-1], 128), r"counts\[0\] = -1"),
        (lambda: BlockedKernel((1,), (), 1.0), "must be a tuple of BlockedArray"),
        (lambda: BlockedKernel(3, (), 1.0), "must be a tuple of steps"),
    ],
)
def test_what_cannot_be_a_kernel_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
