"""What chips and networks reach in practice, read from ``efficiencies.toml``."""

import tomllib
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files

from ..base.units import positive
from ..hardware.chips import CHIPS, Chip

# A chip whose best matmul rate nobody published takes the share of another with the
# same cores. What no record has at all is taken to reach its peak, as TPUs nearly do.
LIKE = {"h800": "h100", "h200": "h100", "gb300": "b300", "a100_40gb": "a100_80gb"}
SAME_UNITS = {"fp16": "bf16", "fp4": "fp8"}  # whose share another format takes
FITTED = ("matmul", "attention", "memory", "grouped", "exposed")


@dataclass(frozen=True)
class Efficiencies:
    """The numbers of the prediction. All are shares, except for `launch` and `hop`.

    Args:
        matmul: of the sustained rate of matmuls, that a large one reaches.
        attention: of the same rate, that attention reaches.
        memory: of the HBM bandwidth, that passes over activations reach.
        grouped: of the rate of a large matmul, that those of many experts reach.
        exposed: of a gather of weights, that other work does not hide.
        launch: seconds that a kernel takes beyond its work.
        network: of the links' bandwidth, that a large collective reaches.
        old_attention: of `attention`, that a kernel made for an older chip reaches.
        hop: seconds that a hop round a ring takes beyond its bytes.
        rows: of an expert, at which its matmul reaches half of `grouped`.
        stated_overlap: of an exchange, that stays exposed where the source of a run
            says that it is overlapped.

    Raises:
        ValueError: a number that is not above zero.

    >>> FITTED_HERE = efficiencies()
    >>> 0.5 < FITTED_HERE.matmul < 1
    True
    """

    matmul: float
    attention: float
    memory: float
    grouped: float
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
    """The file as it is: `fitted`, `constants`, `bands`, `sources`."""
    text = files(__package__).joinpath("efficiencies.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def efficiencies() -> Efficiencies:
    """The numbers that predictions use."""
    found = {**table()["fitted"], **table()["constants"]}
    return Efficiencies(**{name: row["value"] for name, row in found.items()})


@cache
def without(source: str = "", generation: str = "") -> Efficiencies:
    """The numbers, fitted without the runs of one source or generation of chips.

    Args:
        source, generation: one of both, as `measured.fit_rows.Row` calls it.

    >>> without("Llama 3").launch == efficiencies().launch
    True
    """
    fits = table()["without_generation" if generation else "without"]
    found = dict(zip(FITTED, fits[generation or source], strict=True))
    return replace(efficiencies(), **found)


def band(experts: bool) -> tuple[float, float]:
    """Measured over predicted seconds of 8 runs in 10, of sources not in the fit.

    Args:
        experts: whether the model has experts.
    """
    low, high = table()["bands"]["experts" if experts else "dense"]
    return low, high


def sustained(chip: Chip, precision: str) -> float:
    """FLOPs/s of a large matmul: the peak, times the share that somebody measured.

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
