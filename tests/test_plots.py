"""A picture's text changes with its data, and tables are one table everywhere."""

from itertools import pairwise

import pytest

from shardmath import plots, roofline
from shardmath.chips import H100, TPU_V5E
from shardmath.collectives import Collective
from shardmath.estimate import Roof
from shardmath.ledger import compare
from shardmath.tables import table


def digest(roof, points=()):
    return plots.roofline([roof], points).digest()


def test_digest_notices_a_changed_number_and_a_changed_word():
    roof = roofline.roof(TPU_V5E)
    same = Roof(roof.name, roof.peak, roof.bandwidth)
    faster = Roof(roof.name, roof.peak * 1.001, roof.bandwidth)
    renamed = Roof("v5e", roof.peak, roof.bandwidth)
    assert digest(roof) == digest(same)
    assert len({digest(r) for r in (roof, faster, renamed)}) == 3
    assert digest(roof) != digest(roof, [("here", 1.0, 1e12)])


def test_picture_shows_png_and_text():
    bundle = plots.ratios([("a", 0.5)], "share")._repr_mimebundle_()
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert "digest" in bundle["text/plain"]


def test_labels_at_the_right_end_keep_their_distance():
    """H100 and H200 share a peak; their names must not lie on each other."""
    places = sorted(plots._apart([9.9e14, 9.9e14, 1e15], factor=1.2))
    assert all(b / a >= 1.2 - 1e-9 for a, b in pairwise(places))


def test_labels_of_curves_that_end_together_do_not_cover_each_other():
    """Two plateaus at the same height: each name has its own."""
    picture = plots.curves([1, 10], {"MXU": [0.1, 1.0], "HBM": [0.05, 1.0]}, "x", "y")
    (ax,) = picture.figure.axes
    places = sorted(label.xy[1] for label in ax.texts)
    bottom, top = ax.get_ylim()
    assert places[1] / places[0] >= (top / bottom) ** plots.LABEL_HEIGHT - 1e-9


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
    """Every row has its two bars, as long as its bytes, and its ratio."""
    gather = Collective("all_gather", ("X",), 8e6, group=4)
    twice = Collective("all_reduce", ("Y",), 8e6, group=2, times=2)
    book = compare([gather, twice], [gather, gather, twice])
    (ax,) = plots.ledger(book).figure.axes
    assert sorted(line.get_xdata()[1] for line in ax.lines) == [6e6, 12e6, 16e6, 16e6]
    assert {text.get_text().strip() for text in ax.texts} == {"2.000", "1.000"}
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        "AllReduce Y",
        "AllGather X",
    ]
