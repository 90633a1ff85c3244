"""Groups of bars on one scale. For bars without groups, see `pictures.bars`."""

from collections.abc import Mapping

from ..base.units import show
from .labels import text_width
from .picture import WIDEST, Picture, picture
from .shapes import box, framed, written

EDGE, ROW, HIGH = 12, 26, 18


def groups(
    title: str,
    values: Mapping[str, Mapping[str, float]],
    unit: str,
    colour: str = "network",
) -> Picture:
    """Groups of bars, all on one scale, with the group's largest ratio at its heading.

    Args:
        title: the title of the picture.
        values: heading → name → value.
        unit: the unit of the values.
        colour: a name in `theme.paint`.

    >>> wires = {"NVLink": 900e9, "network card": 50e9}
    >>> groups("Wires", {"A B200 sends": wires}, "bytes/s").desc
    'A B200 sends: NVLink 900 GB/s, network card 50 GB/s, 18 to 1.'

    Raises:
        ValueError: there are no values, or one is not above 0.
    """
    every = [value for group in values.values() for value in group.values()]
    if not every or min(every) <= 0:
        raise ValueError(f"values = {values!r}: must hold values above 0")
    names = max(text_width(name) for group in values.values() for name in group)
    numbers = max(text_width(show(value, unit)) for value in every)
    left = EDGE + names + 8
    room = WIDEST - EDGE - numbers - 6 - left
    parts, said, y = [], [], 0.0
    for heading, group in values.items():
        ratio = max(group.values()) / min(group.values())
        far = f"{ratio:.3g} to 1" if len(group) > 1 else ""
        parts.append(written(EDGE, y + 18, heading, bold=True))
        if far:
            parts.append(written(WIDEST - EDGE, y + 18, far, anchor="end"))
        y += 28
        for name, value in group.items():
            right = left + room * value / max(every)
            spot = (left, y, right, y + HIGH)
            parts.append(box(*spot, colour, fill=0.5, edge=0, round=0, key=name))
            parts.append(written(left - 8, y + 14, name, anchor="end"))
            parts.append(written(right + 6, y + 14, show(value, unit)))
            y += ROW
        y += 10
        listed = ", ".join(f"{k} {show(v, unit)}" for k, v in group.items())
        said.append(f"{heading}: {listed}{f', {far}' if far else ''}.")
    desc = " ".join(said)
    return picture(title, desc, framed(title, desc, parts, WIDEST, y - 4))
