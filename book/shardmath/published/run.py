"""One training run that was published, and what can be told from it again."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from ..chips import Chip
from ..estimate import Estimate, Leg
from ..facts import Source
from ..mesh import Mesh
from ..networks import Network
from ..parallelism import (
    Strategy,
    combine,
    context,
    data,
    fsdp,
    pipeline,
    step,
    tensor,
    zero,
)
from ..parallelism.parts import EMBEDDING
from ..sharding.prices import Prices
from ..tables import Absent
from ..transformer import REMAT, Flops, Model, conventions, flops, recomputed
from ..units import show

AXES = {  # what a mesh axis of a run is called, and its strategy; outermost first
    "pipeline": ("pipeline", pipeline),
    "dcn": ("data", data),
    "data": ("data", data),
    "zero2": ("ZeRO-2", lambda axis: zero(2, axis)),
    "fsdp": ("FSDP", fsdp),
    "context": ("context", lambda axis: context(axis, "gather")),
    "tensor": ("tensor", tensor),
}


@dataclass(frozen=True, repr=False, eq=False)
class Run:
    """A training run that somebody published.

    Args:
        system: the framework.
        model: what was trained.
        chip, chips: on what, and on how many.
        mesh: size by kind of parallelism as published: "data", "zero2", "fsdp",
            "tensor", "context", "pipeline", and "dcn", which is data parallelism
            between TPU slices. Empty where nobody says.
        seqs: sequences of a step, on all chips; None where nobody says.
        seq: tokens of each.
        precision: of the matmuls in the layers.
        remat: what is kept for the backward pass, as for `transformer.recompute`: a
            policy, or by name what is kept ("Q K V y", as in `Model.layer`); "" where
            nobody says.
        tokens_per_second, flops_per_second: of one chip, as published.
        step_seconds, mfu, hfu: as published; utilizations are shares.
        counts: the convention by which the FLOPs are counted, one of `counted`.
        source: where it was read.
        network: what joins the chips; None where too little is known for a bound.
        note: what else has to be said.
    """

    system: str
    model: Model
    chip: Chip
    chips: int
    mesh: Mapping[str, int]
    seqs: int | None
    seq: int
    precision: str
    remat: str
    tokens_per_second: float | None
    flops_per_second: float | None
    step_seconds: float | None
    mfu: float | None
    hfu: float | None
    counts: str
    source: Source
    network: Network | None = None
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mesh", MappingProxyType(dict(self.mesh)))

    @property
    def parallelism(self) -> str:
        """Its kinds of parallelism, such as "data × FSDP"."""
        kinds = [AXES[axis][0] for axis, size in self.mesh.items() if size > 1]
        return " × ".join(dict.fromkeys(kinds)) or "not published"

    @property
    def layout(self) -> str:
        """Its mesh in words, such as "data 4 × FSDP 64"; "" where nobody says.

        A name and its size stay on one line.

        >>> from shardmath.published import RUNS
        >>> print(RUNS[1].layout.replace("\N{NO-BREAK SPACE}", " "))
        data 2 × FSDP 64
        """
        sizes: dict[str, int] = {}
        for axis, size in self.mesh.items():
            kind = AXES[axis][0]
            sizes[kind] = sizes.get(kind, 1) * size
        shared = [
            f"{kind}\N{NO-BREAK SPACE}{size}"
            for kind, size in sizes.items()
            if size > 1
        ]
        return " × ".join(shared)

    @property
    def covered(self) -> bool:
        """Whether its mesh is published, so that there is a `strategy`."""
        return bool(self.mesh)

    @property
    def strategy(self) -> Strategy:
        """The strategy over the axes of `mesh`.

        Raises:
            Absent: a ValueError; it is not `covered`.
        """
        if not self.covered:
            raise Absent(f"{self}: its mesh is not published")
        return combine(*(AXES[axis][1](axis) for axis in self.mesh))

    @property
    def tokens(self) -> int:
        """Tokens of a step, on all chips."""
        if self.seqs is None:
            raise Absent(f"{self}: its batch is not published")
        return self.seqs * self.seq

    @property
    def seconds(self) -> float:
        """Seconds of a step: published, or told from the rate of tokens or of FLOPs.

        Raises:
            Absent: a ValueError; too little is published.
        """
        if self.step_seconds:
            return self.step_seconds
        if self.tokens_per_second:
            return self.tokens / (self.chips * self.tokens_per_second)
        if not (self.flops_per_second and self.counts):
            raise Absent(f"{self}: what is published does not tell the time of a step")
        return self.tokens * self.counted / (self.chips * self.flops_per_second)

    @property
    def timed(self) -> bool:
        """Whether the time of its step is known, and so how far off its bound is."""
        try:
            return self.seconds > 0
        except Absent:
            return False

    @property
    def counted(self) -> float:
        """FLOPs of a token, recounted by the convention `counts`."""
        if not self.counts:
            raise Absent(f"{self}: how its FLOPs are counted is not known")
        return counted(self.model, self.seq)[self.counts]

    @property
    def flops_per_token(self) -> float:
        """FLOPs of a token as published: their rate, or MFU · peak, over tokens/s.

        Raises:
            Absent: a ValueError; one of the two rates is not published.
        """
        rate = self.flops_per_second
        if rate is None and self.mfu:
            rate = self.mfu * self.chip.flops[self.precision]
        if rate is None or self.tokens_per_second is None:
            raise Absent(f"{self}: one of its two rates is not published")
        return rate / self.tokens_per_second

    @property
    def fits(self) -> str:
        """The convention that comes nearest to `flops_per_token`."""
        said, ways = self.flops_per_token, counted(self.model, self.seq)
        return min(ways, key=lambda way: abs(ways[way] / said - 1))

    @property
    def needed(self) -> float:
        """FLOPs of a token that no implementation can leave out.

        Forward and backward with the keys that a query sees, and what the policy does
        not keep of a layer, computed again: see `transformer.recompute` with its
        `bound`. Where nobody says what is kept, perhaps nothing is computed again.
        """
        once = flops(self.model, self.seq, "causal")
        return once.training + self._again.forward

    @property
    def _again(self) -> Flops:
        """FLOPs of a token that have to be done a second time."""
        remat = self.remat or "none"
        return recomputed(self.model, self.seq, "causal", remat, bound=True)

    @property
    def math(self) -> float:
        """Seconds of a step at the dense peak: tokens · `needed` / (chips · peak)."""
        peak = self.chip.flops[self.precision]
        return self.tokens * self.needed / (self.chips * peak)

    @property
    def math_of_layers(self) -> float:
        """Seconds of a step where `precision` is that of the layers' weights alone.

        Attention and the head are at the peak of bf16: what `math` is too low by, if it
        was so. Where all is in 16 bits it is `math`.
        """
        once = flops(self.model, self.seq, "causal")
        wide = 3 * (once.attention + once.head) + self._again.attention
        peaks = self.chip.flops
        of_token = wide / peaks["bf16"] + (self.needed - wide) / peaks[self.precision]
        return self.tokens * of_token / self.chips

    @cached_property
    def bound(self) -> Estimate:
        """The time of a step, at the least: math, and where it is known the network.

        The collectives are those that `parallelism.step` derives, of one microbatch and
        on a mesh whose inner axes are tensor, then context parallelism. How many
        microbatches there were, and in which schedule, is seldom published: the bubble
        of a pipeline is left out, and so is what is gathered more than once: for each
        microbatch, or a tied table for lookup and head. HBM is left out, too: what has
        to cross it takes less time than either.

        Raises:
            Absent: a ValueError; it is not `covered`.
        """
        peak = self.chip.flops[self.precision]
        legs = [Leg("math", self.math * peak, peak)]
        if self.network is not None:
            axes = {axis: self.mesh[axis] for axis in AXES if axis in self.mesh}
            mesh = Mesh(self.network, axes)
            derived = step(
                self.strategy,
                self.model,
                mesh,
                self.seqs,
                self.seq,
                attention="causal",
                remat=self.remat if self.remat in REMAT else "none",
                precision=self.precision,
            )
            table = EMBEDDING.weight.name
            moves = [move for move in derived.moves if move.array != table]
            # Equal moves of a tied table are one: PyTorch's FSDP keeps it gathered.
            moves += dict.fromkeys(m for m in derived.moves if m.array == table)
            legs.append(Prices(mesh).leg([move.collective for move in moves]))
        return Estimate(f"{self.model.name}, {self.parallelism}", tuple(legs))

    @property
    def over_math(self) -> float:
        """Measured time over that of the math alone."""
        return self.seconds / self.math

    @property
    def over_bound(self) -> float:
        """Measured time over the lower bound; 1 would be a perfect machine."""
        return self.seconds / self.bound.lower

    def __str__(self) -> str:
        where = f"{self.chips:,} {self.chip.name}"
        return f"{self.system}: {self.model.name} on {where}, {self.parallelism}"

    def __repr__(self) -> str:
        try:
            took = show(self.seconds, "s")
        except Absent:
            return f"{self}."
        return f"{self}: {took} a step of {show(self.tokens, 'tokens')}."


def counted(model: Model, seq: int) -> dict[str, float]:
    """FLOPs of a token in training by every convention that runs are published in.

    Those of `transformer.conventions`, and three more: half attention beside
    6 · params; half of full attention, less than "half" where layers have a window;
    and the FLOPs of the hardware where all layers run forward twice.
    """
    half, full = (flops(model, seq, kind) for kind in ("half", "full"))
    return {
        **conventions(model, seq),
        "6 · params, half attention": 6.0 * model.params + 3 * half.attention,
        "matmuls, half of full attention": full.training - 1.5 * full.attention,
        "layers forward twice, full attention": full.training + full.recomputed("full"),
    }
