"""The live figure "kernel": counts blocks of a matmul that stream through VMEM."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from ...base.units import MiB, show
from ...hardware import blocks
from ...hardware.blocks import BlockedArray, BlockedKernel
from ...hardware.chips import CHIPS, Chip, find
from ..shapes import box, framed, written
from .controls import Choice, Drawing, Figure, Slider

SIDE = 2048  # of all three matrices
SHOWN = 24  # moments from the first step to the last, at most
CHIP_NAMES = {CHIPS[key].name: key for key in blocks.SCOPED_VMEM}
PLACES = {"X": (6, 196), "Y": (150, 42), "Z": (150, 196)}  # corners of the matrices
SIZE, RIGHT, COLUMN = 130, 410, 294
BARS = 356  # top of the bars of traffic
WIDE, HIGH = 416, 492


def _found(name: str) -> str:
    """The name of the option with another spelling."""
    return find(name).name


ROWS = Slider("rows", "Rows of a tile", "rows", 256, SIDE, 512)
COLUMNS = Slider("columns", "Columns of a tile", "columns", 256, SIDE, 512)
DEPTH = Slider("depth", "Depth of a step", "values", 256, SIDE, 512)
MOMENT = Slider("moment", "Moment", "", 0, SHOWN, 8, step=1, play=True)
CHIP = Choice("chip", "Chip", tuple(CHIP_NAMES), "TPU v5e", _found)


@dataclass(frozen=True)
class State:
    """A kernel after some of its steps.

    Args:
        kernel: the grid and its arrays.
        step: steps done.
    """

    kernel: BlockedKernel
    step: int

    def copied(self, array: BlockedArray) -> float:
        """Bytes of an array that have been read from HBM or written to it."""
        return len(self._copies(array)) * array.block_bytes

    def times(self, array: BlockedArray) -> dict[tuple[int, ...], int]:
        """Block of an array → how often it has been copied."""
        found: dict[tuple[int, ...], int] = {}
        for step in self._copies(array):
            block = array.index(*self.place(step))
            found[block] = found.get(block, 0) + 1
        return found

    def place(self, step: int) -> tuple[int, ...]:
        """The indices of the grid in a step."""
        found = []
        for side in reversed(self.kernel.grid):
            step, index = divmod(step, side)
            found.append(index)
        return tuple(reversed(found))

    def _copies(self, array: BlockedArray) -> tuple[int, ...]:
        done = self.kernel.crossings(array)
        return tuple(step for step in done if step < self.step)


def draw(moment: int, rows: int, columns: int, depth: int, chip: str) -> Drawing:
    """The matrices with the blocks that are in VMEM, and the HBM traffic so far."""
    kernel = blocks.matmul(SIDE, SIDE, SIDE, (rows, columns), depth)
    every = ceil(kernel.steps / SHOWN)  # steps of a moment
    state = State(kernel, min(moment * every, kernel.steps))
    machine = CHIPS[CHIP_NAMES[chip]]
    limit, ridge = blocks.SCOPED_VMEM[machine.id], machine.intensity()
    traffic = sum(kernel.traffic.values())
    crossed = sum(state.copied(array) for array in kernel.arrays)
    share = min(1, kernel.intensity / ridge)
    over = kernel.vmem - limit
    fits = "fit" if over <= 0 else f"need {show(over, 'capacity')} more than there is"
    summary = (
        f"After {state.step} of {kernel.steps} steps, {show(crossed, 'capacity')} of "
        f"{show(traffic, 'capacity')} have crossed the HBM. The kernel does "
        f"{kernel.intensity:.0f} FLOPs per byte, and the {machine.name} needs "
        f"{ridge:.0f} to reach its peak, so it can reach {share:.0%} of it. Its blocks "
        f"take {show(kernel.vmem, 'capacity')} of {show(limit, 'capacity')} of VMEM "
        f"and {fits}."
    )
    data = {
        "step": state.step,
        "steps": kernel.steps,
        "crossed": crossed,
        "traffic": kernel.traffic,
        "intensity": kernel.intensity,
        "ridge": ridge,
        "vmem": kernel.vmem,
        "limit": limit,
    }
    title = f"Tiles of {rows:,} × {columns:,}, in steps of {depth:,}"
    parts = [written(6, 16, title, bold=True)]
    for array in kernel.arrays:
        parts += _matrix(state, array)
    parts += _told(kernel, machine, limit)
    parts += _bars(state)
    svg = framed(title, summary, parts, WIDE, HIGH)
    readout = [("", "value")]
    readout += [
        (f"{array.name} {'written' if array.written else 'read'} in all",
         show(kernel.traffic[array.name], "capacity"))
        for array in kernel.arrays
    ]  # fmt: skip
    readout += [
        ("steps", f"{kernel.steps}"),
        ("FLOPs per byte", f"{kernel.intensity:.0f}"),
        ("FLOPs per byte that the chip needs", f"{ridge:.0f}"),
        ("of the peak, at most", f"{share:.0%}"),
        ("VMEM for blocks and sums", show(kernel.vmem, "capacity")),
        ("VMEM that a kernel may use", show(limit, "capacity")),
    ]
    return Drawing(svg, summary, tuple(readout), data, last=ceil(kernel.steps / every))


def _matrix(state: State, array: BlockedArray) -> Iterator[str]:
    """One matrix in blocks: the more often one crossed, the darker; the present one."""
    left, top = PLACES[array.name]
    down, across = (
        side // part for side, part in zip(array.shape, array.block, strict=True)
    )
    high, wide = SIZE / down, SIZE / across
    colour = "math" if array.written else "HBM"
    kernel = state.kernel
    most = max(1, len(kernel.changes[array.name]) // (down * across))
    yield written(left, top - 6, f"{array.name} [{SIDE:,}, {SIDE:,}]", colour)
    for (row, column), times in sorted(state.times(array).items()):
        yield box(
            left + column * wide, top + row * high,
            left + (column + 1) * wide, top + (row + 1) * high,
            colour, fill=0.12 + 0.48 * times / most, edge=0, round=0,
        )  # fmt: skip
    for n in range(down + 1):
        y = top + n * high
        yield _rule(left, y, left + SIZE, y)
    for n in range(across + 1):
        x = left + n * wide
        yield _rule(x, top, x, top + SIZE)
    row, column = array.index(*state.place(min(state.step, kernel.steps - 1)))
    yield box(
        left + column * wide, top + row * high,
        left + (column + 1) * wide, top + (row + 1) * high,
        "ink", fill=0, edge=1, round=0, key=f"{array.name} now",
    )  # fmt: skip


def _rule(ax: float, ay: float, bx: float, by: float) -> str:
    path = f"M{ax:.1f} {ay:.1f}L{bx:.1f} {by:.1f}"
    return f'<path d="{path}" stroke="currentColor" stroke-opacity=".25"/>'


def _told(kernel: BlockedKernel, chip: Chip, limit: float) -> Iterator[str]:
    """What VMEM holds, as a column that is as high as what the kernel may use."""
    left, top, bottom = COLUMN, 66, 172
    yield written(left, 34, "VMEM", bold=True)
    yield written(left, 54, f"{show(kernel.vmem, 'capacity')} of")
    yield written(left + 34, top + 22, f"{show(limit, 'capacity')}")
    share = kernel.vmem / limit
    full = min(1, share)
    yield box(left, top, left + 26, bottom, fill=0.04, edge=0.6, round=0)
    colour = "math" if share <= 1 else "hue8"
    yield box(left, bottom - full * (bottom - top), left + 26, bottom, colour,
              fill=0.6, edge=0, round=0, key="vmem")  # fmt: skip
    word = "fits" if share <= 1 else "too large"
    yield written(left + 34, top + 44, word, colour, bold=True, key="word")
    ridge = chip.intensity()
    yield written(left, 216, "FLOPs/byte", bold=True)
    yield written(left, 236, f"{kernel.intensity:.0f}", "math", key="intensity")
    yield written(left, 256, f"needed: {ridge:.0f}")
    peak = min(1, kernel.intensity / ridge)
    yield written(left, 288, "of the peak,")
    yield written(left, 306, f"at most {peak:.0%}", "math", bold=True, key="peak")


def _bars(state: State) -> Iterator[str]:
    """Bytes that have crossed, of those that will, for each matrix."""
    kernel = state.kernel
    largest = max(kernel.traffic.values())
    for n, array in enumerate(kernel.arrays):
        top = BARS + 46 * n
        total, now = kernel.traffic[array.name], state.copied(array)
        verb = "written" if array.written else "read"
        once = SIDE * SIDE * array.itemsize
        words = f"{array.name}: {now / MiB:.0f} of {total / MiB:.0f} MiB {verb}"
        if total > once:
            words += f", {total / once:.0f} times its size"
        colour = "math" if array.written else "HBM"
        yield written(6, top, words, key=f"{array.name} words")
        end = 6 + (RIGHT - 6) * total / largest
        yield box(6, top + 6, end, top + 22, fill=0.04, edge=0.35, round=0)
        share = 6 + (RIGHT - 6) * now / largest
        yield box(6, top + 6, share, top + 22, colour, fill=0.7, edge=0, round=0,
                  key=f"{array.name} bar")  # fmt: skip


FIGURE = Figure(
    "kernel",
    "Blocks that stream through VMEM",
    (MOMENT, ROWS, COLUMNS, DEPTH, CHIP),
    draw,
    first="moment",
    presets={
        "small tiles": {"rows": 256, "columns": 256, "depth": 256, "moment": 10},
        "at the ridge": {"rows": 512, "columns": 512, "depth": 512, "moment": 8},
        "X stays": {"rows": 512, "columns": 512, "depth": 2048, "moment": 7},
        "too large": {"rows": 2048, "columns": 2048, "depth": 512, "moment": 2},
    },
    row=("moment", "rows", "columns"),
)
