"""A Transformer in numbers: its lines, and counts against ones made another way."""

import csv
import math
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shardmath import transformer
from shardmath.sharding import contract
from shardmath.training.job import Job
from shardmath.transformer import (
    ATTENTION,
    DEEPSEEK_V3,
    LLAMA_3_8B,
    LLAMA_3_70B,
    PALM_540B,
    Experts,
    Indexer,
    Latent,
    Model,
    Recurrent,
    conventions,
    flops,
    keys_per_query,
    matmul,
    mfu,
    tokens_per_second,
)

TINY = Model("tiny", 2, 64, 256, 4, 2, 16, 1000)
SPARSE = Model(
    "sparse", 4, 64, 96, 4, 2, 16, 1000, experts=Experts(8, 2, 1, 1, 256, True)
)
LATENT = Model("latent", 4, 64, 256, 4, 4, 24, 1000, latent=Latent(40, 32, 16, 8, 20))
each_model = pytest.mark.parametrize(
    "model", [TINY, SPARSE, LATENT, *transformer.ALL], ids=lambda model: model.name
)


@each_model
def test_each_line_is_one_that_the_notation_reads_with_the_same_flops(model):
    sizes = model.sizes(8, 128)
    lines = {line for _, lines in model.stack for line in lines} | {model.head_line}
    for line in lines:
        for one in (line, *line.backward):
            assert matmul(one.line) == one
            op = contract(one.line, {}, **{d: sizes[d] for d in one.dims})
            assert op.flops == one.flops(sizes) == line.flops(sizes)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"kv_heads": 3}, "kv_heads = 3: must divide the 4 query heads"),
        ({"d_ff": 2.5}, "d_ff = 2.5: must be a whole number from 1"),
        ({"qk_norm": "rms"}, "qk_norm = 'rms': must be one of"),
        ({"global_every": 2}, "global_every = 2: must come with a window"),
        ({"positions": -1}, "positions = -1: must be a whole number from 0"),
        ({"window": 2.0}, "window = 2.0: must be a whole number from 0"),
        ({"gated": "8"}, "gated = '8': must be True or False"),
        ({"tied": 1}, "tied = 1: must be True or False"),
        ({"norm_after": None}, "norm_after = None: must be True or False"),
        ({"latent": Latent(1, 1, 1, 1, 1)}, "head = 16: with a latent"),
        ({"experts": 8}, "experts = 8: must be Experts"),
        ({"experts": Experts(4, 1, 0, 2, 8)}, "must be less than the 2 layers"),
        ({"norm_biases": True, "norm_scales": False}, "must have a scale"),
        ({"qkv_biases": "all"}, "qkv_biases = 'all': must be True or False"),
        ({"predictors": -1}, "predictors = -1: must be a whole number from 0"),
    ],
)
def test_what_cannot_be_is_refused(wrong, said):
    sizes = {
        name: getattr(TINY, name) for name in ("heads", "kv_heads", "head", "d_ff")
    }
    with pytest.raises(ValueError, match=said):
        Model("wrong", 2, 64, **{"vocab": 10, **sizes, **wrong})


def test_sizes_of_numpy_become_pythons():
    m = replace(LLAMA_3_70B, layers=np.int32(80), d_ff=np.int32(28_672))
    assert type(m.layers) is int
    assert m.params == LLAMA_3_70B.params
    long = replace(m, positions=np.int64(8), tied=np.bool_(True))
    assert (type(long.positions), long.tied) == (int, True)
    assert long.params == m.params + (8 - m.vocab) * m.D


def test_sizes_of_numpy_become_pythons_in_experts_and_latents():
    """In 32 bits the parameters of 256 experts would come out below 0."""

    def narrow(part):
        sizes = {name: n for name, n in vars(part).items() if type(n) is int}
        return replace(part, **{name: np.int32(n) for name, n in sizes.items()})

    v3 = DEEPSEEK_V3
    m = replace(v3, experts=narrow(v3.experts), latent=narrow(v3.latent))
    assert m.params == v3.params
    assert flops(m, 4096, "causal").training == flops(v3, 4096, "causal").training
    for part in (m.experts, m.latent):
        assert {*map(type, vars(part).values())} <= {int, bool}
    with pytest.raises(ValueError, match="router_bias = 'no': must be True or False"):
        Experts(4, 1, router_bias="no")


def test_experts_share_the_tokens_rounded_up():
    assert SPARSE.sizes(1, 4)["slots"] == 1
    assert SPARSE.sizes(1, 5)["slots"] == 2
    with pytest.raises(ValueError, match="per_token = 9: must be at most 8"):
        Experts(8, 9)
    with pytest.raises(ValueError, match="every = 2, dense_d_ff = 0: the last must be"):
        Experts(8, 2, every=2)
    with pytest.raises(ValueError, match="dense_d_ff = 64: the last must be above 0"):
        Experts(8, 2, dense_d_ff=64)
    with pytest.raises(ValueError, match="every = 0: must be a whole number from 1"):
        Experts(8, 2, every=0)


def test_backward_costs_twice_the_forward_pass():
    for line in TINY.layer:
        sizes = TINY.sizes(2, 8)
        assert sum(one.flops(sizes) for one in line.backward) == 2 * line.flops(sizes)
        assert math.prod(sizes[d] for d in line.backward[1].result.dims) == (
            line.weight.count(sizes)
        )


# ------------------------------------------------------------------- FLOPs of a token


@each_model
@pytest.mark.parametrize("attention", ATTENTION)
def test_flops_of_a_token_are_those_of_its_lines(model, attention):
    seqs, seq = 3, 1280  # 3,840 tokens: every count of experts here shares them equally
    sizes = model.sizes(seqs, seq)
    found = flops(model, seq, attention)
    lines = sum(n * one.flops(sizes) for n, each in model.stack for one in each)
    assert found.weights == lines / (seqs * seq)
    assert found.head == model.head_line.flops(sizes) / (seqs * seq)
    if model.trains and not model.window:
        share = keys_per_query(seq, attention) / seq
        whole = model.layers * sum(one.flops(sizes) for one in model.attention)
        assert found.attention == pytest.approx(share * whole / (seqs * seq), rel=1e-12)


@pytest.mark.parametrize("model", [TINY, SPARSE, LATENT], ids=lambda model: model.name)
def test_flops_of_a_line_are_those_that_xla_counts(model):
    sizes = model.sizes(2, 8)
    every = {line for _, lines in model.stack for line in lines}
    letters = {dim: chr(ord("a") + n) for n, dim in enumerate(sizes)}
    for line in (*every, *model.attention, model.head_line):
        arrays = line.reads, line.weight, line.result
        left, right, result = ("".join(letters[d] for d in one.dims) for one in arrays)
        shapes = [
            jax.ShapeDtypeStruct([sizes[d] for d in one.dims], jnp.float32)
            for one in arrays[:2]
        ]
        product = jax.jit(
            lambda x, w, s=f"{left},{right}->{result}": jnp.einsum(s, x, w)
        )
        assert product.lower(*shapes).cost_analysis()["flops"] == line.flops(sizes)


@pytest.mark.parametrize("seq", [1, 2, 7, 64])
@pytest.mark.parametrize("window", [0, 1, 3, 64, 100])
def test_causal_keys_are_those_of_the_mask(seq, window):
    keys = [min(query + 1, window or seq) for query in range(seq)]
    assert keys_per_query(seq, "causal", window) == pytest.approx(sum(keys) / seq)
    assert keys_per_query(seq, "full", window) == max(keys)
    half_a_key = max(keys) / (
        2 * seq
    )  # 1/2 without a window: the diagonal's other half
    counted = keys_per_query(seq, "half", window) + half_a_key
    assert counted == pytest.approx(keys_per_query(seq, "causal", window))


def test_dense_models_agree_with_the_closed_forms():
    """6 · params and 12 · L · N · H · S, with what the first counts beside matmuls."""
    m, seq = LLAMA_3_70B, 8192
    norms = (2 * m.layers + 1) * m.d_model
    embedding = m.vocab * m.d_model
    found = flops(m, seq, "full")
    assert 3 * (found.weights + found.head) == 6 * (m.params - norms - embedding)
    assert 3 * found.attention == 12 * m.L * m.N * m.H * seq
    per_layer = 2 * m.D * (2 * m.N * m.H + 2 * m.K * m.H + 3 * m.F)
    assert found.weights == m.L * per_layer


def test_recompute():
    found = flops(LLAMA_3_8B, 8192, "causal")
    assert found.recomputed("none") == 0
    assert found.recomputed("dots") == found.attention
    assert found.recomputed("selective") == found.attention
    assert found.recomputed("full") == found.weights + found.attention
    assert found.recomputed("elementwise") == 0
    with pytest.raises(ValueError, match="remat = 'some': must be one of none"):
        found.recomputed("some")


@pytest.mark.parametrize(("attention", "share"), [("causal", "5.6%"), ("full", "4.9%")])
def test_the_last_matmul_is_the_share_of_all_flops_that_is_said(attention, share):
    found = flops(LLAMA_3_8B, 8192, attention)
    last = 2 * LLAMA_3_8B.L * LLAMA_3_8B.F * LLAMA_3_8B.D
    assert f"{last / (found.training + found.recomputed('full')):.1%}" == share


def test_attention_must_be_named():
    with pytest.raises(TypeError):
        flops(LLAMA_3_8B, 8192)
    with pytest.raises(ValueError, match="attention = True: must be one of causal"):
        flops(LLAMA_3_8B, 8192, True)
    with pytest.raises(ValueError, match="model = 'llama 3 8b': must be a Model"):
        flops("llama 3 8b", 8192, "causal")
    with pytest.raises(ValueError, match="seq = 0: must be a whole number from 1"):
        flops(LLAMA_3_8B, 0, "causal")
    with pytest.raises(ValueError, match="window = -1: must be a whole number"):
        keys_per_query(8, "causal", window=-1)


def rows(name: str) -> list[dict[str, str]]:
    text = (Path(__file__).parents[1] / "data" / name).read_text("utf-8")
    return list(csv.DictReader(t for t in text.splitlines() if not t.startswith("#")))


def logged(row: dict[str, str]) -> tuple[Model, float]:
    """The model of a row of MaxText's, and the FLOPs of a token in its log."""
    m = transformer.records.MODELS[row["model"]]
    if row["model"] == "gpt_3":
        m = replace(m, vocab=50_304)  # MaxText pads it
    return m, float(row["tflops"]) * 1e12 / float(row["tokens"])


@pytest.mark.parametrize("row", rows("maxtext.csv"), ids=lambda r: f"{r['model']}")
def test_flops_of_a_token_are_those_of_maxtext(row):
    """To four digits and more, in 21 runs of 10 models."""
    m, token = logged(row)
    seq, attention = int(row["seq"]), row["attention"]
    found = flops(m, seq, attention)
    if m.window:  # both logs count half of a window, though nearly all queries fill it
        more = keys_per_query(seq, "half", m.window) - m.window / 2
        local = m.layers - m.global_layers
        found = replace(found, attention=found.attention - 4 * local * more * m.N * m.H)
    assert found.training == pytest.approx(token, rel=2e-5)


def test_half_a_window_is_missing_in_two_models_of_maxtext():
    missing = {
        row["model"]: f"{flops(m, int(row['seq']), 'half').training / token - 1:.2%}"
        for row in rows("maxtext.csv")
        for m, token in [logged(row)]
        if m.window
    }
    assert missing == {"gemma_3_12b": "1.25%", "gpt_oss_120b": "0.16%"}


# ------------------------------------------------- recurrent layers and an indexer


def test_a_recurrent_layer_costs_what_its_steps_do():
    """A gated delta rule in plain loops, each multiply and add counted as done."""
    r = Recurrent(every=2, key_heads=1, value_heads=2, key=3, value=5, taps=4)
    done = 0
    for _ in range(r.value_heads):
        done += 2 * r.key * r.value  # what the faded state gives for the key
        done += 2 * r.key * r.value  # the outer product that corrects it
        done += 2 * r.key * r.value  # what the state gives for the query
    m = Model("two layers", 2, 8, 16, 2, 1, 4, 100, recurrent=r)
    plain = replace(m, recurrent=None)
    for seq in (1, 64, 4096):  # as much for each token, however long the sequence
        attention = flops(plain, seq, "causal").attention / 2
        assert flops(m, seq, "causal").attention == attention + done


def test_an_indexer_reads_every_key_and_attention_those_it_chose():
    m = Model("one layer", 1, 8, 16, 2, 2, 6, 100, latent=Latent(4, 4, 4, 2, 3))
    chosen = replace(m, indexer=Indexer(heads=3, head=5, chosen=4))
    scores = 2 * 3 * 5
    short, long = 4, 400  # where nothing is left out, and where most is
    every = flops(m, short, "causal").attention + scores * 2.5
    assert flops(chosen, short, "causal").attention == every
    keys = (1 + 2 + 3 + 4 * 397) / 400
    by_hand = scores * 200.5 + 2 * keys * 2 * (6 + 3)
    found = flops(chosen, long, "causal").attention
    assert found == pytest.approx(by_hand, rel=1e-12)


def test_training_of_what_it_cannot_derive_is_refused():
    for name, what in (("qwen3.5 397b", "a recurrent state"), ("glm-5", "an indexer")):
        with pytest.raises(ValueError, match=f"no training step .* {what}"):
            Job(transformer.model(name), 8, 4096)


# --------------------------------------------------------------------- MFU and HFU


def test_palm_as_published():
    """Appendix B: 45.7 % without attention, 46.2 % with, HFU 57.8 %; and Table 21."""
    palm, seq, peak = PALM_540B, 2048, 275e12
    rate = 238_300 / 6144
    token = conventions(palm, seq)
    assert f"{mfu(rate, token['6 · params'], peak):.1%}" == "45.7%"
    full = token["6 · params, full attention"]
    assert f"{mfu(rate, full, peak):.1%}" == "46.2%"
    assert f"{full / 1e12:.2f}" == "3.28"  # TFLOPs a token
    # "75% of non-attention forward pass FLOPs are recomputed", and all of attention
    again = 0.75 * 2 * palm.params + flops(palm, seq, "full").attention
    assert f"{(full + again) / 1e12:.2f}" == "4.10"
    assert f"{mfu(rate, full + again, peak):.1%}" == "57.8%"


def test_conventions_move_a_published_mfu_by_a_ninth():
    """Llama 3.1 8B on Trillium at 8,192 tokens: full attention, or half of it."""
    row = next(r for r in rows("maxtext.csv") if r["model"] == "llama_3_8b")
    token, peak = conventions(LLAMA_3_8B, 8192), 918e12
    shares = {name: mfu(float(row["tokens"]), t, peak) for name, t in token.items()}
    printed = float(row["tflops"]) * 1e12 / peak
    assert shares["matmuls, full attention"] == pytest.approx(printed, rel=1e-5)
    drop = 1 - shares["matmuls, half attention"] / printed
    assert f"{printed:.1%} {drop:.1%}" == "45.0% 11.1%"
    spread = max(shares.values()) / min(shares.values()) - 1
    assert f"{spread:.0%}" == "46%"  # all of the attention and embeddings, or none


def test_mfu_and_back():
    token = flops(LLAMA_3_8B, 8192, "causal").training
    assert mfu(tokens_per_second(0.4, token, 989e12), token, 989e12) == pytest.approx(
        0.4
    )
    with pytest.raises(ValueError, match="mfu = 40: must be a share"):
        tokens_per_second(40, token, 989e12)
    with pytest.raises(ValueError, match="peak = 0: must be a finite number above 0"):
        mfu(1, 1, 0)
