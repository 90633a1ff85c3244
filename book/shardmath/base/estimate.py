"""Bounds on the time of an operation, from the work of each resource of a machine."""

import contextlib
import math
from collections.abc import Iterable
from dataclasses import dataclass

from .units import number, positive, short_repr, shortened, show, text

BOUNDS = {
    "math": "compute-bound",
    "HBM": "memory-bound",
    "on-chip": "on-chip-bound",
    "network": "comms-bound",
}


@dataclass(frozen=True)
class Leg:
    """The work of one resource: `amount` FLOPs or bytes at `rate` per second.

    `slack` is the time in seconds that the upper bound adds because parts of this work
    may have to wait for one another.
    """

    resource: str
    amount: float
    rate: float
    slack: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.resource, str) or self.resource not in BOUNDS:
            known = ", ".join(BOUNDS)
            given = short_repr(self.resource)
            raise ValueError(f"resource = {given}: must be one of {known}")
        (rate,) = positive(rate=self.rate)
        object.__setattr__(self, "amount", _not_negative("amount", self.amount))
        object.__setattr__(self, "rate", rate)
        object.__setattr__(self, "slack", _not_negative("slack", self.slack))

    @property
    def seconds(self) -> float:
        return self.amount / self.rate


def _not_negative(name: str, value: object) -> int | float:
    """`value` as Python's number, if it is finite and 0 or more."""
    found = number(name, value)
    with contextlib.suppress(OverflowError):  # ints too large for a float
        if found >= 0 and math.isfinite(found):
            return found
    raise ValueError(f"{name} = {short_repr(value)}: must be finite and 0 or more")


@dataclass(frozen=True)
class Estimate:
    """max(Tᵣ) ≤ T ≤ ΣTᵣ over the resources r that an operation uses.

    It prints as one sentence. It leaves out latency, clock throttling and the
    efficiency of kernels: measured matmuls reach 50 to 97 % of the rate that the lower
    bound implies (chapter 01, "Peak and achieved").
    """

    title: str
    legs: tuple[Leg, ...]

    def __post_init__(self) -> None:
        title = shortened(text("title", self.title))
        if isinstance(self.legs, str) or not isinstance(self.legs, Iterable):
            given = short_repr(self.legs)
            raise ValueError(f"{title}: legs = {given}: must be a tuple of Legs")
        object.__setattr__(self, "legs", tuple(self.legs))
        if not self.legs:
            raise ValueError(f"{title}: must use at least one resource")
        for leg in self.legs:
            if not isinstance(leg, Leg):
                raise ValueError(
                    f"{title}: must be made of Legs, not of {short_repr(leg)}"
                )
        used = [leg.resource for leg in self.legs]
        for resource in used:
            if used.count(resource) > 1:
                raise ValueError(f"{title}: must have only one Leg for {resource!r}")

    @property
    def lower(self) -> float:
        """Seconds if all resources work at the same time."""
        return max(leg.seconds for leg in self.legs)

    @property
    def upper(self) -> float:
        """Seconds if nothing overlaps, neither resources nor the parts of one leg."""
        return sum(leg.seconds + leg.slack for leg in self.legs)

    @property
    def without_overlap(self) -> float:
        """Seconds if the network starts when the work of the chip is done.

            max(T_math, T_HBM, …) + T_network

        The network has to wait if it sends the result, unless the work is cut into
        pieces.
        """
        times = self.seconds
        return times.pop("network", 0) + max(times.values(), default=0)

    @property
    def bound(self) -> str:
        """The bound set by the slowest resource, such as "memory-bound"."""
        return BOUNDS[max(self.legs, key=lambda leg: leg.seconds).resource]

    @property
    def lead(self) -> float:
        """By how much the longest leg exceeds the next: 0.1 means 10 %.

        It is `inf` if no other leg takes time. A small lead does not settle which
        resource is slowest, because real rates can differ from peak rates by as much.
        """
        *_, second, first = sorted((0.0, *(leg.seconds for leg in self.legs)))
        return first / second - 1 if second else math.inf

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds of each resource, by its name."""
        return {leg.resource: leg.seconds for leg in self.legs}

    @property
    def flops(self) -> float:
        return sum(leg.amount for leg in self.legs if leg.resource == "math")

    @property
    def nbytes(self) -> float:
        """Bytes to and from HBM."""
        return sum(leg.amount for leg in self.legs if leg.resource == "HBM")

    @property
    def intensity(self) -> float:
        """Arithmetic intensity, FLOPs per byte of HBM traffic.

        Raises:
            ValueError: no bytes move to or from HBM.
        """
        if not self.nbytes:
            title = shortened(self.title)
            raise ValueError(f"{title}: has no intensity if nothing crosses the HBM")
        return self.flops / self.nbytes

    @property
    def utilization(self) -> float:
        """The share of the peak reached if everything overlaps: T_math / lower.

        The share is 0 if there is no math.
        """
        math_time = self.seconds.get("math", 0.0)
        return math_time / self.lower if math_time else 0.0

    def __str__(self) -> str:
        times = ", ".join(
            f"{leg.resource} {show(leg.seconds, 's')}" for leg in self.legs
        )
        span = f"{show(self.lower, 's')} to {show(self.upper, 's')}"
        return f"{self.title}: {span}, {self.bound} ({times})"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self).replace(": ", ":\n", 1))  # two lines fit a phone better


@dataclass(frozen=True)
class Roof:
    """min(peak, intensity · bandwidth): the FLOPs/s that a machine can reach.

    Args:
        name: the label of the roof in a figure.
        peak: FLOPs/s.
        bandwidth: bytes/s of the memory that holds the operands.
    """

    name: str
    peak: float
    bandwidth: float

    def __post_init__(self) -> None:
        text("name", self.name)
        peak, bandwidth = positive(peak=self.peak, bandwidth=self.bandwidth)
        object.__setattr__(self, "peak", peak)
        object.__setattr__(self, "bandwidth", bandwidth)

    @property
    def ridge(self) -> float:
        """Critical intensity in FLOPs per byte, at which the roof bends."""
        return self.peak / self.bandwidth

    def at(self, intensity: float) -> float:
        """FLOPs/s at `intensity` FLOPs per byte.

        >>> Roof("toy", peak=100.0, bandwidth=10.0).at(2.0)
        20.0
        """
        (intensity,) = positive(intensity=intensity)
        return min(self.peak, intensity * self.bandwidth)
