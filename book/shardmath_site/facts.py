"""Formats an accelerator's facts for a page, rounded for reading and exact."""

from decimal import Decimal

from shardmath.base.units import show


def printed(value: float, unit: str) -> str:
    """`value` with four digits and a prefix. Counts, which have no unit, are exact.

    >>> printed(2.765e12, "bytes/s"), printed(2**37, "capacity"), printed(8960, "")
    ('2.765 TB/s', '128 GiB', '8,960')
    """
    return show(value, unit, digits=4) if unit else f"{value:,}"


def exact(value: float) -> str:
    """`value` with all its digits, and with a power of ten if they are few.

    >>> exact(989.4e12), exact(102_005_473_280), exact(8960)
    ('9.894e14', '102,005,473,280', '8,960')
    """
    number = Decimal(repr(value)).normalize()
    if value >= 1e6 and len(number.as_tuple().digits) <= 6:
        return f"{number:e}".replace("+", "")
    return f"{number:,f}"
