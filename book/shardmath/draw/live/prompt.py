"""The Python prompt of a page, where readers can try things.

Each visit to a page has one namespace. Cells of the page's chapter run in it on demand.
If a cell imports a module that the page lacks, such as JAX, `Missing` replaces the
module.
"""

import ast
import linecache
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from rlcompleter import Completer
from types import CodeType, ModuleType

from ..picture import MIME as PICTURE_MIME
from ..picture import in_page

PACKAGE = "shardmath"
# Parts of the package that a page lacks → the module that they need.
WITHOUT = {
    "draw.plots": "matplotlib",
    "referee.programs": "jax",
    "referee.compilers": "jax",
    "referee.processes": "cloudpickle",
    "referee.checkpoints": "jax",
    "exercises": "grading",
    "grading": "grading",
}
NOT_FOUND = re.compile(rf"cannot import name '(\w+)' from '{PACKAGE}\.?([\w.]*)'")
# Names that are available on every page, imported at their first use.
READY = """
import jax
import jax.numpy as jnp
import numpy as np
from shardmath.referee import compilers, programs
from shardmath.draw import plots
from shardmath.hardware import chips, networks
from shardmath import collectives, training as parallelism, planner
from shardmath.draw import pictures
from shardmath.training import pipeline_schedules
from shardmath import measured as published, sharding
from shardmath.hardware import roofline, systolic
from shardmath import transformer
from shardmath.hardware import waves
from shardmath.collectives import Collective, all_gather, all_reduce, all_to_all, price
from shardmath.draw.live import live
from shardmath.hardware.mesh import Mesh
from shardmath.sharding import array, contract, reshard
from shardmath.base.tables import compare, ratio
from shardmath.base.units import GiB, MiB, show
"""
WIDTH = 79  # characters of a line, as in a notebook
MOST = 20_000  # characters of an output that a page shows
STEPS = 8  # lines of a traceback, taken from both of its ends
NAME = re.compile(r"[^\W\d]\w*")
WORD = re.compile(r"[^\W\d]\w*(\.\w*)*$")


class NotHereError(Exception):
    """Something is not available in a page's Python."""


class Missing:
    """Replaces a module that a page lacks, and objects made from it."""

    def __init__(self, module: str):
        self._module = module

    def __getattr__(self, name: str):
        if name.startswith("_"):  # asked by Python, not by the reader
            raise AttributeError(name)
        raise NotHereError(not_here(self._module))

    def __call__(self, *args, **kwargs):
        raise NotHereError(not_here(self._module))

    def __repr__(self) -> str:
        return not_here(self._module)


def not_here(module: str) -> str:
    """The message about a module that can't be imported.

    >>> not_here("jax.numpy")
    'jax does not run in the page: open the notebook.'
    """
    return f"{module.partition('.')[0]} does not run in the page: open the notebook."


class Session:
    """A namespace and the code that runs in it."""

    def __init__(self):
        self.main = ModuleType("__main__")
        self.names = self.main.__dict__
        self.cells: set[str] = set()
        self.inputs = 0
        parts = list(_statements(READY))
        self.ready = {name: part for part in parts for name in _bound(part)}

    def prepare(self, cells: dict[str, str]) -> None:
        """Run the cells that have not run yet, in order, without showing anything.

        Imports that a page lacks become `Missing`, and so do names that one statement
        derives from them, such as ``P = jax.P``.

        Args:
            cells: name → source.
        """
        for name, source in cells.items():
            if name not in self.cells:
                self.cells.add(name)
                with self._as_main(), redirect_stdout(StringIO()):
                    for part in _statements(source):
                        self._try(part, f"<{name}>", source)

    def _try(self, part: ast.stmt, name: str, source: str) -> None:
        module = ast.fix_missing_locations(ast.Module([part], []))
        try:
            exec(_compiled(module, "exec", name, source), self.names)
        except (NotHereError, ImportError) as error:
            missing = _missing(error)
            if missing is None:
                raise
            self.names.update(dict.fromkeys(_bound(part), Missing(missing)))

    def _bring(self, source: str) -> None:
        """Import the available names that `source` uses."""
        for name in {*NAME.findall(source)} & self.ready.keys() - self.names.keys():
            self._try(self.ready[name], "<ready>", READY)

    def absent_in(self, source: str) -> set[str]:
        """Names in `source` that are `Missing`."""
        nodes = ast.walk(ast.parse(source))
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        return {name for name in names if isinstance(self.names.get(name), Missing)}

    def run(self, source: str) -> dict[str, str]:
        """Run `source` and return what a notebook would show.

        Returns:
            A dict of strings: "printed"; "html" or "text" of the last expression, if it
            has a value; or "error", and in "trace" the reader's lines that led to it.
        """
        self.inputs += 1
        name = f"<input {self.inputs}>"
        printed, answer = StringIO(), {}
        with self._as_main(), redirect_stdout(printed), redirect_stderr(printed):
            try:
                self._bring(source)
                value = self._value(source, name)
                if value is not None:
                    self.names["_"] = value
                    answer = shown(value)
            except BaseException as error:  # SystemExit must not end the page's Python
                answer = {"error": _said(error), "trace": _trace(error)}
        return {"printed": _cut(printed.getvalue()), **answer}

    def _value(self, source: str, name: str) -> object:
        """The value of the last expression, or None if a semicolon follows it."""
        tree = ast.parse(source, name)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(_compiled(tree, "exec", name, source), self.names)
        if last is None:
            return None
        value = eval(_compiled(last, "eval", name, source), self.names)
        return None if source.rstrip().endswith(";") else value

    @contextmanager
    def _as_main(self) -> Iterator[None]:
        """Let definitions belong to the module `__main__`, as in a notebook."""
        before = sys.modules.get("__main__")
        sys.modules["__main__"] = self.main
        try:
            yield
        finally:
            if before is not None:
                sys.modules["__main__"] = before

    def complete(self, before: str) -> dict[str, object] | None:
        """The names that complete the word at the end of `before`.

        Returns:
            The place where the word, or its last part, begins, and the names; None if
            there is no word.
        """
        word = WORD.search(before)
        if word is None:
            return None
        with self._as_main():
            self._bring(word[0])
            known = dict.fromkeys(self.ready) | self.names
            completer, found = Completer(known), []
            while one := completer.complete(word[0], len(found)):
                found.append(one)
        start = len(before) - len(word[0].rpartition(".")[2])
        head = len(word[0].rpartition(".")[0])
        names = {one.rstrip(" :()")[head + bool(head) :] for one in found}
        return {"from": start, "options": sorted(filter(str.isidentifier, names))}


def shown(value: object) -> dict[str, str]:
    """A value as a notebook shows it: a table or a picture of the book, or text.

    Only objects of the package may write HTML into the page.
    """
    kind = type(value)
    if kind.__module__.partition(".")[0] == PACKAGE:
        if hasattr(kind, "_repr_mimebundle_"):
            bundle = value._repr_mimebundle_()
            if PICTURE_MIME in bundle:
                return {"html": in_page(bundle[PICTURE_MIME]["panels"])}
            if "text/html" in bundle:
                return {"html": bundle["text/html"]}
            return {"text": bundle["text/plain"]}
        if hasattr(kind, "_repr_html_"):
            return {"html": value._repr_html_()}
    return {"text": _cut(plain(value))}


def plain(value: object) -> str:
    """A value as text. Long lists, tuples and dicts are split into several lines.

    >>> print(plain({"a": [1, 2]}))
    {'a': [1, 2]}
    >>> print(plain(["x" * 40, "y" * 40]))
    ['xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
     'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy']
    """
    kind = type(value)
    if hasattr(kind, "_repr_pretty_"):
        printer = _Printer()
        value._repr_pretty_(printer, False)
        return "".join(printer.texts)
    if kind in (list, tuple) and value:
        parts = [plain(one) for one in value]
        start, end = "[]" if kind is list else "()"
        end = f",{end}" if kind is tuple and len(parts) == 1 else end
    elif kind is dict and value:
        parts = [f"{key!r}: {plain(one)}" for key, one in value.items()]
        start, end = "{}"
    else:
        return repr(value)
    line = start + ", ".join(parts) + end
    if len(line) <= WIDTH and "\n" not in line:
        return line
    return start + ",\n ".join(part.replace("\n", "\n ") for part in parts) + end


class _Printer:
    """Collects what `_repr_pretty_` writes."""

    def __init__(self):
        self.texts: list[str] = []

    def text(self, text: str) -> None:
        self.texts.append(text)


def _compiled(tree: ast.AST, mode: str, name: str, source: str) -> CodeType:
    """The code of `tree`, with its source lines available to error messages."""
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    return compile(tree, name, mode)


def _statements(source: str) -> Iterator[ast.stmt]:
    """The statements of `source`, with imports split into one name each."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom):
            ones = [ast.ImportFrom(node.module, [a], node.level) for a in node.names]
        elif isinstance(node, ast.Import):
            ones = [ast.Import([alias]) for alias in node.names]
        else:
            ones = [node]
        yield from (ast.copy_location(one, node) for one in ones)


def _bound(part: ast.stmt) -> set[str]:
    """Names that a statement would have bound."""
    names = set()
    for node in ast.walk(part):
        if isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _missing(error: BaseException) -> str | None:
    """The module that caused `error`, if a page lacks it, else None."""
    if isinstance(error, NotHereError):
        return str(error).partition(" ")[0]
    found = NOT_FOUND.match(str(error))
    if isinstance(error, ImportError) and found:
        return _lacking(f"{found[2]}.{found[1]}".lstrip("."))
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    top, *below = error.name.split(".")
    return _lacking(".".join(below)) if top == PACKAGE and below else top


def _lacking(module: str) -> str | None:
    """The module that a page lacks and that `module` or its package needs, or None."""
    return next(
        (
            needs
            for part, needs in WITHOUT.items()
            if f"{module}.".startswith(f"{part}.")
        ),
        None,
    )


def _said(error: BaseException) -> str:
    """The last line of a traceback, or a sentence for something that a page lacks."""
    missing = _missing(error)
    if missing is not None:
        return not_here(missing)
    return "".join(traceback.format_exception_only(error)).strip()


def _trace(error: BaseException) -> str:
    """The lines of inputs and cells that led to `error`."""
    found, at = [], error.__traceback__
    while at is not None and not isinstance(error, SyntaxError):
        code = at.tb_frame.f_code
        if code.co_filename in linecache.cache and code.co_filename.startswith("<"):
            line = linecache.getline(code.co_filename, at.tb_lineno).strip()
            within = "" if code.co_name == "<module>" else f", in {code.co_name}"
            place = code.co_filename.strip("<>")
            found.append(f"{place}, line {at.tb_lineno}{within}\n    {line}")
        at = at.tb_next
    if len(found) > 2 * STEPS:
        left_out = f"… {len(found) - 2 * STEPS} steps more"
        found[STEPS:-STEPS] = [left_out]
    return "\n".join(found)


def _cut(text: str) -> str:
    if len(text) <= MOST:
        return text
    return f"{text[:MOST]}\n… and {len(text) - MOST:,} letters more"


_session = Session()


def prepare(cells: dict[str, str]) -> dict[str, bool]:
    """Run the page's `cells` that have not run. "fresh" says if none had run before."""
    fresh = not _session.cells
    _session.prepare({"": "", **cells})
    return {"fresh": fresh}


def run(source: str) -> dict[str, str]:
    """Run `source` in the page's session; see `Session.run`."""
    return _session.run(source)


def complete(before: str) -> dict[str, object] | None:
    """The names that complete `before`; see `Session.complete`."""
    return _session.complete(before)
