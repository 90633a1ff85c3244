"""Tokens for experts on other chips, before and after the exchange."""

from collections.abc import Iterator, Sequence
from numbers import Integral

from .. import shapes
from ..picture import WIDEST, Picture
from ..theme import hue

LEFT, TOP, ROW = 64, 50, 34  # of the grid's corner, of a row
MOST = 8  # chips


def exchange(sent: Sequence[Sequence[int]]) -> Picture:
    """An AllToAll as a grid with a row per chip: before it, and transposed after it.

    Args:
        sent: row i, column j: the tokens that chip i has for the experts of chip j.

    Raises:
        ValueError: `sent` is not a square of whole numbers from 0, or has fewer than 2
            or more than 8 rows.

    >>> exchange([[3, 1], [2, 4]]).title
    'Tokens before the dispatch and after it'
    """
    rows = [list(row) for row in sent]
    n = len(rows)
    if not 2 <= n <= MOST or any(len(row) != n for row in rows):
        raise ValueError(f"sent = {sent!r}: must be a square of 2 to {MOST} rows")
    for i, row in enumerate(rows):
        for j, count in enumerate(row):
            if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
                raise ValueError(
                    f"sent[{i}][{j}] = {count!r}: must be a whole number from 0"
                )
    after = [list(column) for column in zip(*rows, strict=True)]
    said = "; ".join(f"chip {i} has {_listed(row)}" for i, row in enumerate(rows))
    got = "; ".join(f"chip {j} has {_listed(row)}" for j, row in enumerate(after))
    before = f"Tokens of each chip, by the chip whose experts they are for: {said}."
    arrived = f"The same tokens there, by the chip they come from: {got}."
    return Picture(
        "Tokens before the dispatch and after it",
        f"{before} {arrived}",
        (
            _panel("Before: for the experts of", before, rows, True),
            _panel("After: tokens from", arrived, after, False),
        ),
    )


def _listed(row: Sequence[int]) -> str:
    return f"{', '.join(map(str, row))}, {sum(row):,} in all"


def _panel(title: str, desc: str, rows: list[list[int]], before: bool) -> str:
    height = TOP + ROW * len(rows) + 6
    return shapes.framed(title, desc, _drawn(title, rows, before), WIDEST, height)


def _drawn(title: str, rows: list[list[int]], before: bool) -> Iterator[str]:
    """A cell for each pair of chips, in the colour of the chip its tokens begin on."""
    wide = (WIDEST - LEFT - 60) / len(rows)
    yield shapes.written(6, 18, title, bold=True)
    for j in range(len(rows)):
        x = LEFT + wide * (j + 0.5)
        yield shapes.written(x, TOP - 10, str(j), anchor="middle")
    yield shapes.written(WIDEST - 6, TOP - 10, "all", anchor="end")
    for i, row in enumerate(rows):
        top = TOP + ROW * i
        yield shapes.written(6, top + 21, f"chip {i}")
        for j, count in enumerate(row):
            spot = (
                LEFT + wide * j + 1,
                top + 1,
                LEFT + wide * (j + 1) - 1,
                top + ROW - 1,
            )
            colour = hue(i if before else j)
            yield shapes.box(*spot, colour, fill=0.25, edge=0.6, dashed=i == j, round=2)
            yield shapes.label(*spot, str(count))
        yield shapes.written(WIDEST - 6, top + 21, f"{sum(row):,}", anchor="end")
