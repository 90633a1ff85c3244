"""A picture is one drawing for every host: the page, a notebook, GitHub."""

import re
from base64 import b64decode
from xml.etree import ElementTree

import pytest

from shardmath.draw import picture, shapes, theme
from shardmath.draw.picture import MIME, WIDEST, Picture

FULL = (10, 10), (90, 50)


def panel(width: float = 100) -> str:
    parts = [
        shapes.box(10, 10, 90, 50, "HBM"),
        shapes.line((10, 10), (90, 50), colour="network", heads="both"),
        shapes.arc((10, 10), (90, 50), 60, head=True, left=True),
        shapes.circle(50, 30, 4, "math", key="dot"),
        shapes.measure((10, 60), (90, 60)),
        shapes.written(10, 80, "a < b", bold=True),
        shapes.label(10, 10, 90, 50, "in a box"),
    ]
    return shapes.framed("A scene", 'It shows "all" & more.', parts, width, 100)


def test_a_notebook_stores_text_an_image_with_its_own_ground_and_the_panels():
    """The image is for hosts that strip or recolour SVG; nbval compares the panels."""
    bundle = Picture("A scene", "Two of them.", (panel(), panel())).bundle()
    assert bundle["text/plain"] == "<A scene. Two of them.>"
    assert ["".join(p.split("\n")) for p in bundle[MIME]["panels"]] == [panel()] * 2
    images = re.findall(
        r'src="data:image/svg\+xml;base64,([^"]+)"', bundle["text/html"]
    )
    assert len(images) == 2
    root = ElementTree.fromstring(b64decode(images[0]))
    ground = next(node for node in root if node.tag.endswith("rect"))
    assert (ground.get("width"), ground.get("fill")) == ("100", theme.PAPER)
    assert root.get("color") == theme.INK  # what currentColor is in an image
    assert 'alt="A scene. It shows &quot;all&quot; &amp; more."' in bundle["text/html"]
    assert 'width="120"' in bundle["text/html"]  # of its own, so no host stretches it


def test_every_colour_has_a_value_for_hosts_without_a_style_sheet():
    """A variable without its second value would be black there."""
    variables = re.findall(r"var\(([^)]*)\)", panel())
    assert variables
    for inside in variables:
        assert re.fullmatch(r"--sm-\w+, #[0-9a-f]{6}", inside)
    assert not re.search(r'(fill|stroke)="#', panel())


def test_colours_have_the_contrast_of_text_on_paper():
    def luminance(colour: str) -> float:
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [
            v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts
        ]
        return sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    for colour in (*theme.COLOURS.values(), *theme.HUES, theme.INK):
        assert 1.05 / (luminance(colour) + 0.05) >= 4.5, colour


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Picture("t", "d", ()), "picture 't': must have a panel"),
        (lambda: Picture("t", " ", (panel(),)), "must have a title and a description"),
        (
            lambda: Picture("t", "d", (panel(WIDEST + 1),)),
            "417 units wide; on a phone, at most 416",
        ),
        (lambda: theme.paint("hbm"), "colour = 'hbm': must be ink or one of .*'HBM'"),
    ],
)
def test_what_cannot_be_shown_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_arrow_ends_where_it_points():
    """The tip of the head is the end; the stroke stops inside of the head."""
    text = shapes.line((0, 0), (100, 0), heads="end")
    tip = re.search(
        r'<path d="M([\d.]+) ([\d.]+)L', text.split("</g>")[0].split("/>")[1]
    )
    assert (tip[1], tip[2]) == ("100", "0")
    stroke = re.search(r"M0 0L([\d.]+) 0", text)
    assert 90 < float(stroke[1]) < 100


def test_the_head_of_an_arc_lies_on_its_tangent():
    """A quarter circle from the top of a clock to three: it arrives going down."""
    text = shapes.arc((0, -50), (50, 0), 50, head=True)
    (_, _), *base = [
        tuple(map(float, pair.split()))
        for pair in re.findall(r'<path d="M([^"]*)Z"', text)[0].split("L")
    ]
    middle = [sum(values) / 2 for values in zip(*base, strict=True)]
    assert middle[0] == pytest.approx(50, abs=0.2)
    assert middle[1] < -5


def test_panels_know_their_size():
    assert picture.size(panel(120)) == (120, 100)
