"""A sharded array as a picture: its blocks, and the devices that hold each of them.

The array has the same outline for every layout. A box is a block, and a token in it is
a device that holds the block. Tokens next to each other hold the same values, and a +
between tokens means that they hold terms of one sum.
"""

from collections.abc import Iterator
from itertools import product
from math import ceil

from ...base.units import short_repr
from ...sharding.holders import MANY, part, shown_blocks, terms, two_dims, write
from ...sharding.layout import ShardedArray
from ..labels import text_width
from ..picture import Picture, picture
from ..shapes import box, framed, label, written
from ..theme import HUES, hue

WIDE, HIGH, FLAT = 264, 176, 84  # of an array, and the height of one with one row
SMALL = 132  # width of an array among several
TOKEN, LINE, PLUS = 21, 20, 13  # a device in a block: width and height; a + sign


def describe(array) -> str:
    """A description of the picture in up to three sentences."""
    mesh = " × ".join(f"{name} {size}" for name, size in array.mesh)
    text = f"{array.notation} in blocks of {list(array.local_shape)}."
    if mesh:
        text += f" Numbers are devices, counted row by row through the mesh {mesh}."
    if hidden := _hidden(array):
        text += f" {', '.join(hidden)} is split too, which is not drawn."
    if array.unreduced:
        text += " Devices joined by + hold the terms of one sum."
    if array.copies > 1:
        text += " Devices side by side in one block hold the same."
    return text


def drawn(array) -> Picture:
    """The picture of one array."""
    return picture(array.notation, describe(array), panel(array, WIDE))


def layouts(*arrays) -> Picture:
    """Several arrays, or one array split in several ways, side by side.

    >>> from shardmath.sharding import array
    >>> grid = {"X": 2, "Y": 2}
    >>> two = (array(a, grid, I=4, J=4) for a in ("A[I_XY, J]", "A[I_YX, J]"))
    >>> layouts(*two).title
    'A[I_XY, J], A[I_YX, J]'

    Raises:
        ValueError: there are no arguments, or one is not a ShardedArray.
    """
    if not arrays:
        raise ValueError("layouts(): must be given at least one array")
    for given in arrays:
        if not isinstance(given, ShardedArray):
            raise ValueError(
                f"layouts: {short_repr(given)}: must be a ShardedArray; `array` makes "
                "one, "
                "and several are given one by one"
            )
    return Picture(
        ", ".join(array.notation for array in arrays),
        " ".join(map(describe, arrays)),
        tuple(panel(array, SMALL) for array in arrays),
    )


def panel(array, wide: float) -> str:
    """One array as `<svg>`: its name, its blocks, and the range of each block."""
    down, across = two_dims(array)
    rows, columns = shown_blocks(array, down), shown_blocks(array, across)
    said = [part(array, down, row) for row in rows]
    left = 6 + (6 + max(map(text_width, said)) if any(said) else 0)
    top = 28 if across is None else 50
    high = FLAT if len(rows) == 1 and down is None else HIGH
    parts = [written(left, 16, array.notation, bold=True)]
    parts += _heads(left, wide, [part(array, across, column) for column in columns])
    for m, words in enumerate(said):
        y = top + (m + 0.5) * high / len(rows)
        parts.append(written(left - 6, y + 5, words, anchor="end"))
    parts += blocks(array, left, top, wide, high)
    bottom = top + high + 6
    width = left + max(wide, text_width(array.notation, bold=True)) + 6
    for words in _notes(array):
        bottom += 18
        parts.append(written(left, bottom - 4, words))
        width = max(width, left + text_width(words) + 6)
    return framed(array.notation, describe(array), parts, width, bottom)


def rows(array) -> int:
    """The number of rows of blocks."""
    return len(shown_blocks(array, two_dims(array)[0]))


def blocks(array, left: float, top: float, wide: float, high: float) -> Iterator[str]:
    """The blocks of `array` in a frame of this size, with their devices."""
    down, across = two_dims(array)
    lines, columns = shown_blocks(array, down), shown_blocks(array, across)
    held_by = terms(array, down, across)
    width, height = wide / len(columns), high / len(lines)
    for (m, row), (n, column) in product(enumerate(lines), enumerate(columns)):
        x, y = left + n * width, top + m * height
        place = (x + 1, y + 1, x + width - 1, y + height - 1)
        if (row, column) not in held_by:
            yield label(*place, "…")
            continue
        held = list(held_by[row, column].values())
        alone = len(held) == 1 and len(held[0]) == 1
        shade = _hue(array, held[0][0]) if alone else "ink"
        yield box(*place, shade, fill=0.22 if alone else 0.04, edge=0.8)
        yield from _tokens(array, held, place)


def _tokens(array, held: list[list[int]], place) -> Iterator[str]:
    """The devices of one block, in its middle, or a text if they do not fit."""
    left, top, right, bottom = place
    words = write(held)
    if words.isdigit():
        yield label(*place, words)
        return
    lines = _lines(held, right - left)
    if not lines or len(lines) * LINE > bottom - top:
        if text_width(words) > right - left - 4:
            words = f"{sum(map(len, held))} chips"
        yield label(*place, words)
        return
    y = (top + bottom - len(lines) * LINE) / 2
    for line in lines:
        x = (left + right - sum(PLUS if d is None else TOKEN for d in line)) / 2
        for device in line:
            if device is None:
                yield label(x, y, x + PLUS, y + LINE, "+")
                x += PLUS
                continue
            spot = (x + 1, y + 1, x + TOKEN - 1, y + LINE - 1)
            yield box(*spot, _hue(array, device), fill=0.22, edge=0.8, round=5)
            yield label(*spot, str(device))
            x += TOKEN
        y += LINE


def _lines(held: list[list[int]], room: float) -> list[list[int | None]]:
    """Devices line by line, with None for a plus sign; empty if they can't fit."""
    if max(map(len, held)) > MANY or len(held) > MANY:
        return []
    if max(text_width(str(device)) for devices in held for device in devices) > TOKEN:
        return []
    if len(held) > 1 and max(map(len, held)) > 1:  # a line for each term
        lines = [[None] * (n > 0) + term for n, term in enumerate(held)]
        wide = max(len(term) for term in held) * TOKEN + PLUS
        return lines if wide <= room else []
    flat = [device for devices in held for device in devices]
    summed = len(held) > 1
    each = int((room - 2) // (TOKEN + PLUS * summed))
    if not each and summed and room >= TOKEN:  # the signs on lines of their own
        return [[n] for device in flat for n in (None, device)][1:]
    if not each:
        return []
    each = ceil(len(flat) / ceil(len(flat) / each))  # lines of one length
    lines = []
    for first in range(0, len(flat), each):
        line = []
        for device in flat[first : first + each]:
            line += [None] * (summed and device != flat[0]) + [device]
        lines.append(line)
    return lines


def _hue(array, device: int) -> str:
    """A colour for each device, or for each run of devices if there are many."""
    return hue(device * len(HUES) // max(array.devices, len(HUES)))


def _heads(left: float, wide: float, said: list[str]) -> Iterator[str]:
    """Ranges above the columns: all, or the first and the last if they don't fit."""
    width = wide / len(said)
    if all(text_width(words) <= width + 2 for words in said):
        for n, words in enumerate(said):
            yield written(left + (n + 0.5) * width, 42, words, anchor="middle")
    elif said:
        first, last = said[0], said[-1]
        yield written(left, 42, first)
        if text_width(first + last) + 12 <= wide:
            yield written(left + wide, 42, last, anchor="end")


def _notes(array) -> list[str]:
    """Notes below the blocks."""
    return [f"a box is split along {dim} too" for dim in _hidden(array)]


def _hidden(array) -> list[str]:
    """Dimensions that are split but can't be drawn."""
    return [
        dim
        for n, dim in enumerate(array.dims)
        if n not in two_dims(array) and array.grid[n] > 1
    ]
