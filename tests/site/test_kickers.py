"""Labels above headings, and the anchors that sections had before."""

import json
import re

from nbformat.v4 import new_markdown_cell, new_notebook

from shardmath_site import kickers


def built(site, name="12_pipeline_parallelism"):
    return (site / "chapters" / f"{name}.html").read_text("utf-8")


def test_the_fixed_name_stands_above_its_heading(site):
    """As a label, and neither in the text before it nor in the page's contents."""
    html = built(site)
    label = re.search(r'<p class="sm-kicker">What it costs</p>\s*<h2>([^<]+)', html)
    assert label
    assert html.count(">What it costs<") == 1
    assert "<em>What it costs</em>" not in html
    contents = html.partition('id="pst-page-toc-nav"')[2].partition("</nav>")[0]
    assert "What it costs" not in contents
    assert label[1].strip()[:12] in contents


def test_old_anchors_lead_to_the_section(site):
    """Those of fixed names, and those in the metadata of a cell; no id comes twice."""
    for name, anchors in (
        ("12_pipeline_parallelism", ["what-it-costs", "in-the-wild"]),
        ("14_combining", ["what-nests-in-what", "one-budget", "by-hand"]),
    ):
        html = built(site, name)
        ids = re.findall(r'\sid="([^"]+)"', html)
        assert {*anchors} <= {*ids}
        assert len(ids) == len({*ids})


def test_an_emphasis_within_a_text_is_no_label():
    cells = [new_markdown_cell("# A\n\n*Not above a heading.*\n\nText.\n\n## B")]
    found = list(kickers.old_names(json.loads(json.dumps(new_notebook(cells=cells)))))
    assert found == [[], []]


def test_headings_in_code_do_not_count():
    source = "# A\n\n```\n# no heading\n```\n\n## B"
    cell = new_markdown_cell(source, metadata={"shardmath": {"was": ["old"]}})
    assert list(kickers.old_names({"cells": [cell]})) == [["old"], []]
