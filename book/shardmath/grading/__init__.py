"""Grading a folder of submissions: isolation, results, a gradebook, feedback.

The code that judges one answer is in `shardmath.exercises`. Older copies of the
exercise notebooks import `check` and `report` from here.
"""

from ..exercises import check, report

__all__ = ["check", "report"]
