"""Writes the exercise notebooks from the question records.

    python tools/exercises.py [exercises/01_rooflines.ipynb …] [--check | --solved DIR]

Without names, it writes those of every chapter that has questions. A notebook is
generated only from its records. If it has changed, it is run to store its outputs.
``--check`` writes nothing and lists notebooks that differ from their records.
``--solved`` writes the notebooks with the worked solutions as answers into DIR, and
runs them.
"""

import argparse
import os
import sys
from pathlib import Path

import execute
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from shardmath.exercises import answers
from shardmath.exercises.kinds import Question, prose

HOW = """
    In Jupyter (`make lab`), fill in the answer cell, run it, and then run the check
    below it. On the website, answer below the question. Questions that need JAX can
    only be answered in Jupyter, and say so. You may type a number as arithmetic with
    units, which you put between quotes in a notebook: `3 GB / (50 GB/s) + 20 µs`. If
    your answer is wrong in a way that we know, you are told what went wrong. A question
    that you haven't answered prints "todo", and the cells after it still run.
"""


def paths() -> list[Path]:
    """The exercise notebooks of all chapters that have questions."""
    return [path(number) for number in answers.chapters()]


def path(number: str) -> Path:
    """The path of a chapter's exercises, which have the file name of the chapter.

    Raises:
        ValueError: no chapter has this number.
    """
    found = sorted(Path("chapters").glob(f"{number}_*.ipynb"))
    if not found:
        raise ValueError(f"chapter {number}: has questions but no notebook")
    return Path("exercises", found[0].name)


def task(record: Question) -> str:
    """The task cell: the task, the form of an answer, and folded hint and solution."""
    points = f"{record.points} point{'s' if record.points > 1 else ''}"
    return "\n\n".join(
        [
            f"## {record.id} · {record.title}",
            record.asked,
            f"*{record.form} {points}.*",
            _fold("Hint", prose(record.hint)),
            _fold("Worked solution", prose(record.solution)),
        ]
    )


def _fold(summary: str, text: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def blank(number: str, name: str):
    """A chapter's exercise notebook, generated from its records, without outputs."""
    head, asked = answers.heading(number), answers.chapter(number)
    count = "1 question" if len(asked) == 1 else f"{len(asked)} questions"
    intro = (
        f"# Exercises: {head.title}\n\n"
        f"Here are {count} on [chapter {number}](../chapters/{name}), "
        f"{prose(head.intro)}\n\n{prose(HOW)}"
    )
    cells = [
        new_markdown_cell(intro, id="intro"),
        new_code_cell(prose(head.setup), id="imports"),
    ]
    for record in asked.values():
        cells += _three(record)
    cells += [
        new_markdown_cell("## Score", id="score-text"),
        new_code_cell(f'report("{number}")', id="score"),
    ]
    return new_notebook(
        cells=cells,
        metadata={
            "description": f"{count}, graded, on {head.topics}.",
            "kernelspec": execute.KERNEL,
            "language_info": {"name": "python"},
        },
    )


def _three(record: Question) -> list:
    """The task, answer and check cells, with ids derived from the question's id."""

    def marks(role: str) -> dict:
        question = {"question": record.id, "role": role}
        return {
            "id": f"{role}-{record.id.replace('.', '-')}",
            "metadata": {"shardmath": question},
        }

    check = f'check("{record.id}", {record.answer})'
    return [
        new_markdown_cell(task(record), **marks("task")),
        new_code_cell(prose(record.stub), **marks("answer")),
        new_code_cell(check, **marks("check")),
    ]


def solved(notebook):
    """A blank notebook filled in with the code of the worked solutions."""
    done = nbformat.from_dict(notebook)
    for cell in done.cells:
        mark = cell.metadata.get("shardmath", {})
        if mark.get("role") == "answer":
            cell.source = answers.find(mark["question"]).code
    done.cells[0].source = done.cells[0].source.replace("\n", ", solved\n", 1)
    return done


def _told(notebook) -> list:
    """The parts of a notebook that the records determine, so not outputs and counts."""
    cells = [(c.id, c.cell_type, c.source, c.metadata) for c in notebook.cells]
    return [cells, notebook.metadata]


def stale(where: Path) -> bool:
    """Whether a notebook on disk differs from the one generated from its records."""
    if not where.exists():
        return True
    return _told(nbformat.read(where, 4)) != _told(blank(where.name[:2], where.name))


def write(notebook, where: Path) -> None:
    """Run a notebook in the folder of `where`, and store it with its outputs."""
    where.parent.mkdir(parents=True, exist_ok=True)
    os.environ |= execute.ENVIRONMENT
    fresh = execute.normalise(execute.execute(notebook, where.parent), notebook)
    nbformat.write(fresh, where)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", type=Path, nargs="*")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--solved", type=Path, metavar="DIR", help="write them there")
    told = parser.parse_args(arguments)
    found = 0
    for where in told.notebooks or paths():
        number = where.name[:2]
        if number not in answers.chapters():
            parser.error(f"{where}: no chapter with questions has the number {number}")
        if told.solved:
            write(solved(blank(number, where.name)), told.solved / where.name)
        elif not stale(where):
            continue
        elif told.check:
            found = 1
            print(f"{where}: differs from its records; run make exercises")
        else:
            write(blank(number, where.name), where)
            print(f"{where}: written")
    return found


if __name__ == "__main__":
    sys.exit(main())
