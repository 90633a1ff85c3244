"""Pipeline schedules as data: what each stage computes, waits for and holds, and when.

>>> one = schedule("1f1b", stages=4, microbatches=8)
>>> one
1f1b over 4 stages, 8 microbatches: bubble 37.5%, at most 4 in flight
>>> one.in_flight, one.sends
((4.0, 3.0, 2.0, 1.0), (8, 16, 16, 8))
"""

from .checking import check
from .closed_forms import idle, peak
from .named import NAMES, schedule
from .ops import Op, Span, Times
from .progress import StageProgress, progress, windows
from .schedule import PipelineSchedule

__all__ = [
    "NAMES",
    "Op",
    "PipelineSchedule",
    "Span",
    "StageProgress",
    "Times",
    "check",
    "idle",
    "peak",
    "progress",
    "schedule",
    "windows",
]
