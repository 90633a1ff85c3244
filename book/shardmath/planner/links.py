"""Rates of collectives on the parts of a network to which mesh axes are mapped."""

from collections.abc import Iterator
from functools import cache

from ..hardware.mesh import Mesh
from ..hardware.networks import Network, Torus
from ..training.amounts import Names, Sizes, Wire
from ..training.job import Job
from ..training.rates import Rate, Rates

ALIKE = {"reduce_scatter": "all_gather"}  # the reverse, which costs the same


class Links:
    """Rates on one network, for axes of any size that are mapped to it in one order.

    The wires of an axis depend only on its size and on how many chips are inside it. So
    meshes that map the same axes to the same wires share a rate.

    Args:
        network: the network of the chips.
        order: names of axes, outermost first.
        job: the job, whose experts decide how many copies of a token are sent.
        blocks: whether tensor parallelism, if it is the innermost axis, takes a block
            of neighbours on a torus if the block has more wires than a row.
    """

    def __init__(self, network: Network, order: Names, job: Job, blocks: bool = False):
        self.network, self.order, self.job = network, order, job
        self.blocks = blocks and isinstance(network, Torus)
        self._laid: dict[tuple[int, ...], str] = {}
        self._rates: dict[tuple, Rate | None] = {}
        self._last: tuple[Sizes, Rates] | None = None

    def mesh(self, sizes: Sizes) -> Mesh:
        """The mesh of all axes that are larger than 1, in order.

        Raises:
            ValueError: the axes do not fit on the dimensions of the network.
        """
        axes = {name: sizes[name] for name in self.order if sizes[name] > 1}
        inmost, block = self.block(sizes)
        blocks = {inmost: block} if block else {}
        return Mesh(self.network, axes or {self.order[0]: 1}, blocks)

    def block(self, sizes: Sizes) -> tuple[str, tuple[int, ...]]:
        """The innermost axis, and the sides of its block. There are no sides if a row
        has as many wires, or if the axis is not that of tensor parallelism."""
        inmost = next((a for a in reversed(self.order) if sizes[a] > 1), "")
        if not self.blocks or inmost != "tensor":
            return inmost, ()
        return inmost, best_block(self.network, sizes["tensor"])

    def obstacle(self, sizes: Sizes) -> str:
        """Why the axes cannot be mapped to the network; "" if they can.

        For axes in rows, the answer depends only on the size of each axis and on the
        product of the sizes of the axes inside it.
        """
        if self.block(sizes)[1]:
            try:
                self.mesh(sizes)
            except ValueError as error:
                return str(error)
            return ""
        inside = 1
        for axis in reversed(self.order):
            size = sizes[axis]
            if size > 1 and (why := self._unlaid(inside, size, axis)):
                return why
            inside *= size
        return ""

    def _unlaid(self, inside: int, size: int, axis: str) -> str:
        if (inside, size) not in self._laid:
            rest = self.network.chips // (inside * size)
            some = {"outside": rest, axis: size, "inside": inside}
            self._laid[inside, size] = ""
            try:
                Mesh(self.network, {name: n for name, n in some.items() if n > 1})
            except ValueError as error:
                self._laid[inside, size] = str(error)
        return self._laid[inside, size]

    def rate(self, wire: Wire, sizes: Sizes, inside: Sizes) -> Rate | None:
        """Seconds per byte on the links of each dimension of the network; None if axes
        share a ring without being neighbours on it.

        Args:
            wire: the operation, its axes, and the kind of hop or exchange.
            sizes: the sizes of all axes.
            inside: the number of chips inside each axis.
        """
        op, axes, kind = wire
        op, kind = ALIKE.get(op, op), kind.removesuffix(" back")
        laid = tuple((inside[axis], sizes[axis]) for axis in axes)
        key = op, kind, laid, self.block(sizes)[1]
        if key not in self._rates:
            if self._last is None or self._last[0] is not sizes:
                self._last = sizes, Rates(self.mesh(sizes), self.job)
            self._rates[key] = self._last[1]((op, axes, kind))
        return self._rates[key]


@cache
def best_block(network: Network, ways: int) -> tuple[int, ...]:
    """The sides of the block of `ways` neighbours with the most wires on a torus.

    There are no sides if no block has more wires than a row.

    >>> from shardmath.hardware.chips import TPU_V5P
    >>> cube = Torus(TPU_V5P, (8, 8, 8))
    >>> best_block(cube, 4), best_block(cube, 8), best_block(cube, 64)
    ((1, 2, 2), (2, 2, 2), ())
    """
    outside = network.chips // ways
    axes = {"outside": outside, "block": ways} if outside > 1 else {"block": ways}
    try:
        most, found = Mesh(network, axes).bandwidth("block"), ()
    except ValueError:  # it cannot be laid in a row
        most, found = 0.0, ()
    for sides in blocks(network.shape, ways):
        wires = Mesh(network, axes, {"block": sides}).bandwidth("block")
        if wires > 1.001 * most:
            most, found = wires, sides
    return found


def blocks(shape: tuple[int, ...], ways: int) -> Iterator[tuple[int, ...]]:
    """The sides of every block of `ways` places that can tile a grid.

    >>> list(blocks((4, 8), 8))
    [(1, 8), (2, 4), (4, 2)]
    """
    first, *others = shape
    if not others:
        if first % ways == 0:
            yield (ways,)
        return
    for side in range(1, first + 1):
        if first % side == 0 and ways % side == 0:
            for rest in blocks(tuple(others), ways // side):
                yield side, *rest
