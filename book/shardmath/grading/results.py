"""Results, saved in one file per submission, so an interrupted run can continue."""

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from ..exercises import answers
from ..exercises.kinds import Finding
from .submissions import Submission


@dataclass(frozen=True)
class ResultRow:
    """The result of one question of a submission: the finding, and the judged code."""

    question: str
    finding: Finding
    code: str = ""

    @property
    def points(self) -> int:
        return self.maximum if self.finding.verdict == "correct" else 0

    @property
    def maximum(self) -> int:
        return answers.find(self.question).points

    @property
    def chapter(self) -> str:
        return self.question.partition(".")[0]


@dataclass(frozen=True)
class Graded:
    """One graded submission: its rows, or the reason why there are none.

    Attributes:
        submission: what was handed in.
        rows: one for each question of its chapters.
        problem: why it was not graded, or "".
        isolation: the name of the isolation under which it ran, or "" if nothing ran.
        notes: why cells that hold neither an answer nor a check did not finish.
    """

    submission: Submission
    rows: tuple[ResultRow, ...] = ()
    problem: str = ""
    isolation: str = ""
    notes: tuple[str, ...] = ()

    @property
    def student(self) -> str:
        return self.submission.owner.student

    @property
    def notebook(self) -> str:
        return self.submission.notebook

    @property
    def points(self) -> int:
        """The points that this run gives the file."""
        return sum(row.points for row in self.rows)

    @property
    def ever(self) -> int:
        """Points for answers that are right, or that the file says were right once."""
        return sum(
            row.maximum
            for row in self.rows
            if row.points or row.question in self.submission.shown
        )

    def in_chapter(self, chapter: str) -> list[ResultRow]:
        return [row for row in self.rows if row.chapter == chapter]


class ResultStore:
    """Results saved in a folder, in which each file is either complete or absent."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def known(self, key: str, submission: Submission) -> Graded | None:
        """The result that an earlier run saved under this key, or None."""
        try:
            kept = json.loads((self.folder / f"{key}.json").read_bytes())
            rows = [
                ResultRow(row["question"], Finding(**row["finding"]), row["code"])
                for row in kept["rows"]
            ]
            for row in rows:
                answers.find(row.question)
            notes = tuple(map(str, kept["notes"]))
            problem, isolation = str(kept["problem"]), str(kept["isolation"])
            return Graded(submission, tuple(rows), problem, isolation, notes)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def keep(self, key: str, graded: Graded) -> None:
        """Save a result atomically.

        Raises:
            OSError: the file can't be written.
        """
        told = {
            "notebook": graded.notebook,
            "problem": graded.problem,
            "isolation": graded.isolation,
            "notes": graded.notes,
            "rows": [asdict(row) for row in graded.rows],
        }
        write(self.folder / f"{key}.json", json.dumps(told, indent=1))


def write(path: Path, text: str, encoding: str = "utf-8") -> None:
    """Write a file atomically. Characters that can't be encoded become escapes.

    Raises:
        OSError: the file can't be written.
    """
    fresh = path.with_name(f".{path.name}-{os.getpid()}.new")
    try:
        # newline="" because the text of a CSV already has its line endings
        with fresh.open(
            "w", encoding=encoding, errors="backslashreplace", newline=""
        ) as file:
            file.write(text)
        os.replace(fresh, path)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
