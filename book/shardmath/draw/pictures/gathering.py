"""FSDP over the time of a step: which layers a chip has gathered and holds whole."""

from collections.abc import Iterator, Mapping

from ...base.units import show
from ...training import PrefetchSchedule
from ..labels import text_width
from ..picture import WIDEST, Picture, picture
from ..shapes import box, framed, line, written

EDGE, ROW, THICK = 8, 26, 18


def gathering(schedules: Mapping[str, PrefetchSchedule]) -> Picture:
    """A row for each layer: its gathers, their uses, and its scatter.

    A pale box is the time in which a chip holds the layer whole, from the start of a
    gather to the end of its use. All schedules are on one time scale.

    Args:
        schedules: name → a schedule from `training.prefetched`.

    Raises:
        ValueError: there are no schedules.

    >>> from shardmath.training import Layer, prefetched
    >>> one = prefetched(Layer(1, 1, 2, 4, 1), 4)
    >>> gathering({"one layer ahead": one}).desc[:56]
    'one layer ahead: 26 s, at most 2 layers whole at once. A'
    """
    if not schedules:
        raise ValueError("schedules = {}: must hold one or more")
    longest = max(one.seconds for one in schedules.values())
    parts, said, top = [], [], 0.0
    for name, one in schedules.items():
        words = f"{name}: {show(one.seconds, 's')}, at most {one.most_held} "
        words += f"layer{'s' * (one.most_held > 1)} whole at once"
        said.append(f"{words}.")
        parts.append(written(EDGE, top + 18, f"{name}: {show(one.seconds, 's')}",
                             bold=True))  # fmt: skip
        rows = 1 + max(span.layer for span in one.spans)
        parts += _rows(name, one, rows, top + 28, longest)
        top += 28 + ROW * rows + 14
    parts += _legend(top)
    title = "Gather, use, forget, layer by layer"
    desc = (
        f"{' '.join(said)} A row is a layer. Forward from the first to the last, "
        "backward from the last to the first; each use has its gather before it, and a "
        "backward its scatter behind it. Lengths are to one scale of time."
    )
    svg = framed(title, desc, parts, WIDEST, top + 30)
    return picture(title, desc, svg)


def _rows(
    name: str, one: PrefetchSchedule, rows: int, top: float, longest: float
) -> Iterator[str]:
    left = EDGE + text_width("layer 0") + 8
    scale = (WIDEST - EDGE - left) / longest

    def ends(layer: int, start: float, end: float) -> tuple[float, ...]:
        y = top + ROW * layer
        return left + scale * start, y, left + scale * end, y + THICK

    for n in range(rows):
        yield written(EDGE, top + ROW * n + 14, f"layer {n}")
    for layer, start, end in one.held:
        yield box(*ends(layer, start, end), fill=0.14, edge=0, round=0)
    # Math first: the last layer's second gather runs while its first use does.
    for n, span in enumerate(sorted(one.spans, key=lambda span: span.resource)):
        start, high, end, low = ends(span.layer, span.start, span.end)
        fill = 0.4 if span.what == "scatter" else 1
        if span.resource == "network":
            high += THICK / 2
        spot = (start, high, end, low)
        yield box(*spot, span.resource, fill=fill, edge=0, round=0, key=f"{name} {n}")
    x = left + scale * one.seconds
    yield line((x, top - 4), (x, top + ROW * rows), width=1.2, dashed=True)


def _legend(top: float) -> Iterator[str]:
    """What the colours are."""
    x = EDGE
    for words, colour, fill in (
        ("gather", "network", 1),
        ("use", "math", 1),
        ("scatter", "network", 0.4),
        ("held whole", "ink", 0.14),
    ):
        yield box(x, top + 4, x + 18, top + 18, colour, fill=fill, edge=0, round=0)
        yield written(x + 24, top + 16, words)
        x += 24 + text_width(words) + 18
