"""Layers cut into the stages of a pipeline, and how long the whole pipeline takes."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import isclose

from ..base.units import short_repr
from ..transformer import Matmul, Model
from .pipeline_schedules import NAMES, PipelineSchedule, Times, schedule
from .pipeline_schedules.named import chunks_of, paths_of
from .pipeline_schedules.orders import Paths

Stack = tuple[tuple[int, tuple[Matmul, ...]], ...]  # how many layers of each kind
Way = tuple[str, bool, bool]  # "forward" or "backward", closed, back
# Microbatches per stage after which a schedule repeats itself. From then on, one more
# microbatch adds the time of the slowest stage, and no more are in flight.
PERIODIC_FROM = {"gpipe": 2, "1f1b": 2, "eager-1f1b": 3, "interleaved": 2,
                 "overlapped": 3, "breadth-first": 2, "zb-h1": 2, "zb-h2": 3, "zb-v": 3,
                 "dualpipe": 3, "dualpipev": 3}  # fmt: skip
GROWS = ("gpipe", "breadth-first")  # their memory grows with the microbatches


@dataclass(frozen=True, eq=False)
class StageContents:
    """The layers, ends and sends of one pipeline stage. If stages of a `Pipelines` have
    equal contents, they share one object, which is cheap to look up.

    Args:
        stack: how many layers of each kind it has, added up over all paths.
        ends: whether it has the embedding, and whether it has the head.
        sends: how often it sends on one microbatch of each path, by `Way`.
        mirrored: whether another stage holds the same layers (DualPipe).
    """

    stack: Stack
    ends: tuple[bool, bool]
    sends: tuple[tuple[Way, int], ...]
    mirrored: bool


def layers_by_place(layers: int, places: int) -> tuple[int, ...]:
    """The numbers of layers that the places of a schedule get.

    Any two differ by at most one. The places at both ends get fewer, because the first
    and the last also compute the embedding and the head.

    >>> layers_by_place(126, 16)
    (7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7)
    """
    base, more = divmod(layers, places)
    first = (places - more) // 2  # places at the start that have one layer less
    return tuple(base + (first <= n < first + more) for n in range(places))


@dataclass(frozen=True)
class Stages:
    """The layers of a model, cut into the places of a schedule.

    A place is a stage, or one of its chunks of layers; see `layers_by_place`.
    """

    model: Model
    schedule: PipelineSchedule

    @property
    def count(self) -> int:
        return self.schedule.stages

    @property
    def paths(self) -> int:
        """The number of paths through the stages; each microbatch takes one of them."""
        return len(self.schedule.paths)

    @cached_property
    def places(self) -> tuple[range, ...]:
        """The layers of every place on a path, in order."""
        sizes = layers_by_place(self.model.layers, len(self.schedule.paths[0]))
        starts = [sum(sizes[:n]) for n in range(len(sizes))]
        return tuple(range(a, a + n) for a, n in zip(starts, sizes, strict=True))

    def stack(self, stage: int) -> Stack:
        """How many layers of each kind a stage has, added up over all paths."""
        mine = [layer for layers in self._of(stage) for layer in layers]
        found, start = [], 0
        for count, matmuls in self.model.stack:
            here = sum(start <= layer < start + count for layer in mine)
            found.append((here, matmuls))
            start += count
        return tuple(one for one in found if one[0])

    def ends(self, stage: int) -> tuple[bool, bool]:
        """Whether a stage has the embedding, and whether it has the head."""
        path = self.schedule.paths[0]
        mirrored = self.paths > 1 and stage in (path[0][0], path[-1][0])
        return mirrored or path[0][0] == stage, mirrored or path[-1][0] == stage

    def _of(self, stage: int) -> list[range]:
        """The layers of each place of a stage."""
        return [
            self.places[n]
            for path in self.schedule.paths
            for n, (place, _) in enumerate(path)
            if place == stage
        ]

    def hops(self, stage: int) -> dict[Way, int]:
        """How often a stage sends on one microbatch of each path, by `Way`."""
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

    def contents(self, stage: int) -> tuple:
        """The arguments for the `StageContents` of a stage."""
        sends = tuple(self.hops(stage).items())
        return self.stack(stage), self.ends(stage), sends, self.paths > 1

    @property
    def sends(self) -> tuple[int, ...]:
        """How often each stage sends in a step, forward and backward."""
        return self.schedule.sends

    def in_flight(self, stage: int) -> float:
        """How many microbatches' activations a stage holds at once, at most."""
        return self.schedule.in_flight[stage]

    def played(
        self, passes: Callable[[int], tuple[float, float, float]]
    ) -> PipelineSchedule:
        """The schedule with the times of its stages.

        Args:
            passes: a function of a stage that returns the times of F, I and W of all
                its layers together, for one microbatch.
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
        ValueError: there are more places than layers, or the schedule does not exist
            for these numbers.
    """
    if name not in NAMES:
        raise ValueError(
            f"schedule = {short_repr(name)}: must be one of {', '.join(NAMES)}"
        )
    if stages == 1:  # no pipeline, whatever the schedule
        name, chunks, microbatches = "1f1b", None, 1
    check_places(model, paths_of(name, stages, chunks))
    return Stages(model, schedule(name, stages, microbatches, chunks))


def check_places(model: Model, paths: Paths) -> None:
    """Raise an error unless every place has a layer. If there are more than two places,
    the first and the last need none, because they have the embedding and the head.

    Raises:
        ValueError: there are too many places for the number of layers.
    """
    places = len(paths[0])
    if places > model.layers + 2 * (len(paths) == 1 and places > 2):
        raise ValueError(
            f"{places} stages or chunks of layers are too many: {model.name} has "
            f"{model.layers} layers, and each stage or chunk needs one, except for the "
            "first and the last, which may have only the embedding or the head"
        )


class Pipelines:
    """The stages of one model under one schedule, for any number of microbatches.

    The layers of a stage do not depend on the number of microbatches, and after some
    microbatches a schedule repeats itself. So we simulate only a few microbatches.

    Args:
        model: the model whose layers are cut.
        name, chunks: name and chunks of the schedule; see
            `pipeline_schedules.schedule`.
    """

    def __init__(self, model: Model, name: str, chunks: int | None):
        self.model, self.name, self.chunks = model, name, chunks
        self._cut: dict[tuple[int, int], Stages] = {}
        self._few: dict[int, Stages] = {}
        self._contents: dict[int, tuple[StageContents, ...]] = {}
        self._possible: dict[tuple[int, int], bool] = {}
        self._in_flight: dict[tuple[int, int], tuple[float, ...]] = {}
        self._played: dict[tuple, float] = {}

    def stages(self, count: int, microbatches: int) -> Stages:
        """The layers cut into stages.

        Raises:
            ValueError: as `cut`.
        """
        key = count, microbatches if count > 1 else 1
        if key not in self._cut:
            self._cut[key] = cut(self.model, *key, self.name, self.chunks)
        return self._cut[key]

    def few(self, count: int) -> Stages:
        """Stages without the order of their ops, for uses in which only places matter.

        Raises:
            ValueError: as `stages`.
        """
        if count == 1:
            return self.stages(1, 1)
        if count not in self._few:
            paths = paths_of(self.name, count, self.chunks)
            check_places(self.model, paths)
            known = PipelineSchedule(self.name, count, 2 * count, (), paths)
            self._few[count] = Stages(self.model, known)
        return self._few[count]

    def contents(self, count: int) -> tuple[StageContents, ...]:
        """The contents of each of `count` stages."""
        if count not in self._contents:
            found = [self.few(count).contents(stage) for stage in range(count)]
            known = {each: StageContents(*each) for each in found}
            self._contents[count] = tuple(known[each] for each in found)
        return self._contents[count]

    def paths(self, count: int) -> int:
        """The number of paths through the stages; each microbatch takes one of them."""
        return self.few(count).paths

    def possible(self, count: int, microbatches: int) -> bool:
        """Whether the schedule exists for these numbers of stages and microbatches."""
        key = count, microbatches
        if key not in self._possible:
            try:
                chunks_of(self.name, *key, self.chunks)
                self._possible[key] = True
            except ValueError:
                self._possible[key] = count == 1
        return self._possible[key]

    def in_flight(self, count: int, microbatches: int) -> tuple[float, ...]:
        """How many microbatches' activations each stage holds at once, at most."""
        enough = PERIODIC_FROM[self.name] * count
        if count == 1:
            microbatches = 1
        elif self.name not in GROWS:
            microbatches = min(enough, microbatches)
        key = count, microbatches
        if key not in self._in_flight:
            self._in_flight[key] = self.stages(*key).schedule.in_flight
        return self._in_flight[key]

    def seconds(
        self,
        count: int,
        microbatches: int,
        passes: Sequence[tuple[float, float, float]],
    ) -> float:
        """How long a pipeline takes, in the unit of `passes`.

        Args:
            count, microbatches: stages p and microbatches M.
            passes: times of F, I and W of each stage, for one microbatch of each path.

        Assumes:
            If p more microbatches add p times the slowest stage's time for one, each
            further microbatch adds that time too.
        """
        paths = self.paths(count)
        if count == 1:
            return microbatches * sum(passes[0]) / paths
        whole = sum(map(sum, passes))
        ratios = tuple(round(t / whole, 12) for times in passes for t in times)
        key = count, microbatches, ratios
        if key not in self._played:
            relative = [tuple(t / whole for t in times) for times in passes]
            self._played[key] = self._extended(count, microbatches, relative)
        return self._played[key] * whole / paths

    def _extended(self, count: int, microbatches: int, passes) -> float:
        longest = max(map(sum, passes))
        played = PERIODIC_FROM[self.name] * count
        before = None
        while played < microbatches:
            now = self._play(count, played, passes)
            if before is not None:
                more = (played - before[0]) * longest
                if isclose(now - before[1], more, rel_tol=1e-9):
                    return now + (microbatches - played) * longest
            before = played, now
            played += count
        return self._play(count, microbatches, passes)

    def _play(self, count: int, microbatches: int, passes) -> float:
        """The simulated time of a schedule of these microbatches."""
        return self.stages(count, microbatches).played(passes.__getitem__).seconds
