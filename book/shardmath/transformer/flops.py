"""FLOPs of one token, separately for the weights, attention and the head."""

from dataclasses import dataclass

from ..base.units import positive_int, short_repr, show
from .architecture import Model, checked
from .lines import Array, Matmul, matmul
from .remat import REMAT, Value, keeps, recompute

ATTENTION = ("causal", "half", "full")
# Stand-ins: a result of a matmul with a weight, and a value only attention reads.
RESULT = Value(Array("y", ("B", "F")), line=matmul("x[B, D] · w[D, F] -> y[B, F]"))
INSIDE = Value(Array("lse", ("B", "S", "N")))


@dataclass(frozen=True, repr=False)
class Flops:
    """FLOPs of one token in the forward pass, averaged over a sequence.

    Args:
        weights: FLOPs of the layers' matmuls with weights.
        attention: FLOPs of the scores, and of the weighted sum of values.
        head: FLOPs of the last matmul, which gives the logits.

    >>> Flops(100.0, 20.0, 5.0)
    375 FLOPs a token in training: weights 300, attention 60, head 15
    """

    weights: float
    attention: float
    head: float

    @property
    def forward(self) -> float:
        """The sum of all three."""
        return self.weights + self.attention + self.head

    @property
    def training(self) -> float:
        """3 · forward, because the backward pass needs twice the FLOPs of forward."""
        return 3 * self.forward

    def recomputed(self, remat: str) -> float:
        """FLOPs that the backward pass does a second time, by the usual count.

        Args:
            remat: the name of a policy of `recompute`: "dots" and "selective" recompute
                attention, "full" recomputes all of the layers, and "none" and
                "elementwise" recompute no matmul.

        Assumes:
            Either whole layers or all of attention are recomputed, as authors count
            hardware FLOPs. Recomputing the last matmul of a layer is unnecessary, and
            JAX leaves it out; see `recomputed`. For Llama 3.1 8B and 8,192 tokens, this
            matmul is 5.6 % of all FLOPs under "full" with causal attention, and 4.9 %
            with full attention.

        Raises:
            ValueError: another policy, or names of results to keep. The share of the
                weights that such names recompute depends on the model, so use
                `recomputed`.

        >>> flops = Flops(100.0, 20.0, 5.0)
        >>> [flops.training + flops.recomputed(remat) for remat in REMAT]
        [375.0, 375.0, 395.0, 395.0, 495.0]
        """
        one_of(REMAT, remat=remat)
        weights = 0.0 if keeps(remat, RESULT) else self.weights
        attention = 0.0 if keeps(remat, INSIDE) else self.attention
        return weights + attention

    def __repr__(self) -> str:
        parts = (
            f"{name} {show(3 * part)}" for name, part in vars(self).items() if part
        )
        total = show(self.training, "FLOPs")
        return f"{total} a token in training: {', '.join(parts)}"


def keys_per_query(seq: int, attention: str, window: int = 0) -> float:
    """The mean number of keys counted for a query of a sequence.

        full: W      half: W − W²/2S      causal: W − W(W − 1)/2S

    W is the window. Without one, W = S, and these are S, S/2 and (S + 1)/2.

    Args:
        seq: tokens of the sequence, S.
        attention: "causal" counts the keys that a query can see, including its own;
            "half", which is how most authors count causal attention, is half a key
            less; "full" counts all keys, masked or not.
        window: the maximum number of keys that a query can see; 0 for all.

    Raises:
        ValueError: an unknown way to count, or sizes that are not whole numbers.

    >>> [keys_per_query(8, attention) for attention in ATTENTION]
    [4.5, 4.0, 8.0]
    >>> keys_per_query(4, "causal", window=2)  # 1, 2, 2, 2
    1.75
    """
    one_of(ATTENTION, attention=attention)
    seq, window = positive_int(seq=seq, window=seq if window == 0 else window)
    seen = min(window, seq)
    masked = {"full": 0, "half": seen**2, "causal": seen * (seen - 1)}
    return seen - masked[attention] / (2 * seq)


def flops(model: Model, seq: int, attention: str) -> Flops:
    """FLOPs of one token, averaged over the tokens of a sequence.

        weights = 2 · active weights of the layers
        attention = 2 · keys · N · (H + H of the values), over the layers
        an indexer: + 2 · all keys · its heads · their size, and keys ≤ those chosen
        a recurrent layer: 6 · its state, instead of attention
        head = 2 · D · vocab

    Args:
        model: any model.
        seq: tokens of the sequence, S.
        attention: "causal", "half" or "full"; see `keys_per_query`.

    Assumes:
        Only matmuls count. Norms, activations, softmax and rotary positions add less
        than 1 % for D above 4,096. Latent attention works as in training: keys and
        values are computed from the latent instead of being absorbed into the queries.

    Raises:
        ValueError: as for `keys_per_query`, or `model` is not a Model.

    >>> from shardmath.transformer import model
    >>> flops(model("llama 3.1 8b"), 8192, "causal")
    51.5 GFLOPs a token in training: weights 41.9 G, attention 6.44 G, head 3.15 G
    """
    head = checked(model).head_line.weight.count(model.dims)
    values = model.latent.value if model.latent else model.head
    every = model.global_layers * keys_per_query(seq, attention)
    keys = every
    if model.local_layers:
        keys += model.local_layers * keys_per_query(seq, attention, model.window)
    inside = 0.0
    if model.indexer:
        index = model.indexer
        inside += 2.0 * every * index.heads * index.head
        keys = model.global_layers * keys_per_query(seq, attention, index.chosen)
    if model.recurrent:
        inside += 6.0 * model.recurrent_layers * model.recurrent.state
    return Flops(
        weights=2.0 * (model.active_matmul_params - head),
        attention=inside + 2.0 * keys * model.heads * (model.head + values),
        head=2.0 * head,
    )


def recomputed(
    model: Model, seq: int, attention: str, remat: str, *, bound: bool = False
) -> Flops:
    """FLOPs of one token that the backward pass does a second time.

        weights = 2 · active weights of the lines that are recomputed
        attention = 2 · keys · N · (H for the scores, H of the values for their sum)

    Args:
        model, seq, attention: as for `flops`.
        remat: as for `recompute`: a policy, or the names of the results to keep.
        bound: as for `recompute`: count only what no implementation can leave out.

    Returns:
        `Flops`, with their sum in `forward`; the head is never recomputed.

    Assumes:
        Attention is a fused kernel.

    Raises:
        ValueError: as for `flops` and `recompute`.

    >>> from shardmath.transformer import model
    >>> m = model("llama 3.1 8b")
    >>> for remat in ("dots", "full", "Q K V y"):
    ...     again = recomputed(m, 8192, "causal", remat)
    ...     print(f"{again.weights / 1e9:.2f} {again.attention / 1e9:.2f}")
    0.00 2.15
    10.20 2.15
    7.52 2.15
    """
    once = flops(model, seq, attention)
    found = [
        (count, recompute(model, lines, remat, bound=bound))
        for count, lines in model.stack
    ]
    weights = sum(
        count * model.met(line) for count, again in found for line in again.lines
    )
    layers = sum(  # that recompute attention; one of its products counts as a share
        count * _share_of_attention(model, product)
        for count, again in found
        for product in again.attention
    )
    return Flops(
        2.0 * weights, once.attention * layers / model.attention_layers, head=0.0
    )


def _share_of_attention(model: Model, product: Matmul) -> float:
    """The share of one product of `Model.attention` in the FLOPs of both."""
    sizes = {**model.dims, "B": 1, "S": 1, "T": 1}
    both = sum(line.flops(sizes) for line in model.attention)
    return product.flops(sizes) / both


def one_of(known: tuple[str, ...], **chosen: str) -> None:
    for name, value in chosen.items():
        if not isinstance(value, str) or value not in known:
            given = short_repr(value)
            raise ValueError(f"{name} = {given}: must be one of {', '.join(known)}")
