"""The live figure "server": steps of a server under load, its queue and its pages."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...base.units import pluralize, show
from ...inference import held
from ...serving import Demand, Deployment, Engine, Lognormal, ServingResult, simulate
from .. import svg
from ..objects.servers import JOBS, area, averaged, deployment, steps_between
from ..picture import WIDEST
from ..shapes import box, framed, keyed, line, number, written
from ..theme import paint
from .controls import Choice, Drawing, Figure, Slider

CHUNKS, FIRST = "in chunks, beside decode", "first, while decode waits"
REQUESTS, SPREAD, LONGEST = 120, 0.5, 4
MOMENTS, SHOWN = 24, 36  # stops of the slider; steps shown at once, approximately
COLUMNS = 180
LEFT, RIGHT, HIGH = 44, 410, 352
PROMPTS, DECODE = (62, 106), (112, 156)  # top and bottom of the lanes of steps
COUNTS, PAGES = (206, 266), (292, 326)  # and of the curves over the whole time
MOMENT = Slider(
    "moment", "Look at", "", 0, MOMENTS - 1, 12, step=1,
    printed=lambda stop: f"{(stop + 0.5) / MOMENTS:.0%} of the time",
)  # fmt: skip


@dataclass(frozen=True)
class PlayedLoad:
    """A played server, and the time that is shown.

    Args:
        result: the result of the simulation.
        engine: the settings of the server's engine.
        end: when the last request arrives and the picture ends, in seconds.
        span: the seconds that are shown step by step.
    """

    result: ServingResult
    engine: Engine
    end: float
    span: float


def played(
    on: Deployment, rate: float, input: int, output: int, policy: str, memory: int
) -> PlayedLoad:
    """A server, played from its first request until the last one has arrived.

    Args:
        on: the server.
        rate: requests per second.
        input, output: mean tokens of prompts and answers.
        policy: `CHUNKS` or `FIRST`.
        memory: percent of the server's pages that can be used.

    Raises:
        ValueError: the longest request needs more pages than can be used.
    """
    lengths = [Lognormal(n, SPREAD, LONGEST * n) for n in (input, output)]
    demand = Demand.poisson(rate, REQUESTS, *lengths, seed=1)
    full = on.engine(input, output)
    pages = max(1, full.pages * memory // 100)
    engine = replace(full, pages=pages, chunked=policy == CHUNKS)
    result = simulate(on.seconds, engine, demand)
    end = demand.requests[-1].arrival
    (steps,) = result.stretches
    inside = [one for one in steps if one.start < end]
    step = sum(o.end - o.start for o in inside) / sum(o.steps for o in inside)
    return PlayedLoad(result, engine, end, min(SHOWN * step, end))


def draw(
    moment: int, rate: int, input: int, output: int, job: str, policy: str, memory: int
) -> Drawing:
    """Some single steps, and sequences, queue and pages over the whole time."""
    on = deployment(job)
    title = f"{on.server.model.name} on {on.machine.name}"
    try:
        load = played(on, rate, input, output, policy, memory)
    except ValueError as error:
        said = f"{error}."
        return Drawing(svg.message(title, said), said, (), {"ttft": None})
    result, engine = load.result, load.engine
    queue = result.longest_queue
    waits = "no request waits for a slot or pages"
    if queue:
        waiting = pluralize(f"{queue:,}", "requests")
        waits = f"the queue for slots and pages has at most {waiting}"
    summary = (
        f"At {pluralize(str(rate), 'requests/s')} the median TTFT is "
        f"{show(result.ttft(50), 's')}, and 9 of 10 requests have at most "
        f"{show(result.ttft(90), 's')}. The median TPOT is "
        f"{show(result.tpot(50), 's')}. "
        f"{result.decoding:.3g} sequences decode in the mean, and {waits}. Sequences "
        f"hold at most {result.most_pages / engine.pages:.0%} of the pages"
    )
    if result.preemptions:
        times = pluralize(f"{result.preemptions:,}", "times")
        summary += f", and {times} one of them is preempted"
    summary += "."
    centre = (moment + 0.5) / MOMENTS * load.end
    start = min(max(0.0, centre - load.span / 2), load.end - load.span)
    data = {
        "ttft": {n: result.ttft(n) for n in (50, 90, 99)},
        "tpot": {n: result.tpot(n) for n in (50, 90, 99)},
        "decoding": result.decoding,
        "queue": queue,
        "pages": [result.most_pages, engine.pages],
        "preemptions": result.preemptions,
        "throughput": result.throughput,
        "shown": [start, start + load.span],
    }
    parts = (
        written(6, 16, title, bold=True),
        *_steps(load, start),
        *_curves(load, start),
    )
    drawn = framed(title, summary, parts, WIDEST, HIGH)
    return Drawing(drawn, summary, _readout(on, load, input, output), data)


def _readout(
    on: Deployment, load: PlayedLoad, input: int, output: int
) -> tuple[tuple[str, ...], ...]:
    result = load.result
    seqs = max(1.0, result.decoding)
    step = on.server.decode(seqs, seqs * held(input, output))
    return (
        ("", "median", "9 of 10 within", "99 of 100 within"),
        ("TTFT", *(show(result.ttft(n), "s") for n in (50, 90, 99))),
        ("TPOT", *(show(result.tpot(n), "s") for n in (50, 90, 99))),
        ("a step of decode, bound", show(step.bound, "s"), "", ""),
        ("a step of decode, predicted", show(step.seconds, "s"), "", ""),
        ("tokens of answers per second", f"{result.throughput:,.0f}", "", ""),
        ("sequences in decode, mean", f"{result.decoding:.3g}", "", ""),
        ("sequences preempted", f"{result.preemptions:,}", "", ""),
        ("tokens computed again", f"{result.recomputed:,}", "", ""),
    )


def _steps(load: PlayedLoad, start: float) -> Iterator[str]:
    """Each step as two boxes: tokens of prompts above, sequences in decode below."""
    (steps,) = load.result.stretches
    shown = list(steps_between(steps, start, start + load.span))
    most = max((one.decode for _, _, one in shown), default=0) or 1
    budget = max([load.engine.budget, *(one.prefill for _, _, one in shown)])
    said = f"{show(load.span, 's')}, step by step"
    yield written(6, 38, said)
    yield written(RIGHT, 38, "prompts", "math", "end")
    yield written(RIGHT - 66, 38, "decode", "HBM", "end")
    for (top, bottom), name, colour, whole in (
        (PROMPTS, "prefill", "math", budget),
        (DECODE, "decode", "HBM", most),
    ):
        path = []
        for low, high, one in shown:
            value = getattr(one, name)
            if value:
                x = LEFT + (RIGHT - LEFT) * (low - start) / load.span
                wide = (RIGHT - LEFT) * (high - low) / load.span
                tall = max(1.5, (bottom - top) * value / whole)
                shown_wide = max(0.4, wide - min(1.0, wide / 4))
                path.append(
                    f"M{number(x)} {number(bottom)}v{number(-tall)}"
                    f"h{number(shown_wide)}v{number(tall)}z"
                )
        yield line((LEFT, bottom), (RIGHT, bottom), width=1, opacity=0.4)
        yield (
            f'<path d="{"".join(path) or "M0 0"}" fill="{paint(colour)}" '
            f'fill-opacity="0.85"{keyed(f"steps of {name}")}/>'
        )
        text = f"{whole:,}" if whole < 10_000 else f"{whole / 1000:.0f}k"
        yield written(LEFT - 6, top + 10, text, anchor="end",
                      key=f"most {name}")  # fmt: skip
        yield written(LEFT - 6, bottom, "0", anchor="end")


def _curves(load: PlayedLoad, start: float) -> Iterator[str]:
    """Sequences, queue and pages over the whole time, and the part that is shown."""
    (steps,) = load.result.stretches
    decode = averaged(steps, "decode", load.end, COLUMNS)
    queue = averaged(steps, "queue", load.end, COLUMNS)
    pages = averaged(steps, "pages", load.end, COLUMNS)
    top, bottom = COUNTS
    most = max(1.0, *decode, *queue)
    yield written(6, top - 26, f"{show(load.end, 's')} of requests")
    yield written(LEFT, top - 8, "in decode", "HBM")
    yield written(LEFT + 80, top - 8, "in the queue", "hue8")
    yield area(decode, most, (LEFT, top, RIGHT, bottom), "HBM", "decode over time")
    yield _edge(queue, most, (LEFT, top, RIGHT, bottom), "hue8", "queue over time")
    yield written(LEFT - 6, top + 10, f"{most:.0f}", anchor="end", key="most at once")
    yield written(LEFT - 6, bottom, "0", anchor="end")
    upper, lower = PAGES
    yield written(LEFT, upper - 6, "pages held", "hue3")
    yield area(pages, load.engine.pages, (LEFT, upper, RIGHT, lower), "hue3",
               "pages over time")  # fmt: skip
    yield line((LEFT, upper), (RIGHT, upper), width=1, opacity=0.4)
    yield line((LEFT, lower), (RIGHT, lower), width=1, opacity=0.4)
    yield written(LEFT - 6, upper + 10, "all", anchor="end")
    yield written(LEFT - 6, lower, "0", anchor="end")
    ends = [LEFT + (RIGHT - LEFT) * at / load.end for at in (start, start + load.span)]
    low, high = ends[0] - 1, max(ends[1], ends[0] + 2) + 1
    yield box(low, top - 4, min(high, RIGHT + 2), lower + 4, fill=0.12, edge=0.9,
              key="moment")  # fmt: skip
    for share, anchor in ((0, "start"), (0.5, "middle"), (1, "end")):
        at = LEFT + (RIGHT - LEFT) * share
        yield written(at, lower + 20, show(share * load.end, "s"), anchor=anchor)
    places = " ".join(
        number(LEFT + (RIGHT - LEFT) * (stop + 0.5) / MOMENTS) for stop in MOMENT.stops
    )
    yield (
        f'<rect data-drag="{MOMENT.name}" data-drag-at="{places}" x="{LEFT}" '
        f'y="{top}" width="{RIGHT - LEFT}" height="{lower - top}" fill="transparent"/>'
    )


def _edge(values, most: float, place, colour: str, key: str) -> str:
    left, top, right, bottom = place
    wide = (right - left) / len(values)
    points = []
    for column, value in enumerate(values):
        y = bottom - (bottom - top) * min(value / most, 1.0)
        points += [(left + column * wide, y), (left + (column + 1) * wide, y)]
    return line(*points, colour=colour, width=2, key=key)


FIGURE = Figure(
    "server",
    "A server under load, step by step",
    (
        MOMENT,
        Slider("rate", "Rate", "requests/s", 1, 64, 8, parts=4),
        Slider("memory", "Pages that it has", "", 5, 100, 100, step=5,
               printed=lambda stop: f"{stop} %"),
        Choice("policy", "Prompts are read", (CHUNKS, FIRST), CHUNKS),
        Choice("job", "Server", tuple(JOBS), "8B on an H100"),
        Slider("input", "Prompt, mean", "tokens", 128, 8192, 1024),
        Slider("output", "Answer, mean", "tokens", 32, 1024, 256),
    ),
    draw,
    first="rate",
    presets={
        "a quiet server": {"rate": 2, "memory": 100, "policy": CHUNKS},
        "a busy one": {"rate": 16, "memory": 100, "policy": CHUNKS},
        "prompts first": {"rate": 16, "memory": 100, "policy": FIRST},
        "too few pages": {"rate": 16, "memory": 15, "policy": CHUNKS},
    },
    row=("moment", "rate", "memory", "policy"),
)  # fmt: skip
