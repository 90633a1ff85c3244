"""Questions on the page: where they are answered, and how."""

import re

import pytest
from live_book import START
from written import AXE, visit

from shardmath.exercises import answers, judge_number
from shardmath_site.question import is_answered_here, place

PARTS = re.compile(r'"(sm-check|sm-elsewhere|cell) ?[^"]*"|<summary>(Hint|Worked sol)')
DOWNLOAD = re.compile(r'JAX, .*<a href="([^"]+)" download>')
SUM = "2*512*4096*16384"
LAID_OUT = """input => {
    const box = element => element.getBoundingClientRect();
    const of = document.getElementById(input.getAttribute("aria-describedby"));
    return {
        letters: parseFloat(getComputedStyle(input).fontSize),
        thumbs: [input, input.form.elements[1]].map(one => box(one).height),
        keyboard: input.inputMode,
        gap: box(of).top - box(input).bottom,
        role: of.getAttribute("role"),
    };
}"""


@pytest.mark.parametrize("number", answers.chapters())
def test_a_question_is_answered_between_its_task_and_its_help(site, number):
    """Task, place to answer, hint, solution; and no cell that a page cannot run."""
    [page] = (site / "exercises").glob(f"{number}_*.html")
    opening, *questions = page.read_text("utf-8").split("<h2>")
    assert not PARTS.search(opening.partition("<h1>")[2])
    asked = answers.chapter(number).values()
    for record, html in zip(asked, questions, strict=True):
        assert html.startswith(f"{record.id} · ")
        here = "compiled by JAX" not in html
        wanted = ["sm-check" if here else "sm-elsewhere", "Hint", "Worked sol"]
        assert ["".join(found) for found in PARTS.findall(html)] == wanted, record.id
        if not here:
            assert not is_answered_here(record)
            assert (page.parent / DOWNLOAD.search(html)[1]).is_file()


def test_what_a_page_cannot_run_leads_to_colab_where_the_source_is_known():
    question = next(
        q for q, r in answers.questions().items() if not is_answered_here(r)
    )
    assert "Colab" not in place(question, "here.ipynb")
    told = place(question, "here.ipynb", "https://colab.example/a?b&c")
    assert '<a href="https://colab.example/a?b&amp;c">in Colab</a>' in told


@pytest.fixture
def phone(browser, site_url):
    """The exercises of chapter 01 on a phone in the dark."""
    context = browser.new_context(
        viewport={"width": 390, "height": 844},
        color_scheme="dark",
        has_touch=True,
        is_mobile=True,
    )
    page = context.new_page()
    page.set_default_timeout(START)
    visit(page, f"{site_url}exercises/01_rooflines.html")
    yield page
    context.close()


def test_arithmetic_is_answered_on_a_phone(phone):
    """Typed, checked by Enter, echoed; a verdict is past when its answer changes."""
    field = phone.get_by_label("Your answer to 01.1, in FLOPs")
    verdict = phone.locator("[data-question='01.1'] .sm-verdict")
    field.scroll_into_view_if_needed()
    found = field.evaluate(LAID_OUT)
    assert found["letters"] >= 16  # else a phone zooms in
    assert min(found["thumbs"]) >= 44
    assert found["keyboard"] == "text"  # that of numbers has no "*"
    assert (found["gap"] < 16, found["role"]) == (True, "status")

    def judged(text, kind):
        field.fill(text)
        field.press("Enter")
        phone.locator(f"#verdict-01-1[data-verdict={kind}]").wait_for()
        assert verdict.text_content() == judge_number("01.1", text)["message"]

    judged(SUM.removeprefix("2*"), "wrong")
    judged("68.7 seconds", "invalid")
    judged(SUM, "correct")
    assert verdict.text_content() == f"{SUM} = 68.72 GFLOPs"
    phone.evaluate(AXE.read_text("utf-8"))
    axe = "axe.run(document.querySelector('[data-question=\"01.1\"]'))"
    assert phone.evaluate(axe)["violations"] == []
    field.press("Backspace")
    assert verdict.get_attribute("data-verdict") == "past"
    assert phone.evaluate(axe)["violations"] == []
    field.press("4")
    assert verdict.get_attribute("data-verdict") == "correct"
