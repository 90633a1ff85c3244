"""The HTML of a live figure: its picture, controls, read-out and table.

``live.js`` handles the controls and depends on the names of classes, and ``live.css``
does the layout.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ..figures import Choice, Drawing, Figure, Slider, find


@dataclass(frozen=True)
class Place:
    """A figure's place on the site. In a notebook, all fields are empty."""

    answers: str = ""  # the file, next to the scripts, with its `first_answers`
    anchor: str = ""  # its name in links
    number: str = ""  # such as "Figure 5.2"
    bare: bool = False  # on the front page: read-out first, no title, presets or tools


def block(name: str, params: dict[str, str | int], place: Place = Place()) -> str:
    """HTML of a figure: its picture, its disabled controls, and its read-out.

    The first controls are in a row right below the picture. Further controls and the
    table are in closed folds. Without scripts, only the picture and read-out are shown.
    """
    figure = find(name)
    settings = figure.settings(**params)
    drawing = figure.draw(**settings)
    settings |= drawing.used
    picture = f'<div class="sm-picture">{staged(drawing.svg)}</div>'
    status = '<div class="sm-status"><p class="sm-message" role="status"></p></div>'
    if place.bare:
        said = f'<div class="sm-line">{line(drawing)}</div>'
        said = f'<div class="sm-readout">{said}</div>'
        controls = _fields(figure.controls, settings, drawing)
        parts = said, picture, _fieldset(f"{figure.title}: settings", controls), status
    else:
        parts = (
            _head(figure, place),
            picture,
            _row(figure, settings, drawing),
            f'<div class="sm-line">{line(drawing)}</div>',
            status,
            _folds(figure, settings, drawing),
        )
    anchor = f' id="{escape(place.anchor)}"' if place.anchor else ""
    carried = f' data-answers="{escape(place.answers)}"' if place.answers else ""
    if {figure.first, *figure.carries} == settings.keys():
        carried += " data-whole"  # the file has all of its answers
    return (
        f'<div class="sm-live"{anchor} data-figure="{escape(name)}" '
        f'data-settings="{" ".join(settings)}"{carried}>'
        f'{"".join(parts)}<p class="sm-said sm-unseen" role="status"></p></div>'
    )


def _row(figure: Figure, settings: dict[str, str | int], drawing: Drawing) -> str:
    """The controls that a reader needs first, and the presets."""
    fields = _fields(figure.in_row, settings, drawing)
    inner = f'<div class="sm-row">{fields}</div>{_tools(figure, drawing)}'
    return _fieldset(f"{figure.title}: settings", inner)


def _fieldset(legend: str, inner: str) -> str:
    return (
        '<fieldset class="sm-controls" disabled>'
        f'<legend class="sm-unseen">{escape(legend)}</legend>{inner}'
        '<p class="sm-note">The controls need scripts and a page from a web server; '
        "in Jupyter they work as well.</p></fieldset>"
    )


def _folds(figure: Figure, settings: dict[str, str | int], drawing: Drawing) -> str:
    """Closed folds with further controls and the table; reset, and a link."""
    others = [control for control in figure.controls if control not in figure.in_row]
    more = (
        f'<details class="sm-more"><summary {_SHORTCUTS}>More controls</summary>'
        '<fieldset class="sm-rest" disabled>'
        f'<legend class="sm-unseen">{escape(figure.title)}: more settings</legend>'
        f'<div class="sm-row">{_fields(others, settings, drawing)}</div>'
        "</fieldset></details>"
    )
    without = "" if drawing.readout else " hidden"
    tools = (
        f'<div class="sm-tools"><button {_KEYS} data-do="reset">Reset</button>'
        f'<button {_KEYS} data-do="link">Copy link</button></div>'
    )
    return (
        f'<div class="sm-folds">{more if others else ""}'
        f'<details class="sm-numbers"{without}>'
        f"<summary {_SHORTCUTS}>The numbers</summary>"
        f'<div class="sm-readout">{numbers(drawing)}</div></details>{tools}</div>'
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
    """The presets."""
    how = "Drag in the picture, or try" if "data-drag=" in drawing.svg else "Try"
    return (
        f'<div class="sm-tools"><span class="sm-how">{how}</span>'
        f"{_presets(figure)}</div>"
    )


def staged(svg: str) -> str:
    """`svg` with its size in variables, with which the style sheet limits its size.

    >>> staged('<svg viewBox="0 0 416 260">')
    '<svg style="--sm-units:416;--sm-ratio:1.6" viewBox="0 0 416 260">'
    """
    _, _, wide, high = map(float, _VIEW_BOX.search(svg)[1].split())
    size = f"--sm-units:{wide:g};--sm-ratio:{wide / high:.4g}"
    return svg.replace("<svg ", f'<svg style="{size}" ', 1)


def line(drawing: Drawing) -> str:
    """The result in a sentence or two."""
    return f"<p>{_held(_typeset(drawing.summary))}</p>"


def numbers(drawing: Drawing) -> str:
    """The read-out below the line as an HTML table, or "" if there is no read-out."""
    rows = _held(_rows(drawing)) if drawing.readout else ""
    return f"<table>{rows}</table>" if rows else ""


def table(drawing: Drawing) -> str:
    """The summary and the read-out in one, as a notebook stores them."""
    summary = _typeset(drawing.summary)
    if not drawing.readout:
        return f"<p>{summary}</p>"
    return f"<table><caption>{summary}</caption>{_rows(drawing)}</table>"


def _rows(drawing: Drawing) -> str:
    head, *rows = drawing.readout
    columns = "".join(f'<th scope="col">{_typeset(text)}</th>' for text in head[1:])
    body = "".join(
        f'<tr><th scope="row">{_typeset(label)}</th>'
        + "".join(f"<td>{_typeset(text)}</td>" for text in texts)
        + "</tr>"
        for label, *texts in rows
    )
    return f"<thead><tr><td></td>{columns}</tr></thead><tbody>{body}</tbody>"


def _held(html: str) -> str:
    """`html` with every number in `<b>` together with its unit, on one line.

    >>> _held("39.7 GiB of 95 GiB, at 197 TFLOPs/s")
    '<b>39.7 GiB</b> of <b>95 GiB</b>, at <b>197 TFLOPs/s</b>'
    """
    return _AMOUNT.sub(r"<b>\g<0></b>", html)


def _typeset(text: str) -> str:
    """`text` as HTML, with the axes of sharded arrays set low.

    >>> _typeset("A[I_X, J] -> B")
    'A[I<sub>X</sub>, J] → B'
    """
    return re.sub(r"_([A-Z]+)", r"<sub>\1</sub>", escape(text.replace("->", "→")))


_VIEW_BOX = re.compile(r'viewBox="([^"]+)"')
# A number in text, except in tags and names such as "H100", and the word after it.
_AMOUNT = re.compile(r"(?<![\w.,&#/-])\d[\d,.]*[ \u00a0](?:[^\W\d_]+(?:/\w+)?|%)")
# This keeps JupyterLab from taking the keys away.
_SHORTCUTS = 'data-lm-suppress-shortcuts="true"'
_KEYS = f'type="button" {_SHORTCUTS}'
_LONG = 19  # letters of an option for which a third of the width is too narrow
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


def _fields(
    controls: Sequence[Choice | Slider],
    settings: dict[str, str | int],
    drawing: Drawing,
) -> str:
    return "".join(
        _control(one, settings[one.name], drawing.last, drawing.idle.get(one.name, ""))
        for one in controls
    )


def _control(
    control: Choice | Slider, value: str | int, last: int | None, idle: str
) -> str:
    """A control with its label; `idle` says why it has no effect, if it has none."""
    off = " disabled" * bool(idle)
    common = f'name="{control.name}" autocomplete="off" {_SHORTCUTS}{off}'
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
            shown += _player(control, off)
            wide = " sm-plays"
    why = f'<span class="sm-why sm-unseen">{escape(idle)}</span>'
    label = f"<label><span>{escape(control.label)}{why}</span>{field}</label>"
    reason = f' title="{escape(idle)}"' if idle else ""
    return f'<div class="sm-control{wide}"{reason}>{label}{shown}</div>'


def _player(control: Slider, off: str) -> str:
    """Buttons that play the slider's stops as a sequence."""
    buttons = "".join(
        f'<button {_KEYS}{off} data-play="{do}" '
        f'aria-label="{name}: {escape(control.label)}">'
        f'<svg viewBox="0 0 16 16" aria-hidden="true"><path d="{path}"/></svg></button>'
        for do, name, path in _PLAYER
    )
    return f'<div class="sm-player" data-plays="{control.name}">{buttons}</div>'
