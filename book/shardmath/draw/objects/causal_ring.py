"""The queries and keys of a causal sequence as a square, and the work of each chip."""

from collections.abc import Iterator

from ...training.causal_ring import CausalRing
from .. import shapes
from ..theme import hue

ROWS = 4  # tokens of a chip that are drawn


def square(
    ring: CausalRing, left: float, top: float, side: float, step: int | None = None
) -> Iterator[str]:
    """A row for each query and a column for each key, filled if the query sees the key.

    A short sequence in the same order is drawn, with 4 tokens per chip. A row has the
    colour of the chip that holds its query.

    Args:
        ring: gives the order and the number of chips.
        left, top, side: the position and the size of the square.
        step: if given, only what is computed in this step is filled strongly.
    """
    small = CausalRing(ring.order, ring.chips, ROWS * ring.chips)
    unit = side / small.seq
    for query in range(small.seq):
        chip, y = small.holder(query), top + query * unit
        faint = 0.75 if step is None else 0.2
        yield _row(left, y, 0, query + 1, unit, chip, faint)
        if step is not None:
            keys = small.tokens((chip - step) % ring.chips)
            for start, end in _runs(keys, query):
                yield _row(left, y, start, end, unit, chip, 1)
    yield shapes.box(left, top, left + side, top + side, fill=0, edge=0.5, round=0)


def loads(
    amounts: tuple[float, ...],
    full: float,
    left: float,
    top: float,
    wide: float,
    high: float,
    words: tuple[str, ...] = (),
) -> Iterator[str]:
    """A bar for the work of each chip, one below the other, on one scale.

    Args:
        amounts: the work of each chip.
        full: the amount of a bar with the full width.
        left, top, wide, high: the position of the first bar, the full width, and the
            height of a row.
        words: the text next to each bar.
    """
    for chip, amount in enumerate(amounts):
        y = top + chip * high
        yield shapes.box(left, y, left + wide, y + high - 4, fill=0, edge=0.25, round=0)
        ends = left, y, left + wide * amount / full, y + high - 4
        colour, key = hue(chip), f"work {chip}"
        yield shapes.box(*ends, colour, fill=0.75, edge=0, round=0, key=key)
        if words:
            yield shapes.written(left + wide + 6, y + high - 8, words[chip])


def _row(
    left: float, y: float, start: int, end: int, unit: float, chip: int, fill: float
) -> str:
    ends = left + start * unit, y + 0.4, left + end * unit, y + unit - 0.4
    return shapes.box(*ends, hue(chip), fill=fill, edge=0, round=0)


def _runs(keys: tuple[range, ...], query: int) -> Iterator[tuple[int, int]]:
    """The keys that the query sees, with adjacent keys merged."""
    for part in keys:
        if part.step == 1:
            if part.start <= query:
                yield part.start, min(part.stop, query + 1)
        else:
            yield from ((key, key + 1) for key in part if key <= query)
