"""Gather, use, forget: the layers of a step in time, weights fetched ahead or not."""

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
    """Seconds that one layer takes of the network and of math, each alone.

    Args:
        gather, gather_again: to bring its weights together, for each of the passes.
        forward, backward: math; what is computed again is part of the second.
        scatter: to add its gradients up, by a ReduceScatter where each chip keeps its
            part, by an AllReduce where it keeps all.

    Raises:
        ValueError: seconds below 0.
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
    """The spans of all layers, forward and back; `prefetched` makes one."""

    spans: tuple[PrefetchSpan, ...]
    ahead: int

    @property
    def seconds(self) -> float:
        return max(span.end for span in self.spans)

    @property
    def held(self) -> tuple[tuple[int, float, float], ...]:
        """How long each gathered layer is held: layer, begin of gather, end of use."""
        gathers = [span for span in self.spans if span.what == "gather"]
        uses = [span for span in self.spans if span.resource == "math"]
        return tuple(
            (gather.layer, gather.start, use.end)
            for gather, use in zip(gathers, uses, strict=True)
        )

    @property
    def most_held(self) -> int:
        """Gathered layers that a chip holds at once, at most.

        One that is forgotten makes room for one whose gather starts then.
        """
        events = [(start, 1) for _, start, _ in self.held]
        events += [(end, -1) for _, _, end in self.held]
        return max(accumulate(change for _, change in sorted(events)))


def prefetched(layer: Layer, layers: int, ahead: int = 1) -> PrefetchSchedule:
    """`layers` equal layers forward and back, each gathered, used and forgotten.

    T ≥ max(math, network) of all layers, and with ahead = 0 their sum.

    Args:
        layer: seconds of one layer.
        layers: how many, L.
        ahead: the gather for a use may start when the use `ahead` places before it
            starts; 0 waits until the use before it has ended.

    Assumes:
        One collective at a time, in the order in which they may start; of two that may
        start at once a scatter goes before a gather. One use at a time, in order.

    Raises:
        ValueError: what is no Layer, layers below 1, ahead below 0.

    >>> even = Layer(1, 1, 1, 1, 0)
    >>> prefetched(even, 4, ahead=0).seconds, prefetched(even, 4, ahead=1).seconds
    (16.0, 9.0)
    """
    if not isinstance(layer, Layer):
        raise ValueError(
            f"layer = {short_repr(layer)}: must be a Layer, as layer_of(step)"
        )
    (layers,), (ahead,) = positive_int(layers=layers), non_negative_int(ahead=ahead)
    forward = [("forward", n, layer.gather, layer.forward) for n in range(layers)]
    backward = [
        ("backward", n, layer.gather_again, layer.backward)
        for n in reversed(range(layers))
    ]
    network: list[PrefetchSpan] = []
    free = 0.0  # when the last collective so far has ended
    uses: list[PrefetchSpan] = []
    owed: deque[PrefetchSpan] = (
        deque()
    )  # uses whose gradients are still to be scattered

    def move(n: int, what: str, ready: float, seconds: float) -> PrefetchSpan:
        """The next collective: when it may, and when the network is free.

        What takes no time, as the gather of weights that are whole, waits for nobody.
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
    """What one layer of `step` takes, at best: math at the peak, all links at work.

    Args:
        step: of one microbatch, with ``vocabulary=False``: its layers alone.

    Raises:
        ValueError: another step, activations that move too (tensor parallelism), or a
            mesh without chips.

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
            f"step = {short_repr(step)}: must be a Step, as step(…) makes one"
        )
    if step.vocabulary or step.microbatches > 1:
        raise ValueError(
            f"vocabulary = {step.vocabulary}, microbatches = {step.microbatches}: must "
            "be False and 1, a step of its layers alone"
        )
    if any(move.scales for move in step.moves):
        raise ValueError(f"{step.strategy.name}: activations move, not weights alone")
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
