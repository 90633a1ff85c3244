"""One step of a published model and batch, on more and more chips.

The batch does not change, as if more chips were bought for a given recipe. Llama 2 7B
was trained with 4 million tokens per step ("Llama 2", arXiv:2307.09288, Table 1), that
is, 1,024 sequences of 4,096 tokens. Each chip takes whole sequences, one at a time, as
long as there are enough of them (ZeRO-1). With more chips, up to 8 share a sequence by
tensor parallelism, and then 2 such groups share one by context parallelism.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ...hardware import chips
from ...hardware.mesh import Mesh
from ...hardware.networks import network
from ...hardware.networks.usual import usual
from ...training import Step, combine, context, step, tensor, zero
from ...training.job import usual_formats
from ...transformer import flops, mfu, model

MODEL = model("llama 2 7b")
SEQS, SEQ = 1024, 4096  # of a step
MOST_TENSOR = 8  # chips that share a layer
COUNTS = tuple(2**n for n in range(15))  # of chips


@dataclass(frozen=True, eq=False)
class Scaled:
    """The step on some number of chips.

    Args:
        step: the derived step.
    """

    step: Step

    @property
    def count(self) -> int:
        """The number of chips."""
        return self.step.chips

    @property
    def math(self) -> float:
        """Lower bound: seconds of matmuls at the peak."""
        return self.step.estimate.seconds["math"]

    @property
    def network(self) -> float:
        """Lower bound: seconds of the busiest links at full rate; 0 for one chip."""
        return self.step.estimate.seconds.get("network", 0.0)

    @property
    def fits(self) -> bool:
        """Whether the counted bytes fit in a chip's memory."""
        return self.step.memory.total <= self.step.memory.capacity

    def mfu(self, seconds: float) -> float:
        """The MFU of a step that takes `seconds`, with causal attention."""
        job, chip = self.step.job, self.step.mesh.network.chip
        token = flops(job.model, job.seq, job.attention).training
        rate = self.step.tokens / self.count / seconds
        return mfu(rate, token, chip.flops[job.precision])

    @property
    def efficiency(self) -> tuple[float, float, float]:
        """The MFU of the prediction, and those at the slow and the fast end of its
        band."""
        likely = self.step.prediction
        return tuple(map(self.mfu, (likely.seconds, likely.high, likely.low)))


def sizes(count: int) -> Mapping[str, int]:
    """The mesh for a number of chips.

    >>> sizes(4), sizes(4096)
    ({'data': 4}, {'data': 1024, 'tensor': 4})
    >>> sizes(16384)
    {'data': 1024, 'context': 2, 'tensor': 8}
    """
    ranks = min(count, SEQS)
    shared = min(count // ranks, MOST_TENSOR)
    found = {"data": ranks, "context": count // ranks // shared, "tensor": shared}
    return {axis: n for axis, n in found.items() if n > 1 or axis == "data"}


@lru_cache(len(COUNTS) * 8)  # every drawing shows all counts
def scaled(chip: str, count: int) -> Scaled:
    """The step on `count` of these chips.

    Args:
        chip: the name of the chip.
        count: one of `COUNTS`.
    """
    found, axes = chips.find(chip), sizes(count)
    strategies = {
        "data": zero(1, "data"),
        "context": context("context", "gather", "state"),
        "tensor": tensor("tensor"),
    }
    one = step(
        combine(*(strategies[axis] for axis in axes)),
        MODEL,
        Mesh(network(usual(found, count)), axes),
        SEQS,
        SEQ,
        attention="causal",
        remat="none",
        microbatches=SEQS // axes["data"],
        formats=usual_formats(found, "bf16"),
    )
    return Scaled(one)
