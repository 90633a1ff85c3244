"""Rates of collectives on the parts of a network that mesh axes are laid on."""

from ..hardware.mesh import Mesh
from ..hardware.networks import Network
from ..training.amounts import Names, Sizes, Wire
from ..training.job import Job
from ..training.rates import Rate, Rates

ALIKE = {"reduce_scatter": "all_gather"}  # backwards; links carry as much either way


class Links:
    """Rates on one network, for axes of any size that are laid in one order.

    What an axis gets depends on its size and on how many chips are inside it, and on
    nothing else. So meshes that lay the same axes on the same wires share a rate.

    Args:
        network: where the chips are.
        order: names of axes, outermost first.
        job: what is trained; its experts decide how many copies of a token travel.
    """

    def __init__(self, network: Network, order: Names, job: Job):
        self.network, self.order, self.job = network, order, job
        self._laid: dict[tuple[int, ...], str] = {}
        self._rates: dict[tuple, Rate | None] = {}
        self._last: tuple[Sizes, Rates] | None = None

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
        """Seconds for a byte on the links of each dimension of the network; None where
        axes share a ring without being neighbours on it.

        Args:
            wire: operation, axes, and the kind of a hop or an exchange.
            sizes: of all axes.
            inside: chips inside each axis.
        """
        op, axes, kind = wire
        op, kind = ALIKE.get(op, op), kind.removesuffix(" back")
        key = op, kind, tuple((inside[axis], sizes[axis]) for axis in axes)
        if key not in self._rates:
            if self._last is None or self._last[0] is not sizes:
                self._last = sizes, Rates(self.mesh(sizes), self.job)
            self._rates[key] = self._last[1]((op, axes, kind))
        return self._rates[key]
