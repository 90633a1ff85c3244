"""The stage of live figures: what plays, and Jupyter's side."""

import json
import re

import pytest
from pairs import WHY, known

from shardmath.draw.live import answer, block

# It plays once ------------------------------------------------------------------------

PLAYS = "[data-play=play][aria-label='Pause: Cycle']"
RESTS = "[data-play=play][aria-label='Play: Cycle']"


@pytest.fixture
def stage(view, server):
    """A page whose first figure has a sequence, time under control, without Python.

    The figure starts at step 7, and is out of view yet.
    """
    server.faults["worker.js"] = 404

    def open_page(**options):
        page = view(server.far, lambda page: page.clock.install(), **options)
        page.wait_for_selector(".sm-controls:not(:disabled)", state="attached")
        page.clock.pause_at(page.evaluate("Date.now()") + 1000)
        return page

    return open_page


def look(page) -> None:
    page.locator(".sm-picture").first.scroll_into_view_if_needed()


def cycle(page) -> str:
    return page.locator("[name=step]").first.input_value()


def test_the_first_figure_plays_once_from_its_first_step(stage):
    page = stage()
    last = answer("systolic", {})["last"]
    assert cycle(page) == "7"
    look(page)
    page.locator(PLAYS).wait_for()
    said = page.locator(".sm-live").first.locator(".sm-line")
    for at in range(last + 1):
        said.get_by_text(f"Cycle {at} of {last}:").wait_for()
        assert cycle(page) == str(at)
        assert page.locator(PLAYS).is_visible()
        page.clock.run_for(8000 / (last + 1))
    page.locator(RESTS).wait_for()
    # Nobody asked for it, so nothing is read out; and it does not begin again.
    page.clock.run_for(2000)
    assert page.locator(".sm-said").first.text_content() == ""
    page.evaluate("scrollTo(0, 0)")
    look(page)
    page.clock.run_for(2000)
    assert cycle(page) == str(last)


def settled(page) -> None:
    """Until the observer of what is in view has told, and the answers have come."""
    page.evaluate(
        """() => new Promise((done) => new IntersectionObserver(() => done())
            .observe(document.querySelector(".sm-picture")))"""
    )
    page.wait_for_load_state("networkidle")


def test_it_does_not_play_under_reduced_motion(stage):
    page = stage(reduced_motion="reduce")
    look(page)
    settled(page)
    page.clock.run_for(2000)
    assert cycle(page) == "7"
    assert page.locator(RESTS).count() == 1


def test_it_does_not_play_once_a_reader_has_touched_it(stage):
    page = stage()
    page.locator("[name=size]").first.evaluate("(e) => e.focus({preventScroll: true})")
    page.keyboard.press("Shift")
    look(page)
    settled(page)
    page.clock.run_for(2000)
    assert cycle(page) == "7"


@pytest.mark.parametrize("touch", [PLAYS, ".sm-picture svg", "[name=B]"])
def test_a_touch_stops_it(stage, touch):
    page = stage()
    look(page)
    page.locator(PLAYS).wait_for()
    if touch == "[name=B]":
        page.locator(touch).first.press("Home")
    else:
        page.locator(touch).first.click()
    page.locator(RESTS).wait_for()
    page.clock.run_for(2000)
    assert cycle(page) == "0"


def test_a_figure_in_view_brings_its_answers_and_no_python(view, server):
    page = view()
    page.wait_for_selector(".sm-controls:not(:disabled)")
    settled(page)
    assert any(re.search(r"/roofline-\w+\.json$", path) for path in server.asked)
    assert not any(path.endswith(".pack") for path in server.asked)


def test_play_begins_at_the_beginning_until_a_step_is_chosen(stage):
    page = stage(reduced_motion="reduce")
    look(page)
    play = page.locator(".sm-live [data-play=play]").first
    play.click()
    page.clock.run_for(1)
    assert cycle(page) == "1"
    play.click()
    page.locator("[name=step]").first.press("ArrowRight")
    play.click()
    page.clock.run_for(1)
    assert cycle(page) == "3"


# As a notebook runs it ----------------------------------------------------------------

RENDER = """async (html) => {
    const host = document.querySelector("script[src$='/host.js']").src;
    const { default: widget } = await import(host.replace("host.js", "live.js"));
    const el = document.createElement("div");
    el.id = "widget";
    document.body.append(el);
    let tell;
    widget.render({ el, model: {
        get: () => html,
        on: (_, listener) => (tell = listener),
        off: () => {},
        send: async ({ id, settings }) => tell({ id, ...(await kernel(settings)) }),
    } }); }"""


@pytest.fixture
def widget(view, monkeypatch):
    """The figure of `pairs` as anywidget renders it; Python here is its kernel."""
    known(monkeypatch)
    page = view(prepare=lambda page: page.expose_function("kernel", reply))
    page.evaluate(RENDER, block("pairs", {}))
    return page.locator("#widget")


def reply(settings: dict) -> dict:
    return {"result": json.loads(json.dumps(answer("pairs", settings)))}


def test_a_widget_has_the_order_of_the_page(widget):
    parts = widget.locator(".sm-live > *").evaluate_all(
        "all => all.map(e => e.className)"
    )
    assert parts[:5] == ["sm-head", "sm-picture", "sm-controls", "sm-line", "sm-status"]
    assert parts[5] == "sm-folds"
    assert widget.locator("details[open]").count() == 0
    assert widget.locator("fieldset:disabled").count() == 0
    assert widget.get_by_role("button", name="Copy link").count() == 0


def test_a_control_without_effect_is_off_and_says_why(widget):
    size, own = widget.locator("[name=size]"), widget.locator("[name=own]")
    assert size.is_disabled()
    assert size.locator("xpath=ancestor::*[@title]").get_attribute("title") == WHY
    assert WHY in widget.get_by_label("Size").locator("xpath=..").inner_text()
    own.select_option("yes")
    widget.get_by_text("4 of them, size 2.").first.wait_for()
    assert size.is_enabled()
    assert widget.locator("[title]:not([title=''])").count() == 0
    own.select_option("no")
    widget.get_by_text("size of the others").first.wait_for()
    assert size.is_disabled()


def test_what_does_not_go_snaps_to_what_does(widget):
    """A key goes on in its direction, so that no value keeps it for ever."""
    count = widget.locator("[name=count]")
    for key, wanted in (
        ("ArrowRight", "6"),
        ("ArrowRight", "8"),
        ("ArrowLeft", "6"),
        ("Home", "2"),
        ("ArrowLeft", "2"),
        ("End", "12"),
    ):
        count.press(key)
        widget.locator(f".sm-line:has-text('{wanted} of them')").wait_for()
        widget.page.wait_for_function(
            "() => !document.querySelector('#widget [aria-busy]')"
        )
        assert count.input_value() == wanted
        assert count.get_attribute("aria-valuetext") == wanted
    count.fill("9")  # as a hand drags it
    widget.locator(".sm-line:has-text('8 of them')").wait_for()
    assert count.input_value() == "8"
