"""Derive the figures of a training run from one another.

Tokens/s, FLOPs/s, MFU and the time of a step say how fast a run is while it trains.
Chip-hours and days say how fast it was on average. `solve` takes any of them under a
stated convention, and refuses figures that contradict one another.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from ..base.tables import Absent
from ..base.units import positive, positive_int, short_repr, show
from ..hardware import chips as all_chips
from ..hardware.chips import Chip
from ..transformer import Model
from .conventions import CONVENTIONS, NAMES, flops_per_token, mfu

WITHIN = 0.03  # the largest relative difference that rounding explains
OF_STEP = ("tokens_per_second", "mfu", "flops_per_second", "step_seconds")
OF_RUN = ("chip_hours", "days")
NEEDS = {  # the other figures without which these give no rate
    "step_seconds": ("chips", "batch"),
    "chip_hours": ("tokens",),
    "days": ("chips", "tokens"),
}


@dataclass(frozen=True, repr=False)
class RunFigures:
    """All figures of a training run that follow from a rate of tokens; see `solve`.

    Args:
        model, seq, convention, params: as for `flops_per_token`.
        chip, precision: the chip and format whose dense peak the MFU refers to.
        tokens_per_second: tokens per second of one chip, while it trains.
        goodput: the share of the run's time in which it trained at this rate; None if
            the rate is the mean of the whole run, or the share is unknown.
        chips, batch, tokens: the number of chips, tokens of a step, and tokens of the
            run; None if unknown.

    Raises:
        Absent: a ValueError; a figure needs another one that is None.
    """

    model: Model | float
    seq: int
    convention: str
    params: str
    chip: Chip
    precision: str
    tokens_per_second: float
    goodput: float | None = None
    chips: int | None = None
    batch: float | None = None
    tokens: float | None = None

    @property
    def peak(self) -> float:
        """Dense FLOPs/s of one chip."""
        return self.chip.flops[self.precision]

    @property
    def flops_per_token(self) -> float:
        """FLOPs per token by the convention."""
        return flops_per_token(self.model, self.seq, self.convention, self.params)

    @property
    def flops_per_second(self) -> float:
        """FLOPs/s of one chip: tokens/s · FLOPs per token."""
        return self.tokens_per_second * self.flops_per_token

    @property
    def mfu(self) -> float:
        """FLOPs/s ÷ the peak."""
        return self.flops_per_second / self.peak

    @property
    def run_mfu(self) -> float:
        """MFU of the whole run: MFU · goodput."""
        return self.mfu * (self.goodput or 1)

    @property
    def shares(self) -> dict[str, float]:
        """The MFU at this rate, by every convention that the model allows."""
        ways = CONVENTIONS if isinstance(self.model, Model) else ("6N",)
        rate = self.tokens_per_second
        return {
            way: mfu(self.model, self.seq, rate, self.peak, way, self.params)
            for way in ways
        }

    @property
    def step_seconds(self) -> float:
        """Seconds of a step: batch / (chips · tokens/s)."""
        return self._has("batch") / (self._has("chips") * self.tokens_per_second)

    @property
    def training_flops(self) -> float:
        """FLOPs of the run by the convention: tokens · FLOPs per token."""
        return self._has("tokens") * self.flops_per_token

    @property
    def chip_hours(self) -> float:
        """Chip-hours of the run: tokens / (tokens/s · goodput) / 3600."""
        rate = self.tokens_per_second * (self.goodput or 1)
        return self._has("tokens") / rate / 3600

    @property
    def days(self) -> float:
        """Days of the run: chip-hours / (24 · chips)."""
        return self.chip_hours / self._has("chips") / 24

    def _has(self, name: str) -> float:
        value = getattr(self, name)
        if value is None:
            raise Absent(f"{name} is not given and does not follow from other figures")
        return value

    def __str__(self) -> str:
        said = [
            f"{rate_said(self.tokens_per_second)} per {self.chip.name}, "
            f"{show(self.flops_per_second, 'FLOPs/s')}, an MFU of {self.mfu:.1%} by "
            f"{NAMES[self.convention]}"
        ]
        if self.chips and self.batch:
            said.append(f"{show(self.step_seconds, 's')} a step")
        if self.tokens:
            said.append(hours_said(self.chip_hours))
        if self.tokens and self.chips:
            said.append(f"{self.days:.3g} days on {self.chips:,} chips")
        if self.goodput:
            said.append(f"training for {self.goodput:.1%} of the time")
        return "; ".join(said)


def solve(
    model: Model | float,
    seq: int,
    convention: str,
    chip: Chip | str,
    *,
    precision: str = "bf16",
    params: str = "all",
    chips: int | None = None,
    batch: float | None = None,
    tokens: float | None = None,
    within: float = WITHIN,
    **printed: float | None,
) -> RunFigures:
    """The figures of a run that follow from printed ones, if these do not conflict.

        MFU · peak = FLOPs/s = tokens/s · FLOPs per token
        tokens/s = batch / (chips · step)
        tokens / chip-hours = tokens/s · goodput

    Args:
        model, seq, convention, params: as for `flops_per_token`.
        chip, precision: a Chip or a name for `chips.find`, and the format of the peak.
        chips: the number of chips; needed for `step_seconds` and `days`.
        batch: tokens of a step on all chips; needed for `step_seconds`.
        tokens: tokens of the run; needed for `chip_hours` and `days`.
        within: the relative difference of two figures that rounding may explain.
        printed: one or more of `tokens_per_second`, `flops_per_second` (both of one
            chip), `mfu` and `step_seconds`, which describe steps, and `chip_hours` and
            `days`, which describe the whole run.

    Returns:
        `RunFigures` with the rate that follows from the first given figure of steps. If
        only hours or days are given, the rate is the mean of the run. If both kinds are
        given, their ratio is the goodput.

    Raises:
        ValueError: figures that contradict one another, which the message names; a rate
            above the peak; no figure, or only one that gives no rate without another.

    >>> from shardmath.transformer import model
    >>> print(solve(model("llama 3 405b"), 8192, "6N", "h100", chips=16_384,
    ...             tokens=15.6e12, mfu=0.41, chip_hours=30.84e6))
    166.6 tokens/s per H100, 406 TFLOPs/s, an MFU of 41.0% by 6N; 30.84 million \
chip-hours; 78.4 days on 16,384 chips; training for 84.3% of the time
    >>> solve(model("llama 3 405b"), 8192, "6N", "h100", mfu=0.6,
    ...       flops_per_second=400e12)
    Traceback (most recent call last):
    ValueError: MFU 60 % at 400 TFLOPs/s means a peak of 667 TFLOPs/s; the H100 has \
989 TFLOPs/s in bf16
    """
    of = chip if isinstance(chip, Chip) else all_chips.find(chip)
    given, (within,) = _given(printed), positive(within=within)
    sizes = _sizes(chips, batch, tokens)
    start = RunFigures(model, seq, convention, params, of, precision, 1.0, **sizes)
    if given.get("mfu", 0) > 1:
        raise ValueError(
            f"mfu = {given['mfu']:g}: must be a share, at most 1; 0.4 is 40 %"
        )
    _same_peak(given, start, within)
    rates = {name: _rate(name, value, start) for name, value in given.items()}
    steady = {name: rate for name, rate in rates.items() if name in OF_STEP}
    whole = {name: rate for name, rate in rates.items() if name in OF_RUN}
    _agree(steady, given, start, within)
    _same_hours(whole, given, start, within)
    goodput = None
    if steady and whole:
        (first, fast), (last, mean) = (next(iter(r.items())) for r in (steady, whole))
        if mean > fast * (1 + within):
            raise ValueError(
                f"{_said(last, given[last])} means {_per_chip(mean)} on average, but "
                f"{_said(first, given[first])} only {_per_chip(fast)} while it trains: "
                "no run is faster than its steps"
            )
        goodput = min(mean / fast, 1.0)
    rate = next(iter({**steady, **whole}.values()))
    _below_peak(rate, start)
    return replace(start, tokens_per_second=rate, goodput=goodput)


def rate_said(rate: float) -> str:
    """Tokens per second as text, rounded to four digits.

    >>> rate_said(38.786), rate_said(10_168)
    ('38.79 tokens/s', '10,170 tokens/s')
    """
    return f"{float(f'{rate:.4g}'):,g} tokens/s"


def hours_said(hours: float) -> str:
    """Chip-hours as text, rounded to four digits.

    >>> hours_said(30.84e6), hours_said(184_320)
    ('30.84 million chip-hours', '184,300 chip-hours')
    """
    if hours >= 1e6:
        return f"{hours / 1e6:,.4g} million chip-hours"
    return f"{float(f'{hours:.4g}'):,.0f} chip-hours"


def _given(printed: Mapping[str, float | None]) -> dict[str, float]:
    """The figures that are not None, as numbers."""
    known = ", ".join((*OF_STEP, *OF_RUN))
    for name in printed:
        if name not in (*OF_STEP, *OF_RUN):
            raise ValueError(
                f"{short_repr(name)}: must be a figure of a run, one of {known}"
            )
    found = {
        name: positive(**{name: value})[0]
        for name, value in printed.items()
        if value is not None
    }
    if not found:
        raise ValueError(f"no figure is given: must be one or more of {known}")
    return found


def _sizes(chips: object, batch: object, tokens: object) -> dict[str, float | None]:
    """The three sizes as numbers; those that were not given stay None."""
    found = {"chips": chips, "batch": batch, "tokens": tokens}
    for name, check in zip(found, (positive_int, positive, positive), strict=True):
        if found[name] is not None:
            (found[name],) = check(**{name: found[name]})
    return found


def _rate(name: str, value: float, run: RunFigures) -> float:
    """Tokens/s of one chip that follow from a figure."""
    missing = [one for one in NEEDS.get(name, ()) if getattr(run, one) is None]
    if missing:
        raise ValueError(
            f"{name} = {value:g}: gives a rate only together with "
            f"{' and '.join(missing)}"
        )
    if name == "tokens_per_second":
        return value
    if name == "mfu":
        return value * run.peak / run.flops_per_token
    if name == "flops_per_second":
        return value / run.flops_per_token
    if name == "step_seconds":
        return run.batch / (run.chips * value)
    return run.tokens / (_hours(name, value, run) * 3600)


def _hours(name: str, value: float, run: RunFigures) -> float:
    """The chip-hours of a run, from its chip-hours or days."""
    return value if name == "chip_hours" else value * 24 * run.chips


def _same_peak(given: Mapping[str, float], run: RunFigures, within: float) -> None:
    """Raise unless a printed MFU and FLOPs/s together mean the peak of the chip."""
    if "mfu" not in given or "flops_per_second" not in given:
        return
    meant = given["flops_per_second"] / given["mfu"]
    if abs(meant / run.peak - 1) > within:
        raise ValueError(
            f"MFU {100 * given['mfu']:.4g} % at "
            f"{show(given['flops_per_second'], 'FLOPs/s')} means a peak of "
            f"{show(meant, 'FLOPs/s')}; the {run.chip.name} has "
            f"{show(run.peak, 'FLOPs/s')} in {run.precision}"
        )


def _agree(
    rates: Mapping[str, float],
    given: Mapping[str, float],
    run: RunFigures,
    within: float,
) -> None:
    """Raise unless the figures of a step mean the same rate."""
    for one, other in combinations(rates, 2):
        if abs(rates[other] / rates[one] - 1) <= within:
            continue
        claims = " and ".join(
            f"{_per_chip(rates[name])} are given"
            if name == "tokens_per_second"
            else f"{_said(name, given[name])} means {_per_chip(rates[name])}"
            for name in (one, other)
        )
        raise ValueError(
            f"counting {NAMES[run.convention]}, {claims}: they contradict each other"
            f"{_hint(one, other, given, run, within)}"
        )


def _hint(
    one: str, other: str, given: Mapping[str, float], run: RunFigures, within: float
) -> str:
    """A hint at the convention under which two figures agree, if there is one."""
    if not isinstance(run.model, Model):
        return ""
    for way in CONVENTIONS:
        at = replace(run, convention=way)
        ratio = _rate(one, given[one], at) / _rate(other, given[other], at)
        if abs(ratio - 1) <= within:
            return f"; counting {NAMES[way]}, they would agree"
    return ""


def _same_hours(
    rates: Mapping[str, float],
    given: Mapping[str, float],
    run: RunFigures,
    within: float,
) -> None:
    """Raise unless days and chip-hours agree."""
    if len(rates) < 2 or abs(rates["days"] / rates["chip_hours"] - 1) <= within:
        return
    meant = _hours("days", given["days"], run)
    raise ValueError(
        f"{given['days']:.4g} days on {run.chips:,} chips are {hours_said(meant)}, but "
        f"{hours_said(given['chip_hours'])} are given"
    )


def _below_peak(rate: float, run: RunFigures) -> None:
    """Raise if a rate needs more FLOPs/s than the peak."""
    least = flops_per_token(run.model, run.seq, "6N", "without embeddings")
    if rate * least > run.peak:
        raise ValueError(
            f"{_per_chip(rate)} are {show(rate * least, 'FLOPs/s')} for the layers' "
            f"weights alone; the {run.chip.name} has {show(run.peak, 'FLOPs/s')} in "
            f"{run.precision}: check chips, tokens and units"
        )


def _per_chip(rate: float) -> str:
    return f"{rate_said(rate)} per chip"


def _said(name: str, value: float) -> str:
    """A figure in words."""
    words = {
        "tokens_per_second": _per_chip,
        "mfu": lambda share: f"MFU {100 * share:.4g} %",
        "flops_per_second": lambda rate: f"{show(rate, 'FLOPs/s')} per chip",
        "step_seconds": lambda seconds: f"a step of {show(seconds, 's')}",
        "chip_hours": lambda hours: f"a run of {hours_said(hours)}",
        "days": lambda days: f"a run of {days:.4g} days",
    }
    return words[name](value)
