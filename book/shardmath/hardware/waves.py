"""How a GPU's SMs work through tiles: whole waves, their time, and a simulation.

A matmul is cut into tiles of its result. Each SM works on one tile at a time, so the
chip works on the tiles in waves, and neither a tile nor a wave can be split:

    waves = ⌈tiles / SMs⌉        T = waves · T_tile        ideal = tiles · T_tile / SMs
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..base.units import (
    bytes_per_value,
    pluralize,
    positive,
    positive_int,
    short_repr,
    shortened,
    show,
)
from .chips import CORES, Chip, require_chip

DIVIDED = ("SMs", "Compute units")  # cores that take one tile after another


@dataclass(frozen=True)
class Waves:
    """`tiles` equal pieces of work on `sms` SMs; each SM does one piece at a time.

    >>> Waves(133, 132)
    133 tiles on 132 SMs: 2 waves, the last with 1 tile, 50.4% of the SM time used.
    """

    tiles: int
    sms: int

    def __post_init__(self) -> None:
        tiles, sms = positive_int(tiles=self.tiles, sms=self.sms)
        object.__setattr__(self, "tiles", tiles)
        object.__setattr__(self, "sms", sms)

    @property
    def waves(self) -> int:
        """⌈tiles / SMs⌉."""
        return -(-self.tiles // self.sms)

    @property
    def last(self) -> int:
        """Tiles in the last wave, from 1 to `sms`."""
        return self.tiles - (self.waves - 1) * self.sms

    @property
    def used(self) -> float:
        """Share of the SM time spent on tiles: tiles / (waves · SMs), at most 1."""
        return self.tiles / (self.waves * self.sms)

    def __repr__(self) -> str:
        waves = pluralize(f"{self.waves:,}", "waves")
        last = pluralize(f"{self.last}", "tiles")
        return (
            f"{_on(self.tiles, self.sms)}: {waves}, the last with {last}, "
            f"{self.used:.1%} of the SM time used."
        )


def _on(tiles: int, sms: int) -> str:
    return f"{pluralize(f'{tiles:,}', 'tiles')} on {pluralize(str(sms), 'SMs')}"


def tiles_of(B: int, F: int, tile: tuple[int, int]) -> int:
    """⌈B/b⌉ · ⌈F/f⌉ tiles [b, f] that cover a result [B, F].

    >>> tiles_of(896, 2432, (128, 128))
    133
    """
    B, F = positive_int(B=B, F=F)
    b, f = _sides(tile)
    return -(-B // b) * -(-F // f)


def _sides(tile: Sequence[int]) -> tuple[int, int]:
    """Rows and columns of a tile as Python's ints."""
    try:
        b, f = tile
    except (TypeError, ValueError):
        wanted = "must be two sizes, such as (128, 128)"
        raise ValueError(f"tile = {short_repr(tile)}: {wanted}") from None
    b, f = positive_int(**{"tile[0]": b, "tile[1]": f})
    return b, f


@dataclass(frozen=True)
class TiledMatmul:
    """X[B, D] · W[D, F] in tiles [b, f] over the SMs of `chip`, counting only math.

        T_tile = 2·b·f·D / (C / SMs)        T = ⌈tiles / SMs⌉ · T_tile

    A tile that extends past the edge takes as long as a whole one. The time leaves out
    memory, the first load and the last store of a tile, several tiles at once on one
    SM, and kernels that cut tiles along D to fill the last wave (split-K, stream-K).

    Args:
        B, D, F: tokens, contracted size, output size, each a whole number.
        chip: the record of a chip, with its number of SMs ("cores").
        tile: rows and columns of one tile.
        precision: sets C, the dense peak.

    Raises:
        ValueError: a size or side that is not a whole number from 1, an unknown
            precision, a `chip` that is not a Chip, or a chip, such as a TPU, that does
            not divide its work into tiles for many cores.
    """

    B: int
    D: int
    F: int
    chip: Chip
    tile: tuple[int, int] = (128, 128)
    precision: str = "bf16"

    def __post_init__(self) -> None:
        sizes = {"B": self.B, "D": self.D, "F": self.F}
        positive(**sizes)  # raises for what no float can hold
        for name, size in zip("BDF", positive_int(**sizes), strict=True):
            object.__setattr__(self, name, size)
        object.__setattr__(self, "tile", _sides(self.tile))
        require_chip(self.chip)
        if (cores := CORES.get(self.chip.vendor, "SMs")) not in DIVIDED:
            wanted = f"has {cores}; must have {' or '.join(DIVIDED)} for tiles"
            raise ValueError(f"chip = {shortened(self.chip.name)}: {wanted}")
        bytes_per_value(self.precision)  # raises for what is no precision

    @property
    def waves(self) -> Waves:
        return Waves(tiles_of(self.B, self.F, self.tile), self.chip.cores)

    @property
    def tile_seconds(self) -> float:
        """Seconds of one tile on one SM, at the SM's share of the peak."""
        b, f = self.tile
        share = self.chip.flops[self.precision] / self.waves.sms
        return 2 * b * f * self.D / share

    @property
    def seconds(self) -> float:
        return self.waves.waves * self.tile_seconds

    @property
    def ideal(self) -> float:
        """2·B·D·F / C: seconds if neither tiles nor waves are rounded up."""
        return 2 * self.B * self.D * self.F / self.chip.flops[self.precision]

    @property
    def covered(self) -> float:
        """Share of the tiles' area that the result fills: B·F / (tiles·b·f)."""
        b, f = self.tile
        return self.B * self.F / (self.waves.tiles * b * f)

    @property
    def efficiency(self) -> float:
        """ideal / seconds, which is `covered` times `waves.used`."""
        return self.ideal / self.seconds

    def __str__(self) -> str:
        b, f = self.tile
        return (
            f"[{self.B}, {self.D}] · [{self.D}, {self.F}] in tiles of {b} × {f} on "
            f"{self.chip.name}: {self.waves} {show(self.seconds, 's')}, "
            f"{self.efficiency:.0%} of the peak."
        )


@dataclass(frozen=True)
class TileRun:
    """One tile on one SM, from `start` to `end` in seconds."""

    tile: int
    sm: int
    start: float
    end: float


@dataclass(frozen=True)
class TileSchedule:
    """Which SM computed which tile, and when."""

    sms: int
    runs: tuple[TileRun, ...]

    @property
    def seconds(self) -> float:
        return max(run.end for run in self.runs)

    @property
    def used(self) -> float:
        """Share of the SM time spent on tiles."""
        busy = math.fsum(run.end - run.start for run in self.runs)
        return busy / (self.sms * self.seconds)

    @property
    def summary(self) -> str:
        return (
            f"{_on(len(self.runs), self.sms)} in "
            f"{show(self.seconds, 's')}, {self.used:.1%} of the SM time used"
        )

    def _repr_pretty_(self, printer, cycle):
        printer.text(self.summary)


MOST_TILES = 2**18  # for which `dispatch` takes about two seconds


def dispatch(seconds: Sequence[float], sms: int) -> TileSchedule:
    """Assign tiles in order, each to the SM that is free first.

    The simulation does not know of waves, but waves appear if all tiles take equally
    long.

    Args:
        seconds: how long each tile takes.
        sms: number of SMs.

    Raises:
        ValueError: times that are not positive, or more than `MOST_TILES` of them.

    >>> dispatch([1.0] * 133, 132).seconds
    2.0
    """
    if not hasattr(seconds, "__len__"):
        wanted = "must be a list, a time for each tile"
        raise ValueError(f"seconds = {short_repr(seconds)}: {wanted}")
    if len(seconds) > MOST_TILES:
        raise ValueError(
            f"seconds has {len(seconds):,} tiles: must have at most {MOST_TILES:,}, "
            "which are assigned one by one; `Waves` counts equal tiles without that"
        )
    sms = Waves(len(seconds), sms).sms  # raises for what cannot be scheduled
    seconds = positive(**{f"seconds[{n}]": time for n, time in enumerate(seconds)})
    free = [(0.0, sm) for sm in range(min(sms, len(seconds)))]  # the rest stay idle
    runs = []
    for tile, duration in enumerate(seconds):
        start, sm = heapq.heappop(free)
        heapq.heappush(free, (start + duration, sm))
        runs.append(TileRun(tile, sm, start, start + duration))
    return TileSchedule(sms, tuple(runs))
