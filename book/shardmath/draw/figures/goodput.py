"""The live figure "goodput": a year of training with failures, and its useful time."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from ...base.units import show
from ...training.goodput import best_interval, goodput
from ..objects.year import DAYS, LEFT, squares
from ..shapes import box, circle, framed, keyed, line, number, written
from ..svg import Axis
from .controls import Drawing, Figure, Slider

DAY, HOUR, MINUTE = 86_400, 3600, 60
CHIP = 54 * DAY / 419 * 16_384  # seconds between failures of one H100 of Llama 3.1
MTBF = Slider("mtbf", "Failures every", "", 23, 11_776, 184,
              printed=lambda minutes: _time(minutes * MINUTE))  # fmt: skip
INTERVAL = Slider("interval", "Saves every", "minutes", 1, 512, 64)
WRITE = Slider(
    "write", "A checkpoint stops the run for", "seconds", 1, 512, 32, parts=2
)
RESTART = Slider("restart", "A restart takes", "minutes", 1, 128, 8, parts=2)
PARTS = {  # of the elapsed time, in colours that colour-blind readers can distinguish
    "useful": "hue3",
    "saving": "hue2",
    "lost": "hue8",
    "restarting": "hue5",
}
WIDE, HIGH, RIGHT = 416, 362, 410
SEAM = 1.5  # of paper between two parts of the bar
PLOT = (44, 232, 404, 322)  # left, top, right, bottom
MINUTES = Axis("minutes", INTERVAL.low, INTERVAL.high, stops=(1, 4, 16, 64, 256))


@dataclass(frozen=True)
class Year:
    """A year that has been played failure by failure.

    Args:
        parts: key of `PARTS` → seconds.
        days: the useful share of each day.
        failures: the number of failures.
    """

    parts: dict[str, float]
    days: tuple[float, ...]
    failures: int


def played(interval: float, write: float, mean: float, restart: float) -> Year:
    """A year with failures at random times, which use the same draws for every setting.

    Args:
        interval: seconds of work between two checkpoints.
        write: seconds for which a checkpoint stops the run.
        mean: seconds between failures while the machine runs.
        restart: seconds of a restart.
    """
    until_failure = Random(3).expovariate
    parts, useful = dict.fromkeys(PARTS, 0.0), [0.0] * DAYS
    elapsed, failures, end = 0.0, 0, float(DAYS * DAY)
    while elapsed < end:
        ran = mean * until_failure(1.0)
        whole = min(ran, end - elapsed) // (interval + write) * (interval + write)
        _spread(useful, elapsed, whole, interval / (interval + write))
        parts["useful"] += whole * interval / (interval + write)
        parts["saving"] += whole * write / (interval + write)
        parts["lost"] += min(ran, end - elapsed) - whole
        elapsed += ran
        failures += elapsed < end
        parts["restarting"] += max(0.0, min(restart, end - elapsed))
        elapsed += restart
    return Year(parts, tuple(one / DAY for one in useful), failures)


def _spread(days: list[float], start: float, seconds: float, share: float) -> None:
    """Add a share of the seconds from `start` on to the days in which they are."""
    end = start + seconds
    while start < end:
        day = int(start // DAY)
        until = min(end, (day + 1) * DAY)
        days[min(day, len(days) - 1)] += (until - start) * share
        start = until


def draw(mtbf: int, interval: int, write: int, restart: int) -> Drawing:
    """Days as squares, parts of the year as a bar, and goodput against the interval."""
    mean, seconds = mtbf * MINUTE, interval * MINUTE
    chips = CHIP / mean
    year = played(seconds, write, mean, restart * MINUTE)
    exact = goodput(seconds, write, mean, restart * MINUTE)
    best = best_interval(write, mean)
    most = goodput(best, write, mean, restart * MINUTE)
    shares = {name: part / (DAYS * DAY) for name, part in year.parts.items()}
    summary = (
        f"A machine that fails every {_time(mean)}, as {_about(chips)} H100s of Llama "
        f"3.1 did, fails {year.failures:,} times in this year. "
        f"{shares['useful']:.1%} of the time is useful; the formula gives "
        f"{exact:.1%} in the mean. Saving takes {shares['saving']:.1%}, lost work "
        f"{shares['lost']:.1%}, and restarts {shares['restarting']:.1%}. The best "
        f"interval is {_time(best)}, with {most:.1%}."
    )
    data = {
        "mtbf": mean,
        "chips": chips,
        "goodput": exact,
        "best_interval": best,
        "best_goodput": most,
        "failures": year.failures,
        "shares": shares,
    }
    title = f"A year of training with a failure every {_time(mean)}"

    def at(minutes: float) -> float:
        return goodput(minutes * MINUTE, write, mean, restart * MINUTE)

    parts = (*_year(title, year, shares), *_curve(interval, best / MINUTE, at))
    rows = [("", "share of the year")]
    rows += [(name, f"{share:.1%}") for name, share in shares.items()]
    rows += [
        ("goodput by the formula", f"{exact:.1%}"),
        ("best interval", _time(best)),
        ("goodput there", f"{most:.1%}"),
        ("mean time between failures", _time(mean)),
        ("H100s of Llama 3.1 that fail as often", _about(chips)),
    ]
    svg = framed(title, summary, parts, WIDE, HIGH)
    return Drawing(svg, summary, tuple(rows), data)


def _time(seconds: float) -> str:
    """Seconds as text, in the usual unit for times of this size."""
    if seconds < MINUTE:
        return show(seconds, "s")
    for unit, size in (("days", DAY), ("hours", HOUR)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / MINUTE:.3g} minutes"


def _about(chips: float) -> str:
    """A number of chips, rounded to three digits.

    >>> _about(16_530)
    '16,500'
    """
    return f"{float(f'{chips:.3g}'):,.0f}"


def _year(title: str, year: Year, shares: dict[str, float]) -> Iterator[str]:
    yield written(LEFT, 16, title, bold=True)
    yield written(
        LEFT, 36, "Each square is a day; the darker, the more of it is useful."
    )
    yield from squares([(PARTS["useful"], share) for share in year.days], 46)
    x, top = float(LEFT), 122
    for name, share in shares.items():
        end = x + share * (RIGHT - LEFT)
        shown = end - SEAM if end - x > 3 * SEAM else end
        yield box(
            x, top, shown, top + 18, PARTS[name], fill=0.8, edge=0, round=0, key=name
        )
        x = end
    places = (LEFT, 120, 214, 300)
    for (name, share), at in zip(shares.items(), places, strict=True):
        yield written(at, 158, name, PARTS[name])
        yield written(at, 176, f"{share:.1%}", PARTS[name], key=f"{name}'s")


def _curve(now: int, best: float, at) -> Iterator[str]:
    """Goodput against the interval, with the current one and the best one marked."""
    left, top, right, bottom = PLOT

    def place(minutes: float) -> tuple[float, float]:
        x = left + (right - left) * MINUTES.share(minutes)
        return x, bottom - (bottom - top) * at(minutes)

    yield written(LEFT, top - 28, "goodput by the time between checkpoints", bold=True)
    for percent in (0, 50, 100):
        y = bottom - (bottom - top) * percent / 100
        yield line((left, y), (right, y), width=1, opacity=0.18)
        yield written(left - 6, y + 5, f"{percent}%", anchor="end")
    for tick in MINUTES.stops:
        yield written(place(tick)[0], bottom + 18, f"{tick:,}", anchor="middle")
    yield written(RIGHT, bottom + 36, "minutes", anchor="end")
    steps = [INTERVAL.low * 2 ** (n / 4) for n in range(4 * 9 + 1)]
    yield line(*(place(minutes) for minutes in steps), colour=PARTS["useful"],
               width=2.5, key="curve")  # fmt: skip
    x, y = place(best)
    yield line((x, top - 18), (x, bottom), width=1, dashed=True, key="best")
    anchor = "start" if x < (left + right) / 2 else "end"
    off = 6 if anchor == "start" else -6
    yield written(x + off, top - 8, "best", anchor=anchor, key="best's")
    x, y = place(now)
    yield circle(x, y, 6, PARTS["useful"], key="point")
    anchor, down = _beside(x, at(now))
    said = f"{at(now):.0%}"
    yield written(x, y + down, said, PARTS["useful"], anchor, bold=True, key="point's")
    stops = " ".join(number(place(stop)[0]) for stop in INTERVAL.stops)
    yield (
        f'<circle cx="{number(x)}" cy="{number(y)}" r="18"{keyed("handle")} '
        f'data-drag="{INTERVAL.name}" data-drag-at="{stops}" fill="transparent"/>'
    )


def _beside(x: float, share: float) -> tuple[str, float]:
    """The anchor of the point's label and how far below: on the free side of a hill."""
    left, _, right, _ = PLOT
    rising, high = x < (left + right) / 2, share > 0.5
    anchor = "start" if rising == high else "end"
    if x < left + 40:
        anchor = "start"
    if x > right - 40:
        anchor = "end"
    return anchor, 24 if high else -12


FIGURE = Figure(
    "goodput",
    "A year of training with failures",
    (INTERVAL, RESTART, MTBF, WRITE),
    draw,
    first="interval",
    presets={
        "Llama 3.1 405B": {"mtbf": 184, "write": 3, "interval": 4, "restart": 8},
        "slow storage": {"mtbf": 184, "write": 64, "interval": 16, "restart": 8},
        "saved too rarely": {"mtbf": 184, "write": 3, "interval": 256},
        "131,072 chips": {"mtbf": 23, "write": 3, "interval": 2, "restart": 8},
    },
    row=("mtbf", "interval", "restart"),
)
