"""Which axes a mesh has, and the strategy and amounts that follow from it alone."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from ..parallelism import (
    Step,
    Strategy,
    combine,
    context,
    data,
    expert,
    fsdp,
    pipeline,
    tensor,
    zero,
)
from ..parallelism.stages import Stack, Stages, cut
from ..parallelism.training import EMBEDDING, ONE_END, dealt_over, slots
from ..pipeline_schedules.named import chunks_of
from ..transformer import Model
from .amounts import Amounts, Names, Traffic, Wire, block, of, summed, way

# Outermost first: what sends least, or least often, on the thinnest links.
ORDER = ("data", "pipeline", "zero", "fsdp", "expert", "context", "tensor")
# Schedules that repeat themselves: each microbatch more than ENOUGH for each stage adds
# the time of the longest stage, and no more are in flight; `tests/test_planner.py`.
ENOUGH = {"1f1b": 2, "zb-h1": 2, "zb-v": 3, "dualpipe": 3}
SHARDS = {  # who keeps the weights: all that share them, or each a copy
    "fsdp": ("data", "fsdp", "expert", "context", "tensor"),
    "zero": ("zero", "expert", "context", "tensor"),
}
# Parts of memory that are as large with any batch.
STILL = ("state", "weights", "gradients", "gathered")

Has = tuple[Stack, tuple[bool, bool], tuple]  # layers, embedding and head, and hops


@dataclass(frozen=True)
class Job:
    """What is to be trained, but for the mesh; see `plan` for each of these."""

    model: Model
    seqs: int
    seq: int
    attention: str = "causal"
    remat: str = "full"
    precision: str = "bf16"
    schedule: str = "1f1b"
    chunks: int | None = None
    capacity: float = 1.0
    ring: str = "ring"

    @property
    def settings(self) -> dict[str, object]:
        """What `parallelism.step` has to be told beside mesh and microbatches."""
        return {
            "attention": self.attention,
            "remat": self.remat,
            "precision": self.precision,
            "schedule": self.schedule,
            "chunks": self.chunks,
            "capacity": self.capacity,
        }

    def slots(self, microbatches: int, ways: int) -> int:
        """Slots of an expert for one microbatch, which lies in so many ways."""
        tokens = max(1, self.seqs // microbatches) * self.seq
        return slots(self.model, tokens, ways, self.capacity)


def strategy(shards: str, axes: Names, ring: str) -> Strategy:
    """The strategy over mesh axes that are called after what they do.

    Args:
        shards: "fsdp", where weights are shared by all chips that have other tokens, or
            "zero", where each of them has a copy and the state is shared (ZeRO-1).
        axes: some of `ORDER`.
        ring: what context parallelism does with keys, see `parallelism.context`.
    """
    weights = "shards" if shards == "fsdp" else "copies"
    makers = {
        "data": data,
        "pipeline": pipeline,
        "zero": lambda axis: zero(1, axis),
        "fsdp": fsdp,
        "expert": lambda axis: expert(axis, weights),
        "context": lambda axis: context(axis, ring, weights),
        "tensor": tensor,
    }
    some = [makers[axis](axis) for axis in ORDER if axis in axes]
    return combine(*some) if some else data("data")


@dataclass(frozen=True)
class Share:
    """What one stage of a pipeline has: layers, ends and sends, without sizes of axes.

    Args:
        passes: FLOPs of F, I and W of one microbatch of each path.
        sums: bytes of the parts of memory that add up over layers.
        largest: lists of bytes of the others, of which the largest counts.
        read, traffic: as of a `Block`.
    """

    passes: tuple[Amounts, Amounts, Amounts]
    sums: Mapping[str, Amounts]
    largest: Mapping[str, tuple[Amounts, ...]]
    read: Amounts
    traffic: Mapping[Wire, Traffic]

    @cached_property
    def still(self) -> Amounts:
        """Bytes that add up over layers and are as many with any batch."""
        return summed((1, self.sums[part]) for part in STILL if part in self.sums)


class Pattern:
    """What all meshes have in common whose axes do the same things.

    Args:
        job: what is trained.
        shards: as for `strategy`.
        axes: those larger than 1, but for the pipeline's.
        sizes: of these axes on some mesh that the model admits.

    Raises:
        ValueError: what does not divide on that mesh.
    """

    def __init__(self, job: Job, shards: str, axes: Names, sizes: Mapping[str, int]):
        self.job, self.shards = job, shards
        self.strategy = strategy(shards, (*axes, "pipeline"), job.ring)
        mesh = {axis: sizes[axis] for axis in ORDER if axis in axes} | {"pipeline": 2}
        if not axes:
            mesh["data"] = 1
        settings = job.settings | {"schedule": "1f1b", "chunks": None}
        whole = Step(self.strategy, job.model, mesh, job.seqs, job.seq, **settings)
        head_line = job.model.head_line
        self.layers = tuple(block(whole, ((1, lines),)) for _, lines in job.model.stack)
        head, lookup = (block(whole, (), (one,)) for one in (head_line, EMBEDDING))
        self.ends = {(False, True): (head,), (True, False): (lookup,)}
        self.ends[True, True] = (head, lookup)
        if job.model.tied:  # one table serves both
            self.ends[True, True] = (block(whole, (), (head_line, EMBEDDING)),)
        self.stream = whole.lines.rest(head_line.reads)
        self.table = whole.lines.swap(EMBEDDING.weight).before
        self.slots = whole.lines.sizes.get("slots")  # of all amounts
        self.dealt_over = dealt_over(self.strategy)
        self._shares: dict[tuple, Share] = {}

    def batch(self, microbatches: int, ways: int) -> dict[str, float]:
        """The share of one microbatch in an amount, by what divides it.

        Args:
            microbatches: parts of the batch.
            ways: into how many parts `dealt_over` splits the tokens of one.
        """
        share = {"": 1.0, "B": 1 / microbatches}
        if self.slots:
            share["slots"] = self.job.slots(microbatches, ways) / self.slots
        return share

    @property
    def batch_axes(self) -> Names:
        """The axes that split sequences."""
        return self.strategy.stream.get("B", ())

    @cached_property
    def limits(self) -> dict[Names, list[tuple[str, int]]]:
        """What axes must divide: a dimension and its size; see `Block`. Slots there are
        as many on every chip."""
        found: dict[Names, list[tuple[str, int]]] = defaultdict(list)
        every = (*self.layers, *self.ends[True, True])
        for dim, size, axes in sorted(frozenset().union(*(b.limits for b in every))):
            if dim != "slots":
                found[axes].append((dim, size))
        return dict(found)

    @cached_property
    def strictest(self) -> dict[Names, int]:
        """What axes must divide at the most: the divisor common to all of `limits`."""
        return {axes: gcd(*(n for _, n in some)) for axes, some in self.limits.items()}

    def share(self, has: Has) -> Share:
        """What a stage has, as a sum of blocks."""
        if has not in self._shares:
            self._shares[has] = self._share(*has)
        return self._shares[has]

    def _share(self, stack: Stack, ends: tuple[bool, bool], hops: tuple) -> Share:
        kinds = [lines for _, lines in self.job.model.stack]
        parts = [(count, self.layers[kinds.index(lines)]) for count, lines in stack]
        if any(ends):
            parts += [(1, one) for one in self.ends[ends]]
        sums = {
            part: summed((n, one.held[part][0]) for n, one in parts)
            for part in ("state", "weights", "gradients")
        }
        sums["saved"] = summed((n, one.saved) for n, one in parts)
        sums["once"] = max((one.once for _, one in parts), key=lambda one: len(one))
        largest: dict[str, tuple[Amounts, ...]] = {}
        for _, one in parts:
            for part, some in one.held.items():
                if part not in (*sums, "saved"):
                    largest[part] = largest.get(part, ()) + some
        return Share(
            tuple(summed((n, p[k]) for n, p in self._passes(parts)) for k in range(3)),
            sums,
            {part: _different(some) for part, some in largest.items()},
            summed((n, one.read) for n, one in parts),
            self._traffic(parts, dict(hops), self.job.model.tied and ends in ONE_END),
        )

    def _passes(self, parts):
        return [(n, (one.forward, one.inputs, one.weights)) for n, one in parts]

    def _traffic(self, parts, hops, shares_table: bool) -> dict[Wire, Traffic]:
        found: dict[Wire, Traffic] = defaultdict(Traffic)
        for times, one in parts:
            for wire, traffic in one.traffic.items():
                for key, nbytes in traffic.nbytes.items():
                    found[wire].nbytes[key] += times * nbytes
                for often, runs in traffic.runs.items():
                    found[wire].runs[often] += times * runs
        for (_, closed, back), times in hops.items():
            wire = "permute", ("pipeline",), way(closed, back)
            found[wire].nbytes[of(self.stream), "M"] += times * self.stream.nbytes
            found[wire].runs["M"] += times
        if shares_table:
            wire = "permute", ("pipeline",), "swap"
            found[wire].nbytes[of(self.table), ""] += self.table.nbytes
            found[wire].runs[""] += 1
        if hops and self.job.schedule == "dualpipe":  # its stages have copies
            wire = "permute", ("pipeline",), "mirror"
            for times, one in parts:
                for key, nbytes in one.copied.nbytes.items():
                    found[wire].nbytes[key] += times * nbytes
                found[wire].runs[""] += times * one.copied.runs[""]
        return dict(found)


def _different(some: tuple[Amounts, ...]) -> tuple[Amounts, ...]:
    """Each of the lists once."""
    found: list[Amounts] = []
    for one in some:
        if one and one not in found:
            found.append(one)
    return tuple(found)


def _within(one: Mapping[Wire, Traffic], other: Mapping[Wire, Traffic]) -> bool:
    """Whether all that one stage moves, another moves too, on meshes of any size."""
    return one is other or all(
        wire in other
        and all(n <= other[wire].nbytes.get(key, 0) for key, n in some.nbytes.items())
        and all(n <= other[wire].runs.get(key, 0) for key, n in some.runs.items())
        for wire, some in one.items()
    )


class Pipelines:
    """The stages of a job, for any number of them and of microbatches.

    Who has which layers does not depend on the microbatches, and what a stage holds of
    them no longer grows once there are several for each stage; a step only gets longer
    by the longest stage for each more. So schedules are played with few of them.
    """

    def __init__(self, job: Job):
        self.job = job
        self._cut: dict[tuple[int, int], Stages] = {}
        self._shares: dict[tuple[Pattern, int], list[Share]] = {}
        self._moving: dict[tuple[Pattern, int], list[Share]] = {}
        self._have: dict[int, list[Has]] = {}
        self._possible: dict[tuple[int, int], bool] = {}
        self._flight: dict[tuple[int, int], tuple[float, ...]] = {}
        self._played: dict[tuple, float] = {}

    def stages(self, count: int, microbatches: int) -> Stages:
        """The layers cut into stages.

        Raises:
            ValueError: more places than layers; a schedule that is not there for these.
        """
        key = count, microbatches if count > 1 else 1
        if key not in self._cut:
            job = self.job
            self._cut[key] = cut(job.model, *key, job.schedule, job.chunks)
        return self._cut[key]

    def enough(self, count: int, microbatches: int) -> int:
        """So few microbatches that a schedule of them tells one of `microbatches`."""
        each = ENOUGH.get(self.job.schedule, microbatches)
        return min(each * count, microbatches)

    def some(self, count: int) -> Stages:
        """Stages of a schedule that is short, for what does not depend on it."""
        return self.stages(count, 2 * count)

    def shares(self, pattern: Pattern, count: int) -> list[Share]:
        """What each stage has; `count` and axes alone decide it."""
        if (pattern, count) not in self._shares:
            self._shares[pattern, count] = list(map(pattern.share, self.have(count)))
        return self._shares[pattern, count]

    def moving(self, pattern: Pattern, count: int) -> list[Share]:
        """Those of the shares that may move most: each once, and none of which another
        one moves all and more."""
        if (pattern, count) not in self._moving:
            found: list[Share] = []
            for one in self.shares(pattern, count):
                if not any(_within(one.traffic, other.traffic) for other in found):
                    found = [x for x in found if not _within(x.traffic, one.traffic)]
                    found.append(one)
            self._moving[pattern, count] = found
        return self._moving[pattern, count]

    def sends(self, count: int) -> list[int]:
        """How often each stage sends a microbatch of each path, forward and back."""
        return [sum(times for _, times in hops) for _, _, hops in self.have(count)]

    def have(self, count: int) -> list[Has]:
        """Layers, ends and hops of each stage."""
        if count not in self._have:
            some = self.some(count)
            self._have[count] = [
                (some.stack(n), some.ends(n), tuple(some.hops(n).items()))
                for n in range(count)
            ]
        return self._have[count]

    def possible(self, count: int, microbatches: int) -> bool:
        """Whether there is a schedule of so many microbatches."""
        key = count, microbatches
        if key not in self._possible:
            try:
                chunks_of(self.job.schedule, *key, self.job.chunks)
                self._possible[key] = True
            except ValueError:
                self._possible[key] = count == 1
        return self._possible[key]

    def in_flight(self, count: int, microbatches: int) -> tuple[float, ...]:
        """Microbatches whose activations each stage holds at most."""
        key = count, self.enough(count, microbatches) if count > 1 else 1
        if key not in self._flight:
            self._flight[key] = self.stages(*key).schedule.in_flight
        return self._flight[key]

    def seconds(
        self,
        count: int,
        microbatches: int,
        passes: Sequence[tuple[float, float, float]],
    ) -> float:
        """How long a pipeline takes, in the unit of `passes`: F, I and W by stage, of
        one microbatch of each path.

        Exact where the ends alone are longer or shorter; where stages between them
        are, too, up to 1 % too long (`tests/test_planner.py`).
        """
        whole = sum(map(sum, passes))
        few = self.enough(count, microbatches)
        ratios = tuple(round(t / whole, 12) for times in passes for t in times)
        if (count, few, ratios) not in self._played:
            played = self.stages(count, few).played(lambda n: passes[n])
            self._played[count, few, ratios] = played.seconds / whole
        more = (microbatches - few) * max(map(sum, passes))
        return (self._played[count, few, ratios] * whole + more) / self.some(
            count
        ).paths
