"""Causal attention on a ring: pairs counted one by one, closed forms, what is drawn."""

from fractions import Fraction

import drawn
import numpy as np
import pytest

from shardmath.draw import figures, pictures
from shardmath.draw.figures.ring_load import MACHINES, hop_seconds, pair_seconds
from shardmath.draw.picture import picture
from shardmath.training.causal_ring import ORDERS, CausalRing, seen

FIGURE = figures.find("ring_load")
each_order = pytest.mark.parametrize("order", ORDERS)


@each_order
@pytest.mark.parametrize("chips", [1, 2, 3, 4, 8])
def test_pairs_are_those_counted_one_by_one(order, chips):
    ring = CausalRing(order, chips, 48)
    held = [[t for part in ring.tokens(chip) for t in part] for chip in range(chips)]
    assert sorted(t for tokens in held for t in tokens) == list(range(48))
    for queries in range(chips):
        for keys in range(chips):
            found = sum(k <= q for q in held[queries] for k in held[keys])
            assert ring.pairs(queries, keys) == found
    assert sum(ring.work) == 48 * 49 // 2 == chips * ring.mean


@each_order
@pytest.mark.parametrize(("chips", "seq"), [(1, 6), (3, 48), (8, 1024), (12, 2400)])
def test_work_is_what_a_chip_does_in_all_steps(order, chips, seq):
    ring = CausalRing(order, chips, seq)
    steps = zip(*map(ring.step, range(chips)), strict=True)
    assert ring.work == tuple(map(sum, steps))


@each_order
def test_a_ring_of_any_size_has_its_imbalance_and_a_large_one_no_lockstep(order):
    ring = CausalRing(order, 65_536, 2**20)
    assert sum(ring.work) == 65_536 * ring.mean
    assert ring.imbalance >= 1
    with pytest.raises(ValueError, match="chips = 65536: must be at most 512 here"):
        _ = ring.lockstep


@pytest.mark.parametrize("chips", [1, 2, 4, 8, 16, 64])
@pytest.mark.parametrize("tokens", [2, 64, 4096])
def test_the_busiest_chip_is_the_closed_form(chips, tokens):
    seq = chips * tokens
    contiguous = CausalRing("contiguous", chips, seq)
    assert contiguous.imbalance == Fraction((2 * chips - 1) * tokens + 1, seq + 1)
    assert contiguous.imbalance <= Fraction(2 * chips - 1, chips)
    assert CausalRing("zig-zag", chips, seq).imbalance == 1


@pytest.mark.parametrize("chips", [2, 4, 8])
def test_zig_zag_is_even_in_every_step_and_contiguous_in_none_but_the_first(chips):
    """A hop is a meeting of all: each step waits for its busiest chip."""
    for step in range(chips):
        assert len(set(CausalRing("zig-zag", chips, 1024).step(step))) == 1
        assert (len(set(CausalRing("contiguous", chips, 1024).step(step))) > 1) == (
            step > 0
        )
    for order in ORDERS:
        ring = CausalRing(order, chips, 1024)
        assert ring.lockstep >= ring.imbalance >= 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("zigzag", 4, 64), "order = 'zigzag': must be one of contiguous"),
        (("contiguous", 4, 63), "seq = 63: must be a multiple of 4"),
        (("zig-zag", 4, 60), "seq = 60: must be a multiple of 8"),
        (("striped", 0, 60), "chips = 0"),
    ],
)
def test_a_ring_that_cannot_be_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        CausalRing(*given)


def test_what_a_ring_does_not_have_is_refused():
    ring = CausalRing("striped", 4, 16)
    with pytest.raises(ValueError, match="step = 4: must be from 0 to 3"):
        ring.step(4)
    with pytest.raises(ValueError, match="chip = -1: must be from 0 to 3"):
        ring.tokens(-1)
    with pytest.raises(ValueError, match="token = 16: must be from 0 to 15"):
        ring.holder(16)
    with pytest.raises(ValueError, match="in steps of 2, keys in steps of 1"):
        seen(range(0, 8, 2), range(8))


@pytest.mark.parametrize("chips", [2, 4, 8])
def test_the_picture_shows_the_work(chips):
    rings = [CausalRing(order, chips, 64 * chips) for order in ORDERS]
    shown = pictures.causal_load(*rings)
    drawn.check(shown)
    widest = max(max(ring.work) for ring in rings)
    for ring, panel in zip(rings, shown.panels, strict=True):
        bars = drawn.keyed(panel, "work ")
        widths = [float(bars[f"work {chip}"].get("width")) for chip in range(chips)]
        assert widths == pytest.approx([184 * w / widest for w in ring.work], abs=0.06)


@each_order
@pytest.mark.parametrize("chips", [2, 4, 8])
def test_the_steps_show_each_pair_once(order, chips):
    """What is filled strongly is, over all steps, the whole triangle."""
    shown = pictures.causal_steps(CausalRing(order, chips, 64 * chips))
    drawn.check(shown)
    strong = [
        float(box.get("width"))
        for panel in shown.panels
        for box in drawn.elements(panel, "rect")
        if box.get("fill-opacity") is None and box.get("fill") != "none"
    ]
    tokens = 4 * chips  # drawn
    unit = 112 / tokens
    assert sum(strong) == pytest.approx(unit * tokens * (tokens + 1) / 2, rel=0.02)


def test_a_picture_of_no_rings_or_of_uneven_ones_is_refused():
    for rings in ((), [CausalRing("striped", n, 48) for n in (2, 4)]):
        with pytest.raises(ValueError, match="must all have the same number, 1 to 8"):
            pictures.causal_load(*rings)
    with pytest.raises(ValueError, match="a ring of 1 chips: must have 2 to 8"):
        pictures.causal_steps(CausalRing("striped", 1, 48))


@each_order
@pytest.mark.parametrize("chips", [2, 5, 8])
@pytest.mark.parametrize("machine", list(MACHINES)[::2])
def test_the_figure_says_what_the_ring_counts(order, chips, machine):
    chip, bandwidth = MACHINES[machine]
    ring = CausalRing(order, chips, 1024 * chips)
    given = {"order": order, "chips": chips, "tokens": 1024, "machine": machine}
    for step in range(chips):
        found = FIGURE.draw(step=step, **given)
        drawn.check(picture("Ring attention", found.summary, found.svg))
        math = [pairs * pair_seconds(chip) for pairs in ring.step(step)]
        assert found.data["math_seconds"] == pytest.approx(math)
        assert found.data["hop_seconds"] == hop_seconds(1024, bandwidth)
    assert found.last == chips - 1
    assert FIGURE.draw(step=7, **given).svg == found.svg


def test_numbers_of_a_fixed_width_are_taken_as_pythons():
    """131,072 squared is beyond 32 bits."""
    narrow = CausalRing("contiguous", np.int32(8), np.int32(131_072))
    assert narrow == CausalRing("contiguous", 8, 131_072)
    assert narrow.imbalance == Fraction(245_761, 131_073)
    assert {type(narrow.chips), type(narrow.seq)} == {int}
