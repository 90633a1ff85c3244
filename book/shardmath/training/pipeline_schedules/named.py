"""Schedules by name."""

from ...base.units import positive_int, short_repr
from .dualpipe import dualpipe, dualpipev
from .ops import EVEN, Times, checked
from .orders import (
    Paths,
    both_ways,
    breadth_first,
    eager_one_f_one_b,
    gpipe,
    interleaved,
    laps,
    one_f_one_b,
    overlapped,
    there_and_back,
    zb_h1,
    zb_h2,
    zb_v,
)
from .schedule import PipelineSchedule

NAMES = {
    "gpipe": gpipe,
    "1f1b": one_f_one_b,
    "eager-1f1b": eager_one_f_one_b,
    "interleaved": interleaved,
    "overlapped": overlapped,
    "breadth-first": breadth_first,
    "zb-h1": zb_h1,
    "zb-h2": zb_h2,
    "zb-v": zb_v,
    "dualpipe": dualpipe,
    "dualpipev": dualpipev,
}
LOOPED = ("interleaved", "overlapped", "breadth-first")  # any number of chunks
IN_GROUPS = ("interleaved", "overlapped")  # microbatches go in groups of p
CHUNKS = {"zb-v": 2, "dualpipe": 2, "dualpipev": 2}  # the others have one
SPLIT = ("zb-h1", "zb-h2", "zb-v")  # each backward pass is two ops
MOST_OPS = 600_000  # on all stages together; Python simulates them in about 8 seconds


def schedule(
    name: str,
    stages: int,
    microbatches: int,
    chunks: int | None = None,
    times: Times = EVEN,
) -> PipelineSchedule:
    """A published schedule for given numbers of stages and microbatches.

    Args:
        name: one of `NAMES`.
        stages: p, at least 1, and even for "dualpipe".
        microbatches: M, at least 1; a multiple of p for "interleaved" and "overlapped"
            with more than one chunk; at least 2p for "dualpipe" and "dualpipev"; even
            for "dualpipe".
        chunks: chunks of layers per stage. "interleaved", "overlapped" and
            "breadth-first" can have any number; the default is 2. "zb-v", "dualpipe"
            and "dualpipev" always have 2, and the others always have 1.
        times: times of the ops.

    Raises:
        ValueError: the schedule does not exist for these numbers (the message says
            which numbers would do), or it has more than 600,000 ops, such as 1f1b with
            64 stages and 4,688 microbatches.

    >>> schedule("1f1b", stages=4, microbatches=8)
    1f1b over 4 stages, 8 microbatches: bubble 37.5%, at most 4 in flight
    >>> print(*schedule("1f1b", stages=3, microbatches=4).orders[0])
    F0 F1 F2 B0 F3 B1 B2 B3
    >>> schedule("interleaved", stages=4, microbatches=6, chunks=2)
    Traceback (most recent call last):
    ValueError: interleaved needs a multiple of 4 microbatches for 4 stages, not 6
    """
    chunks = chunks_of(name, stages, microbatches, chunks)
    stages, microbatches = positive_int(stages=stages, microbatches=microbatches)
    times = checked(times)
    _refuse_too_many(name, stages, microbatches, chunks)
    sizes = (stages, microbatches, chunks)
    orders, paths = NAMES[name](*(sizes if name in LOOPED else sizes[:2]))
    return PipelineSchedule(name, stages, microbatches, orders, paths, times)


def paths_of(name: str, stages: int, chunks: int | None = None) -> Paths:
    """The paths of microbatches in a schedule: the places that they pass, in order.

    Args:
        name, stages, chunks: as in `schedule`.

    >>> paths_of("dualpipe", 2)
    (((0, 0), (1, 0)), ((1, 1), (0, 1)))
    """
    microbatches = 2 * positive_int(stages=stages)[0]
    chunks = chunks_of(name, stages, microbatches, chunks)
    if name in ("zb-v", "dualpipev"):
        return there_and_back(stages)
    return both_ways(stages) if name == "dualpipe" else laps(stages, chunks)


def _refuse_too_many(name: str, stages: int, microbatches: int, chunks: int) -> None:
    """Refuse more ops than can be listed and simulated within about 10 seconds."""
    # The order of zb-v is made for at least 2p − 1 microbatches; see `zb_v`.
    made = max(microbatches, 2 * stages - 1) if name == "zb-v" else microbatches
    ops = stages * made * chunks * (3 if name in SPLIT else 2)
    if ops > MOST_OPS:
        raise ValueError(
            f"{name} over {short_repr(stages)} stages with {short_repr(microbatches)} "
            f"microbatches has {short_repr(ops)} ops: must be at most {MOST_OPS:,}, "
            "because each op is simulated; `idle` and `peak` have closed forms for any "
            "number"
        )


def chunks_of(name: str, stages: int, microbatches: int, chunks: int | None) -> int:
    """How many chunks a stage has; a ValueError if there is no such schedule."""
    if not isinstance(name, str) or name not in NAMES:
        raise ValueError(
            f"name = {short_repr(name)}: must be one of {', '.join(NAMES)}"
        )
    p, M = positive_int(stages=stages, microbatches=microbatches)
    if name in LOOPED:
        (chunks,) = positive_int(chunks=2 if chunks is None else chunks)
        if name in IN_GROUPS and chunks > 1 and M % p:
            raise ValueError(
                f"{name} needs a multiple of {short_repr(p)} microbatches for "
                f"{short_repr(p)} stages, not {short_repr(M)}"
            )
        return chunks
    own = CHUNKS.get(name, 1)
    (chunks,) = positive_int(chunks=own if chunks is None else chunks)
    if chunks != own:
        raise ValueError(
            f"{name} has {own} chunk{'s' * (own > 1)} per stage, not "
            f"{short_repr(chunks)}"
        )
    if name == "dualpipe" and (p % 2 or M % 2 or 2 * p > M):
        raise ValueError(
            "dualpipe needs an even number of stages, and an even number of "
            "microbatches that is at least twice the number of stages, not "
            f"{short_repr(p)} stages and {short_repr(M)} microbatches"
        )
    if name == "dualpipev" and 2 * p > M:
        raise ValueError(
            "dualpipev needs at least twice as many microbatches as stages, not "
            f"{short_repr(p)} stages and {short_repr(M)} microbatches"
        )
    return own
