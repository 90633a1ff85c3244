"""The form of an exercise notebook: which cell belongs to which question.

A question has three adjacent cells, task, answer and check, each with the metadata
``{"shardmath": {"question": "01.3", "role": "answer"}}``.
"""

import ast
import re
from dataclasses import dataclass

ROLES = ("task", "answer", "check")
_CHECK = re.compile(r"""\bcheck\(\s*["'](\d\d\.\d+)["']""")
# Copies of older notebooks import from `shardmath.grading`.
_SETUP = re.compile(
    r"^\s*(?:from|import)\s+shardmath\.(?:exercises|grading)\b", re.MULTILINE
)


@dataclass(frozen=True)
class CodeCell:
    """A code cell, and the question that it belongs to.

    Attributes:
        code: its source.
        question: the question whose answer or check cell it is, or "".
        role: "answer", "check", or "" for any other cell of the notebook.
    """

    code: str
    question: str = ""
    role: str = ""


def role(cell: dict) -> tuple[str, str]:
    """(question, role) from a cell's metadata, or ("", "") if it has neither."""
    mark = cell.get("metadata", {}).get("shardmath", {})
    if not isinstance(mark, dict):
        return "", ""
    return str(mark.get("question", "")), str(mark.get("role", ""))


def checked(source: str) -> tuple[str, str] | None:
    """(question, expression) if the cell is one `check("…", expression)`, else None.

    >>> checked('check("01.3", tokens / 2)')
    ('01.3', 'tokens / 2')
    """
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return None
    match body:
        case [
            ast.Expr(ast.Call(ast.Name("check"), [ast.Constant(str(q)), answer], []))
        ]:
            return q, ast.unparse(answer)
    return None


def steps_in(cells: list[dict]) -> list[CodeCell]:
    """The code cells of a student's copy of the notebook, in order.

    Metadata says which question a cell belongs to. If a student splits a cell, both
    parts keep the metadata. If no check cell is marked for a question, a cell with its
    id in `check("…")` is used. The code cell right before that one is then the answer,
    unless an answer cell is marked, or the cell before imports the grader.
    """
    code = [cell for cell in cells if cell.get("cell_type") == "code"]
    steps = [CodeCell(source(cell), *_marked(cell)) for cell in code]
    marked = {(step.question, step.role) for step in steps}
    for place, step in enumerate(steps):
        asked = _CHECK.search(step.code)
        if step.role or not asked or (asked[1], "check") in marked:
            continue
        question = asked[1]
        steps[place] = CodeCell(step.code, question, "check")
        before = steps[place - 1] if place else step
        free = not (before.role or _CHECK.search(before.code))
        if free and (question, "answer") not in marked and not _is_setup(before):
            steps[place - 1] = CodeCell(before.code, question, "answer")
            marked.add((question, "answer"))
    return steps


def answers_of(steps: list[CodeCell]) -> dict[str, str]:
    """Question → code of its answer cells, and of a check cell that holds an answer."""
    found: dict[str, list[str]] = {}
    for step in steps:
        if step.role == "answer" or (step.role == "check" and holds_answer(step.code)):
            found.setdefault(step.question, []).append(step.code)
    return {question: "\n".join(parts) for question, parts in found.items()}


def holds_answer(source: str) -> bool:
    """Whether a check cell does more than check a name.

    >>> holds_answer('check("01.3", tokens)'), holds_answer('check("01.3", 512 / 2)')
    (False, True)
    """
    found = checked(source)
    return bool(source.strip()) and (found is None or not found[1].isidentifier())


def answers_in(cells: list[dict]) -> dict[str, str]:
    """Question → source of its answer, in a student's copy of the notebook."""
    return answers_of(steps_in(cells))


def shown_correct(cells: list[dict]) -> frozenset[str]:
    """The questions whose stored verdict is "correct". Anybody can edit such a verdict.

    >>> out = {"data": {"text/plain": ["✓ 01.3 correct: right"]}}
    >>> sorted(shown_correct([{"cell_type": "code", "outputs": [out]}]))
    ['01.3']
    """
    found = set()
    for cell in cells:
        outputs = cell.get("outputs")
        for output in outputs if isinstance(outputs, list) else ():
            data = output.get("data") if isinstance(output, dict) else None
            text = data.get("text/plain") if isinstance(data, dict) else ""
            text = text if isinstance(text, str | list) else ""
            words = source({"source": text}).split(maxsplit=3)[:3]
            if len(words) == 3 and words[0] == "✓" and words[2] == "correct:":
                found.add(words[1])
    return frozenset(found)


def _marked(cell: dict) -> tuple[str, str]:
    question, kind = role(cell)
    return (question, kind) if kind in ("answer", "check") else ("", "")


def _is_setup(step: CodeCell) -> bool:
    return bool(_SETUP.search(step.code))


def source(cell: dict) -> str:
    """A cell's text: notebooks store it as a string or as a list of lines."""
    text = cell.get("source", "")
    return text if isinstance(text, str) else "".join(map(str, text))
