"""Puts pictures stored in notebooks into the pages, inline and with the theme."""

import re
from html import escape

from docutils import nodes

from shardmath.draw.picture import in_page

DESC = re.compile(r"<desc>.*?</desc>", re.DOTALL)


def node(content: dict, metadata: dict) -> nodes.raw:
    """The panels of one picture, side by side if there is room.

    Args:
        content: the data of `Picture.bundle` for its MIME type.
        metadata: of the cell. Its alternative text replaces that of the first panel.
    """
    first, *others = ("".join(panel.split("\n")) for panel in content["panels"])
    if alt := metadata.get("mystnb", {}).get("image", {}).get("alt"):
        first = DESC.sub(lambda _: f"<desc>{escape(alt)}</desc>", first, count=1)
    return nodes.raw("", in_page((first, *others)), format="html")
