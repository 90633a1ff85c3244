"""A figure with controls, in a notebook and on the page: ``live("roofline", B=16)``.

The markup is made here, once for both hosts; ``live.js`` only listens to the controls
and shows what Python answers. Three places run the Python: the notebook's kernel, the
build of the site, and a worker in the reader's browser.
"""

import os
from base64 import b64encode
from dataclasses import dataclass
from html import escape

from ..drawing.svg import standalone
from ..figures import Choice, Drawing, Figure, Slider, find

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
    still = Still(figure.name, figure.settings(**params))
    if os.environ.get("SHARDMATH_STATIC") == "1":
        return still
    try:
        from .widget import LiveFigure
    except ImportError:  # anywidget is for notebooks only
        return still
    return LiveFigure(still)


@dataclass(frozen=True)
class Still:
    """One setting of one figure, shown without controls."""

    name: str
    settings: dict[str, str | int]

    def bundle(self) -> dict[str, object]:
        """What a notebook stores: text, picture with table, and the name and setting.

        An untrusted notebook loses inline SVG but keeps an image, hence the data URI.
        """
        figure = find(self.name)
        drawing = figure.draw(**self.settings)
        image = b64encode(standalone(drawing.svg).encode()).decode()
        return {
            "text/plain": _plain(figure, self.settings, drawing),
            "text/html": (
                f'<img width="600" alt="{escape(drawing.summary)}" '
                f'src="data:image/svg+xml;base64,{image}">{table(drawing)}'
            ),
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
        "data": drawing.data,
    }


def block(name: str, params: dict[str, str | int]) -> str:
    """HTML of a figure: its controls, switched off, then its picture and read-out.

    Without a script, the controls stay invisible and picture and read-out are there.
    """
    figure = find(name)
    settings = figure.settings(**params)
    drawing = figure.draw(**settings)
    controls = "".join(_control(c, settings[c.name]) for c in figure.controls)
    return (
        f'<div class="sm-live" data-figure="{escape(name)}">'
        '<fieldset class="sm-controls" disabled>'
        f'<legend class="sm-unseen">{escape(figure.title)}: settings</legend>{controls}'
        '<p class="sm-note">The controls need scripts and a page from a web server; '
        "in Jupyter they work as well.</p></fieldset>"
        f'<div class="sm-picture">{drawing.svg}</div>'
        '<p class="sm-message" role="status"></p>'
        f'<div class="sm-readout">{table(drawing)}</div>'
        '<p class="sm-said sm-unseen" role="status"></p></div>'
    )


def table(drawing: Drawing) -> str:
    """The summary and the read-out, as an HTML table if there is one."""
    summary = escape(drawing.summary)
    if not drawing.readout:
        return f"<p>{summary}</p>"
    head, *rows = drawing.readout
    columns = "".join(f'<th scope="col">{escape(text)}</th>' for text in head[1:])
    body = "".join(
        f'<tr><th scope="row">{escape(label)}</th>'
        + "".join(f"<td>{escape(text)}</td>" for text in texts)
        + "</tr>"
        for label, *texts in rows
    )
    return (
        f"<table><caption>{summary}</caption><thead><tr><td></td>{columns}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _control(control: Choice | Slider, value: str | int) -> str:
    # The attribute keeps JupyterLab from taking the arrow keys away.
    common = (
        f'name="{control.name}" autocomplete="off" data-lm-suppress-shortcuts="true"'
    )
    if isinstance(control, Choice):
        options = "".join(
            f"<option{' selected' if option == value else ''}>{escape(option)}</option>"
            for option in control.options
        )
        field, shown = f"<select {common}>{options}</select>", ""
    else:
        stops = control.stops
        texts = [f"{stop:,} {control.unit}".strip() for stop in stops]
        now = texts[stops.index(value)]
        field = (
            f'<input type="range" {common} min="0" max="{len(stops) - 1}" '
            f'value="{stops.index(value)}" aria-valuetext="{now}" '
            f'data-stops="{" ".join(map(str, stops))}" data-texts="{"|".join(texts)}">'
        )
        shown = f'<span class="sm-value" aria-hidden="true">{now}</span>'
    label = f"<label><span>{escape(control.label)}</span>{field}</label>"
    return f'<div class="sm-control">{label}{shown}</div>'


def _plain(figure: Figure, settings: dict[str, str | int], drawing: Drawing) -> str:
    given = ", ".join(f"{name} = {value}" for name, value in settings.items())
    widths = [max(map(len, column)) for column in zip(*drawing.readout, strict=True)]
    rows = [
        "  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)).rstrip()
        for row in drawing.readout
    ]
    return "\n".join([f"{figure.title}. {given}", drawing.summary, *rows]).rstrip()
