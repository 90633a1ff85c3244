"""A schedule played on two lanes, math and network: what runs when, and what waits."""

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
        begin, end: seconds since the start.
        waits: whether the math lane stands still for it, from `begin` to `end`.
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
        spans: of both lanes; those that wait are on the math lane.
    """

    spans: tuple[PlayedSpan, ...]

    @property
    def seconds(self) -> float:
        """From the start to the last end."""
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
        """When `lane` works, merged: begins and ends in order, none touching another.

        Args:
            lane: "math" or "network".
            until: seconds after which nothing counts; None for the whole schedule.

        Raises:
            ValueError: another lane.
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
    """How long one operation takes on a TPU: an estimate, to play a schedule with.

    A collective sends both ways round a ring, and a permute one way, at the full rate
    of the links. Other operations take the compiler's `cycles`, or where it gives none
    their lower bound.

    Args:
        op: of `schedule`.
        chip: a TPU that states its clock and the rate of its links.

    Returns:
        Seconds. The compiler's cycles are its estimate and no measurement.

    Raises:
        ValueError: no ScheduledOp, or a chip without a clock or a rate of its links.

    >>> from shardmath.hardware import chips
    >>> seconds(ScheduledOp("a", "a", cycles=1500), chips.TPU_V5E)
    1e-06
    >>> seconds(ScheduledOp("g", "g", op="all_gather", sent=1e6), chips.TPU_V5E)
    1e-05
    """
    if not isinstance(op, ScheduledOp):
        raise ValueError(f"op = {short_repr(op)}: must be a ScheduledOp of `schedule`")
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
    """Play a schedule: the math lane follows its order, the network serves in turn.

    The math lane runs one operation after another. A collective that has a start and an
    end begins when its start is reached and the network is free, and the math lane
    waits at its end if it is not done. Without a start the math lane waits at once.
    Permutes in opposite directions of a ring use different links and run together.

    Args:
        ops: of `schedule`.
        seconds: how long an operation takes; a collective, how long its links work.

    Returns:
        A PlayedSchedule.

    Raises:
        ValueError: what is no list of ScheduledOp, or no function.

    Assumes:
        Copies between HBM and VMEM run beside the math and are never late. A schedule
        fixes an order and no times: how long it takes is what `seconds` says.

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
            raise ValueError(f"ops has {short_repr(op)}: must hold ScheduledOp alone")
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
    """When the math lane goes on; where it waits until then, a span says so."""
    if until > now:
        spans.append(PlayedSpan(op, "math", now, until, waits=True))
    return max(now, until)


def merged(intervals: Iterable[tuple[float, float]]) -> Intervals:
    """The same points of time in as few intervals as there can be, in order.

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
    """Where two lists of merged intervals overlap.

    >>> both([(0, 3), (4, 6)], [(2, 5)])
    [(2, 3), (4, 5)]
    """
    cuts = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return merged((begin, end) for begin, end in cuts if begin < end)


def length(intervals: Intervals) -> float:
    """The length of merged intervals in all."""
    return sum(end - begin for begin, end in intervals)
