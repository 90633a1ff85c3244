"""The live figure "calendar": the days, the energy and the price of a whole run."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ...hardware import chips as hardware
from ...hardware.chips import Chip
from ...transformer import LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B
from ..objects.year import DAYS, HIGH, LEFT, squares, start_of_month
from ..shapes import circle, framed, keyed, line, number, written
from ..svg import Axis
from .controls import Choice, Drawing, Figure, Slider

DAY = 86_400
MODELS = {one.name: one for one in (LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B)}
CHIPS = {
    hardware.CHIPS[key].name: hardware.CHIPS[key]
    for key in ("h100", "b200", "gb300", "tpu_v5p", "tpu_v6e", "tpu_7x")
}
COUNT = Slider("count", "Chips", "chips", 256, 131_072, 16_384, play=True)
TOKENS = Slider("tokens", "Tokens", "", 6, 306, 156, 5,
                printed=lambda stop: f"{stop / 10:.1f} trillion")  # fmt: skip
MFU = Slider("mfu", "MFU", "", 10, 70, 40, 1, printed=lambda stop: f"{stop}%")
GOODPUT = Slider("goodput", "Goodput", "", 50, 100, 90, 1,
                 printed=lambda stop: f"{stop}%")  # fmt: skip
PRICE = Slider("price", "A chip-hour costs", "", 5, 100, 20, 5,
               printed=lambda stop: f"${stop / 10:.2f}")  # fmt: skip
META_HOURS, META_CHIPS = 30.84e6, 16_384  # H100 hours, model card of Llama 3.1 405B
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
WIDE, TALL, RIGHT = 416, 364, 410
PLOT = (64, 210, 404, 320)  # left, top, right, bottom
X = Axis("chips", COUNT.low, COUNT.high, stops=(256, 2048, 16_384, 131_072))
Y = Axis("days", 0.1, 100_000, stops=(0.1, 10, 1000, 100_000))
USEFUL, LOST = "hue3", "hue8"  # a colour-blind reader can tell these two apart


@dataclass(frozen=True)
class WholeRun:
    """A training run, with its duration, energy and price.

    Args:
        flops: 6 · params · tokens.
        chip: the kind of chip.
        chips: the number of chips.
        mfu: the share of the peak that a step reaches.
        goodput: the share of the elapsed time that produces progress.
    """

    flops: float
    chip: Chip
    chips: int
    mfu: float
    goodput: float

    @property
    def days(self) -> float:
        """Days from the first step to the last, including lost time."""
        rate = self.chips * self.chip.flops["bf16"] * self.mfu * self.goodput
        return self.flops / rate / DAY

    @property
    def chip_hours(self) -> float:
        return 24 * self.days * self.chips

    @property
    def watt_hours(self) -> float | None:
        """Energy of the chips at their rated power; None if no power is published."""
        if "power" not in self.chip.facts:
            return None
        return self.chip_hours * self.chip.power


def draw(
    model: str, chip: str, count: int, tokens: int, mfu: int, goodput: int, price: int
) -> Drawing:
    """Each day of the run as a square, and days against the number of chips."""
    flops = 6 * MODELS[model].params * tokens * 1e11
    run = WholeRun(flops, CHIPS[chip], count, mfu / 100, goodput / 100)
    dollars = run.chip_hours * price / 10
    energy = run.watt_hours
    watts = ""
    if energy is not None:
        watts = f", and at their rated power the chips use {_energy(energy)}"
    meta = model == LLAMA_3_405B.name and chip == "H100" and tokens == 156
    summary = (
        f"{_power(flops)} FLOPs on {count:,} {chip} take {_days(run.days)}: "
        f"{_large(run.chip_hours)} chip-hours. At {PRICE.text(price)} an hour that is "
        f"{_large(dollars)} dollars{watts}."
    )
    if meta:
        theirs = META_HOURS / META_CHIPS / 24
        summary += (
            f" Meta's model card states 30.84 million hours, {theirs:.1f} days on "
            f"{META_CHIPS:,} GPUs."
        )
    data = {
        "flops": flops,
        "days": run.days,
        "chip_hours": run.chip_hours,
        "dollars": dollars,
        "watt_hours": energy,
    }
    rows = [
        ("", model),
        ("FLOPs, 6 a parameter and token", _power(flops)),
        ("it takes", _days(run.days)),
        ("chip-hours", _large(run.chip_hours)),
        ("dollars", _large(dollars)),
        ("energy of the chips", "no source" if energy is None else _energy(energy)),
    ]
    title = f"{model} on {count:,} {chip}"
    parts = (*_grid(title, run, mfu, goodput), *_curve(run, meta))
    return Drawing(
        framed(title, summary, parts, WIDE, TALL), summary, tuple(rows), data
    )


def _days(days: float) -> str:
    if days < 2:
        hours = 24 * days
        return f"{hours:.3g} hours" if hours >= 2 else f"{60 * hours:.3g} minutes"
    return f"{days:,.1f} days" if days < 2 * DAYS else f"{days / 365.25:,.1f} years"


def _power(amount: float) -> str:
    """A number that is too large for prefixes, as text.

    >>> _power(3.8e25)
    '3.80 · 10²⁵'
    """
    digits, _, exponent = f"{amount:.2e}".partition("e+")
    return f"{digits} · 10{exponent.translate(RAISED)}"


def _large(amount: float) -> str:
    for size, name in ((1e9, " billion"), (1e6, " million")):
        if amount >= size:
            return f"{amount / size:.3g}{name}"
    return f"{amount:,.0f}"


def _energy(watt_hours: float) -> str:
    size, name = (1e9, "GWh") if watt_hours >= 1e9 else (1e6, "MWh")
    return f"{watt_hours / size:.3g} {name}"


def _grid(title: str, run: WholeRun, mfu: int, goodput: int) -> Iterator[str]:
    yield written(LEFT, 16, title, bold=True)
    said = f"{_days(run.days)} at {mfu}% MFU and {goodput}% goodput"
    yield written(LEFT, 36, said, key="days")
    every = math.ceil(run.days)
    useful = max(1, min(round(run.days * run.goodput), every))
    days = [(USEFUL, 0.875)] * useful + [(LOST, 0.75)] * (every - useful)
    yield from squares(days[:DAYS], 46)
    for month in range(1, 13):
        yield written(start_of_month(month), 46 + HIGH + 14, f"{month}")
    note = "Columns are weeks, numbers months. Red days are lost."
    if run.days > DAYS:
        note = "The run takes longer than this year."
    yield written(LEFT, 46 + HIGH + 34, note, key="note")


def _curve(run: WholeRun, meta: bool) -> Iterator[str]:
    """Days against chips: a straight line, since twice the chips take half the days."""
    left, top, right, bottom = PLOT
    work = run.days * run.chips

    def place(count: float, days: float) -> tuple[float, float]:
        x = left + (right - left) * X.share(count)
        return x, bottom - (bottom - top) * Y.share(days)

    yield written(LEFT, top - 44, "days by the number of chips", bold=True)
    yield written(LEFT, top - 24, "if MFU and goodput stayed the same")
    for tick in Y.ticks():
        _, y = place(X.low, tick)
        yield line((left, y), (right, y), width=1, opacity=0.18)
        yield written(left - 6, y + 5, f"{tick:,g}", anchor="end")
    for tick in X.stops:
        at = "end" if tick == X.high else "middle"
        yield written(place(tick, 1)[0], bottom + 18, f"{tick:,}", anchor=at)
    yield written(RIGHT, bottom + 36, "chips", anchor="end")
    ends = max(COUNT.low, work / Y.high), min(COUNT.high, work / Y.low)
    some = [place(n, work / n) for n in ends]
    yield line(*some, colour=USEFUL, width=2.5, key="curve")
    if meta:
        x, y = place(META_CHIPS, META_HOURS / META_CHIPS / 24)
        yield circle(x, y, 6, "ink", fill=0, edge=1, key="Meta")
        yield written(x - 10, y + 18, "Meta", anchor="end", key="Meta's")
    x, y = place(run.chips, run.days)
    beyond = not Y.low <= run.days <= Y.high  # a ring at the edge
    yield circle(x, y, 5, USEFUL, fill=not beyond, edge=beyond, key="point")
    said = f"{run.days:,.0f} days" if 10 <= run.days < 2 * DAYS else _days(run.days)
    at, anchor = (x + 6, "end") if x > right - 80 else (x + 10, "start")
    yield written(at, y - 10, said, USEFUL, anchor, bold=True, key="point's")
    stops = " ".join(number(place(n, 1)[0]) for n in COUNT.stops)
    yield (
        f'<circle cx="{number(x)}" cy="{number(y)}" r="18"{keyed("handle")} '
        f'data-drag="{COUNT.name}" data-drag-at="{stops}" fill="transparent"/>'
    )


FIGURE = Figure(
    "calendar",
    "The calendar of a training run",
    (
        COUNT,
        MFU,
        GOODPUT,
        Choice("model", "Model", tuple(MODELS), LLAMA_3_405B.name),
        Choice("chip", "Chip", tuple(CHIPS), "H100",
               lambda name: hardware.find(name).name),
        TOKENS,
        PRICE,
    ),
    draw,
    first="count",
    presets={
        "Llama 3.1 405B": {"count": 16_384, "mfu": 40, "goodput": 90},
        "8B on 1,024 v5p": {
            "model": LLAMA_3_8B.name, "chip": CHIPS["TPU v5p"].name, "count": 1024,
            "mfu": 55, "goodput": 95,
        },
        "405B on 4,096 Ironwood": {
            "chip": hardware.CHIPS["tpu_7x"].name, "count": 4096, "mfu": 45,
        },
    },
)  # fmt: skip
