"""Quotes that open with a bold word from a short list become boxes.

``> **Takeaway.** …`` reads well in Jupyter and on GitHub as it stands.
"""

from docutils import nodes
from sphinx.transforms import SphinxTransform

KINDS = ("question", "takeaway", "predict", "check", "note", "pitfall", "source")


class MarkNotes(SphinxTransform):
    """Give such a quote the classes ``sm-lead`` and ``sm-lead-<kind>``."""

    default_priority = 410

    def apply(self, **kwargs):
        for quote in self.document.findall(nodes.block_quote):
            kind = _kind(quote)
            if kind in KINDS:
                quote["classes"] += ["sm-lead", f"sm-lead-{kind}"]


def _kind(quote):
    """The lead word: a bold first word with its stop, in the first paragraph."""
    first = quote.next_node(nodes.paragraph)
    lead = first and next((c for c in first.children if c.astext()), None)
    return (
        lead.astext().rstrip(".:?! ").lower()
        if isinstance(lead, nodes.strong)
        else None
    )


def setup(app):
    """Look at every page."""
    app.add_transform(MarkNotes)
