"""The live figure of a crash: which save counts, and what is done again."""

import drawn
import pytest

from shardmath.draw import figures
from shardmath.draw.figures.crash import KILLED, RESTART, SILENT, life
from shardmath.draw.picture import Picture

CRASH = figures.find("crash")
EXTREMES = [
    {"crash": 1},
    {"crash": 20, "how": SILENT, "heartbeat": 10, "every": 10, "write": 6},
    {"crash": 20, "how": KILLED, "every": 2, "write": 6},
    {"crash": 2, "how": SILENT, "heartbeat": 2, "every": 2, "write": 1},
]


@pytest.mark.parametrize("params", [{}, *CRASH.presets.values(), *EXTREMES])
def test_a_crash_can_be_read(params):
    drawing = CRASH.draw(**params)
    drawn.check(Picture("crash", drawing.summary, (drawing.svg,)))


@pytest.mark.parametrize("crash", CRASH.control("crash").stops)
def test_words_stay_apart_wherever_the_crash_is(crash):
    for how in (KILLED, SILENT):
        drawing = CRASH.draw(how=how, crash=crash)
        drawn.check(Picture("crash", drawing.summary, (drawing.svg,)))


@pytest.mark.parametrize("every", range(2, 11))
@pytest.mark.parametrize("write", range(1, 7))
def test_only_a_complete_save_counts(every, write):
    """Played again second by second, in another way than the figure does it."""
    for crash in range(1, 21):
        run = life(crash - 0.5, every, write)
        clock, steps, busy_until, whole = 0, 0, 0, 0
        pending = []
        while clock + 1 <= crash - 0.5:
            clock, steps = clock + 1, steps + 1
            if steps % every == 0:
                clock = max(clock, busy_until)
                busy_until = clock + write
                pending.append((busy_until, steps))
        for done, step in pending:
            if done <= crash - 0.5:
                whole = step
        assert run.resumes == whole


def test_a_step_under_way_is_lost_in_part():
    run = life(12.5, every=5, write=1)
    assert (run.begun, run.resumes, run.again) == (13, 10, 2.5)


def test_an_incomplete_save_costs_the_steps_of_another_interval():
    soon, late = (CRASH.draw(crash=13, write=write).data for write in (1, 4))
    assert (soon["resumes"], late["resumes"]) == (10, 5)
    assert late["again"] == soon["again"] + 5


def test_a_hang_costs_the_heartbeat_more():
    killed, silent = (CRASH.draw(how=how).data for how in (KILLED, SILENT))
    assert silent["back"] - killed["back"] == CRASH.control("heartbeat").default
    assert killed["back"] == 12.5 + RESTART + 2.5


def test_a_save_waits_for_the_one_before():
    """With saves of six seconds every two steps, the training waits for the disk."""
    run = life(19.5, every=2, write=6)
    starts = [start for _, start, _ in run.saves]
    ends = [end for *_, end in run.saves]
    assert all(start >= end for start, end in zip(starts[1:], ends, strict=False))
    assert run.begun < 20


def test_the_heartbeat_is_idle_for_a_killed_process():
    assert "heartbeat" in CRASH.draw(how=KILLED).idle
    assert not CRASH.draw(how=SILENT).idle
