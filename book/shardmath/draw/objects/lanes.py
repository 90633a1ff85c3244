"""The two lanes of a training step: math on a chip, and traffic of its network.

A prediction is a sum, and here each of its terms gets a start and an end. All seconds
come from the derivation of the step and from the clock of its prediction. The layers
run one after another, forward and then backward:

* weights that are gathered (FSDP) arrive before their layer. The part that the
  prediction leaves exposed makes the math wait. The rest arrives during the previous
  layer. Gradients that every layer scatters follow their layer in the same way.
* activations that cross the network (tensor parallelism) follow attention and MLP.
* gradients that are reduced once in a step (data parallelism) are sent when the
  backward pass of their layer is done, one layer after another, while the layers that
  follow compute.

The first two kinds add up to the prediction exactly. The third is played. The
prediction lets the whole backward pass hide such gradients. But the first ones are sent
after one layer, and the last ones at the end. So the lanes expose as much as the
prediction or more, and the difference is at most one layer's backward pass or one
layer's reduction.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ...base.units import positive_int, short_repr
from ...sharding.machine import chip_of
from ...training import Step
from ...training.communication import HEADS
from ...training.efficiencies import efficiencies
from ...training.operations import Done, done, moved_weights
from ...training.parts import Part
from ...training.prediction import Clock, PartSeconds, Software, busy_links

MATH = ("attention", "MLP")
ON_CHIP = (*MATH, "memory", "optimizer")
OF_WEIGHTS = ("gather", "scatter", "gradients")


@dataclass(frozen=True)
class LaneSpan:
    """One kind of work of one or more layers, from `start` to `end`.

    Args:
        what: "attention", "MLP", "memory" or "optimizer" on the chip; "gather" (of
            weights), "scatter" or "gradients", or "activations" on the network.
        when: "forward", "backward" or "update".
        layers: the first layer, and the one after the last, counted from 0.
        start, end: seconds since the step began.
        exposed: whether the chip waits for it.
    """

    what: str
    when: str
    layers: tuple[int, int]
    start: float
    end: float
    exposed: bool = False

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def resource(self) -> str:
        """The resource, which is also a colour's name: "math", "HBM" or "network"."""
        if self.what in MATH:
            return "math"
        return "HBM" if self.what in ON_CHIP else "network"


@dataclass(frozen=True)
class LayerPass:
    """Seconds of one pass through one layer.

    Args:
        attention, mlp: seconds of their matmuls, including the scores of attention.
        memory: seconds of passes over memory, and of starting kernels.
        activations, waits: seconds in which the network sends activations, and how many
            of these are exposed.
        gather, scatter, late: seconds in which the network gathers weights, seconds in
            which it scatters each microbatch's gradients, and how many of both are
            exposed.
    """

    attention: float
    mlp: float
    memory: float
    activations: float
    waits: float
    gather: float
    scatter: float
    late: float

    @property
    def seconds(self) -> float:
        """All seconds of the pass, including exposed ones."""
        return self.attention + self.mlp + self.memory + self.waits + self.late


@dataclass(frozen=True)
class StepLanes:
    """The lanes of a step, as `lanes` returns them.

    Args:
        step: the step.
        spans: work of the chip, and traffic of the network.
        forward, backward: one pass through one layer.
        reduced: seconds to reduce one layer's gradients once per step, or 0.
        optimizer: seconds of the optimizer.
    """

    step: Step
    spans: tuple[LaneSpan, ...]
    forward: LayerPass
    backward: LayerPass
    reduced: float
    optimizer: float

    @property
    def layers(self) -> int:
        return self.step.model.layers

    @cached_property
    def passes_end(self) -> float:
        """When the last backward pass is done."""
        return self.layers * (self.forward.seconds + self.backward.seconds)

    @cached_property
    def tail(self) -> float:
        """Seconds from `passes_end` until the last gradients are reduced."""
        return max(0.0, self.seconds - self.optimizer - self.passes_end)

    @cached_property
    def seconds(self) -> float:
        """Seconds of the step in these lanes."""
        return max(span.end for span in self.spans)

    @cached_property
    def exposed(self) -> float:
        """Seconds in which the chip waits for the network."""
        return sum(span.seconds for span in self.spans if span.exposed)

    @property
    def busy(self) -> float:
        """Seconds in which the network is busy with activations and weights."""
        return self.reduced * self.layers + self.layers * sum(
            one.activations + one.gather + one.scatter
            for one in (self.forward, self.backward)
        )

    @property
    def tolerance(self) -> float:
        """By how many seconds the lanes may expose more than the prediction does."""
        return max(self.backward.seconds, self.reduced) if self.reduced else 0.0

    def starts(self, layer: int, when: str) -> float:
        """When the pass of a layer begins, with its wait, if any, as its first part."""
        each = self.forward.seconds, self.backward.seconds
        if when == "forward":
            return layer * each[0]
        return self.layers * each[0] + (self.layers - 1 - layer) * each[1]


def lanes(step: Step, blocks: int) -> StepLanes:
    """The lanes of the layers of `step`.

    Args:
        step: a step with one microbatch, one stage and ``vocabulary=False``, so it has
            only layers, which must be of one kind.
        blocks: how many spans of each kind the layers are merged into. Sums of seconds
            don't change.

    Raises:
        ValueError: `step` does not meet these conditions, or has collectives other than
            those of data parallelism, FSDP and tensor parallelism.

    >>> from shardmath.hardware import chips
    >>> from shardmath.hardware.mesh import Mesh
    >>> from shardmath.hardware.networks import Torus
    >>> from shardmath.training import fsdp, step
    >>> from shardmath.transformer import LLAMA_3_8B
    >>> mesh = Mesh(Torus(chips.TPU_V5P, (4, 4, 4)), {"X": 64})
    >>> settings = {"attention": "causal", "vocabulary": False}
    >>> one = step(fsdp("X"), LLAMA_3_8B, mesh, 64, 4096, **settings)
    >>> abs(lanes(one, 4).seconds / one.prediction.seconds - 1) < 1e-9
    True
    """
    (blocks,) = positive_int(blocks=blocks)
    part, layers = _layer(step), step.model.layers
    clock = Clock(chip_of(step.mesh), step.precision, Software(), efficiencies())
    network = busy_links(step.rates, step.cost.ways, step.cost.batch)
    network_share = clock.at.network

    def moved(purpose: str, *when: str) -> float:
        found = part.operations.exchanges
        some = [found[purpose, one] for one in when if (purpose, one) in found]
        return sum(map(network, some)) / network_share

    def one_pass(*when: str) -> LayerPass:
        work = [
            done(part.operations, one, step.cost.ways, step.cost.batch, network)
            for one in when
        ]
        taken = [clock.part(one, 0) for one in work]
        gather, scatter = moved("weights", *when), moved("gradients", *when)
        total = layers * sum(map(sum, taken))
        sent = layers * (gather + scatter) * network_share
        late = clock.gather(sent, total) / layers
        return _pass(_attention_share(step, part), work, taken,
                     network_share, gather, scatter, late)  # fmt: skip

    forward, backward = one_pass("forward"), one_pass("recompute", "backward")
    reduced = moved_weights(part.operations, network).reduced / network_share
    optimizer = clock.optimizer(step.cost.memory(0)["state"])
    blocks = min(blocks, layers)
    ends = [round(layers * n / blocks) for n in range(blocks + 1)]
    cuts = list(pairwise(ends))
    spans = list(_played(cuts, forward, backward, reduced))
    end = max(span.end for span in spans)
    spans.append(LaneSpan("optimizer", "update", (0, layers), end, end + optimizer))
    return StepLanes(step, tuple(spans), forward, backward, reduced, optimizer)


def _layer(step: object) -> Part:
    """The one kind of layer that a step has."""
    if not isinstance(step, Step):
        raise ValueError(f"step = {short_repr(step)}: must be a Step, as from step()")
    if step.vocabulary or step.microbatches > 1:
        raise ValueError(
            f"vocabulary = {step.vocabulary}, microbatches = {step.microbatches}: must "
            "be False and 1, for a step with only its layers"
        )
    parts = [part for _, part in step.cost.shares[0].parts]
    if len(step.cost.shares) > 1 or len(parts) > 1:
        raise ValueError(f"{step.title}: must have one stage, and layers of one kind")
    why = {purpose for purpose, _ in parts[0].operations.exchanges}
    if other := why - {"tensor", "weights", "gradients"}:
        raise ValueError(f"{step.title}: lanes do not show {', '.join(sorted(other))}")
    if ("weights", "update") in parts[0].operations.exchanges:
        raise ValueError(f"{step.title}: lanes do not show weights that ZeRO-1 gathers")
    return parts[0]


def _attention_share(step: Step, part: Part) -> float:
    """The share of a layer's products that belong to attention."""
    of_attention = {
        line.weight.name
        for _, matmuls in step.model.stack
        for line in matmuls
        if line.result.name in HEADS or line.reads.name == "A"
    }
    forward = part.operations.products["forward"]
    plans = part.works[0].plans["forward"]
    flops = [product.flops[1] for product in forward]
    own = sum(
        each
        for each, plan in zip(flops, plans, strict=True)
        if plan.b.name in of_attention
    )
    return own / sum(flops)


def _pass(
    share: float,
    work: list[Done],
    taken: list[PartSeconds],
    network_share: float,
    gather: float,
    scatter: float,
    late: float,
) -> LayerPass:
    products = sum(one.math for one in taken)
    return LayerPass(
        attention=share * products + sum(one.attention for one in taken),
        mlp=(1 - share) * products,
        memory=sum(one.memory + one.launches for one in taken),
        activations=sum(one.busy.get("tensor", 0.0) for one in work) / network_share,
        waits=sum(one.tensor for one in taken),
        gather=gather,
        scatter=scatter,
        late=late,
    )


def _played(
    cuts: list[tuple[int, int]],
    forward: LayerPass,
    backward: LayerPass,
    reduced: float,
) -> Iterator[LaneSpan]:
    """The spans of all layers, in blocks of several layers."""
    passes = [("forward", forward, cut) for cut in cuts]
    passes += [("backward", backward, cut) for cut in reversed(cuts)]
    now = scattered = 0.0
    ready: list[tuple[int, float]] = []  # layers whose gradients may leave, and when
    for when, one, cut in passes:
        begun, some = now, cut[1] - cut[0]
        for span in _block(when, one, cut, now, scattered):
            now = max(now, span.end)
            scattered = span.seconds if span.what == "scatter" else 0.0
            yield span
        if when == "backward":
            each = (now - begun) / some
            ready += [(cut[1] - 1 - n, begun + (n + 1) * each) for n in range(some)]
    if reduced:
        yield from _reductions(ready, reduced, now)


def _block(
    when: str, one: LayerPass, cut: tuple[int, int], start: float, scattered: float
) -> Iterator[LaneSpan]:
    """One pass through some layers, starting with their wait.

    Args:
        when, one, cut: the pass, its seconds per layer, and the layers.
        start: when it begins.
        scattered: seconds before `start` in which the chip waited for gradients.
    """
    some = cut[1] - cut[0]
    moved = one.gather + one.scatter
    late = some * one.late / moved if moved else 0.0  # for each second of the network

    def span(what: str, begin: float, seconds: float, exposed: bool = False):
        return LaneSpan(what, when, cut, begin, begin + seconds, exposed)

    now = start
    if one.gather:
        exposed = late * one.gather
        worked_until = start - scattered
        hidden = min(some * one.gather - exposed, worked_until)  # none before the step
        if hidden > 0:
            yield span("gather", worked_until - hidden, hidden)
        yield span("gather", start, exposed, True)
        now += exposed
    worked = one.attention + one.mlp + one.memory
    own = {"attention": one.attention, "MLP": one.mlp}
    for what in own if when == "forward" else reversed(own):
        seconds = {what: some * own[what], "memory": some * one.memory / 2}
        begun = now
        for name, each in seconds.items():
            yield span(name, now, each)
            now += each
        if one.activations:
            hidden = (one.activations - one.waits) * (now - begun) / worked
            if hidden > 1e-12 * one.activations:
                yield span("activations", now - hidden, hidden)
            if one.waits:
                yield span("activations", now, some * one.waits / 2, True)
                now += some * one.waits / 2
    if one.scatter:
        exposed = late * one.scatter
        next_gather = some * one.gather - late * one.gather  # its hidden part
        hidden = some * one.scatter - exposed
        if hidden > 0:
            yield span("scatter", now - next_gather - hidden, hidden)
        yield span("scatter", now, exposed, True)


def _reductions(
    ready: list[tuple[int, float]], seconds: float, passes_end: float
) -> Iterator[LaneSpan]:
    """Reductions of gradients, one layer after another, exposed after the passes."""
    free = 0.0
    for layer, since in ready:
        start = max(since, free)
        free = start + seconds
        cut = (layer, layer + 1)
        middle = min(max(start, passes_end), free)
        if middle > start:
            yield LaneSpan("gradients", "update", cut, start, middle)
        if free > middle:
            yield LaneSpan("gradients", "update", cut, middle, free, True)
