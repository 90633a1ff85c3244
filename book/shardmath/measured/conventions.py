"""How training reports count FLOPs, and which convention a printed MFU follows.

>>> from shardmath.transformer import model
>>> print(which_convention(0.38, model("olmo 2 32b"), 4096, 1800, 989.4e12))
full attention gives 38.1 %, the printed 38 %; 6N gives 35.2 %; \
causal attention gives 36.7 %
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..base.units import positive, positive_int, short_repr
from ..transformer import Model, flops, utilization
from ..transformer.flops import one_of
from .run import counted

CONVENTIONS = ("6N", "causal", "full")  # for an MFU, which counts model FLOPs
HARDWARE = ("8N", "hardware")  # for an HFU, which adds a second forward pass
NAMES = {
    "6N": "6N",
    "causal": "causal attention",
    "full": "full attention",
    "8N": "8N",
    "hardware": "the layers forward twice",
}
TWICE = "layers forward twice, full attention"


def flops_per_token(
    model: Model | float, seq: int, convention: str, params: str = "all"
) -> float:
    """FLOPs of one token in training, as one of the conventions counts them.

        6N = 6 · params          causal, full = 6N + FLOPs of attention
        8N = 8 · params          hardware = matmuls with full attention, and those of
                                 the layers' forward pass again

    Args:
        model: a Model, or a number of parameters, which allows only 6N and 8N.
        seq: tokens of a sequence.
        convention: one of `CONVENTIONS` or `HARDWARE`. "causal" counts the keys that a
            query sees, and "full" all keys of the sequence.
        params: which parameters count, as for `Model.active`: "all", "without input
            embedding", or "without embeddings". Of the experts, only those to which a
            token is sent count.

    Returns:
        FLOPs per token.

    Assumes:
        Every parameter takes 6 or 8 FLOPs, even in the input embedding, which is only a
        lookup. For Llama 3.1 8B this gives 7 % more FLOPs than its matmuls have, and
        for 405B it gives 0.5 % more. "hardware" counts only matmuls, and counts the
        head once.

    Raises:
        ValueError: another convention, or one that needs a Model if only a number of
            parameters is given; `seq` that is not whole and above zero; a number of
            parameters that is not above zero.

    Source:
        6N and full attention: PaLM (arXiv:2204.02311), appendix B. The hardware's
        FLOPs: Megatron-LM (arXiv:2104.04473), section 3.

    >>> from shardmath.transformer import model
    >>> [f"{flops_per_token(model('llama 3 405b'), 131_072, way) / 1e12:.2f}"
    ...  for way in CONVENTIONS]
    ['2.44', '4.06', '5.68']
    """
    one_of((*CONVENTIONS, *HARDWARE), convention=convention)
    times = 8.0 if convention == "8N" else 6.0
    (seq,) = positive_int(seq=seq)
    if not isinstance(model, Model):
        (count,) = positive(model=model)
        if convention not in ("6N", "8N"):
            raise ValueError(
                f"convention = {short_repr(convention)}: must be 6N or 8N for a number "
                f"of parameters; attention needs a Model, not {short_repr(model)}"
            )
        return times * count
    if convention == "hardware":
        return counted(model, seq)[TWICE]
    weights = times * model.active(params)
    if convention in ("causal", "full"):
        return weights + 3 * flops(model, seq, convention).attention
    return weights


def mfu(
    model: Model | float,
    seq: int,
    tokens_per_second: float,
    peak: float,
    convention: str,
    params: str = "all",
) -> float:
    """The MFU at a rate of tokens; the HFU if the convention is one of `HARDWARE`.

        MFU = tokens/s · FLOPs per token / peak

    Args:
        model, seq, convention, params: as for `flops_per_token`.
        tokens_per_second: tokens per second of one chip.
        peak: dense peak of one chip in FLOPs/s.

    Raises:
        ValueError: as `flops_per_token`; a rate or a peak that is not above zero.

    >>> from shardmath.transformer import model
    >>> palm, rate = model("palm 540b"), 238_300 / 6144
    >>> [f"{mfu(palm, 2048, rate, 275e12, way):.1%}" for way in ("6N", "full")]
    ['45.7%', '46.2%']
    """
    token = flops_per_token(model, seq, convention, params)
    return utilization.mfu(tokens_per_second, token, peak)


@dataclass(frozen=True, repr=False)
class Match:
    """The conventions that a printed MFU may follow.

    Args:
        printed: the MFU as printed, a share.
        shares: the MFU under each convention.
        within: the largest distance from the printed share that rounding explains.
    """

    printed: float
    shares: Mapping[str, float]
    within: float

    @property
    def nearest(self) -> str:
        """The convention whose share is nearest to the printed one."""
        return min(self.shares, key=lambda way: abs(self.distance[way]))

    @property
    def distance(self) -> dict[str, float]:
        """The share under each convention, minus the printed one."""
        return {way: share - self.printed for way, share in self.shares.items()}

    @property
    def fits(self) -> tuple[str, ...]:
        """Conventions that agree with the printed MFU within rounding, nearest first.

        >>> Match(0.38, {"6N": 0.352, "full": 0.381}, 0.005).fits
        ('full',)
        """
        near = [way for way in self.shares if abs(self.distance[way]) <= self.within]
        return tuple(sorted(near, key=lambda way: abs(self.distance[way])))

    def __str__(self) -> str:
        gives = {
            way: f"{NAMES[way]} gives {100 * share:.1f} %"
            for way, share in self.shares.items()
        }
        fits = [gives[way] for way in self.fits]
        others = [said for way, said in gives.items() if way not in self.fits]
        printed = f"the printed {100 * self.printed:.4g} %"
        head = (
            f"{' and '.join(fits)}, {printed}" if fits else f"nothing gives {printed}"
        )
        return "; ".join((head, *others))


def which_convention(
    printed: float,
    model: Model | float,
    seq: int,
    tokens_per_second: float,
    peak: float,
    *,
    within: float = 0.005,
    params: str = "all",
    among: Sequence[str] = CONVENTIONS,
) -> Match:
    """The convention that a printed MFU follows, inferred from the rate of tokens.

    Args:
        printed: the MFU as printed, a share.
        model, seq, tokens_per_second, peak, params: as for `mfu`.
        within: how much rounding may change the printed share: 0.005, half a percentage
            point, if the percentage is printed without decimals.
        among: the conventions to try.

    Raises:
        ValueError: as `mfu`; a printed share that is not above 0 and at most 1.

    >>> from shardmath.transformer import model
    >>> rate = 238_300 / 6144
    >>> which_convention(
    ...     0.457, model("palm 540b"), 2048, rate, 275e12, within=0.0005
    ... ).fits
    ('6N',)
    """
    share, within = positive(printed=printed, within=within)
    if share > 1:
        raise ValueError(
            f"printed = {printed}: must be a share, at most 1; 0.4 is 40 %"
        )
    shares = {
        way: mfu(model, seq, tokens_per_second, peak, way, params) for way in among
    }
    return Match(share, shares, within)
