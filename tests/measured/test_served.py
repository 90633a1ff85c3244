"""What the page of measured servers shows: every row, its prediction, and the gates."""

import pytest

from shardmath.measured.served import (
    by_gate,
    errors_of,
    gate,
    served,
    unanswered,
)
from shardmath.measured.serving import serving
from shardmath.measured.serving_answers import setting
from shardmath.measured.serving_gates import checked
from shardmath.measured.serving_rows import read_row
from shardmath.measured.serving_rules import filled, limits

MLPERF = {
    "model": "Llama-3.1-405B", "chip": "B200", "count": 8, "mode": "interactive",
    "output": 650, "metric": "output_tokens_s", "value": 1600, "unit": "tokens/s",
    "source": "mlperf-v5.1",
}  # fmt: skip


def test_every_row_is_predicted_or_says_why():
    assert len(served()) + sum(unanswered().values()) == len(serving())


def test_every_reason_of_a_gate_has_a_name():
    reasons = {why for some in checked(serving()).values() for why in some}
    assert sum(map(len, by_gate().values())) >= len(reasons)
    with pytest.raises(ValueError, match="is not a reason that a gate gives"):
        gate("because")


def test_no_row_that_can_be_true_is_quicker_than_its_bound():
    assert all(one.over_bound >= 1 for one in served() if not one.named)
    assert all(one.sound for one in served())


def test_errors_are_those_of_seconds_whatever_the_metric():
    rates = [one for one in served() if one.row.metric == "tokens"]
    one = rates[0]
    assert one.ratio == pytest.approx(one.answer.measured / one.answer.predicted)
    assert errors_of(rates).rows == len(rates)
    with pytest.raises(ValueError, match="some: must hold at least one row"):
        errors_of([])


def test_what_a_table_says_elsewhere_is_filled_in_and_said():
    said = []
    assert filled(read_row(MLPERF), said).input == 9400
    assert "9,400 tokens" in said[0]
    other = read_row(MLPERF | {"source": "a log of mine"})
    assert filled(other, []) is other
    assert any("9,400" in one for one in setting(read_row(MLPERF)).assumed)


def test_limits_of_a_benchmark_are_its_own():
    assert limits(read_row(MLPERF)) == (4.5, 0.08)
    assert limits(read_row(MLPERF | {"mode": "offline"})) is None
    assert limits(read_row(MLPERF | {"source": "a log of mine"})) is None
