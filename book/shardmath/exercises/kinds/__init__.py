"""Kinds of questions; a question has a task, a right answer, slips and a judge."""

from . import slips
from .chapter import Chapter
from .compiled import Compiled
from .function import Function
from .given import stated
from .number import Number
from .question import Finding, Question, prose
from .sharded import Sharded
from .slips import Slip, scaled
from .traffic import Traffic

__all__ = [
    "Chapter",
    "Compiled",
    "Finding",
    "Function",
    "Number",
    "Question",
    "Sharded",
    "Slip",
    "Traffic",
    "prose",
    "scaled",
    "slips",
    "stated",
]
