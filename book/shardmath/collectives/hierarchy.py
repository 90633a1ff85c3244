"""An AllReduce on two levels in three stages, each with its bytes and its network."""

from dataclasses import dataclass

from ..base.units import positive, short_repr
from ..hardware.mesh import Mesh
from .price import Priced, a_mesh, price_of


@dataclass(frozen=True)
class Hierarchy:
    """ReduceScatter inside each group, AllReduce across the groups, AllGather inside.

    Args:
        nbytes: V, bytes of the array; every chip holds one term of the sum.
        mesh: the mesh of the chips.
        inside, across: the axis of the fast network, and that of the slow one.

    >>> from shardmath.hardware.chips import H100
    >>> from shardmath.hardware.networks import Cluster, NVLinkDomain
    >>> mesh = Mesh(Cluster(NVLinkDomain(H100), 4), {"node": 4, "gpu": 8})
    >>> for stage in Hierarchy(1e9, mesh, "gpu", "node").stages:
    ...     print(stage.collective.title)
    ReduceScatter over gpu (8 devices), 1 GB
    AllReduce over node (4 devices), 125 MB
    AllGather over gpu (8 devices), 1 GB

    Raises:
        ValueError: bytes not above 0, the same axis twice, or an axis that the mesh
            lacks or that has one chip.
    """

    nbytes: float
    mesh: Mesh
    inside: str
    across: str

    def __post_init__(self) -> None:
        (nbytes,) = positive(nbytes=self.nbytes)
        object.__setattr__(self, "nbytes", nbytes)
        for axis in (self.inside, self.across):
            if a_mesh(self.mesh).size(axis) < 2:
                raise ValueError(f"axis {short_repr(axis)}: must have 2 chips or more")
        if self.inside == self.across:
            raise ValueError(
                f"across = {short_repr(self.across)}: must be another axis"
            )

    @property
    def stages(self) -> tuple[Priced, Priced, Priced]:
        """The three collectives, priced one by one."""
        chips = self.mesh.size(self.inside)
        return (
            price_of("reduce_scatter", self.nbytes, self.mesh, self.inside),
            price_of("all_reduce", self.nbytes / chips, self.mesh, self.across),
            price_of("all_gather", self.nbytes, self.mesh, self.inside),
        )

    @property
    def seconds(self) -> float:
        """Seconds of the three stages in turn, each at its lower bound."""
        return sum(stage.lower for stage in self.stages)

    def __str__(self) -> str:
        return "\n".join(map(str, self.stages))

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))
