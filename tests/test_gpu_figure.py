"""The picture of a GPU says what its record says, and its words fit their boxes."""

import re
from xml.etree import ElementTree

import pytest

from shardmath import chips
from shardmath.drawing.labels import text_width
from shardmath.gpu_figure import PART, Parts

SVG = "{http://www.w3.org/2000/svg}"


def drawn(gpu):
    root = ElementTree.fromstring(Parts(gpu)._repr_svg_())
    return root, [text.text for text in root.iter(f"{SVG}text")]


def test_an_h100_as_its_maker_draws_it():
    """132 SMs of four subpartitions with 16 Ki registers, 32 lanes, a Tensor Core."""
    parts = Parts(chips.H100)
    assert parts.registers == 4 * 16 * 1024
    assert (parts.lanes, parts.tensor_cores) == (32, 1)
    _, words = drawn(chips.H100)
    for word in ("one of 132 SMs", "L1 with SMEM, 256 KiB", "HBM, 80 GiB", "3.35 TB/s"):
        assert words.count(word) == 1
    for word in ("scheduler", "reg. 64 KiB", "32 lanes", "1 Tensor Core"):
        assert words.count(word) == 4


@pytest.mark.parametrize("gpu", [chips.H100, chips.H200, chips.A100_80GB])
def test_the_text_beside_the_picture_names_every_number_in_it(gpu):
    numbers = r"[\d.]+(?: [KMG]iB| TB/s)?"
    said = set(re.findall(numbers, repr(Parts(gpu))))
    for word in drawn(gpu)[1]:
        assert set(re.findall(numbers, word.removeprefix("reg. "))) <= said


def test_words_fit_their_boxes_and_boxes_the_picture():
    root, words = drawn(chips.H100)
    assert all(
        text_width(word) < PART - 10
        for word in ("scheduler", "reg. 64 KiB", "32 lanes", "1 Tensor Core")
    )
    assert max(map(text_width, words)) < 300
    for box in root.iter(f"{SVG}rect"):
        left, top = float(box.get("x", 0)), float(box.get("y", 0))
        assert left + float(box.get("width")) <= 510
        assert top + float(box.get("height")) <= 320


@pytest.mark.parametrize(
    ("gpu", "message"),
    [
        (chips.TPU_V5P, "gpu = TPU v5p.*: must be an NVIDIA GPU"),
        (chips.MI300X, "must be an NVIDIA GPU"),
        ("H100", "gpu = 'H100': must be an NVIDIA GPU"),
        (chips.H800, "H800: no source states"),
    ],
)
def test_what_cannot_be_drawn_is_refused(gpu, message):
    with pytest.raises(ValueError, match=message):
        repr(Parts(gpu))
