"""How long prompts and answers are: distributions of whole numbers of tokens.

Each is read at a share of the way from its shortest to its longest length, so that one
random number gives one length, and the same numbers can be used again at another load.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from statistics import NormalDist
from typing import Protocol

from ..base.units import positive, positive_int, short_repr

STANDARD = NormalDist()


class Lengths(Protocol):
    """A distribution of lengths in tokens."""

    def at(self, share: float) -> int:
        """The length that a `share` of all lengths do not exceed, from 0 to below 1."""


@dataclass(frozen=True)
class Fixed:
    """Every length is the same.

    >>> Fixed(1000).at(0.3)
    1000
    """

    tokens: int

    def __post_init__(self) -> None:
        positive_int(tokens=self.tokens)

    def at(self, share: float) -> int:
        return self.tokens


@dataclass(frozen=True)
class Uniform:
    """Whole lengths from `low` · `tokens` to `tokens`, all equally likely.

    Benchmarks such as InferenceX state `tokens` and draw from 0.8 of it on.

    >>> lengths = Uniform(1000)
    >>> lengths.at(0), lengths.at(0.5), lengths.at(0.9999)
    (800, 900, 1000)
    """

    tokens: int
    low: float = 0.8

    def __post_init__(self) -> None:
        positive_int(tokens=self.tokens)
        positive(low=self.low)
        if self.low > 1:
            raise ValueError(f"low = {short_repr(self.low)}: must be at most 1")

    def at(self, share: float) -> int:
        first = max(1, round(self.low * self.tokens))
        return first + int(share * (self.tokens - first + 1))


@dataclass(frozen=True)
class Lognormal:
    """Lengths whose logarithm is normal, as those of real conversations roughly are.

    Args:
        mean: of the lengths, before they are rounded to whole tokens and cut off.
        sigma: the standard deviation of the logarithm.
        most: no length is longer.

    >>> lengths = Lognormal(mean=1000, sigma=0.5)
    >>> lengths.at(0.5), lengths.at(0.99)
    (882, 2824)
    """

    mean: float
    sigma: float
    most: int = 1_000_000

    def __post_init__(self) -> None:
        positive(mean=self.mean, sigma=self.sigma)
        positive_int(most=self.most)

    def at(self, share: float) -> int:
        z = STANDARD.inv_cdf(min(max(share, 1e-12), 1 - 1e-12))
        power = min(self.sigma * (z - self.sigma / 2), 700.0)  # of what a float holds
        return round(min(max(1.0, self.mean * exp(power)), self.most))


@dataclass(frozen=True)
class Sampled:
    """Lengths that were observed, each as likely as it is frequent among them.

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
        for one in self.tokens:
            positive_int(tokens=one)
        object.__setattr__(self, "tokens", tuple(sorted(self.tokens)))

    def at(self, share: float) -> int:
        return self.tokens[int(share * len(self.tokens))]
