"""Prints the whole book as one PDF: python tools/pdf.py [SITE [FILE]].

The pages of the built site, in the order of `_toc.yml`, become one document. The name
of each page is put before its ids, so links between pages still work. Headless Chromium
prints the document, with an outline and with page numbers.
"""

import os
import posixpath
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, SoupStrainer, Tag
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
NO_CHROMIUM = (
    "shardmath: a PDF needs Chromium, which is not installed here. Install it "
    "(`apt install chromium`, or `.venv/bin/playwright install chromium`) and run "
    "`make pdf` again."
)
SHELL = "chromium-headless-shell"  # the same browser without windows
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", SHELL)
REFERENCES = ("for", "headers", "aria-labelledby", "aria-describedby", "aria-controls")
IN_STYLE = re.compile(r"url\(\s*(['\"]?)#(.*?)\1\s*\)")
HEADINGS = re.compile("^h[1-5]$")
UNSEEN = "a.headerlink, script, noscript, button.copybtn, .sm-check, .sm-elsewhere"
LATER = {"Hint": "Hints", "Worked solution": "Worked solutions"}
STYLE = """
@page { size: A4; @top-center { font: 8pt system-ui, sans-serif; color: #59636e; } }
@page plain { @bottom-center { content: none; } }
.sm-cover, .sm-part { page: plain; padding-top: 80mm; text-align: center; }
.sm-cover p, .sm-part h1 { font-size: 3rem; font-weight: 700; margin: 0; }
.sm-cover p:nth-child(n + 2) { font-size: 1.2rem; font-weight: 400; margin: 0.5rem 0; }
.sm-cover p:last-child { font-size: 0.9rem; margin-top: 4rem; }
.sm-contents ol { list-style: none; margin: 0; padding: 0; }
.sm-contents ol ol { padding-left: 1.5em; font-size: 0.9em; }
.sm-contents li { margin: 0.15em 0; }
.sm-contents li > b { display: block; margin-top: 1em; break-after: avoid; }
.sm-contents a { display: flex; gap: 0.4em; align-items: baseline; }
.sm-contents a { text-decoration: none; }
.sm-contents a i { flex: 1; border-bottom: 1px dotted #9aa5b1; }
.sm-contents a::after { content: attr(data-page); min-width: 1.6em; text-align: right; }
.sm-later a::after { content: ", page " attr(data-page); }
.sm-of { break-after: avoid; }
:is(h1, h2, h3, h4) { white-space: pre-wrap; } /* the outline keeps its spaces */
"""
COVER = """<section class="sm-cover"><p>{title}</p>
<p>The arithmetic of scaling models, executable</p>
<p>{author}, {copyright}</p>
<p>Text and figures: CC BY 4.0. Code: MIT.<br>
Figures with controls stand still here, at one setting.</p></section>"""
# Fills in page numbers, which "000" has reserved room for.
NUMBERED = """(pages) => {
  for (const link of document.querySelectorAll("[data-page]"))
    link.dataset.page = pages[decodeURIComponent(link.hash.slice(1))];
}"""
PAGE_OBJECT = re.compile(rb"^(\d+) 0 obj\s*<<\s*/Type /Page\b", re.M)
PLACE = re.compile(rb"/([^\s/\[\]<>()]+) \[(\d+) 0 R /XYZ")


@dataclass(frozen=True)
class Group:
    """Documents that follow each other under one heading, which may be empty."""

    caption: str
    documents: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """A page of the site, prepared for the PDF.

    Attributes:
        document: its name in `_toc.yml`.
        title: HTML of its title.
        sections: id of each section → HTML of its title.
        article: HTML of the page.
        styles: (address, media) of each of its style sheets.
    """

    document: str
    title: str
    sections: dict[str, str]
    article: str
    styles: tuple[tuple[str, str], ...]


def groups(toc: dict) -> list[Group]:
    """The reading order: the root alone, then the parts."""

    def documents(entries: Iterable[dict]) -> list[str]:
        found = []
        for entry in entries:
            found += [entry["file"], *documents(entry.get("sections", []))]
        return found

    parts = [Group(p["caption"], tuple(documents(p["chapters"]))) for p in toc["parts"]]
    return [Group("", (toc["root"],)), *parts]


def place(document: str, fragment: str = "") -> str:
    """The id of `fragment` in `document`, unique in the whole book.

    >>> place("chapters/01_rooflines", "eq-1-1")
    'chapters--01_rooflines--eq-1-1'
    """
    return "--".join([*document.split("/"), *([fragment] if fragment else [])])


def link(href: str, document: str, documents: Iterable[str]) -> str | None:
    """The target of a link of `document` in the whole book, or None if it has none.

    >>> link("../chapters/02_tpus.html#hbm", "exercises/01", ["chapters/02_tpus"])
    '#chapters--02_tpus--hbm'
    >>> link("https://jax.dev", "exercises/01", [])
    'https://jax.dev'
    >>> link("../search.html", "exercises/01", ["chapters/02_tpus"])
    """
    parts = urlsplit(href)
    if parts.scheme or parts.netloc:
        return href
    file = posixpath.join(posixpath.dirname(document), parts.path)
    target = posixpath.normpath(file).removesuffix(".html") if parts.path else document
    if target not in documents:
        return None
    return f"#{place(target, unquote(parts.fragment))}"


def move(article: Tag, document: str, documents: Iterable[str], site: str) -> None:
    """Change `article`'s ids, links and images for a document next to `site`."""
    folder = posixpath.dirname(document)
    for tag in article.find_all(True):
        for name in (n for n in REFERENCES if n in tag.attrs):
            value = tag[name] if isinstance(tag[name], list) else tag[name].split()
            tag[name] = " ".join(place(document, one) for one in value)
        for name, value in tag.attrs.items():
            if isinstance(value, str) and "url(" in value:
                tag[name] = IN_STYLE.sub(
                    lambda match: f"url(#{place(document, match[2])})", value
                )
        if tag.get("id"):
            tag["id"] = place(document, tag["id"])
        for name in (n for n in ("href", "xlink:href") if n in tag.attrs):
            tag[name] = link(tag[name], document, documents)
            if tag[name] is None:  # a file that is only on the site
                del tag[name]
        if "src" in tag.attrs and not urlsplit(tag["src"]).scheme:
            tag["src"] = posixpath.normpath(posixpath.join(site, folder, tag["src"]))
        tag.attrs.pop("loading", None)  # lazy images would not be printed
    article["id"] = place(document)


def put_later(article: Tag, document: str) -> None:
    """Collect hints and worked solutions after all questions, linked both ways."""

    def new(html: str) -> Tag:
        return BeautifulSoup(html, "html.parser").contents[0]

    collected = {title: [] for title in LATER}
    for fold in article.find_all("details"):
        title = fold.summary.get_text().strip()
        if title not in LATER:
            continue
        fold.summary.decompose()
        question = fold.find_parent("section")
        of = escape(question.find(HEADINGS).get_text())
        here = f"{question['id']}--{title.split()[-1].lower()}"
        entry = new(
            f'<div id="{here}"><p class="sm-of"><strong>'
            f'<a href="#{question["id"]}">{of}</a></strong></p></div>'
        )
        entry.extend(list(fold.contents))
        collected[title].append(entry)
        links = question.find(class_="sm-later")
        if links is None:
            links = new('<p class="sm-later"></p>')
            fold.insert_before(links)
        else:
            links.append(" · ")
        links.append(new(f'<a href="#{here}" data-page="000">{title}</a>'))
        fold.decompose()
    for title, entries in collected.items():
        if entries:
            name = LATER[title]
            here = place(document, name.lower().replace(" ", "-"))
            section = new(f'<section id="{here}"><h2>{name}</h2></section>')
            section.extend(entries)
            article.section.append(section)


def read(site: Path, document: str, order: Sequence[str]) -> Page:
    """One page of the built site, prepared for one document with those in `order`."""
    text = (site / f"{document}.html").read_text("utf-8")
    wanted = SoupStrainer(["article", "link"])
    soup = BeautifulSoup(text, "html.parser", parse_only=wanted)
    folder = posixpath.join(site.name, posixpath.dirname(document))
    styles = tuple(
        (posixpath.normpath(posixpath.join(folder, tag["href"])), tag.get("media", ""))
        for tag in soup.select("link[rel~=stylesheet]")
    )
    article = soup.article
    for unseen in article.select(UNSEEN):
        unseen.decompose()
    move(article, document, order, site.name)
    put_later(article, document)
    for heading in article.find_all(HEADINGS):  # below its part
        heading["aria-level"] = int(heading.name[1]) + (document != order[0])
    sections = {
        heading.parent["id"]: heading.decode_contents()
        for heading in article.find_all("h2")
        if heading.parent.get("id")
    }
    return Page(document, article.h1.decode_contents(), sections, str(article), styles)


def contents(parts: Iterable[tuple[str, list[Page]]]) -> str:
    """The table of contents: parts, pages and the sections of chapters."""

    def entry(to: str, title: str, below: str = "") -> str:
        link = f'<a href="#{to}" data-page="000"><span>{title}</span><i></i></a>'
        return f"<li>{link}{below}</li>"

    rows = []
    for caption, pages in parts:
        rows += [f"<li><b>{escape(caption)}</b></li>"] * bool(caption)
        for page in pages:
            below = ""
            if page.document.startswith("chapters/"):
                below = "".join(entry(*section) for section in page.sections.items())
                below = f"<ol>{below}</ol>"
            rows.append(entry(place(page.document), page.title, below))
    return (
        '<nav class="bd-article sm-contents"><h1 aria-level="1">Contents</h1>\n'
        f"<ol>{''.join(rows)}</ol></nav>"
    )


def running_head(page: Page, number: int) -> str:
    """The style that prints the page's title at the top of each of its sheets."""
    title = BeautifulSoup(page.title, "html.parser").get_text()
    quoted = title.replace("\\", r"\\").replace('"', r"\"")
    return (
        f'@page sheet{number} {{ @top-center {{ content: "{quoted}"; }} }}\n'
        f'[id="{place(page.document)}"] {{ page: sheet{number}; }}'
    )


def assemble(site: Path, toc: dict, config: dict) -> str:
    """One HTML document with all pages, to be stored next to the folder `site`.

    Raises:
        ValueError: a link's target does not exist.
    """
    order = [document for part in groups(toc) for document in part.documents]
    parts = [
        (part.caption, [read(site, document, order) for document in part.documents])
        for part in groups(toc)
    ]
    pages = [page for _, found in parts for page in found]
    body = [COVER.format_map({k: escape(str(v)) for k, v in config.items()})]
    body.append(contents(parts))
    for caption, found in parts:
        if caption:
            title = f'<h1 aria-level="1">{escape(caption)}</h1>'
            body.append(f'<section class="sm-part">{title}</section>')
        body += [page.article for page in found]
    text = "\n".join(body)
    targets = set(re.findall(r'\bhref="#([^"]+)"', text))
    if dead := targets - set(re.findall(r'\bid="([^"]+)"', text)):
        raise ValueError(f"targets of links are missing: {', '.join(sorted(dead))}")
    sheets = "\n".join(
        f'<link rel="stylesheet" href="{escape(href)}" media="{media}">'
        for href, media in dict.fromkeys(s for page in pages for s in page.styles)
    )
    heads = "\n".join(running_head(page, n) for n, page in enumerate(pages))
    return (
        '<!DOCTYPE html>\n<html lang="en" data-theme="light"><head>'
        f'<meta charset="utf-8"><title>{escape(config["title"])}</title>\n'
        f"{sheets}\n<style>{STYLE}{heads}</style></head>\n"
        '<body><main class="bd-main"><div class="bd-content">'
        f'<div class="bd-article-container">\n{text}\n</div></div></main>'
        "</body></html>\n"
    )


def numbers(pdf: bytes) -> dict[str, int]:
    """Named place → its page, counted from 1, in a PDF that Chromium wrote."""
    pages = {page: n for n, page in enumerate(PAGE_OBJECT.findall(pdf), 1)}

    def unescaped(name: bytes) -> str:
        plain = re.sub(
            rb"#([0-9A-Fa-f]{2})", lambda m: bytes.fromhex(m[1].decode()), name
        )
        return unquote(plain.decode())

    return {unescaped(name): pages[page] for name, page in PLACE.findall(pdf)}


def find_chromium(playwright) -> str | None:
    """The path of the system's Chromium or of Playwright's, or None."""
    for name in CHROMIUMS:
        if found := shutil.which(name):
            return found
    own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def print_pdf(document: Path, browser: Browser) -> bytes:
    """The HTML in `document` as a PDF. It is printed twice, first for page numbers."""
    page = browser.new_page()
    page.set_default_timeout(0)  # printing a whole book takes long
    page.goto(document.resolve().as_uri())
    page.evaluate("document.fonts.ready.then(() => true)")
    page.evaluate(NUMBERED, numbers(page.pdf(prefer_css_page_size=True)))
    printed = page.pdf(prefer_css_page_size=True, outline=True, tagged=True)
    page.close()
    return printed


def main(site: str = "_build/html", file: str = "_build/shardmath.pdf") -> None:
    toc, config = (
        yaml.safe_load((ROOT / name).read_text("utf-8"))
        for name in ("_toc.yml", "_config.yml")
    )
    toc["root"] = "index"  # where the site has its front page
    whole = Path(site).parent / "shardmath.html"
    with sync_playwright() as playwright:
        path = find_chromium(playwright)
        if path is None:
            sys.exit(NO_CHROMIUM)
        whole.write_text(assemble(Path(site), toc, config), "utf-8")
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        args = ["--no-sandbox"] * is_root
        browser = playwright.chromium.launch(executable_path=path, args=args)
        try:
            printed = print_pdf(whole, browser)
        finally:
            browser.close()
            whole.unlink()
    Path(file).write_bytes(printed)
    pages, size = len(PAGE_OBJECT.findall(printed)), len(printed) / 1e6
    print(f"The book is at {file}: {pages} pages, {size:.1f} MB.")


if __name__ == "__main__":
    main(*sys.argv[1:])
