"""What a strategy moves, holds and takes: against counts, closed forms and limits."""

import math
from collections import Counter
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shardmath.hardware import chips
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import NVLinkDomain, Torus
from shardmath.referee import programs
from shardmath.training import (
    Strategy,
    combine,
    context,
    data,
    fsdp,
    hybrid,
    pipeline,
    step,
    tensor,
    zero,
)
from shardmath.transformer import (
    LLAMA_3_8B,
    LLAMA_3_70B,
    REMAT,
    Experts,
    Model,
    saved_bytes,
)

TOY = Model("toy", 4, 2048, 8192, 16, 16, 128, 32_000)
LAYER = 4 * 2048 * 2048 + 3 * 2048 * 8192  # weights of one layer of TOY


def steps(strategy, mesh, remat="full", model=TOY, seqs=16, seq=2048, **more):
    more = {"attention": "causal", "vocabulary": False} | more
    return step(strategy, model, mesh, seqs, seq, remat=remat, **more)


def counted(one):
    """How often each collective runs in a layer, by operation and axes."""
    found = Counter()
    for c in one.collectives:
        found[c.op, " ".join(c.axes)] += c.times / one.model.layers
    return dict(found)


# What XLA compiled for H100, a layer: ../shared notes, and `test_referee`.
COMPILED = [
    (data("X"), "none", {("all_reduce", "X"): 7}),
    (data("X"), "full", {("all_reduce", "X"): 7}),
    *[
        (fsdp("X"), remat, {("all_gather", "X"): 14, ("reduce_scatter", "X"): 7})
        for remat in REMAT
    ],
    (tensor("X", sequence=False), "none", {("all_reduce", "X"): 4}),
    (tensor("X", sequence=False), "dots", {("all_reduce", "X"): 4}),
    (tensor("X", sequence=False), "full", {("all_reduce", "X"): 5}),
    (tensor("X"), "none", {("all_gather", "X"): 4, ("reduce_scatter", "X"): 4}),
    (tensor("X"), "dots", {("all_gather", "X"): 6, ("reduce_scatter", "X"): 4}),
    (tensor("X"), "full", {("all_gather", "X"): 6, ("reduce_scatter", "X"): 5}),
]


@pytest.mark.parametrize(("strategy", "remat", "expected"), COMPILED)
def test_a_layer_moves_what_compilers_were_seen_to_move(strategy, remat, expected):
    assert counted(steps(strategy, {"X": 8}, remat)) == expected


def sent(op_factor, nbytes, n):
    return op_factor * nbytes * (n - 1) / n


@pytest.mark.parametrize("remat", REMAT)
@pytest.mark.parametrize("n", [2, 8])
def test_bytes_are_those_of_the_closed_forms(n, remat):
    """DP 2 · params bytes, ZeRO-1 and 2 the same, FSDP 1.5 times that, any remat."""
    weights = 2 * 4 * LAYER
    for strategy in (data("X"), zero(1, "X"), zero(2, "X")):
        assert steps(strategy, {"X": n}, remat).sent == pytest.approx(
            sent(2, weights, n)
        )
    found = steps(fsdp("X"), {"X": n}, remat)
    assert found.sent == pytest.approx(sent(3, weights, n))


BLOCKS = {
    "usual": {},
    "parallel": {"parallel": True},
    "four norms": {"norms": 4},
    "norms behind": {"norm_after": True},
}
each_block = pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)


def same(x):
    return x


def a_layer(x, w, read=same, added=same, parallel=False, norms=2, norm_after=False):
    """A layer in JAX; under tensor parallelism that of one chip, which has a head:
    `read` is what the blocks do with the stream, `added` with what they give."""

    def norm(x):
        return x / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + 1)

    before = same if norm_after else norm
    behind = norm if norm_after or norms == 4 else same
    stream, x = x, read(before(x))
    q, k, v = (x @ w for w in w[:3])
    y = behind(added(jax.nn.softmax(q @ k.T) @ v @ w[3]))
    z = x if parallel else read(before(stream + y))
    return stream + y + behind(added(jax.nn.silu(z @ w[4]) * (z @ w[5]) @ w[6]))


def products(remat, **block):
    """How many products JAX's gradient of two layers has, before any compiler."""
    layer = partial(a_layer, **block)
    run = jax.checkpoint(layer) if remat else layer
    grad = jax.grad(lambda w, x: jnp.sin(run(run(x, w), w)).sum(), (0, 1))
    x, square = jnp.ones((3, 4)), jnp.ones((4, 4))
    return jax.jit(grad).lower([square] * 7, x).as_text().count("dot_general")


@each_block
def test_jax_computes_again_what_a_step_does(block):
    """Not what is last in the stream, unless a norm stands behind it; where attention
    and MLP stand beside each other that is the last product of both."""
    work = steps(data("X"), {"X": 2}, model=replace(TOY, **block)).works[0]
    of_attention = 2
    again = len(work.plans["recompute"]) + of_attention
    assert products(True, **block) - products(False, **block) == 2 * again


def of_experts(remat, shared):
    """As `products`, of two layers whose MLP is four experts, two a token, and where
    `shared` one for all tokens beside them."""

    def layer(x, w):
        z = x + jax.nn.softmax(x @ w["q"] @ (x @ w["k"]).T) @ (x @ w["v"]) @ w["o"]
        gates, picks = jax.lax.top_k(jax.nn.sigmoid(z @ w["router"]), 2)
        slots = picks, jnp.arange(len(z))[:, None]  # one for each token
        t = jnp.zeros((4, *z.shape)).at[slots].set(z[:, None])
        g, u = (jnp.einsum("esd,edf->esf", t, w[name]) for name in ("gate", "up"))
        m = jnp.einsum("esf,efd->esd", jax.nn.silu(g) * u, w["down"])
        y = (gates[..., None] * m[slots]).sum(1)
        if shared:
            h = jax.nn.silu(z @ w["sharedgate"]) * (z @ w["sharedup"])
            y = y + h @ w["shareddown"]
        return z + y

    run = jax.checkpoint(layer) if remat else layer
    grad = jax.grad(lambda w, x: jnp.sin(run(run(x, w), w)).sum(), (0, 1))
    names = [line.weight.name for line in experts_of(shared).layer]
    dealt = ("gate", "up", "down")
    w = {name: jnp.ones((4,) * (2 + (name in dealt))) for name in names}
    return jax.jit(grad).lower(w, jnp.ones((3, 4))).as_text().count("dot_general")


def experts_of(shared):
    return replace(TOY, experts=Experts(4, 2, int(shared)))


@pytest.mark.parametrize("shared", [False, True])
def test_jax_computes_again_what_experts_answer(shared):
    """The gradient of a gate reads it. What a shared expert adds nothing reads."""
    work = steps(data("X"), {"X": 2}, model=experts_of(shared)).works[0]
    lines = [line.weight.name for line in experts_of(shared).layer]
    assert len(work.plans["recompute"]) == len(lines) - shared
    again = len(work.plans["recompute"]) + 2  # of attention
    assert of_experts(True, shared) - of_experts(False, shared) == 2 * again


@pytest.mark.parametrize("block", [{}, {"norms": 4}, {"norm_after": True}])
@pytest.mark.parametrize("remat", ["none", "full"])
def test_tensor_parallelism_adds_up_again_what_a_norm_behind_reads(remat, block):
    """A layer by hand: an AllReduce less where nothing reads the last sum."""
    L, B, D, n = 2, 16, 64, 8
    mesh = jax.make_mesh((n,), ("Y",))
    layer = partial(
        a_layer,
        read=lambda x: jax.lax.pcast(x, "Y", to="varying"),  # its gradient: added up
        added=lambda x: jax.lax.psum(x, "Y"),
        **block,
    )
    layer = jax.checkpoint(layer, prevent_cse=False) if remat == "full" else layer

    def gradients(x, *w):
        def run(x, w):
            return jnp.sin(jax.lax.scan(lambda x, w: (layer(x, w), None), x, w)[0])

        return jax.grad(lambda *args: run(*args).sum(), (0, 1))(x, w)

    columns, rows = jax.P(None, None, "Y"), jax.P(None, "Y", None)
    specs = [rows if i in (3, 6) else columns for i in range(7)]
    fn = jax.shard_map(
        gradients, mesh=mesh, in_specs=(jax.P(), *specs), out_specs=(jax.P(), (*specs,))
    )
    ones = [np.ones((L, D, D), "float32")] * 7
    x = programs.place(np.ones((B, D), "float32"), mesh, jax.P())
    w = [programs.place(one, mesh, at) for one, at in zip(ones, specs, strict=True)]
    program = programs.compiled(fn, x, *w)

    model = Model("a block", L, D, D, n, n, D // n, 64, **block)
    at = tensor("Y", sequence=False)
    derived = steps(at, {"Y": n}, remat, model, seqs=1, seq=B, precision="fp32")
    assert program.sent == derived.sent
    again = {"none": 4, "full": 6 if block else 5}
    assert counted(derived) == {("all_reduce", "Y"): again[remat]}


# A table that is embedding and head: one gradient, whoever adds to it.

TIED = Model("tied", 2, 64, 256, 8, 4, 8, 512, tied=True)
TABLES = [
    (data("X"), {"X": 8}),
    *[(zero(stage, "X"), {"X": 8}) for stage in (1, 2, 3)],
    (fsdp("X"), {"X": 8}),
    (hybrid("Z", "X"), {"Z": 2, "X": 4}),
    (combine(data("X"), context("C")), {"X": 4, "C": 2}),
    (combine(fsdp("X"), context("C", weights="shards")), {"X": 4, "C": 2}),
    *[
        (combine(kind("X"), tensor("Y", sequence)), {"X": 2, "Y": 4})
        for kind in (data, fsdp)
        for sequence in (True, False)
    ],
]


def lookup_and_head(at, table, again, words):
    """Words looked up, scored, and the table updated: on one chip, collectives by hand.

    It stands for the ends of a model: between them is nothing, the loss is the sum of
    sin(score), and the new table is its gradient. The table comes in twice, `again` for
    the head: a step forgets what it gathered, and XLA would keep it.
    """
    vocab, tokens = at.weights.get("V", ()), at.inner["B"] + at.inner.get("S", ())
    kept, state = at.weights.get("D", ()), at.state.get("D", ())
    sequence = vocab and vocab[0] in at.stream.get("S", ())

    def gathered(x, axes, dim):
        return jax.lax.all_gather(x, axes, axis=dim, tiled=True) if axes else x

    def added(x, axes, dim=None):
        if axes and dim is not None:
            return jax.lax.psum_scatter(x, axes, scatter_dimension=dim, tiled=True)
        return jax.lax.psum(x, axes) if axes else x

    def into_stream(x):
        return added(x, vocab, 1 if sequence else None)

    def into_block(x):
        return gathered(x, vocab if sequence else (), 1)

    whole = gathered(table, kept, 1)
    row = words - (jax.lax.axis_index(vocab) * len(whole) if vocab else 0)
    mine = (row >= 0) & (row < len(whole))
    x = into_stream(jnp.where(mine[..., None], whole[row], 0))
    whole, x = gathered(again, kept, 1), into_block(x)
    slopes = jnp.cos(x @ whole.T)
    dx = into_block(into_stream(slopes @ whole))
    d = jnp.einsum("bsv,bsd->vd", slopes, x)
    d = d.at[jnp.where(mine, row, len(d))].add(dx, mode="drop")
    d = added(d, state, 1)
    d = added(d, tuple(axis for axis in tokens if axis not in state))
    return gathered(d, tuple(axis for axis in state if axis not in kept), 1)


def by_operation(collectives):
    found = Counter()
    for one in collectives:
        found[one.op] += one.total_sent
    return +found


@pytest.mark.parametrize(
    ("at", "sizes"), TABLES, ids=lambda one: getattr(one, "name", "")
)
def test_a_tied_table_moves_what_a_program_by_hand_does(at, sizes):
    """Byte for byte, by operation: what a step has more with its vocabulary.

    Left to itself, XLA reduces the sums of lookup and head each by itself under plain
    data parallelism, so that what it makes of annotations is no measure here.
    """
    mesh = jax.make_mesh(tuple(sizes.values()), tuple(sizes))
    over = jax.P(at.weights.get("V"), at.weights.get("D"))
    rng = np.random.default_rng(0)
    words = rng.integers(0, 512, (8, 16)).astype("int32")
    table = rng.standard_normal((512, 64)).astype("float32")
    operands = (
        *[programs.place(table, mesh, over)] * 2,
        programs.place(words, mesh, jax.P(at.inner["B"], at.inner.get("S"))),
    )
    fn = jax.shard_map(
        lambda *args: lookup_and_head(at, *args),
        mesh=mesh,
        in_specs=tuple(one.sharding.spec for one in operands),
        out_specs=over,
        check_vma=False,
    )
    program = programs.compiled(fn, *operands)
    wanted = jax.grad(lambda w: jnp.sin(w[words] @ w.T).sum())(table)
    np.testing.assert_allclose(program.result, wanted, rtol=1e-3, atol=1e-3)

    with_ends, without = (
        steps(at, sizes, model=TIED, seqs=8, seq=16, precision="fp32", vocabulary=ends)
        for ends in (True, False)
    )
    derived = by_operation(with_ends.collectives)
    derived.subtract(by_operation(without.collectives))
    assert +derived == by_operation(program.collectives)


@pytest.mark.parametrize("n", [2, 8])
def test_a_tied_table_is_one_matrix_in_the_closed_forms(n):
    """As often as every other matrix, where two tables are gathered once each."""
    apart = replace(TIED, tied=False)
    layers = 2 * (TIED.matmul_params - 512 * 64)
    table = 2 * 512 * 64
    for strategy, factor, ends in (
        (data("X"), 2, 2),
        (zero(1, "X"), 2, 2),
        (zero(2, "X"), 2, 2),
        (fsdp("X"), 3, 2),
    ):
        one, two = (
            steps(strategy, {"X": n}, model=m, vocabulary=True) for m in (TIED, apart)
        )
        assert one.sent == sent(factor, layers + table, n)
        assert two.sent == sent(factor, layers, n) + 2 * sent(ends, table, n)


def test_the_ends_of_a_pipeline_add_up_the_gradient_of_their_one_table():
    """Both stages have a copy of it, and each a part of its gradient: as much is sent
    as by an AllReduce of two, once a step, and nothing where one stage has both ends.

    Megatron reduces the whole gradient over its "embedding group" of the two. Where the
    optimizer's state is shared, a chip needs its own part alone.
    """

    def swapped(strategy, sizes, model=TIED, **more):
        one = steps(strategy, sizes, model=model, seqs=16, seq=16, vocabulary=True,
                    microbatches=8, **more)  # fmt: skip
        stages = [one.at(n) for n in range(one.stages.count)]
        return [
            [c for c in at.collectives if c.op == "permute" and c.when == "update"]
            for at in stages
        ]

    four = replace(TIED, layers=4)
    table = 2 * 512 * 64
    (first,), *between, (last,) = swapped(pipeline("P"), {"P": 4}, four)
    assert first == last
    assert between == [[], []]
    assert first.total_sent == table == sent(2, table, 2)
    (shared,), _ = swapped(
        combine(pipeline("P"), zero(1, "X"), tensor("Y")), {"P": 2, "X": 2, "Y": 4}
    )
    assert shared.total_sent == table / 8
    assert swapped(pipeline("P"), {"P": 2}, four, schedule="zb-v") == [[], []]
    assert not any(swapped(pipeline("P"), {"P": 4}, replace(four, tied=False)))

    mesh = jax.make_mesh((4,), ("P",))
    parts = programs.place(np.array([1.0, 10, 100, 1000]), mesh, "d[I_P]")
    run = programs.by_hand(
        lambda d: d + jax.lax.ppermute(d, "P", first.pairs), mesh, ["d[I_P]"], "d[I_P]"
    )
    assert run(parts).tolist() == [1001, 10, 100, 1001]


@pytest.mark.parametrize("n", [2, 4, 16])
def test_sequence_parallelism_moves_the_same_bytes_where_nothing_is_recomputed(n):
    stream = 2 * 16 * 2048 * 2048
    for sequence in (True, False):
        found = steps(tensor("Y", sequence), {"Y": n}, "none")
        assert found.sent == pytest.approx(4 * sent(8, stream, n))


def test_copies_of_kv_heads_add_the_sums_of_their_weights_and_no_more():
    """More chips than KV heads: activations as ever, and an AllReduce of dk and dv."""
    model = replace(TOY, kv_heads=4)
    mesh = {"X": 2, "Y": 4, "Z": 2}
    strategy = combine(fsdp("X"), tensor(("Y", "Z"), kv="Y"))
    for remat in REMAT:
        expected = counted(steps(combine(fsdp("X"), tensor("Y")), mesh, remat))
        expected = {
            (op, axes.replace("Y", "Y Z")): n for (op, axes), n in expected.items()
        }
        found = steps(strategy, mesh, remat, model)
        assert counted(found) == expected | {("all_reduce", "Z"): 2}
    sums = [c for c in found.collectives if c.op == "all_reduce"]
    assert {c.nbytes for c in sums} == {2 * 2048 / 2 * 128}  # one head a chip, D over X


def test_copies_of_kv_heads_are_computed_by_each_chip():
    """|Z| chips make the same keys and values: FLOPs of k and v, times |Z|."""
    model = replace(TOY, kv_heads=4)
    mesh = {"Y": 4, "Z": 2}
    copied = steps(tensor(("Y", "Z"), kv="Y"), mesh, "none", model).flops
    alone = steps(data("X"), {"X": 1}, "none", model).flops
    keys = 2 * 2 * 16 * 2048 * 2048 * 4 * 128 * 4  # 2 FLOPs, k and v, of four layers
    assert 8 * copied["forward"] == pytest.approx(alone["forward"] + keys)


@pytest.mark.parametrize("kv", ["Z", ("Z", "Y"), "X"])
def test_kv_heads_are_split_over_the_first_of_the_axes(kv):
    with pytest.raises(ValueError, match="must be the first of the axes Y Z"):
        tensor(("Y", "Z"), kv=kv)


def test_replicas_of_shards_add_what_the_shards_have_reduced():
    """HSDP: FSDP over Y, then AllReduce over X of one shard of the gradients."""
    found = steps(hybrid("X", "Y"), {"X": 2, "Y": 4})
    weights = 2 * 4 * LAYER
    assert found.sent == pytest.approx(sent(3, weights, 4) + sent(2, weights / 4, 2))


def test_a_strategy_and_tensor_parallelism_divide_each_other():
    """Weights over Y are 1/|Y| to gather, the stream over X is 1/|X| to gather."""
    both = steps(combine(fsdp("X"), tensor("Y")), {"X": 4, "Y": 2}, "none")
    weights, stream = 2 * 4 * LAYER, 2 * 16 * 2048 * 2048
    expected = sent(3, weights / 2, 4) + 4 * sent(8, stream / 4, 2)
    assert both.sent == pytest.approx(expected)


@pytest.mark.parametrize(
    "strategy", [data("X"), fsdp("X"), tensor("X"), zero(1, "X"), data(())]
)
def test_one_chip_moves_nothing(strategy):
    assert steps(strategy, {"X": 1}).collectives == ()


def test_flops_are_split_over_all_chips_and_add_up():
    alone = steps(data("X"), {"X": 1}, vocabulary=True).flops
    for strategy in (data("X"), fsdp("X"), tensor("X"), tensor("X", False)):
        found = steps(strategy, {"X": 8}, vocabulary=True).flops
        assert {k: 8 * v for k, v in found.items()} == pytest.approx(alone)


def test_flops_of_training_are_six_a_weight_and_token():
    one = steps(data("X"), {"X": 1}, "none", vocabulary=True, attention="full")
    matmuls = 6 * TOY.matmul_params * one.tokens
    attention = 12 * 4 * 2048 * 16 * 128 * one.tokens  # 12 · L · S · N · H
    assert sum(one.flops.values()) == pytest.approx(matmuls + attention)


def test_gradients_of_microbatches_are_reduced_once_but_where_shards_are_kept():
    """DP and ZeRO-1 once a step, FSDP gathers and reduces every time."""
    for strategy, factor in ((data("X"), 1), (zero(1, "X"), 1), (fsdp("X"), 4)):
        one, four = (steps(strategy, {"X": 2}, microbatches=m) for m in (1, 4))
        assert four.sent == pytest.approx(factor * one.sent)
        assert sum(four.flops.values()) == pytest.approx(sum(one.flops.values()))


def test_state_of_zero_is_that_of_the_paper():
    """7.5 B parameters over 64 chips, in GB: figure 1 of arXiv:1910.02054."""
    model = replace(TOY, layers=1, d_model=4096, d_ff=4096)
    found = {}
    for stage, strategy in enumerate([data("X"), *(zero(s, "X") for s in (1, 2, 3))]):
        one = steps(strategy, {"X": 64}, model=model, seqs=64)
        held = sum(one.memory.parts[p] for p in ("state", "weights", "gradients"))
        whole = steps(data("X"), {"X": 64}, model=model, seqs=64).memory.parts
        params = whole["weights"] / 2
        found[stage] = held / params * 7.5
    assert found == pytest.approx({0: 120, 1: 31.4, 2: 16.6, 3: 1.9}, abs=0.05)


def test_sequence_parallelism_keeps_a_share_of_the_stream():
    split, whole = (steps(tensor("Y", s), {"Y": 8}).memory.parts for s in (True, False))
    assert whole["saved"] == 8 * split["saved"]
    assert whole["state"] == split["state"]


V5P = Mesh(Torus(chips.TPU_V5P, (4, 4, 4)), {"X": 16, "Y": 4})
NODE = Mesh(NVLinkDomain(chips.H100, 8), {"X": 8})


def test_at_the_critical_batch_math_takes_as_long_as_the_network():
    """FSDP: found by search, and in closed form tokens = V / bandwidth · peak / 6P."""
    one = step(fsdp("X"), LLAMA_3_8B, NODE, 8, 4096, attention="causal")
    tokens = one.critical_tokens
    network = one.estimate.seconds["network"]
    math = one.estimate.seconds["math"]
    assert tokens == pytest.approx(one.tokens_per_chip * network / math)


@pytest.mark.parametrize(("n", "binds"), [(4, False), (8, True), (16, True)])
def test_tensor_parallelism_binds_at_any_batch_or_at_none(n, binds):
    """Math and traffic both grow with the batch: only the axis decides."""
    model = replace(LLAMA_3_8B, kv_heads=32, heads=64, head=64)
    mesh = Mesh(Torus(chips.TPU_V5E, (1, n)), {"Y": n})
    one = step(tensor("Y"), model, mesh, 64, 4096, attention="causal", vocabulary=False)
    assert (one.critical_tokens == math.inf) == binds


def test_bounds_enclose_and_name_what_binds():
    one = step(
        combine(fsdp("X"), tensor("Y")), LLAMA_3_8B, V5P, 64, 4096, attention="causal"
    )
    assert one.estimate.lower == max(one.estimate.seconds.values())
    assert one.estimate.lower < one.estimate.upper
    assert "fits" in str(one)


@pytest.mark.parametrize(
    ("strategy", "mesh", "change", "said"),
    [
        (tensor("Y"), {"Y": 16}, {}, r"\|Y\| = 16 does not divide K = 8"),
        (data("X"), {"X": 64}, {"seqs": 32}, r"\|X\| = 64 does not divide B = 32"),
        (data("X"), {"Y": 64}, {}, "mesh axis X, but the mesh has Y = 64"),
        (data("X"), {"X": 2}, {"remat": "some"}, "remat = 'some': must be one of none"),
        (
            data("X"),
            {"X": 2},
            {"attention": "some"},
            "must be one of causal, half, full",
        ),
        (data("X"), {"X": 2}, {"microbatches": 3}, "3: must divide seqs = 16"),
        (data("X"), {"X": 2}, {"chunks": -1}, "chunks = -1: must be a whole number"),
        (data("X"), {"X": 2}, {"chunks": "8"}, "chunks = '8': must be a whole number"),
        (data("X"), {"X": 2}, {"vocabulary": "no"}, "vocabulary = 'no': must be True"),
    ],
)
def test_what_cannot_be_is_said(strategy, mesh, change, said):
    with pytest.raises(ValueError, match=said):
        steps(strategy, mesh, model=LLAMA_3_8B, **change)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: data(3), "axes = 3: must be names of mesh axes"),
        (lambda: zero(True, "X"), "stage = True: must be 1, 2 or 3"),
        (lambda: zero(1.0, "X"), "stage = 1.0: must be 1, 2 or 3"),
        (lambda: tensor("Y", kv=0), "kv = 0: must be names of mesh axes"),
        (lambda: tensor("Y", sequence="8"), "sequence = '8': must be True or False"),
        (combine, "needs strategies, such as"),
    ],
)
def test_what_is_no_strategy_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_a_stage_of_numpy_is_pythons():
    assert zero(np.int64(3), "X") == zero(3, "X")
    assert zero(np.int64(3), "X").name == "zero-3 over X"


def test_a_dimension_or_an_axis_is_not_taken_twice():
    with pytest.raises(ValueError, match="mesh axis X: is used by both fsdp over X"):
        combine(fsdp("X"), tensor("X"))
    with pytest.raises(ValueError, match=r"D \(weights\): is split by both fsdp"):
        combine(fsdp("X"), fsdp("Z"))
    with pytest.raises(ValueError, match="stage = 4: must be 1, 2 or 3"):
        zero(4, "X")
    with pytest.raises(ValueError, match="must map dimensions to axes"):
        Strategy("mine", weights="D")


def test_a_model_that_is_too_large_says_how_many_bytes_are_missing():
    one = step(data("X"), LLAMA_3_70B, NODE, 8, 4096, attention="causal")
    assert not one.memory.fits
    assert one.memory.missing == one.memory.total - chips.H100.memory_bytes
    assert "more than 79.6 GiB" in str(one)


def gathered_inputs(remat):
    """Bytes of the inputs of attention and MLP, which a chip keeps whole where nothing
    is computed or gathered again: two arrays [B, S, D] of four layers."""
    return 4 * 2 * 2 * 16 * 2048 * 2048 if remat == "none" else 0


@pytest.mark.parametrize("remat", REMAT)
def test_heads_and_hidden_layer_kept_are_shared_out(remat):
    """Over 4 chips each keeps a quarter of whatever a layer keeps, but for the inputs
    that were gathered over the sequence."""
    whole = steps(data("Y"), {"Y": 1}, remat).memory.parts["saved"]
    split = steps(tensor("Y"), {"Y": 4}, remat).memory.parts["saved"]
    inputs = gathered_inputs(remat)
    assert split == (whole - inputs) / 4 + inputs
    assert whole == 4 * saved_bytes(TOY, 16, 2048, remat)
    unfused = steps(data("Y"), {"Y": 1}, remat, kernel="unfused").memory.parts["saved"]
    layers = 4 * saved_bytes(TOY, 16, 2048, remat, kernel="unfused")
    mask = (remat == "none") * 5 * 16 * 16 * 2048**2  # once for all layers
    assert unfused == layers + mask
    copied = tensor(("Y", "Z"), kv="Y")
    few = replace(TOY, kv_heads=2)
    kept = steps(copied, {"Y": 2, "Z": 2}, remat, few).memory.parts["saved"]
    alone = steps(data("Y"), {"Y": 1}, remat, few).memory.parts["saved"]
    keys = 0 if remat == "full" else 4 * 2 * 2 * 16 * 2048 * 2 * 128
    split = alone - keys - inputs
    assert kept == split / 4 + keys / 2 + inputs
