"""Exercise notebooks say what the records say, and the solutions are right."""

import sys
from pathlib import Path

import nbformat
import pytest
from grading_material import best_walls

from shardmath.exercises import answers
from shardmath.exercises.kinds import Number, scaled
from shardmath.grading import sandbox
from shardmath.grading.grade import grade, references
from shardmath.grading.notebook import (
    ROLES,
    CodeCell,
    answers_in,
    checked,
    role,
    steps_in,
)
from shardmath.grading.students import Owner
from shardmath.grading.submissions import Submission
from shardmath.hardware.roofline import tile_traffic

sys.path.append("tools")
import exercises

NOTEBOOKS = sorted(Path("exercises").glob("[0-9][0-9]_*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)


def test_every_chapter_with_questions_has_its_exercises():
    asked = {question[:2] for question in answers.questions()}
    assert asked == {path.name[:2] for path in NOTEBOOKS}


@each_notebook
def test_notebook_says_what_its_records_say(path):
    assert not exercises.stale(path)


@each_notebook
def test_blank_notebook_stores_what_is_to_do(path):
    """Every check was run and has nothing to judge; nbval compares the outputs."""
    cells = nbformat.read(path, as_version=4).cells
    said = {
        role(cell)[0]: cell.outputs[0].data["text/plain"]
        for cell in cells
        if role(cell)[1] == "check"
    }
    assert said == {
        q: f"○ {q} todo: {record.form}"
        for q, record in answers.chapter(path.name[:2]).items()
    }


# Between two notebooks: none may lean on what another one has imported or computed.
FORGET = """
for _name in [*globals()]:
    if not _name.startswith("_"):
        del globals()[_name]
"""


@pytest.fixture(scope="module")
def graded(request):
    """The notebooks that are tested, with the solutions as answers, graded as one.

    One student hands them all in, in one file. Starting JAX twice for each of them
    would take most of the time.
    """
    asked = {
        item.callspec.params["path"]
        for item in request.session.items
        if {"graded", "path"} <= {*getattr(item, "fixturenames", ())}  # cells have none
    }
    steps = []
    for path in sorted(asked):
        notebook = exercises.solved(exercises.blank(path.name[:2], path.name))
        steps += [CodeCell(FORGET), *steps_in(notebook.cells)]
    submission = Submission(Owner("x"), "solved.ipynb", tuple(steps))
    limits = sandbox.Limits(seconds=60)
    reference = references(Path("exercises"))
    return grade(submission, reference, "solved", limits, rung=best_walls())


def test_every_cell_of_the_solutions_runs(graded):
    assert (graded.problem, graded.notes) == ("", ())


@each_notebook
def test_worked_solutions_are_correct(path, graded):
    """As a student's would be, in the sandbox, each on the imports of its notebook."""
    asked = answers.chapter(path.name[:2])
    found = {r.question: r.finding for r in graded.rows if r.question in asked}
    assert {q: f for q, f in found.items() if f.verdict != "correct"} == {}
    assert list(found) == list(asked)


@pytest.mark.parametrize("n", [48, 96])
def test_no_tile_that_fits_beats_the_tiling_question(n):
    """Its limit is the least that one tile of results and thin slices can move."""
    question = answers.questions()["01.12"]
    room = question.capacity(n) // 4
    tiles = [(b, f) for b in range(1, n + 1) for f in range(1, n + 1)]
    fit = [(b, f) for b, f in tiles if b * f + b + f <= room]
    assert question.at_most(n) == min(4 * tile_traffic(n, n, n, tile) for tile in fit)


# The tool, on a chapter of one question


@pytest.fixture
def question():
    return next(q for q in answers.questions().values() if isinstance(q, Number))


@pytest.fixture
def small(question, monkeypatch):
    for place in (answers, answers.registry):
        monkeypatch.setattr(place, "chapter", lambda number: {question.id: question})
    return exercises.blank("01", "01_rooflines.ipynb")


def test_a_question_is_three_cells_with_ids_of_its_own(small, question):
    """Ids that stay the same keep a diff as small as the change."""
    number = question.id.replace(".", "-")
    task, answer, check = small.cells[2:5]
    assert [cell.id for cell in (task, answer, check)] == [
        f"{kind}-{number}" for kind in ROLES
    ]
    assert [role(cell) for cell in (task, answer, check)] == [
        (question.id, kind) for kind in ROLES
    ]
    assert answer.source == question.stub
    assert checked(check.source) == (question.id, question.answer)
    assert task.source.startswith(f"## {question.id} · {question.title}\n\n**Given**")
    assert question.form in task.source
    assert task.source.count("<details>") == task.source.count("</details>") == 2


def test_questions_are_counted_where_the_notebook_says_how_many(small):
    assert "Here are 1 question on [chapter 01]" in small.cells[0].source
    assert small.metadata["description"].startswith("1 question, graded, on ")


def test_solved_twin_has_the_solutions_code(small, question):
    answered = exercises.solved(small)
    assert answered.cells[3].source == question.code
    assert answered.cells[0].source.splitlines()[0].endswith(", solved")
    assert small.cells[3].source == question.stub


def test_writing_twice_changes_nothing_and_editing_is_noticed(
    small, tmp_path, monkeypatch
):
    path = tmp_path / "01_rooflines.ipynb"
    assert exercises.main(["--check", str(path)]) == 1
    assert not path.exists()
    ran = []
    monkeypatch.setattr(
        exercises.execute, "execute", lambda nb, at: ran.append(at) or nb
    )
    assert exercises.main([str(path)]) == 0
    assert exercises.main(["--check", str(path)]) == 0
    written = path.read_bytes()
    assert exercises.main([str(path)]) == 0
    assert path.read_bytes() == written
    assert ran == [tmp_path]
    path.write_text(path.read_text().replace("**Given**", "Given"))
    assert exercises.main(["--check", str(path)]) == 1


def test_a_chapter_without_questions_is_refused(capsys):
    with pytest.raises(SystemExit):
        exercises.main(["exercises/99_nothing.ipynb"])
    assert "has the number 99" in capsys.readouterr().err


# A record that cannot be is refused where it is written


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": "1.3"}, "an id is two digits"),
        ({"hint": " "}, "must say something"),
        ({"points": 0}, "points 0"),
        ({"task": "**Wanted** a number."}, r"must say \*\*Given\*\*"),
        ({"stub": "flops = "}, "must be Python that binds a name"),
        ({"stub": "..."}, "must be Python that binds a name"),
        ({"solution": "Two times two."}, "0 Python blocks"),
        ({"solution": "```python\nx = 4\n```"}, "must end by binding 'flops'"),
        ({"hint": "Say flops = 4."}, "the hint gives the solution away"),
        ({"hint": "It is 4 FLOPs."}, "the hint gives the right value away"),
        ({"expected": lambda: 0.0}, "the right value is 0"),
        ({"slips": (scaled("half", 1 / 2, "a"), scaled("half", 2, "b"))}, "'half'"),
        ({"slips": (scaled("a", 1 / 2, "Twos."), scaled("b", 2, "Twos."))}, "'Twos.'"),
        ({"slips": (scaled("same", 1.005, "x"),)}, "'right' and 'same' cannot be told"),
        (
            {"slips": (scaled("a", 2, "x"), scaled("b", 2.01, "y"))},
            "'a' and 'b' cannot",
        ),
    ],
)
def test_a_record_that_cannot_be_is_refused(fields, said):
    whole = {
        "id": "01.3",
        "title": "A product",
        "task": "**Given** two.\n\n**Wanted** its square.",
        "stub": "flops = ...",
        "unit": "FLOPs",
        "expected": lambda: 4.0,
        "hint": "Multiply.",
        "solution": "```python\nflops = 4\n```",
    }
    assert Number(**whole).answer == "flops"
    with pytest.raises(ValueError, match=f"question .*{said}"):
        Number(**whole | fields)


def test_values_given_are_listed_before_what_is_wanted():
    record = Number(
        id="01.3",
        title="A rate",
        task="**Given** a chip.\n\n**Wanted** its peak.",
        given={"peak": (lambda: 4.59e14, "FLOPs/s"), "sides": (8, "")},
        stub="peak = ...",
        unit="FLOPs/s",
        expected=lambda: 4.59e14,
        hint="Read.",
        solution="```python\npeak = 459e12\n```",
    )
    assert record.asked == (
        "**Given** a chip.\n\n- peak: 459 TFLOPs/s\n- sides: 8\n\n**Wanted** its peak."
    )


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
