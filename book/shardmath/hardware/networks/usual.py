"""The usual machine with a given number of chips."""

from ...base.units import positive_int, short_repr
from ..chips import Chip, require_chip
from .records import GRIDS

SLICE = 4096  # chips of the largest cube that fits into the pods of v4, v5p and 7x
RACK = 64  # GPUs of an NVL72 that a mesh of powers of two can use


def usual(chip: Chip, chips: int) -> str:
    """The name of a machine of `chips` chips, a power of two; see `networks.network`.

    TPUs are in one slice that is as close to a cube or square as possible, or in
    several slices if a pod has too few chips. GPUs are in nodes as large as an NVLink
    domain, but a rack of 72 counts as 64.

    >>> from shardmath.hardware.chips import GB200, H100, TPU_V5E, TPU_V5P
    >>> usual(TPU_V5P, 512), usual(TPU_V5P, 8192), usual(TPU_V5E, 128)
    ('v5p:8x8x8', 'v5p:16x16x16*2', 'v5e:8x16')
    >>> usual(H100, 512), usual(GB200, 128), usual(GB200, 16)
    ('h100:64x8', 'gb200:2x64', 'gb200:16')

    Raises:
        ValueError: not a Chip; or not a power of two, and the message names those next
            to it.
    """
    (chips,), domain = positive_int(chips=chips), int(require_chip(chip).domain)
    below = 2 ** (chips.bit_length() - 1)
    if chips != below:
        raise ValueError(
            f"chips = {short_repr(chips)}: must be a power of two, such as "
            f"{short_repr(below)} or {short_repr(2 * below)}"
        )
    if chip.id not in GRIDS:
        node = min(chips, RACK if domain >= RACK else domain)
        nodes = chips // node
        return f"{chip.id}:{nodes}x{node}" if nodes > 1 else f"{chip.id}:{node}"
    sides = GRIDS[chip.id]["sides"].value
    most = min(domain, SLICE)
    one, name = min(chips, most), chip.id.removeprefix("tpu_")
    power = one.bit_length() - 1
    shape = [2 ** ((power + n) // sides) for n in range(sides)]
    slices = f"*{chips // one}" if chips > one else ""
    return f"{'tpu' * (name == '7x')}{name}:{'x'.join(map(str, shape))}{slices}"
