"""What the pages say in their HTML: language, names, links that lead somewhere."""

import re
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from bs4 import BeautifulSoup
from written import CHAPTERS, PAGES, written

from shardmath_site import trim

each_page = pytest.mark.parametrize("name", PAGES)


@each_page
def test_states_language_and_description(site, name):
    """Search engines and screen readers are told what the page is."""
    page = written(site, name)
    assert page.language == "en"
    assert 20 <= len(page.meta["description"]) <= 250
    assert "Shardmath" in page.title


@each_page
def test_images_have_alt_text(site, name):
    """No figure is mute, and no alt text is a file's path."""
    for image in written(site, name).images:
        alt = image.get("alt", "")
        assert len(alt) > 10, image
        assert not re.search(r"\.(png|svg)$", alt), alt


@each_page
def test_formulas_are_whole(site, name):
    """A fraction has two parts, and so on: browsers show a message for another."""
    assert written(site, name).broken == []


def test_a_broken_formula_is_seen(tmp_path):
    formula = "<math><mfrac><mn>1</mn><msub><mi>B</mi></msub></mfrac></math>"
    (tmp_path / "a.html").write_text(f"<p>\n{formula}</p>", "utf-8")
    assert written(tmp_path, "a.html").broken == ["line 2: <msub> of 1 parts"]


@each_page
def test_links_one_style_sheet(site, name):
    """Beside those for paper and for readers without scripts."""
    links = [urlsplit(link).path for link in written(site, name).links]
    styles = [link.rpartition("/")[2] for link in links if link.endswith(".css")]
    assert styles == [trim.ALL_STYLES, "print.css", "noscript.css"]


def dead_links(site, name) -> list[str]:
    """Links of a page of `site` to a file or an anchor that is not there."""
    dead = []
    for link in written(site, name).links:
        if urlsplit(link).scheme:
            continue
        path, anchor = urldefrag(link)
        path = unquote(urlsplit(path).path)
        target = (site / name).parent / path if path else site / name
        if not target.is_file():
            dead.append(link)
        elif anchor and target.suffix == ".html":
            there = str(target.resolve().relative_to(site.resolve()))
            if unquote(anchor) not in written(site, there).ids:
                dead.append(link)
    return dead


@each_page
def test_internal_links_resolve(site, name):
    """Every link, picture, style and script on the page exists, anchors too."""
    assert written(site, name).links
    assert dead_links(site, name) == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_figures_are_counted_in_one_row(site, name):
    """Pictures and live figures alike, from 1; the number is a link to the figure."""
    page = BeautifulSoup((site / name).read_text("utf-8"), "html.parser")
    marks = page.select("article .sm-figure-number")
    chapter = int(name.removeprefix("chapters/")[:2])
    numbers = [f"Figure {chapter}.{n + 1}" for n in range(len(marks))]
    assert [mark.text for mark in marks] == numbers
    for mark in marks:
        figure = mark.find_parent(id=True)
        assert mark["href"] == f"#{figure['id']}"
        assert figure.name == "figure" or "sm-live" in figure["class"]
    assert len(marks) == len(
        page.select("article :is(figure:has(figcaption), .sm-live)")
    )


def test_a_dead_link_is_seen(tmp_path):
    page = (
        '<p id="here">A<br><a href="#here">b</a><a href="#gone">c</a><img src="no.png">'
    )
    (tmp_path / "a.html").write_text(page + '<a href="b.html#gone%20too">d</a>')
    (tmp_path / "b.html").write_text('<i id="gone"></i>')
    assert dead_links(tmp_path, "a.html") == ["#gone", "no.png", "b.html#gone%20too"]


def test_ships_nothing_unused(site):
    """No source maps, no icon fonts, no formats of a font that no browser needs."""
    suffixes = {".map", ".ttf", ".woff", ".eot"}
    shipped = [f for f in site.rglob("*") if f.suffix in suffixes]
    assert not shipped
    assert not list(site.rglob("fontawesome*"))


def test_katex_ships_with_its_licence(site):
    folder = site / "_static" / "katex"
    assert any((folder / "fonts").iterdir())
    licence = (folder / "LICENSE.txt").read_text("utf-8")
    assert "Permission is hereby granted" in licence
    assert "Khan Academy" in licence
