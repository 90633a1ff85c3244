"""The grader and the notebook agree on an answer, however it came to be."""

import json

import nbclient
import nbformat
import pytest
from grading_material import (
    BLANK,
    CHECKS,
    CODE,
    FUNCTION,
    NAME,
    NUMBER,
    PROGRAM,
    PROGRAM_CODE,
    RIGHT,
    WAITS,
    WRONG_NUMBER,
    best_walls,
    new_shell,
    reference,
    run_in_process,
)

from shardmath.exercises import Verdict
from shardmath.grading import sandbox
from shardmath.grading.grade import grade
from shardmath.grading.notebook import shown_correct, steps_in
from shardmath.grading.students import Owner
from shardmath.grading.submissions import Submission

SETUP = "from shardmath.exercises import check"
VALUE = {True: repr(NUMBER.expected()), False: WRONG_NUMBER.partition(" = ")[2]}
CHECK = CHECKS[NUMBER.id]
LIMITS = sandbox.Limits(seconds=20)


def cell(source, role="", question=NUMBER.id):
    mark = {"shardmath": {"question": question, "role": role}} if role else {}
    return {"cell_type": "code", "source": source, "metadata": mark}


def answer(source, question=NUMBER.id):
    return cell(source, "answer", question)


def checking(source=CHECK, question=NUMBER.id):
    return cell(source, "check", question)


def graded(cells, *questions, limits=LIMITS):
    steps = tuple(steps_in(json.loads(json.dumps(cells))))
    one = Submission(Owner("x"), "x.ipynb", steps)
    asked = reference(*(questions or [NUMBER.id]))
    return grade(one, asked, "x", limits, rung=best_walls())


@pytest.fixture
def in_process(monkeypatch):
    run_in_process(monkeypatch)


def points(cells):
    """What the grader says of the number in a notebook."""
    (row,) = graded(cells).rows
    return row.finding.verdict


def shown(cells):
    """What the notebook itself says of it, when its cells run one after the other."""
    shell = new_shell()
    said = ""
    for one in cells:
        result = shell.run_cell(one["source"], silent=False).result
        if isinstance(result, Verdict) and result.question == NUMBER.id:
            said = result.verdict
    return said


# The ways in which students answer, each with a right and a wrong value.
WAYS = {
    "as asked": lambda v: [cell(SETUP), answer(f"answer = {v}"), checking()],
    "an import of her own in the set-up cell": lambda v: [
        cell(f"import numpy as np\nimport math\n{SETUP}"),
        answer(f"answer = float(np.float64({v})) * math.cos(0)"),
        checking(),
    ],
    "a helper in a cell of her own": lambda v: [
        cell(SETUP),
        cell(f"def helper():\n    return {v}"),
        answer("answer = helper()"),
        checking(),
    ],
    "a variable of an earlier cell": lambda v: [
        cell(SETUP),
        cell(f"before = {v}"),
        cell("before = before * 1"),
        answer("answer = before"),
        checking(),
    ],
    "a variable of an earlier answer": lambda v: [
        cell(SETUP),
        answer(f"{CODE}\nnumber = {v}", FUNCTION.id),
        answer("answer = number"),
        checking(),
    ],
    "the answer in the check cell": lambda v: [
        cell(SETUP),
        answer(BLANK[NUMBER.id]),
        checking(f'check("{NUMBER.id}", {v})'),
    ],
    "the answer in the check cell, above the check": lambda v: [
        cell(SETUP),
        answer(BLANK[NUMBER.id]),
        checking(f"answer = {v}\n{CHECK}"),
    ],
    "an answer that a later cell changes": lambda v: [
        cell(SETUP),
        answer(f"answer = {v} * 17"),
        cell("answer = answer / 17"),
        checking(),
    ],
    "an answer in a cell of her own, and none in the answer cell": lambda v: [
        cell(SETUP),
        cell(f"answer = {v}"),
        cell("print(answer)"),
        checking(),
    ],
    "another name of check": lambda v: [
        cell("from shardmath.exercises import check as judge"),
        answer(f"answer = {v}"),
        checking(f'judge("{NUMBER.id}", answer)'),
    ],
    "the module's check": lambda v: [
        cell("from shardmath import grading"),
        answer(f"answer = {v}"),
        checking(f'grading.check("{NUMBER.id}", answer)'),
    ],
    "an answer cell that goes on to fail": lambda v: [
        cell(SETUP),
        answer(f"answer = {v}\nprint(not_there)"),
        checking(),
    ],
    "a magic": lambda v: [cell(SETUP), answer(f"%time answer = {v}"), checking()],
    "no metadata": lambda v: [cell(SETUP), cell(f"answer = {v}"), cell(CHECK)],
    "a trial check elsewhere": lambda v: [
        cell(SETUP),
        answer(f"answer = {v}"),
        checking(),
        cell(f'trial = check("{NUMBER.id}", answer * 3)'),
    ],
}
# Only a wrong answer's words differ: the grader says why there was none.
LOSES = {
    ("an answer cell that goes on to fail", False): "invalid",
    ("an answer in a cell of her own, and none in the answer cell", False): "todo",
}


@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
@pytest.mark.parametrize("way", WAYS)
def test_the_grade_is_the_verdict_of_the_notebook(way, is_right, in_process):
    cells = WAYS[way](VALUE[is_right])
    said = shown(cells)
    assert said == ("correct" if is_right else "wrong")
    assert points(cells) == LOSES.get((way, is_right), said)


@pytest.mark.parametrize(
    "way",
    [
        "an import of her own in the set-up cell",
        "a helper in a cell of her own",
        "the answer in the check cell",
    ],
)
def test_the_sandbox_itself_gives_the_same_grade(way):
    assert points(WAYS[way](VALUE[True])) == "correct"


def test_the_first_answer_cell_deleted_is_todo_and_not_the_set_up_cell(in_process):
    for marked in (True, False):
        check = checking() if marked else cell(CHECK)
        found = graded([cell(f"import math\n{SETUP}"), check])
        assert not found.submission.given
        ((finding),) = [row.finding for row in found.rows]
        assert (finding.verdict, finding.message) == (
            "todo",
            "its answer cell is missing",
        )


def test_a_check_cell_deleted_does_not_lose_the_answer(in_process):
    for is_right, verdict in ((True, "correct"), (False, "wrong")):
        cells = [cell(SETUP), answer(f"answer = {VALUE[is_right]}")]
        assert points(cells) == verdict
        assert points([*cells, checking(f"# {CHECK}")]) == verdict


def test_a_check_cell_that_fails_earns_nothing(in_process):
    cells = [cell(SETUP), answer(f"answer = {VALUE[True]}")]
    assert shown([*cells, checking(f'check("{NUMBER.id}", anwser)')]) == ""
    (row,) = graded([*cells, checking(f'check("{NUMBER.id}", anwser)')]).rows
    assert row.finding.verdict == "invalid"
    assert "the check cell raises NameError" in row.finding.message


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("while True: pass", "stopped after 3 s, the limit"),
        ("import os\nos._exit(1)", "the process ended early"),
        ("1 / 0", "it raises ZeroDivisionError"),
        ("half = = 1", "it raises SyntaxError"),
    ],
)
def test_a_cell_of_her_own_that_fails_is_said_and_costs_no_answer(own, said):
    cells = [
        cell(SETUP),
        answer(f"answer = {VALUE[True]}"),
        checking(),
        cell(own),
        answer(CODE, FUNCTION.id),
        checking(CHECKS[FUNCTION.id], FUNCTION.id),
        answer(PROGRAM_CODE, PROGRAM.id),
        checking(CHECKS[PROGRAM.id], PROGRAM.id),
    ]
    found = graded(cells, *RIGHT, limits=sandbox.Limits(seconds=3))
    assert [row.finding.verdict for row in found.rows] == ["correct"] * 3
    (note,) = found.notes
    first = own.splitlines()[0]
    assert note.startswith(f"code cell 4 ({first}): ")
    assert said in note


def test_a_check_without_an_end_costs_its_own_question_and_no_later_one():
    """The cell that is stopped is left out, and what its answer cell bound stays."""
    cells = [
        cell(SETUP),
        answer(f"later = {VALUE[True]}\n{WAITS}", FUNCTION.id),
        checking(CHECKS[FUNCTION.id], FUNCTION.id),
        answer("answer = later"),
        checking(),
    ]
    found = graded(cells, FUNCTION.id, NUMBER.id, limits=sandbox.Limits(seconds=3))
    rows = {row.question: row.finding for row in found.rows}
    assert rows[NUMBER.id].verdict == "correct"
    assert rows[FUNCTION.id].message == "not judged: stopped after 3 s, the limit"
    assert found.notes == ()


def test_what_the_notebook_says_it_showed_earns_nothing(in_process):
    said = {"data": {"text/plain": f"✓ {NUMBER.id} correct: trust me"}}
    wrong = answer(f"answer = {VALUE[False]}")
    forged = {**checking(), "outputs": [{**said, "output_type": "execute_result"}]}
    found = graded([cell(SETUP), wrong, forged])
    assert found.points == 0


@pytest.mark.parametrize(
    "outputs",
    [None, 3, [3], [{}], [{"data": 3}], [{"data": {"text/plain": 3}}], ["✓ 01.1"]],
)
def test_outputs_of_any_shape_are_no_claim(outputs):
    assert shown_correct([{"cell_type": "code", "outputs": outputs}]) == frozenset()


def test_a_cell_that_installs_something_costs_nothing():
    """Copies of the notebooks for elsewhere begin with one; nothing is installed."""
    install = "%pip install --quiet --no-deps git+https://example.org/book"
    cells = [cell(install), *WAYS["as asked"](VALUE[True])]
    assert points(cells) == "correct"


def shown_in_jupyter(cells):
    """As `shown`, by a kernel of Jupyter's own."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(one["source"]) for one in cells]
    )
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    correct = shown_correct(json.loads(nbformat.writes(notebook))["cells"])
    return "correct" if NUMBER.id in correct else "wrong"


def test_magics_and_commands_above_an_answer_do_not_stop_its_cell():
    """Commands cannot start in the sandbox; in Jupyter, they may fail too."""
    above = ("%matplotlib inline", "!false", "%pip --version", "names = !false")
    cells = [cell(SETUP)]
    for number, line in enumerate(above):
        cells.append(cell(f"{line}\nvalue_{number} = {VALUE[True]} / {len(above)}"))
    total = " + ".join(f"value_{number}" for number in range(len(above)))
    cells += [answer(f"!true\nanswer = {total}"), checking()]
    assert shown_in_jupyter(cells) == "correct"
    found = graded(cells)
    assert [row.finding.verdict for row in found.rows] == ["correct"]
    assert found.notes == ()


def test_a_check_in_a_cell_of_another_question_counts(in_process):
    check = f'check("{FUNCTION.id}", {NAME})'
    cells = [
        cell(SETUP),
        answer(f"answer = {VALUE[True]}\n{CODE}\n{check}"),
        checking(),
    ]
    rows = graded(cells, NUMBER.id, FUNCTION.id).rows
    assert [row.finding.verdict for row in rows] == ["correct", "correct"]
