"""The reader's progress, in a small JSON file that several kernels can share safely.

A crash during a write does not damage it. The file looks like this:

    {"schema": 1, "questions": {"01.3": {"done": true, "wrong": 2}}}

Anything else in the file, from an older or a newer version, is kept unchanged.
"""

import contextlib
import copy
import functools
import itertools
import json
import os
from dataclasses import dataclass
from pathlib import Path

SCHEMA = 1
_PATIENCE = 5.0  # seconds to wait while another kernel is writing


@dataclass(frozen=True)
class Entry:
    """Whether a question was ever answered correctly, and how often wrongly."""

    done: bool = False
    wrong: int = 0


class ProgressStore:
    """Progress in the file at `path`, or only in this process if `path` is None.

    Verdicts that cannot be saved are kept in memory and saved with the next verdict, so
    hints appear in time even if the disk is full or read-only.

    Args:
        path: the file, or None.
        problem: why the file can be neither read nor written, if that is known.
    """

    def __init__(self, path: Path | None, problem: str = ""):
        self.path = path
        self._problem = problem
        self._saved: dict = {"schema": SCHEMA, "questions": {}}
        self._unsaved: list[tuple[str, bool]] = []
        self._found: dict[str, str] = {}
        self._stands: dict[str, bool] = {}
        self._lock = _lock(path) if path and not problem else None

    def stands(self, question: str, right: bool) -> None:
        """Record whether the last check of a question found the answer right."""
        self._stands[question] = right

    def standing(self) -> frozenset[str]:
        """The questions whose last check, in this process, found the answer right."""
        return frozenset(question for question, right in self._stands.items() if right)

    def record(self, question: str, right: bool, found: str = "") -> tuple[Entry, str]:
        """Add a verdict, and return the question's entry and a note or "".

        If `found` is given, repeating it with a wrong answer does not count as a new
        try, because the reader has only run the cell again.
        """
        if right or not found or self._found.get(question) != found:
            self._unsaved.append((question, right))
        self._found[question] = found
        note = ""
        try:
            with self._locked():
                note = self._refresh()
                known = self._known()
                self._write(known)
            self._saved, self._unsaved = known, []
        except OSError as error:
            note = self._note("saved in", error)
        return _entry(self._known(), question), note

    def entries(self) -> tuple[dict[str, Entry], str]:
        """The entry of each question, by its id, and a note or ""."""
        note = ""
        try:
            note = self._refresh()
        except OSError as error:
            note = self._note("read from", error)
        known = self._known()
        return {
            question: _entry(known, question) for question in known["questions"]
        }, note

    def _note(self, done: str, error: OSError) -> str:
        done = f"{done} {self.path}" if self.path else done.split()[0]
        return f"Progress is not {done}: {error.strerror or error}."

    def _known(self) -> dict:
        """The saved progress, together with the verdicts since then."""
        known = copy.deepcopy(self._saved)
        for question, right in self._unsaved:
            entry = known["questions"].setdefault(question, {})
            if right:
                entry["done"] = True
            else:
                entry["wrong"] = _entry(known, question).wrong + 1
        return known

    @contextlib.contextmanager
    def _locked(self):
        if self._problem:
            raise OSError(self._problem)
        if self._lock is None:
            yield
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            yield

    def _refresh(self) -> str:
        """Read the file. If it is damaged, rename it and return a note that says so."""
        try:
            self._read()
        except ValueError:
            with self._locked():
                return self._set_aside()
        return ""

    def _read(self) -> None:
        if self._problem:
            raise OSError(self._problem)
        if self.path is not None:
            with contextlib.suppress(FileNotFoundError):
                self._saved = _parsed(self.path.read_bytes())

    def _set_aside(self) -> str:
        """Rename a damaged file, unless another kernel has replaced it meanwhile."""
        try:
            self._read()
        except ValueError as damage:
            aside = self._free_name()
            self.path.rename(aside)
            return (
                f"The progress file was damaged ({damage}), so a new one was started. "
                f"The old one was kept as {aside}."
            )
        return ""

    def _free_name(self) -> Path:
        for number in itertools.count(1):
            name = f"{self.path.stem}.damaged-{number}{self.path.suffix}"
            if not os.path.lexists(aside := self.path.with_name(name)):
                return aside
        raise AssertionError("unreachable")

    def _write(self, known: dict) -> None:
        """Write atomically, so a crash leaves either the old file or the new one."""
        if self.path is None:
            return
        fresh = self.path.with_name(f"{self.path.name}.new")
        with fresh.open("w", encoding="utf-8") as file:
            json.dump(known, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)


def _parsed(content: bytes) -> dict:
    """The file's content, checked as far as this version relies on it."""
    try:
        data = json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    questions = data.get("questions") if isinstance(data, dict) else None
    rows = questions.values() if isinstance(questions, dict) else [None]
    if all(isinstance(entry, dict) for entry in rows):
        return {"schema": SCHEMA, **data}
    schema = data.get("schema") if isinstance(data, dict) else None
    if type(schema) is int and schema > SCHEMA:
        raise OSError(f"it has schema {schema}; this version can read only {SCHEMA}")
    raise ValueError("no table of questions")


def _entry(known: dict, question: str) -> Entry:
    entry = known["questions"].get(question, {})
    wrong = entry.get("wrong", 0)
    return Entry(entry.get("done") is True, wrong if type(wrong) is int else 0)


def store() -> ProgressStore:
    """The reader's store, in the file `SHARDMATH_PROGRESS` or the user's data folder.

    Progress is kept only in this process if `SHARDMATH_PROGRESS` is empty, or if the
    packages platformdirs and filelock are not installed.
    """
    return _store(os.environ.get("SHARDMATH_PROGRESS"))


@functools.cache
def _store(place: str | None) -> ProgressStore:
    if place == "":
        return ProgressStore(None)
    try:
        if place is None:
            place = _usual_place()
        return ProgressStore(Path(place).expanduser().resolve())
    except ModuleNotFoundError as missing:
        return ProgressStore(None, problem=f"{missing.name} is not installed")
    except (OSError, RuntimeError) as error:  # such as "~nobody/x" or a loop of links
        return ProgressStore(Path(place), problem=str(error))


def _usual_place() -> str:
    import platformdirs  # here and below: a copied notebook may run without it

    return str(platformdirs.user_data_path("shardmath") / "progress.json")


def _lock(path: Path):
    """A lock of the operating system, which is released when a kernel is killed."""
    from filelock import FileLock

    return FileLock(f"{path}.lock", timeout=_PATIENCE)
