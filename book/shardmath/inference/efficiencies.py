"""The three numbers of the prediction, read from ``efficiencies.toml``."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ..base.records import kept
from ..base.units import positive, short_repr, text

FITTED = ("launch", "sequence", "first")


@dataclass(frozen=True)
class Calibration:
    """The time that servers take in addition to the work of their chips.

    Args:
        launch: seconds that a kernel takes in addition to its work.
        sequence: seconds of the host in a step for each sequence that decodes.
        first: seconds per kernel of the model that a first token waits in addition to
            the steps of its prompt. This wait delays no other request.

    Raises:
        ValueError: a number that is not above zero.

    >>> 1e-6 < calibration().launch < 1e-5
    True
    """

    launch: float
    sequence: float
    first: float

    def __post_init__(self) -> None:
        kept(self, positive, *vars(self))


@cache
def table() -> dict[str, dict]:
    """All tables of the file."""
    found = files(__package__).joinpath("efficiencies.toml").read_text("utf-8")
    return tomllib.loads(found)


@cache
def calibration() -> Calibration:
    """The numbers that predictions use."""
    return Calibration(*(table()["fitted"][name]["value"] for name in FITTED))


MEMORY: float = table()["constants"]["memory"]["value"]
EXPERTS: float = table()["constants"]["experts"]["value"]


def band(regime: str) -> tuple[float, float]:
    """The range of measured ÷ predicted that holds 8 of 10 rows.

    The rows are those of families that the fit did not use.

    Args:
        regime: metric, kind of model, and whether the same servers do prefill and
            decode, such as "tpot dense together". A regime without rows gets a band
            that covers all bands of its metric.

    Raises:
        ValueError: a regime that is not text, or a metric without rows.

    >>> low, high = band("tpot dense together")
    >>> low < 1 < high
    True
    """
    bands = table()["bands"]
    if regime in bands:
        low, high = bands[regime]
        return low, high
    metric = text("regime", regime).partition(" ")[0]
    alike = [one for name, one in bands.items() if name.startswith(f"{metric} ")]
    if not alike:
        known = ", ".join(bands)
        raise ValueError(f"regime = {short_repr(regime)}: must be one of {known}")
    return min(low for low, _ in alike), max(high for _, high in alike)
