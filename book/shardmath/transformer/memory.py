"""Bytes: activations kept for the backward pass, training state, KV cache, logits."""

from dataclasses import dataclass

from ..base.units import bytes_per_value, positive_int
from .architecture import Model, checked
from .lines import Matmul
from .remat import saved


def saved_bytes(
    model: Model,
    seqs: int,
    seq: int,
    remat: str,
    matmuls: tuple[Matmul, ...] | None = None,
    kernel: str = "fused",
) -> float:
    """Bytes of one layer's `saved` arrays, for `seqs` sequences of `seq` tokens.

    Args:
        model, remat, matmuls, kernel: as for `saved`.
        seqs, seq: sequences, B, and tokens of each, S.

    >>> from shardmath.transformer import REMAT
    >>> m = Model("a GPT", 4, 2048, 8192, 16, 16, 128, 32_000)
    >>> for remat in REMAT:
    ...     print(remat, round(saved_bytes(m, 1, 2048, remat) / 1e6, 1))
    none 167.9
    elementwise 117.6
    dots 109.1
    selective 167.8
    full 8.4
    >>> round(saved_bytes(m, 1, 2048, "none", kernel="unfused") / 1e6, 1)
    671.4
    """
    sizes = checked(model).sizes(seqs, seq)
    return sum(one.nbytes(sizes) for one in saved(model, remat, matmuls, kernel))


def korthikanti(model: Model, seqs: int, seq: int) -> float:
    """The usual closed form for a layer without remat: S·B·D·(34 + 5·N·S/D) bytes.

    Args:
        model: only D and N are read.
        seqs, seq: sequences, B, and tokens of each, S.

    Assumes:
        A GPT: F = 4·D, no gate, as many KV heads as query heads, dropout, and 16 bits
        except for dropout masks. Attention is not fused. A score takes 5 bytes: its
        softmax, the result of dropout, and the mask. With an f32 softmax, no dropout
        and an unfused kernel, `saved` finds 6 bytes per score for each layer, and
        `saved_once` another 5 for all layers together.

    Source:
        Korthikanti et al. (arXiv:2205.05198), equation 2, as quoted.

    >>> m = Model("a GPT", 4, 2048, 8192, 16, 16, 128, 32_000)
    >>> round(korthikanti(m, 1, 2048) / 1e6)
    478
    """
    seqs, seq = positive_int(seqs=seqs, seq=seq)
    return seqs * seq * (34 * checked(model).D + 5 * model.N * seq)


@dataclass(frozen=True)
class PerParam:
    """Bytes that training holds for each parameter.

    Args:
        state: bytes of the weight that the optimizer updates, and of its moments.
        copy: bytes of the weight in the forward pass's format, if that is another one.
        gradient: bytes of the gradient.

    >>> TRAINING["mixed"].total * 70.6e9 / 1e12  # Llama 3.1 70B: 1.13 TB
    1.1296
    """

    state: float
    copy: float
    gradient: float

    @property
    def total(self) -> float:
        return self.state + self.copy + self.gradient


# Adam: 4 bytes each for the weight and its two moments. "mixed" is ZeRO's 16 bytes
# (arXiv:1910.02054, section 3.1); with gradients in fp32 it is 18.
TRAINING = {
    "mixed": PerParam(state=12, copy=2, gradient=2),
    "mixed, fp32 gradients": PerParam(state=12, copy=2, gradient=4),
    "fp32": PerParam(state=12, copy=0, gradient=4),
}


def kv_cache(model: Model, seq: int, precision: str = "bf16") -> float:
    """Bytes of the keys and values of one sequence, in all layers.

        2 · K · H values a token and layer      latent: kv_rank + rope
        an indexer: + one key head of its size

    Args:
        model: any. A local layer keeps at most the tokens of its window. A recurrent
            layer keeps a state instead; see `recurrent_state`.
        seq: tokens of the sequence.
        precision: format of the cache.

    Raises:
        ValueError: `seq` is not a whole number from 1, the format is unknown, or
            `model` is not a Model.

    >>> from shardmath.transformer import model
    >>> kv_cache(model("llama 3 8b"), 1), kv_cache(model("deepseek v3"), 1)
    (131072.0, 70272.0)
    """
    (seq,) = positive_int(seq=seq)
    values = cached_values(model)
    tokens = model.global_layers * seq + model.local_layers * min(seq, model.window)
    return bytes_per_value(precision) * values * tokens


def cached_values(model: Model) -> int:
    """Values that a layer with attention keeps for one token.

        2 · K · H      latent: kv_rank + rope      an indexer: + one key head

    >>> from shardmath.transformer import model
    >>> cached_values(model("llama 3 8b")), cached_values(model("deepseek v3"))
    (2048, 576)
    """
    values = 2 * checked(model).kv_heads * model.head
    if model.latent:
        values = model.latent.kv_rank + model.latent.rope
    return values + (model.indexer.head if model.indexer else 0)


def recurrent_state(model: Model) -> float:
    """Bytes of the states that one sequence keeps in all recurrent layers. In most
    models there are none, so this is 0.

        layers · (4 · value heads · key · value + 2 · (taps − 1) · channels)

    Args:
        model: any model.

    Assumes:
        Matrices are in fp32 and inputs of the convolution are in bf16, as in vLLM and
        SGLang for Qwen3.5.

    Raises:
        ValueError: `model` is not a Model.

    >>> from shardmath.transformer import model
    >>> f"{recurrent_state(model('Qwen3.5 397B')) / 1e6:.0f} MB"
    '192 MB'
    """
    sizes = checked(model).recurrent
    if sizes is None:
        return 0.0
    history = (sizes.taps - 1) * sizes.channels
    return model.recurrent_layers * (4.0 * sizes.state + 2.0 * history)


def logits_bytes(model: Model, seqs: int, seq: int, precision: str = "fp32") -> float:
    """Bytes of the logits of all tokens: B · S · vocab values.

    >>> from shardmath.transformer import model
    >>> f"{logits_bytes(model('llama 3 8b'), 1, 8192) / 1e9:.1f} GB"
    '4.2 GB'
    """
    seqs, seq = positive_int(seqs=seqs, seq=seq)
    return bytes_per_value(precision) * seqs * seq * checked(model).vocab
