"""Predictions: parts by hand, never below the bound, and in the right direction."""

from dataclasses import replace

import pytest

from shardmath.hardware.chips import H100, TPU_V5P, find
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import network
from shardmath.training import (
    Software,
    combine,
    context,
    data,
    expert,
    fsdp,
    pipeline,
    step,
    tensor,
    zero,
)
from shardmath.training.efficiencies import (
    FITTED,
    Efficiencies,
    efficiencies,
    sustained,
    table,
    without,
)
from shardmath.training.operations import Done
from shardmath.training.prediction import PARTS, Clock, Prediction
from shardmath.transformer import (
    DEEPSEEK_V3,
    LLAMA_3_8B,
    LLAMA_3_70B,
    MIXTRAL_8X7B,
    Model,
)

AT = efficiencies()
TINY = Model("tiny", 4, 1024, 4096, 8, 8, 128, 32_000)


def on(machine, strategy, axes, model=LLAMA_3_8B, seqs=64, seq=8192, **more):
    """A step on a machine."""
    more = {"attention": "causal", "remat": "none"} | more
    return step(strategy, model, Mesh(network(machine), axes), seqs, seq, **more)


STEPS = {
    "data": on("h100:8", data("X"), {"X": 8}, TINY),
    "fsdp": on("h100:8x8", fsdp("X"), {"X": 64}),
    "tensor": on("h100:8", tensor("Y"), {"Y": 8}),
    "pipeline": on("h100:8x8", combine(pipeline("P"), zero(1, "X"), tensor("Y")),
                   {"P": 4, "X": 2, "Y": 8}, LLAMA_3_70B, microbatches=16),
    "context": on("h100:8x8", combine(fsdp("X"), context("C", "ring")),
                  {"X": 8, "C": 8}, seqs=8, seq=65536),
    "experts": on("h100:8x8", combine(zero(1, "X"), expert("E", "state")),
                  {"X": 8, "E": 8}, MIXTRAL_8X7B, seq=4096),
    "latents": on("h800:64x8", combine(pipeline("P"), expert("E", "state")),
                  {"P": 8, "E": 64}, DEEPSEEK_V3, 1024, 4096, microbatches=16),
    "torus": on("v5p:4x4x4", combine(fsdp("X"), tensor("Y")), {"X": 16, "Y": 4}),
}  # fmt: skip
each_step = pytest.mark.parametrize("one", STEPS.values(), ids=STEPS)


@each_step
def test_a_step_is_the_sum_of_its_parts_and_not_below_its_bound(one):
    found = one.prediction
    assert set(found.parts) == set(PARTS)
    assert min(found.parts.values()) >= 0
    assert found.bound == one.estimate.lower < sum(found.parts.values())
    assert found.seconds == pytest.approx(sum(found.parts.values()))
    assert found.bound <= found.low < found.seconds < found.high


@each_step
@pytest.mark.parametrize("name", FITTED)
def test_no_step_is_faster_with_a_worse_efficiency(one, name):
    """More of what is exposed, and more trips through memory, are worse."""
    worse = 1.2 if name in ("exposed", "trips") else 0.8
    at = replace(AT, **{name: getattr(AT, name) * worse})
    assert one.predicted(at=at).seconds >= one.prediction.seconds


@each_step
def test_with_perfect_chips_the_bound_is_near(one):
    """Nothing is fitted then: every operation at its peak, the links at their rate."""
    numbers = dict.fromkeys(FITTED, 1.0) | {"exposed": 1e-9}
    at = replace(AT, **numbers, launch=1e-12, network=1.0, hop=1e-12, rows=1e-9)
    software = Software(overlap=("tensor", "experts"))
    found = sum(one.predicted(software, at).parts.values())
    assert 1 < found / one.estimate.lower < 2


def test_the_math_of_data_parallelism_by_hand():
    """Eight GPUs, one microbatch of 65,536 tokens each: every matmul is large."""
    one = STEPS["data"]
    tokens = 8 * 8192
    weights = TINY.layers * (4 * 1024**2 + 3 * 1024 * 4096) + 1024 * 32_000
    flops = 6 * weights * tokens
    math = flops / (AT.matmul * sustained(H100, "bf16"))
    assert one.prediction.parts["math"] == pytest.approx(math, rel=1e-9)
    scores = 2 * 2 * (8192 + 1) / 2 * 1024 * TINY.layers * tokens * 3
    attention = scores / (AT.attention * sustained(H100, "bf16"))
    assert one.prediction.parts["attention"] == pytest.approx(attention, rel=1e-3)


def test_memory_passes_and_the_optimizer_by_hand():
    """8·D + 4·(N + K)·H + 3·F values of two bytes a token forward, and twice that
    backward; 20 bytes a logit; 30 bytes a parameter."""
    one, m = STEPS["data"], TINY
    tokens = 8 * 8192
    values = 8 * m.D + 4 * (m.N + m.K) * m.H + 3 * m.F
    nbytes = 3 * 2 * values * m.layers * tokens + 20 * 32_000 * tokens
    width = AT.memory * H100.hbm_bandwidth
    assert one.prediction.parts["memory"] == pytest.approx(nbytes / width, rel=1e-9)
    optimizer = 30 * m.params / width
    assert one.prediction.parts["optimizer"] == pytest.approx(optimizer, rel=1e-3)


def test_tensor_parallelism_is_exposed_on_gpus_by_hand():
    """Four gathers or scatters of t·D forward, and six backward, at the links' rate;
    two of each at the ends, at the embedding and the head, are left out here."""
    one = on("h100:8", tensor("Y"), {"Y": 8}, vocabulary=False)
    t, m = 64 * 8192, LLAMA_3_8B
    nbytes = m.layers * 8 * 2 * t * m.D * 7 / 8
    seconds = nbytes / (AT.network * H100.scale_up_bandwidth)
    assert one.prediction.parts["tensor"] == pytest.approx(seconds, rel=1e-9)
    stated = one.predicted(Software(overlap=("tensor",))).parts["tensor"]
    assert stated == pytest.approx(AT.stated_overlap * seconds, rel=1e-9)


def test_products_hide_a_part_of_tensor_parallelism_on_tpus():
    """Of an exchange that is shorter than the products, x is exposed, as of a gather;
    of a longer one, the excess too."""
    clock = Clock(TPU_V5P, "bf16", Software(), AT)
    two_seconds = (2.0 * AT.matmul * TPU_V5P.flops["bf16"], 0.0, "bf16", 0.0)
    for seconds, excess in ((0.5, 0.0), (3.0, 1.0), (20.0, 18.0)):
        busy = {"tensor": seconds * AT.network}
        one = clock.part(Done((two_seconds,), 0.0, 0.0, 0.0, 0.0, 0.0, busy), 0)
        exposed = min(seconds, excess + AT.exposed * seconds)
        assert one.tensor == pytest.approx(exposed)
    one = STEPS["torus"].prediction.parts
    assert 0 < one["tensor"] < one["math"]
    stated = STEPS["torus"].predicted(Software(("tensor",))).parts["tensor"]
    assert stated == pytest.approx(one["tensor"] * AT.stated_overlap / AT.exposed)


def test_a_pipeline_waits_as_long_as_its_closed_form_says():
    one = STEPS["pipeline"].prediction.parts
    busy = sum(
        one[name] for name in ("math", "attention", "memory", "launches", "tensor")
    )
    assert one["bubble"] == pytest.approx(3 / 16 * busy, rel=0.05)  # ends are uneven


def test_gathers_of_fsdp_stay_exposed_by_their_share():
    """In each direction the gather is shorter than the work: x of it is exposed."""
    one = STEPS["fsdp"]
    clock = Clock(H100, "bf16", Software(), AT)
    assert clock.gather(0.3, 10.0) == pytest.approx(AT.exposed * 0.3 / AT.network)
    g = 30 / AT.network
    assert clock.gather(30.0, g - 1) == pytest.approx(1 + AT.exposed * g)
    assert clock.gather(30.0, 10.0) == pytest.approx(g)  # all of it, and no more
    assert 0 < one.prediction.parts["weights"] < one.prediction.parts["math"]


def test_few_rows_make_matmuls_of_experts_slow():
    clock = Clock(H100, "bf16", Software(), AT)
    few, many = (clock.product(1e12, 0.0, "bf16", rows) for rows in (64, 1e9))
    assert few == pytest.approx(2 * many, rel=1e-6)
    assert many == pytest.approx(clock.product(1e12, 0.0, "bf16", 0))


def test_tokens_of_experts_make_trips_through_memory():
    """Counted by hand: 2 of 8 experts, bf16, three times for forward and backward."""
    one = on("h100:8", combine(expert("E")), {"E": 8}, MIXTRAL_8X7B, 8, 4096)
    still = one.predicted(at=replace(AT, trips=1e-9)).parts["memory"]
    nbytes = 3 * 2 * MIXTRAL_8X7B.layers * 2 * 4096 * MIXTRAL_8X7B.d_model
    trips = AT.trips * nbytes / (AT.memory * H100.hbm_bandwidth)
    assert one.prediction.parts["memory"] - still == pytest.approx(trips)


def test_a_product_waits_for_its_bytes_if_it_is_small():
    clock = Clock(H100, "bf16", Software(), AT)
    nbytes = 2 * 4096 * 4096
    assert clock.product(2 * 8 * 4096**2, nbytes, "bf16", 0) == pytest.approx(
        nbytes / (AT.memory * H100.hbm_bandwidth)
    )


def test_an_older_kernel_is_slower():
    older = STEPS["data"].predicted(Software(old_attention=True)).parts["attention"]
    assert older == pytest.approx(STEPS["data"].prediction.parts["attention"]
                                  / AT.old_attention)  # fmt: skip


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (on("mi300x:8", data("X"), {"X": 8}, TINY), "no run on MI300X was in the fit"),
        (
            on("v5p:4x4x4", combine(pipeline("P"), fsdp("X")), {"P": 2, "X": 32},
               microbatches=2),
            "no run with a pipeline on TPUs",
        ),
        (
            on("h100:8", context("C", "ring"), {"C": 8}, TINY, 1, 2**19),
            "sequences are longer than",
        ),
    ],
)  # fmt: skip
def test_what_is_unusual_is_named(one, said):
    assert any(said in warning for warning in one.prediction.warnings)
    assert said in str(one)


def test_a_usual_step_has_no_warning_and_prints_three_values():
    one = STEPS["fsdp"]
    assert one.prediction.warnings == ()
    said = str(one)
    assert "bound " in said
    assert "likely " in said
    assert "8 of 10 runs" in said
    assert "math " in said


def test_a_layer_that_is_partly_computed_again_takes_a_share_of_the_time():
    """Half of 32 layers: half of what full recomputation adds."""
    none, half, full = (
        on(
            "h100:8x8", fsdp("X"), {"X": 64}, remat=remat, remat_share=share
        ).prediction.parts["math"]
        for remat, share in (("none", 1.0), ("full", 0.5), ("full", 1.0))
    )
    assert half - none == pytest.approx((full - none) / 2, rel=1e-9)


def test_every_number_has_a_source_and_lies_in_its_folds():
    found = table()
    assert tuple(found["fitted"]) == FITTED
    assert len(found["fitted"]) + len(found["constants"]) <= 11
    for name, row in found["fitted"].items():
        low, high = row["folds"]
        assert low <= row["value"] <= high, name
    for row in found["constants"].values():
        assert row["source"] in found["sources"]
    for kind in ("dense", "experts"):
        low, high = found["bands"][kind]
        assert low < 1 < high
    assert found["bands"]["experts"][1] > found["bands"]["dense"][1]


def test_a_fold_differs_from_the_whole_in_fitted_numbers_alone():
    for source in table()["without"]:
        one = without(source)
        for name in ("launch", "network", "old_attention", "hop", "rows"):
            assert getattr(one, name) == getattr(AT, name)


def test_what_chips_sustain_comes_from_their_records():
    assert sustained(H100, "bf16") == H100.achieved["bf16"]
    assert sustained(TPU_V5P, "bf16") == TPU_V5P.flops["bf16"]
    h800 = find("H800")
    share = H100.achieved["bf16"] / H100.flops["bf16"]
    assert sustained(h800, "bf16") == pytest.approx(share * h800.flops["bf16"])


@pytest.mark.parametrize(("name", "value"), [("matmul", 0), ("launch", -1e-6)])
def test_efficiencies_are_above_zero(name, value):
    with pytest.raises(ValueError, match=name):
        replace(AT, **{name: value})


def test_an_unknown_overlap_is_refused():
    with pytest.raises(ValueError, match="overlap = 'weights': must be one of"):
        Software(overlap=("weights",))


def test_a_prediction_is_a_sentence():
    found = Prediction({"math": 2.0, "bubble": 0.5}, 1.0, (0.8, 1.2))
    assert str(found) == "bound 1 s; likely 2.5 s (8 of 10 runs: 2 s to 3 s)"
    assert found.said == "math 2 s, bubble 500 ms"
    assert isinstance(AT, Efficiencies)
