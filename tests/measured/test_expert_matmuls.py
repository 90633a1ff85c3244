"""Timed layers of experts, and why the narrow ones are slow."""

import pytest

from shardmath.hardware.chips import H100
from shardmath.measured import EXPERT_MATMULS, ExpertMatmuls, expert_matmuls
from shardmath.training.efficiencies import efficiencies, sustained


def test_moved_bytes_by_hand():
    """10 of 20 seconds go into moving 10 · W bytes for one value."""
    wide = ExpertMatmuls(H100, "bf16", 10**9, 60.0)
    narrow = ExpertMatmuls(H100, "bf16", 100, 30.0)
    assert narrow.moved(wide) == pytest.approx(10 * H100.hbm_bandwidth)


@pytest.mark.parametrize(
    "one", EXPERT_MATMULS, ids=lambda one: f"{one.chip.id}-{one.width}"
)
def test_no_layer_beats_the_fastest_matmul(one):
    assert one.rate <= 1.06 * sustained(one.chip, one.precision)


@pytest.mark.parametrize("chip", ["H100", "H200", "B200"])
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_wider_experts_are_faster(chip, precision):
    some = expert_matmuls(chip, precision)
    rates = [one.rate for one in some]
    assert rates == sorted(rates)
    assert rates[0] < 0.7 * rates[-1]


@pytest.mark.parametrize("chip", ["H100", "H200"])
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_the_bytes_that_explain_it_do_not_depend_on_the_width(chip, precision):
    """Else something other than moving tokens would make narrow experts slow."""
    *narrow, _, wide = expert_matmuls(chip, precision)
    moved = [one.moved(wide) for one in narrow]
    assert len(moved) == 3
    assert max(moved) < 1.5 * min(moved)


def test_the_fitted_trips_are_of_the_size_that_kernels_show():
    """Kernels for servers fuse more steps, and nothing else slows them down."""
    at = efficiencies()
    ours = 2 * at.trips / at.memory
    moved = [
        expert_matmuls(chip, precision)[0].moved(expert_matmuls(chip, precision)[-1])
        for chip in ("H100", "H200", "B200")
        for precision in ("bf16", "fp8")
    ]
    assert ours / 4 < min(moved) < max(moved) < ours / 2


def test_what_was_not_timed_is_said():
    with pytest.raises(
        ValueError, match="'H100' in 'fp4': must be one of B200 in bf16"
    ):
        expert_matmuls("H100", "fp4")
