"""The place on a page where a reader answers a question."""

from html import escape

from shardmath import answers
from shardmath.questions import Function, Number, Question, Traffic, prose


def is_answered_here(record: Question) -> bool:
    """Whether a page judges answers to this question itself."""
    return isinstance(record, Number)


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
    if isinstance(record, Function | Traffic):
        return _code(record)
    return _elsewhere(record, notebook, colab)


def _field(record: Number) -> str:
    """A field, its button, its unit and the place of the verdict.

    Without a script only the line that says where answers are checked is visible.
    """
    name = f"Your answer to {record.id}"
    if record.unit:
        name += f", in {record.unit}"
    return (
        f'<div class="sm-check" data-question="{record.id}" data-kind="number">'
        f"<form hidden><label><span>{escape(name)}</span>"
        '<input name="answer" autocomplete="off" spellcheck="false"></label>'
        "<button>Check</button></form>"
        '<p class="sm-verdict" role="status">The answer can be checked here when '
        "scripts run, and in Jupyter.</p></div>\n"
    )


def _code(record: Question) -> str:
    """How a function in plain Python begins, where an editor may stand."""
    return (
        f'<div class="sm-check" data-question="{record.id}" data-kind="function">'
        f"{_stub(record)}"
        '<p class="sm-verdict" role="status">Answered with code, in Jupyter.</p>'
        "</div>\n"
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
