"""Runs inside Pyodide, under Node: precompile what the page's Python needs.

Bytecode, not the trimming, is what halves the start; Pyodide compiles it, because only
the same Python can. What only a reader of the code needs, docstrings and the lines of
tracebacks, stays out: a third of the bytes.
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

UNCHECKED = (1).to_bytes(4, "little") + bytes(8)  # a hash that nobody compares


def pack(
    sources: str, out: str, names: list[str], tried: list[str], made: dict[str, dict]
) -> None:
    """Write `out`/python.pack, of the standard modules among `names`, and our own.

    The first is a zip for Pyodide. Each of the others holds the files that
    `sources`/packs.json lists under its name, and in made/NAME what dataclasses in them
    compile; that of the prompt has the standard modules `tried` too. First comes the
    size of a header, then the header in JSON, {name: bytes}, then the files.
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
    """Those of the modules that are Python's own: path → bytecode."""
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
    """The content of a .pyc file that is the same whenever and wherever it is made.

    Most modules are in many packs.
    """
    code = compile(source, filename, "exec", dont_inherit=True, optimize=2)
    return MAGIC_NUMBER + UNCHECKED + dumps(without_lines(code))


def without_lines(code: CodeType) -> CodeType:
    """`code` without the table of its lines, and so all functions in it."""
    inner = (without_lines(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=tuple(inner))
