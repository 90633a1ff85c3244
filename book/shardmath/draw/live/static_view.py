"""A figure with controls, in a notebook and on the page: ``live("roofline", B=16)``.

Both hosts use the same markup, and ``live.js`` only handles the controls and shows
Python's answers. Python runs in the notebook's kernel, in the build of the site, or in
a worker in the reader's browser.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from ..figures import Choice, Drawing, Figure, Slider, find
from ..picture import image
from .markup import line, numbers, staged, table

MIME = "application/vnd.shardmath.live+json"


def live(name: str, **params):
    """The live figure `name`. `params` set controls; the others keep their defaults.

    Args:
        name: one of `figures.NAMES`.
        params: values of its controls by name. A chip may be spelt as in `chips.find`.

    Returns:
        A widget whose controls are handled by the kernel. If `SHARDMATH_STATIC=1` is
        set or anywidget is not installed, the result is the same picture and read-out
        without controls.

    Raises:
        ValueError: the figure or control does not exist, or can't have this value.

    >>> print(live("roofline", chip="v5e", B=16).bundle()["text/plain"].split(".")[0])
    A matmul on the roofline
    """
    figure = find(name)
    still = StaticFigure(figure.name, figure.settings(**params))
    if os.environ.get("SHARDMATH_STATIC") == "1":
        return still
    try:
        from .widget import LiveFigure
    except ImportError:  # anywidget is for notebooks only
        return still
    return LiveFigure(still)


@dataclass(frozen=True)
class StaticFigure:
    """One setting of one figure, shown without controls."""

    name: str
    settings: dict[str, str | int]

    def bundle(self) -> dict[str, object]:
        """The data that a notebook stores: text, picture with table, name and setting.

        The picture is a data URI, because an untrusted notebook removes inline SVG.
        """
        figure = find(self.name)
        drawing = figure.draw(**self.settings)
        return {
            "text/plain": _plain(figure, self.settings, drawing),
            "text/html": image(drawing.svg, drawing.summary) + table(drawing),
            MIME: {"name": self.name, "params": self.settings},
        }

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.bundle()


def answer(name: str, params: dict[str, str | int]) -> dict[str, object]:
    """The answer to a host after a control has changed: picture, read-out and numbers.

    The read-out is the `line`, which is always visible, and the `table`. `summary` is
    the line as plain text. `last`, `idle` and `used` are those of `Drawing`.

    >>> print(answer("roofline", {"B": 64})["summary"])
    TPU v5e: 167 µs to 211 µs, memory-bound.
    """
    drawing = find(name).draw(**params)
    return {
        "svg": staged(drawing.svg),
        "line": line(drawing),
        "table": numbers(drawing),
        "summary": drawing.summary,
        "last": drawing.last,
        "idle": dict(drawing.idle),
        "used": dict(drawing.used),
        "data": drawing.data,
    }


def first_answers(name: str, params: dict[str, str | int]) -> dict[str, dict]:
    """Answers that a page can store, so that a reader's first change needs no Python.

    There is an answer for every stop of the figure's first control, with every value of
    the controls that it carries, for every step of a sequence, and for every preset.
    Other controls are as in `params`. The key of an answer is the list of its settings
    as JSON.
    """
    figure = find(name)
    start = figure.settings(**params)
    first = figure.control(figure.first)
    steps = _steps(figure, start)
    values = steps if first == figure.plays else _values(first)
    each = [values, *(_values(figure.control(name)) for name in figure.carries)]
    names = (figure.first, *figure.carries)
    moved = [start | dict(zip(names, some, strict=True)) for some in product(*each)]
    if figure.plays:
        moved += [start | {figure.plays.name: step} for step in steps]
    moved += [start | dict(preset) for preset in figure.presets.values()]
    found = {}
    for settings in moved:
        key = json.dumps(list(settings.values()), ensure_ascii=False)
        key = key.replace(", ", ",")
        if key in found:
            continue
        given = answer(name, settings)
        del given["data"]  # only scripts need it
        found[key] = given
    return found


def _values(control: Choice | Slider) -> Sequence[str | int]:
    return control.options if isinstance(control, Choice) else control.stops


def _steps(figure: Figure, settings: dict[str, str | int]) -> Sequence[int]:
    """The steps of the figure's sequence at these settings, if there is one."""
    if figure.plays is None:
        return ()
    last = figure.draw(**settings).last
    return [step for step in figure.plays.stops if last is None or step <= last]


def _plain(figure: Figure, settings: dict[str, str | int], drawing: Drawing) -> str:
    given = ", ".join(f"{name} = {value}" for name, value in settings.items())
    widths = [max(map(len, column)) for column in zip(*drawing.readout, strict=True)]
    rows = [
        "  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)).rstrip()
        for row in drawing.readout
    ]
    return "\n".join([f"{figure.title}. {given}", drawing.summary, *rows]).rstrip()
