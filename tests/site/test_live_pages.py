"""Live figures and answer fields in a browser: they answer like Python, and fail well.

A small book of our own is built for this, so that its server can be made to misbehave.
"""

import functools
import http.server
import json
import math
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from shardmath import answers, figures
from shardmath.drawing.labels import text_width
from shardmath.figures import Choice
from shardmath.grading import CHECK_MIME, judge_number
from shardmath.live import Still, answer
from shardmath_site import runtime

DEFAULTS = figures.find("roofline").settings()
NUMBERS = [q for q, record in answers.questions().items() if hasattr(record, "unit")]
QUESTION = NUMBERS[0]
CONF = """
from shardmath_site.render import setup_live as setup
project, extensions, html_theme = "small", ["myst_nb"], "basic"
nb_execution_mode = "off"
"""
START = 60_000  # ms that Python may take on a busy machine


def build(folder: Path, builder: str = "html") -> Path:
    """A one-page book with a figure and a question."""
    bundles = [Still("roofline", DEFAULTS).bundle(), {"text/plain": "todo"}]
    bundles[1][CHECK_MIME] = {"question": QUESTION}
    cells = [new_markdown_cell("# Small\n\nText before.")]
    for bundle in bundles:
        outputs = [new_output("execute_result", bundle, execution_count=1)]
        cells.append(new_code_cell("show", outputs=outputs, execution_count=1))
    source, out = folder / "source", folder / builder
    source.mkdir(exist_ok=True)
    python = {"language_info": {"name": "python"}}
    notebook = new_notebook(cells=cells, metadata=python)
    for n, cell in enumerate(cells):
        cell["id"] = f"cell-{n}"
    (source / "index.ipynb").write_text(json.dumps(notebook), "utf-8")
    (source / "conf.py").write_text(CONF, "utf-8")
    command = [sys.executable, "-m", "sphinx", "-qW", "-b", builder, source, out]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("small"))


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder; `faults` maps an end of a path to what goes wrong there."""

    daemon_threads = True

    def handle_error(self, *args):
        """Browsers hang up when a page is closed."""

    def __init__(self, folder: Path):
        handler = functools.partial(Handler, directory=folder)
        super().__init__(("127.0.0.1", 0), handler)
        self.faults: dict[str, object] = {}
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}/index.html"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.SimpleHTTPRequestHandler):
    """A fault is a status, a number of seconds (a float), or a dict of headers."""

    def do_GET(self):
        self.server.asked.append(self.path)
        fault = self.fault()
        if isinstance(fault, int):
            return self.send_error(fault)
        if isinstance(fault, float):
            time.sleep(fault)
        return super().do_GET()

    def fault(self):
        faults = self.server.faults.items()
        return next((f for end, f in faults if self.path.endswith(end)), None)

    def end_headers(self):
        fault = self.fault()
        for name, value in fault.items() if isinstance(fault, dict) else ():
            self.send_header(name, value)
        super().end_headers()

    def guess_type(self, path):
        fault = self.fault()
        if isinstance(fault, dict) and "Content-Type" in fault:
            return "application/octet-stream"
        return super().guess_type(path)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def awake(browser, small):
    """One page whose Python runs already, for the tests that need no fault."""
    with Server(small) as server:
        page = browser.new_page()
        page.set_default_timeout(START)
        page.goto(server.url)
        slider(page).press("ArrowRight")
        wait_for(page, B=256)
        yield page
        page.close()
        server.shutdown()


@pytest.fixture
def ready(awake):
    """That page, all controls at their defaults."""
    for control in figures.find("roofline").controls:
        field, value = awake.locator(f"[name={control.name}]"), DEFAULTS[control.name]
        if isinstance(control, Choice):
            field.select_option(value)
        else:
            field.fill(str(control.stops.index(value)))
    wait_for(awake)
    return awake


@pytest.fixture
def server(small):
    with Server(small) as server:
        yield server
        server.shutdown()


@pytest.fixture
def view(browser, server):
    """Open the small book; keyword arguments are those of a browser context."""
    contexts = []

    def open_page(url=None, prepare=None, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(START)
        if prepare:
            prepare(page)
        page.goto(url or server.url)
        return page

    yield open_page
    for context in contexts:
        context.close()


def slider(page, name="B"):
    """The slider once it is switched on: a key pressed before that is lost."""
    return page.locator(f".sm-live fieldset:enabled input[name={name}]")


def shown(page) -> str:
    return page.locator(".sm-readout").inner_html()


SAME = """([table, svg]) => {
    const is = (name, html) => {
        const wanted = document.createElement("div");
        wanted.innerHTML = html;
        return document.querySelector(name).innerHTML === wanted.innerHTML; };
    return is(".sm-readout", table) && is(".sm-picture", svg); }"""


def expected(**params) -> list[str]:
    """What Python here says for `params`, for `SAME`."""
    wanted = answer("roofline", DEFAULTS | params)
    return [wanted["table"], wanted["svg"]]


def wait_for(page, **params):
    """Until the page shows exactly what Python here says for `params`."""
    page.wait_for_function(SAME, arg=expected(**params))


def message(page) -> str:
    return page.locator(".sm-message").inner_text()


def expect_failure(page, words: str):
    """The message names the reason; picture and read-out are those of the build."""
    page.locator(".sm-message", has_text="could not start").wait_for()
    assert words in message(page)
    assert "keeps its last setting" in message(page)
    assert page.evaluate(SAME, expected())
    assert page.locator(".sm-live").get_attribute("aria-busy") is None


# It answers ---------------------------------------------------------------------------


def test_the_keyboard_moves_the_figure(ready):
    page = ready
    slider(page).focus()
    slider(page).press("ArrowRight")
    wait_for(page, B=256)
    slider(page).press("End")
    wait_for(page, B=65536)
    assert slider(page).get_attribute("aria-valuetext") == "65,536 tokens"
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
    wait_for(page, B=65536)
    page.wait_for_timeout(300)
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
                call("shardmath.live", "answer", { name: "roofline", params });
            return Promise.all(drawn.map(ask));
        }""",
        drawn,
    )
    for params, their in zip(drawn, theirs, strict=True):
        our = answer("roofline", params)
        assert (their["svg"], their["table"]) == (our["svg"], our["table"])
        for a, b in zip(their["data"]["chips"], our["data"]["chips"], strict=True):
            assert a.keys() == b.keys()
            for key, value in b.items():
                same = a[key] == value or math.isclose(a[key], value, rel_tol=1e-12)
                assert same, (params, key)


def test_python_is_asked_for_only_when_a_reader_reaches_for_a_control(view, server):
    page = view()
    page.wait_for_selector(".sm-controls:not(:disabled)")
    page.wait_for_timeout(200)
    assert not [path for path in server.asked if "python-" in path]
    with page.expect_response("**/python_stdlib.zip"):
        slider(page).hover()


def test_nothing_moves_when_the_controls_appear(view):
    page = view()
    page.wait_for_selector(".sm-controls:not(:disabled)")
    page.wait_for_timeout(200)
    shift = page.evaluate(
        """() => new Promise((resolve) => new PerformanceObserver((list) => resolve(
            list.getEntries().reduce((sum, entry) => sum + entry.value, 0)
        )).observe({ type: "layout-shift", buffered: true })
            || setTimeout(() => resolve(0), 200))"""
    )
    assert shift < 0.01


def test_the_result_is_read_out_once_the_hand_rests(ready):
    page = ready
    page.wait_for_timeout(1000)
    page.evaluate(
        """() => { window.said = [];
            new MutationObserver(() => said.push(
                document.querySelector(".sm-said").textContent))
            .observe(document.querySelector(".sm-said"), {childList: true}); }"""
    )
    for _ in range(4):
        slider(page).press("ArrowRight")
    page.wait_for_function("window.said.length > 0")
    page.wait_for_timeout(1000)
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
            assert (right, bottom) <= (481, 321), text
            assert right - left <= text_width(text) + 1, text


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
    slider(page).press("ArrowRight")
    page.wait_for_function(
        "document.querySelector('.sm-message').textContent.includes('Starting Python')"
    )
    assert page.locator(".sm-live").get_attribute("aria-busy") == "true"
    assert page.locator(".sm-picture svg").is_visible()
    wait_for(page, B=256)
    assert message(page) == ""


def test_wasm_sent_with_the_wrong_type_still_runs(view, server):
    server.faults["pyodide.asm.wasm"] = {"Content-Type": "application/octet-stream"}
    page = view()
    slider(page).press("ArrowRight")
    wait_for(page, B=256)


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("pyodide.asm.wasm", "pyodide.asm.wasm: HTTP 404"),
        ("python_stdlib.zip", "python_stdlib.zip: HTTP 404"),
        ("shardmath.zip", "shardmath.zip: HTTP 404"),
        ("pyodide.mjs", "pyodide.mjs"),
        ("worker.js", "refused or is missing"),
    ],
)
def test_a_missing_file_is_named(view, server, missing, words):
    server.faults[missing] = 404
    page = view()
    slider(page).press("ArrowRight")
    expect_failure(page, words)


def test_the_next_touch_tries_again(view, server):
    server.faults["shardmath.zip"] = 404
    page = view()
    slider(page).press("ArrowRight")
    expect_failure(page, "shardmath.zip")
    server.faults.clear()
    slider(page).press("ArrowRight")
    wait_for(page, B=512)
    assert message(page) == ""


@pytest.mark.parametrize("policy", ["script-src 'self'", "worker-src 'none'"])
def test_a_page_that_refuses_wasm_or_workers_says_so(view, server, policy):
    server.faults[""] = {"Content-Security-Policy": policy}
    page = view()
    slider(page).press("ArrowRight")
    expect_failure(page, "could not start in this browser")


def test_a_start_that_never_ends_is_given_up(view, server):
    server.faults["pyodide.asm.wasm"] = 20.0
    page = view(prepare=lambda page: page.clock.install())
    with page.expect_request("**/pyodide.mjs"):
        slider(page).press("ArrowRight")
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


def test_an_answer_is_kept_for_the_next_visit_with_its_attempts(view):
    page = view()
    type_answer(page, "1e30")
    page.reload()
    assert page.locator(".sm-check input").input_value() == "1e30"
    hint = judge_number(QUESTION, "2e30", 1)["hint"]
    assert hint
    assert type_answer(page, "2e30").endswith(hint)


@pytest.mark.parametrize(
    "storage",
    ["localStorage.setItem('shardmath.answers.v1', '{broken')", "REFUSED"],
)
def test_a_storage_that_is_damaged_or_refused_does_no_harm(view, storage):
    refuse = "Object.defineProperty(window, 'localStorage', {get() {throw Error()}})"
    script = storage.replace("REFUSED", refuse)
    page = view(prepare=lambda page: page.add_init_script(script))
    assert type_answer(page, "1e30") == judge_number(QUESTION, "1e30")["message"]


# The build ----------------------------------------------------------------------------


def test_other_builders_get_the_text(tmp_path):
    text = (build(tmp_path, "text") / "index.txt").read_text("utf-8")
    assert "TPU v5e: 170 µs" in text


def test_a_changed_package_changes_every_page_that_is_built_again(tmp_path):
    """The folder's name is a digest; a page must never name one that is gone."""
    html = build(tmp_path)
    page = (html / "index.html").read_text("utf-8")
    name = folder_of(page)
    # What an older build would have left: another digest in its page and its folder.
    old = html / "_static/live/0123456789ab"
    (html / "_static/live" / name).rename(old)
    (html / "index.html").write_text(page.replace(name, old.name), "utf-8")
    info = html / ".buildinfo"
    info.write_text(re.sub(r"config: \w+", "config: 0", info.read_text()))
    again = folder_of((build(tmp_path) / "index.html").read_text("utf-8"))
    assert again != old.name
    assert not old.exists()
    assert (html / "_static/live" / again / "host.js").exists()


def folder_of(page: str) -> str:
    return re.search(r"_static/live/(\w+)/host\.js", page)[1]


def test_the_page_gets_what_it_can_call_and_no_more():
    files = runtime.sources().keys()
    modules = {"live/__init__.py", "grading/__init__.py", "answers/ch01.py"}
    assert {f"shardmath/{name}" for name in {*modules, "chips.toml"}} <= files
    assert not {"shardmath/plots.py", "shardmath/live/widget.py"} & files


def test_packing_is_reproducible(monkeypatch, tmp_path):
    """Equal bytes from a second run: readers' browsers keep what did not change."""
    first = runtime.build()
    monkeypatch.setattr(runtime, "CACHE", tmp_path)
    second = runtime.build()
    assert (second.python, second.scripts) == (first.python, first.scripts)


def test_without_node_the_build_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(runtime, "CACHE", tmp_path)
    monkeypatch.setattr(runtime.shutil, "which", lambda *_, **__: None)
    with pytest.raises(runtime.MissingToolError, match="Node is needed"):
        runtime.build()
    monkeypatch.setattr(runtime, "PYODIDE", tmp_path / "nowhere")
    with pytest.raises(runtime.MissingToolError, match="npm ci"):
        runtime.build()


# The book -----------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_figure_of_the_first_chapter_answers(new_page, site_url, scheme):
    page = new_page(scheme=scheme)
    page.goto(f"{site_url}chapters/01_rooflines.html")
    before = shown(page)
    slider(page).first.press("ArrowRight")
    page.wait_for_function(
        "before => document.querySelector('.sm-readout').innerHTML !== before",
        arg=before,
        timeout=START,
    )
    colour = page.evaluate(
        "getComputedStyle(document.querySelector('.sm-picture polyline ~ polyline'))"
        ".stroke"
    )
    assert colour == {"light": "rgb(184, 74, 0)", "dark": "rgb(255, 143, 58)"}[scheme]
