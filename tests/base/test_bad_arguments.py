"""Whatever is given for an argument: an answer, or an error that a reader can use.

Every public function and record of these modules is called with arguments that are all
right but for one, which is wrong in every way that we could think of.
"""

import inspect
import math
import time
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from shardmath import serving
from shardmath.base import claims, estimate, facts, records, tables, units
from shardmath.base.estimate import Leg
from shardmath.draw import pictures
from shardmath.draw.objects import waves as wave_pictures
from shardmath.hardware import blocks, chips, roofline, systolic, waves
from shardmath.hardware.chips import H100, TPU_V5E
from shardmath.hardware.waves import dispatch
from shardmath.referee import hlo
from shardmath.training import causal_ring, pipeline_schedules
from shardmath.training.pipeline_schedules import Times, schedule

LONG = "x" * 100_000
MESSAGE = 500  # characters of an error message, at most
SECONDS = 1.0  # of a call, at most; nothing here needs a tenth of it


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
           {"rate": 2.0, "count": 3, "input": 9, "output": 5}, "rate count"),
    Called(serving.Demand.closed_loop,
           {"clients": 2, "count": 3, "input": 9, "output": 5, "think": 0.5},
           "clients count think"),
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


def test_a_schedule_of_many_stages_prints_itself_soon():
    """Its seconds were added up again for every stage, which is quadratic."""
    start = time.process_time()
    assert "8192 stages" in str(schedule("gpipe", 8192, 1))
    assert time.process_time() - start < SECONDS
