"""Submissions for the grader's tests: one number, one function, one program."""

import ast
import atexit
import contextlib
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from shardmath.exercises import answers
from shardmath.exercises.kinds import Function, Number, Traffic
from shardmath.grading import isolation, sandbox, sandboxed
from shardmath.grading.isolation import PYTHON
from shardmath.grading.notebook import CodeCell
from shardmath.grading.students import Owner
from shardmath.grading.submissions import Submission


def first(kind):
    return next(q for q in answers.questions().values() if isinstance(q, kind))


NUMBER, FUNCTION, PROGRAM = first(Number), first(Function), first(Traffic)


def worked(question):
    """The code of a worked solution, and the name that it defines last."""
    code = re.search(r"```python\n(.*?)```", question.solution, re.S)[1]
    code = "\n".join(line.removeprefix(" " * 8) for line in code.splitlines())
    return code, ast.parse(code).body[-1].name


CODE, NAME = worked(FUNCTION)
PROGRAM_CODE, PROGRAM_NAME = worked(PROGRAM)
RIGHT = {
    NUMBER.id: f"answer = {NUMBER.expected()!r}",
    FUNCTION.id: CODE,
    PROGRAM.id: PROGRAM_CODE,
}
BLANK = {
    NUMBER.id: "answer = ...",
    FUNCTION.id: f"def {NAME}(*arguments): ...",
    PROGRAM.id: f"def {PROGRAM_NAME}(machine, *sizes): ...",
}
CHECKS = {
    NUMBER.id: f'check("{NUMBER.id}", answer)',
    FUNCTION.id: f'check("{FUNCTION.id}", {NAME})',
    PROGRAM.id: f'check("{PROGRAM.id}", {PROGRAM_NAME})',
}
WRONG_NUMBER = f"answer = {NUMBER.slips[0].wrong(NUMBER.expected())!r}"


def notebook(code, *, marked=True, outputs=()):
    """A notebook with these answer cells, by question."""

    def cell(source, question="", role=""):
        mark = {"shardmath": {"question": question, "role": role}}
        metadata = mark if role and marked else {}
        return {
            "cell_type": "code",
            "source": source.splitlines(keepends=True),
            "metadata": metadata,
            "outputs": list(outputs),
            "execution_count": None,
        }

    cells = [cell("from shardmath.exercises import check")]
    for question, source in code.items():
        cells += [cell(source, question, "answer")]
        cells += [cell(CHECKS[question], question, "check")]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4})


def reference(*questions):
    """Chapter → cells, of a reference notebook with these questions."""
    blank = {question: BLANK[question] for question in questions or BLANK}
    return {NUMBER.id[:2]: json.loads(notebook(blank))["cells"]}


def submission(given, name="x"):
    """A notebook that has answer cells and no other, of answers by question."""
    steps = tuple(
        CodeCell(code, question, "answer") for question, code in given.items()
    )
    return Submission(Owner(name, frozenset({name})), f"{name}.ipynb", steps)


def best_walls():
    """Walls for code that a test trusts: the safest there are, or none."""
    try:
        return isolation.isolation()
    except OSError:
        return isolation.isolation("none")


def new_shell():
    """An IPython that keeps no history, and does not tidy up when the tests end.

    Each shell would then collect all garbage of the process twice, which takes seconds.
    """
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    atexit.unregister(shell.atexit_operations)
    return shell


def run_in_process(patch):
    """Both halves of the sandbox run here, which takes no time to start.

    Args:
        patch: pytest's monkeypatch, which puts everything back.
    """
    patch.setenv("SHARDMATH_PROGRESS", "")
    for name in ("exercises", "exercises.check", "grading"):
        module = sys.modules[f"shardmath.{name}"]
        patch.setattr(module, "check", module.check)
    patch.setattr(sandboxed, "_shell", lambda: sandboxed.as_in_jupyter(new_shell()))

    def run(module, job, *rest):
        results = {}

        def say(**line):
            if "result" in line:
                results[line["question"]] = json.loads(json.dumps(line["result"]))

        if "cells" in job:
            sandboxed.collect(job["cells"], job["tasks"], set(), set(), say)
        else:
            sandboxed.judge(job["evidence"], job["tasks"], job["secret"], say)
        return sandbox.Ran(results, "", "", 0)

    patch.setattr(sandbox, "run", run)


# A function that never returns, and leaves the processor to other tests meanwhile.
WAITS = f"""
def {NAME}(*arguments):
    import time
    while True:
        time.sleep(60)
"""
ENDLESS = """
import ctypes, os
try:
    os.setsid()
except OSError:
    pass
ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)  # not to die with its parent
while True: pass
"""


def kill_with_an_answer_running(grader):
    """Kill a grader when `ENDLESS` runs; everything that it runs must go with it."""
    running = []
    while not any(leads for _, leads in running):
        assert grader.poll() is None
        time.sleep(0.05)
        running = inside(grader.pid)
    grader.kill()
    grader.wait()
    until = time.monotonic() + 20
    left = [pid for pid, _ in running]
    while left and time.monotonic() < until:
        time.sleep(0.05)
        left = [pid for pid in left if Path(f"/proc/{pid}").exists()]
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not left, "an answer outlives its grader"


def inside(grader):
    """(id, whether it is an answer with a session of its own) of what a grader runs."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            about = (path / "stat").read_text().rpartition(")")[2].split()
            command = (path / "cmdline").read_bytes()
        except OSError:
            continue
        found[int(path.name)] = int(about[1]), int(about[3]), command
    below = {grader}
    for _ in range(8):  # generations
        below |= {pid for pid, (parent, *_) in found.items() if parent in below}
    python = PYTHON.encode() + b"\0-m\0shardmath.grading.sandboxed\0"
    return [
        (pid, command == python and session == pid)
        for pid, (_, session, command) in found.items()
        if pid in below - {grader}
    ]
