"""How long a step is likely to take: every operation at the rate that chips reach.

A microbatch on one stage takes

    F = products + attention + passes over HBM + launches + exposed exchanges

forward, and likewise backward with what is computed again. With M microbatches, p
stages and v chunks a stage, a step takes

    step = M · (F + B)_busiest + bubble(mean F, mean B) + exposed update + optimizer

where a product of m·k by k·n takes launch + max(2mkn / (e_g · P), bytes / (e_h · W)) at
the sustained rate P and the bandwidth W, attention FLOPs / (e_a · P), and a pass over
memory bytes / (e_h · W).

What hides an exchange is a statement about its purpose (`operations.PURPOSES`). The
exchanges of tensor parallelism on GPUs, those of experts, and gathered keys are
exposed. On TPUs tensor parallelism is exposed by what exceeds the products of the same
pass. A hop round a ring is exposed by what exceeds the attention of the hop before it.
A gather of weights over g seconds next to F seconds of work is exposed by
max(0, g − F) + x · g. Gradients that are reduced once in a step are exposed by what
exceeds one backward pass, and the weights that ZeRO-1 gathers by what exceeds one
forward pass. Sends from stage to stage are hidden.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from ..base.units import show
from ..hardware.chips import Chip
from ..transformer.flops import one_of
from .amounts import MovedBytes, Names, Wire, evaluate
from .cost import StepCost
from .efficiencies import Efficiencies, band, efficiencies, sustained
from .job import Job
from .operations import OPTIMIZER_BYTES, PURPOSES, WIDE, Done, done
from .parts import PASSES, Part
from .pipeline_schedules.closed_forms import idle_of
from .rates import Rate

STATE_BYTES = 12  # of a parameter: a weight and two moments in fp32
PARTS = {  # what a predicted step is the sum of
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
OVERLAPS = ("tensor", "experts")  # what a source may say that it overlaps


@dataclass(frozen=True)
class Software:
    """What a framework does that no setting of the job says.

    Args:
        overlap: exchanges that it overlaps by its own account, of `OVERLAPS`.
        old_attention: whether its attention kernel was made for an older chip.
        host: seconds for which the host holds up a layer and microbatch, forward and
            backward, where tensor parallelism is on.
        tensor_hop: seconds of latency of a hop of tensor parallelism between nodes.
        bucket_hop: seconds of latency of a hop of data parallelism, for each bucket.
        bucket: bytes of a bucket of gradients.

    Raises:
        ValueError: an overlap that is none of `OVERLAPS`.
    """

    overlap: tuple[str, ...] = ()
    old_attention: bool = False
    host: float = 0.0
    tensor_hop: float = 0.0
    bucket_hop: float = 0.0
    bucket: float = 25e6

    def __post_init__(self) -> None:
        for name in self.overlap:
            one_of(OVERLAPS, overlap=name)


class PassSeconds(NamedTuple):
    """Seconds of one pass of a microbatch on a stage, by the keys of `PARTS`.

    Args:
        parts: by part; what is not there takes none.
        gathered: seconds of links with what is gathered and reduced of the weights.
    """

    parts: Mapping[str, float]
    gathered: float

    @property
    def total(self) -> float:
        return sum(self.parts.values())


@dataclass(frozen=True)
class Workload:
    """What a step does, in numbers, before anything is said of efficiencies.

    Args:
        stages: for every kind of stage how many there are, and for each of its parts
            how many it has and what these do by pass.
        busiest: which of the kinds has most to compute.
        rounds: microbatches of each path through the stages.
        idle: seconds that a pipeline waits, given the mean F and B of a stage.
        state: bytes of the optimizer's state, of a kind of stage.
        ring: hops round a ring of keys.
    """

    stages: tuple[tuple[int, tuple[tuple[int, Mapping[str, Done]], ...]], ...]
    busiest: int
    rounds: float
    idle: Callable[[float, float], float]
    state: tuple[float, ...]
    ring: int = 0


def workload(
    cost: StepCost, rate: Callable[[Wire], Rate | None], ring: Names = ()
) -> Workload:
    """The operations of a step, evaluated on its mesh.

    Args:
        cost: of the step.
        rate: seconds a byte of a collective on each dimension of the network.
        ring: mesh axes over which keys go round.

    Raises:
        ValueError: mesh axes share a ring, so that there is no price.
    """
    ways, batch = cost.ways, cost.batch

    def seconds(wires: Mapping[Wire, MovedBytes]) -> float:
        total = 0.0
        for wire, moved in wires.items():
            found = rate(wire)
            if found is None:
                raise ValueError(f"axes {' and '.join(wire[1])} share a ring")
            hops = ways(wire[1]) - 1
            nbytes = sum(
                amount / ways(axes) * batch[kind] * (hops if "n" in often else 1)
                for ((axes, kind), often), amount in moved.nbytes.items()
            )
            total += nbytes * max(found.values(), default=0.0)
        return total

    known: dict[int, Mapping[str, Done]] = {}

    def work(part: Part) -> Mapping[str, Done]:
        if id(part) not in known:
            known[id(part)] = {
                when: done(part.operations, when, ways, batch, seconds)
                for when in (*PASSES, "update")
            }
        return known[id(part)]

    kinds: dict[int, int] = {}
    for share in cost.shares:
        kinds[id(share)] = kinds.get(id(share), 0) + 1
    shares = {id(share): share for share in cost.shares}
    order = list(kinds)
    return Workload(
        stages=tuple(
            (kinds[key], tuple((n, work(part)) for n, part in shares[key].parts))
            for key in order
        ),
        busiest=order.index(id(cost.shares[cost.busiest])),
        rounds=cost.rounds,
        idle=idle_of(
            cost.pipelines.name, cost.count, cost.microbatches, cost.pipelines.chunks
        ),
        state=tuple(
            evaluate(shares[key].added_up["state"], ways, batch) for key in order
        ),
        ring=ways(ring) - 1,
    )


class Clock:
    """How long operations take on one chip.

    Args:
        chip: with its rates.
        precision: of the job; attention is in 16 bits in any case.
        software: of the run.
        at: the efficiencies.
    """

    def __init__(
        self, chip: Chip, precision: str, software: Software, at: Efficiencies
    ):
        self.at, self.software = at, software
        self.hides = chip.vendor == "Google"  # tensor exchanges behind products
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
        """Seconds of a matmul, without its launch."""
        at = self.at
        share = at.matmul
        if rows:
            share *= at.grouped / (1 + at.rows / rows)
        return max(flops / (share * self.rate(precision)), nbytes / self.bandwidth)

    def exposed(self, why: str, seconds: float, hidden_by: float) -> float:
        """What is left of an exchange beside the work that may hide it."""
        if why in self.software.overlap:
            return max(self.at.stated_overlap * seconds, seconds - hidden_by)
        return seconds

    def passed(
        self, some: Iterable[tuple[int, Done]], ring: int, update: bool = False
    ) -> PassSeconds:
        """Seconds of a pass: parts of a stage, and how many of each there are."""
        at = self.at
        products = attention = passes = launches = 0.0
        busy = dict.fromkeys(PURPOSES, 0.0)
        hops = 0
        for count, one in some:
            products += count * sum(self.product(*each) for each in one.products)
            launches += count * (len(one.products) + one.kernels)
            attention += count * one.attention
            passes += count * one.passes
            for why, seconds in one.busy.items():
                busy[why] += count * seconds / at.network
            hops += count * ring * ("ring" in one.busy)
        attention /= self.attention
        passes /= self.bandwidth
        launches *= at.launch
        tensor = self.exposed("tensor", busy["tensor"], products)
        if self.hides:
            tensor = max(0.0, busy["tensor"] - products)
        turning = busy["ring"] + hops * at.hop - attention * ring / (ring + 1)
        parts = {
            "math": products,
            "attention": attention,
            "memory": passes,
            "launches": launches,
            "tensor": tensor,
            "context": busy["context"] + max(0.0, turning),
            "experts": self.exposed("experts", busy["experts"], products + attention),
        }
        gathered = busy["weights"] + busy["gradients"]
        work = sum(parts.values())
        parts["weights"] = max(0.0, gathered - work) + at.exposed * gathered
        return PassSeconds(parts, gathered)

    def stage(
        self, parts: tuple[tuple[int, Mapping[str, Done]], ...], ring: int
    ) -> tuple[PassSeconds, PassSeconds, float]:
        """Forward and backward pass of a microbatch, and the exposed update."""
        forward = self.passed([(n, one["forward"]) for n, one in parts], ring)
        back = [(n, one[at]) for n, one in parts for at in ("recompute", "backward")]
        backward = self.passed(back, ring)
        busy = {"gradients": 0.0, "weights": 0.0}
        for n, one in parts:
            for why in busy:
                seconds = one["update"].busy.get(why, 0.0)
                busy[why] += n * seconds / self.at.network
        update = max(0.0, busy["gradients"] - backward.total)
        update += max(0.0, busy["weights"] - forward.total)
        return forward, backward, update


def seconds_by_part(work: Workload, clock: Clock) -> dict[str, float]:
    """Seconds of a step by the keys of `PARTS`.

    Args:
        work: of the step.
        clock: of its chips.
    """
    stages = [clock.stage(parts, work.ring) for _, parts in work.stages]
    counts = [count for count, _ in work.stages]
    forward, backward, update = max(stages, key=lambda one: one[0].total + one[1].total)
    found = dict.fromkeys(PARTS, 0.0)
    for one in (forward, backward):
        for part, seconds in one.parts.items():
            found[part] += work.rounds * seconds
    total = sum(counts)
    mean = [
        sum(n * stage[at].total for n, stage in zip(counts, stages, strict=True))
        / total
        for at in (0, 1)
    ]
    found["bubble"] = work.idle(*mean)
    found["update"] = update
    params = max(work.state) / STATE_BYTES
    found["optimizer"] = OPTIMIZER_BYTES * params / clock.bandwidth
    return found


@dataclass(frozen=True)
class Prediction:
    """How long a step is likely to take.

    Args:
        parts: seconds by the keys of `PARTS`.
        bound: seconds that no run can beat.
        band: measured over predicted seconds of 8 runs in 10.
        warnings: what makes the case unusual.
    """

    parts: Mapping[str, float]
    bound: float
    band: tuple[float, float]
    warnings: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", MappingProxyType(dict(self.parts)))

    @cached_property
    def seconds(self) -> float:
        """Seconds of the step: the sum of its parts."""
        return max(self.bound, sum(self.parts.values()))

    @property
    def low(self) -> float:
        """One run in ten is faster. No run is faster than the bound."""
        return max(self.bound, self.band[0] * self.seconds)

    @property
    def high(self) -> float:
        """One run in ten is slower."""
        return self.band[1] * self.seconds

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
        job: what is trained.
        chip: on which chips.
        bound: seconds that no run can beat.
        software: what the framework does; nothing in particular if not given.
        at: the efficiencies; those that were fitted if not given.
    """
    clock = Clock(chip, job.precision, software or Software(), at or efficiencies())
    parts = seconds_by_part(workload(cost, rate, ring), clock)
    return Prediction(parts, bound, band(bool(job.model.experts)))
