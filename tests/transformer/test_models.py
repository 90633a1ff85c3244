"""The models on record: counts equal the published ones, every value has a source."""

import csv
import datetime
import math
import re
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from shardmath import transformer
from shardmath.transformer import ACTIVE, Indexer, Model, Recurrent, model
from shardmath.transformer.records import SOURCES

each_model = pytest.mark.parametrize("m", transformer.ALL, ids=lambda m: m.name)

# Printed counts that no convention rounds to, and what ours is.
OFF = {
    ("PaLM 540B", "about.params"): 540_356_474_880,  # printed 540.35e9
    ("Qwen3 30B-A3B", "active.all"): 3_353_032_704,  # printed 3.3e9
    ("DeepSeek-V3", "about.predictor"): 11_610_068_224,  # printed 11.5e9
    ("GLM-4.5-Air", "about.params"): 106_852_251_264,  # printed 106e9
}


# What Hugging Face's counts of Llama 4 Scout and of Maverick have more than ours: one
# number for two models that share nothing else of their counts.
VISION_OF_LLAMA_4 = 871_932_416


def ours(m: transformer.Model, name: str) -> int:
    """Our count of a published one."""
    kind, _, convention = name.partition(".")
    if kind == "active":
        return m.active(convention)
    counts = {
        "params": m.params,
        "embedding": m.embedding_params,
        "non_embedding": m.params - m.embedding_params,
        "vocab": m.vocab,
        "positions": m.positions,
        # values stored that are no parameters: frequencies of the rotary positions
        "checkpoint": m.params + m.layers * m.head // 2,
        # each module has copies of the embedding and of the head
        "stored": m.params
        + m.predictors * (m.predictor_params + 2 * m.vocab * m.d_model),
        "predictor": m.predictor_params,
        "with_predictors": m.params + m.predictors * m.predictor_params,
        "with_vision": m.params + VISION_OF_LLAMA_4,
    }
    return counts[convention or kind]


def rounded(value: float, like: float) -> float:
    """`value` to as many digits as `like` has."""
    digits = len(f"{like:.0f}".rstrip("0"))
    return float(f"{value:.{digits - 1}e}")


@each_model
def test_counts_equal_the_published_ones(m):
    for name, fact in m.published.items():
        if "." not in name:
            assert ours(m, name) == fact.value, name
        elif (m.name, name) in OFF:
            assert ours(m, name) == OFF[m.name, name] != rounded(fact.value, fact.value)
            assert rounded(ours(m, name), fact.value) != fact.value
            assert ours(m, name) == pytest.approx(fact.value, rel=0.02)
        else:
            assert rounded(ours(m, name), fact.value) == fact.value, name


EXACT = {"params", "checkpoint", "stored", "with_predictors", "with_vision"}


def test_most_models_have_an_exact_count_to_be_held_against():
    exact = {m.name for m in transformer.ALL if EXACT & {*m.published}}
    missing = {m.name for m in transformer.ALL} - exact
    assert missing == {
        "GPT-3 175B",
        "PaLM 540B",
        "Kimi K2",
        "OLMo 2 32B",
        "GLaM 64B/64E",
        "Chinchilla 70B",
        "Gopher 280B",
        "Qwen3.5 27B",
        "Qwen3.5 35B-A3B",
        "Qwen3.5 122B-A10B",
    }


def test_google_counted_palm_without_the_scales_of_its_norms():
    """Else 540.35 billion would be 540.36: the one printed count that ours is not."""
    palm = model("palm 540b")
    norms = (palm.layers + 1) * palm.d_model
    assert f"{(palm.params - norms) / 1e9:.2f}" == "540.35"


def test_deepseek_corrected_its_count_of_active_parameters():
    """36.7e9 with 0.9e9 of embedding and of head became 36.6e9 with the head alone."""
    v3 = model("deepseek v3")
    fact = v3.published["active.without input embedding"]
    assert fact.value == 36.6e9
    assert fact.said("deepseek_weights_first") == 36.7e9
    counts = {name: f"{v3.active(name) / 1e9:.1f}" for name in ACTIVE}
    assert counts == {
        "all": "37.6",
        "without input embedding": "36.6",
        "without embeddings": "35.7",
    }


def table(name: str) -> list[dict[str, str]]:
    text = (Path(__file__).parents[1] / "data" / name).read_text("utf-8")
    return list(csv.DictReader(t for t in text.splitlines() if not t.startswith("#")))


@pytest.mark.parametrize(
    "row", table("chinchilla.csv"), ids=lambda row: row["millions"]
)
def test_a_matrix_of_relative_positions_makes_the_counts_of_deepmind(row):
    """All models from 44 to 2,980 million parameters, to the million; without it none.

    Gopher is described as these are. Biases everywhere fit, too: 14 are off without.
    """
    sizes = (int(row[key]) for key in ("layers", "d_model", "ffw", "heads"))
    layers, width, hidden, heads = sizes
    m = Model(
        "a Chinchilla", layers, width, hidden, heads, heads, int(row["kv"]), 32_000,
        gated=False, tied=True, biases=True, relative=True,
    )  # fmt: skip
    assert round(m.params / 1e6) == int(row["millions"])
    assert round(replace(m, relative=False).params / 1e6) < int(row["millions"])


@pytest.mark.parametrize(
    ("printed", "sizes"),
    [
        (117e6, (12, 768, 3072, 12, 12, 64)),
        (417e6, (12, 1536, 6144, 12, 12, 128)),
        (1.4e9, (24, 2048, 8192, 16, 16, 128)),
        (7.1e9, (32, 4096, 16_384, 32, 32, 128)),
    ],
    ids=str,
)
def test_smaller_gophers_have_the_counts_of_the_same_table(printed, sizes):
    """Table 1 of arXiv:2112.11446, as quoted; the feed-forward size is 4 · D."""
    gopher = model("gopher")
    names = ("layers", "d_model", "d_ff", "heads", "kv_heads", "head")
    small = replace(gopher, **dict(zip(names, sizes, strict=True)))
    assert rounded(small.params, printed) == printed
    assert rounded(replace(small, relative=False).params, printed) != printed


def test_what_each_form_adds_is_what_its_counts_need():
    """Without it the published count would be another one."""
    bloom, olmo, qwen = model("bloom"), model("olmo 7b"), model("qwen2.5 7b")
    assert bloom.params - replace(bloom, embedding_norm=False).params == 2 * bloom.D
    scaled = replace(olmo, norm_scales=True)
    assert scaled.params - olmo.params == (2 * olmo.L + 1) * olmo.D
    added = qwen.params - replace(qwen, qkv_biases=False).params
    assert added == qwen.L * (qwen.N + 2 * qwen.K) * qwen.H
    every = replace(qwen, qkv_biases=False, biases=True)
    assert every.params > qwen.params


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("qwen3.5 397b", {"output_gate": False}),
        ("qwen3.5 397b", {"recurrent": None}),
        ("qwen3.5 397b", {"qk_norm": ""}),
        ("glm-5", {"indexer": None}),
        ("minimax m2.5", {"qk_norm": "head"}),
        ("glm 4.5", {"qkv_biases": False}),
    ],
)
def test_newer_forms_are_what_their_counts_need_too(name, change):
    m = model(name)
    assert replace(m, **change).params != m.params


def test_a_state_stands_in_three_layers_of_four():
    """And a shared expert's gate, D weights, in all of them."""
    m = model("qwen3.5 397b")
    (kept, attention), (others, recurrent) = m.stack
    assert (kept, others) == (m.attention_layers, m.recurrent_layers) == (15, 45)
    assert [line.weight.name for line in attention[:4]] == ["q", "k", "v", "outgate"]
    assert [line.weight.name for line in recurrent[3:6]] == [
        "outgate", "correct", "decay",
    ]  # fmt: skip
    plain = replace(m, experts=replace(m.experts, shared_gate=False))
    assert m.params - plain.params == m.L * m.D


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"recurrent": Recurrent(3, 1, 1, 1, 1, 4)},
            "every = 3: must be at most the 2",
        ),
        (
            {"recurrent": Recurrent(2, 1, 1, 1, 1, 4), "window": 8},
            "window = 8: must be",
        ),
        ({"indexer": Indexer(1, 1, 1)}, "must come with latent"),
        ({"recurrent": 4}, "recurrent = 4: must be Recurrent(…) or None"),
    ],
)
def test_parts_that_do_not_go_together_are_refused(parts, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        Model("tiny", 2, 64, 256, 4, 2, 16, 1000, **parts)


def test_glam_has_experts_in_every_second_layer():
    """And neither gates on them, nor a matrix of relative positions: 96.6e9 active."""
    glam = model("glam")
    (dense, plain), (sparse, routed) = glam.stack
    assert (dense, sparse) == (32, 32)
    assert "gate[D, Fdense]" in str(plain[4])
    assert [line.weight.name for line in routed[4:]] == ["router", "up", "down"]
    wrong = [
        replace(glam, relative=True),
        replace(glam, tied=False),
        replace(glam, experts=replace(glam.experts, ungated=False)),
        replace(glam, experts=replace(glam.experts, every=1, dense_d_ff=0)),
    ]
    assert f"{glam.active('all') / 1e9:.1f}" == "96.6"
    for other in wrong:
        assert f"{other.active('all') / 1e9:.1f}" != "96.6"


@pytest.mark.parametrize(
    "name", ["gpt-oss-120b", "gpt-oss-20b", "mixtral", "kimi k2", "deepseek"]
)
def test_only_the_convention_on_record_gives_the_published_active_count(name):
    m = model(name)
    ((key, fact),) = ((k, f) for k, f in m.published.items() if k.startswith("active"))
    fits = [c for c in ACTIVE if rounded(m.active(c), fact.value) == fact.value]
    assert fits == [key.removeprefix("active.")]


def leaves(m: transformer.Model) -> dict:
    """Every array of a model, written down again without our lines."""
    D, N, K, H = m.d_model, m.heads, m.kv_heads, m.head
    zeros = jnp.zeros
    norm = 2 if m.norm_biases else 1 if m.norm_scales else 0

    def mlp(*wide: int) -> list:
        *some, width = wide
        first = 2 if m.gated and not (some and m.experts.ungated) else 1
        arrays = [zeros((*some, D, width))] * first
        arrays += [zeros((*some, width, D))]
        if m.biases:
            arrays += [zeros((*some, width))] * first
            arrays += [zeros((*some, D))]
        return arrays

    def attention() -> list:
        if m.latent:
            a = m.latent
            q = [zeros((D, a.q_rank)), zeros(a.q_rank)]
            q += [zeros((a.q_rank, N * (a.nope + a.rope)))]
            kv = [zeros((D, a.kv_rank + a.rope)), zeros(a.kv_rank)]
            kv += [zeros((a.kv_rank, N * (a.nope + a.value)))]
            if i := m.indexer:
                kv += [zeros((a.q_rank, i.heads * i.head)), zeros((D, i.head))]
                kv += [zeros((2, i.head)), zeros((D, i.heads))]
            return [*q, *kv, zeros((N * a.value, D))]
        wide_q = 2 * N if m.output_gate else N
        arrays = [zeros((D, (wide_q + 2 * K) * H)), zeros((N * H, D))]
        if m.biases:
            arrays += [zeros((N + 2 * K) * H), zeros(D)]
        if m.qkv_biases:
            arrays += [zeros(N * H), zeros(K * H), zeros(K * H)]
        if m.relative:
            arrays += [zeros((D, N * H))]
        if m.qk_norm:
            wide = {"head": (H, H), "width": (N * H, K * H)}[m.qk_norm]
            arrays += [zeros(size) for size in wide]
        return [*arrays, *([zeros(N)] if m.sinks else [])]

    def delta() -> list:
        r = m.recurrent
        mixed = 2 * r.key_heads * r.key + r.value_heads * r.value
        width = r.value_heads * r.value
        arrays = [zeros((D, mixed)), zeros((D, width)), zeros((D, 2 * r.value_heads))]
        arrays += [zeros((mixed, r.taps)), zeros((2, r.value_heads)), zeros(r.value)]
        return [*arrays, zeros((width, D))]

    def layer(inner: list, n: int) -> list:
        recurs = m.recurrent and n % m.recurrent.every
        first = delta() if recurs else attention()
        return [*first, *inner, *[zeros((norm, D))] * m.norms]

    def experts() -> list:
        e = m.experts
        router = [zeros((D, e.count)), *([zeros(e.count)] if e.router_bias else [])]
        shared = mlp(e.shared, m.d_ff) * bool(e.shared) + [zeros(D)] * e.shared_gate
        return router + mlp(e.count, m.d_ff) + shared

    every = []
    for n in range(1, m.layers + 1):
        behind = n - m.experts.dense_layers if m.experts else 0
        if not m.experts:
            every += layer(mlp(m.d_ff), n)
        elif behind > 0 and behind % m.experts.every == 0:
            every += layer(experts(), n)
        else:
            every += layer(mlp(m.experts.dense_d_ff), n)
    tables = [zeros((m.vocab, D))] * (1 if m.tied else 2)
    norms = [zeros((norm, D))] * (2 if m.embedding_norm else 1)
    return [*every, *tables, zeros((m.positions, D)), *norms]


@each_model
def test_counts_equal_those_of_arrays_that_jax_shapes(m):
    shapes = jax.eval_shape(lambda: leaves(m))
    assert m.params == sum(math.prod(shape.shape) for shape in shapes)


def test_sources_are_complete_used_and_never_memory():
    used = {m.source.key for m in transformer.ALL}
    for m in transformer.ALL:
        for fact in m.published.values():
            used |= {fact.source.key, *(source.key for _, source in fact.disagrees)}
    assert used == {*SOURCES}
    for key, source in SOURCES.items():
        assert source.kind in {"vendor", "vendor-code", "paper", "secondary"}, key
        assert source.title
        assert re.match(r"https://\S+$", source.url), key
        datetime.date.fromisoformat(source.read)
        assert ("as quoted" not in source.title) or source.kind == "secondary", key


def test_every_constant_is_a_record():
    constants = {
        name: value
        for name, value in vars(transformer.records).items()
        if isinstance(value, transformer.Model)
    }
    assert len(constants) > 10
    for name, value in constants.items():
        assert transformer.records.MODELS[name.lower()] is value
        assert name in transformer.__all__


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("llama-3.1-8B", "Llama 3.1 8B"),
        ("Llama 3 405b", "Llama 3.1 405B"),
        ("gpt3", "GPT-3 175B"),
        ("deepseek", "DeepSeek-V3"),
        ("qwen3 0.6b", "Qwen3 0.6B"),
        ("QWEN3-30B", "Qwen3 30B-A3B"),
        *[
            (name, found)
            for found, names in {
                "DeepSeek-V3": ["DeepSeek-R1", "deepseek-v3.1"],
                "MiniMax-M2.5": ["MiniMax-M2.5", "MiniMax M2"],
                "Qwen3 235B-A22B": ["Qwen3-235B"],
                "Qwen3.5 397B-A17B": ["Qwen3.5-397B", "Qwen3.5-397B-A17B"],
                "Kimi K2": ["Kimi-K2.5"],
                "Llama 4 Scout": ["Llama-4-Scout"],
                "Mixtral 8x22B": ["Mixtral-8x22B"],
                "Mixtral 8x7B": ["mixtral"],
                "Llama 3.1 70B": ["Llama-3.3-70B"],
                "Yi 34B": ["Yi-34B"],
            }.items()
            for name in names
        ],
    ],
)
def test_names_are_found(asked, found):
    assert model(asked).name == found


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("llama", "could be Llama 2 7B, Llama 2 70B, Llama 3.1 8B"),
        ("lama 3 8b", "nearest: Llama 3.1 8B"),
        ("", "no model is called '' or anything similar; MODELS has 51, such as Llama"),
    ],
)
def test_a_name_that_means_no_model_gets_the_nearest(asked, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        model(asked)
