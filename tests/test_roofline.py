"""The two times: equations, limits, an independent count, published answers, errors."""

import math

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmath import chips, roofline
from shardmath.estimate import Estimate, Leg, Roof

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
    ],
)
def test_bad_input_is_quoted(call, said):
    with pytest.raises(ValueError, match=said):
        call()
