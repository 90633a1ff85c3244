"""Questions on the page: where they are answered, and how."""

import re

import pytest

from shardmath import answers
from shardmath.questions import Function, Number, Traffic

PARTS = re.compile(r'"(sm-check|sm-elsewhere|cell) ?[^"]*"|<summary>(Hint|Worked sol)')


@pytest.mark.parametrize("number", answers.chapters())
def test_a_question_is_answered_between_its_task_and_its_help(site, number):
    """Task, place to answer, hint, solution; and no cell that a page cannot run."""
    [page] = (site / "exercises").glob(f"{number}_*.html")
    opening, *questions = page.read_text("utf-8").split("<h2>")
    assert not PARTS.search(opening.partition("<h1>")[2])
    asked = answers.chapter(number).values()
    for record, html in zip(asked, questions, strict=True):
        assert html.startswith(f"{record.id} · ")
        here = isinstance(record, Number | Function | Traffic)
        wanted = ["sm-check" if here else "sm-elsewhere", "Hint", "Worked sol"]
        assert ["".join(found) for found in PARTS.findall(html)] == wanted, record.id
