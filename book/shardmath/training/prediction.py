"""How long a step is likely to take: every operation at the rate that chips reach.

A microbatch on one stage takes

    F = products + attention + passes over HBM + launches + exposed exchanges

seconds forward. Its backward time B is a similar sum, which includes recomputation. A
step of M microbatches takes

    step = M · (F + B)_busiest + bubble(mean F, mean B) + exposed update + optimizer

A product of m·k by k·n takes launch + max(2mkn / (e_g · P), bytes / (e_h · W)) at the
sustained rate P and the bandwidth W. Attention takes FLOPs / (e_a · P), and a pass over
memory takes bytes / (e_h · W). A token that an expert gets makes several trips through
memory: it is sorted, padded, cast and added up. The shares e_g, e_a, e_h and x (below)
are `matmul`, `attention`, `memory` and `exposed` of `Efficiencies`.

How much of an exchange is exposed, that is, not hidden behind work, depends on its
purpose (`operations.PURPOSES`):

- Tensor parallelism on GPUs, exchanges with experts and gathered keys are exposed.
- A gather of weights that takes g seconds, next to F seconds of work, is exposed for
  max(0, g − F) + x · g seconds, but for no more than g. So is tensor parallelism on
  TPUs, next to the products of the same pass.
- A hop round a ring is exposed for the time by which it exceeds the attention of the
  previous hop.
- Reducing gradients once per step is exposed for the time by which it exceeds one
  backward pass; ZeRO-1's gather of weights, for the time by which it exceeds one
  forward pass.
- Sends from stage to stage are hidden.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from ..base.units import show
from ..hardware.chips import Chip
from ..transformer.flops import one_of
from .amounts import MovedBytes, Names, Wire, evaluate
from .cost import StepCost
from .efficiencies import Efficiencies, band, efficiencies, sustained, table
from .job import Job
from .operations import (
    HOP_KERNELS,
    OPTIMIZER_BYTES,
    WIDE,
    Done,
    MovedWeights,
    done,
    moved_weights,
)
from .parts import PASSES, Part
from .pipeline_schedules.closed_forms import idle_of
from .rates import Rate

STATE_BYTES = 12  # per parameter: a weight and two moments in fp32
PARTS = {  # the parts whose sum is a predicted step
    "math": "matmuls with weights",
    "attention": "scores, and the values that they weigh",
    "memory": "passes over HBM besides matmuls",
    "launches": "starting kernels",
    "tensor": "exposed exchanges of tensor parallelism",
    "context": "exposed exchanges of context parallelism",
    "experts": "exposed exchanges with experts",
    "weights": "exposed gathers of weights, and reductions of every microbatch",
    "update": "exposed exchanges of gradients and weights, once a step",
    "bubble": "waiting for other stages",
    "optimizer": "passes over the optimizer's state",
}
LEAST = 0.01  # the smallest share of a step with which a part is named
OVERLAPS = ("tensor", "experts")  # exchanges that a source may say it overlaps


@dataclass(frozen=True)
class Software:
    """What a framework does that the settings of the job do not say.

    Args:
        overlap: exchanges that it is said to overlap, each one of `OVERLAPS`.
        old_attention: whether its attention kernel was made for an older chip.

    Raises:
        ValueError: an overlap that is not one of `OVERLAPS`.
    """

    overlap: tuple[str, ...] = ()
    old_attention: bool = False

    def __post_init__(self) -> None:
        for name in self.overlap:
            one_of(OVERLAPS, overlap=name)


class PartSeconds(NamedTuple):
    """Seconds of one pass of a microbatch through one part.

    The fields are keys of `PARTS`. Traffic of weights and gradients is not included.
    """

    math: float = 0.0
    attention: float = 0.0
    memory: float = 0.0
    launches: float = 0.0
    tensor: float = 0.0
    context: float = 0.0
    experts: float = 0.0

    @property
    def exposed(self) -> float:
        """Seconds of the exchanges that are exposed."""
        return self.tensor + self.context + self.experts


class PartWork(NamedTuple):
    """The operations of one part of a stage on one mesh, for one microbatch.

    Args:
        forward, recompute, backward: the operations of each pass.
        moved: seconds for which weights and gradients keep the links busy.
    """

    forward: Done
    recompute: Done
    backward: Done
    moved: MovedWeights


@dataclass(frozen=True)
class Workload:
    """The operations of a step on one mesh, which do not depend on efficiencies.

    Args:
        stages: for every kind of stage, how many such stages there are, and (count,
            part) for each part that one has.
        rounds: the number of microbatches that take each path through the stages.
        pipeline: name, stages, microbatches and chunks of the schedule.
        state: bytes of the optimizer's state for every kind of stage.
        hops: hops of keys round a ring.
    """

    stages: tuple[tuple[int, tuple[tuple[int, PartWork], ...]], ...]
    rounds: float
    pipeline: tuple[str, int, int, int | None]
    state: tuple[float, ...]
    hops: int = 0


def busy_links(
    rate: Callable[[Wire], Rate | None],
    ways: Callable[[Names], int],
    batch: Mapping[str, float],
) -> Callable[[Mapping[Wire, MovedBytes]], float]:
    """A function that gives how long collectives, one at a time, keep links busy.

    Args:
        rate: seconds per byte of a collective on each dimension of the network.
        ways, batch: as in `amounts.evaluate`.

    Raises:
        ValueError: the returned function raises this if mesh axes share a ring, so
            there is no price.
    """

    def seconds(wires: Mapping[Wire, MovedBytes]) -> float:
        total = 0.0
        for wire, moved in wires.items():
            found = rate(wire)
            if found is None:
                axes = " and ".join(wire[1])
                raise ValueError(f"mesh axes {axes} share a ring, which has no price")
            hops = ways(wire[1]) - 1
            nbytes = sum(
                amount / ways(axes) * batch[kind] * (hops if "n" in often else 1)
                for ((axes, kind), often), amount in moved.nbytes.items()
            )
            total += nbytes * max(found.values(), default=0.0)
        return total

    return seconds


def workload(
    cost: StepCost, rate: Callable[[Wire], Rate | None], ring: Names = ()
) -> Workload:
    """The operations of a step, evaluated on its mesh.

    Args:
        cost: the cost of the step.
        rate: seconds per byte of a collective on each dimension of the network.
        ring: mesh axes over which keys go round.

    Raises:
        ValueError: mesh axes share a ring, so there is no price.
    """
    seconds = busy_links(rate, cost.ways, cost.batch)
    known: dict[int, PartWork] = {}

    def work(part: Part) -> PartWork:
        if id(part) not in known:
            passes = (
                done(part.operations, when, cost.ways, cost.batch, seconds)
                for when in PASSES
            )
            moved = moved_weights(part.operations, seconds)
            known[id(part)] = PartWork(*passes, moved)
        return known[id(part)]

    kinds = Counter(map(id, cost.shares))
    shares = {id(share): share for share in cost.shares}
    name, chunks = cost.pipelines.name, cost.pipelines.chunks
    return Workload(
        stages=tuple(
            (kinds[key], tuple((n, work(part)) for n, part in share.parts))
            for key, share in shares.items()
        ),
        rounds=cost.rounds,
        pipeline=(name, cost.count, cost.microbatches, chunks),
        state=tuple(
            evaluate(share.added_up["state"], cost.ways, cost.batch)
            for share in shares.values()
        ),
        hops=cost.ways(ring) - 1,
    )


class Clock:
    """How long operations take on one chip.

    Args:
        chip: the chip.
        precision: the format of the job's matmuls. Attention uses bf16 if matmuls use
            fewer bits.
        software: the software of the run.
        at: the efficiencies.
    """

    def __init__(
        self, chip: Chip, precision: str, software: Software, at: Efficiencies
    ):
        self.at, self.software = at, software
        # XLA sends activations of tensor parallelism in pieces, next to products.
        self.in_pieces = chip.vendor == "Google"
        self.bandwidth = at.memory * chip.hbm_bandwidth
        self._chip, self._rates = chip, {}
        wide = precision if precision in ("fp16", "fp32") else WIDE
        kernel = at.old_attention if software.old_attention else 1.0
        self.attention = at.attention * kernel * self.rate(wide)

    def rate(self, precision: str) -> float:
        """FLOPs/s that a large matmul sustains on this chip."""
        if precision not in self._rates:
            self._rates[precision] = sustained(self._chip, precision)
        return self._rates[precision]

    def product(
        self, flops: float, nbytes: float, precision: str, rows: float
    ) -> float:
        """Seconds of a matmul, not including its launch."""
        share = self.at.matmul
        if rows:
            share /= 1 + self.at.rows / rows
        return max(flops / (share * self.rate(precision)), nbytes / self.bandwidth)

    def exposed(self, why: str, seconds: float, hidden_by: float) -> float:
        """Seconds of an exchange that the work next to it does not hide."""
        if why in self.software.overlap:
            return max(self.at.stated_overlap * seconds, seconds - hidden_by)
        return seconds

    def part(self, one: Done, hops: int) -> PartSeconds:
        """Seconds of one pass through a part.

        Args:
            one: the operations of the pass.
            hops: hops of keys round a ring.
        """
        products = sum(self.product(*each) for each in one.products)
        attention = one.attention / self.attention
        busy = {why: seconds / self.at.network for why, seconds in one.busy.items()}
        exchanged = busy.get("tensor", 0.0)
        tensor = self.exposed("tensor", exchanged, products)
        if self.in_pieces:
            tensor = min(tensor, self.beside(exchanged, products))
        context = busy.get("context", 0.0)
        if "ring" in busy:
            hidden = attention * hops / (hops + 1)
            context += max(0.0, busy["ring"] + hops * self.at.hop - hidden)
        experts = self.exposed(
            "experts", busy.get("experts", 0.0), products + attention
        )
        turning = hops if one.turned else 0
        kernels = len(one.products) + one.kernels + turning * HOP_KERNELS
        launches = self.at.launch * kernels
        nbytes = one.passes + turning * one.turned + self.at.trips * one.dealt
        passes = nbytes / self.bandwidth
        return PartSeconds(
            products, attention, passes, launches, tensor, context, experts
        )

    def turning(self, one: Done, hops: int) -> float:
        """Seconds by which a ring of keys lengthens a pass through a part: kernels, and
        memory passes over the values to which each hop adds."""
        turns = hops if one.turned else 0
        return turns * (HOP_KERNELS * self.at.launch + one.turned / self.bandwidth)

    def beside(self, seconds: float, work: float) -> float:
        """Exposed seconds of an exchange next to `work` seconds of work that can hide
        a part of it."""
        return min(seconds, max(0.0, seconds - work) + self.at.exposed * seconds)

    def gather(self, gathered: float, work: float) -> float:
        """Exposed seconds of a gather that takes `gathered` seconds at the full rate of
        the links, next to `work` seconds of other work."""
        return self.beside(gathered / self.at.network, work)

    def update(self, moved: MovedWeights, forward: float, backward: float) -> float:
        """Exposed seconds of exchanging gradients and weights once per step."""
        network = self.at.network
        reduced = max(0.0, moved.reduced / network - backward)
        return reduced + max(0.0, moved.returned / network - forward)

    def optimizer(self, state: float) -> float:
        """Seconds that the optimizer takes if its state has `state` bytes."""
        return OPTIMIZER_BYTES / STATE_BYTES * state / self.bandwidth


class StageSeconds(NamedTuple):
    """Seconds that a stage takes for one microbatch, and for its update.

    Args:
        forward, backward: seconds of the pass by the keys of `PARTS`.
        update: exposed seconds of the update, once per step.
    """

    forward: Mapping[str, float]
    backward: Mapping[str, float]
    update: float

    @property
    def passes(self) -> tuple[float, float]:
        """F and B, the seconds of the two passes."""
        return sum(self.forward.values()), sum(self.backward.values())


def stage_seconds(
    parts: tuple[tuple[int, PartWork], ...], hops: int, clock: Clock
) -> StageSeconds:
    """How long a stage takes for one microbatch and for its update.

    Args:
        parts: (count, part) for each part that the stage has.
        hops: hops of keys round a ring.
        clock: the clock of a chip of the stage.
    """
    forward, backward = (dict.fromkeys(PartSeconds._fields, 0.0) for _ in range(2))
    moved = dict.fromkeys(MovedWeights._fields, 0.0)
    for count, one in parts:
        for found, done_ in (
            (forward, one.forward),
            (backward, one.recompute),
            (backward, one.backward),
        ):
            if not any(done_):  # nothing is computed again
                continue
            each = clock.part(done_, hops)
            for name, seconds in zip(each._fields, each, strict=True):
                found[name] += count * seconds
        for name, seconds in zip(moved, one.moved, strict=True):
            moved[name] += count * seconds
    for found, gathered in ((forward, "forward"), (backward, "backward")):
        found["weights"] = clock.gather(moved[gathered], sum(found.values()))
    F, B = sum(forward.values()), sum(backward.values())
    return StageSeconds(forward, backward, clock.update(MovedWeights(**moved), F, B))


def seconds_by_part(work: Workload, clock: Clock) -> dict[str, float]:
    """Seconds of a step by the keys of `PARTS`.

    Args:
        work: the work of the step.
        clock: the clock of the chips.
    """
    stages = [stage_seconds(parts, work.hops, clock) for _, parts in work.stages]
    counts = [count for count, _ in work.stages]
    busiest = max(stages, key=lambda one: sum(one.passes))
    found = dict.fromkeys(PARTS, 0.0)
    for one in (busiest.forward, busiest.backward):
        for part, seconds in one.items():
            found[part] += work.rounds * seconds
    F, B = (
        sum(n * stage.passes[at] for n, stage in zip(counts, stages, strict=True))
        / sum(counts)
        for at in (0, 1)
    )
    found["bubble"] = idle_of(*work.pipeline)(F, B)
    found["update"] = busiest.update
    found["optimizer"] = clock.optimizer(max(work.state))
    return found


@dataclass(frozen=True)
class Prediction:
    """How long a step is likely to take.

    Args:
        parts: seconds by the keys of `PARTS`.
        bound: seconds that no run can beat.
        band: the range of measured ÷ predicted seconds into which 8 of 10 runs fall.
        warnings: how the step differs from the runs to which predictions were fitted.
    """

    parts: Mapping[str, float]
    bound: float
    band: tuple[float, float]
    warnings: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", MappingProxyType(dict(self.parts)))

    @cached_property
    def seconds(self) -> float:
        """Seconds of the step: the sum of its parts, or the bound if that is longer."""
        return max(self.bound, sum(self.parts.values()))

    @property
    def low(self) -> float:
        """Seconds that one run in ten beats; never below the bound."""
        return max(self.bound, self.band[0] * self.seconds)

    @property
    def high(self) -> float:
        """Seconds that one run in ten exceeds."""
        return self.band[1] * self.seconds

    @property
    def said(self) -> str:
        """The parts in words, longest first; parts under 1 % are left out."""
        total = sum(self.parts.values())
        some = sorted(self.parts.items(), key=lambda part: -part[1])
        words = [f"{name} {show(s, 's')}" for name, s in some if s >= LEAST * total]
        return ", ".join(words)

    def __str__(self) -> str:
        """Bound, prediction and band in one sentence."""
        return (
            f"bound {show(self.bound, 's')}; likely {show(self.seconds, 's')} "
            f"(8 of 10 runs: {show(self.low, 's')} to {show(self.high, 's')})"
        )


def prediction(
    cost: StepCost,
    rate: Callable[[Wire], Rate | None],
    job: Job,
    chip: Chip,
    bound: float,
    *,
    ring: Names = (),
    software: Software | None = None,
    at: Efficiencies | None = None,
) -> Prediction:
    """The prediction of a step.

    Args:
        cost, rate, ring: as for `workload`.
        job: the model, its batch and its numerics.
        chip: the chip of the mesh.
        bound: seconds that no run can beat.
        software: what the framework does; by default, `Software()`.
        at: the efficiencies; the fitted ones if not given.

    Raises:
        ValueError: mesh axes share a ring, so there is no price.
    """
    clock = Clock(chip, job.precision, software or Software(), at or efficiencies())
    parts = seconds_by_part(workload(cost, rate, ring), clock)
    range_ = band(bool(job.model.experts))
    return Prediction(parts, bound, range_, unusual(job, chip, cost.count))


def unusual(job: Job, chip: Chip, stages: int = 1) -> tuple[str, ...]:
    """Warnings about how a step differs from the runs used to fit the efficiencies.

    Args:
        job: the model, its batch and its numerics.
        chip: the chip of the mesh.
        stages: stages of the pipeline.
    """
    found = []
    fitted = table()["fit"]
    if chip.id not in fitted["chips"]:
        found.append(f"no run on {chip.name} was in the fit")
    if chip.vendor == "Google" and stages > 1:
        found.append("no run with a pipeline on TPUs was in the fit")
    if job.seq > (longest := fitted["longest"]):
        found.append(f"sequences are longer than {longest:,}, the longest in the fit")
    return tuple(f"warning: {what}" for what in found)
