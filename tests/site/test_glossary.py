"""The glossary: every term once, and explained where a chapter uses it first."""

import re
from pathlib import Path

import pytest
from docutils import nodes

from shardmath_site import glossary

ROOT = Path(__file__).parents[2]
TERMS = {
    "shard": ("term-shard", "The part of an array that one device holds."),
    "HBM": ("term-HBM", "Main memory."),
    "pod": ("term-pod", "All chips."),
}


def page(*parts):
    document = nodes.document(None, None)
    section = nodes.section()
    section += nodes.title("", "A shard in a title")
    for part in parts:
        section += part if isinstance(part, nodes.Node) else nodes.paragraph("", part)
    document += section
    return document


def marked(document):
    return [raw["term"] for raw in document.findall(nodes.raw)]


def test_the_first_use_alone_is_marked():
    document = page("Two shards fill HBM. A shard is small.", "HBM and a pod.")
    assert glossary.mark(document, TERMS, "g.html") == ["shard", "HBM", "pod"]
    html = document.next_node(nodes.raw).astext()
    assert 'href="g.html#term-shard"' in html
    assert ">shards</a>" in html
    assert TERMS["shard"][1] in html
    assert "A shard in a title" in document.astext()
    text = document.astext()
    assert text.index("Two ") < text.index("shards") < text.index(" fill ")
    assert " A shard is small." in text


def test_code_and_links_are_left_alone():
    link = nodes.paragraph("", "", nodes.reference("", "a pod", refuri="x"))
    code = nodes.paragraph("", "", nodes.literal("", "shard"))
    assert glossary.mark(page(link, code), TERMS, "g.html") == []


def test_words_that_only_look_alike_are_no_terms():
    assert glossary.mark(page("Podium, hbm, sharding, re-shard"), TERMS, "g") == []


def test_marks_are_described_once_each():
    document = page("A pod, a shard and HBM.")
    glossary.mark(document, TERMS, "g.html")
    html = "".join(raw.astext() for raw in document.findall(nodes.raw))
    names = re.findall(r' id="([^"]+)"', html)
    assert re.findall(r'describedby="([^"]+)"', html) == names
    assert len({*names}) == 3


@pytest.mark.parametrize("term", sorted(glossary.UNMARKED))
def test_unmarked_words_are_terms(term):
    assert f"\n{term}\n" in (ROOT / "book/glossary.md").read_text("utf-8")


def test_every_term_has_one_sentence():
    lines = (ROOT / "book/glossary.md").read_text("utf-8").split("```")[1].splitlines()
    entries = [n for n, line in enumerate(lines) if line.startswith("  ")]
    terms = [lines[n - 1] for n in entries]
    assert len(terms) == len({term.lower() for term in terms}) > 90
    for n in entries:
        said = lines[n].strip()
        assert said[0].isupper()
        assert said.endswith(".")
        assert not re.search(r"[.?!] [A-Z]", said), said


@pytest.mark.parametrize("width", [1280, 390])
def test_a_chapter_explains_its_terms(site, new_page, site_url, width):
    """By keyboard, inside the window, away with Escape; and the link leads there."""
    page = new_page(width=width)
    page.goto(f"{site_url}chapters/05_collectives.html")
    term = page.locator(".sm-term").first
    tip = term.locator(".sm-tip")
    assert not tip.is_visible()
    term.locator("a").focus()
    tip.wait_for(state="visible")
    box = tip.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    page.keyboard.press("Escape")
    tip.wait_for(state="hidden")
    anchor = term.locator("a").get_attribute("href").split("#")[1]
    assert f'id="{anchor}"' in (site / "book/glossary.html").read_text("utf-8")


def test_no_definition_leaves_the_window(new_page, site_url):
    """Neither while it is hidden, which would let the page scroll sideways."""
    page = new_page(width=1280)
    page.goto(f"{site_url}chapters/02_tpus.html")
    page.wait_for_load_state()
    wide = "document.documentElement.scrollWidth"
    assert page.evaluate(wide) == 1280
    ends = []
    for term in page.locator("article .sm-term:visible").all():
        term.locator("a").focus()
        box = term.locator(".sm-tip").bounding_box()
        ends.append(box["x"] + box["width"])
    assert len(ends) > 3
    assert max(ends) <= 1280
