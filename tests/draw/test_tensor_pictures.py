"""Pictures of tensor parallelism: blocks as the lines say, and what moves where."""

import drawn
import pytest

from shardmath.draw import pictures
from shardmath.sharding import contract
from shardmath.training import step, tensor
from shardmath.transformer import LLAMA_3_8B

FOUR = {"Y": 4}
SIZES = {"B": 12, "D": 8, "F": 16}
UP = contract("z[B, D] · up[D, F_Y] -> u[B, F_Y]", FOUR, **SIZES)
DOWN = contract("h[B, F_Y] · down[F_Y, D] -> m[B, D]", FOUR, **SIZES)
BLOCKS = {"attention": ("q", "k", "v", "o"), "MLP": ("gate", "up", "down")}


def under(sequence):
    strategy = tensor("Y", sequence)
    return step(strategy, LLAMA_3_8B, {"Y": 8}, 1, 4096, attention="causal")


def test_two_matmuls_stand_in_blocks_to_one_scale():
    picture = pictures.matmuls(UP, DOWN)
    drawn.check(picture)
    (panel,) = picture.panels
    sides = {
        (round(float(box.get("width")) + 2), round(float(box.get("height")) + 2))
        for box in drawn.elements(panel, "rect")
    }
    wide, high = max(sides)[0], max(high for _, high in sides)
    assert wide / high == pytest.approx(8 / 12, abs=0.03)  # z and m, D by B
    assert "moved: AllReduce_Y m" in picture.desc


def test_only_what_moves_has_an_arrow():
    one, two = (pictures.matmuls(op).panels[0] for op in (UP, DOWN))
    assert "--sm-network" not in one
    assert "--sm-network" in two


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_gathers_as_it_begins_and_scatters_as_it_ends(name):
    picture = pictures.block(under(sequence=True), *BLOCKS[name])
    drawn.check(picture)
    steps = picture.desc.split("; ")
    assert steps[1] == "AllGather_Y"
    assert steps[-2] == "ReduceScatter_Y"
    # Split activations are drawn as a piece a chip, whole ones as one piece.
    whole = [s for s in steps if "[" in s and "_Y" not in s.split("{")[0]]
    split = [s for s in steps if "[" in s and "_Y" in s.split("{")[0]]
    boxes = drawn.elements(picture.panels[0], "rect")
    assert len(boxes) == len(whole) + 4 * len(split)


def test_without_sequence_parallelism_a_block_adds_up_once():
    picture = pictures.block(under(sequence=False), *BLOCKS["MLP"])
    drawn.check(picture)
    assert "AllGather" not in picture.desc
    assert picture.desc.count("AllReduce_Y") == 1


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ValueError, match="must be given at least one matmul"):
        pictures.matmuls()
    with pytest.raises(ValueError, match="weight 'w': must be one of q, k, v, o"):
        pictures.block(under(sequence=True), "w")
