"""The live figure "serve": latencies, slots and dollars of a server under a load."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ...base.units import pluralize, show
from ...hardware import chips
from ...hardware.networks import network
from ...hardware.networks.usual import usual
from ...inference import Formats, Layout, Requests, Scheduler, closed_loop, open_loop
from ...serving import Demand, Deployment, LayoutAnswer, ServingResult, simulate
from ...serving.answer import TARGET
from ...serving.copies import BUDGET, deployed
from ...transformer import DEEPSEEK_V3, LLAMA_3_8B, LLAMA_3_70B
from .. import svg
from ..objects.servers import CHIPS, MODELS
from ..picture import WIDEST
from ..shapes import circle, framed, keyed, line, number, written
from .controls import Choice, Drawing, Figure, Slider

TENSOR, DATA = "tensor parallel", "data parallel, experts dealt out"
REQUESTS, POINTS = 80, 9  # requests played for the point; rates on the curve
HIGH, LEFT, RIGHT = 396, 52, 406
PLOT = (208, 336)
METRICS = ("ttft", "tpot")
RATE = Slider("rate", "Rate", "requests/s", 1, 512, 4, parts=4)


@dataclass(frozen=True)
class ServedLoad:
    """A machine that serves a model, at one rate in detail, and at other rates.

    Args:
        answer: the layout at the rate, with its bounds, slots and prices.
        capacity: the most requests per second that the machine can serve, in closed
            form.
        curve: (rate, bound, prediction) at other rates, in requests per second and
            seconds per output token.
        result: the played requests, or None above the capacity.
    """

    answer: LayoutAnswer
    capacity: float
    curve: tuple[tuple[float, float, float], ...]
    result: ServingResult | None

    def times(self, metric: str) -> tuple[float, float, float | None, float | None]:
        """Bound, prediction and band of "ttft" or "tpot", in seconds."""
        bound = self.answer.bound(metric)
        found = getattr(self.result, metric)(50)
        band = self.answer.band(metric)
        if band is None:
            return bound, found, None, None
        return bound, found, max(bound, band[0] * found), max(bound, band[1] * found)


@lru_cache(16)  # another rate on the same machine is asked for often
def machine_of(
    model: str, chip: str, count: int, layout: Layout, formats: Formats
) -> Deployment:
    """The copies of a server that fill `count` chips."""
    on = network(usual(CHIPS[chip], count))
    return deployed(MODELS[model], on, layout, formats, None)


@lru_cache(16)
def curve_of(
    answer: LayoutAnswer,
) -> tuple[float, tuple[tuple[float, float, float], ...]]:
    """The capacity in closed form, and times per token for rates up to it."""
    copies, server = answer.deployment.copies, answer.server
    asked, engine = Requests(answer.input, answer.output), answer.engine
    scheduler = Scheduler(BUDGET, sequences=engine.slots)
    most = closed_loop(server, min(answer.slots, engine.slots), asked, scheduler).rate
    found, least = [], min(RATE.low / copies, 0.05 * most)
    for point in range(POINTS):
        rate = least + (0.97 * most - least) * (point / (POINTS - 1)) ** 1.7
        one = LayoutAnswer(answer.deployment, rate * copies, answer.input,
                           answer.output, answer.target)  # fmt: skip
        load = open_loop(server, rate, asked, scheduler)
        found.append((rate * copies, one.tpot_bound, load.tpot))
    return most * copies, tuple(found)


def loaded(deployment: Deployment, rate: int, input: int, output: int) -> ServedLoad:
    """The machine under a load of `rate` requests per second.

    Raises:
        ValueError: the model or a request does not fit.
    """
    answer = LayoutAnswer(deployment, rate, input, output, TARGET)
    steady = LayoutAnswer(deployment, 1.0, input, output, TARGET)
    capacity, curve = curve_of(steady)
    result = None
    if rate < capacity:
        demand = Demand.poisson(answer.each, REQUESTS, input, output)
        result = simulate(deployment.seconds, answer.engine, demand)
    return ServedLoad(answer, capacity, curve, result)


def draw(
    rate: int, model: str, chip: str, count: int, ways: int, attention: str,
    weights: str, cache: str, input: int, output: int, price: int,
) -> Drawing:  # fmt: skip
    """Bound and prediction of both latencies, and the time per token at every rate."""
    shape = MODELS[model]
    title = f"{model} on {pluralize(f'{count:,}', f'{chip}s')}"
    idle = {} if shape.experts else {"attention": f"{model} has no experts."}
    dealt = attention == DATA and bool(shape.experts)
    layout = Layout(ways)
    try:
        if dealt:
            layout = Layout(1, data=ways, expert=ways)
        formats = Formats(weights, cache=cache)
        machine = machine_of(model, chip, count, layout, formats)
        load = loaded(machine, rate, input, output)
    except ValueError as error:
        said = f"{error}."
        drawn = svg.message(title, said)
        return Drawing(drawn, said, (), {"capacity": None}, idle=idle)
    summary = _summary(load, price)
    data = _data(load, price)
    parts = (
        written(6, 16, title, bold=True),
        written(6, 36, load.answer.deployment.words, key="layout"),
        *_table(load),
        *_curve(load, rate),
    )
    drawn = framed(title, summary, parts, WIDEST, HIGH)
    return Drawing(drawn, summary, _readout(load, price), data, idle=idle)


def _summary(load: ServedLoad, price: int) -> str:
    one = load.answer
    most = f"{load.capacity:.3g} requests/s"
    if load.result is None:
        return (
            f"{one.deployment.words} cannot do {one.rate:g} requests/s with "
            f"{one.input:,} + {one.output:,} tokens each. It can do about {most}."
        )
    said = []
    for metric in METRICS:
        bound, found, low, high = load.times(metric)
        words = f"the {metric.upper()} is at least {show(bound, 's')} and most likely "
        words += show(found, "s")
        if low is not None:
            words += f" (8 of 10 servers: {show(low, 's')} to {show(high, 's')})"
        said.append(words)
    user = 1 / load.times("tpot")[1]
    return (
        f"With {pluralize(f'{one.rate:g}', 'requests/s')} of {one.input:,} + "
        f"{one.output:,} tokens, {', and '.join(said)}. Each user gets {user:.3g} "
        f"tokens/s, and a million tokens cost ${one.dollars(price / 100):.3g}. The "
        f"server can keep up with about {most}."
    )


def _data(load: ServedLoad, price: int) -> dict[str, object]:
    one = load.answer
    found: dict[str, object] = {
        "slots": one.slots * one.deployment.copies,
        "copies": one.deployment.copies,
        "capacity": load.capacity,
        "dollars": one.dollars(price / 100),
        "joules": one.joules,
        "tokens_per_chip": one.rate * one.output / one.deployment.machine.chips,
        "command": _command(load),
    }
    if load.result is not None:
        for metric in METRICS:
            found[metric] = list(load.times(metric))
        found["decoding"] = load.result.decoding * one.deployment.copies
    return found


def _command(load: ServedLoad) -> str:
    """The command for the same in a terminal, with more requests."""
    one, server = load.answer, load.answer.server
    machine = usual(server.chip, one.deployment.machine.chips)
    name = server.model.name.lower().replace(" ", "-")
    said = f"python -m shardmath serve {name} {machine} --rate {one.rate:g}"
    said += f" --input {one.input} --output {one.output}"
    said += f" --weights {server.formats.weights} --cache {server.formats.cache}"
    layout = server.layout
    said += f" --tensor {layout.tensor}"
    if layout.data > 1:
        said += f" --data {layout.data} --expert {layout.expert}"
    return said


def _readout(load: ServedLoad, price: int) -> tuple[tuple[str, ...], ...]:
    one, copies = load.answer, load.answer.deployment.copies
    rows = [("", "bound", "likely", "8 of 10 servers")]
    if load.result is not None:
        for metric in METRICS:
            bound, found, low, high = load.times(metric)
            band = "–" if low is None else f"{show(low, 's')} to {show(high, 's')}"
            name = metric.upper()
            rows.append((name, show(bound, "s"), show(found, "s"), band))
        user = 1 / load.times("tpot")[1]
        decoding = load.result.decoding * copies
        rows += [
            ("tokens/s for each user", "", f"{user:.3g}", ""),
            ("sequences in decode, mean", "", f"{decoding:.3g}", ""),
        ]
    chip = one.rate * one.output / one.deployment.machine.chips
    energy = "no source" if one.joules is None else f"{one.joules / 1e6:.3g} MJ"
    rows += [
        ("requests/s at most", "", f"{load.capacity:.3g}", ""),
        ("slots", "", f"{one.slots * copies:,}", ""),
        ("tokens/s for each chip", "", f"{chip:.3g}", ""),
        ("dollars per million tokens", "", f"${one.dollars(price / 100):.3g}", ""),
        ("energy per million tokens, rated", "", energy, ""),
    ]
    return tuple(rows)


def _table(load: ServedLoad) -> Iterator[str]:
    """Both times: bound, prediction and band; then slots."""
    one = load.answer
    columns = (130, 216, 406)
    for x, words in zip(columns, ("bound", "likely", "8 of 10 servers"), strict=True):
        yield written(x, 62, words, anchor="end")
    for n, metric in enumerate(METRICS):
        y = 84 + 20 * n
        yield written(6, y, metric.upper())
        if load.result is None:
            yield written(columns[1], y, "–", anchor="end", key=metric)
            continue
        bound, found, low, high = load.times(metric)
        band = "–" if low is None else f"{show(low, 's')} to {show(high, 's')}"
        cells = (show(bound, "s"), show(found, "s"), band)
        for x, words, bold in zip(columns, cells, (False, True, False), strict=True):
            yield written(x, y, words, anchor="end", bold=bold,
                          key=f"{metric} {x}")  # fmt: skip
    slots = one.slots * one.deployment.copies
    busy = "more requests than it can do"
    if load.result is not None:
        busy = f"{load.result.decoding * one.deployment.copies:.3g} decode at a time"
    yield written(6, 128, f"{pluralize(f'{slots:,}', 'slots')}; {busy}", key="slots")
    most = f"at most about {load.capacity:.3g} requests/s"
    yield written(6, 148, most, key="capacity")


def _curve(load: ServedLoad, rate: int) -> Iterator[str]:
    """Tokens per second of a user against the rate, as a bound and as predicted."""
    top, bottom = PLOT
    rates, bounds, likely = zip(*load.curve, strict=True)
    low = min(RATE.low, rates[0])
    x = svg.Axis("requests/s", low, max(1.15 * load.capacity, 2 * low))
    y = svg.Axis("tokens/s", 0.8 / max(likely), 1.2 / min(bounds))

    def at(requests: float, seconds: float) -> tuple[float, float]:
        right = LEFT + (RIGHT - LEFT) * x.share(requests)
        return right, bottom - (bottom - top) * y.share(1 / seconds)

    yield written(6, top - 28, "tokens/s of each user by requests/s", bold=True)
    ticks = [tick for tick in (1, 3, 10, 30, 100, 300, 1000) if y.low < tick < y.high]
    for tick in ticks:
        level = at(low, 1 / tick)[1]
        yield line((LEFT, level), (RIGHT, level), width=1, opacity=0.18)
        yield written(LEFT - 6, level + 5, f"{tick:,}", anchor="end")
    marks = [n for n in (0.01, 0.1, 1, 4, 16, 64, 256, 1024) if low <= n < x.high / 1.1]
    for tick in marks:
        place = at(tick, likely[0])[0]
        yield written(place, bottom + 18, f"{tick:g}", anchor="middle")
    yield line((LEFT, bottom), (RIGHT, bottom), width=1, opacity=0.5)
    yield line(*(at(r, b) for r, b in zip(rates, bounds, strict=True)), dashed=True,
               width=2, key="bound")  # fmt: skip
    yield line(*(at(r, t) for r, t in zip(rates, likely, strict=True)), colour="hue3",
               width=2.5, key="likely")  # fmt: skip
    yield written(LEFT + 6, top - 6, "dashed: bound", key="bound's")
    yield written(RIGHT, top - 6, "line: likely", "hue3", "end", key="likely's")
    edge = at(load.capacity, likely[-1])[0]
    yield line((edge, top), (edge, bottom), colour="hue8", width=1.5, key="most")
    yield written(RIGHT, bottom + 38, "red: the most that it can do", "hue8", "end")
    stops = " ".join(number(at(stop, likely[0])[0]) for stop in RATE.stops)
    place = at(rate, likely[0])[0]
    if load.result is not None:
        place, level = at(rate, load.times("tpot")[1])
        yield circle(place, level, 6, "hue3", key="point")
    yield (
        f'<circle cx="{number(place)}" cy="{number((top + bottom) / 2)}" r="18"'
        f'{keyed("handle")} data-drag="{RATE.name}" data-drag-at="{stops}" '
        'fill="transparent"/>'
    )


FIGURE = Figure(
    "serve",
    "A model on a server",
    (
        RATE,
        Choice("model", "Model", tuple(MODELS), LLAMA_3_70B.name),
        Choice("chip", "Chip", tuple(CHIPS), "H100", lambda name: chips.find(name).name,
               machine=True),
        Slider("count", "Chips", "chips", 1, 64, 8),
        Slider("ways", "Chips of a copy", "chips", 1, 64, 8),
        Choice("attention", "Attention", (TENSOR, DATA), TENSOR),
        Choice("weights", "Weights", ("bf16", "fp8", "int8", "int4", "nvfp4"), "fp8"),
        Choice("cache", "Cache", ("bf16", "fp8"), "bf16"),
        Slider("input", "Prompt", "tokens", 128, 32_768, 1024, parts=2),
        Slider("output", "Answer", "tokens", 32, 4096, 256, parts=2),
        Slider("price", "Price of a chip", "", 25, 1200, 250, step=25,
               printed=lambda cents: f"${cents / 100:.2f} an hour"),
    ),
    draw,
    first="rate",
    presets={
        "8B on an H100": {"model": LLAMA_3_8B.name, "chip": "H100", "count": 1,
                          "ways": 1, "weights": "bf16"},
        "70B on a node": {"model": LLAMA_3_70B.name, "chip": "H100", "count": 8,
                          "ways": 8, "weights": "fp8"},
        "70B, two copies": {"model": LLAMA_3_70B.name, "chip": "H100", "count": 8,
                            "ways": 4, "weights": "fp8"},
        "DeepSeek-V3 on 8 H200": {"model": DEEPSEEK_V3.name, "chip": "H200", "count": 8,
                                  "ways": 8, "attention": DATA, "weights": "fp8"},
    },
    row=("rate", "model", "chip", "count"),
)  # fmt: skip
