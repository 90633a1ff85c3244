"""What a server is told: formats, layout, and the batch of one engine step."""

from dataclasses import dataclass
from typing import NamedTuple

from ..base.units import positive_int, short_repr
from ..hardware.chips import Chip

# Bits of a stored value with the scale that a block of values shares: 8 bits for 32
# values (OCI's MX formats), 8 bits for 16 values (NVIDIA's NVFP4), 16 bits for 128
# values (the usual groups of int4 weights). An fp8 weight shares one fp32 scale with
# 128 x 128 others at least, which is left out.
BITS = {
    "fp32": 32.0,
    "bf16": 16.0,
    "fp16": 16.0,
    "fp8": 8.0,
    "int8": 8.0,
    "mxfp4": 4.25,
    "nvfp4": 4.5,
    "fp4": 4.5,
    "int4": 4.125,
}
CACHED = ("fp32", "bf16", "fp16", "fp8", "int8", "nvfp4", "fp4")
FOUR_BITS = ("mxfp4", "nvfp4", "fp4")
WIDE = "bf16"  # what router, head and attention itself run in


@dataclass(frozen=True)
class Formats:
    """In which precision weights, matmuls and the cache are, each by itself.

    Args:
        weights: of the layers' matmuls, as they are stored.
        activations: what these matmuls multiply in; if not given, the fastest that the
            chip has for such weights, see `compute`.
        cache: of keys and values; bf16 if not given.
        attention: of the weights of attention's projections, where they are stored
            otherwise than those of the MLP and of the experts.

    Assumes:
        Router, head and embedding stay in 16 bits, as published checkpoints keep them.

    Raises:
        ValueError: an unknown format.

    >>> Formats("fp8").weight_bytes, Formats("mxfp4", attention="bf16").weight_bytes
    (1.0, 0.53125)
    """

    weights: str = "bf16"
    activations: str | None = None
    cache: str | None = None
    attention: str | None = None

    def __post_init__(self) -> None:
        for name, known in (
            ("weights", tuple(BITS)),
            ("activations", tuple(BITS)),
            ("cache", CACHED),
            ("attention", tuple(BITS)),
        ):
            value = getattr(self, name)
            missing = value is None and name != "weights"
            if not missing and (not isinstance(value, str) or value not in known):
                raise ValueError(
                    f"{name} = {short_repr(value)}: must be one of {', '.join(known)}"
                )

    @property
    def weight_bytes(self) -> float:
        """Bytes of a stored weight, with its share of a scale."""
        return BITS[self.weights] / 8

    @property
    def attention_bytes(self) -> float:
        """Bytes of a stored weight of attention's projections."""
        return BITS[self.attention or self.weights] / 8

    @property
    def cache_bytes(self) -> float:
        """Bytes of a cached value."""
        return BITS[self.cache or WIDE] / 8

    def compute(self, chip: Chip, weights: str | None = None) -> str:
        """The format that matmuls with such weights run in, a key of `chip.flops`.

        The one that is given, if the chip has it. Otherwise weights of 8 bits are
        multiplied in fp8 or int8, those of NVFP4 in fp4, and those of MXFP4 in fp8,
        where the chip has fp4 at all; int4, and what the chip has no units for, is
        turned into bf16 on the way.

        >>> from shardmath.hardware.chips import A100_80GB, B200, H100
        >>> [Formats("fp8").compute(chip) for chip in (A100_80GB, H100, B200)]
        ['bf16', 'fp8', 'fp8']
        >>> [Formats("nvfp4").compute(chip) for chip in (H100, B200)]
        ['bf16', 'fp4']
        """
        weights = weights or self.weights
        if weights == self.weights and self.activations:
            wanted = self.activations
        elif weights == "mxfp4":
            wanted = "fp8" if "fp4" in chip.flops else WIDE
        else:
            wanted = "bf16" if weights == "int4" else weights
        wanted = "fp4" if wanted in FOUR_BITS else wanted
        if wanted in chip.flops:
            return wanted
        return WIDE if WIDE in chip.flops else "fp16"


@dataclass(frozen=True)
class Layout:
    """Over how many chips a server spreads what.

    Args:
        tensor: ways that heads and hidden layers are split.
        pipeline: stages of layers.
        expert: groups that the experts of a layer are dealt to. It is folded over the
            chips of `tensor` · `data`; what is left of them splits each expert.
        data: groups that each hold whole sequences in attention (data-parallel
            attention), while they share the experts.

    Raises:
        ValueError: no whole numbers from 1, or experts that do not fold.

    >>> Layout(tensor=2, data=4, expert=8).chips
    8
    """

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    data: int = 1

    def __post_init__(self) -> None:
        positive_int(**vars(self))
        if self.stage % self.expert:
            raise ValueError(
                f"expert = {self.expert}: must divide tensor · data = {self.stage}, "
                "over whose chips the experts are folded"
            )

    @property
    def stage(self) -> int:
        """Chips of one stage of the pipeline: tensor · data."""
        return self.tensor * self.data

    @property
    def chips(self) -> int:
        """All chips of the server."""
        return self.stage * self.pipeline

    def __str__(self) -> str:
        ways = [f"{name} {n}" for name, n in vars(self).items() if n > 1]
        return ", ".join(ways) or "one chip"


class Batch(NamedTuple):
    """What one engine step works on.

    Args:
        decode: sequences that get one token each.
        context: tokens that the caches of all of them hold together.
        prefill: for every chunk of a prompt its tokens, and those that stand before it
            in the cache.

    >>> Batch(decode=8, context=8 * 1000, prefill=((512, 0),)).tokens
    520
    """

    decode: float = 0
    context: float = 0
    prefill: tuple[tuple[float, float], ...] = ()

    @property
    def tokens(self) -> float:
        """New tokens of the step."""
        return self.decode + sum(new for new, _ in self.prefill)
