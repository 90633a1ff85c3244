"""The live figure "planner": every mesh for a model on a machine."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import inf

from ...base.units import show
from ...hardware import chips
from ...hardware.networks.usual import usual
from ...planner import Plan, Trial
from ...training.memory import PARTS
from ...transformer import ALL, LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B, Model
from ...transformer.remat import REMAT
from .. import svg
from ..labels import text_width
from ..objects import plans
from ..objects.plans import MOST, SLOWEST, Found
from ..picture import WIDEST
from ..shapes import box, framed, number, written
from ..theme import hue, paint
from .controls import Choice, Drawing, Figure, Slider

OWN = "your own shape"
VOCAB = 2**17  # of a custom shape
MODELS = {one.name: one for one in ALL if one.trains}
CHIPS = {
    chips.CHIPS[key].name: chips.CHIPS[key]
    for key in (
        "tpu_v4", "tpu_v5e", "tpu_v5p", "tpu_v6e", "tpu_7x",
        "h100", "h800", "h200", "b200", "gb200",
    )
}  # fmt: skip
AS_NEEDED = "as little as fits"
TIMES = {  # parts of a prediction by colour
    "math": ("math", "attention"),
    "HBM": ("memory", "launches", "optimizer"),
    "network": ("tensor", "context", "experts", "weights", "update"),
    "waiting": ("bubble",),
}
HUES = {name: "ink" if name == "waiting" else name for name in TIMES}
NAMED = {"recommended": "hue1", "fastest": "hue5", "chosen": "ink"}
PURPOSE = {
    "data": "data, copies of the weights",
    "pipeline": "pipeline, stages of layers",
    "zero": "data, ZeRO-1",
    "fsdp": "data, FSDP",
    "expert": "experts",
    "context": "context, tokens of a sequence",
    "tensor": "tensor, heads and hidden layer",
}
EDGE, HEAD, INSET, ROW, BAR = 6, 22, 6, 30, 16
PLOT = (72, 30, WIDEST - 12, 164)  # left, top, right and bottom of the dots


def _place(number: int) -> str:
    """The rank of a mesh in words.

    >>> _place(1), _place(2), _place(23)
    ('recommended', '2nd choice', '23rd choice')
    """
    if number == 1:
        return "recommended"
    late = "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
    return f"{number}{late or 'th'} choice"


def _tokens(power: int) -> str:
    """Tokens of a batch as text, where 2^20 counts as a million."""
    return f"{power // 2**20}M" if power >= 2**20 else f"{power // 2**10}k"


@lru_cache(8)  # another mesh of the same job is asked for often
def planned(
    model: Model, chip: str, count: int, tokens: int, seq: int, remat: str
) -> Found | str:
    """The result for a job, or the reason why there is none."""
    again = None if remat == AS_NEEDED else remat
    job = model, CHIPS[chip], count, tokens, seq, again
    try:
        return plans.stored(*job) or plans.searched(*job)
    except ValueError as error:
        return str(error)


def draw(
    mesh: int,
    model: str,
    chip: str,
    count: int,
    tokens: int,
    seq: int,
    remat: str,
    L: int,
    D: int,
    F: int,
    N: int,
    K: int,
) -> Drawing:
    """Every mesh that fits as a dot, and how a step spends its time on one of them."""
    machine = usual(CHIPS[chip], count)
    title = f"{model} on {machine}"
    every: Found | str
    try:
        shape = MODELS.get(model) or _own(L, D, F, N, K)
        every = planned(shape, chip, count, tokens, seq, remat)
    except ValueError as error:
        every = str(error)
    idle = {} if model == OWN else dict.fromkeys("LDFNK", f"The model is {model}.")
    if isinstance(every, str):
        drawn = svg.message(title, every)
        return Drawing(drawn, every, (), {"best": None}, idle=idle)
    found = every.plan
    if not found.ranking:
        return _too_large(title, found, idle)
    at = min(mesh, len(found.ranking))
    trial = found.ranking[at - 1]
    likely, rate = trial.prediction, found.tokens / trial.seconds
    summary = (
        f"{'The recommended one' if at == 1 else _place(at)} of {every.fitting:,} "
        "meshes that fit: "
        f"{_said(trial)}. "
        f"A step takes at least {show(likely.bound, 's')} and most likely "
        f"{show(likely.seconds, 's')} (8 of 10 runs: {show(likely.low, 's')} to "
        f"{show(likely.high, 's')}). That is {show(rate, '')} tokens/s, or an MFU of "
        f"{found.mfu(trial):.0%}. Where the time goes: {found.why(trial)}. "
        f"{found.reason}"
    )
    data = {
        "best": dict(found.best.axes),
        "fastest": dict(found.fastest.axes),
        "mesh": dict(trial.axes),
        "fitting": every.fitting,
        "lower": likely.bound,
        "seconds": likely.seconds,
        "band": [likely.low, likely.high],
        "parts": dict(likely.parts),
        "mfu": found.mfu(trial),
        "memory": dict(trial.memory.parts),
        "microbatches": trial.microbatches,
        "recompute": str(trial.recompute),
        "command": _command(machine, model, tokens, seq, remat),
    }
    return Drawing(
        _picture(title, summary, every, trial),
        summary,
        _readout(found, trial),
        data,
        idle=idle,
        used={} if at == mesh else {"mesh": at},
    )


def _too_large(title: str, found: Plan, idle: dict[str, str]) -> Drawing:
    """The memory of the mesh that comes closest to fitting, and what would fit."""
    said = ". ".join((found.verdict.partition("\n")[0], *found.nearest)) + "."
    need, sizes, _ = found.search.least
    rows = [("", "")]
    if sizes:
        axes = " × ".join(f"{a} {n:,}" for a, n in sizes.items() if n > 1)
        rows += [("the mesh that holds least", axes or "one chip")]
        rows += [("a chip needs", show(need, "capacity"))]
    rows += [("HBM", show(found.search.capacity, "capacity"))]
    rows += [("what fits", one) for one in found.nearest]
    drawn = framed(title, said, _lacking(title, found), WIDEST, 100)
    data = {"best": None, "nearest": list(found.nearest)}
    return Drawing(drawn, said, tuple(rows), data, idle=idle)


def _lacking(title: str, found: Plan) -> Iterator[str]:
    need, room = found.search.least[0], found.search.capacity
    yield written(EDGE, 18, title, bold=True)
    if need == inf:
        yield written(EDGE, 48, "no mesh is admitted", key="needed")
        return
    scale = (WIDEST - 2 * EDGE) / max(need, room)
    yield box(EDGE, 30, EDGE + scale * need, 50, "ink", fill=0.3, edge=0, key="needed")
    yield box(EDGE, 28, EDGE + scale * room, 52, "HBM", fill=0, edge=1, key="HBM")
    words = f"a chip needs {show(need, 'capacity')} of {show(room, 'capacity')}"
    yield written(EDGE, 70, words, key="needed's")
    for one in found.nearest[:1]:
        yield written(EDGE, 90, one)


def _own(L: int, D: int, F: int, N: int, K: int) -> Model:
    if D % N:
        raise ValueError(f"N = {N} query heads: must divide D = {D}")
    return Model(OWN, L, D, F, N, min(N, K), D // N, VOCAB)


def _command(machine: str, model: str, tokens: int, seq: int, remat: str) -> str:
    """The command for the same plan in a terminal, or "" for a custom shape."""
    if model == OWN:
        return ""
    name = model.lower().replace(" ", "-")
    said = f"python -m shardmath plan {name} {machine} --tokens {_tokens(tokens)}"
    said += f" --seq {seq}" if seq != 8192 else ""
    return said + (f" --remat {remat}" if remat != AS_NEEDED else "")


def _said(trial: Trial) -> str:
    axes = " × ".join(f"{axis} {n:,}" for axis, n in trial.axes.items()) or "one chip"
    return f"{axes}, {trial.settings}"


def _named(found: Plan, trial: Trial) -> dict[str, Trial]:
    """Name → the recommended mesh, the fastest, and the one that is shown."""
    some = {"recommended": found.best}
    for name, one in (("fastest", found.fastest), ("chosen", trial)):
        if all(one.candidate is not other.candidate for other in some.values()):
            some[name] = one
    return some


def _readout(found: Plan, trial: Trial) -> tuple[tuple[str, ...], ...]:
    """The meshes that have a name, then what a chip holds on the one that is shown."""
    rows = [("mesh", "bound", "likely", "8 of 10 runs", "MFU", "held", "time goes to")]
    for name, one in _named(found, trial).items():
        likely = one.prediction
        rows.append((
            f"{name}: {_said(one)}",
            show(likely.bound, "s"),
            show(likely.seconds, "s"),
            f"{show(likely.low, 's')} to {show(likely.high, 's')}",
            f"{found.mfu(one):.1%}",
            show(one.memory.total, "capacity"),
            found.why(one),
        ))  # fmt: skip
    rows += [(one, *[""] * 6) for one in trial.prediction.warnings]
    for part, nbytes in trial.memory.parts.items():
        if nbytes:
            rows.append((PARTS[part], "", "", "", "", show(nbytes, "capacity"), ""))
    return tuple(rows)


# The picture -------------------------------------------------------------------------


def _picture(title: str, summary: str, every: Found, trial: Trial) -> str:
    axes = len(trial.axes) or 1
    bars = len(_named(every.plan, trial))
    high = PLOT[3] + 48 + axes * (HEAD + INSET) + 34 + ROW * bars + 58
    parts = _drawn(title, every, trial)
    return framed(title, summary, parts, WIDEST, high)


def _drawn(title: str, every: Found, trial: Trial) -> Iterator[str]:
    found = every.plan
    yield written(EDGE, 16, title, bold=True)
    yield from _dots(every, trial)
    top = PLOT[3] + 46
    yield from _nested(trial, top)
    top += (len(trial.axes) or 1) * (HEAD + INSET) + 12
    yield from _times(found, trial, top)
    top += 22 + ROW * len(_named(found, trial))
    yield from _held(found, trial, top)


def _dots(every: Found, trial: Trial) -> Iterator[str]:
    """A dot for every mesh that fits, by time and memory; the dark ones can be chosen.
    In the stripe on the left, times differ by less than predictions err."""
    left, top, right, bottom = PLOT
    found = every.plan
    fastest, room = found.fastest.seconds, found.search.capacity
    best = [(one.seconds, one.candidate.nbytes) for one in found.ranking]
    slowest = max(seconds for seconds, _ in (*best, *every.others))
    last = max(1.3 * fastest, min(1.04 * slowest, SLOWEST * fastest))
    across = svg.Axis("likely seconds of a step", 0.97 * fastest, last)
    up = svg.Axis("memory held", 0, room, log=False)

    def at(seconds: float, nbytes: float) -> tuple[float, float]:
        x = left + (right - left) * across.share(seconds)
        return x, bottom - (bottom - top) * up.share(nbytes)

    yield box(left, top, right, bottom, fill=0, edge=0.35, round=0)
    tied = left + (right - left) * across.share(found.search.ties * fastest)
    yield box(left, top, tied, bottom, fill=0.08, edge=0, round=0, key="ties")
    yield written(left - 6, top + 10, show(room, "capacity"), anchor="end")
    yield written(left - 6, bottom, "0", anchor="end")
    yield written(left - 6, (top + bottom) / 2 + 5, "held", anchor="end")
    for times in (1, 1.25, 1.5, 2, 3, 4):
        if across.low <= times * fastest <= across.high:
            x = left + (right - left) * across.share(times * fastest)
            words = show(fastest, "s") if times == 1 else f"{times:g}×"
            yield written(x, bottom + 17, words, anchor="middle")
    yield written(right, bottom + 36, "likely time of a step, times the least",
                  anchor="end")  # fmt: skip
    near = [at(*one) for one in best]
    others = {
        tuple(2 * round(place / 2) for place in at(seconds, nbytes))  # half a dot
        for seconds, nbytes in every.others
        if seconds <= across.high
    }
    yield _spots(sorted(others), 4, 0.3)
    yield _spots(near, 6, 0.75)
    for name, one in _named(found, trial).items():
        x, y = at(one.seconds, one.candidate.nbytes)
        yield (
            f'<circle cx="{number(x)}" cy="{number(y)}" r="6" '
            f'fill="{paint(NAMED[name])}" data-key="dot {name}"/>'
        )
    x, y = at(trial.seconds, trial.candidate.nbytes)
    yield (
        f'<circle cx="{number(x)}" cy="{number(y)}" r="10" fill="none" '
        f'stroke="{paint("ink")}" stroke-width="2" data-key="shown"/>'
    )
    places = " ".join(f"{number(x)},{number(y)}" for x, y in near)
    yield (
        f'<rect data-drag="mesh" data-drag-at="{places}" x="{left}" y="{top}" '
        f'width="{right - left}" height="{bottom - top}" fill="transparent"/>'
    )


def _spots(places: Iterable[tuple[float, float]], width: float, opacity: float) -> str:
    """Many dots in one path."""
    path = "".join(f"M{number(x)} {number(y)}h0" for x, y in places)
    return (
        f'<path d="{path or "M0 0"}" fill="none" stroke="{paint("ink")}" '
        f'stroke-opacity="{opacity:g}" stroke-width="{width:g}" '
        'stroke-linecap="round"/>'
    )


def _nested(trial: Trial, top: float) -> Iterator[str]:
    """The axes as nested boxes, each with its links, the outermost axis outside."""
    mesh = trial.step.mesh
    axes = list(trial.axes) or [next(iter(mesh.axes))]
    levels = [mesh.binding(axis).level for axis in axes]
    kinds = list(dict.fromkeys(levels))
    high = len(axes) * (HEAD + INSET)
    for depth, (axis, level) in enumerate(zip(axes, levels, strict=True)):
        left, upper = EDGE + INSET * depth, top + HEAD * depth
        ends = left, upper, WIDEST - left, top + high - INSET * depth - 4
        colour = hue(kinds.index(level))
        yield box(*ends, colour, fill=0.07, edge=0.9, key=f"axis {axis}")
        words = f"{mesh.axes[axis]:,} × {PURPOSE[axis]}"
        yield written(left + 8, upper + 16, words, key=f"axis {axis}'s")
        yield written(WIDEST - left - 8, upper + 16, level, colour, "end",
                      key=f"axis {axis} on")  # fmt: skip


def _times(found: Plan, trial: Trial, top: float) -> Iterator[str]:
    """A bar for each named mesh, with the parts of its prediction end to end. The line
    at its end is its band, and the tick its bound."""
    some = _named(found, trial)
    yield written(EDGE, top + 12, "likely time", bold=True)
    x = WIDEST - EDGE
    for name in reversed(TIMES):
        yield written(x, top + 12, name, HUES[name], "end")
        x -= text_width(name) + 12
    longest = max(one.prediction.high for one in some.values())
    left = EDGE + 1.1 * text_width("recommended") + 10  # one of them is bold
    scale = (WIDEST - EDGE - left - text_width("100 ms") - 8) / longest
    for place, (name, one) in enumerate(some.items()):
        y, likely = top + 22 + ROW * place, one.prediction
        shown = one.candidate is trial.candidate
        if shown:
            yield box(EDGE - 3, y - 6, WIDEST - EDGE + 3, y + BAR + 6, fill=0.06,
                      edge=0.4, key="bar shown")  # fmt: skip
        yield written(EDGE, y + 13, name, NAMED[name], bold=shown)
        x = left
        for colour, parts in TIMES.items():
            end = x + scale * sum(likely.parts[part] for part in parts)
            fill = 0.3 if colour == "waiting" else 0.85
            yield box(x, y, end, y + BAR, HUES[colour], fill=fill, edge=0, round=0,
                      key=f"{colour} {name}")  # fmt: skip
            x = end
        bound = left + scale * likely.bound
        yield box(bound - 1, y - 4, bound + 1, y + BAR + 4, "ink", fill=1, edge=0,
                  round=0, key=f"bound {name}")  # fmt: skip
        ends = left + scale * likely.low, left + scale * likely.high
        middle = y + BAR / 2
        yield box(ends[0], middle - 1, ends[1], middle + 1, "ink", fill=0.9, edge=0,
                  round=0, key=f"band {name}")  # fmt: skip
        words = show(likely.seconds, "s")
        yield written(ends[1] + 6, y + 13, words, key=f"likely {name}")


def _held(found: Plan, trial: Trial, top: float) -> Iterator[str]:
    """What a chip holds, end to end, in its HBM."""
    parts = trial.memory.parts
    total, room = sum(parts.values()), found.search.capacity
    scale = (WIDEST - 2 * EDGE) / room
    said = f"a chip holds {show(total, 'capacity')} of {show(room, 'capacity')}"
    yield written(EDGE, top + 12, said, bold=True)
    x = EDGE
    for at, (part, nbytes) in enumerate(parts.items()):
        end = x + scale * nbytes
        yield box(x, top + 18, end, top + 34, hue(at), fill=0.8, edge=0, round=0,
                  key=f"part {part}")  # fmt: skip
        x = end
    yield box(EDGE, top + 16, WIDEST - EDGE, top + 36, "HBM", fill=0, edge=1, round=0)
    largest = sorted(parts, key=parts.get)[:-3:-1]
    words = ", ".join(f"{part} {show(parts[part], 'capacity')}" for part in largest)
    yield written(EDGE, top + 52, words, key="largest")


FIGURE = Figure(
    "planner",
    "Every mesh for a model on a machine",
    (
        Slider("mesh", "Mesh", "", 1, MOST, 1, step=1, printed=_place),
        Choice("model", "Model", (*MODELS, OWN), LLAMA_3_405B.name),
        Choice("chip", "Chip", tuple(CHIPS), "H100", lambda n: chips.find(n).name,
               machine=True),
        Slider("count", "Chips", "chips", 8, 16384, 16384),
        Slider("tokens", "Batch", "tokens", 2**17, 2**27, 2**24, printed=_tokens),
        Slider("seq", "Sequence", "tokens", 1024, 2**20, 8192),
        Choice("remat", "Recompute", (AS_NEEDED, *REMAT), AS_NEEDED),
        Slider("L", "Own shape: layers", "layers", 4, 160, 80, step=4),
        Slider("D", "D, width", "", 512, 32768, 8192),
        Slider("F", "F, hidden layer", "", 1024, 131072, 32768),
        Slider("N", "N, query heads", "heads", 4, 256, 64),
        Slider("K", "K, KV heads", "heads", 1, 256, 8),
    ),
    draw,
    first="mesh",
    presets={
        "8B on a node": {"model": LLAMA_3_8B.name, "chip": "H100", "count": 8,
                         "tokens": 2**20},
        "70B on a v5p pod": {"model": LLAMA_3_70B.name, "chip": "TPU v5p",
                             "count": 4096, "tokens": 2**22},
        "405B on 16,384 H100": {"model": LLAMA_3_405B.name, "chip": "H100",
                                "count": 16384, "tokens": 2**24},
        "too few": {"model": LLAMA_3_405B.name, "chip": "TPU v5e", "count": 64,
                    "tokens": 2**22},
    },
    row=("mesh", "model", "chip", "count"),
)  # fmt: skip
