"""What lies in a folder of submissions: notebooks to grade, and what is left out."""

import errno
import hashlib
import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from .notebook import answers_in
from .students import Owner, owner

_LARGEST = 64 * 2**20  # bytes of a notebook with its outputs
_LARGEST_CODE = 2**20  # bytes of all its answers
_DEEPEST = 20  # folders
_MOST_BRACKETS = 2**21  # in its bytes: each may become a list of 64 bytes, or a dict
# Controls, ends of lines, and what turns the direction of writing.
_UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_ARCHIVES = (".zip", ".gz", ".tar", ".tgz", ".7z", ".rar", ".bz2", ".xz")


@dataclass(frozen=True)
class Submission:
    """A notebook that was handed in, or why it cannot be read.

    Attributes:
        owner: whose it is.
        notebook: its path below the folder, fit to print.
        given: question → source of its answer cell.
        problem: why there is nothing to grade, or "".
        changed: when its file was, in seconds since 1970.
    """

    owner: Owner
    notebook: str
    given: dict[str, str]
    problem: str = ""
    changed: float = 0

    @property
    def chapters(self) -> set[str]:
        """Those that it says to answer; the book may have others."""
        return {question.partition(".")[0] for question in self.given}

    @property
    def order(self) -> tuple:
        """Sorts a student's attempts, the latest last."""
        return self.owner.when, self.changed, self.notebook

    @property
    def digest(self) -> str:
        """The same for the same answers in the same place."""
        told = [self.notebook, self.given, self.problem]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


@dataclass(frozen=True)
class LeftOut:
    """Something in the folder that is not graded."""

    path: str
    why: str


def printable(name: str) -> str:
    r"""A file's name as one line that can be written anywhere and reads as it is.

    >>> printable("caf\udce9.ipynb"), printable("a\n\x1b[2J")
    ('caf\\udce9.ipynb', 'a\\n\\x1b[2J')
    """
    shown = _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], name)
    return shown.encode("utf-8", "backslashreplace").decode()


def found(folder: Path) -> tuple[list[Submission], list[LeftOut]]:
    """Everything below `folder`, read now, before any of it runs."""
    submissions: list[Submission] = []
    left_out: list[LeftOut] = []
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        parts = waiting.pop()
        try:
            with os.scandir(folder.joinpath(*parts)) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            left_out.append(LeftOut(_shown(parts), _why(error)))
            continue
        for entry in inside:
            place = (*parts, entry.name)
            why = _unfit(entry, len(place))
            if why:
                left_out.append(LeftOut(_shown(place), why))
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(place)
            else:
                submissions.append(_submission(folder, place))
    submissions.sort(key=lambda one: one.notebook)
    return submissions, sorted(left_out, key=lambda one: one.path)


def _unfit(entry: os.DirEntry, depth: int) -> str:
    """Why an entry is neither a notebook nor a folder to look into, or ""."""
    name = entry.name.lower()
    if entry.is_symlink():
        return "a symbolic link"
    if entry.is_dir(follow_symlinks=False):
        if name.startswith(".") or name == "__macosx":
            return "a hidden folder"
        return "nested too deep" if depth > _DEEPEST else ""
    if name.startswith("."):
        return "a hidden file"
    if name.endswith(_ARCHIVES):
        return "an archive: unpack it"
    if not name.endswith(".ipynb"):
        return "not a notebook (.ipynb)"
    if not entry.is_file(follow_symlinks=False):
        return "not a file"
    return ""


def _submission(folder: Path, place: tuple[str, ...]) -> Submission:
    *folders, file = (_shown((part,)) for part in place)
    whose = owner(folders[0] if folders else file[: -len(".ipynb")], file)
    given: dict[str, str] = {}
    problem, changed = "", 0.0
    try:
        content, changed = _content(folder.joinpath(*place))
        given = _given(content)
    except OSError as error:
        problem = _why(error)
    except (ValueError, RecursionError, MemoryError) as error:
        problem = str(error) or "it is not a notebook"
    return Submission(whose, _shown(place), given, problem, changed)


def _content(path: Path) -> tuple[bytes, float]:
    """A file's bytes and its time. It may have become something else since seen."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("it is not a file")
        if about.st_size > _LARGEST:
            raise ValueError(f"it is larger than {_LARGEST >> 20} MiB: clear outputs")
        return file.read(_LARGEST), about.st_mtime


def _given(content: bytes) -> dict[str, str]:
    """Question → answer cell of a notebook's bytes. Outputs are not looked at."""
    if content.count(b"[") + content.count(b"{") > _MOST_BRACKETS:
        raise ValueError(f"it holds over {_MOST_BRACKETS} brackets: clear outputs")
    try:
        cells = json.loads(content)["cells"]
        given = answers_in([dict(cell) for cell in cells])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("it is not a notebook") from None
    if sum(map(len, given.values())) > _LARGEST_CODE:
        raise ValueError(f"its answers are larger than {_LARGEST_CODE >> 20} MiB")
    return given


def _shown(parts: tuple[str, ...]) -> str:
    """A path fit to print; no two are alike."""
    return printable("/".join(parts).replace("\\", "\\\\"))


def _why(error: OSError) -> str:
    if error.errno == errno.EACCES:
        return "it may not be read"
    return f"it cannot be read: {error.strerror or error}"
