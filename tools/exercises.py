"""Completes exercise notebooks and writes their solved twins.

python tools/exercises.py [--check] exercises/01_rooflines.ipynb …

From the question records: heading, answer line, folded hint and worked solution of
each task cell, and ``solved/`` beside the notebook, whose answer cells hold the code of
the worked solutions. ``--check`` writes nothing and says what is not as it should be.
"""

import argparse
import copy
import re
import sys
from pathlib import Path

import nbformat

from shardmath import answers
from shardmath.grading import prose
from shardmath.grading.notebook import ROLES, checked, role

_GENERATED = "<!-- answer -->"
_HEADING = re.compile(r"\A##[^\n]*\n*")
_CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def task(record, source: str) -> str:
    """The task cell: the author's prose of `source` inside what the record says."""
    body = _HEADING.sub("", source.partition(_GENERATED)[0]).strip()
    points = f"{record.points} point{'s' if record.points > 1 else ''}"
    parts = [
        f"## {record.id} · {record.title}",
        body,
        _GENERATED,
        f"*{record.form} {points}.*",
        _fold("Hint", prose(record.hint)),
        _fold("Worked solution", prose(record.solution)),
    ]
    return "\n\n".join(part for part in parts if part)


def _fold(summary: str, text: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def solution_code(record) -> str:
    """The one Python block of a worked solution.

    Raises:
        ValueError: there is none, or more than one.
    """
    blocks = _CODE.findall(prose(record.solution))
    if len(blocks) != 1:
        raise ValueError(
            f"{record.id}: {len(blocks)} Python blocks in its solution, not 1"
        )
    return blocks[0].rstrip("\n")


def problems(notebook, chapter: str) -> list[str]:
    """What is wrong with the form of an exercise notebook, a line each."""
    known = [q for q in answers.questions() if q.startswith(f"{chapter}.")]
    cells = notebook.cells
    found, seen = [], []
    for n, cell in enumerate(cells):
        question, kind = role(cell)
        if cell.cell_type == "code" and not kind and checked(cell.source):
            found.append(f"cell {n}: checks a question, and has no metadata")
        if kind != "task":
            continue
        seen.append(question)
        three = [role(other) for other in cells[n : n + 3]]
        if three != [(question, wanted) for wanted in ROLES]:
            found.append(
                f"{question}: wants the cells {', '.join(ROLES)}, side by side"
            )
            continue
        if [c.cell_type for c in cells[n : n + 3]] != ["markdown", "code", "code"]:
            found.append(f"{question}: wants a Markdown cell and two code cells")
        call = checked(cells[n + 2].source)
        if call is None or call[0] != question:
            found.append(
                f'{question}: its check cell wants check("{question}", …) alone'
            )
    marked = sum(bool(role(cell)[1]) for cell in cells)
    if marked != 3 * len(seen):
        found.append(
            f"{marked} cells of {len(seen)} questions: each question has three"
        )
    found += [f"{q}: no such question in ch{chapter}" for q in seen if q not in known]
    found += [
        f"{q}: registered, and not in the notebook" for q in known if q not in seen
    ]
    found += [
        f"{q}: twice in the notebook" for q in sorted(set(seen)) if seen.count(q) > 1
    ]
    return found


def completed(notebook):
    """A copy of an exercise notebook with its task cells completed."""
    done = copy.deepcopy(notebook)
    for cell in done.cells:
        question, kind = role(cell)
        if kind == "task":
            cell.source = task(answers.find(question), cell.source)
    return done


def solved(notebook, before=None):
    """A completed notebook with the solutions' code as answers.

    Outputs of `before`, an older solved notebook, stay where the code is the same.
    """
    done = copy.deepcopy(notebook)
    ran = {cell.id: cell for cell in before.cells} if before else {}
    for cell in done.cells:
        question, kind = role(cell)
        if kind == "answer":
            cell.source = solution_code(answers.find(question))
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\A# .*", r"\g<0>, solved", cell.source)
            continue
        old = ran.get(cell.id)
        same = old is not None and old.source == cell.source
        cell.outputs = old.outputs if same else []
        cell.execution_count = old.execution_count if same else None
    return done


def _told(notebook) -> list[tuple]:
    """What the author decides of a notebook: all but outputs and counts."""
    return [(cell.cell_type, cell.source, role(cell)) for cell in notebook.cells]


def stale(path: Path) -> list[str]:
    """What `main` would complain of or change, a line each."""
    notebook = nbformat.read(path, as_version=4)
    found = problems(notebook, path.name[:2])
    if found:
        return [f"{path}: {problem}" for problem in found]
    full = completed(notebook)
    if _told(full) != _told(notebook):
        return [f"{path}: a task cell does not say what its record says"]
    twin = path.parent / "solved" / path.name
    if not twin.exists() or _told(nbformat.read(twin, 4)) != _told(solved(full)):
        return [f"{twin}: is not what its exercises and records make of it"]
    return []


def write(path: Path) -> None:
    """Complete an exercise notebook and write its solved twin."""
    notebook = nbformat.read(path, as_version=4)
    full = completed(notebook)
    if full != notebook:
        nbformat.write(full, path)
    twin = path.parent / "solved" / path.name
    before = nbformat.read(twin, as_version=4) if twin.exists() else None
    answered = solved(full, before)
    if answered != before:
        twin.parent.mkdir(exist_ok=True)
        nbformat.write(answered, twin)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", type=Path, nargs="+")
    parser.add_argument("--check", action="store_true", help="write nothing")
    told = parser.parse_args(arguments)
    found = []
    for path in told.notebook:
        wrong = problems(nbformat.read(path, as_version=4), path.name[:2])
        if not told.check and not wrong:
            write(path)
        found += stale(path)
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
