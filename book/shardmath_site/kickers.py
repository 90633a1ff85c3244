"""Adds labels above headings, and old anchors to sections.

A heading states the section's result. Sections that recur in every chapter about
parallelism also have a fixed name, in an emphasised paragraph right above the heading
(``*What it costs*``). On the page it becomes a small label, and its anchor leads to the
section. Other old anchors are in the metadata of the Markdown cell in which a section
begins: ``{"shardmath": {"was": ["the-old-name"]}}``.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

HEADING = re.compile(r"^#{1,4} ")
FENCE = re.compile(r"^\s*(```|~~~)")


class MarkKickers(SphinxTransform):
    """Store each label in its section, and add the other anchors."""

    default_priority = 403  # before figures are numbered and links are resolved

    def apply(self, **kwargs):
        sections = list(self.document.findall(nodes.section))
        for section in sections:
            label = label_of(section)
            if label is not None:
                section["kicker"] = label.astext()
                label.parent.remove(label)
                self._name(section, nodes.make_id(section["kicker"]))
        for section, names in zip(sections, self._old_names(), strict=False):
            for name in names:
                self._name(section, name)

    def _name(self, section, name):
        """Add an anchor to the section, unless something else has it."""
        if name in self.document.ids:
            return
        self.document.ids[name] = section
        section["ids"].append(name)
        slugs = self.env.metadata[self.env.docname].setdefault("myst_slugs", {})
        title = section.next_node(nodes.title).astext()
        slugs.setdefault(name, (section.line or 0, section["ids"][0], title))

    def _old_names(self):
        path = Path(self.env.doc2path(self.env.docname))
        if path.suffix != ".ipynb":
            return []
        return list(old_names(json.loads(path.read_text("utf-8"))))


def label_of(section):
    """The emphasised paragraph right before a section, or None."""
    at = section.parent.index(section)
    if not at:
        return None
    before = section.parent[at - 1]
    while isinstance(before, nodes.section) and len(before):
        before = before[-1]
    alone = isinstance(before, nodes.paragraph) and len(before.children) == 1
    return before if alone and isinstance(before[0], nodes.emphasis) else None


def old_names(notebook):
    """The old anchors of every heading of a notebook, in order.

    >>> cell = {"cell_type": "markdown", "source": "# A", "metadata": {}}
    >>> named = cell | {"metadata": {"shardmath": {"was": ["b"]}}, "source": "## B"}
    >>> list(old_names({"cells": [cell, named]}))
    [[], ['b']]
    """
    for cell in notebook["cells"]:
        if cell["cell_type"] != "markdown":
            continue
        names = cell["metadata"].get("shardmath", {}).get("was", [])
        inside = False
        for line in "".join(cell["source"]).splitlines():
            inside ^= bool(FENCE.match(line))
            if HEADING.match(line) and not inside:
                yield names
                names = []


def _place(app, doctree, docname):
    """Put the labels above their headings, after the contents have been collected."""
    if app.builder.format != "html":
        return
    for section in doctree.findall(nodes.section):
        if "kicker" in section:
            label = nodes.paragraph("", section["kicker"], classes=["sm-kicker"])
            section.insert(0, label)


def setup(app):
    """Add the labels on every page."""
    app.add_transform(MarkKickers)
    app.connect("doctree-resolved", _place)
