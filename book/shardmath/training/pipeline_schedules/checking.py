"""Check whether a schedule can be run, and if not, say what is wrong with it."""

from collections.abc import Iterator, Sequence

from .ops import KINDS, Op
from .schedule import PipelineSchedule, require_schedule
from .simulate import simulate, slots_of


def check(schedule: PipelineSchedule) -> None:
    """Accept a schedule that can be run; otherwise raise an error that names the fault.

    Raises:
        ValueError: an op is missing, appears twice or belongs to another stage, or ops
            wait for one another. The message says which stage waits for what.

    >>> from dataclasses import replace
    >>> from shardmath.training.pipeline_schedules import schedule
    >>> good = schedule("gpipe", stages=2, microbatches=1)
    >>> check(good)
    >>> first, last = good.orders
    >>> check(replace(good, orders=(first[::-1], last)))
    Traceback (most recent call last):
    ValueError: gpipe cannot run: stage 0 waits at B0 for its own F0, which comes later
    """
    require_schedule(schedule)
    if len(schedule.orders) != schedule.stages:
        raise ValueError(
            f"{schedule.name} has {schedule.stages} stages, "
            f"but orders for {len(schedule.orders)}"
        )
    if not schedule.paths or not all(schedule.paths):
        raise ValueError(f"{schedule.name}: each path must pass at least one place")
    for stage, order in enumerate(schedule.orders):
        for problem in _wrong_ops(schedule, stage, order):
            raise ValueError(f"{schedule.name} cannot run: {problem}")
    simulate(schedule)


def _wrong_ops(
    schedule: PipelineSchedule, stage: int, order: Sequence[Op]
) -> Iterator[str]:
    seen = set()
    for op in order:
        if op.kind not in KINDS:
            yield f"stage {stage}: {op} must be of kind {', '.join(KINDS)}"
        if op.microbatch not in range(schedule.microbatches):
            last = schedule.microbatches - 1
            yield f"stage {stage}: {op}, but the microbatches are 0 to {last}"
        if (stage, op.chunk) not in schedule.path(op.microbatch):
            yield (
                f"stage {stage}: {op}, but microbatch {op.microbatch} does not pass "
                "this chunk"
            )
        if op in seen:
            yield f"stage {stage} does {op} twice"
        seen.add(op)
    if order and order[0].beside:
        yield f"stage {stage}: {order[0]} has no op before it to run together with"
    for slot in slots_of(order):
        if len(slot) > 1 and sorted(op.kind for op in slot) != ["B", "F"]:
            together = " and ".join(map(str, slot))
            yield f"stage {stage}: {together}; only one F and one B can run together"
    for microbatch in range(schedule.microbatches):
        for there, chunk in schedule.path(microbatch):
            if there == stage:
                yield from _wrong_passes(microbatch, chunk, stage, seen)


def _wrong_passes(microbatch: int, chunk: int, stage: int, seen: set) -> Iterator[str]:
    has = {kind for kind in KINDS if Op(kind, microbatch, chunk) in seen}
    if "F" not in has:
        yield f"stage {stage} never does {Op('F', microbatch, chunk)}"
    if "B" in has and has & {"I", "W"}:
        half = Op((has & {"I", "W"}).pop(), microbatch, chunk)
        whole = Op("B", microbatch, chunk)
        yield f"stage {stage} does {half} twice, because {whole} includes it"
    if "B" not in has:
        halves = [kind for kind in "IW" if kind not in has]
        for kind in "B" if len(halves) == 2 else halves:
            yield f"stage {stage} never does {Op(kind, microbatch, chunk)}"
