"""Runs inside Pyodide, under Node, and finds the modules that the page's Python loads.

These are the modules loaded when it starts, when all of shardmath is imported and its
figures are drawn, and when functions import later. This module imports nothing that the
page does not have.

A dataclass generates the code of its methods when it is defined, and compiling it takes
most of an import's time. So the code compiled here is kept for the page.
"""

import ast
import dataclasses
import importlib
import json
import sys

# Needed for file names and errors, but not loaded by any of this.
ALSO = ("encodings.ascii", "encodings.latin_1", "traceback")
# Modules that chapters or readers may import, which are only in the prompt's pack.
TRIED = ("copy", "decimal", "fractions", "pprint", "random", "statistics", "string")

MADE = {}  # module → {text of methods: their code}


def run(text: str, scope: dict, local: dict) -> None:
    """Replaces `exec` in the module dataclasses, and stores the compiled code."""
    code = compile(text, "<dataclass>", "exec", dont_inherit=True, optimize=2)
    MADE.setdefault(scope["__name__"], {})[text] = code
    exec(code, scope, local)


def loaded(sources: str) -> tuple[list[str], list[str]]:
    """Names of all loaded modules, after everything under `sources` has run.

    Returns:
        Those that figures and questions need, and those that only the prompt needs.
    """
    dataclasses.exec = run
    sys.path.insert(0, sources)
    with open(f"{sources}/packs.json") as text:
        packs = json.load(text)
    prompt = set(packs.pop("prompt", ()))
    meet(sources, set().union(*packs.values()), ALSO)
    for name in importlib.import_module("shardmath.draw.figures").NAMES:
        importlib.import_module("shardmath.draw.live").answer(name, {})
    first = set(sys.modules)
    meet(sources, prompt, TRIED)
    return sorted(first), sorted(set(sys.modules) - first)


def meet(sources: str, files: set[str], also: tuple[str, ...]) -> None:
    """Import the modules in `files` and `also`, and all standard ones they import."""
    for name in also:
        importlib.import_module(name)
    for file in sorted(name for name in files if name.endswith(".py")):
        with open(f"{sources}/{file}") as text:
            for name in imported(ast.parse(text.read())):
                importlib.import_module(name)
        name = file.removesuffix(".py").replace("/", ".")
        importlib.import_module(name.removesuffix(".__init__"))


def imported(tree: ast.Module) -> set[str]:
    """Standard modules imported anywhere in a module, including in functions."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module)
    return {n for n in names if n.split(".")[0] in sys.stdlib_module_names}
