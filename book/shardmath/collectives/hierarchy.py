"""An AllReduce on two levels in three stages, each with its bytes and its network."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..drawing.picture import Picture
from ..drawing.shapes import box, framed, line, written
from ..drawing.theme import HUES, hue
from ..mesh import Mesh
from ..units import positive, show
from .collective import NAMES, Collective
from .price import Priced, a_mesh, price_of

WIDTH, EDGE = 204, 12
BLOCK, TALL = 6, 7  # a cell of a chip: its height, and the space between two chips
CHIPS = len(HUES)  # of a group that are all drawn, each with a block of its own


@dataclass(frozen=True)
class Hierarchy:
    """ReduceScatter inside each group, AllReduce across the groups, AllGather inside.

    Args:
        nbytes: V, bytes of the array that every chip holds a term of.
        mesh: where the chips are.
        inside, across: the axis of the fast network, and that of the slow one.

    >>> from shardmath.chips import H100
    >>> from shardmath.networks import Cluster, NVLinkDomain
    >>> mesh = Mesh(Cluster(NVLinkDomain(H100), 4), {"node": 4, "gpu": 8})
    >>> for stage in Hierarchy(1e9, mesh, "gpu", "node").stages:
    ...     print(stage.collective.title)
    ReduceScatter over gpu (8 devices), 1 GB
    AllReduce over node (4 devices), 125 MB
    AllGather over gpu (8 devices), 1 GB

    Raises:
        ValueError: bytes not above 0, an axis that the mesh lacks or of one chip.
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
                raise ValueError(f"axis {axis!r}: must have 2 chips or more")
        if self.inside == self.across:
            raise ValueError(f"across = {self.across!r}: must be another axis")

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
        """Of the three in turn, each at its lower bound."""
        return sum(stage.lower for stage in self.stages)

    @property
    def picture(self) -> Picture:
        """Three panels: what the chips of the first and the last group then hold."""
        stages = self.stages
        groups, chips = self.mesh.size(self.across), self.mesh.size(self.inside)
        said = [
            f"{NAMES[s.collective.op]} over {' '.join(s.collective.axes)}: "
            f"{show(s.collective.sent, 'bytes')} sent at the rate of {s.level}, "
            f"{show(s.lower, 's')}"
            for s in stages
        ]
        title = f"AllReduce of {show(self.nbytes, 'bytes')} in three stages"
        desc = (
            f"{groups} groups of {chips} chips. {'; '.join(said)}; together "
            f"{show(self.seconds, 's')}."
        )
        return Picture(
            title, desc, tuple(self._panel(n, said[n]) for n in range(len(stages)))
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.picture.bundle()

    def __str__(self) -> str:
        return "\n".join(map(str, self.stages))

    def _panel(self, number: int, said: str) -> str:
        stage = self.stages[number]
        record = stage.collective
        title = f"{number + 1}. {NAMES[record.op]}, {' '.join(record.axes)}"
        parts = [written(EDGE, 18, title, bold=True)]
        groups = self.mesh.size(self.across)
        names = ["0", str(groups - 1)]
        high = BLOCK * self._drawn
        tops = (44.0, 44.0 + high + 44)
        for group, top in enumerate(tops):
            parts.append(written(EDGE, top + high / 2 + 5, names[group]))
            parts += self._group(group, top, number)
        if number == 1:
            for x in self._middles():
                ways = (x, tops[0] + high + 3), (x, tops[1] - 3)
                parts.append(line(*ways, colour="network", width=1.5, heads="both"))
        else:
            for top in tops:
                y = top - 7
                left, right = self._middles()[0], self._middles()[-1]
                ways = (left, y), (right, y)
                parts.append(line(*ways, colour="network", width=4, heads="both"))
        if groups > 2 and number != 1:
            parts.append(written(EDGE, tops[0] + high + 22, "…"))
        y = tops[1] + high + 24
        rate = record.sent / stage.bandwidth_seconds
        for words, colour in (
            (f"{show(record.sent, 'bytes')} sent a chip", "ink"),
            (f"{stage.level}, {show(rate, 'bytes/s')}", "network"),
            (f"at best {show(stage.lower, 's')}", "ink"),
        ):
            parts.append(written(EDGE, y, words, colour))
            y += 20
        return framed(title, f"{said}.", parts, WIDTH, y - 8)

    @property
    def _drawn(self) -> int:
        """Chips of a group that are drawn."""
        return min(CHIPS, self.mesh.size(self.inside))

    def _lefts(self) -> tuple[list[float], float]:
        """Left edges of the chips, and their width."""
        room = WIDTH - 2 * EDGE - 20
        pitch = room / self._drawn
        return [EDGE + 20 + n * pitch for n in range(self._drawn)], pitch - TALL

    def _middles(self) -> list[float]:
        lefts, wide = self._lefts()
        return [left + wide / 2 for left in lefts]

    def _group(self, group: int, top: float, stage: int) -> Iterator[str]:
        """Chips as columns of blocks: pale is a sum of the group, dark that of all."""
        lefts, wide = self._lefts()
        done = [priced.collective for priced in self.stages[: stage + 1]]
        chips = self.mesh.size((self.across, self.inside))
        for chip, left in enumerate(lefts):
            for block in range(self._drawn):
                y = top + block * BLOCK
                spot = (left, y, left + wide, y + BLOCK)
                shade = shades(done, chips)[block == chip]
                key = f"{group} {chip} {block}"
                yield box(*spot, hue(block), fill=shade, edge=0.4, round=0, key=key)


def shades(done: Sequence[Collective], chips: int) -> tuple[float, float]:
    """How dark other blocks are after the collectives `done`, and a chip's own.

    Nothing is 0, a sum over all `chips` is darkest.

    >>> shades([Collective("reduce_scatter", "gpu", 1e9, 8)], 32)
    (0, 0.35)
    """
    terms, whole = 1, True
    for record in done:
        if record.op != "all_gather":
            terms *= record.group
        if record.op != "all_reduce":
            whole = record.op == "all_gather"
    dark = 0.9 if terms == chips else 0.35
    return (dark if whole else 0), dark
