"""A change of sharding: the collectives that it needs, and their time."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ..base.units import show
from ..collectives import Collective, Priced
from ..hardware.chips import Chip
from ..hardware.mesh import Mesh
from .bind_axes import axis_words, bound, names, usable_axes
from .fused_axes import fewer_axes, runs_to_search, spelt, with_fewer_axes
from .layout import Names, ShardedArray
from .machine import Machine, priced
from .notation import parse
from .prices import Prices
from .reshard_search import routes
from .reshard_step import Change


@dataclass(frozen=True)
class Resharding:
    """The steps of an array from `source` to `target`."""

    source: ShardedArray
    target: ShardedArray
    steps: tuple[Change, ...]
    mesh: Mesh | Chip | None = None

    @property
    def collectives(self) -> tuple[Collective, ...]:
        return tuple(step.collective for step in self.steps if step.collective)

    @property
    def sent(self) -> float:
        """Bytes that one device sends."""
        return sum(c.total_sent for c in self.collectives)

    @property
    def priced(self) -> tuple[Priced, ...]:
        """The time of each collective."""
        prices = self._prices
        return tuple(prices.of(collective) for collective in self.collectives)

    @property
    def bandwidth_seconds(self) -> float:
        """The bandwidth terms of the collectives, one after the other."""
        return sum(found.bandwidth_seconds for found in self.priced)

    @property
    def latency_seconds(self) -> float:
        """The expected latency of the collectives, one after the other."""
        return sum(found.latency_seconds for found in self.priced)

    @property
    def seconds(self) -> float:
        """The expected time that `reshard` minimises: bandwidth and latency of the
        collectives, added up because each needs the result of the previous one."""
        return self._prices.in_turn(self.collectives)

    @property
    def lower(self) -> float:
        """Seconds of the busiest links, without latency, if the array is sent in pieces
        and collectives on different links all work at once."""
        return self._prices.lower(self.collectives)

    @property
    def upper(self) -> float:
        """Seconds if the collectives work one after the other and, within each of them,
        the levels of the network do so too."""
        return self._prices.upper(self.collectives)

    @cached_property
    def _prices(self) -> Prices:
        if self.mesh is None:
            raise ValueError("mesh = None: must be a `Mesh` for a time")
        return Prices(self.mesh)

    def __str__(self) -> str:
        text = f"{self.source.notation} -> {self.target.notation}: "
        if not self.collectives:
            return f"{text}nothing moves"
        time = "" if self.mesh is None else f" in {show(self.seconds, 's')}"
        steps = "".join(f"\n  {step}" for step in self.steps)
        return f"{text}{show(self.sent, 'bytes')} sent per device{time}{steps}"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def reshard(
    text: str,
    mesh: Machine = None,
    dtype: str = "bf16",
    busy: Iterable[str] | bool = (),
    **sizes: int,
) -> Resharding:
    """A change of sharding such as ``"A[I_X, J] -> A[I, J_X]"`` (an AllToAll).

    Args:
        text: the array before and after, with its dimensions in the same order.
        mesh, dtype, sizes: as for `array`.
        busy: mesh axes that the line does not name and that have other work; True for
            all that it does not name. The remaining axes are idle: the array has copies
            along them, and their links may help.

    Returns:
        A Resharding. On a `Mesh`, its steps take the least time, one after the other;
        otherwise they send the fewest bytes per device. `reshard_step` lists the
        possible steps. Copies over an idle axis can be sliced for free, so each sends
        only a part, and the parts are gathered at the end. With more than six axes,
        neighbouring axes that are placed alike before and after count as one.

    Assumes:
        Times are the expected times of `collectives.price`. The array and its copies
        are ready at the first step, and links carry no other traffic.

    Raises:
        ValueError: as for `array`; dimensions that differ before and after, partial
            sums that were not there before, a busy axis that the line names, more than
            six axes that cannot be joined.

    >>> print(reshard("A[I_X, J] -> A[I, J_X]", {"X": 4}, I=8, J=8))
    A[I_X, J] -> A[I, J_X]: 24 bytes sent per device
      AllToAll_X: A[I_X, J] -> A[I, J_X], 24 bytes sent

    A gather over X, first with Z busy, then with Z idle, so its links may help:

    >>> from shardmath.hardware.chips import TPU_V4
    >>> from shardmath.hardware.networks import Torus
    >>> cube = Mesh(Torus(TPU_V4, (4, 4, 4)), {"X": 4, "Y": 4, "Z": 4})
    >>> line, sizes = "A[B_X, D_Y] -> A[B, D_Y]", {"B": 1024, "D": 4096}
    >>> print(reshard(line, cube, busy="Z", **sizes))
    A[B_X, D_Y] -> A[B, D_Y]: 1.57 MB sent per device in 17.7 µs
      AllGather_X: A[B_X, D_Y] -> A[B, D_Y], 1.57 MB sent
    >>> print(reshard(line, cube, **sizes))
    A[B_X, D_Y] -> A[B, D_Y]: 1.97 MB sent per device in 13.8 µs
      slice_Z: A[B_X, D_Y] -> A[B_XZ, D_Y], nothing sent
      AllGather_XZ: A[B_XZ, D_Y] -> A[B, D_Y], 1.97 MB sent
    """
    line = parse(text)
    if len(line.left) > 1:
        raise line.left[1].head.error("one array is expected before the arrow")
    if line.right is None:
        raise line.end.error("'->' and the array after the change are expected")
    source, target = bound(line, mesh, dtype, sizes)
    before, after = (names(term) for term in (line.left[0], line.right))
    if before != after:
        raise line.right.head.error(
            f"dimensions {', '.join(after)}: must be {', '.join(before)}, in this order"
        )
    for axis in axis_words(line.right.unreduced, dict(source.mesh)):
        if axis.text not in source.unreduced:
            raise axis.error(f"there are no partial sums over {axis.text} before '->'")
    if (source.name, source.precision) != (target.name, target.precision):
        raise line.right.head.error(f"must be the same array: {source.notation}")
    axes = usable_axes((source, target), busy)
    machine = priced(mesh)
    prices = Prices(machine) if isinstance(machine, Mesh) else None
    steps = _best_way(source, target, axes, prices)
    return Resharding(source, target, steps, machine)


def _best_way(
    source: ShardedArray, target: ShardedArray, axes: Names, prices: Prices | None
) -> tuple[Change, ...]:
    """The best way over `axes`; many of them are searched as fewer."""
    runs = runs_to_search((source, target), axes, prices and prices.mesh)
    if not runs:
        return routes(source, axes, prices, [target.state]).changes(target.state)
    (start, end), left = with_fewer_axes((source, target), axes, runs)
    priced = prices and Prices(fewer_axes(prices.mesh, runs))
    return tuple(
        spelt(step, source, runs) for step in _best_way(start, end, left, priced)
    )
