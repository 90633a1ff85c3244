"""Runs inside Pyodide, under Node: which modules the page's Python loads.

Those that starting it loads, that importing all of shardmath and drawing its figures
loads, and that its functions import later. Nothing is imported here that the page does
not have.

A dataclass writes the code of its methods when it is defined, and compiling it takes
most of an import's time. What was compiled here is kept for the page.
"""

import ast
import dataclasses
import importlib
import os
import sys

# Loaded by nothing of that: names of files, errors.
ALSO = ("encodings.ascii", "encodings.latin_1", "traceback")

MADE = {}  # module → {text of methods: their code}


def run(text: str, scope: dict, local: dict) -> None:
    """`exec` of the module dataclasses, which remembers what it has compiled."""
    code = compile(text, "<dataclass>", "exec", dont_inherit=True, optimize=2)
    MADE.setdefault(scope["__name__"], {})[text] = code
    exec(code, scope, local)


def loaded(sources: str) -> list[str]:
    """Names of all modules, once everything under `sources` has run."""
    dataclasses.exec = run
    sys.path.insert(0, sources)
    for name in ALSO:
        importlib.import_module(name)
    for folder, _, files in os.walk(sources):
        parts = os.path.relpath(folder, sources).split("/")
        for file in sorted(f for f in files if f.endswith(".py")):
            with open(f"{folder}/{file}") as text:
                for name in imported(ast.parse(text.read())):
                    importlib.import_module(name)
            name = ".".join([*parts, file.removesuffix(".py")])
            importlib.import_module(name.removesuffix(".__init__"))
    for name in importlib.import_module("shardmath.figures").NAMES:
        importlib.import_module("shardmath.live").answer(name, {})
    return sorted(sys.modules)


def imported(tree: ast.Module) -> set[str]:
    """Standard modules that are imported anywhere in a module, in functions too."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module)
    return {n for n in names if n.split(".")[0] in sys.stdlib_module_names}
