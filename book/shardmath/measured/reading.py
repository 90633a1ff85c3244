"""Rows of a table of training runs, read into records of runs.

The table of this book, ``training.csv``, has these columns; `shardmath predict` reads
files with the same ones. Columns that a file lacks are empty, and others are ignored.
"""

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files

from ..base.facts import Source
from ..base.units import positive, positive_int, short_repr
from ..hardware import chips
from ..hardware.networks import Cluster, Network, NVLinkDomain, Slices, Torus
from ..transformer import Model, model
from .run import SPLIT_SEQUENCES, Run

COLUMNS = {  # of the table, and what they hold
    "system": "the framework",
    "model": "a name that `transformer.model` knows, or a shape of training.toml",
    "chip": "a name that `chips.find` knows",
    "chips": "how many",
    "mesh": 'ways of each kind of parallelism, as in "fsdp=16 tensor=8"',
    "seqs": "sequences of a step, on all chips",
    "seq": "tokens of each",
    "precision": "of the matmuls in the layers",
    "remat": "what is kept of a layer, see `transformer.recompute`",
    "tokens": "tokens/s of one chip",
    "tflops": "10^12 FLOPs/s of one chip",
    "step": "seconds of a step",
    "mfu": "as a share",
    "hfu": "as a share",
    "counts": "how the FLOPs are counted, a key of `COUNTS`",
    "source": "a key of training.toml, or free text",
    "note": 'keys of training.toml with "; " between, or free text',
    "microbatch": "sequences of a microbatch on one data-parallel rank",
    "chunks": "chunks of layers on a stage (virtual stages)",
    "schedule": "of a pipeline",
    "remat_share": "of the layers, that `remat` applies to",
    "attention": '"unfused", "older" for a kernel made for an older chip, or empty',
    "overlap": 'exchanges that are overlapped, as in "tensor experts"',
    "formats": 'what differs from `precision`, as in "weights=fp8 gradients=fp32"',
    "node_limit": "nodes that the experts of one token may be in",
    "offloads": "activations that wait in the memory of the host",
    "release": "of the software",
    "memory": "GiB at the peak",
    "loss": '"pieces" if it is computed for some of the tokens at a time',
}
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
APART = 0.03  # step and rate of tokens that differ by more contradict each other
PARAMETER_BYTES = 2  # the least that a chip's share of the weights takes
TABLES = tomllib.loads(files(__package__).joinpath("training.toml").read_text("utf-8"))
SOURCES = {key: Source(key, **row) for key, row in TABLES["sources"].items()}


def read_run(row: Mapping[str, str]) -> Run:
    """A row of the table as a record.

    Args:
        row: cells by column, of `COLUMNS`.

    Raises:
        ValueError: a cell that cannot be read, or cells that contradict one another;
            names the column, what was given and what would be valid.

    >>> row = {"model": "llama 3 8b", "chip": "H100", "chips": "8", "mesh": "fsdp=8",
    ...        "seqs": "16", "seq": "8192", "precision": "bf16", "tokens": "6667"}
    >>> run = read_run(row)
    >>> print(run, round(run.seconds, 2))
    : Llama 3.1 8B on 8 H100, FSDP 2.46
    """
    cell = {name: str(row.get(name) or "").strip() for name in COLUMNS}
    for name in ("model", "chip", "chips", "seq"):
        if not cell[name]:
            raise ValueError(f"{name}: is empty; must be {COLUMNS[name]}")
    seq, count = _whole(cell, "seq"), _whole(cell, "chips")
    mesh = {
        axis: _whole({"mesh": n}, "mesh") for axis, n in _pairs(cell, "mesh").items()
    }
    seqs = _whole(cell, "seqs") if cell["seqs"] else None
    chip = chips.find(cell["chip"])
    if cell["counts"] not in COUNTS:
        known = ", ".join(repr(key) for key in COUNTS)
        raise ValueError(f"counts = {short_repr(cell['counts'])}: must be of {known}")
    precision = cell["precision"] or "bf16"
    _ = chip.flops[precision]  # says which peaks are published
    run = Run(
        system=cell["system"],
        model=_model(cell["model"], seq),
        chip=chip,
        chips=count,
        mesh=mesh,
        seqs=seqs,
        seq=seq,
        precision=precision,
        remat=cell["remat"],
        tokens_per_second=_number(cell, "tokens"),
        flops_per_second=_number(cell, "tflops", 1e12),
        step_seconds=_number(cell, "step"),
        mfu=_number(cell, "mfu"),
        hfu=_number(cell, "hfu"),
        counts=COUNTS[cell["counts"]],
        source=SOURCES.get(cell["source"]) or _source(cell["source"]),
        note=_note(cell["note"]),
        microbatches=_microbatches(cell, seqs, mesh),
        schedule=cell["schedule"],
        chunks=_whole(cell, "chunks") if cell["chunks"] else None,
        formats=_pairs(cell, "formats"),
        node_limit=_whole(cell, "node_limit") if cell["node_limit"] else None,
        offloads=cell["offloads"],
        release=cell["release"],
        attention_kernel=cell["attention"],
        overlap=tuple(cell["overlap"].split()),
        remat_share=_number(cell, "remat_share"),
        memory=_number(cell, "memory", 2**30),
        loss=cell["loss"],
    )
    _check(run)
    if run.covered and cell["note"] != "uneven":
        network = _network(chip, count, mesh, cell["source"])
        run = replace(run, network=network)
    return run


def _check(run: Run) -> None:
    """Do rates, step, batch and memory agree with one another?"""
    if run.seqs and run.step_seconds and run.tokens_per_second:
        told = run.tokens / (run.chips * run.tokens_per_second)
        if abs(told / run.step_seconds - 1) > APART:
            raise ValueError(
                f"step = {run.step_seconds:g} s contradicts tokens = "
                f"{run.tokens_per_second:g} tokens/s of a chip, which makes "
                f"{told:.4g} s of {run.tokens:,} tokens on {run.chips:,} chips"
            )
    if run.timed and run.seqs and run.math > run.seconds:
        raise ValueError(
            f"a step of {run.seconds:.4g} s is shorter than its math at the peak, "
            f"{run.math:.4g} s: check model, batch, precision and rates"
        )
    groups = math.prod(n for axis, n in run.mesh.items() if axis in SPLIT_SEQUENCES)
    if run.seqs and run.seqs < groups:
        raise ValueError(
            f"seqs = {run.seqs}: are fewer than the {groups} data-parallel ranks of "
            f"mesh = {short_repr(dict(run.mesh))}"
        )
    least = PARAMETER_BYTES * run.model.params / run.chips
    if least > run.chip.memory_bytes:
        raise ValueError(
            f"model = {run.model.name}: {least / 2**30:,.0f} GiB of weights a chip do "
            f"not fit in the {run.chip.memory_bytes / 2**30:,.0f} GiB of "
            f"{run.chips} {run.chip.name}; name more chips"
        )


def _whole(cell: Mapping[str, str], name: str) -> int:
    try:
        number = float(cell[name].replace(",", ""))
        return positive_int(**{name: int(number) if number == int(number) else number})[
            0
        ]
    except (ValueError, OverflowError):
        raise ValueError(
            f"{name} = {short_repr(cell[name])}: must be a whole number from 1"
        ) from None


def _number(cell: Mapping[str, str], name: str, unit: float = 1) -> float | None:
    if not cell[name]:
        return None
    try:
        (found,) = positive(**{name: float(cell[name])})
    except ValueError:
        raise ValueError(
            f"{name} = {short_repr(cell[name])}: must be a number above 0, "
            f"{COLUMNS[name]}"
        ) from None
    return found * unit


def _pairs(cell: Mapping[str, str], name: str) -> dict[str, str]:
    """A cell such as "fsdp=16 tensor=8"."""
    found = {}
    for part in cell[name].split():
        key, equals, value = part.partition("=")
        if not (key and equals and value):
            raise ValueError(
                f"{name} = {short_repr(cell[name])}: must be {COLUMNS[name]}"
            )
        if key in found:
            raise ValueError(f"{name} = {short_repr(cell[name])}: names {key} twice")
        found[key] = value
    return found


def _microbatches(
    cell: Mapping[str, str], seqs: int | None, mesh: Mapping[str, int]
) -> int | None:
    """Microbatches of a step, from the sequences of one of them."""
    if not cell["microbatch"] or not seqs:
        return None
    size = _whole(cell, "microbatch")
    groups = math.prod(n for axis, n in mesh.items() if axis in SPLIT_SEQUENCES)
    if seqs % (groups * size):
        raise ValueError(
            f"microbatch = {size}: {seqs} sequences on {groups} data-parallel ranks "
            "are no whole number of such microbatches"
        )
    return seqs // (groups * size)


@cache
def _model(name: str, seq: int) -> Model:
    """A model of `transformer`, or one whose shape stands beside the rows."""
    if name not in TABLES["models"]:
        return model(name)
    shape = dict(TABLES["models"][name])
    positions = seq if shape.pop("learned", False) else shape.pop("positions", 0)
    shape["source"] = SOURCES[shape["source"]]
    return Model(name, **shape, positions=positions)


def _source(text: str) -> Source:
    return Source(text or "given", text or "given by the reader", "", "measured", "")


def _note(cell: str) -> str:
    """What the parts say that a cell names, "compiled; async_tp"; other text stays."""
    parts = (key for key in cell.split("; ") if key)
    return "; ".join(TABLES["notes"].get(key, key) for key in parts)


def _network(
    chip: chips.Chip, count: int, mesh: Mapping[str, int], source: str
) -> Network | None:
    """The slices or nodes that `count` chips are in; None where nobody says."""
    if chip.vendor == "Google":
        slice_ = min(count // mesh.get("dcn", 1), int(chip.domain))
        sides = TABLES["slices"].get(chip.id, {}).get(str(slice_))
        if sides is None:
            return None
        torus = Torus(chip, tuple(sides))
        return Slices(torus, count // slice_, latency=0) if slice_ < count else torus
    node = max(n for n in range(1, int(chip.domain) + 1) if count % n == 0)
    if node == count:
        return NVLinkDomain(chip, node)
    egress = None
    if "scale_out_bandwidth" not in chip.facts:
        if source not in TABLES["egress"]:
            return None
        egress = TABLES["egress"][source]["value"]
    return Cluster(NVLinkDomain(chip, node), count // node, egress)


def family(source: str) -> str:
    """Sources that tell the same story, by the key of one of them."""
    return TABLES["families"].get(source, source)


def read_runs(rows: Iterable[Mapping[str, str]]) -> tuple[Run, ...]:
    """Rows of the table as records.

    Raises:
        ValueError: as `read_run`.
    """
    return tuple(map(read_run, rows))
