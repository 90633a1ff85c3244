"""How chips are wired: rings, lines and switches, and grids made of them.

Every bandwidth is one-way, in bytes/s; every latency is that of one hop, in seconds.
`networks` builds the grids of real machines.
"""

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ...base.units import flags, number, positive, positive_int, short_repr, show, text
from ..chips import Chip, require_chip


@dataclass(frozen=True)
class Ring:
    """`size` chips in a row, each linked with its neighbours; `wrap` closes the row.

    Args:
        size: chips in the row.
        bandwidth: one-way bytes/s of one link.
        latency: seconds of one hop.
        wrap: whether a link joins the last chip with the first; otherwise the row is a
            line.
        level: the name of the links when they are the bottleneck.

    Raises:
        ValueError: an invalid size, rate or time, or a wrapped ring of fewer than 3
            chips, whose two directions would be the same link.

    >>> Ring(8, 50e9, 1e-6).egress, Ring(8, 50e9, 1e-6, wrap=False).egress
    (100000000000.0, 50000000000.0)
    """

    size: int
    bandwidth: float
    latency: float
    wrap: bool = True
    level: str = "ICI"

    def __post_init__(self) -> None:
        _check(self)
        if self.wrap and self.size < 3:
            raise ValueError(
                f"size = {self.size}: a ring must have at least 3 chips to wrap; pass "
                "wrap=False for a line"
            )

    @property
    def egress(self) -> float:
        """Bytes/s that every chip can send at once, on two links, or one on a line."""
        return self.bandwidth * (2 if self.wrap else 1) if self.size > 1 else math.inf

    @property
    def cut(self) -> float:
        """One-way bytes/s from one half of the row to the other."""
        return self.egress

    @property
    def diameter(self) -> int:
        """Hops between the two chips that are farthest apart."""
        return self.size // 2 if self.wrap else self.size - 1

    def __str__(self) -> str:
        return f"{'ring' if self.wrap else 'line'} of {self.size}"


@dataclass(frozen=True)
class Switch:
    """`size` chips on one non-blocking switch: each reaches all others in one hop.

    Args:
        size: chips on the switch.
        bandwidth: one-way bytes/s of one chip into the switch, and also out of it.
        latency: seconds from chip to chip.
        reduces: whether the switch adds the data of several chips, as NVLink SHARP
            does.
        level: the name of the switch when it is the bottleneck.
        uplinks: whether it joins the switches of the next dimension instead of chips,
            as a spine joins leaves, so its traffic also crosses them. `bandwidth` is
            then one chip's share of the link from switch to switch.

    >>> Switch(8, 450e9, 3e-6).cut
    1800000000000.0
    """

    size: int
    bandwidth: float
    latency: float
    reduces: bool = False
    level: str = "switch"
    uplinks: bool = False

    def __post_init__(self) -> None:
        _check(self)

    @property
    def egress(self) -> float:
        """Bytes/s that every chip can send at once."""
        return self.bandwidth if self.size > 1 else math.inf

    @property
    def cut(self) -> float:
        """One-way bytes/s from one half of the chips to the other."""
        return self.bandwidth * (self.size // 2)

    @property
    def diameter(self) -> int:
        """Hops between two chips."""
        return int(self.size > 1)

    def __str__(self) -> str:
        return f"{self.level} of {self.size}"


class Link(NamedTuple):
    """A directed link; a vertex below `Network.chips` is a chip, any other a switch."""

    source: int
    destination: int
    bandwidth: float
    latency: float


@dataclass(frozen=True)
class Network:
    """A grid of chips wired dimension by dimension, slowest-varying first.

    Chips are numbered in row-major order. A chip is joined only with those that differ
    from it in one coordinate, so a switch of an outer dimension joins chips at the same
    place of the inner dimensions: a *rail*. A switch with `uplinks` joins the switches
    of the next dimension; a stack of such switches is one path, over one link of each
    chip.

    Args:
        dims: a `Ring` or a `Switch` for each dimension.
        name: the name of the network.
        chip: the record of its chips, if they are of one kind.

    Raises:
        ValueError: no dimensions, something other than rings and switches, uplinks that
            lead to no switch, or a path that takes less time over more switches.

    >>> print(Network((Ring(4, 50e9, 1e-6), Ring(4, 50e9, 1e-6, wrap=False))))
    network: 16 chips, ring of 4 x line of 4, bisection 200 GB/s, diameter 5 hops
    """

    dims: tuple[Ring | Switch, ...]
    name: str = "network"
    chip: Chip | None = None

    def __post_init__(self) -> None:
        given = self.dims
        dims = tuple(given) if isinstance(given, tuple | list) else ()
        if not dims or not all(isinstance(dim, Ring | Switch) for dim in dims):
            raise ValueError(
                f"dims = {short_repr(given)}: must be at least one Ring or Switch"
            )
        object.__setattr__(self, "dims", dims)
        text("name", self.name)
        if self.chip is not None:
            require_chip(self.chip)
        for outer, inner in zip(dims, (*dims[1:], None), strict=True):
            if not isinstance(outer, Switch) or not outer.uplinks:
                continue
            if not isinstance(inner, Switch):
                raise ValueError(f"{outer}: uplinks must lead to switches inside it")
            if outer.latency < inner.latency:
                raise ValueError(
                    f"latency = {outer.latency} of {outer}: must not be below the "
                    f"{inner.latency} of {inner}, which it passes as well"
                )

    @property
    def shape(self) -> tuple[int, ...]:
        """Chips along each dimension."""
        return tuple(dim.size for dim in self.dims)

    @property
    def chips(self) -> int:
        """Number of chips."""
        return math.prod(self.shape)

    @property
    def diameter(self) -> int:
        """Hops between the two chips farthest apart; a stack counts as one hop."""
        return sum(
            dim.diameter if len(self.stack(n)) == 1 else int(n == self._top(n))
            for n, dim in enumerate(self.dims)
        )

    def stack(self, dim: int) -> range:
        """The dimensions, outermost first, of the stack of switches that `dim` is in.

        >>> leaf, spine = Switch(4, 50e9, 3e-6), Switch(2, 50e9, 4e-6, uplinks=True)
        >>> Network((spine, leaf)).stack(1), Network((leaf, leaf)).stack(1)
        (range(0, 2), range(1, 2))

        Raises:
            ValueError: the network has no such dimension.
        """
        if dim not in range(len(self.dims)):
            raise ValueError(
                f"dim = {short_repr(dim)}: must be from 0 to {len(self.dims) - 1}"
            )
        on = [isinstance(w, Switch) and w.uplinks for w in self.dims]
        first = last = int(dim)
        while first and on[first - 1]:
            first -= 1
        while on[last]:
            last += 1
        return range(first, last + 1)

    def _top(self, dim: int) -> int:
        """The outermost dimension of its stack with more than one unit; −1 if none."""
        return next((n for n in self.stack(dim) if self.dims[n].size > 1), -1)

    @property
    def bisection(self) -> float:
        """One-way bytes/s between two equal halves, over the slowest plane.

            min over dimensions d of even size   chips / size_d · cut_d

        This is exact if all sides are even, as in TPU slices and clusters; with odd
        sides a slanted cut can have a lower rate.

        Raises:
            ValueError: no side is even, so no plane halves the network.
        """
        cuts = []
        for n, dim in enumerate(self.dims):
            if dim.size % 2 == 0:
                within = self.stack(n)
                path = [self.dims[k].bandwidth for k in within if k >= n]
                thin = min(path) / dim.bandwidth  # the chips' own links may be slower
                cuts.append(dim.cut / dim.size * thin)
        if not cuts:
            raise ValueError(f"shape {self.shape}: one side must be even to be halved")
        return self.chips * min(cuts)

    @property
    def bisection_bidirectional(self) -> float:
        """Bytes/s between the halves, both ways together, as vendors count.

        >>> Network((Switch(8, 450e9, 3e-6),)).bisection_bidirectional
        3600000000000.0
        """
        return 2 * self.bisection

    def egress(self, level: str) -> float:
        """One-way bytes/s of one unit of chips into the dimension called `level`.

        The unit consists of all chips inside that dimension: a node for the leaf level,
        a slice for DCN, one chip for NVLink.

        Raises:
            ValueError: no dimension of the network has that name, or several have it.
        """
        at = self._at(level)
        return self.dims[at].bandwidth * math.prod(self.shape[at + 1 :])

    def total(self, level: str) -> float:
        """One-way bytes/s of all chips into `level`, which its switches can receive.

        NVIDIA's numbers for NVSwitch trays count both ways and are twice as large.

        >>> Network((Switch(8, 450e9, 3e-6, level="NVLink"),)).total("NVLink")
        3600000000000.0
        """
        return self.dims[self._at(level)].bandwidth * self.chips

    def _at(self, level: str) -> int:
        at = [i for i, dim in enumerate(self.dims) if dim.level == level]
        if len(at) != 1:
            known = ", ".join(dict.fromkeys(dim.level for dim in self.dims))
            why = f"must be one of {known}"
            if at:
                dims = " and ".join(str(self.dims[i]) for i in at)
                why = f"must be the name of one dimension; {dims} share it"
            raise ValueError(f"level {short_repr(level)}: {why}")
        return at[0]

    def links(self) -> tuple[Link, ...]:
        """Every directed link of the network.

        Each switch is a vertex, numbered from `chips` up, dimension by dimension. Half
        of a switch's latency is added on the way in and half on the way out. Each
        switch below has an uplink, which adds the extra latency of the higher crossing.

        >>> Network((Ring(2, 50e9, 1e-6, wrap=False),)).links()[1].destination
        0
        """
        found: list[Link] = []
        above, first, vertices = 0, 0, self.chips
        for n, dim in enumerate(self.dims):
            if isinstance(dim, Ring):
                for row in self._rows(n):
                    closing = [(row[-1], row[0])] if dim.wrap else []
                    found += _both(
                        [*pairwise(row), *closing], dim.bandwidth, dim.latency
                    )
                continue
            top, last = self._top(n), self.stack(n)[-1]
            if not 0 <= top <= n:
                continue
            rails = math.prod(self.shape[last + 1 :])
            under = math.prod(self.shape[n : last + 1])  # chips of one switch
            above, first = first, vertices
            vertices += math.prod(self.shape[:n]) * rails
            for switch in range(first, vertices):
                outside, rail = divmod(switch - first, rails)
                if n == last:
                    start = outside * under * rails + rail
                    chips = range(start, start + under * rails, rails)
                    ends = [(chip, switch) for chip in chips]
                    found += _both(ends, dim.bandwidth, dim.latency / 2)
                if n > top:
                    outer = self.dims[n - 1]
                    up = above + outside // outer.size * rails + rail
                    more = (outer.latency - dim.latency) / 2
                    found += _both([(switch, up)], outer.bandwidth * under, more)
        return tuple(found)

    def _rows(self, n: int) -> Iterator[range]:
        """The chips of each row along dimension `n`."""
        stride = math.prod(self.shape[n + 1 :])
        block = stride * self.dims[n].size
        for first in range(0, self.chips, block):
            for chip in range(first, first + stride):
                yield range(chip, first + block, stride)

    def __str__(self) -> str:
        dims = " x ".join(map(str, self.dims))
        even = any(size % 2 == 0 for size in self.shape)
        cut = f"bisection {show(self.bisection, 'bytes/s')}, " if even else ""
        return (
            f"{self.name}: {self.chips:,} chips, {dims}, {cut}"
            f"diameter {self.diameter} hops"
        )

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def _both(
    pairs: Iterable[tuple[int, int]], bandwidth: float, latency: float
) -> list[Link]:
    """A link each way between the ends of every pair."""
    return [
        Link(*ends, bandwidth, latency) for a, b in pairs for ends in ((a, b), (b, a))
    ]


def _check(wires: Ring | Switch) -> None:
    """Turns the numbers into Python's own; raises for those that are invalid."""
    (size,), (rate,) = (
        positive_int(size=wires.size),
        positive(bandwidth=wires.bandwidth),
    )
    latency = not_negative("latency", wires.latency)
    found = {"size": size, "bandwidth": rate, "latency": latency}
    found["level"] = text("level", wires.level)
    for name in ("wrap", "reduces", "uplinks"):
        if hasattr(wires, name):
            (found[name],) = flags(**{name: getattr(wires, name)})
    for name, value in found.items():
        object.__setattr__(wires, name, value)


def not_negatives(**given: object) -> list[int | float]:
    """The values as Python's numbers, each as for `not_negative`."""
    return [not_negative(*one) for one in given.items()]


def not_negative(name: str, value: object) -> int | float:
    """`value` as Python's number; raises a ValueError unless it is finite and ≥ 0."""
    with contextlib.suppress(ValueError, OverflowError):
        found = number(name, value)
        if found >= 0 and math.isfinite(found):
            return found
    raise ValueError(f"{name} = {short_repr(value)}: must be a finite number from 0")
