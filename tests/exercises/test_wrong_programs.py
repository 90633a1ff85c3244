"""Programs as readers write them, typed out: what is wrong with each is named.

None of them comes from a slip's own record, so a slip that names the wrong thing fails.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shardmath import exercises
from shardmath.exercises import answers
from shardmath.exercises.kinds import jax_export
from shardmath.exercises.kinds.program_result import ProgramResult
from shardmath.exercises.kinds.wrong_values import diagnose

EVERY = [(i, (i + 1) % 8) for i in range(8)]


def softmax_of_own_largest(x):  # 05.14
    powers = jnp.exp(100 * (x - x.max(1, keepdims=True)))
    return powers / jax.lax.psum(powers.sum(1, keepdims=True), "X")


def softmax_of_own_sum(x):
    powers = jnp.exp(100 * (x - jax.lax.pmax(x.max(1, keepdims=True), "X")))
    return powers / powers.sum(1, keepdims=True)


def softmax_that_overflows(x):
    powers = jnp.exp(100 * x)
    return powers / jax.lax.psum(powers.sum(1, keepdims=True), "X")


def softmax_without_the_factor(x):
    powers = jnp.exp(x - jax.lax.pmax(x.max(1, keepdims=True), "X"))
    return powers / jax.lax.psum(powers.sum(1, keepdims=True), "X")


def gathered_backwards(x):  # 05.11
    me = jax.lax.axis_index("X")
    whole = jnp.zeros((8, *x.shape)).at[me].set(x)
    for step in range(1, 8):
        x = jax.lax.ppermute(x, "X", EVERY)
        whole = whole.at[(me + step) % 8].set(x)
    return whole.reshape(-1, x.shape[1])


def scattered_one_too_far(x):  # 05.12
    me, parts = jax.lax.axis_index("X"), x.reshape(8, -1)
    total = parts[me]
    for step in range(1, 8):
        total = jax.lax.ppermute(total, "X", EVERY) + parts[(me - step) % 8]
    return total


def columns_joined_wrong(x):  # 05.13
    rows, width = x.shape
    cut = x.reshape(rows, 8, width // 8)
    return jax.lax.all_to_all(cut, "X", 1, 1).reshape(8 * rows, width // 8)


def half_gradient(w, x):  # 05.15
    def loss(w):
        return (x[0] @ jax.lax.all_gather(w, "X", tiled=True)) ** 2 / 2

    return jax.grad(loss)(w)


def activations_summed_then_cut(a, w):  # 06.13
    a = jax.lax.all_to_all(a, "X", 1, 0, tiled=True)
    rows = a.shape[0] // 8
    whole = jax.lax.psum(a @ w, "X")
    return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("X") * rows, rows)


def layer_without_activation(a, w1, w2):  # 06.14
    a = jax.lax.all_gather(a, "X", axis=1, tiled=True)
    return jax.lax.psum_scatter(a @ w1 @ w2, "X", scatter_dimension=1, tiled=True)


def directly(a, b):  # 06.15
    me, rows = jax.lax.axis_index("X"), a.shape[0] // 8

    def block(of):
        return jax.lax.dynamic_slice_in_dim(a, of % 8 * rows, rows, 0) @ b

    total = block(me)
    for step in range(1, 8):
        pairs = [(i, (i + step) % 8) for i in range(8)]
        total = total + jax.lax.ppermute(block(me + step), "X", pairs)
    return total


def all_keys(Q, K, V):  # 07.15
    parts = []
    for start in range(0, len(Q), len(Q) // 4):
        scores = Q[start : start + len(Q) // 4] @ K.T / Q.shape[1] ** 0.5
        parts.append(jax.nn.softmax(scores) @ V)
    return jnp.concatenate(parts)


def heads(Q, K, V, o, *, masked=True, root=True):  # 07.17
    scores = jnp.einsum("snh,tnh->nst", Q, K) / (Q.shape[2] ** 0.5 if root else 1)
    if masked:
        past = jnp.tril(jnp.ones(scores.shape[1:], bool))
        scores = jnp.where(past, scores, -jnp.inf)
    A = jnp.einsum("nst,tnh->snh", jax.nn.softmax(scores), V)
    return jnp.einsum("snh,nhd->sd", A, o)


def scattered_heads(*parts, **more):
    y = heads(*parts, **more)
    return jax.lax.psum_scatter(y, "X", scatter_dimension=0, tiled=True)


def first_rows_of_own_heads(*parts):
    y = heads(*parts)
    rows = len(y) // 8
    return jax.lax.dynamic_slice_in_dim(y, jax.lax.axis_index("X") * rows, rows)


def log_before_the_sum(x, w, right):  # 07.18
    scores = x @ w
    log = jnp.log(jnp.exp(scores).sum(1))
    return jax.lax.psum(log - (scores * right).sum(1), "X")


def log_of_own_sum(x, w, right):
    scores = x @ w
    own = jax.lax.psum((scores * right).sum(1), "X")
    return jnp.log(jnp.exp(scores).sum(1)) - own


def log_of_a_mean(x, w, right):
    scores = x @ w
    total = jax.lax.pmean(jnp.exp(scores).sum(1), "X")
    return jnp.log(total) - jax.lax.psum((scores * right).sum(1), "X")


def squared(w, x, y):
    return jnp.mean((x @ w - y) ** 2)


def summed_for_mean(x, y, w):  # 08.8
    own = jax.lax.pcast(w, "X", to="varying")
    return jax.lax.psum(jax.grad(squared)(own, x, y), "X")


def not_made_its_own(x, y, w):
    return jax.lax.pmean(jax.grad(squared)(w, x, y), "X")


def never_summed(x, y, w):
    own = jax.lax.pcast(w, "X", to="varying")
    return jax.grad(squared)(own, x, y)


def mean_of_means(x, y, w, m):  # 08.9
    own = jax.lax.pcast(w, "X", to="varying")

    def loss(w):
        return jnp.sum(m[:, None] ** 2 * (x @ w - y) ** 2) / jnp.sum(m**2)

    return jax.lax.pmean(jax.grad(loss)(own), "X")


def within_the_slice_alone(x, w):  # 08.12
    own = jax.lax.pcast(w, ("Z", "X"), to="varying")
    return jax.lax.psum(jax.grad(lambda w: jnp.sum((x @ w) ** 2) / 2)(own), "X")


def across_the_slices_alone(x, w):
    own = jax.lax.pcast(w, ("Z", "X"), to="varying")
    return jax.lax.psum(jax.grad(lambda w: jnp.sum((x @ w) ** 2) / 2)(own), "Z")


def hybrid_mean(x, w):  # 09.13
    def loss(shard):
        whole = jax.lax.all_gather(shard, "X", axis=0, tiled=True)
        return jnp.sum(jnp.tanh(x @ whole))

    own = jax.lax.pcast(w, "Z", to="varying")
    return jax.lax.pmean(jax.grad(loss)(own), "Z")


def log_sum_of_own_largest(x, unembed):  # 10.11
    logits = x @ unembed
    top = logits.max(-1)
    total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(-1), "Y")
    return top + jnp.log(total)


def log_sum_without_top(x, unembed):
    logits = x @ unembed
    top = jax.lax.pmax(logits.max(-1), "Y")
    return jnp.log(jax.lax.psum(jnp.exp(logits - top[:, None]).sum(-1), "Y"))


def log_sum_of_log_sums(x, unembed):
    logits = x @ unembed
    return jax.lax.psum(jax.nn.logsumexp(logits, axis=-1), "Y")


def direct_sends(q, k, v):  # 11.9
    found = jax.nn.relu(q @ k.T) @ v
    for step in range(1, 8):
        pairs = [(i, (i + step) % 8) for i in range(8)]
        keys, values = jax.lax.ppermute((k, v), "Z", pairs)
        found += jax.nn.relu(q @ keys.T) @ values
    return found


def both_ways_round(q, k, v):
    """Right, and a ring: keys go round in both directions."""
    back = [(b, a) for a, b in EVERY]
    found = jax.nn.relu(q @ k.T) @ v
    right, left = (k, v), (k, v)
    for step in range(4):
        right = jax.lax.ppermute(right, "Z", EVERY)
        found += jax.nn.relu(q @ right[0].T) @ right[1]
        if step < 3:
            left = jax.lax.ppermute(left, "Z", back)
            found += jax.nn.relu(q @ left[0].T) @ left[1]
    return found


def gathered_attention(q, k, v, *, mask=True, index=True):  # 11.10
    k = jax.lax.all_gather(k, "Z", axis=0, tiled=True)
    v = jax.lax.all_gather(v, "Z", axis=0, tiled=True)
    first = jax.lax.axis_index("Z") * len(q) if index else 0
    sees = (first + jnp.arange(len(q)))[:, None] >= jnp.arange(len(k))
    scores = q @ k.T
    return jax.nn.softmax(jnp.where(sees, scores, -jnp.inf) if mask else scores) @ v


def own_keys_alone(q, k, v):
    sees = jnp.tril(jnp.ones((len(q), len(q)), bool))
    return jax.nn.softmax(jnp.where(sees, q @ k.T, -jnp.inf)) @ v


def keys_and_values_at_once(q, k, v):
    both = jax.lax.all_gather(jnp.concatenate([k, v], 1), "Z", axis=0, tiled=True)
    k, v = both[:, : k.shape[1]], both[:, k.shape[1] :]
    sees = jax.lax.axis_index("Z") * len(q) + jnp.arange(len(q))
    scores = jnp.where(sees[:, None] >= jnp.arange(len(k)), q @ k.T, -jnp.inf)
    return jax.nn.softmax(scores) @ v


def merged_without_the_largest(m, r, U):  # 11.12
    total = jax.lax.psum(1 + r[0] ** 2, "Z")
    return jax.lax.psum(U[0], "Z") / total[:, None]


def merged_by_exponentials(m, r, U):
    scale = jnp.exp(100 * m[0])
    total = jax.lax.psum(scale * (1 + r[0] ** 2), "Z")
    return jax.lax.psum(scale[:, None] * U[0], "Z") / total[:, None]


def merged_in_one_sum(m, r, U):
    """Right: sums and totals in one AllReduce of as many bytes."""
    m = 100 * m[0]
    scale = jnp.exp(m - jax.lax.pmax(m, "Z"))[:, None]
    both = jnp.concatenate([scale * U[0], scale * (1 + r[0] ** 2)[:, None]], 1)
    both = jax.lax.psum(both, "Z")
    return both[:, :-1] / both[:, -1:]


def handed_back(x):  # 12.9
    return jax.lax.ppermute(x, "P", [(i + 1, i) for i in range(7)])


def handed_round(x):
    return jax.lax.ppermute(x, "P", EVERY)


def pipeline(x, w, *, first=7, summed=True):  # 12.10
    s, M = jax.lax.axis_index("P"), len(x)

    def tick(arrived, i):
        here = jnp.where(s == 0, x[jnp.minimum(i, M - 1)], arrived)
        out = jax.nn.relu(here @ w[0])
        return jax.lax.ppermute(out, "P", [(i, i + 1) for i in range(7)]), out

    nothing = jax.lax.pcast(jnp.zeros_like(x[0]), "P", to="varying")
    _, out = jax.lax.scan(tick, nothing, jnp.arange(M + 7))
    out = out[first : first + M]
    return jax.lax.psum(jnp.where(s == 7, out, 0), "P") if summed else out


def all_microbatches_at_once(x, dy):  # 12.11
    return jax.lax.psum(jnp.einsum("mbd,mbf->df", x, dy), "R")


def one_by_one(x, dy):
    """Right: a loop of Python is a loop, too."""
    return jax.lax.psum(sum(x[m].T @ dy[m] for m in range(len(x))), "R")


def own_terms(x, dy):
    return sum(x[m].T @ dy[m] for m in range(len(x)))


def without_gates(z, gates, w):  # 13.9
    z = jax.lax.all_gather(z, "X", axis=0, tiled=True)
    y = jnp.einsum("bd,edf->bf", z, w)
    return jax.lax.psum_scatter(y, "X", scatter_dimension=0, tiled=True)


def scores_for_counts(scores):  # 13.10
    return jax.lax.psum(scores.sum(0), "X")


def own_counts(scores):
    return jax.nn.one_hot(scores.argmax(1), scores.shape[1]).sum(0)


def mlp_without_the_sum(z, up, down):  # 14.9
    up = jax.lax.all_gather(up, "X", axis=0, tiled=True)
    down = jax.lax.all_gather(down, "X", axis=1, tiled=True)
    return jax.nn.relu(z @ up) @ down


def mlp_with_a_mean(z, up, down):
    return jax.lax.pmean(mlp_without_the_sum(z, up, down), "Y")


def gathered_together(Q, K, V):  # 14.10
    both = jax.lax.all_gather(jnp.concatenate([K, V], 2), "X", axis=1, tiled=True)
    K, V = jnp.split(both, 2, axis=2)
    return (Q @ K.transpose(0, 2, 1)) @ V


def stack_gradient(x, w, *, forgets=True):  # 09.11
    def layer(x, shard):
        return jnp.tanh(x @ jax.lax.all_gather(shard, "X", axis=0, tiled=True))

    layer = jax.checkpoint(layer) if forgets else layer

    def loss(w):
        y = x
        for shard in w:
            y = layer(y, shard)
        return jnp.sum(y)

    return jax.grad(loss)(w)


def stack_gradient_that_keeps(x, w):
    return stack_gradient(x, w, forgets=False)


def updated(x, m, w, *, decay=0.9, index=True):  # 09.12
    own = jax.lax.pcast(w, "X", to="varying")
    g = jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(own)
    g = jax.lax.psum_scatter(g, "X", scatter_dimension=0, tiled=True)
    first = jax.lax.axis_index("X") * len(m) if index else 0
    rows = jax.lax.dynamic_slice_in_dim(own, first, len(m)) - 0.1 * (decay * m + g)
    return jax.lax.all_gather(rows, "X", axis=0, tiled=True)


def sorted_backwards(x):  # 11.11
    whole = jax.lax.all_to_all(x, "Z", 1, 0, tiled=True)
    return jax.lax.all_to_all(-jnp.sort(-whole, 0), "Z", 0, 1, tiled=True)


def rows_scattered(a, w):  # 06.18
    w = jax.lax.all_gather(w, "X", axis=0, tiled=True)
    return jax.lax.psum_scatter(a @ w, "Y", scatter_dimension=0, tiled=True)


def one_product(a, b, c, d):  # 06.11
    return jnp.einsum("ij,jk->ik", a, b, out_sharding=jax.P())


def all_microbatches(x, w):  # 08.10
    own = jax.lax.pcast(w, "X", to="varying")
    return jax.lax.psum(jax.grad(lambda w: jnp.sum((x @ w) ** 2) / 2)(own), "X")


def in_bf16(x):  # 05.11
    return jax.lax.all_gather(x.astype("bfloat16"), "X", tiled=True).astype(x.dtype)


def with_a_softmax(Q, K, V):  # 14.10
    K, V = (jax.lax.all_gather(one, "X", axis=1, tiled=True) for one in (K, V))
    return jax.nn.softmax(Q @ K.transpose(0, 2, 1)) @ V


def sum_of_products(Q, K, V):
    return Q @ jax.lax.psum(K.transpose(0, 2, 1) @ V, "X")


def queries_gathered(Q, K, V):
    rows, me = Q.shape[1], jax.lax.axis_index("X")
    Q, K, V = (jax.lax.all_gather(one, "X", axis=1, tiled=True) for one in (Q, K, V))
    A = (Q @ K.transpose(0, 2, 1)) @ V
    return jax.lax.dynamic_slice_in_dim(A, me * rows, rows, 1)


def all_of_the_sum(x):  # 05.12
    return jax.lax.psum(x[0], "X")


def stack_gathered_at_once(x, w):
    def loss(w):
        y = x
        for whole in jax.lax.all_gather(w, "X", axis=1, tiled=True):
            y = jnp.tanh(y @ whole)
        return jnp.sum(y)

    return jax.grad(loss)(w)


def layer_of_gathered_weights(x, up, down):  # 20.11
    up, down = (jax.reshard(one, jax.P(None, None)) for one in (up, down))
    return jax.nn.relu(x @ up) @ down


def layer_without_maximum(x, up, down):
    up, down = jax.reshard(up, jax.P(None, "Y")), jax.reshard(down, jax.P("Y", None))
    at = jax.P("X", None)
    return jnp.einsum("bf,fd->bd", x @ up, down, out_sharding=at)


def running_with_own_total(x):  # 20.12
    totals = jax.lax.all_gather(x.sum(0), "X")
    before = jnp.arange(8) <= jax.lax.axis_index("X")
    return jnp.cumsum(x, 0) + jnp.where(before[:, None], totals, 0).sum(0)


def running_over_all_rows(x):
    whole = jax.lax.all_gather(x, "X", tiled=True)
    start = jax.lax.axis_index("X") * x.shape[0]
    return jax.lax.dynamic_slice_in_dim(jnp.cumsum(whole, 0), start, x.shape[0])


def added_means(x, c):  # 20.13
    return jax.lax.psum(jnp.mean((x - c) ** 2), "X")


def added_squares(x, c):
    return jax.lax.psum(jnp.sum((x - c) ** 2), "X")


@pytest.mark.parametrize(
    ("question", "answer", "slip"),
    [
        ("05.11", lambda x: x, "a part of the result"),
        ("05.12", all_of_the_sum, "more than its part"),
        ("06.11", one_product, "only the first product"),
        ("06.18", rows_scattered, "cut along another dimension"),
        ("08.10", all_microbatches, "too much held at once"),
        ("09.12", updated, None),
        ("09.12", lambda *a: updated(*a, decay=0), "the momentum left out"),
        ("09.12", lambda *a: updated(*a, decay=1), "the momentum not decayed"),
        (
            "09.12",
            lambda *a: updated(*a, index=False),
            "the first rows on every device",
        ),
        ("03.14", lambda x, W: x[0] @ W, "the first row"),
        ("05.11", in_bf16, "close, not exact"),
        ("05.11", lambda x: gathered_backwards(x)[0], "another number of dimensions"),
        ("05.11", lambda x: gathered_backwards(x) * 1j, ""),
        ("11.11", sorted_backwards, "in another order"),
        ("14.10", with_a_softmax, "a softmax"),
        ("14.10", lambda Q, K, V: (Q @ K.mT) @ V, "only its own part"),
        ("14.10", sum_of_products, "a sum of products of keys and values"),
        ("14.10", queries_gathered, "queries gathered too"),
        ("05.11", gathered_backwards, "in another order"),
        ("05.12", scattered_one_too_far, "shifted along the mesh"),
        ("05.13", columns_joined_wrong, "in another order"),
        ("05.14", softmax_of_own_largest, "each chip's own maximum"),
        ("05.14", softmax_of_own_sum, "NaN or infinity"),
        ("05.14", softmax_that_overflows, "NaN or infinity"),
        ("05.14", softmax_without_the_factor, "the scores as they are"),
        ("05.15", half_gradient, "a constant factor"),
        ("06.13", activations_summed_then_cut, "sum, then slice"),
        ("06.14", layer_without_activation, "no activation"),
        ("06.15", directly, "no ring"),
        ("07.15", all_keys, "no mask"),
        ("07.17", lambda *a: scattered_heads(*a, masked=False), "no mask"),
        ("07.17", lambda *a: scattered_heads(*a, root=False), "no scale"),
        ("07.17", first_rows_of_own_heads, "only its own part"),
        ("07.18", log_before_the_sum, "a sum of finished results"),
        ("07.18", log_of_own_sum, "the logarithm of its own sum"),
        ("07.18", log_of_a_mean, "a factor inside the logarithm"),
        ("08.8", summed_for_mean, "n times too large"),
        ("08.8", not_made_its_own, "n times too large"),
        ("08.8", never_summed, "only its own part"),
        ("08.9", mean_of_means, "a mean of means"),
        ("08.12", within_the_slice_alone, "only its own part"),
        ("08.12", across_the_slices_alone, "only its own part"),
        ("09.11", stack_gradient, None),
        ("09.11", stack_gradient_that_keeps, "the gathered weights kept"),
        ("09.11", stack_gathered_at_once, "all layers at once"),
        ("09.13", hybrid_mean, "n times too small"),
        ("10.11", log_sum_of_own_largest, "a maximum of its own"),
        ("10.11", log_sum_without_top, "the largest not put back"),
        ("10.11", log_sum_of_log_sums, "a sum of finished results"),
        ("11.9", direct_sends, "no ring"),
        ("11.9", both_ways_round, None),
        ("11.10", lambda *a: gathered_attention(*a, mask=False), "no mask"),
        (
            "11.10",
            lambda *a: gathered_attention(*a, index=False),
            "positions from zero on every device",
        ),
        ("11.10", own_keys_alone, "only its own part"),
        ("11.10", keys_and_values_at_once, None),
        ("11.12", merged_without_the_largest, "without the largest"),
        ("11.12", merged_by_exponentials, "NaN or infinity"),
        ("11.12", merged_in_one_sum, None),
        ("12.9", handed_back, "the wrong way"),
        ("12.9", handed_round, "round the ring"),
        ("12.9", lambda x: x, "nothing handed on"),
        ("12.10", lambda *a: pipeline(*a, first=6), "one tick early"),
        (
            "12.10",
            lambda *a: pipeline(*a, summed=False),
            "right on one device",
        ),
        ("12.11", all_microbatches_at_once, "no loop"),
        ("12.11", one_by_one, None),
        ("12.11", own_terms, "only its own part"),
        ("13.9", without_gates, "gates left out"),
        ("13.10", scores_for_counts, "scores added up"),
        ("13.10", own_counts, "only its own part"),
        ("14.9", mlp_without_the_sum, "only its own part"),
        ("14.9", mlp_with_a_mean, "n times too small"),
        ("14.10", gathered_together, None),
        ("20.11", layer_of_gathered_weights, "weights gathered over both axes"),
        ("20.11", layer_without_maximum, "no activation"),
        ("20.12", lambda x: jnp.cumsum(x, 0), "each part by itself"),
        ("20.12", running_with_own_total, "its own total added too"),
        ("20.12", running_over_all_rows, "everything gathered"),
        ("20.13", added_means, "a sum of means"),
        ("20.13", added_squares, "a sum"),
    ],
)
def test_what_a_program_does_wrong_is_named(question, answer, slip):
    found = exercises.examine(answers.find(question), answer)
    wanted = ("correct", "") if slip is None else ("wrong", slip)
    assert (found.verdict, found.slip) == wanted, found


def fused(machine, n, *, stored=True, until=None, doubled=False, turned=False):  # 03.13
    for i in range(0, until or n, 8):
        for j in range(0, n, 8):
            where = {"rows": (i, i + 8), "cols": (j, j + 8)}
            a, b, c = (machine.load(name, **where) for name in "ABC")
            machine.multiply(a, b)
            machine.add(a, c)
            if doubled:
                machine.add(a, a)
            if stored:
                machine.store(a, "C", row=j if turned else i, col=i if turned else j)
            for block in (a, b, c):
                machine.free(block)


@pytest.mark.parametrize(
    ("wrong", "slip", "word"),
    [
        (
            {"stored": False},
            "nothing stored",
            "still has all its values from the start",
        ),
        ({"until": 8}, "right in places", "of the values of C are right"),
        ({"doubled": True}, "a constant factor", "2 times the right one"),
        ({"turned": True}, "right in places", "of the values of C are right"),
        ({}, "", ""),
    ],
)
def test_what_a_machine_program_leaves_is_named(wrong, slip, word):
    record = answers.find("03.13")
    found = exercises.examine(record, lambda machine, n: fused(machine, n, **wrong))
    assert (found.verdict, found.slip) == ("wrong" if slip else "correct", slip), found
    assert word in found.message


# The size of a product


def first_large(a, b, c):
    return (a @ b) @ c


def last_large(a, b, c):
    return a @ (b @ c)


def batched(a, b, c):
    return jnp.einsum("ij,jk,kl->ikl", a, b, c)


def value_by_value(a, b, c):
    return (a[:, :, None] * b).sum(1) @ c


def in_a_scan(a, b, c):
    """One row in each turn: the product of a turn counts, and not that of all."""
    return jax.lax.map(lambda row: (row @ b) @ c, a)


@pytest.mark.parametrize(
    ("function", "flops"),
    [
        (first_large, 2 * 4 * 8 * 16),
        (last_large, 2 * 8 * 16 * 2),
        (batched, 2 * 4 * 8 * 16),
        (value_by_value, 4 * 8 * 16),
        (in_a_scan, 2 * 8 * 16),
        (lambda a, b, c: a, 0),
    ],
)
def test_the_largest_product_of_a_program_is_found(function, flops):
    shapes = [(4, 8), (8, 16), (16, 2)]
    arguments = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    evidence = jax_export.evidence_of(function, function, arguments)
    found = jax_export.opened(evidence, "", shapes)
    assert jax_export.largest_product(found) == flops


# The diagnosis itself, on arrays


def rows(seed=0, shape=(16, 16)):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def run_of(got, wanted, split=True, mesh=None):
    """Eight devices that hold `got`, and should hold the rows or all of `wanted`."""
    n = len(wanted) // 8
    index = [slice(k * n, k * n + n) if split else slice(None) for k in range(8)]
    return ProgramResult(
        lambda a: a,
        [wanted],
        wanted,
        got,
        [(one, slice(None)) for one in index],
        1e-4,
        mesh or {"X": 8},
        [("X" if split else None, None)],
    )


TRUTH = rows()
PARTS = np.split(TRUTH, 8)


@pytest.mark.parametrize(
    ("got", "name", "word"),
    [
        (
            [64 * one for one in PARTS],
            "n² times too large",
            "the square of that",
        ),
        ([8 * one for one in PARTS], "n times too large", "8 devices along X"),
        ([one / 8 for one in PARTS], "n times too small", "1/8 of the right one"),
        ([-one for one in PARTS], "the wrong sign", "wrong sign"),
        ([3 * one for one in PARTS], "a constant factor", "3 times the right"),
        ([one + 2 for one in PARTS], "a constant apart", "too large by 2"),
        ([0 * one for one in PARTS], "all zeros", "zero"),
        ([one * np.inf for one in PARTS], "NaN or infinity", "infinite"),
        (PARTS[1:] + PARTS[:1], "shifted along the mesh", "1 place after"),
        (PARTS[-2:] + PARTS[:-2], "shifted along the mesh", "2 places before it"),
        ([PARTS[0]] * 8, "the same part everywhere", "belongs to device 0"),
        (
            PARTS[1::-1] + PARTS[2:],
            "parts exchanged",
            "device 1 has that of 0",
        ),
        ([one[::-1] for one in PARTS], "in another order", "along axis 0"),
        ([one[:, ::-1] for one in PARTS], "in another order", "along axis 1"),
        (
            [*PARTS[:7], 2 * PARTS[7]],
            "right on some devices",
            "devices 0 to 6 are",
        ),
        (
            [one * (one > 0) for one in PARTS],
            "right in places",
            "% of the values",
        ),
    ],
)
def test_wrong_values_are_said_for_what_they_are(got, name, word):
    found = diagnose(run_of(got, TRUTH))
    assert found.name == name, found
    assert word in found.says


def test_a_factor_is_that_of_one_axis_before_it_is_the_square_of_another():
    mesh = {"Z": 2, "X": 4}
    for factor, name, axes in (
        (4, "n times too large", "4 devices along X"),
        (2, "n times too large", "2 devices along Z"),
        (8, "n times too large", "8 devices along Z and X"),
        (1 / 4, "n times too small", "4 devices along X"),
    ):
        run = run_of([factor * TRUTH] * 8, TRUTH, split=False, mesh=mesh)
        found = diagnose(run)
        assert (found.name, axes in found.says) == (name, True), found


def test_a_square_array_is_seen_to_be_transposed():
    found = diagnose(run_of([TRUTH.T] * 8, TRUTH, split=False))
    assert found.name == "transposed"


def test_values_that_nothing_explains_have_no_name():
    assert diagnose(run_of([rows(1)] * 8, TRUTH, split=False)) is None
    assert diagnose(run_of(np.split(rows(1), 8), TRUTH)) is None


@pytest.mark.parametrize("off", [1e-5, 1e-3])
def test_a_value_is_wrong_from_the_tolerance_on(off):
    found = run_of([one + off * abs(TRUTH).max() for one in PARTS], TRUTH)
    assert bool(found.wrong) == (off > found.rtol)


@pytest.mark.parametrize(
    "record",
    [q for q in answers.questions().values() if getattr(q, "values", ())],
    ids=lambda record: record.id,
)
def test_wrong_values_of_a_record_differ_from_the_truth_and_from_each_other(record):
    """Drawn three times: each is named by its own name, before any other."""
    sharded = hasattr(record, "mesh")
    for seed in range(3):
        shapes = [tuple(shape) for shape in record.draw(str(seed))]
        arrays = [rows(10 * seed + k, shape) for k, shape in enumerate(shapes)]
        wanted = np.asarray(record.spec(*arrays))
        count = 8 if sharded else 1
        index = [(slice(None),) * wanted.ndim] * count
        for slip in record.values:
            wrong = slip.wrong(*arrays)
            got = wrong if isinstance(wrong, list) else [wrong] * count
            case = (record.spec, arrays, wanted, got, index, record.rtol)
            run = (
                ProgramResult(*case, record.mesh, record.in_specs)
                if sharded
                else ProgramResult(*case)
            )
            assert run.wrong
            assert diagnose(run, record.values).name == slip.name
