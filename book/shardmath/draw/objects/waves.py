"""Tiles on the SMs of a GPU over time, and the share of the SMs' time that is used."""

import math
from itertools import groupby

from ...base.units import positive_int, short_repr, text
from ...hardware.waves import TileRun, TileSchedule, Waves
from .. import svg
from ..picture import Picture, picture

MOST_TEETH = 8  # of a sawtooth, so that all can be labelled


def tiles(schedule: TileSchedule) -> Picture:
    """The time line of a schedule as a picture; see `timeline`."""
    return picture(
        "Tiles on the SMs",
        f"{schedule.summary}. A box is a tile; blank is idle.",
        timeline(schedule),
    )


def timeline(schedule: TileSchedule, title: str = "Tiles on the SMs") -> str:
    """SMs over time. A box is a tile, or SMs that work in step, and gaps are idle time.

    The dashed line "ideal" is the time if the work could be divided arbitrarily.

    Raises:
        ValueError: `schedule` does not come from `dispatch`, or `title` isn't a string.
    """
    if not isinstance(schedule, TileSchedule):
        wanted = "must be a Schedule, such as dispatch([1.0] * 133, 132)"
        raise ValueError(f"schedule = {short_repr(schedule)}: {wanted}")
    text("title", title)
    runs = schedule.runs
    ideal = math.fsum(run.end - run.start for run in runs) / schedule.sms
    gap = 0.006 * schedule.seconds  # before the next tile, and nowhere else
    starts = {run.start for run in runs}
    x = svg.Axis("time", 0, schedule.seconds * 1.04, log=False, unit="s")
    y = svg.Axis("SM", 0, schedule.sms, log=False)
    seam = 0.12 if schedule.sms <= 40 else 0  # between SMs, where it can be seen
    marks: list = []
    for (start, end), group in groupby(sorted(runs, key=_when), key=_when):
        for low, high in _blocks([run.sm for run in group], together=not seam):
            seen = end - min(gap, (end - start) / 4) if end in starts else end
            corner = (seen, high - seam)
            marks.append(svg.Bar((start, low + seam), corner))
    marks.append(
        svg.PlotLine(((ideal, 0), (ideal, schedule.sms)), dashed=True, width=1.5)
    )
    marks.append(svg.Label(ideal, schedule.sms, "ideal", toward="ne", key="ideal"))
    return svg.plot(title, f"{schedule.summary}.", x, y, marks)


def sawtooth(sms: int, waves: int = 6) -> Picture:
    """The used share of the SMs' time, from one tile to `waves` full waves.

    The first tile after a full wave opens a new wave, which gives a tooth whose lowest
    point is labelled.

    Raises:
        ValueError: `sms` or `waves` is not a whole number from 1, or `waves` is above
            8.

    >>> print(sawtooth(132, waves=2).desc[24:])
    1 tile uses 0.8%, 133 use 50%. Each multiple of 132 uses all of it.
    """
    sms, waves = positive_int(sms=sms, waves=waves)
    if waves > MOST_TEETH:
        raise ValueError(f"waves = {waves}: must be at most {MOST_TEETH}, for labels")
    feet = [Waves(wave * sms + 1, sms) for wave in range(waves)]
    points: list[tuple[float, float]] = []
    for foot in feet:
        points += [(foot.tiles, foot.used), (foot.waves * sms, 1.0)]
    marks: list = [svg.PlotLine(points, "math")]
    marks += [svg.Label(f.tiles, f.used, f"{f.used:.0%}", toward="s") for f in feet[1:]]
    x = svg.Axis("tiles", 0, waves * sms, log=False)
    y = svg.Axis("share of the SM time used", 0, 1, log=False)
    said = "".join(f", {foot.tiles:,} use {foot.used:.0%}" for foot in feet[1:])
    title = "Tiles and the used share"
    desc = (
        f"Of the time of {sms} SMs, 1 tile uses {feet[0].used:.1%}{said}. "
        f"Each multiple of {sms} uses all of it."
    )
    return picture(title, desc, svg.plot(title, desc, x, y, marks))


def _when(run: TileRun) -> tuple[float, float]:
    return run.start, run.end


def _blocks(sms: list[int], together: bool) -> list[tuple[int, int]]:
    """Blocks of adjacent SMs as (low, high), or one block for each SM.

    >>> _blocks([0, 1, 2, 5], together=True)
    [(0, 3), (5, 6)]
    """
    blocks: list[tuple[int, int]] = []
    for sm in sorted(sms):
        if together and blocks and blocks[-1][1] == sm:
            blocks[-1] = (blocks[-1][0], sm + 1)
        else:
            blocks.append((sm, sm + 1))
    return blocks
