"""Rows of a few experts in whole blocks, with their padding."""

from collections.abc import Iterator, Sequence

from ...base.units import non_negative_int, pluralize, positive_int, short_repr
from ..picture import WIDEST, Picture, picture
from ..shapes import box, framed, written

LEFT, RIGHT, TOP, ROW, HIGH = 82, WIDEST - 8, 30, 26, 18


def row_blocks(counts: Sequence[int], rows: int) -> Picture:
    """A line for each expert with its rows, padded to whole blocks.

    Args:
        counts: rows of each expert, for at most 12 experts.
        rows: rows of a block.

    Raises:
        ValueError: there are no experts or too many, or a count is not a whole number.

    >>> print(row_blocks([300, 5], rows=128).desc)
    The experts have 300, 5 rows. They fill 4 blocks of 128, of which 60% is useful.
    """
    (rows,) = positive_int(rows=rows)
    if not 1 <= len(counts) <= 12:
        raise ValueError(f"counts = {short_repr(counts)}: must be 1 to 12 experts")
    some = non_negative_int(**{f"counts[{n}]": count for n, count in enumerate(counts)})
    blocks = [-(-count // rows) for count in some]
    held = sum(blocks) * rows
    title = f"Blocks of {rows} rows, for {pluralize(str(len(some)), 'experts')}"
    desc = (
        f"The experts have {', '.join(map(str, some))} rows. They fill "
        f"{pluralize(str(sum(blocks)), 'blocks')} of {rows}, of which "
        f"{sum(some) / max(1, held):.0%} is useful."
    )
    unit = (RIGHT - LEFT) / (max(1, *blocks) * rows)
    parts = [written(8, 18, title, bold=True)]
    for n, (count, whole) in enumerate(zip(some, blocks, strict=True)):
        parts += _expert(n, count, whole, rows, unit)
    height = TOP + ROW * len(some) + 6
    return picture(title, desc, framed(title, desc, parts, WIDEST, height))


def _expert(n: int, count: int, whole: int, rows: int, unit: float) -> Iterator[str]:
    top = TOP + ROW * n
    yield written(8, top + 14, f"{count} rows")
    for block in range(whole):
        left = LEFT + block * rows * unit
        filled = min(rows, count - block * rows)
        yield box(left, top, left + filled * unit, top + HIGH, "math", fill=0.6, edge=0,
                  round=0)  # fmt: skip
        yield box(left, top, left + rows * unit, top + HIGH, fill=0, edge=0.6, round=0)
