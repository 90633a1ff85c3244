"""Feedback on graded notebooks: a page for each and an index, each one file."""

from importlib.resources import files
from itertools import count
from pathlib import Path

import jinja2

from .. import answers
from . import MARKS, prose


def write(out: Path, graded: list, seed: str) -> None:
    """Write ``index.html`` and a page for each graded notebook into `out`."""
    template = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True
    ).from_string((files(__package__) / "feedback.html").read_text("utf-8"))
    names = _names(graded)
    for one in graded:
        rows = [(row, answers.find(row.question)) for row in one.rows]
        page = template.render(one=one, rows=rows, marks=MARKS, prose=prose)
        (out / names[one.notebook]).write_text(page, "utf-8")
    index = template.render(graded=graded, names=names, seed=seed)
    (out / "index.html").write_text(index, "utf-8")


def _names(graded: list) -> dict[str, str]:
    """Notebook → file name of its page, safe and used once."""
    names: dict[str, str] = {}
    for one in graded:
        stem = "".join(
            c if c.isalnum() or c in "-_" else "-" for c in one.notebook[:-6]
        )
        stem = stem[:80].strip("-") or "page"
        tries = (f"{stem}{f'-{n}' if n else ''}.html" for n in count())
        taken = {"index.html", *(name.casefold() for name in names.values())}
        names[one.notebook] = next(t for t in tries if t.casefold() not in taken)
    return names
