"""Programs of the reference Transformer: its gradients, and a whole training step."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from ...base.units import flags, short_repr
from ...sharding.machine import axes_of
from ...training import Strategy
from ...training.communication import Lines
from ...training.strategy import Layout
from ...transformer import REMAT, Model
from ...transformer.flops import one_of
from . import block
from .pins import AnyMesh, Pins
from .running import DTYPES

ProgramKind = tuple[Callable, tuple]  # a jitted function, and its arguments
RATE, MEAN, SQUARE, TINY = 3e-4, 0.9, 0.95, 1e-8  # common settings of Adam


def gradients(
    strategy: Strategy,
    model: Model,
    mesh: AnyMesh | Mapping[str, int],
    seqs: int,
    seq: int,
    remat: str = "full",
    dtype: str = "bf16",
    vocabulary: bool = False,
    pinned: bool = True,
) -> ProgramKind:
    """A program that computes the gradients of the weights.

    Args:
        strategy: how the arrays are sharded.
        model: dense, with one norm before attention and one before the MLP.
        mesh: a mesh of real devices or of a target's devices; or, for lowering or for
            `compilers.compile_for`, an `AbstractMesh` or sizes by axis name.
        seqs, seq: B, the sequences on all devices together, and S, the tokens of each.
        remat: a policy of `transformer.REMAT`; see `block.layers`.
        dtype: that of weights and activations, a key of `running.DTYPES` such as
            "bf16".
        vocabulary: whether to include embedding, head and cross-entropy. If False, the
            program has only the layers and differentiates the sum of their result.
        pinned: whether to pin arrays at both ends; see `Pins`.

    Returns:
        The jitted function, and its arguments as shapes with shardings: the weights and
        x, or all weights, tokens and targets.

    Raises:
        ValueError: a size is not divisible, the mesh lacks an axis, the strategy has
            pipeline stages, or another argument is not supported here.

    >>> from shardmath.training import fsdp
    >>> tiny = Model("tiny", 2, 64, 256, 8, 8, 8, 1000)
    >>> mesh = jax.make_mesh((8,), ("X",))
    >>> fn, (weights, x) = gradients(fsdp("X"), tiny, mesh, seqs=8, seq=16)
    >>> weights["q"].shape, weights["q"].sharding.spec
    ((2, 64, 8, 8), P(None, 'X', None, None))
    """
    (vocabulary,) = flags(vocabulary=vocabulary)
    pins = _pins(strategy, model, mesh, seqs, seq, remat, dtype, pinned)
    weights = _weights(pins, model, dtype, strategy.weights)
    ends = _weights(pins, model, dtype, strategy.gradients)

    def loss(w: block.Weights, tokens: jax.Array, targets: jax.Array) -> jax.Array:
        return block.loss(w, tokens, targets, remat, pins)

    def total(w: block.Weights, x: jax.Array) -> jax.Array:
        return jnp.sum(block.layers(x, w, remat, pins), dtype=jnp.float32)

    if vocabulary:
        program, args = loss, (weights, *_tokens(pins, seqs, seq))
    else:
        where = pins.sharding("BSD", strategy.stream)
        x = jax.ShapeDtypeStruct((seqs, seq, model.D), DTYPES[dtype], sharding=where)
        program, args, ends = total, (weights["layers"], x), ends["layers"]
    out = jax.tree.map(lambda one: one.sharding, ends)
    return jax.jit(jax.grad(program), out_shardings=out), args


def train_step(
    strategy: Strategy,
    model: Model,
    mesh: AnyMesh | Mapping[str, int],
    seqs: int,
    seq: int,
    remat: str = "full",
    dtype: str = "bf16",
) -> ProgramKind:
    """A program for a step with Adam, from a state to the next state and the loss.

    The state holds the weights and both moments in fp32, and is overwritten. The step
    casts the weights to `dtype` before it communicates them.

    Args and errors: as for `gradients`.

    Returns:
        The jitted function, and its arguments as shapes: the state, tokens and targets.

    >>> from shardmath.training import fsdp
    >>> tiny = Model("tiny", 2, 64, 256, 8, 8, 8, 1000)
    >>> mesh = jax.make_mesh((8,), ("X",))
    >>> fn, (state, tokens, targets) = train_step(fsdp("X"), tiny, mesh, seqs=8, seq=16)
    >>> tokens.shape
    (8, 16)
    """
    pins = _pins(strategy, model, mesh, seqs, seq, remat, dtype)
    wide = _weights(pins, model, "fp32", strategy.state)
    turn = jax.ShapeDtypeStruct((), "int32", sharding=pins.sharding("", {}))
    state = {"weights": wide, "mean": wide, "square": wide, "turn": turn}
    dims = block.dims(model)

    def lay(tree: Any, layout: Layout) -> Any:
        return jax.tree.map(lambda one, d: pins.at(one, d, layout), tree, dims)

    def step(state: dict, tokens: jax.Array, targets: jax.Array) -> tuple:
        narrow = jax.tree.map(lambda w: w.astype(DTYPES[dtype]), state["weights"])
        w = lay(lay(narrow, strategy.state), strategy.weights)
        loss, g = jax.value_and_grad(block.loss)(w, tokens, targets, remat, pins)
        return adam(state, lay(lay(g, strategy.gradients), strategy.state)), loss

    out = jax.tree.map(lambda one: one.sharding, state), turn.sharding
    program = jax.jit(step, donate_argnums=0, out_shardings=out)
    return program, (state, *_tokens(pins, seqs, seq))


def adam(state: dict, gradients: Any) -> dict:
    """The next state: w − rate · mean / √square, with both moments bias-corrected."""
    turn = state["turn"] + 1
    g = jax.tree.map(lambda g: g.astype(jnp.float32), gradients)

    def moment(decay: float, old: Any, new: Any) -> Any:
        return jax.tree.map(lambda a, b: decay * a + (1 - decay) * b, old, new)

    mean = moment(MEAN, state["mean"], g)
    square = moment(SQUARE, state["square"], jax.tree.map(jnp.square, g))

    def moved(w: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
        size = jnp.sqrt(s / (1 - SQUARE**turn)) + TINY
        return w - RATE * m / (1 - MEAN**turn) / size

    weights = jax.tree.map(moved, state["weights"], mean, square)
    return {"weights": weights, "mean": mean, "square": square, "turn": turn}


def _pins(
    strategy: Strategy,
    model: Model,
    mesh: AnyMesh | Mapping[str, int],
    seqs: int,
    seq: int,
    remat: str,
    dtype: str,
    pinned: bool = True,
) -> Pins:
    """Check the arguments of a program, and return its pins."""
    if not isinstance(strategy, Strategy):
        raise ValueError(
            f"strategy = {short_repr(strategy)}: must be a Strategy, such as fsdp('X')"
        )
    one_of(REMAT, remat=remat)
    one_of(tuple(DTYPES), dtype=dtype)
    (pinned,) = flags(pinned=pinned)
    if strategy.layers:
        raise ValueError(
            f"{strategy.name}: this program's layers can't be split into stages"
        )
    block.dims(model)
    mesh = _automatic(mesh)
    lines = Lines(strategy, dict(mesh.shape), model.sizes(seqs, seq), dtype)
    for line in (*model.layer, model.head_line):
        for one in (line.reads, line.result):
            lines.rest(one)  # raises if a size is not divisible
        for layout in (strategy.weights, strategy.gradients, strategy.state):
            lines.values(line.weight, layout)
    pins = Pins(strategy, mesh, pinned)
    if model.N % (model.K * pins.copies):
        raise ValueError(
            f"{pins.copies} copies of K = {model.K} KV heads do not divide "
            f"N = {model.N} query heads"
        )
    return pins


def _automatic(mesh: AnyMesh | Mapping[str, int]) -> AnyMesh:
    """The mesh with automatic axes, because those of `jax.make_mesh` are explicit."""
    if isinstance(mesh, jax.sharding.Mesh):
        return jax.sharding.Mesh(mesh.devices, mesh.axis_names)
    sizes = mesh.shape if isinstance(mesh, jax.sharding.AbstractMesh) else mesh
    if not isinstance(sizes, Mapping):
        raise ValueError(
            f"mesh = {short_repr(mesh)}: must be a JAX mesh, or sizes as in {{'X': 4}}"
        )
    sizes = axes_of(sizes)
    return jax.sharding.AbstractMesh(tuple(sizes.values()), tuple(sizes))


def _weights(pins: Pins, model: Model, dtype: str, layout: Layout) -> dict[str, Any]:
    """The weights as shapes, sharded as `layout` says."""
    return jax.tree.map(
        lambda one, d: one.update(sharding=pins.sharding(d, layout)),
        block.shapes(model, dtype),
        block.dims(model),
    )


def _tokens(pins: Pins, seqs: int, seq: int) -> tuple:
    """Tokens and targets as shapes, split into whole sequences over the axes of B."""
    where = pins.sharding("BS", {"B": pins.strategy.stream.get("B")})
    return (jax.ShapeDtypeStruct((seqs, seq), "int32", sharding=where),) * 2
