"""The shares of their peaks that chips and networks reach (``efficiencies.toml``)."""

import tomllib
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files

from ..base.units import positive
from ..hardware.chips import CHIPS, Chip

# If nobody published a chip's best matmul rate, we use the share of another chip with
# the same cores. If no record has a share, we assume the peak, as TPUs nearly reach it.
LIKE = {"h800": "h100", "h200": "h100", "gb300": "b300", "a100_40gb": "a100_80gb"}
SAME_UNITS = {"fp16": "bf16", "fp4": "fp8"}  # formats that use the share of another
FITTED = ("matmul", "attention", "memory", "trips", "exposed")


@dataclass(frozen=True)
class Efficiencies:
    """The numbers of the prediction, most of which are shares.

    Args:
        matmul: share of the sustained matmul rate that a large matmul reaches.
        attention: share of the same rate that attention reaches.
        memory: share of the HBM bandwidth that is reached by passes over activations.
        trips: how often the vector of a token that an expert gets passes through HBM in
            the forward pass; each read and each write counts.
        exposed: share of a gather of weights, or on TPUs of an exchange of tensor
            parallelism, that no other work hides.
        launch: seconds that every kernel takes in addition to its work.
        network: share of the links' bandwidth that a large collective reaches.
        old_attention: share of `attention` that a kernel for an older chip reaches.
        hop: seconds that a hop round a ring takes in addition to sending its bytes.
        rows: the number of rows (tokens) per expert at which a matmul reaches half of
            the rate that it reaches with many rows.
        stated_overlap: share of an exchange that stays exposed although the source of
            the run says that the exchange is overlapped.

    Raises:
        ValueError: a number that is not above zero.

    >>> FITTED_HERE = efficiencies()
    >>> 0.5 < FITTED_HERE.matmul < 1
    True
    """

    matmul: float
    attention: float
    memory: float
    trips: float
    exposed: float
    launch: float
    network: float
    old_attention: float
    hop: float
    rows: float
    stated_overlap: float

    def __post_init__(self) -> None:
        names = [field.name for field in fields(self)]
        positive(**{name: getattr(self, name) for name in names})


@cache
def table() -> dict[str, dict]:
    """All tables of the file, such as `fitted`, `constants`, `without` and `bands`."""
    text = files(__package__).joinpath("efficiencies.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def efficiencies() -> Efficiencies:
    """The numbers that predictions use."""
    found = {**table()["fitted"], **table()["constants"]}
    return Efficiencies(**{name: row["value"] for name, row in found.items()})


@cache
def without(source: str = "", generation: str = "") -> Efficiencies:
    """The numbers as fitted without the runs of one source or one chip generation.

    Args:
        source: the source to leave out, as `measured.fit_rows.Row` calls it.
        generation: the generation to leave out, if there is no `source`.

    >>> without("Llama 3").launch == efficiencies().launch
    True
    """
    fits = table()["without_generation" if generation else "without"]
    found = dict(zip(FITTED, fits[generation or source], strict=True))
    return replace(efficiencies(), **found)


def band(experts: bool) -> tuple[float, float]:
    """The range of measured ÷ predicted seconds into which 8 of 10 runs fall.

    The runs are those of sources that the fit did not use.

    Args:
        experts: whether the model has experts.
    """
    low, high = table()["bands"]["experts" if experts else "dense"]
    return low, high


@cache
def sustained(chip: Chip, precision: str) -> float:
    """FLOPs/s of a large matmul: the peak times a measured share of it.

    >>> from shardmath.hardware.chips import H100, H800, TPU_V5P
    >>> [round(sustained(chip, "bf16") / 1e12, -1) for chip in (H100, H800)]
    [790.0, 790.0]
    >>> sustained(TPU_V5P, "bf16") == TPU_V5P.flops["bf16"]
    True
    """
    like = CHIPS[LIKE[chip.id]] if chip.id in LIKE else chip
    unit = SAME_UNITS.get(precision, precision)
    if unit not in like.achieved and chip is not like:
        like = chip
    share = like.achieved[unit] / like.flops[unit] if unit in like.achieved else 1.0
    return chip.flops[precision] * share
