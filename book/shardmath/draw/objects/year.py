"""A year as squares, one for each day, with a week in each column."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ..shapes import number
from ..theme import paint

DAYS, WEEK = 364, 7
LEFT, SIZE, GAP = 6, 7.7, 1.2  # of a square with the paper beside it
HIGH = WEEK * SIZE
EMPTY = 0.07  # darkness of a day that is not reached or does not count
LEVELS = 8  # of darkness; one path per level needs a tenth of the bytes of boxes


def squares(days: Sequence[tuple[str, float]], top: float) -> Iterator[str]:
    """The squares of `days` from January 1. The remaining days of the year are empty.

    Args:
        days: (colour, darkness from 0 to 1) of each day.
        top: where the squares begin.
    """
    levels: dict[tuple[str, float], list[str]] = defaultdict(list)
    for day in range(DAYS):
        colour, dark = days[day] if day < len(days) else ("ink", EMPTY)
        level = dark if colour == "ink" else round(dark * LEVELS) / LEVELS
        if not level:
            colour, level = "ink", EMPTY
        levels[colour, level].append(_square(day, top))
    for (colour, level), some in levels.items():
        path, fill = "".join(some), paint(colour)
        yield f'<path d="{path}" fill="{fill}" fill-opacity="{level:g}"/>'


def start_of_month(month: int) -> float:
    """The left edge of the column with the first day of a month, counted from 1.

    >>> start_of_month(1) == LEFT, start_of_month(2) == LEFT + 4 * SIZE
    (True, True)
    """
    return LEFT + round((month - 1) * 365.25 / 12) // WEEK * SIZE


def _square(day: int, top: float) -> str:
    week, weekday = divmod(day, WEEK)
    x, y, side = LEFT + week * SIZE, top + weekday * SIZE, number(SIZE - GAP)
    return f"M{number(x)} {number(y)}h{side}v{side}h-{side}z"
