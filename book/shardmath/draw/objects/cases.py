"""A sharded matmul in blocks: as it is written, and as each device multiplies it."""

from collections.abc import Iterator

from ...base.units import short_repr
from ...sharding.contraction import CASES, Contraction
from ...sharding.reshard_step import Change
from ..labels import text_width
from ..picture import WIDEST, Picture
from ..shapes import framed, line, written
from .layout import blocks, rows

EDGE, WIDE, HIGH = 12, 108, 88  # width of an array, and its least height
ROW = 18  # least height of a block
BETWEEN = 34  # two arrays of one line
WAY = 62  # from the line that is asked for to the one that is multiplied
CLEAR = 13  # from the middle of what an arrow says to where its shaft stops


def cases(*ops: Contraction) -> Picture:
    """A panel for each matmul, with its line above, and each device's matmul below.

    Boxes are blocks, and the tokens in them are devices. Arrows show the collectives of
    the plan: down from an operand, or up to the result.

    Raises:
        ValueError: there are no arguments, or one is not a `Contraction`.

    >>> from shardmath.sharding import contract
    >>> sizes = {"I": 8, "J": 8, "K": 8}
    >>> op = contract("A[I, J_X] · B[J_X, K] -> C[I, K]", {"X": 4}, **sizes)
    >>> print(cases(op).title)
    A[I, J_X] · B[J_X, K] → C[I, K]
    """
    if not ops:
        raise ValueError("cases(): must be given at least one matmul")
    for op in ops:
        if not isinstance(op, Contraction):
            raise ValueError(
                f"cases: {short_repr(op)}: must be a Contraction; `contract` makes "
                "one, "
                "and several are given one by one"
            )
    lines = [f"{op.a.notation} · {op.b.notation} → {op.c.notation}" for op in ops]
    desc = " ".join(
        f"{text}, case {op.case}: {CASES[op.case]}; moved: {op.plan.moves}."
        for text, op in zip(lines, ops, strict=True)
    )
    title = f"{len(ops)} matmuls as blocks" if len(ops) > 1 else lines[0]
    return Picture(title, desc, tuple(map(_panel, ops)))


def _panel(op: Contraction) -> str:
    title = f"Case {op.case}, moved: {op.plan.moves}"
    desc = f"{CASES[op.case]}; {op.plan.product}; moved: {op.plan.moves}."
    parts, bottom = as_blocks(op)
    return framed(title, f"{desc[0].upper()}{desc[1:]}", parts, WIDEST, bottom)


def as_blocks(op: Contraction) -> tuple[list[str], float]:
    """The parts of a panel, and its height."""
    plan = op.plan
    parts = [written(EDGE, 18, f"case {op.case}", bold=True)]
    parts.append(written(EDGE + 64, 18, f"moved: {plan.moves}"))
    asked, local = (op.a, op.b, op.c), (plan.a, plan.b, plan.c)
    high = max(HIGH, *(ROW * rows(array) for array in asked + local))
    above = 28.0
    below = above + 24 + high + WAY
    for top, arrays in ((above, asked), (below, local)):
        for left, array in zip(_lefts(), arrays, strict=True):
            parts.append(
                written(left + WIDE / 2, top + 14, array.notation, anchor="middle")
            )
            parts += blocks(array, left, top + 22, WIDE, high)
        for sign, left in zip("·→", _lefts()[1:], strict=True):
            middle = left - BETWEEN / 2
            y = top + 22 + high / 2 + 8
            parts.append(written(middle, y, sign, anchor="middle", size=22))
    ways = (above + 22 + high + 4, below - 4)
    for left, name in zip(_lefts(), (op.a.name, op.b.name, op.c.name), strict=True):
        after = name == op.c.name
        steps = plan.after if after else plan.before
        moved = [s for s in steps if s.before.name == name and s.collective]
        parts += _way(left + WIDE / 2, *ways, moved, upward=after)
    bottom = below + 22 + high + 26
    said = "above: as asked for; below: as each device multiplies"
    parts.append(written(EDGE, bottom - 6, said))
    return parts, bottom


def _way(
    x: float, top: float, bottom: float, moved: list[Change], upward: bool
) -> Iterator[str]:
    """An arrow with the names of its collectives, or a thin line if there are none.

    The shaft is interrupted by the words.
    """
    if not moved:
        yield line((x, top), (x, bottom), width=1, dashed=True, opacity=0.6)
        return
    start, end = (bottom, top) if upward else (top, bottom)
    middle = (top + bottom) / 2
    clear = -CLEAR if upward else CLEAR
    yield line((x, start), (x, middle - clear), colour="network", width=3)
    yield line((x, middle + clear), (x, end), colour="network", width=3, heads="end")
    words = ", ".join(step.title for step in moved)
    half = text_width(words) / 2
    left = min(max(x, EDGE + half), WIDEST - EDGE - half)
    yield written(left, middle + 4, words, "network", "middle")


def _lefts() -> list[float]:
    left = (WIDEST - 3 * WIDE - 2 * BETWEEN) / 2
    return [left + n * (WIDE + BETWEEN) for n in range(3)]
