"""The steps behind `make`: one clear line where something is missing."""

import ast
import functools
import gzip
import os
import re
import runpy
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections import namedtuple
from http.server import ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from urllib.request import Request, urlopen

import execute
import form
import nbformat
import pytest
import serve
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from shardmath.base.colab import LACKING, setup_cell
from shardmath_site.runtime import PACKAGE, imported

ROOT = Path(__file__).parent.parent


def tool(name, *arguments, folder=None, **environment):
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | environment,
        timeout=120,
        check=False,
    )


def execute_here(*arguments) -> int:
    """tools/execute.py in this Python; the kernels that it starts have their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["execute.py", *map(str, arguments)])
        return execute.main()


def one_line(stderr):
    (line,) = stderr.strip().splitlines()
    assert line.startswith("shardmath: ")
    return line


def test_a_port_in_use_is_said_in_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = tool("serve.py", tmp_path, port)
    assert done.returncode == 1
    assert f"port {port} cannot be used" in one_line(done.stderr)


@pytest.fixture
def served(tmp_path):
    """A folder, and the address at which tools/serve.py's handler serves it."""
    handler = functools.partial(serve.Handler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield tmp_path, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def fetch(address, **headers):
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    with urlopen(Request(address, headers=given)) as response:
        return response.headers, response.read()


def test_the_served_site_is_compressed_for_who_reads_that(served):
    """The page says how much Python is to load, and means compressed."""
    folder, address = served
    content = b"\0asm" * 10_000
    (folder / "python.wasm").write_bytes(content)
    (folder / "index.html").write_text("<p>Book</p>" * 100)
    (folder / "base.pack").write_bytes(content)
    headers, body = fetch(address + "python.wasm", Accept_Encoding="br, gzip")
    assert headers["Content-Encoding"] == "gzip"
    assert headers["Content-Type"] == "application/wasm"
    assert int(headers["Content-Length"]) == len(body) < len(content) / 10
    assert gzip.decompress(body) == content
    assert fetch(address + "python.wasm")[1] == content
    _, body = fetch(address, Accept_Encoding="gzip")
    assert gzip.decompress(body) == (folder / "index.html").read_bytes()
    # A pack is compressed already.
    headers, body = fetch(address + "base.pack", Accept_Encoding="gzip")
    assert (headers["Content-Encoding"], body) == (None, content)
    # What has changed is not answered from before.
    (folder / "python.wasm").write_bytes(b"other")
    os.utime(folder / "python.wasm", (1, 1))
    _, body = fetch(address + "python.wasm", Accept_Encoding="gzip")
    assert gzip.decompress(body) == b"other"


@pytest.fixture
def setup(tmp_path, monkeypatch):
    """The set-up as a module's names, at work in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return runpy.run_path(str(ROOT / "tools" / "setup.py"))


def test_an_old_python_is_told_so_with_the_target_that_was_called(setup, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    monkeypatch.setenv("GOAL", "lab")
    said = r"Python 3\.9 is too old; 3\.11 or newer.*make lab PYTHON=python3\.12"
    with pytest.raises(SystemExit, match=said):
        setup["main"]("python", ".venv")


def test_any_python_can_read_the_setup_far_enough():
    """No syntax that came after Python 2.7: its error would hide the message."""
    tree = ast.parse((ROOT / "tools" / "setup.py").read_text("utf-8"))
    newer = ast.JoinedStr | ast.NamedExpr | ast.AnnAssign | ast.Starred | ast.Nonlocal
    for node in ast.walk(tree):
        starred_call = isinstance(node, ast.Starred) and node in called_with(tree)
        assert starred_call or not isinstance(node, newer), ast.unparse(node)
        if isinstance(node, ast.arguments):
            assert not node.kwonlyargs
            assert not node.posonlyargs


def called_with(tree):
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [argument for call in calls for argument in call.args]


def locked(name):
    """The requirements of a lock file, one for each package (and platform)."""
    lines = (ROOT / name).read_text("utf-8").splitlines()
    return [Requirement(line.rstrip(" \\")) for line in lines if re.match(r"\w", line)]


def pinned(name):
    """Package → version, as a lock file has them."""
    return {line.name: str(line.specifier).removeprefix("==") for line in locked(name)}


def test_a_lock_names_the_extras_that_its_packages_ask_for():
    """pip 23 looks for the newest release of a package whose extra has no pin."""
    lines = locked("requirements.txt")
    extras = {line.name: line.extras for line in lines}
    assert any(extras.values())
    for name in extras:
        try:
            wanted = map(Requirement, metadata.requires(name) or [])
        except metadata.PackageNotFoundError:  # for another platform
            continue
        for one in wanted:
            if not one.marker or one.marker.evaluate({"extra": ""}):
                assert one.extras <= extras[canonicalize_name(one.name)], (name, one)


@pytest.mark.parametrize("extra", ["notebook", "site"])
def test_a_part_is_locked_to_the_versions_of_the_whole(extra):
    """Whoever runs `make lab` or `make book` first reads what the tests have read."""
    part, whole = pinned(f"requirements-{extra}.txt"), pinned("requirements.txt")
    assert part.items() <= whole.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [
        re.match(r"[\w-]+", line)[0] for line in project["optional-dependencies"][extra]
    ]
    assert {*named} <= {*part}


def test_reading_installs_nothing_that_only_tests_need():
    needless = {"playwright", "pytest", "nbval", "hypothesis", "ruff", "jupyter-book"}
    assert needless <= pinned("requirements.txt").keys()
    assert not needless & pinned("requirements-notebook.txt").keys()


def test_what_installs_the_package_is_locked_too(setup, tmp_path):
    """Every download is checked against its hash, and the last step downloads none."""
    asked = []
    names = setup["packages"].__globals__
    names["run"] = lambda command, hint: asked.append(command)
    setup["packages"]("requirements-site.txt", str(tmp_path))
    fetching, installing = asked
    assert "--require-hashes" in fetching
    assert "requirements-build.txt" in fetching
    assert {"--no-index", "--no-build-isolation", "--no-deps"} <= {*installing}

    build = pinned("requirements-build.txt")
    assert "editables" in build  # asked for by hatchling when it installs so
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    for line in map(Requirement, project["build-system"]["requires"]):
        assert line.specifier.contains(build[line.name])
    whole = pinned("requirements.txt")
    assert {name: whole[name] for name in build if name in whole}.items() <= (
        build.items()
    )


@pytest.mark.parametrize("file", sorted(ROOT.glob("requirements*.txt")), ids=str)
def test_every_locked_package_has_a_hash(file):
    text = file.read_text("utf-8")
    packages = re.split(r"^(?=\w)", text, flags=re.M)[1:]
    assert packages
    assert all("--hash=sha256:" in package for package in packages)


def test_the_package_alone_pulls_nothing():
    """Its cost model needs the standard library; the rest are extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["dependencies"] == []
    assert [*project["optional-dependencies"]] == [
        "notebook",
        "site",
        "referee",
        "test",
    ]


def test_the_compilers_are_apart_and_for_one_kind_of_machine(setup, monkeypatch):
    """JAX looks for accelerators wherever it sees them: no other part has them."""
    compilers = pinned("requirements-referee.txt")
    assert {*compilers} == {"jax-cuda13-pjrt", "jax-cuda13-plugin", "libtpu"}
    assert not {*compilers} & {*pinned("requirements.txt")}
    names = setup["compilers"].__globals__
    monkeypatch.setattr(names["platform"], "system", lambda: "Darwin")
    monkeypatch.setattr(names["platform"], "machine", lambda: "arm64")
    said = r"need Linux x86-64, and this is Darwin arm64\. Their results .* are kept"
    with pytest.raises(SystemExit, match=said):
        setup["compilers"](".venv")


def test_compilers_of_before_are_taken_away(setup, tmp_path, monkeypatch):
    names = setup["compilers"].__globals__
    monkeypatch.setattr(names["platform"], "system", lambda: "Linux")
    monkeypatch.setattr(names["platform"], "machine", lambda: "x86_64")
    commands = []
    names["run"] = lambda command, hint: commands.append(command)
    old = tmp_path / "compilers" / "libtpu"
    old.mkdir(parents=True)
    setup["compilers"](str(tmp_path))
    assert not old.exists()
    (command,) = commands
    assert command[command.index("--target") + 1] == str(tmp_path / "compilers")
    assert {"--no-deps", "--require-hashes", "requirements-referee.txt"} <= {*command}


def test_setting_up_says_how_long_it_took_and_how_much_it_is(setup, tmp_path, capfd):
    names = setup["packages"].__globals__
    names["run"] = lambda command, hint: (tmp_path / "file").write_bytes(
        b"x" * 3_000_000
    )
    setup["packages"]("requirements-notebook.txt", str(tmp_path))
    said = capfd.readouterr().out
    assert f"installing requirements-notebook.txt into {tmp_path} (about" in said
    assert re.search(r"done in \d+ s; .* has 3 MB", said)


def test_who_sets_up_all_has_set_up_the_parts(setup, tmp_path):
    names = setup["packages"].__globals__
    names["packages"] = lambda file, folder: None
    setup["main"]("all", str(tmp_path))
    assert {path.name for path in tmp_path.glob("*.ok")} == {
        "all.ok",
        "notebook.ok",
        "site.ok",
    }


def test_a_second_make_waits_and_does_not_set_up_again(setup, tmp_path, capfd):
    """Two at once: each step is done once, and who waits says so in one line."""
    done, marker = [], tmp_path / "step.ok"

    def slow(folder):
        done.append(folder)
        second.start()
        while "another make" not in (tmp_path / "said").read_text():
            time.sleep(0.01)

    (tmp_path / "said").write_text("")
    alone = setup["alone"]
    names = alone.__globals__
    names["say"] = (tmp_path / "said").write_text
    second = threading.Thread(target=alone, args=(done.append, "again", str(marker)))
    alone(slow, "first", str(marker))
    second.join()
    assert done == ["first"]
    assert marker.exists()
    alone(done.append, "later", str(marker))
    assert done == ["first", "later"]


def test_a_folder_that_cannot_be_written_is_said_in_one_line(tmp_path):
    """As on a read-only disk, where root may not write either."""
    (tmp_path / "_build").touch()
    done = tool("setup.py", "python", tmp_path / "venv", folder=tmp_path)
    assert done.returncode == 1
    said = one_line(done.stderr)
    assert "_build" in said
    assert "needs permission to write in this folder" in said


def test_a_full_disk_is_named_where_a_step_fails(setup, monkeypatch):
    """Beside the usual hint: what failed cannot tell it from a network."""
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(10**9, 10**9, 3_000_000))
    with pytest.raises(SystemExit, match=r"Check the network\. Only 3 MB are free on"):
        setup["run"](["false"], "Check the network.")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(10**12, 0, 10**12))
    with pytest.raises(SystemExit, match=r"Check the network\.$"):
        setup["run"](["false"], "Check the network.")


def test_a_failed_step_leaves_no_marker(setup, tmp_path):
    with pytest.raises(SystemExit, match="shardmath: `false` failed"):
        setup["alone"](lambda _: setup["run"](["false"], ""), "", "step.ok")
    assert not (tmp_path / "step.ok").exists()


@pytest.mark.parametrize(("writable", "options"), [(True, 0), (False, 2)])
def test_a_home_that_cannot_be_written_gets_a_cache_in_the_project(
    setup, monkeypatch, writable, options
):
    asked = []
    names = setup["node"].__globals__
    monkeypatch.setitem(names, "home_is_writable", lambda: writable)
    monkeypatch.setitem(names, "run", lambda command, hint: asked.append(command))
    monkeypatch.setattr("shutil.which", lambda name: name)
    setup["node"](".venv")
    assert asked[0][:2] == ["npm", "ci"]
    assert asked[0][5:] == ["--cache", ".venv/cache/npm"][:options]


def test_without_node_and_network_the_missing_thing_is_named(tmp_path):
    """The folder has a Python whose pip fails, as it does without a network."""
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    done = tool("setup.py", "node", tmp_path, PATH="/nonexistent", folder=tmp_path)
    assert done.returncode == 1
    assert "Install Node.js 20 or newer, or check the network" in one_line(done.stderr)


def test_setup_says_how_it_is_called():
    assert "python tools/setup.py python | notebook | site" in tool("setup.py").stderr


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    cells = [
        new_markdown_cell("# A notebook", id="title"),
        new_code_cell("print(6 * 7)", id="answer"),
        new_code_cell(
            "import time; print(time.time())",
            id="clock",
            metadata={"tags": ["nbval-ignore-output"], "scrolled": True},
        ),
    ]
    path = tmp_path_factory.mktemp("executed") / "small.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata={"signature": "x"}), path)
    assert tool("execute.py", path).returncode == 0
    return path.read_bytes()


@pytest.fixture
def notebook(tmp_path, executed):
    """A small notebook that was executed once."""
    path = tmp_path / "small.ipynb"
    path.write_bytes(executed)
    return path


def clock(path):
    return nbformat.read(path, as_version=4).cells[2].outputs[0].text


def test_executing_twice_gives_the_same_bytes(notebook, capsys):
    """Also where a cell prints the time: it stays until its source changes."""
    first = notebook.read_bytes()
    assert execute_here(notebook) == 0
    assert "unchanged" in capsys.readouterr().out
    assert notebook.read_bytes() == first
    cells = nbformat.read(notebook, as_version=4).cells
    assert [c.execution_count for c in cells[1:]] == [1, 2]
    assert cells[1].outputs[0].text == "42\n"
    assert b"scrolled" not in first
    assert b"signature" not in first


@pytest.mark.parametrize(
    ("source", "anchors"),
    [
        ("So:\n\n$$\na \\tag{1.2}\n$$\n\nand\n\n$$b \\tag{1.3}$$", ["1.2", "1.3"]),
        ("$$\na\n$$\n\n$$\nb \\tag{1.2}\n$$", ["1.2"]),
        ("$$\na\n$$\n\nno number, `\\tag{1.2}`", []),
    ],
)
def test_a_numbered_formula_gets_its_anchor_once(source, anchors):
    """Right before it, for links in Jupyter; nothing else is changed."""
    once = execute.anchored(source)
    assert re.findall(r'<a id="eq-([\d.]+)"></a>\n\n\$\$', once) == anchors
    assert re.sub("<a .*></a>\n\n", "", once) == source
    assert execute.anchored(once) == once
    assert execute.anchored(once.replace("eq-1", "eq-9")) == once


def chapter_cells():
    """A title, a fold, a figure with a caption, and a guess behind its note."""
    figure = {"caption": "A ring.", "name": "fig-05-ring"}
    asked = display({"application/vnd.shardmath.guess+json": {}, "text/plain": "2"})
    return [
        new_markdown_cell("# T", id="title"),
        new_code_cell("import jax", id="setup"),
        new_code_cell("x = 1", id="open"),
        new_code_cell("y", id="y", metadata={"shardmath": {"fold": "How y is found"}}),
        new_markdown_cell("> **Predict.** How many?", id="note"),
        new_code_cell("z", id="ring", metadata={"mystnb": {"figure": figure}}),
        new_code_cell("guess(2)", id="guess", outputs=[asked]),
        new_code_cell("after", id="after"),
    ]


def display(data):
    return nbformat.v4.new_output("display_data", data=data)


def test_jupyterlab_shows_what_the_site_shows():
    """Plumbing under its title, captions, and no result before its guess."""
    cells = {cell.id: cell for cell in form.formed(chapter_cells())}
    hidden = {name: set(c.metadata.get("jupyter", {})) for name, c in cells.items()}
    source, outputs = {"source_hidden"}, {"outputs_hidden"}
    assert hidden == {
        "title": set(),
        "setup": source,
        "open": set(),
        "y": source,
        "note": set(),
        "ring": outputs,
        "ring-caption": source,
        "guess": source,
        "after": set(),
    }
    assert cells["y"].source == "# How y is found\ny"
    assert cells["ring-caption"].source == '<a id="fig-05-ring"></a>\n*A ring.*'
    again = form.formed([*cells.values()])
    assert again == [*cells.values()]


def test_a_guess_gets_a_key_once():
    """Two chapters have two keys for cells of one name, and a key stays as it is."""

    def key(cells, chapter):
        found = {cell.id: cell for cell in form.formed(cells, chapter)}
        return found["guess"].metadata["shardmath"]["key"]

    cells = chapter_cells()
    first = key(cells, "05_collectives")
    assert first != key(chapter_cells(), "06_sharding")
    assert key(cells, "06_sharding") == first


def test_measurements_of_a_notebook_are_renewed_together(notebook):
    """A new figure beside an old table would contradict it."""
    before = clock(notebook)
    changed = nbformat.read(notebook, as_version=4)
    tags = {"tags": ["nbval-ignore-output"]}
    changed.cells.append(new_code_cell("print('new')", id="new", metadata=tags))
    nbformat.write(changed, notebook)
    execute_here(notebook)
    assert clock(notebook) != before


def test_a_measurement_is_renewed_on_demand_and_after_a_change(notebook):
    before = clock(notebook)
    execute_here(notebook, "--measure")
    renewed = clock(notebook)
    assert renewed != before
    changed = nbformat.read(notebook, as_version=4)
    changed.cells[2].source += "  # again"
    nbformat.write(changed, notebook)
    execute_here(notebook)
    assert clock(notebook) != renewed


def test_a_claim_that_does_not_hold_is_not_stored(tmp_path, capsys):
    """The message names notebook and cell, and repeats the claim."""
    claim = "from shardmath.base.claims import holds\nholds('one is two', 1 == 2)"
    cells = [new_code_cell(claim, id="claim")]
    path = tmp_path / "wrong.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    before = path.read_bytes()
    assert (execute_here(path), path.read_bytes()) == (1, before)
    told = capsys.readouterr().err
    assert f"{path}: not stored\n  cell claim: ✗ one is two" in told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["exercises"], "python tools/exercises.py"),
        (["exercises", "NB=exercises/01_x.ipynb"], "exercises.py exercises/01_x.ipynb"),
        (["execute", "NB=chapters/01_x.ipynb"], "execute.py chapters/01_x.ipynb"),
        (["execute"], "execute.py chapters/*.ipynb exercises/*.ipynb book/*.ipynb"),
    ],
)
def test_make_calls_the_tools_as_they_want_to_be_called(arguments, said):
    done = subprocess.run(
        ["make", "--dry-run", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    last = [line for line in done.stdout.splitlines() if "tools/e" in line][-1]
    assert last.rstrip().endswith(said)


def test_a_copy_for_elsewhere_installs_the_book_first(tmp_path):
    """And is otherwise the notebook that it was made from."""
    source = new_notebook(cells=[new_markdown_cell("# A notebook", id="title")])
    for folder in ("chapters", "exercises"):
        (tmp_path / folder).mkdir()
        nbformat.write(source, tmp_path / folder / "01_small.ipynb")
    done = tool("colab.py", "https://x.org/book.zip", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    made = [tmp_path / line for line in done.stdout.split()]
    assert [path.parent.name for path in made] == ["chapters", "exercises"]
    for path in made:
        install, *rest = nbformat.read(path, as_version=4).cells
        assert "%pip install --quiet --no-deps https://x.org/book.zip" in install.source
        assert rest == source.cells


BROUGHT = {"jax", "numpy", "IPython", "jinja2", "traitlets"}  # with JAX and Jupyter
LATE = {"flatbuffers"}  # jax.export imports it when it writes a program
IMPORTED_AS = {"orbax-checkpoint": "orbax"}  # other than by their names on PyPI


def test_the_first_cell_of_a_copy_installs_all_that_notebooks_import():
    """What they import themselves, and what the modules do that they reach."""
    files = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
        for path in PACKAGE.rglob("*.py")
    }
    files = {name.removesuffix(".__init__"): path for name, path in files.items()}
    left, met = set(), set()
    for path in [*ROOT.glob("[ce]*/[0-9]*_*.ipynb"), *ROOT.glob("book/*.ipynb")]:
        cells = nbformat.read(path, as_version=4).cells
        for cell in (cell for cell in cells if cell.cell_type == "code"):
            left |= imported(cell.source)
    while left:
        name = left.pop()
        if name in met:
            continue
        met.add(name)
        left |= {name.rpartition(".")[0]} - {""}
        if path := files.get(name):
            package = name if path.stem == "__init__" else name.rpartition(".")[0]
            left |= imported(path.read_bytes(), package)
    tops = {name.partition(".")[0] for name in met - files.keys()}
    others = tops - {*sys.stdlib_module_names} - BROUGHT - {"shardmath"}
    assert others | LATE == {IMPORTED_AS.get(name, name) for name in LACKING}


def test_a_copy_says_where_a_reload_is_needed(capsys, monkeypatch):
    """Only where the widgets were not there before."""
    lines = setup_cell("here").splitlines()
    code = "\n".join(line for line in lines if not line.startswith("%"))
    exec(code, {})
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    exec(code, {})
    assert "reload this page" in capsys.readouterr().out


def test_a_copy_without_an_address_is_not_made(tmp_path):
    assert "ADDRESS is where" in tool("colab.py", folder=tmp_path).stderr
    assert "ADDRESS is where" in tool("colab.py", "", folder=tmp_path).stderr
    assert not (tmp_path / "_build").exists()


def test_exercises_need_no_arguments():
    done = tool("exercises.py", "--check")
    assert (done.returncode, done.stderr) == (0, "")
