"""A figure with controls, in a notebook and on the page: ``live("roofline", B=16)``."""

from .still import MIME, Place, Still, answer, block, first_answers, live, table

__all__ = [
    "MIME",
    "Place",
    "Still",
    "answer",
    "block",
    "first_answers",
    "live",
    "table",
]
