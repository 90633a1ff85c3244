"""How tokens reach their experts: slots, and the copies of a token that are sent."""

import math

from ..base.units import positive_int, short_repr
from ..transformer import Array, Model
from .communication import placed
from .strategy import Strategy

DEALT = Array("t", ("slots", "D"))


def dealt_over(strategy: Strategy) -> tuple[str, ...]:
    """The mesh axes that shard the tokens that go to the experts."""
    return placed(DEALT, strategy.stream, strategy.inner.get("S", ()))[0]


def slots(model: Model, tokens: int, ways: int, capacity: float) -> int:
    """The slots of one expert on all chips, if `tokens` are split into `ways` parts.

    Each part gives every expert a whole number of slots, as in (13.3).

    >>> from shardmath.transformer import KIMI_K2
    >>> slots(KIMI_K2, 64 * 4096, 64, 1.0) // 64
    86
    """
    each = capacity * model.experts.per_token * tokens / ways / model.experts.count
    return ways * max(1, math.ceil(round(each, 6)))  # 1.1 · 10 is above 11 in floats


def copies(experts: int, per_token: int, units: int, limit: int | None = None) -> float:
    """How many units (chips or nodes) hold the experts of one token, on average.

        min(limit, u · (1 − C(E − E/u, k) / C(E, k)))

    Each of these units needs one copy of the token, even if it has several of the
    token's experts. So this is the smallest number of copies that an exchange can send,
    compared with k if it sends one copy for each expert.

    Args:
        experts: experts of a layer, E.
        per_token: experts that a token goes to, k.
        units: units over which the experts are spread evenly, u.
        limit: the maximum number of units that hold the experts of one token, if any.

    Assumes:
        All sets of k experts are equally likely. A router that favours experts of the
        same unit needs fewer copies.

    Raises:
        ValueError: a number is not whole and above zero, or a token has more experts
            than there are.

    Source:
        Formula (13.9). DeepSeek-V3 (arXiv:2412.19437, section 2.1.2) limits its tokens
        to 4 nodes.

    >>> round(copies(256, 8, 8), 2), copies(256, 8, 8, limit=4), copies(256, 8, 1)
    (5.29, 4, 1.0)
    """
    experts, per_token, units = positive_int(
        experts=experts, per_token=per_token, units=units
    )
    if per_token > experts:
        raise ValueError(
            f"per_token = {short_repr(per_token)}: must be at most {experts}, the "
            "number of experts"
        )
    elsewhere = max(0, experts - max(1, experts // units))
    missed = math.comb(elsewhere, per_token) / math.comb(experts, per_token)
    found = min(per_token, units * (1 - missed))
    return found if limit is None else min(limit, found)
