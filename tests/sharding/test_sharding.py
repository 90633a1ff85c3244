"""The notation and its plans, against devices that are played by brute force and JAX.

`play` moves blocks between devices by what a collective may do, not by what the plan
wants: a device only ever receives what the others of its group hold.
"""

import math
import os
import subprocess
import sys
from itertools import pairwise, product

import drawn
import jax
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jax import lax
from jax.sharding import NamedSharding

from shardmath import collectives, sharding
from shardmath.collectives import Collective
from shardmath.draw import pictures
from shardmath.hardware.chips import H100, TPU_V4, TPU_V5E, TPU_V5P
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import Cluster, NVLinkDomain, Torus, network
from shardmath.hardware.networks.wiring import Network, Ring, Switch
from shardmath.referee import hlo
from shardmath.sharding import fused_axes, plan_search
from shardmath.sharding import reshard_search as search_module
from shardmath.sharding.change_costs import ChangeCosts
from shardmath.sharding.contraction import default_plan
from shardmath.sharding.layout import ShardedArray
from shardmath.sharding.level_search import short_routes
from shardmath.sharding.notation import parse, subscript
from shardmath.sharding.plan import ShardingPlan, splits, splits_by_case
from shardmath.sharding.prices import Prices
from shardmath.sharding.reshard_search import routes
from shardmath.sharding.reshard_step import Change, placements

jax.config.update("jax_num_cpu_devices", 8)  # before the first use of a device

XY = {"X": 2, "Y": 4}
XYZ = {"X": 2, "Y": 2, "Z": 2}
SIZES = {"I": 16, "J": 8, "K": 24}


# --- devices, played ----------------------------------------------------------------


def scatter(whole: np.ndarray, array: ShardedArray) -> list[np.ndarray]:
    """What every device holds; where it is unreduced, terms that add up to `whole`."""
    terms = array.ways(array.unreduced)
    rng = np.random.default_rng(0)
    shares = [rng.integers(-9, 9, whole.shape) for _ in range(terms - 1)]
    shares.append(whole - sum(shares))
    sizes, held = dict(array.mesh), []
    for place in array.places():
        n = 0
        for axis in array.unreduced:
            n = n * sizes[axis] + place[axis]
        held.append(shares[n][array.block(place)])
    return held


def play(step: Change, held: list[np.ndarray]) -> tuple[list[np.ndarray], float]:
    """Every device's block after `step`, and the values that a device receives.

    A device takes from each device of its group the part of that one's block which it
    is to hold, and must end with all it needs. An AllReduce counts the ring's two
    rounds, all others what comes from other devices.
    """
    places = list(step.before.places())
    outer = [name for name, _ in step.before.mesh if name not in step.axes]
    result, received = [], 0
    for me, here in enumerate(places):
        wanted = step.after.block(here)
        shape = [s.stop - s.start for s in wanted]
        total, seen = np.zeros(shape), np.zeros(shape, int)
        foreign = 0
        group = [m for m, p in enumerate(places) if all(p[a] == here[a] for a in outer)]
        assert len(group) == step.before.ways(step.axes) or step.op == "slice"
        if step.op == "slice":
            group = [me]
        for other in group:
            block = step.before.block(places[other])
            pairs = list(zip(block, wanted, strict=True))
            shared = [
                slice(max(b.start, w.start), min(b.stop, w.stop)) for b, w in pairs
            ]
            if any(s.stop <= s.start for s in shared):
                continue
            into = tuple(
                slice(s.start - w.start, s.stop - w.start)
                for s, w in zip(shared, wanted, strict=True)
            )
            if step.op == "permute" and seen[into].any():
                continue  # another device has sent this block already
            take = tuple(
                slice(s.start - b.start, s.stop - b.start)
                for s, b in zip(shared, block, strict=True)
            )
            total[into] += held[other][take]
            seen[into] += 1
            foreign += held[other][take].size if other != me else 0
        sums = step.op in ("all_reduce", "reduce_scatter")
        assert (seen == (len(group) if sums else 1)).all(), f"not covered: {step}"
        n = len(group)
        if step.op == "all_reduce":
            foreign = 2 * total.size * (n - 1) / n
        result.append(total)
        received = max(received, foreign)
    return result, received


def letters(*arrays: ShardedArray) -> str:
    a, b, c = ("".join(x.dims) for x in arrays)
    return f"{a},{b}->{c}"


def check_plan(plan: ShardingPlan, a, b, c) -> None:
    """Execute a plan on played devices: values, bytes, FLOPs, memory."""
    rng = np.random.default_rng(1)
    wholes = [rng.integers(-9, 9, x.shape) for x in (a, b)]
    held = {id(x): scatter(w, x) for x, w in zip((a, b), wholes, strict=True)}
    state = {"A": held[id(a)], "B": held[id(b)]}
    for step in plan.before:
        name = step.before.name
        state[name], received = play(step, state[name])
        expect_bytes(step, received)
    spec = letters(a, b, c)
    parts = [np.einsum(spec, x, y) for x, y in zip(state["A"], state["B"], strict=True)]
    for x, local in ((plan.a, state["A"]), (plan.b, state["B"]), (plan.c, parts)):
        assert {p.shape for p in local} == {x.local_shape}
        assert x.local_nbytes == 2 * local[0].size
    terms = set(letters(a, b, c)) & set("EIJKL")
    local = {
        d: n
        for x in (plan.a, plan.b)
        for d, n in zip(x.dims, x.local_shape, strict=True)
    }
    assert plan.flops == 2 * math.prod(local[d] for d in terms)
    for step in plan.after:
        parts, received = play(step, parts)
        expect_bytes(step, received)
    whole = np.einsum(spec, *wholes)
    if c.unreduced:  # the terms must add up
        first = {}
        for place, part in zip(c.places(), parts, strict=True):
            rest = tuple(v for k, v in place.items() if k not in c.unreduced)
            first.setdefault(rest, []).append((place, part))
        for members in first.values():
            np.testing.assert_array_equal(
                sum(p for _, p in members), whole[c.block(members[0][0])]
            )
        return
    for place, part in zip(c.places(), parts, strict=True):
        np.testing.assert_array_equal(part, whole[c.block(place)])


def expect_bytes(step: Change, received: float) -> None:
    sent = step.collective.sent if step.collective else 0
    assert sent == 2 * received, str(step)  # bf16: two bytes a value


def spread(name: str, dims: str, mesh: dict):
    """Every sharding of an array over a mesh."""
    axes = tuple(mesh)
    for placed in placements(axes, len(dims)):
        yield ShardedArray(
            tuple(dims),
            tuple(SIZES.get(d, 8) for d in dims),
            placed,
            tuple(mesh.items()),
            name=name,
        )


def line(a: ShardedArray, b: ShardedArray, c: ShardedArray) -> str:
    return f"{a.notation} · {b.notation} -> {c.notation}"


@pytest.mark.parametrize("mesh", [{"X": 2}, XY])
def test_every_matmul_on_played_devices(mesh):
    """Every sharding of A, B and C: the named plan gives the product, byte for byte."""
    cases = set()
    combos = list(
        product(
            spread("A", "IJ", mesh), spread("B", "JK", mesh), spread("C", "IK", mesh)
        )
    )
    if len(combos) > 150:  # two axes: a fixed sample of the 1331
        combos = combos[::11]
    for a, b, c in combos:
        op = sharding.contract(line(a, b, c), mesh, **SIZES)
        check_plan(op.plan, a, b, c)
        assert op.best.sent <= op.sent
        cases.add(op.case)
    assert cases == {1, 2, 3, 4}


@given(st.data())
@settings(max_examples=25)
def test_all_plans_give_the_product(data):
    """Not only the named plan: every other too, with batch dimensions and two sums."""
    mesh = data.draw(st.sampled_from([XY, {"X": 2, "Y": 2}]))
    matmuls = [("IJ", "JK", "IK"), ("EIJ", "EJK", "EIK"), ("IJL", "JLK", "KI")]
    dims = zip("ABC", data.draw(st.sampled_from(matmuls)), strict=True)
    arrays = [data.draw(st.sampled_from(list(spread(*d, mesh)))) for d in dims]
    sizes = {d: SIZES.get(d, 8) for x in arrays for d in x.dims}
    for plan in sharding.contract(line(*arrays), mesh, **sizes).candidates:
        check_plan(plan, *arrays)


@given(st.data())
@settings(max_examples=60)
def test_a_plan_alone_is_the_plan_among_all_others(data):
    """`case_plan` looks at few places for each axis: same bytes and FLOPs, and right
    values."""
    mesh = data.draw(st.sampled_from([XY, XYZ]))
    matmuls = [("IJ", "JK", "IK"), ("EIJ", "EJK", "EIK"), ("IJL", "JLK", "KI")]
    dims = zip("ABC", data.draw(st.sampled_from(matmuls)), strict=True)
    arrays = [data.draw(st.sampled_from(list(spread(*d, mesh)))) for d in dims]
    sizes = {d: SIZES.get(d, 8) for x in arrays for d in x.dims}
    op = sharding.contract(line(*arrays), mesh, **sizes)
    alone, among = sharding.default_plan(op.a, op.b, op.c), op.plan
    assert (alone.sent, alone.flops) == pytest.approx((among.sent, among.flops))
    check_plan(alone, *arrays)


@pytest.mark.parametrize(
    "text",
    [
        "A[E_X, I, J_Y] · B[E_Y, J, K_Z] -> C[E, I, K_Z]",  # copies of A along Z
        "A[I_Z, J_X] · B[J_YX, K] -> C[I_Z, K_Y]",  # of B along Z
        "A[E_Y, I_XZ, J] · B[E, J, K_YZ] -> C[E_Y, I_X, K]",  # of B along X
        "A[I_YZ, J_X] · B[J_Z, K_X] -> C[I_YX, K_Z]",  # Y in another order
    ],
)
def test_an_axis_that_could_stay_helps_others_to_move(text):
    """A device sends a part of what is copied along it, or the order changes."""
    mesh = {"X": 4 if "I_XZ" in text else 2, "Y": 2, "Z": 4 if "I_YX" in text else 2}
    sizes = {"E": 8} if "E" in text else {}
    op = sharding.contract(text, mesh, I=16, J=8, K=24, **sizes)
    assert sharding.default_plan(op.a, op.b, op.c).sent == op.plan.sent


def test_axes_that_go_alike_part_where_one_can_change_places():
    """X and Z both end in I; X alone may stand where Y is wanted, and be permuted."""
    text = "A[I_Y, J_X, L_Z] · B[J_XYZ, L, K] -> C[K_Y, I_XZ]"
    op = sharding.contract(text, {"X": 2, "Y": 2, "Z": 2}, I=16, J=8, L=8, K=24)
    assert sharding.default_plan(op.a, op.b, op.c).sent == op.plan.sent == 960


@given(st.data())
@settings(max_examples=60)
def test_every_route_on_played_devices(data):
    """Any sharding, with partial sums, to any other: right values, bytes as counted."""
    mesh = data.draw(st.sampled_from([XY, XYZ]))
    shardings = st.sampled_from(list(spread("A", "IJ", mesh)))
    source, target = data.draw(shardings), data.draw(shardings)
    free = [axis for axis in mesh if axis not in source.axes]
    partial = tuple(free[: data.draw(st.integers(0, len(free)))])
    source = source.moved(source.placed, partial)
    whole = np.arange(math.prod(source.shape)).reshape(source.shape)
    held = scatter(whole, source)
    way = routes(source, mesh, None, [target.state]).changes(target.state)
    for step in way:
        held, received = play(step, held)
        expect_bytes(step, received)
    for place, block in zip(target.places(), held, strict=True):
        np.testing.assert_array_equal(block, whole[target.block(place)])


# --- what the plans are -------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "case", "moves", "split"),
    [
        ("A[I_X, J] · B[J, K_Y] -> C[I_X, K_Y]", 1, "nothing", 8),
        ("A[I, J] · B[J, K] -> C[I_X, K]", 1, "nothing", 2),  # a slice is enough
        ("A[I, J] · B[J, K] -> C[I, K]{U_X}", 1, "nothing", 2),
        ("A[I_X, J] · B[J, K] -> C[I, K]", 1, "AllGather_X C", 2),
        ("A[I_X, J] · B[J, K] -> C[I, K_X]", 1, "AllToAll_X C", 2),
        ("A[L_X, I, J] · B[L_X, J, K] -> C[L_X, I, K]", 1, "nothing", 2),
        ("A[I, J_X] · B[J, K] -> C[I, K]", 2, "AllGather_X A", 1),
        ("A[I, J_X] · B[J, K] -> C[I, K_X]", 2, "AllGather_X A", 2),
        ("A[I, J_X] · B[J, K] -> C[I_X, K]", 2, "AllToAll_X A", 2),
        ("A[I, J_X] · B[J, K_X] -> C[I, K_X]", 2, "AllGather_X A", 2),
        ("A[I, J_X, L] · B[J, L_X, K] -> C[I, K]", 2, "AllToAll_X A, AllReduce_X C", 2),
        ("A[I, J_X] · B[J_X, K] -> C[I, K]", 3, "AllReduce_X C", 2),
        ("A[I, J_X] · B[J_X, K] -> C[I, K_X]", 3, "ReduceScatter_X C", 2),
        ("A[I, J_X] · B[J_X, K] -> C[I, K]{U_X}", 3, "nothing", 2),
        ("A[I_X, J] · B[J, K_X] -> C[I_X, K]", 4, "AllGather_X B", 2),
        ("A[I_X, J] · B[J, K_X] -> C[I, K_X]", 4, "AllGather_X A", 2),
        (
            "A[I_Y, J_X] · B[J_X, K] -> C[I_Y, K]",
            3,
            "AllReduce_X C",
            8,
        ),
    ],
)
def test_cases_and_what_they_name(text, case, moves, split):
    """The case, what moves in the plan it names, how many ways that splits the work."""
    sizes = SIZES | {"L": 4} if "L" in text else SIZES
    op = sharding.contract(text, XY, **sizes)
    assert (op.case, op.plan.moves) == (case, moves)
    assert op.flops == 2 * math.prod(sizes.values()) / split
    assert f"case {case}" in str(op)


def test_axes_have_cases_of_their_own():
    op = sharding.contract("A[I_Y, J_X] · B[J_X, K_Y] -> C[I_Y, K_X]", XY, **SIZES)
    assert (op.cases, op.case) == ({"X": 3, "Y": 4}, 4)
    assert op.plan.moves == "AllGather_Y B, ReduceScatter_X C"


def test_plans_trade_bytes_for_flops():
    """Plans listed: each is best at something."""
    text = "A[I, J_X] · B[J, K] -> C[I, K]"
    op = sharding.contract(text, {"X": 4}, I=64, J=64, K=64)
    assert [plan.moves for plan in op.plans] == [
        "AllGather_X A",
        "AllToAll_X A, AllGather_X C",
        "AllReduce_X C",
    ]
    assert op.best is op.plan


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("A[I_X, J] -> A[I, J_X]", ["all_to_all X"]),
        ("A[I_XY, J] -> A[I, J_XY]", ["all_to_all XY"]),
        ("A[I_X, J_Y] -> A[I, J]", ["all_gather Y", "all_gather X"]),
        ("A[I_XY, J] -> A[I_X, J]", ["all_gather Y"]),
        ("A[I_XY, J] -> A[I_Y, J]", ["permute XY", "all_gather X"]),
        ("A[I, J] -> A[I_X, J_Y]", ["slice X", "slice Y"]),
        ("A[I, J]{U_X} -> A[I, J]", ["all_reduce X"]),
        ("A[I, J]{U_X} -> A[I, J_X]", ["reduce_scatter X"]),
        ("A[I, J]{U_XY} -> A[I_X, J]", ["reduce_scatter X", "all_reduce Y"]),
        ("A[I_X, J]{U_Y} -> A[I_X, J]{U_Y}", []),
    ],
)
def test_what_a_resharding_needs(text, steps):
    found = sharding.reshard(text, XY, I=16, J=16).steps
    assert [f"{step.op} {''.join(step.axes)}" for step in found] == steps


def test_swapped_axes_of_one_size_are_a_permute():
    change = sharding.reshard("A[I_X, J_Y] -> A[I_Y, J_X]", XYZ, I=8, J=8)
    assert [c.op for c in change.collectives] == ["permute"]


def test_copies_are_neither_shards_nor_terms():
    for text, copies in (("A[I]", 8), ("A[I_X]", 4), ("A[I_X]{U_Y}", 1)):
        assert sharding.array(text, XY, I=8).copies == copies


# --- JAX ----------------------------------------------------------------------------


@pytest.mark.parametrize("mesh", [XY, XYZ])
def test_blocks_and_spec_are_those_of_jax(mesh):
    """Every sharding of a matrix: JAX puts the same block on the same device."""
    devices = jax.make_mesh(tuple(mesh.values()), tuple(mesh))
    for array in spread("A", "IJ", mesh):
        placed = NamedSharding(devices, jax.P(*array.spec))
        theirs = placed.devices_indices_map(array.shape)
        for place, device in zip(array.places(), devices.devices.flat, strict=True):
            slices = zip(theirs[device], array.shape, strict=True)
            ours = tuple((s.start, s.stop) for s in array.block(place))
            assert tuple(s.indices(n)[:2] for s, n in slices) == ours
        assert placed.shard_shape(array.shape) == array.local_shape


def in_jax(step: Change, x):
    """`step` in one line of JAX, for one device inside `jax.shard_map`."""
    pairs = zip(step.before.placed, step.after.placed, strict=True)
    changed = [n for n, (old, new) in enumerate(pairs) if old != new]
    grown = [n for n in changed if step.before.grid[n] < step.after.grid[n]]
    shrunk = [n for n in changed if n not in grown]
    if step.op == "all_gather":
        return lax.all_gather(x, step.axes, axis=shrunk[0], tiled=True)
    if step.op == "all_to_all":
        return lax.all_to_all(x, step.axes, grown[0], shrunk[0], tiled=True)
    if step.op == "all_reduce":
        return lax.psum(x, step.axes)
    if step.op == "reduce_scatter":
        return lax.psum_scatter(x, step.axes, scatter_dimension=grown[0], tiled=True)
    if step.op == "slice":
        size = step.after.local_shape[grown[0]]
        start = lax.axis_index(step.axes) * size
        return lax.dynamic_slice_in_dim(x, start, size, axis=grown[0])
    places = list(step.before.places())
    senders = {}
    for n, place in enumerate(places):
        senders.setdefault(step.before.index(place), []).append(n)
    pairs = [(senders[step.after.index(p)].pop(), n) for n, p in enumerate(places)]
    return lax.ppermute(x, tuple(name for name, _ in step.before.mesh), pairs)


MATMULS = [
    "A[I_X, J] · B[J, K_Y] -> C[I_X, K_Y]",
    "A[I, J_X] · B[J, K] -> C[I, K]",
    "A[I, J_X] · B[J, K] -> C[I, K_X]",
    "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]",
    "A[I, J_XY] · B[J_XY, K] -> C[I, K_XY]",
    "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K_Y]",
    "A[I_X, J] · B[J, K_X] -> C[I_X, K]",
    "A[I_Y, J_X] · B[J_X, K_Y] -> C[I_Y, K_X]",
    "A[I_XY, J] · B[J_X, K_Y] -> C[I_XY, K]",
    "A[I, J_YX] · B[J_XY, K] -> C[I, K_X]",
]


@pytest.mark.parametrize("text", MATMULS)
def test_matmuls_by_hand_in_jax(text):
    """`shard_map` on 8 devices: values of one device, bytes exactly as compiled."""
    op = sharding.contract(text, XY, "f32", **SIZES)
    mesh = jax.make_mesh(tuple(XY.values()), tuple(XY))

    def body(a, b):
        state = {"A": a, "B": b}
        for step in op.plan.before:
            state[step.before.name] = in_jax(step, state[step.before.name])
        c = state["A"] @ state["B"]
        for step in op.plan.after:
            c = in_jax(step, c)
        return c

    a, b, c = (jax.P(*x.spec) for x in (op.a, op.b, op.c))
    sharded = jax.shard_map(
        body, mesh=mesh, in_specs=(a, b), out_specs=c, check_vma=False
    )
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-9, 9, z.shape).astype(np.float32) for z in (op.a, op.b))
    placed = [
        jax.device_put(z, NamedSharding(mesh, spec)) for z, spec in ((x, a), (y, b))
    ]
    compiled = jax.jit(sharded).lower(*placed).compile()
    np.testing.assert_array_equal(compiled(*placed), x @ y)
    found = hlo.collectives_in(compiled.as_text(), XY)
    assert sorted(map(moved, found)) == sorted(map(moved, op.collectives))


def moved(c: collectives.Collective) -> tuple:
    return c.op, c.group, tuple(sorted(c.axes)), c.nbytes, c.times


# --- published answers --------------------------------------------------------------
# "How to Scale Your Model" (jax-ml/scaling-book, MIT), chapter 3, its questions.


def test_published_copies():
    """Question 1: A[I_X, J, K] on X 4, Y 8, Z 2 takes 16 times one copy's bytes."""
    array = sharding.array("A[I_X, J, K]", {"X": 4, "Y": 8, "Z": 2}, I=8, J=2, K=2)
    assert array.copies == 16
    assert array.devices * array.local_nbytes == 16 * array.nbytes


def test_published_gathers_and_reduction():
    """Question 2, on a 4 x 4 x 4 mesh: 23, 46 and 11.6 µs at 90 GB/s for an axis.

    The answers leave (n-1)/n out, so we compare V over the bandwidth. The time of
    AllGather_XY is that of one collective over both axes at once.
    """
    mesh, sizes = {"X": 4, "Y": 4, "Z": 4}, {"B": 1024, "D": 4096}
    (x,) = sharding.reshard("A[B_X, D_Y] -> A[B, D_Y]", mesh, **sizes).collectives
    xy = sharding.reshard("A[B_X, D_Y] -> A[B, D]", mesh, **sizes).collectives
    (z,) = sharding.reshard(
        "A[B_X, D_Y]{U_Z} -> A[B_X, D_Y]", mesh, **sizes
    ).collectives
    assert (x.op, xy[-1].op, z.op) == ("all_gather", "all_gather", "all_reduce")
    assert x.nbytes / 9e10 == pytest.approx(23e-6, rel=0.02)
    assert xy[-1].nbytes / (2 * 9e10) == pytest.approx(46e-6, rel=0.02)
    assert 2 * z.nbytes / 9e10 == pytest.approx(11.6e-6, rel=0.02)


def gather_or_reduce(B: int, D: int, n: int) -> tuple[ShardingPlan, ShardingPlan]:
    """Question 4: X[B, D] · Y[D_X, F], by gathering Y or by reducing the result."""
    text = "X[B, D] · Y[D_X, F] -> Z[B, F]"
    op = sharding.contract(text, {"X": n}, B=B, D=D, F=4096)
    assert op.case == 2
    by_moves = {plan.moves: plan for plan in op.plans}
    assert op.plan is by_moves["AllGather_X Y"]
    return op.plan, by_moves["AllReduce_X Z"]


def test_published_gather_or_reduce():
    """Question 4, with FLOPs/s over bytes/s = 2550: three thresholds."""
    n = 1024  # the answers take (n-1)/n as 1
    gather, _ = gather_or_reduce(B=2550, D=n, n=n)
    assert gather.flops / gather.sent == pytest.approx(2550, rel=0.02)
    _, reduce = gather_or_reduce(B=8, D=5100 * n, n=n)  # computes as long as X < D/5100
    assert reduce.flops / reduce.sent == pytest.approx(2550, rel=0.02)
    assert gather.flops == 2 * 2550 * n * 4096  # every device does all of it


def test_published_crossing():
    """Question 4: where the network binds both, reducing wins iff D > 2 B."""
    text = "X[B, D] · Y[D_X, F] -> Z[B, F]"
    op = sharding.contract(text, {"X": 8}, B=8, D=4096, F=64)
    plans = gather_or_reduce(B=8, D=4096, n=8)
    (crossing,) = op.crossings("B", [p.resized("F", 64) for p in plans])
    assert crossing.size == pytest.approx(4096 / 2, rel=1e-5)
    assert crossing.below.moves == "AllReduce_X Z"
    assert str(crossing) == "B = 2,048: below, AllReduce_X Z; above, AllGather_X Y"


@pytest.mark.parametrize(
    ("text", "ops"),
    [
        ("A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]", [("all_reduce", ("Y",))]),
        ("A[I_X, J] · B[J_X, K_Y] -> C[I_X, K_Y]", [("all_gather", ("X",))]),
        ("A[I_X, J] · B[J, K_Y] -> C[I_X, K_Y]", []),
    ],
)
def test_what_three_matmuls_on_16_chips_need(text, ops):
    """Question 6 (no published answer): AllReduce over Y; AllGather of B; nothing."""
    op = sharding.contract(text, {"X": 4, "Y": 4}, I=64, J=64, K=64)
    assert [(c.op, c.axes) for c in op.collectives] == ops


def test_published_two_layer_block():
    """Question 7: 537 MB a weight, 2.1 MB in; both layers fit 300 MB a chip when the
    activations are gathered and scattered."""
    mesh, sizes = {"X": 2, "Y": 2}, {"B": 128, "D": 8192, "F": 32768}
    up = sharding.contract("In[B, D_XY] · W[D, F_XY] -> H[B, F_XY]", mesh, **sizes)
    down = sharding.contract("H[B, F_XY] · V[F_XY, D] -> Out[B, D_XY]", mesh, **sizes)
    assert up.b.nbytes == pytest.approx(536e6, rel=0.02)
    assert up.a.nbytes == pytest.approx(2.09715e6, rel=0.02)
    assert [c.op for c in up.collectives + down.collectives] == [
        "all_gather",
        "reduce_scatter",
    ]
    assert up.b.local_nbytes + down.b.local_nbytes < 300e6 < up.b.nbytes
    assert max(up.nbytes, down.nbytes) < 300e6 / 2


def test_published_gather_over_scatter():
    """Question 9: bytes of AllGather A over those of ReduceScatter O are M / K."""
    sizes = {"N": 64, "M": 4096, "K": 512}
    gather = sharding.contract("A[N, M_X] · B[M, K] -> O[N, K]", {"X": 4}, **sizes)
    scatter_ = sharding.contract(
        "A[N, M_X] · B[M_X, K] -> O[N, K_X]", {"X": 4}, **sizes
    )
    assert gather.sent / scatter_.sent == sizes["M"] / sizes["K"]


# --- prices -------------------------------------------------------------------------


def test_price_is_that_of_its_parts():
    """Math and HBM of the local product, network of each collective in turn."""
    mesh = Mesh(Torus(TPU_V5E, (4, 16)), {"X": 4, "Y": 16})
    op = sharding.contract(
        "A[I_Y, J_X] · B[J_X, K_Y] -> C[I_Y, K_X]", mesh, I=4096, J=8192, K=16384
    )
    seconds = op.estimate.seconds
    each = 2 * 4096 * 8192 * 16384 / 64  # the product is split over all 64 chips
    assert seconds["math"] == pytest.approx(each / TPU_V5E.flops["bf16"])
    local = 2 * (256 * 2048 + 2048 * 16384 + 256 * 16384)  # B is whole along K
    assert seconds["HBM"] == pytest.approx(local / TPU_V5E.hbm_bandwidth)
    over_y = collectives.all_gather(2 * 2048 * 16384, mesh, "Y")
    over_x = collectives.reduce_scatter(2 * 256 * 16384, mesh, "X")
    network = max(over_x.lower, over_y.lower)  # disjoint links, no latency
    assert seconds["network"] == pytest.approx(network)
    expected = max(over_x.expected, over_y.expected)
    assert op.expected() == pytest.approx(max(expected, seconds["math"]))
    assert op.estimate.upper == pytest.approx(
        seconds["math"] + seconds["HBM"] + over_x.expected + over_y.expected
    )
    change = sharding.reshard("A[I_Y, J_X] -> A[I_Y, J]", mesh, I=4096, J=8192)
    priced = collectives.all_gather(2 * 256 * 8192, mesh, "X")
    assert change.seconds == change.upper == priced.expected
    assert change.lower == priced.lower < priced.expected
    assert change.bandwidth_seconds == priced.bandwidth_seconds
    assert change.latency_seconds == priced.latency_seconds > 0


# --- what plans cost, against every plan ---------------------------------------------

TWO_AXES = {  # a network, and the sizes of X and Y on it
    "8 H100 in one node": ("h100:8", 2, 4),
    "4 nodes of 8 H100, X crosses": ("h100:4x8", 4, 8),
    "4 nodes of 8 H100, Y is half a node": ("h100:4x8", 8, 4),
    "2 racks of 72 GB200": ("gb200:2x72", 8, 18),
    "2 nodes of 8 H100": ("h100:2x8", 8, 2),
    "2 slices of 64 v5p": ("v5p:4x4x4*2", 8, 16),
    "a torus of v5p": ("v5p:4x4x4", 4, 16),
    "a torus of v5e, X open": ("v5e:4x16", 4, 16),
}


def enumerated_time(plan, mesh):
    """Expected time of one plan where all overlaps, collective by collective.

    Traffic that crosses several levels keeps each of them busy at its own pace
    (`Mesh.binding`), and delays all of them by its latency.
    """
    chip, dims, busy = mesh.network.chip, mesh.network.dims, {}
    for one in plan.collectives:
        priced = collectives.price(one, mesh)
        pieces, paces = mesh.span(one.axes), mesh.binding(one.axes).paces
        level, units = -1, 1
        for before, piece in zip((None, *pieces), pieces, strict=False):
            wires = piece.wires
            together = before and isinstance(wires, Ring)
            level += not (together and isinstance(before.wires, Ring))
            if len(paces) == 1 or one.op == "permute":
                seconds = priced.lower
            elif one.op == "all_to_all" and isinstance(wires, Switch):
                units *= wires.size
                seconds = one.nbytes / one.group * (1 - 1 / units) / wires.bandwidth
            elif one.op == "all_to_all":
                rings = [p.wires for p in pieces if isinstance(p.wires, Ring)]
                hops = [w.size**2 // 4 / w.size / w.egress for w in rings]
                seconds = one.nbytes / one.group * max(hops)
            else:
                seconds = one.sent / paces[level].bandwidth
            if not (isinstance(wires, Switch) and wires.uplinks):
                units = 1
            dim = piece.dim
            busy[dim] = busy.get(dim, 0.0) + seconds + priced.latency_seconds
    assert not any(isinstance(w, Switch) and w.uplinks for w in dims)  # no stacks here
    hbm = plan.nbytes / chip.hbm_bandwidth
    return max(plan.flops / chip.flops["bf16"], hbm, *busy.values(), 0.0)


def drawn_line(draw, dims="BDF"):
    """A random matmul over X and Y, each axis at most once in each array."""

    def array(name, dims):
        places = {axis: draw(st.sampled_from(("", *dims))) for axis in "XY"}
        split = ((d, "".join(a for a in "XY" if places[a] == d)) for d in dims)
        return f"{name}[{', '.join(f'{d}_{axes}' if axes else d for d, axes in split)}]"

    return f"{array('A', 'BD')} · {array('W', 'DF')} -> {array('C', 'BF')}"


@pytest.mark.parametrize("key", TWO_AXES)
@given(data=st.data())
@settings(max_examples=20)
def test_the_best_plan_is_the_quickest_of_all_candidates(key, data):
    """`best` and `ranking` against each candidate, evaluated by itself."""
    name, x, y = TWO_AXES[key]
    mesh = Mesh(network(name), {"X": x, "Y": y})
    sizes = {d: 1152 * 2 ** data.draw(st.integers(0, 6)) for d in "BDF"}
    op = sharding.contract(drawn_line(data.draw), mesh, busy=True, **sizes)
    times = {id(plan): enumerated_time(plan, mesh) for plan in op.candidates}
    assert times[id(op.best)] == pytest.approx(min(times.values()), rel=1e-9, abs=1e-14)
    ranked = [times[id(plan)] for plan in op.ranking]
    assert ranked == pytest.approx(sorted(ranked), rel=1e-9, abs=1e-14)
    for plan in op.candidates:
        assert op.expected(plan) == pytest.approx(times[id(plan)], rel=1e-6, abs=1e-14)
        assert plan.estimate(mesh, "bf16").lower <= times[id(plan)] * (1 + 1e-9)


def unlimited(array, axes, prices, most, wanted=None, backwards=False):
    """The ways to every state, however many collectives they take."""
    return routes(array, axes, prices, backwards=backwards)


def in_every_length(array, axes, prices, most, wanted=None, backwards=False):
    """`short_routes` to every state, also if no plan can use so many collectives."""
    return short_routes(array, axes, prices, most, None, backwards)


@pytest.mark.parametrize(
    ("name", "axes"),
    [
        (None, XYZ),
        ("v5p:4x4x4", {"X": 4, "Y": 4, "Z": 4}),
        ("v5p:4x4x4", {"X": 16, "Y": 4}),
        ("h100:4x8", {"X": 4, "Y": 2, "Z": 4}),
        ("h100:4x8", {"X": 8, "Y": 4}),
    ],
)
@given(data=st.data())
@settings(max_examples=6)
def test_candidates_are_those_of_the_full_search(name, axes, data):
    """With and without what is left out because no plan can use it.

    A way of many collectives may be the quickest to a state. The full search then has
    no plan for it; ours has the quickest of those that are short enough. Several ways
    can be equally quick and send equally many bytes: any of them will do.
    """
    names = tuple(axes)

    def array(name, dims):
        at = {axis: data.draw(st.sampled_from(("", *dims))) for axis in names}
        split = ((d, "".join(a for a in names if at[a] == d)) for d in dims)
        return f"{name}[{', '.join(f'{d}_{over}' if over else d for d, over in split)}]"

    text = f"{array('A', 'BD')} · {array('W', 'DF')} -> {array('C', 'BF')}"
    mesh = axes if name is None else Mesh(network(name), axes)
    sizes = {"B": 512, "D": 1024, "F": 2048}

    def found():
        op = sharding.contract(text, mesh, **sizes)
        return [kind(plan, op) for plan in op.candidates], op

    def kind(plan, op):
        time = 0 if op.mesh is None else op.expected(plan)
        split = plan.a.state, plan.b.state, plan.c.state
        return *split, len(plan.moved), plan.sent, f"{time:.9g}"

    ours, op = found()
    most = len(op.plan.moved) + 1
    assert all(len(plan.moved) <= most for plan in op.candidates)
    with pytest.MonkeyPatch.context() as patch:
        # Nothing is left out of the last step.
        patch.setattr(plan_search, "short_routes", in_every_length)
        every, _ = found()
        assert set(ours) == set(every)
        # Nothing is left out for its length but at the end.
        patch.setattr(plan_search, "short_routes", unlimited)
        full, op = found()
    pairs = zip(full, op.candidates, strict=True)
    assert {key for key, plan in pairs if len(plan.moved) <= most} <= set(ours)
    assert ours[0] == full[0]


@pytest.mark.parametrize(
    ("text", "slower"),
    [
        ("A[I_UV, J_X] · B[J_X, K_Y] -> C[I_UV, K_Y]", 1),
        ("A[I_UV, J] · B[J, K_XY] -> C[I, K]", 1),
        ("A[I, J_UV] · B[J_UV, K] -> C[I_XY, K]", 1),
        # Where axes change places, some of a run could go another way.
        ("A[I, J_UV] · B[J_UV, K_XY] -> C[I_XY, K_UV]", 1.5),
        ("A[I_Y, J] · B[J, K]{U_UV} -> C[I_Y, K]{U_UV}", 1),
    ],
)
def test_axes_that_go_together_are_spelt_out_in_plans(text, slower):
    """Every plan of a search with fewer axes gives the product, and the best is nearly
    always as quick as that of a search with all axes one by one."""
    mesh = Mesh(network("h100:2x8"), dict.fromkeys("UVXY", 2))
    sizes = {"I": 64, "J": 64, "K": 64}
    whole = sharding.contract(text, mesh, **sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fused_axes, "MOST_AXES", 3)
        patch.setattr(fused_axes, "FEW_AXES", 3)
        few = sharding.contract(text, mesh, **sizes)
    for plan in few.candidates:
        check_plan(plan, few.a, few.b, few.c)
    assert 1 < len(few.candidates) <= len(whole.candidates)
    assert few.plan.moves == whole.plan.moves
    times = few.expected(few.best), whole.expected(whole.best)
    assert 0.999 < times[0] / times[1] < 1.001 * slower


SIX = dict.fromkeys("UVWXYZ", 2)


@pytest.mark.parametrize(
    ("text", "name", "moves", "cost"),
    [
        # Four devices add up 2 MiB of C each.
        ("A[I_UV, J_WX] · B[J_WX, K_YZ] -> C[I_UV, K_YZ]", None, 1, 2 * 3 / 4 * 2**21),
        # In each array other axes are neighbours. Dijkstra's algorithm over all states
        # finds the same cost.
        ("A[I_UW, J_VY] · B[J_X, K_Z] -> C[I_Z, K_U]", None, 5, 9_961_472),
        ("A[I_XU, J_YV] · B[J_YV, K_Z] -> C[I_XU, K_ZW]", "h100:8x8", 1, 33.23152e-6),
    ],
)
def test_the_best_plan_over_six_axes(text, name, moves, cost):
    mesh = SIX if name is None else Mesh(network(name), SIX)
    op = sharding.contract(text, mesh, I=4096, J=4096, K=4096)
    assert len(op.best.moved) == moves
    found = op.best.sent if name is None else op.expected(op.best)
    assert found == pytest.approx(cost, rel=1e-9)


def test_six_axes_leave_plans_that_trade_bytes_for_flops(monkeypatch):
    """Few plans are kept, but the quickest, and one for each number of FLOPs."""
    monkeypatch.setattr(plan_search, "ALL_PLANS", 3)
    text, mesh = "A[I, J_X] · B[J, K] -> C[I, K]", dict.fromkeys("VWXY", 2)
    sizes = {"I": 64, "J": 64, "K": 64}
    every = sharding.contract(text, mesh, **sizes)
    monkeypatch.setattr(plan_search, "MOST_PLANS", 3)
    few = sharding.contract(text, mesh, **sizes)
    flops = [{plan.flops for plan in op.candidates} for op in (every, few)]
    assert flops[0] == flops[1] == {2 * 64**3 / 2**n for n in range(5)}
    assert len(few.candidates) < 30 < 200 < len(every.candidates)
    assert few.plan.moves == every.plan.moves == "AllGather_X A"
    assert few.best.sent == every.best.sent
    fewest = [{p.flops: p.sent for p in op.plans[::-1]} for op in (every, few)]
    assert fewest[0] == fewest[1]


def test_the_plans_that_are_kept_take_the_least_time_in_turn(monkeypatch):
    mesh = Mesh(network("h100:2x8"), dict.fromkeys("WXYZ", 2))
    text, sizes = "A[I_W, J_X] · B[J_Y, K_Z] -> C[I_Y, K_X]", {"I": 512, "K": 512}
    every = sharding.contract(text, mesh, J=4096, **sizes)
    monkeypatch.setattr(plan_search, "ALL_PLANS", 3)
    monkeypatch.setattr(plan_search, "MOST_PLANS", 50)
    few = sharding.contract(text, mesh, J=4096, **sizes)

    def in_turn(op):
        found = {}  # with all axes, there can be two plans for a split
        for plan in op.candidates:
            split = plan.a.state, plan.b.state, plan.c.state
            seconds = op._cost(plan)[1]
            found[split] = min(seconds, found.get(split, math.inf))
        return sorted(found.values())

    assert in_turn(few)[:50] == in_turn(every)[:50]
    assert len(few.candidates) < 80 < 1000 < len(every.candidates)
    assert every._cost(few.best) == every._cost(every.best)


def test_six_idle_axes_are_not_all_taken_for_one():
    """No more than it takes: a gather may still go over some of them."""
    text, sizes = "A[B, D] · W[D, F] -> C[B, F]", {"B": 4096, "D": 4096, "F": 4096}
    op = sharding.contract(text, Mesh(network("h100:8x8"), SIX), **sizes)
    assert op.best.moves == "AllGather_XY C"


def test_seven_axes_that_stand_apart_are_refused_at_once():
    """A search would take minutes and gigabytes. Busy axes are not searched."""
    text, sizes = "A[B_T, D_U] · W[D_V, F_W] -> C[B_X, F_Y]", dict.fromkeys("BDF", 4096)
    mesh = dict.fromkeys("TUVWXYZ", 2)
    with pytest.raises(
        ValueError, match=r"7 axes \(T, U, V, W, X, Y, Z\): .* at most 6"
    ):
        sharding.contract(text, mesh, **sizes)
    text = "A[B_T, D] · W[D, F_U] -> C[B_T, F_U]"
    op = sharding.contract(text, mesh, busy=True, **sizes)
    assert op.best.moves == "nothing"


@pytest.mark.parametrize("name", [None, "h100:2x8"])
@pytest.mark.parametrize(
    "text",
    [
        "A[I_UV, J_X] -> A[I_X, J_UV]",
        "A[I_UV, J]{U_XY} -> A[I, J_UV]",
        "A[I, J] -> A[I_UV, J_XY]",
        "A[I_X, J_UV] -> A[I, J]",
    ],
)
def test_a_resharding_over_axes_that_go_together_is_spelt_out(monkeypatch, text, name):
    """Its steps lead from one placement to the other, as quickly as if U and V, and on
    some lines X and Y too, were searched separately."""
    axes = dict.fromkeys("UVXY", 2)
    mesh = axes if name is None else Mesh(network(name), axes)
    whole = sharding.reshard(text, mesh, I=64, J=64)
    monkeypatch.setattr(fused_axes, "MOST_AXES", 3)
    monkeypatch.setattr(fused_axes, "FEW_AXES", 2)
    few = sharding.reshard(text, mesh, I=64, J=64)
    places = [few.source, *(step.after for step in few.steps)]
    assert places[-1].state == few.target.state
    assert [step.before for step in few.steps] == places[:-1]
    assert few.sent == whole.sent
    assert name is None or few.seconds == pytest.approx(whole.seconds)


def test_a_resharding_over_seven_axes_that_stand_apart_is_refused_at_once():
    """A search would take minutes."""
    mesh = dict.fromkeys("TUVWXYZ", 2)
    with pytest.raises(ValueError, match=r"7 axes \(T, .*, Z\): .* at most 6"):
        sharding.reshard("A[I_TVXZ, J_UWY] -> A[I_UZ, J_T]", mesh, I=4096, J=4096)
    found = sharding.reshard("A[I_TUV, J_WXY] -> A[I_WXY, J_TUV]", mesh, I=4096, J=4096)
    assert found.steps[-1].after.state == found.target.state


def test_a_plan_that_crosses_nodes_is_ranked_by_what_it_does_to_each_level():
    """Two nodes of 8: the quickest plan gathers over both levels at the same time.

    A ranking that charges the whole time of a collective to NVLink and to the cards
    prefers a plan that takes a quarter longer.
    """
    mesh = Mesh(network("h100:2x8"), {"X": 8, "Y": 2})
    text = "A[B, D_X] · W[D, F_Y] -> C[B_Y, F]"
    op = sharding.contract(text, mesh, B=8192, D=4096, F=8192)
    best = min(op.candidates, key=lambda plan: enumerated_time(plan, mesh))
    assert op.best.moves == best.moves == "AllToAll_X A, AllGather_Y W, AllGather_X C"
    assert op.verdict.startswith(f"{best.moves}; next, ")
    assert enumerated_time(best, mesh) == pytest.approx(222e-6, rel=0.03)
    assert op.table.rows[0]  # the case's plan leads the table; the best is in it
    assert best.moves in [row[0] for row in op.table.rows]


@pytest.mark.parametrize("key", ["2 nodes of 8 H100", "4 nodes of 8 H100, X crosses"])
@given(data=st.data())
@settings(max_examples=15)
def test_between_crossings_one_plan_is_the_quickest(key, data):
    """On two levels too: at sizes between crossings nothing beats the plan named."""
    name, x, y = TWO_AXES[key]
    mesh = Mesh(network(name), {"X": x, "Y": y})
    op = sharding.contract(
        drawn_line(data.draw), mesh, busy=True, B=512, D=4096, F=4096
    )
    crossings = op.crossings("B", low=16, high=1e6)
    for one, other in pairwise(crossings):
        assert one.above is other.below
    edges = [16.0, *(crossing.size for crossing in crossings), 1e6]
    winners = [*(crossing.below for crossing in crossings)]
    winners.append(crossings[-1].above if crossings else op.best)
    for (low, high), plan in zip(pairwise(edges), winners, strict=True):
        middle = math.sqrt(low * high)  # plans that tie leave a short stretch between
        near = min(low * (1 + 1e-5), middle), max(high * (1 - 1e-5), middle)
        for size in (near[0], middle, near[1]):
            times = [enumerated_time(p.resized("B", size), mesh) for p in op.candidates]
            mine = enumerated_time(plan.resized("B", size), mesh)
            assert mine == pytest.approx(min(times), rel=1e-6)


def test_a_plan_that_wins_between_two_powers_of_two_is_found():
    """It is the quickest from 2,053 to 4,096 rows alone; before and behind, another."""
    mesh = Mesh(network("h100:2x8"), {"X": 8, "Y": 2})
    op = sharding.contract("A[B, D] · W[D_Y, F_X] -> C[B_X, F_Y]", mesh, busy=True,
                           B=512, D=4096, F=4096)  # fmt: skip
    found = op.crossings("B", low=16, high=1e6)
    (first,) = (one for one in found if 2000 < one.size < 2100)
    times = [enumerated_time(p.resized("B", 2690), mesh) for p in op.candidates]
    assert enumerated_time(first.above.resized("B", 2690), mesh) == min(times)


@pytest.mark.parametrize(
    "text",
    [
        "X[B, D] · W[D_X, F] -> Y[B, F]",
        "X[B_X, D] · W[D, F_X] -> Y[B_X, F]",
        "X[B, D_X] · W[D_X, F] -> Y[B, F]",
    ],
)
def test_plans_cost_the_same_where_they_cross(text):
    mesh = Mesh(NVLinkDomain(H100, 8), {"X": 8})
    op = sharding.contract(text, mesh, B=1024, D=8192, F=8192)
    crossings = op.crossings("B")
    for crossing in crossings:
        plans = (crossing.below, crossing.above)
        at = [enumerated_time(p.resized("B", crossing.size), mesh) for p in plans]
        assert at[0] == pytest.approx(at[1], rel=1e-5)
    assert op.best in op.candidates
    below = [c.size for c in crossings if c.size < 1024]
    winner = crossings[len(below)].below if len(below) < len(crossings) else None
    winner = winner or (crossings[-1].above if crossings else op.best)
    assert winner.moves == op.best.moves


def test_formats_per_array():
    """Weights in int8, activations in bf16: each array has its own bytes."""
    op = sharding.contract(
        "bf16[I_X, J] · int8[J, K_X] -> f32[I_X, K]", {"X": 4}, I=8, J=8, K=8
    )
    assert [x.nbytes for x in (op.a, op.b, op.c)] == [128, 64, 256]
    assert op.collectives[0].nbytes == 64  # the int8 weights are what is gathered
    assert "AllGather_X int8[J, K_X]" in str(op.table)


# --- the best ways, against all ways -------------------------------------------------

CUBE = Mesh(Torus(TPU_V4, (4, 4, 4)), {"X": 4, "Y": 4, "Z": 4})


def states(array: ShardedArray):
    """Every way to place `array`, with every open sum, that divides it."""
    names = [name for name, _ in array.mesh]
    for placed in placements(tuple(names), len(array.dims)):
        free = [n for n in names if not any(n in axes for axes in placed)]
        for kept in product((True, False), repeat=len(free)):
            sums = tuple(n for n, keep in zip(free, kept, strict=True) if keep)
            if array.moved(placed, sums).divides:
                yield array.moved(placed, sums)


def single(s: ShardedArray, t: ShardedArray, several: bool) -> Change | None:
    """The one collective that makes `t` of `s`, by comparing the two; None if none."""
    pairs = list(zip(s.placed, t.placed, strict=True))
    grown = [d for d, (old, new) in enumerate(pairs) if len(new) > len(old)]
    shrunk = [d for d, (old, new) in enumerate(pairs) if len(new) < len(old)]
    nested = all(new[: len(old)] == old or old[: len(new)] == new for old, new in pairs)
    more = tuple(a for old, new in pairs for a in new[len(old) :])
    less = tuple(a for old, new in pairs for a in old[len(new) :])
    summed = tuple(a for a in s.unreduced if a not in t.unreduced)
    few = several or len(grown) + len(shrunk) <= 1
    if summed:
        if not set(t.unreduced) < set(s.unreduced) or shrunk or not nested:
            return None
        if not grown and s.placed == t.placed:
            return Change(s, t, "all_reduce", summed)
        if set(more) == set(summed) and few:
            return Change(s, t, "reduce_scatter", more)
        return None
    if s.unreduced != t.unreduced:
        return None
    if nested and shrunk and not grown and few:
        return Change(s, t, "all_gather", less)
    if nested and len(more) == 1 and not shrunk and more[0] not in s.axes:
        return Change(s, t, "slice", more)
    if nested and len(grown) == len(shrunk) == 1 and more == less:
        return Change(s, t, "all_to_all", more)
    if s.grid == t.grid and s.placed != t.placed:
        return Change(s, t, "permute", Change(s, t).swapping)
    return None


def distances(array: ShardedArray, mesh, cost) -> dict:
    """The least cost of getting from any state to any other (Floyd and Warshall)."""
    every = list(states(array))
    far = np.full((len(every), len(every)), np.inf)
    for (m, s), (n, t) in product(enumerate(every), repeat=2):
        if m == n:
            far[m, n] = 0
        elif change := single(s, t, several=mesh is not None):
            moved = change.collective
            far[m, n] = cost(moved) if moved else 0
    for k in range(len(every)):
        far = np.minimum(far, far[:, k : k + 1] + far[k])
    at = {x.state: n for n, x in enumerate(every)}
    return {(s, t): far[m, n] for s, m in at.items() for t, n in at.items()}


def least_costs(array: ShardedArray, most: int, cost, several: bool) -> list[dict]:
    """The least cost from any state to any other, by 0, 1, … `most` collectives."""
    every = list(states(array))
    free = np.full((len(every), len(every)), np.inf)
    paid = free.copy()
    np.fill_diagonal(free, 0)
    for (m, s), (n, t) in product(enumerate(every), repeat=2):
        if m != n and (change := single(s, t, several)):
            moved = change.collective
            (paid if moved else free)[m, n] = cost(moved) if moved else 0

    def then(one, other):
        found = np.full_like(one, np.inf)
        for k in range(len(every)):
            found = np.minimum(found, one[:, k : k + 1] + other[k])
        return found

    for k in range(len(every)):
        free = np.minimum(free, free[:, k : k + 1] + free[k])
    found, step = [free], then(paid, free)
    for _ in range(most):
        found.append(np.minimum(found[-1], then(found[-1], step)))
    at = {x.state: n for n, x in enumerate(every)}
    return [
        {(s, t): far[m, n] for s, m in at.items() for t, n in at.items()}
        for far in found
    ]


SMALL = {
    "no machine": {"X": 2, "Y": 2, "Z": 2},
    "no machine, unequal": {"X": 2, "Y": 4},
    "no machine, an axis of one device": {"X": 2, "Y": 1, "Z": 4},
    "a cube": Mesh(Torus(TPU_V5P, (4, 4, 4)), {"X": 4, "Y": 4, "Z": 4}),
    "part of a torus": Mesh(Torus(TPU_V5E, (8, 16)), {"X": 8, "Y": 4, "Z": 4}),
    "nodes": Mesh(Cluster(NVLinkDomain(H100), 4), {"X": 4, "Y": 2, "Z": 4}),
}


def cost_on(mesh):
    """The time of a collective on a mesh; without one, the bytes it sends."""

    def cost(c):
        if not isinstance(mesh, Mesh):
            return c.sent
        try:
            return collectives.price(c, mesh).seconds
        except ValueError:  # two axes of one ring that are not neighbours
            return np.inf

    return cost


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("backwards", [False, True])
def test_ways_of_every_length_are_the_best(name, backwards):
    """The level search against all chains with at most 0, 1, 2, 3 collectives."""
    mesh = SMALL[name]
    priced = isinstance(mesh, Mesh)
    prices = Prices(mesh) if priced else None
    whole = sharding.array("A[I, J]", mesh, I=256, J=1024)
    tables = least_costs(whole, 3, cost_on(mesh), priced)
    every = list(states(whole))
    rng = np.random.default_rng(1)
    for n in rng.choice(len(every), 4, replace=False):
        array = every[n]
        axes = tuple(dict(array.mesh))
        found = short_routes(array, axes, prices, 3, None, backwards)
        for other in every:
            ends = other.state, array.state
            key = ends if backwards else ends[::-1]
            ways = found.costs(other.state) if other.state in found else []
            for most, table in enumerate(tables):
                costs = [way for way in ways if way[2] <= most]
                if not costs:
                    assert table[key] == np.inf
                    continue
                time, sent, count = costs[0]
                least = time / 1e15 if priced else sent / 4
                assert least == pytest.approx(table[key], rel=1e-8, abs=1e-13)
                steps = found.changes(other.state, count)
                moved = [step.collective for step in steps if step.collective]
                assert len(moved) == count
                assert sum(c.sent for c in moved) == pytest.approx(sent / 4)
                assert sum(map(cost_on(mesh), moved)) == pytest.approx(least)


@pytest.mark.parametrize(
    "mesh",
    [
        *(mesh for mesh in SMALL.values() if isinstance(mesh, Mesh)),
        Mesh(Torus(TPU_V5P, (4, 4, 4)), {"X": 2, "Y": 8, "Z": 4}),
        Mesh(Torus(TPU_V5E, (4, 6)), {"X": 2, "Y": 2, "Z": 6}),
        Mesh(Cluster(NVLinkDomain(H100, gpus=6), 4), {"W": 2, "X": 2, "Y": 2, "Z": 3}),
        Mesh(network("h100:4x2"), {"X": 2, "Y": 2, "Z": 2}),
    ],
)
def test_no_permute_takes_less_than_the_search_assumes(mesh):
    """The search skips states from which not even the quickest permute would help."""
    array = sharding.array("A[I, J]", mesh, I=1536, J=1536)
    costs = ChangeCosts(array, mesh.axes, Prices(mesh))
    placed, seen = range(len(costs.graph.placed)), 0
    for before in placed:
        others = [n for n in placed if n != before]
        alike = [
            n for n in others if costs.shapes.grids[n] == costs.shapes.grids[before]
        ]
        for found in costs.permutes(before, alike, backwards=False):
            if found is not None and found[2]:
                assert costs.least_permute(costs.block[before]) <= found
                seen += 1
    assert seen > 20


def test_arrays_of_any_size_are_searched():
    """Costs are whole numbers, of however many digits."""
    mesh = Mesh(network("h100:2x4"), {"X": 2, "Y": 2, "Z": 2})
    found = {}
    for n in (2**40, 10**12, 2**100):
        array = sharding.array("A[I_X, J_Y]", mesh, I=n, J=n)
        ways = short_routes(array, tuple("XYZ"), Prices(mesh), 3)
        costs = {
            s.state: ways.costs(s.state)[0] for s in states(array) if s.state in ways
        }
        found[n] = {state: cost[0] / n**2 for state, cost in costs.items()}
    for n in (10**12, 2**100):  # latency is nothing next to the time of these bytes
        assert found[n] == pytest.approx(found[2**40])


@pytest.mark.parametrize("name", SMALL)
def test_no_chain_is_better_than_the_resharding(name):
    """Every pair of shardings of a matrix: time on a mesh, bytes without one."""
    mesh = SMALL[name]
    timed = isinstance(mesh, Mesh)
    sizes = getattr(mesh, "axes", mesh)
    array = sharding.array("A[I, J]", mesh, I=256, J=1024)

    least = distances(array, mesh if timed else None, cost_on(mesh))
    every = list(states(array))
    rng = np.random.default_rng(0)
    for source in rng.choice(len(every), 8, replace=False):
        source = every[source]
        for target in every:
            if not set(target.unreduced) <= set(source.unreduced):
                continue
            line = f"{source.notation} -> {target.notation}"
            found = sharding.reshard(line, mesh, I=256, J=1024)
            mine = found.seconds if timed else found.sent
            assert mine == pytest.approx(least[source.state, target.state], 1e-8), line
    assert set(sizes) == set(dict(array.mesh))


@given(st.data())
@settings(max_examples=20)
def test_the_best_plan_is_the_best_of_all_ways(data):
    """The exhaustive search: every split, with all chains that are short enough.

    The three chains of a plan have at most one collective more than the named plan.
    """
    mesh = data.draw(st.sampled_from([{"X": 2, "Y": 2, "Z": 2}, {"X": 2, "Y": 4}]))
    dims = zip("ABC", ("IJ", "JK", "IK"), strict=True)
    arrays = [data.draw(st.sampled_from(list(spread(*d, mesh)))) for d in dims]
    op = sharding.contract(line(*arrays), mesh, **SIZES)
    assume(set(op.cases) == set(mesh))  # with idle axes there are two sets of ways
    most = len(op.plan.collectives) + 1
    tables = [least_costs(x, most, lambda c: c.sent, False) for x in arrays]
    counts = [n for n in product(range(most + 1), repeat=3) if sum(n) == most]
    a, b, c = arrays
    totals = []
    for split in splits(a, b, c, tuple(mesh)):
        ways = (a.state, split.a), (b.state, split.b), (split.c, c.state)
        if all(ends in t[0] for t, ends in zip(tables, ways, strict=True)):
            sent = min(
                sum(t[k][ends] for t, k, ends in zip(tables, n, ways, strict=True))
                for n in counts
            )
            totals.append((sent, split.by_case))
    assert op.plan.sent == min(sent for sent, by_case in totals if by_case)
    assert op.best.sent == min(sent for sent, _ in totals)


def test_ways_to_many_states_share_a_search(monkeypatch):
    """Its case leaves many splits open: a search for each took most of the time."""
    begun = []

    class Counted(search_module._Search):
        def __init__(self, *arguments):
            begun.append(arguments[0])
            super().__init__(*arguments)

    monkeypatch.setattr(search_module, "_Search", Counted)
    search_module._by_bytes.cache_clear()
    search_module._found.cache_clear()
    mesh = dict.fromkeys("VWXY", 2)
    a = sharding.array("A[B_VW, D_XY]", mesh, B=64, D=64)
    b = sharding.array("W[D, F]", mesh, D=64, F=64)
    c = sharding.array("C[B_XY, F_VW]", mesh, B=64, F=64)
    assert default_plan(a, b, c).moves
    assert len(list(splits_by_case(a, b, c))) == 24
    assert len(begun) < 10


def test_among_equal_ways_the_same_is_taken_in_every_process():
    """Also where Python gives strings other hashes, and sets another order."""
    code = (
        "from shardmath import sharding\n"
        "from shardmath.hardware.mesh import Mesh\n"
        "from shardmath.hardware.networks import network\n"
        "mesh = Mesh(network('v5p:4x4x4'), {'X': 4, 'Y': 4, 'Z': 4})\n"
        "line = 'A[B_Y, D] · W[D, F_YX] -> C[B, F_ZX]'\n"
        "op = sharding.contract(line, mesh, B=1152, D=9216, F=1152)\n"
        "print([plan.before + plan.after for plan in op.candidates])\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "3")
    ]
    assert said[0] == said[1]
    assert "Permute" in said[0]


def test_a_contraction_takes_few_searches_whatever_its_plans(monkeypatch):
    """From each operand and to the result, once plainly and once with all axes."""
    searched = []

    def counted(*arguments, **more):
        searched.append(arguments[0])
        return short_routes(*arguments, **more)

    monkeypatch.setattr(plan_search, "short_routes", counted)
    mesh = {"X": 2, "Y": 2, "Z": 2, "V": 2}
    text = "A[I_X, J_Y] · B[J_Y, K_Z] -> C[I_X, K_V]"
    op = sharding.contract(text, mesh, I=16, J=16, K=16)
    assert len(op.candidates) > 50
    assert len(searched) == 3
    sharding.contract(text, mesh | {"W": 2}, I=32, J=32, K=32)
    assert len(searched) == 9


@pytest.mark.parametrize(
    ("text", "busy", "axes", "below"),
    [
        ("A[B_X, D_Y] -> A[B, D]", "Z", [("X", "Y")], 43.8e-6),
        ("A[B_X, D_Y] -> A[B, D]", (), [("X", "Y", "Z")], 34e-6),
        ("A[B_X, D_Y] -> A[B, D_Y]", "Z", [("X",)], 19.6e-6),
        ("A[B_X, D_Y] -> A[B, D_Y]", (), [("X", "Z")], 15e-6),
    ],
)
def test_gathers_use_all_links_that_they_may(text, busy, axes, below):
    """Two dimensions at once; and copies along an idle axis bring a part each."""
    found = sharding.reshard(text, CUBE, busy=busy, B=1024, D=4096)
    assert [tuple(sorted(c.axes)) for c in found.collectives] == axes
    assert found.lower <= found.seconds <= found.upper
    assert found.seconds < below
    moved = found.collectives[-1]
    assert (
        found.seconds == collectives.all_gather(moved.nbytes, CUBE, moved.axes).seconds
    )


def test_replicated_operands_are_sliced_where_that_is_quicker():
    op = sharding.contract("A[I, J] · B[J, K] -> C[I, K]", CUBE, I=8192, J=8192, K=8192)
    assert op.plan.moves == "nothing"
    best = op.best.estimate(CUBE, "bf16")
    assert best.seconds["math"] == pytest.approx(op.estimate.seconds["math"] / 64)
    assert best.lower < op.estimate.lower / 8
    busy = sharding.contract(
        "A[I, J] · B[J, K] -> C[I, K]", CUBE, busy=True, I=8192, J=8192, K=8192
    )
    assert busy.best.moves == "nothing"


def test_a_transpose_of_the_mesh_crosses_its_bisection():
    """Half of the blocks change sides: 128 of 256 over 2 · 2 · 16 links."""
    mesh = Mesh(Torus(TPU_V5E, (16, 16)), {"X": 16, "Y": 16})
    found = sharding.reshard("A[I_X, J_Y] -> A[I_Y, J_X]", mesh, I=4096, J=4096)
    (permute,) = found.collectives
    assert permute.op == "permute"
    assert len(permute.pairs) == 256
    assert dict(permute.pairs)[1] == 16
    crossing = permute.nbytes * 256 / 4 / mesh.network.bisection
    assert found.bandwidth_seconds >= crossing


def test_collectives_on_other_links_overlap_at_best():
    """A over X and B over Y: the longer of both, or their sum."""
    mesh = Mesh(Torus(TPU_V5P, (4, 4, 4)), {"X": 4, "Y": 16})
    text = "A[I, J_X] · B[J_Y, K] -> C[I, K]"
    op = sharding.contract(text, mesh, I=4096, J=8192, K=4096)
    each = [collectives.price(c, mesh) for c in op.collectives]
    assert len(each) == 2
    network = op.estimate.legs[-1]
    assert network.seconds == pytest.approx(max(one.lower for one in each))
    in_turn = sum(one.expected for one in each)
    assert network.seconds + network.slack == pytest.approx(in_turn)
    same = sharding.contract(text.replace("J_Y", "J_X"), mesh, I=4096, J=8192, K=4096)
    latency = sum(collectives.price(c, mesh).latency_seconds for c in same.collectives)
    assert same.estimate.legs[-1].slack == pytest.approx(latency)  # nothing else waits


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("A[I_YX, J] · B[J_Y, K] -> C[I_Y, K_X]", "AllGather_Y B"),
        ("A[I_X, J] · B[J_X, K] -> C[I_X, K_Y]", "nothing"),
        ("A[I, J_XY] · B[J, K] -> C[I, K_X]", "AllGather_Y A"),
    ],
)
def test_an_axis_of_one_device_moves_nothing(text, moves):
    """Blocks are not permuted to trade its place for another's, or for none."""
    mesh = Mesh(Network((Switch(4, 50e9, 1e-6),)), {"X": 1, "Y": 4})
    for machine in (mesh, dict(mesh.axes)):
        op = sharding.contract(text, machine, I=64, J=48, K=32)
        assert op.plan.moves == moves
        assert all(c.sent > 0 for plan in op.candidates for c in plan.collectives)
    change = sharding.reshard("A[I_XY, J] -> A[I_Y, J_X]", mesh, I=64, J=48)
    assert not change.collectives


# --- sums as operands ----------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "A[I, J]{U_X} · B[J, K] -> C[I, K]{U_X}",
        "A[I, J]{U_X} · B[J, K] -> C[I, K]",
        "A[I, J]{U_X} · B[J, K] -> C[I_X, K]",
        "A[I, J]{U_X} · B[J, K]{U_Y} -> C[I, K]{U_XY}",
        "A[I, J_Y]{U_X} · B[J_Y, K] -> C[I, K_X]",
        "A[I, J] · B[J, K_Y]{U_X} -> C[I, K_Y]{U_X}",
    ],
)
def test_terms_of_an_operand_give_terms_of_the_product(text):
    """Every plan on played devices; the named one multiplies terms as they are."""
    op = sharding.contract(text, XY, **SIZES)
    assert all(step.before.name == "C" for step in op.plan.moved)
    for plan in (op.plan, *op.candidates[:: max(len(op.candidates) // 12, 1)]):
        check_plan(plan, op.a, op.b, op.c)


# --- what else a line knows ----------------------------------------------------------


def test_bytes_of_all_devices_and_the_time_to_read_them():
    array = sharding.array("A[I_X, J]", CUBE, I=1024, J=1024)
    assert array.total_nbytes == 16 * array.nbytes
    seconds = array.local_nbytes / TPU_V4.hbm_bandwidth
    assert array.hbm_seconds(CUBE) == array.hbm_seconds(TPU_V4) == seconds
    with pytest.raises(ValueError, match="must be a `Mesh` or a `Chip`"):
        array.hbm_seconds({"X": 4})


def test_a_chip_alone_gives_times():
    """A batch of matrices times vectors, which no mesh is needed for."""
    op = sharding.contract("W[E, I, J] · x[E, J] -> y[E, I]", H100, E=8, I=4096, J=4096)
    assert op.estimate.seconds["math"] == 2 * 8 * 4096**2 / H100.flops["bf16"]
    assert op.estimate.bound == "memory-bound"
    assert sharding.reshard("A[I] -> A[I]", H100, I=8).seconds == 0


def test_where_the_network_takes_as_long_as_the_math():
    """Also where HBM takes longer than both, so that `bound` does not show it."""
    mesh = Mesh(NVLinkDomain(H100, 8), {"X": 8})
    text = "X[B_X, D] · W[D_X, F] -> Y[B_X, F]"
    op = sharding.contract(text, mesh, B=1024, D=8192, F=8192)
    (size,) = op.balances("B")
    resized = op.plan.resized("B", size)
    seconds = resized.estimate(mesh, "bf16").seconds
    network = Prices(mesh).expected(resized.collectives)
    assert network == pytest.approx(seconds["math"])
    (hbm,) = op.balances("B", "HBM", "math")
    seconds = op.plan.resized("B", hbm).estimate(mesh, "bf16").seconds
    assert seconds["HBM"] == pytest.approx(seconds["math"])


def test_a_verdict_says_how_far_the_next_plan_is():
    def op(B: int):
        text = "X[B, D] · W[D_X, F] -> Y[B, F]"
        return sharding.contract(text, {"X": 8}, B=B, D=4096, F=64)

    crossing, *_ = op(8).crossings("B")
    near, far = op(8 * round(crossing.size / 8)), op(8)
    for found in (near, far):
        sent = [plan.sent for plan in found.ranking]
        assert sent == sorted(sent)
        assert found.ranking[0] is found.best
        assert found.margin == pytest.approx(sent[1] / sent[0] - 1)
    assert near.margin < 0.02
    assert near.verdict.endswith("too close to call")
    assert far.margin > 0.1
    assert "too close" not in far.verdict


# --- names of axes -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "mesh", "placed"),
    [
        ("A[I_data, J_{model}]", {"data": 2, "model": 4}, (("data",), ("model",))),
        ("A[I_{data,model}, J]", {"data": 2, "model": 4}, (("data", "model"), ())),
        ("A[I_{XY}, J]", XY, (("X", "Y"), ())),
        ("A[I_{Y,X}, J]", XY, (("Y", "X"), ())),
        ("A[I_XY, J]", {"X": 2, "Y": 2, "XY": 2}, (("XY",), ())),
        ("A[I_{X,Y}, J]", {"X": 2, "Y": 2, "XY": 2}, (("X", "Y"), ())),
        ("A[I_{data_1}, J_X]", {"data_1": 2, "X": 2}, (("data_1",), ("X",))),
    ],
)
def test_the_mesh_decides_what_a_subscript_means(text, mesh, placed):
    array = sharding.array(text, mesh, I=16, J=16)
    assert array.placed == placed
    assert sharding.array(array.notation, mesh, I=16, J=16) == array


NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,4}(_[a-z0-9]{1,3})?", fullmatch=True)


@given(st.data())
@settings(max_examples=200)
def test_what_is_printed_is_read_back(data):
    """Axes of any names, in any order, on any two dimensions or partial."""
    names = data.draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    order = data.draw(st.permutations(names))
    ends = sorted(data.draw(st.tuples(*[st.integers(0, len(names))] * 3)))
    mesh = dict.fromkeys(names, 2)
    placed = tuple(order[: ends[0]]), tuple(order[ends[0] : ends[1]])
    sums = tuple(n for n in names if n in order[ends[1] : ends[2]])
    array = ShardedArray(
        ("I", "J"), (64, 64), placed, tuple(mesh.items()), unreduced=sums, name="A"
    )
    assert sharding.array(array.notation, mesh, I=64, J=64) == array
    assert len(parse(array.notation).left) == 1
    assert subscript(order, names)


def test_order_of_axes_counts():
    """XY is not YX: blocks of one size on other devices, and a permute between them."""
    mesh = {"X": 2, "Y": 2}
    one, other = (sharding.array(f"A[I_{axes}]", mesh, I=8) for axes in ("XY", "YX"))
    assert one.local_shape == other.local_shape
    assert one.devices_by_block != other.devices_by_block
    for array in (one, other):
        for index, devices in array.devices_by_block.items():
            places = list(array.places())
            assert all(array.index(places[device]) == index for device in devices)
    assert [
        c.op for c in sharding.reshard("A[I_XY] -> A[I_YX]", mesh, I=8).collectives
    ] == ["permute"]


@pytest.mark.parametrize(
    ("text", "said", "column"),
    [
        (
            "A[I_dta, J]",
            r"axis dta is not .* \(data = 2, model = 4\); did you mean data\?",
            4,
        ),
        ("A[I_{model,Data}, J]", r"axis Data is not .*; did you mean data\?", 11),
        ("A[I_data, J_data]", "mesh axis data is already in use", 12),
        ("A[I_data_model, J]", "must be in braces", 8),
        ("A[I_{data, J]", "',' or '}' is expected", 12),
        ("A[i, J]", r"size of i is not given: pass i=…; did you mean I\?", 2),
    ],
)
def test_errors_in_names_point_at_them(text, said, column):
    with pytest.raises(ValueError, match=said) as caught:
        sharding.array(text, {"data": 2, "model": 4}, I=8, J=8)
    assert str(caught.value).splitlines()[-1].index("^") == 4 + column


def test_numpy_numbers_become_those_of_python():
    sizes = {"I": np.int32(65536), "J": np.int32(65536)}
    array = sharding.array("A[I_X, J]", {"X": np.int64(4)}, **sizes)
    assert array.nbytes == 2 * 65536**2
    assert {type(n) for n in (*array.sizes, *dict(array.mesh).values())} == {int}


# --- pictures and errors ------------------------------------------------------------


def test_picture_shows_every_block():
    array = sharding.array("A[I_X, J_Y]", XY, I=4, J=8)
    (panel,) = pictures.draw(array).panels
    drawn.check(pictures.draw(array))
    assert {"I 0:2", "I 2:4", "J 6:8", *map(str, range(8))} <= drawn.words(
        pictures.draw(array)
    )
    assert len(drawn.elements(panel, "rect")) == 8
    assert str(array.table).splitlines()[2].split() == ["I", "2:4", "4", "5", "6", "7"]


@pytest.mark.parametrize(
    ("text", "mesh"),
    [
        ("A[I_X, J]", XY),
        ("A[I, J]", XY),
        ("A[I, J_XY]", XY),
        ("A[I, J_Y]{U_X}", XY),
        ("A[I, J]{U_XY}", XY),
        ("A[I_X, J]{U_Y}", {"X": 2, "Y": 512}),
        ("A[I_X, J]", {"X": 512, "Y": 2}),
        ("A[I_data, J_model]", {"data": 4, "model": 16}),
        ("A[I_X, J_Y, K_Z]", XYZ),
    ],
)
def test_a_layout_fits_its_panel(text, mesh):
    """Labels stay inside and off each other, for few devices and for many."""
    sizes = {dim: 2048 for dim in "IJK" if dim in text}
    array = sharding.array(text, mesh, **sizes)
    drawn.check(pictures.draw(array))
    drawn.check(pictures.layouts(array, array))


@pytest.mark.parametrize("text", ["A[I_XY, J]", "A[I_YX, J]", "A[I, J_XY]"])
def test_a_device_stands_in_the_block_that_it_holds(text):
    """Read from the places of the labels; its colour is its own in every picture."""
    array = sharding.array(text, XY, I=8, J=8)
    (panel,) = pictures.draw(array).panels
    labels = [(w, b) for w, b in drawn.texts(panel) if w.isdigit()]
    boxes = drawn.elements(panel, "rect")
    order = sorted(array.devices_by_block.items())
    for box, (said, (left, top, *_)), (_, (device,)) in zip(
        boxes, labels, order, strict=True
    ):
        assert said == str(device)
        assert 0 <= left - float(box.get("x")) <= float(box.get("width"))
        assert 0 <= top - float(box.get("y")) <= float(box.get("height"))
        assert f"--sm-hue{device + 1}," in box.get("fill")


def test_copies_stand_side_by_side_and_terms_are_joined_by_plus():
    copies, terms = (
        pictures.draw(sharding.array(text, XY, I=8, J=8))
        for text in ("A[I_X, J]", "A[I_X, J]{U_Y}")
    )
    assert "+" not in drawn.words(copies)
    assert [w for w, _ in drawn.texts(terms.panels[0])].count("+") == 2 * 3
    assert "hold the same" in copies.desc
    assert "terms of one sum" in terms.desc


def test_layouts_need_an_array():
    with pytest.raises(ValueError, match="must be given at least one array"):
        pictures.layouts()


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("A[I_X]", {"0, 1, 2, 3", "4, 5, 6, 7"}),
        ("A[I_X]{U_Y}", {"0 + 1 + 2 + 3", "4 + 5 + 6 + 7"}),
        ("A[I_Y]{U_X}", {"0 + 4", "1 + 5", "2 + 6", "3 + 7"}),
        ("A[I]{U_X}", {"(0, 1, 2, 3) + (4, 5, 6, 7)"}),
    ],
)
def test_picture_tells_copies_from_terms(text, cells):
    array = sharding.array(text, XY, I=8)
    assert set(array.table.rows[0][1:]) == cells


def test_large_meshes_are_abbreviated():
    array = sharding.array("A[I_X, J]", {"X": 512}, I=1024, J=4)
    assert len(array.table.rows) == 5
    assert array.table.rows[-1] == ("I 1022:1024", "511")
    deep = sharding.array("A[I_X, J_Y, K_Z]", XYZ, I=4, J=4, K=4)
    assert "K is split too" in pictures.draw(deep).desc
    assert "a box is split along K too" in drawn.words(pictures.draw(deep))


@pytest.mark.parametrize(
    ("text", "said", "column"),
    [
        ("A[I_X, J_X]", "mesh axis X is already in use", 9),
        ("A[I_X, J]{U_X}", "mesh axis X is already in use", 12),
        ("A[I, I]", "dimension I is already in this array", 5),
        ("A[I_Z, J]", r"Z is not in the mesh \(X = 2, Y = 4\)", 4),
        ("A[I, J_Y]", r"\|Y\| = 4 does not divide J = 6", 5),
        ("A[I, J_XY]", r"\|X\| · \|Y\| = 8 does not divide J = 6", 5),
        ("A[I, K]", "size of K is not given", 5),
        ("A[I J]", "',' or ']' is expected", 4),
        ("A[I, ]", "a dimension is expected", 5),
        ("A[I_, J]", "a mesh axis is expected", 4),
        ("A[I]{V_X}", "'U' is expected", 5),
        ("A[I, J", "',' or ']' is expected", 6),
        ("A[I, J] B", "'B' is not expected", 8),
        ("bf17[I, J]", "format 'bf17': must be one of", 0),
        ("A[I] -> B[J]", "`reshard` changes", 8),
        ("A[I] · B[J]", "`contract` takes", 7),
    ],
)
def test_errors_in_an_array_point_at_the_character(text, said, column):
    with pytest.raises(ValueError, match=said) as caught:
        sharding.array(text, XY, I=8, J=6)
    _, shown, carets = str(caught.value).splitlines()
    assert shown == f"    {text}"
    assert carets.index("^") == 4 + column


@pytest.mark.parametrize(
    ("text", "said", "column"),
    [
        ("A[I, J] · B[K, J] -> C[I]", "K is neither in the other operand", 12),
        ("A[I, J] · B[J, K] -> C[I, K, L]", "L is in neither operand", 29),
        ("A[I, J] · B[J, K]", "the result with its sharding", 17),
        ("A[I, J] -> B[J, K]", "a second operand", 11),
        (
            "A[I, J] ·_K B[J, K] -> C[I, K]",
            "K is not summed over; the line sums over J",
            10,
        ),
        ("A[I, J] · B[I, J] -> C[I, J]", "share no dimension", 10),
        ("A[I, J]{U_X} · B[J, K]{U_X} -> C[I, K]", "not the product of the sums", 10),
        (
            "A[I, J]{U_X} · B[J_X, K] -> C[I, K]",
            "each term must be multiplied by every block",
            10,
        ),
        ("A[I, J] · B[J, K]{U_X} -> C[I, K]{U_Y}", "Y does not divide a dim", 36),
        ("A[I, J] B[J, K] -> C[I, K]", "'·', '\\*' or '@' between two arrays", 8),
        ("A[I, J] . B[J, K] -> C[I, K]", "'·', '\\*' or '@' between two arrays", 8),
        ("A[I, J] · B[J, K] -> C[I, K]{U_Y}", "Y does not divide a dimension", 31),
        ("A[I_X, J] · B[J, K_X] -> C[I_X, K_X]", "X is already in use", 34),
    ],
)
def test_errors_in_a_matmul_point_at_the_character(text, said, column):
    sizes = {name: 6 if name == "J" else 8 for name in "IJKL" if name in text}
    with pytest.raises(ValueError, match=said) as caught:
        sharding.contract(text, XY, **sizes)
    assert str(caught.value).splitlines()[-1].index("^") == 4 + column


PRODUCT = sharding.contract("A[I]·B[I,J]->C[J]", I=8, J=8)
PRICED = sharding.contract("A[I]·B[I,J]->C[J]", TPU_V5P, I=8, J=8)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: sharding.array("A[I]", I=0), "I = 0: must be a whole number"),
        (lambda: sharding.array("A[I]", I=8, J=2), "J = 2: the line has no such"),
        (lambda: sharding.array("A[I]", {"X": 0.5}, I=8), "X = 0.5: must be a whole"),
        (lambda: sharding.array("A[I]", dtype="f8", I=8), "format 'f8'"),
        (lambda: sharding.reshard("A[I, J] -> A[J, I]", I=8, J=8), "in this order"),
        (lambda: sharding.reshard("A[I] -> A[I]{U_X}", XY, I=8), "no partial sums"),
        (lambda: sharding.reshard("A[I] -> B[I]", XY, I=8), "must be the same array"),
        (lambda: sharding.reshard("A[I]", XY, I=8), "array after the change"),
        (lambda: sharding.array("A[I]", ["X"], I=8), r"mesh = \['X'\]: must be"),
        (lambda: sharding.array(None), "text = None: must be a line"),
        (lambda: sharding.array("A[I]", dtype=None, I=8), "format None: must be"),
        (lambda: sharding.array("A[I]", dtype=[], I=8), r"format \[\]: must be"),
        (lambda: sharding.array("A[I]", I="8"), "I = '8': must be a whole number"),
        (
            lambda: sharding.reshard("A[I_X] -> A[I]", XY, busy="X", I=8),
            "busy = 'X': the line itself uses",
        ),
        (
            lambda: sharding.reshard("A[I_X] -> A[I]", XY, busy=["Q"], I=8),
            "busy = 'Q': must be one of X, Y",
        ),
        (lambda: sharding.reshard("A[I] -> A[I]", I=8).seconds, "must be a `Mesh`"),
        (
            lambda: sharding.contract("A[I]·B[I,J]->C[J]", I=8, J=8).crossings("L"),
            "dimension 'L': must be one of I, J",
        ),
        (
            lambda: sharding.contract("A[I]·B[I,J]->C[J]", I=8, J=8).estimate,
            "must be a `Mesh`",
        ),
        (
            lambda: sharding.contract("A[I]·B[I,J]->C[J]", XY, busy=5, I=8, J=8),
            "busy = 5: must be True, False or some of X, Y",
        ),
        (
            lambda: sharding.reshard("A[I_X] -> A[I]", XY, busy=np.int32(4), I=8),
            r"busy = .*4.*: must be True, False or some of X, Y",
        ),
        (lambda: PRODUCT.crossings("J", ["gather"]), "plan = 'gather': must be one of"),
        (lambda: PRODUCT.crossings("J", 5), "plans = 5: must be some of"),
        (lambda: PRODUCT.crossings("J", low=8, high=8), "low = 8: must be below"),
        (lambda: PRODUCT.plan.resized("J", -8), "J = -8: must be a finite number"),
        (lambda: PRODUCT.plan.resized("J", "8 MB"), "J = '8 MB': must be a finite"),
        (lambda: PRODUCT.plan.resized("L", 8), "dimension 'L': must be one of I, J"),
        (
            lambda: sharding.array("A[I_X]", XY, I=8).index({"Y": 0}),
            r"place = {'Y': 0}: X must be from 0 to",
        ),
        (lambda: PRICED.balances("J", plan=5), "plan = 5: must be one of"),
        (
            lambda: sharding.contract(
                "A[I_X, J] · B[J_XY, K] -> C[I_Y, K]", XY, I=4, J=8, K=8
            ),
            "the case splits I over XY, into 8 parts: 8 does not divide I",
        ),
    ],
)
def test_bad_input_is_quoted(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_busy_takes_the_flags_of_other_libraries():
    line, sizes = "A[I, J] · B[J, K] -> C[I, K]", dict.fromkeys("IJK", 8)
    plain, numpys = (
        sharding.contract(line, XY, busy=flag, **sizes) for flag in (True, np.True_)
    )
    assert plain == numpys != sharding.contract(line, XY, busy=np.False_, **sizes)


def test_collectives_over_levels_share_what_each_of_them_crosses():
    """A gather over two nodes is bound by NVLink, a sum over the nodes by the cards:
    together they take the longer of what the cards and what NVLink carry."""
    mesh, V = Mesh(Cluster(NVLinkDomain(H100), 64), {"Z": 32, "X": 16}), 64e9
    gather = Collective("all_gather", ("X",), V, 16)
    sums = Collective("all_reduce", ("Z",), V / 16, 32)
    card, nvlink = 50e9, 450e9
    # Half of V comes into each node, by its eight cards; each chip's eighth goes round.
    carried = V / 2 / 8 / card + 2 * V / 16 * 31 / 32 / card, V * 7 / 8 / nvlink
    prices = Prices(mesh)
    found = prices.lower([gather, sums])
    assert found == pytest.approx(max(carried))
    alone = [prices.terms(one)[0] for one in (gather, sums)]
    assert [prices.lower([one]) for one in (gather, sums)] == pytest.approx(alone)
    latency = [prices.terms(one)[1] for one in (gather, sums)]
    assert prices.expected([gather, sums]) == pytest.approx(found + sum(latency))
    assert max(alone) < found < 0.9 * sum(alone)
