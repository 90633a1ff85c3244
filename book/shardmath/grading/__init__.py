"""Grading a folder of submissions: isolation, results, a gradebook, feedback.

What judges one answer is in `shardmath.exercises`; a notebook that was handed in
earlier imports `check` and `report` from here.
"""

from ..exercises import check, report

__all__ = ["check", "report"]
