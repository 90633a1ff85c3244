"""The picture of mesh axes in one another: its numbers are those of the step."""

from math import isclose

import drawn
import pytest

from shardmath.base.units import show
from shardmath.collectives import price
from shardmath.draw import pictures
from shardmath.hardware import chips
from shardmath.hardware import networks as net
from shardmath.hardware.mesh import Mesh
from shardmath.training import combine, pipeline, step, tensor, zero
from shardmath.transformer import LLAMA_3_70B

WORDS = {"X": "data", "P": "pipeline", "Y": "tensor"}


def a_step(mesh):
    three = combine(pipeline("P"), zero(1, "X"), tensor("Y"))
    how = {"attention": "causal", "microbatches": 4}
    return step(three, LLAMA_3_70B, mesh, 16, 4096, **how)


def on_cards(sizes):
    return Mesh(net.Cluster(net.NVLinkDomain(chips.H100), 16), sizes)


def test_each_axis_has_its_wires_and_its_bytes():
    one = a_step(on_cards({"X": 4, "P": 4, "Y": 8}))
    picture = pictures.nesting(one, WORDS)
    drawn.check(picture)
    said = drawn.words(picture)
    assert {"X = 4: data", "P = 4: pipeline", "Y = 8: tensor"} <= said
    for axis, level in (("X", "leaf"), ("P", "leaf"), ("Y", "NVLink")):
        moved = [c for c in one.collectives if c.axes == (axis,)]
        sent = show(sum(c.total_sent for c in moved), "bytes")
        took = show(sum(price(c, one.mesh).lower for c in moved), "s")
        assert f"{level}; a chip sends {sent} a step, {took}" in said
    assert isclose(sum(c.total_sent for c in one.collectives), one.sent)


def test_boxes_lie_in_one_another_and_chips_in_the_last():
    (panel,) = pictures.nesting(
        a_step(on_cards({"X": 4, "P": 4, "Y": 8})), WORDS
    ).panels
    boxes = [
        [float(r.get(k)) for k in ("x", "y", "width", "height")]
        for r in drawn.elements(panel, "rect")
    ]
    frames, squares = boxes[1:6:2], boxes[6:]
    assert len(squares) == 8
    for (x, y, wide, high), (a, b, c, d) in zip(
        frames, [*frames[1:], squares[-1]], strict=True
    ):
        assert (x < a, y < b) == (True, True)
        assert (a + c < x + wide, b + d < y + high) == (True, True)


def test_a_mesh_without_chips_and_an_axis_without_words_are_refused():
    with pytest.raises(ValueError, match="known chips"):
        pictures.nesting(a_step({"X": 4, "P": 4, "Y": 8}), WORDS)
    with pytest.raises(ValueError, match="axis Y"):
        pictures.nesting(
            a_step(on_cards({"X": 4, "P": 4, "Y": 8})), {"X": "a", "P": "b"}
        )
