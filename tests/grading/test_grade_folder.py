"""Grading a folder: every submission is judged, whatever the others try."""

import csv
import html.parser
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from grading_material import (
    BLANK,
    CODE,
    ENDLESS,
    FUNCTION,
    NAME,
    NUMBER,
    RIGHT,
    WAITS,
    WRONG_NUMBER,
    best_walls,
    kill_with_an_answer_running,
    notebook,
)

from shardmath.exercises import answers
from shardmath.exercises.kinds import Finding
from shardmath.grading import folder, isolation, results
from shardmath.grading import grade as grading
from shardmath.grading.results import Graded, ResultRow

ISOLATION = best_walls()
UNSAFE = [] if ISOLATION.closed else ["--unsafe"]  # of a machine without bubblewrap
SECONDS = 6  # so long one endless answer takes; three of them outlast two restarts

FORGERY = f"""
import os, json
from shardmath.exercises import answers, kinds as questions
from shardmath import exercises
from shardmath.grading import sandboxed

won = questions.Finding("correct", "trust me")
check = exercises.check = exercises.examine = lambda *a, **k: won
for kind in (questions.Number, questions.Function):
    kind.judge = lambda *a: won
line = json.dumps({{"question": "{NUMBER.id}", "result": vars(won)}}) + "\\n"
for descriptor in range(1, 40):
    for said in (line, '{{"at": []}}\\n', '{{"question": []}}\\n', "[" * 9999 + "\\n"):
        try:
            os.write(descriptor, said.encode())
        except OSError:
            pass
answers.chapter('01').clear()
answer = 12345.678
"""
STRANGERS = """
import itertools, os, random
for descriptor in range(1, 40):
    for n in range(9):
        try:
            os.write(descriptor, f'{{"at": "{random.random()}"}}\\n'.encode())
        except OSError:
            pass
os._exit(0)
"""
NEST = """
import os
for n in range(1200):  # deeper than Python recurses
    os.mkdir("d")
    os.chdir("d")
"""


def put(root, content):
    for name, text in content.items():
        path = os.fsencode(root) + b"/" + os.fsencode(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)


def table(path):
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """One run over everything: rows by student, the folder, and what was said."""
    root = tmp_path_factory.mktemp("grade")
    raises = f"def {NAME}(*a):\n    return 1 / 0"
    surrogates = "raise ValueError('\\ud800 \\x00')", "'\ud800'\n" + CODE
    tries = {
        "exit": {NUMBER.id: STRANGERS, FUNCTION.id: WAITS},
        "stops": {NUMBER.id: "answer = = 3", FUNCTION.id: "raise SystemExit"},
        "forger": {NUMBER.id: FORGERY},
        "bomb": {NUMBER.id: "answer = len(bytearray(2**36))", FUNCTION.id: raises},
        "surrogate": dict(zip(RIGHT, surrogates, strict=False)),
        "wrong": {NUMBER.id: WRONG_NUMBER, FUNCTION.id: NEST + CODE},
    }
    content = {
        f"{who}/01_x.ipynb": notebook(RIGHT | code) for who, code in tries.items()
    }
    output = {"output_type": "stream", "name": "stdout", "text": "x" * 2**21}
    some = {NUMBER.id: RIGHT[NUMBER.id]}
    content |= {
        "right/01_x.ipynb": notebook(RIGHT, outputs=[output]),  # 22 MiB of outputs
        "unmarked.IPYNB": notebook(RIGHT, marked=False),
        "caf\udce9/01_x.ipynb": notebook(some),
        "again_501_7001_01_x.ipynb": notebook(some | {FUNCTION.id: CODE}),
        "again_501_7002_01_x-1.ipynb": notebook({NUMBER.id: "answer = '<script>'"}),
        "=formula/01_x.ipynb": "{",
        "\tformula/01_x.ipynb": "[1, 2]",
        "broken/a.ipynb": '{"cells": [1]}',
        "broken/b.ipynb": '{"cells": []}',
        "broken/c.ipynb": "[" * 100_000,
        ".ipynb_checkpoints/x.ipynb": "{",
        "zipped/01_x.zip": "PK",
    }
    submitted = root / "submitted"
    put(submitted, content)
    (submitted / "linked.ipynb").symlink_to(submitted / "right" / "01_x.ipynb")
    (submitted / "dangling.ipynb").symlink_to("nowhere")
    os.mkfifo(submitted / "fifo.ipynb")
    nest = os.getcwd()
    os.chdir(submitted)
    for _ in range(1200):
        os.mkdir("deep")
        os.chdir("deep")
    os.chdir(nest)
    put(root / "reference", {"01_x.ipynb": notebook(BLANK)})
    roster = root / "roster.csv"
    roster.write_text("student,name\n501,Ann\nabsent,Bo\nwrong,=Cy\n", "utf-8-sig")
    told = [submitted, "--reference", root / "reference", "--roster", roster]
    told += ["--out", root / "out", "--seconds", SECONDS, "--memory", 2, *UNSAFE]
    with pytest.MonkeyPatch.context() as patch:
        said: list[str] = []
        patch.setattr(folder, "_say", said.append)
        assert folder.main(list(map(str, told))) == 0
    rows: dict = {}
    for row in table(root / "out" / "answers.csv"):
        rows.setdefault(row["student"], {})[row["question"]] = row
    yield rows, root / "out", said
    subprocess.run(["rm", "-rf", submitted], check=True)  # pytest's own recurses


def verdicts(rows):
    return [rows[question]["verdict"] for question in RIGHT]


@pytest.mark.parametrize(
    ("student", "expected"),
    [
        ("right", ["correct", "correct", "correct"]),
        ("unmarked", ["correct", "correct", "correct"]),
        ("caf\\udce9", ["correct", "todo", "todo"]),
        ("wrong", ["wrong", "correct", "correct"]),
        ("stops", ["invalid", "invalid", "correct"]),
        ("exit", ["invalid", "invalid", "correct"]),
        ("bomb", ["invalid", "wrong", "correct"]),
        ("surrogate", ["invalid", "invalid", "correct"]),
    ],
)
def test_each_answer_is_judged_apart(graded, student, expected):
    rows = graded[0][student]
    assert verdicts(rows) == expected
    for question, verdict in zip(RIGHT, expected, strict=True):
        points = answers.find(question).points if verdict == "correct" else 0
        assert int(rows[question]["points"]) == points


def test_forged_verdicts_earn_nothing(graded):
    rows = graded[0]["forger"]
    assert rows[NUMBER.id]["verdict"] in ("wrong", "invalid")
    assert rows[NUMBER.id]["points"] == "0"


def test_what_is_no_exercise_is_said_not_to_be_graded(graded):
    rows, out, _ = graded
    for student in ("broken", "'=formula", "\\tformula"):
        assert rows[student][""]["verdict"] == "not graded"
    said = [next(out.glob(f"feedback/broken-{x}-*.html")).read_text() for x in "abc"]
    assert all("was not graded" in page for page in said)
    assert "none of its cells" in said[1]


def test_what_is_left_out_is_said_with_the_reason(graded):
    overview = (graded[1] / "index.html").read_text("utf-8")
    for path, why in {
        "linked.ipynb": "a symbolic link",
        "dangling.ipynb": "a symbolic link",
        "fifo.ipynb": "not a file",
        "zipped/01_x.zip": "an archive; unpack it first",
        ".ipynb_checkpoints": "a hidden folder",
        "/".join(["deep"] * 21): "nested too deeply",
    }.items():
        assert f'<th scope="row">{path}</th><td>{why}</td>' in overview


def test_the_run_says_its_walls_and_how_far_it_is(graded):
    first, *progress = graded[2]
    assert first == ISOLATION.said
    assert [line.split("/")[0] for line in progress] == [
        str(n) for n in range(1, len(progress) + 1)
    ]
    assert f"/{len(progress)} " in progress[0]


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def test_pages_stand_alone(graded):
    _, out, _ = graded
    for page in [out / "index.html", *out.glob("feedback/*.html")]:
        seen = Tags(page.read_text("utf-8")).seen
        names = [tag for tag, _ in seen]
        assert names.count("h1") == names.count("title") == names.count("main") == 1
        assert ("html", {"lang": "en"}) in seen
        assert not {"script", "link", "img", "iframe"} & set(names)


def test_no_students_page_leads_to_another_or_names_one(graded):
    _, out, _ = graded
    pages = {page.name: page.read_text("utf-8") for page in out.glob("feedback/*")}
    assert not [name for name, page in pages.items() if "<a" in page]
    for name, page in pages.items():
        others = {"forger", "surrogate", "unmarked"}
        assert not [who for who in others if who in page and not name.startswith(who)]
    overview = Tags((out / "index.html").read_text("utf-8")).seen
    linked = {Path(attrs["href"]).name for tag, attrs in overview if tag == "a"}
    assert linked == set(pages)


def page_of(out, start):
    return next(out.glob(f"feedback/{start}*.html")).read_text("utf-8")


def test_a_page_shows_the_students_code_and_quotes_it_safely(graded):
    _, out, _ = graded
    assert "answer = &#39;&lt;script&gt;&#39;" in page_of(out, "again_501_7002")
    assert WRONG_NUMBER in page_of(out, "wrong")
    assert "Hint: " in page_of(out, "wrong")
    assert "\\ud800" in page_of(out, "surrogate")


def test_totals_take_the_latest_attempt_and_the_roster(graded):
    _, out, _ = graded
    totals = {row["student"]: row for row in table(out / "totals.csv")}
    assert totals["501"]["points"] == "0"  # the better one came first
    assert totals["501"]["name"] == "Ann"
    assert totals["absent"]["points"] == totals["absent"]["notebooks"] == "0"
    assert totals["wrong"]["name"] == "'=Cy"
    maximum = sum(answers.find(question).points for question in RIGHT)
    assert {row["maximum"] for row in totals.values()} == {str(maximum)}
    assert totals["right"]["points"] == totals["right"]["points 01"] == str(maximum)
    overview = (out / "index.html").read_text("utf-8")
    assert "right, not on the roster" in overview
    assert 'aria-label="correct">✓' in overview


def test_the_class_is_told_its_slips(graded):
    overview = (graded[1] / "index.html").read_text("utf-8")
    slip = graded[0]["wrong"][NUMBER.id]["slip"]
    assert slip == NUMBER.slips[0].name
    asked = sum(NUMBER.id in rows for rows in graded[0].values())
    assert f"1 of {asked}: {slip}" in overview


def small(tmp_path, content):
    put(tmp_path / "in", content)
    put(tmp_path / "reference", {"01_x.ipynb": notebook({NUMBER.id: BLANK[NUMBER.id]})})
    told = [str(tmp_path / "in"), "--reference", str(tmp_path / "reference")]
    return [*told, "--jobs", "1", *UNSAFE]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are in /proc")
def test_a_killed_run_leaves_nothing_running_and_goes_on(tmp_path, capfd):
    if not ISOLATION.closed:
        pytest.skip(ISOLATION.said)
    told = small(
        tmp_path,
        {
            "a.ipynb": notebook({NUMBER.id: RIGHT[NUMBER.id]}),
            "b.ipynb": notebook({NUMBER.id: ENDLESS}),
        },
    )
    grader = subprocess.Popen(
        [sys.executable, "-m", "shardmath.grading", *told],
        stderr=subprocess.PIPE,
        text=True,
    )
    with grader.stderr:
        while "1/2 a.ipynb" not in grader.stderr.readline():
            assert grader.poll() is None
        kill_with_an_answer_running(grader)

    (tmp_path / "in" / "b.ipynb").write_text(notebook({NUMBER.id: WRONG_NUMBER}))
    assert folder.main(told) == 0
    said = capfd.readouterr().err
    assert "a.ipynb: graded before" in said
    assert "b.ipynb: graded before" not in said
    assert folder.main(told) == 0
    assert "b.ipynb: graded before" in capfd.readouterr().err
    found = {row["student"]: row["verdict"] for row in table(out(tmp_path, "answers"))}
    assert found == {"a": "correct", "b": "wrong"}


def out(tmp_path, name):
    return tmp_path / "in-graded" / f"{name}.csv"


def test_no_error_of_the_grader_passes_to_another_submission(
    tmp_path, capsys, monkeypatch
):
    fails = [True]

    def grade(submission, **rest):
        if submission.notebook == "a.ipynb" and fails:
            raise RecursionError("\ud800")
        return Graded(submission, (ResultRow(NUMBER.id, Finding("correct", "\ud800")),))

    monkeypatch.setattr(folder, "grade", grade)
    told = small(tmp_path, {"a.ipynb": "{}", "b.ipynb": "{}"})
    assert folder.main(told) == 0
    found = {row["student"]: row for row in table(out(tmp_path, "answers"))}
    assert found["a"]["verdict"] == "not graded"
    assert found["b"]["verdict"] == "correct"
    fails.clear()  # it was not kept: the next run tries again
    assert folder.main(told) == 0
    found = {row["student"]: row for row in table(out(tmp_path, "answers"))}
    assert found["a"]["verdict"] == "correct"


def test_a_result_that_cannot_be_kept_stops_nothing(tmp_path, capsys, monkeypatch):
    def no_memory(*rest):
        raise MemoryError

    monkeypatch.setattr(results.ResultStore, "keep", no_memory)
    told = small(tmp_path, {"a.ipynb": "{}", "b.ipynb": "{}"})
    assert folder.main(told) == 0
    said = capsys.readouterr().err
    assert said.count("MemoryError: this result is not kept") == 2
    monkeypatch.setattr(results.ResultStore, "known", no_memory)
    assert folder.main(told) == 0
    assert "the grader met MemoryError" in out(tmp_path, "answers").read_text("utf-8")


@pytest.fixture
def run_order(monkeypatch):
    """(notebook, chapters of the exercises) as they are graded; each is right."""
    seen = []

    def grade(one, reference, **rest):
        seen.append((one.notebook, sorted(reference)))
        asked = [q for q in grading.questions(reference) if q[:2] in one.chapters]
        return Graded(one, tuple(ResultRow(q, Finding("correct", "")) for q in asked))

    monkeypatch.setattr(folder, "grade", grade)
    return seen


def two_chapters(tmp_path, content):
    told = small(tmp_path, content)
    put(tmp_path / "reference", {"09_y.ipynb": OTHER})
    return told


def totals(tmp_path):
    rows = table(out(tmp_path, "totals"))
    return {row["student"]: (row["points"], row["maximum"]) for row in rows}


ONE = notebook({NUMBER.id: RIGHT[NUMBER.id]})
OTHER = notebook({NUMBER.id: RIGHT[NUMBER.id]}).replace(NUMBER.id, "09.1")
BOTH = json.dumps({"cells": [c for n in (ONE, OTHER) for c in json.loads(n)["cells"]]})


def test_a_chapter_that_one_student_brought_is_said_and_does_not_count(
    tmp_path, capsys, run_order
):
    told = two_chapters(tmp_path, {"a.ipynb": ONE, "b.ipynb": ONE, "c.ipynb": BOTH})
    assert folder.main(told) == 0
    points = str(NUMBER.points)
    assert totals(tmp_path) == dict.fromkeys("abc", (points, points))
    line = "Chapter 09 does not count: 1 of 3 students handed it in."
    assert line in capsys.readouterr().err
    assert line in (tmp_path / "in-graded" / "index.html").read_text("utf-8")


def test_the_chapters_named_are_run_and_count_and_no_other(tmp_path, capsys, run_order):
    told = two_chapters(tmp_path, {"a.ipynb": ONE, "b.ipynb": BOTH, "c.ipynb": OTHER})
    other = str(answers.find("09.1").points)
    assert folder.main([*told, "--chapters", "9"]) == 0
    assert run_order == [(f"{name}.ipynb", ["09"]) for name in "abc"]
    assert totals(tmp_path) == {"a": ("0", other), "b": (other,) * 2, "c": (other,) * 2}
    assert folder.main([*told, "--chapters", "01,09"]) == 0
    assert "c.ipynb: graded before" in capsys.readouterr().err  # it answers 09 alone
    assert {most for _, most in totals(tmp_path).values()} == {
        str(NUMBER.points + answers.find("09.1").points)
    }


@pytest.mark.parametrize(
    ("attempts", "order"),
    [
        ("latest", ["many/4", "one/1", "many/2"]),
        ("best", ["many/4", "one/1", "many/3", "many/2", "many/1"]),
    ],
)
def test_nobodys_many_notebooks_hold_up_the_class(
    tmp_path, capsys, run_order, attempts, order
):
    content = {"many/1": BOTH, "many/2": BOTH, "many/3": ONE, "many/4": ONE}
    content["one/1"] = ONE
    told = two_chapters(tmp_path, {f"{n}.ipynb": text for n, text in content.items()})
    for n in content:
        os.utime(tmp_path / "in" / f"{n}.ipynb", (int(n[-1]),) * 2)
    assert folder.main([*told, "--attempts", attempts]) == 0
    assert [name for name, _ in run_order] == [f"{name}.ipynb" for name in order]
    said = [row["notebook"] for row in table(out(tmp_path, "answers"))]
    assert said == sorted(said)
    assert len(set(said)) == 5
    assert len(table(out(tmp_path, "totals"))) == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--chapters", "99,1"], "--chapters 99: choose from 01"),
        (["--jobs", "0"], "'0': must be a whole number, at least 1"),
        (["--memory", "nan"], "'nan': must be a number, at least 2"),
        (["--memory", "0.3"], "'0.3': must be a number, at least 2"),
        (["--total", "9"], "--total 9: must be at least --seconds"),
        (["--points", "file"], 'has no column "student"; it needs "student", "questi'),
        (["--seconds", "-1"], "'-1': must be a number, at least 1"),
        (["--seconds", "inf"], "'inf': must be a number, at least 1"),
        (["--out", "in/x"], "must be outside the folder of submissions"),
        (["--out", "file/x"], ": Not a directory"),
        (["--roster", "file"], 'needs a column "student" and may have "name"'),
        (["--roster", "none"], "cannot be read as UTF-8"),
        (["--reference", "."], "holds no exercise notebook such as 01_rooflines.ipynb"),
    ],
)
def test_wrong_options_are_said_in_one_line(tmp_path, capsys, monkeypatch, more, said):
    told = small(tmp_path, {"a.ipynb": "{}"})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x,y\n")
    with pytest.raises(SystemExit):
        folder.main([*told, *more])
    assert said in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("missing", "missing: no such folder"),
        ("empty", "holds no notebook (.ipynb) and no saved progress (.json)"),
    ],
)
def test_a_folder_without_notebooks_is_said_in_one_line(tmp_path, capsys, given, said):
    told = small(tmp_path, {"a.ipynb": "{}"})
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit):
        folder.main([str(tmp_path / given), *told[1:]])
    assert capsys.readouterr().err.splitlines()[-1].endswith(said)


def test_the_folder_may_be_here(tmp_path, capsys, monkeypatch):
    told = small(tmp_path, {"a.ipynb": "{}"})
    monkeypatch.chdir(tmp_path / "in")
    assert folder.main([".", *told[1:]]) == 0
    assert table(out(tmp_path, "answers"))[0]["verdict"] == "not graded"


def test_a_damaged_result_is_found_anew(tmp_path, capsys):
    told = small(tmp_path, {"a.ipynb": "{}"})
    assert folder.main(told) == 0
    (kept,) = (tmp_path / "in-graded" / "results").iterdir()
    for damage in ("{", "[]", json.dumps({"rows": [{}], "problem": ""})):
        kept.write_text(damage)
        capsys.readouterr()
        assert folder.main(told) == 0
        assert "graded before" not in capsys.readouterr().err


# Isolation


SNOOP = """
import os
reached = []
for path in {paths!r}:
    try:
        reached += os.listdir(path) if os.path.isdir(path) else [open(path).read()]
    except OSError:
        pass
raise ValueError(f"reached {{len(reached)}} things")
"""


def snooping(tmp_path):
    """A folder where one submission looks for another one, and for the results."""
    paths = [tmp_path / "in" / "b.ipynb", tmp_path / "in", tmp_path / "in-graded"]
    code = SNOOP.format(paths=[str(path) for path in paths])
    right = notebook({NUMBER.id: RIGHT[NUMBER.id]})
    told = small(tmp_path, {"a.ipynb": notebook({NUMBER.id: code}), "b.ipynb": right})
    return [option for option in told if option != "--unsafe"]


@pytest.fixture
def no_isolation(monkeypatch):
    """As on a machine without bubblewrap."""
    monkeypatch.setattr(isolation, "_fault", lambda rung: "bwrap is not on the PATH")
    isolation.isolation.cache_clear()
    yield
    isolation.isolation.cache_clear()


def page(tmp_path, start):
    found = (tmp_path / "in-graded" / "feedback").glob(f"{start}*.html")
    return next(found).read_text("utf-8")


@pytest.mark.skipif(not ISOLATION.closed, reason=ISOLATION.said)
def test_an_answer_reads_no_other_submission_and_no_results(tmp_path, capsys):
    assert folder.main(snooping(tmp_path)) == 0
    assert "reached 0 things" in page(tmp_path, "a-")
    rows = table(out(tmp_path, "answers"))
    assert {row["isolation"] for row in rows} == {ISOLATION.name}
    overview = (tmp_path / "in-graded" / "index.html").read_text("utf-8")
    assert "Answers run in bubblewrap" in overview


def test_without_isolation_nothing_is_graded(tmp_path, capsys, no_isolation):
    told = snooping(tmp_path)
    assert folder.main(told) == 3
    said = capsys.readouterr().err
    assert said.startswith("Nothing was graded")
    assert "bwrap is not on the PATH" in said
    assert "--unsafe" in said
    assert not (tmp_path / "in-graded").exists()


def test_the_command_refuses_where_the_tools_are_not_on_the_path(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-m", "shardmath.grading", *snooping(tmp_path)],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 3
    assert "Nothing was graded" in ran.stderr
    assert not (tmp_path / "in-graded").exists()


def test_an_unsafe_result_says_so_and_is_never_used_for_an_isolated_one(
    tmp_path, capsys, monkeypatch
):
    told = snooping(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isolation, "_fault", lambda rung: "bwrap is not on the PATH")
        isolation.isolation.cache_clear()
        assert folder.main([*told, "--unsafe"]) == 0
        assert "UNSAFE" in capsys.readouterr().err
        assert folder.main([*told, "--unsafe"]) == 0
        assert capsys.readouterr().err.count("graded before") == 2
    isolation.isolation.cache_clear()
    assert "reached 0 things" not in page(tmp_path, "a-")  # it did read them
    assert "Graded without isolation" in page(tmp_path, "b-")
    overview = (tmp_path / "in-graded" / "index.html").read_text("utf-8")
    assert "Graded without isolation" in overview
    for name in ("answers", "totals"):
        rows = table(out(tmp_path, name))
        assert {row["isolation"] for row in rows} == {"none"}
    if not ISOLATION.closed:
        pytest.skip(ISOLATION.said)
    assert folder.main(told) == 0
    assert "graded before" not in capsys.readouterr().err
    assert "reached 0 things" in page(tmp_path, "a-")


# What is not graded, and points by hand


def totals_by_student(tmp_path):
    return {row["student"]: row for row in table(out(tmp_path, "totals"))}


def test_what_cannot_be_graded_is_a_row_with_a_problem(tmp_path, capsys):
    told = small(
        tmp_path,
        {
            "good/01_x.ipynb": ONE,
            "broken/01_x.ipynb": "{",
            "zipped/work.zip": "PK",
            "script/answers.py": "answer = 3",
            "jane_77_7001_w.zip": "PK",
            "flat.py": "answer = 3",
            "roster.csv": "student\n",
            ".DS_Store": "",
        },
    )
    (tmp_path / "roster").write_text("student\ngood\nabsent\n")
    assert folder.main([*told, "--roster", str(tmp_path / "roster")]) == 0
    rows = totals_by_student(tmp_path)
    neither = "neither a notebook (.ipynb) nor a saved progress file (.json)"
    assert {who: row["problem"] for who, row in rows.items()} == {
        "good": "",
        "absent": "handed in nothing",
        "broken": "broken/01_x.ipynb: it is not a notebook",
        "zipped": "zipped/work.zip: an archive; unpack it first",
        "script": f"script/answers.py: {neither}",
        "jane 77": "jane_77_7001_w.zip: an archive; unpack it first",
        "flat": f"flat.py: {neither}",
    }
    assert all(row["problem"] for row in rows.values() if row["points"] == "0")
    overview = (tmp_path / "in-graded" / "index.html").read_text("utf-8")
    for row in rows.values():
        assert row["problem"] in overview
    assert "6 students with a problem" in capsys.readouterr().out


def test_a_folder_of_archives_alone_is_reported_too(tmp_path, capsys):
    assert folder.main(small(tmp_path, {"a/x.zip": "PK", "b/y.zip": "PK"})) == 0
    found = {who: row["problem"] for who, row in totals_by_student(tmp_path).items()}
    assert list(found) == ["a", "b"]
    assert all("archive" in problem for problem in found.values())


def test_late_submissions_are_shown_as_such(tmp_path, capsys, run_order):
    told = small(
        tmp_path, {"ann_501_7001_x.ipynb": ONE, "bo_LATE_502_7002_x.ipynb": ONE}
    )
    assert folder.main(told) == 0
    late = {who: row["late"] for who, row in totals_by_student(tmp_path).items()}
    assert late == {"ann 501": "", "bo 502": "yes"}
    assert [row["late"] for row in table(out(tmp_path, "answers"))] == ["", "yes"]
    overview = (tmp_path / "in-graded" / "index.html").read_text("utf-8")
    assert "bo 502, late" in overview
    assert "handed in late" in page(tmp_path, "bo_LATE")
    assert "handed in late" not in page(tmp_path, "ann_501")


def test_points_by_hand_survive_the_next_run(tmp_path, capsys):
    told = small(tmp_path, {"a.ipynb": notebook({NUMBER.id: WRONG_NUMBER})})
    assert folder.main(told) == 0
    assert totals_by_student(tmp_path)["a"]["points"] == "0"
    (tmp_path / "in-graded" / "by_hand.csv").write_text(
        "student,question,points,note\n"
        f"a,{NUMBER.id},0.5,a slip of the pen\n"
        f"nobody,{NUMBER.id},1,\n"
        "a,09.1,1,\n"
    )
    for _ in range(2):
        assert folder.main(told) == 0
        row = totals_by_student(tmp_path)["a"]
        assert (row["points"], row["points 01"]) == ("0.5", "0.5")
        assert row["by hand"] == f"{NUMBER.id}: 0.5"
    assert f"0.5 of {NUMBER.points}, given by hand: a slip" in page(tmp_path, "a-")
    overview = (tmp_path / "in-graded" / "index.html").read_text("utf-8")
    assert '<span role="img" aria-label="by hand">✎</span> 0.5' in overview
    said = capsys.readouterr().err
    for text in (said, overview):
        assert "of “nobody” have no effect: there is no such student" in text
        assert "of “a” have no effect: the question does not count" in text


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("a,01.99,1", "line 2: question '01.99'"),
        (f"a,{NUMBER.id},half", "line 2: points 'half': must be from 0 to"),
        (f"a,{NUMBER.id},-1", "line 2: points '-1': must be from 0 to"),
        (f"a,{NUMBER.id},99", "line 2: points '99': must be from 0 to"),
        (f"a,{NUMBER.id},nan", "line 2: points 'nan': must be from 0 to"),
        (f",{NUMBER.id},1", "line 2: has no student"),
        (f"a,{NUMBER.id},1\na,{NUMBER.id},0", f"already has points for {NUMBER.id}"),
    ],
)
def test_points_by_hand_that_cannot_be_are_refused(tmp_path, capsys, row, said):
    told = small(tmp_path, {"a.ipynb": "{}"})
    (tmp_path / "points.csv").write_text(f"student,question,points\n{row}\n")
    with pytest.raises(SystemExit):
        folder.main([*told, "--points", str(tmp_path / "points.csv")])
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_a_full_disk_is_told_apart_from_kept_results(
    tmp_path, capsys, monkeypatch, run_order
):
    def full(*rest):
        raise OSError(28, "No space left on device", "totals.csv")

    keep = results.ResultStore.keep
    told = small(tmp_path, {"a.ipynb": ONE, "b.ipynb": ONE})
    monkeypatch.setattr(folder.sheets, "totals_csv", full)
    monkeypatch.setattr(results.ResultStore, "keep", full)
    assert folder.main(told) == 1
    said = capsys.readouterr().err
    assert "no result is kept: make room, and run the same again" in said
    assert "the results are kept" not in said

    def half(store, key, graded):
        keep(store, key, graded) if graded.notebook == "a.ipynb" else full()

    monkeypatch.setattr(results.ResultStore, "keep", half)
    assert folder.main(told) == 1
    said = capsys.readouterr().err
    assert "1 of 2 results are kept; the other 1 are graded again" in said
    monkeypatch.setattr(results.ResultStore, "keep", keep)
    assert folder.main(told) == 1
    assert "the results are kept, so run the same again" in capsys.readouterr().err


def test_both_numbers_are_stated_what_stands_and_what_was_ever_right(tmp_path, capsys):
    content = json.loads(notebook({NUMBER.id: WRONG_NUMBER}))
    text = f"✓ {NUMBER.id} correct: it was, once"
    content["cells"][-1]["outputs"] = [{"data": {"text/plain": [text]}}]
    told = small(tmp_path, {"a.ipynb": json.dumps(content)})
    assert folder.main(told) == 0
    row = totals_by_student(tmp_path)["a"]
    assert (row["points"], row["ever right"]) == ("0", str(NUMBER.points))
    (answer,) = table(out(tmp_path, "answers"))
    assert (answer["verdict"], answer["shown correct"]) == ("wrong", "yes")
    said = page(tmp_path, "a-")
    assert f"0 of {NUMBER.points} points as the file stands" in said
    assert f"at some time, {NUMBER.points}." in said


def test_nobodys_points_change_by_a_file_that_another_hands_in_under_her_name(
    tmp_path, capsys
):
    told = small(tmp_path, {"ann_1001_5001_x.ipynb": ONE})
    (tmp_path / "roster").write_text("student,name\n1001,ann\n", "utf-8")
    told += ["--roster", str(tmp_path / "roster")]
    assert folder.main(told) == 0
    before = totals_by_student(tmp_path)["1001"]
    wrong = notebook({NUMBER.id: WRONG_NUMBER})
    put(tmp_path / "in", {"ann_1002_5002_x-9.ipynb": wrong, "ann_1003_5003_x.zip": ""})
    assert folder.main(told) == 0
    after = totals_by_student(tmp_path)
    assert after["1001"] == before
    assert before["points"] == str(NUMBER.points)
    assert "has the name of “1001” on the roster" in after["ann 1002"]["problem"]
    assert after["ann 1003"]["problem"].endswith("an archive; unpack it first")
    assert "“ann 1003” has the name of “1001”" in capsys.readouterr().err


def test_names_that_clash_or_look_alike_are_reported(tmp_path, capsys, run_order):
    names = ("1001_1002_66666_x", "Ann", "A\u200cnn", "\u0410nn")
    told = small(tmp_path, {f"{name}.ipynb": ONE for name in names})
    (tmp_path / "roster").write_text("student\n1001\n1002\nAnn\n", "utf-8")
    assert folder.main([*told, "--roster", str(tmp_path / "roster")]) == 0
    rows = totals_by_student(tmp_path)
    assert rows["1001"]["points"] == rows["1002"]["points"] == "0"
    said = capsys.readouterr().err
    overview = (tmp_path / "in-graded" / "index.html").read_text("utf-8")
    for text in (said, overview.replace("&#39;", "'")):
        assert "may be number 1001 or number 1002, so it is counted as neither" in text
        assert r"These names look alike: 'A\u200cnn', 'Ann', '\u0410nn'." in text
        assert r"The name '\u0410nn' mixes Cyrillic and Latin letters." in text
