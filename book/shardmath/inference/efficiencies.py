"""The three numbers of the prediction, read from ``efficiencies.toml``."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ..base.units import positive, short_repr, text

FITTED = ("launch", "sequence", "first")


@dataclass(frozen=True)
class Calibration:
    """What servers take beyond the work of their chips.

    Args:
        launch: seconds that a kernel takes beyond its work.
        sequence: seconds of the host for each sequence that a step gives a token.
        first: seconds that a first token waits for each kernel of the model, besides
            the steps that it waits for. They hold up nobody else.

    Raises:
        ValueError: a number that is not above zero.

    >>> 1e-6 < calibration().launch < 1e-5
    True
    """

    launch: float
    sequence: float
    first: float

    def __post_init__(self) -> None:
        positive(**vars(self))


@cache
def table() -> dict[str, dict]:
    """The file as it is."""
    found = files(__package__).joinpath("efficiencies.toml").read_text("utf-8")
    return tomllib.loads(found)


@cache
def calibration() -> Calibration:
    """The numbers that predictions use."""
    return Calibration(*(table()["fitted"][name]["value"] for name in FITTED))


MEMORY: float = table()["constants"]["memory"]["value"]


def band(regime: str) -> tuple[float, float]:
    """Measured over predicted of 8 rows in 10, of families that were not in the fit.

    Args:
        regime: "tpot dense together", and so on: metric, kind of model, and whether
            prompts are read by the servers that decode. Of a regime without rows it is
            the widest band of the metric.

    Raises:
        ValueError: a metric of which there are no rows.
    """
    bands = table()["bands"]
    if regime in bands:
        low, high = bands[regime]
        return low, high
    metric = text("regime", regime).partition(" ")[0]
    alike = [one for name, one in bands.items() if name.startswith(f"{metric} ")]
    if not alike:
        known = ", ".join(bands)
        raise ValueError(f"regime {short_repr(regime)}: must be one of {known}")
    return min(low for low, _ in alike), max(high for _, high in alike)
