"""Gates, which find rows of measured servers that cannot be true.

A gate compares a row with what has to be true for every server:

- The size of tensor parallelism divides the heads, and the chips of a layout divide
  the number of all chips.
- The weights fit in memory, and so do the caches of the sequences that decode.
- No latency is below its bound, and no rate is above its bound.
- Little's law holds: requests in flight = requests per second · seconds of a request.
- Repeats of one configuration agree.
- More sequences do not decode in much less time than fewer sequences.

Some gates need two numbers of one run, which are in two rows. `checked` joins them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..base.units import show
from ..inference import Server, held
from .serving_answers import FilledRow, beaten, bound, setting
from .serving_rows import ServingRow

APART = 1.5  # repeats that differ by a larger factor disagree; 3 of 4 pairs do not
ROUNDED = 1.02  # allowed sequences ÷ slots, because lengths vary around their mean
LESS = 2.0  # within one release, more sequences never decode this much faster
LITTLE = 0.15  # the relative error of Little's law that a run's start and end explain


def contradictions(row: ServingRow) -> tuple[str, ...]:
    """The reasons why a row cannot be true of any server, in words.

    >>> from .serving_rows import read_row
    >>> row = {"model": "DeepSeek-R1", "chip": "GB200", "parallelism": "tp=28",
    ...     "metric": "tpot", "value": 9, "count": 28}
    >>> print(*contradictions(read_row(row)))
    tensor = 28: does not divide the 128 heads of DeepSeek-V3
    """
    return tuple(_labels(row))


def _labels(row: ServingRow) -> Iterable[str]:
    layouts = [row.layout] if row.layout else [p.layout for p in row.pools or ()]
    for layout in layouts:
        if row.model.heads % layout.tensor:
            yield (
                f"tensor = {layout.tensor}: does not divide the {row.model.heads} "
                f"heads of {row.model.name}"
            )
        if layout.pipeline > row.model.layers:
            yield (
                f"pipeline = {layout.pipeline}: is more than the {row.model.layers} "
                f"layers of {row.model.name}"
            )
    needed = row.layout.chips if row.layout else sum(p.chips for p in row.pools or ())
    if row.count and needed > row.count:
        ways = row.layout or "of both pools"
        yield f"count = {row.count}: is less than the {needed} chips of {ways}"
    if row.count and row.layout and row.count % needed:
        yield (
            f"count = {row.count}: is no whole number of copies of {needed} chips "
            f"({row.layout})"
        )


def refusals(row: ServingRow) -> tuple[str, ...]:
    """The contradictions of a row that prevent a prediction.

    Tensor parallelism that does not divide the heads is allowed for a model with a
    latent. Data-parallel attention is often labelled this way, and
    `serving_answers.setting` reads such labels in this sense.
    """
    heads = "tensor = "
    return tuple(
        why
        for why in contradictions(row)
        if not (row.model.latent and why.startswith(heads))
    )


def checked(rows: Sequence[ServingRow]) -> dict[int, tuple[str, ...]]:
    """The reasons why gates name rows, under the index of each row.

    Args:
        rows: the rows of one table.
    """
    found: defaultdict[int, list[str]] = defaultdict(list)
    settings: dict[int, FilledRow] = {}
    for at, row in enumerate(rows):
        found[at] += contradictions(row)
        try:
            settings[at] = setting(row)
        except ValueError:
            continue
        found[at] += _alone(row, settings[at])
    runs = [
        {rows[at].metric: at for at in places if rows[at].value is not None}
        for places in _runs(rows).values()
    ]
    for known in runs:
        for why in _together(rows, settings, known):
            for at in known.values():
                found[at].append(why)
    for known, why in _less(rows, runs):
        for at in known.values():
            found[at].append(why)
    for places in _repeats(rows).values():
        values = [rows[at].value for at in places]
        if max(values) > APART * min(values):
            ends = " to ".join(_shown(rows[places[0]], v) for v in _ends(values))
            for at in places:
                found[at].append(
                    f"{len(places)} rows of this configuration read {ends}"
                )
    return {at: tuple(dict.fromkeys(why)) for at, why in found.items() if why}


def _alone(row: ServingRow, known: FilledRow) -> Iterable[str]:
    """The reasons of gates that need one number and its server."""
    server = known.servers[-1]
    if not server.with_reserve(0.0).memory.fits:
        yield (
            f"{show(server.memory.weights, 'bytes')} of weights on each "
            f"{row.chip.name} do not fit in {show(server.memory.memory, 'bytes')}"
        )
        return
    if row.value is None:
        return
    least = bound(known)
    value = row.value * ((row.count or 1) if row.per_chip else 1)
    if beaten(row, value, least):
        yield (
            f"{row.shown} = {_shown(row, value)}: beats its bound, {_shown(row, least)}"
        )


def _together(
    rows: Sequence[ServingRow],
    settings: Mapping[int, FilledRow],
    known: Mapping[str, int],
) -> Iterable[str]:
    """The reasons of gates that need TTFT and TPOT of one run, and perhaps its rate."""
    first, step = known.get("ttft"), known.get("tpot", known.get("itl"))
    if first is None or step is None or step not in settings:
        return
    row, found = rows[step], settings[step]
    if row.concurrency is None or len(found.servers) == 2:
        return
    ttft, tpot = rows[first].value, row.value
    output, clients = found.requests.output, row.concurrency
    seconds = ttft + (output - 1) * tpot
    server, copies = found.servers[0], found.copies[0]
    decoding = clients * (output - 1) * tpot / seconds
    length = held(found.requests.prompt, output)
    try:
        room = copies * server.with_reserve(0.0).slots(length, 1)
    except ValueError:
        return
    if decoding > ROUNDED * room:
        cache = server.formats.cache or "bf16"
        more = ""
        if not row.kv and cache == "bf16":
            narrow = replace(server.formats, cache="fp8")
            narrower = Server(server.model, server.network, server.layout, narrow)
            many = copies * narrower.with_reserve(0.0).slots(length, 1)
            more = f", or {many} in fp8" if decoding <= ROUNDED * many else ""
        yield (
            f"{decoding:.0f} of {clients} sequences decode at a time by Little's law, "
            f"and {room} caches of {length:,.0f} tokens in {cache} fit in {row.count} "
            f"{row.chip.name}{more}"
        )
    drafts = 1 + found.scheduler.drafts
    least = server.request_bound(
        found.requests.prompt, output, min(clients / copies, max(1, room / copies))
    )
    if seconds < least / drafts:
        yield (
            f"TTFT + (output − 1) · TPOT = {show(seconds, 's')}: beats the bound of a "
            f"request, {show(least / drafts, 's')}"
        )
    if "tokens" in known:
        rate = rows[known["tokens"]].value
        by_little = clients * output / seconds
        if abs(rate / by_little - 1) > LITTLE:
            yield (
                f"{rate:,.0f} tokens/s: Little's law gives {by_little:,.0f}, "
                f"{clients} · {output:,.0f} tokens in {show(seconds, 's')}"
            )


def _less(
    rows: Sequence[ServingRow], runs: Sequence[Mapping[str, int]]
) -> Iterable[tuple[Mapping[str, int], str]]:
    """Runs in which more sequences decode than in another run, in much less time."""
    found: defaultdict[object, list[tuple[float, float, Mapping[str, int]]]]
    found = defaultdict(list)
    for known in runs:
        if "ttft" not in known or "tpot" not in known:
            continue
        row = rows[known["tpot"]]
        if row.mode != "agg" or not (row.concurrency and row.output):
            continue
        tpot, rest = row.value, (row.output - 1) * row.value
        share = rest / (rows[known["ttft"]].value + rest) if rest else 0.0
        told = row.family, row.kv, row.input, row.output, row.budget, row.count
        found[told].append((row.concurrency * share, tpot, known))
    for some in found.values():
        for decoding, tpot, known in some:
            slower = [one for one in some if one[0] < decoding and one[1] > LESS * tpot]
            if slower:
                fewer, longer, _ = min(slower, key=lambda one: one[0])
                told = (
                    f"{decoding:.0f} sequences decode at a time in {show(tpot, 's')} "
                    f"a token, and in another row {fewer:.0f} in {show(longer, 's')}"
                )
                yield known, told


def _runs(rows: Sequence[ServingRow]) -> dict[object, list[int]]:
    """The indices of the rows that state means of the same run.

    A table gives these rows the same name, or lists them one after the other.
    """
    found: defaultdict[object, list[int]] = defaultdict(list)
    last, number = None, 0
    for at, row in enumerate(rows):
        if row.statistic not in ("", "mean"):
            continue
        told = row.configuration[:2], row.configuration[4:], row.row, row.version
        known = {rows[place].metric for place in found[told, number]}
        if told != last or row.metric in known:
            number += 1
        last = told
        found[told, number].append(at)
    return found


def _repeats(rows: Sequence[ServingRow]) -> dict[object, list[int]]:
    """The indices of rows with the same configuration and version of the engine."""
    found: defaultdict[object, list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        if row.value is not None and row.mode == "agg":
            found[row.configuration, row.version, row.source].append(at)
    return {key: places for key, places in found.items() if len(places) > 1}


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _shown(row: ServingRow, value: float) -> str:
    """A value of the row in words."""
    return show(value, "tokens/s" if row.metric == "tokens" else "s")
