"""The site in the other engine: a Firefox as distributions ship it, where there is one.

Chromium has all the questions; here is what no reader in Firefox may lose.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from firefox import Firefox, find_firefox
from live_book import QUESTION, SAME
from test_pages import HIDDEN, OVERFLOW
from written import PAGES

from shardmath.draw import figures
from shardmath.draw.figures import Choice
from shardmath.draw.live import answer
from shardmath.exercises import answers, judge_number

FIGURE = "chapters/01_rooflines.html", "roofline"
LOOK = f"""(shown) => ({{
    title: document.querySelector("h1").innerText,
    letters: document.querySelector("article").innerText.length,
    hidden: ({HIDDEN})(shown),
    outside: {OVERFLOW} }})"""
CONTROLS = """() => Object.fromEntries(
    [...document.querySelectorAll(".sm-live fieldset:enabled [name]")]
        .map((control) => [control.name, control.value]))"""
FOCUS = """(slider) => {
    const found = document.querySelector(slider);
    found.closest("details").open = true; // it is one of the further controls
    found.focus(); }"""


@pytest.fixture(scope="module")
def firefox(site, site_url):
    """One tab for all tests; no guess is asked for, so that all is shown."""
    path = find_firefox()
    if path is None:
        pytest.skip("No Firefox is installed: the site was not opened in one.")
    # Beside the site: a Firefox from a snap does not see the system's /tmp.
    beside = {"dir": site.parent, "ignore_cleanup_errors": True}
    with TemporaryDirectory(prefix="firefox-", **beside) as profile:
        firefox = Firefox(path, Path(profile), site_url)
        firefox.open(site_url)
        firefox.evaluate("() => localStorage.setItem('shardmath.guesses.asks', 'no')")
        yield firefox
        firefox.close()


@pytest.fixture
def tab(firefox):
    """That tab, which must not have complained since the last test."""
    yield firefox
    if told := list(dict.fromkeys(firefox.complaints)):
        firefox.complaints.clear()
        pytest.fail("\n".join(told), pytrace=False)


@pytest.mark.parametrize("name", PAGES)
def test_firefox_shows_every_page(tab, site_url, name):
    """Title, text, formulas and figures, nothing wider than the screen, no error."""
    tab.open(site_url + name)
    seen = tab.evaluate(LOOK, "article :is(.katex-html, img, table, figure)")
    assert seen["title"]
    assert seen["letters"] > 200
    assert seen["hidden"] == []
    assert seen["outside"] <= 0


def test_a_live_figure_answers_in_firefox(tab, site_url):
    """Its worker runs Python, which draws what Python draws here."""
    page, name = FIGURE
    tab.open(site_url + page)
    slider = ".sm-live fieldset:enabled input[name=D]"
    tab.wait_for("(slider) => document.querySelector(slider)", slider)
    tab.evaluate(FOCUS, slider)
    tab.type("ArrowRight")
    set_to = tab.evaluate(CONTROLS)
    settings = {
        control.name: set_to[control.name]
        if isinstance(control, Choice)
        else control.stops[int(set_to[control.name])]
        for control in figures.find(name).controls
    }
    wanted = answer(name, settings)
    tab.wait_for(SAME, [wanted["line"], wanted["table"], wanted["svg"]])


def test_an_answer_gets_its_verdict_in_firefox(tab, site_url):
    """A slip is named, and what is right is right, in the heading too."""
    tab.open(f"{site_url}exercises/01_rooflines.html")
    block = f".sm-check[data-question='{QUESTION}']"
    field = f"{block} form:not([hidden]) input"
    tab.wait_for("(field) => document.querySelector(field)", field)
    for text in ("1e30", repr(answers.find(QUESTION).expected())):
        tab.evaluate("(field) => document.querySelector(field).select()", field)
        tab.type(text, "Enter")
        tab.wait_for(
            """(block, said) => document.querySelector(`${block} .sm-verdict`)
                .innerText.includes(said)""",
            block,
            judge_number(QUESTION, text)["message"],
        )
    done = tab.evaluate("() => document.querySelector('h2:has(.sm-done)').innerText")
    assert done.startswith(QUESTION)


def test_a_function_is_written_and_judged_in_firefox(tab, site_url):
    """In the editor, which has its styles under the policy of the page."""
    tab.open(f"{site_url}exercises/05_collectives.html")
    block = "[data-question='05.10']"
    area, editor = f"{block} textarea", f"{block} .cm-content"
    tab.wait_for("(area) => document.querySelector(area)", area)
    tab.evaluate(
        """(area) => document.querySelector(area).dispatchEvent(
            new Event("pointerover", { bubbles: true }))""",
        area,
    )
    tab.wait_for("(editor) => document.querySelector(editor)", editor)
    tab.evaluate(
        """(editor) => {
            document.querySelector(editor).focus();
            getSelection().selectAllChildren(document.activeElement);
            getSelection().collapseToEnd(); }""",
        editor,
    )
    assert tab.evaluate(
        "(editor) => getComputedStyle(document.querySelector(editor)).whiteSpace",
        editor,
    ).startswith("pre")
    tab.type("def hops(n):", "Enter", "return 2 * n / 0")
    tab.evaluate("(at) => document.querySelector(`${at} button`).click()", block)
    tab.wait_for(
        """(block, said) => document.querySelector(`${block} .sm-verdict`)
            .innerText.includes(said)""",
        block,
        "(line 3: return 2 * n / 0)",  # the stub is the first
    )
