"""Compilers: what they said is kept for one program exactly, and read anywhere."""

import importlib.metadata
import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import hlo_programs
import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.sharding import AbstractMesh, AxisType, NamedSharding

from shardmath.base.units import GiB
from shardmath.collectives import Collective
from shardmath.referee import compilers, programs
from shardmath.referee.compilers import (
    compiling,
    devices,
    golden_results,
    lowering,
    targets,
)
from shardmath.referee.compilers.compiled import (
    CompiledMemory,
    CompilerResult,
    OutOfMemory,
    Overlapped,
)
from shardmath.referee.hlo import CompiledCollective
from shardmath.sharding import array
from shardmath.training import fsdp
from shardmath.transformer import Model

ROOT = Path(__file__).parents[2]
X8 = {"X": 8}
MB = 2**20


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """No referee, no compiler, nothing kept: the empty folder of kept results."""
    monkeypatch.delenv(golden_results.REFEREE, raising=False)
    monkeypatch.setattr(golden_results, "FOLDER", tmp_path)
    monkeypatch.setattr(devices, "missing", lambda _: "no compiler is here")
    return tmp_path


def matrix(sizes=X8, n=1024):
    return array("f32[I_X, J]", sizes, I=n, J=n)


def gathered(machine, x=None, **options):
    x = x or matrix()
    said = {"out": "x[I, J]", "name": "gather"} | options
    return compilers.compile_for(machine, lambda x: x * 2, x, **said)


def by_hand(mesh):
    """Each of five collectives, two of them in a loop of 3, on 1 MB of each device."""
    n = mesh.shape["X"]

    def body(x):
        def step(c, _):
            c = jax.lax.ppermute(jnp.sin(c), "X", [(i, (i + 1) % n) for i in range(n)])
            return jax.lax.psum(c, "X"), None

        c, _ = jax.lax.scan(step, x, None, 3)
        whole = jax.lax.all_gather(c, "X", tiled=True)
        part = jax.lax.psum_scatter(jnp.cos(whole), "X", tiled=True)
        return jax.lax.all_to_all(jnp.sin(part), "X", 1, 0, tiled=True)

    place = ["x[I_X, J]"]
    return programs.by_hand(body, mesh, place, "x[I_X, J]", check=False)


FIVE = [
    Collective("permute", "X", MB, 8, times=3),
    Collective("all_reduce", "X", MB, 8, times=3),
    Collective("all_gather", "X", 8 * MB, 8),
    Collective("reduce_scatter", "X", 8 * MB, 8),
    Collective("all_to_all", "X", 8 * MB, 8),
]


def five(machine, sizes=X8):
    mesh = AbstractMesh(tuple(sizes.values()), tuple(sizes))
    x = array("f32[I_X, J]", sizes, I=512 * 8, J=512)
    return compilers.compile_for(machine, by_hand(mesh), x, name="five", mesh=mesh)


# ------------------------------------------------------------------------- targets


@pytest.mark.parametrize(
    ("name", "platform", "chips", "devices_", "slices"),
    [
        ("v4:4x4x4", "tpu", 64, 64, 1),
        ("v5e:2x4", "tpu", 8, 8, 1),
        ("v5p:8x8x8", "tpu", 512, 512, 1),
        ("v6e:16x16", "tpu", 256, 256, 1),
        ("tpu7x:2x2x2", "tpu", 8, 16, 1),
        ("v5e:4x4*2", "tpu", 32, 32, 2),
        ("h100:8", "cuda", 8, 8, 1),
        ("h100:8x8", "cuda", 64, 64, 1),
        ("b200:2x8", "cuda", 16, 16, 1),
        ("gb200:72", "cuda", 72, 72, 1),
        ("here:8", "here", 8, 8, 1),
    ],
)
def test_targets(name, platform, chips, devices_, slices):
    found = compilers.target(name)
    assert (found.platform, found.chips, found.devices) == (platform, chips, devices_)
    assert (found.slices, found.name) == (slices, name)
    assert compilers.target(found) is found


def test_one_machine_has_one_name():
    assert compilers.target("h100:1x8") == compilers.target("h100:8")
    assert compilers.target("Ironwood:2x2x2").name == "tpu7x:2x2x2"
    assert compilers.target("v5e:4x4*1") == compilers.target("v5e:4x4")
    assert compilers.target("tpu7x:2x2x1").memory == 96 * GiB  # half a chip


def test_one_device_of_a_tpu_is_a_target():
    """For a kernel; of TPU7x it is half a chip, as for JAX."""
    for name, said in (("v5e:1", "TPU v5e"), ("ironwood:1", "TPU 7x")):
        one = compilers.target(name)
        assert one.devices == 1
        assert said in str(one)
    assert compilers.target("ironwood:1").memory == 96 * GiB


DOUBLED = """
def doubled(x):
    def kernel(x, y):
        y[...] = 2 * x[...]

    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(kernel, out_shape=shape)(x)
"""


def test_a_kernel_is_the_same_program_wherever_it_is_written():
    """Its bytes hold files and lines unless they are left out."""
    keys = set()
    for lines, file in ((0, "/one/place.py"), (40, "/another.py")):
        names = {"jax": jax, "pl": pl}
        exec(compile("\n" * lines + DOUBLED, file, "exec"), names)
        x = jax.ShapeDtypeStruct((256, 256), "float32")
        one = compilers.target("v5e:1")
        found = lowering.lowered(
            one, names["doubled"], (x,), None, None, {}, False, "x", ()
        )
        keys.add(found.key)
    assert len(keys) == 1
    assert jax.config.jax_traceback_in_locations_limit != 0


def test_a_refusal_for_vmem_is_kept(bare, monkeypatch):
    lost = OutOfMemory(round(18.36 * MB), 16 * MB, "VMEM")
    assert str(lost) == "out of VMEM: 18.36 MiB of 16 MiB a device"
    assert str(replace(lost, memory="HBM")).startswith("out of memory: 18.36 MiB")

    def refused(program, *_):
        return replace(invented(program), memory=None, out_of_memory=lost, launches=())

    monkeypatch.setattr(compiling, "_compiled", refused)
    monkeypatch.setenv(golden_results.REFEREE, str(bare))
    assert gathered("h100:8").out_of_memory == lost
    monkeypatch.delenv(golden_results.REFEREE)
    assert gathered("h100:8").out_of_memory == lost  # read again


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("v5q:4x4", r"'v5q:4x4': no compiler for 'v5q'; nearest: .*v5"),
        ("a100:8", "no compiler for 'a100'; nearest: h100"),
        ("xyz:4", "no compiler for 'xyz'; nearest: v4, v5e, .*here"),
        ("v5p", "must say how many, such as 'v5p:4x4x4'"),
        ("v5p 8x8x8", "must be written like"),
        (8, "target 8: must be written like"),
        ("v5p:8x8", "must have 3 sides"),
        ("v5e:2x2x2", "must have 2 sides"),
        ("v5e:32x32", "at most the pod's 256"),
        ("v5p:4x4x6", "multiples of 4"),
        ("v5e:1x1", "first two sides must be even"),
        ("v5e:0x4", "must"),
        ("v5e:4x4*0", "slices"),
        ("h100:16", r"at most 8 H100; write the number of nodes first, as in 'h100:8"),
        ("h100:2x2x8", "must be nodes x GPUs"),
        ("h100:8*2", "only TPUs come in slices"),
        ("here:2x4", "a number of devices"),
    ],
)
def test_a_machine_that_there_is_not_is_refused(name, said):
    with pytest.raises(ValueError, match=said):
        compilers.target(name)


def test_what_xla_is_told_of_a_gpu_agrees_with_its_record():
    """Two sources of one device: cores, and memory to within what the driver keeps."""
    for gpu, said in targets.gpus().items():
        chip = compilers.target(f"{gpu}:8").chip
        assert re.fullmatch(r"\w+\.txtpb at [0-9a-f]{40}", said["source"])
        assert 0.97 < said["device_memory_size"] / chip.hbm_bytes < 1.01
        assert 0.95 < said["memory_bandwidth"] / chip.hbm_bandwidth < 1.01
        if "cores" in chip.facts:
            assert said["core_count"] == chip.cores
        text = devices.description(gpu)
        assert f"core_count: {said['core_count']}" in text
        assert text.count("{") == text.count("}")


def test_slices_are_across_the_outermost_axes():
    two, four = compilers.target("v5e:4x4*2"), compilers.target("v5e:4x4*4")
    assert tuple(devices._across(two, (32,))) == (2,)
    assert tuple(devices._across(four, (2, 8, 4))) == (2, 2, 1)
    with pytest.raises(ValueError, match="must begin with those across its 4 slices"):
        tuple(devices._across(four, (6, 8)))


def test_the_versions_are_those_of_the_lock_files():
    locks = "".join(
        (ROOT / f"requirements{part}.txt").read_text() for part in ("", "-referee")
    )
    for versions in targets.COMPILERS.values():
        for package, version in versions.items():
            assert f"\n{package}=={version} " in f"\n{locks}"
    wanted = [r for r in importlib.metadata.requires("jax") if r.startswith("libtpu==")]
    (series,) = re.findall(r"libtpu==([\d.]+)\.\*", wanted[0])
    assert targets.COMPILERS["tpu"]["libtpu"].startswith(series)


# ----------------------------------------------------------------------- the key


def key(machine="h100:8", fn=jnp.sin, x=None, mesh=None, told=(), name="f", reading=()):
    found = compilers.target(machine)
    args = (x or matrix(),)
    made = lowering.lowered(
        found, fn, args, mesh, None, dict(told), False, name, reading
    )
    return made.key


def test_the_key_says_program_target_mesh_options_and_versions(monkeypatch):
    same = key()
    assert same == key() == key(name="g")
    others = [
        key(fn=jnp.cos),
        key(x=matrix(n=2048)),
        key(machine="b200:8"),
        key(machine="v5e:2x4"),
        key(x=matrix({"X": 8, "Y": 1})),
        key(told={"xla_gpu_enable_while_loop_double_buffering": True}.items()),
        key(reading=("trips",)),
    ]
    monkeypatch.setitem(targets.COMPILERS, "cuda", {"jax": "0.10.3"})
    others.append(key())
    assert len({same, *others}) == 1 + len(others)


def test_the_key_does_not_depend_on_the_machine():
    """A process with one device and none of our settings finds the same."""
    code = "import test_compilers; print(test_compilers.key())"
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("JAX", "XLA"))}
    path = os.pathsep.join(
        map(str, (ROOT / "tests/referee", ROOT / "tests", ROOT / "book"))
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        env=clean | {"PYTHONPATH": path, "JAX_NUM_CPU_DEVICES": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == [key()]


def test_arguments_in_every_form_are_one_program():
    """Of a mesh of devices that are here, the placement alone counts."""
    x = matrix()
    here = jax.make_mesh((8,), ("X",), axis_types=(AxisType.Auto,))
    shape = jax.ShapeDtypeStruct(
        x.shape, "float32", sharding=NamedSharding(here, jax.P("X", None))
    )
    (drawn,) = programs.drawn(here, x)
    assert key() == key(x=shape) == key(fn=jax.jit(jnp.sin)) == key(mesh=here)
    assert (
        key()
        == lowering.lowered(
            compilers.target("h100:8"), jnp.sin, (drawn,), X8, None, {}, False, "f", ()
        ).key
    )


@pytest.mark.parametrize(
    ("mesh", "said"),
    [
        ({"X": 4}, "mesh X 4 has 4 devices, unlike h100:8"),
        ({}, "must be sizes by axis"),
        (8, "mesh = 8: must be sizes by axis"),
        ({"X": 0}, "X"),
    ],
)
def test_a_mesh_that_is_not_the_targets_is_refused(mesh, said):
    with pytest.raises(ValueError, match=said):
        key(mesh=mesh)


def test_a_mesh_must_be_named_once():
    x = jax.ShapeDtypeStruct((8, 8), "float32")
    with pytest.raises(ValueError, match="no argument has a mesh"):
        key(x=x)
    y = array("f32[I_Y]", {"Y": 8}, I=8)
    with pytest.raises(ValueError, match="the arguments have several"):
        compilers.compile_for("h100:8", lambda x, y: x, matrix(), y)


# -------------------------------------------------------------- what compilers said


def test_by_hand_on_h100_is_exactly_what_is_written():
    found = five("h100:8")
    assert found.against(FIVE).exact
    assert sum(one.collective.times for one in found.launches) == 9


def test_on_eight_devices_here_the_same_program_says_the_same():
    """Compiled in every run of the tests: what is kept is held against what is live."""
    here = five("here:8")
    assert not here.kept
    assert here.against(FIVE).exact
    assert here.memory.arguments == five("h100:8").memory.arguments == MB
    with pytest.raises(ValueError, match="does not say what is held at once"):
        _ = here.fits


def test_a_tpu_may_do_it_otherwise():
    """Whole-slice groups: the bytes of each collective are there, whatever it is."""
    found = five("tpu7x:2x2x1")
    assert found.target.devices == 8
    assert found.against(FIVE).ratio >= 1
    assert found.overlaps is None
    assert found.options == {"optimization_level": "O1"}


@pytest.mark.parametrize("machine", ["h100:8", "v5e:2x4", "tpu7x:2x2x1"])
@pytest.mark.parametrize("seed", [3, 9])
def test_random_programs_move_what_they_were_drawn_to(machine, seed):
    """Nested loops around collectives, as real text has them. On TPUs a ReduceScatter
    of an array as small as these truly is an AllReduce.
    """
    sizes = {"X": 4, "Y": 2}
    mesh = AbstractMesh((4, 2), ("X", "Y"))
    program, expected = hlo_programs.drawn(seed, sizes, rows=64, columns=128)
    fn, args = program(mesh)
    found = compilers.compile_for(machine, fn, *args, name=f"drawn{seed}")
    alike = {} if machine == "h100:8" else {"reduce_scatter": "all_reduce"}
    counts = Counter()
    for one in found.collectives:
        op = alike.get(one.op, one.op)
        counts[op, tuple(sorted(one.axes)), one.group, one.nbytes] += one.times
    wanted = Counter()
    for (op, *rest), times in expected.items():
        wanted[alike.get(op, op), *rest] += times
    assert counts == wanted
    assert sum(counts.values()) > 20


def test_a_gather_over_two_slices():
    x = array("f32[I_XY, J]", {"X": 2, "Y": 16}, I=1024, J=1024)
    found = gathered("v5e:4x4*2", x)
    sums = {row.axes: row.compiled_sent for row in found.against([]).by_axes().rows}
    assert {axis for axes in sums for axis in axes} == {"X", "Y"}


def test_out_of_memory_is_an_answer():
    """40 GiB of weights gathered on a device of 15.75 GiB."""
    x = array("f32[I_X, J]", X8, I=100 * 1024, J=100 * 1024)
    found = gathered("v5e:2x4", x, name="too_much")
    lost = found.out_of_memory
    assert lost.needed > 39 * GiB
    assert 15.7 * GiB < lost.available < 15.8 * GiB < found.target.memory
    assert not found.fits
    with pytest.raises(
        ValueError,
        match=r"too_much for v5e:2x4: out of memory: [\d.]+ GiB of 15.75 GiB",
    ):
        assert found.collectives
    with pytest.raises(ValueError, match="out of memory"):
        found.against([])


def layers(machine, **options):
    """Four layers of two products whose weights lie sharded: gathered before each."""
    w = array("bf16[L, D_X, F]", X8, L=4, D=2048, F=2048)
    x = array("bf16[B_X, D]", X8, B=8 * 1024, D=2048)

    def layer(h, w):
        return jnp.tanh(jnp.tanh(h @ w[0]) @ w[1]), None

    def forward(x, *w):
        return jax.lax.scan(layer, x, w)[0]

    said = {"out": "x[B_X, D]", "name": "layers"} | options
    return compilers.compile_for(machine, forward, x, w, w, **said)


def test_the_schedule_is_read():
    """XLA:TPU gathers the second weight during the first product, where windowed einsum
    does not cut both up; XLA:GPU puts the two gathers into one, and it hides nothing.
    """
    off = {"xla_tpu_enable_windowed_einsum_for_all_gather": False}
    tpu, gpu = layers("v5e:2x4", schedule=True, options=off), layers("h100:8")
    assert tpu.overlaps == (Overlapped("all_gather", pairs=1, hidden=1),)
    assert gpu.overlaps == (Overlapped("all_gather", pairs=1, hidden=0),)
    assert len({one.instruction for one in gpu.launches}) == 1
    weights = Collective("all_gather", "X", 2 * 2048 * 2048, 8, times=4)
    for found in (tpu, gpu):
        assert found.against([weights] * 2).exact
        assert found.flops == pytest.approx(4 * 2 * 2 * 1024 * 2048 * 2048, rel=1e-2)


def test_two_compilers_count_the_same_flops_of_a_transformer():
    """XLA:TPU writes its matmuls as convolutions, XLA:GPU leaves them to a library."""
    model = Model("small", 2, 1024, 4096, 8, 8, 128, 1000)
    fn, args = programs.gradients(fsdp("X"), model, AbstractMesh((8,), ("X",)), 8, 1024)
    gpu, tpu = (
        compilers.compile_for(machine, fn, *args, name="block").flops
        for machine in ("h100:8", "v5e:2x4")
    )
    again = model.layer_params - model.D * model.F  # its last product is not needed
    matmuls = (6 * model.layer_params + 2 * again) * model.layers * 1024
    scores = (12 + 4) * model.layers * 1024**2 * model.D
    assert gpu == pytest.approx(matmuls + scores, rel=0.005)  # and norms, softmax …
    assert tpu == pytest.approx(gpu, rel=0.01)


def test_every_kept_file_is_named_by_its_key_and_reads():
    """And was written by the compilers that the lock files pin."""
    for file in sorted(Path(str(golden_results.FOLDER)).glob("*.json")):
        row = json.loads(file.read_text())
        found = compilers.target(row["target"])
        begun = file.name.removesuffix(".json").rpartition(".")[2]
        assert row["key"].startswith(begun), file.name
        assert row["compiler"] == found.compiler, file.name
        assert file.read_text() == golden_results.text(row), (
            f"{file.name} was edited by hand"
        )


def test_kept_operations_come_back_in_their_order():
    """Each is kept once; a loop runs the same ones again."""
    rows = [
        json.loads(file.read_text())
        for file in sorted(Path(str(golden_results.FOLDER)).glob("*.json"))
    ]
    rows = [row for row in rows if "ops" in row]
    assert any(len(row["order"]) > len(row["ops"]) for row in rows)
    for row in rows:
        ops = golden_results.ops_in(row)
        assert [row["ops"].index(golden_results._ops_row((op,))["ops"][0]) for op in ops
                ] == row["order"]  # fmt: skip
        sent = sum(math.prod(one["loops"]) * one["count"] for one in row["launches"])
        assert sum(bool(op.op) for op in ops) == sent


def test_operations_of_a_tpu_want_its_schedule():
    with pytest.raises(ValueError, match="needs schedule=True"):
        gathered("v5e:2x4", ops=True)


# -------------------------------------------------- without a compiler, and with one


def test_a_program_that_changed_is_refused_in_one_line(bare):
    (bare / "h100-8.gather.000000000000.json").write_text("{}")
    with pytest.raises(compilers.NotCompiledError) as error:
        gathered("h100:8")
    said = str(error.value)
    assert said.startswith("gather for h100:8: no result of this program is kept")
    assert "the program changed (1 kept under its name)" in said
    assert "no compiler is here. `make referee WRITE=1` installs" in said
    assert "\n" not in said
    assert error.value._render_traceback_() == [f"NotCompiledError: {said}"]
    with pytest.raises(
        compilers.NotCompiledError, match=r"kept .*: it was never compiled"
    ):
        gathered("b200:8", name="another")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text[:40], "JSONDecodeError"),
        (lambda text: "[]", "TypeError"),
        (lambda text: text.replace('"key": "', '"key": "0'), "it has the key '0"),
        (lambda text: text.replace('"memory"', '"memories"'), "KeyError 'memory'"),
        (lambda text: text.replace('"group": 8', '"group": "8"'), "ValueError"),
        (lambda text: text.replace("all_gather", "all_together"), "op 'all_together'"),
    ],
)
def test_a_damaged_result_is_said(bare, monkeypatch, damage, said):
    monkeypatch.setattr(compiling, "_compiled", invented)
    monkeypatch.setenv(golden_results.REFEREE, str(bare))
    gathered("h100:8")
    (file,) = bare.glob("*.json")
    file.write_text(damage(file.read_text()))
    monkeypatch.delenv(golden_results.REFEREE)
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        gathered("h100:8")
    assert f"the kept result {file.name} cannot be read" in str(error.value)
    assert "make referee WRITE=1" in str(error.value)


def invented(program, *_):
    """A result with all that one can have."""
    loop = Collective("all_gather", "X", MB, 8, times=12)
    detail = {"loops": (3, 4), "asynchronous": True, "conditional": True}
    permute = Collective("permute", ("X", "Y"), 1.5, 8)
    launches = (
        CompiledCollective(loop, "bf16", "launch 1", **detail),
        CompiledCollective(replace(loop, nbytes=8.0), "f32", "launch 1", **detail),
        CompiledCollective(permute, "f32", "launch 2", shift=-1, senders=7),
        CompiledCollective(replace(permute, op="all_reduce"), "f32", "launch 3",
                           returns="bf16"),
    )  # fmt: skip
    return CompilerResult(
        name=program.name,
        target=program.target,
        mesh=dict(program.mesh.shape),
        launches=launches,
        flops=1e12,
        memory=CompiledMemory(1, 2, 3, 4, 5),
        out_of_memory=None,
        overlaps=(Overlapped("all_gather", 3, 2),),
        seconds=3.14,
        compiler=program.target.compiler,
        options=program.options,
        kept=False,
    )


def test_a_result_comes_back_as_it_was_kept(bare, monkeypatch):
    """Under the referee each program is compiled once; without it the file is read."""
    runs = []
    monkeypatch.setattr(
        compiling, "_compiled", lambda *a: runs.append(a) or invented(*a)
    )
    monkeypatch.setenv(golden_results.REFEREE, str(bare))
    first, second = gathered("h100:8"), gathered("h100:8")
    assert len(runs) == 1
    assert first == second
    monkeypatch.delenv(golden_results.REFEREE)
    found = gathered("h100:8")
    assert found == replace(first, kept=True)
    assert found.launches == invented(runs[0][0]).launches
    assert (found.seconds, found.memory.peak, found.fits) == (3.0, 5, True)
    said = str(found)
    assert "kept result of jax 0.10.2, jax-cuda13-pjrt" in said
    assert "AllGather over X: 24 times" in said
    assert "2 of 3 AllGather over a matmul" in said
    assert "compiled here" in str(first)


def test_equal_launches_are_one_line(bare, monkeypatch):
    def many(program, *_):
        one = invented(program)
        again = tuple(
            replace(c, instruction=f"launch {n}")
            for n, c in enumerate(one.launches[2:3] * 20)
        )
        return replace(one, launches=again)

    monkeypatch.setattr(compiling, "_compiled", many)
    monkeypatch.setenv(golden_results.REFEREE, str(bare))
    assert len(gathered("h100:8").launches) == 20
    (file,) = bare.glob("*.json")
    assert file.read_text().count('"count": 20') == 1
    assert len(json.loads(file.read_text())["launches"]) == 1


@pytest.mark.parametrize(
    ("message", "want"),
    [
        (
            "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required "
            "for HLO temporaries (19.12G) exceeds available HBM (15.75G).",
            OutOfMemory(round(19.12 * GiB), round(15.75 * GiB)),
        ),
        (
            "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in "
            "memory space hbm. Used 17.16G of 15.75G hbm. Exceeded hbm capacity by",
            OutOfMemory(round(17.16 * GiB), round(15.75 * GiB)),
        ),
        (
            "RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom: Ran out of memory in "
            "memory space vmem. Scoped allocation with size 18.36M and limit 16.00M "
            "exceeded scoped vmem limit by 2.36M.",
            OutOfMemory(round(18.36 * MB), 16 * MB, "VMEM"),
        ),
        ("RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem", None),
        ("INTERNAL: something else", None),
    ],
)
def test_verdicts_of_the_tpu_compiler(message, want):
    assert compiling._refused(message) == want


def test_too_few_devices_here():
    with pytest.raises(ValueError, match=r"there are 8 devices here.*_devices', 16\)"):
        gathered("here:16", matrix({"X": 16}))


def test_a_mesh_of_real_devices_in_the_program_is_refused():
    here = jax.make_mesh((4,), ("X",), axis_types=(AxisType.Auto,))
    other = jax.make_mesh((4,), ("X",), devices=jax.devices()[4:],
                          axis_types=(AxisType.Auto,))  # fmt: skip
    whole = NamedSharding(other, jax.P())
    x = matrix({"X": 4})
    with pytest.raises(ValueError, match=r"a mesh of local devices: use jax.P alone"):
        compilers.compile_for(
            "here:4", lambda x: jax.lax.with_sharding_constraint(x, whole), x, mesh=here
        )


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda _: None)
    for name in ("v5e:2x4", "h100:8"):
        said = devices.missing(compilers.target(name))
        assert said == f"the compiler for {name} is not installed here"
    assert devices.missing(compilers.target("here:8")) == ""
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda _: True)
    assert devices.missing(compilers.target("v5e:2x4")) == ""
