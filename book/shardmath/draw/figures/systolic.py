"""The live figure "systolic": a systolic array after any number of cycles."""

from ...hardware import systolic
from ..shapes import framed, written
from ..svg import HEIGHT, WIDTH
from ..theme import paint
from .controls import Drawing, Figure, Slider

SIZES, TOKENS = (2, 8), (1, 16)
LAST = systolic.cycles(TOKENS[1], 1, SIZES[1])
LEFT, TOP, SIDE = 46, 62, 180  # the grid's corner, its width and height
CHART, CHART_TOP, CHART_HEIGHT = 246, 92, 136  # the bars of busy cells


def draw(size: int, B: int, step: int) -> Drawing:
    """X[B, size] · W[size, size] after `step` cycles, or at the end if earlier."""
    X = [[1] * size for _ in range(B)]
    W = [[1] * size for _ in range(size)]
    states = list(systolic.steps(X, W, size))
    state = states[min(step, len(states) - 1)]
    busy = [other.busy for other in states[1:]]
    cells = [cell for row in state.cells for cell in row]
    held = sum((c.standing, c.waiting) != (None, None) for c in cells)
    total, done = size**2 * len(busy), sum(busy[: state.number])
    title = f"Systolic array of {size} × {size} cells, {B} tokens"
    summary = (
        f"Cycle {state.number} of {len(busy)}: {held} of {size**2} weights are in "
        f"place, {state.busy} of {size**2} cells multiply. All cycles together use "
        f"{sum(busy) / total:.0%} of the array."
    )
    data = {
        "cycle": state.number,
        "cycles": len(busy),
        "busy": state.busy,
        "held": held,
        "done": done,
        "utilization": sum(busy) / total,
    }
    readout = (
        ("", "value"),
        ("cycles to load the weights", str(size)),
        ("cycles from first to last token in", str(B)),
        ("cycles to cross the array", str(2 * size - 2)),
        ("cycles in all", str(len(busy))),
        ("multiplications done so far", f"{done} of {sum(busy)}"),
        ("utilization of the whole run", f"{sum(busy) / total:.1%}"),
    )
    picture = _picture(title, summary, state, busy)
    return Drawing(picture, summary, readout, data, last=len(busy))


def _picture(title: str, desc: str, state: systolic.Cycle, busy: list[int]) -> str:
    size = len(state.cells)
    side = SIDE / size
    parts = [written(LEFT, TOP - 30, "weights fall in", "HBM")]
    for j, weight in enumerate(state.above):
        if weight:
            x = LEFT + (j + 0.5) * side
            parts.append(written(x, TOP - 8, "↓", "HBM", "middle"))
    for i, entering in enumerate(state.beside):
        if entering:
            y = TOP + (i + 0.5) * side + 5
            key = f"token {entering.token} row {i}"
            text = f"{entering.token} →"
            parts.append(written(LEFT - 8, y, text, "math", "end", key=key))
    for i, row in enumerate(state.cells):
        for j, cell in enumerate(row):
            parts.append(_cell(LEFT + j * side, TOP + i * side, side, cell, i))
    for j, cell in enumerate(state.cells[-1]):
        if cell.activation:
            x = LEFT + (j + 0.5) * side
            text = f"{cell.activation.token} ↓"
            parts.append(written(x, TOP + SIDE + 18, text, anchor="middle"))
    parts.append(written(LEFT, TOP + SIDE + 40, "sums leave, one token a diagonal"))
    parts += _bars(state, busy)
    return framed(title, desc, parts, WIDTH, HEIGHT)


def _cell(x: float, y: float, side: float, cell: systolic.Cell, row: int) -> str:
    """A cell, pale if it has its weight, full with the token's number if it works."""
    held = (cell.standing, cell.waiting) != (None, None)
    working = cell.activation is not None
    colour = "math" if working else "HBM"
    opacity = 0.85 if working else 0.22 if held else 0.55 if cell.falling else 0
    box = (
        f'<rect x="{x + 1:.1f}" y="{y + 1:.1f}" width="{side - 2:.1f}" '
        f'height="{side - 2:.1f}" rx="3" fill="{paint(colour)}" '
        f'fill-opacity="{opacity}" stroke="currentColor" stroke-opacity=".35"/>'
    )
    if not working:
        return box
    number = str(cell.activation.token)
    return box + (
        f'<text data-key="token {number} row {row}" x="{x + side / 2:.1f}" '
        f'y="{y + side / 2 + 5:.1f}" text-anchor="middle" '
        f'fill="{paint("paper")}">{number}</text>'
    )


def _bars(state: systolic.Cycle, busy: list[int]) -> list[str]:
    """Bars of busy cells in each cycle. Future cycles are pale."""
    cells = len(state.cells) ** 2
    wide = (WIDTH - 12 - CHART) / len(busy)
    floor = CHART_TOP + CHART_HEIGHT
    working = f"{state.busy} of {cells} cells multiply"
    parts = [
        written(CHART, CHART_TOP - 50, f"cycle {state.number} of {len(busy)}"),
        written(CHART, CHART_TOP - 30, working, "math"),
    ]
    for n, count in enumerate(busy, 1):
        high = CHART_HEIGHT * count / cells
        pale = 0.85 if n <= state.number else 0.2
        parts.append(
            f'<rect x="{CHART + (n - 1) * wide:.1f}" y="{floor - high:.1f}" '
            f'width="{wide - 0.6:.1f}" height="{high:.1f}" fill="{paint("math")}" '
            f'fill-opacity="{pale}"/>'
        )
    line = f"M{CHART} {CHART_TOP}H{WIDTH - 12}M{CHART} {floor}H{WIDTH - 12}"
    parts.append(f'<path d="{line}" stroke="currentColor" stroke-opacity=".4"/>')
    now = f'x="{CHART + state.number * wide - 1:.1f}" y="{CHART_TOP - 2}"'
    size = f'width="2" height="{CHART_HEIGHT + 4}"'
    parts.append(f'<rect data-key="cycle" {now} {size} fill="currentColor"/>')
    places = " ".join(f"{CHART + n * wide:.1f}" for n in range(len(busy) + 1))
    parts.append(
        f'<rect data-drag="step" data-drag-at="{places}" x="{CHART - 6}" '
        f'y="{CHART_TOP}" width="{WIDTH - 6 - CHART}" height="{CHART_HEIGHT}" '
        'fill="transparent"/>'
    )
    parts.append(written(CHART, CHART_TOP - 6, "all cells"))
    parts.append(written(CHART, floor + 18, "busy cells, by cycle"))
    return parts


FIGURE = Figure(
    "systolic",
    "A systolic array, cycle by cycle",
    (
        Slider("size", "Side of the array", "", *SIZES, 4),
        Slider("B", "Tokens", "tokens", *TOKENS, 4),
        Slider("step", "Cycle", "", 0, LAST, 7, step=1, play=True),
    ),
    draw,
    first="step",
    presets={
        "one token": {"size": 4, "B": 1, "step": 7},
        "as many tokens as cells in a row": {"size": 4, "B": 4, "step": 7},
        "16 tokens keep it busy": {"size": 4, "B": 16, "step": 10},
    },
)
