"""A training step under a strategy: what moves, what is held, how long it takes."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from .. import ledger
from ..collectives import NAMES, Collective
from ..estimate import Estimate, Leg
from ..mesh import Mesh
from ..pipeline_schedules import Schedule
from ..sharding.machine import Machine, axes_of, chip_of
from ..sharding.prices import Prices
from ..tables import Table, table
from ..transformer import (
    ATTENTION,
    REMAT,
    TRAINING,
    Array,
    Matmul,
    Model,
    flops,
    matmul,
    saved,
    saved_once,
)
from ..units import PRECISION_BYTES, flags, positive, quoted, show, whole
from .memory import Held, Memory
from .moves import Lines, Move, Swap, Work, ends, layers, placed, sends
from .stages import Stack, Stages, cut
from .strategy import Layout, Strategy

WHEN = ("forward", "recompute", "backward", "update")
SCORES = Array("P", ("B", "N", "S", "T"))
ONE_END = (True, False), (False, True)  # embedding or head, not both
DEALT = Array("t", ("slots", "D"))
EMBEDDING = matmul("onehot[B, S, V] · embed[V, D] -> x[B, S, D]")


@dataclass(frozen=True, eq=False)
class Step:
    """One training step of a model on a mesh; `step` makes one.

    Bytes, FLOPs and times are those of one chip; in a pipeline of one of stage `stage`,
    but for `estimate`, which takes the network of the stage that moves most.
    What is added up and what moves comes from the lines of the model alone; see
    `moves`.
    """

    strategy: Strategy
    model: Model
    mesh: Machine
    seqs: int
    seq: int
    remat: str = "full"
    attention: str = "causal"
    precision: str = "bf16"
    microbatches: int = 1
    vocabulary: bool = True
    schedule: str = "1f1b"
    chunks: int | None = None
    capacity: float = 1.0
    stage: int = 0

    @property
    def chips(self) -> int:
        return math.prod(axes_of(self.mesh).values())

    @property
    def tokens(self) -> int:
        """Tokens of one step, on all chips: seqs · seq."""
        return self.seqs * self.seq

    @property
    def tokens_per_chip(self) -> float:
        return self.tokens / self.chips

    @cached_property
    def lines(self) -> Lines:
        """The lines of the model on the mesh, for one microbatch."""
        sizes = self.model.sizes(self.seqs // self.microbatches, self.seq)
        if self.model.experts:
            ways = math.prod(axes_of(self.mesh)[a] for a in dealt_over(self.strategy))
            tokens = self.tokens // self.microbatches
            sizes["slots"] = slots(self.model, tokens, ways, self.capacity)
        return Lines(self.strategy, axes_of(self.mesh), sizes, self.precision)

    @cached_property
    def stages(self) -> Stages:
        """The layers cut into stages, and who computes what when."""
        count = math.prod(axes_of(self.mesh)[axis] for axis in self.strategy.layers)
        return cut(self.model, count, self.microbatches, self.schedule, self.chunks)

    @cached_property
    def stack(self) -> Stack:
        """The layers of the stage: how many of each kind, and the matmuls of one."""
        return self.stages.stack(self.stage)

    @cached_property
    def works(self) -> tuple[Work, ...]:
        """Forward and backward of one microbatch: layers, then head and embedding."""
        works = [
            layers(self.lines, matmuls, self.remat, count, self.model.norms_behind)
            for count, matmuls in self.stack
        ]
        return (*works, *ends(self.lines, self._ends))

    @cached_property
    def _ends(self) -> tuple[Matmul, ...]:
        """Head and embedding, where the stage has them; looking a row up is a product
        with ones and zeros, of which no FLOPs are counted."""
        if not self.vocabulary:
            return ()
        first, last = self.stages.ends(self.stage)
        return (self.model.head_line,) * last + (EMBEDDING,) * first

    @property
    def _shares_table(self) -> bool:
        """Whether this stage has one end of a model whose one table serves both."""
        return self.model.tied and self.stages.ends(self.stage) in ONE_END

    def _swaps(self, weight: Array) -> list[Swap]:
        """What stages that have the same weight send one another of its gradient: each
        and its mirror image where microbatches come from both ends (DualPipe: so does
        github.com/deepseek-ai/DualPipe, 7cb1e5e, examples/example_dualpipe.py), else
        the ends that share a table."""
        if self.stages.paths > 1:
            return [self.lines.swap(weight, every=True)]
        shared = weight == EMBEDDING.weight and self._shares_table
        return [self.lines.swap(weight)] * shared

    @property
    def weights(self) -> tuple[tuple[int, Array], ...]:
        """Every matrix and how often it is there; embedding and head once if tied."""
        found = [
            (count, line.weight) for count, matmuls in self.stack for line in matmuls
        ]
        tables = [line.weight for line in self._ends]
        found += [(1, one) for one in tables[: 1 if self.model.tied else 2]]
        return tuple(found)

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """What moves, in the order of forward, recompute, backward and update."""
        found = [move for work in self.works for move in work.moves]
        found += sends(self.lines, self.stages.hops(self.stage))
        found = [replace(move, times=self._times(move)) for move in found]
        for count, weight in self.weights:
            found += [
                Move(change.before.name, change, "update", count)
                for change in self.lines.update(weight, self._swaps(weight))
            ]
        return tuple(sorted(found, key=lambda move: WHEN.index(move.when)))

    def _times(self, move: Move) -> int:
        # Two paths of a pipeline share the microbatches.
        rounds = self.microbatches // self.stages.paths
        return move.times * (rounds if self.repeats(move) else 1)

    def repeats(self, move: Move) -> bool:
        """Whether a move is made for every microbatch. Gradients are added up on the
        chip and reduced once, but where a chip keeps less than all of them."""
        if move.when == "update":
            return False
        matrices = {one.name for _, one in self.weights}
        gradient = not move.scales and move.array not in matrices
        kept = {axis for axes in move.change.after.placed for axis in axes}
        return not gradient or bool(kept & {*move.change.axes})

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives that make the moves, as records to price and compare."""
        return tuple(move.collective for move in self.moves)

    @property
    def sent(self) -> float:
        """Bytes that one chip sends in a step."""
        return sum(one.total_sent for one in self.collectives)

    def against(self, compiled: Iterable) -> ledger.Ledger:
        """The ledger: what was derived here against compiled collectives."""
        return ledger.compare(self.collectives, compiled)

    @cached_property
    def flops(self) -> Mapping[str, float]:
        """FLOPs of one chip by "forward", "recompute" and "backward".

        Matmuls only. Attention counts the keys that `attention` names.
        """
        found = dict.fromkeys(WHEN[:3], 0.0)
        rounds = self.microbatches / self.stages.paths
        lookup = EMBEDDING in self._ends
        for work in self.works[:-1] if lookup else self.works:
            for when, amount in work.flops.items():
                found[when] += amount * rounds
        pairs = self._attention_flops
        found["forward"] += pairs
        found["backward"] += 2 * pairs
        found["recompute"] += pairs * (self.remat != "none")
        return found

    @property
    def _attention_flops(self) -> float:
        """FLOPs forward of scores and of what they weigh, in all layers of the stage;
        of a stage's share, where layers differ in their window."""
        queries = Array("A", ("B", "S", "N"))
        here = self.lines.values(queries, self.strategy.inner) * self.microbatches
        a_token = flops(self.model, self.seq, self.attention).attention
        share = self._layers / self.stages.paths / self.model.layers
        return a_token * here / self.model.heads * share

    @property
    def _layers(self) -> int:
        return sum(count for count, _ in self.stack)

    @cached_property
    def memory(self) -> Memory:
        """Bytes that one chip holds at the peak of the step, by part; in a pipeline of
        the stage that holds most.

        Assumes Adam with a master copy in fp32; gradients in the format of the forward
        pass; the scores of one layer and all logits in fp32 (a fused attention kernel
        or a loss in pieces holds less); one layer gathered at a time.
        """
        some = {0, 1, self.stage, self.stages.count - 1} & {*range(self.stages.count)}
        found = [self.at(stage)._memory for stage in some]
        return max(found, key=lambda memory: memory.total)

    @property
    def _memory(self) -> Memory:
        """The same, of this stage."""
        parts = {
            part: max((sum(h.nbytes for h in some) for some in choices), default=0.0)
            for part, choices in self.held.items()
        }
        chip = self.mesh.network.chip if isinstance(self.mesh, Mesh) else None
        return Memory(parts, chip.hbm_bytes if chip else None)

    @cached_property
    def held(self) -> Mapping[str, tuple[tuple[Held, ...], ...]]:
        """What a chip of this stage holds, by part; of several lists, one for each kind
        of layer, the largest."""
        at, size = self.strategy, PRECISION_BYTES[self.precision]
        whole_keys = {dim: axes for dim, axes in at.attention.items() if dim != "T"}
        scores = self.lines.array(SCORES, whole_keys)
        found = {
            "state": (self._params(at.state, TRAINING["mixed"].state),),
            "weights": (self._params(at.weights, size),),
            "gradients": (self._params(at.gradients, size),),
            "saved": (self._saved,),
            "gathered": tuple(self._gathered(lines) for _, lines in self.stack),
            "scores": ((Held(4, scores, at.ring),),),  # in a ring those of one hop
        }
        if at.inner.get("S"):
            found["keys"] = tuple(self._keys(lines) for _, lines in self.stack)
        if self.model.head_line in self._ends:
            logits = self.lines.array(self.model.head_line.result, at.inner)
            found["logits"] = ((Held(4, logits),),)
        return found

    def at(self, stage: int) -> "Step":
        """The same step, seen from another stage of the pipeline.

        Raises:
            ValueError: there is no such stage.
        """
        if stage not in range(self.stages.count):
            raise ValueError(
                f"stage = {quoted(stage)}: stages are 0 to {self.stages.count - 1}"
            )
        found = replace(self, stage=stage)
        vars(found).update(lines=self.lines, stages=self.stages)  # found once for all
        return found

    @cached_property
    def busiest(self) -> int:
        """The stage with most FLOPs; of several the one that sends most often."""
        stages = range(self.stages.count)
        return max(
            stages, key=lambda n: (sum(self.at(n).flops.values()), self.stages.sends[n])
        )

    def only(self, stack: Stack, ends: tuple[Matmul, ...] = ()) -> "Step":
        """These layers and ends alone, no pipeline: what a step is the sum of."""
        found = self.at(0)
        alone = cut(self.model, 1, self.microbatches, self.schedule, self.chunks)
        vars(found).update(stages=alone, stack=stack, _ends=ends)
        return found

    def _keys(self, matmuls: Iterable[Matmul]) -> tuple[Held, ...]:
        """Keys and values that one layer gathers, where tokens are split."""
        size = PRECISION_BYTES[self.precision]
        return tuple(
            Held(size, change.after)
            for change in self.lines.attention(matmuls)[0]
            if change.op == "all_gather"
        )

    def _params(self, layout: Layout, width: float) -> tuple[Held, ...]:
        """Parameters that one chip holds; norms and biases lie as a vector over D."""
        vector = self.lines.array(Array("norm", ("D",)), layout)
        return (
            *(Held(width * n, self.lines.array(w, layout)) for n, w in self.weights),
            Held(width * self._vectors / self.model.d_model, vector),
        )

    @property
    def _vectors(self) -> float:
        """Parameters outside the matrices; of a stage's share of the layers."""
        model = self.model
        every = model.matmul_params + (0 if model.tied else model.vocab * model.d_model)
        return (model.params - every) * self._layers / model.layers

    def _gathered(self, matmuls: Iterable[Matmul]) -> tuple[Held, ...]:
        """The weights of one layer as they are multiplied, where they rest in parts."""
        size = PRECISION_BYTES[self.precision]
        plans = [self.lines.forward(line) for line in matmuls]
        return tuple(
            Held(size, plan.b)
            for plan in plans
            if any(change.before.name == plan.b.name for change in plan.moved)
        )

    @property
    def _saved(self) -> tuple[Held, ...]:
        """The activations that wait for the backward pass, of all layers and all
        microbatches in flight."""
        often = self._layers / self.stages.paths * self.stages.in_flight(self.stage)
        every = [(often, one) for one in saved(self.model, self.remat)]
        every += [(1, one) for one in saved_once(self.model, self.remat)]
        return tuple(
            Held(n * one.width, self.lines.rest(one.array)) for n, one in every
        )

    @property
    def read(self) -> tuple[Held, ...]:
        """The matrices of all layers, as one pass of a microbatch reads them."""
        size = PRECISION_BYTES[self.precision]
        return tuple(
            Held(size * count, self.lines.forward(line).b)
            for count, matmuls in self.stack
            for line in matmuls
        )

    @property
    def _hbm_bytes(self) -> float:
        """Bytes to and from HBM, the least there can be: state and gradients once there
        and back, each matrix once for every pass, saved activations there and back."""
        held, rounds = self._memory.parts, self.microbatches / self.stages.paths
        read = 2 * rounds * sum(one.nbytes for one in self.read)
        there_and_back = held["state"] + held["gradients"]
        in_flight = self.stages.in_flight(self.stage)
        there_and_back += held["saved"] / in_flight * self.microbatches
        return read + 2 * there_and_back + held["weights"]

    @cached_property
    def _prices(self) -> Prices:
        if not isinstance(self.mesh, Mesh):
            raise ValueError(
                f"mesh = {quoted(self.mesh)}: must be a `Mesh` of chips for a time"
            )
        return Prices(self.mesh)

    @cached_property
    def estimate(self) -> Estimate:
        """Math, HBM and network time of a step, as lower and upper bound.

        The lower bound lets all of them work at once, at peak rates; the upper one adds
        them up. HBM traffic is the least there can be: state and gradients once there
        and back, weights once for each use, saved activations written and read. The
        network of a pipeline is that of the stage whose links are busy for longest.
        """
        chip = chip_of(self._prices.mesh)
        peak = chip.flops[self.precision] * self.working
        legs = [
            Leg("math", sum(self.flops.values()), peak),
            Leg("HBM", self._hbm_bytes, chip.hbm_bandwidth),
        ]
        if moved := self._most_moved.collectives:
            legs.append(self._prices.leg(moved))
        return Estimate(self.title, tuple(legs))

    @cached_property
    def _most_moved(self) -> "Step":
        """The step of the stage whose links are busy for longest; of several of this
        one, or of the first."""
        at, kinds = self.stages, {}
        for n in (self.stage, *range(at.count)):
            kinds.setdefault((at.stack(n), at.ends(n), tuple(at.hops(n).items())), n)
        some = [self if n == self.stage else self.at(n) for n in kinds.values()]
        if len(some) == 1:
            return self
        return max(some, key=lambda one: self._prices.lower(one.collectives))

    @cached_property
    def played(self) -> Schedule:
        """The schedule of the pipeline, played with the times of its stages: FLOPs at
        the peak."""
        return self.stages.played(self._one_pass)

    def _one_pass(self, stage: int) -> tuple[float, float, float]:
        """FLOPs of F, I and W of one microbatch, all layers of a stage."""
        here = self.at(stage)
        works = here.works[:-1] if EMBEDDING in here._ends else here.works
        lines = sum(work.flops["backward"] for work in works)
        weights = lines / 2 / self.stages.paths  # of attention there are none
        found = {when: n / self.microbatches for when, n in here.flops.items()}
        inputs = found["recompute"] + found["backward"] - weights
        return found["forward"], inputs, weights

    @property
    def bubble(self) -> float:
        """Idle over busy time of all stages, at the peak of math; 0 for one stage."""
        return self.played.bubble if self.stages.count > 1 else 0.0

    @property
    def working(self) -> float:
        """The share of the step in which a chip of this stage has something to do."""
        if self.stages.count == 1:
            return 1.0
        return self.played.busy[self.stage] / self.played.seconds

    @property
    def title(self) -> str:
        tokens = f"{self.tokens:,} tokens"
        return (
            f"{self.model.name}, {self.strategy.name}, {tokens} on {self.chips:,} chips"
        )

    @property
    def critical_tokens(self) -> float:
        """Tokens per chip at which the network takes as long as math; above, it is
        math that binds. `inf` where the network is the longer at any batch.

        Everything else stays: sequence length, mesh, microbatches. What moves weights
        and gradients stays too, and what moves activations grows with the tokens, so
        that both times are lines over the tokens.
        """
        prices, moves = self._prices, self._most_moved.moves
        grows = [move.collective for move in moves if move.scales]
        stays = [move.collective for move in moves if not move.scales]
        math_ = self.estimate.seconds["math"]

        def longer(scale: float) -> bool:
            """Whether math takes longer than the busiest links, at `scale` times the
            batch."""
            grown = [replace(one, nbytes=one.nbytes * scale) for one in grows]
            return scale * math_ >= prices.lower([*stays, *grown])

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
        """What moves, arrays of one kind together; bytes that one chip sends."""
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
            lines.append(str(self.estimate).removeprefix(f"{self.estimate.title}: "))
        return "\n  ".join(lines)

    def _repr_pretty_(self, printer, cycle):
        printer.text(f"{self}\n\n{self.table}" if self.moves else str(self))


def dealt_over(strategy: Strategy) -> tuple[str, ...]:
    """The mesh axes over which tokens lie that are dealt to experts."""
    return placed(DEALT, strategy.stream, strategy.inner.get("S", ()))[0]


def slots(model: Model, tokens: int, ways: int, capacity: float) -> int:
    """The slots of an expert on all chips that share so many tokens in as many ways.

    Each of them lines up its own, a whole number for every expert (13.3).

    >>> from shardmath.transformer import KIMI_K2
    >>> slots(KIMI_K2, 64 * 4096, 64, 1.0) // 64
    86
    """
    each = capacity * model.experts.per_token * tokens / ways / model.experts.count
    return ways * max(1, math.ceil(round(each, 6)))  # 1.1 · 10 is above 11 in floats


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
) -> Step:
    """A training step of `model` on `mesh`, its arrays lying as `strategy` says.

    Args:
        strategy: where the arrays lie.
        model: its lines are what is multiplied.
        mesh: a `Mesh` (its chips give times), or sizes by axis name in device order.
        seqs: sequences of one step, on all chips.
        seq: tokens of a sequence.
        attention: "causal", "half" or "full", which keys the FLOPs of attention count;
            see `transformer.keys_per_query`.
        remat: what is kept for the backward pass: "none" of it is computed again,
            "dots" keeps the results of matmuls with weights, "full" keeps the input of
            a layer alone.
        precision: of weights, activations and gradients.
        microbatches: into how many parts the sequences of a step go, one after another;
            gradients are added up.
        vocabulary: whether embedding and head take part.
        schedule, chunks: of a pipeline; see `pipeline_schedules.schedule`.
        capacity: slots of an expert, over its tokens where all get the same; a chip
            has a whole number of them for its own tokens.

    Returns:
        A Step: `collectives`, `flops`, `memory`, `estimate`, `critical_tokens`; of a
        pipeline as the stage with most to compute sees it.

    Assumes:
        XLA's order: weights are gathered for each pass and forgotten; head and loss are
        one pass, the lookup is another. The gradient of a tied table is reduced once,
        as by hand; XLA left alone may reduce that of head and of lookup. The tokens of
        a sequence are dealt to chips so that each has equally many keys to look at, and
        experts get equally many.
        Vectors (norms, biases) move nothing here: their gradients do, some kB a layer.
        Times are bounds: a pipeline waits as its schedule says, else no kernel or
        latency hiding is modelled.

    Raises:
        ValueError: a number that does not divide (heads, sequences, sizes over a mesh
            axis), an axis that the mesh lacks, a word that is none of those above.

    >>> from shardmath.parallelism import fsdp
    >>> from shardmath.transformer import LLAMA_3_8B
    >>> one = step(fsdp("X"), LLAMA_3_8B, {"X": 8}, 8, 4096, attention="causal")
    >>> print(one)
    Llama 3.1 8B, fsdp over X, 32,768 tokens on 8 chips
      sent by a chip: 40.3 GB
      held by a chip: 20.3 GiB
    >>> print(one.moves[0])
    forward: AllGather_X: q[D_X, N, H] -> q[D, N, H], 29.4 MB sent, 32 times
    """
    if not isinstance(strategy, Strategy):
        raise ValueError(f"strategy = {quoted(strategy)}: must be as fsdp('X')")
    if not isinstance(model, Model):
        raise ValueError(f"model = {quoted(model)}: must be a `transformer.Model`")
    for what, value, known in (
        ("remat", remat, REMAT),
        ("attention", attention, ATTENTION),
        ("precision", precision, tuple(PRECISION_BYTES)),
    ):
        if value not in known:
            raise ValueError(f"{what} = {value!r}: must be one of {', '.join(known)}")
    seqs, seq, microbatches = whole(seqs=seqs, seq=seq, microbatches=microbatches)
    (capacity,), (vocabulary,) = (
        positive(capacity=capacity),
        flags(vocabulary=vocabulary),
    )
    if chunks is not None:  # also where there is no pipeline
        (chunks,) = whole(chunks=chunks)
    if not model.experts and ("E" in strategy.stream or capacity != 1):
        raise ValueError(
            f"{model.name} has no experts: neither a strategy over them ("
            f"{strategy.name}) nor a capacity ({capacity:g}) has a meaning"
        )
    if seqs % microbatches:
        raise ValueError(f"microbatches = {microbatches} does not divide seqs = {seqs}")
    mesh_axes = axes_of(mesh)
    for axis in strategy.axes:
        if axis not in mesh_axes:
            known = ", ".join(f"{name} = {size}" for name, size in mesh_axes.items())
            raise ValueError(
                f"mesh axis {axis} of {strategy.name}: mesh has {known or 'no axes'}"
            )
    found = Step(
        strategy,
        model,
        mesh,
        seqs,
        seq,
        remat,
        attention,
        precision,
        microbatches,
        vocabulary,
        schedule,
        chunks,
        capacity,
    )
    _ = found.moves  # what does not divide is said at once
    return found.at(found.busiest)
