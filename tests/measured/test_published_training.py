"""Training runs: recounted to the digits that were printed, and never below a bound."""

from dataclasses import replace

import pytest

from shardmath import training
from shardmath.base.tables import Absent
from shardmath.measured import RUNS, ratios
from shardmath.measured.rows import rows
from shardmath.measured.run import AXES, counted
from shardmath.transformer import LLAMA_3_8B, flops

MAXTEXT = ("recipes_v6e", "recipes_v5p", "recipes_7x")  # steps that its log prints
CELLS = dict(zip(RUNS, rows("training.csv"), strict=True))


def of(*sources: str, **wanted) -> list:
    """The runs of some sources whose fields are as wanted."""
    return [
        run
        for run in RUNS
        if run.source.key in sources
        and all(getattr(run, name) == value for name, value in wanted.items())
    ]


def step_of(cell: str, source: str) -> float:
    """How far a printed number may be from the measured one, as a share of it."""
    if source == "llm_foundry" and "." not in cell:
        return 1 / float(cell)  # int(…) of its collect_results.py cuts off
    decimals = len(cell.partition(".")[2])
    return 0.5 * 10**-decimals / float(cell)


def test_each_row_says_where_it_was_read_and_what_it_measured():
    assert len(RUNS) > 350
    for run in RUNS:
        assert run.source.url.startswith("https://")
        assert run.tokens_per_second or run.flops_per_second or run.step_seconds
        size = 1
        for ways in run.mesh.values():
            size *= ways
        assert size in (run.chips, 1), run
        assert (size == 1) == (run.parallelism == "not published"), run


# --------------------------------------------------------------------- FLOPs of a token


def test_maxtext_counts_to_five_digits():
    """TFLOP/s over tokens/s of all steps: dense, MoE, MLA and windows."""
    found = of(*MAXTEXT)
    assert len(found) == 38
    for run in found:
        assert run.counted == pytest.approx(run.flops_per_token, rel=1e-5), run


def test_every_other_row_is_recounted_within_its_printed_digits():
    """Both rates are rounded where they are printed; nothing else is let through."""
    checked = 0
    for run, cells in CELLS.items():
        tokens, tflops, _, mfu, *_ = cells[9:]
        rate = tflops or mfu
        if not (run.counts and tokens and rate):
            continue
        allowed = step_of(tokens, run.source.key) + step_of(rate, run.source.key)
        if "whole sequences a second" in run.note:
            allowed += 0.5 * run.seq / run.chips / float(tokens)
        if run.source.key == "bridge":
            allowed += 0.002  # see the test below
        assert abs(run.flops_per_token / run.counted - 1) <= allowed + 2e-4, run
        checked += 1
    assert checked > 250


def test_megatron_bridge_is_a_little_off():
    """Steps are averaged one way for tokens and another for FLOPs: up to 0.3 %."""
    found = [run for run in of("bridge") if "sequences" not in run.note]
    found = [run for run in found if run.flops_per_second and run.tokens_per_second]
    off = [abs(run.flops_per_token / run.counted - 1) for run in found]
    assert max(off) < 0.004
    assert sorted(off)[len(off) // 2] < 0.001


def test_mpt_by_its_own_utilization_and_parameter_counts():
    """MFU has four digits, where the rate of FLOPs is cut off to whole TFLOP/s."""
    published = {  # NumParams of the same page, at 2,048 tokens (350m: 1,024)
        "mpt 125m": 125311488,
        "mpt 350m": 354936832,
        "mpt 760m": 760470528,
        "mpt 1b": 1315950592,
        "mpt 3b": 2651837440,
        "mpt 7b": 6658859008,
        "mpt 13b": 12853954560,
        "mpt 30b": 29975214080,
        "mpt 70b": 64862437376,
    }
    peaks = {("H100", "bf16"): 989.5e12, ("H100", "fp8"): 1979e12}  # as they took them
    params = {}
    for run in of("llm_foundry"):
        peak = peaks.get((run.chip.name, run.precision), 312e12)
        said = run.mfu * peak / run.tokens_per_second
        assert run.counted == pytest.approx(said, rel=3e-4), run
        passes = 4 / 3 if run.remat == "full" else 1
        assert run.hfu == pytest.approx(run.mfu * passes, abs=2e-4)
        if run.seq == (1024 if run.model.name == "mpt 350m" else 2048):
            params[run.model.name] = run.model.params
    assert params == published


def test_megatron_2021_by_its_own_formula():
    """96 · B · s · l · h² · (1 + s/6h + V/16lh): all layers run forward twice."""
    for run in of("megatron_2021"):
        h, s, layers, vocab = run.model.D, run.seq, run.model.L, run.model.vocab
        formula = 96 * layers * h**2 * (1 + s / (6 * h) + vocab / (16 * layers * h))
        assert run.counted == pytest.approx(formula, rel=1e-12)
        if run.hfu:
            assert run.flops_per_second / 312e12 == pytest.approx(run.hfu, abs=0.006)


def test_days_of_training_as_printed():
    """300 billion tokens with ZeRO-3, its table 2: from FLOPs alone, within 3.5 %."""
    days = [90, 74, 74, 169, 137, 140]
    found = of("megatron_2021", system="DeepSpeed")
    for run, printed in zip(found, days, strict=True):
        took = 300e9 / run.tokens * run.seconds / 86400
        assert took == pytest.approx(printed, rel=0.035), run


def test_utilization_of_sequence_parallelism():
    """MFU of its table 5 from the seconds, to its three digits.

    Its HFU is 1 + s/6h times the MFU, by its equation 8. That adds 12 · B · L · s² · h
    for a second forward pass of attention, where its text counts 4: 1 + s/18h.
    """
    found = [run for run in of("korthikanti") if run.mfu]
    for run in found:
        peak = run.chips * run.chip.flops["fp16"]
        mfu = run.counted * run.tokens / (run.seconds * peak)
        assert mfu == pytest.approx(run.mfu, abs=1.6e-3), run
        once = flops(run.model, run.seq, "full")
        if run.hfu:
            extra = run.hfu / run.mfu - 1
            assert extra == pytest.approx(3 * once.attention / once.training, abs=4e-3)
    first, *_, last = found
    assert [first.chips, last.chips] == [8, 2240]


def test_what_is_counted_moves_a_rate_by_a_quarter_and_more():
    """One run, all conventions: why a row without its convention cannot be compared."""
    (run,) = of("recipes_v6e", model=LLAMA_3_8B, chips=32)
    ways = counted(run.model, run.seq)
    assert run.fits == "matmuls, full attention"
    assert ways["matmuls, half attention"] < 0.9 * run.flops_per_token
    assert ways["layers forward twice, full attention"] > 1.3 * run.flops_per_token


# ----------------------------------------------------------------------- bounds of time


def test_no_run_is_faster_than_its_math():
    told = 0
    for run in RUNS:
        try:
            assert run.over_math > 1.15, run
            told += 1
        except Absent:
            assert run.source.key in ("llama3", "olmo2")
    assert told > 350


def test_a_bound_gathers_a_tied_table_once():
    """By FSDP that holds it from lookup to head: one gather and one ReduceScatter less
    than of two tables."""
    (run, *_) = of("llm_foundry", parallelism="FSDP")
    assert run.model.tied
    two = replace(run, model=replace(run.model, tied=False))
    less = two.bound.legs[1].amount - run.bound.legs[1].amount
    table = run.model.vocab * run.model.d_model * 2 * (1 - 1 / run.chips)
    assert less == pytest.approx(2 * table, rel=1e-9)


def test_no_run_is_faster_than_its_bound():
    """With the network in the bound, where it is known; every strategy."""
    told, kinds = 0, set()
    for run in RUNS:
        try:
            assert run.over_bound > 1.15, run
        except Absent:
            continue
        assert run.bound.lower >= run.math * (1 - 1e-12)
        told += 1
        kinds |= {AXES[axis][0] for axis in run.mesh if run.network}
    assert told > 370
    assert kinds == {name for name, _ in AXES.values()}


def test_a_wrong_precision_is_found_out():
    """GPT-3 in int8 on v5p, read as bf16, would beat its bound."""
    (run,) = of("recipes_v5p", precision="int8")
    assert replace(run, precision="bf16").over_math < 1 < run.over_math / 1.5


@pytest.mark.parametrize(("remat", "passes"), [("none", 3), ("full", 4)])
def test_where_only_layers_are_narrow_the_rest_is_at_the_peak_of_bf16(remat, passes):
    """Llama 3.1 8B counted by hand: scores, their values and the head in bf16."""
    run = replace(of("titan_h200")[0], remat=remat)
    keys, heads, head, layers, width, vocab = (8192 + 1) / 2, 32, 128, 32, 4096, 128256
    wide = passes * 4 * keys * heads * head * layers + 3 * 2 * width * vocab
    slower = 1 / run.chip.flops["bf16"] - 1 / run.chip.flops["fp8"]
    more = run.tokens * wide * slower / run.chips
    assert run.math_of_layers == pytest.approx(run.math + more, rel=1e-12)


def test_where_nothing_is_narrow_all_is_at_one_peak():
    for run in RUNS:
        if run.precision in ("bf16", "fp16") and run.seqs:
            assert run.math_of_layers == pytest.approx(run.math, rel=1e-12), run


@pytest.mark.parametrize("remat", ["none", "dots", "full"])
def test_what_is_needed_is_what_a_derived_step_computes(remat):
    some = [of(source)[0] for source in ("recipes_v6e", "llm_foundry", "maxtext_v5p")]
    some.append(next(run for run in of("recipes_v6e") if run.model.norms == 4))
    for run in some:
        run = replace(run, remat=remat)
        step = training.step(
            run.strategy,
            run.model,
            run.mesh,
            run.seqs,
            run.seq,
            attention="causal",
            remat=remat,
        )
        whole = sum(step.flops.values()) * run.chips / run.tokens
        assert run.needed == pytest.approx(whole, rel=1e-12), run


def test_what_is_last_in_a_layer_is_not_computed_again():
    """Beside each other, attention and MLP both end in the stream, which is kept."""
    (run, *_) = of("maxtext_v4", remat="full")
    assert run.model.parallel
    behind = replace(run, model=replace(run.model, parallel=False))
    y = run.model.L * 2 * run.model.D**2  # o[N, H, D], N · H = D
    assert run.model.N * run.model.H == run.model.D
    assert behind.needed - run.needed == pytest.approx(y, rel=1e-12)


def test_what_is_kept_is_not_computed_again():
    run = of("recipes_v5p", chips=512)[1]
    kept = [
        "full",
        "Q",
        "Q K",
        "Q K V",
        "Q K V y",
        "Q K V A y",
        "Q K V A y g u",
        "none",
    ]
    needed = [replace(run, remat=one).needed for one in kept]
    assert needed == sorted(needed, reverse=True)
    assert needed[-1] == needed[-2] < needed[0]


def test_ratios_by_kind_are_those_of_the_runs():
    runs = of("maxtext_v5p", "llama3")
    found = ratios(runs)
    assert set(found) == {"FSDP × tensor", "data × FSDP × tensor"}
    assert found["FSDP × tensor"] == tuple(
        sorted(run.over_math for run in runs if run.parallelism == "FSDP × tensor")
    )


# ---------------------------------------------------------------------------- bad input


def test_what_is_not_published_is_said():
    (piped, *_) = of("llama3")
    with pytest.raises(ValueError, match="how its FLOPs are counted is not known"):
        _ = piped.counted
    with pytest.raises(ValueError, match="does not tell the time of a step"):
        _ = piped.seconds
    with pytest.raises(ValueError, match="one of its two rates is not published"):
        _ = piped.flops_per_token
    (nowhere,) = of("olmo2")
    with pytest.raises(ValueError, match="its mesh is not published"):
        _ = nowhere.strategy
    with pytest.raises(ValueError, match="its batch is not published"):
        _ = nowhere.tokens
    assert repr(nowhere) == "OLMo: OLMo 2 32B on 1,280 H100, not published."
