"""Every target of the Makefile: what it runs, with which options, and that it exists.

The programs are replaced by a script that writes down how it was called, so nothing is
set up, built or tested here; what they do has tests of its own.
"""

import asyncio
import json
import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from ipykernel.ipkernel import IPythonKernel

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.M)[1].split()
OPTIONS = set(re.findall(r"\$\((\w+)\)", MAKEFILE))  # this suite's own may be set
PROGRAMS = ("python", "python3", "pytest", "jupyter", "jupyter-book", "ruff")
NOTE = '#!/bin/sh\necho "$(basename "$0") $*" >> "$LOG"\n'

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="make is not here")


@pytest.fixture
def make(tmp_path):
    """Run `make`; gives its exit status, what it printed, and what it ran."""
    bin_ = tmp_path / "venv" / "bin"
    bin_.mkdir(parents=True)
    for name in PROGRAMS:
        (bin_ / name).write_text(NOTE)
        (bin_ / name).chmod(0o755)
    # Newer than the lock files: set up.
    for marker in ("python", "notebook", "site", "all", "compilers"):
        (tmp_path / "venv" / f"{marker}.ok").touch()
    log = tmp_path / "log"
    variables = (f"VENV={bin_.parent}", f"BIN={bin_}", f"WITH=PATH={bin_}:$$PATH")

    def run(*arguments, folder=ROOT):
        log.write_text("")
        command = ["make", "-o", "node_modules/ok", *variables, *arguments]
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not (name.startswith("MAKE") or name in OPTIONS)
        }
        done = subprocess.run(
            command,
            cwd=folder,
            env=inherited | {"LOG": str(log), "PYTHON": str(bin_ / "python3")},
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.returncode, done.stdout + done.stderr, log.read_text().splitlines()

    return run


BOOK = "python3 tools/setup.py book "
RUNS = {  # target: options, and how the lines begin that it runs
    "help": ([], []),
    "book": ([], [BOOK]),
    "serve": (["PORT=8123"], [BOOK, "python tools/serve.py _build/html 8123"]),
    "pdf": ([], [BOOK, "python tools/pdf.py"]),
    "test": (["ARGS=-k 04"], [BOOK, "pytest -n auto --durations=20 -k 04"]),
    "referee": (
        ["WRITE=1", "FILES=a.ipynb"],
        ["python tools/referee.py .*/venv/compilers --write a.ipynb"],
    ),
    "refit": (["ARGS=--check"], ["python tools/refit.py --check"]),
    "lab": (
        ["LAB=--no-browser --port 8890"],
        [r"jupyter lab .*--LabApp.default_url=/lab/tree/chapters/01_\w+.ipynb .*"
         "--no-browser --port 8890"],
    ),
    "execute": (["NB=a.ipynb b.ipynb"], ["python tools/execute.py a.ipynb b.ipynb"]),
    "exercises": ([], ["python tools/exercises.py"]),
    "tries": (["ARGS=--all"], ["python tools/tries.py --all"]),
    "lint": ([], ["ruff check .", "ruff format --check ."]),
    "format": ([], ["ruff check --fix .", "ruff format ."]),
    "grade": (["DIR=in here"], ["python -m shardmath.grading in here"]),
    "colab": (["FROM=git+https://x.org/y"], [r"python tools/colab.py git\+https://x"]),
    "bench": (
        [],
        [BOOK]
        + [
            f"python benchmarks/{b}.py"
            for b in ("site", "search", "live", "hlo", "serving")
        ],
    ),
}  # fmt: skip


def test_no_target_is_left_out():
    assert {*RUNS, "clean"} == set(TARGETS)
    said = [t for t in TARGETS if re.search(rf"^{t}:.*## \w", MAKEFILE, re.M)]
    assert said == TARGETS


@pytest.mark.parametrize("target", RUNS)
def test_target_runs_what_it_says(make, target):
    options, wanted = RUNS[target]
    status, printed, ran = make(target, *options)
    assert status == 0, printed
    assert len(ran) == len(wanted), ran
    for line, pattern in zip(ran, wanted, strict=True):
        assert re.match(pattern, line), line


@pytest.mark.parametrize("target", RUNS)
def test_scripts_that_a_target_runs_are_there(make, target):
    for line in make(target, *RUNS[target][0])[2]:
        for word in line.split():
            if word.endswith(".py"):
                assert (ROOT / word.removeprefix("--config=")).is_file(), line


def test_make_alone_lists_the_targets(make):
    status, printed, _ = make()
    assert status == 0
    assert [line.split()[1] for line in printed.splitlines()] == TARGETS


@pytest.mark.parametrize(("target", "wanted"), [("grade", "DIR="), ("colab", "FROM=")])
def test_what_a_target_wants_is_asked_for(make, target, wanted):
    status, printed, ran = make(target)
    assert status == 2
    assert f"make {target} {wanted}" in printed
    assert not ran


def test_live_figures_are_saved_with_their_notebook(make):
    """Else one that is opened again says "model not found" in place of its figure."""
    (line,) = make("lab")[2]
    folder = Path(re.search(r"--LabApp.app_settings_dir=(\S+)", line)[1])
    assert folder.parent == ROOT / "tools"
    settings = json.loads((folder / "overrides.json").read_text("utf-8"))
    assert settings["@jupyter-widgets/jupyterlab-manager:plugin"]["saveState"] is True
    # Else a notification asks about Jupyter's news, in front of the figures.
    news = settings["@jupyterlab/apputils-extension:notification"]["fetchNews"]
    assert news == "false"


def test_opening_and_saving_a_notebook_changes_nothing(make, tmp_path):
    """It is shown with what the kernel will say, and stored without."""
    (line,) = make("lab")[2]
    config = Path(re.search(r"--config=(\S+)", line)[1])
    names = runpy.run_path(
        str(config),
        {"get_config": lambda: SimpleNamespace(ServerApp=SimpleNamespace())},
    )
    stored = ROOT / "chapters" / "01_rooflines.ipynb"
    shutil.copy(stored, tmp_path)
    contents = names["c"].ServerApp.contents_manager_class(root_dir=str(tmp_path))

    async def opened_and_saved():
        model = await contents.get(stored.name)
        shown = dict(model["content"]["metadata"])
        await contents.save(model, stored.name)
        return shown

    shown = asyncio.run(opened_and_saved())
    assert shown["language_info"] == IPythonKernel.language_info
    written = json.loads((tmp_path / stored.name).read_text("utf-8"))
    assert written == json.loads(stored.read_text("utf-8"))


def test_notebooks_see_the_compilers_where_they_are_installed(make, tmp_path):
    """And JAX is then told to look for no accelerator: it would take their word."""
    venv = tmp_path / "venv"
    shutil.copy(ROOT / "Makefile", tmp_path)
    (venv / "bin" / "jupyter").write_text(
        '#!/bin/sh\necho "$JAX_PLATFORMS $PYTHONPATH"'
    )
    options = ("-o", f"{venv.name}/notebook.ok", f"VENV={venv.name}", "FIRST=x")
    _, printed, _ = make("lab", *options, folder=tmp_path)
    assert f"cpu {tmp_path}/venv/compilers:" in printed
    (venv / "compilers.ok").unlink()
    assert f"{venv}/compilers" not in make("lab", *options, folder=tmp_path)[1]


def test_root_may_open_the_notebooks(make):
    """In a container there is often nobody else."""
    (line,) = make("lab")[2]
    assert ("--allow-root" in line) == (os.geteuid() == 0)


def test_clean_removes_what_was_built_and_no_more(make, tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("_build", "node_modules", "chapters", ".shardmath"):
        (tmp_path / name).mkdir()
    status, printed, _ = make("clean", folder=tmp_path)
    assert status == 0, printed
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"Makefile", "chapters", ".shardmath", "log"}


@pytest.mark.parametrize(
    ("target", "steps"),
    [
        ("lab", ["python", "notebook"]),
        ("grade", ["python", "notebook"]),
        ("book", ["python", "site", "book"]),
        ("lint", ["python", "all"]),
        ("referee", ["python", "compilers", "all"]),
    ],
)
def test_what_is_missing_is_set_up_in_order(make, tmp_path, target, steps):
    """From nothing: Python, then the packages that the target needs and no more."""
    for marker in (tmp_path / "venv").glob("*.ok"):
        marker.unlink()
    _, _, ran = make(target, "DIR=here")
    assert [line.split()[2] for line in ran if "tools/setup.py" in line] == steps
    source = (ROOT / "tools" / "setup.py").read_text("utf-8")
    assert all(f'"{step}":' in source for step in [*steps, "node"])
