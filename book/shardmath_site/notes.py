"""Turns quotes that start with a bold word from a short list into boxes.

``> **Takeaway.** …`` reads well in Jupyter and on GitHub without this. A source or a
note is put next to the text before it if the screen has room (shardmath.css).
"""

from math import ceil

from docutils import nodes
from sphinx.transforms import SphinxTransform

ASIDES = ("source", "note")
TEXT = (nodes.paragraph, nodes.bullet_list, nodes.enumerated_list)
# On the narrowest screen with room for notes, approximately: characters per line,
# height of a line in pixels, and space around a paragraph in pixels.
LINE, NOTE_LINE = (66, 27, 17), (28, 19, 14)
KINDS = ("question", "takeaway", "predict", "check", "note", "pitfall", "source")


class MarkNotes(SphinxTransform):
    """Give these quotes the classes ``sm-lead`` and ``sm-lead-<kind>``."""

    default_priority = 410

    def apply(self, **kwargs):
        for quote in self.document.findall(nodes.block_quote):
            kind = _kind(quote)
            if kind in KINDS:
                quote["classes"] += ["sm-lead", f"sm-lead-{kind}"]


class beside(nodes.General, nodes.Element):  # noqa: N801
    """Text, as its first child, and the note next to it."""


class PlaceNotes(SphinxTransform):
    """Join a source or a note with enough of the text before it to match its height.

    If there is less text, the note is not moved, because it would leave a gap.
    """

    default_priority = 425  # after MarkNotes and JoinGuesses

    def apply(self, **kwargs):
        for quote in [*self.document.findall(is_aside)]:
            _join(quote)


def is_aside(node):
    """Whether a node is a quote that is a source or a note."""
    return isinstance(node, nodes.block_quote) and _kind(node) in ASIDES


def _join(quote):
    parent, at = quote.parent, quote.parent.index(quote)
    wanted = _height(quote, NOTE_LINE)
    start, tall = at, 0
    while tall < wanted and start and isinstance(parent[start - 1], TEXT):
        start -= 1
        tall += _height(parent[start], LINE)
    if tall >= wanted:
        text = nodes.container("", *parent[start:at])
        parent[start : at + 1] = [beside("", text, quote)]


def _height(node, line):
    """The approximate height of a node's paragraphs, with lines of that kind."""
    letters, height, space = line
    return sum(
        height * ceil(len(paragraph.astext()) / letters) + space
        for paragraph in node.findall(nodes.paragraph)
    )


def _open_beside(self, node):
    self.body.append('<div class="sm-beside">')


def _close_beside(self, node):
    self.body.append("</div>\n")


def _kind(quote):
    """The lead word of a quote, without punctuation, or None if it isn't bold."""
    first = quote.next_node(nodes.paragraph)
    lead = first and next((c for c in first.children if c.astext()), None)
    return (
        lead.astext().rstrip(".:?! ").lower()
        if isinstance(lead, nodes.strong)
        else None
    )


def setup(app):
    """Mark and place the notes on every page."""
    app.add_node(beside, html=(_open_beside, _close_beside))
    app.add_transform(MarkNotes)
    app.add_transform(PlaceNotes)
