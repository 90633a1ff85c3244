"""How far a schedule has come: counted again op by op, and what it comes to."""

from itertools import pairwise

import pytest

from shardmath.training.pipeline_schedules import (
    NAMES,
    PipelineSchedule,
    idle,
    progress,
    schedule,
    windows,
)


def moments(one: PipelineSchedule) -> list[float]:
    """Every begin and end of an op, and the middle between two of them."""
    ends = {time for spans in one.spans for span in spans for time in span[1:]}
    known = sorted(ends)
    between = ((a + b) / 2 for a, b in pairwise(known))
    return sorted({*known, *between})


def holds(one: PipelineSchedule, stage: int, time: float) -> float:
    """Passes that have begun and whose last backward op has not ended, in shares."""
    begun, last = {}, {}
    for op, start, end in one.spans[stage]:
        passed = op.microbatch, op.chunk
        if op.kind == "F":
            begun[passed] = start
        last[passed] = end
    return one.share * sum(start < time < last[key] for key, start in begun.items())


@pytest.mark.parametrize("name", NAMES)
def test_every_moment_is_counted_again(name):
    """What a stage has worked, waited, holds and held, at all begins and ends."""
    one = schedule(name, 4, 8)
    most = [0.0] * 4
    for time in moments(one):
        for stage, at in enumerate(progress(one, time)):
            slots = {(s.start, s.end) for s in one.spans[stage]}  # a pair is one
            worked = sum(max(0, min(end, time) - start) for start, end in slots)
            assert at.worked == pytest.approx(worked)
            assert at.waited == pytest.approx(time - worked)
            held = holds(one, stage, time)
            assert at.held == pytest.approx(held), (stage, time)
            assert at.held <= at.peak
            most[stage] = max(most[stage], held)
            assert at.peak == pytest.approx(most[stage])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("together", [True, False])
def test_at_the_end_of_a_step_it_is_the_bubble(name, together):
    for p, M in ((2, 4), (4, 8), (4, 12), (8, 16)):
        one = schedule(name, p, M)
        spent = windows(one, together)
        done = progress(one, max(end for _, end in spent), together)
        said = idle(name, p, M, together=together)
        assert [at.waited for at in done] == pytest.approx([said] * p)
        assert [at.peak for at in done] == pytest.approx(one.in_flight)
        assert {at.held for at in done} == {0}
        lengths = {end - begin for begin, end in spent}
        assert lengths == {one.seconds if together else one.period}


def test_a_schedule_has_not_begun_before_its_begin():
    for at in progress(schedule("zb-h2", 4, 8), -1, together=False):
        assert (at.worked, at.waited, at.held, at.peak) == (0, 0, 0, 0)


def test_a_time_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="time = nan: must be a time in the unit"):
        progress(schedule("1f1b", 2, 2), float("nan"))
