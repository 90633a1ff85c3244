"""Exercises: kinds of question, the questions of each chapter, and their judges.

The right answers are computed from the package, never taken from the notebook.
"""

from .check import CHECK_MIME, MARKS, Verdict, check, examine, judge_number, solution
from .kinds.question import prose
from .page_function import judge_function
from .report import Text, report

__all__ = [
    "CHECK_MIME",
    "MARKS",
    "Text",
    "Verdict",
    "check",
    "examine",
    "judge_function",
    "judge_number",
    "prose",
    "report",
    "solution",
]
