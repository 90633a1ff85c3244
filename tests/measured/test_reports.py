"""Reports of training runs: what they print, recomputed in plain arithmetic."""

import math
import re

import pytest

from shardmath.hardware import chips
from shardmath.measured.reports import (
    CONVENTIONS,
    HARDWARE,
    INTERRUPTIONS,
    REPORTS,
    TOTALS,
    VOCABULARY,
    flops_per_token,
    mfu,
    solve,
    which_convention,
)
from shardmath.measured.run_figures import OF_RUN, OF_STEP
from shardmath.transformer import model

HOUR, DAY = 3600, 86_400
A100, H100, H800, V4 = 312e12, 989.4e12, 990e12, 275e12
WITHOUT_TABLE = "without input embedding"


def close(value, to, within):
    """Whether two numbers are equal to the digits that were printed."""
    return abs(value - to) <= within


# Conventions -------------------------------------------------------------------------


def test_attention_is_counted_as_palm_counts_it():
    """12 · L · N · H · S for all keys; the causal ones are (S + 1)/2 of S."""
    palm, seq = model("palm 540b"), 2048
    full = 12 * 118 * 48 * 256 * seq
    weights = 6 * palm.params
    assert flops_per_token(palm, seq, "6N") == weights
    assert flops_per_token(palm, seq, "full") == pytest.approx(weights + full)
    causal = full * (seq + 1) / 2 / seq
    assert flops_per_token(palm, seq, "causal") == pytest.approx(weights + causal)


def test_latent_attention_is_counted_by_its_own_head_sizes():
    """DeepSeek-V3: 192 for the scores and 128 for the values, in 61 layers."""
    deepseek, seq = model("deepseek v3"), 4096
    full = 6 * seq * 61 * 128 * (192 + 128)
    found = flops_per_token(deepseek, seq, "full") - flops_per_token(
        deepseek, seq, "6N"
    )
    assert found == pytest.approx(full)


def test_long_sequences_move_the_count_most():
    """Llama 3.1 405B at 131,072 tokens: 2.44, 4.06 and 5.68 TFLOPs per token."""
    attention = 12 * 126 * 16_384 * 131_072
    weights = 6 * 405_853_388_800
    by_hand = (weights, weights + attention / 2, weights + attention)
    found = [flops_per_token(model("llama 3 405b"), 131_072, c) for c in CONVENTIONS]
    assert found == pytest.approx(by_hand, rel=1e-4)
    rates = [380e12 / token for token in by_hand]
    assert [round(rate) for rate in rates] == [156, 94, 67]


def test_a_count_of_parameters_tells_only_6n_and_8n():
    assert flops_per_token(7e9, 2048, "6N") == 42e9
    assert flops_per_token(7e9, 2048, "8N") == 56e9
    for way in ("causal", "full", "hardware"):
        with pytest.raises(ValueError, match="attention needs a Model, not 7000000000"):
            flops_per_token(7e9, 2048, way)


def test_which_parameters_are_counted_is_said():
    deepseek = model("deepseek v3")
    table = 129_280 * 7168
    every, without = (
        flops_per_token(deepseek, 4096, "6N", params)
        for params in ("all", WITHOUT_TABLE)
    )
    assert every - without == 6 * table


@pytest.mark.parametrize("convention", CONVENTIONS + HARDWARE)
def test_mfu_is_rate_times_flops_over_peak(convention):
    llama = model("llama 3 8b")
    token = flops_per_token(llama, 8192, convention)
    assert mfu(llama, 8192, 5000, H100, convention) == pytest.approx(
        5000 * token / H100
    )


# Which convention a print follows ----------------------------------------------------


def test_palm_prints_two_conventions_and_both_are_hit():
    palm, rate = model("palm 540b"), 238_300 / 6144
    for printed, way in ((0.457, "6N"), (0.462, "full")):
        found = which_convention(printed, palm, 2048, rate, V4, within=0.0005)
        assert found.fits == (way,)
    # The arithmetic that the paper prints.
    assert close(238.3e3 * 6 * 540e9 / (275e12 * 6144), 0.457, 0.0005)


@pytest.mark.parametrize(
    ("key", "rate", "printed", "shares"),
    [
        ("olmo_2_32b", 1800, 0.38, (0.352, 0.366, 0.381)),
        ("nemotron_4_340b", 2304 * 4096 / 8.0 / 6144, 0.41, (0.397, 0.405, 0.414)),
    ],
)
def test_full_attention_is_what_olmo_and_nemotron_count(key, rate, printed, shares):
    one = REPORTS[key]
    found = which_convention(printed, one.counted, 4096, rate, one.peak)
    assert found.nearest == "full"
    assert list(found.shares.values()) == pytest.approx(shares, abs=6e-4)
    assert found.shares["full"] - printed == found.distance["full"]


def test_deepseek_prints_both_conventions_without_its_lookup_table():
    """19.926 s for 15,360 sequences on 2,048 GPUs, shares of the peak in bf16."""
    one = REPORTS["deepseek_v3"]
    rate = 15_360 * 4096 / 19.926 / 2048
    for printed, way in ((0.3894, "causal"), (0.4373, "full")):
        found = which_convention(
            printed, one.model, 4096, rate, H800, within=0.001, params=WITHOUT_TABLE
        )
        assert found.fits == (way,)
        # With the table counted, both are a point too high.
        every = which_convention(printed, one.model, 4096, rate, H800, within=0.005)
        assert not every.fits
        assert every.nearest == way
    assert close(rate * DAY * 2048 / 1e9, 272.80, 0.01), "tokens a day, as printed"


def test_bloom_logs_hardware_flops():
    """96 · B · S · L · D² · (1 + S/6D + V/16LD), as Megatron counts recomputation."""
    one = REPORTS["bloom_176b"]
    L, D, V, S, tokens = 70, 14_336, 250_880, 2048, 2048 * 2048
    by_hand = 96 * tokens * L * D * D * (1 + S / (6 * D) + V / (16 * L * D))
    assert close(by_hand / 104.70 / 384 / 1e12, 149.77, 0.01)
    token = flops_per_token(one.model, S, "hardware")
    assert token * tokens == pytest.approx(by_hand, rel=1e-4)
    # The readme's shorter count, 4 · 2 for each parameter, is 146, and 6N is 110.
    assert close(8 * 176e9 * tokens / 105 / 384 / 1e12, 146, 0.6)
    assert close(6 * 176e9 * tokens / 105 / 384 / 1e12, 110, 0.3)
    share = which_convention(
        149.77e12 / A100, one.model, S, tokens / 104.70 / 384, A100,
        within=0.0005, among=(*CONVENTIONS, *HARDWARE),
    )  # fmt: skip
    assert share.fits == ("hardware",)


def test_a_print_that_nothing_explains_is_said_so():
    found = which_convention(0.6, model("olmo 2 32b"), 4096, 1800, H100)
    assert found.fits == ()
    assert str(found).startswith("nothing gives the printed 60 %; 6N gives 35.2 %")


def test_two_conventions_may_fit_a_rounded_print():
    """PaLM's 46 % without decimals: 45.7 and 46.2 % both round to it."""
    rate = 238_300 / 6144
    found = which_convention(0.46, model("palm 540b"), 2048, rate, V4)
    assert set(found.fits) == set(CONVENTIONS)


# The audit: each claim by plain arithmetic -------------------------------------------


def whole(params, tokens, hours, peak):
    """6 · params · tokens over all chip-hours at the peak."""
    return 6 * params * tokens / (hours * HOUR * peak)


AUDIT = [  # report, parameters, tokens, chip-hours, peak, MFU of the whole run
    ("palm_540b", 540.35e9, 780e9, 6144 * 1200 + 3072 * 336, V4, 0.304),
    ("llama_1_7b", 6.7e9, 1.0e12, 82_432, A100, 0.434),
    ("llama_1_13b", 13.0e9, 1.0e12, 135_168, A100, 0.514),
    ("llama_1_33b", 32.5e9, 1.4e12, 530_432, A100, 0.458),
    ("llama_1_65b", 65.2e9, 1.4e12, 1_022_362, A100, 0.477),
    ("llama_2_7b", 6.738e9, 2.0e12, 184_320, A100, 0.391),
    ("llama_2_13b", 13.016e9, 2.0e12, 368_640, A100, 0.377),
    ("llama_2_34b", 34e9, 2.0e12, 1_038_336, A100, 0.350),
    ("llama_2_70b", 68.977e9, 2.0e12, 1_720_320, A100, 0.428),
    ("llama_3_8b", 8.03e9, 15e12, 1.3e6, H100, 0.156),
    ("llama_3_70b", 70.55e9, 15e12, 6.4e6, H100, 0.279),
    ("llama_31_8b", 8.03e9, 15e12, 1.46e6, H100, 0.139),
    ("llama_31_70b", 70.55e9, 15e12, 7.0e6, H100, 0.255),
    ("llama_31_405b", 405.85e9, 15.6e12, 30.84e6, H100, 0.346),
    ("bloom_176b", 176.25e9, 366e9, 1_082_990, A100, 0.318),
    ("falcon_180b", 179.52e9, 3.5e12, 7.0e6, A100, 0.479),
]


@pytest.mark.parametrize(
    ("key", "params", "tokens", "hours", "peak", "share"),
    AUDIT,
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_the_mfu_of_a_whole_run(key, params, tokens, hours, peak, share):
    assert close(whole(params, tokens, hours, peak), share, 6e-4)
    one = REPORTS[key]
    assert (one.value("tokens"), one.value("chip_hours")) == (tokens, hours)
    found = one.solve("6N", "chip_hours")
    assert close(found.mfu, share, 6e-4)
    assert found.goodput is None, "nothing tells the rate while it trained"
    assert found.chip_hours == pytest.approx(hours)


@pytest.mark.parametrize(
    ("key", "causal", "full"),
    [
        ("llama_3_8b", 0.177, 0.198),
        ("llama_3_70b", 0.300, 0.321),
        ("llama_31_405b", 0.360, 0.375),
    ],
)
def test_the_whole_runs_of_llama_3_with_attention(key, causal, full):
    shares = REPORTS[key].solve("6N", "chip_hours").shares
    assert close(shares["causal"], causal, 6e-4)
    assert close(shares["full"], full, 6e-4)


def test_palms_steady_rate_and_its_whole_run_differ_by_a_third():
    one = REPORTS["palm_540b"]
    assert close(780e9 / 238_300 / DAY, 37.9, 0.05)
    steady = one.solve("6N", "total_tokens_per_second")
    assert close(steady.days, 37.9, 0.05)
    both = one.solve("6N", "total_tokens_per_second", "chip_hours")
    by_hand = (780e9 / (8_404_992 * HOUR)) / (238_300 / 6144)
    assert both.goodput == pytest.approx(by_hand)
    assert both.run_mfu == pytest.approx(0.304, abs=6e-4)
    assert both.mfu == pytest.approx(0.457, abs=6e-4)
    # The printed FLOPs of the run count full attention.
    tokens = one.value("tokens")
    counted = [
        tokens * flops_per_token(one.model, 2048, way) / 1e24 for way in CONVENTIONS
    ]
    assert [round(flops, 2) for flops in counted] == [2.53, 2.54, 2.56]
    assert one.value("flops") == 2.56e24


def test_meta_prints_a_peak_that_no_h100_has():
    """430 / 43 % and 380 / 38 % mean 1,000 TFLOPs/s, 400 / 41 % means 976."""
    rows = REPORTS["llama_31_405b"].runs
    assert [run.flops_per_second / 1e12 for run in rows] == [430, 400, 380]
    peaks = [round(run.flops_per_second / run.mfu / 1e12) for run in rows]
    assert peaks == [1000, 976, 1000]
    assert close(400e12 / H100, 0.404, 6e-4)
    for run in rows:  # the three are within what rounding leaves open
        solve(run.model, run.seq, "6N", run.chip, mfu=run.mfu,
              flops_per_second=run.flops_per_second)  # fmt: skip


def test_the_first_print_of_metas_third_mesh_has_half_the_chips():
    assert 8 * 16 * 16 * 4 == 8192
    assert 4 * 16 * 131_072 == 8_388_608, "half of the 16M tokens of a batch, too"
    assert 8 * 16 * 131_072 == 128 * 16 * 8192 == 64 * 32 * 8192 == 16_777_216


def test_llama_31_405b_agrees_with_its_flops_and_loses_a_seventh_of_the_time():
    one = REPORTS["llama_31_405b"]
    assert close(6 * 405.85e9 * 15.6e12 / 1e25, 3.80, 0.005)
    assert one.value("flops") == 3.8e25
    steady = solve(one.model, 8192, "6N", "h100", chips=16_384, tokens=15.6e12,
                   flops_per_second=400e12)  # fmt: skip
    assert close(steady.days, 67.1, 0.05)
    mean = one.solve("6N", "chip_hours")
    assert close(mean.flops_per_second / 1e12, 342, 0.5)
    assert close(mean.days, 78.4, 0.05)
    both = one.solve("6N", "flops_per_second", "chip_hours")
    assert close(both.goodput, 0.855, 6e-4)


def test_llama_3_8b_took_more_hours_than_its_tokens_need():
    """At the 405B's 400 TFLOPs/s, 15T tokens of 8B take 0.5 million GPU-hours."""
    needed = 6 * 8.03e9 * 15e12 / 400e12 / HOUR
    assert close(1.3e6 / needed, 2.6, 0.05)


def test_the_total_of_llama_2_has_hours_that_its_card_does_not_list():
    listed = 184_320 + 368_640 + 1_720_320
    assert listed == 2_273_280
    missing = TOTALS["llama_2"].missing("chip_hours", "llama_2_34b")
    assert missing == 3_311_616 - listed == 1_038_336
    co2 = TOTALS["llama_2"].missing("co2", "llama_2_34b")
    assert close(co2, 539.00 - 31.22 - 62.44 - 291.42, 1e-9)
    assert close(co2, 153.92, 0.005)
    # Its chips drew less: 350 W in place of 400.
    assert close(co2 / missing * 1000, 0.148, 6e-4)
    assert close(31.22 / 184_320 * 1000, 0.169, 6e-4)
    assert close((co2 / missing) / (31.22 / 184_320), 350 / 400, 6e-4)
    # The paper prints the row, and the total is then whole.
    assert TOTALS["llama_2"].missing("chip_hours") == 0
    assert close(TOTALS["llama_2"].missing("co2"), 0.02, 1e-9)


@pytest.mark.parametrize("key", ["llama_3", "llama_31"])
def test_the_totals_of_llama_3_are_consistent(key):
    total = TOTALS[key]
    assert abs(total.missing("chip_hours")) <= 0.05e6
    assert total.missing("co2") == 0


def test_llama_1_is_eight_points_apart_on_one_cluster():
    small, next_ = (
        REPORTS[key].solve("6N", "chip_hours").mfu
        for key in ("llama_1_7b", "llama_1_13b")
    )
    assert close(next_ - small, 0.080, 0.001)


def test_llama_65b_is_consistent_with_itself():
    one = REPORTS["llama_1_65b"]
    assert close(1.4e12 / (380 * 2048) / DAY, 20.8, 0.05)
    assert close(1.4e12 / 380 / HOUR, one.value("chip_hours"), 1100)
    found = one.solve("6N", "tokens_per_second", "chip_hours", "days")
    assert found.goodput == 1.0
    assert close(found.days, 20.8, 0.05)


def test_bloom_ran_nine_tenths_of_the_time():
    one = REPORTS["bloom_176b"]
    assert close(1_082_990 / 384 / 24, 117.5, 0.05)
    assert close(366e9 * 105 / (2048 * 2048) / DAY, 106, 0.1)
    both = one.solve("6N", "step_seconds", "chip_hours")
    assert close(both.mfu, 0.353, 6e-4)
    assert close(both.run_mfu, 0.318, 6e-4)
    assert close(both.goodput, 0.90, 0.003)


def test_others_print_other_hours_for_bloom():
    """118 days, 5 hours and 41 minutes are 6,700 hours more than the same table
    prints, and the table of LLaMA has exactly 117.5 days."""
    days = 118 + 5 / 24 + 41 / 1440
    assert REPORTS["bloom_176b"].value("days") == pytest.approx(days, abs=5e-4)
    assert round(days * 24 * 384) == 1_089_670
    assert 117.5 * 24 * 384 == 1_082_880
    assert REPORTS["bloom_176b"].fact("chip_hours").said("llama1") == 1_082_880


def test_bloom_estimated_its_days_with_two_digits_exchanged():
    """450 billion tokens, 8 · 167 billion parameters; with 176 it is six days more."""
    days = {
        params: 450e9 * 8 * params * 1e9 / (384 * 150e12 * DAY) for params in (167, 176)
    }
    assert close(days[167], 120.80, 0.005)
    assert close(days[176], 127.3, 0.05)
    assert REPORTS["bloom_176b"].value("estimated_days") == 120.80


def test_deepseek_v3_adds_up():
    one = REPORTS["deepseek_v3"]
    hours = one.value("hours_per_trillion") * 14.8
    assert hours == one.value("chip_hours") == 2.664e6
    later = one.value("context_hours") + one.value("post_hours")
    assert later == 124e3
    assert one.value("later_hours") == 0.1e6, "which the readme rounds down"
    assert hours + later == one.value("total_hours") == 2.788e6
    assert close(180e3 / 2048 / 24, 3.7, 0.05)
    assert close(2.664e6 / 2048 / 24, 54.2, 0.05)
    assert one.value("cost") == 2 * 2.788e6
    rate = 1e12 / (180e3 * HOUR)
    assert close(rate, 1543, 0.5)
    shares = solve(one.model, 4096, "6N", "h800", params=WITHOUT_TABLE,
                   tokens_per_second=rate).shares  # fmt: skip
    assert list(shares.values()) == pytest.approx([0.3425, 0.3904, 0.4383], abs=1e-4)
    # Of the peak in fp8, in which most of it ran, it is half of that.
    half = solve(one.model, 4096, "full", "h800", precision="fp8", params=WITHOUT_TABLE,
                 tokens_per_second=rate)  # fmt: skip
    assert half.mfu == pytest.approx(0.4383 / 2, abs=1e-4)


def test_the_measured_step_of_deepseek_v3_gives_its_hours():
    found = REPORTS["deepseek_v3"].solve("6N", "step_seconds", "chip_hours")
    assert close(found.goodput, 1.0, 1e-9), "the hours are those of the steps alone"
    assert close(14.8e12 / (15_360 * 4096) * 19.926 * 2048 / HOUR / 1e6, 2.667, 6e-4)


def test_olmo_and_nemotron_print_no_days():
    olmo = REPORTS["olmo_2_32b"].solve("6N", "tokens_per_second")
    assert close(6e12 / (1280 * 1800) / DAY, 30.1, 0.05)
    assert close(olmo.days, 30.1, 0.05)
    assert close(olmo.chip_hours / 1e6, 0.93, 0.005)
    nemotron = REPORTS["nemotron_4_340b"].solve("6N", "step_seconds")
    assert close(7.6e12 / (2304 * 4096) * 8.0 / DAY, 74.6, 0.05)
    assert close(nemotron.days, 74.6, 0.05)


def test_the_recipe_of_nemotron_counts_keys_and_values_of_every_head():
    """24 · L · D² for attention, which has 8 KV heads for 96."""
    L, D, S = 96, 18_432, 4096
    printed = S * (24 * L * D**2 + 12 * L * D * S + 48 * L * D**2 + 6 * 256_000 * D)
    assert close(printed / 1e16, 1.01, 0.005)
    surplus = 6 * L * 2 * D * (96 - 8) * 192  # keys and values that do not exist
    one = REPORTS["nemotron_4_recipe"]
    ours = flops_per_token(one.model, S, "full") - 6 * 256_000 * D  # without the table
    assert printed / S - surplus == pytest.approx(ours, rel=1e-3)
    step = 512 * 1.01e16 / 4.84 / 2048 / 989e12
    assert close(step, one.value("mfu"), 1e-4)
    assert close(one.solve("full", "step_seconds").mfu, 0.456, 6e-4)
    assert close(1.01e16 / S / flops_per_token(one.model, S, "full"), 1.155, 0.003)


def test_falcon_180b_ran_high_for_its_network():
    one = REPORTS["falcon_180b"]
    assert close(6 * 180e9 * 3.5e12 / (7.0e6 * HOUR) / 1e12, 150, 0.5)
    assert close(one.solve("6N", "chip_hours").flops_per_second / 1e12, 149.6, 0.1)
    assert close(6 * 180e9 * 3.5e12 / (1e15 * DAY), 43_750, 1)
    llama = REPORTS["llama_2_70b"]
    hours = one.value("chip_hours") / llama.value("chip_hours")
    flops = 180 * 3.5 / (69 * 2.0)
    assert close(hours, 4.07, 0.005)
    assert close(flops, 4.57, 0.01)
    assert one.value("times_llama_2_70b") == 4


def test_falcon_40b_and_gpt_3_print_what_6n_gives():
    falcon = REPORTS["falcon_40b"]
    assert close(6 * 40e9 * 1e12 / (1e15 * DAY), 2778, 1)
    assert falcon.value("pf_days") == 2800
    gpt = REPORTS["gpt_3"]
    assert close(6 * 174.6e9 * 300e9 / 1e23, 3.14, 0.005)
    assert close(6 * 175e9 * 300e9 / 1e23, 3.15, 0.005), (
        "the count of the text is not it"
    )
    assert close(3.14e23 / (1e15 * DAY), gpt.value("pf_days"), 10)
    assert close(6 * gpt.model.params * 300e9 / 1e23, 3.14, 0.005)


def test_mpt_7b_is_consistent():
    one = REPORTS["mpt_7b"]
    found = one.solve("6N", "days")
    hours = 440 * 9.5 * 24
    assert found.chip_hours == pytest.approx(hours) == 100_320
    assert close(6 * 6.7e9 * 1e12 / (hours * HOUR * A100), 0.357, 6e-4)
    assert close(found.mfu, 0.357, 6e-4)
    assert hours * one.value("price") == pytest.approx(one.value("cost"), rel=0.01)


# Interruptions -----------------------------------------------------------------------


def test_the_table_of_interruptions_contradicts_its_headline():
    counts = [148, 72, 54, 35, 32, 19, 17, 7, 7, 6, 6, 3, 3, 2, 2, 2, 2, 2]
    printed = [30.1, 17.2, 12.9, 8.4, 7.6, 4.5, 4.1, 1.7, 1.7, 1.4, 1.4, 0.7, 0.7]
    printed += [0.5] * 5
    table = INTERRUPTIONS
    assert [row.count for row in table.rows] == counts
    assert [100 * row.printed for row in table.rows] == pytest.approx(printed)
    assert table.count() == sum(counts) == table.unexpected == 419
    assert table.planned + table.unexpected == 466
    assert close(sum(printed), 94.9, 0.01)
    wrong = [
        row.cause for row in table.rows
        if not close(row.count / 419, row.printed, 0.0006)
    ]  # fmt: skip
    assert wrong == ["Faulty GPU"], "every other row is its count over 419"
    assert close(148 / 419, 0.353, 5e-4)
    # The headline adds up the printed shares; the counts give more.
    assert close(table.printed("GPU"), table.printed_gpu, 1e-9)
    assert table.count("GPU") == 148 + 72 + 19 + 17 + 6 + 6 == 268
    assert close(268 / 419, 0.640, 5e-4)


def test_how_often_it_was_interrupted():
    table = INTERRUPTIONS
    assert close(54 * 24 / 419, 3.09, 0.005)
    assert close(54 * 24 / 466, 2.78, 0.005)
    a_year = table.unexpected / table.days * 365 / table.chips
    assert close(a_year, 0.173, 5e-4)
    assert close(1 / a_year, 5.8, 0.05)


# The calculator ----------------------------------------------------------------------

LLAMA = model("llama 3 405b")
SIZES = {"chips": 16_384, "batch": 2**24, "tokens": 15.6e12}


@pytest.mark.parametrize("name", [*OF_STEP, *OF_RUN])
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_each_figure_alone_gives_all_the_others(name, convention):
    """Whatever is given, the same run comes out, and the given figure with it."""
    first = solve(LLAMA, 8192, convention, "h100", **SIZES, mfu=0.4)
    again = solve(LLAMA, 8192, convention, "h100", **SIZES, **{name: _of(first, name)})
    for other in (*OF_STEP, *OF_RUN):
        assert _of(again, other) == pytest.approx(_of(first, other)), other


def _of(found, name):
    return getattr(found, name)


def test_the_figures_are_their_definitions():
    found = solve(LLAMA, 8192, "causal", "h100", **SIZES, tokens_per_second=150)
    token = flops_per_token(LLAMA, 8192, "causal")
    assert found.flops_per_second == pytest.approx(150 * token)
    assert found.mfu == pytest.approx(150 * token / H100)
    assert found.step_seconds == pytest.approx(2**24 / 150 / 16_384)
    assert found.chip_hours == pytest.approx(15.6e12 / 150 / HOUR)
    assert found.days == pytest.approx(15.6e12 / 150 / 16_384 / DAY)
    assert found.training_flops == pytest.approx(15.6e12 * token)


def test_lost_time_makes_a_run_longer_and_no_step():
    found = solve(LLAMA, 8192, "6N", "h100", **SIZES, mfu=0.4, days=80)
    steady = solve(LLAMA, 8192, "6N", "h100", **SIZES, mfu=0.4)
    assert found.step_seconds == steady.step_seconds
    assert found.days == pytest.approx(80)
    assert found.goodput == pytest.approx(steady.days / 80)
    assert found.run_mfu == pytest.approx(0.4 * found.goodput)


def test_a_figure_that_nothing_tells_is_absent():
    found = solve(LLAMA, 8192, "6N", "h100", mfu=0.4)
    for name in ("step_seconds", "chip_hours", "days", "training_flops"):
        with pytest.raises(ValueError, match="is not given and does not follow"):
            getattr(found, name)
    assert "days" not in str(found)


def test_a_chip_may_be_named_or_given():
    by_name = solve(LLAMA, 8192, "6N", "h100", mfu=0.4)
    assert solve(LLAMA, 8192, "6N", chips.find("h100"), mfu=0.4) == by_name


CONTRADICTIONS = [
    (
        {"mfu": 0.6, "flops_per_second": 400e12},
        "MFU 60 % at 400 TFLOPs/s means a peak of 667 TFLOPs/s; the H100 has 989 "
        "TFLOPs/s in bf16",
    ),
    (
        {"mfu": 0.5, "tokens_per_second": 140},
        "MFU 50 % means 203.2 tokens/s per chip and 140 tokens/s per chip are given: "
        "they contradict each other",
    ),
    (
        {"step_seconds": 6.0, "tokens_per_second": 140},
        "a step of 6 s means 170.7 tokens/s per chip and 140 tokens/s per chip are "
        "given: they contradict",
    ),
    (
        {"days": 54, "chip_hours": 30.84e6},
        "54 days on 16,384 chips are 21.23 million chip-hours, but 30.84 million",
    ),
    (
        {"mfu": 0.3, "chip_hours": 30.84e6},
        "a run of 30.84 million chip-hours means 140.5 tokens/s per chip on average, "
        "but MFU 30 % only 121.9 tokens/s per chip while it trains: no run is faster "
        "than its steps",
    ),
    (
        {"tokens_per_second": 1000},
        "1,000 tokens/s per chip are 2.41 PFLOPs/s for the layers' weights alone; the "
        "H100 has 989 TFLOPs/s in bf16: check chips, tokens and units",
    ),
]


@pytest.mark.parametrize(("given", "said"), CONTRADICTIONS)
def test_contradictory_figures_are_named(given, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        solve(LLAMA, 8192, "6N", "h100", **SIZES, **given)


def test_a_contradiction_names_the_convention_that_would_resolve_it():
    olmo = model("olmo 2 32b")
    with pytest.raises(ValueError, match="counting full attention, they would agree"):
        solve(olmo, 4096, "6N", "h100", mfu=0.38, tokens_per_second=1800)
    solve(olmo, 4096, "full", "h100", mfu=0.38, tokens_per_second=1800)


def test_figures_that_differ_by_their_rounding_agree():
    for mfu_, rate in ((0.41, 400e12), (0.38, 380e12), (0.43, 430e12)):
        solve(LLAMA, 8192, "6N", "h100", mfu=mfu_, flops_per_second=rate)
    with pytest.raises(ValueError, match="means a peak"):
        solve(LLAMA, 8192, "6N", "h100", mfu=0.38, flops_per_second=400e12)
    solve(LLAMA, 8192, "6N", "h100", mfu=0.38, flops_per_second=400e12, within=0.1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "no figure is given: must be one or more of tokens_per_second, mfu"),
        ({"mfu": None}, "no figure is given"),
        ({"speed": 3}, "'speed': must be a figure of a run, one of tokens_per_second"),
        ({"mfu": 41}, "mfu = 41: must be a share, at most 1; 0.4 is 40 %"),
        ({"mfu": 0}, "mfu = 0: must be a finite number above 0"),
        ({"mfu": "40 %"}, "mfu = '40 %': must be a finite number above 0"),
        ({"days": math.inf}, "days = inf: must be a finite number above 0"),
        ({"mfu": 0.4, "chips": 2.5}, "chips = 2.5: must be a whole number from 1"),
        ({"mfu": 0.4, "tokens": -1}, "tokens = -1: must be a finite number above 0"),
        ({"mfu": 0.4, "batch": "4M"}, "batch = '4M': must be a finite number above 0"),
        ({"mfu": 0.4, "within": 0}, "within = 0: must be a finite number above 0"),
        ({"mfu": 0.4, "precision": "fp4"}, "no dense peak is published for 'fp4'"),
        (
            {"step_seconds": 3},
            "step_seconds = 3: gives a rate only together with chips",
        ),
        ({"days": 3, "chips": 8}, "days = 3: gives a rate only together with tokens"),
        ({"mfu": 0.4, "params": "some"}, "convention 'some': must be one of"),
    ],
)
def test_a_bad_argument_is_refused_with_what_is_valid(given, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        solve(LLAMA, 8192, "6N", "h100", **given)


@pytest.mark.parametrize(
    ("model_", "seq", "convention", "chip", "said"),
    [
        (
            LLAMA,
            8192,
            "7N",
            "h100",
            "convention = '7N': must be one of 6N, causal, full",
        ),
        (LLAMA, 0, "6N", "h100", "seq = 0: must be a whole number from 1"),
        (LLAMA, 8192, "6N", "abacus", "no chip is called 'abacus'"),
        ("llama", 8192, "6N", "h100", "model = 'llama': must be a finite number"),
        (-7e9, 8192, "6N", "h100", "model = -7000000000.0: must be a finite number"),
    ],
)
def test_a_run_that_cannot_be_is_refused(model_, seq, convention, chip, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        solve(model_, seq, convention, chip, mfu=0.4)


@pytest.mark.parametrize("printed", [0, -0.4, 41, math.nan, "0.4", None])
def test_a_print_that_is_no_share_is_refused(printed):
    with pytest.raises(ValueError, match="printed = "):
        which_convention(printed, LLAMA, 8192, 160, H100)


# The records -------------------------------------------------------------------------


@pytest.mark.parametrize("key", REPORTS)
def test_every_value_has_a_source_that_can_be_opened(key):
    one = REPORTS[key]
    assert one.facts
    for name, fact in one.facts.items():
        assert name in VOCABULARY
        assert fact.value > 0
        assert fact.source.url.startswith("https://")
        assert fact.source.kind in ("vendor", "vendor-code", "paper", "secondary")
        assert fact.source.read >= "2026-11-22"
    assert one.peak > 0


def test_what_was_read_in_copies_is_marked_so():
    """Cards and notes of the makers are theirs; papers were read as copied."""
    assert REPORTS["llama_3_8b"].second_hand == ()
    assert "chip_hours" not in REPORTS["llama_2_70b"].second_hand
    for key in ("palm_540b", "llama_1_65b", "falcon_180b", "gpt_3", "nemotron_4_340b"):
        one = REPORTS[key]
        assert set(one.second_hand) == set(one.facts), key
    assert INTERRUPTIONS.source.kind == "secondary"


def test_a_value_that_nobody_prints_says_what_is_printed():
    with pytest.raises(ValueError, match="no source states 'days'; known: tokens"):
        REPORTS["llama_2_70b"].value("days")
    with pytest.raises(ValueError, match="no fact is called 'hours'"):
        REPORTS["llama_2_70b"].value("hours")


def test_rows_of_the_table_of_runs_are_found():
    (palm,) = REPORTS["palm_540b"].runs
    assert palm.mfu == REPORTS["palm_540b"].value("mfu_attention")
    assert len(REPORTS["llama_31_405b"].runs) == 3
    assert REPORTS["mpt_7b"].runs == ()


def test_the_shape_of_nemotron_has_its_parameters():
    nemotron = REPORTS["nemotron_4_340b"].model
    d, kv = 18_432, 8 * 192
    layer = 2 * d * d + 2 * d * kv + 2 * d * 4 * d
    assert nemotron.params == pytest.approx(96 * layer + 2 * 256_000 * d, rel=1e-4)
    assert round(nemotron.params / 1e9) == 341
