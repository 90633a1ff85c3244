"""Tori as pictures: a slice with its open sides, or a cube with its optical faces.

Every line is a pair of links of `Network.links`, one in each direction.
"""

from collections.abc import Iterator
from itertools import product
from math import hypot

from ...base.units import short_repr, show
from ...hardware.networks.wiring import Network, Ring
from ..labels import XY, text_width
from ..picture import WIDEST, Picture, picture
from ..shapes import arc, circle, framed, line, written

MOST = 16  # chips along a side; of a longer side, only the two ends are drawn
ENDS = 6  # chips at each end of a longer side
EDGE, HEAD, SIDE = (
    12,
    30,
    62,
)  # free at the right, at the top, and for words at the left
PITCH, DOT = 40, 4  # from chip to chip at most, and the radius of one
NEAR = 4  # chips along a side of a cube


def grid(network: Network) -> Picture:
    """A two-dimensional slice, whose rows are its last dimension. Arcs close rings.

    Raises:
        ValueError: `network` does not have two dimensions of rings or lines.

    >>> from shardmath.hardware.networks import network
    >>> print(grid(network("v5e:4x8")).title)
    TPU v5e 4x8
    """
    if not isinstance(network, Network):
        raise ValueError(f"network = {short_repr(network)}: must be a Network")
    dims = network.dims
    if len(dims) != 2 or not all(isinstance(dim, Ring) for dim in dims):
        raise ValueError(f"{network}: must be a grid of two rings or lines")
    rows, columns = (_shown(dim.size) for dim in dims)
    pitch = min(PITCH, (WIDEST - SIDE - EDGE) / max(1, len(columns) - 0.5))
    xs = {at: SIDE + n * pitch for n, at in enumerate(columns)}
    ys = {at: HEAD + 30 + n * pitch for n, at in enumerate(rows)}
    left, right = SIDE, max(xs.values())
    top, bottom = min(ys.values()), max(ys.values())
    parts = [written(EDGE, 18, network.name, bold=True)]
    for link in network.links():
        if link.source < link.destination:
            ends = [divmod(chip, dims[1].size) for chip in link[:2]]
            if all(y in ys and x in xs for y, x in ends):
                key = f"link {link.source} {link.destination}"
                parts.append(_link(*((xs[x], ys[y]) for y, x in ends), pitch, key))
    for (y, py), (x, px) in product(ys.items(), xs.items()):
        parts.append(circle(px, py, DOT, key=f"chip {y * dims[1].size + x}"))
    parts += _gaps(dims, xs, ys)
    parts += _open(dims, (left, top, right, bottom))
    foot = bottom + 42
    for dim, way in ((dims[1], "across"), (dims[0], "down")):
        parts.append(written(EDGE, foot, _side(dim, way)))
        foot += 20
    desc = f"{network}. {_side(dims[1], 'across')}. {_side(dims[0], 'down')}."
    widest = max(text_width(_side(dim, "across")) for dim in dims)
    width = min(WIDEST, max(right, widest + EDGE) + 24)
    return picture(
        network.name, desc, framed(network.name, desc, parts, width, foot - 8)
    )


def cube(network: Network) -> Picture:
    """A cube of 4 × 4 × 4 chips: electrical links inside, optical links at its faces.

    Raises:
        ValueError: `network` does not have three rings of whole cubes.
    """
    dims = network.dims
    rings = all(isinstance(dim, Ring) and dim.wrap for dim in dims)
    if len(dims) != 3 or not rings or any(dim.size % NEAR for dim in dims):
        raise ValueError(f"{network}: must be a torus of whole 4 × 4 × 4 cubes")
    inside, leaving = cube_links(network)

    def place(chip: XY) -> XY:
        z, y, x = chip
        return 100 + 58 * x + 25 * z, 122 + 50 * y - 19 * z

    parts = [written(EDGE, 18, f"One cube of {network.name}", bold=True)]
    for a, b in inside:
        depth = 1 - 0.18 * min(a[0], b[0])
        parts.append(line(place(a), place(b), width=1.2, opacity=round(0.6 * depth, 2)))
    for dim, sign in _faces():
        for chip in leaving[dim, sign]:
            x, y = place(chip)
            far = list(chip)
            far[dim] += sign
            tx, ty = place(far)
            size = hypot(tx - x, ty - y)
            reach = 20 if dim else 17
            tip = x + reach * (tx - x) / size, y + reach * (ty - y) / size
            key = f"optical {dim} {sign} {' '.join(map(str, chip))}"
            parts.append(line((x, y), tip, colour="network", width=2, key=key))
    for chip in sorted(product(range(NEAR), repeat=3), reverse=True):
        x, y = place(chip)
        parts.append(circle(x, y, DOT + 0.5, key=f"chip {' '.join(map(str, chip))}"))
    many = sum(map(len, leaving.values()))
    each = {len(chips) for chips in leaving.values()}
    said = (
        f"inside: {len(inside)} electrical links",
        f"through {len(leaving)} faces: {' or '.join(map(str, sorted(each)))} "
        f"optical leads each, {many} in all",
    )
    foot = place((0, NEAR - 1, 0))[1] + 54
    parts.append(written(EDGE, foot, said[0]))
    parts.append(written(EDGE, foot + 20, said[1], "network"))
    cubes = network.chips // NEAR**3
    name = f"A cube of {network.name}"
    desc = (
        f"{NEAR**3} chips in a cube of four by four by four, one of {cubes} in the "
        f"slice; {said[0]}, {said[1]}, by way of switches to the "
        "opposite face or the next cube."
    )
    return picture(name, desc, framed(name, desc, parts, WIDEST, foot + 32))


def cube_links(network: Network):
    """In the first cube: pairs of linked chips, and face → chips whose links leave it.

    A face is (dimension, −1 or 1). A link that leaves a face ends in another cube, or
    at the opposite face of this cube.
    """
    sizes = network.shape
    inside, leaving = [], {face: [] for face in _faces()}
    for link in network.links():
        a, b = (_at(chip, sizes) for chip in link[:2])
        if max(a) >= NEAR:
            continue
        dim = next(n for n in range(3) if a[n] != b[n])
        near = max(b) < NEAR and abs(a[dim] - b[dim]) == 1
        if not near:
            leaving[dim, 1 if a[dim] == NEAR - 1 else -1].append(a)
        elif a < b:
            inside.append((a, b))
    return inside, leaving


def _faces() -> list[tuple[int, int]]:
    """The faces, with those at the back first so that they are drawn over."""
    return [(0, 1), (1, 1), (2, -1), (2, 1), (1, -1), (0, -1)]


def _at(chip: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    rest, x = divmod(chip, sizes[2])
    return (*divmod(rest, sizes[1]), x)


def _shown(size: int) -> list[int]:
    if size <= MOST:
        return list(range(size))
    return [*range(ENDS), *range(size - ENDS, size)]


def _side(dim: Ring, way: str) -> str:
    """One side in words, with the rate at which its chips can send along it."""
    rate = show(dim.egress, "bytes/s") if dim.size > 1 else "nothing"
    if dim.wrap:
        return f"{dim.size} {way}: closed, a ring; a chip sends {rate}"
    if dim.size == 1:
        return f"1 {way}"
    return f"{dim.size} {way}: open, a line; an end chip sends {rate}"


def _link(a: XY, b: XY, pitch: float, key: str) -> str:
    """A straight line to a neighbour, or an arc above a row or left of a column.

    An arc passes over the dot next to its end, and avoids the adjacent row.
    """
    (ax, ay), (bx, by) = a, b
    chord = hypot(bx - ax, by - ay)
    if chord < 1.5 * pitch:
        return line(a, b, colour="network", width=1.5, key=key)
    steps = chord / pitch
    rise = min(0.62 * pitch, (DOT + 5) * steps**2 / 4 / (steps - 1))
    radius = (chord * chord / 4 + rise * rise) / (2 * rise)
    down = ax == bx
    return arc(a, b, radius, colour="network", width=1.5, left=down, key=key)


def _gaps(dims, xs, ys) -> Iterator[str]:
    """Dots in the middle of a side that is not drawn whole."""
    if len(xs) < dims[1].size:
        x = (xs[ENDS - 1] + xs[dims[1].size - ENDS]) / 2
        yield from (written(x, y + 5, "…", anchor="middle") for y in ys.values())
    if len(ys) < dims[0].size:
        y = (ys[ENDS - 1] + ys[dims[0].size - ENDS]) / 2
        yield from (written(x, y + 5, "…", anchor="middle") for x in xs.values())


def _open(dims, frame) -> Iterator[str]:
    """A dashed line and a word along the sides that no link closes."""
    left, top, right, bottom = frame
    if not dims[0].wrap and dims[0].size > 1:
        for y in (top - 26, bottom + 15):
            yield line((left - 8, y), (right + 8, y), width=1.2, dashed=True)
            yield written(left - 14, y + 5, "open", anchor="end")
    if not dims[1].wrap and dims[1].size > 1:
        for x in (left - 15, right + 15):
            yield line((x, top - 8), (x, bottom + 8), width=1.2, dashed=True)
        yield written(left - 20, (top + bottom) / 2 + 5, "open", anchor="end")
