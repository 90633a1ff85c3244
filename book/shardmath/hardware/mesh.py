"""Meshes: named axes mapped to a network, and the links that each of them uses.

>>> from shardmath.hardware.chips import TPU_V5P
>>> from shardmath.hardware.networks import Torus
>>> mesh = Mesh(Torus(TPU_V5P, (8, 8, 8)), {"X": 8, "Y": 64})
>>> print(mesh.binding("Y"))
Y over 64 chips: 400 GB/s one-way per chip, bound by ICI (ring of 8 + ring of 8)
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from types import MappingProxyType

from ..base.units import flags, positive_int, short_repr, shortened, show
from .networks.wiring import Network, Ring, Switch


@dataclass(frozen=True)
class Piece:
    """The part of one dimension of a network that some axes use.

    The part has `size` places of dimension `dim`, each `stride` places after the
    previous one. `wires` describes its links as one group of chips can use them. Part
    of a ring is a line. If groups take every s-th chip of a ring and all s groups are
    busy, each has a ring of links with 1/s of the bandwidth and s times the latency.
    Part of a switch is a smaller switch.
    """

    dim: int
    size: int
    stride: int
    wires: Ring | Switch


@dataclass(frozen=True)
class Pace:
    """The rate of one level of the network for some axes, in bytes/s, one-way.

    There are three rates of one AllGather of V bytes over n chips: `egress` is the
    total rate of the links of one unit; `array_bandwidth` is V divided by the time, as
    quoted in tables of networks; `bandwidth` is V·(n−1)/n, the bytes that each chip
    sends, divided by the time.
    """

    level: str
    bandwidth: float
    wires: tuple[Ring | Switch, ...]
    array_bandwidth: float
    egress: float

    def __str__(self) -> str:
        wires = " + ".join(str(w) for w in self.wires if w.size > 1)
        return wires if self.level in wires else f"{self.level} ({wires or 'passed'})"


@dataclass(frozen=True)
class Binding:
    """The rate of some axes; `paces` has the levels they cross, outermost first."""

    axes: tuple[str, ...]
    chips: int
    paces: tuple[Pace, ...]

    @property
    def slowest(self) -> Pace:
        """The slowest level; infinitely fast if there is only one chip on the axes."""
        nothing = Pace("no link", math.inf, (), math.inf, math.inf)
        return min(self.paces, key=lambda pace: pace.bandwidth, default=nothing)

    @property
    def level(self) -> str:
        return self.slowest.level

    @property
    def bandwidth(self) -> float:
        """Bytes/s that a chip sends, one-way: V·(n−1)/n divided by the time."""
        return self.slowest.bandwidth

    @property
    def array_bandwidth(self) -> float:
        """Bytes/s of the array: V divided by the time."""
        return self.slowest.array_bandwidth

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
    """Named axes, mapped in order to the dimensions of a network.

    Axes and dimensions are listed slowest-varying first. An axis may cover several
    dimensions of the network, or part of one. Chips keep their row-major order, as
    devices do in JAX; they are not reordered. An axis in `blocks` uses a block of
    neighbours instead, such as a square on a torus, and the other axes share what is
    left of each side.

    Args:
        network: the network of the chips.
        axes: the size of each axis, by name; the product must be the number of chips.
        blocks: for an axis, the sides of its block, one for each dimension of the
            network.

    Raises:
        ValueError: a size does not divide a side (the message has both numbers), the
            product is not the number of chips, or an argument is of the wrong kind.

    >>> from shardmath.hardware.chips import TPU_V5E
    >>> from shardmath.hardware.networks import Torus
    >>> mesh = Mesh(Torus(TPU_V5E, (16, 16)), {"X": 64, "Y": 4})
    >>> mesh.size("Y"), mesh.size(("X", "Y"))
    (4, 256)
    >>> [str(piece.wires) for piece in mesh.span("X")]
    ['ring of 16', 'ring of 4']
    >>> square = Mesh(Torus(TPU_V5E, (16, 16)), {"X": 64, "Y": 4}, {"Y": (2, 2)})
    >>> square.bandwidth("Y") / mesh.bandwidth("Y")
    2.0
    """

    network: Network
    axes: Mapping[str, int]
    blocks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.network, Network):
            raise ValueError(f"network = {short_repr(self.network)}: must be a Network")
        object.__setattr__(self, "axes", MappingProxyType(_axes(self.axes)))
        object.__setattr__(self, "blocks", MappingProxyType(self._checked_blocks()))
        chips, name = self.network.chips, shortened(self.network.name)
        for axis, size in self.axes.items():
            if chips % size:
                raise ValueError(
                    f"axis {shortened(axis)} = {size}: {size} does not divide the "
                    f"{chips:,} chips of {name}"
                )
        total = math.prod(self.axes.values())
        if total != chips:
            each = ", ".join(f"{axis} = {n}" for axis, n in self.axes.items())
            given = shortened(each, 200)
            count = f"{total:,}" if total < 10**15 else short_repr(total)
            raise ValueError(
                f"{given}: the product {count} must be the {chips:,} chips of {name}"
            )
        self._parts  # noqa: B018  raises where sizes do not divide

    def _checked_blocks(self) -> dict[str, tuple[int, ...]]:
        """The blocks, with whole sides whose product is the size of their axis."""
        if not isinstance(self.blocks, Mapping):
            raise ValueError(
                f"blocks = {short_repr(self.blocks)}: must be sides by axis, such as "
                "{'Y': (2, 2)}"
            )
        found = {}
        for name, given in self.blocks.items():
            if name not in self.axes:
                known = shortened(", ".join(self.axes), 200)
                raise ValueError(f"block {short_repr(name)}: must be one of {known}")
            sides = tuple(given) if isinstance(given, tuple | list) else ()
            whole = all(type(side) is int and side > 0 for side in sides)
            many = len(sides) == len(self.network.shape)
            if not (whole and many and math.prod(sides) == self.axes[name]):
                raise ValueError(
                    f"block {shortened(name)} = {short_repr(given)}: must be "
                    f"{len(self.network.shape)} whole numbers whose product is "
                    f"{self.axes[name]}"
                )
            found[name] = sides
        return found

    def size(self, axes: str | tuple[str, ...]) -> int:
        """Chips in one group over `axes`, which is a name or a tuple of names."""
        return math.prod(self.axes[name] for name in self._names(axes))

    def span(
        self, axes: str | tuple[str, ...], one_way: bool = False
    ) -> tuple[Piece, ...]:
        """The parts of the network that `axes` use, outermost dimension first.

        Neighbouring parts of one dimension are merged, so all axes together use the
        whole network. A single chip spans nothing. Two opposite chips of a ring reach
        each other both ways round, or only one way if `one_way` is true.

        Raises:
            ValueError: an unknown axis, a `one_way` that is not a bool, or two axes on
                one ring that are not neighbours on it. Their traffic would share links
                in a way that has no price here.
        """
        names, (one_way,) = self._names(axes), flags(one_way=one_way)
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
                    f"{shortened(self.network.name)} without being neighbours on it"
                )
            merged.append((dim, turned, count * size))
        sizes = {dim: (size, -turned) for dim, turned, size in merged}
        for dim in tuple(sizes):  # bytes of an upper switch cross the lower ones too
            below = range(dim, self.network.stack(dim)[-1] + 1)
            sizes = dict.fromkeys(below, (1, 1)) | sizes
        return tuple(
            Piece(
                dim, *sizes[dim], _wires(self.network.dims[dim], *sizes[dim], one_way)
            )
            for dim in sorted(sizes)
        )

    def bandwidth(self, axes: str | tuple[str, ...]) -> float:
        """One-way bytes/s that a chip can send over `axes`, as `binding` explains."""
        return self.binding(axes).bandwidth

    def binding(self, axes: str | tuple[str, ...]) -> Binding:
        """Which level limits the rate of `axes`, and to what bandwidth.

            egress            g · R                          rate of a unit's links
            array_bandwidth   g · R / (1 − 1/s)              V over the time
            bandwidth         g · R / (1 − 1/s) · (1 − 1/n)  V·(1 − 1/n) over the time

        R is the rate at which a chip sends into the level, on all rings of a torus
        together and both ways around. A unit consists of the g chips of a group that
        are inside the level. The bytes that cross the level are shared by s units (on a
        stack of switches, the units of the whole stack), and a group has n chips. In an
        AllGather or ReduceScatter of V bytes, a unit receives all but its own part,
        V·(1 − 1/s), and each chip sends V·(1 − 1/n).

        Assumes:
            A schedule keeps all levels and all rings busy, so this is an upper bound.
            An AllToAll is slower, because chips cannot share its bytes.
        """
        names, n = self._names(axes), self.size(axes)
        inside, units, paces = n, 1, []
        for _, pieces in groupby(self.span(axes), key=_level):
            wires = tuple(piece.wires for piece in pieces)
            size = math.prod(w.size for w in wires)
            inside, units = inside // size, units * size
            rate = sum(w.bandwidth if w.size == 1 else w.egress for w in wires)
            array = inside * rate * units / (units - 1)
            sent = array * (n - 1) / n
            paces.append(Pace(wires[0].level, sent, wires, array, inside * rate))
            if not (isinstance(wires[0], Switch) and wires[0].uplinks):
                units = 1
        return Binding(names, n, tuple(paces))

    def _names(self, axes: str | tuple[str, ...]) -> tuple[str, ...]:
        if not isinstance(axes, str | tuple | list):
            raise ValueError(
                f"axes = {short_repr(axes)}: must be a name or a tuple of names"
            )
        names = (axes,) if isinstance(axes, str) else tuple(axes)
        for name in names:
            if not isinstance(name, str) or name not in self.axes:
                known = shortened(", ".join(self.axes), 200)
                raise ValueError(f"axis {short_repr(name)}: must be one of {known}")
        if len(set(names)) < len(names):
            raise ValueError(f"axes {short_repr(names)}: must name each axis once")
        return names

    @cached_property
    def _parts(self) -> dict[str, list[tuple[int, int, int]]]:
        """(dimension, −stride, size) of each part of each axis, in an order to sort."""
        shape = self.network.shape
        room = list(shape)  # places not yet taken, dimension by dimension
        dim, found = len(shape) - 1, {}
        for name, sides in reversed(self.blocks.items()):
            found[name] = []
            for at, side in enumerate(sides):
                if room[at] % side:
                    raise ValueError(
                        f"block {shortened(name)} = {sides}: {side} does not divide "
                        f"the {room[at]} places left in dimension {at} of "
                        f"{shortened(self.network.name)}"
                    )
                found[name].append((at, -(shape[at] // room[at]), side))
                room[at] //= side
            found[name] = [part for part in found[name] if part[2] > 1]
        for name, size in reversed(self.axes.items()):
            if name in found:
                continue
            found[name], left = [], size
            while left > 1:
                if room[dim] == 1:
                    dim -= 1
                    continue
                take = math.gcd(left, room[dim])
                if take not in (left, room[dim]):
                    raise ValueError(
                        f"axis {shortened(name)} = {size}: {left} does not divide the "
                        f"{room[dim]} places left in dimension {dim} of "
                        f"{shortened(self.network.name)}, nor does {room[dim]} divide "
                        f"{left}"
                    )
                found[name].append((dim, -(shape[dim] // room[dim]), take))
                left //= take
                room[dim] //= take
        return found


def _axes(given: object) -> dict[str, int]:
    """Size by name, as Python's ints; raises unless each name is an identifier."""
    if not isinstance(given, Mapping):
        raise ValueError(
            f"axes = {short_repr(given)}: must be a dict such as {{'data': 8}}"
        )
    for name in given:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(
                f"axis {short_repr(name)}: must be a name such as 'X' or 'data'"
            )
    return {name: positive_int(**{name: size})[0] for name, size in given.items()}


def _wires(dim: Ring | Switch, size: int, stride: int, one_way: bool) -> Ring | Switch:
    """The part of `dim` for one group of `size` chips that are `stride` apart on it."""
    if isinstance(dim, Switch):
        return replace(dim, size=size)
    closed = dim.wrap and size * stride == dim.size
    opposite = closed and size == 2  # these two reach each other both ways round
    ways = 2 if opposite and not one_way else 1
    return replace(
        dim,
        size=size,
        bandwidth=dim.bandwidth * ways / stride,
        latency=dim.latency * stride,
        wrap=closed and size > 2,
    )


def _level(piece: Piece) -> int:
    """The level of a piece: all rings meet in every chip and are one level, -1."""
    return -1 if isinstance(piece.wires, Ring) else piece.dim
