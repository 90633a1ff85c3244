"""Collectives: what moves when arrays are spread over chips, and how long it takes.

>>> from shardmath.chips import TPU_V5P
>>> from shardmath.mesh import Mesh
>>> from shardmath.networks import Torus
>>> mesh = Mesh(Torus(TPU_V5P, (8, 8, 8)), {"X": 8, "Y": 64})
>>> print(all_gather(64e6, mesh, "X"))
AllGather over X (8 devices), 64 MB: 284 µs (280 µs at the rate of ICI, 4 µs latency)
"""

import math
from dataclasses import dataclass
from numbers import Integral

from ..mesh import Mesh
from ..units import positive, show
from .closed_forms import times as closed_form

NAMES = {
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "all_reduce": "AllReduce",
    "all_to_all": "AllToAll",
    "permute": "Permute",
}
Axes = str | tuple[str, ...]


@dataclass(frozen=True)
class Collective:
    """One collective of a program: who takes part, how many bytes, how often.

        AllGather, ReduceScatter  sent = V·(n−1)/n      AllToAll  sent = V/n·(n−1)/n
        AllReduce                 sent = 2·V·(n−1)/n    Permute   sent = V

    Args:
        op: a key of `NAMES`, such as "all_gather".
        axes: names of the mesh axes that it runs over.
        nbytes: V, bytes of the array as it is without the sharding over `axes` (it may
            still be sharded over others): AllGather's result, ReduceScatter's input,
            AllReduce's operand; AllToAll's whole array, n times the local part;
            for a permute what one device sends.
        group: n, devices that take part in one group, the product of the axes' sizes.
        times: how often it runs.
        when: where in the step, such as "forward".

    Raises:
        ValueError: an unknown op, bytes not above 0, a count that is not whole.

    >>> print(Collective("all_gather", ("X",), 1e6, group=4))
    AllGather over X (4 devices), 1 MB: each sends 750 kB
    """

    op: str
    axes: tuple[str, ...]
    nbytes: float
    group: int
    times: int = 1
    when: str = ""

    def __post_init__(self) -> None:
        if self.op not in NAMES:
            raise ValueError(f"op {self.op!r}: must be one of {', '.join(NAMES)}")
        axes = (self.axes,) if isinstance(self.axes, str) else tuple(self.axes)
        object.__setattr__(self, "axes", axes)
        positive(nbytes=self.nbytes)
        for name, count in {"group": self.group, "times": self.times}.items():
            if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
                raise ValueError(f"{name} = {count!r}: must be a whole number from 1")

    @property
    def sent(self) -> float:
        """Bytes that one device sends when the collective runs once.

        The least it can do; devices that pass parts of others on send those as well.
        """
        n = self.group
        others = self.nbytes * (n - 1) / n
        return {
            "all_gather": others,
            "reduce_scatter": others,
            "all_reduce": 2 * others,
            "all_to_all": others / n,
            "permute": self.nbytes if n > 1 else 0.0,
        }[self.op]

    @property
    def total_sent(self) -> float:
        """Bytes that one device sends in all `times` runs."""
        return self.sent * self.times

    @property
    def title(self) -> str:
        """Its name, axes, devices and bytes, in the words of the book."""
        over = " ".join(self.axes) or "no axis"
        size = show(self.nbytes, "bytes")
        text = f"{NAMES[self.op]} over {over} ({self.group} devices), {size}"
        text += f", {self.times} times" if self.times > 1 else ""
        return f"{text}, {self.when}" if self.when else text

    def __str__(self) -> str:
        return f"{self.title}: each sends {show(self.sent, 'bytes')}"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


@dataclass(frozen=True)
class Priced:
    """A collective and its time; the seconds are those of all its runs.

    `level` names the links that set the bandwidth term. `exact` says whether a schedule
    is known that takes just as long (`simulator` plays it); otherwise the bandwidth
    term is a lower bound. Not in it: the time to start a kernel, what protocols add,
    links that other traffic shares.
    """

    collective: Collective
    bandwidth_seconds: float
    latency_seconds: float
    level: str
    exact: bool

    @property
    def seconds(self) -> float:
        """Bandwidth and latency term together."""
        return self.bandwidth_seconds + self.latency_seconds

    @property
    def bus_bandwidth(self) -> float:
        """Bytes/s: what a device must send without help from the network, over time.

        NCCL's "busbw". A switch that reduces spares the devices half the sending, so
        that this can exceed the bandwidth of the wire.
        """
        return self.collective.total_sent / self.seconds if self.seconds else math.inf

    @property
    def latency_bound_below(self) -> float:
        """Bytes V at which both terms are equal; smaller arrays are latency-bound."""
        if not self.bandwidth_seconds:
            return 0.0
        return self.collective.nbytes * self.latency_seconds / self.bandwidth_seconds

    def __str__(self) -> str:
        if self.collective.group == 1:
            return f"{self.collective.title}: nothing to send"
        least = "" if self.exact else "at least "
        return (
            f"{self.collective.title}: {least}{show(self.seconds, 's')} "
            f"({show(self.bandwidth_seconds, 's')} at the rate of {self.level}, "
            f"{show(self.latency_seconds, 's')} latency)"
        )

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def price(collective: Collective, mesh: Mesh, one_way: bool = False) -> Priced:
    """The time of `collective` on `mesh`: the closed forms of `closed_forms`.

    Args:
        collective: its axes must be axes of `mesh`, its group of their size.
        mesh: all groups over these axes run at once and share the links.
        one_way: use one direction of every ring only.

    Raises:
        ValueError: the mesh has no such axis, or another number of devices on it.
    """
    size = mesh.size(collective.axes)
    if size != collective.group:
        raise ValueError(
            f"group = {collective.group}: must be the {size} devices that the mesh "
            f"has over {' '.join(collective.axes)}"
        )
    wires = tuple(piece.wires for piece in mesh.span(collective.axes))
    found = closed_form(collective.op, collective.nbytes, wires, one_way)
    bandwidth, latency = (seconds * collective.times for seconds in found[:2])
    return Priced(collective, bandwidth, latency, found.level, found.exact)


def all_gather(nbytes: float, mesh: Mesh, axes: Axes, one_way: bool = False) -> Priced:
    """A[I_X] -> A[I]: each device ends with the whole array of `nbytes`.

    On a bidirectional ring V/(2W)·(n−1)/n + ⌊n/2⌋·α; the time does not depend on n.
    """
    return _priced("all_gather", nbytes, mesh, axes, one_way)


def reduce_scatter(
    nbytes: float, mesh: Mesh, axes: Axes, one_way: bool = False
) -> Priced:
    """A[I]{U_X} -> A[I_X]: sums `nbytes` over the devices, each ends with 1/n of it.

    The AllGather run backwards, so it takes as long.
    """
    return _priced("reduce_scatter", nbytes, mesh, axes, one_way)


def all_reduce(nbytes: float, mesh: Mesh, axes: Axes, one_way: bool = False) -> Priced:
    """A[I]{U_X} -> A[I]: sums `nbytes` over the devices, each ends with all of it.

    A ReduceScatter, then an AllGather, so twice the time of either, except where a
    switch adds by itself: V/W. On a line that is not the optimum: sums that run to one
    end, their first parts already on the way back, need V/W, not 2V/W·(n−1)/n.
    """
    return _priced("all_reduce", nbytes, mesh, axes, one_way)


def all_to_all(nbytes: float, mesh: Mesh, axes: Axes, one_way: bool = False) -> Priced:
    """A[I_X, J] -> A[I, J_X]: each device sends 1/n of its part to each other.

    `nbytes` is the whole array, n times a device's part. On a bidirectional ring it
    takes n/(4(n−1)) of the AllGather's bandwidth term (n even): a quarter, for large n.
    """
    return _priced("all_to_all", nbytes, mesh, axes, one_way)


def permute(nbytes: float, mesh: Mesh, axes: Axes, one_way: bool = False) -> Priced:
    """Each device sends `nbytes` to the next one on the axis, the last to the first."""
    return _priced("permute", nbytes, mesh, axes, one_way)


def _priced(op: str, nbytes: float, mesh: Mesh, axes: Axes, one_way: bool) -> Priced:
    return price(Collective(op, axes, nbytes, mesh.size(axes)), mesh, one_way)
