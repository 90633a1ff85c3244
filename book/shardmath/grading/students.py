"""Who handed in what: names as learning platforms write them, and a roster.

>>> owner("Jane Doe_1234567_assignsubmission_file", "").student
'Jane Doe 1234567'
"""

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

# A student may choose what follows the platform's own part, so each pattern reads from
# the start, and none that could reach further is tried before one that could not.
_PLATFORMS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<id>\d+-\d+) - (?P<name>.+?) - (?P<date>.+?)(?: - |$)",  # Brightspace
        r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d{2,})_\d{3,}_",  # Canvas
        r"(?P<name>[^_]+)_(?P<id>\d+)_assignsubmission_",  # Moodle
        r".+?_(?P<name>[^_]+)_attempt_(?P<when>\d{4}(?:-\d\d){2,5})",  # Blackboard
    )
)
_CANVAS_ATTEMPT = re.compile(r"_\d{3,}_.*-(\d+)\.ipynb$", re.I)


@dataclass(frozen=True)
class Owner:
    """Whose a submission is.

    Attributes:
        student: the name, and the platform's number where there is one.
        known_as: what a roster may call the student.
        when: sorts this student's attempts where the name says their order.
    """

    student: str
    known_as: frozenset[str] = frozenset()
    when: str = ""


def owner(first: str, file: str) -> Owner:
    """The owner of a submission.

    Args:
        first: the first folder below the folder of submissions, or the notebook's name
            without its ending where it lies in that folder itself.
        file: the notebook's name.
    """
    for pattern in _PLATFORMS:
        if found := pattern.match(first):
            parts = {"id": "", "when": "", "date": "", **found.groupdict()}
            name, number = parts["name"].strip(), parts["id"]
            student = f"{name} {number}".strip()
            again = _CANVAS_ATTEMPT.search(file)
            when = parts["when"] or _iso(parts["date"])
            when = when or (again[1].zfill(6) if again else "")
            return Owner(student, frozenset({student, name, number} - {""}), when)
    return Owner(first, frozenset({first}))


def enrolled(one: Owner, roster: Iterable[str]) -> Owner:
    """The owner as the roster calls her, where it does.

    A platform's number may change from one assignment to the next; a name on the
    roster then holds a student's notebooks together.
    """
    entry = next((student for student in roster if student in one.known_as), None)
    return one if entry is None else replace(one, student=entry)


def _iso(date: str) -> str:
    """Brightspace's "Oct 5, 2023 230 PM" as text that sorts; "" where it is not."""
    if found := re.fullmatch(r"(.+ )(\d{3,4})( [AP]M)", date.strip()):
        date = f"{found[1]}{found[2].zfill(4)}{found[3]}"
    try:
        return datetime.strptime(date, "%b %d, %Y %I%M %p").isoformat()
    except ValueError:
        return ""


def roster(path: Path) -> dict[str, str]:
    """Student → name, of a CSV with a column "student" and perhaps one "name".

    Raises:
        ValueError: the file cannot be read so; says why.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read as UTF-8: {error}") from None
    rows = csv.DictReader(io.StringIO(text, newline=""))
    if "student" not in (rows.fieldnames or ()):
        raise ValueError(f'{path}: wants a column "student", and may have one "name"')
    return {
        row["student"].strip(): (row.get("name") or "").strip()
        for row in rows
        if (row["student"] or "").strip()
    }
