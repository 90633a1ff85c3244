"""Rooflines: a lower and an upper bound on the time of an operation.

A roofline describes a machine by its rates. Every operation needs some FLOPs and some
bytes, and each resource takes amount / rate seconds for its part. If all resources
overlap perfectly, the slowest sets the time; if none overlap, the times add up:

    max(T_math, T_HBM, …)  ≤  T  ≤  T_math + T_HBM + …
"""

import contextlib
import math
from collections.abc import Mapping

from ..base.estimate import Estimate, Leg, Roof
from ..base.units import bytes_per_value, flags, number, positive, short_repr, show
from .chips import Chip, require_chip


def roof(chip: Chip, precision: str = "bf16") -> Roof:
    """The roof of one chip over its HBM, at the dense peak of `precision`."""
    return Roof(require_chip(chip).name, chip.flops[precision], chip.hbm_bandwidth)


def vector_roof(chip: Chip) -> Roof:
    """The second, lower roof over the same HBM: that of the vector units.

    Raises:
        Unpublished: a ValueError; the chip's cores, lanes or clock are not published.

    Source:
        "How to Scale Your Model" states a critical intensity near 3 for the VPU of a
        TPU v5p, counting one of its two cores; with both it is 5.2.

    >>> from shardmath.hardware.chips import TPU_V5P
    >>> round(vector_roof(TPU_V5P).ridge, 1), round(roof(TPU_V5P).ridge)
    (5.2, 166)
    """
    name = f"{require_chip(chip).name}, vector units"
    return Roof(name, chip.vector_flops, chip.hbm_bandwidth)


def read(nbytes: float, chip: Chip, bandwidth: float | None = None) -> Estimate:
    """Reading `nbytes` once: nbytes / bandwidth.

    Args:
        nbytes: bytes of all arrays that are read.
        chip: a record from `chips`.
        bandwidth: bytes/s of the memory or link that the arrays are read from; by
            default the chip's HBM. Use `chip.host_bandwidth` for arrays in host memory.

    Returns:
        An Estimate with one "HBM" leg, or one "network" leg for another bandwidth.

    >>> from shardmath.hardware.chips import TPU_V4
    >>> print(read(400e9 / 32, TPU_V4))  # 200 billion parameters in bf16 on 32 chips
    12.5 GB to TPU v4: 10.4 ms to 10.4 ms, memory-bound (HBM 10.4 ms)
    """
    chip, (nbytes,) = require_chip(chip), positive(nbytes=nbytes)
    leg = (
        Leg("HBM", nbytes, chip.hbm_bandwidth)
        if bandwidth is None
        else Leg("network", nbytes, *positive(bandwidth=bandwidth))
    )
    return Estimate(f"{show(nbytes, 'bytes')} to {chip.name}", (leg,))


def matmul(
    B: float,
    D: float,
    F: float,
    chip: Chip,
    precision: str = "bf16",
    weights: str | None = None,
    activations: str | None = None,
) -> Estimate:
    """X[B, D] · Y[D, F] -> Z[B, F] on one chip, every array crossing HBM once.

        T_math = 2·B·D·F / C        T_HBM = (a·B·D + w·D·F + a·B·F) / bandwidth

    Args:
        B, D, F: tokens, contracted size, output size.
        chip: a record from `chips`.
        precision: the format of the product; sets C, the dense peak in FLOPs/s.
        weights: the format of Y (w bytes per value); `precision` if not given.
        activations: the format of X and Z (a bytes per value); `precision` if not
            given.

    Returns:
        An Estimate with a "math" and an "HBM" leg.

    Assumes:
        X and Y are read once and Z is written once, so on-chip memory holds all reused
        values; `tiled_matmul` does not assume this. Format conversions are free.

    Raises:
        ValueError: a size is not a finite number above 0, the chip has no published
            peak for `precision`, or a format is unknown.

    Source:
        Williams, Waterman, Patterson, "Roofline" (CACM 2009), applied to a matmul.

    >>> from shardmath.hardware.chips import TPU_V5E
    >>> matmul(16, 8192, 8192, TPU_V5E).bound
    'memory-bound'
    """
    B, D, F = positive(B=B, D=D, F=F)
    w = bytes_per_value(precision if weights is None else weights)
    a = bytes_per_value(precision if activations is None else activations)
    nbytes = a * B * D + w * D * F + a * B * F
    peak = require_chip(chip).flops[precision]
    return Estimate(
        f"{_shapes(B, D, F)} in {precision} on {chip.name}",
        (
            Leg("math", 2 * B * D * F, peak),
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
    bandwidth: float | None = None,
) -> float:
    """The batch B* at which math and bytes of X[B, D] · Y[D, F] take equally long.

        B* = I·w·D·F / (2·D·F − I·a·(D + F)),   I = C / bandwidth

    C is the peak, w and a are the bytes of a weight and of an activation. Below B* the
    bytes take longer. As D and F grow, B* falls to the rule of thumb I·w / 2.

    Args:
        chip, precision, weights, activations: as for `matmul`.
        D, F: sizes of Y; infinite (the default) gives the rule of thumb.
        bandwidth: bytes/s of the memory or link that the arrays cross; by default the
            chip's HBM. Use `chip.host_bandwidth` for weights in host memory.

    Returns:
        Tokens, not rounded. `inf` if Y is so small that no batch makes this matmul
        compute-bound: D·F / (D + F) ≤ I·a / 2.

    >>> from shardmath.hardware.chips import TPU_V5E
    >>> bool(critical_batch(TPU_V5E) < critical_batch(TPU_V5E, 4096, 4096))
    True
    >>> round(critical_batch(TPU_V5E, bandwidth=TPU_V5E.host_bandwidth))
    12312
    """
    chip, D, F = require_chip(chip), _size("D", D), _size("F", F)
    w = bytes_per_value(precision if weights is None else weights)
    a = bytes_per_value(precision if activations is None else activations)
    rate = chip.hbm_bandwidth if bandwidth is None else bandwidth
    per_flop = chip.flops[precision] / positive(bandwidth=rate)[0]
    room = 2 - per_flop * a * (1 / D + 1 / F)  # numerator and denominator over D·F
    return per_flop * w / room if room > 0 else math.inf


def _shapes(B: float, D: float, F: float) -> str:
    """The two arrays of a matmul, with their sizes in full.

    >>> _shapes(2**20, 8192.0, 0.5)
    '[1048576, 8192] · [8192, 0.5]'
    """
    b, d, f = (f"{n:.0f}" if n == n // 1 else f"{n:g}" for n in (B, D, F))
    return f"[{b}, {d}] · [{d}, {f}]"


def _size(name: str, size: float) -> float:
    """A size that may be infinite."""
    found = number(name, size)
    return math.inf if found == math.inf else positive(**{name: found})[0]


def elementwise(
    n: float,
    chip: Chip,
    flops: float = 1,
    reads: float = 1,
    writes: float = 1,
    precision: str = "bf16",
    rate: float | None = None,
) -> Estimate:
    """y = f(x, …) on n values: `flops`·n FLOPs, (reads + writes)·b·n bytes.

    Args:
        n: number of values of one array.
        chip: a record from `chips`.
        flops: FLOPs per value; an exponential or a GELU takes 10 or more.
        reads, writes: how many arrays are read and written, each of n values of
            `precision`, with b bytes per value.
        rate: FLOPs/s of the units used; `chip.vector_flops` if not given.

    Returns:
        An Estimate with a "math" leg, on the vector units, and an "HBM" leg.

    Assumes:
        Each FLOP takes one clock cycle of one lane, in fp32. GPUs are faster with
        multiply-adds, and with narrower values, which a lane takes two at a time.

    Raises:
        ValueError: as for `matmul`; Unpublished if no `rate` is given and the chip's
            vector units are not published.

    >>> from shardmath.hardware.chips import TPU_V5E
    >>> elementwise(1e9, TPU_V5E, reads=2).bound
    'memory-bound'
    >>> elementwise(1e9, TPU_V5E, flops=60).bound
    'compute-bound'
    """
    n, flops, reads, writes = positive(n=n, flops=flops, reads=reads, writes=writes)
    chip = require_chip(chip)
    nbytes = (reads + writes) * bytes_per_value(precision) * n
    peak = chip.vector_flops if rate is None else positive(rate=rate)[0]
    return Estimate(
        f"elementwise on {n:g} values of {precision} on {chip.name}",
        (Leg("math", flops * n, peak), Leg("HBM", nbytes, chip.hbm_bandwidth)),
    )


def stationary_intensity(
    side: float, activations: str = "bf16", sums: str = "fp32"
) -> float:
    """FLOPs per byte of a matrix unit that keeps side × side weights: 2·side/(a + 2·p).

    For 2·side² FLOPs, each token reads `side` activations of a bytes each, and reads
    and writes `side` sums of p bytes each. If the unit keeps the sums instead,
    activations and weights are read, and the intensity is side / a.

    Args:
        side: the side of the block of weights that the unit keeps.
        activations, sums: their formats, which set a and p.

    >>> stationary_intensity(128), stationary_intensity(128, sums="bf16")
    (25.6, 42.666666666666664)
    """
    (side,) = positive(side=side)
    return 2 * side / (bytes_per_value(activations) + 2 * bytes_per_value(sums))


def tile_traffic(B: float, D: float, F: float, tile: tuple[float, float]) -> float:
    """Values moved for X[B, D] · Y[D, F] when tiles [b, f] of Z stay in fast memory.

        values = B·D·⌈F/f⌉ + D·F·⌈B/b⌉ + B·F

    Each tile of Z needs b rows of X and f columns of Y, so X is read once per column of
    tiles, Y once per row of tiles, and Z is written once.

    Raises:
        ValueError: a size that is not a finite number above 0, a tile that is not a
            pair of sizes from 1, or more traffic than a float can hold.

    >>> tile_traffic(256, 256, 256, (256, 256)) == 3 * 256 * 256
    True
    """
    b, f = _sides("tile", tile)
    B, D, F = positive(B=B, D=D, F=F)
    with contextlib.suppress(OverflowError):
        moved = B * D * math.ceil(F / f) + D * F * math.ceil(B / b) + B * F
        if math.isfinite(moved):
            return moved
    raise ValueError(
        f"B = {short_repr(B)}, D = {short_repr(D)}, F = {short_repr(F)}: the values "
        "moved must be no more than a float can hold"
    )


def _sides(name: str, tile: object) -> tuple[float, float]:
    """Rows and columns of a tile; raises if either is below 1."""
    pair = hasattr(tile, "__getitem__") and hasattr(tile, "__len__")  # NumPy's too
    pair = pair and getattr(tile, "shape", None) != ()  # a scalar has no len()
    if not pair or isinstance(tile, str | bytes | Mapping) or len(tile) != 2:
        raise ValueError(
            f"{name} = {short_repr(tile)}: must be a pair, (rows, columns)"
        )
    b, f = positive(b=tile[0], f=tile[1])
    if min(b, f) < 1:
        raise ValueError(f"{name} = {short_repr(tile)}: must be 1 × 1 or larger")
    return b, f


def tiled_matmul(
    B: float,
    D: float,
    F: float,
    chip: Chip,
    tile: tuple[float, float],
    inner: tuple[float, float] | None = None,
    precision: str = "bf16",
) -> Estimate:
    """X[B, D] · Y[D, F] in tiles: `tile` sets HBM traffic, `inner` on-chip traffic.

    Args:
        B, D, F, chip, precision: as for `matmul`.
        tile: rows and columns of Z that stay in on-chip memory for the sum over D.
        inner: rows and columns that stay in registers or in the matrix unit; adds an
            "on-chip" leg at `chip.onchip_bandwidth`.

    Returns:
        An Estimate, which equals that of `matmul` if one tile is as large as Z.

    Raises:
        ValueError: as for `matmul` and `tile_traffic`, or with `inner` if the on-chip
            bandwidth is not published.
    """
    B, D, F = positive(B=B, D=D, F=F)
    size, tile = bytes_per_value(precision), _sides("tile", tile)
    moved = size * tile_traffic(B, D, F, tile)
    hbm = Leg("HBM", moved, require_chip(chip).hbm_bandwidth)
    legs = [Leg("math", 2 * B * D * F, chip.flops[precision]), hbm]
    if inner is not None:
        moved = size * tile_traffic(B, D, F, _sides("inner", inner))
        legs.append(Leg("on-chip", moved, chip.onchip_bandwidth))
    return Estimate(
        f"{_shapes(B, D, F)} in tiles of {tile[0]:g} × {tile[1]:g} "
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
    """X[B, D_X] · Y[D_X, F] -> Z[B, F] over two chips: half the math, one exchange.

        T_math = B·D·F / C        T_network = b·B·F / bandwidth

    Each chip multiplies half of D and holds partial sums of all of Z, with b bytes per
    value. An AllReduce adds them: each chip sends half of its partial sums, adds those
    that it receives to its other half, and sends this half of the result. In total each
    chip sends b·B·F bytes and receives as many.

    Args:
        B, D, F, chip, precision: as for `matmul`.
        bandwidth: one-way bytes/s between the chips; by default one link of the chip.

    Returns:
        An Estimate with "math", "HBM" and "network" legs, all for one chip. The
        exchange needs finished sums, so `.lower` assumes a matmul that is cut into
        pieces, and each piece is sent while the next is multiplied. `.without_overlap`
        is the time of a whole matmul followed by an AllReduce.

    >>> from shardmath.hardware.chips import TPU_V5E
    >>> split = split_matmul(4096, 16_384, 8192, TPU_V5E)
    >>> alone = matmul(4096, 16_384, 8192, TPU_V5E).lower
    >>> round(alone / split.lower, 2), round(alone / split.without_overlap, 2)
    (2.0, 1.35)
    """
    B, D, F = positive(B=B, D=D, F=F)
    one = matmul(B, D / 2, F, chip, precision)
    exchange = bytes_per_value(precision) * B * F
    link = Leg("network", exchange, _link(chip, bandwidth))
    return Estimate(
        f"{_shapes(B, D, F)} in {precision} over two {chip.name}",
        (*one.legs, link),
    )


def split_threshold(
    chip: Chip,
    B: float = math.inf,
    F: float = math.inf,
    bandwidth: float | None = None,
    precision: str = "bf16",
    overlap: bool = True,
) -> float:
    """The size D above which two chips are faster than one at X[B, D] · Y[D, F].

        with overlap:     D* = min(b·C / (2·W_link), (W_hbm/W_link − 1)·B·F / (B + F))
        without overlap:  D* = b·C / W_link,  for large B and F

    Each chip takes half of D. b is the number of bytes per value, C the peak, and each
    W a bandwidth. The first term of the minimum is for math. The second is for HBM and
    matters for small B: a single chip is then memory-bound, and with two chips, each
    reads only half of Y.

    Args:
        chip, precision, bandwidth: as for `split_matmul`.
        B, F: tokens and output size; if infinite (the default), only math counts.
        overlap: whether the exchange overlaps with the matmul (`.lower`), or follows it
            (`.without_overlap`).

    Returns:
        The size D, not rounded.

    >>> from shardmath.hardware.chips import TPU_V5E
    >>> [round(split_threshold(TPU_V5E, overlap=hides)) for hides in (True, False)]
    [3940, 7880]
    >>> round(split_threshold(TPU_V5E, B=16, F=8192))
    246
    """
    b, link = bytes_per_value(precision), _link(chip, bandwidth)
    (overlap,) = flags(overlap=overlap)
    edge = 1 / _size("B", B) + 1 / _size("F", F)
    net = b / link  # all times over B·F

    def chip_time(D: float, share: float) -> float:
        math_time = 2 * D * share / chip.flops[precision]
        return max(math_time, b * (D * share * edge + 1) / chip.hbm_bandwidth)

    def gains(D: float) -> bool:
        alone, half = chip_time(D, 1), chip_time(D, 0.5)
        return (max(half, net) if overlap else half + net) < alone

    low, high = 0.0, 1.0
    while not gains(high) and high < math.inf:  # only the math grows with D
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if gains(middle) else (middle, high)
    return high


def _link(chip: Chip, bandwidth: float | None) -> float:
    """The bandwidth given, or that of one link of the chip."""
    chip = require_chip(chip)
    rate = chip.link_bandwidth if bandwidth is None else bandwidth
    return positive(bandwidth=rate)[0]
