"""Anybody's runs: read leniently, filled in by rules, and refused with a reason."""

import csv
import json
import re
import time
from importlib.resources import files

import pytest

from shardmath.__main__ import main
from shardmath.measured import RUNS
from shardmath.measured.filling import filled
from shardmath.measured.fit_rows import rows
from shardmath.measured.predict_file import predict_file, predict_text, to_table
from shardmath.measured.reading import COLUMNS, read_run
from shardmath.training.efficiencies import efficiencies

ROW = {
    "model": "llama 3 8b", "chip": "H100", "chips": "8", "mesh": "fsdp=8",
    "seqs": "16", "seq": "8192", "precision": "bf16", "tokens": "6667",
}  # fmt: skip
TABLE = files("shardmath.measured") / "training.csv"


def answers(*changes, heads=None):
    """Answers for rows that differ from `ROW` in some cells."""
    table = [{**ROW, **change} for change in changes]
    heads = heads or list(dict.fromkeys(key for row in table for key in row))
    lines = [",".join(heads)]
    lines += [",".join(f'"{row.get(head, "")}"' for head in heads) for row in table]
    return predict_text("\n".join(lines))


def one(**change):
    (found,) = answers(change)
    return found


def test_the_books_own_table_is_answered_as_the_runs_page_does():
    lines = TABLE.read_text("utf-8").splitlines()
    head = next(n for n, line in enumerate(lines) if not line.startswith("#"))
    some = predict_text("\n".join([lines[head], *lines[head + 1 :: 40]]))
    known = {id(row.run): row for row in rows()}
    for answer, run in zip(some, RUNS[::40], strict=True):
        row = known[id(run)]
        predicted = row.predicted(efficiencies())
        assert answer.prediction.seconds == pytest.approx(predicted, rel=1e-4)
        assert answer.prediction.bound == pytest.approx(row.bound, rel=1e-4)
        assert answer.measured == pytest.approx(row.measured, rel=1e-4)
        assert answer.assumed == row.assumed


def test_an_answer_has_all_that_is_promised():
    (found,) = answers({})
    plain = found.plain
    assert plain["bound"] <= plain["low"] <= plain["predicted"] <= plain["high"]
    assert plain["measured"] == pytest.approx(16 * 8192 / 8 / 6667)
    assert plain["unit"] == "s"
    assert sum(plain["parts"].values()) == pytest.approx(plain["predicted"])
    assert any("computed again" in what for what in plain["assumed"])
    assert any("because the row does not say" in what for what in plain["warnings"])
    assert "measured" not in one(tokens="").plain


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"precision": "bfloat16"}, {}),
        ({"mesh": "FSDP=8"}, {}),
        ({"mesh": "tp=2 dp=4"}, {"mesh": "tensor=2 zero1=4"}),
        ({"mesh": "tp=2"}, {"mesh": "tensor=2 zero1=4"}),
        ({"mesh": "tensor=2 x zero1=4"}, {"mesh": "tensor=2 zero1=4"}),
        ({"chips": "8", "mesh": "zero3=8"}, {}),
        ({"remat": "None"}, {"remat": "none"}),
        ({"remat": "unknown"}, {}),
    ],
)
def test_words_that_mean_the_same_give_the_same(change, same):
    assert one(**change).prediction.seconds == one(**same).prediction.seconds


def test_columns_have_other_names_too():
    text = """GPU;GPUs;Model;TP;PP;global batch;Seq Len;dtype;MBS;unheard of
    H100;64;llama 3 70b;4;8;128;8192;fp8;1;x"""
    (found,) = predict_text(text)
    same = one(model="llama 3 70b", chips="64", mesh="tensor=4 pipeline=8 zero1=2",
               seqs="128", precision="fp8", microbatch="1", tokens="")  # fmt: skip
    assert found.prediction.seconds == same.prediction.seconds
    assert found.assumed[0].startswith("ZeRO-1 over the 2 data-parallel ways")


MOE = {"model": "qwen3 30b a3b", "chips": "32", "seqs": "512", "seq": "4096",
       "tokens": ""}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "mesh"),
    [
        ({"mesh": "tp=1 pp=2 ep=16"}, "pipeline=2 expert_state=16"),
        ({"mesh": "tp=2 ep=8"}, "zero1=2 expert_state=8 tensor=2"),
        # Data parallelism has fewer ways than the experts: each is on one chip.
        ({"mesh": "tp=2 ep=32"}, "expert_state=16 tensor_experts=2"),
        ({"mesh": "tp=2 ep=8", "etp": "1"},
         "zero1=4 expert_state=4 tensor_experts=2"),
        ({"mesh": "tp=2 ep=16", "expert_tensor_parallel_size": "1"},
         "zero1=2 expert_state=8 tensor_experts=2"),
        # Context parallelism is nearer than data parallelism.
        ({"mesh": "cp=2 ep=8"}, "zero1=4 expert_state=4 context_experts=2"),
        ({"mesh": "tp=2 cp=2 ep=32"},
         "expert_state=8 context_experts=2 tensor_experts=2"),
    ],
)  # fmt: skip
def test_experts_fold_over_other_axes_as_in_megatron(change, mesh):
    folded, said = one(**MOE, **change), one(**MOE, mesh=mesh)
    assert folded.prediction.seconds == said.prediction.seconds
    assert folded.prediction.bound == said.prediction.bound
    assert dict(folded.prediction.parts) == dict(said.prediction.parts)


def test_folded_experts_are_whole_and_large():
    whole = one(**MOE, mesh="zero1=2 expert_state=8 tensor_experts=2")
    cut = one(**MOE, mesh="zero1=2 expert_state=8 tensor=2")
    assert whole.prediction.seconds < cut.prediction.seconds
    assert any("8 of the data-parallel ways and 2 ways of tensor" in what
               for what in one(**MOE, mesh="tp=2 ep=16", etp="1").assumed)  # fmt: skip


def test_experts_that_fold_over_a_part_of_an_axis_are_said_to_be_shared():
    found = one(**MOE, mesh="tp=8 ep=4", etp="1")
    assert "8 chips share each expert here" in " ".join(found.assumed)


def test_kv_heads_are_copied_where_tensor_parallelism_has_more_ways():
    few = {"model": "qwen3 30b a3b", "chips": "8", "seqs": "64", "seq": "4096",
           "tokens": "", "microbatch": "1", "remat": "full"}  # fmt: skip
    copied = read_run({**ROW, **few, "mesh": "tensor=8"})
    assert copied.ordered_mesh == {"tensor": 4, "copies": 2}
    assert copied.strategy.weights["K"] == ("tensor",)
    assert copied.strategy.weights["N"] == ("tensor", "copies")
    step = one(**few, mesh="tensor=8").prediction
    assert step.bound > 0
    folded = read_run({**ROW, **few, "mesh": "tensor_experts=8"})
    assert folded.strategy.weights["E"] == ("tensor_experts", "copies")
    assert one(**few, mesh="tensor_experts=8").prediction.seconds > 0


def test_a_dense_model_has_no_experts_to_fold():
    assert "has no experts" in one(mesh="fsdp=4 tensor_experts=2").why


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"model": "llama 9"}, "no model is called 'llama 9'"),
        ({"chip": "H9000"}, "no chip is called 'H9000'"),
        ({"mesh": "fsdp=9"}, "has 9 places for 8 chips"),
        ({"mesh": "fsdp=8 moon=2"}, "mesh axis 'moon': must be one of"),
        ({"mesh": "fsdp=eight"}, "as in \"fsdp=16 tensor=8\""),
        ({"seqs": "4"}, "must be at least 8, one for each data-parallel rank"),
        ({"seqs": "-4"}, "seqs = '-4': must be a whole number from 1"),
        ({"seq": "8k"}, "seq = '8k': must be a whole number from 1"),
        ({"tokens": "fast"}, "tokens = 'fast': must be a number above 0"),
        ({"step": "9"}, "step = 9 s contradicts tokens = 6667 tokens/s"),
        ({"tokens": "60000"}, "is shorter than its math at the peak"),
        ({"model": "llama 3 405b", "tokens": ""}, "do not fit in the 80 GiB"),
        ({"remat": "some"}, "remat = 'some': must be one of none"),
        ({"microbatch": "3"}, "must divide the sequences of a data-parallel rank"),
        ({"precision": "fp3"}, "fp3"),
        ({"overlap": "weights"}, "overlap = 'weights': must be one of"),
        ({"schedule": "2f2b"}, "schedule = '2f2b'"),
        ({"counts": "all"}, "counts = 'all': must be one of"),
        ({"mesh": ""}, "its mesh or its batch is not published"),
        ({"seqs": ""}, "its mesh or its batch is not published"),
        ({"chips": ""}, "chips: is empty; must be the number of chips"),
    ],
)  # fmt: skip
def test_a_bad_row_says_why_and_stops_no_other(change, why):
    first, bad, last = answers({}, change, {})
    assert why in bad.why
    assert bad.plain.keys() == {"row", "name", "why"}
    assert first.prediction.seconds == last.prediction.seconds


def test_too_many_cells_are_named():
    (found,) = predict_text("model,chip,chips,seq\nllama 3 8b,H100,8,8192,1,2")
    assert found.why == "the row has 2 more cells than the head"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("# a comment\n\n", "is empty"),
        ("a,b\n1,2", "has no column chip, chips, model, seq"),
    ],
)
def test_what_is_no_table_is_refused(text, why):
    with pytest.raises(ValueError, match=why):
        predict_text(text)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        predict_file(tmp_path / "no.csv")


@pytest.mark.parametrize("path", [None, 3, b"runs.csv", ["runs.csv"], 2.5])
def test_what_is_no_path_is_quoted(path):
    with pytest.raises(ValueError, match=r"^path = .*: must be the path of a file"):
        predict_file(path)


@pytest.mark.parametrize("path", ["runs\0.csv", "x" * 9000])
def test_a_path_that_no_file_can_have_is_cut_in_the_message(path):
    with pytest.raises(ValueError, match="cannot be read") as caught:
        predict_file(path)
    assert len(str(caught.value)) < 200


def test_what_is_no_text_is_quoted():
    with pytest.raises(ValueError, match="text = 3: must be a string"):
        predict_text(3)
    with pytest.raises(ValueError, match="name = 3: must be a string"):
        predict_text("a,b", 3)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_cell_may_have_as_many_characters_as_the_csv_module_reads(at):
    lines = [",".join(ROW), ",".join(ROW.values()), ",".join(ROW.values())]
    lines[at] += ",note" + "e" * csv.field_size_limit()
    with pytest.raises(ValueError, match=f"after line {at} is too long.* 131,072"):
        predict_text("\n".join(lines))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"seqs": "1e308"}, "seqs = 10*9*[0-9]*…, seq = 8192: a step has at most"),
        ({"seq": "1e308"}, "seqs = 16, seq = 10*9*[0-9]*…: a step has at most"),
        ({"seqs": "", "seq": "1e308"}, "seqs = None, seq = .*: a step has at most"),
        ({"seqs": "1000000000"}, "seqs = 1000000000, seq = 8192: a step has at most"),
        ({"mesh": f"fsdp={'1' * 400}"}, "mesh = .*…: must be the size of each kind"),
        ({"chips": "1" * 5000}, "chips = .*…: must be a whole number from 1"),
        ({"mesh": f"fsdp=8 {'x' * 5000}=8"}, "mesh axis .*…: must be one of"),
        (
            {"seqs": "", "batch_tokens": "9" * 300, "seq": "8191"},
            "batch_tokens = .*…: must be a multiple of seq = '8191'",
        ),
    ],
)
def test_what_is_too_large_is_refused_at_once(change, why):
    start = time.process_time()
    said = one(**change).why
    assert re.search(why, said)
    assert len(said) < 500
    assert time.process_time() - start < 0.5


def test_a_step_of_a_thousand_million_sequences_is_answered():
    """The numbers of microbatches are the divisors, which must not be tried one by
    one."""
    start = time.process_time()
    found = one(seqs="1000000000", seq="512", mesh="tensor=8", tokens="")
    assert found.prediction
    assert time.process_time() - start < 5


def test_parallelism_of_many_letters_is_refused_at_once():
    row = {"model": "Qwen3-32B", "chip": "H100", "metric": "tpot", "value": "12.5"}
    start = time.process_time()
    for ways in ("x" * 100_000, f"tp={'1' * 400}"):
        cells = {**row, "parallelism": ways, "concurrency": "8", "unit": "ms"}
        (found,) = predict_text(json.dumps([cells]))
        assert re.match("parallelism = .*…: must be the size of each", found.why)
    assert time.process_time() - start < 0.5


def test_the_command_answers_with_a_list(tmp_path, capsys):
    path = tmp_path / "runs.csv"
    heads = ",".join(ROW)
    good, bad = ",".join(ROW.values()), ",".join((*list(ROW.values())[1:], "x"))
    path.write_text(f"\ufeff{heads}\n{good}\n{bad}\n", "utf-8")
    assert main(["predict", str(path), "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["predicted"] > first["bound"]
    assert second["why"]
    assert main(["predict", str(path)]) == 0
    assert str(to_table(predict_file(path))) in capsys.readouterr().out
    assert main(["predict", str(tmp_path / "none.csv")]) == 2
    assert "cannot be read" in capsys.readouterr().err


# ---------------------------------------------------------------- filling in, by rules


def test_what_is_published_is_not_filled_in():
    run = read_run(ROW | {"remat": "full", "microbatch": "1"})
    found = filled(run)
    assert found.run.remat == "full"
    assert found.run.microbatches == 2
    assert not any("again" in what or "microbatch" in what for what in found.assumed)


def test_the_largest_microbatch_and_the_least_recomputation_that_fit():
    """A microbatch of one sequence fits without recomputation. The rule prefers it to
    a larger one that has to compute something again."""
    found = filled(read_run(ROW | {"seqs": "64"}))
    assert found.fits
    assert found.run.remat == "none"
    assert found.run.microbatches == 8
    tight = filled(read_run(ROW | {"seqs": "64", "microbatch": "8"}))
    assert (tight.run.remat, tight.run.microbatches) == ("full", 1)


def test_a_pipeline_is_interleaved_where_it_can_be():
    row = ROW | {"model": "llama 3 70b", "chips": "64", "seqs": "128", "tokens": "",
                 "mesh": "pipeline=8 tensor=4 zero1=2"}  # fmt: skip
    found = filled(read_run(row))
    assert (found.run.schedule, found.run.chunks) == ("interleaved", 5)
    odd = filled(read_run(row | {"seqs": "24"}))  # 12 microbatches on 8 stages
    assert (odd.run.schedule, odd.run.chunks) == ("1f1b", None)


def test_a_slice_whose_sides_nobody_states_is_round():
    row = ROW | {"chip": "v5e", "chips": "64", "mesh": "fsdp=64", "seqs": "64"}
    (found,) = answers(row | {"tokens": ""})
    assert found.prediction
    assert "a slice as round as can be" in found.assumed
    (odd,) = answers(row | {"chips": "48", "mesh": "fsdp=48", "tokens": ""})
    assert "its network is not published" in odd.why


def test_columns_are_those_of_the_books_table():
    lines = TABLE.read_text("utf-8").splitlines()
    head = next(line for line in lines if not line.startswith("#"))
    assert head.split(",") == list(COLUMNS)
