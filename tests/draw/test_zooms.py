"""One step zoomed into: every number follows from sizes, rates and the prediction."""

import re

import drawn
import pytest

from shardmath.base.units import show
from shardmath.draw.objects.zoomed_step import zoomed_step
from shardmath.draw.pictures.zooms import ZOOMS, zoom
from shardmath.hardware.chips import H100
from shardmath.training import pipeline
from shardmath.transformer import LLAMA_3_405B


@pytest.fixture(scope="module")
def one():
    return zoomed_step()


@pytest.mark.parametrize("name", ZOOMS)
def test_every_picture_can_be_read_and_has_the_same_size(one, name):
    picture = zoom(name, one)
    drawn.check(picture)
    assert 'viewBox="0 0 416 336"' in picture.panels[0]


@pytest.mark.parametrize("name", ZOOMS)
def test_the_ruler_says_how_long_it_takes(one, name):
    """The mark lies where a logarithmic scale from 1 µs to 10 s has it."""
    seconds = ZOOMS[name].seconds(one)
    panel = zoom(name, one).panels[0]
    assert show(seconds, "s") in drawn.words(zoom(name, one))
    mark = drawn.elements(panel, "circle")[0]
    decades = 7 * (float(mark.get("cx")) - 6) / 404
    assert 1e-6 * 10**decades == pytest.approx(seconds, rel=0.01)


def test_it_zooms_from_seconds_to_microseconds():
    names = list(ZOOMS)
    one = zoomed_step()
    inwards = [ZOOMS[name].seconds(one) for name in names[: names.index("hop") + 1]]
    inwards.remove(one.prediction.parts["bubble"])  # a part beside, not inside
    assert inwards == sorted(inwards, reverse=True)
    assert inwards[0] > 1 > 1e-4 > inwards[-1]


def test_the_mesh_and_the_batch_are_metas(one):
    """Table 4 of the report: tensor 8, pipeline 16, data 128, and 16M tokens."""
    step = one.step
    assert step.model is LLAMA_3_405B
    assert dict(step.mesh.axes) == {"data": 128, "pipeline": 16, "tensor": 8}
    assert (step.chips, step.tokens) == (16_384, 2**24)
    assert step.mesh.network.chip is H100
    assert step.strategy.layers == pipeline("pipeline").layers


def test_the_parts_add_up(one):
    likely = one.prediction
    assert sum(likely.parts.values()) == pytest.approx(likely.seconds)
    F, B = one.passes
    rest = sum(likely.parts[name] for name in ("bubble", "update", "optimizer"))
    assert 16 * (F + B) + rest == pytest.approx(likely.seconds)
    assert likely.bound < likely.low <= min(one.measured) <= max(one.measured)
    assert max(one.measured) <= likely.high


def test_the_schedule_as_played_is_near_the_closed_form(one):
    """Stages differ by a layer or a head, which the closed form averages."""
    likely = one.prediction
    passes = likely.seconds - likely.parts["update"] - likely.parts["optimizer"]
    assert one.played.seconds == pytest.approx(passes, rel=0.01)


def test_a_layer_is_its_products_exchanges_and_passes(one):
    assert sum(one.products.values()) == pytest.approx(one.layer.math)
    assert one.exchanges * one.gather_seconds == pytest.approx(one.layer.tensor)
    assert (one.exchanges, one.layers) == (4, 8)
    assert one.layers * sum(one.layer) == pytest.approx(one.passes[0], rel=0.01)


def test_the_matmul_is_that_of_the_gate(one):
    amount, bound, seconds = one.product("gate")
    model = LLAMA_3_405B
    assert amount == 2 * 8192 * model.D * model.F / 8
    assert bound == amount / H100.flops["bf16"] < seconds


def test_the_allgather_is_seven_hops_of_an_eighth(one):
    """All tokens of a sequence in bf16, at the one-way rate of NVLink."""
    whole = 8192 * LLAMA_3_405B.D * 2
    assert one.hop_bytes == whole / 8
    assert one.hop == pytest.approx(one.hop_bytes / 450e9)
    assert (one.group, one.hops) == (8, 7)
    assert one.gather_bound == pytest.approx(7 * one.hop)
    assert one.gather_bound < one.gather_seconds


def test_what_crosses_nodes_goes_at_the_rate_of_a_card(one):
    nbytes, seconds = one.send
    assert nbytes == 8192 * LLAMA_3_405B.D * 2 / 8
    assert seconds == pytest.approx(nbytes / 50e9)
    assert seconds < one.passes[0] / one.played.chunks  # so that it hides


def test_what_is_exposed_once_a_step_is_what_no_pass_hides(one):
    reduced, returned = one.update
    F, B = one.passes
    exposed = max(0, reduced - B) + max(0, returned - F)
    assert one.prediction.parts["update"] == pytest.approx(exposed)
    assert reduced == pytest.approx(2 * returned)  # fp32 and bf16


def test_the_bar_of_the_step_is_to_scale(one):
    panel = zoom("step", one).panels[0]
    bars = [box for box in drawn.elements(panel, "rect") if box.get("height") == "26"]
    widths = [float(box.get("width")) for box in bars]
    assert sum(widths) == pytest.approx(404, abs=1)
    share = one.prediction.parts["math"] / one.prediction.seconds
    assert widths[0] / 404 == pytest.approx(share, abs=0.003)


def test_a_bound_is_called_one(one):
    """No picture prints the time of a bound without saying so."""
    for name, bounds in {
        "step": [one.prediction.bound],
        "matmul": [one.product("gate")[1]],
        "gather": [one.gather_bound],
        "send": [one.send[1]],
        "measured": [one.prediction.bound],
    }.items():
        for seconds in bounds:
            said = [text for text, _ in drawn.texts(zoom(name, one).panels[0])
                    if show(seconds, "s") in text and ":" in text]  # fmt: skip
            assert said, name
            assert all("bound" in text for text in said), said


def test_another_name_is_refused_with_those_that_there_are(one):
    with pytest.raises(ValueError, match="name = 'hopp': must be one of step, stages"):
        zoom("hopp", one)


def test_descriptions_have_the_numbers(one):
    for name in ZOOMS:
        assert len(re.findall(r"\d", zoom(name, one).desc)) >= 6, name
