"""Context, expert and pipeline parallelism: what moves, what is held, what waits."""

import math
from collections import Counter
from dataclasses import replace

import pytest

from shardmath.hardware import chips
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import Torus
from shardmath.training import (
    combine,
    context,
    data,
    expert,
    fold_experts,
    fsdp,
    pipeline,
    pipeline_schedules,
    step,
    tensor,
    zero,
)
from shardmath.transformer import LLAMA_3_8B, LLAMA_3_405B, REMAT, Experts, Model, model

TOY = Model("toy", 4, 2048, 8192, 16, 4, 128, 32_000)
SPARSE = Model("sparse", 2, 64, 128, 8, 8, 8, 512, experts=Experts(16, 4))
WAYS = "ring", "gather", "ulysses"
SCHEDULES = "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe"


def steps(strategy, mesh, model=TOY, seqs=16, seq=2048, **more):
    more = {"attention": "causal", "vocabulary": False} | more
    return step(strategy, model, mesh, seqs, seq, **more)


def sent(one, *names, when=None):
    """Bytes that a chip sends of some arrays in a step."""
    return sum(
        move.collective.total_sent
        for move in one.moves
        if move.array in names and when in (None, move.when)
    )


def runs(one, when):
    """How often each collective runs in a pass of a layer, by operation and array."""
    found = Counter()
    for move in one.moves:
        if move.when == when and move.array in ("Q", "K", "V", "A", "dQ", "dK", "dV"):
            found[move.change.op] += move.times / one.model.layers
    return dict(found)


@pytest.mark.parametrize("n", [2, 4])
def test_around_attention_each_way_runs_its_own_collectives(n):
    """Ring: n − 1 hops of K and V. Gather: both, and their gradients scattered.
    Ulysses: an AllToAll each for Q, K, V and A."""
    mesh = {"C": n}
    expected = {
        "ring": [{"permute": 2 * (n - 1)}] * 3,
        "gather": [{"all_gather": 2}] * 2 + [{"reduce_scatter": 2}],
        "ulysses": [{"all_to_all": 4}] * 2 + [{"all_to_all": 3}],
    }
    for way in WAYS:
        one = steps(context("C", way), mesh)
        passes = [runs(one, when) for when in ("forward", "recompute", "backward")]
        assert passes == expected[way]


@pytest.mark.parametrize("n", [2, 4])
def test_bytes_around_attention_are_those_of_the_closed_forms(n):
    """Ring and gather move K and V, (n−1)/n of 2·S·K·H; Ulysses Q, K, V and A, 1/n of
    that share of (2·N + 2·K)·S·H."""
    tokens, size = 16 * 2048, 2
    keys = size * tokens * 2 * TOY.K * TOY.H * TOY.layers * (n - 1) / n
    heads = size * tokens * 2 * (TOY.N + TOY.K) * TOY.H * TOY.layers * (n - 1) / n / n
    for way, expected in (("ring", keys), ("gather", keys), ("ulysses", heads)):
        one = steps(context("C", way), {"C": n})
        assert sent(one, *"QKVA", when="forward") == pytest.approx(expected)
        assert sent(one, "dQ", "dK", "dV", "dA") == pytest.approx(expected)


@pytest.mark.parametrize("way", WAYS)
def test_context_parallelism_without_recompute_moves_keys_once(way):
    kept, again = (
        steps(context("C", way), {"C": 4}, seq=512, remat=remat)
        for remat in ("none", "full")
    )
    assert sent(again, *"QKVA") == 2 * sent(kept, *"QKVA") > 0


def test_copies_of_kv_heads_are_gathered_whole_and_added_up():
    """Ulysses over more chips than KV heads: 4 of 8 split them, 2 copy them."""
    one = steps(context(("C", "Z"), "ulysses", kv="C"), {"C": 4, "Z": 2})
    ops = {(move.array, move.change.op) for move in one.moves if move.array[-1] in "KV"}
    assert {("K", "all_to_all"), ("K", "all_gather")} <= ops
    assert ("dK", "reduce_scatter") in ops
    with pytest.raises(ValueError, match="does not divide"):
        steps(context("C", "ulysses"), {"C": 8})


@pytest.mark.parametrize("way", WAYS)
def test_context_and_tensor_parallelism_divide_each_other(way):
    toy = replace(TOY, kv_heads=8)
    both = steps(combine(tensor("Y"), context("C", way)), {"C": 4, "Y": 2}, toy)
    alone = steps(context("C", way), {"C": 4}, toy)
    assert sent(both, *"QKVA") == pytest.approx(sent(alone, *"QKVA") / 2)
    assert sum(both.flops.values()) == pytest.approx(sum(alone.flops.values()) / 2)


def test_shards_over_the_chips_of_a_sequence_are_fsdp():
    """Weights over X and C move what FSDP over both moves."""
    ours = steps(combine(fsdp("X"), context("C", weights="shards")), {"X": 4, "C": 2})
    plain = steps(fsdp(("X", "C")), {"X": 4, "C": 2})
    weights = "q", "k", "v", "o", "gate", "up", "down"
    assert sent(ours, *weights) == pytest.approx(sent(plain, *weights))
    held, other = ours.memory.parts, plain.memory.parts
    assert [held[part] for part in ("state", "weights", "gradients", "saved")] == [
        other[part] for part in ("state", "weights", "gradients", "saved")
    ]


def test_tokens_go_to_their_experts_and_back_in_each_pass():
    """AllToAll of k · tokens · D values a chip, twice forward, twice backward."""
    n, seqs, seq = 8, 8, 64
    one = steps(expert("E"), {"E": n}, SPARSE, seqs, seq)
    there = 2 * seqs / n * seq * SPARSE.experts.per_token * SPARSE.D * (n - 1) / n
    for when, names in (("forward", "tm"), ("recompute", "tm")):
        expected = SPARSE.layers * 2 * there
        assert sent(one, *names, when=when) == pytest.approx(expected)
    assert sent(one, "dt", "dm") == pytest.approx(SPARSE.layers * 2 * there)
    assert not sent(one, "dgate", "dup", "ddown")  # each expert has all its tokens


def test_capacity_scales_what_is_dealt_and_computed():
    one, two = (
        steps(expert("E"), {"E": 8}, SPARSE, 8, 64, capacity=capacity)
        for capacity in (1, 2)
    )
    assert sent(two, "t", "m") == 2 * sent(one, "t", "m")
    assert sum(two.flops.values()) > sum(one.flops.values())


@pytest.mark.parametrize("dense", ["copies", "shards"])
def test_experts_are_held_once_and_the_rest_as_asked(dense):
    n = 8
    held = steps(expert("E", dense), {"E": n}, SPARSE, 8, 64).memory.parts["weights"]
    experts = 3 * 16 * SPARSE.D * SPARSE.F * SPARSE.layers
    others = SPARSE.params - experts - SPARSE.embedding_params
    expected = 2 * (experts / n + others / (n if dense == "shards" else 1))
    assert held == pytest.approx(expected, rel=0.02)  # norms


def test_experts_under_tensor_parallelism_are_dealt_in_parts():
    """Tokens are split over Y in the stream, so that each chip of Y deals 1/|Y|."""
    alone = steps(expert("E"), {"E": 4}, SPARSE, 8, 64)
    both = steps(combine(expert("E"), tensor("Y")), {"E": 4, "Y": 2}, SPARSE, 8, 64)
    dealt = [m for m in both.moves if m.change.op == "all_to_all"]
    ours = sum(m.collective.total_sent for m in dealt)
    assert ours == pytest.approx(
        sum(m.collective.total_sent for m in alone.moves if m.change.op == "all_to_all")
        / 2
    )


@pytest.mark.parametrize(
    ("strategy", "mesh", "of", "whole"),
    [
        (expert("X"), {"X": 4}, SPARSE, ("dq", "do", "drouter")),
        (combine(fsdp("F"), expert("X")), {"F": 2, "X": 4}, SPARSE, ("dq", "drouter")),
        (tensor(("Y", "Z"), kv="Y"), {"Y": 2, "Z": 2}, TOY, ("dk", "dv")),
    ],
)
def test_gradients_that_are_kept_whole_are_added_up_once(strategy, mesh, of, whole):
    """Whatever else is in parts: dq over the experts' axis, dk over that of copies."""
    one, four = (steps(strategy, mesh, of, 32, 64, microbatches=M) for M in (1, 4))
    often = [
        {(m.array, m.change.op): m.times / step.model.layers for m in step.moves}
        for step in (one, four)
    ]
    assert often[0].keys() == often[1].keys()
    for array in whole:
        assert often[1][array, "all_reduce"] == 1
    for (array, op), times in often[1].items():
        if op == "reduce_scatter" and (array, "all_reduce") in often[1]:
            assert times == 4  # of a piece of it


@pytest.mark.parametrize(
    ("strategy", "mesh", "name", "seq", "each"),
    [
        (fsdp("X"), {"X": 64}, "kimi k2", 4096, 86),  # 8 · 4,096 / 384 = 85.3
        (expert("X"), {"X": 64}, "kimi k2", 4096, 86),
        (expert("X"), {"X": 8}, "qwen3 30b a3b", 1000, 63),  # 8 · 1,000 / 128 = 62.5
        (combine(context("C"), expert("X")), {"C": 2, "X": 8}, "qwen3 30b a3b", 1000,
         32),
        (combine(expert("X"), tensor("Y")), {"X": 8, "Y": 2}, "qwen3 30b a3b", 1000,
         32),
    ],
)  # fmt: skip
def test_a_chip_has_whole_slots_of_its_own(strategy, mesh, name, seq, each):
    """(13.3) of the tokens of a chip, whether all slots are a round number or not."""
    of, seqs = model(name), mesh["X"]
    one = step(strategy, of, mesh, seqs, seq, attention="causal")
    chips = math.prod(mesh.values())
    assert one.lines.sizes["slots"] == chips * each
    assert each == math.ceil(8 * seqs * seq / chips / of.experts.count)
    dealt = [m for m in one.moves if (m.array, m.change.op) == ("t", "all_to_all")]
    sent = 2 * of.experts.count * each * of.D * (mesh["X"] - 1) / mesh["X"]
    if "E" in strategy.stream:
        assert [m.collective.sent for m in dealt] == pytest.approx(2 * [sent])


@pytest.mark.parametrize("way", WAYS)
def test_context_parallelism_shares_the_tokens_of_experts(way):
    """Each chip has its own tokens' slots, whether experts are split or not."""
    alone = sum(steps(data(()), {"C": 1}, SPARSE, 8, 64).flops.values())
    for strategy in (context("C", way), combine(context("C", way), expert("E"))):
        one = steps(strategy, {"C": 4, "E": 2}, SPARSE, 8, 64)
        n = 8 if "E" in strategy.axes else 4
        assert sum(one.flops.values()) == pytest.approx(alone / n)


def test_a_capacity_is_meant_to_the_digit():
    """1.1 of 10 are 11 slots, though 1.1 · 10 in floats is a little more."""
    one = steps(data("X"), {"X": 2}, SPARSE, 2, 40, capacity=1.1)
    assert one.lines.sizes["slots"] == 2 * 11


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_pipeline_waits_as_long_as_its_schedule_says(name):
    """Equal stages, without recompute: F, I and W of lines alone are alike."""
    M, p = 16, 4
    one = steps(pipeline("P"), {"P": p}, eight_layers(), 16, 64, microbatches=M,
                schedule=name, remat="none")  # fmt: skip
    F, I, W = one.cost.one_pass(1)
    times = pipeline_schedules.Times(F, I, W)
    played = pipeline_schedules.schedule(name, p, M, times=times)
    assert one.bubble == pytest.approx(played.bubble)
    alone = steps(data(()), {"P": 1}, eight_layers(), 16, 64, remat="none")
    assert sum(one.flops.values()) == pytest.approx(sum(alone.flops.values()) / p)


def eight_layers():
    return Model("toy", 8, 256, 512, 8, 8, 32, 512)


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("name", SCHEDULES)
def test_copies_of_a_stage_add_up_their_gradients(name, copies):
    """DualPipe has every layer twice, and each copy sees half of the microbatches: what
    a stage holds of gradients its mirror image gets, once a step. Others have one."""
    p, n = 4, copies
    strategy = combine(pipeline("P"), zero(1, "X"))
    one = steps(strategy, {"P": p, "X": n}, eight_layers(), 16, 64, microbatches=8,
                schedule=name, vocabulary=True)  # fmt: skip
    for stage in range(p):
        here = one.at(stage)
        moves = [
            m for m in here.moves if m.when == "update" and "permute" in m.change.op
        ]
        if name != "dualpipe":
            assert not moves
            continue
        assert {m.change.pairs for m in moves} == {((0, 3), (1, 2), (2, 1), (3, 0))}
        ends = 2 if stage in (0, 3) else 0
        matrices = sum(times * weight.count(eight_layers().dims)
                       for times, weight in here.weights)  # fmt: skip
        assert sum(m.collective.total_sent for m in moves) == 2 * matrices / n
        assert sum(m.times for m in moves) == 4 * 7 + ends
        assert {m.array for m in moves} <= {f"d{w.name}" for _, w in here.weights}


@pytest.mark.parametrize("name", ["gpipe", "1f1b"])
def test_a_pipeline_sends_a_boundary_for_each_microbatch(name):
    M, p = 8, 4
    one = steps(pipeline("P"), {"P": p}, seqs=M, seq=512, microbatches=M, schedule=name)
    boundary = 2 * 512 * TOY.D
    assert sent(one, "x") == sent(one, "dx") == M * boundary
    first = one.at(0)
    assert (sent(first, "x"), sent(first, "dx")) == (M * boundary, 0)


def test_gpipe_holds_all_microbatches_and_1f1b_as_many_as_stages():
    M, p = 16, 4
    held = {
        name: steps(
            pipeline("P"), {"P": p}, seqs=M, seq=512, microbatches=M, schedule=name
        ).memory.parts["saved"]
        for name in ("gpipe", "1f1b")
    }
    assert held["gpipe"] / held["1f1b"] == M / p


def test_fsdp_gathers_for_each_microbatch_under_a_pipeline():
    """What a stage gathers is 1/p of the weights, M times: why PP fights ZeRO-3."""
    one, many = (
        steps(
            combine(pipeline("P"), fsdp("X")), {"P": 4, "X": 2}, seqs=16, seq=512,
            microbatches=M,
        )
        for M in (4, 8)
    )  # fmt: skip
    names = "q", "k", "v", "o", "gate", "up", "down"
    assert sent(many, *names) == 2 * sent(one, *names)


def test_the_layers_of_llama_405b_are_cut_as_published():
    """126 layers over 16 stages: the first and the last have one less."""
    one = step(pipeline("P"), LLAMA_3_405B, {"P": 16}, 16, 64, attention="causal",
               microbatches=16)  # fmt: skip
    assert [len(place) for place in one.stages.places] == [7, *[8] * 14, 7]


def test_the_ends_of_a_pipeline_have_the_tables():
    one = step(pipeline("P"), LLAMA_3_8B, {"P": 4}, 4, 64, attention="causal",
               microbatches=4)  # fmt: skip
    table = LLAMA_3_8B.vocab * LLAMA_3_8B.D
    layers = 8 * LLAMA_3_8B.layer_params
    for stage, tables in ((0, 1), (1, 0), (3, 1)):
        held = one.memory_of(stage).parts["weights"] / 2
        assert held == pytest.approx(layers + tables * table, rel=1e-3)
    assert one.stage == 3  # the head is the most that any of them has to do besides


def test_all_six_at_once_share_the_work():
    """FLOPs of the lines of a chip: all of them over the chips."""
    strategy = combine(
        data("R"), fsdp("X"), context("C"), expert("E"), tensor("Y"), pipeline("P")
    )
    mesh = dict.fromkeys("RXCEYP", 2)
    one = steps(strategy, mesh, SPARSE, 32, 64, microbatches=2)
    alone = steps(data(()), {"R": 1}, SPARSE, 32, 64)
    assert sum(one.flops.values()) == pytest.approx(
        sum(alone.flops.values()) / 64, rel=0.01
    )  # the router is done by both chips of Y


def test_a_chip_alone_gathers_nothing():
    for strategy in (fsdp("X"), fsdp(()), zero(3, "X")):
        one, plain = (steps(s, {"X": 1}) for s in (strategy, data("X")))
        assert one.memory.parts == plain.memory.parts
    assert steps(fsdp("X"), {"X": 2}).memory.parts["gathered"] > 0
    assert fsdp(()).name == "fsdp over no axis"


@pytest.mark.parametrize("remat", REMAT)
def test_one_chip_of_each_axis_moves_nothing(remat):
    strategy = combine(context("C"), tensor("Y"), pipeline("P"))
    one = steps(strategy, {"C": 1, "Y": 1, "P": 1}, remat=remat)
    assert one.collectives == ()
    assert (one.bubble, one.working) == (0, 1)


def test_times_of_a_pipeline_count_what_its_chips_wait():
    mesh = Mesh(Torus(chips.TPU_V5P, (4, 4, 4)), {"P": 4, "X": 16})
    one = step(combine(pipeline("P"), zero(1, "X")), LLAMA_3_8B, mesh, 256, 4096,
               attention="causal", microbatches=4)  # fmt: skip
    alone = sum(one.flops.values()) / chips.TPU_V5P.flops["bf16"]
    assert one.estimate.seconds["math"] == pytest.approx(alone / one.working)
    assert one.estimate.seconds["math"] == pytest.approx(
        one.played.seconds / chips.TPU_V5P.flops["bf16"]
    )


def test_the_network_of_a_pipeline_is_that_of_the_stage_that_moves_most():
    """A stage between the ends has more layers to gather for; the last has the head."""
    mesh = Mesh(Torus(chips.TPU_V5P, (4, 4, 4)), {"P": 4, "X": 16})
    TALL = replace(TOY, layers=6, vocab=40_960)  # 1, 2, 2 and 1 layers
    one = step(combine(pipeline("P"), fsdp("X")), TALL, mesh, 64, 512,
               attention="causal", microbatches=4)  # fmt: skip
    lower = [one._prices.lower(one.at(stage).collectives) for stage in range(4)]
    assert one.stage == 3
    assert one.estimate.seconds["network"] == pytest.approx(max(lower), rel=1e-12)
    assert lower[1] == lower[2] > lower[3] * 1.04
    assert one.at(1).critical_tokens == one.critical_tokens > 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: context("C", "tree"), "attention = 'tree': must be one of ring, "),
        (lambda: context("C", weights="all"), "weights = 'all': must be one of copies"),
        (lambda: context("C", kv="C"), "kv = 'C': can be given only with"),
        (
            lambda: expert("E", "some"),
            "dense = 'some': must be one of copies, state, shards",
        ),
        (lambda: combine(pipeline("P"), pipeline("Z")), "layers: are cut by both"),
        (lambda: combine(context("C"), context("Z")), "dimension S"),
        (lambda: steps(pipeline("P"), {"P": 8}, microbatches=8), "toy has 4 layers"),
        (
            lambda: steps(pipeline("P"), {"P": 4}, schedule="2f2b"),
            "schedule = '2f2b': must be one of gpipe",
        ),
        (
            lambda: steps(data("X"), {"X": 4}, schedule="2f2b"),
            "schedule = '2f2b': must be one of gpipe",
        ),
        (
            lambda: steps(pipeline("P"), {"P": 4}).at(4),
            "stage = 4: stages are 0 to 3",
        ),
        (
            lambda: steps(context("C"), {"C": 3}),
            "3 does not divide|does not divide",
        ),
        (lambda: steps(expert("E"), {"E": 8}, SPARSE, 8, 64, capacity=0), "capacity"),
        (
            lambda: steps(expert("E"), {"E": 8}),
            "expert over E: toy has no experts",
        ),
        (lambda: steps(data("X"), {"X": 8}, capacity=2), "toy has no experts"),
        (lambda: steps(data("X"), {}), "axis X, but the mesh has no axes"),
        (lambda: steps(data("X"), None), "axis X, but the mesh has no axes"),
        (lambda: steps(data("X"), {"Y": 2}), "axis X, but the mesh has Y = 2"),
    ],
)
def test_what_cannot_be_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_published_mixture_of_experts_fits_where_its_report_says():
    """DeepSeek-V3 on 2,048 H800: pipeline 16, experts 64, ZeRO-1, 15,360 sequences."""
    v3 = model("deepseek v3")
    strategy = combine(pipeline("P"), data("X"), expert("E"))
    mesh = {"P": 16, "X": 2, "E": 64}
    one = step(strategy, v3, mesh, 15_360, 4096, attention="causal", microbatches=120,
               schedule="dualpipe")  # fmt: skip
    assert one.tokens == 62_914_560
    assert 0 < one.bubble < 0.2


def test_folded_experts_by_hand():
    """(z, e, t) = (2, 2, 4): what a chip sends to the experts, counted by hand.

    A chip has tokens / (z e t) of a microbatch. Each goes to k experts, which lie over
    e t chips, so that all but 1/(e t) of the copies leave.
    """
    mixtral, seqs, seq, many = model("mixtral 8x7b"), 128, 4096, 4
    parts = zero(1, "z"), expert("e", "state"), tensor("t")
    mesh = {"z": 2, "e": 2, "t": 4}
    folded = fold_experts(combine(*parts), "t")
    found, plain = (
        step(one, mixtral, mesh, seqs, seq, attention="causal", microbatches=many,
             remat="none")
        for one in (folded, combine(*parts))
    )  # fmt: skip
    tokens = seqs * seq // many // 16
    D, k = mixtral.d_model, mixtral.experts.per_token
    there = [m for m in found.moves if m.dealt and m.when == "forward"]
    assert {m.change.op for m in there} == {"all_to_all"}
    for move in there:
        assert move.collective.sent == pytest.approx(k * tokens * D * 2 * 7 / 8)
        assert move.times == mixtral.layers * many
    # No exchange of the activations inside an expert is left over the tensor axis.
    inside = [m for m in plain.moves if not m.dealt and "slots" in m.change.before.dims]
    assert inside
    assert not [
        m for m in found.moves if not m.dealt and "slots" in m.change.before.dims
    ]
    # A chip holds as many weights as before: whole experts instead of parts of them.
    assert found.memory.parts["weights"] == plain.memory.parts["weights"]


def test_experts_fold_over_axes_that_are_in_use():
    with pytest.raises(ValueError, match="axis 'q': must be one of"):
        fold_experts(combine(expert("e"), tensor("t")), "q")
    with pytest.raises(ValueError, match="already splits the experts"):
        fold_experts(combine(expert("e"), tensor("t")), "e")
