"""Causal attention on a ring of chips: which chip computes what in each step.

ring = CausalRing("zig-zag", chips=8, seq=131_072)
ring.tokens(0)       # the positions that chip 0 holds
ring.step(3)         # query-key pairs that every chip computes in step 3
ring.imbalance       # work of the busiest chip divided by the mean
"""

import contextlib
from dataclasses import dataclass
from fractions import Fraction

from ..base.units import number, positive_int, short_repr

ORDERS = ("contiguous", "zig-zag", "striped")
MOST_CHIPS = 512  # Python needs about 3 seconds to count the steps of this many


@dataclass(frozen=True)
class CausalRing:
    """One causal sequence on a ring of chips that pass their keys and values on.

    In step s, chip i works on its own queries and on the keys of chip i − s. A query
    sees the keys at its own position and at earlier positions. Pairs that a causal mask
    hides are not computed.

        contiguous   chip i holds the i-th of n chunks
        zig-zag      chip i holds chunks i and 2n − 1 − i of 2n
        striped      chip i holds positions i, i + n, i + 2n …

    Args:
        order: which positions a chip holds, one of `ORDERS`.
        chips: the number of chips in the ring, n.
        seq: tokens of the sequence, S; a multiple of n, or of 2n for zig-zag.

    Raises:
        ValueError: the order is unknown; a number is not whole and above zero; `seq` is
            not such a multiple.

    Source: zig-zag as in Llama 3 (arXiv 2407.21783, section 3.3.2), striped as in
    Brandon et al. (arXiv 2311.09431).

    >>> CausalRing("contiguous", chips=4, seq=8).work
    (3, 7, 11, 15)
    """

    order: str
    chips: int
    seq: int

    def __post_init__(self) -> None:
        if not isinstance(self.order, str) or self.order not in ORDERS:
            raise ValueError(
                f"order = {short_repr(self.order)}: must be one of {', '.join(ORDERS)}"
            )
        chips, seq = positive_int(chips=self.chips, seq=self.seq)
        parts = 2 * chips if self.order == "zig-zag" else chips
        if seq % parts:
            raise ValueError(
                f"seq = {short_repr(seq)}: must be a multiple of {short_repr(parts)}, "
                f"the number of chunks of {self.order} order on {short_repr(chips)} "
                "chips"
            )
        object.__setattr__(self, "chips", chips)
        object.__setattr__(self, "seq", seq)

    def tokens(self, chip: int) -> tuple[range, ...]:
        """The positions that a chip holds, in order.

        Raises:
            ValueError: the ring has no such chip.

        >>> CausalRing("zig-zag", chips=4, seq=16).tokens(1)
        (range(2, 4), range(12, 14))
        """
        n, seq = self.chips, self.seq
        chip = _one_of(n, chip=chip)
        if self.order == "striped":
            return (range(chip, seq, n),)
        if self.order == "contiguous":
            return (range(chip * seq // n, (chip + 1) * seq // n),)
        half = seq // (2 * n)
        chunks = chip, 2 * n - 1 - chip
        return tuple(range(c * half, (c + 1) * half) for c in chunks)

    def holder(self, token: int) -> int:
        """The chip that holds a position.

        Raises:
            ValueError: the sequence has no such position.
        """
        token = _one_of(self.seq, token=token)
        return next(
            chip
            for chip in range(self.chips)
            if any(token in part for part in self.tokens(chip))
        )

    def pairs(self, queries: int, keys: int) -> int:
        """How many pairs of a query on chip `queries` and a key on `keys` are computed.

        Raises:
            ValueError: the ring has no such chip.
        """
        return sum(seen(q, k) for q in self.tokens(queries) for k in self.tokens(keys))

    def step(self, step: int) -> tuple[int, ...]:
        """Query-key pairs that every chip computes in one step, 0 to n − 1.

        Raises:
            ValueError: there is no such step.
        """
        step = _one_of(self.chips, step=step)
        return tuple(
            self.pairs(chip, (chip - step) % self.chips) for chip in range(self.chips)
        )

    @property
    def work(self) -> tuple[int, ...]:
        """Pairs that each chip computes in all steps; query t sees t + 1 keys."""
        parts = map(self.tokens, range(self.chips))
        return tuple(sum(map(_seen_by, positions)) for positions in parts)

    @property
    def mean(self) -> Fraction:
        """The mean number of pairs per chip: S(S + 1)/2n."""
        return Fraction(self.seq * (self.seq + 1), 2 * self.chips)

    @property
    def imbalance(self) -> Fraction:
        """Work of the busiest chip divided by the mean.

        With s = S/n tokens per chip, the contiguous order has ((2n − 1)s + 1)/(ns + 1),
        which is close to (2n − 1)/n for a long sequence. Zig-zag has 1.

        >>> long = CausalRing("contiguous", chips=8, seq=131_072)
        >>> long.imbalance.limit_denominator(64)
        Fraction(15, 8)
        """
        return max(self.work) / self.mean

    @property
    def lockstep(self) -> Fraction:
        """The sum of the work of each step's busiest chip, divided by the mean.

        This ratio decides the time if all chips wait for the slowest one in each step,
        as a ring does at each hop. The ratio is never below `imbalance`.

        Raises:
            ValueError: there are more than 512 chips; each step of each chip is
                counted.
        """
        if self.chips > MOST_CHIPS:
            raise ValueError(
                f"chips = {short_repr(self.chips)}: must be at most {MOST_CHIPS} here, "
                "because each step is counted; `imbalance` works for any number"
            )
        return sum(max(self.step(step)) for step in range(self.chips)) / self.mean

    def __str__(self) -> str:
        return (
            f"{self.seq:,} tokens over a ring of {self.chips} chips, {self.order}: the "
            f"busiest has {float(self.imbalance):.3g} times the mean work"
        )

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def seen(queries: range, keys: range) -> int:
    """How many pairs have their key at or before the position of their query.

    Args:
        queries, keys: ranges of positions, both in steps of the same size.

    Raises:
        ValueError: a range is not ascending, or the steps have different sizes.

    >>> low, high = range(4), range(4, 8)
    >>> seen(low, low), seen(high, low), seen(low, high)
    (10, 16, 0)
    """
    for name, positions in (("queries", queries), ("keys", keys)):
        if not isinstance(positions, range) or positions.step < 1:
            wanted = "must be an ascending range, such as range(4)"
            raise ValueError(f"{name} = {short_repr(positions)}: {wanted}")
    if queries.step != keys.step:
        raise ValueError(
            f"queries in steps of {queries.step}, keys in steps of {keys.step}: the "
            "steps must be equal"
        )
    first = (queries.start - keys.start) // queries.step + 1
    return _up_to(first + len(queries), len(keys)) - _up_to(first, len(keys))


def _seen_by(queries: range) -> int:
    """Σ (t + 1) over the positions t of `queries`, the number of pairs they compute."""
    return len(queries) * (queries[0] + queries[-1] + 2) // 2


def _one_of(count: int, **named: int) -> int:
    """The number as a Python int, if it is from 0 to count − 1; else raise."""
    ((name, value),) = named.items()
    with contextlib.suppress(ValueError):
        found = number(name, value)
        if isinstance(found, int) and 0 <= found < count:
            return found
    raise ValueError(f"{name} = {short_repr(value)}: must be from 0 to {count - 1}")


def _up_to(end: int, most: int) -> int:
    """Σ min(j, most) over 0 ≤ j < end; each query sees one key more than the last."""
    steep = max(0, min(end, most + 1))
    return steep * (steep - 1) // 2 + most * max(0, end - most - 1)
