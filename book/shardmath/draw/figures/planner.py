"""The live figure "planner": the best meshes for a model on a machine."""

from collections.abc import Iterator
from functools import lru_cache
from math import inf

from ...base.units import show
from ...hardware import chips
from ...planner import Plan, Trial, plan
from ...planner.machines import usual
from ...training.memory import PARTS
from ...transformer import ALL, LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B, Model
from ...transformer.remat import REMAT
from .. import svg
from ..labels import text_width
from ..picture import WIDEST
from ..shapes import box, framed, written
from ..theme import hue
from .controls import Choice, Drawing, Figure, Slider

OWN = "your own shape"
VOCAB = 2**17  # of a shape of one's own
MODELS = {one.name: one for one in ALL}
CHIPS = {
    chips.CHIPS[key].name: chips.CHIPS[key]
    for key in (
        "tpu_v4", "tpu_v5e", "tpu_v5p", "tpu_v6e", "tpu_7x",
        "h100", "h800", "h200", "b200", "gb200",
    )
}  # fmt: skip
RANKS = (
    "the recommended", "the 2nd choice", "the 3rd choice", "the 4th choice",
    "the 5th choice", "the fastest",
)  # fmt: skip
AS_NEEDED = "as little as fits"
TIMES = {  # parts of a prediction by colour
    "math": ("math", "attention"),
    "HBM": ("memory", "launches", "optimizer"),
    "network": ("tensor", "context", "experts", "weights", "update"),
    "waiting": ("bubble",),
}
HUES = {name: "ink" if name == "waiting" else name for name in TIMES}
PURPOSE = {
    "data": "data, copies of the weights",
    "pipeline": "pipeline, stages of layers",
    "zero": "data, ZeRO-1",
    "fsdp": "data, FSDP",
    "expert": "experts",
    "context": "context, tokens of a sequence",
    "tensor": "tensor, heads and hidden layer",
}
EDGE, HEAD, INSET, ROW, BAR = 6, 26, 8, 36, 20


def _tokens(power: int) -> str:
    """Tokens of a batch as people say them, 2^20 a million."""
    return f"{power // 2**20}M" if power >= 2**20 else f"{power // 2**10}k"


@lru_cache(8)  # the next best of the same is asked for often
def planned(
    model: Model, machine: str, tokens: int, seq: int, remat: str
) -> Plan | str:
    """The plan, or why there is none."""
    try:
        again = None if remat == AS_NEEDED else remat
        return plan(model, machine, tokens, seq, remat=again)
    except ValueError as error:
        return str(error)


def draw(
    rank: str,
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
    """One of the best meshes, its time beside the next ones', and its memory."""
    machine = usual(CHIPS[chip], count)
    title = f"{model} on {machine}"
    found: Plan | str
    try:
        shape = MODELS.get(model) or _own(L, D, F, N, K)
        found = planned(shape, machine, tokens, seq, remat)
    except ValueError as error:
        found = str(error)
    if isinstance(found, str):
        return Drawing(svg.message(title, found), found, (), {"best": None})
    if not found.ranking:
        return _too_large(title, found)
    trial = _chosen(found, rank)
    likely, rate = trial.prediction, found.tokens / trial.seconds
    fitting = found.search.counts["fitting"]
    summary = (
        f"{rank.capitalize()} of {fitting:,} meshes that fit: {_said(trial)}. "
        f"A step takes at least {show(likely.bound, 's')} and likely "
        f"{show(likely.seconds, 's')} (8 of 10 runs: {show(likely.low, 's')} to "
        f"{show(likely.high, 's')}), {show(rate, '')} tokens/s, "
        f"an MFU of {found.mfu(trial):.0%}; {found.why(trial)}. {found.reason}"
    )
    data = {
        "best": dict(found.best.axes),
        "fastest": dict(found.fastest.axes),
        "mesh": dict(trial.axes),
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
        _picture(title, summary, found, trial), summary, _readout(found, trial), data
    )


def _too_large(title: str, found: Plan) -> Drawing:
    """What the mesh needs that comes nearest, beside the HBM, and what would fit."""
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
    return Drawing(drawn, said, tuple(rows), data)


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
    """The same on a terminal; of a shape of one's own there is none."""
    if model == OWN:
        return ""
    name = model.lower().replace(" ", "-")
    said = f"python -m shardmath plan {name} {machine} --tokens {_tokens(tokens)}"
    said += f" --seq {seq}" if seq != 8192 else ""
    return said + (f" --remat {remat}" if remat != AS_NEEDED else "")


def _chosen(found: Plan, rank: str) -> Trial:
    if rank == RANKS[-1]:
        return found.fastest
    return found.ranking[min(RANKS.index(rank), len(found.ranking) - 1)]


def _said(trial: Trial) -> str:
    axes = " × ".join(f"{axis} {n:,}" for axis, n in trial.axes.items()) or "one chip"
    return f"{axes}, {trial.settings}"


def _shown(found: Plan) -> list[Trial]:
    """The best meshes and, if it is none of them, the fastest."""
    some = list(found.ranking)
    if all(one.candidate is not found.fastest.candidate for one in some):
        some.append(found.fastest)
    return some


def _readout(found: Plan, trial: Trial) -> tuple[tuple[str, ...], ...]:
    """The best meshes, then what a chip holds on the one that is shown."""
    rows = [("mesh", "bound", "likely", "8 of 10 runs", "MFU", "held", "time goes to")]
    for one in _shown(found):
        likely = one.prediction
        rows.append((
            _said(one),
            show(likely.bound, "s"),
            show(likely.seconds, "s"),
            f"{show(likely.low, 's')} to {show(likely.high, 's')}",
            f"{found.mfu(one):.1%}",
            show(one.memory.total, "capacity"),
            found.why(one),
        ))  # fmt: skip
    for part, nbytes in trial.memory.parts.items():
        if nbytes:
            rows.append((PARTS[part], "", "", "", "", show(nbytes, "capacity"), ""))
    return tuple(rows)


def _picture(title: str, summary: str, found: Plan, trial: Trial) -> str:
    axes = len(trial.axes) or 1
    high = 30 + axes * (HEAD + INSET) + 52 + ROW * len(_shown(found)) + 84
    parts = _drawn(title, found, trial)
    return framed(title, summary, parts, WIDEST, high)


def _drawn(title: str, found: Plan, trial: Trial) -> Iterator[str]:
    yield written(EDGE, 18, title, bold=True)
    top = 30
    yield from _nested(trial, top)
    top += (len(trial.axes) or 1) * (HEAD + INSET) + 18
    yield from _times(found, trial, top)
    top += 34 + ROW * len(_shown(found))
    yield from _held(found, trial, top)


def _nested(trial: Trial, top: float) -> Iterator[str]:
    """The axes in one another, each on its wires: the outermost is the outer box."""
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
        yield written(left + 8, upper + 18, words, key=f"axis {axis}'s")
        yield written(WIDEST - left - 8, upper + 18, level, colour, "end",
                      key=f"axis {axis} on")  # fmt: skip


def _times(found: Plan, shown: Trial, top: float) -> Iterator[str]:
    """One bar for each mesh, the parts of its prediction end to end. A line at its end
    is its band, and a tick its bound."""
    some = _shown(found)
    yield written(EDGE, top + 12, "likely seconds of a step", bold=True)
    x = WIDEST - EDGE
    for name in reversed(TIMES):
        yield written(x, top + 12, name, HUES[name], "end")
        x -= text_width(name) + 12
    longest = max(one.prediction.high for one in some)
    left = EDGE + 18
    scale = (WIDEST - EDGE - left - text_width("100 ms") - 8) / longest
    for place, one in enumerate(some):
        y, likely = top + 24 + ROW * place, one.prediction
        chosen = one.candidate is shown.candidate
        if chosen:
            yield box(EDGE - 3, y - 6, WIDEST - EDGE + 3, y + BAR + 6, fill=0.06,
                      edge=0.4, key="shown")  # fmt: skip
        name = "F" if place == len(found.ranking) else f"{place + 1}"
        yield written(EDGE, y + 15, name, bold=chosen)
        x = left
        for colour, parts in TIMES.items():
            end = x + scale * sum(likely.parts[part] for part in parts)
            fill = 0.3 if colour == "waiting" else 0.85
            yield box(x, y, end, y + BAR, HUES[colour], fill=fill, edge=0, round=0,
                      key=f"{colour} {place}")  # fmt: skip
            x = end
        bound = left + scale * likely.bound
        yield box(bound - 1, y - 4, bound + 1, y + BAR + 4, "ink", fill=1, edge=0,
                  round=0, key=f"bound {place}")  # fmt: skip
        ends = left + scale * likely.low, left + scale * likely.high
        middle = y + BAR / 2
        yield box(ends[0], middle - 1, ends[1], middle + 1, "ink", fill=0.9, edge=0,
                  round=0, key=f"band {place}")  # fmt: skip
        words = show(likely.seconds, "s")
        yield written(ends[1] + 6, y + 15, words, key=f"likely {place}")


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
        yield box(x, top + 20, end, top + 38, hue(at), fill=0.8, edge=0, round=0,
                  key=f"part {part}")  # fmt: skip
        x = end
    yield box(EDGE, top + 18, WIDEST - EDGE, top + 40, "HBM", fill=0, edge=1, round=0)
    largest = sorted(parts, key=parts.get)[:-3:-1]
    words = ", ".join(f"{part} {show(parts[part], 'capacity')}" for part in largest)
    yield written(EDGE, top + 56, words, key="largest")


FIGURE = Figure(
    "planner",
    "The best meshes for a model on a machine",
    (
        Choice("rank", "Show", RANKS, RANKS[0]),
        Choice("model", "Model", (*MODELS, OWN), LLAMA_3_70B.name),
        Choice("chip", "Chip", tuple(CHIPS), "TPU v5p", lambda n: chips.find(n).name,
               machine=True),
        Slider("count", "Chips", "chips", 8, 16384, 512),
        Slider("tokens", "Batch", "tokens", 2**17, 2**27, 2**22, printed=_tokens),
        Slider("seq", "Sequence", "tokens", 1024, 2**20, 8192),
        Choice("remat", "Recompute", (AS_NEEDED, *REMAT), AS_NEEDED),
        Slider("L", "Own shape: layers", "layers", 4, 160, 80, step=4),
        Slider("D", "D, width", "", 512, 32768, 8192),
        Slider("F", "F, hidden layer", "", 1024, 131072, 32768),
        Slider("N", "N, query heads", "heads", 4, 256, 64),
        Slider("K", "K, KV heads", "heads", 1, 256, 8),
    ),
    draw,
    first="rank",
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
)  # fmt: skip
