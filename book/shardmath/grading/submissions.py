"""Reads a folder of submissions: which files are graded, and which are left out.

A submission is an exercise notebook, or the file in which the website saves a reader's
progress, with the text of each answer.
"""

import errno
import functools
import hashlib
import json
import os
import re
import stat
from dataclasses import asdict, dataclass
from pathlib import Path

from .notebook import CodeCell, answers_of, shown_correct, steps_in
from .students import Owner, is_platforms, owner

_LARGEST = 64 * 2**20  # bytes of a notebook with its outputs
_LARGEST_CODE = 2**20  # bytes of all its code
_MOST_CELLS = 2000  # of code
_DEEPEST = 20  # folders
_MOST_BRACKETS = 2**21  # in its bytes; each may become a list of 64 bytes, or a dict
# Control characters, line ends, and marks that change the direction of writing.
_UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
# A formula's first character. Some spreadsheets also start a cell after a semicolon.
_FORMULA = re.compile(r"""(^|;)(?=[\s"]*[=+\-@＝＋－＠])""")
_ARCHIVES = (".zip", ".gz", ".tar", ".tgz", ".7z", ".rar", ".bz2", ".xz")
# A file with one of these endings was handed in, even directly in the top folder.
_DOCUMENTS = (*_ARCHIVES, ".py", ".html", ".htm", ".pdf", ".txt", ".md", ".docx")
_QUESTION = re.compile(r"\d\d\.[1-9]\d*")
_SAVED, _VERSION = "Shardmath progress", 1  # as book/_static/progress.js writes them


@dataclass(frozen=True)
class Submission:
    """A file that was handed in: its contents, or the reason why it cannot be read.

    Attributes:
        owner: the student who handed it in.
        notebook: the path of the file below the folder, in printable form.
        steps: the code cells in order. For a saved progress file, these are the
            answers, with the role "typed".
        problem: why there is nothing to grade, or "".
        changed: when the file was last changed, in seconds since 1970.
        shown: the questions that, according to the file, were answered correctly. This
            proves nothing.
    """

    owner: Owner
    notebook: str
    steps: tuple[CodeCell, ...] = ()
    problem: str = ""
    changed: float = 0
    shown: frozenset[str] = frozenset()

    @functools.cached_property
    def given(self) -> dict[str, str]:
        """Question → source of its answer."""
        if self.is_saved_progress:
            return {step.question: step.code for step in self.steps}
        return answers_of(list(self.steps))

    @property
    def is_saved_progress(self) -> bool:
        """Whether it comes from the website instead of a notebook."""
        return self.notebook.lower().endswith(".json")

    @property
    def chapters(self) -> set[str]:
        """The chapters that it claims to answer, which may not exist in the book."""
        return {step.question.partition(".")[0] for step in self.steps} - {""}

    @property
    def order(self) -> tuple:
        """A key that sorts a student's attempts, the latest last."""
        return self.owner.when, self.changed, self.notebook

    @property
    def digest(self) -> str:
        """A hash of its path, its code and its problem."""
        told = [self.notebook, [asdict(step) for step in self.steps], self.problem]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


@dataclass(frozen=True)
class LeftOut:
    """Something in the folder that is not graded, and its owner if this is known."""

    path: str
    why: str
    owner: Owner | None = None


def printable(name: str) -> str:
    r"""A file's name as one line of valid text, with invisible characters escaped.

    >>> printable("caf\udce9.ipynb"), printable("a\n\x1b[2J")
    ('caf\\udce9.ipynb', 'a\\n\\x1b[2J')
    """
    shown = _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], name)
    return shown.encode("utf-8", "backslashreplace").decode()


def cell(value: object) -> str:
    """A value as text that no spreadsheet reads as a formula.

    >>> cell("=1+1"), cell("x;=1+1"), cell(-3)
    ("'=1+1", "x;'=1+1", '-3')
    """
    if not isinstance(value, str):
        return str(value)
    return _FORMULA.sub(r"\1'", printable(value))


def found(folder: Path) -> tuple[list[Submission], list[LeftOut]]:
    """All files below `folder`. All of them are read before any submission runs."""
    submissions: list[Submission] = []
    left_out: list[LeftOut] = []
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        parts = waiting.pop()
        try:
            with os.scandir(folder.joinpath(*parts)) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            whose = _owner(parts) if parts else None
            left_out.append(LeftOut(_shown(parts), _why(error), whose))
            continue
        for entry in inside:
            place = (*parts, entry.name)
            why = _unfit(entry, len(place))
            if why:
                left_out.append(LeftOut(_shown(place), why, _sender(entry, place)))
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(place)
            else:
                submissions.append(_submission(folder, place))
    submissions.sort(key=lambda one: one.notebook)
    return submissions, sorted(left_out, key=lambda one: one.path)


def _unfit(entry: os.DirEntry, depth: int) -> str:
    """Why an entry is neither a submission nor a folder to search, or ""."""
    name = entry.name.lower()
    if entry.is_symlink():
        return "a symbolic link"
    if entry.is_dir(follow_symlinks=False):
        if name.startswith(".") or name == "__macosx":
            return "a hidden folder"
        return "nested too deeply" if depth > _DEEPEST else ""
    if name.startswith("."):
        return "a hidden file"
    if name.endswith(_ARCHIVES):
        return "an archive; unpack it first"
    if not name.endswith((".ipynb", ".json")):
        return "neither a notebook (.ipynb) nor a saved progress file (.json)"
    if not entry.is_file(follow_symlinks=False):
        return "not a file"
    return ""


def _sender(entry: os.DirEntry, place: tuple[str, ...]) -> Owner | None:
    """The owner of a file that is not graded, or None if it was probably not handed in.

    The instructor's own files, such as a roster, may be directly in the folder.
    """
    if entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
        return None
    handed_in = len(place) > 1 or is_platforms(entry.name)
    handed_in = handed_in or entry.name.lower().endswith(_DOCUMENTS)
    return _owner(place) if handed_in else None


def _owner(place: tuple[str, ...]) -> Owner:
    *folders, file = (_shown((part,)) for part in place)
    return owner(folders[0] if folders else os.path.splitext(file)[0], file)


def _submission(folder: Path, place: tuple[str, ...]) -> Submission:
    steps: list[CodeCell] = []
    shown: frozenset[str] = frozenset()
    problem, changed = "", 0.0
    read = _saved if place[-1].lower().endswith(".json") else _notebook
    try:
        content, changed = _content(folder.joinpath(*place))
        if content.count(b"[") + content.count(b"{") > _MOST_BRACKETS:
            raise ValueError(f"it has over {_MOST_BRACKETS} brackets; clear outputs")
        steps, shown = read(content)
        if sum(len(step.code) for step in steps) > _LARGEST_CODE:
            raise ValueError(f"its code is larger than {_LARGEST_CODE >> 20} MiB")
        if len(steps) > _MOST_CELLS:
            raise ValueError(f"it has more than {_MOST_CELLS} code cells: {len(steps)}")
    except OSError as error:
        problem = _why(error)
    except (ValueError, RecursionError, MemoryError) as error:
        problem = str(error) or "it cannot be read"
    if problem:
        steps, shown = [], frozenset()
    whose = _owner(place)
    return Submission(whose, _shown(place), tuple(steps), problem, changed, shown)


def _content(path: Path) -> tuple[bytes, float]:
    """A file's bytes and its time, unless it has been replaced by something else."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("it is not a file")
        if about.st_size > _LARGEST:
            raise ValueError(f"it is over {_LARGEST >> 20} MiB; clear outputs")
        return file.read(_LARGEST), about.st_mtime


def _notebook(content: bytes) -> tuple[list[CodeCell], frozenset[str]]:
    """A notebook's code cells, and the questions that stored verdicts call correct."""
    try:
        cells = [dict(cell) for cell in json.loads(content)["cells"]]
        return steps_in(cells), shown_correct(cells)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("it is not a notebook") from None


def _saved(content: bytes) -> tuple[list[CodeCell], frozenset[str]]:
    """The answers in a file that the website saved, and those ever judged right."""
    try:
        told = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError("it is damaged or isn't JSON") from None
    if not isinstance(told, dict) or told.get("kind") != _SAVED:
        if isinstance(told, dict) and "schema" in told and "questions" in told:
            raise ValueError("it has verdicts but no answers; hand in the notebook")
        raise ValueError("it is not a progress file from the website")
    if told.get("version") != _VERSION:
        version = str(told.get("version"))[:20]
        raise ValueError(f"it has version {version}; only {_VERSION} can be read")
    answers = told.get("answers")
    if not isinstance(answers, dict) or not all(map(_is_answer, answers.items())):
        raise ValueError("it is damaged: its answers cannot be read")
    steps = [CodeCell(entry["text"], q, "typed") for q, entry in answers.items()]
    right = [q for q, entry in answers.items() if "right" in _verdicts(entry)]
    return steps, frozenset(right)


def _is_answer(named: tuple[str, object]) -> bool:
    question, entry = named
    return (
        _QUESTION.fullmatch(question) is not None
        and isinstance(entry, dict)
        and isinstance(entry.get("text"), str)
    )


def _verdicts(entry: dict) -> list:
    """The verdict on the current text, and the best verdict so far."""
    return [entry.get("verdict"), entry.get("best")]


def _shown(parts: tuple[str, ...]) -> str:
    """A path in printable form, different for each path."""
    return printable("/".join(parts).replace("\\", "\\\\"))


def _why(error: OSError) -> str:
    if error.errno == errno.EACCES:
        return "it may not be read"
    return f"it cannot be read: {error.strerror or error}"
