"""The live figure "report": derives all figures of a training run from one of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...base.tables import Absent
from ...base.units import show
from ...hardware import chips
from ...measured.reports import (
    CONVENTIONS,
    NAMES,
    REPORTS,
    Report,
    RunFigures,
    flops_per_token,
    solve,
)
from ...measured.run_figures import hours_said, rate_said
from ...transformer import ACTIVE, model
from ..labels import text_width
from ..shapes import box, framed, line, written
from ..svg import message
from .controls import Choice, Drawing, Figure, Slider

OWN = "your own run"
GIVEN = {  # a figure that a reader can give → its slider
    "MFU": "mfu",
    "tokens/s per chip": "tokens_per_second",
    "time of a step": "step_seconds",
    "chip-hours": "chip_hours",
    "days": "days",
}
UNITS = {  # slider → the value of one unit
    "mfu": 1e-3,
    "tokens_per_second": 1,
    "step_seconds": 0.5,
    "chip_hours": 1e3,
    "days": 1,
}
BARS = (*CONVENTIONS, "hardware")
WIDE, HIGH, LEFT, RIGHT = 416, 476, 6, 410
BOX = (150, 50)  # width and height
ROWS = (36, 130, 224)  # tops of the boxes
BAR, TOP, START, END = 18, 332, 138, 356
NEAR = 0.5  # percentage points, the error of rounding to whole ones
SCALES = (0.4, 0.5, 0.6, 0.8, 1.0, 1.4, 2.0, 4.0)


@dataclass(frozen=True)
class Printed:
    """A published figure to start from.

    Args:
        report: the report that prints it.
        figure: its name in the report.
        shares: names, in the report, of utilizations or of FLOPs/s from which a
            utilization follows.
    """

    report: Report
    figure: str
    shares: tuple[str, ...]

    @property
    def utilizations(self) -> tuple[float, ...]:
        """The utilizations in the report, as shares of the peak."""
        values = map(self.report.value, self.shares)
        return tuple(one / self.report.peak if one > 1 else one for one in values)


def _printed(key: str, figure: str, *shares: str) -> Printed:
    return Printed(REPORTS[key], figure, shares)


PRINTED = {
    "PaLM 540B: 238,300 tokens/s": _printed(
        "palm_540b", "total_tokens_per_second", "mfu", "mfu_attention"
    ),
    "Llama 3.1 405B: MFU 41 %": _printed("llama_31_405b", "mfu", "mfu"),
    "Llama 3.1 405B: 30.84 M hours": _printed("llama_31_405b", "chip_hours", "mfu"),
    "Llama 3 8B: 1.3 M hours": _printed("llama_3_8b", "chip_hours"),
    "Llama 2 70B: 1.72 M hours": _printed("llama_2_70b", "chip_hours"),
    "BLOOM 176B: a step of 105 s": _printed(
        "bloom_176b", "step_seconds", "hardware_flops_per_second"
    ),
    "DeepSeek-V3: 2.664 M hours": _printed(
        "deepseek_v3", "chip_hours", "mfu_causal", "mfu_attention"
    ),
    "OLMo 2 32B: 1,800 tokens/s": _printed("olmo_2_32b", "tokens_per_second", "mfu"),
    "Nemotron-4 340B: a step of 8 s": _printed(
        "nemotron_4_340b", "step_seconds", "mfu"
    ),
}
MODELS = {
    one.name: one
    for one in (
        *map(model, ("llama 3 8b", "llama 3 70b", "llama 3 405b", "llama 2 7b",
                     "llama 2 70b", "palm 540b", "bloom", "gpt 3", "deepseek v3",
                     "qwen 3 235b a22b", "mixtral 8x7b", "olmo 2 32b")),
        REPORTS["nemotron_4_340b"].model,
    )
}  # fmt: skip


def draw(
    report: str,
    convention: str,
    given: str,
    params: str,
    model: str,
    chip: str,
    chips: int,
    batch: int,
    tokens: int,
    seq: int,
    **values: int,
) -> Drawing:
    """Six figures of a run as boxes, joined by the numbers that relate them, and the
    utilization that each convention gives for the same rate."""
    if report != OWN:
        one = PRINTED[report]
        found = one.report.solve(convention, one.figure, params=params)
        idle = dict.fromkeys(
            (*values, "given", "model", "chip", "chips", "batch", "tokens", "seq"),
            f"the report says it; choose {OWN} to change it",
        )
        return _drawing(
            found, _name(one.figure), one.report.name, one.utilizations, idle
        )
    name = GIVEN[given]
    idle = {other: f"it follows from the {given}" for other in values if other != name}
    of = MODELS[model]
    try:
        found = solve(
            of, seq, convention, chip, precision=_half(chip), params=params,
            chips=chips, batch=batch, tokens=tokens * 1e9,
            **{name: values[name] * UNITS[name]},
        )  # fmt: skip
    except ValueError as error:
        said = f"These figures cannot be: {error}."
        return Drawing(message(f"{of.name}", said), said, (), {"mfu": None}, idle=idle)
    return _drawing(found, name, of.name, (), idle)


def _half(chip: str) -> str:
    return chips.find(chip).half


def _name(figure: str) -> str:
    return figure.removeprefix("total_")


def _drawing(
    found: RunFigures,
    given: str,
    name: str,
    printed: tuple[float, ...],
    idle: Mapping[str, str],
) -> Drawing:
    shares = {
        way: found.tokens_per_second
        * flops_per_token(found.model, found.seq, way, found.params)
        / found.peak
        for way in BARS
    }
    summary = _summary(found, given, name, shares, printed)
    many = f"{found.chips:,} " if found.chips else ""
    title = f"{name} on {many}{found.chip.name}"
    parts = (*_chain(title, found, given), *_bars(found, shares, printed))
    data = {
        **{figure: _value(found, figure) for figure in GIVEN.values()},
        "flops_per_second": found.flops_per_second,
        "shares": shares,
        "given": given,
    }
    svg = framed(title, summary, parts, WIDE, HIGH)
    return Drawing(svg, summary, _readout(found, given, shares), data, idle=idle)


def _value(found: RunFigures, figure: str) -> float | None:
    """A figure of the run, or None if it can't be derived."""
    try:
        return getattr(found, figure)
    except Absent:
        return None


# Words -------------------------------------------------------------------------------


def _text(found: RunFigures, figure: str) -> str:
    """A figure with its unit."""
    value = _value(found, figure)
    if value is None:
        return "not printed"
    return {
        "mfu": lambda: f"{value:.1%}",
        "tokens_per_second": lambda: rate_said(value),
        "flops_per_second": lambda: show(value, "FLOPs/s"),
        "step_seconds": lambda: show(value, "s"),
        "chip_hours": lambda: hours_said(value).removesuffix(" chip-hours"),
        "days": lambda: f"{value:.3g} days",
    }[figure]()


def _summary(
    found: RunFigures,
    given: str,
    name: str,
    shares: Mapping[str, float],
    printed: tuple[float, ...],
) -> str:
    """A text on the given figure, its meaning, and a printed share's convention."""
    rate = f"{name} trains at {_text(found, 'tokens_per_second')} per {found.chip.name}"
    start = {
        "mfu": f"An MFU of {found.mfu:.1%} that counts {NAMES[found.convention]}",
        "step_seconds": f"A step of {_text(found, 'step_seconds')}",
        "chip_hours": f"A run of {_text(found, 'chip_hours')} chip-hours",
        "days": f"A run of {_text(found, 'days')}",
    }
    said = [f"{start[given]} means that {rate}." if given in start else f"{rate}."]
    others = [one for one in CONVENTIONS if given != "mfu" or one != found.convention]
    *ways, last = (f"{shares[way]:.1%} if we count {NAMES[way]}" for way in others)
    said.append(
        f"The same rate is an MFU of {', '.join(ways)} and {last}, and an HFU of "
        f"{shares['hardware']:.1%} if every layer runs forward twice."
    )
    if found.tokens:
        on = (
            f" and {found.days:.3g} days on {found.chips:,} chips"
            if found.chips
            else ""
        )
        hours = hours_said(found.chip_hours)
        said.append(
            f"At this rate, {_trillions(found.tokens)} tokens take {hours}{on}."
        )
    said += [_compared(share, shares) for share in printed if given != "mfu"]
    return " ".join(said)


def _compared(printed: float, shares: Mapping[str, float]) -> str:
    """A text on which of the shares a printed one agrees with."""
    way = min(shares, key=lambda one: abs(shares[one] - printed))
    off = 100 * (shares[way] - printed)
    print_ = f"The report prints {100 * printed:.4g}%"
    if abs(off) <= NEAR:
        return f"{print_}, which is what counting {NAMES[way]} gives."
    side = "above" if off > 0 else "below"
    return (
        f"{print_}; counting {NAMES[way]} comes nearest, {abs(off):.1f} points {side}."
    )


def _trillions(tokens: float) -> str:
    if tokens < 1e12:
        return f"{tokens / 1e9:.4g} billion"
    return f"{tokens / 1e12:.4g} trillion"


def _readout(
    found: RunFigures, given: str, shares: Mapping[str, float]
) -> tuple[tuple[str, ...], ...]:
    how = {
        "flops_per_second": "tokens/s × FLOPs per token",
        "mfu": "FLOPs/s ÷ peak",
        "step_seconds": "tokens of a step ÷ (chips × tokens/s)",
        "chip_hours": "tokens of the run ÷ tokens/s",
        "days": "chip-hours ÷ (24 × chips)",
        "tokens_per_second": "from what is given",
    }
    words = {name: words for words, name in GIVEN.items()}
    words["flops_per_second"] = "FLOPs/s per chip"
    rows = [("", "value", "how")]
    for name, means in how.items():
        rows.append((words[name], _text(found, name),
                     "given" if name == given else means))  # fmt: skip
    rows += [
        (NAMES[way], f"{share:.1%}",
         show(flops_per_token(found.model, found.seq, way, found.params), "FLOPs")
         + " per token")
        for way, share in shares.items()
    ]  # fmt: skip
    return tuple(rows)


# The picture -------------------------------------------------------------------------


def _chain(title: str, found: RunFigures, given: str) -> Iterator[str]:
    """The six figures in two columns."""
    wide, high = BOX
    right, middle = RIGHT - wide, LEFT + wide
    yield written(LEFT, 16, title, bold=True)
    rows = (
        (("mfu", "MFU"), ("flops_per_second", "FLOPs/s per chip")),
        (
            ("step_seconds", "time of a step"),
            ("tokens_per_second", "tokens/s per chip"),
        ),
        (("days", "days"), ("chip_hours", "chip-hours")),
    )
    many = f"{found.chips:,} chips" if found.chips else "chips"
    batch = f"{show(found.batch)} tokens" if found.batch else "tokens a step"
    links = (
        ("peak", show(found.peak, "FLOPs/s")),
        (batch, many),
        ("24 hours", many),
    )
    for top, pair, words in zip(ROWS, rows, links, strict=True):
        y = top + high / 2
        yield line((middle, y), (right, y), width=1.5, opacity=0.6)
        for text, down in zip(words, (-6, 17), strict=True):
            yield written((middle + right) / 2, y + down, text, anchor="middle",
                          key=f"{pair[0][0]} by {down}")  # fmt: skip
        for (figure, name), left in zip(pair, (LEFT, right), strict=True):
            yield from _box(left, top, name, found, figure, figure == given)
    token = f"{show(found.flops_per_token, 'FLOPs')} per token"
    tokens = f"{_trillions(found.tokens)} tokens" if found.tokens else "tokens"
    x = right + wide / 2
    for top, words in ((ROWS[0] + high, token), (ROWS[1] + high, tokens)):
        yield line((x, top), (x, top + ROWS[1] - ROWS[0] - high), width=1.5,
                   opacity=0.6)  # fmt: skip
        yield written(x - 8, top + 28, words, anchor="end", key=f"link {top}")


def _box(
    left: float, top: float, name: str, found: RunFigures, figure: str, given: bool
) -> Iterator[str]:
    wide, high = BOX
    colour = "hue1" if given else "ink"
    known = _value(found, figure) is not None
    yield box(left, top, left + wide, top + high, colour, fill=0.16 if given else 0.05,
              edge=1 if given else 0.5, dashed=not known, key=figure)  # fmt: skip
    middle = left + wide / 2
    yield written(middle, top + 23, name, colour, "middle")
    yield written(middle, top + 41, _text(found, figure), colour, "middle", bold=True,
                  key=f"{figure}'s")  # fmt: skip
    if given:
        yield written(left + 8, top + 3, "given", colour, bold=True, key="given")


def _bars(
    found: RunFigures, shares: Mapping[str, float], printed: tuple[float, ...]
) -> Iterator[str]:
    """The utilization by each convention, with the report's own marked."""
    yield written(LEFT, TOP - 30, "the same rate, counted in four ways", bold=True)
    most = max(*shares.values(), *printed, 0.4)
    scale = next((one for one in SCALES if one >= most), most)
    bottom = TOP + 30 * len(shares)

    def place(share: float) -> float:
        return START + (END - START) * share / scale

    for tick in (0, scale / 2, scale):
        yield line((place(tick), TOP - 4), (place(tick), bottom), width=1,
                   opacity=0.18)  # fmt: skip
        yield written(place(tick), bottom + 16, f"{100 * tick:.3g}%", anchor="middle")
    for n, (way, share) in enumerate(shares.items()):
        y, chosen = TOP + 30 * n, way == found.convention
        name = "forward twice" if way == "hardware" else NAMES[way]
        yield written(START - 8, y + 14, name, anchor="end", bold=chosen)
        yield box(START, y, place(share), y + BAR, "math",
                  fill=0.85 if chosen else 0.4, edge=0, round=0, key=way)  # fmt: skip
        yield written(RIGHT, y + 14, f"{share:.1%}", "math", "end", bold=chosen,
                      key=f"{way}'s")  # fmt: skip
    if printed:
        for n, share in enumerate(printed):
            yield line((place(share), TOP - 8), (place(share), bottom), colour="hue8",
                       width=1.5, dashed=True, key=f"printed {n}")  # fmt: skip
        words = " and ".join(f"{100 * share:.4g}%" for share in printed)
        said = f"printed: {words}"
        half = text_width(said) / 2
        x = min(max(place(printed[0]), LEFT + half), RIGHT - half)
        yield written(x, TOP - 12, said, "hue8", "middle", key="printed's")


def _share(stop: int) -> str:
    return f"{stop / 10:g} %"


def _seconds(stop: int) -> str:
    return f"{stop / 2:g} s"


def _hours(stop: int) -> str:
    return hours_said(stop * 1e3)


def _tokens(stop: int) -> str:
    return f"{show(stop)} tokens"


def _billions(stop: int) -> str:
    return f"{_trillions(stop * 1e9)} tokens"


FIGURE = Figure(
    "report",
    "The report calculator",
    (
        Choice("report", "Report", (OWN, *PRINTED), OWN),
        Choice("convention", "Count", CONVENTIONS, "6N"),
        Choice("given", "Given", tuple(GIVEN), "MFU"),
        Slider("mfu", "MFU", "%", 10, 1000, 410, step=10, printed=_share),
        Slider("tokens_per_second", "Tokens/s per chip", "tokens/s", 1, 65_536, 160,
               parts=16),
        Slider("step_seconds", "Time of a step", "s", 1, 1024, 12, parts=16,
               printed=_seconds),
        Slider("chip_hours", "Chip-hours", "", 1, 65_536, 30_720, parts=16,
               printed=_hours),
        Slider("days", "Days", "days", 1, 200, 54, step=1),
        Choice("model", "Model", tuple(MODELS), "Llama 3.1 405B"),
        Choice("chip", "Chip",
               tuple(c.name for c in chips.ALL if {"bf16", "fp16"} & set(c.flops)),
               "H100", lambda name: chips.find(name).name, machine=True),
        Slider("chips", "Chips", "chips", 8, 131_072, 16_384, parts=4),
        Slider("tokens", "Tokens of the run", "", 100, 51_200, 14_400, parts=16,
               printed=_billions),
        Slider("batch", "Tokens of a step", "", 2**17, 2**27, 2**24, parts=8,
               printed=_tokens),
        Slider("seq", "Sequence", "tokens", 1024, 131_072, 8192),
        Choice("params", "Parameters counted", ACTIVE, "all"),
    ),
    draw,
    first="report",
    presets={
        "PaLM": {"report": "PaLM 540B: 238,300 tokens/s", "params": "all"},
        "Llama 3.1 405B": {"report": "Llama 3.1 405B: 30.84 M hours", "params": "all"},
        "BLOOM": {"report": "BLOOM 176B: a step of 105 s", "params": "all"},
        "DeepSeek-V3": {"report": "DeepSeek-V3: 2.664 M hours",
                        "params": "without input embedding"},
    },
    carries=("convention",),
    row=("report", "convention", "given", "mfu"),
)  # fmt: skip
