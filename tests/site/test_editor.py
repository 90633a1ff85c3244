"""The editor in the page: its size, its keys, the site's policy."""

import gzip
import json
from pathlib import Path

import pytest
from live_book import START
from written import CHAPTERS

MOST = 150_000  # bytes on the wire, all that it brings
EXERCISES = CHAPTERS[0].replace("chapters", "exercises")
MOUNT = """async ([url, given]) => {
    const { mountEditor } = await import(url);
    document.querySelector("article").replaceChildren();
    window.ran = [];
    const options = { label: "Your function", onRun: (text) => ran.push(text),
        complete: async (text, at) => ({ from: at - 2, options: [
            { label: "math.log" }, { label: "math.exp" }] }), ...given };
    window.editor = mountEditor(document.querySelector("article"), options);
    const after = document.createElement("button");
    after.id = "after";
    document.querySelector("article").append(after);
    editor.focus(); }"""
REPORTS = """window.reports = [];
addEventListener("securitypolicyviolation", ({ effectiveDirective: refused }) =>
    reports.push(refused));"""


@pytest.fixture(scope="module")
def scripts(site) -> Path:
    """The folder with the scripts of the pages."""
    return next(site.glob("_static/live/*/host.js")).parent


@pytest.fixture
def mount(page, site_url, site, scripts):
    """Put an editor, and a button behind it, into a page of the book."""
    page.set_default_timeout(START)
    page.add_init_script(REPORTS)
    page.goto(site_url + EXERCISES)
    url = site_url + (scripts / "editor.js").relative_to(site).as_posix()

    def mounted(**given):
        page.evaluate(MOUNT, [url, given])
        return page.locator(".cm-content")

    yield mounted
    assert page.evaluate("reports") == []


def test_the_editor_is_small_and_says_whose_it_is(scripts):
    """One file that asks for no other; the texts of its licences lie beside it."""
    code = (scripts / "editor.js").read_text("utf-8")
    assert len(gzip.compress(code.encode(), 6)) <= MOST
    assert not any(word in code for word in ("import(", "from'", 'from"'))
    notice = (scripts / "editor.NOTICE.txt").read_text("utf-8")
    assert notice.count("Permission is hereby granted") == notice.count("(MIT)") > 5
    assert "@codemirror/view 6." in notice


def test_it_is_worked_with_the_keyboard(page, mount):
    """Lines are indented as Python has them; no key is a trap."""
    field = mount(doc="def f(x):\n    return x\n")
    assert page.evaluate("document.activeElement.className").startswith("cm-content")
    page.keyboard.press("Control+End")
    page.keyboard.type("if True:\nreturn")
    page.keyboard.press("Control+Enter")
    assert page.evaluate("ran") == ["def f(x):\n    return x\nif True:\n    return"]
    for _ in range(4):
        page.keyboard.press("Control+z")
    assert page.evaluate("editor.text()") == "def f(x):\n    return x\n"

    page.evaluate("editor.set('ma')")
    page.keyboard.press("Tab")
    page.locator(".cm-tooltip li[aria-selected]", has_text="math.exp").wait_for()
    page.wait_for_timeout(100)  # a key that comes at once is not meant for the list
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.evaluate("editor.text()") == "math.log"

    page.evaluate("editor.set('')")
    page.keyboard.press("Tab")
    assert page.evaluate("editor.text()") == "    "
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "after"
    assert "Escape, then Tab" in field.get_attribute("aria-label")
    assert field.get_attribute("role") == "textbox"


def test_it_has_its_styles_under_the_policy(page, mount):
    """Colours of the page, letters that no phone zooms into, no sideways page."""
    page.set_viewport_size({"width": 390, "height": 800})
    field = mount(doc="def f(x): return " + " + ".join(["x"] * 90))
    style = field.evaluate(
        """(e) => { const of = (e) => getComputedStyle(e);
            return { size: of(e).fontSize, space: of(e).whiteSpace,
                word: of(e.querySelector("span")).color, text: of(e).color }; }"""
    )
    assert (style["size"], style["space"]) == ("16px", "pre")
    assert style["word"] != style["text"]
    wide = "document.documentElement.scrollWidth > innerWidth"
    assert not page.evaluate(wide)


def test_a_prompt_runs_by_enter(page, mount):
    mount(singleLine=True, doc="1 +")
    page.keyboard.press("Control+End")
    page.keyboard.type(" 1")
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Enter")
    assert page.evaluate("ran") == ["1 + 1"]
    assert json.loads(page.evaluate("JSON.stringify(editor.text())")) == "1 + 1\n"
    assert page.locator(".cm-lineNumbers").count() == 0
