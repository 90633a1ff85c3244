"""Where a class stands: the attempt of each student that counts, totals and slips."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from .. import answers
from .results import Graded, Row

ATTEMPTS = ("latest", "best")


@dataclass(frozen=True)
class Student:
    """One student: question → the row that counts.

    Attributes:
        student: as the submissions or the roster call her.
        name: from the roster, or "".
        rows: of the attempts that count.
        submitted: how many notebooks there are.
        on_roster: False where there is a roster without this student.
    """

    student: str
    name: str = ""
    rows: dict[str, Row] = field(default_factory=dict)
    submitted: int = 0
    on_roster: bool = True

    def points(self, chapter: str = "") -> int:
        return sum(
            row.points for row in self.rows.values() if row.question.startswith(chapter)
        )


@dataclass(frozen=True)
class Summary:
    """One question in the class: how many by verdict, and by slip, frequent first."""

    question: str
    verdicts: dict[str, int]
    slips: tuple[tuple[str, int], ...]

    @property
    def asked(self) -> int:
        return sum(self.verdicts.values())


@dataclass(frozen=True)
class Class:
    """All students, and the questions that any of them was asked."""

    students: tuple[Student, ...]
    questions: tuple[str, ...]

    @property
    def chapters(self) -> list[str]:
        return sorted({question.partition(".")[0] for question in self.questions})

    def maximum(self, chapter: str = "") -> int:
        return sum(
            answers.find(question).points
            for question in self.questions
            if question.startswith(chapter)
        )

    def summaries(self) -> list[Summary]:
        """One a question, in order."""
        return [self._summary(question) for question in self.questions]

    def _summary(self, question: str) -> Summary:
        rows = [s.rows[question] for s in self.students if question in s.rows]
        verdicts = Counter(row.finding.verdict for row in rows)
        slips = Counter(row.finding.slip for row in rows if row.finding.slip)
        return Summary(question, dict(verdicts), tuple(slips.most_common()))


def standing(
    graded: Iterable[Graded], attempts: str = "latest", roster: dict | None = None
) -> Class:
    """The class as it stands.

    Args:
        graded: every submission.
        attempts: which of a student's notebooks of a chapter counts: "latest" or
            "best".
        roster: student → name. Who is on it and handed in nothing is there, too.
    """
    by_student: dict[str, list[Graded]] = {}
    for one in graded:
        by_student.setdefault(one.student, []).append(one)
    roster = roster or {}
    students = []
    for student, theirs in by_student.items():
        known_as = theirs[0].submission.owner.known_as
        entry = next((one for one in roster if one in known_as), None)
        students.append(
            Student(
                student,
                roster.get(entry, ""),
                _counted(theirs, attempts),
                len(theirs),
                not roster or entry is not None,
            )
        )
    present = {
        name
        for theirs in by_student.values()
        for name in theirs[0].submission.owner.known_as
    }
    students += [Student(s, name) for s, name in roster.items() if s not in present]
    asked = {question for student in students for question in student.rows}
    order = [question for question in answers.questions() if question in asked]
    return Class(
        tuple(sorted(students, key=lambda s: s.student.casefold())), tuple(order)
    )


def counted(graded: list[Graded], attempts: str) -> dict[str, Graded]:
    """Chapter → the notebook that counts, of one student's."""
    chapters = {row.chapter for one in graded for row in one.rows}
    counts = {}
    for chapter in sorted(chapters):
        tried = [one for one in graded if one.in_chapter(chapter)]
        counts[chapter] = max(tried, key=lambda one: _merit(one, chapter, attempts))
    return counts


def _merit(one: Graded, chapter: str, attempts: str) -> tuple:
    points = sum(row.points for row in one.in_chapter(chapter))
    return ((points,) if attempts == "best" else ()) + one.order


def _counted(graded: list[Graded], attempts: str) -> dict[str, Row]:
    return {
        row.question: row
        for chapter, one in counted(graded, attempts).items()
        for row in one.in_chapter(chapter)
    }
