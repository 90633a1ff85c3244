"""MFU and HFU: from tokens per second to a share of the peak, and back.

The rate of tokens is measured. The FLOPs of a token are counted, and `conventions`
lists the different ways in which authors count them.
"""

from ..base.units import positive, short_repr
from .architecture import ACTIVE, Model
from .flops import ATTENTION, flops


def mfu(tokens_per_second: float, flops_per_token: float, peak: float) -> float:
    """The share of the peak that the model's FLOPs use.

        MFU = tokens/s · FLOPs per token / peak

    Args:
        tokens_per_second: tokens that one chip trains on per second.
        flops_per_token: `flops(…).training`, or one of `conventions`. If you add
            `flops(…).recomputed(remat)`, the result is the HFU.
        peak: FLOPs/s of one chip without sparsity.

    Raises:
        ValueError: an argument that is no finite number above 0.

    Source:
        PaLM (arXiv:2204.02311), Appendix B.

    >>> from shardmath.transformer import model
    >>> token = conventions(model("palm 540b"), 2048)["6 · params, full attention"]
    >>> print(f"{mfu(238_300 / 6144, token, peak=275e12):.1%}")  # 46.2 % in the paper
    46.2%
    """
    rate, token, peak = positive(
        tokens_per_second=tokens_per_second, flops_per_token=flops_per_token, peak=peak
    )
    return rate * token / peak


def tokens_per_second(mfu: float, flops_per_token: float, peak: float) -> float:
    """Tokens that one chip trains on in a second: MFU · peak / FLOPs per token.

    Args:
        mfu: share of the peak, above 0 and at most 1, by the convention of
            `flops_per_token`.
        flops_per_token, peak: as for the function `mfu`.

    Raises:
        ValueError: a share above 1, or an argument that is no finite number above 0.

    >>> round(tokens_per_second(0.4, 6 * 8.03e9, peak=989e12))
    8211
    """
    share, token, peak = positive(mfu=mfu, flops_per_token=flops_per_token, peak=peak)
    if share > 1:
        raise ValueError(
            f"mfu = {short_repr(mfu)}: must be a share, at most 1; 0.4 is 40 %"
        )
    return share * peak / token


def conventions(model: Model, seq: int) -> dict[str, float]:
    """FLOPs of a token in training, as different authors count them.

    "matmuls, …" counts every matmul that the model needs; the second word is the kind
    of `keys_per_query`. "6 · …" counts 6 FLOPs per parameter, either without attention
    or, as in PaLM, with 12 · L · N · H · S for full attention.

    Args:
        model: any model; only the experts to which a token is sent count.
        seq: tokens of a sequence, S.

    >>> from shardmath.transformer import model
    >>> for name, token in conventions(model("llama 3 8b"), 8192).items():
    ...     print(f"{token / 1e9:.2f} {name}")
    51.47 matmuls, causal attention
    51.47 matmuls, half attention
    57.91 matmuls, full attention
    48.18 6 · params
    45.03 6 · params without input embedding
    41.88 6 · params without embeddings
    61.07 6 · params, full attention
    """
    counted = {kind: flops(model, seq, kind) for kind in ATTENTION}
    params = {kind: 6.0 * model.active(kind) for kind in ACTIVE}
    return {
        **{f"matmuls, {kind} attention": f.training for kind, f in counted.items()},
        "6 · params": params["all"],
        **{f"6 · params {kind}": params[kind] for kind in ACTIVE[1:]},
        "6 · params, full attention": params["all"] + 3 * counted["full"].attention,
    }
