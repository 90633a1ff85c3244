"""Who handed in what: names as learning platforms write them, and a roster.

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

# A student may choose what follows the platform's own part, so each pattern reads from
# the start, and none that could reach further is tried before one that could not.
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
# Letters of other alphabets that look like a Latin one in most fonts.
_LOOKS_LIKE = str.maketrans(
    "авекмнорстухіјѕԁԛԝӏαβεηικνορτυχАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "abekmhopctyxijsdqwlabehikvoptuxABEKMHOPCTYXIJSABEZHIKMNOPTYX",
)
_ALPHABETS = ("LATIN", "CYRILLIC", "GREEK")


@dataclass(frozen=True)
class Owner:
    """Whose a submission is.

    Attributes:
        student: the name, and the platform's number where there is one.
        known_as: what a roster may call the student.
        when: sorts this student's attempts where the name says their order.
        number: the platform's number, or "".
        name: the name alone.
        is_late: whether the platform marked it as late.
        notice: what a person should look at, or "".
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
        first: the first folder below the folder of submissions, or the file's name
            without its ending where it lies in that folder itself.
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
    """The owner as the roster calls her, where it does: by number, else by name.

    A platform's number may change from one assignment to the next; a name on the
    roster then holds a student's notebooks together. What fits two entries of the
    roster is nobody's, and neither is what has a student's name but another number
    than her own: the owner's `notice` then says so.

    Args:
        one: the owner as a file's name calls her.
        roster: student → name.
        numbered: the entries of the roster that a submission fits by its number.
    """
    if _may_be_two(one):
        said = f"“{one.student}” may be number {one.name} or number {one.number}"
        return replace(one, notice=f"{said}: it is counted as neither.")
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
        notice = f"“{one.student}” fits {said} on the roster: it is counted as neither."
        return replace(one, notice=notice)
    if not fits:
        return one
    if one.number and not by_number and fits[0] in numbered:
        notice = (
            f"“{one.student}” has the name of “{fits[0]}” on the roster, and another "
            "number than hers: it is counted by itself."
        )
        return replace(one, notice=notice)
    notice = ""
    if by_name and by_name != by_number and by_number:
        other = ", ".join(f"“{student}”" for student in by_name)
        notice = (
            f"“{one.student}” has the number of “{fits[0]}” and the name of {other} on "
            f"the roster: it is counted as “{fits[0]}”, by its number."
        )
    return replace(one, student=fits[0], notice=notice)


def found_by_number(
    owners: Iterable[Owner], roster: Mapping[str, str]
) -> frozenset[str]:
    """The entries of the roster that one of these owners fits by number."""
    clear = (one for one in owners if not _may_be_two(one))
    return frozenset(entry for one in clear for entry in _by_number(one, roster))


def _by_number(one: Owner, roster: Mapping[str, str]) -> list[str]:
    numbers = {one.number, one.student} if one.number else set()
    return [student for student in roster if _plain(student) in numbers]


def _may_be_two(one: Owner) -> bool:
    """Whether the name is a number, too."""
    return bool(one.number) and one.name.isdecimal()


def clashes(before: Iterable[Owner], roster: Mapping[str, str]) -> list[str]:
    """A sentence for each entry of the roster that several numbers share.

    Args:
        before: the owners as the files' names call them.
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
        f"“{student}” stands for the numbers {', '.join(sorted(found))}: one student, "
        "or several of one name?"
        for student, found in numbers.items()
        if len(found) > 1
    ]


def look_alikes(names: Iterable[str]) -> list[str]:
    r"""A sentence for names that a reader may take for one another.

    A name with letters of two alphabets has one, too.

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
    """What is left of a name when all that looks alike is alike."""
    shown = unicodedata.normalize("NFKC", name)
    seen = "".join(c for c in shown if unicodedata.category(c) != "Cf")
    return " ".join(seen.translate(_LOOKS_LIKE).casefold().split())


def _alphabets(name: str) -> set[str]:
    words = (unicodedata.name(c, "").split(maxsplit=1) for c in name if c.isalpha())
    return {word[0].capitalize() for word in words if word and word[0] in _ALPHABETS}


def _plain(name: str) -> str:
    """A name in one spelling: an accent may be a character of its own."""
    return unicodedata.normalize("NFC", name).strip()


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
    students: dict[str, str] = {}
    for row in rows:
        student = _plain(row["student"] or "")
        if student in students:
            raise ValueError(f"{path}: has the student {student!a} twice")
        if student:
            students[student] = _plain(row.get("name") or "")
    return students
