"""Read from compiled HLO text which collectives a program runs, and how often.

    text = jax.jit(f).lower(…).compile().as_text()
    hlo.collectives_in(text, {"X": 4, "Y": 2})

What is read is what the compiler decided, after all its passes: it may have merged,
split, widened, narrowed or replaced what was written. A gather done as permutes in a
loop is reported as permutes. Traffic inside custom kernels is not in the text.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..collectives import Collective
from .groups import FORMS
from .moves import chain, move, moves, over_dcn
from .text import Computation, Instruction, Module, parse
from .trip_counts import (
    Arguments,
    body_arguments,
    callee_arguments,
    condition_and_body,
    trip_count,
    unknown,
)

_CALLS = {"fusion", "call", "custom-call", "async-start", "call-start"}


@dataclass(frozen=True)
class Compiled:
    """One collective of a compiled program, and how the compiler runs it.

    Args:
        collective: the record; its `times` is the product of `loops`.
        dtype: HLO's name of the element type, such as "bf16".
        instruction: HLO's name. Records that share it are arrays of one launch.
        source: the JAX operation it comes from, "" where the text does not say.
        asynchronous: whether other work may run between its start and its end.
        loops: turns of the while loops around it, outermost first.
        conditional: whether it stands in a branch, which may or may not be taken.
        shift: of a permute along a ring, by how many places; None for others.
    """

    collective: Collective
    dtype: str
    instruction: str
    source: str = ""
    asynchronous: bool = False
    loops: tuple[int, ...] = ()
    conditional: bool = False
    shift: int | None = None

    def __str__(self) -> str:
        notes = [self.dtype]
        notes += ["asynchronous"] if self.asynchronous else []
        notes += [f"loops of {' × '.join(map(str, self.loops))}"] if self.loops else []
        notes += ["in a branch"] if self.conditional else []
        notes += [f"shift {self.shift:+d}"] if self.shift else []
        return f"{self.collective} ({', '.join(notes)})"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def collectives_in(
    text: str, mesh: Mapping[str, int], trips: Mapping[str, int] | None = None
) -> list[Collective]:
    """The collectives that a compiled program runs, without the compiler's detail.

    What counts how often, arguments and errors: see `read`.

    >>> text = '''HloModule jit_f, num_partitions=8
    ... ENTRY %main (x: f32[4]) -> f32[16] {
    ...   %x = f32[4]{0} parameter(0)
    ...   ROOT %y = f32[16]{0} all-gather(%x), replica_groups=[2,4]<=[4,2]T(1,0)
    ... }'''
    >>> for found in collectives_in(text, {"X": 4, "Y": 2}):
    ...     print(found.op, found.axes, found.nbytes, found.times)
    all_gather ('X',) 64.0 1
    """
    return [found.collective for found in read(text, mesh, trips)]


def read(
    text: str, mesh: Mapping[str, int], trips: Mapping[str, int] | None = None
) -> list[Compiled]:
    """Every collective of a compiled program, one record per array, in program order.

    Bodies of loops count as often as they run, asynchronous pairs once, all branches of
    a conditional as if taken. An instruction that moves several arrays gives a record
    for each. Groups of one device move nothing and are left out. Where the members of a
    group differ along an axis but do not fill it, the record names the axis and `group`
    is smaller than its size.

    Args:
        text: what ``compiled.as_text()`` returns.
        mesh: size by axis name in the order of the devices (row-major), `mesh.shape` of
            the JAX mesh that the program is compiled for. Where slices are joined by a
            data-centre network, they must vary slowest.
        trips: turns of a loop by the name of its `while` instruction, for loops whose
            end depends on data.

    Raises:
        ValueError: text that is not optimised HLO; a mesh of another size; a loop with
            collectives whose turns are neither known nor in `trips`; a collective that
            cannot be read, or that no path from the entry reaches. None is ever lost.
    """
    module = parse(text)
    _check_size(module, mesh)
    program = _Program(module, dict(mesh), dict(trips or {}))
    found = _walk(program, module.entry, unknown)
    _nothing_lost(program)
    return found


@dataclass(frozen=True)
class _Program:
    """A module, the mesh it runs on, and which of its computations were reached."""

    module: Module
    mesh: dict[str, int]
    trips: dict[str, int]
    reached: set[str] = field(default_factory=set)


def _check_size(module: Module, mesh: Mapping[str, int]) -> None:
    if not isinstance(mesh, Mapping):
        raise ValueError(f"mesh {mesh!r}: must be sizes by axis name, like mesh.shape")
    devices, compiled = math.prod(mesh.values()), module.partitions
    slices = devices > compiled and any(map(over_dcn, module.instructions))
    if devices % compiled or (devices != compiled and not slices):
        raise ValueError(
            f"mesh {dict(mesh)} has {devices} devices, the program is compiled for "
            f"{compiled}"
        )


def _walk(
    program: _Program, where: Computation, arguments: Arguments, fused: bool = False
) -> list[Compiled]:
    """Collectives of one run of `where`, those of what it calls included."""
    module = program.module
    program.reached.add(where.name)
    found: list[Compiled] = []
    for line in where.instructions.values():
        if moves(line):
            found += _records(program, where, line, fused)
        elif line.opcode == "while":
            condition, body = condition_and_body(module, line)
            known = body_arguments(module, where, line, arguments)
            inside = _walk(program, body, known)
            tested = _walk(program, condition, known)
            if inside or tested:
                turns = _turns(program, where, line, arguments)
                found += _repeated(inside, turns) + _repeated(tested, turns + 1)
        elif line.opcode == "conditional":
            for name in line.callees:
                branch = _walk(program, module.computations[name], unknown)
                found += [replace(one, conditional=True) for one in branch]
        elif line.opcode in _CALLS:
            known = callee_arguments(module, where, line, arguments)
            for name in line.callees:
                callee = module.computations[name]
                called = _walk(program, callee, known, line.opcode == "fusion")
                if line.opcode.endswith("-start"):
                    called = [replace(one, asynchronous=True) for one in called]
                found += called
    return found


def _turns(
    program: _Program, where: Computation, loop: Instruction, arguments: Arguments
) -> int:
    if loop.name in program.trips:
        return program.trips[loop.name]
    turns = trip_count(program.module, where, loop, arguments)
    if turns is None:
        raise ValueError(
            f"the loop %{loop.name} holds collectives, and its turns cannot be told "
            f'from the text: give a number for it, trips={{"{loop.name}": …}}'
        )
    return turns


def _repeated(inside: list[Compiled], turns: int) -> list[Compiled]:
    return [
        replace(
            one,
            loops=(turns, *one.loops),
            collective=replace(one.collective, times=one.collective.times * turns),
        )
        for one in inside
        if turns
    ]


def _records(
    program: _Program, where: Computation, line: Instruction, fused: bool
) -> list[Compiled]:
    """What one instruction moves: a record for each array."""
    place = chain(where, line)
    found = move(program.module, where, line, program.mesh, fused)
    if place == "continued" or found is None:
        return []
    starts = line.opcode == "send" or line.opcode.endswith("-start")
    return [
        Compiled(
            Collective(found.op, found.axes, nbytes, found.group),
            dtype,
            line.name,
            source=line.attribute(r'\bop_name="((?:[^"\\]|\\.)*)"') or "",
            asynchronous=bool(place) or (starts and '"is_sync":true' not in line.rest),
            shift=found.shift,
        )
        for dtype, nbytes in found.arrays
    ]


def _nothing_lost(program: _Program) -> None:
    """Raise where a collective of the text was not come across."""
    begun, continued = set(), {}
    for where in program.module.computations.values():
        for line in filter(moves, where.instructions.values()):
            if where.name not in program.reached:
                raise ValueError(
                    f"%{line.name} ({line.opcode}) stands in %{where.name}, which no "
                    "path from the entry reaches: the text calls it in a way not read"
                )
            known_by = (r"(channel_id=\d+)", FORMS, r'chain_id="(\w+)"')
            link = (line.opcode, *map(line.attribute, known_by))
            place = chain(where, line)
            if place == "begun":
                begun.add(link)
            elif place == "continued":
                continued[link] = line
    for link in continued.keys() - begun:
        line = continued[link]
        raise ValueError(
            f"%{line.name} ({line.opcode}) continues an asynchronous collective that "
            "begins nowhere in the text"
        )
