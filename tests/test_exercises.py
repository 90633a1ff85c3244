"""Exercise notebooks keep their form, run blank, and their solutions are right."""

import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from shardmath import answers
from shardmath.grading import folder, sandbox
from shardmath.grading.notebook import answers_in, checked, role
from shardmath.questions import Number

sys.path.append("tools")
import exercises

NOTEBOOKS = sorted(Path("exercises").glob("[0-9][0-9]_*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)


def test_every_chapter_with_questions_has_its_exercises():
    asked = {question[:2] for question in answers.questions()}
    assert asked == {path.name[:2] for path in NOTEBOOKS}


@each_notebook
def test_notebook_and_its_solved_twin_say_what_the_records_say(path):
    assert exercises.stale(path) == []


@each_notebook
@pytest.mark.parametrize(("kind", "verdict"), [("", "todo"), ("solved", "correct")])
def test_blank_is_todo_and_solved_is_correct(path, kind, verdict):
    content = (path.parent / kind / path.name).read_bytes()
    reference = folder.references(path.parent)
    submission = folder.Submission("x", path.name, content)
    graded = folder.grade(submission, reference, "solved", sandbox.Limits(120))
    assert graded.problem == ""
    found = {row.question: row.finding for row in graded.rows}
    assert {q: f for q, f in found.items() if f.verdict != verdict} == {}
    assert list(found) == [q for q in answers.questions() if q[:2] == path.name[:2]]


# The tool, on a small notebook


@pytest.fixture
def question():
    return next(q for q in answers.questions().values() if isinstance(q, Number))


@pytest.fixture
def small(question, monkeypatch):
    monkeypatch.setattr(answers, "chapter", lambda number: {question.id: question})
    monkeypatch.setattr(answers, "chapters", lambda: ["01"])

    def mark(role):
        return {"shardmath": {"question": question.id, "role": role}}

    return new_notebook(
        cells=[
            new_markdown_cell("# Small"),
            new_markdown_cell("**Given** nothing.", metadata=mark("task")),
            new_code_cell("value = ...", metadata=mark("answer")),
            new_code_cell(f'check("{question.id}", value)', metadata=mark("check")),
        ]
    )


def test_task_cell_is_completed_around_the_authors_words(small, question):
    done = exercises.completed(small).cells[1].source
    assert done.startswith(f"## {question.id} · {question.title}\n\n**Given** nothing.")
    assert done.count("<details>") == done.count("</details>") == 2
    assert question.form in done
    again = exercises.completed(exercises.completed(small))
    assert again.cells[1].source == done


def test_solved_twin_has_the_solutions_code_and_keeps_its_outputs(small, question):
    answered = exercises.solved(exercises.completed(small))
    code = answered.cells[2].source
    assert code
    assert code in small.cells[2].source + exercises.completed(small).cells[1].source
    assert answered.cells[0].source == "# Small, solved"
    answered.cells[2].execution_count = 5
    kept = exercises.solved(exercises.completed(small), answered)
    assert kept.cells[2].execution_count == 5
    answered.cells[2].source += "\n"
    fresh = exercises.solved(exercises.completed(small), answered)
    assert fresh.cells[2].execution_count is None


def test_writing_twice_changes_nothing_and_editing_is_noticed(small, tmp_path):
    path = tmp_path / "01_small.ipynb"
    nbformat.write(small, path)
    assert exercises.main(["--check", str(path)]) == 1
    assert exercises.main([str(path)]) == 0
    twin = tmp_path / "solved" / path.name
    written = path.read_bytes(), twin.read_bytes()
    assert exercises.main([str(path)]) == 0
    assert (path.read_bytes(), twin.read_bytes()) == written
    twin.write_text(twin.read_text().replace("**Given** nothing.", "Given all."))
    assert exercises.main(["--check", str(path)]) == 1
    assert "is not what" in exercises.stale(path)[0]


def swap(cells):
    cells[2], cells[3] = cells[3], cells[2]


def retype(cells):
    cells[3].source = cells[3].source.replace('("0', '("9')


def unmark(cells):
    cells[3].metadata = {}


def call_more(cells):
    cells[3].source += "\nprint()"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (swap, "wants the cells task, answer, check"),
        (retype, "its check cell wants"),
        (call_more, "its check cell wants"),
        (unmark, "has no metadata"),
        (lambda cells: cells.extend(cells[1:]), "twice in the notebook"),
        (lambda cells: cells.pop(1), "not in the notebook"),
        (lambda cells: cells.pop(), "wants the cells"),
    ],
)
def test_a_broken_form_is_named(small, change, said):
    assert exercises.problems(small, "01") == []
    change(small.cells)
    assert said in "\n".join(exercises.problems(small, "01"))


def test_answers_are_found_by_metadata_then_by_check():
    def cell(source, **mark):
        metadata = {"shardmath": mark} if mark else {}
        return {"cell_type": "code", "source": source, "metadata": metadata}

    cells = [
        cell("x = 1", question="01.1", role="answer"),
        cell("x += 1", question="01.1", role="answer"),
        cell("check('01.1', x)"),
        cell("y = 3"),
        cell(["check(", "'01.2', y)"]),
        cell("check('01.3', z)"),
        {"cell_type": "markdown", "source": "check('01.4', z)"},
        cell("v = 5", question="01.5", role="answer"),
        cell("check('01.6', v)"),
        cell("w", shardmath="odd"),
    ]
    assert answers_in(cells) == {
        "01.1": "x = 1\nx += 1",
        "01.2": "y = 3",
        "01.5": "v = 5",
    }
    assert role({"metadata": {"shardmath": 3}}) == ("", "")
    assert checked("check('01.1')") is None
    assert checked("check('01.1',") is None
