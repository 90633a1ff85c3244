"""A guess before the result: what waits for it, what opens, what is remembered."""

import functools
import http.server
import json
import threading
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document
from nbformat.v4 import (
    new_code_cell,
    new_markdown_cell,
    new_notebook,
    new_output,
    writes,
)
from playwright.sync_api import expect
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import docutils_namespace
from written import AXE, ROOT

from shardmath.base.guess import guess
from shardmath_site import guesses

STORE = "shardmath.guesses.v1"
REFUSED = """{
    const { setItem } = Storage.prototype;
    Storage.prototype.setItem = function (key, text) {
        if (key.startsWith("shardmath.guesses")) throw new Error("full");
        setItem.call(this, key, text);
    }; }"""
PREDICT = "> **Predict.** How large?"
SIZES = {"a little above 240": False, "twice as large": True, "ten times": False}


def shown(output, source="guess(...)"):
    """A cell with its stored output: text that it printed, or an object."""
    if isinstance(output, str):
        out = new_output("stream", name="stdout", text=output)
    else:
        out = new_output("execute_result", data=output._repr_mimebundle_())
    return new_code_cell(source, outputs=[out], execution_count=1)


def page_of(*cells):
    """Cells of a notebook; a string is Markdown."""
    cells = [new_markdown_cell(c) if isinstance(c, str) else c for c in cells]
    return new_notebook(
        cells=cells,
        metadata={"language_info": {"name": "python", "pygments_lexer": "python"}},
    )


SPECIMEN = page_of(
    "# Specimen\n\nThe [bend](#the-bend) is far below.",
    f"## Choice\n\n{PREDICT}",
    shown("first result", "first = 1"),
    shown("second result", "second = 2"),
    shown(guess(SIZES), "plumbing(...)"),
    "Prose that reads it.",
    shown("✓ a check that tells"),
    "The next claim.",
    "> **Takeaway.** Always there.",
    f"## Number\n\n{PREDICT}",
    shown("a number came out"),
    "(the-bend)=\nThe bend.",
    shown(guess(454, "tokens")),
    shown("another matter"),
    f"## Time\n\n{PREDICT}",
    shown("a time came out"),
    shown(guess(4.36e-5, "s")),
    f"## Share\n\n{PREDICT}",
    shown(guess(0.4, "%")),
    "## What to remember\n\nThis.",
)


def build(folder, notebook):
    """The site of one notebook, in the book's style; gives its page."""
    source = folder / "source"
    source.mkdir()
    (source / "page.ipynb").write_text(writes(notebook), encoding="utf-8")
    extensions = ["notes", "pages", "guesses", "progress"]
    with docutils_namespace():
        Sphinx(
            source,
            None,
            folder / "html",
            folder / "doctrees",
            "html",
            status=None,
            warning=None,
            confoverrides={
                "extensions": [
                    "myst_nb",
                    "sphinx_book_theme",
                    *(f"shardmath_site.{name}" for name in extensions),
                ],
                "root_doc": "page",
                "language": "en",
                "nb_execution_mode": "off",
                "html_theme": "sphinx_book_theme",
                "html_title": "Specimen",
                "html_favicon": str(ROOT / "book/_static/mark.svg"),
                "html_static_path": [str(ROOT / "book/_static")],
                "html_css_files": ["shardmath.css"],
                "html_js_files": ["book.js"],
            },
        ).build()
    return folder / "html" / "page.html"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def specimen(tmp_path_factory):
    """Where the specimen is served."""
    html = build(tmp_path_factory.mktemp("guesses"), SPECIMEN)
    handler = functools.partial(_Quiet, directory=html.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/page.html", html
        server.shutdown()


@pytest.fixture
def opened(browser, specimen):
    """Open the specimen: ``opened("#the-bend", scripts=False)``; nothing may throw."""
    contexts, complaints = [], []

    def new(anchor="", before="", width=1280, scheme="light", **options):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda m: m.type == "error" and complaints.append(m.text))
        if before:
            page.add_init_script(before)
        page.goto(specimen[0] + anchor)
        return page

    yield new
    for context in contexts:
        context.close()
    assert complaints == []


def waits(page) -> list[bool]:
    """Of each guess, whether what it opens is out of sight."""
    behind = page.locator(".sm-behind > :first-child")
    return behind.evaluate_all("all => all.map((e) => !e.checkVisibility())")


def line(page, place) -> str:
    return page.locator(f"#guess-{place}-answer").inner_text()


def stored(page):
    return json.loads(page.evaluate(f"localStorage.getItem('{STORE}')"))


def axe(page) -> str:
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run(document.querySelector('article'))")
    return "\n".join(f"{v['id']}: {v['nodes'][0]['html']}" for v in found["violations"])


def test_the_result_waits_for_a_guess_and_both_are_remembered(opened):
    """A choice by a click, a number, a skip by key; after a reload; all forgotten."""
    page = opened()
    assert waits(page) == [True] * 4
    for told in ("Prose that reads it.", "✓ a check that tells"):
        seen = page.get_by_text(told).evaluate("e => e.checkVisibility()")
        assert not seen, told
    assert page.get_by_text("Always there.").is_visible()
    for other in ("The next claim.", "another matter"):
        assert page.get_by_text(other).is_visible(), other
    assert page.get_by_text("plumbing").count() == 0
    count = page.locator(".sm-guesses-count")
    expect(count).to_have_text("0 of 4 right, 4 to go.")

    page.get_by_role("button", name="ten times").click()
    assert waits(page) == [False, True, True, True]
    assert page.get_by_text("Prose that reads it.").is_visible()
    assert line(page, 1) == "✗ Not so. You said “ten times”. It is “twice as large”."
    assert page.locator("#guess-1-said").inner_text() == "✗ Not so."
    assert page.locator("#guess-1-behind").evaluate("e => e === document.activeElement")

    number = page.locator("#guess-2 input")
    number.fill("lots")
    number.press("Enter")
    expect(page.locator("#guess-2-said")).to_contain_text("“lots” cannot be read")
    assert number.get_attribute("aria-invalid") == "true"
    number.fill("2*240")
    number.press("Enter")
    assert line(page, 2) == "✓ Right. You said 2*240 tokens. It is 454 tokens."

    page.locator("#guess-3 input").focus()
    page.keyboard.press("Escape")
    assert line(page, 3) == "The answer: 43.6 µs."
    assert waits(page) == [False, False, False, True]
    expect(count).to_have_text("1 of 4 right, 1 skipped, 1 to go.")
    assert not axe(page)

    before = [line(page, place) for place in (1, 2, 3)]
    page.reload()
    assert waits(page) == [False, False, False, True]
    assert [line(page, place) for place in (1, 2, 3)] == before
    expect(count).to_have_text("1 of 4 right, 1 skipped, 1 to go.")
    back = page.locator(".sm-guesses li a").nth(1)
    assert back.get_attribute("href") == "#guess-2"

    page.get_by_role("button", name="Guess again").first.click()
    assert waits(page) == [True, False, False, True]
    page.get_by_role("button", name="Start over").click()
    assert waits(page) == [True] * 4
    assert stored(page) == {}
    expect(page.locator(".sm-guesses-note")).to_contain_text("forgotten")
    expect(page.locator(".sm-guesses")).to_be_in_viewport()


@pytest.mark.parametrize(
    ("place", "typed", "verdict"),
    [
        (2, "454", "Right"),
        (2, "about 0.5 k tokens", "Right"),
        (2, "1e3", "Not so"),
        (2, "908", "Near"),
        (2, "1,000 / 2", "Right"),
        (2, "2^9", "Right"),
        (2, "454 million", "Not so"),
        (2, "4,54", ""),
        (2, "454 bytes", ""),
        (2, "-454", ""),
        (2, "0", ""),
        (2, "", ""),
        (3, "40 µs", "Right"),
        (3, "0.07 ms", "Near"),
        (3, "4 x 10^-5", "Right"),
        (3, "40", "Not so"),
        (4, "40%", "Right"),
        (4, "25", "Near"),
    ],
)
def test_numbers_are_read_as_people_type_them(reader, place, typed, verdict):
    """Prefixes, units, products; what means nothing is no guess."""
    field = reader.locator(f"#guess-{place} input")
    field.fill(typed)
    field.press("Enter")
    said = reader.locator(f"#guess-{place}-said")
    if not verdict:
        assert waits(reader)[place - 1]
        assert said.inner_text().endswith("or skip.")
        return
    assert said.locator("strong").inner_text() == verdict
    reader.locator(f"#guess-{place}").get_by_role("button", name="Guess again").click()


@pytest.fixture(scope="module")
def reader(browser, specimen):
    """One page for all that is typed."""
    page = browser.new_page()
    page.goto(specimen[0])
    yield page
    page.close()


def test_without_scripts_all_is_open(opened):
    """The answers stand there, and no form that does nothing."""
    page = opened(java_script_enabled=False)
    assert waits(page) == [False] * 4
    assert line(page, 1) == "The answer: twice as large."
    assert not any(b.is_visible() for b in page.locator("article button").all())
    assert not page.locator(".sm-guesses").is_visible()


def test_on_paper_and_from_a_folder_all_is_open(opened, specimen):
    page = opened()
    assert waits(page) == [True] * 4
    page.emulate_media(media="print")
    assert waits(page) == [False] * 4
    assert not page.locator("#guess-1 form").is_visible()
    page.emulate_media(media="screen")
    page.goto(specimen[1].as_uri())
    assert waits(page) == [False] * 4
    assert not page.locator("#guess-1 form").is_visible()


def test_a_link_opens_what_it_leads_to_and_the_question_stands(opened):
    """From elsewhere and from the same page; nothing counts as guessed."""
    still = {"reduced_motion": "reduce"}  # no page slides away under the click
    for anchor in ("#the-bend", ""):
        page = opened(anchor, **still)
        if anchor:
            expect(page.get_by_text("The bend.")).to_be_in_viewport()
        page.get_by_role("link", name="bend", exact=True).click()
        expect(page.get_by_text("The bend.")).to_be_in_viewport()
        assert waits(page) == [True, False, True, True]
        assert page.locator("#guess-2 input").is_visible()
        assert page.evaluate(f"localStorage.getItem('{STORE}')") is None
    assert page.locator("#guess-1-behind").get_attribute("hidden") == "until-found"


def test_a_reader_who_wants_no_questions_is_asked_no_more(opened):
    page = opened()
    page.get_by_role("button", name="Do not ask again").first.click()
    assert waits(page) == [False] * 4
    page.reload()
    assert waits(page) == [False] * 4
    assert not page.locator("#guess-1 form").is_visible()
    page.get_by_label("Ask me to guess").check()
    assert waits(page) == [True] * 4


def test_a_damaged_store_is_set_aside_and_a_refused_one_is_told(opened):
    """Nothing is lost without a word, and guessing works all the same."""
    text = '{"a": 1'
    damage = (
        f"localStorage.getItem('{STORE}') ?? localStorage.setItem('{STORE}', '{text}')"
    )
    page = opened(before=damage)
    expect(page.locator(".sm-guesses-note")).to_contain_text("set aside")
    (aside,) = page.evaluate(
        f"Object.entries(localStorage).filter(([k]) => k.startsWith('{STORE}.damaged'))"
    )
    assert aside[1] == text

    page = opened(before=REFUSED)
    page.get_by_role("button", name="ten times").click()
    assert waits(page) == [False, True, True, True]
    expect(page.locator(".sm-guesses-note")).to_contain_text("the page forgets them")
    page.get_by_role("button", name="Start over").click()
    assert waits(page) == [True] * 4


SHOWS_HIDDEN = """() => {
    const rules = (list) =>
        [...list].flatMap((rule) => [rule, ...rules(rule.cssRules ?? [])]);
    return [...document.styleSheets].flatMap((sheet) => rules(sheet.cssRules))
        .filter((rule) => rule.selectorText?.includes("until-found"))
        .map((rule) => rule.parentRule?.conditionText ?? "always"); }"""


def test_only_where_content_can_be_hidden_is_a_hidden_block_displayed(opened):
    """Safari before 18 cannot: there the results would stand open beside the form."""
    where = {"(content-visibility: hidden)", "print"}
    assert set(opened().evaluate(SHOWS_HIDDEN)) == where


def test_is_legible_on_a_phone_in_the_dark(opened):
    page = opened(width=390, scheme="dark")
    page.get_by_role("button", name="ten times").click()
    page.locator("#guess-2 input").fill("no number")
    page.locator("#guess-2 input").press("Enter")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not axe(page)


# ---- Which note a guess belongs to ---------------------------------------------------


def note(kind="predict", words="?"):
    return nodes.block_quote(
        "", nodes.paragraph("", words), classes=["sm-lead", f"sm-lead-{kind}"]
    )


def cell(*shows):
    output = nodes.container("", *shows, nb_element="cell_code_output")
    return nodes.container("", output, nb_element="cell_code", cell_index=6)


def answer(truth="a"):
    return guesses.guess_answer(record={"kind": "choice", "truth": truth})


def joined(*parts):
    """A chapter's section after the transform."""
    document = new_document("chapter")
    document.settings.env = SimpleNamespace(docname="chapters/01")
    document += nodes.section("", nodes.title("", "Section"), *parts)
    guesses.JoinGuesses(document).apply()
    return document[0]


def test_a_guess_belongs_to_the_nearest_note_above():
    """What stands between is put behind it, and no more."""
    far, near, between = note(), note(), nodes.paragraph("", "between")
    found = joined(far, near, between, cell(answer()), note("takeaway"))
    assert not any(far.findall(guesses.guess_form))
    assert any(near.findall(guesses.guess_form))
    kinds = " ".join(type(child).__name__ for child in found)
    assert kinds == (
        "title block_quote block_quote guess_behind block_quote guess_summary"
    )
    assert [type(child).__name__ for child in found[3]] == ["guess_answer", "paragraph"]


def test_a_reader_keeps_a_guess_whose_question_is_reworded():
    """The key is in the metadata of the cell; without one it is that of the words."""

    def key(words, kept=None):
        of = cell(answer())
        of["cell_metadata"] = {"shardmath": {"key": kept}} if kept else {}
        (form,) = joined(note(words=words), of).findall(guesses.guess_form)
        return form["key"]

    assert key("How many?", "a1") == key("How many are there?", "a1") == "a1"
    assert key("How many?") != key("How many are there?")


def printing(*outputs):
    """A cell of code with some outputs."""
    code = nodes.container("", nb_element="cell_code_source")
    shown = [nodes.container("", one, nb_element="cell_code_output") for one in outputs]
    return nodes.container("", code, *shown, nb_element="cell_code")


def test_the_answer_comes_first_and_how_it_is_known_last():
    """The sentence that reads it next, then what can be looked at; code goes away."""
    table = printing(nodes.raw("", "<table></table>", format="html"))
    silent, read = printing(), nodes.paragraph("", "Read.")
    held = printing(
        nodes.literal_block("", "\N{CHECK MARK} it holds", classes=["stream"])
    )
    found = joined(note(), silent, table, cell(answer()), read, held)
    behind = next(found.findall(guesses.guess_behind))
    assert type(behind[0]) is guesses.guess_answer
    assert list(behind[1:3]) == [read, table]
    assert list(behind[3]) == [silent, held]
    assert type(behind[3]) is guesses.guess_known


def test_a_picture_before_the_reading_sentence_waits_with_it():
    """It stood between the guess and "A hundred and fifty.", which was in sight."""
    picture = printing(nodes.raw("", "<svg></svg>", format="html"))
    read, after = said("It is a hundred and fifty."), said("Next.")
    found = joined(note(), cell(answer()), picture, read, after)
    behind = next(found.findall(guesses.guess_behind))
    assert list(behind[1:]) == [read, picture]
    assert found.index(after) > found.index(behind)
    lone = joined(note(), cell(answer()), printing(nodes.raw("", "", format="html")))
    assert len(next(lone.findall(guesses.guess_behind))) == 1


def test_without_code_there_is_no_fold():
    found = joined(note(), cell(answer()), nodes.paragraph("", "Read."))
    assert not list(found.findall(guesses.guess_known))


def waiting(truth, *after):
    """How many of the paragraphs in the section wait behind a guess of a number."""
    record = {"kind": "number", "truth": truth}
    asked = cell(guesses.guess_answer(record=record))
    parts = [text if isinstance(text, nodes.Node) else said(text) for text in after]
    behind = next(joined(note(), asked, *parts).findall(guesses.guess_behind))
    return sum(isinstance(child, nodes.paragraph) for child in behind)


def said(text):
    return nodes.paragraph("", text)


def test_what_tells_the_number_again_in_the_section_waits_too():
    """A table or a sentence further down gave the answer to who had not guessed."""
    table = nodes.paragraph("", "", nodes.raw("", "<td>791</td>", format="html"))
    assert waiting("791 tokens", "Read.", "Next.", table, "Behind.") == 3
    assert waiting("31.4 GB", "Read.", "Next, of 31.4 GB.", "Behind.") == 2
    assert waiting("16.5%", "Read.", "Next.", "So 16.5 %.") == 3
    assert waiting("1,234", "Read.", "Next.", "It is 1,234.") == 3


def test_what_only_looks_like_the_number_does_not_wait():
    chance = ["Read.", "In 1791 and 0.791, 791.5 and 7,791.", "Next."]
    drawn = nodes.paragraph("", "", nodes.raw("", '<path d="M 791"/>', format="html"))
    assert waiting("791 tokens", *chance, drawn) == 1
    assert waiting("12 GB", "Read.", "So 12 GB.") == 1  # two digits are chance
    assert waiting("791 tokens", "Read.", note(), "Next: 791.") == 1


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([cell(answer())], "its section has no Predict note above it"),
        ([note("check"), cell(answer())], "its section has no Predict note"),
        (
            [note(), nodes.section("", nodes.title("", "Below"), cell(answer()))],
            "its section has no Predict note",
        ),
        (
            [note(), cell(answer()), cell(answer())],
            "its Predict note already has a guess",
        ),
        ([note(), cell(answer(None))], "exactly one of its choices must be true"),
        (
            [note(), cell(nodes.paragraph(), answer())],
            "must be the only output of its cell",
        ),
    ],
)
def test_a_guess_in_a_wrong_place_is_named(parts, message):
    with pytest.raises(
        ExtensionError, match=f"chapters/01: the guess of cell 7: {message}"
    ):
        joined(*parts)


def test_a_link_that_is_no_anchor_stops_nothing(opened):
    """A lone "%" cannot be decoded; the guesses of the page still take answers."""
    page = opened("#100%")
    page.get_by_label("Ask me to guess").uncheck()
    expect(page.locator(".sm-guesses-count")).to_have_text(
        "They are not asked for now."
    )
    page.evaluate("location.hash = '50%'")
    page.get_by_role("button", name="Start over").click()
    expect(page.locator(".sm-guesses-note")).to_have_text(
        "All guesses of this page are forgotten."
    )


def test_the_truth_stands_next_to_the_verdict(site, new_page, site_url):
    """In every box of some chapters, at most 120 px from where the verdict ends."""
    for path in sorted((site / "chapters").glob("*.html"))[::5]:
        page = new_page()
        page.goto(f"{site_url}chapters/{path.name}")
        page.evaluate(
            "for (const e of document.querySelectorAll('.sm-deeper')) e.open = true"
        )
        page.locator(".sm-guess [value=skip]").evaluate_all(
            "all => all.forEach((button) => button.click())"
        )
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            gaps = page.evaluate(
                """() => [...document.querySelectorAll(".sm-guess")].map((form) => {
                  const told = form.querySelector(".sm-guess-said");
                  const said = told.getBoundingClientRect();
                  const line = document.getElementById(`${form.dataset.anchor}-answer`);
                  return line.getBoundingClientRect().top - said.bottom;
                })"""
            )
            assert gaps
            assert max(gaps) <= 120, f"{path.name}, {width} px"
        page.close()  # its figure plays
