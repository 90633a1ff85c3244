"""The live figure "fronts": measured tokens/s per user against tokens/s per chip."""

from collections.abc import Iterable, Iterator, Sequence

from ...measured.server_points import MODELS, ServerPoint, front, points
from ..svg import Axis, Dot, Label, PlotLine, plot
from ..theme import hue
from .controls import Choice, Drawing, Figure, Slider

LENGTHS = ("1,024 + 1,024", "1,024 + 8,192", "8,192 + 1,024")
MEASURED, BOTH = "measured", "measured and predicted"
USER = Axis("tokens/s that a user sees", 8.0, 1500.0)
PER_CHIP = Axis("tokens/s per chip", 20.0, 20_000.0)
TOP = 20_000.0  # tokens/s per chip, where the names begin
ORDER = ("H100", "H200", "B200", "B300")


def machines(some: Iterable[ServerPoint]) -> tuple[str, ...]:
    """The combinations of chips and formats, with older chips first."""
    found = dict.fromkeys((ORDER.index(p.chip), p.hardware) for p in some)
    return tuple(name for _, name in sorted(found, key=lambda one: one[0]))


def best(some: Sequence[ServerPoint], pace: float) -> ServerPoint | None:
    """The server with the most measured tokens/s per chip at this pace, or None."""
    kept = [one for one in some if one.user >= pace]
    return max(kept, key=lambda one: one.per_chip, default=None)


def proposed(some: Sequence[ServerPoint], pace: float) -> ServerPoint | None:
    """The server that would be `best` if the predictions were exact, or None."""
    kept = [one for one in some if one.predicted_user >= pace]
    return max(kept, key=lambda one: one.predicted_per_chip, default=None)


def draw(pace: int, model: str, lengths: str, lines: str) -> Drawing:
    """A dot for each measured server, a front for each kind of chip, and a pace."""
    some = [p for p in points() if (p.model, p.lengths) == (model, lengths)]
    kinds = {name: [p for p in some if p.hardware == name] for name in machines(some)}
    title = f"{model}, {lengths} tokens"
    head = ("", "measured best", "its server", "chosen by prediction", "it measured")
    rows = [head]
    for name, of in kinds.items():
        first, second = best(of, pace), proposed(of, pace)
        rows.append((name, _rate(first), _named(first), _named(second), _both(second)))
    winners = {name: best(of, pace) for name, of in kinds.items()}
    kept = {name: one for name, one in winners.items() if one}
    summary = f"{len(some)} measured servers with {title}. "
    if kept:
        name = max(kept, key=lambda one: kept[one].per_chip)
        one = kept[name]
        summary += (
            f"Of those that give a user {pace} tokens/s, one with "
            f"{name.partition(',')[0]} chips makes the most per chip: "
            f"{one.per_chip:,.0f} tokens/s in {name.partition(', ')[2]} "
            f"({_named(one)})."
        )
    else:
        summary += f"None of them gives a user {pace} tokens/s."
    data = {
        "points": len(some),
        "best": {name: one.per_chip for name, one in kept.items()},
    }
    marks = [*_marks(kinds, lines), *_pace(pace)]
    svg = plot(title, summary, USER, PER_CHIP, marks, head=f"{model}, {lengths}")
    return Drawing(svg, summary, tuple(rows), data)


def _marks(kinds: dict[str, list[ServerPoint]], lines: str) -> Iterator:
    for n, (name, of) in enumerate(kinds.items(), 1):
        colour = hue(n)
        for p in of:
            key = f"{name} {p.layout} {p.clients} {p.ttft}"
            yield Dot(p.user, p.per_chip, colour, key=key, small=True)
        line = front((p.user, p.per_chip) for p in of)
        yield PlotLine(line, colour, width=2, key=name)
        if lines == BOTH:
            line = front((p.predicted_user, p.predicted_per_chip) for p in of)
            yield PlotLine(line, colour, dashed=True, width=1.5, key=f"{name}, likely")
        yield Label(USER.high, TOP / 1.8**n, name, colour, "w", key=f"{name}'s")


def _pace(pace: int) -> Iterator:
    ends = [(float(pace), PER_CHIP.low), (float(pace), PER_CHIP.high)]
    yield PlotLine(ends, dashed=True, width=1, key="pace")
    yield Label(float(pace), PER_CHIP.high, f"{pace} tokens/s", toward="sw", key="at")


def _named(one: ServerPoint | None) -> str:
    return f"{one.layout}, {one.clients:,} clients" if one else "none"


def _rate(one: ServerPoint | None) -> str:
    return f"{one.per_chip:,.0f} tokens/s" if one else "none"


def _both(one: ServerPoint | None) -> str:
    return f"{one.per_chip:,.0f} at {one.user:.0f}" if one else "none"


FIGURE = Figure(
    "fronts",
    "What a user gets, and what a chip makes",
    (
        Slider("pace", "A user is promised", "tokens/s", 10, 200, 30, step=10),
        Choice("model", "Model", MODELS, MODELS[0]),
        Choice("lengths", "Prompt + answer", LENGTHS, LENGTHS[0]),
        Choice("lines", "Lines", (MEASURED, BOTH), BOTH),
    ),
    draw,
    first="pace",
    presets={
        "a reading pace": {"pace": 10},
        "a fast agent": {"pace": 100},
        "many experts": {"model": "DeepSeek-V3", "pace": 40},
        "long prompts": {"lengths": "8,192 + 1,024", "pace": 30},
    },
    row=("pace", "model", "lengths"),
)  # fmt: skip
