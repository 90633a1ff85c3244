"""A weight tile in a larger systolic array, the rest of which multiplies zeros.

The arrays are drawn on one scale, so you can see what a larger one costs.
"""

from collections.abc import Iterator, Sequence

from ...base.units import positive_int
from ...hardware.systolic import useful
from .. import shapes
from ..picture import Picture

SIDE = 268  # of the largest array, in units


def padding(D: int, F: int | None = None, sizes: Sequence[int] = (128, 256)) -> Picture:
    """Weights [D, F] in arrays of several sizes, and the useful share of each array.

    Args:
        D: the contracted size, in rows of the array.
        F: the output size, in columns of the array. By default, all columns.
        sizes: the sides of the arrays, with a panel for each.

    Raises:
        ValueError: a size is not a whole number from 1, or the weights don't fit into
            an array.

    >>> padding(64).panels[0].count("<rect")
    2
    """
    (D,) = positive_int(D=D)
    sides = positive_int(**{f"sizes[{n}]": size for n, size in enumerate(sizes)})
    if not sides:
        raise ValueError(f"sizes = {sizes!r}: must hold the side of an array")
    columns = [side if F is None else positive_int(F=F)[0] for side in sides]
    for side, wide in zip(sides, columns, strict=True):
        if max(D, wide) > side:
            raise ValueError(
                f"[D, F] = [{D}, {wide}]: must fit an array of side {side}, one tile"
            )
    unit = SIDE / max(sides)
    tiles = list(zip(sides, columns, strict=True))
    desc = " ".join(_said(D, wide, side) for side, wide in tiles)
    title = f"{D} rows of weights in arrays of side {' and '.join(map(str, sides))}"
    panels = tuple(_panel(D, wide, side, unit) for side, wide in tiles)
    return Picture(title, f"{desc} The arrays are to one scale.", panels)


def _said(D: int, F: int, side: int) -> str:
    share = f"{useful(D, F, side):.1%}".replace(".0%", "%")
    return f"Side {side}: weights [{D}, {F}], {share} of the cells do useful work."


def _panel(D: int, F: int, side: int, unit: float) -> str:
    wide = SIDE + 12 if side * unit > SIDE - 1 else max(side * unit, 200) + 12
    desc = f"{_said(D, F, side)} To scale."
    parts = _drawn(D, F, side, unit)
    return shapes.framed(f"Array of side {side}", desc, parts, wide, SIDE + 56)


def _drawn(D: int, F: int, side: int, unit: float) -> Iterator[str]:
    share = f"{useful(D, F, side):.1%}".replace(".0%", "%")
    left, top, end = 6, 48, side * unit
    yield shapes.written(left, 18, f"{side} × {side} cells", bold=True)
    yield shapes.written(left, 38, f"{share} do useful work", "math")
    yield shapes.box(left, top, left + end, top + end, fill=0.06, dashed=True, round=0)
    weights = left, top, left + F * unit, top + D * unit
    yield shapes.box(*weights, "math", fill=0.3, round=0)
    if D * unit >= 24:
        yield shapes.label(*weights, f"[{D}, {F}]")
    if (side - D) * unit >= 24:
        yield shapes.label(left, top + D * unit, left + end, top + end, "zeros")
