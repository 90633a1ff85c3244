"""Tiles and waves: a simulation that knows no waves agrees with the closed form."""

import itertools
import json
import math
import random
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from shardmath.draw import figures
from shardmath.draw.objects.waves import timeline
from shardmath.draw.pictures import sawtooth
from shardmath.hardware import chips
from shardmath.hardware.roofline import matmul
from shardmath.hardware.waves import (
    TiledMatmul,
    TileSchedule,
    Waves,
    dispatch,
    tiles_of,
)

SEEDS = pytest.mark.parametrize("seed", range(40))
FIGURE = figures.find("waves")


@SEEDS
def test_the_simulation_takes_as_long_as_the_closed_form_says(seed):
    draw = random.Random(seed)
    tiles, sms = draw.randint(1, 700), draw.randint(1, 200)
    seconds = 2.0 ** draw.randint(-20, 3)  # sums of it are exact
    closed, run = Waves(tiles, sms), dispatch([seconds] * tiles, sms)
    assert run.seconds == closed.waves * seconds
    assert run.used == pytest.approx(closed.used)
    last = [r for r in run.runs if r.end == run.seconds]
    assert len(last) == closed.last


@SEEDS
def test_every_tile_runs_once_and_no_sm_does_two_things_at_a_time(seed):
    draw = random.Random(seed)
    durations = [draw.uniform(0.1, 2) for _ in range(draw.randint(1, 120))]
    run = dispatch(durations, draw.randint(1, 40))
    assert [r.tile for r in run.runs] == list(range(len(durations)))
    for sm in range(run.sms):
        own = sorted((r.start, r.end) for r in run.runs if r.sm == sm)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(own))
    for r, seconds in zip(run.runs, durations, strict=True):
        assert r.end - r.start == pytest.approx(seconds)


@SEEDS
def test_unequal_tiles_stay_within_the_bounds_of_list_scheduling(seed):
    """Graham (1969): no later than the ideal plus the longest tile, less its share."""
    draw = random.Random(seed)
    durations = [draw.uniform(0.1, 2) for _ in range(draw.randint(1, 200))]
    sms = draw.randint(1, 60)
    ideal, longest = sum(durations) / sms, max(durations)
    seconds = dispatch(durations, sms).seconds
    assert max(ideal, longest) <= seconds * (1 + 1e-12)
    assert seconds <= (ideal + longest * (1 - 1 / sms)) * (1 + 1e-12)


@SEEDS
def test_the_loss_to_the_last_wave_has_its_limits(seed):
    draw = random.Random(seed)
    tiles, sms = draw.randint(1, 10_000), draw.randint(1, 200)
    waves = Waves(tiles, sms)
    assert waves.waves == math.ceil(tiles / sms)
    assert 1 <= waves.last <= sms
    assert (waves.used == 1) == (tiles % sms == 0)
    # Time over ideal: below one wave more than the ideal, so it fades with the waves.
    assert 1 <= 1 / waves.used < 1 + sms / tiles


def test_one_tile_too_many_doubles_the_time():
    sms = chips.H100.fact("cores").value
    full, over = dispatch([1.0] * sms, sms), dispatch([1.0] * (sms + 1), sms)
    assert (full.seconds, full.used) == (1, 1)
    assert over.seconds == 2
    assert sum(r.start == 1 for r in over.runs) == 1  # one SM works, the rest wait


@SEEDS
def test_the_loss_is_that_of_the_tiles_times_that_of_the_waves(seed):
    draw = random.Random(seed)
    B, D, F = (draw.randint(1, 5000) for _ in range(3))
    tile = draw.choice([64, 128, 256]), draw.choice([64, 128, 256])
    op = TiledMatmul(
        B, D, F, draw.choice([chips.A100_80GB, chips.H100, chips.B200]), tile
    )
    assert op.efficiency == pytest.approx(op.covered * op.waves.used)
    assert op.efficiency <= 1 + 1e-12
    assert op.waves.tiles == tiles_of(B, F, tile)
    assert op.waves.tiles * tile[0] * tile[1] >= B * F
    run = dispatch([op.tile_seconds] * op.waves.tiles, op.waves.sms)
    assert run.seconds == pytest.approx(op.seconds)


def test_a_matmul_that_divides_evenly_reaches_the_peak():
    sms = chips.H100.fact("cores").value
    op = TiledMatmul(128 * sms, 512, 128, chips.H100)
    assert op.efficiency == pytest.approx(1)
    assert op.seconds == pytest.approx(op.ideal)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Waves(0, 132), "tiles = 0: must be a whole number from 1"),
        (lambda: Waves(5, 2.5), "sms = 2.5: must be a whole number"),
        (lambda: Waves(True, 2), "tiles = True"),
        (lambda: dispatch([], 4), "tiles = 0"),
        (lambda: dispatch([1.0, -1.0], 4), r"seconds\[1\] = -1.0"),
        (lambda: tiles_of(0, 8, (8, 8)), "B = 0"),
        (lambda: tiles_of(8, 8, 5), "tile = 5: must be two sizes"),
        (lambda: tiles_of(8, 8, (8, 0)), r"tile\[1\] = 0: must be a whole number"),
        (lambda: TiledMatmul(8, 8, 8, chips.H100, (128,)), r"tile = \(128,\): must be"),
        (lambda: TiledMatmul(8, 8, 8, chips.H100, (0.1, 8)), r"tile\[0\] = 0.1"),
        (lambda: TiledMatmul(1.5, 8, 8, chips.H100), "B = 1.5: must be a whole number"),
        (lambda: TiledMatmul(8, 10**400, 8, chips.H100), "D = 10+…: must be a finite"),
        (
            lambda: TiledMatmul(8, 8, 8, chips.TPU_V5P),
            "v5p: has TensorCores; must have SMs",
        ),
        (lambda: TiledMatmul(8, 8, 8, chips.H100, precision=[]), "must be one of fp64"),
        (lambda: sawtooth(132, waves=9), "waves = 9: must be at most 8"),
        (lambda: sawtooth(0), "sms = 0: must be a whole number from 1"),
        (lambda: TiledMatmul(8, 8, 8, chips.H800).waves, "no source states 'cores'"),
    ],
)
def test_bad_input_is_refused_with_what_is_valid(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_no_chip_is_a_type_error_as_in_a_roofline():
    for call in (lambda c: TiledMatmul(8, 8, 8, c), lambda c: matmul(8, 8, 8, c)):
        with pytest.raises(ValueError, match="chip = 'H100': must be a Chip"):
            call("H100")


def test_one_of_a_thing_has_no_plural():
    assert repr(Waves(1, 132)).startswith("1 tile on 132 SMs: 1 wave, the last with 1 ")
    assert dispatch([1.0], 1).summary.startswith("1 tile on 1 SM in 1 s")


@pytest.mark.parametrize("seconds", [5, None, (t for t in (1.0, 2.0))])
def test_the_times_of_the_tiles_are_a_list(seconds):
    with pytest.raises(ValueError, match=r"seconds = .*: must be a list"):
        dispatch(seconds, 4)


def test_tiles_are_counted_exactly_where_a_float_is_not():
    assert tiles_of(2**60 + 1, 1, (1, 1)) == 2**60 + 1
    assert tiles_of(3 * 10**17 + 1, 1, (3, 1)) == 10**17 + 1


def test_sms_beyond_the_tiles_stay_idle_and_take_no_room():
    run = dispatch([1.0, 2.0], 10**12)
    assert (run.seconds, run.sms, run.used) == (2, 10**12, 3 / 2e12)


def boxes(svg: str) -> list[dict[str, float]]:
    root = ElementTree.fromstring(svg)
    names = ("x", "y", "width", "height")
    found = root.iter("{http://www.w3.org/2000/svg}rect")
    return [{name: float(rect.get(name)) for name in names} for rect in found]


def test_the_timeline_shows_each_wave_and_the_idle_chip():
    """133 on 132: a block of all SMs, then a sliver; few SMs: a box for every tile."""
    first, second = boxes(timeline(dispatch([1.0] * 133, 132)))
    assert second["x"] > first["x"]
    assert first["height"] > 100 * second["height"]
    few: TileSchedule = dispatch([1.0, 2.0, 1.0, 1.0, 0.5], 2)
    drawn = boxes(timeline(few))
    assert len(drawn) == 5
    assert all(box["width"] > 0 and box["height"] > 0 for box in drawn)


def test_a_tile_ends_where_its_time_does_unless_another_follows():
    """Between two tiles a seam of paper; the last one reaches the end of the run."""
    (first, second), seconds = boxes(timeline(dispatch([1.0] * 133, 132))), 2.0
    unit = second["x"] - first["x"]  # of a second
    assert 0.98 * unit < first["width"] < unit
    assert second["width"] == pytest.approx(unit, abs=0.15)
    assert second["x"] + unit - first["x"] == pytest.approx(seconds * unit, abs=0.15)
    (only,) = boxes(timeline(dispatch([1.0] * 132, 132)))
    assert only["width"] == pytest.approx((416 - 12 - only["x"]) / 1.04, abs=0.15)


def test_the_sawtooth_stands_on_the_closed_form():
    """Every foot lies one tile behind full waves, every tip is at the top."""
    (svg,) = sawtooth(132, waves=6).panels
    ((line,),) = [re.findall('<polyline[^>]* points="([^"]*)"', svg)]
    places = [tuple(map(float, point.split(","))) for point in line.split()]
    left, top, bottom = places[0][0], places[1][1], 300 - 48
    across = (416 - 12 - left) / (792 - 1)
    for n, (x, y) in enumerate(places):
        wave, tip = n // 2, n % 2
        waves = Waves(132 * (wave + 1) if tip else 132 * wave + 1, 132)
        assert x == pytest.approx(left + across * (waves.tiles - 1), abs=0.15)
        assert (bottom - y) / (bottom - top) == pytest.approx(waves.used, abs=0.01)
    assert re.findall(r">(\d+%)<", svg) == ["50%", "67%", "75%", "80%", "83%"]


def settings(seed: int) -> dict:
    draw = random.Random(seed)
    return {
        control.name: draw.choice(
            control.options if isinstance(control, figures.Choice) else control.stops
        )
        for control in FIGURE.controls
    }


@pytest.mark.parametrize("seed", range(12))
def test_the_live_figure_shows_the_numbers_of_the_model(seed):
    given = settings(seed)
    drawing = FIGURE.draw(**given)
    ElementTree.fromstring(drawing.svg)
    data = json.loads(json.dumps(drawing.data, allow_nan=False))
    tile = tuple(int(side) for side in given["tile"].split(" × "))
    op = TiledMatmul(given["B"], 4096, given["F"], chips.find(given["chip"]), tile)
    assert data["seconds"] == op.seconds == pytest.approx(data["simulated"])
    assert (data["tiles"], data["waves"]) == (op.waves.tiles, op.waves.waves)
    assert data["efficiency"] == pytest.approx(data["covered"] * data["used"])
    assert str(data["tiles"]) in drawing.readout[1][1].replace(",", "")


def test_the_live_figure_opens_on_the_one_tile_too_many():
    data = FIGURE.draw().data
    assert (data["tiles"], data["sms"], data["waves"], data["last"]) == (133, 132, 2, 1)


@pytest.mark.parametrize("convert", [np.int32, np.int64])
def test_numbers_of_fixed_width_do_not_overflow(convert):
    """2·b·f·D of a large product is past 2³¹."""
    n, side = convert(65_536), convert(256)
    op = TiledMatmul(n, n, n, chips.H100, (side, side))
    plain = TiledMatmul(65_536, 65_536, 65_536, chips.H100, (256, 256))
    assert (op.seconds, op.ideal, op.waves) == (plain.seconds, plain.ideal, plain.waves)
    assert repr(Waves(convert(133), convert(132))) == repr(Waves(133, 132))
    assert dispatch(np.ones(133, "float32"), convert(132)).seconds == 2.0
    assert tiles_of(n, n, (convert(1), convert(1))) == 65_536**2


@pytest.mark.parametrize(
    ("sms", "boxes", "filled"),
    [(8, 8, 0.76), (40, 40, 0.76), (41, 1, 1), (132, 1, 1)],
)
def test_few_sms_are_drawn_apart_and_many_in_step_as_one_block(sms, boxes, filled):
    """Up to 40 SMs each has a box of its own with 0.12 free on both sides; then those
    in step join, since a seam could not be seen."""
    drawn = re.findall(
        r'<rect x="56" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"',
        timeline(dispatch([1.0] * sms, sms)),
    )
    boxed = [(float(top), float(height)) for top, height in drawn]
    assert len(boxed) == boxes
    pitch = 222 / boxes  # of the plot, in pixels
    assert all(height == pytest.approx(filled * pitch, abs=0.15) for _, height in boxed)
    tops = sorted(top for top, _ in boxed)
    assert all(
        b - a == pytest.approx(pitch, abs=0.15) for a, b in itertools.pairwise(tops)
    )


def test_absurdly_many_tiles_are_refused_at_once():
    """A time for each of a billion tiles would be read for minutes."""
    with pytest.raises(
        ValueError, match="1,000,000,000 tiles: must have at most 262,144"
    ):
        dispatch(range(1, 10**9 + 1), 132)
