"""AllReduce on GPUs: size sweeps, and what switches that add are worth."""

from dataclasses import dataclass
from importlib.resources import files

from .. import chips
from ..collectives import Priced, all_reduce
from ..facts import Source
from ..mesh import Mesh
from ..networks import Cluster, NVLinkDomain
from ..units import positive, show

SOURCE = Source(
    "ml_engineering",
    "Stas Bekman, Machine Learning Engineering, network/README.md at 744d01e18b",
    "https://github.com/stas00/ml-engineering/blob/744d01e18b/network/README.md",
    "measured",
    "2026-11-21",
)


@dataclass(frozen=True)
class Measured:
    """One AllReduce that somebody timed, and its closed form on the same GPUs.

    Args:
        what: the GPUs.
        bus_bandwidth: bytes/s as NCCL counts: 2V(n−1)/n over the time, a mean.
        priced: the bounds of the same AllReduce.
    """

    what: str
    bus_bandwidth: float
    priced: Priced

    @property
    def nbytes(self) -> float:
        """V, bytes of the array on one GPU."""
        return self.priced.collective.nbytes

    @property
    def seconds(self) -> float:
        """The measured time: 2V(n−1)/n over the bus bandwidth."""
        return self.priced.collective.sent / self.bus_bandwidth

    @property
    def over_bound(self) -> float:
        """Measured time over the lower bound; 1 would be a perfect network."""
        return self.seconds / self.priced.lower

    def __str__(self) -> str:
        size = show(self.nbytes, "bytes")
        took, least = (show(s, "s") for s in (self.seconds, self.priced.lower))
        times = f"{self.over_bound:.3g} times the {least} of the bound"
        return f"AllReduce of {size} on {self.what}: {took}, {times}"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


@dataclass(frozen=True)
class Sweep:
    """AllReduce over all GPUs of some nodes at many sizes, smallest first."""

    what: str
    network: Cluster | NVLinkDomain
    points: tuple[Measured, ...]
    source: Source = SOURCE

    def at(self, nbytes: float) -> Measured:
        """The measurement of that size.

        Raises:
            ValueError: that size was not measured; names the nearest.
        """
        (size,) = positive(nbytes=nbytes)
        near = min(self.points, key=lambda point: abs(point.nbytes - size))
        if near.nbytes != size:
            raise ValueError(
                f"nbytes = {nbytes!r}: not measured; {near.nbytes:.0f} was"
            )
        return near


@dataclass(frozen=True)
class NvlsRun:
    """8 GiB over `gpus` of a node: bus bandwidth in bytes/s as `picked` by NCCL."""

    chip: str
    gpus: int
    picked: str
    bus_bandwidth: float
    without_nvls: float


def _rows(name: str) -> list[list[str]]:
    """The cells of a table of this room, its comments and head left out."""
    text = files(__package__).joinpath(name).read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [line.split(",") for line in lines[1:]]


def _sweep(column: int, what: str, network: Cluster | NVLinkDomain) -> Sweep:
    mesh = Mesh(network, {"X": network.chips})
    points = tuple(
        Measured(what, float(row[column]) * 1e9, all_reduce(int(row[0]), mesh, "X"))
        for row in _rows("allreduce.csv")
    )
    return Sweep(what, network, points)


def _node(chip: chips.Chip) -> NVLinkDomain:
    return NVLinkDomain(chip, 8, reduces=True)


# All nodes have NVLS on, so that their switches add where NCCL picks it.
SWEEPS = {
    "h200": _sweep(1, "8 H200", _node(chips.H200)),
    "b200": _sweep(2, "8 B200", _node(chips.B200)),
    "b200x4": _sweep(3, "4 nodes of 8 B200", Cluster(_node(chips.B200), 4)),
}
NVLS = tuple(
    NvlsRun(chip, int(gpus), picked, float(on) * 1e9, float(off) * 1e9)
    for chip, gpus, picked, on, off in _rows("nvls.csv")
)
