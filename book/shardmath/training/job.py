"""What is trained and how, whatever the mesh: the settings of a step and of a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ..base.units import PRECISION_BYTES, flags, positive, positive_int, short_repr
from ..hardware.chips import Chip
from ..transformer import ATTENTION, Model
from ..transformer.flops import one_of
from ..transformer.remat import KERNELS, checked_remat
from .pipeline_schedules import NAMES

# Bytes of one logit at the peak of the loss. "pieces" computes logits and loss for few
# tokens at a time. "once" keeps all of them in fp32, as a compiler does that fuses the
# loss. "eager" keeps logits in bf16 (2) and in fp32 (4), their log-softmax (4) and its
# gradient (4), as PyTorch does without a fused loss.
LOSSES = {"pieces": 0, "once": 4, "eager": 14}
ROLES = {  # what is sent or held, and in which format unless `formats` says otherwise
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
STATE = ("master", "moment1", "moment2")  # what Adam holds of every parameter
MOST_TOKENS = (
    2**40
)  # of one step: a thousand times the largest batch that was published


@dataclass(frozen=True)
class Job:
    """A model, a batch and the numerics of a training step.

    Args:
        model: what is trained.
        seqs: sequences of one step, on all chips.
        seq: tokens of each sequence.
        attention: "causal", "half" or "full", the keys that attention's FLOPs count.
        remat: what is kept for the backward pass: "none", "elementwise", "dots",
            "selective" or "full", or the names of results that are kept, such as
            "Q K V y"; see `transformer.recompute`.
        remat_share: of the layers of a stage, to which `remat` applies; the others keep
            all that their backward pass reads ("none"). Rounded up to whole layers.
        precision: the format of matmuls, which decides the peak.
        kernel: "fused" attention never stores scores; "unfused" does.
        loss: "once", "pieces" or "eager", which bytes of the logits are held: `LOSSES`.
        formats: formats that differ from `precision`, by the keys of `ROLES`, as in
            ``{"gradients": "fp32", "dispatch": "fp8"}``. The state of the optimizer is
            in fp32 if nothing else is said. "inputs" are those that only matmuls with
            weights read again; they wait in the format in which they were computed if
            nothing else is said.
        copy: whether a copy of the weights in their format rests next to the fp32
            weights of the optimizer. Without it, weights are cast where they are used,
            as FSDP in PyTorch and most JAX trainers do.
        schedule, chunks: of a pipeline; see `pipeline_schedules.schedule`.
        capacity: slots of an expert, divided by the tokens that it gets where all
            experts get the same.
        node_limit: nodes that the experts of one token may be in, at most; None for
            any number. See `experts.copies`.
        vocabulary: whether embedding and head take part.
        offloads: names of saved activations that wait in the memory of the host, such
            as "stream Q K V"; how long their way takes is not counted.
        table_kept: whether a table that is both embedding and head stays gathered
            between its two uses, as the root of PyTorch's FSDP does.

    Raises:
        ValueError: a word that is none of those above, a number that is not a whole one
            above zero, experts' settings of a model without experts.

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
                "has at "
                f"most {MOST_TOKENS:,} tokens"
            )
        found["capacity"], found["remat_share"] = positive(
            capacity=self.capacity, remat_share=self.remat_share
        )
        if found["remat_share"] > 1:
            raise ValueError(
                f"remat_share = {short_repr(self.remat_share)}: must be above 0 and at "
                "most 1, a share of the layers"
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
        """The format of what plays a role of `ROLES`."""
        usual = "fp32" if role in STATE else self.precision
        return self.formats.get(role, usual)

    def width(self, role: str) -> float:
        """Bytes of one value of what plays a role of `ROLES`."""
        return PRECISION_BYTES[self.format(role)]

    @property
    def state_width(self) -> float:
        """Bytes of the optimizer's state for one parameter: weight and two moments."""
        return sum(map(self.width, STATE))


def _formats(given: object) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise ValueError(
            f"formats = {short_repr(given)}: must be formats by role, as "
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
    """Formats that frameworks use where nothing else is said.

    Gradients are added up in fp32 on GPUs, as Megatron does with bf16 weights, and in
    the format of the weights on TPUs, as MaxText does. Where matmuls are in 8 bits or
    fewer, what is stored and sent between them stays in bf16.

    Args:
        chip: that trains.
        precision: of the matmuls.

    >>> from shardmath.hardware.chips import H100, TPU_V5P
    >>> usual_formats(H100, "bf16"), usual_formats(TPU_V5P, "bf16")
    ({'gradients': 'fp32'}, {})
    """
    found = {}
    if chip.vendor != "Google" and precision != "fp32":
        found["gradients"] = "fp32"
    if PRECISION_BYTES[precision] < PRECISION_BYTES["bf16"]:
        some = ("weights", "gradients", "activations", "dispatch", "combine")
        found = {role: found.get(role, "bf16") for role in some}
    return found


def _has_a_step(model: Model) -> None:
    """Raise unless training of layers such as this model's is derived here."""
    if not model.trains:
        what = "a recurrent state" if model.recurrent else "an indexer"
        raise ValueError(
            f"model = {model.name}: no step of training is derived for layers with "
            f"{what}; their parameters, FLOPs and caches are in `transformer`"
        )
