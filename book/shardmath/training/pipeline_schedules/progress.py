"""How long each stage of a schedule has worked and waited so far, and what it holds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...base.units import flags, number
from .ops import Op, Span
from .schedule import PipelineSchedule, require_schedule


@dataclass(frozen=True)
class StageProgress:
    """The state of a stage at one moment of a step.

    Args:
        worked: how long it has computed, in the unit of the schedule.
        waited: how long it has waited. At the end of the step this is its idle time.
        held: microbatches whose activations it holds now, for its whole share of
            layers.
        peak: the maximum of `held` so far.
    """

    worked: float
    waited: float
    held: float
    peak: float


def windows(
    schedule: PipelineSchedule, together: bool = True
) -> tuple[tuple[float, float], ...]:
    """The start and end of each stage's step, including its idle time.

    Args:
        schedule: the schedule.
        together: whether all stages begin together and wait for one another at the
            end. If not, each starts its next step at once, one `period` after this one.

    >>> from shardmath.training.pipeline_schedules import schedule
    >>> windows(schedule("zb-h2", 2, 4)), windows(schedule("zb-h2", 2, 4), False)
    (((0, 13.0), (0, 13.0)), ((0.0, 12.0), (1.0, 13.0)))
    """
    require_schedule(schedule)
    (together,) = flags(together=together)
    if together:
        return ((0, schedule.seconds),) * schedule.stages
    period = schedule.period
    starts = (spans[0].start for spans in schedule.spans)
    return tuple((start, start + period) for start in starts)


def progress(
    schedule: PipelineSchedule, time: float, together: bool = True
) -> tuple[StageProgress, ...]:
    """The progress of every stage at one moment of the step.

    Activations are held from the start of F to the end of B, or to the end of W if the
    backward pass is split. Stages wait only within their `windows`.

    Args:
        schedule: the schedule.
        time: time since the first stage began, in the unit of the schedule.
        together: as in `windows`.

    Raises:
        ValueError: `time` is not a number.

    >>> from shardmath.training.pipeline_schedules import schedule
    >>> progress(schedule("1f1b", 2, 4), 4)[0]
    StageProgress(worked=2.0, waited=2.0, held=2.0, peak=2.0)
    """
    require_schedule(schedule)
    if (time := number("time", time)) != time:
        raise ValueError("time = nan: must be a time in the unit of the schedule")
    found = []
    for order, spans, (begin, end) in zip(
        schedule.orders, schedule.spans, windows(schedule, together), strict=True
    ):
        worked = sum(
            min(span.end, time) - span.start
            for span in spans
            if span.start < time and not span.op.beside
        )
        elapsed = max(0, min(time, end) - begin)
        counts = [0, *_held(order, spans, time)]
        held, peak = schedule.share * counts[-1], schedule.share * max(counts)
        found.append(StageProgress(worked, elapsed - worked, held, peak))
    return tuple(found)


def _held(order: Sequence[Op], spans: Sequence[Span], time: float) -> Iterator[int]:
    """The number of passes held, after each start and each end up to `time`."""
    split = {(op.microbatch, op.chunk) for op in order if op.kind == "W"}
    held = 0
    for op, start, end in spans:
        if op.kind == "F" and start < time:
            held += 1
            yield held
        elif end <= time and (
            op.kind == "W"
            or (op.kind == "B" and (op.microbatch, op.chunk) not in split)
        ):
            held -= 1
            yield held
