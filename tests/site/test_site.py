"""What a reader of the site relies on, page by page, in a real browser."""

import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup

from shardmath import chips, roofline

ROOT = Path(__file__).parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"


def _documents(entry) -> list[str]:
    """Every document that a table of contents names, in reading order."""
    found = [entry[key] for key in ("root", "file") if key in entry]
    for key in ("parts", "chapters", "sections"):
        for child in entry.get(key, []):
            found += _documents(child)
    return found


DOCUMENTS = _documents(yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8")))
CHAPTERS = [name for name in DOCUMENTS if name.startswith("chapters/")]
PAGES = [f"{name}.html" for name in DOCUMENTS]
each_page = pytest.mark.parametrize("name", PAGES)
each_view = pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "dark")]
)


@cache
def soup(site: Path, name: str) -> BeautifulSoup:
    """The page as it lies on disk."""
    return BeautifulSoup((site / name).read_text("utf-8"), "html.parser")


def visit(page, url):
    """Open `url` and wait until fonts and scripts are done."""
    response = page.goto(url, wait_until="load")
    assert response is None or response.ok, f"{url}: {response.status}"
    page.wait_for_function("document.fonts.status === 'loaded'")


@each_page
@each_view
def test_accessible(new_page, site_url, name, width, scheme):
    """axe finds nothing, with everything that is folded opened."""
    page = new_page(width=width, scheme=scheme)
    visit(page, site_url + name)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    lines = [
        f"{v['impact']}: {v['id']}: {n['html'][:160]} {json.dumps(n['any'])[:300]}"
        for v in found["violations"]
        for n in v["nodes"][:5]
    ]
    assert not lines, "\n".join(lines)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme


@each_page
def test_fits_a_phone(new_page, site_url, name):
    """At 390 px nothing sticks out sideways."""
    page = new_page(width=390)
    visit(page, site_url + name)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@each_page
def test_reads_without_scripts(new_page, site_url, name):
    """Text, formulas, figures and tables are there; dead buttons are not."""
    page = new_page(scripts=False)
    page.goto(site_url + name)
    assert page.locator("h1").first.is_visible()
    assert len(page.locator("article").inner_text()) > 200
    for what in (".katex-html", "img", "table", "figure"):
        for element in page.locator(f"article {what}").all():
            folded = element.locator("xpath=ancestor::details").count()
            assert folded or element.is_visible(), what
    assert page.locator("nav[aria-label=Book] a").nth(1).is_visible()
    for button in page.locator("button").all():
        assert not button.is_visible(), button.inner_text()


@each_page
def test_states_language_and_description(site, name):
    """Search engines and screen readers are told what the page is."""
    page = soup(site, name)
    assert page.html["lang"] == "en"
    description = page.find("meta", attrs={"name": "description"})["content"]
    assert 20 <= len(description) <= 250
    assert "Shardmath" in page.title.text


@each_page
def test_images_have_alt_text(site, name):
    """No figure is mute, and no alt text is a file's path."""
    for image in soup(site, name).find_all("img"):
        alt = image.get("alt", "")
        assert len(alt) > 10, image
        assert not re.search(r"\.(png|svg)$", alt), alt


@each_page
def test_internal_links_resolve(site, name):
    """Every link, picture, style and script on the page exists, anchors too."""
    dead = []
    for element in soup(site, name).find_all(True):
        for link in (element.get("href"), element.get("src")):
            if not link or urlsplit(link).scheme:
                continue
            path, anchor = urldefrag(link)
            path = unquote(urlsplit(path).path)
            target = (site / name).parent / path if path else site / name
            if not target.is_file():
                dead.append(link)
            elif anchor and target.suffix == ".html":
                there = soup(site, str(target.resolve().relative_to(site.resolve())))
                if not there.find(id=unquote(anchor)):
                    dead.append(link)
    assert not dead


def test_top_leads_to_the_front_page(page, site_url):
    """Who opens the site's address lands on the front page."""
    page.goto(site_url)
    page.wait_for_url("**/book/index.html")
    assert page.locator("h1").first.inner_text().startswith("Shardmath")


def test_sidebar_toggle_wide(page, site_url):
    """The button hides the contents and brings them back."""
    visit(page, site_url + PAGES[0])
    sidebar = page.locator("#pst-primary-sidebar")
    toggle = page.locator("button.primary-toggle")
    assert sidebar.is_visible()
    toggle.click()
    sidebar.wait_for(state="hidden")
    toggle.click()
    sidebar.wait_for(state="visible")


def test_sidebar_toggle_narrow(new_page, site_url):
    """On a phone the contents open over the page, lead on, and close by Escape."""
    page = new_page(width=390)
    visit(page, site_url + PAGES[0])
    link = page.locator("nav[aria-label=Book] a", has_text="Notation")
    assert not link.is_visible()
    page.get_by_role("button", name="Table of contents").press("Enter")
    link.wait_for(state="visible")
    page.keyboard.press("Escape")
    link.wait_for(state="hidden")
    page.get_by_role("button", name="Table of contents").click()
    link.click()
    page.wait_for_url("**/notation.html")


def test_theme_button(page, site_url):
    """The choice of light or dark holds on the next page."""
    visit(page, site_url + PAGES[0])
    theme = "document.documentElement.dataset.theme"
    button = page.locator(".theme-switch-button")
    for _ in range(3):
        if page.evaluate(theme) != "dark":
            button.click()
    visit(page, site_url + "book/notation.html")
    assert page.evaluate(theme) == "dark"


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_search_finds_intensity(page, site, site_url, scheme):
    """The search needs no server, and none of others'."""
    base = site_url if scheme == "http" else site.as_uri() + "/"
    visit(page, f"{base}search.html?q=intensity")
    results = page.locator("#search-results li a")
    results.first.wait_for()
    assert any("Notation" in text for text in results.all_inner_texts())


def test_search_box_opens_by_keyboard(page, site_url):
    """Control-K, a word, Enter: results."""
    visit(page, site_url + PAGES[0])
    page.keyboard.press("Control+k")
    page.keyboard.type("intensity")
    page.keyboard.press("Enter")
    page.locator("#search-results li a").first.wait_for()


@pytest.mark.parametrize("name", [f"{chapter}.html" for chapter in CHAPTERS])
def test_reads_from_a_folder(page, site, name):
    """A chapter opened by a double click shows itself without complaint."""
    visit(page, (site / name).as_uri())
    assert page.locator("h1").first.is_visible()


def test_ships_nothing_unused(site):
    """No source maps, no icon fonts, no formats of a font that no browser needs."""
    suffixes = {".map", ".ttf", ".woff", ".eot"}
    shipped = [f for f in site.rglob("*") if f.suffix in suffixes]
    assert not shipped
    assert not list(site.rglob("fontawesome*"))


def test_front_page_numbers_are_the_package_s():
    """The numbers that invite the reader are those that the book computes."""
    text = (ROOT / "book" / "index.md").read_text("utf-8")
    bend = {
        name: chips.find(name).intensity("bf16") for name in ("v5e", "H100", "H200")
    }
    v5e = chips.find("v5e")
    estimate = roofline.matmul(B=64, D=8192, F=8192, chip=v5e)
    low, high = estimate.lower * 1e6, estimate.upper * 1e6
    for fact in (
        f"about **{round(bend['v5e'], -1):.0f} tokens**",
        f"H200 needs **{bend['H200']:.0f}**",
        f"H100 needs **{bend['H100']:.0f}**",
        f"{v5e.flops['bf16'] / 1e12:.0f} TFLOPs/s over {v5e.hbm_bandwidth / 1e9:.0f}",
        f"**{low:.0f} to {high:.0f} µs**",
    ):
        assert fact in text, fact
