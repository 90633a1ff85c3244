"""A figure with controls, in a notebook and on the page: ``live("roofline", B=16)``.

The markup is made here, once for both hosts; ``live.js`` only listens to the controls
and shows what Python answers. Three places run the Python: the notebook's kernel, the
build of the site, and a worker in the reader's browser.
"""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import product

from ..figures import Choice, Drawing, Figure, Slider, find
from ..picture import image

MIME = "application/vnd.shardmath.live+json"


def live(name: str, **params):
    """The live figure `name`; `params` set controls, the others keep their defaults.

    Args:
        name: one of `figures.NAMES`.
        params: values of its controls by name; a chip may be spelt as in `chips.find`.

    Returns:
        A widget whose controls the kernel answers. Where `SHARDMATH_STATIC=1` is set,
        or anywidget is not installed: the same picture and read-out without controls.

    Raises:
        ValueError: no such figure or control, or a value that no control can take.

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
        """What a notebook stores: text, picture with table, and the name and setting.

        An untrusted notebook loses inline SVG but keeps an image, hence the data URI.
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
    """What a host asks for when a control moved: svg, table, summary and numbers."""
    drawing = find(name).draw(**params)
    return {
        "svg": drawing.svg,
        "table": table(drawing),
        "summary": drawing.summary,
        "last": drawing.last,
        "data": drawing.data,
    }


def first_answers(name: str, params: dict[str, str | int]) -> dict[str, dict]:
    """Answers that a page can carry: a reader's first move needs no Python.

    Those of every stop of the figure's first control, with every value of those that it
    carries, and of every preset, the other controls as in `params`; by their settings,
    as JSON writes the list of them.
    """
    figure = find(name)
    start = figure.settings(**params)
    first = figure.control(figure.first)
    values = _values(first)
    last = figure.draw(**start).last
    if last is not None and isinstance(first, Slider) and first.play:
        values = [value for value in values if value <= last]
    each = [values, *(_values(figure.control(name)) for name in figure.carries)]
    names = (figure.first, *figure.carries)
    moved = [start | dict(zip(names, some, strict=True)) for some in product(*each)]
    moved += [start | dict(preset) for preset in figure.presets.values()]
    found = {}
    for settings in moved:
        given = answer(name, settings)
        del given["data"]  # numbers for scripts; no page shows them
        key = json.dumps(list(settings.values()), ensure_ascii=False)
        found[key.replace(", ", ",")] = given
    return found


def _values(control: Choice | Slider) -> Sequence[str | int]:
    return control.options if isinstance(control, Choice) else control.stops


@dataclass(frozen=True)
class Place:
    """Where a figure stands in the book; in a notebook it has none of this."""

    answers: str = ""  # the file beside the scripts that holds its `first_answers`
    anchor: str = ""  # its name in links
    number: str = ""  # "Figure 5.2"
    bare: bool = False  # no title, presets or tools, the read-out first: the front page


def block(name: str, params: dict[str, str | int], place: Place = Place()) -> str:
    """HTML of a figure: its controls, switched off, then its picture and read-out.

    Without a script, the controls stay invisible and picture and read-out are there.
    """
    figure = find(name)
    settings = figure.settings(**params)
    drawing = figure.draw(**settings)
    controls = (
        '<fieldset class="sm-controls" disabled>'
        f'<legend class="sm-unseen">{escape(figure.title)}: settings</legend>'
        + ("" if place.bare else _tools(figure, drawing))
        + "".join(_control(c, settings[c.name], drawing.last) for c in figure.controls)
        + '<p class="sm-note">The controls need scripts and a page from a web server; '
        "in Jupyter they work as well.</p></fieldset>"
    )
    picture = f'<div class="sm-picture">{drawing.svg}</div>'
    status = '<div class="sm-status"><p class="sm-message" role="status"></p></div>'
    readout = f'<div class="sm-readout">{table(drawing)}</div>'
    parts = _head(figure, place), controls, picture, status, readout
    if place.bare:
        parts = readout, picture, controls, status
    anchor = f' id="{escape(place.anchor)}"' if place.anchor else ""
    carried = f' data-answers="{escape(place.answers)}"' if place.answers else ""
    if {figure.first, *figure.carries} == settings.keys():
        carried += " data-whole"  # all of its answers are there
    return (
        f'<div class="sm-live"{anchor} data-figure="{escape(name)}"{carried}>'
        f'{"".join(parts)}<p class="sm-said sm-unseen" role="status"></p></div>'
    )


def _head(figure: Figure, place: Place) -> str:
    number = ""
    if place.number:
        link = f'class="sm-figure-number" href="#{escape(place.anchor)}"'
        number = f"<a {link}>{escape(place.number)}</a> "
    return (
        f'<p class="sm-head"><span class="sm-mark">Live</span> {number}'
        f'<span class="sm-title">{escape(figure.title)}</span></p>'
    )


def _tools(figure: Figure, drawing: Drawing) -> str:
    """Presets, and what can be done with a setting."""
    how = "Move the controls"
    if "data-drag=" in drawing.svg:
        how += ", or drag in the picture"
    return (
        f'<div class="sm-tools"><span class="sm-how">{how}, or try</span>'
        f"{_presets(figure)}"
        f'<button {_KEYS} data-do="reset">Reset</button>'
        f'<button {_KEYS} data-do="link">Copy link</button></div>'
    )


def table(drawing: Drawing) -> str:
    """The summary and the read-out, as an HTML table if there is one."""
    summary = _typeset(drawing.summary)
    if not drawing.readout:
        return f"<p>{summary}</p>"
    head, *rows = drawing.readout
    columns = "".join(f'<th scope="col">{_typeset(text)}</th>' for text in head[1:])
    body = "".join(
        f'<tr><th scope="row">{_typeset(label)}</th>'
        + "".join(f"<td>{_typeset(text)}</td>" for text in texts)
        + "</tr>"
        for label, *texts in rows
    )
    return (
        f"<table><caption>{summary}</caption><thead><tr><td></td>{columns}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _typeset(text: str) -> str:
    """`text` as HTML, the axes of sharded arrays set low.

    >>> _typeset("A[I_X, J] -> B")
    'A[I<sub>X</sub>, J] → B'
    """
    return re.sub(r"_([A-Z]+)", r"<sub>\1</sub>", escape(text.replace("->", "→")))


# The second keeps JupyterLab from taking the keys away.
_KEYS = 'type="button" data-lm-suppress-shortcuts="true"'
_LONG = 19  # letters of an option that a third of the width cannot show
_PLAYER = (
    ("back", "Step back", "M5 3v10M13 3 7 8l6 5z"),
    ("play", "Play", "M5 3l8 5-8 5z"),
    ("step", "Step forward", "M11 3v10M3 3l6 5-6 5z"),
)


def _presets(figure: Figure) -> str:
    return "".join(
        f'<button {_KEYS} data-preset="{escape(json.dumps(dict(preset)))}">'
        f"{escape(name)}</button>"
        for name, preset in figure.presets.items()
    )


def _control(control: Choice | Slider, value: str | int, last: int | None) -> str:
    common = (
        f'name="{control.name}" autocomplete="off" data-lm-suppress-shortcuts="true"'
    )
    if isinstance(control, Choice):
        options = "".join(
            f'<option value="{escape(option)}"{" selected" * (option == value)}>'
            f"{escape(option.replace('->', '→'))}</option>"
            for option in control.options
        )
        machine = " data-machine" if control.machine else ""
        field, shown = f"<select {common}{machine}>{options}</select>", ""
        wide = " sm-wide" if max(map(len, control.options)) > _LONG else ""
    else:
        stops, wide = control.stops, ""
        texts = [control.text(stop) for stop in stops]
        end = len(stops) - 1
        if control.play and last is not None:
            end = max(n for n, stop in enumerate(stops) if stop <= last)
        at = min(stops.index(value), end)
        field = (
            f'<input type="range" {common} min="0" max="{end}" '
            f'value="{at}" aria-valuetext="{texts[at]}" '
            f'data-stops="{" ".join(map(str, stops))}" data-texts="{"|".join(texts)}">'
        )
        shown = f'<span class="sm-value" aria-hidden="true">{texts[at]}</span>'
        if control.play:
            shown += _player(control)
    label = f"<label><span>{escape(control.label)}</span>{field}</label>"
    return f'<div class="sm-control{wide}">{label}{shown}</div>'


def _player(control: Slider) -> str:
    """Buttons that play the slider's stops as a sequence."""
    buttons = "".join(
        f'<button {_KEYS} data-play="{do}" '
        f'aria-label="{name}: {escape(control.label)}">'
        f'<svg viewBox="0 0 16 16" aria-hidden="true"><path d="{path}"/></svg></button>'
        for do, name, path in _PLAYER
    )
    return f'<div class="sm-player" data-plays="{control.name}">{buttons}</div>'


def _plain(figure: Figure, settings: dict[str, str | int], drawing: Drawing) -> str:
    given = ", ".join(f"{name} = {value}" for name, value in settings.items())
    widths = [max(map(len, column)) for column in zip(*drawing.readout, strict=True)]
    rows = [
        "  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)).rstrip()
        for row in drawing.readout
    ]
    return "\n".join([f"{figure.title}. {given}", drawing.summary, *rows]).rstrip()
