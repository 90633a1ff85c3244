"""What the chips of a group hold before a collective, and must hold after it.

Schedules are checked against this definition, in which there are no links. Each chip
has a row of numbers: one number for AllGather and Permute, otherwise one number per
chip. Blocks are named as in `groups`: by the number of a chip, or in an AllToAll by
source · n + destination.

>>> end("reduce_scatter", [[1, 2], [10, 20]])
[{0: 11}, {1: 22}]
>>> end("all_to_all", [[1, 2], [10, 20]])
[{0: 1, 2: 10}, {1: 2, 3: 20}]
"""

import random
from collections.abc import Sequence
from fractions import Fraction

from ...base.units import number, short_repr
from ..link_load import Pairs

Rows = list[list[float]]
HeldParts = dict[int, float]  # number by block name


def rows(op: str, n: int, given: Sequence[Sequence[float]] | None = None) -> Rows:
    """`given` after a check, or random whole numbers of 60 bits, seeded with n.

    The random numbers are so large that sums of different terms will not be equal by
    chance. Floats become fractions, whose sums do not depend on the order.
    """
    width = 1 if op in ("all_gather", "permute") else n
    if given is None:
        draw = random.Random(n)
        return [[draw.getrandbits(60) for _ in range(width)] for _ in range(n)]
    try:
        found = [list(row) for row in given]
    except TypeError as error:
        raise ValueError(
            f"data = {short_repr(given)}: must be {n} rows of {width} numbers"
        ) from error
    if [len(row) for row in found] != [width] * n:
        lengths = [len(row) for row in found]
        raise ValueError(
            f"data has rows of {short_repr(lengths)} numbers: must have {n} rows of "
            f"{width} for {op} on {n} chips"
        )
    return [[_exact(value) for value in row] for row in found]


def _exact(value: object) -> int | Fraction:
    found = number("data", value)
    try:
        return found if isinstance(found, int) else Fraction(found)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"data = {short_repr(value)}: must be a finite number"
        ) from error


def start(op: str, rows: Rows, pairs: Pairs = ()) -> list[HeldParts]:
    """What each chip holds before the collective; for a permute, what it will send."""
    n = len(rows)
    if op == "permute" and pairs:
        sources = {source for source, _ in pairs}
        return [{c: rows[c][0]} if c in sources else {} for c in range(n)]
    if op in ("all_gather", "permute"):
        return [{chip: row[0]} for chip, row in enumerate(rows)]
    first = n if op == "all_to_all" else 0
    return [
        {first * chip + column: value for column, value in enumerate(row)}
        for chip, row in enumerate(rows)
    ]


def end(op: str, rows: Rows, pairs: Pairs = ()) -> list[HeldParts]:
    """What each chip must hold after the collective."""
    n = len(rows)
    chips = range(n)
    if op == "permute":
        sender = {b: a for a, b in pairs or ((c, (c + 1) % n) for c in chips)}
        return [{sender[c]: rows[sender[c]][0]} if c in sender else {} for c in chips]
    if op == "all_gather":
        return [{c: rows[c][0] for c in chips}] * n
    if op == "all_to_all":
        return [{s * n + d: rows[s][d] for s in chips} for d in chips]
    total = [sum(row[c] for row in rows) for c in chips]
    if op == "reduce_scatter":
        return [{c: total[c]} for c in chips]
    return [dict(enumerate(total))] * n
