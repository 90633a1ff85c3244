"""A GPU as a picture: one SM with its four subpartitions, over L2 and HBM."""

from collections.abc import Iterator
from dataclasses import dataclass

from .chips import Chip
from .drawing import shapes
from .drawing.picture import standalone
from .drawing.theme import paint
from .units import show

SUBPARTITIONS = 4  # of an SM, from the V100 on
WIDTH, HEIGHT = 510, 320
LEFT, RIGHT = 6, WIDTH - 6
PART, GAP = 113.5, 8  # width of a subpartition, and between two


@dataclass(frozen=True)
class Parts:
    """What one GPU is made of; draws itself.

    >>> from shardmath.chips import H100
    >>> Parts(H100)
    H100: 132 SMs; in each of 4 subpartitions a scheduler, registers (64 KiB), 32 lanes
    and 1 Tensor Core; for the SM L1 with SMEM (256 KiB); for all L2 (50 MiB) and
    HBM (80 GiB, 3.35 TB/s).

    Raises:
        ValueError: `gpu` is no NVIDIA GPU, or no source states one of its parts.
    """

    gpu: Chip

    def __post_init__(self) -> None:
        if not isinstance(self.gpu, Chip) or self.gpu.vendor != "NVIDIA":
            raise ValueError(f"gpu = {self.gpu!r}: must be an NVIDIA GPU")

    @property
    def registers(self) -> float:
        """Bytes of registers in one subpartition."""
        return self.gpu.registers_bytes / self.gpu.cores / SUBPARTITIONS

    @property
    def tensor_cores(self) -> int:
        """Tensor Cores in one subpartition."""
        return self.gpu.tensor_cores // self.gpu.cores // SUBPARTITIONS

    @property
    def lanes(self) -> int:
        """Lanes in one subpartition."""
        return self.gpu.lanes // SUBPARTITIONS

    def _words(self) -> dict[str, str]:
        """What stands in the boxes."""
        gpu, many = self.gpu, "s" * (self.tensor_cores > 1)
        l1 = show(gpu.l1_bytes / gpu.cores, "capacity")
        return {
            "registers": show(self.registers, "capacity"),
            "lanes": f"{self.lanes} lanes",
            "matrix": f"{self.tensor_cores} Tensor Core{many}",
            "L1": l1,
            "L2": show(gpu.l2_bytes, "capacity"),
            "HBM": show(gpu.hbm_bytes, "capacity"),
            "rate": show(gpu.hbm_bandwidth, "bytes/s"),
        }

    def __repr__(self) -> str:
        said = self._words()
        return (
            f"{self.gpu.name}: {self.gpu.cores} SMs; in each of {SUBPARTITIONS} "
            f"subpartitions a scheduler, registers ({said['registers']}), "
            f"{said['lanes']}\nand {said['matrix']}; for the SM L1 with SMEM "
            f"({said['L1']}); for all L2 ({said['L2']}) and\n"
            f"HBM ({said['HBM']}, {said['rate']})."
        )

    def _repr_svg_(self) -> str:
        title = f"Parts of the {self.gpu.name}"
        return standalone(
            shapes.framed(title, repr(self), self._drawn(), WIDTH, HEIGHT)
        )

    def _repr_pretty_(self, printer, cycle):
        printer.text(repr(self))

    def _drawn(self) -> Iterator[str]:
        said, middle = self._words(), WIDTH / 2
        yield _box(LEFT, 6, RIGHT, 210)
        yield shapes.written(LEFT + 10, 26, f"one of {self.gpu.cores} SMs")
        for n in range(SUBPARTITIONS):
            yield from _subpartition(LEFT + 10 + n * (PART + GAP), said)
        yield _box(LEFT + 10, 172, RIGHT - 10, 202, "ink")
        l1 = f"L1 with SMEM, {said['L1']}"
        yield shapes.written(middle, 192, l1, anchor="middle")
        yield _link(210, 230)
        yield _box(LEFT, 230, RIGHT, 260, "ink")
        l2 = f"L2, shared by all SMs, {said['L2']}"
        yield shapes.written(middle, 250, l2, anchor="middle")
        yield _link(260, 284, "HBM")
        yield shapes.written(middle + 10, 277, said["rate"], "HBM")
        yield _box(LEFT, 284, RIGHT, 314, "HBM")
        yield shapes.written(middle, 304, f"HBM, {said['HBM']}", anchor="middle")


def _subpartition(left: float, said: dict[str, str]) -> Iterator[str]:
    """One of the four, from its scheduler down to its Tensor Core."""
    rows = ("scheduler", f"reg. {said['registers']}", said["lanes"], said["matrix"])
    yield _box(left, 34, left + PART, 166)
    for row, words in enumerate(rows):
        top = 40 + 31 * row
        colour = "math" if row > 1 else "ink"
        yield _box(left + 5, top, left + PART - 5, top + 26, colour)
        yield shapes.written(left + PART / 2, top + 17.5, words, anchor="middle")


def _box(left: float, top: float, right: float, bottom: float, colour="") -> str:
    ink = paint(colour or "ink")
    filled = f'{ink}" fill-opacity=".1' if colour else "none"
    return (
        f'<rect x="{left:g}" y="{top:g}" width="{right - left:g}" '
        f'height="{bottom - top:g}" rx="3" fill="{filled}" stroke="{ink}" '
        'stroke-opacity=".7"/>'
    )


def _link(top: float, bottom: float, colour: str = "ink") -> str:
    """A thick line between two boxes."""
    path = f"M{WIDTH / 2:g} {top:g}V{bottom:g}"
    return f'<path d="{path}" stroke="{paint(colour)}" stroke-width="4"/>'
