"""Numbers that a chapter's prose states, and the evidence the chapter has for them.

A number stands on evidence when, at the precision printed, it is in an output or the
code of its own section (in the whole chapter for the opening and the closing section),
in a record of a chip that the section names, or at the end of an equation on the same
line whose other side is a number: ``96/384 = 25 %``.

Not looked at: names (H100, fp8), references (chapter 5, (3.2)), ordinals, years,
exponents, subscripts, code, addresses, counts up to 12, and the notes on sources.
"""

import ast
import math
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from html import unescape

from shardmath.hardware import chips
from shardmath.hardware.networks import LATENCY

COUNTS = 12  # what is small is counted in words as often as in digits
WHOLE_BOOK = ("What to remember", "Takeaway")  # sections that speak of all others
UNREAD = ("Source notes", "Sources")  # bibliography: volumes, pages, years

_PREFIX = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "K": 1e3, "M": 1e6}
_PREFIX |= {"G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "Z": 1e21}
_PREFIX |= {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_KINDS = {"FLOPs/s": "FLOPs/s", "FLOPs": "FLOPs", "FLOP": "FLOPs", "OPs/s": "OPs/s"}
_KINDS |= {"B/s": "bytes/s", "bytes/s": "bytes/s", "B": "bytes", "Hz": "Hz", "W": "W"}
_KINDS |= {"s": "s"}
UNITS = {
    p + u: (scale, kind) for p, scale in _PREFIX.items() for u, kind in _KINDS.items()
}
UNITS |= {"%": (0.01, "ratio"), "percent": (0.01, "ratio"), "seconds": (1.0, "s")}
UNITS |= {"thousand": (1e3, ""), "million": (1e6, ""), "billion": (1e9, "")}
UNITS |= {"trillion": (1e12, ""), "milliseconds": (1e-3, "s"), "bytes": (1.0, "bytes")}
UNITS |= {"microseconds": (1e-6, "s"), "bits": (0.125, "bytes")}
UNITS |= dict.fromkeys(
    ("FLOPs/byte", "FLOPs per byte", "FLOPs a byte"), (1.0, "FLOPs/byte")
)
UNITS |= dict.fromkeys(("FLOPs per clock", "FLOPs a clock"), (1.0, ""))
del UNITS["B"]  # a batch, or billions

_UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_NUMBER = re.compile(
    rf"(?P<digits>{_DIGITS})(?P<power>\s*(?:\*\s*10\^|e)(?P<exponent>[-+]?\d+))?"
    rf"(?:\s?(?P<unit>{_UNIT})(?![A-Za-z0-9/]))?"
)
# What stands before a number that is a name or a reference, not a quantity.
_NAMED = re.compile(
    r"(?:[A-Za-z_]-?|\d[.,:]|[#:^]|\b(?:chapters?|sections?|questions?|tables?|figures?"
    r"|part|version|appendix|volume|pages?|CUDA|NVLink|PCIe|Gen|Llama|Gemma|Qwen|TPU|GPT"
    r"|DeepSeek|Python|JAX|DGX|HDR|NDR|Connect-?X|Ethernet|level|IEEE|arXiv"
    r"|Trillium|Ironwood|Spectrum|Quantum|Tomahawk|Figs?\.|Tab\.|Eqs?\.|No\.)"
    r"[ \u00a0])$",
    re.IGNORECASE,
)
_LIST = re.compile(
    r"(?:chapters?|questions?|sections?|tables?)\s[\d\s.,]*(?:and|to|or|–|-)?\s*$", re.I
)
_ROUND = re.compile(
    r"\b(?:about|some|nearly|roughly|almost|over|around|more than|less than|up to|under"
    r"|below|above|fewer than|close to|approaches)\s*\$?\s*$|[≈~<>≤≥]\s*$"
)
_RANGE = re.compile(
    rf"\s*(?:to|and|or|–|against|,)\s*\$?(?:{_DIGITS})\s?(?P<range_unit>{_UNIT})(?![A-Za-z0-9/])"
)


@dataclass(frozen=True)
class Number:
    """A number as printed: `half` is half a unit of its last printed digit.

    `kind` is its base unit, "" where none is printed; `scale` that of its prefix; `at`
    its place in the text.
    """

    text: str
    value: float
    half: float = 0.0
    scale: float = 1.0
    kind: str = ""
    at: int = 0

    @property
    def base(self) -> float:
        return self.value * self.scale

    @property
    def counts(self) -> bool:
        """Whether this only counts a few things: eight chips, 8 chips."""
        return not self.kind and self.value <= COUNTS and self.value.is_integer()

    def stands_on(self, other: "Number") -> bool:
        """Whether `other`, rounded to the precision printed here, is this number."""
        if self.kind and other.kind and self.kind != other.kind:
            return False
        found = {other.base / self.scale}
        if not (self.kind and other.kind):  # a table's unit stands in its heading
            found |= {other.value, other.base}
        if self.kind == "ratio":  # "8 % more" and "13 % are missing" of a ratio
            share = other.base / self.scale
            found |= {share - 100, 100 - share}
        return any(abs(self.value - value) <= self.half * (1 + 1e-9) for value in found)


def numbers(text: str, names: bool = False) -> Iterator[Number]:
    """All numbers of a plain text; with `names`, those of names and references too."""
    for match in _NUMBER.finditer(text):
        before = text[max(match.start() - 60, 0) : match.start()]
        after = text[match.end() : match.end() + 60]
        if not names and _is_name(match, before, after):
            continue
        number = _read(match)
        if not number.kind and (shared := _RANGE.match(after)):
            scale, kind = UNITS[shared["range_unit"]]
            number = replace(number, scale=scale, kind=kind)
        digits = match["digits"]
        if _ROUND.search(before) and digits.replace(",", "").isdecimal():
            zeros = (
                len(digits)
                - len(digits.replace(",", "").rstrip("0"))
                - digits.count(",")
            )
            number = replace(number, half=number.half * 10.0**zeros)
        yield number


def _read(match: re.Match) -> Number:
    """The number of a match of `_NUMBER`, alone or within another pattern."""
    digits = match["digits"].replace(",", "")
    power = 10.0 ** int(match["exponent"] or 0)
    half = 0.5 * 10.0 ** -len(digits.partition(".")[2])
    scale, kind = UNITS.get(match["unit"], (1.0, ""))
    value = float(digits) * power
    return Number(match[0], value, half * power, scale, kind, match.start())


def _is_name(match, before: str, after: str) -> bool:
    digits = match["digits"]
    if _NAMED.search(before) or _LIST.search(before[-40:]):
        return True
    if re.match(r"[A-Za-z_]", after) and not match["unit"]:  # 2D, 8t, 70B, 133rd
        return True
    if re.match(r"0\d", digits) or re.match(
        r"\.\d", after
    ):  # chapter 01, version 1.0.4
        return True
    if (
        before.endswith("(")
        and re.fullmatch(r"\d+\.\d+", digits)
        and after.startswith(")")
    ):
        return True
    plain = digits.isdecimal() and not match["unit"] and not match["power"]
    return plain and 1950 <= int(digits) <= 2035


def around(text: str, at: int) -> str:
    """The words beside a number: enough to find it, and to name it in a list."""
    start = max(text.rfind("\n", 0, at) + 1, text.rfind(" ", 0, max(at - 30, 0)) + 1)
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    return text[
        start : max(text.rfind(" ", at, min(end, at + 40)), min(end, at + 20))
    ].strip()


def plain(markdown: str) -> str:
    """Markdown with formulas as plain arithmetic; no code, addresses, tags."""
    text = re.sub(r"```.*?```", " ", markdown, flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"<[^>]*>|https?://\S+", " ", text)
    text = re.sub(r"^#+\s.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*\d+\.\s", "", text, flags=re.MULTILINE)  # numbered lists
    text = re.sub(r"\$\$(.*?)\$\$|\$([^$]+)\$", _formula, text, flags=re.DOTALL)
    text = text.replace("[", "").replace("]", "").replace("**", "").replace("\\%", "%")
    return text.translate(
        str.maketrans({"−": "-", "×": "*", "·": "*", "\u00a0": " ", "\u202f": " "})
    )


def _formula(match) -> str:
    tex = match[1] or match[2]
    tex = re.sub(r"\\tag\{[^}]*\}|\\(?:left|right|quad|qquad|big|Big)\b", " ", tex)
    tex = tex.replace("{,}", ",").replace("\\%", "%")
    tex = re.sub(r"\\[,;:! ]|\\\\|&", " ", tex)
    tex = re.sub(r"(?<=\d)\s*(?=[A-Za-z])", " * ", tex)  # 2W is no two watts
    tex = re.sub(r"_(?:\\text\{[^}]*\}|\{[^}]*\}|\\?\w+)", "", tex)
    tex = re.sub(r"\\text(?:bf|it)?\{([^}]*)\}", r" \1 ", tex)
    for _ in range(3):
        tex = re.sub(
            r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r" ((\1)/(\2)) ", tex
        )
    tex = re.sub(r"\\[dt]?frac\s?(\w)\s?(\w)", r" (\1/\2) ", tex)
    tex = re.sub(r"\\(?:cdot|times)\b", "*", tex)
    tex = re.sub(r"\\(?:approx|simeq)\b", "≈", tex)
    tex = re.sub(r"10\s*\^\s*\{?(-?\d+)\}?", r"10^\1", tex)
    tex = re.sub(r"(?<!10)\^\s*(?:\{(\d+)\}|(\d))", r"^\1\2", tex)
    return re.sub(r"\\[A-Za-z]+|[{}]", " ", tex)


# Equations ----------------------------------------------------------------------------

_TOKEN = re.compile(
    rf"(?P<number>{_NUMBER.pattern})|(?P<operator>\^|[-+*/()])|(?P<equals>[=≈])"
    r"|(?P<space>[ \t]+)|(?P<other>[A-Za-z_]\w*|.|\n)"
)


@dataclass(frozen=True)
class Equation:
    """A calculation, an equals sign, and what it is said to give."""

    text: str
    at: int
    holds: bool
    given: frozenset[int]  # where its sides of one number stand


def equations(text: str) -> Iterator[Equation]:
    """Every ``a = b`` of two numeric sides, at least one of them a calculation."""
    run: list[re.Match] = []
    for token in [*_TOKEN.finditer(text), None]:
        if token is None or token["other"]:
            yield from _chain(run)
            run = []
        elif not token["space"]:
            run.append(token)


def _chain(run: list[re.Match]) -> Iterator[Equation]:
    """The equations of ``a = b ≈ c``, given as tokens."""
    sides, signs = [[]], []
    for token in run:
        if token["equals"]:
            sides.append([])
            signs.append(token["equals"])
        else:
            sides[-1].append(token)
    for left, sign, right in zip(sides, signs, sides[1:], strict=False):
        a, b = _value(left), _value(right)
        if a is None or b is None or (a.single and b.single):
            continue
        slack = a.half + b.half + 1e-9 * abs(a.base)
        if sign == "≈":
            slack += 0.05 * abs(a.base)
        # A calculation without units gives the number, whatever unit it then gets.
        ways = [(a.base, b.base, slack)]
        if "" in (a.kind, b.kind):
            scale = max(a.scale, b.scale)
            ways.append((a.base / a.scale, b.base / b.scale, slack / scale))
        start, end = left[0].start(), right[-1].end()
        yield Equation(
            run[0].string[start:end],
            start,
            any(abs(x - y) <= room for x, y, room in ways),
            frozenset(t[0].start() for t in (left, right) if len(t) == 1),
        )


@dataclass(frozen=True)
class _Side:
    base: float
    scale: float
    half: float
    kind: str
    single: bool


def _value(side: list[re.Match]) -> _Side | None:
    """What a side comes to; None where it is no arithmetic."""
    found = [_read(token) for token in side if token["number"]]
    operators = [token[0].replace("^", "**") for token in side if token["operator"]]
    if not found:
        return None
    if len(found) == 1 and not operators:
        (one,) = found
        return _Side(one.base, one.scale, one.half * one.scale, one.kind, True)
    parts = iter(found)
    code = " ".join(
        f"({next(parts).base!r})" if t["number"] else t[0].replace("^", "**")
        for t in side
    )
    try:
        with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
            value = float(eval(code, {"__builtins__": {}}))  # may be no arithmetic
    except (SyntaxError, TypeError, ZeroDivisionError, OverflowError):
        return None
    return _Side(value, 1.0, 0.0, "".join(number.kind for number in found), False)


# Evidence -----------------------------------------------------------------------------


def printed(cell) -> str:
    """What a code cell shows, as text."""
    parts = []
    for output in cell.outputs:
        parts.append(output.get("text", ""))
        for kind, data in output.get("data", {}).items():
            if kind in ("text/html", "image/svg+xml"):
                data = re.sub(r"<(style|script)\b.*?</\1>", " ", data, flags=re.DOTALL)
                parts.append(unescape(re.sub(r"<[^>]*>", " \n ", data)))
            elif kind in ("text/plain", "text/markdown"):
                parts.append(re.sub(r"<figure: .*digest \w+>", " ", data))
    return (
        "\n".join(parts).replace("−", "-").replace("\u202f", " ").replace("\u00a0", " ")
    )


def constants(source: str) -> Iterator[Number]:
    """Numbers that code holds, products of them too: ``2 * 8192**2``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from numbers(node.value)
        elif isinstance(node, ast.Constant | ast.BinOp):
            with_names = any(
                not isinstance(n, ast.Constant | ast.BinOp | ast.operator)
                for n in ast.walk(node)
            )
            if with_names:
                continue
            try:
                value = eval(
                    compile(ast.Expression(node), "", "eval"), {"__builtins__": {}}
                )
            except Exception:  # a string times a number and the like
                continue
            if isinstance(value, int | float) and math.isfinite(value):
                yield Number(repr(value), float(value))


def recorded(text: str) -> Iterator[Number]:
    """Values of the chips that `text` names, and the latencies of its networks."""
    for chip in chips.ALL:
        names = {
            chip.name,
            chip.name.removeprefix("TPU "),
            chip.id.upper(),
            *chip.aliases,
        }
        if not any(re.search(rf"(?<![\w]){re.escape(n)}(?![\w])", text) for n in names):
            continue
        for name, fact in chip.facts.items():
            kind = {"flops": "FLOPs/s", "hbm_bandwidth": "bytes/s"}.get(
                name.split(".")[0], ""
            )
            for value in (fact.value, *(value for value, _ in fact.disagrees)):
                yield Number(f"{chip.name} {name}", value, kind=kind)
        for precision in () if chip.without_hbm else chip.flops:
            yield Number("intensity", chip.intensity(precision), kind="FLOPs/byte")
    if "laten" in text:
        for fact in LATENCY.values():
            yield Number("latency", fact.value, kind="s")


@dataclass(frozen=True)
class Section:
    """The cells from one second-level heading to the next."""

    title: str
    cells: tuple

    def evidence(self) -> list[Number]:
        code = [cell for cell in self.cells if cell.cell_type == "code"]
        text = "\n".join(cell.source for cell in self.cells)
        found = [n for cell in code for n in numbers(printed(cell), names=True)]
        found += [n for cell in code for n in constants(cell.source)]
        return [*found, *recorded(text)]


def sections(cells: Iterable) -> list[Section]:
    """A chapter's sections, the first being what stands above its first heading."""
    groups: list[tuple[str, list]] = [("", [])]
    for cell in cells:
        parts = [cell.source]
        if cell.cell_type == "markdown":
            parts = re.split(r"(?m)^(?=## )", cell.source)
        for part in parts:
            if cell.cell_type == "markdown" and part.startswith("## "):
                groups.append((part.splitlines()[0][3:], []))
            piece = cell if len(parts) == 1 else type(cell)(cell | {"source": part})
            groups[-1][1].append(piece)
    return [Section(title, tuple(held)) for title, held in groups]


@dataclass(frozen=True)
class Finding:
    """A number without evidence, or an equation that does not hold."""

    cell: str
    what: str
    line: str

    def __str__(self) -> str:
        return f"{self.what} in “{self.line}” (cell {self.cell})"


def findings(cells: Iterable, listed: Iterable[str] = ()) -> list[Finding]:
    """What the prose of a chapter says without evidence and outside `listed` words."""
    found = []
    for cell, text, evidence in passages(cells):
        found += unfounded(cell, text, evidence, listed)
    return found


def distinct(evidence: Iterable[Number]) -> list[Number]:
    """Each quantity once: tables print many of them again and again."""
    return [*{(one.kind, one.value, one.scale): one for one in evidence}.values()]


def passages(cells: Iterable) -> Iterator[tuple[str, str, list[Number]]]:
    """Each piece of prose with its cell's id and the evidence it may stand on."""
    parts = sections(cells)
    own = [distinct(part.evidence()) for part in parts]
    whole = distinct(number for evidence in own for number in evidence)
    for part, evidence in zip(parts, own, strict=True):
        of_all = not part.title or part.title.startswith(WHOLE_BOOK)
        for cell in part.cells:
            if cell.cell_type == "markdown" and not part.title.startswith(UNREAD):
                yield cell.id, plain(cell.source), whole if of_all else evidence


def unfounded(
    cell: str, text: str, evidence: list[Number], listed: Iterable[str] = ()
) -> Iterator[Finding]:
    """What a plain text says that neither its evidence nor its arithmetic gives."""
    allowed = [
        match.span()
        for words in listed
        for match in re.finditer(rf"(?<![\w.,]){re.escape(words)}(?![.,]?\d)", text)
    ]

    def is_listed(at: int) -> bool:
        return any(start <= at < end for start, end in allowed)

    told = [*equations(text)]
    for equation in told:
        if not equation.holds and not is_listed(equation.at):
            yield Finding(cell, "a wrong equation", equation.text)
    derived = {at for equation in told if equation.holds for at in equation.given}
    for number in numbers(text):
        if number.counts or number.at in derived or is_listed(number.at):
            continue
        if not any(number.stands_on(other) for other in evidence):
            yield Finding(cell, number.text, around(text, number.at))
