"""Live figures: pure, standard library only, equal to the cost model."""

import itertools
import json
import math
import random
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from shardmath.draw import figures
from shardmath.hardware import chips, roofline

ROOFLINE = figures.find("roofline")
BOOK = Path(__file__).parents[2] / "book"


def settings(seed: int) -> dict:
    draw = random.Random(seed)
    return {
        control.name: draw.choice(
            control.options if isinstance(control, figures.Choice) else control.stops
        )
        for control in ROOFLINE.controls
    }


def test_figures_need_the_standard_library_alone():
    """They run in a browser without any package: -S hides all that is installed."""
    code = (
        f"import sys; sys.path.insert(0, {str(BOOK)!r})\n"
        "import shardmath.draw.live, shardmath.grading\n"
        "shardmath.draw.live.answer('roofline', {})\n"
        "top = {name.split('.')[0] for name in sys.modules}\n"
        "known = {'shardmath', '__main__', *sys.stdlib_module_names}\n"
        "print(sorted(top - known))"
    )
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.parametrize("seed", range(30))
def test_the_numbers_are_those_of_the_cost_model(seed):
    given = settings(seed)
    drawing = ROOFLINE.draw(**given)
    for case in drawing.data["chips"]:
        chip = chips.find(case["chip"])
        precision = given["precision"]
        estimate = roofline.matmul(given["B"], given["D"], given["F"], chip, precision)
        assert case["lower"] == estimate.lower
        assert case["upper"] == estimate.upper
        assert case["bound"] == estimate.bound
        assert case["critical_intensity"] == pytest.approx(chip.intensity(precision))
        # The operating point lies on the roof.
        assert case["rate"] == pytest.approx(estimate.flops / estimate.lower)


@pytest.mark.parametrize("chip", ROOFLINE.controls[0].options)
def test_every_chip_draws_in_every_precision(chip):
    for precision in ROOFLINE.controls[2].options:
        drawing = ROOFLINE.draw(chip=chip, precision=precision, versus="TPU v5e")
        ElementTree.fromstring(drawing.svg)
        json.dumps(drawing.data, allow_nan=False)
        published = precision in chips.find(chip).flops
        drawn = [case["chip"] for case in drawing.data["chips"]]
        assert (chip in drawn) == published
        assert (f"{chip} has no published {precision} peak" in drawing.summary) != (
            published
        )


def test_a_missing_precision_is_said_in_the_figure():
    drawing = ROOFLINE.draw(chip="TPU v5e", precision="fp4")
    assert drawing.data == {"chips": []}
    assert drawing.readout == ()
    assert "TPU v5e has no published fp4 peak" in drawing.svg


def test_the_point_moves_along_the_roof():
    points = [ROOFLINE.draw(B=2**n).data["chips"][0] for n in range(17)]
    intensities = [point["intensity"] for point in points]
    assert intensities == sorted(set(intensities))
    bounds = [point["bound"] for point in points]
    assert bounds == sorted(bounds, reverse=True)  # memory-bound first
    assert points[-1]["rate"] == chips.find("TPU v5e").flops["bf16"]


def test_a_chip_compared_with_itself_is_drawn_once():
    drawing = ROOFLINE.draw(chip="TPU v5e", versus="TPU v5e")
    assert len(drawing.data["chips"]) == 1


def test_a_drawing_depends_on_nothing_else():
    assert ROOFLINE.draw(**settings(5)) == ROOFLINE.draw(**settings(5))


def test_chips_may_be_spelt_freely():
    assert ROOFLINE.settings(chip="v5p")["chip"] == "TPU v5p"
    assert ROOFLINE.settings()["chip"] == "TPU v5e"


def test_linear_and_doubling_sliders():
    assert figures.Slider("x", "x", "", 0, 9, 0, step=3).stops == (0, 3, 6, 9)
    assert figures.Slider("x", "x", "", 128, 1024, 128).stops == (128, 256, 512, 1024)
    halves = figures.Slider("x", "x", "", 1, 8, 2, parts=2)
    assert halves.stops == (1, 2, 3, 4, 6, 8)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"chip": "abacus"}, "abacus"),
        ({"precision": "fp3"}, "precision = 'fp3': must be one of .*bf16"),
        ({"B": 0}, "B = 0: must be one of the slider's stops, 1, 2, 4"),
        ({"B": -4}, "B = -4"),
        ({"B": 240}, "B = 240"),
        ({"B": math.nan}, "B = nan"),
        ({"B": "128"}, "B = '128'"),
        ({"B": True}, "B = True"),
        ({"D": 64}, "D = 64: must be one of the slider's stops, 128"),
        ({"E": 8}, "has no control 'E'; it has chip, versus, precision, B, D, F"),
    ],
)
def test_a_bad_setting_is_refused_with_what_is_valid(params, message):
    with pytest.raises(ValueError, match=message):
        ROOFLINE.draw(**params)


def test_an_unknown_figure_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="'rooflien'; there are: roofline"):
        figures.find("rooflien")


# What every figure offers ------------------------------------------------------------


@pytest.fixture(params=figures.NAMES)
def figure(request):
    return figures.find(request.param)


def test_presets_are_few_and_each_draws(figure):
    if figure.name == "front":  # it stands without its tools
        return
    assert 2 <= len(figure.presets) <= 4
    if figure.name == "planner":  # tests/planner draws each of them
        return
    drawings = [figure.draw(**preset) for preset in figure.presets.values()]
    assert len({drawing.summary for drawing in drawings}) == len(drawings)
    for drawing in drawings:
        assert drawing.readout, "a preset shows something"


def test_what_can_be_dragged_lies_under_its_slider(figure):
    """A drag goes to the stop whose place is nearest: the handle is on its own."""
    for params in ({}, *figure.presets.values()):
        root = ElementTree.fromstring(figure.draw(**params).svg)
        for handle in root.iterfind(".//*[@data-drag]"):
            control = figure.control(handle.get("data-drag"))
            said = handle.get("data-drag-at").split()
            assert len(said) <= len(control.stops)
            assert control in (figure.control(figure.first), *figure.in_row)
            if "," in said[0]:
                assert all(len(place.split(",")) == 2 for place in said)
                continue
            places = [float(x) for x in said]
            assert places == sorted(places)
            if handle.get("cx"):
                at = control.stops.index(figure.settings(**params)[control.name])
                assert float(handle.get("cx")) == places[at]


def test_keys_are_given_once(figure):
    """Two things of one key could not be told apart when they move."""
    for params in ({}, *figure.presets.values()):
        root = ElementTree.fromstring(figure.draw(**params).svg)
        keys = [e.get("data-key") for e in root.iterfind(".//*[@data-key]")]
        twice = {key for key in keys if keys.count(key) > 1}
        assert not twice, f"{figure.name}: data-key {twice} is given to several things"
        assert keys, (
            f"{figure.name}: nothing has a data-key, so nothing can be seen to move "
            'when a setting changes; give marks key="…", see "Add a live figure" in '
            "CONTRIBUTING.md"
        )


def test_no_axis_has_a_bare_prefix(figure):
    """ "100 m" is no time, and "1 P" no rate."""
    svg = figure.draw().svg
    texts = [e.text or "" for e in ElementTree.fromstring(svg).iter() if e.text]
    assert not [text for text in texts if re.fullmatch(r"[\d.]+ [kMGTPEmµn]", text)]


def test_a_sequence_ends_where_the_run_does():
    figure = figures.find("systolic")
    for size, tokens in itertools.product((2, 8), (1, 16)):
        drawing = figure.draw(size=size, B=tokens, step=0)
        assert drawing.last == drawing.data["cycles"]
        end = figure.draw(size=size, B=tokens, step=drawing.last)
        later = figure.draw(size=size, B=tokens, step=figure.control("step").high)
        assert end.svg == later.svg
    assert figures.find("roofline").draw().last is None


def test_stops_are_printed_as_one_says_them():
    size = figures.find("collective").control("kilobytes")
    assert [size.text(stop) for stop in (1, 1024, 2**22)] == [
        "1 kB",
        "1.02 MB",
        "4.19 GB",
    ]
    assert ROOFLINE.control("B").text(1) == "1 token"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"presets": {"small": {"B": 3}}}, "preset 'small': B = 3: must be one of"),
        ({"presets": {"odd": {"E": 8}}}, "preset 'odd': .* has no control 'E'"),
        ({"first": "E"}, "has no control 'E'; it has chip"),
        ({"carries": ("E",)}, "has no control 'E'; it has chip"),
    ],
)
def test_a_figure_that_cannot_be_is_refused_at_once(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(ROOFLINE, **changes)


@pytest.mark.parametrize(("chip", "versus"), [("H100", "H200"), ("H200", "H100")])
def test_of_two_slopes_the_label_of_the_upper_is_over_it(chip, versus):
    """Each rate stands on its own side, or it would name the other chip's line."""
    svg = figures.find("roofline").draw(chip=chip, versus=versus).svg
    place = {
        text: (float(x), float(y))
        for x, y, text in re.findall(
            r'<text[^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]+)<', svg
        )
    }
    fast, slow = place["4.8 TB/s"], place["3.35 TB/s"]
    assert fast[0] < slow[0]
    assert fast[1] < slow[1]
