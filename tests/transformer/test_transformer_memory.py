"""Bytes of activations, state, cache and logits: against JAX and closed forms."""

import jax
import jax.numpy as jnp
import pytest
from jax._src.ad_checkpoint import saved_residuals

from shardmath import transformer
from shardmath.transformer import (
    DEEPSEEK_V3,
    GPT_OSS_120B,
    KERNELS,
    LLAMA_3_8B,
    REMAT,
    TRAINING,
    Model,
    Saved,
    korthikanti,
    kv_cache,
    logits_bytes,
    model,
    recurrent_state,
    saved,
    saved_bytes,
    saved_once,
)

GPT = Model("a GPT", 4, 2048, 8192, 16, 16, 128, 32_000)
UNGATED = Model("without a gate", 4, 64, 256, 4, 4, 16, 1000, gated=False)
GROUPED = Model("with groups", 4, 64, 192, 8, 2, 16, 1000)

# ------------------------------------------------------------- what JAX itself keeps


Kept = tuple[str, float]  # format and bytes


def kept_by_jax(
    m: Model, seqs: int, seq: int, remat: str
) -> tuple[list[Kept], list[Kept]]:
    """What JAX saves of `programs.block.layers`: in each layer, and once for all."""
    block = pytest.importorskip("shardmath.referee.programs.block")
    weights = block.shapes(m)["layers"]
    x = jax.ShapeDtypeStruct((seqs, seq, m.d_model), jnp.bfloat16)
    kept = saved_residuals(lambda x, w: block.layers(x, w, remat), x, weights)
    formats = {"bfloat16": "bf16", "float32": "fp32", "bool": "bool"}
    layer, once = [], []
    for array, why in kept:
        entry = formats[str(array.dtype)], array.size * array.dtype.itemsize
        if why.startswith("output of scan"):
            assert array.shape[0] == m.layers
            layer.append((entry[0], entry[1] / m.layers))
        elif array.shape and "argument w" not in why:  # no constants, no weights
            once.append(entry)
    return layer, once


@pytest.mark.parametrize("m", [GPT, UNGATED, GROUPED], ids=lambda m: m.name)
@pytest.mark.parametrize("remat", REMAT)
def test_saved_arrays_are_those_that_jax_saves(m, remat):
    """Array by array and to the byte, under each policy."""
    seqs, seq = 2, 96
    sizes = m.sizes(seqs, seq)
    layer, once = kept_by_jax(m, seqs, seq, remat)
    listed = (
        (saved(m, remat, kernel="unfused"), layer),
        (saved_once(m, remat, kernel="unfused"), once),
    )
    for ours, theirs in listed:
        assert sorted((one.format, one.nbytes(sizes)) for one in ours) == sorted(theirs)


def test_the_usual_closed_form_misses_a_third_of_what_an_f32_softmax_keeps():
    """For one sequence of 2,048 tokens: 478 MB by the form, 671 MB by JAX."""
    found = saved_bytes(GPT, 1, 2048, "none", kernel="unfused")
    usual = korthikanti(GPT, 1, 2048)
    assert f"{usual / 1e6:.0f} {found / 1e6:.0f}" == "478 671"
    sizes = GPT.sizes(1, 2048)
    scores = sizes["N"] * sizes["S"] ** 2

    def a_score(arrays: tuple[Saved, ...]) -> float:
        over = [one for one in arrays if {"S", "T"} <= {*one.array.dims}]
        return sum(one.nbytes(sizes) for one in over) / scores

    assert usual - 34 * GPT.D * 2048 == 5 * scores
    assert a_score(saved(GPT, "none", kernel="unfused")) == 6
    assert a_score(saved_once(GPT, "none", kernel="unfused")) == 5
    assert a_score(saved(GPT, "none")) == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_policy_keeps_less_than_the_one_before(kernel):
    order = ("none", "selective", "elementwise", "dots", "full")
    assert {*order} == {*REMAT}
    kept = [saved_bytes(LLAMA_3_8B, 4, 8192, remat, kernel=kernel) for remat in order]
    assert kept == sorted(kept, reverse=True)
    assert len({*kept}) == len(kept)
    assert kept[-1] == 4 * 8192 * LLAMA_3_8B.D * 2


# --------------------------------------------------------------- state, cache, logits


def test_mixed_precision_holds_sixteen_bytes_a_parameter():
    """ZeRO's sum, 2 + 2 + 12, and its 120 GB for 7.5 billion parameters."""
    mixed = TRAINING["mixed"]
    assert (mixed.copy, mixed.gradient, mixed.state) == (2, 2, 12)
    assert mixed.total * 7.5e9 == 120e9
    assert {name: one.total for name, one in TRAINING.items()} == {
        "mixed": 16,
        "mixed, fp32 gradients": 18,
        "fp32": 16,
    }


def test_a_latent_cache_has_576_values_a_layer():
    layers = DEEPSEEK_V3.layers
    assert kv_cache(DEEPSEEK_V3, 1, "int8") == 576 * layers
    heads = 2 * DEEPSEEK_V3.K * DEEPSEEK_V3.H * layers  # what it would be without
    assert heads / (576 * layers) > 80


@pytest.mark.parametrize("m", transformer.ALL, ids=lambda m: m.name)
def test_the_cache_grows_by_a_token_until_the_windows_are_full(m):
    width = kv_cache(m, 1) / m.attention_layers
    assert kv_cache(m, 100) == 100 * width * m.attention_layers
    more = kv_cache(m, 40_001) - kv_cache(m, 40_000)
    assert more == width * m.global_layers


def test_what_a_recurrent_model_keeps_does_not_grow():
    """By hand: 45 layers, 64 matrices of 128 x 128 in fp32, 3 tokens of 12,288 bf16
    channels; 15 layers with 2 keys and 2 values of 256."""
    m = model("qwen3.5 397b")
    assert recurrent_state(m) == 45 * (4 * 64 * 128 * 128 + 2 * 3 * 12_288)
    assert kv_cache(m, 1000, "fp8") == 15 * 1000 * 4 * 256
    assert recurrent_state(LLAMA_3_8B) == 0


def test_an_indexer_has_its_own_keys():
    latent, chosen = model("deepseek v3"), model("deepseek v3.2")
    assert kv_cache(chosen, 1, "fp8") - kv_cache(latent, 1, "fp8") == 61 * 128


def test_windows_keep_the_cache_small():
    """gpt-oss: 18 of 36 layers keep 128 tokens, so that half of it is left."""
    everywhere = 36 * 131_072 * 2 * 8 * 64 * 2
    assert kv_cache(GPT_OSS_120B, 131_072) / everywhere == pytest.approx(0.5, rel=1e-3)


def test_logits():
    assert logits_bytes(LLAMA_3_8B, 2, 10) == 4 * 20 * 128_256
    with pytest.raises(ValueError, match="seqs = 0: must be a whole number from 1"):
        logits_bytes(LLAMA_3_8B, 0, 10)
    with pytest.raises(ValueError, match="precision 'f16': must be one of"):
        kv_cache(LLAMA_3_8B, 10, "f16")
