"""The live figure "experts": counts that add up, biases that even loads out."""

import json
from xml.etree import ElementTree

import pytest

from shardmath.draw.figures import find
from shardmath.draw.figures.experts import (
    SPEEDS,
    TOKENS,
    history,
    moved,
    routed,
    scores,
)

FIGURE = find("experts")


@pytest.mark.parametrize(("experts", "k"), [(8, 1), (16, 2), (32, 4)])
def test_every_token_chooses_k_different_experts(experts, k):
    for loads, _ in history(experts, k, 2, 0.01):
        assert sum(loads) == k * TOKENS
        assert max(loads) <= TOKENS


def test_a_bias_decides_who_is_chosen_and_never_moves_by_more_than_its_speed():
    (step, *_) = scores(8, 3)
    plain = routed(step, [0.0] * 8, 2)
    pushed = routed(step, [-1.0] + [0.0] * 7, 2)
    assert plain[0] > 0 == pushed[0]
    assert sum(plain) == sum(pushed)
    after = moved([0.5] * 8, plain, 0.01)
    mean = sum(plain) / 8
    for bias, load in zip(after, plain, strict=True):
        assert bias == pytest.approx(0.5 - 0.01 * (load > mean) + 0.01 * (load < mean))


def test_slow_biases_even_loads_out_and_fast_ones_do_not():
    last = {
        speed: FIGURE.draw(speed=speed, step=40).data["at_last"] for speed in SPEEDS
    }
    assert last["0.01"] < 1.4 < 2.5 < last["never moved"]
    assert last["0.1"] > 1.5 * last["0.01"]
    even = FIGURE.draw(speed="never moved", skew=0, step=40).data["at_last"]
    assert last["0.01"] == pytest.approx(even, abs=0.12)  # only chance is left


def test_what_is_dropped_is_what_stands_above_the_slots():
    for capacity, room in (("1", 64), ("1.25", 80), ("2", 128), ("dropless", None)):
        found = FIGURE.draw(capacity=capacity).data
        assert found["capacity"] == room
        above = sum(max(0, load - (room or TOKENS)) for load in found["loads"])
        assert found["dropped"] == above


@pytest.mark.parametrize("experts", [8, 32])
def test_the_ends_of_the_controls_can_be_drawn(experts):
    for speed in ("never moved", "0.1"):
        drawing = FIGURE.draw(experts=experts, k=4, skew=4, speed=speed, step=40)
        ElementTree.fromstring(drawing.svg)
        json.dumps(drawing.data, allow_nan=False)
        assert drawing.last == 40
