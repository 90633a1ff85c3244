"""Compiles for a machine that is not present, or looks up the kept result."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ...base.extras import missing

try:
    import jax
except ImportError as error:
    raise missing("shardmath.referee.compilers", error) from error

from ...base.units import GiB, KiB, MiB, flags
from ...collectives import Collective
from .. import hlo
from ..programs import Placement
from . import devices, golden_results
from .compiled import CompiledMemory, CompilerResult, OutOfMemory, Overlapped
from .lowering import Lowered, MeshLike, lowered
from .targets import HERE, Target, target

_LEVELS = {"O0": 9, "O1": 19, "O2": 29, "O3": 39}  # numbers of XLA's effort levels
_REFUSED = re.compile(
    r"total memory required for HLO temporaries \(([\d.]+)([KMG])\) exceeds available "
    r"HBM \(([\d.]+)([KMG])\)|Used ([\d.]+)([KMG]) of ([\d.]+)([KMG]) hbm"
)
_VMEM_REFUSED = re.compile(
    r"Scoped allocation with size ([\d.]+)([KMG]) and limit ([\d.]+)([KMG]) exceeded "
    r"scoped vmem limit"
)
_BYTES = {"K": KiB, "M": MiB, "G": GiB}


class NotCompiledError(RuntimeError):
    """No result of a program is kept, and its compiler is not installed here."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]  # a notebook shows only this line


def compile_for(
    machine: str | Target,
    fn: Callable,
    *args: object,
    mesh: MeshLike | None = None,
    out: Placement | None = None,
    options: Mapping[str, object] | None = None,
    schedule: bool = False,
    ops: bool = False,
    name: str | None = None,
    trips: Mapping[str, int] | None = None,
    stated: Mapping[str, Collective | Iterable[Collective]] | None = None,
) -> CompilerResult:
    """Compile `fn` for a machine that need not be present.

    If a result of exactly this program is kept, it is read. Otherwise the program is
    compiled, if its compiler is installed. The program is identified by a hash of its
    StableHLO, the target with its compiler versions, and the arguments below, none of
    which depends on the machine where this runs. ``"here:8"`` is always compiled.

    Args:
        machine: a target, or its name, such as ``"v5p:8x8x8"``; see `target`.
        fn: a JAX function, jitted or not. It must not contain a mesh of local devices;
            use `jax.P` alone, or an `AbstractMesh`.
        args: pytrees of shapes with their placement. The leaves are arrays of
            `sharding`, or JAX arrays or `jax.ShapeDtypeStruct` with a sharding on any
            mesh. Only the spec of that sharding counts. Nothing is allocated.
        mesh: size by axis name, for axes that the compiler shards over, or a mesh of
            JAX, whose axis types are kept. By default the mesh of the arguments. A
            single device, such as ``"v5e:1"``, needs none.
        out: the placement of the result. By default the compiler chooses it.
        options: options of the compiler, by name.
        schedule: for a TPU, whether to compile at the compiler's default level, so the
            schedule is that of a real run and its `overlaps` are listed. This takes
            several times as long as level O1, which is enough for counts and memory. A
            GPU has only one level.
        ops: whether to list each operation of the schedule too, in order. On a TPU this
            requires ``schedule=True``; `options` can then set another level.
        name: the program's name; by default the name of `fn`.
        trips, stated: see `hlo.read`.

    Returns:
        A CompilerResult. Its collectives and memory are those of one device. If the TPU
        compiler refuses the program because it does not fit, `out_of_memory` gives the
        bytes that it needs.

    Raises:
        ValueError: the target does not exist, the mesh and the target differ in size,
            the kept result can't be read, `ops` is neither True nor False, or `ops` is
            set for a TPU without `schedule`.
        NotCompiledError: no result of this program is kept, and its compiler is not
            installed. A notebook shows this error in one line.

    >>> from shardmath.sharding import array
    >>> x = array("f32[I_X, J]", {"X": 8}, I=1024, J=1024)
    >>> whole = compile_for("h100:8", lambda x: 2 * x, x, out="y[I, J]", name="whole")
    >>> print(*whole.collectives)
    AllGather over X (8 devices), 4.19 MB: each sends 3.67 MB
    """
    machine = target(machine)
    (ops,) = flags(ops=ops)
    if ops and machine.platform == "tpu" and not schedule:
        raise ValueError("ops = True: needs schedule=True on a TPU")
    told = dict(options or {})
    if machine.platform == "tpu" and not schedule:
        told = {"optimization_level": "O1"} | told
    schedule = machine.platform == "cuda" or (schedule and machine.platform == "tpu")
    reading = tuple(f"{sorted(one.items())}" for one in (trips, stated) if one)
    reading += ("ops",) if ops else ()
    name = re.sub(r"\W+", "", name or getattr(fn, "__name__", "")) or "program"
    program = lowered(machine, fn, args, mesh, out, told, schedule, name, reading)
    if machine.platform == HERE:
        return _compiled(program, trips, stated, ops)
    if folder := golden_results.referee():
        if golden_results.find(program, folder) is None:
            golden_results.write(
                _compiled(program, trips, stated, ops), program, folder
            )
        return replace(golden_results.find(program, folder), kept=False)
    if found := golden_results.find(program):
        return found
    if lacks := devices.missing(machine):
        raise NotCompiledError(_sought(program, lacks))
    return _compiled(program, trips, stated, ops)


def _sought(program: Lowered, lacks: str) -> str:
    """The message if a program's result is not kept and it can't be compiled here."""
    others = golden_results.others(program)
    changed = (
        f"the program changed ({others} kept under its name), or " if others else ""
    )
    return (
        f"{program.name} for {program.target.name}: no result of this program is kept "
        f"(key {program.key[:12]}): {changed}it was never compiled; {lacks}. `make "
        "referee WRITE=1` installs the compilers (Linux x86-64, 1.1 GB), compiles the "
        "program and keeps its result."
    )


def _compiled(program: Lowered, trips, stated, ops: bool) -> CompilerResult:
    """Compile the program, and read the result."""
    machine, sizes = program.target, dict(program.mesh.shape)
    order = devices.devices(machine, tuple(sizes.values()))
    with jax.default_device(order[0]):  # selects the compiler
        stablehlo = program.stablehlo()
    options, level = dict(program.options), "optimization_level"
    if level in options:
        options[level] = _LEVELS.get(options[level], options[level])
    found = CompilerResult(
        name=program.name,
        target=machine,
        mesh=sizes,
        launches=(),
        flops=None,
        memory=None,
        out_of_memory=None,
        overlaps=None,
        seconds=0.0,
        compiler=devices.installed(machine),
        options=program.options,
        kept=False,
    )
    began = time.process_time()
    try:
        made = stablehlo.compile(options or None, device_assignment=order)
    except ValueError as error:
        if "device_assignment" not in str(error):
            raise
        raise ValueError(
            f"{program.name} holds a mesh of local devices: use jax.P alone, or "
            "jax.sharding.AbstractMesh"
        ) from error
    except jax.errors.JaxRuntimeError as error:
        if (refused := _refused(str(error))) is None:
            raise
        seconds = time.process_time() - began
        return golden_results.plain(
            replace(found, out_of_memory=refused, seconds=seconds)
        )
    seconds, text = time.process_time() - began, made.as_text()
    return golden_results.plain(
        replace(
            found,
            launches=tuple(hlo.read(text, sizes, trips, stated)),
            memory=_memory(made, machine),
            flops=_flops(text, trips),
            overlaps=_overlapped(hlo.overlaps(text)) if program.schedule else None,
            seconds=seconds,
            ops=tuple(hlo.schedule(text, sizes, trips)) if ops else None,
        )
    )


def _flops(text: str, trips) -> float | None:
    """FLOPs of one device, or None if the text has an operation that is not counted."""
    try:
        return hlo.flops(text, trips)
    except ValueError:
        return None


def _memory(made: jax.stages.Compiled, machine: Target) -> CompiledMemory:
    found = made.memory_analysis()
    return CompiledMemory(
        arguments=found.argument_size_in_bytes,
        results=found.output_size_in_bytes,
        shared=found.alias_size_in_bytes,
        temporaries=found.temp_size_in_bytes,
        peak=None if machine.platform == HERE else found.peak_memory_in_bytes,
    )


def _refused(message: str) -> OutOfMemory | None:
    """The refusal in the text of an error, or None if it is another error."""
    hbm, vmem = _REFUSED.search(message), _VMEM_REFUSED.search(message)
    if not (found := hbm or vmem):
        return None
    needed, unit, available, its_unit = filter(None, found.groups())
    return OutOfMemory(
        round(float(needed) * _BYTES[unit]),
        round(float(available) * _BYTES[its_unit]),
        "HBM" if hbm else "VMEM",
    )


def _overlapped(pairs: list[hlo.HloOverlap]) -> tuple[Overlapped, ...]:
    ops = dict.fromkeys(pair.op for pair in pairs)
    return tuple(
        Overlapped(
            {"collective-permute": "permute"}.get(op, op.replace("-", "_")),
            sum(pair.op == op for pair in pairs),
            sum(pair.op == op and pair.matmuls > 0 for pair in pairs),
        )
        for op in ops
    )
