"""A GPU as a picture: host and neighbours, HBM, L2, and one SM with its parts."""

from collections.abc import Iterator

from ...base.units import show
from ...hardware.chips import Chip
from .. import shapes
from ..picture import Picture, picture
from . import blocks

SUBPARTITIONS = 4  # of an SM, from the V100 on
GAP = 6  # between two of them


def gpu_parts(gpu: Chip) -> Picture:
    """The parts of one GPU, with the rates between them.

    Numbers of an SM are for one SM. Numbers of a subpartition are for one of the four
    in an SM.

    Raises:
        ValueError: `gpu` is not an NVIDIA GPU, or no source states one of its parts.

    >>> from shardmath.hardware.chips import H100
    >>> print(gpu_parts(H100).desc[:51])
    Peak 989 TFLOPs/s in bf16. HBM, 80 GiB, 3.35 TB/s t
    """
    if not isinstance(gpu, Chip) or gpu.vendor != "NVIDIA":
        raise ValueError(f"gpu = {gpu!r}: must be an NVIDIA GPU")
    title, said = f"Parts of the {gpu.name}", _said(gpu)
    desc = (
        f"Peak {blocks.peak(gpu)}. {said['HBM']}, {said['HBM rate']} to and from the "
        f"L2. {said['L2']}, {said['L2 rate']} read by them together. "
        f"{gpu.cores} SMs, {blocks.peak(gpu, gpu.cores)} each; in each "
        f"{said['L1']}, {said['L1 rate']}, over {SUBPARTITIONS} subpartitions with a "
        f"scheduler, {' '.join(said['registers'])}, {said['lanes']} and "
        f"{' '.join(said['matrix'])}. {blocks.wires(gpu, 'NVLinks')} "
        f"{blocks.NOT_TO_SCALE}"
    )
    svg = shapes.framed(title, desc, _drawn(gpu, said), blocks.WIDTH, 498)
    return picture(title, desc, svg)


def _said(gpu: Chip) -> dict:
    """What stands in the boxes and beside the arrows."""
    each = gpu.tensor_cores // gpu.cores // SUBPARTITIONS
    registers = gpu.registers_bytes / gpu.cores / SUBPARTITIONS
    level = "l1_bytes" if "l1_bytes" in gpu.facts else "onchip_bytes"
    what = "L1 with SMEM" if level == "l1_bytes" else "SMEM"
    return {
        "HBM": f"HBM, {show(gpu.hbm_bytes, 'capacity')}",
        "HBM rate": blocks.rate(gpu, "hbm_bandwidth"),
        "L2": f"L2, shared by all SMs, {show(gpu.l2_bytes, 'capacity')}",
        "L2 rate": blocks.rate(gpu, "l2_bandwidth"),
        "L1": blocks.capacity(gpu, level, what, gpu.cores),
        "L1 rate": blocks.rate(gpu, "onchip_bandwidth", gpu.cores),
        "registers": ("registers,", show(registers, "capacity")),
        "lanes": f"{gpu.lanes // SUBPARTITIONS} lanes",
        "matrix": (f"{each} Tensor", "Cores" if each > 1 else "Core"),
    }


def _drawn(gpu: Chip, said: dict) -> Iterator[str]:
    right = blocks.WIDTH - 16
    yield from blocks.outside(gpu, "NVLinks", "other GPUs", 98)
    yield shapes.box(6, 98, blocks.WIDTH - 6, 470, fill=0)
    yield shapes.written(16, 118, f"{gpu.name}: {blocks.peak(gpu)}", bold=True)
    yield from blocks.named(16, 126, right, [said["HBM"]], "HBM")
    yield from blocks.feed(152, 182, said["HBM rate"], "HBM")
    yield from blocks.named(16, 182, right, [said["L2"]])
    yield from blocks.feed(208, 238, said["L2 rate"])
    yield shapes.box(16, 238, right, 460, fill=0)
    one = f"one of {gpu.cores} SMs: {blocks.peak(gpu, gpu.cores)}"
    yield shapes.written(24, 257, one)
    yield from blocks.named(24, 264, right - 8, [said["L1"]])
    yield from blocks.feed(290, 318, said["L1 rate"])
    width = (right - 8 - 24 - GAP * (SUBPARTITIONS - 1)) / SUBPARTITIONS
    for n in range(SUBPARTITIONS):
        yield from _subpartition(24 + n * (width + GAP), width, said)
    yield shapes.written(16, 490, blocks.NOT_TO_SCALE)


def _subpartition(left: float, width: float, said: dict) -> Iterator[str]:
    """One of the four, from its scheduler down to its Tensor Core."""
    yield shapes.box(left, 318, left + width, 452, fill=0)
    rows = (
        (["scheduler"], "ink"),
        (said["registers"], "ink"),
        ([said["lanes"]], "math"),
        (said["matrix"], "math"),
    )
    top = 322.0
    for words, colour in rows:
        high = 18 * len(words) + 2
        yield shapes.box(left + 4, top, left + width - 4, top + high, colour)
        for n, text in enumerate(words):
            at = top + 1 + 18 * n
            yield shapes.label(left + 4, at, left + width - 4, at + 18, text)
        top += high + 3
