"""The pages of the book, and what the built site wrote for each."""

from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
# Elements of MathML that are wrong with more parts or fewer.
PARTS = {"mfrac": 2, "mover": 2, "mroot": 2, "msub": 2, "msubsup": 3, "msup": 2}
PARTS |= {"munder": 2, "munderover": 3}


def documents(entry: dict) -> list[str]:
    """The place of every document of a table of contents, in reading order."""
    found = ["index"] if "root" in entry else []
    found += [entry["file"]] if "file" in entry else []
    for key in ("parts", "chapters", "sections"):
        for child in entry.get(key, []):
            found += documents(child)
    return found


PAGES = [
    f"{name}.html"
    for name in documents(yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8")))
]
CHAPTERS = [page for page in PAGES if page.startswith("chapters/")]


@dataclass
class Written:
    """What a page's HTML says, gathered in one reading."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    images: list[dict] = field(default_factory=list)
    components: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)  # formulas, by where they break
    meta: dict[str, str] = field(default_factory=dict)
    language: str = ""
    title: str = ""


@dataclass
class _Open:
    tag: str
    one: bool  # a formula or a listing, or in one: what is in it counts as one
    parts: int = 0


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.page = Written()
        self.inside: list[_Open] = []

    def handle_starttag(self, tag, attributes):
        given = {name: value or "" for name, value in attributes}
        classes = given.get("class", "").split()
        parent = self.inside[-1] if self.inside else None
        one = "katex" in classes or bool(parent and (parent.one or parent.tag == "pre"))
        if self.inside:
            self.inside[-1].parts += 1
        if tag not in VOID:
            self.inside.append(_Open(tag, one))
        if "id" in given:
            self.page.ids.add(given["id"])
        self.page.links += [given[k] for k in ("href", "src") if given.get(k)]
        if not one:
            named = [name for name in classes if not name.startswith("tag_")]
            self.page.components |= {f"{tag}.{name}" for name in ["", *named]}
        if tag == "html":
            self.page.language = given.get("lang", "")
        elif tag == "img":
            self.page.images.append(given)
        elif tag == "meta":
            self.page.meta[given.get("name", "")] = given.get("content", "")

    def handle_endtag(self, tag):
        while self.inside:  # a tag that was never closed ends with its parent
            left = self.inside.pop()
            if left.parts != PARTS.get(left.tag, left.parts):
                line, _ = self.getpos()
                told = f"line {line}: <{left.tag}> of {left.parts} parts"
                self.page.broken.append(told)
            if left.tag == tag:
                break

    def handle_data(self, data):
        if self.inside and self.inside[-1].tag == "title":
            self.page.title = self.page.title or data


@cache
def written(site: Path, name: str) -> Written:
    """The page as it lies on disk, read once."""
    reader = _Reader()
    reader.feed((site / name).read_text("utf-8"))
    return reader.page


@cache
def specimens(site: Path) -> dict[str, list[str]]:
    """Few pages that hold every component of the site, each with what it adds.

    A component is an element with a class, where tags of cells are none; a formula or a
    listing counts as one. The first page is looked at as a whole: no component of it is
    named.
    """
    left = set().union(*(written(site, name).components for name in PAGES))
    chosen: dict[str, list[str]] = {}
    while left:
        best = max(PAGES, key=lambda name: len(written(site, name).components & left))
        chosen[best] = sorted(written(site, best).components & left) if chosen else []
        left -= written(site, best).components
    return chosen


def visit(page, url):
    """Open `url` and wait until fonts and scripts are done."""
    response = page.goto(url, wait_until="load")
    assert response is None or response.ok, f"{url}: {response.status}"
    # A function: the policy forbids `eval`, which would look at an expression again.
    page.wait_for_function("() => document.fonts.status === 'loaded'")
