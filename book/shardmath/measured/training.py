"""Published training runs, read from ``training.csv`` and ``training.toml``."""

from collections.abc import Iterable
from contextlib import suppress
from functools import cache

from ..base.tables import Absent
from .reading import read_runs
from .rows import named_rows
from .run import Run

RUNS = read_runs(named_rows("training.csv"))


@cache
def unseen_runs() -> tuple[Run, ...]:
    """The runs of ``unseen.csv``, which take no part in any fit.

    They show how good predictions are for runs of a source that is not in the fit.

    >>> len(unseen_runs())
    78
    """
    return read_runs(named_rows("unseen.csv"))


def ratios(runs: Iterable[Run] = RUNS) -> dict[str, tuple[float, ...]]:
    """Measured time ÷ the time of the math, by kind of parallelism, smallest first.

    Runs whose step time is unknown are left out. `Run.bound` also includes the network,
    but takes some tenths of a second to derive.

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
