"""What `serve` says: bounds below predictions, targets that are kept, faults named."""

import json
from functools import lru_cache

import pytest

from shardmath.__main__ import main
from shardmath.inference import Requests, Scheduler, open_loop
from shardmath.serving import LatencyTarget, plain, serve, text

JOB = ("llama3-70b", "h100:8")
LOAD = {"rate": 4, "input": 1000, "output": 200, "weights": "fp8"}


@lru_cache
def found(**changes):
    job = (changes.pop("model", JOB[0]), changes.pop("machine", JOB[1]))
    return serve(*job, **{**LOAD, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"tensor": 8},
        {"tensor": 2},
        {"tensor": 8, "rate": 18},
        {"model": "deepseek-v3", "machine": "h200:8", "tensor": 8, "rate": 2},
        {"machine": "v5e:4x4", "tensor": 8, "weights": "int8"},
    ],
    ids=str,
)
def test_a_bound_is_below_the_band_of_its_prediction(changes):
    one = found(**changes).best
    for metric in ("ttft", "tpot"):
        band = one.low(metric), one.predicted(metric), one.high(metric)
        values = [one.bound(metric), *(value for value in band if value is not None)]
        assert sorted(values) == values
        assert 0 < one.bound(metric) < one.predicted(metric)


def test_the_bound_counts_the_sequences_that_the_rate_keeps_in_decode():
    """At 20 requests/s, B = 20 · 199 · TPOT sequences share each step."""
    one = found(tensor=8, rate=20).best
    seqs = 20 * 199 * one.tpot_bound
    assert seqs > 5
    step = one.server.decode(seqs, seqs * 1100)
    assert one.tpot_bound == pytest.approx(step.bound, rel=1e-6)
    assert one.decoding > seqs


@pytest.mark.parametrize("rate", [2, 8, 16])
def test_the_simulation_agrees_with_the_closed_form(rate):
    """Means of `inference.open_loop`, which knows nothing of single requests."""
    one = found(tensor=8, rate=rate).best
    load = open_loop(one.server, rate, Requests(1000, 200), Scheduler(2048))
    assert one.result.mean_tpot == pytest.approx(load.tpot, rel=0.15)
    assert one.result.mean_ttft == pytest.approx(load.ttft, rel=0.25)


def test_two_copies_do_what_one_does_with_half_the_requests():
    two, one = found(tensor=4).best, found(machine="h100:4", tensor=4, rate=2).best
    assert (two.deployment.copies, one.deployment.copies) == (2, 1)
    assert two.result.tpots == one.result.tpots
    assert two.capacity == pytest.approx(2 * one.capacity)
    assert two.most == pytest.approx(2 * one.most)
    assert two.slots == one.slots


def test_the_largest_rate_keeps_the_target_and_a_larger_one_does_not():
    target = LatencyTarget(1.0, 0.02)
    one = found(tensor=8, target=target).best
    assert 4 < one.most < 0.9 * one.capacity
    assert one.played(one.most).meets(target)
    assert not one.played(one.most + one.capacity / 64).meets(target)
    strict = found(tensor=8, target=LatencyTarget(1.0, 0.012)).best
    assert 0 < strict.most < one.most


@pytest.mark.parametrize("share", [0.5, 0.9, 1.0])
def test_the_ratio_to_a_target_is_where_it_is_only_just_met(share):
    result = found(tensor=8).best.result
    ratio = result.ratio_to(LatencyTarget(1.0, 0.02, share))
    for factor, is_met in ((1.0001, True), (0.9999, False)):
        limits = 1.0 * ratio * factor, 0.02 * ratio * factor
        assert result.meets(LatencyTarget(*limits, share)) is is_met


def test_a_server_that_is_full_completes_its_capacity():
    """At nine tenths of it requests wait little, and 1.2 times of it they pile up."""
    one = found(tensor=8).best
    assert one.played(0.9 * one.capacity).ttft(50) < 2
    over = one.played(1.3 * one.capacity)
    assert over.ttft(99) > 5 * one.played(0.9 * one.capacity).ttft(99)


def test_layouts_are_ranked_by_the_rate_that_keeps_the_target():
    plan = found()
    rates = [one.most for one in plan.ranking]
    assert rates == sorted(rates, reverse=True)
    assert {one.server.layout.tensor for one in plan.ranking} == {1, 2, 4, 8}
    assert plan.ranking[1].deployment.words in plan.why
    share = 1 - rates[1] / rates[0]
    assert f"{share:.0%} fewer" in plan.why
    given = found(tensor=8)
    assert len(given.ranking) == 1
    assert given.why == ""


def test_experts_are_dealt_out_over_groups_of_attention():
    plan = found(model="deepseek-v3", machine="h200:8", rate=2)
    layouts = {
        (one.server.layout.data, one.server.layout.expert) for one in plan.ranking
    }
    assert {(1, 1), (2, 8), (8, 8)} <= layouts
    slots = {one.server.layout.data: one.slots for one in plan.ranking}
    assert slots[8] > 4 * slots[1]  # tensor parallelism copies the latent


def test_a_model_that_no_node_holds_goes_over_several():
    """Llama 405B in bf16 takes 812 GB, and a node of eight H100s has 640."""
    load = {"rate": 0.5, "input": 2000, "output": 500, "weights": "bf16"}
    over = found(model="llama3-405b", machine="h100:16", **load)
    names = [one.deployment.words for one in over.ranking]
    assert names == ["tensor 16", "tensor 8, pipeline 2"]
    assert [name for name, _ in over.refused][-1] == "tensor 8"
    inside = found(model="llama3-70b", machine="h100:16", **load)
    assert all(one.server.layout.tensor <= 8 for one in inside.ranking)
    assert all(one.server.layout.pipeline == 1 for one in inside.ranking)


def test_large_rates_are_written_out():
    said = text(found(model="llama3-8b", machine="h100:1", rate=20))
    assert "tokens: 107/s for each user, 4,000/s for the chip" in said


def test_a_target_that_nobody_keeps_is_said():
    plan = found(tensor=8, target=LatencyTarget(2.0, 0.001))
    assert plan.best.most == 0
    assert "keeps the target" in plan.why
    assert "not kept, even by a request alone" in text(plan)


def test_dollars_and_joules_of_a_rate():
    one = found(tensor=8).best
    assert one.dollars(2.0) == pytest.approx(8 * 2 / 3600 / (4 * 200) * 1e6)
    assert one.joules == pytest.approx(8 * 700 / (4 * 200) * 1e6)
    v5e = found(machine="v5e:4x4", tensor=8, weights="int8").best
    assert (v5e.joules is None) == ("power" not in v5e.server.chip.facts)


# Faults ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tensor": 0}, "tensor = 0: must be a whole number from 1"),
        ({"data": -2}, "data = -2: must be a whole number from 1"),
        ({"target": (1, 0.05)}, r"target = \(1, 0.05\): must be a LatencyTarget"),
        ({"output": 1}, "output = 1: must be at least 2 tokens"),
        (
            {"machine": "h100:3", "weights": "bf16"},
            "smallest layout that fits: tensor 2 on 2 chips; a layout must divide the "
            "3 chips of 3 H100 on NVLink",
        ),
        (
            {"model": "llama3-405b", "tensor": 8, "weights": "bf16"},
            r"101 GB of weights on each H100 \(tensor 8\) are 24.5 GB more than the "
            "77 GB .* the smallest layout that fits: .* on 16 chips",
        ),
        ({"machine": "h100:1", "weights": "bf16"}, "141 GB of weights .* on 2 chips"),
        (
            {"rate": 100, "tensor": 8},
            r"rate = 100 requests/s: tensor 8 on .* completes at most \d+\.\d requests",
        ),
        ({"rate": 1000}, "rate = 1000 requests/s: .* completes at most "),
        ({"tensor": 3}, r"layout of 3 chips \(tensor 3\): must divide the 8 chips"),
        ({"tensor": 16}, "layout of 16 chips .*: must divide the 8 chips"),
        (
            {"input": 10**8, "tensor": 8},
            "a request of 100,000,200 tokens takes .* GiB|TiB",
        ),
        ({"rate": 0}, "rate = 0: must be a finite number above 0"),
        ({"output": 0}, "output = 0: must be a whole number from 1"),
        ({"weights": "fp3"}, "weights = 'fp3': must be one of"),
        ({"model": "lama"}, "lama"),
        ({"machine": "h100"}, "h100"),
        ({"tensor": 2, "expert": 2}, "has no experts"),
    ],
)
def test_a_fault_is_named_with_what_would_be_right(changes, message):
    with pytest.raises(ValueError, match=message):
        found(**changes)


# The command -------------------------------------------------------------------------

WORDS = ["serve", *JOB, "--rate", "4", "--input", "1000", "--output", "200",
         "--weights", "fp8", "--tensor", "8"]  # fmt: skip


def test_the_command_prints_what_serve_finds(capsys):
    assert main(WORDS) == 0
    assert capsys.readouterr().out == f"{text(found(tensor=8))}\n"


def test_the_command_answers_in_json(capsys):
    assert main([*WORDS, "--json", "--price", "2"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == json.loads(json.dumps(plain(found(tensor=8), 2.0)))
    (one,) = said["layouts"]
    assert one["layout"] == {
        "tensor": 8, "pipeline": 1, "expert": 1, "data": 1, "copies": 1
    }  # fmt: skip
    assert one["tpot"]["bound"] < one["tpot"]["predicted"] < one["tpot"]["p99"]
    assert {"low", "high"} <= set(one["tpot"])
    assert one["dollars_per_million"] == pytest.approx(5.56, abs=0.01)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tpot", "3x"], "--tpot 3x: must be a time, like 50ms or 2s"),
        (["--ttft", "0s"], "--ttft 0s: must be a time, like"),
        (["--share", "2"], "share = 2.0: must be above 0 and at most 1"),
        (["--price", "-1"], "price = -1.0: must be a finite number above 0"),
        (["--rate", "99"], "rate = 99 requests/s: tensor 8 on"),
        (["--reserve", "2"], "reserve = 2.0: must be from 0 to below 1"),
    ],
)
def test_a_wrong_word_is_answered_in_a_line(words, said, capsys):
    assert main([*WORDS, *words]) == 2
    assert said in capsys.readouterr().err


def test_an_unknown_option_is_quoted(capsys):
    with pytest.raises(SystemExit):
        main([*WORDS, "--tensors", "8"])
    assert "--tensors" in capsys.readouterr().err
