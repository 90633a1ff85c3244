"""Pictures of a trace: a step on the chips, all steps on links, or start and end.

If there are few blocks, each has the same colour everywhere. The darkness of a cell
shows how much of its block is there, or how many terms of a sum it has.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from math import ceil, hypot, isqrt

from ...base.units import show
from ...collectives.link_load import link_bandwidth
from ...collectives.simulator.trace import LinkKey, Trace
from ...hardware.networks.wiring import Switch
from ..labels import FONT, XY, Box, text_width
from ..picture import WIDEST, Picture, picture
from ..shapes import arc, box, framed, label, line, written
from ..theme import HUES, hue

EDGE, HEAD = 12, 48  # kept free at the sides, and at the top for two lines of text
LARGE, SMALL = 64, 22  # side of a chip, at most and at least
FEW = 16  # chips of one row or ring that are drawn one by one
GAP = 38  # between the chips of a grid
CELLS = 64  # chips and blocks that a sheet shows
LINE, PANEL = 16, 204  # least side of a cell with a number; width of one of two sheets
LANE, LANES = 30, 6  # height of a lane of the time line, and how many it has
STAIRS = 70  # height of what is under the lanes
TALL = 26  # room for a line of text above something
SUMS = ("reduce_scatter", "all_reduce")


@dataclass(frozen=True)
class Scene:
    """The places of the chips: their upper left corners, and the length of a side."""

    corners: tuple[XY, ...]
    side: float
    bottom: float

    def centre(self, chip: int) -> XY:
        x, y = self.corners[chip]
        return x + self.side / 2, y + self.side / 2


def trace_step(trace: Trace, step: int) -> Picture:
    """The sends in `step` as arrows, and what each chip holds after it as cells.

    Every chip has a cell for each block, or in an AllToAll for the block that each chip
    sends to it. Step 0 is the start. A group that is too large to be drawn chip by chip
    is drawn as a sheet with a row for each chip and a column for each block.

    >>> from shardmath.collectives.simulator import simulate
    >>> from shardmath.hardware.mesh import Mesh
    >>> from shardmath.hardware.networks import network
    >>> mesh = Mesh(network("v5e:4x4"), {"X": 4, "Y": 4})
    >>> trace = simulate("all_gather", 1e6, mesh, "X")
    >>> print(trace_step(trace, 1).title)
    AllGather over X (4 devices), 1 MB: step 1 of 3: 6 µs, 250 kB on the busiest link
    """
    filled = _filled(trace, step)
    said = str(trace.steps[step - 1]) if step else "the start"
    title = trace.priced.collective.title
    wires = [w for w in trace.group.wires if w.size > 1]
    if len(wires) < 2:
        scene = _row(trace) if trace.group.size <= FEW else None
    else:
        scene = _grid(trace)
    parts = [written(EDGE, 18, title), written(EDGE, 38, said)]
    if scene is None:
        cells, wide = _blocks(trace, step), WIDEST - 2 * EDGE
        parts += _sheet(cells, EDGE, HEAD, wide)
        bottom = HEAD + _side(cells, wide) * _shown(cells) + 20
        foot = "a row is a chip, a column a block"
        if len(filled) > CELLS:
            foot += f"; the first {CELLS} of {len(filled)}"
    else:
        parts += _scene(trace, step, scene, filled)
        bottom = scene.bottom + 18
        foot = "a cell is a block, "
        sums = trace.priced.collective.op in SUMS
        foot += "dark as its sum" if sums else "filled as it is there"
    parts.append(written(EDGE, bottom - 2, foot))
    desc = f"{said}. {_held(filled)}"
    svg = framed(f"{title}: {said}", desc, parts, WIDEST, bottom + 6)
    return picture(f"{title}: {said}", desc, svg)


def trace_ends(trace: Trace) -> Picture:
    """Two sheets with what every chip holds before and after the collective.

    A row is a chip, and each block has a number and a colour. In an AllToAll, a part's
    number is the chip that it is for, and its colour is the chip that it comes from.

    >>> from shardmath.collectives.simulator import simulate
    >>> from shardmath.hardware.mesh import Mesh
    >>> from shardmath.hardware.networks import network
    >>> mesh = Mesh(network("v5e:4x4"), {"X": 4, "Y": 4})
    >>> trace = simulate("all_gather", 1e6, mesh, "X")
    >>> len(trace_ends(trace).panels)
    2
    """
    title, op = trace.priced.collective.title, trace.priced.collective.op
    foot = {"all_to_all": "number: for whom", "permute": "number: from whom"}.get(op)
    panels = []
    for step, when in ((0, "before"), (len(trace.steps), "after")):
        cells = _parts(trace, step) if op == "all_to_all" else _blocks(trace, step)
        held = _held(_filled(trace, step))
        wide = PANEL - 2 * EDGE
        parts = [written(EDGE, 18, f"{when}, chip by chip", bold=True)]
        parts += _sheet(cells, EDGE, 28, wide)
        bottom = 28 + _side(cells, wide) * _shown(cells) + 20
        said = foot or ("pale: a term of a sum" if op in SUMS and not step else "")
        if not _numbered(cells, wide):
            said = "pale: a term of a sum" if said.startswith("pale") else "row: a chip"
        parts.append(written(EDGE + TALL, bottom - 2, said or "number: a block"))
        name = f"{title}, {when}"
        panels.append(framed(name, f"{name}. {held}", parts, PANEL, bottom + 6))
    desc = (
        f"Two sheets with a row for each of {trace.group.size} chips. Before: "
        f"{_held(_filled(trace, 0))} After: {_held(_filled(trace, len(trace.steps)))}"
    )
    return Picture(title, desc, tuple(panels))


def trace_timeline(trace: Trace) -> Picture:
    """A time line of when the links work, and how much of the result is complete.

    Links that do the same work share a lane. A box is a step, and its light part is the
    latency.
    """
    finish = max(trace.seconds, trace.priced.seconds) or 1.0
    right = WIDEST - EDGE

    def at(seconds: float) -> float:
        return EDGE + (right - EDGE) * seconds / finish

    lanes = _lanes(trace)
    drawn = lanes[:LANES]
    title = trace.priced.collective.title
    parts, y = [written(EDGE, 18, title)], 24.0
    closed, numbers = at(trace.priced.seconds), text_width(str(len(trace.steps))) + 2
    starts = [0.0, *accumulate(step.seconds for step in trace.steps)]
    for schedule, links in drawn:
        parts.append(written(EDGE, y + 17, _said(trace, links)))
        y += TALL
        for n, (spell, start) in enumerate(zip(schedule, starts, strict=False), 1):
            if not spell:
                continue
            wait, busy = spell
            sent, done = at(start + wait), at(start + wait + busy)
            parts.append(
                box(at(start), y, sent, y + LANE, "network", fill=0.08, edge=0)
            )
            spot = (sent, y, done, y + LANE)
            key = f"{links[0]} step {n}"
            parts.append(box(*spot, "network", fill=0.3, edge=0.9, round=2, key=key))
            room = _beside(spot, closed, numbers)
            fits = room == spot or numbers < room[2] - room[0]
            if fits and numbers < done - at(start):
                parts.append(label(*room, str(n)))
        y += LANE + 4
    left = len(lanes) - len(drawn)
    parts += _stairs(trace, starts, at, y + TALL)
    bottom = y + TALL + STAIRS
    parts.append(
        line((closed, 24 + TALL - 4), (closed, bottom), width=1.5, dashed=True)
    )
    parts.append(written(EDGE, bottom + 18, "0"))
    said = f"closed form, {show(trace.priced.seconds, 's')}"
    if closed - text_width(said) > EDGE + 20:
        parts.append(written(min(closed + 4, right), bottom + 18, said, anchor="end"))
    else:
        parts.append(written(EDGE + 20, bottom + 18, said))
    bottom += 26
    if left:
        more = f"{left} more kinds of links are not drawn"
        parts.append(written(EDGE, bottom + 14, more))
        bottom += 22
    desc = (
        f"{trace}. {sum(len(links) for _, links in lanes)} directed links work in "
        f"{len(lanes)} {'ways' if len(lanes) > 1 else 'way'} over "
        f"{show(trace.seconds, 's')}; the closed form is "
        f"{show(trace.priced.seconds, 's')}."
    )
    if left:
        desc += f" {more[0].upper()}{more[1:]}."
    return picture(title, desc, framed(title, desc, parts, WIDEST, bottom))


def _beside(spot: Box, x: float, wide: float) -> Box:
    """A box, or its wider part next to x if a line at x would cross the label."""
    left, top, right, bottom = spot
    if abs(x - (left + right) / 2) > wide / 2:
        return spot
    return (left, top, x, bottom) if x - left > right - x else (x, top, right, bottom)


Spell = tuple[float, float] | None  # seconds of latency, and of bytes


def _lanes(trace: Trace) -> list[tuple[tuple[Spell, ...], list[LinkKey]]]:
    """Links grouped by what they do in each step, the largest groups first."""
    links = sorted({link for step in trace.steps for link in step.loads})
    found = defaultdict(list)
    for link in links:
        rate = link_bandwidth(trace.group.wires, link[0])
        schedule = tuple(
            (round(step.waits[link], 15), round(step.loads[link] / rate, 15))
            if link in step.loads
            else None
            for step in trace.steps
        )
        found[schedule].append(link)
    return sorted(found.items(), key=lambda lane: (-len(lane[1]), lane[1]))


def _said(trace: Trace, links: list[LinkKey]) -> str:
    """A text on the links of one lane, and on the bytes that each carries."""
    levels = {trace.group.wires[dim].level for dim, *_ in links}
    loads = [s.loads[links[0]] for s in trace.steps if links[0] in s.loads]
    what = f"{len(links)} links" if len(links) > 1 else _name(trace, links[0])
    low, high = show(min(loads), "bytes"), show(max(loads), "bytes")
    size = low if low == high else f"{low} to {high}"
    kind = f" of {levels.pop()}" if len(levels) == 1 and len(links) > 1 else ""
    return f"{what}{kind}, {size} a step"


def _name(trace: Trace, link: LinkKey) -> str:
    dim, *links = link
    switch = trace.group.wires[dim].level
    return " → ".join(switch if end == -1 else str(end) for end in links)


def _stairs(trace: Trace, starts: list[float], at, top: float) -> Iterator[str]:
    """The average number of complete blocks on a chip after each step."""
    n = trace.group.size
    counts = [
        sum(share > 1 - 1e-9 for row in _filled(trace, k) for share in row) / n
        for k in range(len(trace.steps) + 1)
    ]
    most = max(counts) or 1
    sums = "sums" if trace.priced.collective.op in SUMS else "blocks"
    yield written(EDGE, top - 9, f"complete {sums} a chip, up to {show(most)}")

    def up(count: float) -> float:
        return top + (STAIRS - 2) * (1 - count / most)

    points = [(at(0), up(counts[0]))]
    for start, before, after in zip(starts[1:], counts, counts[1:], strict=False):
        points += [(at(start), up(before)), (at(start), up(after))]
    yield line((EDGE, top + STAIRS - 2), (WIDEST - EDGE, top + STAIRS - 2), width=1)
    if len(points) > 1:
        yield line(*points, width=2.5, key="complete")


def _filled(trace: Trace, step: int) -> list[list[float]]:
    """For every chip, the share of each block that it holds."""
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


Filled = tuple[int, int, float]  # number, colour, share


def _blocks(trace: Trace, step: int) -> list[list[Filled]]:
    """A sheet of blocks: column k is block k."""
    return [
        [(k, k, share) for k, share in enumerate(row)] for row in _filled(trace, step)
    ]


def _parts(trace: Trace, step: int) -> list[list[Filled]]:
    """The first or last state of an AllToAll: (receiver, sender, share).

    Before it, column k is the part for chip k, and after it the part from chip k.
    """
    n = trace.group.size
    whole = trace.group.parts * trace.group.halves
    sheet = []
    for held in trace.state(step):
        row = [(0, 0, 0.0)] * n
        for block in held:
            source, goal = divmod(block.name, n)
            at = source if step else goal
            row[at] = (goal, source, row[at][2] + 1 / whole)
        sheet.append(row)
    return sheet


def _held(filled: list[list[float]]) -> str:
    """The cells in words, or the least and the most of a chip if there are many."""
    if len(filled) <= len(HUES):
        rows = (
            f"chip {chip}: " + " ".join(f"{100 * share:.0f} %" for share in cells)
            for chip, cells in enumerate(filled)
        )
        return f"Share of every block that each chip holds: {'; '.join(rows)}."
    shares = [sum(cells) / len(cells) for cells in filled]
    return (
        f"Each of {len(filled)} chips holds {100 * min(shares):.0f} % to "
        f"{100 * max(shares):.0f} % of all blocks."
    )


def _colour(block: int, n: int) -> str:
    return hue(block) if n <= len(HUES) else "network"


# Chip by chip -----------------------------------------------------------------------


def _row(trace: Trace) -> Scene:
    """A ring as two rows joined at their ends, or one row for a line or few chips.

    A switch is between the two rows.
    """
    n = trace.group.size
    wires = next((w for w in trace.group.wires if w.size > 1), None)
    ring = isinstance(wires, Switch) or bool(wires and wires.wrap)
    first = ceil(n / 2) if ring or n > 6 else n
    room = WIDEST - 2 * EDGE
    side = min(LARGE, room / (first + 0.7 * (first - 1)))
    down = side + max(GAP, 0.7 * side) + TALL * isinstance(wires, Switch)

    def across(count: int) -> list[float]:
        if count == 1:
            return [EDGE + (room - side) / 2]
        return [EDGE + k * (room - side) / (count - 1) for k in range(count)]

    top = HEAD + TALL
    corners = [(x, top) for x in across(first)]
    corners += (
        [(x, top + down) for x in reversed(across(n - first))] if n > first else []
    )
    bottom = max(y for _, y in corners) + side + TALL - 6
    return Scene(tuple(corners), side, bottom)


def _grid(trace: Trace) -> Scene | None:
    """The fastest dimension across, the next down, others as grids side by side.

    None if this is too wide.
    """
    sizes = [1, 1, *(w.size for w in trace.group.wires)]
    down, across = sizes[-2:]
    columns = across * (trace.group.size // (down * across))
    side = (WIDEST - 2 * EDGE - GAP * columns) / columns
    if side < SMALL:
        return None
    side = min(side, LARGE * 0.7)
    left = (WIDEST - columns * side - (columns - 1) * GAP + GAP / 2) / 2
    corners = []
    for chip in range(trace.group.size):
        panel, within = divmod(chip, down * across)
        y, x = divmod(within, across)
        x += panel * across
        corners.append((left + x * (side + GAP), HEAD + GAP * 0.6 + y * (side + GAP)))
    return Scene(tuple(corners), side, corners[-1][1] + side + TALL - 6)


def _scene(trace: Trace, step: int, scene: Scene, filled) -> Iterator[str]:
    wires = [w for w in trace.group.wires if w.size > 1]
    single = len(wires) < 2
    loads = trace.steps[step - 1].loads if step else {}
    busiest = max(loads.values(), default=1)
    if single and wires and isinstance(wires[0], Switch):
        y = _switch(scene)
        spot = (EDGE, y - 12, WIDEST - EDGE, y + 12)
        yield box(*spot, "network", fill=0.12, edge=0.8)
        yield label(*spot, wires[0].level, "network")
    for link, nbytes in loads.items():
        thin, more = (1.2, 1.3) if single else (0.6, 0.6)
        width = thin + more * nbytes / busiest
        key = "link " + " ".join(map(str, link))
        ways = _straight(scene, link) if single else None
        if ways:
            yield line(*ways, colour="network", width=width, heads="end", key=key)
        else:
            yield _arrow(trace, scene, link, width, key)
    for chip, cells in enumerate(filled):
        x, y = scene.corners[chip]
        yield from _chip(x, y, scene.side, cells, chip)
        above = single and y == scene.corners[0][1]
        yield written(
            x + scene.side / 2 if single else x + 2,
            y - 8 if above else y + scene.side + FONT,
            str(chip),
            anchor="middle" if single else "start",
        )


def _switch(scene: Scene) -> float:
    """The height of a switch: between two rows of chips, or under one."""
    rows = sorted({y for _, y in scene.corners})
    return (rows[0] + scene.side + rows[-1]) / 2 if len(rows) > 1 else rows[0] + 90


def _straight(scene: Scene, link: LinkKey) -> tuple[XY, XY]:
    """From edge to edge of two chips, or of a chip and the switch; a lane each way."""
    _, source, target = link
    if -1 in (source, target):
        x, y = scene.centre(max(source, target))
        bar = _switch(scene)
        sign = 1 if y < bar else -1
        x += (-1 if target == -1 else 1) * scene.side * 0.2
        points = (x, y + sign * (scene.side / 2 + 2)), (x, bar - sign * 13)
        return points if target == -1 else points[::-1]
    (ax, ay), (bx, by) = scene.centre(source), scene.centre(target)
    size = hypot(bx - ax, by - ay)
    ux, uy = (bx - ax) / size, (by - ay) / size
    out = (scene.side / 2 + 2) / max(abs(ux), abs(uy))
    lane = min(8, scene.side / 5)
    ax, ay, bx, by = ax - lane * uy, ay + lane * ux, bx - lane * uy, by + lane * ux
    return (ax + out * ux, ay + out * uy), (bx - out * ux, by - out * uy)


def _arrow(trace: Trace, scene: Scene, link: LinkKey, width: float, key: str) -> str:
    """An arrow of a grid: to a neighbour, around a row (arc), or to a switch (stub).

    An arrow to another grid leaves at a corner.
    """
    dim, source, target = link
    style = {"colour": "network", "width": width, "key": key}
    side = scene.side
    x, y = scene.corners[source if target == -1 else target if source == -1 else source]
    if -1 in (source, target):
        x += side * (0.35 if target == -1 else 0.65)
        points = [(x, y - 2), (x, y - 18)]
        points = points if target == -1 else points[::-1]
        return line(*points, heads="end", **style)
    here, there = (trace.group.places[chip][dim] for chip in (source, target))
    outer = dim - len(trace.group.wires)
    ahead = there > here
    if outer < -2:
        sign = 1 if ahead else -1
        x += side + 2 if ahead else -2
        return line((x, y - 2), (x + 11 * sign, y - 13), heads="end", **style)
    to_x, to_y = scene.corners[target]
    if abs(there - here) > 1:
        rise = 14 if ahead else 8
        near, far = (0.12, 0.88) if ahead else (0.88, 0.12)  # parts of a side
        if outer == -1:
            start, end = (x + near * side, y - 2), (to_x + far * side, to_y - 2)
        else:
            start, end = (x - 2, y + near * side), (to_x - 2, to_y + far * side)
        chord = hypot(end[0] - start[0], end[1] - start[1])
        radius = (chord * chord / 4 + rise * rise) / (2 * rise)
        return arc(start, end, radius, left=ahead != (outer == -1), head=True, **style)
    lane = side * (0.36 if ahead else 0.64)
    if outer == -2:
        ends = (y + side + 2, to_y - 2) if ahead else (y - 2, to_y + side + 2)
        points = [(x + side - lane * 0.7, end) for end in ends]
    else:
        ends = (x + side + 2, to_x - 2) if ahead else (x - 2, to_x + side + 2)
        points = [(end, y + lane) for end in ends]
    return line(*points, heads="end", **style)


def _chip(x: float, y: float, side: float, cells: list[float], chip: int):
    """A frame with a cell for each block."""
    n = len(cells)
    across = next(k for k in range(isqrt(n - 1) + 1, n + 1) if n % k == 0)
    wide, high = side / across, side * across / n
    for k, share in enumerate(cells):
        left, top = x + wide * (k % across), y + high * (k // across)
        spot = (left, top, left + wide, top + high)
        yield box(*spot, _colour(k, n), fill=round(0.75 * share, 2), edge=0.35, round=0)
    yield box(x, y, x + side, y + side, fill=0, edge=0.9, round=2, key=f"chip {chip}")


# A row for each chip ----------------------------------------------------------------


def _shown(filled) -> int:
    return min(len(filled), CELLS)


def _side(filled, wide: float) -> float:
    """Side of a cell of a sheet with its numbers at the left."""
    return min(24.0, (wide - TALL) / _shown(filled))


def _numbered(cells: list[list[Filled]], wide: float) -> bool:
    """Whether a cell has room for its number."""
    side = _side(cells, wide)
    return side >= LINE and side > text_width(str(_shown(cells) - 1))


def _sheet(
    cells: list[list[Filled]], left: float, top: float, wide: float
) -> Iterator[str]:
    """Cells by chip and block; numbers where there is room."""
    n, side = _shown(cells), _side(cells, wide)
    left += TALL
    room = _numbered(cells, wide)
    for m, row in enumerate(cells[:n]):
        if room:
            base = top + (m + 0.5) * side + 5
            yield written(left - 6, base, str(m), anchor="end")
        elif m in (0, n - 1):
            base = top + n * side - 1 if m else top + 11
            yield written(left - 6, base, str(m), anchor="end")
        for k, (number, block, share) in enumerate(row[:n]):
            x, y = left + k * side, top + m * side
            spot = (x, y, x + side, y + side)
            shade, colour = round(0.4 * share, 3), _colour(block, len(cells))
            yield box(*spot, colour, fill=shade, edge=0.35, round=0, key=f"{m} {k}")
            if room and share:
                yield label(*spot, str(number))
