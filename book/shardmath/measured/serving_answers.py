"""Bound, prediction and band for a row of a measured server, or why there are none.

Rows state few settings of a server. The rules below fill in the others, and every
answer names the rules that it used.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

from ..base.units import show
from ..hardware.chips import CHIPS, Chip
from ..hardware.networks import Network, network
from ..hardware.networks.records import GRIDS
from ..inference import (
    Formats,
    Layout,
    Load,
    Requests,
    Scheduler,
    Server,
    alone,
    band,
    closed_loop,
    disaggregated,
    held,
    open_loop,
    slots,
    smallest_layout,
)
from ..inference.efficiencies import Calibration
from ..transformer import Model
from .serving_rows import ServingRow
from .serving_rules import filled, limits

INFERENCEX = "inferencex"
MEAN_LENGTH = 0.9  # mean share of the nominal length, if it is uniform in [0.8, 1]
# Tables that count some chips twice; see `chips_counted_once`.
TWICE = ("inferencex", "nvidia-internal")
# Engine, version and days on which InferenceX ran with multi-token prediction without
# saying so. On other days the same configuration takes 1.5 to 2 times as long.
SPECULATED = {
    ("trtllm", "1.1.0rc2.post2"): ("2026-01-14", "2026-01-28"),
    ("trtllm", "1.2.0rc6.post3"): ("2026-02-05", "2026-02-06"),
}
# The medians of the disaggregated systems that state their numbers of servers.
UNCOUNTED = {"prefill": 1, "decode": 4}
MEANS = ("", "mean", "p50")  # statistics that a closed form of means can predict
QUEUED = ("offline", "server", "interactive")  # modes without a fixed number of clients
# MLPerf tests these models with OpenOrca, where answers are about as long as prompts.
AS_LONG = ("Llama 2 70B", "Mixtral 8x7B")
# We guess that 99 of 100 requests have a latency below this multiple of the mean.
SLOWEST = 1.5
SLOTS = 1024  # sequences that engines may decode at once if all requests are queued
# The rows of one run differ only in their metric and follow one another. They share the
# run's load.
_closed_loop = lru_cache(maxsize=64)(closed_loop)
_open_loop = lru_cache(maxsize=64)(open_loop)
_disaggregated = lru_cache(maxsize=64)(disaggregated)


@dataclass(frozen=True)
class FilledRow:
    """A row, with all missing settings filled in.

    Args:
        row: the row as it was read, perhaps with a corrected layout.
        servers: the system's server, or one for prefill and one for decode.
        copies: the number of copies of the model, or of servers for prefill and for
            decode.
        requests: the requests that the servers get.
        scheduler: how the engine puts steps together.
        assumed: the settings that were filled in, in words.
        warnings: what makes the row unusual.
    """

    row: ServingRow
    servers: tuple[Server, ...]
    copies: tuple[int, ...]
    requests: Requests
    scheduler: Scheduler
    assumed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def regime(self) -> str:
        """The name of its band of errors."""
        return regime(self.row)

    def at(self, numbers: Calibration) -> "FilledRow":
        """The same row with other fitted numbers."""
        servers = tuple(_with(one, numbers) for one in self.servers)
        return replace(self, servers=servers)


@lru_cache(maxsize=64)
def _with(server: Server, numbers: Calibration) -> Server:
    """A server with other fitted numbers, which all rows of a run share."""
    return server.with_(numbers)


def regime(row: ServingRow) -> str:
    """The name of a group of rows with similar errors. It names the metric, the kind
    of model, whether prefill and decode are separate, and if so, whether the row
    states the number of servers."""
    metric = {"itl": "tpot", "e2e": "tpot"}.get(row.metric, row.metric)
    kind = "experts" if row.model.experts else "dense"
    pools = "together"
    if row.mode == "disagg":
        counted = row.pools and row.pools[1].batch is not None
        pools = "apart" if counted else "apart, uncounted"
    return f"{metric} {kind} {pools}"


@dataclass(frozen=True)
class ServingAnswer:
    """The answer for one row, in the unit of the row.

    Args:
        row: the number of the row in the file, from 1.
        name: the row in words.
        metric: the metric of the row.
        unit: the unit of all numbers but `parts`.
        bound: the bound that no server can beat; for tokens per second, an upper bound.
        predicted: the predicted value.
        low, high: the band, which holds 8 of 10 rows that were left out of the fit.
        measured: the value of the row; None if it has none.
        parts: parts of the prediction in seconds.
        assumed, warnings: as in `FilledRow`.
        why: why there is no prediction; "" if there is one.
    """

    row: int
    name: str
    metric: str = ""
    unit: str = ""
    bound: float = math.nan
    predicted: float = math.nan
    low: float = math.nan
    high: float = math.nan
    measured: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    why: str = ""

    @property
    def plain(self) -> dict[str, object]:
        """The answer as plain data, as `shardmath predict --json` prints it."""
        found: dict[str, object] = {"row": self.row, "name": self.name}
        if self.metric:
            found["metric"] = self.metric
        if self.why:
            return {**found, "why": self.why}
        names = ("bound", "predicted", "low", "high")
        found |= {name: getattr(self, name) for name in names}
        if self.measured is not None:
            found["measured"] = self.measured
        return {
            **found,
            "unit": self.unit,
            "parts": dict(self.parts),
            "assumed": list(self.assumed),
            "warnings": list(self.warnings),
        }


def serving_answer(number: int, row: ServingRow) -> ServingAnswer:
    """The answer for one row.

    Args:
        number: the number of the row in its file, from 1.
        row: the row as it was read.
    """
    name, metric = str(row), row.shown
    try:
        found = setting(row)
        value, parts = predicted(found)
        least = bound(found)
    except ValueError as error:
        why = str(error).partition("\n")[0]
        return ServingAnswer(number, name, metric, row.unit, why=why)
    low, high = band(found.regime)
    if row.metric == "tokens":  # for a rate, bound and band are reversed
        value, band_ = min(value, least), (1 / high, 1 / low)
        low, high = value * band_[0], min(least, value * band_[1])
    else:
        value = max(value, least)
        low, high = max(least, value * low), value * high
    share = 1.0 if row.per_chip is False else 1 / (row.count or 1)
    scale = share / row.scale
    warnings = list(found.warnings)
    if row.value is not None and beaten(row, row.value / share, least):
        warnings.append(
            f"the row beats its bound ({show(least * scale)} {row.unit}), so one of "
            "its labels must be wrong or missing"
        )
    return ServingAnswer(
        number, name, metric, row.unit, least * scale, value * scale, low * scale,
        high * scale, row.value / row.scale if row.value is not None else None,
        parts, found.assumed, tuple(warnings),
    )  # fmt: skip


def beaten(row: ServingRow, value: float, least: float) -> bool:
    """Whether a measured value is better than its bound."""
    return value > least if row.metric == "tokens" else value < least


# ------------------------------------------------------------------- what is filled in


def setting(row: ServingRow) -> FilledRow:
    """A row, with all settings that it leaves out filled in.

    Raises:
        ValueError: a setting is missing that no rule fills in, or the model does not
            fit on the chips.
    """
    said: list[str] = []
    warned: list[str] = []
    row = filled(row, said)
    if row.output is None:
        raise ValueError("output: the row does not say how many tokens an answer has")
    if row.input is None:
        if row.mode not in QUEUED or row.model.name not in AS_LONG:
            raise ValueError("input: the row does not say how many tokens a prompt has")
        row = replace(row, input=row.output)
        said.append("prompts as long as the answers, since the row does not say")
    row = chips_counted_once(row, said)
    formats = formats_of(row, said)
    requests = requests_of(row, said)
    if allowed := limits(row):
        said.append(
            f"as many sequences at a time as keep TTFT below {show(allowed[0], 's')} "
            f"and TPOT below {show(allowed[1], 's')} for 99 of 100 requests, whose "
            f"latency we take as {SLOWEST:g} times the mean"
        )
    scheduler = scheduler_of(row, said, warned)
    if row.mode == "disagg":
        servers, copies = _pools(row, formats, said)
    else:
        layout, count = _layout(row, formats, said)
        servers = (_server(row.model, row.chip, layout, formats),)
        copies = (count,)
        if row.layout and layout.data > 1 and not row.layout.data > 1:
            servers, copies = servers * 2, copies * 2
            said.append("prompts are read by other servers of the same size")
    return FilledRow(
        row, servers, copies, requests, scheduler, tuple(dict.fromkeys(said)),
        tuple(warned),
    )  # fmt: skip


def chips_counted_once(row: ServingRow, said: list[str]) -> ServingRow:
    """The row, with its label corrected if the label counts chips twice.

    One table multiplies kinds of parallelism that use the same chips. For example,
    "tp4_ep4" in the name of a row became tensor 16 with experts over 4, and
    data-parallel attention over 4 chips became tensor 4 x data 4. Rows that the
    table has under both labels have identical values.
    """
    one = row.layout
    source = row.source.lower()
    if one is None or one.expert < 2 or not any(name in source for name in TWICE):
        return row
    n = one.expert
    if n * n == one.stage and one.tensor in (1, n * n):
        data = n if one.data > 1 else 1
        better = Layout(n // data, one.pipeline, n, data)
    elif one.tensor == one.data and n == one.stage:
        better = Layout(1, one.pipeline, one.data, one.data)
    else:
        return row
    if not _fits(row, better):
        return row
    said.append(f"{better.chips} chips ({better}): the label counts them twice ({one})")
    return replace(row, layout=better, count=better.chips)


def _fits(row: ServingRow, layout: Layout) -> bool:
    smallest = smallest_layout(row.model, row.chip, formats_of(row, []))
    return smallest is not None and smallest.chips <= layout.chips


def formats_of(row: ServingRow, said: list[str]) -> Formats:
    """The formats of a row; many tables do not state the format of the cache."""
    weights = row.weights or "bf16"
    if not row.weights:
        if row.mode in QUEUED:  # MLPerf allows any, and submitters use the narrowest
            narrow = [name for name in ("fp4", "fp8") if name in row.chip.flops]
            weights = (*narrow, "bf16")[0]
        said.append(f"weights in {weights}")
    attention = None
    if weights in ("mxfp4", "int4") or (weights == "fp4" and row.model.latent):
        attention = "bf16"
        said.append("projections of attention in bf16")
    cache = row.kv
    if not cache:
        narrow = weights != "bf16" and (
            row.engine == "trtllm"
            or row.model.latent
            or weights == "fp4"
            or row.mode in QUEUED
        )
        cache = "fp8" if narrow else "bf16"
        said.append(f"a cache in {cache}")
    return Formats(weights, None, cache, attention)


def requests_of(row: ServingRow, said: list[str]) -> Requests:
    """The mean lengths of the requests."""
    if INFERENCEX in row.source.lower():
        said.append("lengths in the mean 0.9 of nominal: drawn from 0.8 to 1 of it")
        return Requests(MEAN_LENGTH * row.input, MEAN_LENGTH * row.output)
    return Requests(row.input, row.output, alike=row.mode == "agg")


def scheduler_of(row: ServingRow, said: list[str], warned: list[str]) -> Scheduler:
    """How the engine puts steps together, by its documented defaults."""
    mixed = row.engine != "sglang" and row.mode != "disagg"
    budget = row.budget or Scheduler().budget
    drafts = 0
    if row.model.predictors and speculated(row):
        drafts = row.model.predictors
        said.append(
            f"multi-token prediction with {drafts} draft: runs of this release and day "
            "take 1.5 to 2 times less than equal ones of other days"
        )
    elif row.model.predictors and row.engine in ("trtllm", "sglang"):
        warned.append(
            "the row does not say whether multi-token prediction is on; if it is, a "
            "token takes about 0.6 of what is predicted"
        )
    if not row.engine and row.mode == "agg":
        said.append("prompts and decoding share steps, as in vLLM")
    return Scheduler(budget, mixed, None, drafts)


def speculated(row: ServingRow) -> bool:
    """Whether the row was measured on a day with multi-token prediction."""
    days = SPECULATED.get((row.engine, row.version), ())
    known = INFERENCEX in row.source.lower() and row.mode == "agg"
    return known and row.date in days


def _layout(row: ServingRow, formats: Formats, said: list[str]) -> tuple[Layout, int]:
    """The layout of one copy of the model, and how many copies there are."""
    layout = row.layout
    if layout is None:
        layout = smallest_layout(row.model, row.chip, formats)
        if layout is None:
            raise ValueError(f"{row.model.name} does not fit on any server known here")
        said.append(f"the smallest layout that fits: {layout} on {layout.chips} chips")
    count = row.count or layout.chips
    copies = max(1, count // layout.chips)
    if copies > 1:
        said.append(f"{copies} copies of the model, which share the requests")
    return _attention_by_data(row.model, layout, said), copies


def _attention_by_data(model: Model, layout: Layout, said: list[str]) -> Layout:
    """The layout that a label of tensor parallelism over more than 8 chips means for a
    model with a latent. Each chip would hold a copy of the whole cache, so the row must
    mean data-parallel attention, with experts over all chips. Tables label whole racks
    so, with other servers for prompts."""
    if not (model.latent and model.experts) or layout.tensor <= 8:
        return layout
    chips = layout.stage
    experts = max(n for n in range(1, chips + 1)
                  if chips % n == 0 and n <= model.experts.count)  # fmt: skip
    said.append(f"data-parallel attention over {chips} chips: {layout} would copy the "
                "latent cache as often")  # fmt: skip
    return Layout(1, layout.pipeline, experts, chips)


def _pools(
    row: ServingRow, formats: Formats, said: list[str]
) -> tuple[tuple[Server, Server], tuple[int, int]]:
    """The servers of a disaggregated system, and how many there are of each kind."""
    if not row.pools:
        raise ValueError("parallelism: the row does not name that of both pools")
    servers, copies = [], []
    for side, pool in zip(("prefill", "decode"), row.pools, strict=True):
        layout = _attention_by_data(row.model, pool.layout, said)
        count = pool.servers
        if pool.batch is None and count == 1:
            count = UNCOUNTED[side]
            said.append(f"{count} servers for {side}: the row does not say how many")
        servers.append(_server(row.model, row.chip, layout, formats))
        copies.append(count)
    return tuple(servers), tuple(copies)


def _network(chip: Chip, chips: int) -> Network:
    """A network of one node, or of several equal nodes."""
    if chips == 1:
        return alone(chip)
    if chip.vendor == "Google":
        return network(f"{chip.id}:{squarest(chips, GRIDS[chip.id]['sides'].value)}")
    if "domain" not in chip.facts:
        raise ValueError(f"no source states how {chip.name} are joined in a node")
    most = int(chip.domain)
    each = max(n for n in range(1, min(most, chips) + 1) if chips % n == 0)
    return network(f"{chip.id}:{chips // each}x{each}" if each < chips
                   else f"{chip.id}:{chips}")  # fmt: skip


def squarest(chips: int, sides: int) -> str:
    """The sides of the slice of `chips` chips whose sides are most nearly equal.

    >>> squarest(8, 2), squarest(8, 3), squarest(2, 3)
    ('2x4', '2x2x2', '1x1x2')
    """
    if sides == 1:
        return str(chips)
    nearest = chips ** (1 / sides)
    side = max(n for n in range(1, chips + 1) if chips % n == 0 and n <= nearest + 0.01)
    return f"{side}x{squarest(chips // side, sides - 1)}"


@cache
def _known(model: Model, chip: str, layout: Layout, formats: Formats) -> Server:
    found = CHIPS[chip]
    return Server(model, _network(found, layout.chips), layout, formats)


def _server(model: Model, chip: Chip, layout: Layout, formats: Formats) -> Server:
    """A server of the row; expert parallelism beyond the model's experts is reduced."""
    if layout.expert > 1 and not model.experts:
        layout = replace(layout, expert=1)
    if model.experts and layout.expert > model.experts.count:
        most = model.experts.count
        fit = (n for n in range(1, most + 1) if layout.stage % n == 0)
        layout = replace(layout, expert=max(fit))
    if chip is not CHIPS[chip.id]:  # a record that somebody changed
        there = replace(_network(chip, layout.chips), chip=chip)
        return Server(model, there, layout, formats)
    return _known(model, chip.id, layout, formats)


# ------------------------------------------------------------- bounds and predictions


def load(found: FilledRow) -> Load:
    """The load of one server of the row.

    Raises:
        ValueError: the row does not say how many requests come, or no sequence fits.
    """
    row, requests, scheduler = found.row, found.requests, found.scheduler
    if len(found.servers) == 2:
        if row.concurrency is None:
            raise ValueError("concurrency: the row does not say how many requests")
        readers, writers = found.copies
        return _disaggregated(
            *found.servers, row.concurrency, requests, readers, writers, scheduler
        )
    (server,), (copies,) = found.servers, found.copies
    if row.mode == "open loop":
        if row.rate is None:
            raise ValueError(
                "rate: the row does not say one rate at which requests come"
            )
        return _open_loop(server, row.rate / copies, requests, scheduler)
    room = slots(server, requests, scheduler)
    if row.mode in QUEUED:
        return _queued(found, min(room, SLOTS))
    if row.concurrency is None:
        raise ValueError("concurrency: the row does not say how many requests")
    return _closed_loop(server, row.concurrency / copies, requests, scheduler, room)


def _queued(found: FilledRow, most: int) -> Load:
    """The load with the most sequences at a time that a benchmark's limits allow."""
    (server,), requests, scheduler = found.servers, found.requests, found.scheduler

    def at(clients: int) -> Load:
        return _closed_loop(server, clients, requests, scheduler, clients)

    allowed = limits(found.row)
    now = at(most)
    if allowed is None or _within(now, allowed):
        return now
    few = 1
    while most - few > 1:
        middle = (few + most) // 2
        few, most = (middle, most) if _within(at(middle), allowed) else (few, middle)
    return at(few)


def _within(now: Load, allowed: tuple[float, float]) -> bool:
    ttft, tpot = allowed
    return SLOWEST * now.ttft <= ttft and SLOWEST * now.tpot <= tpot


def predicted(found: FilledRow) -> tuple[float, dict[str, float]]:
    """The predicted metric of the row for the whole system, in base units, and its
    parts in seconds.

    Raises:
        ValueError: the row states a percentile other than the median; or as `load`.
    """
    row = found.row
    if row.statistic not in MEANS:
        raise ValueError(
            f"{row.shown}: the closed form gives means; `serving` plays single requests"
        )
    now = load(found)
    output = found.requests.output
    if row.metric == "ttft":
        return now.ttft, dict(now.waits)
    if row.metric in ("tpot", "itl"):
        return now.tpot, dict(now.parts)
    if row.metric == "e2e":
        rest = (output - 1) * now.tpot
        return now.ttft + rest, {**now.waits, "decode": rest}
    copies = found.copies[0] if len(found.servers) == 1 else 1
    return copies * now.rate * output, dict(now.parts)


def bound(found: FilledRow) -> float:
    """The bound that no server can beat, in the metric of the row.

    A row does not say how many of its requests decode at a time. So the bound of TPOT
    is that of a step with one sequence, and the bound of TTFT is that of a step with
    one prompt. The latency and rate of whole requests are bounded by all the work that
    they need.
    """
    row, requests = found.row, found.requests
    prompt, output = requests.prompt, requests.output
    drafts = 1 + found.scheduler.drafts
    writer = found.servers[-1]
    if row.metric == "ttft":
        return found.servers[0].prefill(prompt).bound
    if row.metric in ("tpot", "itl"):
        return writer.decode(1, held(prompt, output)).bound / drafts
    if row.metric == "e2e":
        return writer.request_bound(prompt, output) / drafts
    clients = float(max(1, writer.with_reserve(0.0).slots(held(prompt, output), 1)))
    if row.mode not in QUEUED and row.concurrency is not None:
        clients = min(clients, row.concurrency / found.copies[-1])
    rate = clients / writer.request_bound(prompt, output, clients)
    return found.copies[-1] * rate * output * drafts
