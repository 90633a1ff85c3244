"""A pipeline schedule as data: what every stage computes, in which order."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ...base.units import positive_int, short_repr
from .ops import EVEN, Op, Span, StagePlace, Times, checked
from .simulate import simulate


@dataclass(frozen=True, repr=False)
class PipelineSchedule:
    """Who computes what, in which order; `pipeline_schedules.schedule` makes one.

    Args:
        name: such as "1f1b".
        stages: p, groups of chips that hold different layers.
        microbatches: M, parts of the batch that go through one after the other.
        orders: for every stage, its ops in the order in which it does them.
        paths: the places (stage, chunk) that a microbatch passes forward. Where there
            are several paths, the microbatches are shared out to them evenly, in order.
        times: of the ops.
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
        """Chunks of layers that a stage holds."""
        return len({chunk for path in self.paths for _, chunk in path})

    @property
    def share(self) -> float:
        """What one chunk is of a stage's share of the model: 1/2 of two chunks.

        In DualPipe a stage holds two chunks of a full share each: the weights twice.
        """
        return self.stages / len(self.paths[0])

    def path(self, microbatch: int) -> tuple[StagePlace, ...]:
        """The places that `microbatch` passes forward, in order.

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
        """Every op of every stage with its start and end: each as early as it can.

        Raises:
            ValueError: a stage waits for what never comes; says which for what.
        """
        return simulate(self)

    @property
    def seconds(self) -> float:
        """From the first start to the last end, in the unit of `times`."""
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
        """How long each stage waits, of `seconds`."""
        seconds = self.seconds
        return tuple(seconds - busy for busy in self.busy)

    @property
    def bubble(self) -> float:
        """Idle over busy time of all stages: 0.25 is a fifth of the step.

        The stages begin together and wait for one another at the end, as they do where
        the optimizer needs the norm of all gradients. See `period` for the other case.
        """
        return sum(self.idle) / sum(self.busy)

    @property
    def period(self) -> float:
        """From step to step, if no stage waits for another between two steps.

        The longest time from the first op of a stage to its last.
        """
        return max(spans[-1].end - spans[0].start for spans in self.spans)

    @cached_property
    def in_flight(self) -> tuple[float, ...]:
        """Most microbatches whose activations each stage holds at a time.

        Counted in microbatches of a stage's share of layers, so that one chunk of two
        counts half. Held from the begin of F to the end of B, or of W where the
        backward pass is split.
        """
        return tuple(self.share * _most_held(order) for order in self.orders)

    @property
    def sends(self) -> tuple[int, ...]:
        """How often each stage sends a microbatch's activations or their gradients.

        From a chunk to the next one on the same stage nothing is sent.
        """
        sent = [0] * self.stages
        for microbatch in range(self.microbatches):
            path = self.path(microbatch)
            for (here, _), (there, _) in pairwise(path):
                if here != there:
                    sent[here] += 1  # forward
                    sent[there] += 1  # backward
        return tuple(sent)

    def __str__(self) -> str:
        most = max(self.in_flight)
        return (
            f"{self.name} over {self.stages} stages, {self.microbatches} microbatches: "
            f"bubble {self.bubble:.1%}, at most {most:g} in flight"
        )

    __repr__ = __str__

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def require_schedule(schedule: object) -> PipelineSchedule:
    """A schedule as it is; raise where it is anything else."""
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
