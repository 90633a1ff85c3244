"""A weight tile that is smaller than the array it stands in: the rest multiplies zeros.

The arrays are drawn to one scale, so that a larger one shows what it costs.
"""

from collections.abc import Iterator, Sequence

from ...base.units import positive_int
from ...hardware.systolic import useful
from .. import shapes
from ..picture import Picture

SIDE = 268  # of the largest array, in units


def padding(D: int, F: int | None = None, sizes: Sequence[int] = (128, 256)) -> Picture:
    """Where weights [D, F] stand in arrays of several sizes, and what share works.

    Args:
        D: contracted size: rows of the array that hold weights.
        F: output size: its columns; all of them if not given.
        sizes: sides of the arrays, a panel each.

    Raises:
        ValueError: sizes that are no whole numbers, or weights of more than one tile.

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
