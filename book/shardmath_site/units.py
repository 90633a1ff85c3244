"""Keeps a number and its unit on one line, in text and in tables."""

import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

UNIT = r"(?:(?:[kKMGTPEmµnp]i?)?(?:FLOPs?|B|Hz|W|s|m)(?:/[A-Za-z]+)?|bytes?|%)(?!\w)"
BREAK = re.compile(rf"(?<=\d) (?={UNIT})")
BETWEEN_TAGS = re.compile(r"(?<=>)[^<>]+")
VERBATIM = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)


def kept(text):
    """`text` with non-breaking spaces between numbers and their units.

    >>> kept("64 GB in 2 steps")
    '64\\xa0GB in 2 steps'
    >>> kept("29 % of the rate")
    '29\\xa0% of the rate'
    """
    return BREAK.sub("\u00a0", text)


class KeepUnits(SphinxTransform):
    """Apply `kept` to the text of a page and to the tables of its cells."""

    default_priority = 415  # before KeepPunctuation

    def apply(self, **kwargs):
        for text in [*self.document.findall(nodes.Text)]:
            if not isinstance(text.parent, VERBATIM) and BREAK.search(text):
                text.parent.replace(text, nodes.Text(kept(text)))
        for raw in self.document.findall(nodes.raw):
            if raw.get("format") == "html" and "<table" in raw.astext():
                html = BETWEEN_TAGS.sub(lambda found: kept(found[0]), raw.astext())
                raw.clear()
                raw += nodes.Text(html)


def setup(app):
    """Keep units with their numbers on every page."""
    app.add_transform(KeepUnits)
