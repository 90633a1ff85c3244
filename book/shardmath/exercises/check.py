"""Judges one answer for a notebook or for a page."""

import json
import re
from dataclasses import dataclass, field
from html import escape

from ..base.units import short_repr
from . import answers
from .kinds import Finding, Number, Question, prose
from .kinds.calling import describe
from .kinds.number import NEAR_MISSES
from .report import Text

CHECK_MIME = "application/vnd.shardmath.check+json"  # a page shows an input field
MARKS = {"correct": "✓", "wrong": "✗", "todo": "○", "invalid": "!"}
_WRONG_TRIES_BEFORE_HINT = 2
# Colours of the mark and of the bar next to the text. Their contrast is at least 3 : 1
# on white and on the dark backgrounds of notebooks.
_HUES = {"correct": "#2b9348", "wrong": "#e8590c", "invalid": "#a67c00"}


@dataclass(frozen=True)
class Verdict:
    """What `check` found. It displays itself as text, or in colour in a notebook.

    Attributes:
        question: the id of the question, such as "01.3".
        verdict: "correct", "wrong", "todo" or "invalid".
        message: the reason in words, including the slip's explanation.
        slip: the name of the slip, or "".
        hint: the question's hint from the second wrong try on, else "".
        note: one line on a problem with the progress file, or "".
        on_page: whether a page shows an input field for the question.
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
        if self.verdict in _HUES:  # "todo" is shown as text only
            bundle["text/html"] = self._html()
        if self.on_page:
            bundle[CHECK_MIME] = {"question": self.question}
        return bundle

    def _html(self) -> str:
        """Paragraphs: the mark, verdict and message, then the hint, then the note."""
        hue = _HUES[self.verdict]
        mark = f'<span style="color: {hue}">{MARKS[self.verdict]}</span>'
        head = f"<strong>{mark} {self.question} {self.verdict}</strong>"
        hint = f"<strong>Hint.</strong> {_marked(self.hint)}" if self.hint else ""
        parts = [f"{head} · {_marked(self.message)}", hint, escape(self.note)]
        style = f"border-left: 4px solid {hue}; padding: 2px 12px; max-width: 50em"
        words = "".join(
            f'<p style="margin: 4px 0">{part}</p>' for part in parts if part
        )
        return f'<div style="{style}">{words}</div>'


def _marked(text: str) -> str:
    """Text as HTML, with text between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def check(question: str, answer: object = ...) -> Verdict:
    """Judge `answer` to a question, add the verdict to the score, and return it.

    Args:
        question: the id of the question, such as "01.3".
        answer: a number, string, function or program, depending on the question; `...`
            or None if there is no answer yet.

    Returns:
        A verdict that displays itself. An exception that the answer raises becomes a
        finding, except `KeyboardInterrupt`.

    Raises:
        ValueError: no question has this id. The message lists the nearest ids.

    >>> check("01.1").verdict
    'todo'
    """
    from . import progress  # not at the top: the page has no disk

    record = answers.find(question)
    finding = examine(record, answer)
    hint = note = ""
    progress.store().stands(question, finding.verdict == "correct")
    if finding.verdict in ("correct", "wrong"):
        right = finding.verdict == "correct"
        entry, note = progress.store().record(question, right, finding.message)
        hint = _late_hint(record, finding, entry.wrong)
    return Verdict(
        question,
        finding.verdict,
        finding.message,
        finding.slip,
        hint,
        note,
        on_page=isinstance(record, Number),
    )


def examine(record: Question, answer: object, seed: str = "notebook") -> Finding:
    """Draw a case, collect the evidence and judge it, all in this process.

    Whatever an answer raises becomes a finding, even `SystemExit`. Only
    `KeyboardInterrupt` is passed on, because a reader stops the cell with it.

    >>> from shardmath.exercises import answers
    >>> print(examine(answers.find("01.1"), 5).message)
    5 FLOPs. That is too small by more than a factor of 1000.
    """
    case = record.draw(seed)
    try:  # JSON, as between two processes, so the judge sees no object of the answer
        evidence = json.loads(json.dumps(record.collect(answer, case)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Finding("invalid", f"the answer raises {describe(error, answer)}")
    try:
        return record.judge(evidence, case)
    except Exception as error:  # the judge compiles or replays the reader's program
        return Finding("invalid", f"it cannot be judged: {describe(error, None)}")


def judge_number(question: str, answer: object, attempts: int = 0) -> dict:
    """Judge a number without keeping a score, using only the standard library.

    Args:
        question: id of a number question.
        answer: the typed text, such as "459 TFLOPs/s", or a number.
        attempts: the number of earlier wrong answers.

    Returns:
        A dict of strings: "verdict", "message", "slip" and "hint".

    Raises:
        ValueError: no number question has this id.

    >>> judge_number("01.1", "soon")["verdict"]
    'invalid'
    """
    record = answers.find(question)
    if not isinstance(record, Number):
        raise ValueError(f"question {short_repr(question)} needs code, not a number")
    return for_page(record, examine(record, answer), attempts)


def for_page(record: Question, finding: Finding, attempts: int) -> dict[str, str]:
    """What a page shows of a finding after `attempts` earlier wrong answers."""
    return {
        "verdict": finding.verdict,
        "message": finding.message,
        "slip": finding.slip,
        "hint": _late_hint(record, finding, attempts + 1),
    }


def _late_hint(record: Question, finding: Finding, wrong_tries: int) -> str:
    """The hint of a question from the second wrong try on, else ""."""
    late = finding.verdict == "wrong" and wrong_tries >= _WRONG_TRIES_BEFORE_HINT
    return prose(record.hint) if late and finding.slip not in NEAR_MISSES else ""


def solution(question: str) -> Text:
    """The worked solution of a question, displayed as Markdown.

    Raises:
        ValueError: no question has this id. The message lists the nearest ids.

    >>> print(str(solution("01.1"))[:35])
    The result has $BF$ values. Each of
    """
    return Text(prose(answers.find(question).solution), markdown=True)
