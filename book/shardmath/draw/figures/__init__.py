"""Figures with controls: functions from settings to a picture, a read-out and numbers.

A figure is a pure function that needs only the standard library. A notebook's kernel,
the build of the site and the reader's browser all run the same function. Each figure is
a module here, imported only when it is needed, so a page loads only its own figures.
"""

from .controls import Choice, Drawing, Figure, Slider
from .names import NAMES, find

__all__ = ["NAMES", "Choice", "Drawing", "Figure", "Slider", "find"]
