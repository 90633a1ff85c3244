"""The program in the sandbox: collects evidence from answers, or judges evidence.

``python -m shardmath.grading.sandboxed`` reads limits and a job from standard input. It
writes a line of JSON before each step and for each result, so a crash loses nothing
that came before it.

A notebook's code cells run from top to bottom, as they do for the student. Its `check`
is replaced by a function that collects evidence instead of judging, and whatever it
receives is the answer. Because collecting runs the submission's code, the evidence is
not trusted. Judging runs in a second process, which sees only the evidence.
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
    if bounds["cpus"]:  # this also sizes XLA's thread pools, and so their memory
        os.sched_setaffinity(0, bounds["cpus"])
    Limits(**bounds["limits"]).apply()
    job = json.loads(sys.stdin.readline())  # after the limits: evidence isn't trusted
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
    """Run a notebook's code cells from top to bottom, and collect the evidence.

    Args:
        cells: each has "at", the name of its step, or "" if it comes from the reference
            notebook, and one of these: "code", to run, with "is_check" and the
            "question" if it is a check cell; "expression", the answer to "question" if
            no check has taken one; or "typed", an answer from the website.
        tasks: question → the case on which its answer is tested.
        skip: steps to leave out because they ended an earlier run.
        have: questions whose evidence an earlier run returned. Their answers run again,
            because later ones may use their variables.
        say: writes its keyword arguments as a line of JSON.
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
    """Make shell commands do nothing, so that the rest of a cell still runs.

    The sandbox can't start system commands. In Jupyter, the lines after a failing
    command still run, so they run here too: `!pip install numpy` does nothing,
    `names = !ls` returns no lines, and `%matplotlib inline` has no effect.
    """
    from IPython.utils.text import SList

    shell.system = lambda command: shell.user_ns.update(_exit_code=1)
    shell.getoutput = lambda command, split=True, depth=0: SList() if split else ""
    shell.enable_gui = lambda gui=None: None
    return shell


@dataclass
class _Taker:
    """Replaces `check`: collects the evidence of the answers that it receives.

    Attributes:
        tasks: question → the case on which its answer is tested.
        have: questions whose evidence an earlier run returned.
        apart: questions with a check cell; their checks in other cells don't count.
        say: writes a line.
        at: the question whose check cell is running, or "".
        taken: questions whose evidence has been collected in this run.
    """

    tasks: dict
    have: set
    apart: set
    say: Callable
    at: str = ""
    taken: set = field(default_factory=set)

    def check(self, question: str, answer: object = ...) -> Verdict:
        """Like `shardmath.exercises.check`, but the verdict comes later."""
        answers.find(question)  # raises, as there, if no question has this id
        if question == self.at or question not in self.apart:
            self.take(question, lambda: answer)
        return Verdict(question, "todo", "it is judged after the notebook has run")

    def take(self, question: str, answer: Callable[[], object]) -> None:
        """Collect and write the evidence of one answer."""
        self.taken.add(question)
        if question in self.tasks and question not in self.have:
            evidence = _evidence(question, answer, self.tasks[question])
            self.say(question=question, result=evidence)

    def raised(self, said: str) -> None:
        """Record as evidence that the running check cell raised before its check."""
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
        if isinstance(answer, Finding):  # no answer; the finding says why
            done = answer.verdict == "todo"
            return {"todo": True} if done else {"invalid": answer.message}
        evidence = answers.find(question).collect(answer, task)
        json.dumps(evidence)
    except BaseException as error:  # reading runs the submission's code
        return {"invalid": f"the answer cannot be read: {describe(error, None)}"}
    return evidence


def judge(evidence: dict, tasks: dict, secret: str, say) -> None:
    """Judge the evidence of each question. Malformed evidence is judged "invalid".

    Args:
        evidence: question → the evidence that `collect` wrote.
        tasks: question → the case on which its answer was tested.
        secret: the seed of the arrays, which no answer can read.
        say: writes its keyword arguments as a line of JSON.
    """
    for question, found in evidence.items():
        say(at=question)
        try:
            if "program" in found:
                found = {**found, "secret": secret}
            finding = answers.find(question).judge(found, tasks[question])
        except Exception as error:  # the evidence is not trusted
            finding = Finding(
                "invalid", f"the evidence cannot be judged: {error!r:.200}"
            )
        say(question=question, result=vars(finding))


if __name__ == "__main__":
    main()
