"""The place on a page where a reader answers a question."""

from html import escape

from shardmath.exercises import answers
from shardmath.exercises.kinds import Function, Number, Question, Traffic, prose


def is_answered_here(record: Question) -> bool:
    """Whether a page can judge answers to this question.

    This holds for numbers and for plain Python, which `tests/site/test_editor.py` tests
    in a page.
    """
    return isinstance(record, Number | Function | Traffic)


def place(question: str, notebook: str, colab: str = "") -> str:
    """HTML of the place for an answer, which depends on the kind of question.

    Args:
        question: its id, such as "01.1".
        notebook: the address of its notebook.
        colab: the address of the notebook in Colab, or "".

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
    """A field with its unit, a button, and the place of the verdict.

    Without scripts, only the line that says where answers are checked is visible.
    Phones show their keyboard with letters, because those for numbers have no "*" and
    no letters for units.
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
    """The stub of a function in plain Python. functions.js replaces it by an editor."""
    return (
        f'<div class="sm-check" data-question="{record.id}" data-kind="function">'
        f"{_stub(record)}"
        '<p class="sm-verdict" role="status">The function can be checked here when '
        "scripts run, and in Jupyter.</p></div>\n"
    )


def _elsewhere(record: Question, notebook: str, colab: str) -> str:
    """The stub of a program for JAX, and where it can be answered."""
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
