"""A Python prompt in every page, and the cells of chapters that it can take.

Most tests share one page, in which names last, as a reader's do.
"""

import json
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from test_pages import complaints
from written import CHAPTERS, visit

from shardmath.base.tables import compare
from shardmath.draw.live import prompt
from shardmath.hardware import chips
from shardmath_site import runtime, trying

ROOT = Path(__file__).parents[2]
CHAPTER = CHAPTERS[1].removesuffix(".html")
START = 60_000  # ms that Python may take on a busy machine
KEPT = json.loads(trying.KEPT.read_text("utf-8"))


def cells_of(document: str) -> list[dict]:
    path = ROOT / f"{document}.ipynb"
    return trying.code_cells(json.loads(path.read_text("utf-8")))


# The namespace ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session() -> prompt.Session:
    return prompt.Session()


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("x = 3\nx + 1", {"text": "4"}),
        ("x;", {}),
        ("print(x)", {"printed": "3\n"}),
        ("chips.H100", {"text": str(chips.H100)}),
        ("compare(chips.ALL[:2], ['name'])", None),
        ("len(_._repr_html_()) > 100", {"text": "True"}),
    ],
)
def test_an_input_gives_what_a_notebook_shows(session, source, answer):
    if answer is None:
        answer = {"html": compare(chips.ALL[:2], ["name"])._repr_html_()}
    assert session.run(source) == {"printed": "", **answer}


def test_an_error_has_the_reader_s_own_lines(session):
    session.run("def half(x):\n    return chips.find(x)")
    answer = session.run("print('before')\nhalf('H1000')")
    assert answer["printed"] == "before\n"
    assert answer["error"].startswith("ValueError: ")
    places = r"input \d+, line 2\n    half\('H1000'\)\ninput \d+, line 2, in half\n"
    assert re.match(places, answer["trace"])
    assert "chips.py" not in answer["trace"]
    deep = session.run("def f():\n    f()\nf()")
    assert deep["error"].startswith("RecursionError")
    assert len(deep["trace"].splitlines()) < 40
    assert session.run("raise SystemExit")["error"] == "SystemExit"
    assert "SyntaxError" in session.run("1 +")["error"]


ABSENT = ["import torch", "import torch.nn as nn", "from torch import nn"]


@pytest.mark.parametrize("source", ABSENT)
def test_what_is_not_here_is_said_in_a_sentence(session, source):
    said = "torch does not run in the page: open the notebook."
    assert session.run(source)["error"] == said


def test_imports_of_a_chapter_that_are_not_here_stand_for_themselves():
    session = prompt.Session()
    setup = (
        "import torch as t\nfrom torch import nn, chips\nL = t.nn\nfrom math import pi"
    )
    session.prepare({"setup": setup})
    said = "torch does not run in the page: open the notebook."
    for source in ("t.ones(3)", "nn.Linear", "L()"):
        assert session.run(source)["error"] == said
    assert session.run("nn") == {"printed": "", "text": said}
    assert session.absent_in("def f(x):\n    return nn.Linear(x) + pi") == {"nn"}
    assert session.run("round(pi)")["text"] == "3"
    with pytest.raises(ImportError, match="nonsense"):
        session.prepare({"wrong": "from math import nonsense"})


def test_rooms_that_a_page_lacks_are_named_with_what_they_need():
    """Each cannot be imported without installed packages; all others can."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import shardmath.{}"
    packed = runtime.pages().packs["prompt"]
    for room, needs in prompt.WITHOUT.items():
        assert f"shardmath.{room}" not in packed
        if needs == "grading":
            continue
        command = [sys.executable, "-I", "-S", "-c", code.format(room), ROOT / "book"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert f"No module named '{needs}'" in done.stderr
    missing = ModuleNotFoundError("no", name="shardmath.referee.programs.block")
    assert prompt._missing(missing) == "jax"
    missing = ImportError("cannot import name 'plots' from 'shardmath.draw' (…)")
    assert prompt._missing(missing) == "matplotlib"


def test_names_are_completed(session):
    assert session.complete("1 + chips.TPU_V5") == {
        "from": 10,
        "options": ["TPU_V5E", "TPU_V5P"],
    }
    assert session.complete("rooflin")["options"] == ["roofline"]
    for nothing in ("", "3.", '"a".', "f(x)."):
        assert session.complete(nothing) is None


def test_what_stands_ready_is_imported_when_it_is_named():
    session = prompt.Session()
    assert set(session.names) & session.ready.keys() == set()
    session.run("chips = 3")
    assert session.run("chips, roofline.__name__")["text"] == (
        "(3, 'shardmath.hardware.roofline')"
    )
    for name in session.ready:
        assert "error" not in session.run(name), name


def test_only_the_book_s_objects_write_html(session):
    session.run("class E:\n    def _repr_html_(self):\n        return '<b>hello</b>'")
    assert "html" not in session.run("E()")
    assert session.run("E.__module__")["text"] == "'__main__'"


def test_a_long_output_is_cut(session):
    answer = session.run("print('x' * 50_000)\n'y' * 50_000")
    assert max(map(len, answer.values())) < 1.1 * prompt.MOST
    assert answer["printed"].endswith("30,001 letters more")


# Cells that can be tried --------------------------------------------------------------

SAMPLE = [page.removesuffix(".html") for page in (CHAPTERS[3], CHAPTERS[7])]
RUN = """
import json, sys
sys.path[:0] = sys.argv[1:]
from offered import Session, stored
wrong = []
for name, cells in json.load(sys.stdin).items():
    session = Session()
    session.prepare({"setup": cells[0]["source"]})
    for cell in cells[1:]:
        answer = session.run(cell["source"])
        if session.absent_in(cell["source"]) or answer != stored(cell["outputs"]):
            wrong.append([name, cell["source"], answer])
print(json.dumps(wrong))
"""


def test_what_is_kept_is_of_the_notebooks_as_they_are():
    told = "the notebooks have changed: run `make tries`"
    assert [f"{name}.html" for name in KEPT] == CHAPTERS, told
    for name, kept in KEPT.items():
        cells = cells_of(name)
        assert kept["digest"] == trying.digest(cells), f"{name}: {told}"
        assert len(kept["cells"]) >= len(cells) / 10, name  # others need JAX


def test_text_that_is_added_moves_no_button():
    name = SAMPLE[0]
    cells = cells_of(name)
    moved = [cell | {"index": cell["index"] + 1} for cell in cells]
    before, after = (trying.offered(name, some) for some in (cells, moved))
    assert before
    assert {index + 1 for index in before} == after.keys()


def test_cells_that_are_offered_give_what_is_stored_without_any_package():
    """Python alone, on two chapters; `make tries` has run all in the page's own."""
    given = {}
    for name in SAMPLE:
        kept = KEPT[name]
        first, *others = cells_of(name)
        offered = [cell for cell in others if cell["id"] in kept["cells"]]
        given[name] = [first, *offered]
    command = [sys.executable, "-I", "-S", "-c", RUN, ROOT / "book", runtime.HERE]
    done = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_what_a_cell_needs_is_found_by_names():
    spec = spec_from_file_location("offered", runtime.HERE / "offered.py")
    offered = module_from_spec(spec)
    spec.loader.exec_module(offered)
    sources = ["x = 1", "y = 2", "def f():\n    return x", "z = y", "print(f())"]
    cells = []
    for index, source in enumerate(sources):
        uses, makes = trying.names(source)
        cells.append({"index": index, "uses": uses, "makes": makes})
    assert offered.needed(cells[-1], cells[:-1]) == [0, 2]


# In the page --------------------------------------------------------------------------

ENTRY = """(n) => document.querySelectorAll(".sm-prompt-entry").length > n &&
    document.querySelector(".sm-prompt-log").ariaBusy === "false" """


def typed(page, text: str, enter: str = "Enter"):
    """Type, and give the entry of the log with the results."""
    before = page.locator(".sm-prompt-entry").count()
    page.locator(".sm-prompt-input :is(.cm-content, textarea)").focus()
    page.keyboard.insert_text(text)
    page.keyboard.press(enter)
    page.wait_for_function(ENTRY, arg=before)
    return page.locator(".sm-prompt-entry").nth(before)


def shown(page) -> str:
    return page.locator(".sm-prompt .cm-content").inner_text()


def opened(page, url: str, *, by: str = "Control+Backquote"):
    visit(page, url)
    page.keyboard.press(by)
    page.locator(".sm-prompt .cm-editor").wait_for(timeout=START)


@pytest.fixture(scope="module")
def tried(browser, site_url):
    """A chapter's page whose prompt was opened by its key, and what it asked for."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(START)
    page.asked, page.trouble = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("console", lambda m: m.type == "error" and page.trouble.append(m.text))
    page.on("pageerror", lambda error: page.trouble.append(str(error)))
    visit(page, f"{site_url}{CHAPTER}.html")
    page.before = list(page.asked)
    page.keyboard.press("Control+Backquote")
    page.locator(".sm-prompt .cm-editor").wait_for()
    yield page
    assert page.trouble == []
    context.close()


def test_nothing_comes_before_it_is_opened(tried, site_url):
    after = set(tried.asked) - set(tried.before)
    names = {url.rpartition("/")[2].partition("-")[0] for url in after}
    assert names >= {"prompt.js", "prompt.css", "prompt.pack", "editor.js", "cells"}
    assert not any(re.search("prompt|editor|cells-", url) for url in tried.before)
    assert all(url.startswith((site_url, "blob:", "data:")) for url in after)
    assert tried.evaluate("scrollY") == 0


def test_the_page_shows_what_python_says(tried):
    assert str(chips.H100) in typed(tried, "chips.H100").inner_text()
    table = typed(tried, 'compare(chips.ALL[:2], ["name", "hbm_bytes"])')
    wanted = compare(chips.ALL[:2], ["name", "hbm_bytes"])
    assert table.locator("tbody tr").count() == len(wanted.rows)
    picture = typed(tried, 'bars("Two", {"a": 3e12, "b": 5e12}, "FLOPs/s")')
    assert picture.locator(".sm-drawing svg").count() == 1
    error = typed(tried, "1/0")
    assert (
        error.locator("summary").inner_text() == "ZeroDivisionError: division by zero"
    )
    error.locator("summary").click()
    assert "line 1" in error.locator("details pre").inner_text()
    said = typed(tried, "import jax").inner_text()
    assert "jax does not run in the page: open the notebook." in said


def test_html_from_python_does_not_act(tried):
    """Not even when a reader makes the book's own object write it."""
    typed(tried, "t = compare(chips.ALL[:1], ['name'])")
    html = '<p>made<script>ran = 1</script><a href="javascript:ran = 1">a link</a></p>'
    typed(
        tried, f"old, type(t)._repr_html_ = type(t)._repr_html_, lambda self: {html!r}"
    )
    entry = typed(tried, "t")
    assert "made" in entry.inner_text()
    assert entry.locator("script, [href]").count() == 0
    typed(tried, "type(t)._repr_html_ = old")
    assert tried.evaluate("window.ran") is None


def test_the_keyboard_does_it_all(tried):
    page = tried
    page.locator(".sm-prompt .cm-content").focus()
    page.keyboard.type("chips.TPU_V5")
    page.keyboard.press("Tab")
    page.locator(".cm-tooltip-autocomplete li").first.wait_for()
    page.wait_for_timeout(200)  # a list that has only come takes no Enter
    page.keyboard.press("Enter")
    assert shown(page) == "chips.TPU_V5E"
    assert "TPU v5e" in typed(page, ".name").inner_text()
    # A block is open: Enter adds a line to it, and runs when that is left empty.
    page.keyboard.insert_text("def twice(x):")
    page.keyboard.press("Enter")
    page.keyboard.insert_text("return 2 * x")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.wait_for_function(
        "() => !document.querySelector('.cm-content').innerText.trim()"
    )
    assert "14" in typed(page, "twice(7)").inner_text()
    page.keyboard.press("ArrowUp")
    assert shown(page) == "twice(7)"
    page.keyboard.press("ArrowUp")
    assert shown(page) == "def twice(x):\n    return 2 * x"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert shown(page).strip() == ""
    page.keyboard.press("Escape")
    assert page.locator(".sm-prompt").is_hidden()
    assert page.evaluate("document.activeElement.className").count("sm-prompt-open")
    page.keyboard.press("Enter")
    page.locator(".sm-prompt .cm-focused").wait_for()
    page.keyboard.press("Control+Backquote")
    page.locator(".sm-prompt").wait_for(state="hidden")


def test_a_cell_is_taken_there_with_what_it_needs(tried):
    """The last picture and the last table: what the page shows, the prompt does."""
    page = tried
    page.evaluate(
        """() => { for (const e of document.querySelectorAll(".sm-behind"))
            e.removeAttribute("hidden");
        for (const e of document.querySelectorAll("details")) e.open = true; }"""
    )
    needs = trying.offered(CHAPTER, cells_of(CHAPTER))
    for inner in (".sm-drawing", "table"):
        cell = page.locator(f".cell:has(.sm-try):has({inner})").last
        button = cell.locator(".sm-try")
        assert needs[int(button.get_attribute("data-cell"))]
        button.click()
        source = cell.locator(".cell_input pre").inner_text().strip()
        page.wait_for_function(
            "(s) => document.querySelector('.sm-prompt .cm-content').innerText === s",
            arg=source,
        )
        entry = typed(page, "", "Control+Enter")
        wanted = cell.locator(f".cell_output {inner}").text_content()
        # The page keeps a number and its unit on one line.
        assert entry.locator(inner).text_content() == wanted.replace("\xa0", " ")


def test_axe_finds_nothing_in_the_open_drawer(tried):
    for width, scheme in ((1280, "light"), (390, "dark")):
        tried.set_viewport_size({"width": width, "height": 844})
        tried.emulate_media(color_scheme=scheme)
        assert complaints(tried, within=["section.sm-prompt", "button.sm-try"]) == ""
        assert tried.evaluate("document.documentElement.scrollWidth") == width
    tried.set_viewport_size({"width": 1280, "height": 900})


def test_keys_are_told_where_there_are_some(tried, browser, site_url):
    """Not on a phone, which has none of them."""
    assert tried.locator(".sm-prompt-keys").is_visible()
    context = browser.new_context(has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{site_url}book/notation.html")
    page.locator(".sm-prompt-open").click()
    page.get_by_text("Names last as long as this page").wait_for()
    assert not page.locator(".sm-prompt-keys").is_visible()
    context.close()


def test_what_does_not_end_is_stopped_and_inputs_are_kept(browser, site_url):
    """Over pages; and where what the browser kept is damaged, it begins anew."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(START)
    page.clock.install()
    page.goto(f"{site_url}book/notation.html")
    page.locator(".sm-prompt-open").click()
    page.locator(".sm-prompt .cm-editor").wait_for()
    typed(page, "mine = 41")
    page.keyboard.insert_text("while True: pass")
    page.keyboard.press("Control+Enter")
    page.locator(".sm-prompt-status", has_text="Running …").wait_for()
    page.clock.fast_forward(11_000)
    page.get_by_text("Stopped after 10 s. Names from before are gone.").wait_for()
    assert "NameError" in typed(page, "mine + 1").inner_text()
    assert str(chips.H100) in typed(page, "chips.H100").inner_text()
    page.goto(f"{site_url}index.html")
    page.locator(".sm-prompt-open").click()
    page.locator(".sm-prompt-input textarea").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.locator(".sm-prompt-input textarea").input_value() == "mine + 1"
    page.evaluate("localStorage.setItem('shardmath.inputs.v1', '{broken')")
    page.reload()
    page.locator(".sm-prompt-open").click()
    assert "4" in typed(page, "2 + 2").locator("pre").last.inner_text()
    assert page.evaluate("localStorage['shardmath.inputs.v1']") == '["2 + 2"]'
    context.close()


def test_from_a_folder_nothing_offers_what_cannot_run(page, site):
    visit(page, (site / f"{CHAPTER}.html").as_uri())
    assert page.locator(".sm-prompt-open, .sm-try").count() == 0
