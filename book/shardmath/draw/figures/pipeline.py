"""The live figure "pipeline": one or two schedules, played on one clock."""

from collections.abc import Callable
from functools import lru_cache
from itertools import product
from math import ceil, isclose

from ...training.pipeline_schedules import idle, peak, progress, schedule
from ...training.pipeline_schedules.named import LOOPED, chunks_of
from ..objects.pipeline_player import Lane, Moment, clock, idle_share, player
from .controls import Choice, Drawing, Figure, Slider

SCHEDULES = {
    "GPipe": "gpipe",
    "1F1B": "1f1b",
    "eager 1F1B": "eager-1f1b",
    "interleaved 1F1B": "interleaved",
    "overlapped 1F1B": "overlapped",
    "breadth-first": "breadth-first",
    "ZB-H1": "zb-h1",
    "ZB-H2": "zb-h2",
    "ZB-V": "zb-v",
    "DualPipe": "dualpipe",
    "DualPipeV": "dualpipev",
}
NONE = "none"
TOGETHER, ALONE = "waits for the others", "starts its next step"
SHOWN = 24  # steps from the first start to the last end, at most
_STAGES = Slider("stages", "Stages", "", 2, 8, 4, step=1)
_MICROBATCHES = Slider("microbatches", "Microbatches", "", 1, 32, 8, step=1)

# Idle time over work if F, I and W take the same time. These formulas need enough
# microbatches; with fewer, `closed_form` leaves them out.
_FILLED = "(p − 1)/M", lambda p, M, v: (p - 1) / M
_CHUNKED = "(p − 1)/(vM)", lambda p, M, v: (p - 1) / (v * M)
_THIRD = "(p − 1)/(3M)", lambda p, M, v: (p - 1) / (3 * M)
_NOTHING = "", lambda p, M, v: 0.0
BUBBLES: dict[tuple[str, bool], tuple[str, Callable[[int, int, int], float]]] = {
    **{(of, both): _FILLED
       for of in ("gpipe", "1f1b", "eager-1f1b") for both in (True, False)},
    **{(of, both): _CHUNKED for of in LOOPED for both in (True, False)},
    **{(of, both): _THIRD for of in ("zb-h1", "dualpipev") for both in (True, False)},
    ("zb-h2", True): _THIRD,
    ("zb-h2", False): _NOTHING,
    ("zb-v", True): ("(p − 1)/(6M)", lambda p, M, v: (p - 1) / (6 * M)),
    ("zb-v", False): _NOTHING,
    **{("dualpipe", both): ("(p − 2)/(3M)", lambda p, M, v: (p - 2) / (3 * M))
       for both in (True, False)},
}  # fmt: skip


def draw(
    moment: int,
    name: str,
    second: str,
    stages: int,
    microbatches: int,
    chunks: int,
    between: str,
) -> Drawing:
    """One or two schedules after some steps. F, I and W each take a unit of time.

    If a schedule does not exist for the chosen sizes, the nearest sizes for which both
    exist are drawn, and the summary says so.
    """
    names = [name] if second in (NONE, name) else [name, second]
    p, M, note = nearest(names, stages, microbatches, chunks)
    together = between == TOGETHER
    lanes = [_lane(each, p, M, chunks, together) for each in names]
    length = clock(lanes, together)
    every = max(1, ceil(length / SHOWN))  # units of time in a step
    last = ceil(length / every)
    now = min(length, every * moment)
    picture = player(lanes, now, together)
    found = [_numbers(lane, now, together) for lane in lanes]
    data = {"used": {"stages": p, "microbatches": M}, "time": now, "schedules": found}
    first, *others = map(_sentence, names, found)
    sizes = f"With p = {p} stages and M = {M} microbatches"
    if any(lane.schedule.name in LOOPED for lane in lanes):
        sizes = f"With p = {p} stages, M = {M} microbatches and v = {chunks} chunks"
    said = [f"{sizes}, {first}", *map(_capitalised, others), *_twice(names, found)]
    unit = ["A forward pass takes one, and a backward pass two."] if now == 0 else []
    summary = " ".join([*note, *said, *unit])
    rows = _rows(names, found)
    idle = _idle(names)
    used = {"stages": p, "microbatches": M} if note else {}
    svg = picture.panels[0]
    return Drawing(svg, summary, rows, {"pipeline": data}, last, idle, used)


def nearest(
    names: list[str], stages: int, microbatches: int, chunks: int
) -> tuple[int, int, list[str]]:
    """The nearest numbers of stages and microbatches that all the schedules allow.

    Args:
        names: names in `SCHEDULES`.
        stages, microbatches, chunks: the values of the controls.

    Returns:
        Both numbers, and a list with a sentence on what was changed, if anything.

    >>> nearest(["interleaved 1F1B"], 4, 7, 2)[:2]
    (4, 8)
    >>> nearest(["DualPipeV"], 4, 6, 2)[2][0][-46:]
    'The picture shows 4 stages and 8 microbatches.'
    """
    refusals = _refusals(names, stages, microbatches, chunks)
    if not refusals:
        return stages, microbatches, []
    near = sorted(
        product(_STAGES.stops, _MICROBATCHES.stops),
        key=lambda size: (abs(size[0] - stages), abs(size[1] - microbatches), -size[1]),
    )
    p, M = next(size for size in near if not _refusals(names, *size, chunks))
    shown = f"The picture shows {p} stages and {M} microbatches."
    return p, M, [f"{refusals[0]}. {shown}"]


def _refusals(names: list[str], p: int, M: int, chunks: int) -> list[str]:
    found = []
    for name in names:
        of = SCHEDULES[name]
        try:
            chunks_of(of, p, M, chunks if of in LOOPED else None)
        except ValueError as error:
            found.append(_capitalised(str(error).replace(of, name, 1)))
    return found


def closed_form(name: str, p: int, M: int, chunks: int, together: bool) -> str:
    """The formula for idle time over work, in letters, or "" if it does not hold."""
    of = SCHEDULES[name]
    text, value = BUBBLES[of, together]
    said = idle(of, p, M, chunks if of in LOOPED else None, together=together)
    return text if isclose(said / (3 * M), value(p, M, chunks), abs_tol=1e-12) else ""


@lru_cache(maxsize=8)
def _lane(name: str, p: int, M: int, chunks: int, together: bool) -> Lane:
    of = SCHEDULES[name]
    one = schedule(of, p, M, chunks if of in LOOPED else None)
    return Lane(name, one, closed_form(name, p, M, chunks, together))


def _numbers(lane: Lane, time: float, together: bool) -> dict[str, object]:
    one = lane.schedule
    end = clock([lane], together)
    now = Moment(progress(one, time, together), time, end)
    chosen = one.chunks if one.name in LOOPED else None
    sizes = one.name, one.stages, one.microbatches, chosen
    return {
        "schedule": one.name,
        "chunks": one.chunks,
        "time": min(time, end),
        "end": end,
        "worked": sum(stage.worked for stage in now.stages) / one.stages,
        "busy": one.busy[0],
        "waited": now.waited,
        "waits": max(one.idle) if together else one.period - one.busy[0],
        "closed_form": idle(*sizes, together=together),
        "formula": lane.result,
        "share": idle_share(one, now),
        "bubble": one.bubble if together else one.period / one.busy[0] - 1,
        "held": [stage.held for stage in now.stages],
        "peaks": [stage.peak for stage in now.stages],
        "peak": max(one.in_flight),
        "published": peak(*sizes),
        "sends": max(one.sends),
        "weights": one.chunks * one.share,
    }


def _sentence(name: str, found: dict) -> str:
    if found["time"] == 0:
        return f"{name} begins a step of {found['end']:.3g} units of time."
    if found["time"] < found["end"]:
        return (
            f"{name} has waited for {found['share']:.1%} of the step's work after "
            f"{found['time']:.3g} of {found['end']:.3g} units of time, and no stage "
            f"has held more than {max(found['peaks']):.3g} microbatches."
        )
    formula = f", which is {found['formula']}" if found["formula"] else ""
    return (
        f"{name} works {found['busy']:g} units on a stage and waits "
        f"{found['waits']:.3g}, so the bubble is {found['bubble']:.1%}{formula}. A "
        f"stage has held at most {found['peak']:.3g} microbatches."
    )


def _twice(names: list[str], found: list[dict]) -> list[str]:
    """A sentence on each schedule whose stages hold the weights of two stages."""
    return [
        f"{name} holds the weights twice."
        for name, one in zip(names, found, strict=True)
        if one["weights"] == 2
    ]


def _capitalised(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _idle(names: list[str]) -> dict[str, str]:
    """Why the control for chunks has no effect, if no schedule uses chunks."""
    if any(SCHEDULES[name] in LOOPED for name in names):
        return {}
    return {"chunks": f"Chunks are not used by {' or '.join(names)}."}


def _rows(names: list[str], found: list[dict]) -> tuple[tuple[str, ...], ...]:
    def row(label: str, form: str) -> tuple[str, ...]:
        return label, *(form.format(**one, most=max(one["peaks"])) for one in found)

    return (
        ("so far, of all", *names),
        row("units of time", "{time:.3g} of {end:.3g}"),
        row("a stage works", "{worked:.3g} of {busy:.3g}"),
        row("a stage waits", "{waited:.3g} of {waits:.3g}"),
        row("it waits, by the closed form", "{closed_form:.3g}"),
        row("waiting over the work of the step", "{share:.1%} of {bubble:.1%}"),
        row("most microbatches held", "{most:.3g} of {peak:.3g}"),
        row("held, by the closed form", "{published:.3g}"),
        row("sends of the busiest stage", "{sends}"),
        row("weights held, times a share", "{weights:g}"),
    )


FIGURE = Figure(
    "pipeline",
    "Pipeline schedules",
    (
        Slider(
            "moment", "Step", "", 0, SHOWN, 0, step=1, play=True,
            printed=lambda stop: f"step {stop}",
        ),
        Choice("name", "Schedule", tuple(SCHEDULES), "1F1B"),
        Choice("second", "Compared with", (NONE, *SCHEDULES), NONE),
        _STAGES,
        _MICROBATCHES,
        Slider("chunks", "Chunks", "", 2, 4, 2, step=1),
        Choice("between", "A finished stage", (TOGETHER, ALONE), TOGETHER),
    ),
    draw,
    first="moment",
    row=("moment", "name", "second"),
    presets={
        "the same bubble, other memory": {
            "name": "GPipe", "second": "1F1B", "stages": 4, "microbatches": 8,
            "between": TOGETHER, "moment": 0,
        },
        "chunks shrink the bubble": {
            "name": "1F1B", "second": "interleaved 1F1B", "stages": 4,
            "microbatches": 8, "chunks": 2, "between": TOGETHER, "moment": 0,
        },
        "memory buys the bubble": {
            "name": "ZB-H1", "second": "ZB-H2", "stages": 4, "microbatches": 8,
            "between": ALONE, "moment": 0,
        },
        "the same chips, half the weights": {
            "name": "DualPipe", "second": "DualPipeV", "stages": 4, "microbatches": 8,
            "between": TOGETHER, "moment": 0,
        },
    },
)  # fmt: skip
