"""The figure "links": levels are as busy as by hand, and the thickest decides."""

import re

import pytest

from shardmath.draw import figures
from shardmath.draw.figures.links import MACHINES, OPS, THICK
from shardmath.hardware import chips

FIGURE = figures.find("links")


@pytest.mark.parametrize("units", [2, 4, 32])
@pytest.mark.parametrize(
    ("machine", "chip"),
    [("nodes of 8 H100", chips.H100), ("nodes of 8 B200", chips.B200)],
)
def test_an_all_gather_by_hand(units, machine, chip):
    """A node takes in what it lacks by eight cards; a GPU what it lacks by NVLink."""
    found = FIGURE.draw(units=units, machine=machine, op="AllGather", size=1024).data
    nbytes, node, gpus = 2**30, 8, 8 * units
    cards = nbytes * (1 - 1 / units) / (node * chip.scale_out_bandwidth)
    # Of each share that comes by card one GPU is the first to have it; seven get it
    # from a neighbour. All of them need the whole array but their own shares.
    nvlink = nbytes * (node - 1) / node / chip.scale_up_bandwidth
    assert found["levels"]["leaf"] == pytest.approx(cards)
    assert found["levels"]["NVLink"] == pytest.approx(nvlink, rel=1 / gpus)
    assert found["lower"] == max(found["levels"].values())


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("op", OPS)
def test_the_level_that_decides_has_the_thickest_wires(machine, op):
    drawing = FIGURE.draw(units=4, machine=machine, op=op)
    levels = drawing.data["levels"]
    longest = max(levels, key=levels.get)
    assert drawing.data["decides"] == longest
    drawn = r'stroke-width="([\d.]+)"[^>]*data-key="(card|inside) 0"'
    widths = {key: float(width) for width, key in re.findall(drawn, drawing.svg)}
    thickest = max(widths, key=widths.get)
    assert widths[thickest] == THICK
    assert (thickest == "inside") == (longest in ("NVLink", "ICI"))


@pytest.mark.parametrize("machine", MACHINES)
def test_the_three_times_are_in_order(machine):
    """Bound, expectation, and one level after the other."""
    for units in (1, 2, 64):
        found = FIGURE.draw(units=units, machine=machine, size=1).data
        assert 0 < found["lower"] <= found["expected"] <= found["upper"] * (1 + 1e-9)


def test_one_unit_has_no_wire_outside():
    drawing = FIGURE.draw(units=1)
    assert list(drawing.data["levels"]) == ["NVLink"]
    assert "card" not in drawing.svg.replace("data-drag", "")


def test_a_bound_says_which_schedules_it_is_about():
    """Switches that add beat the first, and cards with time to spare the second."""

    def told(**settings):
        return FIGURE.draw(size=1024, **settings).summary

    one = told(units=1, machine="nodes of 8 H100", op="AllReduce")
    assert "no schedule in which the GPUs do the adding takes less" in one
    more = told(units=8, machine="nodes of 8 H800", op="AllReduce")
    assert "do the adding and each byte enters a node only once takes" in more
    for op, machine in (("AllGather", "nodes of 8 H100"), ("AllToAll", "racks")):
        names = [name for name in MACHINES if name.startswith(machine)]
        assert "no schedule takes less" in told(units=8, machine=names[0], op=op)
