"""The flags that a plan ends with say what the plan says."""

from dataclasses import replace
from math import prod

import pytest

from shardmath.hardware.chips import TPU_V5E
from shardmath.planner import plan
from shardmath.planner.flags import sequences
from shardmath.transformer import DEEPSEEK_V3, LLAMA_3_70B


def flags(text):
    """Flags with their values; those without one are True."""
    found, words = {}, text.split()[1:]
    for word, after in zip(words, [*words[1:], "--"], strict=True):
        if word.startswith("--"):
            found[word] = True if after.startswith("--") else after
    return found


def settings(text):
    """MaxText's key=value settings as numbers where they are."""
    return dict(word.split("=") for word in text.split()[1:])


def test_megatron_gets_the_mesh_and_the_batch():
    found = plan("llama 3 405b", "h100:16384", "16M")
    said = flags(found.flags())
    assert said["--tensor-model-parallel-size"] == "8"
    assert said["--sequence-parallel"] is True
    assert said["--pipeline-model-parallel-size"] == "16"
    assert said["--num-virtual-stages-per-pipeline-rank"] == str(found.best.chunks)
    assert said["--use-distributed-optimizer"] is True
    assert said["--global-batch-size"] == "2048"
    assert "--context-parallel-size" not in said
    one = found.best.candidate
    many = int(said["--micro-batch-size"]) * one.microbatches
    assert many * one.sizes["zero"] == 2048
    assert sequences(found.job, one) == int(said["--micro-batch-size"])


def test_megatron_accepts_what_it_is_told():
    """126 layers on 16 stages of 8 chunks count embedding and head as layers; several
    groups that share an optimizer's state are said; only its own names of modules."""
    uneven = plan("llama 3 405b", "h100:16384", "16M")
    assert (126 + 2) % (16 * uneven.best.chunks) == 0
    said = flags(uneven.flags())
    assert said["--account-for-embedding-in-pipeline-split"] is True
    assert said["--account-for-loss-in-pipeline-split"] is True
    assert said["--recompute-modules"] == "layernorm"
    even = flags(plan("llama 3 70b", "h100:64", "1M", fixed={"pipeline": 2}).flags())
    assert "--account-for-loss-in-pipeline-split" not in even
    shared = plan("llama 3 8b", "h100:8", "1M", fixed={"data": 2, "fsdp": 4})
    assert flags(shared.flags())["--num-distributed-optimizer-instances"] == "2"


def test_megatron_is_told_what_to_compute_again():
    options = {"fixed": {"tensor": 8}, "top": 1}
    whole = plan("llama 3 70b", "h100:64", "1M", remat="full", **options)
    said = flags(whole.flags())
    assert said["--recompute-granularity"] == "full"
    assert (said["--recompute-method"], said["--recompute-num-layers"]) == (
        "uniform",
        "1",
    )
    none = plan("llama 3 70b", "h100:64", "1M", remat="none", hbm=1e12, **options)
    assert "--recompute-granularity" not in flags(none.flags())


def test_megatron_is_told_to_expand_latents_again():
    model = replace(DEEPSEEK_V3, layers=8)
    options = {"fixed": {"expert": 16}, "keys": "ring", "hbm": 78 * 2**30}
    found = plan(model, "h100:16", 2**19, 4096, **options)
    again = found.best.recompute
    assert str(again) == "elementwise, heads of latents"
    assert {"Q", "K", "V"}.isdisjoint(again.remat.split())
    assert {"cq", "ckv", "A", "t"} <= {*again.remat.split()}
    said = found.flags().split("--recompute-modules ")[1].split(" --")[0]
    assert said == "layernorm moe_act mla_up_proj"


def test_megatron_is_told_how_keys_move():
    found = plan("llama 3 8b", "h100:8", 2**18, 2**18, keys="gather")
    said = flags(found.flags())
    assert (said["--context-parallel-size"], said["--cp-comm-type"]) == (
        "8",
        "allgather",
    )


@pytest.mark.parametrize("machine", ["v5e:16x16", "v5e:16x16*4"])
def test_maxtext_gets_axes_inside_and_between_slices(machine):
    found = plan(LLAMA_3_70B, machine, "4M")
    said = settings(found.flags())
    chips = found.network.chips
    axes = [int(n) for key, n in said.items() if key.endswith("_parallelism")]
    assert prod(axes) == chips
    inside = prod(int(n) for key, n in said.items() if key.startswith("ici_"))
    assert inside == min(chips, int(TPU_V5E.domain))
    batch = float(said["per_device_batch_size"]) * chips
    batch *= int(said.get("gradient_accumulation_steps", 1))
    assert batch == found.job.seqs


def test_fewer_chips_are_named_where_they_are_faster():
    found = plan("llama 3 70b", "v5p:16x20x28", "4M")
    assert found.fewer.network.chips == 8192
    assert found.fewer.fastest.seconds < found.fastest.seconds
    assert "8,192 of the chips would be faster" in str(found)
    assert plan("llama 3 8b", "h100:64", "1M").fewer is None
