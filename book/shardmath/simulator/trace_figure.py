"""Pictures of a trace: one step on the chips, and all steps on the links."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import escape
from math import isqrt

from ..collectives.crossings import link_bandwidth
from ..drawing.labels import FONT, text_width
from ..drawing.theme import COLOURS
from ..units import show
from .trace import Link, Trace

BOX, GAP, MARGIN, HEAD = 44, 36, 34, 34  # side of a chip, between chips, around, title
WIDTH, ROW, LABEL = 560, 11, 82  # of the timeline
ROWS = 64  # links that the timeline shows
NETWORK = f"var(--sm-network, {COLOURS['network']})"
SUMS = ("reduce_scatter", "all_reduce")


@dataclass(frozen=True)
class TraceFigure:
    """An SVG, and the same in words for a terminal."""

    svg: str
    text: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.text

    def _repr_pretty_(self, printer, cycle):
        printer.text(self.text)


def chips(trace: Trace, step: int) -> TraceFigure:
    """What moves in `step`, as arrows, and what each chip holds after it, as cells.

    Every chip has a cell for each block, filled as far as the block is there (for sums,
    as far as it is complete); in an AllToAll, for the block that each chip sends to it.
    Step 0 is the start. An arrow over the edge comes in on the other side; arrows up
    and down lead to a switch and from it.
    """
    filled = _filled(trace, step)
    places, columns, rows = _laid(trace)
    parts = [_chip(*places[c], cells, c) for c, cells in enumerate(filled)]
    loads = trace.steps[step - 1].loads if step else {}
    busiest = max(loads.values(), default=1)
    for link, nbytes in loads.items():
        parts.append(_arrow(trace, places, link, 1 + 2 * nbytes / busiest))
    said = str(trace.steps[step - 1]) if step else "the start"
    title = f"{trace.priced.collective.title}: {said}"
    lines = [
        f"chip {chip}: " + " ".join(f"{100 * share:.0f} %" for share in cells)
        for chip, cells in enumerate(filled)
    ]
    width = max(columns * (BOX + GAP) - GAP + 2 * MARGIN, text_width(title) + 16)
    height = HEAD + rows * (BOX + GAP) - GAP + 2 * MARGIN
    desc = "Share of every block that each chip holds. " + "; ".join(lines)
    text = "\n".join([title, *lines])
    return TraceFigure(_frame(width, height, title, desc, parts), text)


def timeline(trace: Trace) -> str:
    """Every link over time: latency light, bytes dark; blank is idle."""
    end = max(trace.seconds, trace.priced.seconds) or 1.0
    links = sorted({link for step in trace.steps for link in step.loads})
    row = {link: HEAD + 6 + n * ROW for n, link in enumerate(links[:ROWS])}

    def at(seconds: float) -> float:
        return LABEL + (WIDTH - LABEL - 12) * seconds / end

    parts = [
        f'<text x="{LABEL - 6}" y="{y + ROW - 2}" text-anchor="end" font-size="10" '
        f'fill="currentColor">{escape(_name(trace, link))}</text>'
        for link, y in row.items()
    ]
    now = 0.0
    for step in trace.steps:
        for link in (link for link in step.loads if link in row):
            sent = now + step.waits[link]
            rate = link_bandwidth(trace.group.wires, link[0])
            done = sent + step.loads[link] / rate
            parts.append(_bar(at(now), at(sent), row[link], 0.3))
            parts.append(_bar(at(sent), at(done), row[link], 1))
        now += step.seconds
    bottom = HEAD + 10 + ROW * len(row)
    x = at(trace.priced.seconds)
    parts.append(
        f'<path d="M{_n(x)} {HEAD}V{bottom}" stroke="currentColor" '
        'stroke-width="1.5" stroke-dasharray="4 3"/>'
    )
    left = len(links) - len(row)
    more = f"; {left} more links are not drawn" if left else ""
    foot = f"dashed: closed form, {show(trace.priced.seconds, 's')}{more}"
    parts.append(_text(WIDTH - 12, bottom + 16, foot, "end"))
    desc = (
        f"{len(links)} links over {show(trace.seconds, 's')}, {len(trace.steps)} "
        f"steps; the closed form is {show(trace.priced.seconds, 's')}{more}."
    )
    return _frame(WIDTH, bottom + 26, str(trace), desc, parts)


def _filled(trace: Trace, step: int) -> list[list[float]]:
    """For every chip, how much it holds of each block, from 0 to 1."""
    n, op = trace.group.size, trace.priced.collective.op
    ones = [dict.fromkeys(held, 1) for held in trace.start]
    whole = trace.group.parts * trace.group.halves * (n if op in SUMS else 1)
    filled = []
    for chip, held in enumerate(replace(trace, start=ones).state(step)):
        cells = [0.0] * n
        for block, count in held.items():
            source, goal = divmod(block.name, n)
            if op != "all_to_all":
                cells[block.name] += count / whole
            elif goal == chip:
                cells[source] += count / whole
        filled.append(cells)
    return filled


def _laid(trace: Trace) -> tuple[list[tuple[float, float]], int, int]:
    """Where each chip stands: fastest dimension across, next down, others beside."""
    sizes = [1, 1, *(w.size for w in trace.group.wires)]
    down, across = sizes[-2:]
    places = []
    for chip in range(trace.group.size):
        panel, within = divmod(chip, down * across)
        y, x = divmod(within, across)
        x += panel * across
        places.append((MARGIN + x * (BOX + GAP), HEAD + MARGIN + y * (BOX + GAP)))
    return places, across * (trace.group.size // (down * across)), down


def _chip(x: float, y: float, cells: list[float], number: int) -> str:
    n = len(cells)
    across = next(k for k in range(isqrt(n - 1) + 1, n + 1) if n % k == 0)
    wide, high = BOX / across, BOX * across / n
    squares = "".join(
        f'<rect x="{_n(x + wide * (k % across))}" y="{_n(y + high * (k // across))}" '
        f'width="{_n(wide)}" height="{_n(high)}" fill="{NETWORK}" '
        f'fill-opacity="{share:.2f}" stroke="currentColor" stroke-width="0.5"/>'
        for k, share in enumerate(cells)
    )
    frame = (
        f'<rect x="{_n(x)}" y="{_n(y)}" width="{BOX}" height="{BOX}" fill="none" '
        'stroke="currentColor"/>'
    )
    return squares + frame + _text(x - 1, y + BOX + 14, str(number))


def _arrow(trace: Trace, places, link: Link, width: float) -> str:
    """An arrow along a link, from edge to edge of two chips; one lane for each way."""
    dim, source, target = link
    if -1 in (source, target):  # a switch, above every chip that it joins
        x, y = places[max(source, target)]
        x += BOX * (0.35 if target == -1 else 0.65)
        ends = [(x, y - 2), (x, y - 18)]
        return _line(*(ends if target == -1 else ends[::-1]), width)
    x, y = places[source]
    here, there = (trace.group.places[chip][dim] for chip in (source, target))
    around = abs(there - here) > 1
    up = (there > here) != around
    sign, lane = (1, 20) if up else (-1, 34)
    edge = BOX + 2 if up else -2
    outer = dim - len(trace.group.wires)
    if outer < -2:  # another panel: out at a corner
        return _line((x + edge, y - 2), (x + edge + 11 * sign, y - 13), width)
    length = sign * (GAP / 2 - 2 if around else GAP - 4)
    if outer == -2:
        return _line((x + lane, y + edge), (x + lane, y + edge + length), width)
    return _line((x + edge, y + lane), (x + edge + length, y + lane), width)


def _line(start, end, width: float) -> str:
    (ax, ay), (bx, by) = start, end
    size = abs(bx - ax) + abs(by - ay)
    ux, uy = (bx - ax) / size, (by - ay) / size
    head = [(bx - 6 * ux - 4 * uy, by - 6 * uy + 4 * ux), end]
    head.append((bx - 6 * ux + 4 * uy, by - 6 * uy - 4 * ux))
    points = "L".join(f"{_n(x)} {_n(y)}" for x, y in head)
    return (
        f'<path d="M{_n(ax)} {_n(ay)}L{_n(bx)} {_n(by)}M{points}" fill="none" '
        f'stroke="{NETWORK}" stroke-width="{_n(width)}"/>'
    )


def _bar(left: float, right: float, y: float, opacity: float) -> str:
    return (
        f'<rect x="{left:.2f}" y="{y}" width="{right - left:.2f}" height="{ROW - 2}" '
        f'fill="{NETWORK}" fill-opacity="{opacity:g}"/>'
    )


def _name(trace: Trace, link: Link) -> str:
    dim, *ends = link
    switch = trace.group.wires[dim].level
    return " → ".join(switch if end == -1 else str(end) for end in ends)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return (
        f'<text x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}" '
        f'fill="currentColor">{escape(text)}</text>'
    )


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _frame(width, height, title: str, desc: str, parts: Iterable[str]) -> str:
    size = f'width="{_n(width)}" height="{_n(height)}"'  # pages that show it as a file
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" '
        f'font-size="{FONT}" font-family="sans-serif" '
        f'viewBox="0 0 {_n(width)} {_n(height)}"><title>{escape(title)}</title>'
        f"<desc>{escape(desc)}</desc>{_text(8, 18, title)}{''.join(parts)}</svg>"
    )
