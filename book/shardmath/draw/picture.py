"""A picture that is shown both on a page of the site and in a notebook."""

import textwrap
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from .theme import INK, PAPER

MIME = "application/vnd.shardmath.picture+json"
WIDEST = 416  # units; on a phone of 390 px it gets 358 px, and text of 14 units 12 px
SCALE = 1.2  # px per unit if there is room, so text is as large as the page's


@dataclass(frozen=True)
class Picture:
    """One or more panels, side by side if there is room, which display themselves.

    The site puts the panels into its page, where they follow its theme. A notebook also
    stores an image with a background, which can be read in dark mode, in an untrusted
    notebook, and on GitHub. The panels are stored as text, so tests can compare them.

    Attributes:
        title: what it is, in a few words.
        desc: what it shows, in a sentence or more, for readers who can't see it.
        panels: `<svg>` elements as from `shapes.framed`, each at most `WIDEST` units
            wide.

    Raises:
        ValueError: there are no panels, one is too wide, or the title or description is
            empty.

    >>> from shardmath.draw import shapes
    >>> dot = shapes.framed("A dot", "It is in the middle.", [], 20, 10)
    >>> Picture("A dot", "It is in the middle.", (dot,))
    <A dot. It is in the middle.>
    """

    title: str
    desc: str
    panels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.panels:
            raise ValueError(f"picture {self.title!r}: must have a panel")
        if not (self.title.strip() and self.desc.strip()):
            raise ValueError(
                f"picture {self.title!r}, {self.desc!r}: must have a title and a "
                "description"
            )
        for width, _ in map(size, self.panels):
            if width > WIDEST:
                raise ValueError(
                    f"picture {self.title!r}: a panel is {width:g} units wide; on a "
                    f"phone, at most {WIDEST} can be read"
                )

    def __repr__(self) -> str:
        return f"<{self.title}. {self.desc}>"

    def bundle(self) -> dict[str, object]:
        """The data that a notebook stores: text, images, and the panels."""
        return {
            "text/plain": textwrap.fill(repr(self), 88),
            "text/html": in_a_row(map(image, self.panels)),
            MIME: {"panels": [panel.replace("><", ">\n<") for panel in self.panels]},
        }

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.bundle()


def picture(title: str, desc: str, svg: str) -> Picture:
    """A picture of one panel."""
    return Picture(title, desc, (svg,))


def beside(title: str, *pictures: Picture) -> Picture:
    """One picture with the panels of several.

    Raises:
        ValueError: as for `Picture`.

    >>> one = Picture("One", "A panel.", ('<svg viewBox="0 0 40 20"></svg>',))
    >>> print(beside("Two", one, one).desc)
    One: A panel. One: A panel.
    """
    desc = " ".join(f"{one.title}: {one.desc}" for one in pictures)
    return Picture(title, desc, tuple(p for one in pictures for p in one.panels))


def size(svg: str) -> tuple[float, float]:
    """Width and height of a panel, in units."""
    _, _, width, height = svg.split('viewBox="', 1)[1].split('"', 1)[0].split()
    return float(width), float(height)


def standalone(svg: str) -> str:
    """`svg` with a background, for hosts that show it as an image."""
    width, height = size(svg)
    head, rest = svg.split(">", 1)
    ground = f'<rect width="{width:g}" height="{height:g}" fill="{PAPER}"/>'
    return f'{head} color="{INK}" font-family="sans-serif">{ground}{rest}'


def in_a_row(images: Iterable[str]) -> str:
    """Images side by side as HTML; otherwise a notebook puts each on a separate line.

    >>> in_a_row(["<img>"]), in_a_row(["<img>", "<img>"]).count("<div")
    ('<img>', 1)
    """
    first, *others = images
    if not others:
        return first
    lines = "\n".join([first, *others])
    return f'<div style="display: flex; flex-wrap: wrap">\n{lines}\n</div>'


def in_page(panels: Iterable[str]) -> str:
    """Panels as HTML that follows the page's theme, side by side if there is room.

    Each panel is in a box of its natural size, which the style sheet may shrink. The
    browser knows the size of the box before it draws the panel.
    """
    return f'<div class="sm-drawing">{"".join(map(_boxed, panels))}</div>'


def _boxed(svg: str) -> str:
    svg = svg.replace("\n", "")
    width, height = size(svg)
    # The exact ratio, because a rounded height would shift the page when drawn.
    shape = f"width: {SCALE * width:.0f}px; aspect-ratio: {width:g} / {height:g}"
    return f'<div class="sm-panel" style="{shape}">{svg}</div>'


def image(svg: str, alt: str = "") -> str:
    """`svg` as an `<img>` that looks the same in every host.

    Its alternative text is `alt`, or else the picture's title and description.
    """
    width, _ = size(svg)
    data = b64encode(standalone(svg).encode()).decode()
    said = escape(alt) or f"{_inside(svg, 'title')}. {_inside(svg, 'desc')}"
    return (
        f'<img width="{SCALE * width:.0f}" alt="{said}" '
        f'src="data:image/svg+xml;base64,{data}">'
    )


def _inside(svg: str, tag: str) -> str:
    """The text of the first element `tag`, still escaped."""
    return svg.split(f"<{tag}>", 1)[1].split(f"</{tag}>", 1)[0].replace('"', "&quot;")
