"""What stands between start and end of a collective, in the stored schedules."""

from collections import Counter
from pathlib import Path

import pytest

from shardmath.referee import hlo

STORE = Path(__file__).parents[1] / "data" / "hlo"


def overlaps(name: str) -> list[hlo.HloOverlap]:
    return hlo.overlaps((STORE / f"{name}.txt").read_text())


@pytest.mark.parametrize(
    ("name", "pairs", "hidden"),
    [
        # The last weight gathered, and the first gradient scattered, beside a matmul.
        ("fsdp.h100", {"all-gather": 4, "reduce-scatter": 2}, 2),
        ("fsdp.v5e-2x4", {"all-gather": 1}, 1),  # a chain of fusions
        ("fsdp.cpu", {}, 0),  # nothing is asynchronous there
        ("nested.v5e-2x4", {"collective-permute": 1}, 0),
    ],
)
def test_stored_schedules(name, pairs, hidden):
    found = overlaps(name)
    assert Counter(one.op for one in found) == pairs
    assert sum(one.matmuls > 0 for one in found) == hidden


def test_sends_and_sparsecore_calls_are_pairs_too():
    assert {one.op for one in overlaps("fsdp.tpu7x-2x2x1")} == {
        "all-gather",
        "reduce-scatter",
    }
    sends = hlo.overlaps((STORE / "composed" / "pipelined_sends.txt").read_text())
    assert [one.op for one in sends] == ["send", "send"]


PAIR = """HloModule toy, is_scheduled=true, num_partitions=8
%product (a: f32[8,8]) -> f32[8,8] {
  %a = f32[8,8]{1,0} parameter(0)
  ROOT %b = f32[8,8]{1,0} dot(%a, %a), lhs_contracting_dims={1}
}
ENTRY %main (x: f32[4], a: f32[8,8]) -> f32[32] {
  %x = f32[4]{0} parameter(0)
  %a = f32[8,8]{1,0} parameter(1)
  BEFORE
  %start = (f32[4]{0}, f32[32]{0}) all-gather-start(%x), replica_groups={}
  BETWEEN
  ROOT %done = f32[32]{0} all-gather-done(%start)
}"""


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("%b = f32[8,8]{1,0} dot(%a, %a), lhs_contracting_dims={1}", 1),
        ("%b = f32[8,8]{1,0} fusion(%a), kind=kOutput, calls=%product", 1),
        ('%b = f32[8,8]{1,0} custom-call(%a), custom_call_target="__cublas$gemm"', 1),
        ('%b = f32[8,8]{1,0} custom-call(%a), custom_call_target="TopK"', 0),
        ("%b = f32[8,8]{1,0} add(%a, %a)", 0),
    ],
)
def test_only_matmuls_between_the_two_count(line, count):
    after = PAIR.replace("BEFORE", "").replace("BETWEEN", line)
    before = PAIR.replace("BEFORE", line).replace("BETWEEN", "")
    assert [one.matmuls for one in hlo.overlaps(after)] == [count]
    assert [one.matmuls for one in hlo.overlaps(before)] == [0]
