"""One training run that was published, and what can be derived from its figures."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType

from ..base.estimate import Estimate, Leg
from ..base.facts import Source
from ..base.records import must_be
from ..base.tables import Absent
from ..base.units import PRECISION_BYTES, positive_int, short_repr, show
from ..hardware.chips import Chip, require_chip
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
from ..transformer.architecture import checked
from ..transformer.flops import one_of
from ..transformer.remat import checked_remat

AXES = {  # the words and the strategy of each mesh axis of a run; outermost first
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
# Axes whose chips hold whole experts; see `training.fold_experts`.
FOLDED = tuple(axis for axis in AXES if axis.endswith("_experts"))


COPIES = "copies"  # the axis along which KV heads are copied
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
        model: the model that was trained.
        chip, chips: the kind of chips, and their number.
        mesh: the published size of each kind of parallelism, by the keys of `AXES`;
            empty if not published. "dcn" is data parallelism between TPU slices. On an
            axis with "_state" or "_shards" in its name, the chips also shard the
            optimizer's state or the weights.
        seqs: sequences of a step, on all chips; None if not published.
        seq: tokens of each sequence.
        precision: the format of the matmuls in the layers.
        remat: what is kept for the backward pass, as for `transformer.recompute`: a
            policy, or the names of what is kept ("Q K V y", as in `Model.layer`); "" if
            not published.
        tokens_per_second, flops_per_second: rates of one chip, as published.
        step_seconds, mfu, hfu: as published; MFU and HFU are shares.
        counts: the convention by which the FLOPs are counted, a key of `counted`.
        source: the source of the run.
        network: the network of the chips; None if too little is known for a bound.
        note: remarks.
        microbatches: microbatches of a data-parallel group; None if not published.
        schedule: a pipeline schedule of `pipeline_schedules.NAMES`; "" if not
            published.
        chunks: chunks of layers per stage (virtual stages); None if not published.
        formats: formats that differ from `precision`, by the keys of
            `training.job.ROLES`.
        node_limit: the most nodes that the experts of one token may be in.
        offloads: names of activations that are kept in host memory.
        release: the release of the software, as published.
        attention_kernel: "unfused", "older" for a fused kernel that was made for an
            older generation of chips, or "" for one that was made for these chips.
        remat_share: the share of the layers to which `remat` applies; None for all.
        memory: bytes at the peak, as published; None if not published.
        overlap: exchanges that the source says are overlapped; see `training.Software`.
        loss: "pieces" if the run computes the loss for some tokens at a time; see
            `training.job.LOSSES`; "" if not published.

    Raises:
        ValueError: counts that are not whole and above zero; an unknown mesh axis or
            word; a mesh whose sizes do not multiply to `chips`; an axis of experts
            for a model without them; microbatches that do not divide the sequences.
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
        checked(self.model)
        require_chip(self.chip)
        counted_in = ("chips", "seqs", "seq", "microbatches", "chunks", "node_limit")
        for name in counted_in:
            value = getattr(self, name)
            if value is not None or name in ("chips", "seq"):
                (value,) = positive_int(**{name: value})
            object.__setattr__(self, name, value)
        object.__setattr__(self, "mesh", MappingProxyType(self._checked_mesh()))
        must_be(Mapping, formats=self.formats)
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
                f"microbatches = {self.microbatches}: must divide {most:,}, the "
                "number of sequences of a data-parallel group"
            )

    def _checked_mesh(self) -> dict[str, int]:
        """The mesh with whole numbers as sizes; raise unless they multiply to the
        chips."""
        if not isinstance(self.mesh, Mapping):
            raise ValueError(
                f"mesh = {short_repr(self.mesh)}: must map axes to sizes, as in "
                "{'fsdp': 8}"
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
                f"for {self.chips:,} chips"
            )
        return mesh

    @property
    def parallelism(self) -> str:
        """Its kinds of parallelism, such as "data × FSDP"."""
        kinds = [AXES[axis][0] for axis, size in self.mesh.items() if size > 1]
        return " × ".join(dict.fromkeys(kinds)) or "not published"

    @property
    def layout(self) -> str:
        """Its mesh in words, such as "data 4 × FSDP 64"; "" if it is not published.

        A non-breaking space keeps a name and its size on one line.

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
        """Whether its mesh is published, so there is a `strategy`."""
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
        """Tokens of a step, on all chips.

        Raises:
            Absent: a ValueError; its batch is not published.
        """
        if self.seqs is None:
            raise Absent(f"{self}: its batch is not published")
        return self.seqs * self.seq

    @property
    def seconds(self) -> float:
        """Seconds of a step, as published or from the rate of tokens or FLOPs.

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
        """Whether the time of its step is known."""
        try:
            return self.seconds > 0
        except Absent:
            return False

    @property
    def counted(self) -> float:
        """FLOPs of a token, counted again by the convention `counts`.

        Raises:
            Absent: a ValueError; it is not known how the run counts FLOPs.
        """
        if not self.counts:
            raise Absent(f"{self}: how its FLOPs are counted is not known")
        return counted(self.model, self.seq)[self.counts]

    @property
    def flops_per_token(self) -> float:
        """FLOPs of a token as published: FLOPs/s, or MFU · peak, divided by tokens/s.

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
        """The convention whose FLOPs are nearest to `flops_per_token`."""
        said, ways = self.flops_per_token, counted(self.model, self.seq)
        return min(ways, key=lambda way: abs(ways[way] / said - 1))

    @property
    def needed(self) -> float:
        """FLOPs of a token that no implementation can avoid.

        They are the FLOPs of the forward and backward pass, with only the keys that a
        query sees, and of all that `remat` makes the backward pass compute again; see
        `bound` of `transformer.recompute`. If `remat` is not published, nothing is
        counted twice.
        """
        once = flops(self.model, self.seq, "causal")
        return once.training + self._again.forward

    @property
    def _again(self) -> Flops:
        """FLOPs of a token that have to be computed a second time."""
        remat = self.remat or "none"
        return recomputed(self.model, self.seq, "causal", remat, bound=True)

    @property
    def math(self) -> float:
        """Seconds of a step at the dense peak: tokens · `needed` / (chips · peak)."""
        peak = self.chip.flops[self.precision]
        return self.tokens * self.needed / (self.chips * peak)

    @property
    def math_of_layers(self) -> float:
        """Seconds of a step if only the layers' weights are in `precision`.

        Attention and the head then run at the peak of bf16, so `math` is too low. If
        everything is in bf16, the two are equal.
        """
        once = flops(self.model, self.seq, "causal")
        wide = 3 * (once.attention + once.head) + self._again.attention
        peaks = self.chip.flops
        of_token = wide / peaks["bf16"] + (self.needed - wide) / peaks[self.precision]
        return self.tokens * of_token / self.chips

    @cached_property
    def bound(self) -> Estimate:
        """A lower bound of the step's time from math and, if known, from the network.

        The collectives are those that `training.step` derives for one microbatch, on a
        mesh whose innermost axes are tensor and then context parallelism. Microbatches
        and schedule are seldom published. So the bound leaves out the pipeline bubble
        and all repeated gathers, whether for several microbatches or for the two uses
        of a tied table. It also leaves out HBM, whose traffic takes less time than the
        math or the network.

        Raises:
            Absent: a ValueError; its batch is not published.
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
        """The axes of its mesh, outermost first. Tensor parallelism beyond the number
        of KV heads becomes an innermost axis of copies."""
        found = {axis: self.mesh[axis] for axis in AXES if axis in self.mesh}
        heads = self.model.kv_heads
        for axis, ways in found.items():
            if AXES[axis][0] == "tensor" and ways > heads and ways % heads == 0:
                return {**found, axis: heads, COPIES: ways // heads}
        return found

    def step(self, mesh: Machine | None = None, **settings: object) -> Step:
        """The derived step of this run, with one microbatch and its published remat
        ("none" if it is not published).

        Args:
            mesh: a mesh of the run's axes; if not given, only their sizes are used.
            settings: arguments of `training.step` that replace those of the run.

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
            "table_kept": True,  # for a bound, a tied table is gathered only once
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
        """What its framework does beyond the settings of a job."""
        return Software(tuple(self.overlap), self.attention_kernel == "older")

    @property
    def over_math(self) -> float:
        """Measured time ÷ `math`, the time of the math at the peak."""
        return self.seconds / self.math

    @property
    def over_bound(self) -> float:
        """Measured time ÷ the lower bound; a perfect machine would have 1."""
        return self.seconds / self.bound.lower

    def __str__(self) -> str:
        who = f"{self.system}: " if self.system else ""
        where = f"{self.chips:,} {self.chip.name}"
        return f"{who}{self.model.name} on {where}, {self.parallelism}"

    def __repr__(self) -> str:
        try:
            took = show(self.seconds, "s")
        except Absent:
            return f"{self}."
        return f"{self}: {took} a step of {show(self.tokens, 'tokens')}."


def counted(model: Model, seq: int) -> dict[str, float]:
    """FLOPs of a token in training by every convention that published runs use.

    The conventions are those of `transformer.conventions` and three more: half of the
    attention added to 6 · params; half of full attention, which is less than "half" if
    layers have a window; and the FLOPs of the hardware if all layers run forward twice.

    >>> from shardmath.transformer import LLAMA_3_8B
    >>> found = counted(LLAMA_3_8B, 8192)
    >>> f"{found['matmuls, full attention'] / found['6 · params']:.2f}"
    '1.20'
    """
    (seq,) = positive_int(seq=seq)
    return dict(_counted(model, seq))


@lru_cache(maxsize=1024)
def _counted(model: Model, seq: int) -> dict[str, float]:
    """`counted` with a cache, because hundreds of runs share a few dozen models."""
    half, full = (flops(model, seq, kind) for kind in ("half", "full"))
    return {
        **conventions(model, seq),
        "6 · params, half attention": 6.0 * model.params + 3 * half.attention,
        "matmuls, half of full attention": full.training - 1.5 * full.attention,
        "layers forward twice, full attention": full.training + full.recomputed("full"),
    }
