"""The live figure "sharded_matmul" says what the notation and the meshes say."""

import json
from itertools import pairwise
from xml.etree import ElementTree

import drawn
import pytest

from shardmath.draw.figures import find
from shardmath.draw.figures.sharded_matmul import LINES, MACHINES
from shardmath.sharding import contract

FIGURE = find("sharded_matmul")
SIZES = {"B": 4096, "D": 512, "F": 16_384}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("line", LINES)
def test_its_numbers_are_those_of_the_line(line, machine):
    """Bytes, time and bound of the plan that the case names, and of the quickest."""
    op = contract(line, MACHINES[machine](), busy=True, **SIZES)
    for wanted, plan in (("as the case names it", op.plan), ("the quickest", op.best)):
        drawing = FIGURE.draw(line=line, machine=machine, plan=wanted, **SIZES)
        estimate = plan.estimate(op.mesh, "bf16")
        assert drawing.data["sent"] == plan.sent
        assert drawing.data["seconds"] == estimate.seconds
        assert drawing.data["bound"] == estimate.bound
        assert drawing.data["case"] == op.case
        ElementTree.fromstring(drawing.svg)
        json.dumps(drawing.data, allow_nan=False)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_ends_of_every_slider_can_be_drawn(machine):
    """Blocks divide at the smallest sizes, and the largest fit the axes."""
    sliders = FIGURE.controls[3:]
    for end in (0, -1):
        sizes = {slider.name: slider.stops[end] for slider in sliders}
        for line in LINES:
            FIGURE.draw(line=line, machine=machine, **sizes)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_tokens_on_the_axis_stand_apart_and_inside_the_picture(machine):
    panel = FIGURE.draw(machine=machine).svg
    wide = float(drawn.parsed(panel).get("viewBox").split()[2])
    printed = dict(drawn.texts(panel))
    ends = [printed[tick] for tick in ("1,000", "10,000", "100,000")]
    assert "1,000,000" not in printed
    assert all(left[2] + 10 < right[0] for left, right in pairwise(ends))
    assert ends[-1][2] < wide


def test_the_lines_show_all_four_cases():
    cases = {FIGURE.draw(line=line).data["case"] for line in LINES}
    assert cases == {1, 2, 3, 4}


def test_the_quickest_plan_changes_with_the_tokens():
    """Few tokens travel themselves; for many the weights do."""
    few, many = (
        FIGURE.draw(plan="the quickest", B=B).data["collectives"]
        for B in (1024, 65_536)
    )
    assert [op for op, *_ in few] == ["all_to_all", "reduce_scatter"]
    assert [op for op, *_ in many] == ["all_gather"]
