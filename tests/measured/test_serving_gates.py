"""Gates of measured servers: each finds a planted fault, and passes the row without."""

import json
from dataclasses import replace

import pytest

from shardmath.__main__ import main
from shardmath.measured.predict_file import predict_text
from shardmath.measured.predict_serving import predict_rows
from shardmath.measured.serving import serving
from shardmath.measured.serving_gates import checked, contradictions, refusals
from shardmath.measured.serving_rows import read_row

ROW = {
    "model": "Qwen3-32B", "chip": "H100", "parallelism": "tp=2", "engine": "trtllm",
    "weights": "fp8", "concurrency": 8, "input": 1024, "output": 1024,
    "metric": "tpot", "value": 11.7, "unit": "ms", "source": "a test",
}  # fmt: skip


def named(*changes):
    """What the gates say of rows that differ from `ROW`, in one line each."""
    rows = [read_row(ROW | change) for change in changes]
    found = checked(rows)
    return ["; ".join(found.get(at, ())) for at in range(len(rows))]


def both(ttft, tpot, **change):
    """The two rows of one run."""
    return (
        {"metric": "ttft", "value": ttft, **change},
        {"metric": "tpot", "value": tpot, **change},
    )


def test_a_plausible_run_passes():
    assert named(*both(150, 11.7)) == ["", ""]


# --------------------------------------------------------------------- labels of a row


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"count": 3}, "count = 3: is no whole number of copies of 2 chips (tensor 2)"),
        ({"count": 1}, "count = 1: is less than the 2 chips of tensor 2"),
        ({"parallelism": "tp=3"}, "tensor = 3: does not divide the 64 heads of Qwen3"),
        ({"parallelism": "pp=65"}, "pipeline = 65: is more than the 64 layers"),
    ],
)
def test_labels_that_contradict_each_other_are_refused(change, why):
    row = read_row(ROW | change)
    assert any(one.startswith(why) for one in contradictions(row))
    assert refusals(row)
    good, bad, again = predict_rows([ROW, ROW | change, ROW])
    assert why in bad.why
    assert bad.plain.keys() == {"row", "name", "metric", "why"}
    assert good.predicted == again.predicted


def test_copies_of_a_layout_are_no_contradiction():
    assert contradictions(read_row(ROW | {"count": 8})) == ()


def test_ways_that_cut_the_heads_of_a_latent_are_named_but_answered():
    """GB200 rows labelled tensor 28 to 64 mean data-parallel attention."""
    told = {"model": "DeepSeek-R1", "chip": "GB200", "parallelism": "tp=28",
            "count": 28, "engine": "sglang"}  # fmt: skip
    row = read_row(ROW | told)
    assert contradictions(row) == (
        "tensor = 28: does not divide the 128 heads of DeepSeek-V3",
    )
    (answer,) = predict_rows([ROW | told])
    assert answer.predicted > 0
    assert any("does not divide the 128 heads" in one for one in answer.warnings)


# ------------------------------------------------------------------- bounds and memory


def test_448_caches_of_15000_tokens_do_not_fit_on_two_gpus():
    """The planted fault is the public one; eight GPUs pass."""
    told = {"concurrency": 448, "input": 15_000, "output": 500, "chip": "H100"}
    run = both(2_000, 40, **told)
    for why in named(*run):
        assert "of 448 sequences decode at a time by Little's law" in why
        assert "caches of 15,250 tokens in fp8 fit in 2 H100" in why
    # with a queue before the server most of them wait, and nothing contradicts
    assert named(*both(600_000, 40, **told)) == ["", ""]


def test_weights_that_do_not_fit_are_named():
    (why,) = named({"parallelism": "tp=1", "weights": "bf16", "chip": "L40S"})
    assert "of weights on each L40S do not fit in" in why


def test_a_latency_below_its_bound_is_named():
    (why,) = named({"value": 1.0})
    assert why.startswith("tpot = 1 ms: beats its bound, 4.9")
    (quick, _) = named(*both(10, 11.7))
    assert quick.startswith("ttft = 10 ms: beats its bound")


def test_ttft_and_tpot_that_pass_alone_may_beat_the_bound_together():
    told = {"concurrency": 256, "input": 8192, "output": 128}
    first, _ = named(*both(400, 8, **told))
    assert "TTFT + (output − 1) · TPOT" in first
    assert named(both(400, 8, **told)[0])[0] == named(both(400, 8, **told)[1])[0] == ""


def test_the_bound_tells_the_format_of_a_cache():
    """TensorRT-LLM 1.0 prints 14,325 tokens/s of Llama 3.1 8B on one H100, 128 in and
    4,096 out, and no format: a cache in bf16 allows less, one in fp8 more."""
    told = {"model": "Llama 3.1 8B", "parallelism": "tp=1", "mode": "offline",
            "concurrency": None, "input": 128, "output": 4096, "metric": "tokens",
            "value": 14_325, "unit": "tokens/s"}  # fmt: skip
    wide, narrow = named({**told, "kv": "bf16"}, {**told, "kv": "fp8"})
    assert "beats its bound" in wide
    assert narrow == ""


# ------------------------------------------------------------------ several rows


def test_littles_law_holds_for_nims_sweep_and_finds_a_doubled_rate():
    nim = [row for row in serving() if row.source.startswith("NIM")]
    assert not any("Little" in why for some in checked(nim).values() for why in some)
    rates = [n for n, row in enumerate(nim) if row.metric == "tokens"]
    wrong = [
        replace(row, value=2 * row.value) if n == rates[3] else row
        for n, row in enumerate(nim)
    ]
    found = checked(wrong)
    assert {nim[n].concurrency for n in found} == {50}
    assert all("Little's law gives" in found[n][-1] for n in found)


def test_repeats_that_differ_are_named_and_close_ones_are_not():
    close = named({"value": 11.7}, {"value": 14.0})
    assert close == ["", ""]
    apart = named({"value": 14.65}, {"value": 6.82})
    assert apart == ["2 rows of this configuration read 6.82 ms to 14.6 ms"] * 2
    other = named({"value": 14.65}, {"value": 6.82, "engine_version": "2"})
    assert other == ["", ""]


def test_what_the_gates_find_in_the_public_rows():
    """Counted when the table was read; each kind has its own reason."""
    rows = serving()
    found = checked(rows)
    kinds = {
        "does not divide": 0, "caches of": 0, "beats the bound of a request": 0,
        "beats its bound": 0, "of this configuration read": 0, "Little's law gives": 0,
    }  # fmt: skip
    for why in found.values():
        for kind in kinds:
            kinds[kind] += any(kind in one for one in why)
    assert kinds["does not divide"] == 128
    assert 0 < kinds["caches of"] < 60
    assert 0 < kinds["beats the bound of a request"] <= 20
    beats = {rows[at].model.name for at, why in found.items()
             if any("beats the bound of a request" in one for one in why)}  # fmt: skip
    assert "Qwen3 32B" in beats
    assert len(found) < 0.12 * len(rows)


# ------------------------------------------------------------------------- the command


def test_the_command_answers_each_row_in_its_unit(tmp_path, capsys):
    path = tmp_path / "rows.json"
    rows = [ROW, ROW | {"unit": "s", "value": 0.0117}, ROW | {"chip": "H9"},
            ROW | {"metric": "tokens", "value": 600, "unit": "tokens/s"}]  # fmt: skip
    path.write_text(json.dumps(rows), "utf-8")
    assert main(["predict", str(path), "--json"]) == 0
    first, second, bad, rate = json.loads(capsys.readouterr().out)
    assert first["unit"] == "ms"
    assert second["unit"] == "s"
    assert first["predicted"] == pytest.approx(1e3 * second["predicted"])
    for one in (first, second):
        assert one["bound"] <= one["low"] <= one["predicted"] <= one["high"]
    assert "no chip is called 'H9'" in bad["why"]
    assert rate["low"] <= rate["predicted"] <= rate["high"] <= rate["bound"]
    assert main(["predict", str(path)]) == 0
    out = capsys.readouterr().out
    assert "11.7 ms" in out
    assert "600 tokens/s" in out


def test_a_table_of_servers_is_answered_like_json():
    heads = ",".join(ROW)
    cells = ",".join(str(value) for value in ROW.values())
    (one,) = predict_text(f"{heads}\n{cells}")
    (same,) = predict_rows([ROW])
    assert one.plain == same.plain


def test_a_row_with_too_many_cells_says_so():
    text = "model,chip,metric,value,unit\nQwen3-32B,H100,tpot,1,ms,2,3"
    (found,) = predict_text(text)
    assert found.why == "the row has 2 more cells than the head"


def test_more_sequences_do_not_decode_in_half_the_time():
    few = both(150, 11.7)
    quick, slower = (both(150, tpot, concurrency=32) for tpot in (5.5, 13))
    assert not any(named(*few, *slower))
    first, _, second, third = named(*few, *quick)
    assert not first
    assert second == third
    assert "31 sequences decode at a time in 5.5 ms a token, and in another" in second
