"""A sharded array as a picture: blocks, and in each the devices that hold it."""

from collections import defaultdict
from html import escape
from itertools import product

from ..drawing.labels import FONT, text_width
from ..drawing.theme import COLOURS
from ..tables import Table, table

MANY = 8  # blocks along one dimension, or devices in one block, that are all written
CELL_WIDTH, CELL_HEIGHT, SHEET = 72, 40, 5


def holders(array) -> Table:
    """Rows and columns of blocks; in each the numbers of the devices that hold it."""
    down, across = _drawn(array)
    cells = _cells(array, down, across)
    rows, columns = _some(array, down), _some(array, across)
    return table(
        ["", *(_part(array, across, column) for column in columns)],
        [
            [
                _part(array, down, row),
                *(cells.get((row, column), "…") for column in columns),
            ]
            for row in rows
        ],
    )


def describe(array) -> str:
    """What the picture shows, in a sentence or three."""
    mesh = " × ".join(f"{name} {size}" for name, size in array.mesh)
    text = f"{array.notation} in blocks of {list(array.local_shape)}."
    if mesh:
        text += f" Numbers are devices, counted row by row through the mesh {mesh}."
    hidden = [
        dim
        for n, dim in enumerate(array.dims)
        if n not in _drawn(array) and array.grid[n] > 1
    ]
    if hidden:
        text += f" {', '.join(hidden)} is split too, which is not drawn."
    if array.unreduced:
        text += " Devices joined by + hold the terms of one sum."
    if array.copies > 1:
        text += " Devices with a comma between them hold the same."
    return text


def draw(array, ground: bool = False) -> str:
    """The picture as `<svg>`; on a white ground for hosts that show it as an image."""
    down, across = _drawn(array)
    cells = _cells(array, down, across)
    rows, columns = _some(array, down), _some(array, across)
    said = [_part(array, down, row) for row in rows]
    width = max(CELL_WIDTH, *(text_width(cell) + 12 for cell in cells.values()))
    width = max(width, *(text_width(_part(array, across, c)) + 12 for c in columns))
    left, top = 12 + max(map(text_width, said)), 28
    sheets = min(array.ways(array.unreduced), 3) - 1
    parts = []
    for n, column in enumerate(columns):
        middle = left + (n + 0.5) * width
        parts.append(_text(middle, 18, _part(array, across, column)))
    for m, row in enumerate(rows):
        y = top + m * (CELL_HEIGHT + sheets * SHEET)
        parts.append(_text(left - 8, y + CELL_HEIGHT / 2 + 5, said[m], "end"))
        for n, column in enumerate(columns):
            x = left + n * width
            if (row, column) not in cells:
                parts.append(_text(x + width / 2, y + CELL_HEIGHT / 2 + 5, "…"))
                continue
            for sheet in range(sheets, -1, -1):
                parts.append(_cell(x, y, width - sheets * SHEET, sheet, row + column))
            middle = x + (width - sheets * SHEET) / 2
            text = cells[row, column]
            parts.append(_text(middle, y + CELL_HEIGHT / 2 + 5, text))
    right = left + len(columns) * width + 4
    bottom = top + len(rows) * (CELL_HEIGHT + sheets * SHEET) + 4
    size = f'width="{right:.0f}" height="{bottom:.0f}"'
    colour = ' color="#1f2328" font-family="sans-serif"' if ground else ""
    paper = f'<rect {size} fill="#fff"/>' if ground else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
        f'viewBox="0 0 {right:.0f} {bottom:.0f}" style="max-width: 100%; height: auto" '
        f'role="img" font-size="{FONT}"{colour}>'
        f"<title>{escape(array.notation)}</title><desc>{escape(describe(array))}</desc>"
        f"{paper}{''.join(parts)}</svg>"
    )


def figure(array) -> str:
    """The picture with its description under it, as HTML."""
    return (
        f'<figure style="margin: 0">{draw(array)}'
        f"<figcaption>{escape(describe(array))}</figcaption></figure>"
    )


def _drawn(array) -> tuple[int, int | None]:
    """Two dimensions to draw, down and across: split ones before whole ones."""
    order = sorted(range(len(array.dims)), key=lambda n: (array.grid[n] == 1, n))
    chosen = sorted(order[:2])
    return (None, chosen[0]) if len(chosen) == 1 else tuple(chosen)


def _cells(array, down, across) -> dict[tuple[int, int], str]:
    """What to write in each block that is drawn."""
    held = defaultdict(lambda: defaultdict(list))
    for number, place in enumerate(array.places()):
        index = array.index(place)
        at = tuple(0 if n is None else index[n] for n in (down, across))
        # Two devices that differ here hold the same numbers, or different terms.
        term = tuple(place[axis] for axis in array.unreduced)
        held[at][term].append(number)
    shown = set(product(_some(array, down), _some(array, across)))
    return {at: _write(terms) for at, terms in held.items() if at in shown}


def _write(terms: dict[tuple, list[int]]) -> str:
    groups = [_list(numbers) for numbers in terms.values()]
    if len(groups) == 1:
        return groups[0]
    if len(groups) > MANY:
        return f"{groups[0]} + … + {groups[-1]}"
    return " + ".join(
        g if len(t) == 1 else f"({g})"
        for g, t in zip(groups, terms.values(), strict=True)
    )


def _list(numbers: list[int]) -> str:
    if len(numbers) > MANY:
        return f"{numbers[0]}, {numbers[1]}, … {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _some(array, dim: int | None) -> list[int]:
    """Blocks to draw along one dimension; -1 stands for those left out."""
    n = 1 if dim is None else array.grid[dim]
    return list(range(n)) if n <= MANY else [0, 1, 2, -1, n - 1]


def _part(array, dim: int | None, block: int) -> str:
    """Name and range of one block along one dimension."""
    if dim is None:
        return ""
    if block < 0:
        return "…"
    size = array.local_shape[dim]
    return f"{array.dims[dim]} {block * size}:{(block + 1) * size}"


def _cell(x: float, y: float, width: float, sheet: int, parity: int) -> str:
    paint = f"var(--sm-math, {COLOURS['math']})"
    x, y = x + sheet * SHEET, y + sheet * SHEET
    opacity = 0 if sheet else 0.22 if parity % 2 else 0.1  # of those behind, the edge
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width - 3:.1f}" '
        f'height="{CELL_HEIGHT - 3}" rx="3" fill="{paint}" '
        f'fill-opacity="{opacity}" stroke="{paint}"/>'
    )


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor">'
        f"{escape(text)}</text>"
    )
