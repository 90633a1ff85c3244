"""A matmul in tiles: what stays on the chip, and what streams past it.

X[B, D] is to the left of the result Z[B, F] and Y[D, F] is above it, on one scale. So
the rows of X and the columns of Y that a tile of Z needs are aligned with the tile.
"""

from collections.abc import Iterator

from ...base.units import positive_int, show
from ...hardware.chips import Chip
from ...hardware.roofline import tiled_matmul
from .. import shapes
from ..picture import Picture, picture

WIDTH = 416
LEFT, TOP, GAP = 6, 26, 14  # of X and Y, and between the arrays
ROOM = 344  # units for D and F side by side
SEEN = 4  # units; a smaller tile can't be seen
WORDS = 160  # units of D at least, for the words over X
LINE = 20


def streaming(
    B: int, D: int, F: int, chip: Chip, tile: tuple[int, int], precision: str = "bf16"
) -> Picture:
    """The tile [b, f] of Z that stays on the chip while strips of X and Y stream past.

    Args:
        B, D, F, chip, tile, precision: as for `roofline.tiled_matmul`.

    Raises:
        ValueError: as for `tiled_matmul`; also if the tile is larger than Z, or a part
            is too small to be seen on the scale of the others.

    >>> from shardmath.hardware.chips import TPU_V5E
    >>> picture = streaming(8192, 8192, 8192, TPU_V5E, tile=(1024, 1024))
    >>> print(picture.desc[:66])
    For a tile of 1024 × 1024 of Z [8192, 8192], 1024 rows of X [8192,
    """
    B, D, F = positive_int(B=B, D=D, F=F)
    op = tiled_matmul(B, D, F, chip, tile, precision=precision)
    b, f = positive_int(**{"tile[0]": tile[0], "tile[1]": tile[1]})
    if b > B or f > F:
        raise ValueError(f"tile = {tile!r}: must fit into the result [{B}, {F}]")
    unit = ROOM / (D + F)
    if min(b, f) * unit < SEEN or D * unit < WORDS or min(B, F) * unit < 24:
        raise ValueError(
            f"[{B}, {D}] · [{D}, {F}] in tiles of {b} × {f}: a part is too small to be "
            "drawn to scale"
        )
    said = (
        f"tile {b} × {f}: {show(4 * b * f, 'capacity')} of fp32 sums stay on the chip",
        f"in all {show(op.flops, 'FLOPs')}, {show(op.nbytes, 'bytes')} to and from HBM",
        f"{op.intensity:.0f} FLOPs per byte; {chip.name} needs "
        f"{chip.intensity(precision):.0f}",
    )
    title = f"[{B}, {D}] · [{D}, {F}] in tiles"
    desc = (
        f"For a tile of {b} × {f} of Z [{B}, {F}], {b} rows of X [{B}, {D}] and {f} "
        f"columns of Y [{D}, {F}] stream past. A step along D brings {b} "
        f"values of X and {f} of Y, for {2 * b * f:,} FLOPs. {'; '.join(said)}. "
        "Arrays, strips and tile are to one scale."
    )
    top = TOP + D * unit + GAP  # of X and Z
    bottom = top + B * unit
    parts = [*_arrays(B, D, F, unit, top), *_moving(B, D, F, b, f, unit, top)]
    for n, line in enumerate(said):
        parts.append(shapes.written(LEFT, bottom + 26 + LINE * n, line))
    height = bottom + 26 + LINE * (len(said) - 1) + 8
    return picture(title, desc, shapes.framed(title, desc, parts, WIDTH, height))


def _arrays(B: int, D: int, F: int, unit: float, top: float) -> Iterator[str]:
    """X, Y and Z in outline, with their names."""
    left = LEFT + D * unit + GAP
    bottom, right = top + B * unit, left + F * unit
    for ends in (
        (LEFT, top, left - GAP, bottom),
        (left, TOP, right, top - GAP),
        (left, top, right, bottom),
    ):
        yield shapes.box(*ends, fill=0.05, round=0)
    yield shapes.written(LEFT, top - 8, f"X [{B}, {D}]")
    yield shapes.written(left, TOP - 8, f"Y [{D}, {F}]")
    yield shapes.written(right + 6, bottom - 4, "Z")


def _moving(
    B: int, D: int, F: int, b: int, f: int, unit: float, top: float
) -> Iterator[str]:
    """A tile of Z, the strips that it needs, and what one step along D brings."""
    left = LEFT + D * unit + GAP
    x = left + (F // f) // 2 * f * unit  # a tile in the middle
    y = top + (B // b) // 2 * b * unit
    wide, high = min(f * unit, left + F * unit - x), min(b * unit, top + B * unit - y)
    strip = {"fill": 0.3, "edge": 0, "round": 0}
    yield shapes.box(LEFT, y, left - GAP, y + high, "HBM", **strip)
    yield shapes.box(x, TOP, x + wide, top - GAP, "HBM", **strip)
    yield shapes.box(x, y, x + wide, y + high, "math", fill=1, edge=0, round=0)
    row, column = y + high / 2, x + wide / 2
    for start, end in (
        ((left - GAP - 56, row), (left - 2, row)),
        ((column, top - GAP - 56), (column, top - 2)),
    ):
        yield shapes.line(start, end, colour="HBM", heads="end")
    for n, words in enumerate(
        ("A step along D brings", f"{b} values of X,", f"{f} values of Y,")
    ):
        yield shapes.written(LEFT, TOP + 14 + LINE * n, words, "HBM" if n else "ink")
    yield shapes.written(LEFT, TOP + 14 + LINE * 3, f"for {2 * b * f:,} FLOPs.", "math")
