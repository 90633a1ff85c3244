"""Pipeline schedules played on one clock, with a playhead, idle time and memory.

The whole step is drawn at once, and a veil covers the part that is still to come. So
the pictures of two moments differ only in the veil, the playhead and the counters.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...base.units import flags, number, pluralize
from ...training.pipeline_schedules.progress import StageProgress, progress, windows
from ...training.pipeline_schedules.schedule import PipelineSchedule
from .. import shapes
from ..labels import text_width
from ..picture import WIDEST, Picture, picture
from ..theme import paint
from .pipeline import INKS, LEFT, cell, halves, legend, painted

RIGHT = 318.0  # where the time ends; the memory of each stage is to the right of it
BAR, HELD, PEAK = (324.0, 346.0), 378.0, 414.0  # a bar, and where two numbers end
HEAD, FOOT, GAP = 24.0, 22.0, 10.0  # over the stages of a schedule, under them, between
TALL, FLAT, ROWS = 26.0, 15.0, 240.0  # a stage's row, at most and at least; all rows
IDLE = "hue8"
WORDS = {"F": "forward", "B": "backward", "I": "inputs", "W": "weights"}


@dataclass(frozen=True)
class Lane:
    """One schedule of the player.

    Args:
        name: its usual name.
        schedule: the schedule to play.
        result: the closed form of its idle time over its work, shown at the end, or "".
    """

    name: str
    schedule: PipelineSchedule
    result: str = ""


def clock(lanes: Sequence[Lane], together: bool = True) -> float:
    """The length of the common time axis, until the last step has ended."""
    return max(end for lane in lanes for _, end in windows(lane.schedule, together))


def player(lanes: Sequence[Lane], time: float, together: bool = True) -> Picture:
    """Schedules below each other at a moment, on one time scale.

    Stages go from top to bottom and time from left to right. A number is a microbatch,
    later chunks and the other direction are darker, and red is idle. The part after
    `time` is faint. On the right, a bar and a number say how many microbatches each
    stage holds now, and a mark and a second number say the most that it has held.

    Args:
        lanes: one or more.
        time: in the unit of the schedules, from 0.
        together: whether stages wait for each other between steps; see `windows`.

    Raises:
        ValueError: there are no lanes, or `time` is not a number.

    >>> from shardmath.training.pipeline_schedules.named import schedule
    >>> one = Lane("GPipe", schedule("gpipe", 2, 2), "(p − 1)/M")
    >>> player([one], 3).desc[:69]
    'GPipe after 3 of 9 units: idle 1 unit per stage, 16.7% of the work. S'
    """
    if not lanes:
        raise ValueError("lanes = []: must be at least one schedule")
    time, (together,) = number("time", time), flags(together=together)
    length = clock(lanes, together)
    rows = sum(lane.schedule.stages for lane in lanes)
    pitch = max(FLAT, min(TALL, ROWS / rows))
    most = max(held for lane in lanes for held in lane.schedule.in_flight)
    wide = (RIGHT - LEFT) / length
    top, parts, texts, said = 0.0, [], [], []
    for n, lane in enumerate(lanes):
        where = _Place(n, top + HEAD, pitch, wide)
        spent = windows(lane.schedule, together)
        at = progress(lane.schedule, time, together)
        now = Moment(at, time, clock([lane], together))
        bottom = where.top + pitch * lane.schedule.stages
        parts += _ops(lane.schedule, where, spent)
        parts += _veil(where, bottom, time)
        texts += _memory(now, where, most)
        texts += _head(lane, where, now)
        texts.append(shapes.written(LEFT, bottom + 14, idle_line(lane, now)))
        said.append(_said(lane, now))
        top = bottom + FOOT + GAP
    head = LEFT + wide * min(max(time, 0), length)
    parts.append(shapes.line((head, HEAD - 4), (head, bottom + 2), key="playhead"))
    texts += _legend(lanes, top + 6)
    names = " and ".join(lane.name for lane in lanes)
    first = lanes[0].schedule
    title = f"{names}, {first.sizes}"
    desc = " ".join(said)
    svg = shapes.framed(title, desc, parts + texts, WIDEST, top + 14)
    return picture(title, desc, svg)


@dataclass(frozen=True)
class Moment:
    """A schedule at a moment of its step.

    Args:
        stages: the progress of each stage.
        time: the time since the first stage began.
        end: when the last stage's step ends.
    """

    stages: tuple[StageProgress, ...]
    time: float
    end: float

    @property
    def waited(self) -> float:
        """The average time that a stage has waited until now."""
        return sum(stage.waited for stage in self.stages) / len(self.stages)


def idle_share(schedule: PipelineSchedule, now: Moment) -> float:
    """Idle time of all stages until now, divided by the work of the whole step.

    At the end, this is the bubble.
    """
    return sum(stage.waited for stage in now.stages) / sum(schedule.busy)


def idle_line(lane: Lane, now: Moment) -> str:
    """The line under a schedule, with its closed form when its step has ended."""
    line = f"idle {pluralize(f'{now.waited:.3g}', 'units')} per stage, "
    line += f"{idle_share(lane.schedule, now):.1%} of the work"
    return f"{line} = {lane.result}" if now.time >= now.end and lane.result else line


@dataclass(frozen=True)
class _Place:
    """A lane's number, the top of its rows, their pitch, and the scale of time."""

    lane: int
    top: float
    pitch: float
    wide: float

    def x(self, time: float) -> float:
        return LEFT + self.wide * time

    def row(self, stage: int) -> tuple[float, float]:
        top = self.top + self.pitch * stage
        return top, top + self.pitch - 2


def _head(lane: Lane, where: _Place, now: Moment) -> Iterator[str]:
    y = where.top - 8
    yield shapes.written(LEFT, y, lane.name, bold=True)
    units = f"{min(max(now.time, 0), now.end):.3g} of {now.end:.3g} units"
    yield shapes.written(RIGHT, y, units, anchor="end")
    yield shapes.written(HELD, y, "held", anchor="end")
    yield shapes.written(PEAK, y, "peak", anchor="end")


def _ops(schedule: PipelineSchedule, where: _Place, spent) -> Iterator[str]:
    """All ops of a schedule, the gaps between them, and where a stage's step ends."""
    cells: dict[tuple[str, int], list[str]] = defaultdict(list)
    gaps, ends, numbers = [], [], []
    numbered = _numbered(schedule, where.wide)
    for stage, spans in enumerate(schedule.spans):
        top, bottom = where.row(stage)
        middle = (top + bottom) / 2
        base = shapes.number(middle + 5)
        free, end = spent[stage]
        for _, start, stop in (*spans, (None, end, end)):
            if start > free:
                gaps.append(cell(where.x(free), top, where.x(start), bottom))
            free = stop
        x = shapes.number(where.x(end))
        ends.append(f"M{x} {shapes.number(top - 1)}V{shapes.number(bottom + 1)}")
        bands = {  # the upper and the lower half, and both
            band: (shapes.number(upper), shapes.number(lower - upper))
            for band, upper, lower in (
                ((0, 1), top, bottom),
                ((0, 0.5), top, middle),
                ((0.5, 1), middle, bottom),
            )
        }
        for (op, start, stop), *band in halves(spans, None):
            left, right = where.x(start), where.x(stop)
            x, wide = shapes.number(left), shapes.number(right - left)
            y, high = bands[tuple(band)]
            cells[op.kind, op.chunk].append(f"M{x} {y}h{wide}v{high}h-{wide}z")
            if op.kind in numbered and band == [0, 1]:
                x = shapes.number((left + right) / 2)
                numbers.append(f'<text x="{x}" y="{base}">{op.microbatch}</text>')
        yield shapes.written(4, middle + 5, str(stage))
    yield f'<path d="{"".join(gaps)}" fill="{paint(IDLE)}" fill-opacity=".5"/>'
    for (kind, chunk), boxes in sorted(cells.items()):
        yield painted("".join(boxes), INKS[kind], 0.2 + 0.3 * min(chunk, 2))
    yield f'<g text-anchor="middle" fill="{paint("ink")}">{"".join(numbers)}</g>'
    yield f'<path d="{"".join(ends)}" stroke="{paint("ink")}" stroke-width="2"/>'


def _numbered(schedule: PipelineSchedule, wide: float) -> set[str]:
    """Kinds of ops that are all wide enough for the longest number."""
    widest = text_width(str(schedule.microbatches - 1))
    lengths = defaultdict(list)
    for span in schedule.spans[0]:
        lengths[span.op.kind].append(span.end - span.start)
    return {kind for kind, some in lengths.items() if wide * min(some) > widest}


def _veil(where: _Place, bottom: float, time: float) -> Iterator[str]:
    """A cover of paper over the part that is still to come."""
    left = min(where.x(max(time, 0)), RIGHT + 2)
    yield shapes.box(
        left, where.top - 2, RIGHT + 2, bottom, "paper",
        fill=0.8, edge=0, round=0, key=f"veil {where.lane}",
    )  # fmt: skip


def _memory(now: Moment, where: _Place, most: float) -> Iterator[str]:
    """How much each stage holds, as a bar, and the most that it has held, as a mark."""
    left, right = BAR
    scale = (right - left) / most
    for stage, at in enumerate(now.stages):
        top, bottom = where.row(stage)
        key = f"{where.lane} {stage}"
        held, peak = left + scale * at.held, left + scale * at.peak
        yield shapes.box(left, top, held, bottom, "HBM", fill=0.4, edge=0, round=0,
                         key=f"held {key}")  # fmt: skip
        yield shapes.line((peak, top), (peak, bottom), colour="HBM", key=f"peak {key}")
        y = top + (bottom - top) / 2 + 5
        yield shapes.written(HELD, y, f"{at.held:.3g}", anchor="end")
        yield shapes.written(PEAK, y, f"{at.peak:.3g}", anchor="end")


def _legend(lanes: Sequence[Lane], y: float) -> Iterator[str]:
    kinds = {
        op.kind for lane in lanes for order in lane.schedule.orders for op in order
    }
    yield from legend(WORDS, kinds, y, gap=8)
    x = LEFT + sum(25 + text_width(WORDS[kind]) for kind in WORDS if kind in kinds)
    box = cell(x, y - 11, x + 12, y + 1)
    yield f'<path d="{box}" fill="{paint(IDLE)}" fill-opacity=".5"/>'
    yield shapes.written(x + 17, y, "idle")


def _said(lane: Lane, now: Moment) -> str:
    stages = " ".join(
        f"Stage {n} has waited {at.waited:.3g}, holds {at.held:.3g}, "
        f"at most {at.peak:.3g}."
        for n, at in enumerate(now.stages)
    )
    units = f"{min(now.time, now.end):.3g} of {now.end:.3g} units"
    return f"{lane.name} after {units}: {idle_line(lane, now)}. {stages}"
