"""How much of a run's time counts, against a replay second by second and a search."""

import re
from random import Random

import pytest

from shardmath.training.goodput import (
    best_interval,
    daly,
    goodput,
    goodput_first_order,
    mtbf,
    simulated_goodput,
    young,
)

DAY, HOUR = 86_400, 3600
M = 54 * DAY / 419  # of Llama 3.1 405B, in seconds


def replayed(interval: int, write: int, mean: float, restart: int, days: int) -> float:
    """The goodput of a run in whole seconds, each of which may fail by a coin's toss.

    It shares nothing with the package: no exponential law and no rounding down.
    """
    draw = Random(7).random
    chance = 1 / mean
    useful = done = waiting = 0
    for _ in range(days * DAY):
        if waiting:
            waiting -= 1
            continue
        if draw() < chance:
            done, waiting = 0, restart - 1
            continue
        done += 1
        if done == interval + write:
            useful, done = useful + interval, 0
    return useful / (days * DAY)


def test_llama_3_failed_every_three_hours():
    """419 interruptions in 54 days, as published."""
    assert mtbf(M * 16_384, 16_384) / HOUR == pytest.approx(3.09, abs=0.005)
    chip = M * 16_384
    assert chip / DAY / 365.25 == pytest.approx(5.8, abs=0.05)
    assert mtbf(chip, 8_192) == pytest.approx(2 * M)


@pytest.mark.parametrize(
    ("interval", "write", "restart"),
    [(252, 2.8, 300), (1155, 60, 300), (1155, 60, 900), (7200, 60, 300), (60, 60, 60)],
)
def test_the_closed_form_is_the_mean_of_simulated_runs(interval, write, restart):
    found = simulated_goodput(interval, write, M, restart)
    assert goodput(interval, write, M, restart) == pytest.approx(found, rel=1e-3)


def test_a_replay_of_every_second_has_the_same_goodput():
    """A hundred days of it, in which the machine fails about 2,300 times."""
    found = replayed(600, 30, 3600, 120, days=100)
    assert goodput(600, 30, 3600, 120) == pytest.approx(found, rel=0.03)


@pytest.mark.parametrize("write", [1, 60, 300, 1100, 8000])
def test_no_interval_is_better_than_the_best(write):
    best = best_interval(write, M, 300)
    most = goodput(best, write, M, 300)
    assert all(
        goodput(best * factor, write, M, 300) < most
        for factor in (0.2, 0.5, 0.9, 0.99, 1.01, 1.1, 2, 5)
    )


def test_daly_is_as_near_to_the_best_as_its_docstring_says():
    for share, near in ((0.001, 1e-3), (0.1, 1e-3), (0.7, 0.011)):
        found = daly(share * M, M) / best_interval(share * M, M)
        assert found == pytest.approx(1, abs=near)
    assert daly(3 * M, M) == M


@pytest.mark.parametrize(
    ("mean", "minutes"), [(24 * HOUR, 117), (6 * HOUR, 57), (HOUR / 4, 9.1)]
)
def test_daly_prints_the_intervals_that_he_published(mean, minutes):
    """Figures 3 to 5 of his paper: checkpoints of 5 minutes, restarts of 10."""
    assert daly(300, mean) / 60 == pytest.approx(minutes, rel=0.006)
    assert best_interval(300, mean) / 60 == pytest.approx(minutes, rel=0.01)


def test_youngs_interval_loses_as_much_as_it_saves():
    tau = young(60, M)
    assert 60 / tau == pytest.approx(tau / (2 * M))


@pytest.mark.parametrize(
    ("write", "lost", "off"), [(60, 0.1, 0.004), (260, 0.2, 0.016), (1112, 0.4, 0.07)]
)
def test_first_order_is_as_far_off_as_its_docstring_says(write, lost, off):
    tau = best_interval(write, M)
    exact = goodput(tau, write, M, 0)
    assert 1 - exact == pytest.approx(lost, abs=0.02)
    assert exact - goodput_first_order(tau, write, M, 0) == pytest.approx(off, abs=2e-3)


def test_a_machine_that_fails_all_the_time_gets_nothing_done():
    assert goodput(1e9, 1, 1.0, 1) == 0
    assert goodput(10, 0, 1e12, 0) == pytest.approx(1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: mtbf(1e8, 0), "chips = 0: must be a whole number from 1"),
        (lambda: young(-1, M), "write = -1: must be a finite number above 0"),
        (lambda: daly(60, "3 h"), "mtbf = '3 h': must be a finite number above 0"),
        (lambda: goodput(0, 1, M, 1), "interval = 0: must be a finite number above 0"),
        (lambda: goodput(9, 1, M, -1), "restart = -1: must be "),
        (lambda: simulated_goodput(9, 1, M, 1, 2.5), "failures = 2.5: must be a whole"),
    ],
)
def test_bad_input_is_quoted(call, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        call()
