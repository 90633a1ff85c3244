"""Number formats against those of JAX, which count their codes in another way."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from shardmath.hardware.number_formats import (
    BF16,
    E2M1,
    E4M3,
    FORMATS,
    FP16,
    INT8,
    NumberFormat,
    find,
    integers,
)

THEIRS = {
    "bf16": jnp.bfloat16,
    "fp16": jnp.float16,
    "e5m2": jnp.float8_e5m2,
    "e4m3": jnp.float8_e4m3fn,
    "e3m2": jnp.float6_e3m2fn,
    "e2m3": jnp.float6_e2m3fn,
    "e2m1": jnp.float4_e2m1fn,
}
each = pytest.mark.parametrize("name", THEIRS)


def enumerated(name: str) -> np.ndarray:
    """All finite values that JAX's format has from 0 upward."""
    bits = find(name).bits
    width = np.uint8 if bits <= 8 else np.uint16
    codes = np.arange(2 ** (bits - 1), dtype=width)
    values = codes.view(THEIRS[name]).astype(np.float64)
    return values[np.isfinite(values)]


@each
def test_the_values_are_those_of_jax(name):
    assert find(name).values == tuple(enumerated(name))


@each
def test_values_are_rounded_as_jax_rounds_them(name):
    """Ties, subnormal values and both signs; what is too large has its own test."""
    mine, theirs = find(name), THEIRS[name]
    draws = np.random.default_rng(5).standard_normal(2000)
    ties = [(a + b) / 2 for a, b in zip(mine.values, mine.values[1:], strict=False)]
    spread = draws * np.exp2(np.linspace(-8, 2, 2000))
    some = np.concatenate([spread, ties[:3000], np.negative(ties[:3000])])
    some = some[np.abs(some) <= mine.largest].astype(np.float32)
    expected = some.astype(theirs).astype(np.float64)
    assert [mine.round(float(x)) for x in some] == list(expected)


def test_what_a_format_cannot_hold():
    """JAX agrees on where e4m3 ends: 464 is rounded to 448, and more becomes NaN."""
    ends = np.array([464.0, 464.1], np.float32).astype(jnp.float8_e4m3fn)
    assert float(ends[0]) == E4M3.round(464.0) == 448
    assert math.isnan(float(ends[1]))
    with pytest.raises(ValueError, match=r"464\.1: is beyond 448.*e4m3.*becomes NaN"):
        E4M3.round(464.1)
    assert float(np.float32(65_519).astype(np.float16)) == FP16.round(65_519.0)
    with pytest.raises(ValueError, match="becomes infinity"):
        FP16.round(65_520.0)
    assert E2M1.round(-7.5, saturate=True) == -6
    with pytest.raises(ValueError, match="is set to the largest value"):
        E2M1.round(7.5)


@each
def test_the_error_is_that_of_values_with_even_logarithms(name):
    """Measured on random values, within a tenth of the formula: fewer bits, less so."""
    mine = find(name)
    low, high = math.log(mine.smallest_normal), math.log(mine.largest)
    low = max(low, -20.0)
    high = low + math.floor((min(high, 20.0) - low) / math.log(2)) * math.log(2)
    x = np.exp(np.random.default_rng(7).uniform(low, high, 4000))
    error = [(mine.round(float(v)) - v) / v for v in x]
    measured = math.sqrt(sum(e * e for e in error) / len(error))
    assert measured == pytest.approx(mine.rms_error, rel=0.04)


@pytest.mark.parametrize("one", [BF16, FP16, *FORMATS[3:5]])
def test_a_sum_of_ones_stalls_where_it_says(one):
    total = 0.0
    for _ in range(int(one.stalls_at) + 50):
        total = one.round(total + 1.0)
    assert total == one.stalls_at


def test_integers_are_whole_and_symmetric():
    assert INT8.values == tuple(map(float, range(128)))
    assert (INT8.round(2.5), INT8.round(3.5), INT8.round(-3.4)) == (2, 4, -3)
    assert integers(4).largest == 7


@pytest.mark.parametrize(
    ("bits", "said"),
    [
        ((9, 2), "exponent = 9: must be a whole number of bits from 0 to 8"),
        ((2, 2.5), "mantissa = 2.5: must be"),
        ((True, 2), "exponent = True"),
        ((0, 0), "must leave a value above 0"),
        ((1, 0), "must leave a value above 0"),
    ],
)
def test_bits_that_are_no_format(bits, said):
    with pytest.raises(ValueError, match=said):
        NumberFormat("mine", *bits)


def test_other_bad_input():
    with pytest.raises(ValueError, match="overflow = 'wrap': must be one of infinity"):
        NumberFormat("mine", 4, 3, "wrap")
    with pytest.raises(ValueError, match="code = 127: must be from 0 to 126"):
        E4M3.value(127)
    with pytest.raises(ValueError, match="format 'fp9': must be one of fp32"):
        find("fp9")
