"""The memories of chips as squares with areas in proportion to their capacities."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ...base.units import show
from ...hardware.chips import Chip
from .. import shapes
from ..picture import Picture

WIDTH, SIDE = 286, 274  # of a panel, and of the largest HBM in the picture
ROW = 24
LEVELS = (  # fact with the capacity, fact with the bandwidth, name
    ("registers_bytes", "", "registers"),
    ("l1_bytes", "onchip_bandwidth", "L1 with {onchip}"),
    ("onchip_bytes", "onchip_bandwidth", "{onchip}"),
    ("tmem_bytes", "", "TMEM"),
    ("cmem_bytes", "", "CMEM"),
    ("l2_bytes", "l2_bandwidth", "L2"),
    ("llc_bytes", "llc_bandwidth", "LLC"),
    ("hbm_bytes", "hbm_bandwidth", "HBM"),
)


@dataclass(frozen=True)
class Level:
    """One memory of the whole chip, and its bandwidth if a source states it."""

    name: str
    nbytes: float
    bandwidth: float | None

    @property
    def words(self) -> str:
        rate = "" if self.bandwidth is None else f", {show(self.bandwidth, 'bytes/s')}"
        return f"{self.name}, {show(self.nbytes, 'capacity')}{rate}"


def levels(chip: Chip) -> list[Level]:
    """The memories in a chip's record, the closest to the arithmetic first.

    >>> from shardmath.hardware.chips import TPU_V5P
    >>> [level.words for level in levels(TPU_V5P)]
    ['registers, 512 KiB', 'VMEM, 128 MiB', 'HBM, 95 GiB, 2.76 TB/s']
    """
    facts = chip.facts
    return [
        Level(
            name.format(onchip=chip.onchip or "shared memory"),
            facts[size].value,
            facts[rate].value if rate in facts else None,
        )
        for size, rate, name in LEVELS
        # One square for both, because the SMEM is part of the L1.
        if size in facts and not (size == "onchip_bytes" and "l1_bytes" in facts)
    ]


def memories(*chips: Chip) -> Picture:
    """A panel for each chip, with areas in proportion to bytes in all panels.

    Raises:
        ValueError: there are no arguments, or one is not a Chip.

    >>> from shardmath.hardware.chips import H100, TPU_V5P
    >>> memories(H100, TPU_V5P).title
    'Memories of H100 and TPU v5p'
    """
    if not chips:
        raise ValueError("memories(): must be given at least one chip")
    for chip in chips:
        if not isinstance(chip, Chip):
            raise ValueError(f"chip = {chip!r}: must be a Chip, such as chips.H100")
    per_byte = SIDE / math.sqrt(max(chip.hbm_bytes for chip in chips))
    rows = max(len(levels(chip)) for chip in chips)
    panels = [_panel(chip, per_byte, rows) for chip in chips]
    desc = " ".join(map(_said, chips)) + " Areas are to one scale in all panels."
    title = f"Memories of {' and '.join(chip.name for chip in chips)}"
    return Picture(title, desc, tuple(panels))


def _said(chip: Chip) -> str:
    return f"{chip.name}: {'; '.join(level.words for level in levels(chip))}."


def _panel(chip: Chip, per_byte: float, rows: int) -> str:
    """Small memories in a column over the HBM, each square beside its words."""
    title = f"Memories of the {chip.name}"
    desc = f"{_said(chip)} Areas are to scale."
    high = 30 + ROW * (rows + 1) + SIDE + 4
    begin = 26 + ROW * (rows - len(levels(chip)))
    return shapes.framed(title, desc, _drawn(chip, per_byte, begin), WIDTH, high)


def _drawn(chip: Chip, per_byte: float, begin: float) -> Iterator[str]:
    """Words in rows, the small squares beside them, that of the HBM below."""
    yield shapes.written(6, 20, f"{chip.name}, areas to scale", bold=True)
    *near, hbm = levels(chip)
    sides = [per_byte * math.sqrt(level.nbytes) for level in near]
    for n, (level, side) in enumerate(zip(near, sides, strict=True)):
        middle = begin + ROW * (n + 0.5)
        yield _square(6, middle - side / 2, side, "ink", 1)
        yield shapes.written(14 + max(sides), middle + 5, level.words)
    top = begin + ROW * len(near)
    yield shapes.written(6, top + 17, hbm.words, "HBM")
    side = per_byte * math.sqrt(hbm.nbytes)
    yield _square(6, top + ROW, side, "HBM", 0.15)


def _square(left: float, top: float, side: float, colour: str, fill: float) -> str:
    ends = (left, top, left + side, top + side)
    return shapes.box(*ends, colour, fill=fill, edge=0, round=0)
