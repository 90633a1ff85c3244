"""TPU slices: 2D and 3D tori, and which of their sides wrap around to rings."""

import contextlib
import math

from ...base.units import number, short_repr, shortened
from ..chips import Chip
from .records import GRIDS, LATENCY
from .wiring import Network, Ring


class Torus(Network):
    """A slice of a TPU pod, with each chip linked with 4 (2D) or 6 (3D) neighbours.

    Args:
        chip: a TPU of `chips`.
        shape: chips along each side, such as (8, 16) or (4, 4, 8).
        bandwidth: one-way bytes/s of one link; by default `chip.link_bandwidth`.
        latency: seconds of one hop; by default 1 µs, see `LATENCY`.
        wrap: for each side, whether it closes to a ring; by default, by the rule below.

    Which sides wrap:
        v4, v5p, 7x: slices of whole 4x4x4 cubes wrap on all sides, through optical
        switches at the faces of the cubes; smaller slices are 3D meshes. For 7x this is
        an assumption, because its page says that it resembles v5p.
        v5e, v6e: a side wraps if it has 16 chips, like the sides of the pod.
        v2, v3: the whole pod wraps. No source says whether a part does, so pass `wrap`.

    Assumes:
        All tori are plain. Twisted ones, which v4 and v5p offer for the shapes n·n·2n
        and n·2n·2n, are not modelled; they have equally many links per chip but a wider
        bisection.

    Raises:
        ValueError: a chip that is not a TPU with a published torus, a shape that its
            pod cannot hold, or no rule for `wrap`.

    Sources:
        ``networks.toml``, value by value.

    >>> from shardmath.hardware.chips import TPU_V5P
    >>> Torus(TPU_V5P, (8, 8, 8)).cubes, Torus(TPU_V5P, (2, 2, 4)).dims[2].wrap
    (8, False)
    """

    def __init__(
        self,
        chip: Chip,
        shape: tuple[int, ...],
        bandwidth: float | None = None,
        latency: float = LATENCY["ICI"].value,
        wrap: tuple[bool, ...] | None = None,
    ):
        if not isinstance(chip, Chip):
            raise ValueError(
                f"chip = {short_repr(chip)}: must be a Chip, such as chips.TPU_V5E"
            )
        shape = _sides(shape)
        closed = _wraps(chip, shape, wrap)
        rate = chip.link_bandwidth if bandwidth is None else bandwidth
        dims = tuple(
            Ring(n, rate, latency, w) for n, w in zip(shape, closed, strict=True)
        )
        super().__init__(dims, f"{chip.name} {_times(shape)}", chip)

    @property
    def hosts(self) -> int:
        """Host machines, with 4 chips on each, or 8 for v5e and v6e (two trays)."""
        host = GRIDS[self.chip.id].get("host")
        if host is None:
            raise ValueError(f"{self.chip.name}: no source states the chips of a host")
        return math.ceil(self.chips / host.value)

    @property
    def cubes(self) -> int:
        """Whole 4x4x4 cubes; 0 for a smaller slice and for a 2D torus."""
        whole = len(self.dims) == 3 and all(n % 4 == 0 for n in self.shape)
        return self.chips // 64 if whole else 0

    @property
    def optical_links(self) -> int:
        """Directed links that leave a cube, through optical switches: 96 per cube."""
        return 96 * self.cubes


def _sides(shape: object) -> tuple[int, ...]:
    """`shape` as Python's ints; raises unless it has whole numbers only."""
    with contextlib.suppress(ValueError, TypeError):
        sides = tuple(number("side", side) for side in shape)
        if all(isinstance(side, int) for side in sides):
            return sides
    raise ValueError(
        f"shape = {short_repr(shape)}: must be whole numbers such as (4, 4)"
    )


def _wraps(
    chip: Chip, shape: tuple[int, ...], given: tuple[bool, ...] | None
) -> tuple[bool, ...]:
    """Which sides of a slice close to rings; raises for a shape that is impossible."""
    if chip.id not in GRIDS:
        raise ValueError(f"{chip.name}: must be a TPU whose torus is published")
    grid = {name: fact.value for name, fact in GRIDS[chip.id].items()}
    closes, most = grid.get("closes"), chip.fact("domain").value
    what = shortened(f"{chip.name} {_times(shape)}")
    if len(shape) != grid["sides"] or any(n < 1 for n in shape):
        raise ValueError(f"{what}: must have {grid['sides']} sides of 1 or more")
    if (chips := math.prod(shape)) > most:
        count = f"{chips:,}" if chips < 10**15 else short_repr(chips)
        raise ValueError(f"{what}: {count} chips must be at most the pod's {most:,}")
    if closes == 16 and max(shape) > 16:
        raise ValueError(f"{what}: no side of the pod is longer than 16")
    cubes = all(n % 4 == 0 for n in shape)
    if closes == 4 and not cubes and max(shape) > 4:
        raise ValueError(f"{what}: sides must be multiples of 4, or none above 4")
    if given is not None:
        flags = tuple(given) if isinstance(given, tuple | list) else ()
        if len(flags) != len(shape) or not all(isinstance(f, bool) for f in flags):
            raise ValueError(
                f"wrap = {short_repr(given)}: must say True or False for {len(shape)} "
                "sides"
            )
        return flags
    if closes is None and shape != grid.get("pod"):
        raise ValueError(f"{what}: no source says which sides wrap; pass wrap")
    if closes == 16:
        return tuple(n == 16 for n in shape)
    return (cubes,) * len(shape)


def _times(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
