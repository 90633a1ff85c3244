"""Adds addresses, preview cards and a sitemap, depending on two settings.

In `_config.yml`, `html: baseurl` is the site's address and `repository: url` that of
the source. With the first, every page has its canonical address and a card, which is a
preview picture for shared links, and there is a sitemap, named in robots.txt. With the
second, the front page says how to clone the book, and if the source is on GitHub, each
notebook has a link to open it in Colab.
"""

import hashlib
import json
import re
import subprocess
import textwrap
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from shardmath.base.colab import setup_cell
from shardmath.draw.picture import size, standalone
from shardmath.draw.theme import COLOURS, INK, PAPER

from . import runtime

COLAB = "https://colab.research.google.com/github"
CARD = (1200, 630)  # px, the usual size of previews of shared links
SITEMAP = """<?xml version="1.0" encoding="utf-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
{}
</urlset>
"""
# Crawlers read it only at the top of a host. If the book is in a folder, copy it there.
ROBOTS = """User-agent: *
Disallow:

Sitemap: {}
"""
# Hosts show it for any missing address, at any depth, so it can't refer to other files.
MISSING = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Not found — {title}</title>
<link rel="icon" href="data:,">
<style>
:root {{ color-scheme: light dark; font: 1.125rem/1.6 system-ui, sans-serif; }}
body {{ margin: 0; }}
header {{ display: flex; flex-wrap: wrap; gap: 0.5rem 2rem; align-items: center;
  justify-content: space-between; padding: 0.8rem 1rem; border-bottom: 1px solid; }}
header > a {{ color: inherit; font-weight: 700; text-decoration: none; }}
input, button {{ font: inherit; padding: 0.2rem 0.5rem; }}
main {{ max-width: 36rem; margin: 14vh auto 0; padding: 0 1rem; }}
</style>
</head>
<body><header><a href="{top}">{title}</a>
<form action="{top}search.html" role="search">
<input type="search" name="q" aria-label="Search the book" required>
<button>Search</button></form></header>
<main><h1>There is no such page</h1>
<p>The address may be mistyped, or from an older edition.
<a href="{top}">The front page</a> has the map of the book,
<a href="{top}search.html">the search</a> knows every section.</p></main></body>
</html>
"""


@dataclass(frozen=True)
class Addresses:
    """The addresses of the book, as far as they are set.

    Attributes:
        site: the site's address, which ends in "/", or "" if unknown.
        source: the repository's address, or "" if unknown.
        branch: the branch of the repository from which notebooks are opened.

    Raises:
        ValueError: `site` or `source` is neither empty nor a web address.
    """

    site: str = ""
    source: str = ""
    branch: str = "main"

    def __post_init__(self) -> None:
        for name in ("site", "source"):
            address = getattr(self, name)
            parts = urlsplit(address)
            if address and not (parts.scheme in ("http", "https") and parts.netloc):
                raise ValueError(
                    f"the {name}'s address is {address!r}: must be https://…, or empty"
                )
        object.__setattr__(self, "site", self.site and self.site.rstrip("/") + "/")
        source = self.source.rstrip("/").removesuffix(".git")
        object.__setattr__(self, "source", source)

    @property
    def top(self) -> str:
        """The path with which all addresses of the site begin.

        >>> Addresses("https://example.org/book").top, Addresses().top
        ('/book/', '/')
        """
        return urlsplit(self.site).path or "/"

    def page(self, uri: str) -> str:
        """The canonical address of a page.

        >>> Addresses("https://example.org").page("index.html")
        'https://example.org/'
        """
        return self.site + re.sub(r"(^|/)index\.html$", r"\1", uri)

    def colab(self, notebook: str) -> str:
        """The address of a notebook in Colab, or "" if the source is not on GitHub.

        >>> Addresses(source="https://github.com/o/r").colab("chapters/01_a.ipynb")
        'https://colab.research.google.com/github/o/r/blob/main/chapters/01_a.ipynb'
        """
        parts = urlsplit(self.source)
        if parts.netloc != "github.com":
            return ""
        return f"{COLAB}{parts.path}/blob/{self.branch}/{notebook}"

    @property
    def clone(self) -> str:
        """A shell command to clone the book, or "".

        >>> Addresses(source="https://example.org/o/book.git").clone
        'git clone https://example.org/o/book && cd book'
        """
        name = self.source.rpartition("/")[2]
        return self.source and f"git clone {self.source} && cd {name}"


def addresses(config) -> Addresses:
    """The book's addresses, from its settings.

    Raises:
        ExtensionError: a setting is not a web address.
    """
    theme = config.html_theme_options
    try:
        return Addresses(
            config.html_baseurl or "",
            theme.get("repository_url") or "",
            theme.get("repository_branch") or "main",
        )
    except ValueError as error:
        raise ExtensionError(f"_config.yml: {error}") from None


class InAClone(SphinxDirective):
    """``{in-a-clone}`` shows commands, after the one that clones the book, if known."""

    has_content = True

    def run(self):
        text = "\n".join(self.content)
        return [nodes.literal_block(text, text, language="sh", in_a_clone=True)]


def _say_clone(app, doctree, docname):
    clone = addresses(app.config).clone
    for block in doctree.findall(nodes.literal_block):
        if clone and block.get("in_a_clone"):
            text = f"{clone}\n{block.astext()}"
            block.rawsource, block.children = text, [nodes.Text(text)]


# Cards --------------------------------------------------------------------------------

PANEL = re.compile(
    r'<div class="sm-(?:panel|picture)"[^>]*>(<svg.*?</svg>)</div>', re.DOTALL
)
VARIABLE = re.compile(r"var\([^,()]+,\s*([^()]+)\)")
MARK = (
    f'<g transform="translate(64 64) scale(2)"><rect width="32" height="32" rx="7" '
    f'fill="{COLOURS["math"]}"/><path d="M6 24 16 11h10" fill="none" stroke="{PAPER}" '
    'stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/>'
    f'<circle cx="16" cy="11" r="3.4" fill="{PAPER}"/></g>'
)


def card(book: str, title: str, line: str, picture: str = "") -> str:
    """The card of a page as an SVG: its title, its description, and its picture if any.

    Args:
        book: the name of the book.
        title: the title of the page.
        line: the description of the page, shortened if it doesn't fit.
        picture: an `<svg>` as from `shapes.framed`, or "".
    """
    width, height = CARD
    column, rest = (28, 42) if picture else (50, 88)  # characters per line
    titles = textwrap.wrap(title, column)[:3]
    lines = textwrap.wrap(line, rest, max_lines=6, placeholder=" …")
    at = 220 + 60 * len(titles)
    parts = [
        MARK,
        _text(148, 108, 40, INK, book, bold=True),
        *(_text(64, 226 + 60 * n, 50, INK, t, bold=True) for n, t in enumerate(titles)),
        *(_text(64, at + 40 * (n + 1), 29, "#4d5760", t) for n, t in enumerate(lines)),
    ]
    if picture:
        wide, high = size(picture)
        scale = min(540 / wide, 540 / high)
        x, y = 1168 - scale * wide, (height - scale * high) / 2
        shape = (
            f'x="{x:g}" y="{y:g}" width="{scale * wide:g}" height="{scale * high:g}"'
        )
        plain = VARIABLE.sub(r"\1", standalone(picture))
        parts.append(re.sub("^<svg", f"<svg {shape}", _bare(plain)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="sans-serif"><rect width="{width}" height="{height}" '
        f'fill="{PAPER}"/><rect width="{width}" height="12" fill="{COLOURS["math"]}"/>'
        f"{''.join(parts)}</svg>"
    )


def _bare(svg: str) -> str:
    """`svg` without its width and height."""
    head, rest = svg.split(">", 1)
    return re.sub(r'\s(?:width|height)="[^"]*"', "", head) + ">" + rest


def _text(x, y, points, colour, text, bold=False) -> str:
    weight = ' font-weight="bold"' * bold
    return (
        f'<text x="{x}" y="{y}" font-size="{points}" fill="{colour}"{weight}>'
        f"{escape(text)}</text>"
    )


def render(pictures: dict[Path, str]) -> None:
    """Write SVGs as PNGs.

    Args:
        pictures: the PNG's path → its SVG.

    Raises:
        ExtensionError: the npm package resvg is missing, or drawing failed.
    """
    modules = runtime.ROOT / "node_modules"
    if not (modules / "@resvg").is_dir():
        raise ExtensionError("cards need the packages in package.json: run `npm ci`")
    script = Path(__file__).with_name("cards.mjs")
    told = json.dumps({str(file): svg for file, svg in pictures.items()})
    command = [runtime.node(), script, modules]
    done = subprocess.run(command, input=told.encode(), capture_output=True)
    if done.returncode:
        raise ExtensionError(f"drawing cards failed:\n{done.stderr.decode()[-2000:]}")


# Every page ---------------------------------------------------------------------------


def _complete_context(app, pagename, templatename, context, doctree):
    where = addresses(app.config)
    if doctree is not None and context.get("page_source_suffix") == ".ipynb":
        context["colab"] = where.colab(f"{pagename}.ipynb")
        context["colab_cell"] = setup_cell(f"git+{where.source}@{where.branch}")
    if not where.site:
        return
    context["pageurl"] = where.page(app.builder.get_target_uri(pagename))
    found = PANEL.search(context.get("body", ""))
    book, title = app.config.html_title, context.get("title", "")
    title = re.sub("<[^>]*>", "", title)
    own = title != book
    line = context.get("description", "")
    drawn = card(book, title if own else line, line if own else "", found and found[1])
    name = f"cards/{hashlib.sha256(drawn.encode()).hexdigest()[:12]}.png"
    app.shardmath_cards[name] = drawn
    context["card"] = {
        "title": title,
        "image": f"{where.site}_static/{name}",
        "alt": f"{title}: the first figure" if found else title,
    }


def _write_files(app, exception):
    if exception is not None or app.builder.format != "html":
        return
    out, where = Path(app.outdir), addresses(app.config)
    (out / ".nojekyll").touch()  # or GitHub leaves out files that begin with "_"
    missing = MISSING.format(title=escape(app.config.html_title), top=where.top)
    (out / "404.html").write_text(missing, encoding="utf-8")
    sitemap, robots = out / "sitemap.xml", out / "robots.txt"
    for file in (sitemap, robots):
        file.unlink(missing_ok=True)
    if not where.site:
        return
    uris = sorted(map(app.builder.get_target_uri, app.env.found_docs))
    rows = (f"<url><loc>{escape(where.page(uri))}</loc></url>" for uri in uris)
    sitemap.write_text(SITEMAP.format("\n".join(rows)), encoding="utf-8")
    robots.write_text(ROBOTS.format(where.page(sitemap.name)), encoding="utf-8")
    new = {out / "_static" / name: svg for name, svg in app.shardmath_cards.items()}
    new = {file: svg for file, svg in new.items() if not file.exists()}
    if new:
        (out / "_static" / "cards").mkdir(parents=True, exist_ok=True)
        render(new)


def _start(app, config):
    addresses(config)  # raises early if a setting is wrong
    app.shardmath_cards = {}


def setup(app):
    """Add addresses and cards to pages, and write the files of the site's top."""
    app.add_directive("in-a-clone", InAClone)
    app.connect("config-inited", _start)
    app.connect("doctree-resolved", _say_clone)
    app.connect("html-page-context", _complete_context, priority=600)
    app.connect("build-finished", _write_files)
