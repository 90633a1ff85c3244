"""The pieces of work of a pipeline stage, and how long they take."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, Protocol

from ...base.units import number, positive, short_repr

KINDS = {
    "F": "forward pass",
    "B": "backward pass, both gradients",
    "I": "gradient of the input",
    "W": "gradient of the weights",
}
StagePlace = tuple[int, int]  # stage, and which of its chunks of layers


@dataclass(frozen=True, order=True)
class Op:
    """One piece of work of a stage.

    Args:
        kind: "F" for the forward pass, "B" for the whole backward pass, or one of the
            two halves of the backward pass: "I" for the gradient of the input, for
            which the previous stage waits, and "W" for the gradient of the weights,
            for which no stage waits.
        microbatch: the microbatch, counted from 0.
        chunk: which of the stage's chunks of layers, counted from 0.
        beside: whether it runs together with the op before it.

    >>> print(Op("F", 3), Op("B", 0, chunk=1))
    F3 B0.1
    """

    kind: str
    microbatch: int
    chunk: int = 0
    beside: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        chunk = f".{self.chunk}" if self.chunk else ""
        return f"{self.kind}{self.microbatch}{chunk}"


@dataclass(frozen=True)
class Times:
    """Times of the ops of a stage, for a microbatch and the stage's share of layers.

    A stage's share is one of `stages` equal parts of the model. Each chunk of a stage
    takes an equal part of these times.

    Args:
        F: forward pass, in seconds or any other unit.
        I: gradient of the input. The whole backward pass B takes I + W.
        W: gradient of the weights.
        both: a forward and a backward pass that run together, as in DualPipe; F + B if
            not given.
        send: the time from the end of an op until its result is at another stage.
            Stages keep computing meanwhile, and a link can carry any number of sends at
            once.
        work: for uneven stages, the work of each place that a microbatch passes, in
            order, relative to an equal share, such as (0.9, 1, 1, 1.4) with a large
            head.

    Raises:
        ValueError: F, I, `both` or work is not above zero; W or `send` is below zero.

    >>> Times(F=1, I=1, W=1).B
    2
    """

    F: float = 1
    I: float = 1
    W: float = 1
    both: float | None = None
    send: float = 0
    work: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        found = dict(zip("FI", positive(F=self.F, I=self.I), strict=True))
        for name in ("W", "send"):
            found[name] = number(name, given := getattr(self, name))
            if not 0 <= found[name] < inf:
                given = short_repr(given)
                raise ValueError(f"{name} must be finite and 0 or more, not {given}")
        if self.both is not None:
            (found["both"],) = positive(both=self.both)
        no_row = str | bytes | Mapping
        if isinstance(self.work, no_row) or not isinstance(self.work, Iterable):
            raise ValueError(
                f"work = {short_repr(self.work)}: must be a sequence of numbers"
            )
        work = {f"work[{i}]": share for i, share in enumerate(self.work)}
        found["work"] = tuple(positive(**work))
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def B(self) -> float:
        """The whole backward pass: I + W."""
        return self.I + self.W

    @property
    def together(self) -> float:
        """The time of a forward and a backward pass that run together."""
        return self.F + self.B if self.both is None else self.both

    @property
    def total(self) -> float:
        """Both passes of a microbatch on a stage: F + B."""
        return self.F + self.B


EVEN = Times()  # F, I and W of one unit each


def checked(times: object) -> Times:
    """The given `Times`; a ValueError for anything else."""
    if not isinstance(times, Times):
        raise ValueError(f"times = {short_repr(times)}: must be `Times(F=…, I=…, W=…)`")
    return times


class Span(NamedTuple):
    """An op with its simulated start and end."""

    op: Op
    start: float
    end: float


class Playable(Protocol):
    """The properties of a schedule that `simulate` needs."""

    @property
    def name(self) -> str: ...

    @property
    def orders(self) -> tuple[tuple[Op, ...], ...]: ...

    @property
    def paths(self) -> tuple[tuple[StagePlace, ...], ...]: ...

    @property
    def times(self) -> Times: ...

    @property
    def share(self) -> float: ...
