"""When each layer of a step gathers, uses and frees its weights, with prefetching."""

from collections import deque
from dataclasses import dataclass
from itertools import accumulate

from ..base.units import non_negative_int, positive_int, short_repr
from ..hardware.networks.wiring import not_negative
from ..sharding.machine import chip_of
from ..sharding.prices import Prices
from .step import Step


@dataclass(frozen=True)
class Layer:
    """Seconds for which one layer uses the network and the math units.

    Args:
        gather, gather_again: to gather its weights for the forward pass and for the
            backward pass.
        forward, backward: math; `backward` includes recomputation.
        scatter: to add up its gradients, by a ReduceScatter if each chip keeps a part
            of them, or by an AllReduce if each keeps all.

    Raises:
        ValueError: a time is below 0.
    """

    gather: float
    gather_again: float
    forward: float
    backward: float
    scatter: float

    def __post_init__(self) -> None:
        for name, seconds in vars(self).items():
            not_negative(name, seconds)


@dataclass(frozen=True)
class PrefetchSpan:
    """What one layer does from `start` to `end`, in seconds.

    `what` is "gather", "forward", "backward" or "scatter".
    """

    layer: int
    what: str
    start: float
    end: float

    @property
    def resource(self) -> str:
        return "math" if self.what in ("forward", "backward") else "network"


@dataclass(frozen=True)
class PrefetchSchedule:
    """The spans of all layers, forward and backward, as made by `prefetched`."""

    spans: tuple[PrefetchSpan, ...]
    ahead: int

    @property
    def seconds(self) -> float:
        return max(span.end for span in self.spans)

    @property
    def held(self) -> tuple[tuple[int, float, float], ...]:
        """For each gathered layer: its number, start of the gather, end of use."""
        gathers = [span for span in self.spans if span.what == "gather"]
        uses = [span for span in self.spans if span.resource == "math"]
        return tuple(
            (gather.layer, gather.start, use.end)
            for gather, use in zip(gathers, uses, strict=True)
        )

    @property
    def most_held(self) -> int:
        """The maximum number of gathered layers that a chip holds at once.

        A layer that is freed makes room for a layer that starts gathering at that
        moment.
        """
        events = [(start, 1) for _, start, _ in self.held]
        events += [(end, -1) for _, _, end in self.held]
        return max(accumulate(change for _, change in sorted(events)))


def prefetched(layer: Layer, layers: int, ahead: int = 1) -> PrefetchSchedule:
    """A schedule of equal layers, each gathered, used and freed forward and backward.

    The total time is at least max(math, network), each added up over all layers.

    Args:
        layer: seconds of one layer.
        layers: the number of layers, L.
        ahead: how many uses early a layer may be gathered. With 1, its gather may start
            together with the use before its own, with 2 together with the one before
            that. With 0, it starts when the previous use has ended.

    Assumes:
        Collectives run one at a time, in the order in which they may start. If a
        scatter and a gather may start at the same moment, the scatter goes first. Uses
        run one at a time, in order.

    Raises:
        ValueError: `layer` is not a `Layer`, `layers` is not whole and above zero, or
            `ahead` is not whole and at least zero.

    >>> even = Layer(1, 1, 1, 1, 0)
    >>> prefetched(even, 4, ahead=0).seconds, prefetched(even, 4, ahead=1).seconds
    (16.0, 9.0)
    """
    if not isinstance(layer, Layer):
        raise ValueError(
            f"layer = {short_repr(layer)}: must be a Layer, such as layer_of(step)"
        )
    (layers,), (ahead,) = positive_int(layers=layers), non_negative_int(ahead=ahead)
    forward = [("forward", n, layer.gather, layer.forward) for n in range(layers)]
    backward = [
        ("backward", n, layer.gather_again, layer.backward)
        for n in reversed(range(layers))
    ]
    network: list[PrefetchSpan] = []
    free = 0.0  # when the last collective so far ends
    uses: list[PrefetchSpan] = []
    owed: deque[PrefetchSpan] = deque()  # uses whose gradients are not yet scattered

    def move(n: int, what: str, ready: float, seconds: float) -> PrefetchSpan:
        """Start the next collective as soon as it is ready and the network is free.

        One that takes no time, such as a gather of whole weights, never waits.
        """
        nonlocal free
        start = max(ready, free) if seconds else ready
        network.append(PrefetchSpan(n, what, start, start + seconds))
        free = max(free, network[-1].end)
        return network[-1]

    def scatter(until: float) -> None:
        while owed and owed[0].end <= until:
            use = owed.popleft()
            move(use.layer, "scatter", use.end, layer.scatter)

    for k, (what, n, gather, seconds) in enumerate(forward + backward):
        ready = 0.0
        if k:
            ready = uses[max(k - ahead, 0)].start if ahead else uses[-1].end
        scatter(until=ready)
        there = move(n, "gather", ready, gather).end
        start = max(there, uses[-1].end if uses else 0.0)
        uses.append(PrefetchSpan(n, what, start, start + seconds))
        if what == "backward":
            owed.append(uses[-1])
    scatter(until=uses[-1].end)
    return PrefetchSchedule((*network, *uses), ahead)


def layer_of(step: Step) -> Layer:
    """Seconds of one layer of `step`, if math runs at peak and all links are used.

    Args:
        step: a step of one microbatch with ``vocabulary=False``, so it has only layers.

    Raises:
        ValueError: any other step, a step that also moves activations (as in tensor
            parallelism), or a mesh without chips.

    >>> from shardmath.hardware import chips
    >>> from shardmath.hardware.mesh import Mesh
    >>> from shardmath.hardware.networks import Torus
    >>> from shardmath.training import fsdp, step
    >>> from shardmath.transformer import LLAMA_3_8B
    >>> mesh = Mesh(Torus(chips.TPU_V5P, (4, 4, 4)), {"X": 64})
    >>> settings = {"attention": "causal", "vocabulary": False}
    >>> found = layer_of(step(fsdp("X"), LLAMA_3_8B, mesh, 64, 4096, **settings))
    >>> found.gather == found.gather_again == found.scatter < found.forward
    True
    """
    if not isinstance(step, Step):
        raise ValueError(
            f"step = {short_repr(step)}: must be a Step, as step(…) returns"
        )
    if step.vocabulary or step.microbatches > 1:
        raise ValueError(
            f"vocabulary = {step.vocabulary}, microbatches = {step.microbatches}: must "
            "be False and 1, because only layers are timed here"
        )
    if any(move.scales for move in step.moves):
        raise ValueError(
            f"strategy = {step.strategy.name}: must move only weights and gradients, "
            "but moves activations too"
        )
    chip, prices = chip_of(step.mesh), Prices(step.mesh)
    layers = step.model.layers

    def network(*when: str, gathers: bool) -> float:
        found = [
            move.collective
            for move in step.moves
            if move.when in when and (move.collective.op == "all_gather") == gathers
        ]
        return prices.lower(found) / layers

    def math(*when: str) -> float:
        flops = sum(step.flops[one] for one in when)
        return flops / layers / chip.flops[step.precision]

    return Layer(
        network("forward", gathers=True),
        network("recompute", "backward", gathers=True),
        math("forward"),
        math("recompute", "backward"),
        network("recompute", "backward", gathers=False),
    )
