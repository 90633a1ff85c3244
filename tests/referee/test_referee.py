"""The referee: it compiles what is kept, and says where it is kept otherwise."""

import json
from pathlib import Path

import pytest
import referee

from shardmath.referee.compilers import golden_results
from shardmath.referee.compilers.targets import COMPILERS

ROW = {"launches": [{"op": "all_gather", "count": 1}], "memory": None, "seconds": 3.0}
NAMES = {"name": "f", "target": "v5e:2x4"}


@pytest.fixture
def at_work(tmp_path, monkeypatch):
    """`main` with results as the runs would leave them, and a folder of kept ones."""
    stored = tmp_path / "kept"
    stored.mkdir()
    monkeypatch.setattr(golden_results, "FOLDER", stored)
    monkeypatch.setattr(referee, "other_versions", lambda _: "")

    def main(fresh: dict, *arguments, status=0):
        def run(files, compilers, results):
            put(results, fresh)
            return status

        monkeypatch.setattr(referee, "run", run)
        monkeypatch.setattr("sys.argv", ["referee.py", "compilers", *arguments])
        return referee.main()

    return main, stored


def put(folder: Path, rows: dict) -> None:
    for name, row in rows.items():
        (folder / name).write_text(golden_results.text(row | NAMES))


def seconds(folder: Path) -> dict:
    return {name: row["seconds"] for name, row in referee.read(folder).items()}


def test_all_as_kept_whatever_it_took(at_work, capsys):
    main, stored = at_work
    put(stored, {"a.json": ROW})
    assert main({"a.json": ROW | {"seconds": 9.0}}) == 0
    said = capsys.readouterr().out
    assert "1 programs compiled in 0.0 min, 9 s of CPU time (f for v5e:2x4 9 s)" in said
    assert said.endswith("; all as kept\n")


def test_what_differs_fails_and_is_shown(at_work, capsys):
    main, stored = at_work
    put(stored, {"a.json": ROW, "gone.json": ROW})
    other = ROW | {"launches": [{"op": "all_reduce", "count": 1}]}
    assert main({"a.json": other, "new.json": ROW}) == 1
    said = capsys.readouterr().out
    assert "a.json: differs" in said
    assert '-  {"count": 1, "op": "all_gather"}' in said
    assert '+  {"count": 1, "op": "all_reduce"}' in said
    assert "new.json: nothing is kept of this program" in said
    assert "gone.json: no program compiles to it" in said
    assert {*seconds(stored)} == {"a.json", "gone.json"}


def test_written_is_what_changed_and_no_more(at_work):
    """Seconds differ from run to run: a result that agrees is not rewritten."""
    main, stored = at_work
    put(stored, {"a.json": ROW, "b.json": ROW, "gone.json": ROW})
    later = ROW | {"seconds": 9.0}
    fresh = {
        "a.json": later,
        "b.json": later | {"memory": {"peak": 1}},
        "c.json": later,
    }
    assert main(fresh, "--write") == 0
    assert seconds(stored) == {"a.json": 3.0, "b.json": 9.0, "c.json": 9.0}


@pytest.mark.parametrize(("files", "status"), [(["a.ipynb"], 0), ([], 1)])
def test_of_a_part_nothing_is_taken_away(at_work, files, status):
    """Nor where a file failed: what it had left to compile is not known."""
    main, stored = at_work
    put(stored, {"a.json": ROW, "elsewhere.json": ROW})
    assert main({"a.json": ROW}, "--write", *files, status=status) == status
    assert {*seconds(stored)} == {"a.json", "elsewhere.json"}


def test_files_that_compile_are_found_by_what_they_say(monkeypatch, tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "chapters").mkdir()
    found = {
        "tests/test_a.py": "from shardmath.referee import compilers, hlo",
        "tests/test_b.py": "from shardmath.referee import hlo  # of other compilers",
        "tests/helper.py": "compilers.compile_for(1)",
        "chapters/09.ipynb": json.dumps(
            {"source": ["from shardmath.referee import compilers"]}
        ),
        "chapters/01.ipynb": json.dumps({"source": ["what compilers do"]}),
    }
    for name, text in found.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(referee, "ROOT", tmp_path)
    assert referee.that_compile() == ["chapters/09.ipynb", "tests/test_a.py"]
    monkeypatch.undo()
    assert "tests/referee/test_compilers.py" in referee.that_compile()


def test_other_compilers_are_refused(tmp_path):
    """Theirs would be results of another kind."""
    libtpu = tmp_path / "libtpu-0.0.51.dist-info"
    libtpu.mkdir()
    (libtpu / "METADATA").write_text("Name: libtpu\nVersion: 0.0.51\n")
    said = referee.other_versions(tmp_path)
    assert f"libtpu is 0.0.51, not {COMPILERS['tpu']['libtpu']}" in said
    assert "jax is" not in said
