"""Question records: what is asked, what is right, what goes wrong, and how to judge.

Every kind of question has the same three steps, so that a notebook, a folder of
submissions and a page share one grader:

* ``draw(seed)``: the case, what the answer is tried on;
* ``collect(answer, case)``: the evidence. The only step that touches the reader's
  objects or runs the reader's code;
* ``judge(evidence, case)``: the finding. Believes nothing but what it computes.

Case and evidence are JSON values: the second step may run in another process.
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
    """What the judge found: "correct", "wrong", "todo" or "invalid", and why."""

    verdict: str
    message: str
    slip: str = ""


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """What every kind of question has. A record holds all of a question.

    Args:
        id: chapter and number, "01.3". It never changes: readers' progress keeps it.
        title: a few words.
        task: Markdown: **Given** …, an empty line, **Wanted** …
        given: name → (value or what computes it, unit): values that the task needs
            and that stand in a record. They are listed under **Given**.
        stub: the answer cell before it is answered; the name that it binds last is
            what the check takes.
        slips: the known ways to go wrong, each with words of its own.
        hint: Markdown, shown after the second wrong answer.
        solution: Markdown with one Python block, which binds the name of the stub.
        points: what a right answer is worth.

    Raises:
        ValueError: names the question and says which field cannot be.
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
        """One sentence: what an answer looks like, and how near it must be."""

    @abstractmethod
    def draw(self, seed: str):
        """The case that an answer is tried on."""

    @abstractmethod
    def collect(self, answer: object, case) -> dict:
        """The evidence: what the answer does on the case."""

    @abstractmethod
    def judge(self, evidence: dict, case) -> Finding:
        """The finding on the evidence."""

    @property
    def known_slips(self) -> tuple[Slip, ...]:
        """All slips that the record names, of whatever kind."""
        return self.slips

    @property
    def answer(self) -> str:
        """The name that the stub binds last: what the check takes."""
        return _bound(self.stub)

    @property
    def code(self) -> str:
        """The Python of the worked solution."""
        return _CODE.findall(prose(self.solution))[0].rstrip("\n")

    @property
    def asked(self) -> str:
        """The task, with the values given listed before what is wanted."""
        told = prose(self.task)
        wanted = _TASK.match(told).end()
        rows = [f"- {name}: {_shown(*value)}" for name, value in self.given.items()]
        listed = ["\n".join(rows)] if rows else []
        return "\n\n".join([told[:wanted].strip(), *listed, told[wanted:]])

    def faults(self):
        """What cannot be in this record, sentence by sentence."""
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
    """A record's Markdown without the indentation that its source has.

    >>> prose('''
    ...     One line.
    ... ''')
    'One line.'
    """
    return inspect.cleandoc(text).strip()


def _bound(code: str) -> str:
    """The last name that top-level code binds; "" where it is no Python or has none."""
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
    """The finding where there is nothing to judge: no answer, or none of its kind."""
    if evidence.get("todo"):
        return Finding("todo", wanted)
    if "invalid" in evidence:
        return Finding("invalid", str(evidence["invalid"]))
    return None


def code_or(answer: object, wanted: str) -> dict | None:
    """The evidence where `answer` is no code to try; None where it is."""
    if answer is None or answer is ... or is_blank(answer):
        return TODO
    if not callable(answer):
        kind = type(answer).__name__
        return {"invalid": f"{kind} is not a function: give {wanted}"}
    return None
