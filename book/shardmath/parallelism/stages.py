"""Layers cut into the stages of a pipeline."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from ..pipeline_schedules import NAMES, Schedule, Times, schedule
from ..transformer import Matmul, Model
from ..units import quoted

Stack = tuple[tuple[int, tuple[Matmul, ...]], ...]  # how many layers of each kind
Way = tuple[str, bool, bool]  # "forward" or "backward", closed, back


@dataclass(frozen=True)
class Stages:
    """The layers of a model, cut into the places of a schedule.

    Every place (a stage, or one of its chunks of layers) gets as many layers as the
    others, or one less: the first and the last get less first, which have embedding and
    head to do besides.
    """

    model: Model
    schedule: Schedule

    @property
    def count(self) -> int:
        return self.schedule.stages

    @property
    def paths(self) -> int:
        """Ways through the stages; a microbatch takes one of them."""
        return len(self.schedule.paths)

    @cached_property
    def places(self) -> tuple[range, ...]:
        """The layers of every place on a path, in order."""
        count = len(self.schedule.paths[0])
        base, more = divmod(self.model.layers, count)
        first = (count - more) // 2  # so many at the start have one less
        sizes = [base + (first <= n < first + more) for n in range(count)]
        starts = [sum(sizes[:n]) for n in range(count)]
        return tuple(range(a, a + n) for a, n in zip(starts, sizes, strict=True))

    def stack(self, stage: int) -> Stack:
        """Layers of a stage by kind, of all paths."""
        mine = [layer for layers in self._of(stage) for layer in layers]
        found, start = [], 0
        for count, matmuls in self.model.stack:
            here = sum(start <= layer < start + count for layer in mine)
            found.append((here, matmuls))
            start += count
        return tuple(one for one in found if one[0])

    def ends(self, stage: int) -> tuple[bool, bool]:
        """Whether a stage has the embedding, and the head."""
        first, last = self.places[0], self.places[-1]
        mine = self._of(stage)
        return first in mine, last in mine

    def _of(self, stage: int) -> list[range]:
        """The layers of each of its places."""
        return [
            self.places[n]
            for path in self.schedule.paths
            for n, (place, _) in enumerate(path)
            if place == stage
        ]

    def hops(self, stage: int) -> dict[Way, int]:
        """How often a stage sends one microbatch of each path on, by way."""
        found: Counter[Way] = Counter()
        closed = any(
            abs(there - here) > 1
            for path in self.schedule.paths
            for (here, _), (there, _) in pairwise(path)
        )
        for path in self.schedule.paths:
            for (here, _), (there, _) in pairwise(path):
                back = there < here and not closed
                found["forward", closed, back] += here == stage != there
                found["backward", closed, not back] += there == stage != here
        return {way: times for way, times in found.items() if times}

    @property
    def sends(self) -> tuple[int, ...]:
        """How often each stage sends in a step, forward and backward."""
        return self.schedule.sends

    def in_flight(self, stage: int) -> float:
        """Microbatches whose activations a stage holds at most."""
        return self.schedule.in_flight[stage]

    def played(self, passes: Callable[[int], tuple[float, float, float]]) -> Schedule:
        """The schedule with the times of its stages.

        Args:
            passes: time of F, I and W of one microbatch on a stage, all its layers.
        """
        each = [passes(stage) for stage in range(self.count)]
        F, I, W = (sum(column) / self.count for column in zip(*each, strict=True))
        path = self.schedule.paths[0]
        work = tuple(sum(each[stage]) / (F + I + W) for stage, _ in path)
        return replace(self.schedule, times=Times(F, I, W, work=work))


def cut(
    model: Model, stages: int, microbatches: int, name: str, chunks: int | None
) -> Stages:
    """The layers of `model`, cut into `stages`.

    Raises:
        ValueError: more places than layers; a schedule that is not there for these.
    """
    if name not in NAMES:
        raise ValueError(f"{quoted(name)}: a schedule is one of {', '.join(NAMES)}")
    if stages == 1:  # no pipeline, whatever the schedule
        name, chunks, microbatches = "1f1b", None, 1
    found = schedule(name, stages, microbatches, chunks)
    places = len(found.paths[0])
    if places > model.layers:
        raise ValueError(
            f"{places} stages or chunks of layers: {model.name} has {model.layers} "
            "layers, and each needs one"
        )
    return Stages(model, found)
