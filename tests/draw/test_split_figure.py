"""The live figure "split" says what the derived step says, at every split."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from shardmath.draw.figures import find
from shardmath.draw.figures.split import MACHINES, MODELS, SEQ, SPLIT, TOKENS, times
from shardmath.hardware.mesh import Mesh
from shardmath.training import combine, fsdp, step, tensor

FIGURE = find("split")
LLAMA = "Llama 3.1 70B"


@pytest.mark.parametrize("machine", ["TPU v5p 8x8x8", "64 nodes of 8 H100"])
def test_its_times_are_those_of_a_step_with_as_many_tokens(machine):
    """The figure scales a step of one sequence a group; here it is derived anew."""
    network = MACHINES[machine]()
    x, y = network.chips // 8, 8
    one = step(
        combine(fsdp("X"), tensor("Y")),
        MODELS[LLAMA],
        Mesh(network, {"X": x, "Y": y}),
        4 * x,
        SEQ,
        attention="causal",
    )
    found = times(machine, LLAMA, y, 4 * SEQ // y)
    assert found.math == pytest.approx(one.estimate.seconds["math"])
    assert found.network == pytest.approx(one.estimate.seconds["network"])
    assert found.lower <= one.estimate.lower * (1 + 1e-9)  # HBM is left out
    shown = FIGURE.draw(machine=machine, tokens=4 * SEQ // y, Y=y).data
    assert shown["seconds"] == {"math": found.math, "network": found.network}


def test_copies_of_kv_heads_cost_less_than_is_left_out():
    """|Y| = 16 with 8 KV heads: with the sums of their gradients, a thousandth more."""
    network = MACHINES["TPU v5p 8x8x8"]()
    mesh = Mesh(network, {"X": 32, "Y": 8, "Z": 2})
    copies = combine(fsdp("X"), tensor(("Y", "Z"), kv="Y"))
    true = step(copies, MODELS[LLAMA], mesh, 32, SEQ, attention="causal")
    found = replace(MODELS[LLAMA], kv_heads=16)
    mesh = Mesh(network, {"X": 32, "Y": 16})
    both = combine(fsdp("X"), tensor("Y"))
    drawn = step(both, found, mesh, 32, SEQ, attention="causal")
    assert drawn.sent < true.sent < 1.001 * drawn.sent


ANY = next(iter(MACHINES))


@pytest.mark.parametrize(
    ("machine", "model"),
    [*((machine, LLAMA) for machine in MACHINES), *((ANY, model) for model in MODELS)],
)
def test_the_ends_of_every_slider_can_be_drawn(machine, model):
    for tokens in TOKENS.stops[:: len(TOKENS.stops) - 1]:
        for y in SPLIT.stops[:: len(SPLIT.stops) - 1]:
            drawing = FIGURE.draw(machine=machine, model=model, tokens=tokens, Y=y)
            ElementTree.fromstring(drawing.svg)
            json.dumps(drawing.data, allow_nan=False)


def test_weights_fall_and_activations_grow_with_the_split():
    found = [times("TPU v5p 8x8x8", LLAMA, y, 512) for y in SPLIT.stops]
    weights = [t.weights for t in found]
    activations = [t.activations for t in found]
    assert weights == sorted(weights, reverse=True)
    assert activations == sorted(activations)


def test_the_best_split_falls_as_the_tokens_grow():
    best = [FIGURE.draw(tokens=tokens).data["least"] for tokens in TOKENS.stops]
    assert best == sorted(best, reverse=True)
    assert best[0] > best[-1]


def test_less_than_a_sequence_in_a_group_is_said():
    assert "less than one sequence" in FIGURE.draw(tokens=64, Y=8).summary
    assert "less than one sequence" not in FIGURE.draw(tokens=512, Y=8).summary
