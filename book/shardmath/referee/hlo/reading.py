"""Lists every collective that a compiled module runs."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ...base.units import positive_int, short_repr
from ...collectives import Collective
from .groups import FORMS
from .text import Computation, Instruction, Module, parse, taken_apart
from .transfers import (
    Transfer,
    can_be_half,
    chain,
    moves,
    over_dcn,
    rings_closed,
    transfer,
)
from .trip_counts import (
    Arguments,
    body_arguments,
    callee_arguments,
    condition_and_body,
    turns_of,
    unknown,
)

CALLS = {"fusion", "call", "custom-call", "async-start", "call-start"}


@dataclass(frozen=True)
class CompiledCollective:
    """One collective of a compiled program, and how the compiler runs it.

    Args:
        collective: the record; its `times` is the product of `loops`.
        dtype: HLO's name of the element type, such as "bf16".
        instruction: HLO's name. Records that share it are arrays of one launch.
        source: the JAX operation it comes from, or "" if the text does not say.
        asynchronous: whether other work may run between its start and its end.
        loops: iterations of the while loops around it, outermost first.
        conditional: whether it is in a branch, which may or may not be taken.
        shift: for a permute along a ring, by how many places it shifts; otherwise None.
        senders: for a permute in which not all devices send, how many devices send. The
            record still counts its bytes for every device.
        returns: the result's dtype if it differs from `dtype`. The text does not say
            which of the two is sent, so the bytes are those of `dtype`.
    """

    collective: Collective
    dtype: str
    instruction: str
    source: str = ""
    asynchronous: bool = False
    loops: tuple[int, ...] = ()
    conditional: bool = False
    shift: int | None = None
    senders: int | None = None
    returns: str = ""

    def __str__(self) -> str:
        notes = [f"{self.dtype}, returned as {self.returns}"]
        notes = notes if self.returns else [self.dtype]
        notes += ["asynchronous"] if self.asynchronous else []
        notes += [f"loops of {' × '.join(map(str, self.loops))}"] if self.loops else []
        notes += ["in a branch"] if self.conditional else []
        notes += [f"shift {self.shift:+d}"] if self.shift else []
        notes += [f"{self.senders} devices send"] if self.senders else []
        return f"{self.collective} ({', '.join(notes)})"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def collectives_in(
    text: str,
    mesh: Mapping[str, int],
    trips: Mapping[str, int] | None = None,
    stated: Mapping[str, Collective | Iterable[Collective]] | None = None,
) -> list[Collective]:
    """The collectives that a compiled program runs, without the compiler's details.

    See `read` for the arguments, the errors, and how often a collective counts.

    >>> text = '''HloModule jit_f, num_partitions=8
    ... ENTRY %main (x: f32[4]) -> f32[16] {
    ...   %x = f32[4]{0} parameter(0)
    ...   ROOT %y = f32[16]{0} all-gather(%x), replica_groups=[2,4]<=[4,2]T(1,0)
    ... }'''
    >>> for found in collectives_in(text, {"X": 4, "Y": 2}):
    ...     print(found.op, found.axes, found.nbytes, found.times)
    all_gather ('X',) 64.0 1
    """
    return [found.collective for found in read(text, mesh, trips, stated)]


def read(
    text: str,
    mesh: Mapping[str, int],
    trips: Mapping[str, int] | None = None,
    stated: Mapping[str, Collective | Iterable[Collective]] | None = None,
) -> list[CompiledCollective]:
    """Every collective of a compiled program, one record per array, in program order.

    A collective in a loop counts in every iteration, and an asynchronous pair counts
    once. All branches of a conditional count as if they were taken. An instruction that
    sends several arrays gives a record for each. Groups of one device send nothing and
    are left out. If the members of a group differ along an axis but do not fill it, the
    record names the axis, and its `group` is smaller than the axis. A permute counts
    its bytes for every device, even for devices that send nothing; see `senders`.

    Args:
        text: what ``compiled.as_text()`` returns.
        mesh: size by axis name in the order of the devices (row-major), as `mesh.shape`
            of the JAX mesh that the program is compiled for. Slices joined by a
            data-centre network must vary slowest.
        trips: name of a `while` instruction → its number of iterations, for loops whose
            end depends on data.
        stated: name of an instruction → what one run of it sends, for instructions
            whose text does not say this: ``ragged-all-to-all``, and kernels that send.

    Raises:
        ValueError: the text is not optimised HLO; the mesh does not match the program's
            devices; a loop with collectives has a number of iterations that is neither
            known nor in `trips`; `trips` or `stated` names an unknown instruction; or a
            collective can't be read and is not `stated`, or is not reached from the
            entry. Because of these errors, no collective is lost, except those of
            kernels that name no mesh axis.

    >>> text = '''HloModule jit_f, num_partitions=4
    ... ENTRY %main (a: f32[8]) -> f32[32] {
    ...   %a = f32[8]{0} parameter(0)
    ...   ROOT %g = f32[32]{0} all-gather(%a), replica_groups=[1,4]<=[4], dimensions={0}
    ... }'''
    >>> (one,) = read(text, {"X": 4})
    >>> print(one.collective)
    AllGather over X (4 devices), 128 bytes: each sends 96 bytes
    """
    module = parse(text)
    program = _Program(module, _checked(module, mesh), _turns(trips), _stated(stated))
    check_names(module, {**program.trips, **program.stated})
    found = _walk(program, module.entry, unknown)
    _nothing_lost(program)
    return found


@dataclass(frozen=True)
class _Program:
    """A module, its mesh, and the names of the computations reached so far."""

    module: Module
    mesh: dict[str, int]
    trips: dict[str, int]
    stated: dict[str, tuple[Collective, ...]]
    reached: set[str] = field(default_factory=set)


def _checked(module: Module, mesh: Mapping[str, int]) -> dict[str, int]:
    if not isinstance(mesh, Mapping):
        given = short_repr(mesh)
        raise ValueError(f"mesh {given}: must be sizes by axis name, like mesh.shape")
    sizes = dict(
        zip(mesh, positive_int(**{str(a): n for a, n in mesh.items()}), strict=True)
    )
    devices, compiled = math.prod(sizes.values()), module.partitions
    slices = devices > compiled and any(map(over_dcn, module.instructions))
    if devices % compiled or (devices != compiled and not slices):
        raise ValueError(
            f"mesh {short_repr(sizes)} has {devices} devices, but the program is "
            f"compiled for {compiled}"
        )
    return sizes


def _turns(trips: Mapping[str, int] | None) -> dict[str, int]:
    for name, turns in (trips or {}).items():
        if turns:  # 0 is allowed
            positive_int(**{f"trips[{short_repr(name)}]": turns})
    return dict(trips or {})


def _stated(stated) -> dict[str, tuple[Collective, ...]]:
    found = {}
    for name, said in (stated or {}).items():
        found[name] = (said,) if isinstance(said, Collective) else tuple(said)
        if not all(isinstance(one, Collective) for one in found[name]):
            raise ValueError(
                f"stated[{short_repr(name)}] = {short_repr(said)}: must be Collectives"
            )
    return found


def check_names(module: Module, names: Iterable[str]) -> None:
    """Raise if the text lacks an instruction that the caller names."""
    unknown = set(names) - {line.name for line in module.instructions}
    if unknown:
        raise ValueError(f"the text has no instruction %{', %'.join(sorted(unknown))}")


def _walk(
    program: _Program, where: Computation, arguments: Arguments, fused: bool = False
) -> list[CompiledCollective]:
    """Collectives of one run of `where` and of everything that it calls."""
    program.reached.add(where.name)
    moved = _transfers(program, where, fused)
    found: list[CompiledCollective] = []
    for line in where.instructions.values():
        with taken_apart(line):
            if line.name in program.stated:
                found += _said(program.stated[line.name], where, line)
            elif line.name in moved:
                found += _records(where, line, moved[line.name])
            else:
                found += _called(program, where, line, arguments)
    return found


def _called(
    program: _Program, where: Computation, line: Instruction, arguments: Arguments
) -> list[CompiledCollective]:
    """Collectives of the computations that `line` runs, repeated for loops."""
    module = program.module
    found: list[CompiledCollective] = []
    if line.opcode == "while":
        condition, body = condition_and_body(module, line)
        known = body_arguments(module, where, line, arguments)
        inside = _walk(program, body, known)
        tested = _walk(program, condition, known)
        if inside or tested:
            holds = "collectives"
            turns = turns_of(module, where, line, arguments, program.trips, holds)
            found += _repeated(inside, turns) + _repeated(tested, turns + 1)
    elif line.opcode == "conditional":
        for name in line.callees:
            branch = _walk(program, module.computations[name], unknown)
            found += [replace(one, conditional=True) for one in branch]
    elif line.opcode in CALLS:
        known = callee_arguments(module, where, line, arguments)
        for name in line.callees:
            callee = module.computations[name]
            called = _walk(program, callee, known, line.opcode == "fusion")
            if line.opcode.endswith("-start"):
                called = [replace(one, asynchronous=True) for one in called]
            found += called
    return found


def _repeated(inside: list[CompiledCollective], turns: int) -> list[CompiledCollective]:
    return [
        replace(
            one,
            loops=(turns, *one.loops),
            collective=replace(one.collective, times=one.collective.times * turns),
        )
        for one in inside
        if turns
    ]


def _transfers(
    program: _Program, where: Computation, fused: bool
) -> dict[str, Transfer | None]:
    """Name of a line → what it sends, or None if it sends nothing."""
    found: dict[str, Transfer | None] = {}
    halves: dict[str, Transfer] = {}
    for line in where.instructions.values():
        with taken_apart(line):
            if not moves(line) or line.name in program.stated:
                continue
            found[line.name] = one = transfer(
                program.module, where, line, program.mesh, fused
            )
        if one and can_be_half(line):
            halves[line.name] = one
            found[line.name] = None
    return found | rings_closed(halves, program.mesh)


def _records(
    where: Computation, line: Instruction, moved: Transfer | None
) -> list[CompiledCollective]:
    """What one instruction sends, as a record for each array."""
    place = chain(where, line)
    if place == "continued" or moved is None:
        return []
    starts = line.opcode == "send" or line.opcode.endswith("-start")
    asynchronous = bool(place) or (starts and '"is_sync":true' not in line.rest)
    return [
        CompiledCollective(
            Collective(moved.op, moved.axes, nbytes, moved.group),
            dtype,
            line.name,
            source=_source(line),
            asynchronous=asynchronous,
            shift=moved.shift,
            senders=moved.senders,
            returns=moved.returns,
        )
        for dtype, nbytes in moved.arrays
    ]


def _said(
    stated: tuple[Collective, ...], where: Computation, line: Instruction
) -> list[CompiledCollective]:
    """Records of what `line` sends according to the caller."""
    arrays = [a for operand in where.operands(line) for a in operand.arrays]
    dtype = arrays[0][0] if arrays else ""
    return [CompiledCollective(one, dtype, line.name, _source(line)) for one in stated]


def _source(line: Instruction) -> str:
    return line.attribute(r'\bop_name="((?:[^"\\]|\\.)*)"') or ""


def _nothing_lost(program: _Program) -> None:
    """Raise if a collective in the text has not been reached."""
    begun, continued = set(), {}
    for where in program.module.computations.values():
        for line in filter(moves, where.instructions.values()):
            if where.name not in program.reached:
                raise ValueError(
                    f"%{line.name} ({line.opcode}) is in %{where.name}, which no path "
                    "from the entry reaches; it may be called in an unknown way"
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
            "does not begin anywhere in the text"
        )
