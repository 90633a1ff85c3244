"""Values that a task gives, taken from records so that they stay up to date."""

from ...base.facts import term
from ...hardware.chips import Chip


def stated(chip: Chip, *names: str) -> dict[str, tuple[float, str]]:
    """Facts of a chip's record as words → (value, unit), for a question's `given`.

    Args:
        chip: the chip's record.
        names: the names of facts, as for `chip.fact`.

    Raises:
        ValueError: no source states one of the facts.

    >>> from shardmath.hardware import chips
    >>> stated(chips.TPU_V5E, "hbm_bandwidth")
    {'TPU v5e, HBM bandwidth': (819000000000.0, 'bytes/s')}
    """
    return {
        f"{chip.name}, {_inside(chip.words(name))}": (
            chip.fact(name).value,
            term(name).unit,
        )
        for name in names
    }


def _inside(words: str) -> str:
    """Words as inside a sentence: "Clock" becomes "clock", but "HBM" stays."""
    first = words.split()[0]
    return words[0].lower() + words[1:] if first[1:].islower() else words
