"""The colours of the book, which are variables in SVGs and are set by the page.

The site's style sheet sets the variables for light and dark pages. Without it, in
Jupyter or on GitHub, the values below apply. Each except paper has a contrast of at
least 4.5 : 1 on white.
"""

from ..base.units import short_repr

# One colour per resource, the same in the whole book.
COLOURS = {"math": "#1257d6", "HBM": "#b84a00", "network": "#86247e"}
# For other things, such as chips next to each other or their shards.
HUES = (
    "#2c7a3f",
    "#8a6d00",
    "#00707a",
    "#a3225e",
    "#6a4fb3",
    "#7a4a21",
    "#5b6770",
    "#b3261e",
)
INK, PAPER = "#1f2328", "#ffffff"


def hue(number: int) -> str:
    """The name of a colour for the `number`-th thing of a kind, counted from 0.

    >>> hue(0), hue(9)
    ('hue1', 'hue2')
    """
    return f"hue{number % len(HUES) + 1}"


def paint(colour: str) -> str:
    """The SVG value of a colour of the book.

    Args:
        colour: "ink", "paper", "math", "HBM", "network", or "hue1" to "hue8".

    >>> paint("ink"), paint("HBM")
    ('currentColor', 'var(--sm-hbm, #b84a00)')

    Raises:
        ValueError: the book has no colour with this name.
    """
    if colour == "ink":
        return "currentColor"
    named = {hue(n): value for n, value in enumerate(HUES)}
    values = COLOURS | named | {"paper": PAPER}
    if not isinstance(colour, str) or colour not in values:
        raise ValueError(
            f"colour = {short_repr(colour)}: must be ink or one of {list(values)}"
        )
    return f"var(--sm-{colour.lower()}, {values[colour]})"
