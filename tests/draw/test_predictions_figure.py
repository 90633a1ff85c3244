"""The live figure "predictions": its text fits a phone, its errors are the fit's."""

from statistics import fmean

import drawn
import pytest

from shardmath.draw.figures.predictions import EVERY, FIGURE, SOURCES
from shardmath.draw.picture import Picture
from shardmath.measured.fit_rows import rows

FITTED_AT = FIGURE.presets["as fitted"]


@pytest.mark.parametrize("source", [EVERY, max(SOURCES, key=len)])
def test_all_text_is_inside_the_picture(source):
    one = FIGURE.draw(source=source)
    drawn.check(Picture(FIGURE.title, one.summary, (one.svg,)))


def test_the_sliders_begin_at_the_fit():
    """Rounded to their stops, they give the fit's mean error within half a point."""
    found = FIGURE.draw(**FITTED_AT).data["mean"]
    exact = fmean(abs(row.predicted() / row.measured - 1) for row in rows())
    assert found == pytest.approx(exact, abs=0.005)


def test_more_trips_make_steps_with_experts_longer():
    more = FITTED_AT | {"trips": 2 * FITTED_AT["trips"]}
    few, many = (
        dict(zip(SOURCES, (line[3] for line in FIGURE.draw(**at).readout[1:]),
                 strict=True))
        for at in (FITTED_AT, more)
    )  # fmt: skip
    experts = "Megatron Bridge, experts"
    assert float(many[experts]) > float(few[experts])
    assert many["LLM Foundry"] == few["LLM Foundry"]
