"""How live figures start, and how they fail: slowly, partly, without scripts."""

import json
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

from shardmath.exercises import answers, judge_number

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
    assert "memory-bound" in page.locator(".sm-line").inner_text()
    for control in page.locator(".sm-live [name], .sm-check form").all():
        assert not control.is_visible()
    assert "need scripts" in page.locator(".sm-note").inner_text()
    assert page.locator(".sm-controls").bounding_box()["height"] < 80
    assert "in Jupyter" in page.locator(".sm-verdict").inner_text()


def test_from_a_file_picture_and_numbers_are_there(view, small):
    page = view(url=(small / "index.html").as_uri())
    assert page.locator(".sm-picture svg").is_visible()
    assert "memory-bound" in page.locator(".sm-line").inner_text()
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
    expect_failure(page, "roofline.pack: HTTP 404")
    server.faults.clear()
    slider(page, "D").press("ArrowRight")
    wait_for(page, D=16384)
    assert message(page) == ""


def test_a_figure_that_does_not_start_takes_no_other_with_it(view, server):
    """Here one that lacks its picture, as an error in a script might leave it."""

    def maim(page):
        def without_picture(route):
            html = route.fetch().text()
            assert html.count('class="sm-picture"') == 3
            html = html.replace('class="sm-picture"', "", 1)
            route.fulfill(body=html, content_type="text/html")

        page.route("**/07_far.html", without_picture)

    page = view(server.far, prepare=maim)
    second = page.locator(".sm-live").nth(1)
    second.locator(".sm-controls:enabled").wait_for(state="attached")
    told = page.locator(".sm-message").all_inner_texts()
    assert ["could not start" in text for text in told] == [True, False, False]


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
    judged = ".sm-verdict:is([data-verdict=correct],[data-verdict=wrong],[data-verdict"
    page.locator(f"{judged}=invalid])").wait_for()
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


def test_a_figure_whose_modules_are_missing_says_so_though_python_runs(view, server):
    """A question has started it, so what is missing is found when the figure asks."""
    page = view(prepare=lambda page: page.add_init_script(SAVING))
    type_answer(page, "1e30")
    server.faults["roofline.pack"] = 404
    slider(page, "D").press("ArrowRight")
    expect_failure(page, "roofline.pack: HTTP 404")
    server.faults.clear()
    slider(page, "D").press("ArrowRight")
    wait_for(page, D=16384)


STORE = "shardmath.answers.v1"
KEPT = f"() => JSON.parse(localStorage.getItem('{STORE}'))"


def test_an_answer_is_kept_with_its_attempts_and_its_verdict(view):
    """After a reload all is said again, without asking Python."""
    page = view()
    wrong = type_answer(page, "1e30")
    page.reload()
    field, verdict = page.locator(".sm-check input"), page.locator(".sm-verdict")
    assert (field.input_value(), verdict.inner_text()) == ("1e30", wrong)
    assert verdict.get_attribute("data-verdict") == "wrong"
    assert not page.evaluate(
        "performance.getEntriesByType('resource')"
        ".some(entry => entry.name.includes('pyodide'))"
    )
    hint = judge_number(QUESTION, "2e30", 1)["hint"]
    assert hint
    assert type_answer(page, "2e30").endswith(hint)
    # Right once is right for good; what cannot be read replaces no answer.
    right = repr(answers.find(QUESTION).expected())
    for text, judged in ((right, "right"), ("1e30", "wrong"), ("soon", "wrong")):
        type_answer(page, text)
        entry = page.evaluate(KEPT)[QUESTION]
        assert (entry["verdict"], entry["best"]) == (judged, "right")
    assert entry["text"] == "1e30"
    assert entry["attempts"] == 3


def test_stores_of_other_days_are_read_or_set_aside(view):
    """The first edition kept no verdicts; what is no store is not thrown away."""
    page = view()
    old = {QUESTION: {"text": "1e30", "attempts": 1}, "99.1": {"text": "7"}}
    put = f"(text) => localStorage.setItem('{STORE}', text)"
    page.evaluate(put, json.dumps(old))
    page.reload()
    assert page.locator(".sm-check input").input_value() == "1e30"
    assert page.locator(".sm-verdict").inner_text() == ""
    hint = judge_number(QUESTION, "2e30", 1)["hint"]
    assert type_answer(page, "2e30").endswith(hint)
    assert page.evaluate(KEPT)["99.1"] == old["99.1"]
    for damage in ("{broken", "[]", '{"01.1": 3}', '{"01.1": {"text": null}}'):
        page.evaluate(put, damage)
        found = page.evaluate("(q) => Shardmath.answers.of(q)", QUESTION)
        assert found is None
        page.evaluate("Shardmath.answers.put('01.2', {text: '8'})")
        aside = page.evaluate("""() => {
            const key = Object.keys(localStorage).find((k) => k.includes("damaged"));
            const text = localStorage.getItem(key);
            localStorage.removeItem(key);
            return text; }""")
        assert aside == damage
        assert "set aside" in page.evaluate("Shardmath.answers.kept.trouble")


def test_another_tab_is_followed(view, server):
    page = view()
    other = page.context.new_page()
    other.goto(server.url)
    field = other.locator(".sm-check input")
    verdict = type_answer(page, "1e30")
    other.locator(".sm-verdict", has_text=verdict).wait_for()
    assert field.input_value() == "1e30"
    field.fill("half typed")
    said = type_answer(page, "2e30")
    other.locator(".sm-verdict", has_text=said).wait_for()
    assert field.input_value() == "half typed"


def test_storage_that_is_refused_does_no_harm(view):
    """Nor does a page without the script that keeps answers."""
    refuse = "Object.defineProperty(window, 'localStorage', {get() {throw Error()}})"
    page = view(prepare=lambda page: page.add_init_script(refuse))
    assert type_answer(page, "1e30") == judge_number(QUESTION, "1e30")["message"]
    page.locator("[name=chip]").select_option("H100")
    wait_for(page, chip="H100")
    page.route("**/storage.js*", lambda route: route.abort())
    page.reload()
    assert type_answer(page, "1e30") == judge_number(QUESTION, "1e30")["message"]


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
