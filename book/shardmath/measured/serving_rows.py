"""Rows of measured servers. Each row has one measured number and its server.

A row is a JSON object or a row of a table with a head. Public tables use many names for
the same columns (`ALIASES`), and some describe a server in more detail than others. The
model (or checkpoint), the chip and the metric must be given. A table may also have a
column for each metric ("ttft_ms", "tpot_ms"). Then each row of this table becomes
several rows here.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

from ..base.units import short_repr
from ..hardware import chips
from ..hardware.chips import Chip
from ..inference import Layout
from ..transformer import Model, model
from .table_file import cell, number

LONGEST = 500  # characters of a cell that describes the parallelism
COLUMNS = {  # the columns of a row, and what their cells hold
    "source": "the source of the row, in free text",
    "row": "the name of the row in its source",
    "model": "a name for `transformer.model`",
    "checkpoint": "the weights, such as nvidia/DeepSeek-R1-NVFP4",
    "chip": "a name for `chips.find`",
    "count": "the chips of the whole system",
    "parallelism": 'the size of each kind, as in "tp=8 ep=8", or an object of sizes',
    "mode": "how requests come: agg (a closed loop), disagg, open loop, offline, …",
    "engine": "vllm, sglang, trtllm or another name",
    "engine_version": "the version of the engine",
    "measured": "the day, as in 2026-02-05",
    "weights": "the format of the weights",
    "gemm": "the format of the matmuls",
    "kv": "the format of the cache",
    "concurrency": "the requests in flight",
    "rate": "the requests that come per second",
    "budget": "the most tokens of one engine step",
    "input": "the mean tokens of a prompt",
    "output": "the mean tokens of an answer",
    "metric": "ttft, tpot, itl, e2e or tokens, perhaps with _mean, _p50, _p90, _p99",
    "value": "the measured value",
    "unit": "the unit of the value: ms, s or tokens/s",
    "note": "free text",
}
ALIASES = {  # other names of columns
    "name": "row", "id": "row", "model_name": "model", "model_id": "model",
    "hf_model": "checkpoint", "gpu": "chip", "accelerator": "chip", "gpu_type": "chip",
    "hardware": "chip", "device": "chip", "system": "chip", "chips": "count",
    "gpus": "count", "num_gpus": "count", "n_gpus": "count", "devices": "count",
    "num_accelerators": "count", "mesh": "parallelism", "layout": "parallelism",
    "serving_mode": "mode", "scenario": "mode", "framework": "engine",
    "backend": "engine", "runtime": "engine", "version": "engine_version",
    "backend_version": "engine_version", "precision": "weights",
    "quantization": "weights", "quant": "weights", "dtype": "weights",
    "weight_precision": "weights", "gemm_quant_mode": "gemm", "compute": "gemm",
    "activations": "gemm", "kv_cache": "kv", "kv_cache_dtype": "kv",
    "kv_dtype": "kv", "kv_precision": "kv", "kvcache_quant_mode": "kv",
    "cache": "kv", "conc": "concurrency", "max_concurrency": "concurrency",
    "clients": "concurrency", "users": "concurrency", "batch": "concurrency",
    "batch_size": "concurrency", "request_rate": "rate", "qps": "rate", "rps": "rate",
    "max_num_batched_tokens": "budget", "token_budget": "budget", "isl": "input",
    "input_len": "input", "input_length": "input", "input_tokens": "input",
    "prompt": "input", "prompt_tokens": "input", "prompt_len": "input",
    "osl": "output", "output_len": "output", "output_length": "output",
    "output_tokens": "output", "generated": "output", "gen_len": "output",
    "units": "unit", "notes": "note", "measured_value": "value",
    "tensor_parallel": "tp", "tensor_parallel_size": "tp", "tp_size": "tp",
    "tensor": "tp", "pipeline_parallel_size": "pp", "pp_size": "pp",
    "pipeline": "pp", "data_parallel_size": "dp", "dp_size": "dp",
    "attention_dp_size": "dp", "dp_attention": "dp", "expert_parallel_size": "ep",
    "ep_size": "ep", "moe_ep_size": "ep", "expert": "ep", "moe_tp_size": "moe_tp",
}  # fmt: skip
METRICS = {  # words for metrics, and what they mean here
    "ttft": "ttft", "time_to_first_token": "ttft", "first_token": "ttft",
    "tpot": "tpot", "time_per_output_token": "tpot", "itl": "itl", "tbt": "itl",
    "inter_token_latency": "itl", "e2e": "e2e", "latency": "e2e", "e2el": "e2e",
    "e2e_latency": "e2e", "request_latency": "e2e", "end_to_end": "e2e",
    "output_tokens_s": "tokens", "output_tokens_per_second": "tokens",
    "output_throughput": "tokens", "throughput": "tokens", "tokens_s": "tokens",
    "tokens_per_second": "tokens", "tokens_per_s": "tokens", "tok_s": "tokens",
    "output_tok_s": "tokens", "tokens": "tokens", "decode_throughput": "tokens",
}  # fmt: skip
SECONDS = ("ttft", "tpot", "itl", "e2e")
STATISTICS = {
    "mean": "mean", "avg": "mean", "average": "mean", "median": "p50", "med": "p50",
    "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99",
}  # fmt: skip
UNITS = {"ms": 1e-3, "s": 1.0, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "sec": 1.0,
         "seconds": 1.0, "milliseconds": 1e-3}  # fmt: skip
MODES = {  # words for modes, and what they mean here
    "agg": "agg", "aggregated": "agg", "colocated": "agg", "closed loop": "agg",
    "ifb": "agg", "static": "agg", "": "agg",
    "disagg": "disagg", "disaggregated": "disagg", "pd": "disagg",
    "open loop": "open loop", "open": "open loop", "poisson": "open loop",
    "offline": "offline", "server": "server", "interactive": "interactive",
}  # fmt: skip
WEIGHTS = {
    "bf16": "bf16", "bfloat16": "bf16", "fp16": "bf16", "float16": "bf16",
    "half": "bf16", "16": "bf16", "fp8": "fp8", "float8": "fp8", "fp8_block": "fp8",
    "fp8_static": "fp8", "w8a8_fp8": "fp8", "e4m3": "fp8", "int8": "int8",
    "w8a8": "int8", "int8_wo": "int8", "fp4": "fp4", "nvfp4": "fp4", "mxfp4": "mxfp4",
    "w4a8_mxfp4_mxfp8": "mxfp4", "int4": "int4", "int4_wo": "int4", "awq": "int4",
    "gptq": "int4", "w4a16": "int4",
}  # fmt: skip
ENGINES = ("vllm", "sglang", "trtllm", "tensorrt", "tgi", "jetstream", "lmdeploy")
SIDES = ("prefill", "decode")


@dataclass(frozen=True)
class Pool:
    """The servers of one side of a disaggregated system.

    Args:
        servers: the number of servers, each with one copy of the model.
        layout: the layout of one server.
        batch: requests that one server computes at a time; None if not stated.
    """

    servers: int
    layout: Layout
    batch: int | None = None

    @property
    def chips(self) -> int:
        return self.servers * self.layout.chips


@dataclass(frozen=True)
class ServingRow:
    """One measured number of a server, and the stated settings of the server.

    Args:
        model, chip: model and chip of the server.
        metric: "ttft", "tpot", "itl", "e2e", or "tokens" for output tokens per second.
        statistic: "mean", "p50", "p90", "p95", "p99", or "" if not stated.
        value: the value in base units (seconds, tokens/s); None if only a prediction is
            wanted.
        unit: the unit as given.
        scale: one `unit` in base units.
        per_chip: whether tokens/s are those of one chip.
        count: chips of the whole system; None if not stated.
        layout: the layout of one copy of the model; None if not stated, or if there are
            `pools`.
        pools: the pools of a disaggregated system, prefill and decode.
        mode: a value of `MODES`.
        engine: "vllm", "sglang", "trtllm", another word, or "".
        version: the version of the engine.
        date: the day of the measurement, as in 2026-02-05; "" if not stated.
        weights, gemm, kv: formats of weights, matmuls and cache; "" if not stated.
        concurrency: requests in flight in a closed loop.
        rate: requests that come per second in an open loop.
        budget: the largest number of tokens in an engine step.
        input, output: mean tokens of a prompt and of an answer.
        source, row, checkpoint, note: as given.
    """

    model: Model
    chip: Chip
    metric: str
    statistic: str = ""
    value: float | None = None
    unit: str = "s"
    scale: float = 1.0
    per_chip: bool = False
    count: int | None = None
    layout: Layout | None = None
    pools: tuple[Pool, Pool] | None = None
    mode: str = "agg"
    engine: str = ""
    version: str = ""
    date: str = ""
    weights: str = ""
    gemm: str = ""
    kv: str = ""
    concurrency: int | None = None
    rate: float | None = None
    budget: int | None = None
    input: float | None = None
    output: float | None = None
    source: str = ""
    row: str = ""
    checkpoint: str = ""
    note: str = ""

    @cached_property
    def family(self) -> str:
        """A text that is the same for all points of one sweep.

        All rows of one family are in a fit together, or are left out of it together.
        """
        ways = self.layout or self.pools or ""
        parts = (self.model.name, self.chip.name, self.engine, self.weights, self.mode)
        return "|".join((*parts, str(ways)))

    @property
    def configuration(self) -> tuple[object, ...]:
        """All settings that determine the value; rows that share them are repeats."""
        told = (self.concurrency, self.rate, self.input, self.output, self.budget)
        return (self.family, self.kv, self.metric, self.statistic, *told, self.count)

    def __str__(self) -> str:
        where = f"{self.count or ''} {self.chip.name}".strip()
        return ", ".join(
            part for part in (f"{self.model.name} on {where}", self.engine, self.shown)
            if part
        )  # fmt: skip

    @property
    def shown(self) -> str:
        """The metric in words, such as "ttft p90"."""
        return f"{self.metric} {self.statistic}".strip()


def is_serving(heads: Iterable[str]) -> bool:
    """Whether a table with these renamed columns describes measured servers.

    >>> is_serving(["model", "chip", "metric", "value"]), is_serving(["model", "seq"])
    (True, False)
    >>> is_serving(["model", "chip", "ttft_ms", "tpot_ms"])
    True
    """
    heads = {*heads}
    if "seq" in heads and "metric" not in heads:
        return False
    return "metric" in heads or any(map(_wide, heads))


def spread(cells: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """The row itself if it has a metric, or one row for each of its metric columns.

    >>> row = {"model": "m", "ttft_ms": "8", "tpot": "", "p99_itl_ms": "9"}
    >>> for one in spread(row):
    ...     print(one)
    {'model': 'm', 'metric': 'ttft', 'value': '8', 'unit': 'ms'}
    {'model': 'm', 'metric': 'itl_p99', 'value': '9', 'unit': 'ms'}
    """
    if cell(cells.get("metric")):
        yield dict(cells)
        return
    wide = {head: found for head in cells if head and (found := _wide(head))}
    plain = {head: value for head, value in cells.items() if head not in wide}
    for head, (metric, unit) in wide.items():
        if cell(cells[head]):
            more = {"unit": unit} if unit or "unit" not in plain else {}
            yield {**plain, "metric": metric, "value": cells[head], **more}


@cache
def _wide(head: str) -> tuple[str, str] | None:
    """The metric and unit in the name of a column; None for any other column."""
    words = (head or "").split("_")
    unit = words.pop() if words[-1] in ("ms", "s", "us") and len(words) > 1 else ""
    if unit == "s" and words[-1] in ("tokens", "tok", "per"):
        words, unit = (head or "").split("_"), "tokens/s"
    try:
        metric, statistic = _metric("_".join(words))
    except ValueError:
        return None
    if head in ALIASES or head in COLUMNS:
        return None
    name = f"{metric}_{statistic}" if statistic else metric
    return name, "tokens/s" if metric == "tokens" else unit


def read_row(cells: Mapping[str, object]) -> ServingRow:
    """Read a row from its cells, under the names of `COLUMNS`.

    Args:
        cells: text or numbers, or an object for "parallelism"; None and "" are empty.

    Raises:
        ValueError: no model, chip or metric, or a cell that cannot be read, which the
            message quotes.

    >>> one = read_row({"model": "Qwen3-32B", "chip": "H100", "parallelism": "tp=2",
    ...     "weights": "fp8", "concurrency": 8, "input": 1024, "output": 1024,
    ...     "metric": "tpot", "value": 12.5, "unit": "ms"})
    >>> one.layout, one.value, one.count
    (Layout(tensor=2, pipeline=1, expert=1, data=1), 0.0125, 2)
    """
    text = {
        key: cell(value)
        for key, value in cells.items()
        if isinstance(key, str) and not isinstance(value, Mapping)
    }
    for name in ("model", "chip", "metric"):
        if not text.get(name) and not (name == "model" and text.get("checkpoint")):
            raise ValueError(f"{name}: is empty; must be {COLUMNS[name]}")
    metric, statistic = _metric(text["metric"])
    unit, scale, per_chip = _unit(text.get("unit", ""), metric)
    value = number(text, "value")
    note = text.get("note", "")
    told = _noted(note)
    mode = text.get("mode", "").lower().replace("-", " ").replace("_", " ")
    if mode not in MODES:
        known = ", ".join(dict.fromkeys(MODES.values()))
        raise ValueError(f"mode = {short_repr(mode)}: must be one of {known}")
    ways = _ways(cells)
    pools = _pools(ways)
    chip = chips.find(text["chip"])
    layout = None if pools else _layout(ways, "")
    count = _whole(text, "count")
    if count is None and MODES[mode] != "disagg" and layout:
        count = layout.chips
    if count is None and pools and all(_counted(ways, side) for side in SIDES):
        count = sum(pool.chips for pool in pools)
    rate = number(text, "rate") or told.get("rate")
    kind = "disagg" if pools and not text.get("mode") else MODES[mode]
    if kind == "agg" and not text.get("concurrency") and rate:
        kind = "open loop"
    return ServingRow(
        model=_model(text.get("model", ""), text.get("checkpoint", "")),
        chip=chip,
        metric=metric,
        statistic=statistic,
        value=None if value is None else value * scale,
        unit=unit,
        scale=scale,
        per_chip=per_chip,
        count=count,
        layout=layout,
        pools=pools,
        mode=kind,
        engine=_engine(text.get("engine", "")),
        version=text.get("engine_version", ""),
        date=text.get("measured", ""),
        weights=_format(text, "weights"),
        gemm=_format(text, "gemm"),
        kv=_format(text, "kv"),
        concurrency=_whole(text, "concurrency"),
        rate=rate,
        budget=_whole(text, "budget") or told.get("budget"),
        input=number(text, "input"),
        output=number(text, "output"),
        source=text.get("source", ""),
        row=text.get("row", ""),
        checkpoint=text.get("checkpoint", ""),
        note=note,
    )


# ------------------------------------------------------------------------- the cells


def _metric(text: str) -> tuple[str, str]:
    """The metric that a word means, and its statistic.

    >>> _metric("ttft_p99"), _metric("output tokens/s"), _metric("Mean TTFT")
    (('ttft', 'p99'), ('tokens', ''), ('ttft', 'mean'))
    """
    words = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_").split("_")
    found = [STATISTICS[word] for word in words if word in STATISTICS]
    plain = "_".join(word for word in words if word not in STATISTICS)
    if plain not in METRICS or len(found) > 1:
        known = ", ".join(dict.fromkeys(METRICS.values()))
        raise ValueError(
            f"metric = {short_repr(text)}: must be one of {known}, with _mean, _p50, "
            "_p90, _p95 or _p99"
        )
    return METRICS[plain], "".join(found)


def _unit(text: str, metric: str) -> tuple[str, float, bool]:
    """The unit as given, its size in base units, and whether it is per chip."""
    plain = text.lower().strip()
    if metric in SECONDS:
        if plain and plain not in UNITS:
            known = ", ".join(list(UNITS)[:3])
            raise ValueError(
                f"unit = {short_repr(text)}: must be one of {known} for {metric}"
            )
        return text or "ms", UNITS[plain or "ms"], False
    if plain and not re.match(r"(output )?tok(en)?s?( ?/ ?s| per second|/sec)", plain):
        raise ValueError(
            f"unit = {short_repr(text)}: must be tokens/s for {metric}, of the whole "
            'system or "per chip"'
        )
    per_chip = bool(re.search(r"(/|per )\s*(gpu|chip|accelerator|device)", plain))
    return text or "tokens/s", 1.0, per_chip


def _whole(text: Mapping[str, str], name: str) -> int | None:
    found = number(text, name)
    if found is None:
        return None
    if not found.is_integer():
        raise ValueError(
            f"{name} = {short_repr(text[name])}: must be a whole number from 1"
        )
    return int(found)


def _format(text: Mapping[str, str], name: str) -> str:
    given = text.get(name, "").lower().replace("-", "_").replace(" ", "_")
    if given in ("", "auto"):
        return ""
    if given not in WEIGHTS:
        known = ", ".join(dict.fromkeys(WEIGHTS.values()))
        raise ValueError(f"{name} = {short_repr(given)}: must be one of {known}")
    return WEIGHTS[given]


def _engine(text: str) -> str:
    """The engine that a text names, such as "TensorRT 10.11, CUDA 12.9"."""
    plain = re.sub(r"[^a-z0-9 .]", "", text.lower())
    for name in ENGINES:
        if name in plain:
            return "trtllm" if name == "tensorrt" else name
    return plain.split(" ")[0] if plain else ""


@cache
def _model(name: str, checkpoint: str) -> Model:
    """The model by its name, or by its checkpoint if the name is unknown."""
    try:
        return model(name or _checkpoint(checkpoint))
    except ValueError:
        if not (name and checkpoint):
            raise
        try:
            return model(_checkpoint(checkpoint))
        except ValueError:
            pass
        raise


def _checkpoint(text: str) -> str:
    """The name of the model in the name of a checkpoint.

    >>> _checkpoint("nvidia/Llama-3.1-8B-Instruct-FP8"), _checkpoint("Qwen/Qwen3-32B")
    ('Llama-3.1-8B', 'Qwen3-32B')
    """
    name = text.rpartition("/")[2]
    more = r"[-_ ](instruct|chat|hf|it|base|fp8|nvfp4|fp4|mxfp4|awq|gptq|bf16|dynamic|v\d+(\.\d+)?|\d{4})$"  # noqa: E501
    while (shorter := re.sub(more, "", name, flags=re.IGNORECASE)) != name:
        name = shorter
    return name


def _noted(note: str) -> dict[str, float | int]:
    """Settings in a note such as "request rate 2.5; max_num_batched_tokens 2048".

    For several rates, one after another, we take the mean over requests. Of stages with
    equal length, those with a higher rate have more requests.

    >>> _noted("workload general; request rate 2.5; max_num_batched_tokens 2048")
    {'rate': 2.5, 'budget': 2048}
    >>> _noted("request rate [1.0, 3.0]; KV precision not stated")
    {'rate': 2.5}
    """
    found: dict[str, float | int] = {}
    if said := re.search(r"request rate ([^;]*)", note):
        rates = [float(rate) for rate in re.findall(r"\d+(?:\.\d+)?", said[1])]
    if said and rates:
        found["rate"] = sum(rate**2 for rate in rates) / sum(rates)
    if budget := re.search(r"max_num_batched_tokens (\d+)", note):
        found["budget"] = int(budget[1])
    return found


# --------------------------------------------------------------------- parallelism


def _ways(cells: Mapping[str, object]) -> dict[str, int]:
    """The size of each kind of parallelism, by the names of `ALIASES`."""
    given = cells.get("parallelism")
    if isinstance(given, str) and given.strip().startswith("{"):
        try:
            given = json.loads(given)
        except ValueError:
            raise ValueError(_wrong_ways(given)) from None
    if isinstance(given, Mapping):
        pairs = [(str(key), cell(value)) for key, value in given.items()]
    else:
        pairs = _pairs(cell(given))
        axes = ("tp", "pp", "dp", "ep", "moe_tp")
        names = (*axes, *(name for name in cells if name and name.startswith(SIDES)))
        pairs += [(name, cell(cells.get(name))) for name in names if name in cells]
    found = {}
    for key, text in pairs:
        if not text:
            continue
        name = ALIASES.get(key, key)
        if not re.fullmatch(r"\d{1,15}(\.0+)?", text):
            raise ValueError(_wrong_ways(f"{key}={text}"))
        if int(float(text)):  # 0 means that a kind is not used
            found[name] = int(float(text))
    return found


def _pairs(text: str) -> list[tuple[str, str]]:
    """The pairs in a text such as "tp=8 ep=8", "TP8, EP8" or "tp8/ep8"."""
    if len(text) > LONGEST:
        raise ValueError(_wrong_ways(text))
    pairs = []
    for part in re.split(r"[\s,;/x×]+(?![^=]*$)|[\s,;/×]+", text.lower()):
        if not part:
            continue
        found = re.fullmatch(r"([a-z_]+?)[=:]?(\d+)", part)
        if not found:
            raise ValueError(_wrong_ways(text))
        pairs.append((found[1], found[2]))
    return pairs


def _wrong_ways(given: str) -> str:
    return (
        f"parallelism = {short_repr(given)}: must be the size of each kind, as in "
        '"tp=8 ep=8"; kinds are tp, pp, dp, ep and moe_tp, each with prefill_ or '
        "decode_ before it if these are separate"
    )


def _layout(ways: Mapping[str, int], side: str) -> Layout | None:
    """The layout of one copy of the model, for a side or for the whole system."""
    names = {"tensor": "tp", "pipeline": "pp", "expert": "ep", "data": "dp"}
    if side:
        names = {
            key: next(
                (n for n in (f"{side}_{short}_size", f"{side}_{short}",
                             f"{side}_attention_{short}_size",
                             f"{side}_moe_{short}_size") if n in ways), "")
            for key, short in names.items()
        }  # fmt: skip
    found = {key: ways[name] for key, name in names.items() if name in ways}
    return Layout(**found) if found else None


def _counted(ways: Mapping[str, int], side: str) -> int:
    """The number of servers of one side; 0 if not stated."""
    names = (f"{side}_num_workers", f"{side}_workers", f"{side}_servers")
    return next((ways[name] for name in names if name in ways), 0)


def _batch(ways: Mapping[str, int], side: str) -> int | None:
    return ways.get(f"{side}_batch_size", ways.get(f"{side}_batch"))


def _pools(ways: Mapping[str, int]) -> tuple[Pool, Pool] | None:
    layouts = [_layout(ways, side) for side in SIDES]
    if not all(layouts):
        return None
    prefill, decode = (
        Pool(_counted(ways, side) or 1, layout, _batch(ways, side))
        for side, layout in zip(SIDES, layouts, strict=True)
    )
    return prefill, decode


def asked(row: ServingRow, **change: object) -> ServingRow:
    """The same row with some fields replaced."""
    return replace(row, **change)
