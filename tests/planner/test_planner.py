"""The planner against `training.step`: same numbers, and no better mesh anywhere."""

import math
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import drawn
import pytest

import shardmath
from shardmath.__main__ import main
from shardmath.base.units import show
from shardmath.draw import figures
from shardmath.draw.picture import Picture
from shardmath.hardware import chips
from shardmath.hardware.chips import TPU_V5E as V5E
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import network
from shardmath.hardware.networks.usual import usual
from shardmath.measured.training import RUNS
from shardmath.planner import plan
from shardmath.planner.patterns import strategy
from shardmath.planner.plan import least_chips
from shardmath.planner.search import PUBLISHED, Search, factorisations
from shardmath.training import step
from shardmath.training.job import Job, usual_formats
from shardmath.training.pipeline_schedules import Times, schedule
from shardmath.training.pipeline_schedules.named import paths_of
from shardmath.training.stages import GROWS, PERIODIC_FROM, Pipelines
from shardmath.transformer import DEEPSEEK_V3, LLAMA_3_8B, Experts, Model

PACKAGE = Path(shardmath.__file__).parent
ULYSSES = {"remat": "none", "keys": "ulysses", "seq": 2048}
SMALL = Model("small", 6, 512, 2048, 8, 4, 64, 32_000)
TIED = replace(SMALL, tied=True)
LONG = replace(SMALL, layers=8, tied=True)
EXPERTS = Experts(16, 2, 1, 1, 64)
SPARSE = Model("sparse", 5, 512, 256, 8, 8, 64, 32_000, experts=EXPERTS)
TWELVE = replace(SPARSE, experts=Experts(12, 2, 1, 1, 64))  # slots are rounded up


def numbers(trial):
    """What the search says of a mesh, and what the derivation of its step says."""
    one = trial.candidate
    return (one.seconds, one.nbytes), (trial.prediction.seconds, trial.memory.total)


@pytest.mark.parametrize(
    ("model", "machine", "tokens", "options"),
    [
        ("llama 3 8b", "v5e:4x8", "512k", {}),
        ("llama 3 8b", "h100:4x8", "1M", {"remat": "dots"}),
        ("llama 3 405b", "h100:256x8", "4M", {"keys": "gather"}),
        ("llama 3 405b", "h100:256x8", "4M", {"fixed": {"pipeline": 16}}),
        ("llama 3 70b", "v5p:4x8x8", "1M", {"fixed": {"pipeline": 4, "context": 2}}),
        ("llama 3 8b", "v5p:4x4x4*2", "64k", ULYSSES),
        (SMALL, "gb200:16", "64k", {"fixed": {"pipeline": 2}, "schedule": "zb-h1"}),
        (SMALL, "h100:2x8", "1M", {"fixed": {"pipeline": 2}, "schedule": "dualpipe"}),
        (SMALL, "h100:2x8", "1M", {"fixed": {"pipeline": 2}, "schedule": "zb-v"}),
        (TIED, "h100:4x8", "64k", {"fixed": {"pipeline": 2}}),
        (TIED, "v5p:4x4x4", "64k", {"fixed": {"pipeline": 4, "tensor": 2}}),
        (TIED, "h100:2x8", "1M", {"fixed": {"pipeline": 2}, "schedule": "zb-v"}),
        (TIED, "h100:4x8", "64k", {}),
        (LONG, "h100:4x8", "1M", {"fixed": {"pipeline": 4}, "schedule": "dualpipe"}),
        ("llama 3 8b", "gb200:72", "9M", {}),
        (LONG, "v5p:4x4x4", "1M", {"fixed": {"pipeline": 8}, "schedule": "dualpipe"}),
        (SPARSE, "h100:4x8", "1M", {"fixed": {"expert": 8, "pipeline": 2}}),
        (SPARSE, "v5p:4x4x4", "1M", {"capacity": 1.25, "fixed": {"fsdp": 8}}),
        (TWELVE, "h100:4x8", "1M", {"fixed": {"expert": 4, "pipeline": 2}}),
        (TWELVE, "h100:4x8", "1M", {"fixed": {"expert": 2, "tensor": 2, "context": 2}}),
        (SPARSE, "h100:4x8", "1M", {"fixed": {"expert": 2, "tensor": 4}}),
        (SPARSE, "h100:4x8", "1M", {"fixed": {"context": 2, "tensor": 1}}),
        (SMALL, "gb200:16", "64k", {"fixed": {"tensor": 8}}),
        (SMALL, "v5p:4x4x4", "64k", {"fixed": {"tensor": 4}}),
        ("llama 3 8b", "v5p:4x8x8", "512k", {"fixed": {"tensor": 16}}),
    ],
)
def test_numbers_are_those_of_the_derivation(model, machine, tokens, options):
    """One derivation for a pattern of axes tells every mesh of that pattern."""
    found = plan(model, machine, tokens, top=3, **options)
    assert found.ranking
    for trial in (*found.ranking, found.fastest):
        ours, theirs = numbers(trial)
        assert ours == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize(
    "sizes",
    [
        {"pipeline": 8, "zero": 4, "expert": 4, "tensor": 4},
        {"pipeline": 16, "fsdp": 8, "tensor": 4},
        {"pipeline": 2, "expert": 8, "tensor": 32},
        {"pipeline": 8, "zero": 32, "expert": 2},
        {"data": 4, "pipeline": 16, "fsdp": 4, "context": 2},
    ],
)
def test_steps_with_latents_are_told_to_three_percent(sizes):
    """Which way is best for the gradients of MLA's projections depends on sizes under
    tensor parallelism; all else is that of the derivation."""
    found = plan(DEEPSEEK_V3, "h100:64x8", "4M", 4096, hbm=1e15, fixed=sizes, top=4)
    for trial in found.ranking:
        (seconds, nbytes), (expected, held) = numbers(trial)
        assert seconds == pytest.approx(expected, rel=0.03)
        assert nbytes == pytest.approx(held, rel=1e-9)


# The axes of a mesh, outermost first: those that the search may use are said here once
# more, so that an axis which its own table forgets is missed.
AXES = {
    "fsdp": ("data", "pipeline", "fsdp", "expert", "context", "tensor"),
    "zero": ("pipeline", "zero", "expert", "context", "tensor"),
}


def every_mesh(model, net, seqs, seq):
    """All meshes by brute force: (prediction, what it is), of those that fit. Nobody
    publishes pipelines on TPUs, so the search has none there where anything fits."""
    left_out = {"pipeline"} if net.chip.vendor == "Google" else set()
    left_out |= set() if model.experts else {"expert"}
    ways = [n for n in range(1, net.chips + 1) if net.chips % n == 0]
    for shards, names in AXES.items():
        axes = [axis for axis in names if axis not in left_out]
        for sizes in product(ways, repeat=len(axes)):
            if math.prod(sizes) != net.chips:
                continue
            some = {a: n for a, n in zip(axes, sizes, strict=True) if n > 1}
            if "context" in some and some["context"] * PUBLISHED > seq:
                continue
            for many in (n for n in range(1, seqs + 1) if seqs % n == 0):
                try:
                    one = step(
                        strategy(shards, tuple(some), "ring"), model,
                        Mesh(net, some or {"data": 1}), seqs, seq,
                        attention="causal", microbatches=many, remat="none",
                        schedule="gpipe", formats=usual_formats(net.chip, "bf16"),
                    )  # fmt: skip
                    seconds = one.prediction.seconds
                except ValueError:
                    continue
                if one.memory.fits:
                    yield seconds, (shards, some, many)


@pytest.mark.parametrize(
    ("model", "machine", "seqs", "seq", "fastest"),
    [
        (SMALL, "v5e:4x4", 16, 1024, {"zero": 16}),
        (SMALL, "h100:2x8", 8, 1024, {"zero": 8, "tensor": 2}),
        (SMALL, "h100:8", 1, 1024, {"pipeline": 2, "tensor": 4}),
        (SMALL, "h100:8", 4, 16_384, {"zero": 4, "context": 2}),
        (SPARSE, "h100:8", 8, 1024, {"zero": 2, "expert": 4}),
    ],
)
def test_no_mesh_is_faster(model, machine, seqs, seq, fastest):
    """Against every mesh that `step` can derive, one by one."""
    net = network(machine)
    found = plan(model, machine, seqs * seq, seq, remat="none", keys="ring",
                 schedule="gpipe")  # fmt: skip
    least, mesh = min(every_mesh(model, net, seqs, seq), key=lambda one: one[0])
    assert mesh[1] == fastest  # so that the cases need all kinds of axes
    assert found.fastest.seconds == pytest.approx(least, rel=1e-9)


def test_kv_heads_are_copied_where_there_are_more_chips_than_heads():
    """Eight chips hold four KV heads twice, and each the queries of one."""
    found = plan(SMALL, "gb200:16", "64k", fixed={"tensor": 8}, top=1)
    assert found.best.sizes["tensor"] == 8
    assert found.best.candidate.sizes["tensor"] == SMALL.kv_heads
    assert "2 copies of KV heads" in found.best.settings
    assert "--tensor-model-parallel-size 8 " in found.flags()
    one = found.step()
    assert one.strategy.weights["K"] == ("tensor",)
    assert one.strategy.weights["N"] == ("tensor", "copies")
    # PaLM alone, which has a single one, was published with copies of KV heads: nobody
    # is told to copy several where anything else fits.
    others = plan(SMALL, "gb200:16", "64k", top=1000)
    assert max(trial.sizes["tensor"] for trial in others.ranking) == SMALL.kv_heads


def test_tensor_parallelism_takes_a_block_of_a_torus():
    """Two by two by two neighbours have three links each, the end of a row has one."""
    found = plan("llama 3 70b", "v5p:16x16x16", "4M", fixed={"tensor": 8}, top=1)
    best = found.best
    assert best.candidate.block == (2, 2, 2)
    assert "tensor in a block of 2 x 2 x 2" in best.settings
    block = best.step.mesh
    row = Mesh(block.network, block.axes)
    link = chips.TPU_V5P.link_bandwidth
    assert block.bandwidth("tensor") == pytest.approx(3 * link)
    assert row.bandwidth("tensor") == pytest.approx(link)  # half of a ring of 16
    assert block.size("zero") == row.size("zero") == 512


def test_experts_are_folded_over_tensor_parallelism():
    """Tokens go to whole experts on the chips of a tensor group."""
    fixed = {"zero": 2, "expert": 2, "tensor": 4, "pipeline": 1, "context": 1}
    found = plan(SPARSE, "h100:2x8", "1M", fixed=fixed, top=10)
    folded = next(trial for trial in found.ranking if trial.candidate.folded)
    assert folded.step.strategy.weights["E"] == ("expert", "tensor")
    assert "experts over tensor" in folded.settings
    flags = found.flags(folded)
    assert "--expert-model-parallel-size 8 --expert-tensor-parallel-size 1" in flags
    # Each chip keeps 1/8 of each expert layer's bytes, as with tensor-sharded experts.
    plain = next(trial for trial in found.ranking if not trial.candidate.folded)
    assert folded.memory.parts["weights"] == plain.memory.parts["weights"]


def test_ties_go_to_the_mesh_with_fewest_axes():
    found = plan("llama 3 405b", "h100:16384", "16M")
    assert found.best.axes == {"pipeline": 16, "zero": 128, "tensor": 8}  # Meta's
    low, _ = found.best.prediction.band
    assert low * found.best.seconds <= found.fastest.seconds < found.best.seconds
    assert "1 fewer axis" in found.reason
    assert str(show(found.fastest.seconds, "s")) in str(found)


@pytest.mark.parametrize(
    ("model", "machine", "seqs", "seq", "axes"),
    [
        # Data parallelism is no axis that a deeper pipeline could save.
        ("llama 3 405b", "h100:512", 288, 8192,
         {"pipeline": 8, "zero": 4, "context": 2, "tensor": 8}),  # as in MLPerf v5.0
        ("gpt-3", "h100:512", 2048, 2048, {"pipeline": 16, "zero": 16, "tensor": 2}),
        # No second copy of the weights within a node that could share one.
        ("llama 3 8b", "h100:8", 128, 8192, {"fsdp": 8}),
        # Experts go over as many chips as possible.
        ("gpt-oss-120b", "gb200:64", 1280, 4096, {"expert": 64}),
    ],
)  # fmt: skip
def test_few_chips_share_a_sequence(model, machine, seqs, seq, axes):
    found = plan(model, machine, seqs * seq, seq)
    assert found.best.axes == axes


def test_simple_meshes_come_first():
    """No pipeline where tensor parallelism is about as fast, one group for FSDP where
    it is nearly as fast as two, and no tensor parallelism across nodes."""
    models = {run.model.name: run.model for run in RUNS}
    small = plan(models["mpt 13b"], "h100:8", 16 * 2048, 2048)
    assert small.best.axes == {"zero": 4, "tensor": 2}
    groups = plan(LLAMA_3_8B, "h100:8x8", 128 * 8192, top=9)
    assert groups.best.axes == {"fsdp": 64}
    assert {"data": 2, "fsdp": 32} in [one.axes for one in groups.ranking]
    a100s = network("a100_80gb:192x8", 200e9)
    wide = plan(models["gpt 145.6b"], a100s, 2304 * 2048, 2048, precision="fp16")
    assert wide.best.axes["tensor"] <= 8


@pytest.mark.parametrize("machine", ["v6e:2x4", "v6e:16x16", "v5p:4x4x4"])
def test_tpus_do_without_tensor_parallelism_if_sequences_suffice(machine):
    """As all published runs of 8B on TPUs do."""
    seqs = 4 * network(machine).chips
    found = plan(LLAMA_3_8B, machine, seqs * 8192)
    assert set(found.best.axes) <= {"data", "zero", "fsdp"}


def test_a_mesh_with_model_parallelism_ties_in_half_of_the_band():
    found = plan("llama3-70b", "b200:8x8", "2M", top=100)
    low, _ = found.best.prediction.band
    assert 1 < found.best.seconds / found.fastest.seconds <= 1 + (1 / low - 1) / 2


def test_sequences_are_not_split_where_there_are_enough():
    found = plan(LLAMA_3_8B, "h100:8", "1M")
    assert "context" not in found.best.axes
    alone = plan(LLAMA_3_8B, "h100:8", 2**18, 2**18)
    assert alone.best.axes == {"context": 8}
    large = plan("llama 3 405b", "h100:1024", 2048 * 8192)
    assert large.best.axes == {"pipeline": 16, "zero": 8, "tensor": 8}


def test_sequences_are_split_as_published_runs_split_them():
    """Shorter pieces than any in the table are proposed only where nothing else fits,
    or if somebody asks for them."""
    split = [(run, [n for axis, n in run.mesh.items() if axis.startswith("context")])
             for run in RUNS]  # fmt: skip
    assert min(run.seq // math.prod(ways) for run, ways in split if ways) == PUBLISHED
    asked = LLAMA_3_8B, "h100:2048", 512 * 8192
    found = plan(*asked, top=1000)
    assert all(PUBLISHED * one.sizes["context"] <= 8192 for one in found.ranking)
    eight = plan(*asked, fixed={"context": 8}, top=1)
    assert eight.best.sizes["context"] == 8


def test_a_microbatch_has_any_number_of_sequences_that_divides():
    """Of 24 sequences it takes 12 at a time, the most up to 16 that divide."""
    found = plan(SMALL, "h100:8", 24 * 1024, 1024, fixed={"tensor": 8})
    assert found.fastest.microbatches == 2


def test_pipelines_on_tpus_come_last():
    found = plan("llama 3 8b", "v5e:4x8", "512k", top=1000)
    assert found.ranking
    assert not any("pipeline" in trial.axes for trial in found.ranking)
    tried = plan("llama 3 8b", "v5e:4x8", "512k", fixed={"pipeline": 2}, top=1)
    assert "no run with a pipeline on TPUs was in the fit" in str(tried.step())


def test_a_tenth_of_the_memory_stays_free():
    found = plan(LLAMA_3_8B, "h100:8", "1M", top=20)
    most = max(trial.memory.total for trial in found.ranking)
    assert most <= 0.9 * chips.H100.memory_bytes
    tighter = plan(LLAMA_3_8B, "h100:8", "1M", hbm=40 * 2**30, top=20)
    assert max(t.memory.total for t in tighter.ranking) <= 40 * 2**30


@pytest.mark.parametrize("machine", ["mi300x:8", "h100:512", "gb200:144", "h200:8"])
def test_every_kind_of_machine_has_a_plan(machine):
    assert plan(LLAMA_3_8B, machine, 2**20 * 9, 8192).ranking


@pytest.mark.parametrize("name", PERIODIC_FROM)
@pytest.mark.parametrize("stages", [2, 4, 8])
def test_a_schedule_repeats_itself(name, stages):
    """So that the time of many microbatches follows from that of few."""
    places = len(paths_of(name, stages)[0])
    for work in ((), (0.9, *[1] * (places - 2), 1.3)):
        times = Times(1, 2.1, 0.9, work=work)
        few, many = (
            schedule(name, stages, n, times=times)
            for n in (PERIODIC_FROM[name] * stages, 8 * stages)
        )
        longest = max(many.busy) / many.microbatches
        more = (many.microbatches - few.microbatches) * longest
        assert few.seconds + more == pytest.approx(many.seconds, rel=1e-9)
        if name not in GROWS:
            assert few.in_flight == many.in_flight


@pytest.mark.parametrize("name", PERIODIC_FROM)
@pytest.mark.parametrize("stages", [2, 4, 6])
def test_the_time_of_uneven_stages_is_that_of_the_whole_schedule(name, stages):
    """61 layers are not cut evenly, and the head is as long as none, one or four."""
    pipelines = Pipelines(DEEPSEEK_V3, name, None)
    cut, many = pipelines.few(stages), 16 * stages
    for head in (0, 1, 4):
        work = [
            sum(n for n, _ in cut.stack(at)) + head * cut.ends(at)[1]
            for at in range(stages)
        ]
        passes = [(w, 1.3 * w, w) for w in work]
        extended = pipelines.seconds(stages, many, passes)
        played = pipelines.stages(stages, many).played(passes.__getitem__)
        assert extended * cut.paths == pytest.approx(played.seconds, rel=1e-9)


def test_every_factorisation_once():
    for n, slots in product((1, 12, 64), (1, 2, 4)):
        found = list(factorisations(n, slots))
        assert len(found) == len(set(found))
        assert all(math.prod(one) == n for one in found)
        powers = {1: 0, 64: 6}
        if n in powers:
            assert len(found) == math.comb(powers[n] + slots - 1, slots - 1)


def test_experts_of_any_number_admit_what_they_divide():
    """A power of two of tokens, of which 12 experts get no whole number."""
    found, even = (plan(one, "h100:4x8", 2**15, 512) for one in (TWELVE, SPARSE))
    assert found.why_not(expert=8) == "expert 8 does not divide 12 experts"
    assert not any("dimension" in why for why in found.limits)
    # Experts over the chips of tensor parallelism divide 12 in fewer ways than 16.
    assert found.search.counts["admitted"] > 0.65 * even.search.counts["admitted"]


def test_why_not():
    found = plan("llama 3 70b", "v5p:4x4x8", "1M")
    assert found.why_not(tensor=128) == "tensor 128 does not divide 64 query heads"
    assert found.why_not(pipeline=128) == "pipeline 128: 80 layers"
    assert "needs" in plan(LLAMA_3_8B, "v5e:2x2", "64k").why_not(zero=4)
    assert found.why_not(**found.best.axes).startswith("it is")
    assert "times as long: " in found.why_not(fsdp=2, pipeline=64)
    with pytest.raises(ValueError, match="such as tensor=16"):
        found.why_not()
    assert found.why_not(expert=2) == "expert 2: Llama 3.1 70B has no experts"
    small = plan(LLAMA_3_8B, "h100:2x8", "1M")  # the last stage has the head
    assert "the longest stage has 1.92 times its share" in small.why_not(pipeline=16)


def test_meshes_with_more_chunks_than_layers_are_left_out():
    found = plan(LLAMA_3_8B, "v5e:4x8", "1M", schedule="interleaved", chunks=4)
    assert found.ranking
    assert "64 stages or chunks" in found.why_not(pipeline=16)
    assert "takes" in found.why_not(pipeline=8)


def test_where_nothing_fits_the_nearest_is_said():
    found = plan("llama 3 405b", "h100:8x8", "1M")
    assert not found.ranking
    with pytest.raises(ValueError, match="no mesh fits") as error:
        _ = found.best
    more = next(line for line in found.nearest if "chips fit" in line)
    chips = int(more.split()[0].replace(",", ""))
    assert chips == 2 * 64
    assert plan("llama 3 405b", f"h100:{chips // 8}x8", "1M").ranking
    assert str(error.value).endswith(found.nearest[-1])
    alone = plan("llama 3 8b", "h100:1x1", "1M").verdict
    assert alone.startswith("no mesh fits: one chip with")
    alone = {"fixed": {"fsdp": 16}, "remat": "none", "hbm": V5E.memory_bytes}
    tight = plan("llama 3 8b", "v5e:4x4", 2**17, 8192, **alone)
    assert "remat 'full' fits" in tight.nearest


def test_a_smaller_batch_that_fits_is_said_and_no_larger_one_fits():
    """One microbatch does not fill a pipeline, so its stages hold less."""
    options = {"hbm": 30e9, "fixed": {"pipeline": 4}, "remat": "none"}
    found = plan("llama 3 8b", "h100:8", 4 * 8192, **options)
    assert "a batch of 8,192 tokens fits, 1/4 of it" in found.nearest
    fits = [bool(plan("llama 3 8b", "h100:8", n * 8192, **options).ranking)
            for n in (1, 2, 4)]  # fmt: skip
    assert fits == [True, False, False]


def test_where_no_mesh_is_admitted_other_sizes_are_not_searched(monkeypatch):
    """Neither a smaller batch nor twice as many chips would admit one."""
    searches, meshes = [], Search.meshes
    monkeypatch.setattr(
        Search, "meshes", lambda search: searches.append(search) or meshes(search)
    )
    for count, seqs in ((37, 8), (74, 8), (37, 4)):
        found = plan("llama 3 8b", f"h100:{count}x1", seqs * 8192)
        assert found.search.counts["tried"] > found.search.counts["admitted"] == 0
        assert found.nearest == ()
    assert len(searches) == 3


@pytest.mark.parametrize(
    ("model", "fixed"),
    [(TIED, {"pipeline": 1}), (LONG, {"pipeline": 4}), (SPARSE, {"expert": 4})],
)
def test_no_mesh_holds_less_than_every_parameter_once(model, fixed):
    """Below this number of chips, no smaller batch is tried and no search is made."""
    found = plan(model, "h100:2x8", "1M", fixed=fixed, top=5)
    for trial in found.ranking:
        parts = trial.memory.parts
        held = sum(parts[name] for name in ("state", "weights", "gradients"))
        assert least_chips(found.job, held) <= 16 * (1 + 1e-12)
    whole = plan(LLAMA_3_8B, "h100:8", "1M", fixed={"fsdp": 8}).best.memory.parts
    held = sum(whole[name] for name in ("state", "weights", "gradients"))
    job = Job(LLAMA_3_8B, 1, 8192, formats={"gradients": "fp32"})
    assert least_chips(job, held) == pytest.approx(8, rel=1e-3)


@pytest.mark.parametrize(
    ("model", "machine", "tokens", "options", "said"),
    [
        ("llama 9", "v5p:4x4x4", "1M", {}, "no model is called"),
        (8, "v5p:4x4x4", "1M", {}, "model = 8"),
        (LLAMA_3_8B, "v5p", "1M", {}, "must be written like"),
        (LLAMA_3_8B, "v5p:3x5x7", "1M", {}, "multiples of 4"),
        (LLAMA_3_8B, "h100:63", "1M", {}, "as in 8x8"),
        (LLAMA_3_8B, "v5p:4x4x4", 10_000, {}, "such as 8,192"),
        (LLAMA_3_8B, "v5p:4x4x4", "many", {}, "'4M'"),
        (LLAMA_3_8B, "v5p:4x4x4", 0, {}, "a whole number from 1"),
        (LLAMA_3_8B, "h100:8", "1M", {"schedule": "zb-h1", "chunks": 3}, "1 chunk"),
        (
            LLAMA_3_8B,
            "v5p:4x4x4",
            "1M",
            {"remat": "all"},
            "none, elementwise, dots, selective, full",
        ),
        (LLAMA_3_8B, "v5p:4x4x4", "1M", {"fixed": {"Y": 2}}, "axis 'Y'"),
        (LLAMA_3_8B, "v5p:4x4x4", "1M", {"fixed": {"tensor": 3}}, "64 chips"),
        (LLAMA_3_8B, "v5p:4x4x4", "1M", {"top": 0}, "top = 0"),
        (
            LLAMA_3_8B,
            "v5p:4x4x4",
            "1M",
            {"fixed": 3},
            "fixed = 3: must map axes",
        ),
        (LLAMA_3_8B, "v5p:4x4x4", "1M", {"chunks": "x"}, "chunks = 'x'"),
        (LLAMA_3_8B, "v5p:4x4x4", "1M", {"chunks": 1.0}, "chunks = 1.0"),
        (LLAMA_3_8B, "v5p:4x4x4", 2**63, {}, "at most"),
        (LLAMA_3_8B, "v5p:4x4x4", "1M", {"kernel": "flash"}, "fused, unfused"),
        (LLAMA_3_8B, "v5p:4x4x4", "1M", {"formats": {"dx": "fp8"}}, "'dx' must be one"),
        (LLAMA_3_8B, "v5p:4x4x4", "1M", {"node_limit": 4}, "8B has no experts"),
        (LLAMA_3_8B, "v5p:4x4x4", "1M", {"capacity": 2}, "8B has no experts"),
    ],
)
def test_bad_input_is_quoted(model, machine, tokens, options, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        plan(model, machine, tokens, **options)


def test_a_dense_model_has_no_experts_to_split():
    found = plan(LLAMA_3_8B, "h100:2x8", "1M", fixed={"expert": 2})
    assert found.verdict.startswith(
        "no mesh is admitted: expert 2: Llama 3.1 8B has no"
    )
    assert plan(LLAMA_3_8B, "h100:2x8", "1M", fixed={"expert": 1}).ranking


@pytest.mark.parametrize("name", figures.find("planner").presets)
def test_the_page_draws_what_the_planner_says(name):
    """Its picture fits, and its numbers and its command are those of a plan."""
    figure = figures.find("planner")
    drawing = figure.draw(**figure.presets[name])
    drawn.check(Picture("planner", drawing.summary, (drawing.svg,)))
    if name == "too few":
        assert "chips fit" in drawing.summary
        return
    model, machine, _, tokens = shlex.split(drawing.data["command"])[4:8]
    found = plan(model, machine, tokens)
    assert drawing.data["best"] == found.best.axes
    assert drawing.data["lower"] == found.best.lower
    assert drawing.data["seconds"] == found.best.prediction.seconds
    assert sum(drawing.data["parts"].values()) == drawing.data["seconds"]
    some = found.best, found.fastest
    for trial, row in zip(some, drawing.readout[1:3], strict=True):
        assert {show(trial.lower, "s"), show(trial.seconds, "s")} <= {*row}
    assert drawing.data["fastest"] == found.fastest.axes


def test_every_mesh_that_fits_has_its_dot():
    """Also those that a search leaves out early, because they are far slower."""
    figure = figures.find("planner")
    drawing = figure.draw(model="Llama 3.1 8B", count=8, tokens=2**20)
    near, every = (
        plan("llama 3 8b", "h100:8", 2**20, top=1000, every=every)
        for every in (False, True)
    )
    assert drawing.data["fitting"] == len(every.ranking) > len(near.ranking)
    assert len(every.ranking) == every.search.counts["fitting"]
    assert [t.axes for t in every.ranking[:5]] == [t.axes for t in near.ranking[:5]]
    dots = {
        spot
        for path in ElementTree.fromstring(drawing.svg).iterfind(".//{*}path")
        for spot in re.findall(r"M[\d.]+ [\d.]+(?=h0)", path.get("d"))
    }
    assert len(dots) > 0.8 * len(every.ranking)  # some lie on one another


def test_a_dot_opens_its_own_mesh():
    """The place that a finger meets belongs to the mesh with that number."""
    figure = figures.find("planner")
    small = {"model": "Llama 3.1 8B", "count": 8, "tokens": 2**20}
    seen = set()
    for number in (1, 2, 3, 9):
        drawing = figure.draw(mesh=number, **small)
        root = ElementTree.fromstring(drawing.svg)
        (field,) = root.iterfind(".//*[@data-drag='mesh']")
        (ring,) = root.iterfind(".//*[@data-key='shown']")
        place = field.get("data-drag-at").split()[number - 1]
        assert place == f"{ring.get('cx')},{ring.get('cy')}"
        seen.add((drawing.data["seconds"], tuple(drawing.data["mesh"].items())))
    assert len(seen) == 4
    few = figure.draw(mesh=24, model="Llama 3.1 8B", count=8, tokens=2**17, seq=2**17)
    assert few.used["mesh"] == few.data["fitting"] < 24


def test_the_best_of_untried_meshes_is_found():
    """Not only the first that fits: more stages than needed wait for each other."""
    sizes = {"tensor": 1, "fsdp": 1, "zero": 1, "context": 1}
    deep, best = (
        plan(LLAMA_3_8B, "v5p:4x4x4", "4M", fixed=sizes | more).best
        for more in ({"pipeline": 32}, {})
    )
    assert best.sizes["pipeline"] > 1
    assert best.seconds < deep.seconds


def test_every_chip_of_the_page_has_a_machine_of_every_size():
    figure = figures.find("planner")
    for name in figure.control("chip").options:
        for count in figure.control("count").stops:
            machine = network(usual(chips.find(name), count))
            assert (machine.chips, machine.chip.name) == (count, name)


@pytest.mark.parametrize(
    ("chip", "count", "said"),
    [
        (chips.H100, 12, "chips = 12: must be a power of two, such as 8 or 16"),
        (chips.H100, 100, "such as 64 or 128"),
        (chips.TPU_V5P, 3, "such as 2 or 4"),
        (chips.TPU_V5P, 0, "chips = 0: must be a whole number from 1"),
    ],
)
def test_a_machine_is_of_a_power_of_two(chip, count, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        usual(chip, count)


def test_a_shape_of_ones_own_counts_where_the_model_says_so():
    figure = figures.find("planner")
    own = {"model": "your own shape", "L": 8, "D": 1024, "F": 4096, "N": 8, "K": 4}
    own |= {"chip": "TPU v5p", "count": 512, "tokens": 2**22}
    one, other = (figure.draw(**own | {"L": n}).data["lower"] for n in (8, 16))
    assert not figure.draw(**own).idle
    assert figure.draw(model="Llama 3.1 8B", count=8).idle.keys() == {*"LDFNK"}
    assert other > 1.5 * one
    large = figure.draw(**own | {"chip": "TPU v5e", "count": 8, "L": 160, "D": 32768})
    assert large.data["best"] is None


def test_the_command_line_knows_overlap_node_limit_and_memory(capsys):
    def said(*more: str) -> str:
        words = ["plan", "qwen3-30b", "h100:64", "--tokens", "1M", "--fix", "expert=64"]
        assert main([*words, *more]) == 0
        return capsys.readouterr().out

    alone = said()
    for more in (["--overlap", "experts"], ["--hbm", "50"], ["--node-limit", "1"]):
        assert said(*more) != alone, more


def test_the_command_line_takes_the_bandwidth_between_nodes(capsys):
    """No source has it for A100s, and it changes the time of what crosses nodes."""
    words = ["plan", "llama3-8b", "a100-80gb:4x8", "--tokens", "1M", "--fix", "fsdp=32"]
    assert main(words) == 2
    assert "egress=..." in capsys.readouterr().err
    likely = []
    for egress in ("100", "200"):
        assert main([*words, "--egress", egress]) == 0
        likely += re.findall(r"likely ([\d.]+) s", capsys.readouterr().out)[:1]
    assert float(likely[0]) > float(likely[1])
    for machine in ("v5p:4x4x4", "h100:8"):
        assert main(["plan", "llama3-8b", machine, *words[3:], "--egress", "9"]) == 2
        assert "only several nodes of GPUs" in capsys.readouterr().err


def test_the_command_line(capsys):
    assert main(["plan", "llama3-8b", "v5e:4x4", "--tokens", "128k"]) == 0
    said = capsys.readouterr().out
    found = plan("llama3-8b", "v5e:4x4", "128k")
    assert str(found) in said
    assert str(found.table) in said
    assert main(["plan", "llama3-8x", "v5e:4x4", "--tokens", "128k"]) == 2
    assert "nearest" in capsys.readouterr().err
    assert main(["plan", "llama3-405b", "v5e:4x4", "--tokens", "128k"]) == 1
    words = ["plan", "llama3-8b", "v5e:4x4", "--tokens", "1M"]
    assert main([*words, "--fix", "x"]) == main([*words, "--fix", "tensor=²"]) == 2
    assert "tensor=²: must be an axis and its size" in capsys.readouterr().err
    assert main([*words, "--schedule", "interleaved", "--chunks", "0"]) == 2
    assert "chunks = 0" in capsys.readouterr().err
    assert main([*words, "--precision", "int3"]) == 2
    assert "precision = 'int3': must be one of" in capsys.readouterr().err
    assert main([*words, "--fix", "zero=2", "--fix", "fsdp=8"]) == 2
    said = capsys.readouterr().err
    assert "zero 2 x fsdp 8: must not have both zero and fsdp" in said
    assert main([*words, "--fix", "tensor=8", "--fix", "tensor=4"]) == 2
    said = capsys.readouterr().err
    assert said == "--fix tensor=8 --fix tensor=4: must be given once\n"


def test_a_reader_that_closes_the_pipe_gets_no_complaint():
    command = [sys.executable, "-m", "shardmath", "plan", "llama3-8b", "v5e:2x2",
               "--tokens", "128k"]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    run.stdout.close()
    assert run.communicate(timeout=60)[1] == b""
    assert run.returncode == 0


def test_a_plan_says_how_its_step_differs_from_those_of_the_fit():
    found = plan("llama 3 8b", "h100:64", "8M", 1_048_576, top=1)
    (said,) = found.best.prediction.warnings
    assert "longer than 262,144" in said
    assert said in str(found).splitlines()[4]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sequences": -1}, "sequences = -1: must be a whole number from 1"),
        ({"sequences": "2"}, "sequences = '2': must be a whole number from 1"),
        ({"every": "no"}, "every = 'no': must be True or False"),
        ({"overlap": 3}, "overlap = 3: must be a list or tuple"),
        ({"overlap": "tensor"}, "overlap = 'tensor': must be a list or tuple"),
        ({"known": 3}, "known = 3: must be a list or tuple"),
        ({"chunks": 10**7}, "chunks = 10000000: must be at most the 6 layers of small"),
    ],
)
def test_an_option_that_means_nothing_is_quoted(options, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        plan(SMALL, "h100:4", "64k", **options)
