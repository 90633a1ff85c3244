"""The map of the book, ``{map}``: a card for each chapter, and what is to come.

The plan is `book/plan.toml`; which of it is written, `_toc.yml` says. A card shows what
its chapter has: title, opening question, and its first picture or the one that the plan
names. Nothing of it is typed twice.
"""

import re
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from shardmath.base.units import pluralize
from shardmath.draw import figures
from shardmath.draw.live import MIME
from shardmath.draw.picture import SCALE, size
from shardmath.exercises import answers

from .render import live_block
from .search import prose

SVG = re.compile(r"<svg.*?</svg>", re.DOTALL)
SAID = re.compile(r"<(title|desc)>.*?</\1>", re.DOTALL)  # by the chapter itself
LIVE = re.compile(r'<\w+ data-drag=[^>]*/>| data-key="[^"]*"')  # it does not move here
ROW = 640  # units: panels that are no wider together stand side by side


class book_map(nodes.General, nodes.Element):  # noqa: N801
    """The place of the map: `parts` as `rows` gives them, and `pictures` by number."""


def written(toc: dict) -> dict[int, str]:
    """Number → document of the chapters that a table of contents lists, by part.

    Raises:
        ValueError: a chapter whose file does not begin with its number.
    """
    found = {}
    for part in toc["parts"]:
        for entry in part["chapters"]:
            if entry["file"].startswith("chapters/"):
                number = re.match(r"chapters/(\d\d)_", entry["file"])
                if not number:
                    raise ValueError(f"{entry['file']}: must be named chapters/NN_slug")
                found[int(number[1])] = entry["file"]
    return found


def rows(plan: dict, toc: dict) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each part's caption, and its chapters with their documents, "" where to come.

    Raises:
        ValueError: a chapter is written that the plan does not have.
    """
    documents = written(toc)
    for part in plan["parts"]:
        chapters = [
            (name, documents.pop(_number(name), "")) for name in part["chapters"]
        ]
        yield part["caption"], chapters
    if documents:
        raise ValueError(f"book/plan.toml has no chapter {[*documents.values()]}")


def _number(name: str) -> int:
    return int(name.split()[0])


class Map(SphinxDirective):
    """``{map}``: parts, a card for each chapter that is written, a line for others."""

    def run(self) -> list[nodes.Node]:
        top = Path(self.env.srcdir)
        files = {name: top / name for name in ("book/plan.toml", "_toc.yml")}
        for file in files.values():
            self.env.note_dependency(str(file))
        texts = [file.read_text("utf-8") for file in files.values()]
        plan, toc = tomllib.loads(texts[0]), yaml.safe_load(texts[1])
        parts = [*rows(plan, toc)]
        for _, chapters in parts:
            for _, document in chapters:
                if document:
                    self.env.note_dependency(self.env.doc2path(document))
        return [book_map(parts=parts, pictures=plan["pictures"])]


def question(doctree: nodes.document) -> str:
    """The opening question of a chapter, formulas as text; "" where it has none.

    Raises:
        ExtensionError: a formula in it is more than a line of text can say.
    """
    for quote in doctree.findall(nodes.block_quote):
        if "sm-lead-question" in quote["classes"]:
            text = " ".join("".join(prose(quote)).split())
            text = text.removeprefix(quote.next_node(nodes.strong).astext()).strip()
            if "…" in text:
                raise ExtensionError(f"the map cannot show the formulas of: {text}")
            return text
    return ""


def picture(doctree: nodes.document, name: str = "") -> str:
    """The first picture of a chapter, or the one called `name`; "" if it has none.

    Panels that do not fit into one row are left out, but for the first.

    Raises:
        ExtensionError: it has pictures, but none of that name.
    """
    for node in doctree.findall(nodes.Element):
        if name and name not in node.get("ids", ()):
            continue
        if panels := _panels(node):
            if sum(size(panel)[0] for panel in panels) > ROW:
                del panels[1:]
            return "".join(map(_small, panels))
    if name:
        raise ExtensionError(f"book/plan.toml: no picture is called {name!r}")
    return ""


def _panels(node: nodes.Element) -> list[str]:
    """The drawing that a node is, or that a figure holds."""
    if isinstance(node, nodes.figure):
        return next(filter(None, map(_panels, node.findall(nodes.raw))), [])
    if isinstance(node, live_block) and node["mime"] == MIME:
        content = node["content"]
        return [figures.find(content["name"]).draw(**content["params"]).svg]
    if isinstance(node, nodes.raw) and "sm-drawing" in node.astext():
        return SVG.findall(node.astext())
    return []


def _small(svg: str) -> str:
    """A panel that grows to its share of the card; nothing of it is read aloud."""
    width, _ = size(svg)
    shape = f"flex: {width:g} 1 0; max-width: {SCALE * width:g}px"
    hidden = LIVE.sub("", SAID.sub("", svg)).replace(
        ' role="img"', ' aria-hidden="true"', 1
    )
    return hidden.replace("<svg", f'<svg style="{shape}"', 1)


def _write(translator, node: book_map) -> None:
    builder = translator.builder
    env, here, pictures = builder.env, builder.current_docname, node["pictures"]

    def uri(document: str) -> str:
        return escape(builder.get_relative_uri(here, document))

    def card(document: str) -> str:
        doctree = env.get_doctree(document)
        number, _, title = env.titles[document].astext().partition(" ")
        exercises = document.replace("chapters/", "exercises/")
        foot, mark = "", ""
        if exercises in env.found_docs:
            asked = sum(q.startswith(f"{number}.") for q in answers.questions())
            mark = f' data-exercises="{escape(exercises)}"'
            foot = (
                f'<p class="sm-card-foot"><a href="{uri(exercises)}">'
                f'{pluralize(str(asked), "exercises")}<span class="sm-unseen"> of '
                f'chapter {number}</span></a> <span class="sm-progress" hidden></span>'
                "</p>"
            )
        drawn = picture(doctree, pictures.get(number, ""))
        return (
            f'<li class="sm-card"{mark}><div class="sm-card-picture">{drawn}</div>'
            f'<h4><a href="{uri(document)}">'
            f'<span class="sm-number">{number}</span> {escape(title)}</a></h4>'
            f"<p>{escape(question(doctree))}</p>{foot}</li>"
        )

    for caption, chapters in node["parts"]:
        cards = "\n".join(card(document) for _, document in chapters if document)
        later = [
            f"{_number(name):02}\u00a0{escape(name.partition(' ')[2])}"
            for name, document in chapters
            if not document
        ]
        number, _, name = caption.partition(" ")
        soon = f'<p class="sm-soon">To come: {" · ".join(later)}</p>' if later else ""
        translator.body.append(
            f'<div class="sm-part"><h3><span class="sm-number">{escape(number)}</span> '
            f"{escape(name)}</h3>\n"
            + (f'<ul class="sm-cards">\n{cards}\n</ul>\n' if cards else "")
            + f"{soon}</div>\n"
        )
    raise nodes.SkipNode


def setup(app) -> None:
    """Add the directive and the place that it leaves."""
    app.add_node(book_map, html=(_write, None))
    app.add_directive("map", Map)
