"""Timed operations in bins, against their bounds and a law fitted elsewhere."""

from collections import Counter

import pytest

from shardmath.hardware import chips
from shardmath.measured.ops import all_bins, bins

ALL = all_bins()


def test_there_are_millions_of_points_on_six_chips():
    points = Counter()
    for one in ALL:
        points[one.op] += one.points
    assert 4.8e6 < points["matmul"] < 4.9e6
    assert 0.7e6 < points["decode attention"] < 0.8e6
    assert {one.chip for one in ALL} == {
        "A100 80GB", "H100", "H200", "B200", "B300", "GB200",
    }  # fmt: skip
    assert all(chips.find(one.chip).name == one.chip for one in ALL)


def test_only_short_matmuls_in_bf16_beat_their_bound():
    """Their inputs fit the L2 (50 MiB and more), where the repetition left them."""
    beaten = [one for one in ALL if one.beaten]
    assert {(one.op, one.format) for one in beaten} == {("matmul", "bf16")}
    for one in beaten:
        chip = chips.find(one.chip)
        assert one.bound / 1.5 * chip.hbm_bandwidth < chip.l2_bytes, one
    share = sum(one.beaten for one in beaten) / sum(
        one.points for one in ALL if one.op == "matmul"
    )
    assert share < 2e-4


@pytest.mark.parametrize(
    ("chip", "form", "start", "share", "off"),
    [("H100", "bf16", 3.0e-6, 0.775, 0.12), ("B200", "bf16", 2.6e-6, 0.67, 0.16)],
)
def test_medians_follow_a_start_and_a_share(chip, form, start, share, off):
    """t = start + bound / share, with numbers fitted to six other tables of the same
    source before these were binned; the mean error over bins is what it was there."""
    errors = [
        abs((start + one.bound / share) / (one.median * one.bound) - 1)
        for one in bins("matmul", chip, form)
        if 1e-6 < one.bound < 1e-2
    ]
    assert sum(errors) / len(errors) < off
    # without the start a microsecond of work would be off by a factor
    short = next(one for one in bins("matmul", chip, form) if one.bound >= 1e-6)
    assert short.median > 2 / share


def test_every_kind_takes_less_over_its_bound_the_longer_it_is():
    for kind in {one[:3] for one in ALL}:
        some = bins(*kind)
        assert some[0].median > 2 * some[-1].median, kind
        assert [one.bound for one in some] == sorted(one.bound for one in some)
        assert all(one.p10 <= one.median <= one.p90 for one in some)


def test_what_is_not_there_is_said():
    with pytest.raises(ValueError, match="no bins of 'matmul' on 'L40S' in 'bf16'"):
        bins("matmul", "L40S", "bf16")
    with pytest.raises(ValueError, match="there are AllReduce of NCCL, AllReduce"):
        bins("sort", "H100", "bf16")
