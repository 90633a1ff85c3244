"""The settings of a server: formats, layout, and the batch of one engine step."""

from dataclasses import dataclass
from typing import NamedTuple

from ..base.units import positive_int, short_repr
from ..hardware.chips import Chip

# Bits of a stored value, with its part of the scale that a block of values shares: 8
# bits per 32 values (OCI's MX formats), 8 bits per 16 values (NVIDIA's NVFP4), or 16
# bits per 128 values (the usual groups of int4 weights). We leave out the fp32 scale
# that at least 128 x 128 fp8 weights share.
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
WIDE = "bf16"  # the format of router, head and attention itself


@dataclass(frozen=True)
class Formats:
    """The formats of weights, matmuls and the cache, each of which can be set.

    Args:
        weights: the format in which the layers' weights are stored.
        activations: the format in which the layers' matmuls run; if not given, the
            fastest that the chip has for such weights; see `compute`.
        cache: the format of keys and values; bf16 if not given.
        attention: the format of the weights of attention's projections, if it is not
            that of the MLP and the experts.

    Assumes:
        Router, head and embedding stay in 16 bits, as in published checkpoints.

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
        """Bytes of a stored weight, with its part of a scale."""
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
        """The format in which matmuls with these weights run, as a key of `chip.flops`.

        If `activations` is given, it applies to weights in the format `self.weights`.
        Otherwise 8-bit weights are multiplied in fp8 or int8, NVFP4 weights in fp4, and
        MXFP4 weights in fp8 if the chip has fp4. Int4 weights are cast to bf16 first. A
        format that the chip cannot multiply is replaced by bf16, or by fp16 on chips
        without bf16.

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
        return chip.half


@dataclass(frozen=True)
class Layout:
    """How a server splits a model over its chips.

    Args:
        tensor: the number of chips that split heads and hidden layers.
        pipeline: the number of stages of layers.
        expert: the number of groups over which the experts of a layer are spread. The
            groups share the tensor · data chips of a stage, and the chips of each group
            split its experts.
        data: the number of groups with different sequences in attention (data-parallel
            attention), which share the experts.

    Raises:
        ValueError: a number that is not whole and above zero, or an `expert` that does
            not divide tensor · data.

    >>> Layout(tensor=2, data=4, expert=8).chips
    8
    """

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    data: int = 1

    def __post_init__(self) -> None:
        for name, n in zip(vars(self), positive_int(**vars(self)), strict=True):
            object.__setattr__(self, name, n)
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
    """The sequences and prompts of one engine step.

    Args:
        decode: sequences that get one token each.
        context: tokens in the caches of all these sequences together.
        prefill: for every chunk of a prompt, its tokens and the tokens before it in the
            cache.

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
