"""Axes on networks: who is in a group, what it sees of the wires, what binds it."""

import math
from collections import defaultdict
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import trees

from shardmath.hardware import chips
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import (
    Cluster,
    Network,
    NVLinkDomain,
    Ring,
    Slices,
    Switch,
    Torus,
)


def ring(size, wrap=True, rate=1.0):
    return Ring(size, rate, 1.0, wrap=wrap and size > 2)


@st.composite
def meshes(draw):
    """A torus or a cluster of sides 2^k, cut into axes of sizes 2^k."""
    sides = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    if sum(sides) > 8:
        sides = sides[:2]
    made = st.sampled_from(
        [ring, lambda n: ring(n, False), lambda n: Switch(n, 3.0, 1.0)]
    )
    network = Network(tuple(draw(made)(2**k) for k in sides))
    left, axes = sum(sides), {}
    for name in "XYZ":
        k = draw(st.integers(0, left))
        axes[name], left = 2**k, left - k
    axes["W"] = 2**left
    return Mesh(network, axes)


def groups(mesh, names):
    """Chips of each group over `names`, from the row-major order of devices alone."""
    grid = np.arange(mesh.network.chips).reshape(tuple(mesh.axes.values()))
    at = [list(mesh.axes).index(name) for name in names]
    rest = [i for i in range(grid.ndim) if i not in at]
    return grid.transpose(rest + at).reshape(-1, mesh.size(tuple(names)))


@given(meshes(), st.sampled_from(["X", "Y", "W", ("X", "Y"), ("X", "Y", "Z", "W")]))
def test_a_span_holds_exactly_the_chips_of_a_group(mesh, axes):
    names = (axes,) if isinstance(axes, str) else axes
    pieces, shape = mesh.span(axes), mesh.network.shape
    assert math.prod(piece.size for piece in pieces) == mesh.size(axes)
    for group in groups(mesh, names):
        first = np.unravel_index(min(group), shape)
        spanned = set()
        for steps in product(*(range(piece.size) for piece in pieces)):
            at = list(first)
            for piece, step in zip(pieces, steps, strict=True):
                at[piece.dim] += step * piece.stride
            spanned.add(int(np.ravel_multi_index(at, shape)))
        assert spanned == set(map(int, group))


@given(meshes())
def test_all_axes_together_see_the_whole_network(mesh):
    pieces = mesh.span(tuple(mesh.axes))
    kept = tuple(dim for dim in mesh.network.dims if dim.size > 1)
    assert tuple(piece.wires for piece in pieces) == kept


@pytest.mark.parametrize("wrap", [True, False])
@pytest.mark.parametrize(("outer", "inner"), [(4, 4), (8, 2), (2, 8), (16, 1), (3, 5)])
def test_shared_links_are_counted_on_the_graph(outer, inner, wrap):
    """Every group sends to its next chips at once; the fullest link sets the pace."""
    whole = ring(outer * inner, wrap)
    mesh = Mesh(Network((whole,)), {"X": outer, "Y": inner})
    for axis in "XY":
        if mesh.size(axis) == 1:
            continue
        load, size = defaultdict(float), mesh.size(axis)
        wires = mesh.span(axis)[0].wires
        for group in groups(mesh, axis):
            hops = [(a, b, 1.0) for a, b in pairwise(group)]
            if whole.wrap and axis == "X":  # the last reaches the first around the ring
                hops.append((group[-1], group[0] + whole.size, 1.0))
            if len(hops) == size == 2:  # the same two chips: half goes each way round
                hops = [(a, b, 0.5) for a, b, _ in hops]
            for a, b, share in hops:
                for place in range(a, b):
                    load[place % whole.size, 1] += share
                    load[place % whole.size, -1] += share
        assert wires.bandwidth == pytest.approx(whole.bandwidth / max(load.values()))
        assert wires.latency == mesh.span(axis)[0].stride * whole.latency


def test_part_of_a_ring_is_a_line():
    mesh = Mesh(Torus(chips.TPU_V5E, (16, 16)), {"X": 16, "Y": 4, "Z": 4})
    rate = chips.TPU_V5E.link_bandwidth
    assert mesh.bandwidth("X") == 2 * rate
    assert mesh.bandwidth("Z") == rate
    assert not mesh.span("Z")[0].wires.wrap
    assert mesh.bandwidth("Y") == 2 * rate / 4  # four groups share the ring
    assert mesh.bandwidth(("Y", "Z")) == mesh.bandwidth("X")


def test_axes_of_a_torus_add_up():
    mesh = Mesh(Torus(chips.TPU_V5P, (8, 8, 8)), {"X": 8, "Y": 8, "Z": 8})
    one = 2 * chips.TPU_V5P.link_bandwidth
    for axes, times in (("X", 1), (("X", "Y"), 2), (("X", "Y", "Z"), 3)):
        assert mesh.bandwidth(axes) == pytest.approx(times * one)
    assert mesh.bandwidth(("X", "Y")) == mesh.bandwidth(("Y", "X"))


def test_no_chip_can_take_in_more_than_its_links_bring():
    """The pace of a torus is that of the chip with the fewest links."""
    for shape in ((4, 8), (8, 16), (16, 16)):
        torus = Torus(chips.TPU_V6E, shape)
        into = defaultdict(float)
        for link in torus.links():
            into[link.destination] += link.bandwidth
        mesh = Mesh(torus, {"X": torus.chips})
        assert mesh.bandwidth("X") == pytest.approx(min(into.values()))


@pytest.mark.parametrize(
    ("nodes", "binds"), [(2, "NVLink"), (4, "NVLink"), (16, "leaf")]
)
def test_the_slower_level_binds_an_axis_that_spans_nodes(nodes, binds):
    """Each unit of a level must take in all but its own part, counted on the graph."""
    cluster = Cluster(NVLinkDomain(chips.H100), nodes)
    mesh = Mesh(cluster, {"X": 8 * nodes})
    links, nbytes = cluster.links(), 1e9
    slowest = 0.0
    for unit, parts in ((range(8), nodes), (range(1), 8)):
        into = sum(
            link.bandwidth
            for link in links
            if link.destination in unit
            and (len(unit) == 1) == (link.bandwidth == chips.H100.scale_up_bandwidth)
        )
        slowest = max(slowest, nbytes * (parts - 1) / parts / into)
    binding = mesh.binding("X")
    sent = nbytes * (mesh.size("X") - 1) / mesh.size("X")
    assert sent / binding.bandwidth == pytest.approx(slowest)
    assert binding.level == binds
    assert f"bound by {binds}" in str(binding)


def test_an_axis_over_nodes_alone_has_only_its_own_card():
    mesh = Mesh(Cluster(NVLinkDomain(chips.H100), 32), {"data": 32, "model": 8})
    assert mesh.bandwidth("model") == 450e9
    assert mesh.bandwidth("data") == 50e9
    text = str(mesh.binding("data"))
    assert text == "data over 32 chips: 50 GB/s one-way per chip, bound by leaf of 32"


def test_published_paces_of_a_superpod():
    """How to Scale Your Model, ch. 12: 514 GB/s in a node, 413 leaf, 17.1 TB/s spine.

    The book counts V bytes. Its leaf is that of one unit: with four, 127 of 128 parts
    come into a node through its cards, and 413 becomes 403.
    """
    mesh = Mesh(Cluster(NVLinkDomain(chips.H100), (4, 32)), {"U": 4, "X": 256})
    found = {p.level: p.array_bandwidth for p in mesh.binding(("U", "X")).paces}
    assert found["NVLink"] == pytest.approx(514.286e9, rel=1e-5)
    assert found["leaf"] == pytest.approx(403.150e9, rel=1e-5)
    assert found["spine"] == pytest.approx(17.0667e12, rel=1e-5)
    one = {p.level: p.array_bandwidth for p in mesh.binding("X").paces}
    assert one["leaf"] == pytest.approx(412.903e9, rel=1e-5)
    assert {p.level: p.egress for p in mesh.binding("X").paces} == {
        "leaf": 400e9,
        "NVLink": 450e9,
    }
    assert mesh.binding(("U", "X")).level == "leaf"


@pytest.mark.parametrize("model", [1, 2, 4, 8, 16, 32])
def test_published_pace_next_to_a_sharded_axis(model):
    """Ibid., pop quiz 3: one unit of 256 H100, V/Y bytes a chip gathered over X.

    Up to Y = 8 the leaf needs V·31/32 / 400 GB/s; beyond, about V/Y / 50 GB/s.
    """
    mesh = Mesh(Cluster(NVLinkDomain(chips.H100), 32), {"X": 256 // model, "Y": model})
    leaf = next(p for p in mesh.binding("X").paces if p.level == "leaf")
    seconds = 1 / model * (1 - model / 256) / leaf.bandwidth
    nodes = 32 / max(1, model / 8)
    rate = 400e9 if model <= 8 else model * 50e9
    assert seconds == pytest.approx((nodes - 1) / nodes / rate)


def test_slices_are_bound_by_ici_until_the_axis_leaves_it():
    pods = Slices(Torus(chips.TPU_V5P, (8, 8, 8)), 2, latency=1e-5)
    mesh = Mesh(pods, {"data": 2, "X": 512})
    assert mesh.binding("data").level == "DCN"
    assert mesh.bandwidth("data") == chips.TPU_V5P.scale_out_bandwidth
    assert mesh.binding("X").level == mesh.binding(("data", "X")).level == "ICI"
    small = Slices(Torus(chips.TPU_V5P, (2, 2, 1)), 2, latency=1e-5)
    assert Mesh(small, {"X": 8}).binding("X").level == "DCN"


def test_one_chip_has_nothing_to_send():
    mesh = Mesh(NVLinkDomain(chips.H100), {"X": 1, "Y": 8})
    assert mesh.span("X") == ()
    assert mesh.bandwidth("X") == math.inf
    assert str(mesh.binding("X")) == "X over 1 chip: nothing to send"


def test_a_mesh_does_not_change_under_the_reader():
    axes = {"X": 8}
    mesh = Mesh(NVLinkDomain(chips.H100), axes)
    axes["X"] = 4
    assert mesh.size("X") == 8
    with pytest.raises(TypeError):
        mesh.axes["X"] = 4


V5E = Torus(chips.TPU_V5E, (4, 8))
ODD = Network((ring(4), ring(6)), "odd")
SPLIT = Mesh(Network((ring(16),), "loop"), {"X": 2, "Y": 2, "Z": 4})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Mesh(V5E, {"X": 6, "Y": 8}), r"X = 6: 6 does not divide the 32 chips"),
        (
            lambda: Mesh(V5E, {"X": 4, "Y": 4}),
            r"X = 4, Y = 4: the product 16 must be the 32",
        ),
        (lambda: Mesh(V5E, {"X": 0, "Y": 32}), r"X = 0"),
        (lambda: Mesh(V5E, {"X": True, "Y": 32}), r"X = True"),
        (lambda: Mesh(V5E, {}), r"must be the 32"),
        (lambda: Mesh(V5E, None), r"axes = None: must be a dict"),
        (lambda: Mesh(None, {"X": 8}), r"network = None: must be a Network"),
        (lambda: Mesh(chips.H100, {"X": 8}), r"network = H100.*must be a Network"),
        (lambda: Mesh(V5E, {"data axis": 32}), r"'data axis'.*'data'"),
        (lambda: Mesh(V5E, {8: 32}), r"axis 8: must be a name"),
        (lambda: Mesh(V5E, {"X": "32"}), r"X = '32'"),
        (lambda: SPLIT.size(None), r"axes = None: must be a name or a tuple"),
        (lambda: SPLIT.size(3), r"axes = 3"),
        (lambda: SPLIT.size([["X"]]), r"axis \['X'\]: must be one of X, Y, Z"),
        (
            lambda: Mesh(ODD, {"X": 6, "Y": 4}),
            r"4 does not divide the 6.*nor does 6 divide 4",
        ),
        (lambda: SPLIT.span("X", 1), r"one_way = 1: must be True or False"),
        (lambda: SPLIT.span("X", "yes"), r"one_way = 'yes': must be True or False"),
        (lambda: SPLIT.size("W"), r"'W': must be one of X, Y, Z"),
        (lambda: SPLIT.bandwidth(("X", "X")), r"each axis once"),
        (lambda: SPLIT.bandwidth(("X", "Z")), r"X, Z: share dimension 0 of loop"),
    ],
)
def test_bad_input_is_quoted(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_axes_may_have_names_of_many_letters():
    mesh = Mesh(Cluster(NVLinkDomain(chips.H100), 4), {"data_parallel": 4, "tensor": 8})
    both = mesh.binding(("data_parallel", "tensor"))
    assert str(both).startswith("data_parallel tensor over 32 chips")
    assert mesh.size(("tensor",)) == 8


def test_sizes_of_other_libraries_become_pythons_own():
    import jax.numpy as jnp

    torus = Torus(
        chips.TPU_V5E, (np.int32(4), jnp.int32(8)), bandwidth=np.float32(5e10)
    )
    mesh = Mesh(torus, {"X": np.int64(4), "Y": jnp.int32(8)})
    assert [type(n) for n in (*torus.shape, *mesh.axes.values())] == [int] * 4
    assert type(torus.dims[0].bandwidth) is float
    assert mesh.size(("X", "Y")) == torus.chips == 32


def test_three_rates_of_one_gather_are_told_apart():
    """Wires of a node, bytes of the array over the time, bytes that a chip sends."""
    mesh = Mesh(Cluster(NVLinkDomain(chips.H100), (4, 4)), {"X": 128})
    leaf = next(pace for pace in mesh.binding("X").paces if pace.level == "leaf")
    assert leaf.egress == 400e9
    assert leaf.array_bandwidth == pytest.approx(400e9 * 16 / 15)
    assert leaf.bandwidth == pytest.approx(400e9 * 16 / 15 * 127 / 128)
    assert mesh.binding("X").array_bandwidth == leaf.array_bandwidth


@given(trees(), st.data())
def test_a_group_sees_the_stack_of_switches_that_its_bytes_pass(network, data):
    """Down to the chips' own links, even where it lies on the outer switches alone."""
    outer = data.draw(st.sampled_from(range(len(network.dims) + 1)))
    sizes = {
        "A": math.prod(network.shape[:outer]),
        "B": math.prod(network.shape[outer:]),
    }
    mesh = Mesh(network, sizes)
    for axis in "AB":
        dims = [piece.dim for piece in mesh.span(axis)]
        for piece in mesh.span(axis):
            assert set(network.stack(piece.dim)) - set(range(piece.dim)) <= set(dims)
        assert math.prod(piece.size for piece in mesh.span(axis)) == sizes[axis]
