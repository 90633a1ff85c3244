"""The live figures of whole runs: the year with failures, and the calendar."""

from datetime import date
from itertools import pairwise

import drawn
import pytest

from shardmath.draw import figures
from shardmath.draw.figures.goodput import PARTS, played
from shardmath.draw.picture import Picture
from shardmath.hardware import chips
from shardmath.transformer import LLAMA_3_405B

GOODPUT, CALENDAR = figures.find("goodput"), figures.find("calendar")
DAY = 86_400


@pytest.mark.parametrize("params", [{}, *GOODPUT.presets.values(), {"interval": 512}])
def test_the_parts_of_a_year_are_the_whole_year(params):
    drawing = GOODPUT.draw(**params)
    drawn.check(Picture("year", drawing.summary, (drawing.svg,)))
    assert sum(drawing.data["shares"].values()) == pytest.approx(1)
    wide = [
        float(drawn.keyed(drawing.svg, "")[part].get("width"))
        for part, share in drawing.data["shares"].items()
        if share > 0.01
    ]
    assert sum(wide) == pytest.approx(404, rel=0.03)


@pytest.mark.parametrize("params", [{}, *GOODPUT.presets.values()])
def test_a_year_comes_near_the_mean_of_all_years(params):
    """Thousands of failures, so that one year is within two points of the formula."""
    data = GOODPUT.draw(**params).data
    assert data["shares"]["useful"] == pytest.approx(data["goodput"], abs=0.02)
    assert data["goodput"] <= data["best_goodput"] + 1e-9


@pytest.mark.parametrize("write", [1, 32, 512])
@pytest.mark.parametrize("mtbf", [23, 184, 11_776])
def test_labels_of_the_hill_stay_apart(write, mtbf):
    for interval in GOODPUT.control("interval").stops:
        drawing = GOODPUT.draw(interval=interval, write=write, mtbf=mtbf, restart=128)
        drawn.check(Picture("year", drawing.summary, (drawing.svg,)))


def test_a_year_without_a_useful_day_still_shows_its_days():
    drawing = GOODPUT.draw(mtbf=23, interval=512, write=512, restart=128)
    assert drawing.data["shares"]["useful"] < 0.001
    assert drawing.svg.count("h6.5v6.5") == 364
    assert 'fill-opacity="0"' not in drawing.svg


def test_a_run_of_minutes_has_a_useful_day_and_says_minutes():
    drawing = CALENDAR.draw(**EXTREMES[-1])
    assert "0.0 days" not in drawing.summary
    assert "minutes" in drawing.summary
    assert "--sm-hue8" not in drawing.svg


def test_days_add_up_to_the_useful_time():
    year = played(3600, 60, 11_000, 600)
    assert sum(year.days) * DAY == pytest.approx(year.parts["useful"])
    assert max(year.days) <= 1
    assert list(year.parts) == list(PARTS)


def test_failures_are_as_far_apart_as_those_of_llama():
    """419 interruptions in 54 days on 16,384 GPUs; half the time is twice the chips."""
    data = GOODPUT.draw().data
    assert data["mtbf"] == pytest.approx(54 * DAY / 419, rel=0.01)
    assert data["chips"] == pytest.approx(16_384, rel=0.01)
    often = GOODPUT.draw(mtbf=92).data
    assert often["chips"] == pytest.approx(2 * data["chips"])
    assert often["failures"] == pytest.approx(2 * data["failures"], rel=0.1)
    assert often["best_interval"] < data["best_interval"]


def test_months_stand_below_the_weeks_in_which_they_begin():
    drawing = CALENDAR.draw(count=4096)
    below = [(said, box) for said, box in drawn.texts(drawing.svg) if box[1] < 130]
    months = [box for said, box in below if said.isdigit()]
    assert len(months) == 12
    for month, (left, *_) in enumerate(months):
        first = date(2025, month + 1, 1).timetuple().tm_yday - 1
        week = (left - 6) / 7.7
        assert abs(week - first / 7) < 1
    assert all(one[2] < two[0] for one, two in pairwise(months))


EXTREMES = [
    {"count": 256, "chip": "TPU v5p", "mfu": 10, "goodput": 50, "tokens": 306},
    {"count": 131_072},
    {"count": 131_072, "model": "Llama 3.1 8B", "tokens": 6, "mfu": 70},
]


@pytest.mark.parametrize("params", [{}, *CALENDAR.presets.values(), *EXTREMES])
def test_a_calendar_can_be_read(params):
    drawing = CALENDAR.draw(**params)
    drawn.check(Picture("calendar", drawing.summary, (drawing.svg,)))


def test_the_calendar_is_one_division():
    data = CALENDAR.draw(count=16_384, mfu=40, goodput=90, price=20).data
    flops = 6 * LLAMA_3_405B.params * 15.6e12
    seconds = flops / (16_384 * 989.4e12 * 0.4 * 0.9)
    assert data["days"] == pytest.approx(seconds / DAY)
    assert data["dollars"] == pytest.approx(seconds / 3600 * 16_384 * 2)
    assert data["watt_hours"] == pytest.approx(seconds / 3600 * 16_384 * 700)


def test_energy_needs_a_source():
    assert "power" not in chips.TPU_V5P.facts
    assert CALENDAR.draw(chip="TPU v5p").data["watt_hours"] is None
    assert "no source" in dict(CALENDAR.draw(chip="TPU v5p").readout[1:]).values()


def test_what_meta_needed_is_said_for_its_own_run_alone():
    assert "78.4 days" in CALENDAR.draw().summary
    assert "Meta" not in CALENDAR.draw(chip="B200").summary
    assert "Meta" not in CALENDAR.draw(tokens=151).summary
