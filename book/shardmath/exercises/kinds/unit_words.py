"""The words after a number: units, prefixes, and units with prefixes."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from ...base.units import short_repr

_DECIMAL = dict(zip("kMGTPEZY", range(3, 27, 3), strict=True))
_BINARY = {f"{letter}i": 10 * (n + 1) for n, letter in enumerate("KMGTPE")}
_BELOW_ONE = dict(zip("mµnpf", range(3, 18, 3), strict=True))
_OTHER_LETTERS = {"K": "k", "u": "µ"}
_NUMBERS = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_NUMBERS |= {"mn": 6, "bn": 9, "tn": 12}
_MAY_BE_MINUTES = "mn"
_SPELLED = {
    "kilo": "k", "mega": "M", "giga": "G", "tera": "T", "peta": "P", "exa": "E",
    "zetta": "Z", "yotta": "Y", "kibi": "Ki", "mebi": "Mi", "gibi": "Gi",
    "tebi": "Ti", "pebi": "Pi", "exbi": "Ei", "milli": "m", "micro": "µ",
    "nano": "n", "pico": "p", "femto": "f",
}  # fmt: skip
_UNITS = {
    "FLOP": re.compile("flops?", re.IGNORECASE),
    "OP": re.compile("OPs?"),
    "byte": re.compile("B|(?i:bytes?)"),
    "s": re.compile("s|(?i:secs?|seconds?)"),
    "Hz": re.compile("Hz|hertz", re.IGNORECASE),
    "W": re.compile("W|watts?"),
    "token": re.compile("tok(en)?s?", re.IGNORECASE),
}
_BITS = re.compile("b|(?i:bits?)")
_BITS_OF_A_BYTE = 8
_CLOCK = {  # in seconds
    "min": 60, "minute": 60, "h": 3600, "hr": 3600, "hour": 3600, "d": 86_400,
    "day": 86_400, "week": 604_800,
}  # fmt: skip
_PER_SECOND = re.compile("(.*[Bb])ps")  # GBps
_MEASURES = {"FLOP", "OP", "byte", "s", "W", "dollar"}  # the rest are counts
_MODELS = "[ahv]100|h[28]00|b[23]00|v4|v5[ep]|v6e|tpu7x"  # with digits in the name
# Words for the same thing. Devices, dies and nodes are left out, because they may be
# more or less than one chip.
_CHIPS = f"chip|gpu|tpu|accelerator|trillium|ironwood|{_MODELS}"
_ALIKE = [re.compile(f"(?i:{words})") for words in (_CHIPS, "dollar|usd")]
MODEL, CHIP = (rf"(?i:(?:{words})s?\b)" for words in (_MODELS, _CHIPS))

Powers = Mapping[str, int]  # unit → its power: bytes/s is {"byte": 1, "s": -1}


@dataclass(frozen=True)
class UnitWord:
    """What a word does to the number before it.

    Args:
        times: the factor that multiplies the number.
        by: the factor that divides it.
        unit: the unit of the result.
        bits: whether the word means bits, which `by` converts to bytes.
    """

    times: int = 1
    by: int = 1
    unit: Powers = field(default_factory=dict)
    bits: bool = False


def powers(unit: str) -> Powers:
    """The unit of a question as powers of its parts.

    >>> powers("FLOPs/byte"), powers("GPUs"), powers("Hz"), powers("days")
    ({'FLOP': 1, 'byte': -1}, {'GPU': 1}, {'s': -1}, {'s': 1})
    """
    above, _, below = unit.partition("/")
    found = {}
    for name, power in ((above, 1), (below, -1)):
        if name:
            own = {"s": 1} if seconds(name) else _named(name, {})
            own = own or {_singular(name): 1}
            found |= {part: power * own[part] for part in own}
    return found


def written(unit: Powers) -> str:
    """Powers as text.

    >>> written({"FLOP": 1, "byte": -1}), written({"s": 2}), written({"s": -1})
    ('FLOPs/byte', 's^2', '1/s')
    """

    def power(name: str, n: int) -> str:
        return name if n == 1 else f"{name}^{n}"

    above = [power(_plural(name), n) for name, n in unit.items() if n > 0]
    below = [power(name, -n) for name, n in unit.items() if n < 0]
    return "/".join(["·".join(above) or "1", *below])


def seconds(unit: str) -> int | None:
    """The seconds in a unit such as hours or days, or None for any other unit.

    >>> seconds("days"), seconds("Hours"), seconds("s"), seconds("tokens")
    (86400, 3600, None, None)
    """
    one = _singular(unit)
    return _CLOCK.get(one if len(one) == 1 else one.lower())


def same(one: str, other: str) -> bool:
    """Whether two words name the same thing, as the two after 8 in "8 H100 GPUs" do.

    >>> same("H100", "GPUs"), same("GPUs", "nodes")
    (True, False)
    """
    return any(
        all(kind.fullmatch(_singular(word)) for word in (one, other)) for kind in _ALIKE
    )


def is_count(name: str) -> bool:
    """Whether a unit counts things, as tokens do, instead of measuring like seconds."""
    return name not in _MEASURES


def in_billions(own: Powers) -> bool:
    """Whether a B after a number may mean a billion, if the question has this unit.

    >>> in_billions({"param": 1}), in_billions({"byte": 1}), in_billions({"chip": 1})
    (True, False, False)
    """
    return own in ({"param": 1}, {"token": 1})


def meaning(word: str, own: Powers, billions: bool = False) -> UnitWord:
    """The meaning of a word after a number.

    Args:
        word: the word.
        own: the units of the question.
        billions: whether a B means a billion, as in "an 8B model", instead of a byte.

    Raises:
        ValueError: the word is not a unit here. The message is a phrase to be put after
            the quoted text.

    >>> meaning("TB", {}).times, meaning("µs", {}).by, meaning("GPU", {"chip": 1}).unit
    (1000000000000, 1000000, {'chip': 1})
    >>> meaning("Gb", {})
    UnitWord(times=1000000000, by=8, unit={'byte': 1}, bits=True)
    >>> meaning("B", {"param": 1}, billions=True).times
    1000000000
    """
    if billions and word in ("B", "b"):
        return UnitWord(10**9)
    if word in ("%", "percent"):
        return UnitWord(by=100)
    minutes = word.lower() == _MAY_BE_MINUTES and own == {"s": 1}
    if word.lower() in _NUMBERS and not minutes:
        return UnitWord(10 ** _NUMBERS[word.lower()])
    if (unit := _named(word, own)) is not None:  # before prefixes: "pairs", "MXUs"
        return UnitWord(unit=unit)
    if (there := seconds(word)) is not None:
        return UnitWord(there, unit={"s": 1})
    if rate := _PER_SECOND.fullmatch(word):
        there = meaning(rate[1], own)
        return replace(there, unit={**there.unit, "s": -1})
    for prefix, rest in _split(word):
        unit = _named(rest, own)
        if _BITS.fullmatch(rest) and prefix not in _BELOW_ONE:
            powers_of = _BINARY if prefix in _BINARY else _DECIMAL
            base = 2 if prefix in _BINARY else 10
            return _bits(base ** powers_of[prefix])
        if prefix in _BELOW_ONE and not rest:
            raise ValueError(
                f"has {short_repr(word)} in it, which has several meanings"
            )
        if unit is None and rest:
            continue
        if prefix in _DECIMAL:
            return UnitWord(10 ** _DECIMAL[prefix], unit=unit or {})
        if prefix in _BINARY:
            return UnitWord(2 ** _BINARY[prefix], unit=unit or {})
        if unit == {"s": 1}:
            return UnitWord(by=10 ** _BELOW_ONE[prefix], unit=unit)
    if _BITS.fullmatch(word):
        return _bits(1)
    raise ValueError(
        f"has {short_repr(word)} in it, which isn't a unit here{_nearly(word, own)}"
    )


def _bits(times: int) -> UnitWord:
    return UnitWord(times, _BITS_OF_A_BYTE, {"byte": 1}, bits=True)


def _nearly(word: str, own: Powers) -> str:
    """A note if the word would be a unit in capitals: " (GB is)" for "gb"."""
    for other in (word[0].upper() + word[1:], word.upper()):
        with suppress(ValueError):
            if other != word and not meaning(other, own).bits:
                return f" ({other} is)"
    return ""


def _split(word: str):
    """All ways to read a prefix at the start of a word, the longest first."""
    for spelled, letter in _SPELLED.items():
        if word.lower().startswith(spelled):
            yield letter, word[len(spelled) :]
    if word[:2] in _BINARY:
        yield word[:2], word[2:]
    letter = _OTHER_LETTERS.get(word[0], word[0])
    if letter in _DECIMAL or letter in _BELOW_ONE:
        yield letter, word[1:]


def _named(word: str, own: Powers) -> Powers | None:
    for name, spelling in _UNITS.items():
        if spelling.fullmatch(word):
            return {"s": -1} if name == "Hz" else {name: 1}
    one = _singular(word)
    for name in own:
        if one.lower() == name.lower():
            return {name: 1}
        if same(one, name):
            return {name: 1}
    return None


def _singular(name: str) -> str:
    return re.sub(r"(?i:(ch)es$|(\w\w)s$)", r"\1\2", name)


def _plural(name: str) -> str:
    if name in ("s", "W"):
        return name
    return f"{name}es" if name.endswith("ch") else f"{name}s"
