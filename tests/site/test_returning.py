"""Questions from earlier chapters: which return, in which order, and what is kept."""

import json
import re

import pytest
from test_pages import complaints

from shardmath_site.returning import stands_alone

PAGE = "chapters/08_data_parallelism.html"
STORE = "shardmath.guesses.v1"


@pytest.fixture(scope="module")
def questions(site):
    text = (site / "_static" / "earlier.js").read_text("utf-8")
    return json.loads(text.removeprefix("globalThis.shardmathEarlier=").strip(";\n"))


def opened(new_page, site_url, kept=None, width=1280):
    """A chapter with the five questions open, and what a reader had guessed before."""
    page = new_page(width=width)
    if kept:
        page.add_init_script(
            f"localStorage.getItem('{STORE}') ?? "
            f"localStorage.setItem('{STORE}', {json.dumps(json.dumps(kept))})"
        )
    page.goto(site_url + PAGE)
    page.locator(".sm-returning > summary").click()
    page.locator(".sm-returning li").first.wait_for()
    return page


def asked(page) -> list[str]:
    return page.locator(".sm-returning li > p:first-child").all_inner_texts()


def test_there_are_questions_of_every_chapter(questions):
    """Formulas and what leans on its page stay behind."""
    chapters = [one["chapter"] for one in questions]
    assert len(set(chapters)) >= 12
    assert len(questions) >= 40
    assert all(one["question"].endswith("?") for one in questions)
    assert not [one for one in questions if "$" in one["question"]]


def test_five_of_earlier_chapters_are_asked(new_page, site_url, questions):
    page = opened(new_page, site_url)
    earlier = [one["question"] for one in questions if one["chapter"] < "08"]
    said = asked(page)
    assert len(said) == 5
    assert set(said) <= set(earlier)
    assert not complaints(page, within=["details.sm-returning"])


def test_wrong_ones_come_first_and_known_ones_last(new_page, site_url, questions):
    first = [one for one in questions if one["chapter"] == "01"]
    wrong = next(one for one in first if one["record"]["kind"] == "choice")
    other = next(c for c in wrong["record"]["choices"] if c != wrong["record"]["truth"])
    latest = [one for one in questions if one["chapter"] < "08"][-1]
    right = latest["record"]["truth"]
    page = opened(new_page, site_url, {wrong["key"]: other, f"{latest['key']}+": right})
    said = asked(page)
    assert said[0] == wrong["question"]
    assert latest["question"] not in said


def test_an_answer_is_judged_and_kept_beside_the_first(new_page, site_url, questions):
    """By keyboard; the next visit asks what went wrong again."""
    known = {one["question"]: one for one in questions}
    page = opened(new_page, site_url)
    place, question = next(
        (n, text) for n, text in enumerate(asked(page))
        if known[text]["record"]["kind"] == "choice"
    )  # fmt: skip
    one = known[question]
    wrong = next(c for c in one["record"]["choices"] if c != one["record"]["truth"])
    item = page.locator(".sm-returning li").nth(place)
    item.get_by_role("button", name=wrong, exact=True).press("Enter")
    said = item.locator(".sm-guess-said")
    assert said.get_attribute("data-verdict") == "wrong"
    assert one["record"]["truth"] in said.inner_text()
    href = said.locator("a").get_attribute("href")
    assert re.search(rf"chapters/{one['chapter']}_\w+\.html#{one['anchor']}$", href)
    kept = json.loads(page.evaluate(f"localStorage.getItem('{STORE}')"))
    assert kept[f"{one['key']}+"] == wrong
    assert one["key"] not in kept
    page.reload()
    page.locator(".sm-returning > summary").click()
    page.locator(".sm-returning li").first.wait_for()
    assert asked(page)[0] == question


def test_what_is_no_number_says_what_is(new_page, site_url, questions):
    known = {one["question"]: one for one in questions}
    numbers = {
        one["key"]: "1e30"
        for one in questions
        if one["chapter"] < "08" and one["record"]["kind"] == "number"
    }  # all of them wrong, so that they come first
    page = opened(new_page, site_url, numbers, width=390)
    assert known[asked(page)[0]]["record"]["kind"] == "number"
    item = page.locator(".sm-returning li").first
    item.locator("input").fill("many")
    page.keyboard.press("Enter")
    assert "a number above zero" in item.locator(".sm-guess-said").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_first_chapter_has_nothing_to_ask(site):
    assert "sm-returning" not in (site / "chapters/01_rooflines.html").read_text(
        "utf-8"
    )


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        (
            "Add up the registers of all 132 SMs of an H100. Which holds the least?",
            True,
        ),
        ("Which of these wires is fastest for an AllReduce of 64 MiB, at best?", False),
        ("Which binds?", False),
    ],
)
def test_a_question_that_leans_on_its_page_does_not_return(text, alone):
    assert stands_alone(text) == alone
