"""Kinds of questions: what is asked, what is right, what goes wrong, how to judge."""

from . import slips
from .compiled import Compiled
from .function import Function
from .number import Number
from .question import Finding
from .sharded import Sharded
from .slips import Slip, scaled
from .traffic import Traffic

__all__ = [
    "Compiled",
    "Finding",
    "Function",
    "Number",
    "Sharded",
    "Slip",
    "Traffic",
    "scaled",
    "slips",
]
