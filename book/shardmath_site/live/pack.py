"""Runs inside Pyodide, under Node, and precompiles the modules for the page's Python.

Bytecode halves the start-up time, and only the same version of Python can compile it.
Docstrings and line numbers, which are a third of the bytes, are left out.
"""

import io
import json
import sys
import zipfile
from functools import cache
from importlib.util import MAGIC_NUMBER
from marshal import dumps
from pathlib import Path
from types import CodeType
from zipimport import zipimporter

UNCHECKED = (1).to_bytes(4, "little") + bytes(8)  # flags for a hash that isn't checked


def pack(
    sources: str, out: str, names: list[str], tried: list[str], made: dict[str, dict]
) -> None:
    """Write `out`/python.pack, with the standard modules among `names`, and our packs.

    The first is a zip for Pyodide. Each of our packs holds the files that
    `sources`/packs.json lists under its name, and in made/NAME the compiled methods of
    their dataclasses, from `made`. The prompt's pack also has the standard modules
    `tried`. A pack starts with the size of its header, followed by the header in JSON,
    {name: bytes}, and the files.
    """
    stdlib = io.BytesIO()
    with zipfile.ZipFile(stdlib, "w") as archive:
        for path, code in standard(names).items():
            archive.writestr(zipfile.ZipInfo(path), code)
    Path(out, "python.pack").write_bytes(stdlib.getvalue())

    packs = json.loads(Path(sources, "packs.json").read_text("utf-8"))
    for pack, files in packs.items():
        held, methods = standard(tried) if pack == "prompt" else {}, {}
        for name in files:
            module = name.removesuffix(".py").removesuffix("/__init__")
            methods |= made.get(module.replace("/", "."), {})
            content = Path(sources, name).read_bytes()
            if name.endswith(".py"):
                name, content = name + "c", compiled(content, f"/{name}")
            held[name] = content
        shorter = {text: without_lines(code) for text, code in methods.items()}
        held[f"made/{pack}"] = dumps(shorter)
        header = json.dumps({name: len(held[name]) for name in held}).encode()
        length = len(header).to_bytes(4, "little")
        whole = b"".join([length, header, *held.values()])
        Path(out, f"{pack}.pack").write_bytes(whole)


def standard(names: list[str]) -> dict[str, bytes]:
    """Path → bytecode, for those of the modules that are in Python's library."""
    held = {}
    for name in sorted(names):
        loader = getattr(sys.modules[name].__spec__, "loader", None)
        if isinstance(loader, zipimporter):
            path = name.replace(".", "/")
            path += "/__init__.py" if loader.is_package(name) else ".py"
            held[path + "c"] = compiled(loader.get_source(name), f"/lib/{path}")
    return held


@cache
def compiled(source: str | bytes, filename: str) -> bytes:
    """The content of a .pyc file, the same whenever and wherever it is compiled.

    It is cached because most modules are in many packs.
    """
    code = compile(source, filename, "exec", dont_inherit=True, optimize=2)
    return MAGIC_NUMBER + UNCHECKED + dumps(without_lines(code))


def without_lines(code: CodeType) -> CodeType:
    """`code` and all functions in it without their tables of line numbers."""
    inner = (without_lines(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=tuple(inner))
