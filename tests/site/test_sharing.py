"""Where the book says it is, and what a link to it looks like, with and without."""

import io
import json
import re
import struct
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

import pytest
import yaml
from live_book import shows
from nbformat.v4 import new_markdown_cell, new_notebook
from PIL import Image, ImageChops
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import docutils_namespace
from test_pages import complaints
from written import CHAPTERS, PAGES, ROOT, visit, written

from shardmath.draw import shapes
from shardmath.draw.picture import picture
from shardmath_site import sharing
from shardmath_site.sharing import Addresses

SITE, SOURCE = "https://example.org/book", "https://github.com/owner/shardmath"
DOT = picture("A dot", "In the middle.", shapes.framed("A dot", "It.", [], 200, 100))
FRONT = """# Small

What the front page says of itself in a line.

```{in-a-clone}
make book
```

```{toctree}
../chapters/01_rings
```
"""


def build(folder, **settings) -> None:
    """A book of a front page and a chapter, as `folder`/html."""
    source = folder / "source"
    (source / "book").mkdir(parents=True)
    (source / "chapters").mkdir()
    (source / "node_modules").symlink_to(ROOT / "node_modules")
    (source / "book" / "index.md").write_text(FRONT, "utf-8")
    cells = [new_markdown_cell("# Rings\n\nHow rings work."), shows(DOT.bundle())]
    for n, cell in enumerate(cells):
        cell["id"] = f"cell-{n}"
    notebook = new_notebook(cells=cells)
    (source / "chapters" / "01_rings.ipynb").write_text(json.dumps(notebook), "utf-8")
    given = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    given = given["sphinx"]["config"]
    options = {
        "root_doc": "book/index",
        "extensions": ["myst_nb", "sphinx_book_theme", "shardmath_site"],
        "exclude_patterns": ["node_modules"],
        "html_theme": "sphinx_book_theme",
        "html_title": "Shardmath",
        "html_math_renderer": "shardmath",
        "html_static_path": [str(ROOT / "book" / "_static")],
        "html_css_files": given["html_css_files"],
        "html_js_files": given["html_js_files"],
        "nb_execution_mode": "off",
        "suppress_warnings": ["toc", "myst"],
    }
    places = [source, None, folder / "html", folder / "doctrees", "html"]
    with docutils_namespace():
        Sphinx(*places, options | settings, None, None, freshenv=True).build()


@pytest.fixture(scope="module")
def placed(tmp_path_factory):
    """The small book of which both addresses are known."""
    folder = tmp_path_factory.mktemp("placed")
    theme = {"repository_url": SOURCE, "repository_branch": "trunk"}
    build(folder, html_baseurl=SITE, html_theme_options=theme)
    return folder / "html"


def links(page: str, name: str) -> list[str]:
    return re.findall(f'<link rel="{name}" href="([^"]*)"', page)


def properties(page: str) -> dict[str, str]:
    return dict(re.findall(r'<meta property="og:([\w:]+)" content="([^"]*)"', page))


# With both addresses ------------------------------------------------------------------


def test_every_page_names_its_one_address(placed):
    front = (placed / "index.html").read_text("utf-8")
    chapter = (placed / "chapters" / "01_rings.html").read_text("utf-8")
    assert links(front, "canonical") == [f"{SITE}/"]
    assert links(chapter, "canonical") == [f"{SITE}/chapters/01_rings.html"]
    listed = re.findall("<loc>(.*?)</loc>", (placed / "sitemap.xml").read_text("utf-8"))
    assert listed == [f"{SITE}/chapters/01_rings.html", f"{SITE}/"]


def test_robots_may_read_all_and_are_shown_the_sitemap(placed):
    robots = RobotFileParser()
    robots.parse((placed / "robots.txt").read_text("utf-8").splitlines())
    assert robots.site_maps() == [f"{SITE}/sitemap.xml"]
    assert robots.can_fetch("*", f"{SITE}/chapters/01_rings.html")


def test_a_shared_link_has_title_words_and_picture(placed):
    """The picture is there, as large as it says, and a chapter's is its own figure."""
    seen = []
    for name, title, line in (
        ("index.html", "Small", "What the front page says of itself in a line."),
        ("chapters/01_rings.html", "01 Rings", "How rings work."),
    ):
        page = (placed / name).read_text("utf-8")
        told = properties(page)
        assert (told["title"], told["description"]) == (title, line)
        assert told["url"] == links(page, "canonical")[0]
        assert told["image"].startswith(f"{SITE}/_static/")
        image = placed / told["image"].removeprefix(f"{SITE}/")
        size = struct.unpack(">II", image.read_bytes()[16:24])
        assert size == (int(told["image:width"]), int(told["image:height"]))
        seen.append(image.read_bytes())
    assert seen[0] != seen[1]


def test_a_card_holds_its_page_s_picture():
    """As a notebook shows it: no variable is left that only a page can fill."""
    panel = DOT.panels[0].replace("currentColor", "var(--sm-hbm, #b84a00)")
    panel = panel.replace("</svg>", '<path stroke="var(--sm-hbm, #b84a00)"/></svg>')
    drawn = sharing.card("Book", "01 A & B", "A line. " * 80, panel)
    assert "var(" not in drawn
    assert 'stroke="#b84a00"' in drawn
    assert "01 A &amp; B" in drawn
    assert " …</text>" in drawn
    assert sharing.card("Book", "A", "B").count("<svg") == 1


def test_the_front_page_says_how_to_clone(placed):
    front = (placed / "index.html").read_text("utf-8")
    code = re.sub("<[^>]*>", "", front.partition("<pre>")[2].partition("</pre>")[0])
    clone = f"git clone {SOURCE} &amp;&amp; cd shardmath"
    assert code.strip().splitlines() == [clone, "make book"]


def test_a_notebook_opens_in_colab_and_its_set_up_is_shown_apart(placed):
    chapter = (placed / "chapters" / "01_rings.html").read_text("utf-8")
    path = "owner/shardmath/blob/trunk/chapters/01_rings.ipynb"
    assert f'href="https://colab.research.google.com/github/{path}"' in chapter
    assert f"%pip install --quiet --no-deps git+{SOURCE}@trunk" in chapter
    stored = (placed / "_sources" / "chapters" / "01_rings.ipynb").read_text("utf-8")
    assert "pip" not in stored
    assert "sm-colab" not in (placed / "index.html").read_text("utf-8")


def test_the_way_to_colab_opens_and_fits(new_page, placed):
    """By keyboard; axe finds nothing in it, and the page grows no wider."""
    page = new_page()
    visit(page, (placed / "chapters" / "01_rings.html").as_uri())
    page.locator(".sm-colab summary").press("Enter")
    link = page.get_by_role("link", name="Open in Colab")
    link.wait_for()
    box = page.locator(".sm-colab > div").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 1280
    assert not complaints(page, within=["details.sm-colab"])


def test_the_missing_page_leads_back_from_any_depth(placed):
    page = (placed / "404.html").read_text("utf-8")
    assert re.findall('href="([^"]*)"', page) == [
        "data:,",
        "/book/",
        "/book/",
        "/book/search.html",
    ]
    assert 'action="/book/search.html"' in page
    assert "Content-Security-Policy" in page


# Without ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [PAGES[0], CHAPTERS[0]])
def test_without_addresses_nothing_pretends(site, name):
    """The book's own settings are empty, and its pages say nothing of either."""
    config = (ROOT / "_config.yml").read_text("utf-8")
    if re.search(r'^  (baseurl|url): "[^"]+"', config, re.MULTILINE):
        pytest.skip("this copy of the book says where it is")
    page = (site / name).read_text("utf-8")
    assert not links(page, "canonical")
    assert not properties(page)
    for word in ("git clone", "colab", "twitter:", "executablebooks"):
        assert word not in page
    assert not (site / "sitemap.xml").exists()
    assert not (site / "robots.txt").exists()


def test_hosts_find_what_they_look_for(site):
    """GitHub is told to leave names with an underscore alone."""
    assert (site / ".nojekyll").exists()
    links = re.findall('href="([^"]*)"', (site / "404.html").read_text("utf-8"))
    assert links == ["data:,", "/", "/", "/search.html"]
    icons = [link for link in written(site, CHAPTERS[0]).links if "touch-icon" in link]
    assert [((site / CHAPTERS[0]).parent / icon).is_file() for icon in icons] == [True]


def test_the_touch_icon_is_the_mark(site, browser):
    """On a whole ground, as phones round the corners themselves."""
    mark = (ROOT / "book" / "_static" / "mark.svg").read_text("utf-8")
    page = browser.new_page(viewport={"width": 180, "height": 180})
    page.set_content("<style>body { margin: 0 }</style>" + mark.replace(' rx="7"', ""))
    drawn = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    page.close()
    kept = Image.open(site / "_static" / "touch-icon.png").convert("RGB")
    assert kept.size == (180, 180)
    apart = ImageChops.difference(drawn, kept).convert("L").histogram()
    assert sum(apart[64:]) < 180  # pixels of edges, that two programs draw unlike


def test_the_missing_page_reads_in_light_and_dark(new_page, site_url):
    page = new_page(scheme="dark")
    visit(page, f"{site_url}404.html")
    assert page.locator("h1").is_visible()
    ground = "() => getComputedStyle(document.documentElement).colorScheme"
    assert page.evaluate(ground) == "light dark"


def test_the_missing_page_searches_the_book(new_page, site_url):
    """From its header, by keyboard, to the results."""
    page = new_page(width=390)
    visit(page, f"{site_url}404.html")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("header a").inner_text() == "Shardmath"
    page.locator("header input").fill("ring")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=ring")
    found = page.locator("#pst-search-dialog [role=option], [role=option]").first
    assert "AllGather" in found.inner_text()


# Settings -----------------------------------------------------------------------------


def test_addresses_are_read_as_people_write_them():
    where = Addresses("https://example.org/book/", f"{SOURCE}.git/")
    assert (where.site, where.top) == ("https://example.org/book/", "/book/")
    assert where.clone == f"git clone {SOURCE} && cd shardmath"
    assert urlsplit(where.colab("a.ipynb")).path.endswith("/blob/main/a.ipynb")
    assert Addresses(source="https://gitlab.com/o/r").colab("a.ipynb") == ""
    assert Addresses().clone == ""


@pytest.mark.parametrize("name", ["html_baseurl", "repository_url"])
def test_an_address_that_is_none_is_refused(tmp_path, name):
    wrong = {"html_baseurl": "example.org"}
    if name == "repository_url":
        wrong = {"html_theme_options": {name: "git@github.com:o/r"}}
    with pytest.raises(ExtensionError, match="must be https://"):
        build(tmp_path, **wrong)
