"""The picture of a layer: its shapes, its numbers, and that all of it can be read."""

import re

import drawn
import pytest

from shardmath import transformer
from shardmath.base.units import show
from shardmath.draw.labels import text_width
from shardmath.draw.objects.block import LONGEST, WEIGHT
from shardmath.draw.pictures import transformer_block
from shardmath.transformer import flops, model

each_model = pytest.mark.parametrize("m", transformer.ALL, ids=lambda m: m.name)


@each_model
def test_every_weight_is_there_with_its_shape_and_fits_its_box(m):
    picture = transformer_block(m, 8192, "causal")
    drawn.check(picture)
    said = drawn.words(picture)
    for line in (*m.layer, m.head_line):
        sizes = ", ".join(str(m.dims[dim]) for dim in line.weight.dims)
        text = f"{line.weight.name}[{sizes}]"
        assert text in said
        assert text_width(text) < WEIGHT
    assert {"Q · K", "P · V"} < said


@each_model
@pytest.mark.parametrize("attention", transformer.ATTENTION)
def test_bars_are_the_flops_of_each_matmul_to_scale(m, attention):
    (panel,) = transformer_block(m, 4096, attention).panels
    bars = drawn.keyed(panel, "")
    bars.pop("")
    layer = flops(m, 4096, attention).attention / m.layers
    values = m.latent.value if m.latent else m.head
    share = {"Q · K": m.head, "P · V": values}
    expected = {text: layer * part / (m.head + values) for text, part in share.items()}
    for line in m.layer:
        sizes = ", ".join(str(m.dims[dim]) for dim in line.weight.dims)
        expected[f"{line.weight.name}[{sizes}]"] = 2 * m.met(line)
    assert {*bars} == {*expected}
    for text, bar in bars.items():
        wide = max(1, LONGEST * expected[text] / max(expected.values()))
        assert float(bar.get("width")) == pytest.approx(wide, abs=0.051), text


def test_what_it_says_is_what_is_counted():
    m = model("deepseek v3")
    picture = transformer_block(m, 4096, "full")
    counted = flops(m, 4096, "full")
    assert show(counted.training, "FLOPs") in picture.desc
    assert show(counted.forward, "FLOPs") in picture.desc
    assert "The first 3 layers have an MLP of 18432 instead." in picture.desc
    assert "attention, full, 4,096 tokens" in drawn.words(picture)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("llama 3 8b", ["x = norm of the stream", "+ y[", "z = norm of the sum"]),
        ("olmo 2 32b", ["x = the stream", "+ norm of y[", "z = the sum"]),
        ("gemma 3 4b", ["x = norm of the stream", "+ norm of y[", "z = norm of"]),
    ],
)
def test_norms_stand_where_they_are(name, said):
    words = " ".join(drawn.words(transformer_block(model(name), 2048, "causal")))
    for text in said:
        assert re.search(re.escape(text), words), text


def test_parallel_attention_and_mlp_read_the_stream_at_one_place():
    (palm,) = transformer_block(model("palm"), 2048, "causal").panels
    (llama,) = transformer_block(model("llama 3 8b"), 2048, "causal").panels

    def reads(panel: str) -> set[str]:
        """Heights at which a line leaves the stream to the right."""
        return set(re.findall(r'd="M18 ([\d.]+)L38', panel))

    said = transformer_block(model("palm"), 2048, "causal").desc
    assert "Both read it at once and add their results. FLOPs" in said
    assert len(reads(palm)) == 1
    assert len(reads(llama)) == 2
