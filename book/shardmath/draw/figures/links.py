"""The live figure "links": the load of a collective on each level of a network."""

from collections.abc import Iterator, Mapping
from functools import cache

from ...base.units import show
from ...collectives.closed_forms import loads
from ...collectives.price import Priced, price_of
from ...hardware.mesh import Mesh
from ...hardware.networks import network
from ..labels import text_width
from ..picture import WIDEST
from ..shapes import box, circle, framed, line, written
from ..theme import hue
from .controls import Choice, Drawing, Figure, Slider

MACHINES = {  # name → the unit of which the machine has several, as for `network`
    "nodes of 8 H100": "h100:{}x8",
    "nodes of 8 H800": "h800:{}x8",
    "nodes of 8 B200": "b200:{}x8",
    "racks of 72 GB200": "gb200:{}x72",
    "slices of 256 TPU v5e": "v5e:16x16*{}",
}
UNIT = {"nodes": "node", "racks": "rack", "slices": "slice"}
OPS = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "AllToAll": "all_to_all",
}
INSIDE = ("NVLink", "ICI")
OUTSIDE = {"leaf": "network cards", "DCN": "data-centre network"}
EDGE, ROW, BAR = 6, 44, 16
DRAWN = 4  # units that are drawn at most, and chips of each
THICK = 9  # of the lines of the level that decides


@cache
def mesh_of(machine: str, units: int) -> Mesh:
    """All chips of a machine on one axis."""
    found = network(MACHINES[machine].format(units))
    return Mesh(found, {"X": found.chips})


@cache
def busy(machine: str, units: int, op: str, nbytes: float) -> dict[str, float]:
    """Level → seconds in which its links are busy, with the outermost level first."""
    wires = tuple(piece.wires for piece in mesh_of(machine, units).span("X"))
    found = loads(OPS[op], nbytes, wires)
    return {wires[places[0]].level: seconds for places, seconds in found}


def draw(units: int, machine: str, op: str, size: int) -> Drawing:
    """The levels of a machine, with thicker lines for busier links, and seconds."""
    mesh, nbytes = mesh_of(machine, units), float(size * 2**20)
    levels = busy(machine, units, op, nbytes)
    priced = price_of(OPS[op], nbytes, mesh, "X")
    kind = machine.partition(" ")[0]
    count = f"{units} {kind if units > 1 else UNIT[kind]}"
    what = f"{op} of {show(nbytes, 'capacity')}"
    decides = _named(priced.level)
    which = _assumed(op, kind, units, priced.level)
    summary = (
        f"{what} over {mesh.network.chips:,} chips in {count}: no schedule {which}"
        f"takes less than {show(priced.lower, 's')}, for which {decides} "
        f"{'are' if decides.endswith('s') else 'is'} busy. With the latency that we "
        f"expect it is {show(priced.expected, 's')}, and "
        f"{show(priced.upper, 's')} if one level waits for the other."
    )
    data = {
        "levels": levels,
        "decides": priced.level,
        "lower": priced.lower,
        "expected": priced.expected,
        "upper": priced.upper,
    }
    drawn = _drawn(f"{what}, {count}", kind, units, levels, priced)
    high = 176 + ROW * (len(levels) + 1)
    picture = framed(f"{what} on {count}", summary, drawn, WIDEST, high)
    return Drawing(picture, summary, _readout(mesh, levels, priced), data, STOPS[-1])


def _assumed(op: str, kind: str, units: int, level: str) -> str:
    """A text on the schedules for which a bound holds. Others may be faster."""
    which = []
    if op == "AllReduce" and kind != "slices":
        which.append("the GPUs do the adding")  # and not the NVSwitches
    if units > 1 and level in INSIDE:  # the wires outside have time for more
        which.append(f"each byte enters a {UNIT[kind]} only once")
    return f"in which {' and '.join(which)} " if which else ""


def _named(level: str) -> str:
    return f"the {OUTSIDE[level]}" if level in OUTSIDE else level


def _readout(
    mesh: Mesh, levels: Mapping[str, float], priced: Priced
) -> tuple[tuple[str, ...], ...]:
    rates = {pace.level: pace.egress for pace in mesh.binding("X").paces}
    rows = [("level", "one-way rate of a unit", "busy", "of the bound")]
    for level, seconds in levels.items():
        name = OUTSIDE.get(level, level)
        share = f"{seconds / priced.lower:.0%}"
        rows.append((name, show(rates[level], "bytes/s"), show(seconds, "s"), share))
    return tuple(rows)


# The picture -------------------------------------------------------------------------


def _drawn(
    title: str, kind: str, units: int, levels: Mapping[str, float], priced: Priced
) -> Iterator[str]:
    yield written(EDGE, 16, title, bold=True)
    yield from _machine(kind, units, levels)
    most = max(priced.upper, priced.lower)
    top = 150
    for place, (level, seconds) in enumerate(levels.items()):
        name = OUTSIDE.get(level, level)
        mark = ", which decides" if level == priced.level else ""
        yield from _bar(f"{name}{mark}", seconds, most, top + ROW * place,
                        _colour(level), level)  # fmt: skip
    yield from _bar("one level after the other", priced.upper, most,
                    top + ROW * len(levels), "ink", "upper")  # fmt: skip


def _colour(level: str) -> str:
    return hue(0) if level in INSIDE else "network"


def _bar(
    name: str, seconds: float, most: float, top: float, colour: str, key: str
) -> Iterator[str]:
    wide = WIDEST - 2 * EDGE
    yield written(EDGE, top + 14, name, key=f"{key}'s")
    yield written(WIDEST - EDGE, top + 14, show(seconds, "s"), anchor="end",
                  key=f"{key} seconds")  # fmt: skip
    fill = 0.25 if key == "upper" else 0.75
    end = EDGE + wide * seconds / most
    yield box(EDGE, top + 20, end, top + 20 + BAR, colour, fill=fill, edge=0, round=0,
              key=f"{key} bar")  # fmt: skip


def _machine(kind: str, units: int, levels: Mapping[str, float]) -> Iterator[str]:
    """Up to four units with their chips; wires are as thick as they are busy."""
    longest = max(levels.values())
    inside = next((level for level in levels if level in INSIDE), None)
    outside = next((level for level in levels if level in OUTSIDE), None)
    shown = min(units, DRAWN)
    wide = (WIDEST - 2 * EDGE) / DRAWN
    middle = EDGE + wide * shown / 2
    if outside:
        thick = max(1.0, THICK * levels[outside] / longest)
        left, right = EDGE + wide / 2, EDGE + wide * (shown - 0.5)
        yield line((left, 44), (right, 44), colour="network", width=thick, key="trunk")
        yield written(middle, 36, OUTSIDE[outside], "network", "middle", key="cards'")
    for unit in range(shown):
        x = EDGE + wide * unit + 6
        end = x + wide - 12
        if outside:
            yield line(((x + end) / 2, 44), ((x + end) / 2, 66), colour="network",
                       width=thick, key=f"card {unit}")  # fmt: skip
        yield box(x, 66, end, 124, fill=0.05, edge=0.5, key=f"unit {unit}")
        spread = (end - x - 24) / (DRAWN - 1)
        if inside:
            yield line((x + 12, 92), (end - 12, 92), colour=hue(0),
                       width=max(1.0, THICK * levels[inside] / longest),
                       key=f"inside {unit}")  # fmt: skip
        for chip in range(DRAWN):
            yield circle(x + 12 + spread * chip, 92, 7, key=f"chip {unit} {chip}")
        if unit == 0 and inside:
            yield written((x + end) / 2, 117, inside, hue(0), "middle", key="inside's")
    more = f"4 of {units} {kind} are drawn, with 4 chips each" if units > DRAWN else (
        f"4 chips of each {UNIT[kind]} are drawn"
    )  # fmt: skip
    assert text_width(more) < WIDEST
    yield written(EDGE, 142, more, key="drawn")


STOPS = (1, 2, 4, 8, 16, 32, 64)
FIGURE = Figure(
    "links",
    "Which wire decides?",
    (
        Slider("units", "Nodes, racks or slices", "", STOPS[0], STOPS[-1], 1,
               play=True),
        Choice("machine", "Machine", tuple(MACHINES), "nodes of 8 B200"),
        Choice("op", "Collective", tuple(OPS), "AllReduce"),
        Slider("size", "Size", "MiB", 1, 2**14, 2**13),
    ),
    draw,
    first="units",
    presets={
        "four nodes": {"units": 4, "machine": "nodes of 8 B200", "op": "AllReduce"},
        "one rack of 72": {"units": 1, "machine": "racks of 72 GB200"},
        "AllToAll": {"units": 8, "op": "AllToAll", "machine": "nodes of 8 H100"},
        "TPU slices": {"units": 2, "machine": "slices of 256 TPU v5e"},
    },
)  # fmt: skip
