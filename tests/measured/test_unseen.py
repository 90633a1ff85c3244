"""Runs that took no part in any fit: what was read, and what the book says of them."""

from statistics import fmean

import pytest

from shardmath.measured import RUNS, unseen_runs
from shardmath.measured.fit_rows import row_of, rows
from shardmath.training.efficiencies import band, table

UNSEEN = unseen_runs()
ROWS = [row_of(run) for run in UNSEEN]


def test_no_run_is_in_the_fit():
    assert not {run.source.key for run in UNSEEN} & {run.source.key for run in RUNS}
    assert len(rows()) == table()["fit"]["rows"]


@pytest.mark.parametrize("run", UNSEEN, ids=lambda run: f"{run.model.name}-{run.chips}")
def test_step_batch_and_model_give_the_printed_mfu(run):
    """A wrong digit in a step, a batch or a shape would show. The source rounds the
    FLOPs of a sequence to three digits."""
    flops = run.mfu * run.chip.flops[run.precision] * run.chips * run.seconds
    assert flops / run.tokens == pytest.approx(run.counted, rel=0.011)


def test_no_run_beats_its_bound():
    assert all(row.measured > row.bound for row in ROWS)


def test_a_pipeline_that_does_not_fit_keeps_its_mesh():
    """As FSDP it would gather all weights for every microbatch, five times as slow."""
    assert not any("FSDP in place" in said for row in ROWS for said in row.assumed)


def test_bands_hold_these_runs_as_often_as_the_book_says():
    inside = 0
    for row in ROWS:
        low, high = band(row.experts)
        inside += low <= row.measured / row.predicted() <= high
    assert inside / len(ROWS) >= 0.75
    off = [abs(row.predicted() / row.measured - 1) for row in ROWS]
    assert fmean(off) <= 0.12


def test_wide_experts_are_not_predicted_too_slow():
    """At half the rate of other matmuls, Grok-1 would take 1.6 times as long."""
    wide = [row for row in ROWS if row.experts]
    assert len(wide) == 6
    for row in wide:
        assert 0.85 <= row.predicted() / row.measured <= 1.15
