"""Pictures of matmuls and of stages: drawn from the plans and prices beside them."""

import math

import drawn
import pytest

from shardmath.collectives import Hierarchy, price_of
from shardmath.draw import pictures
from shardmath.draw.pictures import cases, layouts
from shardmath.hardware.chips import H100, TPU_V5P
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import Cluster, NVLinkDomain, Torus
from shardmath.sharding import CollectiveMatmul, contract

FOUR = {
    1: "A[I_X, J] · B[J, K] -> C[I_X, K]",
    2: "A[I, J_X] · B[J, K] -> C[I, K]",
    3: "A[I, J_X] · B[J_X, K] -> C[I, K]",
    4: "A[I_X, J] · B[J, K_X] -> C[I_X, K]",
}
COLUMNS = "A[B_X, D] · W[D, F_X] -> C[B, F_X]"


def op_of(line, mesh=None, **sizes):
    return contract(line, mesh or {"X": 4}, **({"I": 8, "J": 8, "K": 8} | sizes))


def matmul(F, side=8):
    mesh = Mesh(Torus(TPU_V5P, (side, 4, 4)), {"X": side, "Y": 16})
    return contract(COLUMNS, mesh, busy=True, B=16_384, D=8192, F=F)


def cluster(nodes=4):
    return Mesh(Cluster(NVLinkDomain(H100), nodes), {"node": nodes, "gpu": 8})


@pytest.mark.parametrize("case", FOUR)
@pytest.mark.parametrize("mesh", [{"X": 4}, {"X": 8}, {"X": 2, "Y": 4}])
def test_a_case_names_what_moves_on_its_arrows(case, mesh):
    """One arrow for each collective, in the colour of the network; else none."""
    op = op_of(FOUR[case], mesh)
    assert op.case == case
    picture = cases(op)
    drawn.check(picture)
    (panel,) = picture.panels
    arrows = [
        g for g in drawn.elements(panel, "g") if "--sm-network" in g[0].get("stroke")
    ]
    assert len(arrows) == len(op.plan.moved)
    said = {step.title.replace("_", "") for step in op.plan.moved}
    assert said <= drawn.words(picture)
    assert f"moved: {op.plan.moves.replace('_', '')}" in drawn.words(picture)


@pytest.mark.parametrize("line", [*FOUR.values(), "A[I, J_X] · B[J_X, K] -> C[I, K_X]"])
def test_no_arrow_runs_through_what_it_says(line):
    """Neither the shaft, drawn as two pieces, nor the head touches a text."""
    (panel,) = cases(op_of(line)).panels
    pieces = [
        [tuple(map(float, corner.split())) for corner in node.get("d")[1:].split("L")]
        for node in drawn.elements(panel, "path")
        if "--sm-network" in node.get("stroke", "")
    ]
    assert len(pieces) == 2 * len(op_of(line).plan.moved)
    for (x, start), (_, end) in pieces:
        assert abs(end - start) > 4
        for said, (left, top, right, bottom) in drawn.texts(panel):
            clear = max(start, end) < top or min(start, end) > bottom
            assert clear or not left < x < right, said


def test_four_cases_are_four_panels():
    picture = cases(*map(op_of, FOUR.values()))
    drawn.check(picture)
    assert len(picture.panels) == 4
    plus = [[w for w, _ in drawn.texts(p)].count("+") for p in picture.panels]
    assert plus == [0, 0, 3, 0]  # partial sums of four devices


@pytest.mark.parametrize("F", [2048, 16_384, 65_536])
def test_the_time_lines_are_those_of_the_formula(F):
    """(6.8), counted again; the boxes are as long as the times."""
    op = matmul(F)
    both = CollectiveMatmul(op)
    link, peak = TPU_V5P.link_bandwidth, TPU_V5P.flops["bf16"]
    product, hop = 2 * 16_384 * 8192 * F / 64 / peak, 2 * 16_384 * 8192 / 8 / link
    assert (both.product, both.hop) == pytest.approx((product, hop))
    assert both.inside["math"][-1][1] == pytest.approx(product + 7 * max(product, hop))
    assert both.in_turn["math"][0][0] == pytest.approx(7 / 8 * 8 * hop / 2)
    drawn.check(pictures.draw(both))
    boxes = drawn.keyed(pictures.draw(both).panels[0], "collective matmul ")
    wide = {key.split(maxsplit=2)[2]: float(b.get("width")) for key, b in boxes.items()}
    assert set(wide) == {f"network {n}" for n in range(7)} | {
        f"math {n}" for n in range(8)
    }
    assert wide["math 0"] / wide["network 0"] == pytest.approx(product / hop, rel=0.08)


def test_no_product_begins_before_its_block_is_there():
    for F in (2048, 65_536):
        lanes = CollectiveMatmul(matmul(F)).inside
        for hop, (start, _) in zip(lanes["network"], lanes["math"][1:], strict=True):
            assert start >= hop[1]


@pytest.mark.parametrize("nodes", [2, 4, 128])
def test_the_stages_of_an_all_reduce_are_priced_one_by_one(nodes):
    mesh = cluster(nodes)
    whole = Hierarchy(1e9, mesh, "gpu", "node")
    ops = [
        (s.collective.op, s.collective.nbytes, s.collective.axes) for s in whole.stages
    ]
    assert ops == [
        ("reduce_scatter", 1e9, ("gpu",)),
        ("all_reduce", 1e9 / 8, ("node",)),
        ("all_gather", 1e9, ("gpu",)),
    ]
    both = price_of("all_reduce", 1e9, mesh, ("node", "gpu"))
    assert both.lower <= whole.seconds <= both.upper * (1 + 1e-9)
    drawn.check(pictures.draw(whole))
    assert len(pictures.draw(whole).panels) == 3
    said = drawn.words(pictures.draw(whole))
    assert {"875 MB sent a chip", "NVLink, 450 GB/s", "leaf, 50 GB/s"} <= said


def test_blocks_darken_as_their_sums_become_complete():
    picture = pictures.draw(Hierarchy(1e9, cluster(), "gpu", "node"))
    shades = []
    for panel in picture.panels:
        cells = drawn.keyed(panel, "")
        shades.append(
            [float(cells[f"0 3 {block}"].get("fill-opacity", 0)) for block in (3, 4)]
        )
    (early, none), (done, still), (own, other) = shades
    assert 0 == none == still < early < done == own == other


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: cases(), "must be given at least one matmul"),
        (lambda: cases(FOUR[3]), "cases: 'A.*': must be a Contraction; `contract`"),
        (
            lambda: CollectiveMatmul(FOUR[3]),
            "op = 'A.*': must be a Contraction; `contract`",
        ),
        (lambda: layouts("A[I_X]"), "layouts: 'A.*': must be a ShardedArray; `array`"),
        (lambda: layouts([op_of(FOUR[3]).a]), r"layouts: \[<A.*one by one"),
        (lambda: layouts(None), "layouts: None: must be a ShardedArray"),
        (
            lambda: CollectiveMatmul(op_of(FOUR[3])),
            "AllReduce_X C: must be one AllGather",
        ),
        (lambda: CollectiveMatmul(op_of(FOUR[2])), "mesh = None: must be a `Mesh`"),
        (
            lambda: Hierarchy(1e9, cluster(1), "gpu", "node"),
            "'node': must have 2 chips",
        ),
        (lambda: Hierarchy(1e9, 8, "gpu", "node"), "mesh = 8: must be a Mesh"),
        (lambda: Hierarchy(-1, cluster(), "gpu", "node"), "nbytes = -1: must be"),
        (lambda: Hierarchy(0, cluster(), "gpu", "node"), "nbytes = 0: must be"),
        (lambda: Hierarchy("1 GB", cluster(), "gpu", "node"), "nbytes = '1 GB'"),
        (lambda: Hierarchy(math.nan, cluster(), "gpu", "node"), "nbytes = nan"),
        (lambda: Hierarchy(1e9, cluster(), "gpu", "gpu"), "across = 'gpu': must be an"),
        (lambda: Hierarchy(1e9, cluster(), "gpu", "rack"), "axis 'rack': must be one"),
    ],
)
def test_what_has_no_such_picture_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()
