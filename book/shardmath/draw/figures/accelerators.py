"""The live figure "accelerators": chips on one roofline, in order of their bounds."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import ceil

from ...base.estimate import Roof
from ...base.units import bytes_per_value, show
from ...hardware import chips, roofline
from ...hardware.chips import Chip
from ...inference import Formats, Server, alone
from ...transformer import LLAMA_3_70B
from ...transformer.memory import kv_cache
from ..labels import text_width
from ..shapes import box, circle, framed, line, number, written
from ..svg import Axis
from .controls import Choice, Drawing, Figure, Slider

DECODE, PROMPT, MATMUL = "a decode step", "a prompt", "a matmul of training"
OTHERS, EVERY = "other makers, and the one to compare", "every chip"
WIDE, LEFT, RIGHT, TOP, BOTTOM = 416, 54, 410, 26, 190
ROWS, FIRST_ROW, ROW = 12, 272, 19  # of the list: at most, base of the first, height
NAMES_END = 128  # right end of the names of the list
TOKENS = Slider("tokens", "At a time", "tokens", 1, 65_536, 64)
CONTEXT = Slider("context", "In the cache of each", "tokens", 1024, 131_072, 4096)


@dataclass(frozen=True)
class WorkOfStep:
    """The work of one step of a workload.

    Args:
        flops: FLOPs of the step.
        nbytes: bytes read from and written to the memory in the step.
        held: bytes that the memory holds.
    """

    flops: float
    nbytes: float
    held: float

    @property
    def intensity(self) -> float:
        """FLOPs per byte."""
        return self.flops / self.nbytes


@dataclass(frozen=True)
class RankedChip:
    """A chip, and its bound for the workload.

    Args:
        chip: the record.
        roof: its roofline, with the dense peak.
        work: the work of a step.
        tokens: the tokens of a step.
    """

    chip: Chip
    roof: Roof
    work: WorkOfStep
    tokens: int

    @property
    def seconds(self) -> float:
        """Lower bound on a chip's time per token. For n chips, divide it by n."""
        return self.work.flops / self.roof.at(self.work.intensity) / self.tokens

    @property
    def limit(self) -> str:
        """The leg of the bound that takes longer."""
        return "math" if self.work.intensity >= self.roof.ridge else "HBM"

    @property
    def holding(self) -> int:
        """The number of chips whose memory holds what the workload needs."""
        chip = self.chip
        memory = chip.onchip_bytes if chip.without_hbm else chip.memory_bytes
        return ceil(self.work.held / memory)


@cache
def work(workload: str, tokens: int, context: int, precision: str) -> WorkOfStep:
    """The work of a step of Llama 3.1 70B, or of one matmul in its layers.

    Args:
        workload: an option of the control.
        tokens: tokens per step: sequences in decode, tokens of a prompt, or rows of a
            matmul.
        context: tokens in the cache of each sequence in decode.
        precision: that of weights and matmuls, "16 bits" or "fp8". The cache has 16
            bits. Attention's math is counted at the peak of `precision` too, so the
            bound also holds for servers whose attention runs in 16 bits.
    """
    form = "bf16" if precision == WIDE_FORMAT else precision
    width = bytes_per_value(form)
    if workload == MATMUL:
        D, F = LLAMA_3_70B.D, LLAMA_3_70B.F
        one = roofline.matmul(tokens, D, F, chips.H100, form)
        return WorkOfStep(one.flops, one.nbytes, width * D * F)

    def step(at: str):
        server = Server(LLAMA_3_70B, alone(chips.H100), formats=Formats(at))
        if workload == DECODE:
            return server.decode(tokens, tokens * context)
        return server.prefill(tokens)

    flops = step("bf16").math * chips.H100.flops["bf16"]
    nbytes = step(form).hbm * chips.H100.hbm_bandwidth
    cached = tokens * (context if workload == DECODE else 1)
    held = LLAMA_3_70B.params * width + kv_cache(LLAMA_3_70B, cached)
    return WorkOfStep(flops, nbytes, held)


def peak(chip: Chip, precision: str) -> float | None:
    """Dense FLOPs/s in that precision. For 16 bits, this is bf16, or else fp16."""
    form = Formats().compute(chip) if precision == WIDE_FORMAT else precision
    return chip.flops.get(form)


def ranked(
    workload: str, tokens: int, context: int, precision: str, among: str, versus: str
) -> tuple[tuple[RankedChip, ...], tuple[str, ...]]:
    """The chips, fastest first, and the names of chips without a published peak."""
    asked = work(workload, tokens, context, precision)
    found, lacking = [], []
    for chip in chips.ALL:
        other = chip.vendor not in ("NVIDIA", "Google")
        if among == OTHERS and not other and chip.name != versus:
            continue
        if rate := peak(chip, precision):
            roof = Roof(chip.name, rate, chip.memory_bandwidth)
            found.append(RankedChip(chip, roof, asked, tokens))
        else:
            lacking.append(chip.name)
    return tuple(sorted(found, key=lambda one: one.seconds)), tuple(lacking)


def draw(
    workload: str, tokens: int, context: int, versus: str, precision: str, among: str
) -> Drawing:
    """All rooflines, the workload on each, and a list of chips, fastest first."""
    asked = (workload, tokens, context, precision)
    some, lacking = ranked(*asked, among, versus)
    density = work(*asked).intensity
    digits = ",.0f" if density >= 100 else ".3g"
    kind = f"{density:{digits}} FLOPs per byte"
    title = f"{workload[0].upper()}{workload[1:]} in {precision}: {kind}"
    best = some[0]
    bound_by = {"math": "its math", "HBM": "its memory"}[best.limit]
    limited = sum(one.limit == "HBM" for one in some)
    those = f"{limited} are" if limited > 1 else "one is" if limited else "none is"
    summary = (
        f"{title}. Of {len(some)} chips, {those} limited by memory. The "
        f"lowest bound is that of the {best.chip.name}, {show(best.seconds, 's')} of "
        f"one chip per token, limited by {bound_by}."
    )
    base = next((one for one in some if one.chip.name == versus), None)
    if base and base is not best:
        times = base.seconds / best.seconds
        summary += f" The {versus} takes {times:.3g} times as long."
    if lacking:
        summary += f" No dense peak is published in {precision} for "
        summary += f"{', '.join(lacking)}."
    if versus in lacking:
        summary += f" So no chip is compared with the {versus}."
    if precision != WIDE_FORMAT and workload != MATMUL:
        summary += f" Attention counts as if it ran in {precision} too."
    parts = [*_plot(some, base, asked), *_list(some, base)]
    shown = min(len(some), ROWS)
    svg = framed(title, summary, parts, WIDE, FIRST_ROW + ROW * shown - 8)
    idle = {}
    if workload != DECODE:
        idle["context"] = "Only a decode step reads a cache for each token."
    data = {
        "intensity": work(*asked).intensity,
        "chips": [
            {
                "chip": one.chip.name,
                "seconds": one.seconds,
                "limit": one.limit,
                "rate": one.roof.at(one.work.intensity),
                "holding": one.holding,
            }
            for one in some
        ],
        "lacking": list(lacking),
    }
    return Drawing(svg, summary, _readout(some, base), data, idle=idle)


def _readout(
    some: tuple[RankedChip, ...], base: RankedChip | None
) -> tuple[tuple[str, ...], ...]:
    """All chips from the fastest, a row for each."""
    against = f"times the {base.chip.name}'s" if base else "times the first"
    head = (
        "",
        "bound per token",
        "limited by",
        against,
        "tokens per joule",
        "chips to hold",
    )
    rows = [head]
    for one in some:
        power = one.chip.facts.get("power")
        each = f"{1 / one.seconds / power.value:.3g}" if power else "–"
        times = one.seconds / (base or some[0]).seconds
        limit = (
            "math" if one.limit == "math" else one.chip.without_hbm * "SRAM" or "HBM"
        )
        rows.append(
            (one.chip.name, show(one.seconds, "s"), limit, f"{times:.3g}", each,
             f"{one.holding:,}")
        )  # fmt: skip
    return tuple(rows)


def _plot(
    some: tuple[RankedChip, ...], base: RankedChip | None, asked: tuple
) -> Iterator[str]:
    """The roofs over one pair of axes, and a dot on each where the workload is."""
    x = Axis("FLOPs per byte", 0.5, 50_000)
    slowest = min(min(one.roof.at(x.low), one.roof.peak) for one in some)
    fastest = max(one.roof.peak for one in some)
    y = Axis("TFLOPs/s", slowest, 1.6 * fastest, unit="FLOPs/s")

    def at(px: float, py: float) -> tuple[float, float]:
        return (
            LEFT + (RIGHT - LEFT) * x.share(px),
            BOTTOM - (BOTTOM - TOP) * y.share(py),
        )

    for tick in x.ticks():
        px, _ = at(tick, y.low)
        yield line((px, BOTTOM), (px, TOP), width=1, opacity=0.14)
        yield written(min(px, RIGHT - 14), BOTTOM + 18, x.text(tick), anchor="middle")
    for tick in y.ticks():
        _, py = at(x.low, tick)
        yield line((LEFT, py), (RIGHT, py), width=1, opacity=0.14)
        yield written(LEFT - 5, py + 5, y.text(tick), anchor="end")
    yield written(4, 14, f"attainable {y.label}")
    yield written(RIGHT, BOTTOM + 36, x.label, anchor="end")
    intensity = some[0].work.intensity
    across, _ = at(intensity, y.low)
    yield line(
        (across, BOTTOM), (across, TOP), width=1, dashed=True, key="the workload"
    )
    for one in some:
        roof, marked = one.roof, one in (base, some[0])
        corners = at(x.low, roof.at(x.low)), at(roof.ridge, roof.peak)
        yield line(
            *corners, at(x.high, roof.peak), width=2.5 if marked else 1.5,
            opacity=0.9 if marked else 0.3, key=f"roof of {one.chip.id}",
        )  # fmt: skip
    for one in some:
        place = at(intensity, one.roof.at(intensity))
        radius = 6 if one in (base, some[0]) else 4
        yield circle(*place, radius, one.limit, key=f"dot of {one.chip.id}")
    marked = [some[0], *([base] if base and base is not some[0] else [])]
    heights = [at(x.high, one.roof.peak)[1] for one in marked]
    for one, height in zip(marked, heights, strict=True):
        lower = height == max(heights) and len(marked) > 1
        if len(marked) > 1 and heights[0] == heights[1]:
            lower = one is base
        y_text = height + 16 if lower else height - 6
        yield written(RIGHT, y_text, one.chip.name, anchor="end",
                      key=f"name of {one.chip.id}")  # fmt: skip
    workload, _, context, precision = asked
    stops = [work(workload, stop, context, precision) for stop in TOKENS.stops]
    places = " ".join(number(at(one.intensity, y.low)[0]) for one in stops)
    _, height = at(intensity, some[0].roof.at(intensity))
    yield (
        f'<circle data-drag="{TOKENS.name}" data-drag-at="{places}" '
        f'cx="{number(across)}" cy="{number(height)}" r="22" fill="transparent"/>'
    )


def _list(some: tuple[RankedChip, ...], base: RankedChip | None) -> Iterator[str]:
    """The chips from the fastest, each with a bar of its bound for one token."""
    shown = list(some[:ROWS])
    if base and base not in shown:
        shown[-1] = base
    longest = max(one.seconds for one in shown)
    room = (
        RIGHT - NAMES_END - 8 - max(text_width(show(one.seconds, "s")) for one in shown)
    )
    heading = "Bound for one token, in time of one chip"
    if len(some) > len(shown):
        heading = f"{len(shown)} of {len(some)} chips, bound for one token"
    yield written(6, FIRST_ROW - 22, heading, bold=True)
    for n, one in enumerate(shown):
        base_line = FIRST_ROW + n * ROW
        key = one.chip.id
        yield written(
            NAMES_END - 6, base_line, one.chip.name.removesuffix(" (Trillium)")
            .removesuffix(" (Ironwood)"), anchor="end", bold=one is base,
            key=f"row of {key}",
        )  # fmt: skip
        end = NAMES_END + max(1.0, room * one.seconds / longest)
        yield box(NAMES_END, base_line - 11, end, base_line + 3, one.limit,
                  fill=0.6, edge=0, round=1, key=f"bar of {key}")  # fmt: skip
        yield written(end + 5, base_line, show(one.seconds, "s"),
                      key=f"time of {key}")  # fmt: skip


def _name(text: str) -> str:
    return chips.find(text).name


WIDE_FORMAT = "16 bits"
FORMATS = (WIDE_FORMAT, "fp8")
_NAMES = tuple(one.name for one in chips.ALL if peak(one, WIDE_FORMAT))

FIGURE = Figure(
    "accelerators",
    "All chips on one roofline",
    (
        Choice("workload", "Workload", (DECODE, PROMPT, MATMUL), DECODE),
        TOKENS,
        CONTEXT,
        Choice("versus", "Compare with", _NAMES, "H100", _name, machine=True),
        Choice("precision", "Precision", FORMATS, WIDE_FORMAT),
        Choice("among", "Chips", (OTHERS, EVERY), OTHERS),
    ),
    draw,
    first="tokens",
    presets={
        "decode, 1 user": {"workload": DECODE, "tokens": 1},
        "decode, 256 users": {"workload": DECODE, "tokens": 256},
        "a prompt of 4,096": {"workload": PROMPT, "tokens": 4096},
        "training, every chip": {"workload": MATMUL, "tokens": 8192, "among": EVERY},
    },
    row=("workload", "tokens", "versus"),
)
