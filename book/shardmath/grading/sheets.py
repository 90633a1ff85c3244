"""CSV tables for spreadsheets, in UTF-8 with a byte order mark and without formulas."""

import csv
import io
from pathlib import Path

from .gradebook import Class, Student
from .results import Graded, write
from .submissions import cell

_COLUMNS = (
    *("student", "question", "verdict", "slip"),
    *("points", "maximum", "notebook", "problem"),
    *("shown correct", "late", "isolation"),
)


def answers_csv(path: Path, graded: list[Graded]) -> None:
    """Write a line for each answer. An ungraded file has a line without a question."""
    lines: list[list] = [[*_COLUMNS]]
    for one in graded:
        late = _yes(one.submission.owner.is_late)
        if one.problem:
            why = ["", "not graded", "", 0, 0, one.notebook, one.problem]
            lines.append([one.student, *why, "", late, one.isolation])
        for row in one.rows:
            found = row.finding
            points = [row.points, row.maximum, one.notebook, ""]
            shown = _yes(row.question in one.submission.shown)
            found = [row.question, found.verdict, found.slip]
            lines.append([one.student, *found, *points, shown, late, one.isolation])
    _write(path, lines)


def totals_csv(path: Path, group: Class) -> None:
    """Write a line for each student: points and maximum, in total and per chapter."""
    head = ["student", "name", "points", "maximum", "ever right", "notebooks"]
    head += ["late", "by hand", "problem", "isolation"]
    for chapter in group.chapters:
        head += [f"points {chapter}", f"maximum {chapter}"]
    lines: list[list] = [head]
    for one in group.students:
        line = [one.student, one.name, _number(one.points()), group.maximum()]
        line += [one.ever, one.submitted, _yes(one.is_late), _by_hand(one)]
        line += ["; ".join(one.problems), ", ".join(one.isolation)]
        for chapter in group.chapters:
            points = _number(one.points(f"{chapter}."))
            line += [points, group.maximum(f"{chapter}.")]
        lines.append(line)
    _write(path, lines)


def _by_hand(one: Student) -> str:
    given = (f"{q}: {_number(m.points)}" for q, m in sorted(one.by_hand.items()))
    return ", ".join(given)


def _number(points: float) -> float:
    """Points as an int if they are whole."""
    return int(points) if points == int(points) else points


def _yes(true: bool) -> str:
    return "yes" if true else ""


def _write(path: Path, lines: list[list]) -> None:
    table = io.StringIO(newline="")
    csv.writer(table).writerows([map(cell, line) for line in lines])
    write(path, table.getvalue(), "utf-8-sig")
