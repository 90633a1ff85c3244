"""The timeline of a matmul with a gather, which runs before the matmul or inside it."""

from dataclasses import dataclass

from ..base.units import short_repr
from ..collectives import price_of
from .contraction import Contraction

Seconds = tuple[float, float]  # start and end, in seconds


@dataclass(frozen=True)
class CollectiveMatmul:
    """A matmul with one AllGather: in turn, and as a collective matmul on a ring.

    The collective matmul cuts the product into n parts. While a device multiplies one
    part, it receives the next block from its neighbour. Each device passes on n − 1
    blocks in all, one way round the ring. Times count bytes and FLOPs, not latency or
    HBM.

    Args:
        op: its plan must be one AllGather, over one axis, before the product.

    Raises:
        ValueError: `op` is no Contraction, has another plan, or has no mesh for times.
    """

    op: Contraction

    def __post_init__(self) -> None:
        if not isinstance(self.op, Contraction):
            raise ValueError(
                f"op = {short_repr(self.op)}: must be a Contraction; `contract` makes "
                "one"
            )
        moved = [record.op for record in self.op.collectives]
        if moved != ["all_gather"] or self.op.plan.after:
            raise ValueError(
                f"moved: {self.op.plan.moves}: must be one AllGather before the product"
            )
        if self.op.mesh is None:
            raise ValueError("mesh = None: must be a `Mesh` of known chips for a time")

    @property
    def parts(self) -> int:
        """n, the number of devices in the ring."""
        return self.op.collectives[0].group

    @property
    def product(self) -> float:
        """Seconds of one of the n partial products."""
        return self.op.estimate.seconds["math"] / self.parts

    @property
    def hop(self) -> float:
        """Seconds to send one block to the neighbour, over one link."""
        (gather,) = self.op.collectives
        block = gather.nbytes / self.parts
        mesh = self.op.mesh
        one = price_of("permute", block, mesh, gather.axes, one_way=True)
        return one.bandwidth_seconds

    @property
    def gather(self) -> float:
        """Seconds of the AllGather if it uses both directions of the ring."""
        (record,) = self.op.collectives
        mesh = self.op.mesh
        return price_of(record.op, record.nbytes, mesh, record.axes).bandwidth_seconds

    @property
    def in_turn(self) -> dict[str, list[Seconds]]:
        """Gather, then multiply: the spans of each resource."""
        start, end = self.gather, self.gather + self.parts * self.product
        return {"network": [(0.0, start)], "math": [(start, end)]}

    @property
    def inside(self) -> dict[str, list[Seconds]]:
        """The collective matmul: product k + 1 multiplies the block of hop k."""
        hops = [(k * self.hop, (k + 1) * self.hop) for k in range(self.parts - 1)]
        products, done = [], 0.0
        for k in range(self.parts):
            start = max(done, hops[k - 1][1] if k else 0.0)
            done = start + self.product
            products.append((start, done))
        return {"network": hops, "math": products}
