"""Simulating a collective: its schedule on the links of one group, step by step."""

from collections import defaultdict
from collections.abc import Sequence

from ...base.records import must_be
from ...base.units import flags, positive, positive_int, short_repr
from ...hardware.mesh import Mesh
from ...hardware.networks.wiring import Ring, Switch
from .. import AxisNames, Collective, Priced, price
from ..link_load import link_bandwidth, way_up
from ..price import a_mesh
from . import payload, schedules
from .groups import Chunk, Group
from .schedules import Delivery
from .trace import LinkKey, PlayedStep, State, Trace, moved

LARGEST = 256  # chips, whose n² blocks take seconds to simulate
MOST_MOVES = 4 * LARGEST**2  # n² · pieces of a pipelined AllReduce


def simulate(
    op: str,
    nbytes: float,
    mesh: Mesh,
    axes: AxisNames,
    data: Sequence[Sequence[float]] | None = None,
    one_way: bool = False,
    at_most: int | None = None,
    pairs: tuple[tuple[int, int], ...] = (),
    pieces: int | None = None,
) -> Trace:
    """Plays `op` on one group of `mesh` over `axes`, and checks the result.

    Args:
        op, nbytes, mesh, axes, one_way, pairs: as in `collectives`. If an axis takes
            every k-th chip of a row, k groups share the row's links, so each group has
            1/k of the bandwidth and k times the hops.
        data: the numbers that each chip begins with, one row per chip. A row has one
            number for AllGather and Permute, otherwise one for each chip. By default,
            the numbers are random.
        at_most: for AllToAll, how many blocks a link may carry in one step; those with
            the farthest to go are sent first. With 1, a line reaches the bandwidth
            bound, but takes more steps.
        pieces: for AllReduce on a line, how many pieces each of the n blocks is cut
            into; these are pipelined to one end and back. The more pieces, the closer
            the time of the bytes comes to its bound V/W.

    Returns:
        A Trace. If its `priced.exact` is true, it takes the expected time of the closed
        form.

    Raises:
        ValueError: bad arguments, or a group of more than 256 chips.
        ArithmeticError: the chips end with wrong numbers.

    A line of four chips, each of which ends with the sums:

    >>> from shardmath.hardware.networks import Network, Ring
    >>> mesh = Mesh(Network((Ring(4, 50e9, 1e-6, wrap=False),)), {"X": 4})
    >>> trace = simulate("all_reduce", 8e6, mesh, "X", data=[[1, 2, 3, 4]] * 4)
    >>> trace.result[0], len(trace.steps)
    ((4, 8, 12, 16), 6)
    """
    collective = Collective(op, axes, nbytes, a_mesh(mesh).size(axes), pairs=pairs)
    n = collective.group
    if n > LARGEST:
        raise ValueError(f"{n} chips in a group: must be at most {LARGEST} to simulate")
    if at_most is not None:
        (at_most,) = positive_int(at_most=at_most)
    if at_most is not None and op != "all_to_all":
        raise ValueError(f"at_most = {at_most}: must be for all_to_all, not for {op}")
    (one_way,) = flags(one_way=one_way)
    wires = tuple(piece.wires for piece in mesh.span(collective.axes, one_way))
    if pieces is not None:
        (pieces,) = positive_int(pieces=pieces)
        line = len(wires) == 1 and isinstance(wires[0], Ring) and not wires[0].wrap
        if op != "all_reduce" or not line:
            raise ValueError(
                f"pieces = {pieces}: must be for all_reduce on one line, not {op} on "
                f"{' x '.join(map(str, wires)) or 'one chip'}"
            )
        if pieces > (most := MOST_MOVES // n**2):
            raise ValueError(
                f"pieces = {short_repr(pieces)}: must be at most {most:,} on {n} chips"
            )
    group = Group(wires, one_way, pieces or 1)
    rows = payload.rows(op, n, data)
    more = {} if at_most is None else {"at_most": at_most}
    more |= {"pairs": collective.pairs} if op == "permute" else {}
    names = {"all_to_all": n * n, "permute": 1}.get(op, n)
    schedule = schedules.BY_OP[op] if pieces is None else schedules.piped_all_reduce
    return play(
        price(collective, mesh, one_way),
        group,
        schedule(group, **more),
        collective.nbytes / (names * group.parts * group.halves),
        [_cut(group, held) for held in payload.start(op, rows, collective.pairs)],
        [_cut(group, held) for held in payload.end(op, rows, collective.pairs)],
    )


def play(
    priced: Priced,
    group: Group,
    moves: list[schedules.Round],
    block_bytes: float,
    start: State,
    wanted: State,
) -> Trace:
    """Plays a schedule from `start`; every block has `block_bytes`.

    Raises:
        ValueError: an argument of the wrong type, a move along a link that does not
            exist, or of a block that the chip does not hold.
        ArithmeticError: the chips do not end with `wanted`.
    """
    _check_types(priced, group, moves, start, wanted)
    (block_bytes,) = positive(block_bytes=block_bytes)
    state = [dict(held) for held in start]
    steps = []
    for number, step in enumerate(moves, 1):
        loads, waits = _loads(group, step, block_bytes)
        seconds = max(
            waits[link] + nbytes / link_bandwidth(group.wires, link[0])
            for link, nbytes in loads.items()
        )
        moved(state, step)
        steps.append(PlayedStep(number, len(moves), step, loads, waits, seconds))
    for chip, (held, right) in enumerate(zip(state, wanted, strict=True)):
        if held != right:
            raise ArithmeticError(
                f"{priced.collective.title}: chip {chip} ends with {_values(held)}, "
                f"but must end with {_values(right)}"
            )
    return Trace(priced, group, start, tuple(steps), tuple(map(_values, state)))


def _check_types(
    priced: object, group: object, moves: object, start: object, wanted: object
) -> None:
    must_be(Priced, priced=priced)
    must_be(Group, group=group)
    for name, states in (("start", start), ("wanted", wanted)):
        listed = isinstance(states, list | tuple) and len(states) == group.size
        if not listed or not all(isinstance(held, dict) for held in states):
            raise ValueError(
                f"{name} = {short_repr(states)}: must be a dict of blocks for each of "
                f"{group.size} chips"
            )
    if not isinstance(moves, list | tuple) or not all(
        isinstance(step, list | tuple) and all(isinstance(m, Delivery) for m in step)
        for step in moves
    ):
        raise ValueError(
            f"moves = {short_repr(moves)}: must be a list of Deliveries for each step"
        )


def _loads(
    group: Group, step: schedules.Round, block_bytes: float
) -> tuple[dict[LinkKey, float], dict[LinkKey, float]]:
    """Bytes on every link of a step, and the latency of the crossings that use it."""
    loads, waits = defaultdict(float), defaultdict(float)
    for move in step:
        nbytes = len(move.blocks) * block_bytes
        for link in _links(group, move):
            loads[link] += nbytes
            waits[link] = max(waits[link], group.wires[move.dim].latency)
    return dict(loads), dict(waits)


def _links(group: Group, move: Delivery) -> list[LinkKey]:
    """The links of a move: in its dimension, and up and down a stack of switches."""
    dim, sources, targets = move.dim, move.sources, move.targets
    w = group.wires[dim]
    row = {group.moved(chip, dim, 0) for chip in (*sources, *targets)}
    if len(row) == 1 and isinstance(w, Switch):
        up = [link for c in sources for link in _way_up(group, dim, c)]
        down = [link for c in targets for link in _way_up(group, dim, c)]
        return [(d, c, -1) for d, c in up] + [(d, -1, c) for d, c in down]
    if len(row) == len(sources) == len(targets) == 1:
        here, there = (group.places[chip][dim] for chip in (*sources, *targets))
        if abs(here - there) in ((1, w.size - 1) if w.wrap else (1,)):
            return [(dim, *sources, *targets)]
    raise ValueError(f"no link of dimension {dim} leads from {sources} to {targets}")


def _way_up(group: Group, dim: int, chip: int) -> list[tuple[int, int]]:
    """Dimension and first chip of every link from `chip` to the switch of `dim`."""
    way = way_up(group.wires, dim, group.places[chip])
    return [(d, group.number(place)) for d, place in way]


def _cut(group: Group, held: payload.HeldParts) -> dict[Chunk, float]:
    return {block: held[block.name] for block in group.blocks(held)}


def _values(held: dict[Chunk, float]) -> tuple[float, ...]:
    """One number per block, in the order of block names."""
    found = {block.name: held[block] for block in sorted(held)}.values()
    return tuple(n if isinstance(n, int) else float(n) for n in found)
