"""The chips' shares of causal attention in each step, and how uneven they are."""

from ...training.causal_ring import CausalRing
from ..objects.causal_ring import loads, square
from ..picture import Picture
from ..shapes import framed, line, written

WIDTH, LEFT, SIDE = 200, 8, 184  # of a panel, its margin, its square
TOP, ROW = 28, 18  # of the square, of a chip's bar
SMALL = 112  # the square of one step


def causal_load(*rings: CausalRing) -> Picture:
    """A panel for each ring: the queries and keys of each chip, and its work.

    The sequence has 4 tokens per chip. A row is a query, in the colour of its chip, and
    a column is a key. Below them, a bar is the work of a chip in the whole sequence,
    and the dashed line is the mean.

    Args:
        rings: rings that all have the same number of chips, at most eight.

    Raises:
        ValueError: there are no rings, or their numbers of chips differ or exceed 8.

    >>> from shardmath.training.causal_ring import CausalRing
    >>> causal_load(CausalRing("contiguous", 4, 4096)).desc
    'contiguous on 4 chips: work over the mean 0.25, 0.75, 1.25, 1.75.'
    """
    counts = {ring.chips for ring in rings}
    if len(counts) != 1 or max(counts) > 8:
        raise ValueError(
            f"rings on {sorted(counts)} chips: must all have the same number, 1 to 8"
        )
    most = max(max(ring.work) / ring.mean for ring in rings)
    panels, said = [], []
    for ring in rings:
        over = tuple(float(work / ring.mean) for work in ring.work)
        numbers = ", ".join(f"{one:.3g}" for one in over)
        said.append(
            f"{ring.order} on {ring.chips} chips: work over the mean {numbers}."
        )
        panels.append(framed(ring.order, said[-1], _panel(ring, over, float(most)),
                             WIDTH, _height(ring)))  # fmt: skip
    return Picture("Causal attention on a ring of chips", " ".join(said), tuple(panels))


def causal_steps(ring: CausalRing) -> Picture:
    """A panel for each step: what every chip computes in it, and how many chips work.

    Args:
        ring: a ring of 2 to 8 chips.

    Raises:
        ValueError: the ring has one chip, or more than eight.

    >>> from shardmath.training.causal_ring import CausalRing
    >>> causal_steps(CausalRing("contiguous", 2, 64)).desc
    'contiguous: in step 1, 2 of 2 chips have keys that their queries see; in step 2, \
1 of 2 chips have keys that their queries see.'
    """
    n = ring.chips
    if not 2 <= n <= 8:
        raise ValueError(f"a ring of {n} chips: must have 2 to 8")
    panels, said = [], []
    for step in range(n):
        work = sum(pairs > 0 for pairs in ring.step(step))
        said.append(
            f"in step {step + 1}, {work} of {n} chips have keys that their queries see"
        )
        parts = [
            written(LEFT, 18, f"step {step + 1}", bold=True),
            *square(ring, LEFT, TOP, SMALL, step),
            written(LEFT, TOP + SMALL + 20, f"{work} of {n} work"),
        ]
        size = SMALL + 2 * LEFT, TOP + SMALL + 28
        panels.append(framed(f"{ring.order}, step {step + 1}", said[-1], parts, *size))
    title = f"Ring attention on {n} chips, step by step"
    return Picture(title, f"{ring.order}: {'; '.join(said)}.", tuple(panels))


def _height(ring: CausalRing) -> float:
    return TOP + SIDE + 36 + ROW * ring.chips + 26


def _panel(ring: CausalRing, over: tuple[float, ...], most: float) -> list[str]:
    bars = TOP + SIDE + 34
    mean = LEFT + SIDE / most
    end = bars + ROW * ring.chips
    return [
        written(LEFT, 18, ring.order, bold=True),
        *square(ring, LEFT, TOP, SIDE),
        written(LEFT, bars - 10, "work of each chip", "math"),
        *loads(over, most, LEFT, bars, SIDE, ROW),
        line((mean, bars - 4), (mean, end), width=1, dashed=True),
        written(LEFT, end + 16, f"busiest / mean: {float(ring.imbalance):.3g}"),
    ]
