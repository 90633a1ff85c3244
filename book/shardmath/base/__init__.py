"""Units, records with sources, estimates, tables, and claims that can fail."""

from .claims import holds
from .guess import guess
from .tables import compare, deviation, ratio, table
from .units import GiB, KiB, MiB, show

__all__ = [
    "GiB",
    "KiB",
    "MiB",
    "compare",
    "deviation",
    "guess",
    "holds",
    "ratio",
    "show",
    "table",
]
