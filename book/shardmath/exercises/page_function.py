"""Code as a reader typed it into a page: run, and judged as the notebook judges it."""

import ast
import contextlib
import linecache
import sys
from collections.abc import Iterator
from types import CodeType, ModuleType

from . import answers
from .check import examine, for_page
from .kinds import Finding, Function, Question, Traffic, prose
from .kinds.calling import describe

_FILE = "your code"  # as warnings call it
_MOST_PRINTED = 2_000  # letters
_LACKS = "the page's Python has no {}: answer without it, or in the notebook"


def judge_function(question: str, source: str, attempts: int = 0) -> dict:
    """Judge a function, or a program for the machine, from its source.

    It finds the names that the notebook's first cell imports, as far as they are here:
    a page has the standard library and this package.

    Args:
        question: id of a question whose answer is plain Python.
        source: what was typed, all of it.
        attempts: how many wrong answers came before this one.

    Returns:
        "verdict", "message", "slip" and "hint", as for a number, and what it "printed".

    Raises:
        ValueError: no such question is answered with plain Python.

    >>> judge_function("05.10", "def hops(n):\\n    return n +")["message"]
    'SyntaxError: invalid syntax (line 2: return n +)'
    """
    record = answers.find(question)
    if not isinstance(record, Function | Traffic):
        raise ValueError(f"question {question!r} wants no function in plain Python")
    printed = _Printed()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        finding = _finding(record, source)
    return {**for_page(record, finding, attempts), "printed": printed.text}


def answer_of(record: Question, source: str) -> object:
    """What the source binds to the name that the question asks for.

    Returns:
        The answer, or the `Finding` where there is none.
    """
    if not source.strip():
        return Finding("todo", record.form)
    try:
        code = _compiled(source)
    except Exception as error:  # what the compiler cannot read, or nested too deeply
        return Finding("invalid", _unreadable(error))
    names = {"__name__": "__main__", **_imported(answers.heading(record.id[:2]).setup)}
    try:
        with _put_back():
            exec(code, names)
    except ModuleNotFoundError as missing:
        return Finding("invalid", _LACKS.format(missing.name))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the reader's own: anything may come
        return Finding("invalid", f"your code raises {describe(error, code)}")
    if record.answer not in names:
        said = f"your code defines no {record.answer}: keep the name it began with"
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
    """Names that are bound anew in modules, `math.pi = 3`, are as before afterwards.

    For one Python judges all answers of a page, and draws its figures. What is changed
    within an object stays changed: accidents do not spread, tricks may.
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
    """The code, its lines where errors look for them."""
    linecache.cache[_FILE] = (len(source), None, source.splitlines(True), _FILE)
    return compile(source, _FILE, "exec", dont_inherit=True)


def _unreadable(error: Exception) -> str:
    if not isinstance(error, SyntaxError):
        return describe(error, None)
    line = (error.text or "").strip()[:80]
    where = f" (line {error.lineno}: {line})" if line else ""
    return f"{type(error).__name__}: {error.msg}{where}"


def _imported(setup: str) -> dict[str, object]:
    """What the imports of a chapter's first cell bind, as far as it is here."""
    names: dict[str, object] = {}
    for step in ast.parse(prose(setup)).body:
        if not isinstance(step, ast.Import | ast.ImportFrom):
            continue  # settings of JAX
        try:
            exec(compile(ast.Module([step], []), "<setup>", "exec"), names)
        except ModuleNotFoundError as error:
            for alias in step.names:
                names[alias.asname or alias.name] = _Missing(error.name)
    return names


class _Missing:
    """Stands for a module that the page lacks, until it is used."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str):
        raise ModuleNotFoundError(_LACKS.format(self._name), name=self._name)


class _Printed:
    """A place to print to that keeps the beginning."""

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
        """Nothing waits."""
