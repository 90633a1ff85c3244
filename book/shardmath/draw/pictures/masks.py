"""The keys that each query sees in full, causal and windowed attention."""

from collections.abc import Iterator

from ...base.units import positive_int, show
from ...transformer import keys_per_query
from .. import shapes
from ..picture import WIDEST, Picture, picture

LEFT, GAP = 6, 16  # of the first square, and between two
SIDE = (WIDEST - 2 * LEFT - 2 * GAP) / 3
TOP = 30


def masks(seq: int, window: int) -> Picture:
    """Three squares: rows are queries, columns are keys, filled where a key is seen.

    Args:
        seq: tokens of the sequence.
        window: the most keys that a query in the third square sees, below `seq`.

    Raises:
        ValueError: a size is not a whole number from 1, or `window` is not below `seq`.

    >>> print(masks(12, 4).desc)
    12 queries, one below the other, and 12 keys. full: a query sees 12 keys in the \
mean. causal: a query sees 6.5 keys in the mean. window of 4: a query sees 3.5 keys in \
the mean.
    """
    seq, window = positive_int(seq=seq, window=window)
    if window >= seq:
        raise ValueError(f"window = {window}: must be fewer than the {seq} keys")
    squares = {
        "full": (seq, "full"),
        "causal": (seq, "causal"),
        f"window of {window}": (window, "causal"),
    }
    parts, said = [], [f"{seq} queries, one below the other, and {seq} keys."]
    for n, (name, (most, attention)) in enumerate(squares.items()):
        left = LEFT + n * (SIDE + GAP)
        mean = show(keys_per_query(seq, attention, most), "keys")
        parts.append(shapes.written(left, 20, name, bold=True))
        parts += _square(left, seq, most, attention)
        parts.append(shapes.written(left, TOP + SIDE + 20, mean, "math"))
        said.append(f"{name}: a query sees {mean} in the mean.")
    title, desc = "Keys that a query sees", " ".join(said)
    height = TOP + SIDE + 28
    return picture(title, desc, shapes.framed(title, desc, parts, WIDEST, height))


def _square(left: float, seq: int, most: int, attention: str) -> Iterator[str]:
    """The keys of each query, side by side, and a frame around all."""
    unit = SIDE / seq
    for query in range(seq):
        end = seq if attention == "full" else query + 1
        start = max(0, end - most)
        y = TOP + query * unit
        spot = left + start * unit, y + 0.5, left + end * unit, y + unit - 0.5
        yield shapes.box(*spot, "math", fill=0.5, edge=0, round=0)
    yield shapes.box(left, TOP, left + SIDE, TOP + SIDE, fill=0, edge=0.5, round=0)
