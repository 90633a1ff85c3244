"""A table of the devices that hold each block of a sharded array.

Rows and columns are blocks along two dimensions that are split, if there are two.
"""

from collections import defaultdict
from itertools import product

from ..base.tables import Table, table

MANY = 8  # blocks of a dimension, or devices of a block; more are abbreviated


def holders(array) -> Table:
    """Rows and columns of blocks, with the numbers of the devices that hold each."""
    down, across = two_dims(array)
    held = terms(array, down, across)
    cells = {at: write(list(by_term.values())) for at, by_term in held.items()}
    rows, columns = shown_blocks(array, down), shown_blocks(array, across)
    return table(
        ["", *(part(array, across, column) for column in columns)],
        [
            [
                part(array, down, row),
                *(cells.get((row, column), "…") for column in columns),
            ]
            for row in rows
        ],
    )


def two_dims(array) -> tuple[int, int | None]:
    """The dimensions to draw down and across; those that are split are preferred."""
    order = sorted(range(len(array.dims)), key=lambda n: (array.grid[n] == 1, n))
    chosen = sorted(order[:2])
    return (None, chosen[0]) if len(chosen) == 1 else tuple(chosen)


def terms(array, down, across) -> dict[tuple[int, int], dict[tuple, list[int]]]:
    """The devices that hold each block shown, grouped by their term of the sum."""
    held = defaultdict(lambda: defaultdict(list))
    for number, place in enumerate(array.places()):
        index = array.index(place)
        at = tuple(0 if n is None else index[n] for n in (down, across))
        # Devices of one block hold the same numbers if they hold the same term.
        term = tuple(place[axis] for axis in array.unreduced)
        held[at][term].append(number)
    shown = set(product(shown_blocks(array, down), shown_blocks(array, across)))
    return {at: by_term for at, by_term in held.items() if at in shown}


def write(held: list[list[int]]) -> str:
    groups = [_list(numbers) for numbers in held]
    if len(groups) == 1:
        return groups[0]
    if len(groups) > MANY:
        return f"{groups[0]} + … + {groups[-1]}"
    return " + ".join(
        g if len(numbers) == 1 else f"({g})"
        for g, numbers in zip(groups, held, strict=True)
    )


def _list(numbers: list[int]) -> str:
    if len(numbers) > MANY:
        return f"{numbers[0]}, {numbers[1]}, … {numbers[-1]}"
    return ", ".join(map(str, numbers))


def shown_blocks(array, dim: int | None) -> list[int]:
    """Blocks to show along one dimension; -1 stands for blocks that are left out."""
    n = 1 if dim is None else array.grid[dim]
    return list(range(n)) if n <= MANY else [0, 1, 2, -1, n - 1]


def part(array, dim: int | None, block: int) -> str:
    """Name and range of one block along one dimension."""
    if dim is None:
        return ""
    if block < 0:
        return "…"
    size = array.local_shape[dim]
    return f"{array.dims[dim]} {block * size}:{(block + 1) * size}"
