"""The simulator: right numbers, the closed forms' times, real links, and pictures."""

import math
import re
from collections import Counter
from dataclasses import replace

import drawn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from trees import trees

from shardmath.collectives import NAMES, price_of
from shardmath.collectives.link_load import link_bandwidth
from shardmath.collectives.simulator import payload, play, simulate
from shardmath.collectives.simulator.groups import Chunk
from shardmath.collectives.simulator.schedules import Delivery
from shardmath.draw import pictures
from shardmath.hardware.chips import H100, TPU_V5E, TPU_V5P
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import Cluster, NVLinkDomain, Slices, Torus
from shardmath.hardware.networks.wiring import Network, Ring, Switch

OPS = st.sampled_from(sorted(NAMES))
RATES, LATENCIES = st.floats(1e8, 1e13), st.sampled_from([0.0, 1e-9, 1e-6, 1e-3])
SIZES = st.floats(1, 1e12)


@st.composite
def rings(draw, wrap=None, most=9):
    n = draw(st.integers(1, most))
    closed = n > 2 and (draw(st.booleans()) if wrap is None else wrap)
    return Ring(n, draw(RATES), draw(LATENCIES), closed)


@st.composite
def switches(draw):
    rate, latency = draw(RATES), draw(LATENCIES)
    return Switch(draw(st.integers(1, 8)), rate, latency, draw(st.booleans()))


@st.composite
def mixtures(draw):
    """Up to three dimensions of any kind, 64 chips at most."""
    wires = draw(st.lists(st.one_of(rings(), switches()), min_size=1, max_size=3))
    assume(math.prod(w.size for w in wires) <= 64)
    return tuple(wires)


@st.composite
def equals(draw):
    """One ring, line or switch, or a torus or grid of two or three equal ones."""
    dims = draw(st.integers(1, 3))
    if dims == 1:
        return (draw(st.one_of(rings(most=24), switches())),)
    return (draw(rings(most=7 if dims == 2 else 4)),) * dims


def mesh_of(*wires):
    return Mesh(Network(wires), {"X": math.prod(w.size for w in wires)})


@given(OPS, equals(), SIZES, st.booleans())
def test_closed_forms_that_claim_it_are_met_exactly(op, wires, V, one_way):
    """All claim it, except permutes on several axes and three collectives on lines."""
    trace = simulate(op, V, mesh_of(*wires), "X", one_way=one_way)
    straight = isinstance(wires[0], Ring) and not wires[0].wrap and wires[0].size > 2
    many = len(wires) > 1 and wires[0].size > 1
    open_ends = straight and op in ("all_reduce", "all_to_all", "permute")
    bound = open_ends or (many and op == "permute")
    assert trace.priced.exact == (not bound)
    if trace.priced.exact:
        assert trace.seconds == pytest.approx(trace.priced.seconds, rel=1e-9)


@given(OPS, mixtures(), SIZES, st.booleans())
def test_no_closed_form_is_above_what_a_schedule_takes(op, wires, V, one_way):
    """Its bandwidth term bounds that of every schedule, its hops the steps'."""
    still = [replace(w, latency=0.0) for w in wires]
    trace = simulate(op, V, mesh_of(*still), "X", one_way=one_way)
    assert trace.seconds >= trace.priced.seconds * (1 - 1e-9)
    trace = simulate(op, V, mesh_of(*wires), "X", one_way=one_way)
    assert trace.seconds >= trace.priced.latency_seconds * (1 - 1e-9)
    if trace.priced.exact:
        assert trace.seconds == pytest.approx(trace.priced.seconds, rel=1e-9)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 15])
def test_an_all_reduce_piped_along_a_line_comes_close_to_its_bound(n):
    """K pieces take K + 2n − 3 steps of V/K over one link, and never less than V/W.

    A ReduceScatter and an AllGather take 2V/W·(n−1)/n, nearly twice the bound.
    """
    mesh, W = mesh_of(Ring(n, 50e9, 0.0, wrap=False)), 50e9
    two_passes = simulate("all_reduce", 1e6, mesh, "X")
    assert two_passes.seconds == pytest.approx(2 * 1e6 / W * (n - 1) / n)
    assert two_passes.seconds == pytest.approx(two_passes.priced.upper)
    for pieces in (1, 4, 64):
        trace = simulate("all_reduce", 1e6, mesh, "X", pieces=pieces)  # checks its sums
        K = n * pieces
        assert len(trace.steps) == K + 2 * n - 3
        assert trace.seconds == pytest.approx((K + 2 * n - 3) / K * 1e6 / W)
        assert trace.seconds >= trace.priced.lower * (1 - 1e-12)
    assert trace.seconds < 1.05 * trace.priced.lower
    assert trace.priced.lower == pytest.approx(1e6 / W)


def test_64_mib_on_four_v5e_in_a_line_take_two_thirds_of_two_passes():
    """With 1 µs a hop, 16 pieces for each block: 1.49 ms in place of 2.02."""
    mesh = Mesh(Torus(TPU_V5E, (4, 4)), {"X": 4, "Y": 4})
    piped = simulate("all_reduce", 2**26, mesh, "X", pieces=16)
    assert piped.seconds == pytest.approx(1.516e-3, rel=0.01)
    assert piped.priced.lower == pytest.approx(1.342e-3, rel=1e-3)
    assert piped.priced.upper == pytest.approx(2.019e-3, rel=1e-3)


@given(st.integers(1, 5), st.integers(1, 5), st.booleans(), st.booleans())
def test_an_all_reduce_on_a_grid_is_bound_by_all_its_links(a, b, wrap_a, wrap_b):
    """2V(n−1) bytes in all over all links, counted one by one; V into every chip."""
    assume(a * b > 1)
    dims = (Ring(a, 1e9, 0.0, wrap_a and a > 2), Ring(b, 1e9, 0.0, wrap_b and b > 2))
    mesh = mesh_of(*dims)
    links, n = mesh.network.links(), a * b
    into = Counter(link.destination for link in links)
    least = max(2 * (n - 1) / len(links), 1 / min(into.values()))
    assert price_of("all_reduce", 1e9, mesh, "X").lower == pytest.approx(least)


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 8, 9, 12])
def test_all_to_all_on_a_line(n):
    """n−1 steps take up to twice the bound; block by block, ⌊n²/4⌋ steps meet it."""
    mesh = mesh_of(Ring(n, 50e9, 0.0, wrap=False))
    fast = simulate("all_to_all", 1e6, mesh, "X")
    assert len(fast.steps) == n - 1
    assert fast.gap == pytest.approx(n * (n - 1) / 2 / (n * n // 4))
    assert fast.gap < 2
    thin = simulate("all_to_all", 1e6, mesh, "X", at_most=1)
    assert len(thin.steps) == n * n // 4
    assert thin.gap == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize(
    ("sizes", "gap"),
    [((4, 4), 1), ((4, 8), 1.129), ((4, 16), 1.190), ((4, 4, 8), 1.157)],
)
def test_gather_over_unequal_axes_has_a_gap(sizes, gap):
    """In lockstep the axes cannot all be busy: 13 % at 4x8, 19 % at 4x16."""
    trace = simulate(
        "all_gather", 1e6, mesh_of(*(Ring(n, 50e9, 0.0) for n in sizes)), "X"
    )
    assert trace.gap == pytest.approx(gap, abs=1e-3)


def test_levels_one_after_the_other_take_the_sum():
    """The closed form lets them overlap; the schedule goes from level to level."""
    slow, fast = Switch(4, 50e9, 0.0), Switch(8, 450e9, 0.0)
    trace = simulate("all_gather", 8e6, mesh_of(slow, fast), "X")
    between, within = 1e6 * 3 / 4 / 50e9, 8e6 * 7 / 8 / 450e9
    assert trace.seconds == pytest.approx(between + within)
    assert trace.priced.seconds == pytest.approx(max(between, within))


def test_published_scalars_on_every_link():
    """How to Scale Your Model, ch. 3, question 10: N²(1−1/D), and half for AllToAll."""
    D, N = 8, 64
    mesh = mesh_of(Ring(D, 1.0, 0.0))
    for op, share in {"all_gather": 1, "all_to_all": 0.5}.items():
        trace = simulate(op, N * N, mesh, "X", one_way=True)
        for link in trace.steps[0].loads:
            crossed = sum(step.loads.get(link, 0) for step in trace.steps)
            assert crossed == pytest.approx(share * N * N * (1 - 1 / D))


@given(OPS, st.integers(2, 12), SIZES)
def test_what_a_device_sends_into_a_switch_is_the_records(op, n, V):
    trace = simulate(op, V, mesh_of(Switch(n, 1e9, 0.0)), "X")
    for chip in range(n):
        sent = sum(step.loads.get((0, chip, -1), 0) for step in trace.steps)
        assert sent == pytest.approx(trace.priced.collective.sent, rel=1e-9)


@pytest.mark.parametrize(
    "network",
    [
        Torus(TPU_V5E, (4, 16)),
        Torus(TPU_V5P, (2, 4, 4)),
        Slices(Torus(TPU_V5E, (4, 4)), 2, latency=1e-5),
        Cluster(NVLinkDomain(H100), (2, 2)),
    ],
    ids=str,
)
@pytest.mark.parametrize("op", NAMES)
def test_blocks_travel_over_links_that_the_network_has(network, op):
    """Link by link as `Network.links` lists them, at its bandwidth."""
    trace = simulate(op, 1e6, Mesh(network, {"X": network.chips}), "X")
    real, uplinks = {}, set()
    for link in network.links():
        ends = tuple(end if end < network.chips else -1 for end in link[:2])
        real.setdefault(ends, set()).add(link.bandwidth)
        uplinks |= {link.bandwidth} if ends == (-1, -1) else set()
    used = {link for step in trace.steps for link in step.loads}
    assert used
    for dim, *ends in used:
        on_switches = getattr(network.dims[dim], "uplinks", False)
        there = uplinks if on_switches else real[tuple(ends)]
        assert link_bandwidth(network.dims, dim) in there


def test_groups_that_interleave_share_their_links():
    """4 groups on every 4th chip of a 16-ring: a quarter of the rate, 4 hops a step."""
    mesh = Mesh(Torus(TPU_V5E, (16, 16)), {"A": 16, "X": 4, "Y": 4})
    slow, line = (simulate("all_gather", 1e6, mesh, axis) for axis in "XY")
    assert slow.group.wires[0].bandwidth * 4 == line.group.wires[0].bandwidth
    assert len(slow.steps) == 2
    assert len(line.steps) == 3


@pytest.mark.parametrize("op", NAMES)
def test_the_definitions_are_those_of_jax(op):
    """What must be left behind, against jax.lax over a named axis."""
    n = 5
    given = payload.rows(op, n)
    rows = np.array([[v % 1000 for v in row] for row in given])
    named = {
        "all_gather": lambda x: jax.lax.all_gather(x, "i", tiled=True),
        "reduce_scatter": lambda x: jax.lax.psum_scatter(x, "i", tiled=True),
        "all_reduce": lambda x: jax.lax.psum(x, "i"),
        "all_to_all": lambda x: jax.lax.all_to_all(x, "i", 0, 0, tiled=True),
        "permute": lambda x: jax.lax.ppermute(
            x, "i", [(c, (c + 1) % n) for c in range(n)]
        ),
    }[op]
    theirs = jax.vmap(named, axis_name="i")(jnp.array(rows))
    ours = simulate(op, 1e3, mesh_of(Ring(n, 1e9, 0.0)), "X", data=rows.tolist())
    assert np.array_equal(np.array(ours.result), theirs)


@pytest.mark.parametrize("op", ["reduce_scatter", "all_reduce"])
def test_fractions_add_up_in_any_order(op):
    """Floats added in another order differ in their last digit, which is no fault."""
    rows = np.random.default_rng(1).normal(size=(8, 8))
    played = simulate(op, 1e3, mesh_of(Ring(8, 1e9, 0.0)), "X", data=rows)
    exact = [math.fsum(column) for column in rows.T]
    found = played.result[0] if op == "all_reduce" else sum(played.result, ())
    assert list(found) == pytest.approx(exact, rel=1e-15)


def test_a_wrong_schedule_is_found_out():
    """A lost move, a block that is not there, a link that does not exist."""
    trace = simulate("all_reduce", 4.0, mesh_of(Ring(4, 1.0, 0.0, wrap=False)), "X")
    moves = [step.moves for step in trace.steps]
    wanted = trace.state(len(moves))

    def replay(steps):
        return play(trace.priced, trace.group, steps, 1.0, trace.start, wanted)

    assert replay(moves).seconds == trace.seconds
    with pytest.raises(ArithmeticError, match="chip 0 ends with"):
        replay(moves[:-1])
    twice = [*moves, (Delivery((0,), (1,), (Chunk(0, 0, 0),), 0, keep=True),)]
    with pytest.raises(ArithmeticError, match="chip 1 ends with"):
        replay(twice)
    with pytest.raises(ValueError, match=r"chip 0 sends .*lacks"):
        replay([(Delivery((0,), (1,), (Chunk(9, 0, 0),), 0),)])
    with pytest.raises(ValueError, match="no link of dimension 0"):
        replay([(Delivery((0,), (3,), (Chunk(0, 0, 0),), 0),)])


def test_sums_along_a_line_beat_reduce_scatter_and_all_gather():
    """There and back in k pieces takes V/W·(2(n−1)+k−1)/k, as `all_reduce` says."""
    n, k = 6, 40
    plain = simulate("all_reduce", 40.0, mesh_of(Ring(n, 1.0, 0.0, wrap=False)), "X")
    steps = [[] for _ in range(2 * (n - 1) + k - 1)]
    for piece in range(k):
        block = (Chunk(piece, 0, 0),)
        for i in range(n - 1):
            steps[piece + i].append(Delivery((i,), (i + 1,), block, 0))
            back = Delivery((n - 1 - i,), (n - 2 - i,), block, 0, keep=True)
            steps[piece + n - 1 + i].append(back)
    start = [{Chunk(p, 0, 0): 10**chip for p in range(k)} for chip in range(n)]
    total = [{Chunk(p, 0, 0): 111_111 for p in range(k)}] * n
    trace = play(plain.priced, plain.group, list(map(tuple, steps)), 1.0, start, total)
    assert trace.seconds == 2 * (n - 1) + k - 1
    assert trace.seconds < plain.seconds == pytest.approx(2 * 40 * (n - 1) / n)


def test_a_trace_can_be_stepped():
    trace = simulate("all_gather", 8e6, mesh_of(Ring(8, 50e9, 1e-6)), "X")
    held = [[len({b.name for b in chip}) for chip in trace.state(k)] for k in range(5)]
    assert held[:2] == [[1] * 8, [3] * 8]
    assert held[4] == [8] * 8
    assert "chip 0: 100 % 100 % 0 %" in str(pictures.trace_step(trace, 1))
    assert "step 4 of 4" in str(pictures.trace_step(trace, 4))
    for wrong in (-1, 5, 1.5, True):
        with pytest.raises(ValueError, match=f"step {wrong}"):
            trace.state(wrong)


@pytest.mark.parametrize("op", NAMES)
@pytest.mark.parametrize(
    "wires",
    [
        (Ring(5, 1e9, 1e-6),),
        (Ring(3, 1e9, 1e-6), Ring(4, 1e9, 1e-6)),
        (Ring(2, 1e9, 0.0, False), Ring(2, 1e9, 0.0, False), Ring(3, 1e9, 0.0)),
        (Switch(2, 1e9, 1e-6), Switch(4, 1e9, 1e-6, reduces=True)),
        (Switch(2, 1e9, 1e-6), Ring(4, 1e9, 1e-6)),
        (Ring(1, 1e9, 1e-6, wrap=False),),
    ],
    ids=["ring", "torus", "3D", "NVLink", "slices", "one chip"],
)
def test_a_trace_is_drawn(op, wires):
    """Well-formed, described, an arrow for each busy link and a frame for each chip."""
    trace = simulate(op, 1e6, mesh_of(*wires), "X")
    for k in range(len(trace.steps) + 1):
        picture = pictures.trace_step(trace, k)
        drawn.check(picture)
        (panel,) = picture.panels
        loads = trace.steps[k - 1].loads if k else {}
        links = {f"link {dim} {a} {b}" for dim, a, b in loads}
        assert set(drawn.keyed(panel, "link ")) == links
        assert len(drawn.keyed(panel, "chip ")) == trace.group.size
    drawn.check(pictures.trace_ends(trace))
    drawn.check(pictures.draw(trace))


def test_arrows_lead_from_chip_to_chip():
    """Each runs from beside its source to its target, also where a side closes."""
    grid = (Ring(2, 1e9, 0.0, False), Ring(3, 1e9, 0.0, False))
    torus = (Ring(3, 1e9, 0.0), Ring(4, 1e9, 0.0))
    rows = (Ring(8, 1e9, 0.0),), (Ring(5, 1e9, 0.0),), (Ring(9, 1e9, 0.0, False),)

    def away(point, frame):
        """How far `point` is from the chip in `frame`."""
        x, y, side = (float(frame.get(key)) for key in ("x", "y", "width"))
        over = (max(a - p, p - a - side, 0) for p, a in zip(point, (x, y), strict=True))
        return math.hypot(*over)

    for wires in (grid, torus, *rows):
        trace = simulate("all_gather", 1e6, mesh_of(*wires), "X")
        for step in trace.steps:
            (panel,) = pictures.trace_step(trace, step.number).panels
            chips, arrows = drawn.keyed(panel, "chip "), drawn.keyed(panel, "link ")
            for key, arrow in arrows.items():
                _, _, source, target = key.split()
                shaft, head = arrow.iter(f"{drawn.SVG}path")
                first = re.findall(r"[-\d.]+", shaft.get("d"))[:2]
                tip = re.findall(r"[-\d.]+", head.get("d"))[:2]
                assert away(map(float, first), chips[f"chip {source}"]) < 4
                assert away(map(float, tip), chips[f"chip {target}"]) < 4


def test_cells_are_filled_with_what_a_chip_holds():
    """Read from the picture: after step k of a ring, its own block and k others."""
    ring = mesh_of(Ring(8, 1e9, 0.0))
    trace = simulate("all_gather", 1e6, ring, "X", one_way=True)
    for k in range(8):
        rects = drawn.elements(pictures.trace_step(trace, k).panels[0], "rect")
        for chip in range(8):
            *cells, frame = rects[9 * chip : 9 * chip + 9]
            assert frame.get("data-key") == f"chip {chip}"
            filled = {m for m, cell in enumerate(cells) if cell.get("fill") != "none"}
            assert filled == {(chip - hops) % 8 for hops in range(k + 1)}


def test_an_all_to_all_transposes_the_sheet():
    """Colours are senders: rows before, columns after; numbers are receivers."""
    trace = simulate("all_to_all", 64.0, mesh_of(Ring(4, 1e9, 0.0)), "X")
    before, after = (
        drawn.elements(panel, "rect") for panel in pictures.trace_ends(trace).panels
    )
    hues = [[cell.get("fill") for cell in cells] for cells in (before, after)]
    assert [hues[1][4 * k + m] for m in range(4) for k in range(4)] == hues[0]
    assert len(set(hues[0])) == 4
    digits = [
        [
            said
            for said, (left, *_) in drawn.texts(panel)
            if left > 38 and said.isdigit()
        ]
        for panel in pictures.trace_ends(trace).panels
    ]
    assert digits[0] == [str(k) for _ in range(4) for k in range(4)]
    assert digits[1] == [str(m) for m in range(4) for _ in range(4)]


def test_links_that_do_the_same_share_a_lane():
    """A box for each step of a lane, to the scale of the time."""
    trace = simulate("all_reduce", 8e6, mesh_of(Ring(8, 1e9, 1e-3)), "X")
    (panel,) = pictures.draw(trace).panels
    said = drawn.words(pictures.draw(trace))
    assert "16 links of ICI, 500 kB to 1 MB a step" in said
    boxes = list(drawn.keyed(panel, "(").values())
    assert len(boxes) == len(trace.steps) == 8
    widths = [float(box.get("width")) for box in boxes]
    rate = widths[1] / (trace.steps[1].seconds - 1e-3)
    for width, step in zip(widths, trace.steps, strict=True):
        assert width == pytest.approx(rate * (step.seconds - 1e-3), abs=0.2)
    assert "closed form, " in " ".join(said)


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
@pytest.mark.parametrize("adds", [False, True])
def test_the_closed_form_crosses_no_number_of_a_step(nodes, adds):
    """Where its line meets a box, the number stands beside it, still in the box."""
    cluster = Cluster(NVLinkDomain(H100, reduces=adds), nodes)
    trace = simulate("all_reduce", 64e6, Mesh(cluster, {"X": 8 * nodes}), "X")
    (panel,) = pictures.draw(trace).panels
    (line,) = (p for p in drawn.elements(panel, "path") if p.get("stroke-dasharray"))
    closed = float(re.match(r"M([\d.]+)", line.get("d"))[1])
    numbers = [(said, box) for said, box in drawn.texts(panel) if said in "12345678"]
    steps = {
        key.split()[-1]: (float(box.get("x")), float(box.get("width")))
        for key, box in drawn.keyed(panel, "(").items()
    }
    assert len(numbers) > 1
    for said, (first, _, last, _) in numbers:
        left, wide = steps[said]
        assert left <= first < last <= left + wide
        assert not first < closed < last, said


def test_large_groups_say_what_they_leave_out():
    line = simulate("all_gather", 1e6, mesh_of(Ring(40, 1e9, 0.0, False)), "X")
    assert "more kinds of links are not drawn" in pictures.draw(line).desc
    many = simulate("all_gather", 1e6, mesh_of(Ring(100, 1e9, 0.0)), "X")
    drawn.check(pictures.trace_step(many, 3))
    assert any(
        "the first 64 of 100" in said
        for said in drawn.words(pictures.trace_step(many, 3))
    )


@pytest.mark.parametrize(
    ("op", "more", "said"),
    [
        ("gather", {}, "'gather': must be one of"),
        ("all_gather", {"nbytes": -1}, "nbytes = -1"),
        ("all_gather", {"axes": "Y"}, "'Y'"),
        ("all_gather", {"data": [[1, 2]] * 4}, "4 rows of 1"),
        ("all_reduce", {"data": [[1, 2, 3, 4]] * 3}, "4 rows of 4"),
        ("all_reduce", {"data": 3}, "data = 3: must be 4 rows of 4"),
        ("all_reduce", {"data": [["a"] * 4] * 4}, "data = 'a': must be a number"),
        ("all_reduce", {"data": [[math.nan] * 4] * 4}, "nan: must be a finite"),
        ("all_reduce", {"mesh": 8}, "mesh = 8: must be a Mesh"),
        ("all_gather", {"at_most": 1}, "at_most = 1: must be for all_to_all"),
        ("all_gather", {"pieces": 2}, "pieces = 2: must be for all_reduce on one line"),
        ("all_reduce", {"pieces": 2}, "not all_reduce on "),
        ("all_to_all", {"at_most": 0}, "at_most = 0"),
        (
            "permute",
            {"one_way": ((0, 1),)},
            r"one_way = \(\(0, 1\),\): must be True or",
        ),
        ("all_gather", {"mesh": mesh_of(Switch(300, 1.0, 0.0))}, "300.*256"),
    ],
)
def test_bad_input_is_quoted(op, more, said):
    usual = {"nbytes": 1.0, "mesh": mesh_of(Ring(4, 1.0, 0.0)), "axes": "X"}
    with pytest.raises(ValueError, match=said):
        simulate(op, **usual | more)


@st.composite
def permutes(draw):
    """Up to 64 chips in a grid, and who sends to whom: part of a permutation."""
    wires = draw(mixtures())
    n = math.prod(w.size for w in wires)
    targets = draw(st.permutations(range(n)))
    some = draw(st.sets(st.integers(0, n - 1), min_size=1))
    return wires, tuple((chip, targets[chip]) for chip in sorted(some))


@given(permutes(), SIZES, st.booleans())
def test_a_permute_is_priced_by_the_links_that_its_pairs_cross(case, V, one_way):
    """Played hop by hop: the upper bound to the last second, the lower one below it."""
    wires, pairs = case
    trace = simulate("permute", V, mesh_of(*wires), "X", one_way=one_way, pairs=pairs)
    assert trace.seconds == pytest.approx(trace.priced.upper, rel=1e-9, abs=1e-30)
    assert trace.priced.lower <= trace.priced.upper * (1 + 1e-9)
    senders = dict(map(reversed, pairs))
    for chip, held in enumerate(trace.result):
        assert len(held) == (chip in senders)


@given(OPS, trees(latency=1e-6, adds=st.booleans()), SIZES)
def test_on_a_tree_the_upper_bound_is_what_one_level_after_another_takes(op, net, V):
    trace = simulate(op, V, Mesh(net, {"X": net.chips}), "X")
    assert trace.seconds == pytest.approx(trace.priced.upper, rel=1e-9)
    assert trace.priced.lower <= trace.seconds * (1 + 1e-9)


@given(OPS, mixtures(), SIZES, st.booleans())
def test_a_schedule_takes_no_longer_than_the_upper_bound(op, wires, V, one_way):
    """Lockstep over unequal sides may take more steps than one side after the other,
    but no more time for the bytes, where all links of the torus are equal.
    """
    rate = wires[0].bandwidth
    still = mesh_of(
        *(
            replace(w, latency=0.0, **({"bandwidth": rate} if w.level == "ICI" else {}))
            for w in wires
        )
    )
    trace = simulate(op, V, still, "X", one_way=one_way)
    assert trace.seconds <= trace.priced.upper * (1 + 1e-9)
