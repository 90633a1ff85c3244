"""A gather before a matmul, and inside it: two time lines to one scale."""

from collections.abc import Iterator
from dataclasses import dataclass

from ..collectives import price_of
from ..drawing.labels import text_width
from ..drawing.picture import WIDEST, Picture, picture
from ..drawing.shapes import box, framed, label, line, written
from ..units import quoted, show
from .contraction import Contraction

EDGE, LANE = 12, 26

Span = tuple[float, float]  # start and end, in seconds


@dataclass(frozen=True)
class Overlap:
    """A matmul of one AllGather, in turn and as a collective matmul on a ring.

    The collective matmul cuts the product into n parts. While a part multiplies, the
    next block comes from the neighbour; n − 1 blocks are passed on, one way round.
    Times are those of bytes and FLOPs alone, without latency and HBM.

    Args:
        op: its plan must be one AllGather, over one axis, before the product.

    Raises:
        ValueError: no contraction, another plan, or no mesh to price it on.
    """

    op: Contraction

    def __post_init__(self) -> None:
        if not isinstance(self.op, Contraction):
            raise ValueError(
                f"op = {quoted(self.op)}: must be a Contraction; `contract` makes one"
            )
        moved = [record.op for record in self.op.collectives]
        if moved != ["all_gather"] or self.op.plan.after:
            raise ValueError(f"moved: {self.op.plan.moves}: must be one AllGather")
        if self.op.mesh is None:
            raise ValueError("mesh = None: must be a `Mesh` of known chips for a time")

    @property
    def parts(self) -> int:
        """n, the devices of the ring."""
        return self.op.collectives[0].group

    @property
    def product(self) -> float:
        """Seconds of one of n partial products."""
        return self.op.estimate.seconds["math"] / self.parts

    @property
    def hop(self) -> float:
        """Seconds of one block to the neighbour, over one link."""
        (gather,) = self.op.collectives
        block = gather.nbytes / self.parts
        mesh = self.op.mesh
        one = price_of("permute", block, mesh, gather.axes, one_way=True)
        return one.bandwidth_seconds

    @property
    def gather(self) -> float:
        """Seconds of the AllGather, both ways round."""
        (record,) = self.op.collectives
        mesh = self.op.mesh
        return price_of(record.op, record.nbytes, mesh, record.axes).bandwidth_seconds

    @property
    def in_turn(self) -> dict[str, list[Span]]:
        """Gather, then multiply: spans by resource."""
        start, end = self.gather, self.gather + self.parts * self.product
        return {"network": [(0.0, start)], "math": [(start, end)]}

    @property
    def inside(self) -> dict[str, list[Span]]:
        """The collective matmul: hop k brings what product k multiplies."""
        hops = [(k * self.hop, (k + 1) * self.hop) for k in range(self.parts - 1)]
        products, done = [], 0.0
        for k in range(self.parts):
            start = max(done, hops[k - 1][1] if k else 0.0)
            done = start + self.product
            products.append((start, done))
        return {"network": hops, "math": products}

    @property
    def picture(self) -> Picture:
        """Both, to one scale."""
        both = {
            "gather, then multiply": self.in_turn,
            "collective matmul": self.inside,
        }
        ends = {name: _end(lanes) for name, lanes in both.items()}
        title = f"{self.op.plan.product}, {show(self.op.a.sizes[0])} rows"
        left = EDGE + text_width("network") + 8
        scale = (WIDEST - EDGE - left) / max(ends.values())
        parts, y = [], 0.0
        for name, lanes in both.items():
            said = f"{name}: {show(ends[name], 's')}"
            parts.append(written(EDGE, y + 18, said, bold=True))
            y += 28
            for resource, spans in lanes.items():
                parts.append(written(left - 8, y + 18, resource, resource, "end"))
                parts += _lane(f"{name} {resource}", resource, spans, left, scale, y)
                y += LANE + 4
            x = left + scale * ends[name]
            parts.append(line((x, y - 2 * LANE - 8), (x, y), width=1.2, dashed=True))
            y += 10
        desc = (
            f"{self.op.plan.product} on {self.parts} devices. Gather, then multiply: "
            f"{show(self.gather, 's')} of network and then "
            f"{show(self.parts * self.product, 's')} of math. Collective matmul: "
            f"{self.parts - 1} hops of {show(self.hop, 's')} beside {self.parts} "
            f"products of {show(self.product, 's')}, "
            f"{show(ends['collective matmul'], 's')} in all."
        )
        return picture(title, desc, framed(title, desc, parts, WIDEST, y))

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.picture.bundle()


def _end(lanes: dict[str, list[Span]]) -> float:
    return max(end for spans in lanes.values() for _, end in spans)


def _lane(
    name: str, resource: str, spans: list[Span], left: float, scale: float, top: float
) -> Iterator[str]:
    """The spans of one resource as boxes, numbered where there is room."""
    many = len(spans) > 1
    for n, (start, end) in enumerate(spans):
        spot = (left + scale * start, top, left + scale * end, top + LANE)
        key = f"{name} {n}"
        yield box(*spot, resource, fill=0.3, edge=0.9, round=1, key=key)
        words = str(n + (resource == "network")) if many else show(end - start, "s")
        if text_width(words) + 4 < spot[2] - spot[0]:
            yield label(*spot, words)
