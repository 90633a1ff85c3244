"""Printing rounds before it picks a prefix; sizes are checked where they enter."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmath.base.units import bytes_per_value, pluralize, positive, show


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (999.7, "bytes", "1 kB"),  # never "1000 bytes"
        (999.4, "bytes", "999 bytes"),
        (0.99996, "s", "1 s"),  # never "1000 ms"
        (0, "s", "0 s"),
        (-4.5e-3, "s", "-4.5 ms"),
        (3.6e3, "s", "3.6 ks"),
        (99_999, "tokens", "100,000 tokens"),  # counts take no prefix
        (240.24, "FLOPs/byte", "240 FLOPs/byte"),
        (1e27, "FLOPs", "1,000 YFLOPs"),
        (80 * 2**30, "capacity", "80 GiB"),
        (126.5 * 2**20, "capacity", "126 MiB"),
        (1023.9 * 2**20, "capacity", "1 GiB"),  # rounded before the prefix is picked
        (1020.4 * 2**20, "capacity", "1,020 MiB"),
        (2**30, "capacity", "1 GiB"),
        (100, "capacity", "100 bytes"),
        (0, "capacity", "0 bytes"),
        (math.inf, "capacity", "inf bytes"),
        (math.inf, "tokens", "inf tokens"),
        (1.797e308, "s", "1.8e+284 Ys"),  # nothing overflows, and it fits on a line
        (1.797e308, "tokens", "1.8e+308 tokens"),
        (1, "bytes", "1 byte"),
        (1.0004, "bytes/s", "1 byte/s"),
        (1, "FLOPs/byte", "1 FLOP/byte"),
        (1, "capacity", "1 byte"),
        (-1, "tokens", "-1 token"),
        (1, "s", "1 s"),
        (1000, "bytes", "1 kB"),
        (1e9, "FLOPs", "1 GFLOPs"),
        (0.5, "bytes", "0.5 bytes"),
    ],
)
def test_show_at_the_edges(value, unit, text):
    assert show(value, unit) == text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("5", "bytes"), "value = '5': must be a number"),
        ((10**400, "bytes"), "value: an int of 1329 bits"),
        ((5, "bytes", 0), "digits = 0: must be a whole number from 1"),
    ],
)
def test_what_cannot_be_shown_is_quoted(arguments, said):
    with pytest.raises(ValueError, match=said):
        show(*arguments)


@given(st.floats(1, 1e18), st.integers(2, 6))
def test_capacities_never_lie_by_more_than_their_digits(value, digits):
    number, prefix = show(value, "capacity", digits).split()
    prefix = "bytes" if prefix == "byte" else prefix
    power = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB").index(prefix)
    shown = float(number.replace(",", "")) * 1024**power
    assert shown == pytest.approx(value, rel=0.6 * 10 ** (1 - digits))


@given(st.floats(1e-14, 1e26), st.sampled_from(["FLOPs", "bytes/s", "s", "tokens"]))
def test_show_never_lies_by_more_than_its_digits(value, unit):
    """Read the text back: it is within half a unit of the third digit."""
    number, _, shown = show(value, unit).partition(" ")
    if number == "1" and shown != "s" and shown in unit.replace("s", "", 1):
        shown = unit  # "1 FLOP"
    prefix = shown.removesuffix({"bytes/s": "B/s"}.get(unit, unit))
    powers = dict(zip("fpnµm", range(-5, 0), strict=True)) | dict(
        zip("kMGTPEZY", range(1, 9), strict=True)
    )
    scale = 1.0 if shown == unit else 1000.0 ** powers[prefix]
    assert float(number.replace(",", "")) * scale == pytest.approx(value, rel=0.0051)


@pytest.mark.parametrize("size", [0, -1, math.nan, math.inf, "8", None, True])
def test_positive_names_the_argument_and_quotes_it(size):
    with pytest.raises(ValueError, match=r"^D = ") as caught:
        positive(B=1, D=size)
    assert repr(size) in str(caught.value)


def test_positive_takes_numpy_scalars():
    positive(B=np.int64(3), D=np.float32(2.0))


def test_an_unknown_precision_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'bf61'.*bf16"):
        bytes_per_value("bf61")


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("queries", "query"),
        ("classes", "class"),
        ("axes", "axis"),
        ("boxes", "box"),
        ("batches of 8", "batch of 8"),
        ("caches", "cache"),
        ("passes", "pass"),
        ("bytes/s", "byte/s"),
        ("tiles", "tile"),
        ("s", "s"),
        ("loss", "loss"),
        ("dies", "die"),
        ("series", "series"),
        ("ms", "ms"),
        ("dollars/hour", "dollar/hour"),
    ],
)
def test_one_has_no_plural(plural, singular):
    assert pluralize("1", plural) == f"1 {singular}"
    assert pluralize("2", plural) == f"2 {plural}"
