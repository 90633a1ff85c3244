"""The flags that a plan ends with say what the plan says."""

from dataclasses import replace
from math import prod

import pytest

from shardmath.planner import plan
from shardmath.planner.candidates import RematShare
from shardmath.planner.flags import maxtext, megatron, sequences
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
    assert flags(shared.flags())["--ckpt-format"] == "fsdp_dtensor"  # no other is taken


def test_megatron_is_told_to_shard_only_what_the_plan_shards():
    copies = plan("qwen3-0.6b", "h100:8", "1M", 4096, fixed={"data": 8})
    said = flags(copies.flags())
    assert said["--overlap-grad-reduce"] is True
    assert {"--use-megatron-fsdp", "--use-distributed-optimizer"}.isdisjoint(said)
    assert "--num-distributed-optimizer-instances" not in said
    sizes = {"data": 2, "expert": 8}  # and other weights are sharded over all 8, too
    found = plan("mixtral 8x7b", "gb200:16", "1M", fixed=sizes)
    for trial, flag in zip(
        found.ranking, ("distributed-optimizer", "megatron-fsdp"), strict=True
    ):
        said = flags(found.flags(trial))
        assert said[f"--use-{flag}"] is True
        assert said["--num-distributed-optimizer-instances"] == "2"


def test_the_optimizer_is_sharded_over_as_many_gpus_as_divide_its_rows():
    """72 doesn't divide the 4,096 numbers of a row, so 8 GPUs shard it, 9 times."""
    found = plan("llama 3 8b", "gb200:72", "9M")
    assert found.best.axes == {"data": 9, "zero": 8}
    said = flags(found.flags())
    assert said["--use-distributed-optimizer"] is True
    assert said["--num-distributed-optimizer-instances"] == "9"
    assert found.why_not(zero=72) == "zero 72 does not divide D = 4,096"
    copies = plan("llama 3 8b", "gb200:72", "9M", fixed={"data": 72})
    assert copies.best.seconds > found.best.seconds
    assert copies.best.memory.total > found.best.memory.total + 30e9


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


def test_megatron_is_told_how_many_layers_to_compute_again():
    """Half of the 20 layers of each stage."""
    options = {"fixed": {"tensor": 8, "pipeline": 4}, "top": 1, "chunks": 1}
    found = plan("llama 3 70b", "h100:64", "1M", **options)
    half = replace(found.best.candidate, recompute=RematShare("full", 0.5))
    said = flags(f"Megatron: {megatron(found.job, half)}")
    assert said["--recompute-method"] == "block"
    assert said["--recompute-num-layers"] == "10"
    chunks = replace(half, chunks=5)  # Megatron counts within a chunk, of 4 layers
    assert "--recompute-num-layers 2" in megatron(found.job, chunks)


def test_embedding_and_head_count_as_layers_only_where_that_helps():
    """On 3 stages, neither 80 layers nor 82 are equally many: each stage is listed."""
    options = {"fixed": {"tensor": 8, "pipeline": 4}, "top": 1, "chunks": 1}
    found = plan("llama 3 70b", "h100:64", "1M", **options)
    one = found.best.candidate
    three = replace(one, sizes={**one.sizes, "pipeline": 3})
    assert "--account-for" not in megatron(found.job, three)
    listed = '--pipeline-model-parallel-layout "Et*27|t*27|t*26,L"'
    assert listed in megatron(found.job, three)
    chunks = megatron(found.job, replace(three, chunks=9))
    assert "--num-virtual-stages" not in chunks  # the layout tells how many
    assert chunks.count("|") == 3 * 9 - 1
    longer = replace(found.job, model=replace(LLAMA_3_70B, layers=82))
    assert "--account-for-loss-in-pipeline-split" in megatron(longer, one)


def test_maxtext_shards_the_optimizer_alone_only_with_zero_1():
    for axis, said in (("zero", True), ("fsdp", False)):
        found = plan("llama 3 8b", "v5p:2x2x4", "1M", fixed={axis: 16}, top=1)
        given = maxtext(found.job, found.best.candidate)
        assert ("shard_optimizer_over_data=True" in given) == said


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


@pytest.mark.parametrize(
    ("machine", "options", "devices", "inside", "tensor"),
    [
        ("v5e:16x16", {}, 256, 256, None),
        ("v5e:16x16*4", {}, 1024, 256, None),
        # JAX counts each chip of Ironwood twice. Its two devices share two sequences
        # or, if the chip takes one at a time or shares the layers, the layers.
        ("tpu7x:4x4x8", {"fixed": {"fsdp": 128}, "sequences": 2}, 256, 256, "1"),
        ("tpu7x:4x4x8", {"fixed": {"fsdp": 128}, "sequences": 1}, 256, 256, "2"),
        ("tpu7x:4x4x8", {"fixed": {"tensor": 4}}, 256, 256, "8"),
    ],
)
def test_maxtext_gets_axes_inside_and_between_slices(
    machine, options, devices, inside, tensor
):
    found = plan(LLAMA_3_70B, machine, "4M", **options)
    said = settings(found.flags())
    axes = [int(n) for key, n in said.items() if key.endswith("_parallelism")]
    assert prod(axes) == devices
    assert prod(int(n) for key, n in said.items() if key.startswith("ici_")) == inside
    assert tensor is None or said.get("ici_tensor_parallelism", "1") == tensor
    batch = float(said["per_device_batch_size"]) * devices
    batch *= int(said.get("gradient_accumulation_steps", 1))
    assert batch == found.job.seqs


def test_fewer_chips_are_named_where_they_are_faster():
    found = plan("llama 3 70b", "v5p:16x20x28", "4M")
    assert found.fewer.network.chips == 8192
    assert found.fewer.fastest.seconds < found.fastest.seconds
    assert "8,192 of the chips would be faster" in str(found)
    assert plan("llama 3 8b", "h100:64", "1M").fewer is None


@pytest.mark.parametrize(("keys", "said"), [("ring", "ring"), ("gather", "all_gather")])
def test_maxtext_is_told_what_context_parallelism_does_with_keys(keys, said):
    options = {"fixed": {"context": 2}, "keys": keys, "top": 1}
    found = plan("llama 3 8b", "v5p:2x2x4", "1M", **options)
    assert f"context_parallel_strategy={said}" in maxtext(
        found.job, found.best.candidate
    )
