"""The record of a simulation: the steps of a collective, what moved, and the result."""

import contextlib
from dataclasses import dataclass

from ...base.units import non_negative_int, short_repr, show
from .. import Priced
from .groups import Chunk, Group
from .schedules import Delivery, Round

State = list[dict[Chunk, float]]
LinkKey = tuple[int, int, int]  # dimension, from, to; a switch is −1


@dataclass(frozen=True)
class PlayedStep:
    """The moves of one step: the bytes on each link, and the seconds that they take.

    A link is (dimension, from chip, to chip). For a switch one end is −1, and an uplink
    has the number of the first chip below it. For each link, `waits` has the latency of
    the moves that use it.
    """

    number: int
    of: int
    moves: tuple[Delivery, ...]
    loads: dict[LinkKey, float]
    waits: dict[LinkKey, float]
    seconds: float

    def __str__(self) -> str:
        busiest = show(max(self.loads.values()), "bytes")
        return (
            f"step {self.number} of {self.of}: {show(self.seconds, 's')}, "
            f"{busiest} on the busiest link"
        )

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


@dataclass(frozen=True)
class Trace:
    """A simulated collective: its steps, its result, and the time it took.

    `result[chip]` has the numbers that a chip ends with, and `priced` is the closed
    form.
    """

    priced: Priced
    group: Group
    start: State
    steps: tuple[PlayedStep, ...]
    result: tuple[tuple[float, ...], ...]

    @property
    def seconds(self) -> float:
        """Seconds of all steps."""
        return self.elapsed(len(self.steps))

    def elapsed(self, step: int) -> float:
        """Seconds of the first `step` steps."""
        return sum(played.seconds for played in self.steps[: self._counted(step)])

    @property
    def gap(self) -> float:
        """Time of the schedule, divided by that of the closed form."""
        return self.seconds / self.priced.seconds if self.steps else 1.0

    def state(self, step: int) -> State:
        """The blocks on each chip after `step` steps; 0 is the start."""
        state = [dict(held) for held in self.start]
        for done in self.steps[: self._counted(step)]:
            moved(state, done.moves)
        return state

    def _counted(self, step: object) -> int:
        with contextlib.suppress(ValueError):
            (found,) = non_negative_int(step=step)
            if found <= len(self.steps):
                return found
        raise ValueError(
            f"step {short_repr(step)}: must be from 0 to {len(self.steps)}"
        )

    def __str__(self) -> str:
        met = abs(self.gap - 1) < 1e-9
        gap = "as the closed form" if met else f"{self.gap:.3g} × the closed form"
        return (
            f"{self.priced.collective.title}: {show(self.seconds, 's')} in "
            f"{len(self.steps)} steps, {gap}"
        )

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def moved(state: State, step: Round) -> None:
    """Makes all moves of a step: first all blocks leave, then all of them arrive."""
    arriving = []
    for move in step:
        for block in move.blocks:
            for source in move.sources:
                if block not in state[source]:
                    raise ValueError(f"chip {source} sends {block}, which it lacks")
            value = sum(state[source][block] for source in move.sources)
            arriving.append((move.targets, block, value))
    for move in step:
        for source in () if move.keep else move.sources:
            for block in move.blocks:
                del state[source][block]
    for targets, block, value in arriving:
        for target in targets:
            state[target][block] = state[target].get(block, 0) + value
