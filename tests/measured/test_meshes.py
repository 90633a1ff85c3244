"""A thousand runs of the same jobs on different meshes: time, order and memory."""

from statistics import fmean, median

import pytest

from shardmath.base.tables import Absent
from shardmath.measured import meshes
from shardmath.measured.meshes import NODE, SEQ, SEQS, Host, jobs, mesh_runs, order

SOME = list(meshes.measured())
HOST = Host()
RAN = [run for run in mesh_runs() if run.memory]
FAILED = [run for run in mesh_runs() if not run.tokens and not run.refused]


def test_every_mesh_has_all_chips_and_the_whole_batch():
    assert (len(mesh_runs()), len(RAN)) == (2127, 1123)
    for run in mesh_runs():
        assert run.tensor * run.pipeline * run.data == NODE * run.nodes, run
        assert run.data * run.microbatch * run.microbatches == SEQS, run


def test_a_step_takes_its_tokens_over_its_rate():
    run = SOME[0]
    chips = NODE * run.nodes
    assert run.seconds == pytest.approx(SEQS * SEQ / chips / run.tokens)
    lost = next(run for run in mesh_runs() if run.tokens is None)
    with pytest.raises(Absent, match="it did not run"):
        _ = lost.seconds


def test_no_run_beats_its_bound():
    for run in SOME:
        assert run.prediction.bound < run.seconds, run


def test_latencies_repair_the_order():
    """The goals of the book, and better than the rule that needs no prediction."""
    found = order(SOME, lambda run: run.predicted(HOST))
    rule = order(SOME, lambda run: (run.tensor, -run.microbatch))
    plain = order(SOME, lambda run: run.predicted())
    assert found.pairs > 2500
    assert found.right >= 0.93
    assert found.regret <= 1.10
    assert found.right > max(rule.right, plain.right)
    assert found.regret < min(rule.regret, plain.regret)


def test_time_with_latencies():
    errors = [abs(run.predicted(HOST) / run.seconds - 1) for run in SOME]
    assert fmean(errors) <= 0.20
    assert median(errors) <= 0.14
    assert fmean(abs(run.predicted() / run.seconds - 1) for run in SOME) > 0.4


def test_latencies_only_add():
    for run in SOME[::7]:
        plain = run.predicted()
        assert plain == pytest.approx(run.prediction.seconds)
        assert run.predicted(HOST) >= plain * (1 - 1e-12)


def test_memory_is_counted_to_twelve_percent_and_refuses_what_failed():
    ratios = [run.held() / run.memory for run in RAN]
    assert fmean(abs(ratio - 1) for ratio in ratios) <= 0.12
    assert abs(fmean(ratios) - 1) <= 0.05
    assert fmean(not run.fits for run in FAILED) >= 0.80
    assert fmean(not run.fits for run in RAN) <= 0.015


def test_layers_and_head_are_dealt_to_stages():
    for run in mesh_runs()[::50]:
        own, heads = run._stages
        assert sum(own) == run.shape.layers
        assert sum(heads) == 1


def test_ties_count_half_and_pick_the_mean():
    some = next(runs for runs in jobs(SOME).values() if len(runs) > 5)
    alike = order(some, lambda run: 0)
    assert alike.right == 0.5
    times = [run.seconds for run in some]
    assert alike.regret == pytest.approx(fmean(times) / min(times))
    assert order(some, lambda run: -run.seconds).right == 0
