"""On paper: one page as the browser prints it, and the whole book as one PDF."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pdf
import pytest
import yaml
from bs4 import BeautifulSoup
from written import ROOT, visit

TEXT_WIDTH = 642  # px: A4 less its margins
VARIABLES = """() => {
  const style = getComputedStyle(document.documentElement);
  const names = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
    .flatMap((rule) => [...(rule.style ?? [])]).filter((n) => n.startsWith("--sm-"));
  return Object.fromEntries(names.map((n) => [n, style.getPropertyValue(n)]));
}"""
# What is cut off: boxes that hold more than they show, or stand beyond the paper.
CUT = """() => [...document.querySelectorAll(
    "article :is(pre, table, td, .sm-formula-box, img, p, li)")]
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1
    || e.matches("pre, .sm-formula-box") && e.scrollWidth > e.clientWidth + 1)
  .map((e) => e.outerHTML.slice(0, 160))"""
SEEN = """([selector, wanted]) => [...document.querySelectorAll(selector)]
  .filter((e) => e.checkVisibility({ visibilityProperty: true }) !== wanted)
  .map((e) => e.outerHTML.slice(0, 160))"""
ON_SCREEN_ALONE = (
    "nav, dialog, footer, button:not(th button), input, select, .headerlink, .sm-check"
)
ON_PAPER_TOO = (
    "article :is(h1, h2, figure, table, .sm-picture svg, .sm-record, .sm-behind), "
    "article details:not([class]) *:not(summary, .katex *, .copybtn, .copybtn *)"
)
CONFIG = {"title": "A book", "author": "two", "copyright": "2026"}


@pytest.mark.parametrize(
    "name", ["chapters/02_tpus", "exercises/01_rooflines", "book/hardware"]
)
def test_a_page_prints_whole_and_light(new_page, site_url, name):
    """From the dark too: title, folds and figures, nothing cut, nothing to press."""
    page = new_page(scheme="dark", width=TEXT_WIDTH)
    visit(page, f"{site_url}{name}.html")
    dark = page.evaluate(VARIABLES)
    page.emulate_media(media="print")
    printed = page.evaluate(VARIABLES)
    page.emulate_media(media="screen", color_scheme="light")
    page.wait_for_function("() => document.documentElement.dataset.theme === 'light'")
    assert printed == page.evaluate(VARIABLES) != dark
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(CUT) == []
    assert page.evaluate(SEEN, [ON_SCREEN_ALONE, False]) == []
    assert page.evaluate(SEEN, [ON_PAPER_TOO, True]) == []


def write(site: Path, document: str, article: str) -> None:
    file = site / f"{document}.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    style = '<link rel="stylesheet" href="../_static/a.css">'
    file.write_text(f"<html><head>{style}</head><body><article>{article}</article>")


@pytest.fixture
def two_pages(tmp_path):
    """A folder of a built site: a chapter and its exercises, with the same ids."""
    site = tmp_path / "html"
    write(
        site,
        "chapters/01",
        """<section id="top"><h1>One &amp; all<a class="headerlink">#</a></h1>
        <p id="note">See <a href="#note">here</a>, <a href="../exercises/01.html">there
        </a>, <a href="../exercises/01.html#note">that</a>, <a href="https://a.b/#note">
        far</a>, <a href="../search.html">search</a>.</p>
        <img src="../_images/a.png" loading="lazy"><svg aria-labelledby="t u">
        <title id="t">T</title><desc id="u">U</desc><clipPath id="c"></clipPath>
        <g clip-path="url(#c)"></g><use xlink:href="#c"></use></svg>
        <section id="part"><h2>Part</h2></section></section>""",
    )
    question = """<section id="q{n}"><h2>Question {n}</h2><p>What is {n}?</p>
        <div class="{place}"><pre>x = ...</pre></div>
        <details><summary>Hint</summary><p>Count {n}.</p></details>
        <details><summary>Worked solution</summary><p>It is {n}.</p></details>
        </section>"""
    write(
        site,
        "exercises/01",
        f"""<section id="top"><h1>Exercises</h1><p id="note">Of
        <a href="../chapters/01.html#part">a part</a>.</p>
        {question.format(n=1, place="sm-check")}
        {question.format(n=2, place="sm-elsewhere")}</section>""",
    )
    return site


TOC = {
    "root": "chapters/01",
    "parts": [{"caption": "I Part", "chapters": [{"file": "exercises/01"}]}],
}


def test_pages_that_meet_keep_their_places_apart(two_pages):
    """Ids carry their page's name; links, labels and pictures follow."""
    book = BeautifulSoup(pdf.assemble(two_pages, TOC, CONFIG), "html.parser")
    ids = [tag["id"] for tag in book.select("[id]")]
    assert len(ids) == len(set(ids))
    note = book.find(id="chapters--01--note")
    assert [link.get("href") for link in note("a")] == [
        "#chapters--01--note",
        "#exercises--01",
        "#exercises--01--note",
        "https://a.b/#note",
        None,
    ]
    assert book.find(id="exercises--01--note").a["href"] == "#chapters--01--part"
    assert book.svg["aria-labelledby"] == "chapters--01--t chapters--01--u"
    assert book.g["clip-path"] == "url(#chapters--01--c)"
    assert book.use["xlink:href"] == "#chapters--01--c"
    assert book.img["src"] == "html/_images/a.png"
    assert not book.img.has_attr("loading")
    [style] = book("link")
    assert style["href"] == "html/_static/a.css"


def test_hints_and_solutions_follow_all_questions(two_pages):
    """Linked both ways; what waits for an answer is left out."""
    book = BeautifulSoup(pdf.assemble(two_pages, TOC, CONFIG), "html.parser")
    exercises = book.find(id="exercises--01")
    text = " ".join(exercises.get_text().split())
    order = ["What is 1?", "What is 2?", "Count 1.", "Count 2.", "It is 1.", "It is 2."]
    assert sorted(order, key=text.index) == order
    for link in exercises.select(".sm-later a"):
        entry = book.find(id=link["href"].removeprefix("#"))
        question = link.find_parent("section")
        assert entry.a["href"] == f"#{question['id']}"
    assert "x = " not in text


def test_a_link_to_nowhere_is_refused(two_pages):
    write(two_pages, "chapters/01", '<section id="a"><h1>A</h1><a href="#b">b</a>')
    with pytest.raises(ValueError, match="links are missing: chapters--01--b"):
        pdf.assemble(two_pages, TOC, CONFIG)


def test_without_a_browser_one_line_says_so(tmp_path):
    nowhere = {"PATH": str(tmp_path), "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "pdf.py", tmp_path],
        env=os.environ | nowhere,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert re.match(r"shardmath: .*Chromium.*apt install chromium.*`make pdf`", line)


def test_numbers_are_those_of_the_sheets(browser, tmp_path):
    """The third heading stands on the third sheet, whatever its name."""
    names = ["a--b", "c d", "e#f", "(g)", "h/ü"]
    page = browser.new_page()
    heads = "".join(f'<h1 id="{n}" style="break-after: page">H</h1>' for n in names)
    links = "".join(f'<a href="#{n}">{n}</a>' for n in names)
    (tmp_path / "a.html").write_text(f"<meta charset=utf-8>{heads}{links}", "utf-8")
    page.goto((tmp_path / "a.html").as_uri())
    assert pdf.numbers(page.pdf()) == {name: n for n, name in enumerate(names, 1)}
    page.close()


def test_a_book_of_two_pages(browser, site, tmp_path):
    """An outline by part, page and section; every link has its place; numbered."""
    (tmp_path / "html").symlink_to(site)
    order = ["index", "chapters/02_tpus"]
    chapters = [{"file": order[1]}]
    toc = {"root": order[0], "parts": [{"caption": "I One chip", "chapters": chapters}]}
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    text = pdf.assemble(tmp_path / "html", toc, config)
    (tmp_path / "book.html").write_text(text, "utf-8")
    printed = pdf.print_pdf(tmp_path / "book.html", browser)
    places = pdf.numbers(printed)
    assert b"/Outlines" in printed
    titles = [title(found) for found in re.findall(rb"/Title (\(.*\)|<\w+>)", printed)]
    assert not {"Contents", "Shardmath", "I One chip", "02 TPUs"} - set(titles)
    book = BeautifulSoup(text, "html.parser")
    sections = book.select("#chapters--02_tpus > section > section > h2")
    assert len(sections) > 4
    assert not {section.get_text() for section in sections} - set(titles)
    linked = set(re.findall(rb"/Dest /(\S+)", printed))
    assert {f"chapters--02_tpus--eq-2-{n}".encode() for n in (1, 2)} < linked
    assert {name.decode() for name in linked} <= set(places)
    front, chapter = (places[pdf.place(document)] for document in order)
    assert 3 <= front < chapter < len(pdf.PAGE_OBJECT.findall(printed)) - 3


def title(found: bytes) -> str:
    """A PDF's string: in brackets, or UTF-16 in hexadecimal digits."""
    if found.startswith(b"<"):
        return bytes.fromhex(found.decode()[1:-1]).decode("utf-16")
    return re.sub(rb"\\(.)", rb"\1", found[1:-1]).decode()
