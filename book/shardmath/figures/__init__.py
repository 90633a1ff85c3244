"""Figures with controls: settings in; a picture, its read-out and its numbers out.

A figure is a pure function and needs the standard library alone. A notebook's kernel,
the build of the site and the reader's browser run the same one. Each has a module of
its name here, which is imported when it is asked for: a page pays for its own alone.
"""

from importlib import import_module

from .controls import Choice, Drawing, Figure, Slider

__all__ = ["NAMES", "Choice", "Drawing", "Figure", "Slider", "find"]

NAMES = ("roofline", "systolic", "waves", "collective", "sharded_matmul")


def find(name: str) -> Figure:
    """The figure called `name`.

    >>> find("roofline").draw(chip="v5e", B=16).data["chips"][0]["bound"]
    'memory-bound'
    """
    if name not in NAMES:
        known = ", ".join(NAMES)
        raise ValueError(f"no live figure is called {name!r}; there are: {known}")
    return import_module(f".{name}", __name__).FIGURE
