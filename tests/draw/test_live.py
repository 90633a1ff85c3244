"""`live` in a notebook: what is stored is text that a fresh run repeats."""

import base64
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from pairs import known

from shardmath.draw import figures
from shardmath.draw import live as live_module
from shardmath.draw.live import (
    MIME,
    Place,
    answer,
    block,
    first_answers,
    live,
    static_view,
)

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def static(monkeypatch):
    monkeypatch.setenv("SHARDMATH_STATIC", "1")


@pytest.fixture
def pairs(monkeypatch):
    return known(monkeypatch)


class Page(HTMLParser):
    """Counts start tags and checks that every one is closed."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("input", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag != "option":
            while self.open[-1] == "option":
                self.open.pop()
            assert self.open.pop() == tag


@pytest.mark.usefixtures("static")
def test_stored_output_has_text_picture_and_setting_and_no_widget():
    bundle = live("roofline", chip="v5e", B=1024)._repr_mimebundle_()
    assert sorted(bundle) == [MIME, "text/html", "text/plain"]
    assert bundle[MIME]["params"]["chip"] == "TPU v5e"
    assert bundle[MIME]["params"]["B"] == 1024
    assert "compute-bound" in bundle["text/plain"]
    json.dumps(bundle)


@pytest.mark.usefixtures("static")
def test_stored_image_is_a_picture_with_words_for_it():
    html = live("roofline")._repr_mimebundle_()["text/html"]
    tags = Page(html).tags
    image = dict(tags)["img"]
    assert "memory-bound" in image["alt"]
    data = image["src"].removeprefix("data:image/svg+xml;base64,")
    root = ElementTree.fromstring(base64.b64decode(data))
    assert root.tag.endswith("svg")


def test_stored_output_is_the_same_in_another_process():
    """nbval compares it: no ids, no addresses, no order of a set."""
    code = (
        "from shardmath.draw.live import live; print(live('roofline', B=64).bundle())"
    )
    for seed in ("1", "2"):
        env = {**os.environ, "SHARDMATH_STATIC": "1", "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.stdout.strip() == str(live("roofline", B=64).bundle()), done.stderr


def test_the_widget_shows_the_same_bundle(monkeypatch):
    pytest.importorskip("anywidget")
    monkeypatch.delenv("SHARDMATH_STATIC", raising=False)
    widget = live("roofline", B=64)
    data, _ = widget._repr_mimebundle_()
    monkeypatch.setenv("SHARDMATH_STATIC", "1")
    still = live("roofline", B=64)._repr_mimebundle_()
    assert WIDGET in data
    assert {key: data[key] for key in still} == still


def test_the_kernel_answers_the_widget(monkeypatch):
    pytest.importorskip("anywidget")
    monkeypatch.delenv("SHARDMATH_STATIC", raising=False)
    widget, sent = live("roofline"), []
    monkeypatch.setattr(widget, "send", sent.append)
    settings = {**widget.settings, "B": 4096}
    widget._handle_custom_msg({"id": 7, "settings": settings}, [])
    assert sent == [{"id": 7, "result": answer("roofline", settings)}]
    assert widget.settings["B"] == 4096
    assert "4,096 tokens" in widget.html

    widget._handle_custom_msg({"id": 8, "settings": {"B": 3}}, [])
    assert "B = 3" in sent[1]["error"]
    assert widget.settings["B"] == 4096


def test_without_anywidget_there_is_still_a_figure(monkeypatch):
    monkeypatch.delenv("SHARDMATH_STATIC", raising=False)
    monkeypatch.setitem(sys.modules, "shardmath.draw.live.widget", None)
    assert isinstance(live("roofline"), live_module.StaticFigure)


def test_the_block_holds_every_control_switched_off():
    page = Page(block("roofline", {"B": 256, "versus": "TPU v5p"}))
    assert page.open == []
    assert "disabled" in next(a for tag, a in page.tags if tag == "fieldset")
    names = [a["name"] for tag, a in page.tags if tag in ("select", "input")]
    figure = figures.find("roofline")
    others = [c for c in figure.controls if c not in figure.in_row]
    assert names == [control.name for control in (*figure.in_row, *others)]
    tokens = next(a for _, a in page.tags if a.get("name") == "B")
    assert tokens["aria-valuetext"] == "256 tokens"
    assert tokens["data-stops"].split()[int(tokens["value"])] == "256"
    # One option chosen in each of the three lists, and the right one.
    text = block("roofline", {"versus": "TPU v5p"})
    chosen = re.findall(r'<option value="([^"]*)" selected>', text)
    assert chosen == ["TPU v5e", "TPU v5p", "bf16"]


def test_the_answer_is_what_the_block_shows():
    result = answer("roofline", {"B": 256})
    text = block("roofline", {"B": 256})
    for part in ("svg", "line", "table"):
        assert result[part] in text
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize("name", ["rooflien", ""])
def test_an_unknown_figure_is_refused(name):
    with pytest.raises(ValueError, match="no live figure is called"):
        live(name)
    with pytest.raises(ValueError, match="B = 3"):
        live("roofline", B=3)


def test_the_answers_that_a_page_carries_are_pythons_own():
    params = {"chip": "H100", "B": 64}
    found = first_answers("roofline", params)
    figure = figures.find("roofline")
    assert len(found) == len(figure.control("B").stops) + len(figure.presets) - 2
    for key, given in found.items():
        names = [control.name for control in figure.controls]
        settings = dict(zip(names, json.loads(key), strict=True))
        assert {**given, "data": answer("roofline", settings)["data"]} == answer(
            "roofline", settings
        )


def test_a_figure_may_carry_all_of_its_answers():
    """Then its block says so, and no page starts Python for it."""
    figure = figures.find("front")
    controls = [figure.control(name) for name in ("count", "chip")]
    sizes = [len(controls[0].stops), len(controls[1].options)]
    found = first_answers("front", {})
    assert len(found) == sizes[0] * sizes[1]
    drawn = answer("front", {"count": 1, "chip": "H100"})
    assert found['[1,"H100"]']["svg"] == drawn["svg"]
    assert "data-whole" in block("front", {}, Place("a.json"))
    assert "data-whole" not in block("roofline", {}, Place("a.json"))


def test_a_bare_block_has_controls_and_no_tools():
    whole, bare = (Page(block("roofline", {}, Place(bare=b))) for b in (False, True))
    assert not [tag for tag, _ in bare.tags if tag == "button"]
    fields = [{a["name"]: a for tag, a in p.tags if tag in ("select", "input")}
              for p in (whole, bare)]  # fmt: skip
    assert fields[0] == fields[1]


def test_a_sequences_answers_end_where_it_does():
    """The slider of the page does too, whatever was asked for."""
    found = first_answers("systolic", {"size": 2, "B": 1})
    steps = [json.loads(key)[2] for key in found if json.loads(key)[:2] == [2, 1]]
    assert steps == list(range(answer("systolic", {"size": 2, "B": 1})["last"] + 1))
    page = Page(block("systolic", {"size": 2, "B": 1, "step": 30}))
    step = next(a for _, a in page.tags if a.get("name") == "step")
    assert step["max"] == step["value"] == str(steps[-1])


def test_notation_is_typeset():
    text = block("sharded_matmul", {})
    assert "A[B<sub>X</sub>, D] · W[D<sub>X</sub>, F] → C[B<sub>X</sub>, F]" in text
    assert "A[B<tspan" in text


def test_a_figure_that_plays_may_begin_with_a_list(monkeypatch):
    """The last step bounds the steps alone, not what is chosen from."""
    figure = replace(figures.find("pipeline"), first="name")
    monkeypatch.setattr(static_view, "find", lambda name: figure)
    found = first_answers("pipeline", {})
    assert len(found) >= len(figure.control("name").options)


# The stage ----------------------------------------------------------------------------


def controls_of(name: str) -> dict[str, list[str]]:
    """The names of the fields of a block, by the class of the fieldset around them."""
    parts = re.split(r'<fieldset class="([^"]*)"', block(name, {}))
    found = zip(parts[1::2], parts[2::2], strict=True)
    return {kind: re.findall(r' name="(\w+)"', inner) for kind, inner in found}


def test_picture_row_line_and_closed_parts_come_in_this_order():
    text = block("ring", {})
    marks = ['class="sm-picture"', 'class="sm-row"', 'class="sm-line"', "sm-folds"]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    page = Page(text)
    folds = [attributes for tag, attributes in page.tags if tag == "details"]
    assert [fold["class"] for fold in folds] == ["sm-more", "sm-numbers"]
    assert not any("open" in fold for fold in folds)
    assert text.index("<table>") > text.index('class="sm-numbers"')


@pytest.mark.parametrize("name", figures.NAMES)
def test_a_row_has_what_is_moved_first_and_what_plays(name):
    figure = figures.find(name)
    if name == "front":  # it stands without a row
        return
    found = controls_of(name)
    row = found["sm-controls"]
    assert row == [control.name for control in figure.in_row]
    assert figure.first in row
    assert figure.plays is None or figure.plays.name in row
    assert figure.row or len(row) == min(3, len(figure.controls))
    assert {*row, *found.get("sm-rest", ())} == {c.name for c in figure.controls}


def test_a_record_says_what_is_in_the_row():
    ring = figures.find("ring")
    assert [control.name for control in ring.in_row] == ["step", "op", "ways"]
    other = replace(ring, row=("chips", "step"))
    assert [control.name for control in other.in_row] == ["chips", "step"]
    with pytest.raises(ValueError, match=r"row = \('op', 'ways'\): must have 'step'"):
        replace(ring, row=("op", "ways"))
    with pytest.raises(ValueError, match="has no control 'wings'"):
        replace(ring, row=("step", "wings"))


@pytest.mark.parametrize("name", ["ring", "pipeline"])
def test_every_step_of_a_sequence_is_carried(name):
    """A page plays it without Python, also where another control is moved first."""
    figure = figures.find(name)
    start = figure.settings()
    found = first_answers(name, {})
    for step in range(figure.draw(**start).last + 1):
        settings = start | {figure.plays.name: step}
        key = json.dumps([*settings.values()], ensure_ascii=False).replace(", ", ",")
        assert found[key]["svg"] == answer(name, settings)["svg"]


def test_a_number_stands_on_one_line_with_its_unit():
    text = block("memory", {})
    assert "<b>79.6 GiB</b>" in text
    cells = re.findall(r"<td>([^<]*\d GiB)</td>", text)
    assert cells == []


def test_the_stored_output_knows_nothing_of_the_stage():
    """So that what notebooks store stays as it is."""
    bundle = live_module.StaticFigure("memory", figures.find("memory").settings())
    html = bundle.bundle()["text/html"]
    assert "<caption>" in html
    assert "<b>" not in html


def test_what_a_control_cannot_do_is_said_beside_it(pairs):
    """And what was drawn in place of what was asked for is where the controls are."""
    text = block("pairs", {"own": "no", "count": 5})
    page = Page(text)
    size = next(a for _, a in page.tags if a.get("name") == "size")
    assert "disabled" in size
    why = "only for your own &lt;shape&gt;"
    assert f'title="{why}"' in text
    assert f'<span class="sm-why sm-unseen">{why}</span>' in text
    count = next(a for _, a in page.tags if a.get("name") == "count")
    assert (count["value"], count["aria-valuetext"]) == ("4", "4")
    found = answer("pairs", {"own": "no", "count": 5})
    assert found["idle"] == {"size": "only for your own <shape>"}
    assert found["used"] == {"count": 4}
    found = answer("pairs", {"own": "yes", "count": 4})
    assert (found["idle"], found["used"]) == ({}, {})


def test_a_drawing_that_names_what_is_not_there_is_refused(pairs):
    drawing = pairs.draw()
    for changes, message in (
        ({"idle": {"wings": "none"}}, "has no control 'wings'"),
        ({"used": {"count": 99}}, "count = 99"),
    ):
        wrong = replace(pairs, paint=lambda c=changes, **_: replace(drawing, **c))
        with pytest.raises(ValueError, match=message):
            wrong.draw()
