"""The grader: one judge for the notebook, for a folder of submissions and for the page.

What is right is computed from the package, never taken from the notebook.
"""

import inspect
from dataclasses import dataclass, field

from .. import answers
from ..questions import Finding, Number

CHECK_MIME = "application/vnd.shardmath.check+json"  # a page shows an input field
MARKS = {"correct": "✓", "wrong": "✗", "todo": "○", "invalid": "!"}
_WRONG_TRIES_BEFORE_HINT = 2


@dataclass(frozen=True)
class Verdict:
    """What `check` found. Displays itself as text.

    Attributes:
        question: id, "01.3".
        verdict: "correct", "wrong", "todo" or "invalid".
        message: what was found, in words, the slip's explanation included.
        slip: name of the slip, or "".
        hint: the question's hint after the second wrong try, else "".
        note: one line about the progress file where it needs one, else "".
    """

    question: str
    verdict: str
    message: str
    slip: str = ""
    hint: str = ""
    note: str = ""
    on_page: bool = field(default=False, repr=False)

    def __repr__(self) -> str:
        mark = MARKS[self.verdict]
        lines = [f"{mark} {self.question} {self.verdict}: {self.message}"]
        lines += [f"Hint: {self.hint}"] if self.hint else []
        lines += [self.note] if self.note else []
        return "\n".join(lines)

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        bundle: dict = {"text/plain": repr(self)}
        if self.on_page:
            bundle[CHECK_MIME] = {"question": self.question}
        return bundle


@dataclass(frozen=True)
class Text:
    """Words that display themselves as they are."""

    text: str

    def __repr__(self) -> str:
        return self.text


def check(question: str, answer: object = ...) -> Verdict:
    """Judge `answer` to a question, keep the score, and say what was found.

    Args:
        question: its id, such as "01.3".
        answer: a number, string, function or program, as the question wants; `...` or
            None where there is none yet.

    Returns:
        A verdict that displays itself. Nothing that the answer does is raised.

    Raises:
        ValueError: no question has this id; lists the nearest.

    >>> check("01.1").verdict
    'todo'
    """
    from . import progress  # not at the top: the page has no disk

    record = answers.find(question)
    finding = examine(record, answer)
    hint = note = ""
    if finding.verdict in ("correct", "wrong"):
        right = finding.verdict == "correct"
        entry, note = progress.store().record(question, right)
        hint = _hint(record, finding, entry.wrong)
    return Verdict(
        question,
        finding.verdict,
        finding.message,
        finding.slip,
        hint,
        note,
        on_page=isinstance(record, Number),
    )


def examine(record, answer: object, seed: str = "notebook") -> Finding:
    """Draw, collect and judge in one go, in this process."""
    task = record.draw(seed)
    return record.judge(record.collect(answer, task), task)


def judge_number(question: str, answer: object, attempts: int = 0) -> dict:
    """Judge a number with the standard library alone and without keeping a score.

    Args:
        question: id of a number question.
        answer: what was typed, such as "459 TFLOPs/s", or a number.
        attempts: how many wrong answers came before this one.

    Returns:
        "verdict", "message", "slip" and "hint", all strings.

    Raises:
        ValueError: no number question has this id.

    >>> judge_number("01.1", "soon")["verdict"]
    'invalid'
    """
    record = answers.find(question)
    if not isinstance(record, Number):
        raise ValueError(f"question {question!r} wants code: answer it in the notebook")
    finding = examine(record, answer)
    return {
        "verdict": finding.verdict,
        "message": finding.message,
        "slip": finding.slip,
        "hint": _hint(record, finding, attempts + 1),
    }


def _hint(record, finding: Finding, wrong_tries: int) -> str:
    late = finding.verdict == "wrong" and wrong_tries >= _WRONG_TRIES_BEFORE_HINT
    return prose(record.hint) if late else ""


def prose(text: str) -> str:
    """A record's Markdown without the indentation that its source has.

    >>> prose('''
    ...     One line.
    ... ''')
    'One line.'
    """
    return inspect.cleandoc(text).strip()


def solution(question: str) -> Text:
    """The worked solution of a question.

    Raises:
        ValueError: no question has this id; lists the nearest.
    """
    return Text(prose(answers.find(question).solution))


def report(chapter: str = "") -> Text:
    """The score: questions done, tried and to do, and points, one row a chapter.

    Args:
        chapter: "01" for that one alone; all of them if not given.

    Returns:
        A sentence and a small table that display themselves.

    Raises:
        ValueError: no chapter with questions has this number; lists those that do.
    """
    from . import progress

    entries, note = progress.store().entries()
    chapters: dict[str, list] = {}
    for question, record in answers.questions().items():
        chapters.setdefault(question.partition(".")[0], []).append(record)
    if chapter and chapter not in chapters:
        known = ", ".join(chapters)
        raise ValueError(f"chapter {chapter!r}: those with questions are {known}")
    if chapter:
        chapters = {chapter: chapters[chapter]}
    rows = [_Score.of(name, records, entries) for name, records in chapters.items()]
    asked = [record for records in chapters.values() for record in records]
    total = _Score.of("all", asked, entries)
    lines = [
        f"{total.done} of {total.done + total.tried + total.todo} questions done, "
        f"{total.tried} tried, {total.todo} to do: "
        f"{total.points} of {total.possible} points.",
        "",
        f"{'chapter':<8}{'done':>6}{'tried':>7}{'to do':>7}{'points':>9}",
        *(row.line() for row in rows),
    ]
    return Text("\n".join([*lines, *([note] if note else [])]))


@dataclass(frozen=True)
class _Score:
    chapter: str
    done: int
    tried: int
    todo: int
    points: int
    possible: int

    @classmethod
    def of(cls, chapter: str, records: list, entries: dict) -> "_Score":
        done = [r for r in records if r.id in entries and entries[r.id].done]
        tried = [r for r in records if r.id in entries and not entries[r.id].done]
        return cls(
            chapter,
            len(done),
            len(tried),
            len(records) - len(done) - len(tried),
            sum(record.points for record in done),
            sum(record.points for record in records),
        )

    def line(self) -> str:
        points = f"{self.points}/{self.possible}"
        return (
            f"{self.chapter:<8}{self.done:>6}{self.tried:>7}{self.todo:>7}{points:>9}"
        )
