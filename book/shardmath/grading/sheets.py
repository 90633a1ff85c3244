"""Tables for spreadsheets: UTF-8 with a mark that they know, no cell a formula."""

import csv
import io
import re
from pathlib import Path

from .results import Graded, write
from .standing import Class
from .submissions import printable

# Where a cell starts, also in a spreadsheet that takes a semicolon for the end of one.
_FORMULA = re.compile(r"""(^|;)(?=[\s"]*[=+\-@＝＋－＠])""")
_COLUMNS = (
    *("student", "question", "verdict", "slip"),
    *("points", "maximum", "notebook", "problem"),
)


def answers_csv(path: Path, graded: list[Graded]) -> None:
    """One line per question, or one without a question where none was graded."""
    lines: list[list] = [[*_COLUMNS]]
    for one in graded:
        if one.problem:
            why = ["", "not graded", "", 0, 0, one.notebook, one.problem]
            lines.append([one.student, *why])
        for row in one.rows:
            found = row.finding
            points = [row.points, row.maximum, one.notebook, ""]
            lines.append(
                [one.student, row.question, found.verdict, found.slip, *points]
            )
    _write(path, lines)


def totals_csv(path: Path, group: Class) -> None:
    """One line per student: points and maximum, in all and of each chapter."""
    head = ["student", "name", "points", "maximum", "notebooks"]
    for chapter in group.chapters:
        head += [f"points {chapter}", f"maximum {chapter}"]
    lines: list[list] = [head]
    for one in group.students:
        line = [one.student, one.name, one.points(), group.maximum(), one.submitted]
        for chapter in group.chapters:
            line += [one.points(f"{chapter}."), group.maximum(f"{chapter}.")]
        lines.append(line)
    _write(path, lines)


def _write(path: Path, lines: list[list]) -> None:
    table = io.StringIO(newline="")
    csv.writer(table).writerows([map(cell, line) for line in lines])
    write(path, table.getvalue(), "utf-8-sig")


def cell(value: object) -> str:
    """A value as text that no spreadsheet takes for a formula.

    >>> cell("=1+1"), cell("x;=1+1"), cell(-3)
    ("'=1+1", "x;'=1+1", '-3')
    """
    if not isinstance(value, str):
        return str(value)
    return _FORMULA.sub(r"\1'", printable(value))
