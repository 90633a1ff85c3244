"""A contraction over two chips, with half of D each and an exchange of partial sums."""

from collections.abc import Iterator

from ...base.units import show
from ...hardware.chips import Chip
from ...hardware.roofline import split_matmul
from .. import shapes
from ..picture import Picture, picture

WIDTH = 416
COLUMN = 180  # width of a chip
CHIPS = (6, WIDTH - 6 - COLUMN)  # where the two begin
HIGH, WIDE = 56, COLUMN - 20  # of the result, in each chip
SUMS, RESULT = 150, 246  # where the partial sums and the finished ones stand


def two_chips(
    B: int,
    D: int,
    F: int,
    chip: Chip,
    bandwidth: float | None = None,
    precision: str = "bf16",
) -> Picture:
    """X[B, D_X] · Y[D_X, F] over two chips, and the traffic on the link between them.

    Args:
        B, D, F, chip, bandwidth, precision: as for `roofline.split_matmul`.

    >>> from shardmath.hardware.chips import TPU_V5E
    >>> print(two_chips(4096, 16_384, 8192, TPU_V5E).desc[-61:])
    67.1 MB each way, 1.34 ms at 50 GB/s. Boxes are not to scale.
    """
    op = split_matmul(B, D, F, chip, bandwidth, precision)
    legs = {leg.resource: leg for leg in op.legs}
    net, times = legs["network"], {name: show(t, "s") for name, t in op.seconds.items()}
    sent = show(net.amount, "bytes")
    rate = show(net.rate, "bytes/s")
    title = f"[{B:g}, {D:g}] · [{D:g}, {F:g}] over two {chip.name}"
    desc = (
        "Each chip has half of the columns of X and half of the rows of Y, multiplies "
        f"them in {times['math']} and holds partial sums of all of Z, [{B:g}, {F:g}]. "
        "1: chip 0 sends the lower half of its sums and chip 1 the upper half of its "
        "own; each adds. 2: each sends the half that it finished. Together that is "
        f"{sent} each way, {times['network']} at {rate}. Boxes are not to scale."
    )
    parts = [
        *_chip(0, times["math"]),
        *_chip(1, times["math"]),
        *_exchange(SUMS, "1", away=(False, True)),
        *_exchange(RESULT, "2", away=(True, False)),
        shapes.written(6, 340, f"1 and 2 together: {sent} each way,", "network"),
        shapes.written(6, 360, f"{times['network']} at {rate} one-way.", "network"),
        shapes.written(6, 380, "Boxes are not to scale."),
    ]
    return picture(title, desc, shapes.framed(title, desc, parts, WIDTH, 390))


def _chip(number: int, seconds: str) -> Iterator[str]:
    """One of the two from its operands down to its part of the result."""
    left = CHIPS[number]
    inner, right = left + 10, left + COLUMN - 10
    yield shapes.box(left, 6, left + COLUMN, 314, fill=0)
    yield shapes.written(inner, 26, f"chip {number}", bold=True)
    whole = {"fill": 0, "dashed": True, "round": 0}
    held = {"fill": 0.15, "round": 0}
    x, y = inner, inner + 108  # X lies, Y stands
    yield shapes.box(x, 46, x + 88, 80, **whole)
    yield shapes.box(x + 44 * number, 46, x + 44 * (number + 1), 80, **held)
    yield shapes.label(x + 44 * number, 46, x + 44 * (number + 1), 80, "X")
    yield shapes.label(x + 88, 46, y, 80, "·")
    yield shapes.box(y, 34, y + 40, 92, **whole)
    yield shapes.box(y, 34 + 29 * number, y + 40, 63 + 29 * number, **held)
    yield shapes.label(y, 34 + 29 * number, y + 40, 63 + 29 * number, "Y")
    yield shapes.written(inner, 114, f"half of D: {seconds}", "math")
    rows = ("keeps", "sends") if number == 0 else ("sends", "keeps")
    yield shapes.written(inner, SUMS - 8, "partial sums of Z")
    for n, words in enumerate(rows):
        top = SUMS + HIGH / 2 * n
        ends = inner, top, right, top + HIGH / 2
        yield shapes.box(*ends, "math", fill=0.15, round=0)
        yield shapes.label(*ends, words)
    yield shapes.written(inner, RESULT - 8, "Z")
    for n, words in enumerate(rows):
        top = RESULT + HIGH / 2 * n
        ends = inner, top, right, top + HIGH / 2
        own = words == "keeps"
        yield shapes.box(*ends, "math", fill=0.4 if own else 0, dashed=not own, round=0)
        yield shapes.label(*ends, "finished" if own else "arrives")


def _exchange(top: float, step: str, away: tuple[bool, bool]) -> Iterator[str]:
    """Two arrows between the chips, `away` from chip 0 or to it, for each half."""
    ends = CHIPS[0] + COLUMN - 10, CHIPS[1] + 10
    for n, leaves in enumerate(away):
        y = top + HIGH / 4 + HIGH / 2 * n
        start, end = ends if leaves else ends[::-1]
        yield shapes.line((start, y), (end, y), colour="network", heads="end")
    yield shapes.written(WIDTH / 2, top - 8, step, "network", "middle", bold=True)
