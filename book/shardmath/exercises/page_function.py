"""Runs the code that a reader typed into a page, and judges it as a notebook would."""

import ast
import contextlib
import linecache
import sys
from collections.abc import Iterator
from types import CodeType, ModuleType

from ..base.units import short_repr
from . import answers
from .check import examine, for_page
from .kinds import Finding, Function, Question, Traffic, prose
from .kinds.calling import describe

_FILE = "your code"  # the file name that warnings show
_MOST_PRINTED = 2_000  # characters
_LACKS = "the page's Python has no {}: answer without it, or in the notebook"


def judge_function(question: str, source: str, attempts: int = 0) -> dict:
    """Judge a function, or a program for a `Scratchpad`, from its source.

    The source can use the names that the notebook's first cell imports, if their
    modules exist on the page, which has only the standard library and this package.

    Args:
        question: id of a question whose answer is plain Python.
        source: everything that was typed.
        attempts: the number of earlier wrong answers.

    Returns:
        A dict of strings: "verdict", "message", "slip" and "hint", as for a number, and
        "printed", the text that was printed.

    Raises:
        ValueError: no question has this id, or its answer is not plain Python.

    >>> judge_function("05.10", "def hops(n):\\n    return n +")["message"]
    'SyntaxError: invalid syntax (line 2: return n +)'
    """
    record = answers.find(question)
    if not isinstance(record, Function | Traffic):
        raise ValueError(
            f"question {short_repr(question)} is not answered in plain Python"
        )
    printed = _Printed()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        finding = _finding(record, source)
    return {**for_page(record, finding, attempts), "printed": printed.text}


def answer_of(record: Question, source: str) -> object:
    """The value that the source binds to the name that the question asks for.

    Returns:
        The answer, or a `Finding` if there is none.
    """
    if not source.strip():
        return Finding("todo", record.form)
    try:
        code = _compiled(source)
    except Exception as error:  # the source isn't valid, or is nested too deeply
        return Finding("invalid", _unreadable(error))
    names = {"__name__": "__main__", **_imported(answers.heading(record.id[:2]).setup)}
    try:
        with _put_back():
            exec(code, names)
    except ModuleNotFoundError as missing:
        return Finding("invalid", _LACKS.format(missing.name))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the reader's code may raise anything
        return Finding("invalid", f"your code raises {describe(error, code)}")
    if record.answer not in names:
        said = f"your code defines no {record.answer}; keep the name that was there"
        return Finding("invalid", said)
    return names[record.answer]


def _finding(record: Question, source: str) -> Finding:
    answer = answer_of(record, source)
    if isinstance(answer, Finding):
        return answer
    with _put_back():
        return examine(record, answer)


@contextlib.contextmanager
def _put_back() -> Iterator[None]:
    """Afterwards, restore names that code has rebound in modules, as in `math.pi = 3`.

    One interpreter judges all answers of a page and draws its figures, so a change made
    by accident must not spread. Changes inside objects are not undone.
    """
    modules = [m for m in sys.modules.values() if isinstance(m, ModuleType)]
    before = [(vars(module), dict(vars(module))) for module in modules]
    try:
        yield
    finally:
        for names, kept in before:
            for name, value in kept.items():
                if names.get(name) is not value:
                    names[name] = value


def _compiled(source: str) -> CodeType:
    """The compiled code, with its lines in `linecache` for error messages."""
    linecache.cache[_FILE] = (len(source), None, source.splitlines(True), _FILE)
    return compile(source, _FILE, "exec", dont_inherit=True)


def _unreadable(error: Exception) -> str:
    if not isinstance(error, SyntaxError):
        return describe(error, None)
    line = (error.text or "").strip()[:80]
    where = f" (line {error.lineno}: {line})" if line else ""
    return f"{type(error).__name__}: {error.msg}{where}"


def _imported(setup: str) -> dict[str, object]:
    """The names that a chapter's first cell imports, as far as the modules exist."""
    names: dict[str, object] = {}
    for step in ast.parse(prose(setup)).body:
        if not isinstance(step, ast.Import | ast.ImportFrom):
            continue  # JAX configuration
        try:
            exec(compile(ast.Module([step], []), "<setup>", "exec"), names)
        except ModuleNotFoundError as error:
            for alias in step.names:
                names[alias.asname or alias.name] = _Missing(error.name)
    return names


class _Missing:
    """Replaces a module that the page lacks, and raises when it is used."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str):
        raise ModuleNotFoundError(_LACKS.format(self._name), name=self._name)


class _Printed:
    """A text stream that keeps only the first `_MOST_PRINTED` characters."""

    def __init__(self):
        self.text = ""

    def write(self, text: str) -> int:
        room = _MOST_PRINTED - len(self.text)
        if 0 < room < len(text):
            self.text += f"{text[:room]} …"
        elif room > 0:
            self.text += text
        return len(text)

    def flush(self) -> None:
        """Do nothing, because nothing is buffered."""
