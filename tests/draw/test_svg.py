"""The plotter: what it draws stays in the frame, is the same everywhere, and is XML."""

import itertools
import math
import random
import re
from xml.etree import ElementTree

import pytest

from shardmath.draw import labels, picture, svg, theme

X, Y = svg.Axis("x", 1, 1e4), svg.Axis("TFLOPs/s", 1e9, 1e15, unit="FLOPs/s")
NS = "{http://www.w3.org/2000/svg}"


def scene(seed: int) -> list:
    """Lines, dots and labels at drawn places, corners included."""
    draw = random.Random(seed)

    def place():
        return draw.choice([1, 10 ** draw.uniform(0, 4), 1e4]), draw.choice(
            [1e9, 10 ** draw.uniform(9, 15), 1e15]
        )

    words = ["TPU v5e: 197 TFLOPs/s", "819 GB/s", "here", "H100: 989 TFLOPs/s"]
    sides = list(labels.SIDES)
    return [
        svg.PlotLine([place(), place(), place()], "HBM"),
        *(svg.Dot(*place()) for _ in range(2)),
        *(svg.Label(*place(), text, toward=draw.choice(sides)) for text in words),
    ]


def boxes(text: str):
    """(left, top, right, bottom) of every text that is not on an axis."""
    for node in ElementTree.fromstring(text).iter(f"{NS}text"):
        left, base = float(node.get("x")), float(node.get("y"))
        width = labels.text_width(node.text)
        left -= {"middle": width / 2, "end": width}.get(node.get("text-anchor"), 0)
        yield node.text, (left, base - labels.FONT, left + width, base + 4)


@pytest.mark.parametrize("seed", range(40))
def test_no_text_leaves_the_picture(seed):
    picture = svg.plot("t", "d", X, Y, scene(seed))
    for text, (left, top, right, bottom) in boxes(picture):
        assert min(left, top) >= -0.1, text  # coordinates are rounded
        assert right <= svg.WIDTH + 0.1, text
        assert bottom <= svg.HEIGHT + 0.1, text


@pytest.mark.parametrize("seed", range(40))
def test_labels_do_not_cover_each_other(seed):
    found = list(boxes(svg.plot("t", "d", X, Y, scene(seed))))[-4:]
    for n, (_, box) in enumerate(found):
        for _, other in found[:n]:
            assert labels.overlap(box, other) < 1


def test_the_text_does_not_depend_on_the_last_bit_of_the_logarithm(monkeypatch):
    exact = [svg.plot("t", "d", X, Y, scene(seed)) for seed in range(20)]
    log = math.log
    monkeypatch.setattr(math, "log", lambda v: math.nextafter(log(v), math.inf))
    assert [svg.plot("t", "d", X, Y, scene(seed)) for seed in range(20)] == exact


def test_coordinates_have_at_most_one_decimal():
    text = svg.plot("t", "d", X, Y, scene(1))
    places = re.sub(r"<(title|desc|text)[^>]*>[^<]*", "", text)
    assert not re.search(r"[ ,\"MHV]-?\d+\.\d\d", places.replace(".14", "").lower())


def test_words_are_escaped_and_name_the_picture():
    root = ElementTree.fromstring(svg.plot("a < b", "c & d", X, Y, []))
    assert root.get("role") == "img"
    assert [root[0].text, root[1].text] == ["a < b", "c & d"]


def test_colours_follow_the_page():
    text = svg.plot("t", "d", X, Y, [svg.PlotLine([(1, 1e9), (9, 1e9)], "HBM")])
    assert f'stroke="var(--sm-hbm, {theme.COLOURS["HBM"]})"' in text
    assert "currentColor" in text
    assert f'fill="{theme.PAPER}"/>' in picture.standalone(text)
    ElementTree.fromstring(picture.standalone(text))


def test_a_long_message_is_broken_into_lines_that_fit():
    words = "TPU v5e has no published fp4 peak; published: bf16, int8, int4. " * 3
    found = list(boxes(svg.message("t", words)))
    assert len(found) > 2
    assert " ".join(text for text, _ in found) == words.strip()
    assert all(left >= 0 and right <= svg.WIDTH for _, (left, _, right, _) in found)


@pytest.mark.parametrize(
    ("low", "high", "log", "ticks"),
    [
        (0.3, 200_000, True, (1, 10, 100, 1e3, 1e4, 1e5)),
        (1e9, 1e18, True, (1e9, 1e11, 1e13, 1e15, 1e17)),
        (0, 1, False, (0, 0.2, 0.4, 0.6, 0.8, 1)),
        (-3, 50, False, (0, 10, 20, 30, 40, 50)),
    ],
)
def test_ticks_are_round(low, high, log, ticks):
    assert svg.Axis("a", low, high, log).ticks() == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("low", "high", "log"),
    [(0, 1, True), (2, 1, True), (1, 1, False), (1, math.inf, True), (math.nan, 1, 0)],
)
def test_an_impossible_axis_is_refused(low, high, log):
    with pytest.raises(ValueError, match=r"axis 'a'.*must have finite ends"):
        svg.Axis("a", low, high, log)


def test_a_label_rather_moves_than_crosses_a_line():
    """Ten points of a line under the preferred place: the next side is free of them."""
    anchor, frame = (100, 100), (0, 0, 300, 200)
    first = labels.place("roof", anchor, "n", frame, [], [])
    left, top, right, bottom = first
    line = [(left + (right - left) * n / 11, (top + bottom) / 2) for n in range(1, 11)]
    moved = labels.place("roof", anchor, "n", frame, [], line)
    assert moved != first
    assert not any(moved[0] < u < moved[2] and moved[1] < v < moved[3] for u, v in line)


def test_a_label_crosses_a_thin_line_rather_than_go_far():
    """All places but those farthest down are crossed by a point or two: far away the
    label would name something else, so it stays."""
    dots = [(u, v) for u in range(0, 301, 20) for v in range(0, 159, 14)]
    box = labels.place("roof", (150, 100), "n", (0, 0, 300, 200), [], dots)
    assert any(box[0] < u < box[2] and box[1] < v < box[3] for u, v in dots)
    assert 0 <= 100 - box[3] <= 8


@pytest.mark.parametrize("high", [1e5, 1e6, 1e8])
def test_the_labels_of_an_axis_do_not_touch_and_stand_evenly(high):
    """Where not all have room, every second or third is written, and no other."""
    x = svg.Axis("x", 1, high)
    drawn = list(boxes(svg.plot("t", "d", x, Y, [])))
    below = [(t, b) for t, b in drawn if svg.HEIGHT - 35 < b[3] < svg.HEIGHT - 15]
    ticks = [float(text.replace(",", "")) for text, _ in below]
    assert len(ticks) >= 3
    assert len({round(math.log10(b / a)) for a, b in itertools.pairwise(ticks)}) == 1
    assert all(a[2] + 4 <= b[0] for (_, a), (_, b) in itertools.pairwise(below))
