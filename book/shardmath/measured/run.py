"""One training run that was published, and what can be told from it again."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType

from ..base.estimate import Estimate, Leg
from ..base.facts import Source
from ..base.tables import Absent
from ..base.units import PRECISION_BYTES, positive_int, short_repr, show
from ..hardware.chips import Chip
from ..hardware.mesh import Mesh
from ..hardware.networks import Network
from ..sharding.machine import Machine
from ..training import (
    Software,
    Step,
    Strategy,
    combine,
    context,
    data,
    expert,
    fold_experts,
    fsdp,
    pipeline,
    step,
    tensor,
    zero,
)
from ..training.job import LOSSES
from ..training.pipeline_schedules import NAMES
from ..transformer import Flops, Model, conventions, flops, recomputed
from ..transformer.flops import one_of
from ..transformer.remat import checked_remat

AXES = {  # what a mesh axis of a run is called, and its strategy; outermost first
    "pipeline": ("pipeline", pipeline),
    "dcn": ("data", data),
    "data": ("data", data),
    "zero1": ("ZeRO-1", lambda axis: zero(1, axis)),
    "zero2": ("ZeRO-2", lambda axis: zero(2, axis)),
    "fsdp": ("FSDP", fsdp),
    "expert": ("expert", expert),
    "expert_state": ("expert", lambda axis: expert(axis, "state")),
    "expert_shards": ("expert", lambda axis: expert(axis, "shards")),
    "context": ("context", lambda axis: context(axis, "gather")),
    "context_state": ("context", lambda axis: context(axis, "gather", "state")),
    "context_shards": ("context", lambda axis: context(axis, "gather", "shards")),
    "context_experts": ("context", lambda axis: context(axis, "gather", "state")),
    "tensor": ("tensor", tensor),
    "tensor_experts": ("tensor", tensor),
}
# Axes whose chips hold whole experts, see `training.fold_experts`.
FOLDED = tuple(axis for axis in AXES if axis.endswith("_experts"))


COPIES = "copies"  # of KV heads: the axis of ways that only query heads can use
ATTENTION_KERNELS = ("", "older", "unfused")
# Kinds of parallelism that give different chips different sequences.
SPLIT_SEQUENCES = tuple(
    axis for axis, (name, _) in AXES.items()
    if name in ("data", "ZeRO-1", "ZeRO-2", "FSDP", "expert")
)  # fmt: skip


@dataclass(frozen=True, repr=False, eq=False)
class Run:
    """A training run that somebody published.

    Args:
        system: the framework.
        model: what was trained.
        chip, chips: on what, and on how many.
        mesh: size by kind of parallelism as published, by the keys of `AXES`: "dcn" is
            data parallelism between TPU slices; with "_state" and "_shards" the chips
            of an axis share the optimizer's state or the weights too. Empty where
            nobody says.
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
        microbatches: parts of the batch of a data-parallel group, one after another;
            None where nobody says.
        schedule: of a pipeline, as in `pipeline_schedules.NAMES`; "" where nobody says.
        chunks: chunks of layers on a stage (virtual stages); None where nobody says.
        formats: formats that differ from `precision`, by what is sent or held; see
            `training.job.ROLES`.
        node_limit: nodes that the experts of one token may be in, at most.
        offloads: names of activations that wait in the memory of the host.
        release: of the software, as published.
        attention_kernel: "unfused", "older" for a fused kernel that was made for an
            older generation of chips, or "" for one made for this one.
        remat_share: of the layers, that `remat` applies to; None for all of them.
        memory: bytes at the peak, as published; None where nobody says.
        overlap: exchanges that the source says are overlapped, of `training.Software`.
        loss: "pieces" where the source computes the loss for some tokens at a time, see
            `training.job.LOSSES`; "" where nobody says.

    Raises:
        ValueError: chips, sequences or tokens that are not whole numbers above zero, an
            unknown mesh axis, a mesh that does not multiply to the chips, an unknown
            remat, precision, schedule or convention.
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
    microbatches: int | None = None
    schedule: str = ""
    chunks: int | None = None
    formats: Mapping[str, str] = field(default_factory=dict)
    node_limit: int | None = None
    offloads: str = ""
    release: str = ""
    attention_kernel: str = ""
    overlap: tuple[str, ...] = ()
    remat_share: float | None = None
    memory: float | None = None
    loss: str = ""

    def __post_init__(self) -> None:
        counted_in = ("chips", "seqs", "seq", "microbatches", "chunks", "node_limit")
        for name in counted_in:
            value = getattr(self, name)
            if value is not None or name in ("chips", "seq"):
                (value,) = positive_int(**{name: value})
            object.__setattr__(self, name, value)
        object.__setattr__(self, "mesh", MappingProxyType(self._checked_mesh()))
        object.__setattr__(self, "formats", MappingProxyType(dict(self.formats)))
        one_of(tuple(PRECISION_BYTES), precision=self.precision)
        one_of(("", *counted(self.model, self.seq)), counts=self.counts)
        one_of(("", *NAMES), schedule=self.schedule)
        one_of(ATTENTION_KERNELS, attention_kernel=self.attention_kernel)
        one_of(("", *LOSSES), loss=self.loss)
        if self.remat != "":
            checked_remat(self.model, self.remat)
        groups = math.prod(
            size for axis, size in self.mesh.items() if axis in SPLIT_SEQUENCES
        )
        most = (self.seqs or 0) // groups
        if self.seqs and self.microbatches and most % self.microbatches:
            raise ValueError(
                f"microbatches = {self.microbatches}: must divide the {most:,} "
                "sequences of a data-parallel group"
            )

    def _checked_mesh(self) -> dict[str, int]:
        """The mesh with its sizes as whole numbers that multiply to the chips."""
        if not isinstance(self.mesh, Mapping):
            raise ValueError(
                f"mesh = {short_repr(self.mesh)}: must be sizes by axis, as "
                f"{{'fsdp': 8}}"
            )
        for axis in self.mesh:
            if axis not in AXES:
                raise ValueError(
                    f"mesh axis {short_repr(axis)}: must be one of {', '.join(AXES)}"
                )
        if not self.model.experts and (folded := {*FOLDED} & {*self.mesh}):
            raise ValueError(
                f"mesh axis {min(folded)}: {self.model.name} has no experts"
            )
        mesh = {
            axis: positive_int(**{axis: size})[0] for axis, size in self.mesh.items()
        }
        if mesh and math.prod(mesh.values()) != self.chips:
            raise ValueError(
                f"mesh = {short_repr(mesh)}: has {math.prod(mesh.values()):,} places "
                "for "
                f"{self.chips:,} chips"
            )
        return mesh

    @property
    def parallelism(self) -> str:
        """Its kinds of parallelism, such as "data × FSDP"."""
        kinds = [AXES[axis][0] for axis, size in self.mesh.items() if size > 1]
        return " × ".join(dict.fromkeys(kinds)) or "not published"

    @property
    def layout(self) -> str:
        """Its mesh in words, such as "data 4 × FSDP 64"; "" where nobody says.

        A name and its size stay on one line.

        >>> from shardmath.measured import RUNS
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
        copied = [axis for axis in self.ordered_mesh if axis == COPIES]
        found = combine(*(
            tensor((axis, *copied), kv=axis)
            if copied and AXES[axis][0] == "tensor" else AXES[axis][1](axis)
            for axis in self.mesh
        ))  # fmt: skip
        folded = [axis for axis in FOLDED if self.mesh.get(axis, 1) > 1]
        folded += copied if folded and folded[-1] == "tensor_experts" else []
        return fold_experts(found, folded) if folded else found

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

        The collectives are those that `training.step` derives, of one microbatch and
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
            derived = self.step(Mesh(self.network, self.ordered_mesh))
            found = derived.estimate.legs
            legs += [leg for leg in found if leg.resource == "network"]
        return Estimate(f"{self.model.name}, {self.parallelism}", tuple(legs))

    @property
    def ordered_mesh(self) -> dict[str, int]:
        """The axes of its mesh, outermost first. Ways of tensor parallelism beyond the
        KV heads are an axis of copies, the innermost."""
        found = {axis: self.mesh[axis] for axis in AXES if axis in self.mesh}
        heads = self.model.kv_heads
        for axis, ways in found.items():
            if AXES[axis][0] == "tensor" and ways > heads and ways % heads == 0:
                return {**found, axis: heads, COPIES: ways // heads}
        return found

    def step(self, mesh: Machine | None = None, **settings: object) -> Step:
        """The step of this run, derived: of one microbatch, with the remat that is
        published (none where nobody says).

        Args:
            mesh: of its axes; their sizes alone if not given.
            settings: of `training.step`, in place of those.

        Raises:
            Absent: a ValueError; it is not `covered`, or its batch is not published.
        """
        if self.seqs is None:
            raise Absent(f"{self}: its batch is not published")
        given = {
            "attention": "causal",
            "remat": self.remat or "none",
            "precision": self.precision,
            "formats": self.formats,
            "node_limit": self.node_limit,
            "offloads": self.offloads,
            "table_kept": True,  # a bound: gathered once for lookup and head
            "remat_share": self.remat_share or 1.0,
            "kernel": "unfused" if self.attention_kernel == "unfused" else "fused",
            "loss": self.loss or "once",
        }
        return step(
            self.strategy,
            self.model,
            self.ordered_mesh if mesh is None else mesh,
            self.seqs,
            self.seq,
            **given | settings,
        )

    @property
    def software(self) -> Software:
        """What its framework does that no setting of the job says."""
        return Software(tuple(self.overlap), self.attention_kernel == "older")

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
    (seq,) = positive_int(seq=seq)
    return dict(_counted(model, seq))


@lru_cache(maxsize=1024)
def _counted(model: Model, seq: int) -> dict[str, float]:
    """`counted`, once for each model and length: hundreds of runs share some dozens."""
    half, full = (flops(model, seq, kind) for kind in ("half", "full"))
    return {
        **conventions(model, seq),
        "6 · params, half attention": 6.0 * model.params + 3 * half.attention,
        "matmuls, half of full attention": full.training - 1.5 * full.attention,
        "layers forward twice, full attention": full.training + full.recomputed("full"),
    }
