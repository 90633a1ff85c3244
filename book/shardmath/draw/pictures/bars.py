"""Draws a few values as bars from zero, each with its name and number."""

from collections.abc import Iterator, Mapping

from ...base.units import positive, show
from .. import shapes
from ..labels import text_width
from ..picture import Picture, picture
from ..theme import COLOURS

WIDTH, LEFT = 416, 6
HEAD, ROW, THICK = 26, 44, 16  # of the title, of a bar with its words, of a bar


def bars(
    title: str, values: Mapping[str, float | None], unit: str, digits: int = 3
) -> Picture:
    """A bar for each value, all from zero and on one scale.

    Args:
        title: what the values belong to.
        values: name → value. None, for a value that the reader does not know yet, gives
            an empty bar with a question mark. Bars named after a resource (math, HBM,
            network) have its colour.
        unit, digits: as for `units.show`.

    Raises:
        ValueError: there is no number, one is not above 0, or a name is too long.

    >>> bars("A matmul", {"math": 1e-3, "HBM": 4e-3}, "s")
    <A matmul. math: 1 ms; HBM: 4 ms. The lengths of the bars are to scale.>
    """
    known = {name: value for name, value in values.items() if value is not None}
    if not known:
        raise ValueError(f"values = {dict(values)!r}: must hold a number to draw")
    longest = max(positive(**known))
    said = {name: _said(name, value, unit, digits) for name, value in values.items()}
    for line in (title, *said.values()):
        if text_width(line, bold=line == title) > WIDTH - 2 * LEFT:
            raise ValueError(f"{line!r} is wider than the picture")
    desc = f"{'; '.join(said.values())}. The lengths of the bars are to scale."
    parts = [shapes.written(LEFT, 18, title, bold=True)]
    for n, (name, value) in enumerate(values.items()):
        share = None if value is None else value / longest
        parts += _bar(HEAD + ROW * n, said[name], share, _colour(name))
    height = HEAD + ROW * len(values) + 2
    return picture(title, desc, shapes.framed(title, desc, parts, WIDTH, height))


def _bar(top: float, words: str, share: float | None, colour: str) -> Iterator[str]:
    """A line of words and the bar under it."""
    yield shapes.written(LEFT, top + 16, words)
    wide = (WIDTH - 2 * LEFT) * (1 if share is None else share)
    ends = (LEFT, top + 22, LEFT + wide, top + 22 + THICK)
    if share is None:
        yield shapes.box(*ends, fill=0, dashed=True)
    else:
        yield shapes.box(*ends, colour, fill=1, edge=0, round=0)


def _said(name: str, value: float | None, unit: str, digits: int) -> str:
    return f"{name}?" if value is None else f"{name}: {show(value, unit, digits)}"


def _colour(name: str) -> str:
    return name if name in COLOURS else "hue7"
