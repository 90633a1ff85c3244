"""What was found, kept one file a submission, so that a killed run goes on."""

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
    """One question of one submission: what was found, and on what code."""

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
    """One submission: its rows, or why there are none.

    Attributes:
        submission: what was handed in.
        rows: one for each question asked.
        problem: why it was not graded, or "".
        isolation: the name of the walls within which it ran; "" where nothing ran.
        notes: what happened to cells that are neither answer nor check.
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
        """What the file as it stands is worth."""
        return sum(row.points for row in self.rows)

    @property
    def ever(self) -> int:
        """Points of the questions that are right now, or that the file says were."""
        return sum(
            row.maximum
            for row in self.rows
            if row.points or row.question in self.submission.shown
        )

    def in_chapter(self, chapter: str) -> list[ResultRow]:
        return [row for row in self.rows if row.chapter == chapter]


class ResultStore:
    """Results in a folder; each is there whole or not at all."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def known(self, key: str, submission: Submission) -> Graded | None:
        """What an earlier run found under this key; None where it is to be done."""
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
        """Write a result, in one step.

        Raises:
            OSError: the disk does not take it.
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
    """Write a file whole or not at all; what cannot be encoded is spelled out.

    Raises:
        OSError: the disk does not take it.
    """
    fresh = path.with_name(f".{path.name}-{os.getpid()}.new")
    try:
        # newline="": as it stands, for what writes CSV ends lines itself
        with fresh.open(
            "w", encoding=encoding, errors="backslashreplace", newline=""
        ) as file:
            file.write(text)
        os.replace(fresh, path)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
