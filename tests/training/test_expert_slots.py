"""Slots of an expert: a whole number that a float's last bit does not move."""

from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest

from shardmath.training.experts import slots
from shardmath.transformer import KIMI_K2


def exactly(tokens: int, ways: int, capacity: str) -> int:
    """Formula (13.3) in exact fractions, nothing rounded before the ceiling."""
    kinds = KIMI_K2.experts
    each = Fraction(capacity) * kinds.per_token * tokens / ways / kinds.count
    return ways * max(1, ceil(each))


@pytest.mark.parametrize("capacity", ["1.0", "1.1", "1.15", "1.25", "1.3", "2.0"])
@pytest.mark.parametrize("ways", [1, 8, 64])
def test_slots_are_those_of_exact_fractions(capacity, ways):
    """1.1 · 8 · 1,440 / 384 is 33, and 33.00000000000001 in floats."""
    for each in range(48, 4800, 48):
        tokens = each * ways
        found = slots(KIMI_K2, tokens, ways, float(capacity))
        assert found == exactly(tokens, ways, capacity), (tokens, ways, capacity)


def test_a_float_alone_would_add_a_slot():
    """The case above is one: without rounding there would be 34."""
    kinds = KIMI_K2.experts
    assert ceil(1.1 * kinds.per_token * 1440 / kinds.count) == 34
    assert slots(replace(KIMI_K2, name="the same"), 1440, 1, 1.1) == 33
