"""Figures with controls: settings in; a picture, its read-out and its numbers out.

A figure is a pure function and needs the standard library alone. A notebook's kernel,
the build of the site and the reader's browser run the same one. Each has a module of
its name here, which is imported when it is asked for: a page pays for its own alone.
"""

from .controls import Choice, Drawing, Figure, Slider
from .names import NAMES, find

__all__ = ["NAMES", "Choice", "Drawing", "Figure", "Slider", "find"]
