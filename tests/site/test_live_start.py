"""How live figures start, and how they fail: slowly, partly, without scripts."""

import re

from live_book import (
    QUESTION,
    START,
    expect_failure,
    message,
    shown,
    slider,
    wait_for,
)

from shardmath import answers
from shardmath.grading import judge_number

# When it starts -----------------------------------------------------------------------

SAVING = """Object.defineProperty(navigator, "connection", {value: {saveData: true}})"""


def test_python_starts_when_a_figure_comes_near(view, server):
    """Two screens away, once the reader scrolls: who only looks in brings nothing."""
    page = view(server.far, viewport={"width": 1280, "height": 1100})
    page.wait_for_selector(".sm-controls:not(:disabled)", state="attached")
    page.evaluate(
        "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
    )
    assert not any(".pack" in path or ".json" in path for path in server.asked)
    with page.expect_response("**/python.pack"):
        page.mouse.wheel(0, 100)


def test_where_data_is_saved_python_waits_for_a_hand(view, server):
    page = view(prepare=lambda page: page.add_init_script(SAVING))
    page.wait_for_selector(".sm-controls:not(:disabled)")
    page.evaluate(
        "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
    )
    assert not any(".pack" in path or ".json" in path for path in server.asked)
    with page.expect_response("**/python.pack"):
        slider(page).hover()


def test_the_first_moves_need_no_python(view, server):
    """The page carries every stop of the first control, and the presets."""
    server.faults["worker.js"] = 404
    page = view()
    for key, B in (("End", 65536), ("ArrowLeft", 32768), ("Home", 1)):
        slider(page).press(key)
        wait_for(page, B=B)
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("button", name="beside a TPU v5p").click()
    wait_for(page, versus="TPU v5p")
    assert message(page) == ""
    page.get_by_role("button", name="Reset").click()
    wait_for(page)
    slider(page, "D").press("ArrowRight")
    expect_failure(page, "refused or is missing")
    # Without what the page carries, Python gives the first answers too.
    server.faults.clear()
    server.faults[".json"] = 404
    page.reload()
    slider(page).press("ArrowRight")
    wait_for(page, B=256)


def test_nothing_moves_when_the_controls_appear(view):
    page = view()
    page.wait_for_selector(".sm-controls:not(:disabled)")
    shift = page.evaluate(
        """() => new Promise((resolve) => new PerformanceObserver((list) => resolve(
            list.getEntries().reduce((sum, entry) => sum + entry.value, 0)
        )).observe({ type: "layout-shift", buffered: true })
            || setTimeout(() => resolve(0), 200))"""
    )
    assert shift < 0.01


# It does without ----------------------------------------------------------------------


def test_without_scripts_picture_and_numbers_are_there(view):
    page = view(java_script_enabled=False)
    assert page.locator(".sm-picture svg").is_visible()
    assert "memory-bound" in page.locator(".sm-readout").inner_text()
    for control in page.locator(".sm-live [name], .sm-check form").all():
        assert not control.is_visible()
    assert "need scripts" in page.locator(".sm-note").inner_text()
    assert page.locator(".sm-controls").bounding_box()["height"] < 80
    assert "in Jupyter" in page.locator(".sm-verdict").inner_text()


def test_from_a_file_picture_and_numbers_are_there(view, small):
    page = view(url=(small / "index.html").as_uri())
    assert page.locator(".sm-picture svg").is_visible()
    assert "memory-bound" in page.locator(".sm-readout").inner_text()
    assert not slider(page).is_visible()
    page.locator(".sm-note").wait_for(state="visible")


def test_nothing_is_animated(view):
    """So there is nothing to reduce for `prefers-reduced-motion`."""
    page = view(reduced_motion="reduce")
    times = page.evaluate(
        """[...document.querySelectorAll(".sm-live *, .sm-check *")].flatMap((e) => {
            const s = getComputedStyle(e);
            return [s.transitionDuration, s.animationDuration]; })"""
    )
    assert set(times) == {"0s"}


def test_a_slow_line_is_told_and_the_picture_stays(view, server):
    server.faults["pyodide.asm.wasm"] = 2.0
    page = view()
    slider(page, "D").press("ArrowRight")
    page.wait_for_function(
        "document.querySelector('.sm-message').textContent.includes('Starting Python')"
    )
    assert page.locator(".sm-live").get_attribute("aria-busy") == "true"
    assert re.fullmatch(r"\d+ %", page.locator(".sm-progress").inner_text())
    assert page.locator(".sm-picture svg").is_visible()
    wait_for(page, D=8192)
    assert message(page) == ""


def test_wasm_sent_with_the_wrong_type_still_runs(view, server):
    server.faults["pyodide.asm.wasm"] = {"Content-Type": "application/octet-stream"}
    page = view()
    slider(page).press("ArrowRight")
    wait_for(page, B=256)


MISSING = {
    "pyodide.asm.wasm": "pyodide.asm.wasm: HTTP 404",
    "python.pack": "python.pack: HTTP 404",
    "base.pack": "base.pack: HTTP 404",
    "pyodide.mjs": "pyodide.mjs",
    "worker.js": "refused or is missing",
}
REFUSING = ("script-src 'self'", "worker-src 'none'")


def test_what_is_missing_or_refused_is_named_and_the_next_touch_tries_again(
    view, server
):
    """A start that nobody asked for fails without a word."""
    page = view(prepare=lambda page: page.add_init_script(SAVING))
    for missing, words in MISSING.items():
        server.faults = {missing: 404}
        page.reload()
        slider(page, "D").press("ArrowRight")
        expect_failure(page, words)
    for policy in REFUSING:
        server.faults = {"": {"Content-Security-Policy": policy}}
        page.reload()
        slider(page, "D").press("ArrowRight")
        expect_failure(page, "could not start in this browser")
    server.faults = {"roofline.pack": 404}
    page.reload()
    slider(page, "D").press("ArrowRight")
    expect_failure(page, "roofline.pack")
    server.faults.clear()
    slider(page, "D").press("ArrowRight")
    wait_for(page, D=16384)
    assert message(page) == ""


def test_a_start_that_never_ends_is_given_up(view, server):
    server.faults["pyodide.asm.wasm"] = 20.0
    page = view(prepare=lambda page: page.clock.install())
    with page.expect_request("**/pyodide.mjs"):
        slider(page, "D").press("ArrowRight")
    page.clock.fast_forward(121_000)
    expect_failure(page, "no answer after two minutes")


# Answers ------------------------------------------------------------------------------


def type_answer(page, text: str) -> str:
    page.locator(".sm-check input").fill(text)
    page.locator(".sm-check button").click()
    page.wait_for_function(
        "!['', 'Checking …'].includes("
        "document.querySelector('.sm-verdict').textContent)"
    )
    return page.locator(".sm-verdict").inner_text()


def test_an_answer_gets_the_graders_verdict(view):
    page = view()
    for attempts, text in enumerate(["1e30", "2e30", "soon"]):
        verdict = judge_number(QUESTION, text, min(attempts, 2))
        wanted = "\n".join(filter(None, [verdict["message"], verdict["hint"]]))
        assert type_answer(page, text) == wanted
    right = repr(answers.find(QUESTION).expected())
    assert type_answer(page, right) == judge_number(QUESTION, right)["message"]
    kind = page.locator(".sm-verdict").get_attribute("data-verdict")
    assert kind == "correct"


def test_an_answer_is_kept_with_its_attempts_unless_storage_is_damaged(view):
    page = view()
    type_answer(page, "1e30")
    page.reload()
    assert page.locator(".sm-check input").input_value() == "1e30"
    hint = judge_number(QUESTION, "2e30", 1)["hint"]
    assert hint
    assert type_answer(page, "2e30").endswith(hint)
    page.evaluate("localStorage.setItem('shardmath.answers.v1', '{broken')")
    page.reload()
    assert type_answer(page, "1e30") == judge_number(QUESTION, "1e30")["message"]


def test_storage_that_is_refused_does_no_harm(view):
    refuse = "Object.defineProperty(window, 'localStorage', {get() {throw Error()}})"
    page = view(prepare=lambda page: page.add_init_script(refuse))
    assert type_answer(page, "1e30") == judge_number(QUESTION, "1e30")["message"]
    page.locator("[name=chip]").select_option("H100")
    wait_for(page, chip="H100")


# The book -----------------------------------------------------------------------------


def test_the_figure_of_the_first_chapter_answers(new_page, site_url):
    page = new_page()
    page.goto(f"{site_url}chapters/01_rooflines.html")
    before = shown(page)
    slider(page, "D").first.press("ArrowRight")
    page.wait_for_function(
        "before => document.querySelector('.sm-readout').innerHTML !== before",
        arg=before,
        timeout=START,
    )
    stroke = """getComputedStyle(
        document.querySelector(".sm-picture [data-key='slope 0']")).stroke"""
    assert page.evaluate(stroke) == "rgb(184, 74, 0)"
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"() => {stroke} === 'rgb(255, 143, 58)'")
