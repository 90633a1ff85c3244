"""The reference Transformer in JAX: layers, head and loss, under any strategy.

The functions are written like the formulas, with the dimensions of `Model.layer`.
`Pins` says where arrays are placed; without it everything runs on one device. There are
no position encodings, because they need no matmul and no communication.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from ...transformer import Model
from ...transformer.architecture import checked
from ...transformer.flops import one_of
from .pins import NOWHERE, Pins
from .running import DTYPES

ArrayLike = jax.Array
Weights = Mapping[str, Any]  # arrays by name; those of the layers are under "layers"
NOT_HERE = (
    "experts", "latent", "parallel", "biases", "qkv_biases", "norm_biases", "qk_norm",
    "sinks", "positions", "relative", "window", "norm_after", "embedding_norm",
)  # fmt: skip

DOTS = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
POLICIES = {
    "dots": DOTS,
    "elementwise": jax.checkpoint_policies.save_from_both_policies(
        DOTS, jax.checkpoint_policies.save_only_these_names("A")
    ),
    "full": jax.checkpoint_policies.nothing_saveable,
}


def dims(model: Model) -> dict[str, Any]:
    """The dimensions of every weight by name. Weights of layers are under "layers".

    Raises:
        ValueError: `model` is not a Model, or has layers that this program lacks.

    >>> from shardmath.transformer import LLAMA_3_8B
    >>> dims(LLAMA_3_8B)["layers"]["q"], dims(LLAMA_3_8B)["unembed"]
    (('L', 'D', 'N', 'H'), ('D', 'V'))
    """
    found = [name for name in NOT_HERE if getattr(checked(model), name)]
    found += ["norms without scales"] * (not model.norm_scales)
    if found or model.norms != 2:
        what = ", ".join(found) or f"{model.norms} norms a layer"
        raise ValueError(
            f"{model.name} has {what}: this program has dense layers with one norm "
            "before attention and one before the MLP"
        )
    norms = {"norm_x": ("D",), "norm_z": ("D",)}
    layer = norms | {line.weight.name: line.weight.dims for line in model.layer}
    ends = {"embed": ("V", "D"), "norm": ("D",)}
    ends |= {} if model.tied else {"unembed": ("D", "V")}
    return {"layers": {name: ("L", *d) for name, d in layer.items()}, **ends}


def shapes(model: Model, dtype: str = "bf16") -> dict[str, Any]:
    """The weights as `jax.ShapeDtypeStruct`. Weights of layers are stacked over L.

    Raises:
        ValueError: `dtype` is unknown, or `dims` raises the error.

    >>> from math import prod
    >>> from shardmath.transformer import LLAMA_3_8B
    >>> found = jax.tree.leaves(shapes(LLAMA_3_8B))
    >>> sum(prod(one.shape) for one in found) == LLAMA_3_8B.params
    True
    """
    found = dims(model)
    one_of(tuple(DTYPES), dtype=dtype)
    sizes = {"L": model.layers, **model.dims}
    return jax.tree.map(
        lambda d: jax.ShapeDtypeStruct([sizes[dim] for dim in d], DTYPES[dtype]),
        found,
        is_leaf=lambda d: isinstance(d, tuple),
    )


def rms_norm(x: ArrayLike, scale: ArrayLike) -> ArrayLike:
    """x / √(mean of x² over D + 1e-6) · scale, in f32, then cast to the dtype of x."""
    wide = x.astype(jnp.float32)
    size = jax.lax.rsqrt(jnp.mean(wide**2, axis=-1, keepdims=True) + 1e-6)
    return (wide * size * scale.astype(jnp.float32)).astype(x.dtype)


def attention(Q: ArrayLike, K: ArrayLike, V: ArrayLike) -> ArrayLike:
    """Causal attention: softmax(Q · K / √H) · V, with the softmax in f32.

    Args:
        Q: queries [B, S, N, H].
        K, V: keys and values [B, S, K, H]. Each of the K heads serves N/K query heads.

    Returns:
        A [B, S, N, H].
    """
    B, S, N, H = Q.shape
    Q = Q.reshape(B, S, K.shape[2], -1, H)
    scores = jnp.einsum("BSKGH,BTKH->BKGST", Q, K).astype(jnp.float32) / H**0.5
    past = jnp.tril(jnp.ones((S, S), bool))
    P = jax.nn.softmax(jnp.where(past, scores, -jnp.inf)).astype(V.dtype)
    return jnp.einsum("BKGST,BTKH->BSKGH", P, V).reshape(B, S, N, H)


def _named_attention(Q: ArrayLike, K: ArrayLike, V: ArrayLike) -> ArrayLike:
    """Attention whose result has the name "A" for rematerialisation policies."""
    return checkpoint_name(attention(Q, K, V), "A")


def layer(
    x: ArrayLike,
    w: Weights,
    pins: Pins = NOWHERE,
    attend: Callable[[ArrayLike, ArrayLike, ArrayLike], ArrayLike] = attention,
) -> ArrayLike:
    """One layer: z = x + attention(norm(x)), then z + MLP(norm(z)).

    Args:
        x: the residual stream [B, S, D].
        w: the weights of this layer.
        pins: where arrays are placed.
        attend: the attention function of Q, K and V.
    """
    stream, times = x, pins.times

    x = pins.entering(pins.apply(rms_norm, stream, w["norm_x"], "D"), "BSD")
    Q = times("BSD,DNH->BSNH", x, w["q"])
    K, V = pins.heads(x, w["k"]), pins.heads(x, w["v"])
    A = pins.inside(attend(Q, K, V), "BSNH")
    stream = stream + times("BSNH,NHD->BSD", A, w["o"])

    z = pins.entering(pins.apply(rms_norm, stream, w["norm_z"], "D"), "BSD")
    u = times("BSD,DF->BSF", z, w["up"])
    if "gate" in w:
        h = jax.nn.silu(times("BSD,DF->BSF", z, w["gate"])) * u
    else:
        h = jax.nn.gelu(u)
    return stream + times("BSF,FD->BSD", pins.inside(h, "BSF"), w["down"])


def layers(
    x: ArrayLike, w: Weights, remat: str = "full", pins: Pins = NOWHERE
) -> ArrayLike:
    """All layers, one after another.

    Args:
        x: the residual stream [B, S, D].
        w: weights of the layers, stacked over L.
        remat: what is kept for the backward pass. "none": everything that it reads,
            except norms and gathered weights; "selective": the same, but without scores
            and softmax; "elementwise": the results of matmuls with weights and of
            attention; "dots": the results of matmuls with weights; "full": only the
            input of each layer. Everything else is computed again.
        pins: where arrays are placed.
    """
    pins = replace(pins, forget=remat in ("none", "selective"))
    attend = attention
    if remat == "selective":
        attend = jax.checkpoint(attention, prevent_cse=False)
    elif remat == "elementwise":
        attend = _named_attention

    def one(x: ArrayLike, w: Weights) -> tuple[ArrayLike, None]:
        return pins.between(layer(x, w, pins, attend), "BSD"), None

    if remat in POLICIES:
        one = jax.checkpoint(one, policy=POLICIES[remat], prevent_cse=False)
    return jax.lax.scan(one, x, w)[0]


def logits(
    w: Weights, tokens: ArrayLike, remat: str, pins: Pins = NOWHERE
) -> ArrayLike:
    """Scores [B, S, V] of the next token, with V the vocabulary.

    Args:
        w: all weights.
        tokens: integers [B, S].
        remat, pins: as for `layers`.
    """
    x = pins.apply(lambda tokens, embed: embed[tokens], tokens, w["embed"], "VD")
    x = layers(pins.leaving(x, "BSD"), w["layers"], remat, pins)
    x = pins.entering(pins.apply(rms_norm, x, w["norm"], "D"), "BSD")
    if "unembed" in w:
        return pins.times("BSD,DV->BSV", x, w["unembed"])
    return pins.times("BSD,VD->BSV", x, w["embed"])


def loss(
    w: Weights, tokens: ArrayLike, targets: ArrayLike, remat: str, pins: Pins = NOWHERE
) -> ArrayLike:
    """Mean cross-entropy in f32: logsumexp(logits) minus the logit of the target."""
    scores = logits(w, tokens, remat, pins).astype(jnp.float32)
    right = targets[..., None] == jnp.arange(scores.shape[-1])
    total = jax.nn.logsumexp(scores, axis=-1)
    return jnp.mean(total - jnp.sum(scores, axis=-1, where=right))
