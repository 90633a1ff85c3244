"""Bytes: activations kept for the backward pass, training state, KV cache, logits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..units import PRECISION_BYTES, bytes_per_value, whole
from .flops import REMAT, one_of
from .lines import Array
from .model import Model, checked

WIDTHS = PRECISION_BYTES | {"bool": 1.0}


class Saved(NamedTuple):
    """An array that waits for the backward pass, and the format that it is kept in.

    >>> Saved(Array("x", ("B", "S", "D")), "bf16").nbytes({"B": 2, "S": 8, "D": 64})
    2048.0
    """

    array: Array
    format: str

    @property
    def width(self) -> float:
        """Bytes of one value."""
        return WIDTHS[self.format]

    def nbytes(self, sizes: Mapping[str, int]) -> float:
        """Bytes of all of it, where its dimensions have these sizes."""
        return self.width * self.array.count(sizes)

    def __str__(self) -> str:
        return f"{self.format} {self.array}"


STREAM, HEADS, MLP = ("B", "S", "D"), ("B", "S", "N", "H"), ("B", "S", "F")
KEYS = ("B", "S", "K", "H")
SCORES = ("B", "K", "G", "S", "T")
SUMS = SCORES[:-1]

# In order of the forward pass, as JAX keeps them: `programs.block` is the program.
ATTENTION = {
    "stream": (STREAM, "bf16"),
    "x": (STREAM, "bf16"),
    "Q": (HEADS, "bf16"),
    "K": (KEYS, "bf16"),
    "V": (KEYS, "bf16"),
    "exp": (SCORES, "fp32"),
    "sums": (SUMS, "fp32"),
    "slopes": (SUMS, "fp32"),  # of 1 / sum
    "P": (SCORES, "bf16"),
    "A": (HEADS, "bf16"),
    "middle": (STREAM, "bf16"),  # the stream behind attention
    "z": (STREAM, "bf16"),
}
# The same in every layer, so that a loop over layers keeps them once.
ONCE = {
    "mask": (SCORES, "bool"),
    "zeros": (SCORES, "fp32"),  # what the gradient of a masked score is
}
HIDDEN = {  # [B, S, F], bf16
    True: ("g", "u", "sigmoid", "its slope", "silu", "h"),
    False: ("u", "cubic", "tanh", "1 − tanh", "share", "h"),  # h = u · share
}


def saved(model: Model, remat: str) -> tuple[Saved, ...]:
    """The arrays of one layer that are kept for its backward pass.

    Args:
        model: a model of dense layers; any, where `remat` is "full".
        remat: "full" keeps the residual stream before the layer and does the layer
            again; "dots" keeps the results of matmuls with weights beside it, but for
            the last, which is only added to the stream; "none" keeps all that the
            backward pass reads.

    Assumes:
        The layer is `programs.block.layer`: RMSNorm before attention and before the
        MLP, causal softmax in f32, SiLU with a gate and GELU without, bf16 elsewhere;
        norms are done again under each policy. It is what JAX's autodiff keeps in a
        loop over layers, equal to `jax.ad_checkpoint.print_saved_residuals` to the
        byte; see `saved_once`. A compiler may keep less: XLA fuses what is cheap into
        the backward pass. A fused attention kernel keeps no array over S and T.

    Raises:
        ValueError: another policy; a model that the program does not have, but for
            "full".

    >>> tiny = Model("tiny", 2, 64, 256, 4, 2, 16, 1000)
    >>> print(*saved(tiny, "dots")[:3], sep=", ")
    bf16 stream[B, S, D], bf16 Q[B, S, N, H], bf16 K[B, S, K, H]
    >>> [len(saved(tiny, remat)) for remat in REMAT]
    [18, 7, 1]
    """
    one_of(REMAT, remat=remat)
    checked(model)
    stream = Saved(Array("stream", STREAM), "bf16")
    if remat == "full":
        return (stream,)
    _refuse(model, remat)
    if remat == "dots":
        results = (line.result for line in model.layer[:-1])
        return (stream, *(Saved(result, "bf16") for result in results))
    return _arrays(ATTENTION | dict.fromkeys(HIDDEN[model.gated], (MLP, "bf16")))


def saved_once(model: Model, remat: str) -> tuple[Saved, ...]:
    """What "none" keeps for all layers together: of the causal mask, 5 bytes a score.

    One layer by itself keeps 11 bytes a score, with the 6 of `saved`.

    Args:
        model, remat: as for `saved`.

    Raises:
        ValueError: as `saved`.

    >>> print(*saved_once(Model("tiny", 2, 64, 256, 4, 2, 16, 1000), "none"), sep=", ")
    bool mask[B, K, G, S, T], fp32 zeros[B, K, G, S, T]
    """
    one_of(REMAT, remat=remat)
    checked(model)
    if remat != "none":
        return ()
    _refuse(model, remat)
    return _arrays(ONCE)


def _arrays(kept: Mapping[str, tuple[tuple[str, ...], str]]) -> tuple[Saved, ...]:
    return tuple(Saved(Array(name, dims), fmt) for name, (dims, fmt) in kept.items())


def _refuse(model: Model, remat: str) -> None:
    """Raise for a layer that is not the program's, as far as it matters here."""
    unlike = ["experts", "latent", "parallel", "norm_after"]
    unlike += ["qk_norm", "sinks"] * (remat == "none")
    found = [name for name in unlike if getattr(model, name)]
    found += [f"{model.norms} norms a layer"] * (model.norms != 2)
    if found:
        raise ValueError(
            f"remat = {remat!r}: {model.name} has {', '.join(found)}; of such a layer "
            "the arrays are listed for 'full' alone"
        )


def saved_bytes(model: Model, seqs: int, seq: int, remat: str) -> float:
    """Bytes of one layer's `saved` arrays, for `seqs` sequences of `seq` tokens.

    >>> m = Model("a GPT", 4, 2048, 8192, 16, 16, 128, 32_000)
    >>> [round(saved_bytes(m, 1, 2048, remat) / 1e6, 1) for remat in REMAT]
    [671.4, 109.1, 8.4]
    """
    sizes = checked(model).sizes(seqs, seq)
    return sum(one.nbytes(sizes) for one in saved(model, remat))


def korthikanti(model: Model, seqs: int, seq: int) -> float:
    """The usual closed form for a layer without remat: S·B·D·(34 + 5·N·S/D) bytes.

    Args:
        model: of which D and N are read.
        seqs, seq: sequences B, tokens of each S.

    Assumes:
        A GPT: F = 4·D, no gate, as many KV heads as query heads, dropout, and 16 bits
        but for dropout's masks. A score costs 5 bytes: its softmax, what dropout leaves
        of that, and the mask. With an f32 softmax and no dropout `saved` finds 6, and
        `saved_once` 5 more for all layers together.

    Source:
        Korthikanti et al. (arXiv:2205.05198), equation 2, as quoted.

    >>> m = Model("a GPT", 4, 2048, 8192, 16, 16, 128, 32_000)
    >>> round(korthikanti(m, 1, 2048) / 1e6)
    478
    """
    seqs, seq = whole(seqs=seqs, seq=seq)
    return seqs * seq * (34 * checked(model).D + 5 * model.N * seq)


@dataclass(frozen=True)
class PerParam:
    """Bytes that training holds for each parameter.

    Args:
        state: weights that the optimizer updates, and its moments.
        copy: weights in the format of the forward pass, where that is another one.
        gradient: of the weights.

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
# (arXiv:1910.02054, section 3.1); gradients added up in fp32 make it 18.
TRAINING = {
    "mixed": PerParam(state=12, copy=2, gradient=2),
    "mixed, fp32 gradients": PerParam(state=12, copy=2, gradient=4),
    "fp32": PerParam(state=12, copy=0, gradient=4),
}


def kv_cache(model: Model, seq: int, precision: str = "bf16") -> float:
    """Bytes of the keys and values of one sequence, in all layers.

        2 · K · H values a token and layer      latent: kv_rank + rope

    Args:
        model: any; a local layer keeps at most its window.
        seq: tokens of the sequence.
        precision: format of the cache.

    Raises:
        ValueError: no whole number from 1, or an unknown format.

    >>> from shardmath.transformer import model
    >>> kv_cache(model("llama 3 8b"), 1), kv_cache(model("deepseek v3"), 1)
    (131072.0, 70272.0)
    """
    (seq,) = whole(seq=seq)
    values = 2 * checked(model).kv_heads * model.head
    if model.latent:
        values = model.latent.kv_rank + model.latent.rope
    local = model.layers - model.global_layers
    tokens = model.global_layers * seq + local * min(seq, model.window)
    return bytes_per_value(precision) * values * tokens


def logits_bytes(model: Model, seqs: int, seq: int, precision: str = "fp32") -> float:
    """Bytes of the scores of the next token: B · S · vocab, for each once.

    >>> from shardmath.transformer import model
    >>> f"{logits_bytes(model('llama 3 8b'), 1, 8192) / 1e9:.1f} GB"
    '4.2 GB'
    """
    seqs, seq = whole(seqs=seqs, seq=seq)
    return bytes_per_value(precision) * seqs * seq * checked(model).vocab
