"""Numbers chapters, by the names of their files, and the figures in them.

A chapter's title begins with its number wherever it appears: on the page, in the
contents, in the browser's tab and in search results.
"""

import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

from shardmath.draw.live import MIME

from .render import live_block

STEM = re.compile(r"(chapters|exercises)/(\d\d)_")


class NumberTitle(SphinxTransform):
    """Put the number of ``chapters/NN_slug``, or of its exercises, into the title."""

    default_priority = 440  # after the page's anchor is derived from the title

    def apply(self, **kwargs):
        stem = STEM.match(self.env.docname)
        title = self.document.next_node(nodes.title)
        if stem and title:
            number = nodes.inline("", stem[2], classes=["sm-number"])
            title.insert(0, [number, nodes.Text(" ")])


class NumberFigures(SphinxTransform):
    """Start each caption with "Figure 5.2", as a link to the figure.

    Live figures are numbered too. A figure without a name gets one, such as
    ``fig-5.2``, or ``fig-05-live-ring`` for ``live("ring")``, and
    ``[](#fig-05-live-ring)`` then reads "Figure 5.2".
    """

    default_priority = 405  # before links to anchors are resolved

    def apply(self, **kwargs):
        stem = STEM.match(self.env.docname)
        if not stem or stem[1] != "chapters":
            return
        said = {}
        for count, figure in enumerate(_figures(self.document), 1):
            number = f"{int(stem[2])}.{count}"
            if not figure["names"]:
                figure["ids"].clear()  # "id1", which depends on the order of nodes
                figure["names"].append(_name(figure, stem[2], number, said))
                self.document.note_explicit_target(figure, figure)
            text = f"Figure {number}"
            said |= dict.fromkeys(figure["names"], text)
            if isinstance(figure, live_block):
                figure["number"] = text
                continue
            link = nodes.reference("", text, internal=True, refid=figure["ids"][0])
            link["classes"].append("sm-figure-number")
            figure.next_node(nodes.caption).insert(0, [link, nodes.Text(" ")])
        for link in self.document.findall(nodes.reference):
            name = link.get("refuri", "").removeprefix("#")
            if link.get("id_link") and not link.children and name in said:
                link += nodes.Text(said[name])


def _figures(document):
    """The nodes to number: figures with a caption, and live figures outside them."""
    for node in document.findall(_may_count):
        if isinstance(node, live_block):
            if not _stands_in_figure(node):
                yield node
        elif node.next_node(nodes.caption) is not None:
            yield node


def _may_count(node):
    is_live = isinstance(node, live_block) and node["mime"] == MIME
    return is_live or isinstance(node, nodes.figure)


def _stands_in_figure(node):
    while node is not None and not isinstance(node, nodes.figure):
        node = node.parent
    return node is not None


def _name(figure, chapter, number, taken):
    """A name for a figure that has none, different from all names in `taken`."""
    if not isinstance(figure, live_block):
        return f"fig-{number}"
    first = name = f"fig-{chapter}-live-{figure['content']['name'].replace('_', '-')}"
    count = 1
    while name in taken:
        count += 1
        name = f"{first}-{count}"
    return name


def setup(app):
    """Number every chapter, its exercises and its figures."""
    app.add_transform(NumberTitle)
    app.add_transform(NumberFigures)
