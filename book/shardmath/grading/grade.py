"""Grades one submission: collects evidence in one sandbox and judges it in another.

A notebook's code cells run from top to bottom, as the student ran them, after the
imports of the reference notebook. Only the evidence leaves this sandbox. It is judged
in a process in which the student's code never ran.
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

_LONGEST = 2000  # characters that a page shows about one answer
_MOST_NOTES = 20
_LONGEST_NOTE = 300
_INSIDE = "shardmath.grading.sandboxed"
_ON_THE_SITE = Number | Function | Traffic  # what a page can judge


def references(folder: Path) -> dict[str, list[dict]]:
    """Chapter → cells of its exercise notebook.

    Raises:
        ValueError: the folder holds no exercise notebook.
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
        seed: determines the cases on which functions are tested, and the judge's
            secret.
        limits: the limits on time, memory and disk.
        slot: the place where it runs.
        rung: the isolation; by default the safest that works here.

    Raises:
        OSError: no isolation is given, and none works here.
        RuntimeError: the sandbox did not start, which is not the submission's fault.
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
    """The ids of all questions in these exercise notebooks."""
    return [q for cells in reference.values() for q in _asks(cells)]


def _asks(cells: list[dict]) -> dict[str, str]:
    """Question → the expression that its check cell in the reference checks."""
    found = (checked(source(cell)) for cell in cells if role(cell)[1] == "check")
    return dict(filter(None, found))


def _setup(cells: list[dict]) -> list[dict]:
    """The code at the start of a reference notebook, which holds its imports."""
    first = itertools.takewhile(lambda cell: not role(cell)[1], cells)
    code = [source(cell) for cell in first if cell["cell_type"] == "code"]
    return [{"at": "", "code": each} for each in code]


def _plan(submission: Submission, asks: dict[str, str]) -> list[dict]:
    """The student's cells, and a check for each question, in the order to run them."""
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
    """The saved answers that the website can judge, each as a separate step."""
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
    """Run a job repeatedly, each time without the steps that ended earlier runs.

    Each round but the last leaves out one more step, so there are at most
    len(steps) + 1 rounds. All rounds share one allowance of time and of bytes. Every
    start of the sandbox except the first counts towards the time.

    Args:
        steps: the job's steps in order.
        named: what else may have a result, such as questions.

    Returns:
        Name → result, and step → why it was stopped.

    Raises:
        RuntimeError: the sandbox did not reach the first step.
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
        if ran.ended and not ran.at:  # before any step of the submission
            raise RuntimeError(f"the sandbox did not start: {ran.ended}")
        if not ran.ended or ran.at in stopped:
            return results, stopped
        stopped[ran.at] = ran.ended
        if left <= 0 or returned <= 0:
            late = f"earlier steps hit the {'time' if left <= 0 else 'output'} limit"
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
    """The exception that a cell reports, or ""."""
    said = result.get("raises") if isinstance(result, dict) else ""
    return said[:_LONGEST] if isinstance(said, str) else ""


def _failed(cell: dict, raised: dict[str, str]) -> bool:
    return "answers" in cell and cell["at"] in raised


def _notes(plan: list[dict], stopped: dict, raised: dict) -> tuple[str, ...]:
    """Why cells that are neither answer nor check did not finish."""
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
    """A "todo" finding if the submission has nothing to judge for this question."""
    steps = [step for step in submission.steps if step.question == question]
    if not steps:
        where = "file" if submission.is_saved_progress else "notebook"
        return Finding("todo", f"the {where} has no answer to it")
    if not submission.is_saved_progress:
        return None
    record: Question = answers.find(question)
    if not isinstance(record, _ON_THE_SITE):
        return Finding("todo", "the website can't judge it, so hand in the notebook")
    if not any(step.code.strip() for step in steps):
        return Finding("todo", "the answer in the file is empty")
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
        given: whether the notebook has an answer cell for it, or a check cell that
            holds an answer.
        judged: question → finding as the sandbox returned it.
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
    why = stopped.get(question, "the sandbox returned no result for it")
    return Finding("invalid", f"not judged: {why}")
