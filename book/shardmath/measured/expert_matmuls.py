"""Timed layers of experts: the narrower the experts, the lower the rate."""

from dataclasses import dataclass

from ..base.units import short_repr
from ..hardware import chips
from ..hardware.chips import Chip
from .rows import named_rows


@dataclass(frozen=True)
class ExpertMatmuls:
    """A timed layer of experts on one chip, with 1,024 tokens for each expert.

    Args:
        chip: the chip.
        precision: the format of the matmuls.
        width: the width F of an expert on the chip.
        rate: FLOPs/s of the layer's matmuls. The time includes that for sorting the
            tokens by expert and for adding up the results.
    """

    chip: Chip
    precision: str
    width: int
    rate: float

    def moved(self, wide: "ExpertMatmuls") -> float:
        """Bytes per value that pass through HBM if only this makes the layer slow.

        With its three matmuls, an expert takes 6·F FLOPs for each value of a token's
        vector. If they run at the rate of much wider experts, and if the rest of the
        time is that of moving the vector at W bytes/s, these are

            (6·F/rate − 6·F/wide.rate) · W

        Args:
            wide: a layer of much wider experts on the same chip, in the same format.

        >>> narrow, *_, wide = expert_matmuls("H100", "bf16")
        >>> print(narrow.width, wide.width, round(narrow.moved(wide)))
        768 14336 10
        """
        flops = 6 * self.width
        return (flops / self.rate - flops / wide.rate) * self.chip.hbm_bandwidth


EXPERT_MATMULS = tuple(
    ExpertMatmuls(
        chips.find(row["chip"]),
        row["precision"],
        int(row["width"]),
        1e12 * float(row["tflops"]),
    )
    for row in named_rows("expert_matmuls.csv")
)


def expert_matmuls(chip: str, precision: str) -> tuple[ExpertMatmuls, ...]:
    """The layers that were timed on a chip in a format, narrowest first.

    Raises:
        ValueError: no chip has this name, or no layer was timed on it in this format.

    >>> len(expert_matmuls("B200", "fp8"))
    5
    """
    on = chips.find(chip)
    found = [
        one for one in EXPERT_MATMULS if (one.chip, one.precision) == (on, precision)
    ]
    if not found:
        known = {f"{one.chip.name} in {one.precision}" for one in EXPERT_MATMULS}
        raise ValueError(
            f"{short_repr(chip)} in {short_repr(precision)}: must be one of "
            f"{', '.join(sorted(known))}"
        )
    return tuple(sorted(found, key=lambda one: one.width))
