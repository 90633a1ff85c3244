"""Times of collectives on one mesh, and which of them share links."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from ..base.estimate import Leg
from ..collectives import Collective, Priced, price
from ..collectives.closed_forms import least, loads
from ..collectives.link_load import Pairs, Wires
from ..hardware.mesh import Mesh
from ..hardware.networks.wiring import Switch
from .layout import Names
from .reshard_step import Swaps, axes_of_swaps, pairs

Rate = tuple[float, float]  # seconds of the bytes (of one byte of V), and of latency


class Prices:
    """The times of collectives on one mesh; each is computed once."""

    def __init__(self, mesh: Mesh):
        self.mesh = mesh
        self._priced: dict[Collective, Priced] = {}
        self._wires: dict[Names, Wires] = {}
        self._links: dict[Names, frozenset[int]] = {}
        self._loads: dict[tuple[str, Names], dict[int, float]] = {}
        self._rates: dict[tuple[str, Names, Pairs], Rate | None] = {}
        self._swaps: dict[Swaps, Rate | None] = {}
        self.permutes: dict = {}  # the `PermuteRates` of searches, by `Shapes`

    @cached_property
    def egress(self) -> float:
        """Bytes/s that a chip can send over all its links; infinite for one chip."""
        dims = self.mesh.network.dims
        return sum(dim.egress for dim in dims if dim.size > 1) or math.inf

    @cached_property
    def permute_egress(self) -> float:
        """Bytes/s of those links of a chip that every permute needs, at best.

        A permute of axes with powers of two of devices copies bits of a device's place
        to other bits. So along some dimension of the network, half of the devices
        receive their block from another place, and only the links of that dimension
        lead there. Axes of other sizes may share the blocks out over all dimensions.
        """
        if any(n & (n - 1) for n in self.mesh.axes.values()):
            return self.egress
        dims = self.mesh.network.dims
        return max((dim.egress for dim in dims if dim.size > 1), default=math.inf)

    def of(self, collective: Collective) -> Priced:
        """The price of one collective, with an upper bound that is slow to compute."""
        if collective not in self._priced:
            self._priced[collective] = price(collective, self.mesh)
        return self._priced[collective]

    def terms(self, collective: Collective) -> Rate:
        """Bandwidth term and expected latency of one collective, in seconds."""
        rate = self.rate(collective.op, collective.axes, collective.pairs)
        if rate is None:
            found = self.of(collective)  # raises, and says why
            return found.bandwidth_seconds, found.latency_seconds
        times = collective.times
        return collective.nbytes * rate[0] * times, rate[1] * times

    def rate(self, op: str, axes: Names, who: Pairs = ()) -> Rate | None:
        """The rate of a collective; None if the model has no price for its axes."""
        if (op, axes, who) not in self._rates:
            self._rates[op, axes, who] = self._rate(op, axes, who)
        return self._rates[op, axes, who]

    def permute_rate(self, found: Swaps, sizes: Mapping[str, int]) -> Rate | None:
        """The rate of a permute. If the permute only reorders axes, its inverse has the
        same rate, because every link works in both directions."""
        if found not in self._swaps:
            back = frozenset((new, old) for old, new in found)
            olds, news = ({a for run in found for a in run[side]} for side in (0, 1))
            if olds == news and back in self._swaps:
                rate = self._swaps[back]
            else:
                axes = axes_of_swaps(found, sizes)
                rate = self._rate("permute", axes, pairs(found, sizes))
            self._swaps[found] = rate
        return self._swaps[found]

    def _rate(self, op: str, axes: Names, who: Pairs) -> Rate | None:
        group = math.prod(self.mesh.axes[axis] for axis in axes)
        try:
            if who:  # a search needs thousands: no record, no upper bound
                if axes not in self._wires:
                    pieces = self.mesh.span(axes)
                    self._wires[axes] = tuple(piece.wires for piece in pieces)
                return least(self._wires[axes], who)
            found = price(Collective(op, axes, 1.0, group), self.mesh)
        except ValueError:  # axes that share a ring without being neighbours
            return None
        return found.bandwidth_seconds, found.latency_seconds

    def links(self, axes: Names) -> frozenset[int]:
        """The dimensions of the network whose links `axes` use.

        Traffic over a spine also passes the switches below it.
        """
        if axes not in self._links:
            dims = self.mesh.network.dims
            found = set()
            for piece in self.mesh.span(axes):
                at = piece.dim
                found.add(at)
                while isinstance(dims[at], Switch) and dims[at].uplinks:
                    at += 1
                    found.add(at)
            self._links[axes] = frozenset(found)
        return self._links[axes]

    def busy(self, collectives: Iterable[Collective]) -> dict[int, Rate]:
        """How long `collectives` keep the links of each dimension of the network busy.

        Returns:
            (seconds of the bytes, expected seconds of latency) for each dimension whose
            links carry bytes. All links that a collective uses wait for its full
            latency.
        """
        found: dict[int, Rate] = {}
        for collective in collectives:
            latency = self.terms(collective)[1]
            for link, seconds in self.loads(collective).items():
                before = found.get(link, (0.0, 0.0))
                found[link] = before[0] + seconds, before[1] + latency
        return found

    def lower(self, collectives: Iterable[Collective]) -> float:
        """Seconds of the busiest links, if collectives on other links overlap.

        We leave out latency, and assume that arrays are sent in pieces, so a collective
        that waits for another can start with the first piece. No schedule of these
        collectives is faster.
        """
        return max((load for load, _ in self.busy(collectives).values()), default=0.0)

    def expected(self, collectives: Iterable[Collective]) -> float:
        """Seconds of the busiest links, with expected latency; this is not a bound."""
        return max(map(sum, self.busy(collectives).values()), default=0.0)

    def loads(self, collective: Collective) -> dict[int, float]:
        """Seconds for which the links of each dimension of the network are busy.

        If a gather spans nodes, network cards and NVLink are busy for different times.
        A permute keeps all its dimensions busy for its full time.
        """
        if collective.op == "permute":
            return dict.fromkeys(self.links(collective.axes), self.terms(collective)[0])
        key = collective.op, collective.axes
        if key not in self._loads:
            pieces = self.mesh.span(collective.axes)
            found = loads(collective.op, 1.0, tuple(p.wires for p in pieces))
            self._loads[key] = {
                pieces[at].dim: seconds for places, seconds in found for at in places
            }
        nbytes = collective.nbytes * collective.times
        return {dim: nbytes * seconds for dim, seconds in self._loads[key].items()}

    def in_turn(self, collectives: Sequence[Collective]) -> float:
        """Expected seconds in turn, if all network levels of each work at once."""
        return sum(sum(self.terms(collective)) for collective in collectives)

    def upper(self, collectives: Sequence[Collective]) -> float:
        """Expected seconds in turn, if the network levels of each also work in turn."""
        return sum(self.of(collective).upper for collective in collectives)

    def leg(self, collectives: Sequence[Collective]) -> Leg:
        """The network's part of an estimate, between `lower` and `upper`."""
        sent = sum(c.total_sent for c in collectives)
        lower = self.lower(collectives)
        slack = max(0.0, self.upper(collectives) - lower)  # rounding may give below 0
        return Leg("network", sent, sent / lower, slack)
