"""The live figure "trace": the schedules of two layers, played on two lanes."""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache, partial
from importlib.resources import files

from ...base.units import show
from ...collectives import NAMES
from ...hardware import chips
from ...referee.hlo import PlayedSchedule, PlayedSpan, ScheduledOp, play, seconds
from ...referee.hlo.played import both, length, merged
from ..labels import text_width
from ..picture import WIDEST
from ..shapes import box, framed, keyed, line, number, written
from ..theme import paint
from .controls import Choice, Drawing, Figure, Slider

SHOWN = 20  # moments from the start to the last end
EDGE, LEFT, RIGHT = 6, 76, WIDEST - 6
QUICK, FSDP, SUMMED, SCATTERED = "FSDP, quick level", "FSDP", "AllReduce", \
    "collective matmul"  # fmt: skip
ALL = "all four"
PROGRAMS = (QUICK, FSDP, SUMMED, SCATTERED)
LEGEND = (
    ("matmul", "math", 0.85),
    ("other math", "math", 0.4),
    ("hidden", "network", 0.35),
    ("exposed", "network", 1.0),
)


@cache
def traces() -> dict[str, PlayedSchedule]:
    """The schedules by name, played on a TPU v5e."""
    text = files(__package__).joinpath("trace.toml").read_text("utf-8")
    found = {}
    for name, row in tomllib.loads(text).items():
        ops = [ScheduledOp(**one) for one in row["ops"]]
        clock = partial(seconds, chip=chips.TPU_V5E)
        found[name] = play((ops[n] for n in row["order"]), clock)
    return found


def draw(moment: int, program: str) -> Drawing:
    """The lanes of one schedule up to a moment, or of all four on one clock."""
    some = traces() if program == ALL else {program: traces()[program]}
    now = moment / SHOWN * max(one.seconds for one in some.values())
    summary = " ".join(_said(name, one, now) for name, one in some.items())
    data = {name: _data(one, now) for name, one in some.items()}
    picture = _picture(some, summary, now)
    return Drawing(picture, summary, _readout(data), {"traces": data}, SHOWN)


# Numbers -----------------------------------------------------------------------------


def _data(one: PlayedSchedule, now: float) -> dict[str, float]:
    """Seconds until `now` and of the whole schedule, by kind."""
    math, network = (one.intervals(lane, now) for lane in ("math", "network"))
    hidden = length(both(math, network))
    return {
        "now": min(now, one.seconds),
        "math": length(math),
        "network": length(network),
        "overlap": hidden,
        "exposed": length(network) - hidden,
        "seconds": one.seconds,
        "all exposed": one.exposed,
        "all network": one.network,
    }


def _at(one: PlayedSchedule, now: float) -> list[PlayedSpan]:
    return [span for span in one.spans if span.begin <= now < span.end]


def _doing(one: PlayedSchedule, now: float) -> tuple[str, str]:
    """A few words on what the math lane and the network do at a moment."""
    spans = _at(one, now)
    math = [span for span in spans if span.lane == "math"]
    moving = [span.op for span in spans if span.lane == "network"]
    if now >= one.seconds:
        doing = "done"
    elif any(not span.waits for span in math):
        (op,) = (span.op for span in math if not span.waits)
        doing = f"{'matmul' if op.matmul else 'other math'} {op.name}"
    else:
        doing = "the math waits"
    if not moving:
        return doing, "the network is idle"
    several = f"{len(moving)} × " if len(moving) > 1 else ""
    sent = show(sum(op.sent for op in moving), "bytes")
    return doing, f"in flight: {several}{NAMES[moving[0].op]}, {sent}"


def _said(name: str, one: PlayedSchedule, now: float) -> str:
    data = _data(one, now)
    far = "At the end" if now >= one.seconds else f"After {show(now, 's')}"
    return (
        f"{name}: {far}, the network has worked for {show(data['network'], 's')}, of "
        f"which {show(data['overlap'], 's')} were hidden behind math and "
        f"{show(data['exposed'], 's')} were exposed. The two layers take "
        f"{show(one.seconds, 's')}."
    )


def _readout(data: Mapping[str, Mapping[str, float]]) -> tuple[tuple[str, ...], ...]:
    rows = {
        "so far": "now",
        "math": "math",
        "network": "network",
        "hidden": "overlap",
        "exposed": "exposed",
        "the two layers": "seconds",
        "exposed in all": "all exposed",
    }
    body = (
        (label, *(show(one[key], "s") for one in data.values()))
        for label, key in rows.items()
    )
    return (("", *data), *body)


# The picture -------------------------------------------------------------------------


def _picture(some: Mapping[str, PlayedSchedule], summary: str, now: float) -> str:
    scale = (RIGHT - LEFT) / max(one.seconds for one in some.values())
    single = len(some) == 1
    title = "Two layers on eight TPU v5e: XLA’s schedule"
    parts, top = [written(EDGE, 16, title, bold=True)], 24.0
    for name, one in some.items():
        high = 38 if single else 20
        parts += _panel(name, one, scale, top, high, now)
        top += 24 + 2 * high + 16
    if single:
        parts += _caption(one, now, top + 14)
        parts += _counted(one, now, top + 50)
        top += 130
    else:
        parts.append(written(LEFT, top + 12, f"at {show(now, 's')}", key="time"))
        top += 22
    parts += _legend(top)
    desc = (
        f"{summary} Math is above and the network below, on one clock. The order is "
        "that of the compiled schedule. The length of an operation is the compiler's "
        "estimate, that of a collective the time of a ring at the full rate of its "
        "links. Nothing here was measured."
    )
    return framed(title, desc, parts, WIDEST, top + 24)


def _panel(
    name: str, one: PlayedSchedule, scale: float, top: float, high: float, now: float
) -> Iterator[str]:
    """A heading, the two lanes, a veil over the future, and the playhead."""
    head = f"{name}: {show(one.exposed, 's')} of {show(one.seconds, 's')} exposed"
    yield written(EDGE, top + 14, head, key=f"{name}'s")
    upper, under = top + 22, top + 24 + high
    for lane, at in (("math", upper), ("network", under)):
        yield written(LEFT - 8, at + high / 2 + 5, lane, lane, "end",
                      key=f"{name} {lane}")  # fmt: skip
    for what, colour, fill, at, spans in _shown(one, upper, under):
        path = "".join(
            f"M{number(LEFT + scale * begin)} {number(at)}"
            f"h{number(max(scale * (end - begin) - 0.6, 0.4))}v{number(high)}"
            f"h-{number(max(scale * (end - begin) - 0.6, 0.4))}z"
            for begin, end in spans
        )
        key = keyed(f"{name} {what}")
        yield f'<path d="{path}"{key} fill="{paint(colour)}" fill-opacity="{fill:g}"/>'
    bottom, x = under + high, LEFT + scale * min(now, one.seconds)
    yield box(x, upper - 2, LEFT + scale * one.seconds, bottom + 2, "paper", fill=0.6,
              edge=0, round=0, key=f"{name} to come")  # fmt: skip
    yield line((x, upper - 4), (x, bottom + 4), width=2, key=f"{name} playhead")


def _shown(one: PlayedSchedule, upper: float, under: float) -> Iterator[tuple]:
    """(name, colour, opacity, place, times) of each kind of box."""
    busy = [span for span in one.spans if span.lane == "math" and not span.waits]
    for what, fill, wanted in (("matmul", 0.85, True), ("other math", 0.4, False)):
        spans = [(s.begin, s.end) for s in busy if s.op.matmul == wanted]
        if spans:
            yield what, "math", fill, upper, spans
    math, network = one.intervals("math"), one.intervals("network")
    hidden = both(math, network)
    alone = both(network, _between(math, one.seconds))
    for what, fill, spans in (("hidden", 0.35, hidden), ("exposed", 1.0, alone)):
        if spans:
            yield what, "network", fill, under, spans


def _between(intervals: list[tuple[float, float]], end: float) -> list:
    """The gaps between intervals, and before and after them."""
    ends = [0.0, *(last for _, last in intervals)]
    begins = [*(first for first, _ in intervals), end]
    return merged(pair for pair in zip(ends, begins, strict=True) if pair[0] < pair[1])


def _caption(one: PlayedSchedule, now: float, y: float) -> Iterator[str]:
    doing, moving = _doing(one, now)
    yield written(EDGE, y, f"at {show(min(now, one.seconds), 's')}: {doing}",
                  key="time")  # fmt: skip
    yield written(EDGE, y + 20, moving, "network", key="moving")


def _counted(one: PlayedSchedule, now: float, y: float) -> Iterator[str]:
    """Two bars: how much of the network's time so far was hidden, and exposed."""
    data = _data(one, now)
    scale = (RIGHT - EDGE) / one.network
    for n, (words, name, fill) in enumerate(
        (("of the network, hidden", "overlap", 0.35),
         ("of the network, exposed", "exposed", 1.0))
    ):  # fmt: skip
        top = y + 38 * n
        said = f"{show(data[name], 's')} {words}"
        yield written(EDGE, top + 12, said, "network", key=f"{name} words")
        yield box(EDGE, top + 17, EDGE + scale * one.network, top + 29, fill=0.04,
                  edge=0.35, round=0)  # fmt: skip
        yield box(EDGE, top + 17, EDGE + scale * data[name], top + 29, "network",
                  fill=fill, edge=0, round=0, key=f"{name} bar")  # fmt: skip


def _legend(top: float) -> Iterator[str]:
    x, y = EDGE, top + 14
    for words, colour, fill in LEGEND:
        yield box(x, y - 11, x + 14, y + 2, colour, fill=fill, edge=0, round=0)
        yield written(x + 20, y, words)
        x += 20 + text_width(words) + 14


FIGURE = Figure(
    "trace",
    "A schedule on two lanes",
    (
        Slider("moment", "Moment", "", 0, SHOWN, SHOWN // 2, step=1, play=True,
               printed=lambda stop: f"{stop} of {SHOWN}"),
        Choice("program", "Program", (*PROGRAMS, ALL), QUICK),
    ),
    draw,
    first="moment",
    carries=("program",),
    presets={
        "all blocking": {"program": QUICK, "moment": SHOWN},
        "gathered early": {"program": FSDP, "moment": 7},
        "sums that block": {"program": SUMMED, "moment": 12},
        "sums in pieces": {"program": SCATTERED, "moment": 7},
    },
)  # fmt: skip
