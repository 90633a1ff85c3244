"""Two times and their bound: how long must this take, at the least and at the most?

A roofline knows a machine by its rates. Every operation needs so many FLOPs and so
many bytes; each resource takes amount / rate seconds for its share. If all overlap
perfectly, the slowest sets the time; if none overlaps, the times add up:

    max(T_math, T_HBM, …)  ≤  T  ≤  T_math + T_HBM + …
"""

import math

from .chips import Chip
from .estimate import Estimate, Leg, Roof
from .units import bytes_per_value, positive


def roof(chip: Chip, precision: str = "bf16") -> Roof:
    """The roof of one chip over its HBM, at the dense peak of `precision`."""
    return Roof(chip.name, chip.flops[precision], chip.hbm_bandwidth)


def matmul(
    B: float,
    D: float,
    F: float,
    chip: Chip,
    precision: str = "bf16",
    weights: str | None = None,
    activations: str | None = None,
) -> Estimate:
    """X[B, D] · W[D, F] -> Y[B, F] on one chip, every array crossing HBM once.

        T_math = 2·B·D·F / C        T_HBM = (a·B·D + w·D·F + a·B·F) / bandwidth

    Args:
        B, D, F: tokens, contracted size, output size.
        chip: a record from `chips`.
        precision: of the multiplication; sets C, the dense peak in FLOPs/s.
        weights: storage of W (w bytes per value); `precision` if not given.
        activations: storage of X and Y (a bytes per value); `precision` if not given.

    Returns:
        An Estimate with a "math" and an "HBM" leg.

    Assumes:
        X and W are read once and Y is written once, so on-chip memory holds what is
        reused; `tiled_matmul` drops this. Conversion between formats is free.

    Raises:
        ValueError: a size is not a finite number above 0, the chip has no published
            peak for `precision`, or a format is unknown.

    Source:
        Williams, Waterman, Patterson, "Roofline" (CACM 2009), applied to a matmul.

    >>> from shardmath.chips import TPU_V5E
    >>> matmul(16, 8192, 8192, TPU_V5E).bound
    'memory-bound'
    """
    positive(B=B, D=D, F=F)
    w = bytes_per_value(weights or precision)
    a = bytes_per_value(activations or precision)
    nbytes = a * B * D + w * D * F + a * B * F
    return Estimate(
        f"[{B:g}, {D:g}] · [{D:g}, {F:g}] in {precision} on {chip.name}",
        (
            Leg("math", 2 * B * D * F, chip.flops[precision]),
            Leg("HBM", nbytes, chip.hbm_bandwidth),
        ),
    )


def critical_batch(
    chip: Chip,
    D: float = math.inf,
    F: float = math.inf,
    precision: str = "bf16",
    weights: str | None = None,
    activations: str | None = None,
) -> float:
    """B* where T_math = T_HBM for X[B, D] · W[D, F]; below, it is memory-bound.

        B* = I·w·D·F / (2·D·F − I·a·(D + F)),   I = C / bandwidth

    As D and F grow, B* falls to the rule of thumb I·w / 2.

    Args:
        chip, precision, weights, activations: as for `matmul`.
        D, F: sizes of W; infinite (the default) gives the rule of thumb.

    Returns:
        Tokens, not rounded. `inf` where no batch makes this matmul compute-bound
        (D·F / (D + F) ≤ I·a / 2: W is too small).

    >>> from shardmath.chips import TPU_V5E
    >>> bool(critical_batch(TPU_V5E) < critical_batch(TPU_V5E, 4096, 4096))
    True
    """
    for name, size in {"D": D, "F": F}.items():
        if size != math.inf:
            positive(**{name: size})
    w = bytes_per_value(weights or precision)
    a = bytes_per_value(activations or precision)
    per_flop = chip.intensity(precision)
    room = 2 - per_flop * a * (1 / D + 1 / F)  # numerator and denominator over D·F
    return per_flop * w / room if room > 0 else math.inf


def elementwise(
    n: float,
    chip: Chip,
    flops: float = 1,
    reads: float = 1,
    writes: float = 1,
    precision: str = "bf16",
) -> Estimate:
    """y = f(x, …) on n values: `flops`·n FLOPs, (reads + writes)·b·n bytes.

    Args:
        n: number of values of one array.
        chip: a record from `chips`.
        flops: FLOPs per value.
        reads, writes: arrays read and written, each of n values of `precision`.

    Returns:
        An Estimate. It grants the operation the matmul peak, which no vector unit
        reaches, so the math time is far too short and "memory-bound" is safe.

    >>> from shardmath.chips import TPU_V5E
    >>> elementwise(1e9, TPU_V5E, reads=2).bound
    'memory-bound'
    """
    positive(n=n, flops=flops, reads=reads, writes=writes)
    nbytes = (reads + writes) * bytes_per_value(precision) * n
    return Estimate(
        f"elementwise on {n:g} values of {precision} on {chip.name}",
        (
            Leg("math", flops * n, chip.flops[precision]),
            Leg("HBM", nbytes, chip.hbm_bandwidth),
        ),
    )


def tile_traffic(B: float, D: float, F: float, tile: tuple[float, float]) -> float:
    """Values moved for X[B, D] · W[D, F] when tiles [b, f] of Y stay in fast memory.

        values = B·D·⌈F/f⌉ + D·F·⌈B/b⌉ + B·F

    Each tile of Y streams b rows of X and f columns of W past it, so X is read once
    per column of tiles, W once per row of tiles, and Y is written once.

    >>> tile_traffic(256, 256, 256, (256, 256)) == 3 * 256 * 256
    True
    """
    b, f = tile
    positive(B=B, D=D, F=F, b=b, f=f)
    return B * D * math.ceil(F / f) + D * F * math.ceil(B / b) + B * F


def tiled_matmul(
    B: float,
    D: float,
    F: float,
    chip: Chip,
    tile: tuple[float, float],
    inner: tuple[float, float] | None = None,
    precision: str = "bf16",
) -> Estimate:
    """X[B, D] · W[D, F] in tiles: `tile` sets HBM traffic, `inner` on-chip traffic.

    Args:
        B, D, F, chip, precision: as for `matmul`.
        tile: rows and columns of Y that stay in on-chip memory while D streams past.
        inner: rows and columns that stay in registers or in the matrix unit; adds an
            "on-chip" leg at `chip.onchip_bandwidth`.

    Returns:
        An Estimate; with one tile as large as Y it equals `matmul`.

    Raises:
        ValueError: as `matmul`; also where the on-chip bandwidth is not published.
    """
    size = bytes_per_value(precision)
    hbm = Leg("HBM", size * tile_traffic(B, D, F, tile), chip.hbm_bandwidth)
    legs = [Leg("math", 2 * B * D * F, chip.flops[precision]), hbm]
    if inner is not None:
        moved = size * tile_traffic(B, D, F, inner)
        legs.append(Leg("on-chip", moved, chip.onchip_bandwidth))
    return Estimate(
        f"[{B:g}, {D:g}] · [{D:g}, {F:g}] in tiles of {tile[0]:g} × {tile[1]:g} "
        f"in {precision} on {chip.name}",
        tuple(legs),
    )


def split_matmul(
    B: float,
    D: float,
    F: float,
    chip: Chip,
    bandwidth: float | None = None,
    precision: str = "bf16",
) -> Estimate:
    """X[B, D_X] · W[D_X, F] -> Y[B, F] over two chips: half the math, one exchange.

        T_math = B·D·F / C        T_network = b·B·F / bandwidth

    Each chip multiplies half of D and holds partial sums of all of Y. Adding them up
    on both is an AllReduce: each sends half its partial sums, adds, and sends the
    other half of the result, b·B·F bytes in all, while it receives as many.

    Args:
        B, D, F, chip, precision: as for `matmul`.
        bandwidth: one-way bytes/s between the two; one link of the chip if not given.

    Returns:
        An Estimate with "math", "HBM" and "network" legs, all for one chip.
    """
    one = matmul(B, D / 2, F, chip, precision)
    exchange = bytes_per_value(precision) * B * F
    rate = chip.link_bandwidth if bandwidth is None else bandwidth
    positive(bandwidth=rate)
    return Estimate(
        f"[{B:g}, {D:g}] · [{D:g}, {F:g}] in {precision} over two {chip.name}",
        (*one.legs, Leg("network", exchange, rate)),
    )
