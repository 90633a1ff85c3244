"""The search: the right section first, as one types, by keyboard, from a file too."""

import json

import pytest
from sphinx.errors import ExtensionError
from test_pages import complaints
from written import CHAPTERS, PAGES, visit

from shardmath_site.search import add_aliases

FIELD = "#pst-search-dialog input"
FOUND = "#pst-search-dialog [role=option]"
# What is typed, and the section that must come first, a title of it.
FIRST = {
    "ring": "An AllGather passes every block on",
    "critical batch": "Above the critical batch, the math decides",
    "B*": "Above the critical batch, the math decides",
    "1.5": "Above the critical batch, the math decides",
    "(1.5)": "Above the critical batch, the math decides",
    "NVL72": "A rack of 72 keeps more traffic inside",
    "quantization": "Tiles run in waves, and every wave takes its full time",
    "quantisation": "Tiles run in waves, and every wave takes its full time",
    "240": "Above the critical batch, the math decides",
    "all-gather": "An AllGather passes every block on",
    "reduce scatter": "A ReduceScatter is an AllGather run backwards",
    "MFU": "MFU depends on what is counted",
    "arithmetic inten": "Arithmetic intensity is reuse, FLOPs for each byte",
    "Figure 5.3": "An AllGather passes every block on",
    "H200": "H200",
}


@pytest.fixture
def dialog(new_page, site_url):
    """A chapter with the search open, by its key."""
    page = new_page()
    visit(page, site_url + CHAPTERS[0])
    page.keyboard.press("Control+k")
    return page


def ask(page, query: str):
    """Type a query; the results once they are those for it."""
    page.locator(FIELD).fill(query)
    none = "#pst-search-dialog [role=status]:text('0 sections')"
    page.locator(f"{FOUND}, {none}").first.wait_for()
    page.evaluate("() => new Promise(requestAnimationFrame)")
    return page.locator(FOUND)


def test_the_right_section_comes_first(dialog):
    found = {}
    for query in FIRST:
        found[query] = ask(dialog, query).first.locator("strong").inner_text()
    assert found == FIRST


def test_a_number_leads_to_its_formula_or_figure(dialog):
    assert ask(dialog, "1.5").first.get_attribute("href").endswith("#eq-1-5")
    href = ask(dialog, "figure 5.2").first.get_attribute("href")
    assert "chapters/05_" in href
    assert "#fig-" in href


def test_both_spellings_find_the_same(dialog):
    for one, other in (("optimizer", "optimiser"), ("centre", "center")):
        found = [ask(dialog, word).all_inner_texts() for word in (one, other)]
        assert found[0] == found[1]


def test_chapters_come_before_their_exercises(dialog):
    kinds = [o.get_attribute("href") for o in ask(dialog, "critical batch").all()]
    chapters = [i for i, href in enumerate(kinds) if "/chapters/" in href]
    exercises = [i for i, href in enumerate(kinds) if "/exercises/" in href]
    assert min(chapters) < min(exercises)


def test_by_keyboard_alone(dialog, site_url):
    """Arrows choose, Enter goes; the field keeps the focus and says what is chosen."""
    options = ask(dialog, "critical batch")
    field = dialog.locator(FIELD)
    assert field.get_attribute("aria-expanded") == "true"
    dialog.keyboard.press("ArrowDown")
    dialog.keyboard.press("ArrowDown")
    dialog.keyboard.press("ArrowUp")
    chosen = field.get_attribute("aria-activedescendant")
    assert dialog.locator(f"#{chosen}").get_attribute("aria-selected") == "true"
    assert options.first.get_attribute("id") == chosen
    dialog.keyboard.press("Enter")
    dialog.wait_for_url("**/01_*.html#above-the-critical-batch-the-math-decides")
    assert not dialog.locator(FIELD).is_visible()


def test_enter_takes_the_first(dialog):
    ask(dialog, "NVL72")
    dialog.keyboard.press("Enter")
    dialog.wait_for_url("**/04_*.html#*")


def test_nothing_found_is_said(dialog):
    assert ask(dialog, "xyzzy").count() == 0
    status = dialog.locator("#pst-search-dialog [role=status]")
    assert status.inner_text() == "0 sections"
    dialog.keyboard.press("Enter")
    assert dialog.locator(FIELD).is_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_accessible_and_fits(new_page, site_url, width):
    """axe finds nothing in the open dialog, nor on the search's own page."""
    page = new_page(width=width, scheme="dark")
    visit(page, site_url + CHAPTERS[0])
    page.keyboard.press("Control+k")
    first = ask(page, "ring").first.bounding_box()
    field = page.locator("#pst-search-dialog form").bounding_box()
    assert field["y"] > 0
    assert first["y"] > field["y"] + field["height"] - 1
    assert field["width"] >= first["width"] - 20  # a bar to scroll may stand beside
    assert not complaints(page, within=["dialog."])
    visit(page, f"{site_url}search.html?q=ring")
    page.locator("main [role=option]").first.wait_for()
    assert width > 390 or not complaints(page)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_a_link_to_a_search_shows_its_results(page, site, site_url, scheme):
    """The search needs no server, and none of others'."""
    base = site_url if scheme == "http" else site.as_uri() + "/"
    visit(page, f"{base}search.html?q=intensity")
    results = page.locator("main [role=option]")
    results.first.wait_for()
    results.first.click()
    page.wait_for_url("**/chapters/*.html*")


def test_the_index_comes_when_it_is_wanted(new_page, site_url):
    page = new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    visit(page, site_url + CHAPTERS[0])
    assert not [url for url in asked if "sections.js" in url]
    page.keyboard.press("Control+k")
    ask(page, "ring").first.wait_for()
    assert [url for url in asked if "sections.js" in url]


def index(site) -> list[dict]:
    text = (site / "_static" / "sections.js").read_text("utf-8")
    return json.loads(text.partition("=")[2].rstrip(";\n"))


def test_the_index_holds_every_page_and_no_code(site):
    rows = index(site)
    assert {row["url"] for row in rows} == set(PAGES)
    text = " ".join(s["text"] for row in rows for s in row["sections"])
    for code in ("import ", "holds(", "print(", r"\frac", r"\text"):
        assert code not in text, code


def test_an_alias_names_a_section_that_is_there():
    rows = [{"kind": "chapters", "sections": [{"title": "A"}]}]
    add_aliases(rows, {"A": ["B*"]})
    assert rows[0]["sections"][0]["aliases"] == ["b*"]
    with pytest.raises(ExtensionError, match="no section of a chapter is called"):
        add_aliases(rows, {"Gone": ["ring"]})
