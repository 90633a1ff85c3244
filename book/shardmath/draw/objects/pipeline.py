"""A pipeline schedule as a picture: the ops of every stage, and what it holds."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from ...base.units import number, positive
from ...training.pipeline_schedules.ops import Span
from ...training.pipeline_schedules.progress import progress
from ...training.pipeline_schedules.schedule import PipelineSchedule, require_schedule
from .. import shapes
from ..labels import FONT, text_width
from ..picture import WIDEST, Picture, picture
from ..theme import paint

LEFT, RIGHT, TOP = 26.0, 372.0, 30.0  # where the time begins and ends, and the rows
TALL, FLAT = 26, 17  # from one stage to the next, of few stages and of many
INKS = {"F": "hue3", "B": "hue4", "I": "hue5", "W": "hue2"}
WORDS = {"F": "forward", "B": "backward", "I": "inputs I", "W": "weights W"}


def timeline(
    schedule: PipelineSchedule, until: float | None = None, seconds: float | None = None
) -> Picture:
    """Stages from top to bottom, time from left to right. A number is a microbatch.

    Darker ops belong to later chunks, or to the other direction. Ops that run at the
    same time are drawn one above the other.

    Args:
        schedule: the schedule to draw.
        until: if given, only ops that have begun by then are drawn, and stages show
            what they hold then instead of the most that they ever hold.
        seconds: the time that the width shows, to compare schedules. By default the
            length of this schedule.

    Raises:
        ValueError: `schedule` is not a `PipelineSchedule`, `until` is not a number, or
            `seconds` is not finite and above 0.

    >>> from shardmath.training.pipeline_schedules.named import schedule
    >>> timeline(schedule("gpipe", 2, 2)).desc[:58]
    'Idle over busy 50.0%. Stage 0: F0 F1 B1 B0, holds 2. Stage'
    """
    require_schedule(schedule)
    if until is not None and (until := number("until", until)) != until:
        raise ValueError("until = nan: must be a time in the unit of the schedule")
    if seconds is not None:
        (seconds,) = positive(seconds=seconds)
    title = f"{schedule.name}, {schedule.sizes}"
    pitch = TALL if schedule.stages <= 8 else FLAT
    wide = (RIGHT - LEFT) / max(seconds or 0, schedule.seconds)
    held = schedule.in_flight
    if until is not None:
        held = [stage.held for stage in progress(schedule, until)]
    parts = [
        shapes.written(LEFT, 18, f"idle over busy {schedule.bubble:.1%}"),
        shapes.written(WIDEST - 4, 18, "held", anchor="end"),
    ]
    cells: dict[tuple[str, int], list[str]] = defaultdict(list)
    numbers = []
    for stage, spans in enumerate(schedule.spans):
        top = TOP + pitch * stage
        middle = top + (pitch - 3) / 2 + 0.36 * FONT
        said, key = f"{held[stage]:g}", f"held {stage}"
        parts.append(shapes.written(4, middle, str(stage), key=f"stage {stage}"))
        parts.append(shapes.written(WIDEST - 4, middle, said, anchor="end", key=key))
        for span, low, high in halves(spans, until):
            left, right = LEFT + wide * span.start, LEFT + wide * span.end
            upper, lower = top + (pitch - 3) * low, top + (pitch - 3) * high
            cells[span.op.kind, span.op.chunk].append(cell(left, upper, right, lower))
            said = str(span.op.microbatch)
            if low == 0 and high == 1 and text_width(said) + 2 < right - left:
                numbers.append(shapes.label(left, top, right, top + pitch - 3, said))
    for (kind, chunk), paths in sorted(cells.items()):
        parts.append(painted("".join(paths), INKS[kind], 0.2 + 0.3 * min(chunk, 2)))
    bottom = TOP + pitch * schedule.stages
    parts += numbers
    parts += legend(WORDS, {kind for kind, _ in cells}, bottom + 16)
    desc = " ".join([f"Idle over busy {schedule.bubble:.1%}.", *orders_said(schedule)])
    svg = shapes.framed(title, desc, parts, WIDEST, bottom + 24)
    return picture(title, desc, svg)


def halves(
    spans: tuple[Span, ...], until: float | None
) -> Iterator[tuple[Span, float, float]]:
    """Each op that has begun, and the part of the row's height that it takes."""
    for n, span in enumerate(spans):
        if until is not None and span.start >= until:
            return
        if span.op.beside:
            yield span, 0.5, 1
        elif n + 1 < len(spans) and spans[n + 1].op.beside:
            yield span, 0, 0.5
        else:
            yield span, 0, 1


def cell(left: float, top: float, right: float, bottom: float) -> str:
    """A box as a part of a path. Many boxes can then be one element."""
    x, y = shapes.number(left), shapes.number(top)
    wide, high = shapes.number(right - left), shapes.number(bottom - top)
    return f"M{x} {y}h{wide}v{high}h-{wide}z"


def painted(path: str, colour: str, fill: float) -> str:
    """Boxes from `cell`, drawn in a colour and filled with an opacity."""
    ink = paint(colour)
    return (
        f'<path d="{path}" fill="{ink}" fill-opacity="{fill:g}" '
        f'stroke="{ink}" stroke-width="1"/>'
    )


def legend(
    words: Mapping[str, str], kinds: Collection[str], y: float, gap: float = 16
) -> Iterator[str]:
    """The meaning of the colours, for the kinds of ops that occur."""
    x = LEFT
    for kind in [kind for kind in words if kind in kinds]:
        yield painted(cell(x, y - 11, x + 12, y + 1), INKS[kind], 0.2)
        yield shapes.written(x + 17, y, words[kind])
        x += 17 + text_width(words[kind]) + gap


def orders_said(schedule: PipelineSchedule) -> Iterator[str]:
    """The ops of each stage in words, or the first and last ones if there are many."""
    for stage, order in enumerate(schedule.orders):
        ops = [str(op) for op in order]
        if len(ops) > 12:
            ops = [*ops[:8], "…", *ops[-3:]]
        yield f"Stage {stage}: {' '.join(ops)}, holds {schedule.in_flight[stage]:g}."
