"""A figure with controls, in a notebook and on the page: ``live("roofline", B=16)``."""

from .markup import Place, block, table
from .static_view import MIME, StaticFigure, answer, first_answers, live

__all__ = [
    "MIME",
    "Place",
    "StaticFigure",
    "answer",
    "block",
    "first_answers",
    "live",
    "table",
]
