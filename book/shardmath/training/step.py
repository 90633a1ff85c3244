"""A training step under a strategy: its traffic, its memory, and how long it takes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from ..base.estimate import Estimate, Leg
from ..base.tables import Table, table
from ..base.units import positive_int, short_repr, show
from ..collectives import NAMES, Collective
from ..hardware.mesh import Mesh
from ..sharding.machine import Machine, axes_of, chip_of
from ..sharding.prices import Prices
from ..transformer import Array, Model
from .amounts import Ways
from .communication import Lines, Move, Work
from .cost import StepCost
from .derivation import Derivation
from .efficiencies import Efficiencies
from .job import Job
from .memory import StepMemory
from .parts import Part, repeats
from .pipeline_schedules import PipelineSchedule
from .prediction import Prediction, Software, prediction
from .rates import Rates
from .stages import Pipelines, Stages
from .strategy import Strategy

WHEN = ("forward", "recompute", "backward", "update")
ONE_PASS = {"": 1.0, "B": 1.0, "slots": 1.0}  # we derive exactly one microbatch


@dataclass(frozen=True, eq=False)
class Step:
    """One training step of a model on a mesh, as made by `step`.

    Bytes, FLOPs and times are those of one chip. In a pipeline, this is a chip of stage
    `stage`. But `memory` is that of the stage that holds the most, and the network time
    of `estimate` is that of the stage whose links are busy for longest. Everything is
    derived from the lines of the model: `moves` has the traffic, `derivation` has the
    parts of a stage, and `cost` has the numbers.
    """

    strategy: Strategy
    job: Job
    mesh: Machine
    microbatches: int
    derivation: Derivation
    cost: StepCost
    stage: int = 0

    @property
    def model(self) -> Model:
        return self.job.model

    @property
    def seqs(self) -> int:
        """Sequences of one step, on all chips."""
        return self.job.seqs

    @property
    def seq(self) -> int:
        """Tokens of a sequence."""
        return self.job.seq

    @property
    def remat(self) -> str:
        return self.job.remat

    @property
    def precision(self) -> str:
        return self.job.precision

    @property
    def vocabulary(self) -> bool:
        """Whether the step includes the embedding and the head."""
        return self.job.vocabulary

    @property
    def chips(self) -> int:
        return math.prod(axes_of(self.mesh).values())

    @property
    def tokens(self) -> int:
        """Tokens of one step, on all chips: seqs · seq."""
        return self.job.tokens

    @property
    def tokens_per_chip(self) -> float:
        return self.tokens / self.chips

    @property
    def lines(self) -> Lines:
        """The lines of the model on the mesh, for one microbatch."""
        return self.derivation.lines

    @property
    def pipelines(self) -> Pipelines:
        """The model's layers cut into stages, and the times of schedules."""
        return self.cost.pipelines

    @property
    def _count(self) -> int:
        """Stages of the pipeline."""
        return self.cost.count

    @property
    def stages(self) -> Stages:
        """The layers, cut into stages, with the schedule of these stages."""
        return self.pipelines.stages(self._count, self.microbatches)

    @cached_property
    def _parts(self) -> tuple[tuple[int, Part], ...]:
        """The parts of this stage, and how many of each there are."""
        contents = self.pipelines.contents(self._count)[self.stage]
        return tuple(self.derivation.parts(contents))

    @property
    def works(self) -> tuple[Work, ...]:
        """The plans of one layer of each kind, then of head and embedding."""
        return tuple(work for _, part in self._parts for work in part.works)

    @property
    def weights(self) -> tuple[tuple[int, Array], ...]:
        """For every matrix of this stage, how often the stage has it, and the matrix. A
        tied embedding and head count once."""
        return tuple(
            (count, one) for count, part in self._parts for one in part.matrices
        )

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """All moves, in the order of forward, recompute, backward and update."""
        # If a pipeline has two paths, each takes half of the microbatches.
        rounds = self.microbatches // self.pipelines.paths(self._count)
        found = [
            replace(
                move,
                times=count
                * move.times
                * (rounds if repeats(move, part.matrices) else 1),
            )
            for count, part in self._parts
            for move in part.moves
        ]
        return tuple(sorted(found, key=lambda move: WHEN.index(move.when)))

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives of the moves, as records that can be priced and compared."""
        return tuple(move.collective for move in self.moves)

    @property
    def sent(self) -> float:
        """Bytes that one chip sends in a step."""
        return sum(one.total_sent for one in self.collectives)

    @property
    def flops(self) -> Mapping[str, float]:
        """FLOPs of one chip by "forward", "recompute" and "backward".

        Only matmuls count. The step's `attention` decides which keys count.
        """
        return self.cost.flops(self.stage)

    @cached_property
    def memory(self) -> StepMemory:
        """Bytes that one chip holds at the peak of the step, by part; in a pipeline, on
        the stage that holds the most.

        Assumes Adam with a master copy of the weights, the job's formats, attention
        kernel and loss, and one gathered layer at a time. Memory that a runtime keeps
        for itself and for its collectives is not included.
        """
        return self._held(self.cost.most_memory)

    def memory_of(self, stage: int) -> StepMemory:
        """Bytes that one chip of a stage holds at the peak of the step, by part.

        Raises:
            ValueError: there is no such stage.
        """
        return self._held(self.cost.memory(self.at(stage).stage))

    def _held(self, parts: Mapping[str, float]) -> StepMemory:
        chip = self.mesh.network.chip if isinstance(self.mesh, Mesh) else None
        return StepMemory(parts, chip.memory_bytes if chip else None)

    def at(self, stage: int) -> "Step":
        """The same step with the numbers of another stage of the pipeline.

        Raises:
            ValueError: there is no such stage.
        """
        if stage not in range(self._count):
            raise ValueError(
                f"stage = {short_repr(stage)}: stages are 0 to {self._count - 1}"
            )
        return replace(self, stage=stage)

    @cached_property
    def _prices(self) -> Prices:
        if not isinstance(self.mesh, Mesh):
            raise ValueError(
                f"mesh = {short_repr(self.mesh)}: must be a `Mesh` of chips to give a "
                "time"
            )
        return Prices(self.mesh)

    @cached_property
    def rates(self) -> Rates:
        """Seconds for which one byte of its collectives keeps links busy."""
        return Rates(self._prices.mesh, self.job, self._prices)

    @cached_property
    def estimate(self) -> Estimate:
        """Math, HBM and network time of a step, with a lower and an upper bound.

        For the lower bound, all three work at once at peak rates. For the upper bound,
        their times are added up. The HBM traffic is itself a lower bound; see
        `StepCost.hbm_bytes`. In a pipeline, the network time is that of the stage whose
        links are busy for longest.

        Raises:
            ValueError: the mesh has no chips, or mesh axes share a ring.
        """
        chip = chip_of(self._prices.mesh)
        peak = chip.flops[self.precision] * self.working
        legs = [
            Leg("math", sum(self.flops.values()), peak),
            Leg("HBM", self.cost.hbm_bytes(self.stage), chip.hbm_bandwidth),
        ]
        stage = self._most_moved
        moved = self.at(stage).collectives
        lower = self._network(stage)
        if moved and lower:
            sent = sum(one.total_sent for one in moved)
            slack = max(0.0, self._prices.upper(moved) - lower)
            legs.append(Leg("network", sent, sent / lower, slack))
        return Estimate(self.title, tuple(legs))

    @cached_property
    def prediction(self) -> Prediction:
        """How long the step is likely to take: its bound, its parts, and a band.

        Raises:
            ValueError: the mesh has no chips, or mesh axes share a ring.
        """
        return self.predicted()

    def predicted(
        self, software: Software | None = None, at: Efficiencies | None = None
    ) -> Prediction:
        """The prediction for given software or other efficiencies.

        Args:
            software: what the framework overlaps, and whether its attention kernel is
                old.
            at: the efficiencies; the fitted ones if not given.

        Raises:
            ValueError: as `prediction`.
        """
        chip = chip_of(self._prices.mesh)
        self._network(self._most_moved)  # raises if there is no price
        return prediction(
            self.cost,
            self.rates,
            self.job,
            chip,
            self.estimate.lower,
            ring=self.strategy.ring,
            software=software,
            at=at,
        )

    @cached_property
    def _most_moved(self) -> int:
        """The stage whose links are busy for longest; in a tie, this one."""
        some = dict.fromkeys((self.stage, *self.cost.sending))
        return max(some, key=self._network)

    def _network(self, stage: int, scale: float = 1.0) -> float:
        """Seconds of the busiest links of a stage, at `scale` times the batch.

        Raises:
            ValueError: mesh axes share a ring, so there is no price.
        """
        cost = self.cost
        if scale != 1:
            batch = {"": 1.0, "B": scale, "slots": scale}
            cost = StepCost(
                cost.shares, cost.pipelines, cost.microbatches, cost.ways, batch
            )
        found = cost.network(stage, self.rates)
        if found is None:
            self._prices.lower(self.at(stage).collectives)  # raises with the reason
        return found

    @cached_property
    def played(self) -> PipelineSchedule:
        """The schedule of the pipeline, with the FLOPs of the stages as their times."""
        paths = self.pipelines.paths(self._count)
        return self.stages.played(
            lambda n: tuple(flops / paths for flops in self.cost.one_pass(n))
        )

    @property
    def bubble(self) -> float:
        """Idle ÷ busy time of all stages if math runs at its peak; 0 for one stage."""
        return self.cost.bubble if self._count > 1 else 0.0

    @property
    def working(self) -> float:
        """The share of the step in which a chip of this stage computes."""
        if self._count == 1:
            return 1.0
        return sum(self.flops.values()) / self.cost.math_flops

    @property
    def title(self) -> str:
        tokens = f"{self.tokens:,} tokens"
        return (
            f"{self.model.name}, {self.strategy.name}, {tokens} on {self.chips:,} chips"
        )

    @property
    def critical_tokens(self) -> float:
        """Tokens per chip at which the network takes as long as math. With more tokens,
        math takes longer. The result is `inf` if the network takes longer at any batch
        size.

        Sequence length, mesh and microbatches stay the same. The traffic of weights and
        gradients also stays the same, while that of activations grows with the tokens,
        so both times are linear in the tokens. We assume that math and network overlap
        completely. A real step at this batch size takes longer than its math, because
        nothing hides its first and last collectives (see `prefetched`).
        """
        math_, stage = self.estimate.seconds["math"], self._most_moved

        def longer(scale: float) -> bool:
            """Whether math takes at least as long as the busiest links, at `scale`
            times the batch."""
            return scale * math_ >= self._network(stage, scale)

        low, high = 2.0**-40, 2.0**40
        if longer(low):
            return 0.0
        if not longer(high):
            return math.inf
        while high / low > 1 + 1e-9:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if longer(middle) else (middle, high)
        return high * self.tokens_per_chip

    @property
    def table(self) -> Table:
        """The moves, grouped by pass, collective and axes, with the bytes that one chip
        sends."""
        found: dict[tuple, list[Move]] = {}
        for move in self.moves:
            one = move.collective
            key = move.when, NAMES[one.op], " ".join(one.axes), one.group
            found.setdefault(key, []).append(move)
        rows = [
            (
                *key,
                " ".join(dict.fromkeys(move.array for move in moves)),
                sum(move.times for move in moves),
                show(sum(move.collective.total_sent for move in moves), "bytes"),
            )
            for key, moves in found.items()
        ]
        header = ("when", "collective", "axes", "chips", "arrays", "runs", "sent")
        return table(header, rows)

    def __str__(self) -> str:
        lines = [self.title, f"sent by a chip: {show(self.sent, 'bytes')}"]
        lines.append(f"held by a chip: {show(self.memory.total, 'capacity')}")
        if isinstance(self.mesh, Mesh):
            lines.append(self.memory.verdict)
            found = self.prediction
            lines += [f"bound {show(found.bound, 's')}, {_limit(self.estimate)}"]
            lines += [str(found).partition("; ")[2], f"  {found.said}", *found.warnings]
        return "\n  ".join(lines)

    def _repr_pretty_(self, printer, cycle):
        printer.text(f"{self}\n\n{self.table}" if self.moves else str(self))


def _limit(found: Estimate) -> str:
    """Which resource limits the step, and the seconds of each."""
    legs = ", ".join(f"{name} {show(s, 's')}" for name, s in found.seconds.items())
    return f"{found.bound} ({legs})"


def step(
    strategy: Strategy,
    model: Model,
    mesh: Machine,
    seqs: int,
    seq: int,
    *,
    attention: str,
    remat: str = "full",
    precision: str = "bf16",
    microbatches: int = 1,
    vocabulary: bool = True,
    schedule: str = "1f1b",
    chunks: int | None = None,
    capacity: float = 1.0,
    kernel: str = "fused",
    loss: str = "once",
    formats: Mapping[str, str] = MappingProxyType({}),
    copy: bool = True,
    node_limit: int | None = None,
    offloads: str = "",
    table_kept: bool = False,
    remat_share: float = 1.0,
) -> Step:
    """A training step of `model` on `mesh`, with its arrays sharded by `strategy`.

    Args:
        strategy: how the arrays are sharded.
        model: the model, whose lines define the matmuls.
        mesh: a `Mesh` (its chips give times), or sizes by axis name in device order.
        seqs, seq: sequences of one step, on all chips, and tokens of each sequence.
        microbatches: the number of parts of the batch, which are computed one after
            another while their gradients are added up.
        attention, remat, precision, kernel, loss, formats, copy: the numerics; each is
            explained at `Job`.
        vocabulary, schedule, chunks, capacity, node_limit, offloads, table_kept,
        remat_share: see `Job` as well.

    Returns:
        A `Step` with `collectives`, `flops`, `memory`, `estimate`, `prediction` and
        `critical_tokens`. In a pipeline its `stage` is the one with the most FLOPs.

    Assumes:
        As in XLA, weights are gathered for each pass and then freed. Head and loss are
        one pass, and the lookup of embeddings is another. The gradient of a tied table
        is reduced once, as in a hand-written program; XLA may reduce the gradients of
        head and lookup separately. The tokens of a sequence are spread so that all
        chips have equal attention work, and all experts get equally many tokens. The
        gradients of vectors (norms, biases), some kB per layer, are not counted as
        traffic. The lower bound of `estimate` includes the waits of the pipeline
        schedule, but not kernel launches, latency and imperfect overlap. The
        `prediction` includes these.

    Raises:
        ValueError: an axis is not in the mesh, or does not divide the number of heads,
            sequences or whatever else it shards; `Job` refuses a setting.

    >>> from shardmath.training import fsdp
    >>> from shardmath.transformer import LLAMA_3_8B
    >>> one = step(fsdp("X"), LLAMA_3_8B, {"X": 8}, 8, 4096, attention="causal")
    >>> print(one)
    Llama 3.1 8B, fsdp over X, 32,768 tokens on 8 chips
      sent by a chip: 40.3 GB
      held by a chip: 19.1 GiB
    >>> print(one.moves[0])
    forward: AllGather_X: q[D_X, N, H] -> q[D, N, H], 29.4 MB sent, 32 times
    """
    if not isinstance(strategy, Strategy):
        raise ValueError(
            f"strategy = {short_repr(strategy)}: must be a Strategy, such as fsdp('X')"
        )
    (microbatches,) = positive_int(microbatches=microbatches)
    job = Job(
        model,
        seqs,
        seq,
        attention,
        remat,
        precision,
        kernel,
        loss,
        formats,
        copy,
        schedule,
        chunks,
        capacity,
        node_limit,
        vocabulary,
        offloads,
        table_kept,
        remat_share,
    )
    return derived(job, strategy, mesh, microbatches)


def derived(job: Job, strategy: Strategy, mesh: Machine, microbatches: int) -> Step:
    """The step of a job on a mesh; see `step` for its arguments.

    Raises:
        ValueError: as `step`.
    """
    if "E" in strategy.stream and not job.model.experts:
        raise ValueError(f"{strategy.name}: {job.model.name} has no experts")
    if job.seqs % microbatches:
        raise ValueError(
            f"microbatches = {short_repr(microbatches)}: must divide seqs = {job.seqs}"
        )
    sizes = axes_of(mesh)
    for axis in strategy.axes:
        if axis not in sizes:
            known = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            raise ValueError(
                f"{strategy.name}: uses the mesh axis {axis}, but the mesh has "
                f"{known or 'no axes'}"
            )
    derivation = Derivation(job, strategy, sizes, job.seqs // microbatches)
    pipelines = Pipelines(job.model, job.schedule, job.chunks)
    count = math.prod(sizes[axis] for axis in strategy.layers)
    pipelines.stages(count, microbatches)  # raises if there is no such schedule
    shares = derivation.shares(pipelines.contents(count))
    cost = StepCost(shares, pipelines, microbatches, Ways(sizes), ONE_PASS)
    return Step(strategy, job, mesh, microbatches, derivation, cost, cost.busiest)
