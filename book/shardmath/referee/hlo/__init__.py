"""Read from compiled HLO text what a program sends, how often, and what it computes.

    text = jax.jit(f).lower(…).compile().as_text()
    hlo.collectives_in(text, {"X": 4, "Y": 2})

What is read is what the compiler decided, after all its passes: it may have merged,
split, widened, narrowed or replaced what was written. A gather done as permutes in a
loop is reported as permutes.
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
