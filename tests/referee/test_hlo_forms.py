"""Forms of HLO text that hide what is sent: listed right, or refused, never dropped."""

from pathlib import Path

import pytest

from shardmath.collectives import Collective
from shardmath.referee import hlo
from shardmath.referee.hlo import groups

COMPOSED = Path(__file__).parents[1] / "data" / "hlo" / "composed"
X4 = {"X": 4}
MB = 2**20


def text(name: str) -> str:
    return (COMPOSED / f"{name}.txt").read_text()


def test_a_kernels_metadata_may_span_lines():
    (found,) = hlo.read(text("pallas_kernel"), X4)
    assert (found.collective.op, found.collective.nbytes) == ("all_reduce", MB / 4)


def test_a_kernel_that_sends_by_itself_is_refused_until_its_traffic_is_stated():
    with pytest.raises(
        ValueError, match=r"%ring_gather.1 is a kernel.* over X .*stated="
    ):
        hlo.read(text("pallas_ring"), X4)
    gather = Collective("all_gather", "X", MB, 4)
    (found,) = hlo.read(text("pallas_ring"), X4, stated={"ring_gather.1": gather})
    assert (found.collective, found.dtype) == (gather, "bf16")
    silent = text("pallas_ring").replace(r"[\"X\"]", "[]")
    assert hlo.read(silent, X4) == []


def test_two_sends_that_close_a_ring_are_one_permute():
    (found,) = hlo.read(text("pipelined_sends"), X4)
    assert found.collective == Collective("permute", "X", MB / 4, 4, times=7)
    assert (found.shift, found.senders, found.asynchronous) == (1, None, True)


def test_a_pipeline_that_does_not_wrap_around_counts_its_senders():
    """The last stage sends nothing; the record counts the bytes of those that do."""
    line = text("pipelined_sends")
    for part in ("send", "recv"):
        line = line.replace(f"-{part}-", "-")
    open_end = line.replace("{{3,0}}", "{}")
    (found,) = hlo.read(open_end, X4)
    assert found.collective == Collective("permute", "X", MB / 4, 4, times=7)
    assert found.senders == 3
    assert "3 devices send" in str(found)


def test_two_sends_that_close_no_ring_stay_two():
    straight = text("pipelined_sends").replace("{{3,0}}", "{{3,1}}")
    assert len(hlo.read(straight, X4)) == 2


def test_a_ragged_exchange_counts_what_the_caller_states():
    with pytest.raises(ValueError, match=r"%ragged-all-to-all.1.*4,194,304 bytes"):
        hlo.read(text("ragged"), X4)
    sent = Collective("all_to_all", "X", 3e6, 4)
    found = hlo.collectives_in(text("ragged"), X4, stated={"ragged-all-to-all.1": sent})
    assert found == [Collective("all_gather", "X", 64, 4), sent]
    nothing = hlo.collectives_in(text("ragged"), X4, stated={"ragged-all-to-all.1": ()})
    assert nothing == found[:1]


def test_a_sum_that_narrows_says_so_and_one_over_replicas_is_nothing():
    (found,) = hlo.read(text("narrowing_sum"), X4)
    assert (found.collective.nbytes, found.dtype, found.returns) == (
        MB / 2,
        "f32",
        "bf16",
    )
    assert "f32, returned as bf16" in str(found)


@pytest.mark.parametrize("said", [{"trips": {"whlie": 3}}, {"stated": {"gather": []}}])
def test_what_is_said_of_an_instruction_that_is_not_there_is_an_error(said):
    with pytest.raises(
        ValueError, match=r"the text has no instruction %(whlie|gather)"
    ):
        hlo.read(text("pipelined_sends"), X4, **said)


def test_stated_traffic_must_be_collectives():
    with pytest.raises(ValueError, match=r"stated\['ring_gather.1'\] = \[8\]"):
        hlo.read(text("pallas_ring"), X4, stated={"ring_gather.1": [8]})


@pytest.mark.parametrize(
    ("written", "want"),
    [
        ("{{0, 2}, {2, 0}}", ((0, 2), (2, 0))),
        ("{ {0,2} ,{2 , 0} }", ((0, 2), (2, 0))),
        ("{{1,1}}", ()),
        ("{}", ()),
    ],
)
def test_pairs_with_spaces(written, want):
    assert groups.pairs(written, 4) == want


@pytest.mark.parametrize(
    "written",
    ["{{0,4}}", "{{0,1},{0,2}}", "{{0,1},{2,1}}", "{{0,1},{2}}", "{{0,1,2}}", "{{0,1}"],
)
def test_pairs_that_cannot_be_are_refused(written):
    with pytest.raises(ValueError, match="source_target_pairs="):
        groups.pairs(written, 4)


@pytest.mark.parametrize(
    "written",
    [
        "[50000000,2]<=[100000000]",
        "[2,2]<=[100000000]",
        "[2,2]<=[100000,1000]T(1,0)",
        "[1,4]<=[2,2]T(1,1)",
        "mesh['a'=100000000] {'a'}",
        "mesh['a'=2,'b'=2], device_ids=([100000000]) {'a'}",
        "mesh['a'=2,'b'=2] {'c'}",
        "mesh['a'=2,'b'=2] {'a':(0)2}",
    ],
)
def test_sizes_are_checked_before_a_list_of_them_is_made(written):
    """100,000,000 devices would take gigabytes and seconds to list."""
    with pytest.raises(ValueError, match=r"4 devices|no axis"):
        groups.groups(written, 4)
