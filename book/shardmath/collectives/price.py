"""The time of a collective on a mesh, from its record or from its name."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..base.units import flags, short_repr, shortened, show
from ..hardware.mesh import Mesh
from ..hardware.networks.wiring import not_negative
from .closed_forms import CollectiveTimes, routed, times
from .collective import AxisNames, Collective


@dataclass(frozen=True)
class Priced:
    """A collective, and the time of all its runs together, in seconds.

        lower ≤ time of a schedule         bytes over bandwidth, no latency
        expected = lower + latency         what a good schedule should take
        upper                              one level after the other, with latency

    `lower` is a bound because it counts no latency and lets all levels of the network
    work at the same time, at the full rate of their links; `level` names the slowest
    one. The latency is an estimate: it depends on the software and the generation of
    the hardware, and a kernel may be quicker (`networks.LATENCY` has values and
    sources).

    Over several levels, `lower` holds for schedules in which each byte enters a node
    once, as it does in all schedules that we know. If NVLink is the slower level, some
    bytes could enter twice, through the cards of two GPUs, to reduce the load on
    NVLink. Then the only limit would be the links of a GPU, NVLink and card together.
    That limit is 3.6 % below `lower` on two nodes of H100s and 9 to 14 % below on nodes
    of H800s.

    If `exact` is true, `simulator` plays a schedule that takes `expected`. All times
    leave out kernel starts, the overhead of protocols, and other traffic.

    Args:
        collective: the collective that runs.
        bandwidth_seconds: seconds of the busiest links at full rate.
        latency_seconds: seconds that we expect the hops to add.
        level: the level whose links set the bandwidth term.
        upper: seconds if the levels of the network wait for each other.
        exact: whether a schedule is known that takes `expected`.
    """

    collective: Collective
    bandwidth_seconds: float
    latency_seconds: float
    level: str
    upper: float
    exact: bool

    @property
    def lower(self) -> float:
        """Seconds of the bytes without latency, if all levels work at the same time."""
        return self.bandwidth_seconds

    @property
    def expected(self) -> float:
        """Seconds of the bytes, plus the latency that we expect; not a bound."""
        return self.bandwidth_seconds + self.latency_seconds

    @property
    def seconds(self) -> float:
        """The same as `expected`."""
        return self.expected

    @property
    def bus_bandwidth(self) -> float:
        """Bytes/s that no run exceeds: `collective.total_sent` divided by `lower`.

        This is NCCL's "busbw". A switch that reduces halves what devices send in an
        AllReduce, so the value can exceed the bandwidth of the wire.
        """
        return self.collective.total_sent / self.lower if self.lower else math.inf

    @property
    def latency_bound_below(self) -> float:
        """Bytes V at which the expected latency equals the bandwidth term."""
        if not self.bandwidth_seconds:
            return 0.0
        return self.collective.nbytes * self.latency_seconds / self.bandwidth_seconds

    def __str__(self) -> str:
        if self.collective.group == 1:
            return f"{self.collective.title}: nothing to send"
        text = f"{self.collective.title}: at least {show(self.lower, 's')} at the rate "
        text += f"of {self.level}"
        if self.latency_seconds:
            latency = show(self.latency_seconds, "s")
            text += f", {show(self.expected, 's')} expected with {latency} of latency"
        if not self.exact:
            text += f", up to {show(self.upper, 's')}"
        return text

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def price(collective: Collective, mesh: Mesh, one_way: bool = False) -> Priced:
    """The time of `collective` on `mesh`, by the formulas of `closed_forms`.

    Args:
        collective: its axes must be axes of `mesh`, with as many devices as its group.
        mesh: all of its groups over these axes run at once and share the links.
        one_way: use only one direction of every ring.

    Raises:
        ValueError: an argument of the wrong type, an axis that the mesh lacks, or axes
            whose number of devices differs from the group.

    >>> from shardmath.hardware.networks import network
    >>> mesh = Mesh(network("v5e:16x16"), {"X": 16, "Y": 16})
    >>> one = Collective("all_gather", ("X",), 1e9, 16)
    >>> price(one, mesh).lower < price(one, mesh, one_way=True).lower
    True
    """
    if not isinstance(collective, Collective):
        raise ValueError(f"collective = {short_repr(collective)}: must be a Collective")
    size = a_mesh(mesh).size(collective.axes)
    if size != collective.group:
        raise ValueError(
            f"group = {collective.group}: must be the {size} devices that the mesh "
            f"has over {shortened(' '.join(collective.axes))}"
        )
    (one_way,) = flags(one_way=one_way)
    wires = tuple(piece.wires for piece in mesh.span(collective.axes, one_way))
    record = collective.op, collective.nbytes, wires, one_way, collective.pairs
    return _priced(collective, times(*record))


def price_of(
    op: str,
    nbytes: float,
    mesh: Mesh,
    axes: AxisNames,
    one_way: bool = False,
    pairs: tuple[tuple[int, int], ...] = (),
) -> Priced:
    """The `price` of one run of the collective `op`.

    Args:
        op, nbytes, axes, pairs: as in `Collective`.
        mesh, one_way: as in `price`.

    Raises:
        ValueError: as for `Collective` and `price`.

    >>> from shardmath.hardware.chips import H100
    >>> from shardmath.hardware.networks import NVLinkDomain
    >>> node = Mesh(NVLinkDomain(H100), {"X": 8})
    >>> price_of("all_to_all", 64e6, node, "X").level
    'NVLink'
    """
    one = Collective(op, axes, nbytes, a_mesh(mesh).size(axes), pairs=pairs)
    return price(one, mesh, one_way)


def all_gather(
    nbytes: float, mesh: Mesh, axes: AxisNames, one_way: bool = False
) -> Priced:
    """A[I_X] -> A[I]: each device ends up with the whole array of `nbytes`.

    On a bidirectional ring it takes V/(2W)·(n−1)/n + ⌊n/2⌋·α, whose first term hardly
    depends on n. A device receives V·(n−1)/n over its own links wherever the bytes are
    copied, so a switch that multicasts does not help. An idle axis Z helps: every
    device keeps only its part over Z, which costs nothing, and gathers over X and Z.

    >>> from shardmath.hardware.networks import network
    >>> mesh = Mesh(network("v5e:16x16"), {"X": 16, "Y": 16})
    >>> found = all_gather(1e9, mesh, "X")
    >>> f"at least {1000 * found.lower:.3f} ms, {1000 * found.expected:.3f} ms expected"
    'at least 9.375 ms, 9.383 ms expected'
    """
    return price_of("all_gather", nbytes, mesh, axes, one_way)


def reduce_scatter(
    nbytes: float, mesh: Mesh, axes: AxisNames, one_way: bool = False
) -> Priced:
    """A[I]{U_X} -> A[I_X]: adds arrays of `nbytes`; each device gets 1/n of the sum.

    It is an AllGather run backwards, so it takes as long as an AllGather.

    >>> from shardmath.hardware.networks import network
    >>> mesh = Mesh(network("v5e:16x16"), {"X": 16, "Y": 16})
    >>> found = reduce_scatter(1e9, mesh, "X")
    >>> found.expected == all_gather(1e9, mesh, "X").expected
    True
    """
    return price_of("reduce_scatter", nbytes, mesh, axes, one_way)


def all_reduce(
    nbytes: float, mesh: Mesh, axes: AxisNames, one_way: bool = False
) -> Priced:
    """A[I]{U_X} -> A[I]: adds arrays of `nbytes`; each device gets the whole sum.

    On a ring and on a switch it is a ReduceScatter and then an AllGather, so it takes
    twice as long as one of them. A switch that adds and multicasts the sum takes V/W,
    if sends and receives overlap. On a line, a ReduceScatter and an AllGather would
    take 2V/W·(n−1)/n. The bound is V/W. An AllReduce approaches it if partial sums
    travel to one end in small pieces while finished pieces return.

    No schedule sends fewer bytes, but we expect a one-shot AllReduce to be faster for
    small arrays: every device sends its whole array to all others, and adds what it
    receives. That takes half the hops, and as many bytes as an AllGather of n·V.
    Kernels of vLLM and of MAX choose between the two by size (sources in chapter 5).

    >>> from shardmath.hardware.chips import H200
    >>> from shardmath.hardware.networks import NVLinkDomain
    >>> node = Mesh(NVLinkDomain(H200), {"X": 8})
    >>> for V in (8e3, 8e6):
    ...     two, one = all_reduce(V, node, "X"), all_gather(8 * V, node, "X")
    ...     print(f"{two.expected:.2g} s in two passes, {one.expected:.2g} s in one")
    6.7e-06 s in two passes, 3.5e-06 s in one
    3.8e-05 s in two passes, 0.00013 s in one
    """
    return price_of("all_reduce", nbytes, mesh, axes, one_way)


def all_to_all(
    nbytes: float, mesh: Mesh, axes: AxisNames, one_way: bool = False
) -> Priced:
    """A[I_X, J] -> A[I, J_X]: each device sends 1/n of its part to every other.

    `nbytes` is the whole array, n times a device's part. On a bidirectional ring with
    even n, the bandwidth term is n/(4(n−1)) times that of an AllGather, about a
    quarter.

    >>> from shardmath.hardware.networks import network
    >>> mesh = Mesh(network("v5e:16x16"), {"X": 16, "Y": 16})
    >>> found, gather = all_to_all(1e9, mesh, "X"), all_gather(1e9, mesh, "X")
    >>> f"{1000 * found.lower:.2f} ms, {found.lower / gather.lower:.3f} of an AllGather"
    '2.50 ms, 0.267 of an AllGather'
    """
    return price_of("all_to_all", nbytes, mesh, axes, one_way)


def ragged_all_to_all(
    sent: Sequence[Sequence[float]],
    mesh: Mesh,
    axes: AxisNames,
    one_way: bool = False,
) -> Priced:
    """An AllToAll of uneven parts, such as tokens to the experts that they chose.

    Args:
        sent: `sent[i][j]`, the bytes that place i of the group sends to place j. The
            bytes `sent[i][i]`, which stay there, cross no link.
        mesh, axes, one_way: as in `price_of`.

    Returns:
        Its bounds: every byte takes a shortest path, and the busiest cut sets the lower
        bound. `collective` is the even AllToAll that sends equally many bytes.

    Raises:
        ValueError: `sent` is not n rows of n numbers from 0, or sends nothing; or as
            for `price`.

    >>> from shardmath.hardware.chips import H100
    >>> from shardmath.hardware.networks import NVLinkDomain
    >>> four = Mesh(NVLinkDomain(H100, 4), {"X": 4})
    >>> even = ragged_all_to_all([[1e6] * 4] * 4, four, "X")
    >>> skewed = ragged_all_to_all([[0, 3e6, 0, 0]] + [[1e6] * 4] * 3, four, "X")
    >>> even.lower == all_to_all(16e6, four, "X").lower
    True
    >>> skewed.bandwidth_seconds / even.bandwidth_seconds
    1.6666666666666667
    """
    n = a_mesh(mesh).size(axes)
    try:
        rows = [list(row) for row in sent]
    except TypeError:
        rows = []
    if [len(row) for row in rows] != [n] * n:
        raise ValueError(
            f"sent = {short_repr(sent)}: must be {n} rows of {n} numbers of bytes"
        )
    flows = (
        (i, j, not_negative(f"sent[{i}][{j}]", nbytes))
        for i, row in enumerate(rows)
        for j, nbytes in enumerate(row)
    )
    traffic = tuple((i, j, nbytes) for i, j, nbytes in flows if i != j and nbytes)
    total = sum(nbytes for *_, nbytes in traffic)
    if not total:
        raise ValueError(
            f"sent = {short_repr(sent)}: must send bytes from one place to another"
        )
    even = Collective("all_to_all", axes, total * n / (n - 1), n)
    (one_way,) = flags(one_way=one_way)
    wires = tuple(piece.wires for piece in mesh.span(axes, one_way))
    return _priced(even, routed(wires, traffic, one_way))


def permute(
    nbytes: float,
    mesh: Mesh,
    axes: AxisNames,
    one_way: bool = False,
    pairs: tuple[tuple[int, int], ...] = (),
) -> Priced:
    """Each device sends `nbytes` to another: as in `pairs`, or by default to the next.

    We count the bytes on the links that the pairs cross. For `lower`, all parallel
    links share them; for `upper`, they move dimension by dimension, one hop at a time.
    The time of a transpose of a 4 × 4 torus, (i, j) to (j, i), lies between the two:

    >>> from shardmath.hardware.chips import TPU_V4
    >>> from shardmath.hardware.networks import Torus
    >>> cube = Mesh(Torus(TPU_V4, (4, 4, 4)), {"X": 4, "Y": 4, "Z": 4})
    >>> turn = tuple((4 * i + j, 4 * j + i) for i in range(4) for j in range(4))
    >>> turned = permute(1e9, cube, ("X", "Y"), pairs=turn)
    >>> turned.lower, round(turned.upper, 6)
    (0.01, 0.070004)
    """
    return price_of("permute", nbytes, mesh, axes, one_way, pairs)


def a_mesh(mesh: object) -> Mesh:
    """`mesh`, if it is a Mesh; if not, raises a ValueError that quotes it."""
    if not isinstance(mesh, Mesh):
        raise ValueError(f"mesh = {short_repr(mesh)}: must be a Mesh")
    return mesh


def _priced(collective: Collective, found: CollectiveTimes) -> Priced:
    """The bounds of one run, multiplied by the number of runs."""
    bandwidth, latency, upper = (
        seconds * collective.times
        for seconds in (found.bandwidth_seconds, found.latency_seconds, found.upper)
    )
    return Priced(collective, bandwidth, latency, found.level, upper, found.exact)
