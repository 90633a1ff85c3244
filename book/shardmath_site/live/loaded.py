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
import json
import sys

# Loaded by nothing of that: names of files, errors.
ALSO = ("encodings.ascii", "encodings.latin_1", "traceback")
# What chapters import, and a reader may: it comes with the prompt alone.
TRIED = ("copy", "decimal", "fractions", "pprint", "random", "statistics", "string")

MADE = {}  # module → {text of methods: their code}


def run(text: str, scope: dict, local: dict) -> None:
    """`exec` of the module dataclasses, which remembers what it has compiled."""
    code = compile(text, "<dataclass>", "exec", dont_inherit=True, optimize=2)
    MADE.setdefault(scope["__name__"], {})[text] = code
    exec(code, scope, local)


def loaded(sources: str) -> tuple[list[str], list[str]]:
    """Names of all modules, once everything under `sources` has run.

    First those that figures and questions need, then what the prompt has besides.
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
    """Import modules by their files, what they import anywhere, and others by name."""
    for name in also:
        importlib.import_module(name)
    for file in sorted(name for name in files if name.endswith(".py")):
        with open(f"{sources}/{file}") as text:
            for name in imported(ast.parse(text.read())):
                importlib.import_module(name)
        name = file.removesuffix(".py").replace("/", ".")
        importlib.import_module(name.removesuffix(".__init__"))


def imported(tree: ast.Module) -> set[str]:
    """Standard modules that are imported anywhere in a module, in functions too."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module)
    return {n for n in names if n.split(".")[0] in sys.stdlib_module_names}
