"""The figure "report": the boxes hold one run, and the bars one rate in four ways."""

import re
from itertools import product
from xml.etree import ElementTree

import drawn
import pytest

from shardmath.draw import figures
from shardmath.draw.figures.report import GIVEN, MODELS, OWN, PRINTED, UNITS
from shardmath.draw.picture import Picture
from shardmath.hardware import chips
from shardmath.measured.reports import CONVENTIONS, REPORTS
from shardmath.transformer import ACTIVE, model

FIGURE = figures.find("report")
HOUR, DAY = 3600, 86_400


def bars(svg):
    """The widths of the four bars, by convention."""
    found = {}
    for node in ElementTree.fromstring(svg).iter():
        if node.get("data-key") in (*CONVENTIONS, "hardware"):
            found[node.get("data-key")] = float(node.get("width"))
    return found


@pytest.mark.parametrize("given", GIVEN)
def test_the_boxes_are_one_run_by_plain_arithmetic(given):
    """From any of the five, tokens/s · FLOPs per token · chips · time agree."""
    drawing = FIGURE.draw(given=given)
    data, llama = drawing.data, model("llama 3 405b")
    rate, chips_, batch, tokens = data["tokens_per_second"], 16_384, 2**24, 14_400e9
    assert data["flops_per_second"] == pytest.approx(rate * 6 * llama.params)
    assert data["mfu"] == pytest.approx(rate * 6 * llama.params / 989.4e12)
    assert data["step_seconds"] == pytest.approx(batch / rate / chips_)
    assert data["chip_hours"] == pytest.approx(tokens / rate / HOUR)
    assert data["days"] == pytest.approx(tokens / rate / chips_ / DAY)
    slider = FIGURE.control(GIVEN[given])
    assert data[slider.name] == pytest.approx(slider.default * UNITS[slider.name])


def test_only_the_slider_of_what_is_given_has_an_effect():
    for given, name in GIVEN.items():
        idle = FIGURE.draw(given=given).idle
        assert set(idle) == set(GIVEN.values()) - {name}
    printed = FIGURE.draw(report=next(iter(PRINTED))).idle
    free = {"report", "convention", "params"}
    assert set(printed) == {one.name for one in FIGURE.controls} - free


@pytest.mark.parametrize("report", PRINTED)
def test_a_report_starts_from_what_it_prints(report):
    data = FIGURE.draw(report=report).data
    one = PRINTED[report]
    value = one.report.value(one.figure)
    if one.figure == "total_tokens_per_second":
        value /= one.report.chips
    assert data[data["given"]] == pytest.approx(value)
    # The figure in the name of the choice is the one that is printed.
    said = report.partition(": ")[2]
    digits = re.search(r"[\d.,]+", said)[0].replace(",", "")
    printed = one.report.value(one.figure)
    scales = (1, 100, 1e-6)
    assert any(float(digits) == pytest.approx(printed * by, rel=1e-3) for by in scales)


def test_the_bars_are_as_long_as_the_shares():
    for convention, seq in product(CONVENTIONS, (1024, 131_072)):
        drawing = FIGURE.draw(convention=convention, seq=seq, mfu=300)
        shares, wide = drawing.data["shares"], bars(drawing.svg)
        assert shares[convention] == pytest.approx(0.3)
        unit = wide[convention] / shares[convention]
        assert wide == pytest.approx({k: unit * v for k, v in shares.items()}, abs=0.2)


def test_the_convention_changes_no_rate_that_is_given():
    rates = {
        FIGURE.draw(given="time of a step", convention=way).data["tokens_per_second"]
        for way in CONVENTIONS
    }
    assert len(rates) == 1
    three = [
        FIGURE.draw(convention=way).data["tokens_per_second"] for way in CONVENTIONS
    ]
    assert three == sorted(three, reverse=True), "a larger count makes a lower rate"


def test_the_sentence_names_the_convention_that_a_print_follows():
    said = {name: FIGURE.draw(**one).summary for name, one in FIGURE.presets.items()}
    assert "prints 45.7%, which is what counting 6N gives." in said["PaLM"]
    assert "prints 46.2%, which is what counting full attention gives" in said["PaLM"]
    assert (
        "prints 48%, which is what counting the layers forward twice" in said["BLOOM"]
    )
    assert "prints 38.94%, which is what counting causal" in said["DeepSeek-V3"]
    assert "3.5 points below" in said["Llama 3.1 405B"]
    for words in said.values():
        assert re.fullmatch(r"([A-Z].*[a-z%]\.)+", words), words


def test_a_rate_above_the_peak_is_refused_in_words():
    drawing = FIGURE.draw(given="days", days=1)
    assert "These figures cannot be" in drawing.summary
    assert "the H100 has 989 TFLOPs/s in bf16: check" in drawing.summary
    assert drawing.readout == ()


def test_what_a_report_does_not_print_is_said():
    drawing = FIGURE.draw(report="Llama 2 70B: 1.72 M hours")
    assert drawing.data["days"] is None
    assert drawing.svg.count("not printed") == 2
    assert "days on" not in drawing.summary


SETTINGS = [
    *({"report": one, "convention": way} for one in PRINTED for way in CONVENTIONS),
    *({"given": given} for given in GIVEN),
    *({"model": name, "mfu": 500, "params": ACTIVE[2]} for name in MODELS),
    *({"given": "tokens/s per chip", "tokens_per_second": stop, "model": "Llama 3.1 8B"}
      for stop in (1, 15_360)),
    {"mfu": 10, "chips": 8, "tokens": 51_200},
    {"mfu": 1000, "chips": 131_072, "tokens": 100, "batch": 2**17},
    {"seq": 131_072, "mfu": 800, "convention": "6N"},
]  # fmt: skip


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_every_text_stands_free_in_the_picture(setting):
    drawing = FIGURE.draw(**setting)
    drawn.check(Picture("report", drawing.summary, (drawing.svg,)))


@pytest.mark.parametrize("chip", FIGURE.control("chip").options)
def test_every_chip_has_a_peak_to_be_a_share_of(chip):
    data = FIGURE.draw(report=OWN, chip=chip, mfu=400).data
    assert data["mfu"] == pytest.approx(0.4)
    flops = chips.find(chip).flops
    assert data["flops_per_second"] / 0.4 in (
        pytest.approx(flops[p]) for p in ("bf16", "fp16") if p in flops
    )


def test_every_report_of_the_figure_is_a_record():
    assert {one.report.key for one in PRINTED.values()} <= set(REPORTS)
    assert all(one.report.model for one in PRINTED.values())
