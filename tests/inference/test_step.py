"""A step of inference, against counts made by hand and published answers."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from shardmath.hardware.chips import B200, H100, H200, TPU_V5E
from shardmath.inference import (
    Batch,
    Formats,
    Layout,
    Requests,
    Scheduler,
    Server,
    closed_loop,
    held,
    smallest_layout,
)
from shardmath.inference.server import keys_seen
from shardmath.transformer import kv_cache, model, recurrent_state

FP8 = Formats("fp8")
LLAMA, DEEPSEEK = model("llama 3 70b"), model("deepseek v3")


def server(name="llama 3 70b", on="h100:8", layout=None, formats=FP8):
    return Server(model(name), on, layout or Layout(8), formats)


def test_the_cache_of_a_token_is_what_the_papers_print():
    assert (
        sum(server(on="h100:1", layout=Layout()).amounts.cache) == 2 * 80 * 8 * 128 * 2
    )
    one = Server(DEEPSEEK, "h200:8", Layout(8), Formats("fp8"))
    assert sum(one.amounts.cache) == 61 * (512 + 64) * 2 == 70_272


def test_kv_heads_are_split_up_to_their_number_and_a_latent_is_not():
    for ways, copies in ((1, 1), (4, 1), (8, 1), (16, 2)):
        one = Server(LLAMA, "h100:8" if ways == 8 else f"gb200:{ways}", Layout(ways))
        assert sum(one.amounts.cache) * ways == 2 * 80 * 8 * 128 * 2 * copies
    for layout, copies in ((Layout(8), 8), (Layout(data=8, expert=8), 1)):
        one = Server(DEEPSEEK, "h200:8", layout, Formats("fp8"))
        per_server = sum(one.amounts.cache) * layout.tensor
        assert per_server == 70_272 * copies


@pytest.mark.parametrize(
    "name", ["llama 3 8b", "qwen 3 32b", "mixtral 8x7b", "kimi k2"]
)
def test_all_weights_that_matmuls_read_are_on_the_chips_once(name):
    one = Server(model(name), "gb200:1", Layout(), Formats("bf16"))
    assert one.amounts.weights == 2 * model(name).matmul_params


def test_latent_projections_are_copied_by_tensor_parallelism_and_all_else_is_split():
    alone = Server(DEEPSEEK, "h200:1", Layout(), Formats("fp8")).amounts.weights
    split = Server(DEEPSEEK, "h200:8", Layout(8), Formats("fp8")).amounts.weights
    copied = 61 * 7168 * (1536 + 512 + 64) + 2 * 58 * 7168 * 256  # down, and routers
    assert 8 * split - alone == pytest.approx(7 * copied)


def test_flops_of_a_token_are_two_for_each_active_weight():
    for name in ("llama 3 8b", "deepseek v3", "qwen 3 235b a22b", "gpt oss 120b"):
        one = Server(model(name), "b200:1", Layout(), Formats("bf16"))
        math = one.decode(1, 0).math
        assert math * B200.flops["bf16"] == pytest.approx(
            2 * model(name).active_matmul_params, rel=1e-4
        )


def test_a_prompt_pays_the_head_once():
    one = server("llama 3 8b", "h100:1", Layout(), Formats("bf16"))
    m = model("llama 3 8b")
    head = m.vocab * m.d_model
    tokens, scores = 1000, 4 * 32 * 32 * 128 * (1000 * 1001 / 2)
    flops = 2 * (m.active_matmul_params - head) * tokens + 2 * head + scores
    assert one.prefill(tokens).math * H100.flops["bf16"] == pytest.approx(flops)


def test_both_forms_of_latent_attention():
    """Decode reads the latent as it is; a prompt makes keys first, 3.4 times less."""
    one = Server(DEEPSEEK, "h200:8", Layout(8), Formats("fp8")).amounts
    assert one.scores[0] == 2 * 61 * 16 * (2 * 512 + 64)
    assert one.expanded[0] == 2 * 61 * 16 * (128 + 64 + 128)
    assert one.scores[0] / one.expanded[0] == pytest.approx(3.4)


def test_experts_touched():
    seen = [round(Server(DEEPSEEK, "h200:8", Layout(8)).touched(n), 2) for n in (8, 32)]
    assert seen == [0.22, 0.64]
    assert Server(LLAMA, "h100:8", Layout(8)).touched(64) == 0


def test_a_window_limits_what_is_read():
    """gpt-oss: 18 of 36 layers see 128 tokens."""
    one = Server(model("gpt oss 120b"), "h100:1", Layout(), Formats("bf16"))
    per_token = 2 * 8 * 64 * 2
    read = one.decode(1, 10_000).hbm - one.decode(1, 0).hbm
    assert read * H100.hbm_bandwidth == pytest.approx(18 * per_token * (10_000 + 128))
    assert keys_seen(300, 0, 128) == sum(min(i, 128) for i in range(1, 301))
    assert keys_seen(100, 100, 128) == sum(min(100 + i, 128) for i in range(1, 101))


def test_chunks_of_a_prompt_do_the_work_of_the_whole():
    one = server("llama 3 8b", "h100:1", Layout())
    whole = one.step(Batch(prefill=((2048, 0),)))
    parts = [one.step(Batch(prefill=((512, n * 512),))) for n in range(4)]
    head = 2 * 128256 * 4096 / H100.flops["bf16"]
    assert sum(p.math for p in parts) - 3 * head == pytest.approx(whole.math)
    assert sum(p.hbm for p in parts) > whole.hbm  # weights are read four times


def test_the_bound_is_never_above_the_prediction():
    for layout in (Layout(8), Layout(4, pipeline=2), Layout(2, data=4, expert=8)):
        one = Server(DEEPSEEK, "b200:8", layout, Formats("fp8"))
        for decode in (1, 7, 64, 1024):
            for prefill in ((), ((512, 0),), ((2048, 6000), (100, 0))):
                found = one.step(Batch(decode, decode * 3000, prefill))
                assert found.bound <= found.seconds


def test_weights_that_do_not_fit_say_by_how_much_and_what_does():
    with pytest.raises(ValueError, match=r"128 GB more than .* tensor 8 on 8 chips"):
        server("llama 3 405b", "h100:2", Layout(2)).slots(1000)
    smallest = smallest_layout(model("llama 3 405b"), H100, Formats("fp8"))
    assert smallest == Layout(8)
    assert smallest_layout(DEEPSEEK, H200, Formats("bf16")) == Layout(8, 2)


def test_slots_by_hand():
    """70B in fp8 on two H100s: 70.6e9 − half a table less, bytes left for caches."""
    one = server(on="h100:2", layout=Layout(2), formats=Formats("fp8", cache="fp8"))
    table = 128256 * 8192
    weights = (LLAMA.matmul_params + table + 2 * table) / 2  # tables in 16 bits
    free = 0.9 * H100.memory_bytes - weights
    each = 2 * 80 * 8 * 128 / 2 * 5504  # 5,500 tokens in pages of 16
    assert one.slots(held(5000, 500, reserved=True)) == free // each


def test_v5e_by_the_published_formula():
    """(batch · cache + weights) / all bandwidth, chapter 7 of the public book."""
    one = Server(
        model("llama 3 70b"), "v5e:4x4", Layout(16), Formats("int8", cache="int8")
    )
    found = one.decode(32, 32 * 8192).hbm
    m = model("llama 3 70b")
    copies = 2  # 8 KV heads on 16 chips
    nbytes = m.matmul_params - m.vocab * m.d_model + 2 * m.vocab * m.d_model
    kv = m.layers * m.d_model * 2 * m.kv_heads * m.head  # of K and V weights, copied
    nbytes += kv * (copies - 1)
    nbytes += copies * 32 * 8192 * 163_840
    assert found == pytest.approx(nbytes / (16 * TPU_V5E.hbm_bandwidth), rel=1e-6)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Formats("fp5"), "weights = 'fp5': must be one of"),
        (lambda: Layout(tensor=0), "tensor = 0"),
        (lambda: Layout(tensor=4, expert=3), "expert = 3: must divide"),
        (lambda: Server(LLAMA, "h100:8", Layout(4)), "layout of 4 chips"),
        (lambda: Server(LLAMA, "h100:8", Layout(8, expert=8)), "has no experts"),
        (lambda: Server("llama", "h100:8", Layout(8)), "must be a Model"),
        (lambda: Server(LLAMA, TPU_V5E, Layout(8)), "must be given as a slice"),
    ],
)
def test_bad_settings_are_quoted(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize("length", [1, 100, 5000])
@pytest.mark.parametrize(
    "name", ["gpt oss 120b", "glm 5", "qwen3.5 397b", "deepseek v3", "llama 3 8b"]
)
def test_a_chip_alone_keeps_what_the_model_keeps(name, length):
    one = Server(model(name), "gb300:1", formats=Formats("bf16")).memory
    wanted = kv_cache(model(name), length) + recurrent_state(model(name))
    assert one.sequence(length, page=1) == pytest.approx(wanted, abs=2 * 18 * 2048)


def test_an_indexer_reads_its_own_keys_and_those_that_it_chooses():
    one = Server(model("glm 5"), "gb300:1", formats=Formats("bf16"))
    layers, index, latent = 78, 128, 576
    read = (one.decode(1, 50_000).hbm - one.decode(1, 0).hbm) * one.chip.hbm_bandwidth
    assert read == pytest.approx(2 * layers * (50_000 * index + 2048 * latent))


def test_a_state_is_read_and_written_by_every_sequence():
    one = Server(model("qwen3.5 397b"), "gb300:1", formats=Formats("bf16"))
    more = one.decode(5, 0).hbm - one.decode(4, 0).hbm
    experts = one.touched(5) - one.touched(4)
    more -= (
        experts
        * sum(p.nbytes * p.layers for p in one.amounts.products if p.kind == "experts")
        / one.chip.hbm_bandwidth
    )
    assert more * one.chip.hbm_bandwidth == pytest.approx(
        2 * recurrent_state(model("qwen3.5 397b")), rel=1e-6
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda one: one.decode(math.nan, 8000), "seqs = nan: must be a finite number"),
        (lambda one: one.decode(8, -8e7), "context = -80000000.0: must be a finite"),
        (lambda one: one.decode("8", 1), "seqs = '8': must be a finite number"),
        (lambda one: one.prefill(-1e5), "tokens = -100000.0: must be a finite number"),
        (lambda one: one.slots(1000, page=-16), "page = -16: must be a whole number"),
        (
            lambda one: one.slots(1000, page=0),
            "page = 0: must be a whole number from 1",
        ),
        (lambda one: one.with_reserve(-5), "reserve = -5: must be from 0 to below 1"),
        (lambda one: held(-1, 10), "prompt = -1: must be a finite number from 0"),
        (
            lambda one: closed_loop(one, 8, Requests(1000, 200), room=-1),
            "room = -1: must be a finite number above 0",
        ),
        (
            lambda one: closed_loop(one, 4, "x"),
            "requests = 'x': must be Requests",
        ),
        (lambda one: Scheduler(mixed="no"), "mixed = 'no': must be True or False"),
        (lambda one: Scheduler(sequences=0), "sequences = 0: must be a finite number"),
        (lambda one: Requests(9, 9, "no"), "alike = 'no': must be True or False"),
        (
            lambda one: Server(LLAMA, "h100:8", Layout(8), "fp8"),
            "'fp8': must be a Formats",
        ),
        (lambda one: Server(LLAMA, "h100:8", 8), "8: must be a Layout"),
        (
            lambda one: Server(LLAMA, "h100:8", Layout(8), reserve="0.1"),
            "reserve = '0.1': must be a number",
        ),
        (
            lambda one: Server(LLAMA, "h100:12x8", Layout(pipeline=96)),
            "pipeline = 96: must be at most the 80 layers of Llama 3.1 70B",
        ),
        (
            lambda one: Server(LLAMA, "h100:6", Layout(6)),
            "tensor = 6: must divide the 64 query heads of Llama 3.1 70B",
        ),
    ],
)
def test_what_makes_no_server_or_step_is_quoted(call, said):
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        call(server())


def test_numpy_numbers_do_not_overflow():
    many = Layout(np.int32(65_536), np.int32(65_536))
    assert many.chips == 65_536**2


@pytest.mark.parametrize("tied", [False, True])
def test_a_stage_holds_its_layers_and_one_table(tied):
    """Llama 70B in bf16 on two stages of eight chips, counted by hand. Head and input
    embedding are one table if they are tied, and each end of the pipeline needs it."""
    one = replace(LLAMA, tied=tied)
    memory = Server(one, "h100:2x8", Layout(8, pipeline=2)).memory
    layer = 2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28_672
    table = 128_256 * 8192
    assert memory.weights == pytest.approx(2 * (40 * layer + table) / 8, rel=2e-4)
    assert sum(memory.cache) == 2 * 40 * 128 * 2  # one KV head a chip
    whole = Server(one, "h100:8", Layout(8)).memory
    both = table if tied else 2 * table
    assert whole.weights == pytest.approx(2 * (80 * layer + both) / 8, rel=2e-4)
    assert sum(whole.cache) == 2 * sum(memory.cache)
