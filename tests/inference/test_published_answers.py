"""Worked answers that How to Scale Your Model prints in its chapters on inference.

Each is computed by this package from the sizes of the model and the records of the chip
and compared with the printed value, within the rounding that the book does. The book
counts 8.1 or 8.2e11 bytes/s for a v5e, and a decimal 16 GB; where an answer hangs on
such a constant it is typed here.
"""

import math

import pytest

from shardmath.hardware.chips import TPU_V5E
from shardmath.inference import Formats, Layout, Server
from shardmath.transformer import Experts, Model, flops, kv_cache, model

LLAMA_13B = Model("LLaMA 2 13B", 40, 5120, 13824, 40, 40, 128, 32000)
LLAMA_70B = model("llama 3 70b")
SIZES = 64, 4096, 16384, 32, 8, 256, 32128
INVENTED = Model("invented", *SIZES)
WITH_EXPERTS = Model("invented, 16 experts", *SIZES, experts=Experts(16, 2))
GB = 1e9
SEQUENCE = 8192
INT8 = Formats("int8", cache="int8")


def near(printed, rtol=0.02):
    return pytest.approx(printed, rel=rtol)


@pytest.mark.parametrize(
    ("seqs", "step", "rate"),
    [
        (1, 4.98, 200.61),
        (8, 12.13, 659.3),
        (16, 20.3, 787.99),
        (32, 36.65, 873.21),
        (64, 69.33, 923.13),
        (240, 249.09, 963.53),
    ],
)
def test_a_13b_model_on_8_chips(seqs, step, rate):
    """Decode at 8,192 tokens: all weights, and all caches, over all bandwidth."""
    server = Server(LLAMA_13B, "v5e:2x4", Layout(8), Formats("bf16"))
    seconds = server.decode(seqs, seqs * SEQUENCE).hbm
    assert seconds * 1e3 == near(step)
    assert seqs / seconds == near(rate)


@pytest.mark.parametrize(
    ("seqs", "step", "rate"),
    [
        (1, 4.17, 239.94),
        (8, 5.6, 1429.19),
        (16, 7.23, 2212.48),
        (32, 10.5, 3047.62),
        (64, 17.04, 3756.62),
        (240, 52.99, 4529.34),
    ],
)
def test_the_same_with_a_fifth_of_the_cache(seqs, step, rate):
    """The book keeps all 13B weights. A model with 8 KV heads has fewer."""
    server = Server(LLAMA_13B, "v5e:2x4", Layout(8), Formats("bf16"))
    weights = server.decode(1, 0).hbm
    cache = server.decode(seqs, seqs * SEQUENCE).hbm - server.decode(seqs, 0).hbm
    seconds = weights + cache / 5
    assert seconds * 1e3 == near(step)
    assert seqs / seconds == near(rate)


def test_the_real_model_with_8_kv_heads_is_faster_than_the_book_says():
    grouped = Model("13B, 8 KV heads", 40, 5120, 13824, 40, 8, 128, 32000)
    server = Server(grouped, "v5e:2x4", Layout(8), Formats("bf16"))
    assert server.decode(1, SEQUENCE).hbm * 1e3 == near(3.61)


@pytest.mark.parametrize(
    ("found", "printed", "rtol"),
    [
        (kv_cache(LLAMA_13B, SEQUENCE) / GB, 6.7, 0.02),
        (INVENTED.params, 18.4e9, 0.02),
        (kv_cache(INVENTED, 1, "int8"), 262e3, 0.02),
        (kv_cache(INVENTED, 128_000, "int8") / GB, 33.5, 0.02),
        (WITH_EXPERTS.params, 212e9, 0.02),
        (WITH_EXPERTS.active("all"), 31.2e9, 0.02),
        (kv_cache(WITH_EXPERTS, 1, "int8"), 262e3, 0.02),
        (kv_cache(LLAMA_70B, 1, "int8"), 160e3, 0.028),
        (kv_cache(LLAMA_70B, 32_768, "int8") / GB, 5.3, 0.02),
        (240 * kv_cache(LLAMA_70B, 32_768, "int8") / 1e12, 1.3, 0.037),
        (TPU_V5E.intensity("bf16"), 240, 0.02),
        (TPU_V5E.intensity("bf16") / 2, 120, 0.02),  # int8 weights
        (TPU_V5E.intensity("int8") / 2, 240, 0.02),  # int8 both: 1 byte a weight
        (16 / 2 * TPU_V5E.intensity("bf16"), 1920, 0.02),  # E/k, ch. 7.5
    ],
)
def test_sizes_and_thresholds(found, printed, rtol):
    assert found == near(printed, rtol)


def test_slots_of_the_invented_model():
    """16 chips of 16 GB less the weights, over caches of 128k tokens."""
    for kv_heads, printed in ((8, 7), (1, 56)):
        one = Model("invented", 64, 4096, 16384, 32, kv_heads, 256, 32128)
        cache = kv_cache(one, 128_000, "int8")
        free = 16 * 16 * GB - INVENTED.params
        assert math.floor(free / cache) == printed


@pytest.mark.parametrize(
    ("bytes_", "chips", "slice_", "free"),
    [(2, 8.75, 16, 116), (1, 4.38, 8, 58), (0.5, 2.1875, 4, 29)],
)
def test_the_smallest_slice_for_70b(bytes_, chips, slice_, free):
    """The book prints 2.81 chips for int4, which 35 GB / 16 GB is not."""
    nbytes = 70e9 * bytes_
    assert nbytes / (16 * GB) == near(chips)
    assert 2 ** math.ceil(math.log2(nbytes / (16 * GB))) == slice_
    assert slice_ * 16 - nbytes / GB == near(free)


def test_caches_in_what_70b_leaves():
    """43 caches of 8,192 tokens for each, with caches as wide as the weights."""
    cache = kv_cache(LLAMA_70B, SEQUENCE, "int8") / GB
    room = [free / (nbytes * cache) for free, nbytes in ((116, 2), (58, 1), (29, 0.5))]
    assert [math.floor(one) for one in room] == [43, 43, 43]


def test_a_step_of_70b():
    server = Server(LLAMA_70B, "v5e:2x4", Layout(8), INT8)
    seconds = server.decode(32, 32 * SEQUENCE).hbm
    assert seconds * 1e3 == near(17)
    assert 32 / seconds == near(1882)
    assert 32 / seconds / 8 == near(235)
    # Twice the chips take half as long if no cache is copied: 8 KV heads on 16 chips
    # are, unless half of the sequences are on each group of 8.
    assert seconds / 2 * 1e3 == near(8.5, 0.025)
    copied = Server(LLAMA_70B, "v5e:4x4", Layout(16), INT8)
    assert copied.decode(32, 32 * SEQUENCE).hbm * 1e3 > 11.5


def test_a_prompt_of_70b_at_40_percent():
    tokens = 8192
    total = flops(LLAMA_70B, tokens, "half").weights * tokens
    assert total / (0.4 * 16 * TPU_V5E.flops["bf16"]) == near(0.91, 0.03)
