"""The form of an exercise notebook: which cell belongs to which question.

A question is three cells side by side, task, answer and check, each with the metadata
``{"shardmath": {"question": "01.3", "role": "answer"}}``.
"""

import ast
import itertools
import re

ROLES = ("task", "answer", "check")
_CHECK = re.compile(r"""\bcheck\(\s*["'](\d\d\.\d+)["']""")


def role(cell: dict) -> tuple[str, str]:
    """(question, role) as a cell's metadata says, ("", "") where it says nothing."""
    mark = cell.get("metadata", {}).get("shardmath", {})
    if not isinstance(mark, dict):
        return "", ""
    return str(mark.get("question", "")), str(mark.get("role", ""))


def checked(source: str) -> tuple[str, str] | None:
    """(question, expression) of the one `check("…", expression)` of a check cell.

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


def answers_in(cells: list[dict]) -> dict[str, str]:
    """Question → source of its answer cell, in somebody's copy of the notebook.

    By metadata first; a cell that was split keeps it, and its parts are joined. Else
    by the id in `check("…")`: the code cell right before it.
    """
    code = [cell for cell in cells if cell.get("cell_type") == "code"]
    found: dict[str, list[str]] = {}
    for cell in code:
        question, kind = role(cell)
        if kind == "answer":
            found.setdefault(question, []).append(source(cell))
    for before, cell in itertools.pairwise(code):
        asked = _CHECK.search(source(cell))
        if asked and role(before)[1] == "" and not _CHECK.search(source(before)):
            found.setdefault(asked[1], [source(before)])
    return {question: "\n".join(parts) for question, parts in found.items()}


def source(cell: dict) -> str:
    """A cell's text: notebooks store it as a string or as a list of lines."""
    text = cell.get("source", "")
    return text if isinstance(text, str) else "".join(map(str, text))
