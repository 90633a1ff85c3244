"""Grading a folder: every submission is judged, whatever the others try."""

import ast
import csv
import html.parser
import json
import re
import socket
from pathlib import Path

import pytest

from shardmath import answers
from shardmath.grading import folder, sandbox
from shardmath.questions import Function, Number, Traffic

SECONDS = 10  # so long one endless answer takes


def first(kind):
    return next(q for q in answers.questions().values() if isinstance(q, kind))


NUMBER, FUNCTION, PROGRAM = first(Number), first(Function), first(Traffic)


def worked(question):
    """The code of a worked solution, and the name that it defines last."""
    code = re.search(r"```python\n(.*?)```", question.solution, re.S)[1]
    code = "\n".join(line.removeprefix(" " * 8) for line in code.splitlines())
    return code, ast.parse(code).body[-1].name


CODE, NAME = worked(FUNCTION)
PROGRAM_CODE, PROGRAM_NAME = worked(PROGRAM)
RIGHT = {
    NUMBER.id: f"answer = {NUMBER.expected()!r}",
    FUNCTION.id: CODE,
    PROGRAM.id: PROGRAM_CODE,
}
BLANK = {
    NUMBER.id: "answer = ...",
    FUNCTION.id: f"def {NAME}(*arguments): ...",
    PROGRAM.id: f"def {PROGRAM_NAME}(machine, *sizes): ...",
}
CHECKS = {
    NUMBER.id: f'check("{NUMBER.id}", answer)',
    FUNCTION.id: f'check("{FUNCTION.id}", {NAME})',
    PROGRAM.id: f'check("{PROGRAM.id}", {PROGRAM_NAME})',
}
WRONG_NUMBER = f"answer = {NUMBER.slips[0].wrong(NUMBER.expected())!r}"


def notebook(code, *, marked=True):
    """A notebook with these answer cells, by question."""

    def cell(source, question="", role=""):
        mark = {"shardmath": {"question": question, "role": role}}
        metadata = mark if role and marked else {}
        return {
            "cell_type": "code",
            "source": source.splitlines(keepends=True),
            "metadata": metadata,
            "outputs": [],
            "execution_count": None,
        }

    cells = [cell("from shardmath.grading import check")]
    for question, source in code.items():
        cells += [cell(source, question, "answer")]
        cells += [cell(CHECKS[question], question, "check")]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4})


FORGERY = f"""
import os, json
from shardmath import answers, grading
from shardmath.grading import questions, sandboxed

won = questions.Finding("correct", "trust me")
check = grading.check = grading.examine = lambda *a, **k: won
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


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """One run over everything: rows by student, the folder, and what was printed."""
    root = tmp_path_factory.mktemp("grade")
    victim = root / "victim.txt"
    victim.write_text("untouched")
    listener = socket.create_server(("127.0.0.1", 0))
    package = Path(answers.__file__)
    writes = "".join(
        f"""
try:
    open({str(path)!r}, "a").write("written")
except OSError:
    pass
"""
        for path in (victim, package)
    )
    attack = f"""{writes}
import socket
try:
    socket.create_connection({listener.getsockname()!r}, timeout=2)
except OSError:
    pass
open("notes.txt", "w").write("in its own folder")
answer = {NUMBER.expected()!r}
"""
    raises = f"def {NAME}(*a):\n    return 1 / 0"
    tries = {
        "attacker": {NUMBER.id: attack},
        "exit": {NUMBER.id: "import os; os._exit(0)"},
        "stops": {NUMBER.id: "answer = = 3", FUNCTION.id: "raise SystemExit"},
        "forger": {NUMBER.id: FORGERY},
        "bomb": {NUMBER.id: "answer = len(bytearray(2**36))"},
        "endless": {FUNCTION.id: f"def {NAME}(*a):\n    while True: pass"},
        "wrong": {NUMBER.id: WRONG_NUMBER, FUNCTION.id: raises},
        "right": {},
    }
    content = {
        f"{who}/01_x.ipynb": notebook(RIGHT | code) for who, code in tries.items()
    }
    content |= {
        "unmarked.ipynb": notebook(RIGHT, marked=False),
        "partial.ipynb": notebook({FUNCTION.id: CODE}),
        "=formula/01_x.ipynb": notebook(RIGHT | {NUMBER.id: "answer = '<script>'"}),
        "broken/a.ipynb": "{",
        "broken/b.ipynb": "[1, 2]",
        "broken/c.ipynb": '{"cells": [1]}',
        "broken/d.ipynb": '{"cells": []}',
        "broken/e.ipynb": "[" * 100_000,
        ".ipynb_checkpoints/x.ipynb": "{",
    }
    for name, text in content.items():
        path = root / "submitted" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "reference").mkdir()
    (root / "reference" / "01_x.ipynb").write_text(notebook(BLANK))
    source = package.read_bytes()
    told = [root / "submitted", "--reference", root / "reference"]
    told += ["--out", root / "out", "--seconds", SECONDS, "--memory", 2]
    assert folder.main(list(map(str, told))) == 0
    listener.setblocking(False)
    try:
        listener.accept()
        called = True
    except BlockingIOError:
        called = False
    rows: dict = {}
    with (root / "out" / "grades.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["student"], {})[row["question"]] = row
    closed = victim.read_text() == "untouched" and package.read_bytes() == source
    return rows, root / "out", {"called": called, "disk closed": closed}


def verdicts(rows):
    return [rows[question]["verdict"] for question in RIGHT]


@pytest.mark.parametrize(
    ("student", "expected"),
    [
        ("right", ["correct", "correct", "correct"]),
        ("unmarked", ["correct", "correct", "correct"]),
        ("partial", ["todo", "correct", "todo"]),
        ("wrong", ["wrong", "wrong", "correct"]),
        ("stops", ["invalid", "invalid", "correct"]),
        ("exit", ["invalid", "correct", "correct"]),
        ("bomb", ["invalid", "correct", "correct"]),
        ("endless", ["correct", "invalid", "correct"]),
        ("'=formula", ["invalid", "correct", "correct"]),
        ("attacker", ["correct", "correct", "correct"]),
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


def test_slip_is_in_the_table(graded):
    assert graded[0]["wrong"][NUMBER.id]["slip"] == NUMBER.slips[0].name


def test_what_is_no_exercise_is_said_to_be_unreadable(graded):
    rows, out, _ = graded
    assert rows["broken"][""]["verdict"] == "unreadable"
    said = [(out / f"broken-{x}.html").read_text() for x in "abcde"]
    assert all("could not be graded" in page for page in said)
    assert "none of its cells" in said[3]


def test_network_and_disk_are_closed_where_the_system_can(graded):
    if left_open := sandbox.isolation()[1]:
        pytest.skip(left_open)
    assert graded[2] == {"called": False, "disk closed": True}


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def test_pages_stand_alone_and_quote_answers_safely(graded):
    _, out, _ = graded
    pages = sorted(out.glob("*.html"))
    links = set()
    for page in pages:
        tags = Tags()
        tags.feed(page.read_text("utf-8"))
        names = [tag for tag, _ in tags.seen]
        assert names.count("h1") == names.count("title") == names.count("main") == 1
        assert ("html", {"lang": "en"}) in tags.seen
        assert not {"script", "link", "img", "iframe"} & set(names)
        links |= {a["href"] for tag, a in tags.seen if tag == "a"}
    assert {Path(link).name for link in links} == {page.name for page in pages}
    assert "&lt;script&gt;" in (out / "formula-01_x.html").read_text("utf-8")
    assert "Hint: " in (out / "wrong-01_x.html").read_text("utf-8")


def test_grades_without_namespaces_too(monkeypatch):
    bare = sandbox._LADDER[-1]
    monkeypatch.setattr(sandbox, "isolation", lambda: bare)
    assert "Grade only people you trust" in bare[1]
    submission = folder.Submission("x", "x.ipynb", notebook(RIGHT).encode())
    reference = {"01": json.loads(notebook(BLANK))["cells"]}
    graded = folder.grade(submission, reference, "x", sandbox.Limits(SECONDS))
    assert [row.finding.verdict for row in graded.rows] == ["correct"] * 3


@pytest.mark.parametrize(
    ("given", "files", "said"),
    [
        ("missing", (), "missing: no such folder"),
        ("", (), "holds no notebook (.ipynb)"),
        ("", ("a.ipynb",), "holds no exercise notebook such as 01_rooflines.ipynb"),
    ],
)
def test_what_cannot_be_graded_is_said_in_one_line(
    tmp_path, capsys, given, files, said
):
    for name in files:
        (tmp_path / name).write_text("{}")
    with pytest.raises(SystemExit):
        folder.main([str(tmp_path / given), "--reference", str(tmp_path)])
    assert capsys.readouterr().err.splitlines()[-1].endswith(said)
