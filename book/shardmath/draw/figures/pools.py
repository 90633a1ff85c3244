"""The live figure "pools": servers for prefill, and servers for decode."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from ...base.units import pluralize, show
from ...inference import held
from ...serving import (
    Demand,
    Deployment,
    Lognormal,
    Pools,
    ServingResult,
    Stretch,
    simulate,
    simulate_pools,
)
from .. import svg
from ..objects.servers import JOBS, deployment
from ..picture import WIDEST
from ..shapes import box, framed, line, number, written
from .controls import Choice, Drawing, Figure, Slider

REQUESTS, SPREAD, LONGEST = 80, 0.5, 4
PREFILL = Slider("prefill", "Of them for prefill", "servers", 1, 11, 2, step=1)
LEFT, RIGHT, HIGH = 44, 408, 396
BOXES = (50, 100)  # top and bottom of the servers
PLOT = (246, 336)  # and of the rates of all splits
COLOURS = {"prefill": "math", "decode": "HBM"}


@dataclass(frozen=True)
class PoolSplit:
    """Servers split into two pools, with the largest rate of one server of each kind.

    Args:
        prefill, decode: the number of servers in each pool.
        prompts: requests per second that one server prefills.
        answers: requests per second that one server decodes, with all slots taken.
    """

    prefill: int
    decode: int
    prompts: float
    answers: float

    @property
    def most(self) -> float:
        """min(prefill · prompts, decode · answers), requests per second."""
        return min(self.prefill * self.prompts, self.decode * self.answers)

    @property
    def limit(self) -> str:
        """The pool that limits the rate."""
        short = self.prefill * self.prompts < self.decode * self.answers
        return "prefill" if short else "decode"


def splits(on: Deployment, servers: int, input: int, output: int) -> list[PoolSplit]:
    """All ways to split this number of servers into two pools."""
    engine = on.engine(input, output)
    seqs = min(on.server.slots(held(input, output)), engine.slots)
    step = on.server.decode(seqs, seqs * held(input, output)).seconds
    answers = seqs / (max(output - 1, 1) * step)
    chunk = min(engine.budget, input)
    chunks = [(at, min(chunk, input - at)) for at in range(0, input, chunk)]
    alone = sum(on.server.prefill(new, behind).seconds for behind, new in chunks)
    return [PoolSplit(n, servers - n, 1 / alone, answers) for n in range(1, servers)]


@lru_cache(8)
def played(
    job: str, split: PoolSplit, rate: int, input: int, output: int, gigabits: int
) -> tuple[ServingResult, ServingResult, float]:
    """The two pools, one pool of equally many servers that do both, and the seconds to
    send a prompt's cache."""
    on = deployment(job)
    lengths = [Lognormal(n, SPREAD, LONGEST * n) for n in (input, output)]
    engine = on.engine(input, output)
    moved = sum(on.server.memory.cache) / (gigabits * 1e9 / 8)
    apart = simulate_pools(
        (on.seconds, engine),
        (on.seconds, replace(engine, delay=0.0)),
        Pools(split.prefill, split.decode, (0.0, moved)),
        Demand.poisson(rate, REQUESTS, *lengths, seed=1),
    )
    servers = split.prefill + split.decode
    demand = Demand.poisson(rate / servers, REQUESTS, *lengths, seed=1)
    return apart, simulate(on.seconds, engine, demand), moved * input


def draw(
    rate: int, prefill: int, servers: int, job: str, input: int, output: int, link: int
) -> Drawing:
    """The pools at work, with their times next to those of servers that do both."""
    on = deployment(job)
    title = f"{servers} times {job}"
    chosen = min(prefill, servers - 1)
    try:
        ways = splits(on, servers, input, output)
        split = ways[chosen - 1]
        apart, together, moving = played(job, split, rate, input, output, link)
    except ValueError as error:
        said = f"{error}."
        return Drawing(svg.message(title, said), said, (), {"most": None})
    best = max(ways, key=lambda one: one.most)
    much = rate > split.most
    summary = (
        f"{pluralize(str(split.prefill), 'servers')} for prefill and {split.decode} "
        f"for decode complete at most {split.most:.3g} requests/s, which {split.limit} "
        f"limits. {_asked(rate, much)} The median TPOT is "
        f"{show(apart.tpot(50), 's')}, and {show(together.tpot(50), 's')} where every "
        f"server does both; the median TTFT is {show(apart.ttft(50), 's')} and "
        f"{show(together.ttft(50), 's')}. The split with the highest rate has "
        f"{best.prefill} for prefill."
    )
    data = {
        "most": split.most,
        "limit": split.limit,
        "best": best.prefill,
        "rates": [one.most for one in ways],
        "apart": _times(apart),
        "together": _times(together),
        "moving": moving,
    }
    parts = (
        written(6, 16, title, bold=True),
        *_servers(split, apart, moving),
        *_table(apart, together),
        *_plot(ways, split, rate),
    )
    drawn = framed(title, summary, parts, WIDEST, HIGH)
    used = {} if chosen == prefill else {"prefill": chosen}
    return Drawing(drawn, summary, _readout(split, apart, together, moving), data,
                   used=used)  # fmt: skip


def _asked(rate: int, much: bool) -> str:
    if much:
        return f"That is less than the {rate} that come, so requests pile up."
    return f"{pluralize(str(rate), 'requests')} come per second."


def _times(result: ServingResult) -> dict[str, float]:
    return {
        f"{name} {n}": getattr(result, name)(n)
        for name in ("ttft", "tpot")
        for n in (50, 90)
    }


def _readout(
    split: PoolSplit, apart: ServingResult, together: ServingResult, moving: float
) -> tuple[tuple[str, ...], ...]:
    rows = [("", "pools", "every server does both")]
    for name in ("ttft", "tpot"):
        for n, words in ((50, "median"), (90, "9 of 10 within")):
            both = (show(getattr(one, name)(n), "s") for one in (apart, together))
            rows.append((f"{name.upper()}, {words}", *both))
    return (
        *rows,
        ("a prefill server reads", f"{split.prompts:.3g} prompts/s", ""),
        ("a decode server completes", f"{split.answers:.3g} answers/s", ""),
        ("the cache of a prompt moves in", show(moving, "s"), ""),
    )


def _share(steps: tuple[Stretch, ...], end: float, most: float = 0.0) -> float:
    """The share of the time in which a server steps, or of `most` slots in decode."""
    until = [one for one in steps if one.end <= end]
    if most:
        return sum(one.decode * (one.end - one.start) for one in until) / (most * end)
    return sum(one.end - one.start for one in until) / end


def _servers(split: PoolSplit, apart: ServingResult, moving: float) -> Iterator[str]:
    """A box for each server, filled by the share that it is busy or slots are taken."""
    top, bottom = BOXES
    end = apart.served[-1].request.arrival
    count = split.prefill + split.decode
    wide = min(44.0, (WIDEST - 12 - 64) / count)
    most = max(one.decode for steps in apart.stretches for one in steps) or 1
    x, places = 6.0, []
    for number_, steps in enumerate(apart.stretches):
        kind = "prefill" if number_ < split.prefill else "decode"
        if number_ == split.prefill:
            x = WIDEST - 6 - wide * split.decode
        share = _share(steps, end, most if kind == "decode" else 0.0)
        colour, right = COLOURS[kind], x + wide - 4
        level = bottom - (bottom - top) * min(share, 1.0)
        key = f"{kind} {number_ if kind == 'prefill' else number_ - split.prefill}"
        yield box(x, level, right, bottom, colour, fill=0.75, edge=0, round=0, key=key)
        yield box(x, top, right, bottom, colour, fill=0, edge=0.9, key=f"{key}'s")
        places.append((x, right))
        x += wide
    yield written(6, 40, "prefill: busy", "math")
    yield written(WIDEST - 6, 40, "decode: sequences", "HBM", "end")
    left, right = places[split.prefill - 1][1] + 6, places[split.prefill][0] - 6
    yield line((left, 75), (right, 75), colour="network", heads="end", key="moves")
    words = f"the cache of a prompt moves in {show(moving, 's')}"
    yield written(WIDEST / 2, bottom + 20, words, "network", "middle", key="moves's")


def _table(apart: ServingResult, together: ServingResult) -> Iterator[str]:
    columns = (230, 320, 408)
    for x, name in zip(columns, ("median", "9 of 10", ""), strict=True):
        yield written(x, 146, name, anchor="end")
    y = 146
    for name in ("ttft", "tpot"):
        for one, words in ((apart, "pools"), (together, "together")):
            y += 18
            yield written(6, y, f"{name.upper()}, {words}")
            for x, percent in zip(columns, (50, 90), strict=False):
                text = show(getattr(one, name)(percent), "s")
                yield written(x, y, text, anchor="end", bold=one is apart,
                              key=f"{name} {words} {percent}")  # fmt: skip


def _plot(ways: list[PoolSplit], split: PoolSplit, rate: int) -> Iterator[str]:
    """The largest rate of every split, in the colour of the pool that limits it."""
    top, bottom = PLOT
    most = max(rate * 1.1, *(one.most for one in ways))
    wide = (RIGHT - LEFT) / len(ways)
    yield written(6, top - 8, "requests/s at most", bold=True)
    places = []
    for place, one in enumerate(ways):
        middle = LEFT + wide * (place + 0.5)
        half = min(wide * 0.38, 24)
        level = bottom - (bottom - top) * one.most / most
        here = one.prefill == split.prefill
        yield box(middle - half, level, middle + half, bottom, COLOURS[one.limit],
                  fill=0.85 if here else 0.35, edge=0.9 if here else 0, round=0,
                  key=f"split {one.prefill}")  # fmt: skip
        yield written(middle, bottom + 18, f"{one.prefill}:{one.decode}",
                      anchor="middle", bold=here)  # fmt: skip
        places.append(number(middle))
    yield line((LEFT, bottom), (RIGHT, bottom), width=1, opacity=0.5)
    level = bottom - (bottom - top) * rate / most
    yield line((LEFT, level), (RIGHT, level), dashed=True, width=1.5, key="rate")
    yield written(LEFT - 6, level + 5, f"{rate}", anchor="end", key="rate's")
    yield written(LEFT, bottom + 40, "limited by")
    yield written(LEFT + 74, bottom + 40, "prefill", "math")
    yield written(LEFT + 124, bottom + 40, "decode", "HBM")
    yield written(RIGHT, bottom + 40, "prefill : decode", anchor="end")
    yield (
        f'<rect data-drag="{PREFILL.name}" data-drag-at="{" ".join(places)}" '
        f'x="{LEFT}" y="{top}" width="{RIGHT - LEFT}" height="{bottom - top}" '
        'fill="transparent"/>'
    )


FIGURE = Figure(
    "pools",
    "Pools for prefill and for decode",
    (
        Slider("rate", "Rate", "requests/s", 1, 128, 16, parts=4),
        PREFILL,
        Slider("servers", "Servers", "servers", 2, 12, 6, step=1),
        Choice("job", "Each is", tuple(JOBS), "8B on an H100"),
        Slider("input", "Prompt, mean", "tokens", 128, 16_384, 4096),
        Slider("output", "Answer, mean", "tokens", 32, 1024, 256),
        Slider("link", "Link of each chip", "Gbit/s", 50, 800, 400),
    ),
    draw,
    first="rate",
    presets={
        "long prompts": {"rate": 16, "prefill": 3, "servers": 6, "input": 4096,
                         "output": 256},
        "a conversation": {"rate": 48, "prefill": 2, "servers": 6, "input": 1024,
                           "output": 256},
        "code completion": {"rate": 24, "prefill": 4, "servers": 6, "input": 2048,
                            "output": 32},
        "too few for prefill": {"rate": 48, "prefill": 1, "servers": 6, "input": 4096,
                                "output": 256},
    },
    row=("rate", "prefill", "servers", "job"),
)  # fmt: skip
