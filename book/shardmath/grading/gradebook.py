"""The results of a class: which attempt of each student counts, totals and slips.

The same questions count for all students. A chapter counts if --chapters names it or,
without that option, if more than half of the class handed it in. So no student can
raise the maximum for the others by handing in a chapter that was not assigned.

A file that the website saved counts in addition to a student's notebooks. If both
answer a question, --attempts decides which answer counts. If only one does, its answer
counts.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest

from ..exercises import answers
from .manual import Manual
from .results import Graded, ResultRow
from .submissions import LeftOut, Submission, cell

ATTEMPTS = ("latest", "best")
REPLACED = "a later notebook of the same student counts"


@dataclass(frozen=True)
class Student:
    """One student's results.

    Attributes:
        student: the name in the submissions or on the roster.
        name: from the roster, or "".
        rows: question → the row that counts.
        submitted: how many files were graded or should have been.
        on_roster: False if there is a roster and this student is not on it.
        by_hand: question → points that the instructor gives.
        ever: points for all questions that any file of the student answers correctly
            or claims to have answered correctly.
        problems: why a file was not graded, or that the student handed in nothing.
        is_late: whether any of the files that count was late according to the platform.
        isolation: the name of each isolation under which files that count ran.
    """

    student: str
    name: str = ""
    rows: dict[str, ResultRow] = field(default_factory=dict)
    submitted: int = 0
    on_roster: bool = True
    by_hand: dict[str, Manual] = field(default_factory=dict)
    ever: int = 0
    problems: tuple[str, ...] = ()
    is_late: bool = False
    isolation: tuple[str, ...] = ()

    def points(self, chapter: str = "") -> float:
        asked = [q for q in {**self.rows, **self.by_hand} if q.startswith(chapter)]
        return sum(
            self.by_hand[q].points if q in self.by_hand else self.rows[q].points
            for q in asked
        )


@dataclass(frozen=True)
class Summary:
    """How often each verdict and slip of a question occurred, frequent slips first."""

    question: str
    verdicts: dict[str, int]
    slips: tuple[tuple[str, int], ...]

    @property
    def asked(self) -> int:
        return sum(self.verdicts.values())


@dataclass(frozen=True)
class Class:
    """All students, and the questions that count.

    Attributes:
        left_out: a line about each chapter that does not count.
        notices: a line about each row of points given by hand that has no effect.
    """

    students: tuple[Student, ...]
    questions: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

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
        """One summary per question, in order."""
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
    left_out: Iterable[LeftOut] = (),
    by_hand: Iterable[Manual] = (),
) -> Class:
    """The results of the class.

    Args:
        graded: every submission. If there is a roster, owners of submissions must have
            the names that it lists (`students.enrolled`).
        attempts: which of a student's notebooks for a chapter counts: "latest" or
            "best".
        roster: student → name. The result includes students on it who handed in
            nothing.
        asked: the questions that count. By default, those of each chapter that more
            than half of the students handed in; if there is a roster, only the students
            on it are considered.
        left_out: files that were not graded. The result includes their owners.
        by_hand: points that replace those of the grader.
    """
    by_student: dict[str, list[Graded]] = {student: [] for student in roster or {}}
    for one in graded:
        by_student.setdefault(one.student, []).append(one)
    problems: dict[str, list[str]] = {}
    for thing in left_out:
        if thing.owner:
            by_student.setdefault(thing.owner.student, [])
            said = f"{thing.path}: {thing.why}"
            problems.setdefault(thing.owner.student, []).append(said)
    counted = {who: _counted(theirs, attempts) for who, theirs in by_student.items()}
    rows = {
        who: {question: row for question, (row, _) in theirs.items()}
        for who, theirs in counted.items()
    }
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
    by_hand = list(by_hand)
    students = [
        _student(
            Student(student, (roster or {}).get(student, "")),
            {q: found for q, found in counted[student].items() if q in asked},
            theirs,
            problems.get(student, []),
            {
                one.question: one
                for one in by_hand
                if one.question in asked and one.student in (student, cell(student))
            },
            asked,
            not roster or student in roster,
        )
        for student, theirs in by_student.items()
    ]
    chapters = {row.chapter for theirs in rows.values() for row in theirs.values()}
    without = [
        f"Chapter {chapter} does not count: {brought[chapter]} of {len(told)} students "
        "handed it in. Use --chapters to choose which chapters count."
        for chapter in sorted(chapters - {q.partition(".")[0] for q in asked})
    ]
    return Class(
        tuple(sorted(students, key=lambda s: s.student.casefold())),
        tuple(question for question in answers.questions() if question in asked),
        tuple(without),
        tuple(_unused(by_hand, {*by_student}, asked)),
    )


def _student(
    who: Student,
    counted: dict[str, tuple[ResultRow, Graded]],
    graded: list[Graded],
    problems: list[str],
    by_hand: dict[str, Manual],
    asked: Collection[str],
    on_roster: bool,
) -> Student:
    files = [one for _, one in counted.values()]
    shown = {q for one in graded for q in one.submission.shown}
    right = {row.question for one in graded for row in one.rows if row.points}
    wrong = [f"{one.notebook}: {one.problem}" for one in graded if one.problem]
    said = [line for line in wrong if not line.endswith(REPLACED)] + problems
    owners = (one.submission.owner for one in graded)
    said += dict.fromkeys(owner.notice for owner in owners if owner.notice)
    if not graded and not problems:
        said = ["handed in nothing"]
    return replace(
        who,
        rows={question: row for question, (row, _) in counted.items()},
        submitted=len(graded) + len(problems),
        on_roster=on_roster,
        by_hand=by_hand,
        ever=sum(answers.find(q).points for q in (shown | right) & {*asked}),
        problems=tuple(said),
        is_late=any(one.submission.owner.is_late for one in files),
        isolation=tuple(sorted({one.isolation for one in files} - {""})),
    )


def _unused(
    by_hand: list[Manual], students: set[str], asked: Collection[str]
) -> Iterable[str]:
    """A line on each row of points by hand that has no effect."""
    called = students | {cell(student) for student in students}
    for one in by_hand:
        given = f"Points by hand for {one.question} of “{one.student}” have no effect"
        if one.student not in called:
            yield f"{given}: there is no such student."
        elif one.question not in asked:
            yield f"{given}: the question does not count."


def turns(
    submissions: Iterable[Submission], attempts: str, chapters: Collection[str]
) -> tuple[list[Submission], list[Submission]]:
    """The submissions in the order in which to run them, and those that need not run.

    Students take turns, each with the latest submission first, so one student's many
    notebooks can't hold up the class. If the latest attempt counts, a submission is
    left out if later ones of the same kind by the same student answer all its chapters.
    """
    by_student: dict[str, list[Submission]] = {}
    replaced = []
    seen: dict[tuple[str, bool], set[str]] = {}
    for one in sorted(submissions, key=lambda one: one.order, reverse=True):
        answered = one.chapters & set(chapters)
        later = seen.setdefault((one.owner.student, one.is_saved_progress), set())
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


def _counted(
    graded: list[Graded], attempts: str
) -> dict[str, tuple[ResultRow, Graded]]:
    """Question → the row that counts, and the file it comes from."""
    rows: dict[str, tuple[ResultRow, Graded]] = {}
    for chapter in sorted({row.chapter for one in graded for row in one.rows}):
        for saved in (False, True):
            tried = [
                one
                for one in graded
                if one.in_chapter(chapter) and one.submission.is_saved_progress is saved
            ]
            if not tried:
                continue
            counts = max(tried, key=partial(_merit, chapter, attempts))
            for row in counts.in_chapter(chapter):
                both = [rows.get(row.question), (row, counts)]
                rows[row.question] = max(filter(None, both), key=_rank(attempts))
    return rows


def _rank(attempts: str):
    """A sort key for the rows of one question: answered last, then by `attempts`."""

    def rank(one: tuple[ResultRow, Graded]) -> tuple:
        row, graded = one
        points = (row.points,) if attempts == "best" else ()
        return (row.finding.verdict != "todo", *points, graded.submission.order)

    return rank
