"""The facts of an accelerator in words: names, values for reading, values in full."""

from decimal import Decimal

from shardmath.chips import Chip
from shardmath.units import show

COUNT = None  # no unit, so no prefix either
FACTS = {
    "devices_per_chip": ("JAX devices per chip", COUNT),
    "flops_per_clock": ("FLOPs per clock of one core", COUNT),
    "hbm_bytes": ("HBM capacity", "bytes"),
    "hbm_bandwidth": ("HBM bandwidth", "bytes/s"),
    "hbm_latency": ("HBM latency of a read", "clocks"),
    "onchip_bytes": ("{onchip} capacity", "bytes"),
    "onchip_bandwidth": ("{onchip} bandwidth", "bytes/s"),
    "registers_bytes": ("Registers, capacity", "bytes"),
    "tmem_bytes": ("TMEM capacity", "bytes"),
    "cmem_bytes": ("CMEM capacity", "bytes"),
    "l1_bytes": ("L1 and {onchip} together, capacity", "bytes"),
    "l1_latency": ("L1 latency of a read", "clocks"),
    "l2_bytes": ("L2 capacity", "bytes"),
    "l2_bandwidth": ("L2 bandwidth", "bytes/s"),
    "l2_latency": ("L2 latency of a read", "clocks"),
    "llc_bytes": ("Last-level cache, capacity", "bytes"),
    "llc_bandwidth": ("Last-level cache, bandwidth", "bytes/s"),
    "cores": ("{cores}", COUNT),
    "tensor_cores": ("Tensor Cores", COUNT),
    "lanes": ("fp32 lanes of one core", COUNT),
    "warps": ("Warps resident on one core", COUNT),
    "warp_threads": ("Threads of a warp", COUNT),
    "mxus": ("Matrix units", COUNT),
    "mxu_size": ("Side of a matrix unit", COUNT),
    "clock": ("Clock", "Hz"),
    "links": ("Scale-up links", COUNT),
    "link_bandwidth": ("One link, one-way", "bytes/s"),
    "scale_up_bandwidth": ("Scale-up, one-way", "bytes/s"),
    "scale_up_printed": ("Scale-up, direction not stated", "bytes/s"),
    "scale_out_bandwidth": ("Scale-out, one-way", "bytes/s"),
    "domain": ("Chips in the largest scale-up network", COUNT),
    "domain_allreduce": ("AllReduce bandwidth of that network", "bytes/s"),
    "domain_bisection": ("Bisection bandwidth of that network", "bytes/s"),
    "power": ("Power", "W"),
}
CORES = {
    "Google": "TensorCores",
    "NVIDIA": "SMs",
    "AMD": "Compute units",
    "AWS": "NeuronCores",
}


def label(chip: Chip, name: str) -> tuple[str, str | None]:
    """What the fact `name` of `chip` is called, and its unit.

    Raises:
        ValueError: this page has no words for such a fact yet.

    >>> from shardmath.chips import H100
    >>> label(H100, "onchip_bytes"), label(H100, "flops.int8")
    (('SMEM capacity', 'bytes'), ('int8 peak', 'OPs/s'))
    """
    kind, _, precision = name.partition(".")
    unit = "OPs/s" if precision.startswith("int") else "FLOPs/s"
    if kind == "flops":
        return f"{precision} peak", unit
    if kind == "sparse":
        return f"{precision} with 2:4 sparsity", unit
    if kind == "achieved":
        return f"{precision} matmul, best measured", unit
    if name not in FACTS:
        raise ValueError(f"{chip.name}: no words for {name!r}; add it to FACTS")
    words, unit = FACTS[name]
    cores = CORES.get(chip.vendor, "Cores")
    return words.format(onchip=chip.onchip, cores=cores), unit


def printed(value: float, unit: str | None) -> str:
    """`value` to four digits with a prefix; counts in full.

    >>> printed(2.765e12, "bytes/s"), printed(8960, COUNT)
    ('2.765 TB/s', '8,960')
    """
    return f"{value:,}" if unit is COUNT else show(value, unit, digits=4)


def exact(value: float) -> str:
    """`value` with all its digits: a power of ten where they are few.

    >>> exact(989.4e12), exact(102_005_473_280), exact(8960)
    ('9.894e14', '102,005,473,280', '8,960')
    """
    number = Decimal(repr(value)).normalize()
    if value >= 1e6 and len(number.as_tuple().digits) <= 6:
        return f"{number:e}".replace("+", "")
    return f"{number:,f}"
