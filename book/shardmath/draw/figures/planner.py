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
RANKS = ("the best", "the 2nd best", "the 3rd best", "the 4th best", "the 5th best")
TIMES = {"math": "math", "hbm": "HBM", "network": "network"}  # and their colours
PURPOSE = {
    "data": "data, copies of the weights",
    "pipeline": "pipeline, stages of layers",
    "zero": "data, ZeRO-1",
    "fsdp": "data, FSDP",
    "expert": "experts",
    "context": "context, tokens of a sequence",
    "tensor": "tensor, heads and hidden layer",
}
EDGE, HEAD, INSET, ROW, BAR = 6, 26, 8, 36, 7


def _tokens(power: int) -> str:
    """Tokens of a batch as people say them, 2^20 a million."""
    return f"{power // 2**20}M" if power >= 2**20 else f"{power // 2**10}k"


@lru_cache(8)  # the next best of the same is asked for often
def planned(
    model: Model, machine: str, tokens: int, seq: int, remat: str
) -> Plan | str:
    """The plan, or why there is none."""
    try:
        return plan(model, machine, tokens, seq, remat=remat)
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
    n = min(RANKS.index(rank), len(found.ranking) - 1)
    trial = found.ranking[n]
    fitting = found.search.counts["fitting"]
    summary = (
        f"{RANKS[n].capitalize()} of {fitting:,} meshes that fit: "
        f"{_said(trial)}. At least {show(trial.lower, 's')} a step, "
        f"{show(found.tokens / trial.lower, '')} tokens/s, MFU at most "
        f"{found.mfu(trial):.0%}; {found.why(trial)}."
    )
    data = {
        "best": dict(found.best.axes),
        "mesh": dict(trial.axes),
        "lower": trial.lower,
        "math": trial.math,
        "hbm": trial.hbm,
        "network": trial.network,
        "waiting": trial.waiting,
        "mfu": found.mfu(trial),
        "memory": dict(trial.memory),
        "microbatches": trial.microbatches,
        "command": _command(machine, model, tokens, seq, remat),
    }
    return Drawing(
        _picture(title, summary, found, n), summary, _readout(found, n), data
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
    return said + (f" --remat {remat}" if remat != "full" else "")


def _said(trial: Trial) -> str:
    axes = " × ".join(f"{axis} {n:,}" for axis, n in trial.axes.items()) or "one chip"
    more = trial.microbatches
    return axes + (f", {more:,} microbatches" if more > 1 else "")


def _readout(found: Plan, n: int) -> tuple[tuple[str, ...], ...]:
    """The best meshes, then what a chip holds on the one that is shown."""
    rows = [("mesh", "at least", "MFU at most", "held", "why")]
    for trial in found.ranking:
        held = show(sum(trial.memory.values()), "capacity")
        least, mfu = show(trial.lower, "s"), f"{found.mfu(trial):.1%}"
        rows.append((_said(trial), least, mfu, held, found.why(trial)))
    for part, nbytes in found.ranking[n].memory.items():
        if nbytes:
            rows.append((PARTS[part], "", "", show(nbytes, "capacity"), ""))
    return tuple(rows)


def _picture(title: str, summary: str, found: Plan, n: int) -> str:
    axes = len(found.ranking[n].axes) or 1
    high = 30 + axes * (HEAD + INSET) + 52 + ROW * len(found.ranking) + 84
    parts = _drawn(title, found, n)
    return framed(title, summary, parts, WIDEST, high)


def _drawn(title: str, found: Plan, n: int) -> Iterator[str]:
    yield written(EDGE, 18, title, bold=True)
    top = 30
    yield from _nested(found, found.ranking[n], top)
    top += (len(found.ranking[n].axes) or 1) * (HEAD + INSET) + 18
    yield from _times(found, n, top)
    top += 34 + ROW * len(found.ranking)
    yield from _held(found, found.ranking[n], top)


def _nested(found: Plan, trial: Trial, top: float) -> Iterator[str]:
    """The axes in one another, each on its wires: the outermost is the outer box."""
    mesh = found.mesh(trial)
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


def _times(found: Plan, n: int, top: float) -> Iterator[str]:
    """Three bars for each mesh: what takes longest is its bound."""
    x = EDGE
    yield written(x, top + 12, "seconds of a step, at least", bold=True)
    x = WIDEST - EDGE
    for colour in reversed(TIMES.values()):
        yield written(x, top + 12, colour, colour, "end")
        x -= text_width(colour) + 12
    longest = max(trial.lower for trial in found.ranking)
    left = EDGE + 18
    scale = (WIDEST - EDGE - left - text_width("100 ms") - 8) / longest
    for place, trial in enumerate(found.ranking):
        y = top + 24 + ROW * place
        if place == n:
            yield box(EDGE - 3, y - 5, WIDEST - EDGE + 3, y + 3 * BAR + 6, fill=0.06,
                      edge=0.4, key="shown")  # fmt: skip
        yield written(EDGE, y + 16, f"{place + 1}", bold=place == n)
        for at, (name, colour) in enumerate(TIMES.items()):
            right = left + scale * getattr(trial, name)
            yield box(left, y + BAR * at, right, y + BAR * at + BAR - 1, colour,
                      fill=0.85, edge=0, round=0, key=f"{name} {place}")  # fmt: skip
        yield written(left + scale * trial.lower + 6, y + 16, show(trial.lower, "s"),
                      key=f"bound {place}")  # fmt: skip


def _held(found: Plan, trial: Trial, top: float) -> Iterator[str]:
    """What a chip holds, end to end, in its HBM."""
    total, room = sum(trial.memory.values()), found.search.capacity
    scale = (WIDEST - 2 * EDGE) / room
    said = f"a chip holds {show(total, 'capacity')} of {show(room, 'capacity')}"
    yield written(EDGE, top + 12, said, bold=True)
    x = EDGE
    for at, (part, nbytes) in enumerate(trial.memory.items()):
        end = x + scale * nbytes
        yield box(x, top + 20, end, top + 38, hue(at), fill=0.8, edge=0, round=0,
                  key=f"part {part}")  # fmt: skip
        x = end
    yield box(EDGE, top + 18, WIDEST - EDGE, top + 40, "HBM", fill=0, edge=1, round=0)
    largest = sorted(trial.memory, key=trial.memory.get)[:-3:-1]
    words = ", ".join(f"{p} {show(trial.memory[p], 'capacity')}" for p in largest)
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
        Choice("remat", "Remat", REMAT, "full"),
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
