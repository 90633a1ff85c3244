"""The fit of the efficiencies: the files are its results, and it finds what is true."""

import random
from dataclasses import replace
from statistics import fmean

import pytest

from shardmath.measured import RUNS, fit_rows
from shardmath.measured.fit import errors, fit, left_out, quantiles
from shardmath.measured.fit_rows import derived, rows, to_json, unpredicted
from shardmath.measured.planned import outcome, outcomes, public_jobs, shares
from shardmath.training.efficiencies import FITTED, band, efficiencies, table, without

AT = efficiencies()
EVERY = rows()
LOO = errors(EVERY, lambda row: without(row.source))


def test_the_kept_rows_are_those_that_the_runs_give():
    """Every eleventh of the table, derived again."""
    some = {at: RUNS[at] for at in range(0, len(RUNS), 11)}
    again = derived(tuple(some.values()))
    fresh = {list(some)[n]: row for n, row in again.items()}
    kept = fit_rows._kept()
    assert {at for at in kept if at in some} == set(fresh)
    for line in to_json(fresh).splitlines()[1:-1]:
        one = fit_rows.json.loads(line.rstrip(","))
        assert one == kept[one["row"]], RUNS[one["row"]]


def test_the_file_of_efficiencies_is_what_the_fit_gives():
    best = fit(EVERY)
    for name in FITTED:
        assert getattr(AT, name) == pytest.approx(getattr(best, name), rel=3e-3), name


def test_a_fold_is_what_the_fit_gives_without_one_source():
    name = "torchtitan"
    one = fit([row for row in EVERY if row.source != name], AT)
    for number in FITTED:
        expected = getattr(without(name), number)
        assert getattr(one, number) == pytest.approx(expected, rel=5e-3)


def test_the_errors_of_the_file_are_those_of_its_folds():
    said = table()["fit"]
    assert said["rows"] == LOO.rows == len(EVERY)
    assert said["sources"] == len(LOO.ratios) == len(table()["without"])
    assert said["mean"] == pytest.approx(LOO.mean, abs=2e-3)
    assert said["median"] == pytest.approx(LOO.median, abs=2e-3)
    assert said["alike"] == pytest.approx(LOO.by_source, abs=2e-3)
    assert set(said["chips"]) == {row.chip.id for row in EVERY}


def test_sources_that_were_left_out_are_predicted_as_well_as_the_book_says():
    """The goals of the book: a change that misses one is a worse prediction."""
    assert LOO.mean <= 0.12
    assert LOO.median <= 0.0815
    assert LOO.by_source <= 0.13


def test_bands_hold_eight_of_ten_runs():
    """But for one run at each end: a limit lies between two of them."""
    for experts in (False, True):
        some = [row for row in EVERY if row.experts is experts]
        low, high = band(experts)
        ratios = [row.measured / row.predicted(without(row.source)) for row in some]
        inside = fmean(low * 0.999 <= ratio <= high * 1.001 for ratio in ratios)
        assert inside == pytest.approx(0.8, abs=2 / len(some))


def test_no_prediction_and_no_run_is_below_its_bound():
    for row in EVERY:
        assert sum(row.parts(AT).values()) > row.bound, row.run
        assert row.measured >= row.bound, row.run


def test_every_run_is_predicted_or_says_why_not():
    missing = unpredicted()
    assert len(missing) + len(EVERY) == len(RUNS)
    assert len(missing) <= 4
    assert all(missing.values())


def test_the_fit_finds_the_numbers_that_made_the_times():
    """Times made up with other numbers, and with noise that favours no side.

    Noise of 1 % moves no number by more than 5 %, and noise of 3 % some by a tenth.
    """
    truth = replace(AT, matmul=0.6, attention=0.5, memory=0.7, trips=5.0, exposed=0.4)
    rng = random.Random(21)
    made_up = [
        replace(row, bound=0.0,
                measured=row.predicted(truth) * rng.choice((0.99, 1.01)))
        for row in EVERY
    ]  # fmt: skip
    found = fit([replace(row) for row in made_up])
    for name in FITTED:
        expected = getattr(truth, name)
        assert getattr(found, name) == pytest.approx(expected, rel=0.05)


def test_runs_with_experts_decide_one_number_only():
    """If all of them took twice as long, the four others would stay the same."""
    slow = [
        replace(row, measured=2 * row.measured) if row.experts else row for row in EVERY
    ]
    found = fit(slow, AT)
    for name in FITTED:
        if name != "trips":
            assert getattr(found, name) == pytest.approx(getattr(AT, name), rel=3e-3)
    assert found.trips > 1.5 * AT.trips


def test_a_generation_is_predicted_from_the_others():
    """One of the eight, to save time; chapter 17 has all of them."""
    some = [row for row in EVERY if row.generation != "TPU v6e (Trillium)"]
    at = fit(some, AT)
    new = [row for row in EVERY if row.generation == "TPU v6e (Trillium)"]
    assert errors(new, lambda row: at).mean <= 0.15
    groups = left_out(EVERY[:30], "generation", free=("matmul",), start=AT)
    assert set(groups) == {row.generation for row in EVERY[:30]}


def test_errors_are_counted_by_row_and_by_source():
    one, other, *_ = EVERY
    found = errors([one, other], lambda row: AT)
    assert found.rows == 2
    assert found.mean == pytest.approx(fmean(found.all))
    assert "2 rows" in str(found)


def test_quantiles_cut_the_same_off_both_ends():
    assert quantiles(list(range(11))) == pytest.approx((1, 9))
    assert quantiles([3.0]) == (3.0, 3.0)


# ------------------------------------------------------------------------ the planner


def test_the_planner_agrees_with_published_meshes_as_often_as_the_book_says():
    """Many meshes of a divided job tie, and the planner then prefers a simpler one."""
    found, alone = shares(outcomes()), shares(outcomes(divided=False))
    assert len(outcomes()) == len(public_jobs())
    assert found["first"] >= 0.25
    assert found["among 3"] >= 0.55
    assert found["among 10"] >= 0.80
    assert found["within 10 %"] >= 0.75
    assert alone["first"] >= 0.75


@pytest.mark.parametrize(
    ("divided", "at"),
    [*((True, at) for at in (0, 27, 44, 50, 60, 68)), (False, 0), (False, 150)],
)
def test_kept_outcomes_are_what_the_planner_says(divided, at):
    assert outcome(public_jobs(divided=divided)[at]) == outcomes(divided)[at]


def test_jobs_that_were_run_undivided_are_planned_too():
    assert len(outcomes(False)) == len(public_jobs(divided=False)) > 200
    assert {one.published for one in outcomes(False)} == {("none",)}
