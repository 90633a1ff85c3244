"""The reference Transformer: the same values however its arrays lie."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shardmath.referee.programs import block, steps
from shardmath.training import combine, data, fsdp, hybrid, pipeline, tensor, zero
from shardmath.transformer import LLAMA_3_70B, Model, model

TINY = Model("tiny", 2, 16, 32, 8, 4, 4, 64)
PLAIN = Model("plain", 2, 64, 128, 8, 8, 8, 64, gated=False, tied=True)
B, S = 8, 8
CLOSE = 1e-5  # of the largest value: f32, whose sums are taken in another order

STRATEGIES = [
    (fsdp("X"), {"X": 8}, "none"),
    (hybrid("Z", "X"), {"Z": 2, "X": 4}, "dots"),
    (combine(data("X"), tensor("Y", sequence=False)), {"X": 2, "Y": 4}, "dots"),
    (combine(fsdp("X"), tensor("Y")), {"X": 2, "Y": 4}, "full"),
    (tensor(("Y", "Z"), kv="Y"), {"Y": 4, "Z": 2}, "none"),
    (combine(data("X"), tensor("Y")), {"X": 2, "Y": 4}, "selective"),
]
each_strategy = pytest.mark.parametrize(
    ("strategy", "sizes", "remat"), STRATEGIES, ids=lambda one: getattr(one, "name", "")
)


def mesh_of(sizes):
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes))


def values(shapes):
    """Weights for these shapes: small, and the scales of the norms near 1."""
    rng = np.random.default_rng(0)

    def draw(path, one):
        noise = rng.standard_normal(one.shape) / 4
        return (noise + ("norm" in str(path[-1]))).astype("float32")

    return jax.tree_util.tree_map_with_path(draw, shapes)


def text(model):
    rng = np.random.default_rng(1)
    return [rng.integers(0, model.vocab, (B, S)).astype("int32") for _ in "xy"]


def placed(arrays, shapes):
    return jax.tree.map(lambda a, s: jax.device_put(a, s.sharding), arrays, shapes)


def assert_close(found, wanted):
    for path, one in jax.tree_util.tree_leaves_with_path(wanted):
        other = found
        for key in path:
            other = other[key.key]
        other, one = np.asarray(other), np.asarray(one)
        assert np.abs(other - one).max() < CLOSE * np.abs(one).max(), path


@cache
def gradients_here():
    """Weights of TINY and their gradients on one device, nothing pinned."""
    w = values(block.shapes(TINY, "fp32"))
    return w, jax.jit(lambda *args: jax.grad(block.loss)(*args, "full"))(w, *text(TINY))


@each_strategy
def test_gradients_are_those_of_one_device(strategy, sizes, remat):
    """Whatever lies where, and whatever is kept for the backward pass."""
    fn, shapes = steps.gradients(
        strategy, TINY, mesh_of(sizes), B, S, remat, "fp32", vocabulary=True
    )
    w, wanted = gradients_here()
    found = fn.lower(*shapes).compile()(*placed((w, *text(TINY)), shapes))
    assert_close(found, wanted)
    for one, asked in zip(*map(jax.tree.leaves, (found, shapes[0])), strict=True):
        assert one.sharding == asked.sharding


def test_attention_is_causal_and_groups_share_a_head():
    """Against sums over the past written out, one query at a time."""
    rng = np.random.default_rng(0)
    Q = rng.standard_normal((1, 5, 4, 2)).astype("float32")
    K, V = rng.standard_normal((2, 1, 5, 2, 2)).astype("float32")
    found = block.attention(*map(jnp.asarray, (Q, K, V)))
    for s in range(5):
        for n in range(4):
            weights = np.exp(K[0, : s + 1, n // 2] @ Q[0, s, n] / np.sqrt(2))
            wanted = weights @ V[0, : s + 1, n // 2] / weights.sum()
            np.testing.assert_allclose(found[0, s, n], wanted, rtol=1e-4)


@pytest.mark.parametrize("stage", [1, 3])
def test_a_step_with_zero_is_the_step_of_one_device(stage):
    fn, shapes = steps.train_step(
        zero(stage, "X"), TINY, mesh_of({"X": 8}), B, S, "full", "fp32"
    )
    state = jax.tree.map(lambda one: np.zeros(one.shape, one.dtype), shapes[0])
    state["weights"], gradients = gradients_here()
    wanted = jax.jit(steps.adam)(state, gradients)
    program = fn.lower(*shapes).compile()
    found, loss = program(*placed((state, *text(TINY)), shapes))
    assert np.log(TINY.vocab) < loss < 2 * np.log(TINY.vocab)  # it has learnt nothing
    assert_close(found, wanted)
    # The new state overwrites the old one, 12 bytes a parameter.
    held = program.memory_analysis().alias_size_in_bytes
    assert held == pytest.approx(12 * TINY.params / 8, rel=1e-3)


def test_adam_is_adam():
    """Two steps of one weight, by hand, as in the paper's algorithm."""
    m = v = 0.0
    w, state = 1.0, dict.fromkeys(("weights", "mean", "square", "turn"), 0.0)
    state["weights"] = w
    for t, g in enumerate((0.5, -0.25), 1):
        state = steps.adam(state, jnp.float32(g))
        m, v = 0.9 * m + 0.1 * g, 0.95 * v + 0.05 * g * g
        w -= 3e-4 * (m / (1 - 0.9**t)) / ((v / (1 - 0.95**t)) ** 0.5 + 1e-8)
        assert state["weights"] == pytest.approx(w, rel=1e-6)


def test_shapes_hold_every_parameter():
    """Counted by array against the closed form of `transformer`."""
    for shape in (TINY, PLAIN, LLAMA_3_70B):
        found = jax.tree.leaves(block.shapes(shape))
        assert sum(one.size for one in found) == shape.params


@pytest.mark.parametrize("shape", [LLAMA_3_70B, PLAIN], ids=lambda one: one.name)
def test_it_lowers_for_devices_that_are_not_here(shape):
    strategy, sizes = combine(fsdp("X"), tensor("Y")), {"X": 64, "Y": 4}
    fn, args = steps.gradients(strategy, shape, sizes, 64, 4096, vocabulary=True)
    text = fn.trace(*args).lower(lowering_platforms=("tpu",)).as_text()
    assert f"tensor<64x4096x{shape.D}xbf16>" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"strategy": data("X")}, r"\|X\| = 16 does not divide B = 8"),
        ({"strategy": tensor("X")}, r"\|X\| = 16 does not divide S = 8"),
        (
            {"strategy": tensor("X", sequence=False)},
            r"\|X\| = 16 does not divide N = 8",
        ),
        (
            {"strategy": tensor("X", sequence=False, kv=()), "mesh": {"X": 4}},
            "4 copies of K = 4 KV heads do not divide N = 8 query heads",
        ),
        ({"strategy": fsdp("Z")}, "mesh axis Z is not in the mesh"),
        (
            {"remat": "some"},
            "remat = 'some': must be one of none, elementwise",
        ),
        ({"dtype": "int8"}, "dtype = 'int8': must be one of"),
        ({"dtype": []}, r"dtype = \[\]: must be one of fp64, fp32, fp16, bf16"),
        (
            {"remat": []},
            r"remat = \[\]: must be one of none, elementwise",
        ),
        ({"strategy": "X"}, "strategy = 'X': must be a Strategy"),
        ({"model": None}, "model = None: must be a Model"),
        ({"mesh": 8}, "mesh = 8: must be a JAX mesh, or sizes as in {'X': 4}"),
        ({"mesh": {"X": "8"}}, "X = '8': must be a whole number from 1"),
        ({"vocabulary": "no"}, "vocabulary = 'no': must be True or False"),
        ({"pinned": None}, "pinned = None: must be True or False"),
        ({"strategy": pipeline("X")}, "pipeline over X: .* can't be split into"),
        ({"model": model("mixtral 8x7b")}, "has experts: this program has dense"),
        ({"model": replace(TINY, norms=4)}, "has 4 norms a layer: this program"),
        ({"model": replace(TINY, qkv_biases=True)}, "has qkv_biases: this program"),
        ({"model": replace(TINY, norm_scales=False)}, "has norms without scales: this"),
        ({"model": replace(TINY, norm_after=True)}, "has norm_after: this program has"),
    ],
)
def test_what_cannot_be_is_refused(change, said):
    asked = {"strategy": data("X"), "model": TINY, "mesh": {"X": 16}}
    with pytest.raises(ValueError, match=said):
        steps.gradients(**asked | {"seqs": B, "seq": S} | change)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: block.dims(None), "model = None: must be a Model"),
        (lambda: block.shapes(None), "model = None: must be a Model"),
        (lambda: block.shapes(TINY, "x"), "dtype = 'x': must be one of fp64, fp32"),
        (lambda: block.shapes(TINY, []), r"dtype = \[\]: must be one of fp64, fp32"),
    ],
)
def test_what_has_no_weights_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
