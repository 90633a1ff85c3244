"""Schedules drawn and played: what is on the picture is what was played."""

import json
import re
from xml.etree import ElementTree

import drawn
import pytest

from shardmath.draw import figures
from shardmath.draw.figures.pipeline import SCHEDULES, SHOWN
from shardmath.draw.live.static_view import first_answers
from shardmath.draw.pictures import timeline
from shardmath.training.pipeline_schedules import NAMES, schedule

FIGURE = figures.find("pipeline")


def cells(picture) -> int:
    """Boxes of ops, without those of the legend."""
    paths = drawn.elements(picture.panels[0], "path")
    boxes = [box for path in paths for box in re.findall("M[^z]*z", path.get("d"))]
    return len(boxes) - len(drawn.words(picture) & {
        "forward", "backward", "inputs I", "weights W"})  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_op_is_drawn_once(name):
    one = schedule(name, 4, 8)
    picture = timeline(one)
    drawn.check(picture)
    assert cells(picture) == sum(map(len, one.orders))
    assert f"idle over busy {one.bubble:.1%}" in drawn.words(picture)
    assert {f"{held:g}" for held in one.in_flight} <= drawn.words(picture)


@pytest.mark.parametrize(("name", "p", "M"), [("1f1b", 16, 64), ("dualpipe", 8, 20)])
def test_large_ones_fit(name, p, M):
    drawn.check(timeline(schedule(name, p, M)))


@pytest.mark.parametrize("name", NAMES)
def test_a_moment_shows_what_has_begun_and_what_is_held_then(name):
    one = schedule(name, 4, 8)
    for until in (0.5, 7.25, one.seconds / 2):
        picture = timeline(one, until)
        begun = [s for spans in one.spans for s in spans if s.start < until]
        assert cells(picture) == len(begun)
        for spans in one.spans:
            held = 0.0
            for op, start, end in spans:
                held += one.share * (op.kind == "F" and start < until)
                held -= one.share * (op.kind in "BW" and end <= until)
            assert f"{held:g}" in drawn.words(picture)


def test_one_scale_compares_two_schedules():
    """The shorter one of two ends before the edge."""
    short, long = schedule("zb-h1", 4, 8), schedule("gpipe", 4, 8)
    drawn_wide = timeline(short).panels[0]
    assert timeline(short, seconds=long.seconds).panels[0] != drawn_wide
    assert timeline(long, seconds=1).panels == timeline(long).panels


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_figure_says_what_the_schedule_does(name):
    drawing = FIGURE.draw(name=name)
    ElementTree.fromstring(drawing.svg)
    found = json.loads(json.dumps(drawing.data))["pipeline"]
    one = schedule(SCHEDULES[name], 4, 8)
    assert found["bubble"] == pytest.approx(one.bubble)
    assert found["idle"] == pytest.approx(found["closed_form"])
    assert max(found["held"]) == found["published"]
    assert drawing.last == SHOWN
    assert FIGURE.draw(name=name, moment=0).svg.count("M") < drawing.svg.count("M")


def test_what_is_not_there_is_refused_in_words():
    drawing = FIGURE.draw(name="DualPipe", stages=8, microbatches=8)
    assert drawing.data == {"pipeline": None}
    assert drawing.summary.startswith("DualPipe needs an even number of stages")


def test_a_page_carries_every_schedule_though_the_figure_plays():
    """The steps of what plays bound the control that plays, and no other."""
    settings = [json.loads(key) for key in first_answers("pipeline", {})]
    assert [one[0] for one in settings[: len(SCHEDULES)]] == list(SCHEDULES)
