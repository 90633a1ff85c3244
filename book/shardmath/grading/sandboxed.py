"""The inside of the sandbox: collects evidence from answers, or judges evidence.

``python -m shardmath.grading.sandboxed`` reads limits and a job from standard input. It
writes a line of JSON before and after each question: what came before a crash is not
lost.
Collecting runs what somebody wrote, so nothing it says is believed; judging runs in
a second process that has never seen the submission's code, only its evidence.
"""

import json
import os
import sys

from .. import answers
from ..questions.calling import describe
from ..questions.question import Finding
from .sandbox import Limits


def main() -> None:
    bounds = json.loads(sys.stdin.readline())
    if bounds["cpus"]:  # also sizes XLA's pools of threads, and so their memory
        os.sched_setaffinity(0, bounds["cpus"])
    Limits(**bounds["limits"]).apply()
    job = json.loads(sys.stdin.readline())  # it may hold evidence of any shape
    channel = os.fdopen(os.dup(1), "w")
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(silence, descriptor)
    os.chdir(os.environ["HOME"])

    def say(**line) -> None:
        channel.write(json.dumps(line) + "\n")
        channel.flush()

    if "cells" in job:
        collect(job["cells"], job["tasks"], set(job["skip"]), set(job["have"]), say)
    else:
        done = {*job["skip"], *job["have"]}
        left = {q: found for q, found in job["evidence"].items() if q not in done}
        judge(left, job["tasks"], say)
    say(end=True)


def collect(cells: list, tasks: dict, skip: set, have: set, say) -> None:
    """Run a notebook's code cells, and at each check cell take the evidence.

    Args:
        skip: questions to leave out, for they ended an earlier run.
        have: questions whose evidence an earlier run brought. Their answers run, for
            later ones may use their names.
    """
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    failed: dict[str, str] = {}
    for cell in cells:
        question = cell.get("question")
        if question in skip:
            continue
        if question:
            say(at=question)
        if "expression" not in cell:
            ran = shell.run_cell(cell["code"], silent=True)
            error = ran.error_before_exec or ran.error_in_exec
            if question and error is not None:
                failed[question] = describe(error, None)
            continue
        if question in have:
            continue
        if question in failed:
            evidence = {"invalid": f"the answer cell raises {failed[question]}"}
        else:
            evidence = _evidence(question, cell["expression"], shell.user_ns, tasks)
        say(question=question, result=evidence)


def _evidence(question: str, expression: str, names: dict, tasks: dict) -> dict:
    try:
        answer = eval(expression, names)
        evidence = answers.find(question).collect(answer, tasks[question])
        json.dumps(evidence)
    except BaseException as error:  # whatever the submission made of its names
        return {"invalid": f"the answer cannot be read: {describe(error, None)}"}
    return evidence


def judge(evidence: dict, tasks: dict, say) -> None:
    """Judge the evidence of each question. What does not fit is invalid."""
    for question, found in evidence.items():
        say(at=question)
        try:
            finding = answers.find(question).judge(found, tasks[question])
        except Exception as error:  # evidence of any shape may arrive here
            finding = Finding(
                "invalid", f"the evidence cannot be judged: {error!r:.200}"
            )
        say(question=question, result=vars(finding))


if __name__ == "__main__":
    main()
