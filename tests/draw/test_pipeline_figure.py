"""Schedules drawn and played: what is on the picture is what was played."""

import json
import re

import drawn
import pytest

from shardmath.draw import figures
from shardmath.draw.figures.pipeline import (
    ALONE,
    BUBBLES,
    NONE,
    SCHEDULES,
    SHOWN,
    TOGETHER,
    closed_form,
    nearest,
)
from shardmath.draw.live.static_view import first_answers
from shardmath.draw.objects.pipeline import LEFT
from shardmath.draw.objects.pipeline_player import (
    HELD,
    PEAK,
    RIGHT,
    Lane,
    clock,
    player,
)
from shardmath.draw.picture import picture
from shardmath.draw.pictures import timeline
from shardmath.training.pipeline_schedules import (
    NAMES,
    idle,
    progress,
    schedule,
    windows,
)
from shardmath.training.pipeline_schedules.named import LOOPED

FIGURE = figures.find("pipeline")


def cells(picture) -> int:
    """Boxes of ops, without those of the legend."""
    paths = drawn.elements(picture.panels[0], "path")
    boxes = [box for path in paths for box in re.findall("M[^z]*z", path.get("d"))]
    return len(boxes) - len(drawn.words(picture) & {
        "forward", "backward", "inputs I", "weights W"})  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_op_is_drawn_once(name):
    one = schedule(name, 4, 8)
    picture = timeline(one)
    drawn.check(picture)
    assert cells(picture) == sum(map(len, one.orders))
    assert f"idle over busy {one.bubble:.1%}" in drawn.words(picture)
    assert {f"{held:g}" for held in one.in_flight} <= drawn.words(picture)


@pytest.mark.parametrize(("name", "p", "M"), [("1f1b", 16, 64), ("dualpipe", 8, 20)])
def test_large_ones_fit(name, p, M):
    drawn.check(timeline(schedule(name, p, M)))


@pytest.mark.parametrize("name", NAMES)
def test_a_moment_shows_what_has_begun_and_what_is_held_then(name):
    one = schedule(name, 4, 8)
    for until in (0.5, 7.25, one.seconds / 2):
        picture = timeline(one, until)
        begun = [s for spans in one.spans for s in spans if s.start < until]
        assert cells(picture) == len(begun)
        for spans in one.spans:
            held = 0.0
            for op, start, end in spans:
                held += one.share * (op.kind == "F" and start < until)
                held -= one.share * (op.kind in "BW" and end <= until)
            assert f"{held:g}" in drawn.words(picture)


def test_one_scale_compares_two_schedules():
    """The shorter one of two ends before the edge."""
    short, long = schedule("zb-h1", 4, 8), schedule("gpipe", 4, 8)
    drawn_wide = timeline(short).panels[0]
    assert timeline(short, seconds=long.seconds).panels[0] != drawn_wide
    assert timeline(long, seconds=1).panels == timeline(long).panels


# The player -----------------------------------------------------------------------


PAIRS = [("GPipe", "1F1B"), ("ZB-H1", "ZB-H2"), ("DualPipe", "DualPipeV"),
         ("1F1B", NONE), ("interleaved 1F1B", "breadth-first")]  # fmt: skip


def lanes(one: figures.Drawing) -> list[dict]:
    """The numbers of each schedule, as JSON has them."""
    return json.loads(json.dumps(one.data))["pipeline"]["schedules"]


def counters(svg: str, stages: int) -> list[tuple[str, str]]:
    """The two numbers at the right of each stage, from top to bottom."""
    found = {}
    for node in drawn.elements(svg, "text"):
        x = float(node.get("x"))
        if node.get("text-anchor") == "end" and x > RIGHT:
            found.setdefault(float(node.get("y")), {})[x] = node.text
    rows = [found[y] for y in sorted(found) if "peak" not in found[y].values()]
    assert len(rows) % stages == 0
    return [(row[HELD], row[PEAK]) for row in rows]


@pytest.mark.parametrize(("name", "second"), PAIRS)
@pytest.mark.parametrize("between", [TOGETHER, ALONE])
def test_every_step_says_what_is_held_and_idle_then(name, second, between):
    """The picture's own words, against the ops that were played."""
    together = between == TOGETHER
    last = FIGURE.draw(name=name, second=second, between=between).last
    for moment in range(last + 1):
        drawing = FIGURE.draw(name=name, second=second, between=between, moment=moment)
        found = lanes(drawing)
        time = drawing.data["pipeline"]["time"]
        rows = counters(drawing.svg, 4)
        texts = {said for said, _ in drawn.texts(drawing.svg)}
        for n, lane in enumerate(found):
            one = schedule(lane["schedule"], 4, 8)
            at = progress(one, time, together)
            numbers = [(f"{stage.held:.3g}", f"{stage.peak:.3g}") for stage in at]
            assert rows[4 * n : 4 * n + 4] == numbers
            share = sum(stage.waited for stage in at) / sum(one.busy)
            line = next(text for text in texts if f"{share:.1%} of the work" in text)
            units = sum(stage.waited for stage in at) / 4
            assert line.startswith(f"idle {units:.3g} unit")
            end = max(end for _, end in windows(one, together))
            assert f"{min(time, end):.3g} of {end:.3g} units" in texts


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_idle_share_at_the_end_is_the_bubble_of_the_closed_form(name):
    for stages, microbatches in ((4, 8), (8, 16), (2, 6)):
        of = {"name": name, "stages": stages, "microbatches": microbatches}
        start, end = FIGURE.draw(**of), FIGURE.draw(**of, moment=SHOWN)
        assert FIGURE.draw(**of, moment=start.last).svg == end.svg
        (found,) = lanes(end)
        work = 3 * microbatches
        assert found["share"] == found["bubble"]
        assert found["share"] == pytest.approx(found["closed_form"] / work)
        assert found["waits"] == pytest.approx(found["closed_form"])
        assert max(found["peaks"]) == found["peak"] == found["published"]
        (begun,) = lanes(start)
        assert (begun["share"], begun["waited"], begun["worked"]) == (0, 0, 0)
        assert set(begun["held"]) == {0}


@pytest.mark.parametrize(("of", "together"), BUBBLES)
def test_the_closed_form_in_letters_is_the_one_in_numbers(of, together):
    """What is written is read as arithmetic, and compared with `idle`."""
    text, value = BUBBLES[of, together]
    name = {of: name for name, of in SCHEDULES.items()}[of]
    read = re.sub(r"([v36])M", r"\1*M", text).replace("−", "-") or "0"
    for p, M, v in ((2, 8, 2), (4, 16, 3), (6, 24, 4)):
        assert eval(read, {"p": p, "M": M, "v": v}) == pytest.approx(value(p, M, v))
        assert closed_form(name, p, M, v, together) == text
        chunks = v if of in LOOPED else None
        said = idle(of, p, M, chunks, together=together)
        assert said / (3 * M) == pytest.approx(value(p, M, v))
    line = next(t for t, _ in drawn.texts(FIGURE.draw(name=name, moment=SHOWN).svg)
                if t.startswith("idle "))  # fmt: skip
    if together:
        assert line.endswith(f"of the work = {text}")


def test_letters_that_do_not_hold_are_left_out():
    """Fewer microbatches than the closed form is for."""
    assert closed_form("breadth-first", 8, 4, 2, True) == ""
    assert closed_form("ZB-H1", 8, 4, 2, True) == ""


@pytest.mark.parametrize("name", SCHEDULES)
def test_what_is_red_is_what_a_stage_waits(name):
    """Idle boxes that the veil has left are as wide as the idle time until then."""
    one = schedule(SCHEDULES[name], 4, 8)
    for together in (True, False):
        length = clock([Lane(name, one)], together)
        scale = (RIGHT - LEFT) / length
        for time in (0, length / 3, length):
            svg = player([Lane(name, one)], time, together).panels[0]
            veil = drawn.keyed(svg, "veil")["veil 0"]
            until = float(veil.get("x"))
            assert until == pytest.approx(LEFT + scale * time, abs=0.06)
            red = next(
                path.get("d")
                for path in drawn.elements(svg, "path")
                if "hue8" in path.get("fill")
            )
            seen = 0.0
            for x, wide in re.findall(r"M([\d.]+) [\d.]+h([\d.]+)v", red):
                left, right = float(x), float(x) + float(wide)
                seen += max(0, min(right, until) - left)
            waited = sum(at.waited for at in progress(one, time, together))
            assert seen / scale == pytest.approx(waited, abs=0.15)


@pytest.mark.parametrize(("name", "second"), PAIRS[:3])
def test_two_schedules_have_one_clock(name, second):
    """One scale and one playhead: the longer one fills the width."""
    drawing = FIGURE.draw(name=name, second=second, moment=5)
    first, other = lanes(drawing)
    head = drawn.keyed(drawing.svg, "playhead")["playhead"].get("d")
    places = {float(x) for x in re.findall(r"[ML]([\d.]+) ", head)}
    veils = drawn.keyed(drawing.svg, "veil")
    assert places == {float(veil.get("x")) for veil in veils.values()}
    assert sorted(veils) == ["veil 0", "veil 1"]
    longest = max(first["end"], other["end"])
    scale = (RIGHT - LEFT) / longest
    (at,) = places
    time = drawing.data["pipeline"]["time"]
    assert at == pytest.approx(LEFT + scale * time, abs=0.06)
    ends = {
        float(x)
        for path in drawn.elements(drawing.svg, "path")
        if path.get("stroke-width") == "2" and "V" in path.get("d")
        for x in re.findall(r"M([\d.]+) ", path.get("d"))
    }
    said = [LEFT + scale * lane["end"] for lane in (first, other)]
    assert sorted(ends) == pytest.approx(sorted(set(said)), abs=0.06)


def test_a_schedule_compared_with_itself_is_drawn_once():
    assert FIGURE.draw(second="1F1B").svg == FIGURE.draw().svg


def exist(names: list[str], p: int, M: int, chunks: int) -> bool:
    for name in names:
        of = SCHEDULES[name]
        try:
            schedule(of, p, M, chunks if of in LOOPED else None)
        except ValueError:
            return False
    return True


@pytest.mark.parametrize(
    "names",
    [
        ["DualPipe"],
        ["overlapped 1F1B"],
        ["DualPipeV"],
        ["interleaved 1F1B", "DualPipe"],
    ],
)
def test_sizes_give_way_to_the_nearest_and_the_figure_says_so(names):
    """No setting empties the picture, and none that exists is changed."""
    sizes = [(p, M) for p in range(2, 9) for M in range(1, 33)]
    there = [size for size in sizes if exist(names, *size, 3)]
    for p, M in sizes[::3]:
        found_p, found_M, note = nearest(names, p, M, 3)
        assert (found_p, found_M) in there
        if (p, M) in there:
            assert (found_p, found_M, note) == (p, M, [])
            continue
        assert abs(found_p - p) == min(abs(other - p) for other, _ in there)
        beside = [other for stage, other in there if stage == found_p]
        assert abs(found_M - M) == min(abs(other - M) for other in beside)
        assert note[0].endswith(
            f"The picture shows {found_p} stages and {found_M} microbatches."
        )
        second = names[1] if len(names) > 1 else NONE
        drawing = FIGURE.draw(name=names[0], second=second, stages=p, microbatches=M,
                              chunks=3)  # fmt: skip
        assert drawing.summary.startswith(note[0])
        used = drawing.data["pipeline"]["used"]
        assert used == {"stages": found_p, "microbatches": found_M}
        drawn.parsed(drawing.svg)


def test_what_gives_way_is_named_as_readers_know_it():
    summary = FIGURE.draw(name="interleaved 1F1B", microbatches=7).summary
    assert summary.startswith(
        "Interleaved 1F1B needs a multiple of 4 microbatches for 4 stages, not 7. "
        "The picture shows 4 stages and 8 microbatches."
    )


@pytest.mark.parametrize(("name", "second"), PAIRS)
def test_chunks_that_nobody_uses_are_said_to_be_unused(name, second):
    used = {SCHEDULES[one] for one in (name, second) if one != NONE} & set(LOOPED)
    few, many = (FIGURE.draw(name=name, second=second, chunks=v) for v in (2, 4))
    assert (few.svg == many.svg) == (not used)
    assert ("chunks" in few.idle) == (not used)


def test_who_holds_the_weights_twice_is_said():
    summary = FIGURE.draw(name="DualPipe", second="DualPipeV").summary
    assert "DualPipe holds the weights twice." in summary
    assert "DualPipeV holds the weights twice." not in summary


def test_the_presets_show_what_they_are_called():
    """At the end of the step, where all of them have played."""
    ends = {
        name: lanes(FIGURE.draw(**{**preset, "moment": SHOWN}))
        for name, preset in FIGURE.presets.items()
    }
    for name, preset in FIGURE.presets.items():
        assert preset["moment"] == 0, name
        note = nearest([preset["name"], preset["second"]], preset["stages"],
                       preset["microbatches"], preset.get("chunks", 2))[2]  # fmt: skip
        assert not note, name
    same, chunks, memory, weights = ends.values()
    assert same[0]["bubble"] == same[1]["bubble"]
    assert same[0]["peak"] > same[1]["peak"]
    assert chunks[0]["bubble"] == pytest.approx(2 * chunks[1]["bubble"])
    assert memory[1]["bubble"] == 0 < memory[0]["bubble"]
    assert memory[1]["peak"] > memory[0]["peak"]
    assert (weights[0]["weights"], weights[1]["weights"]) == (2, 1)


@pytest.mark.parametrize("moment", [0, 3, SHOWN])
@pytest.mark.parametrize(
    ("stages", "microbatches"), [(2, 1), (4, 8), (8, 16), (8, 32), (5, 7)]
)
def test_the_player_is_legible(stages, microbatches, moment):
    """In all sizes: large letters that lie on nothing, and inside the picture."""
    for first, second in (("GPipe", "ZB-H1"), ("overlapped 1F1B", "DualPipeV")):
        drawing = FIGURE.draw(name=first, second=second, stages=stages, chunks=3,
                              microbatches=microbatches, moment=moment)  # fmt: skip
        root = drawn.parsed(drawing.svg)
        texts = [root.find(f"{drawn.SVG}{tag}").text for tag in ("title", "desc")]
        drawn.check(picture(*texts, drawing.svg))


def test_a_page_carries_every_step():
    """So that it can play before Python has come."""
    settings = [json.loads(key) for key in first_answers("pipeline", {})]
    steps = FIGURE.draw().last + 1
    assert [one[0] for one in settings[:steps]] == list(range(steps))


def test_every_schedule_can_be_chosen():
    assert set(SCHEDULES.values()) == set(NAMES)
