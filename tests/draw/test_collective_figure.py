"""The live figure "collective": the closed forms' numbers, drawn for every setting."""

import itertools
import json
from xml.etree import ElementTree

import pytest

from shardmath import collectives
from shardmath.draw import figures
from shardmath.draw.figures.collective import (
    LINE,
    NVLINK,
    REDUCING,
    RING,
    TORUS,
    network,
)
from shardmath.hardware.mesh import Mesh

FIGURE = figures.find("collective")
OP, WIRES, CHIPS, _ = FIGURE.controls


@pytest.mark.parametrize(
    ("wires", "shape", "wrap"),
    [
        (RING, (16,), (True,)),
        (LINE, (16,), (False,)),
        (TORUS, (4, 4), (True, True)),
    ],
)
def test_wires_are_what_they_are_called(wires, shape, wrap):
    found = network(wires, 16)
    assert (found.shape, tuple(d.wrap for d in found.dims)) == (shape, wrap)


@pytest.mark.parametrize("chips", CHIPS.stops)
def test_a_torus_has_as_many_chips_as_the_slider_says(chips):
    assert network(TORUS, chips).chips == chips


@pytest.mark.parametrize("wires", WIRES.options)
@pytest.mark.parametrize("op", OP.options)
def test_the_numbers_are_those_of_the_closed_forms(op, wires):
    for chips, kilobytes in itertools.product((4, 8, 64), (1, 2**14, 2**24)):
        drawing = FIGURE.draw(op=op, wires=wires, chips=chips, kilobytes=kilobytes)
        found = drawing.data["collective"]
        mesh = Mesh(network(wires, chips), {"X": chips})
        right = getattr(collectives, found["op"])(1000 * kilobytes, mesh, "X")
        assert found["seconds"] == right.expected
        slow = found["latency_seconds"] > found["bandwidth_seconds"]
        assert found["bound"] == ("latency" if slow else "bandwidth")
        assert (found["bound"] == "latency") == (
            1000 * kilobytes < found["latency_bound_below"]
        )
        assert ("up to " in drawing.summary) == (not right.exact)
        ElementTree.fromstring(drawing.svg)
        json.dumps(drawing.data, allow_nan=False)


def test_more_gpus_than_nvlink_joins_are_refused_in_words():
    drawing = FIGURE.draw(wires=NVLINK, chips=128)
    assert drawing.data == {"collective": None}
    assert "at most 72" in drawing.summary
    assert "at most 72" in drawing.svg


def test_a_switch_that_adds_helps_the_all_reduce_alone():
    for op in OP.options:
        plain, adding = (FIGURE.draw(op=op, wires=w).data for w in (NVLINK, REDUCING))
        faster = adding["collective"]["seconds"] < plain["collective"]["seconds"]
        assert faster == (op == "AllReduce")
