"""The two times: equations, limits, an independent count, published answers, errors."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmath.base.estimate import Estimate, Leg, Roof
from shardmath.base.units import bytes_per_value
from shardmath.hardware import chips, roofline

SIZES = st.integers(1, 20_000)
V5E_AS_PUBLISHED = chips.measured("v5e", {"bf16": 197e12}, 820e9)


@given(SIZES, SIZES, SIZES)
def test_bounds_are_never_wider_than_a_factor_of_two(B, D, F):
    op = roofline.matmul(B, D, F, chips.TPU_V5P)
    assert op.lower <= op.upper <= 2 * op.lower
    assert 0 < op.utilization <= 1


@given(SIZES, SIZES, SIZES)
def test_bound_and_roof_agree(B, D, F):
    """Above the chip's critical intensity compute binds; the rate lies on the roof."""
    op, chip = roofline.matmul(B, D, F, chips.H100), chips.H100
    compute = op.intensity > chip.intensity("bf16")
    assert (op.bound == "compute-bound") == compute
    rate = op.flops / op.lower
    assert rate == pytest.approx(roofline.roof(chip).at(op.intensity), rel=1e-12)


@pytest.mark.parametrize(("B", "D", "F"), [(24, 512, 1024), (8, 256, 128), (300, 7, 9)])
def test_flops_and_bytes_are_the_compilers(B, D, F):
    """XLA counts both on its own; in fp32 each value has four bytes."""
    x, w = (jax.ShapeDtypeStruct(s, jnp.float32) for s in ((B, D), (D, F)))
    cost = jax.jit(jnp.dot).lower(x, w).compile().cost_analysis()
    op = roofline.matmul(B, D, F, chips.H100, "fp32")
    assert op.flops == cost["flops"]
    assert op.nbytes == cost["bytes accessed"]


@given(st.integers(600, 30_000), st.integers(600, 30_000))
def test_critical_batch_is_where_the_times_cross(D, F):
    for stored in ("bf16", "int8"):
        B = roofline.critical_batch(chips.TPU_V5E, D, F, weights=stored)
        times = roofline.matmul(
            B, D, F, chips.TPU_V5E, weights=stored, activations="bf16"
        ).seconds
        assert times["math"] == pytest.approx(times["HBM"], rel=1e-9)


def test_critical_batch_limits():
    """Large matrices give the rule of thumb; too small ones have no critical batch."""
    rule = roofline.critical_batch(chips.TPU_V5E)
    assert rule == chips.TPU_V5E.intensity("bf16")
    assert roofline.critical_batch(chips.TPU_V5E, 1e12, 1e12) == pytest.approx(rule)
    assert roofline.critical_batch(chips.TPU_V5E, 480, 480) == math.inf
    largest = roofline.matmul(1e9, 480, 480, chips.TPU_V5E)
    assert largest.bound == "memory-bound"


@pytest.mark.parametrize(
    ("size", "tokens"), [(math.inf, 120.122), (4096, 136.086), (1024, 226.315)]
)
def test_published_int8_weight_crossings(size, tokens):
    """How to Scale Your Model, ch. 1, question 3: exact crossings, 820 GB/s."""
    found = roofline.critical_batch(V5E_AS_PUBLISHED, size, size, weights="int8")
    assert found == pytest.approx(tokens, rel=1e-5)


def test_published_intensities():
    """Ibid., ch. 1: v5e 240 FLOPs per byte; question 5: H100 295 tokens."""
    assert V5E_AS_PUBLISHED.intensity("bf16") == pytest.approx(240, rel=0.005)
    assert roofline.critical_batch(chips.H100) == pytest.approx(295, rel=0.005)


def test_one_tile_is_the_plain_matmul():
    tiled = roofline.tiled_matmul(96, 64, 80, chips.TPU_V5E, tile=(96, 80))
    assert tiled.seconds == roofline.matmul(96, 64, 80, chips.TPU_V5E).seconds


@given(*[st.integers(1, 60)] * 5)
def test_tile_traffic_is_what_a_walk_over_the_tiles_counts(B, D, F, b, f):
    moved = 0
    for i in range(0, B, b):
        for j in range(0, F, f):
            rows, columns = len(range(i, min(i + b, B))), len(range(j, min(j + f, F)))
            moved += rows * D + D * columns + rows * columns
    # A walk loads exactly the rows and columns that exist.
    assert roofline.tile_traffic(B, D, F, (b, f)) == moved


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_the_network_roof_depends_on_neither_batch_nor_output(B, F):
    """D = 2C / link bandwidth is where math and network take equal time."""
    chip = chips.TPU_V5E
    D = 2 * chip.flops["bf16"] / chip.link_bandwidth
    times = roofline.split_matmul(B, D, F, chip).seconds
    assert times["math"] == pytest.approx(times["network"], rel=1e-12)


def test_published_split_threshold():
    """Ibid., ch. 1: 45 GB/s of an ICI link make a v5e comms-bound below D = 8755."""
    times = roofline.split_matmul(
        1, 8755, 1, V5E_AS_PUBLISHED, bandwidth=4.5e10
    ).seconds
    assert times["math"] == pytest.approx(times["network"], rel=1e-3)


def test_estimate_says_which_resource_binds():
    legs = (Leg("math", 1.0, 1.0), Leg("HBM", 2.0, 1.0), Leg("network", 3.0, 1.0))
    estimate = Estimate("toy", legs)
    assert estimate.bound == "comms-bound"
    assert (estimate.lower, estimate.upper) == (3.0, 6.0)
    assert str(estimate).startswith("toy: 3 s to 6 s, comms-bound")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: roofline.matmul(0, 8, 8, chips.H100), r"B = 0"),
        (lambda: roofline.matmul(8, math.nan, 8, chips.H100), r"D = nan"),
        (lambda: roofline.matmul(8, 8, 8, chips.TPU_V5E, "fp4"), r"fp4.*bf16"),
        (lambda: roofline.matmul(8, 8, 8, chips.H100, weights="bf61"), r"bf61"),
        (lambda: roofline.critical_batch(chips.H100, D=-1), r"D = -1"),
        (lambda: roofline.tile_traffic(8, 8, 8, (0, 4)), r"b = 0"),
        (lambda: roofline.split_matmul(8, 8, 8, chips.H100, -1), r"bandwidth = -1"),
        (lambda: roofline.elementwise(math.inf, chips.H100), r"n = inf"),
        (lambda: Roof("toy", 1.0, 0.0), r"bandwidth = 0"),
        (lambda: roofline.matmul(10**400, 8, 8, chips.H100), r"B = 10+"),
        (lambda: roofline.critical_batch(chips.H100, D=[1, 2]), r"D = \[1, 2\]"),
        (lambda: roofline.matmul(8, 8, 8, chips.H100, weights=["int8"]), r"\['int8'\]"),
        (lambda: roofline.tile_traffic(8, 8, 8, (0.5, 4)), r"tile = \(0.5, 4\)"),
        (lambda: roofline.elementwise(8, chips.H100, rate=0), r"rate = 0"),
        (lambda: Leg("gpu", 1.0, 1.0), r"resource = 'gpu': must be one of math"),
        (lambda: Leg("math", 10**400, 1.0), r"amount = 10+"),
        (lambda: Leg("math", 1.0, 1.0, math.nan), r"slack = nan"),
        (lambda: Estimate("toy", ()), r"toy: must use at least one resource"),
        (lambda: Estimate("toy", 2 * (Leg("HBM", 1, 1),)), r"only one Leg for 'HBM'"),
        (lambda: roofline.matmul(8, 8, 8, chips.H100, weights=""), r"precision ''"),
        (lambda: roofline.critical_batch(chips.H100, activations=""), r"precision ''"),
        (lambda: roofline.roof(chips.H100, "BF16"), r"precision 'BF16'"),
        (lambda: Estimate("toy", (Leg("math", 1, 1),)).intensity, r"toy: .* the HBM"),
    ],
)
def test_bad_input_is_quoted(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_an_estimate_is_made_of_legs():
    with pytest.raises(ValueError, match="x: must be made of Legs, not of 3"):
        Estimate("x", (3,))


def test_titles_have_sizes_in_full():
    assert "[1048576, 8192] · [8192, 0.5]" in str(
        roofline.matmul(2**20, 8192, 0.5, chips.H100)
    )


@pytest.mark.parametrize(
    "pair", [np.array((128, 64)), [128, 64], (128.0, np.int32(64))]
)
def test_a_tile_may_be_any_pair(pair):
    assert roofline.tile_traffic(256, 8, 256, pair) == roofline.tile_traffic(
        256, 8, 256, (128, 64)
    )
    for wrong in ("ab", {128: 64}, {128, 64}, (1, 2, 3)):
        with pytest.raises(ValueError, match="must be a pair"):
            roofline.tile_traffic(8, 8, 8, wrong)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: roofline.matmul(8, 8, 8, "v5e"), "chip = 'v5e': must be a Chip"),
        (lambda: roofline.critical_batch(None), "chip = None"),
        (lambda: roofline.split_threshold("v5e"), "chip = 'v5e'"),
        (lambda: roofline.roof("v5e"), "chip = 'v5e'"),
        (lambda: roofline.tile_traffic(8, 8, 8, 4), r"tile = 4: must be a pair"),
        (
            lambda: roofline.tile_traffic(8, 8, 8, np.array(3)),
            r"tile = array\(3\): must be a pair",
        ),
        (
            lambda: roofline.tiled_matmul(8, 8, 8, chips.H100, (8, 8), inner=4),
            "inner = 4: must be a pair",
        ),
    ],
)
def test_what_is_no_chip_or_no_pair_is_quoted(call, said):
    with pytest.raises(ValueError, match=said):
        call()


# --------------------------------------------------------- the host, the other roof


def test_a_host_link_has_its_own_critical_batch():
    """61,000 tokens on a v6e whose weights come over 15 GB/s: a published answer."""
    v6e = chips.TPU_V6E
    published = roofline.critical_batch(v6e, bandwidth=1.5e10)
    assert published == pytest.approx(61_000, rel=0.005)
    over_host = roofline.critical_batch(v6e, 8192, 32_768, bandwidth=1.5e11)
    slow = chips.measured("slow", {"bf16": v6e.flops["bf16"]}, 1.5e11)
    assert over_host == roofline.critical_batch(slow, 8192, 32_768)
    with pytest.raises(ValueError, match="bandwidth = -1"):
        roofline.critical_batch(v6e, bandwidth=-1)


def test_reading_takes_bytes_over_bandwidth_and_no_math():
    """200 billion parameters in bf16 on 32 v4 take about 10 ms: a published answer."""
    v4 = chips.TPU_V4
    from_hbm = roofline.read(400e9 / 32, v4)
    assert from_hbm.lower == pytest.approx(10e-3, rel=0.05)
    assert (from_hbm.bound, from_hbm.flops) == ("memory-bound", 0)
    from_host = roofline.read(16e9, v4, bandwidth=v4.host_bandwidth)
    assert (from_host.lower, from_host.bound) == (1, "comms-bound")


def test_elementwise_work_stands_under_the_roof_of_the_vector_units():
    """Under the matrix units' no operation on n values would ever be compute-bound."""
    v5e = chips.TPU_V5E
    roof = roofline.vector_roof(v5e)
    assert roof.peak == 1 * 4096 * 1.5e9 < roofline.roof(v5e).peak / 30
    for flops in (1, 10, 20, 60):
        op = roofline.elementwise(1e9, v5e, flops=flops)
        assert (op.bound == "compute-bound") == (op.intensity > roof.ridge)
        assert op.flops / op.lower == pytest.approx(roof.at(op.intensity))
    assert roofline.elementwise(1e9, v5e, flops=60).bound == "compute-bound"
    granted = roofline.elementwise(1e9, v5e, flops=60, rate=v5e.flops["bf16"])
    assert granted.bound == "memory-bound"


def test_the_published_intensity_of_a_vpu_counts_one_core_of_two():
    """About 3 at 7e12 FLOPs/s in chapter 1 of that book, 1.4e13 in its chapter 2."""
    v5p = chips.TPU_V5P
    assert v5p.vector_flops == pytest.approx(1.4e13, rel=0.03)
    assert v5p.vector_flops / v5p.cores == pytest.approx(7e12, rel=0.03)
    assert roofline.vector_roof(v5p).ridge / v5p.cores == pytest.approx(3, rel=0.15)
    with pytest.raises(ValueError, match="MI300X: no source states 'lanes'"):
        roofline.elementwise(8, chips.MI300X)


@pytest.mark.parametrize("side", [8, 128, 256])
def test_sums_that_go_in_and_out_cost_more_than_the_activations(side):
    """Count the bytes of a token: side in bf16, side sums in fp32 in and out."""
    nbytes = side * 2 + side * 4 + side * 4
    found = roofline.stationary_intensity(side)
    assert found == pytest.approx(2 * side**2 / nbytes)
    assert found == pytest.approx(side / 2 / 2.5)  # and not the side / 2 of kept sums


# ------------------------------------------------------------------- two chips, again


@pytest.mark.parametrize(("D", "gain"), [(7880, 1.00), (16_384, 1.35), (32_768, 1.61)])
def test_without_overlap_a_second_chip_gains_less(D, gain):
    alone = roofline.matmul(1e6, D, 1e6, chips.TPU_V5E)
    split = roofline.split_matmul(1e6, D, 1e6, chips.TPU_V5E)
    assert alone.lower / split.without_overlap == pytest.approx(gain, abs=0.005)
    assert alone.lower / split.lower == pytest.approx(2, rel=1e-3)
    assert split.lower <= split.without_overlap <= split.upper


@given(st.integers(1, 100_000), st.integers(1, 100_000), st.booleans(), st.booleans())
def test_the_split_pays_above_its_threshold_and_not_below(B, F, overlap, gpu):
    chip = chips.H100 if gpu else chips.TPU_V5E
    D = roofline.split_threshold(chip, B, F, overlap=overlap)
    for factor in (0.999, 1.001):
        alone = roofline.matmul(B, factor * D, F, chip).lower
        split = roofline.split_matmul(B, factor * D, F, chip)
        time = split.lower if overlap else split.without_overlap
        assert (time < alone) == (factor > 1)


@pytest.mark.parametrize("times_hbm", [0.01, 1, 10, 1000])
def test_a_link_faster_than_the_memory_has_a_threshold_too(times_hbm):
    """For large B and F one chip is bound by the result's traffic until D is long."""
    v5e = chips.TPU_V5E
    link = times_hbm * v5e.hbm_bandwidth
    exchange, result = 2 / link, 2 / v5e.hbm_bandwidth  # seconds, over B·F
    longer = max(exchange, result)
    for overlap, math_time in ((True, longer), (False, exchange + longer)):
        found = roofline.split_threshold(v5e, bandwidth=link, overlap=overlap)
        assert found == pytest.approx(math_time * v5e.flops["bf16"] / 2, rel=1e-9)


@given(st.integers(1, 100_000), st.integers(1, 100_000))
def test_the_threshold_at_best_has_a_closed_form(B, F):
    """The lesser of the math's and the HBM's, as its docstring says."""
    v5e = chips.TPU_V5E
    math_term = 2 * v5e.flops["bf16"] / (2 * v5e.link_bandwidth)
    hbm_term = (v5e.hbm_bandwidth / v5e.link_bandwidth - 1) * B * F / (B + F)
    found = roofline.split_threshold(v5e, B, F)
    assert found == pytest.approx(min(math_term, hbm_term), rel=1e-9)


# ------------------------------------------------------------------------ the one door


@pytest.mark.parametrize("convert", [np.int32, np.int64, np.float32, jnp.int32])
def test_numbers_of_fixed_width_do_not_overflow(convert):
    """In int32 this matmul would take 0 s and be memory-bound: 71 ms, compute-bound."""
    n = convert(65_536)
    exact = roofline.matmul(65_536, 65_536, 65_536, chips.TPU_V5E)
    for op in (
        roofline.matmul(n, n, n, chips.TPU_V5E),
        roofline.tiled_matmul(n, n, n, chips.TPU_V5E, (n, n)),
    ):
        assert op.bound == "compute-bound"
        assert op.lower == exact.lower
        assert all(type(leg.amount) in (int, float) for leg in op.legs)
    split = roofline.split_matmul(n, n, n, chips.TPU_V5E)
    assert split.flops == exact.flops / 2
    values = roofline.elementwise(convert(2**30), chips.TPU_V5E, reads=convert(2))
    assert values.nbytes == 3 * 2 * 2**30
    assert roofline.tile_traffic(n, n, n, (n, n)) == 3 * 65_536**2
    assert Leg("HBM", convert(2**30), convert(2**20)).seconds == 1024


def test_int4_takes_half_a_byte():
    """Weights in int4 have a quarter of the bytes, and need a quarter of the tokens."""
    assert bytes_per_value("int4") == 0.5
    batch = roofline.critical_batch
    assert batch(chips.TPU_V5E, weights="int4") == batch(chips.TPU_V5E) / 4
    op = roofline.matmul(1, 4096, 4096, chips.TPU_V5E, weights="int4")
    assert op.nbytes == 4096**2 / 2 + 2 * 2 * 4096
