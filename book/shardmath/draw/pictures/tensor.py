"""Pictures of tensor parallelism: matmuls in blocks, and a block of a layer."""

from collections.abc import Iterator, Sequence

from ...sharding import Change, Contraction, ShardingPlan
from ...training import Step
from ...transformer import Matmul
from .. import shapes
from ..objects.layout import blocks
from ..picture import Picture, picture
from ..theme import hue

WIDTH, EDGE = 416, 10
SIGN, WAY = 22, 44  # room for "·" and "→", and for an arrow of what moves
ROW, BAR = 28, 20  # from one line of a block to the next, and the height of its bar
LEFT, RIGHT = 150, 406  # where the bars of a block begin and end
PARTS = 4  # chips that are drawn


def matmuls(*ops: Contraction) -> Picture:
    """Matmuls below each other, in blocks labelled with the devices that hold them.

    The collectives of a matmul are written at arrows, to an operand or from the product
    to the result. All sides are on one scale. On one device there are no collectives,
    so they are not mentioned.

    Raises:
        ValueError: there are no arguments.

    >>> from shardmath.sharding import contract
    >>> up = contract("z[B, D] · up[D, F_Y] -> u[B, F_Y]", {"Y": 4}, B=12, D=8, F=16)
    >>> matmuls(up).desc
    'z[B, D] · up[D, F_Y] → u[B, F_Y] on 4 devices; moved: nothing.'
    """
    if not ops:
        raise ValueError("matmuls(): must be given at least one matmul")
    rows = [_arrays(op) for op in ops]
    room = WIDTH - 2 * EDGE - max(sum(gap for _, gap in row) for row in rows)
    scale = room / max(sum(_size(one)[1] for one, _ in row) for row in rows)
    parts, y = [], 4.0
    for op, row in zip(ops, rows, strict=True):
        high = scale * max(_size(one)[0] for one, _ in row)
        parts.append(shapes.written(EDGE, y + 16, _line(op)))
        if op.a.devices > 1:
            y += 20
            moved = f"moved: {op.plan.moves}"
            parts.append(shapes.written(EDGE, y + 16, moved, _ink(op)))
        parts += _row(row, y + 26 + high / 2, scale)
        y += 26 + high + 22
    desc = " ".join(_said(op) for op in ops)
    title = "A matmul in blocks" if len(ops) == 1 else f"{len(ops)} matmuls in blocks"
    return picture(title, desc, shapes.framed(title, desc, parts, WIDTH, y - 14))


def _said(op: Contraction) -> str:
    if op.a.devices == 1:
        return f"{_line(op)}."
    return f"{_line(op)} on {op.a.devices} devices; moved: {op.plan.moves}."


def _line(op: Contraction) -> str:
    return f"{op.a.notation} · {op.b.notation} → {op.c.notation}"


def _ink(op: Contraction) -> str:
    return "network" if op.collectives else "ink"


def _arrays(op: Contraction) -> list[tuple]:
    """What stands in a row, and the room before each: operands, product, result."""
    plan = op.plan
    found = [(plan.a, 0), (plan.b, SIGN), (plan.c, SIGN)]
    return found + [(op.c, WAY)] * bool(plan.after)


def _size(one) -> tuple[int, int]:
    """Rows and columns of a matrix."""
    high, wide = one.sizes
    return high, wide


def _row(row: list, middle: float, scale: float) -> Iterator[str]:
    """The matrices of one matmul, side by side around `middle`."""
    x = EDGE
    for sign, (one, gap) in zip(("", "·", "→", ""), row, strict=False):
        high, wide = (scale * side for side in _size(one))
        if sign:
            yield shapes.written(x + gap / 2, middle + 6, sign, "ink", "middle")
        elif gap:
            ends = (x + 4, middle), (x + gap - 4, middle)
            yield shapes.line(*ends, colour="network", width=3, heads="end")
        x += gap
        yield from blocks(one, x, middle - high / 2, wide, high)
        x += wide


def block(step: Step, *lines: str) -> Picture:
    """One block of a layer: how its arrays are sharded, and its collectives.

    Bars are arrays, split over four chips like those of `step`. A bar in one piece is
    whole on every chip, and a dashed bar is a term of a sum.

    Args:
        step: gives the strategy and the model.
        lines: names of the weights of the block, in order. The result of the last one
            is added to the residual stream.

    Raises:
        ValueError: the model's layers have no such weight.

    >>> from shardmath.training import step, tensor
    >>> from shardmath.transformer import LLAMA_3_8B
    >>> one = step(tensor("Y"), LLAMA_3_8B, {"Y": 8}, 1, 4096, attention="causal")
    >>> print(block(one, "gate", "up", "down").desc[:44])
    z[B, S_Y, D]; AllGather_Y; z[B, S, D]; gate,
    """
    known = {line.weight.name: line for line in step.model.layer}
    for name in lines:
        if name not in known:
            raise ValueError(f"weight {name!r}: must be one of {', '.join(known)}")
    chosen = [known[name] for name in lines]
    rows = list(_rows(chosen, [step.lines.forward(line) for line in chosen]))
    parts, y = [], 4.0
    for kind, what in rows:
        parts += _drawn(kind, what, y)
        y += ROW
    desc = "; ".join(what for _, what in rows) + ". Four chips are drawn."
    title = f"A block under {step.strategy.name}"
    return picture(title, desc, shapes.framed(title, desc, parts, WIDTH, y + 2))


def _rows(
    lines: Sequence[Matmul], plans: Sequence[ShardingPlan]
) -> Iterator[tuple[str, str]]:
    """What is drawn from top to bottom, and of which kind it is."""
    first, last = plans[0], plans[-1]
    enter = [c for c in first.moved if c.before.name == lines[0].reads.name]
    if enter:
        yield "array", enter[0].before.notation
        yield from _moves(enter)
    yield "array", first.a.notation
    yield "step", f"{', '.join(line.weight.name for line in lines[:-1])}: columns"
    for plan in plans[:-1]:
        yield "array", plan.c.notation
    yield "step", "attention" if lines[-1].reads.name == "A" else "activation"
    yield "array", last.a.notation
    yield "step", f"{lines[-1].weight.name}: rows"
    yield "array", last.c.notation
    if last.after:
        yield from _moves(last.after)
        yield "array", last.after[-1].after.notation


def _moves(changes: Sequence[Change]) -> Iterator[tuple[str, str]]:
    for change in changes:
        yield "move", change.title


def _drawn(kind: str, what: str, top: float) -> Iterator[str]:
    """One row: an array as a bar, or an arrow with what happens."""
    if kind == "array":
        yield shapes.written(LEFT - 10, top + 18, what, anchor="end")
        yield from _bar(what, top + (ROW - BAR) / 2)
        return
    moved = kind == "move"
    colour, width = ("network", 3) if moved else ("ink", 1.2)
    x = (LEFT + RIGHT) / 2 - 56
    ends = (x, top), (x, top + ROW)
    yield shapes.line(*ends, colour=colour, width=width, heads="end")
    yield shapes.written(x + 12, top + 18, what, colour, bold=moved)


def _bar(notation: str, top: float) -> Iterator[str]:
    """An array: a piece a chip where it is split, one piece where it is whole."""
    split = "_" in notation.split("{U")[0]
    terms = "{U" in notation
    pieces = PARTS if split else 1
    wide = (RIGHT - LEFT) / pieces
    for n in range(pieces):
        x = LEFT + n * wide
        spot = (x + 1, top, x + wide - 1, top + BAR)
        shade = hue(n) if split else "ink"
        yield shapes.box(*spot, shade, fill=0.3 if split else 0.08, dashed=terms)
