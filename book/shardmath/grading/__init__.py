"""The grader: one judge for the notebook, for a folder of submissions and for the page.

What is right is computed from the package, never taken from the notebook.
"""

from ..questions import prose
from .check import CHECK_MIME, MARKS, Verdict, check, examine, judge_number, solution
from .report import Text, report
from .typed import judge_function

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
