"""The live figure of what a chip holds: the parts, the verdict, the fewest chips."""

import random

import drawn
import pytest

from shardmath.draw import figures
from shardmath.draw.figures.memory import CHIPS, MODELS, SEQ, STAGES
from shardmath.draw.picture import Picture
from shardmath.hardware import chips
from shardmath.training import combine, step, tensor

FIGURE = figures.find("memory")


def settings(seed: int) -> dict:
    draw = random.Random(seed)
    return {
        control.name: draw.choice(
            control.options if isinstance(control, figures.Choice) else control.stops
        )
        for control in FIGURE.controls
    } | {"chips": draw.choice((64, 256, 1024))}


@pytest.mark.parametrize("seed", range(8))
def test_the_parts_are_those_of_a_step(seed):
    given = settings(seed)
    found = FIGURE.draw(**given).data
    Y, groups = given["Y"], given["chips"] // given["Y"]
    split = STAGES[given["stage"]]("X")
    one = step(
        combine(split, tensor("Y")) if Y > 1 else split,
        MODELS[given["model"]],
        {"X": groups, "Y": Y},
        given["seqs"] * groups,
        SEQ,
        attention="causal",
        remat=given["remat"],
    )
    assert found["parts"] == dict(one.memory.parts)
    assert found["total"] == one.memory.total
    assert found["capacity"] == CHIPS[given["chip"]].memory_bytes
    assert found["fits"] == (found["missing"] == 0)


@pytest.mark.parametrize("seed", range(6))
def test_the_fewest_chips_are_found_again_by_trying(seed):
    """Below them it does not fit, from there on it does; powers of two."""
    given = settings(seed) | {"seqs": 1, "Y": 1}
    enough = FIGURE.draw(**given).data["enough"]
    fits = [
        n
        for n in FIGURE.control("chips").stops
        if FIGURE.draw(**given | {"chips": n}).data["fits"]
    ]
    assert enough == (fits[0] if fits else None)
    assert fits == [n for n in FIGURE.control("chips").stops if n >= (enough or 1e9)]


@pytest.mark.parametrize("params", [{}, *FIGURE.presets.values(), {"remat": "none"}])
def test_bars_end_to_end_are_all_that_is_held(params):
    drawing = FIGURE.draw(**params)
    drawn.check(Picture("memory", drawing.summary, (drawing.svg,)))
    data = drawing.data
    boxes = drawn.keyed(drawing.svg, "")
    wide = {part: float(boxes[part].get("width")) for part in data["parts"]}
    limit = float(boxes["HBM"].get("width"))
    scale = limit / data["capacity"]
    assert sum(wide.values()) == pytest.approx(scale * data["total"], abs=1)
    assert max(sum(wide.values()), limit) == pytest.approx(400, abs=1)


def test_what_is_missing_is_said_in_bytes():
    said = FIGURE.draw(chip="v5e", chips=64).summary
    assert "6.57 GiB more than 15.8 GiB. 128 of them are enough." in said
    never = FIGURE.draw(model="Llama 3.1 405B", chip="v5e", chips=4096, remat="none")
    assert never.summary.endswith("No number of chips is enough.")
    assert FIGURE.draw(chips=4, Y=8).data == {"total": None}
    assert chips.H100.name == FIGURE.settings()["chip"]
