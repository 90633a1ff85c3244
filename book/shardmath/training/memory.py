"""What one chip holds during a training step, part by part."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import NamedTuple

from ..base.tables import Table, table
from ..base.units import show
from ..sharding import ShardedArray

PARTS = {
    "state": "optimizer state: weights and two moments in fp32",
    "weights": "weights in the format of the forward pass",
    "gradients": "gradients of the weights",
    "saved": "activations kept for the backward pass",
    "computed again": "activations of one layer, computed again",
    "gathered": "weights of one layer, gathered",
    "in transit": "gradients of one block, soon forgotten",
    "keys": "keys and values of one layer, gathered",
    "scores": "attention scores of one layer, in fp32",
    "logits": "logits, as the loss needs them",
}


class HeldBytes(NamedTuple):
    """The bytes of an array that one chip holds or reads.

    Args:
        width: bytes per value, times the number of such arrays.
        array: the array with its layout.
        turns: further mesh axes that divide the array if it is computed in pieces.
    """

    width: float
    array: ShardedArray
    turns: tuple[str, ...] = ()

    @property
    def nbytes(self) -> float:
        return self.width * prod(self.array.local_sizes) / self.array.ways(self.turns)


@dataclass(frozen=True)
class StepMemory:
    """Bytes that one chip holds at the peak of a step, by part.

    Args:
        parts: bytes by the keys of `PARTS`.
        capacity: bytes of the chip's HBM; None if the mesh names no chip.
    """

    parts: Mapping[str, float]
    capacity: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", MappingProxyType(dict(self.parts)))

    @property
    def total(self) -> float:
        return sum(self.parts.values())

    @property
    def missing(self) -> float:
        """Bytes by which the step exceeds the HBM; 0 if it fits.

        Raises:
            ValueError: the mesh names no chip.
        """
        if self.capacity is None:
            raise ValueError("mesh: must be a `Mesh` of chips, whose memory is known")
        return max(0.0, self.total - self.capacity)

    @property
    def fits(self) -> bool:
        return not self.missing

    @property
    def table(self) -> Table:
        rows = [
            (name, show(nbytes, "capacity"), PARTS[name])
            for name, nbytes in self.parts.items()
            if nbytes
        ]
        rows.append(("all", show(self.total, "capacity"), self.verdict))
        return table(("part", "a chip holds", "what it is"), rows)

    @property
    def verdict(self) -> str:
        """A sentence that says whether the step fits or how much is missing."""
        if self.capacity is None:
            return ""
        size = f"of {show(self.capacity, 'capacity')}"
        if self.fits:
            return f"fits: {self.total / self.capacity:.0%} {size}"
        return f"does not fit: {show(self.missing, 'capacity')} more than {size[3:]}"

    def __str__(self) -> str:
        return str(self.table)

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return self.table._repr_html_()
