"""Grades one submission: collects evidence in the sandbox, then judges it in another.

A submission is the reference notebook with the submission's answer cells. It runs
apart; only its answers come back, and what is right is decided where its code never
ran.
"""

import json
import time
from pathlib import Path

from .. import answers
from ..questions import Finding
from . import sandbox
from .check import MARKS
from .notebook import checked, role, source
from .results import Graded, Row
from .submissions import Submission
from .walls import Walls

_LONGEST = 2000  # characters of what a page says of one answer
_INSIDE = "shardmath.grading.sandboxed"


def references(folder: Path) -> dict[str, list[dict]]:
    """Chapter → cells of its exercise notebook.

    Raises:
        ValueError: the folder holds none.
    """
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
    slot: sandbox.Slot = sandbox.ANYWHERE,
    rung: Walls | None = None,
) -> Graded:
    """Run one submission and judge its answers.

    Args:
        reference: chapter → cells of the exercise notebook.
        seed: draws the cases that functions are tried on.
        slot: the place where it runs.
        rung: the walls; the safest there are if not given.

    Raises:
        RuntimeError: the sandbox did not start, which is no fault of the submission.
    """
    given = submission.given
    asked = submission.chapters & reference.keys()
    if submission.problem or not asked:
        why = submission.problem or "none of its cells answers a question asked"
        return Graded(submission, problem=why)
    cells = [cell for chapter in sorted(asked) for cell in reference[chapter]]
    steps, asks = _steps(cells, given)
    tasks = {question: answers.find(question).draw(seed) for question in asks}

    def rounds(job: dict) -> tuple[dict, dict[str, str]]:
        return _rounds({**job, "tasks": tasks}, asks, limits, slot, rung)

    evidence, stopped = rounds({"cells": steps})
    judged, unjudged = rounds({"evidence": evidence})
    why = {**unjudged, **stopped}
    return Graded(
        submission,
        tuple(
            Row(q, _finding(q, q in given, judged, why), given.get(q, "")) for q in asks
        ),
    )


def questions(reference: dict[str, list[dict]]) -> list[str]:
    """All that these exercise notebooks ask."""
    return [q for cells in reference.values() for q in _steps(cells, {})[1]]


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


def _rounds(job, questions, limits, slot, rung) -> tuple[dict, dict[str, str]]:
    """Results by question; a question that ends a run is left out of the next one.

    Each round but the last leaves out one question more, so there are at most as many
    as there are questions, and one. All rounds share one grant of time and of bytes:
    what is caused by the submission counts, and so does every start but the first.

    Returns:
        Question → result, and question → why it has none.

    Raises:
        RuntimeError: the sandbox did not come to the first question.
    """
    results: dict = {}
    stopped: dict[str, str] = {}
    left, returned = limits.seconds * len(questions), sandbox.RETURNED
    while True:
        told = {**job, "skip": sorted(stopped), "have": sorted(results)}
        began = time.monotonic()
        ran = sandbox.run(_INSIDE, told, questions, limits, slot, rung, left, returned)
        results.update(ran.results)
        left -= max(ran.seconds, time.monotonic() - began if stopped else 0)
        returned -= ran.size
        if ran.ended and not ran.at:  # before anything of the submission
            raise RuntimeError(f"the sandbox did not start: {ran.ended}")
        if not ran.ended or ran.at in stopped:
            return results, stopped
        stopped[ran.at] = ran.ended
        if left <= 0 or returned <= 0:
            late = f"the questions before it left no {'time' if left <= 0 else 'room'}"
            return results, dict.fromkeys(questions, late) | stopped


def _finding(
    question: str, given: bool, judged: dict, stopped: dict[str, str]
) -> Finding:
    if not given:
        return Finding("todo", "its answer cell is missing")
    match judged.get(question):
        case {"verdict": str(verdict), "message": str(said), "slip": str(slip)} if (
            verdict in MARKS
        ):
            return Finding(verdict, said[:_LONGEST], slip[:_LONGEST])
    why = stopped.get(question, "no result of it came back")
    return Finding("invalid", f"not judged: {why}")
