"""A pipeline schedule as data: what every stage computes, and in which order."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ...base.units import pluralize, positive_int, short_repr
from .ops import EVEN, Op, Span, StagePlace, Times, checked
from .simulate import simulate


@dataclass(frozen=True, repr=False)
class PipelineSchedule:
    """The ops of every stage in order, as made by `pipeline_schedules.schedule`.

    Args:
        name: a name such as "1f1b".
        stages: p, the number of groups of chips that hold different layers.
        microbatches: M, the number of parts of the batch, computed one after the other.
        orders: for every stage, its ops in the order in which it does them.
        paths: the places (stage, chunk) that a microbatch passes in its forward pass.
            If there are several paths, each takes an equal number of consecutive
            microbatches.
        times: times of the ops.
    """

    name: str
    stages: int
    microbatches: int
    orders: tuple[tuple[Op, ...], ...]
    paths: tuple[tuple[StagePlace, ...], ...]
    times: Times = EVEN

    def __post_init__(self) -> None:
        found = positive_int(stages=self.stages, microbatches=self.microbatches)
        for name, value in zip(("stages", "microbatches"), found, strict=True):
            object.__setattr__(self, name, value)
        checked(self.times)

    @property
    def chunks(self) -> int:
        """The number of chunks of layers that a stage holds."""
        return len({chunk for path in self.paths for _, chunk in path})

    @property
    def share(self) -> float:
        """A chunk as a share of the stage's part of the model: 1/2 with two chunks.

        In DualPipe it is 1, because each of a stage's two chunks is a full part: the
        pipeline holds all weights twice.
        """
        return self.stages / len(self.paths[0])

    def path(self, microbatch: int) -> tuple[StagePlace, ...]:
        """The places that `microbatch` passes in its forward pass, in order.

        Raises:
            ValueError: there is no such microbatch.
        """
        if microbatch not in range(self.microbatches):
            raise ValueError(
                f"microbatch = {short_repr(microbatch)}: microbatches are 0 to "
                f"{self.microbatches - 1}"
            )
        return self.paths[microbatch * len(self.paths) // self.microbatches]

    @cached_property
    def spans(self) -> tuple[tuple[Span, ...], ...]:
        """Every op of every stage with its start and end, each as early as possible.

        Raises:
            ValueError: a stage waits for an op that never ends. The message says which.
        """
        return simulate(self)

    @property
    def seconds(self) -> float:
        """The time from the first start to the last end, in the unit of `times`."""
        return max(spans[-1].end for spans in self.spans)

    @cached_property
    def busy(self) -> tuple[float, ...]:
        """How long each stage computes."""
        return tuple(
            sum(s.end - s.start for s in spans if not s.op.beside)
            for spans in self.spans
        )

    @property
    def idle(self) -> tuple[float, ...]:
        """How long each stage waits during `seconds`."""
        seconds = self.seconds
        return tuple(seconds - busy for busy in self.busy)

    @property
    def bubble(self) -> float:
        """Idle ÷ busy time of all stages; 0.25 means a fifth of the step is idle.

        The stages begin together and wait for one another at the end, as they do if the
        optimizer needs the norm of all gradients. See `period` for the other case.
        """
        return sum(self.idle) / sum(self.busy)

    @property
    def period(self) -> float:
        """The time from step to step, if no stage waits for another between two steps.

        It is the longest time from the first op of a stage to the last of that stage.
        """
        return max(spans[-1].end - spans[0].start for spans in self.spans)

    @cached_property
    def in_flight(self) -> tuple[float, ...]:
        """How many microbatches' activations each stage holds at once, at most.

        Microbatches are counted for the stage's whole share of layers, so one of two
        chunks counts half. Activations are held from the start of F to the end of B, or
        to the end of W if the backward pass is split.
        """
        return tuple(self.share * _most_held(order) for order in self.orders)

    @property
    def sends(self) -> tuple[int, ...]:
        """How often each stage sends a microbatch's activations or their gradients.

        Nothing is sent between two chunks on the same stage.
        """
        sent = [0] * self.stages
        for microbatch in range(self.microbatches):
            path = self.path(microbatch)
            for (here, _), (there, _) in pairwise(path):
                if here != there:
                    sent[here] += 1  # forward
                    sent[there] += 1  # backward
        return tuple(sent)

    @property
    def sizes(self) -> str:
        """Its stages and microbatches, in words."""
        stages = pluralize(f"{self.stages}", "stages")
        return f"{stages}, {pluralize(f'{self.microbatches}', 'microbatches')}"

    def __str__(self) -> str:
        most = max(self.in_flight)
        return (
            f"{self.name} over {self.sizes}: bubble {self.bubble:.1%}, at most "
            f"{most:g} in flight"
        )

    __repr__ = __str__

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def require_schedule(schedule: object) -> PipelineSchedule:
    """The given `PipelineSchedule`; a ValueError for anything else."""
    if not isinstance(schedule, PipelineSchedule):
        raise ValueError(
            f"schedule = {short_repr(schedule)}: must be a `PipelineSchedule`"
        )
    return schedule


def _most_held(order: Sequence[Op]) -> int:
    held = most = 0
    split = {(op.microbatch, op.chunk) for op in order if op.kind == "W"}
    for op in order:
        if op.kind == "F":
            held += 1
            most = max(most, held)
        elif op.kind == "W" or (op.microbatch, op.chunk) not in split:
            held -= 1
    return most
