"""Points that the instructor gives by hand, read from a file in every run."""

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

from ..exercises import answers

_COLUMNS = ("student", "question", "points")


@dataclass(frozen=True)
class Manual:
    """Points for one question of one student, which replace those of the grader.

    Attributes:
        student: the name in totals.csv.
        question: its id, such as "01.3".
        points: from 0 to the question's maximum.
        note: the reason, or "".
    """

    student: str
    question: str
    points: float
    note: str = ""


def manual_points(path: Path) -> list[Manual]:
    """The rows of a CSV file: "student", "question", "points" and optionally "note".

    Raises:
        ValueError: the file can't be read, lacks a column, or has an invalid row or two
            rows for the same student and question. The message gives the line.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read as UTF-8: {error}") from None
    rows = csv.DictReader(io.StringIO(text, newline=""))
    if lacks := [name for name in _COLUMNS if name not in (rows.fieldnames or ())]:
        wants = '"student", "question" and "points", and may have "note"'
        raise ValueError(f'{path}: has no column "{lacks[0]}"; it needs {wants}')
    found: dict[tuple[str, str], Manual] = {}
    for row in rows:
        if not any((row[name] or "").strip() for name in _COLUMNS):
            continue
        one = _manual(path, rows.line_num, row)
        if (one.student, one.question) in found:
            raise ValueError(
                f"{path}, line {rows.line_num}: {one.student!a} already has points for "
                f"{one.question}"
            )
        found[one.student, one.question] = one
    return list(found.values())


def _manual(path: Path, line: int, row: dict) -> Manual:
    where = f"{path}, line {line}"
    student, question, points = ((row[name] or "").strip() for name in _COLUMNS)
    if not student:
        raise ValueError(f"{where}: has no student")
    try:
        most = answers.find(question).points
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    try:
        given = float(points)
    except ValueError:
        given = math.nan
    if not 0 <= given <= most:
        raise ValueError(f"{where}: points {points!r:.40}: must be from 0 to {most}")
    return Manual(student, question, given, (row.get("note") or "").strip())
