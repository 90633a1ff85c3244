"""A figure with controls, in a notebook and on the page: ``live("roofline", B=16)``."""

from .static_view import (
    MIME,
    Place,
    StaticFigure,
    answer,
    block,
    first_answers,
    live,
    table,
)

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
