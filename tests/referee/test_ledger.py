"""Predicted against compiled: what counts as the same, and what the ratio says."""

import math
from dataclasses import replace

import hlo_programs as programs
import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmath.collectives import NAMES, Collective
from shardmath.referee import hlo
from shardmath.referee.ledger import compare

MESH = {"X": 4, "Y": 2}
MB = 2.0**20
# `programs.fsdp` by hand: 4 layers of bf16[1024, 1024 over Y or X], gathered over each
# axis in the forward and in the backward pass, gradients scattered over each.
FSDP = [
    Collective("all_gather", ("X",), MB, 4, times=8),
    Collective("all_gather", ("Y",), MB, 2, times=8),
    Collective("reduce_scatter", ("X",), MB, 4, times=4),
    Collective("reduce_scatter", ("Y",), MB, 2, times=4),
]

RECORDS = st.lists(
    st.builds(
        lambda op, axes, nbytes, times: Collective(
            op, axes, nbytes, math.prod(MESH[axis] for axis in axes), times
        ),
        st.sampled_from(list(NAMES)),
        st.sampled_from([("X",), ("Y",), ("X", "Y"), ("Y", "X")]),
        st.sampled_from([64, 256.0, 1e6]),
        st.integers(1, 9),
    )
)


def compiled(program: str, target: str) -> list[Collective]:
    return hlo.collectives_in(
        (programs.STORE / f"{program}.{target}.txt").read_text(), MESH
    )


@given(RECORDS, st.randoms())
def test_order_and_repeats_do_not_matter(records, random):
    """One record run n times is n records; axes have no order; `when` is a remark."""
    apart = [
        replace(one, times=1, axes=one.axes[::-1], when="backward")
        for one in records
        for _ in range(one.times)
    ]
    random.shuffle(apart)
    found = compare(records, apart)
    assert found.exact
    assert found.ratio == pytest.approx(1)


@pytest.mark.parametrize("off", [0.01, -0.01, 1e-4, 1e-6, -1e-6])
def test_bytes_that_differ_are_not_the_same(off):
    """A hundredth more or less fails, and so does one byte in a megabyte."""
    predicted = [Collective("all_gather", ("X",), 1e6, 4)]
    compiled = [Collective("all_gather", ("X",), 1e6 * (1 + off), 4)]
    found = compare(predicted, compiled)
    assert not found.exact
    assert not found.same_bytes
    assert not found.rows[0].same_bytes
    assert str(found.table.rows[0][-1]) == "no"


@pytest.mark.parametrize("parts", [3, 7, 10, 49])
def test_bytes_that_differ_by_rounding_are_the_same(parts):
    """A third of a megabyte is no whole number of bytes, nor is its sum exact."""
    predicted = [Collective("all_gather", ("X",), 1e6, 4)]
    compiled = [Collective("all_gather", ("X",), 1e6 / parts, 4)] * (parts - 1)
    compiled.append(Collective("all_gather", ("X",), 1e6 / parts * (1 + 1e-13), 4))
    found = compare(predicted, compiled)
    assert found.rows[0].compiled_sent != found.rows[0].predicted_sent
    assert found.same_bytes
    assert not found.exact


@given(RECORDS.filter(len), st.data())
def test_anything_missing_or_added_is_seen(records, data):
    lost = data.draw(st.integers(0, len(records) - 1))
    less = records[:lost] + records[lost + 1 :]
    total = sum(one.total_sent for one in records)
    assert not compare(records, less).exact
    assert not compare(less, records).exact
    found = compare(records, less)
    assert found.ratio == pytest.approx(1 - records[lost].total_sent / total, abs=1e-9)


@given(RECORDS)
def test_sums_are_those_of_the_records(records):
    found = compare(records, [])
    sent = sum(row.predicted_sent for row in found.rows)
    assert sent == pytest.approx(sum(one.total_sent for one in records))


def test_same_bytes_of_other_arrays_are_not_exact():
    """Two halves, combined by the compiler: the ratio holds, exactness does not."""
    halves = [Collective("all_reduce", ("X",), MB / 2, 4)] * 2
    whole = [Collective("all_reduce", ("X",), MB, 4)]
    found = compare(halves, whole)
    assert (found.ratio, found.exact) == (1.0, False)


def test_equal_counts_of_other_sizes_are_not_exact():
    sizes = [Collective("all_reduce", ("X",), size, 4) for size in (64, 256, 160)]
    assert not compare(sizes[:2], [sizes[2]] * 2).exact


def test_too_much_here_and_too_little_there_is_not_exact():
    gather = Collective("all_gather", ("X",), MB, 4)
    found = compare([gather], [replace(gather, op="reduce_scatter")])
    assert found.ratio == 1.0
    assert not found.exact
    assert [row.ratio for row in found.rows] == [0.0, math.inf]


def test_nothing_is_exact_and_groups_of_one_are_nothing():
    assert compare([], []).exact
    assert compare([], []).ratio == 1.0
    alone = Collective("all_gather", ("X",), MB, 1)
    assert compare([alone], []).exact
    assert compare([], [replace(alone, group=4)]).ratio == math.inf


@pytest.mark.parametrize("target", ["h100", "v5e-2x4", "tpu7x-2x2x1"])
def test_fsdp_is_exact_on_gpus_and_tpus(target):
    found = compare(FSDP, compiled("fsdp", target))
    assert found.exact
    assert found.ratio == 1.0


def test_fsdp_on_cpu_shows_what_the_cpu_compiler_does():
    """AllReduce instead of ReduceScatter, and f32 instead of bf16: all doubled."""
    found = compare(FSDP, compiled("fsdp", "cpu"))
    gathered, scattered = (
        sum(one.total_sent for one in FSDP[i : i + 2]) for i in (0, 2)
    )
    want = 2 * (gathered + 2 * scattered) / (gathered + scattered)
    assert found.ratio == pytest.approx(want)
    assert not found.exact


def test_fresh_compile_of_explicit_collectives_is_exact():
    assert len(jax.devices()) == 8, "tests run on 8 virtual CPU devices"
    predicted = [
        Collective("all_reduce", ("X",), 2.0**17, 4, times=12),
        Collective("permute", ("Y",), 2.0**17, 2, times=12),
    ]
    text = programs.compiled(programs.nested, programs.mesh_on("cpu", (4, 2)))
    found = compare(predicted, hlo.collectives_in(text, MESH))
    assert found.exact
    assert found.ratio == 1.0


def test_table():
    """The total says "no" although its ratio is 1."""
    gather = Collective("all_gather", ("X",), 4e6, 4, times=3)
    scatter = Collective("reduce_scatter", ("Y", "X"), 8e6, 8)
    reduce = Collective("all_reduce", ("X", "Y"), 4e6, 8)
    assert str(compare([gather, scatter], [gather, reduce])) == TABLE
    assert "<table>" in compare([gather], [gather])._repr_html_()


TABLE = """\
collective     axes  devices   runs  predicted  compiled  ratio  same
AllGather      X           4  3 → 3       9 MB      9 MB  1.000  yes
ReduceScatter  X Y         8  1 → 0       7 MB   0 bytes      –  not compiled
AllReduce      X Y         8  0 → 1    0 bytes      7 MB      –  not predicted
all                        –  4 → 4      16 MB     16 MB  1.000  no"""


def test_arrays_put_together_keep_the_bytes_and_not_the_runs():
    """GPUs concatenate arrays that are gathered at once: 36 → 24 runs, same bytes."""
    apart = [Collective("all_gather", "X", MB, 4, times=36)]
    joined = [
        Collective("all_gather", "X", MB, 4, times=12),
        Collective("all_gather", "X", 2 * MB, 4, times=12),
    ]
    found = compare(apart, joined)
    (row,) = found.rows
    for one in (found, row):
        assert (one.exact, one.same_bytes, one.same_runs) == (False, True, False)
    assert "36 → 24" in str(found)
    assert str(found).splitlines()[1].endswith("bytes")
    doubled = compare(apart, [replace(apart[0], nbytes=2 * MB)])
    assert (doubled.same_bytes, doubled.same_runs) == (False, True)


def test_sums_by_axes_make_windowed_matmuls_comparable():
    """An AllGather done as (n + 1) permutes of 1/n: no ratio by rows, 9/7 by axes."""
    gather = Collective("all_gather", "X", 8 * MB, 8)
    other = Collective("all_reduce", ("Y", "Z"), MB, 4)
    around = Collective("permute", "X", MB, 8, times=9)
    found = compare([gather, other], [around, replace(other, axes=("Z", "Y"))])
    assert {row.ratio for row in found.rows} == {0, math.inf, 1}
    assert {row.axes: row.ratio for row in found.by_axes().rows} == {
        ("X",): pytest.approx(9 / 7),
        ("Y", "Z"): 1,
    }
    assert str(found.by_axes()) == BY_AXES
    assert "inf" not in str(found)
    assert "<table>" in found.by_axes()._repr_html_()


BY_AXES = """\
axes  predicted  compiled  ratio  collectives
X       7.34 MB   9.44 MB  1.286  AllGather → Permute
Y Z     1.57 MB   1.57 MB  1.000  AllReduce"""


def test_the_dtype_explains_a_ratio_of_two():
    text = (programs.STORE / "fsdp.cpu.txt").read_text()
    found = compare(FSDP, hlo.read(text, MESH))
    gathered = found.rows[0]
    assert (gathered.dtypes, gathered.ratio) == (("f32",), 2.0)
    assert "dtype" in str(found)
    assert "f32    2.000  no" in str(found)
    bare = compare(FSDP, compiled("fsdp", "cpu"))
    assert found.rows == tuple(
        replace(row, dtypes=new.dtypes)
        for row, new in zip(bare.rows, found.rows, strict=True)
    )


def test_the_table_is_narrow_enough_for_a_page():
    text = (programs.STORE / "fsdp.cpu.txt").read_text()
    assert max(map(len, str(compare(FSDP, hlo.read(text, MESH))).splitlines())) <= 88


def test_only_records_are_compared():
    with pytest.raises(ValueError, match=r"'HloModule'.*Collective.*collectives_in"):
        compare([], ["HloModule"])


@pytest.mark.parametrize("given", [Collective("all_gather", "X", 1e6, 8), None, "text"])
def test_a_list_is_compared(given):
    with pytest.raises(ValueError, match=r"^predicted = .*: must be a list of coll"):
        compare(given, [])
    with pytest.raises(ValueError, match=r"^compiled = .*: must be a list of coll"):
        compare([], given)
