"""Question records: the task, the right answer, known slips, and how to judge.

Every kind of question has the same three steps, so a notebook, a folder of submissions
and a page share one grader:

* ``draw(seed)`` returns the case on which the answer is tested;
* ``collect(answer, case)`` returns the evidence. Only this step touches the reader's
  objects or runs the reader's code;
* ``judge(evidence, case)`` returns the finding. It does not trust the evidence.

Case and evidence are JSON values, because the second step may run in another process.
"""

import ast
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...base.units import show
from .calling import is_blank
from .slips import Slip

TODO = {"todo": True}
_TASK = re.compile(r"\*\*Given\*\* .*^(?=\*\*Wanted\*\* )", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    """The verdict, "correct", "wrong", "todo" or "invalid", and its reason."""

    verdict: str
    message: str
    slip: str = ""


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """The fields that every kind of question has. A record holds a whole question.

    Args:
        id: chapter and number, such as "01.3". It must never change, because readers'
            progress is stored under it.
        title: a few words.
        task: Markdown: **Given** …, an empty line, **Wanted** …
        given: name → (value or a function that computes it, unit), for values that the
            task needs and that come from records. They are listed under **Given**.
        stub: the answer cell before it is answered. The check receives the value of the
            last name that the stub binds.
        slips: the known ways to go wrong, each with a different name and explanation.
        hint: Markdown, shown from the second wrong answer on.
        solution: Markdown with one Python block, which ends by binding the same name as
            the stub.
        points: the points for a right answer.

    Raises:
        ValueError: a field is invalid. The message names the question and the fault.
    """

    id: str
    title: str
    task: str
    stub: str
    hint: str
    solution: str
    given: Mapping[str, tuple[float | Callable[[], float], str]] = field(
        default_factory=dict
    )
    slips: tuple[Slip, ...] = ()
    points: int = 1

    def __post_init__(self) -> None:
        if wrong := next(self.faults(), ""):
            raise ValueError(f"question {self.id!r}: {wrong}")

    @property
    @abstractmethod
    def form(self) -> str:
        """What an answer looks like, and how accurate it must be."""

    @abstractmethod
    def draw(self, seed: str):
        """The case on which an answer is tested."""

    @abstractmethod
    def collect(self, answer: object, case) -> dict:
        """The evidence: what the answer does on the case."""

    @abstractmethod
    def judge(self, evidence: dict, case) -> Finding:
        """The finding on the evidence."""

    @property
    def known_slips(self) -> tuple[Slip, ...]:
        """All slips that the record names, of any kind."""
        return self.slips

    @property
    def answer(self) -> str:
        """The last name that the stub binds; the check receives its value."""
        return _bound(self.stub)

    @property
    def code(self) -> str:
        """The Python of the worked solution."""
        return _CODE.findall(prose(self.solution))[0].rstrip("\n")

    @property
    def asked(self) -> str:
        """The task, with the given values listed before **Wanted**."""
        told = prose(self.task)
        wanted = _TASK.match(told).end()
        rows = [f"- {name}: {_shown(*value)}" for name, value in self.given.items()]
        listed = ["\n".join(rows)] if rows else []
        return "\n\n".join([told[:wanted].strip(), *listed, told[wanted:]])

    def faults(self):
        """The faults of this record, each as a phrase for an error message."""
        if not re.fullmatch(r"\d\d\.[1-9]\d*", self.id):
            yield "an id is two digits, a point and a number, such as 01.3"
        if not (self.title and prose(self.hint)):
            yield "title and hint must say something"
        if type(self.points) is not int or self.points < 1:
            yield f"points {self.points!r}: must be a whole number from 1"
        if not re.match(
            r"\*\*Given\*\* .*^\*\*Wanted\*\* ", prose(self.task), re.S | re.M
        ):
            yield "the task must say **Given** …, then **Wanted** …"
        if not _bound(self.stub):
            yield f"the stub must be Python that binds a name: {self.stub!r}"
        blocks = _CODE.findall(prose(self.solution))
        if len(blocks) != 1:
            yield f"{len(blocks)} Python blocks in its solution, not 1"
        elif _bound(blocks[0]) != _bound(self.stub):
            yield f"the solution must end by binding {_bound(self.stub)!r}"
        elif blocks[0].strip() in self.hint:
            yield "the hint gives the solution away"
        for what in ("name", "says"):
            said = [getattr(slip, what) for slip in self.known_slips]
            if twice := sorted({words for words in said if said.count(words) > 1}):
                yield f"two slips share {twice[0]!r}"


def prose(text: str) -> str:
    """A record's Markdown without the indentation of the source code.

    >>> prose('''
    ...     One line.
    ... ''')
    'One line.'
    """
    return inspect.cleandoc(text).strip()


def _bound(code: str) -> str:
    """The last name that top-level code binds, or "" if there is none."""
    try:
        body = ast.parse(code).body
    except SyntaxError:
        return ""
    for step in reversed(body):
        match step:
            case ast.FunctionDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
                return name
    return ""


def _shown(value, unit: str) -> str:
    value = value() if callable(value) else value
    count = not unit and value == int(value)
    return f"{value:,.0f}" if count else show(value, unit, digits=4)


def unusable(evidence: dict, wanted: str) -> Finding | None:
    """The finding if there is nothing to judge, else None."""
    if evidence.get("todo"):
        return Finding("todo", wanted)
    if "invalid" in evidence:
        return Finding("invalid", str(evidence["invalid"]))
    return None


def code_or(answer: object, wanted: str) -> dict | None:
    """The evidence if `answer` is not a function that can be called, else None."""
    if answer is None or answer is ... or is_blank(answer):
        return TODO
    if not callable(answer):
        kind = type(answer).__name__
        return {"invalid": f"{kind} is not a function: give {wanted}"}
    return None
