"""What is said of rows of measured servers, held against all rows of the book."""

import json
import re
from collections import Counter

import pytest

from shardmath.inference import Layout, calibration, held
from shardmath.inference.efficiencies import FITTED, band, table
from shardmath.measured.predict_file import predict_text, to_table
from shardmath.measured.serving import serving
from shardmath.measured.serving_answers import (
    beaten,
    bound,
    regime,
    serving_answer,
    setting,
)
from shardmath.measured.serving_fit import derived, errors, fit, fitted_to
from shardmath.measured.serving_rows import read_row

CELLS = {
    "model": "Qwen3-32B",
    "chip": "H100",
    "parallelism": "tp=2",
    "engine": "vllm",
    "weights": "fp8",
    "concurrency": "16",
    "input": "1024",
    "output": "1024",
    "metric": "tpot",
    "value": "11.5",
    "unit": "ms",
}


def row(**change):
    return read_row({**CELLS, **change})


def pairs():
    """Rows of the table that state both times of one run of closed loops."""
    first = None
    for one in serving():
        if one.mode != "agg" or not one.concurrency:
            continue
        if one.metric == "ttft":
            first = one
        elif one.metric == "tpot" and first and first.layout == one.layout:
            yield first, one


def test_no_row_beats_the_bound_of_its_metric():
    found = []
    for one in serving():
        if one.value is None or one.statistic not in ("", "mean", "p50"):
            continue
        try:
            least = bound(setting(one))
        except ValueError:
            continue
        if beaten(one, one.value, least):
            found.append(str(one))
    assert found == []


def test_rows_that_cannot_be_true_are_these_six():
    """TTFT + output · TPOT against all the work of the requests in flight, and TPOT
    against the reads of as many sequences as decode by Little's law.

    416 and 448 requests of 15,000 tokens on two GPUs keep neither cache nor pace. And
    of 512 clients of gpt-oss 91 would decode, faster than the weights of the experts
    that 91 tokens touch can be read.
    """
    whole, step, count = Counter(), Counter(), 0
    for first, one in pairs():
        found = setting(one)
        server, requests = found.servers[-1], found.requests
        clients = one.concurrency / found.copies[-1]
        tokens = 1 + found.scheduler.drafts
        took = first.value + requests.output * one.value
        count += 1
        name = one.model.name, one.chip.name, one.concurrency, int(one.input)
        least = server.request_bound(requests.prompt, requests.output, clients)
        whole[name] += took < least / tokens
        decoding = clients * requests.output * one.value / took
        held_ = decoding * held(requests.prompt, requests.output)
        step[name] += one.value < server.decode(decoding, held_).hbm / tokens
    assert count > 1600
    qwen = {
        ("Qwen3 32B", "B200", 416, 15_000): 1,
        ("Qwen3 32B", "GB200", 448, 15_000): 2,
    }
    assert +whole == qwen
    assert +step == qwen | {
        ("gpt-oss-120b", "H100", 512, 1024): 2,
        ("gpt-oss-120b", "H100", 512, 8192): 1,
    }


@pytest.fixture(scope="module")
def rows():
    """The rows that take part in the fit, with their slopes."""
    some = [one for one in serving() if one.source.endswith("InferenceX")]
    some += [one for one in serving() if one.source.endswith("NVIDIA-internal")]
    inside = [one for one in some if one.mode == "agg" and one.metric != "itl"]
    found = derived(inside, calibration())
    return [one for one in found if fitted_to(one)]


def test_the_file_holds_what_the_rows_give(rows):
    whole = fit(rows)
    fitted = table()["fitted"]
    for name in FITTED:
        assert fitted[name]["value"] == pytest.approx(getattr(whole, name), rel=0.01)
        low, high = fitted[name]["folds"]
        assert low <= fitted[name]["value"] <= high
        assert high < 1.4 * low, "a family decides the number"
    assert table()["fit"]["rows"] == len(rows)


def test_the_errors_are_those_that_the_book_promises(rows):
    found = errors(rows, lambda one: one.row.metric)
    tpot, ttft = found["tpot"], found["ttft"]
    said = table()["unseen"]
    for name, one in (("tpot by family", tpot), ("ttft by family", ttft)):
        line = [one.rows, one.mean, one.median]
        assert said[name] == pytest.approx(line, rel=0.02)
    assert tpot.mean < 0.18
    assert tpot.median < 0.13
    assert ttft.median < 0.305
    assert said["tpot by model"][2] < 0.16
    assert said["tpot by generation"][2] < 0.17


def test_numbers_that_are_off_are_found_by_the_fit(rows):
    off = calibration().__class__(1e-5, 1e-5, 1e-5)
    assert fit(rows, off).launch == pytest.approx(fit(rows).launch, rel=0.01)


@pytest.mark.parametrize(
    ("label", "layout"),
    [
        ({"tp": 64, "dp": 1, "moe_tp": 8, "ep": 8}, Layout(8, expert=8)),
        ({"tp": 1, "dp": 64, "moe_tp": 8, "ep": 8}, Layout(1, expert=8, data=8)),
        ({"tp": 4, "dp": 4, "moe_tp": 1, "ep": 16}, Layout(1, expert=4, data=4)),
    ],
)
def test_a_table_that_counts_chips_twice_is_corrected(label, layout):
    name = "MiniMax-M2.5" if label["tp"] == 4 else "DeepSeek-V3"
    given = {
        "model": name, "chip": "H200", "parallelism": label,
        "source": "aic-silicon/InferenceX",
    }  # fmt: skip
    found = setting(row(**given))
    assert found.row.layout == layout
    assert found.row.count == layout.chips
    assert any("counts them twice" in one for one in found.assumed)
    # Nobody else's labels are touched.
    assert setting(row(**given | {"source": "mine"})).servers[0].layout != layout


def test_equal_runs_under_both_labels_have_equal_values():
    """The evidence: TP8 EP8 on 8 chips and "tensor 64" of the same table."""
    values: dict[tuple, set[float]] = {}
    for one in serving():
        if one.model.name == "DeepSeek-V3" and one.layout and one.metric == "tpot":
            key = one.chip.name, one.weights, one.value
            values.setdefault(key, set()).add(one.layout.tensor)
    both = [seen for seen in values.values() if {8, 64} <= seen]
    assert len(both) > 10


def test_an_answer_has_the_fields_of_a_training_run():
    found = serving_answer(7, row()).plain
    assert [*found] == [
        "row", "name", "metric", "bound", "predicted", "low", "high", "measured",
        "unit", "parts", "assumed", "warnings",
    ]  # fmt: skip
    assert found["bound"] < found["low"] < found["predicted"] < found["high"]
    assert found["measured"] == 11.5
    assert found["unit"] == "ms"
    assert sum(found["parts"].values()) * 1e3 == pytest.approx(found["predicted"])


def test_metrics_of_one_run_agree_with_one_another():
    def said(metric, **change):
        unit = "tokens/s" if metric == "tokens" else "ms"
        return serving_answer(1, row(metric=metric, unit=unit, **change)).predicted

    ttft, tpot, e2e, tokens = map(said, ("ttft", "tpot", "e2e", "tokens"))
    assert said("itl") == tpot
    assert e2e == pytest.approx(ttft + 1023 * tpot)
    # Little's law: requests in flight are rate times time, here of 1,024 steps each.
    assert tokens / 1024 * (ttft + 1024 * tpot) / 1e3 == pytest.approx(16, rel=0.01)


def test_a_file_of_servers_is_answered_row_by_row():
    head = "model,chip,tp,engine,weights,concurrency,input,output,ttft_ms,tpot_ms\n"
    lines = "Qwen3-32B,H100,2,vllm,fp8,16,1024,1024,120,11.5\nnone,H100,2,,,1,1,1,1,1\n"
    found = predict_text(head + lines)
    assert [(one.row, one.metric, bool(one.why)) for one in found] == [
        (1, "ttft", False), (1, "tpot", False), (2, "ttft", True), (2, "tpot", True),
    ]  # fmt: skip
    assert "none" in str(to_table(found))
    (listed,) = predict_text(json.dumps([CELLS]))
    assert listed.predicted == pytest.approx(found[1].predicted, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"output": ""}, "output: the row does not say"),
        ({"input": ""}, "input: the row does not say"),
        ({"concurrency": ""}, "concurrency: the row does not say"),
        ({"metric": "ttft_p99"}, "gives means"),
        ({"mode": "open loop"}, "rate: the row does not say"),
        ({"mode": "open loop", "rate": "500"}, "requests per second: must be below"),
        ({"model": "llama 3 405b"}, "more than .* the smallest layout that fits"),
        ({"input": "900000"}, "does not fit"),
    ],
)
def test_a_row_that_cannot_be_answered_says_why(change, why):
    found = serving_answer(1, row(**change))
    assert re.search(why, found.why), found.why


def test_bands_exist_for_every_regime_of_the_book():
    for name in {regime(one) for one in serving()}:
        low, high = band(name)
        assert 0 < low < high
    with pytest.raises(ValueError, match="regime = 'speed'"):
        band("speed")


def test_the_published_sweep_of_nim_from_no_number_of_its_own():
    """Llama 3.3 70B in fp8 on two H100s, 5,000 in and 500 out: no row was fitted to."""
    off = []
    for one in serving():
        if one.source.startswith("NIM") and one.metric in ("itl", "tpot"):
            found = serving_answer(1, one)
            off.append(abs(found.predicted / found.measured - 1))
    assert len(off) == 8
    assert sum(off) / len(off) < 0.12
