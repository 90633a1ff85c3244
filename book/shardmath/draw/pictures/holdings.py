"""The part of weights, gradients and optimizer state that each chip holds."""

from collections.abc import Iterator, Mapping

from ...sharding import ShardedArray, array
from ...sharding.notation import subscript
from ...training import Strategy
from ..labels import text_width
from ..picture import WIDEST, Picture
from ..shapes import box, framed, written

PARTS = {  # bytes per parameter, in bf16 with Adam in fp32; name, colour
    "state": (12, "optimizer state", "hue1"),
    "gradients": (2, "gradients", "hue2"),
    "weights": (2, "weights", "hue5"),
}
SIZE = 64  # of both dimensions of the matrix that is drawn
EDGE, HEAD, GAP = 8, 48, 22  # around a panel, of its title, over a part
CHIP, SPACE, BYTE = 30, 5, 7  # a column, between two, the height of a byte


def holdings(strategies: Mapping[str, Strategy], mesh: Mapping[str, int]) -> Picture:
    """A panel for each strategy: the parts of a matrix w[D, F] that every chip holds.

    The heights of the boxes stand for 12 bytes of optimizer state, 2 of gradients and 2
    of weights per parameter. The part that a chip holds is filled, and the dashed edge
    surrounds the whole.

    Args:
        strategies: name of the panel → strategy.
        mesh: size by axis name, with few chips.

    Raises:
        ValueError: there are no strategies, or too many chips or too long a name for a
            panel.

    >>> from shardmath.training import zero
    >>> holdings({"ZeRO-1": zero(1, "X")}, {"X": 4}).desc[:60]
    'ZeRO-1: each of 4 chips holds 7 bytes a parameter, 1/4 of 12'
    """
    if not strategies:
        raise ValueError("strategies = {}: must hold one or more")
    panels, said = [], []
    for name, strategy in strategies.items():
        arrays = {part: _placed(strategy, part, mesh) for part in PARTS}
        words = _said(name, arrays)
        said.append(words)
        wide = _width(next(iter(arrays.values())).devices)
        if wide > WIDEST or text_width(name, bold=True) > wide - 2 * EDGE:
            raise ValueError(
                f"{name!r} on {dict(mesh)} is {wide:g} units wide: must be at most "
                f"{WIDEST}, and its name must fit"
            )
        high = HEAD + sum(GAP + BYTE * PARTS[part][0] for part in PARTS) + EDGE
        panels.append(framed(name, words, _panel(name, arrays), wide, high))
    title = f"Who holds what: {', '.join(strategies)}"
    return Picture(title, " ".join(said), tuple(panels))


def _placed(strategy: Strategy, part: str, mesh: Mapping[str, int]) -> ShardedArray:
    """w[D, F] as `strategy` places this part of it."""
    layout = getattr(strategy, part)
    dims = (f"{dim}_{subscript(layout[dim])}" if dim in layout else dim for dim in "DF")
    return array(f"w[{', '.join(dims)}]", mesh, D=SIZE, F=SIZE)


def _width(chips: int) -> float:
    return max(2 * EDGE + chips * (CHIP + SPACE) - SPACE, 150)


def _bytes(arrays: Mapping[str, ShardedArray]) -> float:
    """The bytes of one parameter that a chip holds, on average."""
    return sum(
        PARTS[part][0] * one.local_nbytes / one.nbytes for part, one in arrays.items()
    )


def _said(name: str, arrays: Mapping[str, ShardedArray]) -> str:
    chips = next(iter(arrays.values())).devices
    shares = ", ".join(
        f"{_share(one)} of {PARTS[part][0]} bytes of {PARTS[part][1]}"
        for part, one in arrays.items()
    )
    held = f"{_bytes(arrays):.3g} bytes a parameter"
    return f"{name}: each of {chips} chips holds {held}, {shares}."


def _share(one: ShardedArray) -> str:
    parts = round(one.nbytes / one.local_nbytes)
    return "all" if parts == 1 else f"1/{parts}"


def _panel(name: str, arrays: Mapping[str, ShardedArray]) -> Iterator[str]:
    """The title, and for each part a row of boxes, one a chip."""
    yield written(EDGE, 18, name, bold=True)
    yield written(EDGE, 37, f"{_bytes(arrays):.3g} bytes/param")
    top = HEAD
    for part, one in arrays.items():
        nbytes, words, colour = PARTS[part]
        yield written(EDGE, top + 16, f"{words}, {nbytes}", colour)
        top += GAP
        for chip, place in enumerate(one.places()):
            left = EDGE + chip * (CHIP + SPACE)
            yield box(left, top, left + CHIP, top + BYTE * nbytes, "ink", fill=0,
                      edge=0.5, dashed=True, round=0)  # fmt: skip
            rows, columns = one.block(place)
            ends = (
                left + CHIP * columns.start / SIZE,
                top + BYTE * nbytes * rows.start / SIZE,
                left + CHIP * columns.stop / SIZE,
                top + BYTE * nbytes * rows.stop / SIZE,
            )
            key = f"{part} {chip}"
            yield box(*ends, colour, fill=0.75, edge=0, round=0, key=key)
        top += BYTE * nbytes
