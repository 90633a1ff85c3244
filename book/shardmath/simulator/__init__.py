"""The step simulator: collectives played block by block over the links of a network.

Every chip holds real numbers. In a step, blocks go over links that exist, all at the
same time; a step takes the latency of a hop plus the bytes of its busiest link over
that link's bandwidth, and the next one begins when it has ended. At the end the numbers
are compared with what the collective is defined to leave behind. So the simulator says
two things that no formula can: that a schedule is correct, and how long it takes.

>>> from shardmath.mesh import Mesh
>>> from shardmath.networks import Network, Ring
>>> mesh = Mesh(Network((Ring(4, 50e9, 1e-6),)), {"X": 4})
>>> trace = simulate("all_gather", 8e6, mesh, "X")
>>> print(trace)
AllGather over X (4 devices), 8 MB: 62 µs in 2 steps, as the closed form
>>> print(trace.steps[1])
step 2 of 2: 21 µs, 1 MB on the busiest link
>>> simulate("all_reduce", 8e6, mesh, "X", data=[[1, 2, 3, 4]] * 4).result[0]
(4, 8, 12, 16)
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

from ..collectives import AxisNames, Collective, Priced, price
from ..mesh import Mesh
from ..networks.wiring import Switch
from ..units import show
from . import payload, schedules
from .groups import Block, Group
from .schedules import Move

LARGEST = 256  # chips; n² blocks take seconds to move

State = list[dict[Block, float]]
Link = tuple[int, int, int]  # dimension, from, to; a switch is −1


@dataclass(frozen=True)
class Step:
    """What moves at one time: bytes by link, and the seconds that takes.

    A link is (dimension, from chip, to chip); for a switch one end is −1.
    """

    number: int
    of: int
    moves: tuple[Move, ...]
    loads: dict[Link, float]
    seconds: float

    def __str__(self) -> str:
        busiest = show(max(self.loads.values()), "bytes")
        return (
            f"step {self.number} of {self.of}: {show(self.seconds, 's')}, "
            f"{busiest} on the busiest link"
        )

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


@dataclass(frozen=True)
class Trace:
    """A collective that was played: its steps, its result, and the time it took.

    `result[chip]` holds the numbers that a chip ends with, `priced` the closed form.
    """

    priced: Priced
    group: Group
    start: State
    steps: tuple[Step, ...]
    result: tuple[tuple[float, ...], ...]

    @property
    def seconds(self) -> float:
        """Seconds of all steps."""
        return sum(step.seconds for step in self.steps)

    @property
    def gap(self) -> float:
        """Time of the schedule over that of the closed form: 1 where it is met."""
        return self.seconds / self.priced.seconds if self.steps else 1.0

    def state(self, step: int) -> State:
        """What each chip holds after `step` steps; 0 is the start."""
        if isinstance(step, bool) or step not in range(len(self.steps) + 1):
            raise ValueError(f"step {step!r}: must be from 0 to {len(self.steps)}")
        state = [dict(held) for held in self.start]
        for done in self.steps[:step]:
            _move(state, done.moves)
        return state

    def show(self, step: int):
        """A picture of what moves in `step` and what each chip holds after it."""
        from .trace_figure import chips  # draws traces, so it imports this module

        return chips(self, step)

    def _repr_svg_(self) -> str:
        from .trace_figure import timeline

        return timeline(self)

    def __str__(self) -> str:
        met = abs(self.gap - 1) < 1e-9
        gap = "as the closed form" if met else f"{self.gap:.3g} × the closed form"
        return (
            f"{self.priced.collective.title}: {show(self.seconds, 's')} in "
            f"{len(self.steps)} steps, {gap}"
        )

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def simulate(
    op: str,
    nbytes: float,
    mesh: Mesh,
    axes: AxisNames,
    data: Sequence[Sequence[float]] | None = None,
    one_way: bool = False,
    at_most: int | None = None,
    pairs: tuple[tuple[int, int], ...] = (),
) -> Trace:
    """Plays `op` on one group of `mesh` over `axes`, and checks what it leaves behind.

    Args:
        op, nbytes, mesh, axes, one_way, pairs: as in `collectives`. Where an axis lies
            on every k-th chip of a row, k groups share its links: bandwidth / k and
            hops × k.
        data: the numbers that each chip begins with: one row a chip, of one number for
            AllGather and Permute, else of one number for each chip. Drawn if not given.
        at_most: AllToAll only: blocks that use a link in one step, farthest first. With
            1, a line reaches the bandwidth bound, at the price of more steps.

    Returns:
        A Trace. Where `trace.priced.exact`, its seconds are the closed form's.

    Raises:
        ValueError: bad arguments, or a group of more than 256 chips.
        ArithmeticError: the schedule left wrong numbers behind.
    """
    collective = Collective(op, axes, nbytes, mesh.size(axes), pairs=pairs)
    n = collective.group
    if n > LARGEST:
        raise ValueError(f"{n} chips in a group: the simulator takes up to {LARGEST}")
    if at_most is not None and (not isinstance(at_most, Integral) or at_most < 1):
        raise ValueError(f"at_most = {at_most!r}: must be a whole number from 1")
    if at_most is not None and op != "all_to_all":
        raise ValueError(f"at_most = {at_most}: is for all_to_all, not for {op}")
    group = Group(tuple(piece.wires for piece in mesh.span(collective.axes)), one_way)
    rows = payload.rows(op, n, data)
    more = {} if at_most is None else {"at_most": at_most}
    more |= {"pairs": collective.pairs} if op == "permute" else {}
    names = {"all_to_all": n * n, "permute": 1}.get(op, n)
    return play(
        price(collective, mesh, one_way),
        group,
        schedules.BY_OP[op](group, **more),
        collective.nbytes / (names * group.parts * group.halves),
        [_cut(group, held) for held in payload.start(op, rows, collective.pairs)],
        [_cut(group, held) for held in payload.end(op, rows, collective.pairs)],
    )


def play(
    priced: Priced,
    group: Group,
    moves: list[schedules.Step],
    block_bytes: float,
    start: State,
    wanted: State,
) -> Trace:
    """Plays a schedule from `start`; every block has `block_bytes`.

    Raises:
        ValueError: a move along a link that does not exist, or of a block that the chip
            does not hold.
        ArithmeticError: it ends with anything else than `wanted`.
    """
    state = [dict(held) for held in start]
    steps = []
    for number, step in enumerate(moves, 1):
        loads = _loads(group, step, block_bytes)
        seconds = max(
            group.wires[dim].latency + nbytes / group.wires[dim].bandwidth
            for (dim, *_), nbytes in loads.items()
        )
        _move(state, step)
        steps.append(Step(number, len(moves), step, loads, seconds))
    for chip, (held, right) in enumerate(zip(state, wanted, strict=True)):
        if held != right:
            raise ArithmeticError(
                f"{priced.collective.title}: chip {chip} ends with {_values(held)}, "
                f"must be {_values(right)}"
            )
    return Trace(priced, group, start, tuple(steps), tuple(map(_values, state)))


def _loads(group: Group, step: schedules.Step, block_bytes: float) -> dict[Link, float]:
    """Bytes on every link of a step."""
    loads = defaultdict(float)
    for move in step:
        nbytes = len(move.blocks) * block_bytes
        for link in _links(group, move):
            loads[link] += nbytes
    return dict(loads)


def _links(group: Group, move: Move) -> list[Link]:
    """The links that a move takes, all in its dimension."""
    dim, sources, targets = move.dim, move.sources, move.targets
    w = group.wires[dim]
    row = {group.moved(chip, dim, 0) for chip in (*sources, *targets)}
    if len(row) == 1 and isinstance(w, Switch):
        return [(dim, c, -1) for c in sources] + [(dim, -1, c) for c in targets]
    if len(row) == len(sources) == len(targets) == 1:
        here, there = (group.places[chip][dim] for chip in (*sources, *targets))
        if abs(here - there) in ((1, w.size - 1) if w.wrap else (1,)):
            return [(dim, *sources, *targets)]
    raise ValueError(f"no link of dimension {dim} leads from {sources} to {targets}")


def _move(state: State, step: schedules.Step) -> None:
    """All moves of a step at once: first everything leaves, then everything arrives."""
    arriving = []
    for move in step:
        for block in move.blocks:
            for source in move.sources:
                if block not in state[source]:
                    raise ValueError(f"chip {source} sends {block}, which it lacks")
            value = sum(state[source][block] for source in move.sources)
            arriving.append((move.targets, block, value))
    for move in step:
        for source in () if move.keep else move.sources:
            for block in move.blocks:
                del state[source][block]
    for targets, block, value in arriving:
        for target in targets:
            state[target][block] = state[target].get(block, 0) + value


def _cut(group: Group, held: payload.Held) -> dict[Block, float]:
    return {block: held[block.name] for block in group.blocks(held)}


def _values(held: dict[Block, float]) -> tuple[float, ...]:
    """One number a block, in the order of their names."""
    return tuple({block.name: held[block] for block in sorted(held)}.values())
