"""The race of strategies: its table is the planner's, and nothing tells too early."""

import itertools
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import drawn
import pytest

from shardmath.base.units import show
from shardmath.draw import figures
from shardmath.draw.figures.race import NAMES, NO_BET, SHOWN, Race, segments
from shardmath.draw.live.static_view import first_answers
from shardmath.draw.objects.race import (
    BATCHES,
    FAMILIES,
    LARGE,
    MACHINES,
    MODELS,
    UNEVEN,
    RaceEntry,
    runners,
    table,
)
from shardmath.draw.objects.race_search import AXES, entry, machine_of, usable
from shardmath.draw.picture import Picture
from shardmath.hardware.mesh import Mesh
from shardmath.planner import plan
from shardmath.planner.patterns import ORDER
from shardmath.training import data, step
from shardmath.training.job import usual_formats
from shardmath.training.prediction import PARTS

FIGURE = figures.find("race")
RACES = list(itertools.product(MODELS, MACHINES))
QUICK = [race for race in RACES if race[0] != "DeepSeek-V3"]
PRESETS = [(preset["model"], preset["machine"]) for preset in FIGURE.presets.values()]


def as_written(one: RaceEntry) -> dict:
    """An entry as the file holds it."""
    return json.loads(json.dumps(vars(one)))


def near(one: dict, other: dict) -> bool:
    """Whether two entries are the same, up to the last digits of numbers."""
    numbers = {"held", "room", "bound", "parts"}
    words = [{k: v for k, v in each.items() if k not in numbers}
             for each in (one, other)]  # fmt: skip
    flat = [each["parts"] | {k: each[k] for k in ("held", "room", "bound")}
            for each in (one, other)]  # fmt: skip
    return words[0] == words[1] and flat[0] == pytest.approx(flat[1], rel=1e-9)


# The table ---------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "machine"), RACES)
@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "mixture"])
def test_the_table_holds_what_the_search_finds(model, machine, family):
    """Bytes and seconds come from the derivation and the prediction. If this fails
    after a change of either: python tools/race.py."""
    found = as_written(entry(family, model, machine))
    assert near(found, {"warnings": []} | table()[model][machine][family])


@pytest.mark.parametrize(("model", "machine"), [one for one in PRESETS if one in QUICK])
def test_the_mixture_is_what_the_planner_recommends(model, machine):
    found = as_written(entry("mixture", model, machine))
    written = table()[model][machine]["mixture"]
    assert near(found, written)
    seqs, seq = BATCHES[model]
    best = plan(MODELS[model], MACHINES[machine], seqs * seq, seq).best
    assert written["sizes"] == best.axes
    assert sum(written["parts"].values()) == pytest.approx(best.seconds)


@pytest.mark.parametrize(("model", "machine"), RACES)
def test_every_mixture_is_the_best_step_on_its_mesh(model, machine):
    """Also where the whole search would take too long here: bytes and seconds of the
    mesh that is written down."""
    written = table()[model][machine]["mixture"]
    seqs, seq = BATCHES[model]
    sizes = dict.fromkeys(ORDER, 1) | written["sizes"]
    found = plan(MODELS[model], MACHINES[machine], seqs * seq, seq, fixed=sizes)
    if written["why"]:
        assert not found.ranking
        return
    derived = found.best.prediction.seconds
    assert sum(written["parts"].values()) == pytest.approx(derived)
    assert written["held"] == pytest.approx(found.best.memory.total)
    assert written["bound"] == pytest.approx(found.best.lower)
    assert written["settings"] == found.best.settings


def test_the_table_has_every_race_and_no_other():
    assert {(m, machine) for m, some in table().items() for machine in some} == {*RACES}
    for model, machine in RACES:
        assert tuple(table()[model][machine]) == FAMILIES == tuple(AXES)


@pytest.mark.parametrize(("model", "machine"), RACES)
def test_every_lane_uses_all_chips_and_only_its_own_axes(model, machine):
    for one in runners(model, machine):
        sizes = one.entry.sizes
        assert {*sizes} <= {*AXES[one.family]}
        product = 1
        for size in sizes.values():
            product *= size
        assert product == machine_of(machine).chips or not sizes
        assert one.entry.room == usable(machine)
        if one.runs:
            assert one.entry.held <= one.entry.room
            assert one.prediction.low >= one.entry.bound > 0


def test_a_lane_is_the_step_that_a_reader_would_derive():
    """Data parallelism by hand: one derivation, no search."""
    machine = machine_of("16,384 H100")
    mesh = Mesh(machine, {"data": machine.chips})
    formats = usual_formats(machine.chip, "bf16")
    model = MODELS["Llama 3.1 405B"]
    one = step(data("data"), model, mesh, machine.chips, 8192, attention="causal",
               formats=formats)  # fmt: skip
    lane = runners("Llama 3.1 405B", "16,384 H100")[0]
    assert lane.entry.held == pytest.approx(one.memory.total)
    assert lane.entry.why == (
        f"{LARGE}: {show(one.memory.total, 'capacity')} of "
        f"{show(0.9 * machine.chip.memory_bytes, 'capacity')}"
    )


# The figure --------------------------------------------------------------------------


def test_what_does_not_fit_says_so_at_the_start():
    drawing = FIGURE.draw(model="Llama 3.1 405B", machine="16,384 H100")
    said = drawn.words(Picture("t", drawing.summary, (drawing.svg,)))
    assert sum(text.startswith(LARGE) for text in said) == 3
    assert f"{UNEVEN}: 2,048 sequences on 16,384 chips" in said
    assert "4 lanes do not start" in drawing.summary
    found = drawing.data["race"]["lanes"]["tensor"]
    assert found["held"] > 10 * found["room"]


@pytest.mark.parametrize(("model", "machine"), RACES)
def test_without_a_bet_nothing_tells_who_wins(model, machine):
    """No time, no order, no length: the lanes stand at the start, whatever the
    playhead says."""
    drawing = FIGURE.draw(model=model, machine=machine)
    later = FIGURE.draw(model=model, machine=machine, moment=SHOWN)
    assert drawing == later
    assert drawing.last == 0
    assert drawing.data["race"]["order"] == []
    told = [drawing.summary, drawing.svg, json.dumps(drawing.data),
            *itertools.chain(*drawing.readout)]  # fmt: skip
    for one in runners(model, machine):
        if one.runs:
            spoiler = show(one.prediction.seconds, "s")
            assert not any(f">{spoiler}<" in text or f" {spoiler}" in text
                           for text in told)  # fmt: skip
            assert "seconds" not in drawing.data["race"]["lanes"][one.family]
            (mark,) = drawn.keyed(drawing.svg, f"{one.family} runner").values()
            assert float(mark.get("cx")) == 6
    assert not drawn.keyed(drawing.svg, "playhead")


@pytest.mark.parametrize(("model", "machine"), PRESETS)
def test_at_the_end_all_lanes_are_there_with_time_and_band(model, machine):
    drawing = FIGURE.draw(model=model, machine=machine, bet="FSDP", moment=SHOWN)
    running = [one for one in runners(model, machine) if one.runs]
    order = sorted(running, key=lambda one: one.prediction.seconds)
    found = drawing.data["race"]
    assert found["order"] == [one.family for one in order]
    assert found["now"] == pytest.approx(order[-1].prediction.seconds)
    for place, one in enumerate(order):
        likely, lane = one.prediction, found["lanes"][one.family]
        assert lane["seconds"] == likely.seconds
        assert lane["band"] == [likely.low, likely.high]
        said = drawn.words(Picture("t", drawing.summary, (drawing.svg,)))
        assert f"{place + 1}. {show(likely.seconds, 's')}" in said
        assert drawn.keyed(drawing.svg, f"{one.family} band")
    assert drawing.last == SHOWN
    winner = NAMES[order[0].family]
    result = drawing.summary.split(" in a step. ")[1]
    assert result.lower().startswith(f"{winner.lower()} finishes first by prediction")


def test_lanes_advance_with_the_clock_and_stop_at_their_end():
    marks = []
    for moment in range(SHOWN + 1):
        svg = FIGURE.draw(bet="pipeline", moment=moment).svg
        marks.append({name: float(node.get("cx"))
                      for name, node in drawn.keyed(svg, "").items()
                      if name.endswith("runner")})  # fmt: skip
    for name in marks[0]:
        places = [mark[name] for mark in marks]
        assert places == sorted(places)
        assert places[0] == 6 < places[-1]
    last = marks[-1]
    times = {f"{one.family} runner": one.prediction.seconds
             for one in runners("Llama 3.1 8B", "64 TPU v5p") if one.runs}  # fmt: skip
    slowest = max(times, key=times.get)
    for name, seconds in times.items():
        ratio = (last[name] - 6) / (last[slowest] - 6)
        assert ratio == pytest.approx(seconds / times[slowest], abs=0.002)


@pytest.mark.parametrize("moment", [0, 7, SHOWN])
def test_a_bar_ends_where_its_runner_is(moment):
    """Blocks that are still to come take no room, and those behind leave no gap."""
    svg = FIGURE.draw(bet="FSDP", moment=moment).svg
    for one in runners("Llama 3.1 8B", "64 TPU v5p"):
        if one.runs:
            kinds = ("math", "HBM", "network", "waiting")
            paths = [
                node.get("d")
                for kind in kinds
                for node in drawn.keyed(svg, f"{one.family} {kind}").values()
            ]
            cells = re.findall(r"M([\d.]+) [\d.]+h(-?[\d.]+)v", " ".join(paths))
            (mark,) = drawn.keyed(svg, f"{one.family} runner").values()
            come = float(mark.get("cx")) - 6
            assert all(float(wide) >= 0 for _, wide in cells)
            total = sum(float(wide) for _, wide in cells)
            assert total == pytest.approx(come, abs=0.05 * len(cells))
            assert max(float(x) + float(w) for x, w in cells) <= come + 6.2


def test_a_lane_is_drawn_as_long_as_it_takes_in_the_colours_of_its_parts():
    for model, machine in RACES:
        for one in runners(model, machine):
            if one.runs:
                likely = one.prediction
                found: dict[str, float] = {}
                for kind, seconds in segments(likely.parts, likely.seconds):
                    found[kind] = found.get(kind, 0.0) + seconds
                assert sum(found.values()) == pytest.approx(likely.seconds)
                stretch = likely.seconds / sum(likely.parts.values())
                bubble = likely.parts["bubble"] * stretch
                assert found["waiting"] == pytest.approx(bubble)
                network = sum(likely.parts[name] for name in PARTS
                              if name in ("tensor", "context", "experts", "weights",
                                          "update"))  # fmt: skip
                assert found["network"] == pytest.approx(network * stretch)


def test_ties_are_lanes_closer_than_predictions_err():
    race = Race(runners("Llama 3.1 8B", "64 TPU v5p"), 1.0)
    first = race.running[0].prediction
    for one in race.running[1:]:
        close = one.prediction.seconds * first.band[0] <= first.seconds
        assert (one in race.ties) == close
    summary = FIGURE.draw(bet="FSDP", moment=SHOWN).summary
    assert "Your bet, FSDP, is so close that predictions cannot tell them apart" in (
        summary
    )
    larger = {"model": "Llama 3.1 70B", "machine": "512 H100"}
    lost = FIGURE.draw(bet="pipeline", moment=SHOWN, **larger).summary
    assert re.search(r"Your bet, pipeline, is predicted to take 2\.\d\d times as", lost)
    none = FIGURE.draw(bet="data parallelism", moment=SHOWN).summary
    assert "Your bet, data parallelism, does not fit: 127 GiB of 85.5 GiB." in none
    won = FIGURE.draw(bet="a mixture", moment=SHOWN).summary
    assert "You bet on it." in won


@pytest.mark.parametrize(("model", "machine"), RACES)
def test_pictures_can_be_read(model, machine):
    for bet, moment in ((NO_BET, 0), ("FSDP", 9), ("pipeline", SHOWN)):
        drawing = FIGURE.draw(bet=bet, moment=moment, model=model, machine=machine)
        drawn.check(Picture(FIGURE.title, drawing.summary, (drawing.svg,)))
        json.dumps(drawing.data, allow_nan=False)
        keys = [e.get("data-key") for e in ElementTree.fromstring(drawing.svg).iter()]
        keys = [key for key in keys if key]
        assert len(keys) == len(set(keys))


def test_a_lane_that_does_not_run_has_no_time():
    (one, *_) = runners("Llama 3.1 405B", "16,384 H100")
    with pytest.raises(ValueError, match=r"data does not fit: .* so it has no predict"):
        _ = one.prediction


def test_a_page_carries_an_answer_for_every_bet():
    settings = [json.loads(key) for key in first_answers("race", {})]
    assert {one[0] for one in settings} == {NO_BET, *NAMES.values()}


def test_a_page_does_not_pay_for_the_planner():
    """The figure reads its table; the search stays where the table is written."""
    source = Path(figures.__file__).with_name("race.py").read_text("utf-8")
    light = Path(figures.__file__).parents[1] / "objects" / "race.py"
    assert "planner" not in source
    assert "import" in source
    assert not re.search(r"from .*planner", light.read_text("utf-8"))
