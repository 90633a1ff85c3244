"""A step derived from a model, a strategy and a mesh, as parts and sums of parts.

Which arrays move, and over which axes, does not depend on how large the axes are, as
long as each is larger than 1. So one derivation serves both the printed step, which
evaluates it for one mesh, and the planner, which evaluates it for many.

There is one exception. If all chips of an axis Y keep a whole gradient, each may add up
its own 1/|Y| of it over X, and these parts are then gathered over Y. This saves bytes
only if |X| > 2. It happens for the projections into MLA's latent, which tensor
parallelism does not split. If you evaluate a mesh for DeepSeek-V3 from a derivation for
other sizes, the network time may come out up to 3.04 % too long.
`tests/planner/test_planner.py` has the worst of 119 random meshes; the others were
within 0.4 %.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, gcd

from .amounts import Amounts, MovedBytes, Names, Sizes, Ways, Wire, total
from .communication import Lines
from .experts import dealt_over, slots
from .job import Job
from .parts import EMBEDDING, PASSES, Part, end, exchange, layer, send
from .stages import StageContents
from .strategy import Strategy

# Memory that adds up over the parts of a stage; of the other kinds the largest counts.
ADDED_UP = ("state", "weights", "gradients", "saved")
ONE_END = (True, False), (False, True)  # embedding or head, not both


@dataclass(frozen=True, eq=False)
class Share:
    """The sum of all parts of one pipeline stage.

    Args:
        flops, weight_flops, read, traffic: as in a `Part`, for one microbatch of each
            path through the stages.
        added_up: bytes of the kinds of memory that add up over layers.
        largest: for each other kind, the candidates, of which only the largest counts.
        once: bytes of "saved" that all layers share.
        parts: (count, part) for each part that the stage has.
    """

    flops: Mapping[str, Amounts]
    weight_flops: Amounts
    added_up: Mapping[str, Amounts]
    largest: Mapping[str, tuple[Amounts, ...]]
    once: Amounts
    read: Amounts
    traffic: Mapping[Wire, MovedBytes]
    parts: tuple[tuple[int, Part], ...]

    @cached_property
    def input_flops(self) -> Amounts:
        """FLOPs of the gradients of inputs, and of all that is computed again."""
        back = (1, self.flops["recompute"]), (1, self.flops["backward"])
        return total((*back, (-1, self.weight_flops)))

    def sends_within(self, other: "Share") -> bool:
        """Whether another stage moves all that this one moves, for any sizes."""
        return self is other or all(
            wire in other.traffic
            and all(
                nbytes <= other.traffic[wire].nbytes.get(key, 0)
                for key, nbytes in some.nbytes.items()
            )
            for wire, some in self.traffic.items()
        )


class Derivation:
    """A job under one strategy, derived on a mesh of some size.

    Args:
        job: the model, its batch and its numerics.
        strategy: how its arrays are sharded.
        sizes: sizes of the mesh axes.
        seqs: sequences that all chips together compute in one pass.

    Raises:
        ValueError: the mesh does not divide a size of the model or the batch.
    """

    def __init__(self, job: Job, strategy: Strategy, sizes: Sizes, seqs: int):
        self.job, self.strategy, self.sizes = job, strategy, dict(sizes)
        model, dims = job.model, job.model.sizes(seqs, job.seq)
        if model.experts:
            ways = Ways(self.sizes)(self.dealt_over)
            dims["slots"] = slots(model, seqs * job.seq, ways, job.capacity)
        self.slots = dims.get("slots")
        self.lines = Lines(strategy, self.sizes, dims, job.precision, job.formats)
        self._layers: dict[tuple, Part] = {}
        self._others: dict[tuple, Part] = {}
        self._shares: dict[StageContents, Share] = {}

    @property
    def dealt_over(self) -> Names:
        """The axes that shard the tokens that go to the experts."""
        return dealt_over(self.strategy)

    @property
    def batch_axes(self) -> Names:
        """The axes that shard sequences."""
        return self.strategy.stream.get("B", ())

    def parts(self, stage: StageContents) -> Iterator[tuple[int, Part]]:
        """The parts of a stage, and how many of each there are."""
        held = [
            (layers, self.layer(matmuls, remat))
            for count, matmuls in stage.stack
            for layers, remat in self._split(count)
        ]
        yield from held
        yield from self.beside_layers(stage)
        if stage.mirrored:  # another stage holds the same layers
            for count, part in held:
                yield count, self._other(exchange, part.matrices, True)

    def beside_layers(self, stage: StageContents) -> Iterator[tuple[int, Part]]:
        """The parts of a stage that are not layers: embedding and head, sends, and
        exchanges of their gradients with the other stage that holds them."""
        model, ends = self.job.model, None
        if any(stage.ends) and self.job.vocabulary:
            ends = self._end(stage.ends)
            yield 1, ends
        for (when, closed, back), times in stage.sends:
            yield times, self._other(send, when, closed, back)
        if stage.mirrored:
            if ends:
                yield 1, self._other(exchange, ends.matrices, True)
        elif model.tied and self.job.vocabulary and stage.ends in ONE_END:
            yield 1, self._other(exchange, (EMBEDDING.weight,), False)

    def share(self, stage: StageContents) -> Share:
        """The sum of the parts of a stage."""
        if stage not in self._shares:
            self._shares[stage] = _sum(list(self.parts(stage)))
        return self._shares[stage]

    def shares(self, stages: Iterable[StageContents]) -> list[Share]:
        """For each of several stages, the sum of its parts."""
        return list(map(self.share, stages))

    @cached_property
    def limits(self) -> dict[Names, list[tuple[str, int]]]:
        """The dimensions and sizes that each group of axes must divide. Slots are left
        out, because all chips have equally many by definition."""
        every = [self.layer(matmuls) for _, matmuls in self.job.model.stack]
        every += [self._end((True, True))] * self.job.vocabulary
        found: dict[Names, list[tuple[str, int]]] = defaultdict(list)
        for dim, size, axes in sorted(frozenset().union(*(p.limits for p in every))):
            if dim != "slots":
                found[axes].append((dim, size))
        return dict(found)

    @cached_property
    def strictest(self) -> dict[Names, int]:
        """For each group of axes, the greatest common divisor of all its `limits`."""
        return {axes: gcd(*(n for _, n in some)) for axes, some in self.limits.items()}

    def _split(self, count: int) -> list[tuple[int, str]]:
        """How many layers of a stage use the job's `remat`, and how many use "none"."""
        again = ceil(round(count * self.job.remat_share, 9))
        some = (again, self.job.remat), (count - again, "none")
        return [(layers, remat) for layers, remat in some if layers]

    def layer(self, matmuls: tuple, remat: str | None = None) -> Part:
        """A layer with these matmuls, under the given `remat` or that of the job."""
        key = matmuls, remat or self.job.remat
        if key not in self._layers:
            job = replace(self.job, remat=key[1])
            self._layers[key] = layer(self.lines, job, matmuls)
        return self._layers[key]

    def _end(self, ends: tuple[bool, bool]) -> Part:
        """The part of a stage that has the embedding, the head, or both."""
        first, last = ends
        lines = (self.job.model.head_line,) * last + (EMBEDDING,) * first
        if lines not in self._layers:
            self._layers[lines] = end(self.lines, self.job, lines)
        return self._layers[lines]

    def _other(self, make, *given) -> Part:
        """A send or an exchange, which is derived only once."""
        if (make, given) not in self._others:
            self._others[make, given] = make(self.lines, *given)
        return self._others[make, given]


def _sum(parts: list[tuple[int, Part]]) -> Share:
    computing = [(count, part) for count, part in parts if part.flops]
    largest: dict[str, list[Amounts]] = {}
    for _, part in computing:
        for name, amounts in part.held.items():
            some = largest.setdefault(name, [])
            if name not in ADDED_UP and amounts and amounts not in some:
                some.append(amounts)
    traffic: dict[Wire, MovedBytes] = defaultdict(MovedBytes)
    for count, part in parts:
        for wire, some in part.traffic.items():
            for key, nbytes in some.nbytes.items():
                traffic[wire].nbytes[key] += count * nbytes
    return Share(
        {
            when: total((n, part.flops[when]) for n, part in computing)
            for when in PASSES
        },
        total((n, part.weight_flops) for n, part in computing),
        {
            name: total((n, part.held.get(name, {})) for n, part in computing)
            for name in ADDED_UP
        },
        {name: tuple(some) for name, some in largest.items() if some},
        max((part.once for _, part in computing), key=len, default={}),
        total((n, part.read) for n, part in computing),
        dict(traffic),
        tuple(parts),
    )
