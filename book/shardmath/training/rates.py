"""How many seconds a byte of a collective keeps the links of a network busy."""

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from ..collectives.closed_forms import loads
from ..hardware.mesh import Mesh, Piece
from ..sharding.prices import Prices
from .amounts import Wire
from .experts import copies
from .job import Job

Rate = Mapping[int, float]  # seconds per byte, by dimension of the network
Levels = Iterable[tuple[tuple[int, ...], float]]  # indices of pieces, seconds per byte


class Rates:
    """Rates of the collectives of one job on one mesh.

    Args:
        mesh: a mesh on a network.
        job: the job; its experts decide how many copies of a token are sent.
        prices: the prices of the mesh; computed if not given.
    """

    def __init__(self, mesh: Mesh, job: Job, prices: Prices | None = None):
        self.mesh, self.job, self.prices = mesh, job, prices or Prices(mesh)
        self._rates: dict[Wire, Rate | None] = {}

    def __call__(self, wire: Wire) -> Rate | None:
        """Seconds per byte on the links of each dimension of the network; None if mesh
        axes share a ring without being neighbours on it, so there is no price."""
        if wire not in self._rates:
            try:
                self._rates[wire] = self._rate(*wire)
            except ValueError:
                self._rates[wire] = None
        return self._rates[wire]

    def _rate(self, op: str, axes: tuple[str, ...], kind: str) -> Rate | None:
        if op == "permute":
            found = self.prices.rate(op, axes, pairs(kind, self.mesh.size(axes)))
            return found and dict.fromkeys(self.prices.links(axes), found[0])
        pieces = self.mesh.span(axes)
        found = loads(op, 1.0, tuple(piece.wires for piece in pieces))
        if kind == "dealt":
            found = list(self._dealt(pieces, found))
        return {pieces[at].dim: seconds for places, seconds in found for at in places}

    def _dealt(
        self, pieces: Sequence[Piece], found: Sequence[tuple[tuple[int, ...], float]]
    ) -> Levels:
        """Lower rates for tokens that go to their experts and back.

        An AllToAll sends k copies of a token. But only one copy has to reach each node,
        and each chip, that has some of the token's experts. Copies enter a node through
        the network cards of its chips. They enter a chip through all its links, because
        a copy may come through the chip's own card or from another chip of the node.
        """
        experts = self.job.model.experts
        n = prod(piece.wires.size for piece in pieces)
        inmost = len(pieces) - 1
        for places, seconds in found:
            units = prod(piece.wires.size for piece in pieces[: places[-1] + 1])
            chips = inmost in places
            if chips and len(found) > 1:
                seconds = (n - 1) / n**2 / self.prices.egress
            limit = None if chips else self.job.node_limit
            share = copies(experts.count, experts.per_token, units, limit)
            yield places, seconds * share / experts.per_token


def pairs(kind: str, n: int) -> tuple[tuple[int, int], ...]:
    """Pairs of sender and receiver in a hop or exchange of this kind (see `Move.kind`).

    >>> pairs("line", 3), pairs("swap", 3)
    (((0, 1), (1, 2)), ((0, 2), (2, 0)))
    """
    kind = kind.removesuffix(" back")  # links carry as much in either direction
    if kind == "swap":
        return (0, n - 1), (n - 1, 0)
    if kind == "mirror":
        return tuple((i, n - 1 - i) for i in range(n))
    return tuple((i, (i + 1) % n) for i in range(n if kind == "ring" else n - 1))
