"""The map of the book, ``{map}``: a card for each chapter, and chapters to come.

`book/plan.toml` lists all chapters, and `_toc.yml` those that are written. A card shows
an icon (`icons.py`), and the title and opening question from the chapter itself.
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
from shardmath.exercises import answers

from .icons import icon
from .search import prose


class book_map(nodes.General, nodes.Element):  # noqa: N801
    """The place of the map. Attribute: `parts`, from `rows`."""


def written(toc: dict) -> dict[int, str]:
    """Number → document, for all chapters in a table of contents.

    Raises:
        ValueError: the name of a chapter's file does not begin with its number.
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
    """Each part's caption, and its chapters with their documents, "" if to come.

    Raises:
        ValueError: a written chapter is missing from the plan.
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
    """``{map}`` inserts all parts: cards for chapters, and a line on those to come."""

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
        return [book_map(parts=parts)]


def question(doctree: nodes.document) -> str:
    """The opening question of a chapter, with formulas as text, or "".

    Raises:
        ExtensionError: a formula in it can't be written as a line of text.
    """
    for quote in doctree.findall(nodes.block_quote):
        if "sm-lead-question" in quote["classes"]:
            text = " ".join("".join(prose(quote)).split())
            text = text.removeprefix(quote.next_node(nodes.strong).astext()).strip()
            if "…" in text:
                raise ExtensionError(f"the map cannot show the formulas of: {text}")
            return text
    return ""


def _write(translator, node: book_map) -> None:
    builder = translator.builder
    env, here = builder.env, builder.current_docname

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
        return (
            f'<li class="sm-card"{mark}>{icon(int(number))}'
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
    """Add the directive and its node."""
    app.add_node(book_map, html=(_write, None))
    app.add_directive("map", Map)
