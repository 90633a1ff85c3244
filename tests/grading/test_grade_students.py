"""Whose a submission is, which attempt counts, and what the class got wrong."""

import dataclasses
import json
import os

import pytest
from grading_material import FUNCTION, NUMBER, submission

from shardmath.exercises.kinds import Finding
from shardmath.grading import folder, students, submissions
from shardmath.grading.gradebook import standing
from shardmath.grading.results import Graded, ResultRow
from shardmath.grading.students import Owner, enrolled, owner


@pytest.mark.parametrize(
    ("first", "file", "student", "when"),
    [
        ("jane", "01_x.ipynb", "jane", ""),
        ("Jane Doe_123_assignsubmission_file", "01_x.ipynb", "Jane Doe 123", ""),
        ("Jane Doe_123_assignsubmission_file_01_x", "…", "Jane Doe 123", ""),
        ("doejane_501_7001_01_x", "doejane_501_7001_01_x.ipynb", "doejane 501", ""),
        (
            "doejane_LATE_501_7002_01_x-2",
            "doejane_LATE_501_7002_01_x-2.ipynb",
            "doejane 501",
            "000002",
        ),
        (
            "Week 1_jdoe_attempt_2024-10-05-14-30-12_01_x",
            "…",
            "jdoe",
            "2024-10-05-14-30-12",
        ),
        (
            "12-34 - Jane Doe - Oct 5, 2024 105 PM",
            "01_x.ipynb",
            "Jane Doe 12-34",
            "2024-10-05T13:05:00",
        ),
    ],
)
def test_names_of_learning_platforms_are_read(first, file, student, when):
    whose = owner(first, file)
    assert (whose.student, whose.when) == (student, when)
    assert student in whose.known_as
    assert whose.is_late is ("_LATE_" in first)


@pytest.mark.parametrize(
    ("first", "student"),
    [
        ("mallory_12345_67890_x_12399_assignsubmission_", "mallory 12345"),
        ("mallory_LATE_12345_67890_x_12399_attempt_2023-10-05", "mallory 12345"),
        ("mallory_12345_67890_1-2 - Alice - Oct 5, 2023 230 PM", "mallory 12345"),
        ("Mal Lory_12345_assignsubmission_file_x_12399_678_y", "Mal Lory 12345"),
        (
            "Mal Lory_12345_assignsubmission_x_12399_attempt_2023-10-05",
            "Mal Lory 12345",
        ),
        ("HW_mal_attempt_2023-10-05-14-30-00_x_12399_assignsubmission_", "mal"),
        ("HW_mal_attempt_2023-10-05-14-30-00_x_12399_678_y", "mal"),
        ("HW_mal_attempt_2023-10-05-14-30-00_12399_attempt_2024-10-05", "mal"),
        ("1-2 - Mal Lory - Oct 5, 2023 230 PM - x_12399_678_y", "Mal Lory 1-2"),
        ("1-2 - Mal Lory - Oct 5, 2023 230 PM - 3-4 - Al - Oct 6", "Mal Lory 1-2"),
        (
            "1-2 - Mal Lory - Oct 5, 2023 230 PM - x_12399_assignsubmission_",
            "Mal Lory 1-2",
        ),
        (
            "1-2 - Mal Lory - Oct 5, 2023 230 PM - x_12399_attempt_2023-10-05",
            "Mal Lory 1-2",
        ),
    ],
)
def test_the_part_of_a_name_that_a_student_chooses_decides_nothing(first, student):
    roster = {"12399": "Alice Doe", "3-4": "Al", "Al": "", "Alice": ""}
    assert enrolled(owner(first, f"{first}.ipynb"), roster).student == student


def test_the_date_of_a_flat_brightspace_name_is_read():
    first = "12-34 - Jane Doe - Oct 5, 2024 105 PM - 01_x - 2"
    assert owner(first, f"{first}.ipynb").when == "2024-10-05T13:05:00"


def attempt(verdicts, when, student="ann"):
    one = submission({}, f"{student}{when}")
    whose = Owner(student, frozenset({student}), when)
    rows = [ResultRow(q, Finding(verdict, "", slip)) for q, verdict, slip in verdicts]
    return Graded(dataclasses.replace(one, owner=whose), tuple(rows))


def test_latest_and_best_attempts_are_told_apart():
    better = attempt([(NUMBER.id, "correct", ""), (FUNCTION.id, "todo", "")], "1")
    later = attempt([(NUMBER.id, "wrong", "bits"), (FUNCTION.id, "todo", "")], "2")
    for order in ([better, later], [later, better]):
        (latest,) = standing(order).students
        (best,) = standing(order, "best").students
        assert (latest.points(), best.points()) == (0, NUMBER.points)
        assert latest.submitted == best.submitted == 2


def test_slips_are_counted_once_a_student_and_frequent_first():
    said = ["bits", "bits", "sparse peak", ""]
    graded = [
        attempt([(NUMBER.id, "wrong", slip)], "", f"s{n}")
        for n, slip in enumerate(said)
    ]
    (summary,) = standing(graded).summaries()
    assert summary.asked == 4
    assert summary.slips == (("bits", 2), ("sparse peak", 1))


def test_a_roster_names_the_present_and_lists_the_absent():
    graded = [attempt([(NUMBER.id, "correct", "")], "", "ann")]
    group = standing(graded, roster={"ann": "Ann", "bo": "Bo"})
    assert [(s.name, s.points()) for s in group.students] == [
        ("Ann", NUMBER.points),
        ("Bo", 0),
    ]
    assert group.maximum() == NUMBER.points == group.maximum("01.")
    assert not standing(graded, roster={"bo": ""}).students[0].on_roster


def test_one_students_question_changes_nobodys_maximum():
    right = [(NUMBER.id, "correct", "")]
    more = [*right, ("09.1", "correct", "")]
    for roster in (None, {"s0": "", "s1": "", "absent": ""}):
        graded = [attempt(right, "", f"s{n}") for n in range(2)]
        before = standing(graded, roster=roster)
        for extra in range(3):  # names that a student makes up are on no roster
            graded.append(attempt(more, "", f"x{extra}"))
            if roster or extra == 0:
                group = standing(graded, roster=roster)
                assert group.maximum() == before.maximum() == NUMBER.points
                assert {s.points() for s in group.students} <= {0, NUMBER.points}
                assert "Chapter 09 does not count" in group.left_out[0]
    named = standing(graded, asked={"09.1"})
    assert named.chapters == ["09"]
    assert not named.students[0].points()


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "＝", "＋", "－", "＠"])
def test_no_text_is_a_formula(start):
    for before in ("", " ", "\u3000", '"', ' "" '):
        text = f"{before}{start}1"
        assert submissions.cell(text) == f"'{text}"
        assert submissions.cell(f"x;{text}") == f"x;'{text}"
    assert submissions.cell(-1) == "-1"
    assert submissions.cell("a-b; c = 1") == "a-b; c = 1"


@pytest.mark.parametrize("control", ["\n", "\t", "\r", "\0", "\x1b", "\x9b", "\u2028"])
def test_no_control_character_reaches_a_table_or_a_terminal(control):
    for text in (submissions.printable(control), submissions.cell(control)):
        assert text.isprintable()
        assert text.startswith("\\")


def test_names_that_print_alike_are_of_two_students(tmp_path):
    for name in ("a\nb", "a\\nb", "a\u202eb", "A\u200cli"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.ipynb").write_text("{}")
    found, _ = submissions.found(tmp_path)
    assert {one.owner.student for one in found} == {
        *("a\\nb", "a\\\\nb", "a\\u202eb", "A\u200cli")
    }


def test_a_notebook_of_brackets_is_refused_before_it_is_read(tmp_path, monkeypatch):
    (tmp_path / "a.ipynb").write_text('{"cells": [], "x": [' + "[]," * 2**21 + "0]}")
    monkeypatch.setattr(json, "loads", pytest.fail)
    ((one,), _) = submissions.found(tmp_path)
    assert one.problem == "it has over 2097152 brackets; clear outputs"


def test_a_file_that_may_not_be_read_is_one_problem(tmp_path, monkeypatch):
    for name in "ab":
        (tmp_path / f"{name}.ipynb").write_text('{"cells": []}')
    real = os.open

    def refuse(path, *rest):
        if os.fspath(path).endswith("a.ipynb"):
            raise PermissionError(13, "Permission denied")
        return real(path, *rest)

    monkeypatch.setattr(os, "open", refuse)
    found, left_out = submissions.found(tmp_path)
    assert [(one.notebook, one.problem) for one in found] == [
        ("a.ipynb", "it may not be read"),
        ("b.ipynb", ""),
    ]
    assert not left_out


def test_no_two_files_print_alike(tmp_path):
    for name in (b"\xe9.ipynb", b"\\udce9.ipynb"):
        (tmp_path / os.fsdecode(name)).write_text("{}")
    found, _ = submissions.found(tmp_path)
    assert len({one.notebook for one in found}) == 2


def test_a_roster_holds_a_students_platform_numbers_together():
    numbers = [owner(f"Jane Doe_{n}_assignsubmission_file", "").student for n in "12"]
    assert numbers == ["Jane Doe 1", "Jane Doe 2"]
    for known in ("Jane Doe", "Jane Doe 1", "1"):
        one = owner("Jane Doe_1_assignsubmission_file", "")
        assert enrolled(one, {known: ""}).student == known
        assert enrolled(one, {"2": ""}) == one


@pytest.mark.parametrize(
    ("first", "roster", "student", "notice"),
    [
        # Canvas writes a name first, so a number there may be either's.
        (
            "1001_1002_66666_x",
            {"1001": "A", "1002": "B"},
            "1001 1002",
            "may be number 1001 or number 1002, so it is counted as neither.",
        ),
        ("1001_1002_66666_x", {"1002": "B"}, "1001 1002", "may be number 1001 or"),
        # The number comes before the name.
        (
            "ann_1002_66666_x",
            {"ann": "", "1002": "B"},
            "1002",
            "it is counted as “1002”",
        ),
        ("ann_1002_66666_x", {"ann": "", "1003": "C"}, "ann", ""),
        ("ann_1002_66666_x", {"1002": "ann", "1003": "C"}, "1002", ""),
        ("ann_1002_66666_x", {"1003": "ann"}, "1003", ""),
        ("ann_1002_66666_x", {"ann 1002": "ann", "1003": ""}, "ann 1002", ""),
        # A name that two on the roster have is nobody's.
        ("ann", {"7": "ann", "8": "ann"}, "ann", "matches “7” and “8” on the roster"),
        ("ann_9_assignsubmission_", {"7": "ann", "8": "ann"}, "ann 9", "as neither"),
        ("ann_7_assignsubmission_", {"7": "ann", "8": "ann"}, "7", "it is counted as"),
        # An accent may be a letter of its own.
        ("Jose\u0301", {"Jos\u00e9": ""}, "Jos\u00e9", ""),
    ],
)
def test_a_student_is_found_by_number_then_by_name(first, roster, student, notice):
    found = enrolled(owner(first, f"{first}.ipynb"), roster)
    assert found.student == student
    assert notice in found.notice
    assert bool(notice) == bool(found.notice)


def test_two_numbers_of_one_entry_on_the_roster_are_reported():
    owners = [owner(f"Jane Doe_{n}_assignsubmission_file", "") for n in "12"]
    (said,) = students.clashes(owners, {"Jane Doe": ""})
    assert said.startswith("“Jane Doe” has the numbers 1, 2. Is this one student or")
    assert not students.clashes(owners, {"1": "", "2": ""})
    assert not students.clashes(owners[:1] * 2, {"Jane Doe": ""})


def test_a_name_with_another_number_is_not_the_student_whose_number_came():
    """Students may change their names on a platform, and not their numbers."""
    ann, other = owner("ann_1001_5001_x", ""), owner("ann_1002_5002_x", "")
    roster = {"1001": "ann"}
    numbered = students.found_by_number([ann, other], roster)
    assert numbered == {"1001"}
    assert enrolled(ann, roster, numbered).student == "1001"
    found = enrolled(other, roster, numbered)
    assert found.student == "ann 1002"
    assert "has the name of “1001” on the roster, but a different" in found.notice
    assert not students.clashes([ann, other], roster)  # it is said once
    # A platform's numbers may be none of the roster's.
    assert not students.found_by_number([other], roster)
    assert enrolled(other, roster).student == "1001"
    # The name may be the number: then it decides nothing.
    either = owner("1002_1001_5001_x", "")
    assert not students.found_by_number([either], roster)


def test_a_roster_with_a_student_twice_is_refused(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text("student,name\n501,Ann\n 501,Bo\n")
    with pytest.raises(ValueError, match="has the student '501' twice"):
        students.roster(path)


@pytest.mark.parametrize(
    "other",
    ["An\u200bn", "A\u00adnn", "\u0410nn", "\u0391nn", "ann", "Ann ", "\uff21nn"],
)
def test_names_that_look_alike_are_reported(other):
    said = students.look_alikes(["Ann", other, "Bo"])
    assert (
        said[0]
        == f"These names look alike: {', '.join(sorted(map(ascii, ['Ann', other])))}."
    )


def test_honest_names_are_not_reported():
    names = [
        "José",
        "Jose",
        "Мария Иванова",
        "Νίκος",
        "Zoë 12",
        "李雷",
        "O'Neil",
        "501",
    ]
    assert students.look_alikes(names) == []


def brought(chapters, student):
    return attempt(
        [(f"{chapter}.1", "correct", "") for chapter in chapters], "", student
    )


def test_a_chapter_that_half_of_the_class_brought_does_not_count():
    """Most of a class is more than half of it."""
    half = [brought(("01", "09"), s) for s in "ab"] + [
        brought(("01",), s) for s in "cd"
    ]
    assert standing(half).chapters == ["01"]
    assert "Chapter 09 does not count: 2 of 4" in standing(half).left_out[0]
    most = [*half[:2], brought(("01", "09"), "c"), half[-1]]
    assert standing(most).chapters == ["01", "09"]
    assert standing(most).left_out == ()


def test_work_on_the_website_adds_to_the_notebook():
    """Where both answer, the attempt that counts is chosen; a "todo" replaces none."""

    def file(name, when, verdicts):
        found = attempt([(q, v, "") for q, v in verdicts.items()], when)
        one = dataclasses.replace(found.submission, notebook=name)
        return dataclasses.replace(found, submission=one)

    site = {NUMBER.id: "correct", FUNCTION.id: "todo"}
    book = {NUMBER.id: "wrong", FUNCTION.id: "correct"}
    for when, latest in (("3", "correct"), ("1", "wrong")):
        graded = [file("a.json", when, site), file("b.ipynb", "2", book)]
        for attempts, number in (("latest", latest), ("best", "correct")):
            (ann,) = standing(graded, attempts).students
            found = {q: row.finding.verdict for q, row in ann.rows.items()}
            assert found == {NUMBER.id: number, FUNCTION.id: "correct"}


def test_places_that_could_take_each_others_memory_are_said():
    assert folder._short_of_memory(2, 2**30).startswith("UNSAFE: 2 notebooks")
    assert folder._short_of_memory(1, 2**-10) == ""
