"""Rows of measured servers: one measured number each, with the server it was taken of.

The schema is that of a row of JSON or of a table with a head. Public tables call its
columns by many names (`ALIASES`), and say of a server more or less; what cannot be
missing is the model, the chip, the metric and its unit. A table may also have a column
for each metric ("ttft_ms", "tpot_ms"): then a row of it is several rows of this schema.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from ..base.units import short_repr
from ..hardware import chips
from ..hardware.chips import Chip
from ..inference import Layout
from ..transformer import Model, model
from .table_file import cell, number

COLUMNS = {  # of a row, and what they hold
    "source": "where the row comes from, in free text",
    "row": "what it is called there",
    "model": "a name that `transformer.model` knows",
    "checkpoint": "the weights, such as nvidia/DeepSeek-R1-NVFP4",
    "chip": "a name that `chips.find` knows",
    "count": "chips of the whole system",
    "parallelism": 'ways of each kind, such as "tp=8 ep=8", or an object of them',
    "mode": "how requests come: agg (a closed loop), disagg, open loop, offline, …",
    "engine": "vllm, sglang, trtllm or another name",
    "engine_version": "of the engine",
    "measured": "the day, as 2026-02-05",
    "weights": "format of the weights",
    "gemm": "format that the matmuls run in",
    "kv": "format of the cache",
    "concurrency": "requests in flight",
    "rate": "requests that come in a second",
    "budget": "tokens of one engine step, at most",
    "input": "tokens of a prompt, in the mean",
    "output": "tokens of an answer, in the mean",
    "metric": "ttft, tpot, itl, e2e or tokens, with _mean, _p50, _p90 or _p99",
    "value": "what was measured",
    "unit": "of the value: ms, s, tokens/s",
    "note": "free text",
}
ALIASES = {  # of columns
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
METRICS = {  # words that are used, and what is meant
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
MODES = {  # what a row calls it, and how requests come
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
        servers: how many copies of the model.
        layout: of one of them.
        batch: requests that one of them works on at a time; None where nobody says.
    """

    servers: int
    layout: Layout
    batch: int | None = None

    @property
    def chips(self) -> int:
        return self.servers * self.layout.chips


@dataclass(frozen=True)
class ServingRow:
    """One measured number of a server, and what is said of the server.

    Args:
        model, chip: of the server.
        metric: "ttft", "tpot", "itl", "e2e", or "tokens" of all answers in a second.
        statistic: "mean", "p50", "p90", "p95", "p99", or "" where nobody says.
        value: in base units (seconds, tokens/s); None where there is only the question.
        unit: as it was given; `scale` is one of it in base units.
        scale: see `unit`.
        per_chip: whether tokens/s are those of one chip.
        count: chips of the whole system; None where nobody says.
        layout: of one copy of the model; None where nobody says, or `pools` do.
        pools: of a disaggregated system, prefill and decode.
        mode: a value of `MODES`.
        engine: "vllm", "sglang", "trtllm", another word, or "".
        version: of the engine.
        date: day of the measurement, as 2026-02-05; "" where nobody says.
        weights, gemm, kv: formats; "" where nobody says.
        concurrency: requests in flight in a closed loop.
        rate: requests that come in a second in an open loop.
        budget: tokens of an engine step, at most.
        input, output: tokens of a prompt and of an answer, in the mean.
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

    @property
    def family(self) -> str:
        """What is the same for all points of one sweep, as text.

        The rule by which rows are kept apart from a fit: no family is on both sides.
        """
        ways = self.layout or self.pools or ""
        parts = (self.model.name, self.chip.name, self.engine, self.weights, self.mode)
        return "|".join((*parts, str(ways)))

    @property
    def configuration(self) -> tuple[object, ...]:
        """All that decides what should be measured; equal rows repeat one another."""
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
    """Whether a table with these columns, renamed, is one of measured servers.

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
    """A row with a metric, or one for each metric that it has a column of.

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
    """The metric and the unit that the name of a column says; None for another."""
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
    """A row from its cells, under the names of `COLUMNS`.

    Args:
        cells: text, numbers or, of "parallelism", an object; None and "" say nothing.

    Raises:
        ValueError: no model, chip or metric, or what cannot be read; quotes it.

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
    """The unit as given, one of it in base units, and whether it is of one chip."""
    plain = text.lower().strip()
    if metric in SECONDS:
        if plain and plain not in UNITS:
            known = ", ".join(list(UNITS)[:3])
            raise ValueError(
                f"unit = {short_repr(text)}: of {metric} it must be one of {known}"
            )
        return text or "ms", UNITS[plain or "ms"], False
    if plain and not re.match(r"(output )?tok(en)?s?( ?/ ?s| per second|/sec)", plain):
        raise ValueError(
            f"unit = {short_repr(text)}: of {metric} it must be tokens/s, of the whole "
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
    """The model, or that of the weights where its own name means none."""
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
    """The name of a model in that of its weights.

    >>> _checkpoint("nvidia/Llama-3.1-8B-Instruct-FP8"), _checkpoint("Qwen/Qwen3-32B")
    ('Llama-3.1-8B', 'Qwen3-32B')
    """
    name = text.rpartition("/")[2]
    more = r"[-_ ](instruct|chat|hf|it|base|fp8|nvfp4|fp4|mxfp4|awq|gptq|bf16|dynamic|v\d+(\.\d+)?|\d{4})$"  # noqa: E501
    while (shorter := re.sub(more, "", name, flags=re.IGNORECASE)) != name:
        name = shorter
    return name


def _noted(note: str) -> dict[str, float | int]:
    """What a note says in words: "request rate 2.5; max_num_batched_tokens 2048".

    Of several rates, one after another, it is the mean over the requests: stages of
    equal length have more requests the higher their rate is.

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
    """Ways of each kind of parallelism, by the names of `ALIASES`."""
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
        if not re.fullmatch(r"\d+(\.0+)?", text):
            raise ValueError(_wrong_ways(f"{key}={text}"))
        if int(float(text)):  # 0 turns a kind off
            found[name] = int(float(text))
    return found


def _pairs(text: str) -> list[tuple[str, str]]:
    """Of "tp=8 ep=8", "TP8, EP8" or "tp8/ep8"."""
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
        f"parallelism = {short_repr(given)}: must be ways of each kind, as in "
        '"tp=8 ep=8"; known are tp, pp, dp, ep and moe_tp, each with prefill_ or '
        "decode_ before it where these are apart"
    )


def _layout(ways: Mapping[str, int], side: str) -> Layout | None:
    """The layout of one copy of the model, of a side or of all."""
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
    """Servers of one side, 0 where nobody says."""
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
    """The same row with something else said of it."""
    return replace(row, **change)
