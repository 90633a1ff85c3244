"""Live figures in a browser: they answer like Python, by hand, link and themselves."""

import math
import random
import re

import pytest
from live_book import DEFAULTS, SAME, expected, slider, wait_for

from shardmath.draw import figures
from shardmath.draw.figures import Choice
from shardmath.draw.labels import text_width
from shardmath.draw.live import answer
from shardmath.draw.svg import HEIGHT, WIDTH

# It answers ---------------------------------------------------------------------------


def test_the_keyboard_moves_the_figure(ready):
    page = ready
    slider(page).focus()
    slider(page).press("ArrowRight")
    wait_for(page, B=256)
    slider(page).press("End")
    wait_for(page, B=65536)
    assert slider(page).get_attribute("aria-valuetext") == "65,536 tokens"
    slider(page, "D").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.type("fp8")
    wait_for(page, B=65536, precision="fp8")


def test_the_pointer_moves_the_figure(ready):
    page = ready
    box = slider(page).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 1, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    wait_for(page, B=1)
    page.locator("[name=versus]").select_option("TPU v5p")
    wait_for(page, B=1, versus="TPU v5p")


def test_the_newest_setting_wins(ready):
    page = ready
    slider(page).evaluate(
        """(control) => { for (let stop = 0; stop < 17; stop += 1) {
            control.value = stop;
            control.dispatchEvent(new Event("input", { bubbles: true })); } }"""
    )
    page.wait_for_selector(".sm-live:not([aria-busy])")
    wait_for(page, B=65536)


def test_its_numbers_equal_ours_on_drawn_settings(awake):
    """CPython in wasm has another libm: numbers to 1e-12, text exactly."""
    draw = random.Random(1)
    drawn = [
        {
            control.name: draw.choice(
                control.options if isinstance(control, Choice) else control.stops
            )
            for control in figures.find("roofline").controls
        }
        for _ in range(100)
    ]
    theirs = awake.evaluate(
        """async (drawn) => {
            const host = document.querySelector("script[src$='/host.js']").src;
            const { call } = await import(host.replace("host.js", "engine.js"));
            const ask = (params) =>
                call("shardmath.draw.live", "answer", { name: "roofline", params });
            return Promise.all(drawn.map(ask));
        }""",
        drawn,
    )
    for params, their in zip(drawn, theirs, strict=True):
        our = answer("roofline", params)
        for part in ("svg", "line", "table"):
            assert their[part] == our[part]
        for a, b in zip(their["data"]["chips"], our["data"]["chips"], strict=True):
            assert a.keys() == b.keys()
            for key, value in b.items():
                same = a[key] == value or math.isclose(a[key], value, rel_tol=1e-12)
                assert same, (params, key)


def test_the_result_is_read_out_once_the_hand_rests(ready):
    page = ready
    said = "document.querySelector('.sm-said').textContent"
    before = answer("roofline", DEFAULTS)["summary"]
    page.wait_for_function(f"(before) => {said} === before", arg=before)
    page.evaluate(
        f"""() => {{ window.said = [];
            new MutationObserver(() => window.said.push({said}))
            .observe(document.querySelector(".sm-said"), {{childList: true}}); }}"""
    )
    for _ in range(4):
        slider(page).press("ArrowRight")
    page.wait_for_function("window.said.length > 0")
    summary = answer("roofline", DEFAULTS | {"B": 2048})["summary"]
    assert page.evaluate("window.said") == [summary]


def test_no_word_is_clipped_in_the_faces_of_a_browser(ready):
    page = ready
    for options in ({}, {"B": 65536, "versus": "TPU v5p"}, {"B": 1, "chip": "MI300X"}):
        svg = answer("roofline", DEFAULTS | options)["svg"]
        boxes = page.evaluate(
            """(svg) => { document.querySelector(".sm-picture").innerHTML = svg;
                return [...document.querySelectorAll(".sm-picture text")].map((t) => {
                    const { x, y, width, height } = t.getBBox();
                    return [t.textContent, x, y, x + width, y + height]; }); }""",
            svg,
        )
        for text, left, top, right, bottom in boxes:
            assert min(left, top) >= -1, text
            assert max(right - WIDTH, bottom - HEIGHT) <= 1, text
            assert right - left <= text_width(text) + 1, text


def test_presets_and_reset_set_what_they_name(ready):
    page = ready
    page.locator("[name=chip]").select_option("TPU v5p")
    page.get_by_role("button", name="training, 8,192 tokens").press("Enter")
    wait_for(page, chip="TPU v5p", B=8192)
    assert slider(page).get_attribute("aria-valuetext") == "8,192 tokens"
    page.get_by_role("button", name="an H100 in fp8").click()
    wait_for(page, chip="H100", precision="fp8", B=8192)
    page.get_by_role("button", name="Reset").click()
    wait_for(page)
    assert page.locator("[name=chip]").input_value() == DEFAULTS["chip"]


def test_the_point_is_dragged_along_the_roof(ready):
    page = ready
    point = page.locator("[data-drag=B]")
    assert point.evaluate("(e) => getComputedStyle(e).touchAction") == "pan-y"
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    centre = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*centre)
    page.mouse.down()
    places = [float(x) for x in point.get_attribute("data-drag-at").split()]
    stops = figures.find("roofline").control("B").stops
    scale = page.locator(".sm-picture svg").bounding_box()["width"] / WIDTH
    for to in (3, 9):
        away = places[to] - places[stops.index(DEFAULTS["B"])]
        page.mouse.move(centre[0] + away * scale, centre[1], steps=3)
        wait_for(page, B=stops[to])
    page.mouse.up()
    page.mouse.move(*centre)
    assert slider(page).input_value() == "9"


LIMITED = """async () => {
    const host = document.querySelector("script[src$='/host.js']").src;
    const { call } = await import(host.replace("host.js", "engine.js"));
    const match = (string, limit) => {
        const kwargs = { pattern: "(a+)+b", string }; // time doubles with each letter
        return call("re", "fullmatch", kwargs, undefined, { limit }); };
    const outcome = (asked) => asked.then(
        () => "ended", ({ message, stopped }) => `${message} ${stopped}`);
    const figure = { name: "roofline", params: { B: 1 } };
    const asked = [
        outcome(match("a", 60_000)),
        outcome(match("a".repeat(60), 300)),
        outcome(match("a".repeat(60), 200)),
        outcome(call("shardmath.draw.live", "answer", figure, "roofline")),
        outcome(match("a", 200)),
    ];
    return Promise.all(asked); }"""


def test_what_does_not_end_is_stopped_and_the_rest_is_asked_again(awake):
    """By a new Python, whose start counts for nobody's limit."""
    assert awake.evaluate(LIMITED) == [
        "ended",
        "Python was stopped after 0.3 s. true",
        "Python was stopped after 0.2 s. true",
        "ended",
        "ended",
    ]


# It moves -----------------------------------------------------------------------------


def paused(page):
    """Timers and frames pass only when a test says so."""
    page.clock.install()


def x_of(page, key: str) -> float:
    point = page.locator(f"[data-key='{key}']").first
    return float(point.get_attribute("cx") or point.get_attribute("x"))


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_a_moved_point_travels_unless_motion_is_reduced(view, motion):
    page = view(prepare=paused, reduced_motion=motion)
    control, before = slider(page), x_of(page, "point 0")
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)
    after = answer("roofline", DEFAULTS | {"B": 256})["svg"]
    after = float(re.search(r'data-key="point 0" cx="([\d.]+)"', after)[1])
    control.press("ArrowRight")
    page.wait_for_selector(".sm-live:not([aria-busy])")
    said = answer("roofline", DEFAULTS | {"B": 256})["summary"]
    page.locator(".sm-line", has_text=said).wait_for()
    page.clock.run_for(80)
    if motion == "reduce":
        assert x_of(page, "point 0") == after
    else:
        assert before < x_of(page, "point 0") < after
    page.clock.run_for(400)
    assert page.evaluate(SAME, expected(B=256))


def test_a_sequence_plays_steps_and_stops(view, server):
    page = view(server.far, prepare=paused, reduced_motion="reduce")  # only when asked
    figure = page.locator(".sm-live").first
    figure.scroll_into_view_if_needed()
    step, last = slider(page, "step"), answer("systolic", {})["last"]
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)

    def at(cycle: int):
        figure.locator(".sm-line", has_text=f"Cycle {cycle} of {last}:").wait_for()
        assert step.input_value() == str(cycle)

    button = figure.locator("[data-play=play]")
    figure.get_by_role("button", name="Step back").click()
    at(6)
    figure.get_by_role("button", name="Step forward").click()
    at(7)
    button.click()
    page.clock.run_for(1)
    at(8)
    assert button.get_attribute("aria-label") == "Pause: Cycle"
    page.clock.run_for(700)
    at(9)
    button.click()
    page.clock.run_for(2000)
    at(9)
    # Held to the run, and from its end it starts anew.
    step.press("End")
    at(last)
    button.click()
    page.clock.run_for(1)
    at(1)
    # A hand on the slider, or a figure out of sight, ends it.
    step.press("ArrowRight")
    at(2)
    assert button.get_attribute("aria-label") == "Play: Cycle"
    button.click()
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_selector(
        "[data-play=play][aria-label='Play: Cycle']", state="attached"
    )


# Links, and the reader's machine ------------------------------------------------------


def test_a_link_carries_the_setting(view, server):
    page = view(server.far, permissions=["clipboard-read", "clipboard-write"])
    second = page.locator(".sm-live").nth(2)
    second.locator("[name=B]").press("ArrowRight")
    second.get_by_role("button", name="Copy link").click()
    second.get_by_text("The link to this setting is copied.").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url
    assert "#roofline-2?chip=TPU+v5e&" in link
    assert "&B=128&" in link

    other = page.context.new_page()
    other.goto(link.replace("B=128", "B=4096"))
    texts = [other.locator(".sm-live").nth(n).locator(".sm-line") for n in (1, 2)]
    texts[1].get_by_text("compute-bound").first.wait_for()
    assert "memory-bound" in texts[0].inner_text()
    assert other.evaluate("scrollY") > 2000

    other.evaluate("location.hash = 'roofline?B=3&D=8192&wings=2'")
    said = (
        "The link gives “B” a value that the figure does not offer. "
        "The link names a setting that the figure does not have."
    )
    other.locator(".sm-message").nth(1).get_by_text(said).wait_for()
    assert other.locator("[name=D]").nth(0).get_attribute("aria-valuetext") == "8,192"
    assert other.locator("[name=B]").nth(1).get_attribute("aria-valuetext") == (
        "128 tokens"
    )


@pytest.mark.parametrize("name", ["toString", "__proto__", "wing" * 9_000])
def test_a_link_can_name_what_it_likes(view, server, name):
    """Names that every object has are no settings, and nothing is repeated."""
    page = view(f"{server.url}#roofline?{name}=1&D=8192")
    said = "The link names a setting that the figure does not have."
    page.wait_for_function(
        "(said) => document.querySelector('.sm-message').textContent === said", arg=said
    )
    wait_for(page, D=8192)
    slider(page).press("ArrowRight")
    wait_for(page, D=8192, B=256)
    page.locator(".sm-check form").wait_for()  # what comes after the figure started too


def test_the_readers_machine_is_remembered_until_forgotten(view, server):
    page = view()
    page.locator("[name=chip]").select_option("H100")
    assert "Your machine: H100" in page.locator(".sm-status").inner_text()
    page.reload()
    wait_for(page, chip="H100")
    assert "Your machine: H100" in page.locator(".sm-status").inner_text()
    page.goto(server.url + "#roofline?chip=TPU+v5p")
    page.reload()
    wait_for(page, chip="TPU v5p")  # a link says otherwise
    page.goto(server.url)
    page.reload()
    page.get_by_role("button", name="forget").click()
    wait_for(page)
    assert page.locator(".sm-machine").count() == 0
    assert page.evaluate("localStorage.length") == 0


# It does not hold up the page ---------------------------------------------------------

ASKED = """() => {
    window.asked = [];
    const note = (element) => {
        if (element.closest(".bd-article"))
            asked.push(element.checkVisibility() ? "laid out" : element.outerHTML);
    };
    const sizes = ["clientWidth", "clientHeight", "scrollWidth", "scrollHeight"];
    for (const [{ prototype }, names] of [
        [Element, [...sizes, "scrollLeft", "scrollTop"]],
        [HTMLElement, ["offsetWidth", "offsetHeight", "offsetLeft", "offsetTop"]],
    ])
        for (const name of names) {
            const own = Object.getOwnPropertyDescriptor(prototype, name);
            const get = function () { note(this); return own.get.call(this); };
            Object.defineProperty(prototype, name, { ...own, get });
        }
    for (const name of ["getBoundingClientRect", "getClientRects"]) {
        const own = Element.prototype[name];
        Element.prototype[name] = function () { note(this); return own.call(this); };
    }
}"""
FRAMES = """async () => {
    await document.fonts.ready;
    for (let n = 0; n < 2; n += 1) await new Promise(requestAnimationFrame);
}"""


def test_no_script_measures_what_is_hidden(new_page, site_url):
    """A layout for each fold and guess would block a phone for half a second."""
    page = new_page(width=390)
    page.add_init_script(f"({ASKED})()")
    page.goto(f"{site_url}chapters/05_collectives.html")
    page.evaluate(FRAMES)
    asked = page.evaluate("asked")
    assert "laid out" in asked
    assert [what[:80] for what in asked if what != "laid out"] == []
    # What comes to light is looked at then.
    marked = "() => document.querySelectorAll('pre[data-more]').length"
    before = page.evaluate(marked)
    page.locator(".sm-code-switch").evaluate("(button) => button.click()")
    page.wait_for_function(f"(before) => ({marked})() > before", arg=before)
