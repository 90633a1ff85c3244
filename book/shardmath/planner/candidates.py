"""Ways to run a job on one mesh: their memory, and how long they are likely to take.

A search looks at many meshes. On each of them it tries many sizes of a microbatch,
numbers of chunks and policies of recomputation. A layer takes equally long on all
meshes that give each chip the same share of it. So we evaluate each part of a stage
once for each share, and combine the parts into candidates. Bytes and seconds are equal
to those of `training.step(...).memory` and `.prediction`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil, prod
from typing import NamedTuple

from ..training.amounts import Names, Ways, evaluate
from ..training.derivation import ADDED_UP, Derivation
from ..training.job import Job
from ..training.memory import PARTS
from ..training.operations import MovedWeights, done, moved_weights
from ..training.parts import PASSES, Part
from ..training.pipeline_schedules.closed_forms import held, idle_of
from ..training.prediction import Clock, busy_links
from ..training.stages import Pipelines, StageContents
from ..transformer import Matmul
from .links import Links
from .patterns import LAID, batch_shares, merged

LARGEST = tuple(name for name in PARTS if name not in ADDED_UP)
OUTER = ("data", "pipeline", "zero", "fsdp")  # axes that do not change a layer's work
SHARING = ("fsdp", "zero", "expert", "context")  # axes that may shard weights


WHOLE = {"": 1.0, "B": 1.0, "slots": 1.0}


class Sharing(NamedTuple):
    """Properties of mesh axes that do not follow from their names.

    Args:
        shards: how the weights are kept, as a key of `patterns.SHARDS`.
        folded: axes of tensor or context parallelism that also split the experts.
    """

    shards: str
    folded: Names = ()


Label = tuple[object, str]  # a kind of layer and its policy, or an end of the model


class PartBytes(NamedTuple):
    """Bytes of a part on one chip, for one microbatch.

    Args:
        saved: bytes that are kept for every microbatch in flight.
        largest: bytes for each kind of memory in `LARGEST`. A stage needs each kind
            only once, for the part that needs most of it.
    """

    saved: float
    largest: tuple[float, ...]


class PartTimes(NamedTuple):
    """Seconds that a part takes for one microbatch, without traffic of its weights.

    Args:
        forward, backward: seconds of the two passes.
        exposed: seconds of their exchanges that nothing hides.
        keys: seconds that context parallelism adds to the passes for keys.
    """

    forward: float
    backward: float
    exposed: float
    keys: float


class StageTimes(NamedTuple):
    """Seconds that a stage takes.

    Args:
        forward, backward: F and B, the two passes of one microbatch.
        exposed: seconds of their exchanges that nothing hides.
        keys: seconds that another choice for keys (ring, gather or ulysses) might save.
        update, optimizer: seconds per step of the update's exposed exchanges, and of
            the optimizer.
    """

    forward: float
    backward: float
    exposed: float
    keys: float
    update: float
    optimizer: float

    @property
    def passes(self) -> float:
        """F + B."""
        return self.forward + self.backward

    @property
    def of_keys(self) -> float:
        """The share of the passes that depends on the choice for keys."""
        return self.keys / self.passes


@dataclass(frozen=True)
class RematShare:
    """What is computed again: a policy, and the share of the layers that follow it.

    Args:
        remat: the policy, as for `training.step`.
        share: the share of the layers.
        words: the name to print if the policy is a list of what it keeps.
    """

    remat: str
    share: float
    words: str = ""

    def __str__(self) -> str:
        said = self.words or self.remat
        return said if self.share == 1 else f"{said} for {self.share:.0%}"


NOTHING_AGAIN = RematShare("none", 1.0)
LATENT = "elementwise, heads of latents"  # name of a policy; see `search.recomputes`


@dataclass(frozen=True)
class Candidate:
    """One way to run a job.

    Args:
        shards: how the weights are kept, as a key of `patterns.SHARDS`.
        sizes: the sizes of all mesh axes of `patterns.LAID`.
        keys: what context parallelism does with keys: "ring", "gather" or "ulysses".
        folded: axes of tensor or context parallelism that also split the experts.
        block: sides of the block that tensor parallelism takes on a torus; empty if it
            takes a row.
        microbatches: microbatches of a step.
        chunks: chunks of layers per pipeline stage.
        recompute: what is computed again.
        nbytes: bytes that a chip holds.
        seconds: predicted seconds of a step.
        exposed: how many of these are exposed exchanges and waits for other stages.
    """

    shards: str
    sizes: Mapping[str, int]
    keys: str
    folded: Names
    block: tuple[int, ...]
    microbatches: int
    chunks: int
    recompute: RematShare
    nbytes: float
    seconds: float
    exposed: float

    @property
    def ways(self) -> dict[str, int]:
        """The size of each kind of parallelism in `patterns.ORDER`."""
        return merged(self.sizes)

    @property
    def experts_over(self) -> int:
        """Over how many chips the experts of a layer are divided."""
        folded = prod(self.sizes[axis] for axis in self.folded)
        return self.ways["expert"] * folded


class OnMesh:
    """A job on one mesh, for any microbatch, chunks and recomputation.

    Args:
        layout: how the weights are kept, and which axes also split experts.
        keys: as in `Candidate`.
        derivation: the derivation of the mesh's strategy.
        sizes: the sizes of all mesh axes.
        links: rates on the network to which the axes are mapped.
        common: what all meshes of the search share.
    """

    def __init__(
        self,
        layout: "Sharing",
        keys: str,
        derivation: Derivation,
        sizes: Mapping[str, int],
        links: Links,
        common: "Common",
    ):
        self.layout, self.keys = layout, keys
        self.derivation, self.sizes, self.common = derivation, sizes, common
        self.ways, self.links, self.inside = Ways(sizes), links, chips_inside(sizes)
        self.block = links.block(sizes)[1]
        self.stages = sizes["pipeline"]
        self._resting: dict[Label, tuple[float, float]] = {}
        self._moved: dict[Label, MovedWeights] = {}
        self._held: dict[tuple, tuple[float, float, float]] = {}
        self._taken: dict[tuple, StageTimes] = {}
        ways = self.ways(derivation.batch_axes)
        self.seqs = common.job.seqs // ways  # per step on one data-parallel rank
        self.gathers = layout.shards == "fsdp" and tuple(
            sizes[axis] > 1 for axis in SHARING
        )
        inner = tuple(
            (n, self.inside[axis] if n > 1 else 1)
            for axis, n in sizes.items()
            if axis not in OUTER
        )
        self._inner = inner, layout.folded, self.block
        self.hops = self.ways(self.derivation.strategy.ring) - 1

    def rate(self, wire):
        return self.links.rate(wire, self.sizes, self.inside)

    def batch(self, microbatches: int) -> dict[str, float]:
        """The shares of amounts in one microbatch; see `patterns.batch_shares`."""
        ways = self.ways(self.derivation.dealt_over)
        return batch_shares(self.derivation, microbatches, ways)

    def parts(
        self, stage: "Stage", again: RematShare
    ) -> tuple[tuple[int, Part, Label], ...]:
        """For each kind of part of a stage: how many there are, one, and its label."""
        key = self.derivation, stage.key, again
        if key not in self.common.parts:
            self.common.parts[key] = tuple(self._found(stage.contents, again))
        return self.common.parts[key]

    def _found(
        self, contents: StageContents, again: RematShare
    ) -> Iterator[tuple[int, Part, Label]]:
        layer = self.derivation.layer
        for count, matmuls in contents.stack:
            some = ceil(round(count * again.share, 9))
            for layers, remat in ((some, again.remat), (count - some, "none")):
                if layers:
                    kind = self.common.kind(matmuls)
                    yield layers, layer(matmuls, remat), (kind, remat)
        for count, part in self.derivation.beside_layers(contents):
            yield count, part, (contents.ends, str(bool(part.flops)))

    def held(
        self, stage: "Stage", microbatches: int, again: RematShare
    ) -> tuple[float, float, float]:
        """Bytes of a stage: for weights, gradients and state; for what it saves of one
        microbatch; and for what only one part at a time needs."""
        key = stage.key, microbatches, again
        if key not in self._held:
            fixed = saved = 0.0
            largest = [0.0] * len(LARGEST)
            for count, part, label in self.parts(stage, again):
                if part.flops:
                    some = self.nbytes(part, label, microbatches)
                    fixed += count * self.resting(part, label)[0]
                    saved += count * some.saved
                    largest = list(map(max, largest, some.largest))
            self._held[key] = fixed, saved, sum(largest)
        return self._held[key]

    def taken(
        self, stage: "Stage", microbatches: int, again: RematShare
    ) -> "StageTimes":
        """Seconds that a stage takes."""
        key = stage.key, microbatches, again
        if key not in self._taken:
            clock, moved = self.common.clock, [0.0] * 4
            F = B = exposed = keys = state = 0.0
            for count, part, label in self.parts(stage, again):
                times = self.times(part, label, microbatches)
                F += count * times.forward
                B += count * times.backward
                exposed += count * times.exposed
                keys += count * times.keys
                state += count * self.resting(part, label)[1]
                for at, seconds in enumerate(self.moved(part, label)):
                    moved[at] += count * seconds
            gathers = clock.gather(moved[0], F), clock.gather(moved[1], B)
            F, B = F + gathers[0], B + gathers[1]
            self._taken[key] = StageTimes(
                F,
                B,
                exposed + sum(gathers),
                keys,
                clock.update(MovedWeights(*moved), F, B),
                clock.optimizer(state),
            )
        return self._taken[key]

    def resting(self, part: Part, label: Label) -> tuple[float, float]:
        """Bytes of a part's weights, gradients and state, and of only its state."""
        if label not in self._resting:
            held = [
                evaluate(part.held.get(name, {}), self.ways, WHOLE)
                for name in ("state", "weights", "gradients")
            ]
            self._resting[label] = sum(held), held[0]
        return self._resting[label]

    def moved(self, part: Part, label: Label) -> MovedWeights:
        """Seconds for which a part's weights and gradients keep the links busy."""
        if label not in self._moved:
            seconds = busy_links(self.rate, self.ways, WHOLE)
            self._moved[label] = moved_weights(part.operations, seconds)
        return self._moved[label]

    def nbytes(self, part: Part, label: Label, microbatches: int) -> PartBytes:
        """Bytes of a part's activations for one microbatch."""
        known = self.common.nbytes
        seqs = self.seqs / microbatches
        key = label, seqs, self._inner, self.keys, self.gathers
        if key not in known:
            batch = self.batch(microbatches)
            known[key] = PartBytes(
                evaluate(part.held.get("saved", {}), self.ways, batch),
                tuple(
                    evaluate(part.held.get(name, {}), self.ways, batch)
                    for name in LARGEST
                ),
            )
        return known[key]

    def times(self, part: Part, label: Label, microbatches: int) -> PartTimes:
        """Seconds that a part takes for one microbatch."""
        known = self.common.times
        key = self.links, label, self.seqs / microbatches, self._inner, self.keys
        if key not in known:
            batch = self.batch(microbatches)
            seconds = busy_links(self.rate, self.ways, batch)
            clock = self.common.clock
            each = [
                done(part.operations, when, self.ways, batch, seconds)
                for when in PASSES
            ]
            forward, recompute, backward = (clock.part(one, self.hops) for one in each)
            keys = sum(clock.turning(one, self.hops) for one in each)
            known[key] = PartTimes(
                sum(forward),
                sum(recompute) + sum(backward),
                sum(one.exposed for one in (forward, recompute, backward)),
                keys + forward.context + recompute.context + backward.context,
            )
        return known[key]


class Stage(NamedTuple):
    """Stages of a pipeline that all have the same contents.

    Args:
        key: a number that identifies the contents.
        contents: the contents of each stage.
        count: the number of these stages.
        first: the index of the first of these stages.
    """

    key: int
    contents: StageContents
    count: int
    first: int


class Common:
    """What all meshes of a search share, and all searches for one job on such chips.

    Args:
        job: the model, its batch and its numerics.
        clock: the clock of the chips.
    """

    def __init__(self, job: Job, clock: Clock):
        self.job, self.clock = job, clock
        self.parts: dict[tuple, tuple[tuple[int, Part, Label], ...]] = {}
        self.nbytes: dict[tuple, PartBytes] = {}
        self.times: dict[tuple, PartTimes] = {}
        self._pipelines: dict[int, Pipelines] = {}
        self._stages: dict[tuple[int, int], tuple[Stage, ...]] = {}
        self._keys: dict[tuple, int] = {}
        self._kinds: dict[tuple[Matmul, ...], int] = {}
        self._idle: dict[tuple, Callable[[float, float], float]] = {}
        self._held: dict[tuple, float] = {}

    def kind(self, matmuls: tuple[Matmul, ...]) -> int:
        """A number that identifies a kind of layer."""
        return self._kinds.setdefault(matmuls, len(self._kinds))

    def pipeline(self, chunks: int) -> Pipelines:
        """The model's layers, cut into stages of `chunks` chunks each."""
        if chunks not in self._pipelines:
            name, given = schedule_of(self.job, chunks)
            self._pipelines[chunks] = Pipelines(self.job.model, name, given)
        return self._pipelines[chunks]

    def stages(self, chunks: int, count: int) -> tuple[Stage, ...]:
        """The kinds of stages of a pipeline.

        Raises:
            ValueError: there are too few layers for these stages and chunks.
        """
        if (chunks, count) not in self._stages:
            found: dict[tuple, list[int]] = {}
            every = self.pipeline(chunks).contents(count)
            for at, one in enumerate(every):
                held_layers = tuple((n, self.kind(lines)) for n, lines in one.stack)
                key = held_layers, one.ends, one.mirrored
                found.setdefault(key, []).append(at)
            self._stages[chunks, count] = tuple(
                Stage(self._keys.setdefault(key, len(self._keys)), every[at[0]],
                      len(at), at[0])
                for key, at in found.items()
            )  # fmt: skip
        return self._stages[chunks, count]

    def in_flight(self, chunks: int, stages: int, microbatches: int, at: int) -> float:
        """How many microbatches of each path have activations on a stage at once."""
        key = chunks, stages, microbatches, at
        if key not in self._held:
            pipelines = self.pipeline(chunks)
            found = held(pipelines.name, stages, microbatches, pipelines.chunks, at)
            self._held[key] = found / pipelines.paths(stages)
        return self._held[key]

    def idle(self, chunks: int, stages: int, microbatches: int):
        """Seconds that a pipeline waits, as a function of F and B."""
        key = chunks, stages, microbatches
        if key not in self._idle:
            some = self.pipeline(chunks)
            self._idle[key] = idle_of(some.name, stages, microbatches, some.chunks)
        return self._idle[key]


def schedule_of(job: Job, chunks: int) -> tuple[str, int | None]:
    """The schedule's name and chunks; 1F1B with several chunks becomes interleaved."""
    if job.schedule in ("1f1b", "interleaved"):
        return ("interleaved", chunks) if chunks > 1 else ("1f1b", None)
    return job.schedule, job.chunks


def nbytes_of(
    mesh: OnMesh,
    microbatches: int,
    chunks: int,
    again: RematShare,
    part: int = 1,
) -> float:
    """Bytes that one chip holds on the stage that holds the most.

    With `part`, a step has only 1/part of the microbatches, each of the same size.
    """
    common, most, count = mesh.common, 0.0, microbatches // part
    for stage in common.stages(chunks, mesh.stages):
        flight = common.in_flight(chunks, mesh.stages, count, stage.first)
        fixed, saved, largest = mesh.held(stage, microbatches, again)
        most = max(most, fixed + saved * flight + largest)
    return most


def predicted(
    mesh: OnMesh, microbatches: int, chunks: int, again: RematShare
) -> tuple[float, float]:
    """Predicted seconds of a step, and how many are exposed exchanges and waits.

    Raises:
        ValueError: mesh axes share a ring, so no time can be predicted.
    """
    common = mesh.common
    rounds = microbatches / common.pipeline(chunks).paths(mesh.stages)
    busiest, mean_forward, mean_backward, optimizer = None, 0.0, 0.0, 0.0
    for stage in common.stages(chunks, mesh.stages):
        found = mesh.taken(stage, microbatches, again)
        optimizer = max(optimizer, found.optimizer)
        mean_forward += stage.count * found.forward / mesh.stages
        mean_backward += stage.count * found.backward / mesh.stages
        if busiest is None or found.passes > busiest.passes:
            busiest = found
    waits = common.idle(chunks, mesh.stages, microbatches)(mean_forward, mean_backward)
    seconds = rounds * busiest.passes + waits + busiest.update + optimizer
    return seconds, rounds * busiest.exposed + busiest.update + waits


def least_passes(
    mesh: OnMesh, microbatches: int, chunks: int, again: RematShare
) -> float:
    """Seconds per step that an average stage spends in its passes, without waits and
    without the time that another choice for keys might save."""
    common = mesh.common
    rounds = microbatches / common.pipeline(chunks).paths(mesh.stages)
    found = 0.0
    for stage in common.stages(chunks, mesh.stages):
        taken = mesh.taken(stage, microbatches, again)
        found += stage.count * (taken.passes - taken.keys) / mesh.stages
    return rounds * found


def share_of_keys(
    mesh: OnMesh, microbatches: int, chunks: int, again: RematShare
) -> float:
    """The largest share of any stage's passes that another choice for keys might
    save."""
    stages = mesh.common.stages(chunks, mesh.stages)
    return max(mesh.taken(one, microbatches, again).of_keys for one in stages)


def chips_inside(sizes: Mapping[str, int]) -> dict[str, int]:
    """How many chips are inside each axis; `patterns.LAID` has the innermost last."""
    found, chips = {}, 1
    for axis in reversed(LAID):
        found[axis] = chips
        chips *= sizes[axis]
    return found
