"""The grader: what is right is right, what is wrong is named, nothing is raised."""

import base64
import json
import math
import re
import subprocess
import sys
import types
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmath import exercises
from shardmath.base.units import bytes_per_value, show
from shardmath.exercises import answers, progress
from shardmath.exercises.kinds import (
    Compiled,
    Finding,
    Function,
    Number,
    Slip,
    Traffic,
    slips,
)
from shardmath.exercises.kinds.function import same
from shardmath.exercises.kinds.quantity import quantity
from shardmath.exercises.kinds.scratchpad import Scratchpad
from shardmath.grading import sandboxed
from shardmath.hardware import chips, systolic, waves
from shardmath.sharding import contract

QUESTIONS = answers.questions()
TASK = "**Given** little.\n\n**Wanted** much."


def is_number(question):
    return isinstance(question, Number)


def of_kind(kind):
    return [pytest.param(q, id=q.id) for q in QUESTIONS.values() if isinstance(q, kind)]


def number(**fields):
    default = {
        "id": "01.3",
        "title": "A rate",
        "task": TASK,
        "stub": "rate = ...",
        "expected": lambda: 4e14,
        "unit": "FLOPs/s",
        "slips": (slips.sparse_peak(3), slips.percent(100)),
        "hint": "Think.",
        "solution": "```python\nrate = 4e14\n```",
    }
    return Number(**(default | fields))


def function(**fields):
    default = {
        "id": "01.4",
        "title": "A sum",
        "task": TASK,
        "stub": "def total(x, y): ...",
        "spec": lambda x, y: x + y,
        "cases": lambda rng: (rng.randint(0, 9), rng.random()),
        "hint": "Add.",
        "solution": "```python\ndef total(x, y):\n    return x + y\n```",
    }
    return Function(**(default | fields))


COPY = Traffic(
    id="01.5",
    title="A copy",
    task=TASK,
    stub="copy = ...",
    cases=lambda rng: (4,),
    capacity=lambda n: 16,
    arrays=lambda n: {"x": (1, 2 * n), "y": (1, 2 * n)},
    result=lambda x, y: {"y": x},
    at_most=lambda n: 16 * n,
    slips=(Slip("read twice", lambda n: 24 * n, "Once is enough."),),
    hint="Half at a time.",
    solution="```python\ncopy = half_by_half\n```",
)

PRODUCT = Compiled(
    id="01.6",
    title="A product",
    task=TASK,
    stub="product = ...",
    shapes=lambda rng: ((8, 8), (8, 8), (8, 1)),
    spec=lambda a, b, x: a @ b @ x,
    at_most=lambda a, b, x: {"flops": 2 * (64 + 64)},
    hint="Brackets.",
    solution="```python\nproduct = a @ (b @ x)\n```",
)


@pytest.fixture(autouse=True)
def progress_file(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    monkeypatch.setenv("SHARDMATH_PROGRESS", str(path))
    return path


@pytest.fixture
def registry(monkeypatch):
    known = {q.id: q for q in (number(), function(), COPY, PRODUCT)}
    monkeypatch.setattr(answers.registry, "chapter", lambda number: known)
    monkeypatch.setattr(answers.registry, "chapters", lambda: ["01"])
    return known


# Every registered question


@pytest.mark.parametrize("question", of_kind(Number))
def test_number_is_judged_right_and_each_slip_named(question):
    right = question.expected()
    assert exercises.examine(question, right).verdict == "correct"
    near = right * (1 + max(3 * question.rtol, 1e-6))
    assert exercises.examine(question, near).verdict == "wrong"
    assert len(question.slips) >= 3, (
        f"question {question.id} has {len(question.slips)} slips: a number needs at "
        "least three likely wrong answers, each with a row in "
        'tests/data/wrong_numbers.txt; see "Add a question" in CONTRIBUTING.md'
    )
    for slip in question.slips:
        found = exercises.examine(question, slip.wrong(right))
        assert (found.verdict, found.slip) == ("wrong", slip.name)


@pytest.mark.parametrize("question", of_kind(Function))
def test_function_slips_are_wrong_and_named(question):
    assert exercises.examine(question, question.spec).verdict == "correct"
    for slip in question.slips:
        found = exercises.examine(question, slip.wrong)
        assert (found.verdict, found.slip) == ("wrong", slip.name)


@pytest.mark.parametrize("question", of_kind(Traffic))
def test_traffic_slips_move_too_much_and_differ(question):
    for sizes in question.draw("test"):
        moved = [slip.wrong(*sizes) for slip in question.slips]
        assert min([math.inf, *moved]) > question.at_most(*sizes)
        assert len(set(moved)) == len(moved)


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_every_question_is_complete_and_todo_when_blank(question):
    assert question.draw("a") == question.draw("a")
    for blank in (..., None):
        found = exercises.examine(question, blank)
        assert found == Finding("todo", question.form)


@pytest.mark.parametrize("question", of_kind(Number | Function | Traffic))
def test_what_a_verdict_says_needs_no_typesetting(question):
    """A page shows hints and slips as they are, where no formula is set."""
    said = [question.hint, *(slip.says for slip in question.slips)]
    assert not any("$" in words for words in said)


def test_specs_of_functions_agree_with_the_package():
    """A specification stands alone; the package reaches the same number its own way."""
    finish, cycles = QUESTIONS["03.10"], QUESTIONS["02.11"]
    for seconds, sms in finish.draw("package"):
        ends = waves.dispatch(seconds, sms).seconds
        assert finish.spec(seconds, sms) == pytest.approx(ends)
    for B, D, F, size in cycles.draw("package"):
        tiles = math.ceil(D / size) * math.ceil(F / size)
        assert cycles.spec(B, D, F, size) == systolic.cycles(B, tiles, size)
    fewest, line = QUESTIONS["06.17"], "A[B, D] · W[D_X, F] -> C[B, F]"
    best = set()
    for B, D, F, n in fewest.draw("package"):
        plan = contract(line, {"X": n}, B=B, D=D, F=F).best
        best.add(plan.moves)
        assert fewest.spec(B, D, F, n) == pytest.approx(plan.sent)
    assert len(best) == 3  # each of the three plans wins somewhere


# Reading quantities


@pytest.mark.parametrize(
    ("given", "unit", "value"),
    [
        (459, "FLOPs/s", 459.0),
        (np.float32(0.5), "", 0.5),
        (np.array(7), "tokens", 7.0),
        ("4.59e14", "FLOPs/s", 4.59e14),
        ("459e12", "FLOPs/s", 4.59e14),
        ("459 TFLOPs/s", "FLOPs/s", 4.59e14),
        ("459 TFLOPS", "FLOPs/s", 4.59e14),
        ("459 Tflop/s", "FLOPs/s", 4.59e14),
        ("1,024", "bytes", 1024.0),
        ("1_024 tokens", "tokens", 1024.0),
        ("240 token", "tokens", 240.0),
        ("4.59 × 10^14", "FLOPs/s", 4.59e14),
        ("4.59*10**14", "FLOPs/s", 4.59e14),
        ("2.765 TB/s", "bytes/s", 2.765e12),
        ("95 GiB", "bytes", 95 * 2**30),
        ("3.5 FLOPs/B", "FLOPs/byte", 3.5),
        ("43.6 µs", "s", 43.6e-6),
        ("2 ms", "s", 2e-3),
        ("−3", "", -3.0),
        ("40%", "", 0.4),
        (".5", "", 0.5),
        ("720 ZFLOPs", "FLOPs", 7.2e23),
        ("69.5 microseconds", "s", 69.5e-6),
        ("208.6 tok/s", "tokens/s", 208.6),
        ("208.6 tokens per second", "tokens/s", 208.6),
        ("3.35 terabytes per second", "bytes/s", 3.35e12),
        ("2 Gb", "bytes", 0.25e9),
        ("2 gigabits", "bytes", 0.25e9),
        ("4 megabits per second", "bytes/s", 0.5e6),
        ("16 gibibytes", "bytes", 2**34),
        ("1.98 gigahertz", "Hz", 1.98e9),
        ("8 billion", "", 8e9),
        ("8 million FLOPs", "FLOPs", 8e6),
        ("40 percent", "", 0.4),
        ("  1,024\n tokens", "tokens", 1024.0),
    ],
)
def test_quantity_reads(given, unit, value):
    assert quantity(given, unit).value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("given", "unit"),
    [
        (True, "s"),
        (np.bool_(True), "s"),
        (math.nan, "s"),
        (math.inf, "s"),
        (10**400, "s"),
        (1 + 2j, "s"),
        ([1], "s"),
        (np.ones(2), "s"),
        ("soon", "s"),
        ("", "s"),
        ("1,5", "s"),
        ("12,34", "s"),
        ("5 m", "s"),
        ("0.5 s", ""),
        ("459 TFLOPs", "FLOPs/s"),
        ("3 GB", "FLOPs"),
        ("1 × 10^99999", ""),
        ("40%", "s"),
        ("nan", ""),
        ("1\n2", "s"),
        ("\n", "s"),
        ("2 mb", "bytes"),
        ("2 gigabits", "s"),
    ],
)
def test_quantity_refuses_and_says_what_is_valid(given, unit):
    with pytest.raises(ValueError, match="give a"):
        quantity(given, unit)


@given(
    value=st.floats(1e-14, 1e26),
    unit=st.sampled_from(sorted({q.unit for q in QUESTIONS.values() if is_number(q)})),
)
def test_what_is_shown_is_read_back(value, unit):
    """A reader copies what a cell printed into the field."""
    read = quantity(show(value, unit, digits=6), unit)
    assert read.value == pytest.approx(value, rel=1e-5)


def test_a_long_answer_is_not_repeated_whole():
    for text in ("1" * 100_000, "1" + "x" * 100_000):
        with pytest.raises(ValueError, match="give a") as caught:
            quantity(text, "s")
        assert len(str(caught.value)) < 200


# Numbers


@pytest.mark.parametrize(
    ("answer", "verdict", "slip"),
    [
        (4e14, "correct", ""),
        ("402 TFLOPs/s", "correct", ""),
        (1.2e15, "wrong", "sparse peak"),
        (4e11, "wrong", "a power of 1000"),
        (4e14 * 1024, "wrong", "a power of 1024"),
        (5e13, "wrong", ""),
        (8e14, "wrong", "a factor of 2"),
        (5e14, "wrong", ""),
        (0, "wrong", ""),
        (-3e14, "wrong", ""),
        (True, "invalid", ""),
        ("fast", "invalid", ""),
        ("", "todo", ""),
    ],
)
def test_number_verdicts(answer, verdict, slip):
    found = exercises.examine(number(), answer)
    assert (found.verdict, found.slip) == (verdict, slip)
    assert verdict == "correct" or "400 T" not in found.message


def test_ready_slips_have_the_factor_that_they_are_about():
    ironwood, h100 = chips.TPU_7X, chips.H100
    sparse = h100.fact("sparse.bf16").value / h100.flops["bf16"]
    factors = {
        slips.multiply_add(): 1 / 2,
        slips.bits_for_bytes(): 8,
        slips.one_direction(): 1 / 2,
        slips.both_directions(): 2,
        slips.sparse_peak(): pytest.approx(sparse, rel=1e-3),
        slips.device_not_chip(): 1 / ironwood.fact("devices_per_chip").value,
        slips.binary_prefix(): 1024**3 / 1000**3,
        slips.forward_only(): 2 / 6,
        slips.precision_bytes(): bytes_per_value("bf16") / bytes_per_value("int8"),
        slips.percent(): 100,
        slips.inverse(): 1,
    }
    for slip, factor in factors.items():
        assert slip.wrong(1.0) == factor, slip.name


@pytest.mark.parametrize(
    ("answer", "slip"),
    [
        (1 / 4e14, "upside down"),
        (4e14 * 1.015, ""),  # further off than three digits can be
        (4e14 * 1.03, ""),
    ],
)
def test_what_any_number_can_suffer_is_named(answer, slip):
    assert exercises.examine(number(slips=()), answer).slip == slip


def test_a_near_miss_is_as_wide_as_twice_the_tolerance():
    question = number(slips=(), rtol=0.02)
    said = [exercises.examine(question, 4e14 * x).message for x in (1.03, 1.05)]
    assert said[0].startswith("412 TFLOPs/s. That is within 4% of the right value")
    assert "within" not in said[1]


@pytest.mark.parametrize(
    ("right", "answer", "slip"),
    [
        (0.016133, 0.016, "rounded too early"),  # two digits of it
        (0.016133, 0.0163, ""),  # three digits, and not those of it
        (0.016133, 0.016133 * 1.004, "rounded too early"),  # as three digits may be
        (0.016133, 0.016133 * 1.006, ""),
        (0.016133, 0.0164, "all but one"),  # three digits of the slip
        (0.016133, 0.01632, ""),  # nearer to the slip, and not those of it
    ],
)
def test_rounding_is_named_only_where_it_explains_the_difference(right, answer, slip):
    most = slips.scaled("all but one", 1.016, "Count all.")  # 0.016391
    question = number(expected=lambda: right, unit="", slips=(most,), rtol=0.001)
    assert exercises.examine(question, answer).slip == slip
    exact = number(slips=(most,), rtol=0)
    assert exercises.examine(exact, 4e14 * 1.012).slip == "close, not exact"


@pytest.mark.parametrize("said", ["without latency", "Leave out the\nlatency", "free"])
def test_latency_is_named_where_a_time_is_to_leave_it_out(said):
    task = f"**Given** little.\n\n**Wanted** the time. {said}."
    time = number(expected=lambda: 4e-3, unit="s", slips=(), rtol=0.001, task=task)
    found = exercises.examine(time, 4e-3 + 6.66e-6)
    named = "rounded too early" if said == "free" else "latency too"
    assert found.slip == named
    assert exercises.examine(time, 4e-3 - 6.66e-6).slip == "rounded too early"


def test_a_near_miss_costs_no_hint(registry):
    """Its way is right, and it lacks only digits. What rounding cannot do has one."""
    assert exercises.examine(number(rtol=0.001), 4.01e14).slip == "rounded too early"
    registry["01.3"] = number(rtol=0.001)
    for answer, hint in ((4.01e14, ""), (4.05e14, "Think.")):
        judged = exercises.judge_number("01.3", answer, attempts=5)
        assert (judged["verdict"], judged["hint"]) == ("wrong", hint)


def test_a_part_of_a_thing_is_not_called_rounding():
    users = number(expected=lambda: 75, unit="users", slips=(), rtol=0.005)
    assert exercises.examine(users, 75.5).slip == "not a whole number"
    assert exercises.examine(users, 74).slip == ""
    nbytes = number(expected=lambda: 75, unit="bytes", slips=(), rtol=0.005)
    assert exercises.examine(nbytes, 75.5).slip == ""


def test_another_right_value_is_right_and_nothing_near_it():
    tie = number(expected=lambda: 48, also=lambda: 49, unit="chips", slips=())
    said = [exercises.examine(tie, x).verdict for x in (48, 49, 50, 49.3)]
    assert said == ["correct", "correct", "wrong", "wrong"]


def test_bits_are_turned_into_bytes_and_the_verdict_says_so():
    rate = number(expected=lambda: 50e9, unit="bytes/s", slips=())
    found = exercises.examine(rate, "400 Gb/s")
    assert (found.verdict, found.message) == (
        "correct",
        "400 Gb/s = 50 GB/s (8 bits are 1 byte)",
    )
    assert "8 bits" not in exercises.examine(rate, "50 GB/s").message
    again = exercises.examine(rate, "400 Gb/s / 8")
    assert (again.verdict, again.slip) == ("invalid", "")
    assert again.message.endswith("converted to bytes, so leave out the 8.")
    late = number(expected=lambda: 0.08, unit="s", slips=())
    assert exercises.examine(late, "4 GB / (400 Gb/s)").verdict == "correct"
    assert exercises.examine(late, "4 GB / (400 Gb/s / 8)").verdict == "invalid"


def test_a_percentage_is_one_where_a_share_is_wanted():
    share = number(expected=lambda: 0.37, unit="", slips=())
    assert exercises.examine(share, 37).slip == "percent"
    assert exercises.examine(share, 1 / 0.37).slip == "upside down"
    rate = number(expected=lambda: 0.37, unit="FLOPs/s", slips=())
    assert exercises.examine(rate, 37).slip == ""


def test_how_far_off_a_number_is_in_steps():
    said = [exercises.examine(number(), 4e14 * x).message for x in (3.3, 0.3, 1e9 / 3)]
    assert said[0].endswith("too large, by less than a factor of 5.")
    assert said[1].endswith("too small, by less than a factor of 5.")
    assert said[2].endswith("too large by more than a factor of 1000.")


@pytest.mark.parametrize("answer", [5e-324, 1.7e308, "1e-300", "2**1000"])
@pytest.mark.parametrize("right", [6.9e10, 6.9e-5])
def test_every_float_is_judged_at_any_distance(answer, right):
    found = exercises.examine(number(expected=lambda: right, slips=()), answer)
    assert found.verdict == "wrong"
    assert "by more than a factor of 1000" in found.message


def test_a_binary_prefix_is_named_where_bytes_are_asked_for():
    memory = number(expected=lambda: 80 * 2**30, unit="bytes", slips=())
    assert exercises.examine(memory, "80 GB").slip == "a binary prefix"
    assert exercises.examine(memory, 80 * 2**30 * 15 / 16).slip == ""  # a part left out
    others = number(expected=lambda: 80 * 2**30, unit="FLOPs", slips=())
    assert exercises.examine(others, "80 G").slip == ""


def test_own_slip_wins_over_a_generic_one():
    question = number(slips=(slips.bits_for_bytes(8),))
    assert exercises.examine(question, 3.2e15).slip == "bits for bytes"


def test_exact_number_accepts_nothing_near():
    question = number(expected=lambda: 1024, unit="tokens", rtol=0)
    assert exercises.examine(question, 1024).verdict == "correct"
    assert exercises.examine(question, 1024.001).verdict == "wrong"


def test_what_must_be_exact_is_repeated_with_all_its_digits():
    question = number(expected=lambda: 10584, unit="tokens", rtol=0)
    said = [exercises.examine(question, a).message for a in (10584, "10.6k", 10583.5)]
    assert said[0] == "10,584 tokens"
    assert said[1].startswith("10.6k = 10,600 tokens. That is within 2%")
    assert said[2].startswith("10,583.5 tokens. Only whole tokens count")


# Functions


def test_function_is_right_with_arrays_for_lists():
    question = function(spec=lambda x, y: (x, y))
    assert (
        exercises.examine(question, lambda x, y: np.array([x, y])).verdict == "correct"
    )


def test_first_failing_case_is_shown():
    question = function(examples=((1, 2),))
    found = exercises.examine(question, lambda x, y: x - y)
    assert found.message == "for x = 1, y = 2: wanted 3, got -1."


def bound(**fields):
    """A function with units: two times of a read, the second one slower."""
    default = {
        "spec": lambda V, W: (V / W, 1.00001 * V / W),
        "cases": lambda rng: (1e9 * rng.random(), 1e12),
        "examples": ((1e6, 3e12),),
        "stub": "def total(V, W): ...",
        "units": {"V": "bytes", "W": "bytes/s"},
        "gives": (("lower", "s"), ("upper", "s")),
    }
    return function(**default | fields)


def test_a_failing_case_has_names_units_and_four_digits():
    found = exercises.examine(bound(), lambda V, W: (V / W, 2 * V / W))
    assert found.message == (
        "for V = 1 MB, W = 3 TB/s: wanted lower 333.3 ns and upper 333.3 ns, "
        "got lower 333.3 ns and upper 666.7 ns. "
        "In every case upper is 2 times the right value."
    )


def test_results_that_look_equal_get_more_digits():
    """Never "wanted 333.3 ns, got 333.3 ns"."""
    found = exercises.examine(bound(), lambda V, W: (V / W, V / W))
    assert "upper 333.337 ns, got lower 333.333 ns and upper 333.333 ns" in (
        found.message
    )


@pytest.mark.parametrize("result", [None, 3, "far", [1.0] * 99, [[1.0, "x"]], True])
def test_results_of_another_form_are_shown_short(result):
    found = exercises.examine(bound(), lambda V, W: result)
    assert found.verdict == "wrong"
    assert len(found.message) < 200


def test_the_task_shows_what_goes_in_what_comes_back_and_two_cases():
    lines = bound().asked.splitlines()
    assert "- takes `V` in bytes, `W` in bytes/s" in lines
    assert "- returns lower in s and upper in s" in lines
    assert "- V = 1 MB, W = 3 TB/s → lower 333.3 ns and upper 333.3 ns" in lines


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (1, "bytes", "V = 1 byte,"),
        (1, "tokens", "V = 1 token,"),
        (0.5, "bytes", "V = 0.5 bytes,"),
        (8192, "bytes", "V = 8,192 bytes,"),
        (80 * 10**9, "bytes", "V = 80 GB,"),
        (2**30, "bytes", "V = 1,073,741,824 bytes,"),  # what is not round stays whole
        (100 * 10**9, "", "V = 1e+11,"),
        (30 * 10**9, "tokens", "V = 3e+10 tokens,"),
    ],
)
def test_a_case_is_said_as_one_would_say_it(value, unit, said):
    question = bound(examples=((value, 3e12),), units={"V": unit} if unit else {})
    assert f"- {said} W = 3e+12 →" in question.asked


def test_stub_and_units_must_fit_the_spec():
    with pytest.raises(ValueError, match="the stub takes V, the spec V, W"):
        bound(stub="def total(V): ...")
    with pytest.raises(ValueError, match="units of U: the spec has V, W"):
        bound(units={"U": "s"})


def test_function_slip_is_named_only_if_it_fits_every_case():
    question = function(slips=(Slip("minus", lambda x, y: x - y, "The sign."),))
    assert exercises.examine(question, lambda x, y: x - y).slip == "minus"
    mixed = exercises.examine(question, lambda x, y: x - y if x < 5 else 0)
    assert (mixed.verdict, mixed.slip) == ("wrong", "")


def test_error_in_the_readers_function_is_reported_with_its_line():
    def divides(x, y):
        return x / 0

    found = exercises.examine(function(examples=((1, 2),)), divides)
    line = divides.__code__.co_firstlineno + 1
    assert found.verdict == "wrong"
    assert f"ZeroDivisionError: division by zero (line {line}: return x / 0)" in (
        found.message
    )


@pytest.mark.parametrize(
    ("answer", "verdict", "word"),
    [
        (lambda x, y: None, "todo", ""),
        (lambda x, y: print(end=""), "wrong", "missing return"),
        (lambda x: x, "wrong", "TypeError"),
        (lambda x, y: sys.exit(), "wrong", "SystemExit"),
        (lambda x, y: {}, "wrong", "dict"),
        (lambda x, y: str(x + y), "wrong", "got '"),
        (3, "invalid", "int is not a function"),
        (max, "wrong", "wanted"),
    ],
)
def test_odd_functions_get_a_verdict(answer, verdict, word):
    found = exercises.examine(function(), answer)
    assert found.verdict == verdict
    assert word in found.message


def test_a_function_that_changes_its_arguments_changes_only_a_copy():
    question = function(
        spec=lambda values: sum(values),
        stub="def total(values): ...",
        cases=lambda rng: ([1, 2],),
    )

    def empties(values):
        total = sum(values)
        values.clear()
        return total

    assert exercises.examine(question, empties).verdict == "correct"


@pytest.mark.parametrize(
    "outputs", [[], [{"value": 3}], {}, 3, [{}], [3], None, [{"error": 3}], "value"]
)
def test_forged_or_missing_outputs_are_invalid(outputs):
    question = function(examples=((1, 2),))
    found = question.judge({"outputs": outputs}, question.draw("x"))
    assert found.verdict == "invalid"


def test_same_compares_by_value():
    assert same((1, [2.0, True]), [1, [2 + 1e-12, 1]], 1e-9)
    assert same(math.nan, math.nan, 0)
    assert not same([1, 2], [1], 1)
    assert not same("1", 1, 1)


# The machine, and programs for it


def half_by_half(machine, n):
    for start in (0, n):
        block = machine.load("x", rows=(0, 1), cols=(start, start + n))
        machine.store(block, "y", row=0, col=start)
        machine.free(block)


def reads_twice(machine, n):
    machine.free(machine.load("x", rows=(0, 1), cols=(0, n)))
    machine.free(machine.load("x", rows=(0, 1), cols=(0, n)))
    half_by_half(machine, n)


def all_at_once(machine, n):
    machine.load("x", rows=(0, 1), cols=(0, 2 * n))


def copies_half(machine, n):
    block = machine.load("x", rows=(0, 1), cols=(0, n))
    machine.store(block, "y", row=0, col=0)


@pytest.mark.parametrize(
    ("program", "verdict", "slip", "word"),
    [
        (half_by_half, "correct", "", "64 bytes"),
        (reads_twice, "wrong", "read twice", "Once is enough."),
        (all_at_once, "wrong", "", "does not fit"),
        (copies_half, "wrong", "right in places", "must be"),
        (lambda machine, n: None, "todo", "", ""),
        (lambda machine, n: machine.nothing(), "wrong", "", "AttributeError"),
    ],
)
def test_programs(program, verdict, slip, word):
    found = exercises.examine(COPY, program)
    assert (found.verdict, found.slip) == (verdict, slip), found
    assert word in found.message


def test_a_program_cannot_write_the_books():
    def cheats(machine, n):
        half_by_half(machine, n)
        machine.capacity, machine.moved = 10**9, 0
        reads_twice(machine, n)

    assert exercises.examine(COPY, cheats).verdict == "wrong"


@pytest.mark.parametrize(
    "trace",
    [
        [["replay", []]],
        [["load", "x", [0, 1], [0, 99]]],
        [["load", "x", [0, 1], ["0", 4]]],
        [["free", 3]],
        [["zeros", 0, 0]],
        [["zeros", 10**9, 10**9]],
        [["store"]],
        3,
    ],
)
def test_a_forged_trace_is_invalid(trace):
    evidence = {"runs": [{"trace": trace}] * COPY.draws}
    assert COPY.judge(evidence, COPY.draw("x")).verdict == "invalid"


def test_machine_multiplies_and_counts():
    a, b = [[1.0, 2.0]], [[3.0], [4.0]]
    machine = Scratchpad(capacity=20, arrays={"a": a, "b": b, "c": [[9.0]]})
    x = machine.load("a", rows=(0, 1), cols=(0, 2))
    y = machine.load("b", rows=(0, 2), cols=(0, 1))
    z = machine.zeros(1, 1)
    machine.multiply_add(z, x, y)
    machine.store(z, "c", row=0, col=0)
    assert machine.arrays["c"] == [[11.0]]
    assert (machine.moved, machine.used, machine.flops) == (20, 20, 4)
    with pytest.raises(MemoryError, match="20 of 20 bytes"):
        machine.zeros(1, 1)
    machine.free(z)
    with pytest.raises(ValueError, match="freed"):
        machine.store(z, "c", row=0, col=0)
    with pytest.raises(ValueError, match="multiply_add of shapes"):
        machine.multiply_add(x, x, x)
    with pytest.raises(ValueError, match="memory holds a, b, c"):
        machine.load("d", rows=(0, 1), cols=(0, 1))


# Compiled functions


@pytest.mark.parametrize(
    ("answer", "verdict", "word"),
    [
        (lambda a, b, x: a @ (b @ x), "correct", "256 flops"),
        (lambda a, b, x: (a @ b) @ x, "wrong", "are enough"),
        (lambda a, b, x: b @ (a @ x), "wrong", "values are not right"),
        (lambda a, b, x: (a @ (b @ x))[:2], "wrong", "shape is [2, 1]"),
        (lambda a, b, x: (a, b), "invalid", "one array"),
        (lambda a, b, x: a @ x @ b, "wrong", "TypeError"),
        (lambda a, b, x: None, "todo", ""),
    ],
)
def test_compiled_functions(answer, verdict, word):
    found = exercises.examine(PRODUCT, answer)
    assert found.verdict == verdict, found
    assert word in found.message


def exported_product(function=lambda a, b, x: a @ (b @ x)):
    """(evidence, case) of an answer to PRODUCT."""
    case = PRODUCT.draw("x")
    return PRODUCT.collect(function, case), case


@pytest.mark.parametrize(
    "more", [b"\0", b"1234", b"x" * 99], ids=["one", "four", "many"]
)
def test_bytes_behind_an_exported_program_are_refused(more):
    """Four of them would choose any checksum, and so the arrays that it is tried on."""
    evidence, case = exported_product()
    assert PRODUCT.judge(evidence, case).verdict == "correct"
    stored = base64.b64decode(evidence["program"])
    for forged in (stored + more, stored[:-1]):
        found = PRODUCT.judge({"program": base64.b64encode(forged).decode()}, case)
        assert found.verdict == "invalid"
    spaced = f"{evidence['program'][:8]}\n{evidence['program'][8:]}"
    assert PRODUCT.judge({"program": spaced}, case).verdict == "invalid"


def test_every_constant_and_every_secret_give_other_arrays(monkeypatch):
    """An answer that holds the results of some arrays is never tried on these."""
    seeds = []
    rng = np.random.default_rng
    monkeypatch.setattr(
        np.random, "default_rng", lambda seed: seeds.append(seed) or rng(seed)
    )
    for constant in (1.0, 2.0):
        evidence, case = exported_product(lambda a, b, x, c=constant: x * 0 + c)
        for secret in ("", "one", "two"):
            found = PRODUCT.judge({**evidence, "secret": secret}, case)
            assert found.verdict == "wrong"
    assert len(set(seeds)) == len(seeds) == 6
    assert min(seeds) > 2**200


def test_the_judges_secret_is_not_the_answers_to_choose(monkeypatch):
    evidence, case = exported_product()
    monkeypatch.setattr(answers, "find", lambda question: PRODUCT)
    seen = []

    def judge(self, found, task):
        seen.append(found["secret"])
        return Finding("wrong", "")

    monkeypatch.setattr(Compiled, "judge", judge)
    for mine in ("", "chosen"):
        told = {"01.6": {**evidence, "secret": mine}}
        sandboxed.judge(told, {"01.6": case}, "the judge's", lambda **line: None)
    assert seen == ["the judge's"] * 2


# Nothing that an answer does is raised


class Hostile:
    """Raises whatever is done with it."""

    def raises(self, *arguments):
        raise RuntimeError("\ud800 no")

    __float__ = __eq__ = __str__ = __repr__ = __bool__ = __call__ = raises
    __hash__ = None
    shape = __class__ = property(raises)


class WordlessError(Exception):
    def __str__(self):
        raise ValueError("no words")


def raising(error):
    def answer(*arguments):
        raise error

    return answer


ODD = {
    "a huge number": 10**5000,
    "two lines": "1\n2",
    "many digits": "9" * 100_000,
    "hostile": Hostile(),
    "gives a hostile one": lambda *arguments: Hostile(),
    "gives a huge number": lambda *arguments: 10**5000,
    "gives half a letter": lambda *arguments: "\ud800",
    "gives no number": lambda *arguments: float("nan"),
    "an error without words": raising(WordlessError()),
    "leaves": raising(SystemExit()),
    "stops a generator": raising(GeneratorExit()),
    "an error of half a letter": raising(ValueError("\ud800")),
    "a number that leaves": type("N", (float,), {"__float__": raising(SystemExit())})(),
    "words that raise": type("W", (str,), {"split": raising(BaseException())})("3"),
}


@pytest.mark.parametrize("question", ["01.3", "01.4", "01.5", "01.6"])
@pytest.mark.parametrize("answer", ODD)
def test_nothing_that_an_answer_does_is_raised(registry, question, answer):
    verdict = exercises.check(question, ODD[answer])
    assert verdict.verdict in ("wrong", "invalid")
    said = repr(verdict)
    assert len(said) < 700
    said.encode("utf-8")


def test_a_package_that_is_missing_is_not_the_readers_fault(monkeypatch):
    """Where a notebook runs elsewhere: JAX alone cannot write a program down."""
    from jax import export

    def without(program):
        raise ImportError("no flatbuffers")

    monkeypatch.setattr(export.Exported, "serialize", without)
    found = exercises.examine(PRODUCT, lambda a, b, x: a @ (b @ x))
    assert found.verdict == "invalid"
    assert "the package flatbuffers; install it" in found.message


def test_only_the_readers_own_stop_ends_a_cell(registry):
    with pytest.raises(KeyboardInterrupt):
        exercises.check("01.4", raising(KeyboardInterrupt()))


def test_numbers_of_the_readers_own_type_are_read_by_value(registry):
    """Evidence is JSON: an object that equals everything is worth its digits."""

    class Anything(float):
        def __eq__(self, other):
            return True

        __hash__ = float.__hash__

    assert exercises.check("01.4", lambda x, y: Anything(-1)).verdict == "wrong"


# What the reader sees


def test_hint_comes_with_the_second_wrong_answer(registry):
    assert "Hint" not in repr(exercises.check("01.3", 1.0))
    assert exercises.check("01.3", "fast").hint == ""  # invalid is no try
    assert exercises.check("01.3", 1.0).hint == ""  # nor is the same answer again
    assert repr(exercises.check("01.3", 2.0)).endswith("Hint: Think.")
    assert repr(exercises.check("01.3", 2.0)).endswith("Hint: Think.")
    assert exercises.check("01.3", 4e14).hint == ""


def test_check_shows_the_page_which_numbers_it_can_ask(registry):
    mime = exercises.CHECK_MIME
    bundle = exercises.check("01.3")._repr_mimebundle_()
    assert bundle[mime] == {"question": "01.3"}
    assert bundle["text/plain"] == "○ 01.3 todo: Answer in FLOPs/s, within 1%."
    assert mime not in exercises.check("01.4")._repr_mimebundle_()


def test_unknown_question_lists_the_nearest():
    with pytest.raises(ValueError, match=r"question '1\.1': .*nearest are .*01\.1"):
        exercises.check("1.1", 3)


def test_solution_is_shown_on_request(registry):
    told = exercises.solution("01.3")
    assert repr(told) == "```python\nrate = 4e14\n```"
    assert told._repr_mimebundle_()["text/markdown"] == repr(told)
    assert [*exercises.report()._repr_mimebundle_()] == ["text/plain"]


def test_a_verdict_is_set_in_colour_with_the_words_of_its_text(registry):
    """Nothing but the bar and the mark has a colour: text keeps that of the theme."""
    exercises.check("01.3", 1.0)
    bundle = exercises.check("01.3", 2.0)._repr_mimebundle_()
    html = bundle["text/html"]
    assert re.findall(r"(?<![-\w])color: ([^\"]*)", html) == ["#e8590c"]
    assert "border-left: 4px solid #e8590c" in html
    words = unescape(re.sub(r"<[^>]+>", " ", html)).replace("·", ":").split()
    said = bundle["text/plain"].replace("Hint:", "Hint.").replace(":", " :", 1).split()
    assert words == said


def test_a_verdict_shows_what_an_answer_says_as_text(registry):
    """An answer's words are no markup; what stands between backticks is code."""
    verdict = exercises.Verdict("01.3", "wrong", "<b>bold</b>? Say `x < 1`.")
    html = verdict._repr_mimebundle_()["text/html"]
    assert "&lt;b&gt;bold&lt;/b&gt;? Say <code>x &lt; 1</code>." in html


def test_what_is_to_do_has_no_colour(registry):
    assert "text/html" not in exercises.check("01.3")._repr_mimebundle_()


def test_report_counts_by_chapter(registry):
    exercises.check("01.3", 4e14)
    exercises.check("01.3", 1.0)  # right once is done
    exercises.check("01.4", max)
    said = repr(exercises.report()).splitlines()
    assert said[0] == ("Ever right: 1 of 4 questions, 1 of 4 points; 1 tried, 2 to do.")
    assert said[-1].split() == ["01", "1", "1", "2", "1/4", "0/4"]


def test_report_tells_what_was_ever_right_from_what_stands(registry, monkeypatch):
    def stands():
        said = repr(exercises.report()).splitlines()
        assert "1 of 4 points; " in said[0]
        return said[1].partition(": ")[2].partition(" points")[0]

    exercises.check("01.3", 4e14)
    assert stands() == "1 of 4"
    for worse in (1.0, "soon", ...):  # wrong, invalid and none at all
        exercises.check("01.3", 4e14)
        exercises.check("01.3", worse)
        assert stands() == "0 of 4"
    exercises.check("01.3", 4e14)
    assert stands() == "1 of 4"
    progress._store.cache_clear()  # another kernel
    assert stands() == "0 of 4"


def test_the_score_of_one_chapter_stands_alone():
    """A chapter's stored score must not change when another chapter gets questions."""
    lines = repr(exercises.report("01")).splitlines()
    assert [line.split()[0] for line in lines[4:]] == ["01"]
    with pytest.raises(ValueError, match=r"'99': the ones with questions are 01"):
        exercises.report("99")


def test_page_gets_the_notebooks_verdict(registry):
    for answer in (4e14, "4e14", 1.2e15, "fast", ""):
        page = exercises.judge_number("01.3", answer, attempts=1)
        book = exercises.examine(registry["01.3"], answer)
        assert json.loads(json.dumps(page)) == page
        assert (page["verdict"], page["message"]) == (book.verdict, book.message)
        assert page["hint"] == ("Think." if page["verdict"] == "wrong" else "")
    assert exercises.judge_number("01.3", 1, attempts=0)["hint"] == ""
    with pytest.raises(ValueError, match="needs code"):
        exercises.judge_number("01.4", 1)


def test_numbers_are_judged_by_the_standard_library_alone():
    question = next(q.id for q in QUESTIONS.values() if isinstance(q, Number))
    code = (
        f"import sys; sys.path.insert(0, {str(Path('book').resolve())!r})\n"
        "from shardmath import exercises\n"
        f"print(exercises.judge_number({question!r}, 'soon', 0)['verdict'])"
    )
    told = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True
    )
    assert told.stdout == "invalid\n", told.stderr


def module(name, **values):
    made = types.ModuleType(f"shardmath.exercises.answers.{name}")
    vars(made).update(values)
    return made


def test_registry_refuses_two_questions_with_one_id():
    with pytest.raises(ValueError, match="two records"):
        answers.records(module("ch01", A=number(), B=number()))


def test_registry_refuses_a_question_of_another_chapter():
    with pytest.raises(ValueError, match=r"ids here are 02\.1"):
        answers.records(module("ch02", A=number()))
