"""Grades one submission: collects evidence in the sandbox, then judges it in another.

A notebook's code cells run in their order, as the student ran them, behind the imports
of the reference notebook. They run apart; only the evidence comes back, and what is
right is decided where the student's code never ran.
"""

import itertools
import json
import time
from collections.abc import Iterable
from pathlib import Path

from ..exercises import answers
from ..exercises.check import MARKS
from ..exercises.kinds import Finding, Function, Number, Question, Traffic
from . import sandbox
from .isolation import Isolation, isolation
from .notebook import checked, role, source
from .results import Graded, ResultRow
from .submissions import Submission, printable

_LONGEST = 2000  # characters of what a page says of one answer
_MOST_NOTES = 20
_LONGEST_NOTE = 300
_INSIDE = "shardmath.grading.sandboxed"
_ON_THE_SITE = Number | Function | Traffic  # what a page can judge


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
    rung: Isolation | None = None,
) -> Graded:
    """Run one submission and judge its answers.

    Args:
        reference: chapter → cells of the exercise notebook.
        seed: draws the cases that functions are tried on, and the judge's secret.
        slot: the place where it runs.
        rung: the walls; the safest there are if not given.

    Raises:
        OSError: no walls are given, and none can be built here.
        RuntimeError: the sandbox did not start, which is no fault of the submission.
    """
    rung = rung or isolation()
    asked = submission.chapters & reference.keys()
    if submission.problem or not asked:
        why = submission.problem or "none of its cells answers a question asked"
        return Graded(submission, problem=why)
    cells = [cell for chapter in sorted(asked) for cell in reference[chapter]]
    asks = _asks(cells)
    tasks = {question: answers.find(question).draw(seed) for question in asks}
    if submission.is_saved_progress:
        plan = _plan_of_typed(submission, asks)
    else:
        setup = [cell for c in sorted(asked) for cell in _setup(reference[c])]
        plan = [*setup, *_plan(submission, asks)]
    steps = list(dict.fromkeys(cell["at"] for cell in plan if cell["at"]))

    def rounds(job: dict, steps: list[str], named: Iterable[str] = ()) -> tuple:
        job = {**job, "tasks": tasks}
        return _rounds(job, steps, limits, slot, rung, named)

    found, stopped = rounds({"cells": plan}, steps, asks) if steps else ({}, {})
    evidence = {q: found[q] for q in asks if q in found}
    told = {"evidence": evidence, "secret": f"the arrays of {seed}"}
    judged, unjudged = rounds(told, [*evidence]) if evidence else ({}, {})
    why = {**_reasons(plan, stopped), **unjudged}
    raised = {step: said for step in steps if (said := _raised(found.get(step)))}
    by_answer = {c["answers"]: raised[c["at"]] for c in plan if _failed(c, raised)}
    given = submission.given
    rows = []
    for q in asks:
        finding = None if q in evidence else _missing(submission, q)
        if finding is None:
            finding = _finding(q, q in given, judged, why, by_answer.get(q, ""))
        rows.append(ResultRow(q, finding, given.get(q, "")))
    notes = _notes(plan, stopped, raised)
    return Graded(submission, tuple(rows), isolation=rung.name, notes=notes)


def questions(reference: dict[str, list[dict]]) -> list[str]:
    """All that these exercise notebooks ask."""
    return [q for cells in reference.values() for q in _asks(cells)]


def _asks(cells: list[dict]) -> dict[str, str]:
    """Question → the expression that its check cell in the reference checks."""
    found = (checked(source(cell)) for cell in cells if role(cell)[1] == "check")
    return dict(filter(None, found))


def _setup(cells: list[dict]) -> list[dict]:
    """The first code of a reference notebook, which is ours: its imports."""
    first = itertools.takewhile(lambda cell: not role(cell)[1], cells)
    code = [source(cell) for cell in first if cell["cell_type"] == "code"]
    return [{"at": "", "code": each} for each in code]


def _plan(submission: Submission, asks: dict[str, str]) -> list[dict]:
    """The cells to run: the student's, and a check where a question has none left."""
    plan: list[dict] = []
    last: dict[str, int] = {}
    has_check = {s.question for s in submission.steps if s.role == "check"}
    for number, step in enumerate(submission.steps, 1):
        cell = {"at": f"code cell {number}", "code": step.code}
        if step.role == "answer":
            cell["answers"] = step.question
        if step.role == "check":
            cell |= {"question": step.question, "is_check": True}
        if step.question in asks and (step.role == "check") == (
            step.question in has_check
        ):
            last[step.question] = len(plan)
        plan.append(cell)
    for question, place in sorted(last.items(), key=lambda item: -item[1]):
        own = f"check of {question}"
        at = plan[place]["at"] if question in has_check else own
        looked = {"at": at, "question": question, "expression": asks[question]}
        plan.insert(place + 1, looked)
    return plan


def _plan_of_typed(submission: Submission, asks: dict[str, str]) -> list[dict]:
    """The answers from the website that it can judge, each by itself."""
    return [
        {"at": step.question, "question": step.question, "typed": step.code}
        for step in submission.steps
        if step.question in asks
        and step.code.strip()
        and isinstance(answers.find(step.question), _ON_THE_SITE)
    ]


def _rounds(
    job, steps, limits, slot, rung, named: Iterable[str] = ()
) -> tuple[dict, dict[str, str]]:
    """Results by name; a step that ends a run is left out of the next one.

    Each round but the last leaves out one step more, so there are at most as many as
    there are steps, and one. All rounds share one grant of time and of bytes: what is
    caused by the submission counts, and so does every start but the first.

    Args:
        steps: what the job comes to, one after the other.
        named: what else may have a result, such as questions.

    Returns:
        Name → result, and step → why it was stopped.

    Raises:
        RuntimeError: the sandbox did not come to the first step.
    """
    results: dict = {}
    stopped: dict[str, str] = {}
    left = min(limits.total, limits.seconds * len(steps))
    returned = sandbox.RETURNED
    asked = [*steps, *named]
    while True:
        told = {**job, "skip": sorted(stopped), "have": sorted(results)}
        began = time.monotonic()
        ran = sandbox.run(_INSIDE, told, asked, limits, slot, rung, left, returned)
        results.update(ran.results)
        left -= max(ran.seconds, time.monotonic() - began if stopped else 0)
        returned -= ran.size
        if ran.ended and not ran.at:  # before anything of the submission
            raise RuntimeError(f"the sandbox did not start: {ran.ended}")
        if not ran.ended or ran.at in stopped:
            return results, stopped
        stopped[ran.at] = ran.ended
        if left <= 0 or returned <= 0:
            late = f"what ran before it left no {'time' if left <= 0 else 'room'}"
            return results, dict.fromkeys(steps, late) | stopped


def _reasons(plan: list[dict], stopped: dict[str, str]) -> dict[str, str]:
    """Question → why one of its cells was stopped."""
    found: dict[str, str] = {}
    for cell in plan:
        question = cell.get("question") or cell.get("answers")
        if question and cell["at"] in stopped:
            found.setdefault(question, stopped[cell["at"]])
    return found


def _raised(result: object) -> str:
    """What a cell says to have raised, or ""."""
    said = result.get("raises") if isinstance(result, dict) else ""
    return said[:_LONGEST] if isinstance(said, str) else ""


def _failed(cell: dict, raised: dict[str, str]) -> bool:
    return "answers" in cell and cell["at"] in raised


def _notes(plan: list[dict], stopped: dict, raised: dict) -> tuple[str, ...]:
    """What happened to cells that are neither answer nor check."""
    notes = []
    for cell in plan:
        at, said = cell["at"], ""
        if not at or "question" in cell or "answers" in cell:
            continue
        if at in stopped:
            said = stopped[at]
        elif at in raised:
            said = f"it raises {raised[at]}"
        if said:
            start = (cell["code"].strip().splitlines() or [""])[0][:60]
            notes.append(printable(f"{at} ({start}): {said}")[:_LONGEST_NOTE])
    more = len(notes) - _MOST_NOTES
    return (*notes[:_MOST_NOTES], *([f"{more} more cells"] if more > 0 else []))


def _missing(submission: Submission, question: str) -> Finding | None:
    """What is still to do where the submission has nothing to judge."""
    steps = [step for step in submission.steps if step.question == question]
    if not steps:
        where = "file" if submission.is_saved_progress else "notebook"
        return Finding("todo", f"the {where} has no answer to it")
    if not submission.is_saved_progress:
        return None
    record: Question = answers.find(question)
    if not isinstance(record, _ON_THE_SITE):
        return Finding("todo", "the website cannot judge it: hand in the notebook")
    if not any(step.code.strip() for step in steps):
        return Finding("todo", "the file has no text of an answer to it")
    return None


def _finding(
    question: str,
    given: bool,
    judged: dict,
    stopped: dict[str, str],
    raised: str = "",
) -> Finding:
    """The finding on a question.

    Args:
        given: whether it has an answer cell, or a check cell that holds an answer.
        judged: question → finding as it came out of the sandbox.
        stopped: question → why one of its cells was stopped.
        raised: what its answer cell raised, or "".
    """
    found = None
    match judged.get(question):
        case {"verdict": str(verdict), "message": str(said), "slip": str(slip)} if (
            verdict in MARKS
        ):
            found = Finding(verdict, said[:_LONGEST], slip[:_LONGEST])
    if found and found.verdict == "correct":
        return found
    if not given:
        return Finding("todo", "its answer cell is missing")
    if raised:
        return Finding("invalid", f"the answer cell raises {raised}")
    if found:
        return found
    why = stopped.get(question, "no result of it came back")
    return Finding("invalid", f"not judged: {why}")
