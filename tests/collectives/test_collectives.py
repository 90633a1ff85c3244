"""Bytes and times of collectives: limits, equivalences, published answers, errors."""

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import let_through, trees

from shardmath import collectives
from shardmath.collectives import NAMES, Collective, permute, price
from shardmath.collectives.simulator import simulate
from shardmath.exercises.answers import ch05
from shardmath.hardware import chips
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import Cluster, NVLinkDomain, Slices, Torus
from shardmath.hardware.networks.wiring import Network, Ring, Switch

W, ALPHA = 50e9, 1e-6
SIZES = st.floats(1, 1e12)


def mesh_of(*wires):
    return Mesh(Network(wires), {"X": math.prod(w.size for w in wires)})


def ring(n, wrap=True, latency=ALPHA):
    return Ring(n, W, latency, wrap and n > 2)


def run(op, nbytes, mesh, axes="X", **more):
    return collectives.price_of(op, nbytes, mesh, axes, **more)


@pytest.mark.parametrize(
    ("op", "sent"),
    [
        ("all_gather", 7e6),
        ("reduce_scatter", 7e6),
        ("all_reduce", 14e6),
        ("all_to_all", 7e6 / 8),
        ("permute", 8e6),
    ],
)
def test_bytes_that_one_device_sends(op, sent):
    once = Collective(op, ("X",), 8e6, group=8)
    assert once.sent == pytest.approx(sent)
    assert Collective(op, ("X",), 8e6, 8, times=5).total_sent == 5 * once.sent
    assert Collective(op, ("X",), 8e6, group=1).sent == 0


@given(st.integers(2, 4096), SIZES)
def test_all_reduce_is_a_reduce_scatter_and_an_all_gather(n, V):
    """In bytes and, on rings and on switches that do not add, in time.

    On a line that is the upper bound, and V over one link the lower.
    """
    for wires in ((ring(n),), (ring(n, False),), (Switch(n, W, ALPHA), ring(4))):
        both = [run(op, V, mesh_of(*wires)) for op in ("reduce_scatter", "all_gather")]
        whole = run("all_reduce", V, mesh_of(*wires))
        twice = sum(p.expected for p in both)
        line = wires[0] == ring(n, False)
        found = whole.upper if line else whole.expected
        assert found == pytest.approx(twice, rel=1e-12)
        if line:
            assert whole.lower == pytest.approx(V / W)
            assert whole.exact == (n == 2)
        sent = sum(p.collective.sent for p in both)
        assert whole.collective.sent == pytest.approx(sent, rel=1e-12)
        assert both[0].seconds == both[1].seconds


@given(st.integers(3, 500), SIZES)
def test_all_to_all_is_a_quarter_of_an_all_gather(n, V):
    """On a ring n/(4(n−1)) or (n+1)/(4n) of it; half, when one direction is used."""
    mesh = mesh_of(ring(n))
    share = n / (4 * (n - 1)) if n % 2 == 0 else (n + 1) / (4 * n)
    a2a, ag = (
        run(op, V, mesh).bandwidth_seconds for op in ("all_to_all", "all_gather")
    )
    assert a2a / ag == pytest.approx(share, rel=1e-9)
    assert 0.25 < share <= 0.25 * 4 / 3
    one_way = [
        run(op, V, mesh, one_way=True).bandwidth_seconds
        for op in ("all_to_all", "all_gather")
    ]
    assert one_way[0] / one_way[1] == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize("op", NAMES)
def test_one_device_sends_nothing(op):
    alone = run(op, 1e6, mesh_of(Ring(1, W, ALPHA, wrap=False)))
    assert (alone.seconds, alone.latency_bound_below) == (0, 0)
    assert "nothing to send" in str(alone)


def test_two_devices_exchange_halves():
    """n = 2: one link, one hop; half of V each way, all of V for AllReduce."""
    mesh, V = mesh_of(ring(2)), 1e6
    assert run("all_gather", V, mesh).seconds == pytest.approx(V / 2 / W + ALPHA)
    assert run("all_reduce", V, mesh).seconds == pytest.approx(V / W + 2 * ALPHA)
    assert run("all_to_all", V, mesh).seconds == pytest.approx(V / 4 / W + ALPHA)


def test_time_of_a_ring_does_not_grow_with_its_size():
    """AllGather tends to V/(2W): at 4096 chips within 0.03 %."""
    seconds = run("all_gather", 1e9, mesh_of(ring(4096, latency=0))).seconds
    assert seconds == pytest.approx(1e9 / (2 * W), rel=3e-4)


@given(st.integers(2, 64), st.booleans())
def test_small_arrays_are_latency_bound(n, wrap):
    """Below the size where both terms are equal hops count, above it bytes."""
    for op in NAMES:
        at_one_byte = run(op, 1, mesh_of(ring(n, wrap)))
        V = at_one_byte.latency_bound_below
        equal = run(op, V, mesh_of(ring(n, wrap)))
        assert equal.bandwidth_seconds == pytest.approx(equal.latency_seconds)
        tiny = run(op, V / 1e6, mesh_of(ring(n, wrap)))
        assert tiny.seconds == pytest.approx(equal.latency_seconds, rel=1e-5)


def test_a_switch_that_reduces_spares_half_the_sending():
    """V/W in place of 2V/W·(n−1)/n, so that "busbw" exceeds the wire."""
    plain = mesh_of(Switch(8, 450e9, 0))
    adds = mesh_of(Switch(8, 450e9, 0, reduces=True))
    slow, fast = (run("all_reduce", 1e9, m) for m in (plain, adds))
    assert slow.seconds / fast.seconds == pytest.approx(2 * 7 / 8)
    assert fast.bus_bandwidth > 450e9 >= slow.bus_bandwidth * (1 - 1e-12)
    for op in ("all_gather", "reduce_scatter", "all_to_all"):
        assert run(op, 1e9, plain).seconds == run(op, 1e9, adds).seconds


def test_the_mesh_gives_the_same_rate():
    """`Mesh.bandwidth` is sent bytes over the bandwidth term of an AllGather."""
    torus = Torus(chips.TPU_V5P, (8, 8, 16))
    slices = Slices(torus, 4, latency=1e-5)
    nodes = Cluster(NVLinkDomain(chips.H100), (4, 32))
    for mesh, axes in [
        (Mesh(torus, {"X": 4, "Y": 2, "Z": 128}), ["X", "Y", "Z", ("X", "Y")]),
        (Mesh(slices, {"D": 4, "X": 64, "Y": 16}), ["D", "X", ("D", "X"), ("D", "Y")]),
        (Mesh(nodes, {"A": 16, "B": 64}), ["A", "B", ("A", "B")]),
    ]:
        for axis in axes:
            ag = run("all_gather", 1e9, mesh, axis)
            pace = mesh.binding(axis)
            rate = ag.collective.sent / ag.bandwidth_seconds
            assert rate == pytest.approx(pace.bandwidth, rel=1e-12)
            assert ag.level == pace.level


def test_a_hierarchy_is_bound_by_its_slower_level():
    """16 nodes of 8 H100 at 50 GB/s a GPU: 400 GB/s of node egress set the pace."""
    mesh = Mesh(Cluster(NVLinkDomain(chips.H100), 16), {"nodes": 16, "gpus": 8})
    found = run("all_gather", 1e9, mesh, ("nodes", "gpus"))
    assert (found.level, found.exact) == ("leaf", False)
    assert found.bandwidth_seconds == pytest.approx(1e9 * 15 / 16 / 400e9)
    within = 1e9 * 7 / 8 / 450e9
    serial = found.bandwidth_seconds + within + found.latency_seconds
    assert found.upper == pytest.approx(serial)
    assert "at least 2.34 ms at the rate of leaf, 2.35 ms expected" in str(found)
    assert str(found).endswith("up to 4.29 ms")


def test_runs_add_up():
    mesh = mesh_of(ring(8))
    once = run("all_gather", 1e6, mesh)
    many = price(Collective("all_gather", ("X",), 1e6, 8, times=3), mesh)
    assert many.seconds == pytest.approx(3 * once.seconds)
    assert many.bus_bandwidth == pytest.approx(once.bus_bandwidth)


# Published answers: How to Scale Your Model, chapters 3 and 12. Chapter 3 leaves out
# (n−1)/n, which is the limit of many chips; `many` puts it in.


def many(priced):
    n = priced.collective.group
    return priced.bandwidth_seconds * n / (n - 1)


def test_published_gathers_on_a_cube():
    """Ch. 3, question 2: v4p 4x4x4, bf16[B_X, D_Y], 90 GB/s both ways of an axis."""
    torus = Torus(chips.TPU_V4, (4, 4, 4), bandwidth=45e9)
    mesh = Mesh(torus, {"X": 4, "Y": 4, "Z": 4})
    whole = 2 * 1024 * 4096
    ag_x = run("all_gather", whole / 4, mesh, "X")
    ag_xy = run("all_gather", whole, mesh, ("X", "Y"))
    ar_z = run("all_reduce", whole / 16, mesh, "Z")
    assert many(ag_x) == pytest.approx(23.3017e-6, rel=0.02)
    assert many(ag_xy) == pytest.approx(46.6034e-6, rel=0.02)
    assert many(ar_z) == pytest.approx(11.6508e-6, rel=0.02)
    # Kept, the factor takes a quarter off the time over one axis of 4 chips.
    assert ag_x.bandwidth_seconds == pytest.approx(0.75 * 23.3017e-6, rel=1e-4)
    # Resharded over the idle Z first, Z carries part of the gather.
    over_xz = run("all_gather", whole / 4, mesh, ("X", "Z"))
    over_all = run("all_gather", whole, mesh, ("X", "Y", "Z"))
    assert many(over_xz) == pytest.approx(11.6508e-6, rel=0.02)
    assert many(over_all) == pytest.approx(31.0689e-6, rel=0.02)


def test_published_choice_between_moving_weights_and_moving_results():
    """Ch. 3, question 4: AllGather of Y[D_X, F] or AllReduce of X·Y; C/W = 2550."""
    mesh, C = mesh_of(Ring(64, 90e9, 0)), 4.59e14

    def gather(D, F):
        return many(run("all_gather", 2 * D * F, mesh))

    def reduce(B, F):
        return many(run("all_reduce", 2 * B * F, mesh))

    B, D, F = 1024, 8192, 16384
    assert pytest.approx(gather(D, F), rel=0.02) == 2 * 2550 * D * F / C
    axis = D / 5100  # chips up to which the second way is compute-bound
    assert 2 * B * D * F / (axis * C) == pytest.approx(reduce(B, F), rel=0.02)
    assert gather(2 * B, F) == pytest.approx(reduce(B, F), rel=1e-12)


def test_published_outer_product():
    """Ch. 3, question 9: gathering A[N, M] over scattering O[N, K] is M/K."""
    N, M, K = 512, 4096, 1024
    mesh = mesh_of(ring(8, latency=0))
    ratio = (
        run("all_gather", 2 * N * M, mesh).seconds
        / run("reduce_scatter", 2 * N * K, mesh).seconds
    )
    assert ratio == pytest.approx(M / K)


ONE_SHOT = {  # bytes at which one pass is as fast as two, over W·α
    "ring": lambda n: 2 * n * (n // 2) / ((n - 1) * (n - 2)),
    "switch": lambda n: n / ((n - 1) * (n - 2)),
}


@pytest.mark.parametrize("n", [3, 4, 5, 8, 16])
@pytest.mark.parametrize("kind", ONE_SHOT)
def test_an_all_reduce_in_one_shot_beats_that_of_two_passes_below_its_crossing(kind, n):
    """Played: every chip's whole array goes to all, and each of them adds."""
    mesh = mesh_of(ring(n) if kind == "ring" else Switch(n, W, ALPHA))
    terms = [[3**chip] for chip in range(n)]
    even = W * ALPHA * ONE_SHOT[kind](n)
    for V in (1e3, even * (1 - 1e-6), even * (1 + 1e-6), 1e9):
        played = simulate("all_gather", n * V, mesh, "X", data=terms)
        assert {sum(held) for held in played.result} == {sum(3**c for c in range(n))}
        assert played.seconds == pytest.approx(run("all_gather", n * V, mesh).seconds)
        two = run("all_reduce", V, mesh)
        assert two.exact
        assert (played.seconds < two.expected) == (even > V)
        assert played.seconds > two.lower


def test_where_one_shot_is_faster():
    """8 v5p on a ring up to 152 kB, 8 H200 up to 285 kB; nowhere if a switch adds."""
    v5p = mesh_of(Ring(8, 100e9, 1e-6))
    small = [
        run(op, V, v5p).seconds for op, V in (("all_reduce", 1e3), ("all_gather", 8e3))
    ]
    assert small == pytest.approx([8.00875e-6, 4.035e-6])
    assert 100e9 * 1e-6 * ONE_SHOT["ring"](8) == pytest.approx(152.4e3, rel=1e-3)
    node, adding = (
        Mesh(NVLinkDomain(chips.H200, reduces=adds), {"X": 8}) for adds in (False, True)
    )
    for V, faster in ((284e3, True), (286e3, False)):
        one = run("all_gather", 8 * V, node).seconds
        assert (one < run("all_reduce", V, node).seconds) == faster
        assert one > run("all_reduce", V, adding).seconds
    for V in (1e3, 1e9):  # two chips save a hop, and send no more
        two, one = (
            run(op, nbytes, mesh_of(ring(2)))
            for op, nbytes in (("all_reduce", V), ("all_gather", 2 * V))
        )
        assert one.seconds == pytest.approx(two.seconds - ALPHA)


@pytest.mark.parametrize("n", [4, 6, 8, 12, 16])
@pytest.mark.parametrize("one_way", [False, True])
@pytest.mark.parametrize(
    ("op", "part"), [("all_gather", 1 / 2), ("all_to_all", 1 / 4), ("permute", 1)]
)
def test_opposite_chips_of_a_ring_load_the_links_that_are_there(n, one_way, op, part):
    """Each sends `part` of V to the other, n/2 links on: one way round, or half each.

    The bytes of all n/2 pairs are laid on the links of the network, one by one.
    """
    network = Network((Ring(n, W, ALPHA),))
    rates = {link[:2]: link.bandwidth for link in network.links()}
    loads = dict.fromkeys(rates, 0.0)
    for chip in range(n):
        for sign, share in [(1, 1.0)] if one_way else [(1, 0.5), (-1, 0.5)]:
            for hop in range(n // 2):
                here = (chip + sign * hop) % n
                loads[here, (here + sign) % n] += share * part * 1e9
    busiest = max(loads[link] / rates[link] for link in rates)
    opposite = Mesh(network, {"X": 2, "Y": n // 2})
    found = run(op, 1e9, opposite, one_way=one_way)
    assert found.bandwidth_seconds == pytest.approx(busiest)
    assert found.latency_seconds == pytest.approx(n // 2 * ALPHA)
    played = simulate(op, 1e9, opposite, "X", one_way=one_way)
    assert played.seconds == pytest.approx(found.seconds)


def test_published_ratios_of_all_to_all():
    """Ch. 3, question 10, on a long ring: one-way 1/2, both ways 2x, 4x and 1/4."""
    mesh = mesh_of(ring(1024))

    def seconds(op, one_way):
        return run(op, 1e9, mesh, one_way=one_way).bandwidth_seconds

    ag, a2a = (
        {way: seconds(op, way) for way in (True, False)}
        for op in ("all_gather", "all_to_all")
    )
    assert a2a[True] / ag[True] == pytest.approx(0.5, rel=0.01)
    assert ag[True] / ag[False] == pytest.approx(2, rel=0.01)
    assert a2a[True] / a2a[False] == pytest.approx(4, rel=0.01)
    assert a2a[False] / ag[False] == pytest.approx(0.25, rel=0.01)


def test_published_bandwidths_of_a_superpod():
    """Ch. 12, 1024 H100 in 4 units of 32 nodes: bytes gathered per second, by level.

    The book prints 413 GB/s for all 1024 as well: it leaves out what the cards carry
    for the other units, 128/127 of 400 GB/s.
    """
    network = Cluster(NVLinkDomain(chips.H100, bandwidth=450e9), (4, 32), egress=400e9)
    mesh = Mesh(network, {"unit": 4, "node": 32, "gpu": 8})

    def rate(axes):
        return 1e9 / run("all_gather", 1e9, mesh, axes).bandwidth_seconds

    assert rate("gpu") == pytest.approx(514.286e9, rel=0.02)
    assert rate(("node", "gpu")) == pytest.approx(412.903e9, rel=0.02)
    assert rate("unit") * 256 == pytest.approx(17.0667e12, rel=0.02)  # 256 GPUs a unit
    assert rate(("unit", "node", "gpu")) == pytest.approx(400e9 * 128 / 127)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Collective("allgather", ("X",), 1, 2), "'allgather'.*all_gather"),
        (lambda: Collective("permute", ("X",), 0, 2), "nbytes = 0"),
        (lambda: Collective("permute", ("X",), 1, 2.0), "group = 2.0"),
        (lambda: Collective("permute", ("X",), 1, 2, times=0), "times = 0"),
        (lambda: Collective("permute", ("X",), 1, 10**400), "group = 10000"),
        (lambda: Collective("permute", ("X",), 1, 2, when=[]), r"when = \[\]"),
        (lambda: Collective("permute", None, 1, 2), "axes = None"),
        (lambda: Collective("permute", (1,), 1, 2), r"axes = \(1,\)"),
        (lambda: Collective(["permute"], "X", 1, 2), r"op \['permute'\]"),
        (lambda: price("all_gather", mesh_of(ring(4))), "collective = 'all_gather'"),
        (lambda: run("all_gather", 1, NVLinkDomain(chips.H100)), "must be a Mesh"),
        (lambda: run("gather", 1, mesh_of(ring(4))), "'gather': must be one of"),
        (lambda: run("all_gather", "1 GB", mesh_of(ring(4))), "nbytes = '1 GB'"),
        (lambda: Collective("permute", ("X",), 1, 2, pairs=((0, 2),)), "0 to 1"),
        (lambda: Collective("permute", ("X",), 1, 2, pairs=((0, 0.5),)), "0 to 1"),
        (lambda: Collective("permute", ("X",), 1, 2, pairs=3), "pairs = 3"),
        (
            lambda: Collective("permute", ("X",), 1, 3, pairs=((0, 1), (2, 1))),
            "targets twice",
        ),
        (
            lambda: Collective("all_gather", ("X",), 1, 2, pairs=((0, 1),)),
            "not for all_gather",
        ),
        (
            lambda: collectives.ragged_all_to_all([[1, 2]], mesh_of(ring(2)), "X"),
            "2 rows of 2",
        ),
        (
            lambda: collectives.ragged_all_to_all(
                [[0, -1], [1, 0]], mesh_of(ring(2)), "X"
            ),
            r"sent\[0\]\[1\] = -1",
        ),
        (
            lambda: collectives.ragged_all_to_all(
                [[0, 10**400], [1, 0]], mesh_of(ring(2)), "X"
            ),
            r"sent\[0\]\[1\] = 10000",
        ),
        (
            lambda: collectives.ragged_all_to_all(3, mesh_of(ring(2)), "X"),
            "sent = 3: must be 2 rows",
        ),
        (
            lambda: collectives.ragged_all_to_all([[0, 1], [1, 0]], None, "X"),
            "mesh = None: must be a Mesh",
        ),
        (lambda: run("all_gather", 1, mesh_of(ring(4)), "Q"), "'Q'.*X"),
        (
            lambda: run("all_gather", 1, mesh_of(ring(4)), one_way="no"),
            "one_way = 'no': must be True or False",
        ),
        (
            lambda: permute(1, mesh_of(ring(4)), "X", ((0, 2), (2, 0))),
            r"one_way = \(\(0, 2\), \(2, 0\)\): must be True or False",
        ),
        (
            lambda: collectives.ragged_all_to_all(
                [[0, 1], [1, 0]], mesh_of(ring(2)), "X", 1
            ),
            "one_way = 1: must be True or False",
        ),
        (lambda: run("all_gather", math.nan, mesh_of(ring(4))), "nbytes = nan"),
        (
            lambda: price(Collective("permute", ("X",), 1, 8), mesh_of(ring(4))),
            "group = 8: must be the 4",
        ),
    ],
)
def test_bad_input_is_quoted(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_a_transpose_is_no_shift_to_the_next():
    """(i, j) to (j, i) on v5e 16x16: 64 pairs lead from one half into the other.

    They share the 2 · 16 links between the halves: twice as long as a shift by one.
    """
    mesh = Mesh(Torus(chips.TPU_V5E, (16, 16)), {"X": 16, "Y": 16})
    turn = tuple((16 * i + j, 16 * j + i) for i in range(16) for j in range(16))
    V = 1e9
    shift, turned = (permute(V, mesh, ("X", "Y"), pairs=p) for p in ((), turn))
    crossing = sum(a % 16 < 8 <= b % 16 for a, b in turn)
    links = mesh.network.bisection
    assert turned.bandwidth_seconds == pytest.approx(crossing * V / links)
    assert turned.bandwidth_seconds == pytest.approx(2 * shift.bandwidth_seconds)
    assert turned.upper > turned.lower


def loads_on_the_graph(network, pairs):
    """Bytes on each link of a torus, dimension by dimension, by counting on its graph.

    Each pair walks to the neighbour from which fewer steps are left, last dimension
    first; where two are equally near, half goes each way.
    """
    grid, found = np.arange(network.chips).reshape(network.shape), {}
    near = {(link.source, link.destination) for link in network.links()}
    for a, b in pairs:
        for share, sign in ((0.5, 1), (0.5, -1)):
            at = list(np.argwhere(grid == a)[0])
            goal = np.argwhere(grid == b)[0]
            for dim in reversed(range(grid.ndim)):
                n = network.shape[dim]
                ahead = (goal[dim] - at[dim]) % n
                turn = sign if 2 * ahead == n else (1 if 2 * ahead < n else -1)
                while at[dim] != goal[dim]:
                    before = int(grid[tuple(at)])
                    at[dim] = (at[dim] + turn) % n
                    link = before, int(grid[tuple(at)])
                    assert link in near
                    found[link] = found.get(link, 0) + share
    return found


@given(st.sampled_from([(8,), (4, 4), (3, 5), (4, 6)]), st.randoms())
@settings(max_examples=30)
def test_the_bounds_of_a_permute_hold_the_busiest_link(shape, random):
    """Whatever the pairs: lower ≤ bytes of the busiest link, in one go ≤ upper."""
    network = Network(tuple(ring(n, latency=0) for n in shape))
    targets = list(range(network.chips))
    random.shuffle(targets)
    pairs = tuple(enumerate(targets))
    priced = permute(1e6, Mesh(network, {"X": network.chips}), "X", pairs=pairs)
    busiest = 1e6 * max(loads_on_the_graph(network, pairs).values(), default=0) / W
    assert priced.lower <= busiest * (1 + 1e-9)
    assert busiest <= priced.upper * (1 + 1e-9)
    if len(shape) == 1:
        assert priced.lower == pytest.approx(busiest)


@given(st.sampled_from([(8,), (4, 4), (4, 8), (3, 5)]), st.booleans())
def test_an_even_ragged_all_to_all_is_an_all_to_all(shape, wrap):
    mesh = mesh_of(*(ring(n, wrap) for n in shape))
    n = math.prod(shape)
    even = collectives.ragged_all_to_all([[1e6] * n] * n, mesh, "X")
    plain = run("all_to_all", n * n * 1e6, mesh)
    assert even.lower == pytest.approx(plain.lower)
    assert even.collective.sent == pytest.approx(plain.collective.sent)
    if plain.exact:
        assert even.bandwidth_seconds == pytest.approx(plain.bandwidth_seconds)


def test_a_part_of_no_bytes_takes_no_hop():
    """On a ring of 8 that sends to neighbours alone, one hop is the bound, not four."""
    sent = [[1e6 * (j == (i + 1) % 8) for j in range(8)] for i in range(8)]
    mesh = mesh_of(ring(8))
    ragged = collectives.ragged_all_to_all(sent, mesh, "X")
    assert ragged.lower == pytest.approx(run("permute", 1e6, mesh).lower)


def test_numpy_and_jax_numbers_do_not_overflow():
    """2^31 bytes more than an int32 holds once stood as −268 GB."""
    import jax.numpy as jnp

    for whole in (np.int32, jnp.int32):
        one = Collective("all_gather", ("X",), whole(2**31 - 1), whole(8), whole(500))
        assert one.total_sent == (2**31 - 1) * 7 / 8 * 500
        assert all(type(n) is int for n in (one.nbytes, one.group, one.times))


@st.composite
def laid(draw):
    """A random tree, and axes A and B laid on it somehow."""
    network = draw(trees(most=24))
    axes = [
        {"A": a, "B": network.chips // a}
        for a in range(1, network.chips + 1)
        if network.chips % a == 0
    ]
    meshes = []
    for sizes in axes:
        with contextlib.suppress(ValueError):
            meshes.append(Mesh(network, sizes))
    return draw(st.sampled_from(meshes))


def must_leave(op, V, mesh, axis, unit):
    """Bytes that the chips `unit` must send to others, all groups over `axis` at once.

    An AllReduce costs k units 2V(k−1)/k each, where no switch adds.
    """
    grid = np.arange(mesh.network.chips).reshape(mesh.size("A"), mesh.size("B"))
    groups = {"A": grid.T, "B": grid, ("A", "B"): grid.reshape(1, -1)}[axis]
    total = 0.0
    for group in groups:
        n, inside = len(group), len(unit & set(map(int, group)))
        if not 0 < inside < n:
            continue
        total += (
            V
            * {
                "all_gather": 1 - inside / n,
                "reduce_scatter": 1 - inside / n,
                "all_reduce": 2 * (1 - inside / n),
                "all_to_all": inside * (n - inside) / n**2,
            }[op]
        )
    return total


@given(
    laid(),
    st.sampled_from(sorted(set(NAMES) - {"permute"})),
    st.sampled_from(["A", "B", ("A", "B")]),
)
@settings(max_examples=200)
def test_no_price_lies_under_the_cut_around_a_unit(mesh, op, axis):
    """What must leave the chips below a level, over all that the graph lets out."""
    network, V = mesh.network, 1e3
    priced = run(op, V, mesh, axis)
    for level in range(len(network.dims)):
        size = math.prod(network.shape[level + 1 :])
        for first in range(0, network.chips, size):
            unit = set(range(first, first + size))
            if 0 < len(unit) < network.chips:
                seconds = must_leave(op, V, mesh, axis, unit) / (
                    let_through(network, unit) or math.inf
                )
                assert priced.bandwidth_seconds >= seconds * (1 - 1e-9)
    assert priced.lower <= priced.upper * (1 + 1e-9)


SPLITS = [(2, 2), (2, 4), (4, 4), (3, 2), (2, 2, 2), (4, 32)]


@given(
    st.sampled_from(SPLITS),
    st.sampled_from(sorted(NAMES)),
    st.sampled_from([1, 2, 8]),
    st.floats(1, 8),
    SIZES,
)
def test_more_switch_levels_over_the_same_nodes_are_never_faster(
    levels, op, gpus, taper, V
):
    node, nodes = NVLinkDomain(chips.H100, gpus), math.prod(levels)
    later = (5e-6, 3.7e-6, 2.8e-6)[-len(levels) :]
    thin = (taper, *[1] * (len(levels) - 1))
    many = Cluster(node, levels, latency=later, taper=thin)
    flat, deep = (
        run(op, V, Mesh(net, {"X": gpus * nodes}))
        for net in (Cluster(node, nodes), many)
    )
    assert deep.lower >= flat.lower * (1 - 1e-9)
    assert deep.upper >= flat.upper * (1 - 1e-9)


@pytest.mark.parametrize(
    ("levels", "rate"),
    [
        (8, 400 * 8 / 7),
        ((2, 4), 400 * 8 / 7),
        ((4, 4), 400 * 16 / 15),
        ((4, 32), 400 * 128 / 127),
    ],
)
def test_the_card_carries_what_goes_through_the_spine_too(levels, rate):
    """Nodes of 8 H100: V·(1 − g/n) over 400 GB/s, however the switches stand."""
    net = Cluster(NVLinkDomain(chips.H100), levels)
    found = run("all_gather", 1e9, Mesh(net, {"X": net.chips}))
    assert 1e9 / found.bandwidth_seconds == pytest.approx(rate * 1e9)
    assert found.level == "leaf"
    part = run("all_to_all", 1e9, Mesh(net, {"X": net.chips}))
    nodes = net.chips // 8
    leaves = 8 * (net.chips - 8) / net.chips**2 * 1e9
    assert part.bandwidth_seconds == pytest.approx(leaves / 400e9)
    assert nodes > 1


def test_an_oversubscribed_spine_sets_the_pace_of_what_crosses_it():
    """7 to 1, as in the cluster of Llama 3: the uplinks of 32 nodes carry 1/7."""
    node = NVLinkDomain(chips.H100)
    full, thin = (
        Mesh(Cluster(node, (4, 32), taper=taper), {"unit": 4, "node": 32, "gpu": 8})
        for taper in ((1, 1), (7, 1))
    )
    over = "unit"
    assert run("all_gather", 1e9, thin, over).bandwidth_seconds == pytest.approx(
        7 * run("all_gather", 1e9, full, over).bandwidth_seconds
    )
    found = run("all_to_all", 1e9, thin, ("unit", "node", "gpu"))
    assert found.level == "spine"
    assert found.bandwidth_seconds == pytest.approx(
        256 * 768 / 1024**2 * 1e9 / thin.network.egress("spine")
    )
    within = run("all_gather", 1e9, thin, ("node", "gpu"))
    assert within == run("all_gather", 1e9, full, ("node", "gpu"))


def test_cards_bind_what_crosses_a_thick_spine_alone():
    """An axis over units uses its card, however fat the uplinks are."""
    thick = Cluster(NVLinkDomain(chips.H100), (4, 32), taper=(0.5, 1))
    mesh = Mesh(thick, {"unit": 4, "rest": 256})
    assert run("all_gather", 1e9, mesh, "unit").level == "leaf"
    assert mesh.bandwidth("unit") == 50e9


def test_switches_that_add_at_any_level():
    """With SHARP in the leaf a node sends V once, not 2V(k−1)/k times."""
    node, V = NVLinkDomain(chips.H100, reduces=True), 1e9

    def reduce(nodes, **more):
        net = Cluster(node, nodes, **more)
        return run("all_reduce", V, Mesh(net, {"X": net.chips}))

    plain, adds = reduce(32), reduce(32, reduces=("leaf",))
    assert plain.bandwidth_seconds == pytest.approx(2 * V * 31 / 32 / 400e9)
    assert adds.level == "leaf"
    assert adds.bandwidth_seconds == pytest.approx(V / 400e9)
    assert adds.latency_seconds < plain.latency_seconds
    assert adds.upper < plain.upper
    above = reduce((4, 32), reduces=("spine",))  # it may add what leaves a node, too
    assert above.bandwidth_seconds == pytest.approx(V / 400e9)
    assert not above.exact
    both = reduce((4, 32), reduces=("spine", "leaf"))
    assert both.bandwidth_seconds == pytest.approx(V / 400e9)
    gather = run("all_gather", V, Mesh(Cluster(node, 4, reduces=("leaf",)), {"X": 32}))
    assert gather == run("all_gather", V, Mesh(Cluster(node, 4), {"X": 32}))


def test_a_published_all_reduce_over_four_nodes_lies_between_the_bounds():
    """4 GiB on 4 x 8 B200 took 22.05 ms; nodes and cards at once need 16.1 at least."""
    mesh = Mesh(Cluster(NVLinkDomain(chips.B200), 4), {"X": 32})
    found = run("all_reduce", 4 * 2**30, mesh)
    measured = 2 * 31 / 32 * 4 * 2**30 / 377.34e9  # busbw of the sweep
    assert measured == pytest.approx(22.05e-3, rel=1e-3)
    assert found.lower < measured < found.upper
    assert found.lower == pytest.approx(16.1e-3, rel=2e-3)


@pytest.mark.parametrize(("k", "g"), [(2, 4), (4, 8), (3, 2)])
def test_steps_of_a_two_level_all_reduce_add_up_to_the_upper_bound(k, g):
    """What question 05.17 counts step by step is what the closed form calls the sum."""
    cluster = Cluster(NVLinkDomain(chips.H100, g), k)
    found = run("all_reduce", 1e9, Mesh(cluster, {"X": k * g}))
    up, out = chips.H100.scale_up_bandwidth, chips.H100.scale_out_bandwidth
    counted = ch05.TWO_LEVELS.spec(1e9, k, g, up, out)
    assert found.upper - found.latency_seconds == pytest.approx(counted)
