"""The icons of the map, one for each chapter, drawn for the size at which they appear.

An icon is 48 units square, contains no words, and is hidden from screen readers.
"""

from collections.abc import Callable, Iterator
from math import cos, pi, sin

from shardmath.draw.shapes import arc, box, circle, line

SIZE = 48

Parts = Iterator[str]


def icon(number: int) -> str:
    """The icon of a chapter as an SVG. Chapters without one get a page with lines.

    Args:
        number: of the chapter.
    """
    parts = "".join(ICONS.get(number, _report)())
    return (
        f'<svg class="sm-icon" viewBox="0 0 {SIZE} {SIZE}" aria-hidden="true" '
        f'fill="currentColor">{parts}</svg>'
    )


def _chip(left: float, top: float, side: float, colour: str, fill: float = 0.2) -> str:
    return box(left, top, left + side, top + side, colour, fill=fill, edge=1, round=2)


def _rooflines() -> Parts:
    yield line((5, 42), (24, 14), (44, 14), colour="HBM", width=3)
    yield line((24, 14), (44, 14), colour="math", width=3)
    yield circle(15, 27, 5)


def _tpus() -> Parts:
    for row in range(3):
        for column in range(3):
            yield _chip(14 + 11 * column, 14 + 11 * row, 8, "math", 0.6)
        yield line((2, 18 + 11 * row), (13, 18 + 11 * row), heads="end", width=1.5)
    for column in range(3):
        yield line(
            (18 + 11 * column, 2), (18 + 11 * column, 13), heads="end", width=1.5
        )


def _gpus() -> Parts:
    yield box(4, 6, 44, 42, fill=0, edge=1, round=3)
    for row in (10, 29):
        for column in range(4):
            yield box(9 + 8 * column, row, 14 + 8 * column, row + 9, "math", fill=0.7,
                      edge=0, round=1)  # fmt: skip
    yield box(9, 21.5, 38, 26.5, "HBM", fill=0.8, edge=0, round=1)


def _networks() -> Parts:
    leaves = [(8, 38), (19, 38), (29, 38), (40, 38)]
    for x, y in leaves:
        middle = (13.5, 24) if x < 24 else (34.5, 24)
        yield line((x, y), middle, colour="network", width=2)
        yield circle(x, y, 4.5)
    for x, y in ((13.5, 24), (34.5, 24)):
        yield line((x, y), (24, 9), colour="network", width=3)
        yield circle(x, y, 4, "network")
    yield circle(24, 9, 5, "network")


def _collectives() -> Parts:
    places = [(24 + 16 * sin(pi * n / 2), 24 - 16 * cos(pi * n / 2)) for n in range(4)]
    for here, there in zip(places, [*places[1:], places[0]], strict=True):
        yield arc(here, there, 16, colour="network", width=2.5)
    for n, (x, y) in enumerate(places):
        yield circle(x, y, 6, f"hue{n + 1}")


def _sharding() -> Parts:
    for n in range(4):
        left, top = 5 + 20 * (n % 2), 5 + 20 * (n // 2)
        yield _chip(left, top, 18, f"hue{n + 1}", 0.55)


def _transformers() -> Parts:
    yield line((12, 44), (12, 4), heads="end", width=3)
    for top in (9, 21, 33):
        yield box(22, top - 4, 42, top + 5, "math", fill=0.5, edge=1, round=2)
        yield line((12, top + 1), (22, top + 1), width=2)


def _data() -> Parts:
    for n in range(3):
        yield _chip(3 + 15 * n, 6, 12, "math", 0.6)
        yield line((9 + 15 * n, 18), (24, 38), colour="network", width=2)
    yield circle(24, 39, 6, "network")


def _fsdp() -> Parts:
    for n in range(3):
        left = 3 + 15 * n
        for part in range(3):
            own = part == n
            yield box(left, 6 + 12 * part, left + 12, 17 + 12 * part, "math",
                      fill=0.8 if own else 0, edge=0.9 if own else 0.4, dashed=not own,
                      round=1)  # fmt: skip


def _tensor() -> Parts:
    yield box(4, 6, 22, 28, "hue1", fill=0.5, edge=1, round=2)
    yield box(26, 6, 44, 28, "hue5", fill=0.5, edge=1, round=2)
    for x in (13, 35):
        yield line((x, 28), (24, 40), colour="network", width=2.5)
    yield circle(24, 41, 5, "network")


def _context() -> Parts:
    for n in range(4):
        yield box(3 + 11 * n, 28, 12 + 11 * n, 40, f"hue{n + 1}", fill=0.6, edge=1,
                  round=1)  # fmt: skip
        yield line((7.5 + 11 * n, 26), (7.5 + 11 * n, 20), colour="network", width=2)
    yield line((7.5, 20), (40.5, 20), colour="network", width=2)
    yield arc((40.5, 19), (7.5, 19), 19, colour="network", left=True, head=True)


def _pipeline() -> Parts:
    for n in range(4):
        top = 5 + 10 * n
        for left, colour in ((1 + 4 * n, "hue3"), (36 - 4 * n, "hue4")):
            yield box(left, top, left + 10, top + 7, colour, fill=0.7, edge=0, round=1)


def _experts() -> Parts:
    for n, chosen in enumerate((False, True, False, True)):
        top = 4 + 11 * n
        if chosen:
            yield line((10, 24), (30, top + 4), colour="network", width=2.5)
        yield box(30, top, 44, top + 8, "hue1", fill=0.75 if chosen else 0,
                  edge=1 if chosen else 0.5, round=2)  # fmt: skip
    yield circle(9, 24, 5)


def _combining() -> Parts:
    front, back = [(6, 17), (31, 17), (31, 42), (6, 42)], (11, -11)
    (dx, dy), (a, b, c, _) = back, front
    yield line(*front, front[0], colour="math", width=2.5)
    upper = [(x + dx, y + dy) for x, y in (a, b)]
    yield line(a, *upper, b, colour="network", width=2.5)
    yield line(upper[1], (c[0] + dx, c[1] + dy), c, colour="HBM", width=2.5)


def _training() -> Parts:
    yield line((6, 4), (6, 42), (44, 42), width=2)
    yield line((9, 8), (13, 22), (20, 30), (30, 34), (43, 36), colour="math", width=3)


def _report() -> Parts:
    yield box(9, 4, 39, 44, fill=0.06, edge=1, round=3)
    for n, right in enumerate((33, 28, 33, 24)):
        yield line((15, 13 + 8 * n), (right, 13 + 8 * n), width=2.5, colour="math")


def _right() -> Parts:
    yield line((6, 4), (6, 42), (44, 42), width=2)
    yield line((6, 42), (42, 6), width=1.5, dashed=True)
    for x, y in ((13, 33), (20, 30), (26, 21), (34, 16)):
        yield circle(x, y, 4, "hue1")


def _inference() -> Parts:
    for n in range(3):
        yield box(4 + 10 * n, 28, 12 + 10 * n, 38, fill=0.25, edge=1, round=1)
    yield box(34, 28, 43, 38, "math", fill=0.9, edge=1, round=1)
    yield arc((8, 25), (38, 25), 18, colour="HBM", head=True)


def _serving() -> Parts:
    rows = ((4, 22), (12, 34), (8, 28), (20, 44))
    for n, (left, right) in enumerate(rows):
        top = 5 + 10 * n
        yield box(left, top, left + 6, top + 7, "math", fill=0.9, edge=0, round=1)
        yield box(left + 6, top, right, top + 7, "HBM", fill=0.6, edge=0, round=1)


def _jax() -> Parts:
    yield line((14, 8), (5, 24), (14, 40), width=3)
    yield line((34, 8), (43, 24), (34, 40), width=3)
    yield _chip(17, 17, 6, "hue1", 0.7)
    yield _chip(25, 17, 6, "hue4", 0.7)
    yield _chip(17, 25, 6, "hue3", 0.7)
    yield _chip(25, 25, 6, "hue5", 0.7)


def _compiler() -> Parts:
    for n, left in enumerate((6, 14, 14, 6)):
        colour = "network" if n == 2 else "ink"
        yield line((left, 9 + 10 * n), (34 if n % 2 else 42, 9 + 10 * n), width=3,
                   colour=colour)  # fmt: skip


def _kernels() -> Parts:
    for inset, fill in ((3, 0.1), (12, 0.3), (20, 1)):
        yield box(inset, inset, SIZE - inset, SIZE - inset, "math", fill=fill, edge=1,
                  round=2)  # fmt: skip


def _precision() -> Parts:
    kinds = ["hue8", *["HBM"] * 3, *["math"] * 4]
    for n, colour in enumerate(kinds):
        left = 4 + 10 * (n % 4)
        top = 12 + 13 * (n // 4)
        yield box(left, top, left + 8, top + 10, colour, fill=0.7, edge=0, round=1)


def _accelerators() -> Parts:
    yield _chip(13, 13, 22, "hue5", 0.4)
    for n in range(3):
        at = 17 + 7 * n
        for start, end in (((at, 4), (at, 13)), ((at, 35), (at, 44)),
                           ((4, at), (13, at)), ((35, at), (44, at))):  # fmt: skip
            yield line(start, end, width=2.5)


ICONS: dict[int, Callable[[], Parts]] = {
    1: _rooflines,
    2: _tpus,
    3: _gpus,
    4: _networks,
    5: _collectives,
    6: _sharding,
    7: _transformers,
    8: _data,
    9: _fsdp,
    10: _tensor,
    11: _context,
    12: _pipeline,
    13: _experts,
    14: _combining,
    15: _training,
    16: _report,
    17: _right,
    18: _inference,
    19: _serving,
    20: _jax,
    21: _compiler,
    22: _kernels,
    23: _precision,
    24: _accelerators,
}
