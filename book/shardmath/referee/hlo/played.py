"""Plays a schedule on two lanes, math and network, and shows when each one works."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...base.units import short_repr
from ...hardware.chips import Chip
from .scheduled import ScheduledOp

Intervals = list[tuple[float, float]]


@dataclass(frozen=True)
class PlayedSpan:
    """One operation on one lane.

    Args:
        op: the operation.
        lane: "math" or "network".
        begin, end: seconds since the start of the schedule.
        waits: whether the math lane only waits, from `begin` to `end`.
    """

    op: ScheduledOp
    lane: str
    begin: float
    end: float
    waits: bool = False


@dataclass(frozen=True)
class PlayedSchedule:
    """The spans of a schedule, in the order of their starts.

    Args:
        spans: the spans of both lanes. Spans that wait are on the math lane.
    """

    spans: tuple[PlayedSpan, ...]

    @property
    def seconds(self) -> float:
        """Seconds from the start of the schedule to the last end."""
        return max((one.end for one in self.spans), default=0.0)

    @property
    def math(self) -> float:
        """Seconds in which the math lane computes."""
        return length(self.intervals("math"))

    @property
    def network(self) -> float:
        """Seconds in which the network is busy."""
        return length(self.intervals("network"))

    @property
    def overlap(self) -> float:
        """Seconds in which both lanes work."""
        return length(both(self.intervals("math"), self.intervals("network")))

    @property
    def exposed(self) -> float:
        """Seconds in which the network works and the math lane does not."""
        return self.network - self.overlap

    def intervals(self, lane: str, until: float | None = None) -> Intervals:
        """When `lane` works, as merged (begin, end) pairs in order.

        Args:
            lane: "math" or "network".
            until: the time in seconds where the intervals are cut off; None for the
                whole schedule.

        Raises:
            ValueError: `lane` is neither of these.
        """
        if lane not in ("math", "network"):
            raise ValueError(f"lane = {short_repr(lane)}: must be 'math' or 'network'")
        last = float("inf") if until is None else until
        return merged(
            (one.begin, min(one.end, last))
            for one in self.spans
            if one.lane == lane and not one.waits and one.begin < last
        )


def seconds(op: ScheduledOp, chip: Chip) -> float:
    """An estimate of how long one operation takes on a TPU, for playing a schedule.

    We assume that a collective sends in both directions around a ring, and a permute in
    one, at the full rate of the links. Other operations take the compiler's `cycles`,
    or their lower bound if the compiler gives none.

    Args:
        op: an operation from `schedule`.
        chip: a TPU whose record has a clock and a link bandwidth.

    Returns:
        Seconds. The compiler's cycles are its estimate and not measured.

    Raises:
        ValueError: `op` is not a ScheduledOp, or the chip lacks a clock or a link
            bandwidth.

    >>> from shardmath.hardware import chips
    >>> seconds(ScheduledOp("a", "a", cycles=1500), chips.TPU_V5E)
    1e-06
    >>> seconds(ScheduledOp("g", "g", op="all_gather", sent=1e6), chips.TPU_V5E)
    1e-05
    """
    if not isinstance(op, ScheduledOp):
        raise ValueError(f"op = {short_repr(op)}: must be a ScheduledOp")
    if not isinstance(chip, Chip):
        raise ValueError(f"chip = {short_repr(chip)}: must be one of `chips`")
    if op.op:
        return op.sent / (chip.link_bandwidth * (2 if op.shift is None else 1))
    if op.cycles:
        return op.cycles / chip.clock
    return op.bound(chip.flops["bf16"], chip.hbm_bandwidth)


def play(
    ops: Iterable[ScheduledOp], seconds: Callable[[ScheduledOp], float]
) -> PlayedSchedule:
    """Play a schedule on a math lane and a network lane, each in the schedule's order.

    The math lane runs one operation after another. An asynchronous collective begins
    when its start is reached and the network is free. The math lane waits at its end
    until the collective is done. At a synchronous collective, the math lane waits at
    once. Permutes in opposite directions of a ring use different links, so they
    overlap.

    Args:
        ops: operations from `schedule`.
        seconds: a function that returns the seconds that an operation takes, or that
            the links need for a collective.

    Returns:
        A PlayedSchedule.

    Raises:
        ValueError: `ops` is not a list of ScheduledOp, or `seconds` is not a function.

    Assumes:
        Copies between HBM and VMEM overlap with the math and are never late. A schedule
        fixes only the order; all times come from `seconds`.

    >>> start = ScheduledOp("s", "s", op="all_gather", sent=6.0, begins=True)
    >>> ops = [start, ScheduledOp("m", "m", flops=4.0), ScheduledOp("d", "d", ends="s")]
    >>> one = play(ops, lambda op: op.flops + op.sent)
    >>> one.seconds, one.overlap, one.exposed
    (6.0, 4.0, 2.0)
    """
    if isinstance(ops, str | bytes) or not isinstance(ops, Iterable):
        raise ValueError(f"ops = {short_repr(ops)}: must be a list of ScheduledOp")
    if not callable(seconds):
        raise ValueError(
            f"seconds = {short_repr(seconds)}: must be a function of a ScheduledOp"
        )
    now, spans = 0.0, []
    free = {-1: 0.0, 1: 0.0}  # when each direction of the links is free again
    done: dict[str, float] = {}
    for op in ops:
        if not isinstance(op, ScheduledOp):
            raise ValueError(f"ops has {short_repr(op)}: must hold only ScheduledOp")
        if op.op:
            ways = (1, -1) if op.shift is None else (1 if op.shift > 0 else -1,)
            begin = max(now, *(free[way] for way in ways))
            end = begin + seconds(op)
            free |= dict.fromkeys(ways, end)
            done[op.name] = end
            spans.append(PlayedSpan(op, "network", begin, end))
            if not op.begins:
                now = _waited(spans, op, now, end)
        elif op.ends in done:
            now = _waited(spans, op, now, done.pop(op.ends))
        elif not op.ends and not op.fetch and (taken := seconds(op)) > 0:
            spans.append(PlayedSpan(op, "math", now, now + taken))
            now += taken
    return PlayedSchedule(tuple(sorted(spans, key=lambda one: one.begin)))


def _waited(
    spans: list[PlayedSpan], op: ScheduledOp, now: float, until: float
) -> float:
    """When the math lane continues. If it has to wait, a span is added."""
    if until > now:
        spans.append(PlayedSpan(op, "math", now, until, waits=True))
    return max(now, until)


def merged(intervals: Iterable[tuple[float, float]]) -> Intervals:
    """The union of intervals, in order, as the smallest number of intervals.

    >>> merged([(4, 5), (0, 2), (1, 3)])
    [(0, 3), (4, 5)]
    """
    found: Intervals = []
    for begin, end in sorted(intervals):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found


def both(one: Intervals, other: Intervals) -> Intervals:
    """The intersection of two lists of merged intervals.

    >>> both([(0, 3), (4, 6)], [(2, 5)])
    [(2, 3), (4, 5)]
    """
    cuts = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return merged((begin, end) for begin, end in cuts if begin < end)


def length(intervals: Intervals) -> float:
    """The total length of merged intervals."""
    return sum(end - begin for begin, end in intervals)
