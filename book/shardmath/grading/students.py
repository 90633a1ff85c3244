"""Finds who handed in each file, from a roster and file names of learning platforms.

>>> owner("Jane Doe_1234567_assignsubmission_file", "").student
'Jane Doe 1234567'
"""

import csv
import io
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

# Students choose the rest of a file's name, so each pattern matches from the start, and
# patterns that could match more of the name come later.
_PLATFORMS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<id>\d+-\d+) - (?P<name>.+?) - (?P<date>.+?)(?: - |$)",  # Brightspace
        r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<id>\d{2,})_\d{3,}_",  # Canvas
        r"(?P<name>[^_]+)_(?P<id>\d+)_assignsubmission_",  # Moodle
        r".+?_(?P<name>[^_]+)_attempt_(?P<when>\d{4}(?:-\d\d){2,5})",  # Blackboard
    )
)
_CANVAS_ATTEMPT = re.compile(r"_\d{3,}_.*-(\d+)\.(?:ipynb|json)$", re.I)
# Cyrillic and Greek letters that look like Latin ones in most fonts.
_LOOKS_LIKE = str.maketrans(
    "авекмнорстухіјѕԁԛԝӏαβεηικνορτυχАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "abekmhopctyxijsdqwlabehikvoptuxABEKMHOPCTYXIJSABEZHIKMNOPTYX",
)
_ALPHABETS = ("LATIN", "CYRILLIC", "GREEK")


@dataclass(frozen=True)
class Owner:
    """The student who handed in a submission.

    Attributes:
        student: the name, and the platform's number if there is one.
        known_as: the names by which a roster may list the student.
        when: a sort key for the student's attempts if the file name gives one, else "".
        number: the platform's number, or "".
        name: the name without the number.
        is_late: whether the platform marked the submission as late.
        notice: what the instructor should check, or "".
    """

    student: str
    known_as: frozenset[str] = frozenset()
    when: str = ""
    number: str = ""
    name: str = ""
    is_late: bool = False
    notice: str = ""


def is_platforms(first: str) -> bool:
    """Whether a learning platform wrote this name."""
    return any(pattern.match(first) for pattern in _PLATFORMS)


def owner(first: str, file: str) -> Owner:
    """The owner of a submission.

    Args:
        first: the outermost folder of the file, below the folder of submissions. If the
            file is in that folder itself, this is its name without the extension.
        file: the file's name.
    """
    for pattern in _PLATFORMS:
        if found := pattern.match(first):
            parts = {"id": "", "when": "", "date": "", "late": ""}
            parts |= found.groupdict()
            name, number = parts["name"].strip(), parts["id"]
            again = _CANVAS_ATTEMPT.search(file)
            when = parts["when"] or _iso(parts["date"])
            when = when or (again[1].zfill(6) if again else "")
            student = f"{name} {number}".strip()
            called = frozenset({student, name, number} - {""})
            late = bool(parts["late"])
            return Owner(student, called, when, number, name, late)
    return Owner(first, frozenset({first}), name=first)


def enrolled(
    one: Owner, roster: Mapping[str, str], numbered: Collection[str] = ()
) -> Owner:
    """The owner with the name on the roster, matched by number or else by name.

    A platform may give a student a different number for each assignment. Then the name
    shows that the student's notebooks belong together. An owner that matches two
    entries of the roster is assigned to neither. An owner with the name of an entry but
    a different number is not assigned to that entry if `numbered` contains it. In both
    cases `notice` says so.

    Args:
        one: the owner according to the file's name.
        roster: student → name.
        numbered: the entries of the roster that some submission matches by number.
    """
    if _may_be_two(one):
        said = f"“{one.student}” may be number {one.name} or number {one.number}"
        return replace(one, notice=f"{said}, so it is counted as neither.")
    by_number = _by_number(one, roster)
    name = _plain(one.name or one.student)
    by_name = [
        student
        for student, said in roster.items()
        if name in (_plain(student), _plain(said))
    ]
    fits = by_number or by_name
    if len(fits) > 1:
        said = " and ".join(f"“{student}”" for student in fits)
        notice = f"“{one.student}” matches {said} on the roster: counted as neither."
        return replace(one, notice=notice)
    if not fits:
        return one
    if one.number and not by_number and fits[0] in numbered:
        notice = (
            f"“{one.student}” has the name of “{fits[0]}” on the roster, but a "
            "different number, so it is counted separately."
        )
        return replace(one, notice=notice)
    notice = ""
    if by_name and by_name != by_number and by_number:
        other = ", ".join(f"“{student}”" for student in by_name)
        notice = (
            f"“{one.student}” has the number of “{fits[0]}” and the name of {other} on "
            f"the roster. The number decides, so it is counted as “{fits[0]}”."
        )
    return replace(one, student=fits[0], notice=notice)


def found_by_number(
    owners: Iterable[Owner], roster: Mapping[str, str]
) -> frozenset[str]:
    """The entries of the roster that at least one of these owners matches by number."""
    clear = (one for one in owners if not _may_be_two(one))
    return frozenset(entry for one in clear for entry in _by_number(one, roster))


def _by_number(one: Owner, roster: Mapping[str, str]) -> list[str]:
    numbers = {one.number, one.student} if one.number else set()
    return [student for student in roster if _plain(student) in numbers]


def _may_be_two(one: Owner) -> bool:
    """Whether the name is a number too, so either may be the student's."""
    return bool(one.number) and one.name.isdecimal()


def clashes(before: Iterable[Owner], roster: Mapping[str, str]) -> list[str]:
    """A sentence for each entry of the roster that matches owners with several numbers.

    Args:
        before: the owners according to the files' names.
        roster: student → name.
    """
    before = list(before)
    numbered = found_by_number(before, roster)
    numbers: dict[str, set[str]] = {}
    for one in before:
        entry = enrolled(one, roster, numbered)
        if one.number and entry.student in roster:
            numbers.setdefault(entry.student, set()).add(one.number)
    return [
        f"“{student}” has the numbers {', '.join(sorted(found))}. Is this one student "
        "or several with the same name?"
        for student, found in numbers.items()
        if len(found) > 1
    ]


def look_alikes(names: Iterable[str]) -> list[str]:
    r"""A sentence for each group of names that look alike.

    Each name that mixes two alphabets gets a sentence too.

    >>> look_alikes(["Ann", "Bo"]), look_alikes(["Ali", "A\u200cli"])
    ([], ["These names look alike: 'A\\u200cli', 'Ali'."])
    """
    alike: dict[str, set[str]] = {}
    for name in names:
        alike.setdefault(_skeleton(name), set()).add(name)
    said = [
        f"These names look alike: {', '.join(sorted(map(ascii, found)))}."
        for found in alike.values()
        if len(found) > 1
    ]
    return said + [
        f"The name {name!a} mixes {' and '.join(sorted(mixed))} letters."
        for found in alike.values()
        for name in sorted(found)
        if len(mixed := _alphabets(name)) > 1
    ]


def _skeleton(name: str) -> str:
    """A key that is the same for names that look alike."""
    shown = unicodedata.normalize("NFKC", name)
    seen = "".join(c for c in shown if unicodedata.category(c) != "Cf")
    return " ".join(seen.translate(_LOOKS_LIKE).casefold().split())


def _alphabets(name: str) -> set[str]:
    words = (unicodedata.name(c, "").split(maxsplit=1) for c in name if c.isalpha())
    return {word[0].capitalize() for word in words if word and word[0] in _ALPHABETS}


def _plain(name: str) -> str:
    """A name in one encoding, because an accent may be a separate character."""
    return unicodedata.normalize("NFC", name).strip()


def _iso(date: str) -> str:
    """Brightspace's "Oct 5, 2023 230 PM" as text that sorts, or "" for other text."""
    if found := re.fullmatch(r"(.+ )(\d{3,4})( [AP]M)", date.strip()):
        date = f"{found[1]}{found[2].zfill(4)}{found[3]}"
    try:
        return datetime.strptime(date, "%b %d, %Y %I%M %p").isoformat()
    except ValueError:
        return ""


def roster(path: Path) -> dict[str, str]:
    """Student → name, from a CSV with a column "student" and optionally "name".

    Raises:
        ValueError: the file can't be read, has no column "student", or lists a student
            twice.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read as UTF-8: {error}") from None
    rows = csv.DictReader(io.StringIO(text, newline=""))
    if "student" not in (rows.fieldnames or ()):
        raise ValueError(f'{path}: needs a column "student" and may have "name"')
    students: dict[str, str] = {}
    for row in rows:
        student = _plain(row["student"] or "")
        if student in students:
            raise ValueError(f"{path}: has the student {student!a} twice")
        if student:
            students[student] = _plain(row.get("name") or "")
    return students
