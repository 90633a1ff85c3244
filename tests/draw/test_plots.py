"""A picture's text changes with its data, and tables are one table everywhere."""

import re
from itertools import pairwise
from math import log10
from xml.etree import ElementTree

import pytest
from drawn import texts

from shardmath.base.estimate import Roof
from shardmath.base.tables import table
from shardmath.collectives import Collective
from shardmath.draw import plots
from shardmath.draw.labels import text_width
from shardmath.draw.picture import WIDEST
from shardmath.hardware import roofline
from shardmath.hardware.chips import H100, TPU_V5E
from shardmath.referee.ledger import compare


def drawn(roof, points=()):
    (panel,) = plots.roofline([roof], points).panels
    return panel


def test_a_changed_number_or_word_changes_the_picture():
    """What is stored is compared as text, so a stale picture fails."""
    roof = roofline.roof(TPU_V5E)
    same = Roof(roof.name, roof.peak, roof.bandwidth)
    faster = Roof(roof.name, roof.peak * 1.02, roof.bandwidth)
    renamed = Roof("v5e", roof.peak, roof.bandwidth)
    assert drawn(roof) == drawn(same)
    assert len({drawn(r) for r in (roof, faster, renamed)}) == 3
    assert drawn(roof) != drawn(roof, [("here", 1.0, 1e12)])


PLOTS = {
    "roofline": lambda: plots.roofline([roofline.roof(TPU_V5E)], [("here", 1.0, 1e11)]),
    "curves": lambda: plots.curves(
        [1, 10, 100],
        {"math": [1, 2, 3], "HBM": [1e-3, 2, 5]},
        "x",
        "time",
        "s",
        mark=5,
        xunit="bytes",
    ),
    "measured": lambda: plots.measured(
        [(1e3, 2), (1e4, 12), (1e5, 35)],
        {"ring": [(1e3, 2.5), (1e4, 15)]},
        "size",
        "rate",
        "bytes/s",
        "bytes",
    ),
    "ratios": lambda: plots.ratios([("a", 0.5), ("b", 0.7)], "share"),
    "ledger": lambda: plots.ledger(book()),
}


def book():
    gather = Collective("all_gather", ("X",), 8e6, group=4)
    twice = Collective("all_reduce", ("Y",), 8e6, group=2, times=2)
    return compare([gather, twice], [gather, gather, twice])


@pytest.mark.parametrize("name", PLOTS)
def test_plots_are_text_that_follows_the_page(name):
    """Text as text, no colour that a dark page cannot change, nothing but the panel."""
    (panel,) = PLOTS[name]().panels
    root = ElementTree.fromstring(panel)
    assert root.get("viewBox").split()[2] == "416"
    tags = {node.tag.rpartition("}")[2] for node in root.iter()}
    assert "text" in tags
    assert not tags & {"style", "metadata", "image"}
    assert not re.search(r"(?<!, )#[0-9a-f]{6}\b", panel)
    assert "DejaVu" not in panel
    assert not re.search(r' d="[^"]*\d\.\d\d', panel)


def test_ids_of_two_plots_on_a_page_do_not_meet():
    one, two = PLOTS["curves"]().panels + PLOTS["ratios"]().panels
    ids = [set(re.findall(r' id="([^"]+)"', panel)) for panel in (one, two)]
    assert all(ids)
    assert not ids[0] & ids[1]
    for panel, own in zip((one, two), ids, strict=True):
        assert set(re.findall(r'(?:url\(|href=")#([\w-]+)', panel)) <= own


@pytest.mark.parametrize("name", ["curves", "ratios"])
def test_the_last_digit_of_a_float_changes_nothing(name, monkeypatch):
    """Processors differ in it, and matplotlib makes its ids of all digits."""
    written, themed = [], plots.themed
    monkeypatch.setattr(plots, "themed", lambda *a: written.append(a) or themed(*a))
    (panel,) = PLOTS[name]().panels
    ((drawn, *words),) = written
    other = re.sub(r"(\d\.\d{5})[0-8]\b", r"\g<1>9", drawn)
    other = re.sub(r"\b([mp])([0-9a-f]{10})\b", lambda m: m[1] + m[2][::-1], other)
    assert sum(a != b for a, b in zip(drawn.split(), other.split(), strict=True)) > 10
    assert themed(other, *words) == panel


def test_the_description_says_the_numbers():
    assert "a 50%, b 70%" in PLOTS["ratios"]().desc
    assert "bends at 240.5 FLOPs per byte" in PLOTS["roofline"]().desc
    assert "AllGather X: predicted 6 MB, compiled 12 MB" in PLOTS["ledger"]().desc


def test_measurements_are_dots_and_models_are_lines():
    """A dot for each measurement, in its place; every line has its name."""
    picture = PLOTS["measured"]()
    (panel,) = picture.panels
    root = ElementTree.fromstring(panel)
    (x1, y1), (x2, y2), (x3, y3) = (
        (float(node.get("x")), float(node.get("y")))
        for node in root.iter()
        if node.tag.endswith("use") and "currentColor" in node.get("style", "")
    )
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)  # ten times the size, twice
    decade = (y1 - y3) / log10(35 / 2)
    assert y1 - y2 == pytest.approx(decade * log10(12 / 2), abs=0.2)
    assert {"ring", "measured"} <= {node.text for node in root.iter()}
    assert "measured from 2 bytes/s at 1 kB to 35 bytes/s at 100 kB" in picture.desc
    assert "ring from 2.5 bytes/s at 1 kB to 15 bytes/s at 10 kB" in picture.desc


def test_an_axis_of_few_decades_may_have_finer_ticks():
    """One tick alone says little; an axis with two is left as it is."""
    data = [20, 4000], {"a": [3, 4], "b": [8, 16]}, "x", "y"
    panels = (plots.curves(*data, fine=fine).panels[0] for fine in (False, True))
    rough, fine = (set(re.findall(">([0-9,]+)<", panel)) for panel in panels)
    assert rough == {"10", "100", "1,000"}
    assert fine == rough | {"5"}


def test_ticks_of_an_axis_are_all_written_in_digits():
    """A million stands beside 100,000: no power of ten beside plain numbers."""
    drawn = plots.curves([1e4, 1e7], {"a": [1e-3, 1e6]}, "x", "y").panels[0]
    ticks = set(re.findall(">([0-9][^<]*)<", drawn))
    assert {"10,000", "1,000,000", "10,000,000", "0.01", "1"} <= ticks
    assert not [tick for tick in ticks if "e" in tick]


def test_labels_at_the_right_end_keep_their_distance():
    """H100 and H200 share a peak; their names must not lie on each other."""
    places = sorted(plots._apart([9.9e14, 9.9e14, 1e15], factor=1.2))
    assert all(b / a >= 1.2 - 1e-9 for a, b in pairwise(places))


@pytest.mark.parametrize("names", [("MXU", "HBM"), ("64 of a GB200 rack", "8 H100")])
def test_labels_of_curves_that_end_together_do_not_cover_each_other(names):
    """Two plateaus at the same height: each name has its own, beside it or above."""
    ys = dict(zip(names, ([0.1, 1.0], [0.05, 1.0]), strict=True))
    picture = plots.curves([1, 10], ys, "x", "y")
    places = [
        float(node.get("y"))
        for node in ElementTree.fromstring(picture.panels[0]).iter()
        if node.text in names and node.tag.endswith("text")
    ]
    assert abs(places[0] - places[1]) >= 14


def test_table_is_the_same_in_text_and_html():
    shown = table(["chip", "a < b"], [(H100.name, 295), ("TPU v5e", "1,024")])
    assert str(shown).splitlines()[1] == "H100       295"
    html = shown._repr_html_()
    assert html.count("<tr>") == 3
    assert "a &lt; b" in html
    assert html.count("text-align: right") == 3  # the numeric column, header included


def test_a_column_without_a_name_has_no_empty_heading():
    """A screen reader would announce a heading that says nothing."""
    html = table(["", "b"], [("a", 1)])._repr_html_()
    assert "<tr><td></td><th" in html


def test_table_names_a_row_that_does_not_fit():
    with pytest.raises(ValueError, match=r"3 cells.*2"):
        table(["a", "b"], [(1, 2, 3)])


def test_the_ledger_is_drawn_row_by_row():
    """Every row has its two bars, as long as its bytes, its ratio; the title fits."""
    (panel,) = plots.ledger(book()).panels
    title, (middle, *_) = texts(panel)[-1]
    assert middle + 1.1 * text_width(title) / 2 < WIDEST  # a reader's font may be wide
    wide = [
        float(end) - float(start)
        for start, end in re.findall(
            r'd="M ([\d.]+) [\d.]+ L ([\d.]+) [\d.]+"[^>]*stroke-width: 10', panel
        )
    ]
    longest = max(wide)
    shares = sorted(round(16 * end / longest, 1) for end in wide)
    assert shares == [6, 12, 16, 16]
    for word in ("2.000", "1.000", "AllReduce Y", "AllGather X"):
        assert f">{word}<" in panel
