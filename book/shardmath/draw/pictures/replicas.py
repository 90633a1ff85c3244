"""Data parallelism: the same weights on every chip, different sequences, one sum."""

from collections.abc import Iterator

from ...base.units import show
from ...training import Step
from ..labels import text_width
from ..picture import WIDEST, Picture, picture
from ..shapes import box, framed, label, line, written

EDGE, GAP, HEAD = 6, 12, 46
ROW, PITCH = 26, 34  # height of a box with a line of words, and to the next
SHOWN = 4  # chips that are drawn: the first three and the last
SAME, SUM = "hue7", "hue1"


def replicas(step: Step) -> Picture:
    """The chips of a data-parallel step, from weights to the sum of gradients.

    Raises:
        ValueError: the strategy shards weights, gradients or optimizer state.

    >>> from shardmath.training import data, step
    >>> from shardmath.transformer import LLAMA_3_8B
    >>> one = step(data("X"), LLAMA_3_8B, {"X": 8}, 16, 4096, attention="causal")
    >>> replicas(one).desc[:52]
    '8 chips, each with all weights of Llama 3.1 8B, 15 G'
    """
    at = step.strategy
    if at.weights or at.gradients or at.state:
        raise ValueError(f"{at.name}: must keep all weights on every chip, as data(…)")
    chips = [*range(min(step.chips, SHOWN - 1)), step.chips - 1]
    chips = list(dict.fromkeys(chips))
    each = step.seqs // step.chips
    held = step.memory.parts
    weights, sent = show(held["weights"], "capacity"), show(step.sent, "bytes")
    gradients = show(held["gradients"], "capacity")
    wide = (WIDEST - 2 * EDGE - GAP * (SHOWN - 1)) / SHOWN
    spots = {chip: EDGE + n * (wide + GAP) for n, chip in enumerate(chips)}
    bar = HEAD + 3 * PITCH + 18
    end = bar + ROW + 24
    parts = [written(EDGE, 18, f"{step.model.name} on {step.chips:,} chips", bold=True)]
    for n, (chip, left) in enumerate(spots.items()):
        parts += _chip(left, wide, bar, end, chip, _range(chip, each), f"hue{n + 2}")
    if step.chips > SHOWN:
        parts.append(written(max(spots.values()) - GAP / 2, HEAD - 8, "…",
                             anchor="middle"))  # fmt: skip
    words = f"AllReduce over {' '.join(at.axes)}: each sends {sent}"
    parts.append(box(EDGE, bar, WIDEST - EDGE, bar + ROW, "network", fill=0.2))
    parts.append(label(EDGE, bar, WIDEST - EDGE, bar + ROW, words))
    foot = f"{weights} of weights and {gradients} of gradients on every chip"
    parts.append(written(EDGE, end + ROW + 22, foot))
    numbered = ", ".join(f"chip {chip}" for chip in chips)
    seqs = "sequence" if each == 1 else "sequences"
    desc = (
        f"{step.chips:,} chips, each with all weights of {step.model.name}, {weights}, "
        f"and {each:,} {seqs} of its own; drawn are {numbered}, with sequences "
        f"{', '.join(_range(chip, each) for chip in chips)}. Each makes gradients, "
        f"{gradients}, from its sequences. An AllReduce over {' '.join(at.axes)}, in "
        f"which each sends {sent}, leaves their sum on all."
    )
    title = f"{step.model.name}, data parallelism"
    svg = framed(title, desc, parts, WIDEST, end + ROW + 30)
    return picture(title, desc, svg)


def _range(chip: int, each: int) -> str:
    first = chip * each
    return f"{first:,}" if each == 1 else f"{first:,}–{first + each - 1:,}"


def _chip(
    left: float, wide: float, bar: float, end: float, chip: int, seqs: str, colour: str
) -> Iterator[str]:
    """A column: weights, sequences and gradients; arrows to the sum and out of it."""
    right, middle = left + wide, left + wide / 2
    yield written(middle, HEAD - 8, f"chip {chip:,}", anchor="middle")
    named = f"seqs {seqs}" if text_width(f"seqs {seqs}") < wide - 4 else seqs
    for n, (words, paint, fill) in enumerate(
        (("weights", SAME, 0.3), (named, colour, 0.3), ("gradients", colour, 0.12))
    ):
        top = HEAD + n * PITCH
        key = f"{('weights', 'sequences', 'gradients')[n]} {chip}"
        yield box(left, top, right, top + ROW, paint, fill=fill, key=key)
        yield label(left, top, right, top + ROW, words)
    low = HEAD + 2 * PITCH + ROW
    yield line((middle, low), (middle, bar), colour="network", heads="end")
    yield line((middle, bar + ROW), (middle, end), colour="network", heads="end")
    yield box(left, end, right, end + ROW, SUM, fill=0.3, key=f"sum {chip}")
    yield label(left, end, right, end + ROW, "their sum")
