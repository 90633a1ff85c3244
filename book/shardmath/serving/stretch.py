"""The time of many decode steps at once, while nothing but the cache changes.

The cache grows by the same amount in each step. The seconds of a step are the maximum
of a few amounts that are linear in the cache, so they are piecewise linear and convex.
If the middle of such a function is on the line between its two ends, all points between
the ends are on this line, and the steps add up to an arithmetic series.
"""

from collections.abc import Callable
from math import ceil, inf, isclose, sqrt

SAME = 1e-10  # the relative distance from a line that rounding explains


def stretch(
    seconds: Callable[[int], float], most: int, until: float = inf
) -> tuple[int, float]:
    """How many steps start before `until`, and Σ seconds(i) over these steps.

    Args:
        seconds: a function that gives the seconds of step i = 0, 1, …; it must be
            convex and piecewise linear in i.
        most: the most steps, at least 1.
        until: seconds from now, above 0; no further step starts at or after this time.

    Returns:
        The number of steps n, at least 1, and their total seconds. Either n is `most`,
        or step n would not start before `until`.

    How far off:
        Exact except for rounding, compared with adding up step by step.

    >>> stretch(lambda i: 2.0 + 0.5 * i, most=4)
    (4, 11.0)
    >>> stretch(lambda i: 2.0 + 0.5 * i, most=4, until=4.5)
    (2, 4.5)
    >>> stretch(lambda i: max(3.0, float(i)), most=6)
    (6, 21.0)
    """
    done, elapsed = 0, 0.0
    while done < most and elapsed < until:
        count, first, slope = _line(seconds, done, most - done)
        whole = _series(count, first, slope)
        if elapsed + whole < until:
            done, elapsed = done + count, elapsed + whole
            continue
        count = _first_at(until - elapsed, count, first, slope)
        return done + count, elapsed + _series(count, first, slope)
    return done, elapsed


def _line(
    seconds: Callable[[int], float], start: int, most: int
) -> tuple[int, float, float]:
    """The number of steps from `start` whose seconds are on one line, with the first
    value and the slope of the line."""
    first = seconds(start)
    count = most
    if count == 1:
        return 1, first, 0.0
    last = seconds(start + count - 1)
    while count > 2:
        half = (count - 1) // 2
        middle = seconds(start + half)
        between = first + (last - first) * half / (count - 1)
        if isclose(middle, between, rel_tol=SAME):
            break
        count, last = half + 1, middle
    return count, first, (last - first) / (count - 1)


def _series(count: int, first: float, slope: float) -> float:
    """Σ of first + slope · i over i < count."""
    return count * (first + slope * (count - 1) / 2)


def _first_at(until: float, most: int, first: float, slope: float) -> int:
    """The fewest steps, at least 1, that together take `until` seconds or longer."""
    level = first - slope / 2  # n steps take n · level + n² · slope / 2
    root = sqrt(max(level * level + 2 * slope * until, 0.0))
    count = ceil(2 * until / (level + root)) if level + root > 0 else most
    count = min(max(count, 1), most)
    while count > 1 and _series(count - 1, first, slope) >= until:
        count -= 1
    while count < most and _series(count, first, slope) < until:
        count += 1
    return count
