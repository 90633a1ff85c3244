"""Figures with controls: settings in; a picture, its read-out and its numbers out.

A figure is a pure function and needs the standard library alone. A notebook's kernel,
the build of the site and the reader's browser run the same one.
"""

from .controls import Choice, Drawing, Figure, Slider
from .roofline import ROOFLINE

__all__ = ["FIGURES", "Choice", "Drawing", "Figure", "Slider", "find"]

FIGURES = {figure.name: figure for figure in (ROOFLINE,)}


def find(name: str) -> Figure:
    """The figure called `name`.

    >>> find("roofline").draw(chip="v5e", B=16).data["chips"][0]["bound"]
    'memory-bound'
    """
    if name not in FIGURES:
        known = ", ".join(FIGURES)
        raise ValueError(f"no live figure is called {name!r}; there are: {known}")
    return FIGURES[name]
