"""Pictures in the built pages: the panels that a notebook stores, inline and themed."""

import re
from html import escape

from docutils import nodes

from shardmath.draw.picture import in_page

DESC = re.compile(r"<desc>.*?</desc>", re.DOTALL)


def node(content: dict, metadata: dict) -> nodes.raw:
    """The panels of one picture, side by side where there is room.

    Args:
        content: what `Picture.bundle` stores under its MIME type.
        metadata: of the cell; alternative text in it replaces the first panel's own.
    """
    first, *others = ("".join(panel.split("\n")) for panel in content["panels"])
    if alt := metadata.get("mystnb", {}).get("image", {}).get("alt"):
        first = DESC.sub(lambda _: f"<desc>{escape(alt)}</desc>", first, count=1)
    return nodes.raw("", in_page((first, *others)), format="html")
