"""Where a class stands: the attempt of each student that counts, totals and slips."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

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

    def of(self, chapter: str) -> list[str]:
        """The questions of one chapter."""
        return [q for q in self.questions if q.startswith(f"{chapter}.")]

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
            Owners are called as there (`students.enrolled`).
    """
    by_student: dict[str, list[Graded]] = {student: [] for student in roster or {}}
    for one in graded:
        by_student.setdefault(one.student, []).append(one)
    students = [
        Student(
            student,
            (roster or {}).get(student, ""),
            _counted(theirs, attempts),
            len(theirs),
            not roster or student in roster,
        )
        for student, theirs in by_student.items()
    ]
    asked = {question for student in students for question in student.rows}
    order = [question for question in answers.questions() if question in asked]
    return Class(
        tuple(sorted(students, key=lambda s: s.student.casefold())), tuple(order)
    )


def _merit(chapter: str, attempts: str, one: Graded) -> tuple:
    points = sum(row.points for row in one.in_chapter(chapter))
    return ((points,) if attempts == "best" else ()) + one.order


def _counted(graded: list[Graded], attempts: str) -> dict[str, Row]:
    """Question → row of the notebook that counts for its chapter."""
    rows = {}
    for chapter in sorted({row.chapter for one in graded for row in one.rows}):
        tried = [one for one in graded if one.in_chapter(chapter)]
        counts = max(tried, key=partial(_merit, chapter, attempts))
        rows.update({row.question: row for row in counts.in_chapter(chapter)})
    return rows
