"""A machine with a large memory and a small scratchpad, which counts the bytes moved.

Programs see the shapes of blocks but never their values, so the values can't influence
which bytes move. To judge a program, its trace is replayed on other values.
"""

from dataclasses import dataclass

from ...base.units import short_repr

VALUE_BYTES = 4
_BLOCKS_FIRST = {  # how many of an operation's arguments are blocks
    "load": 0,
    "zeros": 0,
    "multiply_add": 3,
    "add": 2,
    "multiply": 2,
    "store": 1,
    "free": 1,
}

Matrix = list[list[float]]


@dataclass(frozen=True)
class ScratchBlock:
    """A rectangle of values in the scratchpad."""

    number: int
    rows: int
    cols: int

    @property
    def nbytes(self) -> int:
        return self.rows * self.cols * VALUE_BYTES


class Scratchpad:
    """A scratchpad of `capacity` bytes next to a memory that holds `arrays`.

    Args:
        capacity: bytes that fit in the scratchpad at once. Each value takes 4 bytes.
        arrays: name → rows of equal length, the contents of memory at the start.

    Attributes:
        moved: bytes loaded and stored so far.
        used: bytes of scratchpad in use now.
        flops: additions and multiplications so far.
        trace: the operations so far, as JSON values.

    >>> machine = Scratchpad(capacity=64, arrays={"x": [[1.0, 2.0, 3.0, 4.0]]})
    >>> x = machine.load("x", rows=(0, 1), cols=(0, 4))
    >>> machine.add(x, x)
    >>> machine.store(x, "x", row=0, col=0)
    >>> machine.arrays["x"], machine.moved, machine.used
    ([[2.0, 4.0, 6.0, 8.0]], 32, 16)
    """

    def __init__(self, capacity: int, arrays: dict[str, Matrix]):
        self.capacity = capacity
        self.arrays = {name: [list(row) for row in a] for name, a in arrays.items()}
        self.moved = self.used = self.flops = 0
        self.trace: list[list] = []
        self._held: dict[ScratchBlock, Matrix] = {}
        self._made = 0

    def __repr__(self) -> str:
        return (
            f"Scratchpad({self.used:,} of {self.capacity:,} bytes in use, "
            f"{self.moved:,} bytes moved)"
        )

    def load(
        self, name: str, rows: tuple[int, int], cols: tuple[int, int]
    ) -> ScratchBlock:
        """Copy rows and columns (start, stop) of an array into the scratchpad."""
        array = self._array(name)
        (top, bottom), (left, right) = rows, cols
        self._inside(name, top, bottom, left, right)
        values = [row[left:right] for row in array[top:bottom]]
        block = self._hold(values)
        self.moved += block.nbytes
        self.trace.append(["load", name, [top, bottom], [left, right]])
        return block

    def zeros(self, rows: int, cols: int) -> ScratchBlock:
        """Create a block of zeros in the scratchpad, without moving bytes."""
        for count in (rows, cols):
            if type(count) is not int or count < 1:
                raise ValueError(
                    f"zeros({short_repr(rows)}, {short_repr(cols)}): give two sizes "
                    "above 0"
                )
        self._room(rows * cols * VALUE_BYTES)
        block = self._hold([[0.0] * cols for _ in range(rows)])
        self.trace.append(["zeros", rows, cols])
        return block

    def multiply_add(self, c: ScratchBlock, a: ScratchBlock, b: ScratchBlock) -> None:
        """c += a @ b."""
        if (a.rows, a.cols, b.cols) != (c.rows, b.rows, c.cols):
            shapes = ", ".join(f"[{x.rows}, {x.cols}]" for x in (c, a, b))
            raise ValueError(
                f"multiply_add of shapes {shapes}: must be [i, k], [i, j] and [j, k]"
            )
        left, right, into = self._values(a), self._values(b), self._values(c)
        sums = []
        for totals, row in zip(into, left, strict=True):
            for x, line in zip(row, right, strict=True):
                totals = [t + x * y for t, y in zip(totals, line, strict=True)]
            sums.append(totals)
        self._held[c] = sums
        self.flops += 2 * a.rows * a.cols * b.cols
        self.trace.append(["multiply_add", c.number, a.number, b.number])

    def add(self, a: ScratchBlock, b: ScratchBlock) -> None:
        """a += b, value by value."""
        self._each("add", a, b, lambda x, y: x + y)

    def multiply(self, a: ScratchBlock, b: ScratchBlock) -> None:
        """a *= b, value by value."""
        self._each("multiply", a, b, lambda x, y: x * y)

    def store(self, block: ScratchBlock, name: str, row: int, col: int) -> None:
        """Copy a block into an array, starting at [row, col]. The block isn't freed."""
        values, array = self._values(block), self._array(name)
        self._inside(name, row, row + block.rows, col, col + block.cols)
        for into, line in zip(array[row : row + block.rows], values, strict=True):
            into[col : col + block.cols] = line
        self.moved += block.nbytes
        self.trace.append(["store", block.number, name, row, col])

    def free(self, block: ScratchBlock) -> None:
        """Free a block's space. No bytes move, so first store what you want to keep."""
        self._values(block)
        del self._held[block]
        self.used -= block.nbytes
        self.trace.append(["free", block.number])

    def replay(self, trace: list[list]) -> None:
        """Run the operations of another machine's trace on this machine's values.

        Raises:
            ValueError: an operation does not exist, or its arguments are invalid.
            MemoryError: a block does not fit in the scratchpad.
        """
        blocks: list[ScratchBlock] = []
        for operation, *arguments in trace:
            if operation not in _BLOCKS_FIRST:
                raise ValueError(f"{short_repr(operation)}: no such operation")
            first = _BLOCKS_FIRST[operation]
            handles = [blocks[number] for number in arguments[:first]]
            made = getattr(self, operation)(*handles, *arguments[first:])
            if made is not None:
                blocks.append(made)

    def _array(self, name: str) -> Matrix:
        if name not in self.arrays:
            raise ValueError(
                f"array {short_repr(name)}: memory holds {', '.join(self.arrays)}"
            )
        return self.arrays[name]

    def _inside(self, name: str, top: int, bottom: int, left: int, right: int) -> None:
        high, wide = len(self.arrays[name]), len(self.arrays[name][0])
        whole = all(type(edge) is int for edge in (top, bottom, left, right))
        if not (whole and 0 <= top < bottom <= high and 0 <= left < right <= wide):
            raise ValueError(
                f"rows ({top}, {bottom}), columns ({left}, {right}) of {name}: "
                f"give (start, stop) inside its {high} rows and {wide} columns"
            )

    def _room(self, nbytes: int) -> None:
        if self.used + nbytes > self.capacity:
            raise MemoryError(
                f"a block of {nbytes:,} bytes does not fit: {self.used:,} of "
                f"{self.capacity:,} bytes of scratchpad are in use"
            )

    def _hold(self, values: Matrix) -> ScratchBlock:
        block = ScratchBlock(self._made, len(values), len(values[0]))
        self._room(block.nbytes)
        self._held[block] = values
        self._made += 1
        self.used += block.nbytes
        return block

    def _values(self, block: ScratchBlock) -> Matrix:
        if block not in self._held:
            raise ValueError(
                f"{short_repr(block)} is no longer in the scratchpad: it was freed"
            )
        return self._held[block]

    def _each(self, operation: str, a: ScratchBlock, b: ScratchBlock, function) -> None:
        if (a.rows, a.cols) != (b.rows, b.cols):
            raise ValueError(
                f"{operation} of [{a.rows}, {a.cols}] and [{b.rows}, {b.cols}]: "
                "the shapes must be equal"
            )
        left, right = self._values(a), self._values(b)
        self._held[a] = [
            [function(x, y) for x, y in zip(p, q, strict=True)]
            for p, q in zip(left, right, strict=True)
        ]
        self.flops += a.rows * a.cols
        self.trace.append([operation, a.number, b.number])
