"""Layers of every kind as plain JAX programs, to ask autodiff what it keeps and redoes.

They share no code with the package: a layer is written from the sizes of its model.
Experts get equally many tokens, sorted by expert, as where a router is balanced.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name as named

from shardmath.transformer import Model

FORMATS = {"bfloat16": "bf16", "float32": "fp32", "bool": "bool", "int32": "int32"}


def weights(m: Model) -> dict[str, jax.ShapeDtypeStruct]:
    """The matrices of a layer with experts, where the model has any."""
    D, N, K, H, F = m.d_model, m.heads, m.kv_heads, m.head, m.d_ff
    shapes = {"q": (D, N, H), "k": (D, K, H), "v": (D, K, H), "o": (N, H, D)}
    if m.latent:
        a = m.latent
        shapes = {
            "qdown": (D, a.q_rank), "qup": (a.q_rank, N, H),
            "kvdown": (D, a.kv_rank), "krope": (D, a.rope),
            "kup": (a.kv_rank, N, a.nope), "vup": (a.kv_rank, N, a.value),
            "o": (N, a.value, D),
        }  # fmt: skip
    some = (m.experts.count,) if m.experts else ()
    shapes |= {"up": (*some, D, F), "down": (*some, F, D)}
    shapes |= {"gate": (*some, D, F)} if m.gated else {}
    if m.experts:
        shapes["router"] = (D, m.experts.count)
        if m.experts.shared:
            wide = m.experts.shared * F
            shapes |= {"sharedup": (D, wide), "shareddown": (wide, D)}
            shapes |= {"sharedgate": (D, wide)} if m.gated else {}
    return {name: jax.ShapeDtypeStruct(s, jnp.bfloat16) for name, s in shapes.items()}


@partial(jax.checkpoint, prevent_cse=False)
def norm(x: jax.Array) -> jax.Array:
    """Without a scale: what it keeps is what it reads."""
    wide = x.astype(jnp.float32)
    size = jax.lax.rsqrt(jnp.mean(wide**2, axis=-1, keepdims=True) + 1e-6)
    return (wide * size).astype(x.dtype)


def scores_of(Q: jax.Array, K: jax.Array) -> tuple[jax.Array, jax.Array]:
    B, S, _, H = Q.shape
    Q = Q.reshape(B, S, K.shape[2], -1, H)
    scores = jnp.einsum("BSKGH,BTKH->BKGST", Q, K).astype(jnp.float32) / H**0.5
    return scores, jnp.tril(jnp.ones((S, S), bool))


def unfused(Q: jax.Array, K: jax.Array, V: jax.Array) -> jax.Array:
    scores, past = scores_of(Q, K)
    P = jax.nn.softmax(jnp.where(past, scores, -jnp.inf)).astype(V.dtype)
    A = jnp.einsum("BKGST,BTKH->BSKGH", P, V)
    return named(A.reshape(*Q.shape[:3], V.shape[-1]), "A")


@jax.custom_vjp
def fused(Q: jax.Array, K: jax.Array, V: jax.Array) -> jax.Array:
    """Stands for a kernel: what it hands to its backward pass is its own choice."""
    return unfused(Q, K, V)


def _ahead(Q: jax.Array, K: jax.Array, V: jax.Array) -> tuple:
    scores, past = scores_of(Q, K)
    lse = jax.nn.logsumexp(jnp.where(past, scores, -jnp.inf), axis=-1)
    lse = named(jnp.moveaxis(lse.reshape(Q.shape[0], Q.shape[2], -1), 1, 2), "lse")
    A = unfused(Q, K, V)
    return A, (Q, K, V, A, lse)


def _back(kept: tuple, dA: jax.Array) -> tuple:
    """Shapes alone matter here: each value that is kept is read once."""
    Q, K, V, A, lse = kept
    some = (A * dA).sum() * lse.sum().astype(Q.dtype)
    return Q * some, K * some, V * some


fused.defvjp(_ahead, _back)


def hidden(gate: jax.Array | None, up: jax.Array) -> jax.Array:
    return jax.nn.gelu(up) if gate is None else jax.nn.silu(gate) * up


@jax.custom_vjp
def fused_hidden(gate: jax.Array | None, up: jax.Array) -> jax.Array:
    """Stands for a kernel that keeps what comes in, and no step between."""
    return hidden(gate, up)


fused_hidden.defvjp(
    lambda gate, up: (hidden(gate, up), (gate, up)),
    lambda kept, d: jax.vjp(hidden, *kept)[1](d),
)


def mlp(
    activation: Callable,
    z: jax.Array,
    w: dict,
    kind: str = "",
    line: str = "BSD,DF->BSF",
) -> jax.Array:
    suffix = kind[:1]
    gate = w.get(f"{kind}gate")
    if gate is not None:
        gate = named(jnp.einsum(line, z, gate), f"g{suffix}")
    up = named(jnp.einsum(line, z, w[f"{kind}up"]), f"u{suffix}")
    back = {"BSD,DF->BSF": "BSF,FD->BSD", "ETD,EDF->ETF": "ETF,EFD->ETD"}[line]
    return named(jnp.einsum(back, activation(gate, up), w[f"{kind}down"]), f"m{suffix}")


def experts(m: Model, activation: Callable, z: jax.Array, w: dict) -> jax.Array:
    B, S, D = z.shape
    E, k = m.experts.count, m.experts.per_token
    r = named(jnp.einsum("BSD,DE->BSE", z, w["router"]), "r")
    gates, chosen = jax.lax.top_k(jax.nn.softmax(r.astype(jnp.float32)), k)
    order = jnp.argsort(chosen.ravel())
    token = (order // k).reshape(E, -1)
    t = named(rows(z.reshape(B * S, D), token), "t")
    m_of = mlp(activation, t, w, line="ETD,EDF->ETF")
    share = rows(gates.astype(z.dtype).ravel(), order).reshape(token.shape)
    answer = jnp.zeros((B * S, D), z.dtype)
    answer = answer.at[token].add(m_of * share[..., None], wrap_negative_indices=False)
    return answer.reshape(B, S, D)


def rows(x: jax.Array, which: jax.Array) -> jax.Array:
    return x.at[which].get(mode="promise_in_bounds", wrap_negative_indices=False)


def heads(m: Model, x: jax.Array, w: dict) -> tuple[jax.Array, jax.Array, jax.Array]:
    def line(notation: str, x: jax.Array, weight: str, name: str) -> jax.Array:
        return named(jnp.einsum(notation, x, w[weight]), name)

    if m.latent:
        cq = norm(line("BSD,DR->BSR", x, "qdown", "cq"))
        Q = line("BSR,RNH->BSNH", cq, "qup", "Q")
        ckv = norm(line("BSD,DR->BSR", x, "kvdown", "ckv"))
        R = line("BSD,DH->BSH", x, "krope", "R")[:, :, None]
        K = line("BSR,RNH->BSNH", ckv, "kup", "K")
        V = line("BSR,RNH->BSNH", ckv, "vup", "V")
        R = jnp.broadcast_to(R, (*K.shape[:3], R.shape[-1]))
        return Q, jnp.concatenate([K, R], axis=-1), V
    Q, K, V = (line("BSD,DNH->BSNH", x, name, name.upper()) for name in ("q", "k", "v"))
    return (norm(Q), norm(K), V) if m.qk_norm else (Q, K, V)


def layer(
    m: Model, activation: Callable, attend: Callable, x: jax.Array, w: dict
) -> jax.Array:
    """One layer; `activation` and `attend` are both fused, or neither is."""
    stream = x
    first = (lambda x: x) if m.norm_after else norm
    behind = norm if m.norms == 4 or m.norm_after else (lambda x: x)
    x = first(stream)
    y = named(jnp.einsum("BSNH,NHD->BSD", attend(*heads(m, x, w)), w["o"]), "y")
    stream = stream + behind(y)
    z = x if m.parallel else first(stream)
    many = partial(experts, m, activation) if m.experts else partial(mlp, activation)
    answer = many(z, w)
    if m.experts and m.experts.shared:
        answer = answer + mlp(activation, z, w, "shared")
    return stream + behind(answer)


def with_remat(m: Model, remat: str, kernel: str) -> Callable:
    """The layer, which keeps what a policy or a list of names says."""
    kernels = {"fused": (fused_hidden, fused), "unfused": (hidden, unfused)}
    activation, attend = kernels[kernel]
    if remat == "none":
        return partial(layer, m, activation, attend)
    if remat == "selective":
        keep_A = jax.checkpoint_policies.save_only_these_names("A")
        attend = jax.checkpoint(attend, prevent_cse=False, policy=keep_A)
        return partial(layer, m, activation, attend)
    names = remat.split()
    if remat in ("dots", "elementwise"):
        names = [*"QKVyrgum", "cq", "ckv", "R", "gs", "us", "ms"]
        names += [*"At"] * (remat == "elementwise")
    names = [] if remat == "full" else names
    names += ["lse"] * ("A" in names)
    policy = jax.checkpoint_policies.save_only_these_names(*names)
    return jax.checkpoint(
        partial(layer, m, activation, attend), prevent_cse=False, policy=policy
    )
