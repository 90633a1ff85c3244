"""The shapes of pictures: text, boxes, lines, arrows and circles.

Each function returns SVG text. Coordinates are rounded to a tenth of a unit, so a
picture has the same text on every machine. `key` names a shape that may move between
two states of a live figure.
"""

import math
import re
from collections.abc import Iterable, Sequence
from html import escape

from .labels import FONT, XY
from .theme import paint

HEAD = 7  # length of an arrow's head


def number(value: float) -> str:
    """A coordinate as text.

    >>> number(3.04), number(-0.02), number(7.25)
    ('3', '0', '7.2')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def keyed(key: str) -> str:
    """The attribute that names a shape that may move."""
    return f' data-key="{escape(key)}"' if key else ""


def typeset(text: str) -> str:
    """`text` for an SVG, with mesh axes as in "A[I_X, J]" set as subscripts.

    >>> typeset("I_X > J").replace(' font-size="75%"', "")
    'I<tspan dy="3">X</tspan><tspan dy="-3"> &gt; J</tspan>'
    """
    first, *rest = re.split(r"_([A-Z]+)", text)
    parts = [escape(first)]
    for axes, after in zip(rest[::2], rest[1::2], strict=True):
        parts.append(f'<tspan font-size="75%" dy="3">{axes}</tspan>')
        parts.append(f'<tspan dy="-3">{escape(after)}</tspan>' if after else "")
    return "".join(parts)


def written(
    x: float,
    y: float,
    text: str,
    colour: str = "ink",
    anchor: str = "start",
    *,
    size: float = FONT,
    bold: bool = False,
    key: str = "",
) -> str:
    """Text at a position, with a paper-coloured outline that separates it from lines.

    Args:
        x, y: the position of the text; y is its baseline.
        text: one line.
        colour: a name in `theme.paint`.
        anchor: "start", "middle" or "end", the part of the text that is at x.
        size: the font size, in units.
        bold: whether the letters are bold, as in a panel's title.
        key: see the module.
    """
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    look = "" if size == FONT else f' font-size="{number(size)}"'
    look += ' font-weight="600"' if bold else ""
    return (
        f'<text x="{number(x)}" y="{number(y)}"{side}{look}{keyed(key)} '
        f'fill="{paint(colour)}" stroke="{paint("paper")}" stroke-width="3" '
        f'stroke-linejoin="round" paint-order="stroke">{typeset(text)}</text>'
    )


def label(
    left: float, top: float, right: float, bottom: float, text: str, colour: str = "ink"
) -> str:
    """Text in the middle of a box, without an outline."""
    x, y = (left + right) / 2, (top + bottom) / 2 + 0.36 * FONT
    return (
        f'<text x="{number(x)}" y="{number(y)}" text-anchor="middle" '
        f'fill="{paint(colour)}">{typeset(text)}</text>'
    )


def box(
    left: float,
    top: float,
    right: float,
    bottom: float,
    colour: str = "ink",
    *,
    fill: float = 0.1,
    edge: float = 0.7,
    dashed: bool = False,
    round: float = 3,
    key: str = "",
) -> str:
    """A box from its upper left to its lower right corner.

    Args:
        left, top, right, bottom: its sides.
        colour: that of edge and filling, a name in `theme.paint`.
        fill, edge: the opacities of filling and edge, 0 for none.
        dashed: whether the edge is dashed, for things that are reserved or optional.
        round: radius of the corners.
        key: see the module.
    """
    ink = paint(colour)
    inside = f'{ink}" fill-opacity="{fill:g}' if fill else "none"
    if 0 < fill >= 1:
        inside = ink
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    line = f' stroke="{ink}" stroke-opacity="{edge:g}"{dash}' if edge else ""
    return (
        f'<rect x="{number(left)}" y="{number(top)}" width="{number(right - left)}" '
        f'height="{number(bottom - top)}" rx="{number(round)}"{keyed(key)} '
        f'fill="{inside}"{line}/>'
    )


def line(
    *points: XY,
    colour: str = "ink",
    width: float = 2,
    dashed: bool = False,
    opacity: float = 1,
    heads: str = "",
    key: str = "",
) -> str:
    """A polyline, with or without arrow heads.

    Args:
        points: its corners, two or more.
        colour: a name in `theme.paint`.
        width: the width of the stroke.
        dashed: whether it is dashed.
        opacity: the opacity of the whole shape.
        heads: where arrow heads are: "", "end", "start" or "both".
        key: see the module.
    """
    ends = list(points)
    tips = []
    if heads in ("end", "both"):
        tips.append(_head(ends[-2], ends[-1], width))
        ends[-1] = _short(ends[-2], ends[-1], width)
    if heads in ("start", "both"):
        tips.append(_head(points[1], points[0], width))
        ends[0] = _short(points[1], points[0], width)
    path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in ends)
    return _stroked(path, tips, colour, width, dashed, opacity, key)


def arc(
    start: XY,
    end: XY,
    radius: float,
    *,
    colour: str = "ink",
    width: float = 2,
    dashed: bool = False,
    opacity: float = 1,
    left: bool = False,
    head: bool = False,
    key: str = "",
) -> str:
    """The shorter arc of a circle between two points.

    `left` bends it the other way, and `head` adds an arrow head at its end.
    """
    (ax, ay), (bx, by) = start, end
    sweep = 0 if left else 1
    tips = []
    if head:  # the tangent at the end: the chord, turned by half of the arc's angle
        chord = math.hypot(bx - ax, by - ay)
        half = math.asin(min(1, chord / 2 / radius)) * (-1 if left else 1)
        angle = math.atan2(by - ay, bx - ax) + half
        back = (bx - math.cos(angle), by - math.sin(angle))
        tips.append(_head(back, end, width))
        bx, by = _short(back, end, width)
    path = (
        f"M{number(ax)} {number(ay)}A{number(radius)} {number(radius)} 0 0 {sweep} "
        f"{number(bx)} {number(by)}"
    )
    return _stroked(path, tips, colour, width, dashed, opacity, key)


def circle(
    x: float,
    y: float,
    radius: float,
    colour: str = "ink",
    *,
    fill: float = 1,
    edge: float = 0,
    key: str = "",
) -> str:
    """A disc, or with `fill=0, edge=1` a ring."""
    ink = paint(colour)
    inside = f'{ink}" fill-opacity="{fill:g}' if fill else "none"
    line = f' stroke="{ink}" stroke-opacity="{edge:g}"' if edge else ""
    return (
        f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"{keyed(key)} '
        f'fill="{inside}"{line}/>'
    )


def measure(start: XY, end: XY, *, colour: str = "ink") -> str:
    """A thin line with a bar at each end, to show how long something is."""
    (ax, ay), (bx, by) = start, end
    size = math.hypot(bx - ax, by - ay) or 1
    right, down = -4 * (by - ay) / size, 4 * (bx - ax) / size
    path = "".join(
        f"M{number(x - right)} {number(y - down)}L{number(x + right)} "
        f"{number(y + down)}"
        for x, y in (start, end)
    )
    path += f"M{number(ax)} {number(ay)}L{number(bx)} {number(by)}"
    return _stroked(path, (), colour, 1, False, 0.7, "")


def framed(
    title: str, desc: str, parts: Iterable[str], width: float, height: float
) -> str:
    """The parts as one `<svg>`, with a title and a description for screen readers."""
    size = f"0 0 {number(width)} {number(height)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" '
        f'role="img" font-size="{FONT}">'
        f"<title>{escape(title)}</title><desc>{escape(desc)}</desc>"
        + "".join(parts)
        + "</svg>"
    )


def _stroked(
    path: str,
    tips: Sequence[str],
    colour: str,
    width: float,
    dashed: bool,
    opacity: float,
    key: str,
) -> str:
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    pale = "" if opacity == 1 else f' opacity="{opacity:g}"'
    stroke = (
        f'<path d="{path}" fill="none" stroke="{paint(colour)}" '
        f'stroke-width="{number(width)}" stroke-linejoin="round"{dash}'
    )
    if not tips:
        return f"{stroke}{pale}{keyed(key)}/>"
    heads = f'<path d="{"".join(tips)}" fill="{paint(colour)}"/>'
    return f"<g{pale}{keyed(key)}>{stroke}/>{heads}</g>"


def _head(start: XY, end: XY, width: float) -> str:
    """A triangle whose tip is at `end`."""
    (ax, ay), (bx, by) = start, end
    size = math.hypot(bx - ax, by - ay) or 1
    ux, uy = (bx - ax) / size, (by - ay) / size
    long, half = HEAD + width, 3 + width * 0.7
    corners = (
        (bx, by),
        (bx - long * ux - half * uy, by - long * uy + half * ux),
        (bx - long * ux + half * uy, by - long * uy - half * ux),
    )
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in corners) + "Z"


def _short(start: XY, end: XY, width: float) -> XY:
    """`end`, moved back so that the stroke ends inside the head."""
    (ax, ay), (bx, by) = start, end
    size = math.hypot(bx - ax, by - ay) or 1
    back = min(HEAD + width - 1, size)
    return bx - back * (bx - ax) / size, by - back * (by - ay) / size
