"""Kept results, one small JSON file each, formatted for readable diffs."""

import itertools
import json
import math
import os
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from importlib.resources import files
from pathlib import Path

from ...base.units import short_repr
from ...collectives import Collective
from ..hlo import CompiledCollective, ScheduledOp
from .compiled import CompiledMemory, CompilerResult, OutOfMemory, Overlapped
from .lowering import Lowered

FOLDER = files(__package__).joinpath("golden")
REFEREE = "SHARDMATH_REFEREE"  # if set: compile everything, and keep it in this folder
_DETAIL = ("asynchronous", "conditional", "shift", "senders", "returns")


def referee() -> Path | None:
    """The folder that `make referee` writes to, or None if it is not running."""
    folder = os.environ.get(REFEREE)
    return Path(folder) if folder else None


def file_name(lowered: Lowered) -> str:
    """The file name of a program's result: target, name and the start of its key."""
    target = lowered.target.name.replace(":", "-").replace("*", "-slices-")
    return f"{target}.{lowered.name}.{lowered.key[:12]}.json"


def find(lowered: Lowered, folder: Path | None = None) -> CompilerResult | None:
    """The result of a program, if it is kept in `folder`, or None.

    Args:
        folder: by default, the folder of the book's results.

    Raises:
        ValueError: the file is damaged. The message gives its name and the error.
    """
    name = file_name(lowered)
    file = (folder or FOLDER).joinpath(name)
    if not file.is_file():
        return None
    try:
        row = json.loads(file.read_text("utf-8"))
        if row["key"] != lowered.key:
            raise ValueError(f"it has the key {short_repr(row['key'])}")
        return _read(row, lowered)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"{type(error).__name__} {error}"
        raise ValueError(
            f"the kept result {name} cannot be read ({what}); `make referee WRITE=1` "
            "writes it again"
        ) from error


def others(lowered: Lowered) -> int:
    """How many results are kept under the same name for the same target."""
    beginning = file_name(lowered).removesuffix(".json")[:-12]
    names = (one.name for one in FOLDER.iterdir())
    return sum(name.startswith(beginning) for name in names)


def write(found: CompilerResult, lowered: Lowered, folder: Path) -> None:
    """Write a result to a file, with sorted keys and a line for each launch."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / file_name(lowered)
    draft = file.with_suffix(f".{os.getpid()}")  # another process may use the file
    draft.write_text(text(_row(found) | {"key": lowered.key}), "utf-8")
    draft.replace(file)


def text(row: dict[str, object]) -> str:
    """`row` as JSON, with a line for each entry, and for each dict in a list."""
    lines = []
    for name, value in sorted(row.items()):
        if isinstance(value, list) and value and isinstance(value[0], dict):
            items = ",\n  ".join(json.dumps(one, sort_keys=True) for one in value)
            lines.append(f" {json.dumps(name)}: [\n  {items}\n ]")
        else:
            lines.append(f" {json.dumps(name)}: {json.dumps(value, sort_keys=True)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def plain(found: CompilerResult) -> CompilerResult:
    """`found` with only the details that are kept, so it equals the kept result."""
    launches = tuple(_collectives(list(_launches(found))))
    return replace(found, launches=launches, seconds=_rounded(found.seconds))


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.1g}")


def _row(found: CompilerResult) -> dict[str, object]:
    row = {
        "compiler": dict(found.compiler),
        "flops": found.flops,
        "launches": list(_launches(found)),
        "memory": found.memory and asdict(found.memory),
        "mesh": list(found.mesh.items()),
        "name": found.name,
        "options": dict(found.options),
        "out_of_memory": found.out_of_memory and asdict(found.out_of_memory),
        "overlaps": found.overlaps and [asdict(one) for one in found.overlaps],
        "seconds": _rounded(found.seconds),
        "target": found.target.name,
    }
    return row if found.ops is None else row | _ops_row(found.ops)


def _ops_row(ops: tuple[ScheduledOp, ...]) -> dict[str, object]:
    """Each operation once, without default values, and the order in which they run."""
    usual = {one.name: one.default for one in fields(ScheduledOp)}
    said = [
        {name: value for name, value in asdict(op).items() if value != usual[name]}
        for op in ops
    ]
    rows = list({json.dumps(one): one for one in said}.values())
    return {"ops": rows, "order": [rows.index(one) for one in said]}


def _launches(found: CompilerResult) -> Iterator[dict[str, object]]:
    """A row for each launch. Equal launches share a row with their count."""
    rows: dict[str, dict[str, object]] = {}
    for _, launch in itertools.groupby(found.launches, lambda one: one.instruction):
        arrays = list(launch)
        first = arrays[0]
        row: dict[str, object] = {
            "op": first.collective.op,
            "axes": " ".join(first.collective.axes),
            "group": first.collective.group,
            "arrays": [[one.dtype, one.collective.nbytes] for one in arrays],
            "loops": list(first.loops),
            "count": 1,
        }
        row |= {name: getattr(first, name) for name in _DETAIL if getattr(first, name)}
        known = rows.setdefault(json.dumps(row), row)
        if known is not row:
            known["count"] += 1
    yield from rows.values()


def _read(row: dict, lowered: Lowered) -> CompilerResult:
    lost, overlaps = row["out_of_memory"], row["overlaps"]
    return CompilerResult(
        name=lowered.name,
        target=lowered.target,
        mesh=dict(lowered.mesh.shape),
        launches=tuple(_collectives(row["launches"])),
        flops=row["flops"],
        memory=row["memory"] and CompiledMemory(**row["memory"]),
        out_of_memory=lost and OutOfMemory(**lost),
        overlaps=overlaps and tuple(Overlapped(**one) for one in overlaps),
        seconds=row["seconds"],
        compiler=row["compiler"],
        options=row["options"],
        kept=True,
        ops=ops_in(row),
    )


def ops_in(row: dict) -> tuple[ScheduledOp, ...] | None:
    """The operations of a kept result, in order, or None if they are not kept."""
    if "ops" not in row:
        return None
    ops = [ScheduledOp(**one) for one in row["ops"]]
    return tuple(ops[n] for n in row["order"])


def _collectives(rows: list[dict]) -> Iterator[CompiledCollective]:
    """The records of every launch, with numbers instead of HLO's names."""
    number = itertools.count(1)
    for row in rows:
        for _ in range(row["count"]):
            launch = f"launch {next(number)}"
            for dtype, nbytes in row["arrays"]:
                axes = tuple(row["axes"].split())
                times = math.prod(row["loops"])
                yield CompiledCollective(
                    Collective(row["op"], axes, nbytes, row["group"], times),
                    dtype,
                    launch,
                    loops=tuple(row["loops"]),
                    **{name: row[name] for name in _DETAIL if name in row},
                )
