"""The figure "mesh": its table is what the planner finds, and its parts add up."""

import re
from math import log2
from xml.etree import ElementTree

import meshes as tool
import pytest

from shardmath.draw import figures
from shardmath.draw.figures.mesh import DOUBLING, SCALE
from shardmath.draw.objects.meshes import (
    CHIPS,
    CONTEXT,
    META,
    MODEL,
    PIPELINE,
    TENSOR,
    fastest,
    mesh_of,
    table,
)
from shardmath.measured import RUNS
from shardmath.planner import plan

FIGURE = figures.find("mesh")
SAMPLE = ((8, 1, 16), (8, 1, 1), (2, 8, 32), (1, 1, 1), (1, 1, 64), (16, 4, 8))


@pytest.mark.parametrize("sizes", SAMPLE)
def test_the_table_holds_what_the_search_finds(sizes):
    """If this fails after a change of the derivation: python tools/meshes.py."""
    found, written = tool.searched(*sizes), table()[sizes]
    assert (found.why, dict(found.sizes)) == (written.why, dict(written.sizes))
    assert found.settings == written.settings
    for name in ("held", "room", "bound"):
        assert getattr(written, name) == pytest.approx(getattr(found, name), rel=1e-4)
    assert written.parts == pytest.approx(dict(found.parts), rel=1e-4)


def test_every_setting_has_an_entry_and_no_other():
    every = {(t, c, p) for t in TENSOR for c in CONTEXT for p in PIPELINE}
    assert set(table()) == every
    assert max(t * c * p for t, c, p in every) == CHIPS


def test_metas_mesh_is_that_of_the_published_run():
    """Tensor, context and pipeline of the run with 8,192 tokens a sequence."""
    (run,) = (
        r for r in RUNS
        if r.model.name == MODEL and r.chips == CHIPS and r.seq == 8192
    )  # fmt: skip
    sizes = dict(re.findall(r"(tensor|context|pipeline)\s(\d+)", run.layout))
    meta = tuple(int(sizes.get(axis, 1)) for axis in ("tensor", "context", "pipeline"))
    assert meta == META


def test_the_planner_recommends_a_mesh_of_the_table():
    """It searches all of them at once; the figure has each searched by itself."""
    best = plan(MODEL, "h100:16384", 2**24, 8192).best
    one = mesh_of(*(best.sizes[a] for a in ("tensor", "context", "pipeline")))
    assert one.prediction.seconds == pytest.approx(best.seconds, rel=1e-3)
    assert one.entry.held == pytest.approx(best.memory.total, rel=1e-3)


def test_no_entry_is_faster_than_the_fastest_or_its_own_bound():
    least = mesh_of(*fastest()).prediction.seconds
    for sizes, entry in table().items():
        if not entry.why:
            likely = mesh_of(*sizes).prediction
            assert likely.seconds >= least
            assert likely.bound <= likely.seconds


@pytest.mark.parametrize("params", [{}, *FIGURE.presets.values()])
def test_the_pieces_are_the_chips_and_the_bars_the_seconds(params):
    """The strip is as long as all doublings; the time ends where it was predicted."""
    drawing = FIGURE.draw(**params)
    root = ElementTree.fromstring(drawing.svg)
    wide = {
        rect.get("data-key"): float(rect.get("width"))
        for rect in root.iterfind(".//{*}rect[@data-key]")
    } or {
        rect.get("data-key"): float(rect.get("width"))
        for rect in root.iterfind(".//rect[@data-key]")
    }
    for axis, n in drawing.data["mesh"].items():
        assert wide[f"axis {axis}"] == pytest.approx(DOUBLING * log2(n), abs=0.2)
    if not drawing.data["fits"]:
        assert "math yours" not in wide
        return
    kinds = sum(wide[f"{kind} yours"] for kind in ("math", "HBM", "network", "waiting"))
    unit = DOUBLING * log2(CHIPS) / SCALE
    seconds = min(drawing.data["seconds"], SCALE)
    assert kinds == pytest.approx(unit * seconds, abs=0.5)


def test_what_does_not_run_says_why_and_has_no_time():
    drawing = FIGURE.draw(tensor=1, context=1, pipeline=1)
    assert "cannot start: 2,048 sequences on 16,384 chips" in drawing.summary
    assert "seconds" not in drawing.data
    assert "predicted" not in drawing.summary.lower()


def test_a_result_has_its_bound_and_its_band():
    """Three words for three things."""
    said = FIGURE.draw(tensor=8, pipeline=8).summary
    assert "The prediction is" in said
    assert "8 of 10 runs" in said
    assert "No run can take less than" in said
    assert "times Meta's mesh" in said
