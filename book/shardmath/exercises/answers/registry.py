"""The registry of questions: every record in every ``chNN`` module, found by name."""

import difflib
import functools
import importlib
import pkgutil
import re
from types import ModuleType

from ...base.units import short_repr
from ..kinds import Chapter, Question


def chapters() -> list[str]:
    """Numbers of the chapters that have questions, in order: "01", …

    >>> chapters()[:3]
    ['01', '02', '03']
    """
    # Not a folder: on a page each chapter's questions lie in an archive of their own.
    path = importlib.import_module(__package__).__path__
    names = [module.name for module in pkgutil.iter_modules(path)]
    return sorted(name[2:] for name in names if re.fullmatch(r"ch\d\d", name))


@functools.cache
def chapter(number: str) -> dict[str, Question]:
    """Question id → record of one chapter, in order; empty where it has none."""
    if number not in chapters():
        return {}
    found = sorted(records(_module(number)), key=lambda question: int(question.id[3:]))
    return {question.id: question for question in found}


def heading(number: str) -> Chapter:
    """What a chapter's exercises say before their first question.

    >>> heading("01").title
    'Rooflines'
    """
    return _module(number).CHAPTER


def _module(number: str) -> ModuleType:
    return importlib.import_module(f"{__package__}.ch{number}")


def questions() -> dict[str, Question]:
    """Question id → record, of all chapters, in order.

    >>> "01.1" in questions()
    True
    """
    return {q: record for number in chapters() for q, record in chapter(number).items()}


def records(module: ModuleType) -> list[Question]:
    """The question records of a module.

    Raises:
        ValueError: an id that is taken, or that is not of the module's chapter.

    >>> from shardmath.exercises.answers import ch01
    >>> [one.id for one in records(ch01)][:3]
    ['01.1', '01.2', '01.3']
    """
    number = module.__name__.rpartition(".ch")[2]
    found: dict[str, Question] = {}
    for value in vars(module).values():
        if not isinstance(value, Question):
            continue
        if not re.fullmatch(rf"{number}\.[1-9]\d*", value.id):
            raise ValueError(f"question {value.id!r}: ids here are {number}.1, …")
        if value.id in found:
            raise ValueError(f"question {value.id!r}: two records have this id")
        found[value.id] = value
    return list(found.values())


def find(question: str) -> Question:
    """The record of a question's id. Loads no chapter but its own.

    Raises:
        ValueError: no such question; lists the nearest ids.

    >>> find("01.1").id
    '01.1'
    """
    if isinstance(question, str) and re.fullmatch(r"\d\d\.\d+", question):
        record = chapter(question[:2]).get(question)
        if record is not None:
            return record
    known = list(questions())
    said = re.sub(r"^(\d)\b", r"0\1", str(question))  # "1.1" is near "01.1"
    near = difflib.get_close_matches(said, known, cutoff=0.3) or known[:3]
    nearest = ", ".join(sorted(near, key=known.index))
    raise ValueError(
        f"question {short_repr(question)}: no such id; the nearest are {nearest}"
    )
