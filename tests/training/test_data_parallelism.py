"""Data parallelism: its pictures, its time line and its live figure."""

import itertools
import json
import random
from xml.etree import ElementTree

import drawn
import pytest

from shardmath.draw import figures, pictures
from shardmath.hardware import chips
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import NVLinkDomain, Slices, Torus
from shardmath.training import Layer, data, fsdp, layer_of, prefetched, step, zero
from shardmath.transformer import LLAMA_3_8B

FIGURE = figures.find("tokens")
SLICES = Slices(Torus(chips.TPU_V4, (8, 8, 16)), 8, latency=10e-6)


def a_step(n: int = 8, strategy=None, seqs: int = 16, mesh=None, **more):
    strategy, mesh = strategy or data("X"), mesh or {"X": n}
    more = {"attention": "causal"} | more
    return step(strategy, LLAMA_3_8B, mesh, seqs, 4096, **more)


# In time


@pytest.mark.parametrize("seed", range(12))
def test_gradients_leave_behind_the_backward_pass(seed):
    """T = L·forward + backward + (L − 1)·max(backward, reduce) + reduce."""
    drawn_ = random.Random(seed)
    forward, back, reduce = (drawn_.uniform(0.1, 3) for _ in range(3))
    layers = drawn_.randint(1, 40)
    found = prefetched(Layer(0, 0, forward, back, reduce), layers)
    expected = layers * forward + back + (layers - 1) * max(back, reduce) + reduce
    assert found.seconds == pytest.approx(expected)


@pytest.mark.parametrize("ahead", [0, 1])
def test_weights_that_are_whole_wait_for_nobody(ahead):
    """A gather that takes no time does not queue behind what is on the network."""
    found = prefetched(Layer(0, 0, 1, 2, 50), 4, ahead)
    uses = sorted(s.end for s in found.spans if s.resource == "math")
    assert uses == [1, 2, 3, 4, 6, 8, 10, 12]


# Pictures


@pytest.mark.parametrize(("n", "seqs"), [(1, 2), (2, 2), (4, 4), (8, 16), (512, 1024)])
def test_replicas_hold_the_same_weights_and_other_sequences(n, seqs):
    picture = pictures.replicas(a_step(n, seqs=seqs))
    drawn.check(picture)
    (panel,) = picture.panels
    said = [words for words, _ in drawn.texts(panel)]
    shown = min(n, 4)
    assert said.count("weights") == said.count("their sum") == shown
    ranges = [words for words in said if words[-1].isdigit() and "chip" not in words]
    assert len(set(ranges)) == len(ranges) == shown
    assert str(seqs - 1) in ranges[-1].replace(",", "")


@pytest.mark.parametrize("strategy", [fsdp("X"), zero(1, "X")])
def test_split_weights_are_no_replicas(strategy):
    with pytest.raises(ValueError, match="must keep all weights on every chip"):
        pictures.replicas(a_step(strategy=strategy))


def test_boxes_behind_the_backward_pass_are_the_spans():
    mesh = Mesh(Torus(chips.TPU_V5P, (4, 4, 4)), {"X": 64})
    layer = layer_of(a_step(seqs=64, mesh=mesh, vocabulary=False))
    schedules = {"one": prefetched(layer, 8), "half": prefetched(layer, 4)}
    picture = pictures.behind(schedules)
    drawn.check(picture)
    (panel,) = picture.panels
    for name, schedule in schedules.items():
        boxes = list(drawn.keyed(panel, f"{name} ").values())
        spans = [span for span in schedule.spans if span.end > span.start]
        assert len(boxes) == len(spans)
        lengths = [span.end - span.start for span in spans]
        widths = [float(box.get("width")) for box in boxes]
        scale = max(widths) / max(lengths)
        assert widths == pytest.approx([scale * one for one in lengths], abs=0.11)


def test_slices_say_their_rates():
    picture = pictures.slices(SLICES)
    drawn.check(picture)
    said = drawn.words(picture)
    assert "8 slices of 1,024 TPU v4" in said
    assert "inside a slice: 300 GB/s a chip, 8x8x16 torus" in said
    assert "out of it: 6.25 GB/s a chip, 6.4 TB/s a slice" in said
    with pytest.raises(ValueError, match="must be `networks"):
        pictures.slices(NVLinkDomain(chips.H100))


def test_no_schedules_are_no_picture():
    with pytest.raises(ValueError, match="must hold one or more"):
        pictures.behind({})


# The live figure


MACHINES = FIGURE.controls[1].options


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("strategy", ["data", "FSDP"])
def test_the_crossing_is_where_math_takes_as_long_as_the_network(machine, strategy):
    drawn_ = [
        FIGURE.draw(machine=machine, strategy=strategy, chips=n, tokens=tokens)
        for n, tokens in itertools.product((64, 128), (32, 65_536))
    ]
    found = [one.data["tokens"] for one in drawn_ if one.data["tokens"]]
    assert found
    for one in found:
        scale = one["critical_tokens"] / one["tokens_per_chip"]
        there = one["math_seconds"] * scale
        assert there == pytest.approx(one["network_seconds"], rel=1e-6)
        assert one["binds"] == ("math" if scale <= 1 else "network")


def test_a_whole_slice_of_v5p_agrees_with_the_closed_form():
    """2/3 · (n − 1)/n · C/W, less what attention and the head compute besides."""
    found = FIGURE.draw(chips=512).data["tokens"]
    closed = 2 / 3 * 511 / 512 * 459e12 / 600e9
    assert 0.99 * closed < found["critical_tokens"] < closed


@pytest.mark.parametrize("seed", range(20))
def test_every_setting_draws_or_says_why_not(seed):
    draw = random.Random(seed)
    given = {
        one.name: draw.choice(getattr(one, "options", None) or one.stops)
        for one in FIGURE.controls
    }
    found = FIGURE.draw(**given)
    ElementTree.fromstring(found.svg)
    json.dumps(found.data, allow_nan=False)
    refused = found.data["tokens"] is None
    assert found.summary.startswith("Not on these wires") == refused
