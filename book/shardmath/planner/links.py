"""What collectives take on the parts of a network that mesh axes lie on."""

from collections.abc import Mapping

from ..collectives import Collective
from ..mesh import Mesh
from ..networks import Network
from ..sharding.prices import Prices
from .amounts import Names, Sizes, Wire

Rate = tuple[Mapping[int, float], float]  # seconds a byte by dimension; of a run, late


ALIKE = {"reduce_scatter": "all_gather"}  # backwards; links go both ways alike


class Links:
    """Rates of collectives on one network, for axes of any size laid in one order.

    What an axis gets depends on its size and on how many chips lie inside it, no more:
    so meshes that lay the same axes on the same wires share a rate.

    Args:
        network: where the chips are.
        order: names of axes, outermost first.
    """

    def __init__(self, network: Network, order: Names):
        self.network, self.order = network, order
        self._laid: dict[tuple[int, ...], str] = {}
        self._rates: dict[tuple, Rate | None] = {}
        self._last: tuple[Sizes, Prices] | None = None

    def mesh(self, sizes: Sizes) -> Mesh:
        """The axes that are larger than 1, laid in order.

        Raises:
            ValueError: a size does not divide a side of the network.
        """
        axes = {name: sizes[name] for name in self.order if sizes[name] > 1}
        return Mesh(self.network, axes or {self.order[0]: 1})

    def obstacle(self, sizes: Sizes) -> str:
        """Why the axes cannot be laid on the network; "" where they can.

        Whether an axis can be laid depends on the product of those inside it alone.
        """
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
        """Seconds for a byte on the links of each dimension of the network, and the
        latency of a run; None where axes share a ring without being neighbours on it.

        Args:
            wire: operation, axes, and the way of a hop or a swap.
            sizes: of all axes.
            inside: chips inside each axis.
        """
        op, axes, way = wire
        op, way = ALIKE.get(op, op), way.removesuffix(" back")
        key = op, way, tuple((inside[axis], sizes[axis]) for axis in axes)
        if key not in self._rates:
            self._rates[key] = self._rate(op, axes, way, sizes)
        return self._rates[key]

    def _rate(self, op: str, axes: Names, way: str, sizes: Sizes) -> Rate | None:
        if self._last is None or self._last[0] is not sizes:
            self._last = sizes, Prices(self.mesh(sizes))
        prices = self._last[1]
        n = prices.mesh.size(axes)
        if way:
            hop = prices.rate(op, axes, _pairs(way, n))
            return hop and (dict.fromkeys(prices.links(axes), hop[0]), hop[1])
        one = Collective(op, axes, 1.0, n)
        try:
            latency = prices.terms(one)[1]
        except ValueError:
            return None
        return prices.loads(one), latency


def _pairs(way: str, n: int) -> tuple[tuple[int, int], ...]:
    """Who sends to whom, as `parallelism.moves.Hop` and `Swap` have it."""
    if way == "swap":
        return (0, n - 1), (n - 1, 0)
    if way == "mirror":
        return tuple((i, n - 1 - i) for i in range(n))
    return tuple((i, (i + 1) % n) for i in range(n if way == "ring" else n - 1))
