"""A ring as a circle of chips, with the blocks they hold and send, and a clock.

Every chip is a plate of slots, one for each block. A block is named by the letter of
the shard that it comes from or belongs to, and a piece of an AllToAll also by the chip
that it is for. The upper and lower half of a slot are the halves of its block. In a
sum, each column of a slot is the term of one chip. A complete block is solid.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from ...base.units import short_repr, show
from ...collectives import NAMES
from ...collectives.simulator.terms import (
    SUMS,
    Halves,
    HeldTerms,
    Parcel,
    carried,
    complete,
    finished,
    fullest,
    held,
    parcels,
)
from ...collectives.simulator.trace import Trace
from ...hardware.networks.wiring import Ring
from ..labels import XY, Box, overlap, text_width
from ..picture import WIDEST, Picture
from ..shapes import arc, box, framed, label, number, written
from ..theme import hue

CELL, SEAM = 21, 2  # a slot, and the space between two
HERE = (0, 0, CELL, CELL)  # a slot, for a mark that has a transform
PAD, HEAD = 5, 18  # of a plate: its border, and the line with its name
WIDE, LANE = 172, 6  # radius at most; from there to the links of either direction
GAP, TALL = 5, 7  # from a link to its name; half the height of a name
EDGE = 3  # of the picture, free of names
LOWER = 6  # of the clock: below the upper plates, whose corners come near
MOST = 8  # chips: the letters of their blocks must be readable
LETTERS = "ABCDEFGH"


def circle(trace: Trace, steps: Sequence[int], clock: bool = True) -> Picture:
    """The states of a ring after each of `steps`, side by side. Step 0 is the start.

    Args:
        trace: a collective played on one ring of 3 to 8 chips.
        steps: the states to show.
        clock: whether to show the time, next to that of the closed form.

    Raises:
        ValueError: `trace` is not a Trace of such a ring, or a step does not exist.

    >>> from shardmath.hardware.mesh import Mesh
    >>> from shardmath.hardware.networks import Network, Ring
    >>> from shardmath.collectives.simulator import simulate
    >>> mesh = Mesh(Network((Ring(4, 50e9, 1e-6),)), {"X": 4})
    >>> played = simulate("all_gather", 8e6, mesh, "X", one_way=True)
    >>> circle(played, (0, 3)).title
    'AllGather, one way'
    """
    if not isinstance(trace, Trace):
        raise ValueError(
            f"trace = {short_repr(trace)}: must be a Trace; `simulate` returns one"
        )
    if not isinstance(steps, Sequence) or not steps:
        raise ValueError(
            f"steps = {short_repr(steps)}: must name states to show, such as (0, 1)"
        )
    panels = tuple(panel(trace, step, clock=clock) for step in steps)
    return Picture(titled(trace), " ".join(said(trace, step) for step in steps), panels)


def panel(trace: Trace, step: int, slider: str = "", clock: bool = True) -> str:
    """The SVG of one ring after `step`, with the sends of this step.

    Args:
        trace, step, clock: as in `circle`.
        slider: the control of a live figure that is set by dragging the clock's bar, or
            "".

    A block received in this step has the same key as an invisible mark at its sender in
    the previous picture, so a host with both pictures can animate it.
    """
    ring = _ring(trace)
    now = held(trace, step)
    came = parcels(trace, step) if step else ()
    leaving = parcels(trace, step + 1) if step < len(trace.steps) else ()
    parts = [*_links(ring, step, came)]
    parts += [_plate(ring, chip) for chip in range(ring.chips)]
    parts += [_anchor(ring, p, now[p.source][p.name], step + 1) for p in leaving]
    for chip, blocks in enumerate(now):
        fresh = [parcel for parcel in came if parcel.target == chip]
        parts += _slots(ring, chip, blocks, fresh, step)
    parts += _clock(ring, step, slider) if clock else _named(ring, step)
    return framed(titled(trace), said(trace, step), parts, WIDEST, ring.height)


def titled(trace: Trace) -> str:
    """The collective and the directions that it uses."""
    ways = "one way" if trace.group.one_way else "both ways"
    return f"{NAMES[trace.priced.collective.op]}, {ways}"


def said(trace: Trace, step: int) -> str:
    """A sentence on what a step does, and on the state after it."""
    n, op = trace.group.size, trace.priced.collective.op
    if not step:
        return {
            "all_gather": f"The start: every chip holds its own block of {n}.",
            "all_to_all": f"The start: every chip holds {n} blocks, one for each chip.",
        }.get(op, f"The start: every chip holds its own term of all {n} blocks.")
    what, left = _did(trace, step), _left(trace, step)
    return f"Step {step} of {len(trace.steps)}: every chip {what}; {left}."


def _did(trace: Trace, step: int) -> str:
    mine = [parcel for parcel in parcels(trace, step) if parcel.source == 0]
    both = len({parcel.target for parcel in mine}) > 1
    amount = carried(trace, step)
    half = amount == Fraction(1, 2)
    if trace.priced.collective.op == "all_to_all":
        blocks = "half a block" if half else f"{float(amount):g} blocks"
        return f"sends {'1 block' if amount == 1 else blocks} on{' each way' * both}"
    if _adds(trace, step):
        first = all(len(terms) < 2 for parcel in mine for terms in parcel.halves)
        if both:
            sent = f"{'half a' if half else 'one'} term" if first else "a partial sum"
            return f"sends {sent} each way, and its neighbours add their terms"
        sent = "sends one term on" if first else "passes on the sum that it added to"
        return f"{sent}, and its neighbour adds a term"
    block = "sum" if trace.priced.collective.op == "all_reduce" else "block"
    if all(parcel.name == parcel.source for parcel in mine):
        return f"sends its own {block} {'both ways' if both else 'to the next chip'}"
    last = f"{'half of ' * half}{'each' if both else 'the'} {block}"
    return f"passes on {last} that it received last"


def _left(trace: Trace, step: int) -> str:
    n, op = trace.group.size, trace.priced.collective.op
    done, most = finished(trace, step), fullest(trace, step)
    if op == "all_to_all":
        return f"each now has {done} of the {n} blocks meant for it"
    if op == "all_gather":
        return f"each now holds {done} of {n}"
    if not done:
        return f"the fullest sums now have {most} of {n} terms"
    if done == 1:
        return f"each now holds one block complete, the sum of {n} terms"
    return f"each now holds {done} of {n} sums"


def _short(trace: Trace, step: int) -> str:
    """A short form of `_left` for the middle of the circle."""
    n, op = trace.group.size, trace.priced.collective.op
    done, most = finished(trace, step), fullest(trace, step)
    if op in SUMS and not done:
        return f"{most} of {n} terms {'at most' if step else 'in each'}"
    noun = {"all_gather": "blocks", "all_to_all": "arrived"}.get(op, "sums")
    return f"{done} of {n} {noun} on each"


def _adds(trace: Trace, step: int) -> bool:
    """Whether the moves of a step are those of a ReduceScatter."""
    if trace.priced.collective.op not in SUMS:
        return False
    return not trace.steps[step - 1].moves[0].keep


@dataclass(frozen=True)
class _Circle:
    """The places of a ring's chips and of their slots."""

    trace: Trace

    @property
    def chips(self) -> int:
        return self.trace.group.size

    @property
    def exchanges(self) -> bool:
        return self.trace.priced.collective.op == "all_to_all"

    @property
    def slots(self) -> int:
        """One slot per block; in an AllToAll, a second for a block that is split."""
        return self.chips + (self.exchanges and self.trace.group.halves == 2)

    @property
    def columns(self) -> int:
        """Columns of slots. Plates of 8 chips are narrow, so neighbours don't touch."""
        return {3: 3, 9: 3}.get(self.slots, (self.slots + 1) // 2)

    @cached_property
    def plate(self) -> XY:
        """Width and height of a plate."""
        rows = math.ceil(self.slots / self.columns)
        return (
            self.columns * (CELL + SEAM) - SEAM + 2 * PAD,
            rows * (CELL + SEAM) - SEAM + HEAD + PAD,
        )

    @cached_property
    def angles(self) -> tuple[float, ...]:
        """The chips' angles, clockwise. Chip 0 is at the top, or left of the top."""
        turn = -0.5 if self.chips % 4 == 0 else 0
        return tuple(
            math.tau * ((chip + turn) / self.chips - 0.25) for chip in range(self.chips)
        )

    @cached_property
    def radius(self) -> float:
        """The largest radius that the width allows, with room for arcs and names.

        The longest name, of half a piece in an AllToAll, may be at the side.
        """
        wide = max(abs(math.cos(angle)) for angle in self.angles)
        most = (WIDEST - 2 - self.plate[0]) / 2 / wide
        if self.slots == self.chips:
            return min(most, WIDE)
        return min(most, WIDEST / 2 - EDGE - text_width("½A0") - GAP - LANE)

    @cached_property
    def centre(self) -> XY:
        return WIDEST / 2, self._reach(-1) + 2

    @property
    def height(self) -> float:
        return self.centre[1] + self._reach(1) + 2

    def _reach(self, down: int) -> float:
        """How far plates and named arcs reach up (−1) or down (1)."""
        most = max(down * math.sin(angle) for angle in self.angles)
        plate = most * self.radius + self.plate[1] / 2
        return plate if most > 0.99 else max(plate, self.radius + LANE + GAP + 2 * TALL)

    def at(self, angle: float, radius: float) -> XY:
        x, y = self.centre
        return x + radius * math.cos(angle), y + radius * math.sin(angle)

    def place(self, chip: int) -> Box:
        """The plate of `chip`."""
        (x, y), (wide, high) = self.at(self.angles[chip], self.radius), self.plate
        return x - wide / 2, y - high / 2, x + wide / 2, y + high / 2

    def slot(self, chip: int, seat: int) -> Box:
        left, top, *_ = self.place(chip)
        row, column = divmod(seat, self.columns)
        x = left + PAD + column * (CELL + SEAM)
        y = top + HEAD + row * (CELL + SEAM)
        return x, y, x + CELL, y + CELL

    def ride(self, parcel: Parcel, seat: int, moved: bool) -> str:
        """The transform to slot `seat` of the sender, or of the receiver if `moved`.

        Interpolated transforms lead along the circle.
        """
        ahead = (parcel.target - parcel.source) % self.chips == 1
        turn = math.tau / self.chips * (1 if ahead else -1)
        angle = math.degrees(self.angles[parcel.source] + turn * moved)
        (x, y), middle = self.centre, self.at(self.angles[0], self.radius)
        left, top, *_ = self.slot(0, seat)
        return (
            f"translate({x:.1f} {y:.1f}) rotate({angle:.2f}) "
            f"translate({self.radius:.1f} 0) rotate({-angle:.2f}) "
            f"translate({left - middle[0]:.1f} {top - middle[1]:.1f})"
        )

    def seat(self, name: int, halves: Halves) -> int:
        """The slot of a block.

        A piece of an AllToAll uses the slot of its distance. At any time a chip has one
        piece for each distance, or two halves, one from each side.
        """
        n = self.chips
        if not self.exchanges:
            return name
        return n if not halves[0] else (name % n - name // n) % n

    def arc(self, source: int, target: int) -> tuple[float, float, float]:
        """Radius, first and last angle of a link between the edges of two plates."""
        ahead = (target - source) % self.chips == 1
        radius = self.radius + (LANE if ahead else -LANE)
        half = math.pi / self.chips * (1 if ahead else -1)
        first = self.angles[source]
        leaves = self._edge(source, radius, first, half)
        return radius, leaves, self._edge(target, radius, first + 2 * half, -half)

    def _edge(self, chip: int, radius: float, at: float, half: float) -> float:
        """The angle, relative to a plate's middle, at which a link leaves it."""
        inside, outside = at, at + half
        for _ in range(10):
            angle = (inside + outside) / 2
            if overlap(_around(self.at(angle, radius), 3, 3), self.place(chip)):
                inside = angle
            else:
                outside = angle
        return outside


def _around(point: XY, wide: float, high: float) -> Box:
    """The box of a given width and height around a point."""
    x, y = point
    return x - wide, y - high, x + wide, y + high


def _ring(trace: Trace) -> _Circle:
    wires = trace.group.wires
    one = len(wires) == 1 and isinstance(wires[0], Ring) and wires[0].wrap
    if not one or wires[0].size > MOST or trace.priced.collective.op == "permute":
        on = ", ".join(map(str, wires))
        raise ValueError(
            f"{trace.priced.collective.title} on {on}: a circle shows an AllGather, "
            f"ReduceScatter, AllReduce or AllToAll on one ring of 3 to {MOST} chips"
        )
    return _Circle(trace)


def _links(ring: _Circle, step: int, came: Sequence[Parcel]) -> Iterable[str]:
    """Every link, pale if idle, or else an arrow whose width shows its load."""
    trace, n = ring.trace, ring.chips
    most = max(max(played.loads.values()) for played in trace.steps)
    loads = trace.steps[step - 1].loads if step else {}
    for link in sorted({link for played in trace.steps for link in played.loads}):
        _, source, target = link
        radius, first, last = ring.arc(source, target)
        left = (target - source) % n != 1
        ends = ring.at(first, radius), ring.at(last, radius)
        if link not in loads:
            yield arc(*ends, radius, width=1.5, opacity=0.25, left=left)
            continue
        width = 1 + 3 * loads[link] / most
        yield arc(*ends, radius, colour="network", width=width, left=left, head=True)
        mine = [p for p in came if (p.source, p.target) == (source, target)]
        yield _load(ring, mine, radius, first, last)


def _load(
    ring: _Circle, mine: list[Parcel], radius: float, first: float, last: float
) -> str:
    """A label next to an arrow: the name of its block, or how many blocks there are."""
    halves = sum(bool(half) for parcel in mine for half in parcel.halves)
    amount = Fraction(halves, ring.trace.group.halves)
    text = f"{float(amount):g}"
    if len(mine) == 1:
        text = ("½" if amount < 1 else "") + _letter(ring, mine[0].name)
    out = 1 if radius > ring.radius else -1
    wide = text_width(text) / 2
    plates = [ring.place(chip) for chip in range(ring.chips)]

    def spot(share: float) -> XY:
        angle = first + (last - first) * share
        beside = abs(math.cos(angle)) * wide + abs(math.sin(angle)) * TALL
        x, y = ring.at(angle, radius + out * (beside + GAP))
        return min(max(x, wide + EDGE), WIDEST - wide - EDGE), y

    def hidden(share: float) -> tuple[float, float]:
        seen = _around(spot(share), wide, TALL)
        return sum(overlap(seen, plate) for plate in plates), abs(share - 0.5)

    x, y = spot(min((0.5, 0.35, 0.65, 0.2, 0.8, 0, 1), key=hidden))
    return written(x, y + 5, text, "network", "middle")


def _plate(ring: _Circle, chip: int) -> str:
    left, top, right, bottom = ring.place(chip)
    back = box(left, top, right, bottom, fill=0.05, edge=0.5, round=6)
    return back + label(left, top, right, top + HEAD + 1, f"chip {chip}")


def _slots(
    ring: _Circle, chip: int, blocks: HeldTerms, fresh: list[Parcel], step: int
) -> Iterable[str]:
    """The slots of a chip, empty, partly filled or solid, and the blocks of `step`."""
    full = {ring.seat(name, halves) for name, halves in blocks.items()}
    for seat in sorted(set(range(ring.slots)) - full):
        yield box(*ring.slot(chip, seat), fill=0, edge=0.25, dashed=True)
    for name, halves in blocks.items():
        came = [parcel for parcel in fresh if parcel.name == name]
        seat = ring.seat(name, halves)
        slot, before = ring.slot(chip, seat), _without(halves, came)
        if any(before):
            yield _block(ring, slot, name, before)
        for parcel in came:
            mark = _block(ring, HERE, name, parcel.halves) + _fresh(HERE)
            yield _riding(ring, parcel, step, seat, mark)
        alone = any(complete(ring.trace, parcel.halves) for parcel in came)
        if came and complete(ring.trace, halves) and not alone:  # completed by these
            yield _block(ring, slot, name, halves) + _fresh(slot)


def _fresh(slot: Box) -> str:
    """The edge of a block that was received in this step."""
    return box(*slot, fill=0, edge=1, round=3)


def _without(halves: Halves, came: list[Parcel]) -> Halves:
    """The halves that were there before the parcels came."""
    return tuple(
        terms - frozenset().union(*(parcel.halves[k] for parcel in came))
        for k, terms in enumerate(halves)
    )


def _block(ring: _Circle, slot: Box, name: int, halves: Halves) -> str:
    """A block in its slot: solid if it is complete, else the parts that are there."""
    letter = _letter(ring, name)
    colour = hue(LETTERS.index(letter[0]))
    if complete(ring.trace, halves):
        return box(*slot, colour, fill=1, edge=1) + label(*slot, letter, "paper")
    left, top, right, bottom = slot
    columns = ring.chips if ring.trace.priced.collective.op in SUMS else 1
    wide, high = (right - left) / columns, (bottom - top) / len(halves)
    parts = [box(*slot, colour, fill=0.1, edge=1)]
    for row, terms in enumerate(halves):
        up = top + row * high
        for start, end in _runs(terms, columns):
            run = left + start * wide, up, left + end * wide, up + high
            parts.append(box(*run, colour, fill=0.45, edge=0, round=0))
    return "".join(parts) + label(*slot, letter)


def _runs(terms: Iterable[int], columns: int) -> list[tuple[int, int]]:
    """Runs of adjacent columns as (first, last + 1)."""
    if columns == 1:
        return [(0, 1)] if terms else []
    runs = []
    for term in sorted(terms):
        if runs and runs[-1][1] == term:
            runs[-1] = runs[-1][0], term + 1
        else:
            runs.append((term, term + 1))
    return runs


def _letter(ring: _Circle, name: int) -> str:
    if not ring.exchanges:
        return LETTERS[name]
    source, target = divmod(name, ring.chips)
    return f"{LETTERS[source]}{target}"


def _anchor(ring: _Circle, parcel: Parcel, halves: Halves, step: int) -> str:
    """An invisible mark where a parcel of the next step starts."""
    return _riding(ring, parcel, step, ring.seat(parcel.name, halves))


def _riding(ring: _Circle, parcel: Parcel, step: int, seat: int, mark: str = "") -> str:
    """`mark` at a parcel's receiver; without a mark, the place at its sender."""
    key = f"{step}-{parcel.source}-{parcel.target}-{parcel.name}"
    way = ring.ride(parcel, seat, moved=bool(mark))
    return f'<g data-key="{key}" transform="{way}">{mark}</g>'


def _named(ring: _Circle, step: int) -> Iterable[str]:
    """The text in the middle if there is no clock."""
    trace, (x, y) = ring.trace, ring.centre
    yield written(x, y - 18, titled(trace), anchor="middle", bold=True)
    for down, text in (
        (5, f"step {step} of {len(trace.steps)}"),
        (28, _short(trace, step)),
    ):
        yield written(x, y + down, text, anchor="middle")


def _clock(ring: _Circle, step: int, slider: str) -> Iterable[str]:
    """The time so far, as a number and a bar of steps, and that of the closed form."""
    trace, (x, y) = ring.trace, ring.centre
    y += LOWER
    end = max(trace.seconds, trace.priced.seconds)
    wide = min(2 * (ring.radius - ring.plate[0] / 2) - 30, 200)
    left = x - wide / 2
    known, late = trace.priced.seconds, trace.priced.latency_seconds
    stops = [left + wide * trace.elapsed(k) / end for k in range(len(trace.steps) + 1)]
    for k, (played, span) in enumerate(zip(trace.steps, pairwise(stops), strict=True)):
        yield _bar(k, *span, y, wide * max(played.waits.values()) / end, k < step)
    if slider:
        yield (
            f'<rect data-drag="{slider}" data-drag-at="{" ".join(map(number, stops))}" '
            f'x="{number(left)}" y="{number(y + 8)}" width="{number(wide)}" '
            'height="23" fill="transparent"/>'
        )
    now = show(trace.elapsed(step), "s")
    yield written(x, y + 1, now, "network", "middle", size=28, bold=True)
    yield written(x, y - 58, titled(trace), anchor="middle", bold=True)
    for down, text in (
        (-37, f"step {step} of {len(trace.steps)}"),
        (44, f"closed form: {show(known, 's')}"),
        (62, f"{show(late, 's')} of it latency (pale)"),
        (84, _short(trace, step)),
    ):
        yield written(x, y + down, text, anchor="middle")


def _bar(k: int, start: float, stop: float, y: float, late: float, done: bool) -> str:
    """A step on the clock: its outline and, once it is done, its hop and its bytes."""
    parts = (("late", start, start + late, 0.4), ("sent", start + late, stop, 0.95))
    fills = (
        box(
            first,
            y + 14,
            last if done else first,
            y + 25,
            "network",
            fill=fill,
            edge=0,
            round=0,
            key=f"{what}-{k}",
        )
        for what, first, last, fill in parts
    )
    outline = box(start, y + 14, stop, y + 25, "network", fill=0, edge=0.9, round=1)
    return "".join(fills) + outline
