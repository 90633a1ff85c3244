"""Read the rows of a table of training runs into records.

The book's table, ``training.csv``, has the columns of `COLUMNS`, and `shardmath
predict` reads files with the same columns. A column that a file lacks counts as empty,
and other columns are ignored.
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
from ..training.job import MOST_TOKENS
from ..transformer import Experts, Model, model
from .run import SPLIT_SEQUENCES, Run

COLUMNS = {  # the columns of the table, and what their cells hold
    "system": "the framework",
    "model": "a name for `transformer.model`, or of a shape in training.toml",
    "chip": "a name for `chips.find`",
    "chips": "the number of chips",
    "mesh": 'the size of each kind of parallelism, as in "fsdp=16 tensor=8"',
    "seqs": "the sequences of a step, on all chips",
    "seq": "the tokens of each sequence",
    "precision": "the format of the matmuls in the layers",
    "remat": "what is kept of a layer; see `transformer.recompute`",
    "tokens": "the tokens/s of one chip",
    "tflops": "the 10^12 FLOPs/s of one chip",
    "step": "the seconds of a step",
    "mfu": "the MFU as a share",
    "hfu": "the HFU as a share",
    "counts": "how the FLOPs are counted, a key of `COUNTS`",
    "source": "a key of training.toml, or free text",
    "note": 'keys of training.toml with "; " between them, or free text',
    "microbatch": "the sequences of a microbatch on one data-parallel rank",
    "chunks": "the chunks of layers per stage (virtual stages)",
    "schedule": "the schedule of a pipeline",
    "remat_share": "the share of the layers to which `remat` applies",
    "attention": '"unfused", "older" for a kernel made for an older chip, or empty',
    "overlap": 'the exchanges that are overlapped, as in "tensor experts"',
    "formats": 'what differs from `precision`, as in "weights=fp8 gradients=fp32"',
    "node_limit": "the most nodes that the experts of one token may be in",
    "offloads": "the activations that are kept in host memory",
    "release": "the release of the software",
    "memory": "the GiB at the peak",
    "loss": '"pieces" if it is computed for some of the tokens at a time',
}
COUNTS = {  # the table's words for the conventions of `run.counted`
    "": "",
    "params": "6 · params",
    "params half": "6 · params, half attention",
    "params full": "6 · params, full attention",
    "matmuls half": "matmuls, half attention",
    "matmuls full": "matmuls, full attention",
    "matmuls windows": "matmuls, half of full attention",
    "twice": "layers forward twice, full attention",
}
APART = 0.03  # the largest relative difference of step time and token rate
PARAMETER_BYTES = 2  # the least bytes per parameter of a chip's share of the weights
TABLES = tomllib.loads(files(__package__).joinpath("training.toml").read_text("utf-8"))
SOURCES = {key: Source(key, **row) for key, row in TABLES["sources"].items()}


def read_run(row: Mapping[str, str]) -> Run:
    """Read one row of the table.

    Args:
        row: the cells of the row, by the names of `COLUMNS`.

    Raises:
        ValueError: a cell that cannot be read, or cells that contradict one another.
            The message names the column, what was given and what would be valid.

    >>> row = {"model": "llama 3 8b", "chip": "H100", "chips": "8", "mesh": "fsdp=8",
    ...        "seqs": "16", "seq": "8192", "precision": "bf16", "tokens": "6667"}
    >>> run = read_run(row)
    >>> print(run, round(run.seconds, 2))
    Llama 3.1 8B on 8 H100, FSDP 2.46
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
        raise ValueError(
            f"counts = {short_repr(cell['counts'])}: must be one of {known}"
        )
    precision = cell["precision"] or "bf16"
    _ = chip.flops[precision]  # raises with the peaks that are published
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
    """Raise if rates, step, batch and memory contradict one another."""
    if (run.seqs or 1) * run.seq > MOST_TOKENS:
        raise ValueError(
            f"seqs = {short_repr(run.seqs)}, seq = {short_repr(run.seq)}: a step has "
            f"at most {MOST_TOKENS:,} tokens"
        )
    if run.seqs and run.step_seconds and run.tokens_per_second:
        told = run.tokens / (run.chips * run.tokens_per_second)
        if abs(told / run.step_seconds - 1) > APART:
            raise ValueError(
                f"step = {run.step_seconds:g} s contradicts tokens = "
                f"{run.tokens_per_second:g} tokens/s per chip, which means "
                f"{told:.4g} s for {run.tokens:,} tokens on {run.chips:,} chips"
            )
    if run.timed and run.seqs and run.math > run.seconds:
        raise ValueError(
            f"a step of {run.seconds:.4g} s is shorter than its math at the peak, "
            f"{run.math:.4g} s: check model, batch, precision and rates"
        )
    groups = math.prod(n for axis, n in run.mesh.items() if axis in SPLIT_SEQUENCES)
    if run.seqs and run.seqs < groups:
        raise ValueError(
            f"seqs = {run.seqs}: must be at least {groups}, one for each data-parallel "
            f"rank of mesh = {short_repr(dict(run.mesh))}"
        )
    least = PARAMETER_BYTES * run.model.params / run.chips
    if least > run.chip.memory_bytes:
        raise ValueError(
            f"model = {run.model.name}: {least / 2**30:,.0f} GiB of weights per chip "
            f"do not fit in the {run.chip.memory_bytes / 2**30:,.0f} GiB of each of "
            f"{run.chips} {run.chip.name}; must have more chips"
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
    """The pairs of a cell such as "fsdp=16 tensor=8"."""
    found = {}
    for part in cell[name].split():
        key, equals, value = part.partition("=")
        if not (key and equals and value):
            raise ValueError(
                f"{name} = {short_repr(cell[name])}: must be {COLUMNS[name]}"
            )
        if key in found:
            raise ValueError(
                f"{name} = {short_repr(cell[name])}: names {short_repr(key)} twice"
            )
        found[key] = value
    return found


def _microbatches(
    cell: Mapping[str, str], seqs: int | None, mesh: Mapping[str, int]
) -> int | None:
    """The number of microbatches of a step, from the sequences of each."""
    if not cell["microbatch"] or not seqs:
        return None
    size = _whole(cell, "microbatch")
    groups = math.prod(n for axis, n in mesh.items() if axis in SPLIT_SEQUENCES)
    if seqs % (groups * size):
        raise ValueError(
            f"microbatch = {size}: must divide the sequences of a data-parallel rank, "
            f"but there are {seqs} on {groups} ranks"
        )
    return seqs // (groups * size)


@cache
def _model(name: str, seq: int) -> Model:
    """A model of `transformer`, or one whose shape is in training.toml."""
    if name not in TABLES["models"]:
        return model(name)
    shape = dict(TABLES["models"][name])
    positions = seq if shape.pop("learned", False) else shape.pop("positions", 0)
    shape["source"] = SOURCES[shape["source"]]
    if "experts" in shape:
        shape["experts"] = Experts(**shape["experts"])
    return Model(name, **shape, positions=positions)


def _source(text: str) -> Source:
    return Source(text or "given", text or "given by the reader", "", "measured", "")


def _note(cell: str) -> str:
    """A cell such as "compiled; async_tp" with its keys replaced by their notes."""
    parts = (key for key in cell.split("; ") if key)
    return "; ".join(TABLES["notes"].get(key, key) for key in parts)


def _network(
    chip: chips.Chip, count: int, mesh: Mapping[str, int], source: str
) -> Network | None:
    """The slices or nodes of `count` chips; None if no source states them."""
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
    """The family of a source: one key for all sources that report the same runs."""
    return TABLES["families"].get(source, source)


def read_runs(rows: Iterable[Mapping[str, str]]) -> tuple[Run, ...]:
    """Read the rows of the table.

    Raises:
        ValueError: as `read_run`.
    """
    return tuple(map(read_run, rows))
