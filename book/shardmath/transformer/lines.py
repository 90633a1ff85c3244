"""A matmul as a line of notation: ``x[B, S, D] · q[D, N, H] -> Q[B, S, N, H]``."""

import contextlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from ..base.units import number, short_repr, text

_NUMBERS = {int, float}
_ARRAY = re.compile(r"\s*(\w+)\[(\w+(?:, ?\w+)*)\]\s*")


class Array(NamedTuple):
    """An array by its name and the names of its dimensions."""

    name: str
    dims: tuple[str, ...]

    def count(self, sizes: Mapping[str, int]) -> int:
        """How many values the array has if its dimensions have these sizes.

        >>> Array("q", ("D", "N", "H")).count({"D": 64, "N": 4, "H": 16})
        4096

        Raises:
            ValueError: a dimension has no size, or one that is not a number from 0.
        """
        return _product(self.dims, sizes)

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(self.dims)}]"


@dataclass(frozen=True, repr=False)
class Matmul:
    """A product of two arrays, summed over shared dimensions that the result lacks.

    Args:
        reads: the activation that the matmul reads.
        weight: the other factor, which is a weight except in `Model.attention`.
        result: the product.

    >>> q = matmul("x[B, S, D] · q[D, N, H] -> Q[B, S, N, H]")
    >>> q.flops({"B": 1, "S": 1, "D": 64, "N": 4, "H": 16})  # 2 a weight and token
    8192
    """

    reads: Array
    weight: Array
    result: Array

    @property
    def line(self) -> str:
        """The line in the notation of `sharding.contract`."""
        return f"{self.reads} · {self.weight} -> {self.result}"

    @property
    def contracted(self) -> tuple[str, ...]:
        """The dimensions that are summed over."""
        return tuple(dim for dim in self.reads.dims if dim not in self.result.dims)

    @property
    def bias(self) -> tuple[str, ...]:
        """The dimensions of a bias of the result; it has one value for each output."""
        return tuple(dim for dim in self.weight.dims if dim in self.result.dims)

    @property
    def dims(self) -> tuple[str, ...]:
        """All dimensions of the three arrays, each once."""
        return tuple(dict.fromkeys(self.reads.dims + self.weight.dims))

    def flops(self, sizes: Mapping[str, int]) -> int:
        """2 · the product of all sizes, since a multiply and an add are 2 FLOPs.

        Raises:
            ValueError: a dimension has no size, or one that is not a number from 0.
        """
        return 2 * _product(self.dims, sizes)

    @property
    def backward(self) -> tuple["Matmul", "Matmul"]:
        """The gradients of activation and weight, each as costly as the product.

        >>> down = matmul("h[B, S, F] · down[F, D] -> m[B, S, D]")
        >>> print(*down.backward, sep="; ")
        dm[B, S, D] · down[F, D] -> dh[B, S, F]; h[B, S, F] · dm[B, S, D] -> ddown[F, D]
        """
        x, w, y = (Array(f"d{name}", dims) for name, dims in self._arrays)
        return Matmul(y, self.weight, x), Matmul(self.reads, y, w)

    @property
    def _arrays(self) -> tuple[Array, Array, Array]:
        return self.reads, self.weight, self.result

    def __repr__(self) -> str:
        return self.line


def _product(dims: tuple[str, ...], sizes: Mapping[str, int]) -> int:
    """The product of the sizes of dimensions, as Python's number."""
    with contextlib.suppress(LookupError, TypeError):
        counts = [sizes[dim] for dim in dims]
        if {*map(type, counts)} <= _NUMBERS and min(counts, default=0) >= 0:
            return math.prod(counts)  # a search calls this often
    if not isinstance(sizes, Mapping) or (missing := set(dims) - sizes.keys()):
        needed = dims if not isinstance(sizes, Mapping) else sorted(missing)
        raise ValueError(
            f"sizes = {short_repr(sizes)}: must have the size of {', '.join(needed)}"
        )
    counts = {dim: number(dim, sizes[dim]) for dim in dims}
    for dim, count in counts.items():
        if not count >= 0:
            raise ValueError(f"{dim} = {short_repr(count)}: must be a number from 0")
    return math.prod(counts.values())


def matmul(line: str) -> Matmul:
    """The Matmul that `line` describes.

    Raises:
        ValueError: `line` is not text of two arrays and a result, or has nothing to sum
            over.

    >>> matmul("x[B, D] · w[D, F] -> y[B, F]").weight
    Array(name='w', dims=('D', 'F'))
    """
    return _matmul(text("line", line))


@cache
def _matmul(line: str) -> Matmul:
    arrays = [_ARRAY.fullmatch(part) for part in re.split("·|->", line)]
    if len(arrays) != 3 or not all(arrays):
        raise ValueError(
            f"line {short_repr(line)}: must be like 'x[B, D] · w[D, F] -> y[B, F]'"
        )
    found = Matmul(*(Array(a[1], tuple(re.findall(r"\w+", a[2]))) for a in arrays))
    if not found.contracted:
        raise ValueError(f"line {short_repr(line)}: must sum over a dimension")
    return found
