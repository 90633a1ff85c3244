"""Distributions of the lengths of prompts and answers, in whole tokens.

A distribution gives the length at each quantile, so one random number gives one length,
and the same random numbers can be used again at another load. Every distribution raises
a ValueError if one of its parameters is out of range.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from statistics import NormalDist
from typing import Protocol

from ..base.records import kept
from ..base.units import positive, positive_int, short_repr

STANDARD = NormalDist()


class Lengths(Protocol):
    """A distribution of lengths in tokens."""

    def at(self, share: float) -> int:
        """The length that a `share` of all lengths does not exceed; 0 ≤ share < 1."""


@dataclass(frozen=True)
class Fixed:
    """All lengths are equal.

    >>> Fixed(1000).at(0.3)
    1000
    """

    tokens: int

    def __post_init__(self) -> None:
        kept(self, positive_int, "tokens")

    def at(self, share: float) -> int:
        return self.tokens


@dataclass(frozen=True)
class Uniform:
    """Whole lengths from `low` · `tokens` to `tokens`, all equally likely.

    Benchmarks such as InferenceX state `tokens` and draw from 0.8 · `tokens` up.

    >>> lengths = Uniform(1000)
    >>> lengths.at(0), lengths.at(0.5), lengths.at(0.9999)
    (800, 900, 1000)
    """

    tokens: int
    low: float = 0.8

    def __post_init__(self) -> None:
        kept(self, positive_int, "tokens")
        kept(self, positive, "low")
        if self.low > 1:
            raise ValueError(
                f"low = {short_repr(self.low)}: must be above 0 and at most 1"
            )

    def at(self, share: float) -> int:
        first = max(1, round(self.low * self.tokens))
        return first + int(share * (self.tokens - first + 1))


@dataclass(frozen=True)
class Lognormal:
    """Lengths whose logarithm is normally distributed, roughly as in conversations.

    Args:
        mean: the mean length, before lengths are rounded to whole tokens and limited.
        sigma: the standard deviation of the logarithm.
        most: the longest possible length.

    >>> lengths = Lognormal(mean=1000, sigma=0.5)
    >>> lengths.at(0.5), lengths.at(0.99)
    (882, 2824)
    """

    mean: float
    sigma: float
    most: int = 1_000_000

    def __post_init__(self) -> None:
        kept(self, positive, "mean", "sigma")
        kept(self, positive_int, "most")

    def at(self, share: float) -> int:
        z = STANDARD.inv_cdf(min(max(share, 1e-12), 1 - 1e-12))
        power = min(self.sigma * (z - self.sigma / 2), 700.0)  # exp(710) overflows
        return round(min(max(1.0, self.mean * exp(power)), self.most))


@dataclass(frozen=True)
class Sampled:
    """Observed lengths, each drawn with its observed frequency.

    >>> Sampled((10, 30, 20, 20)).at(0.6)
    20
    """

    tokens: Sequence[int]

    def __post_init__(self) -> None:
        if isinstance(self.tokens, str) or not isinstance(self.tokens, Sequence):
            raise ValueError(
                f"tokens = {short_repr(self.tokens)}: must be a list of lengths"
            )
        if not self.tokens:
            raise ValueError("tokens = (): must have at least one length")
        found = sorted(positive_int(tokens=one)[0] for one in self.tokens)
        object.__setattr__(self, "tokens", tuple(found))

    def at(self, share: float) -> int:
        return self.tokens[int(share * len(self.tokens))]
