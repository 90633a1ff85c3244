"""A TPU as a picture: host and neighbours, HBM, and a TensorCore with its units.

The units of a TensorCore are from Google's "Cloud TPU system architecture" and chapter
2 of "How to Scale Your Model". Every number comes from the chip's record.
"""

from collections.abc import Iterator

from ...base.units import show
from ...hardware.chips import Chip
from .. import shapes
from ..picture import Picture, picture
from . import blocks


def tpu_parts(tpu: Chip) -> Picture:
    """The parts of one TPU, with the rates between them.

    Numbers inside a TensorCore are for one TensorCore. If no source states a rate, the
    picture says so.

    Raises:
        ValueError: `tpu` isn't a TPU, or no source states its matrix units or its peak.

    >>> from shardmath.hardware.chips import TPU_V5E
    >>> print(tpu_parts(TPU_V5E).desc[:51])
    Peak 197 TFLOPs/s in bf16. HBM, 16 GiB, 819 GB/s to
    """
    if not isinstance(tpu, Chip) or tpu.vendor != "Google":
        raise ValueError(f"tpu = {tpu!r}: must be a TPU")
    title, said = f"Parts of the {tpu.name}", _said(tpu)
    desc = (
        f"Peak {blocks.peak(tpu)}. {said['HBM']}, {said['HBM rate']} to and from VMEM. "
        f"In {said['core']}: {said['VMEM']}; from it to the units "
        f"{said['VMEM rate']}; {said['registers']}; {', '.join(said['MXU'])}; "
        f"{', '.join(said['VPU'])}; an XLU and a scalar unit. "
        f"{blocks.wires(tpu, 'ICI links')} {blocks.NOT_TO_SCALE}"
    )
    svg = shapes.framed(title, desc, _drawn(tpu, said), blocks.WIDTH, 458)
    return picture(title, desc, svg)


def _said(tpu: Chip) -> dict:
    """What stands in the boxes and beside the arrows."""
    cores = tpu.cores
    each = tpu.mxus // cores
    vector = ["VPU"]
    if "lanes" in tpu.facts:
        vector.append(f"{tpu.lanes:,} units")
    if {"lanes", "clock"} <= set(tpu.facts):
        vector.append(show(tpu.vector_flops / cores, "OPs/s"))
    return {
        "HBM": f"HBM, {show(tpu.hbm_bytes, 'capacity')}",
        "HBM rate": blocks.rate(tpu, "hbm_bandwidth"),
        "core": f"one of {cores} TensorCores" if cores > 1 else "its TensorCore",
        "VMEM": blocks.capacity(tpu, "onchip_bytes", "VMEM", cores),
        "VMEM rate": blocks.rate(tpu, "onchip_bandwidth", cores),
        "registers": blocks.capacity(
            tpu, "registers_bytes", "vector registers (VREGs)", cores
        ),
        "MXU": [
            f"{each} MXU{'s' * (each > 1)}",
            f"{tpu.mxu_size} × {tpu.mxu_size} cells",
            show(tpu.flops["bf16"] / cores, "FLOPs/s"),
        ],
        "VPU": vector,
    }


def _drawn(tpu: Chip, said: dict) -> Iterator[str]:
    right = blocks.WIDTH - 16
    yield from blocks.outside(tpu, "ICI links", "neighbouring TPUs", 98)
    yield shapes.box(6, 98, blocks.WIDTH - 6, 430, fill=0)
    yield shapes.written(16, 118, f"{tpu.name}: {blocks.peak(tpu)}", bold=True)
    yield from blocks.named(16, 126, right, [said["HBM"]], "HBM")
    yield from blocks.feed(152, 208, said["HBM rate"], "HBM")
    yield shapes.box(16, 182, right, 420, fill=0)
    yield shapes.written(24, 201, said["core"])
    yield from blocks.named(24, 208, right - 8, [said["VMEM"]])
    yield from blocks.feed(234, 264, said["VMEM rate"])
    yield from blocks.named(24, 264, right - 8, [said["registers"]])
    for left, end, words, colour in (
        (24, 172, said["MXU"], "math"),
        (180, 310, said["VPU"], "math"),
        (318, right - 8, ["XLU", "between", "lanes"], "ink"),
    ):
        middle = (left + end) / 2
        yield shapes.line((middle, 290), (middle, 316), heads="both")
        yield shapes.box(left, 316, end, 378, colour)
        for n, text in enumerate(words):
            at = 347 - 9 * len(words) + 18 * n
            yield shapes.label(left, at, end, at + 18, text)
    scalar = ["scalar unit: gives orders, starts the copies"]
    yield from blocks.named(24, 386, right - 8, scalar)
    yield shapes.written(16, 450, blocks.NOT_TO_SCALE)
