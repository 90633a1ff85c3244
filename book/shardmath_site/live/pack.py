"""Runs inside Pyodide, under Node: precompile what the page's Python needs.

Bytecode, not the trimming, is what halves the start; Pyodide compiles it, because only
the same Python can. What only a reader of the code needs, docstrings and the lines of
tracebacks, stays out: a third of the bytes.
"""

import ast
import importlib
import re
import sys
import zipfile
from importlib.util import MAGIC_NUMBER
from marshal import dumps
from pathlib import Path
from types import CodeType
from zipimport import zipimporter

# Loaded while running, not by an import that can be seen: names in archives, errors.
ALSO = ("encodings.ascii", "encodings.cp437", "encodings.latin_1", "traceback")
UNCHECKED = (1).to_bytes(4, "little") + bytes(8)  # a hash that nobody compares


def pack(sources: str, out: str) -> None:
    """Write `out`/python_stdlib.zip and, from `sources`/shardmath, the package.

    The first holds every module that starting Pyodide and importing all of shardmath
    loads, and those that its functions import later. A page asks the questions of one
    chapter: they are archives of their own, ch01.zip …; all else is shardmath.zip.
    """
    root = Path(sources)
    files = sorted(p for p in root.rglob("*") if p.is_file())
    modules = [p for p in files if p.suffix == ".py"]
    sys.path.insert(0, sources)
    for name in ALSO:
        importlib.import_module(name)
    for path in modules:
        for name in imported(ast.parse(path.read_text("utf-8"))):
            importlib.import_module(name)
        parts = path.relative_to(root).with_suffix("").parts
        importlib.import_module(".".join(parts).removesuffix(".__init__"))

    package = {str(p.relative_to(root)): p.read_bytes() for p in files}
    for path in modules:
        name = str(path.relative_to(root))
        package[name + "c"] = compiled(package.pop(name), f"/{name}")
    archives: dict[str, dict[str, bytes]] = {}
    for name, content in package.items():
        chapter = re.fullmatch(r"shardmath/answers/(ch\d\d)\.pyc", name)
        archive = chapter[1] if chapter else "shardmath"
        archives.setdefault(archive, {})[name] = content
    for archive, content in archives.items():
        write(Path(out, f"{archive}.zip"), content)

    stdlib = {}
    for name, module in sys.modules.items():
        loader = getattr(module.__spec__, "loader", None)
        if isinstance(loader, zipimporter):
            path = name.replace(".", "/")
            path += "/__init__.py" if loader.is_package(name) else ".py"
            stdlib[path + "c"] = compiled(loader.get_source(name), f"/lib/{path}")
    write(Path(out, "python_stdlib.zip"), stdlib)


def check(_sources: str, out: str) -> None:
    """Import everything that was packed, from the archives alone."""
    archives = sorted(Path(out).glob("*.zip"), reverse=True)  # the chapters come last
    sys.path.insert(0, f"{out}/shardmath.zip")
    answers = importlib.import_module("shardmath.answers")
    answers.__path__ += [f"{path}/shardmath/answers" for path in archives]
    for path in archives:
        for name in zipfile.ZipFile(path).namelist():
            if name.startswith("shardmath/") and name.endswith(".pyc"):
                module = name.removesuffix(".pyc").replace("/", ".")
                importlib.import_module(module.removesuffix(".__init__"))


def imported(tree: ast.Module) -> set[str]:
    """Standard modules that are imported anywhere in a module, in functions too."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module)
    return {n for n in names if n.split(".")[0] in sys.stdlib_module_names}


def compiled(source: str | bytes, filename: str) -> bytes:
    """The content of a .pyc file that is the same whenever and wherever it is made."""
    code = compile(source, filename, "exec", dont_inherit=True, optimize=2)
    return MAGIC_NUMBER + UNCHECKED + dumps(without_lines(code))


def without_lines(code: CodeType) -> CodeType:
    """`code` without the table of its lines, and so all functions in it."""
    inner = (without_lines(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=tuple(inner))


def write(path: Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), files[name], zipfile.ZIP_DEFLATED)
