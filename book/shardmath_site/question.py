"""The place on a page where a reader answers a question."""

from html import escape

from shardmath.exercises import answers
from shardmath.exercises.kinds import Function, Number, Question, Traffic, prose


def is_answered_here(record: Question) -> bool:
    """Whether a page judges answers to this question itself.

    Numbers, and what is plain Python: `tests/site/test_editor.py` has all of it judged
    in a page.
    """
    return isinstance(record, Number | Function | Traffic)


def place(question: str, notebook: str, colab: str = "") -> str:
    """HTML of the place for an answer; what it is depends on what is wanted.

    Args:
        question: its id, "01.1".
        notebook: address of the notebook that holds it.
        colab: address where that notebook opens in Colab; "" where there is none.

    Raises:
        ValueError: no question has this id.
    """
    record = answers.find(question)
    if isinstance(record, Number):
        return _field(record)
    if is_answered_here(record):
        return _code(record)
    return _elsewhere(record, notebook, colab)


def _field(record: Number) -> str:
    """A field, its unit, its button and the place of the verdict.

    Without a script only the line that says where answers are checked is visible. A
    phone shows its keyboard of letters: on those for numbers there is no "*", and no
    unit.
    """
    name = record.id.replace(".", "-")
    unit = escape(record.unit)
    unseen = f'<span class="sm-unseen">, in {unit}</span>' if unit else ""
    beside = (
        f'<span class="sm-beside-answer" aria-hidden="true">{unit}</span>'
        if unit
        else ""
    )
    return (
        f'<div class="sm-check" data-question="{record.id}" data-kind="number">'
        f'<form hidden><label for="answer-{name}">Your answer to {record.id}{unseen}'
        f'</label><input id="answer-{name}" name="answer" inputmode="text" '
        'enterkeyhint="done" autocapitalize="off" autocomplete="off" '
        f'autocorrect="off" spellcheck="false" aria-describedby="verdict-{name}">'
        f"{beside}<button>Check</button></form>"
        f'<p class="sm-verdict" id="verdict-{name}" role="status">The answer can be '
        "checked here when scripts run, and in Jupyter.</p></div>\n"
    )


def _code(record: Question) -> str:
    """How a function in plain Python begins; functions.js puts an editor there."""
    return (
        f'<div class="sm-check" data-question="{record.id}" data-kind="function">'
        f"{_stub(record)}"
        '<p class="sm-verdict" role="status">The function can be checked here when '
        "scripts run, and in Jupyter.</p></div>\n"
    )


def _elsewhere(record: Question, notebook: str, colab: str) -> str:
    """How a program for JAX begins, and where it can be written."""
    where = f'<a href="{escape(notebook)}" download>this notebook</a> in Jupyter'
    if colab:
        where += f' or <a href="{escape(colab)}">in Colab</a>'
    return (
        f'<div class="sm-elsewhere">{_stub(record)}'
        f"<p>It is compiled by JAX, which a page cannot run: answer it with {where}."
        "</p></div>\n"
    )


def _stub(record: Question) -> str:
    return f"<pre>{escape(prose(record.stub))}</pre>"
