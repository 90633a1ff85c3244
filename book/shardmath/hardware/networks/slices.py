"""TPU slices joined by the data-centre network."""

from ...base.units import positive_int, short_repr
from .torus import Torus
from .wiring import Network, Switch


class Slices(Network):
    """`count` TPU slices, joined chip by chip by the data-centre network (DCN).

    Args:
        torus: one slice.
        count: number of slices.
        latency: seconds from chip to chip, which no source states.
        bandwidth: one-way bytes/s per chip; by default `chip.scale_out_bandwidth`.

    Raises:
        ValueError: a `torus` that is not a Torus, or a count below 1 or not whole.

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
            raise ValueError(f"torus = {short_repr(torus)}: must be a Torus")
        (count,) = positive_int(count=count)
        chip = torus.chip
        rate = chip.scale_out_bandwidth if bandwidth is None else bandwidth
        switch = Switch(count, rate, latency, level="DCN")
        super().__init__((switch, *torus.dims), f"{count} slices of {torus.name}", chip)
