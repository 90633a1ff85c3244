"""The model, batch and numerics of a training step, which do not depend on the mesh."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ..base.units import PRECISION_BYTES, flags, positive, positive_int, short_repr
from ..hardware.chips import Chip
from ..transformer import ATTENTION, Model
from ..transformer.flops import one_of
from ..transformer.remat import KERNELS, checked_remat, layer_values
from .pipeline_schedules import NAMES

# Bytes per logit at the peak of the loss. "pieces" computes logits and loss for a few
# tokens at a time. "once" keeps all logits in fp32, as compilers that fuse the loss do.
# "eager" keeps logits in bf16 (2) and in fp32 (4), their log-softmax (4) and its
# gradient (4), as PyTorch does without a fused loss.
LOSSES = {"pieces": 0, "once": 4, "eager": 14}
ROLES = {  # kinds of arrays whose formats can be set by `formats`
    "weights": "weights, as they are gathered and multiplied",
    "gradients": "gradients of weights, as they are added up and reduced",
    "activations": "activations that cross tensor, context and pipeline axes",
    "dispatch": "tokens on their way to the experts, and gradients of their answers",
    "combine": "answers of the experts on their way back, and gradients of tokens",
    "inputs": "inputs of matmuls, as they wait for the backward pass",
    "master": "weights of the optimizer",
    "moment1": "the optimizer's mean of gradients",
    "moment2": "the optimizer's mean of their squares",
}
STATE = ("master", "moment1", "moment2")  # what Adam holds for every parameter
MOST_TOKENS = 2**40  # per step, a thousand times the largest published batch


@dataclass(frozen=True)
class Job:
    """A model, a batch and the numerics of a training step.

    Args:
        model: the model that is trained.
        seqs: sequences of one step, on all chips.
        seq: tokens of each sequence.
        attention: which keys count for the FLOPs of attention: "causal", "half" or
            "full".
        remat: what is kept for the backward pass: "none", "elementwise", "dots",
            "selective" or "full", or the names of the results to keep, such as
            "Q K V y"; see `transformer.recompute`.
        remat_share: share of a stage's layers to which `remat` applies, above 0 and at
            most 1, rounded up to whole layers. The other layers keep all that their
            backward pass reads ("none").
        precision: the format of matmuls, which decides the peak.
        kernel: "fused" attention never stores scores; "unfused" does.
        loss: how many bytes of the logits are held: "once", "pieces" or "eager"; see
            `LOSSES`.
        formats: formats that differ from the default, by the keys of `ROLES`, as in
            ``{"gradients": "fp32", "dispatch": "fp8"}``. The default is fp32 for the
            optimizer's state and `precision` for the rest. "inputs" are the activations
            that are read again only by matmuls with weights; by default, these are kept
            in the format in which they were computed.
        copy: whether a copy of the weights in their own format is held in addition to
            the optimizer's fp32 weights. Without this copy, weights are cast when they
            are used, as in PyTorch's FSDP and most JAX trainers.
        schedule, chunks: those of a pipeline; see `pipeline_schedules.schedule`.
        capacity: slots of an expert, divided by the tokens that it gets if all experts
            get equally many.
        node_limit: the maximum number of nodes that hold the experts of one token; None
            for any number. See `experts.copies`.
        vocabulary: whether the step includes the embedding and the head.
        offloads: names of saved activations that are kept in host memory, such as
            "stream Q K V". The time to transfer them is not counted.
        table_kept: whether a table that is both embedding and head stays gathered
            between its two uses, as in the root module of PyTorch's FSDP.

    Raises:
        ValueError: a word is not one of those above; a number is outside its range;
            there are more than 2⁴⁰ tokens; a setting is about experts and the model has
            none; the training step of the model is not derived here.

    >>> from shardmath.transformer import LLAMA_3_8B
    >>> job = Job(LLAMA_3_8B, 512, 8192, formats={"gradients": "fp32"})
    >>> job.format("gradients"), job.format("weights"), job.width("gradients")
    ('fp32', 'bf16', 4.0)
    >>> job.state_width
    12.0
    >>> Job(LLAMA_3_8B, 512, 8192, formats={"moment1": "bf16"}).state_width
    10.0
    """

    model: Model
    seqs: int
    seq: int
    attention: str = "causal"
    remat: str = "full"
    precision: str = "bf16"
    kernel: str = "fused"
    loss: str = "once"
    formats: Mapping[str, str] = field(default_factory=dict)
    copy: bool = True
    schedule: str = "1f1b"
    chunks: int | None = None
    capacity: float = 1.0
    node_limit: int | None = None
    vocabulary: bool = True
    offloads: str = ""
    table_kept: bool = False
    remat_share: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model):
            raise ValueError(
                f"model = {short_repr(self.model)}: must be a `transformer.Model`"
            )
        _has_a_step(self.model)
        checked_remat(self.model, self.remat)
        one_of(ATTENTION, attention=self.attention)
        one_of(tuple(PRECISION_BYTES), precision=self.precision)
        one_of(KERNELS, kernel=self.kernel)
        self._check_offloads()
        one_of(tuple(LOSSES), loss=self.loss)
        one_of(tuple(NAMES), schedule=self.schedule)
        found = dict(
            zip(
                ("seqs", "seq"), positive_int(seqs=self.seqs, seq=self.seq), strict=True
            )
        )
        if found["seqs"] * found["seq"] > MOST_TOKENS:
            raise ValueError(
                f"seqs = {short_repr(self.seqs)}, seq = {short_repr(self.seq)}: a step "
                f"has at most {MOST_TOKENS:,} tokens"
            )
        found["capacity"], found["remat_share"] = positive(
            capacity=self.capacity, remat_share=self.remat_share
        )
        if found["remat_share"] > 1:
            raise ValueError(
                f"remat_share = {short_repr(self.remat_share)}: must be above 0 and at "
                "most 1, because it is a share of the layers"
            )
        switches = ("copy", "vocabulary", "table_kept")
        chosen = flags(**{name: getattr(self, name) for name in switches})
        found |= dict(zip(switches, chosen, strict=True))
        for name in ("chunks", "node_limit"):
            if getattr(self, name) is not None:
                (found[name],) = positive_int(**{name: getattr(self, name)})
        found["formats"] = MappingProxyType(_formats(self.formats))
        for name, value in found.items():
            object.__setattr__(self, name, value)
        self._check_experts()

    def _check_offloads(self) -> None:
        known = {
            name: None
            for _, matmuls in self.model.stack
            for name in layer_values(self.model, matmuls, self.kernel)
        }
        given = self.offloads
        if not isinstance(given, str) or not {*given.split()} <= {*known}:
            raise ValueError(
                f"offloads = {short_repr(given)}: must be names of saved activations, "
                f"among {' '.join(known)}"
            )

    def _check_experts(self) -> None:
        if self.model.experts:
            return
        if self.capacity != 1:
            raise ValueError(
                f"capacity = {self.capacity:g}: {self.model.name} has no experts"
            )
        if self.node_limit is not None:
            raise ValueError(
                f"node_limit = {self.node_limit}: {self.model.name} has no experts"
            )

    @property
    def tokens(self) -> int:
        """Tokens of one step, on all chips: seqs · seq."""
        return self.seqs * self.seq

    def format(self, role: str) -> str:
        """The format of arrays with this role, a key of `ROLES`."""
        usual = "fp32" if role in STATE else self.precision
        return self.formats.get(role, usual)

    def width(self, role: str) -> float:
        """Bytes per value of arrays with this role, a key of `ROLES`."""
        return PRECISION_BYTES[self.format(role)]

    @property
    def state_width(self) -> float:
        """Bytes of optimizer state per parameter: a weight and two moments."""
        return sum(map(self.width, STATE))


def _formats(given: object) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise ValueError(
            f"formats = {short_repr(given)}: must map roles to formats, as in "
            "{'gradients': 'fp32'}"
        )
    for role, name in given.items():
        if role not in ROLES:
            raise ValueError(
                f"formats: {short_repr(role)} must be one of {', '.join(ROLES)}"
            )
        if name not in PRECISION_BYTES:
            raise ValueError(
                f"formats: {role} = {short_repr(name)} must be one of "
                f"{', '.join(PRECISION_BYTES)}"
            )
    return dict(given)


def usual_formats(chip: Chip, precision: str) -> dict[str, str]:
    """Formats that frameworks use unless a run says otherwise.

    On GPUs, gradients are added up in fp32, as in Megatron with bf16 weights. On TPUs,
    they are added up in the format of the weights, as in MaxText. If matmuls use 8 bits
    or fewer, the arrays that are stored and sent between them stay in bf16.

    Args:
        chip: the chip on which the model is trained.
        precision: the format of the matmuls.

    Raises:
        ValueError: an unknown format.

    >>> from shardmath.hardware.chips import H100, TPU_V5P
    >>> usual_formats(H100, "bf16"), usual_formats(TPU_V5P, "bf16")
    ({'gradients': 'fp32'}, {})
    """
    one_of(tuple(PRECISION_BYTES), precision=precision)
    found = {}
    if chip.vendor != "Google" and precision != "fp32":
        found["gradients"] = "fp32"
    if PRECISION_BYTES[precision] < PRECISION_BYTES["bf16"]:
        some = ("weights", "gradients", "activations", "dispatch", "combine")
        found = {role: found.get(role, "bf16") for role in some}
    return found


def _has_a_step(model: Model) -> None:
    """Raise if no training step is derived here for the layers of this model."""
    if not model.trains:
        what = "a recurrent state" if model.recurrent else "an indexer"
        raise ValueError(
            f"model = {model.name}: no training step is derived for layers with "
            f"{what}; their parameters, FLOPs and caches are in `transformer`"
        )
