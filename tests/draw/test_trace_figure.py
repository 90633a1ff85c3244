"""The live figure "trace": kept schedules, and what has happened at each moment."""

from functools import partial

import drawn
import pytest
import traces as tool

from shardmath.draw import figures
from shardmath.draw.figures.trace import ALL, FSDP, PROGRAMS, QUICK, SCATTERED, SUMMED
from shardmath.draw.picture import Picture
from shardmath.hardware import chips
from shardmath.referee import hlo

TRACE = figures.find("trace")
MOMENTS = TRACE.control("moment").stops


def at(program, moment):
    return TRACE.draw(program=program, moment=moment).data["traces"][program]


def test_its_schedules_are_those_that_are_kept():
    """Whoever compiles the programs anew must write the figure's file anew."""
    assert tool.TRACES.read_text("utf-8") == tool.text()


def test_its_ends_are_those_of_the_kept_schedules_played_in_full():
    """Without fetches and lines, playing gives the same times to the last digit."""
    clock = partial(hlo.seconds, chip=chips.TPU_V5E)
    for name, (program, options) in tool.CASES.items():
        row = tool.kept(program, options)
        ops = [hlo.ScheduledOp(**row["ops"][n]) for n in row["order"]]
        whole = hlo.play(ops, clock)
        end = at(name, MOMENTS[-1])
        assert end["seconds"] == pytest.approx(whole.seconds)
        assert end["overlap"] == pytest.approx(whole.overlap)


@pytest.mark.parametrize("program", [*PROGRAMS, ALL])
@pytest.mark.parametrize("moment", [0, 6, 12, 20])
def test_every_setting_can_be_read(program, moment):
    drawing = TRACE.draw(program=program, moment=moment)
    drawn.check(Picture("trace", drawing.summary, (drawing.svg,)))


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_counted_grows_and_adds_up(program):
    seen = [at(program, moment) for moment in MOMENTS]
    for name in ("math", "network", "overlap", "exposed"):
        values = [one[name] for one in seen]
        assert values == pytest.approx(sorted(values)), name
        assert values[0] == 0
    for one in seen:
        assert one["overlap"] + one["exposed"] == pytest.approx(one["network"])
        assert one["overlap"] <= min(one["math"], one["network"]) + 1e-12
    assert seen[-1]["exposed"] == pytest.approx(seen[-1]["all exposed"])


def test_what_blocks_overlaps_nothing_and_what_is_fetched_early_does():
    last = {name: at(name, MOMENTS[-1]) for name in PROGRAMS}
    assert last[QUICK]["overlap"] == last[SUMMED]["overlap"] == 0
    assert last[FSDP]["exposed"] < last[FSDP]["overlap"]
    assert 0 < last[SCATTERED]["overlap"] < last[SCATTERED]["exposed"]
