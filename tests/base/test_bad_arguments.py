"""Whatever is given for an argument: an answer, or an error that a reader can use.

Every public function and record of these modules is called with arguments that are all
right but for one, which is wrong in every way that we could think of.
"""

import inspect
import math
import time
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from shardmath import collectives, inference, planner, serving, sharding, transformer
from shardmath.base import claims, estimate, facts, records, tables, units
from shardmath.base.estimate import Leg
from shardmath.base.guess import guess
from shardmath.collectives import Collective, simulator
from shardmath.draw import figures, pictures, theme
from shardmath.draw.objects import waves as wave_pictures
from shardmath.exercises import answers, page_function
from shardmath.exercises.check import judge_number
from shardmath.exercises.kinds import arithmetic
from shardmath.exercises.kinds.scratchpad import Scratchpad
from shardmath.exercises.report import report
from shardmath.hardware import (
    blocks,
    chips,
    networks,
    number_formats,
    roofline,
    systolic,
    waves,
)
from shardmath.hardware.chips import H100, TPU_V5E
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks.usual import usual
from shardmath.hardware.number_formats import E4M3
from shardmath.hardware.waves import dispatch
from shardmath.measured import RUNS, conventions
from shardmath.measured import served as served_rows
from shardmath.referee import hlo, ledger
from shardmath.referee.compilers import targets
from shardmath.referee.programs import running
from shardmath.training import causal_ring, pipeline_schedules
from shardmath.training.pipeline_schedules import Times, schedule
from shardmath.transformer import Model, lines

LONG = "x" * 100_000
MESSAGE = 500  # characters of an error message, at most
SECONDS = 1.0  # of a call, at most; only the first look for a question needs a tenth


class Sulky:
    """An object that fails when it is printed."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


NUMBERS = (math.nan, math.inf, -math.inf, -1, 0, 2.5, 1e308, 10**400, 2**63, 5e-324)
NEVER_A_NUMBER = ("8", LONG, math.nan, [], {}, object(), b"8", Sulky(), complex(1, 1))
ANYTHING = (None, True, LONG, [1], [LONG], {LONG: 1}, (), range(3), *NEVER_A_NUMBER)


@dataclass(frozen=True)
class Called:
    """A callable with arguments that are right, and what is special about them.

    Args:
        of: the function or record.
        right: arguments by name.
        numbers: arguments that must be numbers, so that text and NaN are refused.
        flags: arguments that must be True or False.
        also: errors that its docstring names, beside ValueError.
    """

    of: Any
    right: dict[str, Any]
    numbers: str = ""
    flags: str = ""
    also: tuple[type[Exception], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.of.__module__.removeprefix('shardmath.')}.{self.of.__name__}"


def holds(claim: object, condition: object) -> None:
    """`claims.holds`, whose conditions have no names."""
    claims.holds(claim, condition)


SIZES = {"B": 256, "D": 512, "F": 1024}
SHAPE = {"stages": 4, "microbatches": 8}
PIPELINE = {"name": "1f1b", **SHAPE, "chunks": 1}
X = [[1.0, 2.0], [3.0, 4.0]]
SCHEDULED = """HloModule f, is_scheduled=true
ENTRY %f (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  ROOT %b = f32[8]{0} negate(%a)
}"""

TINY = Model("tiny", 2, 64, 128, 4, 4, 16, 256)
LINE_OF_4 = Mesh(networks.Network((networks.Ring(4, 1e9, 0, wrap=False),)), {"X": 4})
MESH = Mesh(networks.network("v5e:4x4"), {"X": 4, "Y": 4})
ON = {"nbytes": 1e6, "mesh": MESH, "axes": "X", "one_way": False}
LINE = "A[B, D_X] · W[D, F] -> C[B, F]"
MATMUL = {"text": LINE, "mesh": {"X": 4, "Y": 2}, "dtype": "bf16", "busy": "Y",
          "B": 64, "D": 64, "F": 64}  # fmt: skip
CONTRACTED = sharding.contract(**MATMUL)
PLAYED = simulator.simulate("all_reduce", 1e6, MESH, "X")
UP = lines.matmul("x[B, D] · w[D, F] -> y[B, F]")
SERVE = {"model": TINY, "machine": "h100:1", "rate": 0.5, "input": 20, "output": 3}
REQUESTS = serving.Demand.poisson(2.0, 3, 9, 5)


def served(**arguments: object) -> None:
    """`serving.serve`, whose result is simulated only where it is used."""
    serving.serve(**arguments)


def planned(**arguments: object) -> None:
    """`planner.plan`, which takes long to print."""
    planner.plan(**arguments)


def slow(batch: inference.Batch) -> float:
    """Seconds of any step of a server."""
    return 0.01


ANSWER = serving.serve(**SERVE, tensor=1).best
CALLS = (
    Called(units.show, {"value": 1.0, "unit": "s", "digits": 3}, "digits"),
    Called(units.pluralize, {"number": "1", "unit": "tokens"}),
    Called(units.takes_prefix, {"unit": "s"}),
    Called(units.short_repr, {"value": 8}),
    Called(units.shortened, {"words": "a chip", "most": 80}),
    Called(units.text, {"name": "unit", "value": "s"}),
    Called(units.number, {"name": "B", "value": 8}),
    Called(units.positive, {"B": 8}, "B"),
    Called(units.positive_int, {"B": 8}, "B"),
    Called(units.non_negative_int, {"B": 8}, "B"),
    Called(units.flags, {"gated": True}, flags="gated"),
    Called(units.bytes_per_value, {"precision": "bf16"}),
    Called(facts.term, {"name": "flops.int8"}, also=(AttributeError,)),
    Called(TPU_V5E.fact("link_bandwidth").said, {"source": "book"}),
    Called(TPU_V5E.fact, {"name": "hbm_bytes"}),
    Called(records.plain, {"name": "Llama-3.1 8B"}),
    Called(chips.find, {"name": "v5p"}),
    Called(chips.require_chip, {"chip": H100}),
    Called(
        chips.measured,
        {"name": "mine", "flops": {"fp32": 2e11}, "hbm_bandwidth": 2e10},
        "hbm_bandwidth",
    ),
    Called(hlo.seconds, {"op": hlo.ScheduledOp("a", cycles=3), "chip": TPU_V5E}),
    Called(hlo.play, {"ops": [hlo.ScheduledOp("a", cycles=3)], "seconds": bool}),
    Called(hlo.schedule, {"text": SCHEDULED, "mesh": {"X": 1}}),
    Called(TPU_V5E.intensity, {"precision": "bf16"}),
    Called(TPU_V5E.flops.__getitem__, {"precision": "bf16"}),
    Called(Leg, {"resource": "HBM", "amount": 8, "rate": 2, "slack": 0},
           "amount rate slack"),
    Called(estimate.Estimate, {"title": "a step", "legs": (Leg("HBM", 8, 2),)}),
    Called(estimate.Roof, {"name": "mine", "peak": 9.0, "bandwidth": 3.0},
           "peak bandwidth"),
    Called(estimate.Roof("mine", 9.0, 3.0).at, {"intensity": 3.0}, "intensity"),
    Called(roofline.roof, {"chip": TPU_V5E, "precision": "bf16"}),
    Called(roofline.vector_roof, {"chip": TPU_V5E}),
    Called(roofline.read, {"nbytes": 1e9, "chip": TPU_V5E, "bandwidth": 1e9},
           "nbytes bandwidth"),
    Called(roofline.matmul,
           {**SIZES, "chip": TPU_V5E, "precision": "bf16", "weights": "int8",
            "activations": "bf16"}, "B D F"),
    Called(roofline.critical_batch,
           {"chip": TPU_V5E, "D": 512, "F": 1024, "precision": "bf16",
            "weights": "int8", "activations": "bf16", "bandwidth": 1e9},
           "D F bandwidth"),
    Called(roofline.elementwise,
           {"n": 1e6, "chip": TPU_V5E, "flops": 1, "reads": 1, "writes": 1,
            "precision": "bf16", "rate": 1e9}, "n flops reads writes rate"),
    Called(roofline.stationary_intensity,
           {"side": 128, "activations": "bf16", "sums": "fp32"}, "side"),
    Called(roofline.tile_traffic, {**SIZES, "tile": (128, 128)}, "B D F tile"),
    Called(roofline.tiled_matmul,
           {**SIZES, "chip": TPU_V5E, "tile": (128, 128), "inner": (8, 8),
            "precision": "bf16"}, "B D F tile inner"),
    Called(roofline.split_matmul,
           {**SIZES, "chip": TPU_V5E, "bandwidth": 1e9, "precision": "bf16"},
           "B D F bandwidth"),
    Called(roofline.split_threshold,
           {"chip": TPU_V5E, "B": 256, "F": 1024, "bandwidth": 1e9,
            "precision": "bf16", "overlap": True}, "B F bandwidth", "overlap"),
    Called(waves.Waves, {"tiles": 133, "sms": 132}, "tiles sms"),
    Called(waves.tiles_of, {"B": 896, "F": 2432, "tile": (128, 128)}, "B F tile"),
    Called(waves.TiledMatmul,
           {**SIZES, "chip": H100, "tile": (128, 128), "precision": "bf16"},
           "B D F tile"),
    Called(waves.dispatch, {"seconds": [1.0, 2.0], "sms": 2}, "sms"),
    Called(wave_pictures.timeline,
           {"schedule": dispatch([1.0] * 5, 2), "title": "Tiles"}),
    Called(pictures.sawtooth, {"sms": 132, "waves": 2}, "sms waves"),
    Called(blocks.BlockedArray,
           {"name": "X", "shape": (8, 8), "block": (2, 2), "index": lambda i, j: (i, j),
            "itemsize": 2.0, "written": False}, "shape block itemsize"),
    Called(blocks.matmul,
           {**SIZES, "tile": (128, 128), "depth": 128, "precision": "bf16"},
           "B D F tile depth"),
    Called(blocks.matmul(256, 256, 256, (128, 128), 128).require_vmem,
           {"limit": 2**24}, "limit"),
    Called(blocks.matmul(256, 256, 256, (128, 128), 128).pipelined,
           {"chip": TPU_V5E, "precision": "bf16"}),
    Called(blocks.attention,
           {"N": 2, "S": 256, "T": 512, "H": 128, "queries": 128, "keys": 128,
            "precision": "bf16"}, "N S T H queries keys"),
    Called(blocks.row_groups, {"counts": [130, 0, 5], "rows": 128}, "rows"),
    Called(blocks.grouped_matmul,
           {"counts": [130, 5], "D": 256, "F": 256, "rows": 128, "columns": 128,
            "depth": 128, "precision": "bf16"}, "D F rows columns depth"),
    Called(systolic.cycles, {"B": 8, "tiles": 3, "size": 4, "prefetch": True},
           "B tiles size", "prefetch"),
    Called(systolic.utilization, {"B": 8, "tiles": 3, "size": 4, "prefetch": True},
           "B tiles size", "prefetch"),
    Called(systolic.padded, {"length": 100, "size": 128}, "length size"),
    Called(systolic.useful, {"D": 64, "F": 4096, "size": 128}, "D F size"),
    Called(systolic.multiply, {"X": X, "W": X, "size": 2, "prefetch": True},
           "X W size", "prefetch"),
    Called(systolic.steps, {"X": X, "W": X, "size": 2, "prefetch": True},
           "X W size", "prefetch"),
    Called(tables.Table, {"header": ("a",), "rows": (("1",),), "right": ()}),
    Called(tables.table, {"header": ["chip"], "rows": [["v5e"]]}),
    Called(tables.ratio, {"first": "a", "second": "b", "form": ".2f"}),
    Called(tables.deviation, {"first": "a", "second": "b", "form": ".2f"}),
    Called(tables.compare,
           {"things": {"v5e": TPU_V5E}, "columns": ["hbm_bytes"], "of": "chip"},
           also=(AttributeError,)),
    Called(holds, {"claim": "1 is 1", "condition": True}),
    Called(causal_ring.CausalRing, {"order": "zig-zag", "chips": 4, "seq": 16},
           "chips seq"),
    Called(causal_ring.CausalRing("zig-zag", 4, 16).tokens, {"chip": 1}, "chip"),
    Called(causal_ring.CausalRing("zig-zag", 4, 16).holder, {"token": 1}, "token"),
    Called(causal_ring.CausalRing("zig-zag", 4, 16).step, {"step": 1}, "step"),
    Called(causal_ring.CausalRing("zig-zag", 4, 16).pairs,
           {"queries": 1, "keys": 2}, "queries keys"),
    Called(causal_ring.seen, {"queries": range(4), "keys": range(4)},
           "queries keys"),
    Called(pipeline_schedules.schedule, {**PIPELINE, "times": Times()},
           "stages microbatches"),
    Called(pipeline_schedules.idle, {**PIPELINE, "times": Times(), "together": True},
           "stages microbatches", "together"),
    Called(pipeline_schedules.peak, PIPELINE, "stages microbatches"),
    Called(pipeline_schedules.check, {"schedule": schedule("1f1b", 2, 2)}),
    Called(pipeline_schedules.progress,
           {"schedule": schedule("1f1b", 2, 2), "time": 2.0, "together": True},
           "time", "together"),
    Called(pipeline_schedules.windows,
           {"schedule": schedule("1f1b", 2, 2), "together": True},
           flags="together"),
    Called(pipeline_schedules.Times,
           {"F": 1, "I": 1, "W": 1, "both": 2, "send": 0, "work": ()},
           "F I W both send work"),
    Called(schedule("1f1b", 2, 2).path, {"microbatch": 1}, "microbatch"),
    Called(pictures.timeline,
           {"schedule": schedule("1f1b", 2, 2), "until": 2.0, "seconds": 9.0},
           "until seconds"),
    Called(serving.Request,
           {"arrival": 0.0, "input": 9, "output": 5, "prefix": "a", "shared": 4},
           "arrival input output shared"),
    Called(serving.Demand,
           {"requests": (serving.Request(0.0, 9, 5),), "clients": 2, "think": 0.5},
           "think"),
    Called(serving.Demand.poisson,
           {"rate": 2.0, "count": 3, "input": 9, "output": 5, "seed": 0},
           "rate count seed"),
    Called(serving.Demand.closed_loop,
           {"clients": 2, "count": 3, "input": 9, "output": 5, "think": 0.5,
            "seed": 0}, "clients count think seed"),
    Called(serving.Demand.trace, {"rows": [(0.0, 9, 5)]}),
    Called(serving.Fixed, {"tokens": 9}, "tokens"),
    Called(serving.Uniform, {"tokens": 9, "low": 0.5}, "tokens low"),
    Called(serving.Lognormal, {"mean": 9.0, "sigma": 0.5, "most": 99},
           "mean sigma most"),
    Called(serving.Sampled, {"tokens": (4, 5)}),
    Called(serving.Speculation, {"draft": 4, "acceptance": 0.5, "cost": 0.1},
           "draft acceptance cost"),
    Called(serving.Engine,
           {"slots": 4, "pages": 9, "page": 16, "budget": 99, "chunked": True,
            "reserve": False, "prefix_cache": False, "delay": 0.1},
           "slots page budget delay", "chunked reserve prefix_cache"),
    Called(serving.LatencyTarget, {"ttft": 1.0, "tpot": 0.1, "share": 0.9},
           "ttft tpot share"),
    Called(serving.Pools, {"prefill": 1, "decode": 2, "transfer": (0.0, 0.0)},
           "prefill decode"),
    Called(serving.percentile, {"values": (1.0, 2.0), "percent": 50}, "percent"),
    Called(served,
           {**SERVE, "model": transformer.LLAMA_3_8B, "tensor": 1, "data": 1,
            "expert": 1, "pipeline": 1, "seed": 0, "weights": "bf16", "cache": "bf16",
            "activations": "bf16", "reserve": 0.1,
            "target": serving.LatencyTarget(1e-6, 1e-6)},  # is missed at once
           "rate input output"),
    Called(ANSWER.bound, {"metric": "ttft"}),
    Called(ANSWER.predicted, {"metric": "ttft"}),
    Called(ANSWER.band, {"metric": "ttft"}),
    Called(ANSWER.low, {"metric": "ttft"}),
    Called(ANSWER.high, {"metric": "ttft"}),
    Called(ANSWER.dollars, {"price": 2.0, "rate": 0.1}, "price rate"),
    Called(ANSWER.result.meets, {"target": serving.LatencyTarget(1, 1)}),
    Called(ANSWER.result.dollars, {"per_hour": 2.0}, "per_hour"),
    Called(ANSWER.result.joules, {"watts": 700.0}, "watts"),
    Called(ANSWER.result.steady, {"low": 0.2, "high": 0.8}, "low high"),
    Called(serving.simulate,
           {"seconds": slow, "engine": serving.Engine(4), "demand": REQUESTS,
            "skip": True, "pages": True}, flags="skip pages"),
    Called(serving.simulate_pools,
           {"prefill": (slow, serving.Engine(4)), "decode": (slow, serving.Engine(4)),
            "pools": serving.Pools(1, 1), "demand": REQUESTS, "skip": True},
           flags="skip"),
    Called(inference.Server,
           {"model": TINY, "on": "h100:1", "layout": inference.Layout(),
            "formats": inference.Formats(), "at": inference.calibration(),
            "reserve": 0.1}, "reserve"),
    Called(inference.Server(TINY, "h100:1").slots, {"length": 9.5, "page": 16},
           "length page"),
    Called(inference.capacity,
           {"model": TINY, "chip": H100, "layout": inference.Layout(),
            "formats": inference.Formats(), "one": None, "reserve": 0.1}, "reserve"),
    Called(inference.amounts,
           {"model": TINY, "chip": H100, "layout": inference.Layout(),
            "formats": inference.Formats()}),
    Called(inference.smallest_layout,
           {"model": TINY, "chip": H100, "formats": inference.Formats(),
            "reserve": 0.1}, "reserve"),
    Called(inference.Requests,
           {"prompt": 9.5, "output": 5.0, "alike": True, "waves": 3.0},
           "prompt output waves", "alike"),
    Called(inference.Scheduler,
           {"budget": 99, "mixed": True, "sequences": 4, "drafts": 1},
           "budget sequences drafts", "mixed"),
    Called(inference.closed_loop,
           {"server": inference.Server(TINY, "h100:1"), "concurrency": 4,
            "requests": inference.Requests(99, 9), "scheduler": inference.Scheduler(),
            "room": 8}, "concurrency room"),
    Called(inference.open_loop,
           {"server": inference.Server(TINY, "h100:1"), "rate": 0.5,
            "requests": inference.Requests(99, 9),
            "scheduler": inference.Scheduler()}, "rate"),
    Called(planned,
           {"model": TINY, "machine": "v5e:1x2", "tokens": 2048, "seq": 1024,
            "attention": "causal", "precision": "bf16", "schedule": "1f1b",
            "remat": "full", "kernel": "fused", "loss": "once", "formats": {},
            "fixed": {}, "known": (), "top": 1}, "seq top"),
    Called(sharding.contract, MATMUL, "B D F"),
    Called(sharding.array, {"text": "A[B_X, D]", "mesh": {"X": 4}, "dtype": "bf16",
                            "B": 64, "D": 64}, "B D"),
    Called(sharding.reshard,
           {"text": "A[B_X, D] -> A[B, D_X]", "mesh": MESH, "dtype": "bf16",
            "busy": ("Y",), "B": 64, "D": 64}, "B D"),
    Called(sharding.default_plan,
           {name: getattr(CONTRACTED, name) for name in "abc"}),
    Called(CONTRACTED.crossings,
           {"dim": "B", "plans": CONTRACTED.candidates, "low": 1, "high": 1e9},
           "low high"),
    Called(sharding.contract(**(MATMUL | {"mesh": MESH})).balances,
           {"dim": "B", "one": "network", "other": "math", "plan": None}),
    Called(CONTRACTED.plan.resized, {"dim": "B", "size": 32}, "size"),
    Called(CONTRACTED.a.ways, {"axes": ("X",)}),
    Called(CONTRACTED.a.index, {"place": {"X": 1, "Y": 0}}),
    Called(CONTRACTED.a.block, {"place": {"X": 1, "Y": 0}}),
    Called(Collective,
           {"op": "permute", "axes": ("X",), "nbytes": 1e6, "group": 4, "times": 1,
            "when": "forward", "pairs": ((0, 1),)}, "nbytes group times"),
    Called(collectives.price,
           {"collective": Collective("all_gather", ("X",), 1e6, 4), "mesh": MESH,
            "one_way": False}, flags="one_way"),
    Called(collectives.all_gather, ON, "nbytes", "one_way"),
    Called(collectives.ragged_all_to_all,
           {"sent": [[1.0] * 4] * 4, "mesh": MESH, "axes": "X", "one_way": False}),
    Called(collectives.nccl_all_reduce,
           {"nbytes": 1e3, "mesh": Mesh(networks.network("h100:8"), {"X": 8}),
            "axes": "X", "algorithm": "ring", "protocol": "LL"}, "nbytes"),
    Called(simulator.simulate,
           {"op": "all_to_all", **ON, "data": [[1, 2, 3, 4]] * 4, "at_most": 1,
            "pairs": ()}, "nbytes at_most", "one_way"),
    Called(simulator.play,
           {"priced": PLAYED.priced, "group": PLAYED.group,
            "moves": [step.moves for step in PLAYED.steps], "block_bytes": 1e5,
            "start": PLAYED.start, "wanted": PLAYED.state(len(PLAYED.steps))},
           "block_bytes", also=(ArithmeticError,)),
    Called(PLAYED.state, {"step": 1}, "step"),
    Called(PLAYED.elapsed, {"step": 1}, "step"),
    Called(Mesh, {"network": MESH.network, "axes": {"X": 4, "Y": 4},
                  "blocks": {"X": (2, 2), "Y": (2, 2)}}),
    Called(MESH.size, {"axes": "X"}),
    Called(networks.network, {"name": "v5e:4x4"}),
    Called(networks.Torus,
           {"chip": TPU_V5E, "shape": (4, 4), "bandwidth": 1e9, "latency": 1e-6,
            "wrap": (True, True)}, "latency"),
    Called(networks.NVLinkDomain,
           {"chip": H100, "gpus": 4, "bandwidth": 1e9, "latency": 1e-6,
            "reduces": False}, "gpus bandwidth latency", "reduces"),
    Called(networks.Ring,
           {"size": 4, "bandwidth": 1e9, "latency": 1e-6, "wrap": True,
            "level": "ICI"}, "size bandwidth latency", "wrap"),
    Called(networks.Switch,
           {"size": 4, "bandwidth": 1e9, "latency": 1e-6, "reduces": True,
            "level": "leaf", "uplinks": False}, "size bandwidth latency",
           "reduces uplinks"),
    Called(networks.Network, {"dims": MESH.network.dims, "name": "n", "chip": H100}),
    Called(number_formats.NumberFormat,
           {"name": "mine", "exponent": 4, "mantissa": 3, "overflow": "NaN"},
           "exponent mantissa"),
    Called(number_formats.integers, {"bits": 8}, "bits"),
    Called(number_formats.find, {"name": "fp32"}),
    Called(E4M3.round, {"x": 3.3, "saturate": True}, "x", "saturate"),
    Called(E4M3.spacing, {"x": 3.3}, "x"),
    Called(E4M3.value, {"code": 3}, "code"),
    Called(lines.matmul, {"line": "x[B, D] · w[D, F] -> y[B, F]"}),
    Called(UP.flops, {"sizes": {"B": 2, "D": 8, "F": 8}}),
    Called(UP.weight.count, {"sizes": {"D": 8, "F": 8}}),
    Called(Model,
           {"name": "tiny", "layers": 2, "d_model": 64, "d_ff": 128, "heads": 4,
            "kv_heads": 4, "head": 16, "vocab": 256, "positions": 0},
           "layers d_model d_ff heads kv_heads head vocab positions"),
    Called(TINY.active, {"convention": "all"}),
    Called(transformer.flops, {"model": TINY, "seq": 64, "attention": "causal"},
           "seq"),
)  # fmt: skip


def finished(of, arguments: dict[str, Any]) -> Any:
    """The result of a call, with all that only happens when it is used."""
    found = of(**arguments)
    if inspect.isgenerator(found):
        found = [next(found, None), next(found, None)]
    for part in ("lower", "seconds", "waves"):
        getattr(found, part, None)
    str(found)
    return found


def outcome(call: Called, name: str, wrong: Any) -> Exception | None:
    """The error of `call` with `wrong` in the place of `name`, held to the rules."""
    start = time.process_time()
    try:
        finished(call.of, call.right | {name: wrong})
        error = None
    except (ValueError, *call.also) as raised:
        error = raised
        assert str(error).strip(), "the error says nothing"
        assert len(str(error)) <= MESSAGE, f"{len(str(error))} characters"
    seconds = time.process_time() - start
    assert seconds < SECONDS, f"{seconds:.1f} s"
    return error


each_call = pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)


@each_call
def test_what_is_right_is_accepted(call):
    finished(call.of, dict(call.right))


@each_call
def test_a_wrong_argument_gets_an_answer_or_a_clear_error(call):
    wrongs = []
    for name in call.right:
        for wrong in (*ANYTHING, *NUMBERS):
            try:
                outcome(call, name, wrong)
            except Exception as error:
                kind = type(error).__name__
                given = units.short_repr(wrong)
                said = f"{name}={given}: {kind}: {str(error)[:300]}"
                wrongs.append(said)
    assert not wrongs, "\n".join(wrongs)


@pytest.mark.parametrize(
    ("call", "name"),
    [(call, name) for call in CALLS for name in call.numbers.split()],
    ids=lambda one: one if isinstance(one, str) else one.name,
)
def test_what_is_no_number_is_refused_where_one_is_needed(call, name):
    for wrong in NEVER_A_NUMBER:
        if wrong == [] and name == "work":
            continue
        given = units.short_repr(wrong)
        assert outcome(call, name, wrong), f"{call.name}({name}={given}) is accepted"


@pytest.mark.parametrize(
    ("call", "name"),
    [(call, name) for call in CALLS for name in call.flags.split()],
    ids=lambda one: one if isinstance(one, str) else one.name,
)
def test_a_flag_is_true_or_false(call, name):
    for wrong in ("no", "False", "", 0, 1, None, math.nan, [], LONG):
        said = str(outcome(call, name, wrong))
        assert said.endswith("must be True or False"), f"{call.name}: {said}"


@pytest.mark.parametrize(
    "module",
    [claims, chips, estimate, pipeline_schedules, roofline, systolic, tables, units,
     waves, causal_ring],
    ids=lambda module: module.__name__,
)  # fmt: skip
def test_every_public_function_is_called(module: ModuleType):
    """A new one needs a line in `CALLS`."""
    called = {call.of for call in CALLS} | {claims.holds}
    public = {
        found
        for name, found in vars(module).items()
        if inspect.isfunction(found) and not name.startswith("_")
        and found.__module__.startswith(module.__name__)
    }  # fmt: skip
    assert public <= called


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: roofline.read(1e9, units, 1e12), "chip = .*: must be a Chip"),
        (lambda: roofline.critical_batch("v5e", bandwidth=1e9), "must be a Chip"),
        (lambda: roofline.elementwise(9, None, rate=1e9), "chip = None: must be"),
        (lambda: roofline.split_threshold(None, bandwidth=1e9), "chip = None: must"),
        (
            lambda: roofline.tile_traffic(1e308, 1e308, 1e308, (1, 1)),
            "more than a float can hold",
        ),
        (lambda: schedule("zb-v", 65_536, 1), "65536 stages.* must be at most 600"),
        (lambda: schedule("1f1b", 65_536, 65_536), "must be at most 600,000"),
        (
            lambda: systolic.multiply([[1] * 127] * 127, [[1] * 127] * 127, 127),
            "8,161,274 cells times cycles",
        ),
        (lambda: tables.table(None, []), "header = None: must be a list of cells"),
        (lambda: tables.table(["a"], 3), "rows = 3: must be a list of rows"),
        (lambda: tables.table(["a"], [3]), r"rows\[0\] = 3: must be a list of cells"),
        (
            lambda: pictures.timeline(schedule("1f1b", 2, 2), until="8"),
            "until = '8': must be a number",
        ),
        (
            lambda: sharding.contract(**(MATMUL | {"busy": [["X"]]})),
            r"busy = \['X'\]: must be one of X, Y",
        ),
        (
            lambda: sharding.contract(**(MATMUL | {"B": 10**160})),
            r"sizes = {'B': 10*…: must have a product of at most 1e\+150",
        ),
        (
            lambda: CONTRACTED.crossings("B", high=1e308),
            r"high = 1e\+308: must be at most 1e\+100",
        ),
        (
            lambda: sharding.default_plan(None, CONTRACTED.b, CONTRACTED.c),
            "a = None: must be an array",
        ),
        (
            lambda: CONTRACTED.a.ways("Z"),
            "axes = 'Z': must be axes of the mesh, X, Y",
        ),
        (
            lambda: CONTRACTED.a.index([0]),
            r"place = \[0\]: must be coordinates by axis",
        ),
        (
            lambda: UP.flops({"B": 1, "D": 2}),
            r"sizes = {'B': 1, 'D': 2}: must have the size of F",
        ),
        (lambda: UP.flops({"B": 1, "D": -2, "F": 1}), "D = -2: must be a number from"),
        (
            lambda: replace(TINY, layers=2**63),
            "layers = 9223372036854775808: must be at most 100,000",
        ),
        (
            lambda: simulator.simulate("all_reduce", 1, LINE_OF_4, "X", pieces=2**63),
            "pieces = 9223372036854775808: must be at most 16,384 on 4 chips",
        ),
        (lambda: E4M3.round(math.inf), "x = inf: is beyond 448, .* becomes NaN"),
        (lambda: E4M3.round(math.nan), "x = nan: must be a number, which NaN is not"),
        (lambda: E4M3.round(10**400), "x = 10*…: is beyond 448"),
        (lambda: ANSWER.bound("TTFT"), "metric = 'TTFT': must be one of ttft, tpot"),
        (lambda: ANSWER.predicted("x"), "metric = 'x': must be one of ttft, tpot"),
        (lambda: ANSWER.band(["x"]), r"metric = \['x'\]: must be one of ttft, tpot"),
        (
            lambda: serving.Demand.closed_loop(2, 3, 9, 5, seed=[1]),
            r"seed = \[1\]: must be a number",
        ),
        (
            lambda: networks.NVLinkDomain(chips.find("A100 80GB"), reduces="no"),
            "reduces = 'no': must be True or False",
        ),
        (lambda: replace(RUNS[0], formats=3), "formats = 3: must be a Mapping"),
        (lambda: replace(RUNS[0], model=None), "model = None: must be a Model"),
        (
            lambda: pictures.timeline(schedule("1f1b", 2, 2), seconds=-1),
            "seconds = -1: must be a finite number above 0",
        ),
    ],
)
def test_what_was_accepted_or_failed_without_a_word(call, said):
    start = time.process_time()
    with pytest.raises(ValueError, match=said):
        call()
    assert time.process_time() - start < SECONDS


def of_numpy(value: Any) -> Any:
    """The same value with numbers of NumPy, whose ints have only 32 bits."""
    if type(value) in (int, float):
        return np.int32(value) if type(value) is int else np.float64(value)
    if type(value) in (tuple, list):
        return type(value)(map(of_numpy, value))
    return value


def left_of_numpy(found: Any, depth: int = 5) -> bool:
    """Whether a result holds a number of NumPy."""
    if isinstance(found, np.generic):
        return True
    if isinstance(found, dict):
        found = [*found.keys(), *found.values()]
    elif type(found).__module__.startswith("shardmath"):
        found = list(getattr(found, "__dict__", {}).values())
    some = found if isinstance(found, list | tuple) else ()
    return bool(depth) and any(left_of_numpy(one, depth - 1) for one in some)


@pytest.mark.parametrize(
    "call",
    [call for call in CALLS if call.of not in (served, planned)],
    ids=lambda call: call.name,
)
def test_numbers_of_numpy_become_pythons_own(call):
    """Otherwise integers of 32 bits would overflow later on."""
    for name, right in call.right.items():
        given = of_numpy(right)
        if repr(given) == repr(right):
            continue
        try:
            found = finished(call.of, call.right | {name: given})
        except ValueError:
            continue  # refused, as all that is not plain data may be
        assert not left_of_numpy(found), f"{call.name}({name}={given!r})"


def test_sizes_of_32_bits_do_not_overflow():
    big = np.int32(2**20)
    assert UP.flops({"B": big, "D": big, "F": big}) == 2**61
    price = ANSWER.dollars(np.int32(2**30), np.int32(2**30))
    assert price == ANSWER.dollars(2**30, 2**30)
    assert serving.Uniform(np.int32(2**31 - 1)).at(0.999) > 2**30
    given = SERVE | {"rate": np.float64(0.5), "input": np.int32(20)}
    answer = serving.serve(**given, tensor=1).best
    assert type(answer.rate) is float
    assert type(answer.input) is int


@pytest.mark.parametrize(
    "call",
    [
        lambda: answers.find(LONG),
        lambda: judge_number(LONG, 8),
        lambda: report(LONG),
        lambda: report([LONG]),
        lambda: page_function.judge_function(LONG, "x = 1"),
        lambda: arithmetic.amount("8 " + "g" * 150, {}),
        lambda: arithmetic.amount("8 8" + "1" * 150, {}),
        lambda: arithmetic.amount("8 * " + "1_" * 70, {}),
        lambda: Scratchpad(8, {}).zeros(LONG, 8),
        lambda: Scratchpad(8, {}).replay([[LONG]]),
        lambda: Scratchpad(8, {"A": [[1.0]]}).load(LONG, (0, 1), (0, 1)),
        lambda: figures.find(LONG),
        lambda: figures.find("roofline").control(LONG),
        lambda: figures.find("roofline").control([LONG]),
        lambda: figures.find("roofline").settings(chip=LONG),
        lambda: figures.find("roofline").settings(B=LONG),
        lambda: theme.paint(LONG),
        lambda: theme.paint([LONG]),
        lambda: ledger.compare([LONG], []),
        lambda: targets.target(LONG),
        lambda: targets.target(f"here:{'8' * 3000}x8"),
        lambda: targets.target("q" * 1000 + ":8"),
        lambda: served_rows.gate(LONG),
        lambda: served_rows.gate([LONG]),
        lambda: conventions.flops_per_token(8e9, 64, LONG),
        lambda: guess({"a": True, "b" * 1000: 3}),
        lambda: H100.fact(LONG),
        lambda: collectives.Hierarchy(1e6, MESH, LONG, "X"),
        lambda: networks.network(f"v5e:{'4' * 3000}x4"),
        lambda: networks.Torus(TPU_V5E, (4,) * 10_000),
        lambda: networks.NVLinkDomain(LONG),
        lambda: networks.Cluster(LONG, 4),
        lambda: networks.Cluster(networks.NVLinkDomain(H100), (4,) * 10_000),
        lambda: networks.Cluster(networks.NVLinkDomain(H100), 4, reduces=LONG),
        lambda: networks.Cluster(networks.NVLinkDomain(H100), 4, taper=LONG),
        lambda: networks.Slices(LONG, 2, 1e-6),
        lambda: usual(LONG, 8),
        lambda: usual(H100, 10**300),
        lambda: MESH.network.stack(LONG),
        lambda: Mesh(MESH.network, {"X" * 1000: 3}),
        lambda: Mesh(MESH.network, {"X" * 1000: 2}),
        lambda: Mesh(MESH.network, {"X" * 1000: 4, "Y": 4}, {"X" * 1000: (1, 1)}),
        lambda: MESH.size(("X",) * 1000),
        lambda: units.positive(**{LONG: -1}),
        lambda: sharding.array(f"A[B_{LONG}]", {"X": 4}, B=8),
        lambda: sharding.array(f"A[B, {LONG}]", {"X": 4}, B=8),
        lambda: sharding.array(f"A[B] {LONG}", {"X": 4}, B=8),
        lambda: sharding.array(f"A[{LONG}, {LONG}]", {"X": 4}, B=8),
        lambda: sharding.array("A[B_X]", {"X": 4}, B=8, **{LONG: 8}),
        lambda: sharding.array("A[B_X]", {"X" * 1000: 4}, B=8),
        lambda: simulator.simulate("all_reduce", 1e6, MESH, "X", [[1] * 999] * 999),
        lambda: running.spec(3 * [LONG]),
        lambda: running.place(X, LONG, "A[I]"),
        lambda: running.drawn(None, LONG),
    ],
)  # fmt: skip
def test_a_message_quotes_only_the_beginning_of_what_is_long(call):
    start = time.process_time()
    with pytest.raises(ValueError, match="…") as caught:
        call()
    assert len(str(caught.value)) <= MESSAGE + 300  # some list what would be valid
    assert time.process_time() - start < SECONDS


@pytest.mark.parametrize(
    "call",
    [
        CONTRACTED.crossings,
        CONTRACTED.balances,
        lambda name: sharding.contract(**(MATMUL | {"mesh": MESH})).balances("B", name),
        lambda name: CONTRACTED.plan.resized(name, 8),
        lambda name: collectives.nccl_all_reduce(1e3, MESH, "X", name),
        lambda name: collectives.nccl_all_reduce(1e3, MESH, "X", "ring", name),
        lambda name: transformer.flops(TINY, 64, name),
        lambda name: replace(TINY, qk_norm=name),
        ANSWER.bound,
        TINY.active,
    ],
)
def test_an_array_is_no_name(call):
    """NumPy compares each element, and its own error does not say what is valid."""
    with pytest.raises(ValueError, match=r"array\(\[1, 2\]\).*: must be one of"):
        call(np.array([1, 2]))


def test_a_schedule_of_many_stages_prints_itself_soon():
    """Its seconds were added up again for every stage, which is quadratic."""
    start = time.process_time()
    assert "8192 stages" in str(schedule("gpipe", 8192, 1))
    assert time.process_time() - start < SECONDS
