"""The first steps of a kernel on one clock, with copies above and math below."""

from collections.abc import Iterator

from ...base.units import positive_int, show
from ...hardware.blocks import BlockedKernel
from ...hardware.chips import Chip, require_chip
from ..picture import WIDEST, Picture, picture
from ..shapes import box, framed, line, written

LEFT, RIGHT = 62, WIDEST - 8
COPIES, MATH, HIGH = 44, 84, 26  # tops of the lanes, and their height


def kernel_lanes(kernel: BlockedKernel, chip: Chip, steps: int = 10) -> Picture:
    """Copies and math of the first steps. Each step takes as long as its longer part.

    Args:
        kernel: gives the blocks and the grid.
        chip: gives the rates, in bf16.
        steps: how many steps are drawn.

    Raises:
        ValueError: `steps` is not a whole number from 1, or `chip` is not a Chip.
    """
    (steps,) = positive_int(steps=steps)
    steps = min(steps, kernel.steps)
    rate, peak = require_chip(chip).hbm_bandwidth, chip.flops["bf16"]
    reads, writes = kernel.copied()
    arriving, leaving = [*reads[1:], 0.0], [0.0, *writes[:-1]]
    compute = kernel.step_flops / peak
    copies = [(new / rate, old / rate) for new, old in zip(arriving, leaving,
                                                            strict=True)]  # fmt: skip
    first = reads[0] / rate
    lengths = [max(compute, new + old) for new, old in copies[:steps]]
    late = sum(new + old > compute for new, old in copies[:steps])
    title = f"The first {steps} steps on {chip.name}"
    desc = (
        f"Before the first step, its blocks arrive in {show(first, 's')}. The math of "
        f"a step takes {show(compute, 's')}. In {late} of the {steps} steps shown, the "
        f"copies take longer, up to {show(max(map(sum, copies[:steps])), 's')}."
    )
    unit = (RIGHT - LEFT) / (first + sum(lengths))
    parts = [written(8, 18, title, bold=True)]
    parts += _lane(first, copies[:steps], lengths, compute, unit)
    parts += [
        written(8, COPIES + 18, "copies", "HBM"),
        written(8, MATH + 18, "math", "math"),
        box(8, 128, 22, 142, "HBM", fill=0.35, edge=0, round=0),
        written(28, 140, "blocks of X and Y arrive"),
        box(228, 128, 242, 142, "HBM", fill=0.95, edge=0, round=0),
        written(248, 140, "a block of Z leaves"),
    ]
    return picture(title, desc, framed(title, desc, parts, WIDEST, 152))


def _lane(
    first: float,
    copies: list[tuple[float, float]],
    lengths: list[float],
    compute: float,
    unit: float,
) -> Iterator[str]:
    """The boxes of all steps, and a thin line where each begins."""
    x = LEFT + first * unit
    yield box(LEFT, COPIES, x, COPIES + HIGH, "HBM", fill=0.35, edge=0, round=0)
    for (new, old), length in zip(copies, lengths, strict=True):
        yield line((x, COPIES - 6), (x, MATH + HIGH + 6), width=1, opacity=0.3)
        middle = x + new * unit
        for ends, fill in (((x, middle), 0.35), ((middle, middle + old * unit), 0.95)):
            if ends[1] > ends[0]:
                yield box(ends[0], COPIES, ends[1], COPIES + HIGH, "HBM", fill=fill,
                          edge=0, round=0)  # fmt: skip
        yield box(x, MATH, x + compute * unit, MATH + HIGH, "math", fill=0.6, edge=0,
                  round=0)  # fmt: skip
        x += length * unit
