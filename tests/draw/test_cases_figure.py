"""The figure "cases": its cases and bytes by rules that `contract` does not use."""

from itertools import product

import pytest

from shardmath.draw import figures
from shardmath.draw.figures.cases import TERMS, WHOLE, A, B, C, J, K

FIGURE = figures.find("cases")
BF16, CHIPS, TOKENS = 2, 4, 1024
V = {"A": TOKENS * J * BF16, "B": J * K * BF16, "C": TOKENS * K * BF16}


def by_hand(a, b):
    """The number of the case, from how the contraction and the rest are split."""
    contraction = a.startswith("J") + b.startswith("J")
    if contraction:
        return 1 + contraction
    return 4 if a.startswith("I") and b.startswith("K") else 1


@pytest.mark.parametrize(("a", "b", "c"), [*product(A, B, C)])
def test_every_way_to_split_has_its_case(a, b, c):
    drawing = FIGURE.draw(a=a, b=b, c=c)
    assert drawing.data["case"] == by_hand(a, b)
    if c == TERMS and by_hand(a, b) != 3:
        assert drawing.used == {"c": WHOLE}
    assert drawing.data["sent"] == 0 or drawing.data["seconds"]["network"] > 0


@pytest.mark.parametrize(
    ("preset", "arrays", "times"),
    [("case 1", "", 0), ("case 2", "B", 1), ("case 3", "C", 2), ("case 4", "B", 1)],
)
def test_the_presets_send_what_the_chapter_derives(preset, arrays, times):
    """By (6.3): a gather (n-1)/n of the array, and an AllReduce twice as much."""
    sent = sum(times * V[name] * (CHIPS - 1) / CHIPS for name in arrays)
    assert FIGURE.draw(**FIGURE.presets[preset]).data["sent"] == pytest.approx(sent)


def test_it_says_what_would_be_quicker():
    """With few tokens it is quicker to move tokens than weights."""
    few = FIGURE.draw(**FIGURE.presets["case 2"] | {"tokens": 64})
    many = FIGURE.draw(**FIGURE.presets["case 2"] | {"tokens": 2**20})
    assert "quicker" in few.summary
    assert few.data["quickest"] != few.data["moves"]
    assert "quicker" not in many.summary
