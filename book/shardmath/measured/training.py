"""Training runs that were published, read from ``training.csv`` and ``.toml``."""

import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.resources import files
from math import prod

from ..base.facts import Source
from ..base.tables import Absent
from ..hardware import chips
from ..hardware.networks import Cluster, Network, NVLinkDomain, Slices, Torus
from ..transformer import Model, model
from .rows import rows
from .run import SPLIT_SEQUENCES, Run

COUNTS = {  # words of the table for the conventions of `run.counted`
    "": "",
    "params": "6 · params",
    "params half": "6 · params, half attention",
    "params full": "6 · params, full attention",
    "matmuls half": "matmuls, half attention",
    "matmuls full": "matmuls, full attention",
    "matmuls windows": "matmuls, half of full attention",
    "twice": "layers forward twice, full attention",
}
_TABLES = tomllib.loads(files(__package__).joinpath("training.toml").read_text("utf-8"))
SOURCES = {key: Source(key, **row) for key, row in _TABLES["sources"].items()}


@cache
def _model(name: str, seq: int) -> Model:
    """A model of `transformer`, or one whose shape stands beside the rows."""
    if name not in _TABLES["models"]:
        return model(name)
    shape = dict(_TABLES["models"][name])
    positions = seq if shape.pop("learned", False) else shape.pop("positions", 0)
    shape["source"] = SOURCES[shape["source"]]
    return Model(name, **shape, positions=positions)


def _network(chip: chips.Chip, count: int, mesh: Mapping, key: str) -> Network | None:
    """The slices or nodes that `count` chips are in; None where nobody says."""
    if chip.vendor == "Google":
        slice_ = min(count // mesh.get("dcn", 1), int(chip.domain))
        torus = Torus(chip, tuple(_TABLES["slices"][chip.id][str(slice_)]))
        return Slices(torus, count // slice_, latency=0) if slice_ < count else torus
    node = max(n for n in range(1, int(chip.domain) + 1) if count % n == 0)
    if node == count:
        return NVLinkDomain(chip, node)
    egress = None
    if "scale_out_bandwidth" not in chip.facts:
        if key not in _TABLES["egress"]:
            return None
        egress = _TABLES["egress"][key]["value"]
    return Cluster(NVLinkDomain(chip, node), count // node, egress)


def _number(cell: str, unit: float = 1) -> float | None:
    return float(cell) * unit if cell else None


def _note(cell: str) -> str:
    """What the parts say that a cell names, "compiled; async_tp"."""
    return "; ".join(_TABLES["notes"][key] for key in cell.split("; ") if key)


def _settings(note: str, seqs: str, mesh: Mapping[str, int]) -> dict[str, object]:
    """What the parts of a note say besides, as fields of a `Run`."""
    found: dict[str, object] = {}
    for part in note.split("; "):
        found |= _TABLES["settings"].get(part, {})
    microbatch = found.pop("microbatch", None)
    if microbatch and seqs:
        groups = prod(n for axis, n in mesh.items() if axis in SPLIT_SEQUENCES)
        found["microbatches"] = int(seqs) // groups // microbatch
    return found


def _kernel(source: str, chip: chips.Chip) -> str:
    """Which attention kernel the runs of a source used on a chip."""
    row = _TABLES["attention"].get(source, {})
    return row["kernel"] if chip.id in row.get("chips", ()) else ""


def _run(system, name, chip, count, axes, seqs, seq, precision, remat, *rest) -> Run:
    """A row of the table as a record."""
    tokens, tflops, step, mfu, hfu, counts, key, note = rest
    mesh = {axis: int(n) for axis, n in (part.split("=") for part in axes.split())}
    run = Run(
        system=system,
        model=_model(name, int(seq)),
        chip=chips.find(chip),
        chips=int(count),
        mesh=mesh,
        seqs=int(seqs) if seqs else None,
        seq=int(seq),
        precision=precision,
        remat=remat,
        tokens_per_second=_number(tokens),
        flops_per_second=_number(tflops, 1e12),
        step_seconds=_number(step),
        mfu=_number(mfu),
        hfu=_number(hfu),
        counts=COUNTS[counts],
        source=SOURCES[key],
        note=_note(note),
        attention_kernel=_kernel(key, chips.find(chip)),
        **_settings(note, seqs, mesh),
    )
    if not run.covered or note == "uneven":
        return run
    return replace(run, network=_network(run.chip, run.chips, mesh, key))


def family(source: str) -> str:
    """Sources that tell the same story, by the key of one of them."""
    return _TABLES["families"].get(source, source)


RUNS = tuple(_run(*row) for row in rows("training.csv"))


def ratios(runs: Iterable[Run] = RUNS) -> dict[str, tuple[float, ...]]:
    """Measured time over that of the math alone, by kind of parallelism, least first.

    Runs whose step takes a time that nobody can tell are left out. `Run.bound` has
    the network beside the math, and takes some tenths of a second to derive.

    >>> found = ratios()
    >>> print(f"{min(found['FSDP × tensor']):.2f} to {max(found['FSDP × tensor']):.2f}")
    1.29 to 9.43
    """
    found: dict[str, list[float]] = {}
    for run in runs:
        with suppress(Absent):
            ratio = run.over_math
            found.setdefault(run.parallelism, []).append(ratio)
    return {kind: tuple(sorted(some)) for kind, some in found.items()}
