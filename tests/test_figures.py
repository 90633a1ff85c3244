"""Live figures: pure, standard library only, equal to the cost model."""

import json
import math
import random
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from shardmath import chips, figures, roofline

ROOFLINE = figures.find("roofline")
BOOK = Path(__file__).parent.parent / "book"


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
        "import shardmath.live, shardmath.grading\n"
        "shardmath.live.answer('roofline', {})\n"
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
