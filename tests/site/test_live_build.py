"""What the build makes for live figures: pages, archives, names that are digests."""

import gzip
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from html import escape
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from live_book import DEFAULTS, build, write

from shardmath.draw import figures
from shardmath.draw.live import first_answers
from shardmath.exercises import answers
from shardmath_site import runtime

FAR = "chapters/07_far.html"


@pytest.fixture(scope="module")
def book(small, tmp_path_factory) -> Path:
    """A copy of the small book, to be built again."""
    top = tmp_path_factory.mktemp("again")
    shutil.copytree(small.parent, top, dirs_exist_ok=True)
    return top


def test_other_builders_get_the_text(book):
    text = (build(book, "text") / "index.txt").read_text("utf-8")
    assert "TPU v5e: 170 µs" in text


def test_a_changed_package_changes_every_page_that_is_built_again(book):
    """The folder's name is a digest; a page must never name one that is gone."""
    html = book / "html"
    page = (html / "index.html").read_text("utf-8")
    name = folder_of(page)
    # What an older build would have left: another digest in its page and its folder.
    old = html / "_static/live/0123456789ab"
    (html / "_static/live" / name).rename(old)
    (html / "index.html").write_text(page.replace(name, old.name), "utf-8")
    info = html / ".buildinfo"
    info.write_text(re.sub(r"config: \w+", "config: 0", info.read_text()))
    again = folder_of((build(book) / "index.html").read_text("utf-8"))
    assert again != old.name
    assert not old.exists()
    assert (html / "_static/live" / again / "host.js").exists()


def folder_of(page: str) -> str:
    return re.search(r"_static/live/(\w+)/host\.js", page)[1]


@pytest.fixture(scope="module")
def pages() -> runtime.Pages:
    return runtime.pages()


def test_the_page_gets_what_it_can_call_and_no_more(pages):
    modules = {
        "draw/live/__init__.py",
        "exercises/__init__.py",
        "exercises/answers/ch01.py",
    }
    assert {f"shardmath/{name}" for name in {*modules, "hardware/chips.toml"}} <= set(
        pages.files
    )
    assert not {"shardmath/draw/plots.py", "shardmath/draw/live/widget.py"} & set(
        pages.files
    )


def test_a_page_gets_the_modules_of_its_figures_or_questions_alone(pages):
    chapters = {f"ch{number}" for number in answers.chapters()}
    assert pages.packs.keys() == {"base", "prompt", *figures.NAMES, *chapters}
    assert set().union(*pages.packs.values()) == set(pages.files)
    base = set(pages.packs["base"])
    assert "shardmath/draw/live/static_view.py" in base
    for name in figures.NAMES:
        held = set(pages.packs[name])
        assert f"shardmath/draw/figures/{name}.py" in held
        assert not any(
            re.match("shardmath/(grading|exercises)/", file) for file in held
        )
        assert not held & base
    assert "shardmath/hardware/chips.toml" in pages.packs["roofline"]
    assert not any("/hlo/" in name for name in pages.packs["roofline"])
    prompt = set(pages.packs["prompt"])
    assert "shardmath/draw/objects/trace.py" in prompt
    assert not any(re.match("shardmath/(grading|exercises)/", file) for file in prompt)
    for name in chapters:
        records = [f for f in pages.packs[name] if re.search(r"/answers/ch\d\d", f)]
        assert records == [f"shardmath/exercises/answers/{name}.py"]


def test_imports_in_functions_count():
    """What a figure imports only to draw would be missed by the reader alone."""
    source = "def draw():\n    from .picture import panel\n"
    assert "shardmath.ring.picture" in runtime.imported(source, "shardmath.ring")


def test_a_pack_that_lacks_something_stops_the_build(pages, monkeypatch, tmp_path):
    whole, run = runtime.packed(pages), runtime._run

    def run_with_too_little(script, *arguments):
        if script != "pack.mjs":
            return run(script, *arguments)
        for name in ("python.pack", "base.pack"):
            shutil.copy(whole / name, arguments[-1])
        less = without("chips.toml", (whole / "roofline.pack").read_bytes())
        return (arguments[-1] / "roofline.pack").write_bytes(less)

    monkeypatch.setattr(runtime, "CACHE", tmp_path)
    monkeypatch.setattr(runtime, "_run", run_with_too_little)
    with pytest.raises(RuntimeError, match=r"(?s)roofline\.pack lacks .*chips\.toml"):
        runtime.packed(pages)


def without(name: str, pack: bytes) -> bytes:
    """A pack as pack.py writes it, less the file that ends in `name`."""
    plain = gzip.decompress(pack)
    at = 4 + int.from_bytes(plain[:4], "little")
    files = {}
    for file, size in json.loads(plain[4:at]).items():
        files[file], at = plain[at : at + size], at + size
    (gone,) = [file for file in files if file.endswith(name)]
    del files[gone]
    header = json.dumps({file: len(content) for file, content in files.items()})
    length = len(header).to_bytes(4, "little")
    return gzip.compress(b"".join([length, header.encode(), *files.values()]))


def test_data_reaches_the_page_as_it_was_read_here(pages):
    """As JSON, which a page reads without a parser of TOML."""
    data = [name for name in pages.files if name.endswith(".toml")]
    assert data
    for name in data:
        rows = tomllib.loads((runtime.PACKAGE.parent / name).read_text("utf-8"))
        assert json.loads(pages.files[name]) == rows


def test_escaping_in_the_page_is_that_of_python():
    spec = spec_from_file_location("lean", runtime.LEAN / "html" / "__init__.py")
    lean = module_from_spec(spec)
    spec.loader.exec_module(lean)
    for text in ("", "a < b & \"c\" > 'd'", "&amp; é"):
        assert lean.escape(text) == escape(text)
        assert lean.escape(text, quote=False) == escape(text, quote=False)


def test_a_page_carries_the_answers_of_its_own_settings(small):
    page = (small / FAR).read_text("utf-8")
    names = re.findall(r'data-answers="([^"]*)"', page)
    assert len(set(names)) == len(names) == 3
    wanted = [("systolic", {}), ("roofline", DEFAULTS), ("roofline", {"B": 64})]
    for name, (figure, params) in zip(names, wanted, strict=True):
        (file,) = small.glob(f"_static/live/*/{name}")
        assert json.loads(file.read_text("utf-8")) == first_answers(figure, params)


def test_live_figures_of_a_chapter_are_numbered(small):
    """In order, each with a link to itself; a link to one takes up its number."""
    page = BeautifulSoup((small / FAR).read_text("utf-8"), "html.parser")
    blocks = page.select(".sm-live")
    names = [f"fig-07-live-{n}" for n in ("systolic", "roofline", "roofline-2")]
    assert [block["id"] for block in blocks] == names
    marks = [block.select_one(".sm-head a.sm-figure-number") for block in blocks]
    assert [mark["href"] for mark in marks] == [f"#{name}" for name in names]
    numbers = [f"Figure 7.{n}" for n in (1, 2, 3)]
    assert [mark.text for mark in marks] == numbers
    (link,) = page.select("p a[href='#fig-07-live-roofline-2']:not(.sm-head a)")
    assert link.text == numbers[2]
    assert "sm-figure-number" not in (small / "index.html").read_text("utf-8")


def test_packing_is_reproducible(pages, monkeypatch, tmp_path):
    """Equal bytes from a second run: readers' browsers keep what did not change.

    The packs of two pages and what all pages share stand for the rest.
    """
    packs = {name: pages.packs[name] for name in ("base", "roofline", "ch01")}
    files = {name: pages.files[name] for name in sorted(set().union(*packs.values()))}
    files["shardmath/draw/figures/__init__.py"] += b"\nNAMES = ('roofline',)\n"
    few = runtime.Pages(files, packs)
    monkeypatch.setattr(runtime, "pages", lambda: few)
    run = runtime._run  # that they start is tried with every build
    monkeypatch.setattr(runtime, "_run", lambda s, *a: s == "start.mjs" or run(s, *a))
    editor = runtime._editor()  # bundled when the book was built, and once more here
    shutil.copytree(editor, tmp_path / "first" / editor.name)
    builds = []
    for name in ("first", "second"):
        monkeypatch.setattr(runtime, "CACHE", tmp_path / name)
        builds.append(runtime.build())
    first, second = builds
    assert (second.python, second.scripts) == (first.python, first.scripts)


def test_without_node_the_build_says_what_to_do(pages, monkeypatch, tmp_path):
    monkeypatch.setattr(runtime, "pages", lambda: pages)
    monkeypatch.setattr(runtime, "CACHE", tmp_path)
    monkeypatch.setattr(runtime.shutil, "which", lambda *_, **__: None)
    with pytest.raises(runtime.MissingToolError, match="needs Node: install it"):
        runtime.build()
    monkeypatch.setattr(runtime, "PYODIDE", tmp_path / "nowhere")
    with pytest.raises(runtime.MissingToolError, match="npm ci"):
        runtime.build()


# A build that is cut short ------------------------------------------------------------

# What pages need of the package is gathered once, for all of these processes.
DYING = """
extensions += ["shardmath_site.builder"]
html_static_path = []
import os, pickle, signal
from pathlib import Path
from shardmath_site import runtime
gathered = pickle.loads(Path(__file__).with_name("pages").read_bytes())
runtime.pages = lambda: gathered
live = setup
def setup(app):
    live(app)
    if moment := os.environ.get("DIES"):
        die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        app.connect(moment, die, priority=int(os.environ["AT"]))
"""


def killed(folder: Path, moment: str, at: int = 0) -> int:
    """Build the book in a process that is killed when Sphinx emits the event `moment`.

    The result is what the process ended with.
    """
    command = [sys.executable, "-m", "sphinx", "-q", "source", "html"]
    dies = {"DIES": moment, "AT": str(at)}
    return subprocess.run(command, cwd=folder, env=os.environ | dies).returncode


def tree(html: Path) -> dict[str, str]:
    """The files of a site by name, without what Sphinx keeps for itself.

    MyST-NB names the digest of its style sheet only where it finds one already.
    """
    files = (path for path in html.rglob("*") if path.is_file())
    named = {path.relative_to(html).as_posix(): path for path in files}
    return {
        name: re.sub(r"\.css\?v=\w+", ".css", path.read_bytes().decode("latin-1"))
        for name, path in named.items()
        if not name.startswith(".doctrees")
    }


def test_a_killed_build_is_mended_by_the_next(pages, tmp_path, monkeypatch):
    """Whether it was killed between pages, before the files they name, or after.

    One that is not killed leaves nothing to do for the next.
    """
    monkeypatch.setattr(runtime, "pages", lambda: pages)
    html = tmp_path / "html"
    write(tmp_path / "source")
    (tmp_path / "source/pages").write_bytes(pickle.dumps(pages))
    with (tmp_path / "source/conf.py").open("a") as conf:
        conf.write(DYING)
    build(tmp_path)
    whole = tree(html)
    assert any(name.endswith(".json") for name in whole)

    shutil.rmtree(html)
    for moment in ("html-page-context", "build-finished"):
        assert killed(tmp_path, moment) == -signal.SIGKILL
    assert not any(name.endswith(".json") for name in tree(html))
    build(tmp_path)
    assert tree(html) == whole

    # A file that was half written has its name already.
    assert killed(tmp_path, "build-finished", 9_999) == -signal.SIGKILL
    worker = next(html.rglob("worker.js"))
    worker.write_bytes(worker.read_bytes()[:100])
    build(tmp_path)
    assert tree(html) == whole

    written = (html / "index.html").stat().st_mtime_ns
    build(tmp_path)
    assert (html / "index.html").stat().st_mtime_ns == written
