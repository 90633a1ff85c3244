"""Work done on the website: the file that it saves is graded beside notebooks."""

import json
import re
from pathlib import Path

import pytest
from grading_material import (
    CODE,
    FUNCTION,
    NAME,
    NUMBER,
    PROGRAM,
    PROGRAM_CODE,
    WAITS,
    best_walls,
    run_in_process,
)

from shardmath.exercises import answers, judge_function, judge_number
from shardmath.exercises.kinds import Compiled, Function, Number, Sharded, Traffic
from shardmath.grading import sandbox, submissions
from shardmath.grading.grade import grade, references

CHAPTER = answers.chapter("01")
BY_JAX = next(q for q in CHAPTER.values() if isinstance(q, Compiled | Sharded))


def entry(text, *, verdict="right", **more):
    """An answer as the page keeps it (`answers.put` in progress.js)."""
    best = {"best": "right"} if verdict == "right" else {}
    told = {"text": text, "attempts": 1, "verdict": verdict, "message": "…"}
    return told | best | {"time": 1_700_000_000_000} | more


def saved(entries):
    """The file, as `written` in book/_static/progress.js makes it."""
    content = {
        "kind": "Shardmath progress",
        "version": 1,
        "saved": "2026-11-23T04:39:33.000Z",
        "answers": entries,
        "guesses": {"01_rooflines#guess-1": "twice", "02_tpus#guess-1": None},
    }
    return json.dumps(content, indent=1) + "\n"


def found(tmp_path, text, name="ann/shardmath-progress-2026-11-23.json"):
    path = tmp_path / "in" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    ((one,), _) = submissions.found(tmp_path / "in")
    return one


def graded(tmp_path, entries):
    one = found(tmp_path, saved(entries))
    assert one.problem == ""
    reference = references(Path("exercises"))
    limits = sandbox.Limits(seconds=20)
    return grade(one, reference, "x", limits, rung=best_walls())


def test_the_file_is_the_one_that_the_page_writes():
    page = Path("book/_static/progress.js").read_text("utf-8")
    assert f'const KIND = "{submissions._SAVED}";' in page
    assert f"const VERSION = {submissions._VERSION};" in page
    written = re.search(r"function written\(\) \{(.*?)\n  \}", page, re.S)[1]
    for name in ("kind: KIND", "version: VERSION", "answers: kept.all()"):
        assert name in written


def test_every_answer_that_a_page_judges_is_graded_from_its_text(tmp_path):
    texts = {}
    for question, record in CHAPTER.items():
        if isinstance(record, Number):
            texts[question] = repr(record.expected())
        elif isinstance(record, Function | Traffic):
            texts[question] = record.code
    entries = {question: entry(text) for question, text in texts.items()}
    result = graded(tmp_path, entries)
    rows = {row.question: row.finding for row in result.rows}
    assert list(rows) == list(CHAPTER)
    for question, record in CHAPTER.items():
        expected = "correct" if question in texts else "todo"
        assert rows[question].verdict == expected, rows[question]
        if isinstance(record, Compiled | Sharded):
            assert rows[question].message == "the file has no answer to it"
    assert result.student == "ann"
    assert result.isolation == best_walls().name


TEXTS = {
    "a number with units": (NUMBER, f"{NUMBER.expected():.6g} {NUMBER.unit}"),
    "a slip": (NUMBER, repr(NUMBER.slips[0].wrong(NUMBER.expected()))),
    "no number": (NUMBER, "a lot"),
    "code for a number": (NUMBER, "__import__('os').getcwd()"),
    "a function": (FUNCTION, CODE),
    "a function with a helper": (FUNCTION, f"import math\nhelp = math.pi\n{CODE}"),
    "a wrong function": (FUNCTION, f"def {NAME}(*a):\n    return 0"),
    "a function that raises": (FUNCTION, f"def {NAME}(*a):\n    return 1 / 0"),
    "a function of another name": (FUNCTION, "def other(): pass"),
    "no Python": (FUNCTION, "def ("),
    "a program": (PROGRAM, PROGRAM_CODE),
}


def test_a_file_gets_the_verdicts_of_the_page(tmp_path):
    """Each text by itself, as in the page; a student has one of each question."""
    for name, (record, text) in TEXTS.items():
        judged = judge_number if isinstance(record, Number) else judge_function
        page = judged(record.id, text)
        (row,) = [
            row
            for row in in_process(tmp_path, {record.id: entry(text)}).rows
            if row.question == record.id
        ]
        told = (row.finding.verdict, row.finding.slip)
        assert told == (page["verdict"], page["slip"]), name
        if row.finding.verdict == "invalid":
            assert row.finding.message == page["message"], name


def in_process(tmp_path, entries):
    """As `graded`, without a sandbox to start."""
    with pytest.MonkeyPatch.context() as patch:
        run_in_process(patch)
        return graded(tmp_path, entries)


def test_what_a_page_cannot_judge_and_what_has_no_text_is_todo(tmp_path):
    entries = {
        BY_JAX.id: entry("lambda x: x"),
        NUMBER.id: entry("", verdict="wrong", best="right"),  # from a notebook's file
        FUNCTION.id: entry(CODE),
    }
    result = in_process(tmp_path, entries)
    rows = {row.question: row.finding for row in result.rows}
    assert rows[BY_JAX.id].verdict == rows[NUMBER.id].verdict == "todo"
    assert "hand in the notebook" in rows[BY_JAX.id].message
    assert "is empty" in rows[NUMBER.id].message
    assert rows[FUNCTION.id].verdict == "correct"
    assert result.points == FUNCTION.points
    points = BY_JAX.points + NUMBER.points + FUNCTION.points
    assert result.ever == points  # as the page says


def test_what_the_page_says_was_right_earns_nothing(tmp_path):
    wrong = repr(NUMBER.slips[0].wrong(NUMBER.expected()))
    result = in_process(tmp_path, {NUMBER.id: entry(wrong, verdict="right")})
    assert (result.points, result.ever) == (0, NUMBER.points)


def test_an_endless_answer_costs_its_own_limit(tmp_path):
    one = found(
        tmp_path,
        saved({FUNCTION.id: entry(WAITS), NUMBER.id: entry(repr(NUMBER.expected()))}),
    )
    reference = references(Path("exercises"))
    limits = sandbox.Limits(seconds=3)
    rows = grade(one, reference, "x", limits, rung=best_walls()).rows
    found_ = {row.question: row.finding for row in rows}
    assert found_[NUMBER.id].verdict == "correct"
    assert found_[FUNCTION.id].message == "not judged: stopped after 3 s, the limit"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "it is damaged or isn't JSON"),
        ("[]", "it is not a progress file from the website"),
        ('{"cells": []}', "it is not a progress file from the website"),
        (
            '{"schema": 1, "questions": {}}',
            "it has verdicts but no answers; hand in the notebook",
        ),
        (
            '{"kind": "Shardmath progress", "version": 2}',
            "it has version 2; only 1 can be read",
        ),
        (saved({"__proto__": entry("")}), "it is damaged: its answers cannot be read"),
        (saved({"01.1": {"text": 3}}), "it is damaged: its answers cannot be read"),
        (saved([]), "it is damaged: its answers cannot be read"),
        (saved({"01.1": entry("x" * 2**21)}), "its code is larger than 1 MiB"),
    ],
)
def test_a_file_that_is_none_has_its_problem_said(tmp_path, text, problem):
    one = found(tmp_path, text)
    assert (one.problem, one.steps, one.owner.student) == (problem, (), "ann")


def test_a_file_from_a_learning_platform_has_its_students_name(tmp_path):
    name = "doejane_501_7001_shardmath-progress-2026-11-23-2.json"
    one = found(tmp_path, saved({"01.1": entry("1")}), name)
    assert (one.owner.student, one.chapters) == ("doejane 501", {"01"})
    assert one.is_saved_progress
