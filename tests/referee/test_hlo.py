"""What is read from compiled text: exact counts on three compilers, nothing lost."""

import re
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import hlo_programs as programs
import jax
import numpy as np
import pytest
from benchmarks.hlo import enlarged
from jax import lax
from jax.sharding import PartitionSpec as P

from shardmath.referee import hlo
from shardmath.referee.hlo import CompiledCollective

STORE = Path(__file__).parents[1] / "data" / "hlo"
MESH = {"X": 4, "Y": 2}
MESHES = {"gather_matmul": {"X": 8, "Y": 1}, "slices": {"X": 2, "Y": 4}}
MB, KB = 2**20, 2**10

# (op, axes, bytes, times, dtype) of every collective in the stored texts, worked out
# from the programs; where a compiler did something else, the line says so.
BY_HAND = [
    ("all_gather", "X", 1 * MB, 5, "f32"),
    ("all_reduce", "Y", 512 * KB, 5, "f32"),
    ("permute", "X", 512 * KB, 5, "f32"),
    ("reduce_scatter", "X Y", 256 * KB, 1, "f32"),
    ("all_to_all", "Y", 1 * MB, 1, "f32"),
]
HOISTED = ("all_gather", "X", 1 * MB, 1, "f32")  # the same weights in every turn
NARROWED = ("all_gather", "X", 512 * KB, 5, "bf16")  # the matmul rounds them anyway
NOT_SCATTERED = ("all_reduce", "X Y", 256 * KB, 1, "f32")
NESTED = [
    ("all_reduce", "X", 128 * KB, 12, "f32"),
    ("permute", "Y", 128 * KB, 12, "f32"),
]
BRANCHES = [
    ("all_reduce", "X", 128 * KB, 1, "f32"),
    ("permute", "Y", 128 * KB, 1, "f32"),
]
FSDP = [
    *[("all_gather", "X", 1 * MB, 4, "bf16")] * 2,  # forward and backward
    *[("all_gather", "Y", 1 * MB, 4, "bf16")] * 2,
    ("reduce_scatter", "X", 1 * MB, 4, "bf16"),
    ("reduce_scatter", "Y", 1 * MB, 4, "bf16"),
]
WIDENED = [  # CPU: in f32, and the gradients are added up whole
    (op.replace("reduce_scatter", "all_reduce"), axes, 2 * nbytes, times, "f32")
    for op, axes, nbytes, times, _ in FSDP
]
STORED = {
    "by_hand.cpu": [HOISTED, *BY_HAND[1:]],
    "by_hand.h100": BY_HAND,
    "by_hand.v5e-2x4": [NARROWED, *BY_HAND[1:]],
    "by_hand.tpu7x-2x2x1": [NARROWED, *BY_HAND[1:]],
    "by_hand.v5p-2x2x2": [NARROWED, *BY_HAND[1:3], NOT_SCATTERED, BY_HAND[4]],
    "nested.cpu": NESTED,
    "nested.h100": NESTED,
    "nested.v5e-2x4": NESTED,
    "branches.cpu": BRANCHES,
    "branches.h100": BRANCHES,
    "tree.cpu": [("all_reduce", "X", n, 1, "f32") for n in (256 * KB, 2 * KB, 64)],
    "tree.h100": [("all_reduce", "X", 258 * KB + 64, 1, "f32")],  # one buffer
    "fsdp.cpu": WIDENED,
    "fsdp.h100": FSDP,
    "fsdp.v5e-2x4": FSDP,
    "fsdp.tpu7x-2x2x1": FSDP,
    # 9 chunks of 32 MiB instead of 7: (n + 1)/(n − 1) of what a ring needs.
    "gather_matmul.v5e-2x4": [
        ("permute", "X", 32 * MB, 1, "bf16"),
        *[("permute", "X", 32 * MB, 2, "bf16")] * 4,
    ],
    "slices.v5e-2x2+2x2": [
        ("all_reduce", "X", 2 * MB, 1, "f32"),
        ("permute", "X", 2 * MB, 1, "f32"),
        ("all_gather", "Y", 8 * MB, 1, "f32"),
        # The AllReduce over all of it: inside, between, and inside the slices again.
        ("reduce_scatter", "Y", 2 * MB, 1, "f32"),
        ("all_reduce", "X", 512 * KB, 1, "f32"),
        ("all_gather", "Y", 2 * MB, 1, "f32"),
    ],
}


def stored(name: str) -> tuple[str, dict[str, int]]:
    program, _, _ = name.partition(".")
    return (STORE / f"{name}.txt").read_text(), MESHES.get(program, MESH)


def short(one: CompiledCollective) -> tuple:
    found = one.collective
    return found.op, " ".join(found.axes), found.nbytes, found.times, one.dtype


def fresh(program, sizes: dict[str, int]) -> str:
    assert len(jax.devices()) == 8, "tests run on 8 virtual CPU devices"
    return programs.compiled(program, programs.mesh_on("cpu", tuple(sizes.values())))


@pytest.mark.parametrize("name", STORED)
def test_stored_texts_of_three_compilers(name):
    found = hlo.read(*stored(name))
    assert Counter(map(short, found)) == Counter(STORED[name])
    mesh = stored(name)[1]
    for one in found:  # every group here fills its axes
        sizes = [mesh[axis] for axis in one.collective.axes]
        assert one.collective.group == np.prod(sizes)


def test_every_stored_text_is_tested():
    assert {path.stem for path in STORE.glob("*.txt")} == set(STORED)


def test_stored_texts_name_no_place_on_a_disk():
    for path in STORE.glob("*.txt"):
        assert not re.search(r'metadata=\{|"/|\.py"', path.read_text()), path.name


@pytest.mark.parametrize(
    ("program", "expected"),
    [("by_hand", [HOISTED, *BY_HAND[1:]]), ("nested", NESTED), ("tree", None)],
)
def test_fresh_cpu_compiles(program, expected):
    found = hlo.read(fresh(getattr(programs, program), MESH), MESH)
    assert Counter(map(short, found)) == Counter(expected or STORED["tree.cpu"])


@pytest.mark.parametrize("seed", range(12))
def test_random_nests_of_loops_are_counted_exactly(seed):
    """Loops in loops, five collectives, any axes: op, axes, bytes and times match."""
    sizes = {"X": 4, "Y": 2} if seed % 2 else {"X": 2, "Y": 2, "Z": 2}
    program, expected = programs.drawn(seed, sizes)
    found = Counter()
    for one in hlo.collectives_in(fresh(program, sizes), sizes):
        found[one.op, one.axes, one.group, one.nbytes] += one.times
    assert found == expected


def test_what_runs_asynchronously():
    """Start/done pairs, fusion chains and SparseCore calls; not what waits at once."""
    for name, wanted in {
        "by_hand.cpu": set(),
        "by_hand.h100": {"permute", "all_to_all", "reduce_scatter"},
        "by_hand.v5e-2x4": {"permute"},
        "by_hand.tpu7x-2x2x1": {op for op, *_ in BY_HAND} - {"all_to_all"},
    }.items():
        found = {i.collective.op for i in hlo.read(*stored(name)) if i.asynchronous}
        assert found == wanted, name
    chained = [one for one in hlo.read(*stored("fsdp.v5e-2x4")) if one.asynchronous]
    assert [short(one) for one in chained] == [FSDP[0]]


def test_both_directions_of_a_ring_are_told_apart():
    found = hlo.read(*stored("gather_matmul.v5e-2x4"))
    sent = Counter()
    for one in found:
        sent[one.shift] += one.collective.times
    assert sent == {1: 5, -1: 4}


def test_branches_are_marked_and_all_counted():
    assert all(one.conditional for one in hlo.read(*stored("branches.cpu")))
    assert not any(one.conditional for one in hlo.read(*stored("nested.cpu")))


def test_arrays_of_one_instruction_share_its_name():
    assert len({one.instruction for one in hlo.read(*stored("tree.cpu"))}) == 1


def test_the_jax_operation_is_named():
    (found,) = hlo.read(fresh(one_psum, MESH), MESH)
    assert found.source.endswith("/psum")
    assert (
        str(found) == "AllReduce over X (4 devices), 256 bytes: "
        "each sends 384 bytes (f32)"
    )


def one_psum(mesh):
    f = partial(lax.psum, axis_name="X")
    f = programs.shard_map(f, mesh=mesh, in_specs=P("X"), out_specs=P())
    return f, (programs.arg(mesh, P("X"), 32, 8),)


def test_a_group_that_is_part_of_an_axis():
    text = toy("[4,2]<=[8]")
    (found,) = hlo.collectives_in(text, {"X": 8})
    assert (found.axes, found.group) == (("X",), 2)


def toy(groups: str, line: str = "") -> str:
    line = line or f"all-gather(%x), replica_groups={groups}, dimensions={{0}}"
    return f"""HloModule toy, num_partitions=8
%unused (x: f32[4]) -> f32[4] {{
  ROOT %x = f32[4]{{0}} parameter(0)
}}
ENTRY %main (x: f32[4]) -> f32[8] {{
  %x = f32[4]{{0}} parameter(0)
  ROOT %y = f32[8]{{0}} {line}
}}
"""


def test_groups_of_one_device_move_nothing():
    assert hlo.collectives_in(toy("[8,1]<=[8]"), {"X": 8}) == []
    swaps = toy("", "collective-permute(%x), source_target_pairs={{0,0},{1,1}}")
    assert hlo.collectives_in(swaps, {"X": 8}) == []


def test_text_of_five_megabytes():
    text, mesh = stored("fsdp.v5e-2x4")
    large, copies = enlarged(text, 5_000_000)
    assert len(large) > 5_000_000
    wanted = Counter({key: n * copies for key, n in Counter(FSDP).items()})
    assert Counter(map(short, hlo.read(large, mesh))) == wanted


DCN = (
    "send(%x), is_host_transfer=true, frontend_attributes="
    '{{_xla_megascale_target={},_xla_megascale_transfer_type="{}"}}'
)


@pytest.mark.parametrize(
    ("target", "kind", "want"),
    [
        ('"{1,2,3,4}x{0:7}"', "ALL_REDUCE", ("all_reduce", ("S", "T"), 4, 16)),
        ("{{100000,300000},{200001,400001}}", "ALL_GATHER", ("all_gather", "S", 2, 32)),
        ("{{300000,100000}}", "REDUCE_SCATTER", ("reduce_scatter", "S", 2, 16)),
        ("{{100007,200007}}", "ALL_TO_ALL", ("all_to_all", "T", 2, 32)),
        ("{{100000->200000},{200000->100000}}", "ONE_TO_ONE", ("permute", "T", 2, 16)),
    ],
)
def test_transfers_between_four_slices(target, kind, want):
    """Slices on a mesh S × T of 2 × 2, eight devices in each."""
    text = toy("", DCN.format(target, kind))
    (found,) = hlo.collectives_in(text, {"S": 2, "T": 2, "X": 8})
    assert (found.op, found.axes, found.group, found.nbytes) == (
        want[0],
        tuple(want[1]),
        *want[2:],
    )


LOST = toy("[4,2]<=[8]").replace(
    "ROOT %x = f32[4]{0} parameter(0)\n}\nENTRY",
    "%x = f32[4]{0} parameter(0)\n"
    "  ROOT %lost = f32[4]{0} all-reduce(%x), replica_groups={}\n}\nENTRY",
)


def cut(name: str, at: str) -> str:
    return stored(name)[0].partition(at)[0]


@pytest.mark.parametrize(
    ("text", "mesh", "said"),
    [
        ("", MESH, "not HLO text: ''"),
        (b"HloModule", MESH, "not HLO text but a bytes"),
        ("module @jit_f attributes {", MESH, "StableHLO.*compile"),
        ("{ lambda ; a:f32[8]. let", MESH, "jaxpr.*compile"),
        ("HloModule toy", MESH, "cut off.*without an ENTRY"),
        (cut("tree.cpu", "ROOT %all-reduce"), MESH, "cut off.*inside %main"),
        (
            toy("{}").replace("ROOT %y =", "ROOT y :"),
            {"X": 8},
            "cannot read.*'ROOT y :",
        ),
        (toy("{}").replace("%x), ", "%x, "), {"X": 8}, "no closing paren.*%y"),
        (toy("{}"), {"X": 4}, r"'X': 4.*has 4 devices.*compiled for 8"),
        (toy("{}"), {"X": 16}, "has 16 devices.*compiled for 8"),
        (toy("{}"), ("X", 8), r"mesh \('X', 8\): must be sizes by axis name"),
        (toy("{{0,1},{2,3}}"), {"X": 8}, "each of 8 devices once"),
        (toy("{{0,1,2},{3,4,5},{6,7}}"), {"X": 8}, "equal size"),
        (toy("", "all-reduce(%x)"), {"X": 8}, "%y: all-reduce without groups"),
        (
            toy("", "ragged-all-to-all(%x)"),
            {"X": 8},
            r"%y is a ragged-all-to-all.*16 bytes.*stated=\{\"y\"",
        ),
        (toy("", "send(%x), channel_id=1"), {"X": 8}, "send can.t be read"),
        (  # in place: it sends a slice, not the operand that stands in its text
            toy(
                "",
                "collective-permute(%x, %x), source_target_pairs={{0,1}}, "
                "slice_sizes={{1},{1}}",
            ),
            {"X": 8},
            "this form of collective-permute can't be read",
        ),
        (LOST, {"X": 8}, "%lost.*%unused, which no path from the entry reaches"),
        (
            stored("fsdp.v5e-2x4")[0].replace("AsyncCollectiveStart", "Other"),
            MESH,
            "continues an asynchronous collective that does not begin anywhere",
        ),
        (
            stored("slices.v5e-2x2+2x2")[0].replace("ALL_REDUCE", "OTHER"),
            MESHES["slices"],
            "transfer OTHER.*between slices can't be read",
        ),
        (
            toy("", DCN.format("{{100000,100003},{200000,200003}}", "ALL_GATHER")),
            {"X": 16},
            "100003.* between slices can't be read",
        ),
    ],
)
def test_what_cannot_be_read_is_an_error(text, mesh, said):
    with pytest.raises(ValueError, match=said):
        hlo.read(text, mesh)


def test_transfers_to_the_host_are_not_collectives():
    text = toy("", "send(%x), channel_id=1, is_host_transfer=true")
    assert hlo.read(text, {"X": 8}) == []


def test_reads_without_jax():
    code = "import sys, shardmath.referee.ledger, shardmath.referee.hlo; "
    code += "sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
