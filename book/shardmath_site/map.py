"""The map of the book, ``{map}``: chapters that can be read, and those to come.

The plan is `book/plan.toml`; which of it is written, `_toc.yml` says.
"""

import re
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.util.docutils import SphinxDirective


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
    """``{map}``: a table of the parts, a link for each chapter that is written."""

    def run(self) -> list[nodes.Node]:
        top = Path(self.env.srcdir)
        files = {name: top / name for name in ("book/plan.toml", "_toc.yml")}
        for file in files.values():
            self.env.note_dependency(str(file))
        plan, toc = (file.read_text("utf-8") for file in files.values())
        parts = rows(tomllib.loads(plan), yaml.safe_load(toc))
        return [nodes.raw("", self._table(parts), format="html", classes=["sm-map"])]

    def _table(self, parts: Iterator) -> str:
        body = "\n".join(
            f'<tr><th scope="row">{escape(caption)}</th>'
            f"<td>{self._names(chapters)}</td></tr>"
            for caption, chapters in parts
        )
        return (
            '<div class="pst-scrollable-table-container"><table class="table">'
            '<thead><tr><th scope="col">Part</th><th scope="col">Chapters</th></tr>'
            f"</thead>\n<tbody>\n{body}\n</tbody></table></div>"
        )

    def _names(self, chapters: list[tuple[str, str]]) -> str:
        links = []
        for name, document in chapters:
            text = escape(f"{_number(name):02}\u00a0{name.partition(' ')[2]}")
            if document:
                builder = self.env.app.builder
                uri = builder.get_relative_uri(self.env.docname, document)
                text = f'<a href="{escape(uri)}">{text}</a>'
            links.append(text)
        return " · ".join(links)


def setup(app) -> None:
    """Add the directive."""
    app.add_directive("map", Map)
