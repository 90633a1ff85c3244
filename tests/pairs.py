"""A figure made for tests: one control may be idle, another snaps to even numbers."""

from shardmath.draw.figures import Choice, Drawing, Figure, Slider
from shardmath.draw.live import markup, static_view

SVG = '<svg viewBox="0 0 416 50" role="img"><circle data-key="dot" r="4"/></svg>'
WHY = "only for your own <shape>"


def draw(count: int, own: str, size: int) -> Drawing:
    """Counts in pairs; the size matters for the own shape alone."""
    even = min(max(2 * round(count / 2), 2), 12)
    said = f"{even} of them, size {size if own == 'yes' else 'of the others'}."
    return Drawing(
        SVG.replace('r="4"', f'r="4" cx="{even}"'),
        said,
        (("", "count"), ("drawn", str(even))),
        {"count": even},
        idle={} if own == "yes" else {"size": WHY},
        used={} if even == count else {"count": even},
    )


FIGURE = Figure(
    "pairs",
    "Pairs",
    (
        Slider("count", "Count", "", 0, 12, 4, step=1),
        Choice("own", "Own shape", ("no", "yes"), "no"),
        Slider("size", "Size", "", 1, 8, 2),
    ),
    draw,
    first="count",
)


def known(monkeypatch) -> Figure:
    """The figure, which can be found by its name while the test runs."""
    for module in (markup, static_view):
        find = module.find
        monkeypatch.setattr(
            module, "find", lambda n, find=find: FIGURE if n == "pairs" else find(n)
        )
    return FIGURE
