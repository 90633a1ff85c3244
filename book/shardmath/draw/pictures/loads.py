"""Loads of experts as bars, with their mean and, if there are slots, their limit."""

from collections.abc import Iterator, Mapping, Sequence

from ...base.units import positive
from .. import shapes
from ..picture import WIDEST, Picture
from ..theme import hue

LEFT, TOP, TALL = 6, 52, 130  # of the bars
FLOOR = TOP + TALL


def loads(
    by_name: Mapping[str, Sequence[float]], slots: float | None = None
) -> Picture:
    """The load of every expert, with a panel for each state, all on one scale.

    Args:
        by_name: name of a state, such as "before" → tokens of each expert.
        slots: tokens that an expert can process; any more are dropped. None means that
            there is no limit.

    Raises:
        ValueError: there are no loads, one is negative, all are zero, or `slots` is not
            above 0.

    >>> loads({"before": [3, 1], "after": [2, 2]}, slots=2).desc
    'before: 2 experts, the busiest has 1.5 times the mean of 2, 25.0% above 2 slots. \
after: 2 experts, the busiest has 1 times the mean of 2, 0.0% above 2 slots.'
    """
    states = {name: [float(load) for load in row] for name, row in by_name.items()}
    if not states or not all(states.values()):
        raise ValueError(f"by_name = {dict(by_name)!r}: must hold loads of experts")
    for name, row in states.items():
        if min(row) < 0:
            raise ValueError(f"{name} = {row}: must have loads of at least 0")
        positive(**{f"the sum of {name!r}": sum(row)})
    if slots is not None:
        (slots,) = positive(slots=slots)
    top = max(load for row in states.values() for load in row)
    said = {name: _said(name, row, slots) for name, row in states.items()}
    return Picture(
        "Loads of experts",
        " ".join(said.values()),
        tuple(
            shapes.framed(
                f"Loads, {name}", said[name], _drawn(name, row, slots, top), WIDEST,
                FLOOR + 26,
            )
            for name, row in states.items()
        ),
    )  # fmt: skip


def _over(row: Sequence[float], slots: float | None) -> float:
    """The share of a state's load that stands above the slots."""
    return sum(max(0.0, load - slots) for load in row) / sum(row) if slots else 0.0


def _said(name: str, row: Sequence[float], slots: float | None) -> str:
    mean = sum(row) / len(row)
    words = f"{name}: {len(row)} experts, the busiest has {max(row) / mean:.3g} times "
    words += f"the mean of {mean:,.4g}"
    return words + (
        f", {_over(row, slots):.1%} above {slots:g} slots." if slots else "."
    )


def _drawn(
    name: str, row: Sequence[float], slots: float | None, top: float
) -> Iterator[str]:
    mean, pitch = sum(row) / len(row), (WIDEST - 2 * LEFT) / len(row)
    gap = min(1.0, pitch / 8)

    def up(load: float) -> float:
        return FLOOR - TALL * load / top

    yield shapes.written(LEFT, 18, name, bold=True)
    yield shapes.written(LEFT, 38, f"busiest {max(row) / mean:.2f} times the mean")
    words = f"dashed: mean {mean:,.0f}"
    yield shapes.written(WIDEST - LEFT, 18, words, anchor="end")
    if slots:
        words = f"{slots:,.0f} slots, {_over(row, slots):.1%} above"
        yield shapes.written(WIDEST - LEFT, 38, words, hue(7), "end")
    for expert, load in enumerate(row):
        left, right = LEFT + pitch * expert + gap, LEFT + pitch * (expert + 1) - gap
        kept = min(load, slots) if slots else load
        yield shapes.box(
            left, up(kept), right, FLOOR, hue(6), fill=0.8, edge=0, round=0
        )
        if kept < load:
            ends = left, up(load), right, up(kept)
            yield shapes.box(*ends, hue(7), fill=0.8, edge=0, round=0)
    ends = (LEFT, up(mean)), (WIDEST - LEFT, up(mean))
    yield shapes.line(*ends, width=1, dashed=True)
    if slots and slots <= top:
        ends = (LEFT, up(slots)), (WIDEST - LEFT, up(slots))
        yield shapes.line(*ends, colour=hue(7), width=1.5)
    yield shapes.written(LEFT, FLOOR + 20, f"{len(row)} experts")
