"""AllReduce on GPUs: sweeps over sizes, and the gain from switches that add."""

from dataclasses import dataclass

from ..base.facts import Source
from ..base.units import positive, short_repr, show
from ..collectives import NAMES, Priced, all_reduce
from ..hardware import chips
from ..hardware.mesh import Mesh
from ..hardware.networks import Cluster, NVLinkDomain
from .rows import rows

SOURCE = Source(
    "ml_engineering",
    "Stas Bekman, Machine Learning Engineering, network/README.md at 744d01e18b",
    "https://github.com/stas00/ml-engineering/blob/744d01e18b/network/README.md",
    "measured",
    "2026-11-21",
)


@dataclass(frozen=True)
class Measured:
    """One collective that somebody timed, and its closed form on the same chips.

    Args:
        what: the chips, in words.
        bus_bandwidth: bytes/s as NCCL counts them: the bytes that a chip has to send if
            no switch adds, such as 2V(n−1)/n in an AllReduce, divided by the time.
        priced: the bounds of the same collective.
        source: the source of the measurement.
    """

    what: str
    bus_bandwidth: float
    priced: Priced
    source: Source = SOURCE

    @property
    def nbytes(self) -> float:
        """V, as in `Collective`."""
        return self.priced.collective.nbytes

    @property
    def seconds(self) -> float:
        """The measured time: the bytes that a chip must send ÷ the bus bandwidth."""
        return self.priced.collective.sent / self.bus_bandwidth

    @property
    def over_bound(self) -> float:
        """Measured time ÷ the lower bound, which counts only bytes."""
        return self.seconds / self.priced.lower

    @property
    def over_expected(self) -> float:
        """Measured ÷ expected time. It may be below 1, as the latter is not a bound."""
        return self.seconds / self.priced.expected

    def __str__(self) -> str:
        size = show(self.nbytes, "bytes")
        took, least = (show(s, "s") for s in (self.seconds, self.priced.lower))
        times = f"{self.over_bound:.3g} times the {least} of the bound"
        times += f" and {self.over_expected:.3g} times what is expected"
        name = NAMES[self.priced.collective.op]
        return f"{name} of {size} on {self.what}: {took}, {times}"

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
        """The measurement with V = `nbytes`.

        Raises:
            ValueError: this size was not measured. The message names the nearest size.
        """
        (size,) = positive(nbytes=nbytes)
        near = min(self.points, key=lambda point: abs(point.nbytes - size))
        if near.nbytes != size:
            raise ValueError(
                f"nbytes = {short_repr(nbytes)}: was not measured; the nearest size is "
                f"{near.nbytes:.0f}"
            )
        return near


@dataclass(frozen=True)
class NvlsRun:
    """The bus bandwidth in bytes/s of an AllReduce of 8 GiB over `gpus` GPUs of a node.

    `picked` is the algorithm that NCCL picks. `without_nvls` is the rate without NVLS.
    """

    chip: str
    gpus: int
    picked: str
    bus_bandwidth: float
    without_nvls: float


def _sweep(column: int, what: str, network: Cluster | NVLinkDomain) -> Sweep:
    mesh = Mesh(network, {"X": network.chips})
    points = tuple(
        Measured(what, float(row[column]) * 1e9, all_reduce(int(row[0]), mesh, "X"))
        for row in rows("allreduce.csv")
    )
    return Sweep(what, network, points)


def _node(chip: chips.Chip) -> NVLinkDomain:
    return NVLinkDomain(chip, 8, reduces=True)


# NVLS is on in all nodes, so their switches add if NCCL picks it.
SWEEPS = {
    "h200": _sweep(1, "8 H200", _node(chips.H200)),
    "b200": _sweep(2, "8 B200", _node(chips.B200)),
    "b200x4": _sweep(3, "4 nodes of 8 B200", Cluster(_node(chips.B200), 4)),
}
NVLS = tuple(
    NvlsRun(chip, int(gpus), picked, float(on) * 1e9, float(off) * 1e9)
    for chip, gpus, picked, on, off in rows("nvls.csv")
)
