"""Grades a folder of submitted exercise notebooks: ``python -m shardmath.grading DIR``.

Each submission is the reference notebook with the submission's answer cells. It runs
apart; only its answers come back, and what is right is decided here.
"""

import argparse
import csv
import json
import secrets
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from .. import answers
from ..questions.question import Finding
from . import feedback, sandbox
from .notebook import answers_in, checked, role, source

_LARGEST = 20 * 2**20  # bytes of a notebook


@dataclass(frozen=True)
class Row:
    """One question of one submission."""

    question: str
    finding: Finding
    points: int = 0


@dataclass(frozen=True)
class Graded:
    """One submission: its rows, or why there are none."""

    student: str
    notebook: str
    rows: tuple[Row, ...] = ()
    problem: str = ""

    @property
    def points(self) -> int:
        return sum(row.points for row in self.rows)


@dataclass(frozen=True)
class Submission:
    """What was found: the student, the path below the folder, and the bytes."""

    student: str
    notebook: str
    content: bytes


def submissions(folder: Path) -> list[Submission]:
    """Every notebook below `folder`, read now, before any of them runs.

    The student is the name of the first subfolder, or of the file where it lies in
    `folder` itself.
    """
    found = []
    for path in sorted(folder.rglob("*.ipynb")):
        below = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in below.parts)
        inside = path.resolve().is_relative_to(folder.resolve())
        if hidden or not inside or not path.is_file():
            continue
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        found.append(Submission(below.with_suffix("").parts[0], str(below), content))
    return found


def references(folder: Path) -> dict[str, list[dict]]:
    """Chapter → cells of its exercise notebook."""
    paths = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    if not paths:
        raise ValueError(
            f"{folder}: holds no exercise notebook such as 01_rooflines.ipynb"
        )
    return {path.name[:2]: json.loads(path.read_bytes())["cells"] for path in paths}


def grade(
    submission: Submission,
    reference: dict[str, list[dict]],
    seed: str,
    limits: sandbox.Limits,
) -> Graded:
    """Run one submission and judge its answers. Nothing it does is raised."""
    graded = Graded(submission.student, submission.notebook)
    try:
        given = _given(submission.content)
    except (ValueError, RecursionError) as error:
        return replace(graded, problem=str(error))
    asked = {question[:2] for question in given} & reference.keys()
    if not asked:
        return replace(
            graded, problem="none of its cells answers a question of the book"
        )
    cells = [cell for chapter in sorted(asked) for cell in reference[chapter]]
    steps, questions = _steps(cells, given)
    tasks = {question: answers.find(question).draw(seed) for question in questions}
    evidence, stopped = _rounds({"cells": steps, "tasks": tasks}, limits)
    judged, unjudged = _rounds({"evidence": evidence, "tasks": tasks}, limits)
    return replace(
        graded,
        rows=tuple(
            _row(question, question in given, judged, {**unjudged, **stopped})
            for question in questions
        ),
    )


def _given(content: bytes) -> dict[str, str]:
    """Question → answer cell of a submission's bytes."""
    if len(content) > _LARGEST:
        raise ValueError(f"it is larger than {_LARGEST >> 20} MiB")
    try:
        cells = json.loads(content)["cells"]
        return answers_in([dict(cell) for cell in cells])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("it is not a notebook") from None


def _steps(cells: list[dict], given: dict[str, str]) -> tuple[list[dict], list[str]]:
    """The code to run, and the questions: the reference, with the answers given."""
    steps, questions = [], []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        question, kind = role(cell)
        if kind == "answer":
            code = given.get(question, source(cell))
            steps.append({"question": question, "code": code})
        elif kind == "check":
            _, expression = checked(source(cell))
            steps.append({"question": question, "expression": expression})
            questions.append(question)
        else:
            steps.append({"code": source(cell)})
    return steps, questions


def _rounds(job: dict, limits: sandbox.Limits) -> tuple[dict, dict[str, str]]:
    """Results by question; a question that ends the run is left out of the next one.

    Returns:
        Question → result, and question → why it has none.
    """
    stopped: dict[str, str] = {}
    while True:
        told = {**job, "skip": sorted(stopped)}
        lines, ended = sandbox.run("shardmath.grading.sandboxed", told, limits)
        lines = [line for line in lines if isinstance(line, dict)]
        named = [line for line in lines if isinstance(line.get("question"), str)]
        results = {
            line["question"]: line["result"] for line in named if "result" in line
        }
        at = [line["at"] for line in lines if isinstance(line.get("at"), str)]
        if any("end" in line for line in lines) or not at or at[-1] in stopped:
            return results, stopped
        stopped[at[-1]] = ended


def _row(question: str, given: bool, judged: dict, stopped: dict[str, str]) -> Row:
    if not given:
        return Row(question, Finding("todo", "its answer cell is missing"))
    if question not in judged:
        why = stopped.get(question, "it never came to this question")
        return Row(question, Finding("invalid", f"not judged: {why}"))
    finding = Finding(**judged[question])
    points = answers.find(question).points if finding.verdict == "correct" else 0
    return Row(question, finding, points)


def write_csv(path: Path, graded: list[Graded]) -> None:
    """One line per question, or one without a question for an unreadable notebook."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["student", "question", "verdict", "slip", "points", "notebook"])
        for one in graded:
            who, where = _cell(one.student), _cell(one.notebook)
            if one.problem:
                table.writerow([who, "", "unreadable", "", 0, where])
            for row in one.rows:
                found = row.finding
                table.writerow(
                    [who, row.question, found.verdict, found.slip, row.points, where]
                )


def _cell(text: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def main(arguments: list[str] | None = None) -> int:
    """Grade a folder; 0 where it could be done, whatever the verdicts."""
    parser = argparse.ArgumentParser(prog="shardmath.grading", description=__doc__)
    parser.add_argument("folder", type=Path, help="holds the submitted notebooks")
    parser.add_argument("--reference", type=Path, default=Path("exercises"))
    parser.add_argument("--out", type=Path, help="default: the folder's name + -graded")
    parser.add_argument("--seconds", type=float, default=60, help="per run")
    parser.add_argument("--memory", type=float, default=4, help="GiB per process")
    parser.add_argument("--jobs", type=int, default=2, help="submissions at a time")
    parser.add_argument("--seed", default="", help="draws the same cases again")
    told = parser.parse_args(arguments)
    if not told.folder.is_dir():
        parser.error(f"{told.folder}: no such folder")
    found = submissions(told.folder)
    if not found:
        parser.error(f"{told.folder}: holds no notebook (.ipynb)")
    try:
        reference = references(told.reference)
    except ValueError as error:
        parser.error(str(error))
    if warning := sandbox.isolation()[1]:
        print(warning, file=sys.stderr)

    seed = told.seed or secrets.token_hex(8)
    limits = sandbox.Limits(told.seconds, int(told.memory * 2**30))
    with ThreadPoolExecutor(told.jobs) as pool:
        graded = list(pool.map(lambda one: grade(one, reference, seed, limits), found))
    out = told.out or told.folder.with_name(f"{told.folder.resolve().name}-graded")
    out.mkdir(parents=True, exist_ok=True)
    write_csv(out / "grades.csv", graded)
    feedback.write(out, graded, seed)
    print(f"{len(graded)} notebooks graded: {out / 'grades.csv'}, {out / 'index.html'}")
    return 0
