"""The two lanes of a step: what they expose is what the prediction says."""

import itertools
import json
from xml.etree import ElementTree

import drawn
import pytest

from shardmath.draw import figures
from shardmath.draw.figures.lanes import (
    ALL,
    DATA,
    FSDP,
    MODELS,
    SHOWN,
    TENSOR,
    WHOLE,
    ZOOM,
    step_of,
)
from shardmath.draw.live.static_view import first_answers
from shardmath.draw.objects.lanes import StepLanes, lanes
from shardmath.draw.picture import Picture
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import network
from shardmath.training import data, fsdp, step, tensor, zero
from shardmath.training.efficiencies import efficiencies

FIGURE = figures.find("lanes")
MODEL = next(iter(MODELS))
SIZES = {DATA: (64, 1), FSDP: (64, 1), TENSOR: (8, 8)}
CASES = list(itertools.product(SIZES, ("TPU v5p", "H100"), (256, 1024, 8192)))


def played(name: str, chip: str, tokens: int, blocks: int = 32) -> StepLanes:
    return lanes(step_of(name, MODEL, chip, 64, tokens, SIZES[name]), blocks)


def covered(spans) -> list[tuple[float, float]]:
    """Intervals of some spans, in order."""
    return sorted((span.start, span.end) for span in spans)


@pytest.mark.parametrize(("name", "chip", "tokens"), CASES)
def test_what_is_exposed_is_what_the_prediction_exposes(name, chip, tokens):
    """Gathers and activations to the last digit; gradients that are reduced once a
    step by no less, and by at most one layer's pass or reduction more."""
    one = played(name, chip, tokens)
    parts = one.step.prediction.parts
    by_layer = sum(s.seconds for s in one.spans if s.exposed and s.when != "update")
    assert by_layer == pytest.approx(parts["weights"] + parts["tensor"], abs=1e-12)
    more = one.tail - parts["update"]
    assert -1e-12 <= more <= one.tolerance + 1e-12
    assert one.seconds - sum(parts.values()) == pytest.approx(more, abs=1e-9)
    assert one.exposed == pytest.approx(by_layer + one.tail, abs=1e-12)
    assert one.tolerance <= one.seconds / 8


@pytest.mark.parametrize(("name", "chip", "tokens"), CASES)
def test_blocks_of_layers_change_no_sum(name, chip, tokens):
    """A picture of the whole step and one of two layers show the same step."""
    single, blocks = played(name, chip, tokens), played(name, chip, tokens, 4)
    assert blocks.seconds == pytest.approx(single.seconds)
    assert blocks.exposed == pytest.approx(single.exposed)
    assert blocks.tail == pytest.approx(single.tail)
    hidden = [sum(s.seconds for s in one.spans if s.resource == "network")
              for one in (single, blocks)]  # fmt: skip
    assert hidden[1] <= hidden[0] * (1 + 1e-9)


@pytest.mark.parametrize(("name", "chip", "tokens"), CASES)
def test_nobody_does_two_things_at_once(name, chip, tokens):
    """The chip computes one thing at a time, and not while it waits. One kind of
    exchange follows the other on its wires."""
    one = played(name, chip, tokens)
    chip_spans = [s for s in one.spans if s.resource != "network" or s.exposed]
    once = [s for s in chip_spans if s.when != "update" or s.what == "optimizer"]
    weights = [s for s in one.spans if s.what in ("gather", "scatter", "gradients")]
    activations = [s for s in one.spans if s.what == "activations"]
    for some in (once, weights, activations):
        for (_, end), (start, _) in itertools.pairwise(covered(some)):
            assert end <= start + 1e-9


@pytest.mark.parametrize("chosen", [fsdp("X"), tensor("X")])
def test_what_is_computed_again_is_exchanged_again(chosen):
    """The backward pass holds both: its own exchanges and those of recomputation."""
    mesh = Mesh(network("h100:8"), {"X": 8})
    settings = {"attention": "causal", "vocabulary": False, "remat": "full"}
    one = lanes(step(chosen, MODELS[MODEL], mesh, 8, 4096, **settings), 4)
    parts = one.step.prediction.parts
    assert one.exposed == pytest.approx(parts["weights"] + parts["tensor"])
    assert one.seconds == pytest.approx(sum(parts.values()))


def test_gradients_leave_when_their_layer_is_done_and_run_under_the_next():
    """The heart of chapter 08: not before, and the last ones under nothing."""
    one = played(DATA, "TPU v5p", 1024)
    sent = [s for s in one.spans if s.what == "gradients"]
    for span in sent:
        (layer, _) = span.layers
        done = one.starts(layer, "backward") + one.backward.seconds
        assert span.start >= done - 1e-12
    assert [s.layers[0] for s in sent] == sorted(
        (s.layers[0] for s in sent), reverse=True
    )
    assert not sent[0].exposed
    assert sent[-1].exposed
    assert sent[-1].layers == (0, 1)


def test_more_tokens_hide_the_gradients_up_to_the_last_layer():
    shares = [
        FIGURE.draw(tokens=tokens).data["lanes"][DATA]["share"]
        for tokens in (256, 512, 1024, 2048, 4096)
    ]
    assert shares == sorted(shares, reverse=True)
    late = played(DATA, "TPU v5p", 4096)
    assert late.tail == pytest.approx(late.reduced)
    assert "AllReduce of the last layer" in FIGURE.draw(tokens=4096).summary
    assert "AllReduce of the last layer" not in FIGURE.draw(tokens=256).summary


def test_weights_arrive_before_their_layer_and_under_the_one_before():
    """Gather, use, forget: hidden parts lie under the layer before, exposed ones
    directly before the use."""
    one = played(FSDP, "H100", 8192)
    for layer in range(1, one.layers):
        begin = one.starts(layer, "forward")
        gathers = [
            s for s in one.spans
            if s.what == "gather" and s.when == "forward" and s.layers[0] == layer
        ]  # fmt: skip
        hidden = next(s for s in gathers if not s.exposed)
        exposed = next(s for s in gathers if s.exposed)
        assert hidden.end == pytest.approx(exposed.start)
        assert hidden.start >= one.starts(layer - 1, "forward")
        assert exposed.start == pytest.approx(begin)
        uses = [s.start for s in one.spans if s.what == "attention"
                and s.when == "forward" and s.layers[0] == layer]  # fmt: skip
        assert uses == [pytest.approx(exposed.end)]
        assert sum(s.seconds for s in gathers) == pytest.approx(one.forward.gather)


def test_nothing_hides_activations_on_gpus_and_products_hide_some_on_tpus():
    gpu, tpu = (played(TENSOR, chip, 1024) for chip in ("H100", "TPU v5p"))
    on_gpu, on_tpu = (
        [s for s in one.spans if s.what == "activations"] for one in (gpu, tpu)
    )
    assert all(span.exposed for span in on_gpu)
    waits = sum(span.seconds for span in on_tpu if span.exposed)
    assert waits == pytest.approx(
        efficiencies().exposed * sum(span.seconds for span in on_tpu)
    )
    assert 2 * len(on_gpu) == len(on_tpu) == 8 * gpu.layers


@pytest.mark.parametrize("name", [*SIZES, ALL])
@pytest.mark.parametrize("view", [WHOLE, ZOOM])
def test_pictures_can_be_read(name, view):
    for moment in (0, 7, SHOWN):
        drawing = FIGURE.draw(strategy=name, view=view, moment=moment, chip="H100")
        drawn.check(Picture(FIGURE.title, drawing.summary, (drawing.svg,)))
        json.dumps(drawing.data, allow_nan=False)
        keys = [e.get("data-key") for e in ElementTree.fromstring(drawing.svg).iter()]
        keys = [key for key in keys if key]
        assert len(keys) == len(set(keys))


@pytest.mark.parametrize("view", [WHOLE, ZOOM])
def test_the_playhead_begins_at_the_start_and_ends_with_the_step(view):
    """At the end nothing is veiled any more, at the start all is."""

    def veil(moment: int) -> float:
        svg = FIGURE.draw(moment=moment, view=view).svg
        (found,) = drawn.keyed(svg, f"{DATA} to come").values()
        return float(found.get("width"))

    widths = [veil(moment) for moment in range(SHOWN + 1)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 300
    assert widths[-1] < 0.2
    assert FIGURE.settings()["moment"] == 0
    end = FIGURE.draw(moment=SHOWN)
    assert end.last == SHOWN
    assert "at 253 ms: the optimizer" in drawn.words(
        Picture(FIGURE.title, end.summary, (end.svg,))
    )


def test_on_one_clock_the_longest_strategy_sets_the_scale():
    drawing = FIGURE.draw(strategy=ALL, chip="H100", moment=0)
    found = drawing.data["lanes"]
    assert list(found) == [DATA, FSDP, TENSOR]
    wide = {
        name: float(next(iter(drawn.keyed(drawing.svg, f"{name} to come").values()))
                    .get("width"))
        for name in found
    }  # fmt: skip
    longest = max(found, key=lambda name: found[name]["seconds"])
    for name in found:
        ratio = found[name]["seconds"] / found[longest]["seconds"]
        assert wide[name] / wide[longest] == pytest.approx(ratio, abs=0.01)


def test_bound_prediction_and_memory_are_told_apart():
    drawing = FIGURE.draw(chip="H100")
    found = drawing.data["lanes"][DATA]
    one = played(DATA, "H100", 512).step
    assert found["predicted"] == one.prediction.seconds
    assert found["bound"] == one.estimate.lower < found["predicted"]
    assert found["held"] == one.memory.total > found["capacity"]
    assert "no run can take less than 122 ms" in drawing.summary
    assert "so the layers do not fit" in drawing.summary
    assert "do not fit" not in FIGURE.draw(strategy="fsdp").summary


def test_chapters_may_call_strategies_by_their_short_names():
    names = [FIGURE.settings(strategy=s)["strategy"]
             for s in ("data", "fsdp", "tensor", "all")]  # fmt: skip
    assert names == [DATA, FSDP, TENSOR, ALL]


@pytest.mark.parametrize("count", [8, 64, 4096])
@pytest.mark.parametrize("chip", FIGURE.control("chip").options)
def test_every_machine_draws_or_says_why_not(chip, count):
    for name in ("data", "fsdp", "tensor"):
        drawing = FIGURE.draw(strategy=name, chip=chip, count=count, tokens=1024)
        assert drawing.data["lanes"], drawing.summary


def test_a_page_carries_the_moments_of_the_playhead():
    assert len(first_answers("lanes", {})) >= SHOWN + 1


@pytest.mark.parametrize(
    ("strategy", "changes", "message"),
    [
        (data("X"), {"vocabulary": True}, "vocabulary = True, microbatches = 1: must"),
        (data("X"), {"microbatches": 2}, "microbatches = 2: must be False and 1"),
        (zero(1, "X"), {}, "lanes do not show weights that ZeRO-1 gathers"),
    ],
)
def test_other_steps_are_refused(strategy, changes, message):
    one = played(DATA, "H100", 4096).step
    mesh = Mesh(one.mesh.network, {"X": 64})
    settings = {"attention": "causal", "vocabulary": False} | changes
    with pytest.raises(ValueError, match=message):
        lanes(step(strategy, MODELS[MODEL], mesh, 128, 4096, **settings), 4)


def test_what_is_no_step_is_refused():
    with pytest.raises(ValueError, match="step = 3: must be a Step"):
        lanes(3, 4)
