"""Pictures of networks: drawn from the links and rates that prices are made of."""

import re
from math import hypot, sqrt

import drawn
import pytest

from shardmath.draw import pictures
from shardmath.draw.objects.grid import DOT, cube_links
from shardmath.draw.objects.tree import tree
from shardmath.draw.pictures import beside, groups
from shardmath.hardware import networks as net
from shardmath.hardware.chips import B200, GB200, H100, TPU_V3, TPU_V4, TPU_V5E, TPU_V5P

SLICES = [(1, 16), (2, 2), (4, 4), (8, 16), (16, 8), (16, 16)]


def node(gpus=8):
    return net.NVLinkDomain(H100, gpus)


@pytest.mark.parametrize("shape", SLICES)
def test_a_slice_shows_every_link_and_marks_its_open_sides(shape):
    torus = net.Torus(TPU_V5E, shape)
    (panel,) = pictures.draw(torus).panels
    drawn.check(pictures.draw(torus))
    pairs = {tuple(sorted(link[:2])) for link in torus.links()}
    assert set(drawn.keyed(panel, "link ")) == {f"link {a} {b}" for a, b in pairs}
    assert len(drawn.keyed(panel, "chip ")) == torus.chips
    opened = [dim for dim in torus.dims if not dim.wrap and dim.size > 1]
    dashed = [p for p in drawn.elements(panel, "path") if p.get("stroke-dasharray")]
    assert len(dashed) == 2 * len(opened)
    assert ("open" in drawn.words(pictures.draw(torus))) == bool(opened)


def test_only_links_that_close_a_side_are_arcs():
    torus = net.Torus(TPU_V5E, (8, 16))
    shapes = drawn.keyed(pictures.draw(torus).panels[0], "link ")
    arcs = {key for key, shape in shapes.items() if "A" in shape.get("d")}
    assert arcs == {f"link {16 * row} {16 * row + 15}" for row in range(8)}


@pytest.mark.parametrize("side", [4, 8])
def test_the_arcs_of_a_small_torus_clear_its_chips_and_leave_room(side):
    ring = net.Ring(side, 50e9, 1e-6)
    picture = pictures.grid(net.Network((ring, ring), f"a torus of {side**2}"))
    shapes = drawn.keyed(picture.panels[0], "link ").values()
    arcs = [shape.get("d") for shape in shapes if "A" in shape.get("d")]
    assert len(arcs) == 2 * side
    for path in arcs:
        ax, ay, radius, _, _, _, _, bx, by = map(float, re.findall(r"[\d.]+", path))
        half = hypot(bx - ax, by - ay) / 2
        pitch, depth = 2 * half / (side - 1), sqrt(radius**2 - half**2)
        highest = radius - depth
        over_the_first = sqrt(radius**2 - (half - pitch) ** 2) - depth
        assert DOT < over_the_first < highest < pitch / 2


def test_a_long_side_is_cut_in_its_middle():
    picture = pictures.draw(net.Torus(TPU_V3, (32, 32)))
    drawn.check(picture)
    assert "…" in drawn.words(picture)
    assert len(drawn.keyed(picture.panels[0], "chip ")) == 12 * 12
    assert "link 0 31" in drawn.keyed(picture.panels[0], "link ")


@pytest.mark.parametrize("torus", [(TPU_V4, (4, 4, 4)), (TPU_V5P, (8, 4, 12))])
def test_a_cube_has_an_optical_link_at_every_chip_of_every_face(torus):
    torus = net.Torus(*torus)
    inside, leaving = cube_links(torus)
    assert len(inside) == 3 * 4 * 4 * 3
    assert len(leaving) == 6
    for (dim, sign), chips in leaving.items():
        assert len(set(chips)) == len(chips) == 16
        assert {chip[dim] for chip in chips} == {3 if sign > 0 else 0}
    assert sum(map(len, leaving.values())) * torus.cubes == torus.optical_links
    drawn.check(pictures.draw(torus))
    assert len(drawn.keyed(pictures.draw(torus).panels[0], "optical ")) == 96
    said = "through 6 faces: 16 optical leads each, 96 in all"
    assert said in drawn.words(pictures.draw(torus))


@pytest.mark.parametrize(
    ("nodes", "more", "said"),
    [
        (4, {}, {"400 GB/s", "a node", "450 GB/s", "a GPU", "leaf"}),
        ((4, 32), {}, {"12.8 TB/s", "32 nodes", "spine", "…"}),
        ((4, 32), {"taper": (7, 1)}, {"1.83 TB/s", "7 : 1"}),
        ((2, 4, 32), {"latency": (5e-6, 4e-6, 3e-6)}, {"51.2 TB/s", "128 nodes"}),
    ],
)
def test_a_tree_says_the_rate_of_every_level(nodes, more, said):
    cluster = net.Cluster(node(), nodes, **more)
    drawn.check(pictures.draw(cluster))
    assert said <= drawn.words(pictures.draw(cluster))
    (panel,) = pictures.draw(cluster).panels
    assert len(drawn.keyed(panel, "gpu ")) == 8 * len(drawn.keyed(panel, "node "))


def test_a_small_tree_is_drawn_whole():
    """Each GPU with a card of its own, and a switch for each node."""
    small = pictures.draw(net.Cluster(node(4), 4)).panels[0]
    assert len(drawn.keyed(small, "node ")) == 4
    assert len(drawn.keyed(small, "gpu ")) == 16
    assert len(drawn.elements(small, "path")) == 2 * 16
    assert len(drawn.keyed(small, "leaf")) == 1


def test_domains_are_drawn_to_one_scale():
    eight, rack = net.NVLinkDomain(B200), net.NVLinkDomain(GB200)
    picture = pictures.domains(eight, rack)
    drawn.check(picture)
    drawn.check(pictures.draw(eight))
    boxes = drawn.keyed(picture.panels[0], "")
    wide = {key: float(shape.get("width", 0)) for key, shape in boxes.items()}
    for network in (eight, rack):
        gpus = [
            key
            for key in wide
            if key.startswith(f"{network.name} ") and key[-1].isdigit()
        ]
        assert len(gpus) == network.chips
        inside, out = (wide[f"{network.name} {w}"] for w in ("NVLink", "network card"))
        chip = network.chip
        rates = chip.scale_up_bandwidth / chip.scale_out_bandwidth
        assert inside / out == pytest.approx(rates, rel=0.01)


def test_bars_have_one_scale():
    values = {"one": {"a": 900e9, "b": 50e9}, "other": {"c": 682e9, "d": 380e9}}
    picture = groups("Rates", values, "bytes/s")
    drawn.check(picture)
    wide = {
        k: float(v.get("width"))
        for k, v in drawn.keyed(picture.panels[0], "").items()
        if k
    }
    scale = wide["a"] / 900e9
    for group in values.values():
        for name, value in group.items():
            assert wide[name] == pytest.approx(scale * value, abs=0.1)
    assert {"18 to 1", "1.79 to 1"} <= drawn.words(picture)


def test_pictures_stand_beside_each_other():
    ring = net.Ring(4, 50e9, 1e-6)
    torus = pictures.grid(net.Network((ring, ring), "a torus of 16"))
    tree_of_16 = pictures.draw(net.Cluster(node(4), 4))
    both = beside("Sixteen chips twice", torus, tree_of_16)
    assert both.panels == torus.panels + tree_of_16.panels
    assert torus.desc in both.desc
    assert tree_of_16.desc in both.desc


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: pictures.grid(node()), "must be a grid of two rings or lines"),
        (lambda: pictures.draw(net.Torus(TPU_V4, (2, 2, 4))), "whole 4 × 4 × 4 cubes"),
        (lambda: pictures.grid("x"), "network = 'x': must be a Network"),
        (lambda: pictures.domains(), "must be given NVLink domains"),
        (lambda: pictures.domains("x"), "domains: 'x': must be an NVLinkDomain"),
        (
            lambda: pictures.domains(net.Cluster(node(), 2)),
            "must be given NVLink domains",
        ),
        (lambda: tree(net.Torus(TPU_V5E, (4, 4))), "must be a tree of switches"),
        (lambda: groups("t", {}, "bytes/s"), "must hold values above 0"),
        (lambda: groups("t", {"a": {"b": 0}}, "s"), "must hold values above 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()
