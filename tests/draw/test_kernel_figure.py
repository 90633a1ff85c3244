"""The live figure "kernel", and the pictures of kernels."""

import itertools

import drawn
import pytest

from shardmath.draw import figures, pictures
from shardmath.draw.picture import Picture
from shardmath.hardware import blocks, chips, roofline

KERNEL = figures.find("kernel")
V5E = chips.TPU_V5E
SIDES = KERNEL.control("rows").stops


@pytest.mark.parametrize("chip", KERNEL.control("chip").options)
@pytest.mark.parametrize("moment", [0, 7, 24])
def test_every_setting_can_be_read(chip, moment):
    for rows, columns, depth in itertools.product(SIDES, repeat=3):
        drawing = KERNEL.draw(
            chip=chip, moment=moment, rows=rows, columns=columns, depth=depth
        )
        drawn.check(Picture("kernel", drawing.summary, (drawing.svg,)))


def crossed(**settings):
    return KERNEL.draw(**settings).data["crossed"]


@pytest.mark.parametrize("params", [{}, *KERNEL.presets.values()])
def test_what_has_crossed_grows_to_the_traffic_of_the_kernel(params):
    drawing = KERNEL.draw(**params)
    seen = [crossed(**params | {"moment": n}) for n in range(drawing.last + 1)]
    assert seen == sorted(seen)
    assert seen[0] == 0
    assert seen[-1] == sum(drawing.data["traffic"].values())
    assert (
        KERNEL.draw(**params | {"moment": drawing.last}).data["step"]
        == (drawing.data["steps"])
    )


def test_the_traffic_is_that_of_the_roofline():
    drawing = KERNEL.draw(rows=512, columns=1024, depth=512)
    values = roofline.tile_traffic(2048, 2048, 2048, (512, 1024))
    assert sum(drawing.data["traffic"].values()) == 2 * values


def test_a_tile_that_does_not_fit_says_by_how_much():
    drawing = KERNEL.draw(**KERNEL.presets["too large"])
    assert "need 16 MiB more than there is" in drawing.summary
    assert ">too large</text>" in drawing.svg
    assert ">fits</text>" in KERNEL.draw(rows=512, columns=512).svg


def test_the_bar_of_the_vmem_is_full_at_the_limit_and_no_fuller():
    for rows in SIDES:
        drawing = KERNEL.draw(rows=rows, columns=rows)
        share = min(1, drawing.data["vmem"] / drawing.data["limit"])
        high = float(drawn.keyed(drawing.svg, "vmem")["vmem"].get("height"))
        assert high == pytest.approx(106 * share, abs=0.1)


@pytest.mark.parametrize("tile", [(256, 256), (512, 512), (1024, 1024)])
@pytest.mark.parametrize("steps", [1, 10, 18, 600])
def test_lanes_have_a_box_of_math_for_every_step(tile, steps):
    kernel = blocks.matmul(2048, 2048, 2048, tile, 512)
    picture = pictures.kernel_lanes(kernel, V5E, steps)
    drawn.check(picture)
    (panel,) = picture.panels
    math = [box for box in drawn.elements(panel, "rect") if box.get("y") == "84"]
    assert len(math) == min(steps, kernel.steps)
    if steps > 9:  # a tile of 256 waits in every step, one of 512 only for its result
        late = int(picture.desc.split("In ")[1].split()[0])
        assert (late == 0, late >= steps - 1 or late >= kernel.steps - 2) == (
            tile == (1024, 1024),
            tile == (256, 256),
        )


def test_one_block_of_the_scores_is_at_work():
    kernel = blocks.attention(1, 4096, 2048, 128, 512, 256)
    picture = pictures.attention_blocks(kernel, 2, 3)
    drawn.check(picture)
    boxes = drawn.elements(picture.panels[0], "rect")
    scores = [box for box in boxes if float(box.get("x")) >= 96
              and float(box.get("y")) >= 96 and float(box.get("x")) < 295]  # fmt: skip
    assert len(scores) == 8 * 8
    assert sum("0.85" in (box.get("fill-opacity") or "") for box in scores) == 1
    with pytest.raises(ValueError, match="row = 8, column = 3: must be within 8 × 8"):
        pictures.attention_blocks(kernel, 8, 3)


def test_padding_is_what_a_block_does_not_fill():
    picture = pictures.row_blocks([130, 0, 128], 128)
    drawn.check(picture)
    assert "3 blocks of 128, of which 67% is useful" in picture.desc
    with pytest.raises(ValueError, match="must be 1 to 12 experts"):
        pictures.row_blocks([1] * 13, 128)
