"""Where a class stands: the attempt of each student that counts, totals and slips.

What counts is the same for all. No student can change the maximum of the others by
bringing a question that nobody asked for: a chapter counts where it is named, or where
most of the class brought it.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest

from .. import answers
from .results import Graded, Row
from .submissions import Submission

ATTEMPTS = ("latest", "best")


@dataclass(frozen=True)
class Student:
    """One student: question → the row that counts.

    Attributes:
        student: as the submissions or the roster call her.
        name: from the roster, or "".
        rows: of the attempts and chapters that count.
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
    """All students, the questions that count, and a line on each chapter without."""

    students: tuple[Student, ...]
    questions: tuple[str, ...]
    left_out: tuple[str, ...] = ()

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
    graded: Iterable[Graded],
    attempts: str = "latest",
    roster: dict | None = None,
    asked: Collection[str] = (),
) -> Class:
    """The class as it stands.

    Args:
        graded: every submission.
        attempts: which of a student's notebooks of a chapter counts: "latest" or
            "best".
        roster: student → name. Who is on it and handed in nothing is there, too.
            Owners are called as there (`students.enrolled`).
        asked: the questions that count; if not given, those of each chapter that more
            than half of the students brought, of those on the roster if there is one.
    """
    by_student: dict[str, list[Graded]] = {student: [] for student in roster or {}}
    for one in graded:
        by_student.setdefault(one.student, []).append(one)
    rows = {who: _counted(theirs, attempts) for who, theirs in by_student.items()}
    brought_some = [who for who in rows if rows[who]]
    enrolled = [who for who in brought_some if who in (roster or rows)]
    told = [rows[who] for who in enrolled or brought_some]
    brought = Counter(
        c for theirs in told for c in {q.chapter for q in theirs.values()}
    )
    asked = asked or {
        question
        for theirs in told
        for question, row in theirs.items()
        if brought[row.chapter] > len(told) / 2
    }
    students = [
        Student(
            student,
            (roster or {}).get(student, ""),
            {
                question: row
                for question, row in rows[student].items()
                if question in asked
            },
            len(theirs),
            not roster or student in roster,
        )
        for student, theirs in by_student.items()
    ]
    chapters = {row.chapter for theirs in rows.values() for row in theirs.values()}
    left_out = [
        f"Chapter {chapter} does not count: {brought[chapter]} of {len(told)} students "
        "brought it. --chapters says which count."
        for chapter in sorted(chapters - {q.partition(".")[0] for q in asked})
    ]
    return Class(
        tuple(sorted(students, key=lambda s: s.student.casefold())),
        tuple(question for question in answers.questions() if question in asked),
        tuple(left_out),
    )


def turns(
    submissions: Iterable[Submission], attempts: str, chapters: Collection[str]
) -> tuple[list[Submission], list[Submission]]:
    """In what order to run them, and those that need not run.

    Students take turns, each with the latest first: nobody's many notebooks hold up the
    class. Where the latest counts, a notebook is left out if later ones of the student
    answer all of its chapters.
    """
    by_student: dict[str, list[Submission]] = {}
    replaced = []
    seen: dict[str, set[str]] = {}
    for one in sorted(submissions, key=lambda one: one.order, reverse=True):
        answered = one.chapters & set(chapters)
        later = seen.setdefault(one.owner.student, set())
        if attempts == "latest" and answered and answered <= later:
            replaced.append(one)
            continue
        later |= answered
        by_student.setdefault(one.owner.student, []).append(one)
    rounds = zip_longest(*(by_student[student] for student in sorted(by_student)))
    return [one for turn in rounds for one in turn if one], replaced


def _merit(chapter: str, attempts: str, one: Graded) -> tuple:
    points = sum(row.points for row in one.in_chapter(chapter))
    return ((points,) if attempts == "best" else ()) + one.submission.order


def _counted(graded: list[Graded], attempts: str) -> dict[str, Row]:
    """Question → row of the notebook that counts for its chapter."""
    rows = {}
    for chapter in sorted({row.chapter for one in graded for row in one.rows}):
        tried = [one for one in graded if one.in_chapter(chapter)]
        counts = max(tried, key=partial(_merit, chapter, attempts))
        rows.update({row.question: row for row in counts.in_chapter(chapter)})
    return rows
