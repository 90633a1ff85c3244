"""The progress file survives crashes, other kernels, other versions and full disks."""

import contextlib
import json
import os
import subprocess
import sys

import pytest

from shardmath import exercises
from shardmath.exercises import answers, progress
from shardmath.exercises.kinds import Number
from shardmath.exercises.progress import Entry, ProgressStore

RECORD = """
import sys
from pathlib import Path
from shardmath.exercises.progress import ProgressStore
store = ProgressStore(Path(sys.argv[1]))
print("ready", flush=True)
for _ in range(int(sys.argv[2])):
    store.record("01.1", False)
    print("saved", flush=True)
"""


def recorder(path, times, first=""):
    return subprocess.Popen(
        [sys.executable, "-c", first + RECORD, str(path), str(times)],
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "progress.json"


def test_progress_outlives_the_kernel(path):
    ProgressStore(path).record("01.1", False)
    ProgressStore(path).record("01.1", True)
    ProgressStore(path).record("01.2", False)
    assert ProgressStore(path).entries() == (
        {"01.1": Entry(done=True, wrong=1), "01.2": Entry(done=False, wrong=1)},
        "",
    )


def test_done_stays_done(path):
    store = ProgressStore(path)
    store.record("01.1", True)
    entry, note = store.record("01.1", False)
    assert (entry, note) == (Entry(done=True, wrong=1), "")


def test_unknown_questions_and_fields_are_kept(path):
    path.parent.mkdir()
    newer = {
        "schema": 7,
        "reader": {"name": "Ada"},
        "questions": {
            "01.1": {"wrong": 1, "seconds": 3.5},
            "77.1": {"done": "perhaps", "wrong": "many"},
        },
    }
    path.write_text(json.dumps(newer))
    store = ProgressStore(path)
    assert store.record("01.1", False) == (Entry(wrong=2), "")
    assert store.entries()[0]["77.1"] == Entry()
    newer["questions"]["01.1"]["wrong"] = 2
    assert json.loads(path.read_text()) == newer


def test_a_newer_file_of_another_form_is_left_alone(path):
    path.parent.mkdir()
    path.write_text('{"schema": 2, "questions": [1]}')
    entry, note = ProgressStore(path).record("01.1", False)
    assert entry == Entry(wrong=1)
    assert "schema 2" in note
    assert path.read_text() == '{"schema": 2, "questions": [1]}'


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b'{"schema": 1, "questions": {"01.1": {"do',
        b"\xff\xfe\x00",
        b"[]",
        b'{"questions": {"01.1": 3}}',
        b"[" * 100_000,
    ],
)
@pytest.mark.parametrize("first", ["record", "entries"])
def test_a_damaged_file_is_set_aside_and_the_reader_told_once(path, damage, first):
    path.parent.mkdir()
    path.write_bytes(damage)
    older = path.with_name("progress.damaged-1.json")
    older.write_bytes(b"from before")
    store = ProgressStore(path)
    note = store.record("01.1", True)[1] if first == "record" else store.entries()[1]
    aside = path.with_name("progress.damaged-2.json")
    assert str(aside) in note
    assert (older.read_bytes(), aside.read_bytes()) == (b"from before", damage)
    assert store.record("01.1", True) == (Entry(done=True), "")
    assert ProgressStore(path).entries() == ({"01.1": Entry(done=True)}, "")


def test_killed_while_saving_loses_nothing(path):
    for _ in range(4):
        before = ProgressStore(path).entries()[0].get("01.1", Entry()).wrong
        process = recorder(path, 10**6)
        said = [process.stdout.readline() for _ in range(4)]
        process.kill()
        saved = said.count("saved\n") + process.stdout.read().count("saved\n")
        process.wait()
        entries, note = ProgressStore(path).entries()
        assert note == ""
        assert entries["01.1"].wrong - before in (saved, saved + 1)
    names = {"progress.json", "progress.json.new", "progress.json.lock"}
    assert {p.name for p in path.parent.iterdir()} <= names


@pytest.mark.parametrize(
    "crash",
    [
        "import os; os.fsync = lambda file: os.kill(os.getpid(), 9)\n",
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n",
    ],
    ids=["killed", "disk full"],
)
def test_half_a_write_leaves_the_old_file(path, crash):
    store = ProgressStore(path)
    for n in range(1, 20):
        store.record(f"01.{n}", True)
    saved = path.read_bytes()
    recorder(path, 1, crash).communicate()
    assert path.read_bytes() == saved
    assert store.record("01.1", False) == (Entry(done=True, wrong=1), "")


def test_two_kernels_lose_nothing(path):
    writers = [recorder(path, 60) for _ in range(2)]
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0, 0]
    assert ProgressStore(path).entries()[0]["01.1"].wrong == 120


def test_another_version_of_the_file_is_seen_before_each_save(path):
    one, other = ProgressStore(path), ProgressStore(path)
    one.record("01.1", False)
    other.record("01.2", True)
    assert one.record("01.1", False)[0] == Entry(wrong=2)
    assert json.loads(path.read_text())["questions"].keys() == {"01.1", "01.2"}


def test_nowhere_to_write_still_counts_and_says_so(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    store = ProgressStore(blocked / "progress.json")
    store.record("01.1", False)
    entry, note = store.record("01.1", False)
    assert entry == Entry(wrong=2)
    assert note.startswith(f"Progress is not saved in {store.path}: ")
    assert "\n" not in note
    assert store.entries()[0] == {"01.1": Entry(wrong=2)}


def test_full_disk_keeps_the_old_file_and_saves_later(path, monkeypatch):
    store = ProgressStore(path)
    store.record("01.1", False)
    saved = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        entry, note = store.record("01.1", False)
    assert (entry, note[-25:]) == (Entry(wrong=2), " No space left on device.")
    assert path.read_bytes() == saved
    assert store.record("01.1", False) == (Entry(wrong=3), "")
    assert ProgressStore(path).entries()[0] == {"01.1": Entry(wrong=3)}


def test_verdict_comes_where_progress_cannot_be_kept(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("SHARDMATH_PROGRESS", str(blocked / "progress.json"))
    question = next(q for q in answers.questions().values() if isinstance(q, Number))
    said = repr(exercises.check(question.id, question.expected())).splitlines()
    assert said[0].startswith(f"✓ {question.id} correct")
    assert said[1].startswith("Progress is not saved in ")
    assert "not read from" in repr(exercises.report())


def test_place_is_the_variables_then_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("SHARDMATH_PROGRESS", str(tmp_path / "mine.json"))
    assert progress.store().path == (tmp_path / "mine.json").resolve()
    monkeypatch.delenv("SHARDMATH_PROGRESS")
    assert progress.store().path.parts[-2:] == ("shardmath", "progress.json")


def test_empty_place_keeps_progress_in_memory(monkeypatch, tmp_path):
    store = ProgressStore(None)
    store.record("01.1", False)
    assert store.record("01.1", True) == (Entry(done=True, wrong=1), "")
    monkeypatch.setenv("SHARDMATH_PROGRESS", "")
    assert progress.store().path is None


@pytest.mark.parametrize("missing", ["filelock", "platformdirs"])
def test_without_the_packages_of_a_file_progress_is_in_memory(monkeypatch, missing):
    """A notebook taken to another machine counts, and says what is not there."""
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delenv("SHARDMATH_PROGRESS")
    progress._store.cache_clear()
    question = next(q for q in answers.questions().values() if isinstance(q, Number))
    try:
        verdict = exercises.check(question.id, question.expected())
        assert verdict.note == f"Progress is not saved: {missing} is not installed."
        said = repr(exercises.report())
    finally:
        progress._store.cache_clear()
    assert said.startswith("Ever right: 1 of ")
    assert f"Progress is not read: {missing} is not installed." in said


def test_a_home_that_does_not_exist_is_said_and_not_raised(monkeypatch):
    monkeypatch.setenv("SHARDMATH_PROGRESS", "~nosuchuser/x")
    question = next(q for q in answers.questions().values() if isinstance(q, Number))
    verdict = exercises.check(question.id, question.expected())
    assert verdict.verdict == "correct"
    assert "not saved in ~nosuchuser/x" in verdict.note
    assert "not read from ~nosuchuser/x" in repr(exercises.report())


def test_a_good_file_that_another_kernel_has_begun_is_never_set_aside(
    path, monkeypatch
):
    """One kernel reads the damage; before it holds the lock, another has mended it."""
    path.parent.mkdir()
    path.write_text("damaged")
    slow, quick = ProgressStore(path), ProgressStore(path)
    locked = slow._locked

    @contextlib.contextmanager
    def after_the_other():
        quick.record("01.1", True)
        with locked():
            yield

    monkeypatch.setattr(slow, "_locked", after_the_other)
    entries, note = slow.entries()
    assert (entries, note) == ({"01.1": Entry(done=True)}, "")
    assert ProgressStore(path).entries() == (entries, "")
    assert [p.name for p in path.parent.glob("*damaged*")] == [
        "progress.damaged-1.json"
    ]


def test_the_same_wrong_answer_again_is_no_new_try(path):
    store = ProgressStore(path)
    for found in ("too large", "too large", "too small", "too large"):
        entry, _ = store.record("01.1", False, found)
    assert entry == Entry(wrong=3)
    assert store.record("01.1", True, "right") == (Entry(done=True, wrong=3), "")
    assert ProgressStore(path).entries()[0] == {"01.1": Entry(done=True, wrong=3)}
