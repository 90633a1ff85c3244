"""The field on a page where a reader types the number that a question asks for."""

from html import escape

from shardmath import answers


def form(question: str) -> str:
    """HTML of the field, its button, its unit and the place of the verdict.

    Without a script only the line that says where answers are checked is visible.
    """
    record = answers.find(question)
    name = f"Your answer to {question}"
    if record.unit:
        name += f", in {record.unit}"
    return (
        f'<div class="sm-check" data-question="{escape(question)}"><form hidden>'
        f"<label><span>{escape(name)}</span>"
        '<input name="answer" autocomplete="off" spellcheck="false"></label>'
        "<button>Check</button></form>"
        '<p class="sm-verdict" role="status">The answer can be checked here when '
        "scripts run, and in Jupyter.</p></div>"
    )
