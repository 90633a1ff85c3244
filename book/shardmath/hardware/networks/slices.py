"""TPU slices joined by the data-centre network."""

from ...base.units import positive_int
from .torus import Torus
from .wiring import Network, Switch


class Slices(Network):
    """`count` TPU slices, chip by chip joined by the data-centre network (DCN).

    Args:
        torus: one slice.
        count: how many.
        latency: seconds from chip to chip; to be given, since no source states it.
        bandwidth: one-way bytes/s, share of one chip; `chip.scale_out_bandwidth` if
            not given.

    >>> from shardmath.hardware.chips import TPU_V5P
    >>> Slices(Torus(TPU_V5P, (4, 4, 4)), 2, latency=10e-6).egress("DCN")
    400000000000.0
    """

    def __init__(
        self,
        torus: Torus,
        count: int,
        latency: float,
        bandwidth: float | None = None,
    ):
        if not isinstance(torus, Torus):
            raise ValueError(f"torus = {torus!r}: must be a Torus")
        (count,) = positive_int(count=count)
        chip = torus.chip
        rate = chip.scale_out_bandwidth if bandwidth is None else bandwidth
        switch = Switch(count, rate, latency, level="DCN")
        super().__init__((switch, *torus.dims), f"{count} slices of {torus.name}", chip)
