"""Reads compiled HLO text: what a program sends and how often, and its FLOPs.

    text = jax.jit(f).lower(…).compile().as_text()
    hlo.collectives_in(text, {"X": 4, "Y": 2})

The text shows the program after all passes of the compiler, which may have merged,
split, widened, narrowed or replaced collectives. For example, a gather that became
permutes in a loop is reported as permutes.
"""

from .flops import flops
from .overlap import HloOverlap, overlaps
from .played import PlayedSchedule, PlayedSpan, play, seconds
from .reading import CompiledCollective, collectives_in, read
from .scheduled import ScheduledOp, schedule
from .text import UnknownTurnsError, UnreadableLineError

__all__ = [
    "CompiledCollective",
    "HloOverlap",
    "PlayedSchedule",
    "PlayedSpan",
    "ScheduledOp",
    "UnknownTurnsError",
    "UnreadableLineError",
    "collectives_in",
    "flops",
    "overlaps",
    "play",
    "read",
    "schedule",
    "seconds",
]
