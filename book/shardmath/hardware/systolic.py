"""A weight-stationary systolic array, cycle by cycle, like the MXU of a TPU.

A grid of `size` × `size` cells multiplies X[B, D] by W[D, F], one tile of W at a time.
In each cycle a cell

* keeps a weight that arrives from above if it is meant for this row of cells, and
  otherwise passes it down;
* takes an activation from the left and a sum from above, adds the product of the
  activation and its active weight, and passes the activation right and the sum down.

A weight that is kept waits until the first token of its tile arrives, and then becomes
active. Row i starts i cycles after row 0 and column j another j cycles later, so the
work moves as a diagonal wave. A cell reads only its two neighbours, and no formula is
used for the result or the number of cycles: both come out of the simulation.

A real MXU takes in eight tokens every eight cycles and multiplies in bf16; this array
takes one token per cycle and is exact. We assume that weights move down one row per
cycle, and values one cell per cycle. On a TPU v4, the two movements together take less
than half of the time that they take here (chapter 02).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..base.units import flags, number, positive_int, short_repr

Rows = Sequence[Sequence[float]]
LARGEST = 1024  # side of an array that is simulated cell by cell
MOST_PLAYED = 2**22  # cells times cycles of one product: about 3 seconds in Python


class Weight(NamedTuple):
    """A weight on its way down, and the row that it is for."""

    row: int
    value: float


class Activation(NamedTuple):
    """A value of one token on its way to the right."""

    tile: int
    token: int
    value: float


class Cell(NamedTuple):
    """One cell after a cycle; None stands for no value."""

    standing: float | None = None  # the active weight, by which the cell multiplies
    waiting: float | None = None  # the weight of the next tile
    falling: Weight | None = None  # to be passed down
    activation: Activation | None = None  # just used, to be passed right
    total: float = 0  # the sum, to be passed down


Cells = tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Cycle:
    """`cells[row][column]` after `number` cycles, and what enters in the next cycle."""

    number: int
    cells: Cells
    above: tuple[Weight | None, ...]
    beside: tuple[Activation | None, ...]

    @property
    def busy(self) -> int:
        """Cells that multiplied in this cycle."""
        return sum(cell.activation is not None for row in self.cells for cell in row)


@dataclass(frozen=True)
class ArrayRun:
    """A whole product: its result, and how many cells worked in each cycle."""

    result: tuple[tuple[float, ...], ...]
    busy: tuple[int, ...]
    size: int

    @property
    def cycles(self) -> int:
        return len(self.busy)

    @property
    def utilization(self) -> float:
        """Multiplications done, as a share of those that the cells had time for."""
        return sum(self.busy) / (self.size**2 * self.cycles)


def cycles(B: int, tiles: int, size: int, prefetch: bool = True) -> int:
    """Cycles of a product: size + (tiles - 1) max(B, size) + B + 2 size - 2.

    Without prefetch, their number is tiles (size + B) + 2 size - 2. `multiply` takes
    exactly as many. A TPU v4 also takes one cycle per token for a tile, but in addition
    only 160 to 179 cycles, where this formula has 382.

    Args:
        B: tokens.
        tiles: tiles of the weights, each size × size.
        size: side of the array, 128 or 256 in a TPU.
        prefetch: whether the weights of a tile load while the previous tile multiplies.

    Raises:
        ValueError: a number that is not whole, or below 1.

    >>> cycles(B=8, tiles=1, size=4), cycles(8, 3, 4), cycles(8, 3, 4, prefetch=False)
    (18, 34, 42)
    """
    B, tiles, size = positive_int(B=B, tiles=tiles, size=size)
    (prefetch,) = flags(prefetch=prefetch)
    if prefetch:
        return size + (tiles - 1) * max(B, size) + B + 2 * size - 2
    return tiles * (size + B) + 2 * size - 2


def utilization(B: int, tiles: int, size: int, prefetch: bool = True) -> float:
    """Share of the cells' time in which they multiply: tiles B / cycles.

    For many tiles, the share approaches min(1, B / size), or B / (B + size) without
    prefetch.

    >>> [round(utilization(128, tiles, size=128), 3) for tiles in (1, 10, 1000)]
    [0.251, 0.77, 0.997]
    """
    B, tiles, size = positive_int(B=B, tiles=tiles, size=size)
    return tiles * B / cycles(B, tiles, size, prefetch)


def padded(length: int, size: int) -> int:
    """`length` rounded up to whole tiles.

    >>> padded(100, 128), padded(129, 128)
    (128, 256)
    """
    length, size = positive_int(length=length, size=size)
    return -(-length // size) * size


def useful(D: int, F: int, size: int) -> float:
    """Share of the multiplications that are not padding: D F divided by padded D F.

    >>> useful(D=64, F=4096, size=128)
    0.5
    """
    D, F, size = positive_int(D=D, F=F, size=size)
    return D * F / (padded(D, size) * padded(F, size))


def multiply(X: Rows, W: Rows, size: int, prefetch: bool = True) -> ArrayRun:
    """X[B, D] · W[D, F] on the array, with every cycle simulated.

    Args:
        X, W: nested sequences of numbers; padded with zeros to whole tiles.
        size: side of the array.
        prefetch: see `cycles`.

    Raises:
        ValueError: arrays that are empty, ragged or not matrices, lengths that do not
            match, a side above 1024, or more than 4,194,304 cells times cycles, since
            every cell is simulated in every cycle. `cycles` has no such limit.

    >>> run = multiply([[1, 2], [3, 4]], [[1, 0], [0, 1]], size=2)
    >>> run.result, run.busy
    (((1, 2), (3, 4)), (0, 0, 1, 3, 3, 1))
    """
    result: dict[tuple[int, int], float] = {}
    busy = []
    X, W = _numbers("X", X), _numbers("W", W)
    (size,) = positive_int(size=size)
    _refuse_too_many(X, W, size, prefetch)
    for cycle in steps(X, W, size, prefetch):
        busy.append(cycle.busy)
        for column, cell in enumerate(cycle.cells[-1]):
            if cell.activation:  # a finished sum leaves at the bottom
                tile, token, _ = cell.activation
                f = tile // (padded(len(W), size) // size) * size + column
                result[token, f] = result.get((token, f), 0) + cell.total
    rows = tuple(tuple(result[b, f] for f in range(len(W[0]))) for b in range(len(X)))
    return ArrayRun(rows, tuple(busy[1:]), size)


def _refuse_too_many(X: Rows, W: Rows, size: int, prefetch: bool) -> None:
    """Refuse a product for which too many cells would have to be simulated."""
    if size > LARGEST:
        raise ValueError(f"size = {size}: must be at most {LARGEST} to be simulated")
    B, D, F = _shape(X, W)
    tiles = padded(D, size) * padded(F, size) // size**2
    needed = size**2 * cycles(B, tiles, size, prefetch)
    if needed > MOST_PLAYED:
        raise ValueError(
            f"size = {size}: this product takes {needed:,} cells times cycles, must be "
            f"at most {MOST_PLAYED:,}; `cycles` counts cycles without simulating them"
        )


def steps(X: Rows, W: Rows, size: int, prefetch: bool = True) -> Iterator[Cycle]:
    """The empty array, then the array after each cycle; arguments as for `multiply`."""
    (size,), (prefetch,) = positive_int(size=size), flags(prefetch=prefetch)
    if size > LARGEST:
        raise ValueError(f"size = {size}: must be at most {LARGEST} to be simulated")
    tokens, tiles = _tiled(X, W, size)
    above = [{} for _ in range(size)]  # by column: the weights, by cycle
    beside = [{} for _ in range(size)]  # by row: the activations, by cycle
    load, start = 0, size  # when the tile's weights, and its tokens, reach the corner
    for t, (down, block) in enumerate(tiles):
        for n in range(size):
            for m in range(size):  # the lowest row's weight enters first
                row = size - 1 - m
                above[n][load + n + m] = Weight(row, block[row][n])
            for b, values in enumerate(tokens):
                beside[n][start + n + b] = Activation(t, b, values[down + n])
        end = start + len(tokens)
        load = start if prefetch else end
        start = max(end, load + size)
    cells: Cells = ((Cell(),) * size,) * size
    for now in range(end + 2 * size - 1):
        cycle = Cycle(
            now,
            cells,
            tuple(column.get(now) for column in above),
            tuple(row.get(now) for row in beside),
        )
        yield cycle
        cells = _tick(cycle)


def _tick(cycle: Cycle) -> Cells:
    """All cells a cycle later; each reads itself, the one above and the one left."""
    cells, size = cycle.cells, range(len(cycle.cells))

    def later(i: int, j: int) -> Cell:
        here = cells[i][j]
        over = cells[i - 1][j] if i else Cell(falling=cycle.above[j])
        entering = cells[i][j - 1].activation if j else cycle.beside[i]
        standing, waiting, weight = here.standing, here.waiting, over.falling
        if entering and entering.token == 0:
            standing, waiting = waiting, None
        if weight and weight.row == i:
            waiting, weight = weight.value, None
        if entering is None:
            return Cell(standing, waiting, weight)
        total = over.total + entering.value * standing
        return Cell(standing, waiting, weight, entering, total)

    return tuple(tuple(later(i, j) for j in size) for i in size)


def _numbers(name: str, rows: Rows) -> list[list[float]]:
    """The matrix in Python's own numbers, which do not overflow."""
    read = []
    try:
        for row in rows:  # one by one: a long text is refused at its first letter
            read.append([number(name, value) for value in row])
    except TypeError:
        raise ValueError(
            f"{name} = {short_repr(rows)}: must be rows of numbers"
        ) from None
    return read


def _tiled(X: Rows, W: Rows, size: int):
    """Tokens, padded, and the tiles of W, each with its first row."""
    X, W = _numbers("X", X), _numbers("W", W)
    _, D, F = _shape(X, W)
    deep, far = padded(D, size), padded(F, size)
    whole = [[*row, *[0] * (far - F)] for row in W] + [[0] * far] * (deep - D)
    tokens = [[*row, *[0] * (deep - D)] for row in X]
    tiles = [
        (d, [row[f : f + size] for row in whole[d : d + size]])
        for f in range(0, far, size)
        for d in range(0, deep, size)
    ]
    return tokens, tiles


def _shape(X: Rows, W: Rows) -> tuple[int, int, int]:
    """B, D and F of X[B, D] · W[D, F]."""
    across, wide = {len(row) for row in X}, {len(row) for row in W}
    if across != {len(W)} or len(wide) != 1 or wide == {0}:
        raise ValueError(
            f"X has rows of {short_repr(sorted(across))} values, W has {len(W)} rows "
            f"of {short_repr(sorted(wide))}: must be X[B, D] and W[D, F], neither empty"
        )
    return len(X), len(W), len(W[0])
