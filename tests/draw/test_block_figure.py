"""The figure "block": a layer's rows add up to what the model's FLOPs say."""

from xml.etree import ElementTree

import pytest

from shardmath.draw import figures
from shardmath.draw.figures.block import EDGE, MODELS
from shardmath.draw.picture import WIDEST
from shardmath.transformer import flops, kv_cache

FIGURE = figures.find("block")
PLAIN = [one for one in MODELS.values() if not one.experts and one.trains]


@pytest.mark.parametrize("seq", [1024, 2**20])
@pytest.mark.parametrize("one", PLAIN, ids=lambda one: one.name)
def test_rows_of_all_layers_and_the_head_are_the_forward_pass(one, seq):
    """Of a model whose layers are all alike."""
    found = FIGURE.draw(model=one.name, seq=seq).data
    counted = flops(one, seq, "causal")
    layers = one.L * sum(found["rows"].values())
    assert layers + counted.head == pytest.approx(counted.forward, rel=1e-9)


def test_a_long_sequence_is_mostly_attention():
    """By hand: 4 · N · H · keys over that and two FLOPs a weight, Llama 3.1 8B."""
    weights = 4096 * (2 * 4096 + 2 * 1024) + 3 * 4096 * 14336
    keys = (2**17 + 1) / 2
    by_hand = 4 * 4096 * keys / (4 * 4096 * keys + 2 * weights)
    found = FIGURE.draw(model="Llama 3.1 8B", seq=2**17).data
    assert found["share"] == pytest.approx(by_hand, rel=1e-9)


def test_the_strip_shows_the_share():
    drawing = FIGURE.draw(seq=2**17)
    root = ElementTree.fromstring(drawing.svg)
    wide = {
        one.get("data-key"): float(one.get("width"))
        for one in root.iter()
        if one.tag.endswith("rect") and one.get("data-key")
    }
    share = wide["share attention"] / (WIDEST - 2 * EDGE)
    assert share == pytest.approx(drawing.data["share"], abs=2e-3)


@pytest.mark.parametrize("name", ["Mixtral 8x7B", "DeepSeek-V3"])
def test_experts_count_the_weights_that_a_token_meets(name):
    """And hold all of them: parameters are of every expert."""
    one = MODELS[name]
    drawing = FIGURE.draw(model=name, seq=4096)
    per_expert = drawing.data["rows"]["gate"] / one.experts.per_token
    assert per_expert == 2 * one.D * one.F
    assert drawing.data["params"] == one.params
    assert drawing.data["cache"] == kv_cache(one, 4096)
