"""Causal attention on a ring of chips: who computes which queries on which keys, when.

    ring = CausalRing("zig-zag", chips=8, seq=131_072)
    ring.tokens(0)       # the positions that chip 0 holds
    ring.step(3)         # pairs of query and key of every chip in step 3
    ring.imbalance       # work of the busiest chip over the mean

`square` and `loads` draw it.
"""

from .figure import loads, square
from .ring import ORDERS, CausalRing, seen

__all__ = ["ORDERS", "CausalRing", "loads", "seen", "square"]
