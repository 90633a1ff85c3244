"""Predictions for your own runs, from a file with the columns of the book's tables.

A table with a metric in each row describes measured servers; see `predict_serving`. A
table of training runs has the columns of `reading.COLUMNS`, under these names or others
that people use (`ALIASES`), in any order. Cells are read leniently if only one meaning
is possible, and each answer says what was assumed. An extra column is `expert_tensor`
(Megatron's --expert-tensor-parallel-size). If it holds 1, each expert is on one chip,
although other matrices are split. For a row that cannot be read or contradicts itself,
the answer is the reason, and the other rows are still answered.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..base import units
from ..base.tables import Table, table
from ..base.units import short_repr, shortened, show
from ..training import Prediction
from .filling import AGAIN, filled
from .predict_serving import predict_rows
from .reading import COLUMNS, read_run
from .run import AXES, FOLDED
from .serving_answers import ServingAnswer
from .serving_rows import ALIASES as OF_SERVERS
from .serving_rows import COLUMNS as SERVER_COLUMNS
from .serving_rows import UNITS, is_serving
from .table_file import MORE, cell, read_file, read_table, renamed

ALIASES = {  # other names of columns
    "framework": "system", "gpu": "chip", "accelerator": "chip", "chip_type": "chip",
    "gpus": "chips", "devices": "chips", "num_gpus": "chips", "parallelism": "mesh",
    "batch": "seqs", "global_batch": "seqs", "global_batch_size": "seqs",
    "global_batch_seqs": "seqs", "gbs": "seqs", "sequences": "seqs",
    "seq_len": "seq", "sequence": "seq", "sequence_length": "seq",
    "batch_tokens": "tokens_of_step", "dtype": "precision", "format": "precision",
    "recompute": "remat", "recomputation": "remat", "activation_checkpointing": "remat",
    "tokens_per_s_per_chip": "tokens", "tokens_per_second": "tokens",
    "tokens_per_gpu": "tokens", "tflops_per_chip": "tflops", "tflops_per_gpu": "tflops",
    "seconds": "step", "step_time": "step", "step_seconds": "step",
    "iteration_time": "step", "mbs": "microbatch", "micro_batch": "microbatch",
    "micro_batch_size": "microbatch", "per_device_batch": "microbatch",
    "etp": "expert_tensor", "expert_tensor_parallel_size": "expert_tensor",
    "vp": "chunks", "vpp": "chunks", "virtual_stages": "chunks", "notes": "note",
}  # fmt: skip
AXIS_ALIASES = {  # other names of mesh axes
    "tp": "tensor", "pp": "pipeline", "cp": "context", "ep": "expert_state",
    "dp": "zero1", "sp": "", "vp": "", "zero": "zero1", "zero_1": "zero1",
    "zero_2": "zero2",
    "zero3": "fsdp", "zero_3": "fsdp", "dcn_dp": "dcn", "ddp": "data",
    "ep_state": "expert_state", "experts": "expert",
}  # fmt: skip
HEADS = {key: axis or key for key, axis in AXIS_ALIASES.items()} | ALIASES
FORMATS = {  # other names of precisions
    "bfloat16": "bf16", "amp_bf16": "bf16", "float16": "fp16", "half": "fp16",
    "float32": "fp32", "float8": "fp8", "mxfp8": "fp8", "amp_fp8": "fp8",
    "nvfp4": "fp4", "mxfp4": "fp4",
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """The answer for one row.

    Args:
        row: the number of the row in the file, from 1; the head is not counted.
        name: the run in words, as far as it could be read.
        prediction: the prediction of its step; None if there is none.
        measured: measured seconds of a step; None if the row does not state them.
        assumed: settings that the row omits and a rule filled in.
        warnings: what makes the row unusual.
        why: why there is no prediction; "" if there is one.
    """

    row: int
    name: str
    prediction: Prediction | None = None
    measured: float | None = None
    assumed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    why: str = ""

    @property
    def plain(self) -> dict[str, object]:
        """The answer as plain data, as `shardmath predict --json` prints it."""
        found: dict[str, object] = {"row": self.row, "name": self.name}
        if self.prediction is None:
            return {**found, "why": self.why}
        likely = self.prediction
        found |= {
            "bound": likely.bound,
            "predicted": likely.seconds,
            "low": likely.low,
            "high": likely.high,
        }
        if self.measured is not None:
            found["measured"] = self.measured
        return {
            **found,
            "unit": "s",
            "parts": dict(likely.parts),
            "assumed": list(self.assumed),
            "warnings": list(self.warnings),
        }


def predict_file(path: str | Path) -> tuple[Answer | ServingAnswer, ...]:
    """An answer for every row of a file, in the order of the file.

    Args:
        path: the path of a table with a head, separated by commas, semicolons or tabs,
            or of a JSON list of objects. Lines that begin with # are skipped.

    Raises:
        ValueError: `path` is no path, there is no such file, or it is not such a table.
            The message says what is missing.
    """
    return predict_text(read_file(path), str(path))


def predict_text(
    text: str, name: str = "the table"
) -> tuple[Answer | ServingAnswer, ...]:
    """An answer for every row of a table that is given as text.

    >>> (one,) = predict_text('''model,chip,chips,mesh,seqs,seq,precision,tokens
    ... llama 3 8b,H100,8,fsdp=8,16,8192,bf16,6667''')
    >>> print(f"{one.measured:.2f}", 0.7 < one.prediction.seconds / one.measured < 1.3)
    2.46 True

    Raises:
        ValueError: the text is not such a table.
    """
    name = shortened(units.text("name", name))
    read = read_table(text, name, f"a table with {_needed()}")
    served = renamed(read, OF_SERVERS)
    if is_serving(key for row in served for key in row if key):
        return predict_rows(served)
    rows = renamed(read, HEADS)
    if not rows:
        raise ValueError(f"{name}: has no rows; must be a table with {_needed()}")
    missing = {"model", "chip", "chips", "seq"} - {key for row in rows for key in row}
    if missing:
        raise ValueError(
            f"{name}: has no column {', '.join(sorted(missing))}; must be a table with "
            f"{_needed()}"
        )
    return tuple(answer(at, row) for at, row in enumerate(rows, 1))


def answer(row: int, cells: Mapping[str, object]) -> Answer:
    """The answer for one row.

    Args:
        row: the number of the row.
        cells: the cells of the row, by column.
    """
    given = {key: cell(value) for key, value in cells.items() if isinstance(key, str)}
    name = " on ".join(
        part
        for part in (
            given.get("model", ""),
            f"{given.get('chips', '')} {given.get('chip', '')}".strip(),
        )
        if part
    )
    try:
        if MORE in cells:
            more = len(cells[MORE])
            raise ValueError(f"the row has {more} more cells than the head")
        read, said = _understood(given)
        run = read_run(read)
        found = filled(run)
        step = found.step
        likely = step.predicted(run.software)
        if run.network is not None:
            likely = replace(likely, bound=run.bound.lower)
    except ValueError as error:
        return Answer(row, name, why=str(error).partition("\n")[0])
    unsure = [what for what in found.assumed if what in AGAIN.values()]
    warnings = [one.removeprefix("warning: ") for one in likely.warnings]
    warnings += [f"assumed, because the row does not say: {what}" for what in unsure]
    warnings += [] if found.fits else [step.memory.verdict]
    measured = run.seconds if run.timed else None
    assumed = (*said, *found.assumed)
    return Answer(row, str(run), likely, measured, assumed, tuple(warnings))


def to_table(answers: tuple[Answer | ServingAnswer, ...]) -> Table:
    """Answers side by side."""
    head = ("row", "run", "bound", "likely", "8 of 10", "measured", "error")
    rows = []
    for one in answers:
        said = one.plain
        if "why" in said:
            rows.append((one.row, one.name, "–", "–", said["why"], "–", "–"))
            continue
        unit, scale = said["unit"], 1.0
        if unit in UNITS:
            unit, scale = "s", UNITS[unit]
        bound, likely, low, high = (
            show(scale * said[name], unit)
            for name in ("bound", "predicted", "low", "high")
        )
        took = said.get("measured")
        error = f"{said['predicted'] / took - 1:+.1%}" if took else "–"
        took = show(scale * took, unit) if took else "–"
        rows.append((one.row, one.name, bound, likely, f"{low} to {high}", took, error))
    return table(head, rows)


def _needed() -> str:
    return (
        f"columns among {', '.join(COLUMNS)}; of servers, among "
        f"{', '.join(SERVER_COLUMNS)}"
    )


def _understood(given: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """A row as `read_run` takes it, and what was assumed on the way."""
    row, said = dict(given), []
    row["precision"] = _precision(row.get("precision", ""))
    if row.get("tokens_of_step") and not row.get("seqs"):
        row["seqs"] = _sequences(row)
    if row.get("remat", "").lower() in ("no", "off", "false", "none"):
        row["remat"] = "none"
    ways = dict(_axes(row))
    chips = int(row["chips"]) if re.fullmatch(r"\d{1,15}", row.get("chips", "")) else 0
    said += _completed(ways, chips, row.get("expert_tensor") == "1")
    row["mesh"] = " ".join(f"{axis}={n}" for axis, n in ways.items())
    return row, tuple(said)


def _precision(text: str) -> str:
    words = re.split(r"[\s,/]+", text.lower())
    known = (FORMATS.get(word.replace("-", "_"), "") for word in words)
    return next(filter(None, known), text.lower() if text else "")


def _sequences(row: Mapping[str, str]) -> str:
    try:
        tokens, seq = float(row["tokens_of_step"]), float(row["seq"])
    except ValueError:
        raise ValueError(
            f"batch_tokens = {short_repr(row['tokens_of_step'])}: must be a number of "
            "tokens"
        ) from None
    if seq <= 0 or tokens % seq:
        raise ValueError(
            f"batch_tokens = {short_repr(row['tokens_of_step'])}: must be a multiple "
            f"of seq = {short_repr(row['seq'])}"
        )
    return f"{tokens / seq:.0f}"


def _axes(row: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """The mesh axes of a row, from its cell `mesh` or from a column for each axis."""
    cell = re.sub(r"\s+x\s+|[×,;]", " ", row.get("mesh", ""))
    pairs = [part.partition("=")[::2] for part in cell.split()]
    if not pairs:
        pairs = [(axis, row[axis]) for axis in AXES if row.get(axis)]
    for key, size in pairs:
        axis = AXIS_ALIASES.get(key.lower(), key.lower())
        if not axis:
            continue
        if axis not in AXES:
            known = ", ".join((*AXES, *filter(AXIS_ALIASES.get, AXIS_ALIASES)))
            raise ValueError(f"mesh axis {short_repr(key)}: must be one of {known}")
        if not re.fullmatch(r"\d{1,15}(\.0+)?", size) or int(float(size)) < 1:
            raise ValueError(
                f"mesh = {short_repr(row.get('mesh', ''))}: must be the size of each "
                'kind of parallelism, as in "fsdp=16 tensor=8"'
            )
        yield axis, int(float(size))


def _completed(ways: dict[str, int], chips: int, alone: bool) -> Iterator[str]:
    """Fill in the axes that a row leaves out, and say so.

    Megatron does not name its data-parallel ways, which use the remaining chips. Its
    experts fold over other axes; see `_folded`.
    """
    if not ways or not chips:
        return
    total = math.prod(ways.values())
    experts = [axis for axis in ways if axis.startswith("expert")]
    named = [axis for axis in ways if axis in FOLDED]
    copies = [axis for axis in ("zero1", "zero2", "fsdp", "data") if axis in ways]
    if len(experts) != 1 or named or (total == chips and not alone):
        if total != chips and chips % total == 0 and not copies:
            ways["zero1"] = chips // total
            yield _ranks_left(chips // total)
        return
    (axis,) = experts
    size = ways.pop(axis)
    dense = math.prod(ways.values())
    if not copies and chips % dense == 0:
        ways["zero1"], copies = chips // dense, ["zero1"]
        dense = chips
    if dense != chips:
        ways[axis] = size
        return
    (kind, *_) = copies
    folded = _folded(ways, size, ways[kind], alone)
    inside = math.prod(ways[one] for one in folded)
    for one in folded:
        ways[f"{one.partition('_')[0]}_experts"] = ways.pop(one)
    both = math.gcd(size // inside, ways[kind])
    ways[kind] //= both
    name = "expert_shards" if kind == "fsdp" else "expert_state"
    if both > 1:
        ways[name] = both
    where = [f"{both} of the data-parallel ways"] if both > 1 else []
    where += [f"{inside} ways of {' and '.join(folded)} parallelism"] if folded else []
    if where:
        yield f"experts over {' and '.join(where)}"
    if kind == "zero1" and 1 < ways[kind] < chips:
        yield _ranks_left(ways[kind])
    tensor = math.prod(n for one, n in ways.items() if one == "tensor")
    if both * inside < size or (alone and tensor > 1):
        yield (
            f"{size} expert-parallel ways do not divide into whole mesh axes: "
            f"{max(tensor, size // both // inside)} chips share each expert here"
        )
    if ways[kind] == 1:
        del ways[kind]


def _ranks_left(count: int) -> str:
    return f"ZeRO-1 over the {count} data-parallel ways that are left"


def _folded(
    ways: Mapping[str, int], size: int, ranks: int, alone: bool
) -> tuple[str, ...]:
    """The axes inside the data-parallel ways over which experts fold.

    If each expert is on one chip, Megatron lays its expert-parallel ways over tensor,
    context and data parallelism together, the innermost first. By default each expert
    is split like every other matrix instead. Then the expert-parallel ways are laid
    over context and data parallelism.

    Args:
        ways: the sizes of the mesh axes, without the expert axis.
        size: the number of expert-parallel ways.
        ranks: the number of data-parallel ways.
        alone: whether the row says that an expert is on one chip.
    """
    kinds = {axis: axis.partition("_")[0] for axis, n in ways.items() if n > 1}
    tensor = [axis for axis, kind in kinds.items() if kind == "tensor"]
    context = [axis for axis, kind in kinds.items() if kind == "context"]
    whole = [tensor + context, tensor]
    for axes in whole if alone else [context, [], *whole]:
        inside = math.prod(ways[axis] for axis in axes)
        if size % inside == 0 and ranks % (size // inside) == 0:
            return tuple(axes)
    return ()
