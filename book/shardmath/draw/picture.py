"""A picture of the book: drawn once, shown on the page and in a notebook."""

import textwrap
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from .theme import INK, PAPER

MIME = "application/vnd.shardmath.picture+json"
WIDEST = 416  # units: at 390 px, a page leaves 358, and 14 units of text are 12 px
SCALE = 1.2  # px a unit where there is room: text as large as the page's


@dataclass(frozen=True)
class Picture:
    """One panel or more that show themselves; panels stand side by side if they can.

    The site puts the panels into its page, where they follow its theme. A notebook also
    stores an image with a ground of its own: it survives the dark, a notebook that is
    not trusted, and GitHub. The panels are stored as text, so tests compare them.

    Attributes:
        title: what it is, in a few words.
        desc: what it shows, for who does not see it: a sentence or more.
        panels: `<svg>` elements as `shapes.framed` makes them, each at most `WIDEST`
            units wide.

    Raises:
        ValueError: no panels, one that is too wide, or a description that says nothing.

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
                    f"picture {self.title!r}: a panel is {width:g} units wide; at most "
                    f"{WIDEST} can be read on a phone"
                )

    def __repr__(self) -> str:
        return f"<{self.title}. {self.desc}>"

    def bundle(self) -> dict[str, object]:
        """What a notebook stores: text, images, and the panels as they are."""
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
    """The panels of several pictures as those of one.

    Raises:
        ValueError: as `Picture`.
    """
    desc = " ".join(f"{one.title}: {one.desc}" for one in pictures)
    return Picture(title, desc, tuple(p for one in pictures for p in one.panels))


def size(svg: str) -> tuple[float, float]:
    """Width and height of a panel, in its units."""
    _, _, width, height = svg.split('viewBox="', 1)[1].split('"', 1)[0].split()
    return float(width), float(height)


def standalone(svg: str) -> str:
    """`svg` on a ground of its own, for hosts that show it as an image."""
    width, height = size(svg)
    head, rest = svg.split(">", 1)
    ground = f'<rect width="{width:g}" height="{height:g}" fill="{PAPER}"/>'
    return f'{head} color="{INK}" font-family="sans-serif">{ground}{rest}'


def in_a_row(images: Iterable[str]) -> str:
    """Images as HTML for a notebook, which would put each on a line of its own.

    >>> in_a_row(["<img>"]), in_a_row(["<img>", "<img>"]).count("<div")
    ('<img>', 1)
    """
    first, *others = images
    if not others:
        return first
    lines = "\n".join([first, *others])
    return f'<div style="display: flex; flex-wrap: wrap">\n{lines}\n</div>'


def in_page(panels: Iterable[str]) -> str:
    """Panels as HTML that follows the page's theme, side by side where there is room.

    Each has a box of its natural size, which the style sheet lets shrink. The box has
    its shape before the browser has looked at what is drawn in it.
    """
    return f'<div class="sm-drawing">{"".join(map(_boxed, panels))}</div>'


def _boxed(svg: str) -> str:
    svg = svg.replace("\n", "")
    width, height = size(svg)
    # Its own sides: a rounded height would move what follows when it is drawn.
    shape = f"width: {SCALE * width:.0f}px; aspect-ratio: {width:g} / {height:g}"
    return f'<div class="sm-panel" style="{shape}">{svg}</div>'


def image(svg: str, alt: str = "") -> str:
    """`svg` as an `<img>` that every host shows alike.

    Its alternative text is `alt`, or else the picture's own title and description.
    """
    width, _ = size(svg)
    data = b64encode(standalone(svg).encode()).decode()
    said = escape(alt) or f"{_inside(svg, 'title')}. {_inside(svg, 'desc')}"
    return (
        f'<img width="{SCALE * width:.0f}" alt="{said}" '
        f'src="data:image/svg+xml;base64,{data}">'
    )


def _inside(svg: str, tag: str) -> str:
    """The text of the first such element, escaped as it is."""
    return svg.split(f"<{tag}>", 1)[1].split(f"</{tag}>", 1)[0].replace('"', "&quot;")
