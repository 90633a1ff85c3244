"""Training runs that were published, read from ``training.csv`` and ``.toml``."""

from collections.abc import Iterable
from contextlib import suppress

from ..base.tables import Absent
from .reading import read_runs
from .rows import named_rows
from .run import Run

RUNS = read_runs(named_rows("training.csv"))


def ratios(runs: Iterable[Run] = RUNS) -> dict[str, tuple[float, ...]]:
    """Measured time over that of the math alone, by kind of parallelism, least first.

    Runs whose step takes a time that nobody can tell are left out. `Run.bound` has
    the network beside the math, and takes some tenths of a second to derive.

    >>> found = ratios()
    >>> print(f"{min(found['FSDP × tensor']):.2f} to {max(found['FSDP × tensor']):.2f}")
    1.29 to 9.43
    """
    found: dict[str, list[float]] = {}
    for run in runs:
        with suppress(Absent):
            ratio = run.over_math
            found.setdefault(run.parallelism, []).append(ratio)
    return {kind: tuple(sorted(some)) for kind, some in found.items()}
