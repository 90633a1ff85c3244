"""The front page's figure: one step on more chips, as it is derived and predicted."""

import itertools
import re

import drawn
import pytest

from shardmath.draw import figures
from shardmath.draw.objects.scaling import COUNTS, MODEL, SEQ, SEQS, scaled, sizes
from shardmath.draw.picture import Picture
from shardmath.hardware import chips
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import network
from shardmath.hardware.networks.usual import usual
from shardmath.training import data, step
from shardmath.training.job import usual_formats

FIGURE = figures.find("front")
NAMES = FIGURE.control("chip").options


def drawing(count: int, chip: str = "H100"):
    return FIGURE.draw(count=count, chip=chip)


def test_the_batch_is_the_published_one():
    """Llama 2, Table 1: 4M tokens per step, sequences of 4k; it stays for all chips."""
    assert (MODEL.name, SEQS * SEQ, SEQ) == ("Llama 2 7B", 2**22, 4096)
    for count in COUNTS:
        assert scaled("H100", count).step.tokens == 2**22


def test_every_mesh_has_all_chips_and_shares_sequences_only_when_they_run_out():
    for count in COUNTS:
        axes = sizes(count)
        product = 1
        for size in axes.values():
            product *= size
        assert product == count
        assert axes["data"] == min(count, SEQS)
        assert axes.get("tensor", 1) <= 8


@pytest.mark.parametrize("chip", NAMES)
@pytest.mark.parametrize("count", COUNTS)
def test_its_numbers_are_those_of_the_step(count, chip):
    """Bounds, prediction with its band, and what it says where it does not fit."""
    one, shown = scaled(chip, count).step, drawing(count, chip)
    assert shown.data["math"] == one.estimate.seconds["math"]
    assert shown.data["network"] == one.estimate.seconds.get("network", 0.0)
    fits = one.memory.total <= one.memory.capacity
    assert shown.data["fits"] == fits
    if fits:
        likely = one.prediction
        assert shown.data["seconds"] == likely.seconds
        assert shown.data["band"] == [likely.low, likely.high]
        assert likely.bound <= likely.low
        needed = shown.data["efficiency"] * count * one.mesh.network.chip.flops["bf16"]
        flops = 3 * one.flops["forward"] * count  # nothing is computed again
        assert needed * likely.seconds == pytest.approx(flops, rel=1e-9)
        assert "is predicted to take" in shown.summary
        assert "8 of 10 runs" in shown.summary
    else:
        assert "seconds" not in shown.data
        assert "does not fit" in shown.summary
        assert "predicted to take" not in shown.summary
        said = " ".join(text for text, _ in drawn.texts(shown.svg))
        assert "does not fit" in said
        assert "the step, predicted" not in said
    assert sum("a bound" in text for text, _ in drawn.texts(shown.svg)) == 2


def test_math_shrinks_and_the_network_stays_and_efficiency_falls():
    """What the page promises, from plain data parallelism as another derivation."""
    found = [drawing(count).data for count in COUNTS]
    for one, count in zip(found, COUNTS, strict=True):
        assert one["math"] == pytest.approx(found[0]["math"] / count, rel=0.02)
    chip = chips.H100
    for count in (16, 256, 1024):
        mesh = Mesh(network(usual(chip, count)), {"data": count})
        plain = step(data("data"), MODEL, mesh, SEQS, SEQ, attention="causal",
                     remat="none", microbatches=SEQS // count,
                     formats=usual_formats(chip, "bf16"))  # fmt: skip
        # ZeRO-1 reduces gradients of 4 bytes and gathers weights of 2; data parallelism
        # reduces and gathers gradients of 4.
        full = plain.estimate.seconds["network"]
        assert found[COUNTS.index(count)]["network"] == pytest.approx(0.75 * full)
    network_times = [one["network"] for one in found[3:]]
    assert max(network_times) < 1.5 * min(network_times)
    shares = [one["efficiency"] for one in found if one["fits"]]
    assert shares[-1] < shares[0] / 4
    assert all(b <= a * 1.001 for a, b in itertools.pairwise(shares))


def test_the_fewest_chips_that_fit_are_four():
    assert next(one for one in COUNTS if drawing(one).data["fits"]) == 4
    assert "from 1" not in drawing(4).summary


def test_a_doubling_that_gains_nothing_is_said():
    said = {count: drawing(count).summary for count in COUNTS}
    assert said[8].endswith("Doubling the chips from 4 makes it 2.00 times as fast.")
    assert said[16384].endswith("Doubling the chips from 8,192 gains nothing.")
    slower = drawing(4096, "TPU 7x (Ironwood)").summary
    assert slower.endswith("Doubling the chips from 2,048 makes it slower.")


@pytest.mark.parametrize("chip", NAMES)
@pytest.mark.parametrize("count", COUNTS)
def test_every_drawing_can_be_read(count, chip):
    shown = drawing(count, chip)
    title = re.search("<title>(.*?)</title>", shown.svg)[1]
    desc = re.search("<desc>(.*?)</desc>", shown.svg)[1]
    drawn.check(Picture(title, desc, (shown.svg,)))


def test_bars_are_as_long_as_their_times():
    """On the logarithmic scale under them: equal ratios are equal lengths."""

    def end(name: str, count: int) -> float:
        box = drawn.keyed(drawing(count).svg, name)[name]
        return float(box.get("width"))

    steps = [end("math", a) - end("math", 2 * a) for a in (64, 512, 1024)]
    assert max(steps) - min(steps) <= 0.5
    assert end("network", 256) == pytest.approx(end("network", 1024), abs=1)
