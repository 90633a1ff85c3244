"""Meshes: named axes laid on a network, and the wires that each of them gets.

>>> from shardmath.chips import TPU_V5P
>>> from shardmath.networks import Torus
>>> mesh = Mesh(Torus(TPU_V5P, (8, 8, 8)), {"X": 8, "Y": 64})
>>> print(mesh.binding("Y"))
Y over 64 chips: 400 GB/s one-way per chip, bound by ICI (ring of 8 + ring of 8)
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from numbers import Integral
from types import MappingProxyType

from .networks.wiring import Network, Ring, Switch
from .units import show


@dataclass(frozen=True)
class Piece:
    """The part of one dimension of a network that some axes lie on.

    `size` places of dimension `dim`, each `stride` after the last. `wires` is what one
    group of chips sees there: part of a ring is a line; every s-th chip of a ring, with
    all s groups at work, is a ring of links with 1/s of the bandwidth and s times the
    latency; part of a switch is a smaller switch.
    """

    dim: int
    size: int
    stride: int
    wires: Ring | Switch


@dataclass(frozen=True)
class Pace:
    """What one level of the network allows some axes, bytes/s one-way per chip."""

    level: str
    bandwidth: float
    wires: tuple[Ring | Switch, ...]

    def __str__(self) -> str:
        wires = " + ".join(map(str, self.wires))
        return wires if self.level in wires else f"{self.level} ({wires})"


@dataclass(frozen=True)
class Binding:
    """The pace of some axes; `paces` of all levels that they cross, outermost first."""

    axes: tuple[str, ...]
    chips: int
    paces: tuple[Pace, ...]

    @property
    def slowest(self) -> Pace:
        """The level that sets the pace; unbounded where the axes hold one chip."""
        nothing = Pace("no link", math.inf, ())
        return min(self.paces, key=lambda pace: pace.bandwidth, default=nothing)

    @property
    def level(self) -> str:
        return self.slowest.level

    @property
    def bandwidth(self) -> float:
        return self.slowest.bandwidth

    def __str__(self) -> str:
        over = " ".join(self.axes)
        if not self.paces:
            return f"{over} over 1 chip: nothing to send"
        faster = (
            f"; {pace} would allow {show(pace.bandwidth, 'bytes/s')}"
            for pace in self.paces
            if pace != self.slowest
        )
        return (
            f"{over} over {self.chips:,} chips: {show(self.bandwidth, 'bytes/s')} "
            f"one-way per chip, bound by {self.slowest}{''.join(faster)}"
        )

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


@dataclass(frozen=True)
class Mesh:
    """Named axes laid on a network in order, both slowest-varying first.

    An axis may cover several dimensions of the network, or part of one. Chips keep
    their row-major order, as devices do in JAX; no reordering is sought.

    Args:
        network: where the chips are.
        axes: size by name; the product must be the number of chips.

    Raises:
        ValueError: a size does not divide a side; says which number does not which.

    >>> from shardmath.chips import TPU_V5E
    >>> from shardmath.networks import Torus
    >>> mesh = Mesh(Torus(TPU_V5E, (16, 16)), {"X": 64, "Y": 4})
    >>> mesh.size("Y"), mesh.size(("X", "Y"))
    (4, 256)
    >>> [str(piece.wires) for piece in mesh.span("X")]
    ['ring of 16', 'ring of 4']
    """

    network: Network
    axes: Mapping[str, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", MappingProxyType(dict(self.axes)))
        chips, name = self.network.chips, self.network.name
        for axis, size in self.axes.items():
            if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
                raise ValueError(f"axis {axis} = {size!r}: must be a whole number ≥ 1")
            if chips % size:
                raise ValueError(
                    f"axis {axis} = {size}: {size} does not divide the {chips:,} chips "
                    f"of {name}"
                )
        total = math.prod(self.axes.values())
        if total != chips:
            given = ", ".join(f"{axis} = {n}" for axis, n in self.axes.items())
            raise ValueError(f"{given}: {total:,} must be the {chips:,} of {name}")
        self._parts  # noqa: B018  raises where sizes do not divide

    def size(self, axes: str | tuple[str, ...]) -> int:
        """Chips in one group over `axes`, which is a name or a tuple of names."""
        return math.prod(self.axes[name] for name in self._names(axes))

    def span(self, axes: str | tuple[str, ...]) -> tuple[Piece, ...]:
        """The parts of the network that `axes` lie on, outermost dimension first.

        Neighbouring parts of one dimension are merged, so that all axes together see
        the network as it is. A single chip spans nothing.

        Raises:
            ValueError: an unknown axis, or two axes on one ring that are not neighbours
                on it, whose traffic would share links in a way not priced here.
        """
        names = self._names(axes)
        parts = sorted(part for name in names for part in self._parts[name])
        merged: list[tuple[int, int, int]] = []  # dimension, −stride, size
        for dim, turned, size in parts:
            if not merged or merged[-1][0] != dim:
                merged.append((dim, turned, size))
                continue
            _, outer, count = merged.pop()
            if isinstance(self.network.dims[dim], Ring) and outer != turned * size:
                raise ValueError(
                    f"axes {', '.join(names)}: share dimension {dim} of "
                    f"{self.network.name} without being neighbours on it"
                )
            merged.append((dim, turned, count * size))
        return tuple(
            Piece(dim, size, -turned, _wires(self.network.dims[dim], size, -turned))
            for dim, turned, size in merged
        )

    def bandwidth(self, axes: str | tuple[str, ...]) -> float:
        """Bytes/s one-way that a chip can push over `axes`; `binding` says why."""
        return self.binding(axes).bandwidth

    def binding(self, axes: str | tuple[str, ...]) -> Binding:
        """Which level sets the pace of `axes`, and at what bandwidth.

            pace of a level = g · R · s/(s−1) · (n−1)/n

        R is what a chip pushes into that level, all rings of a torus together and both
        ways around; s the chips of the axes at the level, g those inside it, which send
        different parts at the same time; n all of them. The factors make it exact: in
        an AllGather or ReduceScatter of V bytes each chip sends V(n−1)/n of them, and
        takes that over the bandwidth if all levels work at once.

        Assumes:
            A schedule that keeps all levels and all rings busy, so it is an upper
            bound. An AllToAll is slower: chips cannot share out its bytes.
        """
        names, n = self._names(axes), self.size(axes)
        paces, inside = [], 1
        for _, pieces in groupby(reversed(self.span(axes)), key=_level):
            wires = tuple(piece.wires for piece in pieces)[::-1]
            size = math.prod(w.size for w in wires)
            rate = inside * sum(w.egress for w in wires)
            pace = rate * size / (size - 1) * (n - 1) / n
            paces.append(Pace(wires[0].level, pace, wires))
            inside *= size
        return Binding(names, n, tuple(reversed(paces)))

    def _names(self, axes: str | tuple[str, ...]) -> tuple[str, ...]:
        names = (axes,) if isinstance(axes, str) else tuple(axes)
        for name in names:
            if name not in self.axes:
                known = ", ".join(self.axes)
                raise ValueError(f"axis {name!r}: must be one of {known}")
        if len(set(names)) < len(names):
            raise ValueError(f"axes {names}: must name each axis once")
        return names

    @cached_property
    def _parts(self) -> dict[str, list[tuple[int, int, int]]]:
        """(dimension, −stride, size) of each part of each axis, so that they sort."""
        shape = self.network.shape
        room = list(shape)  # places not yet taken, dimension by dimension
        dim, found = len(shape) - 1, {}
        for name, size in reversed(self.axes.items()):
            found[name], left = [], size
            while left > 1:
                if room[dim] == 1:
                    dim -= 1
                    continue
                take = math.gcd(left, room[dim])
                if take not in (left, room[dim]):
                    raise ValueError(
                        f"axis {name} = {size}: {left} does not divide the "
                        f"{room[dim]} places left in dimension {dim} of "
                        f"{self.network.name}, nor {room[dim]} divide {left}"
                    )
                found[name].append((dim, -(shape[dim] // room[dim]), take))
                left //= take
                room[dim] //= take
        return found


def _wires(whole: Ring | Switch, size: int, stride: int) -> Ring | Switch:
    """What one group of `size` chips, `stride` apart on `whole`, sees of it."""
    if isinstance(whole, Switch):
        return replace(whole, size=size)
    closed = whole.wrap and size * stride == whole.size
    ways = 2 if closed and size == 2 else 1  # opposite chips reach each other both ways
    return replace(
        whole,
        size=size,
        bandwidth=whole.bandwidth * ways / stride,
        latency=whole.latency * stride,
        wrap=closed and size > 2,
    )


def _level(piece: Piece) -> int:
    """All rings, which meet in every chip, are one level; each switch is its own."""
    return -1 if isinstance(piece.wires, Ring) else piece.dim
