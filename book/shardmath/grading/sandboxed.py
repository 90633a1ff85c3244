"""The inside of the sandbox: collects evidence from answers, or judges evidence.

``python -m shardmath.grading.sandboxed`` reads limits and a job from standard input. It
writes a line of JSON before each step and for each result: what came before a crash is
not lost.

A notebook's code cells run in their order, as they do for the student, and `check` is
one that takes the evidence in place of judging: what `check` was given is the answer.
Collecting runs what somebody wrote, so nothing it says is believed; judging runs in
a second process that has never seen the submission's code, only its evidence.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from ..exercises import Verdict, answers, page_function
from ..exercises.kinds.calling import describe
from ..exercises.kinds.number import Number
from ..exercises.kinds.question import Finding
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
        judge(left, job["tasks"], job.get("secret", ""), say)
    say(end=True)


def collect(cells: list, tasks: dict, skip: set, have: set, say) -> None:
    """Run a notebook's code cells in their order, and take the evidence.

    Args:
        cells: each with "at", the step that it is, or "" where it is ours, and one of
            "code", to run, with the "question" whose check cell it is, if any;
            "expression", to take as the answer where no check took one; and "typed",
            an answer from the website, by itself.
        skip: steps to leave out, for they ended an earlier run.
        have: questions whose evidence an earlier run brought. Their answers run, for
            later ones may use their names.
    """
    shell = _shell()
    apart = {cell["question"] for cell in cells if cell.get("is_check")}
    taker = _Taker(tasks, have, apart, say)
    for module in ("exercises", "exercises.check", "grading"):
        sys.modules[f"shardmath.{module}"].check = taker.check
    for cell in cells:
        if cell["at"] in skip:
            continue
        if cell["at"]:
            say(at=cell["at"])
        question = cell.get("question", "")
        if "typed" in cell:
            taker.take(question, lambda cell=cell: _typed(cell))
        elif "expression" in cell:
            if question not in taker.taken:
                names, code = shell.user_ns, cell["expression"]
                taker.take(question, lambda names=names, code=code: eval(code, names))
        else:
            taker.at = question if cell.get("is_check") else ""
            ran = shell.run_cell(cell["code"], silent=True)
            error = ran.error_before_exec or ran.error_in_exec
            if error is not None and cell["at"]:
                said = describe(error, None)
                say(question=cell["at"], result={"raises": said})
                taker.raised(said)


def _shell():
    from IPython.core.interactiveshell import InteractiveShell

    return as_in_jupyter(InteractiveShell.instance())


def as_in_jupyter(shell):
    """The shell, in which a cell goes on where it goes on in Jupyter.

    No command of the system can start here. In Jupyter, the lines behind a command that
    fails run all the same, and so they do here: `!pip install numpy` does nothing, and
    `names = !ls` gives no lines. `%matplotlib inline` finds what it looks for.
    """
    from IPython.utils.text import SList

    shell.system = lambda command: shell.user_ns.update(_exit_code=1)
    shell.getoutput = lambda command, split=True, depth=0: SList() if split else ""
    shell.enable_gui = lambda gui=None: None
    return shell


@dataclass
class _Taker:
    """Stands for `check`: takes the evidence of what it is given.

    Attributes:
        tasks: question → the case that its answer is tried on.
        have: questions whose evidence is there already.
        apart: questions with a check cell, whose checks elsewhere do not count.
        say: writes a line.
        at: the question whose check cell runs now, or "".
        taken: questions that need no other look.
    """

    tasks: dict
    have: set
    apart: set
    say: Callable
    at: str = ""
    taken: set = field(default_factory=set)

    def check(self, question: str, answer: object = ...) -> Verdict:
        """As `shardmath.exercises.check`, for a submission: the verdict comes later."""
        answers.find(question)  # as there, an error where no question has this id
        if question == self.at or question not in self.apart:
            self.take(question, lambda: answer)
        return Verdict(question, "todo", "it is judged when the notebook has run")

    def take(self, question: str, answer: Callable[[], object]) -> None:
        """Write what an answer does on its case."""
        self.taken.add(question)
        if question in self.tasks and question not in self.have:
            evidence = _evidence(question, answer, self.tasks[question])
            self.say(question=question, result=evidence)

    def raised(self, said: str) -> None:
        """Note that the check cell that runs now raised before its check."""
        if self.at and self.at not in self.taken:
            self.taken.add(self.at)
            evidence = {"invalid": f"the check cell raises {said}"}
            if self.at not in self.have:
                self.say(question=self.at, result=evidence)


def _typed(cell: dict) -> object:
    """The answer to a question as it was typed on the website."""
    record = answers.find(cell["question"])
    if isinstance(record, Number):
        return cell["typed"]
    return page_function.answer_of(record, cell["typed"])


def _evidence(question: str, read: Callable[[], object], task) -> dict:
    try:
        answer = read()
        if isinstance(answer, Finding):  # there is no answer, and it says why
            done = answer.verdict == "todo"
            return {"todo": True} if done else {"invalid": answer.message}
        evidence = answers.find(question).collect(answer, task)
        json.dumps(evidence)
    except BaseException as error:  # whatever the submission made of its names
        return {"invalid": f"the answer cannot be read: {describe(error, None)}"}
    return evidence


def judge(evidence: dict, tasks: dict, secret: str, say) -> None:
    """Judge the evidence of each question. What does not fit is invalid.

    Args:
        secret: what no answer knows; arrays are drawn from it.
    """
    for question, found in evidence.items():
        say(at=question)
        try:
            if "program" in found:
                found = {**found, "secret": secret}
            finding = answers.find(question).judge(found, tasks[question])
        except Exception as error:  # evidence of any shape may arrive here
            finding = Finding(
                "invalid", f"the evidence cannot be judged: {error!r:.200}"
            )
        say(question=question, result=vars(finding))


if __name__ == "__main__":
    main()
