"""The three numbers of the prediction, read from ``efficiencies.toml``."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ..base.units import positive

FITTED = ("launch", "memory", "math")


@dataclass(frozen=True)
class Calibration:
    """What servers reach in practice.

    Args:
        launch: seconds that a kernel takes beyond its work.
        memory: share of the HBM bandwidth that a step reaches.
        math: share of the sustained matmul rate that it reaches.

    Raises:
        ValueError: a number that is not above zero.

    >>> 1e-6 < calibration().launch < 1e-5
    True
    """

    launch: float
    memory: float
    math: float

    def __post_init__(self) -> None:
        positive(**vars(self))


@cache
def table() -> dict[str, dict]:
    """The file as it is."""
    text = files(__package__).joinpath("efficiencies.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def calibration() -> Calibration:
    """The numbers that predictions use."""
    return Calibration(*(table()["fitted"][name]["value"] for name in FITTED))
