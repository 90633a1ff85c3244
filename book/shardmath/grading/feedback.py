"""HTML pages: feedback on each submission, and the instructor's overview."""

import hashlib
from importlib.resources import files
from pathlib import Path

import jinja2

from ..exercises import MARKS, answers, prose
from .gradebook import Class, Student
from .isolation import Isolation
from .results import Graded, write
from .submissions import LeftOut


def feedback_pages(folder: Path, graded: list[Graded], group: Class) -> dict[str, str]:
    """Write a page for each submission. It has no links and names no other student.

    Returns:
        The submission's path → the file name of its page.
    """
    folder.mkdir(exist_ok=True)
    template = _template("feedback.html")
    students = {one.student: one for one in group.students}
    names = {}
    for one in graded:
        rows = [(row, answers.find(row.question)) for row in one.rows]
        names[one.notebook] = _name(one)
        student = students.get(one.student, Student(one.student))
        page = template.render(
            one=one, rows=rows, by_hand=student.by_hand, marks=MARKS, prose=prose
        )
        write(folder / names[one.notebook], page)
    return names


def overview(
    path: Path,
    graded: list[Graded],
    group: Class,
    left_out: list[LeftOut],
    pages: dict[str, str],
    seed: str,
    rung: Isolation,
    notices: list[str],
) -> None:
    """Write the instructor's page.

    It shows the results of the class by question, each student's verdicts, the
    submissions, and the files that were left out.
    """
    page = _template("overview.html").render(
        graded=graded,
        group=group,
        left_out=left_out,
        pages=pages,
        seed=seed,
        rung=rung,
        notices=notices,
        marks=MARKS,
        find=answers.find,
    )
    write(path, page)


def _template(name: str) -> jinja2.Template:
    # `files` also reads from a zip archive, which a loader of paths cannot.
    loader = jinja2.FunctionLoader(
        lambda file: (files(__package__) / file).read_text("utf-8")
    )
    return jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    ).get_template(name)


def _name(one: Graded) -> str:
    """The page's file name, which is readable, safe, and used by no other notebook."""
    stem = one.notebook.rpartition(".")[0]
    readable = "".join(c if c.isalnum() or c in "-_" else "-" for c in stem)
    only = hashlib.sha256(one.notebook.encode()).hexdigest()[:8]
    short = readable.encode("ascii", "ignore").decode()[:80].strip("-")
    return f"{short or 'page'}-{only}.html"
