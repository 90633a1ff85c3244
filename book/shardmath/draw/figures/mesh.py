"""The live figure "mesh": put Llama 3.1 405B on 16,384 H100s."""

from collections.abc import Iterator
from math import log2, prod

from ...base.units import show
from ..labels import text_width
from ..objects.meshes import (
    CHIPS,
    CONTEXT,
    MACHINE,
    META,
    MODEL,
    PIPELINE,
    TENSOR,
    fastest,
    mesh_of,
)
from ..objects.race import Runner
from ..picture import WIDEST
from ..shapes import box, framed, line, number, written
from .controls import Drawing, Figure, Slider
from .planner import HUES, TIMES

AXES = {"tensor": "hue1", "context": "hue3", "pipeline": "hue5", "data": "hue7"}
EDGE, ROW, BAR = 6, 40, 16
SCALE = 20.0  # seconds at the right end; a longer bar ends there, with its number
DOUBLING = (WIDEST - 2 * EDGE) / log2(CHIPS)
YOURS = "yours"


def draw(tensor: int, context: int, pipeline: int) -> Drawing:
    """A mesh, its memory and predicted time, next to Meta's and the fastest mesh."""
    sizes = tensor, context, pipeline
    data = CHIPS // prod(sizes)
    lanes = {YOURS: sizes} | _ghosts()
    one = mesh_of(*sizes)
    said = dict(zip(AXES, (*sizes, data), strict=True))
    product = " × ".join(f"{axis} {n:,}" for axis, n in said.items())
    summary = f"{product} = {CHIPS:,} chips. {_result(one, sizes)}"
    found = {
        "mesh": said,
        "fits": one.runs,
        "held": one.entry.held,
        "room": one.entry.room,
        "why": one.entry.why,
    }
    if one.runs:
        likely = one.prediction
        found |= {
            "seconds": likely.seconds,
            "band": [likely.low, likely.high],
            "bound": likely.bound,
            "parts": dict(likely.parts),
        }
    parts = _drawn(said, lanes)
    high = 84 + 2 * (30 + ROW * len(lanes)) + 50
    picture = framed(f"{MODEL} on {MACHINE}", summary, parts, WIDEST, high)
    return Drawing(picture, summary, _readout(lanes), found)


def _ghosts() -> dict[str, tuple[int, int, int]]:
    """Name → the sizes of the meshes that are always in the picture."""
    if fastest() == META:
        return {f"Meta's, and the fastest: {_sizes(META)}": META}
    return {
        f"Meta's: {_sizes(META)}": META,
        f"the fastest: {_sizes(fastest())}": fastest(),
    }


def _sizes(sizes: tuple[int, int, int]) -> str:
    """All four factors of the number of chips as text.

    >>> _sizes((8, 1, 16))
    '8 × 1 × 16 × 128'
    """
    return " × ".join(f"{n:,}" for n in (*sizes, CHIPS // prod(sizes)))


def _result(one: Runner, sizes: tuple[int, int, int]) -> str:
    """The result for a mesh, in sentences."""
    if not one.runs:
        return f"This mesh {one.entry.why}."
    likely, meta = one.prediction, mesh_of(*META).prediction
    bubble, exposed = likely.parts["bubble"], _seconds(one)["network"]
    result = (
        f"The prediction is {show(likely.seconds, 's')} (8 of 10 runs: "
        f"{show(likely.low, 's')} to {show(likely.high, 's')}), of which the bubble is "
        f"{bubble / likely.seconds:.0%} and the exposed network "
        f"{exposed / likely.seconds:.0%}. No run can take less than "
        f"{show(likely.bound, 's')}. A chip holds {show(one.entry.held, 'capacity')} "
        f"with {one.entry.settings}."
    )
    if sizes == META:
        return f"{result} This is the mesh that Meta used."
    ratio = likely.seconds / meta.seconds
    same = meta.low <= likely.seconds <= meta.high
    close = ", which a prediction cannot tell from it" if same else ""
    return f"{result} That is {ratio:.2f} times Meta's mesh{close}."


def _seconds(one: Runner) -> dict[str, float]:
    """Colour → seconds of the predicted step."""
    parts = one.prediction.parts
    return {name: sum(parts[part] for part in some) for name, some in TIMES.items()}


def _readout(lanes: dict[str, tuple[int, int, int]]) -> tuple[tuple[str, ...], ...]:
    head = ("mesh", "tensor × context × pipeline × data", "held", "bound", "predicted",
            "8 of 10 runs", "bubble", "settings")  # fmt: skip
    rows = [head]
    for name, sizes in lanes.items():
        one = mesh_of(*sizes)
        held = show(one.entry.held, "capacity") if one.entry.held else ""
        times = ("", one.entry.why, "", "")
        if one.runs:
            likely = one.prediction
            times = (
                show(likely.bound, "s"),
                show(likely.seconds, "s"),
                f"{show(likely.low, 's')} to {show(likely.high, 's')}",
                show(likely.parts["bubble"], "s"),
            )
        rows.append(
            (name.partition(":")[0], _sizes(sizes), held, *times, one.entry.settings)
        )
    return tuple(rows)


# The picture -------------------------------------------------------------------------


def _drawn(
    said: dict[str, int], lanes: dict[str, tuple[int, int, int]]
) -> Iterator[str]:
    yield written(EDGE, 16, f"{MODEL} on {MACHINE}", bold=True)
    yield from _factors(said)
    top = 84
    room = mesh_of(*META).entry.room
    yield written(EDGE, top + 12, f"a chip may hold {show(room, 'capacity')}",
                  bold=True)  # fmt: skip
    for place, (name, sizes) in enumerate(lanes.items()):
        yield from _held(name, mesh_of(*sizes), room, top + 22 + ROW * place)
    top += 30 + ROW * len(lanes)
    yield written(EDGE, top + 12, "predicted seconds of a step", bold=True)
    for place, (name, sizes) in enumerate(lanes.items()):
        yield from _time(name, mesh_of(*sizes), top + 22 + ROW * place)
    top += 30 + ROW * len(lanes)
    yield from _legend(top + 12)


def _factors(said: dict[str, int]) -> Iterator[str]:
    """The chips as doublings end to end, a piece per axis, so the sum is constant."""
    x, top, bottom = EDGE, 28, 56
    for axis, n in said.items():
        end = x + DOUBLING * log2(n)
        yield box(x, top, end, bottom, AXES[axis], fill=0.25, edge=0.9, round=0,
                  key=f"axis {axis}")  # fmt: skip
        words = f"{axis} {n:,}"
        if text_width(words) + 6 > end - x:
            words = f"{n:,}"
        if n > 1 and text_width(words) < end - x:
            yield written((x + end) / 2, 47, words, anchor="middle",
                          key=f"axis {axis}'s")  # fmt: skip
        x = end
    yield from _handles(said)
    whole = " × ".join(f"{axis} {n:,}" for axis, n in said.items())
    yield written(EDGE, 74, whole, key="whole")


def _handles(said: dict[str, int]) -> Iterator[str]:
    """Handles at the right end of each piece except the last."""
    x = EDGE
    for axis, stops in STOPS.items():
        places = " ".join(number(x + DOUBLING * log2(stop)) for stop in stops)
        x += DOUBLING * log2(said[axis])
        yield line((x, 24), (x, 60), colour=AXES[axis], width=4, key=f"{axis} end")
        yield (
            f'<circle data-drag="{axis}" data-drag-at="{places}" cx="{number(x)}" '
            f'cy="42" r="16" fill="transparent"/>'
        )


def _held(name: str, one: Runner, room: float, top: float) -> Iterator[str]:
    """What a chip holds, in the memory that it may use."""
    wide = WIDEST - 2 * EDGE
    words = one.entry.why or show(one.entry.held, "capacity")
    yield from _named(name, words, top, not one.runs, "held")
    upper = top + 16
    share = min(one.entry.held / room, 1.0)
    ghost = name != YOURS
    yield box(EDGE, upper, EDGE + wide, upper + BAR, fill=0, edge=0.5, round=0)
    yield box(EDGE, upper, EDGE + wide * share, upper + BAR,
              "HBM" if one.runs else "hue8", fill=0.4 if ghost else 0.85, edge=0,
              round=0, key=f"held {name}")  # fmt: skip


def _time(name: str, one: Runner, top: float) -> Iterator[str]:
    """The predicted step by kind, its band as a line, and its bound as a tick."""
    wide = (WIDEST - 2 * EDGE) / SCALE
    upper, ghost = top + 16, name != YOURS
    if not one.runs:
        yield from _named(name, "no time, since it does not run", top, True, "time")
        return
    likely = one.prediction
    yield from _named(name, show(likely.seconds, "s"), top, False, "time")
    x = 0.0
    for kind, seconds in _seconds(one).items():
        end = min(x + seconds, SCALE)
        fill = 0.3 if kind == "waiting" else 0.85
        yield box(EDGE + wide * min(x, SCALE), upper, EDGE + wide * end, upper + BAR,
                  HUES[kind], fill=fill * (0.5 if ghost else 1), edge=0, round=0,
                  key=f"{kind} {name}")  # fmt: skip
        x += seconds
    low, high = (EDGE + wide * min(t, SCALE) for t in (likely.low, likely.high))
    yield line((low, upper + BAR + 3), (high, upper + BAR + 3), width=2,
               key=f"band {name}")  # fmt: skip
    bound = EDGE + wide * min(likely.bound, SCALE)
    yield line((bound, upper - 2), (bound, upper + BAR + 2), width=2,
               key=f"bound {name}")  # fmt: skip


def _named(name: str, words: str, top: float, out: bool, key: str) -> Iterator[str]:
    yield written(EDGE, top + 12, name, bold=name == YOURS)
    yield written(WIDEST - EDGE, top + 12, words, "hue8" if out else "ink", "end",
                  key=f"{key} of {name}")  # fmt: skip


def _legend(y: float) -> Iterator[str]:
    x = EDGE
    for kind, words in {
        "math": "math", "HBM": "memory", "network": "exposed network",
        "waiting": "bubble",
    }.items():  # fmt: skip
        fill = 0.3 if kind == "waiting" else 0.85
        yield box(x, y - 11, x + 14, y + 2, HUES[kind], fill=fill, edge=0, round=0)
        yield written(x + 20, y, words)
        x += 20 + text_width(words) + 16
    yield line((EDGE + 7, y + 11), (EDGE + 7, y + 27), width=2)
    yield written(EDGE + 20, y + 24, "bound")
    x = EDGE + 20 + text_width("bound") + 16
    yield line((x, y + 20), (x + 14, y + 20), width=2)
    yield written(x + 20, y + 24, "8 of 10 runs")


def _slider(name: str, label: str, stops: tuple[int, ...], default: int) -> Slider:
    return Slider(name, label, "ways", stops[0], stops[-1], default)


STOPS = {"tensor": TENSOR, "context": CONTEXT, "pipeline": PIPELINE}
FIGURE = Figure(
    "mesh",
    f"Put {MODEL} on {MACHINE}s",
    (
        _slider("tensor", "Tensor", TENSOR, 8),
        _slider("context", "Context", CONTEXT, 1),
        _slider("pipeline", "Pipeline", PIPELINE, 1),
    ),
    draw,
    first="pipeline",
    row=("tensor", "context", "pipeline"),
    presets={
        "Meta's mesh": dict(zip(STOPS, META, strict=True)),
        "no pipeline": {"tensor": 16, "context": 1, "pipeline": 1},
        "shared sequences": {"tensor": 8, "context": 8, "pipeline": 4},
        "pipeline alone": {"tensor": 1, "context": 1, "pipeline": 64},
    },
)
