"""The live figure "cases": shard three arrays, and see the matmul's collectives."""

from collections.abc import Iterator

from ...base.units import show
from ...hardware import chips
from ...hardware.mesh import Mesh
from ...hardware.networks import Torus
from ...sharding import Contraction, contract
from ...sharding.contraction import CASES
from ..labels import text_width
from ..objects.cases import as_blocks
from ..picture import WIDEST
from ..shapes import box, framed, written
from .controls import Choice, Drawing, Figure, Slider

A = {"I, rows": "A[I_X, J]", "J, columns": "A[I, J_X]", "not split": "A[I, J]"}
B = {"J, rows": "B[J_X, K]", "K, columns": "B[J, K_X]", "not split": "B[J, K]"}
C = {
    "I, rows": "C[I_X, K]",
    "K, columns": "C[I, K_X]",
    "not split": "C[I, K]",
    "terms of a sum": "C[I, K]{U_X}",
}
WHOLE, TERMS = "not split", "terms of a sum"
J, K = 8192, 32_768  # the weight matrix of chapter 06
EDGE, ROW, BAR = 12, 24, 14


def machine() -> Mesh:
    """A mesh whose axis X is a ring of four v5p. Each such ring has its own tokens."""
    return Mesh(Torus(chips.TPU_V5P, (4, 4, 4)), {"Y": 16, "X": 4})


def draw(a: str, b: str, c: str, tokens: int) -> Drawing:
    """The case of a matmul, block by block, with its bytes and lower bounds."""
    used = {}
    if c == TERMS and (a, b) != ("J, columns", "J, rows"):
        c, used = WHOLE, {"c": WHOLE}  # only case 3 has terms
    line = f"{A[a]} · {B[b]} -> {C[c]}"
    sizes = {"I": tokens, "J": J, "K": K}
    op = contract(line, machine(), busy=True, **sizes)
    estimate = op.estimate
    moves = op.plan.moves
    sent = f"{show(op.sent, 'bytes')} sent by each chip" if op.sent else "nothing sent"
    summary = f"Case {op.case}: {CASES[op.case]}. Moved: {moves}, {sent}."
    if op.best.moves != moves:
        summary += f" At full rates, other moves would be quicker: {op.best.moves}."
    data = {
        "case": op.case,
        "moves": moves,
        "sent": op.sent,
        "seconds": dict(estimate.seconds),
        "quickest": op.best.moves,
    }
    blocks = contract(line, {"X": 4}, **sizes)
    parts, high = as_blocks(blocks)
    parts += _times(estimate.seconds, high + 4)
    svg = framed(line, summary, parts, WIDEST, high + 30 + 3 * ROW)
    return Drawing(svg, summary, _readout(op), data, used=used)


def _times(seconds: dict[str, float], top: float) -> Iterator[str]:
    """A bar for each resource, on one scale."""
    yield written(EDGE, top + 12, "time at full rate", bold=True)
    left = EDGE + text_width("network") + 10
    wide = WIDEST - EDGE - left - text_width("999 ms") - 8
    for place, name in enumerate(("math", "HBM", "network")):
        y, time = top + 22 + ROW * place, seconds.get(name, 0.0)
        end = left + wide * time / max(seconds.values())
        yield written(EDGE, y + BAR - 2, name, name)
        yield box(left, y, end, y + BAR, name, fill=0.85, edge=0, round=0, key=name)
        words = show(time, "s") if time else "nothing moves"
        yield written(end + 6, y + BAR - 2, words, key=f"{name}'s")


def _readout(op: Contraction) -> tuple[tuple[str, ...], ...]:
    rows = [("", "on a ring of four v5p"), ("case", str(op.case))]
    rows += [("moved", op.plan.moves), ("each chip sends", show(op.sent, "bytes"))]
    rows += [("multiplied on each chip", op.plan.product)]
    rows += [(name, show(time, "s")) for name, time in op.estimate.seconds.items()]
    rows += [("quickest at full rates", op.best.moves)]
    return tuple(rows)


def _tokens(rows: int) -> str:
    return f"{rows:,}"


FIGURE = Figure(
    "cases",
    "Split A, B and C over four chips",
    (
        Choice("a", "Split A along", tuple(A), "I, rows"),
        Choice("b", "Split B along", tuple(B), "J, rows"),
        Choice("c", "Split C along", tuple(C), "I, rows"),
        Slider("tokens", "I, rows of A", "", 64, 2**20, 1024, printed=_tokens),
    ),
    draw,
    first="a",
    presets={
        "case 1": {"a": "I, rows", "b": WHOLE, "c": "I, rows"},
        "case 2": {"a": "I, rows", "b": "J, rows", "c": "I, rows"},
        "case 3": {"a": "J, columns", "b": "J, rows", "c": WHOLE},
        "case 4": {"a": "I, rows", "b": "K, columns", "c": "I, rows"},
    },
    carries=("b",),
    row=("a", "b", "c", "tokens"),
)
