"""Functions judged from what was typed: the notebook's verdicts, and its words."""

import re
import sys
import textwrap

import pytest

from shardmath.exercises import answers, check, judge_function
from shardmath.exercises.kinds import Function, Traffic

sys.path.append("tools")
import exercises

TYPED = [
    pytest.param(record, id=record.id)
    for record in answers.questions().values()
    if isinstance(record, Function | Traffic)
]


def test_a_solution_is_right_and_its_stub_to_do():
    """Here of one; tests/site/test_editor.py judges all of them, in the page."""
    record = answers.find("05.10")
    assert judge_function(record.id, record.code)["verdict"] == "correct"
    for nothing in (record.stub, " \n"):
        assert judge_function(record.id, nothing)["verdict"] == "todo"


def test_the_words_are_those_of_the_notebook():
    def hops(n):
        return 2 * n

    typed = judge_function("05.10", "def hops(n):\n    return 2 * n")
    assert typed["verdict"] == "wrong"
    assert typed["message"] == check("05.10", hops).message


@pytest.mark.parametrize(
    ("source", "verdict", "message"),
    [
        ("def hops(n):\n    return n +", "invalid", "(line 2: return n +)"),
        ("def hops(n):\n  x = 1\n return x", "invalid", "IndentationError: "),
        ("(" * 5000, "invalid", "too many nested parentheses"),
        ("def hops(n): return n\n\nhops(1) / 0", "invalid", "(line 3: hops(1) / 0)"),
        ("raise SystemExit(3)", "invalid", "your code raises SystemExit: 3"),
        ("def hop(n): return n", "invalid", "defines no hops"),
        ("hops = 3", "invalid", "int is not a function"),
        ("import numpie", "invalid", "the page's Python has no numpie"),
        ("def hops(n):\n\n    return n[0]", "wrong", "(line 3: return n[0])"),
        ("def hops(n): return hops(n)", "wrong", "RecursionError"),
        ("def hops(n): return {n}", "wrong", "the result is a set"),
        ("def hops(a, b): return 1", "wrong", "missing 1 required positional"),
    ],
)
def test_what_goes_wrong_is_said_with_the_line(source, verdict, message):
    judged = judge_function("05.10", source)
    assert (judged["verdict"], judged["slip"]) == (verdict, "")
    assert message in judged["message"]


def test_it_has_the_names_of_the_first_cell(monkeypatch):
    """As far as they are there: what needs JAX says so when it is used."""
    names = "LATENCY, chips.H100, check, report"
    source = f"def hops(n):\n    assert all(({names}))\n    return 2 * (n - 1)"
    judged = judge_function("05.10", source)
    assert "AssertionError" not in judged["message"]
    monkeypatch.setitem(sys.modules, "jax.numpy", None)
    judged = judge_function("05.10", "def hops(n): return jnp.sum(n)")
    assert "has no jax.numpy: answer without it" in judged["message"]


def test_what_is_printed_comes_with_the_verdict_and_is_cut():
    source = "print('begun')\ndef hops(n):\n    print(n)\n    return n"
    assert judge_function("05.10", source)["printed"].startswith("begun\n8\n")
    many = judge_function("05.10", f"{source}\nprint('many ' * 100_000)")
    assert len(many["printed"]) < 2_100


def test_what_an_answer_binds_anew_in_a_module_is_put_back():
    """One Python judges all answers of a page, and draws its figures."""
    same = "from shardmath.exercises.kinds import function\n"
    same += "function.same = lambda *a: True"
    within = f"def hops(n):\n{textwrap.indent(same, ' ')}\n return n"
    for trick in (f"{same}\ndef hops(n): return n", within):
        judge_function("05.10", trick)
        assert judge_function("05.10", "def hops(n): return n")["verdict"] == "wrong"
    broken = "import random, math\nrandom.Random = math.floor = None\n"
    right = answers.find("05.10").code
    assert judge_function("05.10", broken + right)["verdict"] == "correct"


def test_the_hint_comes_with_the_second_wrong_try():
    wrong = "def hops(n): return n"
    assert not judge_function("05.10", wrong)["hint"]
    assert judge_function("05.10", wrong, attempts=1)["hint"]


def test_only_plain_python_is_judged_from_source():
    for question in ("01.1", "01.13"):
        with pytest.raises(ValueError, match="is not answered in plain Python"):
            judge_function(question, "x = 1")


# The text above the hint does not give the answer away


def code_above_the_hint(record):
    """Every block of code that a reader sees before asking for the hint."""
    text, hint, _ = exercises.task(record).partition("<summary>Hint</summary>")
    assert hint
    return re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def pasted(record, block):
    """The verdict on a block pasted as the answer, under the name it must have."""
    return judge_function(record.id, f"{block}\n{record.answer} = {record.answer}")


@pytest.mark.parametrize("record", TYPED)
def test_no_code_above_the_hint_is_an_answer(record):
    found = [pasted(record, block) for block in code_above_the_hint(record)]
    assert [one for one in found if one["verdict"] == "correct"] == []


def test_code_above_the_hint_that_answers_the_question_is_found(monkeypatch):
    """The test above would see it: here the solution's code is put into the task."""
    record = answers.find("05.10")
    asked = f"{record.asked}\n\n```python\n{record.code}\n```"
    monkeypatch.setattr(Function, "asked", asked)
    (block,) = code_above_the_hint(record)
    assert pasted(record, block)["verdict"] == "correct"
