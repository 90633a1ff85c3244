"""The live figure "pipeline": schedules played, their bubbles, what stages hold."""

from ...training.pipeline_schedules import PipelineSchedule, idle, peak, schedule
from .. import svg
from ..objects.pipeline import timeline
from .controls import Choice, Drawing, Figure, Slider

SCHEDULES = {
    "GPipe": "gpipe",
    "1F1B": "1f1b",
    "interleaved 1F1B": "interleaved",
    "ZB-H1": "zb-h1",
    "ZB-V": "zb-v",
    "DualPipe": "dualpipe",
}
SHOWN = 24  # moments from the first start to the last end


def draw(
    name: str, stages: int, microbatches: int, chunks: int, moment: int
) -> Drawing:
    """A schedule, up to a moment of the step; F, I and W take a unit of time each.

    Sizes for which the schedule does not exist are refused in the summary.
    """
    of = SCHEDULES[name]
    chosen = chunks if of == "interleaved" else None
    try:
        one = schedule(of, stages, microbatches, chosen)
    except ValueError as error:
        said = f"{str(error).replace(of, name, 1)}."
        return Drawing(svg.message(name, said), said, (), {"pipeline": None}, SHOWN)
    now = one.seconds * moment / SHOWN
    found = {
        "schedule": of,
        "stages": stages,
        "microbatches": microbatches,
        "chunks": one.chunks,
        "seconds": one.seconds,
        "busy": one.busy[0],
        "idle": max(one.idle),
        "closed_form": idle(of, stages, microbatches, chosen),
        "bubble": one.bubble,
        "bubble_apart": one.period / one.busy[0] - 1,
        "held": list(one.in_flight),
        "published": peak(of, stages, microbatches, chosen),
        "sends": list(one.sends),
        "moment": now,
    }
    picture = timeline(one, None if moment == SHOWN else now)
    summary = (
        f"{name}, {stages} stages, {microbatches} microbatches: a stage waits "
        f"{found['idle']:g} of {one.seconds:g} units, {one.bubble:.1%} of its work, "
        f"and holds at most {max(one.in_flight):g} microbatches."
    )
    return Drawing(
        picture.panels[0], summary, _rows(one, found), {"pipeline": found}, SHOWN
    )


def _rows(one: PipelineSchedule, found: dict) -> tuple[tuple[str, ...], ...]:
    return (
        ("", "played", "closed form"),
        ("a stage works", f"{found['busy']:g}", f"3 · {one.microbatches}"),
        ("it waits", f"{found['idle']:g}", f"{found['closed_form']:g}"),
        ("bubble: waits over works", f"{one.bubble:.1%}", ""),
        ("if stages start anew apart", f"{found['bubble_apart']:.1%}", ""),
        ("most held", f"{max(one.in_flight):g}", f"{found['published']:g}"),
        ("sends of the busiest stage", f"{max(one.sends)}", ""),
    )


FIGURE = Figure(
    "pipeline",
    "Pipeline schedules",
    (
        Choice("name", "Schedule", tuple(SCHEDULES), "1F1B"),
        Slider("stages", "Stages", "", 2, 8, 4),
        Slider("microbatches", "Microbatches", "", 1, 32, 8),
        Slider("chunks", "Chunks, if interleaved", "", 2, 4, 2, step=1),
        Slider(
            "moment", "Moment", "", 0, SHOWN, SHOWN, step=1, play=True,
            printed=lambda stop: f"{stop} of {SHOWN}",
        ),
    ),
    draw,
    first="name",
    presets={
        "all forward, then all backward": {"name": "GPipe"},
        "1F1B from the start": {"name": "1F1B", "moment": 0},
        "the weights fill the bubble": {"name": "ZB-H1"},
        "from both ends": {"name": "DualPipe", "stages": 8, "microbatches": 16},
    },
)  # fmt: skip
