"""Layers gathered, used and forgotten in time, and the pictures of it."""

import itertools
import random

import drawn
import pytest

from shardmath.draw import pictures
from shardmath.hardware import chips
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import Cluster, NVLinkDomain, Torus
from shardmath.training import (
    Layer,
    combine,
    fsdp,
    hybrid,
    layer_of,
    prefetched,
    step,
    tensor,
    zero,
)
from shardmath.transformer import LLAMA_3_8B

SLICE = Mesh(Torus(chips.TPU_V5P, (4, 4, 4)), {"X": 64})
NODES = Mesh(Cluster(NVLinkDomain(chips.H100), 8), {"Z": 8, "X": 8})


def a_layer(seed: int) -> tuple[Layer, int]:
    draw = random.Random(seed)
    return Layer(*(draw.uniform(0.1, 3) for _ in range(5))), draw.randint(1, 12)


def busy(schedule, resource: str) -> list[tuple[float, float]]:
    spans = [span for span in schedule.spans if span.resource == resource]
    return sorted((span.start, span.end) for span in spans)


@pytest.mark.parametrize("ahead", [0, 1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_each_resource_does_one_thing_at_a_time_and_each_use_has_its_weights(
    seed, ahead
):
    layer, layers = a_layer(seed)
    found = prefetched(layer, layers, ahead)
    for resource in ("math", "network"):
        for (_, end), (start, _) in itertools.pairwise(busy(found, resource)):
            assert start >= end
    gathers, uses, scatters = (
        sorted((s for s in found.spans if s.what in what), key=lambda s: s.start)
        for what in (("gather",), ("forward", "backward"), ("scatter",))
    )
    there_and_back = [*range(layers), *reversed(range(layers))]
    assert [span.layer for span in uses] == there_and_back
    assert [span.layer for span in gathers] == there_and_back
    for k, (gather, use) in enumerate(zip(gathers, uses, strict=True)):
        assert use.start >= gather.end
        if k:
            before = uses[max(k - ahead, 0)].start if ahead else uses[k - 1].end
            assert gather.start >= before
    for use, scatter in zip(uses[layers:], scatters, strict=True):
        assert (scatter.layer, scatter.start >= use.end) == (use.layer, True)


@pytest.mark.parametrize("seed", range(8))
def test_the_time_lies_between_the_longer_of_both_and_their_sum(seed):
    layer, layers = a_layer(seed)
    math = layers * (layer.forward + layer.backward)
    network = layers * (layer.gather + layer.gather_again + layer.scatter)
    times = [prefetched(layer, layers, ahead).seconds for ahead in (0, 1, 2, 3)]
    assert times[0] == pytest.approx(math + network)
    assert all(max(math, network) <= seconds * (1 + 1e-9) for seconds in times)
    assert max(times[1:]) <= times[0] * (1 + 1e-9)


def test_where_math_is_longer_one_layer_ahead_hides_all_but_both_ends():
    layer = Layer(1, 1, 2, 4, 1)
    found = prefetched(layer, 10, ahead=1)
    assert found.seconds == 1 + 10 * (2 + 4) + 1  # the first gather, the last scatter
    assert prefetched(layer, 10, ahead=2).seconds == found.seconds


def test_of_two_that_may_start_at_once_the_scatter_goes_first():
    found = prefetched(Layer(1, 1, 1, 1, 1), 2, ahead=0)
    backward = [s.end for s in found.spans if s.what == "backward"]
    scatter = next(s for s in found.spans if s.what == "scatter")
    last = [s for s in found.spans if s.what == "gather"][-1]
    assert scatter.start == backward[0]
    assert last.start == scatter.end


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_a_chip_holds_one_layer_more_than_it_fetches_ahead(ahead):
    assert prefetched(Layer(1, 1, 2, 4, 1), 10, ahead).most_held == ahead + 1


@pytest.mark.parametrize(
    ("strategy", "mesh"), [(fsdp("X"), SLICE), (hybrid("Z", "X"), NODES)]
)
def test_the_layers_of_a_step_take_its_time(strategy, mesh):
    """Layer by layer the network takes at least what the whole step does: over two
    axes the busiest links are not those of each layer's part."""
    found = step(
        strategy, LLAMA_3_8B, mesh, 64, 4096, attention="causal", vocabulary=False
    )
    layer, seconds = layer_of(found), found.estimate.seconds
    math = LLAMA_3_8B.layers * (layer.forward + layer.backward)
    moved = layer.gather + layer.gather_again + layer.scatter
    assert math == pytest.approx(seconds["math"])
    assert LLAMA_3_8B.layers * moved >= seconds["network"] * (1 - 1e-9)
    if len(mesh.axes) == 1:
        assert LLAMA_3_8B.layers * moved == pytest.approx(seconds["network"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: prefetched(Layer(1, 1, 1, 1, 1), 0), "layers = 0"),
        (lambda: prefetched(Layer(1, 1, 1, 1, 1), 4, -1), "ahead = -1"),
        (lambda: prefetched(Layer(1, 1, 1, 1, 1), 4, 1.0), "ahead = 1.0: must be a wh"),
        (lambda: prefetched(None, 2), "layer = None: must be a Layer"),
        (lambda: layer_of(None), "step = None: must be a Step"),
        (
            lambda: layer_of(
                step(fsdp("X"), LLAMA_3_8B, SLICE, 64, 64, attention="full")
            ),
            "vocabulary = True, microbatches = 1: must be False and 1",
        ),
        (
            lambda: layer_of(
                step(
                    combine(fsdp("Z"), tensor("X")),
                    LLAMA_3_8B,
                    NODES,
                    8,
                    64,
                    attention="full",
                    vocabulary=False,
                )
            ),
            "must move only weights and gradients",
        ),
        (lambda: Layer(0, 0, -1, 1, 1), "forward = -1: must be a finite number from 0"),
        (lambda: pictures.gathering({}), "must hold one or more"),
        (lambda: pictures.holdings({}, {"X": 4}), "must hold one or more"),
        (lambda: pictures.holdings({"zero": zero(1, "X")}, {"X": 16}), "units wide"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_time_line_is_to_one_scale():
    schedules = {
        f"{ahead} ahead": prefetched(Layer(1, 1, 2, 4, 1), 3, ahead) for ahead in (0, 1)
    }
    picture = pictures.gathering(schedules)
    drawn.check(picture)
    (panel,) = picture.panels
    scales = set()
    for name, schedule in schedules.items():
        boxes = drawn.keyed(panel, f"{name} ")
        assert len(boxes) == len(schedule.spans)
        wide = sum(float(box.get("width")) for box in boxes.values())
        scales.add(round(wide / sum(s.end - s.start for s in schedule.spans), 1))
    assert len(scales) == 1


def test_a_chip_is_drawn_with_its_own_part():
    strategies = {"ZeRO-1": zero(1, "X"), "both": combine(fsdp("X"), tensor("Y"))}
    picture = pictures.holdings(strategies, {"X": 2, "Y": 2})
    drawn.check(picture)
    first, both = picture.panels
    state = drawn.keyed(first, "state ")
    places = [(float(box.get("x")), float(box.get("y"))) for box in state.values()]
    assert len({y for _, y in places}) == 2  # halves over X, the same along Y
    weights = drawn.keyed(first, "weights ").values()
    assert {float(box.get("height")) for box in weights} == {14}  # whole
    areas = [
        float(box.get("width")) * float(box.get("height"))
        for box in drawn.keyed(both, "state ").values()
    ]
    assert areas == pytest.approx([30 * 84 / 4] * 4, rel=0.01)
    assert "7 bytes" not in picture.desc
    assert "ZeRO-1: each of 4 chips holds 10 bytes a parameter" in picture.desc


def brute_force_most_held(schedule):
    """Layers held when each one comes, counted one by one."""
    return max(
        sum(start <= at < end for _, start, end in schedule.held)
        for _, at, _ in schedule.held
    )


@pytest.mark.parametrize("ahead", [0, 1, 3])
@pytest.mark.parametrize("times", [(1, 1, 1, 1, 0), (3, 2, 1, 4, 2), (0, 1, 2, 2, 5)])
def test_layers_held_at_once_are_those_counted_one_by_one(times, ahead):
    found = prefetched(Layer(*times), 7, ahead)
    assert found.most_held == brute_force_most_held(found)


def test_ten_thousand_layers_take_no_longer_than_their_number_asks():
    """Work that grows with the square of the layers would take minutes."""
    found = prefetched(Layer(1, 1, 1, 2, 1), 10_000)
    assert found.seconds >= 30_000
    assert found.most_held == 2
