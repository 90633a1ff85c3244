"""Rows of measured servers: read from JSON and tables, whatever they are called."""

import json
from collections import Counter

import pytest

from shardmath.inference import Layout
from shardmath.measured.serving import SERVING_SOURCES, lines, serving
from shardmath.measured.serving_rows import ALIASES, is_serving, read_row, spread
from shardmath.measured.table_file import cell, read_table, renamed

ROW = {
    "source": "aic-silicon/InferenceX", "row": "some_name", "model": "MiniMax-M2.5",
    "checkpoint": "MiniMaxAI/MiniMax-M2.5", "chip": "B300", "count": 2,
    "parallelism": {"tp": 2, "pp": 1, "dp": 1, "moe_tp": 2, "ep": 1}, "mode": "agg",
    "engine": "vllm", "engine_version": "0.19.0", "weights": "fp8", "gemm": "fp8",
    "kv": None, "concurrency": 8, "input": 1024, "output": 1024,
    "measured": "2026-04-17", "metric": "ttft", "value": 81.99712121213452,
    "unit": "ms", "note": "mean or median not stated", "part": "public",
}  # fmt: skip
POOLS = {
    "prefill_batch_size": 1, "prefill_num_workers": 5, "prefill_tp_size": 1,
    "prefill_pp_size": 1, "prefill_attention_dp_size": 8, "prefill_moe_tp_size": 0,
    "prefill_moe_ep_size": 8, "decode_batch_size": 48, "decode_num_workers": 11,
    "decode_tp_size": 4, "decode_pp_size": 1, "decode_attention_dp_size": 1,
    "decode_moe_tp_size": 4, "decode_moe_ep_size": 1,
}  # fmt: skip


def table(text):
    """The rows of a table as `read_row` takes them."""
    rows = renamed(read_table(text, "the table", "a table"), ALIASES)
    assert is_serving(rows[0])
    return [read_row(one) for row in rows for one in spread(row)]


def test_a_row_of_the_public_file_is_read_whole():
    one = read_row(ROW)
    assert (one.model.name, one.chip.name, one.count) == ("MiniMax-M2.5", "B300", 2)
    assert one.layout == Layout(tensor=2)
    assert (one.metric, one.statistic, one.unit) == ("ttft", "", "ms")
    assert one.value == pytest.approx(0.08199712121213452, rel=1e-15)
    assert (one.engine, one.weights, one.kv) == ("vllm", "fp8", "")
    assert (one.concurrency, one.input, one.output) == (8, 1024, 1024)


def test_both_forms_of_parallelism():
    one = read_row(ROW | {"mode": "disagg", "count": None, "parallelism": POOLS})
    prefill, decode = one.pools
    assert (prefill.servers, prefill.batch) == (5, 1)
    assert prefill.layout == Layout(tensor=1, expert=8, data=8)
    assert (decode.servers, decode.batch, decode.layout) == (11, 48, Layout(tensor=4))
    assert one.count == 5 * 8 + 11 * 4
    without = {key: n for key, n in POOLS.items() if "workers" not in key}
    assert read_row(ROW | {"count": None, "parallelism": without}).count is None
    text = " ".join(f"{key}={n}" for key, n in POOLS.items())
    assert read_row(ROW | {"parallelism": text}).pools == one.pools


@pytest.mark.parametrize(
    "ways",
    [
        "tp=4 ep=4", "TP4, EP4", "tp4/ep4", '{"tp": 4, "ep": 4, "dp": 0}',
        {"tensor_parallel_size": 4, "ep_size": 4.0}, {"tp": "4", "ep": 4, "pp": None},
    ],
    ids=str,
)  # fmt: skip
def test_ways_are_written_in_many_ways(ways):
    one = read_row(ROW | {"count": None, "parallelism": ways})
    assert one.layout == Layout(tensor=4, expert=4)
    assert one.count == 4


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"unit": "s", "value": 0.08199712121213452}, {}),
        ({"unit": "us", "value": "81,997.12121213452"}, {}),
        ({"chip": "NVIDIA B300 SXM"}, {}),
        ({"model": "minimax m2.5", "mode": "aggregated"}, {}),
        ({"model": "who knows"}, {}),  # the checkpoint says it
        ({"weights": "fp8_block"}, {}),
        ({"metric": "Mean TTFT"}, {"metric": "ttft_mean"}),
        ({"metric": "ttft_median"}, {"metric": "ttft_p50"}),
        ({"engine": "TensorRT 10.11, CUDA 12.9"}, {"engine": "trtllm"}),
        ({"engine": "vLLM 0.9.0.2.dev108+g71faa"}, {"engine": "vllm"}),
        ({"concurrency": "n/a"}, {"concurrency": None}),
    ],
    ids=str,
)
def test_words_that_mean_the_same_give_the_same(change, same):
    one, other = read_row(ROW | change), read_row(ROW | same)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    told = ("model", "chip", "metric", "statistic", "engine", "weights", "layout")
    for name in (*told, "mode", "concurrency"):
        assert getattr(one, name) == getattr(other, name), name


def test_a_table_has_other_names_and_a_column_for_each_metric():
    text = """Model;GPU;GPUs;TP;Framework;Quant;Conc;ISL;OSL;TTFT (ms);p99 ITL ms;Tok/s
    Qwen3-32B;H200;4;4;sglang;fp8;16;1024;512;120;9.5;
    Qwen3-32B;H200;4;4;sglang;fp8;32;1024;512;;;2048"""
    first, itl, rate = table(text)
    assert (first.metric, first.value, first.layout) == ("ttft", 0.12, Layout(4))
    assert (itl.metric, itl.statistic, itl.value) == ("itl", "p99", 0.0095)
    assert (rate.metric, rate.value, rate.concurrency) == ("tokens", 2048, 32)


def test_json_is_read_as_a_list_as_lines_or_from_a_field():
    one = json.dumps(ROW)
    for text in (f"[{one}]", f"{one}\n{one}", json.dumps({"rows": [ROW]})):
        assert table(text)[0] == read_row(ROW)


def test_rates_and_budgets_are_in_the_note():
    note = "workload general; request rate {}; max_num_batched_tokens 2048; multi-turn"
    told = {"mode": "open loop", "concurrency": None}
    one = read_row(ROW | told | {"note": note.format("2.5")})
    assert (one.rate, one.budget) == (2.5, 2048)
    both = read_row(ROW | told | {"note": note.format("[2.5, 6.0]")})
    # as many seconds of each: 2.5 requests at 2.5, and 6 at 6
    assert both.rate == pytest.approx((2.5 * 2.5 + 6 * 6) / 8.5)
    assert read_row(ROW | told | {"note": note.format("None")}).rate is None


def test_tokens_are_of_the_system_unless_the_unit_says_of_a_chip():
    tokens = {"metric": "output tokens/s", "value": 100}
    whole = read_row(ROW | tokens | {"unit": "tokens/s, whole system"})
    assert (whole.metric, whole.per_chip) == ("tokens", False)
    assert read_row(ROW | tokens | {"unit": "tok/s/gpu"}).per_chip


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"model": "llama 9", "checkpoint": ""}, "no model is called 'llama 9'"),
        ({"model": "", "checkpoint": ""}, "model: is empty; must be a name for"),
        ({"chip": "H9000"}, "no chip is called 'H9000'"),
        ({"metric": "joules"}, "metric = 'joules': must be one of ttft"),
        ({"metric": ""}, "metric: is empty; must be ttft"),
        ({"unit": "hours"}, "unit = 'hours': must be one of ms"),
        ({"metric": "tokens", "unit": "ms"}, "unit = 'ms': must be tokens/s"),
        ({"value": "fast"}, "value = 'fast': must be a number above 0"),
        ({"value": -3}, "value = '-3': must be a number above 0"),
        ({"output": 0}, "output = '0': must be a number above 0"),
        ({"concurrency": 2.5}, "concurrency = '2.5': must be a whole number"),
        ({"weights": "fp3"}, "weights = 'fp3': must be one of bf16, fp8"),
        ({"mode": "upside down"}, "mode = 'upside down': must be one of agg"),
        ({"parallelism": "tp=two"}, "parallelism = 'tp=two': must be the size of each"),
        ({"parallelism": '{"tp": 4'}, "parallelism = '{\"tp\": 4': must be the size"),
        ({"parallelism": {"tp": 3, "ep": 2}}, "expert = 2: must divide tensor"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_quoted(change, why):
    with pytest.raises(ValueError) as error:  # noqa: PT011  compared below
        read_row(ROW | change)
    assert str(error.value).startswith(why)


# ------------------------------------------------------------- the table of the book


def test_the_table_has_every_source_and_says_where_each_line_is_from():
    found = Counter(row.source for row in serving())
    assert {*found} == {source.name for source in SERVING_SOURCES.values()}
    assert found["aic-silicon/InferenceX"] == 3818
    assert found["aic-silicon/NVIDIA-internal"] == 961
    for source in SERVING_SOURCES.values():
        assert source.url.startswith("https://"), source
        assert source.path, source
        assert source.licence, source
        assert source.open, source
        assert source.commit or "docs.nvidia.com" in source.url, source


def test_no_line_of_the_table_is_there_twice():
    seen = Counter(tuple(sorted(line.items())) for line in lines())
    assert [line for line, n in seen.items() if n > 1] == []


def test_the_table_covers_every_engine_mode_and_kind_of_chip():
    rows = serving()
    assert {"vllm", "sglang", "trtllm"} <= {row.engine for row in rows}
    assert {row.mode for row in rows} == {
        "agg", "disagg", "open loop", "offline", "server", "interactive",
    }  # fmt: skip
    assert {row.chip.vendor for row in rows} == {"NVIDIA", "AMD", "Google"}
    assert len({row.model.name for row in rows}) == 22
    assert len({row.family for row in rows}) > 250
    concurrency = sorted(row.concurrency for row in rows if row.concurrency)
    assert (concurrency[0], concurrency[-1]) == (1, 16384)


def test_numbers_of_the_notes_are_in_the_table():
    """Typed again from NIM's page and from the recipe of v6e, as a second reading."""
    nim = [row for row in serving() if row.source.startswith("NIM")]
    at_25 = {row.metric: row.value for row in nim if row.concurrency == 25}
    assert at_25 == pytest.approx({"ttft": 0.68869, "itl": 0.03875, "tokens": 623.4})
    v6e = [row for row in serving() if row.chip.id == "tpu_v6e"]
    assert any(
        row.shown == "ttft p50" and row.value == pytest.approx(0.22909) for row in v6e
    )


def test_cells_that_say_nothing_are_empty():
    assert [cell(x) for x in (None, "", " NaN ", "n/a", float("nan"))] == [""] * 5
    assert cell(0) == "0"
