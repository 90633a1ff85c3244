"""Numbers that nobody types: of a chapter, from its file's name; of its figures.

A chapter's title begins with its number wherever it is shown: on the page, in the
contents, in the browser's tab, in search results.
"""

import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

STEM = re.compile(r"(chapters|exercises)/(\d\d)_")


class NumberTitle(SphinxTransform):
    """Put the number of ``chapters/NN_slug``, or of its exercises, into the title."""

    default_priority = 440  # after the title has given the page its anchor

    def apply(self, **kwargs):
        stem = STEM.match(self.env.docname)
        title = self.document.next_node(nodes.title)
        if stem and title:
            number = nodes.inline("", stem[2], classes=["sm-number"])
            title.insert(0, [number, nodes.Text(" ")])


class NumberFigures(SphinxTransform):
    """Begin a caption with "Figure 5.2", and give the figure an anchor if it has none.

    ``[](#fig-05-ring)`` reads "Figure 5.2" then.
    """

    default_priority = 405  # before links to anchors are resolved

    def apply(self, **kwargs):
        stem = STEM.match(self.env.docname)
        if not stem or stem[1] != "chapters":
            return
        chapter, count, said = int(stem[2]), 0, {}
        for figure in self.document.findall(nodes.figure):
            caption = figure.next_node(nodes.caption)
            if caption is None:
                continue
            count += 1
            number = f"{chapter}.{count}"
            if not figure["names"]:
                figure["ids"].clear()  # "id1", that of whatever comes first
                figure["names"].append(f"fig-{number}")
                self.document.note_explicit_target(figure, figure)
            said |= dict.fromkeys(figure["names"], f"Figure {number}")
            mark = nodes.inline("", f"Figure {number}", classes=["sm-figure-number"])
            caption.insert(0, [mark, nodes.Text(" ")])
        for link in self.document.findall(nodes.reference):
            name = link.get("refuri", "").removeprefix("#")
            if link.get("id_link") and not link.children and name in said:
                link += nodes.Text(said[name])


def setup(app):
    """Number every chapter, its exercises and its figures."""
    app.add_transform(NumberTitle)
    app.add_transform(NumberFigures)
