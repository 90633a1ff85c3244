"""What is written in a picture: where each text stands, whether it fits and is free."""

import re
from itertools import combinations
from xml.etree import ElementTree

from shardmath.draw.labels import FONT, overlap, text_width
from shardmath.draw.picture import Picture

SVG = "{http://www.w3.org/2000/svg}"


def parsed(panel: str) -> ElementTree.Element:
    return ElementTree.fromstring(panel)


def elements(panel: str, tag: str) -> list[ElementTree.Element]:
    """All elements of one kind, in order."""
    return list(parsed(panel).iter(f"{SVG}{tag}"))


def keyed(panel: str, prefix: str) -> dict[str, ElementTree.Element]:
    """Shapes by their key, those whose key begins with `prefix`."""
    found = {node.get("data-key", ""): node for node in parsed(panel).iter()}
    return {key: node for key, node in found.items() if key.startswith(prefix)}


def texts(panel: str) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Every text, and the box that it needs."""
    found = []
    for node in elements(panel, "text"):
        style = dict(re.findall(r"([\w-]+): ([^;]+)", node.get("style", "")))
        style |= node.attrib  # ours are attributes, matplotlib's a style
        words = "".join(node.itertext()).strip()
        size = float(style.get("font-size", FONT))
        bold = style.get("font-weight") in ("600", "bold")
        wide = text_width(words, bold=bold) - _smaller(node, bold)
        wide *= size / FONT
        x, y = float(node.get("x")), float(node.get("y"))
        x -= {"middle": 0.5, "end": 1}.get(style.get("text-anchor"), 0) * wide
        found.append((words, (x, y - 0.72 * size, x + wide, y + 0.16 * size)))
    return found


def _smaller(node: ElementTree.Element, bold: bool) -> float:
    """By how much a text is narrower for what is set smaller in it: subscripts."""
    saved = 0.0
    for part in node:
        share = float(part.get("font-size", "100%").rstrip("%")) / 100
        saved += (1 - share) * text_width(part.text or "", bold=bold)
    return saved


def words(picture: Picture) -> set[str]:
    return {said for panel in picture.panels for said, _ in texts(panel)}


def check(picture: Picture) -> None:
    """Text stays in its panel, off other text, and is large; colours are the book's."""
    assert len(picture.desc.split()) >= 12, picture.desc
    for panel in picture.panels:
        root = parsed(panel)
        _, _, wide, high = map(float, root.get("viewBox").split())
        assert root.find(f"{SVG}title").text
        assert root.find(f"{SVG}desc").text
        placed = texts(panel)
        for said, (left, top, right, bottom) in placed:
            inside = left >= -1 and right <= wide + 1 and top >= 0 and bottom <= high
            assert inside, f"{said!r} leaves the panel: {left, top, right, bottom}"
        for (one, here), (other, there) in combinations(placed, 2):
            assert overlap(here, there) < 1, f"{one!r} lies on {other!r}"
        assert not re.search(r'(?:fill|stroke)="#', panel)
        sizes = {float(n.get("font-size", FONT)) for n in elements(panel, "text")}
        assert min(sizes, default=FONT) >= FONT
        for box in elements(panel, "rect"):
            x, y, w, h = (float(box.get(k)) for k in ("x", "y", "width", "height"))
            assert min(w, h) >= 0
            assert -0.5 <= x <= x + w <= wide + 0.5
            assert -0.5 <= y <= y + h <= high + 0.5
