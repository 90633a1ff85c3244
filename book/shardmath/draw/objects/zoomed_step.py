"""One training step, from the whole step down to a single hop of an AllGather.

The step is that of Llama 3.1 405B on 16,384 H100s, on the mesh that Meta reports ("The
Llama 3 Herd of Models", arXiv:2407.21783): tensor parallelism over 8, a pipeline of 16
stages, data parallelism over 128, and 16 million tokens. The step's settings are those
of chapter 14. All seconds come from the derivation of the step, from the clock of its
prediction and from the prices of its collectives.
"""

from dataclasses import dataclass
from functools import cached_property

from ...collectives import Priced, price
from ...hardware.mesh import Mesh
from ...hardware.networks import network
from ...sharding.machine import chip_of
from ...training import Move, Prediction, Step, combine, pipeline, step, tensor, zero
from ...training.efficiencies import efficiencies
from ...training.operations import Done, MovedWeights, done
from ...training.parts import Part
from ...training.pipeline_schedules import PipelineSchedule
from ...training.prediction import (
    Clock,
    PartSeconds,
    Software,
    StageSeconds,
    busy_links,
    stage_seconds,
    workload,
)
from ...transformer import LLAMA_3_405B, flops

MACHINE = "h100:2048x8"
AXES = {"data": 128, "pipeline": 16, "tensor": 8}
SEQS, SEQ = 2048, 8192  # of a step
MICROBATCHES, CHUNKS = 16, 8  # of chunks: chapter 12 derives it from the report
MEASURED = 400e12  # FLOPs/s of a GPU, Table 4 of the report
ATTENTION = ("causal", "full")  # which the report may have counted


@dataclass(frozen=True, eq=False)
class ZoomedStep:
    """A step with a pipeline, and the times of its parts.

    Args:
        step: the derived step.
    """

    step: Step

    @property
    def prediction(self) -> Prediction:
        """The prediction of the step."""
        return self.step.prediction

    @cached_property
    def clock(self) -> Clock:
        """The clock of the prediction, for these chips."""
        job = self.step.job
        chip = chip_of(self.step.mesh)
        return Clock(chip, job.precision, Software(), efficiencies())

    @cached_property
    def _kinds(self) -> list[tuple[StageSeconds, MovedWeights]]:
        """The seconds of each kind of stage, and its traffic once per step."""
        found = []
        for _, parts in workload(self.step.cost, self.step.rates).stages:
            columns = zip(
                *([n * each for each in one.moved] for n, one in parts), strict=True
            )
            moved = MovedWeights(*map(sum, columns))
            found.append((stage_seconds(parts, 0, self.clock), moved))
        return found

    @cached_property
    def _kind(self) -> tuple[int, ...]:
        """The place of each stage's kind in `_kinds`."""
        shares = self.step.cost.shares
        order = list(dict.fromkeys(map(id, shares)))
        return tuple(order.index(id(share)) for share in shares)

    @property
    def stages(self) -> tuple[StageSeconds, ...]:
        """The seconds of each stage for one microbatch."""
        return tuple(self._kinds[kind][0] for kind in self._kind)

    @cached_property
    def stage(self) -> int:
        """The busiest stage, which sets the pace."""
        return max(range(len(self.stages)), key=lambda n: sum(self.stages[n].passes))

    @property
    def passes(self) -> tuple[float, float]:
        """Predicted seconds of a microbatch's two passes on the busiest stage."""
        return self.stages[self.stage].passes

    @cached_property
    def played(self) -> PipelineSchedule:
        """The schedule, played with the predicted times of its stages."""

        def seconds(stage: int) -> tuple[float, float, float]:
            forward, backward = self.stages[stage].passes
            return forward, backward / 2, backward / 2

        return self.step.stages.played(seconds)

    @cached_property
    def _layer(self) -> tuple[int, Part]:
        """The number of layers in the busiest stage, and one of them."""
        parts = self.step.cost.shares[self.stage].parts
        return max(parts, key=lambda one: one[0])

    @property
    def layers(self) -> int:
        """The number of layers in the busiest stage."""
        return sum(n for n, part in self.step.cost.shares[self.stage].parts
                   if part.matrices)  # fmt: skip

    @cached_property
    def done(self) -> Done:
        """The work of a chip in the forward pass of one layer."""
        cost = self.step.cost
        links = busy_links(self.step.rates, cost.ways, cost.batch)
        operations = self._layer[1].operations
        return done(operations, "forward", cost.ways, cost.batch, links)

    @cached_property
    def layer(self) -> PartSeconds:
        """Predicted seconds of the forward pass of one layer."""
        return self.clock.part(self.done, 0)

    @cached_property
    def products(self) -> dict[str, float]:
        """Weight → predicted seconds of its product in the forward pass."""
        plans = self._layer[1].works[0].plans["forward"]
        return {
            plan.b.name: self.clock.product(*each)
            for plan, each in zip(plans, self.done.products, strict=True)
        }

    def product(self, weight: str) -> tuple[float, float, float]:
        """FLOPs, bound and predicted seconds of one product on a chip.

        Args:
            weight: the weight's name, a key of `products`.
        """
        at = list(self.products).index(weight)
        amount, _, precision, _ = self.done.products[at]
        peak = chip_of(self.step.mesh).flops[precision]
        return amount, amount / peak, self.products[weight]

    def _moved(self, op: str, axis: str) -> Move:
        """The first collective `op` along an axis."""
        for move in self.step.at(self.stage).moves:
            if (move.collective.op, move.collective.axes) == (op, (axis,)):
                return move
        raise ValueError(f"{self.step.title}: no {op} over {axis}")

    @cached_property
    def gather(self) -> Priced:
        """All runs, in a step, of the AllGather before attention."""
        return price(self._moved("all_gather", "tensor").collective, self.step.mesh)

    @property
    def gather_bound(self) -> float:
        """Seconds of one such AllGather at the full rate of its links."""
        return self.gather.lower / self.gather.collective.times

    @property
    def gather_seconds(self) -> float:
        """Predicted seconds of one such AllGather."""
        return self.gather_bound / self.clock.at.network

    @property
    def exchanges(self) -> int:
        """Exchanges of tensor parallelism in the forward pass of a layer."""
        return sum(
            move.when == "forward" and move.collective.axes == ("tensor",)
            for move in self._layer[1].moves
        )

    @property
    def group(self) -> int:
        """GPUs of one tensor-parallel group."""
        return self.gather.collective.group

    @property
    def hops(self) -> int:
        """The number of hops of the AllGather around a ring."""
        return self.group - 1

    @property
    def hop_bytes(self) -> float:
        """Bytes that a GPU sends in one hop."""
        return self.gather.collective.nbytes / self.group

    @property
    def hop(self) -> float:
        """Lower bound: seconds of one hop at the full rate."""
        return self.gather_bound / self.hops

    @property
    def latency(self) -> float:
        """Expected seconds until the first byte arrives."""
        return self.gather.latency_seconds / self.gather.collective.times

    @cached_property
    def send(self) -> tuple[float, float]:
        """Bytes and seconds, at the full rate, of one send to the next stage."""
        one = self._moved("permute", "pipeline").collective
        return one.nbytes, price(one, self.step.mesh).lower / one.times

    @property
    def update(self) -> tuple[float, float]:
        """Predicted seconds in which the network reduces gradients, and in which it
        returns weights, once per step."""
        _, moved = self._kinds[self._kind[self.stage]]
        share = self.clock.at.network
        return moved.reduced / share, moved.returned / share

    @cached_property
    def measured(self) -> tuple[float, float]:
        """Seconds of a step at the published rate, for both ways to count attention."""
        job = self.step.job
        of_chip = self.step.tokens_per_chip
        return tuple(
            of_chip * flops(job.model, job.seq, kind).training / MEASURED
            for kind in ATTENTION
        )


def zoomed_step() -> ZoomedStep:
    """The step of Llama 3.1 405B that the book takes apart.

    >>> one = zoomed_step()
    >>> one.step.chips, one.group, one.exchanges
    (16384, 8, 4)
    """
    ways = combine(zero(1, "data"), pipeline("pipeline"), tensor("tensor"))
    return ZoomedStep(
        step(
            ways,
            LLAMA_3_405B,
            Mesh(network(MACHINE), AXES),
            SEQS,
            SEQ,
            attention="causal",
            remat="dots",
            microbatches=MICROBATCHES,
            schedule="interleaved",
            chunks=CHUNKS,
            formats={"gradients": "fp32"},
        )
    )
