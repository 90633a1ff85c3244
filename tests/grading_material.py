"""Submissions for the grader's tests: one number, one function, one program."""

import ast
import json
import re

from shardmath import answers
from shardmath.grading.students import Owner
from shardmath.grading.submissions import Submission
from shardmath.questions import Function, Number, Traffic


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

    cells = [cell("from shardmath.grading import check")]
    for question, source in code.items():
        cells += [cell(source, question, "answer")]
        cells += [cell(CHECKS[question], question, "check")]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4})


def reference(*questions):
    """Chapter → cells, of a reference notebook with these questions."""
    blank = {question: BLANK[question] for question in questions or BLANK}
    return {NUMBER.id[:2]: json.loads(notebook(blank))["cells"]}


def submission(given, name="x"):
    return Submission(Owner(name, frozenset({name})), f"{name}.ipynb", given)
