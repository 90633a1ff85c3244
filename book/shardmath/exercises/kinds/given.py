"""Values that a task gives, taken from records so that they cannot drift."""

from ...base.facts import term
from ...hardware.chips import Chip


def stated(chip: Chip, *names: str) -> dict[str, tuple[float, str]]:
    """What a chip's record states: words → (value, unit), for a question's `given`.

    Args:
        chip: a record.
        names: facts of it, as `chip.fact` wants them.

    Raises:
        ValueError: no source states one of them.

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
    """Words as they stand inside a sentence: "Clock" becomes "clock", not "HBM"."""
    first = words.split()[0]
    return words[0].lower() + words[1:] if first[1:].islower() else words
