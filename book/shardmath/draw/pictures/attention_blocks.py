"""Flash attention at one moment, with the block of the scores that is on the chip."""

from collections.abc import Iterator

from ...base.units import non_negative_int
from ...hardware.blocks import BlockedKernel
from ..picture import WIDEST, Picture, picture
from ..shapes import box, framed, label, written

LEFT, TOP, SIDE, THICK = 96, 96, 200, 22  # of the scores, and of the strips


def attention_blocks(kernel: BlockedKernel, row: int, column: int) -> Picture:
    """The scores of one head in blocks: finished, in progress, and not yet begun.

    Args:
        kernel: from `blocks.attention`.
        row, column: the numbers of the current blocks of queries and of keys.

    Raises:
        ValueError: there is no such block.
    """
    row, column = non_negative_int(row=row, column=column)
    _, down, across = kernel.grid
    if row >= down or column >= across:
        raise ValueError(
            f"row = {row}, column = {column}: must be within {down} × {across} blocks"
        )
    queries, keys, _, _ = kernel.arrays
    title = "The scores of one head, block by block"
    desc = (
        f"{down} blocks of {queries.block[1]} queries and {across} blocks of "
        f"{keys.block[1]} keys. {row} rows of blocks are done, and block "
        f"{column + 1} of row {row + 1} is on the chip: one block of queries, one of "
        "keys and values, and m, ℓ and a for each query."
    )
    parts = [written(8, 18, title, bold=True)]
    parts += _strips(down, across, row, column)
    parts += _scores(down, across, row, column)
    return picture(title, desc, framed(title, desc, parts, WIDEST, TOP + SIDE + 14))


def _strips(down: int, across: int, row: int, column: int) -> Iterator[str]:
    """Queries on the left, keys and values above, m, ℓ and a on the right."""
    high, wide = SIDE / down, SIDE / across
    yield written(LEFT, TOP - 2 * THICK - 12, "keys and values", "HBM")
    for n in range(across):
        at = LEFT + n * wide
        fill = 0.85 if n == column else 0.15
        for top in (TOP - 2 * THICK - 4, TOP - THICK - 4):
            yield box(at, top, at + wide, top + THICK - 4, "HBM", fill=fill, round=0)
    yield written(8, TOP + 16, "queries", "HBM")
    end = LEFT + SIDE
    for n in range(down):
        at = TOP + n * high
        fill = 0.85 if n == row else 0.15
        yield box(LEFT - THICK - 4, at, LEFT - 6, at + high, "HBM", fill=fill, round=0)
        done = 0.35 if n < row else 0.0
        now = n == row
        yield box(end + 6, at, end + 6 + THICK, at + high, "math",
                  fill=0.85 if now else done, round=0, dashed=n > row)  # fmt: skip
    at = TOP + (row + 0.5) * high
    yield written(end + THICK + 14, at + 5, "m, ℓ and a", "math")


def _scores(down: int, across: int, row: int, column: int) -> Iterator[str]:
    high, wide = SIDE / down, SIDE / across
    for i in range(down):
        for j in range(across):
            left, top = LEFT + j * wide, TOP + i * high
            ends = (left, top, left + wide, top + high)
            if (i, j) == (row, column):
                yield box(*ends, "math", fill=0.85, edge=1, round=0)
            else:
                passed = (i, j) < (row, column)
                yield box(*ends, fill=0.06 if passed else 0, edge=0.25, round=0,
                          dashed=not passed)  # fmt: skip
    if row:
        yield label(LEFT, TOP, LEFT + SIDE, TOP + row * high, "used and forgotten")
